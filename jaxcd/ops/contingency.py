r"""Contingency tables of many queries at once, by counting bits.

A discrete column with k levels is stored as k bit masks, one bit a row: bit i of mask (variable v,
level a) is one iff row i has level a.  The cell (a, b | s) of the table of x and y given S is then
the number of ones in the bitwise AND of |S| + 2 masks.  This is the product of one-hot matrices at
one bit an entry: a cell costs n/32 word operations and reads n/8 bytes a mask, and the masks of a
whole data set (n = 100,000 and 105 levels: 1.3 MB) stay in the processor's cache.  Nothing is
sorted, no stratum is visited in Python, and the shapes depend only on n and the declared levels,
never on the values.

Ones are counted by a carry-save adder over eight words at a time (the Harley-Seal scheme; Warren,
*Hacker's Delight*, 2nd ed., section 5.1), which leaves one population count for each four words.

Cost of a query: n/32 * prod(levels of x, y, S) word operations; on two CPU cores about 0.75
microseconds a cell at n = 100,000 (see ``benchmarks``).  From some 250 cells on it is cheaper to
form each row's cell number and to scatter ones: |S| + 3 operations a row, whatever the number of
cells.  On a GPU all tables of two columns come from one product of one-hot matrices of bytes
(:func:`level_products`).  All ways count exactly, so which one is taken is a matter of speed only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "BLOCK",
    "BUFFER",
    "LARGE",
    "WORD",
    "LevelMasks",
    "byte_columns",
    "cell_counts",
    "count_blocks",
    "count_sets",
    "count_tables",
    "level_offsets",
    "level_products",
    "level_words",
    "pack_levels",
    "padded_depth",
    "scatter_counts",
    "spare_masks",
    "strides_of",
    "tables_of_products",
    "words_of",
]

WORD = 32
# Words are padded to a multiple of this, so that data sets of nearly equal length share compiled
# code and the adder's eight lanes stay aligned.
_WORD_MULTIPLE = 128
_LANES = 8
# One compiled routine a depth: the index buffer has a fixed length and the number of blocks in use
# is a run-time argument.
BUFFER = 8192
BLOCK = {"cpu": 128}
_DEPTHS = (2, 3, 4, 5, 6, 8, 12, 16, 24, 32)
_LEAST_MASKS = 64
_FEW_ROWS = 1 << 20
# Tables with more cells are counted by scattering; their sizes are rounded up to a power of 8.
LARGE = 256


@dataclass(frozen=True, eq=False)
class LevelMasks:
    """A discrete data set as bit masks, and (made when first needed) as columns of codes.

    Args:
        words: uint32 (at least 1 + sum of cardinalities, n_words); row 0 is the mask of all rows,
            row offsets[v] + a that of "variable v has level a".  Bits beyond the last row are zero,
            and so are the masks behind the last level (:func:`spare_masks`).
        offsets: int32 (n_columns,).
        cardinalities: int32 (n_columns,).
        codes: integers (n_samples, n_columns).
    """

    words: jax.Array
    offsets: np.ndarray
    cardinalities: np.ndarray
    codes: np.ndarray

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return int(self.codes.shape[0])

    @cached_property
    def products(self) -> jax.Array:
        """:func:`level_products` of the masks, on the device."""
        return level_products(self.words)

    @cached_property
    def columns(self) -> jax.Array:
        """The codes on the device, (n_columns, 32 n_words): :func:`byte_columns`."""
        return jax.device_put(byte_columns(self.codes, self.cardinalities, self.words.shape[1]))


def pack_levels(codes: np.ndarray, cardinalities: Sequence[int]) -> LevelMasks:
    """Packs level codes into bit masks.

    Args:
        codes: integers (n, d), 0 <= codes[:, v] < cardinalities[v].
    """
    cards = np.asarray(cardinalities, dtype=np.int32)
    words = level_words(codes, cardinalities, n_words=words_of(codes.shape[0]))
    # Filled up and put there without a program of this shape.
    spare = spare_masks(len(words), codes.shape[0])
    words = np.pad(words, ((0, spare), (0, 0))) if spare else words
    return LevelMasks(jax.device_put(words), level_offsets(cards), cards, codes)


def words_of(n_samples: int) -> int:
    """The number of words of a mask of so many rows, a multiple of 128."""
    n_words = -(-max(n_samples, 1) // WORD)
    return -(-n_words // _WORD_MULTIPLE) * _WORD_MULTIPLE


def level_offsets(cardinalities: np.ndarray) -> np.ndarray:
    """The mask of the first level of each column, int32 (n_columns,)."""
    return np.concatenate([[1], 1 + np.cumsum(cardinalities)[:-1]]).astype(np.int32)


def spare_masks(n_masks: int, n_samples: int) -> int:
    """How many masks of no row to add, so that data sets of one length share compiled code; none
    where there are many rows.
    """
    if n_samples > _FEW_ROWS:
        return 0
    return max(_LEAST_MASKS, 1 << (n_masks - 1).bit_length()) - n_masks


def level_words(codes: np.ndarray, cardinalities: Sequence[int], *, n_words: int) -> np.ndarray:
    """The masks of :class:`LevelMasks`, uint32 (1 + sum of cardinalities, n_words).

    Args:
        codes: integers (n, d), n at most 32 n_words.
        cardinalities: of the columns.
        n_words: at least :func:`words_of` (n).
    """
    n_samples, n_columns = codes.shape
    offsets = level_offsets(np.asarray(cardinalities))
    n_bytes = -(-n_samples // 8)
    packed = np.zeros((1 + sum(cardinalities), n_words * 4), dtype=np.uint8)
    packed[0, :n_bytes] = np.packbits(np.ones(n_samples, dtype=bool))
    for v in range(n_columns):
        # Bytes where they do: each level reads the whole column.
        kind = np.uint8 if cardinalities[v] <= 256 else codes.dtype
        column = np.ascontiguousarray(codes[:, v], dtype=kind)
        member = column == np.arange(cardinalities[v], dtype=kind)[:, None]
        packed[offsets[v] : offsets[v] + cardinalities[v], :n_bytes] = np.packbits(member, axis=1)
    words: np.ndarray = packed.view(np.uint32)
    return words


def byte_columns(codes: np.ndarray, cardinalities: np.ndarray, n_words: int) -> np.ndarray:
    """The codes by column, (n_columns, 32 n_words), zero beyond the last row; bytes where the
    levels fit.
    """
    kind = np.uint8 if cardinalities.max(initial=0) <= 256 else np.int32
    columns = np.zeros((codes.shape[1], WORD * n_words), dtype=kind)
    columns[:, : len(codes)] = codes.T
    return columns


def _add(a: jax.Array, b: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Bitwise full adder: sum and carry of three words."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


def _ones(words: list[jax.Array]) -> jax.Array:
    """Number of ones in the words at each position, as int32."""
    total: jax.Array | int = 0
    weight = 1
    while words:
        carries = []
        while len(words) >= 3:
            s, carry = _add(words.pop(), words.pop(), words.pop())
            words.append(s)
            carries.append(carry)
        if len(words) == 2:
            a, b = words
            words = [a ^ b]
            carries.append(a & b)
        total = total + weight * jax.lax.population_count(words[0]).astype(jnp.int32)
        words = carries
        weight *= 2
    return jnp.asarray(total)


@partial(jax.jit, static_argnames="block")
def count_blocks(words: jax.Array, index: jax.Array, n_blocks: jax.Array, block: int) -> jax.Array:
    """The ones in the intersections of masks: uint32 (m, n_words), int32 (n_cells, depth) -> int32
    (n_cells,), of which ``n_blocks`` blocks are counted; n_words is a multiple of 128.
    """
    lanes = words.reshape(words.shape[0], _LANES, -1)
    depth = index.shape[1]

    def count(i, counts):
        cells = jax.lax.dynamic_slice_in_dim(index, i * block, block)
        both = []
        for lane in range(_LANES):
            word = lanes[cells[:, 0], lane]
            for t in range(1, depth):
                word = word & lanes[cells[:, t], lane]
            both.append(word)
        return jax.lax.dynamic_update_slice_in_dim(
            counts, jnp.sum(_ones(both), axis=1, dtype=jnp.int32), i * block, 0
        )

    return jax.lax.fori_loop(0, n_blocks, count, jnp.zeros(index.shape[0], jnp.int32))


def cell_counts(words: jax.Array, index: np.ndarray) -> np.ndarray:
    """Number of rows in the intersection of masks, for many intersections.

    Args:
        words: uint32 (n_masks, n_words).
        index: int32 (n_cells, depth), rows of ``words``; row 0 (all rows) is neutral.

    Returns:
        int64 (n_cells,).  One compilation for each depth in 2, 3, 4, 5, 6, 8, 12, ... and each
        shape of ``words``.
    """
    n_cells, depth = index.shape
    block = BLOCK.get(jax.default_backend(), BUFFER)
    parts = []
    for start in range(0, n_cells, BUFFER):
        chunk = index[start : start + BUFFER]
        buffer = np.zeros((BUFFER, padded_depth(depth)), dtype=np.int32)
        buffer[: len(chunk), :depth] = chunk
        parts.append(
            (count_blocks(words, buffer, np.int32(-(-len(chunk) // block)), block), len(chunk))
        )
    if not parts:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([np.asarray(counts)[:length] for counts, length in parts]).astype(
        np.int64
    )


@jax.jit
def level_products(words: jax.Array) -> jax.Array:
    """In how many rows each two masks are one: uint32 (m, n_words) -> int32 (m, m).

    The product of one-hot matrices with itself, bytes into int32 (exact for n < 2^31), in blocks of
    rows that are products of one batch: what a GPU's units for small integers do best.  It holds
    all tables of two columns.
    """
    blocks = words.reshape(words.shape[0], _WORD_MULTIPLE, -1)
    bits = (blocks[..., None] >> jnp.arange(WORD, dtype=jnp.uint32)) & 1
    ones = bits.astype(jnp.int8).reshape(*blocks.shape[:2], -1)
    several = jax.lax.dot_general(
        ones, ones, (((2,), (2,)), ((1,), (1,))), preferred_element_type=jnp.int32
    )
    return several.sum(axis=0, dtype=jnp.int32)


def tables_of_products(
    products: jax.Array, offsets: jax.Array, cardinalities: jax.Array, shape: tuple[int, int]
) -> jax.Array:
    """The tables of pairs of columns out of :func:`level_products`, zero where padded: (q, *shape).

    Args:
        offsets: integers (q, 2), the masks of the first levels of x and y.
        cardinalities: integers (q, 2).
    """
    level = [jnp.arange(k) for k in shape]
    rows = offsets[:, :1] + level[0]
    columns = offsets[:, 1:] + level[1]
    inside = (level[0] < cardinalities[:, :1])[:, :, None] & (level[1] < cardinalities[:, 1:])[
        :, None, :
    ]
    last = products.shape[0] - 1
    found = products[jnp.minimum(rows, last)[:, :, None], jnp.minimum(columns, last)[:, None, :]]
    return jnp.where(inside, found, 0)


_tables_of_products = jax.jit(tables_of_products, static_argnames="shape")


@partial(jax.jit, static_argnames="size")
def _scatter(
    columns: jax.Array, chosen: jax.Array, strides: jax.Array, n_samples: jax.Array, size: int
) -> jax.Array:
    cell = jnp.zeros(columns.shape[1], jnp.int32)
    for t in range(chosen.shape[0]):
        cell = cell + columns[chosen[t]].astype(jnp.int32) * strides[t]
    cell = jnp.where(jnp.arange(columns.shape[1]) < n_samples, cell, size)
    return jnp.zeros(size, jnp.int32).at[cell].add(1, mode="drop")


def strides_of(cardinalities: np.ndarray) -> np.ndarray:
    """What a level of each column adds to the number of a cell, the last column fastest."""
    return np.append(np.cumprod(cardinalities[:0:-1], dtype=np.int64)[::-1], 1)


def padded_depth(depth: int) -> int:
    """The number of columns, at least two, that programs are compiled for."""
    return next((d for d in _DEPTHS if d >= depth), depth)


def scatter_counts(masks: LevelMasks, variables: np.ndarray) -> np.ndarray:
    """The joint counts of some columns, int64 (product of their levels,), the last column fastest.

    Args:
        variables: integers (depth,).  One compilation for each padded depth and each power of 8 of
            the number of cells.
    """
    counts, n_cells = _scattered(masks, variables)
    return np.asarray(counts)[:n_cells].astype(np.int64)


def _scattered(masks: LevelMasks, variables: np.ndarray) -> tuple[jax.Array, int]:
    """Counts on the device, at least as many as there are cells, and the number of cells."""
    depth = len(variables)
    cards = masks.cardinalities[variables].astype(np.int64)
    n_cells = int(cards.prod())
    chosen, strides = np.zeros((2, padded_depth(depth)), dtype=np.int32)
    chosen[:depth] = variables
    strides[:depth] = strides_of(cards)
    size = 8 ** -(-(n_cells - 1).bit_length() // 3)
    return _scatter(masks.columns, chosen, strides, np.int32(masks.n_samples), size), n_cells


def count_tables(
    masks: LevelMasks, variables: np.ndarray, shape: tuple[int, int, int]
) -> np.ndarray:
    """The contingency tables of a batch of queries with conditioning sets of one size.

    Args:
        variables: integers (n_queries, 2 + s): x, y, then the conditioning set.
        shape: (K, A, B) with K >= the number of strata, A >= the levels of x, B >= those of y, for
            every query.

    Returns:
        int32 (n_queries, K, A, B), zero where padded; stratum index is mixed radix over the
        conditioning set, its last variable fastest.
    """
    cards = masks.cardinalities[variables].astype(np.int64)
    if variables.shape[1] == 2 and jax.default_backend() != "cpu":
        pairs = _tables_of_products(
            masks.products, masks.offsets[variables], masks.cardinalities[variables], shape[1:]
        )
        return np.asarray(pairs)[:, None]
    n_cells = cards.prod(axis=1)
    tables = np.zeros((len(variables), *shape), dtype=np.int32)
    large = n_cells > LARGE
    for query in np.flatnonzero(large):
        x, y, *given = variables[query]
        n_rows, n_columns = cards[query, :2]
        counts = scatter_counts(masks, np.array([*given, x, y])).reshape(-1, n_rows, n_columns)
        tables[query, : len(counts), :n_rows, :n_columns] = counts
    if not large.all():
        _fill_small(masks, variables[~large], tables, np.flatnonzero(~large))
    return tables


def _fill_small(
    masks: LevelMasks, variables: np.ndarray, tables: np.ndarray, place: np.ndarray
) -> None:
    """Counts the tables of some queries by bit masks into ``tables[place]``."""
    n_queries, width = variables.shape
    cards = masks.cardinalities[variables].astype(np.int64)
    offsets = masks.offsets[variables]
    n_cells = cards.prod(axis=1)
    query = np.repeat(np.arange(n_queries), n_cells)
    rest = np.arange(int(n_cells.sum())) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
    index = np.empty((len(query), width), dtype=np.int32)
    for column in (1, 0):
        rest, digit = np.divmod(rest, cards[query, column])
        index[:, column] = digit
    stratum = rest
    for column in range(width - 1, 1, -1):
        rest, digit = np.divmod(rest, cards[query, column])
        index[:, column] = digit
    where = (place[query], stratum, index[:, 0].copy(), index[:, 1].copy())
    index += offsets[query]
    tables[where] = cell_counts(masks.words, index)


def count_sets(masks: LevelMasks, sets: np.ndarray) -> np.ndarray:
    """The joint counts of many sets of columns that have the same cardinalities, place by place.

    Args:
        sets: integers (n_sets, depth).

    Returns:
        int64 (n_sets, k_1, ..., k_depth).
    """
    cards = tuple(int(k) for k in masks.cardinalities[sets[0]])
    n_cells = int(np.prod(cards, dtype=np.int64))
    if n_cells > LARGE:
        # Dispatched together, read once.
        several = jax.device_get([_scattered(masks, columns)[0] for columns in sets])
        return (
            np.stack([counts[:n_cells] for counts in several])
            .astype(np.int64)
            .reshape(len(sets), *cards)
        )
    levels = np.indices(cards).reshape(len(cards), n_cells).T
    index = (masks.offsets[sets][:, None, :] + levels).reshape(-1, len(cards)).astype(np.int32)
    if len(cards) == 1:  # the counter takes two masks at least; row 0 is neutral
        index = np.column_stack([index, np.zeros_like(index)])
    return cell_counts(masks.words, index).reshape(len(sets), *cards)
