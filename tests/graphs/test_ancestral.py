"""MAGs against brute force: all separating sets, all marks, all paths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import jaxcd
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import (
    DSeparation,
    Mark,
    MixedGraph,
    MSeparation,
    dag_to_mag,
    is_ancestral,
    is_mag,
    markov_equivalent_mags,
    random_dag,
    visible_edges,
)
from tests.helpers import SEEDS, refused


def hidden_dag(
    n: int, seed: int, *, selection: bool = True
) -> tuple[nx.DiGraph, list[str], list[str]]:
    """A random DAG with up to two latent and up to two selected nodes."""
    rng = np.random.default_rng(seed)
    dag = random_dag(n, expected_degree=rng.uniform(1, 3.5), seed=rng)
    names = [str(name) for name in rng.permutation(list(dag))]
    n_latent, n_selected = rng.integers(0, 3), rng.integers(0, 3) if selection else 0
    return dag, names[:n_latent], names[n_latent : n_latent + n_selected]


def subsets(items: list[int]) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(
        itertools.combinations(items, k) for k in range(len(items) + 1)
    )


def separations(graph: MixedGraph) -> frozenset[tuple[str, str, frozenset[str]]]:
    """Every m-separation of a graph."""
    separation, names = MSeparation(graph), graph.names
    found = set()
    for x, y in itertools.combinations(range(len(names)), 2):
        for z in subsets([v for v in range(len(names)) if v not in (x, y)]):
            if separation.separated(x, y, z):
                found.add((*sorted((names[x], names[y])), frozenset(names[v] for v in z)))
    return frozenset(found)


def graphs_on(names: list[str], skeleton: list[tuple[int, int]]) -> Iterator[MixedGraph]:
    """All graphs without circles that have the given edges."""
    ends = [
        (Mark.TAIL, Mark.ARROW),
        (Mark.ARROW, Mark.TAIL),
        (Mark.ARROW, Mark.ARROW),
        (Mark.TAIL, Mark.TAIL),
    ]
    for choice in itertools.product(ends, repeat=len(skeleton)):
        marks = np.zeros((len(names), len(names)), dtype=np.int8)
        for (i, j), (at_i, at_j) in zip(skeleton, choice, strict=True):
            marks[i, j], marks[j, i] = at_j, at_i
        yield MixedGraph(tuple(names), marks)


def ancestral_by_definition(graph: MixedGraph) -> bool:
    directed = nx.from_numpy_array(graph.directed, create_using=nx.DiGraph)
    for i, j in np.argwhere(graph.marks):
        if graph.marks[i, j] == Mark.CIRCLE:
            return False
        if graph.marks[i, j] == Mark.ARROW and (
            graph.undirected[j].any() or j in nx.ancestors(directed, i)
        ):
            return False
    return True


def mag_by_definition(graph: MixedGraph) -> bool:
    if not ancestral_by_definition(graph):
        return False
    separated = {frozenset((a, b)) for a, b, _ in separations(graph)}
    return all(
        graph.adjacent(a, b) or {a, b} in separated
        for a, b in itertools.combinations(graph.names, 2)
    )


# ---- DAG to MAG


@settings(max_examples=80)
@given(SEEDS)
def test_edges_and_marks_of_the_mag_agree_with_brute_force(seed: int) -> None:
    dag, latent, selected = hidden_dag(8, seed)
    mag = dag_to_mag(dag, latent=latent, selected=selected)
    nodes = list(dag)
    observed = [v for v, name in enumerate(nodes) if name not in {*latent, *selected}]
    assert mag.names == tuple(nodes[v] for v in observed)
    separation = DSeparation(dag, selected=[nodes.index(name) for name in selected])
    for x, y in itertools.permutations(observed, 2):
        a, b = nodes[x], nodes[y]
        separable = any(
            separation.separated(x, y, z) for z in subsets([v for v in observed if v not in (x, y)])
        )
        assert mag.adjacent(a, b) != separable
        if not separable:
            tail = any(a in nx.ancestors(dag, end) for end in {b, *selected})
            assert mag.marks[mag.index(b), mag.index(a)] == (Mark.TAIL if tail else Mark.ARROW)
    assert is_ancestral(mag) and is_mag(mag)


@settings(max_examples=80)
@given(SEEDS)
def test_m_separation_in_the_mag_is_d_separation_in_the_dag_given_the_selected(seed: int) -> None:
    dag, latent, selected = hidden_dag(8, seed)
    mag = dag_to_mag(dag, latent=latent, selected=selected)
    nodes = list(dag)
    by_d, by_m = (
        DSeparation(dag, selected=[nodes.index(name) for name in selected]),
        MSeparation(mag),
    )
    place = [nodes.index(name) for name in mag.names]
    for x, y in itertools.combinations(range(mag.n_nodes), 2):
        for z in subsets([v for v in range(mag.n_nodes) if v not in (x, y)]):
            assert by_m.separated(x, y, z) == by_d.separated(
                place[x], place[y], [place[v] for v in z]
            )


@pytest.mark.parametrize(
    ("arcs", "latent", "selected", "edges"),
    [
        ("l>x l>y", "l", "", {"x <-> y"}),
        ("x>l l>y", "l", "", {"x --> y"}),
        ("x>s y>s", "", "s", {"x --- y"}),
        ("x>a a>s y>s", "", "s", {"x --- a", "a --- y"}),
        # inducing path x --> a <-- l --> y
        ("x>a l>a l>y a>y", "l", "", {"x --> a", "a --> y", "x --> y"}),
        ("l>x l>y x>s", "l", "s", {"x --> y"}),  # x is an ancestor of s, y is not
        ("x>l y>l", "l", "", set()),
        ("l>m m>x l>y", "lm", "", {"x <-> y"}),
        ("x>c y>c c>s", "", "s", {"x --- c", "x --- y", "c --- y"}),
    ],
)
def test_known_mags(arcs: str, latent: str, selected: str, edges: set[str]) -> None:
    dag = nx.DiGraph([tuple(arc.split(">")) for arc in arcs.split()])
    mag = dag_to_mag(dag, latent=list(latent), selected=list(selected))
    assert {str(edge) for edge in mag.edges()} == {
        str(e) for e in MixedGraph.from_edges(mag.names, edges).edges()
    }


def test_without_hidden_nodes_the_mag_is_the_dag_in_every_form() -> None:
    dag = random_dag(70, expected_degree=4, seed=1)
    graph = MixedGraph.from_dag(dag)
    assert dag_to_mag(dag) == dag_to_mag(graph) == graph
    assert dag_to_mag(graph.directed) == MixedGraph(tuple(str(v) for v in range(70)), graph.marks)
    hidden = dag_to_mag(dag, latent=["x3", "x4"], selected=["x9"])
    assert hidden == dag_to_mag(graph, latent=["x3", "x4"], selected=["x9"])
    assert np.array_equal(
        hidden.marks, dag_to_mag(graph.directed, latent=[3, 4], selected=[9]).marks
    )


@settings(max_examples=25)
@given(SEEDS)
def test_the_order_of_the_nodes_does_not_matter(seed: int) -> None:
    dag, latent, selected = hidden_dag(12, seed)
    shuffled = nx.DiGraph()
    shuffled.add_nodes_from(np.random.default_rng(seed).permutation(list(dag)).tolist())
    shuffled.add_edges_from(dag.edges)
    mag, other = (dag_to_mag(g, latent=latent, selected=selected) for g in (dag, shuffled))
    assert other.reordered(mag.names) == mag
    assert {str(e) for e in visible_edges(mag)} == {str(e) for e in visible_edges(other)}
    assert is_mag(other) and markov_equivalent_mags(mag, other)


def test_bad_latent_and_selected_nodes_are_refused() -> None:
    dag = nx.DiGraph([("a", "b"), ("b", "c")])
    for options, message in (
        ({"latent": ["z"]}, "latent: no node 'z'"),
        ({"selected": ["z"]}, "selected: no node 'z'"),
        ({"latent": "a"}, "single string"),
        ({"latent": None}, r"latent .* got None; write \[\] for none"),
        ({"selected": 3}, "selected .* got 3"),
        ({"latent": ["a", "b"], "selected": ["b"]}, r"\['b'\] as both"),
    ):
        refused(GraphError, message, dag_to_mag, dag, **options)
    refused(GraphError, "cycle", dag_to_mag, nx.DiGraph([("a", "b"), ("b", "a")]))
    assert dag_to_mag(dag, latent=["a", "b", "c"]).names == ()


def test_hidden_nodes_may_come_one_by_one() -> None:
    dag = nx.DiGraph([("l", "a"), ("l", "b"), ("b", "s")])
    expected = dag_to_mag(dag, latent=["l"], selected=["s"])
    assert dag_to_mag(dag, latent=map(str, "l"), selected=filter(None, "s")) == expected
    oracle = jaxcd.Oracle(dag, latent=map(str, "l"), selected=iter("s"))
    assert (oracle.latent, oracle.selected) == (("l",), ("s",))
    assert oracle.column_names(None) == expected.names
    for wrong in (None, 3, "l"):
        refused(OptionError, "latent is a collection", jaxcd.Oracle, dag, latent=wrong)


# ---- is_ancestral, is_mag


def test_all_graphs_on_three_nodes() -> None:
    kinds = set()
    for size in range(4):
        for skeleton in itertools.combinations([(0, 1), (0, 2), (1, 2)], size):
            for graph in graphs_on(["a", "b", "c"], list(skeleton)):
                assert is_ancestral(graph) == ancestral_by_definition(graph)
                assert is_mag(graph) == mag_by_definition(graph)
                kinds.add((is_ancestral(graph), is_mag(graph)))
    assert kinds == {(True, True), (False, False)}


@settings(max_examples=80)
@given(SEEDS)
def test_random_graphs_near_a_mag(seed: int) -> None:
    # A few edges of a MAG are removed or replaced.
    replacements, weights = [(0, 0), (2, 3), (2, 2), (3, 3), (1, 2)], [0.4, 0.1, 0.4, 0.07, 0.03]
    rng = np.random.default_rng(seed)
    dag, latent, selected = hidden_dag(8, seed)
    mag = dag_to_mag(dag, latent=latent, selected=selected)
    marks = np.array(mag.marks)
    for _ in range(rng.integers(1, 4)):
        i, j = rng.choice(mag.n_nodes, size=2, replace=False)
        marks[i, j], marks[j, i] = rng.choice(replacements, p=weights)
    graph = MixedGraph(mag.names, marks)
    assert is_ancestral(graph) == ancestral_by_definition(graph)
    assert is_mag(graph) == mag_by_definition(graph)


def test_an_ancestral_graph_that_is_not_maximal() -> None:
    edges = ["a <-> b", "b <-> c", "c <-> d", "b --> d", "c --> a"]
    graph = MixedGraph.from_edges(["a", "b", "c", "d"], edges)
    assert is_ancestral(graph) and not is_mag(graph) and not mag_by_definition(graph)
    assert is_mag(MixedGraph.from_edges(graph.names, [*edges, "a <-> d"]))


def test_graphs_that_are_not_ancestral() -> None:
    for edges in (
        ["a o-> b"],
        ["a --> b", "b --> c", "c --> a"],
        ["a --> b", "b --> c", "a <-> c"],
        ["a --> b", "b --- c"],
        ["a <-> b", "b --- c"],
    ):
        graph = MixedGraph.from_edges(["a", "b", "c"], edges)
        assert not is_ancestral(graph) and not is_mag(graph)


# ---- Markov equivalence


def simple_invariants(graph: MixedGraph) -> tuple[bytes, frozenset[tuple[int, ...]]]:
    """Adjacencies and unshielded colliders: enough for DAGs, not for MAGs."""
    into = graph.marks == Mark.ARROW
    colliders = frozenset(
        (u, v, w)
        for u, v, w in itertools.permutations(range(graph.n_nodes), 3)
        if into[u, v] and into[w, v] and not graph.adjacency[u, w]
    )
    return graph.adjacency.tobytes(), colliders


@pytest.mark.parametrize(
    "skeleton",
    [
        [(0, 1), (1, 2), (2, 3)],
        [(0, 1), (1, 2), (2, 3), (0, 3)],
        [(0, 1), (1, 2), (1, 3), (2, 3)],  # has discriminating paths
        [(0, 1), (1, 2), (1, 3), (2, 3), (0, 2)],
    ],
)
def test_equivalence_on_four_nodes_agrees_with_all_m_separations(
    skeleton: list[tuple[int, int]],
) -> None:
    mags = [graph for graph in graphs_on(["a", "b", "c", "d"], skeleton) if is_mag(graph)]
    models, invariants = (
        [separations(graph) for graph in mags],
        [simple_invariants(graph) for graph in mags],
    )
    answers = set()
    for i, j in itertools.product(range(len(mags)), repeat=2):
        if i % 16 == 0 or (i % 3 == 0 and invariants[i] == invariants[j]):
            answers.add(models[i] == models[j])
            assert markov_equivalent_mags(mags[i], mags[j]) == (models[i] == models[j])
    assert answers == {True, False}


def test_a_discriminating_path_of_five_nodes_decides() -> None:
    names = ["x", "q1", "q2", "v", "y"]
    path = MixedGraph.from_edges(
        names, ["x --> q1", "q1 <-> q2", "q2 <-> v", "q1 --> y", "q2 --> y", "v <-> y"]
    )
    skeleton = [(int(i), int(j)) for i, j in np.argwhere(np.triu(path.marks))]
    alike = [
        g
        for g in graphs_on(names, skeleton)
        if is_mag(g) and simple_invariants(g) == simple_invariants(path)
    ]
    model = separations(path)
    expected = [separations(g) == model for g in alike]
    assert [markov_equivalent_mags(path, g) for g in alike] == expected
    assert {True, False} == set(expected)


@settings(max_examples=40)
@given(SEEDS)
def test_equivalence_of_random_mags_with_the_same_skeleton(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag, latent, selected = hidden_dag(7, seed)
    mag = dag_to_mag(dag, latent=latent, selected=selected)
    model = separations(mag)
    for _ in range(12):
        marks = np.array(mag.marks)
        for i, j in rng.permutation(np.argwhere(marks))[:2]:
            marks[i, j] = rng.choice([Mark.ARROW, Mark.TAIL])
        other = MixedGraph(mag.names, marks)
        if is_mag(other):
            expected = separations(other) == model
            order = [int(v) for v in rng.permutation(mag.n_nodes)]
            assert markov_equivalent_mags(mag, other.permuted(order)) == expected
            assert markov_equivalent_mags(other, mag) == expected


def test_equivalence_needs_mags_on_the_same_names() -> None:
    graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
    assert markov_equivalent_mags(graph, MixedGraph.from_edges(["b", "a"], ["a <-> b"]))
    assert not markov_equivalent_mags(graph, MixedGraph.empty(["a", "b"]))
    for other in (
        MixedGraph.from_edges(["a", "b"], ["a o-> b"]),
        MixedGraph.from_edges(["a", "c"], ["a --> c"]),
    ):
        pytest.raises(GraphError, markov_equivalent_mags, graph, other)


# ---- visible edges


def visible_by_paths(graph: MixedGraph) -> set[tuple[str, str]]:
    """The definition, over all simple paths."""
    into, skeleton = graph.marks == Mark.ARROW, nx.from_numpy_array(graph.adjacency)
    found = set()
    for a, b in np.argwhere(graph.directed).tolist():
        for c in range(graph.n_nodes):
            if c in (a, b) or graph.adjacency[c, b]:
                continue
            for path in nx.all_simple_paths(skeleton, c, a):
                colliders = all(
                    into[u, v] and into[w, v]
                    for u, v, w in zip(path, path[1:], path[2:], strict=False)
                )
                if (
                    into[path[-2], a]
                    and colliders
                    and all(graph.directed[v, b] for v in path[1:-1])
                ):
                    found.add((graph.names[a], graph.names[b]))
    return found


@settings(max_examples=80)
@given(SEEDS)
def test_visible_edges_agree_with_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag, latent, selected = hidden_dag(8, seed)
    mag = dag_to_mag(dag, latent=latent, selected=selected)
    circles = np.where(
        mag.adjacency & (rng.random(mag.marks.shape) < 0.15), int(Mark.CIRCLE), mag.marks
    )
    loose = np.where(mag.adjacency, rng.choice([1, 2, 2, 2, 3], size=mag.marks.shape), 0)
    for graph in (mag, MixedGraph(mag.names, circles), MixedGraph(mag.names, loose)):
        edges = visible_edges(graph)
        assert {(edge.a, edge.b) for edge in edges} == visible_by_paths(graph)
        assert all(graph.has_edge(edge.a, edge.b, symbol="-->") for edge in edges)


@settings(max_examples=60)
@given(SEEDS)
def test_an_edge_is_visible_exactly_if_a_latent_confounder_behind_it_would_change_the_mag(
    seed: int,
) -> None:
    dag, latent, _ = hidden_dag(8, seed, selection=False)
    mag = dag_to_mag(dag, latent=latent)
    visible = {(edge.a, edge.b) for edge in visible_edges(mag)}
    # The canonical DAG of a MAG without undirected edges: a latent parent of both ends of each
    # bidirected edge.
    canonical, hidden = nx.DiGraph(), []
    canonical.add_nodes_from(mag.names)
    for edge in mag.edges():
        if edge.symbol == "-->":
            canonical.add_edge(edge.a, edge.b)
        else:
            hidden.append(f"latent {edge}")
            canonical.add_edges_from([(hidden[-1], edge.a), (hidden[-1], edge.b)])
    assert dag_to_mag(canonical, latent=hidden) == mag
    for edge in mag.edges():
        if edge.symbol == "-->":
            confounded = nx.DiGraph(canonical)
            confounded.add_edges_from([("extra", edge.a), ("extra", edge.b)])
            same = dag_to_mag(confounded, latent=[*hidden, "extra"]) == mag
            assert same == ((edge.a, edge.b) not in visible)


def test_known_visible_edges() -> None:
    names = ["c", "q", "a", "b", "r"]
    for edges, visible in (
        (["c o-> a", "a --> b"], ["a --> b"]),
        (["c o-o a", "a --> b"], []),
        (["c --> a", "a --> b", "c --> b"], []),
        (["c o-> q", "q <-> a", "q --> b", "a --> b"], ["q --> b", "a --> b"]),
        (["c o-> q", "q o-> a", "q --> b", "a --> b"], ["q --> b"]),
        # r is no parent of b
        (["c o-> q", "q <-> r", "r <-> a", "q --> b", "r <-> b", "a --> b"], ["q --> b"]),
    ):
        assert [str(edge) for edge in visible_edges(MixedGraph.from_edges(names, edges))] == visible


def test_labels_that_read_alike_are_no_matter_while_one_is_hidden() -> None:
    mag = dag_to_mag(nx.DiGraph([(1, "1"), (1, "b")]), latent=[1])
    assert mag == MixedGraph.from_edges(["1", "b"], ["1 <-> b"])
