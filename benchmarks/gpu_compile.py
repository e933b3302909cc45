"""What the numerical core would launch on an H200, from a compile without the device.

``python -m benchmarks.gpu_compile [--quick] [--out FILE]``

Each op is compiled for a target that is described in text (compute capability 9.0, 132 cores), at
n = 1,000,000 rows, and its program is read: kernels launched (library calls count as one each),
loops whose number of steps the program does not know (each step of one is decided by a read of the
host), conditionals (a read each), bytes of arguments, results and scratch memory, and for rows over
eight devices the bytes of each all-reduce.  Launches of
the ops named below are held against limits; one above its limit, a dynamic loop or a host read in
any op makes the run fail.

The compiler is no part of the package.  It comes with ``pip install --no-deps
jax-cuda12-pjrt==VERSION jax-cuda12-plugin==VERSION nvidia-cuda-nvcc-cu12`` (JAX's version); without
them the run ends with a line that says so.  No number here is a time, and none was measured on a
GPU.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _compiler() -> Path | None:
    """The folder of the CUDA compiler, or None where a wheel is missing."""
    needed = ("jax_cuda12_plugin", "jax_plugins.xla_cuda12", "nvidia.cuda_nvcc")
    try:
        specs = [importlib.util.find_spec(name) for name in needed]
    except ModuleNotFoundError:
        return None
    if None in specs:
        return None
    return Path(next(iter(specs[-1].submodule_search_locations or ())))


_FOLDER = _compiler()
if _FOLDER is not None and __name__ == "__main__":
    # Before JAX starts: the host computes nothing here, and the compiler may not look for a device.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    flags = f"--xla_gpu_autotune_level=0 --xla_gpu_cuda_data_dir={_FOLDER}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from benchmarks import experiment as ex  # noqa: E402
from benchmarks.shards import reduced_bytes  # noqa: E402
from jaxcd.citests.regressions import MOST_CHOICE_ROWS  # noqa: E402
from jaxcd.ops import (  # noqa: E402
    association,
    concordance,
    contingency,
    double_precision,
    features,
    gram,
    hsic,
    hsic_batch,
    ridge,
    row_mesh,
    units,
)

TARGET = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 4800000000000 l2_cache_size: 62914560 clock_rate_ghz: 1.98
  device_memory_size: 150000000000
  cuda_compute_capability { major: 9 minor: 0 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H200"
"""
N = 1_000_000
#: Levels of the 37 columns of Alarm.
CARDINALITIES = (2,) * 12 + (3,) * 17 + (4,) * 8


# ---- reading a program

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*\)|\S+) ([\w\-]+)\((.*)$")
_COMMENT = re.compile(r"/\*.*?\*/")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CALLED = re.compile(r"(?:to_apply|body|called_computation)=%?([\w.\-]+)")
_FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional",
    "call", "after-all", "partition-id", "replica-id", "opt-barrier", "async-done", "copy-done",
}  # fmt: skip


@dataclass
class Counts:
    """launches: kernels of a run, loops counted by their steps (a dynamic one as one step)."""

    launches: int = 0
    dynamic_loops: int = 0
    host_reads: int = 0
    library_calls: int = 0

    def add(self, other: Counts, times: int = 1) -> None:
        """Adds what a called computation does, so many times."""
        self.launches += times * other.launches
        self.library_calls += times * other.library_calls
        self.host_reads += times * other.host_reads
        self.dynamic_loops += other.dynamic_loops


