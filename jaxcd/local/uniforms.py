r"""Uniform numbers whose smallest values are as precise as the largest, and draws from tables with
them.

A uniform on a grid of 2^-53 never falls below 2^-53, so that outcomes rarer than that are possible
for one record and impossible for another: the loss would be infinite. Here U = (1 + m 2^-52)
2^-(e+1) with m uniform on 52 bits and e geometric, P[e = i] = 2^-(i+1), the number of trailing
zeros of random bits. Then **P[U < c] = c exactly for every float64 c in [2^-1000, 1]**: within each
binade U is uniform on the floats themselves.

A table of weights is sorted in ascending order before it is summed. The difference of consecutive
float64 sums c_j is then p_j with a *relative* error of at most 3 j 2^-53, because c_j <= j p_j:
every probability, however small, is drawn with nearly full relative precision.

Source:
    our own combination of two known facts: floating-point uniforms by a geometric exponent (Walker
    1974), and inversion on sorted sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import NDArray

from jaxcd.errors import OptionError
from jaxcd.local.arrays import Floats, Integers
from jaxcd.privacy import NoiseSource, SecureNoise, SimulatedNoise

__all__ = ["Table", "Uniforms"]

_STREAM = 0x6C6F63616C  # "local": apart from the streams that ledgers number from 0


class Uniforms:
    """The randomness of one run: independent 64-bit words, from the operating system or from a key.

    Args:
        noise: None or :class:`SecureNoise` for the operating system's entropy;
            :class:`SimulatedNoise` for experiments.

    Raises:
        OptionError: ``noise`` is something else.
    """

    def __init__(self, noise: NoiseSource | None = None) -> None:
        self._words: Callable[[int], NDArray[np.uint64]]
        if noise is None or isinstance(noise, SecureNoise):
            self._words = lambda size: np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        elif isinstance(noise, SimulatedNoise):
            words = [int(word) for word in np.asarray(jax.random.key_data(noise.key)).ravel()]
            generator = np.random.Philox(
                np.random.SeedSequence([len(words), *words], spawn_key=(_STREAM,))
            )
            self._words = lambda size: np.asarray(generator.random_raw(size), dtype=np.uint64)
        else:
            raise OptionError(
                f"noise must be None (secure) or SimulatedNoise(key), got {type(noise).__name__}: "
                "leave it out for real people"
            )

    def bits(self, size: int) -> NDArray[np.bool_]:
        """Fair coins, shape (size,)."""
        return (self._words(size) & np.uint64(1)).astype(bool)

    def below(self, sizes: Integers) -> Integers:
        """Whole numbers v with 0 <= v < sizes, uniform up to a relative error of sizes 2^-64;
        positive ``sizes`` (n,).
        """
        return (self._words(len(sizes)) % sizes.astype(np.uint64)).astype(np.int64)

    def uniform(self, size: int) -> Floats:
        """U in (0, 1) with P[U < c] = c exactly for every float64 c in [2^-1000, 1]; shape
        (size,).
        """
        exponent = np.zeros(size, dtype=np.int64)
        pending = np.arange(size)
        while pending.size:
            words = self._words(pending.size)
            # the lowest set bit, a power of two, or 0
            lowest = (words & (~words + np.uint64(1))).astype(np.float64)
            exponent[pending] += np.where(words == 0, 64, np.frexp(lowest)[1] - 1)
            pending = pending[words == 0]
        mantissa = (self._words(size) >> np.uint64(12)).astype(np.float64)
        return np.ldexp(1.0 + mantissa * 2.0**-52, -(exponent + 1))


class Table:
    """Distributions, one a row, ready to be drawn from.

    Args:
        weights: n_rows x n_outcomes, not negative, a positive sum in each row; need not be
            normalised.
    """

    def __init__(self, weights: Floats) -> None:
        self._order = np.argsort(weights, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(weights, self._order, axis=1), axis=1)
        sums /= sums[:, -1:].copy()
        sums[:, -1] = 1.0
        self._sums = sums

    def draw(self, rows: Integers, uniforms: Uniforms) -> Integers:
        """One outcome for each entry of ``rows`` (n,), from the distribution in that row of the
        table.
        """
        u = uniforms.uniform(len(rows))
        low = np.zeros(len(rows), dtype=np.int64)
        high = np.full(len(rows), self._sums.shape[1] - 1, dtype=np.int64)
        while (low < high).any():  # the first outcome whose sum exceeds u
            middle = (low + high) // 2
            beyond = u < self._sums[rows, middle]
            high = np.where(beyond, middle, high)
            low = np.where(beyond, low, np.minimum(middle + 1, high))
        return self._order[rows, low]
