"""Converters: every format is read back as it was written, and says what its own documentation
says.
"""

from __future__ import annotations

import itertools
import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.errors import FormatError, GraphError
from jaxcd.graphs import (
    Mark,
    MixedGraph,
    PcalgGraph,
    PcalgKind,
    from_causal_learn,
    from_dot,
    from_json_dict,
    from_networkx,
    from_pcalg,
    from_tetrad,
    random_dag,
)
from tests.helpers import refused

any_names = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=5)
plain_names = st.lists(st.text("abcXYZ_019.-", min_size=1, max_size=6), unique=True, max_size=5)


@st.composite
def graphs(draw: st.DrawFn, names: st.SearchStrategy[list[str]] = any_names) -> MixedGraph:
    nodes = draw(names)
    marks = np.zeros((len(nodes), len(nodes)), dtype=int)
    ends = st.tuples(st.integers(1, 3), st.integers(1, 3)) | st.just((0, 0))
    for i, j in itertools.combinations(range(len(nodes)), 2):
        marks[i, j], marks[j, i] = draw(ends)
    return MixedGraph(tuple(nodes), marks)


@given(graphs())
def test_formats_that_carry_everything_round_trip(graph: MixedGraph) -> None:
    assert from_networkx(graph.to_networkx()) == graph
    assert from_dot(graph.to_dot()) == graph
    assert from_dot(graph.to_dot().replace("\n", "\r\n")) == graph  # as Windows has it
    assert from_pcalg(graph.to_pcalg()) == graph
    assert from_causal_learn(graph.to_causal_learn(), names=graph.names) == graph
    assert from_json_dict(json.loads(json.dumps(graph.to_json_dict()))) == graph
    assert MixedGraph.from_json_dict(graph.to_json_dict()) == graph


@given(graphs(plain_names))
def test_tetrad_round_trips(graph: MixedGraph) -> None:
    assert from_tetrad(graph.to_tetrad()) == graph


@given(graphs())
def test_amat_cpdag_round_trips_or_refuses(graph: MixedGraph) -> None:
    if {edge.symbol for edge in graph.edges()} <= {"-->", "---"}:
        assert from_pcalg(graph.to_pcalg(kind=PcalgKind.CPDAG)) == graph
    else:
        refused(GraphError, "amat.cpdag", graph.to_pcalg, kind=PcalgKind.CPDAG)


def test_pcalg_conventions() -> None:
    graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --- c"])
    # amat.cpdag: amat[a, b] = 0 and amat[b, a] = 1 is a --> b; both 1 is a --- b.
    cpdag = graph.to_pcalg(kind=PcalgKind.CPDAG)
    assert cpdag.amat.tolist() == [[0, 0, 0], [1, 0, 1], [0, 1, 0]] and cpdag.names == (
        "a",
        "b",
        "c",
    )
    # amat.pag: amat[a, b] = 2 and amat[b, a] = 3 is a --> b.
    pag = graph.to_pcalg()
    assert pag.kind is PcalgKind.PAG and pag.amat.tolist() == [[0, 2, 0], [3, 0, 3], [0, 3, 0]]
    with pytest.raises(GraphError, match="0 and 1"):
        from_pcalg(PcalgGraph(np.array([[0, 2], [2, 0]]), PcalgKind.CPDAG, ("a", "b")))


def test_causal_learn_convention() -> None:
    names = ["i", "j"]
    expected = {
        "i --> j": [[0, -1], [1, 0]],  # graph[j, i] = 1 and graph[i, j] = -1
        "i --- j": [[0, -1], [-1, 0]],
        "i <-> j": [[0, 1], [1, 0]],
        "i o-o j": [[0, 2], [2, 0]],
        "i o-> j": [[0, 2], [1, 0]],  # the circle is at i, which is row i
    }
    for edge, matrix in expected.items():
        assert MixedGraph.from_edges(names, [edge]).to_causal_learn().tolist() == matrix, edge
    refused(
        GraphError, "-1, 0, 1 and 2", from_causal_learn, np.array([[0, 5], [1, 0]]), names=names
    )
    refused(GraphError, "shape", from_causal_learn, np.zeros((3, 3), int), names=names)


