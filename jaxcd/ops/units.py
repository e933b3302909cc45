"""Columns in the units of the kernel tests, on the device: normal scores, and robust units.

What is constant is decided as in :mod:`jaxcd.ops.standardising`: by the largest and the smallest
value, which no processor rounds.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxcd.ops.sorting import keys_of, quantiles, run_ends, run_starts, stable_order, starts_run
from jaxcd.ops.standardising import SPREAD_LOST

__all__ = ["CLIP", "normal_scores", "robust_unit"]

#: Units beyond which values are clipped.
CLIP = 5.0


@jax.jit
def normal_scores(column: jax.Array) -> jax.Array:
    """Phi^{-1}((rank - 1/2) / n), ties at their mean rank: float64 (n,) -> (n,)."""
    keys = keys_of(column)
    order = stable_order(keys)
    new = starts_run(keys[order])
    middle = (run_starts(new) + run_ends(new)).astype(column.dtype) / 2
    scores = jax.scipy.special.ndtri(middle / column.shape[0])
    return jnp.zeros_like(scores).at[order].set(scores)


def _is_constant(values: jax.Array) -> jax.Array:
    low, high = values.min(), values.max()
    return high / 2 - low / 2 <= SPREAD_LOST / 2 * jnp.maximum(jnp.abs(low), jnp.abs(high))


def _near_one(values: jax.Array) -> jax.Array:
    """The values times the power of two that brings their largest size into [1/2, 1)."""
    return jnp.ldexp(values, -jnp.frexp(jnp.abs(values).max())[1])


@jax.jit
def robust_unit(values: jax.Array) -> jax.Array:
    """(values - median) / (IQR / 1.349), clipped at +-5; by the standard deviation where the IQR is
    0, and 0 where the column is constant: float64 (n,) -> (n,).
    """
    near = _near_one(values)
    low, middle, high = quantiles(near, (0.25, 0.5, 0.75))
    wide = high - low > SPREAD_LOST
    by_quartiles = (near - middle) / (jnp.where(wide, high - low, 1.0) / 1.349)
    moved = near - near[0]
    rest = _near_one(moved - moved.mean())
    spread = rest.std()
    by_deviation = rest / jnp.where(spread > 0, spread, 1.0)
    by_deviation = by_deviation - by_deviation[jnp.argmin(jnp.abs(near - middle))]
    unit = jnp.clip(jnp.where(wide, by_quartiles, by_deviation), -CLIP, CLIP)
    return jnp.where(_is_constant(values), 0.0, unit)
