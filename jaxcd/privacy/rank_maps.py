r"""Private rank maps: for each numeric column a monotone public map from values to approximate
ranks in [0, 1].

A column is brought to asinh scale and clipped to a public range; on a dyadic partition of the range
with L levels, each inner node's difference (rows in the left half minus rows in the right half) is
released with Gaussian noise.  From the root, whose count n is public, each node's rows are divided
by (rows + noisy difference) / 2, clipped to [0, rows]; nodes with few rows are divided evenly.  The
cumulated leaf counts, interpolated linearly, are the map.  Afterwards it is public: everything
computed with it treats it as a constant (adaptive composition).

*Sensitivity.*  Replacing a record moves one row of each column from one leaf to another.  Above the
node where their paths part nothing changes; there the difference changes by 2; on each of the at
most L - 1 levels below two nodes change by 1.  So L2^2 <= 4 + 2 (L - 1) = 2 (L + 1) a column, and
sqrt(2 (L + 1) p) for p columns.  (Releasing the counts of both children instead has L2^2 = 2 L but
noise in both, which is twice the variance in what is used, and twice the draws.)

*Missing cells.*  Of a column that may have them (public), rows without a value are in no leaf, and
one more difference is released, rows with a value minus rows without.  A row that gains or loses
its value changes that by 2 and the L nodes of one path by 1: 4 + L in all, at most 2 (L + 1) for L
>= 2.  The bound stands, and the map is one of the rows that have a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from jaxcd.privacy.accountant import Accountant
from jaxcd.privacy.mechanisms import gaussian
from jaxcd.privacy.rounding import sqrt_up
from jaxcd.privacy.sensitive import Sensitive, exact_values

__all__ = ["RankMaps", "exact_rank", "rank_map_sensitivity", "release_rank_maps"]


@dataclass(frozen=True)
class RankMaps:
    """Public monotone maps.  cumulative[v]: float64 (2^L + 1,), from 0 to 1, the map of column v at
    the edges of the leaves of [-log_range, log_range] on asinh scale.  sigma: standard deviation of
    the noise on each difference, in rows."""

    log_range: float
    cumulative: tuple[np.ndarray, ...]
    sigma: float

    def rank(self, column: int, values: np.ndarray) -> np.ndarray:
        """u(x) in [0, 1], nondecreasing in x."""
        cumulative = self.cumulative[column]
        edges = np.linspace(-self.log_range, self.log_range, len(cumulative))
        found: np.ndarray = np.interp(np.arcsinh(values), edges, cumulative)
        return found


def exact_rank(values: np.ndarray) -> np.ndarray:
    """(rank - 1/2) / n with ties at their mean rank: what the maps estimate, for runs without
    privacy.
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - counts / 2)[inverse]) / len(values)


def rank_map_sensitivity(n_columns: int, n_levels: int, *, n_missing: int = 0) -> float:
    """sqrt(2 (L + 1) p), rounded up: L2 sensitivity (replace-one) of all differences of all
    columns; n_missing: how many of these may have missing cells, which only L = 1 tells apart.
    """
    more = max(4 + n_levels - 2 * (n_levels + 1), 0) * n_missing
    return sqrt_up(Fraction(2 * (n_levels + 1) * n_columns + more))


def _differences(
    values: np.ndarray,
    log_range: float,
    n_levels: int,
    weights: np.ndarray | None = None,
    *,
    may_miss: bool = False,
) -> np.ndarray:
    """Left minus right at every inner node, level by level: int64 (2^L - 1,), or with weights
    float64, exact multiples of 2^-20.  may_miss: NaN is in no leaf, and before all others stands
    rows with a value minus rows without.
    """
    if may_miss:
        known = ~np.isnan(values)
        units = np.ones(len(values), dtype=np.int64) if weights is None else weights
        balance = np.array([units[known].sum() - units[~known].sum()])
        inner = _differences(
            values[known], log_range, n_levels, None if weights is None else weights[known]
        )
        return np.concatenate([balance, inner])
    scaled = (np.clip(np.arcsinh(values), -log_range, log_range) + log_range) / (2 * log_range)
    n_leaves = 1 << n_levels
    leaves = np.minimum((scaled * n_leaves).astype(np.int64), n_leaves - 1)
    counts = np.bincount(leaves, weights=weights, minlength=n_leaves)
    parts = []
    while len(counts) > 1:
        pairs = counts.reshape(-1, 2)
        parts.append(pairs[:, 0] - pairs[:, 1])
        counts = pairs.sum(axis=1)
    return np.concatenate(parts[::-1])


