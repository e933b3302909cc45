"""GFCI: exact where score and tests are, on data and on releases, with knowledge and confidence."""

from __future__ import annotations

import itertools

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import jaxcd
from jaxcd.discovery import greedy_equivalence_search
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.errors import GraphError, OptionError, PrivacyError
from jaxcd.graphs import DSeparation, MixedGraph
from jaxcd.metrics import mark_f1
from jaxcd.scores import LocalScore
from tests.discovery import fci_cases, pag_reference
from tests.discovery.fci_cases import Case
from tests.discovery.test_fci_truth import assert_correct, random_cases
from tests.helpers import PLAIN, SEEDS, simulated

HIDDEN_SMOKE = ("asia", "tub", "lung", "bronc", "either", "xray", "dysp")


class Margins(LocalScore):
    """BIC of a linear Gaussian model's own covariance with 1e13 rows, hidden columns summed out and
    selected ones held fixed: no noise.
    """

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        nodes = list(case.dag)
        arcs = nx.to_numpy_array(case.dag, nodelist=nodes) > 0
        weights = arcs * rng.uniform(0.5, 1.5, arcs.shape) * rng.choice([-1, 1], arcs.shape)
        mixing = np.linalg.inv(np.eye(len(nodes)) - weights)
        whole = mixing.T @ np.diag(rng.uniform(0.5, 2, len(nodes))) @ mixing
        seen, held = (
            [nodes.index(name) for name in names] for names in (case.observed, case.selected)
        )
        cross = whole[np.ix_(seen, held)]
        inner = whole[np.ix_(held, held)]
        rest = whole[np.ix_(seen, seen)] - cross @ np.linalg.solve(inner, cross.T)
        scale = np.sqrt(np.diag(rest))
        self._covariance, self._names = rest / np.outer(scale, scale), case.observed

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def max_parents(self) -> int:
        return len(self._names) - 1

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        p, n = list(parents), 1e13
        cross = self._covariance[p, node]
        explained = cross @ np.linalg.solve(self._covariance[np.ix_(p, p)], cross) if p else 0.0
        variance = float(self._covariance[node, node] - explained)
        return -n / 2 * float(np.log(variance)) - np.log(n) / 2 * len(p)


def oracle_gfci(case: Case, start: MixedGraph) -> jaxcd.DiscoveryResult:
    oracle = jaxcd.Oracle(case.dag, latent=case.latent, selected=case.selected)
    return jaxcd.fci(None, test=oracle, start=start, **PLAIN)


# ---- exact


def check_small(cases: list[Case], rng: np.random.Generator) -> None:
    for place, case in enumerate(cases):
        score = Margins(case, rng)
        if place % 2:
            start = greedy_equivalence_search(score).graph
        else:
            start = MixedGraph.from_arcs(score.names, exact_search(score))
        found = oracle_gfci(case, start)
        assert_correct(case, found, limit=500)
        assert ((found.graph.marks > 0) <= (start.marks > 0)).all()


def test_every_class_of_mags_of_three_columns_and_some_of_four() -> None:
    classes = [*pag_reference.classes(3), *pag_reference.classes(4)[::5]]
    check_small([fci_cases.canonical(members[0]) for members in classes], np.random.default_rng(0))


def test_random_and_planted_graphs() -> None:
    check_small(random_cases(11, 24, observed=(4, 6)), np.random.default_rng(1))


@pytest.mark.slow
def test_every_class_of_mags_of_four_columns_and_larger_random_graphs() -> None:
    rng = np.random.default_rng(2)
    for end in (0, -1):
        check_small([fci_cases.canonical(every[end]) for every in pag_reference.classes(4)], rng)
    check_small(random_cases(12, 200, observed=(4, 8)), rng)


