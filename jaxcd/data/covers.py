"""Which tables to ask an engine for, so that a few answer many sets of columns.

A scan costs far more than a cell.  So columns are packed into blocks of at most ``2^7`` cells, and
the tables of pairs of blocks are counted: they hold the tables of all pairs of columns.  All pairs
of 37 columns are some 40 queries instead of 666.  Larger sets are packed together as long as their
union stays small.  What is asked follows from public facts only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.rows import Columns

__all__ = ["MOST_CELLS", "covers", "marginal"]

MOST_CELLS = 1 << 14
"""Cells of a table that is asked for in the place of several smaller ones."""

_MOST_COMPARED = 64


def covers(
    sets: Sequence[Columns], cardinalities: Sequence[int], *, most_cells: int = MOST_CELLS
) -> list[Columns]:
    """Sets of columns such that each of the given sets is part of one of them.

    Args:
        sets: of positions, in any order.
        cardinalities: the number of codes of each column.
        most_cells: a cover has at most so many cells, or is one of the given sets, or holds a
            column of more levels than the root of that, beside others of at most the root.

    Returns:
        Sorted sets of positions, none of which is part of another.

    Example:
        >>> covers([(0, 1), (2, 1), (0, 2), (3,)], [2, 3, 2, 4])
        [(0, 1, 2, 3)]
    """
    wanted = sorted({tuple(sorted(columns)) for columns in sets}, key=lambda s: (-len(s), s))
    found: list[set[int]] = []

    def cells(columns: set[int]) -> int:
        return math.prod(cardinalities[v] for v in columns)

    def place(columns: Columns, *, among: Sequence[int]) -> bool:
        """Adds the columns to the cover that they share most with."""
        best: tuple[int, int, int] | None = None
        for i in among:
            union = found[i].union(columns)
            size = cells(union)
            if size <= most_cells:
                rank = len(found[i].intersection(columns)), -size, i
                best = rank if best is None else max(best, rank)
        if best is None:
            return False
        found[best[2]].update(columns)
        return True

    for columns in (s for s in wanted if len(s) > 2):
        if any(cover.issuperset(columns) for cover in found):
            continue
        if not place(columns, among=range(max(len(found) - _MOST_COMPARED, 0), len(found))):
            found.append(set(columns))
    small = [s for s in wanted if len(s) <= 2 and not any(c.issuperset(s) for c in found)]
    blocks = _blocks(sorted({v for s in small for v in s}), cardinalities, math.isqrt(most_cells))
    of_column = {v: i for i, block in enumerate(blocks) for v in block}
    ends = [(of_column[s[0]], of_column[s[-1]]) for s in small if s]
    for i, j in sorted({(min(pair), max(pair)) for pair in ends}):
        found.append({*blocks[i], *blocks[j]})
    if () in wanted and not found:
        found.append(set())
    unique = sorted({tuple(sorted(cover)) for cover in found})
    return [s for s in unique if not any(set(s) < set(other) for other in unique)]


def _blocks(columns: Sequence[int], cardinalities: Sequence[int], most: int) -> list[list[int]]:
    """The columns packed into as few blocks as first fit finds, each of at most ``most`` cells."""
    blocks: list[list[int]] = []
    sizes: list[int] = []
    for v in sorted(columns, key=lambda v: (-cardinalities[v], v)):
        fitting = [i for i, size in enumerate(sizes) if size * cardinalities[v] <= most]
        if fitting:
            blocks[fitting[0]].append(v)
            sizes[fitting[0]] *= cardinalities[v]
        else:
            blocks.append([v])
            sizes.append(cardinalities[v])
    return blocks


def marginal(table: NDArray[np.int64], cover: Columns, columns: Columns) -> NDArray[np.int64]:
    """The table of some of a cover's columns, in their order.

    Args:
        table: int64, one axis a column of the cover.
        cover: sorted positions.
        columns: positions among them, in any order.
    """
    kept = sorted(columns)
    axes = tuple(axis for axis, v in enumerate(cover) if v not in kept)
    summed = table.sum(axis=axes, dtype=np.int64)
    return np.ascontiguousarray(summed.transpose([kept.index(v) for v in columns]))
