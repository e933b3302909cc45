"""The code of a cell as an expression that an engine evaluates row by row.

It is the rule of total reading (:mod:`jaxcd.data.columns`), so that a table counted by an engine
and the same rows in memory agree to the last row.  Numbers and truth values are compared with the
declared levels.  Text is compared with the declared levels as it is spelled; what else may spell a
level or a missing value ("1.0", " NA") is first asked for, as distinct cells, and read here.  The
catch-all takes the rest, missing cells where none are declared among them: an expression is never
null.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxcd.data.column_types import Binned, Categorical, Column, LevelIndex, Numeric, Ordinal
from jaxcd.data.columns import RawColumn, fitted
from jaxcd.errors import DataError

__all__ = ["check_type", "code_of"]

_WHOLE = 2.0**63


def _kind(dtype: Any) -> str:
    """What the cells of a column are: "truth", "whole", "number" or "text"; else "odd"."""
    import narwhals as nw

    if not isinstance(dtype, nw.dtypes.DType):  # narwhals has no word for it
        return "odd"
    if dtype == nw.Boolean:
        return "truth"
    if dtype.is_integer():
        return "whole"
    if dtype.is_float() or dtype.is_decimal():
        return "number"
    return "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else "odd"


def check_type(name: str, dtype: Any, column: Column) -> None:
    """Refuses, from the table's public types, a column that cannot be read.

    Raises:
        DataError: it holds neither text nor numbers, or text where numbers are put into bins.
    """
    kind = _kind(dtype)
    if kind == "odd":
        raise DataError(
            f"column {name!r} holds values of type {dtype}; turn the column into text or numbers, "
            'or declare it with "ignore": true'
        )
    if kind == "text" and isinstance(column, Binned):
        raise DataError(
            f"column {name!r} is declared with bins, but the table holds text; cast it to a number"
        )


def code_of(
    name: str, dtype: Any, column: Column, distinct: Callable[[Any], Sequence[object]]
) -> Any:
    """The expression of a column's code, int64 and never null.

    Args:
        name: of the column.
        dtype: narwhals's word for its type.
        column: its declaration, discrete.
        distinct: the distinct cells for which a condition holds.
    """
    import narwhals as nw

    assert not isinstance(column, Numeric)
    kind, cells = _kind(dtype), nw.col(name)
    if kind == "number":
        if dtype.is_decimal():  # arrow's own cast to floats may miss the nearest one
            cells = cells.cast(nw.String)
        cells = cells.cast(nw.Float64)
    elif kind == "text" and dtype != nw.String:
        cells = cells.cast(nw.String)
    missing: list[Any] = []  # conditions
    if column.missing is not None:
        missing.append(cells.is_null())
        if kind == "number":
            missing.append(cells.is_nan())
        if kind != "text":
            # what is declared as a level is that level
            levels = () if isinstance(column, Binned) else column.levels
            known = _numbers(LevelIndex(levels), kind, dtype)
            sentinels = _numbers(LevelIndex(column.missing), kind, dtype)
            missing += [cells == _literal(each, dtype) for each in sentinels if each not in known]
    cases = [(condition, column.missing_code) for condition in missing]
    if isinstance(column, Binned):
        cases += _bins(cells, column, is_float=kind == "number")
    elif kind == "text":
        cases += _texts(cells, column, distinct)
    else:
        cases += [
            (cells == _literal(number, dtype), code)
            for number, code in _numbers(LevelIndex(column.levels), kind, dtype).items()
        ]
    found = nw.lit(column.catch_all, dtype=nw.Int64)
    for condition, code in reversed(cases):
        found = nw.when(condition).then(nw.lit(code, dtype=nw.Int64)).otherwise(found)
    return found


def _literal(number: bool | int | float, dtype: Any) -> Any:
    """The number for a comparison; beyond int64 some engines have to be told of which type."""
    import narwhals as nw

    return nw.lit(number, dtype=dtype) if dtype.is_integer() and number >= _WHOLE else number


def _numbers(index: LevelIndex, kind: str, dtype: Any) -> Mapping[bool | int | float, int]:
    """The codes of the numbers that a column of this kind and type can hold."""
    import narwhals as nw

    found: dict[bool | int | float, int] = {}
    wide = {nw.UInt64: 2.0**64, nw.Int128: 2.0**127, nw.UInt128: 2.0**128}
    end = next((end for each, end in wide.items() if dtype == each), _WHOLE)
    for number, code in index.numbers.items():
        if kind == "truth":
            if number in (0, 1):
                found[bool(number)] = code
        elif kind == "whole":
            if -_WHOLE <= number < end and number == int(number):
                found[int(number)] = code
        elif abs(number) <= np.finfo(np.float64).max and float(number) == number:
            found[float(number)] = code
    return found


def _bins(cells: Any, column: Binned, *, is_float: bool) -> list[tuple[Any, int]]:
    import narwhals as nw

    cases = [(cells.is_null(), column.catch_all)]
    if is_float:  # NaN, which some engines take for the largest number
        cases.append((cells.is_nan(), column.catch_all))
    number = cells.cast(nw.Float64)
    inner = list(enumerate(column.edges[1:-1], start=1))
    cases += [(number >= edge, place) for place, edge in reversed(inner)]
    return [*cases, (~cells.is_null(), 0)]


def _texts(
    cells: Any, column: Categorical | Ordinal, distinct: Callable[[Any], Sequence[object]]
) -> list[tuple[Any, int]]:
    index = LevelIndex(column.levels)
    spelled = index.texts
    by_code: defaultdict[int, list[str]] = defaultdict(list)
    for text, code in spelled.items():
        by_code[code].append(text)
    if column.missing is not None or index.spelled_numbers:
        # Text that is none of the levels may spell one of them, or a missing value.
        other = ~cells.is_null()
        if spelled:
            other = other & ~cells.is_in(list(spelled))
        odd = [cell for cell in distinct(other) if isinstance(cell, str)]
        codes = fitted(RawColumn("", uniques=tuple(odd), inverse=np.arange(len(odd))), column)
        for text, code in zip(odd, codes.cells.tolist(), strict=True):
            if code != column.catch_all:
                by_code[code].append(text)
    return [(cells.is_in(texts), code) for code, texts in sorted(by_code.items())]
