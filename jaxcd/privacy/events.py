"""Events: what a mechanism tells the ledger before it draws its noise.

Every event states bounds on what is about to happen, all valid: ``epsilon``, pure differential
privacy, and ``rho``, zero-concentrated differential privacy (zCDP); either may be infinite.
``gdp_rho`` is mu^2 / 2 where the mechanism is mu-GDP (:mod:`jaxcd.privacy.gdp`), else infinite.
``delta`` is the probability of failure of the few mechanisms that have one
(:mod:`jaxcd.privacy.propose_test_release`), else 0.  An event carries a label for the report, the
relation under which the bounds hold, and the record of the mechanism: the public numbers that the
bounds follow from, so that anyone can compute them again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from ..checks import check_positive, check_share, check_whole
from .budget import Relation, _check_relation
from .conversion import exponential_to_rho, pure_to_rho
from .gdp import pure_to_gdp_rho, range_to_gdp_rho
from .rounding import round_up

_CURE = "give a positive number; infinity only for a run without privacy"


class Law(Enum):
    """The law of a mechanism's noise."""

    LAPLACE = "discrete Laplace"
    GAUSSIAN = "discrete Gaussian"
    ROUNDED_GAUSSIAN = "rounded Gaussian"
    SUMMED_GAUSSIAN = "sum of discrete Gaussian shares"
    GUMBEL = "exponential mechanism"
    SPARSE_VECTOR = "sparse vector, one-sided geometric"
    SPARSE_VECTOR_LAPLACE = "sparse vector, discrete Laplace"
    NOISY_RANK = "noisy rank, discrete Laplace"
    LOCAL = "randomised response of each record"
    FAILURE = "failure probability"


@dataclass(frozen=True)
class MechanismRecord:
    """What a price follows from; all of it public.

    Args:
        law: of the noise.
        sensitivity: that the statistic was claimed to have, in its own units: L1 (Laplace), L2
            (Gaussian), or of each value.
        pad: bound on the numerical error of each value.
        grid: step on which values are rounded.
        dimension: the number of values.
        integral: whether the values are integers by their type, so that nothing is added for
            rounding.
        scales: of the noise, in steps of the grid: one, threshold and queries of a sparse vector,
            or those of all shares that are sure to be in a sum.
        rate: the share of the records that a sparse vector looked at.
        channel: of a mechanism that randomises each record: its kind, parameters, and the number of
            levels of each column.
        condition: in words whom the mechanism does not protect; "" where the price holds for all.
    """

    law: Law
    sensitivity: float
    pad: float = 0.0
    grid: float = 1.0
    dimension: int = 1
    integral: bool = False
    scales: tuple[float, ...] = ()
    rate: float = 1.0
    channel: tuple[tuple[str, object], ...] = ()
    condition: str = ""


@dataclass(frozen=True)
class PureEvent:
    """An epsilon-DP mechanism; it is also epsilon^2/2-zCDP (Bun and Steinke 2016, Proposition
    1.4).

    Args:
        epsilon: positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
        record: what the price follows from; None where the price is somebody's word.

    Example:
        >>> from jaxcd.privacy import PureEvent
        >>> event = PureEvent(0.5, "a count")
        >>> event.epsilon, round(event.rho, 6)
        (0.5, 0.125)
    """

    epsilon: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE
    record: MechanismRecord | None = field(default=None, compare=False)

    delta = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "epsilon",
            check_positive("epsilon", self.epsilon, allow_infinity=True, cure=_CURE),
        )
        _check_relation(self.relation)

    @property
    def rho(self) -> float:
        """epsilon^2 / 2, rounded up."""
        return pure_to_rho(self.epsilon)

    @property
    def gdp_rho(self) -> float:
        """The rho of GDP of any epsilon-DP mechanism, rounded up."""
        return pure_to_gdp_rho(self.epsilon)


@dataclass(frozen=True)
class ZCDPEvent:
    """A rho-zCDP mechanism without a pure epsilon, such as the Gaussian.

    Args:
        rho: positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
        record: what the price follows from; None where the price is somebody's word.

    Example:
        >>> from jaxcd.privacy import ZCDPEvent
        >>> event = ZCDPEvent(0.02, "twelve counts")
        >>> event.rho, event.epsilon
        (0.02, inf)
    """

    rho: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE
    record: MechanismRecord | None = field(default=None, compare=False)

    delta = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "rho", check_positive("rho", self.rho, allow_infinity=True, cure=_CURE)
        )
        _check_relation(self.relation)

    gdp_rho = math.inf

    @property
    def epsilon(self) -> float:
        """Infinity: there is no pure bound."""
        return math.inf


