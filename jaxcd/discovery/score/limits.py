r"""What knowledge leaves of the DAGs that a search by score may return, and of the score.

Knowledge (:class:`jaxcd.Knowledge`) is three matrices.  A DAG fits it iff all its arcs are
*allowed*, all *required* arcs are there, and it has an order of its nodes, parents first, in which
i stands *before* j wherever the knowledge says so: nodes of an earlier tier, causes of required
arcs, and what follows by transitivity.  (No path leads from a later tier to an earlier one iff the
DAG and the arcs from every tier to the later ones together have no cycle: a cycle would climb tiers
and never come down.  So untiered nodes may be anywhere, and the paths through them are counted.)
The required arcs alone fit, or the knowledge would have been refused: there is always a result.

Searches over orders and exact ones take families that fit in orders that fit; searches over
equivalence classes, whose score is the class's, take the classes that have a member that fits.

*The pattern.*  What is returned for a DAG G is what all DAGs of G's class that fit agree on: the
CPDAG of G, with the arcs that the knowledge tells, closed under Meek's four rules, which is
complete for knowledge about pairs (Meek 1995).  Where a path between two tiers may go through an
untiered node the knowledge is not about pairs, and each edge left open is tried both ways.

*Required parents that cannot be weighed.*  A release may lack the table of a family with a required
parent.  The parents are then weighed without it: it is there whatever it is worth.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from jaxcd.discovery.constraint.background import check_knowledge, known_marks, oriented_as_known
from jaxcd.discovery.constraint.orientation import ConflictRule, SeparatingSets, apply_meek_rules
from jaxcd.discovery.score.ges_operators import ClassGraph, bits, class_graph, extended
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.scores import LocalScore

__all__ = ["Limits", "oriented_by_knowledge"]


@final
@dataclass(frozen=True, eq=False)
class Limits:
    """The DAGs over some names that fit what is known.

    Args:
        names: the d variables.
        allowed: bool (d, d), whether i -> j may be there.
        required: bool (d, d), whether i -> j must be there.
        before: bool (d, d), whether i stands before j in every order that fits; transitive.
        by_pairs: whether all that is known is about pairs, so that Meek's rules are complete.
        none: whether nothing is known.
    """

    names: tuple[str, ...]
    allowed: np.ndarray
    required: np.ndarray
    before: np.ndarray
    by_pairs: bool
    none: bool

    @staticmethod
    def of(knowledge: Knowledge | None, names: Sequence[str]) -> Limits:
        """The limits; all DAGs where the knowledge is None.

        Raises:
            OptionError: the knowledge is of another kind, or names what is not among the names.
        """
        check_knowledge(knowledge, names)
        names, d = tuple(names), len(names)
        apart = ~np.eye(d, dtype=bool)
        if knowledge is None:
            nothing = np.zeros((d, d), dtype=bool)
            return Limits(names, apart, nothing, nothing, True, True)
        required = knowledge.tails(names).T
        tier = np.array([np.nan if (k := knowledge.tier_of(name)) is None else k for name in names])
        before = (tier[:, None] < tier[None, :]) | required
        for middle in range(d):
            before |= before[:, middle, None] & before[None, middle]
        allowed = ~knowledge.arrowheads(names).T & ~before.T & apart
        by_pairs = len(set(tier[~np.isnan(tier)])) < 2 or not np.isnan(tier).any()
        return Limits(names, allowed, required, before, by_pairs, False)

    # ---- as bits

    @cached_property
    def may_enter(self) -> tuple[int, ...]:
        """For each node the parents that it may have."""
        return _columns(self.allowed)

    @cached_property
    def may_leave(self) -> tuple[int, ...]:
        """For each node the children that it may have."""
        return _columns(self.allowed.T)

    @cached_property
    def must_enter(self) -> tuple[int, ...]:
        """For each node the parents that it must have."""
        return _columns(self.required)

    @cached_property
    def earlier(self) -> tuple[int, ...]:
        """For each node those before it."""
        return _columns(self.before)

    @cached_property
    def later(self) -> tuple[int, ...]:
        """For each node those behind it."""
        return _columns(self.before.T)

    def parents(self, node: int) -> tuple[int, ...]:
        """The required parents, sorted."""
        return tuple(bits(self.must_enter[node]))

    @property
    def most_required(self) -> int:
        """The largest number of required parents."""
        return int(self.required.sum(axis=0).max(initial=0))

    # ---- orders

    def ordered(self, order: np.ndarray) -> np.ndarray:
        """The order, int (d,), with nodes moved back behind those that stand before them."""
        if self.none:
            return order
        place = np.argsort(order)
        waits = self.before.sum(axis=0)
        ready = [int(place[v]) for v in np.flatnonzero(waits == 0)]
        heapq.heapify(ready)
        found = []
        while ready:
            v = int(order[heapq.heappop(ready)])
            found.append(v)
            waits = waits - self.before[v]
            for w in np.flatnonzero(self.before[v] & (waits == 0)).tolist():
                heapq.heappush(ready, int(place[w]))
        return np.array(found)

    def reach(self, orders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last place to which the node in each place may move, int (R, d), in
        orders (R, d) that fit.
        """
        d = orders.shape[1]
        before = self.before[orders[:, :, None], orders[:, None, :]]  # [r, a, b], by places
        places = np.arange(d)
        first = np.where(before, places[None, :, None] + 1, 0).max(axis=1)
        last = np.where(before, places[None, None, :] - 1, d - 1).min(axis=2)
        return first, last

    # ---- graphs

    def member(self, graph: ClassGraph) -> tuple[int, ...] | None:
        """A DAG that fits of the class of a CPDAG, as the parents of each node, bits; None where
        no DAG of it does.

        Edges that the knowledge orients are directed; then nodes are taken out that may be last
        (Dor and Tarsi 1992), and behind which none must stand.  If there is a DAG that fits, the
        last of its order is such a node, and the rest of the DAG fits the rest of the graph; so any
        such node may be taken.  A new v-structure in the result shows that the knowledge makes one.
        """
        parents, children, around = (list(part) for part in graph)
        for v in range(len(parents)):
            joined = graph.adjacent(v)
            open_ways = self.may_enter[v] | self.may_leave[v]
            if (
                graph.parents[v] & ~self.may_enter[v]
                or self.must_enter[v] & ~joined
                or joined & ~open_ways
            ):
                return None
            for u in bits(graph.neighbours[v] & ~self.may_leave[v]):
                parents[v] |= 1 << u
                children[u] |= 1 << v
                around[v] &= ~(1 << u)
                around[u] &= ~(1 << v)
        found = extended(
            ClassGraph(tuple(parents), tuple(children), tuple(around)), later=self.later
        )
        return None if found is None or class_graph(found) != graph else tuple(found)

    def fitting(self, adjacencies: np.ndarray) -> np.ndarray:
        """A DAG that fits of the class of each DAG, bool (G, d, d), where there is one: bool
        (G', d, d).  A DAG that fits stands for its class.
        """
        if self.none:
            return adjacencies
        found = [
            adjacency if self.fits(adjacency) else self._other(adjacency)
            for adjacency in adjacencies
        ]
        kept = [graph for graph in found if graph is not None]
        return np.array(kept) if kept else np.zeros((0, *adjacencies.shape[1:]), dtype=bool)

    def fits(self, adjacency: np.ndarray) -> bool:
        """Whether a DAG, bool (d, d), fits."""
        if (adjacency & ~self.allowed).any() or (self.required & ~adjacency).any():
            return False
        families = _columns(adjacency | self.before)
        return class_graph(families) is not None

    def _other(self, adjacency: np.ndarray) -> np.ndarray | None:
        graph = class_graph(_columns(adjacency))
        found = None if graph is None else self.member(graph)
        return None if found is None else _matrix(found)

    def pattern(self, adjacency: np.ndarray) -> MixedGraph:
        """What all DAGs agree on that are equivalent to a DAG that fits, bool (d, d), and fit."""
        graph = class_graph(_columns(adjacency))
        assert graph is not None
        return self.oriented(graph)

    def oriented(self, graph: ClassGraph) -> MixedGraph:
        """What all DAGs of the class agree on that fit, of which there is one."""
        open_pattern = MixedGraph(self.names, graph.marks())
        if self.none:
            return open_pattern
        told = self.allowed & ~self.allowed.T
        pattern = _closed(open_pattern, told)
        if self.by_pairs:
            return pattern
        for i, j in np.argwhere(np.triu(pattern.undirected)).tolist():
            if not pattern.undirected[i, j]:
                continue
            for a, b in ((i, j), (j, i)):
                if self._narrowed(a, b).member(graph) is None:
                    told = np.zeros_like(told)
                    told[b, a] = True
                    pattern = _closed(pattern, told)
                    break
        return pattern

    def _narrowed(self, a: int, b: int) -> Limits:
        """The same, and a -> b if they are joined."""
        allowed = self.allowed.copy()
        allowed[b, a] = False
        return Limits(self.names, allowed, self.required, self.before, self.by_pairs, False)

    # ---- scores

    def most_parents(self, score: LocalScore) -> tuple[int, ...]:
        """For each node the most parents that it may have: as many as the score counts and those
        that it does not count, or as many as are required.
        """
        required = self.required.sum(axis=0).tolist()
        return tuple(
            max(score.max_parents + score.uncounted(v), least) for v, least in enumerate(required)
        )

    def within(self, score: LocalScore) -> LocalScore:
        """The score of the families that fit; the score itself where nothing is known."""
        return score if self.none else _Within(score, self)

    def weighed(self, score: LocalScore) -> LocalScore:
        """The score of any family, of those with a required pair too; itself where there is
        none.
        """
        joined = self.required | self.required.T
        return _Weighed(score, _columns(joined)) if joined.any() else score


