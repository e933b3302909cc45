"""The skeleton of PC, once: levels, adjacency, and the frontiers that a decider answers.

Level l asks, for each pair that is still adjacent, whether a set of l neighbours separates it.  In the *stable* order
(Colombo and Maathuis 2014) neighbours are those at the level's start, so answers of one level do not influence each other and
the skeleton does not depend on the order of the columns; in the *original* order (Spirtes, Glymour and Scheines 2000) an edge
that is removed is gone for the next question.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from itertools import combinations, permutations

import numpy as np

from jaxcd.decisions import DecisionRun, Frontier, Question

__all__ = ["Skeleton", "search_skeleton"]

Admissible = Callable[[int, int, tuple[int, ...]], bool]


class Skeleton:
    """An undirected graph on 0, ..., d - 1 that loses edges, and the set that separated each lost pair."""

    def __init__(self, n_variables: int) -> None:
        self.adjacency = ~np.eye(n_variables, dtype=bool)
        self.separating_sets: dict[tuple[int, int], tuple[int, ...]] = {}

    def neighbors(self, x: int, *, without: int) -> tuple[int, ...]:
        """The neighbours of x other than ``without``, ascending."""
        return tuple(int(v) for v in np.flatnonzero(self.adjacency[x]) if v != without)

    def remove(self, x: int, y: int, given: tuple[int, ...]) -> None:
        """Removes the edge between x and y."""
        self.adjacency[x, y] = self.adjacency[y, x] = False
        self.separating_sets[min(x, y), max(x, y)] = tuple(sorted(given))


class _Frontier(Frontier):
    """A frontier over pairs in a fixed order; questions are made when they are first looked at."""

    def __init__(self, skeleton: Skeleton, level: int, admissible: Admissible) -> None:
        self.level = level
        self._skeleton = skeleton
        self._admissible = admissible
        self._waiting: list[Question] = []
        self._source = self._questions()
        self.n_separated = 0
        self.n_asked = 0

    @abc.abstractmethod
    def _questions(self) -> Iterator[Question]:
        """The level's questions, in order."""

    def _candidates(self, x: int, y: int, pools: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        sets = dict.fromkeys(given for pool in pools for given in combinations(pool, self.level))
        return tuple(given for given in sets if self._admissible(x, y, given))

    def peek(self, n_candidates: int | None = None) -> list[Question]:
        held = sum(len(question.candidates) for question in self._waiting)
        while n_candidates is None or held < n_candidates:
            question = next(self._source, None)
            if question is None:
                break
            self._waiting.append(question)
            held += len(question.candidates)
        return list(self._waiting)

    def keep(self) -> None:
        self._waiting.pop(0)
        self.n_asked += 1

    def separate(self, given: tuple[int, ...]) -> None:
        question = self._waiting.pop(0)
        self.n_asked += 1
        self.n_separated += 1
        self._remove(question, given)

    @abc.abstractmethod
    def _remove(self, question: Question, given: tuple[int, ...]) -> None:
        """Takes note of a separation."""


class _StableFrontier(_Frontier):
    """Each unordered pair once, candidates from the neighbours of either end at the level's start."""

    stable = True

    def __init__(self, skeleton: Skeleton, level: int, admissible: Admissible) -> None:
        super().__init__(skeleton, level, admissible)
        self._lost: list[tuple[Question, tuple[int, ...]]] = []

    def _questions(self) -> Iterator[Question]:
        adjacency = self._skeleton.adjacency.copy()
        pools = [tuple(int(v) for v in np.flatnonzero(row)) for row in adjacency]
        for x, y in combinations(range(len(adjacency)), 2):
            if adjacency[x, y]:
                ends = [tuple(v for v in pools[a] if v != b) for a, b in ((x, y), (y, x))]
                candidates = self._candidates(x, y, ends)
                if candidates:
                    yield Question(x, y, candidates)

    def _remove(self, question: Question, given: tuple[int, ...]) -> None:
        self._lost.append((question, given))

    def close(self) -> None:
        """Removes what was separated, at the level's end."""
        for question, given in self._lost:
            self._skeleton.remove(question.x, question.y, given)


class _OriginalFrontier(_Frontier):
    """Each ordered pair (x, y), candidates from the neighbours that x has when the question comes up."""

    stable = False

    def _questions(self) -> Iterator[Question]:
        for x, y in permutations(range(len(self._skeleton.adjacency)), 2):
            question = self._question(x, y)
            if question is not None:
                yield question

    def _question(self, x: int, y: int) -> Question | None:
        if not self._skeleton.adjacency[x, y]:
            return None
        candidates = self._candidates(x, y, [self._skeleton.neighbors(x, without=y)])
        return Question(x, y, candidates) if candidates else None

    def _remove(self, question: Question, given: tuple[int, ...]) -> None:
        self._skeleton.remove(question.x, question.y, given)
        # What was looked at ahead is asked anew with the neighbours that are left.
        renewed = (self._question(q.x, q.y) for q in self._waiting)
        self._waiting = [q for q in renewed if q is not None]

    def close(self) -> None:
        """Nothing is left to do."""


def search_skeleton(
    run: DecisionRun,
    n_variables: int,
    *,
    admissible: Admissible,
    max_level: int | None,
    stable: bool,
    report: Callable[[int, int, int], None],
) -> Skeleton:
    """PC's skeleton by the answers of a decider.

    admissible: whether a query may be asked (public).  max_level: the largest |S|, or None.  report: called after each level
    with (level, pairs asked, pairs separated).  Stops when no pair has enough neighbours, or when the budget is exhausted.
    """
    skeleton = Skeleton(n_variables)
    level = 0
    while max_level is None or level <= max_level:
        frontier = (_StableFrontier if stable else _OriginalFrontier)(skeleton, level, admissible)
        if not frontier.peek(1):
            break
        run.answer(frontier)
        frontier.close()
        report(level, frontier.n_asked, frontier.n_separated)
        if run.exhausted:
            break
        level += 1
    return skeleton
