"""Kernel ridge regression on rows in blocks: the formulas of :mod:`jaxcd.ops.ridge`, whose sums
over rows are those of :class:`jaxcd.ops.row_blocks.RowBlocks`.

Rows of the factor and of the basis stay where the rows are; Gram matrices, coefficients and
leave-one-out losses are added up, and every process solves the same small eigenproblems.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxcd.ops import gram, ridge
from jaxcd.ops.precision import double_precision
from jaxcd.ops.row_blocks import RowBlocks, over_rows, times
from jaxcd.ops.threads import one_blas_thread

__all__ = [
    "BlockSpectrum",
    "additive_factor",
    "joint_factor",
    "leave_one_out_residuals",
    "spectrum_beside",
]


# The value of a free direction: 1 - value / (value + mu) is below every rounding error.
_FREE = 1e30


class BlockSpectrum(NamedTuple):
    """As :class:`jaxcd.ops.ridge.Spectrum`; the basis is rows (r,) in blocks."""

    basis: jax.Array
    values: NDArray[np.float64]


def _landmarks(blocks: RowBlocks, z: NDArray, bandwidth: float, rank: int) -> list[NDArray]:
    """Chosen rows of the first ones, and the inverse root of their Gram matrix."""
    with double_precision(), one_blas_thread():
        chosen, root = ridge.landmarks_and_root(z, np.asarray(bandwidth, z.dtype), rank)
        return blocks.agreed(np.asarray(chosen), np.asarray(root))


def joint_factor(
    blocks: RowBlocks, z: jax.Array, head: NDArray, bandwidth: float, rank: int
) -> jax.Array:
    """Rows (rank,) of the Nystroem factor of the Gaussian Gram matrix of rows z (d,).

    Args:
        head: the first rows of z, among which landmarks are chosen.
    """
    chosen, root = _landmarks(blocks, head, bandwidth, rank)
    return blocks.rows(_kernel_rows, [z], [chosen, root, np.float64(bandwidth)])


def additive_factor(
    blocks: RowBlocks, z: jax.Array, head: NDArray, bandwidth: float, rank: int
) -> jax.Array:
    """Rows (d rank,) of the factor of a sum of one kernel a column.  Arguments as for
    :func:`joint_factor`.
    """
    found = [_landmarks(blocks, column[:, None], bandwidth, rank) for column in head.T]
    chosen, roots = (np.stack(part) for part in zip(*found, strict=True))
    return blocks.rows(_additive_rows, [z], [chosen, roots, np.float64(bandwidth)])


def _kernel_rows(
    z: jax.Array, real: jax.Array, chosen: jax.Array, root: jax.Array, bandwidth: jax.Array
) -> jax.Array:
    return times(gram.gaussian_gram(z, chosen, bandwidth), root)


def _additive_rows(
    z: jax.Array, real: jax.Array, chosen: jax.Array, roots: jax.Array, bandwidth: jax.Array
) -> jax.Array:
    parts = [
        times(gram.gaussian_gram(z[:, j : j + 1], chosen[j], bandwidth), roots[j])
        for j in range(z.shape[1])
    ]
    return jnp.concatenate(parts, axis=1)


def _free(z: jax.Array, real: jax.Array) -> jax.Array:
    """A constant, and the columns."""
    return jnp.concatenate([real[:, None].astype(z.dtype), z], axis=1)


def _free_gram(z: jax.Array, real: jax.Array) -> jax.Array:
    free = _free(z, real)
    return over_rows(free, free)


def _free_products(z: jax.Array, other: jax.Array, real: jax.Array) -> jax.Array:
    return over_rows(_free(z, real), other)


def _less(z: jax.Array, factor: jax.Array, real: jax.Array, part: jax.Array) -> jax.Array:
    return factor - times(_free(z, real), part)


def _own_gram(factor: jax.Array, real: jax.Array) -> jax.Array:
    return over_rows(factor, factor)


def _basis(
    z: jax.Array, factor: jax.Array, real: jax.Array, free: jax.Array, own: jax.Array
) -> jax.Array:
    return jnp.concatenate([times(_free(z, real), free), times(factor, own)], axis=1)


def _turn(blocks: RowBlocks, gram_of_columns: NDArray) -> list[NDArray]:
    with double_precision(), one_blas_thread():
        turn, values = ridge.turn_of_gram(gram_of_columns)
        return blocks.agreed(np.asarray(turn), np.asarray(values))


def spectrum_beside(blocks: RowBlocks, factor: jax.Array, z: jax.Array) -> BlockSpectrum:
    """The spectrum of a factor beside a constant and the columns z, which are fitted without a
    penalty.
    """
    free, free_values = _turn(blocks, blocks.sums(_free_gram, [z]))
    for _ in range(2):
        products = blocks.sums(_free_products, [z, factor])
        with one_blas_thread():
            part = free @ (free.T @ products)
        factor = blocks.rows(_less, [z, factor], [part])
    own, values = _turn(blocks, blocks.sums(_own_gram, [factor]))
    basis = blocks.rows(_basis, [z, factor], [free, own])
    return BlockSpectrum(basis, np.concatenate([np.where(free_values > 0, _FREE, 0.0), values]))


def leave_one_out_residuals(
    blocks: RowBlocks,
    spectrum: BlockSpectrum,
    target: jax.Array,
    penalties: NDArray,
    counted: jax.Array,
) -> jax.Array:
    """Residuals, rows (), of a target, rows (), at the penalty of least leave-one-out error.

    Args:
        counted: rows (), 1 where the row's error counts, else 0.
    """
    basis, values = spectrum
    coefficients = blocks.sums(_coefficients, [basis, target])
    shrink = values[:, None] / (values[:, None] + penalties)
    shrunk = coefficients[:, None] * shrink
    losses = blocks.sums(_losses, [basis, target, counted], [shrink, shrunk])
    best = int(np.argmin(losses))
    return blocks.rows(_left, [basis, target], [shrunk[:, best]])


def _coefficients(basis: jax.Array, target: jax.Array, real: jax.Array) -> jax.Array:
    return over_rows(basis, target[:, None])[:, 0]


def _losses(
    basis: jax.Array,
    target: jax.Array,
    counted: jax.Array,
    real: jax.Array,
    shrink: jax.Array,
    shrunk: jax.Array,
) -> jax.Array:
    leverage = times(basis**2, shrink)
    left_out = (target[:, None] - times(basis, shrunk)) / jnp.maximum(1 - leverage, 1e-6)
    return jnp.sum(jnp.where(counted[:, None] > 0, left_out**2, 0.0), axis=0)


def _left(basis: jax.Array, target: jax.Array, real: jax.Array, shrunk: jax.Array) -> jax.Array:
    return target - times(basis, shrunk[:, None])[:, 0]
