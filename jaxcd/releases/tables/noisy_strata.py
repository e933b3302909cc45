r"""The table of a conditional independence query with released noise, and its fit by independence.

A query (x, y, Z) reads a table of counts y_z, (A, B), for each stratum z of Z.  Noise has the same
variance u on every cell of it:

* histogram: u is the sum of the variances of the cells that were summed, and cells are
  uncorrelated;
* marginals, noise of variance v_U on the interactions R_U: the covariance of two cells c and c' of
  the columns S is the sum over U subset of S of v_U prod over U of (1[c_j = c'_j] - 1 / k_j) prod
  over S - U of 1 / k_j^2.

*Fit.*  Independence says that a stratum has expected counts E = a b^T.  With variance E + u of a
cell (sampling and noise), a and b solve the quasi-likelihood equations

    sum_j b_j (y_ij - a_i b_j) / (E_ij + u) = 0,
    sum_i a_i (y_ij - a_i b_j) / (E_ij + u) = 0,
    a, b >= 0,

by alternating steps.  Without noise E = r c^T / n, the product of the margins; where noise is all,
it is the nearest product of non-negative vectors.  It uses the cells, not only the margins: one
full cell says more than a margin that adds up noise.

*Empty margins.*  Counts are whole numbers.  Where the noise on a margin is far below one record, a
margin of less than half a record is empty, and what it holds are the rounding errors of tables that
were put together from interactions, or noise.  It gets no expected counts, so that it has no
degrees of freedom, as in a table of counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.citests import Query
from jaxcd.ops.available_cases import observed
from jaxcd.ops.interactions import subsets
from jaxcd.ops.standardising import quotient

__all__ = [
    "IndependenceFit",
    "NoisyStrata",
    "fit_independence",
    "histogram_strata",
    "marginal_strata",
]

# Beyond, the covariances between cells would take more memory than they are worth: cells count as
# uncorrelated.
_MOST_CORRELATED = 1024
_STEPS = 12
# In records: margins below the first are empty where the standard deviation of their noise is below
# the second.
_LEAST_MARGIN, _QUIET_MARGIN = 0.5, 0.1


@dataclass(frozen=True)
class NoisyStrata:
    """The noisy strata of queries of one shape; public.

    Args:
        tables: float64 (..., K, A, B), in records, unbiased and possibly negative.
        variance: u of the noise on each cell, in squared records, float64 (...,).
        covariance: float64 (..., K A B, K A B), that of the noise on all cells; None where cells
            are uncorrelated.
    """

    tables: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray | None = None

    @classmethod
    def stack(cls, queries: Sequence[NoisyStrata]) -> NoisyStrata:
        """Queries of one shape, all with or all without correlations, along a new first axis."""
        covariances = [strata.covariance for strata in queries if strata.covariance is not None]
        return cls(
            np.stack([strata.tables for strata in queries]),
            np.stack([strata.variance for strata in queries]),
            np.stack(covariances) if covariances else None,
        )

    @property
    def per_cell(self) -> np.ndarray:
        """The variance, (..., 1, 1, 1)."""
        return self.variance[..., None, None, None]


@dataclass(frozen=True)
class IndependenceFit:
    """E = a b^T for each stratum: rows a, float64 (..., K, A), and columns b, (..., K, B),
    non-negative and of equal sums.
    """

    rows: np.ndarray
    columns: np.ndarray

    @property
    def expected(self) -> np.ndarray:
        """E, (..., K, A, B)."""
        found: np.ndarray = self.rows[..., :, None] * self.columns[..., None, :]
        return found

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The margins as shares, (..., K, A) and (..., K, B); zeros in an empty stratum."""
        return quotient(self.rows, self.rows.sum(axis=-1, keepdims=True)), quotient(
            self.columns, self.columns.sum(axis=-1, keepdims=True)
        )


def fit_independence(strata: NoisyStrata) -> IndependenceFit:
    """Fits every stratum by a product of non-negative margins; total: an empty stratum gets
    zeros.
    """
    y, u = strata.tables, strata.per_cell
    a, b = (np.maximum(y.sum(axis=axis), 0.0) for axis in (-1, -2))
    b = quotient(b, b.sum(axis=-1, keepdims=True))
    for _ in range(_STEPS):
        weight = quotient(np.ones_like(y), a[..., :, None] * b[..., None, :] + u) * b[..., None, :]
        a = np.maximum(
            quotient((weight * y).sum(axis=-1), (weight * b[..., None, :]).sum(axis=-1)), 0.0
        )
        weight = quotient(np.ones_like(y), a[..., :, None] * b[..., None, :] + u) * a[..., :, None]
        b = np.maximum(
            quotient((weight * y).sum(axis=-2), (weight * a[..., :, None]).sum(axis=-2)), 0.0
        )
    total = np.sqrt(a.sum(axis=-1, keepdims=True) * b.sum(axis=-1, keepdims=True))
    is_quiet = u[..., 0] * max(y.shape[-2:]) < _QUIET_MARGIN**2
    parts = (quotient(part, part.sum(axis=-1, keepdims=True)) * total for part in (a, b))
    return IndependenceFit(
        *(np.where(is_quiet & (part * total < _LEAST_MARGIN), 0.0, part) for part in parts)
    )


def histogram_strata(release: Any, query: Query) -> NoisyStrata:
    """The strata of a query in a joint histogram, without the cells that are left out."""
    kept = (*query.given, query.x, query.y)
    others = tuple(j for j in range(release.values.ndim) if j not in kept)
    table = release.values.sum(axis=others).transpose(np.argsort(np.argsort(kept)))
    variance = release.variance * math.prod(release.cardinalities[j] for j in others)
    table = observed(table, [release.leaves_out[j] for j in kept])
    return NoisyStrata(table.reshape(-1, *table.shape[-2:]).astype(np.float64), np.array(variance))


def marginal_strata(release: Any, query: Query) -> NoisyStrata:
    """The strata of a query in released marginals, which must have measured its columns, without
    the cells that are left out.

    Raises:
        OptionError: they were not measured.
    """
    kept = (*query.given, query.x, query.y)
    left_out = [release.leaves_out[j] for j in kept]
    columns = tuple(sorted(kept))
    whole = release.table(columns).transpose(np.argsort(np.argsort(kept)))
    table = observed(whole, left_out)
    variance = release.cell_variance(columns)
    tables = table.reshape(-1, *table.shape[-2:])
    if whole.size > _MOST_CORRELATED:
        return NoisyStrata(tables, np.array(variance))
    covariance = np.zeros((whole.size, whole.size))
    for chosen in subsets(kept):
        matrix = np.full((1, 1), release.variances[tuple(sorted(chosen))])
        for j in kept:
            k = release.cardinalities[j]
            matrix = np.kron(
                matrix, np.eye(k) - 1 / k if j in chosen else np.full((k, k), 1 / k**2)
            )
        covariance += matrix
    cells = observed(np.arange(whole.size).reshape(whole.shape), left_out).ravel()
    return NoisyStrata(tables, np.array(variance), covariance[np.ix_(cells, cells)])
