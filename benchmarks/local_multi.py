"""Causal graphs from records that each person randomised: mechanisms x levels x searches, with and
without denoising.

``python -m benchmarks.local_multi [--quick] [--data FOLDER] [--cases NAME ...] [--mechanisms NAME
...] [--searches NAME ...] [--p-max P ...] [--epsilons E ...] [--rows N] [--bins B] [--runs R]
[--resume] [--out FILE]``

Data: :mod:`benchmarks.local_cases`.  Mechanisms: :mod:`benchmarks.local_mechanisms`, at equal p_max
of the record, as published, with the epsilon_LDP that this is, and at equal epsilon_LDP of the
record, as they should be compared.  A p_max that a mechanism cannot have is left out with the
reason.  With IBU: records resampled from the denoised joint table; left out where that table or
channel is too large.

A row is R runs: F1 of the skeleton and of arcs, and SHD, against the true CPDAG (FCI: the true
PAG), and what the mechanism truly guarantees.  The picture shows the distribution of skeleton F1
over searches and runs for every mechanism and level, white without IBU and grey with it.  The file
is written after every row.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import jax
import networkx as nx
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.local_cases import CASES, SEARCHES, load
from benchmarks.local_mechanisms import (
    KINDS,
    Level,
    denoised,
    kinds_of,
    levels_of,
    options,
    randomised,
)
from jaxcd import local, metrics

FIRST_DATA, FIRST_NOISE = 710_000, 810_000
KEY = ("case", "level", "value", "mechanism", "ibu", "search", "n_runs")


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
        noise, public = jax.random.split(ex.key(FIRST_NOISE, run))
        reported = randomised(data, mechanism, noise)
        return denoised(reported, mechanism, public) if self.ibu else reported, guarantee


def summarise(rows: Sequence[ex.Row]) -> list[dict[str, Any]]:
    """Means over the searches of every case and setting."""
    groups: dict[tuple[Any, ...], list[ex.Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in KEY[:5]), []).append(row)
    return [
        {
            **dict(zip(KEY, group, strict=False)),
            "epsilon_ldp": members[0].epsilon_ldp,
            "d_privacy": members[0].d_privacy,
            "n_searches": len(members),
            **{
                name: ex.mean(row[name] for row in members)
                for name in ("skeleton_f1", "arc_f1", "shd")
            },
        }
        for group, members in groups.items()
    ]


def draw(rows: Sequence[ex.Row], path: Path) -> None:
    """Boxes of skeleton F1 over searches and runs: a row of panels a case, a panel a level."""
    cases = list(dict.fromkeys(row.case for row in rows))
    noisy = dict.fromkeys((row.level, row.value) for row in rows if row.mechanism is not None)
    figure, axes = ex.panels(len(cases), len(noisy), width=2.6, height=2.6, sharey=True)
    labels = [None, *(kind.label for kind in KINDS)]
    for line, case in zip(axes, cases, strict=True):
        for ax, (level, value) in zip(line, noisy, strict=False):
            for place, label in enumerate(labels):
                at = (Level.NONE.value, None) if label is None else (level, value)
                wanted = {"case": case, "level": at[0], "value": at[1], "mechanism": label}
                for ibu, colour in ((False, "white"), (True, "0.7")):
                    here = [row for row in rows if row.like(**wanted, ibu=ibu)]
                    f1 = [score for row in here for score in row.skeleton_f1s]
                    if f1:
                        where = {"positions": [place + (0.2 if ibu else -0.2)], "widths": 0.34}
                        look = {"patch_artist": True, "boxprops": {"facecolor": colour}}
                        ax.boxplot(f1, manage_ticks=False, **where, **look)
            turned = {"rotation": 60, "ha": "right", "fontsize": "x-small"}
            ax.set_xticks(range(len(labels)), ["no noise", *labels[1:]], **turned)
            ax.set(ylim=(-0.05, 1.05))
            ax.set_title(f"{case}, {level} = {value:g}", fontsize="small")
        line[0].set_ylabel("skeleton F1")
    ex.save_picture(figure, path)


def measure(reports: Reports, truths: Sequence[nx.DiGraph], name: str) -> dict[str, Any]:
    """One search on the records of all runs.  *s: of every run.  epsilon_ldp, d_privacy: what the
    mechanism guarantees.
    """
    search = SEARCHES[name]
    found = reports()
    values: dict[str, list[float]] = {"skeleton_f1": [], "arc_f1": [], "shd": []}
    seconds = []
    for run, ((data, _), dag) in enumerate(zip(found, truths, strict=True)):
        with ex.Clock() as clock:
            graph, truth = search.graph(data, FIRST_NOISE + run), search.truth.of(dag)
        seconds.append(clock.seconds)
        values["skeleton_f1"].append(float(metrics.skeleton_f1(graph, truth)))
        values["arc_f1"].append(float(metrics.arc_f1(graph, truth)))
        values["shd"].append(metrics.shd(graph, truth))
    data, guarantee = found[0]
    return {
        "n_samples": data.n_samples,
        "epsilon_ldp": None if guarantee is None else guarantee.epsilon_ldp,
        "d_privacy": None if guarantee is None else guarantee.d_privacy,
        **ex.means(values),
        **{f"{score}s": each for score, each in values.items()},
        "seconds": median(seconds),
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every level and mechanism, without and with denoising, and every search on it."""
    settings = [Setting(Level.NONE, None, None, False)]
    for level, value in levels_of(chosen.p_max, chosen.epsilons):
        for kind in kinds_of(chosen.mechanisms):
            settings += [Setting(level, value, kind.label, ibu) for ibu in (False, True)]
    for case in load(chosen.cases, chosen.data, chosen.rows, chosen.bins):
        samples, truths = zip(
            *(case.draw(FIRST_DATA + run) for run in range(chosen.runs)), strict=True
        )
        for setting in settings:
            base = case.name, setting.level.value, setting.value, setting.mechanism, setting.ibu
            reports = _once(setting, samples)
            for name in chosen.searches:
                yield (*base, name, chosen.runs), measure, reports, truths, name
        title = f"{case.name}: means over searches and runs"
        lines = [line for line in summarise(record.rows) if line["case"] == case.name]
        Console(width=170).print(ex.table_of(lines, COLUMNS, title))
        jax.clear_caches()  # the next case has other shapes


