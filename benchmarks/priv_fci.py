"""Private FCI on four networks, whole and with variables hidden: how much of the true PAG is found,
at what total price.

``python -m benchmarks.priv_fci [--quick] [--networks N ...] [--runs R] [--epsilon E ...]
[--methods WORD ...] [--out FILE]``

Rows: FCI and GFCI without privacy, the reference lines; FCI with the deciders of the library at
totals fixed in advance; FCI and GFCI on a histogram that was bought at such a total, which cost
nothing further; and Priv-FCI as published, whose epsilon is that of its slides' code and whose
total is computed afterwards, which proves nothing.

Run r of every row uses data set r of its case and noise r.  Columns: F1 of the skeleton, of edges
with both marks and of directed edges against the true PAG; seconds a run, after compilation; the
largest part of the total that a run used; and the share of runs that exhausted it.  Below: the
smallest total from which on a method stays within 0.02 of the reference, run times beside those
published for Priv-FCI, and where FCI without privacy differs from the truth on Asia without
``smoke``, and why. Beside the JSON file: a figure, and a picture of an estimated beside the true
PAG for every case.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.fci_cases import CASES, Case
from benchmarks.fci_faults import hidden_smoke, print_hidden_smoke
from benchmarks.searches import DELTA, Run, by_release, by_tests, labelled
from jaxcd import published
from jaxcd.plotting import comparison_png

EPSILONS = (1.0, 4.0, 16.0)

CLOSE = 0.02

PICTURED = 1.0  # epsilon of the pictures, or the next one that was run

PUBLISHED_SECONDS = {"earthquake": 1.46, "cancer": 1.43, "asia": 4.59, "survey": 1.02}

"""Seconds a run of Priv-FCI, Varici 2022."""


@dataclass(frozen=True)
class Method:
    """One line of the table.  published: its epsilon is no total."""

    label: str
    run: Run
    published: bool = False


def _without_privacy(test: jaxcd.citests.CITest, alpha: float) -> Method:
    run = by_tests(test, jaxcd.fci, decider=jaxcd.Threshold(alpha=alpha))
    return Method(f"FCI, {test.name} {alpha:g}", run)


def _private(name: str, decider: Callable[[int], jaxcd.decisions.Decider]) -> Method:
    """``decider``: from the number of columns, which is public."""

    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        search = by_tests(jaxcd.CovarianceNorm(), jaxcd.fci, decider=decider(data.n_columns))
        return search(data, epsilon, key)

    return Method(name, run)


def _pairs(n_columns: int) -> int:
    return n_columns * (n_columns - 1) // 2


def _rounds(n_columns: int) -> int:
    """The pairs that a tree does not join: a connected graph has no more pairs to separate, and the
    default falls one short of it.
    """
    return _pairs(n_columns) - (n_columns - 1)


def _on_release(release: jaxcd.Release) -> jaxcd.DiscoveryResult:
    """Chi-square with the noise of the release in its null."""
    return jaxcd.fci(release, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(alpha=0.05))


NON_PRIVATE = (
    _without_privacy(jaxcd.ChiSquare(), 0.05),
    _without_privacy(jaxcd.ChiSquare(), 0.01),
    _without_privacy(jaxcd.CovarianceNorm(), 0.05),
    Method(
        "GFCI, BIC and GTest 0.05",
        lambda data, epsilon, key: jaxcd.gfci(data, budget=jaxcd.NO_PRIVACY),
    ),
)

REFERENCE = NON_PRIVATE[0].label

PRIVATE = (
    _private("LevelwiseGaussian", lambda p: jaxcd.LevelwiseGaussian(collider_sigmas=0.0)),
    _private("ExponentialSelect", lambda p: jaxcd.ExponentialSelect()),
    _private(
        "NoisyThreshold, Gaussian",
        lambda p: jaxcd.NoisyThreshold(noise=jaxcd.decisions.Noise.GAUSSIAN),
    ),
    _private("SparseVector", lambda p: jaxcd.SparseVector(n_rounds=_rounds(p))),
    # Passes of the sieve that are not confirmed use up rounds too.
    _private("SieveAndExamine", lambda p: jaxcd.SieveAndExamine(n_rounds=_pairs(p))),
    Method("Histogram, then FCI", by_release(jaxcd.Histogram(), search=_on_release)),
    Method("Histogram, then GFCI", by_release(jaxcd.Histogram(), search=jaxcd.gfci)),
)

PUBLISHED = (
    Method(
        "Priv-FCI, published",
        lambda data, epsilon, key: published.priv_fci(data, epsilon=epsilon or 1.0, key=key),
        published=True,
    ),
)

SCORES = {
    "skeleton_f1": "skeleton",
    "mark_f1": "edges with both marks",
    "orientation_f1": "directed edges",
}


def reached(rows: Sequence[ex.Row]) -> list[dict[str, Any]]:
    """For each case and private method the smallest total from which on it is within 0.02 of the
    reference, by score; else None.  A method that was not run has no entry, nor has a case without
    the reference.
    """
    found = []
    for reference in (row for row in rows if row.method == REFERENCE):
        case = reference.case
        for method in PRIVATE:
            line = [row for row in rows if row.like(case=case, method=method.label)]
            if not line:
                continue
            line.sort(key=lambda row: row.epsilon)
            entry: dict[str, Any] = {"case": case, "method": method.label}
            entry["reference"] = {score: reference[score] for score in SCORES}
            for score in SCORES:
                close = [row[score] >= reference[score] - CLOSE for row in line]
                first = next((i for i in range(len(close)) if all(close[i:])), None)
                entry[score] = None if first is None else line[first].epsilon
            found.append(entry)
    return found


def run_times(rows: Sequence[ex.Row]) -> list[dict[str, Any]]:
    """For each whole network and method that was run the largest median over the totals, beside the
    published time.
    """
    times = []
    for network, stated in PUBLISHED_SECONDS.items():
        here = [row for row in rows if row.network == network and not row.hidden]
        if here:
            seconds: dict[str, float] = {}
            for row in here:
                seconds[row.method] = max(row.seconds, seconds.get(row.method, 0.0))
            times.append({"network": network, "published": stated, "seconds": seconds})
    return times


def plot(rows: Sequence[ex.Row], path: Path) -> None:
    """F1 against the total epsilon: a line of panels a case, one for each score."""
    cases = list(dict.fromkeys(row.case for row in rows))
    figure, axes = ex.panels(
        len(SCORES), len(cases), width=2.6, height=2.1, sharex=True, sharey=True
    )
    for place, ax in np.ndenumerate(axes):
        score, case = list(SCORES)[place[0]], cases[place[1]]
        for i, method in enumerate(PRIVATE):
            line = [row for row in rows if row.like(case=case, method=method.label)]
            if not line:
                continue
            xy = [row.epsilon for row in line], [row[score] for row in line]
            ax.plot(*xy, color=f"C{i}", marker="o", markersize=3, label=method.label)
        for method, style in zip(NON_PRIVATE, ("-", "--", ":", "-."), strict=True):
            look = {"color": "0.4", "linewidth": 1, "linestyle": style}
            for row in (row for row in rows if row.like(case=case, method=method.label)):
                ax.axhline(row[score], label=method.label, **look)
        ax.set(xscale="log", ylim=(-0.03, 1.03))
    for line, words in zip(axes, SCORES.values(), strict=True):
        line[0].set_ylabel(f"F1, {words}")
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    for column, case in zip(axes.T, cases, strict=True):
        column[0].set_title(case.replace(" without ", "\nwithout "), fontsize=10)
        column[-1].set_xlabel("total epsilon")
        column[-1].set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        column[-1].minorticks_off()
    ex.save_picture(figure, path, legend=4, fontsize=9)


def picture(bench: Bench, folder: Path, epsilons: Sequence[float]) -> None:
    """The first run's graph of the first private method beside the true PAG."""
    epsilon = next((epsilon for epsilon in epsilons if epsilon >= PICTURED), epsilons[-1])
    folder.mkdir(parents=True, exist_ok=True)
    graph = PRIVATE[0].run(bench.data[0], epsilon, bench.noise[0]).graph
    path = folder / f"{'_'.join((bench.case.network, *bench.case.hidden))}.png"
    titles = (f"{PRIVATE[0].label}, epsilon = {epsilon:g}", "the true PAG")
    path.write_bytes(comparison_png(graph, bench.truth, titles=titles, dpi=110))


