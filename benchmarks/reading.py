"""Reading a file: seconds and peak memory, beside Polars and pandas.

``python -m benchmarks.reading [--quick] [--rows N ...] [--tables TABLE ...] [--files FILE ...]
[--rounds R] [--resume] [--out FILE]``

A table has N rows of 10 columns.  ``text``: 10 of text, 2 to 5 levels each.  ``mixed``: 5 of text,
2 of whole numbers (100 and 1,000,000 of them), 3 of normal numbers, nearly all distinct.  It is
written as

- ``csv``: no cell in quotes;
- ``csv quoted``: every text in quotes, as ``pyarrow.csv.write_csv`` writes it;
- ``csv breaks``: the same, and every text holds a comma, a doubled quote and a line break;
- ``parquet``,

and read by

- ``polars``: ``read_csv`` or ``read_parquet``; text stays text;
- ``polars enum``: the same with the text columns declared as ``Enum``, which is nearest to what
  jaxcd returns: a code for each cell;
- ``pandas``: ``read_csv`` or ``read_parquet``;
- ``jaxcd``: ``jaxcd.read_csv`` with a declared domain, as for a private run;
- ``jaxcd inferred``: without one.

Each reading is the first one in a process of its own.  Seconds, on the clock and of processor time,
are the least over the rounds, without imports; a round reads a file in all ways in turn.
The ratios are to Polars' plain reading, and to the faster of its two, within this run.  ``MiB`` is
the peak memory of the process, ``before`` that before reading: JAX is imported in every process.
"""

from __future__ import annotations

import importlib
import itertools
import json
import resource
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.processes import alone

TABLES = ("text", "mixed")
FILES = ("csv", "csv quoted", "csv breaks", "parquet")
WAYS = ("polars", "polars enum", "pandas", "jaxcd", "jaxcd inferred")
LEVELS = (
    ("yes", "no"),
    ("low", "middle", "high"),
    ("a", "b", "c", "d"),
    ("north", "south", "east"),
    ("red", "green", "blue", "grey", "black"),
)
#: what a way imports before the clock starts
IMPORTS = {
    "polars": ("polars",),
    "pandas": ("pandas", "pyarrow.parquet"),
    "jaxcd": ("jaxcd.data.readers", "pyarrow.csv", "pyarrow.parquet"),
}
PIECE = 500_000


def domain_of(table: str, file: str) -> jaxcd.Domain:
    """What the columns of a table are."""
    more = ', "so"\n' if file == "csv breaks" else ""
    levels = [tuple(level + more for level in each) for each in LEVELS]
    text = levels * 2 if table == "text" else levels
    columns: dict[str, Any] = {f"c{j}": jaxcd.Categorical(each) for j, each in enumerate(text)}
    if table == "mixed":
        columns |= {"age": jaxcd.Numeric(0, 100), "income": jaxcd.Numeric(0, 1e6)}
        columns |= {f"x{j}": jaxcd.Numeric(-10, 10) for j in range(3)}
    return jaxcd.Domain(columns)


def piece_of(domain: jaxcd.Domain, rows: int, rng: np.random.Generator) -> Any:
    """Some rows."""
    import pyarrow as pa

    cells = []
    for column in domain.columns.values():
        if column.is_discrete:
            codes = rng.integers(0, len(column.levels), rows).astype(np.int32)
            cells.append(pa.DictionaryArray.from_arrays(codes, list(column.levels)))
            cells[-1] = cells[-1].cast(pa.string())
        elif column.bounds[0] == 0:
            cells.append(pa.array(rng.integers(0, int(column.bounds[1]), rows)))
        else:
            cells.append(pa.array(rng.normal(size=rows)))
    return pa.table(cells, names=list(domain.names))