def _once(setting: Setting, samples: Sequence[jaxcd.Dataset]) -> Reports:
    """The records of every run after a setting, made once; a refusal is kept as well."""

    @cache
    def made() -> Any:
        try:
            return [setting.applied(data, run) for run, data in enumerate(samples)]
        except jaxcd.errors.JaxcdError as error:
            return error

    def reports() -> Any:
        found = made()
        if isinstance(found, Exception):
            raise found
        return found

    return reports


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """Means over the searches."""
    return {"summary": summarise(record.rows)}


Reports = Callable[[], list[tuple[jaxcd.Dataset, local.LocalGuarantee | None]]]
QUICK = ["PC, Fisher z", "GES, Gaussian BIC", "MMHC, Fisher z"]
COLUMNS = ex.columns_of(
    "at equal=level; value:.4g; mechanism",
    ex.Column("IBU", lambda line: "yes" if line.ibu else ""),
    "epsilon_LDP=epsilon_ldp:.4g; d-privacy=d_privacy:.4g; "
    "skeleton F1=skeleton_f1:.3f; arc F1=arc_f1:.3f; SHD=shd:.2f",
)
EXPERIMENT = ex.Experiment(
    "local_multi",
    __doc__,
    KEY,
    jobs,
    options=(
        ex.data_option("sachs/ and galton/"),
        ex.names("--cases", "cases", CASES, CASES[:4], ["galton", "random-5"]),
        ex.names("--searches", "searches", list(SEARCHES), list(SEARCHES), QUICK),
        *options(p_max=([0.05, 0.1, 0.5], [0.5]), epsilons=([5.0, 20.0, 80.0], [20.0])),
        ex.one_count("--rows", "records of the random models", 1_000),
        ex.one_count("--bins", "of every numeric column", 10),
        ex.one_count("--runs", "draws of noise (and of random models) of each row", 5, 2),
    ),
    settings=ex.kept("rows", "bins", first_data=FIRST_DATA, first_noise=FIRST_NOISE),
    finish=finish,
    draw=draw,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