class Bench:
    """One case: its data sets and their noise."""

    def __init__(self, case: Case, n_samples: int, n_runs: int) -> None:
        self.case, self.truth = case, case.truth()
        keys = jax.random.split(jax.random.key(20221), n_runs)
        self.data = [case.sample(n_samples, key) for key in keys]
        self.noise = list(jax.random.split(jax.random.key(7411), n_runs))


def measure(
    bench: Bench, method: Method, epsilon: float | None, compilations: ex.Compilations
) -> dict[str, Any]:
    """All runs of a method at one price.  A run that compiles is run again for its time: with the
    same noise it goes the same way.

    largest_spent: of all runs.  seconds, processor_seconds: medians; the second, summed over
    threads, is what a run needs where other programs share the machine.
    """
    results, clocks = [], []
    for data, key in zip(bench.data, bench.noise, strict=True):
        n_before = -1
        while n_before < compilations.n:
            n_before = compilations.n
            with ex.Clock() as clock:
                result = method.run(data, epsilon, key)
        results.append(result)
        clocks.append(clock)
    spent = max(result.spent.epsilon for result in results)
    largest = max(spent, *(result.cost.epsilon for result in results))
    if epsilon is not None and not method.published and not largest <= epsilon:
        raise AssertionError(
            f"{method.label} on {bench.case.label}: more than the total {epsilon:g} was spent"
        )
    return {
        "network": bench.case.network,
        "hidden": list(bench.case.hidden),
        "largest_spent": None if epsilon is None else spent,
        "delta": None if epsilon is None else results[0].cost.delta,
        "total_epsilon": (
            None if epsilon is None else ex.mean(result.cost.epsilon for result in results)
        ),
        "proven": epsilon is not None and not method.published,
        **ex.means(ex.scores([result.graph for result in results], bench.truth, *SCORES)),
        "seconds": median(clock.seconds for clock in clocks),
        "longest_seconds": max(clock.seconds for clock in clocks),
        "processor_seconds": median(clock.processor_seconds for clock in clocks),
        "exhausted": ex.mean(result.exhausted for result in results),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every row of every case, in the table's order; after them the case's picture."""
    compilations = ex.Compilations()
    for case in CASES:
        if case.network not in chosen.networks:
            continue
        bench = Bench(case, chosen.rows, chosen.runs)
        for methods, prices in (
            (NON_PRIVATE, [None]),
            (PRIVATE, chosen.epsilon),
            (PUBLISHED, chosen.epsilon),
        ):
            for method in labelled(methods, chosen.methods):
                for epsilon in prices:
                    values = (case.label, method.label, epsilon, chosen.runs)
                    yield (values, measure, bench, method, epsilon, compilations)
        picture(bench, chosen.out.with_suffix(""), chosen.epsilon)


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """From which total on a method is close, run times, and what hiding ``smoke`` does."""
    entries, times = reached(record.rows), run_times(record.rows)
    by_case: dict[str, dict[str, Any]] = {}
    for entry in entries:
        reference = " / ".join(f"{value:.2f}" for value in entry["reference"].values())
        totals = ("-" if entry[score] is None else f"{entry[score]:g}" for score in SCORES)
        line = by_case.setdefault(entry["case"], {"case": entry["case"], "reference": reference})
        line[entry["method"]] = " / ".join(totals)
    columns = [ex.Column("case"), ex.Column("F1 of the reference", "reference")]
    columns += [ex.Column(method.label) for method in PRIVATE]
    title = f"total epsilon from which on F1 is within {CLOSE} of {REFERENCE}"
    caption = "skeleton / marks / directed"
    console.print(ex.table_of(by_case.values(), columns, title, caption))
    lines = [
        {"method": label, **{entry["network"]: entry["seconds"].get(label) for entry in times}}
        for label in dict.fromkeys(label for entry in times for label in entry["seconds"])
    ]
    stated = {entry["network"]: entry["published"] for entry in times}
    columns = [ex.Column("method"), *(ex.Column(name, name, ".3f") for name in stated)]
    title = "seconds a run after compilation (published: Priv-FCI, Varici 2022, another machine)"
    console.print(ex.table_of([{"method": "published", **stated}, *lines], columns, title))
    more = {"reached": entries, "run_times": times}
    if "asia" in chosen.networks:
        more["hidden_smoke"] = hidden_smoke(chosen.rows, seed=20221)
        print_hidden_smoke(more["hidden_smoke"], console)
    return more


REASONS = {case.label: case.reason for case in CASES}

KEY = ("case", "method", "epsilon", "n_runs")

EXPERIMENT = ex.Experiment(
    "priv_fci",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "method; epsilon:g; total=total_epsilon:.3g; spent=largest_spent:.3g; "
        "skeleton (se)=skeleton_f1+:.2f; marks (se)=mark_f1+:.2f; "
        "directed (se)=orientation_f1+:.2f; seconds:.3f; longest=longest_seconds:.2f; "
        "cpu=processor_seconds:.2f",
        ex.Column("exhausted", lambda row: row.epsilon and row.exhausted, ".0%"),
    ),
    title=lambda row: f"{row.case}: means of {row.n_runs} runs\n{REASONS[row.case]}",
    options=(
        ex.names(
            "--networks", "networks", list(PUBLISHED_SECONDS), list(PUBLISHED_SECONDS), ["asia"]
        ),
        ex.names("--methods", "words of labels, else all"),
        ex.one_count("--rows", "records", 100_000, 20_000),
        ex.one_count("--runs", "runs of each row", 20, 2),
        ex.numbers("--epsilon", "totals", EPSILONS, (1.0, 8.0)),
    ),
    settings=ex.kept("rows", "runs", delta=DELTA, reference=REFERENCE, close=CLOSE),
    finish=finish,
    draw=plot,
)

main = EXPERIMENT.main

if __name__ == "__main__":
    main()
