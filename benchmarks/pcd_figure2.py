"""Nonlinear causal discovery on known structures: PCD as published, and PC with RCIT without
privacy.

``python -m benchmarks.pcd_figure2 [--quick] [--data FOLDER] [--networks NAME ...] [--sizes N ...]
[--runs R] [--epsilon E ...] [--max-level L] [--out FILE]``

Data: nonlinear models (``jaxcd.data.structural.nonlinear_sem``) on the DAGs of Cancer, Asia, Child
and Alarm.  Run r of every row uses model r and data set r.  Precision, recall and F1 over arcs (an
undirected edge is two) and over the skeleton, against the true CPDAG.  PCD's epsilon is that of
each noisy answer; its total is what it adds up to afterwards, which proves nothing.

PCD removes few edges by its conditional tests (lambda = 1 rejects true nulls) unless noise does, so
its conditioning sets are limited to two columns, to one on more than eight variables; RCIT's to
three.  ``--max-level`` sets all.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd import metrics
from jaxcd.data import structural
from jaxcd.published.pcd import pcd

NETWORKS = ("cancer", "asia", "child", "alarm")
SIZES = (1000, 2000, 4000, 8000)
EPSILONS = (0.1, 1.0, 10.0)
RCIT_LEVEL = 3
NON_PRIVATE = "PC, RCIT, no privacy"
PUBLISHED = "PCD, published"

Run = Callable[[jaxcd.Dataset, jax.Array], jaxcd.DiscoveryResult]


@dataclass(frozen=True)
class Row:
    """Means over the runs, standard deviations where so named.  epsilon: of a noisy answer;
    total_epsilon: as published.
    """

    structure: str
    n_samples: int
    method: str
    epsilon: float | None
    total_epsilon: float | None
    proven: bool
    max_level: int
    arc_precision: float
    arc_recall: float
    arc_f1: float
    arc_f1_sd: float
    skeleton_precision: float
    skeleton_recall: float
    skeleton_f1: float
    n_tests: float | None
    n_noisy: float | None
    seconds: float
    n_runs: int


def non_private(max_level: int) -> Run:
    """PC with the calibrated RCIT."""

    def run(data: jaxcd.Dataset, key: jax.Array) -> jaxcd.DiscoveryResult:
        decider = jaxcd.Threshold(alpha=0.05)
        return jaxcd.pc(
            data,
            test=jaxcd.RCIT(),
            decider=decider,
            budget=jaxcd.NO_PRIVACY,
            key=key,
            max_level=max_level,
        )

    return run


def published(epsilon: float, max_level: int) -> Run:
    """PCD at a price for each noisy answer."""
    return lambda data, key: pcd(data, epsilon=epsilon, key=key, max_level=max_level)


def row_of(
    structure: str,
    method: str,
    run: Run,
    data: Sequence[jaxcd.Dataset],
    truths: Sequence[jaxcd.MixedGraph],
    *,
    epsilon: float | None,
    max_level: int,
) -> Row:
    """All runs of a method.  Compilation is in the first run's time, so the median is given."""
    results, seconds = [], []
    for r, sample in enumerate(data):
        start = time.perf_counter()
        results.append(run(sample, jax.random.key(30_000 + r)))
        seconds.append(time.perf_counter() - start)
    arcs = [
        metrics.arc_f1(result.graph, truth) for result, truth in zip(results, truths, strict=True)
    ]
    bones = [
        metrics.skeleton_f1(result.graph, truth)
        for result, truth in zip(results, truths, strict=True)
    ]

    def mean_info(name: str) -> float | None:
        found = [result.info[name] for result in results if name in result.info]
        return statistics.mean(found) if found else None

    return Row(
        structure=structure,
        n_samples=data[0].n_samples,
        method=method,
        epsilon=epsilon,
        total_epsilon=None
        if epsilon is None
        else statistics.mean(result.cost.epsilon for result in results),
        proven=False,
        max_level=max_level,
        arc_precision=statistics.mean(score.precision for score in arcs),
        arc_recall=statistics.mean(score.recall for score in arcs),
        arc_f1=statistics.mean(float(score) for score in arcs),
        arc_f1_sd=statistics.pstdev(float(score) for score in arcs),
        skeleton_precision=statistics.mean(score.precision for score in bones),
        skeleton_recall=statistics.mean(score.recall for score in bones),
        skeleton_f1=statistics.mean(float(score) for score in bones),
        n_tests=mean_info("n_tests"),
        n_noisy=mean_info("n_noisy"),
        seconds=statistics.median(seconds),
        n_runs=len(results),
    )


