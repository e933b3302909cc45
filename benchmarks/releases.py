"""Measure once, search for ever: graphs from one-shot releases, against the total budget.

``python -m benchmarks.releases [--quick] [--data FOLDER] [--networks NAME ...] [--rows N ...] [--runs R] [--out FILE]``

Discrete networks of up to 4,096 cells: ``Histogram`` at pure epsilon 1 and 0.3.  Larger ones: ``Marginals`` at (epsilon, 1e-6), epsilon 0.5, 1
and 4.  Random linear Gaussian models of 20 variables (expected degree 2, |weights| in [0.5, 1.5]): ``SecondMoments`` at (1, 1e-6),
centres and scales bought.  Run r takes data seed r and noise seed r + 777.

Columns: arc and skeleton F1 against the true CPDAG, mean and standard deviation over the runs; how often the truth scores higher than
the graph that was found, so that no failure of a search is taken for a loss to privacy (marginals: the best measured subgraph of
the truth); seconds for release and search together, the median.
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
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.discovery import histogram_score, marginals_score, score_graph
from jaxcd.discovery.released import score_subgraphs
from jaxcd.graphs import dag_to_cpdag, random_dag
from jaxcd.scores import GaussianScore

DELTA = 1e-6
NOISE_SEED = 777
MOST_CELLS = 4_096
OUT = Path(__file__).parent / "results" / "releases.json"

#: a data set, the true CPDAG, for a seed
Source = Callable[[int], tuple[jaxcd.Dataset, jaxcd.MixedGraph]]
_SCORES: dict[type, Callable[[Any, jaxcd.MixedGraph], float]] = {
    jaxcd.Histogram: lambda bought, truth: score_graph(histogram_score(bought), truth),
    jaxcd.Marginals: lambda bought, truth: score_subgraphs(marginals_score(bought), truth),
    jaxcd.SecondMoments: lambda bought, truth: score_graph(GaussianScore(bought), truth),
}


@dataclass(frozen=True)
class Row:
    """One data source, budget and size; truth_higher: share of the runs in which the truth scores higher than what was found."""

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


def measure(name: str, source: Source, kind: Any, budget: jaxcd.Budget, n: int, runs: int) -> Row:
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
        name, type(kind).__name__, n, budget.epsilon, budget.delta, float(np.mean(arcs)), float(np.std(arcs)),
        float(np.mean(skeletons)), float(np.mean(higher)), float(np.median(seconds)), runs,
    )  # fmt: skip


def _network(network: jaxcd.BayesianNetwork, n: int) -> Source:
    return lambda seed: (network.sample(n, key=jax.random.key(seed)), network.cpdag())


def _gaussian(n_variables: int, n: int) -> Source:
    def source(seed: int) -> tuple[jaxcd.Dataset, jaxcd.MixedGraph]:
        dag = random_dag(n_variables, expected_degree=2.0, seed=seed)
        named = {node: f"x{node}" for node in dag}
        dag = type(dag)([(named[a], named[b]) for a, b in dag.edges]) if dag.edges else dag
        for name in named.values():
            dag.add_node(name)
        model_key, data_key = jax.random.split(jax.random.key(seed))
        data = linear_gaussian_sem(dag, key=model_key).sample(n, key=data_key)
        return data, dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag))

    return source


def _jobs(options: argparse.Namespace) -> list[tuple[str, Source, Any, jaxcd.Budget, int]]:
    jobs: list[tuple[str, Source, Any, jaxcd.Budget, int]] = []
    names = options.networks or (["cancer"] if options.quick else None)
    for n in options.rows:
        for name, network in common.load_networks(names, options.data).items():
            cells = math.prod(k or 1 for k in network.domain.cardinalities)
            if cells <= MOST_CELLS:
                budgets = [jaxcd.Budget(epsilon) for epsilon in ([1.0] if options.quick else [1.0, 0.3])]
                jobs += [(name, _network(network, n), jaxcd.Histogram(), budget, n) for budget in budgets]
            if cells > MOST_CELLS or options.quick:
                budgets = [jaxcd.Budget(epsilon, DELTA) for epsilon in ([1.0] if options.quick else [0.5, 1.0, 4.0])]
                jobs += [(name, _network(network, n), jaxcd.Marginals(), budget, n) for budget in budgets]
        p = 5 if options.quick else 20
        jobs.append((f"linear Gaussian, {p}", _gaussian(p, n), jaxcd.SecondMoments(), jaxcd.Budget(1.0, DELTA), n))
    return jobs


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    options = common.plain_parser(__doc__.splitlines()[0], out=OUT)
    options.add_argument("--data", type=Path, default=None, help="folder with networks/*.bif")
    options.add_argument("--networks", nargs="+", default=None)
    options.add_argument("--rows", type=common.count, nargs="+", default=None)
    options.add_argument("--runs", type=common.count, default=None)
    chosen = common.parse(options, arguments, full={"rows": [100_000, 10_000], "runs": 10}, quick={"rows": [5_000], "runs": 2})
    table = Table("data", "release", "rows", "epsilon", "delta", "arc F1 (sd)", "skeleton F1", "truth higher", "seconds")
    rows = []
    for name, source, kind, budget, n in _jobs(chosen):
        row = measure(name, source, kind, budget, n, chosen.runs)
        rows.append(row)
        table.add_row(
            row.name, row.release, f"{n:,}", f"{row.epsilon:g}", f"{row.delta:g}", f"{row.arc_f1:.3f} ({row.arc_f1_sd:.3f})",
            f"{row.skeleton_f1:.3f}", f"{row.truth_higher:.2f}", f"{row.seconds:.2f}",
        )  # fmt: skip
    Console(width=140).print(table)
    common.write_json(chosen.out, {"environment": common.environment(), "results": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
