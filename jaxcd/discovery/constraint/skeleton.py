"""The skeletons of PC and FCI, once: levels, adjacency, and the frontiers that a decider answers.

Level l asks, for each pair that is still adjacent, whether a set of l neighbours separates it.  In
the *stable* order (Colombo and Maathuis 2014) neighbours are those at the level's start, so answers
of one level do not influence each other and the skeleton does not depend on the order of the
columns; in the *original* order (Spirtes, Glymour and Scheines 2000) an edge that is removed is
gone for the next question.

FCI makes a second pass over the same levels, in which the separators come from pools fixed at its
start (Possible-D-SEP).  It asks nothing twice: every answered question leaves behind from which
pools its sets were taken, which is public.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, permutations

import numpy as np

from jaxcd.decisions import DecisionRun, Frontier, Question

__all__ = ["SearchSpace", "Skeleton", "search_pools", "search_skeleton"]

Admissible = Callable[[int, int, tuple[int, ...]], bool]
# All sets that are admissible for a pair, where these are few; None where they are not known.
Listed = Callable[[int, int], Collection[tuple[int, ...]] | None]
Report = Callable[[int, int, int], None]
Pair = tuple[int, int]
# A question with the pools (bit masks) of its candidates.
_Waiting = tuple[Question, list[int]]


@dataclass(frozen=True)
class SearchSpace:
    """What is known of a search before it asks.

    Args:
        rank: for each column its place in the order in which columns are taken; default: as they
            stand.
        absent: pairs (x < y) that are not joined, and never asked.
        separated: pairs (x < y) that are separated already, each with a set that separates them;
            never asked.
        kept: pairs (x < y) that are joined, and never asked.
        allowed: for each pair (x < y) the columns that a separating set of the two may hold;
            default: all others.
    """

    rank: tuple[int, ...] | None = None
    absent: frozenset[Pair] = frozenset()
    separated: Mapping[Pair, tuple[int, ...]] = field(default_factory=dict)
    kept: frozenset[Pair] = frozenset()
    allowed: Mapping[Pair, Collection[int]] | None = None

    def ordered(self, columns: Iterable[int]) -> tuple[int, ...]:
        """The columns in the search's order."""
        return tuple(sorted(columns, key=None if self.rank is None else self.rank.__getitem__))

    def separators(self, x: int, y: int, pool: Collection[int]) -> tuple[int, ...]:
        """The columns of a pool (in its order) that may be in a separating set of x and y."""
        if self.allowed is None:
            return tuple(v for v in pool if v != x and v != y)
        allowed = self.allowed[min(x, y), max(x, y)]
        return tuple(v for v in pool if v in allowed and v != x and v != y)

    def skeleton(self, n_variables: int) -> Skeleton:
        """All pairs joined but those that are known not to be."""
        found = Skeleton(n_variables)
        for x, y in self.absent:
            found.adjacency[x, y] = found.adjacency[y, x] = False
        for (x, y), given in self.separated.items():
            found.remove(x, y, given)
        return found


class Skeleton:
    """An undirected graph on 0, ..., d - 1 that loses edges, and the set that separated each lost
    pair; complete to begin with.
    """

    def __init__(self, n_variables: int) -> None:
        self.adjacency = ~np.eye(n_variables, dtype=bool)
        self.separating_sets: dict[Pair, tuple[int, ...]] = {}
        # : For each pair (x < y) and size the pools (bit masks) of which all sets of that size were
        # asked, in vain.
        self.asked: dict[tuple[int, int, int], list[int]] = {}

    def neighbors(self, x: int, *, without: int) -> tuple[int, ...]:
        """The neighbours of x other than ``without``, ascending."""
        return tuple(int(v) for v in np.flatnonzero(self.adjacency[x]) if v != without)

    def remove(self, x: int, y: int, given: tuple[int, ...]) -> None:
        """Removes the edge between x and y."""
        self.adjacency[x, y] = self.adjacency[y, x] = False
        self.separating_sets[min(x, y), max(x, y)] = tuple(sorted(given))


