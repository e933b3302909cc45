"""Drafts of domains: what the columns of a table look like, for the owner of the data to correct.

A draft is taken from the data, so it is not private and has ``declared=False``.  It is there
whatever the cells are: what needs a decision becomes a note, and no error.  The rules look at the
distinct cells of a column and how often each occurs; they are guesses, and nothing in a private run
rests on them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import counted, shown_list
from jaxcd.data.column_types import (
    MAX_INFERRED_LEVELS,
    Binned,
    Categorical,
    Column,
    Level,
    Numeric,
    Ordinal,
    shown,
)
from jaxcd.data.columns import RawColumn, is_missing, number_in, spells_number
from jaxcd.data.domain import Domain
from jaxcd.data.looks import (
    bounds_around,
    codes_among,
    edges_up_to,
    id_words,
    is_date,
    means_missing,
    names_somebody,
    number_of,
    spelled_alike,
    stands_alone,
)
from jaxcd.data.number_spellings import has_leading_zero, may_be_thousands, plainly, spelling_of
from jaxcd.data.readers import REPLACED, UTF_8, more_repairs, read_columns
from jaxcd.errors import DomainError, OptionError

__all__ = ["Draft", "Note", "draft_domain", "draft_of_columns", "draft_of_file"]

_FEW_LEVELS = 12  # whole numbers of more distinct values are counts or measurements
_NEARLY_ALL = 0.95
_MOSTLY = 0.9
_ENOUGH = 20  # distinct values, below which "all distinct" says little
_MOST_SHOWN = 6
_NOT_WANTED = "not wanted"
_ONCE = "looks like an id: every value occurs once"
_REPEATS = (
    'looks like an id that repeats; set "person": true in its place if it says which rows belong '
    "to one person"
)

_NAME_REPLACED = (
    "the name holds bytes that are no UTF-8: save the file as UTF-8, or name its encoding "
    "(--encoding), and draft anew, or the domain will not fit the file once that is done"
)
_OTHER_SPELLING = (
    "holds numbers in a spelling that is not read ({}); do so in the file, and draft anew"
)
_ONE_VALUE = "one value only: it says nothing about other columns, unless more could occur"
_MOST_UNITS = 2  # kg and KG; more of them are words
_ZERO_FIRST = (
    "leading zeros: 01067 and 1067 are one number. If these are codes, such as postcodes, declare "
    "the column as categorical, with each code as text"
)
_IN_THOUSANDS = (
    "three digits behind the point in every cell: where that means 48425, written 48.425 or "
    "48,425, write 48425 in the file, and draft anew"
)


@dataclass(frozen=True)
class Note:
    """What the owner of the data should look at.

    Args:
        column: its name; "" for the file as a whole.
        words: what was found, and what the draft does about it.  Sensitive: it shows cells.
    """

    column: str
    words: str


@dataclass(frozen=True)
class Draft:
    """A domain as the data suggest it.  Sensitive.

    Args:
        domain: not declared.
        notes: what is to be looked at, in the order of the columns.
        n_samples: the number of rows.
    """

    domain: Domain
    notes: tuple[Note, ...]
    n_samples: int


@dataclass(frozen=True)
class _Found:
    """A column's proposal: a declaration, or the reason to ignore it."""

    column: Column | None
    reason: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Cells:
    """The distinct cells of a column that are not empty, and how often each occurs."""

    name: str
    values: tuple[object, ...]
    counts: NDArray[np.int64]
    n_missing: int
    ordered: tuple[Level, ...] | None

    @staticmethod
    def of(raw: RawColumn) -> _Cells:
        uniques, inverse = raw.factorised()
        counts = np.bincount(inverse, minlength=len(uniques)).astype(np.int64)
        missing = np.array([is_missing(cell) for cell in uniques], dtype=np.bool_)
        values = tuple(cell for cell, gone in zip(uniques, missing, strict=True) if not gone)
        levels = raw.ordered_levels
        return _Cells(raw.name, values, counts[~missing], int(counts[missing].sum()), levels)

    @property
    def n_cells(self) -> int:
        return int(self.counts.sum())

    def where(self, mask: Iterable[bool]) -> _Cells:
        chosen = np.fromiter(mask, np.bool_, len(self.values))
        values = tuple(cell for cell, kept in zip(self.values, chosen, strict=True) if kept)
        return _Cells(self.name, values, self.counts[chosen], self.n_missing, self.ordered)

    def share(self, rule: Callable[[object], bool]) -> float:
        """The share of the rows that a rule holds for; 0 without rows."""
        return self.where(map(rule, self.values)).n_cells / max(self.n_cells, 1)


