"""Gaussian kernels on several columns, and a low-rank factor of their Gram matrix with a certified
error.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

__all__ = [
    "N_SEARCHED",
    "LowRank",
    "gaussian_gram",
    "inverse_root",
    "landmarks",
    "median_distance",
    "nystroem",
    "random_fourier_features",
    "sufficient_rank",
]

_HIGHEST = jax.lax.Precision.HIGHEST
#: Rows among which landmarks are chosen.
N_SEARCHED = 2048
# At least so many columns of the Gram matrix are mixed, and eigenvalues below this share of the
# largest are dropped.
_SKETCHED = 128
_LEAST = 1e-10


def _squared_distances(x: jax.Array, y: jax.Array) -> jax.Array:
    """|x_i - y_j|^2, (n, m), but for rounding errors of the squared distance from the first row of
    y: nothing is lost where all rows are far from 0.
    """
    x, y = x - y[0], y - y[0]
    return (
        (x**2).sum(axis=1)[:, None]
        + (y**2).sum(axis=1)[None, :]
        - 2 * jnp.matmul(x, y.T, precision=_HIGHEST)
    )


@jax.jit
def gaussian_gram(x: jax.Array, y: jax.Array, bandwidth: jax.Array | float) -> jax.Array:
    """exp(-|x_i - y_j|^2 / (2 bandwidth^2)): (n, d), (m, d) -> (n, m)."""
    square = _squared_distances(x, y)
    return jnp.exp(-jnp.maximum(square, 0) / (2 * jnp.asarray(bandwidth, x.dtype) ** 2))


@jax.jit
def median_distance(x: jax.Array) -> jax.Array:
    """Median of the distances between different rows, (n, d) -> scalar; and a small positive number
    where most rows agree.

    Quadratic in n: hand it a subsample.  Reading a bandwidth off private data voids sensitivity
    bounds (PRIVACY.md D4).
    """
    i, j = jnp.triu_indices(x.shape[0], k=1)
    distances = jnp.sqrt(jnp.maximum(_squared_distances(x, x)[i, j], 0))
    # Not so small that its square underflows in gaussian_gram.
    return jnp.maximum(jnp.median(distances), jnp.sqrt(jnp.finfo(x.dtype).tiny) * 1e4)


class LowRank(NamedTuple):
    """K ~ factor factor^T.  factor: (n, r).  error: the largest diagonal entry of the (positive
    semidefinite) remainder K - factor factor^T, which bounds each of its entries; trace: the sum of
    the diagonal, which bounds its norm."""

    factor: jax.Array
    error: jax.Array
    trace: jax.Array


@partial(jax.jit, static_argnames="rank")
def landmarks(x: jax.Array, bandwidth: jax.Array | float, rank: int) -> jax.Array:
    """Places of ``rank`` rows of x, (m, d) in random order, whose kernel columns span nearly what
    all rows' do: integers (rank,).

    Columns of the Gram matrix against the first rows are mixed, each with those that follow it
    ``rank`` places apart, by fixed weights, and the rows are the pivots of the LU factorisation of
    the mixture with partial pivoting.  One call of a library, no loop whose length depends on the
    data; the error is that of the greedy choice of a pivoted Cholesky factor, or less.

    Source:
        Dong and Martinsson 2023 for pivots of LU on a sketch, sparse ones among them.
    """
    n_columns = min(x.shape[0], max(2 * rank, _SKETCHED))
    columns = gaussian_gram(x, x[:n_columns], bandwidth)
    n_mixed = -(-n_columns // rank)
    columns = jnp.pad(columns, ((0, 0), (0, n_mixed * rank - n_columns)))
    # Of two kinds of rows, whose columns come in any order, no mixture loses one: the weights, the
    # cosines of 0, 1, 2, ..., are all different.
    weights = jnp.cos(jnp.arange(n_mixed, dtype=x.dtype))[:, None]
    sketch = jnp.sum(columns.reshape(len(x), n_mixed, rank) * weights, axis=1)
    return jax.lax.linalg.lu(sketch)[2][:rank]


@jax.jit
def inverse_root(gram: jax.Array, least: float = _LEAST) -> jax.Array:
    """R (r, r) with R R^T the inverse of a Gram matrix on all but the eigenvectors whose
    eigenvalues are at most ``least`` of the largest, whose columns are 0: K(., landmarks) R is the
    Nystroem factor.
    """
    values, vectors = jnp.linalg.eigh(gram, symmetrize_input=False)
    kept = values > jnp.maximum(least, 16 * jnp.finfo(gram.dtype).eps) * values[-1]
    return vectors * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)


@jax.jit
def _remainder(factor: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest entry and the sum of the diagonal that the factor leaves."""
    rest = jnp.maximum(1 - (factor**2).sum(axis=1), 0)
    return rest.max(), rest.sum()


def sufficient_rank(n_columns: int, bandwidth: float) -> int:
    r"""How many eigenvalues of a Gaussian kernel on independent standard normal columns are above
    5e-8 of the largest; from public facts.

    The eigenvalues are B^|a| over multi-indices a, with B = b / (1/4 + b + sqrt(1/16 + b / 2)), b =
    1 / (2 bandwidth^2).

    Source:
        Rasmussen and Williams 2006, section 4.3.1.
    """
    b = 1 / (2 * bandwidth**2)
    ratio = b / (0.25 + b + math.sqrt(1 / 16 + b / 2))
    return math.comb(math.floor(math.log(5e-8) / math.log(ratio)) + n_columns, n_columns)


@partial(jax.jit, static_argnames=("rank", "n_search"))
def nystroem(
    x: jax.Array, bandwidth: jax.Array | float, *, rank: int, n_search: int = N_SEARCHED
) -> LowRank:
    """The Nystroem factor of the Gaussian Gram matrix of x, (n, d) -> (n, rank).

    Its landmarks are chosen among the first ``n_search`` rows (put the rows into random order
    first; :func:`landmarks`), then the factor of all rows follows in one product: n rank^2
    operations.  Columns beyond the numerical rank are zero.  The error that is returned is exact
    whatever the landmarks.

    Source:
        Williams and Seeger 2001.
    """
    rank = min(rank, x.shape[0])
    width = jnp.asarray(bandwidth, x.dtype)
    searched = x[:n_search]
    chosen = searched[landmarks(searched, width, rank)]
    root = inverse_root(gaussian_gram(chosen, chosen, width))
    factor = jnp.matmul(gaussian_gram(x, chosen, width), root, precision=_HIGHEST)
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
