r"""BIC of discrete columns: maximised log likelihood less half the log of n for each free
parameter.

local(v, P) = sum_{x, p} N(x, p) log(N(x, p) / N(p)) - (penalty / 2) log(n) (r_v - 1) prod_{u in P}
r_u,

with r the numbers of levels.  It is score-equivalent: Markov equivalent DAGs have equal totals.

Of exact counts only levels that some record holds count in r: a level that is declared and that
nobody holds has no parameter to fit, and 60 declared levels, of which 4 occur, would hide every
edge.  On counts that were computed from a release all declared levels count.

Exact counts are not private.  On data this score is the reference of a run without privacy; on a
table that was computed from a release it is post-processing.

Source:
    Schwarz 1978; Heckerman, Geiger, Chickering 1995 for score equivalence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.special import xlogy

from jaxcd.data import Dataset
from jaxcd.errors import OptionError
from jaxcd.scores.base import BatchedScore, several_levels
from jaxcd.scores.counts import CountedSets, Counts, DataCounts, TableCounts
from jaxcd.scores.level_margin import CHANCE_FIT, check_full_levels, counted_levels, mean_and_margin

__all__ = ["BICScore"]


@final
class BICScore(BatchedScore):
    """BIC from the counts of sets of columns; made by :meth:`of_data`, :meth:`of_table` or from any
    :class:`Counts`.

    Args:
        names: the variables.
        counts: their counts; n of the penalty is the number of rows these stand for.
        max_parents: the largest number of parents that a search tries.
        penalty: a factor of the BIC's, from 0.
        full_levels: how many levels of a column pay the whole price
            (:mod:`jaxcd.scores.level_margin`); None for all, which is BIC.

    Raises:
        OptionError: an option is out of its range.
    """

    def __init__(
        self,
        names: Sequence[str],
        counts: Counts,
        *,
        max_parents: int = 3,
        penalty: float = 1.0,
        full_levels: int | None = None,
    ) -> None:
        if not (math.isfinite(penalty) and penalty >= 0):
            raise OptionError(
                f"penalty = {penalty!r} is not a finite number from 0; 1 is the BIC's"
            )
        super().__init__(names, max_parents=max_parents)
        self._penalty, self._full_levels = penalty, check_full_levels(full_levels)
        exact = isinstance(counts, DataCounts)
        self._levels = counts.held_levels() if exact else counts.cardinalities
        # h(S) = sum N_S log N_S, of which the fit is a difference.
        self._sums = CountedSets(counts, lambda counted, sizes: xlogy(counted, counted))

    @classmethod
    def of_data(cls, data: Dataset, *, max_parents: int = 3, penalty: float = 1.0) -> BICScore:
        """BIC of exact counts: not private, for runs without privacy.

        Raises:
            DomainError: a column is numeric.
        """
        return cls(data.names, DataCounts(data), max_parents=max_parents, penalty=penalty)

    @classmethod
    def of_table(
        cls,
        table: np.ndarray,
        *,
        names: Sequence[str],
        n_samples: int,
        max_parents: int = 3,
        penalty: float = 1.0,
        full_levels: int | None = None,
    ) -> BICScore:
        """BIC of a joint table, one axis a variable, not negative: for expected or denoised counts.

        Raises:
            DataError: an entry is negative or not finite.
        """
        counts = TableCounts(table, n_samples=n_samples)
        return cls(names, counts, max_parents=max_parents, penalty=penalty, full_levels=full_levels)

    def with_penalty(self, penalty: float) -> BICScore:
        """The same tables, already counted, at another factor of the penalty."""
        other = BICScore(
            self._names,
            self._sums.counts,
            max_parents=self._max_parents,
            penalty=penalty,
            full_levels=self._full_levels,
        )
        other._sums = self._sums
        return other

    def candidates(self, node: int) -> tuple[int, ...]:
        """All others but constants: an arc from or to a column of one level costs nothing and says
        nothing.
        """
        return several_levels(self._levels, node)

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        counts = self._sums.counts
        mean, margin = mean_and_margin(self._penalty / 2 * math.log(counts.n_samples), CHANCE_FIT)
        levels = self._levels
        counted = counted_levels(levels, self._full_levels)
        prices = [
            mean * (levels[node] - 1) * math.prod(levels[u] for u in parents)
            + margin * (counted[node] - 1) * math.prod(counted[u] for u in parents)
            for parents in families
        ]
        return self._sums.differences(node, families) - np.array(prices, dtype=np.float64)
