"""d-separation in directed acyclic graphs.

Two nodes are d-separated by a set Z if every path between them is blocked: it has a non-collider in
Z, or a collider of which neither it nor a descendant is in Z.  That is m-separation
(:mod:`jaxcd.graphs.m_separation`) in a graph of directed edges: a collider is an ancestor of Z
where it or a descendant is in Z.

>>> import networkx as nx
>>> collider = nx.DiGraph([("a", "c"), ("b", "c")])
>>> d_separated(collider, "a", "b"), d_separated(collider, "a", "b", ["c"])
(True, False)

Source:
    Geiger, Verma and Pearl 1990 (Networks 20); Shachter 1998 (UAI), "Bayes-Ball"; Koller and
    Friedman 2009, Probabilistic Graphical Models, section 3.3.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import final

import networkx as nx
import numpy as np

from jaxcd.errors import GraphError
from jaxcd.graphs.dag import dag_adjacency
from jaxcd.graphs.mixed_graph import MixedGraph, arc_marks
from jaxcd.graphs.trails import Separation, _bits, checked_position


@final
class DSeparation(Separation):
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
        nodes, adjacency = dag_adjacency(dag)
        super().__init__(arc_marks(adjacency), nodes, selected=selected)

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The node labels (networkx), names (MixedGraph) or 0..d-1 (matrix), in the order of the
        positions.
        """
        return self._nodes

    def ancestors(self, x: int) -> tuple[int, ...]:
        """Positions of the ancestors of x, x among them, ascending."""
        return tuple(_bits(self._trails.ancestors[checked_position(x, "x", self._nodes)]))

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
