r"""BDeu of discrete columns: the log marginal likelihood under a uniform Dirichlet prior of a given
weight.

local(v, P) = sum_p [ log G(a / q) - log G(a / q + N(p)) ] + sum_{x, p} [ log G(a / (q r) + N(x, p))
- log G(a / (q r)) ],

with G the gamma function, a the equivalent sample size, r the levels of v and q the number of cells
of P.  With |S| the number of cells of the table of S it is g(P and v) - g(P),

    g(S) = sum_{cells of S} [ log G(a / |S| + N) - log G(a / |S|) ],

so that it is score-equivalent: reversing a covered arc permutes the terms.

Only levels that some record holds count in r, q and |S|.  A level that is declared and that nobody
holds would get prior weight a / r, which a parent saves by as many of its levels as are not held
either: two independent columns of four levels, of which two occur, would be joined at any n, the
surer the more records there are.

Exact counts are not private.  On data this score is the reference of a run without privacy; on
counts that were computed from a release it is post-processing.

Source:
    Buntine 1991; Heckerman, Geiger, Chickering 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.special import gammaln

from jaxcd.checks import check_number
from jaxcd.data import Dataset
from jaxcd.scores.base import BatchedScore, several_levels
from jaxcd.scores.counts import CountedSets, Counts, DataCounts

__all__ = ["BDeuScore"]


@final
class BDeuScore(BatchedScore):
    """BDeu from the counts of sets of columns.

    Args:
        names: the variables.
        counts: their counts; any not negative numbers.
        equivalent_sample_size: a, positive, in records.
        max_parents: the largest number of parents that a search tries.

    Raises:
        OptionError: an option is out of its range.
    """

    def __init__(
        self,
        names: Sequence[str],
        counts: Counts,
        *,
        equivalent_sample_size: float = 10.0,
        max_parents: int = 3,
    ) -> None:
        weight = check_number(
            "equivalent_sample_size", equivalent_sample_size, 0, ends="(]", cure="10 is usual"
        )
        super().__init__(names, max_parents=max_parents)

        def term(counted: np.ndarray, sizes: np.ndarray) -> np.ndarray:
            return gammaln(counted + weight / sizes) - gammaln(weight / sizes)

        self._held = counts.held_levels()
        self._sums = CountedSets(counts, term, levels=self._held)

    @classmethod
    def of_data(
        cls, data: Dataset, *, equivalent_sample_size: float = 10.0, max_parents: int = 3
    ) -> BDeuScore:
        """BDeu of exact counts: not private, for runs without privacy.

        Raises:
            DomainError: a column is numeric.
        """
        return cls(
            data.names,
            DataCounts(data),
            equivalent_sample_size=equivalent_sample_size,
            max_parents=max_parents,
        )

    def candidates(self, node: int) -> tuple[int, ...]:
        """All others but constants: an arc from or to a column of one level says nothing."""
        return several_levels(self._held, node)

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        return self._sums.differences(node, families)
