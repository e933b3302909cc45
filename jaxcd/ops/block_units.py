"""Columns of rows in blocks in the units of the kernel tests, and their features: the formulas of
:mod:`jaxcd.ops.standardising`, :mod:`jaxcd.ops.units` and :mod:`jaxcd.ops.hsic`, whose sums,
extremes and quantiles over rows are those of :class:`jaxcd.ops.row_blocks.RowBlocks`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxcd.ops.features import FourierKernel, fourier_features
from jaxcd.ops.precision import double_precision
from jaxcd.ops.row_blocks import RowBlocks, over_rows, times
from jaxcd.ops.standardising import SPREAD_LOST
from jaxcd.ops.threads import one_blas_thread
from jaxcd.ops.units import CLIP

__all__ = [
    "centred",
    "centred_features",
    "correlation_matrix",
    "joined",
    "leading_rows",
    "mean",
    "parted",
    "robust_unit",
    "standardised",
]


def joined(blocks: RowBlocks, columns: Sequence[jax.Array]) -> jax.Array:
    """Columns beside each other: rows () or (k,) each, to rows (d,)."""
    return blocks.rows(_beside, columns, n_columns=len(columns))


def _beside(*parts: jax.Array, n_columns: int) -> jax.Array:
    columns = [part if part.ndim == 2 else part[:, None] for part in parts[:n_columns]]
    return jnp.concatenate(columns, axis=1)


def parted(blocks: RowBlocks, columns: jax.Array) -> list[jax.Array]:
    """The columns of rows (d,), rows () each."""
    return [blocks.rows(_column, [columns], [np.int32(j)]) for j in range(columns.shape[-1])]


def _column(x: jax.Array, real: jax.Array, j: jax.Array) -> jax.Array:
    return jax.lax.dynamic_index_in_dim(x, j, 1, keepdims=False)


def _total(x: jax.Array, real: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=0)


def _ends(x: jax.Array, real: jax.Array) -> jax.Array:
    return jnp.stack([jnp.where(real, each, -jnp.inf).max() for each in (x, -x)])


def _scaled(x: jax.Array, real: jax.Array, by: jax.Array) -> jax.Array:
    return x * by


def _less(x: jax.Array, real: jax.Array, by: jax.Array) -> jax.Array:
    return x - by


def _squares(x: jax.Array, real: jax.Array, by: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(real, (x - by) ** 2, 0))


def mean(blocks: RowBlocks, x: jax.Array) -> NDArray[np.float64]:
    """The mean of rows, of any shape."""
    return blocks.sums(_total, [x]) / blocks.n


def centred(blocks: RowBlocks, x: jax.Array) -> jax.Array:
    """Rows less their mean."""
    return blocks.rows(_less, [x], [mean(blocks, x)])


def _near_one(blocks: RowBlocks, x: jax.Array) -> tuple[jax.Array, float, float]:
    """A column times the power of two that brings its largest size into [1/2, 1); its smallest and
    largest values as they were.
    """
    high, low = blocks.largest(_ends, [x])
    size = max(abs(high), abs(low))
    scale = 2.0 ** -math.frexp(size)[1]
    return blocks.rows(_scaled, [x], [np.float64(scale)]), -float(low), float(high)


def _is_constant(low: float, high: float) -> bool:
    return high / 2 - low / 2 <= SPREAD_LOST / 2 * max(abs(low), abs(high))


def _spread(blocks: RowBlocks, near: jax.Array) -> tuple[jax.Array, float]:
    """A column moved to the mean 0 and near 1, and its standard deviation."""
    moved = blocks.rows(_less, [near], [blocks.head(near, 1)[0]])
    rest, _, _ = _near_one(blocks, centred(blocks, moved))
    square = blocks.sums(_squares, [rest], [mean(blocks, rest)])
    return rest, math.sqrt(float(square) / blocks.n)


def standardised(blocks: RowBlocks, x: jax.Array) -> jax.Array:
    """(x - mean) / standard deviation of a column; 0 where it is constant."""
    near, low, high = _near_one(blocks, x)
    if _is_constant(low, high):
        return blocks.rows(_scaled, [x], [np.float64(0)])
    rest, spread = _spread(blocks, near)
    return blocks.rows(_scaled, [rest], [np.float64(1 / spread)])


def correlation_matrix(blocks: RowBlocks, columns: Sequence[jax.Array]) -> NDArray[np.float64]:
    """Pearson's correlations of columns, (d, d); a constant column has 0 with the others."""
    near = joined(blocks, [standardised(blocks, column) for column in columns])
    matrix = blocks.sums(_gram, [near]) / blocks.n
    np.fill_diagonal(matrix, 1)
    return np.clip(matrix, -1, 1)


