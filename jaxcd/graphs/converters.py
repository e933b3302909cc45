"""Mixed graphs in the formats of other tools, and back.

| format | marks it can carry | convention |
|---|---|---|
| JSON | all | names, and edges as ``[a, "-->", b]`` |
| networkx | all | a DiGraph; the marks are attributes of the arcs |
| DOT | all | one edge a line, for Graphviz; only our own text is read back |
| Tetrad | all | "Graph Nodes:" and "Graph Edges:" text |
| causal-learn | all | ``graph[j, i]`` is the code at j: -1 tail, 1 arrowhead, 2 circle |
| pcalg amat.pag | all | ``amat[i, j]`` is the code at j: 1 circle, 2 arrowhead, 3 tail |
| amat.cpdag | directed, undirected | ``amat[a, b] = 0`` and ``amat[b, a] = 1`` is a --> b |

Every ``to_`` has its ``from_``, and ``from_x(to_x(graph)) == graph``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, final

import networkx as nx
import numpy as np

from jaxcd.errors import FormatError, GraphError
from jaxcd.graphs.edges import SYMBOLS, Edge, Mark
from jaxcd.graphs.mixed_graph import MixedGraph
from jaxcd.graphs.text_formats import from_dot, from_tetrad, to_dot, to_tetrad

__all__ = [
    "PcalgGraph",
    "PcalgKind",
    "from_causal_learn",
    "from_dot",
    "from_json_dict",
    "from_networkx",
    "from_pcalg",
    "from_tetrad",
    "to_causal_learn",
    "to_dot",
    "to_json_dict",
    "to_networkx",
    "to_pcalg",
    "to_tetrad",
]

# ---- pcalg
# --------------------------------------------------------------------------------------------------


class PcalgKind(Enum):
    """The two codings of a graph as an adjacency matrix in pcalg (its help page ``amatType``)."""

    PAG = "amat.pag"
    CPDAG = "amat.cpdag"


@final
@dataclass(frozen=True, eq=False)
class PcalgGraph:
    """A graph as pcalg holds it.

    Args:
        amat: Integer matrix (d, d).  ``amat.pag``: ``amat[i, j]`` is the mark at j (0 none, 1
            circle, 2 arrowhead, 3 tail).  ``amat.cpdag``: ``amat[a, b] = 0`` and ``amat[b, a] = 1``
            is a --> b; 1 and 1 is a --- b.
        kind: Which of the two codings it is.
        names: The d node names.
    """

    amat: np.ndarray
    kind: PcalgKind
    names: tuple[str, ...]


def to_pcalg(graph: MixedGraph, *, kind: PcalgKind = PcalgKind.PAG) -> PcalgGraph:
    """The adjacency matrix of pcalg.

    Args:
        graph: Any graph; for ``PcalgKind.CPDAG`` its edges must be directed or undirected.
        kind: The coding.

    Returns:
        The matrix with its kind and its names.

    Raises:
        GraphError: If the coding cannot express an edge of the graph.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_pcalg
        >>> graph = to_pcalg(MixedGraph.from_edges(["a", "b"], ["a o-> b"]))
        >>> graph.kind.name, graph.amat.tolist()
        ('PAG', [[0, 2], [1, 0]])
    """
    if kind is PcalgKind.PAG:
        return PcalgGraph(graph.marks.astype(np.int64), kind, graph.names)
    if kind is not PcalgKind.CPDAG:
        raise GraphError(f"kind must be a PcalgKind, got {kind!r}")
    for edge in graph.edges():
        if edge.symbol not in ("-->", "---"):
            raise GraphError(f"amat.cpdag has no code for {edge}; use PcalgKind.PAG")
    # Entry (i, j) is 1 where the mark at j is a tail: a --> b has its tail at a, so amat[b, a] = 1
    # and amat[a, b] = 0.
    return PcalgGraph((graph.marks == Mark.TAIL).astype(np.int64), kind, graph.names)


def from_pcalg(value: PcalgGraph) -> MixedGraph:
    """The graph of an adjacency matrix of pcalg; the inverse of :func:`to_pcalg`.

    Args:
        value: the matrix with its kind and names.

    Returns:
        The graph.

    Raises:
        GraphError: If the matrix is not one of its kind.

    Example:
        >>> from jaxcd.graphs import MixedGraph, from_pcalg, to_pcalg
        >>> print(from_pcalg(to_pcalg(MixedGraph.from_edges(["a", "b"], ["a o-> b"]))))
        a o-> b
    """
    amat = np.asarray(value.amat)
    if value.kind is PcalgKind.PAG:
        return MixedGraph(value.names, amat)
    if value.kind is not PcalgKind.CPDAG:
        raise GraphError(f"kind must be a PcalgKind, got {value.kind!r}")
    d = len(value.names)
    if amat.shape != (d, d) or not np.isin(amat, (0, 1)).all():
        raise GraphError(
            f"amat.cpdag must be a ({d}, {d}) matrix of 0 and 1, got shape {amat.shape}:\n{amat}"
        )
    tail = amat == 1
    return MixedGraph(
        value.names, np.where(tail, int(Mark.TAIL), np.where(tail.T, int(Mark.ARROW), 0))
    )


# ---- causal-learn
# --------------------------------------------------------------------------------------------------

_CAUSAL_LEARN = {Mark.NONE: 0, Mark.CIRCLE: 2, Mark.ARROW: 1, Mark.TAIL: -1}


def to_causal_learn(graph: MixedGraph) -> np.ndarray:
    """The matrix of causal-learn's ``GeneralGraph.graph``.

    ``matrix[j, i] = 1`` and ``matrix[i, j] = -1`` is i --> j; -1 and -1 undirected; 1 and 1
    bidirected; 2 is a circle. So the code of the mark at j stands in row j: the transpose of
    ``marks``, with other codes.

    Args:
        graph: Any graph.

    Returns:
        Integer matrix (d, d).  It carries no names: keep ``graph.names``.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_causal_learn
        >>> to_causal_learn(MixedGraph.from_edges(["a", "b"], ["a --> b"])).tolist()
        [[0, -1], [1, 0]]
    """
    codes = np.array([_CAUSAL_LEARN[mark] for mark in Mark], dtype=np.int64)
    return codes[graph.marks].T


def from_causal_learn(matrix: np.ndarray, *, names: tuple[str, ...] | list[str]) -> MixedGraph:
    """The graph of causal-learn's matrix; the inverse of :func:`to_causal_learn`.

    Args:
        matrix: Integer matrix (d, d) with codes -1, 0, 1, 2.
        names: The d node names.

    Returns:
        The graph.

    Raises:
        GraphError: If a code is unknown, or the matrix is malformed.

    Example:
        >>> import numpy as np
        >>> from jaxcd.graphs import from_causal_learn
        >>> print(from_causal_learn(np.array([[0, -1], [1, 0]]), names=["a", "b"]))
        a --> b
    """
    array = np.asarray(matrix)
    marks = np.zeros(array.shape, dtype=np.int8)
    known = np.zeros(array.shape, dtype=bool)
    for mark, code in _CAUSAL_LEARN.items():
        marks[array == code] = mark
        known |= array == code
    if not known.all():
        raise GraphError(f"matrix must hold -1, 0, 1 and 2 only, got {array[~known].tolist()}")
    return MixedGraph(tuple(names), marks.T)


# ---- networkx
# --------------------------------------------------------------------------------------------------


def to_networkx(graph: MixedGraph) -> nx.DiGraph:
    """A networkx DiGraph with the marks as attributes.

    An edge with exactly one arrowhead becomes one arc, into the arrowhead; any other edge becomes
    two opposite arcs. So a DAG becomes the ordinary DiGraph, and an undirected edge can be walked
    both ways.  Each arc (u, v) has ``source_mark`` (at u) and ``target_mark`` (at v), each
    ``"tail"``, ``"arrow"`` or ``"circle"``.

    Args:
        graph: Any graph.

    Returns:
        The DiGraph, with the names as nodes, in order.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_networkx
        >>> sorted(to_networkx(MixedGraph.from_edges(["a", "b"], ["a --- b"])).edges)
        [('a', 'b'), ('b', 'a')]
    """
    result = nx.DiGraph()
    result.add_nodes_from(graph.names)
    for edge in graph.edges():
        # Canonical edges have their only arrowhead at the right.
        one_way = edge.mark_b is Mark.ARROW and edge.mark_a is not Mark.ARROW
        for e in (edge,) if one_way else (edge, edge.reversed()):
            result.add_edge(
                e.a, e.b, source_mark=e.mark_a.name.lower(), target_mark=e.mark_b.name.lower()
            )
    return result


def from_networkx(graph: nx.DiGraph) -> MixedGraph:
    """The mixed graph of a networkx DiGraph; the inverse of :func:`to_networkx`.

    Arcs without mark attributes are read as in a plain DiGraph: one arc is a directed edge, two
    opposite arcs are an undirected edge.  Cycles are allowed.

    Args:
        graph: A DiGraph; its nodes are named ``str(node)``.

    Returns:
        The mixed graph.

    Raises:
        GraphError: If ``graph`` is undirected or a multigraph, or an attribute is missing, unknown
            or contradictory.

    Example:
        >>> import networkx as nx
        >>> from jaxcd.graphs import from_networkx
        >>> print(from_networkx(nx.DiGraph([("a", "b")])))
        a --> b
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise GraphError(f"graph must be a networkx DiGraph, got {type(graph).__name__}")
    edges: dict[frozenset[str], Edge] = {}
    for u, v, attributes in graph.edges(data=True):
        back = graph.get_edge_data(v, u, default=attributes)
        keys = {"source_mark", "target_mark"} & set(attributes)
        if len(keys) == 1 or keys != {"source_mark", "target_mark"} & set(back):
            raise GraphError(
                f"arc {u!r} -> {v!r}: give both source_mark and target_mark, on both arcs of a pair"
            )
        if keys:
            edge = Edge(
                str(u), str(v), _mark(attributes["source_mark"]), _mark(attributes["target_mark"])
            )
        else:
            edge = Edge(
                str(u), str(v), Mark.TAIL, Mark.TAIL if graph.has_edge(v, u) else Mark.ARROW
            )
        earlier = edges.setdefault(frozenset((edge.a, edge.b)), edge)
        if earlier not in (edge, edge.reversed()):
            raise GraphError(
                f"the two arcs between {u!r} and {v!r} contradict each other: {earlier} and {edge}"
            )
    return MixedGraph.from_edges((str(node) for node in graph.nodes), edges.values())


