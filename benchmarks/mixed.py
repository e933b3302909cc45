"""Numeric beside nominal columns: a release of features, and releases of the same columns cut into
bins.

``python -m benchmarks.mixed [--quick] [--resume] [--nodes P ...] [--sizes N ...] [--epsilons E ...]
[--methods METHOD ...] [--models R] [--out FILE]``

Data: a random DAG of expected degree 2 whose nodes are numeric or nominal (2 to 4 levels) with
probability one half each.  A numeric node is a sum of functions of its parents plus a standard
normal; a nominal node is the largest of one such sum for each level plus Gumbel noise, a
multinomial logit.  A numeric parent enters by w h(v), h one of v, sin v, tanh v and |v| - 1, a
nominal one by a number for each of its levels; |w| and these numbers are uniform on [.75, 1.5] with
even signs.  Numeric columns are clipped to [-6, 6], which is declared.

Methods, at (epsilon, 1e-6): ``Features`` and ``Discretised``, of which ``jaxcd.discover`` takes one
by public facts, each with its search; what ``jaxcd.discover`` does with the numeric columns cut
into 6 equal bins (a histogram or marginals); and ``Features`` without privacy.  Columns: arc and
skeleton F1 against the true CPDAG, means and standard error over models, seconds, and the share of
the rows that the noise hides in two features a column, by which ``discover`` chooses.  The rules
for the numbers of features and of bins were chosen on other models.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax
import networkx as nx
import numpy as np
import pandas as pd

import jaxcd
from benchmarks import experiment as ex
from jaxcd.graphs import dag_to_cpdag, random_dag

FIRST_MODEL = 300
DELTA = 1e-6
REACH = 6.0
BINS = 6
# Bins of equal width that are declared, and what is bought; None for what discover takes.
METHODS: dict[str, tuple[int, Any]] = {
    "Features": (0, jaxcd.Features()),
    "Discretised": (0, jaxcd.Discretised()),
    f"{BINS} bins": (BINS, None),
}
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

    def sample(self, n: int, *, bins: int = 0, draw: int = 0) -> jaxcd.Dataset:
        """n rows, the same for all ``bins`` and others for each ``draw``: numeric columns as they
        are, or cut into so many equal bins.
        """
        noise, functions = (
            np.random.default_rng([self.seed, 1, n, draw] if draw else [self.seed, 1, n]),
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


def _found(data: jaxcd.Dataset, kind: Any, epsilon: float | None, seed: int) -> jaxcd.MixedGraph:
    budget = jaxcd.NO_PRIVACY if epsilon is None else jaxcd.Budget(epsilon, DELTA)
    noise = None if epsilon is None else jaxcd.SimulatedNoise(jax.random.key(seed))
    if kind is None:
        return jaxcd.discover(data, budget=budget, key=None, noise=noise).graph
    return jaxcd.search(jaxcd.release(data, kind, budget=budget, noise=noise)).graph


def _hidden(data: jaxcd.Dataset, epsilon: float | None) -> float | None:
    """The share of the rows that is noise in two features a column."""
    if epsilon is None or data.domain.is_discrete:
        return None
    budget, kind = jaxcd.Budget(epsilon, DELTA), jaxcd.Features(n_features=2)
    return jaxcd.plan_release(data.domain, data.n_samples, kind=kind, budget=budget).smallest_share


def measure(
    models: Sequence[MixedModel], data: Sequence[jaxcd.Dataset], method: str, epsilon: float | None
) -> dict[str, Any]:
    """Means over the models; ``seconds`` the median of a run."""
    graphs, seconds = [], []
    for model, each in zip(models, data, strict=True):
        with ex.Clock() as clock:
            graphs.append(_found(each, METHODS[method][1], epsilon, model.seed))
        seconds.append(clock.seconds)
    return {
        **ex.means(ex.scores(graphs, [model.cpdag() for model in models])),
        "seconds": median(seconds),
        "hidden": _hidden(data[0], epsilon),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a number of nodes and records, method and epsilon; epsilon is None without
    privacy.
    """
    for p in chosen.nodes:
        models = [MixedModel.draw(p, FIRST_MODEL + i) for i in range(chosen.models)]
        for n in chosen.sizes:
            for method in chosen.methods:
                bins, _ = METHODS[method]
                data = [model.sample(n, bins=bins) for model in models]
                none = (None,) if method == "Features" else ()
                for epsilon in (*chosen.epsilons, *none):
                    values = (p, n, method, epsilon, chosen.models)
                    yield values, measure, models, data, method, epsilon


KEY = ("n_nodes", "n_samples", "method", "epsilon", "n_models")
EXPERIMENT = ex.Experiment(
    "mixed",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "columns=n_nodes:d; rows=n_samples:,; method; epsilon:g|no privacy; "
        "arc F1 (se)=arc_f1+:.3f; skeleton F1 (se)=skeleton_f1+:.3f; seconds:.2f; hidden:.3f|"
    ),
    options=(
        ex.counts("--nodes", "columns", [10, 20], [6]),
        ex.counts("--sizes", "records", [1_000, 3_000, 10_000, 100_000], [3_000]),
        ex.numbers("--epsilons", "totals", [0.5, 1.0, 4.0], [1.0]),
        ex.names("--methods", "methods", list(METHODS), list(METHODS), list(METHODS)),
        ex.one_count("--models", "models of each row", 20, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