def rows_of(
    name: str,
    network: jaxcd.data.BayesianNetwork,
    n: int,
    n_runs: int,
    epsilons: Sequence[float],
    max_level: int | None,
) -> Iterator[Row]:
    """Every row of one structure and size."""
    models = [
        structural.nonlinear_sem(network.dag, key=jax.random.key(10_000 + r)) for r in range(n_runs)
    ]
    data = [model.sample(n, key=jax.random.key(20_000 + r)) for r, model in enumerate(models)]
    truths = [model.cpdag() for model in models]
    level = RCIT_LEVEL if max_level is None else max_level
    yield row_of(name, NON_PRIVATE, non_private(level), data, truths, epsilon=None, max_level=level)
    level = (2 if len(network.names) <= 8 else 1) if max_level is None else max_level
    for epsilon in epsilons:
        yield row_of(
            name,
            PUBLISHED,
            published(epsilon, level),
            data,
            truths,
            epsilon=epsilon,
            max_level=level,
        )


def table_of(title: str, rows: Sequence[Row]) -> Table:
    """Rows for the screen."""
    table = Table(title=f"{title}: means of {rows[0].n_runs} runs")
    heads = (
        "method",
        "n",
        "epsilon",
        "total",
        "arcs P",
        "R",
        "F1",
        "+-",
        "skeleton P",
        "R",
        "F1",
        "tests",
        "noisy",
        "seconds",
    )
    for i, column in enumerate(heads):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(
            row.method,
            str(row.n_samples),
            "" if row.epsilon is None else f"{row.epsilon:g}",
            "" if row.total_epsilon is None else f"{row.total_epsilon:.3g} ?",
            f"{row.arc_precision:.2f}",
            f"{row.arc_recall:.2f}",
            f"{row.arc_f1:.2f}",
            f"{row.arc_f1_sd:.2f}",
            f"{row.skeleton_precision:.2f}",
            f"{row.skeleton_recall:.2f}",
            f"{row.skeleton_f1:.2f}",
            "" if row.n_tests is None else f"{row.n_tests:.0f}",
            "" if row.n_noisy is None else f"{row.n_noisy:.0f}",
            f"{row.seconds:.2f}",
        )
    return table


def plot(rows: Sequence[Row], path: Any) -> None:
    """F1 over arcs (solid) and skeleton (dotted) against n, a panel a structure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row.structure for row in rows))
    figure = Figure(figsize=(3.5 * len(names) + 0.4, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for ax, name in zip(axes, names, strict=True):
        lines = list(dict.fromkeys((row.method, row.epsilon) for row in rows))
        for i, (method, epsilon) in enumerate(lines):
            line = [
                row
                for row in rows
                if (row.structure, row.method, row.epsilon) == (name, method, epsilon)
            ]
            label = method if epsilon is None else f"{method}, {epsilon:g} an answer (not proved)"
            n = [row.n_samples for row in line]
            ax.plot(
                n,
                [row.arc_f1 for row in line],
                color=f"C{i}",
                marker="o",
                markersize=4,
                label=label,
            )
            ax.plot(n, [row.skeleton_f1 for row in line], color=f"C{i}", linestyle=":", linewidth=1)
        ax.set(title=name, xscale="log", xlabel="records", ylim=(0, 1.03))
    axes[0].set_ylabel("F1: arcs (solid), skeleton (dotted)")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8
    )
    common.save_picture(figure, path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.parser(
        "Nonlinear causal discovery on known structures.", out=common.RESULTS / "pcd_figure2.json"
    )
    common.add_sizes(options)
    common.add_epsilon(options)
    common.add_max_level(options)
    full = {"networks": None, "sizes": SIZES, "epsilon": EPSILONS, "runs": 10, "max_level": None}
    quick = {"networks": ["cancer"], "sizes": (500,), "epsilon": (1.0,), "runs": 2, "max_level": 1}
    chosen = common.parse(options, arguments, full=full, quick=quick)
    chosen.sizes = [chosen.rows] if chosen.rows else chosen.sizes
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints a table a structure and size as it goes, and writes JSON and
    PNG.
    """
    chosen = _options(arguments)
    console = Console(width=150)
    environment = common.environment()
    rows: list[Row] = []
    loaded = common.load_networks(chosen.networks, chosen.data)
    wanted = chosen.networks or NETWORKS
    for name in (name for name in wanted if name in loaded):
        for n in chosen.sizes:
            new = list(
                rows_of(name, loaded[name], n, chosen.runs, chosen.epsilon, chosen.max_level)
            )
            console.print(table_of(f"{name}, n = {n}", new))
            rows += new
            settings = {"runs": chosen.runs, "alpha": 0.05, "n_permutations": 100, "penalty": 1.0}
            results = [asdict(row) for row in rows]
            common.write_json(
                chosen.out, {"environment": environment, "settings": settings, "results": results}
            )
    plot(rows, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
