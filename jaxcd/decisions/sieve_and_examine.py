"""Sieve-and-examine: a cheap sparse vector on a subsample, then one look at the full data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jaxcd.checks import check_number
from jaxcd.decisions.base import DecisionRun, Frontier, Price, Question, queries_of
from jaxcd.decisions.rounds import (
    CountedDecider,
    PayingRun,
    default_rounds,
    equal_pure_events,
    stated,
)
from jaxcd.errors import BudgetExhausted, OptionError
from jaxcd.privacy import AboveThreshold, Accountant, PrivacyFilter, laplace
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim
from jaxcd.queries import Session, Subsample

__all__ = ["SieveAndExamine", "optimal_rate"]

_SMALLEST_RATE = 1 / 20
# Above this e^epsilon overflows; the best rate is 1 long before.
_LARGEST = 700.0
# Margins on a subsample are lost with it, so the look-ahead starts small and grows while nothing
# passes.
_FIRST_LOOK_AHEAD = 32
_LOOK_AHEAD = 1024


def optimal_rate(epsilon: float) -> float:
    r"""The subsampling rate q in [1/20, 1] of the Priv-PC paper: least sqrt(1/q) / ln(1 +
    (e^epsilon - 1) / q).

    Args:
        epsilon: the price of one sieve.  That is the sieve's noise in units of the null's standard
            deviation, both on the subsample; the signal, which shrinks as well, is not in it
            (PRIVACY.md N.1).

    Source:
        Wang, Pang, Song 2020, section 5.2.
    """
    if epsilon > _LARGEST:
        return 1.0
    from scipy import optimize  # slow to import, and needed here only

    noise = lambda x: math.sqrt(x) / math.log1p(x * math.expm1(epsilon))  # noqa: E731
    best = optimize.minimize_scalar(noise, bounds=(1.0, 1 / _SMALLEST_RATE), method="bounded").x
    return 1 / min((1.0, float(best), 1 / _SMALLEST_RATE), key=noise)


class _SieveRun(PayingRun):
    def __init__(
        self, session: Session, accountant: Accountant, n_rounds: int, rate: float | None
    ) -> None:
        super().__init__(session, accountant)
        self._epsilon = equal_pure_events(accountant.ledger, 2 * n_rounds)
        n = session.n_samples
        self._size = min(
            n, max(2, math.floor(n * (optimal_rate(self._epsilon) if rate is None else rate)))
        )
        self._stated_of_subset = stated(session, self._size)
        self._sieve: AboveThreshold | None = None
        self._queue: Subsample | None = None
        self._look_ahead = _FIRST_LOOK_AHEAD

    def _current_sieve(self) -> tuple[AboveThreshold, Subsample]:
        if self._sieve is None or self._queue is None or self._sieve.spent:
            n = self._session.n_samples
            self._sieve = AboveThreshold(
                self._accountant,
                epsilon=self._epsilon,
                rate=self._size / n,
                label="sieve",
                **self._stated_of_subset,
            )
            self._queue = self._session.restrict(self._sieve.draw_subset(n, self._size))
            self._look_ahead = _FIRST_LOOK_AHEAD
        return self._sieve, self._queue

    def _examine(self, question: Question, given: tuple[int, ...]) -> bool:
        query = queries_of(question._replace(candidates=(given,)))
        noisy = laplace(
            self._accountant,
            self._session.margins(query),
            epsilon=self._epsilon,
            label="examine",
            **self._stated,
        )
        return bool(noisy[0] <= 0)

    def answer(self, frontier: Frontier) -> None:
        first_candidate = 0  # of the frontier's first question: the earlier ones have been asked
        try:
            while questions := frontier.peek(self._look_ahead):
                first_candidate = self._walk(frontier, questions, first_candidate)
        except BudgetExhausted:
            self.exhausted = True

    def _walk(self, frontier: Frontier, questions: list[Question], first_candidate: int) -> int:
        """Answers questions up to and including the first that passes the sieve; returns where to
        go on in the next one.
        """
        sieve, queue = self._current_sieve()
        head = questions[0]
        asked = [(head, given) for given in head.candidates[first_candidate:]]
        asked += [(question, given) for question in questions[1:] for given in question.candidates]
        if not asked:
            frontier.keep()
            return 0
        margins = queue.margins(
            [queries_of(q._replace(candidates=(given,)))[0] for q, given in asked]
        )
        hit = sieve.first_above(margins.map(np.negative), threshold=sieve.noise_mean)
        self._look_ahead = min(2 * self._look_ahead, _LOOK_AHEAD)
        if hit is None:
            for _ in questions:
                frontier.keep()
            return 0
        question, given = asked[hit]
        for earlier in questions:
            if earlier is question:
                break
            frontier.keep()
        if self._examine(question, given):
            frontier.separate(given)
            return 0
        return question.candidates.index(given) + 1


@dataclass(frozen=True)
class SieveAndExamine(CountedDecider):
    r"""Priv-PC's mechanism, with the constants that hold.

    *Sieve*: an AboveThreshold on minus the margins of a secret uniform subsample of m records.
    *Examine*: the candidate that passes is asked again on the full data; margin + Laplace noise <=
    0 separates.  After every pass of the sieve, confirmed or not, both its threshold and its
    subsample are drawn anew.  A round is one sieve and one examination, of the same price; the
    number of rounds and the price are fixed before the data is read.

    Args:
        alpha: level of the test, 0 < alpha < 1.
        n_rounds: the number of sieve passes paid for, from 1; None takes p (p - 1) / 2 - (p - 1)
            for p > 2 columns, enough for every tree.
        rate: m / n, in (0, 1]; None takes the one that :mod:`jaxcd.decisions.sieve_and_examine`
            computes from the sieve's price, in [1/20, 1].

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: replace-one; n, m and the options are public.  Sensitivity: that of the margin,
        which the test must state for subsamples too.  Event: ``PureEvent(epsilon_0)`` a sieve
        (amplified: the AboveThreshold on the subsample has ln(1 + (e^epsilon_0 - 1) n / m)) and
        ``PureEvent(epsilon_0)`` an examination, through the ledger's filter.  Proof:
        :mod:`jaxcd.privacy.above_threshold`; PRIVACY.md C1 and C2 for what the published constants
        get wrong.

    Source:
        Wang, Pang, Song 2020; Balle, Barthe, Gaboardi 2018 for the subsampling.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.SieveAndExamine(n_rounds=20),
        ...     budget=jaxcd.Budget(20.0),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> run.exhausted, run.graph.n_edges
        (False, 4)
    """

    claim = GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget",
        "jaxcd.privacy.above_threshold, jaxcd.privacy.conversion",
        assumptions=PUBLIC + "; the subsample is secret",
    )

    alpha: float = 0.05
    n_rounds: int | None = None
    rate: float | None = None

    _counts, _per_level = "n_rounds", "n_pairs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None:
            check_number("rate", self.rate, 0, 1, "(]", cure="give a sampling rate, or None")

    def _default(self, n_columns: int) -> int:
        return default_rounds(n_columns)

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Each of ``n_rounds`` sieves and examinations at an equal share; the noise of an
        examination.
        """
        rounds = self._count(n_columns)
        return Price(rounds, math.sqrt(2) * sensitivity / equal_pure_events(ledger, 2 * rounds))

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        if not session.test.restrictable:
            raise OptionError(
                f"test: {session.test.name} cannot be evaluated on a subsample; use SparseVector "
                "or NoisyThreshold"
            )
        return _SieveRun(session, accountant, self._count(session.n_variables), self.rate)
