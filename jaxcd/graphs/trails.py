"""Trails in graphs without circles: one sweep answers which nodes an open path leads to.

Sets of nodes are the bits of Python integers, so that unions and tests of membership are single
machine operations on graphs of ordinary size.  A sweep goes over (node, mark on arrival) pairs; why
trails, which may pass a node twice, suffice stands in :mod:`jaxcd.graphs.m_separation`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import index
from typing import final

import numpy as np

from jaxcd.errors import GraphError
from jaxcd.graphs.edges import Mark


def edge_masks(wanted: np.ndarray) -> list[int]:
    """The rows of a bool matrix as bit masks: bit j of mask i is entry (i, j)."""
    return [_bitmask(np.flatnonzero(row).tolist()) for row in wanted]


@final
class Trails:
    """The edges of a graph without circles as bit masks, its ancestors, and the sweep over trails.

    Args:
        marks: Matrix of marks (d, d) as in MixedGraph.
        names: The d names, for messages.

    Raises:
        GraphError: If there is a circle, a directed cycle, or an arrowhead at a node with an
            undirected edge.
    """

    def __init__(self, marks: np.ndarray, names: Sequence[object]) -> None:
        arrow, tail = marks == Mark.ARROW, marks == Mark.TAIL
        undirected = tail & tail.T
        circles = np.argwhere(marks == Mark.CIRCLE)
        if circles.size:
            i, j = circles[0]
            raise GraphError(
                f"every mark must be a tail or an arrowhead, got a circle at {names[j]!r} on its "
                "edge with "
                f"{names[i]!r}; a PAG stands for many graphs, choose one of its MAGs"
            )
        mixed = np.flatnonzero(undirected.any(axis=0) & arrow.any(axis=0))
        if mixed.size:
            raise GraphError(
                "no arrowhead may be at a node with an undirected edge, got both at "
                f"{names[mixed[0]]!r}; "
                "for a CPDAG see consistent_extension"
            )
        self.all = (1 << len(names)) - 1
        self.children, self.parents = edge_masks(arrow & tail.T), edge_masks((arrow & tail.T).T)
        self.spouses, self.neighbors = edge_masks(arrow & arrow.T), edge_masks(undirected)
        self.adjacent = edge_masks(marks != Mark.NONE)
        self.ancestors = self._ancestors(names)

    def ancestors_of(self, nodes: int) -> int:
        """Mask of the ancestors of the nodes in a mask, these among them."""
        found = 0
        for v in _bits(nodes):
            found |= self.ancestors[v]
        return found

    def reach(self, x: int, *, colliders: int, noncolliders: int) -> int:
        """Mask of the nodes at the end of a trail from x that passes only what is allowed; x may be
        among them.

        Args:
            x: Position of the first node.
            colliders: The nodes that the trail may pass as colliders.
            noncolliders: The nodes that it may pass otherwise.
        """
        parents, children, spouses, neighbors = (
            self.parents,
            self.children,
            self.spouses,
            self.neighbors,
        )
        # To visit: nodes entered by an arrowhead, and nodes entered by a tail.
        by_arrow, by_tail = children[x] | spouses[x], parents[x] | neighbors[x]
        seen_arrow, seen_tail = by_arrow, by_tail
        while by_arrow or by_tail:
            more_arrow = more_tail = 0
            if by_arrow:
                low = by_arrow & -by_arrow
                by_arrow ^= low
                v = low.bit_length() - 1
                if colliders & low:
                    more_arrow, more_tail = spouses[v], parents[v]
                if noncolliders & low:
                    # no neighbors: an arrowhead does not meet an undirected edge
                    more_arrow |= children[v]
            else:
                low = by_tail & -by_tail
                by_tail ^= low
                v = low.bit_length() - 1
                if noncolliders & low:
                    more_arrow, more_tail = children[v] | spouses[v], parents[v] | neighbors[v]
            more_arrow &= ~seen_arrow
            more_tail &= ~seen_tail
            by_arrow |= more_arrow
            seen_arrow |= more_arrow
            by_tail |= more_tail
            seen_tail |= more_tail
        return seen_arrow | seen_tail

    def _ancestors(self, names: Sequence[object]) -> list[int]:
        d = len(names)
        ancestors = [0] * d
        waiting = [mask.bit_count() for mask in self.parents]
        ready = [v for v in range(d) if not waiting[v]]
        while ready:
            v = ready.pop()
            ancestors[v] = 1 << v
            for parent in _bits(self.parents[v]):
                ancestors[v] |= ancestors[parent]
            for child in _bits(self.children[v]):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        stuck = _bitmask(v for v in range(d) if waiting[v])
        if stuck:
            walk = [(stuck & -stuck).bit_length() - 1]
            while walk[-1] not in walk[:-1]:
                walk.append(next(_bits(self.parents[walk[-1]] & stuck)))
            cycle = " --> ".join(str(names[v]) for v in reversed(walk[walk.index(walk[-1]) :]))
            raise GraphError(
                f"the graph must have no directed cycle, got {cycle}; remove or turn one of these "
                "edges"
            )
        return ancestors


class Separation:
    """A graph prepared for many questions of separation; nodes are addressed by their position.

    Args:
        marks: Matrix of marks (d, d) as in MixedGraph, without circles.
        nodes: The d nodes, for messages.
        selected: Positions of nodes that belong to every conditioning set.

    Raises:
        GraphError: As for :class:`Trails`, or a selected position is out of range.
    """

    def __init__(
        self, marks: np.ndarray, nodes: tuple[Hashable, ...], *, selected: Iterable[int] = ()
    ) -> None:
        self._nodes, self._trails = nodes, Trails(marks, nodes)
        self._selected = tuple(checked_position(s, "selected", nodes) for s in selected)

    def separated(self, x: int, y: int, given: Sequence[int] = ()) -> bool:
        """Are x and y separated by ``given`` and the selected nodes, if there are any?

        Args:
            x: Position of a node, not in the conditioning set.
            y: Position of another node, not in the conditioning set.
            given: Positions of the conditioning nodes; selected ones may be repeated here.

        Returns:
            True if every path between x and y is blocked.

        Raises:
            GraphError: If a position is out of range, x equals y, or one of them is conditioned on.
        """
        x, y, observed = checked_pair(x, y, (*given, *self._selected), self._nodes)
        if self._trails.adjacent[x] >> y & 1:
            return False
        return not self._reach(x, observed) >> y & 1

    def reachable(self, x: int, given: Sequence[int] = ()) -> tuple[int, ...]:
        """Positions of the nodes connected to x by ``given`` and the selected nodes, without x and
        these, ascending.
        """
        x = checked_position(x, "x", self._nodes)
        observed = checked_mask((x,), (*given, *self._selected), self._nodes)
        return tuple(_bits(self._reach(x, observed) & ~observed & ~(1 << x)))

    def _reach(self, x: int, observed: int) -> int:
        return self._trails.reach(
            x,
            colliders=self._trails.ancestors_of(observed),
            noncolliders=self._trails.all & ~observed,
        )


def checked_position(position: int, argument: str, nodes: Sequence[object]) -> int:
    """The position of one of the nodes as a Python integer, else raises GraphError."""
    position = index(position)  # a numpy integer would overflow as a bit shift
    if not 0 <= position < len(nodes):
        raise GraphError(f"{argument}: positions are 0..{len(nodes) - 1}, got {position!r}")
    return position


def checked_mask(tested: Iterable[int], given: Iterable[int], nodes: Sequence[object]) -> int:
    """The mask of the conditioning set; raises GraphError where a tested node is in it, or a
    position is out of range.
    """
    mask = _bitmask(checked_position(z, "given", nodes) for z in given)
    for v in tested:
        if mask >> v & 1:
            raise GraphError(
                f"node {nodes[v]!r} is both tested and conditioned on; remove it from one"
            )
    return mask


def checked_pair(
    x: int, y: int, given: Iterable[int], nodes: Sequence[object]
) -> tuple[int, int, int]:
    """Both positions and the mask of the conditioning set; raises GraphError where they make no
    question of separation.
    """
    x, y = checked_position(x, "x", nodes), checked_position(y, "y", nodes)
    if x == y:
        raise GraphError(f"x and y must be two nodes, got {nodes[x]!r} twice")
    return x, y, checked_mask((x, y), given, nodes)


def _bitmask(positions: Iterable[int]) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
