"""What stands between the columns of a text file, by its name and its header, which are public."""

from __future__ import annotations

import re
from pathlib import PurePath

__all__ = [
    "DECIMAL_COMMAS",
    "TEXT_FILES",
    "outside_quotes",
    "separator_of",
    "told_separator",
    "with_point",
]

TEXT_FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
"""How the names of text files end."""

DECIMAL_COMMAS = ";"
"""Where this separates columns, 4,5 is a number: programs write semicolons where commas are
taken."""

_OTHERS = (DECIMAL_COMMAS, "\t", "|")
_QUOTED = re.compile(r'"[^"]*(?:"|\Z)')
_TOLD = re.compile(r"sep=([,;|\t])(?:[\r\n]|\Z)")
_LINE_ENDS = re.compile(r"[\r\n]")
_WITH_COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")


def outside_quotes(text: str) -> str:
    """What is not in quotes; one that is not closed goes to the end."""
    return _QUOTED.sub("", text)


def separator_of(path: PurePath, header: str) -> str:
    """A tab in .tsv files.  Else a comma where the header has one; else a semicolon, a tab or an
    upright bar, the first of these that it has.

    Args:
        path: of the file.
        header: how the file begins; the first line counts, and in it what is not in quotes.  Where
            that is nothing, a name has line breaks, and what follows its quotes counts.
    """
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    line = _LINE_ENDS.split(header, maxsplit=1)[0]
    plains = outside_quotes(line), _LINE_ENDS.split(outside_quotes(header), maxsplit=1)[0]
    found = (mark for plain in plains for mark in (",", *_OTHERS) if mark in plain)
    return next(found, ",")


def told_separator(header: str) -> str | None:
    """What the first line names as the separator where it is such a line as spreadsheets write,
    sep=;, and no header; None for any other.

    Args:
        header: how the file begins; the first line counts.
    """
    found = _TOLD.match(header)
    return found.group(1) if found else None


def with_point(cell: str) -> str:
    """A number with a decimal comma as it is written with a point; any other cell as it is."""
    return cell.replace(",", ".") if _WITH_COMMA.fullmatch(cell) else cell
