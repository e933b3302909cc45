"""HSIC and its permutation null for a batch of pairs of columns in one call.

Features of columns lie in a pool on the device, each made once; a pair is two places of the pool.
Nothing is read until the caller reads the answers: what would have to be asked in between (whether
16 leading components hold a column's features) comes back with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxcd.ops.features import FourierKernel
from jaxcd.ops.hsic import N_LEADING, centred_features, leading_components, permuted_squares
from jaxcd.ops.units import robust_unit

__all__ = ["Pool", "answers", "empty_pool", "grown", "put", "wide_answers"]


class Pool(NamedTuple):
    """Columns of a kernel test, each at a place.

    Args:
        units: (capacity, n), in robust units.
        features: (capacity, r, n), centred features, or their leading components.
        lost: (capacity,), the share of the trace that the leading components do not hold.
    """

    units: jax.Array
    features: jax.Array
    lost: jax.Array


def _n_features(kernel: FourierKernel, leading: bool) -> int:
    full = kernel.n_features - 1
    return min(full, N_LEADING) if leading else full


@partial(jax.jit, static_argnames=("capacity", "n", "kernel", "dtype", "leading"))
def empty_pool(capacity: int, n: int, kernel: FourierKernel, *, dtype: str, leading: bool) -> Pool:
    """A pool of zeros.

    Args:
        leading: whether only leading components are kept.
    """
    r = _n_features(kernel, leading)
    return Pool(
        jnp.zeros((capacity, n), dtype),
        jnp.zeros((capacity, r, n), dtype),
        jnp.zeros(capacity, dtype),
    )


@jax.jit
def grown(old: Pool, new: Pool) -> Pool:
    """The larger, empty pool with what the old one holds at its first places."""
    return Pool(*(b.at[: len(a)].set(a) for a, b in zip(old, new, strict=True)))


def _mapped(function: Callable, arrays: jax.Array, batch: int) -> jax.Array:
    """One after the other where a batch is 1, else so many at once."""
    return jax.lax.map(function, arrays, batch_size=None if batch == 1 else batch)


@partial(jax.jit, static_argnames=("kernel", "leading", "batch"), donate_argnums=0)
def put(
    pool: Pool,
    columns: jax.Array,
    where: jax.Array,
    kernel: FourierKernel,
    leading: bool,
    batch: int,
) -> Pool:
    """The pool with columns at their places.

    Args:
        columns: float64 (m, n), in any units.
        where: integers (2, t), rows of ``columns`` and the places they come to; a place beyond the
            capacity is dropped.
        batch: columns at once.
    """
    chosen, places = where

    def prepared(column: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        unit = robust_unit(column).astype(pool.units.dtype)
        phi = centred_features(unit, kernel)
        if leading and phi.shape[0] > N_LEADING:
            return unit, *leading_components(phi, N_LEADING)
        return unit, phi, jnp.zeros((), phi.dtype)

    made = _mapped(lambda row: prepared(columns[row]), chosen, batch)
    return Pool(
        *(old.at[places].set(new, mode="drop") for old, new in zip(pool, made, strict=True))
    )


def _answer(
    phi: jax.Array,
    psi: jax.Array,
    orders: jax.Array | None,
    first: jax.Array,
    rank: int,
    count: int,
    ties: float,
    block: int,
) -> list[jax.Array]:
    """T_0, how many others are as large but for rounding, and the rank-th largest of the others."""
    n = phi.shape[1]
    shifted = permuted_squares(phi, psi, orders, jnp.remainder(first, n), count, min(block, n))
    shifted = shifted.astype(jnp.float64)
    observed = shifted[-first]
    others = jnp.where(jnp.arange(count) == -first, -jnp.inf, shifted)
    as_large = jnp.sum(others >= observed * (1 - ties))
    return [observed, as_large.astype(jnp.float64), jnp.sort(others)[count - rank]]


def _each(
    answer: Callable[[jax.Array], list[jax.Array]], pairs: jax.Array, batch: int
) -> jax.Array:
    """The answers for pairs of places.  One that only fills the call (negative places) gets zeros
    without work where one comes after the other; of a batch all are computed.
    """

    def one(pair: jax.Array) -> jax.Array:
        return jnp.stack(answer(pair))

    if batch > 1:
        return _mapped(one, pairs, batch)
    made = jax.eval_shape(one, pairs[0])
    nothing = jnp.zeros(made.shape, made.dtype)
    return _mapped(
        lambda pair: jax.lax.cond(pair[0] >= 0, one, lambda _: nothing, pair), pairs, batch
    )


_STATIC = ("rank", "count", "ties", "block", "batch")


@partial(jax.jit, static_argnames=_STATIC)
def answers(
    pool: Pool,
    pairs: jax.Array,
    first: jax.Array,
    *,
    rank: int,
    count: int,
    ties: float,
    block: int,
    batch: int,
    orders: jax.Array | None = None,
) -> jax.Array:
    """For each pair T_0, the number of permuted statistics that are as large, the rank-th largest
    of these, and the larger of the two lost shares: float64 (q, 4).

    Args:
        pairs: integers (q, 2), places in the pool; what negative ones get is of no use.
        first: the first shift, integer, from 1 - count to 0.
        rank: of the critical value among the permuted statistics, from 1.
        count: shifts, that of 0 among them.
        ties: statistics that differ by this share count as equal.
        block: rows at once.
        batch: pairs at once.
        orders: of :func:`jaxcd.ops.hsic.draw_orders`; None where there are more rows than shifts.
    """

    def one(pair: jax.Array) -> list[jax.Array]:
        phi, psi = pool.features[pair[0]], pool.features[pair[1]]
        lost = jnp.maximum(pool.lost[pair[0]], pool.lost[pair[1]]).astype(jnp.float64)
        return [*_answer(phi, psi, orders, first, rank, count, ties, block), lost]

    return _each(one, pairs, batch)


@partial(jax.jit, static_argnames=("kernel", *_STATIC))
def wide_answers(
    pool: Pool,
    pairs: jax.Array,
    first: jax.Array,
    *,
    kernel: FourierKernel,
    rank: int,
    count: int,
    ties: float,
    block: int,
    batch: int,
    orders: jax.Array | None = None,
) -> jax.Array:
    """:func:`answers` by all features, for pairs of which 16 components lose too much; nothing is
    lost then.
    """

    def one(pair: jax.Array) -> list[jax.Array]:
        phi, psi = (centred_features(pool.units[place], kernel) for place in (pair[0], pair[1]))
        parts = _answer(phi, psi, orders, first, rank, count, ties, block)
        return [*parts, jnp.zeros((), jnp.float64)]

    return _each(one, pairs, batch)
