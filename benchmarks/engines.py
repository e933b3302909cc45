"""Rows that stay where they are: seconds and peak memory, against the same rows read into memory.

``python -m benchmarks.engines [--quick] [--rows N ...] [--ways WAY ...] [--resume] [--out FILE]``

A parquet file of N rows of 8 columns of text (2 to 4 levels; each column follows the one before
with probability .6) is counted for a release of marginals at (1, 1e-6):

- ``memory``: ``jaxcd.read_csv`` of the file, then the release;
- ``duckdb``: ``jaxcd.Table`` of a DuckDB relation with two threads and 300 MB;
- ``polars``: ``jaxcd.Table`` of a lazy frame;
- ``parquet``: ``jaxcd.Table.parquet``.

Each runs in a process of its own.  Columns: seconds for all of it (without the import), seconds of
processor time, peak memory of the process, queries, and a digest of the released numbers, which is
the same for all.  Last, ``pairs``: how many queries answer all pairs of Alarm's 37 columns.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import resource
import subprocess
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
PIECE = 1_000_000
DOMAIN = jaxcd.Domain({f"c{j}": jaxcd.Categorical(levels) for j, levels in enumerate(LEVELS)})


def write(path: Path, n: int) -> None:
    """The file, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.string()) for name in DOMAIN.names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, PIECE):
            rows, columns = min(PIECE, n - start), []
            codes = rng.integers(0, 2, rows)
            for levels in LEVELS:
                fresh = rng.integers(0, len(levels), rows)
                codes = np.where(rng.random(rows) < 0.6, codes % len(levels), fresh)
                coded = pa.DictionaryArray.from_arrays(codes.astype(np.int32), list(levels))
                columns.append(coded.cast(pa.string()))
            writer.write_table(pa.table(columns, names=list(DOMAIN.names)))


def opened(way: str, path: Path, n: int) -> Any:
    """The rows."""
    facts: dict[str, Any] = {"domain": DOMAIN, "n_samples": n, "snapshot": "benchmark"}
    if way == "memory":
        return jaxcd.read_csv(path, domain=DOMAIN)
    if way == "parquet":
        return jaxcd.Table.parquet(path, **facts)
    if way == "polars":
        import polars

        return jaxcd.Table(polars.scan_parquet(path), **facts)
    import duckdb

    connection = duckdb.connect(config={"threads": 2, "memory_limit": "300MB"})
    return jaxcd.Table(connection.read_parquet(str(path)), **facts)


def one(way: str, path: Path, n: int) -> dict[str, Any]:
    """One release, in this process."""
    start, worked = time.perf_counter(), time.process_time()
    rows = opened(way, path, n)
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
        return {"n_queries": len(covers(list(itertools.combinations(range(37), 2)), ALARM))}
    path = folder / f"{n}.parquet"
    if not path.exists():
        write(path, n)
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.engines", "--one"]
    found = subprocess.run(
        [*command, way, str(path), str(n)], check=True, capture_output=True, text=True
    )
    row: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return row


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every way at every number of rows."""
    with tempfile.TemporaryDirectory() as folder:
        for n, way in itertools.product(chosen.rows, chosen.ways or WAYS):
            yield (way, n), measure, way, n, Path(folder)
        yield ("pairs", 37), measure, "pairs", 37, Path(folder)


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
        ex.names("--ways", "default: all", choices=WAYS),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
