"""Mixed graphs as text: Graphviz's DOT and the format of Tetrad."""

from __future__ import annotations

import re

from jaxcd.errors import FormatError, GraphError
from jaxcd.graphs.edges import Edge, Mark, parse_edge
from jaxcd.graphs.mixed_graph import MixedGraph

# ---- DOT
# --------------------------------------------------------------------------------------------------

_DOT_SHAPES = {Mark.TAIL: "none", Mark.ARROW: "normal", Mark.CIRCLE: "odot"}
_DOT_MARKS = {shape: mark for mark, shape in _DOT_SHAPES.items()}
_DOT_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_DOT_UNESCAPES = {escaped[1]: plain for plain, escaped in _DOT_ESCAPES.items()}
_STRING = r'"((?:[^"\\]|\\.)*)"'
_DOT_NODE = re.compile(rf"{_STRING};")
_DOT_EDGE = re.compile(rf"{_STRING} -> {_STRING} \[dir=both, arrowtail=(\w+), arrowhead=(\w+)\];")


def to_dot(graph: MixedGraph) -> str:
    """Text for Graphviz, one node or edge a line.

    Args:
        graph: Any graph.

    Returns:
        A ``digraph``; each edge has ``dir=both`` and the shapes ``none`` (tail), ``normal``
        (arrow), ``odot`` (circle).

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_dot
        >>> print(to_dot(MixedGraph.from_edges(["a", "b"], ["a --> b"])))
        digraph {
          "a";
          "b";
          "a" -> "b" [dir=both, arrowtail=none, arrowhead=normal];
        }
        <BLANKLINE>
    """
    lines = ["digraph {"]
    lines += [f"  {_quoted(name)};" for name in graph.names]
    lines += [
        f"  {_quoted(edge.a)} -> {_quoted(edge.b)} "
        f"[dir=both, arrowtail={_DOT_SHAPES[edge.mark_a]}, arrowhead={_DOT_SHAPES[edge.mark_b]}];"
        for edge in graph.edges()
    ]
    return "\n".join([*lines, "}"]) + "\n"


def from_dot(text: str) -> MixedGraph:
    """The graph of a text made by :func:`to_dot`; other DOT files are refused.

    Args:
        text: the content of a file that :func:`to_dot` made.

    Returns:
        The graph.

    Raises:
        FormatError: If a line is not of that form; the message gives its number.
        GraphError: If the nodes and edges make no graph.

    Example:
        >>> from jaxcd.graphs import MixedGraph, from_dot, to_dot
        >>> print(from_dot(to_dot(MixedGraph.from_edges(["a", "b"], ["a <-> b"]))))
        a <-> b
    """
    # Not splitlines(): names may contain the other line separators of Unicode.
    lines = [line.removesuffix("\r") for line in text.rstrip("\r\n").split("\n")]
    if lines[0] != "digraph {" or lines[-1] != "}":
        raise FormatError(
            'line 1: a graph written by to_dot has the first line "digraph {" and the last line "}"'
        )
    names: list[str] = []
    edges: list[Edge] = []
    for number, line in enumerate(lines[1:-1], start=2):
        node, edge = _DOT_NODE.fullmatch(line.strip(" ")), _DOT_EDGE.fullmatch(line.strip(" "))
        if node:
            names.append(_unquoted(node[1]))
        elif edge and edge[3] in _DOT_MARKS and edge[4] in _DOT_MARKS:
            edges.append(
                Edge(
                    _unquoted(edge[1]), _unquoted(edge[2]), _DOT_MARKS[edge[3]], _DOT_MARKS[edge[4]]
                )
            )
        else:
            raise FormatError(
                f"line {number}: neither a node nor an edge as written by to_dot: {line!r}"
            )
    return MixedGraph.from_edges(names, edges)


def _quoted(name: str) -> str:
    return '"' + "".join(_DOT_ESCAPES.get(character, character) for character in name) + '"'


