"""Causal graphs from records that each person randomised: mechanisms x levels x searches, with and
without denoising.

``python -m benchmarks.local_multi [--quick] [--data FOLDER] [--cases NAME ...] [--mechanisms NAME
...] [--searches NAME ...] [--p-max P ...] [--epsilons E ...] [--rows N] [--bins B] [--runs R]
[--resume] [--out FILE]``

Data: :mod:`benchmarks.local_cases`.  Mechanisms: :mod:`benchmarks.local_mechanisms`, at equal p_max
as published (of a column, or of a record where mechanisms are combined), and at equal epsilon_LDP
of the record, as they should be compared.  A p_max that a mechanism cannot have is left out with
the reason.  With IBU: records resampled from the denoised joint table; left out where that table or
channel is too large.

A row is R runs: F1 of the skeleton and of arcs, and SHD, against the true CPDAG (FCI: the true
PAG), and what the mechanism truly guarantees.  The picture shows the distribution of skeleton F1
over searches and runs for every mechanism and level, white without IBU and grey with it.  The file
is written after every row.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from benchmarks.local_cases import CASES, SEARCHES, Case, load
from benchmarks.local_mechanisms import KINDS, Level, denoised, kinds_of, randomised
from jaxcd import local, metrics

FIRST_DATA, FIRST_NOISE = 710_000, 810_000
KEY = ("case", "level", "value", "mechanism", "ibu", "search", "n_runs")
OUT = Path(__file__).parent / "results" / "local_multi.json"


@dataclass(frozen=True)
class Row:
    """One search on one case under one mechanism.  *s: of every run.  epsilon_ldp, d_privacy: what
    the mechanism guarantees.
    """

    case: str
    level: str
    value: float | None
    mechanism: str | None
    ibu: bool
    search: str
    n_runs: int
    n_samples: int
    epsilon_ldp: float | None
    d_privacy: float | None
    skeleton_f1: float
    arc_f1: float
    shd: float
    skeleton_f1s: tuple[float, ...]
    arc_f1s: tuple[float, ...]
    shds: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class Setting:
    """What happens to the records before a search sees them."""

    level: Level
    value: float | None
    mechanism: str | None
    ibu: bool

    def applied(
        self, data: jaxcd.Dataset, run: int
    ) -> tuple[jaxcd.Dataset, local.LocalGuarantee | None]:
        """The records of one run and their guarantee.  Raises JaxcdError where there is no such
        mechanism or no denoising.
        """
        if self.mechanism is None or self.value is None:
            return data, None
        (kind,) = kinds_of([self.mechanism])
        mechanism = kind.at(self.level, self.value, data.domain)
        guarantee = kind.guarantee(self.level, self.value, data.domain)
        if self.level is Level.EPSILON and not guarantee.epsilon_ldp <= self.value:
            raise AssertionError(
                f"{mechanism} guarantees {guarantee.epsilon_ldp}, more than {self.value}"
            )
        noise, public = jax.random.split(jax.random.key(FIRST_NOISE + run))
        reported = randomised(data, mechanism, noise)
        return denoised(reported, mechanism, public) if self.ibu else reported, guarantee


def settings_of(chosen: argparse.Namespace) -> list[Setting]:
    """Every level and mechanism, without and with denoising."""
    levels = [(Level.P_MAX, value) for value in chosen.p_max] + [
        (Level.EPSILON, value) for value in chosen.epsilons
    ]
    noisy = [
        Setting(level, value, kind.label, ibu)
        for level, value in levels
        for kind in kinds_of(chosen.mechanisms)
        for ibu in (False, True)
    ]
    return [Setting(Level.NONE, None, None, False), *noisy]


def run_setting(
    case: Case,
    setting: Setting,
    samples: Sequence[Any],
    chosen: argparse.Namespace,
    record: common.Record,
) -> None:
    """The rows of one setting that the record lacks."""
    base = (case.name, setting.level.value, setting.value, setting.mechanism, setting.ibu)
    names = [
        name
        for name in chosen.searches
        if record.find(dict(zip(KEY, (*base, name, chosen.runs), strict=True))) is None
    ]
    if not names:
        return
    try:
        reports = [setting.applied(data, run) for run, (data, _) in enumerate(samples)]
    except jaxcd.errors.JaxcdError as error:
        for name in names:
            record.leave_out(dict(zip(KEY, (*base, name, chosen.runs), strict=True)), str(error))
        return
    guarantee = reports[0][1]
    for name in names:
        search = SEARCHES[name]
        skeletons, arcs, distances, seconds = [], [], [], []
        for run, ((data, _), (_, dag)) in enumerate(zip(reports, samples, strict=True)):
            start = time.perf_counter()
            graph, truth = search.graph(data, FIRST_NOISE + run), search.truth.of(dag)
            seconds.append(time.perf_counter() - start)
            skeletons.append(float(metrics.skeleton_f1(graph, truth)))
            arcs.append(float(metrics.arc_f1(graph, truth)))
            distances.append(metrics.shd(graph, truth))
        row = Row(
            *base,
            name,
            chosen.runs,
            data.n_samples,
            None if guarantee is None else guarantee.epsilon_ldp,
            None if guarantee is None else guarantee.d_privacy,
            statistics.mean(skeletons),
            statistics.mean(arcs),
            statistics.mean(distances),
            tuple(skeletons),
            tuple(arcs),
            tuple(distances),
            statistics.median(seconds),
        )
        record.add(asdict(row))


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the searches of every case and setting."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in KEY[:5]), []).append(row)
    return [
        {
            **dict(zip(KEY, group, strict=False)),
            "epsilon_ldp": members[0]["epsilon_ldp"],
            "d_privacy": members[0]["d_privacy"],
            "n_searches": len(members),
            **{
                name: statistics.mean(row[name] for row in members)
                for name in ("skeleton_f1", "arc_f1", "shd")
            },
        }
        for group, members in groups.items()
    ]


def table_of(case: str, summary: Sequence[dict[str, Any]]) -> Table:
    """The means over searches of one case; the last three columns are with IBU."""
    columns = (
        "at equal",
        "value",
        "mechanism",
        "epsilon_LDP",
        "d-privacy",
        "skeleton F1",
        "arc F1",
        "SHD",
        "IBU: skeleton F1",
        "arc F1",
        "SHD",
    )
    table = Table(*columns, title=f"{case}: means over searches and runs")
    mine = [line for line in summary if line["case"] == case]
    for line in mine:
        if line["ibu"]:
            continue
        same = [
            x
            for x in mine
            if x["ibu"] and all(x[name] == line[name] for name in ("level", "value", "mechanism"))
        ]
        shown = [
            f"{x[name]:.{2 if name == 'shd' else 3}f}"
            for x in (line, *same)
            for name in ("skeleton_f1", "arc_f1", "shd")
        ]
        numbers = [
            "" if line[name] is None else f"{line[name]:.4g}"
            for name in ("value", "epsilon_ldp", "d_privacy")
        ]
        table.add_row(line["level"], numbers[0], line["mechanism"] or "", *numbers[1:], *shown)
    return table


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Boxes of skeleton F1 over searches and runs: a row of panels a case, a panel a level."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(row["case"] for row in rows))
    levels = list(
        dict.fromkeys((row["level"], row["value"]) for row in rows if row["mechanism"] is not None)
    )
    figure = Figure(
        figsize=(1.2 + 2.6 * max(len(levels), 1), 1.2 + 2.6 * len(cases)), layout="constrained"
    )
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(cases), max(len(levels), 1), sharey=True, squeeze=False)
    labels = [kind.label for kind in KINDS]
    for line, case in zip(axes, cases, strict=True):
        for ax, (level, value) in zip(line, levels, strict=False):
            for place, label in enumerate(["no noise", *labels]):
                for ibu, colour in ((False, "white"), (True, "0.7")):
                    wanted = (
                        (case, "no noise", None, None)
                        if place == 0
                        else (case, level, value, label)
                    )
                    f1 = [
                        score
                        for row in rows
                        if (row["case"], row["level"], row["value"], row["mechanism"]) == wanted
                        and row["ibu"] is ibu
                        for score in row["skeleton_f1s"]
                    ]
                    if f1:
                        at = place + (0.2 if ibu else -0.2)
                        ax.boxplot(
                            f1,
                            positions=[at],
                            widths=0.34,
                            patch_artist=True,
                            boxprops={"facecolor": colour},
                            manage_ticks=False,
                        )
            ax.set_xticks(
                range(len(labels) + 1),
                ["no noise", *labels],
                rotation=60,
                ha="right",
                fontsize="x-small",
            )
            ax.set(ylim=(-0.05, 1.05))
            ax.set_title(f"{case}, {level} = {value:g}", fontsize="small")
        line[0].set_ylabel("skeleton F1")
    common.save_picture(figure, path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(__doc__.splitlines()[0], out=OUT)
    options.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("JAXCD_DATA"),
        help="folder with sachs/ and galton/",
    )
    options.add_argument("--cases", nargs="+", choices=CASES, help="default: all that are there")
    options.add_argument(
        "--mechanisms", nargs="+", choices=[kind.label for kind in KINDS], help="default: all"
    )
    options.add_argument("--searches", nargs="+", choices=list(SEARCHES), help="default: all")
    options.add_argument(
        "--p-max", type=common.positive, nargs="+", help="probabilities of the truth, as published"
    )
    options.add_argument(
        "--epsilons", type=common.positive, nargs="+", help="epsilon_LDP of a whole record"
    )
    options.add_argument("--rows", type=common.count, help="records of the random models")
    options.add_argument("--bins", type=common.count, help="of every numeric column")
    options.add_argument(
        "--runs", type=common.count, help="draws of noise (and of random models) of each row"
    )
    common.add_resume(options)
    everything = {"searches": list(SEARCHES), "bins": 10}
    return common.parse(
        options,
        arguments,
        full={
            **everything,
            "cases": list(CASES),
            "p_max": [0.05, 0.1, 0.5],
            "epsilons": [5.0, 20.0, 80.0],
            "rows": 1_000,
            "runs": 5,
        },
        quick={
            "cases": ["galton", "random-5"],
            "searches": ["PC, Fisher z", "GES, Gaussian BIC", "MMHC, Fisher z"],
            "bins": 10,
            "p_max": [0.5],
            "epsilons": [20.0],
            "rows": 1_000,
            "runs": 2,
        },
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, writes JSON after every row and a picture, and prints a table a case."""
    chosen = _options(arguments)
    console = Console(width=170)
    settings = {
        "first_data": FIRST_DATA,
        "first_noise": FIRST_NOISE,
        "rows": chosen.rows,
        "bins": chosen.bins,
    }
    record = common.Record(chosen.out, key=KEY, settings=settings, resume=chosen.resume)
    for case in load(chosen.cases, chosen.data, chosen.rows, chosen.bins):
        samples = [case.draw(FIRST_DATA + run) for run in range(chosen.runs)]
        for setting in settings_of(chosen):
            run_setting(case, setting, samples, chosen, record)
        console.print(table_of(case.name, summarise(record.rows)))
        jax.clear_caches()  # the next case has other shapes
    summary = summarise(record.rows)
    record.write(summary=summary)
    reasons = dict.fromkeys(
        (entry["case"], entry["mechanism"], entry["ibu"], entry["reason"])
        for entry in record.left_out
    )
    for name, mechanism, ibu, reason in reasons:
        console.print(
            f"left out: {name}, {mechanism}{', IBU' if ibu else ''}: {reason}", soft_wrap=True
        )
    print(f"wrote {chosen.out}")
    if record.rows:
        draw(record.rows, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
