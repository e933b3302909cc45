r"""Contrast second moments of discrete columns.

A column with k levels is represented by phi = H^T e, e its one-hot vector and H (k, k - 1) an
orthonormal basis of the vectors that sum to zero: k - 1 numbers, |phi|^2 = 1 - 1/k, and <phi, phi'>
= -1/k for two different levels.  The moments sum_i phi_j phi_l^T (all pairs j < l) and sum_i phi_j
determine every pairwise table, because n is public.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["contrast_basis", "contrast_moments", "contrast_sensitivity"]


def contrast_basis(n_levels: int) -> np.ndarray:
    """An orthonormal basis of the zero-sum vectors, float64 (k, k - 1): the normalised Helmert
    contrasts.
    """
    basis = np.zeros((n_levels, n_levels - 1))
    for j in range(n_levels - 1):
        basis[: j + 1, j] = 1.0
        basis[j + 1, j] = -(j + 1.0)
        basis[:, j] /= np.sqrt((j + 1.0) * (j + 2.0))
    return basis


def contrast_moments(
    counts: Mapping[tuple[int, ...], np.ndarray],
) -> dict[tuple[int, ...], np.ndarray]:
    """The first and second contrast moments, in records, of exact counts of columns and of pairs.

    Args:
        counts: by columns (j,) and (j, l), integers (k_j,) and (k_j, k_l).

    Returns:
        For each of them sum_i phi_j, (k_j - 1,), or sum_i phi_j phi_l^T, (k_j - 1, k_l - 1).
    """
    found: dict[tuple[int, ...], np.ndarray] = {}
    for columns, table in counts.items():
        moments = contrast_basis(table.shape[0]).T @ table.astype(np.float64)
        if len(columns) == 2:
            moments = moments @ contrast_basis(table.shape[1])
        found[columns] = moments
    return found


_MAX_ENUMERATED = 200_000


def _merged(counts: Counter[int]) -> Counter[int]:
    """Merges neighbouring cardinalities into the larger one until their combinations can be
    enumerated.
    """
    counts = Counter(counts)
    while np.prod([m + 1.0 for m in counts.values()]) > _MAX_ENUMERATED:
        kinds = sorted(counts)
        small, large = min(itertools.pairwise(kinds), key=lambda pair: 1 / pair[0] - 1 / pair[1])
        counts[large] += counts.pop(small)
    return counts


def contrast_sensitivity(cardinalities: Sequence[int], mean_weight: float) -> float:
    r"""L2 sensitivity (replace-one) of all products and of the means times ``mean_weight``.

    Let F be the set of columns that change.  A product of two changed columns moves by |phi
    psi^T - phi' psi'^T|^2 = 2 (|phi|^2 |psi|^2 - <phi, phi'><psi, psi'>) = 2 (1 - 1/k_j - 1/k_l),
    one of a changed and an unchanged column by |phi - phi'|^2 |psi|^2 = 2 (1 - 1/k_l), a weighted
    mean by 2 w^2.  So the squared sensitivity is

        max over F of  sum_{j < l in F} 2 (1 - 1/k_j - 1/k_l) + sum_{j in F, l not in F} 2
        (1 - 1/k_l) + 2 w^2 |F|,

    which depends on how many columns of each cardinality change, and is enumerated over those
    numbers.  A column with one level never changes.  Every term grows with k, so where there are
    too many different cardinalities to enumerate, close ones are merged upwards: still an upper
    bound.  The factor is more than floats round away.

    Source:
        PRIVACY.md N.7.
    """
    counts = _merged(Counter(k for k in cardinalities if k > 1))
    if not counts:
        return 0.0
    kinds = np.array(sorted(counts))
    available = np.array([counts[k] for k in kinds])
    changed = np.stack(
        np.meshgrid(*(np.arange(m + 1) for m in available), indexing="ij"), axis=-1
    ).reshape(-1, len(kinds))
    f = changed.sum(axis=1)
    # Sum over the pairs j < l in F of 1 - 1/k_j - 1/k_l = f (f - 1) / 2 - (f - 1) (sum over F of
    # 1/k).
    inside = f * (f - 1) - 2 * (f - 1) * (changed @ (1 / kinds))
    across = 2 * f * ((available - changed) @ (1 - 1 / kinds))
    squared = np.max(inside + across + 2 * mean_weight**2 * f)
    return float(np.sqrt(squared)) * (1 + 2.0**-40)
