"""Equivalence classes against all DAGs on four nodes, and the search for the histogram's graph."""

from __future__ import annotations

import itertools
import math

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.data import networks
from jaxcd.discovery.released import score_graph, search_histogram
from jaxcd.discovery.score.equivalence_search import class_members, equivalence_search, neighbours
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph, dag_to_cpdag
from jaxcd.metrics import arc_f1
from jaxcd.privacy import NO_PRIVACY, Budget
from jaxcd.releases import Histogram, MeasurementErrorScore, Release
from jaxcd.scores import BICScore, GraphScore
from jaxcd.scores.equivalence import equivalence_keys
from tests.brute_force import all_dags
from tests.helpers import refused, simulated

FOUR = all_dags(4)
KEYS = equivalence_keys(FOUR)
CLASSES = {
    key: [g for g, other in zip(FOUR, KEYS, strict=True) if other == key]
    for key in dict.fromkeys(KEYS)
}


def as_bytes(graphs: np.ndarray | list[np.ndarray]) -> set[bytes]:
    return {np.ascontiguousarray(graph).tobytes() for graph in graphs}


def test_keys_are_those_of_the_cpdags():
    cpdags = [dag_to_cpdag(nx.from_numpy_array(graph, create_using=nx.DiGraph)) for graph in FOUR]
    assert len(set(KEYS)) == len(set(cpdags)) == len(set(zip(KEYS, cpdags, strict=True))) == 185


def test_members_are_the_class():
    for graph, key in zip(FOUR[::7], KEYS[::7], strict=True):
        members = class_members(graph, max_members=100)
        assert as_bytes(members) == as_bytes(CLASSES[key]) and len(members) == len(CLASSES[key])
        assert np.array_equal(members[0], graph)
        few = class_members(graph, max_members=2)
        assert len(few) == min(2, len(members)) and as_bytes(few) <= as_bytes(members)


@pytest.mark.parametrize("max_parents", [3, 1])
def test_neighbours_are_all_classes_one_arc_away(max_parents: int):
    by_bytes = {
        graph.tobytes(): key
        for graph, key in zip(FOUR, KEYS, strict=True)
        if graph.sum(axis=0).max() <= max_parents
    }
    for graph, own in zip(FOUR[::23], KEYS[::23], strict=True):
        expected = set()
        for member in CLASSES[own]:
            for i, j in itertools.permutations(range(4), 2):
                other = member.copy()
                other[i, j], other[j, i] = not member[i, j], member[j, i] and member[i, j]
                expected.add(by_bytes.get(other.tobytes()))
        found = equivalence_keys(neighbours(graph, max_parents=max_parents, max_members=100))
        assert set(found) == expected - {None, own} and len(found) == len(set(found))


def test_exchanges_are_all_classes_one_parent_away():
    by_bytes = {graph.tobytes(): key for graph, key in zip(FOUR, KEYS, strict=True)}
    for graph, own in zip(FOUR[::23], KEYS[::23], strict=True):
        expected = set()
        for member in CLASSES[own]:
            for i, j, k in itertools.permutations(range(4), 3):
                if member[i, j] and not member[k, j] and not member[j, k]:
                    other = member.copy()
                    other[i, j], other[k, j] = False, True
                    expected.add(by_bytes.get(other.tobytes()))
        found = equivalence_keys(neighbours(graph, max_parents=3, max_members=100, exchanges=True))
        assert set(found) == expected - {None, own} and len(found) == len(set(found))


class Drawn(GraphScore):
    """Every equivalence class has its own random score."""

    names = ("a", "b", "c", "d")  # type: ignore[assignment]
    max_parents = 3  # type: ignore[assignment]

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.values = dict(zip(CLASSES, rng.normal(size=len(CLASSES)), strict=True))

    def totals(self, adjacencies: np.ndarray) -> np.ndarray:
        return np.array([self.values[key] for key in equivalence_keys(adjacencies)])


@pytest.mark.parametrize("seed", range(5))
def test_a_patient_search_finds_the_best_class(seed: int):
    score = Drawn(seed)
    found = equivalence_search(
        score, starts=np.zeros((1, 4, 4), dtype=bool), patience=200, max_members=100
    )
    assert found.score == max(score.values.values()) == score.total(found.adjacency)
    assert found.n_classes == 185


def test_the_result_is_never_worse_than_its_starts_nor_than_its_neighbours():
    score = Drawn(9)
    starts = FOUR[::100]
    found = equivalence_search(score, starts=starts, patience=0, n_climbs=2)
    assert found.score >= score.totals(starts).max()
    for exchanges in (False, True):
        around = neighbours(found.adjacency, max_parents=3, max_members=8, exchanges=exchanges)
        assert found.score >= score.totals(around).max()


