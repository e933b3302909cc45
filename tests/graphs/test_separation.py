"""d-separation against networkx and against the definition by paths."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import GraphError
from jaxcd.graphs import DSeparation, MixedGraph, d_separated, random_dag
from tests.brute_force import separated_by_paths
from tests.helpers import SEEDS


@pytest.mark.parametrize("seed", range(6))
def test_all_questions_on_small_dags_agree_with_the_definition(seed: int) -> None:
    dag = random_dag(5, expected_degree=2.5, seed=seed)
    names = list(dag.nodes)
    separation, graph = DSeparation(dag), MixedGraph.from_arcs(names, nx.to_numpy_array(dag) > 0)
    answers = set()
    for x, y in itertools.combinations(range(5), 2):
        others = [v for v in range(5) if v not in (x, y)]
        for size in range(4):
            for z in itertools.combinations(others, size):
                expected = separated_by_paths(graph, x, y, set(z))
                answers.add(expected)
                assert separation.separated(x, y, z) == separation.separated(y, x, z) == expected
    assert answers == {True, False}


@settings(max_examples=60)
@given(st.integers(2, 12), st.floats(0, 1), SEEDS, st.data())
def test_random_questions_agree_with_networkx(
    n: int, density: float, seed: int, data: st.DataObject
) -> None:
    dag = random_dag(n, expected_degree=density * (n - 1), seed=seed)
    names = list(dag.nodes)
    separation = DSeparation(dag)
    order = data.draw(st.permutations(range(n)))
    x, given_nodes = order[0], order[1 : 1 + data.draw(st.integers(0, n - 2))]
    connected = []
    for y in range(n):
        if y == x or y in given_nodes:
            continue
        expected = nx.is_d_separator(dag, {names[x]}, {names[y]}, {names[v] for v in given_nodes})
        assert separation.separated(x, y, given_nodes) == expected
        assert separation.separated(y, x, given_nodes) == expected
        if not expected:
            connected.append(y)
    assert separation.reachable(x, given_nodes) == tuple(connected)


@settings(max_examples=30)
@given(SEEDS)
def test_selected_nodes_belong_to_every_conditioning_set(seed: int) -> None:
    dag = random_dag(7, expected_degree=3, seed=seed)
    plain, selected = DSeparation(dag), DSeparation(dag, selected=[5, 6])
    for x, y in itertools.combinations(range(5), 2):
        rest = [v for v in range(5) if v not in (x, y)]
        for z in ([], rest[:1], rest):
            assert selected.separated(x, y, z) == plain.separated(x, y, [*z, 5, 6])


def test_every_form_of_a_dag_gives_the_same_answers() -> None:
    # more than 64 nodes: positions must not overflow a machine word
    dag = random_dag(70, expected_degree=3, seed=11)
    forms = [
        DSeparation(dag),
        DSeparation(MixedGraph.from_dag(dag)),
        DSeparation(nx.to_numpy_array(dag)),
    ]
    names = list(dag.nodes)
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, y, *z = rng.choice(70, size=8, replace=False)
        expected = nx.is_d_separator(dag, {names[x]}, {names[y]}, {names[v] for v in z})
        assert [form.separated(x, y, z) for form in forms] == [expected] * 3
        assert d_separated(dag, names[x], names[y], [names[v] for v in z]) == expected


def test_ancestors() -> None:
    dag = random_dag(9, expected_degree=3, seed=2)
    names = list(dag.nodes)
    separation = DSeparation(dag)
    for v in range(9):
        assert {names[a] for a in separation.ancestors(v)} == nx.ancestors(dag, names[v]) | {
            names[v]
        }


def test_malformed_questions_are_refused() -> None:
    dag = nx.DiGraph([("a", "b"), ("b", "c")])
    separation = DSeparation(dag, selected=[2])
    for call in (
        lambda: separation.separated(0, 0),
        lambda: separation.separated(0, 1, [1]),
        lambda: separation.separated(0, 2),
        lambda: separation.separated(0, 3),
        lambda: separation.separated(-1, 1),
        lambda: separation.separated(0, 1, [-1]),
        lambda: separation.reachable(2),
        lambda: DSeparation(dag, selected=[3]),
        lambda: d_separated(dag, "a", "z"),
        lambda: DSeparation(nx.DiGraph([(0, 1), (1, 0)])),
        lambda: DSeparation(np.eye(2)),
        lambda: DSeparation(np.array([[0.0, np.nan], [0.0, 0.0]])),
        lambda: DSeparation(np.zeros((2, 3))),
        lambda: DSeparation(MixedGraph.from_edges(["a", "b"], ["a --- b"])),
    ):
        pytest.raises(GraphError, call)
