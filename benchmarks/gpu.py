"""The numerical core on a GPU: ceilings of the machine, each op against them, and whole runs.

``python -m benchmarks.gpu [--quick] [--data FOLDER] [--resume] [--out FILE]``

*Ceilings*: giga bytes a second of a copy, and giga operations a second of square products in
float32, float64, bfloat16 and bytes.  *Ops*: the inner loops of a search (those of
:mod:`benchmarks.gpu_compile`) on random numbers, after compilation: seconds, the bytes that go in
and out and what share of the copy's speed that is, and the largest difference from the same op on
the CPU, relative to the largest number.  *Whole runs*: PC with RCIT on nonlinear models with the
structure of Alarm, and a release of marginals.  Runs on any device of JAX; without a GPU its name
says so, and ``--quick`` takes few rows.  What was stopped goes on with ``--resume``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.gpu_compile import CARDINALITIES, Op, ops
from benchmarks.rcit_pc import measure as pc_with_rcit
from benchmarks.sources import load_networks
from jaxcd.ops import double_precision


def _waited(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: jax.block_until_ready(function(*arguments))


def ceiling(what: str, size: int) -> dict[str, Any]:
    """giga: bytes (read and written) or operations a second.  size: rows of a square matrix; a copy
    is of size^2 numbers.
    """
    with double_precision():
        kind = {"copy": "float32", "int8": "int8"}.get(what, what)
        a = jnp.ones((size, size), kind)
        if what == "copy":
            seconds = ex.best(_waited(jax.jit(lambda x: x + 1), a))
            return {"seconds": seconds, "giga": 2 * a.nbytes / seconds / 1e9}
        wide = jnp.int32 if what == "int8" else a.dtype
        precision = jax.lax.Precision.HIGHEST
        product = jax.jit(
            lambda x: jnp.matmul(x, x, precision=precision, preferred_element_type=wide)
        )
        seconds = ex.best(_waited(product, a))
    return {"seconds": seconds, "giga": 2 * size**3 / seconds / 1e9}


def inputs(op: Op) -> list[np.ndarray]:
    """Random numbers of the op's shapes; integers are places from 0 to 3."""
    rng = np.random.default_rng(0)
    found = []
    for shape, kind in op.shapes:
        if kind == "uint32":
            array = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
        elif kind.startswith("int"):
            array = np.full(shape, shape[-1]) if kind == "int64" else rng.integers(0, 4, shape)
        else:
            array = (
                np.abs(rng.normal(size=shape)) + 0.1 if len(shape) == 1 else rng.normal(size=shape)
            )
        found.append(array.astype(kind))
    return found


def timed_op(op: Op, copy: float) -> dict[str, Any]:
    """One op on the default device, and on the CPU."""
    with double_precision():
        arrays = inputs(op)
        if op.name == "concordance":
            n = op.shapes[0][0][0]
            arrays[2:] = [np.zeros(n, np.int32), np.array([n])]
        function = jax.jit(op.function)
        there = [jnp.asarray(array) for array in arrays]
        seconds = ex.best(_waited(function, *there))
        got = jax.tree.leaves(jax.device_get(function(*there)))
        host = jax.devices("cpu")[0]
        with jax.default_device(host):
            same = [jax.device_put(array, host) for array in arrays]
            wanted = jax.tree.leaves(jax.device_get(function(*same)))
    moved = sum(a.nbytes for a in (*arrays, *got))
    return {
        "seconds": seconds,
        "giga_bytes": moved / 1e9,
        "of_copy": moved / 1e9 / copy / seconds,
        "difference": max(_difference(a, b) for a, b in zip(got, wanted, strict=True)),
    }


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (np.abs(np.asarray(v, dtype=np.float64)) for v in (a, b))
    return float(np.max(np.abs(a - b), initial=0) / max(np.max(b, initial=0), 1e-300))


def release_of_marginals(n: int) -> dict[str, Any]:
    """A release of marginals of random columns with Alarm's levels."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n, dtype=np.int32) for k in CARDINALITIES], axis=1)
    domain = jaxcd.Domain(
        {f"v{j}": jaxcd.Categorical(tuple(range(k))) for j, k in enumerate(CARDINALITIES)}
    )
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    with ex.Clock() as clock:
        jaxcd.release(
            data,
            jaxcd.Marginals(),
            budget=jaxcd.Budget(1.0, 1e-9),
            noise=jaxcd.SimulatedNoise(jax.random.key(0)),
        )
    return {"seconds": clock.seconds, "processor_seconds": clock.processor_seconds}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Ceilings, ops, whole runs."""
    size, n = (512, 20_000) if chosen.quick else (8192, 1_000_000)
    for what in ("copy", "float32", "float64", "bfloat16", "int8"):
        yield ("ceiling", what, size), ceiling, what, size
    copy = next(row.giga for row in record.rows if row.like(kind="ceiling", what="copy"))
    for op in ops(n):
        yield ("op", op.name, n), timed_op, op, copy
    structure = "cancer" if chosen.quick else "alarm"
    (network,) = load_networks([structure], chosen.data).values()
    for rows in (300,) if chosen.quick else (8_000, 100_000):
        key = ("run", f"PC with RCIT, {structure}", rows)
        yield key, pc_with_rcit, lambda run: network.dag, rows, 0, None
    rows = 20_000 if chosen.quick else 10_000_000
    yield ("run", "release of marginals", rows), release_of_marginals, rows


def plot(rows: list[ex.Row], path: Path) -> None:
    """What share of the copy's speed each op reaches."""
    rows = [row for row in rows if row.kind == "op"]
    figure, axes = ex.panels(1, 1, width=6.5, height=3.6)
    axes[0, 0].barh([row.what for row in rows], [row.of_copy for row in rows])
    axes[0, 0].set(xlabel="share of the speed of a copy", xscale="log")
    ex.save_picture(figure, path)


EXPERIMENT = ex.Experiment(
    "gpu",
    __doc__,
    ("kind", "what", "n"),
    jobs,
    columns=ex.columns_of(
        "kind; what; n:,; seconds:.5f",
        ex.Column("giga a second", lambda row: row.get("giga"), ",.0f", none="-"),
        ex.Column("GB", lambda row: row.get("giga_bytes"), ".3g", none="-"),
        ex.Column("of copy", lambda row: row.get("of_copy"), ".0%", none="-"),
        ex.Column("difference from CPU", lambda row: row.get("difference"), ".1e", none="-"),
    ),
    title="the numerical core on this device",
    options=(ex.data_option("networks/*.bif"),),
    draw=plot,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
