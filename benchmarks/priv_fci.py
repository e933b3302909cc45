"""Private FCI on four networks, whole and with variables hidden: how much of the true PAG is found,
at what total price.

``python -m benchmarks.priv_fci [--quick] [--networks N ...] [--runs R] [--epsilon E ...] [--out
FILE]``

Rows: FCI without privacy, the reference lines, and FCI with the deciders of the library at totals
fixed in advance.  Run r of every row uses data set r of its case and noise r.  Columns: F1 of the
skeleton, of edges with both marks and of directed edges against the true PAG; seconds a run, after
compilation; the largest part of the total that a run used; and the share of runs that exhausted it.
Below: the smallest total from which on a method stays within 0.02 of the reference, run times
beside those published for Priv-FCI, and where FCI without privacy differs from the truth on Asia
without ``smoke``, and why. Beside the JSON file: a figure, and a picture of an estimated beside the
true PAG for every case.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from benchmarks.fci_cases import CASES, Case
from benchmarks.fci_faults import hidden_smoke, print_hidden_smoke
from jaxcd import metrics
from jaxcd.plotting import comparison_png

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
QUICK_EPSILONS = (1.0, 8.0)
CLOSE = 0.02
PICTURED = 1.0  # epsilon of the pictures, or the next one that was run


PUBLISHED_SECONDS = {"earthquake": 1.46, "cancer": 1.43, "asia": 4.59, "survey": 1.02}
"""Seconds a run of Priv-FCI, Varici 2022."""

Run = Callable[[jaxcd.Dataset, float | None, jax.Array], jaxcd.DiscoveryResult]


@dataclass(frozen=True)
class Method:
    """One line of the table."""

    label: str
    run: Run


def _without_privacy(test: jaxcd.citests.CITest, alpha: float) -> Method:
    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        return jaxcd.fci(
            data, test=test, decider=jaxcd.Threshold(alpha=alpha), budget=jaxcd.NO_PRIVACY, key=None
        )

    return Method(f"FCI, {test.name} {alpha:g}", run)


def _private(name: str, decider: Callable[[int], jaxcd.decisions.Decider]) -> Method:
    """``decider``: from the number of columns, which is public."""

    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        assert epsilon is not None
        return jaxcd.fci(
            data,
            test=jaxcd.CovarianceNorm(),
            decider=decider(data.n_columns),
            budget=jaxcd.Budget(epsilon=epsilon, delta=DELTA),
            key=None,
            noise=jaxcd.SimulatedNoise(key),
        )

    return Method(name, run)


def _pairs(n_columns: int) -> int:
    return n_columns * (n_columns - 1) // 2


def _rounds(n_columns: int) -> int:
    """The pairs that a tree does not join: a connected graph has no more pairs to separate, and the
    default falls one short of it.
    """
    return _pairs(n_columns) - (n_columns - 1)


NON_PRIVATE = (
    _without_privacy(jaxcd.ChiSquare(), 0.05),
    _without_privacy(jaxcd.ChiSquare(), 0.01),
    _without_privacy(jaxcd.CovarianceNorm(), 0.05),
)
REFERENCE = NON_PRIVATE[0].label
PRIVATE = (
    _private("LevelwiseGaussian", lambda p: jaxcd.LevelwiseGaussian(collider_sigmas=0.0)),
    _private("ExponentialSelect", lambda p: jaxcd.ExponentialSelect()),
    _private(
        "NoisyThreshold, Gaussian",
        lambda p: jaxcd.NoisyThreshold(noise=jaxcd.decisions.Noise.GAUSSIAN),
    ),
    _private("SparseVector", lambda p: jaxcd.SparseVector(n_rounds=_rounds(p))),
    # Passes of the sieve that are not confirmed use up rounds too.
    _private("SieveAndExamine", lambda p: jaxcd.SieveAndExamine(n_rounds=_pairs(p))),
)
SCORES = {
    "skeleton_f1": metrics.skeleton_f1,
    "mark_f1": metrics.mark_f1,
    "orientation_f1": metrics.orientation_f1,
}


@dataclass(frozen=True)
class Row:
    """Means over the runs, standard deviations where so named.  largest_spent: of all runs.
    seconds, processor_seconds: medians; the second, summed over threads, is what a run needs where
    other programs share the machine."""

    case: str
    network: str
    hidden: tuple[str, ...]
    method: str
    epsilon: float | None
    largest_spent: float | None
    delta: float | None
    skeleton_f1: float
    skeleton_f1_sd: float
    mark_f1: float
    mark_f1_sd: float
    orientation_f1: float
    seconds: float
    longest_seconds: float
    processor_seconds: float
    exhausted: float
    n_runs: int


def _timed(
    method: Method, data: jaxcd.Dataset, epsilon: float | None, key: jax.Array
) -> tuple[jaxcd.DiscoveryResult, tuple[float, float]]:
    """A result, and its seconds: by the clock, and of the processor."""
    start, processor_start = time.perf_counter(), time.process_time()
    result = method.run(data, epsilon, key)
    return result, (time.perf_counter() - start, time.process_time() - processor_start)


class _Bench:
    """One case: its data sets, its rows, and for every row its first graph."""

    def __init__(
        self, case: Case, n_samples: int, n_runs: int, compilations: common.Compilations
    ) -> None:
        self.case = case
        self.compilations = compilations
        self.truth = case.truth()
        self.data = [
            case.sample(n_samples, key) for key in jax.random.split(jax.random.key(20221), n_runs)
        ]
        self.noise = list(jax.random.split(jax.random.key(7411), n_runs))
        self.first: dict[tuple[str, float | None], jaxcd.MixedGraph] = {}

    def row(self, method: Method, epsilon: float | None) -> Row:
        """All runs of a method at one price.  A run that compiles is run again for its time: with
        the same noise it goes the same way.
        """
        results, times = [], []
        for data, key in zip(self.data, self.noise, strict=True):
            before = self.compilations.n
            result, elapsed = _timed(method, data, epsilon, key)
            if self.compilations.n > before:
                result, elapsed = _timed(method, data, epsilon, key)
            results.append(result)
            times.append(elapsed)
        seconds, processor_seconds = zip(*times, strict=True)
        spent = max(result.spent.epsilon for result in results)
        if (
            epsilon is not None
            and not max(spent, *(result.cost.epsilon for result in results)) <= epsilon
        ):
            raise AssertionError(
                f"{method.label} on {self.case.label}: more than the total {epsilon:g} was spent"
            )
        graphs = [result.graph for result in results]
        self.first[method.label, epsilon] = graphs[0]
        scores = {
            name: [float(score(graph, self.truth)) for graph in graphs]
            for name, score in SCORES.items()
        }
        return Row(
            case=self.case.label,
            network=self.case.network,
            hidden=self.case.hidden,
            method=method.label,
            epsilon=epsilon,
            largest_spent=None if epsilon is None else spent,
            delta=None if epsilon is None else results[0].cost.delta,
            **{name: statistics.mean(values) for name, values in scores.items()},
            **{
                f"{name}_sd": statistics.pstdev(scores[name]) for name in ("skeleton_f1", "mark_f1")
            },
            seconds=statistics.median(seconds),
            longest_seconds=max(seconds),
            processor_seconds=statistics.median(processor_seconds),
            exhausted=statistics.mean(result.exhausted for result in results),
            n_runs=len(results),
        )

    def rows(self, epsilons: Sequence[float]) -> Iterator[Row]:
        """Every row, in the table's order."""
        for method in NON_PRIVATE:
            yield self.row(method, None)
        for method in PRIVATE:
            for epsilon in epsilons:
                yield self.row(method, epsilon)


