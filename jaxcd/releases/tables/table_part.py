r"""The tables of some columns of a release in some of its rows; post-processing.

The rows are those that have one of m_c of the k_c codes in each of a few columns c.  Their table of
S is the released table of S and these columns, summed over the codes.  Noise of variance v_U on
every entry of R_U (:mod:`jaxcd.ops.interactions`) adds to each of its cells

    v_U  prod over U and S of (1 - 1 / k_j)  prod over S - U of 1 / k_j^2
         prod over c in U of m_c (1 - m_c / k_c)  prod over c not in U of (m_c / k_c)^2,

because m_c rows of the contrasts of c add up to a vector of squared norm m_c (1 - m_c / k_c).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from jaxcd.data.interventions import Rows
from jaxcd.errors import OptionError
from jaxcd.ops.nearest_table import nearest_table

__all__ = ["TablePart"]

Columns = tuple[int, ...]


@final
class TablePart:
    """What a score of released tables asks of a release, answered for a part of it.

    Args:
        release: of noisy interactions.
        names: the columns of the part, in the release's order, none of those of ``rows``.
        rows: the rows that count, all where it is empty.

    Raises:
        OptionError: the columns of ``rows`` were not measured together.
    """

    def __init__(self, release: Any, names: Sequence[str], rows: Rows) -> None:
        place = {name: j for j, name in enumerate(release.names)}
        self._release = release
        self.names = tuple(names)
        self._columns = tuple(place[name] for name in names)
        self._codes = {place[name]: codes for name, codes in rows.items()}
        if not release.is_measured(tuple(sorted(self._codes))):
            raise OptionError(
                f"release: which rows count is told by {', '.join(rows)}, whose table together was "
                "not measured; declare one intervention column"
            )

    @cached_property
    def n_samples(self) -> float:
        """How many rows count, by the release; at least 1."""
        if not self._codes:
            return float(self._release.n_samples)
        columns = tuple(sorted(self._codes))
        table = nearest_table(self._release.table(columns), float(self._release.n_samples))
        return max(float(self._kept(table, columns).sum()), 1.0)

    @property
    def interactions(self) -> Any:
        """Those of the release."""
        return self._release.interactions

    @cached_property
    def candidates(self) -> tuple[Columns, ...]:
        """The release's, in the positions of the part."""
        inner = {j: i for i, j in enumerate(self._columns)}
        found = self._release.candidates
        return tuple(tuple(inner[u] for u in found[v] if u in inner) for v in self._columns)

    @property
    def cardinalities(self) -> Columns:
        """The number of levels of each column of the part."""
        return tuple(self._release.cardinalities[j] for j in self._columns)

    @property
    def noise_gain(self) -> float:
        """That of the release."""
        return float(self._release.noise_gain)

    @property
    def most_inflation(self) -> float:
        """That of the release."""
        return float(self._release.most_inflation)

    def _outer(self, columns: Columns) -> Columns:
        return tuple(sorted((*(self._columns[j] for j in columns), *self._codes)))

    def _kept(self, table: np.ndarray, outer: Columns) -> np.ndarray:
        for axis, column in enumerate(outer):
            if column in self._codes:
                table = np.take(table, list(self._codes[column]), axis=axis)
        return table

    def is_measured(self, columns: Columns) -> bool:
        """Whether the table of these columns (sorted positions) can be built."""
        return bool(self._release.is_measured(self._outer(columns)))

    def prepare(self, sets: Collection[Columns]) -> None:
        """Has the release build many tables together."""
        outer = [self._outer(columns) for columns in sets]
        self._release.prepare([s for s in outer if self._release.is_measured(s)])

    def table(self, columns: Columns) -> np.ndarray:
        """The table of the columns (sorted positions) in the rows that count, float64."""
        outer = self._outer(columns)
        table = self._kept(self._release.table(outer), outer)
        axes = tuple(axis for axis, c in enumerate(outer) if c in self._codes)
        return np.asarray(table.sum(axis=axes))

    def n_parameters(self, columns: Columns) -> float:
        """What the table counts as parameters, in the release."""
        return float(self._release.n_parameters(tuple(self._columns[j] for j in columns)))

    def cell_variance(self, columns: Columns) -> float:
        """The variance of the noise on each cell of :meth:`table`."""
        summed = {column: len(codes) for column, codes in self._codes.items()}
        return float(self._release.cell_variance(self._outer(columns), summed=summed))
