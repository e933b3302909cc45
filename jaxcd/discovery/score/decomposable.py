"""From a found graph to one near it without unshielded colliders: a decomposable model.

A collider x -> z <- y whose ends x and y are not joined says that x and y are independent, and
become dependent given z.  On a release whose noise is large beside such dependences, chance decides
what is said.  Where a release knows that of itself (``opens_directions``), a graph without such
colliders is returned: its skeleton is chordal, and no direction is told.

1. *Orders* by maximum cardinality search, twice from each node: the next node is one with the most
   neighbours among those before it.  Edges that lead along such an order form no collider where the
   skeleton is chordal (Tarjan and Yannakakis 1984), and few elsewhere.
2. *Edges.*  While colliders are left, the edge of one is taken out, or its ends are joined: of all
   such graphs with fewer colliders the one with the highest score, since a circle of four columns
   without a chord is rarer than an edge too many or too few.

What is known before, and arcs that the score orients beyond the class, keep their direction, and
required edges stay; colliders that these make stay too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from jaxcd.discovery.score.limits import Limits
from jaxcd.graphs.dag import topological_order
from jaxcd.scores.base import first_best

__all__ = ["decomposable", "n_colliders", "with_fewest_colliders"]


def n_colliders(adjacency: np.ndarray) -> int:
    """The number of unshielded colliders of a DAG, bool (d, d): pairs of parents of one node that
    are not joined.
    """
    return int(_numbers_of_colliders(adjacency[None])[0])


def _numbers_of_colliders(graphs: np.ndarray) -> np.ndarray:
    """Those of DAGs with one skeleton, bool (m, d, d)."""
    apart = ~(graphs[0] | graphs[0].T) & ~np.eye(len(graphs[0]), dtype=bool)
    # small whole numbers: exact, and products of floats are quick
    arcs = graphs.astype(np.float32)
    return ((apart.astype(np.float32) @ arcs) * arcs).sum(axis=(1, 2)).astype(np.int64) // 2


def decomposable(
    adjacency: np.ndarray, *, limits: Limits, kept: np.ndarray, total: Callable[[np.ndarray], float]
) -> np.ndarray:
    """A DAG without unshielded colliders, as far as it may be, of nearly the edges of a given one.

    Args:
        adjacency: the DAG, bool (d, d); it fits the limits.
        limits: what is known before.
        kept: the arcs, bool (d, d), that stay as they are.
        total: the score of a DAG, in nats; -inf where it has none.

    Returns:
        bool (d, d).  It fits the limits, and has a score if the given one has.

    Source:
        Lauritzen 1996, Graphical Models, chapter 4, for decomposable models.
    """
    found = with_fewest_colliders(adjacency, limits=limits, kept=kept, total=total)
    while number := n_colliders(found):
        near = list(_near(found, limits, kept))
        values = np.array([total(graph) for graph in near])
        while (values > -np.inf).any():
            best = first_best(values)
            values[best] = -np.inf
            fewer = with_fewest_colliders(near[best], limits=limits, kept=kept, total=total)
            if n_colliders(fewer) < number:
                found = fewer
                break
        else:
            break
    return found


def _near(adjacency: np.ndarray, limits: Limits, kept: np.ndarray) -> Iterator[np.ndarray]:
    """The DAGs in which an arc of an unshielded collider is missing, or its ends are joined."""
    joined, leads = adjacency | adjacency.T, _paths(adjacency)
    for z in range(len(adjacency)):
        for x, y in itertools.combinations(np.flatnonzero(adjacency[:, z]).tolist(), 2):
            if joined[x, y]:
                continue
            for parent in (x, y):
                if not (kept | limits.required)[parent, z]:
                    yield _with(adjacency, parent, z, False)
            for arc in ((x, y), (y, x)):
                if limits.allowed[arc] and not leads[arc[::-1]]:
                    yield _with(adjacency, *arc, True)


def _paths(arcs: np.ndarray) -> np.ndarray:
    """Whether a path leads from one node to another, bool (d, d)."""
    leads = arcs.copy()
    for middle in range(len(leads)):
        leads |= leads[:, middle, None] & leads[None, middle]
    return leads


def _with(adjacency: np.ndarray, parent: int, child: int, there: bool) -> np.ndarray:
    graph = adjacency.copy()
    graph[parent, child] = there
    return graph


def with_fewest_colliders(
    adjacency: np.ndarray, *, limits: Limits, kept: np.ndarray, total: Callable[[np.ndarray], float]
) -> np.ndarray:
    """A DAG with the edges of a given one and, of the orders that are tried, the fewest unshielded
    colliders; of several, the one with the highest score; the given one where none has fewer.

    Args:
        adjacency: as for :func:`decomposable`.
        limits: as ``adjacency``.
        kept: as ``adjacency``.
        total: as ``adjacency``.

    Source:
        Tarjan and Yannakakis 1984, SIAM Journal on Computing 13(3).
    """
    joined = adjacency | adjacency.T
    before = _paths(limits.before | (adjacency & (kept | ~limits.allowed.T)))
    along = joined & _earlier(joined, before, np.argsort(topological_order(adjacency)))
    numbers, fewest = _numbers_of_colliders(along), n_colliders(adjacency)
    for number in np.unique(numbers[numbers < fewest]).tolist():
        members = [*{graph.tobytes(): graph for graph in along[numbers == number]}.values()]
        if not number:  # all such are of one class
            members = members[:1]
        values = np.array([total(graph) for graph in members])
        if (values > -np.inf).any():
            return members[first_best(values)]
    return adjacency


def _earlier(joined: np.ndarray, before: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Whether i stands before j, bool (orders, d, d), in two orders from each node that may be the
    first.

    Each next node is one of those whose predecessors all have a place, with the most neighbours
    that have one; of several the first in the usual order, or in the second order the last.
    """
    d = len(joined)
    firsts = np.repeat(np.flatnonzero(~before.any(axis=0)), 2)
    rank = np.where(np.arange(len(firsts))[:, None] % 2, -usual, usual)
    each = np.arange(len(firsts))
    waits = np.tile(before.sum(axis=0), (len(firsts), 1))
    neighbours = np.zeros((len(firsts), d), dtype=np.int64)
    neighbours[each, firsts] = d
    place = np.full((len(firsts), d), -1)
    for position in range(d):
        ready = (place < 0) & (waits == 0)
        node = np.where(ready, neighbours * (2 * d) - rank, -(d**3) - d).argmax(axis=1)
        place[each, node] = position
        waits -= before[node]
        neighbours += joined[node]
    return np.asarray(place[:, :, None] < place[:, None, :])