def table_of(case: Case, rows: Sequence[Row]) -> Table:
    """A case's rows for the screen."""
    table = Table(title=f"{case.label}: means of {rows[0].n_runs} runs", caption=case.reason)
    for column in (
        "method",
        "epsilon",
        "spent",
        "skeleton",
        "+-",
        "marks",
        "+-",
        "directed",
        "seconds",
        "longest",
        "cpu",
        "exhausted",
    ):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for row in rows:
        private = row.epsilon is not None
        table.add_row(
            row.method,
            f"{row.epsilon:g}" if private else "",
            f"{row.largest_spent:.3g}" if private else "",
            f"{row.skeleton_f1:.2f}",
            f"{row.skeleton_f1_sd:.2f}",
            f"{row.mark_f1:.2f}",
            f"{row.mark_f1_sd:.2f}",
            f"{row.orientation_f1:.2f}",
            f"{row.seconds:.3f}",
            f"{row.longest_seconds:.2f}",
            f"{row.processor_seconds:.2f}",
            f"{row.exhausted:.0%}" if private else "",
        )
    return table


def reached(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each case and private method the smallest total from which on it is within 0.02 of the
    reference, by score; else None.
    """
    found = []
    for case in dict.fromkeys(row.case for row in rows):
        here = [row for row in rows if row.case == case]
        reference = next(row for row in here if row.method == REFERENCE)
        for method in PRIVATE:
            line = sorted(
                (row for row in here if row.method == method.label),
                key=lambda row: row.epsilon or 0.0,
            )
            entry: dict[str, Any] = {"case": case, "method": method.label}
            entry["reference"] = {score: getattr(reference, score) for score in SCORES}
            for score in SCORES:
                close = [getattr(row, score) >= getattr(reference, score) - CLOSE for row in line]
                first = next((i for i in range(len(close)) if all(close[i:])), None)
                entry[score] = None if first is None else line[first].epsilon
            found.append(entry)
    return found


def reached_table(entries: Sequence[dict[str, Any]]) -> Table:
    """``reached`` for the screen: skeleton, marks, directed."""
    table = Table(
        title=f"total epsilon from which on F1 is within {CLOSE} of {REFERENCE}: skeleton / marks "
        "/ directed"
    )
    table.add_column("case")
    table.add_column("F1 of the reference", justify="right")
    for method in PRIVATE:
        table.add_column(method.label, justify="right")
    for case in dict.fromkeys(entry["case"] for entry in entries):
        here = [entry for entry in entries if entry["case"] == case]
        cells = [
            " / ".join("-" if entry[score] is None else f"{entry[score]:g}" for score in SCORES)
            for entry in here
        ]
        table.add_row(
            case, " / ".join(f"{value:.2f}" for value in here[0]["reference"].values()), *cells
        )
    return table


def run_times(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each whole network and method the largest median over the totals, beside the published
    time.
    """
    whole = [row for row in rows if not row.hidden]
    times = []
    for network, published in PUBLISHED_SECONDS.items():
        here = [row for row in whole if row.network == network]
        if here:
            seconds = {
                m.label: max(row.seconds for row in here if row.method == m.label)
                for m in (*NON_PRIVATE, *PRIVATE)
            }
            times.append({"network": network, "published": published, "seconds": seconds})
    return times


def run_time_table(times: Sequence[dict[str, Any]]) -> Table:
    """``run_times`` for the screen."""
    table = Table(
        title="seconds a run after compilation (published: Priv-FCI, Varici 2022, another machine)"
    )
    table.add_column("method")
    for entry in times:
        table.add_column(entry["network"], justify="right")
    table.add_row("published", *(f"{entry['published']:g}" for entry in times), end_section=True)
    for method in times[0]["seconds"]:
        table.add_row(method, *(f"{entry['seconds'][method]:.3f}" for entry in times))
    return table


def plot(rows: Sequence[Row], path: Path) -> None:
    """F1 against the total epsilon: a line of panels a case, one for each score."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(row.case for row in rows))
    figure = Figure(figsize=(2.6 * len(cases) + 0.6, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(SCORES), len(cases), squeeze=False, sharex=True, sharey=True)
    titles = {
        "skeleton_f1": "skeleton",
        "mark_f1": "edges with both marks",
        "orientation_f1": "directed edges",
    }
    for column, case in enumerate(cases):
        here = [row for row in rows if row.case == case]
        for line, score in enumerate(SCORES):
            ax = axes[line, column]
            for i, method in enumerate(PRIVATE):
                points = [
                    (row.epsilon, getattr(row, score)) for row in here if row.method == method.label
                ]
                ax.plot(
                    *np.array(points, dtype=float).T,
                    color=f"C{i}",
                    marker="o",
                    markersize=3,
                    label=method.label,
                )
            for method, style in zip(NON_PRIVATE, ("-", "--", ":"), strict=True):
                value = next(getattr(row, score) for row in here if row.method == method.label)
                ax.axhline(value, color="0.4", linewidth=1, linestyle=style, label=method.label)
            ax.set(xscale="log", ylim=(-0.03, 1.03))
            if column == 0:
                ax.set_ylabel(f"F1, {titles[score]}")
        axes[0, column].set_title(case.replace(" without ", "\nwithout "), fontsize=10)
        axes[-1, column].set_xlabel("total epsilon")
        epsilons = sorted({row.epsilon for row in here if row.epsilon is not None})
        axes[-1, column].set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes[-1, column].minorticks_off()
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9
    )
    common.save_picture(figure, path)


def picture(bench: _Bench, folder: Path, epsilons: Sequence[float]) -> None:
    """The first run's graph of the first private method beside the true PAG."""
    epsilon = next((epsilon for epsilon in epsilons if epsilon >= PICTURED), epsilons[-1])
    folder.mkdir(parents=True, exist_ok=True)
    method = PRIVATE[0].label
    path = folder / f"{'_'.join((bench.case.network, *bench.case.hidden))}.png"
    titles = (f"{method}, epsilon = {epsilon:g}", "the true PAG")
    path.write_bytes(
        comparison_png(bench.first[method, epsilon], bench.truth, titles=titles, dpi=110)
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(
        "Private FCI on four networks.", out=common.RESULTS / "priv_fci.json"
    )
    networks = list(PUBLISHED_SECONDS)
    options.add_argument(
        "--networks", nargs="+", choices=networks, help="default: all four; asia with --quick"
    )
    options.add_argument("--rows", type=common.count, help="records")
    options.add_argument("--runs", type=common.count, help="runs of each row")
    options.add_argument("--epsilon", type=common.positive, nargs="+", help="totals")
    return common.parse(
        options,
        arguments,
        full={"networks": networks, "rows": 100_000, "runs": 20, "epsilon": list(EPSILONS)},
        quick={"networks": ["asia"], "rows": 20_000, "runs": 2, "epsilon": list(QUICK_EPSILONS)},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints a table a case as it goes, and writes JSON and pictures."""
    chosen = _options(arguments)
    console = Console(width=150)
    rows: list[Row] = []
    environment = common.environment()
    content: dict[str, Any] = {}
    compilations = common.Compilations()
    for case in CASES:
        if case.network not in chosen.networks:
            continue
        bench = _Bench(case, chosen.rows, chosen.runs, compilations)
        new = list(bench.rows(chosen.epsilon))
        console.print(table_of(case, new))
        rows += new
        content = {
            "environment": environment,
            "settings": {
                "rows": chosen.rows,
                "runs": chosen.runs,
                "delta": DELTA,
                "reference": REFERENCE,
                "close": CLOSE,
            },
            "results": [asdict(row) for row in rows],
            "reached": reached(rows),
            "run_times": run_times(rows),
        }
        # after each case: a long run that is cut short leaves what it has
        common.write_json(chosen.out, content)
        picture(bench, chosen.out.with_suffix(""), chosen.epsilon)
    console.print(reached_table(content["reached"]))
    console.print(run_time_table(content["run_times"]))
    plot(rows, chosen.out.with_suffix(".png"))
    if "asia" in chosen.networks:
        content["hidden_smoke"] = hidden_smoke(chosen.rows, seed=20221)
        print_hidden_smoke(content["hidden_smoke"], console)
        common.write_json(chosen.out, content)


if __name__ == "__main__":
    main()
