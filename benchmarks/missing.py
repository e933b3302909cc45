"""Tables with missing cells: left out, or read as a level, against complete rows that know as much.

``python -m benchmarks.missing [--quick] [--data FOLDER] [--networks NAME ...] [--rows N]
[--rates R ...] [--epsilons E ...] [--runs R] [--resume] [--out FILE]``

Cells of every column are missing completely at random.  A pair of columns is then known in
n' = (1 - rate)^2 n rows: *complete* is the same search on n' complete rows, at the same budget
(delta 1e-6), in the release that ``jaxcd.recommend`` names for each domain.  *Declared* is the same
of complete rows whose domain still says that cells may be missing, as it must where that is not
public: what it costs to declare them, whether or not any is missing.  The epsilon ``none`` is
without privacy: ``jaxcd.ges`` on the rows.  Against the true CPDAG; means over runs (run r: data
seed r + 50, missing cells by seed r, noise seed r + 777).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.data import BayesianNetwork

DELTA = 1e-6
NONE = "none"
KEY = ("network", "n_samples", "rate", "epsilon", "n_runs")


def with_holes(data: jaxcd.Dataset, rate: float, seed: int) -> jaxcd.Dataset:
    """Discrete data whose cells are missing completely at random."""
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical(c.levels, missing=True) for name, c in data.domain.columns.items()}
    )
    codes = np.array(data.codes)
    gone = np.random.default_rng(seed).random(codes.shape) < rate
    missing = np.array([column.missing_code for column in domain.columns.values()])
    codes[gone] = missing[np.nonzero(gone)[1]]
    return jaxcd.Dataset.from_codes(codes, domain=domain)


def measure(
    network: BayesianNetwork, n: int, rate: float, epsilon: float | None, runs: int
) -> dict[str, Any]:
    """``runs`` tables with missing cells, each searched in both readings, and complete ones of a
    domain without and with missing cells.
    """
    found: dict[str, list[Any]] = {"ignore": [], "level": [], "complete": [], "declared": []}
    kind: Any = None
    for seed in range(runs):
        holes = with_holes(network.sample(n, key=ex.key(50, seed)), rate, seed)
        complete = network.sample(round((1 - rate) ** 2 * n), key=ex.key(50, seed))
        if epsilon is None:
            for reading in ("ignore", "level"):
                run = jaxcd.ges(holes, budget=jaxcd.NO_PRIVACY, missing=reading, max_parents=4)
                found[reading].append(run.graph)
            run = jaxcd.ges(complete, budget=jaxcd.NO_PRIVACY, max_parents=4)
            found["complete"].append(run.graph)
            run = jaxcd.ges(with_holes(complete, 0.0, seed), budget=jaxcd.NO_PRIVACY, max_parents=4)
            found["declared"].append(run.graph)
            continue
        budget = jaxcd.Budget(epsilon, DELTA)
        bought = {}
        declared = with_holes(complete, 0.0, seed)
        for name, data in (("holes", holes), ("complete", complete), ("declared", declared)):
            kind = jaxcd.recommend(data.domain, data.n_samples, budget=budget).kind
            noise = jaxcd.SimulatedNoise(ex.key(777, seed))
            bought[name] = jaxcd.release(data, kind, budget=budget, noise=noise)
        for reading in ("ignore", "level"):
            found[reading].append(jaxcd.search(bought["holes"], missing=reading).graph)
        for name in ("complete", "declared"):
            found[name].append(jaxcd.search(bought[name]).graph)
    scores = {
        f"{name}_{column}": values
        for column, graphs in found.items()
        for name, values in ex.scores(graphs, network.cpdag()).items()
    }
    return {"known": round((1 - rate) ** 2 * n), **ex.means(scores)}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row a network, rate and epsilon."""
    for name, network in load_networks(chosen.networks, chosen.data).items():
        for rate in chosen.rates:
            for epsilon in chosen.epsilons:
                number = None if epsilon == NONE else float(epsilon)
                values = (name, chosen.rows, rate, epsilon, chosen.runs)
                yield values, measure, network, chosen.rows, rate, number, chosen.runs


EXPERIMENT = ex.Experiment(
    "missing",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "network; rows=n_samples:,; rate; known=known:,; epsilon; runs=n_runs; "
        "arc F1 ignore (se)=arc_f1_ignore+:.3f; level (se)=arc_f1_level+:.3f; "
        "complete (se)=arc_f1_complete+:.3f; declared (se)=arc_f1_declared+:.3f; "
        "skeleton F1 ignore=skeleton_f1_ignore:.3f; "
        "level=skeleton_f1_level:.3f; complete=skeleton_f1_complete:.3f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "default: three", full=["asia", "sachs", "child"], quick=["cancer"]),
        ex.one_count("--rows", "records", 100_000, 5_000),
        ex.numbers("--rates", "shares of missing cells", full=[0.05, 0.2, 0.4], quick=[0.2]),
        ex.names("--epsilons", "numbers, or none", full=[NONE, "1"], quick=[NONE, "4"]),
        ex.one_count("--runs", "runs of each row", 10, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