def oriented_by_knowledge(graph: MixedGraph, knowledge: Knowledge | None) -> MixedGraph:
    """What all DAGs of a class agree on that fit some knowledge: the CPDAG with every orientation
    that the knowledge tells or implies.

    Args:
        graph: a CPDAG.
        knowledge: over names of the graph; None for none.

    Returns:
        The maximally oriented graph: the CPDAG itself where nothing is known.

    Raises:
        OptionError: the knowledge names what is not in the graph, or no DAG of the class fits it.

    Source:
        Meek 1995.

    Example:
        >>> import jaxcd
        >>> from jaxcd.discovery import oriented_by_knowledge
        >>> chain = jaxcd.MixedGraph.from_edges(["a", "b", "c"], ["a --- b", "b --- c"])
        >>> print(oriented_by_knowledge(chain, jaxcd.Knowledge(tiers=[["a"], ["b"]])))
        a --> b
        b --> c
    """
    limits = Limits.of(knowledge, graph.names)
    directed, undirected = graph.directed, graph.undirected
    pattern = ClassGraph(_columns(directed), _columns(directed.T), _columns(undirected))
    if limits.member(pattern) is None:
        raise OptionError(
            "knowledge: no DAG that has the adjacencies and v-structures of the graph fits it; "
            "search with the knowledge instead"
        )
    return limits.oriented(pattern)


