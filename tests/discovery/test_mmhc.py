"""Max-min hill climbing: parents and children from a d-separation oracle, hills against the exact
search, and the whole.
"""

from __future__ import annotations

from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.decisions.associations import associations
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.discovery.score.ges import FamilyCache
from jaxcd.discovery.score.ges_operators import bits
from jaxcd.discovery.score.mmhc import climb_hills, max_min_parents_children, mmhc
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.graphs import dag_to_cpdag
from jaxcd.queries import Door, Session
from jaxcd.scores import BIC, BICScore
from tests.brute_force import DrawnScore
from tests.helpers import refused, sampled, simulated

NONE = jaxcd.NO_PRIVACY


@pytest.mark.parametrize("name", ["cancer", "earthquake", "asia", "survey"])
def test_with_an_oracle_parents_and_children_are_the_skeleton(name: str):
    dag = jaxcd.networks.load(name).dag
    session = Session(Door(None, NONE), jaxcd.Oracle(dag), alpha=0.05)
    found = max_min_parents_children(session)
    adjacency = nx.to_numpy_array(dag, nodelist=list(session.names)) > 0
    assert np.array_equal(found, adjacency | adjacency.T)


def test_a_limit_on_conditioning_keeps_more_pairs():
    """x1 and x4 of a square are separated by the other two together only."""
    dag = nx.DiGraph([("x1", "x2"), ("x1", "x3"), ("x2", "x4"), ("x3", "x4")])
    session = Session(Door(None, NONE), jaxcd.Oracle(dag), alpha=0.05)
    assert max_min_parents_children(session).sum() == 8
    limited = max_min_parents_children(session, max_conditioning=1)
    assert limited[list(session.names).index("x1"), list(session.names).index("x4")]


def as_graph(parents: tuple[int, ...]) -> np.ndarray:
    graph = np.zeros((len(parents), len(parents)), dtype=bool)
    for v, mask in enumerate(parents):
        graph[bits(mask), v] = True
    return graph


def test_hills_are_climbed_to_the_top_of_most_small_problems():
    joinable = ~np.eye(4, dtype=bool)
    hits = 0
    for seed in range(20):
        score = DrawnScore(4, seed=seed)
        parents, total = climb_hills(FamilyCache(score), joinable, most_parents=[3] * len(joinable))
        graph = as_graph(parents)
        assert nx.is_directed_acyclic_graph(nx.from_numpy_array(graph, create_using=nx.DiGraph))
        assert score.total(graph) == pytest.approx(total, abs=1e-12)
        best = score.total(exact_search(score))
        assert total <= best + 1e-12
        hits += total > best - 1e-12
    assert hits >= 14


@pytest.mark.parametrize("seed", range(5))
def test_hills_end_where_no_arc_gains_and_limits_are_kept(seed: int):
    rng = np.random.default_rng(seed)
    joinable = np.triu(rng.random((5, 5)) < 0.6, k=1)
    joinable |= joinable.T
    score = DrawnScore(5, seed=seed)
    parents, total = climb_hills(
        FamilyCache(score), joinable, most_parents=[2] * len(joinable), patience=0
    )
    graph = as_graph(parents)
    assert not (graph & ~joinable).any() and graph.sum(axis=0).max() <= 2
    for x, y in np.argwhere(joinable):
        for turned in (False, True):
            other = graph.copy()
            other[x, y] = not graph[x, y]
            other[y, x] = turned and graph[x, y]
            dag = nx.from_numpy_array(other, create_using=nx.DiGraph)
            if other.sum(axis=0).max() <= 2 and nx.is_directed_acyclic_graph(dag):
                assert score.total(other) <= total + 1e-12


@pytest.mark.slow
def test_a_network_is_found_from_many_rows():
    network = jaxcd.networks.load("cancer")
    data = network.sample(200_000, key=jax.random.key(0))
    for run in (mmhc(data, budget=NONE), mmhc(data, score=BIC(), budget=NONE)):
        assert run.graph == network.cpdag()
        assert run.info["n_candidate_edges"] == 4
    score = BICScore.of_data(data)
    assert run.info["score"] == pytest.approx(score.total(exact_search(score)), abs=1e-7)


def test_numeric_columns():
    dag = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")])
    data = jaxcd.data.structural.linear_gaussian_sem(dag, key=jax.random.key(0)).sample(
        20_000, key=jax.random.key(1)
    )
    run = mmhc(data, score=BIC(), alpha=0.001, budget=NONE)
    assert run.graph == dag_to_cpdag(dag).reordered(run.graph.names)


def test_a_release_is_searched_at_its_own_cost():
    network = jaxcd.networks.load("cancer")
    data = network.sample(100_000, key=jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(2.0), noise=simulated(1))
    run = mmhc(bought)
    assert run.cost == bought.cost and run.spent == bought.spent
    assert jaxcd.metrics.skeleton_f1(run.graph, network.cpdag()) >= 0.75


def test_the_score_is_one_that_the_data_answer():
    data = sampled("cancer", 5_000)
    budget = jaxcd.Budget(2.0, 1e-6)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=budget, noise=simulated(1))
    run = mmhc(bought)
    assert (
        run.info["score_function"] == repr(BIC()) and run.graph == mmhc(bought, score=BIC()).graph
    )
    refused(OptionError, "use BIC", mmhc, bought, score=jaxcd.BDeu())
    numbers = jaxcd.Dataset.from_array(np.random.default_rng(0).normal(size=(50, 3)))
    assert mmhc(numbers, budget=NONE).info["score_function"] == repr(BIC())
    assert mmhc(data, budget=NONE).info["score_function"] == repr(jaxcd.BDeu())


@pytest.mark.slow
def test_the_skeleton_of_alarm(data_folder: Path):
    network = jaxcd.networks.read_bif(data_folder / "networks" / "alarm.bif")
    run = mmhc(network.sample(10_000, key=jax.random.key(0)), budget=NONE)
    assert jaxcd.metrics.skeleton_f1(run.graph, network.cpdag()) >= 0.9


def test_refusals():
    data = sampled("cancer", 100)
    refused(PrivacyError, "buy a release", mmhc, data, budget=jaxcd.Budget(1.0))
    with pytest.raises(PrivacyError, match="released by mechanisms only"):
        associations(Session(Door(data, jaxcd.Budget(1.0)), jaxcd.CovarianceNorm(), alpha=0.05), [])
    refused(OptionError, "alpha = 2", mmhc, data, alpha=2, budget=NONE)
    refused(OptionError, "test = 'g'", mmhc, data, test="g", budget=NONE)
    refused(OptionError, "max_conditioning = -1", mmhc, data, max_conditioning=-1, budget=NONE)
    refused(OptionError, "patience = None", mmhc, data, patience=None, budget=NONE)
    refused(OptionError, "patience = -1", mmhc, data, patience=-1, budget=NONE)
    numbers = jaxcd.Dataset.from_array(np.random.default_rng(0).normal(size=(50, 3)))
    refused(DomainError, "use BIC", mmhc, numbers, score=jaxcd.BDeu(), budget=NONE)
