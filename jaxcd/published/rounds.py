"""What the published sieves share: a threshold and a subsample a round, walked query by query in
the sequential order, computed ahead in batches.

Noise is simulated from a key, in one stream a round whose queries draw in their order: results do
not depend on how many queries were computed ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import jax
import numpy as np

from jaxcd.checks import check_key, is_number, is_whole
from jaxcd.citests import Evaluation, Query, check_alpha
from jaxcd.citests.base import require_data
from jaxcd.data import Dataset
from jaxcd.decisions import DecisionRun, Frontier, Question
from jaxcd.errors import OptionError
from jaxcd.published.accounting import SievePrices
from jaxcd.queries import Session

__all__ = [
    "PublishedRun",
    "Round",
    "check_options",
    "check_rate",
    "require_whole_rows",
    "sieve_rounds",
    "streams",
]

# A round's p-values are lost with its subsample, so the look-ahead starts small and grows while
# nothing passes.
_FIRST_LOOK_AHEAD = 8
_LOOK_AHEAD = 1024
# An examination answers coming queries of at most this many table cells together (0.4 ms at
# n = 100,000, as long as a call).
_EXAMINED_CELLS = 512


@dataclass
class Round:
    """One threshold, and its queries' noise.

    Args:
        evaluate: answers queries on the round's rows.
        confirm: whether a candidate that passed is separated; it is told which queries come next,
            since one call answers several.
    """

    evaluate: Callable[[list[Query]], Evaluation]
    threshold: float
    query_scale: float
    stream: np.random.Generator
    confirm: Callable[[Query, list[Query]], bool]

    def first_pass(self, queries: list[Query]) -> int | None:
        """The first query with p + noise >= threshold.  A NaN never passes."""
        pvalues = np.exp(self.evaluate(queries).log_pvalue)
        hits = np.flatnonzero(
            pvalues + self.stream.laplace(0, self.query_scale, len(queries)) >= self.threshold
        )
        return int(hits[0]) if len(hits) else None


class PublishedRun(DecisionRun):
    """Walks the frontier round by round.  new_round: the k-th round, k = 0, 1, ...; the next one
    only where it is needed.
    """

    def __init__(self, new_round: Callable[[int], Round]) -> None:
        self._new_round = new_round
        self._look_ahead = _FIRST_LOOK_AHEAD
        self._round: Round | None = None
        self._n_started = 0
        self.n_passes = 0
        self.n_queries = 0
        self.asked: set[Query] = set()  # each pair and set once, whichever end asked

    def start_anew(self) -> None:
        """The next query begins a round, whether or not the last one has passed."""
        self._round = None

    def answer(self, frontier: Frontier) -> None:
        first_candidate = 0  # of the frontier's first question: the earlier ones have been asked
        while questions := frontier.peek(first_candidate + self._look_ahead):
            first_candidate = self._walk(frontier, questions, first_candidate)

    def _walk(self, frontier: Frontier, questions: list[Question], first_candidate: int) -> int:
        """Asks the candidates up to the first that passes; returns where to go on in the first
        question that is left.
        """
        asked: list[tuple[int, int]] = [
            (place, candidate)
            for place, question in enumerate(questions)
            for candidate in range(0 if place else first_candidate, len(question.candidates))
        ]
        hit = None
        while hit is None and asked:
            chunk, asked = asked[: self._look_ahead], asked[self._look_ahead :]
            queries = [_query(questions[place], candidate) for place, candidate in chunk]
            hit = self._ask(queries)
        if hit is None:
            for _ in questions:
                frontier.keep()
            return 0
        place, candidate = chunk[hit]
        for _ in range(place):
            frontier.keep()
        question = questions[place]
        if self._confirm(queries[hit], queries[hit + 1 :]):
            frontier.separate(question.candidates[candidate])
            return 0
        if candidate + 1 < len(question.candidates):
            return candidate + 1
        frontier.keep()
        return 0

    def _ask(self, queries: list[Query]) -> int | None:
        if self._round is None:
            self._round = self._new_round(self._n_started)
            self._n_started += 1
        hit = self._round.first_pass(queries)
        n_asked = len(queries) if hit is None else hit + 1
        self.n_queries += n_asked
        self.asked.update(queries[:n_asked])
        if hit is None:
            self._look_ahead = min(2 * self._look_ahead, _LOOK_AHEAD)
        return hit

    def _confirm(self, query: Query, upcoming: list[Query]) -> bool:
        assert self._round is not None
        confirmed = self._round.confirm(query, upcoming)
        self._round = None
        self._look_ahead = _FIRST_LOOK_AHEAD
        self.n_passes += 1
        return confirmed


def _query(question: Question, candidate: int) -> Query:
    return Query.of(question.x, question.y, question.candidates[candidate])


def streams(key: jax.Array) -> Callable[[int], np.random.Generator]:
    """The generator of the k-th round, from a typed key."""
    check_key(key)
    words = [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]
    return lambda k: np.random.Generator(
        np.random.Philox(np.random.SeedSequence([len(words), *words, k]))
    )


def _examined(session: Session, query: Query, upcoming: list[Query]) -> float:
    """The p-value of a query on all rows; the same call answers the next ones as long as that costs
    less than a call.
    """
    cards = session.view_cardinalities
    n_cells = accumulate(
        math.prod(cards[v] for v in (q.x, q.y, *q.given)) for q in (query, *upcoming)
    )
    n_answered = max(sum(n <= _EXAMINED_CELLS for n in n_cells), 1)
    return float(np.exp(session.evaluate([query, *upcoming][:n_answered]).log_pvalue[0]))


def sieve_rounds(
    session: Session,
    prices: SievePrices,
    *,
    alpha: float,
    bias: float,
    stream_of: Callable[[int], np.random.Generator],
) -> Callable[[int], Round]:
    """The rounds of sieve and examination: a new threshold and a new subsample each."""
    n = session.n_samples

    def new_round(k: int) -> Round:
        stream = stream_of(k)
        threshold = alpha - bias + stream.laplace(0, prices.threshold_scale)
        examine_noise = stream.laplace(0, prices.examine_scale)
        rows = np.zeros(n, dtype=bool)
        rows[stream.choice(n, prices.subsample_size, replace=False, shuffle=False)] = True
        return Round(
            session.restrict(rows).evaluate,
            threshold,
            prices.query_scale,
            stream,
            lambda query, upcoming: _examined(session, query, upcoming) + examine_noise >= alpha,
        )

    return new_round


def check_rate(rate: Any) -> float | None:
    """A rate of a subsample, or None."""
    if rate is not None and not is_number(rate, 0, 1, "(]"):
        raise OptionError(
            f"rate = {rate!r} is not in (0, 1]; None is that of least noise, 1 takes no subsample"
        )
    return rate


def require_whole_rows(data: Any, method: str) -> Dataset:
    """Returns the data, or raises OptionError where there is none in memory, or where missing cells
    are to be left out: the method reads all columns of the same rows.
    """
    rows = require_data(data, method)
    if any(rows.leaves_out):
        raise OptionError(
            f'missing="ignore": {method} reads all columns of the same rows, and would take a '
            'missing cell for a value; give data.reading("level"), by which it is one'
        )
    return rows


def check_options(*, epsilon: Any, alpha: Any, delta: Any, bias: Any, max_level: Any) -> None:
    """Refuses wrong options of a published method."""
    check_alpha(alpha)
    if not is_number(epsilon, 0, ends="(]"):
        raise OptionError(
            f"epsilon = {epsilon!r} is not a price; give a positive number for each round, such "
            "as 1.0"
        )
    if not is_number(delta, 0, 1, "()"):
        raise OptionError(
            f"delta = {delta!r} is not in (0, 1); give a small positive number such as 1e-3"
        )
    if not is_number(bias):
        raise OptionError(
            f"bias = {bias!r} is not a number; give the lowering of the sieve's threshold, such "
            "as 0.02"
        )
    if max_level is not None and not is_whole(max_level, 0):
        raise OptionError(
            f"max_level = {max_level!r} is not a level; use a whole number from 0, or None for no "
            "limit"
        )