def test_networkx_dag_is_the_ordinary_digraph() -> None:
    dag = random_dag(8, expected_degree=3, seed=5)
    graph = MixedGraph.from_dag(dag)
    back = graph.to_networkx()
    assert set(back.edges) == set(dag.edges) and list(back.nodes) == list(dag.nodes)
    assert MixedGraph.from_dag(back) == graph


def test_networkx_arcs_and_attributes() -> None:
    graph = MixedGraph.from_edges(
        ["a", "b", "c", "d"], ["a o-> b", "b --- c", "c <-> d"]
    ).to_networkx()
    assert set(graph.edges) == {("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "c")}
    assert graph.edges["a", "b"] == {"source_mark": "circle", "target_mark": "arrow"}
    plain = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b")])
    assert from_networkx(plain) == MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --- c"])


@pytest.mark.parametrize(
    "arcs",
    [
        [("a", "b", {"source_mark": "tail"})],
        [("a", "b", {"source_mark": "tail", "target_mark": "star"})],
        [("a", "b", {"source_mark": "tail", "target_mark": "arrow"}), ("b", "a", {})],
        [
            (x, y, {"source_mark": "tail", "target_mark": "arrow"})
            for x, y in (("a", "b"), ("b", "a"))
        ],
    ],
)
def test_networkx_contradictions_are_refused(arcs: list[tuple[str, str, dict[str, str]]]) -> None:
    graph = nx.DiGraph()
    graph.add_edges_from(arcs)
    pytest.raises(GraphError, from_networkx, graph)


def test_dot_text() -> None:
    text = MixedGraph.from_edges(['say "x"', "b"], ['say "x" o-> b']).to_dot()
    assert '  "say \\"x\\"" -> "b" [dir=both, arrowtail=odot, arrowhead=normal];' in text.split(
        "\n"
    )
    refused(FormatError, "line 1", from_dot, "graph {\n}\n")
    refused(FormatError, "line 3", from_dot, 'digraph {\n  "a";\n  a -> b;\n}\n')


def test_tetrad_text() -> None:
    graph = MixedGraph.from_edges(["a", "b", "c"], ["b --> a", "b o-o c"])
    assert graph.to_tetrad() == "Graph Nodes:\na;b;c\n\nGraph Edges:\n1. b --> a\n2. b o-o c\n"
    text = (
        "Graph Nodes:\na,b,c\n\nGraph Edges:\n1. b --> a dd nl\n2. b o-o c\n\nGraph "
        "Attributes:\nBIC: -3.5\n"
    )
    assert from_tetrad(text) == graph
    assert from_tetrad(MixedGraph.empty(["a"]).to_tetrad()) == MixedGraph.empty(["a"])


@pytest.mark.parametrize("name", ["a b", "a;b", "a,b", "(a)", "a\n"])
def test_tetrad_refuses_names_it_cannot_carry(name: str) -> None:
    refused(GraphError, "rename|use no space", MixedGraph.empty([name]).to_tetrad)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;b\n", "line 1"),
        ("Graph Nodes:\na;b\n", "Graph Edges"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a -> b\n", "line 4"),
        ("Graph Nodes:\na;b\nGraph Edges:\na --> b\n", "line 4"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a --> z\n", "line 4"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a --> b what\n", "line 4"),
        ("Graph Nodes:\na;(L)\nGraph Edges:\n", "line 2"),
    ],
)
def test_broken_tetrad_text_is_refused_with_its_line(text: str, message: str) -> None:
    refused(FormatError, message, from_tetrad, text)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"names": "ab"},
        {"edges": [["a", "b"]]},
        {"edges": [["a", "->", "b"]]},
    ],
)
def test_broken_json_is_refused(change: dict[str, object]) -> None:
    value = MixedGraph.from_edges(["a", "b"], ["a --> b"]).to_json_dict()
    assert value["edges"] == [["a", "-->", "b"]]
    pytest.raises(FormatError, from_json_dict, {**value, **change})


def test_marks_are_plain_integers_outside() -> None:
    graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
    assert np.issubdtype(graph.to_pcalg().amat.dtype, np.integer)
    edge = graph.edge("a", "b")
    assert edge is not None and edge.mark_a is Mark.TAIL and edge.mark_b is Mark.ARROW
