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

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

import jaxcd
from benchmarks import common
from benchmarks.pcd_figure1 import model
from jaxcd.citests import CITest, Query
from jaxcd.data.structural import SingleIndex, StructuralModel

ALPHA = 0.05
WANTED = (0.02, 0.09)
SIZES = (500, 2_000, 10_000)
LEVELS = (0, 1, 3, 5)
#: other data sets than those on which the tests' defaults were chosen
FIRST_KEY = 70_000


@dataclass(frozen=True)
class Row:
    """Rates of "dependent" under H0 and H1 with exact 95% intervals; seconds_per_test: the median,
    data set to p-value.

    verdict: whether type_1 is "below", "within" or "above" what is wanted; "open" from too few data
    sets.
    """

    test: str
    n_samples: int
    level: int
    type_1: float
    type_1_interval: tuple[float, float]
    power: float
    power_interval: tuple[float, float]
    verdict: str
    n_data_sets: int
    seconds_per_test: float


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


def row_of(n: int, level: int, n_runs: int, index: str) -> Row:
    """One size and one number of conditioning columns."""
    test: CITest = jaxcd.RCIT() if level else jaxcd.HSIC()
    query = Query.of(0, 1, range(2, 2 + level))
    hits, seconds = [0, 0], []
    for dependent in (False, True):
        for run in range(n_runs):
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(FIRST_KEY + run), n), level)
            model_key, sample_key, test_key = jax.random.split(key, 3)
            drawn = model(level, dependent=dependent, key=model_key)
            data = (mean_index(drawn) if index == "mean" else drawn).sample(n, key=sample_key)
            start = time.perf_counter()
            answer = test.prepare(data, key=test_key).evaluate(query.given, [query], alpha=ALPHA)
            seconds.append(time.perf_counter() - start)
            hits[dependent] += bool(answer.margin[0] > 0)
    type_1 = hits[0] / n_runs
    return Row(
        test.name,
        n,
        level,
        type_1,
        interval(hits[0], n_runs),
        hits[1] / n_runs,
        interval(hits[1], n_runs),
        verdict(type_1, n_runs),
        n_runs,
        float(np.median(seconds)),
    )


def table_of(rows: Sequence[Row], index: str) -> Table:
    """All rows for the screen."""
    table = Table(
        title=f"alpha = {ALPHA}, index = {index} of Z: {rows[0].n_data_sets} data sets of each kind"
    )
    for i, column in enumerate(
        ("test", "n", "|Z|", "type I", "95%", "power", "95%", "0.02-0.09", "seconds")
    ):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        ends = [f"{low:.3f}-{high:.3f}" for low, high in (row.type_1_interval, row.power_interval)]
        table.add_row(
            row.test,
            f"{row.n_samples:,}",
            str(row.level),
            f"{row.type_1:.3f}",
            ends[0],
            f"{row.power:.3f}",
            ends[1],
            row.verdict,
            f"{row.seconds_per_test:.3f}",
        )
    return table


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(
        "Type I error and power of RCIT and HSIC.", out=common.RESULTS / "calibration.json"
    )
    common.add_sizes(options)
    common.add_levels(options)
    options.add_argument(
        "--runs", type=common.count, help="data sets of each kind (default: 200; 10 with --quick)"
    )
    options.add_argument(
        "--index", choices=("sum", "mean"), default="sum", help="of the conditioning columns"
    )
    full = {"sizes": SIZES, "levels": LEVELS, "runs": 200}
    return common.parse(
        options, arguments, full=full, quick={"sizes": (300,), "levels": (0, 1, 3), "runs": 10}
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints the table, and writes JSON after every row."""
    chosen = _options(arguments)
    environment = common.environment()
    settings = {
        "alpha": ALPHA,
        "wanted": WANTED,
        "index": chosen.index,
        "rcit": repr(jaxcd.RCIT()),
        "hsic": repr(jaxcd.HSIC()),
    }
    rows: list[Row] = []
    for n in chosen.sizes:
        for level in chosen.levels:
            rows.append(row_of(n, level, chosen.runs, chosen.index))
            results = [asdict(row) for row in rows]
            common.write_json(
                chosen.out, {"environment": environment, "settings": settings, "results": results}
            )
    Console(width=120).print(table_of(rows, chosen.index))


if __name__ == "__main__":
    main()
