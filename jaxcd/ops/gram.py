"""Gaussian kernels on several columns, and a low-rank factor of their Gram matrix with a certified
error.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

__all__ = [
    "LowRank",
    "gaussian_gram",
    "median_distance",
    "pivoted_cholesky",
    "random_fourier_features",
]

_HIGHEST = jax.lax.Precision.HIGHEST
_BLOCK = 16
_CANDIDATES = 32


@jax.jit
def gaussian_gram(x: jax.Array, y: jax.Array, bandwidth: jax.Array | float) -> jax.Array:
    """exp(-|x_i - y_j|^2 / (2 bandwidth^2)): (n, d), (m, d) -> (n, m)."""
    square = (
        (x**2).sum(axis=1)[:, None]
        + (y**2).sum(axis=1)[None, :]
        - 2 * jnp.matmul(x, y.T, precision=_HIGHEST)
    )
    return jnp.exp(-jnp.maximum(square, 0) / (2 * jnp.asarray(bandwidth, x.dtype) ** 2))


@jax.jit
def median_distance(x: jax.Array) -> jax.Array:
    """Median of the distances between different rows, (n, d) -> scalar; and a small positive number
    where most rows agree.

    Quadratic in n: hand it a subsample.  Reading a bandwidth off private data voids sensitivity
    bounds (PRIVACY.md D4).
    """
    square = (
        (x**2).sum(axis=1)[:, None]
        + (x**2).sum(axis=1)[None, :]
        - 2 * jnp.matmul(x, x.T, precision=_HIGHEST)
    )
    i, j = jnp.triu_indices(x.shape[0], k=1)
    # Not so small that its square underflows in gaussian_gram.
    return jnp.maximum(
        jnp.sqrt(jnp.median(jnp.maximum(square[i, j], 0))), jnp.sqrt(jnp.finfo(x.dtype).tiny) * 1e4
    )


class LowRank(NamedTuple):
    """K ~ factor factor^T.  factor: (n, r).  error: the largest diagonal entry of the (positive
    semidefinite) remainder K - factor factor^T, which bounds each of its entries; trace: the sum of
    the diagonal, which bounds its norm."""

    factor: jax.Array
    error: jax.Array
    trace: jax.Array


@partial(jax.jit, static_argnames="rank")
def _pivots(
    x: jax.Array, bandwidth: jax.Array, tolerance: jax.Array, rank: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Pivots of the Gram matrix of x, chosen greedily: the factor (n, rank), their indices (rank,),
    the lower triangular Cholesky factor (rank, rank) of their Gram matrix, and how many were needed
    to reach the tolerance; what lies beyond those is 0, or of the identity.

    Greedy choice one by one is one pass over the rows a pivot, bound by memory.  Here up to _BLOCK
    pivots are chosen one by one among _CANDIDATES rows, on their own small matrix, and the rows
    follow in one product.  The candidates are the rows with the largest remainder of as many groups
    of rows: the very largest is one of them, and no sort is needed.
    """
    n = x.shape[0]
    n_candidates, block = min(_CANDIDATES, n), min(_BLOCK, rank, n)
    n_members = -(-n // n_candidates)

    def wanted(state, limit):
        _, rest, _, used = state
        return (used < limit) & (rest.max() > tolerance)

    def choose(rest, factor, n_left):
        """Positions among the candidates (block,), their triangle (block, block), the candidates,
        and how many were chosen.
        """
        groups = jnp.pad(rest, (0, n_candidates * n_members - n), constant_values=-1).reshape(
            n_members, n_candidates
        )
        candidates = jnp.argmax(groups, axis=0) * n_candidates + jnp.arange(n_candidates)
        own = factor[candidates]
        schur = gaussian_gram(x[candidates], x[candidates], bandwidth) - jnp.matmul(
            own, own.T, precision=_HIGHEST
        )
        left = rest[candidates]

        def more(state):
            _, left, _, j = state
            return (j < jnp.minimum(block, n_left)) & (left.max() > tolerance)

        def one(state):
            small, left, places, j = state
            place = jnp.argmax(left)
            column = (
                schur[:, place] - jnp.matmul(small, small[place], precision=_HIGHEST)
            ) / jnp.sqrt(left[place])
            left = jnp.maximum(left - column**2, 0).at[place].set(0)
            return (
                small.at[:, j].set(column),
                left,
                places.at[j].set(place.astype(jnp.int32)),
                j + 1,
            )

        empty = (
            jnp.zeros((n_candidates, block), x.dtype),
            left,
            jnp.zeros(block, jnp.int32),
            jnp.zeros((), jnp.int32),
        )
        small, _, places, n_new = jax.lax.while_loop(more, one, empty)
        new = jnp.arange(block) < n_new
        triangle = jnp.tril(
            jnp.where(new[:, None] & new[None, :], small[places], jnp.eye(block, dtype=x.dtype))
        )
        return candidates[places], triangle, new, n_new

    def step(state, limit):
        factor, rest, index, used = state
        pivots, triangle, new, n_new = choose(rest, factor, limit - used)
        columns = gaussian_gram(x, x[pivots], bandwidth) - jnp.matmul(
            factor, factor[pivots].T, precision=_HIGHEST
        )
        inverse = jax.scipy.linalg.solve_triangular(
            triangle, jnp.eye(block, dtype=x.dtype), lower=True
        )
        columns = jnp.matmul(columns, inverse.T, precision=_HIGHEST) * new
        # A pivot's own remainder is 0, not what rounding leaves of it; n is past the end, and is
        # dropped.
        rest = (
            jnp.maximum(rest - (columns**2).sum(axis=1), 0)
            .at[jnp.where(new, pivots, n)]
            .set(0, mode="drop")
        )
        # Slots that were not used are zero, and the next block starts on them.
        factor = jax.lax.dynamic_update_slice(factor, columns, (jnp.zeros((), jnp.int32), used))
        index = jax.lax.dynamic_update_slice(index, pivots.astype(jnp.int32), (used,))
        return factor, rest, index, used + n_new

    # About the first half of the pivots meets only the columns there are by then: a quarter of all
    # products is saved.
    half = rank // (2 * block) * block
    state = (
        jnp.zeros((n, half + block), x.dtype),
        jnp.ones(n, x.dtype),
        jnp.zeros(rank + block, jnp.int32),
        jnp.zeros((), jnp.int32),
    )
    factor, rest, index, n_used = jax.lax.while_loop(
        partial(wanted, limit=half), partial(step, limit=half), state
    )
    state = (jnp.pad(factor, ((0, 0), (0, rank - half))), rest, index, n_used)
    factor, _, index, n_used = jax.lax.while_loop(
        partial(wanted, limit=rank), partial(step, limit=rank), state
    )
    factor, index, kept = factor[:, :rank], index[:rank], jnp.arange(rank) < n_used
    lower = jnp.tril(
        jnp.where(kept[:, None] & kept[None, :], factor[index], jnp.eye(rank, dtype=x.dtype))
    )
    return factor, index, lower, n_used


@jax.jit
def _remainder(factor: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest entry and the sum of the diagonal that the factor leaves."""
    rest = jnp.maximum(1 - (factor**2).sum(axis=1), 0)
    return rest.max(), rest.sum()


@jax.jit
def _nystroem(
    x: jax.Array, landmarks: jax.Array, lower: jax.Array, n_used: jax.Array, bandwidth: jax.Array
) -> jax.Array:
    keep = (jnp.arange(lower.shape[0]) < n_used).astype(x.dtype)
    # The inverse of the small triangle, so that the pass over the rows is one product.
    inverse = jax.scipy.linalg.solve_triangular(
        lower, jnp.eye(lower.shape[0], dtype=x.dtype), lower=True
    )
    return jnp.matmul(gaussian_gram(x, landmarks, bandwidth) * keep, inverse.T, precision=_HIGHEST)


def pivoted_cholesky(
    x: jax.Array,
    bandwidth: float,
    *,
    rank: int,
    tolerance: float = 1e-6,
    n_search: int = 2048,
    trim: bool = False,
) -> LowRank:
    """The pivoted Cholesky factor of the Gaussian Gram matrix of x, (n, d) -> (n, rank).

    Pivots are chosen greedily, in blocks, among the first ``n_search`` rows (put the rows into
    random order first), then the factor of all rows follows in one product: n rank^2 operations and
    no pass over the data for each pivot.  Columns beyond what ``tolerance`` (on the diagonal of the
    remainder) needs are zero.  The error that is returned is exact whatever the pivots.

    Args:
        trim: drop zero columns, down to a power of two (at least 16) of them: one column of normal
            scores needs 13, two 54, three 158; the shape then depends on the data, so not for
            private use.

    Source:
        Harbrecht, Peters, Schneider 2012; blocks of pivots after Epperly, Tropp, Webber 2024.
    """
    rank = min(rank, x.shape[0])
    width = jnp.asarray(bandwidth, x.dtype)
    searched = x if x.shape[0] <= n_search else x[:n_search]
    factor, index, lower, n_used = _pivots(searched, width, jnp.asarray(tolerance, x.dtype), rank)
    if trim:
        needed = max(16, 1 << (int(n_used) - 1).bit_length())
        if needed < rank:
            factor, index, lower = factor[:, :needed], index[:needed], lower[:needed, :needed]
    if x.shape[0] > n_search:
        factor = _nystroem(x, x[index], lower, n_used, width)
    return LowRank(factor, *_remainder(factor))


def random_fourier_features(
    x: jax.Array, bandwidth: float, *, n_features: int, key: jax.Array
) -> LowRank:
    """Random Fourier features of the Gaussian kernel, (n, d) -> (n, n_features): sqrt(2 /
    n_features) [cos(w x), sin(w x)].

    The frequencies are drawn without the data, and each row has norm exactly one, so sensitivity
    bounds for kernels bounded by one hold for the feature kernel exactly; error and trace are zero
    in that sense.

    Args:
        n_features: even, positive.

    Source:
        Rahimi and Recht 2007.
    """
    frequencies = jax.random.normal(key, (x.shape[1], n_features // 2), x.dtype) / bandwidth
    angles = jnp.matmul(x, frequencies, precision=_HIGHEST)
    factor = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) * jnp.sqrt(
        jnp.asarray(2.0 / n_features, x.dtype)
    )
    zero = jnp.zeros((), x.dtype)
    return LowRank(factor, zero, zero)
