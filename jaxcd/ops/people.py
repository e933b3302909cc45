r"""Tables in which every person counts once, however many rows they have.

A person with k rows gives each of them the weight 1/k, in whole units of 2^-20: 2^20 = q k + r, the
first r of their rows have q + 1 units and the others q.  The weights of a person's rows add up to
2^20 exactly, so that a table of weighted counts is exact in integers, adds up to the number of
people, and moves by at most 2 * 2^20 units in L1 and sqrt(2) * 2^20 in L2 when one person is
replaced: what a person adds to it lies in the simplex of side 2^20, whatever k is (PRIVACY.md W).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["PERSON_UNITS", "RECORD", "person_weights", "weighted_bincount", "weighted_sets"]

PERSON_UNITS = 1 << 20
"""Units of weight that a person has."""

RECORD = 1.0 / PERSON_UNITS
"""A unit of weight in records, a power of two: counts of fewer than 2^33 people are exact."""


def person_weights(people: np.ndarray) -> np.ndarray:
    """The weight of each row in units, int64 (n_rows,); over the rows of a person they add up to
    2^20.

    Args:
        people: the person of each row, whole numbers from 0 without a gap, (n_rows,).
    """
    sizes = np.bincount(people)
    order = np.argsort(people, kind="stable")
    first = np.cumsum(sizes) - sizes
    place = np.empty(len(people), dtype=np.int64)
    place[order] = np.arange(len(people)) - first[people[order]]
    whole, rest = np.divmod(PERSON_UNITS, sizes)
    weights: np.ndarray = whole[people] + (place < rest[people])
    return weights.astype(np.int64)


def weighted_bincount(cells: np.ndarray, n_cells: int, weights: np.ndarray | None) -> np.ndarray:
    """How much falls into each cell, int64: rows, or with weights units of 2^-20; exact.

    Args:
        cells: integers (n_rows,), from 0 to n_cells - 1.
        weights: in units, as :func:`person_weights` gives them, or None.
    """
    if weights is None:
        return np.bincount(cells, minlength=n_cells).astype(np.int64)
    # sums of whole numbers below 2^53, which doubles add up without error
    return np.bincount(cells, weights=weights, minlength=n_cells).astype(np.int64)


def weighted_sets(
    codes: np.ndarray, cardinalities: Sequence[int], sets: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The weighted joint counts of many sets of columns of the same cardinalities, in units.

    Args:
        codes: integers (n_rows, n_columns).
        cardinalities: the number of levels of each column.
        sets: integers (n_sets, depth).
        weights: in units, (n_rows,).

    Returns:
        int64 (n_sets, k_1, ..., k_depth), which add up to 2^20 times the number of people in each
        set; exact.
    """
    shape = tuple(int(cardinalities[j]) for j in sets[0])
    tables = np.empty((len(sets), math.prod(shape)), dtype=np.int64)
    for table, columns in zip(tables, sets, strict=True):
        cells = np.zeros(len(codes), dtype=np.int64)
        for column, k in zip(columns, shape, strict=True):
            cells *= k
            cells += codes[:, column]
        table[:] = weighted_bincount(cells, len(table), weights)
    return tables.reshape(len(sets), *shape)
