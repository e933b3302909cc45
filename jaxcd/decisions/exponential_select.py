r"""Exponential selection: one draw answers a pair, "keep" and every candidate set being its
possible outcomes.

Let q_S be the margins of a pair's candidates S_1, ..., S_m and q* their minimum.  Drawn is one of
m + 1 outcomes, with probability proportional to

    "separated by S":  exp(-epsilon q_S / (2 Delta)),        "keep":  w exp(epsilon q* / (2 Delta)),

w = m pi / (1 - pi): where the margins say nothing, the edge is kept with probability pi, however
many candidates there are.

**Privacy.**  Each -q_S moves by at most Delta between neighbours, and so does q*, the minimum of
such functions: all m + 1 utilities have sensitivity Delta, and this is the exponential mechanism
with a public prior.  The prior enters as a constant added to one utility, which changes no
sensitivity.  One event pays for the answer *and* for the separating set.

**Noise.**  For m = 1 and pi = 1/2 the odds of separation are e^(-epsilon q / Delta): q plus
logistic noise of scale Delta / epsilon, a standard deviation of 1.81 Delta / epsilon.  At the same
rho = epsilon^2 / 8 Gaussian noise on q has 2 Delta / epsilon, and the set is not yet chosen.

This is what EM-PC (Xu, Yuan, Wu 2017; Wang, Pang, Song 2020) intends, with a utility whose
sensitivity is proved instead of the number of records that flip a test; without its separating sets
that are read off the data for nothing, and filed under the wrong pairs; and with a total that is
fixed before the data is read.  See :mod:`jaxcd.published.em_pc`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaxcd.checks import check_number
from jaxcd.decisions.base import DecisionRun, Frontier, Price, Question
from jaxcd.decisions.measurements import margins_of
from jaxcd.decisions.rounds import CountedDecider, PayingRun, answer_one_by_one, equal_pure_events
from jaxcd.privacy import Accountant, PrivacyFilter, Sensitive, select_max
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Session

__all__ = ["ExponentialSelect", "equal_selections"]

# Look-ahead, in candidates, where each answer may change the questions behind it.
_LOOK_AHEAD = 128
# Questions whose margins are held at once where answers change nothing.
_MOST_CANDIDATES = 1 << 18


def equal_selections(ledger: PrivacyFilter, n_events: int) -> float:
    """The largest epsilon such that ``n_events`` exponential mechanisms of it fit into what is
    left: sqrt(8 rho / n) under zCDP.
    """
    return equal_pure_events(ledger, n_events, of_rho=ledger.selection_within)


class _SelectRun(PayingRun):
    def __init__(
        self, session: Session, accountant: Accountant, n_questions: int, keep_prior: float
    ) -> None:
        super().__init__(session, accountant)
        self._price = equal_selections(accountant.ledger, n_questions)
        self._log_odds = math.log(keep_prior / (1 - keep_prior))

    def answer(self, frontier: Frontier) -> None:
        if not self._price > 0:
            self.exhausted = True
            return
        self.exhausted |= answer_one_by_one(
            frontier, self._answers, block=_MOST_CANDIDATES, look_ahead=_LOOK_AHEAD
        )

    def _answers(self, questions: list[Question]) -> Iterator[tuple[int, ...] | None]:
        for question, margins in zip(questions, margins_of(self._session, questions), strict=True):
            yield self._select(question, margins)

    def _select(self, question: Question, margins: Sensitive) -> tuple[int, ...] | None:
        """The set that separates the pair, or None to keep the edge."""
        n_sets = len(question.candidates)
        prior = (
            0.0
            if math.isinf(self._price)
            else 2 * self._stated["sensitivity"] / self._price * (math.log(n_sets) + self._log_odds)
        )
        # "Keep" last: without noise a margin of exactly 0 separates, as under Threshold.
        chosen = select_max(
            self._accountant,
            margins.map(lambda m: np.append(-m, m.min() + prior)),
            epsilon=self._price,
            label=f"answer and set, {n_sets} candidates",
            **self._stated,
        )
        return question.candidates[chosen] if chosen < n_sets else None


@dataclass(frozen=True)
class ExponentialSelect(CountedDecider):
    r"""EM-PC repaired: one draw of the exponential mechanism for each pair and level.

    The draw is "keep", or the set that separates the pair:

        P["separated by S"] is proportional to exp(-epsilon q_S / (2 Delta))
        P["keep"] is proportional to w exp(epsilon min q / (2 Delta))

    with q_S the margins, Delta their sensitivity and w = m pi / (1 - pi) for m candidates.  Every
    candidate's margin is looked at, also where the first would do: with many variables limit the
    levels (``max_level``, or :class:`jaxcd.Scheduled`).

    Args:
        alpha: level of the test, 0 < alpha < 1.
        n_questions: the number of answers (one a pair and level) among which the budget is divided,
            from 1; None takes four a pair.  When they are used up, the remaining pairs keep their
            edges and the run says so.
        keep_prior: pi in (0, 1), the probability of "keep" where the margins say nothing; smaller
            values remove more edges.  At 1/2 half of all absent edges would survive a level of
            nothing but noise.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: that of the budget.  Sensitivity: Delta, that of the margin, which the test must
        state.  Event: ``ExponentialMechanismEvent`` a question, through the ledger's filter: the
        whole run is (epsilon, delta)-DP of the budget.  Public: n, the domain, the options.  Proof:
        the docstring of :mod:`jaxcd.decisions.exponential_select`; :mod:`jaxcd.privacy.mechanisms`,
        :mod:`jaxcd.privacy.ledger`.

    Source:
        Xu, Yuan, Wu 2017 and Wang, Pang, Song 2020 for the idea; McSherry and Talwar 2007 for the
        mechanism.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.ExponentialSelect(),
        ...     budget=jaxcd.Budget(4.0),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ...     max_level=1,
        ... )
        >>> run.exhausted, run.graph.n_edges
        (False, 4)
    """

    claim = GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget; one event pays for an answer and its "
        "separating set",
        "jaxcd.decisions.exponential_select, jaxcd.privacy.mechanisms",
    )

    alpha: float = 0.05
    n_questions: int | None = None
    keep_prior: float = 0.25

    _counts, _per_level = "n_questions", "n_questions"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("keep_prior", self.keep_prior, 0, 1, "()", cure="0.25 is usual")

    def _default(self, n_columns: int) -> int:
        return max(2 * n_columns * (n_columns - 1), 1)

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Each of ``n_questions`` draws at an equal share: the outcomes' Gumbel noise of scale 2
        Delta / epsilon, of which the difference of two counts."""
        n_answers = self._count(n_columns)
        return Price(
            n_answers, math.pi / math.sqrt(3) * sensitivity / equal_selections(ledger, n_answers)
        )

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        return _SelectRun(session, accountant, self._count(session.n_variables), self.keep_prior)