class _Frontier(Frontier):
    """A frontier over pairs in a fixed order; questions are made when they are first looked at."""

    _asks_once = False

    def __init__(
        self,
        skeleton: Skeleton,
        level: int,
        admissible: Admissible,
        space: SearchSpace,
        listed: Listed,
    ) -> None:
        self.level = level
        self._skeleton = skeleton
        self._admissible = admissible
        self._listed = listed
        self._space = space
        self._waiting: list[_Waiting] = []
        self._source = self._questions()
        self.n_separated = 0
        self.n_asked = 0

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the level: what was separated and is still joined is taken out of the skeleton."""

    @abc.abstractmethod
    def _questions(self) -> Iterator[_Waiting]:
        """The level's questions, in order."""

    def _open(self, x: int, y: int) -> bool:
        return (
            bool(self._skeleton.adjacency[x, y]) and (min(x, y), max(x, y)) not in self._space.kept
        )

    def _question(self, x: int, y: int, pools: Sequence[Sequence[int]]) -> _Waiting | None:
        """The question whether a set of the level's size out of one of the pools separates x and y;
        None if there is no set.
        """
        candidates = tuple(
            given for given in self._sets(x, y, pools) if self._admissible(x, y, given)
        )
        return (Question(x, y, candidates), [_mask(pool) for pool in pools]) if candidates else None

    def _sets(self, x: int, y: int, pools: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
        before = (
            self._skeleton.asked.get((min(x, y), max(x, y), self.level), [])
            if self._asks_once
            else []
        )
        fresh = [pool for pool in pools if all(_mask(pool) & ~known for known in before)]
        listed = self._listed(x, y)
        found: Iterable[Iterable[tuple[int, ...]]] = (
            combinations(pool, self.level) if listed is None else _among(listed, pool, self.level)
            for pool in fresh
        )
        for given in dict.fromkeys(chain.from_iterable(found)):
            if not before or all(_mask(given) & ~known for known in before):
                yield given

    def peek(self, n_candidates: int | None = None) -> list[Question]:
        held = sum(len(question.candidates) for question, _ in self._waiting)
        while n_candidates is None or held < n_candidates:
            item = next(self._source, None)
            if item is None:
                break
            self._waiting.append(item)
            held += len(item[0].candidates)
        return [question for question, _ in self._waiting]

    def keep(self) -> None:
        question, pools = self._waiting.pop(0)
        self.n_asked += 1
        key = (min(question.x, question.y), max(question.x, question.y), self.level)
        self._skeleton.asked.setdefault(key, []).extend(pools)

    def separate(self, given: tuple[int, ...]) -> None:
        question, _ = self._waiting.pop(0)
        self.n_asked += 1
        self.n_separated += 1
        self._remove(question, given)

    @abc.abstractmethod
    def _remove(self, question: Question, given: tuple[int, ...]) -> None:
        """Takes note of a separation."""


class _StableFrontier(_Frontier):
    """Each unordered pair once, candidates from pools that no answer of the level changes.

    Args:
        pools: for each column the separators to try; default: its neighbours at the level's start.
            With given pools nothing is asked that was asked before.
    """

    stable = True

    def __init__(
        self,
        skeleton: Skeleton,
        level: int,
        admissible: Admissible,
        space: SearchSpace,
        listed: Listed,
        pools: Sequence[Iterable[int]] | None = None,
    ) -> None:
        super().__init__(skeleton, level, admissible, space, listed)
        self._lost: list[tuple[Question, tuple[int, ...]]] = []
        self._asks_once = pools is not None
        if pools is None:
            pools = [np.flatnonzero(row).tolist() for row in skeleton.adjacency]
        self._pools = [space.ordered(pool) for pool in pools]

    def _questions(self) -> Iterator[_Waiting]:
        for x, y in combinations(self._space.ordered(range(len(self._pools))), 2):
            if self._open(x, y):
                # the empty set needs no pool, which has all other columns at the first level
                ends = [
                    self._space.separators(x, y, self._pools[end]) if self.level else ()
                    for end in (x, y)
                ]
                question = self._question(min(x, y), max(x, y), ends)
                if question is not None:
                    yield question

    def _remove(self, question: Question, given: tuple[int, ...]) -> None:
        self._lost.append((question, given))

    def close(self) -> None:
        """Removes what was separated, at the level's end."""
        for question, given in self._lost:
            self._skeleton.remove(question.x, question.y, given)


class _OriginalFrontier(_Frontier):
    """Each ordered pair (x, y), candidates from the neighbours that x has when the question comes
    up.
    """

    stable = False

    def _questions(self) -> Iterator[_Waiting]:
        for x, y in permutations(self._space.ordered(range(len(self._skeleton.adjacency))), 2):
            question = self._renewed(x, y)
            if question is not None:
                yield question

    def _renewed(self, x: int, y: int) -> _Waiting | None:
        if not self._open(x, y):
            return None
        row = self._skeleton.adjacency[x] if self.level else ()
        neighbors = self._space.ordered(np.flatnonzero(row).tolist())
        return self._question(x, y, [self._space.separators(x, y, neighbors)])

    def _remove(self, question: Question, given: tuple[int, ...]) -> None:
        self._skeleton.remove(question.x, question.y, given)
        # What was looked at ahead is asked anew with the neighbours that are left.
        renewed = (self._renewed(q.x, q.y) for q, _ in self._waiting)
        self._waiting = [item for item in renewed if item is not None]

    def close(self) -> None:
        """Nothing is left to do."""


def _among(
    sets: Collection[tuple[int, ...]], pool: Sequence[int], size: int
) -> list[tuple[int, ...]]:
    """The sets of a size that lie in a pool, in the order of ``combinations(pool, size)``."""
    place = {v: i for i, v in enumerate(pool)}
    places = [
        sorted(place[v] for v in given)
        for given in sets
        if len(given) == size and all(v in place for v in given)
    ]
    return [tuple(pool[i] for i in given) for given in sorted(places)]


def _mask(columns: Iterable[int]) -> int:
    mask = 0
    for v in columns:
        mask |= 1 << v
    return mask


def _answered(run: DecisionRun, frontier: _Frontier) -> None:
    """Has a frontier answered; what was separated is taken out of the skeleton even where the run
    breaks off.
    """
    try:
        run.answer(frontier)
    finally:
        frontier.close()


def _unlisted(x: int, y: int) -> None:
    return None


def search_skeleton(
    run: DecisionRun,
    n_variables: int,
    *,
    admissible: Admissible,
    max_level: int | None,
    stable: bool,
    report: Report,
    space: SearchSpace | None = None,
    another_pass_follows: bool = False,
    skeleton: Skeleton | None = None,
    listed: Listed = _unlisted,
) -> Skeleton:
    """PC's skeleton by the answers of a decider.

    Args:
        admissible: whether a query may be asked (public).
        max_level: the largest |S|, or None.
        report: called after each level with (level, pairs asked, pairs separated).
        space: what is known before (default: nothing).
        another_pass_follows: whether :func:`search_pools` is called afterwards, told to the
            decider.
        skeleton: of all pairs, to be worked on in place; None for a new one.
        listed: for each pair the sets that may be asked, where these are few.

    Stops when no pair has enough neighbours, or when the budget is exhausted.
    """
    space = space or SearchSpace()
    skeleton = space.skeleton(n_variables) if skeleton is None else skeleton
    level = 0
    while max_level is None or level <= max_level:
        frontier = (_StableFrontier if stable else _OriginalFrontier)(
            skeleton, level, admissible, space, listed
        )
        frontier.another_pass_follows = another_pass_follows
        if not frontier.peek(1):
            break
        _answered(run, frontier)
        report(level, frontier.n_asked, frontier.n_separated)
        if run.exhausted:
            break
        level += 1
    return skeleton


def search_pools(
    run: DecisionRun,
    skeleton: Skeleton,
    pools: Sequence[tuple[int, ...]],
    *,
    admissible: Admissible,
    max_level: int | None,
    report: Report,
    space: SearchSpace,
    listed: Listed = _unlisted,
) -> None:
    """A second pass: asks each pair that is still joined for the sets out of ``pools[x]`` and
    ``pools[y]`` not asked before.

    Args:
        pools: for each column the candidates, which no answer changes; public.  The other arguments
            as for :func:`search_skeleton`. Removes the pairs that are separated from the skeleton;
            ends after the largest level, or when the budget is exhausted.
    """
    largest = max(map(len, pools), default=0)
    for level in range((largest if max_level is None else min(max_level, largest)) + 1):
        frontier = _StableFrontier(skeleton, level, admissible, space, listed, pools)
        if run.exhausted:
            return
        if frontier.peek(1):
            _answered(run, frontier)
            report(level, frontier.n_asked, frontier.n_separated)
