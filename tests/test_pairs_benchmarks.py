"""The benchmarks of pairwise methods: they run, and their short cut through the law of the noise
agrees with the mechanisms.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxcd
from benchmarks import kusner_figures, kusner_table2, pairs
from jaxcd.pairwise import CausePair, Direction, pair_accuracy_of
from jaxcd.pairwise.anm import anm_batch
from jaxcd.pairwise.anm_scores import HSICScore, Protect
from tests.helpers import words_of

pytestmark = pytest.mark.slow


def some_pairs(n: int, rows: int = 60) -> list[CausePair]:
    """x causes y where the number is odd."""
    rng = np.random.default_rng(5)
    found = []
    for i in range(n):
        cause = rng.uniform(-1, 1, rows)
        effect = cause**3 + 0.3 * rng.normal(size=rows)
        columns = (cause, effect) if i % 2 else (effect, cause)
        direction = Direction.X_TO_Y if i % 2 else Direction.Y_TO_X
        found.append(CausePair(f"pair{i + 1:04d}", *columns, direction, weight=1.0 if i else 0.5))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with three pairs in each collection."""
    root = tmp_path_factory.mktemp("data")
    made = some_pairs(3)
    first = {pair.name: 1 if pair.direction is Direction.X_TO_Y else 2 for pair in made}
    arrays = {pair.name: np.column_stack([pair.x, pair.y]) for pair in made}

    def write(name: str, meta: list[dict[str, object]], values: dict[str, np.ndarray]) -> None:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        np.savez(path.with_name(path.name + "_pairs.npz"), **values)
        with path.with_name(path.name + "_meta.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(meta[0]))
            writer.writeheader()
            writer.writerows(meta)

    tuebingen = [
        {
            "pair": i + 1,
            "scalar": 1,
            "columns": 2,
            "cause_first": first[pair.name],
            "weight": pair.weight,
            "weight_100": i % 2 + 0.5 * (i == 0),
        }
        for i, pair in enumerate(made)
    ]
    write("cause_effect_pairs/tuebingen", tuebingen, arrays)
    simulated = [
        {"set": name, "pair": i + 1, "cause_column": first[pair.name], "weight": 1}
        for name in ("SIM", "SIM-c")
        for i, pair in enumerate(made)
    ]
    renamed = {
        f"{name}_{key[4:]}": value for name in ("SIM", "SIM_c") for key, value in arrays.items()
    }
    write("cause_effect_pairs/mooij_sim", simulated, renamed)
    write(
        "kaggle_cause_effect/sup3",
        [{"pair": key, "target": 1 if first[key] == 1 else -1} for key in arrays],
        arrays,
    )
    return root


def read(path: Path) -> dict:
    return json.loads(path.read_text())


# ---- benchmarks.pairs
# --------------------------------------------------------------------------------------------------


def test_pairs(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pairs.json"
    methods = "--methods 'RECI, polynomial' 'private RECI' CDS 'private ANM, HSIC, all'"
    run = "--quick --rows 60 --peer-pairs 0 --data"
    pairs.main(words_of(run, folder, methods, "--out", out))
    content = read(out)
    assert "measures the noise only" in content["settings"]["bounds"]
    rows = {(row["data"], row["method"], row["epsilon"]): row for row in content["results"]}
    assert {name for name, *_ in rows} == {
        "Tuebingen, 108",
        "Tuebingen, 100",
        "SIM",
        "SIM-c",
        "challenge",
    }
    assert {epsilon for _, method, epsilon in rows if "private" in method} == {0.5, 1.0, 2.0}
    for row in rows.values():
        assert 0 <= row["lower"] <= row["accuracy"] <= row["upper"] <= 1
        if row["method"] != "CDS":
            assert row["curve"][-1] == pytest.approx(row["accuracy"], abs=1e-4)  # all decided
    made = some_pairs(3)
    expected = pair_accuracy_of(
        [jaxcd.reci(pair.x, pair.y, budget=jaxcd.NO_PRIVACY) for pair in made], made
    )
    polynomial = rows["Tuebingen, 108", "RECI, polynomial 3", None]
    assert (polynomial["accuracy"], polynomial["area"]) == pytest.approx(
        (expected.accuracy, expected.area)
    )
    assert rows["Tuebingen, 100", "CDS", None]["n_pairs"] == 2  # the third weighs nothing there
    # 60 records fill too few levels: no answer, which counts one half and has nothing to rank by.
    assert rows["SIM", "CDS", None]["accuracy"] == 0.5 and rows["SIM", "CDS", None]["curve"] is None
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "private RECI" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["reci", "anm"])
def test_the_law_of_the_noise_is_that_of_the_mechanism(kind: str) -> None:
    made = some_pairs(2, rows=40)
    runs, epsilon = 150, 0.7
    if kind == "reci":
        exact = pairs.exact_reci(made)
        results = [
            jaxcd.reci(
                pair.x,
                pair.y,
                budget=jaxcd.Budget(epsilon),
                bounds=pairs.bounds_of(pair),
                noise=jaxcd.SimulatedNoise(jax.random.key(100 + run)),
            )
            for pair in made
            for run in range(runs)
        ]
    else:
        exact = pairs.exact_anm(made, score=HSICScore(), protect=Protect.BOTH)
        results = [
            result
            for pair in made
            for result in anm_batch(
                [(pair.x, pair.y)] * runs,
                budget=jaxcd.Budget(epsilon),
                bounds=pairs.bounds_of(pair),
                key=jax.random.key(0),
                noise=jaxcd.SimulatedNoise(jax.random.key(3)),
                same_people=False,
            )
        ]
    rng = np.random.default_rng(0)
    drawn = [pairs.noisy(exact, epsilon=epsilon, rng=rng) for _ in range(runs)]
    for i in range(len(made)):
        mechanism = _signed(results[i * runs : (i + 1) * runs])
        law = _signed([draw[i] for draw in drawn])
        scale = exact[1][i] / epsilon
        # Four standard errors of a mean of Laplace noise, and of a share.
        assert abs(mechanism.mean() - law.mean()) < 4 * 2 * scale / math.sqrt(runs)
        assert abs((mechanism > 0).mean() - (law > 0).mean()) < 4 * math.sqrt(0.5 / runs)
        assert mechanism.std() == pytest.approx(math.sqrt(2) * scale, rel=0.35)


def _signed(results: list) -> np.ndarray:
    return np.array(
        [
            result.margin if result.direction is Direction.X_TO_Y else -result.margin
            for result in results
        ]
    )


def test_ranges_are_rounded_outwards() -> None:
    assert pairs.outwards(np.array([0.123, 0.987])) == pytest.approx((0.12, 0.99))
    low, high = pairs.outwards(np.array([-1234.5, 8765.4]))
    assert (low, high) == (-1300.0, 8800.0)
    for values in (np.array([3.0, 4.0]), np.array([-1e-9, 1e-9])):
        low, high = pairs.outwards(values)
        assert low <= values.min() and values.max() <= high and high - low <= 1.3 * np.ptp(values)


def test_thinned_pairs_keep_records_together() -> None:
    (pair,) = some_pairs(1, rows=500)
    few = pairs.thinned(pair, 100)
    assert few.n == 100 and set(zip(few.x, few.y, strict=True)) <= set(
        zip(pair.x, pair.y, strict=True)
    )
    assert pairs.thinned(pair, 500) is pair and few.direction is pair.direction


# ---- Kusner et al.
# --------------------------------------------------------------------------------------------------


def test_probabilities_of_the_right_direction() -> None:
    found = kusner_table2.Differences(
        signed=np.array([[1.0, -2.0], [3.0, 0.0]]), scales=np.array([[1.0, 2.0], [1.5, 1.0]])
    )
    assert found.accuracy == pytest.approx([0.5, 0.75])
    one = [(1 - math.exp(-2) / 2 + math.exp(-2) / 2) / 2, (1 - math.exp(-4) / 2 + 0.5) / 2]
    assert found.probability(2.0) == pytest.approx(one)
    rng = np.random.default_rng(0)
    draws = rng.laplace(size=(2, 200_000)) - rng.laplace(size=(2, 200_000))  # two noises
    simulated = np.mean(
        np.array([[1.0], [-2.0]]) + np.array([[1.0], [2.0]]) / 2.0 * draws > 0, axis=1
    ).mean()
    assert found.probability(2.0, n_noises=2)[0] == pytest.approx(simulated, abs=0.005)
    assert found.probability(1e9) == pytest.approx(found.accuracy)


def test_table_2(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "table.json"
    kusner_table2.main(words_of("--quick --data", folder, "--pairs 2 --splits 1 --out", out))
    rows = read(out)["results"]
    assert {(row["score"], row["release"]) for row in rows if row["release"] == "both scores"} == {
        (score, "both scores") for score in ("HSIC", "Spearman", "Kendall")
    }
    for row in rows:
        assert row["right"] == pytest.approx(np.mean(row["by_pair"])) and len(row["by_pair"]) == 2
    by = {(row["score"], row["release"], row["epsilon"]): np.array(row["by_pair"]) for row in rows}
    for score in ("HSIC", "Spearman", "Kendall"):
        sides = np.where(by[score, None, None] > 0.5, 1, -1)  # one split, so right or wrong
        for epsilon in kusner_table2.EPSILONS:  # one noise leaves more of the exact answer than two
            one, two = by[score, "direction", epsilon], by[score, "both scores", epsilon]
            assert (sides * (one - two) >= 0).all() and (sides * (two - 0.5) >= 0).all()
    assert "Spearman" in capsys.readouterr().out


def test_figures(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kusner_figures, "PENALTIES", (0.01, 1.0))
    monkeypatch.setattr(kusner_figures, "LAMBDA_SCORES", ("HSIC",))
    out = tmp_path / "figures.json"
    kusner_figures.main(words_of("--quick --data", folder, "--pairs 1 --splits 1 --out", out))
    rows = read(out)["results"]
    line = [row["right"] for row in rows if (row["figure"], row["score"]) == ("epsilon", "HSIC")]
    exact, noisy = line[0], line[1:]
    assert (
        len(noisy) == len(kusner_figures.EPSILONS)
        and (np.diff(noisy) * (1 if exact > 0.5 else -1) >= 0).all()
    )
    assert {(row["protect"], row["penalty"]) for row in rows if row["figure"] == "lambda"} == {
        ("train", 0.01),
        ("both", 0.01),
    }
    for name in ("epsilon", "lambda"):
        assert (tmp_path / f"figures_{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("main", [pairs.main, kusner_table2.main, kusner_figures.main])
def test_without_data_one_line_says_so(
    main, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAXCD_DATA", raising=False)
    with pytest.raises(SystemExit) as stop:
        main(["--quick"])
    assert stop.value.code == 2 and "give --data FOLDER" in capsys.readouterr().err
