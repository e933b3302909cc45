"""Whether an edge scored c by ``edge_confidence`` returns in c of the runs, over new data and new
noise.

``python -m benchmarks.reliability [--quick] [--kinds KIND ...] [--parts PART ...] [--truths N]
[--runs R] [--draws B] [--out FILE]``

A truth is a random graph with random parameters, a random number of rows (500 to 10,000) and a
random epsilon (.1 to 2), so that many edges are uncertain; the built-in networks have 5,000 rows
and epsilon 1.  The same search runs R times on new rows with new noise; the first run's release is
given to ``edge_confidence``, without recalibration and with B draws.  Recorded for each pair of
columns: in how many of the B draws it was joined, whether the first run found it, and in how many
of the R - 1 other runs it was joined; and what the release says of the pairs (``facts``: a number
for all, or one for each).

Kinds: ``histogram``, ``marginals`` and ``log-linear`` (3, 5 and 8 discrete columns of 2 or 3
levels, tables from a Dirichlet), ``moments`` (8 columns, linear Gaussian), ``features`` (6 numeric
and nominal columns of :mod:`benchmarks.mixed`), ``rare`` (5 such columns and one independent of
them, of which three levels are held by 2 to 20 people) and ``discretised`` (8 such columns, or 7
and an independent one with rare levels, cut at bought quantiles).  Truths of the set ``fitted`` fit
the numbers of ``jaxcd/discovery/reliability.json`` (``python -m benchmarks.reliability_fit``);
those of the set ``held-out`` have other seeds and never fit anything, and so have the built-in
networks and the patients of :mod:`benchmarks.patients` (set ``networks``).
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import jax
import networkx as nx
import numpy as np
import pandas as pd

import jaxcd
from benchmarks import experiment as ex
from benchmarks.mixed import MixedModel
from benchmarks.patients import patients
from jaxcd.data.networks import BayesianNetwork
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.graphs import random_dag
from jaxcd.releases import ReleaseKind

KINDS: dict[str, ReleaseKind] = {
    "histogram": jaxcd.Histogram(),
    "marginals": jaxcd.Marginals(),
    "log-linear": jaxcd.LogLinear(),
    "moments": jaxcd.SecondMoments(),
    "features": jaxcd.Features(),
    "rare": jaxcd.Features(),
    "discretised": jaxcd.Discretised(),
}
NETWORKS = ("cancer", "earthquake", "survey", "asia")
N_COLUMNS = {"histogram": 3, "marginals": 5, "log-linear": 8}
N_MIXED = {"features": 6, "rare": 6, "discretised": 8}
NAMED = {**dict.fromkeys(N_COLUMNS, NETWORKS), "rare": ("patients",)}
PARTS = ("fitted", "held-out", "networks")
FIRST_SEED = {"fitted": 10_000, "held-out": 20_000}
DELTA = 1e-6
Sampler = Callable[[int], jaxcd.Dataset]


def discrete_network(seed: int, *, n_columns: int) -> BayesianNetwork:
    """A random network of columns of 2 or 3 levels."""
    rng, dag = (
        np.random.default_rng([seed, 2]),
        random_dag(n_columns, expected_degree=2.0, seed=seed),
    )
    names = tuple(f"x{node}" for node in sorted(dag))
    levels = {name: int(rng.integers(2, 4)) for name in names}
    parents = {f"x{v}": tuple(f"x{u}" for u in sorted(dag.predecessors(v))) for v in sorted(dag)}
    tables = {
        name: rng.dirichlet(np.full(levels[name], 1.5), size=[levels[u] for u in parents[name]])
        for name in names
    }
    domain = jaxcd.Domain({n: jaxcd.Categorical(tuple(range(k))) for n, k in levels.items()})
    return BayesianNetwork(f"random-{seed}", domain, parents, tables)


def with_region(data: jaxcd.Dataset, *, seed: int) -> jaxcd.Dataset:
    """The columns and an independent one, of six common levels and three of 2 to 20 people."""
    rng, n = np.random.default_rng([seed, 3]), data.n_samples
    region = rng.integers(6, size=n)
    rare = np.repeat([6, 7, 8], [2, 5, 20])
    region[rng.permutation(n)[: len(rare)]] = rare
    columns = {
        name: data.column(name) if data.domain[name].is_discrete else data.values(name)
        for name in data.names
    }
    domain = {
        **{name: data.domain[name] for name in data.names},
        "region": jaxcd.Categorical(tuple(range(9))),
    }
    frame = pd.DataFrame({**columns, "region": region})
    return jaxcd.Dataset.from_frame(frame, domain=jaxcd.Domain(domain))


def scale_of(seed: int) -> tuple[int, float]:
    """The number of rows and the epsilon of a random truth, both log-uniform."""
    rng = np.random.default_rng([seed, 1])
    rows = math.exp(rng.uniform(math.log(5e2), math.log(1e4)))
    return int(rows), round(math.exp(rng.uniform(math.log(0.1), math.log(2.0))), 3)


def random_truth(kind: str, seed: int) -> Sampler:
    """How the rows of a truth are drawn, by the number of the draw."""
    n = scale_of(seed)[0]
    if kind in N_COLUMNS:
        network = discrete_network(seed, n_columns=N_COLUMNS[kind])
        return lambda draw: network.sample(n, key=jax.random.key(1000 * seed + draw))
    if kind == "moments":
        dag = random_dag(8, expected_degree=2.0, seed=seed)
        dag = nx.relabel_nodes(dag, {node: f"x{node}" for node in dag})
        model = linear_gaussian_sem(dag, key=jax.random.key(seed))
        return lambda draw: model.sample(n, key=jax.random.key(1000 * seed + draw))
    has_rare = kind == "rare" or (kind == "discretised" and seed % 2 == 1)
    mixed = MixedModel.draw(N_MIXED[kind] - has_rare, seed)

    def sample(draw: int) -> jaxcd.Dataset:
        data = mixed.sample(n, draw=1 + draw)
        return with_region(data, seed=1000 * seed + draw) if has_rare else data

    return sample


def named_truth(name: str) -> Sampler:
    """Rows of a built-in network, or of patients."""
    if name == "patients":
        return lambda draw: patients(10_000, seed=500 + draw)
    network = jaxcd.networks.load(name)
    return lambda draw: network.sample(5_000, key=jax.random.key(draw))


def measure(
    kind: str, sampler: Sampler, runs: int, draws: int, epsilon: float = 1.0
) -> dict[str, Any]:
    """What is recorded of one truth: for each pair (joined in draws, found, joined in other
    runs).
    """
    releases, graphs = [], []
    with ex.Clock() as clock:
        for run in range(runs):
            noise = jaxcd.SimulatedNoise(jax.random.key(77 + run))
            release = jaxcd.release(
                sampler(run), KINDS[kind], budget=jaxcd.Budget(epsilon, DELTA), noise=noise
            )
            releases.append(release)
            graphs.append(jaxcd.search(release))
        shares = jaxcd.edge_confidence(releases[0], graphs[0], n_draws=draws, calibrated=False)
    names = releases[0].names
    joined = np.array([run.graph.reordered(names).adjacency for run in graphs])
    upper = np.triu_indices(len(names), 1)
    records = np.column_stack(
        [np.rint(shares.adjacency * draws)[upper], joined[0][upper], joined[1:].sum(0)[upper]]
    )
    facts = [np.round(of_pairs[upper], 4) for of_pairs in releases[0].facts_of_pairs()]
    return {
        "pairs": records.astype(int).tolist(),
        "facts": [x[0].item() if (x == x[0]).all() else x.tolist() for x in facts],
        "seconds": clock.seconds,
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a truth."""
    runs, draws = chosen.runs, chosen.draws
    for place in range(chosen.truths):
        for part in chosen.parts:
            for kind in chosen.kinds if part in FIRST_SEED else ():
                seed = FIRST_SEED[part] + place
                values = (kind, part, str(seed), runs, draws)
                yield (
                    values,
                    measure,
                    kind,
                    random_truth(kind, seed),
                    runs,
                    draws,
                    scale_of(seed)[1],
                )
    for kind, names in NAMED.items() if "networks" in chosen.parts else ():
        for name in names if kind in chosen.kinds else ():
            values = (kind, "networks", name, runs, draws)
            yield values, measure, kind, named_truth(name), runs, draws


KEY = ("kind", "part", "truth", "n_runs", "n_draws")
EXPERIMENT = ex.Experiment(
    "reliability",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of("kind; part; truth; runs=n_runs:d; draws=n_draws:d; seconds:.2f"),
    options=(
        ex.names("--kinds", "kinds", tuple(KINDS), list(KINDS)),
        ex.names("--parts", "sets of truths", PARTS, list(PARTS), ["fitted", "held-out"]),
        ex.one_count("--truths", "truths of each kind and set", 40, 1),
        ex.one_count("--runs", "runs of each truth", 9, 3),
        ex.one_count("--draws", "draws of edge_confidence", 20, 3),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
