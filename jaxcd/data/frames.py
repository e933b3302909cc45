"""Frames and arrays taken apart into raw columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import check_listed, counted
from jaxcd.data.arrow_text import declared_order, text_of
from jaxcd.data.columns import RawColumn, Unreadable, factorise, without_bytes
from jaxcd.data.held_types import held_type, holds_nothing, is_read
from jaxcd.errors import DataError

_READ = "biufcOUT"
"""The kinds of numpy's types that are read: numbers, truth values, objects and text.  One complex
cell makes the whole complex, so each is read by itself.
"""


def raw_columns(values: Any, *, names: Sequence[str] | None = None) -> tuple[RawColumn, ...]:
    """The columns of a data frame, or of a two-dimensional array with ``names``."""
    if isinstance(values, (np.ndarray, list, tuple)) or hasattr(values, "addressable_shards"):
        return raw_columns_of_array(values, names=names)
    return raw_columns_of_frame(values)


def checked_names(names: Sequence[object]) -> tuple[str, ...]:
    """The names as text, at least two, each once."""
    seen: set[str] = set()
    for position, name in enumerate(names, start=1):
        if not isinstance(name, str):
            raise DataError(
                f"column {position} has the name {name!r}, which is not text; rename the column"
            )
        if not name:
            numbers = (
                "; if it holds row numbers, as pandas' to_csv writes them, delete it (index=False "
                "writes none)"
            )
            raise DataError(
                f"column {position} has no name; name every column{numbers * (position == 1)}"
            )
        if name in seen:
            raise DataError(f"column {name!r} occurs twice; rename or drop one of the two")
        seen.add(name)
    if len(names) < 2:
        raise DataError(
            f"the data must have at least 2 columns, not {len(names)}; nothing can be discovered "
            f"in fewer{_other_separator(names)}"
        )
    return tuple(str(name) for name in names)


def _other_separator(names: Sequence[object]) -> str:
    """The cure where a single name is a header with another separator than a comma."""
    header = "".join(map(str, names))
    found = next((mark for mark in (";", "\t", "|") if mark in header), None)
    if found is None:
        return ""
    return (
        f"; the header {header[:60]!r} is separated by {found!r}: read the file with that "
        "separator, as jaxcd.read_csv does"
    )


def raw_columns_of_array(
    values: Any, *, names: Sequence[str] | None, strict: bool = True
) -> tuple[RawColumn, ...]:
    """The columns of an n_samples x n_columns array; without names they are x1, x2, ...

    Masked values are missing.

    Args:
        strict: whether rows given as lists must have one length; else they are filled up, or cut.
    """
    if names is not None and not isinstance(names, str):
        names = check_listed("names", names, error=DataError)
    if isinstance(values, np.ma.MaskedArray):
        plain = without_bytes(values.data)
        # of another type nothing is read, and no mask makes it one that is
        if plain.dtype.kind in _READ and np.ma.is_masked(values):
            plain = plain.astype(object)
            plain[np.ma.getmaskarray(values)] = None
        values = plain
    array = (
        np.asarray(values)  # no matrix
        if isinstance(values, np.ndarray)
        else array_of_rows(values, None if strict or names is None else len(names))
    )
    array = without_bytes(array)
    if array.ndim != 2:
        raise DataError(
            "values must be a two-dimensional array (n_samples x n_columns), not of shape "
            f"{array.shape}"
        )
    if names is None:
        names = [f"x{j}" for j in range(1, array.shape[1] + 1)]
    if isinstance(names, str) or len(names) != array.shape[1]:
        raise DataError(
            f"names must hold one name for each of the {counted(array.shape[1], 'column')}, not "
            f"{names!r}"
        )
    checked = checked_names(names)
    return tuple(_raw_of_cells(name, array[:, j]) for j, name in enumerate(checked))


def array_of_rows(values: Any, width: int | None) -> NDArray:
    """Rows given as lists keep their cells' types: numpy would turn a mixed table into text.

    Args:
        width: what rows are filled up or cut to; None: they must be of one length.
    """
    is_text = isinstance(values, (str, bytes))
    if is_text or hasattr(values, "__array__") or not hasattr(values, "__iter__"):
        return np.asarray(values)
    if width is not None:
        return _filled(list(values), width)
    if not all(map(_has_cells, values)):
        return np.asarray(values, dtype=object)
    if len({len(row) for row in values}) > 1:
        first = len(values[0])
        row = next(i for i, cells in enumerate(values, start=1) if len(cells) != first)
        raise DataError(
            f"row {row} has {counted(len(values[row - 1]), 'value')}, but row 1 has {first}; give "
            "all rows one length"
        )
    try:
        array = np.asarray(values)
    except ValueError:  # a cell is a sequence itself
        return _filled(list(values), len(values[0]))
    kind = array.dtype.kind
    # One fraction makes floats of all whole numbers, which beyond 2^53 would be others.
    is_exact = kind in "biu" or (kind == "f" and not (np.abs(array) >= 2.0**53).any())
    return array if is_exact else np.asarray(values, dtype=object)


def _has_cells(row: Any) -> bool:
    is_scalar = isinstance(row, (str, bytes)) or getattr(row, "shape", None) == ()
    return not is_scalar and hasattr(row, "__len__")


def _filled(rows: list[Any], width: int) -> NDArray:
    """Rows of any length in a table of objects; a row that is no sequence has no cells."""
    array = np.full((len(rows), width), None, dtype=object)
    for i, row in enumerate(rows):
        if _has_cells(row):
            for j, cell in enumerate(list(row)[:width]):
                array[i, j] = cell
    return array


def _raw_of_cells(name: str, cells: NDArray) -> RawColumn:
    if cells.dtype.kind == "f":
        # of a long double, which one cell makes of the whole
        with np.errstate(over="ignore", under="ignore"):
            return RawColumn(name, numbers=np.array(cells, dtype=np.float64))
    if cells.dtype.kind in "biu":
        return RawColumn(name, numbers=np.array(cells))
    if cells.dtype.kind not in _READ:
        return _of_odd_type(name, cells.dtype, len(cells))
    plain = cells.tolist()
    if plain and all(isinstance(cell, (bool, np.bool_)) for cell in plain):
        return RawColumn(name, numbers=np.array(plain, dtype=np.bool_))
    uniques, inverse = factorise(plain)
    return RawColumn(name, uniques=uniques, inverse=inverse, untyped=True)


def as_table(frame: Any) -> Any:
    """A record batch of arrow as a table, which narwhals takes; anything else as it is."""
    pa = sys.modules.get("pyarrow")  # else nothing is a record batch
    if pa is not None and isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    return frame


def raw_columns_of_frame(frame: Any) -> tuple[RawColumn, ...]:
    """The columns of anything narwhals takes as an eager frame: pandas, polars, arrow."""
    import narwhals as nw

    frame = as_table(frame)
    # Names first: narwhals refuses repeated names with a message of its own, some back ends only
    # later.
    if hasattr(frame, "column_names"):
        names = checked_names(list(frame.column_names))
    elif hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        raise DataError("frame is lazy; call .collect() on it first")
    elif hasattr(frame, "columns"):
        names = checked_names(list(frame.columns))
    try:
        eager = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"frame must be a pandas, polars or arrow data frame, not {type(frame).__name__}; "
            "for arrays use Dataset.from_array, for a relation of DuckDB or a stream of arrow its "
            "method that gives a table (.to_arrow_table(), .read_all())"
        ) from None
    return tuple(_raw_of_series(name, eager[name]) for name in names)


def raw_columns_of_series(name: str, cells: Any) -> RawColumn:
    """The column of a native series or array that narwhals takes."""
    import narwhals as nw

    return _raw_of_series(name, nw.from_native(cells, series_only=True))


def _raw_of_series(name: str, series: Any) -> RawColumn:
    import narwhals as nw

    held = held_type(series)
    if holds_nothing(held):
        return RawColumn(name, uniques=(None,), inverse=np.zeros(len(series), np.int32))
    if not is_read(held):
        return _of_odd_type(name, held, len(series))
    dtype = series.dtype
    # of decimals arrow's own cast to floats may miss the nearest one
    spelled = series.cast(nw.String) if dtype.is_decimal() else None
    if dtype.is_float() or spelled is not None:
        numbers = (series if spelled is None else spelled).cast(nw.Float64).to_numpy()
        return RawColumn(name, numbers=np.array(numbers, dtype=np.float64), spelled=spelled)
    if dtype == nw.Boolean or dtype.is_integer():
        if dtype in (nw.Int128, nw.UInt128) or bool(series.is_null().any()):  # numpy has no such
            return RawColumn(name, **_factorised(series.to_list()), untyped=True)
        return RawColumn(
            name,
            numbers=np.array(series.to_numpy(), dtype=np.bool_ if dtype == nw.Boolean else None),
        )
    if dtype == nw.Object:
        return _raw_of_cells(name, _objects(series.to_list()))
    if dtype == nw.Unknown:  # such as pandas' sparse numbers
        return _raw_of_cells(name, np.asarray(series.to_numpy()))
    try:
        cells = series.to_list()
    except UnicodeDecodeError:  # arrow's text is whatever bytes a writer put there
        cells = text_of(_arrow_of(series.to_native()))
    return RawColumn(
        name,
        **_factorised(cells),
        ordered_levels=_order_of(series),
        categories=_categories_of(series.to_native()),
    )


def _order_of(series: Any) -> tuple[Any, ...] | None:
    """The levels of an ordered categorical in their order."""
    import narwhals as nw

    if series.dtype == nw.Enum:
        return tuple(series.dtype.categories)
    cells = series.to_native()
    is_arrow = hasattr(cells.dtype, "pyarrow_dtype") if hasattr(cells, "dtype") else True
    return declared_order(_arrow_of(cells)) if series.dtype == nw.Categorical and is_arrow else None


def _categories_of(cells: Any) -> tuple[Any, ...]:
    """All categories of an unordered categorical of pandas, in their order.  The dictionaries of
    arrow, and the categoricals of polars, hold what was met in some data, and declare nothing.
    """
    kind: Any = getattr(cells, "dtype", None)
    if getattr(kind, "ordered", None) is not False or not hasattr(kind, "categories"):
        return ()
    levels = tuple(kind.categories.tolist())
    return levels if all(isinstance(level, (str, bool, int, float)) for level in levels) else ()


def _arrow_of(cells: Any) -> Any:
    import pyarrow as pa

    return cells if isinstance(cells, (pa.Array, pa.ChunkedArray)) else pa.array(cells)


def _of_odd_type(name: str, dtype: object, n_rows: int) -> RawColumn:
    """A column that may be ignored, and no more: nothing of its cells is read."""
    return RawColumn(
        name,
        uniques=(Unreadable(str(dtype)),),
        inverse=np.zeros(n_rows, np.int32),
        odd_type=str(dtype),
    )


def _factorised(cells: list[object]) -> dict[str, Any]:
    uniques, inverse = factorise(cells)
    return {"uniques": uniques, "inverse": inverse}


def _objects(cells: list[object]) -> NDArray:
    """A one-dimensional array of the cells, even where cells are sequences."""
    array = np.empty(len(cells), dtype=object)
    for position, cell in enumerate(cells):
        array[position] = cell
    return array