@dataclass(frozen=True)
class GaussianEvent:
    """A mechanism that is Gaussian differentially private, mu-GDP with mu^2 = 2 rho: continuous
    Gaussian noise, and what is made of it by rounding.

    It is also rho-zCDP, because Gaussian noise is and post-processing keeps that.

    Args:
        rho: mu^2 / 2, positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
        record: what the price follows from; None where the price is somebody's word.

    Example:
        >>> from jaxcd.privacy import GaussianEvent
        >>> event = GaussianEvent(0.02, "twelve counts")
        >>> event.rho, event.gdp_rho, event.epsilon
        (0.02, 0.02, inf)
    """

    rho: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE
    record: MechanismRecord | None = field(default=None, compare=False)

    delta = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "rho", check_positive("rho", self.rho, allow_infinity=True, cure=_CURE)
        )
        _check_relation(self.relation)

    @property
    def epsilon(self) -> float:
        """Infinity: there is no pure bound."""
        return math.inf

    @property
    def gdp_rho(self) -> float:
        """rho itself."""
        return self.rho


@dataclass(frozen=True)
class ExponentialMechanismEvent:
    """An epsilon-DP exponential mechanism, which is also epsilon^2/8-zCDP; or k of them.

    The log-ratio of its probabilities between neighbours ranges over an interval of length epsilon
    as the outcome varies (bounded range), not only within [-epsilon, epsilon]; a bounded-range
    mechanism is epsilon^2/8-zCDP (Cesar and Rogers 2021; Dong, Durfee, Rogers 2020).  The k largest
    of scores with Gumbel noise, in their order, are k exponential mechanisms, each on what the
    earlier ones left (Durfee and Rogers 2019): epsilon is of all, and each has epsilon / k.
    Permute-and-flip and noisy maxima with Laplace noise have no such range: charge a
    :class:`PureEvent` for those.

    Args:
        epsilon: positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
        record: what the price follows from; None where the price is somebody's word.
        n_choices: k, at least 1.

    Example:
        >>> from jaxcd.privacy import ExponentialMechanismEvent
        >>> event = ExponentialMechanismEvent(0.5, "a separating set")
        >>> event.epsilon, round(event.rho, 6)
        (0.5, 0.03125)
    """

    epsilon: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE
    record: MechanismRecord | None = field(default=None, compare=False)
    n_choices: int = 1

    delta = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "epsilon",
            check_positive("epsilon", self.epsilon, allow_infinity=True, cure=_CURE),
        )
        _check_relation(self.relation)
        check_whole("n_choices", self.n_choices, 1, cure="give the number of choices")

    @property
    def rho(self) -> float:
        """k times the square of epsilon / k over 8, rounded up."""
        return self._all(exponential_to_rho)

    @property
    def gdp_rho(self) -> float:
        """k times the rho of GDP of any mechanism of range epsilon / k, rounded up."""
        return self._all(range_to_gdp_rho)

    def _all(self, price: Callable[[float], float]) -> float:
        if self.n_choices == 1 or math.isinf(self.epsilon):
            return price(self.epsilon)
        each = price(round_up(Fraction(self.epsilon) / self.n_choices))
        return round_up(self.n_choices * Fraction(each)) if each < math.inf else each


@dataclass(frozen=True)
class FailureEvent:
    """The failure probability of a tame mechanism (:mod:`jaxcd.privacy.propose_test_release`):
    delta, and no epsilon of its own.

    Args:
        delta: in (0, 1).
        label: a few public words for the report.
        relation: the neighbouring relation.
        record: made here.
    """

    delta: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE
    record: MechanismRecord | None = field(default=MechanismRecord(Law.FAILURE, 0.0), compare=False)

    epsilon = 0.0
    rho = 0.0
    gdp_rho = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "delta",
            check_share("delta", self.delta, cure="give a small probability such as 1e-6"),
        )
        _check_relation(self.relation)


PrivacyEvent = PureEvent | ZCDPEvent | GaussianEvent | ExponentialMechanismEvent | FailureEvent
"""Any event that a ledger accepts."""
