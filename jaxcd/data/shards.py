"""Rows over the devices of a mesh, and over several processes of one owner.

:meth:`jaxcd.Dataset.on` makes :class:`Shards`.  They answer what :class:`jaxcd.data.rows.Rows` are
asked: counts by the devices, each of its own rows (:mod:`jaxcd.ops.sharded_counts`), and exact sums
of maps of rows.  A map is the processor's, because its bits must be those of every engine; products
of what it makes are added up by the devices (:mod:`jaxcd.ops.device_sums`), and counts of bins by
the processor that found the bins.  What travels between devices and processes is a sum over rows:
one all-reduce of whole numbers a question.  So every answer is, to the last bit, that of the same
rows in one place.

Tests of numbers also ask for columns: by :meth:`Shards.in_blocks`, whose sums of numbers that are
not whole have one order, or whole, by :meth:`Shards.column`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, cast, final

import jax
import numpy as np
from numpy.typing import NDArray

from jaxcd.data.column_types import Binned
from jaxcd.data.domain import describe
from jaxcd.data.missing import Missing
from jaxcd.data.rows import Block, Columns, Rows, discrete_places
from jaxcd.errors import OptionError
from jaxcd.ops.device_sums import DeviceSum
from jaxcd.ops.people import person_weights
from jaxcd.ops.row_blocks import RowBlocks
from jaxcd.ops.row_mesh import RowMesh
from jaxcd.ops.sharded_counts import ShardedCodes
from jaxcd.ops.tilted_moments import ExactSum

__all__ = ["Shards"]

_MOST_ROWS = 1 << 33  # so that no sum of whole numbers overflows, whatever the rows are


@final
class Shards(Rows):
    """The rows of a data set over the devices of a mesh: what :meth:`jaxcd.Dataset.on` returns.

    Args:
        local: the rows of this process, in memory.
        discrete: the codes of their discrete columns, int32 (rows, columns).
        people: which of them belong to one person, whole numbers from 0; or None.
        mesh: a one-dimensional ``jax.sharding.Mesh``.

    Raises:
        OptionError: the mesh has not one axis, or no device of this process; the processes have
            different domains, or more than 2^33 rows.
    """

    def __init__(
        self, local: Rows, discrete: NDArray[np.int32], people: NDArray[np.int64] | None, mesh: Any
    ) -> None:
        self._local, self._mesh = local, RowMesh(mesh)
        self._discrete, self._people = discrete, people
        self.domain, self.missing = local.domain, local.missing
        sizes = np.zeros(self._mesh.n_processes, dtype=np.int64)
        sizes[self._mesh.process] = local.n_samples
        columns = json.dumps(local.domain.to_json_dict())
        self._sizes = sizes = self._mesh.total_of_processes(sizes, question=f"rows of {columns}")
        self.n_samples = int(sizes.sum())
        if self.n_samples > _MOST_ROWS:
            raise OptionError("data: there are more than 2**33 rows; give fewer")
        self._most_of_a_shard = int((-(-sizes // np.array(self._mesh.shards_of))).max())

    def __repr__(self) -> str:
        there = f"{self._mesh.n_shards} device{'s' if self._mesh.n_shards > 1 else ''}"
        if self._several:
            there += f" of {self._mesh.n_processes} processes"
        # where people may have several rows, the number of rows is as private as a row
        n = f"n_samples={self.n_samples}, " if not self.has_people else ""
        return f"Shards({n}{there}; {describe(self.domain)})"

    @property
    def _several(self) -> bool:
        return self._mesh.n_processes > 1

    @property
    def has_people(self) -> bool:
        return self._local.has_people

    @property
    def n_people(self) -> int:
        """The number of people: of rows, where the domain declares no person column.

        Raises:
            OptionError: it declares one, and the rows lie at several processes.
        """
        if not self.has_people:
            return self.n_samples
        self._check_people()
        return self._local.n_people

    def _check_people(self) -> None:
        if self._several:
            raise OptionError(
                "data: rows of one person may lie at several processes, where nobody knows how "
                "many there are; read the rows in one process for unit='person', or use "
                "unit='row' with max_rows_per_person=k"
            )

    @property
    def tell(self) -> Callable[[NDArray[np.int64]], NDArray[np.int64]] | None:
        return self._from_first if self._several else None

    def _from_first(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._mesh.from_first(words, question="noise")

    def reading(self, missing: Missing | str) -> Shards:
        """The same rows, whose missing cells searches without privacy read in this way.

        Raises:
            OptionError: it is no reading.
        """
        other = copy.copy(self)
        other.missing = Missing.of(missing)
        return other

    def in_bins(self, bins: Mapping[str, Binned]) -> Shards:
        local = cast(Any, self._local).in_bins(bins)
        return Shards(local, local.discrete, self._people, self._mesh.mesh)

    def check_subsample(self) -> None:
        """Raises OptionError where every process would draw a subsample of its own."""
        if self._several:
            raise OptionError(
                "data: rows of several processes have no common numbers, which a subsample needs; "
                "use a decider without subsampling, or a release"
            )

    def where(self, rows: NDArray[np.bool_]) -> Shards:
        """The rows of a mask, bool (n_samples,), over the same devices.

        Raises:
            OptionError: the rows lie at several processes.
            DataError: no row is left.
        """
        self.check_subsample()
        people = self._people
        if people is not None:
            people = np.unique(people[rows], return_inverse=True)[1].reshape(-1)
        local = cast(Rows, self._local.where(rows))
        return Shards(local, self._discrete[rows], people, self._mesh.mesh)

    @cached_property
    def _bounds(self) -> list[slice]:
        """The rows of each of this process's shards."""
        n, shards = self._local.n_samples, self._mesh.n_own
        ends = [n * i // shards for i in range(shards + 1)]
        return [slice(*pair) for pair in zip(ends, ends[1:], strict=False)]

    @cached_property
    def _codes(self) -> ShardedCodes:
        weights = None if self._people is None else person_weights(self._people)
        return ShardedCodes(
            self._mesh,
            [self._discrete[part] for part in self._bounds],
            rows=self._most_of_a_shard,
            cardinalities=[k for k in self.domain.cardinalities if k is not None],
            n_samples=self.n_samples,
            weights=None if weights is None else [weights[part] for part in self._bounds],
        )

    def counts(
        self, sets: Sequence[Columns], *, by_person: bool = False
    ) -> list[NDArray[np.int64]]:
        places = discrete_places(self.domain, sets)
        if by_person:
            self._check_people()
        return self._codes.counts(places, by_person=by_person)

    def occupied(self, columns: Columns) -> NDArray[np.int64]:
        """As for all rows, which only a process that holds all of them can say.

        Raises:
            OptionError: the rows lie at several processes.
        """
        if self._several:
            raise OptionError(
                f"data: a table of {len(columns)} columns has too many cells to be added up over "
                "processes; limit the sets with max_parents"
            )
        return self._local.occupied(columns)

    def column(self, name: str) -> NDArray[Any]:
        """One column, (n_samples,): int32 codes or float64 values.  Where several processes hold
        the rows, each is given the whole column, by one all-reduce.
        """
        own: NDArray[Any] = cast(Any, self._local).column(name)
        if not self._several:
            return own
        start = int(self._sizes[: self._mesh.process].sum())
        whole = np.zeros(self.n_samples, dtype=np.int64)
        whole[start : start + len(own)] = own if own.dtype == np.int32 else own.view(np.int64)
        whole = self._mesh.total_of_processes(whole, question=f"column {name}")
        return whole.astype(np.int32) if own.dtype == np.int32 else whole.view(np.float64)

    def in_blocks(self, *, edge: int = 1) -> RowBlocks:
        """How rows lie on the devices for sums of numbers that are not whole
        (:class:`jaxcd.ops.row_blocks.RowBlocks`).
        """
        return RowBlocks(self._mesh, self.n_samples, edge=edge)

    def numbers_in(self, order: NDArray[np.int64]) -> Callable[[int], NDArray[np.float64]]:
        """A function of a column's position: its numbers or level codes, rows in this order."""
        return lambda v: self.column(self.names[v]).astype(np.float64)[order]

    def blocks(self, names: Sequence[str], *, by_person: bool = False) -> Iterator[Block]:
        if by_person:
            self._check_people()
        devices = self._mesh.own_devices
        for i, block in enumerate(self._local.blocks(names, by_person=by_person)):
            # sums of whole numbers: any device may add any rows
            place = i % len(devices)
            yield replace(block, empty=partial(DeviceSum, place=place, device=devices[place]))

    def _of_all(self, total: Any, names: Sequence[str]) -> Any:
        if isinstance(total, DeviceSum):
            return self._of_devices(total, names)
        leaves, form = jax.tree.flatten(total)
        words = np.concatenate([leaf.reshape(-1) for leaf in leaves])
        words = self._mesh.total_of_processes(words, question=f"sums {names} {form}")
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
        found = [
            part.reshape(leaf.shape)
            for part, leaf in zip(np.split(words, ends), leaves, strict=True)
        ]
        return jax.tree.unflatten(form, found)

    def _of_devices(self, total: DeviceSum, names: Sequence[str]) -> ExactSum:
        """What devices and processes added up."""
        if total.heavy is not None:  # people, whose rows are all here
            return total.heavy
        words = self._mesh.total_of_devices(total.words, question=f"sums {names}")
        return ExactSum.of_words(words[0], words[1])
