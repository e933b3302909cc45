"""The calibration board: type I error and power of conditional tests.

``python -m benchmarks.calibration [--quick] [--resume] [--sizes N ...] [--laws NAME ...]
[--tests NAME ...] [--named] [--runs R] [--power-runs R] [--out FILE]``

With ``--resume`` a row is measured again where it has fewer data sets than are asked for.

Data: the laws of ``benchmarks.calibration_laws``, under the null and off it; each data set has a
seed of its own, and all tests meet the same data sets.  Type I error: the share of R data sets
under the null that are called dependent at level .05; power: the same off it.  Intervals are exact
binomial ones of 95% (Clopper and Pearson 1934): with 500 data sets about +-.02, with 100 +-.045.
"named": the law is one for which the docs name that test, and wanted is [.03, .075] there.
processor s: data set to p-value, summed over threads (the machine may be shared).

The tests of causal-learn and pgmpy (``benchmarks.calibration_peers``) are run with their defaults
where these packages are installed, pgmpy's GCM also with boosted trees in the place of a linear
regression, on at most so many rows as take about a second; else they are left out, with the reason.
Where a law has labels they see them as numbers.  Tests that count are run on the laws whose columns
are all labels.
"""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from scipy import stats

import jaxcd
from benchmarks import experiment as ex
from benchmarks.calibration_laws import LAWS, Law
from benchmarks.calibration_peers import PEERS, loaded
from jaxcd.citests import CITest, Query

ALPHA = 0.05
WANTED = (0.03, 0.075)
SIZES = (200, 1_000, 4_000, 30_000)
#: other data sets than those on which the tests' defaults were chosen
FIRST_SEED = 70_000
OURS: dict[str, CITest] = {
    "RCIT": jaxcd.RCIT(),
    "KCI": jaxcd.KCI(),
    "GCM": jaxcd.GCM(),
    "GCM, weighted": jaxcd.GCM(weighted=True),
    "ChiSquare": jaxcd.ChiSquare(),
    "GTest": jaxcd.GTest(),
}
COUNTING = ("ChiSquare", "GTest")


def interval(n_hits: int, n_trials: int) -> tuple[float, float]:
    """The exact 95% interval of a binomial rate."""
    found = stats.binomtest(n_hits, n_trials).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def verdict(type_1: float, n_runs: int) -> str:
    """Where the rate lies: "below", "within" or "above" ``WANTED`` by more than two standard errors
    of a test of level .05; "open" from fewer than 100 data sets, too few to say.
    """
    if n_runs < 100:
        return "open"
    room = 0.0 if n_runs >= 500 else 2 * math.sqrt(ALPHA * (1 - ALPHA) / n_runs) - 0.02
    low, high = WANTED
    return "below" if type_1 < low - room else "above" if type_1 > high + room else "within"


def dataset(values: np.ndarray, levels: Sequence[int] = ()) -> jaxcd.Dataset:
    """Columns x1, x2, ...; those of ``levels`` categorical."""
    domain = {}
    for j, column in enumerate(values.T):
        labels = tuple(int(level) for level in np.unique(column)) if j in levels else ()
        domain[f"x{j + 1}"] = jaxcd.Categorical(labels) if labels else jaxcd.Numeric()
    return jaxcd.Dataset.from_array(values, names=list(domain), domain=jaxcd.Domain(domain))


def _our_test(name: str, law: Law) -> Callable[[np.ndarray, int], bool]:
    test = OURS[name]
    levels = () if name == "RCIT" else law.levels

    def dependent(values: np.ndarray, seed: int) -> bool:
        query = Query.of(0, 1, range(2, values.shape[1]))
        prepared = test.prepare(dataset(values, levels), key=jax.random.key(seed))
        return bool(prepared.evaluate(prepared.bucket(query), [query], alpha=ALPHA).margin[0] > 0)

    return dependent


def _peer(name: str, n: int) -> Callable[[np.ndarray, int], bool]:
    pvalue = loaded(name, n)

    def dependent(values: np.ndarray, seed: int) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pvalue(values, seed) <= ALPHA

    return dependent


