"""Columns as they come from a file or frame, and how they become codes and numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.column_types import (
    MAX_INFERRED_LEVELS,
    Categorical,
    Column,
    Level,
    LevelIndex,
    Numeric,
    Ordinal,
)
from jaxcd.data.domain import Domain
from jaxcd.errors import DataError

MISSING_TEXTS = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL"})
"""Texts that mean a missing value, unless they are declared as levels."""


@dataclass(frozen=True, eq=False, repr=False)
class RawColumn:
    """One column before its domain is applied: either ``numbers`` or ``uniques`` with ``inverse``.

    Args:
        name: The column's name.
        numbers: Truth values, integers or floats, shape (n,).
        uniques: The distinct cells; cell i is ``uniques[inverse[i]]``.
        inverse: Positions in ``uniques``, shape (n,).
        untyped: Whether text may be a number written out (a csv file), when a domain is inferred.
        ordered_levels: The declared order of an ordered categorical, when a domain is inferred.
    """

    name: str
    numbers: NDArray | None = None
    uniques: tuple[object, ...] = ()
    inverse: NDArray | None = None
    untyped: bool = False
    ordered_levels: tuple[Level, ...] | None = None

    def factorised(self) -> tuple[tuple[object, ...], NDArray]:
        """The distinct cells and the position of every row's cell among them."""
        if self.numbers is None:
            assert self.inverse is not None
            return self.uniques, self.inverse
        uniques, inverse = np.unique(self.numbers, return_inverse=True)
        return tuple(uniques.tolist()), inverse.reshape(-1)

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        cells = self.inverse if self.numbers is None else self.numbers
        assert cells is not None
        return int(cells.shape[0])


def factorise(cells: Sequence[object], name: str) -> tuple[tuple[object, ...], NDArray]:
    """Distinct cells, in order of first appearance, and the position of every cell among them."""
    try:
        index = {cell: position for position, cell in enumerate(dict.fromkeys(cells))}
        inverse = np.fromiter(map(index.__getitem__, cells), np.int32, len(cells))  # type: ignore[arg-type]
    except TypeError:
        row = next(i for i, cell in enumerate(cells, start=1) if not isinstance(cell, Hashable))
        raise DataError(
            f"column {name!r}, row {row}: a cell holds a {type(cells[row - 1]).__name__}; "
            "turn the column into text or numbers"
        ) from None
    return tuple(index), inverse


def _shown(value: object) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def missing_value(name: str, row: int) -> DataError:
    """The error for a missing cell; ``row`` counts data rows from 1."""
    return DataError(
        f"column {name!r}, row {row}: the value is missing; drop the row, impute the value or declare a level for it"
    )


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() in MISSING_TEXTS
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def encode(raw: RawColumn, column: Column, *, clip: bool) -> NDArray:
    """Turn a raw column into int32 codes (discrete) or float64 values (numeric).

    Raises:
        DataError: Naming column, row (from 1), value and cure, for the first row that does not fit the column.
    """
    if isinstance(column, Numeric):
        return _bounded(raw.name, _numbers(raw), column, clip)
    uniques, inverse = raw.factorised()
    index = LevelIndex(column.levels)
    codes = np.array([-1 if (code := index.code(value)) is None else code for value in uniques], dtype=np.int32)
    result = codes[inverse]
    unmatched = result < 0
    if unmatched.any():
        row = int(unmatched.argmax())
        value = uniques[inverse[row]]
        if _is_missing(value):
            raise missing_value(raw.name, row + 1)
        raise DataError(
            f"column {raw.name!r}, row {row + 1}: the value {_shown(value)} is not a declared level; "
            "add it to the levels in the domain or correct the cell"
        )
    return result


