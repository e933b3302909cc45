"""Errors of single private tests against epsilon: PCD's RCIT as published, and Kendall's tau.

``python -m benchmarks.pcd_figure1 [--quick] [--sizes N ...] [--levels L ...] [--runs R] [--epsilon
E ...] [--out FILE]``

Data: PCD's simulation model (``jaxcd.data.structural.nonlinear_sem``).  Under H0 every z_i is a
parent of x and of y; under H1 x is a parent of y as well.  Type I: share of H0 data sets called
dependent; type II: share of H1 data sets called independent.  The share is exact over the noise (a
Laplace tail), so only data sets are averaged.

Rows: PCD with its noise (not private, whatever its epsilon: PRIVACY.md G) and without; RCIT
calibrated by leave-one-out, without privacy; Kendall's tau within strata (each z, a root of the
model and so standard normal, is cut at public quantiles) with proved noise on its margin, with the
noise that Priv-PC puts on its p-value, and without.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import special

import jaxcd
from benchmarks import common
from jaxcd.citests import Query
from jaxcd.data import structural
from jaxcd.published.accounting import claimed_sensitivity
from jaxcd.published.pcd_bounds import deletion_probability
from jaxcd.published.pcd_rcit import PublishedRCIT
from jaxcd.queries import Door, Session

ALPHA = 0.05
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (200, 500)
LEVELS = (0, 1, 3, 5)
#: levels into which each conditioning column is cut for Kendall's strata, by the number of columns
CUTS = {1: 8, 2: 4, 3: 3}

PCD = "PCD's RCIT, published noise"
PCD_PLAIN = "PCD's RCIT, no privacy"
RCIT = "RCIT, no privacy"
KENDALL = "Kendall, proved noise"
KENDALL_PUBLISHED = "Kendall, Priv-PC's noise"
KENDALL_PLAIN = "Kendall, no privacy"


@dataclass(frozen=True)
class Row:
    """Errors of one method.  epsilon: of the one test, None without privacy.  proven: whether that
    epsilon holds.
    """

    n_samples: int
    level: int
    method: str
    epsilon: float | None
    proven: bool
    type_1: float
    type_2: float
    n_data_sets: int
    seconds_per_test: float


def model(level: int, *, dependent: bool, key: jax.Array) -> structural.StructuralModel:
    """z_i -> x, z_i -> y for i < level; under H1 also x -> y."""
    dag = nx.DiGraph()
    dag.add_nodes_from(["x", "y", *(f"z{i}" for i in range(level))])
    dag.add_edges_from((f"z{i}", node) for i in range(level) for node in "xy")
    if dependent:
        dag.add_edge("x", "y")
    return structural.nonlinear_sem(dag, key=key)


def stratified(data: jaxcd.Dataset) -> jaxcd.Dataset:
    """x and y as they are, each z cut at the quantiles of the standard normal distribution."""
    n_cuts = CUTS.get(data.n_columns - 2, 2)
    cuts = special.ndtri(np.arange(1, n_cuts) / n_cuts)
    domain = jaxcd.Domain(
        {
            name: jaxcd.Ordinal(tuple(range(n_cuts))) if name[0] == "z" else jaxcd.Numeric()
            for name in data.names
        }
    )
    given = [name for name in data.names if name[0] == "z"]
    codes = [np.searchsorted(cuts, data.values(name)) for name in given]
    discrete = np.column_stack(codes) if codes else np.empty((data.n_samples, 0))
    numeric = np.column_stack([data.values(name) for name in "xy"])
    return jaxcd.Dataset(domain, discrete.astype(np.int32), numeric)


def laplace_tail(gap: float, scale: float) -> float:
    """P[Lap(scale) > gap]."""
    return 0.5 * math.exp(-gap / scale) if gap > 0 else 1 - 0.5 * math.exp(gap / scale)


Calls = dict[tuple[str, float | None], float]


def _kendall(data: jaxcd.Dataset, query: Query, epsilons: Sequence[float]) -> Calls:
    session = Session(Door(stratified(data), jaxcd.NO_PRIVACY), jaxcd.KendallTau(), alpha=ALPHA)
    found = session.evaluate([query])
    margin, pvalue = float(found.margin[0]), math.exp(found.log_pvalue[0])
    sensitivity = session.sensitivity()
    scale = sensitivity.value + 2 * sensitivity.pad
    on_pvalue = 2 * claimed_sensitivity(data.n_samples)  # both tails
    calls: Calls = {(KENDALL_PLAIN, None): float(margin > 0)}
    for epsilon in epsilons:
        calls[KENDALL, epsilon] = laplace_tail(-margin, scale / epsilon)
        calls[KENDALL_PUBLISHED, epsilon] = laplace_tail(pvalue - ALPHA, on_pvalue / epsilon)
    return calls


def _pcd(data: jaxcd.Dataset, query: Query, epsilons: Sequence[float], key: jax.Array) -> Calls:
    evidence = PublishedRCIT().prepare(data, key=key).evidence(query)
    calls: Calls = {(PCD_PLAIN, None): float(evidence.pvalue < ALPHA)}
    for epsilon in epsilons:
        calls[PCD, epsilon] = 1 - deletion_probability(evidence, alpha=ALPHA, epsilon=epsilon)
    return calls


def _rcit(data: jaxcd.Dataset, query: Query, key: jax.Array) -> Calls:
    session = Session(Door(data, jaxcd.NO_PRIVACY), jaxcd.RCIT(), alpha=ALPHA, key=key)
    return {(RCIT, None): float(session.evaluate([query]).margin[0] > 0)}


def rows_of(n_samples: int, level: int, n_runs: int, epsilons: Sequence[float]) -> Iterator[Row]:
    """Every row of one size and one number of conditioning columns; the first data set is also run
    once before, to compile.
    """
    calls: dict[bool, list[Calls]] = {False: [], True: []}
    seconds: dict[str, list[float]] = {PCD: [], RCIT: [], KENDALL: []}
    for dependent in (False, True):
        for run in (0, *range(n_runs)):
            key, sample_key, test_key = (
                jax.random.key(seed) for seed in (run, 10_000 + run, 20_000 + run)
            )
            data = model(level, dependent=dependent, key=key).sample(n_samples, key=sample_key)
            query = Query.of(0, 1, range(2, 2 + level))
            found: Calls = {}
            for name in seconds:
                start = time.perf_counter()
                if name == PCD:
                    found |= _pcd(data, query, epsilons, test_key)
                elif name == RCIT:
                    found |= _rcit(data, query, test_key)
                else:
                    found |= _kendall(data, query, epsilons)
                seconds[name].append(time.perf_counter() - start)
            calls[dependent].append(found)
    for method, epsilon in sorted(
        calls[False][0], key=lambda row: (row[1] is not None, row[0], row[1] or 0)
    ):
        rate = {
            side: float(np.mean([c[method, epsilon] for c in calls[side][1:]]))
            for side in (False, True)
        }
        clock = PCD if "PCD" in method else RCIT if method == RCIT else KENDALL
        yield Row(
            n_samples,
            level,
            method,
            epsilon,
            method == KENDALL,
            rate[False],
            1 - rate[True],
            n_runs,
            float(np.median(seconds[clock])),
        )


def table_of(rows: Sequence[Row]) -> Table:
    """The rows of one setting for the screen."""
    table = Table(
        title=f"n = {rows[0].n_samples}, |Z| = {rows[0].level}: {rows[0].n_data_sets} data sets "
        "of each kind"
    )
    for column in ("method", "epsilon", "type I", "type II", "seconds"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for row in rows:
        epsilon = "" if row.epsilon is None else f"{row.epsilon:g}" + ("" if row.proven else " ?")
        table.add_row(
            row.method,
            epsilon,
            f"{row.type_1:.3f}",
            f"{row.type_2:.3f}",
            f"{row.seconds_per_test:.3f}",
        )
    return table


def plot(rows: Sequence[Row], path: Any) -> None:
    """Type I (solid) and type II (dashed) error against epsilon, a panel a setting."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sizes, levels = sorted({row.n_samples for row in rows}), sorted({row.level for row in rows})
    figure = Figure(figsize=(3.4 * len(levels) + 0.4, 3.0 * len(sizes) + 1.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(sizes), len(levels), squeeze=False, sharex=True, sharey=True)
    for ax, (n, level) in zip(
        axes.flat, ((n, level) for n in sizes for level in levels), strict=True
    ):
        here = [row for row in rows if (row.n_samples, row.level) == (n, level)]
        for i, method in enumerate((PCD, KENDALL, KENDALL_PUBLISHED, RCIT, PCD_PLAIN)):
            line = [row for row in here if row.method == method]
            if not line:
                continue
            errors = {"-": [row.type_1 for row in line], "--": [row.type_2 for row in line]}
            for style, values in errors.items():
                label = method if style == "-" else None
                if line[0].epsilon is None:
                    ax.axhline(
                        values[0],
                        color=f"C{i}",
                        linestyle=style,
                        linewidth=1,
                        alpha=0.6,
                        label=label,
                    )
                else:
                    ax.plot(
                        [row.epsilon for row in line],
                        values,
                        color=f"C{i}",
                        linestyle=style,
                        marker="o",
                        markersize=3,
                        label=label,
                    )
        ax.set(title=f"n = {n}, |Z| = {level}", xscale="log", ylim=(-0.03, 1.03))
    for ax in axes[-1]:
        ax.set_xlabel("epsilon")
    for ax in axes[:, 0]:
        ax.set_ylabel("type I (solid), type II (dashed)")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    common.save_picture(figure, path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(
        "Errors of private tests against epsilon.", out=common.RESULTS / "pcd_figure1.json"
    )
    common.add_sizes(options)
    common.add_levels(options)
    common.add_epsilon(options)
    options.add_argument(
        "--runs", type=common.count, help="data sets of each kind (default: 100; 10 with --quick)"
    )
    full = {"sizes": SIZES, "levels": LEVELS, "epsilon": EPSILONS, "runs": 100}
    return common.parse(
        options,
        arguments,
        full=full,
        quick={**full, "sizes": SIZES[:1], "levels": (0, 1), "runs": 10},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints a table a setting as it goes, and writes JSON and PNG."""
    chosen = _options(arguments)
    console = Console(width=130)
    environment = common.environment()
    rows: list[Row] = []
    for n_samples in chosen.sizes:
        for level in chosen.levels:
            new = list(rows_of(n_samples, level, chosen.runs, chosen.epsilon))
            console.print(table_of(new))
            rows += new
            settings = {
                "alpha": ALPHA,
                "runs": chosen.runs,
                "n_permutations": 100,
                "penalty": 1.0,
                "cuts": CUTS,
            }
            results = [asdict(row) for row in rows]
            common.write_json(
                chosen.out, {"environment": environment, "settings": settings, "results": results}
            )
    plot(rows, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
