r"""Numbers of rows that lie on the devices of a mesh, and sums of them that no number of devices
moves.

Sums of numbers that are not whole depend on the order of addition.  So that order is fixed by the
number of rows alone: rows are cut into pieces of a fixed length, and pieces into at most 64 logical
blocks.  A device holds whole blocks.  It adds up the pieces of a block one after the other, by a
program whose shapes are the same wherever the piece lies; what the blocks add up to is brought
together by one all-reduce, in which every device gives the bits of its own blocks and zeros for the
others', and is added in the order of the blocks.  So a sum has the same bits on any number of
devices and processes, and what travels is a sum over the rows of a block.

:meth:`RowBlocks.rows` makes rows from rows, piece by piece, and nothing travels.  Rows that fill up
the last piece are zeros, and no function counts them: it is told which rows are real.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from jaxcd.ops.precision import double_precision
from jaxcd.ops.row_mesh import RowMesh
from jaxcd.ops.sorting import keys_of, values_of

__all__ = ["N_BLOCKS", "RowBlocks", "over_rows", "times"]

#: Logical blocks, at most: more devices than these have nothing to do.
N_BLOCKS = 64
#: Rows of a piece, by platform.
PIECE = {"cpu": 2048, "gpu": 1 << 16}
_WORD = 1 << 62  # words of bits are added as int64
_DIGIT = 8  # bits of an order statistic that one question finds
# A library for products of matrices adds up so many terms in one order, whatever its threads.
_TERMS = 128
_HIGHEST = jax.lax.Precision.HIGHEST


def over_rows(left: jax.Array, right: jax.Array) -> jax.Array:
    """left^T right, (n, r), (n, s) -> (r, s), for n a multiple of 128: added up in one order."""
    a, b = (each.reshape(-1, _TERMS, each.shape[1]) for each in (left, right))
    together = (((1,), (1,)), ((0,), (0,)))
    return jnp.sum(jax.lax.dot_general(a, b, together, precision=_HIGHEST), axis=0)


def times(rows: jax.Array, matrix: jax.Array) -> jax.Array:
    """rows matrix, (n, r), (r, s) -> (n, s): added up in one order."""
    parts = (
        jnp.matmul(rows[:, i : i + _TERMS], matrix[i : i + _TERMS], precision=_HIGHEST)
        for i in range(0, matrix.shape[0], _TERMS)
    )
    return functools.reduce(jnp.add, parts)


class RowBlocks:
    """How rows lie in blocks on a mesh; arrays of them are (n_shards, pieces, rows of a piece,
    ...).

    Args:
        mesh: the devices.
        n: the number of rows.
        edge: rows at a block's ends that :meth:`edges` is asked for: a piece has at least so many.
    """

    def __init__(self, mesh: RowMesh, n: int, *, edge: int = 1) -> None:
        self._mesh, self.n, self.edge = mesh, n, edge
        self.piece = PIECE["cpu" if mesh.platform == "cpu" else "gpu"]
        while self.piece < edge:
            self.piece *= 2
        n_pieces = -(-n // self.piece)
        self._together = -(-n_pieces // N_BLOCKS)  # pieces of a block
        self.n_blocks = -(-n_pieces // self._together)
        ends = [self.n_blocks * i // mesh.n_shards for i in range(mesh.n_shards + 1)]
        most = max(b - a for a, b in zip(ends, ends[1:], strict=False))
        # Pieces that each device has room for; at least two, because a compiler simplifies what is
        # done with the only entry of an axis, and rounds it in another way.
        self._slots = max(most, 2) * self._together
        length = self._together * self.piece
        self._starts = [min(end * length, n) for end in ends]
        # the first row, the end of the rows, the first block, and the number of blocks
        own = [
            np.array([*self._starts[i : i + 2], ends[i], ends[i + 1] - ends[i]])
            for i in mesh.own_shards
        ]
        with double_precision():
            self._where = mesh.put(own)

    def put(self, rows: NDArray[Any]) -> jax.Array:
        """An array of all rows, (n, ...), of which every process has its own at least."""
        parts = []
        for i in self._mesh.own_shards:
            part = rows[self._starts[i] : self._starts[i + 1]]
            full = np.zeros((self._slots * self.piece, *rows.shape[1:]), dtype=rows.dtype)
            full[: len(part)] = part
            parts.append(full.reshape(self._slots, self.piece, *rows.shape[1:]))
        with double_precision():
            return self._mesh.put(parts)

    def rows(
        self,
        function: Callable[..., jax.Array],
        arrays: Sequence[jax.Array],
        given: Sequence[Any] = (),
        **static: Any,
    ) -> jax.Array:
        """Rows made of rows; nothing is communicated.

        Args:
            function: of a piece of each array, which of its rows are real (bool), then ``given``;
                a function of a module.
            arrays: at least one.
            given: the same for all pieces.
            static: known when it is compiled.
        """
        return self._each(_made_rows, function, arrays, given, static)

    def sums(
        self,
        function: Callable[..., jax.Array],
        arrays: Sequence[jax.Array],
        given: Sequence[Any] = (),
        **static: Any,
    ) -> NDArray[np.float64]:
        """The sum over pieces of what a function makes of each, in the order of the blocks.
        Arguments as for :meth:`rows`.
        """
        parts = self._of_blocks(function, arrays, given, static, largest=False)
        return functools.reduce(np.add, parts)

    def largest(
        self,
        function: Callable[..., jax.Array],
        arrays: Sequence[jax.Array],
        given: Sequence[Any] = (),
        **static: Any,
    ) -> NDArray[np.float64]:
        """The largest of what a function makes of each piece.  Arguments as for :meth:`rows`."""
        return self._of_blocks(function, arrays, given, static, largest=True).max(axis=0)

    def _of_blocks(
        self,
        function: Callable[..., jax.Array],
        arrays: Sequence[jax.Array],
        given: Sequence[Any],
        static: dict[str, Any],
        *,
        largest: bool,
    ) -> NDArray[np.float64]:
        words = self._each(
            _made_blocks, function, arrays, given, static, n_blocks=self.n_blocks, largest=largest
        )
        return self._told(words, function.__name__)

    def _each(
        self,
        driver: Callable[..., jax.Array],
        function: Callable[..., jax.Array],
        arrays: Sequence[jax.Array],
        given: Sequence[Any],
        static: dict[str, Any],
        **more: Any,
    ) -> jax.Array:
        with double_precision():
            return self._mesh.each(
                driver,
                [*arrays, self._where],
                [np.asarray(each) for each in given],
                made=function,
                n_arrays=len(arrays),
                steady=True,
                together=self._together,
                options=tuple(sorted(static.items())),
                **more,
            )

    def _told(self, words: jax.Array, question: str) -> NDArray[np.float64]:
        """Of each device the bits of what is its own, zeros elsewhere: float64 in all."""
        found = self._mesh.total([words], most=_WORD, question=question)[0]
        return found.view(np.float64)

    def agreed(self, *arrays: NDArray[Any]) -> list[NDArray[np.float64]]:
        """Small float64 arrays that every process has made for itself, as the first made them: the
        sign of an eigenvector is its library's choice.
        """
        if self._mesh.n_processes == 1:
            return list(arrays)
        words = np.concatenate([each.astype(np.float64).reshape(-1) for each in arrays])
        told = self._mesh.from_first(words.view(np.int64), question="agreed").view(np.float64)
        ends = np.cumsum([each.size for each in arrays])[:-1]
        return [
            part.reshape(each.shape)
            for part, each in zip(np.split(told, ends), arrays, strict=True)
        ]

    def head(self, array: jax.Array, count: int) -> NDArray[np.float64]:
        """The first rows, (at most count, ...), in every process."""
        count = min(count, self.n)
        n_pieces = -(-count // self.piece)
        with double_precision():
            words = self._mesh.each(
                _first_pieces, [array, self._where], together=self._together, n_pieces=n_pieces
            )
        found = self._told(words, "head")
        return found.reshape(-1, *found.shape[2:])[:count]

    def edges(self, array: jax.Array) -> jax.Array:
        """What comes before and behind each device's rows, the rows taken as a circle: (n_shards,
        2, edge, r), of rows (r,).  The first and last rows of each block are communicated.
        """
        length = self._together * self.piece
        with double_precision():
            words = self._mesh.each(
                _block_edges,
                [array, self._where],
                length=length,
                n_blocks=self.n_blocks,
                edge=self.edge,
            )
            table = self._told(words, "edges").astype(array.dtype)
            parts = []
            for i in self._mesh.own_shards:
                before = np.arange(self._starts[i] - self.edge, self._starts[i])
                behind = np.arange(self._starts[i + 1], self._starts[i + 1] + self.edge)
                row = np.stack([before, behind]) % self.n
                block, place = row // length, row % length
                own = np.minimum(length, self.n - block * length)
                at = np.where(place < self.edge, place, self.edge + place - (own - self.edge))
                parts.append(table[block, at])
            return self._mesh.put(parts)

    def order_statistics(self, array: jax.Array, places: Sequence[int]) -> list[float]:
        """The values at some places, from 0, of the rows in order: exact, by counts.

        A value is found eight bits at a time: of 255 candidates each device counts its smaller
        rows, and the counts are added up.
        """
        with double_precision():
            ordered = self._mesh.each(_sorted_keys, [array, self._where])
            found = np.zeros(len(places), dtype=np.uint64)
            steps = np.arange(1 << _DIGIT, dtype=np.uint64)
            for shift in range(64 - _DIGIT, -1, -_DIGIT):
                candidates = found[:, None] + (steps << np.uint64(shift))
                counts = self._mesh.each(_smaller, [ordered], [candidates])
                below = self._mesh.total([counts], most=self.n, question="order")[0]
                last = (below <= np.array(places)[:, None]).sum(axis=1) - 1
                found = candidates[np.arange(len(places)), last]
            return [float(value) for value in np.asarray(values_of(jax.device_put(found)))]

    def turned(
        self,
        left: jax.Array,
        right: jax.Array,
        edges: tuple[jax.Array, jax.Array],
        first: int,
        count: int,
    ) -> NDArray[np.float64]:
        r"""Sums over rows of products with rows that are some places further on, the rows taken as
        a circle: entry s is sum_i left_i right_(i + first + s)^T, (count, r, r'), as the blocks of
        one product of stacked copies (:mod:`jaxcd.ops.hsic`).

        Args:
            left: rows (r,).
            right: rows (r',).
            edges: of both, of at least ``count`` and the root of count more.
            first: from 1 - count to 0.
            count: of shifts.
        """
        rows = max(int(count**0.5), 1)
        columns = -(-count // rows)
        with double_precision():
            words = self._mesh.each(
                _turned_products,
                [left, right, *edges, self._where],
                [np.int32(first)],
                steady=True,
                rows=rows,
                columns=columns,
                together=self._together,
                n_blocks=self.n_blocks,
            )
        total = functools.reduce(np.add, self._told(words, f"turned {first}"))
        r, s = left.shape[-1], right.shape[-1]
        table = total.reshape(rows, r, columns, s).transpose(2, 0, 1, 3)
        return table.reshape(-1, r, s)[:count]


def _counted(where: jax.Array, piece: int) -> tuple[jax.Array, jax.Array]:
    """The rows of a device, and its pieces."""
    n_rows = where[1] - where[0]
    return n_rows, -(-n_rows // piece)


def _made(
    arrays: tuple[Any, ...],
    n_arrays: int,
    function: Callable[..., jax.Array],
    options: tuple[tuple[str, Any], ...],
) -> tuple[jax.Array, jax.Array, Callable[[Any], tuple[jax.Array, jax.Array]]]:
    """Where the rows are, the number of pieces, and a function of a piece's number: what is made of
    it, and its real rows.
    """
    rows, where, given = arrays[:n_arrays], arrays[n_arrays], arrays[n_arrays + 1 :]
    piece = rows[0].shape[1]
    n_rows, n_pieces = _counted(where, piece)

    def one(i: Any) -> tuple[jax.Array, jax.Array]:
        parts = [jax.lax.dynamic_index_in_dim(each, i, keepdims=False) for each in rows]
        real = i * piece + jnp.arange(piece) < n_rows
        return function(*parts, real, *given, **dict(options)), real

    return where, n_pieces, one


def _made_rows(
    *arrays: Any,
    made: Callable[..., jax.Array],
    n_arrays: int,
    together: int,
    options: tuple[tuple[str, Any], ...],
) -> jax.Array:
    _, n_pieces, one = _made(arrays, n_arrays, made, options)
    shape, _ = jax.eval_shape(one, 0)

    def put(i: jax.Array, held: jax.Array) -> jax.Array:
        rows, real = one(i)
        rows = jnp.where(real.reshape(-1, *(1,) * (rows.ndim - 1)), rows, 0)
        return jax.lax.dynamic_update_index_in_dim(held, rows, i, 0)

    held = jnp.zeros((arrays[0].shape[0], *shape.shape), shape.dtype)
    # The number of steps is not known when it is compiled, so that no device's loop is unrolled.
    return jax.lax.fori_loop(0, n_pieces, put, held)


def _made_blocks(
    *arrays: Any,
    made: Callable[..., jax.Array],
    n_arrays: int,
    together: int,
    options: tuple[tuple[str, Any], ...],
    n_blocks: int,
    largest: bool,
) -> jax.Array:
    where, n_pieces, one = _made(arrays, n_arrays, made, options)
    shape, _ = jax.eval_shape(one, 0)

    def put(i: jax.Array, held: jax.Array) -> jax.Array:
        part = one(i)[0].astype(jnp.float64)
        block = i // together
        old = jax.lax.dynamic_index_in_dim(held, block, keepdims=False)
        new = jnp.maximum(old, part) if largest else old + part
        return jax.lax.dynamic_update_index_in_dim(held, new, block, 0)

    n_own = arrays[0].shape[0] // together
    held = jnp.full((n_own, *shape.shape), -jnp.inf if largest else 0.0, jnp.float64)
    return _words(jax.lax.fori_loop(0, n_pieces, put, held), where, n_blocks)


def _words(held: jax.Array, where: jax.Array, n_blocks: int) -> jax.Array:
    """The bits of a device's blocks at their places among all blocks, int64 (n_blocks, ...)."""
    n_own = held.shape[0]
    room = jnp.zeros((n_blocks + n_own, *held.shape[1:]), jnp.int64)
    bits = jax.lax.bitcast_convert_type(held, jnp.int64)
    empty = jnp.arange(n_own) >= where[3]
    bits = jnp.where(empty.reshape(-1, *(1,) * (held.ndim - 1)), 0, bits)
    return jax.lax.dynamic_update_slice_in_dim(room, bits, where[2], 0)[:n_blocks]


def _first_pieces(array: jax.Array, where: jax.Array, *, together: int, n_pieces: int) -> jax.Array:
    bits = jax.lax.bitcast_convert_type(array.astype(jnp.float64), jnp.int64)
    room = jnp.zeros((n_pieces + array.shape[0], *array.shape[1:]), jnp.int64)
    first = jnp.minimum(where[2] * together, n_pieces)
    return jax.lax.dynamic_update_slice_in_dim(room, bits, first, 0)[:n_pieces]


def _block_edges(
    array: jax.Array, where: jax.Array, *, length: int, n_blocks: int, edge: int
) -> jax.Array:
    flat = array.reshape(-1, *array.shape[2:])

    def of_block(j: jax.Array) -> jax.Array:
        end = jnp.minimum((j + 1) * length, where[1] - where[0])
        starts = (j * length, end - edge)
        return jnp.concatenate(
            [jax.lax.dynamic_slice_in_dim(flat, start, edge) for start in starts]
        )

    held = jax.lax.map(of_block, jnp.arange(flat.shape[0] // length))
    return _words(held.astype(jnp.float64), where, n_blocks)


def _sorted_keys(array: jax.Array, where: jax.Array) -> jax.Array:
    """Keys of the real rows in order; those that fill up come last."""
    keys = keys_of(array.reshape(-1))
    real = jnp.arange(keys.shape[0]) < where[1] - where[0]
    return jnp.sort(jnp.where(real, keys, ~jnp.uint64(0)))


def _smaller(ordered: jax.Array, candidates: jax.Array) -> jax.Array:
    return jnp.searchsorted(ordered, candidates).astype(jnp.int64)


def _turned_products(
    left: jax.Array,
    right: jax.Array,
    left_edges: jax.Array,
    right_edges: jax.Array,
    where: jax.Array,
    first: jax.Array,
    *,
    rows: int,
    columns: int,
    together: int,
    n_blocks: int,
) -> jax.Array:
    piece, edge = left.shape[1], left_edges.shape[1]
    n_rows, n_pieces = _counted(where, piece)

    def beside(array: jax.Array, edges: jax.Array) -> jax.Array:
        flat = jnp.pad(array.reshape(-1, array.shape[2]), ((edge, edge), (0, 0)))
        flat = jax.lax.dynamic_update_slice_in_dim(flat, edges[1], edge + n_rows, 0)
        return jax.lax.dynamic_update_slice_in_dim(flat, edges[0], 0, 0)

    phi, psi = beside(left, left_edges), beside(right, right_edges)

    def add(i: jax.Array, held: jax.Array) -> jax.Array:
        start = edge + i * piece
        real = (i * piece + jnp.arange(piece) < n_rows)[:, None]
        stacked = [
            jnp.concatenate(
                [jax.lax.dynamic_slice_in_dim(array, start + by, piece) for by in shifts], axis=1
            )
            for array, shifts in (
                (phi, [-a for a in range(rows)]),
                (psi, [first + rows * b for b in range(columns)]),
            )
        ]
        made = over_rows(jnp.where(real, stacked[0], 0), stacked[1])
        block = i // together
        new = jax.lax.dynamic_index_in_dim(held, block, keepdims=False) + made.astype(jnp.float64)
        return jax.lax.dynamic_update_index_in_dim(held, new, block, 0)

    shape = (left.shape[0] // together, rows * left.shape[2], columns * right.shape[2])
    return _words(
        jax.lax.fori_loop(0, n_pieces, add, jnp.zeros(shape, jnp.float64)), where, n_blocks
    )
