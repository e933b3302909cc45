"""Counts of sets of discrete columns, many sets at once: what every discrete score is a function
of.

Discrete scores here are differences of one function of sets, local(v, P) = g(P and v) - g(P), and
g(S) is a sum over the cells of the table of S that hold records.  So a set is counted once,
whatever families it is part of, and empty cells may be left out.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np

from jaxcd.data.rows import Rows, discrete_places
from jaxcd.errors import DataError
from jaxcd.ops.nearest_table import nearest_table

__all__ = ["CountedSets", "Counts", "DataCounts", "TableCounts", "denoised_counts"]

Columns = tuple[int, ...]

# Of tables with more cells than this, and than a few for each row, only the cells that hold rows
# are asked for.
_DENSE_CELLS = 1 << 12
_CELLS_PER_ROW = 4
_MOST_DENSE = 1 << 24


class Counts(abc.ABC):
    """Counts of sets of columns.  cardinalities: the columns' numbers of levels.  n_samples: how
    many rows the counts add up to.
    """

    cardinalities: Columns
    n_samples: int

    @abc.abstractmethod
    def of(self, sets: Sequence[Columns]) -> list[np.ndarray]:
        """The counts of each set (sorted positions): not negative, in any shape and order; empty
        cells may be left out.
        """

    def held_levels(self) -> Columns:
        """How many levels of each column some record holds, at least 1."""
        tables = self.of([(column,) for column in range(len(self.cardinalities))])
        return tuple(max(int(np.count_nonzero(table)), 1) for table in tables)


@final
class DataCounts(Counts):
    """Exact counts of rows; not private.

    Raises:
        DomainError: a column is numeric.
    """

    def __init__(self, data: Rows) -> None:
        discrete_places(data.domain, [tuple(range(data.n_columns))])
        self._rows = data
        self.cardinalities = tuple(cardinality or 1 for cardinality in data.domain.cardinalities)
        self.n_samples = data.n_samples

    def of(self, sets: Sequence[Columns]) -> list[np.ndarray]:
        """The counts of each set."""
        found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(sets)
        most = min(max(_DENSE_CELLS, _CELLS_PER_ROW * self.n_samples), _MOST_DENSE)
        dense = [
            place
            for place, columns in enumerate(sets)
            if math.prod(self.cardinalities[v] for v in columns) <= most
        ]
        for place, counts in zip(dense, self._rows.counts([sets[i] for i in dense]), strict=True):
            found[place] = counts
        for place in set(range(len(sets))).difference(dense):
            found[place] = self._rows.occupied(sets[place])
        return found


@final
class TableCounts(Counts):
    """Sums of a joint table, one axis a variable: for expected or denoised counts.

    Args:
        n_samples: how many rows it stands for.

    Raises:
        DataError: an entry is negative or not finite.
    """

    def __init__(self, table: np.ndarray, *, n_samples: int) -> None:
        self._joint = np.array(table, dtype=np.float64)
        if not (np.isfinite(self._joint) & (self._joint >= 0)).all():
            raise DataError(
                "table must hold finite counts, not negative ones; project it onto the simplex "
                "first"
            )
        self.cardinalities = tuple(self._joint.shape)
        self.n_samples = n_samples

    def of(self, sets: Sequence[Columns]) -> list[np.ndarray]:
        """The sums of each set."""
        axes = range(self._joint.ndim)
        return [
            self._joint.sum(axis=tuple(axis for axis in axes if axis not in columns))
            for columns in sets
        ]

    def part(self, columns: Sequence[int], rows: Mapping[int, Sequence[int]]) -> TableCounts:
        """The counts of some columns, in their order, in the rows that have one of the given codes
        in each column of ``rows``.
        """
        table = self._joint
        for axis, codes in rows.items():
            table = np.take(table, list(codes), axis=axis)
        others = tuple(axis for axis in range(table.ndim) if axis not in columns)
        order = np.argsort(np.argsort(list(columns)))
        table = table.sum(axis=others).transpose(order)
        n_samples = max(round(float(table.sum())), 1) if rows else self.n_samples
        return TableCounts(table, n_samples=n_samples)


def denoised_counts(values: np.ndarray, *, scale: float, n_samples: int) -> TableCounts:
    """The counts of a noisy joint table after cells that noise alone explains are emptied;
    post-processing.

    Args:
        values: one axis a variable, of any sign.
        scale: b of the noise.  A noise of scale b alone passes c b in one of 2 e^c cells, so that b
            log(cells / 2) is passed by about one empty cell of all; what is left is projected onto
            tables of n_samples rows.
    """
    noisy = np.asarray(values, dtype=np.float64)
    cut = scale * math.log(max(noisy.size / 2, 1.0))
    kept = np.where(noisy < cut, 0.0, noisy)
    return TableCounts(
        nearest_table(kept if kept.any() else noisy, float(n_samples)), n_samples=n_samples
    )


@final
class CountedSets:
    """A function g of sets of columns that is a sum over cells; every set is counted once.

    Args:
        counts: of what.
        term: the summands of many cells; term(counts, cells) with the counts of cells, and for each
            of them the number of cells of its table, both float64 (K,).
        levels: the columns' numbers of levels that make the number of cells; None for all.
    """

    def __init__(
        self,
        counts: Counts,
        term: Callable[[np.ndarray, np.ndarray], np.ndarray],
        *,
        levels: Columns | None = None,
    ) -> None:
        self.counts = counts
        self._term = term
        self._levels = counts.cardinalities if levels is None else levels
        self._known: dict[Columns, float] = {}

    def n_cells(self, columns: Columns) -> int:
        """The number of cells of the table of the columns."""
        return math.prod(self._levels[v] for v in columns)

    def values(self, sets: Sequence[Columns]) -> list[float]:
        """g of each set (sorted positions)."""
        fresh = [columns for columns in dict.fromkeys(sets) if columns not in self._known]
        if fresh:
            cells = [np.ravel(table).astype(np.float64) for table in self.counts.of(fresh)]
            lengths = [len(table) for table in cells]
            sizes = np.repeat([float(self.n_cells(columns)) for columns in fresh], lengths)
            terms = self._term(np.concatenate(cells), sizes)
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            self._known.update(zip(fresh, np.add.reduceat(terms, starts).tolist(), strict=True))
        return [self._known[columns] for columns in sets]

    def differences(self, node: int, families: Sequence[Columns]) -> np.ndarray:
        """g(P and node) - g(P) for each P of the families, float64 (len(families),)."""
        sets = [tuple(sorted((*parents, node))) for parents in families] + [
            tuple(sorted(parents)) for parents in families
        ]
        with_node, without = np.array(self.values(sets), dtype=np.float64).reshape(2, -1)
        return with_node - without
