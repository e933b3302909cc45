"""d-separation in directed acyclic graphs.

Two nodes are d-separated by a set Z if every path between them is blocked: it has a non-collider in
Z, or a collider of which neither it nor a descendant is in Z.  The set of nodes that a trail from x
can reach is found in one sweep over (node, direction of arrival) pairs; sets of nodes are the bits
of Python integers, so that unions and tests of membership are single machine operations on graphs
of ordinary size.

>>> import networkx as nx
>>> collider = nx.DiGraph([("a", "c"), ("b", "c")])
>>> d_separated(collider, "a", "b"), d_separated(collider, "a", "b", ["c"])
(True, False)

Source:
    Geiger, Verma and Pearl 1990 (Networks 20); Shachter 1998 (UAI), "Bayes-Ball"; Koller and
    Friedman 2009, Probabilistic Graphical Models, section 3.3.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import index
from typing import final

import networkx as nx
import numpy as np

from jaxcd.errors import GraphError
from jaxcd.graphs.dag import dag_adjacency, topological_order
from jaxcd.graphs.mixed_graph import MixedGraph


@final
class DSeparation:
    """A DAG prepared for many questions of d-separation.

    Args:
        dag: A networkx DiGraph, a MixedGraph that is a DAG, or a (d, d) adjacency matrix (nonzero
            at (i, j) for i -> j).  Nodes are addressed by their position in ``nodes``.
        selected: Positions of nodes that belong to every conditioning set: selection variables.

    Raises:
        GraphError: If ``dag`` is no DAG or a selected position is out of range.

    Example:
        >>> import networkx as nx
        >>> from jaxcd.graphs import DSeparation
        >>> separation = DSeparation(nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")]))
        >>> separation.nodes
        ('a', 'c', 'b', 'd')
        >>> separation.separated(0, 2), separation.separated(0, 2, [3])
        (True, False)
    """

    def __init__(
        self, dag: nx.DiGraph | MixedGraph | np.ndarray, *, selected: Iterable[int] = ()
    ) -> None:
        self._nodes, adjacency = dag_adjacency(dag)
        d = len(self._nodes)
        self._parents = [_bitmask(np.flatnonzero(adjacency[:, v]).tolist()) for v in range(d)]
        self._children = [_bitmask(np.flatnonzero(adjacency[v]).tolist()) for v in range(d)]
        self._ancestors = [0] * d
        for v in topological_order(adjacency):
            mask = 1 << v
            for parent in _bits(self._parents[v]):
                mask |= self._ancestors[parent]
            self._ancestors[v] = mask
        self._selected = tuple(checked_position(s, "selected", self._nodes) for s in selected)

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The node labels (networkx), names (MixedGraph) or 0..d-1 (matrix), in the order of the
        positions.
        """
        return self._nodes

    def ancestors(self, x: int) -> tuple[int, ...]:
        """Positions of the ancestors of x, x among them, ascending."""
        return tuple(_bits(self._ancestors[checked_position(x, "x", self._nodes)]))

    def separated(self, x: int, y: int, given: Sequence[int] = ()) -> bool:
        """Are x and y d-separated by ``given`` and the selected nodes?

        Args:
            x: Position of a node, not in the conditioning set.
            y: Position of another node, not in the conditioning set.
            given: Positions of the conditioning nodes; those in ``selected`` may be repeated here.

        Returns:
            True if every path between x and y is blocked.

        Raises:
            GraphError: If a position is out of range, x equals y, or one of them is conditioned on.
        """
        x, y, observed = checked_pair(x, y, (*given, *self._selected), self._nodes)
        if (self._parents[x] | self._children[x]) >> y & 1:
            return False
        return not self._reach(x, observed) >> y & 1

    def reachable(self, x: int, given: Sequence[int] = ()) -> tuple[int, ...]:
        """Positions of the nodes d-connected to x by ``given`` and the selected nodes, without x
        and these, sorted.
        """
        x = checked_position(x, "x", self._nodes)
        observed = checked_mask((x,), (*given, *self._selected), self._nodes)
        return tuple(_bits(self._reach(x, observed) & ~(1 << x)))

    def _reach(self, x: int, observed: int) -> int:
        """Bitmask of the unobserved nodes with an active trail from x, x among them."""
        parents, children = self._parents, self._children
        # To visit: nodes entered against the arrow (from a child), and along it (from a parent).
        upward, downward = 1 << x, 0
        went_up, went_down = upward, 0  # everything ever put on either list
        while upward or downward:
            if upward:
                low = upward & -upward
                upward ^= low
                v = low.bit_length() - 1
                if observed & low:
                    continue
                more_up, more_down = parents[v], children[v]
            else:
                low = downward & -downward
                downward ^= low
                v = low.bit_length() - 1
                # A collider with an observed descendant needs no case of its own: the trail goes
                # down to it and back.
                more_up = parents[v] if observed & low else 0
                more_down = 0 if observed & low else children[v]
            more_up &= ~went_up
            more_down &= ~went_down
            upward |= more_up
            went_up |= more_up
            downward |= more_down
            went_down |= more_down
        return (went_up | went_down) & ~observed

    def __repr__(self) -> str:
        return f"DSeparation({len(self._nodes)} nodes, selected={self._selected})"


def d_separated(
    dag: nx.DiGraph | MixedGraph | np.ndarray,
    x: Hashable,
    y: Hashable,
    given: Iterable[Hashable] = (),
) -> bool:
    """Whether x and y are d-separated by ``given`` in the DAG.

    Args:
        dag: A networkx DiGraph, a MixedGraph that is a DAG, or an adjacency matrix (nonzero at (i,
            j) for i -> j).
        x: A node: its label (networkx), name (MixedGraph) or position (matrix).
        y: Another node.
        given: The conditioning nodes; neither x nor y among them.

    Returns:
        True if every path between x and y is blocked.

    Raises:
        GraphError: If ``dag`` is no DAG, a node is unknown, or the three sets overlap.

    Example:
        >>> import networkx as nx
        >>> from jaxcd.graphs import d_separated
        >>> d_separated(nx.DiGraph([("a", "c"), ("b", "c")]), "a", "b", ["c"])
        False
    """
    separation = DSeparation(dag)
    position = {node: i for i, node in enumerate(separation.nodes)}
    wanted = [x, y, *given]
    for node in wanted:
        if node not in position:
            raise GraphError(f"no node {node!r} in the DAG; its nodes are {list(separation.nodes)}")
    at = [position[node] for node in wanted]
    return separation.separated(at[0], at[1], at[2:])


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
