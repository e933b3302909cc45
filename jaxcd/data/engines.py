"""What counts and streams the rows of a table: an engine behind narwhals, or parquet files.

An engine's own errors can show cells, so only their kind is passed on.  Nothing here samples,
approximates or counts distinct values by sketches; keys are whole numbers, so no collation folds
them, and text is compared under the engine's collation, which must tell any two texts apart.
"""

from __future__ import annotations

import abc
import contextlib
import glob
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import a_type, check_listed
from jaxcd.data.arrow import raw_column
from jaxcd.data.columns import RawColumn, encode
from jaxcd.data.domain import Domain
from jaxcd.data.frames import raw_columns_of_series
from jaxcd.data.held_types import check_held, held_type, holds_nothing
from jaxcd.data.parquet import OpenedParquet
from jaxcd.data.row_codes import check_type, code_of
from jaxcd.data.rows import Columns
from jaxcd.errors import DataError, JaxcdError, OptionError
from jaxcd.places import is_path, path_of

__all__ = ["Engine", "LazyEngine", "ParquetEngine", "parquet_files"]

Told = Callable[[int, int], None]

_ROWS_OF_A_BLOCK = 1 << 16
_COUNTED_TOGETHER = 1 << 24  # cells of the tables that one pass over the rows counts
_DIFFERENT = (("a", "A"), ("e", "\u00e9"), ("\u00e9", "e\u0301"), ("a", "a "), ("a", "\uff41"))
"""Texts that a collation may take for one: case, accents, spelling of accents, spaces, width."""


class Engine(abc.ABC):
    """Whatever holds the rows.  name: of the engine, public."""

    name: str
    _domain: Domain

    @abc.abstractmethod
    def count(
        self, covers: Sequence[Columns], shapes: Sequence[tuple[int, ...]], told: Told
    ) -> list[NDArray[np.int64]]:
        """The exact tables of sets of columns; ``told`` is called before each query."""

    @abc.abstractmethod
    def stream(self, names: Sequence[str]) -> Iterator[list[RawColumn]]:
        """All rows in blocks, with the named columns."""

    def _of_stream(
        self, covers: Sequence[Columns], shapes: Sequence[tuple[int, ...]], told: Told
    ) -> list[NDArray[np.int64]]:
        """The tables by the rule of memory, over the stream."""
        tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        start = 0
        while start < len(covers):
            end, cells = start, 0
            while end < len(covers) and (end == start or cells < _COUNTED_TOGETHER):
                cells += tables[end].size
                end += 1
            told(start, len(covers))
            self._scan(covers[start:end], shapes[start:end], tables[start:end])
            start = end
        return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]

    def _scan(
        self,
        covers: Sequence[Columns],
        shapes: Sequence[tuple[int, ...]],
        tables: Sequence[NDArray[np.int64]],
    ) -> None:
        """Adds all rows to the tables."""
        places = sorted({v for cover in covers for v in cover})
        names = [self._domain.names[v] for v in places] or [self._domain.names[0]]
        for raws in self.stream(names):
            codes = {
                v: encode(raw, self._domain[raw.name], strict=False)[0]
                for v, raw in zip(places, raws, strict=False)
            }
            n_rows = raws[0].n_samples
            for cover, shape, table in zip(covers, shapes, tables, strict=True):
                cell = np.zeros(n_rows, dtype=np.int64)
                for v, k in zip(cover, shape, strict=True):
                    cell *= k
                    cell += codes[v]
                if table.size > n_rows:
                    np.add.at(table, cell, 1)
                else:
                    table += np.bincount(cell, minlength=table.size)


