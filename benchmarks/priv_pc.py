"""Private PC on seven networks: how much of the true graph is found, at what total price.

``python -m benchmarks.priv_pc [--quick] [--data FOLDER] [--runs R] [--epsilon E ...] [--per-round E
...] [--methods WORD ...] [--limit SECONDS] [--resume] [--out FILE]``

Rows: PC without privacy; Priv-PC, SVT-PC, EM-PC, CURATE and NoLeaks as published, over epsilon a
round (a visit of EM-PC, the budget of CURATE, a thousandth of a gradient of NoLeaks), with the
total that they report afterwards (not proved); and the proved mechanisms at totals fixed in
advance.  Epsilons a round are 1 and the 21 of the authors'
code.  "no subsample" is Priv-PC that sieves on all rows, which the paper's table 2 has beside it.
A row of which a run takes longer than the limit is left out, with that time.

Run r of every row uses data set r of its network and noise r.  Columns: F1 over arcs (an undirected
edge is two) against the true CPDAG, and against PC without privacy with the same test on the same
data ("perfect accuracy" of the paper is against a graph of this kind); skeleton F1; number of
tests, where it may be told; seconds, after compilation; and the share of runs that exhausted their
budget.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.searches import DELTA, Run, by_tests, labelled
from benchmarks.sources import BUILT_IN, FROM_FILE, load_networks
from jaxcd import published

PUBLISHED_DELTA = 1e-3

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)

SEVEN = (*BUILT_IN, *FROM_FILE)

#: 1, and those of the authors' code: 21 from 10^-2 to 10^1.5, even on the logarithm
PER_ROUND = (1.0, *(float(f"{10 ** (-2 + 3.5 * i / 20):.4g}") for i in range(21)))


@dataclass(frozen=True)
class Method:
    """One line of the table.  baseline: the label of PC without privacy with the same test (perhaps
    its own).
    """

    label: str
    run: Run
    baseline: str
    published: bool = False


def _without_privacy(
    test: jaxcd.citests.CITest, *, alpha: float = 0.05, stable: bool = True
) -> Run:
    return by_tests(test, decider=jaxcd.Threshold(alpha=alpha), stable=stable)


def private(
    decider: jaxcd.decisions.Decider, test: jaxcd.citests.CITest, *, delta: float = DELTA
) -> Run:
    """PC with a mechanism at totals (epsilon, delta) fixed in advance, with simulated noise."""
    return by_tests(test, decider=decider, delta=delta)


def _published(function: Callable[..., jaxcd.DiscoveryResult]) -> Run:
    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        return function(data, epsilon=epsilon, delta=PUBLISHED_DELTA, key=key)

    return run


NON_PRIVATE = tuple(
    Method(label, run, label)
    for label, run in {
        "PC, ChiSquare": _without_privacy(jaxcd.ChiSquare()),
        "PC, CovarianceNorm": _without_privacy(jaxcd.CovarianceNorm()),
        "PC, KendallTau": _without_privacy(jaxcd.KendallTau()),
        # The test, level and order of the published methods.
        "PC, ConditionalTau": _without_privacy(published.ConditionalTau(), alpha=0.1, stable=False),
        "PC, GTest": _without_privacy(jaxcd.GTest(), alpha=0.1, stable=False),
    }.items()
)

PUBLISHED = (
    Method(
        "Priv-PC, published", _published(published.priv_pc), "PC, ConditionalTau", published=True
    ),
    Method(
        "Priv-PC, published, no subsample",
        _published(partial(published.priv_pc, rate=1.0)),
        "PC, ConditionalTau",
        published=True,
    ),
    Method("SVT-PC, published", _published(published.svt_pc), "PC, ConditionalTau", published=True),
    Method("EM-PC, published", _published(published.em_pc), "PC, GTest", published=True),
    # its epsilon is the budget of the run, and its level that of its code
    Method(
        "CURATE, published",
        lambda data, epsilon, key: published.curate(data, epsilon=epsilon or 1.0, key=key),
        "PC, ConditionalTau",
        published=True,
    ),
    # it takes about a thousand gradients, so that this is about its total; its baseline is only
    # what the others have
    Method(
        "NoLeaks, published",
        lambda data, epsilon, key: published.noleaks(
            data, epsilon=(epsilon or 1.0) / 1000, key=key
        ),
        "PC, ChiSquare",
        published=True,
    ),
)

MECHANISMS: tuple[tuple[jaxcd.decisions.Decider, jaxcd.citests.CITest], ...] = (
    (jaxcd.LevelwiseGaussian(), jaxcd.CovarianceNorm()),
    (jaxcd.SparseVector(), jaxcd.CovarianceNorm()),
    (jaxcd.SparseVector(), jaxcd.KendallTau()),
    (jaxcd.SieveAndExamine(), jaxcd.CovarianceNorm()),
    (jaxcd.ExponentialSelect(), jaxcd.CovarianceNorm()),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect()), jaxcd.CovarianceNorm()),
    (jaxcd.Scheduled(jaxcd.SieveAndExamine()), jaxcd.CovarianceNorm()),
)

PRIVATE = tuple(
    Method(f"{decider.name}, {test.name}", private(decider, test), f"PC, {test.name}")
    for decider, test in MECHANISMS
)


def plot(rows: Sequence[ex.Row], path: Path) -> None:
    """F1 over arcs against the total epsilon, a panel a network."""
    networks = list(dict.fromkeys(row.network for row in rows))
    n_columns = min(4, len(networks))
    n_lines = math.ceil(len(networks) / n_columns)
    figure, axes = ex.panels(n_lines, n_columns, width=3.6, height=3.1, sharey=True)
    for ax in axes.flat[len(networks) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, networks, strict=False):
        for i, method in enumerate((*PRIVATE, *PUBLISHED)):
            line = [row for row in rows if row.like(network=name, method=method.label)]
            points = [(row.total_epsilon, row.arc_f1) for row in line if row.total_epsilon]
            look = {"linestyle": "--", "marker": "x"} if method.published else {"marker": "o"}
            words = " (total computed afterwards, not proved)" if method.published else ""
            xy = np.reshape(points, (-1, 2)).T
            ax.plot(*xy, color=f"C{i}", label=method.label + words, markersize=4, **look)
        look = {"color": "0.5", "linewidth": 1, "linestyle": ":"}
        for best in [row for row in rows if row.like(network=name, method="PC, ChiSquare")]:
            ax.axhline(best.arc_f1, label="PC without privacy, ChiSquare", **look)
        ax.set(title=name, xscale="log", xlabel="total epsilon", ylim=(0, 1.03))
    for ax in axes[:, 0]:
        ax.set_ylabel("arc F1 against the true CPDAG")
    ex.save_picture(figure, path, legend=2)


class Bench:
    """One network: its data sets, their noise, and the graphs of PC without privacy on them."""

    def __init__(self, network: jaxcd.data.BayesianNetwork, n_samples: int, n_runs: int) -> None:
        self.truth = network.cpdag()
        keys = jax.random.split(jax.random.key(20201), n_runs)
        self.data = [network.sample(n_samples, key=key) for key in keys]
        self.noise = list(jax.random.split(jax.random.key(6098), n_runs))
        self._graphs: dict[str, list[jaxcd.MixedGraph]] = {}
        self.slow: dict[str, str] = {}  # why rows of a method are left out

    def run(
        self, method: Method, epsilon: float | None
    ) -> tuple[list[jaxcd.DiscoveryResult], list[float]]:
        """The results of all runs of a method, and their seconds."""
        results, seconds = [], []
        for data, key in zip(self.data, self.noise, strict=True):
            with ex.Clock() as clock:
                results.append(method.run(data, epsilon, key))
            seconds.append(clock.seconds)
        if method.baseline == method.label:
            self._graphs[method.label] = [result.graph for result in results]
        return results, seconds

    def baseline(self, method: Method) -> list[jaxcd.MixedGraph]:
        """What PC without privacy finds with the method's test."""
        if method.baseline not in self._graphs:
            self.run(next(m for m in NON_PRIVATE if m.label == method.baseline), None)
        return self._graphs[method.baseline]


