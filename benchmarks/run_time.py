"""How long runs take: Priv-PC's tables, ours beside the authors' code; PC without privacy; the
counting core's limits.

``python -m benchmarks.run_time [--quick] [--data FOLDER] [--runs R] [--out FILE]``

Each routine runs once to compile and then R times; compile time is the first run minus the second.
All timed calls return host values, so nothing is pending when the clock stops.  Minimum and median
are given: on a shared machine the minimum is what the program needs, the median what it got.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.counting_test import CountedTest
from benchmarks.sources import BUILT_IN, FROM_FILE, load_networks
from jaxcd import published
from jaxcd.ops import contingency

# Reference measurements of the authors' code
# (github.com/sunblaze-ucb/Priv-PC-Differentially-Private-Causal-Graph-Discovery): seconds a run on
# two cores, at n = 100,000 and epsilon = 1 a round.
AUTHORS_SECONDS = {
    "cancer": 1.0,
    "earthquake": 0.9,
    "survey": 0.5,
    "asia": 1.6,
    "sachs": 11.0,
    "child": 63.0,
    "alarm": 70.0,
}
# What is asked for: 10 times faster on the four small networks, 20 times on the others; 5 seconds
# without privacy.
FACTOR = {name: 10 if name in BUILT_IN else 20 for name in AUTHORS_SECONDS}
NON_PRIVATE_SECONDS = 5.0
NON_PRIVATE = ("sachs", "child", "alarm")


def non_private_time(
    data: jaxcd.Dataset, n_runs: int, compilations: ex.Compilations
) -> dict[str, Any]:
    """Whole runs of PC with chi-square at level 0.05 in the stable order.  cells: table cells
    counted in a run; cells_per_second: over the median.
    """

    def run(_: int, test: jaxcd.citests.CITest | None = None) -> jaxcd.DiscoveryResult:
        return jaxcd.pc(
            data,
            test=test or jaxcd.ChiSquare(),
            decider=jaxcd.Threshold(),
            budget=jaxcd.NO_PRIVACY,
            key=None,
        )

    before = compilations.n
    timing, results = ex.timed(run, n_runs)
    n_compilations = compilations.n - before
    counted = CountedTest(jaxcd.ChiSquare())
    run(0, counted)
    return {
        "n_tests": results[0].info["n_tests"],
        "timing": timing.to_dict(),
        "compilations": n_compilations,
        "cells": counted.n_cells,
        "cells_per_second": counted.n_cells / timing.median,
        "limit_seconds": NON_PRIVATE_SECONDS,
    }


def _limits(masks: jax.Array) -> dict[str, float]:
    """Bytes a second, one thread: AND of two arrays as large as the masks, population count of one,
    a large copy.
    """
    first = np.asarray(masks).ravel()
    second, out = first[::-1].copy(), np.empty_like(first)
    ones = np.empty(first.size, dtype=np.uint8)
    large = np.zeros(1 << 25)
    copied = np.empty_like(large)
    seconds = {
        "and": ex.best(lambda: np.bitwise_and(first, second, out=out), n_runs=200),
        "popcount": ex.best(lambda: np.bitwise_count(first, out=ones), n_runs=200),
        "copy": ex.best(lambda: np.copyto(copied, large), n_runs=5),
    }
    n_bytes = {"and": 2 * first.nbytes, "popcount": first.nbytes, "copy": 2 * large.nbytes}
    return {f"{name}_bytes_per_second": n_bytes[name] / seconds[name] for name in seconds}


def core_speed(data: jaxcd.Dataset, n_cells: int) -> list[dict[str, Any]]:
    """Cells a second of the counting core on random cells, with ``depth`` masks a cell, and the
    machine's limits that it is compared with.

    fraction_of_peak: bytes of masks read a second, over those that a plain AND of two arrays as
    large as the masks reads (both stay in the processor's cache; it writes its result, which a
    chain of ANDs does not, so the fraction can exceed one).
    """
    cards = [c for c in data.domain.cardinalities if c is not None]
    masks = contingency.pack_levels(data.codes, cards)
    limits = _limits(masks.words)
    rng = np.random.default_rng(0)
    rows = []
    for depth in (2, 3, 4):
        index = rng.integers(0, masks.words.shape[0], (n_cells, depth)).astype(np.int32)
        seconds = ex.best(partial(contingency.cell_counts, masks.words, index))
        speed = n_cells * depth * masks.words.shape[1] * 4 / seconds
        rows.append(
            {
                "depth": depth,
                "cells_per_second": n_cells / seconds,
                "bytes_per_second": speed,
                "fraction_of_peak": speed / limits["and_bytes_per_second"],
                **limits,
            }
        )
    return rows


def published_time(
    name: str,
    function: Callable[..., jaxcd.DiscoveryResult],
    data: jaxcd.Dataset,
    n_runs: int,
    compilations: ex.Compilations,
) -> dict[str, Any]:
    """A published method at epsilon 1 a round; run r has noise r.  ratio: authors' seconds over our
    median, ratio_of_minimum: over our minimum; None for SVT-PC, which has no reference, and where
    the number of rows is not that of the reference.
    """
    before = compilations.n

    def run(r: int) -> jaxcd.DiscoveryResult:
        # The first run has the noise of the second, so that it compiles what that one needs.
        return function(data, epsilon=1.0, key=jax.random.key(max(r, 1)))

    timing, results = ex.timed(run, n_runs)
    comparable = function is published.priv_pc and data.n_samples == 100_000
    authors = AUTHORS_SECONDS[name] if comparable else None
    return {
        "n_tests": ex.mean(result.info["n_tests"] for result in results),
        "n_rounds": ex.mean(result.info["n_rounds"] for result in results),
        "timing": timing.to_dict(),
        "compilations": compilations.n - before,
        "authors_seconds": authors,
        "ratio": None if authors is None else authors / timing.median,
        "ratio_of_minimum": None if authors is None else authors / timing.minimum,
        "factor_asked": FACTOR[name] if comparable else None,
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Both published methods, PC without privacy, and the counting core."""
    compilations = ex.Compilations()
    loaded = load_networks(chosen.networks, chosen.data)
    data = {name: loaded[name].sample(chosen.rows, key=jax.random.key(0)) for name in loaded}
    for name, rows in data.items():
        for label, function in (("Priv-PC", published.priv_pc), ("SVT-PC", published.svt_pc)):
            yield (
                ("published", name, label, chosen.runs),
                published_time,
                name,
                function,
                rows,
                chosen.runs,
                compilations,
            )
    for name in [name for name in data if name in NON_PRIVATE] or list(data):
        yield (
            ("chi-square", name, "PC, ChiSquare", chosen.runs),
            non_private_time,
            data[name],
            chosen.runs,
            compilations,
        )
    last = list(data)[-1]
    n_cells = 4_096 if chosen.quick else 65_536
    yield ("counting core", last), core_speed, data[last], n_cells


