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

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
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
OUT = Path(__file__).parent / "results" / "local_frontier.json"

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


@dataclass(frozen=True)
class Row:
    """One method at one epsilon and size; exact: the share of runs that found the true skeleton;
    seconds: the median of a run.
    """

    method: str
    mechanism: str | None
    epsilon: float | None
    n_samples: int
    skeleton_f1: float
    skeleton_f1_sd: float
    shd: float
    exact: float
    seconds: float
    n_runs: int


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


def measure(method: str, mechanism: str | None, epsilon: float | None, n: int, runs: int) -> Row:
    """``runs`` data sets, each with noise of its own."""
    network = jaxcd.networks.load("asia")
    truth = network.cpdag()
    scores, distances, seconds = [], [], []
    for run in range(runs):
        data = network.sample(n, key=jax.random.key(FIRST_DATA + run))
        start = time.perf_counter()
        graph = search(method, mechanism, epsilon, data, jax.random.key(FIRST_NOISE + run))
        seconds.append(time.perf_counter() - start)
        scores.append(float(metrics.skeleton_f1(graph, truth)))
        distances.append(metrics.shd(graph, truth))
    return Row(
        method,
        mechanism,
        epsilon,
        n,
        statistics.mean(scores),
        statistics.pstdev(scores),
        statistics.mean(distances),
        statistics.mean(float(score == 1) for score in scores),
        statistics.median(seconds),
        runs,
    )


def jobs(epsilons: Sequence[float]) -> list[tuple[str, str | None, float | None]]:
    """Method, mechanism and epsilon of every line of the table."""
    found: list[tuple[str, str | None, float | None]] = [(PLAIN, None, None)]
    for epsilon in epsilons:
        found.append((CENTRAL, None, epsilon))
        found += [(method, mechanism, epsilon) for mechanism in MECHANISMS for method in LOCAL]
    return found


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every method, mechanism and epsilon the smallest size from which on the mean skeleton F1
    is at least TARGET; None: never.
    """
    found = []
    for line in dict.fromkeys((row["method"], row["mechanism"], row["epsilon"]) for row in rows):
        sizes = {
            row["n_samples"]: row["skeleton_f1"]
            for row in rows
            if (row["method"], row["mechanism"], row["epsilon"]) == line
        }
        needed = None
        for n in sorted(sizes, reverse=True):
            if not sizes[n] >= TARGET:
                break
            needed = n
        found.append(
            {
                "method": line[0],
                "mechanism": line[1],
                "epsilon": line[2],
                "needed": needed,
                "largest": max(sizes),
            }
        )
    return found


def tables(rows: Sequence[dict[str, Any]], summary: Sequence[dict[str, Any]]) -> Table:
    """Mean skeleton F1 by size, and the number of people needed."""
    sizes = sorted({row["n_samples"] for row in rows})
    table = Table(
        "method",
        "mechanism",
        "epsilon",
        *(f"{n:,}" for n in sizes),
        "people needed",
        title="Asia: mean skeleton F1 by people",
    )
    for line in summary:
        by_size = {
            row["n_samples"]: f"{row['skeleton_f1']:.3f}"
            for row in rows
            if all(row[name] == line[name] for name in ("method", "mechanism", "epsilon"))
        }
        needed = (
            f"{line['needed']:,}" if line["needed"] is not None else f"above {line['largest']:,}"
        )
        epsilon = "" if line["epsilon"] is None else f"{line['epsilon']:g}"
        table.add_row(
            line["method"],
            line["mechanism"] or "",
            epsilon,
            *(by_size.get(n, "") for n in sizes),
            needed,
        )
    return table


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Skeleton F1 against people, one panel an epsilon."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    figure = Figure(figsize=(4.2 * max(len(epsilons), 1), 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, max(len(epsilons), 1), sharey=True, squeeze=False)[0]
    styles = {None: "-", "k-RR": "-", "k-RR, combined": ":"}
    colours = {name: f"C{i}" for i, name in enumerate([PLAIN, CENTRAL, *LOCAL])}
    for ax, epsilon in zip(axes, epsilons, strict=False):
        shown = [row for row in rows if row["epsilon"] in (None, epsilon)]
        for method, mechanism in dict.fromkeys((row["method"], row["mechanism"]) for row in shown):
            line = sorted(
                (row["n_samples"], row["skeleton_f1"])
                for row in shown
                if (row["method"], row["mechanism"]) == (method, mechanism)
            )
            label = method if mechanism is None else f"{method}; {mechanism}"
            ax.plot(
                *zip(*line, strict=True),
                styles[mechanism],
                color=colours[method],
                marker=".",
                label=label,
            )
        ax.axhline(TARGET, color="0.8", linewidth=0.8)
        ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="people", title=f"epsilon = {epsilon:g}")
    axes[0].set_ylabel("skeleton F1, mean")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    common.save_picture(figure, path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(__doc__.splitlines()[0], out=OUT)
    options.add_argument("--data", type=Path, default=None, help="not used: Asia is built in")
    options.add_argument("--epsilons", type=common.positive, nargs="+", help="of a whole record")
    options.add_argument("--runs", type=common.count, help="data sets of each row")
    common.add_sizes(options)
    common.add_resume(options)
    return common.parse(
        options,
        arguments,
        full={
            "sizes": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
            "epsilons": [1.0, 8.0, 16.0, 24.0],
            "runs": 5,
        },
        quick={"sizes": [1_000, 10_000, 100_000], "epsilons": [1.0, 16.0], "runs": 2},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, writes JSON after every row and a picture, and prints a table."""
    chosen = _options(arguments)
    console = Console(width=160)
    record = common.Record(chosen.out, key=KEY, settings=SETTINGS, resume=chosen.resume)
    for n in chosen.sizes:
        for method, mechanism, epsilon in jobs(chosen.epsilons):
            if (
                record.find(
                    dict(zip(KEY, (method, mechanism, epsilon, n, chosen.runs), strict=True))
                )
                is None
            ):
                record.add(asdict(measure(method, mechanism, epsilon, n, chosen.runs)))
        jax.clear_caches()  # the next size has other shapes
        console.print(f"{n:,} people: done")
    summary = summarise(record.rows)
    record.write(summary=summary)
    console.print(tables(record.rows, summary))
    print(f"wrote {chosen.out}")
    draw(record.rows, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
