"""The one seam to the rows: counts of sets of columns, and exact sums over rows.

Everything that a private release or a discrete test needs of the rows is one of two questions: the
joint counts of some sets of columns, or the sum over rows of whole numbers that a public function
makes of each row.  Whoever answers both is :class:`Rows`: a data set in memory, or a table that
stays where it is.

Both answers are whole numbers, so they do not depend on the order of the rows, on how the rows are
cut into blocks, or on how many threads, devices or machines add them up: every kind of rows gives
the same bits.  What they say is sensitive; in a private run only the door asks.
"""

from __future__ import annotations

import abc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.column_types import Binned
from jaxcd.data.domain import Domain
from jaxcd.data.missing import Missing
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.ops import contingency
from jaxcd.ops.tilted_moments import ExactSum

__all__ = ["Block", "Codes", "Columns", "Counted", "Rows"]

Columns: TypeAlias = tuple[int, ...]


class Counted(abc.ABC):
    """Rows of discrete columns of which joint counts are known.

    Attributes:
        n_samples: the number of rows.
    """

    n_samples: int

    @abc.abstractmethod
    def counts(self, sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        """The joint counts of sets of columns, exact.

        Args:
            sets: positions of different discrete columns, in any order.

        Returns:
            For each set int64 (k_1, ..., k_s), the number of rows in each cell.
        """

    def tables(self, variables: NDArray, shape: tuple[int, int, int]) -> NDArray[np.int32]:
        """The tables of queries whose conditioning sets have one size.

        Args:
            variables: integers (n_queries, 2 + s): x, y, then the conditioning set.
            shape: (K, A, B), at least the number of strata, of levels of x and of y.

        Returns:
            int32 (n_queries, K, A, B), zero where padded; the last column of the conditioning set
            is the fastest.

        Raises:
            OptionError: there are 2^31 rows or more.
        """
        if self.n_samples >= 1 << 31:
            raise OptionError(
                "data: a test counts in 32 bits, which 2**31 rows overflow; buy a release and "
                "search that"
            )
        tables = np.zeros((len(variables), *shape), dtype=np.int32)
        sets = [(*map(int, given), int(x), int(y)) for x, y, *given in variables]
        for table, counts in zip(tables, self.counts(sets), strict=True):
            cells = counts.reshape(-1, *counts.shape[-2:])
            table[: len(cells), : cells.shape[1], : cells.shape[2]] = cells
        return tables

    @abc.abstractmethod
    def where(self, rows: NDArray[np.bool_]) -> Counted:
        """The rows of a mask, bool (n_samples,)."""


def by_kind(
    sets: Sequence[Columns], cardinalities: Sequence[int]
) -> dict[tuple[int, ...], list[int]]:
    """The places of the sets of the same cardinalities."""
    places: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, columns in enumerate(sets):
        places[tuple(cardinalities[v] for v in columns)].append(place)
    return places


@final
class Codes(Counted):
    """Codes in memory, counted by bit masks (:mod:`jaxcd.ops.contingency`).

    Args:
        codes: integers (n_samples, n_columns).
        cardinalities: the number of codes of each column.
    """

    def __init__(self, codes: NDArray, cardinalities: Sequence[int]) -> None:
        self._codes = codes
        self._cardinalities = tuple(int(k) for k in cardinalities)
        self.n_samples = int(codes.shape[0])

    @cached_property
    def _masks(self) -> contingency.LevelMasks:
        return contingency.pack_levels(self._codes, self._cardinalities)

    def counts(self, sets: Sequence[Columns]) -> list[NDArray[np.int64]]:
        found: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(sets)
        for kind, places in by_kind(sets, self._cardinalities).items():
            if not kind:
                alike: Any = [np.array(self.n_samples)] * len(places)
            else:
                alike = contingency.count_sets(self._masks, np.array([sets[i] for i in places]))
            for place, counts in zip(places, alike, strict=True):
                found[place] = counts
        return found

    def tables(self, variables: NDArray, shape: tuple[int, int, int]) -> NDArray[np.int32]:
        return contingency.count_tables(self._masks, variables, shape)

    def where(self, rows: NDArray[np.bool_]) -> Codes:
        return Codes(self._codes[rows], self._cardinalities)

    def occupied(self, columns: Columns) -> NDArray[np.int64]:
        """The counts of the cells that hold rows, by sorting the rows' cell numbers."""
        cell, n_cells = np.zeros(self.n_samples, dtype=np.int64), 1
        for v in columns:
            # cells that occur are numbered anew before the numbers overflow
            if n_cells * self._cardinalities[v] >= 1 << 62:
                cell = np.unique(cell, return_inverse=True)[1].astype(np.int64)
                n_cells = self.n_samples
            cell = cell * self._cardinalities[v] + self._codes[:, v]
            n_cells *= self._cardinalities[v]
        return np.unique(cell, return_counts=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Some of the rows, as far as a sum asks for them.

    Args:
        cells: by column name int32 codes or float64 values, (number of rows,).
        missing: by column name which cells are missing; a column without an entry has none.
        weights: of the rows, in units of 2^-20 of a person, int64; None counts each row once.
        empty: the exact sum of no rows' products, of a shape (d, d): where they are added up.
    """

    cells: Mapping[str, NDArray]
    missing: Mapping[str, NDArray[np.bool_]]
    weights: NDArray[np.int64] | None = None
    empty: Callable[[tuple[int, int]], Any] = ExactSum

    def values(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The values of numeric columns, float64 (number of rows, len(names)), column-major."""
        return np.stack([self.cells[name] for name in names]).T

    def is_missing(self, name: str) -> NDArray[np.bool_]:
        """Which cells of the column are missing."""
        found = self.missing.get(name)
        return np.zeros(len(self.cells[name]), dtype=np.bool_) if found is None else found


class Rows(Counted):
    """An unchanging table of rows behind a declared domain: what a release or a test may ask.

    Attributes:
        domain: the declared columns, which sets of columns number.
        n_samples: the number of rows (public).
        missing: how searches without privacy read missing cells.
        snapshot: in words which state of the table it is (public); None for rows in memory.
    """

    domain: Domain
    missing: Missing
    snapshot: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return self.domain.names

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return self.domain.n_columns

    @property
    @abc.abstractmethod
    def has_people(self) -> bool:
        """Whether a column says which rows belong to one person."""

    @property
    @abc.abstractmethod
    def n_people(self) -> int:
        """The number of people: of rows, where no column tells them apart."""

    @abc.abstractmethod
    def reading(self, missing: Missing | str) -> Rows:
        """The same rows, whose missing cells searches read in this way."""

    @abc.abstractmethod
    def in_bins(self, bins: Mapping[str, Binned]) -> Rows:
        """The same rows, of which numeric columns are read in bins (public): each cell of a row by
        itself, so that neighbouring tables stay neighbours.
        """

    @property
    def leaves_out(self) -> tuple[bool, ...]:
        """For each column whether its missing cells, which the domain declares, are left out."""
        ignored = self.missing is Missing.IGNORE
        return tuple(
            ignored and column.missing is not None for column in self.domain.columns.values()
        )

    @abc.abstractmethod
    def counts(
        self, sets: Sequence[Columns], *, by_person: bool = False
    ) -> list[NDArray[np.int64]]:
        """The joint counts of sets of columns, exact.

        Args:
            sets: positions of different discrete columns in the domain, in any order.
            by_person: count each person once, in units of 2^-20 (:mod:`jaxcd.ops.people`).

        Returns:
            For each set int64 (k_1, ..., k_s).
        """

    @abc.abstractmethod
    def occupied(self, columns: Columns) -> NDArray[np.int64]:
        """The joint counts of the cells that hold rows, in any order: for tables of many cells."""

    @abc.abstractmethod
    def blocks(self, names: Sequence[str], *, by_person: bool = False) -> Iterator[Block]:
        """All rows of this process, in blocks that fit in memory, with the cells of the named
        columns.
        """

    @property
    def tell(self) -> Callable[[NDArray[np.int64]], NDArray[np.int64]] | None:
        """Where several processes hold the rows, a function that gives the whole numbers of the
        first to all, and that they call together; None where one process holds them.
        """
        return None

    def _of_all(self, total: Any, names: Sequence[str]) -> Any:
        """The sum over processes of what the rows of each add up to."""
        return total

    @final
    def sums(
        self, names: Sequence[str], function: Callable[[Block], Any], *, by_person: bool = False
    ) -> Any:
        """The sum over all rows of whole numbers that a public function makes of each row, exact.

        Args:
            names: the columns that the function reads.
            function: of a block: the sum over its rows, times their weights, as an int64 array or a
                :class:`jaxcd.ops.tilted_moments.ExactSum`.  What it makes of a row must follow
                from that row alone, to the last bit: no product of matrices before rounding.
            by_person: give blocks the weights of people.

        Returns:
            What the function returns, added up.

        Raises:
            DataError: there is no row.
        """
        total: Any = None
        for block in self.blocks(names, by_person=by_person):
            part = function(block)
            total = part if total is None else total + part
        if total is None:
            raise DataError("data: there are no rows; declare and give at least 2")
        return self._of_all(total, names)


def discrete_places(domain: Domain, sets: Sequence[Columns]) -> list[Columns]:
    """The same sets by position among the discrete columns; DomainError for a numeric one."""
    place = {
        j: i
        for i, j in enumerate(
            j for j, column in enumerate(domain.columns.values()) if column.is_discrete
        )
    }
    for columns in sets:
        for v in columns:
            if v not in place:
                raise DomainError(
                    f"column {domain.names[v]!r} is numeric and has no counts; select the discrete "
                    "columns first, or declare bins for it"
                )
    return [tuple(place[v] for v in columns) for columns in sets]
