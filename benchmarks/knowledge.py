"""What three correct tiers are worth: the same releases, searched with and without them.

``python -m benchmarks.knowledge [--quick] [--data FOLDER] [--networks NAME ...] [--rows N]
[--runs R] [--epsilon E] [--resume] [--out FILE]``

Seven networks.  The release is what ``jaxcd.recommend`` says at (epsilon, 1e-6), bought once a run
(run r: data seed r, noise seed r + 555) and searched twice.  The tiers are the first, middle and
last third of the true DAG's depths (the depth of a node: the longest path that ends in it).

Both graphs are scored against one truth: what the DAGs of the true class agree on that fit the
tiers (``jaxcd.discovery.oriented_by_knowledge`` of the true CPDAG).  An undirected edge counts as
two arcs, so a graph without tiers loses the arcs that only tiers can tell; how much that is by
itself says the column *least gain*: 1 less the arc F1 of the true CPDAG against that truth, which
tiers add to a graph that is right without them.  Against the CPDAG, as the other benchmarks have
it: *usual*.  *lower* counts the runs in which the tiers cost arc F1.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from statistics import median
from typing import Any

import networkx as nx

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.data import BayesianNetwork
from jaxcd.discovery import oriented_by_knowledge
from jaxcd.metrics import arc_f1

DELTA = 1e-6
NOISE_SEED = 555
SEVEN = ["cancer", "earthquake", "survey", "asia", "sachs", "child", "alarm"]
KEY = ("network", "n_samples", "epsilon", "n_runs")


def tiers_by_depth(dag: nx.DiGraph, n_tiers: int = 3) -> jaxcd.Knowledge:
    """Tiers that a DAG fits: its nodes by depth, in so many groups."""
    depth: dict[str, int] = {}
    for node in nx.topological_sort(dag):
        depth[node] = max((depth[parent] + 1 for parent in dag.predecessors(node)), default=0)
    n_depths = max(depth.values()) + 1
    tiers: list[list[str]] = [[] for _ in range(n_tiers)]
    for node in dag:
        tiers[n_tiers * depth[node] // n_depths].append(node)
    return jaxcd.Knowledge(tiers=tiers)


def measure(network: BayesianNetwork, n: int, budget: jaxcd.Budget, runs: int) -> dict[str, Any]:
    """``runs`` releases, each searched without and with the tiers."""
    kind = jaxcd.recommend(network.domain, n, budget=budget).kind
    assert kind is not None
    cpdag, tiers = network.cpdag(), tiers_by_depth(network.dag)
    truth = oriented_by_knowledge(cpdag, tiers)
    plain, known, seconds, slower = [], [], [], []
    for seed in range(runs):
        data = network.sample(n, key=ex.key(0, seed))
        noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, seed))
        bought = jaxcd.release(data, kind, budget=budget, noise=noise)
        with ex.Clock() as clock:
            plain.append(jaxcd.search(bought).graph)
        seconds.append(clock.seconds)
        with ex.Clock() as clock:
            known.append(jaxcd.search(bought, knowledge=tiers).graph)
        slower.append(clock.seconds)
    found: dict[str, list[float]] = {}
    for column, graphs in (("plain", plain), ("tiers", known)):
        for name, values in ex.scores(graphs, truth).items():
            found[f"{name}_{column}"] = values
    return {
        "release": type(kind).__name__,
        **ex.means(found),
        "arc_f1_usual": ex.mean(ex.scores(plain, cpdag)["arc_f1"]),
        "least_gain": 1 - float(arc_f1(cpdag, truth)),
        "lower": sum(
            tier < without - 1e-9
            for tier, without in zip(found["arc_f1_tiers"], found["arc_f1_plain"], strict=True)
        ),
        "seconds_plain": median(seconds),
        "seconds_tiers": median(slower),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row a network."""
    for name, network in load_networks(chosen.networks, chosen.data).items():
        budget = jaxcd.Budget(chosen.epsilon, DELTA)
        values = (name, chosen.rows, chosen.epsilon, chosen.runs)
        yield values, measure, network, chosen.rows, budget, chosen.runs


EXPERIMENT = ex.Experiment(
    "knowledge",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "network; release; rows=n_samples:,; runs=n_runs; usual=arc_f1_usual:.3f; "
        "arc F1 without (se)=arc_f1_plain+:.3f; with tiers (se)=arc_f1_tiers+:.3f; "
        "least gain=least_gain:.3f; lower; "
        "skeleton F1 without=skeleton_f1_plain:.3f; with tiers=skeleton_f1_tiers:.3f; "
        "seconds without=seconds_plain:.2f; with=seconds_tiers:.2f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "default: the seven", full=SEVEN, quick=["cancer"]),
        ex.one_count("--rows", "records", 100_000, 5_000),
        ex.one_count("--runs", "runs of each row", 10, 2),
        ex.Option("--epsilon", "total epsilon", 1.0, kind=ex.positive),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