def measure(
    bench: Bench, method: Method, epsilon: float | None, limit: float = math.inf
) -> dict[str, Any]:
    """All runs of a method at one price; runs before them compile, and are not timed.  epsilon:
    what was asked (a round, where published).  Raises LeftOut where a compiled run takes longer
    than ``limit`` seconds.
    """
    if method.label in bench.slow:
        raise ex.LeftOut(bench.slow[method.label])
    for _ in range(2):  # the first run may compile
        with ex.Clock() as clock:
            method.run(bench.data[0], epsilon, bench.noise[0])
        if clock.seconds <= limit:
            break
    else:
        said = f"a run took {clock.seconds:.0f} s, more than {limit:.0f}"
        bench.slow[method.label] = f"{said} (at epsilon {epsilon:g})" if epsilon else said
        raise ex.LeftOut(bench.slow[method.label])
    results, seconds = bench.run(method, epsilon)
    graphs = [result.graph for result in results]
    tests = [result.info["n_tests"] for result in results if "n_tests" in result.info]
    private = epsilon is not None
    return {
        "total_epsilon": ex.mean(result.cost.epsilon for result in results) if private else None,
        "delta": results[0].cost.delta if private else None,
        # Simulated noise voids every guarantee; this says whether the same run with secure noise
        # has one.
        "proven": private and not method.published,
        **ex.means(ex.scores(graphs, bench.truth)),
        "arc_f1_non_private": ex.mean(ex.scores(graphs, bench.baseline(method))["arc_f1"]),
        "n_tests": ex.mean(tests) if tests else None,
        "seconds": median(seconds),
        "exhausted": ex.mean(result.exhausted for result in results),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every row of every network, in the table's order."""
    for name, network in load_networks(chosen.networks, chosen.data).items():
        bench = Bench(network, chosen.rows, chosen.runs)
        for methods, prices in (
            (NON_PRIVATE, [None]),
            (PUBLISHED, chosen.per_round),
            (PRIVATE, chosen.epsilon),
        ):
            for method in labelled(methods, chosen.methods):
                for epsilon in prices:
                    values = (name, method.label, epsilon, chosen.runs)
                    yield values, measure, bench, method, epsilon, chosen.limit


def _asked(row: ex.Row) -> str | None:
    if row.epsilon is None:
        return None
    return f"{row.epsilon:g}" + ("" if row.proven else " a round")


def _total(row: ex.Row) -> str | None:
    if row.total_epsilon is None:
        return None
    return f"{row.total_epsilon:.3g}" + ("" if row.proven else " ?")


KEY = ("network", "method", "epsilon", "n_runs")

EXPERIMENT = ex.Experiment(
    "priv_pc",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "method",
        ex.Column("epsilon", _asked),
        ex.Column("total", _total),
        "arc F1 (se)=arc_f1+:.2f; vs PC=arc_f1_non_private:.2f; skeleton=skeleton_f1:.2f; "
        "tests=n_tests:.0f; seconds:.3f",
        ex.Column("exhausted", lambda row: row.exhausted if row.proven else None, ".0%"),
    ),
    title=lambda row: f"{row.network}: means of {row.n_runs} runs",
    options=(
        ex.data_option("networks/*.bif"),
        ex.names(
            "--networks", "all that are there", (*BUILT_IN, *FROM_FILE), quick=["cancer", "asia"]
        ),
        ex.one_count("--rows", "records", 100_000, 10_000),
        ex.one_count("--runs", "runs of each row", 10, 2),
        ex.numbers("--epsilon", "totals of the proved mechanisms", EPSILONS, (1.0, 4.0)),
        ex.numbers("--per-round", "epsilon a round, published methods", PER_ROUND, (1.0,)),
        ex.names("--methods", "words of labels, else all"),
        ex.Option("--limit", "seconds that one run may take", 20.0, kind=ex.positive),
    ),
    settings=ex.kept("rows", "runs", delta=DELTA, published_delta=PUBLISHED_DELTA),
    draw=plot,
)

main = EXPERIMENT.main

if __name__ == "__main__":
    main()
