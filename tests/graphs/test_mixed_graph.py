"""MixedGraph: construction, validation, value semantics and queries, against an independent
list-of-edges model.
"""

from __future__ import annotations

import copy
import itertools
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.errors import GraphError
from jaxcd.graphs import Edge, Mark, MixedGraph
from jaxcd.graphs.edges import SYMBOLS, parse_edge
from tests.helpers import refused

LETTERS = ("a", "b", "c", "d", "e")


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[tuple[str, ...], dict[tuple[str, str], str]]:
    """Names, and for some pairs (a before b) a symbol."""
    names = LETTERS[: draw(st.integers(0, 5))]
    pairs = list(itertools.combinations(names, 2))
    symbols = [draw(st.sampled_from([None, *SYMBOLS])) for _ in pairs]
    return names, {pair: symbol for pair, symbol in zip(pairs, symbols, strict=True) if symbol}


def build(model: tuple[tuple[str, ...], dict[tuple[str, str], str]]) -> MixedGraph:
    return MixedGraph.from_edges(
        model[0], [f"{a} {symbol} {b}" for (a, b), symbol in model[1].items()]
    )


def test_marks_follow_the_contract() -> None:
    graph = MixedGraph.from_edges(["i", "j", "k"], ["i --> j", "j --- k"])
    assert graph.marks[0, 1] == 2 and graph.marks[1, 0] == 3
    assert graph.marks[1, 2] == 3 and graph.marks[2, 1] == 3
    assert graph.marks[0, 2] == 0 and graph.marks.dtype == np.int8
    assert [int(mark) for mark in (Mark.NONE, Mark.CIRCLE, Mark.ARROW, Mark.TAIL)] == [0, 1, 2, 3]
    circle = MixedGraph.from_edges(["i", "j"], ["i o-> j"])
    assert circle.marks.tolist() == [[0, 2], [1, 0]]


def test_from_arcs() -> None:
    arcs = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)
    assert MixedGraph.from_arcs(LETTERS[:3], arcs) == MixedGraph.from_edges(
        LETTERS[:3], ["a --> b", "c --> a", "c --> b"]
    )
    assert MixedGraph.from_arcs([], np.zeros((0, 0))) == MixedGraph.empty([])
    # is not looked for here
    cycle = MixedGraph.from_arcs(LETTERS[:3], np.roll(np.eye(3), 1, axis=1))
    assert cycle.n_edges == 3 and not cycle.is_dag()


@pytest.mark.parametrize(
    ("arcs", "words"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\), and 2 names want \(2, 2\)"),
        ([[0, 1], [1, 0]], "'a' and 'b' both ways"),
        (np.eye(2), "'a' and 'a' both ways"),
    ],
)
def test_arcs_that_are_none(arcs: np.ndarray, words: str) -> None:
    refused(GraphError, words, MixedGraph.from_arcs, LETTERS[:2], arcs)


@given(edge_lists())
def test_queries_agree_with_the_list_of_edges(
    model: tuple[tuple[str, ...], dict[tuple[str, str], str]],
) -> None:
    names, symbols = model
    graph = build(model)
    assert graph.n_edges == len(symbols) == len(graph.edges())
    for a, b in itertools.permutations(names, 2):
        forward, backward = symbols.get((a, b)), symbols.get((b, a))
        joined = forward is not None or backward is not None
        assert graph.adjacent(a, b) == graph.has_edge(a, b) == joined
        assert (b in graph.neighbors(a)) == joined
        assert (b in graph.children(a)) == (forward == "-->" or backward == "<--")
        assert (b in graph.parents(a)) == (forward == "<--" or backward == "-->")
        assert (b in graph.undirected_neighbors(a)) == ("---" in (forward, backward))
        if forward:
            assert graph.has_edge(a, b, symbol=forward)
            assert [s for s in SYMBOLS if graph.has_edge(a, b, symbol=s)] == [forward]
    assert MixedGraph.from_edges(names, graph.edges()) == graph
    assert MixedGraph.from_edges(names, [str(edge) for edge in graph.edges()]) == graph
    assert not any(edge.symbol in ("<--", "<-o", "o--") for edge in graph.edges())


@given(edge_lists(), st.randoms())
def test_reordering_keeps_every_edge(
    model: tuple[tuple[str, ...], dict[tuple[str, str], str]], random: object
) -> None:
    graph = build(model)
    names = list(graph.names)
    random.shuffle(names)  # type: ignore[attr-defined]
    moved = graph.reordered(names)
    assert moved.names == tuple(names)
    for a, b in itertools.permutations(names, 2):
        assert moved.edge(a, b) == graph.edge(a, b)
    assert moved.reordered(graph.names) == graph
    assert moved == graph.permuted([graph.index(name) for name in names])
    assert moved == graph.reordered(name for name in names)
    assert graph.subgraph(iter(names)) == moved
    part = graph.subgraph(names[:3])
    for a, b in itertools.permutations(part.names, 2):
        assert part.edge(a, b) == graph.edge(a, b)


def test_value_semantics() -> None:
    edges = ["a --> b", "b <-> c"]
    one, two = (
        MixedGraph.from_edges(["a", "b", "c"], edges),
        MixedGraph.from_edges(["a", "b", "c"], edges[::-1]),
    )
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one != MixedGraph.from_edges(["a", "b", "d"], ["a --> b", "b <-> d"])
    assert one != MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --- c"])
    assert one != "a --> b"
    for duplicate in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert duplicate == one and not duplicate.marks.flags.writeable


