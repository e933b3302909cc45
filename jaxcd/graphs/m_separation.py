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

from collections.abc import Iterable
from typing import final

from jaxcd.checks import check_listed
from jaxcd.errors import GraphError
from jaxcd.graphs.mixed_graph import MixedGraph
from jaxcd.graphs.trails import Separation


@final
class MSeparation(Separation):
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
        super().__init__(graph.marks, graph.names)
        self._names = graph.names

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the graph, in the order of the positions."""
        return self._names

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
    given = check_listed("given", given, error=GraphError)
    return MSeparation(graph).separated(
        graph.index(x), graph.index(y), [graph.index(z) for z in given]
    )