def _without_rows(name: str, function: Callable[[], Any]) -> Any:
    """What the function returns; an error of an engine becomes one that shows no cell, in words,
    as its cause or as its context.
    """
    try:
        return function()
    except (JaxcdError, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
    # outside of the handler, so that it carries nothing of what it stands for
    raise DataError(
        f"data: {name} stopped with {kind}; its message may show rows and is not passed on: "
        "try the same expressions on a table that may be seen"
    )


def _pieces(name: str, parts: Generator[Any]) -> Generator[Any]:
    """What a stream of an engine gives, with its errors."""
    with contextlib.closing(parts):
        while (part := _without_rows(name, lambda: next(parts, None))) is not None:
            yield part


def _check_columns(found: Sequence[str], domain: Domain) -> None:
    for name in domain.names:
        if list(found).count(name) != 1:
            raise DataError(
                f"column {name!r} is in the domain but not in the data, or there twice; add it to "
                "the data or take it out of the domain"
            )
    for name in found:
        if name not in domain.columns_of_files:
            raise DataError(
                f"column {name!r} is in the data but not in the domain; declare it, or drop it "
                'with "ignore": true'
            )


@final
class LazyEngine(Engine):
    """A lazy frame of any engine that narwhals knows.

    Args:
        frame: of Polars, DuckDB, PySpark or Ibis; an eager frame is taken as it is.
        domain: the declared columns.

    Raises:
        DataError: the columns are not the domain's, or not of a type that can be read.
        OptionError: it is no lazy frame, or of SQLite, whose columns have no types.
    """

    def __init__(self, frame: Any, domain: Domain) -> None:
        import narwhals as nw

        try:
            taken = nw.from_native(frame)
            self._frame = taken.lazy()
        except TypeError:
            raise OptionError(
                f"frame: {a_type(frame)} is no lazy frame; give a Polars LazyFrame, a "
                "DuckDB relation, a PySpark data frame or an Ibis table, or use "
                "jaxcd.Table.parquet(path, ...)"
            ) from None
        self.name = str(taken.implementation.name).lower().replace("_", " ")
        _check_typed(self._frame)
        kind = self._frame.implementation
        # Of arrow and pandas, whose own expressions stop at a cell beyond the type they compare in.
        self._is_streamed = kind.is_pyarrow() or kind.is_pandas_like()
        self._types = self._found_types()
        _check_columns(list(self._types), domain)
        nothing = [name for name in domain.names if self._holds_nothing(name)]
        if nothing:
            # of a type that has nothing but nulls; as numbers they are nulls that compare
            self._frame = self._frame.with_columns(nw.col(*nothing).cast(nw.Float64))
            self._types |= dict.fromkeys(nothing, nw.Float64())
        for name in domain.names:
            if self._is_streamed:  # and read as in memory, whatever one cell made of the type
                check_held(name, self._types[name])
            else:
                check_type(name, self._types[name], domain[name])
        self._domain = domain
        self._codes: dict[str, Any] = {}
        self._told_apart = False  # whether collations were found to tell texts apart

    def _found_types(self) -> dict[str, Any]:
        """The columns' types, as narwhals names them."""
        import narwhals as nw

        if not self._is_streamed:
            return dict(_without_rows(self.name, self._frame.collect_schema).items())
        frame = nw.from_native(self._frame.to_native(), eager_only=True)
        return {name: held_type(frame[name]) for name in frame.columns}

    def _holds_nothing(self, name: str) -> bool:
        """Whether a column is of the type that has nothing but nulls."""
        import narwhals as nw
        import pyarrow as pa

        if self._is_streamed or self._types[name] != nw.Unknown:
            return holds_nothing(self._types[name])
        if self._frame.implementation.is_ibis():  # it gives text for all types it does not know
            kind = self._frame.to_native().schema()[name]
            return bool(kind.is_null() or str(getattr(kind, "raw_type", "")).strip('"') == "NULL")
        no_rows = _without_rows(self.name, lambda: _collected(self._frame.select(name).head(0)))
        return bool(pa.types.is_null(no_rows.schema.field(name).type))

    def _code(self, name: str) -> Any:
        if name not in self._codes:
            import narwhals as nw

            def distinct(condition: Any) -> Sequence[object]:
                cells = nw.col(name)
                if self._types[name] != nw.String:
                    cells = cells.cast(nw.String)
                found = self._frame.filter(condition).select(cells.alias(name)).unique()
                cells_found: list[object] = _collected(found)[name].to_pylist()
                return cells_found

            column = self._domain[name]
            self._codes[name] = code_of(name, self._types[name], column, distinct)
        return self._codes[name]

    def _check_collations(self) -> None:
        """Refuses columns whose collation takes two texts for one: a level would count the rows of
        others.

        What is compared are constants of the columns' types, so that the answer follows from the
        columns' and the session's collation, and not from a row.

        Raises:
            DataError: there is one.
        """
        import narwhals as nw

        texts = [
            name
            for name in self._domain.names
            if self._domain[name].is_discrete
            and self._types[name] in (nw.String, nw.Categorical, nw.Enum)
        ]
        if self._told_apart or not texts:
            return
        probes = []
        for j, name in enumerate(texts):
            cells = nw.col(name).cast(nw.String)
            for i, (one, other) in enumerate(_DIFFERENT):
                always = cells.is_null() | ~cells.is_null()
                cell = nw.when(always).then(nw.lit(one)).otherwise(cells)
                probes += [
                    (cell == other).alias(f"equal_{j}_{i}"),
                    cell.is_in([other]).alias(f"in_{j}_{i}"),
                ]
        found = _without_rows(
            self.name, lambda: _collected(self._frame.head(1).select(*probes)).to_pylist()
        )
        for each in (each for row in found for each, same in row.items() if same):
            _, j, i = each.split("_")
            raise DataError(
                f"column {texts[int(j)]!r} has a collation that takes {_DIFFERENT[int(i)][0]!r} "
                f"and {_DIFFERENT[int(i)][1]!r} for one text; give it a binary collation (a column "
                "'... COLLATE C', and no default collation of the session)"
            )
        self._told_apart = True

    def count(
        self, covers: Sequence[Columns], shapes: Sequence[tuple[int, ...]], told: Told
    ) -> list[NDArray[np.int64]]:
        if self._is_streamed:
            return self._of_stream(covers, shapes, told)
        self._check_collations()
        tables = []
        for done, (cover, shape) in enumerate(zip(covers, shapes, strict=True)):
            told(done, len(covers))
            found = _without_rows(self.name, partial(self._counted, cover, shape))
            table = np.zeros(math.prod(shape), dtype=np.int64)
            table[found["cell"].to_numpy()] = found["rows"].to_numpy()
            tables.append(table.reshape(shape))
        return tables

    def _counted(self, cover: Columns, shape: tuple[int, ...]) -> Any:
        """The cells that hold rows, and how many."""
        import narwhals as nw

        cell = nw.lit(0, dtype=nw.Int64)
        for v, k in zip(cover, shape, strict=True):
            cell = cell * k + self._code(self._domain.names[v])
        keyed = self._frame.with_columns(cell.alias("cell")).select("cell")
        return _collected(keyed.group_by("cell").agg(nw.len().alias("rows")))

    def stream(self, names: Sequence[str]) -> Iterator[list[RawColumn]]:
        import narwhals as nw

        # arrow has no whole numbers of 128 bits
        wide = [name for name in names if self._types[name] in (nw.Int128, nw.UInt128)]
        frame = self._frame.select(*names)
        if wide:
            frame = frame.with_columns(nw.col(*wide).cast(nw.Float64))
        tables = _parts(frame) if self._is_streamed else _tables(frame)
        for part in _pieces(self.name, tables):
            if frame.implementation.is_pandas_like():  # arrow cannot hold all of its texts
                yield [raw_columns_of_series(name, part[name]) for name in names]
            else:
                yield [raw_column(name, part[name]) for name in names]


def _check_typed(frame: Any) -> None:
    """Refuses an engine that keeps cells of any type in any column: a query that meets one would
    fail, so that one record decides whether a run ends.
    """
    if not frame.implementation.is_ibis():
        return
    if frame.to_native().get_backend().name == "sqlite":
        raise OptionError(
            "frame: SQLite keeps cells of any type in any column, and one of them could stop a "
            "query; copy the table to parquet or DuckDB, or read it with pandas"
        )


def _collected(frame: Any) -> Any:
    """A small result as an arrow table."""
    native, kind = frame.to_native(), frame.implementation
    if kind.is_duckdb():
        return native.to_arrow_table()
    if kind.is_ibis():
        return native.to_pyarrow()
    if kind.is_polars():
        return native.collect(engine="streaming").to_arrow()
    return frame.collect("pyarrow").to_native()


def _parts(frame: Any) -> Generator[Any]:
    """The rows of an eager frame in pieces, as its own kind of frame."""
    import narwhals as nw

    eager = nw.from_native(frame.to_native(), eager_only=True)
    for start in range(0, len(eager), _ROWS_OF_A_BLOCK):
        yield eager[start : start + _ROWS_OF_A_BLOCK].to_native()


def _tables(frame: Any) -> Generator[Any]:
    """The rows of a lazy frame as arrow tables or batches: in pieces where the engine can give
    them, and where it cannot (Ibis, PySpark) as one.
    """
    native, kind = frame.to_native(), frame.implementation
    if kind.is_duckdb():
        with native.to_arrow_reader(_ROWS_OF_A_BLOCK) as reader:
            yield from reader
    elif kind.is_polars():
        yield from (part.to_arrow() for part in native.collect_batches(chunk_size=_ROWS_OF_A_BLOCK))
    else:
        yield from _collected(frame).to_batches(_ROWS_OF_A_BLOCK)


@final
class ParquetEngine(Engine):
    """Parquet files, streamed in pieces of row groups.

    Args:
        path: files, folders or patterns.
        domain: the declared columns.
    """

    name = "parquet"

    def __init__(self, path: Any, domain: Domain) -> None:
        import narwhals as nw
        import pyarrow.parquet as pq

        given = [path] if is_path(path) else check_listed("path", path, of="paths")
        self._files = sorted({file for each in given for file in parquet_files(each)})
        self._domain = domain
        for file in self._files:
            schema = _without_rows(f"parquet file {str(file)!r}", partial(pq.read_schema, file))
            _check_columns(schema.names, domain)
            empty = nw.from_native(schema.empty_table(), eager_only=True)
            for name in domain.names:
                check_held(name, held_type(empty[name]))

    def _batches(self, names: Sequence[str]) -> Generator[Any]:
        import pyarrow as pa

        for file in self._files:
            with pa.OSFile(str(file)) as opened:
                yield from OpenedParquet(opened).batches(_ROWS_OF_A_BLOCK, names)

    def count(
        self, covers: Sequence[Columns], shapes: Sequence[tuple[int, ...]], told: Told
    ) -> list[NDArray[np.int64]]:
        return self._of_stream(covers, shapes, told)

    def stream(self, names: Sequence[str]) -> Iterator[list[RawColumn]]:
        for batch in _pieces("parquet", self._batches(names)):
            yield [raw_column(name, batch.column(name)) for name in names]


def parquet_files(path: str | Path) -> list[Path]:
    """The files of a path, a folder or a pattern; raises DataError where there is none."""
    place = path_of("path", path, example="lake/*.parquet")
    if place.is_dir():
        found = sorted(place.glob("*.parquet"))
    elif place.is_file():
        found = [place]
    else:
        found = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
    if not found:
        where = "in the folder " if place.is_dir() else ""
        raise DataError(f"path: there is no parquet file {where}{str(path)!r}; check the path")
    return found
