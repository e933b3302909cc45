r"""Jumps of a regression function, which no smooth kernel follows.

Where E[y | Z] jumps as a column of Z passes a threshold (an age from which a drug is given, a step
of a tariff), a smooth fit bends, and the rows beside the threshold keep a function of Z that is
large beside their errors.  Two such columns with a threshold in common seem to depend on each
other given Z: of x = sign(z) + e and y = floor(1.5 z) + f, e and f normal with standard deviation
.5, .96 of 100 data sets of 2,000 rows were called dependent at level .05.

*Terms.*  1[z_j > a] times one, times another column (the slope changes), or times an earlier term
(a threshold within a part of the rows): the basis functions of a regression tree and of MARS.
Besides the columns z_j is their weighted sum of the target's single-index model, for thresholds of
a sum: a score of symptoms, the body-mass index.

*Search.*  Rows are put into the order of z_j.  With u the residual times what the term is
multiplied by, the contrast of the w rows behind a place and the w rows before it is

    C = (sum of u behind - sum of u before) / sqrt(sum of u^2 of all 2 w).

Where all 2 w rows have one law, C has one for which P(|C| > t) <= 2 exp(-t^2 / 2), whatever that
law: their order is free, so each difference of a row behind and a row before has either sign.  The
term of largest C^2, w = 16, 32, ..., 1024, counts where

    C^2 > 2 log N,

N = n d m of n rows, d columns and m factors: about as many contrasts are looked at.  Neighbours
among these are alike, so without a jump the largest reaches that in few targets, .00 to .08 of 300
(normal, exponential and Cauchy errors, 200 to 8,000 rows); there a term in vain costs a parameter.
What is looked at is left by a smooth fit, so most functions without jumps are fitted as before.

*Few rows.*  A smooth fit of 200 rows bends so far that nothing is seen of a jump in what it leaves.
There terms are looked for beside a line first, the clearest eight, and are taken where with them
the leave-one-out error of the smooth fit is less by more than 2 log N + 4 k units of twice the log
likelihood: one choice among N, and a place and a weight of each of the k terms.  Of 576 targets of
twelve smooth laws, 200 and 550 rows, none gained so much; of those with jumps nearly all.

Source:
    Page 1955 for cumulated sums; Mueller 1992 for jumps of a regression function as contrasts of
    both sides; Friedman 1991 for the terms; de la Pena, Lai, Shao 2009 for sums over the root of
    their own squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.citests.waves import clearest_wave
from jaxcd.ops import double_precision
from jaxcd.ops.standardising import near_one

__all__ = [
    "MOST_COLUMNS",
    "MOST_TERMS",
    "Order",
    "Term",
    "columns_of",
    "gain_needed",
    "more_terms",
    "order_of",
    "table_of",
    "term_columns",
    "terms_beside_a_line",
    "terms_of",
    "with_sum",
]

#: At most so many terms of a target; what is free costs a parameter each.
MOST_TERMS = 16
_WIDTHS = (16, 32, 64, 128, 256, 512, 1024)
#: Every w / 8-th place is looked at first, then all places near the best.
_PARTS = 8
#: Of more columns, such as the indicators of a label of many levels, no jumps are looked for, and
#: no sum of kernels is compared: time grows with their square; indicators are free terms anyway.
MOST_COLUMNS = 40
_COSINE, _SINE = -1, -2  # what stands in the place of a factor
_CLIP = 3.0  # of a column, in standard deviations, as a factor
_DIGITS = 9  # of a weighted sum, whose spread is one
_EQUAL = 1e-9  # contrasts are equal up to this share; of equal ones the first counts


class Term(NamedTuple):
    """1[z_column > after] times what ``by`` says: 0: one; 1 to d: a column of z; from d + 1 on: an
    earlier term.  Below 0 a wave: cos(after z_column) where ``by`` is -1, the sine where it is -2.
    """

    column: int
    after: float
    by: int


class Order(NamedTuple):
    """rows: of a column, ascending, (n,).  places: between different values, each the number of
    rows before it.
    """

    rows: np.ndarray
    places: np.ndarray


def with_sum(z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The columns z (n, d) and, of two and more, behind them their sum with these weights (d,),
    rounded: equal rows have equal sums on any processor.
    """
    if z.shape[1] < 2:
        return z
    return np.column_stack([z, np.round(z @ weights, _DIGITS)])


