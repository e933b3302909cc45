"""How many people local privacy costs: Asia's skeleton from records that each person randomised,
beside the central model.

``python -m benchmarks.local_frontier [--quick] [--sizes N ...] [--epsilons E ...] [--runs R]
[--resume] [--out FILE]``

Local, at epsilon_LDP of the whole record, by k-ary response on each column and on the whole record:
PC with the chi-square test of what was reported, PC with the channel-aware test of the truth, GES
(BIC) on records resampled from the denoised joint table, and GES with the channel-aware BIC of the
reported records.  Central, at the same epsilon under replace-one: the ``Histogram`` release and the
search on it.  Without privacy: PC with the chi-square test. On Asia's two-level columns k-ary
response is the bounded geometric mechanism.  Asia needs no file, so ``--data`` is taken and not
used.

A row is R data sets: mean and standard deviation of skeleton F1 and of the structural Hamming
distance against the true CPDAG, and the share of runs with exactly the true skeleton.  The summary
gives the smallest size from which on the mean skeleton F1 of all sizes reaches ``TARGET``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import jax
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.local_mechanisms import denoised, randomised
from jaxcd import local, metrics
from jaxcd.discovery.score.ges import ges
from jaxcd.local.channel_tests import ChannelAwareChiSquare

TARGET = 0.8
ALPHA = 0.01
FIRST_DATA, FIRST_NOISE = 510_000, 610_000
KEY = ("method", "mechanism", "epsilon", "n_samples", "n_runs")
SETTINGS = {
    "network": "asia",
    "alpha": ALPHA,
    "target": TARGET,
    "first_data": FIRST_DATA,
    "first_noise": FIRST_NOISE,
}
MECHANISMS: dict[str, Callable[[float], local.LocalMechanism]] = {
    "k-RR": local.KaryResponse,
    "k-RR, combined": local.CombinedKaryResponse,
}


def _pc(data: jaxcd.Dataset, test: Any) -> jaxcd.MixedGraph:
    return jaxcd.pc(
        data, test=test, decider=jaxcd.Threshold(alpha=ALPHA), budget=jaxcd.NO_PRIVACY, key=None
    ).graph


def _resampled(
    data: jaxcd.Dataset, mechanism: local.LocalMechanism, key: jax.Array
) -> jaxcd.MixedGraph:
    return ges(denoised(data, mechanism, key), budget=jaxcd.NO_PRIVACY).graph


#: Searches on what was reported, by a mechanism that is known, with a key of public randomness.
LOCAL: dict[str, Callable[[jaxcd.Dataset, local.LocalMechanism, jax.Array], jaxcd.MixedGraph]] = {
    "local, PC, chi-square": lambda data, mechanism, key: _pc(data, jaxcd.ChiSquare()),
    "local, PC, channel-aware": lambda data, mechanism, key: _pc(
        data, ChannelAwareChiSquare(mechanism)
    ),
    "local, IBU and GES": _resampled,
    "local, GES, channel-aware": lambda data, mechanism, key: (
        ges(data, score=local.ChannelAwareBIC(mechanism), budget=jaxcd.NO_PRIVACY).graph
    ),
}
CENTRAL = "central, Histogram"
PLAIN = "no privacy, PC, chi-square"


def search(
    method: str, mechanism: str | None, epsilon: float | None, data: jaxcd.Dataset, key: jax.Array
) -> jaxcd.MixedGraph:
    """The graph of one run."""
    if method == PLAIN:
        return _pc(data, jaxcd.ChiSquare())
    assert epsilon is not None
    if method == CENTRAL:
        bought = jaxcd.release(
            data, jaxcd.Histogram(), budget=jaxcd.Budget(epsilon), noise=jaxcd.SimulatedNoise(key)
        )
        found = jaxcd.search(bought)
        if not found.cost.epsilon <= epsilon:
            raise AssertionError(f"the release promised {found.cost} of epsilon {epsilon}")
        return found.graph
    assert mechanism is not None
    chosen = MECHANISMS[mechanism](epsilon)
    if not chosen.guarantee(data.domain).epsilon_ldp <= epsilon:
        raise AssertionError(
            f"{chosen} guarantees {chosen.guarantee(data.domain)} of epsilon {epsilon}"
        )
    noise, public = jax.random.split(key)
    return LOCAL[method](randomised(data, chosen, noise), chosen, public)


def measure(
    method: str, mechanism: str | None, epsilon: float | None, n: int, runs: int
) -> dict[str, Any]:
    """``runs`` data sets, each with noise of its own.  exact: the share of runs that found the true
    skeleton; seconds: the median of a run.
    """
    network = jaxcd.networks.load("asia")
    truth = network.cpdag()
    values: dict[str, list[float]] = {"skeleton_f1": [], "shd": []}
    seconds = []
    for run in range(runs):
        data = network.sample(n, key=ex.key(FIRST_DATA, run))
        with ex.Clock() as clock:
            graph = search(method, mechanism, epsilon, data, ex.key(FIRST_NOISE, run))
        seconds.append(clock.seconds)
        values["skeleton_f1"].append(float(metrics.skeleton_f1(graph, truth)))
        values["shd"].append(metrics.shd(graph, truth))
    exact = ex.mean(score == 1 for score in values["skeleton_f1"])
    return {**ex.means(values), "exact": exact, "seconds": median(seconds)}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every method, mechanism and epsilon at every size."""
    lines: list[tuple[str, str | None, float | None]] = [(PLAIN, None, None)]
    for epsilon in chosen.epsilons:
        lines.append((CENTRAL, None, epsilon))
        lines += [(method, mechanism, epsilon) for mechanism in MECHANISMS for method in LOCAL]
    for n in chosen.sizes:
        for line in lines:
            yield (*line, n, chosen.runs), measure, *line, n, chosen.runs
        jax.clear_caches()  # the next size has other shapes
        print(f"{n:,} people: done")