def _times(row: ex.Row) -> str | None:
    return None if row.ratio is None else f"{row.ratio:.0f} ({row.ratio_of_minimum:.0f})"


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """A table for each part, and how busy the machine was."""
    for part, (title, columns) in TABLES.items():
        rows = [row for row in record.rows if row.part == part]
        console.print(ex.table_of(rows, columns, title))
    return {"load_average_at_end": ex.environment()["load_average"]}


_TIMES = ex.columns_of(
    "network; method; tests=n_tests:.0f",
    ex.Column("min s", lambda row: row.timing["minimum"], ".3f"),
    ex.Column("median s", lambda row: row.timing["median"], ".3f"),
    ex.Column("cpu s", lambda row: min(row.timing["processor_runs"]), ".3f"),
    ex.Column("compile s", lambda row: row.timing["compilation"], ".1f"),
    "compiled=compilations:d",
)
TABLES: dict[str, tuple[str, Sequence[ex.Column]]] = {
    "published": (
        "Published methods, epsilon 1 a round; times faster by the median (by the minimum)",
        (
            *_TIMES,
            ex.Column("rounds", "n_rounds", ".0f"),
            ex.Column("authors s", "authors_seconds", "g"),
            ex.Column("times", _times),
            ex.Column("asked", "factor_asked", "d"),
        ),
    ),
    "chi-square": (
        "PC without privacy, ChiSquare",
        (
            *_TIMES,
            ex.Column("limit s", "limit_seconds", "g"),
            ex.Column("cells", "cells", ","),
            ex.Column("cells a second", "cells_per_second", ",.0f"),
        ),
    ),
    "counting core": (
        "Counting by masks; bytes a second of one thread",
        (
            ex.Column("masks a cell", "depth", "d"),
            ex.Column("cells a second", "cells_per_second", ",.0f"),
            ex.Column("read", "bytes_per_second", ".2g"),
            ex.Column("of the AND's peak", "fraction_of_peak", ".0%"),
            *(
                ex.Column(name, f"{name}_bytes_per_second", ".2g")
                for name in ("and", "popcount", "copy")
            ),
        ),
    ),
}
EXPERIMENT = ex.Experiment(
    "run_time",
    __doc__,
    ("part", "network", "method", "n_runs", "depth"),
    jobs,
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "networks", (*BUILT_IN, *FROM_FILE), quick=["cancer", "asia"]),
        ex.one_count("--rows", "records", 100_000, 10_000),
        ex.one_count("--runs", "runs of each row", 7, 3),
    ),
    settings=ex.kept("rows", epsilon_per_round=1.0),
    finish=finish,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
