"""Graphs with all nine kinds of edge in every format, and what each format says of a circle."""

from __future__ import annotations

import importlib.util
import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import FormatError, GraphError
from jaxcd.graphs import (
    Mark,
    MixedGraph,
    PcalgKind,
    dag_to_mag,
    from_causal_learn,
    from_dot,
    from_json_dict,
    from_networkx,
    from_pcalg,
    from_tetrad,
    random_dag,
)
from jaxcd.graphs.edges import SYMBOLS
from tests.helpers import refused

# symbol: amat.pag (at (a, b), at (b, a)), causal-learn (at (a, b), at (b, a)), DOT (tail, head),
# arcs of networkx. Written out from the documentation of each tool, not computed.
FORMATS = {
    "---": ((3, 3), (-1, -1), ("none", "none"), "ab ba"),
    "--o": ((1, 3), (-1, 2), ("none", "odot"), "ab ba"),
    "-->": ((2, 3), (-1, 1), ("none", "normal"), "ab"),
    "o--": ((3, 1), (2, -1), ("odot", "none"), "ab ba"),
    "o-o": ((1, 1), (2, 2), ("odot", "odot"), "ab ba"),
    "o->": ((2, 1), (2, 1), ("odot", "normal"), "ab"),
    "<--": ((3, 2), (1, -1), ("normal", "none"), "ba"),
    "<-o": ((1, 2), (1, 2), ("normal", "odot"), "ba"),
    "<->": ((2, 2), (1, 1), ("normal", "normal"), "ab ba"),
}

names = st.lists(
    st.text("abcXYZ_019.", min_size=1, max_size=5), unique=True, min_size=2, max_size=6
)


@st.composite
def graphs(draw: st.DrawFn) -> MixedGraph:
    nodes = draw(names)
    edges = []
    for a, b in itertools.combinations(nodes, 2):
        symbol = draw(st.none() | st.sampled_from(sorted(SYMBOLS)))
        edges += [f"{a} {symbol} {b}"] if symbol else []
    return MixedGraph.from_edges(nodes, edges)


def round_trips(graph: MixedGraph) -> None:
    assert from_pcalg(graph.to_pcalg()) == graph
    assert from_causal_learn(graph.to_causal_learn(), names=graph.names) == graph
    assert from_tetrad(graph.to_tetrad()) == graph
    assert from_networkx(graph.to_networkx()) == graph
    assert from_dot(graph.to_dot()) == graph
    assert from_json_dict(json.loads(json.dumps(graph.to_json_dict()))) == graph


@settings(max_examples=80)
@given(graphs())
def test_every_mixture_of_the_nine_edges_round_trips(graph: MixedGraph) -> None:
    round_trips(graph)


@pytest.mark.parametrize("seed", range(10))
def test_mags_with_latent_and_selected_variables_round_trip(seed: int) -> None:
    dag = random_dag(9, expected_degree=3, seed=seed)
    round_trips(dag_to_mag(dag, latent=["x0", "x1"], selected=["x2"]))


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_each_symbol_in_each_format(symbol: str) -> None:
    assert set(FORMATS) == set(SYMBOLS)
    pcalg, causal_learn, (tail, head), arcs = FORMATS[symbol]
    graph = MixedGraph.from_edges(["a", "b"], [f"a {symbol} b"])
    round_trips(graph)
    amat = graph.to_pcalg().amat
    assert (amat[0, 1], amat[1, 0]) == pcalg
    matrix = graph.to_causal_learn()
    assert (matrix[0, 1], matrix[1, 0]) == causal_learn
    lines = graph.to_dot().split("\n")
    forwards = f'  "a" -> "b" [dir=both, arrowtail={tail}, arrowhead={head}];'
    backwards = f'  "b" -> "a" [dir=both, arrowtail={head}, arrowhead={tail}];'
    assert (forwards in lines) != (backwards in lines) or forwards == backwards
    assert sorted(u + v for u, v in graph.to_networkx().edges) == arcs.split()
    # Tetrad's text is read in both directions.
    for text in (f"1. a {symbol} b", f"1. b {symbol[::-1].translate(str.maketrans('<>', '><'))} a"):
        assert from_tetrad(f"Graph Nodes:\na;b\n\nGraph Edges:\n{text}\n") == graph
    if symbol not in ("---", "-->", "<--"):
        refused(GraphError, "amat.cpdag has no code", graph.to_pcalg, kind=PcalgKind.CPDAG)


def test_what_tetrad_writes_after_the_edges_is_not_read() -> None:
    text = (
        "Graph Nodes:\nX1;X2;X3;X4\n\nGraph Edges:\n1. X1 o-> X2 pd nl\n2. X2 --> X4 dd nl\n3. X3 "
        "<-> X2\n4. X1 o-o X3\n"
        "\nGraph Attributes:\nScore: -5131.9\n"
    )
    expected = MixedGraph.from_edges(
        ["X1", "X2", "X3", "X4"], ["X1 o-> X2", "X2 --> X4", "X3 <-> X2", "X1 o-o X3"]
    )
    assert from_tetrad(text) == expected
    edges = text[: text.index("\nGraph Attributes")]
    for later in (
        "Ambiguous triples (i.e. list of triples for which there is ambiguous data about whether "
        "they are colliders "
        "or not):\n<X1, X2, X3>\n",
        "Underline triples:\n<X1, X2, X3>\n",
        "Dotted underline triples:\n<X1, X2, X3>\n",
        "Graph Node Attributes:\nScore: [X1: 1.0]\n",
    ):
        assert from_tetrad(edges + "\n\n" + later) == expected
    for broken in ("Some triples:\n", "X1 o-> X2\n", "5. X1 *-> X4\n"):
        refused(FormatError, "line 9", from_tetrad, edges + broken)


def test_codes_of_causal_learn_for_two_edges_at_once_are_refused() -> None:
    """4 and 5 are an edge with a bidirected one beside it: no mark of a graph with one edge a
    pair.
    """
    for code in (3, 4, 5):
        with pytest.raises(GraphError, match="-1, 0, 1 and 2"):
            from_causal_learn(np.array([[0, code], [1, 0]]), names="ab")
    for amat in ([[0, 1], [0, 0]], [[0, 4], [1, 0]], [[0, -1], [1, 0]]):
        pytest.raises(GraphError, MixedGraph, ("a", "b"), np.array(amat))


@pytest.mark.filterwarnings("ignore")
# it stores no edge for o--
@pytest.mark.parametrize("symbol", [symbol for symbol in SYMBOLS if symbol != "o--"])
def test_causal_learn_itself_holds_the_same_matrix_and_text(symbol: str) -> None:
    if importlib.util.find_spec("causallearn") is None:
        pytest.skip("causal-learn is not installed")
    edge, endpoint, general, node = (
        importlib.import_module(f"causallearn.graph.{name}")
        for name in ("Edge", "Endpoint", "GeneralGraph", "GraphNode")
    )
    ends = {
        Mark.TAIL: endpoint.Endpoint.TAIL,
        Mark.ARROW: endpoint.Endpoint.ARROW,
        Mark.CIRCLE: endpoint.Endpoint.CIRCLE,
    }
    a, b = node.GraphNode("a"), node.GraphNode("b")
    theirs = general.GeneralGraph([a, b])
    left, right = SYMBOLS[symbol]
    theirs.add_edge(edge.Edge(a, b, ends[left], ends[right]))
    ours = MixedGraph.from_edges(["a", "b"], [f"a {symbol} b"])
    assert theirs.graph.tolist() == ours.to_causal_learn().tolist()
    assert from_tetrad(str(theirs)) == ours
