"""Text of arrow arrays, whatever bytes a writer put there."""

from __future__ import annotations

from typing import Any

__all__ = ["text_of"]


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
