"""What a graph with circles leaves open: possible ancestors, possible descendants and
Possible-D-SEP.

>>> graph = MixedGraph.from_edges(["a", "b", "c", "d"], ["a o-> b", "b --> c", "c o-o d"])
>>> possible_descendants(graph, "b"), possible_ancestors(graph, "b")
(('b', 'c', 'd'), ('a', 'b'))
"""

from __future__ import annotations

from operator import index

import numpy as np

from jaxcd.checks import check_whole
from jaxcd.errors import GraphError
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph
from jaxcd.graphs.trails import _bits, edge_masks


def possible_descendants(graph: MixedGraph, name: str) -> tuple[str, ...]:
    """The nodes with a possibly directed path from ``name`` to them.

    Every edge ``u *-* v`` of such a path, read away from ``name``, has no arrowhead at u and no
    tail at v: it is one of ``-->``, ``o->``, ``--o`` and ``o-o``.  In a MAG these are the
    descendants.

    Args:
        graph: A PAG or a MAG.  An edge ``---`` of a CPDAG stands for ``o-o``; write it so first.
        name: A name of the graph.

    Returns:
        Names in the order of the graph, ``name`` among them.

    Raises:
        GraphError: If there is no such name.

    Source:
        Zhang 2008, On the completeness of orientation rules for causal discovery in the presence of
        latent confounders and selection bias, Artificial Intelligence 172, section 4 (potentially
        directed paths).

    Example:
        >>> from jaxcd.graphs import MixedGraph, possible_descendants
        >>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a o-> b", "b --> c"])
        >>> possible_descendants(graph, "a")
        ('a', 'b', 'c')
    """
    return _closure(graph, graph.index(name), _possibly_directed(graph))


def possible_ancestors(graph: MixedGraph, name: str) -> tuple[str, ...]:
    """The nodes with a possibly directed path from them to ``name``.

    Every edge ``u *-* v`` of such a path, read towards ``name``, has no arrowhead at u and no tail
    at v.  In a MAG these are the ancestors.

    Args:
        graph: A PAG or a MAG.  An edge ``---`` of a CPDAG stands for ``o-o``; write it so first.
        name: A name of the graph.

    Returns:
        Names in the order of the graph, ``name`` among them.

    Raises:
        GraphError: If there is no such name.

    Source:
        As for :func:`possible_descendants`.

    Example:
        >>> from jaxcd.graphs import MixedGraph, possible_ancestors
        >>> possible_ancestors(MixedGraph.from_edges(["a", "b", "c"], ["a o-> b", "b --> c"]), "c")
        ('a', 'b', 'c')
    """
    return _closure(graph, graph.index(name), _possibly_directed(graph).T)


def possible_d_sep(
    graph: MixedGraph, x: int, *, max_path_length: int | None = None
) -> tuple[int, ...]:
    """Possible-D-SEP of x: the nodes of which FCI tries the subsets to separate x from another
    node.

    v belongs to it if there is a path from x to v on which every inner node is a collider or forms
    a triangle with its two neighbours on the path (these are adjacent).  Nodes adjacent to x belong
    to it.

    The search is over ordered pairs of adjacent nodes, at most d times the number of edges in
    steps, where paths can be exponentially many.  It follows walks: what is asked of an inner node
    concerns two consecutive edges only, and a node may come twice.  **Walks can reach more than
    paths**: the result contains every node of the definition, and at times a few more (in FCI on
    random DAGs of ten nodes for about one x in a hundred).  In ``x o-o a``, ``x o-o b``,
    ``a o-o b``, ``b o-o c``, ``c o-> a``, ``v o-> a`` the walk x, a, b, c, a, v does it, while no
    path leads to v.  FCI stays correct with any superset, since it tries subsets of the result, at
    the cost of needless tests; and the result does not depend on the order of the nodes.

    Args:
        graph: Any mixed graph; for FCI the skeleton with its unshielded colliders oriented.
        x: Position of the node in ``graph.names``.
        max_path_length: Largest number of edges on the way, at least 1; None for no limit.

    Returns:
        Positions, ascending, without x.

    Raises:
        GraphError: If x is out of range.
        OptionError: If ``max_path_length`` is not None and not a positive integer.

    Source:
        Spirtes, Glymour and Scheines 2000, Causation, Prediction, and Search, section 6.7; Spirtes,
        Meek and Richardson 1999, An algorithm for causal inference in the presence of latent
        variables and selection bias.

    Example:
        >>> from jaxcd.graphs import MixedGraph, possible_d_sep
        >>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a o-> b", "c o-> b"])
        >>> possible_d_sep(graph, 0)
        (1, 2)
    """
    x = index(x)
    if not 0 <= x < graph.n_nodes:
        raise GraphError(f"x: positions are 0..{graph.n_nodes - 1}, got {x!r}")
    if max_path_length is not None:
        check_whole("max_path_length", max_path_length, 1, cure="give a length, or None")
    adjacent = edge_masks(graph.adjacency)
    into = edge_masks((graph.marks == Mark.ARROW).T)
    # Back at x, a walk may as well have begun there, so x is never an inner node.
    others = ~(1 << x)
    found = adjacent[x]
    frontier = [(x, v) for v in _bits(found)]
    left = [mask & others for mask in adjacent]  # per v: steps v -> w that have not been made yet
    length = 1
    while frontier and (max_path_length is None or length < max_path_length):
        ahead = []
        for u, v in frontier:
            onward = adjacent[u] | (into[v] if into[v] >> u & 1 else 0)
            fresh = left[v] & onward & ~(1 << u)
            left[v] ^= fresh
            found |= fresh
            ahead += [(v, w) for w in _bits(fresh)]
        frontier = ahead
        length += 1
    return tuple(_bits(found))


def _possibly_directed(graph: MixedGraph) -> np.ndarray:
    """Bool matrix: is there an edge i - j without an arrowhead at i and without a tail at j?"""
    return graph.adjacency & (graph.marks.T != Mark.ARROW) & (graph.marks != Mark.TAIL)


def _closure(graph: MixedGraph, start: int, steps: np.ndarray) -> tuple[str, ...]:
    # A walk of such steps contains a path of such steps: each is a condition on one edge.
    found = np.zeros(graph.n_nodes, dtype=bool)
    found[start] = True
    fresh = found
    while fresh.any():
        fresh = steps[fresh].any(axis=0) & ~found
        found = found | fresh
    return tuple(graph.names[i] for i in np.flatnonzero(found))
