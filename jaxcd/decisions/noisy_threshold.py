"""Noise on every query."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxcd.checks import check_choice
from jaxcd.citests import Query
from jaxcd.decisions.base import DecisionRun, Price
from jaxcd.decisions.rounds import CountedDecider, QueryRun, check_delta, equal_pure_events
from jaxcd.errors import OptionError
from jaxcd.privacy import Accountant, NoPrivacy, PrivacyFilter, gaussian, laplace, split
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Session

__all__ = ["Noise", "NoisyThreshold"]


class Noise(enum.Enum):
    """The noise added to a margin."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class _NoisyRun(QueryRun):
    _block = 1 << 18

    def __init__(
        self, session: Session, accountant: Accountant, noise: Noise, n_queries: int
    ) -> None:
        super().__init__(session, accountant)
        self._noise = noise
        ledger = accountant.ledger
        if isinstance(ledger.budget, NoPrivacy):
            self._price = math.inf
        elif noise is Noise.LAPLACE:
            self._price = equal_pure_events(ledger, n_queries)
        elif ledger.remaining_rho > 0:
            self._price = split(ledger.remaining_rho, [1.0] * n_queries)[0]
        else:
            raise OptionError(
                "noise: Gaussian noise needs delta > 0; give the budget a delta, or use "
                "Noise.LAPLACE"
            )

        self._itself = session.test.buys_answers and noise is Noise.LAPLACE

    def _compute(self, queries: Sequence[Query]) -> None:
        if not self._itself:
            self._session.margins(queries)

    def _ask(self, query: Query) -> bool:
        if self._itself:
            bought = self._session.buy(query, self._accountant, epsilon=self._price)
            return bool(bought.margin[0] <= 0)
        margin = self._session.margins([query])
        if self._noise is Noise.LAPLACE:
            noisy = laplace(
                self._accountant, margin, epsilon=self._price, label="noisy margin", **self._stated
            )
        else:
            noisy = gaussian(
                self._accountant, margin, rho=self._price, label="noisy margin", **self._stated
            )
        return bool(noisy[0] <= 0)


@dataclass(frozen=True)
class NoisyThreshold(CountedDecider):
    """Independent iff the margin plus noise is at most zero; every answer is paid for.

    With Laplace noise a test that releases its answers itself (:class:`StratifiedTau`) does so.

    Args:
        alpha: level of the test, 0 < alpha < 1.
        noise: ``Noise.LAPLACE`` (pure), or ``Noise.GAUSSIAN``, which needs delta > 0.
        n_queries: the number of answers among which the budget is divided, from 1; None takes 10 a
            pair.  When they are used up, the remaining pairs keep their edges and the run says so.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: that of the budget.  Sensitivity: that of the margin, which the test must state.
        Event: ``PureEvent`` or ``GaussianEvent`` a query, through the ledger's filter.  Public: n,
        the domain, the options.  Proof: :mod:`jaxcd.privacy.mechanisms`.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.NoisyThreshold(),
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
        "the run is (epsilon, delta)-DP of its budget", "jaxcd.privacy.mechanisms"
    )

    alpha: float = 0.05
    noise: Noise = Noise.LAPLACE
    n_queries: int | None = None

    _counts, _per_level = "n_queries", "n_candidates"
    answers_queries = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("noise", self.noise, Noise)

    @property
    def needs_delta(self) -> bool:  # type: ignore[override]
        """Whether the noise is Gaussian."""
        return self.noise is Noise.GAUSSIAN

    def _default(self, n_columns: int) -> int:
        return 5 * n_columns * (n_columns - 1)

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Each of ``n_queries`` answers at an equal share."""
        n_answers = self._count(n_columns)
        if self.noise is Noise.LAPLACE:
            return Price(
                n_answers, math.sqrt(2) * sensitivity / equal_pure_events(ledger, n_answers)
            )
        check_delta(ledger, "Gaussian noise")
        return Price(n_answers, sensitivity * math.sqrt(n_answers / (2 * ledger.remaining_rho)))

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        return _NoisyRun(session, accountant, self.noise, self._count(session.n_variables))
