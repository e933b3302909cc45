"""Searches by score beside other packages: the same data, the same score, in one run.

``python -m benchmarks.search_peers [--quick] [--data FOLDER] [--rows N] [--runs R] [--out FILE]``

- GES (forward, backward and turning phases; Gaussian BIC and BDeu) beside causal-learn's, on random
  graphs.
- GES and MMHC with the discrete BIC beside pgmpy's hill climbing and MMHC, on Asia and, with
  ``--data``, Alarm.

Seconds are the shortest of R runs after one that compiles; a peer runs once.  Beside the time: the
score of what was found (the same BIC or BDeu in nats, ours minus theirs) and the structural Hamming
distance to the true CPDAG.  Peers that are not installed are named and left out.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import networkx as nx
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd import metrics, networks
from jaxcd.discovery import score_graph
from jaxcd.graphs import dag_to_cpdag, from_causal_learn, random_dag

#: of the data sets; no constant of a search was chosen on these
FIRST_DATA = 520_000
NO_PRIVACY = jaxcd.NO_PRIVACY
Find = Callable[[jaxcd.Dataset], jaxcd.MixedGraph]


@dataclass(frozen=True)
class Case:
    """A data set with its truth, and a score."""

    label: str
    data: jaxcd.Dataset
    truth: jaxcd.MixedGraph
    score: Any


@dataclass(frozen=True)
class Match:
    """A search of ours and a peer's on one case."""

    case: Case
    search: str
    ours: Find
    peer: str
    package: str
    theirs: Find


def _ges(data: jaxcd.Dataset, score: Any) -> jaxcd.MixedGraph:
    return jaxcd.ges(data, score=score, budget=NO_PRIVACY).graph


def _mmhc(data: jaxcd.Dataset, score: Any) -> jaxcd.MixedGraph:
    return jaxcd.mmhc(data, score=score, budget=NO_PRIVACY, alpha=0.01).graph


def _causal_learn(data: jaxcd.Dataset, score: str) -> jaxcd.MixedGraph:
    from causallearn.search.ScoreBased.GES import ges

    values = np.column_stack([data.column(name).astype(np.float64) for name in data.names])
    return from_causal_learn(ges(values, score)["G"].graph, names=data.names)


def _pgmpy(data: jaxcd.Dataset, search: str) -> jaxcd.MixedGraph:
    import pandas as pd
    from pgmpy.estimators import BicScore, HillClimbSearch, MmhcEstimator

    frame = pd.DataFrame({name: data.column(name) for name in data.names})
    if search == "mmhc":
        found = MmhcEstimator(frame).estimate(significance_level=0.01)
    else:
        found = HillClimbSearch(frame).estimate(scoring_method=BicScore(frame), show_progress=False)
    dag = nx.DiGraph()
    dag.add_nodes_from(data.names)
    dag.add_edges_from(found.edges())
    return dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag)).reordered(data.names)


def _random_gaussian(n_nodes: int, n: int) -> Case:
    dag = nx.relabel_nodes(
        random_dag(n_nodes, expected_degree=3, seed=FIRST_DATA + n_nodes),
        {i: f"x{i}" for i in range(n_nodes)},
    )
    key = jax.random.key(FIRST_DATA + n_nodes)
    data = jaxcd.data.structural.linear_gaussian_sem(dag, key=key).sample(
        n, key=jax.random.fold_in(key, 1)
    )
    return Case(
        f"Gaussian, {n_nodes} nodes",
        data,
        dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag)).reordered(data.names),
        jaxcd.BIC(),
    )


def _network(network: jaxcd.data.BayesianNetwork, label: str, n: int, score: Any) -> Case:
    data = network.sample(n, key=jax.random.key(FIRST_DATA))
    return Case(label, data, network.cpdag().reordered(data.names), score)


