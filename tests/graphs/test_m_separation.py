"""m-separation against the definition by paths, and against d-separation where both apply."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from jaxcd.errors import GraphError
from jaxcd.graphs import DSeparation, Mark, MixedGraph, MSeparation, m_separated, random_dag
from tests.brute_force import separated_by_paths
from tests.helpers import SEEDS, refused


def random_mixed_graph(n: int, rng: np.random.Generator) -> MixedGraph:
    """Undirected edges among the first nodes of a random order, directed and bidirected edges after
    them.
    """
    order = rng.permutation(n)
    n_undirected = rng.integers(0, n)
    density, bidirected = rng.uniform(0.2, 0.9), rng.uniform(0, 0.8)
    marks = np.zeros((n, n), dtype=np.int8)
    for a, b in itertools.combinations(range(n), 2):
        if rng.random() >= density:
            continue
        i, j = order[a], order[b]
        if b < n_undirected:
            marks[i, j] = marks[j, i] = Mark.TAIL
        else:
            both = a >= n_undirected and rng.random() < bidirected
            marks[i, j], marks[j, i] = Mark.ARROW, Mark.ARROW if both else Mark.TAIL
    return MixedGraph(tuple(f"v{i}" for i in range(n)), marks)


@settings(max_examples=50)
@given(SEEDS)
def test_all_questions_on_small_mixed_graphs_agree_with_the_definition(seed: int) -> None:
    graph = random_mixed_graph(5, np.random.default_rng(seed))
    separation = MSeparation(graph)
    for x, y in itertools.combinations(range(5), 2):
        others = [v for v in range(5) if v not in (x, y)]
        for size in range(4):
            for z in itertools.combinations(others, size):
                expected = separated_by_paths(graph, x, y, set(z))
                assert separation.separated(x, y, z) == separation.separated(y, x, z) == expected


@settings(max_examples=60)
@given(SEEDS)
def test_reachable_nodes_and_names(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_mixed_graph(7, rng)
    separation = MSeparation(graph)
    x, *z = (int(v) for v in rng.permutation(7)[: rng.integers(1, 6)])
    reachable = separation.reachable(x, z)
    for y in set(range(7)) - {x, *z}:
        expected = separated_by_paths(graph, x, y, set(z))
        assert (y not in reachable) == expected
        assert m_separated(graph, f"v{x}", f"v{y}", [f"v{v}" for v in z]) == expected
    assert not {x, *z} & set(reachable)


@settings(max_examples=40)
@given(SEEDS)
def test_the_order_of_the_nodes_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_mixed_graph(8, rng)
    order = [int(v) for v in rng.permutation(8)]
    plain, permuted = MSeparation(graph), MSeparation(graph.permuted(order))
    for x in range(5):
        z = [v for v in (6, 7) if v != x]
        moved = permuted.reachable(order.index(x), [order.index(v) for v in z])
        assert plain.reachable(x, z) == tuple(sorted(order[v] for v in moved))


def test_in_a_dag_it_is_d_separation() -> None:
    # more than 64 nodes: positions must not overflow a machine word
    dag = random_dag(70, expected_degree=3, seed=4)
    by_d, by_m = DSeparation(dag), MSeparation(MixedGraph.from_dag(dag))
    rng = np.random.default_rng(0)
    sizes = set()
    for _ in range(60):
        x, *z = rng.choice(70, size=rng.integers(1, 30), replace=False)
        assert by_m.reachable(x, z) == by_d.reachable(x, z)
        sizes.add(len(by_d.reachable(x, z)))
    assert len(sizes) > 10


def test_in_an_undirected_graph_it_is_separation() -> None:
    skeleton = nx.gnp_random_graph(20, 0.12, seed=3)
    marks = np.where(nx.to_numpy_array(skeleton) > 0, int(Mark.TAIL), 0)
    separation = MSeparation(MixedGraph(tuple(f"v{i}" for i in range(20)), marks))
    for x in range(18):
        rest = skeleton.subgraph(set(skeleton) - {18, 19})
        assert set(separation.reachable(x, [18, 19])) == nx.node_connected_component(rest, x) - {x}


def test_a_collider_opens_by_its_descendants_and_a_bidirected_edge_is_into_both_ends() -> None:
    graph = MixedGraph.from_edges(
        ["a", "b", "c", "d", "e"], ["a --> b", "b <-> c", "c --> d", "b --> e"]
    )
    assert m_separated(graph, "a", "d")
    assert not m_separated(graph, "a", "d", ["e"])
    assert m_separated(graph, "a", "d", ["e", "c"])
    assert m_separated(graph, "e", "d", ["b"])


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (["a o-> b"], "circle at 'a'"),
        (["a --> b", "b --> c", "c --> a"], "directed cycle"),
        (["a --> b", "b --- c"], "both at 'b'"),
    ],
)
def test_graphs_that_it_is_not_defined_for_are_refused(edges: list[str], message: str) -> None:
    refused(GraphError, message, MSeparation, MixedGraph.from_edges(["a", "b", "c"], edges))


def test_a_directed_cycle_is_named() -> None:
    graph = MixedGraph.from_edges(
        ["d", "a", "b", "c"], ["a --> b", "b --> c", "c --> a", "c --> d"]
    )
    with pytest.raises(GraphError) as error:
        MSeparation(graph)
    cycles = ("a --> b --> c --> a", "b --> c --> a --> b", "c --> a --> b --> c")
    assert any(f"got {cycle};" in str(error.value) for cycle in cycles)


def test_malformed_questions_are_refused() -> None:
    graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b <-> c"])
    separation = MSeparation(graph)
    for call in (
        lambda: separation.separated(0, 0),
        lambda: separation.separated(0, 1, [1]),
        lambda: separation.separated(0, 3),
        lambda: separation.separated(-1, 1),
        lambda: separation.separated(0, 1, [-1]),
        lambda: separation.reachable(2, [2]),
        lambda: m_separated(graph, "a", "z"),
        lambda: m_separated(graph, "a", "c", ["z"]),
        lambda: m_separated(graph, "a", "c", "b"),
    ):
        pytest.raises(GraphError, call)
