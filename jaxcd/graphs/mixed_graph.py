"""Mixed graphs: one class for DAGs, CPDAGs, MAGs and PAGs.

A mixed graph is its names and its matrix of marks: ``marks[i, j]`` is the mark **at j** on the edge
between i and j, in the codes of pcalg's ``amat.pag``: 0 none, 1 circle, 2 arrowhead, 3 tail.  So
``i --> j`` is ``marks[i, j] == 2`` and ``marks[j, i] == 3``, and an undirected edge of a CPDAG is 3
and 3.

>>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --- c"])
>>> print(graph)
a --> b
b --- c
>>> graph.parents("b"), graph.neighbors("b")
(('a',), ('a', 'c'))
>>> graph.marks.tolist()
[[0, 2, 0], [3, 0, 3], [0, 3, 0]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import networkx as nx
import numpy as np

from jaxcd.checks import check_listed, counted, is_whole, printable
from jaxcd.errors import GraphError
from jaxcd.graphs.edges import SYMBOLS, Edge, Mark, parse_edge

if TYPE_CHECKING:
    from jaxcd.graphs.converters import PcalgGraph, PcalgKind


def arc_marks(arcs: np.ndarray) -> np.ndarray:
    """The marks of a graph with the arcs i -> j where ``arcs``, bool (d, d), is true, and no
    others.
    """
    return np.where(arcs, int(Mark.ARROW), np.where(arcs.T, int(Mark.TAIL), int(Mark.NONE)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixedGraph:
    """A graph with a mark (tail, arrowhead or circle) at each end of every edge.

    Equality and hash are by value: the same names in the same order, and the same marks.

    Args:
        names: The d node names: different, non-empty strings.
        marks: Integers 0..3 of shape (d, d); ``marks[i, j]`` is the mark at j on the edge between i
            and j.  The diagonal is zero, and ``marks[i, j]`` is zero exactly where ``marks[j, i]``
            is.  Stored as int8, read-only.

    Raises:
        GraphError: If a name or the matrix is not as above.

    Source:
        The coding is that of ``amat.pag`` in pcalg (Kalisch et al. 2012, Journal of Statistical
        Software 47(11)).

    Example:
        >>> import jaxcd
        >>> graph = jaxcd.MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b <-> c"])
        >>> graph.parents("b"), graph.marks.tolist()
        (('a',), [[0, 2, 0], [3, 0, 2], [0, 2, 0]])
    """

    names: tuple[str, ...]
    marks: np.ndarray

    def __post_init__(self) -> None:
        names = _checked_names(self.names)
        marks = _checked_marks(self.marks, names)
        object.__setattr__(self, "names", names)
        # A view of immutable bytes: unlike a cleared write flag, this cannot be undone.
        frozen = np.frombuffer(marks.tobytes(), dtype=np.int8).reshape(marks.shape)
        object.__setattr__(self, "marks", frozen)
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(names)})

    # ---- making one
    # ----------------------------------------------------------------------------------------------

    @classmethod
    def empty(cls, names: Iterable[str]) -> MixedGraph:
        """The graph on ``names`` without edges."""
        names = _checked_names(names)
        return cls(names, np.zeros((len(names), len(names)), dtype=np.int8))

    @classmethod
    def complete_undirected(cls, names: Iterable[str]) -> MixedGraph:
        """The graph on ``names`` with an undirected edge between every two nodes."""
        names = _checked_names(names)
        marks = np.full((len(names), len(names)), int(Mark.TAIL), dtype=np.int8)
        np.fill_diagonal(marks, int(Mark.NONE))
        return cls(names, marks)

    @classmethod
    def from_edges(cls, names: Iterable[str], edges: Iterable[str | Edge]) -> MixedGraph:
        """The graph on ``names`` with the given edges.

        Args:
            names: The node names, in order.
            edges: Edges as text (``"a --> b"``, ``"a --- b"``, ``"a <-> b"``, ``"a o-> b"``, ...)
                or as ``Edge``.

        Returns:
            The graph.

        Raises:
            GraphError: If an edge cannot be read, has an unknown end, or joins a pair that already
                has an edge.
        """
        names = _checked_names(names)
        index = {name: i for i, name in enumerate(names)}
        marks = np.zeros((len(names), len(names)), dtype=np.int8)
        for item in edges:
            edge = parse_edge(item, names) if isinstance(item, str) else item
            for end in (edge.a, edge.b):
                if end not in index:
                    raise GraphError(
                        f"edges: {edge} ends in {end!r}, which is not one of the names {names}"
                    )
            i, j = index[edge.a], index[edge.b]
            if marks[i, j]:
                raise GraphError(
                    f"edges: {edge} is a second edge between {edge.a!r} and {edge.b!r}; keep one "
                    "of them"
                )
            marks[i, j], marks[j, i] = edge.mark_b, edge.mark_a
        return cls(names, marks)

    @classmethod
    def from_arcs(cls, names: Iterable[str], arcs: np.ndarray) -> MixedGraph:
        """The graph on ``names`` with directed edges only.

        Args:
            names: The node names, in order.
            arcs: (d, d), true at (i, j) for i -> j; cycles are not looked for.

        Returns:
            The graph.

        Raises:
            GraphError: If ``arcs`` is not (d, d), joins a node to itself, or two nodes both ways.
        """
        names = _checked_names(names)
        arcs = np.asarray(arcs, dtype=bool)
        if arcs.shape != (len(names), len(names)):
            raise GraphError(
                f"arcs has the shape {arcs.shape}, and {len(names)} names want "
                f"{(len(names), len(names))}"
            )
        twice = np.argwhere(arcs & arcs.T)
        if len(twice):
            i, j = twice[0]
            raise GraphError(
                f"arcs joins {names[i]!r} and {names[j]!r} both ways; keep one of the two"
            )
        return cls(names, arc_marks(arcs))

    @classmethod
    def from_dag(cls, dag: nx.DiGraph) -> MixedGraph:
        """The mixed graph of a directed acyclic graph.

        Args:
            dag: A networkx DiGraph; attributes of its arcs are ignored.

        Returns:
            The graph whose names are ``str(node)`` in the DAG's node order.

        Raises:
            GraphError: If ``dag`` is undirected, or has a directed cycle (the message names one).
        """
        from jaxcd.graphs.dag import dag_adjacency

        nodes, adjacency = dag_adjacency(dag)
        return cls.from_arcs((str(node) for node in nodes), adjacency)

    # ---- looking at it
    # ----------------------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """Number of edges of any kind."""
        return int(np.count_nonzero(self.marks)) // 2

    @property
    def adjacency(self) -> np.ndarray:
        """Symmetric bool matrix (d, d): is there an edge of any kind between i and j?"""
        return self.marks != Mark.NONE

    @property
    def directed(self) -> np.ndarray:
        """Bool matrix (d, d): is the edge ``i --> j`` (tail at i, arrowhead at j)?"""
        return (self.marks == Mark.ARROW) & (self.marks.T == Mark.TAIL)

    @property
    def undirected(self) -> np.ndarray:
        """Symmetric bool matrix (d, d): is the edge ``i --- j`` (tails at both ends)?"""
        return (self.marks == Mark.TAIL) & (self.marks.T == Mark.TAIL)

    @property
    def bidirected(self) -> np.ndarray:
        """Symmetric bool matrix (d, d): is the edge ``i <-> j`` (arrowheads at both ends)?"""
        return (self.marks == Mark.ARROW) & (self.marks.T == Mark.ARROW)

    def index(self, name: str) -> int:
        """Position of ``name`` in ``names``; GraphError if it is not there."""
        try:
            return self._index[name]  # type: ignore[attr-defined,no-any-return]
        except (KeyError, TypeError):
            raise GraphError(f"no node {name!r} in the graph; its names are {self.names}") from None

    def adjacent(self, a: str, b: str) -> bool:
        """Is there an edge of any kind between ``a`` and ``b``?"""
        return bool(self.marks[self.index(a), self.index(b)])

    def edge(self, a: str, b: str) -> Edge | None:
        """The edge between ``a`` and ``b``, written from ``a`` to ``b``; None if there is none."""
        i, j = self.index(a), self.index(b)
        if not self.marks[i, j]:
            return None
        return Edge(a, b, Mark(int(self.marks[j, i])), Mark(int(self.marks[i, j])))

    def has_edge(self, a: str, b: str, *, symbol: str | None = None) -> bool:
        """Is there an edge between ``a`` and ``b``, and does it read ``a symbol b`` (None: any
        symbol)?
        """
        if symbol is not None and symbol not in SYMBOLS:
            raise GraphError(f"symbol is one of {', '.join(SYMBOLS)}, got {symbol!r}")
        edge = self.edge(a, b)
        return edge is not None and (symbol is None or edge.symbol == symbol)

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Nodes joined to ``name`` by an edge of any kind, in the order of ``names``."""
        return self._select(self.adjacency[self.index(name)])

    def undirected_neighbors(self, name: str) -> tuple[str, ...]:
        """Nodes x with ``x --- name``, in the order of ``names``."""
        return self._select(self.undirected[self.index(name)])

    def parents(self, name: str) -> tuple[str, ...]:
        """Nodes x with ``x --> name``, in the order of ``names``."""
        return self._select(self.directed[:, self.index(name)])

    def children(self, name: str) -> tuple[str, ...]:
        """Nodes x with ``name --> x``, in the order of ``names``."""
        return self._select(self.directed[self.index(name)])

    def edges(self) -> tuple[Edge, ...]:
        """All edges, by the positions of their ends in ``names``; each is written with its
        arrowhead to the right.
        """
        pairs = np.argwhere(np.triu(self.marks))
        found = [self.edge(self.names[i], self.names[j]) for i, j in pairs]
        return tuple(edge.canonical() for edge in found if edge is not None)

    def is_dag(self) -> bool:
        """Are all edges directed, without a directed cycle?"""
        return bool(
            (self.adjacency == (self.directed | self.directed.T)).all()
        ) and nx.is_directed_acyclic_graph(
            nx.from_numpy_array(self.directed, create_using=nx.DiGraph)
        )

    # ---- effects: see adjustment
    # ----------------------------------------------------------------------------------------------

    def adjustment_sets(
        self, x: str, y: str, *, minimal: bool = True, max_size: int | None = None
    ) -> tuple[tuple[str, ...], ...]:
        """The adjustment sets for the effect of x on y, small ones first.

        Z is one if P(y | do(x)) = sum_z P(y | x, z) P(z) in every model of the graph, which may be
        a DAG, CPDAG, MAG or PAG; see :mod:`jaxcd.graphs.adjustment`.  With a circle or ``<->`` it
        is read as a MAG or PAG, in which columns may be hidden; with neither as a DAG or CPDAG, in
        which none is.  A PAG may be without them where edges were required: then ask
        :class:`jaxcd.graphs.Adjustment` with ``is_latent=True``.

        Args:
            x: The treatment.
            y: The outcome.
            minimal: Only sets no proper subset of which is one.
            max_size: The largest size; None for all (their number can be exponential).

        Returns:
            Tuples of names; ``((),)`` where nothing need be held fixed, ``()`` where no set is
            valid.

        Raises:
            GraphError: If a name is unknown, x is y, or the graph has selection.

        Source:
            Perkovic, Textor, Kalisch, Maathuis 2018.

        Example:
            >>> import jaxcd
            >>> edges = ["a --> x", "a --> b", "b --> y", "x --> y"]
            >>> graph = jaxcd.MixedGraph.from_edges(["a", "b", "x", "y"], edges)
            >>> graph.adjustment_sets("x", "y")
            (('a',), ('b',))
        """
        from jaxcd.graphs.adjustment import Adjustment

        return tuple(Adjustment(self, x, y).sets(minimal=minimal, max_size=max_size))

    def optimal_adjustment_set(self, x: str, y: str) -> tuple[str, ...] | None:
        """The adjustment set of the smallest asymptotic variance; None where no set is valid, and
        where columns may be hidden.  See :attr:`jaxcd.graphs.adjustment.Adjustment.optimal`.
        """
        from jaxcd.graphs.adjustment import Adjustment

        return Adjustment(self, x, y).optimal

    def is_adjustment_set(self, x: str, y: str, given: Iterable[str]) -> bool:
        """Whether ``given`` is an adjustment set for the effect of x on y."""
        from jaxcd.graphs.adjustment import Adjustment

        return Adjustment(self, x, y).is_valid(given)

    def is_amenable(self, x: str, y: str) -> bool:
        """Whether every possibly directed path from x to y begins with a visible edge out of x."""
        from jaxcd.graphs.adjustment import Adjustment

        return Adjustment(self, x, y).is_amenable

    # ---- new graphs from it
    # ----------------------------------------------------------------------------------------------

    def permuted(self, order: Sequence[int] | np.ndarray) -> MixedGraph:
        """The same graph with its nodes in another order: new node k is old node ``order[k]``.

        Raises:
            GraphError: If ``order`` is not a permutation of 0..d-1.
        """
        positions = list(order)
        whole = all(is_whole(k) for k in positions)
        if not whole or sorted(positions) != list(range(self.n_nodes)):
            raise GraphError(
                f"order must be a permutation of 0..{self.n_nodes - 1}, got {positions}"
            )
        return MixedGraph(
            tuple(self.names[k] for k in positions), self.marks[np.ix_(positions, positions)]
        )

    def reordered(self, names: Sequence[str]) -> MixedGraph:
        """The same graph with its nodes in the order of ``names``.

        Raises:
            GraphError: If ``names`` is not the same set of names; the message says what differs.
        """
        names = check_listed("names", names, error=GraphError)
        missing, extra = sorted(set(self.names) - set(names)), sorted(set(names) - set(self.names))
        if missing or extra or len(names) != self.n_nodes:
            raise GraphError(
                f"names must be the graph's own names, each once: missing {missing}, unknown "
                f"{extra}"
            )
        return self.permuted([self.index(name) for name in names])

    def subgraph(self, names: Sequence[str]) -> MixedGraph:
        """The graph on ``names`` (in their order) with the edges between them."""
        names = check_listed("names", names, error=GraphError)
        positions = [self.index(name) for name in names]
        return MixedGraph(names, self.marks[np.ix_(positions, positions)])

    def skeleton(self) -> MixedGraph:
        """The same adjacencies with every edge undirected."""
        return MixedGraph(self.names, np.where(self.adjacency, int(Mark.TAIL), int(Mark.NONE)))

    # ---- other formats: see converters
    # ----------------------------------------------------------------------------------------------

    def to_networkx(self) -> nx.DiGraph:
        """As a networkx DiGraph with mark attributes; see
        :func:`jaxcd.graphs.converters.to_networkx`.
        """
        from jaxcd.graphs import converters

        return converters.to_networkx(self)

    def to_dot(self) -> str:
        """As text for Graphviz; see :func:`jaxcd.graphs.converters.to_dot`."""
        from jaxcd.graphs import converters

        return converters.to_dot(self)

    def to_pcalg(self, *, kind: PcalgKind | None = None) -> PcalgGraph:
        """As an adjacency matrix of pcalg (``amat.pag`` unless told); see
        :func:`jaxcd.graphs.converters.to_pcalg`.
        """
        from jaxcd.graphs import converters

        return converters.to_pcalg(self, kind=converters.PcalgKind.PAG if kind is None else kind)

    def to_causal_learn(self) -> np.ndarray:
        """As causal-learn's matrix; see :func:`jaxcd.graphs.converters.to_causal_learn`."""
        from jaxcd.graphs import converters

        return converters.to_causal_learn(self)

    def to_tetrad(self) -> str:
        """As Tetrad's text; see :func:`jaxcd.graphs.converters.to_tetrad`."""
        from jaxcd.graphs import converters

        return converters.to_tetrad(self)

    def to_json_dict(self) -> dict[str, Any]:
        """As a dictionary that ``json.dump`` takes; see
        :func:`jaxcd.graphs.converters.to_json_dict`.
        """
        from jaxcd.graphs import converters

        return converters.to_json_dict(self)

    @classmethod
    def from_json_dict(cls, value: Any) -> MixedGraph:
        """The inverse of ``to_json_dict``; see :func:`jaxcd.graphs.converters.from_json_dict`."""
        from jaxcd.graphs import converters

        return converters.from_json_dict(value)

    # ---- Python
    # ----------------------------------------------------------------------------------------------

    def _select(self, mask: np.ndarray) -> tuple[str, ...]:
        return tuple(self.names[i] for i in np.flatnonzero(mask))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedGraph):
            return NotImplemented
        return self.names == other.names and bool((self.marks == other.marks).all())

    def __hash__(self) -> int:
        return hash((self.names, self.marks.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: an unpickled array would be writable.
        return MixedGraph, (self.names, np.array(self.marks))

    def __str__(self) -> str:
        return (
            "\n".join(printable(str(edge)) for edge in self.edges())
            or f"(no edges among {counted(self.n_nodes, 'node')})"
        )

    def __repr__(self) -> str:
        edges = ", ".join(str(edge) for edge in self.edges())
        return (
            f"MixedGraph({counted(self.n_nodes, 'node')}: {', '.join(self.names)}; "
            f"{counted(self.n_edges, 'edge')}: {edges or 'none'})"
        )


def _checked_names(names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise GraphError(
            f"names must be a sequence of strings, got the single string {names!r}; write "
            f"[{names!r}]"
        )
    names = tuple(names)
    for name in names:
        if not isinstance(name, str) or not name:
            raise GraphError(f"names must be non-empty strings, got {name!r}; write str(name)")
    repeated = (
        sorted({name for name in names if names.count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if repeated:
        raise GraphError(f"names must differ, got {repeated} more than once; rename them")
    # Subclasses of str (numpy.str_) become str, so that they print and pickle plainly.
    return tuple(str(name) for name in names)


def _checked_marks(marks: Any, names: tuple[str, ...]) -> np.ndarray:
    array = np.asarray(marks)
    d = len(names)
    if array.shape != (d, d):
        raise GraphError(
            f"marks must have shape ({d}, {d}), one row and column per name, got {array.shape}"
        )
    if d == 0:
        return np.zeros((0, 0), dtype=np.int8)
    if not np.issubdtype(array.dtype, np.integer):
        raise GraphError(
            f"marks must be integers 0..3, got dtype {array.dtype}; use the codes of Mark"
        )
    bad = np.argwhere(~((array >= 0) & (array <= 3)))
    if bad.size:
        i, j = bad[0]
        raise GraphError(
            f"marks must be in 0..3, got marks[{i}, {j}] = {array[i, j]}; use the codes of Mark"
        )
    if np.diagonal(array).any():
        i = int(np.flatnonzero(np.diagonal(array))[0])
        raise GraphError(
            f"the diagonal of marks must be 0, got {array[i, i]} at {names[i]!r}; remove the "
            "self-loop"
        )
    lonely = np.argwhere((array != 0) & (array.T == 0))
    if lonely.size:
        i, j = lonely[0]
        raise GraphError(
            f"an edge has a mark at both ends, got marks[{i}, {j}] = {array[i, j]} and marks[{j}, "
            f"{i}] = 0 "
            f"(between {names[i]!r} and {names[j]!r}); set both or neither"
        )
    return array.astype(np.int8)