def _numbers(raw: RawColumn) -> NDArray[np.float64]:
    """The cells as finite float64 numbers."""
    if raw.numbers is not None:
        values = raw.numbers.astype(np.float64)
        cells: tuple[object, ...] | NDArray = raw.numbers
        inverse = None
    else:
        cells, inverse = raw.factorised()
        values = np.array([_float(cell) for cell in cells], dtype=np.float64)[inverse]
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return values
    row = int(wrong.argmax())
    cell = cells[row if inverse is None else inverse[row]]
    if _is_missing(cell):
        raise missing_value(raw.name, row + 1)
    what = "infinite" if np.isinf(values[row]) else "not a number, but the column is numeric"
    raise DataError(
        f"column {raw.name!r}, row {row + 1}: the value {_shown(cell)} is {what}; "
        "correct the cell or declare the column with levels"
    )


def _float(cell: object) -> float:
    """The number a cell holds or spells, infinities included; NaN when there is none."""
    if isinstance(cell, str):
        try:
            return math.nan if "_" in cell else float(cell)  # Python reads 1_000 as a number; files do not mean it
        except ValueError:
            return math.nan
    if isinstance(cell, (bool, np.bool_, int, np.integer, float, np.floating)):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    return math.nan


def _bounded(name: str, values: NDArray[np.float64], column: Numeric, clip: bool) -> NDArray[np.float64]:
    if column.lower is None or column.upper is None:
        return values
    if clip:
        return np.clip(values, column.lower, column.upper)
    outside = ~((values >= column.lower) & (values <= column.upper))
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"column {name!r}, row {row + 1}: the value {_shown(values[row])} is outside the declared bounds "
            f"[{column.lower:g}, {column.upper:g}]; widen the bounds in the domain or read with clip=True"
        )
    return values


def infer_domain(raws: Sequence[RawColumn]) -> Domain:
    """The domain of the cells themselves, with ``declared=False``; the rule is stated at :meth:`Domain.infer`."""
    return Domain({raw.name: _infer_column(raw) for raw in raws}, declared=False)


def _infer_column(raw: RawColumn) -> Column:
    if raw.ordered_levels is not None:
        return Ordinal(raw.ordered_levels)
    if raw.numbers is not None:
        if raw.numbers.dtype == np.bool_:
            return Categorical((False, True))
        return _infer_numbers(_numbers(raw))
    uniques, inverse = raw.factorised()
    missing = np.array([_is_missing(cell) for cell in uniques])[inverse]
    if missing.any():
        raise missing_value(raw.name, int(missing.argmax()) + 1)
    if raw.untyped and all(_spells_number(cell) for cell in uniques):
        return _infer_numbers(_numbers(raw))
    if len(uniques) > MAX_INFERRED_LEVELS:
        raise DataError(
            f"column {raw.name!r} holds text with more than {MAX_INFERRED_LEVELS} distinct values; "
            "declare its levels in a domain or drop the column"
        )
    levels: list[Level] = []
    for position, cell in enumerate(uniques):
        value = cell.item() if isinstance(cell, np.generic) else cell
        if not isinstance(value, (str, bool, int, float)):
            row = int((inverse == position).argmax()) + 1
            raise DataError(
                f"column {raw.name!r}, row {row}: a cell holds a {type(value).__name__}; "
                "turn the column into text or numbers"
            )
        levels.append(value)
    return Categorical(tuple(_sorted_levels(levels)))


def _spells_number(cell: object) -> bool:
    if isinstance(cell, str):
        return not math.isnan(_float(cell))
    return not isinstance(cell, (bool, np.bool_)) and not math.isnan(_float(cell))


def _sorted_levels(levels: Iterable[Level]) -> list[Level]:
    return sorted(levels, key=lambda level: (isinstance(level, str), level))


# Up to here every whole number is a float of its own, so that a level is what stands in the cell.
_LARGEST_LEVEL = 2.0**53


def _infer_numbers(values: NDArray[np.float64]) -> Column:
    if np.array_equal(values, np.floor(values)) and np.abs(values).max(initial=0.0) <= _LARGEST_LEVEL:
        levels = np.unique(values)
        if levels.size <= MAX_INFERRED_LEVELS:
            return Ordinal(tuple(int(level) for level in levels))
    return Numeric()
