"""Correlations and partial correlations of batches of variables."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["correlation_matrix", "partial_correlations"]

# Up to so many columns in S a program of whole batches is as fast as a library, and soon compiled.
_UNROLLED = 12


@jax.jit
def correlation_matrix(values: jax.Array) -> jax.Array:
    """Pearson's correlation matrix of the columns, (n, d) -> (d, d); a constant column has
    correlation 0 with the others.

    The columns are centred and scaled before the product, so that a large mean does not cost
    digits, and brought near 1 by powers of two, before and after, so that no square overflows or
    vanishes.  A column is constant if its range, which is exact, is at most 2^-40 of its size (in
    single precision 2^-20): no sum, whose rounding depends on the processor, decides that.
    """
    values = _near_one(values)
    lost = 2.0**-40 if values.dtype == jnp.float64 else 2.0**-20
    constant = values.max(axis=0) - values.min(axis=0) <= lost * jnp.abs(values).max(axis=0)
    moved = values - values[0]
    centred = _near_one(jnp.where(constant, 0, moved - moved.mean(axis=0)))
    norm = jnp.sqrt((centred**2).sum(axis=0))
    scaled = jnp.where(constant, 0, centred / jnp.where(constant, 1, norm))
    matrix = jnp.matmul(scaled.T, scaled, precision=jax.lax.Precision.HIGHEST)
    return jnp.clip(matrix.at[jnp.diag_indices(matrix.shape[0])].set(1), -1, 1)


def _near_one(values: jax.Array) -> jax.Array:
    """The columns times the power of two that brings their largest size into [1/2, 1)."""
    return jnp.ldexp(values, -jnp.frexp(jnp.abs(values).max(axis=0))[1])


@jax.jit
def partial_correlations(matrix: jax.Array, variables: jax.Array) -> jax.Array:
    r"""Partial correlation of x and y given S, from a correlation matrix.

    Args:
        matrix: (d, d).
        variables: integers (B, 2 + s), columns x, y, S. With P the inverse of the submatrix, r =
            -P_xy / sqrt(P_xx P_yy); computed through the Schur complement of S, regularised by d *
            eps so that a singular submatrix (a variable repeated in S) gives a defined value.

    Returns:
        (B,), in [-1, 1].

    Source:
        Lauritzen, *Graphical Models*, section 5.1.
    """

    size = variables.shape[1] - 2
    jitter = 10 * size * float(jnp.finfo(matrix.dtype).eps)
    if size <= _UNROLLED:
        schur = _eliminated(matrix[variables.T[:, None], variables.T[None]], jitter)
    elif jax.default_backend() == "cpu":
        # One after the other: the factors of one batch are made by several threads, which wait for
        # ever if two programs do so at once, one of each thread (XLA of jax 0.10).
        schur = jax.lax.map(lambda v: _complement(matrix[v][:, v], jitter), variables).T
    else:
        schur = jax.vmap(lambda v: _complement(matrix[v][:, v], jitter))(variables).T
    own = schur[0, 0], schur[1, 1]
    # A variable that S determines has no residual: nothing is left to be correlated.
    determined = jnp.minimum(*own) <= 10 * jitter
    root = jnp.sqrt(jnp.where(determined, 1, own[0] * own[1]))
    return jnp.clip(jnp.where(determined, 0, schur[0, 1] / root), -1, 1)


def _eliminated(held: jax.Array, jitter: float) -> jax.Array:
    """The Schur complements of all but the first two rows, for many matrices at once, (w, w, B) ->
    (2, 2, B), one row after the other.
    """
    for last in range(len(held) - 1, 1, -1):
        column, pivot = held[:last, last], jnp.maximum(held[last, last] + jitter, jitter)
        held = held[:last, :last] - column[:, None] * (column / pivot)
    return held


def _complement(block: jax.Array, jitter: float) -> jax.Array:
    """The same of one matrix, (w, w) -> (2, 2)."""
    ridge = jitter * jnp.eye(len(block) - 2, dtype=block.dtype)
    factor = jnp.linalg.cholesky(block[2:, 2:] + ridge)
    half = jax.scipy.linalg.solve_triangular(factor, block[2:, :2], lower=True)
    return block[:2, :2] - jnp.matmul(half.T, half, precision=jax.lax.Precision.HIGHEST)
