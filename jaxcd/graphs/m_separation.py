"""m-separation: what d-separation becomes in mixed graphs with directed, bidirected and undirected
edges.

A node on a path is a collider if both edges of the path have an arrowhead at it.  A path is open
given Z if no non-collider on it is in Z and every collider on it is an ancestor of Z; x and y are
m-separated by Z if no path between them is open.  Ancestors are along directed edges, and each node
is an ancestor of itself.

The nodes with an open trail from x are found in one sweep over (node, mark on arrival) pairs.  A
trail may pass a node twice where a path may not, but in the graphs that are admitted here both
reach the same nodes.  Cut a trail at a node that it passes twice.  If the node is a collider
afterwards and was none before, the trail left it along a directed edge; it then follows the arrows
to a collider, or to its end, of which the node is an ancestor.  If it is a non-collider afterwards,
it was one before.  The first step fails where an arrowhead meets an undirected edge; such graphs
are refused.

>>> graph = MixedGraph.from_edges(["a", "b", "c", "d"], ["a --> b", "b <-> c", "c --> d"])
>>> m_separated(graph, "a", "c"), m_separated(graph, "a", "c", ["b"])
(True, False)

Source:
    Richardson and Spirtes 2002, Ancestral graph Markov models, Annals of Statistics 30(4), section
    3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from jaxcd.errors import GraphError
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph
from jaxcd.graphs.separation import _bitmask, _bits, checked_mask, checked_pair, checked_position


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


@final
class MSeparation:
    """A mixed graph prepared for many questions of m-separation.

    Args:
        graph: A graph with ``-->``, ``<->`` and ``---`` edges, without directed cycles, in which no
            arrowhead is at a node with an undirected edge: every ancestral graph, MAG and DAG is
            one.  Nodes are addressed by their position in ``graph.names``.

    Raises:
        GraphError: If ``graph`` is not as above.

    Source:
        Richardson and Spirtes 2002, section 3.

    Example:
        >>> from jaxcd.graphs import MixedGraph, MSeparation
        >>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b <-> c"])
        >>> separation = MSeparation(graph)
        >>> separation.separated(0, 2), separation.separated(0, 2, [1])
        (True, False)
    """

    def __init__(self, graph: MixedGraph) -> None:
        self._names = graph.names
        self._trails = Trails(graph.marks, graph.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the graph, in the order of the positions."""
        return self._names

    def separated(self, x: int, y: int, given: Sequence[int] = ()) -> bool:
        """Are x and y m-separated by ``given``?

        Args:
            x: Position of a node, not in the conditioning set.
            y: Position of another node, not in the conditioning set.
            given: Positions of the conditioning nodes.

        Returns:
            True if no path between x and y is open.

        Raises:
            GraphError: If a position is out of range, x equals y, or one of them is conditioned on.
        """
        x, y, observed = checked_pair(x, y, given, self._names)
        if self._trails.adjacent[x] >> y & 1:
            return False
        return not self._reach(x, observed) >> y & 1

    def reachable(self, x: int, given: Sequence[int] = ()) -> tuple[int, ...]:
        """Positions of the nodes m-connected to x by ``given``, without x and these, ascending."""
        x = checked_position(x, "x", self._names)
        observed = checked_mask((x,), given, self._names)
        return tuple(_bits(self._reach(x, observed) & ~observed & ~(1 << x)))

    def _reach(self, x: int, observed: int) -> int:
        return self._trails.reach(
            x,
            colliders=self._trails.ancestors_of(observed),
            noncolliders=self._trails.all & ~observed,
        )

    def __repr__(self) -> str:
        return f"MSeparation({len(self._names)} nodes)"


def m_separated(graph: MixedGraph, x: str, y: str, given: Iterable[str] = ()) -> bool:
    """Are x and y m-separated by ``given`` in the mixed graph?

    For many questions about one graph make an :class:`MSeparation` once.

    Args:
        graph: A graph with ``-->``, ``<->`` and ``---`` edges, as :class:`MSeparation` takes it.
        x: The name of a node.
        y: The name of another node.
        given: The names of the conditioning nodes; neither x nor y among them.

    Returns:
        True if no path between x and y is open.

    Raises:
        GraphError: If the graph is not of that kind, a name is unknown, or the three sets overlap.

    Source:
        Richardson and Spirtes 2002, section 3.

    Example:
        >>> from jaxcd.graphs import MixedGraph, m_separated
        >>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b <-> c"])
        >>> m_separated(graph, "a", "c"), m_separated(graph, "a", "c", ["b"])
        (True, False)
    """
    if isinstance(given, str):
        raise GraphError(
            f"given is a collection of names, got the single string {given!r}; write [{given!r}]"
        )
    return MSeparation(graph).separated(
        graph.index(x), graph.index(y), [graph.index(z) for z in given]
    )
