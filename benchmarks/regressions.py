"""A fixed subset of the benchmarks against the committed one: accuracies, and ratios of times.

``python -m benchmarks.regressions [--write] [--only WORD ...] [--out FILE]``

Accuracies are means of F1 over a few runs with fixed data and fixed simulated noise, so that they
change only where the code does, or the arithmetic of the machine.  A time is never compared as it
is: it is divided by that of a plain NumPy or SciPy routine in the same process, run in turn with
it.  Both are processor seconds, summed over threads, after compilation, and the ratio is the median
over rounds.

An accuracy may differ from the committed one by ``F1_TOLERANCE``, and a ratio by the factor
``RATIO_TOLERANCE`` in both directions: a subset that became much faster is committed anew, too.
Prints all of it, and exits with 1 where something differs by more or is missing.  ``--write``
writes ``benchmarks/results/regressions.json``.  It takes some minutes on two cores and reads no
data files.
"""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import jax
import numpy as np
from rich.console import Console
from scipy import stats

import jaxcd
from benchmarks import experiment as ex
from benchmarks import local_frontier, mixed, priv_fci, priv_pc, releases
from benchmarks.fci_cases import Case
from benchmarks.kernel_peers import columns, dataset
from benchmarks.sources import gaussian_source, network_source
from jaxcd.citests import Query

COMMITTED = ex.RESULTS / "regressions.json"
F1_TOLERANCE = 0.02
RATIO_TOLERANCE = 2.0
ROUNDS = 7
#: processor seconds that each side of a round takes at least
ROUND_SECONDS = 0.1


# ---- accuracies


def releases_f1() -> Iterator[tuple[str, float]]:
    """Graphs from releases."""
    asia, survey = (jaxcd.networks.load(name) for name in ("asia", "survey"))
    pure, both = jaxcd.Budget(1.0), jaxcd.Budget(1.0, 1e-6)
    for name, source, kind, budget in (
        ("Histogram, asia", network_source(asia, 20_000), jaxcd.Histogram(), pure),
        ("Marginals, asia", network_source(asia, 20_000), jaxcd.Marginals(), both),
        ("Marginals, survey", network_source(survey, 50_000), jaxcd.Marginals(), both),
        ("SecondMoments, gaussian-10", gaussian_source(10, 5_000), jaxcd.SecondMoments(), both),
    ):
        yield name, releases.measure(source, kind, budget, 3)["arc_f1"]


def pc_f1() -> Iterator[tuple[str, float]]:
    """Private PC, and PC without privacy."""
    bench = priv_pc.Bench(jaxcd.networks.load("asia"), 20_000, 3)
    chosen = [(method, None) for method in priv_pc.NON_PRIVATE[:3]]
    chosen += [(method, 4.0) for method in priv_pc.PRIVATE[:3]]
    for method, epsilon in chosen:
        yield f"{method.label}, asia", priv_pc.measure(bench, method, epsilon)["arc_f1"]


def fci_f1() -> Iterator[tuple[str, float]]:
    """FCI on Asia without ``smoke``."""
    bench, compilations = priv_fci.Bench(Case("asia", ("smoke",)), 20_000, 3), ex.Compilations()
    for method, epsilon in ((priv_fci.NON_PRIVATE[0], None), (priv_fci.PRIVATE[0], 4.0)):
        found = priv_fci.measure(bench, method, epsilon, compilations)
        yield f"{method.label}, marks of asia without smoke", found["mark_f1"]


def other_f1() -> Iterator[tuple[str, float]]:
    """Mixed columns, ranks, and local privacy."""
    models = [mixed.MixedModel.draw(6, mixed.FIRST_MODEL + i) for i in range(3)]
    data = [model.sample(5_000) for model in models]
    yield "Features, 6 mixed columns", mixed.measure(models, data, 1.0)["arc_f1"]
    truths, graphs = [], []
    for seed in range(3):
        sample, truth = gaussian_source(5, 20_000)(seed)
        noise = jaxcd.SimulatedNoise(jax.random.key(seed))
        options = {"budget": jaxcd.Budget(2.0, 1e-6), "key": None, "noise": noise}
        graphs.append(jaxcd.tree_pc(sample, test=jaxcd.StratifiedRanks(), **options).graph)
        truths.append(truth)
    f1 = [float(jaxcd.metrics.arc_f1(*pair)) for pair in zip(graphs, truths, strict=True)]
    yield "tree-guided PC, StratifiedRanks, gaussian-5", float(np.mean(f1))
    for method in ("local, PC, channel-aware", "local, GES, channel-aware"):
        found = local_frontier.measure(method, "k-RR, combined", 16.0, 20_000, 2)
        yield f"{method}, skeleton of asia", found["skeleton_f1"]


