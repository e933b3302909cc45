r"""Sorting on the device, by whole numbers.

A float64 becomes an unsigned integer of the same order (the bits of a negative number inverted, the
sign bit of the others set; Herf 2001), and what is to be sorted with it is packed into the same
word.  Words are sorted as words: on a GPU that is a radix sort, on a CPU several times faster than
a sort by a comparison of pairs.  No number is rounded: neither -0.0 and 0.0 nor subnormal numbers
are lost.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = [
    "dense_ranks",
    "keys_of",
    "quantiles",
    "run_ends",
    "run_starts",
    "stable_order",
    "values_of",
]

_HALF = 32
_LOW = (1 << _HALF) - 1
_SIGN = 1 << 63


def keys_of(values: jax.Array) -> jax.Array:
    """float64 (...) -> uint64 (...) in the same order, equal exactly where the values are."""
    bits = jax.lax.bitcast_convert_type(values, jnp.uint64)
    sign = jnp.uint64(_SIGN)
    bits = jnp.where(bits == sign, jnp.uint64(0), bits)
    return jnp.where(bits >= sign, ~bits, bits | sign)


def values_of(keys: jax.Array) -> jax.Array:
    """The inverse of :func:`keys_of`."""
    sign = jnp.uint64(_SIGN)
    return jax.lax.bitcast_convert_type(jnp.where(keys >= sign, keys ^ sign, ~keys), jnp.float64)


def stable_order(keys: jax.Array) -> jax.Array:
    """The stable order of words, uint64 (n,) -> int32 (n,), n < 2^31: two sorts of half a word
    packed with a place.
    """
    place = jnp.arange(keys.shape[0], dtype=jnp.uint64)
    low = jnp.uint64(_LOW)
    first = (jnp.sort((keys << _HALF) | place) & low).astype(jnp.int32)
    second = (jnp.sort((keys[first] & ~low) | place) & low).astype(jnp.int32)
    return first[second]


def run_starts(new: jax.Array) -> jax.Array:
    """The first place of each place's run, from the flags "a new run starts here": bool (..., n) ->
    int32 (..., n).
    """
    place = jnp.arange(new.shape[-1], dtype=jnp.int32)
    return jax.lax.cummax(jnp.where(new, place, 0), axis=new.ndim - 1)


def run_ends(new: jax.Array) -> jax.Array:
    """The place behind each place's run: bool (..., n) -> int32 (..., n)."""
    n = new.shape[-1]
    place = jnp.arange(1, n + 1, dtype=jnp.int32)
    last = jnp.concatenate([new[..., 1:], jnp.ones_like(new[..., :1])], axis=-1)
    return jax.lax.cummin(jnp.where(last, place, n), axis=new.ndim - 1, reverse=True)


def starts_run(ordered: jax.Array) -> jax.Array:
    """Where a new value starts in sorted ones: (..., n) -> bool (..., n), n > 0."""
    new = ordered[..., 1:] != ordered[..., :-1]
    return jnp.concatenate([jnp.ones((*new.shape[:-1], 1), bool), new], axis=-1)


def dense_ranks(values: jax.Array) -> jax.Array:
    """How many smaller different values there are: float64 (n,) -> int32 (n,)."""
    keys = keys_of(values)
    order = stable_order(keys)
    ranks = jnp.cumsum(starts_run(keys[order]).astype(jnp.int32)) - 1
    return jnp.zeros_like(ranks).at[order].set(ranks)


def quantiles(values: jax.Array, shares: tuple[float, ...]) -> list[jax.Array]:
    """Quantiles of float64 (n,) with linear interpolation between order statistics."""
    ordered = values_of(jnp.sort(keys_of(values)))
    found = []
    for share in shares:
        place = share * (values.shape[0] - 1)
        low = int(place)
        below, above = ordered[low], ordered[min(low + 1, values.shape[0] - 1)]
        found.append(below + (above - below) * (place - low))
    return found