def oriented_along_paths(
    graph: MixedGraph,
    skeleton: MixedGraph,
    knowledge: Knowledge | None,
    *,
    separating_sets: SeparatingSets,
    rule: ConflictRule,
) -> MixedGraph:
    """What a search by tests found, with what tiers imply along paths through columns without a
    tier; the graph itself where tiers speak of pairs only, or no DAG of the answers fits.

    Args:
        graph: of :func:`jaxcd.discovery.constraint.background.oriented_as_known`.
        skeleton: as there.
        knowledge: as it was known there.
        separating_sets: as there.
        rule: as there.
    """
    limits = Limits.of(knowledge, graph.names)
    if limits.by_pairs:
        return graph
    open_graph = oriented_as_known(
        skeleton,
        known_marks(None, skeleton, latent=False),
        separating_sets=separating_sets,
        rule=rule,
    ).graph
    directed, undirected = open_graph.directed, open_graph.undirected
    pattern = ClassGraph(_columns(directed), _columns(directed.T), _columns(undirected))
    if limits.member(pattern) is None:
        return graph
    found = limits.oriented(pattern)
    same = (found.adjacency == graph.adjacency).all() and found.directed[graph.directed].all()
    return found if same else graph


def _closed(graph: MixedGraph, told: np.ndarray) -> MixedGraph:
    """The graph with i -> j where i --- j is told, closed under Meek's rules."""
    marks = graph.marks.copy()
    marks[told & graph.undirected] = 2  # an arrowhead; the tail is there
    return apply_meek_rules(MixedGraph(graph.names, marks))


