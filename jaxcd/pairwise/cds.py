r"""CDS: the cause is the variable given which the other's distribution varies least in shape.

Discretise x; for each of its levels that is met often enough take the distribution of y there,
moved to a common centre; the standard deviation of these distributions over the levels of x
measures how far y's mechanism depends on x beyond a shift. Under y = f(x) + noise, with noise
independent of x, the shape is the same for every x.
"""

from __future__ import annotations

import math

import jax
import numpy as np
from numpy.typing import ArrayLike

from jaxcd.checks import check_key_or_none, check_whole
from jaxcd.ops.standardising import standardised
from jaxcd.pairwise._checks import check_not_private, check_pair
from jaxcd.pairwise.result import Direction, PairResult
from jaxcd.privacy import Budget, Ledger, NoPrivacy
from jaxcd.privacy.claims import GuaranteeClaim, claiming

__all__ = ["cds", "conditional_variability"]


@claiming(
    GuaranteeClaim(
        "no bounded sensitivity: refused under a budget",
        proof="bins are read off the data",
        proven=False,
        assumptions="-",
    )
)
def cds(
    x: ArrayLike,
    y: ArrayLike,
    *,
    budget: Budget | NoPrivacy,
    bins_per_deviation: int = 2,
    max_deviation: int = 3,
    min_count: int = 13,
    key: jax.Array | None = None,
) -> PairResult:
    r"""Conditional distribution similarity: x causes y if the shape of y given x varies less.

    Less, that is, than the shape of x given y.

    The score of x -> y is :func:`conditional_variability` (x, y), that of y -> x the same with the
    variables exchanged.

    Args:
        x: one number a record, n at least 8.
        y: one number a record, as many as x.
        budget: ``jaxcd.NO_PRIVACY``.  Whether a level reaches ``min_count`` turns on one record and
            moves the score by an amount that does not shrink with n; over locally privatised
            records it is post-processing and costs nothing more.
        bins_per_deviation: levels per standard deviation, at least 1.
        max_deviation: values farther than this many standard deviations from the mean go into the
            outermost level, at least 1.
        min_count: how many records a level of the conditioning variable needs, at least 2.
        key: not used; CDS has no randomness.

    Returns:
        The two scores, ``forward`` and ``backward``, with ``margin`` = abs(forward - backward).
        UNDECIDED, with scores None and margin 0, where a direction has fewer than two levels with
        ``min_count`` records, since nothing is compared there.

    Raises:
        DataError: as :func:`check_pair` says.
        OptionError: an option is not of its kind.
        SensitivityError: the budget is finite.

    Source:
        Fonollosa 2019, Conditional distribution variability measures for causality detection.

    Example:
        >>> import jaxcd, numpy as np
        >>> x = np.random.default_rng(0).normal(size=1_000)
        >>> y = x**2 + 0.3 * np.random.default_rng(1).normal(size=1_000)
        >>> print(jaxcd.cds(x, y, budget=jaxcd.NO_PRIVACY).direction)
        Direction.X_TO_Y
    """
    for name, value, least in (
        ("bins_per_deviation", bins_per_deviation, 1),
        ("max_deviation", max_deviation, 1),
        ("min_count", min_count, 2),
    ):
        check_whole(name, value, least)
    check_key_or_none(key)
    check_not_private(
        budget,
        method="cds",
        reason="one record decides whether a level is counted, so the score has no small "
        "sensitivity",
    )
    first, second = check_pair(x, y)
    options = {
        "bins_per_deviation": bins_per_deviation,
        "max_deviation": max_deviation,
        "min_count": min_count,
    }
    forward = conditional_variability(first, second, **options)
    backward = conditional_variability(second, first, **options)
    compared = math.isfinite(forward) and math.isfinite(backward)
    direction = Direction.of_scores(forward, backward) if compared else Direction.UNDECIDED
    ledger = Ledger(budget)
    return PairResult(
        direction=direction,
        margin=0.0 if direction is Direction.UNDECIDED else abs(forward - backward),
        forward=forward if compared else None,
        backward=backward if compared else None,
        confidence=1.0,
        cost=ledger.guarantee,
        spent=ledger.spent,
        info={"method": "cds", "n_samples": len(first), **options},
    )


def conditional_variability(
    x: np.ndarray, y: np.ndarray, *, bins_per_deviation: int, max_deviation: int, min_count: int
) -> float:
    r"""The standard deviation of p_a(k) - mean_a p_a(k) over levels a of x and k of y; infinite
    with fewer than two levels a.

    Numbers with more than L = 2 b m + 1 distinct values are discretised: round(b (v - mean) /
    deviation) between -b m and b m, with b bins a deviation and m deviations; x by the mean and
    deviation of its values within m deviations of the mean of all, so that a few values far out do
    not push the others into one level (of all where these are equal).  p_a is the distribution of y
    over the records with x in the level a: of round(b (y - mean_a) / deviation of y) where y has
    more than L distinct values; else of y's own values, shifted to where the sum of its products
    with y's distribution is largest.
    """
    edge = bins_per_deviation * max_deviation
    levels = _discretise(x, bins_per_deviation, max_deviation)
    n_levels = int(levels.max()) + 1
    counts = np.bincount(levels, minlength=n_levels)
    chosen = counts >= min_count
    if chosen.sum() < 2:
        return math.inf
    values, codes = np.unique(y, return_inverse=True)
    if len(values) > 2 * edge + 1:
        standard = standardised(y)
        means = np.bincount(levels, weights=standard, minlength=n_levels) / np.maximum(counts, 1)
        codes = (
            np.clip(np.rint(bins_per_deviation * (standard - means[levels])), -edge, edge).astype(
                np.int64
            )
            + edge
        )
        table = _table(levels, codes, n_levels, 2 * edge + 1)[chosen]
    else:
        marginal = np.bincount(codes)
        table = np.stack(
            [
                _aligned(row, marginal)
                for row in _table(levels, codes, n_levels, len(values))[chosen]
            ]
        )
    shares = table / table.sum(axis=1, keepdims=True)
    return float(np.sqrt(np.mean((shares - shares.mean(axis=0)) ** 2)))


def _discretise(values: np.ndarray, bins_per_deviation: int, max_deviation: int) -> np.ndarray:
    edge = bins_per_deviation * max_deviation
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= 2 * edge + 1:
        return codes
    standard = standardised(values)
    inner = standard[np.abs(standard) < max_deviation]
    if len(inner) and np.ptp(inner) > 0:
        standard = (standard - inner.mean()) / inner.std()
    return np.clip(np.rint(bins_per_deviation * standard), -edge, edge).astype(np.int64) + edge


def _table(rows: np.ndarray, columns: np.ndarray, n_rows: int, n_columns: int) -> np.ndarray:
    return np.bincount(rows * n_columns + columns, minlength=n_rows * n_columns).reshape(
        n_rows, n_columns
    )


def _aligned(row: np.ndarray, marginal: np.ndarray) -> np.ndarray:
    """The row in 3 k - 2 places, shifted by the lag of its largest cross-correlation with the
    marginal (whole numbers: exact).
    """
    k = len(row)
    # 0 .. 2 k - 2; k - 1 leaves the row where it is
    shift = int(np.argmax(np.correlate(marginal, row, mode="full")))
    placed = np.zeros(3 * k - 2, dtype=np.int64)
    placed[shift : shift + k] = row
    return placed
