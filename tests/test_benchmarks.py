"""The benchmarks run, in their quick forms made tiny, and write what they say."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest
from scipy import stats

import jaxcd
from benchmarks import (
    calibration,
    experiment,
    fci_faults,
    frontier,
    frontier_methods,
    frontier_pictures,
    interventions,
    kernel_peers,
    kernels,
    knowledge,
    missing,
    model_noise,
    pcd_figure1,
    pcd_figure2,
    priv_fci,
    priv_pc,
    priv_pc_tests,
    private_tests,
    rcit_pc,
    releases,
    robustness,
    run_time,
    sources,
    wide,
)
from tests.helpers import PLAIN, refused, words_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def private_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    out = tmp_path_factory.mktemp("results") / "deep" / "priv_pc.json"
    tiny = "--quick --rows 300 --runs 1 --networks cancer --epsilon 2 --per-round 1 --out"
    priv_pc.main(words_of(tiny, out))
    return json.loads(out.read_text()), out


def test_private_rows(private_rows):
    content, out = private_rows
    rows = {row["method"]: row for row in content["results"]}
    assert set(rows) == {
        m.label for m in (*priv_pc.NON_PRIVATE, *priv_pc.PUBLISHED, *priv_pc.PRIVATE)
    }
    for method in priv_pc.PRIVATE:
        assert rows[method.label]["total_epsilon"] == 2 and rows[method.label]["proven"]
        assert rows[method.label]["n_tests"] is None  # sensitive
    for method in priv_pc.PUBLISHED:
        # an epsilon a round; CURATE has a budget, and NoLeaks as many gradients as it takes
        if "NoLeaks" not in method.label:
            rounds = "CURATE" not in method.label
            assert (rows[method.label]["total_epsilon"] > 2) is rounds
        assert not rows[method.label]["proven"]
    for method in priv_pc.NON_PRIVATE:
        assert rows[method.label]["arc_f1_non_private"] == 1 and rows[method.label]["n_tests"] > 0
    for row in rows.values():
        assert all(
            0 <= row[name] <= 1
            for name in ("arc_f1", "arc_f1_non_private", "skeleton_f1", "exhausted")
        )
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_results_say_where_they_come_from(private_rows):
    (environment,) = private_rows[0]["environments"]
    assert {"date", "commit", "device", "n_cores", "versions"} <= set(environment)
    assert private_rows[0]["settings"]["rows"] == 300


def test_run_times(tmp_path, capsys):
    out = tmp_path / "run_time.json"
    # another test may have compiled the same programs, and then there is nothing to count
    jax.clear_caches()
    run_time.main(words_of("--quick --rows 300 --runs 2 --networks cancer --out", out))
    content = json.loads(out.read_text())
    parts = {
        part: [row for row in content["results"] if row["part"] == part] for part in run_time.TABLES
    }
    for row in parts["published"]:
        assert (
            len(row["timing"]["runs"]) == 2 and row["timing"]["minimum"] <= row["timing"]["median"]
        )
        assert row["ratio"] is None  # the reference has 100,000 rows
    (chi_square,) = parts["chi-square"]
    assert chi_square["cells"] >= 40 and chi_square["compilations"] >= 1
    assert [row["depth"] for row in parts["counting core"]] == [2, 3, 4]
    assert "cancer" in capsys.readouterr().out


def test_timing_is_apart_from_compilation():
    timing = experiment.Timing(5.0, (1.0, 3.0, 2.0), (0.5, 0.5, 0.5))
    assert (timing.compilation, timing.minimum, timing.median) == (4.0, 1.0, 2.0)


def test_a_missing_network_file_is_named(tmp_path, capsys):
    refused(SystemExit, "sachs", sources.load_networks, ["sachs"], tmp_path)
    assert (
        "alarm" not in sources.load_networks(None, tmp_path)
        and "alarm is left out" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("benchmark", "wrong"),
    [
        *(
            (priv_pc, wrong)
            for wrong in ("--runs 0", "--epsilon nan", "--epsilon -1", "--networks nowhere")
        ),
        *(
            (frontier, wrong)
            for wrong in (
                "--networks nowhere",
                "--methods nothing",
                "--epsilons 0",
                "--merge none.json",
            )
        ),
    ],
)
def test_wrong_options(benchmark, wrong):
    with pytest.raises(SystemExit) as stop:
        benchmark.main(wrong.split())
    assert stop.value.code == 2


def read(out: Path) -> dict:
    assert out.is_file()
    return json.loads(out.read_text())


def test_kernels(tmp_path, capsys):
    out = tmp_path / "kernels.json"
    kernels.main(words_of("--quick --sizes 300 600 --out", out))
    content = read(out)
    assert [row["n_samples"] for row in content["results"]] == [300, 600, 300, 600]
    for row in content["results"]:
        assert 0 < row["seconds"] and 0 < row["limit"] and row["giga_operations_float32"] > 0
    # the covariance of 2 J features, their 16 leading components, and n s^2 (k + 1) multiplications
    # and additions of those
    n_features = jaxcd.ops.features.fourier_kernel(length=10.0, bandwidth=1.0).n_features - 1
    assert content["results"][0]["giga_operations_float32"] == pytest.approx(
        2e-9 * 300 * (2 * n_features**2 + 2 * 16 * n_features + 16**2 * 101)
    )
    assert content["errors"]["HSIC float32, leading features"] <= 1e-4
    assert content["errors"]["HSIC float64"] <= 1e-6 and content["errors"]["HSIC float32"] <= 1e-4
    assert len(content["exponents"]) == 2 and "exponent in n" in capsys.readouterr().out
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_exponents_are_slopes():
    def row(what: str, n: int, seconds: float) -> experiment.Row:
        return experiment.Row({"what": what, "n_samples": n, "seconds": seconds})

    # what is below 10,000 rows counts only where nothing else is there
    rows = [row("a", 1_000, 9.0), *(row("a", n, 3.0 * n**1.5) for n in (10_000, 50_000, 200_000))]
    rows += [row("b", n, 2.0 * n) for n in (100, 900)]
    assert kernels.exponents(rows) == pytest.approx({"a": 1.5, "b": 1.0})


def test_peers_see_the_same_data(tmp_path, monkeypatch):
    seen = []

    def peer(values):
        seen.append(values)
        return 0.25

    match = kernel_peers.Match(
        "mine", "numpy", "numpy", lambda: peer, jaxcd.HSIC(n_permutations=19), 200, 0
    )
    absent = kernel_peers.Match(
        "none", "nothing", "no_such_module", lambda: peer, jaxcd.HSIC(), 200, 0
    )
    monkeypatch.setattr(kernels, "MATCHES", (match, absent))
    out = tmp_path / "kernels.json"
    kernels.main(words_of("--quick --peers --sizes 300 600 --out", out))
    content = read(out)
    (row,) = (row for row in content["results"] if row["peer"])
    assert (
        row["n_samples"] == 40
        and row["pvalue"] == 0.25
        and row["ratio"] == pytest.approx(row["seconds"] / row["our_seconds"])
    )
    assert [entry["reason"] for entry in content["left_out"]] == ["pip install nothing"]
    assert 1 / 20 <= row["our_pvalue"] <= 1 and (seen[-1] == kernel_peers.columns(40, 0)).all()


def test_calibration(tmp_path):
    out = tmp_path / "calibration.json"
    words = "--quick --sizes 60 --laws binary --runs 3 --power-runs 2 --out"
    calibration.main(["--tests", "GCM", *words_of(words, out)])
    (row,) = read(out)["results"]
    assert (row["law"], row["test"], row["named"]) == ("binary", "GCM", False)
    for rate in ("type_1", "power"):
        low, high = row[f"{rate}_interval"]
        assert 0 <= low <= row[rate] <= high <= 1
    assert row["verdict"] == "open" and out.with_suffix(".png").is_file()
    assert [calibration.verdict(rate, 500) for rate in (0.0, 0.05, 0.2)] == [
        "below",
        "within",
        "above",
    ]
    # (1 - x)^20 = 0.025
    assert calibration.interval(0, 20) == pytest.approx((0.0, 1 - 0.025**0.05))
    assert len({law.name for law in calibration.LAWS}) == len(calibration.LAWS) >= 16


def test_private_tests(tmp_path):
    out = tmp_path / "private_tests.json"
    words = "--quick --sizes 60 --laws weak --runs 2 --epsilon 1 --tests StratifiedTau PrivCRT"
    chosen = [w if w != "weak" else "one column, weak" for w in words.split()]
    private_tests.main([*chosen, "--out", str(out)])
    rows = read(out)["results"]
    assert [row["test"] for row in rows] == ["StratifiedTau", "PrivCRT"]
    for row in rows:
        assert row["n_data_sets"] == 2 and row["verdict"] == "open"
        assert 0 <= row["type_1_interval"][0] <= row["type_1"] <= row["type_1_interval"][1] <= 1
    assert out.with_suffix(".png").is_file()
    for law in private_tests.LAWS:
        off, on = (law.draw(np.random.default_rng(1), 50, dependent) for dependent in (False, True))
        assert (off[:, [0, *range(2, 2 + law.size)]] == on[:, [0, *range(2, 2 + law.size)]]).all()
        assert (off[:, 1] != on[:, 1]).any() and np.isfinite(on).all()
        # the law that PrivCRT is given is that of x: its quantiles at a row are ranks
        at = np.array([float(law.quantile(off[0, 2:], u)) for u in (0.1, 0.5, 0.9)])
        assert (np.diff(at) > 0).all()
        same = np.tile(off[0, 2:], (4_000, 1))
        drawn = law.f(same.T, np) + law.spread(same.T, np) * private_tests._at(
            law.errors, np.random.default_rng(0).uniform(size=4_000), np
        )
        assert np.mean(drawn < at[:, None], axis=1) == pytest.approx([0.1, 0.5, 0.9], abs=0.03)


@pytest.mark.parametrize("law", calibration.LAWS, ids=lambda law: law.name)
def test_laws_are_null_where_they_say_so(law):
    """The same x and Z with and without the dependence, and another y; all finite."""
    off, on = (law.draw(np.random.default_rng(1), 50, dependent) for dependent in (False, True))
    assert off.shape == on.shape and off.shape[1] >= 3
    assert np.isfinite(off.astype(float)).all() and np.isfinite(on.astype(float)).all()
    assert (off[:, 2:] == on[:, 2:]).all() and (off[:, 0] == on[:, 0]).all()
    assert (off[:, 1] != on[:, 1]).any()


def test_a_whole_search_says_its_work(tmp_path, capsys):
    out = tmp_path / "rcit_pc.json"
    rcit_pc.main(words_of("--quick --rows 100 --max-level 1 --out", out))
    (row,) = read(out)["results"]
    assert row["structure"] == "cancer" and row["levels"][0][1] == 10
    # with one conditioning column at most 5 sets, 6 kernels to be chosen, and 4 targets of each
    assert 1 <= row["n_factorisations"] <= 5 * 6 and 1 <= row["n_residuals"] <= 4 * 5
    assert row["n_tests"] >= 10 and 0 <= row["skeleton_f1"] <= 1
    assert "level 1:" in capsys.readouterr().out


def test_searches_from_other_roots_and_with_the_regression_of_before(tmp_path):
    out = tmp_path / "rcit_pc.json"
    words = "--quick --structures random-4 --rows 60 --max-level 1 --roots uniform heavy"
    rcit_pc.main(words_of(words + " --regressions chosen scores --out", out))
    content = read(out)
    assert [(row["roots"], row["regression"]) for row in content["results"]] == [
        (roots, which) for roots in ("uniform", "heavy") for which in ("chosen", "scores")
    ]
    assert len(content["means"]) == 4
    for row in content["results"]:
        found = row["n_true"] - row["n_missing"]
        both = 2 * found + row["n_false"] + row["n_missing"]
        assert row["skeleton_f1"] == pytest.approx(2 * found / both)
    model = rcit_pc.structural.nonlinear_sem(nx.DiGraph([("x", "y")]), key=jax.random.key(0))
    draws = {
        roots: rcit_pc.sample(model, 20_000, roots, jax.random.key(1)) for roots in rcit_pc.ROOTS
    }
    kurtosis = {roots: stats.kurtosis(data.values("x")) for roots, data in draws.items()}
    assert kurtosis["uniform"] == pytest.approx(-1.2, abs=0.1)
    assert kurtosis["normal"] == pytest.approx(0.0, abs=0.3) and kurtosis["heavy"] > 3
    for data in draws.values():
        x, y = data.values("x"), data.values("y")
        rest = y - model.mechanisms["y"].mean(x[:, None])
        assert abs(np.corrcoef(x, rest)[0, 1]) < 0.03 and rest.std() == pytest.approx(1, abs=0.03)


def test_options_that_are_not_given(tmp_path):
    full, quick = (pcd_figure2.EXPERIMENT.parse(words) for words in ([], ["--quick"]))
    assert full.sizes == [1000, 2000, 4000, 8000] and full.runs is None and full.max_level is None
    assert (quick.networks, quick.sizes, quick.runs, quick.max_level) == (["cancer"], [500], 2, 1)
    assert (full.out.name, quick.out.name) == ("pcd_figure2.json", "pcd_figure2_quick.json")
    chosen = pcd_figure1.EXPERIMENT.parse(
        words_of("--quick --sizes 70 60 70 --levels 1 --out", tmp_path / "a.json")
    )
    assert (chosen.sizes, chosen.levels, chosen.runs, chosen.out.name) == (
        [60, 70],
        [1],
        10,
        "a.json",
    )
    assert pcd_figure2.EXPERIMENT.parse(words_of("--quick --max-level 0")).max_level == 0


def test_figure_1_has_the_papers_model(tmp_path):
    data = pcd_figure1.sample(50_000, 2, 3)
    z = np.column_stack([data.values("z0"), data.values("z1")])
    x, y = data.values("x"), data.values("y")
    rest = np.column_stack([x, y]) - np.sin(z.sum(axis=1))[:, None]
    # c e with c in (.5, 1) and e in (-.5, .5): its largest value is c / 2.
    scales = 2 * np.abs(rest).max(axis=0)
    assert (scales > 0.5).all() and (scales < 1).all() and np.abs(z).max() < 0.5
    assert abs(np.corrcoef(rest.T)[0, 1]) < 0.02 and np.corrcoef(x, y)[0, 1] > 0.3
    out = tmp_path / "figure1.json"
    pcd_figure1.main(words_of("--quick --sizes 60 --runs 2 --epsilon 1 --out", out))
    rows = {row["method"]: row for row in read(out)["results"]}
    assert len(rows) == 8
    for row in rows.values():
        assert 0 <= row["type_1"] <= 1 and 0 <= row["type_2"] <= 1
        assert row["proven"] == (row["method"] == pcd_figure1.KENDALL)


def test_figure_2_has_all_prices_and_none(tmp_path):
    out = tmp_path / "figure2.json"
    run = words_of("--quick --sizes 80 --max-level 0 --epsilon 1 20 --out", out)
    pcd_figure2.main(run)
    rows = read(out)["results"]
    found = {(row["method"], row["epsilon"]) for row in rows}
    assert found == {(pcd_figure2.NON_PRIVATE, None)} | {
        (method, epsilon) for method in pcd_figure2.PUBLISHED for epsilon in (None, 1.0, 20.0)
    }
    pcd_figure2.main([*run, "--resume"])
    assert read(out)["results"] == rows


def test_how_tests_are_counted(tmp_path):
    out = tmp_path / "tests.json"
    priv_pc_tests.main(words_of("--quick --rows 400 --runs 1 --out", out))
    content = read(out)
    noisy = [row for row in content["results"] if row["epsilon"] is not None]
    for row in noisy:
        assert row["different"] <= row["sieve"] <= row["tests"]
        extra = row["rounds"] if row["algorithm"] == "Priv-PC" else 0
        assert row["tests"] == row["sieve"] + extra
    # level 0 asks 28 pairs from both ends
    first = [row for row in noisy if row["max_level"] == 0]
    assert all(row["different"] == 28 and row["sieve"] <= 56 for row in first)
    # PC without privacy asks each pair once, in both orders
    plain = [row for row in content["results"] if row["epsilon"] is None]
    assert {row["algorithm"] for row in plain} == set(priv_pc_tests.ORDERS)
    assert all(row["tests"] == 28 for row in plain if row["max_level"] == 0)
    for row in content["errors"]:
        assert row["below"] == pytest.approx(row["below_simulated"], abs=0.002)
        assert row["above"] == pytest.approx(row["above_simulated"], abs=0.002)


def test_private_fci(tmp_path, capsys):
    out = tmp_path / "priv_fci.json"
    priv_fci.main(
        words_of("--quick --rows 310 --runs 1 --networks cancer --epsilon 1 2 --out", out)
    )
    content = read(out)
    rows = content["results"]
    assert {row["case"] for row in rows} == {"cancer", "cancer without Cancer"}
    for row in rows:
        assert (row["epsilon"] is None) == (
            row["method"] in {m.label for m in priv_fci.NON_PRIVATE}
        )
        if row["proven"]:
            assert 0 < row["largest_spent"] <= row["epsilon"] and row["delta"] == 1e-6
            assert row["total_epsilon"] == row["epsilon"]
        assert 0 <= row["mark_f1"] <= row["skeleton_f1"] <= 1
    assert [entry["network"] for entry in content["run_times"]] == ["cancer"]
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    pictures = sorted(path.name for path in out.with_suffix("").iterdir())
    assert pictures == ["cancer.png", "cancer_Cancer.png"]
    assert "published" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["published", "CovarianceNorm", "Levelwise"])
def test_private_fci_with_some_of_its_methods(tmp_path, capsys, words):
    """No reference line, no private method, or no published one."""
    out = tmp_path / "priv_fci.json"
    tiny = "--quick --rows 310 --runs 1 --networks cancer --epsilon 2 --methods"
    priv_fci.main(words_of(tiny, words, "--out", out))
    content = read(out)
    (method,) = {row["method"] for row in content["results"]}
    assert words in method and content["reached"] == []
    assert list(content["run_times"][0]["seconds"]) == [method]
    assert out.with_suffix(".png").is_file() and method in capsys.readouterr().out


def test_there_is_something_for_fci_to_find():
    """Every hidden case has an edge between variables that the network does not join."""
    for case in priv_fci.CASES:
        dag = jaxcd.networks.load(case.network).dag.to_undirected()
        truth = case.truth()
        assert not set(case.hidden) & set(truth.names) and set(case.hidden) | set(
            truth.names
        ) == set(dag)
        joined = {frozenset((edge.a, edge.b)) for edge in truth.edges()}
        assert any(not dag.has_edge(*pair) for pair in joined) == bool(case.hidden)


def test_when_a_method_is_close():
    def row(method: str, epsilon: float | None, f1: float) -> experiment.Row:
        scores = {"skeleton_f1": f1, "mark_f1": f1, "orientation_f1": 1.0}
        return experiment.Row({"case": "c", "method": method, "epsilon": epsilon, **scores})

    label = priv_fci.PRIVATE[0].label
    line = [
        row(priv_fci.REFERENCE, None, 0.9),
        *(row(label, e, f1) for e, f1 in ((1, 0.89), (2, 0.8), (4, 0.885), (8, 1.0))),
    ]
    entry = priv_fci.reached(line)[0]
    # close at 1, but not from there on
    assert (entry["skeleton_f1"], entry["orientation_f1"]) == (4, 1)
    assert priv_fci.reached([*line, row(label, 16, 0.5)])[0]["skeleton_f1"] is None
    assert [found["method"] for found in priv_fci.reached(line)] == [label]


def test_a_column_that_is_a_function_of_others_keeps_its_edges():
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in ("a", "b", "or", "c")})
    a, b, noise = np.random.default_rng(0).integers(0, 2, (3, 2000))
    either = a | b
    data = jaxcd.Dataset.from_codes(
        np.column_stack([a, b, either, either ^ (noise & a & b)]), domain=domain
    )
    dag = nx.DiGraph([("a", "or"), ("b", "or"), ("or", "c")])
    blind = jaxcd.fci(data, test=jaxcd.ChiSquare(), **PLAIN)
    seeing = jaxcd.fci(data, test=fci_faults.Varying(jaxcd.ChiSquare()), **PLAIN)
    assert "c" not in blind.graph.neighbors("or") and "c" in seeing.graph.neighbors("or")
    found = fci_faults.faults(
        blind, jaxcd.discovery.dag_to_pag(dag), data=data, oracle=jaxcd.Oracle(dag)
    )
    assert any("or --> c in the truth, no edge found" in words for words in found["edges"])
    assert any("or is a function of a and b" in words for words in found["wrong_separations"])


def test_releases(tmp_path, capsys):
    out = tmp_path / "releases.json"
    releases.main(words_of("--quick --rows 2000 --runs 1 --out", out))
    rows = read(out)["results"]
    private = ["Histogram", "Marginals", "LogLinear"]
    without = ["Marginals", "LogLinear", "no release"]
    assert [row["release"] for row in rows] == [*private, *without, "SecondMoments"]
    assert [row["epsilon"] for row in rows] == [1.0] * 3 + [None] * 3 + [1.0]
    assert all(0 <= row["arc_f1"] <= 1 and row["n_samples"] == 2000 for row in rows)
    assert all((row["truth_higher"] is None) == (row["release"] == "no release") for row in rows)
    assert "linear Gaussian, 5" in capsys.readouterr().out


def test_many_columns(tmp_path):
    out = tmp_path / "wide.json"
    wide.main(words_of("--quick --latent gfci fci --out", out))
    rows = read(out)["results"]
    assert [(row["name"], row["method"], row["epsilon"]) for row in rows] == [
        ("random, 15", "discover", 4.0),
        ("random, 15", "gfci", 4.0),
        ("random, 15", "fci", 4.0),
        ("random, 15", "release", None),
        ("random, 15", "ges", None),
        ("linear Gaussian, 12", "discover", 4.0),
        ("nonlinear, 12", "discover", 4.0),
    ]
    assert all(0 <= row["skeleton_f1"] <= 1 and 0 < row["gib"] < 8 for row in rows)
    assert all((row.get("arc_f1") is None) == (row["method"] in wide.LATENT) for row in rows)
    network = sources.random_network(40, 1)
    assert max(map(len, network.parents.values())) <= 3 and len(network.names) == 40


def test_model_noise(tmp_path):
    out = tmp_path / "model_noise.json"
    words = words_of("--quick --networks cancer --columns 5 --epsilons 1 4 --data", tmp_path)
    model_noise.main([*words, "--out", str(out)])
    rows = read(out)["results"]
    assert [(row["name"], row["n_columns"], row["epsilon"]) for row in rows] == [
        ("random, 5", 5, 1.0),
        ("random, 5", 5, 4.0),
        ("cancer", 5, 1.0),
        ("cancer", 5, 4.0),
    ]
    assert all(0 <= row["loglinear_skeleton_f1"] <= 1 and row["noise"] > 0 for row in rows)
    ((few, limit), (many, other)) = model_noise.limits(
        [*rows, *({**r, "n_columns": 30} for r in rows)]
    )
    assert few < many and limit == other and 0 < limit < max(row["noise"] for row in rows)


def test_interventions(tmp_path):
    out = tmp_path / "interventions.json"
    interventions.main(
        words_of("--quick --networks cancer --rows 2000 --runs 1 --data", tmp_path, "--out", out)
    )
    rows = [row for row in read(out)["results"] if row["data"] == "cancer"]
    methods = ["exact, BIC", "exact, BDeu", "Marginals", "Marginals", "LogLinear"]
    readings = ["pooled", "context", "targets"]
    assert [(row["reading"], row["method"]) for row in rows] == [
        (reading, method) for reading in readings for method in methods
    ]
    assert all(0 <= row["right"] + row["reversed"] + row["open"] <= row["edges"] for row in rows)
    assert all(0 <= row["arc_f1"] <= 1 for row in rows)


def test_what_targets_tell():
    network = jaxcd.networks.load("asia")
    free = {1: ("smoke",), 2: ("tub", "asia")}
    truth = interventions.told(network, free)
    assert {str(edge) for edge in truth.edges()} >= {"smoke --> lung", "smoke --> bronc"}
    assert interventions.told(network, {1: ("asia", "tub")}) == interventions.told(network, {1: ()})
    both = interventions.counted(truth, set(network.dag.edges))
    assert both == {"edges": 8.0, "right": 7.0, "reversed": 0.0, "open": 1.0}


def test_releases_of_another_size_join_the_file(tmp_path):
    out = tmp_path / "releases.json"
    out.write_text(
        json.dumps(
            {
                "environment": {"date": "before"},
                "results": [
                    {
                        "name": "cancer",
                        "release": "Histogram",
                        "n_samples": 7,
                        "epsilon": 1.0,
                        "delta": 0.0,
                        "arc_f1": 0.5,
                        "arc_f1_sd": 0.0,
                        "skeleton_f1": 0.5,
                        "truth_higher": 0.0,
                        "seconds": 1.0,
                        "n_runs": 1,
                    }
                ],
            }
        )
    )
    run = words_of("--quick --rows 500 --runs 1 --resume --out", out)
    releases.main(run)
    content = read(out)
    assert [(row["n_samples"], row["environment"]) for row in content["results"]] == [
        (7, 0),
        *[(500, 1)] * 7,
    ]
    assert content["environments"][0] == {"date": "before"}
    releases.main(run)
    assert read(out)["results"] == content["results"]  # seconds too: nothing ran again


TINY = """--quick --rows 300 --draws 2
    --methods 'SparseVector, Cov' Histogram 'Moments, PC' SVT-PC"""


def run_frontier(*words: str | Path) -> None:
    """With PC without privacy by one test only: the others compile for seconds."""
    slow = {method.label for method in priv_pc.NON_PRIVATE if method.label != "PC, ChiSquare"}
    with pytest.MonkeyPatch.context() as patch:
        few = tuple(method for method in frontier_methods.DISCRETE if method.label not in slow)
        patch.setattr(frontier_methods, "DISCRETE", few)
        frontier.main(words_of(TINY, words))


@pytest.fixture(scope="module")
def frontier_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("frontier") / "frontier.json"
    run_frontier("--out", out)
    return out


def test_the_frontier(frontier_rows):
    content = read(frontier_rows)
    rows = content["results"]
    assert {row["n_samples"] for row in rows} == {300} and {row["network"] for row in rows} == {
        "cancer",
        "gaussian-5",
    }
    for row in rows:
        private = row["regime"] in ("pure", "approximate", "ex post")
        assert row["n_draws"] == (2 if private else 1) and row["n_data"] == 2
        assert (
            (row["epsilon"] is None)
            == (not private)
            == (row["arc_f1_noise"] is None)
            == (row["delta"] is None)
        )
        if row["proven"] and private:
            assert row["total_epsilon"] == row["epsilon"] and row["delta"] == (
                0 if row["regime"] == "pure" else 1e-6
            )
        assert all(
            0 <= row[score] <= 1 and 0 <= row[f"{score}_se"] <= 0.5
            for score in ("arc_f1", "skeleton_f1")
        )
    lines = {(row["network"], row["method"], row["regime"]) for row in rows}
    assert {
        regime
        for name, method, regime in lines
        if (name, method) == ("cancer", "SparseVector, CovarianceNorm")
    } == {"pure", "approximate"}
    assert [row["method"] for row in rows if row["reference"]] == [
        "best BIC",
        "PC, ChiSquare",
        "best Gaussian score",
        "PC, FisherZ",
    ]
    (complete,) = (
        row for row in rows if row["method"] == "complete graph" and row["network"] == "cancer"
    )
    # Cancer has 4 of 10 edges, all directed: 4 of 20 arcs are true, and all true ones are there.
    assert complete["skeleton_f1"] == pytest.approx(2 * 4 / (4 + 10)) and complete[
        "arc_f1"
    ] == pytest.approx(2 * 4 / (4 + 20))
    assert {entry["method"] for entry in content["summary"]} == {
        row["method"] for row in rows if row["delta"] is not None
    }
    for path in (
        frontier_rows.with_suffix(".png"),
        *(frontier_rows.with_name(f"frontier_{name}.png") for name in ("cancer", "gaussian-5")),
    ):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_the_frontier_goes_on_where_it_was_stopped(frontier_rows, tmp_path, monkeypatch):
    before = read(frontier_rows)
    out = tmp_path / "again.json"
    out.write_text(json.dumps({**before, "results": before["results"][:-1]}))
    ran = []
    measure = frontier.measure
    monkeypatch.setattr(frontier_pictures, "draw", lambda *rest: None)
    monkeypatch.setattr(
        frontier, "measure", lambda case, *rest: ran.append(case.name) or measure(case, *rest)
    )
    run_frontier("--resume --out", out)
    after = read(out)
    assert ran == ["gaussian-5"] and after["results"][:-1] == before["results"][:-1]
    timed = {"environment", "seconds", "total_seconds"}
    old, new = (
        {k: v for k, v in content["results"][-1].items() if k not in timed}
        for content in (before, after)
    )
    assert new == old and after["results"][-1]["environment"] == 1
    merged = tmp_path / "merged.json"
    run_frontier("--merge", out, frontier_rows, "--out", merged)
    rows = read(merged)["results"]
    assert (
        ran == ["gaussian-5"]
        and len(rows) == len(before["results"])
        and len(read(merged)["environments"]) == 3
    )


def frontier_case(tmp_path: Path, run, *, runs: int, limit: float) -> experiment.Record:
    """The record of one method on a case of 100 rows, at epsilon 1, 2 and 3."""
    (case,) = frontier_methods.cases(["cancer"], None, [100])
    method = frontier_methods.Method("mine", frontier_methods.Regime.PURE, run)
    chosen = frontier.EXPERIMENT.parse(
        words_of("--quick --epsilons 1 2 3 --runs", runs, "--slow 1e-6 --limit", limit)
    )
    record = experiment.Record(tmp_path / "a.json", key=frontier.KEY, settings={}, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier, "methods_of", lambda case, wanted: [method])
        jobs = frontier.case_jobs(case, chosen, record)
        list(experiment.measured(jobs, record, say=lambda text: None))
    return record


def test_what_takes_too_long_is_left_out_by_name(tmp_path):
    run = frontier_methods._guess
    record = frontier_case(tmp_path, run, runs=3, limit=1e-9)
    assert not record.rows and [entry["epsilon"] for entry in record.left_out] == [1, 2, 3]
    assert all("pass the limit of 1e-09 s" in entry["reason"] for entry in record.left_out)
    assert read(record.path)["left_out"] == record.left_out
    record = frontier_case(tmp_path, run, runs=3, limit=1e9)
    assert [row["epsilon"] for row in record.rows] == [1, 2, 3] and not record.left_out


def test_the_allowance_of_time():
    allowance = frontier.Allowance(slow=2.0, limit=10.0)
    allowance.check(1000)  # nothing is known yet
    allowance.take(9.0, compiles=True)
    allowance.check(1000)
    allowance.take(2.0, compiles=False)
    allowance.check(1000)  # not slow
    allowance.take(2.5, compiles=False)
    allowance.check(0)  # done is done
    refused(frontier.TooSlow, "a run took 2.5 s, and 1 more after 14 s", allowance.check, 1)
    endless = frontier.Allowance(slow=2.0, limit=10.0)
    endless.take(11.0, compiles=True)
    pytest.raises(frontier.TooSlow, endless.check, 1)
    pytest.raises(
        frontier.TooSlow, frontier.Allowance(slow=2.0, limit=10.0, last=3.0).check, 4
    )  # known from fewer rows


def test_what_fails_is_left_out_with_its_words(tmp_path):
    def fails(data, epsilon, key):
        raise jaxcd.errors.DomainError("data: too wide")

    record = frontier_case(tmp_path, fails, runs=1, limit=1.0)
    assert {entry["reason"] for entry in record.left_out} == {"DomainError: data: too wide"}


def test_who_overspends_is_found(tmp_path):
    def overspends(data, epsilon, key):
        return frontier_methods.by_release(jaxcd.Histogram(), 0.0)(data, epsilon + 0.5, key)

    refused(AssertionError, "of epsilon 1", frontier_case, tmp_path, overspends, runs=1, limit=1.0)


def test_a_histogram_is_not_tried_on_large_domains(tmp_path):
    (small,) = frontier_methods.cases(["survey"], None, [100])
    (histogram,) = (method for method in frontier_methods.DISCRETE if method.label == "Histogram")
    assert histogram.refuses(small) is None
    large = dataclasses.replace(small, n_cells=4097)
    assert "4,097 cells" in histogram.refuses(large)
    with pytest.raises(jaxcd.errors.DomainError):
        # 108 cells: the limit is the release's own
        jaxcd.Histogram(max_cells=107).check(small.source(0)[0].domain)


def test_from_where_on_a_method_is_close():
    def row(
        method: str,
        regime: str,
        total: float | None,
        arc: float,
        skeleton: float,
        reference: bool = False,
    ) -> experiment.Row:
        entries = {
            "network": "asia",
            "n_samples": 9,
            "method": method,
            "regime": regime,
            "epsilon": total,
            "total_epsilon": total,
            "arc_f1": arc,
            "skeleton_f1": skeleton,
            "reference": reference,
        }
        return experiment.Row(entries)

    rows = [
        row("PC", "no privacy", None, 0.7, 0.95, True),
        row("BIC", "no privacy", None, 0.9, 0.9, True),
    ]
    rows += [row("other", "no privacy", None, 1.0, 1.0)]  # no reference
    rows += [
        row("a", "pure", e, *f1)
        for e, f1 in {4.0: (0.86, 1.0), 1.0: (0.9, 0.89), 2.0: (0.84, 0.9)}.items()
    ]
    rows += [row("a", "approximate", 1.0, 0.2, 1.0)]
    # None: an infinite total
    rows += [row("b", "ex post", None, 0.9, 0.9), row("b", "ex post", 7.0, 0.9, 0.9)]
    found = {
        (entry["method"], entry["regime"]): entry for entry in frontier_pictures.summarise(rows)
    }
    assert (
        found["a", "pure"]["reference"] == "BIC"
        and found["a", "pure"]["reference_skeleton_f1"] == 0.95
    )
    # close at 1, but not from there on
    assert (found["a", "pure"]["arc_f1"], found["a", "pure"]["skeleton_f1"]) == (4.0, 2.0)
    assert (found["a", "approximate"]["arc_f1"], found["a", "approximate"]["skeleton_f1"]) == (
        None,
        1.0,
    )
    assert found["b", "ex post"]["arc_f1"] is None and found["b", "ex post"]["largest"] is None


def test_the_spread_of_noise_is_that_for_the_same_data():
    # variances 2 and 8 for the two data sets
    assert (
        frontier._within([0.0, 2.0, 10.0, 14.0], 2) == pytest.approx(5**0.5)
        and frontier._within([1.0, 2.0], 1) is None
    )


def test_sparse_candidates_find_the_best_graph(monkeypatch):
    data = jaxcd.networks.load("asia").sample(5_000, key=jax.random.key(0))
    score = jaxcd.scores.BICScore.of_data(data)
    best = frontier_methods.best_by_bic(data)
    monkeypatch.setattr(frontier_methods, "_MOST_EXACT", 0)
    monkeypatch.setattr(frontier_methods, "_N_CANDIDATES", 4)
    assert score.total(frontier_methods.best_by_bic(data)) == pytest.approx(score.total(best))


def test_a_bif_file_is_a_network_anywhere(tmp_path):
    path = tmp_path / "deep" / "own.bif"
    path.parent.mkdir()
    path.write_text(
        "network unknown { }\nvariable a { type discrete [2] { no, yes }; }\nvariable b { type "
        "discrete [2] { no, yes }; }\n"
        "probability ( a ) { table 0.5, 0.5; }\nprobability ( b | a ) { (no) 0.9, 0.1; (yes) 0.1, "
        "0.9; }\n"
    )
    (case,) = frontier_methods.cases([str(path)], None, [50])
    assert (case.name, case.n_columns, case.n_cells) == ("own", 2, 4) and case.source(1)[
        0
    ].n_samples == 50
    refused(
        SystemExit, "no such file", frontier_methods.cases, [str(tmp_path / "none.bif")], None, [50]
    )


def test_a_record_keeps_what_it_has(tmp_path):
    def record(resume: bool, **settings: int) -> experiment.Record:
        return experiment.Record(
            tmp_path / "a.json", key=("x", "y"), settings=settings, resume=resume
        )

    first = record(False, n=1)
    first.add({"x": [1, 2], "y": 0.5, "f": float("inf")})
    first.leave_out({"x": 3, "y": None}, "too slow")
    first.leave_out({"x": 3, "y": None}, "still too slow")
    second = record(True, n=1)
    assert second.rows == [{"x": [1, 2], "y": 0.5, "f": None, "environment": 0}]
    assert second.left_out == [{"x": 3, "y": None, "reason": "still too slow"}] and second.find(
        {"x": (1, 2), "y": 0.5}
    )
    second.add({"x": 3, "y": None, "f": 1.0})
    assert not second.left_out and [row["environment"] for row in second.rows] == [0, 1]
    refused(SystemExit, "settings", record, True, n=2)
    (tmp_path / "a.json").write_text("[]")
    refused(SystemExit, "no result file", record, True, n=1)
    assert not record(False, n=1).rows


def test_robustness(tmp_path, capsys):
    out = tmp_path / "robustness.json"
    run = "--quick --rows 400 --releases SecondMoments 'SecondMoments, PC' --out"
    robustness.main(words_of(run, out))
    content = read(out)
    rows = content["results"]
    defaults = {row["release"]: row["arc_f1"] for row in rows if row["constant"] == "default"}
    for row in rows:
        assert row["arc_loss"] == pytest.approx(defaults[row["release"]] - row["arc_f1"])
    tried = {
        row["value"]
        for row in rows
        if (row["release"], row["constant"]) == ("SecondMoments", "search penalty")
    }
    assert tried == {1.0, 4.0} and {
        row["value"] for row in rows if row["constant"] == "shares[2]"
    } == {0.35, 1.4}
    assert {entry["constant"] for entry in content["summary"]} | {"default"} == {
        row["constant"] for row in rows
    }
    robustness.main(words_of(run, out, "--resume"))
    assert read(out)["results"] == rows and "second_moments._ANCHOR" in capsys.readouterr().out


def test_every_constant_is_varied_and_put_back():
    for study in robustness.STUDIES:
        varied = {variant.constant for variant in study.variants()}
        names = {field.name for field in dataclasses.fields(study.kind)}
        names -= {"centres", "scales", "knowledge"}
        if study.name == "Histogram":
            names -= {"max_cells"}  # says what is refused, and changes no result
        if study.name == "Marginals":
            names -= {"selected"}  # all pairs are measured of networks of so few columns
        if study.name != "SecondMoments, PC":
            assert names <= {constant.split("[")[0] for constant in varied}
        search = {
            constant.removeprefix("search ")
            for constant in varied
            if constant.startswith("search ")
        }
        assert search == set(inspect.signature(study.search).parameters) - {
            "release",
            "seed",
            "knowledge",
        }
        for name, (default, _, _) in study.search_options.items():
            assert inspect.signature(study.search).parameters[name].default == default
        for variant in study.variants():
            before = [getattr(module, name) for module, name, _ in variant.patches]
            dataclasses.replace(study.kind, **variant.release)  # no value is refused
            with robustness.patched(variant.patches):
                assert [getattr(module, name) for module, name, _ in variant.patches] == [
                    value for *_, value in variant.patches
                ]
            assert [getattr(module, name) for module, name, _ in variant.patches] == before
    halved = [robustness.scaled(value, 0.5, 1, 8) for value in (3, 5, 8, 1)]
    assert (
        halved == [2, 3, 4, 1]
        and robustness.scaled(6, 2.0, 1, 8) == 8
        and robustness.scaled(0.7, 2.0, 0, 1) == 1.0
    )


def test_the_worst_constant_is_named():
    rows = [
        {
            "release": "R",
            "constant": constant,
            "arc_loss": loss,
            "arc_loss_se": None,
            "value": value,
            "case": "asia",
            "n_samples": 5,
        }
        for constant, value, loss in (
            ("default", None, 0.0),
            ("a", 1, 0.1),
            ("a", 4, -0.3),
            ("b", 2, 0.2),
            ("b", 8, 0.0),
        )
    ]
    b, a = robustness.summarise(rows)
    assert (b["constant"], b["largest_loss"], b["at"], b["mean_loss"]) == (
        "b",
        0.2,
        2,
        pytest.approx(0.1),
    )
    assert (a["constant"], a["largest_loss"], a["largest_gain"], a["mean_loss"]) == (
        "a",
        0.1,
        0.3,
        pytest.approx(-0.1),
    )


def test_tiers_of_a_true_graph_are_scored_against_one_truth(tmp_path: Path):
    out = tmp_path / "knowledge.json"
    knowledge.main(words_of("--quick --networks cancer survey --out", out))
    rows = {row["network"]: row for row in read(out)["results"]}
    assert set(rows) == {"cancer", "survey"}
    for row in rows.values():
        assert row["release"] == "Histogram" and 0 <= row["least_gain"] <= 1
        assert 0 <= row["arc_f1_plain"] <= 1 and 0 <= row["arc_f1_tiers"] <= 1
        assert 0 <= row["lower"] <= row["n_runs"] == 2
    for name in jaxcd.networks.available():
        dag = jaxcd.networks.load(name).dag
        tiers = knowledge.tiers_by_depth(dag)
        assert len(tiers.tiers) == 3 and not any(tiers.forbids(*arc) for arc in dag.edges)
        assert sorted(itertools.chain(*tiers.tiers)) == sorted(dag)


def test_missing_cells_are_searched_in_both_readings(tmp_path: Path):
    out = tmp_path / "missing.json"
    missing.main(words_of("--quick --out", out))
    rows = read(out)["results"]
    assert [row["epsilon"] for row in rows] == ["none", "4"]
    for row in rows:
        assert row["known"] == 3_200
        for name in ("ignore", "level", "complete"):
            assert 0 <= row[f"arc_f1_{name}"] <= 1
    holes = missing.with_holes(
        jaxcd.networks.load("asia").sample(5_000, key=jax.random.key(0)), 0.4, 0
    )
    assert abs(float(np.mean(holes.is_missing("lung"))) - 0.4) < 0.03