def draft_of_file(
    path: str | Path,
    *,
    drop: Sequence[str] = (),
    only: Sequence[str] | None = None,
    encoding: str = UTF_8,
) -> Draft:
    """Draft a domain for a data file.

    Args:
        path: As for ``read_csv``.
        drop: As for :func:`draft_domain`.
        only: As for :func:`draft_domain`.
        encoding: As for ``read_csv``.

    Returns:
        The draft; its notes name the rows that are not written as the header says, too.

    Raises:
        DataError: The file cannot be read at all, or its header is not one.
        OptionError: As for :func:`draft_domain`, or as for ``read_csv``.
    """
    read = read_columns(path, strict=False, encoding=encoding)
    return draft_of_columns(*read, drop=drop, only=only)


def draft_of_columns(
    raws: Sequence[RawColumn],
    layout: Sequence[str] = (),
    *,
    drop: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> Draft:
    """The same for columns that have been read, and what was repaired in the layout of their file;
    raises as :func:`draft_domain`.
    """
    draft = draft_domain(raws, drop=drop, only=only)
    notes = [Note("", _NO_HEADER)] if _names_are_cells(raws) else []
    notes += [Note(raw.name, _NAME_REPLACED) for raw in raws if REPLACED in raw.name]
    draft = Draft(draft.domain, (*notes, *draft.notes), draft.n_samples)
    if not layout:
        return draft
    told = "; ".join((*layout[:_MOST_SHOWN], *more_repairs(layout, _MOST_SHOWN)))
    words = (
        f"rows are not written as the header says: {told}. A private run fills them up or cuts "
        "them. Where these are nearly all rows, lines may stand above the header: delete them, "
        "and draft anew"
    )
    return Draft(draft.domain, (Note("", words), *draft.notes), draft.n_samples)


_NO_HEADER = (
    "columns have names that are cells of theirs, or numbers: where the file has no header its "
    "first row was taken for one; write a header above it, and draft anew"
)


def _names_are_cells(raws: Sequence[RawColumn]) -> bool:
    """Whether at least half of the names look like cells, as where a text file has no header."""
    if not any(raw.untyped for raw in raws):  # of a source that has names of its own
        return False
    alike = sum(spells_number(raw.name) or raw.name in raw.uniques for raw in raws)
    return 2 * alike >= len(raws)


def draft_domain(
    raws: Sequence[RawColumn], *, drop: Sequence[str] = (), only: Sequence[str] | None = None
) -> Draft:
    """Draft a domain for the columns of a table, whatever their cells are.

    Args:
        raws: The columns, of distinct names.
        drop: Columns to mark ``"ignore": true``.
        only: The columns to keep; the others are marked ``"ignore": true``.  None keeps all.

    Returns:
        The draft.  Ids, dates, free text and empty columns are ignored, with the reason.

    Raises:
        OptionError: ``drop`` or ``only`` names a column that is not there, or nothing is left.
    """
    names = [raw.name for raw in raws]
    for name in (*drop, *(only or ())):
        if name not in names:
            raise OptionError(f"there is no column {name!r}; the columns are {shown_list(names)}")
    columns: dict[str, Column] = {}
    ignored: dict[str, str] = {}
    notes: list[Note] = []
    for raw in raws:
        if raw.name in drop or (only is not None and raw.name not in only):
            ignored[raw.name] = _NOT_WANTED
            continue
        found = _proposal(raw)
        if found.column is None:
            ignored[raw.name] = found.reason
            notes.append(Note(raw.name, f"ignored: {found.reason}"))
        else:
            columns[raw.name] = found.column
        notes += [Note(raw.name, words) for words in found.words]
    if not columns:
        wanted = [name for name in names if ignored[name] != _NOT_WANTED]
        if not wanted:
            raise OptionError("every column would be ignored; keep at least one")
        del ignored[wanted[0]]
        columns[wanted[0]] = Numeric()
        words = "kept all the same, as numeric, because a domain needs a column: correct it"
        notes.append(Note(wanted[0], words))
    if len(columns) == 1:
        notes.append(Note("", "a run needs two columns at least, and only one is not ignored"))
    return Draft(Domain(columns, declared=False, ignored=ignored), tuple(notes), raws[0].n_samples)


def _proposal(raw: RawColumn) -> _Found:
    """What one column looks like; the first rule that holds."""
    if raw.odd_type:
        dated = re.match(r"(Date|Time|Duration)", raw.odd_type)
        what = "dates or times" if dated else f"values of type {raw.odd_type.partition('(')[0]}"
        return _Found(None, f"holds {what}")
    cells = _Cells.of(raw)
    if not cells.values:
        return _Found(None, "is empty: every cell is missing")
    if cells.share(is_date) >= _MOSTLY:
        return _Found(None, "looks like dates or times")
    if cure := _other_spelling(cells):
        return _Found(None, _OTHER_SPELLING.format(cure))
    try:
        found = (None if cells.ordered else _numbers(cells)) or _text(cells)
    except DomainError:  # such as the text "1" beside the number 1
        return _Found(None, "has cells that cannot be told apart in a file")
    if found.reason not in (_ONCE, _REPEATS):
        return found
    words = id_words(cells.values, cells.n_missing, most=_MOST_SHOWN)
    return _Found(None, found.reason, (*found.words, *words))


def _other_spelling(cells: _Cells) -> str:
    """How to write the cells, where many distinct ones are numbers in a spelling that is not read;
    else empty.
    """
    if len(cells.values) <= _FEW_LEVELS or cells.share(_is_number) >= _MOSTLY:
        return ""
    spelt = [
        spelling
        for cell in cells.values
        if not _is_number(cell) and (spelling := spelling_of(cell))
    ]
    units = {spelling.casefold() for spelling in spelt if spelling.startswith("unit")}
    if len(units) > _MOST_UNITS:
        return ""
    told = cells.share(lambda cell: _is_number(cell) or spelling_of(cell) is not None)
    return plainly(spelt) if told >= _MOSTLY else ""


def _is_number(cell: object) -> bool:
    return number_of(cell) is not None


def _missing_words(n_missing: int, n_rows: int) -> str:
    return (
        f'{counted(n_missing, "missing cell")} ({n_missing / n_rows:.1%}): proposed "missing", '
        "which gives them a code of their own; keep it if cells could be missing"
    )


def _listed(cells: _Cells) -> str:
    """Cells with their numbers of rows, as many as a line takes."""
    first = [
        f"{shown(value)} ({count:,})"
        for value, count in zip(cells.values[:_MOST_SHOWN], cells.counts, strict=False)
    ]
    rest = len(cells.values) - len(first)
    return ", ".join(first) + (f" and {rest:,} more" if rest else "")


def _declared_missing(
    cells: _Cells, codes: _Cells, *, more: bool = False
) -> tuple[tuple[Level, ...] | None, tuple[str, ...]]:
    """What to declare as missing, and the notes about it."""
    words = []
    if cells.n_missing:
        words.append(_missing_words(cells.n_missing, cells.n_missing + cells.n_cells))
    if codes.values:
        words.append(
            f'perhaps codes for "missing", with their rows: {_listed(codes)}. They are proposed in '
            '"missing"; take out what is a value of its own, and keep what the code book says'
        )
    if not (cells.n_missing or codes.values or more):
        return None, ()
    return tuple(codes.values), tuple(words)  # type: ignore[arg-type]


def _rare(cells: _Cells) -> tuple[str, ...]:
    """A note about levels that few rows have, or about a level that all have."""
    if len(cells.values) == 1:
        return (_ONE_VALUE,)
    few = max(5, cells.n_cells // 500)
    rare = cells.where(count <= few for count in cells.counts.tolist())
    if not rare.values or len(rare.values) == len(cells.values) <= 2:
        return ()
    return (
        f"rare levels, with their rows: {_listed(rare)}. Noise drowns them: merge them (take them "
        'out of "levels", and name the level that they count as in "other")',
    )


def _id(cells: _Cells) -> _Found | None:
    """Whether text or whole numbers look like ids."""
    distinct, n_cells = len(cells.values), cells.n_cells
    if distinct >= _ENOUGH and distinct == n_cells:
        return _Found(None, _ONCE)
    named = names_somebody(cells.name) and distinct > _FEW_LEVELS
    if named or (distinct >= _ENOUGH and distinct >= _NEARLY_ALL * n_cells):
        words = f"{n_cells:,} rows have {distinct:,} values: {n_cells / distinct:.1f} rows each"
        return _Found(None, _REPEATS, (words,))
    return None


def _numbers(cells: _Cells) -> _Found | None:
    """The proposal for a column whose cells mostly are, or spell, numbers; else None."""
    plain = cells.where(not means_missing(cell) for cell in cells.values)
    if plain.share(lambda cell: number_of(cell) is not None) < _MOSTLY:
        return None
    numbers = plain.where(number_of(cell) is not None for cell in plain.values)
    odd = plain.where(number_of(cell) is None for cell in plain.values)
    exact = [number_of(cell) or 0 for cell in numbers.values]
    values = np.array(exact, dtype=np.float64)
    if np.unique(values).size < len(set(exact)):
        return None  # floats cannot tell them apart: codes of more than 15 digits
    is_code = codes_among(values)
    alone = stands_alone(np.where(is_code, values[~is_code].mean(), values)) & ~is_code
    is_code |= alone & (numbers.counts > 1)
    rest = numbers.where((~is_code).tolist())
    values, alone = values[~is_code], alone[~is_code]
    whole = bool((values == np.floor(values)).all() and np.abs(values).max() <= 2.0**53)
    if whole and (found := _id(rest)) is not None:
        return found
    codes = _Cells(
        cells.name,
        (
            *(number_of(cell) for cell in numbers.where(is_code.tolist()).values),
            *_words_of(cells).values,
        ),
        np.concatenate([numbers.counts[is_code], _words_of(cells).counts]),
        cells.n_missing,
        None,
    )
    missing, words = _declared_missing(cells, codes, more=bool(odd.values))
    if any(map(has_leading_zero, numbers.values)):
        words += (_ZERO_FIRST,)
    thousands = [said for cell in numbers.values if (said := may_be_thousands(cell)) is not None]
    if len(thousands) >= _ENOUGH and all(thousands):
        words += (_IN_THOUSANDS,)
    if odd.values:
        words += (
            f"cells without a finite number, with their rows: {_listed(odd)}. A private run counts "
            "them as missing (infinities as the bound)",
        )
    if whole and np.unique(values).size <= _FEW_LEVELS:
        return _ordinal(rest, values, missing, words)
    if alone.any():
        words += (
            f"far from all other values: {_listed(rest.where(alone.tolist()))}. A mistake, or a "
            'code? In a private run it counts as the nearest bound; a code belongs in "missing"',
        )
    rest, values = rest.where((~alone).tolist()), values[~alone]
    low, high = float(values.min()), float(values.max())
    if whole and low >= 0 and high - low >= 4 * (_median(rest, values) - low) and low < 0.1 * high:
        edges = edges_up_to(high)
        words += (
            f"whole numbers with a long tail, up to {high:,.0f}: proposed bins at round numbers, "
            "to be checked",
        )
        return _Found(Binned(edges, missing), words=words)
    return _measured(low, high, missing, words, whole=whole)


def _words_of(cells: _Cells) -> _Cells:
    return cells.where(map(means_missing, cells.values))


def _median(cells: _Cells, values: NDArray[np.float64]) -> float:
    order = np.argsort(values)
    place = np.searchsorted(np.cumsum(cells.counts[order]), cells.n_cells / 2)
    return float(values[order][place])


def _ordinal(
    cells: _Cells,
    values: NDArray[np.float64],
    missing: tuple[Level, ...] | None,
    words: tuple[str, ...],
) -> _Found:
    """Few whole numbers; "1" and "1.0" in a file are one of them."""
    levels, inverse = np.unique(values, return_inverse=True)
    counts = np.bincount(inverse.reshape(-1), weights=cells.counts).astype(np.int64)
    whole = tuple(int(level) for level in levels)
    joined = _Cells(cells.name, whole, counts, cells.n_missing, None)
    return _Found(Ordinal(whole, missing=missing), words=(*words, *_rare(joined)))


def _measured(
    low: float,
    high: float,
    missing: tuple[Level, ...] | None,
    words: tuple[str, ...],
    *,
    whole: bool,
) -> _Found:
    """A numeric column with rounded bounds."""
    lower, upper = bounds_around(low, high)
    try:
        column = Numeric(lower, upper, missing=missing)
    except DomainError:  # farther apart than the largest float
        return _Found(
            Numeric(missing=missing), words=(*words, "numeric: no bounds could be proposed")
        )
    if low == high:
        return _Found(Numeric(missing=missing), words=(*words, _ONE_VALUE))
    words += (
        f"numeric: the bounds {lower:g} and {upper:g} are rounded from the data, to be replaced by "
        "what is known without them",
    )
    if whole and missing is None:
        words += (
            'whole numbers: "bins" in the place of the bounds read them as an ordinal column',
        )
    return _Found(column, words=words)


def _text(cells: _Cells) -> _Found:
    """The proposal for a column of text."""
    if cells.ordered is not None:
        missing, words = _declared_missing(cells, cells.where([False] * len(cells.values)))
        return _Found(Ordinal(cells.ordered, missing=missing), words=(*words, *_rare(cells)))
    odd = cells.where(not isinstance(cell, (str, bool, int, float)) for cell in cells.values)
    if odd.n_cells > (1 - _MOSTLY) * cells.n_cells:
        return _Found(None, "has cells that are neither text nor numbers")
    plain = cells.where(
        isinstance(cell, (str, bool, int, float))
        and not means_missing(cell)
        and (isinstance(cell, (str, bool)) or math.isfinite(number_in(cell)))
        for cell in cells.values
    )
    if not plain.values:
        return _Found(None, "is empty: every cell is missing")
    distinct = len(plain.values)
    n_words = sum(len(str(cell).split()) for cell in plain.values) / distinct
    many = distinct > MAX_INFERRED_LEVELS
    nearly_all = distinct >= _ENOUGH and distinct >= _NEARLY_ALL * plain.n_cells
    if (many or nearly_all) and n_words >= 2.5:
        return _Found(None, "looks like free text")
    if (found := _id(plain)) is not None:
        return found
    if many:
        digits = sum(any(sign.isdigit() for sign in str(cell)) for cell in plain.values)
        if digits >= _MOSTLY * distinct:
            return _Found(None, _REPEATS)
        return _Found(None, f"text of more than {MAX_INFERRED_LEVELS} different values")
    missing, words = _declared_missing(cells, _words_of(cells), more=bool(odd.values))
    levels = sorted(plain.values, key=lambda cell: (isinstance(cell, str), cell))
    column = Categorical(tuple(levels), missing=missing)  # type: ignore[arg-type]
    words = (*words, *_other_encoding(plain), *_spelled_twice(plain), *_rare(plain))
    return _Found(column, words=words)


def _other_encoding(cells: _Cells) -> tuple[str, ...]:
    """A note about what was no UTF-8, which readers take for U+FFFD: levels can become equal."""
    if cells.share(lambda cell: REPLACED in str(cell)) == 0:
        return ()
    return (
        "cells hold bytes that are no UTF-8, and levels that differ only there are read as one: "
        "save the file as UTF-8, and draft anew",
    )


def _spelled_twice(cells: _Cells) -> tuple[str, ...]:
    """A note about levels that are one and the same but for their spelling."""
    twice = spelled_alike(cells.values)
    if not twice:
        return ()
    return (
        f"levels that differ in case, blanks or the spelling of a number only: "
        f"{', '.join(twice[:_MOST_SHOWN])}. They count as different levels",
    )
