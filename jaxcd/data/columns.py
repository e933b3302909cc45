"""Columns as they come from a file or frame, and how they become codes and numbers.

A column that declares ``missing`` keeps its missing cells as what they are: a code behind the
levels, or a mark beside the number.  Any other cell that fits no declaration (missing where that is
not declared, an undeclared level, no number, out of bounds) is handled in one of two ways.
*Strict* reading raises an error that shows the cell.  *Total* reading never fails on a cell: it
counts as the column's ``other``, and a number out of bounds as the nearest bound.  A private
analysis reads totally, because an error that one record decides is an answer about that record, for
which nobody paid.  The rule looks at one record at a time, so neighbouring tables stay neighbours
(PRIVACY.md S).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import with_article
from jaxcd.data.column_types import (
    MAX_INFERRED_LEVELS,
    Binned,
    Categorical,
    Column,
    Level,
    LevelIndex,
    Numeric,
    Ordinal,
    shown,
)
from jaxcd.errors import DataError, DomainError

MISSING_TEXTS = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL"})
"""Texts that mean a missing value, unless they are declared as levels."""
# pandas' marks of a missing cell, known by the names of their types: pandas need not be installed.
_NULLS = frozenset({"NAType", "NaTType"})


@dataclass(frozen=True, eq=False, repr=False)
class RawColumn:
    """One column before its domain is applied: either ``numbers`` or ``uniques`` with ``inverse``.

    Args:
        name: The column's name.
        numbers: Truth values, integers or floats, shape (n,).
        uniques: The distinct cells; cell i is ``uniques[inverse[i]]``.
        inverse: Positions in ``uniques``, shape (n,).
        untyped: Whether cells that all are numbers, or text that spells them (a csv file), make a
            column of numbers, when a domain is inferred.
        ordered_levels: The declared order of an ordered categorical, when a domain is inferred.
        categories: All levels of an unordered categorical whose type declares them (pandas), when a
            domain is inferred.
        odd_type: The frame's name of a type whose cells are neither text nor numbers (a date, a
            list); they are not looked at.
        spelled: Of decimals, which ``numbers`` have as the nearest floats: the cells as text, a
            series that lists them.
    """

    name: str
    numbers: NDArray | None = None
    uniques: tuple[object, ...] = ()
    inverse: NDArray | None = None
    untyped: bool = False
    ordered_levels: tuple[Level, ...] | None = None
    categories: tuple[Level, ...] = ()
    odd_type: str = ""
    spelled: Any = None

    def check_type(self, *, is_person: bool = False) -> None:
        """Raises DataError where the frame's type says that no cell is text or a number.

        Args:
            is_person: whether the cells say whose row it is, so that they cannot be ignored.
        """
        if self.odd_type:
            what = ", and says which rows belong to one person" if is_person else ""
            other = "" if is_person else ', or declare it with "ignore": true'
            raise DataError(
                f"column {self.name!r} holds values of type {self.odd_type}{what}; turn the column "
                f"into text or numbers{other}"
            )

    def factorised(self) -> tuple[tuple[object, ...], NDArray]:
        """The distinct cells and the position of every row's cell among them."""
        if self.numbers is None:
            assert self.inverse is not None
            return self.uniques, self.inverse
        uniques, inverse = np.unique(self.numbers, return_inverse=True)
        return tuple(uniques.tolist()), inverse.reshape(-1)

    def told_apart(self) -> tuple[tuple[object, ...], NDArray]:
        """As :meth:`factorised`, for cells that name people: two decimals are two cells, also where
        one float is the nearest to both.
        """
        return self.factorised() if self.spelled is None else factorise(self.spelled.to_list())

    def cell(self, row: int) -> object:
        """The cell of a row, counted from 0."""
        if self.numbers is not None:
            return self.numbers[row]
        assert self.inverse is not None
        return self.uniques[self.inverse[row]]

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        cells = self.inverse if self.numbers is None else self.numbers
        assert cells is not None
        return int(cells.shape[0])


@dataclass(frozen=True)
class Unreadable:
    """Stands for a cell that cannot be a level or a number, such as a list."""

    kind: str


_PLAIN = frozenset({str, int, float, bool, type(None)})


