"""How long runs take: Priv-PC's tables, ours beside the authors' code; PC without privacy; the
counting core's limits.

``python -m benchmarks.run_time [--quick] [--data FOLDER] [--runs R] [--out FILE]``

Each routine runs once to compile and then R times; compile time is the first run minus the second.
All timed calls return host values, so nothing is pending when the clock stops.  Minimum and median
are given: on a shared machine the minimum is what the program needs, the median what it got.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from benchmarks.counting_test import CountedTest
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
FACTOR = {
    "cancer": 10,
    "earthquake": 10,
    "survey": 10,
    "asia": 10,
    "sachs": 20,
    "child": 20,
    "alarm": 20,
}
NON_PRIVATE_SECONDS = 5.0
NON_PRIVATE = ("sachs", "child", "alarm")


@dataclass(frozen=True)
class PublishedTime:
    """A published method on a network.  ratio: authors' seconds over our median, ratio_of_minimum:
    over our minimum; None for SVT-PC, which has no reference, and where the number of rows is not
    that of the reference."""

    network: str
    method: str
    n_tests: float
    n_rounds: float
    timing: dict[str, Any]
    compilations: int
    authors_seconds: float | None
    ratio: float | None
    ratio_of_minimum: float | None
    factor_asked: int | None


@dataclass(frozen=True)
class NonPrivateTime:
    """PC with chi-square on a network.  cells: table cells counted in a run; cells_per_second: over
    the median.
    """

    network: str
    n_tests: int
    timing: dict[str, Any]
    compilations: int
    cells: int
    cells_per_second: float
    limit_seconds: float


@dataclass(frozen=True)
class CoreSpeed:
    """Counting by masks with ``depth`` masks a cell.  fraction_of_peak: bytes of masks read a
    second, over those that a plain AND of two arrays as large as the masks reads (both stay in the
    processor's cache; it writes its result, which a chain of ANDs does not, so the fraction can
    exceed one)."""

    depth: int
    cells_per_second: float
    bytes_per_second: float
    fraction_of_peak: float


def published_times(
    name: str, data: jaxcd.Dataset, n_runs: int, compilations: common.Compilations
) -> list[PublishedTime]:
    """Both published methods at epsilon 1 a round; run r has noise r."""
    rows = []
    for label, function in (("Priv-PC", published.priv_pc), ("SVT-PC", published.svt_pc)):
        before = compilations.n

        def run(
            r: int, function: Callable[..., jaxcd.DiscoveryResult] = function
        ) -> jaxcd.DiscoveryResult:
            # The first run has the noise of the second, so that it compiles what that one needs.
            return function(data, epsilon=1.0, key=jax.random.key(max(r, 1)))

        timing, results = common.timed(run, n_runs)
        comparable = label == "Priv-PC" and data.n_samples == 100_000
        authors = AUTHORS_SECONDS[name] if comparable else None
        rows.append(
            PublishedTime(
                network=name,
                method=label,
                n_tests=float(np.mean([result.info["n_tests"] for result in results])),
                n_rounds=float(np.mean([result.info["n_rounds"] for result in results])),
                timing=timing.to_dict(),
                compilations=compilations.n - before,
                authors_seconds=authors,
                ratio=None if authors is None else authors / timing.median,
                ratio_of_minimum=None if authors is None else authors / timing.minimum,
                factor_asked=FACTOR[name] if comparable else None,
            )
        )
    return rows


def non_private_time(
    name: str, data: jaxcd.Dataset, n_runs: int, compilations: common.Compilations
) -> NonPrivateTime:
    """Whole runs of PC with chi-square at level 0.05 in the stable order."""

    def run(_: int, test: jaxcd.citests.CITest | None = None) -> jaxcd.DiscoveryResult:
        return jaxcd.pc(
            data,
            test=test or jaxcd.ChiSquare(),
            decider=jaxcd.Threshold(),
            budget=jaxcd.NO_PRIVACY,
            key=None,
        )

    before = compilations.n
    timing, results = common.timed(run, n_runs)
    n_compilations = compilations.n - before
    counted = CountedTest(jaxcd.ChiSquare())
    run(0, counted)
    return NonPrivateTime(
        network=name,
        n_tests=results[0].info["n_tests"],
        timing=timing.to_dict(),
        compilations=n_compilations,
        cells=counted.n_cells,
        cells_per_second=counted.n_cells / timing.median,
        limit_seconds=NON_PRIVATE_SECONDS,
    )


def _best_seconds(function: Callable[[], Any], n_runs: int = 7) -> float:
    function()
    seconds = []
    for _ in range(n_runs):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _limits(masks: jax.Array) -> dict[str, float]:
    """Bytes a second, one thread: AND of two arrays as large as the masks, population count of one,
    a large copy.
    """
    first = np.asarray(masks).ravel()
    second, out, ones = (
        first[::-1].copy(),
        np.empty_like(first),
        np.empty(first.size, dtype=np.uint8),
    )
    large = np.zeros(1 << 25)
    copied = np.empty_like(large)
    return {
        "and_bytes_per_second": 2
        * first.nbytes
        / _best_seconds(lambda: np.bitwise_and(first, second, out=out), 200),
        "popcount_bytes_per_second": first.nbytes
        / _best_seconds(lambda: np.bitwise_count(first, out=ones), 200),
        "copy_bytes_per_second": 2
        * large.nbytes
        / _best_seconds(lambda: np.copyto(copied, large), 5),
    }


def core_speed(
    data: jaxcd.Dataset, n_cells: int = 65_536
) -> tuple[list[CoreSpeed], dict[str, float]]:
    """Cells a second of the counting core on random cells, and the machine's limits that it is
    compared with.
    """
    cards = [c for c in data.domain.cardinalities if c is not None]
    masks = contingency.pack_levels(data.codes, cards)
    limits = _limits(masks.words)
    peak = limits["and_bytes_per_second"]
    rng = np.random.default_rng(0)
    rows = []
    for depth in (2, 3, 4):
        index = rng.integers(0, masks.words.shape[0], (n_cells, depth)).astype(np.int32)
        seconds = _best_seconds(partial(contingency.cell_counts, masks.words, index), 3)
        n_bytes = n_cells * depth * masks.words.shape[1] * 4
        rows.append(
            CoreSpeed(depth, n_cells / seconds, n_bytes / seconds, n_bytes / seconds / peak)
        )
    return rows, limits


def _table(title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    return table


def _published_table(rows: Sequence[PublishedTime]) -> Table:
    columns = (
        "network",
        "method",
        "tests",
        "rounds",
        "min s",
        "median s",
        "cpu s",
        "compile s",
        "compiled",
        "authors s",
        "times",
        "asked",
    )
    lines = []
    for r in rows:
        t = r.timing
        times = "" if r.ratio is None else f"{r.ratio:.0f} ({r.ratio_of_minimum:.0f})"
        lines.append(
            (
                r.network,
                r.method,
                f"{r.n_tests:.0f}",
                f"{r.n_rounds:.0f}",
                f"{t['minimum']:.3f}",
                f"{t['median']:.3f}",
                f"{min(t['processor_runs']):.3f}",
                f"{t['compilation']:.1f}",
                str(r.compilations),
                "" if r.authors_seconds is None else f"{r.authors_seconds:g}",
                times,
                "" if r.factor_asked is None else str(r.factor_asked),
            )
        )
    return _table(
        "Published methods, epsilon 1 a round; times faster by the median (by the minimum)",
        columns,
        lines,
    )


def _non_private_table(rows: Sequence[NonPrivateTime]) -> Table:
    columns = (
        "network",
        "tests",
        "min s",
        "median s",
        "limit s",
        "compile s",
        "compiled",
        "cells",
        "cells a second",
    )
    lines = [
        (
            r.network,
            str(r.n_tests),
            f"{r.timing['minimum']:.2f}",
            f"{r.timing['median']:.2f}",
            f"{r.limit_seconds:g}",
            f"{r.timing['compilation']:.1f}",
            str(r.compilations),
            f"{r.cells:,}",
            f"{r.cells_per_second:,.0f}",
        )
        for r in rows
    ]
    return _table("PC without privacy, ChiSquare", columns, lines)


def _core_table(rows: Sequence[CoreSpeed], limits: dict[str, float]) -> Table:
    limits_said = ", ".join(
        f"{name.split('_')[0]} {value / 1e9:.0f} GB/s" for name, value in limits.items()
    )
    lines = [
        (
            str(r.depth),
            f"{r.cells_per_second:,.0f}",
            f"{r.bytes_per_second / 1e9:.1f}",
            f"{r.fraction_of_peak:.0%}",
        )
        for r in rows
    ]
    return _table(
        f"Counting by masks; one thread: {limits_said}",
        ("masks a cell", "cells a second", "GB/s read", "of the AND's peak"),
        lines,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.parser(
        "Run times, beside the authors' code.", out=common.RESULTS / "run_time.json"
    )
    chosen = options.parse_args(arguments)
    chosen.networks = chosen.networks or (["cancer", "asia"] if chosen.quick else None)
    chosen.rows = chosen.rows or (10_000 if chosen.quick else 100_000)
    chosen.runs = chosen.runs or (3 if chosen.quick else 7)
    if chosen.quick and chosen.out == common.RESULTS / "run_time.json":
        chosen.out = common.RESULTS / "run_time_quick.json"
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints its tables and writes the JSON file."""
    chosen = _options(arguments)
    console = Console(width=130)
    environment = common.environment()
    compilations = common.Compilations()
    loaded = common.load_networks(chosen.networks, chosen.data)
    data = {
        name: network.sample(chosen.rows, key=jax.random.key(0)) for name, network in loaded.items()
    }
    published_rows = [
        row for name in data for row in published_times(name, data[name], chosen.runs, compilations)
    ]
    console.print(_published_table(published_rows))
    wanted = [name for name in data if name in NON_PRIVATE] or list(data)
    non_private = [non_private_time(name, data[name], chosen.runs, compilations) for name in wanted]
    console.print(_non_private_table(non_private))
    core, limits = core_speed(data[list(data)[-1]], 4_096 if chosen.quick else 65_536)
    console.print(_core_table(core, limits))
    content = {
        "environment": environment,
        "settings": {"rows": chosen.rows, "runs": chosen.runs, "epsilon_per_round": 1.0},
        "published": [asdict(row) for row in published_rows],
        "non_private_chi_square": [asdict(row) for row in non_private],
        "counting_core": {"limits": limits, "depths": [asdict(row) for row in core]},
        "load_average_at_end": common.environment()["load_average"],
    }
    common.write_json(chosen.out, content)


if __name__ == "__main__":
    main()
