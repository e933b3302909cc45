"""The orientation rules R0 to R10 of FCI, as a table of pure functions from marks and separating
sets to marks.

A rule is matched everywhere in one and the same graph, and what it finds is written at once, so
that permuting the nodes permutes the result, also where separating sets contradict each other.
Three things hold for every input: adjacencies stay; only circles change; and a circle at which one
rule would write both an arrowhead and a tail stays a circle.

In the patterns below ``*`` is any mark, and a triple is unshielded if its ends are not adjacent.
No rule takes an *ambiguous* triple for a collider or for a non-collider.

Source:
    Zhang 2008, On the completeness of orientation rules for causal discovery in the presence of
    latent confounders and selection bias, Artificial Intelligence 172, 1873-1896.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxcd.discovery.constraint.fci_paths import (
    UncoveredPaths,
    bits,
    discriminating_ends,
    row_masks,
)
from jaxcd.graphs import Mark

__all__ = ["COLLIDERS", "RULES", "STAGES", "Evidence", "FCIRule"]


@dataclass(frozen=True)
class Evidence:
    """What the rules read beside the marks.

    Args:
        separating_sets: for each pair (x < y) of positions the set that separated it.
        ambiguous: triples (x, z, y) of which it is not known whether z is in a set that separates x
            and y; (y, z, x) is the same.
        max_path_length: the largest number of edges of the paths in R4, R5, R9 and R10; None for no
            limit.
    """

    separating_sets: Mapping[tuple[int, int], Collection[int]]
    ambiguous: frozenset[tuple[int, int, int]] = frozenset()
    max_path_length: int | None = None

    @cached_property
    def both_ways(self) -> frozenset[tuple[int, int, int]]:
        """The ambiguous triples in both directions."""
        return self.ambiguous | {(y, z, x) for x, z, y in self.ambiguous}

    def member(self, x: int, z: int, y: int) -> bool | None:
        """Is z in the set that separated x and y?  None: not known."""
        given = self.separating_sets.get((min(x, y), max(x, y)))
        return None if given is None or (x, z, y) in self.both_ways else z in given

    def blocked(self, d: int) -> np.ndarray:
        """The ambiguous triples as a bool array (d, d, d)."""
        result = np.zeros((d, d, d), dtype=bool)
        for triple in self.both_ways:
            result[triple] = True
        return result


class _Writes:
    """Where a rule wants marks: bool (d, d), true at (i, j) for the end at j of the edge between i
    and j.
    """

    def __init__(self, marks: np.ndarray) -> None:
        self.arrow = np.zeros(marks.shape, dtype=bool)
        self.tail = np.zeros(marks.shape, dtype=bool)


@dataclass(frozen=True)
class FCIRule:
    """One rule.

    Args:
        name: R0, ..., R10.
        pattern: the rule in words.  Called with marks, int8 (d, d), and evidence, it returns the
            new marks.
    """

    name: str
    pattern: str
    find: Callable[[np.ndarray, Evidence], _Writes]

    def __call__(self, marks: np.ndarray, evidence: Evidence) -> np.ndarray:
        """The marks after all that the rule finds in them was written."""
        writes = self.find(marks, evidence)
        open_ends = (marks == Mark.CIRCLE) & ~(writes.arrow & writes.tail)
        result = np.where(open_ends & writes.arrow, np.int8(Mark.ARROW), marks)
        return np.where(open_ends & writes.tail, np.int8(Mark.TAIL), result)


def _apart(marks: np.ndarray) -> np.ndarray:
    return (marks == Mark.NONE) & ~np.eye(len(marks), dtype=bool)


def _any_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Boolean matrix product, by way of float32, which is fast and counts exactly up to 2^24
    nodes.
    """
    return left.astype(np.float32) @ right.astype(np.float32) > 0


def _ends_of_triples(first: np.ndarray, apart: np.ndarray, evidence: Evidence) -> np.ndarray:
    """Bool (d, d) at (c, b): is there an unshielded, unambiguous triple a, b, c with
    ``first[a, b]``?
    """
    if not evidence.ambiguous:
        return _any_product(apart, first)
    fits = first[:, :, None] & apart[:, None, :] & ~evidence.blocked(len(apart))
    return fits.any(axis=0).T