def robust_unit(blocks: RowBlocks, x: jax.Array) -> jax.Array:
    """A column less its median, over IQR / 1.349 (or its standard deviation where that is 0),
    clipped at +-5; 0 where it is constant.
    """
    near, low, high = _near_one(blocks, x)
    if _is_constant(low, high):
        return blocks.rows(_scaled, [x], [np.float64(0)])
    places = [share * (blocks.n - 1) for share in (0.25, 0.5, 0.75)]
    ranks = [min(int(place) + more, blocks.n - 1) for place in places for more in (0, 1)]
    ordered = blocks.order_statistics(near, ranks)
    first, middle, third = (
        below + (above - below) * (place - int(place))
        for below, above, place in zip(ordered[::2], ordered[1::2], places, strict=True)
    )
    if third - first > SPREAD_LOST:
        return blocks.rows(_unit, [near], [np.float64(middle), np.float64((third - first) / 1.349)])
    rest, spread = _spread(blocks, near)
    # The value next to the median counts as the middle, as it came out of the same arithmetic.
    closest = min(ordered[2:4], key=lambda value: abs(value - middle))
    at = blocks.largest(_value_at, [near, rest], [np.float64(closest)])
    return blocks.rows(_unit, [rest], [at, np.float64(spread if spread > 0 else 1.0)])


def _unit(x: jax.Array, real: jax.Array, middle: jax.Array, scale: jax.Array) -> jax.Array:
    return jnp.clip((x - middle) / scale, -CLIP, CLIP)


def _value_at(x: jax.Array, other: jax.Array, real: jax.Array, value: jax.Array) -> jax.Array:
    """The other column's value where this one has a value: of several equal ones any."""
    return jnp.where(real & (x == value), other, -jnp.inf).max()


def centred_features(
    blocks: RowBlocks, unit: jax.Array, kernel: FourierKernel, dtype: str
) -> jax.Array:
    """Features of a column without the constant one, centred: rows (2 J,)."""
    first = blocks.head(unit, 1)
    moved = blocks.rows(_features, [unit], [first], kernel=kernel, dtype=dtype)
    return blocks.rows(_less, [moved], [mean(blocks, moved).astype(dtype)])


def _features(
    x: jax.Array, real: jax.Array, first: jax.Array, kernel: FourierKernel, dtype: str
) -> jax.Array:
    parts = [fourier_features(each.astype(dtype), kernel)[:, 1:] for each in (x, first)]
    return parts[0] - parts[1]


def leading_rows(blocks: RowBlocks, phi: jax.Array, count: int) -> tuple[jax.Array, float]:
    """The leading principal components of centred features, rows (count,), and the share of the
    trace that they do not hold.
    """
    gram = blocks.sums(_gram, [phi]) / blocks.n
    with double_precision(), one_blas_thread():
        found = jnp.linalg.eigh(gram, symmetrize_input=False)
        values, vectors = blocks.agreed(*(np.asarray(part) for part in found))
    values = np.maximum(values, 0)
    lost = values[:-count].sum() / max(values.sum(), np.finfo(np.float64).tiny)
    turn = vectors[:, -count:].astype(phi.dtype)
    return blocks.rows(_turned, [phi], [turn]), float(lost)


def _gram(phi: jax.Array, real: jax.Array) -> jax.Array:
    return over_rows(phi, phi)


def _turned(phi: jax.Array, real: jax.Array, turn: jax.Array) -> jax.Array:
    return times(phi, turn)
