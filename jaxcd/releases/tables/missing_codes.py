r"""A joint table with codes of missing cells, as what is seen of a joint table without them.

With mu_x the mean of the complete cell x, and q_m the share of rows in which the columns m are
missing, whatever x is (missing completely at random), a cell of the table that is seen has the mean

    mu'_{m, z} = q_m sum over x that agree with z outside of m of mu_x.

Given the counts N' that are expected in the cells that are seen, those in the complete cells are
mu_x sum_m q_m N'_{m, z(x)} / mu'_{m, z(x)} (expectation-maximisation; Dempster, Laird, Rubin 1977).
Without noise q cancels, and a fit is right wherever cells are missing at random.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import final

import numpy as np

from jaxcd.ops.available_cases import observed
from jaxcd.ops.nearest_table import nearest_table
from jaxcd.ops.standardising import quotient

__all__ = ["MissingCodes"]

_STEPS, _STILL = 300, 1e-5  # of the first fit, in shares of the rows
Counts = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@final
class MissingCodes:
    """The two tables: complete, and seen; of G at once.

    Args:
        values: the noisy table that is seen, one axis a column.
        can_miss: for each column whether its last code is that of a missing cell.
        n_samples: n.
        expected: from means of the seen cells, (G, K'), the log likelihood of each noisy cell and
            the counts that are expected in it.
    """

    def __init__(
        self, values: np.ndarray, can_miss: Sequence[bool], *, n_samples: int, expected: Counts
    ) -> None:
        self._can_miss, self._n, self._expected = tuple(can_miss), n_samples, expected
        self._seen = tuple(values.shape)
        self._values = values
        self.complete = tuple(
            size - may for size, may in zip(values.shape, self._can_miss, strict=True)
        )
        """The number of levels of each column."""

    def _patterns(self, seen: np.ndarray) -> np.ndarray:
        """The sums over the cells of each pattern of missing columns, in their places: an axis of
        two for a column that can miss, else of one.
        """
        for axis, may in enumerate(self._can_miss):
            known, unknown = np.split(seen, [-1], axis=axis) if may else (seen, None)
            known = known.sum(axis=axis, keepdims=True)
            seen = known if unknown is None else np.concatenate([known, unknown], axis=axis)
        return seen

    def _by_pattern(self, shares: np.ndarray) -> np.ndarray:
        """The share of its pattern, for each cell that is seen."""
        for axis, size in enumerate(self.complete):
            repeats = [size, 1] if self._can_miss[axis] else [size]
            shares = np.repeat(shares, repeats, axis=axis)
        return shares

    def _sums(self, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        table = means.reshape(len(means), *self.complete)
        # the last axis first: what is added up stays together in memory as long as it is short
        for axis in reversed(range(len(self._seen))):
            if self._can_miss[axis]:
                levels = np.moveaxis(table, 1 + axis, 0)
                shape = (*table.shape[: 1 + axis], len(levels) + 1, *self._seen[1 + axis :])
                wider = np.empty(shape)
                wider[(slice(None),) * (1 + axis) + (slice(None, -1),)] = table
                np.moveaxis(wider, 1 + axis, 0)[-1] = functools.reduce(np.add, levels)
                table = wider
        found: np.ndarray = (table * shares).reshape(len(means), -1)
        return found

    def seen(self, means: np.ndarray) -> np.ndarray:
        """mu' of complete means: (G, K) in, (G, K') out."""
        return self._sums(means, self._shares)

    def spread(self, means: np.ndarray, seen: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The counts that are expected in complete cells.

        Args:
            means: of the complete cells, (G, K).
            seen: mu' of these means, (G, K').
            counts: that are expected in the cells that are seen, (G, K').

        Returns:
            (G, K).
        """
        return self._back(means, seen, counts, self._shares)

    def _back(
        self, means: np.ndarray, seen: np.ndarray, counts: np.ndarray, shares: np.ndarray
    ) -> np.ndarray:
        ratio = quotient(counts, seen).reshape(-1, *self._seen) * shares
        for axis, may in enumerate(self._can_miss):
            if may:
                at = (slice(None),) * (1 + axis)
                ratio = ratio[(*at, slice(None, -1))] + ratio[(*at, slice(-1, None))]
        found: np.ndarray = means * ratio.reshape(len(means), -1)
        return found

    @cached_property
    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest complete table and shares of patterns, where the graph says nothing."""
        n = float(self._n)
        table = nearest_table(self._values.astype(np.float64), n)
        shares = (self._patterns(table) + 1.0) / (n + self._patterns(table).size)
        whole = observed(table, self._can_miss)
        means = (whole + whole.mean() + 1e-9).reshape(1, -1)
        means *= n / means.sum()
        for _ in range(_STEPS):
            by_pattern = self._by_pattern(shares)
            seen = self._sums(means, by_pattern)
            counts = self._expected(seen)[1]
            fresh = self._back(means, seen, counts, by_pattern)
            if not fresh.sum() > 0:  # less than half a person in every cell
                break
            fresh *= n / fresh.sum()
            shares = self._patterns(counts.reshape(self._seen))
            shares = shares / shares.sum()
            moved = float(np.abs(fresh - means).sum())
            means = fresh
            if moved < _STILL * n:
                break
        return means[0].reshape(self.complete), self._by_pattern(shares)

    @property
    def start(self) -> np.ndarray:
        """The complete table that is likeliest where the graph says nothing; of n rows."""
        return self._first[0]

    @property
    def _shares(self) -> np.ndarray:
        return self._first[1]

    def filled(self, table: np.ndarray) -> np.ndarray:
        """A seen table, not negative, whose missing cells are spread over levels as :attr:`start`
        has them.
        """
        start = self.start.reshape(1, -1)
        return self.spread(start, self.seen(start), table.reshape(1, -1)).reshape(self.complete)