def measure(law: Law, n: int, name: str, runs: int, power_runs: int) -> dict[str, Any]:
    """Rates of "dependent" under the null and off it, with exact 95% intervals."""
    dependent = _our_test(name, law) if name in OURS else _peer(name, n)
    seconds, found = [], {}
    for rate, off, count in (("type_1", False, runs), ("power", True, power_runs)):
        hits = 0
        for run in range(count):
            values = law.draw(np.random.default_rng((FIRST_SEED + run, n, off)), n, off)
            with ex.Clock() as clock:
                hits += dependent(values.astype(np.float64), FIRST_SEED + run)
            seconds.append(clock.processor_seconds)
        found |= {rate: hits / count, f"{rate}_interval": interval(hits, count)}
        found[f"{rate}_data_sets"] = count
    return found | {
        "named": name == law.test,
        "verdict": verdict(found["type_1"], runs),
        "processor_seconds": median(seconds),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """One row a law, a size and a test."""
    laws = [law for law in LAWS if not chosen.laws or law.name in chosen.laws]
    for n in chosen.sizes:
        for law in laws:
            for name in chosen.tests:
                if (chosen.named and name != law.test) or (name in COUNTING and not law.counted):
                    continue
                if name in OURS or n <= PEERS[name].most:
                    key = (law.name, n, name)
                    yield key, measure, law, n, name, chosen.runs, chosen.power_runs


def draw(rows: Sequence[ex.Row], path: Path) -> None:
    """Type I error by law (lines), size and test (columns), as shades with numbers; the frame marks
    the test that the docs name.
    """
    from matplotlib.colors import Normalize, TwoSlopeNorm

    names = [n for n in (*OURS, *PEERS) if any(row.test == n for row in rows)]
    sizes = {n: sorted({row.n_samples for row in rows if row.test == n}) for n in names}
    columns = [(n, size) for n in names for size in sizes[n]]
    laws = [law.name for law in LAWS if any(row.law == law.name for row in rows)]
    figure, axes = ex.panels(1, 2, width=0.34 * len(columns) + 2.4, height=0.26 * len(laws) + 1.5)
    cells = {(row.law, row.test, row.n_samples): row for row in rows}
    shades = (("type_1", "type I error at .05", "RdBu_r", TwoSlopeNorm(0.05, 0, 0.5)),)
    shades += (("power", "power", "Greens", Normalize(0, 1.8)),)
    for axis, (rate, title, colours, norm) in zip(axes[0], shades, strict=True):
        table = np.full((len(laws), len(columns)), np.nan)
        for i, law in enumerate(laws):
            for j, place in enumerate(columns):
                row = cells.get((law, *place))
                if row is None:
                    continue
                table[i, j] = row[rate]
                axis.text(j, i, f"{row[rate]:.2f}".lstrip("0"), ha="center", va="center", size=6)
                if row.named:
                    axis.plot([j - 0.45, j + 0.45], [i + 0.42] * 2, color="black", lw=0.8)
        axis.imshow(table, cmap=colours, norm=norm, aspect="auto")
        axis.set_xticks(range(len(columns)), [f"{n}, {size:,}" for n, size in columns], size=6)
        axis.tick_params(axis="x", rotation=90)
        axis.set_yticks(range(len(laws)), laws, size=6)
        axis.set_title(f"{title} (underlined: the test that the docs name)", size=8)
    ex.save_picture(figure, path)


def _ends(rate: str) -> ex.Column:
    return ex.Column("95%", lambda row: "{:.3f}-{:.3f}".format(*row[f"{rate}_interval"]))


EXPERIMENT = ex.Experiment(
    "calibration",
    __doc__,
    ("law", "n_samples", "test"),
    jobs,
    columns=ex.columns_of(
        "law; test",
        ex.Column("named", lambda row: "*" if row.named else ""),
        "data sets=type_1_data_sets:d; type I=type_1:.3f",
        _ends("type_1"),
        "power:.3f",
        _ends("power"),
        ".03-.075=verdict; processor s=processor_seconds:.3f",
    ),
    title=lambda row: f"n = {row.n_samples:,}, alpha = {ALPHA}",
    options=(
        ex.counts("--sizes", "records", SIZES, (200,)),
        ex.names("--laws", "laws", [law.name for law in LAWS], None, ["sum of 1", "spread |z|"]),
        ex.names("--tests", "tests", [*OURS, *PEERS], [*OURS, *PEERS], [*OURS]),
        ex.Option("--named", "for each law only the test that the docs name for it", flag=True),
        ex.one_count("--runs", "data sets under the null", 500, 20),
        ex.one_count("--power-runs", "data sets off it", 100, 10),
    ),
    settings=lambda chosen: {
        "alpha": ALPHA,
        "wanted": list(WANTED),
        "ours": {name: repr(test) for name, test in OURS.items()},
    },
    known=lambda row, chosen: row.type_1_data_sets >= chosen.runs,
    draw=draw,
    width=170,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
