"""The benchmarks of local privacy run, made tiny, and write what they say."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from benchmarks import local_cases, local_frontier, local_mechanisms, local_multi, local_pairs
from benchmarks.local_mechanisms import KINDS, Level
from jaxcd import local
from jaxcd.pairwise import Direction
from jaxcd.pairwise.pairs import CausePair
from tests.helpers import refused, words_of

pytestmark = pytest.mark.slow

TEN = jaxcd.Domain({name: jaxcd.Ordinal(tuple(range(10))) for name in "ab"})


def read(out: Path) -> dict:
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    return json.loads(out.read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_p_max_is_that_of_the_record(kind):
    # The product of the columns' probabilities where they are randomised by themselves; clipping
    # makes a record at the ends of both columns likelier than 1/4, whatever the noise.
    for p_max in (0.3,) if kind.label == "clipped geometric" else (0.05, 0.4):
        mechanism = kind.at(Level.P_MAX, p_max, TEN)
        channel = local.joint_channel(mechanism, TEN)
        assert channel.max() == pytest.approx(p_max, rel=1e-6)
        found = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
        assert found == pytest.approx(kind.guarantee(Level.P_MAX, p_max, TEN).epsilon_ldp, abs=1e-6)
    channel = local.joint_channel(kind.at(Level.EPSILON, 3.0, TEN), TEN)
    assert np.log(channel.max(axis=0) / channel.min(axis=0)).max() == pytest.approx(3.0, abs=1e-6)


def test_a_p_max_below_pure_noise_is_refused():
    for kind in KINDS[:4]:
        refused(jaxcd.errors.OptionError, "1/100", kind.at, Level.P_MAX, 0.005, TEN)


def test_numbers_are_the_codes_and_denoising_without_noise_keeps_the_joint():
    data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
    assert np.array_equal(
        np.column_stack([local_mechanisms.as_numbers(data).values(name) for name in data.names]),
        data.codes,
    )
    mechanism = local.KaryResponse(200.0)
    found = local_mechanisms.denoised(data, mechanism, jax.random.key(1))
    tables = [
        np.bincount(np.ravel_multi_index(tuple(part.codes.T), (2,) * 5), minlength=32) / 20_000
        for part in (data, found)
    ]
    assert np.abs(tables[0] - tables[1]).max() < 0.02
    with pytest.raises(jaxcd.errors.OptionError, match="joint channel"):
        big = jaxcd.Domain({name: jaxcd.Ordinal(tuple(range(9))) for name in "abcd"})
        local_mechanisms.denoised(
            jaxcd.Dataset.from_codes(np.zeros((9, 4), dtype=np.int32), domain=big),
            local.CombinedKaryResponse(1.0),
            jax.random.key(0),
        )


def test_frontier(tmp_path, capsys):
    out = tmp_path / "frontier.json"
    run = words_of("--quick --sizes 300 --epsilons 12 --runs 1 --out", out)
    local_frontier.main(run)
    content = read(out)
    rows = content["results"]
    assert len(rows) == 1 + 1 + 2 * len(local_frontier.LOCAL)
    assert all(0 <= row["skeleton_f1"] <= 1 and row["shd"] >= 0 for row in rows)
    assert len(content["summary"]) == len(rows) and "people needed" in capsys.readouterr().out
    local_frontier.main([*run, "--resume"])
    assert json.loads(out.read_text())["results"] == rows


def test_people_needed():
    def rows(*scores: float) -> list[dict]:
        base = {"method": "m", "mechanism": None, "epsilon": 1.0}
        return [
            {**base, "n_samples": 10**i, "skeleton_f1": score} for i, score in enumerate(scores, 2)
        ]

    # A size that falls below the target again does not count.
    for scores, needed in (
        ((0.9, 0.7, 0.9), 10_000),
        ((0.8, 0.8, 1.0), 100),
        ((0.9, 0.9, 0.1), None),
    ):
        (line,) = local_frontier.summarise(rows(*scores))
        assert line["needed"] == needed and line["largest"] == 10_000


def test_multi(tmp_path, capsys):
    out = tmp_path / "multi.json"
    chosen = "--searches 'PC, Fisher z' 'GES, Gaussian BIC' --mechanisms k-RR geometric"
    run = "--quick --cases random-5 sachs --rows 200 --runs 1 --bins 4 --p-max 1e-4 0.5"
    local_multi.main(words_of(run, chosen, "--epsilons 10 --data", tmp_path, "--out", out))
    content = read(out)
    rows = content["results"]
    shown = capsys.readouterr().out
    assert "sachs is left out" in shown and "1/1,024" in shown
    assert {entry["value"] for entry in content["left_out"]} == {1e-4}
    assert len(rows) == 2 * (1 + 2 * 2 * 2)
    for row in rows:
        assert (
            row["n_samples"] == 200
            and len(row["shds"]) == 1
            and row["skeleton_f1"] == row["skeleton_f1s"][0]
        )
        if row["level"] == "epsilon_LDP":
            assert row["epsilon_ldp"] == pytest.approx(10.0, abs=1e-6)
    assert [line["n_searches"] for line in content["summary"]] == [2] * 9


def test_cases_and_searches():
    case = local_cases.random_model(4, 3_000, 10)
    data, dag = case.draw(3)
    assert (
        data.domain.cardinalities == (10,) * 4
        and set(data.names) == set(dag)
        and nx.is_directed_acyclic_graph(dag)
    )
    f1 = {
        name: jaxcd.metrics.skeleton_f1(search.graph(data, 0), search.truth.of(dag))
        for name, search in local_cases.SEARCHES.items()
    }
    assert len(f1) == 14 and np.median([float(score) for score in f1.values()]) >= 0.8


def test_files_of_cases(tmp_path):
    for folder in ("sachs", "galton"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sachs" / "sachs_cd3cd28_icam2_902.csv").write_text("Raf,Mek\n1,10000\n100,9\n")
    (tmp_path / "sachs" / "sachs_edges_17_bnlearn.csv").write_text("cause,effect\nRaf,Mek\n")
    (tmp_path / "galton" / "galton_stature_898.csv").write_text(
        "family,father,mother,gender,height\n1,78.5,67,M,73.2\n1,50,85,F,60\n"
    )
    (tmp_path / "galton" / "galton_edges.csv").write_text("cause,effect\nfather,height\n")
    cells, people = (
        case.draw(0) for case in local_cases.load(["sachs", "galton"], tmp_path, 10, 10)
    )
    assert cells[0].codes.tolist() == [[0, 9], [5, 2]] and list(cells[1].edges) == [("Raf", "Mek")]
    assert people[0].domain.cardinalities == (10, 10, 10) and people[0].codes[1].tolist() == [
        0,
        9,
        2,
    ]


@pytest.fixture
def pairs_folder(tmp_path: Path) -> Path:
    """Four pairs y = x^3 + a little, in the layout of the collection."""
    rng = np.random.default_rng(0)
    arrays, lines = {}, ["pair,scalar,columns,cause_first,weight,weight_100"]
    for i in range(1, 5):
        x = rng.uniform(0, 1, 400)
        y = x**3 + 0.01 * rng.normal(size=400)
        arrays[f"pair{i:04d}"] = np.column_stack([x, y] if i % 2 else [y, x])
        lines.append(f"{i},1,2,{1 if i % 2 else 2},1,1")
    (tmp_path / "cause_effect_pairs").mkdir()
    np.savez(tmp_path / "cause_effect_pairs" / "tuebingen_pairs.npz", **arrays)
    (tmp_path / "cause_effect_pairs" / "tuebingen_meta.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_pairs(pairs_folder, tmp_path, capsys):
    out = tmp_path / "pairs.json"
    chosen = "--methods RECI IGCI --mechanisms k-RR 'clipped geometric' --p-max 0.02"
    run = "--quick --rows 300 --epsilons 60 --data"
    local_pairs.main(words_of(run, pairs_folder, chosen, "--out", out))
    rows = read(out)["results"]
    assert len(rows) == 2 * (2 + 2 * 2)
    for row in rows:
        assert row["n_pairs"] == 4 and 0 <= row["lower"] <= row["accuracy"] <= row["upper"] <= 1
        # clipping reports a record at two ends as it is with more than 1/4, whatever the noise;
        # without a mechanism every pair counts one half
        assert row["no_mechanism"] == (
            4 if (row["level"], row["mechanism"]) == ("p_max", "clipped geometric") else 0
        )
        assert row["accuracy"] == 0.5 or not row["no_mechanism"]
    by = {(row["method"], row["level"], row["mechanism"]): row["accuracy"] for row in rows}
    assert by["RECI", "continuous", None] == 1.0
    # e^30 against 30 levels: no noise
    assert by["RECI", "epsilon_LDP", "k-RR"] == by["RECI", "no noise", None]
    assert "no mechanism" in capsys.readouterr().out


def test_pairs_without_data_and_a_constant_pair(monkeypatch, capsys):
    monkeypatch.delenv("JAXCD_DATA", raising=False)
    with pytest.raises(SystemExit) as stop:
        local_pairs.main(["--quick"])
    assert stop.value.code == 2 and "--data" in capsys.readouterr().err
    constant = CausePair("c", np.ones(50), np.arange(50.0), Direction.X_TO_Y)
    blocks = local_pairs.reports([constant], Level.NONE, None, None)
    row = local_pairs.measure("RECI", [constant], lambda: blocks)
    assert (row["refused"], row["undecided"], row["accuracy"]) == (1, 1, 0.5)