def _cumulative(
    differences: np.ndarray, n_samples: int, floor: float, *, may_miss: bool = False
) -> np.ndarray:
    """Top-down masses from noisy differences; nodes with less than ``floor`` rows are divided
    evenly.  may_miss: the first difference says how many rows have a value.
    """
    total = float(n_samples)
    if may_miss:
        total = float(np.clip((total + differences[0]) / 2, 1.0, total))
        differences = differences[1:]
    masses = np.array([total])
    start = 0
    while start < len(differences):
        noisy = differences[start : start + len(masses)]
        start += len(masses)
        left = np.clip((masses + np.where(masses < floor, 0.0, noisy)) / 2, 0.0, masses)
        masses = np.stack([left, masses - left], axis=1).ravel()
    return np.append(0.0, np.minimum(np.cumsum(masses) / total, 1.0))


def release_rank_maps(
    columns: Sequence[Sensitive | np.ndarray],
    accountant: Accountant,
    *,
    rho: float,
    log_range: float = 8.0,
    n_levels: int = 11,
    label: str = "rank maps",
    n_samples: int | None = None,
    weights: Sensitive | None = None,
    may_miss: Sequence[bool] | None = None,
) -> RankMaps:
    r"""Releases the rank maps of numeric columns.

    Args:
        columns: finite reals, one a row, each, or NaN where a value is missing in a column that
            may miss some; sensitive.
        rho: the zCDP price.
        log_range: A > 0, public; values beyond asinh^{-1}(A) (1490 for A = 8) are clipped.
        n_levels: L in 1 .. 20.
        label: public words for the report.
        n_samples: what the weights add up to, public; None with no weights: the number of rows.
        weights: of the rows, multiples of 2^-20 that add up to 1 over each person and to
            ``n_samples`` together (sums of them are exact); None counts each row once.
        may_miss: for each column whether values may be missing, public; None: in no column.

    Guarantee:
        Relation: replace-one, of a row or, with weights, of a person; n is public.  Sensitivity:
        sqrt(2 (L + 1) p) in L2, over integers (multiples of 2^-20 where rows have weights).
        Event: ``ZCDPEvent(rho)``. Proof: module docstring, :func:`jaxcd.privacy.gaussian`.
    """
    n_samples = len(columns[0]) if n_samples is None else n_samples
    units = None if weights is None else exact_values(weights)
    may = [False] * len(columns) if may_miss is None else list(may_miss)
    exact = np.concatenate(
        [
            _differences(exact_values(column), log_range, n_levels, units, may_miss=holes)
            for column, holes in zip(columns, may, strict=True)
        ]
    )
    sensitivity = rank_map_sensitivity(len(columns), n_levels, n_missing=sum(may))
    noisy = gaussian(accountant, exact, sensitivity=sensitivity, rho=rho, label=label)
    sigma = 0.0 if math.isinf(rho) else sensitivity / math.sqrt(2 * rho)
    floor = max(4 * sigma, n_samples / 200)
    parts = np.split(noisy, np.cumsum([(1 << n_levels) - 1 + holes for holes in may])[:-1])
    return RankMaps(
        log_range,
        tuple(
            _cumulative(part, n_samples, floor, may_miss=holes)
            for part, holes in zip(parts, may, strict=True)
        ),
        sigma,
    )
