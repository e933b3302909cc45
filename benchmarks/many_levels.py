"""Columns of many levels: what an edge between them may cost.

``python -m benchmarks.many_levels [--quick] [--tables NAME ...] [--rows N ...] [--epsilons E ...]
[--runs R] [--resume] [--out FILE]``

Random tables of columns of 2 to 60 levels, by three laws in turn (run r has the law r mod 3):
``codes``, a child follows the codes of its parents; ``cut``, numbers follow numbers, and all are
cut into levels; ``rows``, every row of a child's table is drawn alone.  The release that
``jaxcd.recommend`` names at (epsilon, 1e-6) is bought once a run and searched

- by ``jaxcd.search``, in which six levels of a column pay BIC's whole price and further ones less
  (:mod:`jaxcd.scores.level_margin`);
- with three and four such levels, and with all, which is BIC's price;
- by PC's tests on it.

Beside them ``jaxcd.ges`` on the rows without privacy, with BIC's price.  Arc F1 and skeleton F1
against the true CPDAG, means over the runs.  Columns of ``independent`` tables have shares of
levels like 1, 1/2, 1/3, ...; every edge there is false, and counted.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import networkx as nx
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from jaxcd.graphs import dag_to_cpdag, random_dag

DELTA = 1e-6
FIRST_DATA, FIRST_NOISE = 930_000, 931_000
LAWS = ("codes", "cut", "rows")
TABLES: dict[str, tuple[int, float, int, int]] = {
    "2 of 40": (2, 1.0, 40, 40),
    "3 of 15": (3, 1.4, 15, 15),
    "4 of 8": (4, 1.8, 8, 8),
    "5 of 30": (5, 2.0, 30, 30),
    "8 of 5 to 40": (8, 2.0, 5, 40),
    "10 of 12": (10, 2.0, 12, 12),
    "12 of 8": (12, 2.0, 8, 8),
    "15 of 5": (15, 2.2, 5, 5),
    "35 of 3 to 60": (35, 2.6, 3, 60),
    "independent, 2 of 40": (2, 0.0, 40, 40),
    "independent, 8 of 5 to 40": (8, 0.0, 5, 40),
}
"""Columns, expected degree, fewest and most levels, between which their logarithms are uniform."""
LEVELS: dict[str, int | None] = {"search": 6, "3 levels": 3, "4 levels": 4, "all levels": None}
METHODS = (*LEVELS, "pc", "ges")
KEY = ("table", "n_samples", "epsilon", "method", "n_runs")


def rows_of(table: str, n: int, run: int) -> tuple[jaxcd.Dataset, jaxcd.MixedGraph]:
    """The rows of a run, and the true CPDAG."""
    n_columns, degree, fewest, most = TABLES[table]
    rng = np.random.default_rng([FIRST_DATA, run])
    drawn = np.exp(rng.uniform(math.log(fewest), math.log(most + 0.49), n_columns))
    levels = np.rint(drawn).astype(int).clip(fewest, most)
    dag = random_dag(n_columns, expected_degree=degree, seed=FIRST_DATA + run)
    codes: dict[str, np.ndarray] = {}
    numbers: dict[str, np.ndarray] = {}
    size = dict(zip(dag, levels.tolist(), strict=True))
    kept = nx.DiGraph()
    for name in nx.topological_sort(dag):
        parents = sorted(dag.predecessors(name))[:3]
        kept.add_node(name)
        kept.add_edges_from((parent, name) for parent in parents)
        if degree == 0:
            shares = 1 / np.arange(1, size[name] + 1)
            codes[name] = rng.choice(size[name], size=n, p=shares / shares.sum())
        elif LAWS[run % len(LAWS)] == "rows":
            codes[name] = _by_rows(rng, n, size[name], [(codes[p], size[p]) for p in parents])
        else:
            above = codes if LAWS[run % len(LAWS)] == "codes" else numbers
            numbers[name] = _number(rng, n, [above[parent] for parent in parents])
            codes[name] = _cut(rng, numbers[name], size[name])
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical(tuple(map(str, range(size[name])))) for name in dag}
    )
    data = jaxcd.Dataset.from_codes(np.column_stack([codes[name] for name in dag]), domain=domain)
    return data, dag_to_cpdag(jaxcd.MixedGraph.from_dag(kept))


def _number(rng: np.random.Generator, n: int, parents: list[np.ndarray]) -> np.ndarray:
    """A signed sum of the standardised parents, of which it has a share, plus normal noise."""
    effect = sum((rng.choice([-1, 1]) * _standard(p) for p in parents), np.zeros(n))
    share = rng.uniform(0.5, 0.9) if parents else 0.0
    return share * _standard(effect) + math.sqrt(1 - share**2) * rng.normal(size=n)


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / max(float(values.std()), 1e-9)


def _cut(rng: np.random.Generator, numbers: np.ndarray, k: int) -> np.ndarray:
    cuts = np.quantile(numbers, np.cumsum(rng.dirichlet(np.full(k, 3.0)))[:-1])
    return np.searchsorted(cuts, numbers)


def _by_rows(
    rng: np.random.Generator, n: int, k: int, parents: list[tuple[np.ndarray, int]]
) -> np.ndarray:
    """Four fifths of a share of its own for each combination of the parents."""
    row = np.zeros(n, dtype=int)
    for codes, levels in parents:
        row = row * levels + codes
    n_rows = math.prod(levels for _, levels in parents)
    own = rng.dirichlet(np.full(k, min(5.0 / k, 1.0)), n_rows)
    cumulated = np.cumsum(0.8 * own + 0.2 * rng.dirichlet(np.ones(k)), axis=1)
    drawn = rng.uniform(size=n) * cumulated[row, -1]
    found = np.zeros(n, dtype=int)
    for level in range(k - 1):
        found += drawn > cumulated[row, level]
    return found


@lru_cache(maxsize=32)
def bought(table: str, n: int, epsilon: float, run: int) -> jaxcd.Release:
    """The release of a run."""
    data, _ = rows_of(table, n, run)
    budget = jaxcd.Budget(epsilon, DELTA)
    kind = jaxcd.recommend(data.domain, n, budget=budget).kind
    assert kind is not None
    return jaxcd.release(
        data, kind, budget=budget, noise=jaxcd.SimulatedNoise(ex.key(FIRST_NOISE, run))
    )


def found(table: str, n: int, epsilon: float, method: str, run: int) -> jaxcd.MixedGraph:
    """The graph of a run."""
    if method == "ges":
        return jaxcd.ges(rows_of(table, n, run)[0], budget=jaxcd.NO_PRIVACY).graph
    release = bought(table, n, epsilon, run)
    if method in ("search", "pc"):
        return jaxcd.search(release, algorithm="release" if method == "search" else "pc").graph
    levels = LEVELS[method]
    if isinstance(release, jaxcd.releases.ReleasedHistogram):
        return jaxcd.discovery.search_histogram(release, full_levels=levels).graph
    return jaxcd.discovery.search_marginals(
        release, **{**release.score_options, "full_levels": levels}
    ).graph


def measure(table: str, n: int, epsilon: float, method: str, runs: int) -> dict[str, Any]:
    """``runs`` tables with one draw of noise each."""
    graphs = [found(table, n, epsilon, method, run) for run in range(runs)]
    n_edges = ex.mean(graph.n_edges for graph in graphs)
    kind = bought(table, n, epsilon, 0).kind
    if TABLES[table][1] == 0:
        return {"release": kind, "n_edges": n_edges}
    truths = [rows_of(table, n, run)[1] for run in range(runs)]
    return {"release": kind, "n_edges": n_edges, **ex.means(ex.scores(graphs, truths))}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row a table, number of rows, epsilon and method."""
    for table in chosen.tables:
        for n in chosen.rows:
            for epsilon in chosen.epsilons:
                for method in METHODS:
                    values = (table, n, epsilon, method, chosen.runs)
                    yield values, measure, table, n, epsilon, method, chosen.runs


EXPERIMENT = ex.Experiment(
    "many_levels",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "table; rows=n_samples:,; epsilon:g; release; method; runs=n_runs; edges=n_edges:.1f; "
        "arc F1 (se)=arc_f1+:.2f; skeleton F1 (se)=skeleton_f1+:.2f"
    ),
    options=(
        ex.names("--tables", "tables", tuple(TABLES), list(TABLES), ["3 of 15"]),
        ex.counts("--rows", "numbers of rows", [20_000], [5_000]),
        ex.numbers("--epsilons", "totals", [1.0, 4.0], [4.0]),
        ex.one_count("--runs", "runs of each row", 6, 3),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
