"""Reading data files: csv, csv.gz and parquet.

The csv reader is the standard library's, not a data frame's: data frames rename repeated headers, fill short rows and
turn the text NA into a missing value, all in silence, and jaxcd reports each of them.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.columns import RawColumn
from jaxcd.data.dataset import Dataset, from_raw_columns
from jaxcd.data.domain import Domain
from jaxcd.data.frames import checked_names, raw_columns_of_frame
from jaxcd.errors import DataError

ROWS_AT_A_TIME = 20_000


def read_csv(path: str | Path, *, domain: Domain | str | Path | None = None, clip: bool = False) -> Dataset:
    """Read a data file: comma-separated UTF-8 text with a header (.csv, .csv.gz), or parquet (.parquet, .pq).

    An empty cell, NA, N/A, NaN or null is a missing value unless the domain declares it as a level.

    Args:
        path: The file.
        domain: A :class:`Domain` or the path of a domain file.  None infers one from the data with ``declared=False``
            (the rule is stated at :meth:`Domain.infer`), for use without privacy only.
        clip: Move numbers outside the declared bounds onto the bounds, rather than raise.

    Returns:
        The data with its columns in the domain's order.

    Raises:
        DataError: As for :meth:`Dataset.from_frame`; also a missing or empty file and a row of another length.
        FormatError, DomainError: If the domain file is malformed.
    """
    path = Path(path)
    if isinstance(domain, (str, Path)):
        domain = Domain.read(domain)
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet", ".pq")):
        raise DataError(f"file {str(path)!r} is of an unknown kind; use .csv, .csv.gz or .parquet")
    if not path.is_file():
        raise DataError(f"file {str(path)!r} does not exist; check the path")
    raws = _read_parquet(path) if name.endswith((".parquet", ".pq")) else _read_csv_columns(path)
    return from_raw_columns(raws, domain=domain, clip=clip)


def _read_parquet(path: Path) -> tuple[RawColumn, ...]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"reading {str(path)!r} needs pyarrow; install it or convert the file to csv") from None
    try:
        with path.open("rb") as handle:
            table = pyarrow.parquet.ParquetFile(handle).read()
    except (pyarrow.ArrowException, OSError):
        raise DataError(f"file {str(path)!r} is not a readable parquet file; write it again") from None
    return raw_columns_of_frame(table)


def open_text(path: Path) -> IO[str]:
    """Open a text file, unpacking it where the name ends in .gz; a leading byte-order mark is dropped."""
    binary: IO[bytes] = gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[assignment]
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")


def _read_csv_columns(path: Path) -> tuple[RawColumn, ...]:
    try:
        with open_text(path) as handle:
            return _columns_of_rows(_counted(csv.reader(handle, strict=True)), path)
    except UnicodeDecodeError:
        raise DataError(f"file {str(path)!r} is not UTF-8 text; save it as UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"file {str(path)!r} is not a complete gzip file; pack it again") from None
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be read: {error.strerror or type(error).__name__}") from None


def _counted(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """The rows of a csv reader, header first; broken quotes are reported with the row they are in."""
    for row in count():
        try:
            cells = next(reader, None)
        except csv.Error as error:
            where = f"row {row}" if row else "the header"
            raise DataError(f"{where} cannot be read as csv ({error}); correct its quotes") from None
        if cells is None:
            return
        yield cells


def _columns_of_rows(rows: Iterator[list[str]], path: Path) -> tuple[RawColumn, ...]:
    header = next(rows, None)
    if not header:
        raise DataError(f"file {str(path)!r} is empty; it must start with a header of column names")
    names = checked_names(header)
    indices: list[dict[str, int]] = [{} for _ in names]
    parts: list[list[NDArray]] = [[] for _ in names]
    n_rows = 0
    while chunk := list(islice(rows, ROWS_AT_A_TIME)):
        if set(map(len, chunk)) != {len(names)}:
            chunk = _without_last_blanks(chunk, rows, len(names), n_rows)
        for column, index, part in zip(zip(*chunk, strict=True), indices, parts, strict=False):
            for cell in dict.fromkeys(column):
                index.setdefault(cell, len(index))
            part.append(np.fromiter(map(index.__getitem__, column), np.int32, len(column)))
        n_rows += len(chunk)
    return tuple(
        RawColumn(name, uniques=tuple(index), inverse=np.concatenate([np.empty(0, np.int32), *part]), untyped=True)
        for name, index, part in zip(names, indices, parts, strict=True)
    )


def _without_last_blanks(chunk: list[list[str]], rows: Iterator[list[str]], width: int, n_rows: int) -> list[list[str]]:
    """Drop blank lines at the end of the file; any other row of a wrong length is an error."""
    ragged = next(i for i, row in enumerate(chunk) if len(row) != width)
    if not any(chunk[ragged:]) and not any(row for row in rows):
        return chunk[:ragged]
    raise DataError(
        f"row {n_rows + ragged + 1} has {len(chunk[ragged])} values, but the header has {width} columns; "
        "add or remove values (or commas) in that row"
    )
