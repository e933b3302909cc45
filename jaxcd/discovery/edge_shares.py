"""How sure the edges of a graph are: a probability or a share for every pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.checks import check_whole, printable, shown_list
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph

__all__ = ["EdgeConfidence", "PairConfidence"]

_ROUNDING = 1e-9


@dataclass(frozen=True)
class PairConfidence:
    """The probabilities of one pair.

    Args:
        a: a node.
        b: another node.
        adjacent: that they are joined.
        forward: that there is a -> b; None: not estimated.
        backward: that there is b -> a; None: not estimated.
        undirected: that there is a - b; None: not estimated.
    """

    a: str
    b: str
    adjacent: float
    forward: float | None = None
    backward: float | None = None
    undirected: float | None = None


@dataclass(frozen=True, eq=False)
class EdgeConfidence:
    """Probabilities of edges; what they mean is in ``method``, and in the function that made them.
    Equality and hash are by value.

    Args:
        names: the d nodes.
        adjacency: float64 (d, d), symmetric, zero on the diagonal: that i and j are joined, also
            for pairs that the graph does not join.
        directed: float64 (d, d), entry (i, j): that there is i -> j; or None where directions have
            no estimate.
        undirected: float64 (d, d), symmetric: that there is i - j, or in a PAG any edge that is
            neither i -> j nor j -> i; or None.  directed + directed^T
            + undirected = adjacency.
        n_draws: how many draws the shares are of; 0 where they are computed, not drawn.  A share p
            of them has the standard error sqrt(p (1 - p) / n_draws).
        method: how they were made, in words.
        meaning: one sentence for people who read a report: what the numbers are; empty where
            ``method`` says it all.  Of :func:`jaxcd.edge_confidence`: how often the same search
            would join the pair again on new people with new noise, not the probability that the
            edge is true.

    Raises:
        OptionError: the parts do not fit together.

    Example:
        >>> import numpy as np
        >>> from jaxcd.discovery import EdgeConfidence
        >>> adjacency = np.array([[0.0, 0.9], [0.9, 0.0]])
        >>> shares = EdgeConfidence(("a", "b"), adjacency, None, None, 10, "ten draws")
        >>> shares.of("a", "b").adjacent
        0.9
    """

    names: tuple[str, ...]
    adjacency: np.ndarray
    directed: np.ndarray | None
    undirected: np.ndarray | None
    n_draws: int
    method: str
    meaning: str = ""

    def __post_init__(self) -> None:
        d = len(self.names)
        if (self.directed is None) != (self.undirected is None):
            raise OptionError("directed and undirected: give both, or None for both")
        for argument in ("adjacency", "directed", "undirected"):
            value = getattr(self, argument)
            if value is None:
                continue
            array = np.array(value, dtype=np.float64)
            if (
                array.shape != (d, d)
                or not ((array >= 0) & (array <= 1)).all()
                or np.diag(array).any()
            ):
                raise OptionError(
                    f"{argument} must be ({d}, {d}) probabilities in [0, 1] with zeros on the "
                    "diagonal"
                )
            if argument != "directed" and not (array == array.T).all():
                raise OptionError(f"{argument} must be symmetric: it is about pairs")
            array.setflags(write=False)
            object.__setattr__(self, argument, array)
        if self.directed is not None and self.undirected is not None:
            total = self.directed + self.directed.T + self.undirected
            if not np.abs(total - self.adjacency).max(initial=0.0) <= _ROUNDING:
                raise OptionError(
                    "adjacency must be directed + directed^T + undirected: an edge is exactly one "
                    "of the three"
                )
        check_whole("n_draws", self.n_draws, 0, cure="give a number of draws, 0 for none")

    @property
    def _content(self) -> tuple[Any, ...]:
        """All of it in plain values: arrays can be neither compared as one nor hashed."""
        arrays = (self.adjacency, self.directed, self.undirected)
        parts = tuple(None if part is None else tuple(part.ravel().tolist()) for part in arrays)
        return (self.names, *parts, self.n_draws, self.method, self.meaning)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EdgeConfidence):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def of(self, a: str, b: str) -> PairConfidence:
        """The probabilities of one pair.

        Raises:
            GraphError: for an unknown name, or the same twice.
        """
        for name in (a, b):
            if name not in self.names:
                raise GraphError(f"{name!r} is not a node; the nodes are {shown_list(self.names)}")
        if a == b:
            raise GraphError(f"a pair has two different nodes, not {a!r} twice")
        i, j = self.names.index(a), self.names.index(b)
        adjacent = float(self.adjacency[i, j])
        if self.directed is None or self.undirected is None:
            return PairConfidence(a, b, adjacent)
        return PairConfidence(
            a,
            b,
            adjacent,
            float(self.directed[i, j]),
            float(self.directed[j, i]),
            float(self.undirected[i, j]),
        )

    def table(
        self, graph: MixedGraph | None = None, *, least: float = 0.1
    ) -> tuple[PairConfidence, ...]:
        """The edges of a graph in its order, then the other pairs whose adjacency is at least
        ``least``, the likeliest first.

        Args:
            graph: over the same names; None lists by adjacency alone.

        Raises:
            GraphError: the names differ.
        """
        graph = MixedGraph.empty(self.names) if graph is None else graph.reordered(self.names)
        rows = [self.of(edge.a, edge.b) for edge in graph.edges()]
        others = [
            (-self.adjacency[i, j], i, j)
            for i, j in np.argwhere(np.triu(self.adjacency >= least, 1) & ~graph.adjacency).tolist()
        ]
        return (*rows, *(self.of(self.names[i], self.names[j]) for _, i, j in sorted(others)))

    def in_words(self, graph: MixedGraph, *, given: Collection[Collection[str]] = ()) -> str:
        """The table for people, a line each, with what the numbers are.

        Args:
            graph: over the same names.
            given: pairs that are left out: what was known before.

        Raises:
            GraphError: the names differ.

        Example:
            >>> import numpy as np
            >>> from jaxcd.discovery import EdgeConfidence
            >>> from jaxcd.graphs import MixedGraph
            >>> adjacency = np.array([[0.0, 0.9], [0.9, 0.0]])
            >>> shares = EdgeConfidence(("a", "b"), adjacency, None, None, 10, "ten draws")
            >>> print(shares.in_words(MixedGraph.from_edges(["a", "b"], ["a --- b"])))
              a --- b    0.90
              (ten draws)
        """
        rows = [row for row in self.table(graph) if {row.a, row.b} not in given]
        edges = [graph.edge(row.a, row.b) for row in rows]
        words = [
            printable(f"{row.a}  {row.b}  (not found)" if edge is None else str(edge))
            for row, edge in zip(rows, edges, strict=True)
        ]
        width = max(map(len, words), default=0)
        lines = []
        if any(row.forward is not None for row in rows):
            lines.append(f"  {'':<{width}}  joined     -->     <--     ---")
        for text, row in zip(words, rows, strict=True):
            shares = (row.adjacent, row.forward, row.backward, row.undirected)
            numbers = ("" if share is None else f"{share:8.2f}" for share in shares)
            lines.append(f"  {text:<{width}}{''.join(numbers)}")
        if self.meaning:
            lines.append(f"  {self.meaning}")
        return "\n".join([*lines, f"  ({self.method})"])

    def reordered(self, names: Iterable[str]) -> EdgeConfidence:
        """The same with its nodes in another order.

        Raises:
            GraphError: these are other names.
        """
        names = tuple(names)
        if sorted(names) != sorted(self.names):
            raise GraphError(
                f"names: the confidence is of {shown_list(self.names)}; make one for this graph"
            )
        order = np.ix_(*[[self.names.index(name) for name in names]] * 2)
        directed, undirected = (
            None if part is None else part[order] for part in (self.directed, self.undirected)
        )
        return dataclasses.replace(
            self,
            names=names,
            adjacency=self.adjacency[order],
            directed=directed,
            undirected=undirected,
        )
