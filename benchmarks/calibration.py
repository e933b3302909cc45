"""Type I error and power of RCIT and HSIC, as they are by default, without privacy.

``python -m benchmarks.calibration [--quick] [--sizes N ...] [--levels L ...] [--runs R] [--index
sum|mean] [--out FILE]``

Data: the library's version of PCD's simulation model (``benchmarks.pcd_figure1.model``,
``jaxcd.data.structural.nonlinear_sem``).  Z is standard normal, its columns independent;
x = phi(sum_i a_i z_i) + e and y = psi(sum_i b_i z_i) + e' under H0, and under H1 y = psi(sum_i b_i
z_i + c x) + e'; phi and psi are drawn out of sin, cos, tanh, square and exp, |a_i|, |b_i| and |c|
are uniform on [0.5, 1.5] with even signs, e and e' are standard normal.  With ``--index mean`` the
a_i and b_i are divided by sqrt |Z|, which gives every index the spread that it has for |Z| = 1; c
is not.  Every data set has a model of its own, and every row of the table data sets of its own.

|Z| = 0 is HSIC on independent columns and on x -> y.  Intervals are exact binomial ones of 95%
(Clopper and Pearson 1934). Wanted: type I error at alpha = 0.05 within [0.02, 0.09].
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any

import jax
from scipy import stats

import jaxcd
from benchmarks import experiment as ex
from benchmarks.pcd_figure1 import model
from jaxcd.citests import CITest, Query
from jaxcd.data.structural import SingleIndex, StructuralModel

ALPHA = 0.05
WANTED = (0.02, 0.09)
SIZES = (500, 2_000, 10_000)
LEVELS = (0, 1, 3, 5)
#: other data sets than those on which the tests' defaults were chosen
FIRST_KEY = 70_000


def mean_index(drawn: StructuralModel) -> StructuralModel:
    """The same model with the weights of the z_i divided by the square root of their number."""
    mechanisms = {}
    for name, mechanism in drawn.mechanisms.items():
        assert isinstance(mechanism, SingleIndex)
        scale = max(sum(parent[0] == "z" for parent in mechanism.parents), 1) ** -0.5
        pairs = zip(mechanism.parents, mechanism.weights, strict=True)
        weights = tuple(weight * scale if parent[0] == "z" else weight for parent, weight in pairs)
        mechanisms[name] = replace(mechanism, weights=weights)
    return StructuralModel(mechanisms, drawn.law)


def interval(n_hits: int, n_trials: int) -> tuple[float, float]:
    """The exact 95% interval of a binomial rate."""
    found = stats.binomtest(n_hits, n_trials).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def verdict(type_1: float, n_runs: int) -> str:
    """Where the rate lies: "below", "within" or "above" ``WANTED``; "open" from fewer than 100 data
    sets, too few to say.
    """
    if n_runs < 100:
        return "open"
    return "below" if type_1 < WANTED[0] else "above" if type_1 > WANTED[1] else "within"


def measure(n: int, level: int, n_runs: int, index: str) -> dict[str, Any]:
    """Rates of "dependent" under H0 and H1 with exact 95% intervals; ``seconds_per_test``: the
    median, data set to p-value.
    """
    test: CITest = jaxcd.RCIT() if level else jaxcd.HSIC()
    query = Query.of(0, 1, range(2, 2 + level))
    hits, seconds = [0, 0], []
    for dependent in (False, True):
        for run in range(n_runs):
            model_key, sample_key, test_key = jax.random.split(ex.key(FIRST_KEY, run, n, level), 3)
            drawn = model(level, dependent=dependent, key=model_key)
            data = (mean_index(drawn) if index == "mean" else drawn).sample(n, key=sample_key)
            with ex.Clock() as clock:
                prepared = test.prepare(data, key=test_key)
                answer = prepared.evaluate(query.given, [query], alpha=ALPHA)
            seconds.append(clock.seconds)
            hits[dependent] += bool(answer.margin[0] > 0)
    type_1 = hits[0] / n_runs
    return {
        "test": test.name,
        "type_1": type_1,
        "type_1_interval": interval(hits[0], n_runs),
        "power": hits[1] / n_runs,
        "power_interval": interval(hits[1], n_runs),
        "verdict": verdict(type_1, n_runs),
        "seconds_per_test": median(seconds),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a size and a number of conditioning columns."""
    for n in chosen.sizes:
        for level in chosen.levels:
            yield (n, level, chosen.runs), measure, n, level, chosen.runs, chosen.index


def _ends(rate: str) -> ex.Column:
    return ex.Column("95%", lambda row: "{:.3f}-{:.3f}".format(*row[f"{rate}_interval"]))


EXPERIMENT = ex.Experiment(
    "calibration",
    __doc__,
    ("n_samples", "level", "n_data_sets"),
    jobs,
    columns=ex.columns_of(
        "test; n=n_samples:,",
        ex.Column("|Z|", "level", "d"),
        "type I=type_1:.3f",
        _ends("type_1"),
        "power:.3f",
        _ends("power"),
        "0.02-0.09=verdict; seconds=seconds_per_test:.3f",
    ),
    title=lambda row: f"alpha = {ALPHA}: {row.n_data_sets} data sets of each kind",
    options=(
        ex.counts("--sizes", "records", SIZES, (300,)),
        ex.Option("--levels", "conditioning columns", LEVELS, (0, 1, 3), int, True, range(9)),
        ex.one_count("--runs", "data sets of each kind", 200, 10),
        ex.Option("--index", "of the conditioning columns", "sum", choices=("sum", "mean")),
    ),
    settings=ex.kept(
        "index", alpha=ALPHA, wanted=list(WANTED), rcit=repr(jaxcd.RCIT()), hsic=repr(jaxcd.HSIC())
    ),
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
