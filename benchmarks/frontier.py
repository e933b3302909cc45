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

import math
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks import frontier_pictures, priv_pc
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
from benchmarks.sources import BIF_ENDINGS, BUILT_IN, FROM_FILE, GAUSSIAN

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


class TooSlow(ex.LeftOut):
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
) -> dict[str, Any]:
    """All runs of a method at one price.  epsilon: what was asked: a total, or of a round where
    the regime is "ex post".

    *_noise: the standard deviation over the draws for the same data; None for one draw.  exhausted:
    the share of runs whose budget ran dry.  total_seconds: of all runs, with compilation.

    Raises TooSlow where they do not fit in the allowance, and what the method raises;
    AssertionError if it overspends.
    """
    n_draws = n_draws if method.regime.is_private else 1
    n_runs = len(samples.pairs) * n_draws
    proved = method.regime in (Regime.PURE, Regime.APPROXIMATE)
    allowance.check(n_runs)
    results: list[jaxcd.DiscoveryResult] = []
    seconds = []
    for r, (data, _) in enumerate(samples.pairs):
        for draw in range(n_draws):
            with ex.Clock() as clock:
                result = method.run(data, epsilon, ex.key(FIRST_NOISE, r, draw))
            if proved and (
                epsilon is None or not max(result.spent.epsilon, result.cost.epsilon) <= epsilon
            ):
                raise AssertionError(
                    f"{method.label} on {case.name}: spent {result.spent}, promised "
                    f"{result.cost}, of epsilon {epsilon}"
                )
            results.append(result)
            seconds.append(clock.seconds)
            allowance.take(seconds[-1], compiles=len(seconds) == 1)
            allowance.check(n_runs - len(seconds))
    truths = [truth for _, truth in samples.pairs for _ in range(n_draws)]
    found = ex.scores([result.graph for result in results], truths)
    return {
        "total_epsilon": ex.mean(result.cost.epsilon for result in results),
        "delta": results[0].cost.delta if method.regime.is_private else None,
        # Simulated noise voids every guarantee; this says whether the same run with secure noise
        # has one.
        "proven": proved or method.regime is Regime.NO_DATA,
        "reference": method.reference,
        **ex.means(found),
        **{f"{name}_noise": _within(values, n_draws) for name, values in found.items()},
        "exhausted": ex.mean(result.exhausted for result in results),
        "seconds": median(seconds),
        "total_seconds": sum(seconds),
        "n_data": len(samples.pairs),
        "n_draws": n_draws,
    }


def _within(values: Sequence[float], n_draws: int) -> float | None:
    """The standard deviation over the draws for the same data."""
    if n_draws == 1:
        return None
    return math.sqrt(float(np.reshape(values, (-1, n_draws)).var(axis=1, ddof=1).mean()))


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """The summary of all rows of a file."""
    summary = frontier_pictures.summarise(record.rows)
    for table in frontier_pictures.summary_tables(summary):
        console.print(table)
    if record.left_out:
        console.print(frontier_pictures.left_out_table(record.left_out))
    return {"close": frontier_pictures.CLOSE, "summary": summary}


def case_jobs(case: Case, chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every row of a case; what cannot or may not be run says why."""
    samples = Samples(case, chosen.runs)
    for method in methods_of(case, chosen.methods):
        prices = {Regime.EX_POST: chosen.per_round}.get(method.regime, chosen.epsilons)
        line = {"network": case.name, "method": method.label, "regime": method.regime.value}
        smaller = [
            row.seconds
            for row in record.rows
            if row.like(**line) and row.n_samples < case.n_samples
        ]
        allowance = Allowance(chosen.slow, chosen.limit, last=max(smaller, default=None))
        refusal = method.refuses(case)
        for epsilon in prices if method.regime.is_private else [None]:
            values = case.name, case.n_samples, method.label, method.regime.value, epsilon
            known = record.find(dict(zip(KEY, values, strict=True)))
            if known is not None and _enough(known, chosen):
                allowance.spent += known.total_seconds
                allowance.last = known.seconds
            if refusal is not None:
                yield values, _refuse, refusal
            else:
                yield values, measure, case, method, epsilon, samples, chosen.draws, allowance


def _refuse(reason: str) -> dict[str, Any]:
    raise ex.LeftOut(reason)


def _enough(row: ex.Row, chosen: Namespace) -> bool:
    """Whether a known row has as many runs as are wanted."""
    draws = chosen.draws if Regime(row.regime).is_private else 1
    return row.n_data >= chosen.runs and row.n_draws >= draws


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every row of every case; with ``--merge`` the rows of other files instead."""
    for path in chosen.merge or ():
        record.take(path)
    if chosen.merge:
        return
    for case in cases(chosen.networks, chosen.data, chosen.rows):
        yield from case_jobs(case, chosen, record)
        jax.clear_caches()  # the next case has other shapes
        table = frontier_pictures.case_table(record.rows, case.name, case.n_samples)
        Console(width=170).print(table)


def check(chosen: Namespace) -> str | None:
    """What is wrong with the options."""
    known = {*BUILT_IN, *FROM_FILE, *GAUSSIAN}
    for name in chosen.networks or ():
        if name not in known and not name.endswith(BIF_ENDINGS):
            return f"--networks: {name} is none of {', '.join(sorted(known))}, and no BIF file"
    labels = list(dict.fromkeys(method.label for method in (*DISCRETE, *NUMERIC)))
    for word in chosen.methods or ():
        if not any(word.lower() in label.lower() for label in labels):
            return f"--methods: no method has {word!r} in its name; they are {'; '.join(labels)}"
    lacking = [path for path in chosen.merge or () if not path.is_file()]
    return f"--merge: {lacking[0]} is no file" if lacking else None


_QUICK = ["SparseVector, Cov", "Levelwise", "Histogram", "Marginals", "Moments", "Priv-PC"]
EXPERIMENT = ex.Experiment(
    "frontier",
    __doc__,
    KEY,
    jobs,
    options=(
        ex.data_option("networks/*.bif"),
        ex.names(
            "--networks", "names or BIF files; all by default", quick=["cancer", "gaussian-5"]
        ),
        ex.counts("--rows", "records", [1_000, 10_000, 100_000], [5_000]),
        ex.one_count("--runs", "data sets of each row", 5, 2),
        ex.one_count("--draws", "draws of noise for each data set", 2, 1),
        ex.numbers("--epsilons", "totals of the proved methods", EPSILONS, [1.0, 10.0]),
        ex.numbers("--per-round", "epsilon a round, published methods", PER_ROUND, [1.0]),
        ex.names("--methods", "words of labels; those without privacy run always", quick=_QUICK),
        ex.Option("--slow", "seconds of a run from which on --limit counts", 2.0, kind=ex.positive),
        ex.Option("--limit", "seconds of a slow method on one case", 600.0, kind=ex.positive),
        ex.Option("--merge", "result files to join; nothing is run", kind=Path, several=True),
    ),
    settings=lambda chosen: SETTINGS,
    check=check,
    known=_enough,
    finish=finish,
    draw=lambda rows, path: frontier_pictures.draw(rows, frontier_pictures.summarise(rows), path),
    width=170,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
