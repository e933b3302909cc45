"""Graphs near a found one without unshielded colliders."""

from __future__ import annotations

import itertools
import math

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.discovery.score.decomposable import decomposable, n_colliders, with_fewest_colliders
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.ordering_search import ordering_search

NAMES = tuple("abcdef")


def by_definition(adjacency: np.ndarray) -> int:
    d = len(adjacency)
    joined = adjacency | adjacency.T
    return sum(
        bool(adjacency[x, z] and adjacency[y, z] and not joined[x, y])
        for z in range(d)
        for x, y in itertools.combinations(range(d), 2)
    )


def random_dag(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    d = int(rng.integers(2, 7))
    order = rng.permutation(d)
    adjacency = np.zeros((d, d), dtype=bool)
    for i, j in itertools.combinations(range(d), 2):
        adjacency[order[i], order[j]] = rng.random() < 0.5
    return adjacency, order


def fewest_of_all_orders(adjacency: np.ndarray, fits: np.ndarray) -> int:
    """fits: bool (d, d), whether i -> j may be there."""
    joined, found = adjacency | adjacency.T, []
    for order in itertools.permutations(range(len(adjacency))):
        place = np.argsort(order)
        along = joined & (place[:, None] < place[None, :])
        if not (along & ~fits).any():
            found.append(by_definition(along))
    return min(found)


@pytest.mark.parametrize("seed", range(40))
def test_no_order_of_the_nodes_has_fewer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    adjacency, order = random_dag(rng)
    d = len(adjacency)
    names, cut = NAMES[:d], int(rng.integers(0, d))
    tiers = [[names[v] for v in order[:cut]], [names[v] for v in order[cut:]]]
    knowledge = jaxcd.Knowledge(tiers=tiers) if 0 < cut else None
    limits = Limits.of(knowledge, names)
    kept = adjacency & (rng.random((d, d)) < 0.2)
    found = with_fewest_colliders(adjacency, limits=limits, kept=kept, total=lambda graph: 0.0)
    assert n_colliders(found) == by_definition(found)
    assert ((found | found.T) == (adjacency | adjacency.T)).all()
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(found, create_using=nx.DiGraph))
    assert not (found & ~limits.allowed).any() and (found & kept == kept).all()
    assert n_colliders(found) == fewest_of_all_orders(adjacency, limits.allowed & ~kept.T)


def test_of_several_with_as_few_the_highest_score_is_taken() -> None:
    # a circle of four needs one collider, at any of its nodes
    circle = np.zeros((4, 4), dtype=bool)
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        circle[i, j] = True
    limits = Limits.of(None, NAMES[:4])
    for sink in range(4):
        found = with_fewest_colliders(
            np.array(circle),
            limits=limits,
            kept=np.zeros_like(circle),
            total=lambda graph, sink=sink: float(graph[:, sink].sum()),
        )
        assert n_colliders(found) == 1
        # the given one has as few already, and stays
        assert (found == circle).all()
    crossed = np.zeros((4, 4), dtype=bool)
    for i, j in ((0, 2), (0, 3), (1, 2), (1, 3)):
        crossed[i, j] = True
    for sink in range(4):
        found = with_fewest_colliders(
            np.array(crossed),
            limits=limits,
            kept=np.zeros_like(crossed),
            total=lambda graph, sink=sink: float(graph[:, sink].sum()),
        )
        assert n_colliders(found) == 1 and found[:, sink].sum() == 2


def test_a_graph_without_a_score_is_not_taken() -> None:
    collider = np.zeros((3, 3), dtype=bool)
    collider[0, 2] = collider[1, 2] = True
    found = with_fewest_colliders(
        collider,
        limits=Limits.of(None, NAMES[:3]),
        kept=np.zeros_like(collider),
        total=lambda graph: -math.inf,
    )
    assert (found == collider).all()


def _bought(n_samples: int, epsilon: float, seed: int = 4) -> jaxcd.Release:
    data = jaxcd.networks.load("asia").sample(n_samples, key=jax.random.key(3))
    return jaxcd.release(
        data,
        jaxcd.LogLinear(),
        budget=jaxcd.Budget(epsilon, 1e-6),
        noise=jaxcd.SimulatedNoise(jax.random.key(seed)),
    )


@pytest.mark.parametrize("seed", range(40))
def test_no_collider_is_left_and_no_graph_beside_is_better(seed: int) -> None:
    """Scores are sums over pairs that are joined, so that the best steps can be told."""
    rng = np.random.default_rng(seed)
    adjacency, _ = random_dag(rng)
    d = len(adjacency)
    worth = np.triu(rng.uniform(-1, 1, (d, d)), 1)
    worth += worth.T
    nothing = np.zeros((d, d), dtype=bool)
    found = decomposable(
        adjacency,
        limits=Limits.of(None, NAMES[:d]),
        kept=nothing,
        total=lambda graph: float((worth * graph).sum()),
    )
    assert by_definition(found) == 0
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(found, create_using=nx.DiGraph))
    if fewest_of_all_orders(adjacency, ~nothing) == 0:
        assert ((found | found.T) == (adjacency | adjacency.T)).all()


