"""The benchmarks run, in their quick forms made tiny, and write what they say."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from benchmarks import (
    calibration,
    common,
    fci_faults,
    kernel_peers,
    kernels,
    pcd_figure1,
    pcd_figure2,
    priv_fci,
    priv_pc,
    rcit_pc,
    releases,
    run_time,
)


@pytest.fixture(scope="module")
def private_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    out = tmp_path_factory.mktemp("results") / "deep" / "priv_pc.json"
    tiny = ["--rows", "300", "--runs", "1", "--networks", "cancer", "--epsilon", "2", "--per-round", "1"]
    priv_pc.main(["--quick", *tiny, "--out", str(out)])
    return json.loads(out.read_text()), out


def test_private_rows(private_rows):
    content, out = private_rows
    rows = {row["method"]: row for row in content["results"]}
    assert set(rows) == {m.label for m in (*priv_pc.NON_PRIVATE, *priv_pc.PUBLISHED, *priv_pc.PRIVATE)}
    for method in priv_pc.PRIVATE:
        assert rows[method.label]["total_epsilon"] == 2 and rows[method.label]["proven"]
        assert rows[method.label]["n_tests"] is None  # sensitive
    for method in priv_pc.PUBLISHED:
        assert rows[method.label]["total_epsilon"] > 2 and not rows[method.label]["proven"]
    for method in priv_pc.NON_PRIVATE:
        assert rows[method.label]["arc_f1_non_private"] == 1 and rows[method.label]["n_tests"] > 0
    for row in rows.values():
        assert all(0 <= row[name] <= 1 for name in ("arc_f1", "arc_f1_non_private", "skeleton_f1", "exhausted"))
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_results_say_where_they_come_from(private_rows):
    environment = private_rows[0]["environment"]
    assert {"date", "commit", "device", "n_cores", "versions"} <= set(environment)
    assert private_rows[0]["settings"]["rows"] == 300


def test_run_times(tmp_path, capsys):
    out = tmp_path / "run_time.json"
    run_time.main(["--quick", "--rows", "300", "--runs", "2", "--networks", "cancer", "--out", str(out)])
    content = json.loads(out.read_text())
    for row in content["published"]:
        assert len(row["timing"]["runs"]) == 2 and row["timing"]["minimum"] <= row["timing"]["median"]
        assert row["ratio"] is None  # the reference has 100,000 rows
    (chi_square,) = content["non_private_chi_square"]
    assert chi_square["cells"] >= 40 and chi_square["compilations"] >= 1
    assert [row["depth"] for row in content["counting_core"]["depths"]] == [2, 3, 4]
    assert "cancer" in capsys.readouterr().out


def test_timing_is_apart_from_compilation():
    timing = common.Timing(5.0, (1.0, 3.0, 2.0), (0.5, 0.5, 0.5))
    assert (timing.compilation, timing.minimum, timing.median) == (4.0, 1.0, 2.0)


def test_a_missing_network_file_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit, match="sachs"):
        common.load_networks(["sachs"], tmp_path)
    assert "alarm" not in common.load_networks(None, tmp_path) and "alarm is left out" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--runs", "0"], ["--epsilon", "nan"], ["--epsilon", "-1"], ["--networks", "nowhere"]])
def test_wrong_options(wrong):
    with pytest.raises(SystemExit) as stop:
        priv_pc.main(wrong)
    assert stop.value.code == 2


def read(out: Path) -> dict:
    assert out.is_file()
    return json.loads(out.read_text())


def test_kernels(tmp_path, capsys):
    out = tmp_path / "kernels.json"
    kernels.main(["--quick", "--sizes", "300", "600", "--out", str(out)])
    content = read(out)
    assert [row["n_samples"] for row in content["rows"]] == [300, 600, 300, 600]
    for row in content["rows"]:
        assert 0 < row["seconds"] and 0 < row["limit"] and row["giga_operations_float32"] > 0
    # n r^2 (k + 1) multiplications and additions of 2 J features
    n_features = jaxcd.ops.features.fourier_kernel(length=10.0, bandwidth=1.0).n_features - 1
    assert content["rows"][0]["giga_operations_float32"] == pytest.approx(2e-9 * 300 * n_features**2 * 101)
    assert content["errors"]["HSIC float64"] <= 1e-6 and content["errors"]["HSIC float32"] <= 1e-4
    assert len(content["exponents"]) == 2 and "exponent in n" in capsys.readouterr().out
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_exponents_are_slopes():
    def row(what: str, n: int, seconds: float) -> kernels.Row:
        return kernels.Row(what, n, seconds, 1.0, 0.0, 1.0, 1.0, 1.0)

    # what is below 10,000 rows counts only where nothing else is there
    rows = [row("a", 1_000, 9.0), *(row("a", n, 3.0 * n**1.5) for n in (10_000, 50_000, 200_000))]
    rows += [row("b", n, 2.0 * n) for n in (100, 900)]
    assert kernels.exponents(rows) == pytest.approx({"a": 1.5, "b": 1.0})


def test_peers_see_the_same_data(monkeypatch):
    seen = []

    def peer(values):
        seen.append(values)
        return 0.25

    match = kernel_peers._Match("mine", "numpy", "numpy", lambda: peer, jaxcd.HSIC(n_permutations=19), 200, 0)
    absent = kernel_peers._Match("none", "nothing", "no_such_module", lambda: peer, jaxcd.HSIC(), 200, 0)
    monkeypatch.setattr(kernel_peers, "_MATCHES", (match, absent))
    (row,) = kernel_peers.peer_rows(quick=True)
    assert row.n_samples == 40 and row.pvalue == 0.25 and row.ratio == pytest.approx(row.seconds / row.our_seconds)
    assert 1 / 20 <= row.our_pvalue <= 1 and (seen[-1] == kernel_peers.columns(40, 0)).all()


def test_calibration(tmp_path):
    out = tmp_path / "calibration.json"
    calibration.main(["--quick", "--sizes", "100", "--levels", "0", "1", "--runs", "3", "--out", str(out)])
    rows = read(out)["results"]
    assert [(row["test"], row["level"]) for row in rows] == [("HSIC", 0), ("RCIT", 1)]
    for row in rows:
        for rate in ("type_1", "power"):
            low, high = row[f"{rate}_interval"]
            assert 0 <= low <= row[rate] <= high <= 1
        assert row["verdict"] == "open"
    assert [calibration.verdict(rate, 200) for rate in (0.0, 0.05, 0.2)] == ["below", "within", "above"]
    # (1 - x)^20 = 0.025
    assert calibration.interval(0, 20) == pytest.approx((0.0, 1 - 0.025**0.05))


def test_the_mean_index_has_the_spread_of_one_column():
    drawn = pcd_figure1.model(4, dependent=True, key=jax.random.key(0))
    scaled = calibration.mean_index(drawn)
    assert nx.utils.graphs_equal(drawn.dag, scaled.dag)
    before, after = drawn.mechanisms["y"], scaled.mechanisms["y"]
    ratio = {p: b / a for p, a, b in zip(before.parents, before.weights, after.weights, strict=True)}
    assert ratio == pytest.approx({"x": 1.0, "z0": 0.5, "z1": 0.5, "z2": 0.5, "z3": 0.5})


def test_a_whole_search_says_its_work(tmp_path, capsys):
    out = tmp_path / "rcit_pc.json"
    rcit_pc.main(["--quick", "--rows", "100", "--max-level", "1", "--out", str(out)])
    (row,) = read(out)["results"]
    assert row["structure"] == "cancer" and row["levels"][0][1] == 10
    # with one conditioning column at most 5 sets, and 4 targets of each
    assert 1 <= row["n_factorisations"] <= 5 and row["n_residuals"] <= 4 * row["n_factorisations"]
    assert row["n_tests"] >= 10 and 0 <= row["skeleton_f1"] <= 1
    assert "level 1:" in capsys.readouterr().out


def test_options_that_are_not_given(tmp_path):
    full, quick = (pcd_figure2._options(words) for words in ([], ["--quick"]))
    assert full.sizes == [1000, 2000, 4000, 8000] and full.runs == 10 and full.max_level is None
    assert (quick.networks, quick.sizes, quick.runs, quick.max_level) == (["cancer"], [500], 2, 1)
    assert (full.out.name, quick.out.name) == ("pcd_figure2.json", "pcd_figure2_quick.json")
    chosen = pcd_figure1._options(["--quick", "--sizes", "70", "60", "70", "--levels", "0", "--out", str(tmp_path / "a.json")])
    assert (chosen.sizes, chosen.levels, chosen.runs, chosen.out.name) == ([60, 70], [0], 10, "a.json")
    assert pcd_figure2._options(["--quick", "--max-level", "0"]).max_level == 0


def test_private_fci(tmp_path, capsys):
    out = tmp_path / "priv_fci.json"
    priv_fci.main(["--quick", "--rows", "310", "--runs", "1", "--networks", "cancer", "--epsilon", "1", "2", "--out", str(out)])
    content = read(out)
    rows = content["results"]
    assert {row["case"] for row in rows} == {"cancer", "cancer without Cancer"}
    for row in rows:
        assert (row["epsilon"] is None) == (row["method"] in {m.label for m in priv_fci.NON_PRIVATE})
        if row["epsilon"] is not None:
            assert 0 < row["largest_spent"] <= row["epsilon"] and row["delta"] == 1e-6
        assert 0 <= row["mark_f1"] <= row["skeleton_f1"] <= 1
    assert [entry["network"] for entry in content["run_times"]] == ["cancer"]
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    pictures = sorted(path.name for path in out.with_suffix("").iterdir())
    assert pictures == ["cancer.png", "cancer_Cancer.png"]
    assert "published" in capsys.readouterr().out


def test_there_is_something_for_fci_to_find():
    """Every hidden case has an edge between variables that the network does not join."""
    for case in priv_fci.CASES:
        dag = jaxcd.networks.load(case.network).dag.to_undirected()
        truth = case.truth()
        assert not set(case.hidden) & set(truth.names) and set(case.hidden) | set(truth.names) == set(dag)
        joined = {frozenset((edge.a, edge.b)) for edge in truth.edges()}
        assert any(not dag.has_edge(*pair) for pair in joined) == bool(case.hidden)


def test_when_a_method_is_close():
    def row(method: str, epsilon: float | None, f1: float) -> priv_fci.Row:
        return priv_fci.Row("c", "asia", (), method, epsilon, 0.0, 0.0, f1, 0.0, f1, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1)

    label = priv_fci.PRIVATE[0].label
    line = [row(priv_fci.REFERENCE, None, 0.9), *(row(label, e, f1) for e, f1 in ((1, 0.89), (2, 0.8), (4, 0.885), (8, 1.0)))]
    entry = priv_fci.reached(line)[0]
    assert (entry["skeleton_f1"], entry["orientation_f1"]) == (4, 1)  # close at 1, but not from there on
    assert priv_fci.reached([*line, row(label, 16, 0.5)])[0]["skeleton_f1"] is None


def test_a_column_that_is_a_function_of_others_keeps_its_edges():
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in ("a", "b", "or", "c")})
    a, b, noise = np.random.default_rng(0).integers(0, 2, (3, 2000))
    either = a | b
    data = jaxcd.Dataset.from_codes(np.column_stack([a, b, either, either ^ (noise & a & b)]), domain=domain)
    dag = nx.DiGraph([("a", "or"), ("b", "or"), ("or", "c")])
    settings = {"decider": jaxcd.Threshold(), "budget": jaxcd.NO_PRIVACY, "key": None}
    blind = jaxcd.fci(data, test=jaxcd.ChiSquare(), **settings)
    seeing = jaxcd.fci(data, test=fci_faults.Varying(jaxcd.ChiSquare()), **settings)
    assert "c" not in blind.graph.neighbors("or") and "c" in seeing.graph.neighbors("or")
    found = fci_faults.faults(blind, jaxcd.dag_to_pag(dag), data=data, oracle=jaxcd.Oracle(dag))
    assert any("or --> c in the truth, no edge found" in words for words in found["edges"])
    assert any("or is a function of a and b" in words for words in found["wrong_separations"])


def test_releases(tmp_path, capsys):
    out = tmp_path / "releases.json"
    releases.main(["--quick", "--rows", "2000", "--runs", "1", "--out", str(out)])
    rows = read(out)["results"]
    assert [row["release"] for row in rows] == ["Histogram", "Marginals", "SecondMoments"]
    assert all(0 <= row["arc_f1"] <= 1 and row["truth_higher"] in (0, 1) and row["n_samples"] == 2000 for row in rows)
    assert "linear Gaussian, 5" in capsys.readouterr().out
