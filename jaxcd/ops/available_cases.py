r"""Tables of columns with missing cells, as if nothing were missing: from the cells in which
nothing is missing, made to agree with each other.

With levels 0 to k - 1 and a further code for "missing", let T_S be the part of the table of the
columns S in which none of them is missing, and N_S its total.  Where cells are missing completely
at random, T_S n' / N_S is an unbiased table of n' rows for every S, but tables of different sets
come from different rows: their shared margins differ by about sqrt(n), and a difference of their
entropies, which is what a score compares, by as much, where a likelihood ratio of independent
columns is about 1.  Balov (2013) proves that scores of available cases therefore need a penalty
above sqrt(n).  Here the tables are made to agree instead: from small sets to large ones,

    A_S = T_S * W_S,    A_S has the margins A_U for all U that lack one column of S,

with W_S a product of factors that each leave out one column (iterative proportional fitting).  So
A_S keeps the odds ratios of its own rows, the interactions of fewer columns come from all rows that
know them, and a likelihood ratio is again one of a single distribution.

Where columns are functions of each other, or cells are empty for want of rows, no table may have
all the margins that were found: then each counts alike (:func:`fit_margins`).  A joint table of few
cells is better completed at once (:func:`completed`).

*What it is unbiased for.*  Missing completely at random: every table.  At random, where it depends
on a column z that is seen whether x is missing: the odds ratios of x with z, and given z, because
they do not change when rows are chosen by z; not the margin of x, nor tables of x without z.

Source:
    Deming and Stephan 1940, Darroch and Ratcliff 1972 for the fit; Balov 2013; Bodewes and Scutari
    2021 for node averages.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxcd.ops.interactions import subsets
from jaxcd.ops.nearest_table import nearest_table

__all__ = ["AvailableTables", "completed", "fit_margins", "observed"]

Columns = tuple[int, ...]

_SWEEPS = 30
_CLOSE = 1e-6  # of the total; a fit that is this close has ended
_NEARLY, _STEPS_AT_ONCE = 1e-3, 60  # one that is not, by so much of the total, cannot be reached
_STEPS, _STILL = 500, 1e-7  # of expectation-maximisation, in shares of the rows
_MOST_FACTOR = 1e3  # a cell is at most so many times what its own rows say
_LEAST_FACTOR = 1e-300  # of one step; the logarithm of 0 is not finite


def observed(table: np.ndarray, can_miss: Sequence[bool]) -> np.ndarray:
    """The cells of a table in which nothing is missing: without the last code along each axis whose
    column can be missing.
    """
    return table[tuple(slice(None, -1) if may else slice(None) for may in can_miss)]


def _ratio(has: np.ndarray, margin: np.ndarray, axis: int) -> np.ndarray:
    """What the cells of a table are to be multiplied with, so that a margin is as it should be."""
    with np.errstate(over="ignore"):  # cells near the smallest float; limited here
        factor = np.where(has > 0, margin / np.where(has > 0, has, 1.0), 1.0)
    return np.expand_dims(np.minimum(factor, _MOST_FACTOR), axis)


def fit_margins(table: np.ndarray, margins: Sequence[np.ndarray]) -> np.ndarray:
    """The factors W, of the shape of the table, such that table * W has the given margins.

    Where the margins cannot be met (an empty cell that they need), a sweep over them ends at what
    the last one says.  All are then fitted at once, each by its share of the step (generalised
    iterative scaling), so that W does not depend on the order of the axes.

    Args:
        table: not negative.
        margins: for each axis the margin that is left when the axis is summed out; not negative,
            and of one total.

    Returns:
        The factors, not negative; where the margins cannot be met those of the last step.

    Source:
        Deming and Stephan 1940; Darroch and Ratcliff 1972.
    """
    weights = np.ones_like(table, dtype=np.float64)
    total = max(float(table.sum()), 1.0)
    for _ in range(_SWEEPS):
        largest = 0.0
        for axis, margin in enumerate(margins):
            has = (table * weights).sum(axis=axis)
            weights *= _ratio(has, margin, axis)
            largest = max(largest, float(np.abs(has - margin).max(initial=0.0)))
        np.minimum(weights, _MOST_FACTOR, out=weights)
        if largest <= _CLOSE * total:
            return weights
    return weights if largest <= _NEARLY * total else _fitted_at_once(table, margins)


def _fitted_at_once(table: np.ndarray, margins: Sequence[np.ndarray]) -> np.ndarray:
    """As :func:`fit_margins`, by steps that are alike in all axes."""
    weights = np.ones_like(table, dtype=np.float64)
    for _ in range(_STEPS_AT_ONCE):
        fitted, step = table * weights, np.zeros_like(weights)
        for axis, margin in enumerate(margins):
            step += np.log(np.maximum(_ratio(fitted.sum(axis=axis), margin, axis), _LEAST_FACTOR))
        weights = np.minimum(weights * np.exp(step / len(margins)), _MOST_FACTOR)
    return weights


def completed(joint: np.ndarray, can_miss: Sequence[bool]) -> np.ndarray:
    """The joint table without missing cells that makes a joint table with them most likely, of as
    many rows: expectation-maximisation.

    A row with missing cells is spread over the cells that it could be, as the table so far has
    them.  It is unbiased wherever cells are missing at random, and its margins agree.

    Args:
        joint: not negative, one axis a column, the last code of those in ``can_miss`` that of a
            missing cell.

    Source:
        Dempster, Laird, Rubin 1977; Fuchs 1982 for tables.
    """
    whole = observed(joint, can_miss)
    shares = (whole + whole.mean() + 1e-9) / (whole + whole.mean() + 1e-9).sum()
    axes = [axis for axis, may in enumerate(can_miss) if may]
    total = float(joint.sum())
    for _ in range(_STEPS):
        expected = shares
        for axis in axes:  # and what a cell with a missing code would hold
            expected = np.concatenate([expected, expected.sum(axis=axis, keepdims=True)], axis=axis)
        ratio = np.where(joint > 0, joint / np.where(expected > 0, expected, 1.0), 0.0)
        for axis in axes:  # back from each code to the cells that it could be
            known, unknown = np.split(ratio, [-1], axis=axis)
            ratio = known + unknown
        fresh = shares * ratio / total
        moved = float(np.abs(fresh - shares).sum())
        shares = fresh
        if moved < _STILL:
            break
    return shares * total


class AvailableTables:
    """The agreeing tables of sets of columns, each computed once.

    Args:
        table: the table of a set of columns (sorted positions) with the codes of missing cells,
            float64; noisy ones may be negative.
        can_miss: for each column whether its last code is that of a missing cell.
        n_samples: the number of rows.
        pairs: the pairs of columns whose tables are known; the tables here are of n' rows, the
            median over them of the rows that know both.
        scatter: the standard deviation of the noise on a cell of ``table``.  So much is added to
            every cell before the fit, and to the margins that it should have: cells that noise
            emptied would else push their margins onto the others.
    """

    def __init__(
        self,
        table: Callable[[Columns], np.ndarray],
        *,
        can_miss: Sequence[bool],
        n_samples: int,
        pairs: Sequence[Columns],
        scatter: Callable[[Columns], float] = lambda columns: 0.0,
    ) -> None:
        self._table, self._can_miss, self._n = table, tuple(can_miss), n_samples
        self._scatter = scatter
        self._joint: np.ndarray | None = None
        self._totals: dict[Columns, float] = {}
        self._known: dict[Columns, tuple[np.ndarray, np.ndarray, float]] = {}
        known = [self.total(pair) for pair in pairs] or [float(n_samples)]
        self.n_samples = max(2, round(float(np.median(known))))

    def agreeing_with(self, joint: np.ndarray) -> AvailableTables:
        """These tables as margins of one completed joint table, one axis a column."""
        other = copy.copy(self)
        other._joint, other._known = joint * (self.n_samples / max(float(joint.sum()), 1.0)), {}
        return other

    def _part(self, columns: Columns) -> np.ndarray:
        return observed(self._table(columns), [self._can_miss[j] for j in columns])

    def total(self, columns: Columns) -> float:
        """N_S, at least 1: the rows in which none of the columns is missing."""
        missing = tuple(j for j in columns if self._can_miss[j])
        if not missing:
            return float(self._n)
        if missing not in self._totals:
            self._totals[missing] = min(max(float(self._part(missing).sum()), 1.0), float(self._n))
        return self._totals[missing]

    def table(self, columns: Columns) -> np.ndarray:
        """A_S, float64 (number of levels of each): of n' rows, and negative where noise is."""
        return self._of(columns)[0]

    def nonnegative(self, columns: Columns) -> np.ndarray:
        """A_S without its noise's negative cells."""
        return self._of(columns)[1]

    def scale(self, columns: Columns) -> float:
        """The root mean square of W_S: what the noise on a cell is multiplied with."""
        return self._of(columns)[2]

    def price(self, columns: Columns, *, known: Callable[[Columns], float] | None = None) -> float:
        """How many parameters the table has, each counted n' / N_U times for the smallest set U of
        columns that it joins: what fewer rows tell scatters more.

        Args:
            known: N_U, where not all tables can be had.
        """
        rows, total = known or self.total, 1.0
        for subset in subsets(columns):
            free = math.prod(self._levels(j) - 1 for j in subset)
            total += free * max(1.0, self.n_samples / max(rows(subset), 1.0))
        return total

    def _levels(self, column: int) -> int:
        return int(self._of((column,))[0].size)

    def _of(self, columns: Columns) -> tuple[np.ndarray, np.ndarray, float]:
        if columns not in self._known:
            self._known[columns] = self._fitted(columns)
        return self._known[columns]

    def _fitted(self, columns: Columns) -> tuple[np.ndarray, np.ndarray, float]:
        if self._joint is not None:
            others = tuple(axis for axis in range(self._joint.ndim) if axis not in columns)
            table = self._joint.sum(axis=others)
            return table, table, 1.0
        part, n = self._part(columns), float(self.n_samples)
        scale = n / self.total(columns)
        whole = nearest_table(part * scale, n)
        if len(columns) < 2 or not any(self._can_miss[j] for j in columns):
            return part * scale, whole, scale
        level = self._scatter(columns) * scale
        margins = [
            self.nonnegative(columns[:place] + columns[place + 1 :]) + level * part.shape[place]
            for place in range(len(columns))
        ]
        weights = fit_margins(whole + level, margins)
        fitted = nearest_table(part * scale * weights, n)
        return part * scale * weights, fitted, scale * float(np.sqrt((weights**2).mean()))
