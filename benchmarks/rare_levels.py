"""A column that is independent of everything and has levels held by a handful of people: how often
is it joined to another?

``python -m benchmarks.rare_levels [--quick] [--tables NAME ...] [--rows N ...] [--runs R]
[--resume] [--out FILE]``

The patients of :mod:`benchmarks.patients`, whose ``region`` has four levels that 2, 2, 5 and 20
people hold, at delta 1e-6, by ``jaxcd.discover``, which chooses the release: all ten columns with
age and bmi as numbers (``mixed``) or in bins (``binned``), and five of the columns (``few``).
Reported are the runs in which ``region`` has an edge, the number of these edges and of all, and F1
of the skeleton where no other column is left out.  Run r: data seed r, noise seed r + 1000.

Beside them tables of which all columns are independent, normal ones and discrete ones with the
shares of levels that the table's name says (``INDEPENDENT``): every edge is false, and counted.

What may be seen: a log-linear model takes in a pair at the level of
``jaxcd.LogLinear(alpha=None)``, with 10 columns and 10,000 rows .01, so that one of region's 9
pairs may join in up to .09 of the runs.  That is the one run of 20 in the row of 10,000 binned
rows: of one pair p = .009.  In 200 runs (``--tables binned --rows 10000 --runs 200``) it is the
only one, because the test is careful where levels are rare.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.patients import cpdag, patients

DELTA = 1e-6
FEW = ("region", "smoker", "hypertension", "stage", "treatment")
INDEPENDENT: dict[str, tuple[int, tuple[tuple[float, ...], ...]]] = {
    "binary 1%": (5, ((0.5, 0.5), (0.99, 0.01))),
    "binary 5%": (5, ((0.5, 0.5), (0.95, 0.05))),
    "constant": (2, ((1.0, 0.0),)),
    "97, 2 and 1%": (4, ((0.97, 0.02, 0.01),)),
    "five binary 5%": (1, ((0.95, 0.05),) * 5),
    "ten binary 10%": (2, ((0.9, 0.1),) * 10),
}
"""Tables of independent columns: how many numeric ones, and the shares of levels of the others."""
SIZES: dict[str, tuple[tuple[int, float], ...]] = {
    "mixed": ((10_000, 1.0), (30_000, 1.0), (30_000, 4.0)),
    "binned": ((10_000, 1.0), (30_000, 1.0), (30_000, 4.0), (100_000, 1.0)),
    "few": ((3_000, 1.0), (10_000, 1.0), (30_000, 1.0), (30_000, 4.0)),
    **dict.fromkeys(INDEPENDENT, ((3_000, 1.0), (10_000, 1.0), (50_000, 1.0))),
}
"""Tables, with numbers of rows and epsilons."""
KEY = ("table", "n_samples", "epsilon", "n_runs")


def independent(table: str, n: int, seed: int) -> jaxcd.Dataset:
    """Rows of a table of independent columns."""
    n_numbers, discrete = INDEPENDENT[table]
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n) for _ in range(n_numbers)]
    columns += [rng.choice(len(shares), size=n, p=shares) for shares in discrete]
    domain: dict[str, Any] = {f"x{j}": jaxcd.Numeric(-5, 5) for j in range(n_numbers)}
    for j, shares in enumerate(discrete):
        domain[f"d{j}"] = jaxcd.Categorical(tuple(range(len(shares))))
    return jaxcd.Dataset.from_array(np.column_stack(columns), domain=jaxcd.Domain(domain))


def rows_of(table: str, n: int, seed: int) -> jaxcd.Dataset:
    """The rows of a table."""
    if table in INDEPENDENT:
        return independent(table, n, seed)
    data = patients(n, seed=seed, mixed=table == "mixed")
    return data.select(FEW) if table == "few" else data


def measure(table: str, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """``runs`` tables with one noise draw each."""
    graphs, kinds = [], set()
    for seed in range(runs):
        found = jaxcd.discover(
            rows_of(table, n, seed),
            budget=jaxcd.Budget(epsilon, DELTA),
            key=None,
            noise=jaxcd.SimulatedNoise(ex.key(1000, seed)),
        )
        graphs.append(found.graph)
        kinds.add(str(found.info["algorithm"]))
    search, n_edges = " or ".join(sorted(kinds)), ex.mean(graph.n_edges for graph in graphs)
    if table in INDEPENDENT:
        with_edges = sum(graph.n_edges > 0 for graph in graphs)
        return {"search": search, "runs_with_edges": with_edges, "n_edges": n_edges}
    joined = [int(graph.adjacency[graph.index("region")].sum()) for graph in graphs]
    truth = cpdag()
    return {
        "search": search,
        "runs_with_region": sum(number > 0 for number in joined),
        "region_edges": sum(joined),
        "n_edges": n_edges,
        **({} if table == "few" else ex.means(ex.scores(graphs, truth, "skeleton_f1"))),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row a table, number of rows and epsilon."""
    for table in chosen.tables:
        for n, epsilon in SIZES[table][:1] if chosen.quick else SIZES[table]:
            if chosen.rows and n not in chosen.rows:
                continue
            values = (table, n, epsilon, chosen.runs)
            yield values, measure, table, n, epsilon, chosen.runs


EXPERIMENT = ex.Experiment(
    "rare_levels",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "table; rows=n_samples:,; epsilon:g; search; runs=n_runs; "
        "runs with an edge of region=runs_with_region; such edges=region_edges; "
        "runs with an edge=runs_with_edges; edges=n_edges:.1f; "
        "skeleton F1 (se)=skeleton_f1+:.3f"
    ),
    options=(
        ex.names("--tables", "tables", tuple(SIZES), list(SIZES), ["few"]),
        ex.counts("--rows", "numbers of rows, of those that a table has (default: all)"),
        ex.one_count("--runs", "runs of each row", 20, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
