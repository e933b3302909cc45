r"""Private rank maps: for each numeric column a monotone public map from values to approximate
ranks in [0, 1].

A column is brought to asinh scale and clipped to a public range; on a dyadic partition of the range
with L levels, each inner node's difference (rows in the left half minus rows in the right half) is
released with Gaussian noise.  From the root, whose count n is public, each node's rows are divided
by (rows + noisy difference) / 2, clipped to [0, rows]; nodes with fewer rows than the noise has
standard deviation, or than n / 200, are divided evenly.  The cumulated leaf counts, interpolated
linearly, are the map.  Afterwards it is public: everything computed with it treats it as a constant
(adaptive composition).

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
from jaxcd.privacy.sensitive import Sensitive

__all__ = [
    "RankMaps",
    "exact_rank",
    "leaf_counts",
    "rank_map_sensitivity",
    "release_counted_maps",
    "release_rank_maps",
]


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


def leaf_counts(
    values: np.ndarray, *, log_range: float, n_levels: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """The rows without a value, and those in each leaf: int64 (1 + 2^L,), in units of the weights;
    a sum over rows.

    Args:
        values: finite reals, or NaN where one is missing, in no leaf.
        log_range: A.
        n_levels: L.
        weights: of the rows, whole numbers; None counts each once.
    """
    scaled = (np.clip(np.arcsinh(values), -log_range, log_range) + log_range) / (2 * log_range)
    n_leaves = 1 << n_levels
    known = ~np.isnan(values)
    leaves = 1 + np.minimum(np.where(known, scaled * n_leaves, 0.0), n_leaves - 1).astype(np.int64)
    found: np.ndarray = np.bincount(
        np.where(known, leaves, 0), weights=weights, minlength=1 + n_leaves
    ).astype(np.int64)
    return found


def _differences(counts: np.ndarray, *, may_miss: bool = False) -> np.ndarray:
    """Left minus right at every inner node, level by level, of :func:`leaf_counts`: (2^L - 1,).
    may_miss: before all others stands rows with a value minus rows without.
    """
    missing, counts = counts[0], counts[1:]
    parts = []
    while len(counts) > 1:
        pairs = counts.reshape(-1, 2)
        parts.append(pairs[:, 0] - pairs[:, 1])
        counts = pairs.sum(axis=1)
    return np.concatenate([counts - missing if may_miss else counts[:0], *parts[::-1]])


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
    columns: Sequence[np.ndarray],
    accountant: Accountant,
    *,
    rho: float,
    log_range: float = 8.0,
    n_levels: int = 11,
    label: str = "rank maps",
) -> RankMaps:
    r"""Releases the rank maps of numeric columns.

    Args:
        columns: finite reals, one a row, each; sensitive.
        rho: the zCDP price.
        log_range: A > 0, public; values beyond asinh^{-1}(A) (1490 for A = 8) are clipped.
        n_levels: L in 1 .. 20.
        label: public words for the report.

    Guarantee:
        Relation: replace-one; n is public.  The rest as for :func:`release_counted_maps`.
    """
    leaves = [leaf_counts(each, log_range=log_range, n_levels=n_levels) for each in columns]
    return release_counted_maps(
        Sensitive(leaves),
        accountant,
        rho=rho,
        log_range=log_range,
        n_levels=n_levels,
        label=label,
        n_samples=len(columns[0]),
        may_miss=[False] * len(columns),
    )


def release_counted_maps(
    leaves: Sensitive,
    accountant: Accountant,
    *,
    rho: float,
    log_range: float,
    n_levels: int = 11,
    label: str = "rank maps",
    n_samples: int,
    may_miss: Sequence[bool],
    unit: float = 1.0,
) -> RankMaps:
    r"""Releases the rank maps of numeric columns of which the leaves have been counted.

    Args:
        leaves: for each column what :func:`leaf_counts` makes of it.
        rho: the zCDP price.
        log_range: as in :func:`leaf_counts`.
        n_levels: as ``log_range``.
        label: public words for the report.
        n_samples: what the counts of a column add up to, times the unit; public.
        may_miss: for each column whether values may be missing, public.
        unit: what a counted unit is of a record: 1, or 2^-20 where rows have weights that add up to
            2^20 over each person.

    Guarantee:
        Relation: replace-one, of a row or, with weights, of a person; n is public.  Sensitivity:
        sqrt(2 (L + 1) p) in L2, over integers (multiples of 2^-20 where rows have weights).
        Event: ``GaussianEvent(rho)``. Proof: module docstring, :func:`jaxcd.privacy.gaussian`.
    """
    holes = list(may_miss)

    def differences(counts: Sequence[np.ndarray]) -> np.ndarray:
        parts = [_differences(each, may_miss=may) for each, may in zip(counts, holes, strict=True)]
        return np.concatenate(parts) * (1 if unit == 1.0 else unit)

    sensitivity = rank_map_sensitivity(len(holes), n_levels, n_missing=sum(holes))
    noisy = gaussian(
        accountant, leaves.map(differences), sensitivity=sensitivity, rho=rho, label=label
    )
    sigma = 0.0 if math.isinf(rho) else sensitivity / math.sqrt(2 * rho)
    floor = max(sigma, n_samples / 200)
    parts = np.split(noisy, np.cumsum([(1 << n_levels) - 1 + may for may in holes])[:-1])
    return RankMaps(
        log_range,
        tuple(
            _cumulative(part, n_samples, floor, may_miss=may)
            for part, may in zip(parts, holes, strict=True)
        ),
        sigma,
    )
