"""The whole of PC with RCIT, without privacy: time, and the work that it is made of.

``python -m benchmarks.rcit_pc [--quick] [--data FOLDER] [--networks NAME ...] [--rows N] [--runs R]
[--max-level L] [--out FILE]``

Data: nonlinear models (``jaxcd.data.structural.nonlinear_sem``) on the structure of Alarm (37
variables), n = 8,000; RCIT with 100 permutations, alpha = 0.05, no limit on conditioning sets.
Printed: numbers of tests, of residuals (a target given a set, shared by its tests) and of
factorisations (a set, shared by its targets), programs compiled, seconds with compilation and
processor seconds (summed over threads: what the run needs where other programs share the machine),
and F1 of arcs and skeleton against the true CPDAG.  Run r has model r and data set r; later runs
compile what the first did not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import jax
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd import metrics
from jaxcd.data import structural

ALPHA = 0.05
PERMUTATIONS = 100


@dataclass(frozen=True)
class Row:
    """One run.  levels: (level, pairs asked, pairs separated, seconds since the start)."""

    structure: str
    n_variables: int
    n_samples: int
    run: int
    n_tests: int
    n_residuals: int | None
    n_factorisations: int | None
    n_compiled: int
    seconds: float
    processor_seconds: float
    levels: tuple[tuple[int, int, int, float], ...]
    arc_f1: float
    skeleton_f1: float


def row_of(
    name: str,
    network: jaxcd.data.BayesianNetwork,
    *,
    n: int,
    run: int,
    max_level: int | None,
    compiled: common.Compilations,
) -> Row:
    """One model, one data set, one search."""
    model_key, sample_key, test_key = jax.random.split(jax.random.key(40_000 + run), 3)
    model = structural.nonlinear_sem(network.dag, key=model_key)
    data = model.sample(n, key=sample_key)
    levels: list[tuple[int, int, int, float]] = []
    before, start, processor_start = compiled.n, time.perf_counter(), time.process_time()

    def progress(record: jaxcd.discovery.LevelRecord) -> None:
        levels.append(
            (record.level, record.n_asked, record.n_separated, time.perf_counter() - start)
        )
        print(
            f"  level {record.level}: {record.n_asked} pairs asked, {record.n_separated} "
            f"separated, {levels[-1][-1]:.1f} s",
            flush=True,
        )

    result = jaxcd.pc(
        data,
        test=jaxcd.RCIT(n_permutations=PERMUTATIONS),
        decider=jaxcd.Threshold(alpha=ALPHA),
        budget=jaxcd.NO_PRIVACY,
        key=test_key,
        max_level=max_level,
        progress=progress,
    )
    seconds, processor_seconds = time.perf_counter() - start, time.process_time() - processor_start
    truth = model.cpdag()
    return Row(
        name,
        len(network.names),
        n,
        run,
        result.info["n_tests"],
        result.info.get("n_residuals"),
        result.info.get("n_factorisations"),
        compiled.n - before,
        seconds,
        processor_seconds,
        tuple(levels),
        float(metrics.arc_f1(result.graph, truth)),
        float(metrics.skeleton_f1(result.graph, truth)),
    )


def table_of(rows: Sequence[Row]) -> Table:
    """All runs for the screen."""
    table = Table(title=f"PC with RCIT, {PERMUTATIONS} permutations, alpha = {ALPHA}, no privacy")
    heads = (
        "structure",
        "d",
        "n",
        "run",
        "tests",
        "residuals",
        "factors",
        "programs",
        "seconds",
        "processor s",
        "arc F1",
        "skeleton F1",
    )
    for i, column in enumerate(heads):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        counts = [
            "-" if count is None else f"{count:,}"
            for count in (row.n_tests, row.n_residuals, row.n_factorisations)
        ]
        table.add_row(
            row.structure,
            str(row.n_variables),
            f"{row.n_samples:,}",
            str(row.run),
            *counts,
            str(row.n_compiled),
            f"{row.seconds:.1f}",
            f"{row.processor_seconds:.1f}",
            f"{row.arc_f1:.2f}",
            f"{row.skeleton_f1:.2f}",
        )
    return table


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.parser("The whole of PC with RCIT.", out=common.RESULTS / "rcit_pc.json")
    common.add_max_level(options)
    full = {"networks": ["alarm"], "rows": 8_000, "runs": 1, "max_level": None}
    return common.parse(
        options,
        arguments,
        full=full,
        quick={"networks": ["cancer"], "rows": 300, "runs": 1, "max_level": None},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints the table and writes JSON after every run."""
    chosen = _options(arguments)
    environment = common.environment()
    compiled = common.Compilations()
    settings = {"alpha": ALPHA, "n_permutations": PERMUTATIONS, "max_level": chosen.max_level}
    rows: list[Row] = []
    for name, network in common.load_networks(chosen.networks, chosen.data).items():
        for run in range(chosen.runs):
            print(f"{name}, {len(network.names)} variables, {chosen.rows:,} rows, run {run}")
            new = row_of(
                name, network, n=chosen.rows, run=run, max_level=chosen.max_level, compiled=compiled
            )
            rows.append(new)
            results = [asdict(row) for row in rows]
            common.write_json(
                chosen.out, {"environment": environment, "settings": settings, "results": results}
            )
    Console(width=140).print(table_of(rows))


if __name__ == "__main__":
    main()
