"""What rows over several devices send each other: bytes all-reduced a question, not time.

``python -m benchmarks.shards [--quick] [--rows N ...] [--devices K ...] [--resume] [--out FILE]``

Weak scaling: each of K simulated devices of this machine holds N rows of 37 columns (the levels of
Alarm), so that K N rows are counted.  A question is asked of ``Dataset.on(mesh)``, and every
program that it runs is read, as it was compiled for K devices: how many all-reduces it has (another
collective ends the run), and the bytes of their arrays, which is what a device gives into the sum.
On one device that is a copy.

- ``pairs``, ``triples``: the tables of all pairs, of all triples of the first 20 columns;
- ``one pair``: what a single test asks;
- ``histogram``: the table of the first ten columns;
- ``HSIC``, ``RCIT``: one test of two columns of numbers, given none and a third; the answer has the
  bits of one device.

Columns: rows in all, cells that were asked for, all-reduces, bytes, bytes for each cell, and the
bytes of rows that a device holds, which do not travel.  Simulated devices share one processor, so
no time is told.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jax
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from jaxcd.ops import row_mesh

ALARM = (2,) * 13 + (3,) * 17 + (4,) * 7
QUESTIONS = {
    "one pair": [(0, 1)],
    "pairs": list(itertools.combinations(range(37), 2)),
    "triples": list(itertools.combinations(range(20), 3)),
    "histogram": [tuple(range(10))],
}

TESTS: dict[str, tuple[Any, list[str]]] = {
    "HSIC": (jaxcd.HSIC(), []),
    "RCIT": (jaxcd.RCIT(), ["x3"]),
}

_REDUCED = re.compile(r"= (\S+|\([^)]*\)) all-reduce(?:-start)?\(")
_ARRAY = re.compile(r"([a-z]+)(\d+)\[([\d,]*)\]")
_OTHERS = re.compile(
    r" (all-gather|all-to-all|collective-permute|collective-broadcast|reduce-scatter)(-start)?\("
)


def reduced_bytes(text: str) -> list[int]:
    """The bytes of each all-reduce of a compiled program.

    Raises:
        AssertionError: it has another collective.
    """
    other = _OTHERS.search(text)
    assert other is None, other
    return [
        sum(
            int(bits) // 8 * math.prod(int(length) for length in shape.split(",") if length)
            for _, bits, shape in _ARRAY.findall(arrays)
        )
        for arrays in _REDUCED.findall(text)
    ]


@contextlib.contextmanager
def reading_programs() -> Iterator[list[list[int]]]:
    """A list that gets, for every program that rows on a mesh run, the bytes of its all-reduces."""
    found: list[list[int]] = []

    def reading(programs: Any) -> Any:
        def chosen(*options: Any) -> Any:
            program = programs(*options)

            def run(*arrays: Any) -> Any:
                found.append(reduced_bytes(program.lower(*arrays).compile().as_text()))
                return program(*arrays)

            return run

        return chosen

    names = ("_program_of_each", "_program_of_total")
    with contextlib.ExitStack() as patches:
        for name in names:
            patches.enter_context(
                mock.patch.object(row_mesh, name, reading(getattr(row_mesh, name)))
            )
        yield found


def one(question: str, n_rows: int) -> dict[str, Any]:
    """What a question sends, over all devices of this process."""
    if question in TESTS:
        return one_test(question, n_rows)
    n_devices = jax.device_count()
    rng = np.random.default_rng(0)
    codes = np.empty((n_rows * n_devices, len(ALARM)), dtype=np.int32, order="F")
    for column, k in zip(codes.T, ALARM, strict=True):
        column[:] = rng.integers(k, size=len(column))
    domain = jaxcd.Domain({f"c{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(ALARM)})
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    rows = data.on(jax.make_mesh((n_devices,), ("rows",)))
    sets = QUESTIONS[question]
    with reading_programs() as programs:
        found = rows.counts(sets)
    same = all(np.array_equal(a, b) for a, b in zip(found, data.counts(sets), strict=True))
    assert same, question
    sent = list(itertools.chain.from_iterable(programs))
    held = sum(part.nbytes for part in vars(rows._codes).values() if isinstance(part, jax.Array))
    return {
        "n": len(codes),
        "cells": sum(table.size for table in found),
        "programs": len(programs),
        "all_reduces": len(sent),
        "bytes_sent": sum(sent),
        "bytes_held": held // n_devices,
    }


def one_test(question: str, n_rows: int) -> dict[str, Any]:
    """What a test of numbers sends."""
    n_devices = jax.device_count()
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n_rows * n_devices, 3)) @ np.triu(np.ones((3, 3)))
    data = jaxcd.Dataset.from_array(values)
    test, given = TESTS[question]

    def asked(devices: list[Any]) -> Any:
        rows = data.on(jax.sharding.Mesh(np.array(devices), ("rows",)))
        no, key = jaxcd.NO_PRIVACY, jax.random.key(0)
        return jaxcd.ci_test(rows, "x1", "x2", given=given, test=test, budget=no, key=key)

    with reading_programs() as programs:
        found = asked(jax.devices())
    alone = asked(jax.devices()[:1])
    assert (found.statistic, found.log_pvalue) == (alone.statistic, alone.log_pvalue), question
    sent = list(itertools.chain.from_iterable(programs))
    return {
        "n": len(values),
        "cells": 1,
        "programs": len(programs),
        "all_reduces": len(sent),
        "bytes_sent": sum(sent),
        "bytes_held": values.nbytes // n_devices,
    }


def measure(question: str, n_rows: int, n_devices: int) -> dict[str, Any]:
    """The same in a process with so many devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n_devices}"
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks.shards", "--one", question, str(n_rows)],
        env={**os.environ, "XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    row: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return row


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every question, at every number of rows a device, on every number of devices."""
    for question, n_rows, n_devices in itertools.product(
        [*QUESTIONS, *TESTS], chosen.rows, chosen.devices
    ):
        yield (question, n_rows, n_devices), measure, question, n_rows, n_devices


EXPERIMENT = ex.Experiment(
    "shards",
    __doc__,
    ("question", "rows_of_a_device", "n_devices"),
    jobs,
    columns=(
        *ex.columns_of(
            "question; rows a device=rows_of_a_device:,; devices=n_devices:d; rows=n:,; "
            "cells=cells:,; all-reduces=all_reduces:d; bytes=bytes_sent:,"
        ),
        ex.Column("bytes a cell", lambda row: row["bytes_sent"] / row["cells"], ".1f"),
        *ex.columns_of("bytes held=bytes_held:,"),
    ),
    options=(
        ex.counts("--rows", "rows of each device", [10_000, 100_000], [1_000]),
        ex.counts("--devices", "devices", [1, 2, 4, 8, 16], [1, 2, 8]),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]))))
    else:
        main()
