"""Measure once, search for ever: graphs from one-shot releases, against the total budget.

``python -m benchmarks.releases [--quick] [--data FOLDER] [--networks NAME ...] [--rows N ...]
[--runs R] [--resume] [--out FILE]``

Discrete networks of up to 4,096 cells: ``Histogram`` at pure epsilon 1 and 0.3.  Larger ones:
``Marginals`` at (epsilon, 1e-6), epsilon 0.5, 1 and 4.  Random linear Gaussian models of 20
variables (expected degree 2, |weights| in [0.5, 1.5]): ``SecondMoments`` at (1, 1e-6), centres and
scales bought.  Run r takes data seed r and noise seed r + 777.

Columns: arc and skeleton F1 against the true CPDAG, mean and standard deviation over the runs; how
often the truth scores higher than the graph that was found, so that no failure of a search is taken
for a loss to privacy (marginals: the best measured subgraph of the truth); seconds for release and
search together, the median.

The file is written after every row.  With ``--resume`` its rows are kept, and only those that it
lacks are run: so the sizes can be measured one after the other.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd import metrics
from jaxcd.discovery import score_graph
from jaxcd.discovery.released import score_subgraphs
from jaxcd.releases import GaussianScore, MeasurementErrorScore, SetScore

DELTA = 1e-6
NOISE_SEED = 777
MOST_CELLS = 4_096
KEY = ("name", "release", "n_samples", "epsilon", "delta", "n_runs")
OUT = Path(__file__).parent / "results" / "releases.json"

_SCORES: dict[type, Callable[[Any, jaxcd.MixedGraph], float]] = {
    jaxcd.Histogram: lambda bought, truth: score_graph(MeasurementErrorScore(bought), truth),
    jaxcd.Marginals: lambda bought, truth: score_subgraphs(SetScore(bought), truth),
    jaxcd.SecondMoments: lambda bought, truth: score_graph(GaussianScore(bought), truth),
}


@dataclass(frozen=True)
class Row:
    """One data source, budget and size; truth_higher: share of the runs in which the truth scores
    higher than what was found.
    """

    name: str
    release: str
    n_samples: int
    epsilon: float
    delta: float
    arc_f1: float
    arc_f1_sd: float
    skeleton_f1: float
    truth_higher: float
    seconds: float
    n_runs: int


def measure(
    name: str, source: common.Source, kind: Any, budget: jaxcd.Budget, n: int, runs: int
) -> Row:
    """``runs`` data sets with one noise draw each; the first is run twice, to compile."""
    arcs, skeletons, higher, seconds = [], [], [], []
    for seed in range(runs):
        data, truth = source(seed)
        for _ in range(2 if seed == 0 else 1):
            noise = jaxcd.SimulatedNoise(jax.random.key(seed + NOISE_SEED))
            start = time.perf_counter()
            bought = jaxcd.release(data, kind, budget=budget, noise=noise)
            found = jaxcd.search(bought)
            elapsed = time.perf_counter() - start
        if not found.spent.epsilon <= budget.epsilon:
            raise AssertionError(f"{name}: spent {found.spent} of {budget}")
        seconds.append(elapsed)
        arcs.append(float(metrics.arc_f1(found.graph, truth)))
        skeletons.append(float(metrics.skeleton_f1(found.graph, truth)))
        higher.append(_SCORES[type(kind)](bought, truth) > found.info["score"] + 1e-6)
    return Row(
        name,
        type(kind).__name__,
        n,
        budget.epsilon,
        budget.delta,
        float(np.mean(arcs)),
        float(np.std(arcs)),
        float(np.mean(skeletons)),
        float(np.mean(higher)),
        float(np.median(seconds)),
        runs,
    )


#: name, data, kind of release, budget, rows
_Job = tuple[str, common.Source, Any, jaxcd.Budget, int]


def _jobs(options: argparse.Namespace) -> list[_Job]:
    jobs: list[_Job] = []
    names = options.networks or (["cancer"] if options.quick else None)
    for n in options.rows:
        for name, network in common.load_networks(names, options.data).items():
            cells = math.prod(k or 1 for k in network.domain.cardinalities)
            if cells <= MOST_CELLS:
                budgets = [
                    jaxcd.Budget(epsilon) for epsilon in ([1.0] if options.quick else [1.0, 0.3])
                ]
                jobs += [
                    (name, common.network_source(network, n), jaxcd.Histogram(), budget, n)
                    for budget in budgets
                ]
            if cells > MOST_CELLS or options.quick:
                budgets = [
                    jaxcd.Budget(epsilon, DELTA)
                    for epsilon in ([1.0] if options.quick else [0.5, 1.0, 4.0])
                ]
                jobs += [
                    (name, common.network_source(network, n), jaxcd.Marginals(), budget, n)
                    for budget in budgets
                ]
        p = 5 if options.quick else 20
        jobs.append(
            (
                f"linear Gaussian, {p}",
                common.gaussian_source(p, n),
                jaxcd.SecondMoments(),
                jaxcd.Budget(1.0, DELTA),
                n,
            )
        )
    return jobs


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    options = common.plain_parser(__doc__.splitlines()[0], out=OUT)
    options.add_argument("--data", type=Path, default=None, help="folder with networks/*.bif")
    options.add_argument("--networks", nargs="+", default=None)
    options.add_argument("--rows", type=common.count, nargs="+", default=None)
    options.add_argument("--runs", type=common.count, default=None)
    common.add_resume(options)
    chosen = common.parse(
        options,
        arguments,
        full={"rows": [100_000, 10_000], "runs": 10},
        quick={"rows": [5_000], "runs": 2},
    )
    record = common.Record(chosen.out, key=KEY, settings={}, resume=chosen.resume)
    table = Table(
        "data",
        "release",
        "rows",
        "epsilon",
        "delta",
        "arc F1 (sd)",
        "skeleton F1",
        "truth higher",
        "seconds",
    )
    for name, source, kind, budget, n in _jobs(chosen):
        wanted = (name, type(kind).__name__, n, budget.epsilon, budget.delta, chosen.runs)
        if record.find(dict(zip(KEY, wanted, strict=True))) is None:
            record.add(asdict(measure(name, source, kind, budget, n, chosen.runs)))
    for row in record.rows:
        table.add_row(
            row["name"],
            row["release"],
            f"{row['n_samples']:,}",
            f"{row['epsilon']:g}",
            f"{row['delta']:g}",
            f"{row['arc_f1']:.3f} ({row['arc_f1_sd']:.3f})",
            f"{row['skeleton_f1']:.3f}",
            f"{row['truth_higher']:.2f}",
            f"{row['seconds']:.2f}",
        )
    Console(width=140).print(table)
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
