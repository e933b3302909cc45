"""Columns of arrow tables as raw columns: the distinct cells, and where they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.columns import RawColumn

__all__ = ["raw_column", "raw_columns"]


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
    is_coded = pa.types.is_dictionary(kind)
    of_text = kind.value_type if is_coded else kind
    if not (pa.types.is_string(of_text) or pa.types.is_large_string(of_text)) or (
        is_coded and kind.ordered
    ):
        return raw_columns_of_series(name, chunked)
    coded = (chunked if is_coded else chunked.dictionary_encode()).unify_dictionaries()
    uniques: tuple[object, ...] = ()
    parts: list[NDArray] = []
    for chunk in coded.chunks:
        uniques = tuple(chunk.dictionary.to_pylist())
        indices = chunk.indices
        if indices.null_count:
            indices = (
                indices.fill_null(-1)
                if pa.types.is_signed_integer(indices.type)
                else (indices.cast(pa.int64()).fill_null(-1))
            )
        parts.append(indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False))
    inverse = np.concatenate(parts) if parts else np.empty(0, np.int32)
    return RawColumn(name, **_tidy(uniques, inverse), untyped=untyped)


def _tidy(uniques: tuple[object, ...], inverse: NDArray) -> dict[str, Any]:
    """Each distinct cell once, only those that occur, nulls among them."""
    if (inverse < 0).any():
        inverse = np.where(inverse < 0, len(uniques), inverse)
        uniques = (*uniques, None)
    present = np.bincount(inverse, minlength=len(uniques)) > 0
    places: dict[object, int] = {}
    table = np.zeros(len(uniques), dtype=np.int32)
    for i, cell in enumerate(uniques):
        if present[i]:
            table[i] = places.setdefault(cell, len(places))
    if len(places) == len(uniques):
        return {"uniques": uniques, "inverse": inverse}
    return {"uniques": tuple(places), "inverse": table[inverse]}
