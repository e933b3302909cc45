"""Batches of kernel tests on the device: which columns and residuals lie where, and the one read of
the answers.

All that is computed from rows stays on the device: residuals, units, features, statistics.  The
host keeps a plan, which follows from the queries alone, and learns the answers of a batch at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Protocol

import jax
import numpy as np

from jaxcd.citests.base import Query
from jaxcd.ops import double_precision, hsic, hsic_batch
from jaxcd.ops.features import FourierKernel
from jaxcd.ops.platforms import block_of
from jaxcd.ops.threads import one_blas_thread

__all__ = ["LOST", "POOL_BYTES", "FeaturePool", "Residuals", "Target", "columns_at_once"]

Columns = tuple[int, ...]
Target = tuple[int, Columns]

#: Features of this many bytes are kept for reuse: 64 columns at n = 100,000 in float32 are 400 MB.
POOL_BYTES = 1 << 30
# Sizes of pools and of calls, few so that few programs are compiled.
_CAPACITIES = (2, 64, 512, 4096)
_CALLS = {"cpu": 8, "gpu": 64}
# Columns and pairs that are worked on at once, by platform.
_COLUMNS, _PAIRS = {"cpu": 1, "gpu": 16}, {"cpu": 1, "gpu": 16}
#: Share of a column's trace that its leading components may lose; 1e-4 of the statistic is
#: promised in single precision.
LOST = 1e-5


class Residuals(Protocol):
    """What is left of columns given others, on the device."""

    def of(
        self, sets: dict[Columns, list[int]]
    ) -> Iterator[tuple[list[Target], jax.Array, list[int]]]:
        """Some targets, an array float64 (m, n), and the rows of it that are theirs, until all
        targets of all sets have come; nothing is read.
        """


def _rounded(size: int, sizes: Sequence[int]) -> int:
    """The first of the sizes that is large enough, else the number itself."""
    return next((s for s in sizes if s >= size), size)


def _cut(n: int) -> Iterator[tuple[int, int, int]]:
    """Calls that hold n items: first, end, and the size of the call, of at most two."""
    least, most = _CALLS["cpu"], block_of(_CALLS)
    start = 0
    while start < n:
        size = most if n - start >= most else least
        yield start, min(start + size, n), size
        start += size


def columns_at_once() -> int:
    """How many columns one call puts into a pool: arrays of so many rows compile one program."""
    return block_of(_COLUMNS)


class FeaturePool:
    """Features of targets (a column, given others), made when they are first needed.

    Args:
        residuals: where the targets come from.
        n: rows.
        kernel: of the features.
        dtype: "float32" (leading components are kept) or "float64".
        ties: statistics that differ by this share count as equal.
    """

    def __init__(
        self, residuals: Residuals, n: int, kernel: FourierKernel, *, dtype: str, ties: float
    ) -> None:
        self._residuals = residuals
        self._n, self._kernel, self._dtype, self._ties = n, kernel, dtype, ties
        self._leading = dtype == "float32"
        self._pool: hsic_batch.Pool | None = None
        self._places: dict[Target, int] = {}
        width = 16 if self._leading else 2 * kernel.n_features
        self._most = max(POOL_BYTES // (4 * width * n), 2)

    def ask(
        self,
        queries: Sequence[Query],
        *,
        first: int,
        rank: int,
        count: int,
        orders: np.ndarray | None = None,
    ) -> np.ndarray:
        """T_0, the number of permuted statistics that are as large, and the critical one: float64
        (n_queries, 3).

        Args:
            first: the first shift.
            rank: of the critical value.
            count: shifts, that of 0 among them.
            orders: of :func:`jaxcd.ops.hsic.draw_orders`.
        """
        options = {
            "orders": None if orders is None else jax.device_put(orders),
            "first": jax.device_put(np.int32(first)),
            "rank": rank,
            "count": count,
            "ties": self._ties,
            "block": block_of(hsic.BLOCK),
            "batch": block_of(_PAIRS),
        }
        found = np.empty((len(queries), 3))
        with double_precision(), one_blas_thread():
            for members in self._tiles(queries):
                pairs = self._pairs([queries[i] for i in members])
                rows = self._read(pairs, hsic_batch.answers, options)
                wide = np.flatnonzero(rows[:, 3] > LOST)
                if len(wide):
                    more = {"kernel": self._kernel, **options}
                    rows[wide] = self._read(pairs[wide], hsic_batch.wide_answers, more)
                found[members] = rows[:, :3]
        return found

    def _read(self, pairs: np.ndarray, function: object, options: dict[str, object]) -> np.ndarray:
        """The answers for pairs of places: dispatched together, read once."""
        waiting = []
        for start, end, size in _cut(len(pairs)):
            padded = np.full((size, 2), -1, dtype=np.int32)
            padded[: end - start] = pairs[start:end]
            waiting.append(function(self._pool, jax.device_put(padded), **options))  # type: ignore[operator]
        parts = jax.device_get(waiting)
        return np.concatenate(
            [
                part[: end - start]
                for part, (start, end, _) in zip(parts, _cut(len(pairs)), strict=True)
            ]
        )

    def _tiles(self, queries: Sequence[Query]) -> Iterator[list[int]]:
        """Places of queries whose features fit into the pool together."""
        side = max(self._most // 2, 1)
        order = sorted(
            range(len(queries)),
            key=lambda i: (queries[i].given, queries[i].x // side, queries[i].y // side, i),
        )
        members: list[int] = []
        held: set[Target] = set()
        for i in order:
            query = queries[i]
            more = {(query.x, query.given), (query.y, query.given)}
            if members and len(held | more) > self._most:
                yield members
                members, held = [], set()
            members.append(i)
            held |= more
        if members:
            yield members

    def _pairs(self, queries: Sequence[Query]) -> np.ndarray:
        """Places of the queries' columns in the pool, int32 (n_queries, 2); makes what is not
        there.
        """
        targets = [(v, q.given) for q in queries for v in (q.x, q.y)]
        missing = [t for t in dict.fromkeys(targets) if t not in self._places]
        if len(self._places) + len(missing) > self._most:
            self._places.clear()
            missing = list(dict.fromkeys(targets))
        self._make_room(len(self._places) + len(missing))
        sets: defaultdict[Columns, list[int]] = defaultdict(list)
        for v, given in missing:
            sets[given].append(v)
        if sets:
            for made, columns, rows in self._residuals.of(sets):
                self._put(made, columns, rows)
        return np.array([self._places[t] for t in targets], dtype=np.int32).reshape(-1, 2)

    def _make_room(self, size: int) -> None:
        capacity = min(_rounded(size, _CAPACITIES), max(size, self._most))
        if self._pool is None or self._pool.lost.shape[0] < capacity:
            new = hsic_batch.empty_pool(
                capacity, self._n, self._kernel, dtype=self._dtype, leading=self._leading
            )
            if self._pool is not None and self._places:
                new = hsic_batch.grown(self._pool, new)
            self._pool = new

    def _put(self, targets: Sequence[Target], columns: jax.Array, rows: Sequence[int]) -> None:
        assert self._pool is not None
        capacity, size = self._pool.lost.shape[0], block_of(_COLUMNS)
        for start in range(0, len(targets), size):
            part = list(targets[start : start + size])
            where = np.full((2, size), capacity, dtype=np.int32)
            where[0, : len(part)] = rows[start : start + size]
            where[1, : len(part)] = np.arange(len(part)) + len(self._places)
            self._pool = hsic_batch.put(
                self._pool, columns, jax.device_put(where), self._kernel, self._leading, size
            )
            self._places |= dict(zip(part, where[1].tolist(), strict=False))
