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

import argparse
import importlib.metadata
import importlib.util
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
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


@dataclass(frozen=True)
class Row:
    """score_difference: ours minus theirs, nats; None where theirs has no DAG in its class."""

    case: str
    n_samples: int
    search: str
    peer: str
    version: str
    first_seconds: float
    seconds: float
    peer_seconds: float
    ratio: float
    score_difference: float | None
    shd: int
    peer_shd: int


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
    for size in sizes:
        case = _random_gaussian(size, n)
        yield Match(
            case,
            "GES",
            partial(_ges, score=case.score),
            "GES",
            "causal-learn",
            partial(_causal_learn, score="local_score_BIC"),
        )
    case = _network(networks.load("asia"), "asia", n, jaxcd.BDeu(equivalent_sample_size=1.0))
    yield Match(
        case,
        "GES",
        partial(_ges, score=case.score),
        "GES",
        "causal-learn",
        partial(_causal_learn, score="local_score_BDeu"),
    )
    for label, network in discrete:
        case = _network(network, label, n, jaxcd.BIC())
        yield Match(
            case,
            "GES",
            partial(_ges, score=case.score),
            "hill climbing",
            "pgmpy",
            partial(_pgmpy, search="hill climbing"),
        )
        if len(case.data.names) <= 10:  # pgmpy's tests of Alarm take hours
            yield Match(
                case,
                "MMHC",
                partial(_mmhc, score=case.score),
                "MMHC",
                "pgmpy",
                partial(_pgmpy, search="mmhc"),
            )


MODULES = {"causal-learn": "causallearn", "pgmpy": "pgmpy"}


def _score_of(case: Case, graph: jaxcd.MixedGraph) -> float | None:
    try:
        return float(score_graph(case.score.prepare(case.data), graph))
    except jaxcd.errors.GraphError:
        return None


def measure(match: Match, n_runs: int) -> Row:
    """Both searches once for their graphs, ours again for its time."""
    case = match.case
    start = time.perf_counter()
    found = match.ours(case.data)
    first = time.perf_counter() - start
    seconds = common.best(lambda: match.ours(case.data), n_runs=n_runs, first=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        peers = match.theirs(case.data)
        peer_seconds = time.perf_counter() - start
    scores = _score_of(case, found), _score_of(case, peers)
    return Row(
        case.label,
        case.data.n_samples,
        match.search,
        f"{match.package} {match.peer}",
        importlib.metadata.version(match.package),
        first,
        seconds,
        peer_seconds,
        peer_seconds / seconds,
        None if None in scores else scores[0] - scores[1],
        int(metrics.shd(found, case.truth)),
        int(metrics.shd(peers, case.truth)),
    )


def table(rows: Sequence[Row]) -> Table:
    """The rows for the screen."""
    shown = Table(title="searches by score beside other packages, same data and score")
    for i, column in enumerate(
        (
            "case",
            "rows",
            "ours",
            "peer",
            "first",
            "again",
            "peer",
            "ratio",
            "score, ours - peer",
            "SHD",
            "peer",
        )
    ):
        shown.add_column(column, justify="right" if i not in (0, 2, 3) else "left", no_wrap=True)
    for row in rows:
        difference = "no DAG" if row.score_difference is None else f"{row.score_difference:+.1f}"
        shown.add_row(
            row.case,
            f"{row.n_samples:,}",
            row.search,
            f"{row.peer} {row.version}",
            f"{row.first_seconds:.2f}",
            f"{row.seconds:.3f}",
            f"{row.peer_seconds:.2f}",
            f"{row.ratio:.1f}",
            difference,
            str(row.shd),
            str(row.peer_shd),
        )
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(__doc__.splitlines()[0], out=common.RESULTS / "search_peers.json")
    options.add_argument(
        "--data", type=Path, default=os.environ.get("JAXCD_DATA"), help="folder with networks/*.bif"
    )
    options.add_argument("--rows", type=common.count, help="records")
    options.add_argument("--runs", type=common.count, help="runs of ours")
    options.add_argument("--nodes", type=common.count, nargs="+", help="of the random graphs")
    full = {"rows": 10_000, "runs": 3, "nodes": [10, 20]}
    return common.parse(
        options, arguments, full=full, quick={"rows": 1_000, "runs": 1, "nodes": [5]}
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints the rows, and writes JSON."""
    chosen = _options(arguments)
    console = Console()
    rows, missing = [], set()
    discrete = [("asia", networks.load("asia"))]
    if not chosen.quick:
        discrete += [
            (name, found)
            for name, found in common.load_networks(None, chosen.data).items()
            if name == "alarm"
        ]
    for match in matches(chosen.nodes, chosen.rows, discrete):
        if importlib.util.find_spec(MODULES[match.package]) is None:
            missing.add(match.package)
            continue
        rows.append(measure(match, chosen.runs))
        console.print(
            f"{rows[-1].case}: {rows[-1].search} {rows[-1].seconds:.2f} s, {rows[-1].peer} "
            f"{rows[-1].peer_seconds:.2f} s"
        )
    for package in sorted(missing):
        console.print(f"{package} is left out: pip install {package}")
    console.print(table(rows))
    common.write_json(
        chosen.out, {"environment": common.environment(), "rows": [asdict(row) for row in rows]}
    )


if __name__ == "__main__":
    main()