def factorise(cells: Sequence[object]) -> tuple[tuple[object, ...], NDArray]:
    """Distinct cells as plain values, in order of first appearance, and the position of every cell
    among them.

    Cells are told apart by type and value.  True, 1, 1.0 and Fraction(1) equal each other and are
    not read alike: told apart by value alone, the first would decide how the others are read.
    """
    kinds = set(map(type, cells))
    if not kinds <= _PLAIN:
        cells = [_plain(cell) for cell in cells]
        kinds = set(map(type, cells))
    if len(kinds - {str, type(None)}) < 2:  # nothing equals text but text
        index = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
        return tuple(index), np.fromiter(map(index.__getitem__, cells), np.int32, len(cells))
    keys = list(zip(map(type, cells), cells, strict=True))
    typed = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    inverse = np.fromiter(map(typed.__getitem__, keys), np.int32, len(keys))
    return tuple(cell for _, cell in typed), inverse


def _plain(cell: object) -> object:
    """A cell as the text, number or truth value that it is, of Python's own type: a class derived
    from these may say otherwise what it equals.  Other cells stay, as the marks of people, or are
    Unreadable where they cannot be told apart.
    """
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, (bool, np.bool_)):
        return bool(cell)
    if isinstance(cell, int):
        return int.__int__(cell)
    if isinstance(cell, np.integer) and not isinstance(cell, np.timedelta64):
        return int(cell)
    if isinstance(cell, (float, np.floating)):
        return math.nan if cell != cell else float(cell)
    if isinstance(cell, (complex, np.complexfloating)):
        return _plain(cell.real) if cell.imag == 0 else Unreadable(type(cell).__name__)
    if isinstance(cell, Decimal):
        return _number_of_decimal(cell)
    if isinstance(cell, (np.ndarray, jax.Array)) and cell.ndim == 0:  # of a row that is an array
        return _plain(cell.tolist())  # None where it is masked
    if isinstance(cell, np.timedelta64) or not _hashes(cell):
        return Unreadable(type(cell).__name__)
    return cell


def without_bytes(array: NDArray) -> NDArray:
    """An array of bytes as the text that they spell, because one cell of bytes makes bytes of all;
    any other array as it is.
    """
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


_LONGEST = 400  # digits: more than any float has


def _number_of_decimal(cell: Decimal) -> int | float:
    """The number of a decimal, whole where there is nothing but zeros behind the point."""
    if not cell.is_finite():
        return math.nan if cell.is_nan() else math.copysign(math.inf, cell)
    _, digits, exponent = cell.as_tuple()
    places = -int(exponent)
    if len(digits) - places > _LONGEST or (places > 0 and any(digits[-places:])):
        return float(cell)
    return int(cell)


def _hashes(cell: object) -> bool:
    try:
        hash(cell)
    except Exception:  # a list, or a tuple that holds one; a class may raise anything
        return False
    return True


def is_missing(value: object) -> bool:
    """Whether a cell is one of those that usually mean a missing value."""
    if isinstance(value, str):
        return value.strip() in MISSING_TEXTS
    if value is None or type(value).__name__ in _NULLS:
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A column by the rule of total reading; each array has the shape (n,).

    Args:
        cells: int32 codes (discrete) or float64 values (numeric).
        misfits: which rows fit no declaration.
        missing: which rows are missing, where the column declares that they can be; else None.
    """

    cells: NDArray
    misfits: NDArray[np.bool_]
    missing: NDArray[np.bool_] | None = None


def fitted(raw: RawColumn, column: Column, *, clip: bool = False) -> Fitted:
    """The codes or numbers of a raw column, whatever its cells are.

    Args:
        clip: whether numbers beyond the bounds count as fitting.

    Raises:
        DataError: The column's type has neither text nor numbers.
    """
    raw.check_type()
    if isinstance(column, Numeric):
        return _fitted_numbers(raw, column, clip)
    if isinstance(column, Binned):
        return _fitted_bins(raw, column, clip)
    uniques, inverse = raw.factorised()
    codes = column.codes_of(uniques)
    # A text that is declared as a level is that level, also where it usually means "missing".
    missing = _missing_among(uniques, column) & (codes < 0)
    misfits = (codes < 0) & ~missing
    codes[misfits] = column.catch_all
    if column.missing_code is not None:
        codes[missing] = column.missing_code
    return Fitted(codes.take(inverse), _where(misfits, inverse))


def _where(marked: NDArray[np.bool_], inverse: NDArray) -> NDArray[np.bool_]:
    """Which cells are one of the marked distinct ones; mostly none is."""
    return marked.take(inverse) if marked.any() else np.zeros(inverse.shape, dtype=np.bool_)


def _missing_among(uniques: Sequence[object], column: Column) -> NDArray[np.bool_]:
    """Which distinct cells mean a missing value by the column's declaration."""
    if column.missing is None:
        return np.zeros(len(uniques), dtype=np.bool_)
    declared = LevelIndex(column.missing)
    return np.array(
        [is_missing(cell) or declared.code(cell) is not None for cell in uniques], dtype=np.bool_
    )