def test_it_cannot_be_changed() -> None:
    source = np.array([[0, 2], [3, 0]])
    graph = MixedGraph(("a", "b"), source)
    source[:] = 0
    assert graph.has_edge("a", "b", symbol="-->")
    with pytest.raises(ValueError):
        graph.marks[0, 1] = 0
    pytest.raises(ValueError, graph.marks.setflags, write=True)
    with pytest.raises(AttributeError):
        graph.names = ("x", "y")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("names", "marks", "message"),
    [
        (("a", "b"), [[0, 2, 0], [3, 0, 0]], "shape"),
        (("a", "b"), [[0, 4], [3, 0]], "0..3"),
        (("a", "b"), [[0, -1], [3, 0]], "0..3"),
        (("a", "b"), [[0, 2], [0, 0]], "both ends"),
        (("a", "b"), [[1, 0], [0, 0]], "diagonal"),
        (("a", "b"), [[0.0, 2.0], [3.0, 0.0]], "integers"),
        (("a", "b"), [[0, np.nan], [3, 0]], "integers"),
        (("a", "a"), [[0, 0], [0, 0]], "differ"),
        (("a", ""), [[0, 0], [0, 0]], "non-empty"),
        (("a", 1), [[0, 0], [0, 0]], "strings"),
        ("ab", [[0, 0], [0, 0]], "single string"),
    ],
)
def test_malformed_graphs_are_refused(
    names: tuple[str, ...], marks: list[list[int]], message: str
) -> None:
    refused(GraphError, message, MixedGraph, names, np.array(marks))


def test_malformed_calls_are_refused() -> None:
    graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b"])
    for call in (
        lambda: graph.adjacent("a", "z"),
        lambda: graph.has_edge("a", "b", symbol="->"),
        lambda: graph.permuted([0, 0, 1]),
        lambda: graph.permuted([0, 1.5, 2]),
        lambda: graph.permuted([False, True, 2]),
        lambda: graph.reordered("abc"),
        lambda: graph.reordered(None),
        lambda: graph.reordered(["a", "b"]),
        lambda: graph.reordered(["a", "b", "c", "c"]),
        lambda: graph.subgraph(["a", "a"]),
        lambda: MixedGraph.from_edges(["a", "b"], ["a --> z"]),
        lambda: MixedGraph.from_edges(["a", "b"], ["a -> b"]),
        lambda: MixedGraph.from_edges(["a", "b"], ["a --> b", "b --- a"]),
        lambda: MixedGraph.from_edges(["a", "b"], ["a --> a"]),
        lambda: MixedGraph.from_edges(["a", "b"], [Edge("a", "z", Mark.TAIL, Mark.ARROW)]),
        lambda: Edge("a", "b", Mark.NONE, Mark.ARROW),
    ):
        pytest.raises(GraphError, call)


def test_edges_can_join_names_with_spaces_and_symbols() -> None:
    names = ["blood pressure", "a --> b", "b"]
    graph = MixedGraph.from_edges(names, ["blood pressure-->b", "a --> b <-> b"])
    assert graph.has_edge("blood pressure", "b", symbol="-->") and graph.has_edge(
        "a --> b", "b", symbol="<->"
    )
    with pytest.raises(GraphError, match="more than one way"):
        parse_edge("a --> b --> c", ["a", "a --> b", "b --> c", "c"])


def test_from_dag_names_a_cycle() -> None:
    dag = nx.DiGraph([("b", "a"), ("a", "c"), ("c", "d")])
    assert MixedGraph.from_dag(dag) == MixedGraph.from_edges(
        ["b", "a", "c", "d"], ["b --> a", "a --> c", "c --> d"]
    )
    assert MixedGraph.from_dag(nx.DiGraph([(1, 0)])).names == ("1", "0")
    dag.add_edge("d", "a")
    with pytest.raises(GraphError) as caught:
        MixedGraph.from_dag(dag)
    cycles = ("a --> c --> d --> a", "c --> d --> a --> c", "d --> a --> c --> d")
    assert any(cycle in str(caught.value) for cycle in cycles)
    refused(GraphError, "undirected", MixedGraph.from_dag, nx.Graph([("a", "b")]))


def test_named_graphs_and_text() -> None:
    complete = MixedGraph.complete_undirected(["a", "b", "c"])
    assert complete.n_edges == 3 and {edge.symbol for edge in complete.edges()} == {"---"}
    assert MixedGraph.empty(["a", "b"]).n_edges == 0 and MixedGraph.empty([]).edges() == ()
    graph = MixedGraph.from_edges(["a", "b", "c"], ["b --> a", "c <-o a"])
    assert str(graph) == "b --> a\na o-> c"
    assert "b --> a, a o-> c" in repr(graph) and "3 nodes" in repr(graph)
    assert graph.skeleton() == MixedGraph.from_edges(["a", "b", "c"], ["a --- b", "a --- c"])


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (["a --> b", "b --> c", "a --> c"], True),
        (["a --> b", "b --> c", "c --> a"], False),
        (["a --- b"], False),
        ([], True),
    ],
)
def test_is_dag(edges: list[str], expected: bool) -> None:
    assert MixedGraph.from_edges(["a", "b", "c"], edges).is_dag() is expected