@settings(max_examples=25)
@given(SEEDS)
def test_the_sets_of_a_start_separate_in_every_member(seed: int) -> None:
    dag = jaxcd.graphs.random_dag(6, expected_degree=2.5, seed=seed)
    names = [str(node) for node in dag]
    cpdag = jaxcd.graphs.dag_to_cpdag(dag)
    separation = DSeparation(dag)
    sets = jaxcd.discovery.constraint.pag.anterior_sets(cpdag)
    apart = {pair for pair in itertools.combinations(range(6), 2) if not cpdag.adjacency[pair]}
    assert set(sets) == apart
    for (x, y), between in sets.items():
        assert separation.separated(x, y, list(between)), (names[x], names[y])


@settings(max_examples=10)
@given(SEEDS)
def test_the_order_of_the_columns_of_a_start_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = fci_cases.random_case(rng, n_observed=5, n_latent=2, n_selected=0)
    start = MixedGraph.from_arcs(case.observed, exact_search(Margins(case, rng)))
    moved = start.reordered(list(rng.permutation(start.names)))
    assert oracle_gfci(case, start).graph == oracle_gfci(case, moved).graph


@settings(max_examples=12)
@given(SEEDS)
def test_with_true_knowledge_it_is_what_fci_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = fci_cases.random_case(rng, n_observed=5, n_latent=2, n_selected=0)
    order = [node for node in nx.topological_sort(case.dag) if node in case.observed]
    arcs = [arc for arc in case.dag.edges if set(arc) <= set(case.observed)]
    known = jaxcd.Knowledge(tiers=[order[:2], order[2:]], required=arcs[:1])
    score = Margins(case, rng)
    oracle = jaxcd.Oracle(case.dag, latent=case.latent)
    wanted = jaxcd.fci(None, test=oracle, knowledge=known, **PLAIN).graph
    best = MixedGraph.from_arcs(score.names, exact_search(score, knowledge=known))
    for start in (best, greedy_equivalence_search(score, knowledge=known).graph):
        found = jaxcd.fci(None, test=oracle, knowledge=known, start=start, **PLAIN)
        assert found.graph == wanted


def test_edges_outside_triangles_stay() -> None:
    """A start's lone edge is kept though a set separates its ends; in a triangle it goes."""
    dag = nx.DiGraph([("a", "b"), ("b", "c")])
    lone = MixedGraph.from_edges(list("abc"), ["a --- c"])
    oracle = jaxcd.Oracle(dag)
    assert jaxcd.fci(None, test=oracle, start=lone, **PLAIN).graph.adjacent("a", "c")
    whole = MixedGraph.complete_undirected(list("abc"))
    assert not jaxcd.fci(None, test=oracle, start=whole, **PLAIN).graph.adjacent("a", "c")


def test_a_start_that_is_none_is_refused() -> None:
    oracle = jaxcd.Oracle(nx.DiGraph([("a", "b"), ("b", "c")]))
    square = MixedGraph.from_edges(list("abc"), ["a <-> b"])
    for start in (MixedGraph.empty(list("abd")), square):
        with pytest.raises(GraphError):
            jaxcd.fci(None, test=oracle, start=start, **PLAIN)


# ---- the door


@pytest.fixture(scope="module")
def hidden() -> jaxcd.Dataset:
    return jaxcd.networks.load("asia").sample(50_000, key=jax.random.key(0)).select(HIDDEN_SMOKE)


@pytest.fixture(scope="module")
def bought(hidden: jaxcd.Dataset) -> jaxcd.Release:
    return jaxcd.release(hidden, jaxcd.Histogram(), budget=jaxcd.Budget(2.0), noise=simulated(1))


def truth() -> MixedGraph:
    return jaxcd.discovery.dag_to_pag(jaxcd.networks.load("asia").dag, latent=("smoke",))