def _columns(matrix: np.ndarray) -> tuple[int, ...]:
    """The columns of a bool matrix as bits."""
    packed = np.packbits(matrix.T, axis=1, bitorder="little")
    return tuple(int.from_bytes(column.tobytes(), "little") for column in packed)


def _matrix(parents: Sequence[int]) -> np.ndarray:
    """The inverse of :func:`_columns`."""
    result = np.zeros((len(parents),) * 2, dtype=bool)
    for v, mask in enumerate(parents):
        result[bits(mask), v] = True
    return result


class _Weighed(LocalScore):
    """A score that weighs a family it has no number for without some parents that are required."""

    def __init__(self, score: LocalScore, spared: tuple[int, ...]) -> None:
        self.score, self._spared = score, spared
        self.most_exact = score.most_exact

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.score.names

    @property
    def max_parents(self) -> int:
        """The score's."""
        return self.score.max_parents

    def uncounted(self, node: int) -> int:
        """The score's."""
        return self.score.uncounted(node)

    def candidates(self, node: int) -> tuple[int, ...]:
        """The score's."""
        return self.score.candidates(node)

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """The score of a node with the given parents, in nats."""
        return float(self.locals(node, [parents])[0])

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        values = np.array(self.score.locals(node, families), dtype=np.float64)
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            values[place] = self._without(node, families[place])
        return values

    def _without(self, node: int, family: tuple[int, ...]) -> float:
        """The best of the families without as few as possible of the parents that may be left
        out.
        """
        spared = [u for u in family if self._spared[node] >> u & 1]
        for size in range(1, len(spared) + 1):
            smaller = [
                tuple(u for u in family if u not in out)
                for out in itertools.combinations(spared, size)
            ]
            best = float(np.max(self.score.locals(node, smaller)))
            if math.isfinite(best):
                return best
        return -math.inf


class _Within(_Weighed):
    """The families that fit: required parents are in all of them, and no candidates."""

    def __init__(self, score: LocalScore, limits: Limits) -> None:
        super().__init__(score, limits.must_enter)
        self._limits, self._most_parents = limits, limits.most_parents(score)

    @property
    def max_parents(self) -> int:
        """The score's, or as many as are required."""
        return max(self.score.max_parents, self._limits.most_required)

    def candidates(self, node: int) -> tuple[int, ...]:
        """Those of the score that are allowed and not required."""
        free = self._limits.may_enter[node] & ~self._limits.must_enter[node]
        return tuple(u for u in self.score.candidates(node) if free >> u & 1)

    def families(self, node: int) -> tuple[tuple[int, ...], ...]:
        """Those of the score that are allowed, each with the required parents."""
        allowed, required = self._limits.may_enter[node], self._limits.parents(node)
        found = (
            tuple(sorted({*family, *required}))
            for family in self.score.families(node)
            if all(allowed >> u & 1 for u in family)
        )
        most = self._most_parents[node]
        return tuple(dict.fromkeys(family for family in found if len(family) <= most))

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, each with the required parents."""
        required, most = self._limits.parents(node), self._most_parents[node]
        full = [tuple(sorted({*family, *required})) for family in families]
        values = np.full(len(full), -np.inf)
        places = [place for place, family in enumerate(full) if len(family) <= most]
        if places:
            values[places] = super().locals(node, [full[place] for place in places])
        return values
