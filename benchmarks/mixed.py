"""Numeric beside nominal columns: a release of features, and releases of the same columns cut into
bins.

``python -m benchmarks.mixed [--quick] [--nodes P ...] [--sizes N ...] [--epsilons E ...] [--models
R] [--out FILE]``

Data: a random DAG of expected degree 2 whose nodes are numeric or nominal (2 to 4 levels) with
probability one half each.  A numeric node is a sum of functions of its parents plus a standard
normal; a nominal node is the largest of one such sum for each level plus Gumbel noise, a
multinomial logit.  A numeric parent enters by w h(v), h one of v, sin v, tanh v and |v| - 1, a
nominal one by a number for each of its levels; |w| and these numbers are uniform on [.75, 1.5] with
even signs.  Numeric columns are clipped to [-6, 6], which is declared.

Methods, at (epsilon, 1e-6): ``Features`` and its search, which is what ``jaxcd.discover`` does;
what ``jaxcd.discover`` does with the numeric columns cut into 6 equal bins (a histogram or
marginals); and ``Features`` without privacy.  Columns: arc and skeleton F1 against the true CPDAG,
means and standard error over models, seconds. The rule for the number of features was chosen on
models with seeds 110 to 115; these have others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import jax
import networkx as nx
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd.graphs import dag_to_cpdag, random_dag

FIRST_MODEL = 300
DELTA = 1e-6
REACH = 6.0
BINS = 6
SHAPES: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda v: v,
    np.sin,
    np.tanh,
    lambda v: np.abs(v) - 1,
)


@dataclass(frozen=True)
class MixedModel:
    """A random model.  dag: its nodes are names.  levels: of each node, 0 for a numeric one.  seed:
    of its functions.
    """

    dag: nx.DiGraph
    levels: dict[str, int]
    seed: int

    @classmethod
    def draw(cls, n_nodes: int, seed: int) -> MixedModel:
        """The model of a seed."""
        dag = random_dag(n_nodes, expected_degree=2.0, seed=seed)
        rng = np.random.default_rng(seed)
        return cls(
            dag, {node: int(rng.integers(2, 5)) if rng.uniform() < 0.5 else 0 for node in dag}, seed
        )

    def cpdag(self) -> jaxcd.MixedGraph:
        """The class that can be told."""
        return dag_to_cpdag(jaxcd.MixedGraph.from_dag(self.dag)).reordered(tuple(self.levels))

    def sample(self, n: int, *, bins: int = 0) -> jaxcd.Dataset:
        """n rows, the same for all ``bins``: numeric columns as they are, or cut into so many equal
        bins.
        """
        noise, functions = (
            np.random.default_rng([self.seed, 1, n]),
            np.random.default_rng([self.seed, 7]),
        )
        values: dict[str, np.ndarray] = {}
        for node in nx.topological_sort(self.dag):
            k = self.levels[node]
            sums = np.zeros((n, max(k, 1)))
            if k:
                sums += functions.normal(0, 0.5, k)
            for parent in sorted(self.dag.predecessors(node)):
                shape = (self.levels[parent] or 1, max(k, 1))
                weights = functions.uniform(0.75, 1.5, shape) * functions.choice([-1, 1], shape)
                if self.levels[parent]:
                    sums += weights[values[parent]]
                else:
                    sums += (
                        SHAPES[functions.integers(len(SHAPES))](values[parent])[:, None] * weights
                    )
            values[node] = (
                np.argmax(sums + noise.gumbel(size=sums.shape), axis=1)
                if k
                else sums[:, 0] + noise.normal(size=n)
            )
        return self._declared(values, bins)

    def _declared(self, values: dict[str, np.ndarray], bins: int) -> jaxcd.Dataset:
        columns: dict[str, np.ndarray] = {}
        domain: dict[str, jaxcd.Categorical | jaxcd.Ordinal | jaxcd.Numeric] = {}
        for node, k in self.levels.items():
            clipped = np.clip(values[node], -REACH, REACH)
            if k:
                columns[node], domain[node] = values[node], jaxcd.Categorical(tuple(range(k)))
            elif bins:
                columns[node] = np.minimum((clipped + REACH) / (2 * REACH) * bins, bins - 1).astype(
                    int
                )
                domain[node] = jaxcd.Ordinal(tuple(range(bins)))
            else:
                columns[node], domain[node] = clipped, jaxcd.Numeric(-REACH, REACH)
        return jaxcd.Dataset.from_frame(pd.DataFrame(columns), domain=jaxcd.Domain(domain))


@dataclass(frozen=True)
class Row:
    """Means over the models; epsilon is None without privacy."""

    n_nodes: int
    n_samples: int
    method: str
    epsilon: float | None
    arc_f1: float
    arc_f1_se: float
    skeleton_f1: float
    skeleton_f1_se: float
    seconds: float
    n_models: int


def _found(data: jaxcd.Dataset, epsilon: float | None, seed: int) -> jaxcd.MixedGraph:
    budget = jaxcd.NO_PRIVACY if epsilon is None else jaxcd.Budget(epsilon, DELTA)
    noise = None if epsilon is None else jaxcd.SimulatedNoise(jax.random.key(seed))
    return jaxcd.discover(data, budget=budget, key=None, noise=noise).graph


def rows(
    n_nodes: Sequence[int], sizes: Sequence[int], epsilons: Sequence[float], n_models: int
) -> Iterator[Row]:
    """One row a number of nodes and records, method and epsilon."""
    for p in n_nodes:
        models = [MixedModel.draw(p, FIRST_MODEL + i) for i in range(n_models)]
        for n in sizes:
            for method, bins in (("Features", 0), (f"{BINS} bins", BINS)):
                data = [model.sample(n, bins=bins) for model in models]
                for epsilon in (*epsilons, None) if not bins else epsilons:
                    start = time.perf_counter()
                    graphs = [
                        _found(each, epsilon, model.seed)
                        for each, model in zip(data, models, strict=True)
                    ]
                    seconds = (time.perf_counter() - start) / n_models
                    yield _row(p, n, method, epsilon, graphs, models, seconds)


def _row(
    p: int,
    n: int,
    method: str,
    epsilon: float | None,
    graphs: list[jaxcd.MixedGraph],
    models: list[MixedModel],
    seconds: float,
) -> Row:
    pairs = [(graph, model.cpdag()) for graph, model in zip(graphs, models, strict=True)]
    arcs = np.array([jaxcd.metrics.arc_f1(*pair) for pair in pairs], dtype=float)
    skeletons = np.array([jaxcd.metrics.skeleton_f1(*pair) for pair in pairs], dtype=float)
    errors = [
        float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
        for values in (arcs, skeletons)
    ]
    return Row(
        p,
        n,
        method,
        epsilon,
        float(arcs.mean()),
        errors[0],
        float(skeletons.mean()),
        errors[1],
        seconds,
        len(models),
    )


def table(found: Sequence[Row]) -> Table:
    """The rows for the screen."""
    shown = Table("columns", "rows", "method", "epsilon", "arc F1", "skeleton F1", "seconds")
    for row in found:
        shown.add_row(
            str(row.n_nodes),
            f"{row.n_samples:,}",
            row.method,
            "no privacy" if row.epsilon is None else f"{row.epsilon:g}",
            f"{row.arc_f1:.3f} ({row.arc_f1_se:.3f})",
            f"{row.skeleton_f1:.3f} ({row.skeleton_f1_se:.3f})",
            f"{row.seconds:.2f}",
        )
    return shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    options: argparse.ArgumentParser = common.plain_parser(
        __doc__.splitlines()[0], out=common.RESULTS / "mixed.json"
    )
    options.add_argument("--nodes", type=common.count, nargs="+", help="columns")
    common.add_sizes(options)
    options.add_argument("--epsilons", type=common.positive, nargs="+", help="totals")
    options.add_argument("--models", type=common.count, help="models of each row")
    full = {
        "nodes": [10, 20],
        "sizes": [1_000, 3_000, 10_000, 100_000],
        "epsilons": [0.5, 1.0, 4.0],
        "models": 20,
    }
    quick = {"nodes": [6], "sizes": [3_000], "epsilons": [1.0], "models": 2}
    chosen = common.parse(options, arguments, full=full, quick=quick)
    console, found = Console(), []
    for row in rows(chosen.nodes, chosen.sizes, chosen.epsilons, chosen.models):
        found.append(row)
        console.print(
            f"{row.n_nodes} columns, {row.n_samples:,} rows, {row.method}, {row.epsilon}: "
            f"{row.arc_f1:.3f}"
        )
    console.print(table(found))
    common.write_json(
        chosen.out, {"environment": common.environment(), "rows": [asdict(row) for row in found]}
    )


if __name__ == "__main__":
    main()