def write(path: Path, table: str, file: str, n: int) -> None:
    """The file, in pieces."""
    import pyarrow.csv
    import pyarrow.parquet

    rng, domain = np.random.default_rng(0), domain_of(table, file)
    schema = piece_of(domain, 1, rng).schema
    style = "none" if file == "csv" else "needed"  # which puts every text in quotes
    options = pyarrow.csv.WriteOptions(quoting_style=style)
    with (
        pyarrow.parquet.ParquetWriter(path, schema)
        if file == "parquet"
        else pyarrow.csv.CSVWriter(path, schema, write_options=options)
    ) as writer:
        for start in range(0, n, PIECE):
            writer.write_table(piece_of(domain, min(PIECE, n - start), rng))


def read(way: str, path: Path, domain: jaxcd.Domain) -> Any:
    """The rows."""
    is_csv = path.suffix == ".csv"
    if way.startswith("jaxcd"):
        return jaxcd.read_csv(path, domain=domain if way == "jaxcd" else None)
    if way == "pandas":
        import pandas

        return pandas.read_csv(path) if is_csv else pandas.read_parquet(path)
    import polars

    if way == "polars":
        return polars.read_csv(path) if is_csv else polars.read_parquet(path)
    enums = {
        name: polars.Enum(column.levels)
        for name, column in domain.columns.items()
        if column.is_discrete
    }
    if is_csv:
        return polars.read_csv(path, schema_overrides=enums)
    return polars.read_parquet(path).cast(enums)


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(way: str, path: Path, domain: jaxcd.Domain, n: int) -> dict[str, float]:
    """One reading, in this process."""
    for name in IMPORTS[way.split()[0]]:
        importlib.import_module(name)
    before = peak()
    start, worked = time.perf_counter(), time.process_time()
    rows = read(way, path, domain)
    found = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - worked,
        "peak_mib": peak(),
        "before_mib": before,
    }
    assert (rows.n_samples if isinstance(rows, jaxcd.Dataset) else len(rows)) == n
    return found


def measure(table: str, file: str, n: int, rounds: int) -> list[dict[str, Any]]:
    """All ways of reading a file, each time in a process of its own, whose memory is its own."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet" if file == "parquet" else "table.csv")
        write(path, table, file, n)
        for _, way in itertools.product(range(rounds), WAYS):
            runs[way].append(alone("benchmarks.reading", way, path, table, file, n))
        size = path.stat().st_size / 2**20
    rows = [
        {
            "way": way,
            "file_mib": size,
            "seconds": min(run["seconds"] for run in found),
            "cpu_seconds": min(run["cpu_seconds"] for run in found),
            "peak_mib": max(run["peak_mib"] for run in found),
            "before_mib": max(run["before_mib"] for run in found),
            "n_rounds": rounds,
        }
        for way, found in runs.items()
    ]
    plain, enum = rows[:2]
    for row in rows:
        for kind in ("seconds", "cpu_seconds"):
            row[f"{kind}_to_polars"] = row[kind] / plain[kind]
            row[f"{kind}_to_best"] = row[kind] / min(plain[kind], enum[kind])
    return rows


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every file of every table."""
    for n, table, file in itertools.product(chosen.rows, chosen.tables, chosen.files):
        yield (table, file, n), measure, table, file, n, chosen.rounds


EXPERIMENT = ex.Experiment(
    "reading",
    __doc__,
    ("table", "file", "n_rows", "way"),
    jobs,
    columns=ex.columns_of(
        "file; rows=n_rows:,; way; seconds:.2f; to polars=seconds_to_polars:.1f; "
        "to best=seconds_to_best:.1f; processor=cpu_seconds:.2f; "
        "to polars=cpu_seconds_to_polars:.1f; to best=cpu_seconds_to_best:.1f; "
        "MiB=peak_mib:.0f; before=before_mib:.0f"
    ),
    title=lambda row: row.table,
    options=(
        ex.counts("--rows", "rows", [3_000_000], [100_000]),
        ex.names("--tables", "kinds of columns", choices=TABLES, full=TABLES),
        ex.names("--files", "kinds of files", choices=FILES, full=FILES),
        ex.one_count("--rounds", "readings of each", 3, 1),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        way, path, table, file, n = sys.argv[2:]
        print(json.dumps(one(way, Path(path), domain_of(table, file), int(n))))
    else:
        main()