def order_of(column: np.ndarray) -> Order:
    """The order of a column (n,)."""
    rows = np.argsort(column, kind="stable")
    return Order(rows, np.flatnonzero(np.diff(column[rows]) > 0) + 1)


def more_terms(
    z: np.ndarray,
    orders: Sequence[Order],
    rest: np.ndarray,
    known: Sequence[Term],
    *,
    waves: bool = False,
) -> list[Term]:
    """New terms for residuals, at most one jump or wave for each column, the clearest first.

    Args:
        z: (n, d).
        orders: of the columns.
        rest: (n, t), what a fit with the known terms leaves of the targets, which all get the new
            terms.
        known: earlier terms.
        waves: whether waves are looked for, too.
    """
    n, d = z.shape
    size = np.abs(rest).max(axis=0)
    units = [near_one(each) for each in rest[:, size > 0].T]
    if not units or not 0 < d <= MOST_COLUMNS:
        return []
    earlier = np.asarray(columns_of(z, known))[:, : len(known)] if known else np.empty((n, 0))
    factors = np.clip(np.column_stack([np.ones(n), z, earlier]), -_CLIP, _CLIP).T
    least = 2 * math.log(n * d * len(factors) * len(units))
    new: list[tuple[float, list[Term]]] = []
    for j, order in enumerate(orders):
        # z_j times its own threshold is a kink, which kernels follow.
        others = [
            by
            for by in range(len(factors))
            if by != j + 1 and (by <= d or known[by - d - 1].column != j)
        ]
        factor = factors[others][:, order.rows]
        sums = [_Sums(each[order.rows] * factor, order.places) for each in units]
        square, row, place = max((each.largest() for each in sums), key=lambda best: best[0])
        found = []
        if square > least:
            before, behind = z[order.rows[place - 1 : place + 1], j]
            found = [Term(j, float((before + behind) / 2), others[row])]
        if waves:
            n_searched = d * len(units)
            power, frequency = clearest_wave(z[:, j], units, n_searched=n_searched, least=square)
            if power > 0:
                square, found = power, [Term(j, frequency, _COSINE), Term(j, frequency, _SINE)]
        if found and found[0] not in known:
            new.append((square, found))
    return [term for _, found in sorted(new, key=lambda pair: -pair[0]) for term in found]