@pytest.mark.parametrize(("lost", "gained"), [(-2.0, -1.0), (-1.0, -2.0)])
def test_a_circle_loses_an_edge_or_gets_a_chord_by_the_score(lost: float, gained: float) -> None:
    circle = np.zeros((4, 4), dtype=bool)
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        circle[i, j] = True
    edges = circle | circle.T

    def total(graph: np.ndarray) -> float:
        joined = graph | graph.T
        return lost * (edges & ~joined).sum() / 2 + gained * (joined & ~edges).sum() / 2

    nothing = np.zeros((4, 4), dtype=bool)
    found = decomposable(circle, limits=Limits.of(None, NAMES[:4]), kept=nothing, total=total)
    assert by_definition(found) == 0
    assert found.sum() == (5 if gained > lost else 3)
    # what is required is not taken out, and what is forbidden is not joined
    knowledge = jaxcd.Knowledge(
        required=[("a", "b"), ("b", "d")],
        forbidden=[(x, y) for x, y in (("a", "d"), ("d", "a"), ("b", "c"), ("c", "b"))],
    )
    limits = Limits.of(knowledge, NAMES[:4])
    found = decomposable(circle, limits=limits, kept=nothing, total=total)
    assert by_definition(found) == 0 and found.sum() == 3
    assert found[0, 1] and found[1, 3] and not (found & ~limits.allowed).any()


def test_with_much_noise_a_search_leaves_directions_open() -> None:
    for seed in (3, 6):
        bought = _bought(1_000, 2.0, seed)
        found, best = jaxcd.search(bought), ordering_search(bought.default_score()).adjacency
        assert bought.opens_directions
        assert any("directions are left open" in words for words in found.info["warnings"])
        assert by_definition(best) > 0
        assert found.graph.n_edges and not found.graph.directed.any()
        assert nx.is_chordal(nx.Graph([(edge.a, edge.b) for edge in found.graph.edges()]))
        # what is known before is told as before
        later = ("bronc", "lung", "dysp", "xray")
        smoke_first = jaxcd.Knowledge(tiers=[["smoke"], later])
        known = jaxcd.search(bought, knowledge=smoke_first).graph
        assert all(
            known.has_edge("smoke", name, symbol="-->")
            for name in known.neighbors("smoke")
            if name in later
        )


@pytest.mark.parametrize(("epsilon", "opens"), [(2.0, True), (100.0, False)])
def test_a_pag_that_starts_from_open_directions_says_so(epsilon: float, opens: bool) -> None:
    words = jaxcd.search(_bought(1_000, epsilon, 2), algorithm="gfci").info.get("warnings", ())
    assert sum("directions are left open" in each for each in words) == opens


def test_effects_say_which_graphs_are_not_drawn() -> None:
    for epsilon, opens in ((2.0, True), (100.0, False)):
        bought = _bought(1_000, epsilon, 2)
        assert bought.opens_directions is opens
        found = jaxcd.effect(bought, treatment="smoke", outcome="bronc", n_draws=0)
        assert any("left directions open" in words for words in found.assumptions) is opens
    given = jaxcd.search(_bought(1_000, 2.0, 2)).graph
    found = jaxcd.effect(_bought(1_000, 2.0, 2), treatment="smoke", outcome="bronc", graph=given)
    assert not any("left directions open" in words for words in found.assumptions)


@pytest.mark.parametrize(("n_samples", "epsilon"), [(10_000, 10.0), (1_000, 100.0)])
def test_with_little_noise_it_does_not(n_samples: int, epsilon: float) -> None:
    found = jaxcd.search(_bought(n_samples, epsilon))
    assert found.graph.directed.any()
    assert not any("directions" in words for words in found.info.get("warnings", ()))


def test_without_noise_it_does_not() -> None:
    data = jaxcd.networks.load("asia").sample(500, key=jax.random.key(3))
    bought = jaxcd.release(data, jaxcd.LogLinear(), budget=jaxcd.NO_PRIVACY)
    assert not bought.opens_directions


def test_where_missing_cells_are_left_out_fewer_rows_count() -> None:
    rng = np.random.default_rng(1)
    codes = np.asarray(jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(3)).codes)
    cells = np.where(rng.random(codes.shape) < 0.4, "", codes.astype(str))
    levels = jaxcd.Categorical(("0", "1"), missing=("",))
    data = jaxcd.Dataset.from_array(
        cells, domain=jaxcd.Domain({f"x{j}": levels for j in range(codes.shape[1])})
    )
    bought = jaxcd.release(
        data,
        jaxcd.LogLinear(),
        budget=jaxcd.Budget(4.0, 1e-6),
        noise=jaxcd.SimulatedNoise(jax.random.key(4)),
    )
    level, ignored = bought.reading("level"), bought.reading("ignore")
    assert ignored.counted.n_samples < level.counted.n_samples
    assert ignored.opens_directions and not level.opens_directions
    assert not jaxcd.search(ignored).graph.directed.any()
