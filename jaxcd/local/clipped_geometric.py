r"""The clipped geometric mechanism: two-sided geometric noise on each column's code, clipped to the
levels.

y = clip(x + Z, 0, k - 1), P[Z = z] = (1 - q) / (1 + q) q^|z|, q = e^-epsilon. So P[y | x] = (1 - q)
/ (1 + q) q^|y - x| inside, and q^|y - x| / (1 + q) at the two ends, where a tail is gathered: for
each y the probabilities of two records differ by the factor q^(|y - x| - |y - x'|) and nothing
else.

Guarantee. Proof: | |y - x| - |y - x'| | <= |x - x'|, attained at y = 0, so that a column is exactly
epsilon d-private and has epsilon_LDP = epsilon (k - 1) exactly (x = 0, x' = k - 1, y = 0). Over the
columns losses add up: epsilon d-private for the Manhattan distance, epsilon_LDP = epsilon sum
(k_i - 1). Clipping is post-processing. PRIVACY.md J1.

Source:
    Ghosh, Roughgarden, Sundararajan 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from jaxcd.data import Domain
from jaxcd.local.arrays import Floats
from jaxcd.local.base import (
    DEEPEST,
    MAX_LEVELS,
    ROUNDING,
    ColumnwiseMechanism,
    Distance,
    EpsilonMechanism,
    LocalGuarantee,
    checked_cardinalities,
)
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["ClippedGeometric"]

PROOF = "docstring of jaxcd.local.clipped_geometric; PRIVACY.md J1"


def _clipped_matrix(epsilon: float, n_levels: int) -> Floats:
    if n_levels == 1:
        return np.ones((1, 1))
    x = np.arange(n_levels)
    weights = np.exp(-np.minimum(epsilon * np.abs(x[:, None] - x), DEEPEST))
    # 1 - q; the ends gather the tail, a factor of 1 / (1 - q)
    weights[:, 1:-1] *= -math.expm1(-epsilon)
    return weights / weights.sum(axis=1, keepdims=True)


@final
@dataclass(frozen=True)
class ClippedGeometric(EpsilonMechanism, ColumnwiseMechanism):
    """Two-sided geometric noise with clipping on each column by itself: its epsilon is its
    d-privacy.

    Args:
        epsilon: per unit of distance, positive and finite, in nats.

    Raises:
        OptionError: ``epsilon`` is out of its range.

    Guarantee:
        epsilon d-private for the Manhattan distance and epsilon sum (k_i - 1)-LDP, with
        :data:`ROUNDING` added to both. Public: the declared levels. Proof: the module's docstring.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> round(jaxcd.local.ClippedGeometric(epsilon=0.5).guarantee(domain).epsilon_ldp, 6)
        2.5
    """

    claim = GuaranteeClaim(
        "the epsilon_ldp and the d-privacy that guarantee(domain) reports, which are none of the "
        "published epsilon_x",
        assumptions="levels are public and ordered",
    )

    def check(self, domain: Domain) -> tuple[int, ...]:
        """See :meth:`LocalMechanism.check`."""
        return checked_cardinalities(domain, max_levels=MAX_LEVELS)

    def guarantee(self, domain: Domain) -> LocalGuarantee:
        """See :meth:`LocalMechanism.guarantee`."""
        cardinalities = self.check(domain)
        varying = [k for k in cardinalities if k > 1]
        q = math.exp(-self.epsilon)
        end, inside = 1 / (1 + q), -math.expm1(-self.epsilon) / (1 + q)
        reached = self.epsilon * (max(cardinalities) - 1) <= DEEPEST
        return LocalGuarantee(
            epsilon_ldp=self.epsilon * sum(k - 1 for k in varying) + ROUNDING,
            d_privacy=(self.epsilon if varying else 0.0) + ROUNDING,
            distance=Distance.MANHATTAN,
            p_truth_smallest=math.prod(inside if k > 2 else end for k in varying),
            p_truth_largest=end ** len(varying),
            epsilon_ldp_exact=reached,
            d_privacy_exact=reached,
            proved=True,
            proof=PROOF,
        )

    def attribute_channels(self, cardinalities: Sequence[int]) -> tuple[Floats, ...]:
        """See :meth:`LocalMechanism.attribute_channels`."""
        return tuple(_clipped_matrix(self.epsilon, k) for k in cardinalities)