def _unquoted(body: str) -> str:
    return re.sub(r"\\(.)", lambda match: _DOT_UNESCAPES.get(match[1], match[0]), body)


# ---- Tetrad
# --------------------------------------------------------------------------------------------------

_TETRAD_NAME = re.compile(r"[^\s;,(][^\s;,]*")
# The sections that may follow the edges; the heading of the triples is a long sentence.
_TETRAD_LATER = re.compile(
    r"Graph .*:|Ambiguous triples\b.*|Underline triples:|Dotted underline triples:"
)
# Tetrad may append to an edge of a PAG whether it is definitely direct (dd, pd) or visible (nl,
# pl).
_TETRAD_PROPERTIES = {"dd", "pd", "nl", "pl"}


def to_tetrad(graph: MixedGraph) -> str:
    """Text in the format of Tetrad: a section "Graph Nodes:" and a numbered section "Graph
    Edges:".

    Args:
        graph: Any graph whose names have no space, comma or semicolon and no opening parenthesis at
            the start (Tetrad separates names by the former and marks latent variables by the
            latter).

    Returns:
        The text.

    Raises:
        GraphError: If a name cannot be written in this format.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_tetrad
        >>> print(to_tetrad(MixedGraph.from_edges(["a", "b"], ["a --> b"])))
        Graph Nodes:
        a;b
        <BLANKLINE>
        Graph Edges:
        1. a --> b
        <BLANKLINE>
    """
    for name in graph.names:
        if not _TETRAD_NAME.fullmatch(name):
            raise GraphError(
                f"Tetrad's text cannot carry the name {name!r}; use no space, ',', ';' or leading "
                "'('"
            )
    edges = [f"{k}. {edge}" for k, edge in enumerate(graph.edges(), start=1)]
    return "\n".join(["Graph Nodes:", ";".join(graph.names), "", "Graph Edges:", *edges]) + "\n"


def from_tetrad(text: str) -> MixedGraph:
    """The graph of a text in Tetrad's format; the inverse of :func:`to_tetrad`.

    The properties that Tetrad may append to an edge (dd, pd, nl, pl), and sections after the edges
    (attributes, ambiguous and underlined triples), are not read.

    Args:
        text: the content of a graph file of Tetrad.

    Returns:
        The graph.

    Raises:
        FormatError: If a line is not of that format; the message gives its number.
        GraphError: If the nodes and edges make no graph.

    Example:
        >>> from jaxcd.graphs import MixedGraph, from_tetrad, to_tetrad
        >>> print(from_tetrad(to_tetrad(MixedGraph.from_edges(["a", "b"], ["a o-> b"]))))
        a o-> b
    """
    names: list[str] = []
    edges: list[Edge] = []
    section = ""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line:
            continue
        if line in ("Graph Nodes:", "Graph Edges:"):
            section = line
        elif section == "Graph Nodes:":
            names += [name.strip() for name in re.split("[;,]", line)]
            if not all(_TETRAD_NAME.fullmatch(name) for name in names):
                raise FormatError(
                    f"line {number}: not a list of observed variables separated by ';': {line!r}"
                )
        elif section == "Graph Edges:":
            numbered = re.fullmatch(r"\d+\. (\S+) +(\S+) +(\S+)((?: +\S+)*)", line)
            if numbered is None and _TETRAD_LATER.fullmatch(line):
                break
            if numbered is None or not set(numbered[4].split()) <= _TETRAD_PROPERTIES:
                raise FormatError(f"line {number}: not an edge such as '1. a --> b': {line!r}")
            try:
                edges.append(parse_edge(f"{numbered[1]} {numbered[2]} {numbered[3]}", names))
            except GraphError as error:
                raise FormatError(f"line {number}: {error}") from None
        else:
            raise FormatError(
                f"line {number}: a Tetrad graph starts with 'Graph Nodes:', got {line!r}"
            )
    if section != "Graph Edges:":
        raise FormatError(
            "the text has no section 'Graph Edges:'; write it even if there are no edges"
        )
    return MixedGraph.from_edges(names, edges)
