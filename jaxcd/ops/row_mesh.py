"""Rows cut over the devices of a mesh: work on each shard, and the one way in which shards speak.

Every device holds a shard, the arrays of some of the rows, as one entry of the first axis of a
global array.  :meth:`RowMesh.each` runs a program on every shard, and nothing is communicated;
:meth:`RowMesh.total` adds up what the shards found, by one all-reduce of whole numbers.  Sums of
whole numbers are the same in every order, so neither the number of shards, nor where they are cut,
nor how the devices add shows in a total: not in one bit.

With ``jax.distributed`` the mesh spans processes.  All of them run the same lines and so ask for
the same totals in the same order; which question a total belongs to is added up beside it, and
processes that ask different ones are stopped.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from jaxcd.checks import a_type
from jaxcd.errors import OptionError
from jaxcd.ops.precision import double_precision

__all__ = ["RowMesh"]

_INT32 = (1 << 31) - 1


class RowMesh:
    """A one-dimensional mesh, as rows use it.

    Args:
        mesh: of one axis, whatever its name; every process of it has a device there.

    Attributes:
        mesh: as given.
        n_shards: the number of devices.
        n_processes: the number of processes that they belong to.
        shards_of: how many devices each of these has.
        process: the place of this process among them.
        platform: of the devices, such as "cpu".

    Raises:
        OptionError: it is no such mesh.
    """

    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh) or len(mesh.axis_names) != 1:
            given = (
                f"a mesh of {len(mesh.axis_names)} axes" if isinstance(mesh, Mesh) else a_type(mesh)
            )
            raise OptionError(
                f"mesh: {given} is no one-dimensional mesh; make one with "
                "jax.make_mesh((jax.device_count(),), ('rows',))"
            )
        devices = list(mesh.devices.flat)
        processes = sorted({device.process_index for device in devices})
        if jax.process_index() not in processes:
            raise OptionError(
                "mesh: it has no device of this process; make it of jax.devices(), which are those "
                "of all processes"
            )
        self._rows = NamedSharding(mesh, PartitionSpec(mesh.axis_names[0]))
        self._own = [d for d in devices if d.process_index == jax.process_index()]
        self.mesh = mesh
        self.n_shards, self.n_processes = len(devices), len(processes)
        self.shards_of = [
            sum(device.process_index == process for device in devices) for process in processes
        ]
        self.process = processes.index(jax.process_index())
        self.platform: str = devices[0].platform
        self._n_totals = 0

    @property
    def own_shards(self) -> list[int]:
        """The places of this process's shards."""
        devices = list(self.mesh.devices.flat)
        return [i for i, device in enumerate(devices) if device in self._own]

    @property
    def own_devices(self) -> list[jax.Device]:
        """This process's devices, in the mesh's order."""
        return list(self._own)

    @property
    def n_own(self) -> int:
        """The number of shards that this process holds."""
        return len(self._own)

    def put(self, parts: Sequence[NDArray[Any] | jax.Array]) -> jax.Array:
        """An array with a shard on each device: (n_shards, ...).

        Args:
            parts: of this process's shards, in the mesh's order, all of one shape.
        """
        shards = [
            jax.device_put(part[None], device)
            for part, device in zip(parts, self._own, strict=True)
        ]
        shape = (self.n_shards, *parts[0].shape)
        return jax.make_array_from_single_device_arrays(shape, self._rows, shards)

    def each(
        self,
        function: Callable[..., jax.Array],
        shards: Sequence[jax.Array],
        given: Sequence[Any] = (),
        steady: bool = False,
        **static: Any,
    ) -> jax.Array:
        """The function of each shard's arrays: (n_shards, ...); nothing is communicated.

        Args:
            function: of the arrays of one shard, then ``given``; a function of a module.
            shards: (n_shards, ...).
            given: the same for all shards.
            steady: whether sums of numbers that are not whole have one order, however many threads
                there are.
            static: known when it is compiled.
        """
        program = _program_of_each(
            function, self.mesh, len(shards), len(given), tuple(sorted(static.items())), steady
        )
        return program(*shards, *given)

    def total(
        self, parts: Sequence[jax.Array], *, most: int, question: str
    ) -> list[NDArray[np.int64]]:
        """What the shards found, added up over shards by one all-reduce: exact.

        Args:
            parts: whole numbers (n_shards, ...).
            most: no total is larger (public): below 2^31 they are added as int32.
            question: public words for what is asked; in every process the same.

        Returns:
            One array int64 (...) for each part.

        Raises:
            OptionError: the processes asked different questions.
        """
        self._n_totals += 1
        if self.n_processes > 1:
            mark = zlib.crc32(f"{self._n_totals} {question}".encode()) & 0xFFFF
            parts = [*parts, self.put([np.array([mark], dtype=np.int32)] * self.n_own)]
        with double_precision():
            program = _program_of_total(self.mesh, len(parts), most > _INT32)
            joined = np.asarray(program(*parts)).astype(np.int64)
        sizes = [int(np.prod(part.shape[1:])) for part in parts]
        found = [
            total.reshape(part.shape[1:])
            for total, part in zip(np.split(joined, np.cumsum(sizes)[:-1]), parts, strict=True)
        ]
        if self.n_processes > 1 and int(found.pop()[0]) != mark * self.n_shards:
            raise OptionError(
                "mesh: the processes do not ask the same questions in the same order; run the "
                "same program, with the same options and keys, in each of them"
            )
        return found

    def total_of_processes(self, words: NDArray[np.int64], *, question: str) -> NDArray[np.int64]:
        """The sum over processes of an array that each of them has, by one all-reduce: exact.

        Args:
            words: int64, of one shape in all processes.
            question: as for :meth:`total`.
        """
        if self.n_processes == 1:
            return words
        with double_precision():
            nothing = [np.zeros_like(words)] * (self.n_own - 1)
            return self.total([self.put([words, *nothing])], most=1 << 62, question=question)[0]

    def total_of_devices(
        self, words: Mapping[int, jax.Array], *, question: str
    ) -> NDArray[np.int64]:
        """The sum over devices of int64 arrays that some of them hold, by one all-reduce: exact.

        Args:
            words: by place among this process's devices, one at least.
            question: as for :meth:`total`.
        """
        nothing = np.zeros(next(iter(words.values())).shape, dtype=np.int64)
        with double_precision():
            parts = [words.get(place, nothing) for place in range(self.n_own)]
            return self.total([self.put(parts)], most=1 << 62, question=question)[0]

    def from_first(self, words: NDArray[np.int64], *, question: str) -> NDArray[np.int64]:
        """The array of the first process, in all of them; ``words`` of the others only has its
        shape.
        """
        given = words if self.process == 0 else np.zeros_like(words)
        return self.total_of_processes(given, question=question)