# ---- ratios of times


def ratio(ours: Callable[[], object], reference: Callable[[], object]) -> float:
    """Processor seconds of ours over those of the reference: the median over rounds, in each of
    which both run in turn.
    """
    repeats = []
    for function in (ours, reference):
        function()  # compiles
        with ex.Clock() as clock:
            function()
        repeats.append(max(math.ceil(ROUND_SECONDS / max(clock.processor_seconds, 1e-6)), 1))
    ratios = []
    for _ in range(ROUNDS):
        seconds = []
        for function, n in zip((ours, reference), repeats, strict=True):
            with ex.Clock() as clock:
                for _ in range(n):
                    function()
            seconds.append(clock.processor_seconds / n)
        ratios.append(seconds[0] / seconds[1])
    return median(ratios)


def tables_by_scipy(data: jaxcd.Dataset) -> None:
    """The reference on discrete columns: chi-square of every pair of columns."""
    cards = data.domain.cardinalities
    for i in range(data.n_columns):
        for j in range(i):
            shape = (cards[i] or 1, cards[j] or 1)
            flat = np.ravel_multi_index((data.codes[:, i], data.codes[:, j]), shape)
            counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
            stats.chi2_contingency(counts + 1)


def sorts_by_numpy(values: np.ndarray) -> None:
    """The reference on numeric columns: the ranks of every column.  No matrix product, for which
    NumPy starts threads that wait for one another.
    """
    for column in values.T:
        np.argsort(np.argsort(column))


def kernels_by_numpy(values: np.ndarray) -> float:
    """The reference of kernel tests: a dense statistic of two columns' Gaussian kernels."""
    gram = [np.exp(-((c[:, None] - c[None, :]) ** 2) / 2) for c in values[:, :2].T]
    centred = gram[0] - gram[0].mean(axis=0) - gram[0].mean(axis=1)[:, None] + gram[0].mean()
    return float((centred * gram[1]).sum())


def ratios() -> Iterator[tuple[str, float]]:
    """Times of searches and tests over those of a plain routine."""
    data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
    free, both = jaxcd.NO_PRIVACY, jaxcd.Budget(2.0, 1e-6)
    noise = partial(jaxcd.SimulatedNoise, jax.random.key(1))

    def private_pc(decider: jaxcd.decisions.Decider) -> Callable[[], object]:
        options = {"test": jaxcd.CovarianceNorm(), "budget": both, "key": None}
        return lambda: jaxcd.pc(data, decider=decider, noise=noise(), **options)

    exact = {"test": jaxcd.ChiSquare(), "decider": jaxcd.Threshold(), "budget": free, "key": None}
    discrete: dict[str, Callable[[], object]] = {
        "PC, ChiSquare": lambda: jaxcd.pc(data, **exact),
        "FCI, ChiSquare": lambda: jaxcd.fci(data, **exact),
        "PC, LevelwiseGaussian": private_pc(jaxcd.LevelwiseGaussian()),
        "PC, SparseVector": private_pc(jaxcd.SparseVector()),
        "GES, BIC": lambda: jaxcd.ges(data, budget=free),
        "Marginals": lambda: jaxcd.search(
            jaxcd.release(data, jaxcd.Marginals(), budget=both, noise=noise())
        ),
    }
    for name, ours in discrete.items():
        yield (
            f"{name}, asia: over SciPy's chi-square of all pairs",
            ratio(ours, lambda: tables_by_scipy(data)),
        )
    sample, _ = gaussian_source(10, 20_000)(0)
    values = np.column_stack([sample.values(name) for name in sample.names])
    yield (
        "GES, gaussian-10: over NumPy's ranks of all columns",
        ratio(lambda: jaxcd.ges(sample, budget=free), lambda: sorts_by_numpy(values)),
    )
    table = columns(1_000, 2)
    for test, given in ((jaxcd.HSIC(), ()), (jaxcd.RCIT(), (2, 3))):
        query, kernel_data = Query.of(0, 1, given), dataset(table)

        def ours(test: Any = test, query: Query = query, rows: Any = kernel_data) -> object:
            prepared = test.prepare(rows, key=jax.random.key(0))
            return prepared.evaluate(query.given, [query], alpha=0.05)

        yield (
            f"{test.name}, 1,000 rows: over NumPy's dense statistic",
            ratio(ours, lambda: kernels_by_numpy(table)),
        )


