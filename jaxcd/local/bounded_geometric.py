r"""The bounded geometric mechanism on each column: P[y | x] = p_max exp(-eps_x |y - x|) on the k
levels of a column.

p_max is the same for all x; the rate eps_x solves sum over y of P[y | x] = 1, for every x by
itself. It is larger at the centre, which has more near neighbours, than at the edges.

Guarantee, for one column. Proof (PRIVACY.md J1): the log ratio of two records for one y is eps_x'
|x' - y| - eps_x |x - y|.

* epsilon_LDP = max over x of eps_x ecc(x), ecc(x) = max over y of |x - y|: for fixed x and y the
  other record with the largest probability is x' = y, with exponent 0.
* d-privacy: max over *adjacent* x, x' and all y of | eps_x |x - y| - eps_x' |x' - y| |. The log
  ratio of any two records is a sum over the steps between them, each at most this. It is none of
  the eps_x, and far above them for many levels.
* whole record: the losses of independent columns add up, so epsilon_LDP = sum of those of the
  columns; and for the Manhattan distance, d-privacy = max of those of the columns, attained by
  records that differ in one column.

Source:
    Binkyte et al. 2024 (the mechanism, after Ghosh, Roughgarden, Sundararajan 2009); the guarantees
    are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from jaxcd.checks import counted
from jaxcd.data import Domain
from jaxcd.errors import OptionError
from jaxcd.local.arrays import Floats
from jaxcd.local.base import (
    DEEPEST,
    MAX_LEVELS,
    ROUNDING,
    ColumnwiseMechanism,
    Distance,
    LocalGuarantee,
    check_probability,
    checked_cardinalities,
)
from jaxcd.local.distances import decay_rates, level_counts
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["BoundedGeometric", "column_losses", "column_rates"]

PROOF = "docstring of jaxcd.local.bounded_geometric; PRIVACY.md J1, J2"

TOO_SMALL = 1e-12
"""How far p_max may be below one over the number of records: 1/3 written as 0.333333333333 is
meant.
"""


@lru_cache(maxsize=256)
def column_rates(n_levels: int, p_max: float) -> Floats:
    """eps_x of each of the k levels, shape (k,), read-only."""
    x = np.arange(n_levels)
    rates = decay_rates(
        level_counts(np.minimum(x, n_levels - 1 - x), n_levels), x.astype(np.float64), p_max
    )
    rates.setflags(write=False)
    return rates


def column_losses(n_levels: int, p_max: float) -> tuple[float, float]:
    """(epsilon_LDP, d-privacy) of one column by the formulas of the module's docstring, without
    rounding.
    """
    if n_levels == 1:
        return 0.0, 0.0
    x = np.arange(n_levels)
    exponents = column_rates(n_levels, p_max)[:, None] * np.abs(x[:, None] - x)
    return float(exponents.max()), float(np.abs(np.diff(exponents, axis=0)).max())


def geometric_rows(exponents: Floats) -> Floats:
    """Rows proportional to exp(-exponents), none below exp(-DEEPEST), that sum to one."""
    weights = np.exp(-np.minimum(exponents, DEEPEST))
    return weights / weights.sum(axis=1, keepdims=True)


@final
@dataclass(frozen=True)
class BoundedGeometric(ColumnwiseMechanism):
    """The bounded geometric mechanism on each column by itself ("C-wise").

    Args:
        p_max: the probability that a column is reported as it is, in [1/k, 1) of every column; one
            number for all columns, or one for each (that of a column with one level is not used).

    Raises:
        OptionError: a probability is out of its range.

    Guarantee:
        epsilon_LDP and d-privacy (Manhattan) of the module's docstring, with :data:`ROUNDING`
        added; they are *not* determined by ``p_max``: at k = 10 levels and p_max = 0.5 epsilon_LDP
        is 7.7, where k-ary response has 2.2. Public: the declared levels. Proof: there.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> round(jaxcd.local.BoundedGeometric(p_max=0.8).guarantee(domain).epsilon_ldp, 3)
        6.931
    """

    claim = GuaranteeClaim(
        "the epsilon_ldp and the d-privacy that guarantee(domain) reports, which are none of the "
        "published epsilon_x",
        assumptions="levels are public and ordered",
    )

    p_max: float | tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.p_max, Sequence):
            object.__setattr__(self, "p_max", tuple(check_probability(p) for p in self.p_max))
        else:
            object.__setattr__(self, "p_max", check_probability(self.p_max))

    def _by_column(self, cardinalities: Sequence[int]) -> tuple[float, ...]:
        return self.p_max if isinstance(self.p_max, tuple) else (self.p_max,) * len(cardinalities)

    def check(self, domain: Domain) -> tuple[int, ...]:
        """See :meth:`LocalMechanism.check`."""
        cardinalities = checked_cardinalities(domain, max_levels=MAX_LEVELS)
        if isinstance(self.p_max, tuple) and len(self.p_max) != len(cardinalities):
            raise OptionError(
                f"p_max holds {counted(len(self.p_max), 'number')} for {len(cardinalities)} "
                "columns; give one for each, or one number"
            )
        for name, k, p in zip(
            domain.names, cardinalities, self._by_column(cardinalities), strict=True
        ):
            if k > 1 and not p * k >= 1 - TOO_SMALL:
                raise OptionError(
                    f"p_max must be at least 1/{k} = {1 / k:.6g} for column {name!r} with {k} "
                    f"levels, got {p!r}: raise it or declare more levels"
                )
        return cardinalities

    def guarantee(self, domain: Domain) -> LocalGuarantee:
        """See :meth:`LocalMechanism.guarantee`."""
        cardinalities = self.check(domain)
        by_column = self._by_column(cardinalities)
        losses = [column_losses(k, p) for k, p in zip(cardinalities, by_column, strict=True)]
        p_truth = math.prod(p for k, p in zip(cardinalities, by_column, strict=True) if k > 1)
        reached = all(ldp <= DEEPEST for ldp, _ in losses)
        return LocalGuarantee(
            epsilon_ldp=math.fsum(ldp for ldp, _ in losses) + ROUNDING,
            d_privacy=max(d for _, d in losses) + ROUNDING,
            distance=Distance.MANHATTAN,
            p_truth_smallest=p_truth,
            p_truth_largest=p_truth,
            epsilon_ldp_exact=reached,
            d_privacy_exact=reached,
            proved=True,
            proof=PROOF,
        )

    def attribute_channels(self, cardinalities: Sequence[int]) -> tuple[Floats, ...]:
        """See :meth:`LocalMechanism.attribute_channels`."""
        matrices = []
        for k, p in zip(cardinalities, self._by_column(cardinalities), strict=True):
            x = np.arange(k)
            matrices.append(geometric_rows(column_rates(k, p)[:, None] * np.abs(x[:, None] - x)))
        return tuple(matrices)
