r"""k-ary randomised response: tell the truth with some probability, else any level.

On a domain of K values, P[x | x] = e^epsilon / (e^epsilon + K - 1) and P[y | x] = 1 /
(e^epsilon + K - 1) for y != x.

Drawn as: keep x with probability h = (e^epsilon - 1) / (e^epsilon - 1 + K), else report a uniform
value u(y), x included.

Proof. P[y | x] = h 1[y = x] + (1 - h) u(y) for every x, so the largest ratio of two of them is
1 + h / ((1 - h) u(y)), which is e^epsilon for the h above and u = 1/K, and less for a smaller h.
The float h is taken a factor 1 - 2^-40 smaller: that outweighs its rounding and the 2^-52 by which
u may fall short of 1/K. Hence epsilon-LDP holds for the floats themselves. C-wise, the losses of
independent columns add up: sum of epsilon_i <= epsilon (PRIVACY.md J2). Two records that differ in
column i have a Manhattan distance of at least one there, so it is max epsilon_i d-private;
combined, epsilon d-private; both are attained by neighbouring codes.

Source:
    Warner 1965; Kairouz, Bonawitz, Ramage 2016; Binkyte et al. 2024 (the split of epsilon in
    proportion to k_i).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from jaxcd.data import Domain
from jaxcd.errors import DomainError
from jaxcd.local.arrays import Codes, Floats
from jaxcd.local.base import (
    ColumnwiseMechanism,
    CombinedMechanism,
    Distance,
    EpsilonMechanism,
    LocalGuarantee,
    LocalMechanism,
    checked_cardinalities,
)
from jaxcd.local.randomising import check_mechanism
from jaxcd.local.uniforms import Uniforms
from jaxcd.privacy import split
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["CombinedKaryResponse", "KaryResponse", "split_epsilon"]

PROOF = "docstring of jaxcd.local.kary_response; PRIVACY.md J2"


def kept(epsilon: float, n_values: int) -> float:
    """The probability h of keeping the value, a little below (e^epsilon - 1) /
    (e^epsilon - 1 + n_values).
    """
    excess = math.expm1(epsilon) if epsilon < 700 else math.inf
    return 0.0 if excess == 0 else (1 - 2.0**-40) / (1 + n_values / excess)


def is_reached(epsilon: float, n_values: int) -> bool:
    """Whether the largest loss is epsilon but for a millionth: from about 18 on the factor 1 -
    2^-40 keeps it below.
    """
    keep = kept(epsilon, n_values)
    return math.log1p(n_values * keep / (1 - keep)) > epsilon * (1 - 1e-6)


def truth(epsilon: float, n_values: int) -> float:
    """P[x | x], within 2^-40 of e^epsilon / (e^epsilon + n_values - 1)."""
    keep = kept(epsilon, n_values)
    return keep + (1 - keep) / n_values


def split_epsilon(epsilon: float, cardinalities: Sequence[int]) -> tuple[float, ...]:
    """epsilon_i = epsilon k_i / sum k over the columns of at least two levels; 0 for constants,
    which tell nothing.
    """
    varying = [k for k in cardinalities if k > 1]
    parts = iter(split(epsilon, varying) if varying else ())
    return tuple(next(parts) if k > 1 else 0.0 for k in cardinalities)


def _response_matrix(epsilon: float, n_values: int) -> Floats:
    keep = kept(epsilon, n_values)
    return keep * np.eye(n_values) + (1 - keep) / n_values


@final
@dataclass(frozen=True)
class KaryResponse(EpsilonMechanism, ColumnwiseMechanism):
    """k-ary randomised response on each column by itself ("C-wise"), with epsilon_i = epsilon k_i
    / sum k over the columns of at least two levels.

    Args:
        epsilon: for the whole record, positive and finite, in nats.

    Raises:
        OptionError: ``epsilon`` is out of its range.

    Guarantee:
        epsilon-LDP for the whole record, max epsilon_i d-private for the Manhattan distance.
        Public: the declared levels. Proof: the module's docstring.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> round(jaxcd.local.KaryResponse(epsilon=2.0).guarantee(domain).epsilon_ldp, 6)
        2.0
    """

    claim = GuaranteeClaim(
        "epsilon-local differential privacy of a whole record", assumptions="levels are public"
    )

    def check(self, domain: Domain) -> tuple[int, ...]:
        """See :meth:`LocalMechanism.check`."""
        return checked_cardinalities(domain)

    def guarantee(self, domain: Domain) -> LocalGuarantee:
        """See :meth:`LocalMechanism.guarantee`."""
        cardinalities = self.check(domain)
        parts = split_epsilon(self.epsilon, cardinalities)
        p_truth = math.prod(
            truth(part, k) for part, k in zip(parts, cardinalities, strict=True) if k > 1
        )
        epsilon = self.epsilon if any(parts) else 0.0
        reached = [
            is_reached(part, k) for part, k in zip(parts, cardinalities, strict=True) if k > 1
        ]
        return LocalGuarantee(
            epsilon_ldp=epsilon,
            d_privacy=max(parts),
            distance=Distance.MANHATTAN,
            p_truth_smallest=p_truth,
            p_truth_largest=p_truth,
            epsilon_ldp_exact=all(reached),
            d_privacy_exact=all(reached),
            proved=True,
            proof=PROOF,
        )

    def attribute_channels(self, cardinalities: Sequence[int]) -> tuple[Floats, ...]:
        """See :meth:`LocalMechanism.attribute_channels`."""
        parts = split_epsilon(self.epsilon, cardinalities)
        return tuple(
            _response_matrix(part, k) for part, k in zip(parts, cardinalities, strict=True)
        )

    def randomised_codes(
        self, codes: Codes, cardinalities: Sequence[int], uniforms: Uniforms
    ) -> Codes:
        """See :meth:`LocalMechanism.randomised_codes`."""
        result = np.empty_like(codes, order="F")
        for j, (part, k) in enumerate(
            zip(split_epsilon(self.epsilon, cardinalities), cardinalities, strict=True)
        ):
            keep = uniforms.uniform(len(codes)) < kept(part, k)
            result[:, j] = np.where(keep, codes[:, j], uniforms.below(np.full(len(codes), k)))
        return result


@final
@dataclass(frozen=True)
class CombinedKaryResponse(EpsilonMechanism, CombinedMechanism):
    """k-ary randomised response on the whole record, a value of the product domain of prod k_i
    cells.

    Args:
        epsilon: for the whole record, positive and finite, in nats.

    Raises:
        OptionError: ``epsilon`` is out of its range.

    Guarantee:
        epsilon-LDP, and epsilon d-private for the Manhattan distance. Public: the declared levels.
        Proof: the module's docstring.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> round(jaxcd.local.CombinedKaryResponse(epsilon=2.0).guarantee(domain).epsilon_ldp, 6)
        2.0
    """

    claim = GuaranteeClaim(
        "epsilon-local differential privacy of a whole record", assumptions="levels are public"
    )

    def check(self, domain: Domain) -> tuple[int, ...]:
        """See :meth:`LocalMechanism.check`."""
        return checked_cardinalities(domain, combined=True)

    def guarantee(self, domain: Domain) -> LocalGuarantee:
        """See :meth:`LocalMechanism.guarantee`."""
        n_cells = math.prod(self.check(domain))
        epsilon = self.epsilon if n_cells > 1 else 0.0
        p_truth = truth(self.epsilon, n_cells) if n_cells > 1 else 1.0
        reached = n_cells == 1 or is_reached(self.epsilon, n_cells)
        return LocalGuarantee(
            epsilon_ldp=epsilon,
            d_privacy=epsilon,
            distance=Distance.MANHATTAN,
            p_truth_smallest=p_truth,
            p_truth_largest=p_truth,
            epsilon_ldp_exact=reached,
            d_privacy_exact=reached,
            proved=True,
            proof=PROOF,
        )

    def cell_channel(self, cardinalities: Sequence[int]) -> Floats:
        """See :meth:`LocalMechanism.cell_channel`."""
        return _response_matrix(self.epsilon, math.prod(cardinalities))

    def randomised_codes(
        self, codes: Codes, cardinalities: Sequence[int], uniforms: Uniforms
    ) -> Codes:
        """See :meth:`LocalMechanism.randomised_codes`."""
        keep = uniforms.uniform(len(codes)) < kept(self.epsilon, math.prod(cardinalities))
        result = np.empty_like(codes, order="F")
        for j, k in enumerate(cardinalities):
            result[:, j] = np.where(keep, codes[:, j], uniforms.below(np.full(len(codes), k)))
        return result


def check_separable(mechanism: LocalMechanism) -> None:
    """Raises OptionError or DomainError unless every set of columns has a channel of its own."""
    check_mechanism(mechanism)
    if mechanism.is_combined and not isinstance(mechanism, CombinedKaryResponse):
        raise DomainError(
            f"mechanism: under {type(mechanism).__name__} the noise on some columns depends on "
            "the others, so that their table has no channel; "
            "randomise each column by itself, or use CombinedKaryResponse"
        )