PARTS: dict[str, tuple[str, Callable[[], Iterator[tuple[str, float]]]]] = {
    "releases": ("F1", releases_f1),
    "PC": ("F1", pc_f1),
    "FCI": ("F1", fci_f1),
    "others": ("F1", other_f1),
    "times": ("ratio", ratios),
}


def measure(part: str) -> list[dict[str, Any]]:
    """The rows of a part."""
    kind, values = PARTS[part]
    tolerance = F1_TOLERANCE if kind == "F1" else RATIO_TOLERANCE
    rows = []
    for what, value in values():
        print(f"{kind} of {what}: {value:.3f}", flush=True)
        rows.append({"what": what, "kind": kind, "value": value, "tolerance": tolerance})
    return rows


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every part that is asked for."""
    for part in PARTS:
        if chosen.only is None or part in chosen.only:
            yield (part,), measure, part


def differs(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str:
    """In which way a row differs from the committed one by more than its tolerance; else empty."""
    if now is None:
        return "not measured"
    if before is None:
        return "not in the committed file"
    if before["kind"] == "F1":
        within = abs(now["value"] - before["value"]) <= before["tolerance"]
    else:
        factor = now["value"] / before["value"]
        within = 1 / before["tolerance"] <= factor <= before["tolerance"]
    if within:
        return ""
    higher = now["value"] > before["value"]
    words = ("worse", "better") if before["kind"] == "F1" else ("faster", "slower")
    return words[higher]


def compare(before: Sequence[ex.Row], now: Sequence[ex.Row]) -> list[dict[str, Any]]:
    """A line for each row of both, with what differs."""
    rows = [{(row.part, row.what): row for row in several} for several in (before, now)]
    lines = []
    for place in dict.fromkeys((*rows[0], *rows[1])):
        old, new = (each.get(place) for each in rows)
        either = old or new
        lines.append(
            {
                **{name: either[name] for name in ("part", "what", "kind", "tolerance")},
                "committed": old and old["value"],
                "now": new and new["value"],
                "differs": differs(old, new),
            }
        )
    return lines


COLUMNS = ex.columns_of(
    "what; kind; committed:.3f; now:.3f",
    ex.Column("tolerance", lambda line: f"{'' if line.kind == 'F1' else 'x '}{line.tolerance:g}"),
    "differs",
)


def _elsewhere(chosen: Namespace) -> None:
    """Without ``--write`` the committed file stays."""
    if not chosen.write and chosen.out == COMMITTED:
        chosen.out = COMMITTED.with_name("regressions_now.json")


EXPERIMENT = ex.Experiment(
    "regressions",
    __doc__,
    ("part", "what"),
    jobs,
    options=(
        ex.Option("--write", "write the committed file anew", flag=True),
        ex.names("--only", "parts", list(PARTS)),
    ),
    check=_elsewhere,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, and compares unless the file is written anew."""
    chosen = EXPERIMENT.parse(arguments)
    EXPERIMENT.main(arguments)
    if chosen.write:
        return
    before = [
        row for row in ex.read_rows(COMMITTED) if chosen.only is None or row.part in chosen.only
    ]
    lines = compare(before, ex.read_rows(chosen.out))
    Console(width=150).print(ex.table_of(lines, COLUMNS, "against the committed subset"))
    n_differing = sum(bool(line["differs"]) for line in lines)
    print(f"{n_differing} of {len(lines)} differ by more than their tolerance")
    if n_differing:
        sys.exit(1)


if __name__ == "__main__":
    main()
