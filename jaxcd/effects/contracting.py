"""Sums of products of tables over many columns: two tables at a time, and the derivatives by each
table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import final

import numpy as np

__all__ = ["MOST_CELLS", "Contraction"]

Columns = tuple[int, ...]

MOST_CELLS = 2**20
"""Of a table on the way; larger ones take too long."""


@final
class Contraction:
    """The plan of a sum of a product of tables over all columns but those that are kept.

    Columns are summed out one after the other, first those whose tables together are smallest.

    Args:
        tables: the columns of each table, in the order of its axes; one not kept is in two or more.
        sizes: the number of levels of each column.
        kept: columns of the result, in this order; each is in some table.

    Attributes:
        largest: the number of cells of the largest table on the way.
    """

    def __init__(
        self, tables: Sequence[Columns], sizes: Mapping[int, int], kept: Columns = ()
    ) -> None:
        self._n, self._kept = len(tables), kept
        self._steps: list[tuple[int, int, list[int], list[int], list[int]]] = []
        self.largest = 1
        left = dict(enumerate(tables))
        times = Counter(c for columns in tables for c in columns)
        times.update(kept)

        def join(i: int, j: int) -> None:
            first, second = left.pop(i), left.pop(j)
            times.subtract((*first, *second))
            out = tuple(c for c in dict.fromkeys((*first, *second)) if times[c] > 0)
            times.update(out)
            name = {c: k for k, c in enumerate(dict.fromkeys((*first, *second)))}  # einsum knows 52
            a, b, ab = ([name[c] for c in columns] for columns in (first, second, out))
            self._steps.append((i, j, a, b, ab))
            self.largest = max(self.largest, prod(sizes[c] for c in {*first, *second}))
            left[self._n + len(self._steps) - 1] = out

        def joined(c: int) -> int:
            return prod(
                sizes[u] for u in {u for columns in left.values() if c in columns for u in columns}
            )

        while open_ones := {c for columns in left.values() for c in columns} - set(kept):
            c = min(sorted(open_ones), key=joined)
            with_c = [i for i, columns in left.items() if c in columns]
            while len(with_c) > 1:
                with_c.sort(key=lambda i: prod(sizes[u] for u in left[i]))
                join(with_c[0], with_c[1])
                last = self._n + len(self._steps) - 1
                with_c = [*with_c[2:], *([last] if c in left[last] else [])]
        while len(left) > 1:
            join(*sorted(left, key=lambda i: prod(sizes[u] for u in left[i]))[:2])
        self._last = next(iter(left.values()))

    def all(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The tables, and those on the way; the last is the result, its axes in any order."""
        factors = list(tables)
        for i, j, first, second, out in self._steps:
            factors.append(np.einsum(factors[i], first, factors[j], second, out))
        return factors

    def __call__(self, tables: Sequence[np.ndarray]) -> np.ndarray:
        """The result."""
        axes = [self._last.index(c) for c in self._kept]
        found: np.ndarray = np.transpose(self.all(tables)[-1], axes)
        return found

    def slopes(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The derivatives of the result, a number, by the cells of each table."""
        factors = self.all(tables)
        by: list[np.ndarray] = [np.ones(())] * len(factors)
        for step, (i, j, first, second, out) in reversed(list(enumerate(self._steps))):
            above: np.ndarray = by[self._n + step]
            by[i] = np.einsum(above, out, factors[j], second, first)
            by[j] = np.einsum(above, out, factors[i], first, second)
        return by[: self._n]
