"""Nonlinear causal discovery on known structures: PCD as published, and PC with RCIT without
privacy.

``python -m benchmarks.pcd_figure2 [--quick] [--data FOLDER] [--networks NAME ...] [--sizes N ...]
[--runs R] [--epsilon E ...] [--methods WORD ...] [--max-level L] [--out FILE]``

Data: nonlinear models (``jaxcd.data.structural.nonlinear_sem``) on the DAGs of Cancer, Asia, Child
and Alarm.  Run r of every row uses model r and data set r.  Precision, recall and F1 over arcs (an
undirected edge is two) and over the skeleton, against the true CPDAG.  PCD's epsilon is that of
each noisy answer; its total is what it adds up to afterwards, which proves nothing; without one it
is PCD without noise ("Inf").  Both readings of lambda = 1 (:mod:`benchmarks.pcd_figure1`).  All
prices of a run share its tests, so that its seconds are those of all of them together.

With n lambda / 2 PCD removes few edges by its conditional tests (it rejects true nulls) unless
noise does, so its conditioning sets are limited to two columns, to one on more than eight
variables; RCIT's to three.  ``--max-level`` sets all.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax

import jaxcd
from benchmarks import experiment as ex
from benchmarks.sources import load_networks
from jaxcd import metrics
from jaxcd.data import structural
from jaxcd.published.pcd import pcd_sweep
from jaxcd.published.pcd_rcit import PublishedRCIT

NETWORKS = ("cancer", "asia", "child", "alarm")
SIZES = (1000, 2000, 4000, 8000)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
#: models of each row: fewer where a run is long
RUNS = {"cancer": 5, "asia": 5, "child": 1, "alarm": 1}
RCIT_LEVEL = 3
NON_PRIVATE = "PC, RCIT, no privacy"
#: the published methods, and what they add to the diagonal of the Gram matrix of Z
PUBLISHED = {"PCD, n lambda / 2": None, "PCD, K + I": 1.0}
Results = dict[float | None, jaxcd.DiscoveryResult]


def searched(
    test: jaxcd.citests.CITest, max_level: int, data: jaxcd.Dataset, key: jax.Array, **options: bool
) -> jaxcd.DiscoveryResult:
    """PC without privacy."""
    decider = jaxcd.Threshold(alpha=0.05)
    return jaxcd.pc(
        data,
        test=test,
        decider=decider,
        budget=jaxcd.NO_PRIVACY,
        key=key,
        max_level=max_level,
        **options,
    )


def published(
    ridge: float | None,
    epsilons: Sequence[float],
    max_level: int,
    data: jaxcd.Dataset,
    key: jax.Array,
) -> Results:
    """PCD at every price, and without noise."""
    test = PublishedRCIT(ridge=ridge)
    found = pcd_sweep(data, epsilons=epsilons, key=key, max_level=max_level, ridge=ridge)
    plain = searched(test, max_level, data, key, stable=False)
    return {None: plain, **dict(zip(epsilons, found, strict=True))}


def rows_of(
    structure: str,
    data: Sequence[jaxcd.Dataset],
    truths: Sequence[jaxcd.MixedGraph],
    chosen: Namespace,
    pcd_level: int,
) -> Iterator[ex.Job]:
    """Every row of one structure and size."""

    def rcit(level: int, sample: jaxcd.Dataset, key: jax.Array) -> Results:
        return {None: searched(jaxcd.RCIT(), level, sample, key)}

    methods: list[tuple[str, int, Callable[..., Results]]] = [(NON_PRIVATE, RCIT_LEVEL, rcit)]
    for method, ridge in PUBLISHED.items():
        methods.append((method, pcd_level, partial(published, ridge, chosen.epsilon)))
    for method, usual, run in methods:
        if not any(word.lower() in method.lower() for word in chosen.methods or [method]):
            continue
        level = usual if chosen.max_level is None else chosen.max_level
        values = structure, data[0].n_samples, method, level, len(data)
        yield values, measure, partial(run, level), data, truths


def plot(rows: Sequence[ex.Row], path: Path) -> None:
    """F1 over arcs (solid) and skeleton (dotted) against n, a panel a structure."""
    structures = list(dict.fromkeys(row.structure for row in rows))
    figure, axes = ex.panels(1, len(structures), width=3.5, height=2.8, sharey=True)
    lines = dict.fromkeys((row.method, row.epsilon) for row in rows)
    for ax, name in zip(axes[0], structures, strict=True):
        for i, (method, epsilon) in enumerate(lines):
            line = [row for row in rows if row.like(structure=name, method=method, epsilon=epsilon)]
            label = method if epsilon is None else f"{method}, {epsilon:g} an answer (not proved)"
            n, look = [row.n_samples for row in line], {"color": f"C{i}"}
            arcs = [row.arc_f1 for row in line]
            ax.plot(n, arcs, marker="o", markersize=4, label=label, **look)
            ax.plot(n, [row.skeleton_f1 for row in line], linestyle=":", linewidth=1, **look)
        ax.set(title=name, xscale="log", xlabel="records", ylim=(0, 1.03))
    axes[0, 0].set_ylabel("F1: arcs (solid), skeleton (dotted)")
    ex.save_picture(figure, path, legend=2)


def measure(
    run: Callable[[jaxcd.Dataset, jax.Array], Results],
    data: Sequence[jaxcd.Dataset],
    truths: Sequence[jaxcd.MixedGraph],
) -> list[dict[str, Any]]:
    """All runs of a method, a row a price.  Compilation is in the first run's time, so the median
    is given.
    """
    results, seconds = [], []
    for r, sample in enumerate(data):
        with ex.Clock() as clock:
            results.append(run(sample, ex.key(30_000, r)))
        seconds.append(clock.seconds)
    return [
        {
            "epsilon": epsilon,
            **summary([each[epsilon] for each in results], truths),
            "seconds": median(seconds),
        }
        for epsilon in results[0]
    ]


def summary(
    results: Sequence[jaxcd.DiscoveryResult], truths: Sequence[jaxcd.MixedGraph]
) -> dict[str, Any]:
    """Scores and what the runs say of themselves."""
    pairs = list(zip((result.graph for result in results), truths, strict=True))
    values: dict[str, list[float]] = {}
    for name, score in (("arc", metrics.arc_f1), ("skeleton", metrics.skeleton_f1)):
        found = [score(*pair) for pair in pairs]
        values[f"{name}_precision"] = [each.precision for each in found]
        values[f"{name}_recall"] = [each.recall for each in found]
        values[f"{name}_f1"] = [float(each) for each in found]
    infos = {
        name: [result.info[name] for result in results if name in result.info]
        for name in ("n_tests", "n_noisy")
    }
    total = ex.mean(result.cost.epsilon for result in results)
    return {
        "total_epsilon": total if math.isfinite(total) else None,
        "proven": False,
        **ex.means(values),
        **{name: ex.mean(several) if several else None for name, several in infos.items()},
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every row of every structure and size."""
    loaded = load_networks(chosen.networks, chosen.data)
    for name in (name for name in chosen.networks or NETWORKS if name in loaded):
        dag, n_runs = loaded[name].dag, chosen.runs or RUNS.get(name, 1)
        models = [structural.nonlinear_sem(dag, key=ex.key(10_000, r)) for r in range(n_runs)]
        truths = [model.cpdag() for model in models]
        for n in [chosen.rows] if chosen.rows else chosen.sizes:
            data = [model.sample(n, key=ex.key(20_000, r)) for r, model in enumerate(models)]
            yield from rows_of(name, data, truths, chosen, 2 if len(dag) <= 8 else 1)


