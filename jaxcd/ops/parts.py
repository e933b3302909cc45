"""Work cut into parts that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["parts_of"]


def parts_of(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Places of sizes in order, so many together that they add up to at most ``most``, or one.

    >>> list(parts_of([3, 2, 2, 9, 1], 5))
    [[0, 1], [2], [3], [4]]
    """
    together: list[int] = []
    room = most
    for place, size in enumerate(sizes):
        if together and size > room:
            yield together
            together, room = [], most
        together.append(place)
        room -= size
    if together:
        yield together
