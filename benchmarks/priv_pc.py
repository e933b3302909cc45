"""Private PC on seven networks: how much of the true graph is found, at what total price.

``python -m benchmarks.priv_pc [--quick] [--data FOLDER] [--runs R] [--epsilon E ...] [--per-round E
...] [--out FILE]``

Rows: PC without privacy; Priv-PC, SVT-PC and EM-PC as published, over epsilon a round (a visit of
EM-PC), with the total that they report afterwards (not proved); and the proved mechanisms at totals
fixed in advance.  Run r of every row uses data set r of its network and noise r.  Columns: F1 over
arcs (an undirected edge is two) against the true CPDAG, and against PC without privacy with the
same test on the same data; skeleton F1; number of tests, where it may be told; seconds, after
compilation; and the share of runs that exhausted their budget.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd import metrics, published

DELTA = 1e-6
PUBLISHED_DELTA = 1e-3
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
PER_ROUND = (0.1, 0.3, 1.0, 3.0)
QUICK_EPSILONS = (1.0, 4.0)
QUICK_PER_ROUND = (1.0,)

Run = Callable[[jaxcd.Dataset, float | None, jax.Array], jaxcd.DiscoveryResult]


@dataclass(frozen=True)
class Method:
    """One line of the table.  baseline: the label of PC without privacy with the same test (perhaps
    its own).
    """

    label: str
    run: Run
    baseline: str
    published: bool = False


@dataclass(frozen=True)
class Row:
    """Means over the runs, standard deviations where so named.  epsilon: what was asked (a round,
    where published).
    """

    network: str
    method: str
    epsilon: float | None
    total_epsilon: float | None
    delta: float | None
    proven: bool
    arc_f1: float
    arc_f1_sd: float
    arc_f1_non_private: float
    skeleton_f1: float
    n_tests: float | None
    seconds: float
    exhausted: float
    n_runs: int


def _without_privacy(
    test: jaxcd.citests.CITest, *, alpha: float = 0.05, stable: bool = True
) -> Run:
    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        decider = jaxcd.Threshold(alpha=alpha)
        return jaxcd.pc(
            data, test=test, decider=decider, budget=jaxcd.NO_PRIVACY, key=key, stable=stable
        )

    return run


def private(
    decider: jaxcd.decisions.Decider, test: jaxcd.citests.CITest, *, delta: float = DELTA
) -> Run:
    """PC with a mechanism at totals (epsilon, delta) fixed in advance, with simulated noise."""

    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        assert epsilon is not None
        budget = jaxcd.Budget(epsilon=epsilon, delta=delta)
        return jaxcd.pc(
            data,
            test=test,
            decider=decider,
            budget=budget,
            key=key,
            noise=jaxcd.SimulatedNoise(key),
        )

    return run


def _published(function: Callable[..., jaxcd.DiscoveryResult]) -> Run:
    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        return function(data, epsilon=epsilon, delta=PUBLISHED_DELTA, key=key)

    return run


NON_PRIVATE = tuple(
    Method(label, run, label)
    for label, run in {
        "PC, ChiSquare": _without_privacy(jaxcd.ChiSquare()),
        "PC, CovarianceNorm": _without_privacy(jaxcd.CovarianceNorm()),
        "PC, KendallTau": _without_privacy(jaxcd.KendallTau()),
        # The test, level and order of the published methods.
        "PC, ConditionalTau": _without_privacy(published.ConditionalTau(), alpha=0.1, stable=False),
        "PC, GTest": _without_privacy(jaxcd.GTest(), alpha=0.1, stable=False),
    }.items()
)
PUBLISHED = (
    Method(
        "Priv-PC, published", _published(published.priv_pc), "PC, ConditionalTau", published=True
    ),
    Method("SVT-PC, published", _published(published.svt_pc), "PC, ConditionalTau", published=True),
    Method("EM-PC, published", _published(published.em_pc), "PC, GTest", published=True),
)
MECHANISMS: tuple[tuple[jaxcd.decisions.Decider, jaxcd.citests.CITest], ...] = (
    (jaxcd.LevelwiseGaussian(), jaxcd.CovarianceNorm()),
    (jaxcd.SparseVector(), jaxcd.CovarianceNorm()),
    (jaxcd.SparseVector(), jaxcd.KendallTau()),
    (jaxcd.SieveAndExamine(), jaxcd.CovarianceNorm()),
    (jaxcd.ExponentialSelect(), jaxcd.CovarianceNorm()),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect()), jaxcd.CovarianceNorm()),
    (jaxcd.Scheduled(jaxcd.SieveAndExamine()), jaxcd.CovarianceNorm()),
)
PRIVATE = tuple(
    Method(f"{decider.name}, {test.name}", private(decider, test), f"PC, {test.name}")
    for decider, test in MECHANISMS
)


class _Bench:
    """One network: its data sets, the graphs of PC without privacy on them, and its rows."""

    def __init__(
        self, name: str, network: jaxcd.data.BayesianNetwork, n_samples: int, n_runs: int
    ) -> None:
        self.name = name
        self.truth = network.cpdag()
        keys = jax.random.split(jax.random.key(20201), n_runs)
        self.data = [network.sample(n_samples, key=key) for key in keys]
        self.noise = list(jax.random.split(jax.random.key(6098), n_runs))
        self.graphs: dict[str, list[jaxcd.MixedGraph]] = {}

    def row(self, method: Method, epsilon: float | None) -> Row:
        """All runs of a method at one price; a run before them compiles, and is not timed."""
        method.run(self.data[0], epsilon, self.noise[0])
        results, seconds = [], []
        for data, key in zip(self.data, self.noise, strict=True):
            start = time.perf_counter()
            results.append(method.run(data, epsilon, key))
            seconds.append(time.perf_counter() - start)
        graphs = [result.graph for result in results]
        if method.baseline == method.label:
            self.graphs[method.label] = graphs
        arcs = [float(metrics.arc_f1(graph, self.truth)) for graph in graphs]
        same_test = [
            float(metrics.arc_f1(a, b))
            for a, b in zip(graphs, self.graphs[method.baseline], strict=True)
        ]
        totals = [result.cost.epsilon for result in results]
        tests = [result.info["n_tests"] for result in results if "n_tests" in result.info]
        return Row(
            network=self.name,
            method=method.label,
            epsilon=epsilon,
            total_epsilon=None if epsilon is None else statistics.mean(totals),
            delta=None if epsilon is None else results[0].cost.delta,
            # Simulated noise voids every guarantee; this says whether the same run with secure
            # noise has one.
            proven=epsilon is not None and not method.published,
            arc_f1=statistics.mean(arcs),
            arc_f1_sd=statistics.pstdev(arcs),
            arc_f1_non_private=statistics.mean(same_test),
            skeleton_f1=statistics.mean(
                float(metrics.skeleton_f1(graph, self.truth)) for graph in graphs
            ),
            n_tests=statistics.mean(tests) if tests else None,
            seconds=statistics.median(seconds),
            exhausted=statistics.mean(result.exhausted for result in results),
            n_runs=len(results),
        )


def rows_of(bench: _Bench, epsilons: Sequence[float], per_round: Sequence[float]) -> Iterator[Row]:
    """Every row of one network, in the table's order."""
    for method in NON_PRIVATE:
        yield bench.row(method, None)
    for methods, prices in ((PUBLISHED, per_round), (PRIVATE, epsilons)):
        for method in methods:
            for epsilon in prices:
                yield bench.row(method, epsilon)


