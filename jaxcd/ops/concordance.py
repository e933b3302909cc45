r"""Kendall's concordance of two continuous columns in O(n log n), within strata, with ties.

Sort the rows by (stratum, x, y).  Then the discordant pairs of a stratum are exactly its inversions
in y: pairs i < j with y_i > y_j (equal x are sorted by y and are not inverted).  With pairs tied in
x, in y and in both,

    S = concordant - discordant = pairs - tied_x - tied_y + tied_both - 2 inversions.

Let p_i be the place of row i in the order by (stratum, y), rows that agree in both as they stand
above: a permutation of 0, ..., n - 1 that keeps strata apart, with the same inversions.  They are
counted bit by bit, from the highest bit down, keeping the rows stably partitioned by the bits seen
so far: two rows with equal higher bits are inverted by the first bit in which they differ iff the
earlier row has a one and the later a zero.  Of a permutation every group of equal higher bits is
full, so where it starts and how many ones lie before it follow from its number: a bit costs one
cumulative sum and one scatter, with no shape and no number of steps that depends on the data.

All sorts are of packed words (:mod:`jaxcd.ops.sorting`); everything up to the sums of a stratum
stays on the device.

A program is compiled for each number of rows and of strata, which takes longer than to run it on a
few thousand rows.  Few rows are therefore filled up to a power of two with rows behind all others,
in every sort, and strata with empty ones: whole numbers, so that no answer changes.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops.precision import double_precision
from jaxcd.ops.sorting import dense_ranks, run_ends, run_starts, starts_run

__all__ = ["StratumConcordance", "concordance"]

_HALF = 32
_LOW = (1 << _HALF) - 1
_WHOLE = 1 << 53  # up to here floats tell whole numbers apart
# Rows of a program, at least, and up to how many they are filled up to a power of two.
_FEWEST, _FILLED_UP = 1 << 8, 1 << 12
_FEWEST_STRATA = 1 << 6  # where there are several


class StratumConcordance(NamedTuple):
    """For each of K strata: concordance S_k, size n_k, and the sums over groups of tied values of
    (count / n_k)^3 for x and y (1 / n_k^2 without ties); float64 (K,), zero for an empty
    stratum."""

    concordance: np.ndarray
    size: np.ndarray
    cubes_x: np.ndarray
    cubes_y: np.ndarray


def _packed(high: jax.Array, low: jax.Array) -> jax.Array:
    """Two integers from 0 to 2^32 - 1 in one word."""
    return (high.astype(jnp.uint64) << _HALF) | low.astype(jnp.uint64)


def _inversions(permutation: jax.Array) -> jax.Array:
    """For each place of a permutation of 0 .. n - 1, int32 (n,), a share of its inversions: over
    each range of places that the permutation keeps, the shares add up to its inversions (rows do
    not leave such a range when they are partitioned).
    """
    n = permutation.shape[0]
    place = jnp.arange(n, dtype=jnp.int32)
    n_bits = max(n - 1, 1).bit_length()

    def step(i: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        permutation, inverted = state
        shift = n_bits - 1 - i
        bit = (permutation >> shift) & 1
        group = (permutation >> shift) >> 1
        start = (group << shift) << 1
        # Values below a group's first: half of them have this bit.
        ones_before = jnp.cumsum(bit) - bit - (group << shift)
        inverted = inverted + jnp.where(bit == 0, ones_before, 0)
        # Stable partition inside each group: zeros first.
        target = jnp.where(bit == 0, place - ones_before, start + (1 << shift) + ones_before)
        return jnp.zeros_like(permutation).at[target].set(permutation), inverted

    state = permutation, jnp.zeros(n, jnp.int32)
    return jax.lax.fori_loop(0, n_bits, lambda i, s: step(i.astype(jnp.int32), s), state)[1]


def _by_stratum(values: jax.Array, end: jax.Array) -> jax.Array:
    """Sums of int64 (m, n) over ranges that end before ``end``, (m, K)."""
    # all in one: each cumulative sum is many kernels, to be compiled and to be launched
    running = jnp.pad(jnp.cumsum(values, axis=1), ((0, 0), (1, 0)))[:, end]
    return jnp.diff(running, axis=1, prepend=0)


@partial(jax.jit, static_argnames="stratified")
def _sums(
    x: jax.Array, y: jax.Array, stratum: jax.Array, end: jax.Array, stratified: bool
) -> jax.Array:
    """Of each stratum the inversions; the sums over rows of the number of rows tied with it (less
    itself) in both, in x and in y; and the sums of that number squared (itself included), of x and
    of y, in two halves of 31 bits, high_x, high_y, low_x, low_y: int64 (8, K).

    Args:
        end: the place behind each stratum's last row, in order of strata (K,).
        stratified: whether there is more than one stratum.
    """
    rank_x, rank_y = dense_ranks(x), dense_ranks(y)
    by_x = _packed(stratum, rank_x)
    if stratified:
        # One number for stratum and x, so that y fits beside it.
        ordered_x = jnp.sort(by_x)
        first = jnp.searchsorted(ordered_x, by_x).astype(jnp.int32)
    else:
        ordered_x, first = jnp.sort(by_x), rank_x
    both = jnp.sort(_packed(first, rank_y))
    place = jnp.arange(x.shape[0], dtype=jnp.int32)
    stratum_at = jnp.searchsorted(end, place, side="right") if stratified else jnp.zeros_like(place)
    y_at = (both & jnp.uint64(_LOW)).astype(jnp.int32)
    # In the order by (stratum, y), and then as they stand.
    ordered_y = jnp.sort(_packed(y_at, place))
    if stratified:
        at = (ordered_y & jnp.uint64(_LOW)).astype(jnp.int32)
        # Stable by stratum: sorted by y already.
        order = (jnp.sort(_packed(stratum_at[at], place)) & jnp.uint64(_LOW)).astype(jnp.int32)
        origin = at[order]
    else:
        origin = (ordered_y & jnp.uint64(_LOW)).astype(jnp.int32)
    by_y = _packed(stratum_at[origin] if stratified else jnp.zeros_like(place), y_at[origin])
    permutation = jnp.zeros_like(place).at[origin].set(place)
    new = starts_run(jnp.stack([both, ordered_x, by_y]))
    count = (run_ends(new) - run_starts(new)).astype(jnp.int64)
    square = count[1:] * count[1:]
    inverted = _inversions(permutation).astype(jnp.int64)[None]
    parts = [inverted, count - 1, square >> 31, square & ((1 << 31) - 1)]
    return _by_stratum(jnp.concatenate(parts), end)


def _ordered(values: np.ndarray) -> np.ndarray:
    """float64 in the same order, equal exactly where the values are."""
    values = np.asarray(values)
    if values.dtype.kind in "iu" and (values.max() > _WHOLE or values.min() < -_WHOLE):
        values = np.unique(values, return_inverse=True)[1]
    return values.astype(np.float64)


def _power_of_two(size: int) -> int:
    """The least one from ``size`` on."""
    return 1 << (size - 1).bit_length()


def _filled_up(values: np.ndarray, size: int, rest: float) -> np.ndarray:
    return np.pad(values, (0, size - len(values)), constant_values=rest)


def concordance(
    x: np.ndarray, y: np.ndarray, stratum: np.ndarray | None = None, n_strata: int = 1
) -> StratumConcordance:
    """Concordant minus discordant pairs within each stratum.

    Args:
        x: (n,) finite reals; whole numbers of any size are told apart.
        y: as ``x``.
        stratum: integers (n,) in [0, n_strata), or None for one stratum. Exact while the number of
            pairs is below 2^53, and n below 2^31.

    Source:
        Knight 1966 for the reduction to inversions.
    """
    n = len(x)
    if n == 0:
        return StratumConcordance(*(np.zeros(n_strata) for _ in range(4)))
    if stratum is None:
        stratum = np.zeros(n, dtype=np.int32)
    counts = np.bincount(stratum, minlength=n_strata)
    rows = max(_power_of_two(n), _FEWEST) if n <= _FILLED_UP else n
    strata = max(_power_of_two(len(counts)), _FEWEST_STRATA) if len(counts) > 1 else 1
    with double_precision():
        sums = np.asarray(
            _sums(
                _filled_up(_ordered(x), rows, np.inf),
                _filled_up(_ordered(y), rows, np.inf),
                # behind all strata; where there is one only, no stratum is looked at
                _filled_up(np.asarray(stratum, dtype=np.int32), rows, strata if strata > 1 else 0),
                _filled_up(np.cumsum(counts), strata, n),
                stratified=strata > 1,
            )
        )[:, : len(counts)]
    discordant, tied_both, tied_x, tied_y, high_x, high_y, low_x, low_y = sums
    size = counts.astype(np.float64)
    pairs = counts * (counts - 1) // 2 - (tied_x + tied_y - tied_both) // 2 - 2 * discordant
    safe = np.maximum(size, 1) ** 3
    cubes_x, cubes_y = (
        (high * 2.0**31 + low) / safe for high, low in ((high_x, low_x), (high_y, low_y))
    )
    return StratumConcordance(pairs.astype(np.float64), size, cubes_x, cubes_y)
