"""Interventions: graphs with known targets, with the intervention as a context, and without.

``python -m benchmarks.interventions [--quick] [--data FOLDER] [--runs R] [--epsilons E ...]
[--rows N] [--networks NAME ...] [--resume] [--out FILE]``

*Sachs.*  The 5,400 discrete cells of Sachs et al. (2005) with the column INT (0: nothing was set,
else one of Mek, PIP2, Akt, PKA, PKC), against the 17 arcs that they learnt (a consensus, not a
truth).  Three readings: *pooled* leaves INT out; *context* says that nothing causes INT (joint
causal inference); *targets* names what was set, so that each protein's factor counts the rows in
which it was not set.  INT and its edges are not counted.

*Networks.*  Rows of a known network, half of them with nothing set, the others in blocks, in each
of which a third of the nodes, drawn at random, are set uniformly.  Against what such data can tell:
the CPDAG for pooled and context, the interventional CPDAG for targets (*told by targets*: how many
arcs it has more).  Pooled, the conditions are mixed, and the true graph does not describe the rows.

Without privacy: ``exact_search`` by BIC and BDeu (weight 1) on the rows up to 12 columns, and
``search`` on a release without noise.  Private: ``search`` on ``Marginals`` and ``LogLinear`` at
(epsilon, 1e-6).
Right, reversed and open count found edges between true neighbours: as the arc is, the other way,
and undirected.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
import pandas as pd

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd.data import BayesianNetwork
from jaxcd.graphs import MixedGraph

DELTA = 1e-6
NOISE_SEED = 999
INT = "INT"
READINGS = ("pooled", "context", "targets")
CELLS = Path("sachs", "sachs_discrete3_interventional_5400.csv.gz")
EDGES = Path("sachs", "sachs_edges_17_bnlearn.csv")
#: the number of the condition and what it sets
SACHS_TARGETS = {2: ("Mek",), 4: ("PIP2",), 7: ("Akt",), 8: ("PKA",), 9: ("PKC",)}
RELEASES = {"Marginals": jaxcd.Marginals(), "LogLinear": jaxcd.LogLinear()}
KEY = ("data", "reading", "method", "epsilon", "n_samples", "n_runs")
MOST_EXACT = 12

Targets = Mapping[int, tuple[str, ...]]


def read_as(frame: pd.DataFrame, domain: jaxcd.Domain, targets: Targets, reading: str) -> Any:
    """The rows with their domain in one of the three readings; INT is the last column."""
    variables = {name: domain[name] for name in domain.names}
    if reading == "pooled":
        return jaxcd.Dataset.from_frame(frame[list(variables)], domain=jaxcd.Domain(variables))
    column = jaxcd.Categorical((0, *sorted(targets)))
    declared = {INT: targets if reading == "targets" else {}}
    whole = jaxcd.Domain({**variables, INT: column}, interventions=declared)
    return jaxcd.Dataset.from_frame(frame[[*variables, INT]], domain=whole)


def sachs(folder: Path) -> tuple[pd.DataFrame, jaxcd.Domain, set[tuple[str, str]]]:
    """The cells, the proteins and the 17 arcs."""
    frame = pd.read_csv(folder / CELLS)
    proteins = [name for name in frame.columns if name != INT]
    arcs = set(pd.read_csv(folder / EDGES).itertuples(index=False, name=None))
    return frame, jaxcd.Domain({name: jaxcd.Ordinal((1, 2, 3)) for name in proteins}), arcs


def drawn_targets(network: BayesianNetwork, seed: int, n_conditions: int = 5) -> Targets:
    """In each condition a third of the nodes, drawn at random."""
    rng = np.random.default_rng(seed)
    size = max(1, len(network.names) // 3)
    return {
        k + 1: tuple(sorted(rng.choice(network.names, size=size, replace=False).tolist()))
        for k in range(n_conditions)
    }


def intervened(network: BayesianNetwork, targets: Targets, n: int, *, key: Any) -> pd.DataFrame:
    """n rows, half of them with nothing set, the others in equal blocks by condition."""
    each = n // (2 * len(targets))
    blocks = []
    for k, names in {0: (), **targets}.items():
        rows = n - each * len(targets) if k == 0 else each
        sample = network.randomised(names).sample(rows, key=jax.random.fold_in(key, k))
        blocks.append(sample.to_frame().assign(**{INT: k}))
    return pd.concat(blocks, ignore_index=True)


def told(network: BayesianNetwork, targets: Targets) -> MixedGraph:
    """The interventional CPDAG: what the DAGs agree on that no such data can tell from the true
    one.
    """
    known = [
        (a, b)
        for a, b in network.dag.edges
        if any((a in names) != (b in names) for names in targets.values())
    ]
    return jaxcd.discovery.oriented_by_knowledge(
        network.cpdag(), jaxcd.Knowledge(required=known) if known else None
    )


def counted(graph: MixedGraph, arcs: set[tuple[str, str]]) -> dict[str, float]:
    """Edges between variables: as the arcs have them, the other way, undirected."""
    names = [name for name in graph.names if name != INT]
    found = graph.reordered([*names, *(name for name in graph.names if name == INT)])
    d = len(names)
    directed = [(names[i], names[j]) for i, j in np.argwhere(found.directed[:d, :d])]
    undirected = [(names[i], names[j]) for i, j in np.argwhere(np.triu(found.undirected[:d, :d]))]
    joined = [*directed, *undirected]
    return {
        "edges": float(len(joined)),
        "right": float(sum(arc in arcs for arc in directed)),
        "reversed": float(sum((b, a) in arcs for a, b in directed)),
        "open": float(sum((a, b) in arcs or (b, a) in arcs for a, b in undirected)),
    }


def variables_only(graph: MixedGraph) -> MixedGraph:
    """The graph without INT."""
    return graph.subgraph([name for name in graph.names if name != INT])


def found_by(method: str, epsilon: float | None, data: Any, seed: int) -> MixedGraph:
    """The graph of one run."""
    if method == "exact, BIC":
        return jaxcd.exact_search(data, budget=jaxcd.NO_PRIVACY).graph
    if method == "exact, BDeu":
        score = jaxcd.BDeu(equivalent_sample_size=1.0)
        return jaxcd.exact_search(data, score=score, budget=jaxcd.NO_PRIVACY).graph
    budget: Any = jaxcd.NO_PRIVACY if epsilon is None else jaxcd.Budget(epsilon, DELTA)
    noise = None if epsilon is None else jaxcd.SimulatedNoise(ex.key(NOISE_SEED, seed))
    bought = jaxcd.release(data, RELEASES[method], budget=budget, noise=noise)
    return jaxcd.search(bought).graph


def measure_sachs(
    folder: Path, reading: str, method: str, epsilon: float | None, runs: int
) -> dict[str, Any]:
    """The same cells in every run, other noise."""
    frame, domain, arcs = sachs(folder)
    data = read_as(frame, domain, SACHS_TARGETS, reading)
    seconds, counts = [], []
    for seed in range(runs):
        with ex.Clock() as clock:
            graph = found_by(method, epsilon, data, seed)
        seconds.append(clock.seconds)
        counts.append(counted(graph, arcs))
    found = {name: [count[name] for count in counts] for name in counts[0]}
    return {**ex.means(found), "seconds": median(seconds)}


def measure_network(
    network: BayesianNetwork, n: int, reading: str, method: str, epsilon: float | None, runs: int
) -> dict[str, Any]:
    """Other targets, rows and noise in every run."""
    arcs, counts, scores = set(network.dag.edges), [], []
    exact, seconds, beyond = [], [], []
    for seed in range(runs):
        targets = drawn_targets(network, seed)
        frame = intervened(network, targets, n, key=ex.key(0, seed))
        data = read_as(frame, network.domain, targets, reading)
        with ex.Clock() as clock:
            graph = variables_only(found_by(method, epsilon, data, seed))
        seconds.append(clock.seconds)
        truth = told(network, targets) if reading == "targets" else network.cpdag()
        beyond.append(float(truth.directed.sum() - network.cpdag().directed.sum()))
        counts.append(counted(graph, arcs))
        scores.append(ex.scores([graph], truth))
        exact.append(float(graph.reordered(truth.names) == truth))
    found = {name: [count[name] for count in counts] for name in counts[0]}
    found["arc_f1"] = [score["arc_f1"][0] for score in scores]
    found["recovered"], found["beyond"] = exact, beyond
    return {**ex.means(found), "seconds": median(seconds)}


def methods(chosen: Namespace, n_columns: int) -> Sequence[tuple[str, float | None]]:
    """What is run, with its epsilon."""
    plain: list[tuple[str, float | None]] = [("Marginals", None)]
    if n_columns <= MOST_EXACT:
        plain = [("exact, BIC", None), ("exact, BDeu", None), *plain]
    return [*plain, *((release, epsilon) for release in RELEASES for epsilon in chosen.epsilons)]


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """A row for each data set, reading and method."""
    folder = chosen.data
    if folder is not None and (Path(folder) / CELLS).is_file():
        for reading in READINGS:
            for method, epsilon in methods(chosen, 11):
                runs = 1 if epsilon is None else chosen.runs
                values = ("sachs, 5,400 cells", reading, method, epsilon, 5_400, runs)
                yield values, measure_sachs, Path(folder), reading, method, epsilon, runs
    for name, network in load_networks(chosen.networks, folder).items():
        for reading in READINGS:
            for method, epsilon in methods(chosen, len(network.names)):
                values = (name, reading, method, epsilon, chosen.rows, chosen.runs)
                yield (
                    values,
                    measure_network,
                    network,
                    chosen.rows,
                    reading,
                    method,
                    epsilon,
                    chosen.runs,
                )


EXPERIMENT = ex.Experiment(
    "interventions",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "data; reading; method; epsilon; rows=n_samples:,; runs=n_runs; edges=edges:.1f; "
        "right (se)=right+:.1f; reversed=reversed:.1f; open=open:.1f; arc F1=arc_f1:.3f; "
        "recovered=recovered:.2f; told by targets=beyond:.1f; seconds:.1f"
    ),
    options=(
        ex.data_option("sachs/*.csv.gz, networks/*.bif"),
        ex.names("--networks", "default: asia and sachs", full=["asia", "sachs"], quick=["asia"]),
        ex.one_count("--rows", "records of a network", 100_000, 5_000),
        ex.one_count("--runs", "runs of each row", 10, 2),
        ex.numbers("--epsilons", "total epsilons of the private runs", (1.0, 4.0), (4.0,)),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