def counts_of(text: str) -> Counts:
    """What a compiled program does, from its text."""
    bodies: dict[str, list[str]] = {}
    entry, name = "", ""
    for line in _COMMENT.sub("", text).splitlines():
        if found := _COMPUTATION.match(line):
            name = found[1]
            bodies[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name:
            bodies[name].append(line)
    return _counted(entry, bodies)


def _counted(name: str, bodies: dict[str, list[str]]) -> Counts:
    total = Counts()
    for line in bodies[name]:
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        kind, rest = found[1], found[2]
        if kind == "while":
            trips = _TRIPS.search(rest)
            total.dynamic_loops += trips is None
            total.host_reads += trips is None
            body = re.search(r"body=%?([\w.\-]+)", rest)
            assert body is not None
            total.add(_counted(body[1], bodies), int(trips[1]) if trips else 1)
        elif kind == "conditional":
            total.host_reads += 1
        elif kind in ("call", "async-start"):
            called = _CALLED.search(rest) or re.search(r"calls=%?([\w.\-]+)", rest)
            if called is not None and called[1] in bodies:
                total.add(_counted(called[1], bodies))
        elif kind in ("infeed", "outfeed", "send", "recv") or "xla_python" in rest:
            total.host_reads += 1
        elif kind not in _FREE:
            total.launches += 1
            total.library_calls += kind == "custom-call"
    return total


# ---- ops


@dataclass(frozen=True)
class Op:
    """function: of arrays of these shapes and kinds.  limit: launches, or None."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[tuple[int, ...], str], ...]
    limit: int | None = None


def _level_zero(words: jax.Array, offsets: jax.Array, cardinalities: jax.Array) -> Any:
    products = contingency.level_products(words)
    return association.chi_square_of_products(products, offsets, cardinalities, 4)


def _covariances(words: jax.Array, offsets: jax.Array, cardinalities: jax.Array) -> Any:
    products = contingency.level_products(words)
    tables = contingency.tables_of_products(products, offsets, cardinalities, (4, 4))
    return association.covariance_sums(tables[:, None])


def ops(n: int) -> list[Op]:
    """Every op of the core that a search calls in its inner loop."""
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    rank, free, block, null = 200, 8, ridge._BLOCK["gpu"], min(hsic.BLOCK["gpu"], n)
    head = min(n, MOST_CHOICE_ROWS)
    n_words = math.ceil(n / (32 * 128)) * 128
    levels, pairs = 1 + sum(CARDINALITIES), len(CARDINALITIES) * (len(CARDINALITIES) - 1) // 2
    asked = {"rank": 5, "count": 101, "ties": 1e-5, "block": null, "batch": 8}

    def nulls(units_: jax.Array, features_: jax.Array, lost: jax.Array, pairs: jax.Array) -> Any:
        pool = hsic_batch.Pool(units_, features_, lost)
        return hsic_batch.answers(pool, pairs, jnp.int32(-7), **asked)

    def put(units_: jax.Array, features_: jax.Array, lost: jax.Array, *rest: jax.Array) -> Any:
        pool = hsic_batch.Pool(units_, features_, lost)
        return hsic_batch.put(pool, *rest, kernel, True, 4)

    f32, f64, i32 = "float32", "float64", "int32"
    pool = (((16, n), f32), ((16, 16, n), f32), ((16,), f32))
    parts = [(n, free), (n, rank), (rank, rank), (free, rank), (rank, rank), (rank,)]
    smoother = tuple((shape, f64) for shape in (*parts, (head, free + rank)))
    counted = (((levels, n_words), "uint32"), ((pairs, 2), i32), ((pairs, 2), i32))
    return [
        Op("all pairs, chi-square of each", _level_zero, counted, 5),
        Op("all pairs, covariances of each", _covariances, counted),
        Op(
            "pivots, rank 200",
            lambda x: gram.landmarks(x, jnp.float64(3.0), rank),
            (((gram.N_SEARCHED, 5), f64),),
            100,
        ),
        Op(
            "factor and smoother, rank 200",
            lambda x: ridge._gaussian_smoother(
                x, x, jnp.float64(3.0), (), rank, head, gram.N_SEARCHED, block
            ),
            (((n, free - 1), f64),),
        ),
        Op(
            "leave-one-out, 33 penalties",
            lambda *a: ridge.leave_one_out_residuals(ridge.Smoother(*a[:-2]), *a[-2:]),
            (*smoother, ((n, 2), f64), ((33,), f64)),
            200,
        ),
        Op(
            "HSIC null, 101 shifts",
            lambda a, b: hsic.shifted_squares(a, b, jnp.int32(7), 101, null),
            (((16, n), f32), ((16, n), f32)),
            60,
        ),
        Op("normal scores", units.normal_scores, (((n,), f64),)),
        Op("robust units", units.robust_unit, (((n,), f64),)),
        Op("features of 4 columns", put, (*pool, ((4, n), f64), ((2, 4), i32))),
        Op("answers of 8 pairs", nulls, (*pool, ((8, 2), i32))),
        Op(
            "concordance",
            lambda x, y, s, e: concordance._sums(x, y, s, e, False),
            (((n,), f64), ((n,), f64), ((n,), i32), ((1,), "int64")),
        ),
    ]


def sharded_ops(n: int, devices: Sequence[Any]) -> list[Op]:
    """What a question for all pairs runs on a mesh of devices, each with n rows."""
    mesh = jax.sharding.Mesh(np.array(devices), ("rows",))
    levels, n_words = 1 + sum(CARDINALITIES), contingency.words_of(n)
    counted = row_mesh._program_of_each(contingency.level_products, mesh, 1, 0, (), False)
    summed = row_mesh._program_of_total(mesh, 1, False)
    k, words, products = len(devices), (levels, n_words), (levels, levels)
    return [
        Op(f"all pairs on each of {k} devices", counted, (((k, *words), "uint32"),), 5),
        Op(f"their sum over {k} devices", summed, (((k, *products), "int32"),), 5),
    ]


def measure(op: Op, sharding: Any) -> dict[str, Any]:
    """Compiles one op and counts."""
    with double_precision():
        arguments = [
            jax.ShapeDtypeStruct(shape, kind, sharding=sharding) for shape, kind in op.shapes
        ]
        compiled = jax.jit(op.function).lower(*arguments).compile()
    counts, memory = counts_of(compiled.as_text()), compiled.memory_analysis()
    return {
        "launches": counts.launches,
        "limit": op.limit,
        "library_calls": counts.library_calls,
        "dynamic_loops": counts.dynamic_loops,
        "host_reads": counts.host_reads,
        "all_reduced_bytes": reduced_bytes(compiled.as_text()),
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes,
        "scratch_bytes": memory.temp_size_in_bytes,
        "passes": (op.limit is None or counts.launches <= op.limit)
        and not counts.dynamic_loops
        and not counts.host_reads,
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row an op."""
    from jax.experimental import topologies

    one, several = (
        topologies.get_topology_desc(
            "h200", "cuda", target_config=TARGET, topology=f"1x1x{n_devices}"
        ).devices
        for n_devices in (1, 8)
    )
    record.write(target="NVIDIA H200, compiled for without the device", n_samples=chosen.rows)
    for op in ops(chosen.rows):
        yield (op.name,), measure, op, jax.sharding.SingleDeviceSharding(one[0])
    rows = jax.sharding.Mesh(np.array(several), ("rows",))
    over_rows = jax.sharding.NamedSharding(rows, jax.sharding.PartitionSpec("rows"))
    for op in sharded_ops(chosen.rows, several):
        yield (op.name,), measure, op, over_rows


def finish(record: ex.Record, chosen: Namespace, console: Any) -> dict[str, Any]:
    """The table; ends with exit code 1 where an op fails."""
    console.print(ex.table_of(record.rows, COLUMNS, f"compiled for an H200, n = {chosen.rows:,}"))
    failed = [row.op for row in record.rows if not row.passes]
    if failed:
        sys.exit(f"above its limit, or decided by the host: {', '.join(failed)}")
    return {}


COLUMNS = ex.columns_of(
    "op; launches:d",
    ex.Column("limit", lambda row: row.limit, "d", none="-"),
    "library calls=library_calls:d; dynamic loops=dynamic_loops:d; host reads=host_reads:d",
    ex.Column("sent B", lambda row: sum(row.all_reduced_bytes or ()), "d"),
    ex.Column("in MB", lambda row: row.argument_bytes / 1e6, ".0f"),
    ex.Column("scratch MB", lambda row: row.scratch_bytes / 1e6, ".0f"),
)
EXPERIMENT = ex.Experiment(
    "gpu_compile",
    __doc__,
    ("op",),
    jobs,
    options=(ex.one_count("--rows", "records", N, 20_000),),
    finish=finish,
)


def main(arguments: list[str] | None = None) -> None:
    """The experiment, or one line where the compiler is missing."""
    if _FOLDER is None:
        sys.exit(
            "gpu_compile: the CUDA compiler is not installed; pip install --no-deps "
            f"jax-cuda12-pjrt=={jax.__version__} jax-cuda12-plugin=={jax.__version__} "
            "nvidia-cuda-nvcc-cu12"
        )
    EXPERIMENT.main(arguments)


if __name__ == "__main__":
    main()