@lru_cache(maxsize=256)
def _program_of_each(
    function: Callable[..., jax.Array],
    mesh: Mesh,
    n_shards: int,
    n_given: int,
    static: tuple[tuple[str, Any], ...],
    steady: bool,
) -> Any:
    rows = PartitionSpec(mesh.axis_names[0])

    def on_shard(*arrays: jax.Array) -> jax.Array:
        own = [array[0] for array in arrays[:n_shards]]
        return function(*own, *arrays[n_shards:], **dict(static))[None]

    specs = (rows,) * n_shards + (PartitionSpec(),) * n_given
    mapped = jax.shard_map(on_shard, mesh=mesh, in_specs=specs, out_specs=rows, check_vma=False)
    return jax.jit(mapped, compiler_options=_one_order() if steady else None)


@lru_cache(maxsize=1)
def _one_order() -> dict[str, str] | None:
    """What keeps a compiler for CPUs from sharing a sum among threads, whose number would be seen
    in its rounding; None where there is no such option.
    """
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.block_until_ready(jax.jit(jax.numpy.negative, compiler_options=options)(1.0))
    except jax.errors.JaxRuntimeError:
        return None
    return options


@lru_cache(maxsize=256)
def _program_of_total(mesh: Mesh, n_parts: int, wide: bool) -> Any:
    (axis,) = mesh.axis_names

    def summed(*parts: jax.Array) -> jax.Array:
        kind = np.int64 if wide else np.int32
        joined = jax.numpy.concatenate([part.astype(kind).reshape(-1) for part in parts])
        return jax.lax.psum(joined, axis)

    specs = (PartitionSpec(axis),) * n_parts
    return jax.jit(jax.shard_map(summed, mesh=mesh, in_specs=specs, out_specs=PartitionSpec()))