KEY = ("structure", "n_samples", "method", "max_level", "n_runs", "epsilon")
COLUMNS = ex.columns_of(
    "method; n=n_samples:d; epsilon:g|no noise",
    ex.Column("total ?", lambda row: None if row.epsilon is None else row.total_epsilon, ".3g"),
    "arcs P=arc_precision:.2f; R=arc_recall:.2f; F1 (se)=arc_f1+:.2f; "
    "skeleton P=skeleton_precision:.2f; R=skeleton_recall:.2f; F1=skeleton_f1:.2f; "
    "tests=n_tests:.0f; noisy=n_noisy:.0f; seconds:.2f",
)
SETTINGS = {"alpha": 0.05, "n_permutations": 100, "penalty": 1.0}
EXPERIMENT = ex.Experiment(
    "pcd_figure2",
    __doc__,
    KEY,
    jobs,
    columns=COLUMNS,
    title=lambda row: f"{row.structure}, n = {row.n_samples}: means of {row.n_runs} runs",
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--networks", "structures", quick=["cancer"]),
        ex.one_count("--rows", "one number of records, in the place of --sizes"),
        ex.one_count("--runs", "models of each row, else those of RUNS", quick=2),
        ex.counts("--sizes", "records", SIZES, (500,)),
        ex.numbers("--epsilon", "of one noisy answer", EPSILONS, (1.0,)),
        ex.names("--methods", "words of labels, else all"),
        ex.max_level(quick=1),
    ),
    settings=ex.kept(**SETTINGS),
    draw=plot,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
