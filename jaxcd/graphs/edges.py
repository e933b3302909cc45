"""Marks, edges and their text.

An edge of a mixed graph has one mark at each of its two ends: a tail, an arrowhead or a circle
("not known which"). Its text has three characters between the two names: the mark at the left end,
a dash, the mark at the right end.

>>> print(Edge("smoking", "cancer", Mark.TAIL, Mark.ARROW))
smoking --> cancer
>>> Edge("a", "b", Mark.CIRCLE, Mark.ARROW).symbol
'o->'
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

from jaxcd.errors import GraphError


class Mark(IntEnum):
    """The mark at one end of an edge, in the codes of pcalg's ``amat.pag``.

    Example:
        >>> from jaxcd.graphs import Mark, MixedGraph
        >>> graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
        >>> Mark(graph.marks[0, 1]).name, Mark(graph.marks[1, 0]).name
        ('ARROW', 'TAIL')
    """

    NONE = 0
    CIRCLE = 1
    ARROW = 2
    TAIL = 3


_LEFT = {Mark.TAIL: "-", Mark.CIRCLE: "o", Mark.ARROW: "<"}
_RIGHT = {Mark.TAIL: "-", Mark.CIRCLE: "o", Mark.ARROW: ">"}

SYMBOLS: dict[str, tuple[Mark, Mark]] = {
    f"{left}-{right}": (mark_a, mark_b)
    for mark_a, left in _LEFT.items()
    for mark_b, right in _RIGHT.items()
}
"""The nine edge symbols, each with the mark at its left and at its right end."""

# Overlapping matches are wanted (a lookahead), because a name may itself contain the text of an
# edge.
_SYMBOL_PATTERN = re.compile("(?=(" + "|".join(re.escape(symbol) for symbol in SYMBOLS) + "))")

# An edge is written so that the "weaker" mark comes first: a --> b, a o-> b, a --o b, never b <--
# a.
_RANK = {Mark.TAIL: 0, Mark.CIRCLE: 1, Mark.ARROW: 2}


@dataclass(frozen=True)
class Edge:
    """An edge between nodes ``a`` and ``b`` with the mark at each end.

    Args:
        a: Name of the left node.
        b: Name of the right node, different from ``a``.
        mark_a: Mark at ``a``; not ``Mark.NONE``.
        mark_b: Mark at ``b``; not ``Mark.NONE``.

    Raises:
        GraphError: If the two nodes are the same or a mark is ``Mark.NONE``.

    Example:
        >>> from jaxcd.graphs import Edge, Mark
        >>> edge = Edge("smoking", "cancer", Mark.CIRCLE, Mark.ARROW)
        >>> print(edge, edge.reversed(), sep="  ")
        smoking o-> cancer  cancer <-o smoking
    """

    a: str
    b: str
    mark_a: Mark
    mark_b: Mark

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise GraphError(f"an edge joins two different nodes, got {self.a!r} twice")
        if self.mark_a not in _LEFT or self.mark_b not in _RIGHT:
            raise GraphError(
                f"the marks of an edge are TAIL, CIRCLE or ARROW, got {self.mark_a!r} and "
                f"{self.mark_b!r}; "
                "leave the edge out if there is none"
            )

    @property
    def symbol(self) -> str:
        """The three characters of the edge, such as ``-->``."""
        return _LEFT[self.mark_a] + "-" + _RIGHT[self.mark_b]

    def reversed(self) -> Edge:
        """The same edge, written from the other end."""
        return Edge(self.b, self.a, self.mark_b, self.mark_a)

    def canonical(self) -> Edge:
        """The same edge with arrowheads to the right: ``b <-- a`` becomes ``a --> b``; symmetric
        edges are kept.
        """
        return self.reversed() if _RANK[self.mark_a] > _RANK[self.mark_b] else self

    def __str__(self) -> str:
        return f"{self.a} {self.symbol} {self.b}"


def parse_edge(text: str, names: Collection[str]) -> Edge:
    """Read one edge such as ``"a --> b"``.

    Args:
        text: The edge; spaces around the symbol are optional, and names may contain spaces.
        names: The names of the graph's nodes; both ends must be among them.

    Returns:
        The edge as written.

    Raises:
        GraphError: If the text is no edge between two of the names, or can be read in two ways.
    """
    readings = set()
    for match in _SYMBOL_PATTERN.finditer(text):
        # Stripped ends are tried as well as exact ones, so that a name with spaces at its ends can
        # still be read.
        left, right = text[: match.start()], text[match.end(1) :]
        for a in {left, left.removesuffix(" "), left.strip()} & set(names):
            for b in {right, right.removeprefix(" "), right.strip()} & set(names):
                readings.add((a, match.group(1), b))
    if len(readings) != 1:
        problem = (
            "is no edge between two of the names"
            if not readings
            else "can be read in more than one way"
        )
        raise GraphError(
            f"edge {text!r} {problem}; write 'a SYMBOL b' with names of the graph and one of "
            f"{', '.join(SYMBOLS)}"
        )
    a, symbol, b = readings.pop()
    return Edge(a, b, *SYMBOLS[symbol])
