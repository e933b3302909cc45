"""Errors of single private tests against epsilon: PCD's RCIT as published, and Kendall's tau.

``python -m benchmarks.pcd_figure1 [--quick] [--sizes N ...] [--levels L ...] [--runs R] [--epsilon
E ...] [--out FILE]``

Data, as in the paper: x = sin(sum z) + c_1 e_x, y = sin(sum z) + c_2 e_y; z_1, ..., z_d, e_x and
e_y uniform on (-.5, .5), c_1 and c_2 uniform on (.5, 1), drawn anew for each data set.  Type I:
share of data sets in which x and y are called dependent given all z; type II: in which they are
called independent given all but the last.  Rates are exact over the noise (a Laplace tail), so
only data sets are averaged.  The paper's d and its eight epsilons were not at hand: d is 1, 3 and
5, and the epsilons are .1 to 20.  "Inf" is the row without noise.

Rows: PCD with its noise (not private, whatever its epsilon: PRIVACY.md G) and without, in both
readings of lambda = 1: n lambda / 2 on the diagonal, which is what its objective says, and K + I,
with the same bounds; RCIT calibrated by leave-one-out, without privacy; Kendall's tau within strata
(each z is cut into equal parts of its public range) with proved noise on its margin, with the noise
that Priv-PC puts on its p-value, and without.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import networkx as nx
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from jaxcd.citests import Query
from jaxcd.data import structural
from jaxcd.published.accounting import claimed_sensitivity
from jaxcd.published.pcd_bounds import deletion_probability
from jaxcd.published.pcd_rcit import PublishedRCIT
from jaxcd.queries import Door, Session

ALPHA = 0.05
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SIZES = (200, 500)
LEVELS = (1, 3, 5)
#: levels into which each conditioning column is cut for Kendall's strata, by the number of columns
CUTS = {1: 8, 2: 4, 3: 3}
PCD = "PCD's RCIT, n lambda / 2, published noise"
PCD_PLAIN = "PCD's RCIT, n lambda / 2, no privacy"
IDENTITY = "PCD's RCIT, K + I, published noise"
IDENTITY_PLAIN = "PCD's RCIT, K + I, no privacy"
RCIT = "RCIT, no privacy"
KENDALL = "Kendall, proved noise"
KENDALL_PUBLISHED = "Kendall, Priv-PC's noise"
KENDALL_PLAIN = "Kendall, no privacy"


def model(level: int, *, dependent: bool, key: jax.Array) -> structural.StructuralModel:
    """The library's version of the family, for :mod:`benchmarks.calibration`: z_i -> x, z_i -> y
    for i < level; under H1 also x -> y.
    """
    dag: nx.DiGraph = nx.DiGraph()
    dag.add_nodes_from(["x", "y", *(f"z{i}" for i in range(level))])
    dag.add_edges_from((f"z{i}", node) for i in range(level) for node in "xy")
    if dependent:
        dag.add_edge("x", "y")
    return structural.nonlinear_sem(dag, key=key)


def sample(n_samples: int, level: int, seed: int) -> jaxcd.Dataset:
    """One data set of the paper's model with ``level`` columns z."""
    rng = np.random.default_rng([410_000, seed, n_samples, level])
    z = rng.uniform(-0.5, 0.5, (n_samples, level))
    errors = rng.uniform(0.5, 1, 2) * rng.uniform(-0.5, 0.5, (n_samples, 2))
    names = ["x", "y", *(f"z{i}" for i in range(level))]
    signal = np.sin(z.sum(axis=1))[:, None]
    return jaxcd.Dataset.from_array(np.column_stack([signal + errors, z]), names=names)