def check_has_rows(n_samples: int) -> None:
    """Refuses a table without rows."""
    if not n_samples:
        raise DataError("the data must have at least 1 row, not 0; add rows")


def encode(
    raw: RawColumn, column: Column, *, clip: bool = False, strict: bool = True
) -> tuple[NDArray, NDArray[np.bool_] | None]:
    """Turn a raw column into int32 codes (discrete) or float64 values (numeric), and a mask of the
    missing ones for a numeric column that declares them (else None).

    Raises:
        DataError: If ``strict``, naming column, row (from 1), value and cure, for the first row
            that does not fit the column.
    """
    found = fitted(raw, column, clip=clip)
    if strict and found.misfits.any():
        row = int(found.misfits.argmax())
        raise DataError(
            f"column {raw.name!r}, row {row + 1}: {misfit_words(raw.cell(row), column)}"
        )
    return found.cells, found.missing


def misfit_words(cell: object, column: Column | None = None) -> str:
    """What is wrong with a cell that fits no declaration, and the cure."""
    return "; ".join(misfit_and_cure(cell, column))


def misfit_and_cure(cell: object, column: Column | None = None) -> tuple[str, str]:
    """:func:`misfit_words`, in their two parts."""
    if isinstance(cell, Unreadable):
        return f"a cell holds {with_article(cell.kind)}", "turn the column into text or numbers"
    if is_missing(cell):
        return (
            "the value is missing",
            'declare "missing": true for the column in the domain, and it gets a code of its own',
        )
    if not isinstance(column, (Numeric, Binned)):
        return (
            f"the value {shown(cell)} is not a declared level",
            "add it to the levels in the domain or correct the cell",
        )
    number = number_in(cell)
    if not math.isfinite(number):
        what = "not a number, but the column is numeric" if math.isnan(number) else "infinite"
        return (
            f"the value {shown(cell)} is {what}",
            "correct the cell or declare the column with levels",
        )
    return (
        f"the value {shown(number)} is outside the declared bounds "
        f"[{column.bounds[0]:g}, {column.bounds[1]:g}]",  # type: ignore[index]
        "widen the bounds in the domain or read with clip=True",
    )


