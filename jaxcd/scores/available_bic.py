r"""BIC of discrete columns with missing cells, from the tables of available cases.

    local(v, P) = h(v P) - h(P) - (penalty / 2) log(n') (price(v P) - price(P)),
    h(S) = sum over cells of A_S log A_S,

with A_S, n' and the price of :mod:`jaxcd.ops.available_cases`: the tables agree with each other, so
that, unlike the node-average likelihood of Balov (2013) and of Bodewes and Scutari (2021), a
difference of scores is a likelihood ratio of one distribution, and needs no penalty above
sqrt(n).  A difference of one set function: Markov equivalent DAGs have equal totals.  Without
missing cells it is the BIC.  Levels that nobody holds are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.special import xlogy

from jaxcd.data import Dataset
from jaxcd.ops.available_cases import AvailableTables, completed
from jaxcd.scores.base import BatchedScore, several_levels

__all__ = ["AvailableBIC", "available_tables"]

# A joint table is completed as a whole where it has at most so many cells, and so many rows for
# each of those without missing codes.
_MOST_CELLS, _ROWS_A_CELL = 1 << 20, 20


def available_tables(data: Dataset) -> AvailableTables:
    """The agreeing tables of discrete data, of the levels that some record holds; exact, and so not
    private.

    Raises:
        DomainError: a column is numeric.
    """
    can_miss = [column.missing is not None for column in data.domain.columns.values()]
    declared = tuple(cardinality or 1 for cardinality in data.domain.cardinalities)
    held = []
    for codes_of, k, may in zip(data.codes.T, declared, can_miss, strict=True):
        missing = [k - 1] if may else []
        held.append([*(np.setdiff1d(codes_of, missing).tolist() or [0]), *missing])
    codes = np.stack([np.searchsorted(k, data.codes[:, j]) for j, k in enumerate(held)], axis=1)
    cardinalities = tuple(map(len, held))

    def table(columns: tuple[int, ...]) -> np.ndarray:
        shape = [cardinalities[j] for j in columns]
        cells = np.ravel_multi_index([codes[:, j] for j in columns], shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    d = len(cardinalities)
    found = AvailableTables(
        table,
        can_miss=can_miss,
        n_samples=data.n_samples,
        pairs=[(i, j) for i in range(d) for j in range(i + 1, d)],
    )
    cells = math.prod(k - may for k, may in zip(cardinalities, can_miss, strict=True))
    if math.prod(cardinalities) > _MOST_CELLS or cells * _ROWS_A_CELL > found.n_samples:
        return found
    joint = completed(table(tuple(range(d))), can_miss)
    return found.agreeing_with(joint)


@final
class AvailableBIC(BatchedScore):
    """BIC from tables that agree; for runs without privacy.

    Args:
        names: the variables.
        tables: of their sets.
        max_parents: the largest number of parents that a search tries.
        penalty: a factor of the BIC's, positive.
    """

    def __init__(
        self,
        names: Sequence[str],
        tables: AvailableTables,
        *,
        max_parents: int = 3,
        penalty: float = 1.0,
    ) -> None:
        super().__init__(names, max_parents=max_parents)
        self._tables_of, self._penalty = tables, penalty
        n = float(tables.n_samples)
        self._price = penalty / 2 * math.log(n)
        self._values: dict[tuple[int, ...], float] = {(): n * math.log(n) - self._price}
        self._levels = tuple(tables.table((j,)).size for j in range(len(self.names)))

    def candidates(self, node: int) -> tuple[int, ...]:
        """All others but constants."""
        return several_levels(self._levels, node)

    def _value(self, columns: tuple[int, ...]) -> float:
        if columns not in self._values:
            table = self._tables_of.nonnegative(columns)
            fit = float(xlogy(table, table).sum())
            self._values[columns] = fit - self._price * self._tables_of.price(columns)
        return self._values[columns]

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        return np.array(
            [
                self._value(tuple(sorted((node, *parents)))) - self._value(tuple(sorted(parents)))
                for parents in families
            ]
        )