def _paths(marks: np.ndarray, evidence: Evidence, steps: np.ndarray) -> UncoveredPaths:
    return UncoveredPaths(
        row_masks(steps),
        row_masks(_apart(marks)),
        ambiguous=evidence.both_ways,
        max_length=evidence.max_path_length,
    )


# ---- R0 to R4: arrowheads
# --------------------------------------------------------------------------------------------------


def _rule_0(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    apart = _apart(marks)
    for b in range(len(marks)):
        around = np.flatnonzero(marks[b])
        for p, q in np.argwhere(np.triu(apart[np.ix_(around, around)])):
            a, c = int(around[p]), int(around[q])
            if evidence.member(a, b, c) is False:
                writes.arrow[a, b] = writes.arrow[c, b] = True
    return writes


def _rule_1(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    # At (c, b): the end at b of the edge between b and c.
    writes.tail = (marks == Mark.CIRCLE) & _ends_of_triples(
        marks == Mark.ARROW, _apart(marks), evidence
    )
    writes.arrow = writes.tail.T
    return writes


def _rule_2(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    arrow = marks == Mark.ARROW
    directed = arrow & (marks.T == Mark.TAIL)
    writes.arrow = (marks == Mark.CIRCLE) & (
        _any_product(directed, arrow) | _any_product(arrow, directed)
    )
    return writes


def _rule_3(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    arrow, circle, apart = marks == Mark.ARROW, marks == Mark.CIRCLE, _apart(marks)
    for theta, beta in np.argwhere(circle):
        ends = np.flatnonzero(arrow[:, beta] & circle[:, theta])
        for p, q in np.argwhere(np.triu(apart[np.ix_(ends, ends)])):
            if (int(ends[p]), int(theta), int(ends[q])) not in evidence.both_ways:
                writes.arrow[theta, beta] = True
                break
    return writes


def _rule_4(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    arrow, limit = marks == Mark.ARROW, evidence.max_path_length
    for gamma, beta in np.argwhere(marks == Mark.CIRCLE).tolist():
        verdicts: dict[bool, set[int]] = {True: set(), False: set()}
        for alpha in np.flatnonzero(
            arrow[beta] & arrow[:, gamma] & (marks[gamma] == Mark.TAIL)
        ).tolist():
            for theta in discriminating_ends(
                marks, alpha=alpha, beta=beta, gamma=gamma, max_length=limit
            ):
                member = evidence.member(theta, beta, gamma)
                if member is not None:
                    verdicts[member].add(alpha)
        # Both answers put an arrowhead at gamma.  Where paths contradict each other, nothing is
        # said about beta.
        if verdicts[True] or verdicts[False]:
            writes.arrow[beta, gamma] = True
        if verdicts[True] and not verdicts[False]:
            writes.tail[gamma, beta] = True
        if verdicts[False] and not verdicts[True]:
            writes.arrow[[gamma, *verdicts[False]], beta] = True
    return writes


# ---- R5 to R7: tails that selection leaves
# --------------------------------------------------------------------------------------------------


def _rule_5(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    circle = (marks == Mark.CIRCLE) & (marks.T == Mark.CIRCLE)
    paths = _paths(marks, evidence, circle)
    steps = row_masks(circle)
    for a, b in np.argwhere(np.triu(circle)).tolist():
        # The edges of the path need no writing of their own: each of them closes the same uncovered
        # cycle.
        before_b = sum(1 << t for t in bits(steps[b]) if paths.is_open(t, b, a))
        if any(
            paths.is_open(b, a, c) and paths.connects(a, c, b, before_last=before_b)
            for c in bits(steps[a])
        ):
            writes.tail[a, b] = writes.tail[b, a] = True
    return writes


def _rule_6(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    undirected = (marks == Mark.TAIL) & (marks.T == Mark.TAIL)
    writes.tail = (marks == Mark.CIRCLE) & undirected.any(axis=0)
    return writes


def _rule_7(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    circle = marks == Mark.CIRCLE
    writes.tail = circle & _ends_of_triples(
        circle & (marks.T == Mark.TAIL), _apart(marks), evidence
    )
    return writes


# ---- R8 to R10: tails of o->
# --------------------------------------------------------------------------------------------------


def _into(marks: np.ndarray) -> np.ndarray:
    """Bool (d, d) at (a, c): a o-> c."""
    return (marks == Mark.ARROW) & (marks.T == Mark.CIRCLE)


def _potential_steps(marks: np.ndarray) -> np.ndarray:
    """Bool (d, d) at (u, v): the edge has no arrowhead at u and no tail at v."""
    return (marks != Mark.NONE) & (marks.T != Mark.ARROW) & (marks != Mark.TAIL)


def _rule_8(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    from_tail = (marks.T == Mark.TAIL) & ((marks == Mark.ARROW) | (marks == Mark.CIRCLE))
    directed = (marks == Mark.ARROW) & (marks.T == Mark.TAIL)
    writes.tail = (_into(marks) & _any_product(from_tail, directed)).T
    return writes


def _rule_9(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    steps = _potential_steps(marks)
    paths, next_to = _paths(marks, evidence, steps), row_masks(steps)
    for a, c in np.argwhere(_into(marks)).tolist():
        writes.tail[c, a] = any(
            paths.is_open(c, a, b) and paths.connects(a, b, c) for b in bits(next_to[a])
        )
    return writes


def _rule_10(marks: np.ndarray, evidence: Evidence) -> _Writes:
    writes = _Writes(marks)
    steps = _potential_steps(marks)
    paths, next_to = _paths(marks, evidence, steps), row_masks(steps)
    directed = (marks == Mark.ARROW) & (marks.T == Mark.TAIL)
    for a, c in np.argwhere(_into(marks)).tolist():
        parents = [b for b in np.flatnonzero(directed[:, c]).tolist() if b != a]
        if len(parents) < 2:
            continue
        # For each first node the parents of c to which it leads.
        leads_to = {m: {b for b in parents if paths.connects(a, m, b)} for m in bits(next_to[a])}
        writes.tail[c, a] = any(
            paths.is_open(m, a, w)
            and leads_to[m]
            and leads_to[w]
            and len(leads_to[m] | leads_to[w]) > 1
            for m in leads_to
            for w in leads_to
            if m < w
        )
    return writes


COLLIDERS = FCIRule(
    "R0", "a *-o b o-* c unshielded, b not in the separating set of a, c: a *-> b <-* c", _rule_0
)
"""The rule that starts everything; applied once."""

RULES: tuple[FCIRule, ...] = (
    FCIRule("R1", "a *-> b o-* c unshielded: b --> c", _rule_1),
    FCIRule("R2", "a --> b *-> c or a *-> b --> c, and a *-o c: a *-> c", _rule_2),
    FCIRule("R3", "a *-> b <-* c, a *-o d o-* c unshielded, d *-o b: d *-> b", _rule_3),
    FCIRule(
        "R4",
        "(d, ..., a, b, c) discriminating for b, and b o-* c: b --> c if b is in the separating "
        "set of d, c, else a <-> b <-> c",
        _rule_4,
    ),
    FCIRule(
        "R5",
        "a o-o b and an uncovered circle path (a, c, ..., d, b), c not adjacent to b nor a to d: "
        "all ---",
        _rule_5,
    ),
    FCIRule("R6", "a --- b o-* c: b --* c", _rule_6),
    FCIRule("R7", "a --o b o-* c unshielded: b --* c", _rule_7),
    FCIRule("R8", "a --> b --> c or a --o b --> c, and a o-> c: a --> c", _rule_8),
    FCIRule(
        "R9",
        "a o-> c and an uncovered potentially directed path (a, b, ..., c), b not adjacent to c: "
        "a --> c",
        _rule_9,
    ),
    FCIRule(
        "R10",
        "a o-> c, b --> c <-- d, uncovered potentially directed paths from a to b over m and from "
        "a to d over w, m and w "
        "not adjacent: a --> c",
        _rule_10,
    ),
)
"""R1 to R10."""

STAGES: tuple[tuple[FCIRule, ...], ...] = (RULES[:4], RULES[4:5], RULES[5:7], RULES[7:])
"""The rules in Zhang's order: each stage is closed before the next begins."""
