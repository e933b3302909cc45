"""Paths that the orientation rules of FCI look for: uncovered paths and discriminating paths.

A path is *uncovered* if no two nodes that are two steps apart on it are adjacent.  Such a path is
found by a search over ordered pairs (u, v) of adjacent nodes: whether w may follow depends on u and
v only.  What that search finds is a walk, in which a node may come twice; as nearly always a
shortest walk is a path, it is looked at first, and only where none of them is a path are the paths
themselves enumerated.  Both searches together miss nothing and invent nothing.

Sets of nodes are the bits of Python integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

import numpy as np

from jaxcd.graphs import Mark

__all__ = ["UncoveredPaths", "bits", "discriminating_ends", "row_masks"]

_State = tuple[int, int]
# Each ordered pair that is reached, with the one before it on a shortest walk.
_Walks = dict[_State, _State | None]


def bits(mask: int) -> Iterator[int]:
    """Positions of the bits of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def row_masks(wanted: np.ndarray) -> list[int]:
    """Each row of a bool matrix as a mask."""
    return [sum(1 << int(j) for j in np.flatnonzero(row)) for row in wanted]


@final
class UncoveredPaths:
    """Uncovered paths whose steps are all of one kind.

    Args:
        steps: per node the mask of nodes that may come next.
        apart: per node the mask of nodes not adjacent to it (itself not among them).
        ambiguous: triples (u, v, w), in both directions, that are not known to be non-colliders and
            that no path may pass.
        max_length: the largest number of edges; None for no limit.
    """

    def __init__(
        self,
        steps: Sequence[int],
        apart: Sequence[int],
        *,
        ambiguous: Iterable[tuple[int, int, int]] = (),
        max_length: int | None = None,
    ) -> None:
        self._steps = steps
        self._apart = apart
        self._max_length = max_length
        self._blocked: dict[tuple[int, int], int] = {}
        for u, v, w in ambiguous:
            self._blocked[u, v] = self._blocked.get((u, v), 0) | 1 << w
        self._cache: dict[_State, _Walks] = {}

    def follows(self, u: int, v: int) -> int:
        """The nodes w such that u, v, w is uncovered and v -> w is a step."""
        return self._steps[v] & self._apart[u] & ~self._blocked.get((u, v), 0)

    def is_open(self, u: int, v: int, w: int) -> bool:
        """Whether u and w are not adjacent and u, v, w is not ambiguous."""
        return bool(self._apart[u] & ~self._blocked.get((u, v), 0) & 1 << w)

    def connects(self, first: int, second: int, last: int, *, before_last: int = -1) -> bool:
        """Is there such a path from ``first`` over ``second`` to ``last`` whose last node but one
        is in the mask ``before_last``?

        A path of one edge has second = last, and its last node but one is first.
        """
        if not self._steps[first] >> second & 1 or self._max_length == 0:
            return False
        if second == last:
            return bool(before_last >> first & 1)
        walks = self._walks(first, second)
        ends = [
            state for u in bits(before_last & self._entering(last)) if (state := (u, last)) in walks
        ]
        if any(_is_path(walks, state) for state in ends):
            return True
        return bool(ends) and self._enumerate(
            first, second, set(ends), _leading_to(ends, walks, self.follows)
        )

    def _entering(self, v: int) -> int:
        return sum(1 << u for u, steps in enumerate(self._steps) if steps >> v & 1)

    def _walks(self, first: int, second: int) -> _Walks:
        """All ordered pairs that walks beginning with these two nodes reach within the largest
        length.
        """
        start = (first, second)
        if start not in self._cache:
            walks: _Walks = {start: None}
            frontier, length = [start], 1
            while frontier and (self._max_length is None or length < self._max_length):
                ahead = []
                for u, v in frontier:
                    for w in bits(self.follows(u, v)):
                        if (v, w) not in walks:
                            walks[v, w] = (u, v)
                            ahead.append((v, w))
                frontier = ahead
                length += 1
            self._cache[start] = walks
        return self._cache[start]

    def _enumerate(self, first: int, second: int, ends: set[_State], useful: set[_State]) -> bool:
        """The same by all paths, one after the other, along pairs from which an end can be
        reached.
        """
        limit = len(self._steps) if self._max_length is None else self._max_length
        path, used = [first, second], 1 << first | 1 << second
        waiting = [bits(self.follows(first, second) & ~used)]
        while waiting:
            w = next(waiting[-1], None)
            if w is None or len(path) > limit:
                waiting.pop()
                used &= ~(1 << path.pop())
            elif (path[-1], w) in ends:
                return True
            elif (path[-1], w) in useful:
                path.append(w)
                used |= 1 << w
                waiting.append(bits(self.follows(path[-2], w) & ~used))
        return False


def _is_path(walks: _Walks, end: _State) -> bool:
    """Does the shortest walk to this pair come to every node once?"""
    used, state = 1 << end[1], walks[end]
    before: int = end[0]
    while True:
        if used >> before & 1:
            return False
        used |= 1 << before
        if state is None:
            return True
        before, state = state[0], walks[state]


def _leading_to(
    ends: Iterable[_State], walks: _Walks, follows: Callable[[int, int], int]
) -> set[_State]:
    """The pairs among those reached from which one of the ends is reached."""
    earlier: dict[_State, list[_State]] = {}
    for u, v in walks:
        for w in bits(follows(u, v)):
            earlier.setdefault((v, w), []).append((u, v))
    useful = set(ends)
    waiting = list(useful)
    while waiting:
        fresh = [state for state in earlier.get(waiting.pop(), ()) if state not in useful]
        useful.update(fresh)
        waiting += fresh
    return useful


def discriminating_ends(
    marks: np.ndarray, *, alpha: int, beta: int, gamma: int, max_length: int | None = None
) -> tuple[int, ...]:
    """The nodes theta with a discriminating path (theta, ..., alpha, beta, gamma) for beta.

    On it theta and gamma are not adjacent, and every node between theta and beta is a collider on
    the path and a parent of gamma. The conditions concern single nodes and edges only, and theta is
    the one node not adjacent to gamma, so every walk is a path.

    Args:
        marks: int8 (d, d).
        max_length: the largest number of edges, at least 3 to find any; None for no limit.

    Returns:
        positions, ascending.
    """
    arrow, tail = marks == Mark.ARROW, marks == Mark.TAIL
    is_parent = arrow[:, gamma] & tail[gamma]
    is_parent[beta] = False
    if not (is_parent[alpha] and arrow[beta, alpha]):
        return ()
    both = arrow & arrow.T
    apart = marks[gamma] == Mark.NONE
    apart[gamma] = False
    ends = np.zeros(len(marks), dtype=bool)
    seen = np.zeros(len(marks), dtype=bool)
    seen[alpha] = True
    fresh, length = seen, 3
    while fresh.any() and (max_length is None or length <= max_length):
        ends |= arrow[:, fresh].any(axis=1) & apart
        fresh = both[fresh].any(axis=0) & is_parent & ~seen
        seen = seen | fresh
        length += 1
    return tuple(np.flatnonzero(ends).tolist())