def table_of(name: str, rows: Sequence[Row]) -> Table:
    """A network's rows for the screen."""
    table = Table(title=f"{name}: means of {rows[0].n_runs} runs")
    for column in (
        "method",
        "epsilon",
        "total",
        "arc F1",
        "+-",
        "vs PC",
        "skeleton",
        "tests",
        "seconds",
        "exhausted",
    ):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for row in rows:
        asked = (
            "" if row.epsilon is None else f"{row.epsilon:g}" + ("" if row.proven else " a round")
        )
        total = (
            ""
            if row.total_epsilon is None
            else f"{row.total_epsilon:.3g}" + ("" if row.proven else " ?")
        )
        table.add_row(
            row.method,
            asked,
            total,
            f"{row.arc_f1:.2f}",
            f"{row.arc_f1_sd:.2f}",
            f"{row.arc_f1_non_private:.2f}",
            f"{row.skeleton_f1:.2f}",
            "" if row.n_tests is None else f"{row.n_tests:.0f}",
            f"{row.seconds:.3f}",
            f"{row.exhausted:.0%}" if row.proven else "",
        )
    return table


def plot(rows: Sequence[Row], path: Any) -> None:
    """F1 over arcs against the total epsilon, a panel a network."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row.network for row in rows))
    n_columns = min(4, len(names))
    n_lines = math.ceil(len(names) / n_columns)
    figure = Figure(figsize=(3.6 * n_columns + 0.4, 3.1 * n_lines + 1.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_lines, n_columns, squeeze=False, sharey=True)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, names, strict=False):
        for i, method in enumerate((*PRIVATE, *PUBLISHED)):
            line = [row for row in rows if row.network == name and row.method == method.label]
            points = [(row.total_epsilon or math.inf, row.arc_f1) for row in line]
            points = [point for point in points if math.isfinite(point[0])]
            style = (
                {"linestyle": "--", "marker": "x"}
                if method.published
                else {"linestyle": "-", "marker": "o"}
            )
            label = method.label + (
                " (total computed afterwards, not proved)" if method.published else ""
            )
            ax.plot(
                *np.reshape(points, (-1, 2)).T, color=f"C{i}", label=label, markersize=4, **style
            )
        best = next(
            row.arc_f1 for row in rows if row.network == name and row.method == "PC, ChiSquare"
        )
        ax.axhline(
            best, color="0.5", linewidth=1, linestyle=":", label="PC without privacy, ChiSquare"
        )
        ax.set(title=name, xscale="log", xlabel="total epsilon", ylim=(0, 1.03))
    for ax in axes[:, 0]:
        ax.set_ylabel("arc F1 against the true CPDAG")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8
    )
    common.save_picture(figure, path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.parser("Private PC on seven networks.", out=common.RESULTS / "priv_pc.json")
    options.add_argument(
        "--epsilon", type=common.positive, nargs="+", help="totals of the proved mechanisms"
    )
    options.add_argument(
        "--per-round", type=common.positive, nargs="+", help="epsilon a round, published methods"
    )
    chosen = options.parse_args(arguments)
    chosen.networks = chosen.networks or (["cancer", "asia"] if chosen.quick else None)
    chosen.rows = chosen.rows or (10_000 if chosen.quick else 100_000)
    chosen.runs = chosen.runs or (2 if chosen.quick else 10)
    chosen.epsilon = sorted(chosen.epsilon or (QUICK_EPSILONS if chosen.quick else EPSILONS))
    chosen.per_round = sorted(chosen.per_round or (QUICK_PER_ROUND if chosen.quick else PER_ROUND))
    if chosen.quick and chosen.out == common.RESULTS / "priv_pc.json":
        chosen.out = common.RESULTS / "priv_pc_quick.json"
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints a table a network as it goes, and writes JSON and PNG."""
    chosen = _options(arguments)
    console = Console(width=130)
    rows: list[Row] = []
    environment = common.environment()
    for name, network in common.load_networks(chosen.networks, chosen.data).items():
        bench = _Bench(name, network, chosen.rows, chosen.runs)
        new = list(rows_of(bench, chosen.epsilon, chosen.per_round))
        console.print(table_of(name, new))
        rows += new
        settings = {
            "rows": chosen.rows,
            "runs": chosen.runs,
            "delta": DELTA,
            "published_delta": PUBLISHED_DELTA,
        }
        content = {
            "environment": environment,
            "settings": settings,
            "results": [common.finite(asdict(row)) for row in rows],
        }
        # after each network: a long run that is cut short leaves what it has
        common.write_json(chosen.out, content)
    plot(rows, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