class _Sums:
    """Sums over neighbouring rows.

    Args:
        rows: (m, n), in order.
        places: where contrasts are taken.
    """

    def __init__(self, rows: np.ndarray, places: np.ndarray) -> None:
        start = np.zeros((len(rows), 1))
        self._n, self._places = rows.shape[1], places
        self._sums = np.concatenate([start, np.cumsum(rows, axis=1)], axis=1)
        self._squares = np.concatenate([start, np.cumsum(rows**2, axis=1)], axis=1)

    def largest(self) -> tuple[float, int, int]:
        """The largest C^2, its row and its place; (0, 0, 0) without any."""
        best = (0.0, 0, 0)
        for width in _WIDTHS:
            inside = self._inside(width, width, self._n - width)
            step = width // _PARTS
            few = inside[step // 2 :: step] if len(inside) > self._n // step else inside
            if not len(few):
                continue
            row, place, _ = self._best(slice(None), few, width)
            near = self._inside(width, place - step, place + step)
            _, place, square = self._best(slice(row, row + 1), near, width)
            if square > best[0] * (1 + _EQUAL):
                best = (square, row, place)
        return best

    def _inside(self, width: int, low: int, high: int) -> np.ndarray:
        low, high = max(low, width), min(high, self._n - width)
        first, last = np.searchsorted(self._places, [low, high + 1])
        return self._places[first:last]

    def _best(self, rows: slice, places: np.ndarray, width: int) -> tuple[int, int, float]:
        sums, squares = self._sums[rows], self._squares[rows]
        before, behind = self._at(places, -width), self._at(places, width)
        contrast = sums[:, behind] + sums[:, before]
        contrast -= 2 * sums[:, self._at(places, 0)]
        total = squares[:, behind] - squares[:, before]
        # Rows of nothing but rounding errors have no contrast.
        total[total <= _EQUAL * squares[:, -1:]] = np.inf
        found = contrast**2 / total
        place = int((found >= found.max() * (1 - _EQUAL)).argmax())
        row, column = divmod(place, found.shape[1])
        return row, int(places[column]), float(found[row, column])

    def _at(self, places: np.ndarray, shift: int) -> np.ndarray | slice:
        """The places moved; a slice where they are evenly spaced, as all are without ties."""
        if len(self._places) < self._n - 1 or len(places) < 2:
            return places + shift
        return slice(places[0] + shift, places[-1] + shift + 1, places[1] - places[0])


def terms_beside_a_line(
    z: np.ndarray, orders: Sequence[Order], targets: np.ndarray, *, most: int
) -> tuple[Term, ...]:
    """Terms of targets (n, t) beside a constant and the columns z (n, d), one after another, by
    least squares.
    """
    terms: tuple[Term, ...] = ()
    columns = np.column_stack([np.ones(len(z)), z])
    while True:
        rest = targets - columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
        new = more_terms(z, orders, rest, terms)[: most - len(terms)]
        if not new:
            return terms
        terms += tuple(new)
        own = np.asarray(columns_of(z, terms))[:, : len(terms)]
        columns = np.column_stack([np.ones(len(z)), z, own])


def gain_needed(z: np.ndarray, terms: Sequence[Term]) -> float:
    """By how much n log(error) must fall with such terms: 2 log N + 4 k."""
    n, d = z.shape
    return 2 * math.log(n * d * (1 + d + len(terms))) + 4 * len(terms)


def columns_of(z: np.ndarray, terms: Sequence[Term]) -> jax.Array:
    """The terms at each row of z (n, d): float64 (n, 16), zeros behind them."""
    with double_precision():
        return term_columns(*jax.device_put((z, table_of(terms))))


def table_of(terms: Sequence[Term]) -> np.ndarray:
    """The terms as numbers, float64 (16, 3), for :func:`term_columns`."""
    table = np.tile([0.0, np.inf, 0.0], (MOST_TERMS, 1))
    table[: len(terms)] = np.array(terms, dtype=np.float64).reshape(-1, 3)
    return table


def terms_of(table: np.ndarray) -> tuple[Term, ...]:
    """The terms of such a table."""
    return tuple(Term(int(j), float(after), int(by)) for j, after, by in table if after < np.inf)


@jax.jit
def term_columns(z: jax.Array, table: jax.Array) -> jax.Array:
    """The terms of a table at each row: (n, d), (16, 3) -> (n, 16), zeros for those that it has
    not.
    """
    first = 1 + z.shape[1]

    def add(k: jax.Array, held: jax.Array) -> jax.Array:
        column, by = table[k, 0].astype(int), table[k, 2].astype(int)
        along, number = jnp.take(z, column, axis=1), table[k, 1]

        def jump() -> jax.Array:
            return jnp.where(along > number, jnp.take(held, by, axis=1), 0.0)

        def wave() -> jax.Array:
            return jnp.where(by == _SINE, jnp.sin(number * along), jnp.cos(number * along))

        # cond, for waves take their time and are rare
        new = jax.lax.cond(by < 0, wave, jump)
        return jax.lax.dynamic_update_index_in_dim(held, new, first + k, axis=1)

    held = jnp.concatenate(
        [jnp.ones((len(z), 1), z.dtype), z, jnp.zeros((len(z), MOST_TERMS), z.dtype)], axis=1
    )
    return jax.lax.fori_loop(0, MOST_TERMS, add, held)[:, first:]
