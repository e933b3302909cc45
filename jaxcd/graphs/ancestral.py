"""Maximal ancestral graphs (MAGs): what a DAG looks like when some of its variables are hidden.

Take a DAG over observed, latent and selected variables; the selected ones are conditioned on in all
the data.  Its MAG over the observed variables has an edge between x and y exactly if no set of
other observed variables separates them given the selected ones.  The mark at x is a tail if x is an
ancestor of y or of a selected variable, else an arrowhead. m-separation in the MAG is d-separation
in the DAG given the selected variables.

>>> import networkx as nx
>>> dag = nx.DiGraph([("x", "y"), ("l", "y"), ("l", "z"), ("x", "s"), ("w", "s")])
>>> print(dag_to_mag(dag, latent=["l"], selected=["s"]))
x --> y
x --- w
y <-> z

Source:
    Richardson and Spirtes 2002, Ancestral graph Markov models, Annals of Statistics 30(4).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

import networkx as nx
import numpy as np

from jaxcd.checks import check_listed
from jaxcd.errors import GraphError
from jaxcd.graphs.dag import dag_adjacency
from jaxcd.graphs.edges import Edge, Mark
from jaxcd.graphs.mixed_graph import MixedGraph, arc_marks
from jaxcd.graphs.trails import Trails, _bitmask, _bits, edge_masks


def dag_to_mag(
    dag: nx.DiGraph | MixedGraph | np.ndarray,
    *,
    latent: Collection[Hashable] = (),
    selected: Collection[Hashable] = (),
) -> MixedGraph:
    """The maximal ancestral graph over the observed variables of a DAG.

    x and y are adjacent if and only if there is an inducing path between them: every inner node
    that is not latent is a collider, and every collider is an ancestor of x, y or a selected node.
    That is so exactly if no set of the other observed nodes, together with the selected ones,
    d-separates x and y.

    Args:
        dag: A networkx DiGraph, a MixedGraph that is a DAG, or a (d, d) matrix (nonzero at (i, j)
            for i -> j).
        latent: Nodes that are not observed: labels (networkx), names (MixedGraph) or positions
            (matrix).
        selected: Nodes that are conditioned on throughout, and not observed either; none of them in
            ``latent``.

    Returns:
        The MAG; its names are ``str(node)`` of the observed nodes, in the DAG's node order.

    Raises:
        GraphError: If ``dag`` is no DAG, a latent or selected node is unknown, or a node is in
            both.

    Source:
        Richardson and Spirtes 2002, section 4.2 (the marks and edges) and theorem 4.2 (inducing
        paths).

    Example:
        >>> import networkx as nx
        >>> from jaxcd.graphs import dag_to_mag
        >>> print(dag_to_mag(nx.DiGraph([("hidden", "a"), ("hidden", "b")]), latent=["hidden"]))
        a <-> b
    """
    nodes, adjacency = dag_adjacency(dag)
    position = {node: i for i, node in enumerate(nodes)}
    hidden = {}
    for argument, wanted in (("latent", latent), ("selected", selected)):
        wanted = check_listed(argument, wanted, of="nodes", error=GraphError)
        for node in wanted:
            if node not in position:
                raise GraphError(
                    f"{argument}: no node {node!r} in the DAG; its nodes are {list(nodes)}"
                )
        hidden[argument] = _bitmask(position[node] for node in wanted)
    both = hidden["latent"] & hidden["selected"]
    if both:
        names = [nodes[v] for v in _bits(both)]
        raise GraphError(
            f"no node can be both latent and selected, got {names} as both; keep each in one of "
            "the two"
        )

    trails = Trails(arc_marks(adjacency), nodes)
    observed = trails.all & ~hidden["latent"] & ~hidden["selected"]
    before_selected = trails.ancestors_of(hidden["selected"])
    places = list(_bits(observed))
    new = {v: i for i, v in enumerate(places)}
    result = np.zeros((len(places), len(places)), dtype=np.int8)
    for x, mask in _inducing_pairs(trails, observed, hidden["latent"], before_selected).items():
        for y in _bits(mask):
            for a, b in ((x, y), (y, x)):
                tail = (trails.ancestors[a] | before_selected) >> b & 1
                result[new[a], new[b]] = int(Mark.TAIL if tail else Mark.ARROW)
    return MixedGraph(tuple(str(nodes[v]) for v in places), result)


def is_ancestral(graph: MixedGraph) -> bool:
    """Is the graph ancestral: no circles, and no arrowhead at an ancestor?

    There are no directed cycles, no edge ``a <-> b`` with a directed path from a to b, and no
    arrowhead at a node with an undirected edge.

    Args:
        graph: Any mixed graph.

    Returns:
        True if it is ancestral; False also if it has circles.

    Source:
        Richardson and Spirtes 2002, section 3.1.

    Example:
        >>> from jaxcd.graphs import MixedGraph, is_ancestral
        >>> is_ancestral(MixedGraph.from_edges(["a", "b"], ["a <-> b"]))
        True
    """
    return _ancestral_trails(graph) is not None


def is_mag(graph: MixedGraph) -> bool:
    """Whether the graph is a maximal ancestral graph.

    Args:
        graph: Any mixed graph.

    Returns:
        True if it is a MAG; False also if it has circles.

    Source:
        Richardson and Spirtes 2002, sections 3.7 and 4.

    Example:
        >>> from jaxcd.graphs import MixedGraph, is_mag
        >>> is_mag(MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b <-> c"]))
        True
    """
    trails = _ancestral_trails(graph)
    if trails is None:
        return False
    pairs = _inducing_pairs(trails, trails.all, 0, 0)
    return all(not mask & ~trails.adjacent[x] for x, mask in pairs.items())


def markov_equivalent_mags(a: MixedGraph, b: MixedGraph) -> bool:
    """Do two MAGs have the same m-separations?

    They do exactly if they have the same adjacencies, the same unshielded colliders, and, wherever
    a path discriminates a node v in both, v is a collider on it in both or in neither.  A path (x,
    q1, ..., qp, v, y) with p at least 1 discriminates v if x and y are not adjacent and every q is
    a collider on the path and a parent of y.

    Args:
        a: A MAG.
        b: A MAG on the same names; their order may differ.

    Returns:
        True if every m-separation of one holds in the other.

    Raises:
        GraphError: If one of them is no MAG, or the names differ.

    Source:
        Spirtes and Richardson 1997, A polynomial time algorithm for determining DAG equivalence in
        the presence of latent variables and selection bias (AISTATS).  The paths are not listed:
        one search for each y finds every q.

    Example:
        >>> from jaxcd.graphs import MixedGraph, markov_equivalent_mags
        >>> names = ["a", "b"]
        >>> markov_equivalent_mags(
        ...     MixedGraph.from_edges(names, ["a --> b"]), MixedGraph.from_edges(names, ["a <-> b"])
        ... )
        True
    """
    for argument, graph in (("a", a), ("b", b)):
        if not is_mag(graph):
            raise GraphError(f"{argument} must be a MAG (see is_mag), got {graph!r}")
    b = b.reordered(a.names)
    adjacent = edge_masks(a.adjacency)
    if adjacent != edge_masks(b.adjacency):
        return False
    into_a, into_b = _into(a), _into(b)
    for v, neighbors in enumerate(adjacent):
        for x in _bits(neighbors):
            loose = neighbors & ~adjacent[x] & ~(1 << x)  # ends of the unshielded triples x - v - .
            in_a = into_a[v] & loose if into_a[v] >> x & 1 else 0
            in_b = into_b[v] & loose if into_b[v] >> x & 1 else 0
            if in_a != in_b:
                return False
    parents = edge_masks((a.directed & b.directed).T)
    spouses = edge_masks(a.bidirected & b.bidirected)
    arrow = (a.marks == Mark.ARROW) & (b.marks == Mark.ARROW)
    into, out_of = edge_masks(arrow.T), edge_masks(arrow)
    for y in range(a.n_nodes):
        chain = _flood(_entered_from(parents[y], into, ~adjacent[y]), spouses, parents[y])
        for v in _bits(adjacent[y]):
            # The mark at v of its edge with y decides.  If it is an arrowhead, so is the one of its
            # edge with the last q (v --> q --> y would make v an ancestor of y).  If it differs, v
            # is no parent of y in both, so not in chain.
            if (into_a[v] ^ into_b[v]) >> y & 1 and chain & out_of[v]:
                return False
    return True


def visible_edges(graph: MixedGraph) -> tuple[Edge, ...]:
    """The directed edges of a MAG or PAG that no latent confounder can hide behind.

    ``a --> b`` is visible if some c that is not adjacent to b has an edge ``c *-> a``, or a path to
    a that is into a on which every inner node is a collider and a parent of b.  In a graph without
    selection, a and b have then no latent common cause in any DAG that the graph stands for.

    Args:
        graph: A MAG or a PAG.  Circles are taken as they stand: only a definite arrowhead or tail
            counts.

    Returns:
        The visible edges, each written ``a --> b``, in the order of ``graph.edges()``.

    Source:
        Zhang 2008, Causal reasoning with ancestral graphs, JMLR 9:1437-1474, definition 8.

    Example:
        >>> from jaxcd.graphs import MixedGraph, visible_edges
        >>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --> c"])
        >>> print(*visible_edges(graph))
        b --> c
    """
    adjacent, into = edge_masks(graph.adjacency), _into(graph)
    parents, spouses = edge_masks(graph.directed.T), edge_masks(graph.bidirected)
    # a itself is a parent of b, so that one search per b finds all: a is visible if it lies on such
    # a collider path.
    reached = []
    for b in range(graph.n_nodes):
        first = _entered_from(parents[b], into, ~adjacent[b])
        reached.append(_flood(first, spouses, parents[b]))
    return tuple(
        edge
        for edge in graph.edges()
        if edge.mark_a == Mark.TAIL
        and edge.mark_b == Mark.ARROW
        and reached[graph.index(edge.b)] >> graph.index(edge.a) & 1
    )


def _inducing_pairs(
    trails: Trails, observed: int, latent: int, before_selected: int
) -> dict[int, int]:
    """For each observed x the mask of the later observed y that an inducing path joins to it."""
    pairs = {}
    for x in _bits(observed):
        later = observed >> (x + 1) << (x + 1)
        found = trails.adjacent[x] & later
        # Forgetting whose ancestors the colliders must be leaves few candidates, mostly x's
        # neighbourhood.
        for y in _bits(trails.reach(x, colliders=trails.all, noncolliders=latent) & later & ~found):
            colliders = trails.ancestors[x] | trails.ancestors[y] | before_selected
            found |= trails.reach(x, colliders=colliders, noncolliders=latent) & 1 << y
        pairs[x] = found
    return pairs


def _ancestral_trails(graph: MixedGraph) -> Trails | None:
    try:
        trails = Trails(graph.marks, graph.names)
    except GraphError:
        return None
    if any(trails.spouses[v] & trails.ancestors[v] for v in range(graph.n_nodes)):
        return None
    return trails


def _into(graph: MixedGraph) -> list[int]:
    """For each v the mask of the nodes u with an edge ``u *-> v``."""
    return edge_masks((graph.marks == Mark.ARROW).T)


def _entered_from(nodes: int, into: list[int], sources: int) -> int:
    """The nodes of a mask that have an edge into them from one of the sources."""
    return _bitmask(v for v in _bits(nodes) if into[v] & sources)


def _flood(start: int, edges: list[int], allowed: int) -> int:
    """The nodes that can be reached from ``start`` along ``edges`` within ``allowed``, ``start``
    among them.
    """
    found, fresh = start, start
    while fresh:
        low = fresh & -fresh
        fresh ^= low
        more = edges[low.bit_length() - 1] & allowed & ~found
        found |= more
        fresh |= more
    return found
