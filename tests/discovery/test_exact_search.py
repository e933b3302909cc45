"""The exact search against all DAGs."""

from __future__ import annotations

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.data import networks
from jaxcd.discovery.released import search_histogram
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.errors import OptionError
from jaxcd.graphs import dag_to_cpdag
from jaxcd.privacy import Budget
from jaxcd.releases import Histogram, MeasurementErrorScore
from jaxcd.scores import BICScore, LocalScore
from tests.brute_force import DrawnScore, all_dags
from tests.helpers import refused

FOUR = all_dags(4)


def test_there_are_543_dags_on_four_nodes():
    assert len(FOUR) == 543


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_best_of_all_dags(seed: int):
    score = DrawnScore(4, seed=seed)
    totals = [sum(score.local(v, tuple(np.flatnonzero(g[:, v]))) for v in range(4)) for g in FOUR]
    assert np.array_equal(exact_search(score), FOUR[int(np.argmax(totals))])


@pytest.mark.parametrize("seed", range(4))
def test_limits_on_parents_are_kept(seed: int):
    among = {0: (1, 2), 1: (0, 3), 2: (), 3: (0, 1, 2)}
    score = DrawnScore(4, seed=seed, max_parents=2, among=among)
    allowed = [
        g
        for g in FOUR
        if all(
            set(np.flatnonzero(g[:, v])) <= set(among[v]) and g[:, v].sum() <= 2 for v in range(4)
        )
    ]
    best = allowed[int(np.argmax(score.totals(np.array(allowed))))]
    assert np.array_equal(exact_search(score), best)


def test_it_is_the_best_of_all_dags_on_three_and_on_one():
    assert exact_search(DrawnScore(1, seed=0)).tolist() == [[False]]
    three = all_dags(3)
    assert len(three) == 25
    for seed in range(10):
        score = DrawnScore(3, seed=seed)
        assert score.total(exact_search(score)) == pytest.approx(
            score.totals(three).max(), rel=1e-14
        )


def test_bic_on_many_records_finds_the_network():
    network = networks.load("cancer")
    data = network.sample(100_000, key=jax.random.key(0))
    found = nx.relabel_nodes(
        nx.from_numpy_array(exact_search(BICScore.of_data(data)), create_using=nx.DiGraph),
        dict(enumerate(data.names)),
    )
    assert dag_to_cpdag(found) == network.cpdag()


def test_refusals():
    refused(OptionError, "30 variables.*ordering_search", exact_search, _Wide())
    data = networks.load("cancer").sample(100, key=jax.random.key(0))
    release = Histogram().release(data, budget=Budget(1.0))
    refused(OptionError, "no sum over nodes", exact_search, MeasurementErrorScore(release))
    refused(OptionError, "ReleasedHistogram", search_histogram, data)


class _Wide(LocalScore):
    names = tuple(f"v{i}" for i in range(30))  # type: ignore[assignment]
    max_parents = 1  # type: ignore[assignment]

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        raise AssertionError("refused before anything is scored")


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("of", ["all", "one node", "families"])
def test_scores_that_are_no_numbers_end(value: float, of: str) -> None:
    """A search of what was paid for must end, whatever the numbers are."""

    class Odd(LocalScore):
        names, max_parents, most_exact = ("a", "b", "c"), 2, 22

        def local(self, node: int, parents: tuple[int, ...]) -> float:
            odd = {"all": True, "one node": node == 1, "families": bool(parents)}[of]
            return value if odd else -1.0 - len(parents)

    adjacency = exact_search(Odd())
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(adjacency, create_using=nx.DiGraph))
    if of == "families":
        assert not adjacency.any()


def test_columns_of_a_tiny_unit_are_searched() -> None:
    """Squares of 1e-300 are 0; correlations have no unit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=5_000)
    y = (x + rng.normal(size=5_000)) / 8
    graphs = []
    for unit in (1.0, 1e-300):
        domain = jaxcd.Domain({"x": jaxcd.Numeric(-4, 4), "y": jaxcd.Numeric(-unit, unit)})
        data = jaxcd.Dataset.from_array(np.column_stack([x, y * unit]), domain=domain)
        bought = jaxcd.release(
            data,
            jaxcd.SecondMoments(),
            budget=jaxcd.Budget(2.0, 1e-6),
            noise=jaxcd.SimulatedNoise(jax.random.key(0)),
        )
        graphs.append(jaxcd.search(bought).graph)
    assert graphs[0] == graphs[1] and graphs[0].n_edges == 1
