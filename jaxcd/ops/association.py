r"""Statistics of batches of stratified contingency tables.

Every function takes ``tables`` of shape (..., K, A, B): counts O[k, a, b] in stratum k.  Notation:
n_k the stratum's total, r_k and c_k its row and column sums, E = r c / n the expected counts.
Empty strata, rows and columns (also those that are padding) contribute exactly nothing, so tables
may be padded with zeros; no function divides by zero and none returns NaN. Counts are converted to
``dtype`` first; in float64 every sum of products of counts is exact up to 2^53.

Sources: the specification of the scores is PRIVACY.md sections B4 and M, restated in the proofs of
:mod:`jaxcd.citests.covariance_norm` and :mod:`jaxcd.citests.kendall`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = [
    "chi_square_of_products",
    "ChiSquareSums",
    "CovarianceSums",
    "KendallSums",
    "chi_square_sums",
    "covariance_sums",
    "kendall_sums",
]


class ChiSquareSums(NamedTuple):
    """chi_square: Pearson's sum (O - E)^2 / E.  g: the likelihood ratio 2 sum O log(O / E).  dof:
    degrees of freedom, the sum over strata of (nonempty rows - 1)(nonempty columns - 1), each
    factor at least 0.  mean, variance: of chi_square over all permutations of y within strata,
    exactly."""

    chi_square: jax.Array
    g: jax.Array
    dof: jax.Array
    mean: jax.Array
    variance: jax.Array


class CovarianceSums(NamedTuple):
    r"""With C_k = O_k - E_k:  norm = sqrt(sum_k |C_k|_F^2);  pooled = |sum_k C_k|_F;
    mean = sum_{n_k >= 2} A_k B_k / (n_k - 1), the exact permutation mean of norm^2 and of pooled^2,
    A_k = n_k - |r_k|^2 / n_k; spread = sqrt(sum_k w_k^2) and spread_pooled = sum_k w_k with
    w_k = n_k |Cov_x|_F |Cov_y|_F (twice its square is the null variance of norm^2);
    spread_of_scatter = |S_x|_F |S_y|_F / n with S = sum_k n_k Cov the pooled scatter matrices."""

    norm: jax.Array
    pooled: jax.Array
    mean: jax.Array
    spread: jax.Array
    spread_pooled: jax.Array
    spread_of_scatter: jax.Array


class KendallSums(NamedTuple):
    r"""concordance: S_k = concordant minus discordant pairs, (..., K).  size: n_k, (..., K).
    square_root: sum_k sign(S_k)(sqrt(n_k^2 + 2 |S_k|) - n_k), signed.
    variance: its null variance with ties, sum_k (n_k / 9)(1 - sum p^3)(1 - sum q^3)."""

    concordance: jax.Array
    size: jax.Array
    square_root: jax.Array
    variance: jax.Array


def _over(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """numerator / denominator, and 0 where the denominator is 0."""
    return jnp.where(denominator > 0, numerator / jnp.where(denominator > 0, denominator, 1), 0)


def _margins(tables: jax.Array, dtype: Any) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    observed = tables.astype(dtype)
    rows = observed.sum(axis=-1)
    columns = observed.sum(axis=-2)
    return observed, rows, columns, rows.sum(axis=-1)


def _expected(rows: jax.Array, columns: jax.Array, size: jax.Array) -> jax.Array:
    return _over(rows[..., :, None] * columns[..., None, :], size[..., None, None])


@partial(jax.jit, static_argnames="dtype")
def chi_square_sums(tables: jax.Array, dtype: Any = jnp.float64) -> ChiSquareSums:
    r"""Pearson's chi-square, the likelihood ratio G and their degrees of freedom, summed over
    strata, and the moments of chi-square where y is independent of x.

    With a nonempty rows of sums r and b nonempty columns of sums c, a stratum of n > 3 records has

        mean      n (a - 1)(b - 1) / (n - 1),
        variance  2 n (v_x - u_x)(v_y - u_y) / (n - 3)  +  n^2 u_x u_y / (n - 1),
        v_x = (a - 1)(n - a) / (n - 1),    u_x = (n sum 1 / r - a^2) / (n - 2),

    v_y and u_y alike of b and c, over all permutations of y; of n = 3 the first term of the
    variance is 0, and of n = 2 all of it.

    Args:
        tables: counts (..., K, A, B).

    Returns:
        Arrays of shape (...).

    Source:
        Agresti, *Categorical Data Analysis*, 3rd ed., sections 3.2 and 6.3; Haldane 1940 and Dawson
        1954 for the moments.
    """
    observed, rows, columns, size = _margins(tables, dtype)
    expected = _expected(rows, columns, size)
    chi_square = _over((observed - expected) ** 2, expected).sum(axis=(-3, -2, -1))
    ratio = jnp.where(observed > 0, observed / jnp.where(expected > 0, expected, 1), 1)
    g = 2 * (observed * jnp.log(ratio)).sum(axis=(-3, -2, -1))
    n_rows, n_columns = ((sums > 0).sum(axis=-1).astype(dtype) for sums in (rows, columns))
    dof = jnp.maximum(n_rows - 1, 0) * jnp.maximum(n_columns - 1, 0)
    spreads, shares = [], []
    for sums, levels in ((rows, n_rows), (columns, n_columns)):
        inverse = _over(jnp.ones_like(sums), sums).sum(axis=-1)
        shares.append(jnp.maximum(_over(size * inverse - levels**2, size - 2), 0))
        spread = _over((levels - 1) * (size - levels), size - 1)
        spreads.append(jnp.maximum(spread - shares[-1], 0))
    variance = 2 * _over(size * spreads[0] * spreads[1], size - 3)
    variance += _over(size**2 * shares[0] * shares[1], size - 1)
    return ChiSquareSums(
        chi_square,
        jnp.maximum(g, 0),
        dof.sum(axis=-1),
        _over(size * dof, size - 1).sum(axis=-1),
        variance.sum(axis=-1),
    )


def chi_square_of_products(
    products: jax.Array, offsets: jax.Array, cardinalities: jax.Array, width: int
) -> tuple[jax.Array, jax.Array]:
    """Pearson's statistic and its degrees of freedom of pairs of columns, straight from the counts
    of all pairs of levels (:func:`jaxcd.ops.contingency.level_products`): float64 (q,) each.

    Cells are added up one by one, not by reductions, so that a GPU does all of it in one kernel.

    Args:
        products: integers (m, m).
        offsets: integers (q, 2), the masks of the first levels of x and y.
        cardinalities: integers (q, 2).
        width: the most levels of a column.
    """
    last = products.shape[0] - 1
    zero = jnp.zeros(len(offsets), jnp.float64)

    def cell(a: int, b: int) -> jax.Array:
        inside = (a < cardinalities[:, 0]) & (b < cardinalities[:, 1])
        row, column = (jnp.minimum(offsets[:, i] + k, last) for i, k in ((0, a), (1, b)))
        return jnp.where(inside, products[row, column].astype(jnp.float64), 0)

    cells = [[cell(a, b) for b in range(width)] for a in range(width)]
    rows = [sum(row, zero) for row in cells]
    columns = [sum(column, zero) for column in zip(*cells, strict=True)]
    size = sum(rows, zero)
    total = zero
    for row, r in zip(cells, rows, strict=True):
        for observed, c in zip(row, columns, strict=True):
            expected = _over(r * c, size)
            total = total + _over((observed - expected) ** 2, expected)
    free = [
        jnp.maximum(sum(((s > 0).astype(jnp.float64) for s in sums), zero) - 1, 0)
        for sums in (rows, columns)
    ]
    return total, free[0] * free[1]


def _scatter_norm(sums: jax.Array, size: jax.Array) -> jax.Array:
    """n |diag p - p p^T|_F for margins p = sums / n.

    Its square is n^2 sum_i p_i^2 ((1 - p_i)^2 + sum_{j != i} p_j^2): a sum of non-negative terms,
    with n - r_i exact, so that nothing cancels when one level holds nearly all rows.
    """
    p = _over(sums, size[..., None])
    rest = _over(size[..., None] - sums, size[..., None])
    others = jnp.matmul(
        p**2, 1 - jnp.eye(p.shape[-1], dtype=p.dtype), precision=jax.lax.Precision.HIGHEST
    )
    return size * jnp.sqrt((p**2 * (rest**2 + others)).sum(axis=-1))


def _pooled_scatter_norm(sums: jax.Array, size: jax.Array) -> jax.Array:
    """|sum_k (diag r_k - r_k r_k^T / n_k)|_F."""
    outer = _over(sums[..., :, None] * sums[..., None, :], size[..., None, None]).sum(axis=-3)
    total = sums.sum(axis=-2)
    return jnp.sqrt(
        ((total[..., :, None] * jnp.eye(sums.shape[-1], dtype=sums.dtype) - outer) ** 2).sum(
            axis=(-2, -1)
        )
    )


@partial(jax.jit, static_argnames="dtype")
def covariance_sums(tables: jax.Array, dtype: Any = jnp.float64) -> CovarianceSums:
    """Frobenius norms of the within-stratum covariance of one-hot vectors, and their null moments.

    Args:
        tables: counts (..., K, A, B).

    Returns:
        Arrays of shape (...).

    Source:
        PRIVACY.md section M.
    """
    observed, rows, columns, size = _margins(tables, dtype)
    covariance = observed - _expected(rows, columns, size)
    norm = jnp.sqrt((covariance**2).sum(axis=(-3, -2, -1)))
    pooled = jnp.sqrt((covariance.sum(axis=-3) ** 2).sum(axis=(-2, -1)))
    spread_rows = size - _over((rows**2).sum(axis=-1), size)
    spread_columns = size - _over((columns**2).sum(axis=-1), size)
    mean = _over(spread_rows * spread_columns, jnp.maximum(size - 1, 0)).sum(axis=-1)
    w = _over(_scatter_norm(rows, size) * _scatter_norm(columns, size), size)
    of_scatter = _over(
        _pooled_scatter_norm(rows, size) * _pooled_scatter_norm(columns, size), size.sum(axis=-1)
    )
    return CovarianceSums(
        norm, pooled, mean, jnp.sqrt((w**2).sum(axis=-1)), w.sum(axis=-1), of_scatter
    )


@jax.jit
def square_root_score(size: jax.Array, concordance: jax.Array) -> jax.Array:
    """h(n, S) = sign(S)(sqrt(n^2 + 2 |S|) - n), computed without cancellation as 2 S /
    (sqrt(n^2 + 2 |S|) + n).
    """
    root = jnp.sqrt(size**2 + 2 * jnp.abs(concordance))
    return _over(2 * concordance, root + size)


@partial(jax.jit, static_argnames="dtype")
def kendall_sums(tables: jax.Array, dtype: Any = jnp.float64) -> KendallSums:
    """Kendall's concordance in each stratum of ordered tables, the square-root score and its null
    variance.

    Args:
        tables: counts (..., K, A, B), rows and columns in the order of the levels. S_k = sum over a
            < a' of O[a, b] (sum over b' > b of O[a', b'] - sum over b' < b of O[a', b']); ties
            count 0.

    Source:
        PRIVACY.md sections B4 and M (V_h).
    """
    observed, rows, columns, size = _margins(tables, dtype)
    # counts in later rows
    below = jnp.flip(jnp.cumsum(jnp.flip(observed, -2), axis=-2), -2) - observed
    left = jnp.cumsum(below, axis=-1) - below
    right = below.sum(axis=-1, keepdims=True) - left - below
    concordance = (observed * (right - left)).sum(axis=(-2, -1))
    square_root = square_root_score(size, concordance).sum(axis=-1)
    p3 = (_over(rows, size[..., None]) ** 3).sum(axis=-1)
    q3 = (_over(columns, size[..., None]) ** 3).sum(axis=-1)
    variance = (size / 9 * (1 - p3) * (1 - q3)).sum(axis=-1)
    return KendallSums(concordance, size, square_root, jnp.maximum(variance, 0))
