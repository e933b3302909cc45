"""``Marginals`` or ``LogLinear``: from how much noise on a model of pairs finds more.

``python -m benchmarks.model_noise [--quick] [--data FOLDER] [--networks NAME|FILE.bif ...]
[--columns P ...] [--epsilons E ...] [--runs R] [--resume] [--out FILE]``

Named networks, and random discrete networks of P columns of two to four levels (expected degree
2.5, every row of a table drawn uniformly), 10,000 rows at (epsilon, 1e-6); run r has network r (if
it is drawn), data r and noise r.  Noise: the share of the average count in a table of two columns
that the first round of ``Marginals`` hides, which is public.  Gain: arc and skeleton F1 of
``LogLinear`` less those of ``Marginals``, the mean of the two.

:func:`limits` makes the rule of ``jaxcd.recommend`` of these cells, for domains of few and of many
columns: the noise from which on ``LogLinear`` gains most in all, between two cells that follow each
other (their geometric mean).  The named networks together weigh as much as the random ones: there
are few of them, and they are what tables are like.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks, network_source, random_network
from jaxcd.advice.discrete_rules import noise_of_a_pair
from jaxcd.data import BayesianNetwork

N_SAMPLES, DELTA = 10_000, 1e-6
LEVELS, EXPECTED_DEGREE = (2, 4), 2.5
FIRST_NETWORK, FIRST_NOISE = 950_000, 951_000
KINDS = (jaxcd.Marginals(), jaxcd.LogLinear())
#: the most columns of each class; beyond them there are too many pairs for a model
MOST_COLUMNS = (24, 60)
NETWORKS = ["sachs", "child", "alarm"]
KEY = ("name", "epsilon", "n_runs")


def drawn(n_columns: int, run: int) -> BayesianNetwork:
    """The random network of a run."""
    seed = FIRST_NETWORK + run
    return random_network(n_columns, seed, levels=LEVELS, expected_degree=EXPECTED_DEGREE)


def measure(network: Callable[[int], BayesianNetwork], epsilon: float, runs: int) -> dict[str, Any]:
    """Both releases of every run, searched.  network: of a run."""
    budget = jaxcd.Budget(epsilon, DELTA)
    noises, truths = [], []
    graphs: dict[str, list[jaxcd.MixedGraph]] = {type(kind).__name__: [] for kind in KINDS}
    for run in range(runs):
        own = network(run)
        data, truth = network_source(own, N_SAMPLES)(run)
        noises.append(noise_of_a_pair(own.domain, N_SAMPLES, budget=budget))
        truths.append(truth)
        for kind in KINDS:
            noise = jaxcd.SimulatedNoise(ex.key(FIRST_NOISE, run))
            bought = jaxcd.release(data, kind, budget=budget, noise=noise)
            graphs[type(kind).__name__].append(jaxcd.search(bought).graph)
    found = {name: ex.means(ex.scores(some, truths)) for name, some in graphs.items()}
    return {
        "n_columns": len(own.names),
        "noise": fmean(noises),
        **{
            f"{name.lower()}_{what}": means[what]
            for name, means in found.items()
            for what in ("arc_f1", "skeleton_f1")
        },
    }


def gain(row: Mapping[str, Any]) -> float:
    """Of ``LogLinear`` over ``Marginals``, in arc and skeleton F1 together."""
    return fmean(
        row[f"loglinear_{what}"] - row[f"marginals_{what}"] for what in ("arc_f1", "skeleton_f1")
    )


def gains(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """(noise, gain) of each cell; a gain is divided by the number of cells of its kind, named or
    random.
    """
    is_random = [row["name"].startswith("random") for row in rows]
    number = Counter(is_random)
    return [
        (row["noise"], gain(row) / number[kind]) for row, kind in zip(rows, is_random, strict=True)
    ]


def best_limit(cells: Sequence[tuple[float, float]]) -> float:
    """The noise from which on ``LogLinear`` gains most, of those between two neighbouring cells;
    two digits.

    Args:
        cells: (noise, gain) of each.
    """
    ordered = sorted(cells)
    between = [math.sqrt(a * b) for (a, _), (b, _) in zip(ordered, ordered[1:], strict=False)]
    total = {limit: sum(g for noise, g in ordered if noise >= limit) for limit in between}
    return float(f"{max(total, key=lambda limit: (total[limit], limit)):.2g}")


def limits(rows: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """For each class the most columns, and the noise from which on ``LogLinear`` is recommended."""
    found, fewest = [], 0
    for most in MOST_COLUMNS:
        own = [row for row in rows if fewest < row["n_columns"] <= most]
        found.append([most, best_limit(gains(own))])
        fewest = most
    return found


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every network and budget."""
    cases: dict[str, Callable[[int], BayesianNetwork]] = {
        f"random, {p}": partial(drawn, p) for p in chosen.columns
    }
    if chosen.networks:
        for name, own in load_networks(chosen.networks, chosen.data).items():
            cases[name] = lambda run, own=own: own
    for name, network in cases.items():
        for epsilon in chosen.epsilons:
            yield (name, epsilon, chosen.runs), measure, network, epsilon, chosen.runs


EXPERIMENT = ex.Experiment(
    "model_noise",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "data=name; epsilon:g; noise:.3f; arc F1 of Marginals=marginals_arc_f1:.3f; "
        "skeleton F1=marginals_skeleton_f1:.3f; arc F1 of LogLinear=loglinear_arc_f1:.3f; "
        "skeleton F1=loglinear_skeleton_f1:.3f",
        ex.Column("gain", gain, "+.3f"),
    ),
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "names or BIF files", None, NETWORKS, []),
        ex.counts("--columns", "of random networks", [12, 18, 24, 30, 40, 50], [12]),
        ex.numbers("--epsilons", "totals", (0.5, 1.0, 2.0, 4.0), (1.0,)),
        ex.one_count("--runs", "networks, each with data and noise", 4, 1),
    ),
    settings=ex.kept(
        n_samples=N_SAMPLES,
        delta=DELTA,
        levels=LEVELS,
        expected_degree=EXPECTED_DEGREE,
        first_network=FIRST_NETWORK,
        first_noise=FIRST_NOISE,
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
