"""Measure once, search for ever: graphs from one-shot releases, against the total budget.

``python -m benchmarks.releases [--quick] [--data FOLDER] [--networks NAME ...] [--rows N ...]
[--runs R] [--resume] [--out FILE]``

Discrete networks of up to 4,096 cells: ``Histogram`` at pure epsilon 1 and 0.3.  Larger ones:
``Marginals``, and with at most 10,000 rows or 24 columns ``LogLinear``, at (epsilon, 1e-6), epsilon
0.5, 1 and 4, and without privacy, beside ``ges`` on the rows; ``LogLinear`` with at most 10,000
rows also at pure epsilon 1 and 4.  Random linear Gaussian models of 20 variables (expected degree
2, |weights| in [0.5, 1.5]): ``SecondMoments`` at (1, 1e-6), centres and scales bought.  Run r takes
data seed r and noise seed r + 777.

Columns: arc and skeleton F1 against the true CPDAG, mean and standard deviation over the runs; how
often the truth scores higher than the graph that was found, so that no failure of a search is taken
for a loss to privacy (marginals: the best measured subgraph of the truth); seconds for release and
search together, the median.

The file is written after every row.  With ``--resume`` its rows are kept, and only those that it
lacks are run: so the sizes can be measured one after the other.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import Source, gaussian_source, load_networks, network_source
from jaxcd.discovery import score_graph
from jaxcd.discovery.released import score_subgraphs
from jaxcd.releases import GaussianScore, MeasurementErrorScore

DELTA = 1e-6
NOISE_SEED = 777
MOST_CELLS = 4_096
MOST_MODELLED, FEW_COLUMNS = 10_000, 24  # rows or columns up to which LogLinear is run
KEY = ("name", "release", "n_samples", "epsilon", "delta", "n_runs")
_SCORES: dict[type, Callable[[Any, jaxcd.MixedGraph], float]] = {
    jaxcd.Histogram: lambda bought, truth: score_graph(MeasurementErrorScore(bought), truth),
    jaxcd.LogLinear: lambda bought, truth: score_subgraphs(bought.default_score(), truth),
    jaxcd.Marginals: lambda bought, truth: score_subgraphs(bought.default_score(), truth),
    jaxcd.SecondMoments: lambda bought, truth: score_graph(GaussianScore(bought), truth),
}


def measure(source: Source, kind: Any, budget: Any, runs: int) -> dict[str, Any]:
    """``runs`` data sets with one noise draw each; the first is run twice, to compile.  kind: None
    for ``ges`` on the rows.  truth_higher: share of the runs in which the truth scores higher than
    what was found; None for ``ges``.
    """
    graphs, truths, higher, seconds = [], [], [], []
    for seed in range(runs):
        data, truth = source(seed)
        for _ in range(2 if seed == 0 else 1):
            noise = jaxcd.SimulatedNoise(ex.key(NOISE_SEED, seed))
            with ex.Clock() as clock:
                if kind is None:
                    found = jaxcd.ges(data, budget=budget)
                else:
                    bought = jaxcd.release(data, kind, budget=budget, noise=noise)
                    found = jaxcd.search(bought)
        if isinstance(budget, jaxcd.Budget) and not found.spent.epsilon <= budget.epsilon:
            raise AssertionError(f"spent {found.spent} of {budget}")
        seconds.append(clock.seconds)
        graphs.append(found.graph)
        truths.append(truth)
        if kind is not None:
            higher.append(_SCORES[type(kind)](bought, truth) > found.info["score"] + 1e-6)
    return {
        **ex.means(ex.scores(graphs, truths)),
        "truth_higher": ex.mean(higher) if higher else None,
        "seconds": median(seconds),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Data, release, number of rows and budget of every row."""
    names_of = chosen.networks or (["cancer"] if chosen.quick else None)
    p = 5 if chosen.quick else 20
    several = [1.0] if chosen.quick else [0.5, 1.0, 4.0]
    for n in chosen.rows:
        found: list[tuple[str, Source, Any, Any]] = []
        for name, network in load_networks(names_of, chosen.data).items():
            cells = math.prod(k or 1 for k in network.domain.cardinalities)
            source = network_source(network, n)
            if cells <= MOST_CELLS:
                for epsilon in [1.0] if chosen.quick else [1.0, 0.3]:
                    found.append((name, source, jaxcd.Histogram(), jaxcd.Budget(epsilon)))
            if cells > MOST_CELLS or chosen.quick:
                budgets = [jaxcd.Budget(epsilon, DELTA) for epsilon in several]
                for budget in [*budgets, jaxcd.NO_PRIVACY]:
                    found.append((name, source, jaxcd.Marginals(), budget))
                    if n <= MOST_MODELLED or len(network.names) <= FEW_COLUMNS:
                        found.append((name, source, jaxcd.LogLinear(), budget))
                if n <= MOST_MODELLED:
                    for epsilon in several[1:]:
                        found.append((name, source, jaxcd.LogLinear(), jaxcd.Budget(epsilon)))
                found.append((name, source, None, jaxcd.NO_PRIVACY))
        moments = jaxcd.SecondMoments(), jaxcd.Budget(1.0, DELTA)
        found.append((f"linear Gaussian, {p}", gaussian_source(p, n), *moments))
        for name, source, kind, budget in found:
            paid = isinstance(budget, jaxcd.Budget)
            price = (budget.epsilon, budget.delta) if paid else (None, None)
            title = "no release" if kind is None else type(kind).__name__
            values = (name, title, n, *price, chosen.runs)
            yield values, measure, source, kind, budget, chosen.runs


EXPERIMENT = ex.Experiment(
    "releases",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "data=name; release; rows=n_samples:,; epsilon:g; delta:g; "
        "arc F1 (se)=arc_f1+:.3f; skeleton F1=skeleton_f1:.3f; "
        "truth higher=truth_higher:.2f; seconds:.2f"
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "default: all that are there"),
        ex.counts("--rows", "records", [100_000, 10_000], [5_000]),
        ex.one_count("--runs", "runs of each row", 10, 2),
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
