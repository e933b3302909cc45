"""CPDAGs and consistent extensions against brute force over all DAGs with the same skeleton."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest

from jaxcd.errors import GraphError
from jaxcd.graphs import MixedGraph, consistent_extension, dag_to_cpdag, random_dag
from tests.helpers import refused

Arcs = frozenset[tuple[str, str]]


def acyclic(names: tuple[str, ...], arcs: Arcs) -> bool:
    graph = nx.DiGraph(list(arcs))
    graph.add_nodes_from(names)
    return nx.is_directed_acyclic_graph(graph)


def orientations(names: tuple[str, ...], pairs: list[tuple[str, str]]) -> Iterator[Arcs]:
    """All DAGs with exactly these adjacencies."""
    for flips in itertools.product((False, True), repeat=len(pairs)):
        arcs = frozenset(
            (b, a) if flip else (a, b) for (a, b), flip in zip(pairs, flips, strict=True)
        )
        if acyclic(names, arcs):
            yield arcs


def v_structures(arcs: Arcs) -> frozenset[tuple[frozenset[str], str]]:
    joined = {frozenset(arc) for arc in arcs}
    return frozenset(
        (frozenset((a, c)), b)
        for (a, b), (c, d) in itertools.combinations(sorted(arcs), 2)
        if b == d and frozenset((a, c)) not in joined
    )


def union_of(names: tuple[str, ...], dags: list[Arcs]) -> MixedGraph:
    """An edge is directed if all the DAGs agree on it."""
    edges = []
    for a, b in dags[0]:
        agreed = all((a, b) in arcs for arcs in dags)
        edges.append(f"{a} --> {b}" if agreed else f"{a} --- {b}")
    return MixedGraph.from_edges(names, edges)


def as_mixed(names: tuple[str, ...], arcs: Arcs) -> MixedGraph:
    return MixedGraph.from_edges(names, [f"{a} --> {b}" for a, b in arcs])


def test_cpdag_of_every_dag_on_four_nodes_is_the_union_of_its_class() -> None:
    names = ("a", "b", "c", "d")
    pairs = list(itertools.combinations(names, 2))
    classes: dict[tuple[object, object], list[Arcs]] = defaultdict(list)
    for size in range(7):
        for chosen in itertools.combinations(pairs, size):
            for arcs in orientations(names, list(chosen)):
                classes[chosen, v_structures(arcs)].append(arcs)
    # The numbers of labelled DAGs and of Markov equivalence classes on four nodes are known.
    assert sum(len(members) for members in classes.values()) == 543 and len(classes) == 185
    for members in classes.values():
        expected = union_of(names, members)
        for arcs in members:
            assert dag_to_cpdag(as_mixed(names, arcs)) == expected
        extension = consistent_extension(expected)
        assert extension is not None
        assert frozenset((edge.a, edge.b) for edge in extension.edges()) in members


@pytest.mark.parametrize("seed", range(15))
def test_cpdag_of_random_dags_on_five_nodes_is_the_union_of_their_class(seed: int) -> None:
    dag = random_dag(5, expected_degree=2 + seed % 2, seed=seed)
    names = tuple(dag.nodes)
    arcs = frozenset(dag.edges)
    members = [
        other
        for other in orientations(names, sorted(arcs))
        if v_structures(other) == v_structures(arcs)
    ]
    assert dag_to_cpdag(dag) == (union_of(names, members) if arcs else MixedGraph.empty(names))


def test_cpdag_does_not_depend_on_the_order_of_columns() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        graph = MixedGraph.from_dag(random_dag(12, expected_degree=4, seed=seed))
        order = rng.permutation(12)
        assert dag_to_cpdag(graph.permuted(order)) == dag_to_cpdag(graph).permuted(order)


def test_consistent_extension_exists_exactly_when_brute_force_finds_one() -> None:
    names = ("a", "b", "c", "d")
    rng = np.random.default_rng(1)
    found = {True: 0, False: 0}
    for _ in range(250):
        edges = [
            f"{a} {symbol} {b}"
            for a, b in itertools.combinations(names, 2)
            if (symbol := rng.choice(["", "---", "---", "-->", "<--"]))
        ]
        pdag = MixedGraph.from_edges(names, edges)
        fixed = frozenset((edge.a, edge.b) for edge in pdag.edges() if edge.symbol == "-->")
        joined = [(edge.a, edge.b) for edge in pdag.edges()]
        wanted = {v for v in v_structures(fixed) if not pdag.adjacent(*v[0])}
        fitting = {
            arcs
            for arcs in orientations(names, joined)
            if fixed <= arcs and v_structures(arcs) == wanted
        }
        extension = consistent_extension(pdag)
        found[bool(fitting)] += 1
        if extension is None:
            assert not fitting
        else:
            assert frozenset((edge.a, edge.b) for edge in extension.edges()) in fitting
    assert min(found.values()) > 20


def test_other_edges_are_refused() -> None:
    refused(
        GraphError, "a <-> b", consistent_extension, MixedGraph.from_edges(["a", "b"], ["a <-> b"])
    )
    refused(GraphError, "a --- b", dag_to_cpdag, MixedGraph.from_edges(["a", "b"], ["a --- b"]))


def test_random_dag() -> None:
    dags = [random_dag(20, expected_degree=4, seed=seed) for seed in range(60)]
    assert all(
        nx.is_directed_acyclic_graph(dag) and list(dag.nodes) == [f"x{i}" for i in range(20)]
        for dag in dags
    )
    # 60 * 190 pairs at probability 4/19: the mean number of edges 40 has a standard error of 0.73.
    assert abs(np.mean([dag.number_of_edges() for dag in dags]) - 40) < 4
    backward = np.mean(
        [a > b for dag in dags for a, b in ((int(s[1:]), int(t[1:])) for s, t in dag.edges)]
    )
    assert 0.4 < backward < 0.6
    assert set(random_dag(20, expected_degree=4, seed=3).edges) == set(dags[3].edges)
    rng = np.random.default_rng(0)
    one, two = (random_dag(20, expected_degree=4, seed=rng) for _ in range(2))
    assert set(one.edges) != set(two.edges)
    assert random_dag(6, expected_degree=5, seed=0).number_of_edges() == 15
    for n_nodes, degree in ((0, 0.0), (3, 2.5), (3, -1.0), (3, float("nan"))):
        pytest.raises(GraphError, random_dag, n_nodes, expected_degree=degree, seed=0)