def stratified(data: jaxcd.Dataset, given: Sequence[int]) -> jaxcd.Dataset:
    """x and y as they are, each of the columns ``given`` cut into equal parts of (-.5, .5)."""
    n_cuts = CUTS.get(len(given), 2)
    names = [data.names[place] for place in given]
    columns: dict[str, jaxcd.Column] = {name: jaxcd.Numeric() for name in "xy"}
    columns |= {name: jaxcd.Ordinal(tuple(range(n_cuts))) for name in names}
    cuts = np.arange(1, n_cuts) / n_cuts - 0.5
    codes = [np.searchsorted(cuts, data.values(name)) for name in names]
    discrete = np.column_stack(codes) if codes else np.empty((data.n_samples, 0))
    numeric = np.column_stack([data.values(name) for name in "xy"])
    return jaxcd.Dataset(jaxcd.Domain(columns), discrete.astype(np.int32), numeric)


def laplace_tail(gap: float, scale: float) -> float:
    """P[Lap(scale) > gap]."""
    return 0.5 * math.exp(-gap / scale) if gap > 0 else 1 - 0.5 * math.exp(gap / scale)


Calls = dict[tuple[str, float | None], float]


def _kendall(data: jaxcd.Dataset, query: Query, epsilons: Sequence[float]) -> Calls:
    cut = stratified(data, query.given)
    session = Session(Door(cut, jaxcd.NO_PRIVACY), jaxcd.KendallTau(), alpha=ALPHA)
    found = session.evaluate([Query.of(0, 1, range(2, cut.n_columns))])
    margin, pvalue = float(found.margin[0]), math.exp(found.log_pvalue[0])
    sensitivity = session.sensitivity()
    scale = sensitivity.value + 2 * sensitivity.pad
    on_pvalue = 2 * claimed_sensitivity(data.n_samples)  # both tails
    calls: Calls = {(KENDALL_PLAIN, None): float(margin > 0)}
    for epsilon in epsilons:
        calls[KENDALL, epsilon] = laplace_tail(-margin, scale / epsilon)
        calls[KENDALL_PUBLISHED, epsilon] = laplace_tail(pvalue - ALPHA, on_pvalue / epsilon)
    return calls


def _pcd(
    data: jaxcd.Dataset,
    query: Query,
    epsilons: Sequence[float],
    key: jax.Array,
    test: PublishedRCIT,
    names: tuple[str, str],
) -> Calls:
    noisy, plain = names
    evidence = test.prepare(data, key=key).evidence(query)
    calls: Calls = {(plain, None): float(evidence.pvalue < ALPHA)}
    for epsilon in epsilons:
        calls[noisy, epsilon] = 1 - deletion_probability(evidence, alpha=ALPHA, epsilon=epsilon)
    return calls


def _rcit(data: jaxcd.Dataset, query: Query, key: jax.Array) -> Calls:
    session = Session(Door(data, jaxcd.NO_PRIVACY), jaxcd.RCIT(), alpha=ALPHA, key=key)
    return {(RCIT, None): float(session.evaluate([query]).margin[0] > 0)}


def plot(rows: Sequence[ex.Row], path: Path) -> None:
    """Type I (solid) and type II (dashed) error against epsilon, a panel a setting."""
    sizes, levels = sorted({row.n_samples for row in rows}), sorted({row.level for row in rows})
    figure, axes = ex.panels(
        len(sizes), len(levels), width=3.4, height=3.0, sharex=True, sharey=True
    )
    for place, ax in np.ndenumerate(axes):
        n, level = sizes[place[0]], levels[place[1]]
        for i, method in enumerate(
            (PCD, IDENTITY, KENDALL, KENDALL_PUBLISHED, RCIT, PCD_PLAIN, IDENTITY_PLAIN)
        ):
            line = [row for row in rows if row.like(n_samples=n, level=level, method=method)]
            for style, error in {"-": "type_1", "--": "type_2"}.items() if line else ():
                look = {"color": f"C{i}", "linestyle": style}
                look |= {"label": method} if style == "-" else {}
                values = [row[error] for row in line]
                if line[0].epsilon is None:
                    ax.axhline(values[0], linewidth=1, alpha=0.6, **look)
                else:
                    epsilons = [row.epsilon for row in line]
                    ax.plot(epsilons, values, marker="o", markersize=3, **look)
        ax.set(title=f"n = {n}, |Z| = {level}", xscale="log", ylim=(-0.03, 1.03))
    for ax in axes[-1]:
        ax.set_xlabel("epsilon")
    for ax in axes[:, 0]:
        ax.set_ylabel("type I (solid), type II (dashed)")
    ex.save_picture(figure, path, legend=3)


