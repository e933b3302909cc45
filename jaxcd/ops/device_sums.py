"""Exact sums of products of whole numbers, added up by the device that is to hold them.

Rows of whole numbers below 2^18, at most 4,096 at once, have products that add up below 2^48: a
product of matrices in double precision gives them without error, in any order, on every device that
has double precision.  Such sums are added as two words of int64, as in
:class:`jaxcd.ops.tilted_moments.ExactSum`, so a sum over any number of rows is exact.

What makes a row's whole numbers (a cosine, an exponential, a rounding) stays on the processor:
there it is the same to the last bit for rows in memory, in an engine and on devices, which no
device's own arithmetic promises.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops.precision import double_precision
from jaxcd.ops.tilted_moments import ExactSum

__all__ = ["DeviceSum"]

_ROWS = 1 << 12


class DeviceSum:
    """A sum of rows' products with themselves, in the words of the devices that added them.

    Args:
        shape: (d, d).
        place: which of this process's devices adds.
        device: that device.

    Attributes:
        words: by place int64 (2, d, d) on its device.
        heavy: what rows with weights add up to, by the processor.
    """

    def __init__(self, shape: tuple[int, int], *, place: int, device: jax.Device) -> None:
        self._shape, self._place, self._device = shape, place, device
        self.words: dict[int, jax.Array] = {}
        self.heavy: ExactSum | None = None

    def add_products(self, rows: np.ndarray, weights: np.ndarray | None) -> None:
        """As :meth:`jaxcd.ops.tilted_moments.ExactSum.add_products`."""
        if weights is not None:
            if self.heavy is None:
                self.heavy = ExactSum(self._shape)
            self.heavy.add_products(rows, weights)
            return
        # rows of zeros up to a fixed number: one program
        padded = np.zeros((_ROWS, self._shape[0]), dtype=np.int32)
        padded[: len(rows)] = rows
        with double_precision():
            added = _products(jax.device_put(padded, self._device))
            self._take(self._place, added)

    def _take(self, place: int, words: jax.Array) -> None:
        held = self.words.get(place)
        self.words[place] = words if held is None else _sum(held, words)

    def __add__(self, other: DeviceSum) -> DeviceSum:
        total = DeviceSum(self._shape, place=self._place, device=self._device)
        total.words = dict(self.words)
        with double_precision():
            for place, words in other.words.items():
                total._take(place, words)
        parts = [part for part in (self.heavy, other.heavy) if part is not None]
        if parts:
            total.heavy = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return total


@jax.jit
def _products(rows: jax.Array) -> jax.Array:
    numbers = rows.astype(jnp.float64)
    whole = jnp.matmul(numbers.T, numbers, precision=jax.lax.Precision.HIGHEST).astype(jnp.int64)
    return jnp.stack([whole >> 32, whole & 0xFFFFFFFF])


@partial(jax.jit, donate_argnums=0)
def _sum(held: jax.Array, words: jax.Array) -> jax.Array:
    return held + words