def _read_numbers(
    raw: RawColumn, column: Numeric | Binned
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers in the cells, infinities included and NaN where there is none; and which cells
    are missing by the column's declaration.
    """
    if raw.numbers is not None and not column.missing:
        values = raw.numbers.astype(np.float64, copy=False)
        none = np.zeros(values.shape, dtype=np.bool_)
        return values, none if column.missing is None else np.isnan(values)
    uniques, inverse = raw.factorised()
    missing = _missing_among(uniques, column)
    values = np.array([number_in(cell) for cell in uniques], dtype=np.float64)
    values[missing] = np.nan
    return values.take(inverse), _where(missing, inverse)


def _fitted_numbers(raw: RawColumn, column: Numeric, clip: bool) -> Fitted:
    values, missing = _read_numbers(raw, column)
    kept = None if column.missing is None else missing
    low, high = column.bounds or (-np.inf, np.inf)
    if all_within(values, low, high):  # mostly they are
        return Fitted(values, np.zeros(values.shape, dtype=np.bool_), kept)
    misfits = ~np.isfinite(values) & ~missing
    if column.missing is not None:
        # Text in a column of numbers says as little as an empty cell.
        kept = missing | np.isnan(values)
    if column.lower is None or column.upper is None:
        return Fitted(np.where(np.isfinite(values), values, column.catch_all), misfits, kept)
    if not clip:
        misfits |= ~((values >= column.lower) & (values <= column.upper)) & ~missing
    inside = np.clip(
        np.where(np.isnan(values), column.catch_all, values), column.lower, column.upper
    )
    return Fitted(inside, misfits, kept)


def _fitted_bins(raw: RawColumn, column: Binned, clip: bool) -> Fitted:
    values, missing = _read_numbers(raw, column)
    inside = (values >= column.edges[0]) & (values <= column.edges[-1])
    misfits = ~missing & ~(np.isfinite(values) if clip else inside)
    return Fitted(column.bins_of(values, missing), misfits)


def all_within(values: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether all values are finite and within bounds; True of none."""
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    finite = np.isfinite(least) and np.isfinite(most)
    return not values.size or bool(finite and low <= least and most <= high)


def number_in(cell: object) -> float:
    """The number a cell holds or spells, infinities included; NaN when there is none."""
    if isinstance(cell, str):
        try:
            # Python reads 1_000 as a number; files do not mean it
            return math.nan if "_" in cell else float(cell)
        except ValueError:
            return math.nan
    if isinstance(cell, (bool, np.bool_, int, np.integer, float, np.floating)):
        try:
            return float(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    return math.nan


def infer_columns(raws: Sequence[RawColumn]) -> dict[str, Column]:
    """A declaration of every column that its cells fit; the rule is stated at
    :meth:`Domain.infer`.
    """
    return {raw.name: _infer_column(raw) for raw in raws}


def _infer_column(raw: RawColumn) -> Column:
    if raw.numbers is not None and raw.numbers.dtype == np.bool_:
        return Categorical((False, True))
    if raw.numbers is not None:
        return _infer_numbers(raw, bool(np.isnan(raw.numbers.min(initial=0))))
    uniques, inverse = raw.factorised()
    known = [cell for cell in uniques if not is_missing(cell)]
    missing = True if len(known) < len(uniques) else None
    if raw.ordered_levels is not None:
        try:
            return Ordinal(raw.ordered_levels, missing=missing)  # type: ignore[arg-type]
        except DomainError as error:  # such as the intervals of pandas.cut
            raise DataError(f"column {raw.name!r}: {error}; turn the column into text") from None
    if raw.untyped and known and all(spells_number(cell) for cell in known):
        return _infer_numbers(raw, missing is not None)
    if len(uniques) > MAX_INFERRED_LEVELS:
        raise DataError(
            f"column {raw.name!r} holds text with more than {MAX_INFERRED_LEVELS} distinct values; "
            'declare its levels in a domain, or "ignore": true (`jaxcd domain FILE` writes a draft)'
        )
    levels: list[Level] = []
    for position, cell in enumerate(uniques):
        if is_missing(cell):
            continue
        value = cell.item() if isinstance(cell, np.generic) else cell
        if not isinstance(value, (str, bool, int, float)):
            row = int((inverse == position).argmax()) + 1
            odd = value if isinstance(value, Unreadable) else Unreadable(type(value).__name__)
            raise DataError(f"column {raw.name!r}, row {row}: {misfit_words(odd)}")
        levels.append(value)
    if not levels:
        raise DataError(
            f'column {raw.name!r} holds missing values only; drop it, or declare "ignore": true'
        )
    # Those that no cell has are levels as well, where the frame's type says so.
    every = [level for level in raw.categories if not is_missing(level)]
    if every and len(every) <= MAX_INFERRED_LEVELS and set(levels) <= set(every):
        with contextlib.suppress(DomainError):  # one that no cell has may be no level (infinity)
            return Categorical(tuple(every), missing=missing)  # type: ignore[arg-type]
    return Categorical(tuple(_sorted_levels(levels)), missing=missing)  # type: ignore[arg-type]


def spells_number(cell: object) -> bool:
    """Whether it is a number, or text that is read as one."""
    if isinstance(cell, str):
        return not math.isnan(number_in(cell))
    return not isinstance(cell, (bool, np.bool_)) and not math.isnan(number_in(cell))


def _sorted_levels(levels: Iterable[Level]) -> list[Level]:
    return sorted(levels, key=lambda level: (isinstance(level, str), level))


# Below, every whole number is a float of its own.
_FLOATS_TELL = 2.0**53
_FIRST = 1_000  # rows, which mostly show that there are too many numbers


def _infer_numbers(raw: RawColumn, missing: bool) -> Column:
    column = Numeric(missing=True if missing else None)  # type: ignore[arg-type]
    cells, absent = encode(raw, column)
    values = cells if absent is None else cells[~absent]
    if not values.size:
        raise DataError(
            f'column {raw.name!r} holds missing values only; drop it, or declare "ignore": true'
        )
    if np.unique(values[:_FIRST]).size <= MAX_INFERRED_LEVELS and np.array_equal(
        values, np.floor(values)
    ):
        levels: Iterable[float] = np.unique(values)
        if np.abs(values).max(initial=0.0) >= _FLOATS_TELL:
            levels = _whole_numbers(raw)
        found = [int(level) for level in levels]
        if 0 < len(found) <= MAX_INFERRED_LEVELS:
            return Ordinal(tuple(found), missing=column.missing)
    return column


def _whole_numbers(raw: RawColumn) -> list[int]:
    """The distinct cells in order where all are whole numbers and written as such, else none."""
    cells = raw.factorised()[0] if raw.numbers is None else np.unique(raw.numbers)
    found: set[int] = set()
    for cell in cells:
        if isinstance(cell, (int, np.integer)):
            found.add(int(cell))
        elif isinstance(cell, str) and cell.isascii() and cell.removeprefix("-").isdigit():
            found.add(int(cell))
        elif not is_missing(cell):
            return []
    return sorted(found)