def matches(
    sizes: Sequence[int], n: int, discrete: Sequence[tuple[str, jaxcd.data.BayesianNetwork]]
) -> Iterator[Match]:
    """What is compared; a data set is drawn when its turn comes."""

    def of_ges(case: Case, score: str) -> Match:
        ours, theirs = partial(_ges, score=case.score), partial(_causal_learn, score=score)
        return Match(case, "GES", ours, "GES", "causal-learn", theirs)

    for size in sizes:
        yield of_ges(_random_gaussian(size, n), "local_score_BIC")
    bdeu = jaxcd.BDeu(equivalent_sample_size=1.0)
    yield of_ges(_network(networks.load("asia"), "asia", n, bdeu), "local_score_BDeu")
    for label, network in discrete:
        case = _network(network, label, n, jaxcd.BIC())
        ours, theirs = partial(_ges, score=case.score), partial(_pgmpy, search="hill climbing")
        yield Match(case, "GES", ours, "hill climbing", "pgmpy", theirs)
        if len(case.data.names) <= 10:  # pgmpy's tests of Alarm take hours
            ours, theirs = partial(_mmhc, score=case.score), partial(_pgmpy, search="mmhc")
            yield Match(case, "MMHC", ours, "MMHC", "pgmpy", theirs)


MODULES = {"causal-learn": "causallearn", "pgmpy": "pgmpy"}


def _score_of(case: Case, graph: jaxcd.MixedGraph) -> float | None:
    try:
        return float(score_graph(case.score.prepare(case.data), graph))
    except jaxcd.errors.GraphError:
        return None


def measure(match: Match, n_runs: int) -> dict[str, Any]:
    """Both searches once for their graphs, ours again for its time.  score_difference: ours minus
    theirs, nats; None where theirs has no DAG in its class.
    """
    if importlib.util.find_spec(MODULES.get(match.package, match.package)) is None:
        raise ex.LeftOut(f"pip install {match.package}")
    case = match.case
    with ex.Clock() as first:
        found = match.ours(case.data)
    seconds = ex.best(lambda: match.ours(case.data), n_runs=n_runs, first=False)
    with warnings.catch_warnings(), ex.Clock() as clock:
        warnings.simplefilter("ignore")
        peers = match.theirs(case.data)
    scores = _score_of(case, found), _score_of(case, peers)
    return {
        "version": importlib.metadata.version(match.package),
        "first_seconds": first.seconds,
        "seconds": seconds,
        "peer_seconds": clock.seconds,
        "ratio": clock.seconds / seconds,
        "score_difference": None if None in scores else scores[0] - scores[1],
        "shd": int(metrics.shd(found, case.truth)),
        "peer_shd": int(metrics.shd(peers, case.truth)),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every match; Alarm only where its file is, and not with ``--quick``."""
    discrete = [("asia", networks.load("asia"))]
    if not chosen.quick:
        loaded = load_networks(None, chosen.data)
        discrete += [(name, found) for name, found in loaded.items() if name == "alarm"]
    for match in matches(chosen.nodes, chosen.rows, discrete):
        peer = f"{match.package} {match.peer}"
        yield (
            (match.case.label, match.case.data.n_samples, match.search, peer),
            measure,
            match,
            chosen.runs,
        )


KEY = ("case", "n_samples", "search", "peer")
EXPERIMENT = ex.Experiment(
    "search_peers",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "case; rows=n_samples:,; ours=search",
        ex.Column("peer", lambda row: f"{row.peer} {row.version}"),
        "first=first_seconds:.2f; again=seconds:.3f; peer=peer_seconds:.2f; ratio:.1f; "
        "score, ours - peer=score_difference:+.1f|no DAG; SHD=shd:d; peer=peer_shd:d",
    ),
    title="searches by score beside other packages, same data and score",
    options=(
        ex.data_option("networks/*.bif"),
        ex.one_count("--rows", "records", 10_000, 1_000),
        ex.one_count("--runs", "runs of ours", 3, 1),
        ex.counts("--nodes", "of the random graphs", [10, 20], [5]),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
