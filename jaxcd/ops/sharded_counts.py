r"""Joint counts of sets of columns of rows that lie on the devices of a mesh.

Each device counts its own rows, by the ways of :mod:`jaxcd.ops.contingency`: small tables by bit
masks, larger ones by scattering, all tables of two columns on a GPU by one product.  What the
devices found, whatever it is of, goes into one vector of whole numbers and is added up by one
all-reduce a call (:meth:`jaxcd.ops.row_mesh.RowMesh.total`).  Its length follows from the sets and
the declared levels alone, whatever the number of rows: numbers of cells and of tables are padded to
powers of two, so that programs are shared, and a call adds up 128 cells at least.

Rows that fill up a shard are in no mask and have the weight 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property, lru_cache
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxcd.ops import contingency
from jaxcd.ops.people import PERSON_UNITS
from jaxcd.ops.precision import double_precision
from jaxcd.ops.row_mesh import RowMesh

__all__ = ["ShardedCodes"]

Columns: TypeAlias = tuple[int, ...]
Counted: TypeAlias = tuple[jax.Array, list[tuple[int, int]]]
"""What the shards found, and where in it the table of which set starts."""

_MOST_TOGETHER = 1 << 24  # cells of tables that one program scatters


class ShardedCodes:
    """Codes of rows that are cut over the devices of a mesh.

    Args:
        mesh: the devices.
        parts: the codes of each of this process's shards, integers (rows, n_columns), in the mesh's
            order.
        rows: a public number of rows, the same for all shards of all processes; no shard has more.
        cardinalities: the number of codes of each column.
        n_samples: the rows of all shards together.
        weights: of the rows of each of this process's shards, in units of 2^-20 of a person.
    """

    def __init__(
        self,
        mesh: RowMesh,
        parts: Sequence[NDArray[np.int32]],
        *,
        rows: int,
        cardinalities: Sequence[int],
        n_samples: int,
        weights: Sequence[NDArray[np.int64]] | None = None,
    ) -> None:
        self._mesh, self._parts, self._weights = mesh, parts, weights
        self._cards = np.array(cardinalities, dtype=np.int32)
        self._offsets = contingency.level_offsets(self._cards)
        self._n_words = contingency.words_of(rows)
        self._n_samples = n_samples

    @cached_property
    def _words(self) -> jax.Array:
        """The masks of each shard."""
        cards = self._cards.tolist()
        spare = contingency.spare_masks(1 + sum(cards), contingency.WORD * self._n_words)
        return self._mesh.put(
            [
                np.pad(
                    contingency.level_words(part, cards, n_words=self._n_words),
                    ((0, spare), (0, 0)),
                )
                for part in self._parts
            ]
        )

    @cached_property
    def _columns(self) -> jax.Array:
        return self._mesh.put(
            [contingency.byte_columns(part, self._cards, self._n_words) for part in self._parts]
        )

    @cached_property
    def _ones(self) -> jax.Array:
        """1 for a row, 0 where a shard is filled up."""
        return self._padded([np.ones(len(part), dtype=np.uint8) for part in self._parts])

    @cached_property
    def _units(self) -> jax.Array:
        """The weights of the rows, at most 2^20."""
        assert self._weights is not None
        return self._padded([part.astype(np.int32) for part in self._weights])

    def _padded(self, parts: Sequence[NDArray]) -> jax.Array:
        length = contingency.WORD * self._n_words
        return self._mesh.put([np.pad(part, (0, length - len(part))) for part in parts])

    def counts(
        self, sets: Sequence[Columns], *, by_person: bool = False
    ) -> list[NDArray[np.int64]]:
        """The joint counts of sets of columns, by one all-reduce.

        Args:
            sets: positions of different columns, in any order.
            by_person: add up the rows' weights.

        Returns:
            For each set int64 (k_1, ..., k_s).
        """
        if not sets:
            return []
        if not by_person and self._by_product(sets):
            return [self.of_product(columns) for columns in sets]
        kinds = [tuple(self._cards[list(columns)].tolist()) for columns in sets]
        small = [not by_person and math.prod(kind) <= contingency.LARGE for kind in kinds]
        counted = [
            *self._masked(sets, [i for i, s in enumerate(small) if s]),
            *self._scattered(sets, [i for i, s in enumerate(small) if not s], by_person),
        ]
        totals = self._mesh.total(
            [part for part, _ in counted],
            most=self._n_samples * (PERSON_UNITS if by_person else 1),
            question=f"counts {by_person} {sets}",
        )
        found: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(sets)
        for total, (_, places) in zip(totals, counted, strict=True):
            flat = total.reshape(-1)
            for i, start in places:
                found[i] = flat[start : start + math.prod(kinds[i])].reshape(kinds[i])
        return found

    def _masked(self, sets: Sequence[Columns], wanted: Sequence[int]) -> Iterator[Counted]:
        """Counts by bit masks."""
        depth = contingency.padded_depth(max((len(sets[i]) for i in wanted), default=0))
        places: list[tuple[int, int]] = []
        cells: list[NDArray[np.int32]] = []
        n_cells = 0
        for i in wanted:
            columns = list(sets[i])
            cards = self._cards[columns].tolist()
            index = np.zeros((math.prod(cards), depth), dtype=np.int32)  # row 0 is neutral
            index[:, : len(cards)] = _levels(tuple(cards)) + self._offsets[columns]
            if n_cells + len(index) > contingency.BUFFER:
                yield self._by_masks(np.concatenate(cells)), places
                places, cells, n_cells = [], [], 0
            places.append((i, n_cells))
            cells.append(index)
            n_cells += len(index)
        if cells:
            yield self._by_masks(np.concatenate(cells)), places

    def _by_masks(self, index: NDArray[np.int32]) -> jax.Array:
        block = contingency.BLOCK.get(self._mesh.platform, contingency.BUFFER)
        buffer = np.zeros((max(_power(len(index)), block), index.shape[1]), dtype=np.int32)
        buffer[: len(index)] = index
        n_blocks = np.int32(-(-len(index) // block))
        return self._mesh.each(
            contingency.count_blocks, [self._words], [buffer, n_blocks], block=block
        )

    def _scattered(
        self, sets: Sequence[Columns], wanted: Sequence[int], by_person: bool
    ) -> Iterator[Counted]:
        """Counts by each row's cell number."""
        alike: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for i in wanted:
            n_cells = int(self._cards[list(sets[i])].prod(dtype=np.int64))
            alike[contingency.padded_depth(len(sets[i])), _power(n_cells)].append(i)
        for (depth, size), members in alike.items():
            together = max(_MOST_TOGETHER // size, 1)
            for first in range(0, len(members), together):
                some = members[first : first + together]
                chosen, strides = np.zeros((2, _power(len(some)), depth), dtype=np.int32)
                for place, i in enumerate(some):
                    columns = list(sets[i])
                    chosen[place, : len(columns)] = columns
                    strides[place, : len(columns)] = contingency.strides_of(self._cards[columns])
                yield (
                    self._by_cells(chosen, strides, size, by_person),
                    [(i, place * size) for place, i in enumerate(some)],
                )

    def _by_cells(
        self, chosen: NDArray[np.int32], strides: NDArray[np.int32], size: int, by_person: bool
    ) -> jax.Array:
        weights = self._units if by_person else self._ones
        with double_precision() if by_person else nullcontext():
            return self._mesh.each(
                _cell_sums,
                [self._columns, weights],
                [chosen, strides],
                size=size,
                kind="int64" if by_person else "int32",
            )

    def _by_product(self, sets: Sequence[Columns]) -> bool:
        return self._mesh.platform != "cpu" and all(0 < len(columns) <= 2 for columns in sets)

    @cached_property
    def products(self) -> NDArray[np.int64]:
        """In how many rows each two masks are one (:func:`contingency.level_products`)."""
        shards = self._mesh.each(contingency.level_products, [self._words])
        return self._mesh.total([shards], most=self._n_samples, question="products")[0]

    def of_product(self, columns: Columns) -> NDArray[np.int64]:
        """The counts of one or two columns out of :attr:`products`."""
        slices = [slice(self._offsets[v], self._offsets[v] + self._cards[v]) for v in columns]
        return self.products[tuple(slices)] if len(slices) == 2 else self.products[0, slices[0]]


def _power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << (n - 1).bit_length()


@lru_cache(maxsize=1024)
def _levels(cards: Columns) -> NDArray[np.int64]:
    """The levels of each cell, (number of cells, len(cards)), the last column fastest."""
    return np.indices(cards).reshape(len(cards), math.prod(cards)).T


def _cell_sums(
    columns: jax.Array,
    weights: jax.Array,
    chosen: jax.Array,
    strides: jax.Array,
    *,
    size: int,
    kind: str,
) -> jax.Array:
    """The sums of the weights of the rows in each cell, of several tables: (tables, size)."""
    added = weights.astype(kind)

    def table(places: tuple[jax.Array, jax.Array]) -> jax.Array:
        chosen, strides = places
        cell = jnp.zeros(columns.shape[1], jnp.int32)
        for t in range(chosen.shape[0]):
            cell = cell + columns[chosen[t]].astype(jnp.int32) * strides[t]
        return jnp.zeros(size, kind).at[cell].add(added)

    return jax.lax.map(table, (chosen, strides))
