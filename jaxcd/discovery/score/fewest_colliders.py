"""The graph with the edges of a found one and as few colliders as they allow.

A collider x -> z <- y whose ends x and y are not joined says that x and y are independent, and
become dependent given z.  On a release whose noise is large beside such dependences, chance decides
what is said.  Where a release knows that of itself (``opens_directions``), the edges of its best
graph stay, and their directions are left open as far as a DAG may: with a chordal skeleton, all.

Orders are made by maximum cardinality search, twice from each node: the next node is one with the
most neighbours among those before it.  Edges that lead along such an order form no collider where
the skeleton is chordal (Tarjan and Yannakakis 1984), and few elsewhere.  What is known before, and
arcs that the score orients beyond the class, keep their direction: a node waits for those that must
stand before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from jaxcd.discovery.score.limits import Limits
from jaxcd.graphs.dag import topological_order
from jaxcd.scores.base import first_best

__all__ = ["n_colliders", "with_fewest_colliders"]


def n_colliders(adjacency: np.ndarray) -> int:
    """The number of unshielded colliders of a DAG, bool (d, d): pairs of parents of one node that
    are not joined.
    """
    arcs = adjacency.astype(np.int64)
    apart = (~(adjacency | adjacency.T)).astype(np.int64)
    np.fill_diagonal(apart, 0)
    return int(((apart @ arcs) * arcs).sum()) // 2


def with_fewest_colliders(
    adjacency: np.ndarray, *, limits: Limits, kept: np.ndarray, total: Callable[[np.ndarray], float]
) -> np.ndarray:
    """A DAG with the edges of a given one and, of the orders that are tried, the fewest unshielded
    colliders; of several, the one with the highest score.

    Args:
        adjacency: the DAG, bool (d, d); it fits the limits.
        limits: what is known before.
        kept: the arcs, bool (d, d), that keep their direction.
        total: the score of a DAG, in nats; -inf where it has none.

    Returns:
        bool (d, d).  It fits the limits, and has a score if the given one has; the given one where
        none has fewer.

    Source:
        Tarjan and Yannakakis 1984, SIAM Journal on Computing 13(3).
    """
    joined = adjacency | adjacency.T
    before = limits.before | (adjacency & (kept | ~limits.allowed.T))
    for middle in range(len(before)):
        before |= before[:, middle, None] & before[None, middle]
    usual = np.argsort(topological_order(adjacency))
    found: dict[bytes, tuple[int, np.ndarray]] = {}
    firsts = np.flatnonzero(~before.any(axis=0)).tolist()
    for first, rank in itertools.product(firsts, (usual, -usual)):
        place = np.argsort(_order(joined, before, rank, first))
        along = joined & (place[:, None] < place[None, :])
        found[along.tobytes()] = (n_colliders(along), along)
    number = n_colliders(adjacency)
    for fewest in sorted({n for n, _ in found.values() if n < number}):
        members = [along for n, along in found.values() if n == fewest]
        values = np.array([total(along) for along in members])
        if (values > -np.inf).any():
            return members[first_best(values)]
    return adjacency


def _order(joined: np.ndarray, before: np.ndarray, rank: np.ndarray, first: int) -> np.ndarray:
    """An order from a node on: each next node is one of those whose predecessors all have a place,
    with the most neighbours that have one; of several that of the lowest rank.
    """
    d = len(joined)
    waits = before.sum(axis=0)
    placed = np.zeros(d, dtype=bool)
    neighbours = np.zeros(d, dtype=np.int64)
    neighbours[first] = d
    order = np.empty(d, dtype=np.int64)
    for place in range(d):
        ready = np.flatnonzero(~placed & (waits == 0))
        node = ready[np.lexsort((rank[ready], -neighbours[ready]))[0]]
        order[place] = node
        placed[node] = True
        waits = waits - before[node]
        neighbours += joined[node]
    return order
