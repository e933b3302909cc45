"""Tables that are counted where they are: parquet lakes and DuckDB files on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jaxcd
from jaxcd.errors import DataError, OptionError

__all__ = ["is_table", "opened"]

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
        ("--domain", domain, "the domain file that declares the columns"),
        ("--rows", rows, "the number of rows, which is public"),
        ("--snapshot", snapshot, "words for the state of the table, such as a date"),
    ):
        if value is None:
            raise OptionError(f"{option} is missing: {file} is counted where it is, so give {what}")
    assert domain is not None and rows is not None and snapshot is not None
    if file.suffix.lower() not in _DATABASES:
        if table is not None:
            raise OptionError(
                f"--table {table!r}: {file} is no DuckDB file, such as lake.duckdb; drop the option"
            )
        return jaxcd.Table.parquet(file, domain=domain, n_samples=rows, snapshot=snapshot)
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
        frame = connection.table(table)
    except duckdb.Error as error:
        raise DataError(
            f"--table {table!r}: {file} cannot be read ({type(error).__name__}); check the name"
        ) from None
    _HELD.append(connection)
    return jaxcd.Table(frame, domain=domain, n_samples=rows, snapshot=snapshot)
