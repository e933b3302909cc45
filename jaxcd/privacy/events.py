"""Events: what a mechanism tells the ledger before it draws its noise.

Every event states two bounds on what is about to happen, both valid: ``epsilon``, pure differential privacy, and
``rho``, zero-concentrated differential privacy (zCDP); either may be infinite. It also carries a label for the
report, and the relation under which both hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ._checks import check_positive
from .budget import Relation, _check_relation
from .conversion import exponential_to_rho, pure_to_rho

_CURE = "give a positive number; infinity only for a run without privacy"


@dataclass(frozen=True)
class PureEvent:
    """An epsilon-DP mechanism; it is also epsilon^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4).

    Args:
        epsilon: positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
    """

    epsilon: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon, allow_infinity=True, cure=_CURE))
        _check_relation(self.relation)

    @property
    def rho(self) -> float:
        """epsilon^2 / 2, rounded up."""
        return pure_to_rho(self.epsilon)


@dataclass(frozen=True)
class ZCDPEvent:
    """A rho-zCDP mechanism without a pure epsilon, such as the Gaussian.

    Args:
        rho: positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
    """

    rho: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_positive("rho", self.rho, allow_infinity=True, cure=_CURE))
        _check_relation(self.relation)

    @property
    def epsilon(self) -> float:
        """Infinity: there is no pure bound."""
        return math.inf


@dataclass(frozen=True)
class ExponentialMechanismEvent:
    """An epsilon-DP exponential mechanism; it is also epsilon^2/8-zCDP.

    The log-ratio of its probabilities between neighbours ranges over an interval of length epsilon as the outcome
    varies (bounded range), not only within [-epsilon, epsilon]; a bounded-range mechanism is epsilon^2/8-zCDP (Cesar
    and Rogers 2021; Dong, Durfee, Rogers 2020). Permute-and-flip and noisy maxima with Laplace noise have no such
    range: charge a :class:`PureEvent` for those.

    Args:
        epsilon: positive; infinity fits no budget.
        label: a few public words for the report.
        relation: the neighbouring relation of the mechanism's sensitivity.
    """

    epsilon: float
    label: str = ""
    relation: Relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon, allow_infinity=True, cure=_CURE))
        _check_relation(self.relation)

    @property
    def rho(self) -> float:
        """epsilon^2 / 8, rounded up."""
        return exponential_to_rho(self.epsilon)


PrivacyEvent = PureEvent | ZCDPEvent | ExponentialMechanismEvent
"""Any event that a ledger accepts."""