def summarise(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For every method, mechanism and epsilon the smallest size from which on the mean skeleton F1
    is at least TARGET; None: never.
    """
    by_line: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in rows:
        sizes = by_line.setdefault(tuple(row[name] for name in KEY[:3]), {})
        sizes[row["n_samples"]] = row["skeleton_f1"]
    found = []
    for line, sizes in by_line.items():
        needed = None
        for n in sorted(sizes, reverse=True):
            if not sizes[n] >= TARGET:
                break
            needed = n
        named = dict(zip(KEY, line, strict=False))
        found.append({**named, "needed": needed, "largest": max(sizes)})
    return found


def draw(rows: Sequence[ex.Row], path: Path) -> None:
    """Skeleton F1 against people, one panel an epsilon."""
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    figure, (axes,) = ex.panels(1, len(epsilons), width=4.2, height=3.6, sharey=True)
    styles = {None: "-", "k-RR": "-", "k-RR, combined": ":"}
    colours = {name: f"C{i}" for i, name in enumerate([PLAIN, CENTRAL, *LOCAL])}
    for ax, epsilon in zip(axes, epsilons, strict=False):
        shown = [row for row in rows if row.epsilon in (None, epsilon)]
        for method, mechanism in dict.fromkeys((row.method, row.mechanism) for row in shown):
            here = [row for row in shown if row.like(method=method, mechanism=mechanism)]
            xy = zip(*sorted((row.n_samples, row.skeleton_f1) for row in here), strict=True)
            label = method if mechanism is None else f"{method}; {mechanism}"
            look = {"color": colours[method], "marker": ".", "label": label}
            ax.plot(*xy, styles[mechanism], **look)
        ax.axhline(TARGET, color="0.8", linewidth=0.8)
        ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="people", title=f"epsilon = {epsilon:g}")
    axes[0].set_ylabel("skeleton F1, mean")
    ex.save_picture(figure, path, legend=2)


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """Mean skeleton F1 by size, and the number of people needed."""
    summary = summarise(record.rows)
    sizes = sorted({row.n_samples for row in record.rows})
    lines = []
    for line in summary:
        named = {name: line[name] for name in KEY[:3]}
        by_size = {str(row.n_samples): row.skeleton_f1 for row in record.rows if row.like(**named)}
        lines.append({**line, **by_size})
    columns = ex.columns_of(
        "method; mechanism; epsilon:g",
        *(ex.Column(f"{n:,}", str(n), ".3f") for n in sizes),
        ex.Column(
            "people needed",
            lambda line: f"{line.needed:,}" if line.needed else f"above {line.largest:,}",
        ),
    )
    console.print(ex.table_of(lines, columns, "Asia: mean skeleton F1 by people"))
    return {"summary": summary}


SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
EXPERIMENT = ex.Experiment(
    "local_frontier",
    __doc__,
    KEY,
    jobs,
    options=(
        ex.Option("--data", "not used: Asia is built in", kind=Path),
        ex.counts("--sizes", "people", SIZES, (1_000, 10_000, 100_000)),
        ex.numbers("--epsilons", "of a whole record", (1.0, 8.0, 16.0, 24.0), (1.0, 16.0)),
        ex.one_count("--runs", "data sets of each row", 5, 2),
    ),
    settings=lambda chosen: SETTINGS,
    finish=finish,
    draw=draw,
    width=160,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
