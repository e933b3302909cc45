r"""Spearman's rank products, with ties at their mid-ranks, within strata.

In a stratum of n rows let a_i = #{j: x_j < x_i} - #{j: x_j > x_i}, twice the centred mid-rank of
x_i, and b_i likewise for y.  Then

    E = sum_i a_i b_i,
    |E| <= (n^3 - n) / 3,
    rho = E / sqrt(sum a^2 sum b^2)
    (without ties 3 E / (n^3 - n)).

E is an integer and defined for every data set: a constant column has a = 0.  Under independence
given both margins it has mean 0 and variance sum a^2 sum b^2 / (n - 1), and sum a^2 = (n^3 - sum of
cubed tie counts) / 3.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "SpearmanSums",
    "StratumProducts",
    "cube_root_score",
    "rank_products",
    "spearman_rho",
    "spearman_sums",
]


class StratumProducts(NamedTuple):
    """For each of K strata: E = sum a b, n, sum a^2 and sum b^2; float64 (K,), zero for an empty
    stratum.
    """

    product: np.ndarray
    size: np.ndarray
    squares_x: np.ndarray
    squares_y: np.ndarray


class SpearmanSums(NamedTuple):
    r"""product: E_k, (..., K).  size: n_k, (..., K).  cube_root: sum_k sign(E_k)((n_k^3 + 3
    |E_k|)^(1/3) - n_k), signed. variance: its null variance to first order, sum_k sum a^2 sum b^2 /
    n_k^5 = sum_k (n_k / 9)(1 - sum p^3)(1 - sum q^3)."""

    product: jax.Array
    size: jax.Array
    cube_root: jax.Array
    variance: jax.Array


@jax.jit
def cube_root_score(size: jax.Array, product: jax.Array) -> jax.Array:
    """sign(E)((n^3 + 3 |E|)^(1/3) - n), about E / n^2 for small E, as 3 E / (r^2 + r n + n^2)
    without cancellation; 0 for n = 0.
    """
    root = jnp.cbrt(size**3 + 3 * jnp.abs(product))
    scale = root**2 + root * size + size**2
    return jnp.where(scale > 0, 3 * product / jnp.where(scale > 0, scale, 1), 0)


def _doubled_ranks(
    stratum: np.ndarray, value: np.ndarray, start: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Rows below minus rows above in the row's stratum: int64 (n,).  start: place of each stratum's
    first row when sorted.
    """
    order = np.lexsort((value, stratum))
    s, v = stratum[order], value[order]
    new = np.concatenate([[True], (s[1:] != s[:-1]) | (v[1:] != v[:-1])])
    first = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    last = np.append(first[1:], len(v)) - 1
    ranks = np.empty(len(v), dtype=np.int64)
    ranks[order] = (first + last)[group] - 2 * start[s] - (size[s] - 1)
    return ranks


def rank_products(
    x: np.ndarray, y: np.ndarray, stratum: np.ndarray | None = None, n_strata: int = 1
) -> StratumProducts:
    """Products of doubled centred mid-ranks within each stratum, in O(n log n).

    Args:
        x: (n,) finite reals.
        y: as ``x``.
        stratum: integers (n,) in [0, n_strata), or None for one stratum. E is rounded once: its sum
            is taken in two halves of exact integers.

    Source:
        Spearman 1904; Kendall 1948, chapter 3, for ties.
    """
    n = len(x)
    stratum = (
        np.zeros(n, dtype=np.int64) if stratum is None else np.asarray(stratum, dtype=np.int64)
    )
    size = np.bincount(stratum, minlength=n_strata)
    if n == 0:
        return StratumProducts(*(np.zeros(n_strata) for _ in range(4)))
    end = np.cumsum(size)
    a, b = (_doubled_ranks(stratum, np.asarray(column), end - size, size) for column in (x, y))
    order = np.argsort(stratum, kind="stable")

    def total(products: np.ndarray) -> np.ndarray:
        running = np.append(0, np.cumsum(products[order]))
        return running[end] - running[end - size]

    def exact_total(products: np.ndarray) -> np.ndarray:
        # |a b| < n^2: both halves of the sum stay below 2^62 for n < 2^31.
        return total(products >> 31) * 2.0**31 + total(products & (2**31 - 1))

    return StratumProducts(
        exact_total(a * b), size.astype(np.float64), exact_total(a * a), exact_total(b * b)
    )


def spearman_rho(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rho of two columns, the correlation of their mid-ranks; 0 where a column is
    constant (or empty).

    Args:
        x: (n,) finite reals.
        y: as ``x``.

    Returns:
        A number in [-1, 1].

    Source:
        Spearman 1904.
    """
    sums = rank_products(x, y)
    scale = float(np.sqrt(sums.squares_x[0]) * np.sqrt(sums.squares_y[0]))
    return min(max(float(sums.product[0]) / scale, -1.0), 1.0) if scale > 0 else 0.0


@partial(jax.jit, static_argnames="dtype")
def spearman_sums(tables: jax.Array, dtype: Any = jnp.float64) -> SpearmanSums:
    """Spearman's products in each stratum of ordered tables, the cube-root score and its null
    variance.

    Args:
        tables: counts (..., K, A, B), rows and columns in the order of the levels; padding with
            zeros changes nothing.
    """
    observed = tables.astype(dtype)
    size = observed.sum(axis=(-2, -1))

    def doubled_ranks(counts: jax.Array) -> jax.Array:
        return 2 * jnp.cumsum(counts, axis=-1) - counts - size[..., None]

    rows, columns = observed.sum(axis=-1), observed.sum(axis=-2)
    a, b = doubled_ranks(rows), doubled_ranks(columns)
    product = (observed * a[..., :, None] * b[..., None, :]).sum(axis=(-2, -1))
    squares = (rows * a**2).sum(axis=-1), (columns * b**2).sum(axis=-1)
    safe = jnp.maximum(size, 1)
    variance = ((squares[0] / safe**3) * (squares[1] / safe**3) * size).sum(axis=-1)
    return SpearmanSums(product, size, cube_root_score(size, product).sum(axis=-1), variance)
