"""Parquet lakes and DuckDB files on the command line: counted where they are, or, for their owner,
read whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jaxcd
from jaxcd.cli.shared import check_one_file
from jaxcd.data.columns import RawColumn
from jaxcd.data.csv_separators import TEXT_FILES
from jaxcd.data.engines import parquet_files
from jaxcd.data.readers import (
    UTF_8,
    columns_of_arrow,
    read_columns,
    read_parquet_files,
    text_encoding,
)
from jaxcd.errors import DataError, OptionError

__all__ = ["check_no_encoding", "columns", "is_table", "opened"]

_DATABASES = (".duckdb", ".ddb", ".db")
# Connections, open until the command ends: before DuckDB 2 a relation did not hold its own.
_HELD: list[Any] = []


def is_table(file: Path | None, *, table: str | None, snapshot: str | None) -> bool:
    """Whether FILE is not read whole: a folder, a pattern, a database, or one with --snapshot."""
    return file is not None and (
        table is not None
        or snapshot is not None
        or file.suffix.lower() in _DATABASES
        or file.is_dir()
        or (any(sign in str(file) for sign in "*?[") and not file.exists())
    )


def opened(
    file: Path,
    domain: jaxcd.Domain | None,
    *,
    table: str | None,
    rows: int | None,
    snapshot: str | None,
) -> jaxcd.Table:
    """The table of FILE.

    Args:
        file: a parquet file, a folder or a pattern of them, or a DuckDB file.
        domain: the declared columns.
        table: the name of a table or view of a DuckDB file.
        rows: how many rows it has.
        snapshot: which state it is, in words.

    Raises:
        OptionError: something that must be declared is not given, or does not fit the file.
        DataError: there is no such file or table.
    """
    for option, value, what in (
        ("--domain", domain, "the domain file that declares the columns (jaxcd domain drafts one)"),
        ("--rows", rows, "the number of rows, which is public"),
        ("--snapshot", snapshot, "words for the state of the table, such as a date"),
    ):
        if value is None:
            raise OptionError(f"{option} is missing: {file} is counted where it is, so give {what}")
    assert domain is not None and rows is not None and snapshot is not None
    found = _found(file, table)
    if isinstance(found, Path):
        return jaxcd.Table.parquet(found, domain=domain, n_samples=rows, snapshot=snapshot)
    return jaxcd.Table(found, domain=domain, n_samples=rows, snapshot=snapshot)


def columns(
    file: Path, *, table: str | None, encoding: str = UTF_8
) -> tuple[tuple[RawColumn, ...], tuple[str, ...]]:
    """All columns of FILE, whatever the cells are, and what had to be repaired in the layout of a
    csv file: for the owner, and whole in memory.

    Args:
        file: a data file, a folder or a pattern of parquet files, or a DuckDB file.
        table: the name of a table or view of a DuckDB file.
        encoding: of a text file.

    Raises:
        OptionError: a table is not named, or does not fit the file, or the encoding does not.
        DataError: there is no such file or table, or it cannot be read at all.
    """
    no_lake = table is None and file.is_dir() and not any(file.glob("*.parquet"))
    if no_lake or not is_table(file, table=table, snapshot=None):
        return read_columns(file, strict=False, encoding=encoding)
    check_no_encoding(file, encoding)
    found = _found(file, table)
    if isinstance(found, Path):
        files = parquet_files(found)
        if any(each.name.lower().endswith(TEXT_FILES) for each in files):
            check_one_file(file)
        return read_parquet_files(files), ()
    import duckdb

    try:
        rows = found.to_arrow_table()
    except duckdb.Error as error:
        raise DataError(
            f"--table {table!r}: DuckDB stopped with {type(error).__name__} where it read the "
            "rows; try SELECT * FROM it there"
        ) from None
    return columns_of_arrow(rows), ()


def check_no_encoding(what: object, encoding: str) -> None:
    """Refuses an encoding that is not the usual one, where no text file is read."""
    if text_encoding(encoding) != UTF_8:
        raise OptionError(f"--encoding is for a text file, and {what} is none; drop it")


def _found(file: Path, table: str | None) -> Any:
    """The table of a DuckDB file, as its relation; of another file, folder or pattern its path."""
    if file.suffix.lower() not in _DATABASES:
        if table is not None:
            raise OptionError(
                f"--table {table!r}: {file} is no DuckDB file, such as lake.duckdb; drop the option"
            )
        return file
    if table is None:
        raise OptionError(f"--table is missing: give the name of a table or view of {file}")
    try:
        import duckdb
    except ImportError:
        raise OptionError(
            f"{file} needs DuckDB; install it with: pip install 'jaxcd[duckdb]'"
        ) from None
    if not file.is_file():
        raise DataError(f"file {str(file)!r} does not exist; check the path")
    try:
        # only to read, and with nothing written beside it
        connection = duckdb.connect(str(file), read_only=True)
        found = connection.table(table)
    except duckdb.Error as error:
        raise DataError(
            f"--table {table!r}: {file} cannot be read ({type(error).__name__}); check the name"
        ) from None
    _HELD.append(connection)
    return found
