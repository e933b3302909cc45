"""The ordering search against brute force and the exact search, and searches of released marginals
end to end.
"""

from __future__ import annotations

import itertools
import math

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.discovery.released import score_graph, score_subgraphs, search_marginals
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.discovery.score.ges import greedy_equivalence_search
from jaxcd.discovery.score.ordering_search import _BestFamilies, _insert, ordering_search
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, Budget
from jaxcd.releases import Histogram, Marginals, SetScore
from jaxcd.scores import BICScore
from tests.brute_force import DrawnScore
from tests.helpers import refused, simulated


def best_of_order(score: DrawnScore, order: tuple[int, ...]) -> float:
    return sum(
        max(
            score.local(v, family)
            for family in score.families(v)
            if set(family) <= set(order[:place])
        )
        for place, v in enumerate(order)
    )


@pytest.mark.parametrize("seed", range(3))
def test_gains_are_differences_of_totals(seed: int):
    score = DrawnScore(6, seed=seed, partners=3)
    families = _BestFamilies.of(score)
    orders = np.array([np.random.default_rng(seed + k).permutation(6) for k in range(4)])
    gains = families.gains(orders)
    for order, total, gain in zip(orders, families.totals(orders), gains, strict=True):
        assert total == pytest.approx(best_of_order(score, tuple(order)))
        for i, j in itertools.product(range(6), repeat=2):
            moved = order.tolist()
            moved.insert(j, moved.pop(i))
            changed = order.copy()
            _insert(changed, i, j)
            assert changed.tolist() == moved
            assert gain[i, j] == pytest.approx(best_of_order(score, tuple(moved)) - total, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_against_all_orders(seed: int):
    score = DrawnScore(5, seed=10 + seed)
    found = ordering_search(score, restarts=10, rounds=2)
    assert found.score == pytest.approx(
        max(best_of_order(score, order) for order in itertools.permutations(range(5)))
    )
    assert score.total(found.adjacency) == pytest.approx(found.score)
    assert best_of_order(score, found.order) == pytest.approx(found.score)


@pytest.mark.parametrize("seed", range(4))
def test_against_the_exact_search(seed: int):
    score = DrawnScore(9, seed=20 + seed, max_parents=2)
    found = ordering_search(score)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(found.adjacency.astype(int)))
    assert found.score == pytest.approx(score.total(exact_search(score)))
    assert 1 <= found.n_reached <= 40


def test_the_seed_decides_the_path_and_restarts_only_help():
    score = DrawnScore(12, seed=30, partners=5)
    once = [ordering_search(score, restarts=4, rounds=1, seed=1) for _ in range(2)]
    assert np.array_equal(once[0].adjacency, once[1].adjacency) and once[0].order == once[1].order
    assert ordering_search(score, restarts=4, rounds=5, seed=1).score >= once[0].score


def test_no_candidates_and_one_node():
    score = DrawnScore(3, seed=0, max_parents=0)
    assert not ordering_search(score).adjacency.any()
    assert ordering_search(DrawnScore(1, seed=0), restarts=1).adjacency.shape == (1, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"restarts": 0},
        {"rounds": 0},
        {"seed": -1},
        {"restarts": 1.5},
        {"starts": [np.ones((3, 3), dtype=bool)]},
        {"rounds": True},
        {"seed": math.nan},
    ],
)
def test_wrong_arguments(wrong: dict):
    refused(OptionError, next(iter(wrong)), ordering_search, DrawnScore(3, seed=0), **wrong)


def test_too_many_candidates():
    refused(OptionError, "16", ordering_search, DrawnScore(19, seed=0, max_parents=1))


@pytest.mark.parametrize("d", [9, 120])
def test_a_start_is_never_left_for_something_worse(d: int):
    """For few nodes and for many, whose nodes move one at a time: a random DAG to begin with, and
    what one climb from it and many reach.
    """
    score = DrawnScore(d, seed=40, max_parents=2, partners=5)
    rng = np.random.default_rng(0)
    order = rng.permutation(d)
    start = np.zeros((d, d), dtype=bool)
    for place, v in enumerate(order):
        before = [u for u in score.candidates(v) if u in order[:place]]
        start[before[:1], v] = True
    once = ordering_search(score, starts=[start], restarts=0, rounds=1)
    often = ordering_search(score, starts=[start], restarts=0)
    assert score.total(start) < once.score <= often.score
    assert score.total(once.adjacency) == pytest.approx(once.score)


