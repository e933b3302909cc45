"""Sparse vector: pay for each separation, never for a dependence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.decisions.base import DecisionRun, Frontier, Price, queries_of
from jaxcd.decisions.rounds import CountedDecider, PayingRun, default_rounds, equal_pure_events
from jaxcd.errors import BudgetExhausted
from jaxcd.privacy import THRESHOLD_SHARE, AboveThreshold, Accountant, PrivacyFilter
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Session

__all__ = ["SparseVector"]

_LOOK_AHEAD = 512


class _SparseVectorRun(PayingRun):
    def __init__(self, session: Session, accountant: Accountant, n_rounds: int) -> None:
        super().__init__(session, accountant)
        self._epsilon = equal_pure_events(accountant.ledger, n_rounds)
        self._round: AboveThreshold | None = None

    def _current_round(self) -> AboveThreshold:
        if self._round is None or self._round.spent:
            self._round = AboveThreshold(
                self._accountant, epsilon=self._epsilon, label="sparse vector round", **self._stated
            )
        return self._round

    def answer(self, frontier: Frontier) -> None:
        try:
            while questions := frontier.peek(_LOOK_AHEAD):
                self._walk(frontier, questions)
        except BudgetExhausted:
            self.exhausted = True

    def _walk(self, frontier: Frontier, questions: list[Any]) -> None:
        asked = [queries_of(question) for question in questions]
        margins = self._session.margins([query for queries in asked for query in queries]).map(
            np.negative
        )
        starts = [0]
        for queries in asked:
            starts.append(starts[-1] + len(queries))
        first = 0
        while first < len(questions):
            current = self._current_round()
            hit = current.first_above(margins[starts[first] :], threshold=current.noise_mean)
            if hit is None:
                for _ in range(first, len(questions)):
                    frontier.keep()
                return
            place = starts[first] + hit
            while starts[first + 1] <= place:
                frontier.keep()
                first += 1
            frontier.separate(questions[first].candidates[place - starts[first]])
            first += 1
            if not frontier.stable:
                return


@dataclass(frozen=True)
class SparseVector(CountedDecider):
    r"""The sparse vector technique: only "independent" answers are paid for.

    The first candidate whose noisy margin falls below a noisy threshold separates the pair.  A
    round is one AboveThreshold on minus the margins; it ends with a separation, and the next one is
    charged anew.  "Dependent" answers are free.  The number of rounds and the price of each are
    fixed before the data is read: ``n_rounds`` rounds of the largest epsilon_0 that pure
    composition or zCDP allows. When they are used up, the remaining pairs keep their edges and the
    run says so.

    Args:
        alpha: level of the test, 0 < alpha < 1.
        n_rounds: the number of rounds, from 1; None takes p (p - 1) / 2 - (p - 1) for p > 2 columns
            (PRIVACY.md N.3): enough for every tree, while a graph of fewer edges keeps some that
            are not there, and wants p (p - 1) / 2.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: that of the budget.  Sensitivity: that of the margin, which the test must state.
        Event: ``PureEvent(epsilon_0)`` a round, through the ledger's filter: the whole run is
        (epsilon, delta)-DP of the budget.  Public: n, the domain, the options.  Proof:
        :mod:`jaxcd.privacy.above_threshold`, :mod:`jaxcd.privacy.ledger`.

    Source:
        Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Lyu, Su, Li 2017.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.SparseVector(),
        ...     budget=jaxcd.Budget(4.0),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        Pollution --> Cancer
        Smoker --> Cancer
        Cancer --> Xray
        Dyspnoea --> Cancer
    """

    claim = GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget", "jaxcd.privacy.above_threshold"
    )

    title = "PC with the sparse vector"

    alpha: float = 0.05
    n_rounds: int | None = None

    _counts, _per_level = "n_rounds", "n_pairs"

    def _default(self, n_columns: int) -> int:
        return default_rounds(n_columns)

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Each of ``n_rounds`` rounds at an equal share; the noise of threshold and query
        together.
        """
        rounds = self._count(n_columns)
        epsilon = equal_pure_events(ledger, rounds)
        scales = (
            sensitivity / (THRESHOLD_SHARE * epsilon),
            2 * sensitivity / ((1 - THRESHOLD_SHARE) * epsilon),
        )
        return Price(rounds, math.hypot(*scales))

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        return _SparseVectorRun(session, accountant, self._count(session.n_variables))
