"""Utility against privacy: how much of the true graph every method finds, at what total price, from
how many rows.

``python -m benchmarks.frontier [--quick] [--data FOLDER] [--networks NAME|FILE.bif ...] [--rows N
...] [--runs R] [--draws D] [--epsilons E ...] [--per-round E ...] [--methods WORD ...] [--slow S]
[--limit S] [--resume] [--out FILE]``

Networks: the seven of the Priv-PC paper, any BIF file, and random linear Gaussian models of 5, 10
and 20 variables (gaussian-5 and so on; each data set has its own model).  Methods:
:mod:`benchmarks.frontier_methods`.  A row is R data sets with D draws of noise each: mean and
standard deviation of arc F1 (an undirected edge is two) and skeleton F1 against the true CPDAG,
over all runs and (``_noise``) over the draws for the same data; the median seconds of a run, the
first of which compiles.  Its total epsilon is fixed in advance, but for published methods: there it
is what they report afterwards, which is not proved.

The reference is the better of two runs without privacy on the same data: PC (ChiSquare; FisherZ)
and a search by score (BIC; the Gaussian score).  The summary gives for every method the smallest
total of its rows from which on all stay within 0.05 of that, in arc and in skeleton F1.

The file is written after every row, and with ``--resume`` rows that it has are not run again: the
whole takes hours, and can be taken in parts.  Parts in several files are joined by
``--merge FILE ...``, which runs nothing else.  A method whose run takes more than ``--slow``
seconds (on fewer rows, before its first run) goes on in a case only while all its rows there fit in
``--limit`` seconds; what is left out is listed with the reason.  Beside the file: a picture for
each network, and one of the summary.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import common, frontier_pictures, priv_pc
from benchmarks.frontier_methods import (
    DELTA,
    DISCRETE,
    NUMERIC,
    Case,
    Method,
    Regime,
    cases,
    methods_of,
)
from jaxcd import metrics

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
PER_ROUND = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
#: of the data sets, and of their noise; no constant of a method was chosen on these
FIRST_DATA, FIRST_NOISE = 310_000, 410_000
KEY = ("network", "n_samples", "method", "regime", "epsilon")
SETTINGS = {
    "delta": DELTA,
    "published_delta": priv_pc.PUBLISHED_DELTA,
    "first_data": FIRST_DATA,
    "first_noise": FIRST_NOISE,
}


@dataclass(frozen=True)
class Row:
    """One method at one price on one case.  epsilon: what was asked: a total, or of a round where
    ``regime`` is "ex post".

    *_noise: the standard deviation over the draws for the same data; None for one draw.  exhausted:
    the share of runs whose budget ran dry.  total_seconds: of all runs, with compilation.
    """

    network: str
    n_samples: int
    method: str
    regime: str
    epsilon: float | None
    total_epsilon: float | None
    delta: float | None
    proven: bool
    reference: bool
    arc_f1: float
    arc_f1_sd: float
    arc_f1_noise: float | None
    skeleton_f1: float
    skeleton_f1_sd: float
    skeleton_f1_noise: float | None
    exhausted: float
    seconds: float
    total_seconds: float
    n_data: int
    n_draws: int


class TooSlow(Exception):
    """A row that does not fit in its time; the message says by how much."""


@dataclass
class Allowance:
    """The time of one method on one case: its rows must fit in ``limit`` seconds, unless a run
    takes at most ``slow``.

    last: seconds of the last run; before the first, of a run on fewer rows, if there was one.
    """

    slow: float
    limit: float
    spent: float = 0.0
    last: float | None = None

    def check(self, n_left: int) -> None:
        """Raises TooSlow if ``n_left`` more runs like the last do not fit."""
        if (
            n_left
            and self.last is not None
            and self.last > self.slow
            and not self.spent + n_left * self.last <= self.limit
        ):
            raise TooSlow(
                f"a run took {self.last:.1f} s, and {n_left} more after {self.spent:.0f} s would "
                f"pass the limit of {self.limit:g} s"
            )

    def take(self, seconds: float, *, compiles: bool) -> None:
        """Counts a run; one that compiles says little about the next, unless it took all the time
        there is.
        """
        self.spent += seconds
        if not compiles or seconds > self.limit:
            self.last = seconds


class Samples:
    """The data sets of a case, drawn when they are first asked for."""

    def __init__(self, case: Case, n_data: int) -> None:
        self._case, self._n_data = case, n_data

    @cached_property
    def pairs(self) -> list[tuple[jaxcd.Dataset, jaxcd.MixedGraph]]:
        """Data and truth of every run."""
        return [self._case.source(FIRST_DATA + r) for r in range(self._n_data)]


def measure(
    case: Case,
    method: Method,
    epsilon: float | None,
    samples: Samples,
    n_draws: int,
    allowance: Allowance,
) -> Row:
    """All runs of a method at one price.

    Raises TooSlow where they do not fit in the allowance, and what the method raises;
    AssertionError if it overspends.
    """
    n_draws = n_draws if method.regime.is_private else 1
    n_runs = len(samples.pairs) * n_draws
    allowance.check(n_runs)
    results: list[jaxcd.DiscoveryResult] = []
    arcs, skeletons, seconds = [], [], []
    for r, (data, truth) in enumerate(samples.pairs):
        for draw in range(n_draws):
            key = jax.random.fold_in(jax.random.key(FIRST_NOISE + r), draw)
            start = time.perf_counter()
            result = method.run(data, epsilon, key)
            seconds.append(time.perf_counter() - start)
            proved = method.regime in (Regime.PURE, Regime.APPROXIMATE)
            if proved and not (
                epsilon is not None
                and result.spent.epsilon <= epsilon
                and result.cost.epsilon <= epsilon
            ):
                raise AssertionError(
                    f"{method.label} on {case.name}: spent {result.spent}, promised "
                    f"{result.cost}, of epsilon {epsilon}"
                )
            results.append(result)
            arcs.append(float(metrics.arc_f1(result.graph, truth)))
            skeletons.append(float(metrics.skeleton_f1(result.graph, truth)))
            allowance.take(seconds[-1], compiles=len(seconds) == 1)
            allowance.check(n_runs - len(seconds))
    return Row(
        case.name,
        case.n_samples,
        method.label,
        method.regime.value,
        epsilon,
        total_epsilon=statistics.mean(result.cost.epsilon for result in results),
        delta=results[0].cost.delta if method.regime.is_private else None,
        # Simulated noise voids every guarantee; this says whether the same run with secure noise
        # has one.
        proven=method.regime in (Regime.PURE, Regime.APPROXIMATE, Regime.NO_DATA),
        reference=method.reference,
        arc_f1=statistics.mean(arcs),
        arc_f1_sd=statistics.pstdev(arcs),
        arc_f1_noise=_within(arcs, n_draws),
        skeleton_f1=statistics.mean(skeletons),
        skeleton_f1_sd=statistics.pstdev(skeletons),
        skeleton_f1_noise=_within(skeletons, n_draws),
        exhausted=statistics.mean(result.exhausted for result in results),
        seconds=statistics.median(seconds),
        total_seconds=sum(seconds),
        n_data=len(samples.pairs),
        n_draws=n_draws,
    )


def _within(values: Sequence[float], n_draws: int) -> float | None:
    """The standard deviation over the draws for the same data."""
    if n_draws == 1:
        return None
    return math.sqrt(float(np.reshape(values, (-1, n_draws)).var(axis=1, ddof=1).mean()))


def run_case(
    case: Case, chosen: argparse.Namespace, record: common.Record, say: Callable[[str], None]
) -> None:
    """Every row of a case that the record lacks; what cannot or may not be run is left out with the
    reason.
    """
    samples = Samples(case, chosen.runs)
    for method in methods_of(case, chosen.methods):
        prices = (
            {Regime.EX_POST: chosen.per_round}.get(method.regime, chosen.epsilons)
            if method.regime.is_private
            else [None]
        )
        smaller = [
            row
            for row in record.rows
            if (row["network"], row["method"], row["regime"])
            == (case.name, method.label, method.regime.value)
            and row["n_samples"] < case.n_samples
        ]
        allowance = Allowance(
            chosen.slow, chosen.limit, last=max((row["seconds"] for row in smaller), default=None)
        )
        refusal = method.refuses(case)
        for epsilon in prices:
            entries = dict(
                zip(
                    KEY,
                    (case.name, case.n_samples, method.label, method.regime.value, epsilon),
                    strict=True,
                )
            )
            known = record.find(entries)
            if (
                known is not None
                and known["n_data"] >= chosen.runs
                and (known["n_draws"] >= chosen.draws or not method.regime.is_private)
            ):
                allowance.spent, allowance.last = (
                    allowance.spent + known["total_seconds"],
                    known["seconds"],
                )
                continue
            if refusal is not None:
                record.leave_out(entries, refusal)
                continue
            try:
                row = measure(case, method, epsilon, samples, chosen.draws, allowance)
            except (TooSlow, jaxcd.errors.JaxcdError) as error:
                reason = (
                    str(error) if isinstance(error, TooSlow) else f"{type(error).__name__}: {error}"
                )
                record.leave_out(entries, reason)
                say(
                    f"{case.name}, {case.n_samples:,} rows, {method.label} at {epsilon}: left "
                    f"out, {reason}"
                )
            else:
                record.add(asdict(row))
    jax.clear_caches()  # the next case has other shapes


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(__doc__.splitlines()[0], out=common.RESULTS / "frontier.json")
    options.add_argument(
        "--data", type=Path, default=os.environ.get("JAXCD_DATA"), help="folder with networks/*.bif"
    )
    options.add_argument(
        "--networks",
        nargs="+",
        help="names, BIF files, gaussian-5, gaussian-10, gaussian-20; default: all",
    )
    options.add_argument("--rows", type=common.count, nargs="+", help="records")
    options.add_argument("--runs", type=common.count, help="data sets of each row")
    options.add_argument("--draws", type=common.count, help="draws of noise for each data set")
    options.add_argument(
        "--epsilons", type=common.positive, nargs="+", help="totals of the proved methods"
    )
    options.add_argument(
        "--per-round", type=common.positive, nargs="+", help="epsilon a round, published methods"
    )
    options.add_argument(
        "--methods",
        nargs="+",
        help="only those whose label holds one of these words, and those without privacy",
    )
    options.add_argument(
        "--slow",
        type=common.positive,
        default=2.0,
        help="seconds of a run from which on --limit counts",
    )
    options.add_argument(
        "--limit",
        type=common.positive,
        default=600.0,
        help="seconds of a slow method on one network and size",
    )
    options.add_argument(
        "--merge", type=Path, nargs="+", help="result files to join into --out; nothing is run"
    )
    common.add_resume(options)
    chosen = common.parse(
        options,
        arguments,
        full={
            "rows": [1_000, 10_000, 100_000],
            "runs": 5,
            "draws": 2,
            "epsilons": list(EPSILONS),
            "per_round": list(PER_ROUND),
        },
        quick={
            "networks": ["cancer", "gaussian-5"],
            "rows": [5_000],
            "runs": 2,
            "draws": 1,
            "epsilons": [1.0, 10.0],
            "per_round": [1.0],
            "methods": [
                "SparseVector, Cov",
                "Levelwise",
                "Histogram",
                "Marginals",
                "Moments",
                "Priv-PC",
            ],
        },
    )
    chosen.rows = sorted(set(chosen.rows))
    known = {*common.BUILT_IN, *common.FROM_FILE, *(f"gaussian-{p}" for p in (5, 10, 20))}
    for name in chosen.networks or ():
        if name not in known and not name.endswith(common.BIF_ENDINGS):
            options.error(
                f"--networks: {name} is none of {', '.join(sorted(known))}, and no BIF file"
            )
    labels = [method.label for method in (*DISCRETE, *NUMERIC)]
    for word in chosen.methods or ():
        if not any(word.lower() in label.lower() for label in labels):
            options.error(
                f"--methods: no method has {word!r} in its name; they are "
                f"{'; '.join(dict.fromkeys(labels))}"
            )
    for path in chosen.merge or ():
        if not path.is_file():
            options.error(f"--merge: {path} is no file")
    return chosen


def finish(record: common.Record, console: Console) -> Mapping[str, Path]:
    """Summary and pictures of all rows of a file."""
    summary = frontier_pictures.summarise(record.rows)
    record.write(close=frontier_pictures.CLOSE, summary=summary)
    for table in frontier_pictures.summary_tables(summary):
        console.print(table)
    if record.left_out:
        console.print(frontier_pictures.left_out_table(record.left_out))
    written = frontier_pictures.draw(record.rows, summary, record.path)
    print(f"wrote {record.path}")
    return written


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints a table a case as it goes, and writes JSON and pictures."""
    chosen = _options(arguments)
    console = Console(width=170)
    record = common.Record(chosen.out, key=KEY, settings=SETTINGS, resume=chosen.resume)
    if chosen.merge:
        for path in chosen.merge:
            record.take(path)
    else:
        for case in cases(chosen.networks, chosen.data, chosen.rows):
            run_case(case, chosen, record, console.print)
            console.print(frontier_pictures.case_table(record.rows, case.name, case.n_samples))
    finish(record, console)


if __name__ == "__main__":
    main()
