"""How many independence tests Priv-PC and SVT-PC run, counted in every way that could be meant; and
how often a sieve with examination errs.

``python -m benchmarks.priv_pc_tests [--quick] [--data FOLDER] [--networks NAME ...] [--runs R]
[--per-round E ...] [--resume] [--out FILE]``

*Counts.*  Priv-PC's table 3 has 95, 165 and 1,843 tests for Asia, Sachs and Alarm; what it counts
is not said.  Its authors' code runs the original order of PC, asks both ends of every pair, counts
sieve and examination apart, and stops above level min(floor(log2 n) - 5, p - 2).  Here: all tests,
those of the sieve, and different ones (a pair and its set once), at that level and at levels 0
and 1, over epsilon a round; and those of PC without privacy with the same test and threshold, each
pair and set once, in the original order and in the stable one.

*Errors.*  For a p-value at a distance g from the threshold T, with s the scale of the threshold's
noise, 2 s that of a query's and e that of the examination's, by convolution of two Laplace laws

    P[sieve errs] = (4 exp(-g / 2s) - exp(-g / s)) / 6,      P[examination errs] = exp(-g / e) / 2.

Below T (no edge should go) both must err; above it one is enough.  So errors fall off exponentially
in the distance, as the paper's theorem 2 says; its text was not at hand, so its constants are not
checked.  Simulated beside the formula at n = 100,000, in p-value units.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd import published
from jaxcd.published.accounting import SievePrices

PUBLISHED_TESTS = {"asia": 95, "sachs": 165, "alarm": 1_843}
ALGORITHMS: dict[str, Callable[..., jaxcd.DiscoveryResult]] = {
    "Priv-PC": published.priv_pc,
    "SVT-PC": published.svt_pc,
}
#: whether PC without privacy keeps the stable order
ORDERS = {"PC, original order": False, "PC, stable order": True}
FIRST = 830_000
N_DRAWS = 1_000_000
DISTANCES = (0.005, 0.01, 0.02, 0.05)


def authors_level(n_samples: int, n_variables: int) -> int:
    """Where the authors' code stops."""
    return max(min(int(math.log2(n_samples)) - 5, n_variables - 2), 0)


def measure(
    algorithm: str, data: jaxcd.Dataset, max_level: int, epsilon: float, n_runs: int
) -> dict[str, Any]:
    """Means over the noise."""
    infos = [
        ALGORITHMS[algorithm](
            data, epsilon=epsilon, key=ex.key(FIRST, run), max_level=max_level
        ).info
        for run in range(n_runs)
    ]
    examined = [info["n_rounds"] if algorithm == "Priv-PC" else 0 for info in infos]
    return {
        "tests": ex.mean(info["n_tests"] for info in infos),
        "sieve": ex.mean(
            info["n_tests"] - part for info, part in zip(infos, examined, strict=True)
        ),
        "different": ex.mean(info["n_distinct_queries"] for info in infos),
        "rounds": ex.mean(info["n_rounds"] for info in infos),
    }


def without_privacy(data: jaxcd.Dataset, max_level: int, *, stable: bool) -> dict[str, Any]:
    """The tests of PC with the published test and threshold."""
    found = jaxcd.pc(
        data,
        test=published.ConditionalTau(),
        decider=jaxcd.Threshold(alpha=0.1),
        budget=jaxcd.NO_PRIVACY,
        key=None,
        max_level=max_level,
        stable=stable,
    )
    return {"tests": float(found.info["n_tests"]), "sieve": None, "different": None, "rounds": None}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every network, algorithm, level and price; one data set a network."""
    for name, network in load_networks(chosen.networks, chosen.data).items():
        data = network.sample(chosen.rows, key=ex.key(FIRST, 999))
        levels = (0, 1, authors_level(chosen.rows, data.n_columns))
        for algorithm in ALGORITHMS:
            for level in levels:
                for epsilon in chosen.per_round:
                    values = name, algorithm, level, epsilon, chosen.runs
                    yield values, measure, algorithm, data, level, epsilon, chosen.runs
        for order, stable in ORDERS.items():
            for level in levels:
                values = name, order, level, None, chosen.runs
                yield values, partial(without_privacy, data, level, stable=stable)


def sieve_tail(distance: float, scale: float) -> float:
    """P[Lap(scale) + Lap(2 scale) > distance]."""
    return (4 * math.exp(-distance / (2 * scale)) - math.exp(-distance / scale)) / 6


def errors(epsilon: float, distance: float, n_samples: int = 100_000) -> dict[str, Any]:
    """Both errors by the formula and by simulation.  below: passes though p is ``distance`` below
    the threshold; above: is filtered though it is above.
    """
    prices = SievePrices.of(n_samples, epsilon)
    sieve = sieve_tail(distance, prices.threshold_scale)
    examination = math.exp(-distance / prices.examine_scale) / 2
    rng = np.random.default_rng([FIRST, int(1000 * epsilon), int(1e6 * distance)])
    noise = rng.laplace(0, prices.query_scale, N_DRAWS)
    noise -= rng.laplace(0, prices.threshold_scale, N_DRAWS)
    second = rng.laplace(0, prices.examine_scale, N_DRAWS)
    return {
        "epsilon": epsilon,
        "distance": distance,
        "below": sieve * examination,
        "above": 1 - (1 - sieve) * (1 - examination),
        "below_simulated": float(((noise >= distance) & (second >= distance)).mean()),
        "above_simulated": float(((noise < -distance) | (second < -distance)).mean()),
    }


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """For each published count the variants that come nearest; and the errors."""
    nearest = []
    for name, wanted in PUBLISHED_TESTS.items():
        found = [
            (abs(math.log(row[way] / wanted)), way, row)
            for row in record.rows
            if row.network == name and row.algorithm in ALGORITHMS
            for way in ("tests", "sieve", "different")
        ]
        for _, way, row in sorted(found, key=lambda entry: entry[0])[:3]:
            nearest.append(
                {
                    "network": name,
                    "published": wanted,
                    "ours": row[way],
                    "counted": way,
                    **{part: row[part] for part in ("algorithm", "max_level", "epsilon")},
                }
            )
    tails = [errors(epsilon, g) for epsilon in (0.1, 1.0) for g in DISTANCES]
    console.print(ex.table_of(nearest, NEAREST, "nearest to the published numbers"))
    console.print(ex.table_of(tails, TAILS, "errors of one sieve with examination"))
    return {"nearest": nearest, "errors": tails}


NEAREST = ex.columns_of(
    "network; published:d; ours:.0f; counted; algorithm; max_level:d; epsilon:g"
)
TAILS = ex.columns_of(
    "epsilon:g; distance:g; below:.5f; simulated=below_simulated:.5f; above:.5f; "
    "simulated=above_simulated:.5f"
)
EXPERIMENT = ex.Experiment(
    "priv_pc_tests",
    __doc__,
    ("network", "algorithm", "max_level", "epsilon", "n_runs"),
    jobs,
    columns=ex.columns_of(
        "algorithm; level=max_level:d; epsilon:g|no noise; tests:.0f; sieve:.0f; different:.0f; "
        "rounds:.0f"
    ),
    title=lambda row: f"{row.network}: published {PUBLISHED_TESTS.get(row.network, 'no number')}",
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "networks", None, list(PUBLISHED_TESTS), ["asia"]),
        ex.one_count("--rows", "records", 100_000, 5_000),
        ex.one_count("--runs", "noises of each row", 3, 2),
        ex.numbers("--per-round", "epsilon a round", (0.01, 0.1, 1.0, 10.0), (1.0,)),
    ),
    settings=ex.kept("rows"),
    finish=finish,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