def measure(
    n_samples: int, level: int, n_runs: int, epsilons: Sequence[float]
) -> list[dict[str, Any]]:
    """Every row of one size and one number of conditioning columns; the first data set is also run
    once before, to compile.  epsilon: of the one test, None without privacy.  proven: whether that
    epsilon holds.  *_se: the standard error over data sets.
    """
    ends = {False: 2 + level, True: 1 + level}
    queries = {side: Query.of(0, 1, range(2, end)) for side, end in ends.items()}
    calls: dict[bool, list[Calls]] = {False: [], True: []}
    seconds: dict[str, list[float]] = {PCD: [], IDENTITY: [], RCIT: [], KENDALL: []}
    for dependent, query in queries.items():
        for run in (0, *range(n_runs)):
            data, key = sample(n_samples, level, run), jax.random.key(20_000 + run)
            tested = partial(_pcd, data, query, epsilons, key)
            methods = {
                PCD: partial(tested, PublishedRCIT(), (PCD, PCD_PLAIN)),
                IDENTITY: partial(tested, PublishedRCIT(ridge=1.0), (IDENTITY, IDENTITY_PLAIN)),
                RCIT: partial(_rcit, data, query, key),
                KENDALL: partial(_kendall, data, query, epsilons),
            }
            found: Calls = {}
            for name, method in methods.items():
                with ex.Clock() as clock:
                    found |= method()
                seconds[name].append(clock.seconds)
            calls[dependent].append(found)
    rows = []
    for method, epsilon in sorted(
        calls[False][0], key=lambda row: (row[1] is not None, row[0], row[1] or 0)
    ):
        timed = (PCD, IDENTITY, RCIT, KENDALL)
        clocked = next(name for name in timed if method.startswith(name.rpartition(", ")[0]))
        errors = {
            "type_1": [call[method, epsilon] for call in calls[False][1:]],
            "type_2": [1 - call[method, epsilon] for call in calls[True][1:]],
        }
        rows.append(
            {
                "method": method,
                "epsilon": epsilon,
                "proven": method == KENDALL,
                **ex.means(errors),
                "seconds_per_test": median(seconds[clocked]),
            }
        )
    return rows


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """The rows of every size and number of conditioning columns."""
    for n in chosen.sizes:
        for level in chosen.levels:
            yield (n, level, chosen.runs), measure, n, level, chosen.runs, chosen.epsilon


def asked(row: Mapping[str, Any]) -> str:
    """The epsilon of a row; with a question mark where it is not proved."""
    if row["epsilon"] is None:
        return ""
    return f"{row['epsilon']:g}" + ("" if row["proven"] else " ?")


EXPERIMENT = ex.Experiment(
    "pcd_figure1",
    __doc__,
    ("n_samples", "level", "n_data_sets", "method", "epsilon"),
    jobs,
    columns=ex.columns_of(
        "method",
        ex.Column("epsilon", asked),
        "type I=type_1+:.3f; type II=type_2+:.3f; seconds=seconds_per_test:.3f",
    ),
    title=lambda row: (
        f"n = {row.n_samples}, |Z| = {row.level}: {row.n_data_sets} data sets of each kind"
    ),
    options=(
        ex.counts("--sizes", "records", SIZES, SIZES[:1]),
        ex.Option("--levels", "conditioning columns", LEVELS, (1,), int, True, range(1, 9)),
        ex.numbers("--epsilon", "of one noisy answer", EPSILONS),
        ex.one_count("--runs", "data sets of each kind", 100, 10),
    ),
    settings=ex.kept(
        "runs",
        alpha=ALPHA,
        n_permutations=100,
        penalty=1.0,
        cuts={str(n): cut for n, cut in CUTS.items()},
    ),
    draw=plot,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
