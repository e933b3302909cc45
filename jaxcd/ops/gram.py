"""Gaussian kernels on several columns, and a low-rank factor of their Gram matrix with a certified error."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["LowRank", "gaussian_gram", "median_distance", "pivoted_cholesky", "random_fourier_features"]

_HIGHEST = jax.lax.Precision.HIGHEST


@jax.jit
def gaussian_gram(x: jax.Array, y: jax.Array, bandwidth: jax.Array | float) -> jax.Array:
    """exp(-|x_i - y_j|^2 / (2 bandwidth^2)): (n, d), (m, d) -> (n, m)."""
    square = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * jnp.matmul(x, y.T, precision=_HIGHEST)
    return jnp.exp(-jnp.maximum(square, 0) / (2 * jnp.asarray(bandwidth, x.dtype) ** 2))


@jax.jit
def median_distance(x: jax.Array) -> jax.Array:
    """Median of the distances between different rows, (n, d) -> scalar; and a small positive number where most rows agree.

    Quadratic in n: hand it a subsample.  Reading a bandwidth off private data voids sensitivity bounds (PRIVACY.md D4).
    """
    square = (x**2).sum(axis=1)[:, None] + (x**2).sum(axis=1)[None, :] - 2 * jnp.matmul(x, x.T, precision=_HIGHEST)
    i, j = jnp.triu_indices(x.shape[0], k=1)
    # Not so small that its square underflows in gaussian_gram.
    return jnp.maximum(jnp.sqrt(jnp.median(jnp.maximum(square[i, j], 0))), jnp.sqrt(jnp.finfo(x.dtype).tiny) * 1e4)


class LowRank(NamedTuple):
    """K ~ factor factor^T.  factor: (n, r).  error: the largest diagonal entry of the (positive semidefinite) remainder
    K - factor factor^T, which bounds each of its entries; trace: the sum of the diagonal, which bounds its norm."""

    factor: jax.Array
    error: jax.Array
    trace: jax.Array


@partial(jax.jit, static_argnames="rank")
def _pivots(
    x: jax.Array, bandwidth: jax.Array, tolerance: jax.Array, rank: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Greedy pivots of the Gram matrix of x: their indices (rank,), the lower triangular Cholesky factor (rank, rank) of
    their Gram matrix, and how many of them were needed to reach the tolerance; rows beyond those are of the identity."""
    n = x.shape[0]

    def wanted(state):
        _, rest, _, t = state
        return (t < rank) & (rest.max() > tolerance)

    def step(state):
        factor, rest, index, t = state
        pivot = jnp.argmax(rest)
        column = gaussian_gram(x, x[pivot][None, :], bandwidth)[:, 0] - jnp.matmul(factor, factor[pivot], precision=_HIGHEST)
        column = column / jnp.sqrt(rest[pivot])
        rest = jnp.maximum(rest - column**2, 0).at[pivot].set(0)
        return factor.at[:, t].set(column), rest, index.at[t].set(pivot.astype(index.dtype)), t + 1

    state = (jnp.zeros((n, rank), x.dtype), jnp.ones(n, x.dtype), jnp.zeros(rank, jnp.int32), jnp.zeros((), jnp.int32))
    factor, _, index, n_used = jax.lax.while_loop(wanted, step, state)
    used = jnp.arange(rank) < n_used
    lower = jnp.tril(jnp.where(used[:, None] & used[None, :], factor[index], jnp.eye(rank, dtype=x.dtype)))
    return index, lower, n_used


@jax.jit
def _nystroem(x: jax.Array, landmarks: jax.Array, lower: jax.Array, n_used: jax.Array, bandwidth: jax.Array) -> LowRank:
    keep = (jnp.arange(lower.shape[0]) < n_used).astype(x.dtype)
    # The inverse of the small triangle, so that the pass over the rows is one product.
    inverse = jax.scipy.linalg.solve_triangular(lower, jnp.eye(lower.shape[0], dtype=x.dtype), lower=True)
    factor = jnp.matmul(gaussian_gram(x, landmarks, bandwidth) * keep, inverse.T, precision=_HIGHEST)
    rest = jnp.maximum(1 - (factor**2).sum(axis=1), 0)
    return LowRank(factor, rest.max(), rest.sum())


def pivoted_cholesky(
    x: jax.Array, bandwidth: float, *, rank: int, tolerance: float = 1e-6, n_search: int = 2048, trim: bool = False
) -> LowRank:
    """The pivoted Cholesky factor of the Gaussian Gram matrix of x, (n, d) -> (n, rank).

    Pivots are chosen greedily among the first ``n_search`` rows (put the rows into random order first), then the factor of
    all rows follows in one product: n rank^2 operations and no pass over the data for each pivot.  Columns beyond
    what ``tolerance`` (on the diagonal of the remainder) needs are zero.  The error that is returned is exact whatever the
    pivots.  trim: drop zero columns, down to a power of two (at least 16) of them: one column of normal scores needs 13, two 54,
    three 158; the shape then depends on the data, so not for private use.  Source: Harbrecht, Peters, Schneider 2012.
    """
    rank = min(rank, x.shape[0])
    width = jnp.asarray(bandwidth, x.dtype)
    index, lower, n_used = _pivots(x[:n_search], width, jnp.asarray(tolerance, x.dtype), rank)
    if trim:
        rank = min(rank, max(16, 1 << (int(n_used) - 1).bit_length()))
        index, lower = index[:rank], lower[:rank, :rank]
    return _nystroem(x, x[index], lower, n_used, width)


def random_fourier_features(x: jax.Array, bandwidth: float, *, n_features: int, key: jax.Array) -> LowRank:
    """Random Fourier features of the Gaussian kernel, (n, d) -> (n, n_features): sqrt(2 / n_features) [cos(w x), sin(w x)].

    The frequencies are drawn without the data, and each row has norm exactly one, so sensitivity bounds for kernels bounded
    by one hold for the feature kernel exactly; error and trace are zero in that sense.  n_features: even, positive.
    Source: Rahimi and Recht 2007.
    """
    frequencies = jax.random.normal(key, (x.shape[1], n_features // 2), x.dtype) / bandwidth
    angles = jnp.matmul(x, frequencies, precision=_HIGHEST)
    factor = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) * jnp.sqrt(jnp.asarray(2.0 / n_features, x.dtype))
    zero = jnp.zeros((), x.dtype)
    return LowRank(factor, zero, zero)
