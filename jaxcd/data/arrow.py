"""Columns of arrow tables as raw columns: the distinct cells, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.arrow_text import text_of
from jaxcd.data.columns import RawColumn

__all__ = ["raw_column", "raw_columns"]

_FIRST = 10_000  # rows


def raw_columns(table: Any, *, untyped: bool = False) -> tuple[RawColumn, ...]:
    """The columns of an arrow table of distinct names, each let go of as soon as it is read: hand
    the only reference over, as in ``raw_columns(parts.pop())``.
    """
    found = []
    while table.num_columns:
        found.append(raw_column(table.column_names[0], table.column(0), untyped=untyped))
        table = table.remove_column(0)
    return tuple(found)


def raw_column(name: str, cells: Any, *, untyped: bool = False) -> RawColumn:
    """The same raw column as :func:`jaxcd.data.frames.raw_columns_of_frame` makes of it, without a
    Python object for each cell.

    Args:
        name: of the column.
        cells: a pyarrow array or chunked array.
        untyped: whether text may be a number written out.
    """
    import pyarrow as pa

    from jaxcd.data.frames import raw_columns_of_series

    chunked = pa.chunked_array([cells]) if isinstance(cells, pa.Array) else cells
    kind = chunked.type
    if kind in (pa.float32(), pa.float64()):
        return RawColumn(name, numbers=_floats(chunked), untyped=untyped)
    is_whole = pa.types.is_integer(kind)
    if is_whole and not chunked.null_count:
        return RawColumn(name, numbers=_joined([_held(chunk) for chunk in chunked.chunks], kind))
    is_coded = pa.types.is_dictionary(kind)
    of_text = kind.value_type if is_coded else kind
    if not (is_whole or pa.types.is_string(of_text) or pa.types.is_large_string(of_text)) or (
        is_coded and kind.ordered
    ):
        return raw_columns_of_series(name, chunked)
    coded = _widened(chunked) if is_coded else chunked.dictionary_encode()
    coded = coded.unify_dictionaries()
    uniques: tuple[object, ...] = ()
    parts: list[NDArray] = []
    for chunk in coded.chunks:
        uniques = tuple(text_of(chunk.dictionary))
        places = _held(chunk.indices)
        if chunk.indices.null_count:
            places = np.where(_is_known(chunk.indices), places.astype(np.int64), -1)
        parts.append(places.astype(np.int32, copy=False))
    tidy = _tidy(uniques, _joined(parts, pa.int32()))
    return RawColumn(name, **tidy, untyped=untyped or is_whole)


def _widened(coded: Any) -> Any:
    """The chunks with places of 32 bits: fewer may tell the levels of one apart, but not of all."""
    import pyarrow as pa

    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary)
        for chunk in coded.chunks
    ]
    return pa.chunked_array(chunks, pa.dictionary(pa.int32(), coded.type.value_type))


def _floats(chunked: Any) -> NDArray[np.float64]:
    """The numbers; NaN for a null."""
    return _joined(
        [
            np.where(_is_known(chunk), _held(chunk), np.nan) if chunk.null_count else _held(chunk)
            for chunk in chunked.chunks
        ],
        chunked.type,
    ).astype(np.float64, copy=False)


def _held(cells: Any) -> NDArray:
    """The numbers of an array as they lie in memory, of any value where they are null; arrow's own
    ``to_numpy`` imports pandas.
    """
    dtype = np.dtype(cells.type.to_pandas_dtype())
    if not len(cells):
        return np.empty(0, dtype)
    return np.frombuffer(cells.buffers()[1], dtype, len(cells), cells.offset * dtype.itemsize)


def _is_known(cells: Any) -> NDArray[np.bool_]:
    """Which cells are not null, of an array that has nulls."""
    bits = np.frombuffer(cells.buffers()[0], np.uint8)
    end = cells.offset + len(cells)
    known = np.unpackbits(bits, count=end, bitorder="little")[cells.offset :]
    return known.view(np.bool_)


def _joined(parts: Sequence[NDArray], kind: Any) -> NDArray:
    return np.concatenate(parts) if parts else np.empty(0, kind.to_pandas_dtype())


def _tidy(uniques: tuple[object, ...], inverse: NDArray) -> dict[str, Any]:
    """Each distinct cell once, only those that occur, nulls among them."""
    if inverse.min(initial=0) < 0:
        inverse = np.where(inverse < 0, len(uniques), inverse)
        uniques = (*uniques, None)
    if len(set(uniques)) == len(uniques) and _all_occur(len(uniques), inverse):
        return {"uniques": uniques, "inverse": inverse}
    present = np.bincount(inverse, minlength=len(uniques)) > 0
    places: dict[object, int] = {}
    table = np.zeros(len(uniques), dtype=np.int32)
    for i, cell in enumerate(uniques):
        if present[i]:
            table[i] = places.setdefault(cell, len(places))
    return {"uniques": tuple(places), "inverse": table.take(inverse)}


def _all_occur(n_uniques: int, inverse: NDArray) -> bool:
    """Whether every distinct cell occurs; mostly the first rows show it."""
    return any(
        bool((np.bincount(rows, minlength=n_uniques) > 0).all())
        for rows in (inverse[:_FIRST], inverse)
    )