def _mark(text: Any) -> Mark:
    for mark in (Mark.TAIL, Mark.ARROW, Mark.CIRCLE):
        if text == mark.name.lower():
            return mark
    raise GraphError(f"a mark attribute is 'tail', 'arrow' or 'circle', got {text!r}")


# ---- JSON
# --------------------------------------------------------------------------------------------------

_JSON_FORMAT = "jaxcd.MixedGraph"
_JSON_VERSION = 1


def to_json_dict(graph: MixedGraph) -> dict[str, Any]:
    """A dictionary of plain lists and strings for ``json.dump``.

    Args:
        graph: Any graph.

    Returns:
        ``{"format": "jaxcd.MixedGraph", "version": 1, "names": [...], "edges": [[a, "-->", b],
        ...]}``.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_json_dict
        >>> to_json_dict(MixedGraph.from_edges(["a", "b"], ["a --> b"]))["edges"]
        [['a', '-->', 'b']]
    """
    edges = [[edge.a, edge.symbol, edge.b] for edge in graph.edges()]
    return {
        "format": _JSON_FORMAT,
        "version": _JSON_VERSION,
        "names": list(graph.names),
        "edges": edges,
    }


def from_json_dict(value: Any) -> MixedGraph:
    """The graph of such a dictionary; the inverse of :func:`to_json_dict`.

    Args:
        value: what :func:`to_json_dict` made.

    Returns:
        The graph.

    Raises:
        FormatError: If the dictionary is not of that form.
        GraphError: If the names or edges make no graph.

    Example:
        >>> from jaxcd.graphs import MixedGraph, from_json_dict, to_json_dict
        >>> print(from_json_dict(to_json_dict(MixedGraph.from_edges(["a", "b"], ["a --- b"]))))
        a --- b
    """
    if (
        not isinstance(value, dict)
        or value.get("format") != _JSON_FORMAT
        or value.get("version") != _JSON_VERSION
    ):
        raise FormatError(
            f'a graph in JSON has "format": "{_JSON_FORMAT}" and "version": {_JSON_VERSION}'
        )
    names, entries = value.get("names"), value.get("edges")
    if not isinstance(names, list) or not isinstance(entries, list):
        raise FormatError('a graph in JSON has a list "names" and a list "edges"')
    edges = []
    for entry in entries:
        if not (
            isinstance(entry, list)
            and len(entry) == 3
            and all(isinstance(part, str) for part in entry)
        ):
            raise FormatError(f'"edges" holds lists of three strings [a, "-->", b], got {entry!r}')
        a, symbol, b = entry
        if symbol not in SYMBOLS:
            raise FormatError(f"edge {entry!r}: the symbol is one of {', '.join(SYMBOLS)}")
        edges.append(Edge(a, b, *SYMBOLS[symbol]))
    return MixedGraph.from_edges(names, edges)
