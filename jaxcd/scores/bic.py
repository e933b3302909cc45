r"""BIC of discrete columns: maximised log likelihood less half the log of n for each free parameter.

local(v, P) = sum_{x, p} N(x, p) log(N(x, p) / N(p)) - (penalty / 2) log(n) (r_v - 1) prod_{u in P} r_u,

with r the numbers of levels.  It is score-equivalent: Markov equivalent DAGs have equal totals.

Exact counts are not private.  On data this score is the reference of a run without privacy; on a table that was computed from a
release it is post-processing.

Source: Schwarz 1978; Heckerman, Geiger, Chickering 1995 for score equivalence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from scipy.special import xlogy

from jaxcd.data import Dataset
from jaxcd.errors import DataError, OptionError
from jaxcd.scores.base import LocalScore, check_max_parents, several_levels

__all__ = ["BICScore"]


@final
class BICScore(LocalScore):
    """BIC from the tables of sets of columns; made by :meth:`of_data` or :meth:`of_table`.

    names: the variables.  cardinalities: their numbers of levels.  n_samples: n of the penalty, above 1.
    counts: the table of a sorted set of positions, not negative, of any shape.
    max_parents: the largest number of parents that a search tries.  penalty: a factor of the BIC's, from 0.

    Raises OptionError where an option is out of its range.
    """

    def __init__(
        self,
        names: Sequence[str],
        cardinalities: Sequence[int],
        n_samples: int,
        counts: Callable[[tuple[int, ...]], np.ndarray],
        *,
        max_parents: int = 3,
        penalty: float = 1.0,
    ) -> None:
        if not (math.isfinite(penalty) and penalty >= 0):
            raise OptionError(f"penalty = {penalty!r} is not a finite number from 0; 1 is the BIC's")
        self._names, self._cardinalities = tuple(names), tuple(cardinalities)
        self._n_samples = n_samples
        self._max_parents = check_max_parents(max_parents)
        self._penalty = penalty
        self._counts = counts
        self._sums: dict[tuple[int, ...], float] = {}

    @classmethod
    def of_data(cls, data: Dataset, *, max_parents: int = 3, penalty: float = 1.0) -> BICScore:
        """BIC of exact counts: not private, for runs without privacy.

        Raises DomainError where a column is numeric.
        """
        codes, cardinalities = data.codes, [cardinality or 1 for cardinality in data.domain.cardinalities]

        def counts(variables: tuple[int, ...]) -> np.ndarray:
            cell = np.zeros(data.n_samples, dtype=np.int64)
            for v in variables:
                cell = cell * cardinalities[v] + codes[:, v]
            if math.prod(cardinalities[v] for v in variables) <= 4 * data.n_samples:
                return np.bincount(cell)
            return np.unique(cell, return_counts=True)[1]

        return cls(data.names, cardinalities, data.n_samples, counts, max_parents=max_parents, penalty=penalty)

    @classmethod
    def of_table(
        cls, table: np.ndarray, *, names: Sequence[str], n_samples: int, max_parents: int = 3, penalty: float = 1.0
    ) -> BICScore:
        """BIC of a joint table, one axis a variable, not negative: for expected or denoised counts.

        Raises DataError where an entry is negative or not finite.
        """
        joint = np.array(table, dtype=np.float64)
        if not (np.isfinite(joint) & (joint >= 0)).all():
            raise DataError("table must hold finite counts, not negative ones; project it onto the simplex first")

        def counts(variables: tuple[int, ...]) -> np.ndarray:
            return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in variables))

        return cls(names, joint.shape, n_samples, counts, max_parents=max_parents, penalty=penalty)

    def with_penalty(self, penalty: float) -> BICScore:
        """The same tables, already counted, at another factor of the penalty."""
        other = BICScore(
            self._names, self._cardinalities, self._n_samples, self._counts, max_parents=self._max_parents, penalty=penalty
        )
        other._sums = self._sums
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._names

    @property
    def max_parents(self) -> int:
        """The largest number of parents that a search tries."""
        return self._max_parents

    def candidates(self, node: int) -> tuple[int, ...]:
        """All others but constants: an arc from or to a column of one level costs nothing and says nothing."""
        return several_levels(self._cardinalities, node)

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """sum N log(N(x, p) / N(p)) less the penalty, in nats."""
        rows = math.prod(self._cardinalities[parent] for parent in parents)
        price = self._penalty / 2 * math.log(self._n_samples) * (self._cardinalities[node] - 1) * rows
        return self._log_sum((*parents, node)) - self._log_sum(parents) - price

    def _log_sum(self, variables: tuple[int, ...]) -> float:
        """h(S) = sum N_S log N_S."""
        key = tuple(sorted(variables))
        if key not in self._sums:
            counts = self._counts(key)
            self._sums[key] = float(xlogy(counts, counts).sum())
        return self._sums[key]
