"""Possible ancestors and Possible-D-SEP against searches over all simple paths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import (
    Mark,
    MixedGraph,
    MSeparation,
    dag_to_mag,
    possible_ancestors,
    possible_d_sep,
    possible_descendants,
    random_dag,
)
from tests.helpers import SEEDS, refused


def random_marks(n: int, rng: np.random.Generator) -> MixedGraph:
    """A random skeleton with three marks of random frequency."""
    density, weights = rng.uniform(0.2, 0.9), rng.dirichlet([0.7, 0.7, 0.7])
    present = np.triu(rng.random((n, n)) < density, k=1)
    marks = np.where(present | present.T, rng.choice([1, 2, 3], size=(n, n), p=weights), 0)
    return MixedGraph(tuple(f"v{i}" for i in range(n)), marks)


def simple_paths(graph: MixedGraph, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield path
    for v in np.flatnonzero(graph.adjacency[path[-1]]).tolist():
        if v not in path:
            yield from simple_paths(graph, (*path, v))


def passable(graph: MixedGraph) -> set[tuple[int, int, int]]:
    """The triples (u, v, w) on a path of which v is a collider or in a triangle."""
    arrow, adjacency = graph.marks == Mark.ARROW, graph.adjacency
    return {
        (u, v, w)
        for u, v, w in itertools.permutations(range(graph.n_nodes), 3)
        if adjacency[u, v]
        and adjacency[v, w]
        and ((arrow[u, v] and arrow[w, v]) or adjacency[u, w])
    }


def by_paths(graph: MixedGraph, x: int, *, longest: int = 100) -> set[int]:
    """Possible-D-SEP by its definition; the beginning of such a path is one itself."""
    triples = passable(graph)
    found = set()

    def extend(path: tuple[int, ...]) -> None:
        found.add(path[-1])
        if len(path) <= longest:
            for w in range(graph.n_nodes):
                if w not in path and (*path[-2:], w) in triples:
                    extend((*path, w))

    for v in np.flatnonzero(graph.adjacency[x]).tolist():
        extend((x, v))
    return found


def by_walks(graph: MixedGraph, x: int, longest: int) -> set[int]:
    """The ends of all walks of at most ``longest`` edges."""
    triples = passable(graph)
    last = {(x, v) for v in np.flatnonzero(graph.adjacency[x]).tolist()}
    ends = {v for _, v in last}
    for _ in range(longest - 1):
        last = {(v, w) for u, v, w in triples if (u, v) in last}
        ends |= {w for _, w in last}
    return ends - {x}


@settings(max_examples=60)
@given(SEEDS)
def test_possible_ancestors_and_descendants_agree_with_the_definition(seed: int) -> None:
    graph = random_marks(6, np.random.default_rng(seed))
    ends = set()
    for start in range(6):
        for path in simple_paths(graph, (start,)):
            steps = itertools.pairwise(path)
            if all(
                graph.marks[v, u] != Mark.ARROW and graph.marks[u, v] != Mark.TAIL for u, v in steps
            ):
                ends.add((start, path[-1]))
    for v in range(6):
        assert possible_descendants(graph, f"v{v}") == tuple(
            f"v{w}" for w in range(6) if (v, w) in ends
        )
        assert possible_ancestors(graph, f"v{v}") == tuple(
            f"v{w}" for w in range(6) if (w, v) in ends
        )


@settings(max_examples=60)
@given(SEEDS)
def test_possible_ancestors_are_ancestors_in_a_mag_and_more_with_circles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mag = dag_to_mag(random_dag(8, expected_degree=3, seed=rng), latent=["x1"], selected=["x2"])
    directed = mag.directed | np.eye(6, dtype=bool)
    ancestors = np.linalg.matrix_power(directed.astype(int), 6) > 0
    circles = MixedGraph(
        mag.names, np.where(mag.adjacency & (rng.random((6, 6)) < 0.4), int(Mark.CIRCLE), mag.marks)
    )
    for i, name in enumerate(mag.names):
        exact = {mag.names[j] for j in np.flatnonzero(ancestors[:, i])}
        assert set(possible_ancestors(mag, name)) == exact
        assert set(possible_ancestors(circles, name)) >= exact


@settings(max_examples=60)
@given(SEEDS)
def test_possible_d_sep_has_all_that_paths_reach_and_is_what_walks_reach(seed: int) -> None:
    graph = random_marks(6, np.random.default_rng(seed))
    for x in range(6):
        found = possible_d_sep(graph, x)
        # a shortest walk passes each ordered pair once
        assert found == tuple(sorted(by_walks(graph, x, 36)))
        assert set(found) >= by_paths(graph, x)


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 4))
def test_possible_d_sep_within_a_length(seed: int, longest: int) -> None:
    graph = random_marks(6, np.random.default_rng(seed))
    for x in range(6):
        found = set(possible_d_sep(graph, x, max_path_length=longest))
        assert found == by_walks(graph, x, longest)
        assert found >= by_paths(graph, x, longest=longest)


def test_walks_and_paths_agree_on_almost_all_graphs() -> None:
    rng = np.random.default_rng(0)
    graphs = [random_marks(5, rng) for _ in range(1000)]
    larger = sum(set(possible_d_sep(graph, 0)) != by_paths(graph, 0) for graph in graphs)
    assert larger <= 20


def test_the_graph_in_which_a_walk_reaches_more_than_every_path() -> None:
    names = ["x", "a", "b", "c", "v"]
    graph = MixedGraph.from_edges(
        names, ["x o-o a", "x o-o b", "a o-o b", "b o-o c", "c o-> a", "v o-> a"]
    )
    assert by_paths(graph, 0) == {1, 2, 3}
    assert possible_d_sep(graph, 0) == (1, 2, 3, 4)


@settings(max_examples=40)
@given(SEEDS)
def test_possible_d_sep_does_not_depend_on_the_order_of_the_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_marks(9, rng)
    order = [int(v) for v in rng.permutation(9)]
    permuted = graph.permuted(order)
    for x in range(9):
        moved = possible_d_sep(permuted, order.index(x))
        assert possible_d_sep(graph, x) == tuple(sorted(order[v] for v in moved))
        assert set(possible_d_sep(graph, x)) >= set(np.flatnonzero(graph.adjacency[x]))


@settings(max_examples=40)
@given(SEEDS)
def test_possible_d_sep_contains_a_separating_set(seed: int) -> None:
    # The reason for the set: in a MAG every pair without an edge is separated by a part of one of
    # the two sets.
    mag = dag_to_mag(random_dag(9, expected_degree=3, seed=seed), latent=["x1", "x2", "x3"])
    separation = MSeparation(mag)
    for x, y in itertools.combinations(range(6), 2):
        if mag.adjacency[x, y]:
            continue
        pools = [set(possible_d_sep(mag, x)) - {y}, set(possible_d_sep(mag, y)) - {x}]
        parts = (
            z
            for pool in pools
            for k in range(len(pool) + 1)
            for z in itertools.combinations(sorted(pool), k)
        )
        assert any(separation.separated(x, y, z) for z in parts)


def test_what_may_be_passed_is_a_collider_or_in_a_triangle() -> None:
    names = ["a", "b", "c", "d", "e"]
    colliders = MixedGraph.from_edges(names, ["a o-> b", "b <-> c", "c <-> d", "d <-o e"])
    assert possible_d_sep(colliders, 0) == (1, 2, 3, 4)
    assert possible_d_sep(colliders, 0, max_path_length=2) == (1, 2)
    triangles = MixedGraph.from_edges(
        names, ["a o-o b", "b o-o c", "a o-o c", "c o-o d", "b o-o d", "d o-o e"]
    )
    assert possible_d_sep(triangles, 0) == (1, 2, 3)
    half = MixedGraph.from_edges(names, ["a o-> b", "b o-o c"])
    assert possible_d_sep(half, 0) == (1,)


def test_a_walk_does_not_turn_on_its_heel() -> None:
    names = ["x", "t", "u", "v", "w"]
    edges = ["x o-> t", "t <-o u", "t o-o v", "u <-> v", "w o-> u"]
    graph = MixedGraph.from_edges(names, edges)
    # not w by x, t, u, v, u, w
    assert possible_d_sep(graph, 0) == tuple(sorted(by_paths(graph, 0))) == (1, 2, 3)


def test_malformed_questions_are_refused() -> None:
    graph = MixedGraph.from_edges(["a", "b"], ["a o-> b"])
    for call in (
        lambda: possible_d_sep(graph, 2),
        lambda: possible_d_sep(graph, -1),
        lambda: possible_ancestors(graph, "z"),
        lambda: possible_descendants(graph, "z"),
    ):
        pytest.raises(GraphError, call)
    for length in (0, -1, 1.5, float("nan"), True):
        refused(OptionError, "max_path_length", possible_d_sep, graph, 0, max_path_length=length)
    assert possible_d_sep(graph, 0, max_path_length=1) == (1,)
