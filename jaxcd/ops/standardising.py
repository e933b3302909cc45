r"""Centring, scaling and dividing that give the same answer on every processor.

Whether the mean of n equal numbers is that number depends on n, on the number and on the order of
addition, and that order on the processor.  So what is constant is decided here before any sum: the
largest and the smallest value are exact, their difference is rounded once, and a column is constant
iff that difference is at most 2^-40 of its largest size.  A constant column comes out as zeros.
Other columns are first brought near 1 by a power of two and moved by their first value, both nearly
without rounding, so that a large mean costs no digits and no square overflows.
"""

from __future__ import annotations

import numpy as np

__all__ = ["SPREAD_LOST", "centred", "is_constant", "near_one", "quotient", "standardised"]

SPREAD_LOST = 2.0**-40
"""A spread of at most this share of the largest size is lost: the column counts as constant."""


def is_constant(values: np.ndarray) -> np.ndarray:
    """Whether each column is constant: finite numbers (n, ...) -> bool (...); exact, whatever the
    processor.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    size = np.maximum(np.abs(low), np.abs(high))
    # Halved, so that no difference overflows.
    return np.asarray(high / 2 - low / 2 <= SPREAD_LOST / 2 * size)


def near_one(values: np.ndarray) -> np.ndarray:
    """The columns times the power of two that brings their largest size into [1/2, 1)."""
    return np.ldexp(values, -np.frexp(np.abs(values).max(axis=0))[1])


def centred(values: np.ndarray) -> np.ndarray:
    """values - mean of each column, finite numbers (n, ...) -> (n, ...); exactly 0 where a column
    is constant.
    """
    moved = values - values[0]
    return np.where(is_constant(values), 0.0, moved - moved.mean(axis=0))


def standardised(values: np.ndarray) -> np.ndarray:
    """(values - mean) / standard deviation of each column, finite numbers (n, ...) -> (n, ...); 0
    where a column is constant.
    """
    # Once more to size 1: a spread far below the size would lose its squares.
    rest = near_one(centred(near_one(values)))
    return rest / np.where(is_constant(values), 1.0, rest.std(axis=0))


_LEAST_DENOMINATOR = 1e-290


def quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator / denominator, and 0 where the denominator is not above 1e-290; no warning and no
    infinity for numerators up to 1e18.

    For shares and counts that a product of small numbers may have carried below the smallest float
    on one processor and not on another.
    """
    enough = denominator > _LEAST_DENOMINATOR
    return np.where(enough, numerator / np.where(enough, denominator, 1.0), 0.0)