def test_on_data_and_on_a_release(hidden: jaxcd.Dataset, bought: jaxcd.Release) -> None:
    """Where FCI takes ``either`` away from its children, a function of its parents that it is."""
    plain = jaxcd.gfci(hidden, budget=jaxcd.NO_PRIVACY)
    run = jaxcd.gfci(bought)
    tested = jaxcd.search(bought, algorithm="fci")
    assert mark_f1(tested.graph, truth()) < 0.5 < 0.7 < mark_f1(run.graph, truth())
    assert mark_f1(plain.graph, truth()) > 0.7
    assert run.cost == bought.cost and plain.info["search"] == "ges"
    assert run.info["algorithm"] == "gfci" and run.info["search"] == "search_histogram"
    found = jaxcd.search(bought)
    assert run.info["start"] == tuple(map(str, found.graph.edges()))
    assert jaxcd.search(bought, algorithm=jaxcd.Algorithm.GFCI).graph == run.graph
    assert jaxcd.gfci(bought, score=jaxcd.BIC()).info["search"] == "ges"


def test_search_names_its_algorithms(bought: jaxcd.Release) -> None:
    assert jaxcd.search(bought, algorithm="release").graph == jaxcd.search(bought).graph
    assert jaxcd.search(bought, algorithm=jaxcd.Algorithm.PC).info["algorithm"] == "pc"
    for algorithm in ("tree", jaxcd.Algorithm.AUTO, 3):
        with pytest.raises(OptionError, match="searches no release"):
            jaxcd.search(bought, algorithm=algorithm)


def test_discover_buys_a_release_for_it(hidden: jaxcd.Dataset) -> None:
    run = jaxcd.discover(
        hidden,
        budget=jaxcd.Budget(2.0),
        algorithm=jaxcd.Algorithm.GFCI,
        noise=simulated(1),
        n_confidence_draws=2,
    )
    assert run.info["algorithm"] == "gfci" and run.confidence is not None
    with pytest.raises(OptionError, match="'gfci' has no such option"):
        jaxcd.discover(
            hidden, budget=jaxcd.Budget(1.0), algorithm=jaxcd.Algorithm.GFCI, max_level=1
        )


def test_confidence_of_the_edges_of_a_pag() -> None:
    data = jaxcd.networks.load("earthquake").sample(20_000, key=jax.random.key(0))
    calls = data.select(["Burglary", "Earthquake", "JohnCalls", "MaryCalls"])
    bought = jaxcd.release(calls, jaxcd.Histogram(), budget=jaxcd.Budget(4.0), noise=simulated(1))
    for algorithm in ("gfci", "fci"):
        run = jaxcd.search(bought, algorithm=algorithm)
        shares = jaxcd.edge_confidence(bought, run, n_draws=3)
        assert shares.of("JohnCalls", "MaryCalls").adjacent == 1.0
        again = jaxcd.edge_confidence(bought, run, n_draws=3)
        assert (again.directed == shares.directed).all()


def test_knowledge_is_kept(bought: jaxcd.Release) -> None:
    known = jaxcd.Knowledge(
        tiers=[["asia"], ["tub", "lung", "bronc"], ["either"], ["dysp", "xray"]],
        forbidden=[("lung", "bronc"), ("bronc", "lung")],
        required=[("lung", "either")],
    )
    graph = jaxcd.gfci(bought, knowledge=known).graph
    assert str(graph.edge("lung", "either")) == "lung --> either"
    assert str(graph.edge("lung", "bronc")) == "lung <-> bronc"  # no cause of each other: hidden
    heads = known.arrowheads(graph.names) & graph.adjacency
    assert (graph.marks[heads] == 2).all()


def test_what_is_refused(hidden: jaxcd.Dataset) -> None:
    with pytest.raises(PrivacyError, match="buy a release"):
        jaxcd.gfci(hidden, budget=jaxcd.Budget(1.0))
    with pytest.raises(OptionError, match="alpha"):
        jaxcd.gfci(hidden, budget=jaxcd.NO_PRIVACY, alpha=2)
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical(("a", "b")) for name in ("x", "set")}, interventions={"set": {}}
    )
    rows = jaxcd.Dataset.from_codes(np.zeros((9, 2), dtype=np.int32), domain=domain)
    with pytest.raises(OptionError, match="declares an intervention"):
        jaxcd.gfci(rows, budget=jaxcd.NO_PRIVACY)