def test_options_are_checked():
    start = np.zeros((1, 4, 4), dtype=bool)
    for options in ({"n_climbs": 0}, {"patience": -1}, {"max_members": 1.5}):
        refused(
            OptionError, next(iter(options)), equivalence_search, Drawn(0), starts=start, **options
        )
    refused(OptionError, "starts", equivalence_search, Drawn(0), starts=start[:0])


# The histogram's search
# --------------------------------------------------------------------------------------------------


def buy(name: str, *, epsilon: float, seed: int, n: int = 100_000):
    data = networks.load(name).sample(n, key=jax.random.key(seed))
    return Histogram().release(data, budget=Budget(epsilon), noise=simulated(seed))


@pytest.mark.parametrize(
    ("name", "epsilon"), [("cancer", 1.0), ("earthquake", 0.3), ("survey", 3.0), ("asia", 3.0)]
)
def test_it_finds_the_networks(name: str, epsilon: float):
    """At budgets where the class is seen in all of twenty other data sets."""
    release, network = buy(name, epsilon=epsilon, seed=0), networks.load(name)
    run = search_histogram(release)
    assert arc_f1(run.graph, network.cpdag()) == 1.0
    assert run.info["score"] == pytest.approx(
        score_graph(MeasurementErrorScore(release), network.dag), abs=1e-6
    )


def test_it_is_deterministic_and_costs_what_the_release_cost(tmp_path):
    release = buy("survey", epsilon=0.5, seed=4, n=20_000)
    first, second = (
        search_histogram(release),
        search_histogram(Release.load(release.save(tmp_path / "r"))),
    )
    assert first.graph == second.graph and first.info == second.info
    assert first.cost == release.cost and first.spent.epsilon == 0.5 and not first.exhausted
    assert [row["epsilon"] for row in first.info["ledger"]] == [0.5]
    assert first.info["n_graphs_scored"] > first.info["n_starts"] > 0


def test_secure_noise_gives_a_proved_result_that_can_be_saved(tmp_path):
    data = networks.load("cancer").sample(2000, key=jax.random.key(0))
    run = search_histogram(Histogram().release(data, budget=Budget(1.0)))
    assert run.cost.proven and run.cost.epsilon == run.spent.epsilon == 1.0
    assert (run.save(tmp_path / "run") / "privacy.json").is_file()


def test_without_privacy_it_maximises_bic():
    """Five columns of few records: the found graph is the best of all DAGs by exact BIC."""
    data = networks.load("cancer").sample(300, key=jax.random.key(3))
    run = search_histogram(Histogram().release(data, budget=NO_PRIVACY), max_parents=4)
    score = BICScore.of_data(data, max_parents=4)
    assert score_graph(score, run.graph) == pytest.approx(
        score.total(exact_search(score)), abs=1e-6
    )
    assert math.isinf(run.cost.epsilon) and run.info["ledger"] == ()


def test_scores_of_given_graphs():
    release = buy("cancer", epsilon=1.0, seed=1)
    score, network = MeasurementErrorScore(release), networks.load("cancer")
    value = score_graph(score, network.dag)
    assert value == score_graph(score, network.cpdag())
    assert value == score_graph(score, network.cpdag().reordered(sorted(network.names)))
    assert value > score_graph(score, MixedGraph.empty(network.names))
    refused(GraphError, "names", score_graph, score, networks.load("earthquake").dag)
    ring = [f"{a} --- {b}" for a, b in itertools.pairwise([*network.names, network.names[0]])]
    refused(GraphError, "no DAG", score_graph, score, MixedGraph.from_edges(network.names, ring))


def test_one_level_columns_do_no_harm():
    domain = jaxcd.Domain(
        [
            ("a", jaxcd.Categorical((0, 1))),
            ("one", jaxcd.Categorical((0,))),
            ("b", jaxcd.Categorical((0, 1))),
        ]
    )
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 3000)
    b = np.where(rng.random(3000) < 0.9, a, 1 - a)
    data = jaxcd.Dataset.from_codes(
        np.stack([a, np.zeros_like(a), b], axis=1).astype(np.int32), domain=domain
    )
    run = search_histogram(Histogram().release(data, budget=Budget(1.0), noise=simulated()))
    assert run.graph == MixedGraph.from_edges(data.names, ["a --- b"])
