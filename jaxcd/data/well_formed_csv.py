"""Csv files that are written as they should be, read by pyarrow.

A file is read here only where that gives, cell for cell, what the careful reader
(:mod:`jaxcd.data.readers`) gives: quotes stand around whole cells, records are lines of one length,
and the bytes are UTF-8.  That is looked at first, in one pass over the bytes; for every other file
the careful reader reads, repairs, and words the error.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.arrow import raw_columns
from jaxcd.data.columns import RawColumn

__all__ = ["well_formed_columns"]

_LEAST_BYTES = 1 << 16  # smaller files are read carefully at once
_PIECE = 1 << 23
_COMMA, _QUOTE, _LINE, _RETURN = b',"\n\r'
_LONGEST = 100_000  # bytes of a line; the careful reader refuses cells of 131,072


def well_formed_columns(path: Path, only: Sequence[str] | None) -> tuple[RawColumn, ...] | None:
    """The columns of a well-formed csv file; None for a file that the careful reader must read.

    Args:
        path: an uncompressed file that exists.
        only: the names of the wanted columns, in the order wanted; None for all.
    """
    import pyarrow as pa
    import pyarrow.csv

    try:
        if path.stat().st_size < _LEAST_BYTES:
            return None
        raw = np.memmap(path, dtype=np.uint8, mode="r")
        header = _header(raw)
        if header is None or not _is_proper(raw):
            return None
        del raw
        wanted = header if only is None else list(only)
        if len(set(header)) < len(header) or len(header) < 2 or not set(wanted) <= set(header):
            return None
        if not all(header):
            return None
        text = pa.dictionary(pa.int32(), pa.string())
        read = pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(
                column_names=header, skip_rows=1, block_size=_PIECE >> 1
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, text),
                include_columns=list(wanted),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError, ValueError):
        return None
    tables = [read]
    del read
    return raw_columns(tables.pop(), untyped=True)


def _header(raw: NDArray[np.uint8]) -> list[str] | None:
    """The names in the first line."""
    start = raw[:_LONGEST].tobytes()
    line, end, _ = start.partition(b"\n")
    if not end:
        return None
    try:
        text = line.removesuffix(b"\r").decode("utf-8-sig")
        (names,) = csv.reader([text], strict=True)
    except (UnicodeDecodeError, ValueError, csv.Error):
        return None
    return names


def _is_proper(raw: NDArray[np.uint8]) -> bool:
    """Whether quotes stand around whole cells, no line is blank or very long, and no cell holds a
    line break.
    """
    is_open, last_line, size = False, -1, len(raw)
    for start in range(0, size, _PIECE):
        piece = np.asarray(raw[start : start + _PIECE + 1])  # and the byte behind it
        after = piece[1:] if len(piece) > _PIECE else np.append(piece[1:], np.uint8(_LINE))
        piece = piece[:_PIECE]
        before = np.append(raw[start - 1] if start else np.uint8(_LINE), piece[:-1])
        if (piece == 0).any() or ((piece == _RETURN) & (after != _LINE)).any():
            return False
        quotes = np.flatnonzero(piece == _QUOTE)
        opens = (np.arange(len(quotes)) % 2 == 0) != is_open
        if not _among(before[quotes[opens]], (_COMMA, _LINE, _QUOTE)):
            return False
        if not _among(after[quotes[~opens]], (_COMMA, _LINE, _RETURN, _QUOTE)):
            return False
        lines = np.flatnonzero(piece == _LINE)
        inside = (np.searchsorted(quotes, lines) % 2 == 1) != is_open
        if inside.any():
            return False
        is_open = is_open != bool(len(quotes) % 2)
        lengths = np.diff(np.concatenate([[last_line], lines + start]))
        # a blank line has its line feed only, and perhaps a carriage return before it
        blank = (lengths == 1) | ((lengths == 2) & (before[lines] == _RETURN))
        if blank.any() or (lengths > _LONGEST).any():
            return False
        if len(lines):
            last_line = start + int(lines[-1])
    return not is_open and size - last_line <= _LONGEST


def _among(found: NDArray[np.uint8], allowed: Sequence[int]) -> bool:
    return bool(np.isin(found, allowed).all())
