"""Reading data files: text (.csv, .tsv, also with .gz) and parquet.

The csv reader is the standard library's, not a data frame's: data frames rename repeated headers,
fill short rows and turn the text NA into a missing value, all in silence.  A file that is well
formed is read faster, with the same result (:mod:`jaxcd.data.well_formed_csv`).

Strict reading reports each of these.  Total reading (:mod:`jaxcd.data.columns`) fails on no record:
a short row is filled with missing cells, a long one cut, a blank line between rows is a row of
missing cells, a byte that is no UTF-8 is replaced, and a line with a broken quote is split at its
separators, with the quotes at the ends of its cells dropped.

*What stays with its record.*  In a file that a csv writer wrote, whatever its cells hold, however
long and however many they are, a record is a record.  A quote that was never closed is read so far
as its own line; it can be mistaken for another record's only where that has line breaks in quotes
too.  A carriage return ends a line only where it ends the header.  Of a file whose lines all end in
one alone, a line feed without quotes that begins the first record cannot be told from the end of
the header.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import a_type, counted, shown_list
from jaxcd.data.arrow import raw_column, raw_columns
from jaxcd.data.columns import RawColumn, spells_number
from jaxcd.data.csv_separators import (
    DECIMAL_COMMAS,
    TEXT_FILES,
    outside_quotes,
    separator_of,
    told_separator,
    with_point,
)
from jaxcd.data.dataset import Dataset, from_raw_columns, reads_strictly
from jaxcd.data.domain import Domain, as_domain
from jaxcd.data.frames import checked_names
from jaxcd.data.parquet import OpenedParquet
from jaxcd.data.well_formed_csv import well_formed_columns
from jaxcd.errors import DataError, OptionError
from jaxcd.json_files import is_utf16, no_utf8
from jaxcd.places import check_there, is_path, path_of

ROWS_AT_A_TIME = 20_000
UTF_8 = "utf-8"
_ENCODINGS = frozenset(
    codecs.lookup(name).name
    for name in (
        *(UTF_8, "ascii", "mac-roman", "koi8-r", "koi8-u"),
        *(f"iso-8859-{part}" for part in range(1, 17) if part != 12),
        *(f"cp{page}" for page in (437, 850, 852, 858, 866, *range(1250, 1259))),
    )
)
REPLACED = "\ufffd"
"""Stands for bytes that are no UTF-8."""


def read_csv(
    path: str | Path,
    *,
    domain: Domain | str | Path | None = None,
    strict: bool | None = None,
    clip: bool = False,
    encoding: str = UTF_8,
) -> Dataset:
    r"""Read a data file: text with a header (.csv, .tsv; also .gz), or parquet.

    Commas stand between columns.  A header without commas may have semicolons, tabs or upright bars
    (|) instead, and .tsv files have tabs; a line sep=; above the header names another, as
    spreadsheets write it.  With semicolons, a cell such as 4,5 is the number 4.5.
    An empty cell, NA, N/A, NaN or null is a missing value unless the domain declares it as a level.

    Args:
        path: The file.
        domain: A :class:`Domain` or the path of a domain file.  None infers one from the data with
            ``declared=False`` (the rule is stated at :meth:`Domain.infer`), for use without privacy
            only.
        strict: Whether a cell that does not fit the domain is an error, as for
            :meth:`Dataset.from_frame`; None takes False for a declared domain.
        clip: Whether a number beyond its column's bounds counts as the bound, as for
            :meth:`Dataset.from_frame`.
        encoding: Of a text file, which is not guessed from its cells: UTF-8, or one whose letters
            have one byte each, such as "latin1" or "cp1252".  Public.

    Returns:
        The data with its columns in the domain's order.

    Raises:
        DataError: As for :meth:`Dataset.from_frame`; also a missing or empty file and, with
            ``strict``, a row of another length.
        FormatError: If the domain file is malformed.
        DomainError: If the domain file declares no domain.
        OptionError: ``path`` is no path, ``encoding`` none that is read, or ``strict`` or ``clip``
            no truth value.

    Example:
        >>> import jaxcd, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "patients.csv")
        >>> _ = path.write_text("smoker,stage\nyes,3\nno,1\nyes,2\n")
        >>> domain = jaxcd.Domain(
        ...     {"smoker": jaxcd.Categorical(("no", "yes")), "stage": jaxcd.Ordinal((1, 2, 3))}
        ... )
        >>> jaxcd.read_csv(path, domain=domain).codes.tolist()
        [[1, 2], [0, 0], [1, 1]]
    """
    if not is_path(path):
        raise OptionError(
            f"path: {a_type(path)} is no path of a file; for a data frame use "
            "jaxcd.Dataset.from_frame(frame, domain=domain)"
        )
    domain = as_domain(domain)
    numbers = None
    if isinstance(domain, Domain):
        numbers = [name for name, column in domain.columns.items() if column.takes_numbers]
    strictly = reads_strictly(domain, strict)
    raws = list(read_columns(path, strict=strictly, numbers=numbers, encoding=encoding)[0])
    if isinstance(domain, Domain) and not _is_parquet(Path(path)):
        unknown = [raw.name for raw in raws if raw.name not in domain.columns_of_files]
        if any(REPLACED in name for name in unknown):
            raise DataError(f"the header of {_not_as_said(Path(path), encoding)}")
    return from_raw_columns(raws, domain=domain, strict=strict, clip=clip)


def read_columns(
    path: str | Path,
    *,
    strict: bool,
    only: Sequence[str] | None = None,
    numbers: Collection[str] | None = (),
    encoding: str = UTF_8,
) -> tuple[tuple[RawColumn, ...], tuple[str, ...]]:
    """The columns of a data file, and what total reading had to repair in the file's layout
    (sensitive: it names rows).

    Args:
        only: the names of the wanted columns, in the order wanted; DataError where the file has
            none of a name, or several.
        numbers: the columns of a csv file that may be given as numbers, where each cell is one or
            is missing; None: those that have too many for levels.
        encoding: of a text file, as for :func:`read_csv`.
    """
    path, encoding = path_of("path", path, example="patients.csv"), text_encoding(encoding)
    name = path.name.lower()
    if path.is_dir():
        check_there(path, wanted="a table (.csv, .tsv or .parquet)", of="*.[cpt][sa][vr]*")
    if not (name.endswith(TEXT_FILES) or _is_parquet(path)):
        raise DataError(
            f"file {str(path)!r} is of an unknown kind; use .csv, .tsv (also .gz) or .parquet"
        )
    if not path.is_file():
        raise DataError(f"file {str(path)!r} does not exist; check the path")
    if _is_parquet(path):
        if encoding != UTF_8:
            raise OptionError(
                f"encoding = {encoding!r} is for text files, and {str(path)!r} is none; leave it "
                "out"
            )
        return _read_parquet(path, only), ()
    if encoding == UTF_8:
        if (columns := well_formed_columns(path, only, numbers)) is not None:
            return columns, ()
    layout = _Layout(strict, only, encoding)
    return _read_csv_columns(path, layout), tuple(layout.repairs)


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith((".parquet", ".pq"))


def _wanted(path: Path, names: Sequence[str], only: Sequence[str]) -> tuple[int, ...]:
    """Where the wanted columns stand."""
    for name in only:
        if names.count(name) != 1:
            problem = "has no such column" if name not in names else "has several such columns"
            raise DataError(
                f"column {name!r}: {path} {problem}; its columns are {shown_list(names)}"
            )
    return tuple(names.index(name) for name in only)


def _read_parquet(path: Path, only: Sequence[str] | None) -> tuple[RawColumn, ...]:
    try:
        import pyarrow
    except ImportError:
        raise DataError(
            f"reading {str(path)!r} needs pyarrow; install it or convert the file to csv"
        ) from None
    try:
        with path.open("rb") as handle:
            file = OpenedParquet(handle)
            if only is not None:
                _wanted(path, file.schema.names, only)
            names = list(file.schema.names if only is None else only)
            checked_names(names)
            # one after the other: the cells of a column are let go of before the next are read
            return tuple(raw_column(name, file.read(name)) for name in names)
    except (pyarrow.ArrowException, OSError):
        raise _no_parquet(path) from None


def read_parquet_files(files: Sequence[Path]) -> tuple[RawColumn, ...]:
    """The columns of parquet files of one table, of which one may hold a column with another type
    of cells that goes with the others', such as narrower numbers.

    Raises:
        DataError: a file cannot be read or has other columns, or the types do not go together.
    """
    import pyarrow

    parts: list[Any] = []
    for file in files:
        try:
            with file.open("rb") as handle:
                opened = OpenedParquet(handle)
                names = checked_names(opened.schema.names)
                parts.append(pyarrow.table({name: opened.read(name) for name in names}))
        except (pyarrow.ArrowException, OSError):
            raise _no_parquet(file) from None
        if sorted(parts[-1].column_names) != sorted(parts[0].column_names):
            raise DataError(
                f"file {str(file)!r} has other columns than {str(files[0])!r}; give files of one "
                "table"
            )
    try:
        table = pyarrow.concat_tables(parts, promote_options="permissive")
    except (pyarrow.ArrowException, TypeError):
        raise DataError(
            f"files {str(files[0])!r} and others have cells of different types in a column; write "
            "them with the same types"
        ) from None
    parts.clear()
    return columns_of_arrow(table)


def columns_of_arrow(table: Any) -> tuple[RawColumn, ...]:
    """The columns of an arrow table; DataError where the names are not."""
    checked_names(table.column_names)
    return raw_columns(table)


def _no_parquet(path: Path) -> DataError:
    return DataError(f"file {str(path)!r} is not a readable parquet file; write it again")


def _opened(path: Path) -> Any:
    """The bytes of a file, unpacked where the name ends in .gz."""
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def text_encoding(encoding: object) -> str:
    """The usual name of an encoding that is read.

    One whose letters have several bytes would not do, but for UTF-8: a byte that is none of its own
    could take the end of its line along, and so change the record behind it.

    Raises:
        OptionError: it is another.
    """
    try:
        found = codecs.lookup(str(encoding)).name
    except (LookupError, ValueError):
        found = ""
    if not isinstance(encoding, str) or found not in _ENCODINGS:
        raise OptionError(
            f"encoding = {encoding!r} is none that is read; give UTF-8, or one whose letters have "
            "one byte each, such as 'latin1', 'iso-8859-15' or 'cp1252' (windows-1252)"
        )
    return found


def _check_start(path: Path, encoding: str) -> None:
    """Refuses a file that says of itself that it is UTF-16, or UTF-8 where it should be another."""
    with _opened(path) as handle:
        start = handle.read(3)
    if is_utf16(start):
        raise DataError(f"file {str(path)!r} {no_utf8(start)}")
    if encoding != UTF_8 and start == codecs.BOM_UTF8:
        raise DataError(
            f"file {str(path)!r} begins as UTF-8 text does, and not as {encoding}; leave encoding "
            "out"
        )


def open_text(
    path: Path, *, errors: str = "strict", newline: str = "", encoding: str = UTF_8
) -> IO[str]:
    """Open a text file, unpacking it where the name ends in .gz; a leading byte-order mark is
    dropped.
    """
    name = "utf-8-sig" if encoding == UTF_8 else encoding
    return io.TextIOWrapper(_opened(path), encoding=name, errors=errors, newline=newline)


def _not_as_said(path: Path, encoding: str) -> DataError:
    """Of a text whose bytes are no letters."""
    if encoding != UTF_8:
        return DataError(f"file {str(path)!r} is not {encoding} text; name its own encoding")
    return DataError(
        f"file {str(path)!r} {no_utf8(b'')}, or name its encoding: "
        "read_csv(path, encoding='latin1')"
    )


class _Layout:
    """What becomes of records that a csv file does not write as the header says: an error, or a
    repair that is noted.
    """

    def __init__(self, strict: bool, only: Sequence[str] | None, encoding: str) -> None:
        self.strict = strict
        self.only = only
        self.encoding = encoding
        self.separator = ","
        self.repairs: list[str] = []

    def defect(self, words: str, cure: str) -> None:
        if self.strict:
            raise DataError(f"{words}; {cure}")
        if len(self.repairs) < _MOST_REPAIRS:
            self.repairs.append(words)


_MOST_REPAIRS = 1000
_LONGEST_HEADER = 1 << 20  # characters; a quote that is not closed within them is none
_NO_HEADER = "; if the file has no header, write one above its first row"
_ABOVE = "; if other lines stand above the header, such as a title, delete them"


def more_repairs(repairs: Sequence[str], shown: int) -> tuple[str, ...]:
    """How many there are besides those that are shown, in words; none where all are shown."""
    if (n := len(repairs) - shown) <= 0:
        return ()
    least = "at least " if len(repairs) == _MOST_REPAIRS else ""  # no more of them are kept
    return (f"... and {least}{counted(n, 'more such row')}",)


def _read_csv_columns(path: Path, layout: _Layout) -> tuple[RawColumn, ...]:
    try:
        encoding = layout.encoding
        _check_start(path, encoding)
        header, begin = _header(path, encoding)
        told = told_separator(header)
        layout.separator = separator_of(path, begin) if told is None else told
        if layout.strict:
            with open_text(path, encoding=encoding) as handle:
                _skip(handle, told)
                return _columns_of_rows(_strict_records(handle, layout.separator), path, layout)
        end = _line_end(begin)
        with open_text(path, errors="replace", newline=end, encoding=encoding) as handle:
            _skip(handle, told)
            return _columns_of_rows(_all_records(handle, layout), path, layout)
    except UnicodeDecodeError:
        raise _not_as_said(path, layout.encoding) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"file {str(path)!r} is not a complete gzip file; pack it again") from None
    except OSError as error:
        raise DataError(
            f"file {str(path)!r} cannot be read: {error.strerror or type(error).__name__}"
        ) from None


def _header(path: Path, encoding: str) -> tuple[str, str]:
    """What stands before the first line feed: with more lines, where carriage returns end them; and
    that with the lines in which its last quotes end.
    """
    with open_text(path, errors="replace", newline="\n", encoding=encoding) as handle:
        begin = line = handle.readline()
        first = line.rstrip("\r\n")
        while begin.count('"') % 2 and line and len(begin) < _LONGEST_HEADER:
            line = handle.readline()
            begin += line
    return first, begin.rstrip("\r\n")


def _skip(handle: IO[str], told: str | None) -> None:
    """Leaves out a first line that is no header: it names the separator."""
    if told is not None:
        handle.readline()


def _line_end(header: str) -> str:
    """What ends a line, by the header, which is public: a line feed, or a carriage return where the
    header ends with one alone.  In quotes either may break a name.
    """
    return "\r" if "\r" in outside_quotes(header) else "\n"


def _strict_records(handle: Iterable[str], separator: str) -> Iterator[list[str]]:
    """The records of a csv file, header first."""
    reader = csv.reader(handle, delimiter=separator, strict=True)
    for row in count():
        try:
            cells = next(reader, None)
        except csv.Error as error:
            where = f"row {row}" if row else "the header"
            raise DataError(
                f"{where} cannot be read as csv ({error}); correct its quotes"
            ) from None
        if cells is None:
            return
        yield cells


_NOT_PLAIN = re.compile('["\r\n]')
_IN_QUOTES = r'"[^"]*+(?:""[^"]*+)*+"'


@cache
def _cell(separator: str) -> re.Pattern[str]:
    """A cell, and what ends it."""
    text = rf'[^"{separator}\r\n]*+'
    return re.compile(rf"({_IN_QUOTES}|{text})({re.escape(separator)}|(?:\r?\n|\r)?\Z)")


def _proper_cells(record: str, separator: str) -> list[str] | None:
    """The cells of a record as a csv writer writes it, of any length; None where quotes do not
    stand around whole cells.
    """
    cells: list[str] = []
    place, pattern = 0, _cell(separator)
    while found := pattern.match(record, place):
        cell, end = found.groups()
        cells.append(cell[1:-1].replace('""', '"') if cell.startswith('"') else cell)
        if end != separator:
            return cells
        place = found.end()
    return None


class _Line:
    """Single lines for a csv reader, which reads a record from one or fails."""

    def __init__(self, separator: str) -> None:
        self._lines: list[str] = []
        self._separator = separator
        self._reader = csv.reader(self, delimiter=separator, strict=True)

    def __iter__(self) -> _Line:
        return self

    def __next__(self) -> str:
        if not self._lines:
            raise StopIteration
        return self._lines.pop()

    def cells(self, line: str) -> tuple[list[str] | None, str]:
        """The cells of a record that is one line; None for any other, with what is wrong."""
        body = line.removesuffix("\n").removesuffix("\r")
        if not _NOT_PLAIN.search(body):
            return body.split(self._separator) if body else [], ""
        self._lines = [line]
        try:
            return next(self._reader), ""
        except csv.Error as error:
            return None, str(error)


def _all_records(handle: Iterable[str], layout: _Layout) -> Iterator[list[str]]:
    """Every record, whatever its quotes are.

    Where a line leaves a quote open, its record goes on to the line in which the number of quotes
    is even again: doubled ones do not change that.  If the quotes of these lines do not stand
    around whole cells, the quote was never closed, and the later lines are read anew.  The next
    search starts where this one ended, so that no line is looked at more than twice.
    """
    lines, single = iter(handle), _Line(layout.separator)
    returned: deque[str] = deque()

    def next_line() -> str | None:
        return returned.popleft() if returned else next(lines, None)

    row = 0
    while (line := next_line()) is not None:
        cells, wrong = single.cells(line)
        if cells is None:
            taken = [line]
            n_quotes = line.count('"')
            while n_quotes % 2 and (more := next_line()) is not None:
                taken.append(more)
                n_quotes += more.count('"')
            cells = _proper_cells("".join(taken), layout.separator)
        if cells is None:
            if row == 0:
                raise DataError(f"the header cannot be read as csv ({wrong}); correct its quotes")
            layout.defect(f"row {row} cannot be read as csv ({wrong})", "correct its quotes")
            returned.extendleft(reversed(taken[1:]))
            parts = line.rstrip("\r\n").split(layout.separator)
            cells = [cell.strip().strip('"') for cell in parts]
        yield cells
        row += 1


def _columns_of_rows(
    rows: Iterator[list[str]], path: Path, layout: _Layout
) -> tuple[RawColumn, ...]:
    header = next(rows, None)
    if header is None:
        raise DataError(f"file {str(path)!r} is empty; it must start with a header of column names")
    if not "".join(header).strip() and len(header) < 2:
        raise DataError(
            f"the first line of file {str(path)!r} is blank; it must be the header of column names "
            "(delete the blank lines above it)"
        )
    width = len(header)
    if layout.only is None:
        # Names that differ in such bytes only have become one.
        if any(REPLACED in name and header.count(name) > 1 for name in header):
            raise DataError(f"the header of {_not_as_said(path, layout.encoding)}")
        try:
            names = checked_names(header)
        except DataError as error:
            above = "" if all(header) and width > 1 else _ABOVE
            if not above and any(map(spells_number, header)):
                above = _NO_HEADER
            raise DataError(f"{error}{above}") from None
        places: tuple[int, ...] = tuple(range(width))
    else:
        names, places = tuple(layout.only), _wanted(path, header, layout.only)
    has_commas = layout.separator == DECIMAL_COMMAS
    indices: list[dict[str, int]] = [{} for _ in names]
    parts: list[list[NDArray]] = [[] for _ in names]
    n_rows = 0
    for chunk in _chunks(rows, width, layout):
        cells = tuple(zip(*chunk, strict=True))
        for place, index, part in zip(places, indices, parts, strict=True):
            column = tuple(map(with_point, cells[place])) if has_commas else cells[place]
            for cell in dict.fromkeys(column):
                index.setdefault(cell, len(index))
            part.append(np.fromiter(map(index.__getitem__, column), np.int32, len(column)))
        n_rows += len(chunk)
    return tuple(
        RawColumn(
            name,
            uniques=tuple(index),
            inverse=np.concatenate([np.empty(0, np.int32), *part]),
            untyped=True,
        )
        for name, index, part in zip(names, indices, parts, strict=True)
    )


def _chunks(rows: Iterator[list[str]], width: int, layout: _Layout) -> Iterator[list[list[str]]]:
    """Blocks of rows of the header's width; blank lines at the end of the file are no rows."""
    n_rows, blanks = 0, 0
    while chunk := list(islice(rows, ROWS_AT_A_TIME)):
        if blanks or set(map(len, chunk)) != {width}:
            kept: list[list[str]] = []
            for cells in chunk:
                if not cells:
                    blanks += 1
                    continue
                for _ in range(blanks):
                    kept.append(_of_width([], width, n_rows + len(kept) + 1, layout))
                blanks = 0
                kept.append(_of_width(cells, width, n_rows + len(kept) + 1, layout))
            chunk = kept
        if chunk:
            yield chunk
        n_rows += len(chunk)


def _of_width(cells: list[str], width: int, row: int, layout: _Layout) -> list[str]:
    if len(cells) != width:
        layout.defect(
            f"row {row} has {counted(len(cells), 'value')}, but the header has "
            f"{counted(width, 'column')}",
            "add or remove values, or separators, in that row",
        )
    return cells if len(cells) == width else [*cells[:width], *[""] * (width - len(cells))]
