"""Confidence from released values: fits against closed forms, draws through the real pipeline, and
whether it is worth anything.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.citests import CovarianceNorm
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.decisions import LevelwiseGaussian
from jaxcd.decisions.levelwise_gaussian import norm_deviation
from jaxcd.discovery import DiscoveryResult, search_histogram, search_second_moments
from jaxcd.discovery.confidence import decision_confidence, edge_confidence
from jaxcd.discovery.constraint.skeleton import search_skeleton
from jaxcd.discovery.edge_shares import EdgeConfidence, PairConfidence
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph, dag_to_cpdag, random_dag
from jaxcd.privacy import Accountant, Ledger
from jaxcd.queries import Door, Session
from jaxcd.releases import release_contrast_moments
from jaxcd.releases.moments.linear_models import fit_linear_gaussian
from jaxcd.releases.redrawing import release_again
from jaxcd.releases.tables.fitted_tables import CellModel, fit_tables
from tests.helpers import PLAIN, numbers, refused, sampled, simulated

NETWORK = jaxcd.networks.load("cancer")
BUDGET = jaxcd.Budget(1.0, 1e-6)


def gaussian_data(
    seed: int, *, n_variables: int = 4, n_samples: int = 1000
) -> tuple[jaxcd.Dataset, MixedGraph]:
    dag = random_dag(n_variables, expected_degree=1.5, seed=seed)
    dag = nx.relabel_nodes(dag, {node: f"x{node}" for node in dag})
    model_key, data_key = jax.random.split(jax.random.key(seed))
    return linear_gaussian_sem(dag, key=model_key).sample(n_samples, key=data_key), dag_to_cpdag(
        dag
    )


@pytest.fixture(scope="module")
def discrete() -> jaxcd.Dataset:
    return NETWORK.sample(4000, key=jax.random.key(0))


# ---- the object


def confidence(**changes: object) -> EdgeConfidence:
    directed = np.array([[0.0, 0.5, 0.0], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]])
    undirected = np.array([[0.0, 0.3, 0.2], [0.3, 0.0, 0.0], [0.2, 0.0, 0.0]])
    parts = {
        "names": ("a", "b", "c"),
        "adjacency": directed + directed.T + undirected,
        "directed": directed,
        "undirected": undirected,
    }
    return EdgeConfidence(**{**parts, "n_draws": 10, "method": "by hand", **changes})  # type: ignore[arg-type]


def test_pairs_and_tables() -> None:
    whole = confidence()
    assert whole.of("a", "b") == PairConfidence("a", "b", pytest.approx(0.9), 0.5, 0.1, 0.3)
    assert whole.of("b", "a") == PairConfidence("b", "a", pytest.approx(0.9), 0.1, 0.5, 0.3)
    graph = MixedGraph.from_edges(["c", "b", "a"], ["b --- c"])
    assert [(row.a, row.b) for row in whole.table(graph)] == [("b", "c"), ("a", "b"), ("a", "c")]
    assert [(row.a, row.b) for row in whole.table(least=0.5)] == [("a", "b")]
    turned = whole.reordered(["c", "a", "b"])
    for a, b in itertools.permutations("abc", 2):
        assert turned.of(a, b) == whole.of(a, b)
    assert not whole.adjacency.flags.writeable


@pytest.mark.parametrize(
    "changes",
    [
        {"adjacency": np.full((3, 3), 0.5)},
        {"adjacency": np.zeros((3, 3))},
        {"adjacency": np.full((3, 3), math.nan)},
        {"adjacency": np.zeros((2, 2))},
        {"undirected": None},
        {"n_draws": -1},
        {"undirected": np.triu(np.full((3, 3), 0.1), 1)},
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, object]) -> None:
    pytest.raises(OptionError, confidence, **changes)


def test_wrong_names_are_refused() -> None:
    for call in (
        lambda: confidence().of("a", "z"),
        lambda: confidence().of("a", "a"),
        lambda: confidence().reordered(["a", "b"]),
        lambda: confidence().table(MixedGraph.empty(["a", "b", "z"])),
    ):
        pytest.raises(GraphError, call)


# ---- fits and draws


def test_drawn_cells_have_their_probabilities() -> None:
    domain = NETWORK.domain.select(["Smoker", "Cancer", "Xray"])
    weights = np.array([5.0, 1.0, 0.0, 2.0, 7.0, 3.0, 1.0, 1.0])
    data = CellModel(domain, weights).sample(20_000, key=jax.random.key(1))
    counts = np.bincount(data.codes @ np.array([4, 2, 1]), minlength=8)
    assert counts[2] == 0
    assert stats.chisquare(counts[weights > 0], 20_000 * weights[weights > 0] / 20).pvalue > 1e-4


def test_tables_without_noise_are_the_conditional_frequencies(discrete: jaxcd.Dataset) -> None:
    bought = jaxcd.release(discrete, jaxcd.Marginals(), budget=jaxcd.NO_PRIVACY)
    adjacency = np.zeros((5, 5), dtype=bool)
    smoker, cancer, xray = (discrete.names.index(name) for name in ("Smoker", "Cancer", "Xray"))
    adjacency[smoker, cancer] = adjacency[cancer, xray] = True
    fitted = fit_tables(bought, adjacency).network
    assert fitted.parents["Xray"] == ("Cancer",) and fitted.parents["Smoker"] == ()
    for parent in (0, 1):
        rows = discrete.codes[discrete.codes[:, cancer] == parent, xray]
        np.testing.assert_allclose(
            fitted.cpts["Xray"][parent], np.bincount(rows, minlength=2) / len(rows), atol=1e-6
        )


@settings(max_examples=6)
@given(st.integers(0, 1000))
def test_the_linear_model_has_the_released_moments_of_every_family(seed: int) -> None:
    """Exactly, by solving x = W^T x + e; and the rows scatter about it."""
    data, _ = gaussian_data(seed % 5)
    bought = jaxcd.release(data, jaxcd.SecondMoments(), budget=BUDGET, noise=simulated(seed))
    order = np.random.default_rng(seed).permutation(4)
    adjacency = np.zeros((4, 4), dtype=bool)  # complete: then the whole covariance must come back
    for i, j in itertools.combinations(range(4), 2):
        adjacency[order[i], order[j]] = True
    for dropped in (False, True):
        if dropped:
            adjacency[order[0], order[3]] = False
        model = fit_linear_gaussian(bought, adjacency)
        away = np.linalg.inv(np.eye(4) - model.weights)
        implied = away.T @ np.diag(model.spreads**2) @ away
        implied *= np.outer(model.scale, model.scale)
        scale = np.sqrt(np.diag(bought.covariance))
        difference = np.abs(implied - bought.covariance) / np.outer(scale, scale)
        if dropped:  # every pair but the one that is no longer joined
            difference[order[0], order[3]] = difference[order[3], order[0]] = 0
        assert difference.max() < 1e-6
        rows = model.sample(40_000, key=jax.random.key(seed)).numeric
        np.testing.assert_allclose(rows.mean(axis=0), bought.mean, atol=5 * scale.max() / 200)
        assert (np.abs(np.cov(rows.T) - implied) / np.outer(scale, scale)).max() < 0.05


def test_bounds_of_columns_hold_in_drawn_rows() -> None:
    data, _ = gaussian_data(0)
    domain = numbers(data.names, -1.0, 1.5)
    clipped = jaxcd.Dataset.from_array(data.numeric, domain=domain, clip=True)
    bought = jaxcd.release(clipped, jaxcd.SecondMoments(), budget=BUDGET, noise=simulated())
    rows = fit_linear_gaussian(bought, np.zeros((4, 4), dtype=bool)).sample(
        5000, key=jax.random.key(0)
    )
    assert rows.numeric.min() >= -1.0 and rows.numeric.max() <= 1.5 and rows.domain == domain


def test_a_release_is_bought_again_as_it_was(discrete: jaxcd.Dataset) -> None:
    for kind, budget in (
        (jaxcd.Histogram(), jaxcd.Budget(1.0)),
        (jaxcd.Histogram(), BUDGET),
        (jaxcd.Marginals(), BUDGET),
    ):
        bought = jaxcd.release(discrete, kind, budget=budget, noise=simulated(1))
        fresh = release_again(bought, discrete, kind=bought.bought, noise=simulated(2))
        assert type(fresh) is type(bought) and fresh.cost.epsilon == bought.cost.epsilon
    other = jaxcd.Marginals(shares=(0.2, 0.4, 0.4))
    refused(OptionError, "kind", release_again, bought, discrete, kind=other, noise=simulated(2))
    data, _ = gaussian_data(0)
    moments = jaxcd.release(
        data,
        jaxcd.SecondMoments(shares=(0.3, 0.7), scale_share=0.2),
        budget=BUDGET,
        noise=simulated(1),
    )
    fresh = release_again(moments, data, kind=moments.bought, noise=simulated(2))
    assert [row["label"] for row in fresh.charges] == [row["label"] for row in moments.charges]
    np.testing.assert_allclose(
        [row["rho"] for row in fresh.charges], [row["rho"] for row in moments.charges], rtol=1e-6
    )
    units = {name: 1.0 for name in data.names}
    public = jaxcd.release(
        data, jaxcd.SecondMoments(centres=units, scales=units), budget=BUDGET, noise=simulated(1)
    )
    assert public.bought == jaxcd.SecondMoments(centres=units, scales=units)
    empty = np.zeros((4, 4), dtype=bool)
    assert public.redraw(empty)(jax.random.key(0)).n_samples == public.n_samples
    with pytest.raises(OptionError, match="centres"):  # a file of an earlier edition does not say
        dataclasses.replace(public, bought=None).redraw(empty)


def test_the_options_of_a_purchase_are_in_its_file(discrete: jaxcd.Dataset, tmp_path: Path) -> None:
    data, _ = gaussian_data(0)
    units = dict.fromkeys(data.names, 1.0)
    for rows, kind in (
        (discrete, jaxcd.Histogram(max_cells=300)),
        (discrete, jaxcd.Marginals(shares=(0.5, 0.2, 0.3), max_parents=2)),
        (data, jaxcd.SecondMoments(centres=units, scales=units, shares=(0.4, 0.6))),
        (data, jaxcd.Features(n_features=3)),
    ):
        bought = jaxcd.release(rows, kind, budget=BUDGET, noise=simulated(1))
        assert (
            jaxcd.Release.load(bought.save(tmp_path / "bought.npz")).bought == bought.bought == kind
        )


# ---- confidence in the graphs of releases


def test_shares_add_up_and_repeat(discrete: jaxcd.Dataset) -> None:
    bought = jaxcd.release(
        discrete, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(3)
    )
    run = jaxcd.search(bought)
    first = edge_confidence(bought, run, n_draws=4, seed=7, calibrated=False)
    again = edge_confidence(bought, n_draws=4, seed=7, calibrated=False)  # searches by itself
    assert first.directed is not None and first.undirected is not None
    assert again.directed is not None
    np.testing.assert_array_equal(first.adjacency, again.adjacency)
    np.testing.assert_array_equal(first.directed, again.directed)
    np.testing.assert_array_equal(
        first.adjacency, first.directed + first.directed.T + first.undirected
    )
    np.testing.assert_allclose(first.adjacency * 4, np.rint(first.adjacency * 4))
    with_it = run.with_confidence(first.reordered(run.graph.names[::-1]))
    assert with_it.confidence is not None and with_it.confidence.names == run.graph.names
    assert with_it.graph == run.graph and run.confidence is None
    for edge in run.graph.edges():
        sure = with_it.confidence.of(edge.a, edge.b).adjacent
        shown = next(
            line
            for line in str(with_it).split("Confidence")[1].splitlines()
            if line.strip().startswith(str(edge))
        )
        assert float(shown.removeprefix(f"  {edge}").split()[0]) == pytest.approx(sure, abs=0.005)
    assert "Confidence" not in str(run)


def test_draws_are_searched_as_the_run_was(discrete: jaxcd.Dataset) -> None:
    """A search that may give no node a parent finds nothing, in the draws as well; another function
    of a release is used as it is.
    """
    bought = jaxcd.release(discrete, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    run = search_histogram(bought, max_parents=1)
    assert run.graph.n_edges > 0
    bare = dataclasses.replace(run, again=search_histogram(bought, max_parents=0).again)
    assert not edge_confidence(bought, bare, n_draws=2).adjacency.any()
    calls = []

    def search(release: jaxcd.Release) -> DiscoveryResult:
        calls.append(release)
        return run

    always = edge_confidence(bought, run, n_draws=3, search=search)
    np.testing.assert_array_equal(always.adjacency, run.graph.adjacency)
    # rows are drawn anew
    assert len(calls) == 3 and len({release.values.tobytes() for release in calls}) == 3
    other = dataclasses.replace(run, again=None)
    refused(OptionError, "search=", edge_confidence, bought, other, n_draws=2)


def test_arguments_are_checked(discrete: jaxcd.Dataset) -> None:
    bought = jaxcd.release(discrete, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    for wrong in (
        {"n_draws": 0},
        {"n_draws": True},
        {"seed": -1},
        {"seed": 0.5},
        {"run": "graph"},
        {"seed": 2**63},
        {"calibrated": "no"},
    ):
        pytest.raises(OptionError, edge_confidence, bought, **wrong)
    pytest.raises(OptionError, edge_confidence, discrete)


def test_features_are_drawn_without_rows() -> None:
    """A strong chain of mixed columns comes back in every draw, what is not there in none; and rows
    cannot be had.
    """
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 20_000)
    x = np.array([0.0, 2.0, -1.5])[label] + rng.normal(size=20_000)
    columns = np.column_stack(
        [label, x, np.abs(x) + 0.5 * rng.normal(size=20_000), rng.normal(size=20_000)]
    )
    domain = jaxcd.Domain(
        {
            "label": jaxcd.Categorical((0, 1, 2)),
            "x": jaxcd.Numeric(),
            "y": jaxcd.Numeric(),
            "z": jaxcd.Numeric(),
        }
    )
    bought = jaxcd.release(
        jaxcd.Dataset.from_array(columns, domain=domain),
        jaxcd.Features(),
        budget=BUDGET,
        noise=simulated(),
    )
    run = jaxcd.search(bought)
    found = edge_confidence(bought, run, n_draws=8, calibrated=False)
    assert {frozenset((edge.a, edge.b)) for edge in run.graph.edges()} == {
        frozenset(("label", "x")),
        frozenset(("x", "y")),
    }
    assert found.of("label", "x").adjacent == found.of("x", "y").adjacent == 1
    assert max(found.of("z", other).adjacent for other in ("label", "x", "y")) <= 0.25
    again = edge_confidence(bought, n_draws=8, calibrated=False)
    assert np.array_equal(again.adjacency, found.adjacency) and np.array_equal(
        again.directed, found.directed
    )


def test_every_search_on_a_release_can_be_repeated(discrete: jaxcd.Dataset) -> None:
    bought = jaxcd.release(
        discrete, jaxcd.Histogram(), budget=jaxcd.Budget(4.0), noise=simulated(3)
    )
    chi_square = {
        "test": jaxcd.ChiSquare(),
        "decider": jaxcd.Threshold(0.01),
        "key": None,
        "max_level": 1,
    }
    runs = [
        jaxcd.ges(bought),
        jaxcd.exact_search(bought, score=jaxcd.BDeu()),
        jaxcd.mmhc(bought),
        jaxcd.pc(bought, **chi_square),
        jaxcd.order_mcmc(bought, key=jax.random.key(0), n_steps=50, burn_in=10),
    ]
    for run in runs:
        assert run.again is not None and run.again(bought).graph == run.graph
        assert edge_confidence(bought, run, n_draws=2).n_draws == 2
        assert pickle.loads(pickle.dumps(run)).graph == run.graph


@pytest.mark.slow
def test_probable_edges_are_more_often_true() -> None:
    """Over many models and noises, edges that return in every draw are in the truth more often than
    edges that do not.
    """
    sure, unsure = [], []
    for seed in range(48):
        data, truth = gaussian_data(seed, n_variables=5, n_samples=500)
        bought = jaxcd.release(
            data, jaxcd.SecondMoments(), budget=jaxcd.Budget(2.0, 1e-6), noise=simulated(seed)
        )
        run = search_second_moments(bought, penalty=1.0)
        found = edge_confidence(bought, run, n_draws=6, seed=seed, calibrated=False)
        for edge in run.graph.edges():
            (sure if found.of(edge.a, edge.b).adjacent == 1 else unsure).append(
                truth.adjacent(edge.a, edge.b)
            )
    assert len(sure) > 50 and len(unsure) > 50
    assert np.mean(sure) > np.mean(unsure) + 0.03


# ---- confidence in private decisions


def result(graph: MixedGraph, rows: list[dict[str, object]]) -> DiscoveryResult:
    cost = jaxcd.privacy.PrivacyCost(1.0, 0.0, jaxcd.privacy.Relation.REPLACE_ONE, True, "by hand")
    return DiscoveryResult(graph, {}, cost, cost, False, {"released_margins": tuple(rows)})


def test_decisions_have_the_normal_probabilities() -> None:
    graph = MixedGraph.from_edges(["a", "b", "c"], ["a --- b"])
    rows: list[dict[str, object]] = [
        {"pair": ("a", "b"), "level": 0, "margin": 9.0, "threshold": 0.0, "sigma": 2.0},
        {"pair": ("b", "c"), "level": 0, "margin": 1.0, "threshold": 0.0, "sigma": 0.1},
        {"pair": ("a", "b"), "level": 1, "margin": 3.0, "threshold": 1.0, "sigma": 2.0},
        {"pair": ("b", "c"), "level": 1, "margin": -1.0, "threshold": 1.0, "sigma": 4.0},
    ]
    found = decision_confidence(result(graph, rows))
    assert found.directed is None and found.n_draws == 0
    assert found.of("a", "b").adjacent == pytest.approx(stats.norm.cdf(1.0))  # the least of its two
    # the one that removed it
    assert found.of("c", "b").adjacent == pytest.approx(stats.norm.cdf(-0.5))
    assert found.of("a", "c") == PairConfidence("a", "c", 0.0)
    with pytest.raises(OptionError, match="released margins"):
        decision_confidence(dataclasses.replace(result(graph, []), info={}))


def test_the_levelwise_run_keeps_what_it_released() -> None:
    """Every decision about a pair follows from its row, and only noisy numbers are kept."""
    data = sampled("asia", 20_000)
    session = Session(Door(data, BUDGET), CovarianceNorm(), alpha=0.05)
    runs = []
    for seed in (0, 1):
        run = LevelwiseGaussian().start(session, Accountant(Ledger(BUDGET), simulated(seed)))
        skeleton = search_skeleton(
            run,
            8,
            admissible=lambda x, y, s: True,
            max_level=2,
            stable=True,
            report=lambda *_: None,
        )
        rows = run.released_margins  # type: ignore[attr-defined]
        last = {row["pair"]: row for row in rows}
        assert len(last) == 28 and {row["level"] for row in rows} >= {0, 1}
        for (a, b), row in last.items():
            i, j = session.names.index(a), session.names.index(b)
            assert (row["margin"] > row["threshold"]) == bool(skeleton.adjacency[i, j])
            assert row["sigma"] > 0
        runs.append(rows)
    shared = {(row["pair"], row["level"]): row["margin"] for row in runs[0]}
    assert all(shared.get((row["pair"], row["level"])) != row["margin"] for row in runs[1])


def test_the_deviation_of_a_norm_is_that_of_repeated_releases() -> None:
    data = sampled("survey", 5000)
    session = Session(Door(data, BUDGET), CovarianceNorm(), alpha=0.05)
    names = session.names
    x, y = sorted((names.index("E"), names.index("R")))
    norms, deviations = [], []
    for seed in range(200):
        accountant = Accountant(Ledger(jaxcd.Budget(1e6, 1e-6)), simulated(seed))
        moments = release_contrast_moments(
            session, accountant, rho=0.5, mean_weight=0.3, label="moments"
        )
        norms.append(np.linalg.norm(moments.covariance(x, y)))
        deviations.append(norm_deviation(moments, x, y))
    assert np.mean(norms) > 5 * np.std(norms)  # far from zero, where a norm is nearly linear
    # The standard error of a standard deviation of 200 is 5%.
    assert np.std(norms) == pytest.approx(np.mean(deviations), rel=0.2)


def test_the_graph_is_read_once_not_once_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its matrix has p^2 entries, and there are as many margins: 1,000 columns took minutes."""
    data = jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(0))
    run = jaxcd.pc(
        data,
        test=CovarianceNorm(),
        decider=LevelwiseGaussian(),
        budget=jaxcd.Budget(1.0, 1e-6),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(1)),
    )
    reads = []
    whole = MixedGraph.adjacency.fget
    assert whole is not None

    def counted(graph: MixedGraph) -> np.ndarray:
        reads.append(graph)
        return whole(graph)

    monkeypatch.setattr(MixedGraph, "adjacency", property(counted))
    decision_confidence(run)
    assert len(run.info["released_margins"]) >= 28 and len(reads) == 1


def test_a_graph_of_tests_that_no_dag_fits_is_redrawn_from_the_best_one():
    """Four columns in a circle without arrows: every DAG of it has another v-structure."""
    released = jaxcd.release(
        NETWORK.sample(4_000, key=jax.random.key(0)),
        jaxcd.Histogram(),
        budget=jaxcd.Budget(1.0),
        noise=simulated(),
    )
    run = jaxcd.pc(released, test=jaxcd.ChiSquare(), **PLAIN)
    a, b, c, d, _ = released.names
    circle = [f"{x} --- {y}" for x, y in ((a, b), (b, c), (c, d), (a, d))]
    graph = MixedGraph.from_edges(released.names, circle)
    found = edge_confidence(released, dataclasses.replace(run, graph=graph), n_draws=2)
    assert 0 <= found.of(a, b).adjacent <= 1
