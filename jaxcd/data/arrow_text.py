"""Text of arrow arrays, whatever bytes a writer put there, and the order of dictionaries."""

from __future__ import annotations

from typing import Any

__all__ = ["declared_order", "text_of"]


def declared_order(cells: Any) -> tuple[Any, ...] | None:
    """The levels of an ordered dictionary in their order; None where there is no such order, or
    chunks have several.
    """
    import pyarrow as pa

    chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
    if not pa.types.is_dictionary(cells.type) or not cells.type.ordered or not chunks:
        return None
    orders = {tuple(text_of(chunk.dictionary)) for chunk in chunks}
    return tuple(level for level in orders.pop() if level is not None) if len(orders) == 1 else None


def text_of(cells: Any) -> list[object]:
    """The cells of an arrow array of text as a list; what is no UTF-8 is read as in a csv file, for
    no cell may make reading fail.
    """
    import pyarrow as pa

    try:
        found: list[object] = cells.to_pylist()
    except UnicodeDecodeError:
        parts = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
        found = [cell for part in parts for cell in _decoded(part)]
    return found


def _decoded(cells: Any) -> list[str | None]:
    import pyarrow as pa

    if pa.types.is_dictionary(cells.type):
        levels = _decoded(cells.dictionary)
        return [None if place is None else levels[place] for place in cells.indices.to_pylist()]
    raw = cells.cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode(errors="replace") for cell in raw]
