r"""Tables of counts by their interactions: every marginal table as a sum of orthogonal parts, each
counted once.

For a set S of discrete columns let R_S = sum over rows of the tensor product of phi_j, j in S, with
phi_j the contrast vector of the row's level (:mod:`jaxcd.ops.moments`): prod (k_j - 1) numbers, the
interaction of S.  The table of counts of S is

    N_S = sum over U subset of S of
              (tensor product over U of H_j) R_U (tensor product over S - U of 1 / k_j),
    R_{} = n,

so tables of overlapping sets are built from the same numbers: they agree wherever they overlap,
whatever noise the numbers carry.  Independent noise of variance v_U on every entry of R_U adds to
each cell of N_S the variance

    sum over U of  v_U  prod over U of (1 - 1 / k_j)  prod over S - U of 1 / k_j^2,

because every row of H_j has the squared norm 1 - 1 / k_j.

Source:
    Efron and Stein 1981 for the decomposition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from jaxcd.ops.moments import contrast_basis

__all__ = [
    "cell_variance",
    "expansion",
    "interaction",
    "interaction_sensitivity_squared",
    "interactions",
    "subsets",
    "table_of_interactions",
]

Columns = tuple[int, ...]


def subsets(columns: Columns, *, smallest: int = 1) -> list[Columns]:
    """The subsets of at least ``smallest`` members, small ones first, each in the order given."""
    sizes = range(smallest, len(columns) + 1)
    return [subset for size in sizes for subset in itertools.combinations(columns, size)]


def _along(matrix: np.ndarray, tensor: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)


def interaction(table: np.ndarray) -> np.ndarray:
    """R_S of a table of counts, float64 (k_j - 1 for each axis)."""
    result = np.asarray(table, dtype=np.float64)
    for axis, k in enumerate(table.shape):
        result = _along(contrast_basis(k).T, result, axis)
    return result


def interactions(tables: np.ndarray) -> np.ndarray:
    """R_S of many tables of one shape, (n, k_1, ...) -> float64 (n, k_1 - 1, ...)."""
    result = np.asarray(tables, dtype=np.float64)
    for axis, k in enumerate(result.shape[1:], start=1):
        result = np.moveaxis(np.moveaxis(result, axis, -1) @ contrast_basis(k), -1, axis)
    return result


@lru_cache(maxsize=256)
def expansion(k: int) -> np.ndarray:
    """(k, k): what the constant and the contrasts of one column add to its cells."""
    return np.concatenate([np.full((k, 1), 1 / k), contrast_basis(k)], axis=1)


def table_of_interactions(
    columns: Columns,
    cardinalities: Sequence[int],
    n_samples: int,
    interactions: Callable[[Columns], np.ndarray],
) -> np.ndarray:
    """The table N_S of the columns, float64 (k_j for each), from ``interactions(U)`` of all
    non-empty U.
    """
    shape = [cardinalities[column] for column in columns]
    coefficients = np.zeros(shape)
    coefficients[(0,) * len(columns)] = n_samples
    for places in subsets(tuple(range(len(columns)))):
        block = tuple(slice(1, None) if place in places else 0 for place in range(len(columns)))
        coefficients[block] = interactions(tuple(columns[place] for place in places))
    for axis, k in enumerate(shape):
        coefficients = _along(expansion(k), coefficients, axis)
    return coefficients


def cell_variance(
    columns: Columns,
    cardinalities: Sequence[int],
    variances: Mapping[Columns, float],
    *,
    summed: Mapping[int, int] | None = None,
) -> float:
    """The variance that noise of variance ``variances[U]`` on the interactions gives to each cell
    of the table of the columns.

    Args:
        summed: columns over some of whose levels the table is summed, with the number m of these;
            m (1 - m / k) and (m / k)^2 are then in the place of 1 - 1 / k and 1 / k^2.
    """
    m = {} if summed is None else summed
    total = 0.0
    for subset in subsets(columns):
        inside = math.prod(m.get(j, 1) * (1 - m.get(j, 1) / cardinalities[j]) for j in subset)
        outside = math.prod(
            m.get(j, 1) ** 2 / cardinalities[j] ** 2 for j in columns if j not in subset
        )
        total += variances[subset] * inside * outside
    return total


@lru_cache(maxsize=4096)
def interaction_sensitivity_squared(cardinalities: tuple[int, ...]) -> float:
    r"""The largest squared L2 change of one R_S when one row is replaced, for columns of these
    cardinalities.

    Let F be the non-empty set of columns whose level changes.  With <phi_j, phi_j'> = -1 / k_j for
    j in F and 1 - 1 / k_j otherwise, |x - x'|^2 = |x|^2 + |x'|^2 - 2 <x, x'> of the two tensor
    products is

        2 prod over S of (1 - 1 / k_j)  -  2 prod over F of (-1 / k_j) prod over S - F of (1 - 1 /
        k_j),

    whose largest value over F is taken.  It is attained, because only whether a level changes
    matters.
    """
    if min(cardinalities, default=1) < 2:
        return 0.0
    norm = math.prod(1 - 1 / k for k in cardinalities)
    changes = itertools.product((False, True), repeat=len(cardinalities))
    products = (
        math.prod(
            -1 / k if changed else 1 - 1 / k
            for k, changed in zip(cardinalities, flips, strict=True)
        )
        for flips in changes
        if any(flips)
    )
    return 2 * (norm - min(products))
