"""Rows that stay where they are: seconds and peak memory, against the same rows read into memory.

``python -m benchmarks.engines [--quick] [--rows N ...] [--pairs-rows M ...] [--ways WAY ...]
[--resume] [--out FILE]``

A parquet file of N rows of 8 columns of text (2 to 4 levels; each column follows the one before
with probability .6) is counted for a release of marginals at (1, 1e-6):

- ``memory``: ``jaxcd.read_csv`` of the file, then the release;
- ``duckdb``: ``jaxcd.Table`` of a DuckDB relation with two threads and 300 MB;
- ``polars``: ``jaxcd.Table`` of a lazy frame;
- ``parquet``: ``jaxcd.Table.parquet``.

Then all 666 pair tables of M rows of 37 columns of text (Alarm's levels), without a release:

- ``pairs duckdb``, ``pairs polars``, ``pairs parquet``: of the same tables.

Each runs in a process of its own.  Columns: seconds for all of it (without the import), seconds of
processor time, peak memory of the process, queries, and a digest of the released numbers (of the
tables of pairs), which is the same for all ways.  ``pairs``: how many queries answer all pairs.

Last, the projection to 1e9 rows: from the two largest numbers of rows of a way, the exponent of
processor time in the number of rows, and the minutes of processor time that follow from it.  A
fixed part, such as compiling, makes the exponent smaller than 1; then the projection takes 1.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import resource
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.processes import alone
from jaxcd.data.covers import covers

BUDGET = jaxcd.Budget(1.0, 1e-6)
WAYS = ("memory", "duckdb", "polars", "parquet")
LEVELS = (
    ("yes", "no"),
    ("low", "middle", "high"),
    ("a", "b", "c", "d"),
    ("never", "often"),
    ("north", "south", "east"),
    ("x", "y"),
    ("one", "two", "three"),
    ("p", "q"),
)
ALARM = (2,) * 13 + (3,) * 17 + (4,) * 7
PAIRS = list(itertools.combinations(range(37), 2))
PIECE = 1_000_000
PROJECTED = 1_000_000_000


def domain_of(way: str) -> jaxcd.Domain:
    """The columns of the file that a way reads."""
    kinds = [tuple("wxyz"[:k]) for k in ALARM] if way.startswith("pairs") else LEVELS
    return jaxcd.Domain({f"c{j}": jaxcd.Categorical(levels) for j, levels in enumerate(kinds)})


def write(path: Path, n: int, domain: jaxcd.Domain) -> None:
    """The file, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.string()) for name in domain.names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, PIECE):
            rows, columns = min(PIECE, n - start), []
            codes = rng.integers(0, 2, rows)
            for column in domain.columns.values():
                levels = column.levels
                fresh = rng.integers(0, len(levels), rows)
                codes = np.where(rng.random(rows) < 0.6, codes % len(levels), fresh)
                coded = pa.DictionaryArray.from_arrays(codes.astype(np.int32), list(levels))
                columns.append(coded.cast(pa.string()))
            writer.write_table(pa.table(columns, names=list(domain.names)))


def opened(way: str, path: Path, n: int) -> Any:
    """The rows."""
    domain = domain_of(way)
    facts: dict[str, Any] = {"domain": domain, "n_samples": n, "snapshot": "benchmark"}
    engine = way.removeprefix("pairs ")
    if engine == "memory":
        return jaxcd.read_csv(path, domain=domain)
    if engine == "parquet":
        return jaxcd.Table.parquet(path, **facts)
    if engine == "polars":
        import polars

        return jaxcd.Table(polars.scan_parquet(path), **facts)
    import duckdb

    connection = duckdb.connect(config={"threads": 2, "memory_limit": "300MB"})
    return jaxcd.Table(connection.read_parquet(str(path)), **facts)


def one(way: str, path: Path, n: int) -> dict[str, Any]:
    """One release, or all tables of pairs, in this process."""
    start, worked = time.perf_counter(), time.process_time()
    rows = opened(way, path, n)
    if way.startswith("pairs"):
        numbers = b"".join(table.tobytes() for table in rows.counts(PAIRS))
    else:
        noise = jaxcd.SimulatedNoise(jax.random.key(0))
        bought = jaxcd.release(rows, jaxcd.Marginals(), budget=BUDGET, noise=noise)
        numbers = b"".join(bought.interactions[s].tobytes() for s in sorted(bought.interactions))
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - worked,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "n_queries": getattr(rows, "n_queries", None),
        "digest": hashlib.sha256(numbers).hexdigest()[:12],
    }


def measure(way: str, n: int, folder: Path) -> dict[str, Any]:
    """The same in a process of its own, whose memory is its own."""
    if way == "pairs":
        return {"n_queries": len(covers(PAIRS, ALARM))}
    domain = domain_of(way)
    path = folder / f"{n}-{domain.n_columns}.parquet"
    if not path.exists():
        for other in folder.iterdir():  # one file at a time: the largest is of gigabytes
            other.unlink()
        write(path, n, domain)
    return alone("benchmarks.engines", way, path, n)


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every way at every number of rows."""
    with tempfile.TemporaryDirectory() as folder:
        for n, way in itertools.product(chosen.rows, chosen.ways or WAYS):
            yield (way, n), measure, way, n, Path(folder)
        for n, way in itertools.product(chosen.pairs_rows, chosen.ways or WAYS):
            if way != "memory":
                yield (f"pairs {way}", n), measure, f"pairs {way}", n, Path(folder)
        yield ("pairs", 37), measure, "pairs", 37, Path(folder)


def projected(record: ex.Record, chosen: Namespace, console: Any) -> dict[str, Any]:
    """Of each way the exponent between its two largest numbers of rows, and what follows."""
    found = []
    for way in WAYS:
        rows = sorted((row for row in record.rows if row.way == way), key=lambda row: row.n_rows)
        if len(rows) < 2:
            continue
        few, many = rows[-2:]
        grown = math.log(many.n_rows / few.n_rows)
        exponent = math.log(many.cpu_seconds / few.cpu_seconds) / grown
        minutes = many.cpu_seconds / 60 * (PROJECTED / many.n_rows) ** max(exponent, 1.0)
        found.append({"way": way, "from": many.n_rows, "exponent": exponent, "minutes": minutes})
        console.print(
            f"{way}: {few.n_rows:,} to {many.n_rows:,} rows, exponent {exponent:.2f}; "
            f"{PROJECTED:,} rows: {minutes:.1f} minutes of processor time"
        )
    return {"projection": found}


EXPERIMENT = ex.Experiment(
    "engines",
    __doc__,
    ("way", "n_rows"),
    jobs,
    columns=ex.columns_of(
        "way; rows=n_rows:,; seconds:.2f; processor=cpu_seconds:.2f; MiB=peak_mib:.0f; "
        "queries=n_queries; digest"
    ),
    options=(
        ex.counts("--rows", "rows", [1_000_000, 10_000_000], [20_000]),
        ex.counts("--pairs-rows", "rows of all pairs", [10_000_000], [20_000]),
        ex.names("--ways", "default: all", choices=WAYS),
    ),
    finish=projected,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
