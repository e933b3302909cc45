"""A table of which numeric columns are read in bins that were released after it was opened.

An engine counts by the declaration with which it was opened, and its own reading of a number need
not be that of a stream.  So these counts are made here, over blocks of rows: one pass a question,
and the same numbers as from rows in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.column_types import Binned
from jaxcd.data.missing import Missing
from jaxcd.data.rows import Block, Codes, Columns, Rows, discrete_places

__all__ = ["TableInBins"]


@final
class TableInBins(Rows):
    """Rows that stay where they are, with bins in the place of numeric columns.

    Args:
        table: with the numeric columns.
        bins: by column.
    """

    def __init__(self, table: Rows, bins: Mapping[str, Binned]) -> None:
        self._table, self._bins = table, dict(bins)
        self.domain = table.domain.in_bins(bins)
        self.n_samples, self.missing, self.snapshot = (
            table.n_samples,
            table.missing,
            table.snapshot,
        )

    @property
    def has_people(self) -> bool:
        return self._table.has_people

    @property
    def n_people(self) -> int:
        return self._table.n_people

    def reading(self, missing: Missing | str) -> TableInBins:
        return TableInBins(self._table.reading(missing), self._bins)

    def in_bins(self, bins: Mapping[str, Binned]) -> TableInBins:
        return TableInBins(self._table, {**self._bins, **bins})

    def where(self, rows: NDArray[np.bool_]) -> Rows:
        found: Rows = self._table.where(rows).in_bins(self._bins)  # type: ignore[attr-defined]
        return found

    def counts(
        self, sets: Sequence[Columns], *, by_person: bool = False
    ) -> list[NDArray[np.int64]]:
        discrete_places(self.domain, sets)
        asked = sorted({v for columns in sets for v in columns})
        place = {v: i for i, v in enumerate(asked)}
        cardinalities = [self.domain.cardinalities[v] or 1 for v in asked]
        found = [
            np.zeros([self.domain.cardinalities[v] or 1 for v in columns], dtype=np.int64)
            for columns in sets
        ]
        names = [self.names[v] for v in asked] or self.names[:1]
        for block in self.blocks(names, by_person=by_person):
            cells = np.stack([block.cells[name] for name in names], axis=1)
            part = Codes(cells, cardinalities)
            new = part.counts([tuple(place[v] for v in columns) for columns in sets])
            for table, more in zip(found, new, strict=True):
                table += more
        return found

    def occupied(self, columns: Columns) -> NDArray[np.int64]:
        return self._table.occupied(columns)

    def blocks(self, names: Sequence[str], *, by_person: bool = False) -> Iterator[Block]:
        for block in self._table.blocks(names, by_person=by_person):
            cells = {
                name: self._bins[name].bins_of(values, block.missing.get(name))
                if name in self._bins
                else values
                for name, values in block.cells.items()
            }
            yield replace(block, cells=cells)
