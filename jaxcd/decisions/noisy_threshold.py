"""Noise on every query."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from jaxcd.citests import Query
from jaxcd.decisions.base import (
    Decider,
    DecisionRun,
    Frontier,
    LevelSize,
    Price,
    Question,
    queries_of,
)
from jaxcd.decisions.rounds import (
    answer_one_by_one,
    check_count,
    check_delta,
    equal_pure_events,
    first_independent,
)
from jaxcd.errors import OptionError
from jaxcd.privacy import Accountant, NoPrivacy, PrivacyFilter, gaussian, laplace, split
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Session

__all__ = ["Noise", "NoisyThreshold"]


class Noise(enum.Enum):
    """The noise added to a margin."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class _NoisyRun(DecisionRun):
    def __init__(
        self, session: Session, accountant: Accountant, noise: Noise, n_queries: int
    ) -> None:
        self._session = session
        self._accountant = accountant
        self._noise = noise
        self._sensitivity = session.sensitivity()
        session.open(accountant)
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

    def _ask(self, query: Query) -> bool:
        margin = self._session.margins([query])
        bound = self._sensitivity
        if self._noise is Noise.LAPLACE:
            noisy = laplace(
                self._accountant,
                margin,
                sensitivity=bound.value,
                pad=bound.pad,
                epsilon=self._price,
                label="noisy margin",
                relation=self._session.relation,
            )
        else:
            noisy = gaussian(
                self._accountant,
                margin,
                sensitivity=bound.value,
                pad=bound.pad,
                rho=self._price,
                label="noisy margin",
                relation=self._session.relation,
            )
        return bool(noisy[0] <= 0)

    def independent(self, queries: list[Query]) -> np.ndarray:
        return np.array([self._ask(query) for query in queries], dtype=bool)

    def answer(self, frontier: Frontier) -> None:
        self.exhausted |= answer_one_by_one(frontier, self._answers, block=1 << 18, look_ahead=64)

    def _answers(self, questions: list[Question]) -> Iterator[tuple[int, ...] | None]:
        # a batch for the cache
        self._session.margins(
            [query for question in questions for query in queries_of(question)[:8]]
        )
        for question in questions:
            yield first_independent(question, self._ask)


@dataclass(frozen=True)
class NoisyThreshold(Decider):
    """Independent iff the margin plus noise is at most zero; every answer is paid for.

    Args:
        alpha: level of the test, 0 < alpha < 1.
        noise: ``Noise.LAPLACE`` (pure), or ``Noise.GAUSSIAN``, which needs delta > 0.
        n_queries: the number of answers among which the budget is divided, from 1; None takes 10 a
            pair.  When they are used up, the remaining pairs keep their edges and the run says so.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: that of the budget.  Sensitivity: that of the margin, which the test must state.
        Event: ``PureEvent`` or ``ZCDPEvent`` a query, through the ledger's filter.  Public: n, the
        domain, the options.  Proof: :mod:`jaxcd.privacy.mechanisms`.

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

    answers_queries = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("n_queries", self.n_queries)
        if not isinstance(self.noise, Noise):
            raise OptionError(
                f"noise = {self.noise!r} is not a Noise; use Noise.LAPLACE or Noise.GAUSSIAN"
            )

    divisible = True

    @property
    def needs_delta(self) -> bool:  # type: ignore[override]
        """Whether the noise is Gaussian."""
        return self.noise is Noise.GAUSSIAN

    def _count(self, n_columns: int) -> int:
        return self.n_queries or 5 * n_columns * (n_columns - 1)

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Each of ``n_queries`` answers at an equal share."""
        n_answers = self._count(n_columns)
        if self.noise is Noise.LAPLACE:
            return Price(
                n_answers, math.sqrt(2) * sensitivity / equal_pure_events(ledger, n_answers)
            )
        check_delta(ledger, "Gaussian noise")
        return Price(n_answers, sensitivity * math.sqrt(n_answers / (2 * ledger.remaining_rho)))

    def for_level(self, size: LevelSize) -> NoisyThreshold:
        """As many answers as the level has candidates."""
        return self if self.n_queries is not None else replace(self, n_queries=size.n_candidates)

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        return _NoisyRun(session, accountant, self.noise, self._count(session.n_variables))
