"""Csv files that are written as they should be, read by pyarrow.

A file is read here only where that gives, cell for cell, what the careful reader
(:mod:`jaxcd.data.readers`) gives: where it is laid out properly (:mod:`jaxcd.data.csv_layout`),
with commas, and its records are of one length.  For every other file the careful reader reads,
repairs, and words the error.

A column may be read as numbers where every cell spells a finite one in plain decimals, or means a
missing value: pyarrow and Python both give the nearest float.  Where one cell does not, all columns
are read as text.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from jaxcd.data.arrow import raw_columns
from jaxcd.data.column_types import MAX_INFERRED_LEVELS
from jaxcd.data.columns import MISSING_TEXTS, RawColumn, number_in
from jaxcd.data.csv_layout import layout_of
from jaxcd.data.csv_separators import separator_of

__all__ = ["well_formed_columns"]

_LEAST_BYTES = 1 << 16  # smaller files are read carefully at once
_BLOCK = 1 << 20  # bytes; several are held at once
_LOOK = 1 << 17
_FEW = MAX_INFERRED_LEVELS
_LONGEST = 100_000  # bytes of a header


def well_formed_columns(
    path: Path, only: Sequence[str] | None, numbers: Collection[str] | None
) -> tuple[RawColumn, ...] | None:
    """The columns of a well-formed csv file; None for a file that the careful reader must read.

    Args:
        path: a file that exists, packed where its name ends in .gz.
        only: the names of the wanted columns, in the order wanted; None for all.
        numbers: the columns that may be given as numbers; None: those that begin with more distinct
            numbers than an inferred column has levels.
    """
    import pyarrow as pa

    try:
        if path.stat().st_size < _LEAST_BYTES:
            return None
        with _opened(path) as file:
            names = _header(path, file)
        if names is None:
            return None
        with _opened(path) as file:
            layout = layout_of(file)
        wanted = names if only is None else list(only)
        if not layout.is_proper or not set(wanted) <= set(names):
            return None
        file_of = _File(path, names, wanted, layout.has_breaks)
        if numbers is None:
            numbers = file_of.number_columns()
        found = None
        if not set(numbers).isdisjoint(wanted):
            found = file_of.read(numbers)
        return file_of.read(()) if found is None else found
    except (pa.ArrowException, OSError, EOFError, ValueError, zlib.error):
        return None


def _opened(path: Path) -> IO[bytes]:
    packed: Any = gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")
    return packed


def _header(path: Path, file: IO[bytes]) -> list[str] | None:
    """The names in the first line, at least two, each once, with commas between them."""
    line, end, _ = file.read(_LONGEST).partition(b"\n")
    line = line.removesuffix(b"\r")
    if b"\r" in line:
        return None
    try:
        header = line.decode("utf-8-sig")
        (names,) = csv.reader([header], strict=True)
    except (UnicodeDecodeError, ValueError, csv.Error):
        return None
    if separator_of(path, header) != ",":
        return None
    is_proper = end and all(names) and len(names) >= 2 and len(set(names)) == len(names)
    return names if is_proper else None


class _File:
    """A proper csv file, and how pyarrow is to read it."""

    def __init__(self, path: Path, names: list[str], wanted: list[str], has_breaks: bool) -> None:
        self._path, self._names, self._wanted = path, names, wanted
        self._has_breaks = has_breaks

    def _options(self, numbers: Collection[str], block: int) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.csv

        text = pa.dictionary(pa.int32(), pa.string())
        types = {name: pa.float64() if name in numbers else text for name in self._wanted}
        return {
            "read_options": pyarrow.csv.ReadOptions(
                column_names=self._names, skip_rows=1, block_size=block
            ),
            "parse_options": pyarrow.csv.ParseOptions(newlines_in_values=self._has_breaks),
            "convert_options": pyarrow.csv.ConvertOptions(
                check_utf8=False,  # that is known
                column_types=types,
                include_columns=self._wanted,
                null_values=sorted(MISSING_TEXTS),
                strings_can_be_null=False,
            ),
        }

    def _stream(self) -> Any:
        import pyarrow as pa

        packing = "gzip" if self._path.name.lower().endswith(".gz") else None
        return pa.input_stream(str(self._path), compression=packing)

    def number_columns(self) -> list[str]:
        """The columns that begin with many numbers."""
        import pyarrow.csv

        with (
            self._stream() as file,
            pyarrow.csv.open_csv(file, **self._options((), _LOOK)) as cells,
        ):
            first = next(iter(cells), None)
        return [
            name
            for name, column in zip(self._wanted, first.columns if first else (), strict=False)
            if len(column.dictionary) > _FEW
            and all(
                cell in MISSING_TEXTS or math.isfinite(number_in(cell))
                for cell in column.dictionary.to_pylist()
            )
        ]

    def read(self, numbers: Collection[str]) -> tuple[RawColumn, ...] | None:
        """The wanted columns; None where one is not of numbers, as it ought to be."""
        import pyarrow as pa
        import pyarrow.csv

        try:
            with self._stream() as file:
                table = pyarrow.csv.read_csv(file, **self._options(numbers, _BLOCK))
        except pa.ArrowInvalid:
            if not numbers:
                raise
            return None
        n_nulls = {name: table.column(name).null_count for name in self._wanted}
        tables = [table]
        del table
        found = raw_columns(tables.pop(), untyped=True)
        # infinities and NaN are not written in plain decimals
        strange = any(
            np.count_nonzero(~np.isfinite(column.numbers)) > n_nulls[column.name]
            for column in found
            if column.numbers is not None
        )
        return None if strange else found
