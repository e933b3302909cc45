"""Rows that stay where they are: counted by the engine that holds them, or streamed from parquet.

A :class:`Table` answers what :class:`jaxcd.data.rows.Rows` are asked, and nothing else.  Counts are
made by the engine, in queries that each answer many sets of columns (:mod:`jaxcd.data.covers`);
what comes back are tables of counts.  Sums of maps of numeric columns are added up here, over a
stream of blocks of the columns that they need: the map is then the same function, to the last bit,
for every engine, which no engine's own arithmetic promises.

docs/PRIVACY.md X states what a guarantee assumes of a table.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import is_whole
from jaxcd.data.column_types import Binned, Numeric
from jaxcd.data.columns import encode
from jaxcd.data.covers import covers, marginal
from jaxcd.data.domain import Domain, declared_domain, describe
from jaxcd.data.engines import Engine, LazyEngine, ParquetEngine
from jaxcd.data.missing import Missing
from jaxcd.data.rows import Block, Columns, Rows, discrete_places
from jaxcd.data.table_in_bins import TableInBins
from jaxcd.errors import DataError, DomainError, OptionError

__all__ = ["Table"]

_MOST_ROWS = 1 << 33  # so that no sum of whole numbers overflows, whatever the rows are
_MOST_DENSE = 1 << 26  # cells of one table
_MOST_KEPT = 1 << 22  # cells of tables that are kept for later questions


@final
class Table(Rows):
    """A table that stays where it is: a lazy frame of DuckDB, Polars, PySpark or Ibis, or parquet
    files (:meth:`parquet`).

    It goes wherever ``data`` goes, as far as counts and sums over rows suffice: to
    :func:`jaxcd.release`, to :func:`jaxcd.discover` and :func:`jaxcd.recommend`, to
    :func:`jaxcd.pc` and :func:`jaxcd.tree_pc` with tests that count.  What it answers is, to the
    last bit, what the same rows answer in memory (:class:`jaxcd.Dataset`).

    Args:
        frame: a lazy frame that narwhals takes: a Polars ``LazyFrame``, a DuckDB relation, a
            PySpark data frame, an Ibis table.  Its columns are those of the domain, in any order,
            and those that the domain ignores.
        domain: the declared type of every column, or the path of a domain file.
        n_samples: the number of rows, 2 to 2^33; declared, because a private run does not count and
            publish it.
        snapshot: in words which state of the table this is, such as a date or a version; public,
            and kept in what is bought.
        missing: how searches without privacy read missing cells.
        progress: a function of (queries done, all queries of this question), called before each
            query; None for none.

    Raises:
        DataError: the frame's columns are not the domain's, or not of a type that can be read.
        DomainError: the domain is not declared, or has a column that says which rows belong to one
            person.
        OptionError: the frame, n_samples or the snapshot is not of its kind.

    Guarantee:
        That of what is bought from it, if the frame has one row for each person (the row of a view
        is the unit: a view that repeats, joins, windows or limits rows can show a person in
        several), if the engine shows one unchanging state to all queries (counts that do not add up
        to n_samples are refused, without saying what they add up to), and if it counts exactly.
        Proof: docs/PRIVACY.md X.

    Example:
        >>> import jax, jaxcd, polars
        >>> frame = polars.LazyFrame({"a": ["x", "y"] * 500, "b": ["u", "u", "v", "v"] * 250})
        >>> domain = jaxcd.Domain(
        ...     {"a": jaxcd.Categorical(("x", "y")), "b": jaxcd.Categorical(("u", "v"))}
        ... )
        >>> table = jaxcd.Table(frame, domain=domain, n_samples=1_000, snapshot="2026-11-01")
        >>> bought = jaxcd.release(
        ...     table,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(0)),
        ... )
        >>> bought.snapshot, bought.n_samples
        ('2026-11-01', 1000)
    """

    def __init__(
        self,
        frame: Any,
        *,
        domain: Domain | str | Path,
        n_samples: int,
        snapshot: str,
        missing: Missing | str = Missing.IGNORE,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        domain = _checked(domain, n_samples, snapshot)
        self._open(LazyEngine(frame, domain), domain, n_samples, snapshot, missing, progress)

    @classmethod
    def parquet(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        domain: Domain | str | Path,
        n_samples: int,
        snapshot: str,
        missing: Missing | str = Missing.IGNORE,
        progress: Callable[[int, int], None] | None = None,
    ) -> Table:
        """Parquet files, read in pieces as often as there are questions; never whole in memory.

        Args:
            path: a file, a folder, a pattern such as ``"lake/*.parquet"``, or several of these; the
                rows of all files that fit.
            domain: as for :class:`Table`.
            n_samples: as ``domain``.
            snapshot: as ``domain``.
            missing: as ``domain``.
            progress: as ``domain``.

        Raises:
            DataError: there is no such file, or as for :class:`Table`.
            DomainError: as for :class:`Table`.
            OptionError: as for :class:`Table`.

        Example:
            >>> import jaxcd, pathlib, polars, tempfile
            >>> lake = pathlib.Path(tempfile.mkdtemp())
            >>> for part in range(3):
            ...     polars.DataFrame({"a": [0, 1], "b": [part % 2, 1]}).write_parquet(
            ...         lake / f"{part}.parquet"
            ...     )
            >>> domain = jaxcd.Domain({"a": jaxcd.Ordinal((0, 1)), "b": jaxcd.Ordinal((0, 1))})
            >>> jaxcd.Table.parquet(
            ...     lake / "*.parquet", domain=domain, n_samples=6, snapshot="v1"
            ... ).n_columns
            2
        """
        domain = _checked(domain, n_samples, snapshot)
        table = cls.__new__(cls)
        table._open(ParquetEngine(path, domain), domain, n_samples, snapshot, missing, progress)
        return table

    def _open(
        self,
        engine: Engine,
        domain: Domain,
        n_samples: int,
        snapshot: str,
        missing: Missing | str,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._engine = engine
        self.domain, self.n_samples, self.snapshot = domain, int(n_samples), snapshot
        self.missing = Missing.of(missing)
        if progress is not None and not callable(progress):
            raise OptionError(
                f"progress = {progress!r} is no function of (queries done, all queries); give one, "
                "or None"
            )
        self._progress = progress
        self._kept: dict[Columns, NDArray[np.int64]] = {}
        self.n_queries = 0

    def __repr__(self) -> str:
        return (
            f"Table({self._engine.name}, n_samples={self.n_samples}, snapshot {self.snapshot!r}; "
            f"{describe(self.domain)})"
        )

    @property
    def has_people(self) -> bool:
        """False: a domain with a column of persons is refused."""
        return False

    @property
    def n_people(self) -> int:
        """The number of rows."""
        return self.n_samples

    def reading(self, missing: Missing | str) -> Table:
        """The same table, whose missing cells searches without privacy read in this way.

        Raises:
            OptionError: it is no reading.
        """
        other = copy.copy(self)
        other.missing = Missing.of(missing)
        return other

    def in_bins(self, bins: Mapping[str, Binned]) -> Rows:
        """The same table, of which the named numeric columns are read in bins: their counts stream
        the rows once a question.
        """
        return TableInBins(self, bins)

    def where(self, rows: NDArray[np.bool_]) -> Table:
        """Refused: a table gives no rows by number.

        Raises:
            OptionError: always.
        """
        raise OptionError(
            "data: a Table gives no rows by number, which a subsample needs; use a decider without "
            "subsampling, or a release"
        )

    def counts(
        self, sets: Sequence[Columns], *, by_person: bool = False
    ) -> list[NDArray[np.int64]]:
        discrete_places(self.domain, sets)
        if by_person:
            raise OptionError(_NO_PEOPLE)
        cards = [k or 1 for k in self.domain.cardinalities]
        for columns in sets:
            if math.prod(cards[v] for v in columns) > _MOST_DENSE:
                raise OptionError(
                    f"data: the table of {len(columns)} columns has more than {_MOST_DENSE} cells; "
                    "ask for fewer columns"
                )
        cells: dict[Columns, NDArray[np.int64]] = {}
        for columns in sets:
            cover = self._kept_cover(columns)
            if cover is not None:
                cells[cover] = self._kept[cover]
        asked = [s for s in sets if not any(set(c).issuperset(s) for c in cells)]
        todo = covers(asked, cards)
        for cover, table in zip(todo, self._asked(todo, cards), strict=True):
            cells[cover] = table
        found = []
        for columns in sets:
            cover = min(
                (c for c in cells if set(c).issuperset(columns)), key=lambda c: cells[c].size
            )
            found.append(marginal(cells[cover], cover, columns))
        return found

    def _kept_cover(self, columns: Columns) -> Columns | None:
        fitting = (c for c in self._kept if set(c).issuperset(columns))
        return min(fitting, key=lambda c: self._kept[c].size, default=None)

    def _asked(self, todo: Sequence[Columns], cards: Sequence[int]) -> list[NDArray[np.int64]]:
        """Exact tables, each checked against the declared number of rows, and kept."""
        shapes = [tuple(cards[v] for v in cover) for cover in todo]
        tables = self._engine.count(todo, shapes, self._told)
        for cover, table in zip(todo, tables, strict=True):
            if int(table.sum()) != self.n_samples:
                raise DataError(
                    "n_samples: the counts of the table do not add up to the declared number of "
                    "rows; declare that of this snapshot, and let no row change while it is read"
                )
            self._kept[cover] = table
        while self._kept and sum(table.size for table in self._kept.values()) > _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return tables

    def _told(self, done: int, total: int) -> None:
        self.n_queries += 1
        if self._progress is not None:
            self._progress(done, total)

    def occupied(self, columns: Columns) -> NDArray[np.int64]:
        raise OptionError(
            f"data: a table of {len(columns)} columns has too many cells to be counted by an "
            "engine; limit the sets with max_parents"
        )

    def blocks(self, names: Sequence[str], *, by_person: bool = False) -> Iterator[Block]:
        if by_person:
            raise OptionError(_NO_PEOPLE)
        n_rows = 0
        for raws in self._engine.stream(names):
            cells, missing = {}, {}
            for name, raw in zip(names, raws, strict=True):
                cells[name], absent = encode(raw, self.domain[name], strict=False)
                if absent is not None:
                    missing[name] = absent
                elif (code := _missing_code(self.domain, name)) is not None:
                    missing[name] = cells[name] == code
            n_rows += len(cells[names[0]])
            yield Block(cells, missing)
        if n_rows != self.n_samples:
            raise DataError(
                "n_samples: the table does not have the declared number of rows; declare that of "
                "this snapshot, and let no row change while it is read"
            )


_NO_PEOPLE = (
    "data: a Table counts rows, not people; use unit='row' on a view with one row for each person, "
    "or read the rows with jaxcd.read_csv"
)


def _missing_code(domain: Domain, name: str) -> int | None:
    column = domain[name]
    return None if isinstance(column, Numeric) else column.missing_code


def _checked(domain: Any, n_samples: Any, snapshot: Any) -> Domain:
    domain = declared_domain(domain)
    if not domain.declared:
        raise DomainError(
            "domain: it was inferred from data; a Table needs a declared one (a Domain, or a "
            "domain file)"
        )
    if domain.person is not None:
        raise DomainError(
            f"domain: column {domain.person!r} says which rows belong to one person, and a Table "
            "counts rows; give a view with one row for each person, and mark the column "
            '"ignore": true'
        )
    if domain.n_columns < 2:
        raise DomainError("domain: a Table must have at least 2 columns; declare another")
    if not is_whole(n_samples, 2, _MOST_ROWS):
        raise OptionError(
            f"n_samples = {n_samples!r} is not a number of rows from 2 to 2**33; declare how many "
            "rows this snapshot has"
        )
    if not (isinstance(snapshot, str) and snapshot.strip()):
        raise OptionError(
            f"snapshot = {snapshot!r} says nothing; give words for the state of the table, such as "
            "a date or a version"
        )
    return domain
