r"""Kendall's concordance of two continuous columns in O(n log n), within strata, with ties.

Sort the rows by (stratum, x, y).  Then the discordant pairs of a stratum are exactly its inversions
in y: pairs i < j with y_i > y_j (equal x are sorted by y and are not inverted).  With pairs tied in
x, in y and in both,

    S = concordant - discordant = pairs - tied_x - tied_y + tied_both - 2 inversions.

Inversions are counted bit by bit over the dense ranks of y, from the highest bit down, keeping the
rows stably partitioned by the bits seen so far: two rows with equal higher bits are inverted by the
first bit in which they differ iff the earlier row has a one and the later a zero.  Each bit costs
one cumulative sum and one stable partition, so the whole is O(n log n) data-parallel work with no
data-dependent shape.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops.precision import double_precision

__all__ = ["StratumConcordance", "concordance"]


class StratumConcordance(NamedTuple):
    """For each of K strata: concordance S_k, size n_k, and the sums over groups of tied values of
    (count / n_k)^3 for x and y (1 / n_k^2 without ties); float64 (K,), zero for an empty
    stratum."""

    concordance: np.ndarray
    size: np.ndarray
    cubes_x: np.ndarray
    cubes_y: np.ndarray


@jax.jit
def _inversions(rank: jax.Array, group_start: jax.Array, n_bits: jax.Array) -> jax.Array:
    """For each row, the number of earlier rows of its group with a larger rank, as int64; groups
    are contiguous.
    """
    n = rank.shape[0]
    position = jnp.arange(n)

    def bit_step(step, state):
        rank, origin, start, inverted = state
        bit = (rank >> (n_bits - 1 - step)) & 1
        ones_before = jnp.cumsum(bit) - bit
        ones_in_group = ones_before - ones_before[start]
        inverted = inverted.at[origin].add(jnp.where(bit == 0, ones_in_group, 0))
        # Stable partition inside each group: zeros first.
        zeros_before = position - start - ones_in_group
        zeros_in_group = jax.ops.segment_sum(1 - bit, start, num_segments=n)[start]
        split = start + zeros_in_group
        target = jnp.where(bit == 0, start + zeros_before, split + ones_in_group)
        new_start = jnp.where(bit == 0, start, split)
        scatter = lambda values: jnp.zeros_like(values).at[target].set(values)  # noqa: E731
        return scatter(rank), scatter(origin), scatter(new_start), inverted

    state = (rank, position, group_start, jnp.zeros(n, position.dtype))
    return jax.lax.fori_loop(0, n_bits, bit_step, state)[3]


def _group_starts(change: np.ndarray) -> np.ndarray:
    """Index of the first row of each row's group, from the flags "a new group starts here"."""
    return np.maximum.accumulate(np.where(change, np.arange(len(change)), 0))


def _tie_sums(
    stratum: np.ndarray, value: np.ndarray, n_strata: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per stratum: number of tied pairs, and sum of cubes of the tie counts.  value: integer
    codes.
    """
    key = np.stack([stratum, value])
    order = np.lexsort(key[::-1])
    key = key[:, order]
    new = np.concatenate([[True], (key[:, 1:] != key[:, :-1]).any(axis=0)])
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(new))).astype(np.float64)
    owner = key[0, starts]
    pairs = np.bincount(owner, weights=counts * (counts - 1) / 2, minlength=n_strata)
    cubes = np.bincount(owner, weights=counts**3, minlength=n_strata)
    return pairs, cubes


def concordance(
    x: np.ndarray, y: np.ndarray, stratum: np.ndarray | None = None, n_strata: int = 1
) -> StratumConcordance:
    """Concordant minus discordant pairs within each stratum.

    Args:
        x: (n,) finite reals.
        y: as ``x``.
        stratum: integers (n,) in [0, n_strata), or None for one stratum. Exact while the number of
            pairs is below 2^53.

    Source:
        Knight 1966 for the reduction to inversions.
    """
    n = len(x)
    stratum = (
        np.zeros(n, dtype=np.int64) if stratum is None else np.asarray(stratum, dtype=np.int64)
    )
    rank_x = np.unique(x, return_inverse=True)[1].astype(np.int64)
    rank_y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((rank_y, rank_x, stratum))
    s, ry = stratum[order], rank_y[order]
    start = _group_starts(np.concatenate([[True], s[1:] != s[:-1]]))
    n_bits = max(int(rank_y.max()).bit_length(), 1) if n else 1
    with double_precision():
        inverted = np.asarray(_inversions(ry, start, np.int64(n_bits)))
    size = np.bincount(s, minlength=n_strata).astype(np.float64)
    discordant = np.bincount(s, weights=inverted.astype(np.float64), minlength=n_strata)
    tied_x, cubes_x = _tie_sums(stratum, rank_x, n_strata)
    tied_y, cubes_y = _tie_sums(stratum, rank_y, n_strata)
    joint = rank_x * (int(rank_y.max(initial=0)) + 1) + rank_y
    tied_both, _ = _tie_sums(stratum, joint, n_strata)
    total = size * (size - 1) / 2
    safe = np.maximum(size, 1) ** 3
    return StratumConcordance(
        total - tied_x - tied_y + tied_both - 2 * discordant, size, cubes_x / safe, cubes_y / safe
    )
