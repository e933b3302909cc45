"""Many columns: how much is found, how long it takes, and how much memory.

``python -m benchmarks.wide [--quick] [--data FOLDER] [--networks NAME|FILE.bif ...]
[--columns P ...] [--numeric P ...] [--nonlinear P ...] [--compare METHOD ...] [--latent METHOD ...]
[--rows N] [--drawn-rows N] [--epsilons E ...] [--runs R] [--resume] [--out FILE]``

Networks of 32 to 441 columns (water, munin1, andes, pigs), random discrete networks of P columns of
two levels (expected degree 2, every row of a table drawn uniformly), and random linear Gaussian and
nonlinear models of P columns (:func:`jaxcd.data.structural.nonlinear_sem`).  ``jaxcd.discover`` at
(epsilon, 1e-6); without privacy (no epsilon) the same release, searched, and ``jaxcd.ges`` on the
rows, for networks.  Linear models are declared to be linear.  ``--compare``: these methods of
numeric columns, too.  ``--latent``: of networks, too, the release that ``discover`` buys, searched
as if columns were hidden; a PAG has no arc F1 against a CPDAG.

Every run has a process of its own, so that its peak memory is its own: with the interpreter, the
libraries and the data, and with compilation in the seconds.  Arc F1 and skeleton F1 against the
true CPDAG, means over the runs; seconds: the median; GiB: the largest.
"""

from __future__ import annotations

import multiprocessing
import resource
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax
import networkx as nx

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import (
    Source,
    gaussian_source,
    load_networks,
    network_source,
    random_network,
)
from jaxcd.advice.choosing import kind_of_release
from jaxcd.data.structural import nonlinear_sem
from jaxcd.graphs import dag_to_cpdag, random_dag

DELTA = 1e-6
NOISE_SEED = 888
FIRST_DATA = 810_000
WIDE = ["water", "munin1", "andes", "pigs"]
COMPARED = ("Tetrachoric", "SecondMoments", "Features", "Discretised", "tree_pc")
LATENT = ("gfci", "fci")
KEY = ("name", "n_samples", "method", "epsilon", "n_runs")


def nonlinear_source(n_columns: int, n_samples: int) -> Source:
    """Samples of rows, each from its own random nonlinear model of expected degree 2."""

    def source(seed: int) -> tuple[jaxcd.Dataset, jaxcd.MixedGraph]:
        dag = random_dag(n_columns, expected_degree=2.0, seed=seed)
        dag = nx.relabel_nodes(dag, {node: f"x{node}" for node in dag})
        model_key, data_key = jax.random.split(jax.random.key(seed))
        data = nonlinear_sem(dag, key=model_key).sample(n_samples, key=data_key)
        return data, dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag))

    return source


def _source(name: str, n_columns: int, n_samples: int, folder: Path | None) -> Source:
    """Of a numeric model, a random network (both of so many columns) or a named network."""
    if name.startswith(tuple(_NUMERIC)):
        return _NUMERIC[name.partition(",")[0]](n_columns, n_samples)
    if n_columns:
        return network_source(random_network(n_columns, FIRST_DATA), n_samples)
    return network_source(load_networks([name], folder)[name], n_samples)


_NUMERIC = {"linear Gaussian": gaussian_source, "nonlinear": nonlinear_source}


def one_run(
    name: str,
    n_columns: int,
    n_samples: int,
    folder: Path | None,
    method: str,
    epsilon: float | None,
    run: int,
) -> dict[str, float]:
    """Scores, seconds and peak memory of one run, of this whole process."""
    data, truth = _source(name, n_columns, n_samples, folder)(FIRST_DATA + run)
    noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, run))
    with ex.Clock() as clock:
        if method == "ges":
            found = jaxcd.ges(data, budget=jaxcd.NO_PRIVACY)
        elif epsilon is None:
            kind = kind_of_release(data.domain)
            found = jaxcd.search(jaxcd.release(data, kind, budget=jaxcd.NO_PRIVACY))
        elif method in LATENT:
            kind, budget = kind_of_release(data.domain), jaxcd.Budget(epsilon, DELTA)
            bought = jaxcd.release(data, kind, budget=budget, noise=noise)
            found = jaxcd.search(bought, algorithm=jaxcd.Algorithm(method))
        elif method in COMPARED[:-1]:
            kind, budget = getattr(jaxcd, method)(), jaxcd.Budget(epsilon, DELTA)
            found = jaxcd.search(jaxcd.release(data, kind, budget=budget, noise=noise))
        else:
            by = jaxcd.Algorithm.AUTO if method == "discover" else jaxcd.Algorithm.TREE
            budget, key = jaxcd.Budget(epsilon, DELTA), jax.random.key(run)
            linear = name.startswith("linear")
            found = jaxcd.discover(
                data, budget=budget, noise=noise, key=key, algorithm=by, linear=linear
            )
    (arc,), (skeleton,) = ex.scores([found.graph], [truth]).values()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux gives KiB
    arcs = {} if method in LATENT else {"arc_f1": arc}
    return {**arcs, "skeleton_f1": skeleton, "seconds": clock.seconds, "gib": peak}


def measure(runs: int, *case: Any) -> dict[str, Any]:
    """All runs of a case, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    rows = []
    for run in range(runs):
        with context.Pool(1) as pool:
            rows.append(pool.apply(one_run, (*case, run)))
    return {
        **ex.means({name: [row[name] for row in rows] for name in rows[0] if "f1" in name}),
        "seconds": median(row["seconds"] for row in rows),
        "gib": max(row["gib"] for row in rows),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every network and model by every method and epsilon."""
    cases = [(name, 0, chosen.rows) for name in chosen.networks]
    cases += [(f"random, {p}", p, chosen.drawn_rows) for p in chosen.columns]
    numeric = (("linear Gaussian", chosen.numeric), ("nonlinear", chosen.nonlinear))
    cases += [(f"{name}, {p}", p, chosen.drawn_rows) for name, sizes in numeric for p in sizes]
    for name, n_columns, n in cases:
        is_numeric = name.startswith(tuple(_NUMERIC))
        more = chosen.compare if is_numeric else ()
        lines: list[tuple[str, float | None]] = [
            (method, e) for method in ("discover", *more) for e in chosen.epsilons
        ]
        if not is_numeric:
            lines += [(method, e) for method in chosen.latent for e in chosen.epsilons]
            lines += [("release", None), ("ges", None)]
        for method, epsilon in lines:
            values = (name, n, method, epsilon, chosen.runs)
            case = (name, n_columns, n, chosen.data, method, epsilon)
            yield values, measure, chosen.runs, *case


EXPERIMENT = ex.Experiment(
    "wide",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "data=name; rows=n_samples:,; method; epsilon:g; arc F1 (se)=arc_f1+:.3f; "
        "skeleton F1=skeleton_f1:.3f; seconds:.1f; GiB=gib:.2f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "names or BIF files", None, WIDE, []),
        ex.counts("--columns", "of random discrete networks", [1000], [15]),
        ex.counts("--numeric", "columns of linear Gaussian models", [200, 1000], [12]),
        ex.counts("--nonlinear", "columns of nonlinear models", [20, 50, 100, 200], [12]),
        ex.names("--compare", "other methods for numeric columns", COMPARED, [], []),
        ex.names("--latent", "searches as if columns were hidden", LATENT, [], []),
        ex.one_count("--rows", "records of networks", 100_000, 500),
        ex.one_count("--drawn-rows", "records of random networks and models", 20_000, 500),
        ex.numbers("--epsilons", "totals", [1.0, 4.0], [4.0]),
        ex.one_count("--runs", "runs of each row", 3, 1),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