@pytest.mark.slow
def test_a_search_of_many_columns_reaches_what_greedy_search_reaches():
    """A tree of 110 columns with exact tables: the true class has the highest BIC."""
    network = _tree(110)
    data = network.sample(3_000, key=jax.random.key(7))
    release = Marginals().release(data, budget=NO_PRIVACY)
    found = jaxcd.search(release)
    greedy = greedy_equivalence_search(release.default_score())
    assert found.info["score"] >= greedy.score - 1e-6
    assert jaxcd.metrics.skeleton_f1(found.graph, network.cpdag()) > 0.97


def _tree(d: int) -> jaxcd.data.BayesianNetwork:
    """Binary columns, each a noisy copy of one before it."""
    rng = np.random.default_rng(d)
    parents = {f"v{j}": (f"v{rng.integers(j)}",) if j else () for j in range(d)}
    copied = np.array([[0.8, 0.2], [0.2, 0.8]])
    return jaxcd.data.BayesianNetwork(
        "tree",
        jaxcd.Domain({name: jaxcd.Categorical(("a", "b")) for name in parents}),
        parents,
        {name: copied if above else np.array([0.5, 0.5]) for name, above in parents.items()},
    )


@pytest.fixture(scope="module")
def survey() -> tuple[jaxcd.data.BayesianNetwork, jaxcd.Dataset]:
    network = jaxcd.networks.load("survey")
    return network, network.sample(50_000, key=jax.random.key(5000))


def test_without_privacy_the_whole_is_bic_on_the_candidates(survey):
    network, data = survey
    release = Marginals().release(data, budget=NO_PRIVACY)
    found = search_marginals(release, max_parents=3)
    truth = jaxcd.metrics.skeleton_f1(found.graph, network.cpdag())
    assert truth == 1.0
    assert found.info["score"] == pytest.approx(
        BICScore.of_data(data, max_parents=3).total(
            exact_search(BICScore.of_data(data, max_parents=3))
        )
    )


def test_a_release_is_searched_at_its_price(survey):
    network, data = survey
    release = Marginals().release(data, budget=Budget(2.0, 1e-6), noise=simulated(1))
    found = search_marginals(release)
    assert found.cost == release.cost and found.spent == release.spent and not found.exhausted
    assert jaxcd.metrics.skeleton_f1(found.graph, network.cpdag()) > 0.6
    score = SetScore(release)
    assert score_graph(score, found.graph) == pytest.approx(found.info["score"])
    truth = score_graph(score, network.cpdag())
    assert truth <= found.info["score"] + 1e-6  # no search failure hidden as privacy loss
    assert truth <= score_subgraphs(score, network.dag) <= found.info["score"] + 1e-6
    assert search_marginals(release).graph == found.graph


def test_the_best_subgraph_of_a_dag():
    score = DrawnScore(4, seed=40)
    dag = nx.DiGraph([("v0", "v1"), ("v0", "v2"), ("v1", "v2"), ("v2", "v3"), ("v0", "v3")])
    adjacency = nx.to_numpy_array(dag, nodelist=score.names).astype(bool)
    arcs = np.argwhere(adjacency)
    best = -math.inf
    for chosen in itertools.product((False, True), repeat=len(arcs)):
        part = np.zeros((4, 4), dtype=bool)
        part[tuple(arcs[list(chosen)].T)] = True
        best = max(best, score.total(part))
    assert score_subgraphs(score, dag) == pytest.approx(best)


def test_another_release_is_refused(survey):
    histogram = Histogram().release(survey[1], budget=Budget(1.0))
    for call in (search_marginals, SetScore):
        refused(OptionError, "ReleasedMarginals", call, histogram)
