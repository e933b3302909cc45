"""What the constants of releases and their searches are worth: each is halved and doubled, and the
loss is measured.

``python -m benchmarks.robustness [--quick] [--data FOLDER] [--releases NAME ...] [--networks NAME
...] [--rows N] [--runs R] [--resume] [--out FILE]``

At total epsilon 1: ``Histogram`` (delta 0) on Asia and Survey, ``Marginals`` (delta 1e-6) on Sachs,
Child and Alarm, ``SecondMoments`` (delta 1e-6) on random linear Gaussian models of 10 and 20
variables, by search and by PC.  Every variant has the data sets and the noise keys of the defaults,
so that losses are differences within pairs; these seeds are neither those of
:mod:`benchmarks.releases` nor any on which a constant was chosen.  A whole number that cannot be
halved is rounded up, and what has a range stays in it; constants of a module that are no options
are changed there for the run, and named as they stand in it.

Columns: the loss in arc F1 (of the defaults, less the variant's: negative is better) with its
standard error over runs, and in skeleton F1. Last: for each constant the mean over its variants and
cases, and the largest.  The file is written after every row; ``--resume`` goes on with it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common, frontier_methods
from jaxcd import metrics
from jaxcd.discovery import released, search_histogram, search_marginals, search_second_moments
from jaxcd.releases.moments import second_moments
from jaxcd.releases.tables import marginal_screen, measurement_error

EPSILON, DELTA = 1.0, 1e-6
FIRST_DATA, FIRST_NOISE = 520_000, 620_000
KEY = ("release", "case", "n_samples", "constant", "value")
DEFAULT = "default"
FACTORS = (0.5, 2.0)

Search = Callable[..., jaxcd.DiscoveryResult]


@dataclass(frozen=True)
class Variant:
    """One constant at another value.  release, search: the options changed; patches: (module, name,
    value) of module constants.
    """

    constant: str
    value: Any
    release: Mapping[str, Any]
    search: Mapping[str, Any]
    patches: tuple[tuple[ModuleType, str, Any], ...] = ()


@dataclass(frozen=True)
class Study:
    """A release with a search: its default options, the constants to vary and the cases to do it
    on.

    options: of the release, by name, with the range of the value where there is one.  shares:
    options that are weights, of which each entry is varied alone.  search_options: default and
    range.  constants: of modules, numbers or tuples of numbers.
    """

    name: str
    kind: Any
    delta: float
    search: Search
    cases: tuple[str, ...]
    options: Mapping[str, tuple[float, float]]
    shares: tuple[str, ...]
    search_options: Mapping[str, tuple[Any, float, float]]
    constants: tuple[tuple[ModuleType, str], ...]

    def variants(self) -> Iterator[Variant]:
        """The defaults, and every constant halved and doubled; a value that its range leaves
        unchanged is not tried.
        """
        yield Variant(DEFAULT, None, {}, {})
        for factor in FACTORS:
            for name, (least, most) in self.options.items():
                if (value := scaled(getattr(self.kind, name), factor, least, most)) != getattr(
                    self.kind, name
                ):
                    yield Variant(name, value, {name: value}, {})
            for name in self.shares:
                weights = getattr(self.kind, name)
                for place in range(len(weights)):
                    changed = tuple(w * factor if i == place else w for i, w in enumerate(weights))
                    yield Variant(f"{name}[{place}]", changed[place], {name: changed}, {})
            for name, (default, least, most) in self.search_options.items():
                if (value := scaled(default, factor, least, most)) != default:
                    yield Variant(f"search {name}", value, {}, {name: value})
            for module, name in self.constants:
                default = getattr(module, name)
                several = isinstance(default, tuple)
                value = (
                    tuple(factor * part for part in default)
                    if several
                    else scaled(default, factor, 0, np.inf)
                )
                yield Variant(
                    f"{module.__name__.split('.')[-1]}.{name}",
                    value,
                    {},
                    {},
                    ((module, name, value),),
                )


def scaled(value: Any, factor: float, least: float, most: float) -> Any:
    """The value times the factor within its range; whole numbers stay whole, halves up, and always
    change where they can.
    """
    if not isinstance(value, int):
        return float(min(max(value * factor, least), most))
    return int(min(max(int(np.floor(value * factor + 0.5)), least), most))


INFINITE = float("inf")
# The package has a function of this name in its place.
_ORDERINGS = importlib.import_module("jaxcd.discovery.score.ordering_search")
STUDIES = (
    Study(
        "Histogram",
        jaxcd.Histogram(),
        0.0,
        search_histogram,
        ("asia", "survey"),
        {},
        (),
        {
            "max_parents": (3, 1, 7),
            "n_climbs": (3, 1, INFINITE),
            "patience": (5, 0, INFINITE),
            "max_members": (8, 1, INFINITE),
        },
        ((measurement_error, "_CUTS"), (measurement_error, "_PENALTIES"), (released, "_REFITS")),
    ),
    Study(
        "Marginals",
        jaxcd.Marginals(),
        DELTA,
        search_marginals,
        ("sachs", "child", "alarm"),
        {
            "dependence_alpha": (0, 1),
            "mediation_alpha": (0, 1),
            "max_candidates": (1, 8),
            "max_parents": (1, 5),
            "max_cells": (0, 1),
            "least_cell": (0, INFINITE),
            "inflation_cap": (0, INFINITE),
        },
        ("shares",),
        {
            "max_parents": (4, 1, INFINITE),
            "noise_price": (5.0, 0, INFINITE),
            "inflation_cap": (20.0, 0, INFINITE),
            "restarts": (40, 1, INFINITE),
        },
        ((_ORDERINGS, "_KICKS"), (marginal_screen, "_LEAST_COUNT")),
    ),
    Study(
        "SecondMoments",
        jaxcd.SecondMoments(),
        DELTA,
        search_second_moments,
        ("gaussian-10", "gaussian-20"),
        {"scale_share": (0, 1)},
        ("shares",),
        # Above 16 candidates a node has more than 65,536 families.
        {
            "penalty": (2.0, 0, INFINITE),
            "max_parents": (6, 1, INFINITE),
            "n_candidates": (14, 1, 16),
        },
        ((second_moments, "_ANCHOR"),),
    ),
    Study(
        "SecondMoments, PC",
        jaxcd.SecondMoments(),
        DELTA,
        frontier_methods.pc_moments,
        ("gaussian-10", "gaussian-20"),
        {},
        (),
        {"alpha": (0.01, 0, 1), "max_level": (3, 0, INFINITE)},
        (),
    ),
)


@dataclass(frozen=True)
class Row:
    """One constant at one value on one case.  loss: F1 of the defaults less that of the variant, in
    the same runs; *_se: its standard error, None for one run.  seconds: the median of release and
    search."""

    release: str
    case: str
    n_samples: int
    constant: str
    value: Any
    arc_f1: float
    skeleton_f1: float
    arc_loss: float
    arc_loss_se: float | None
    skeleton_loss: float
    seconds: float
    n_runs: int


class Bench:
    """One case of a study: its data sets, drawn when asked for, and what the defaults find in
    them.
    """

    def __init__(
        self, study: Study, case: str, source: common.Source, n_samples: int, n_runs: int
    ) -> None:
        self.study, self.case, self.n_samples, self.n_runs = study, case, n_samples, n_runs
        self._source = source

    @cached_property
    def pairs(self) -> list[tuple[jaxcd.Dataset, jaxcd.MixedGraph]]:
        """Data and truth of every run."""
        return [self._source(FIRST_DATA + r) for r in range(self.n_runs)]

    @cached_property
    def defaults(self) -> np.ndarray:
        """Arc and skeleton F1 of the defaults, (R, 2)."""
        return self.scores(next(self.study.variants()))[0]

    def scores(self, variant: Variant) -> tuple[np.ndarray, float]:
        """Arc and skeleton F1 of every run, (R, 2), and the median seconds."""
        kind = replace(self.study.kind, **variant.release)
        budget = jaxcd.Budget(EPSILON, self.study.delta)
        scores, seconds = [], []
        with patched(variant.patches):
            for r, (data, truth) in enumerate(self.pairs):
                start = time.perf_counter()
                noise = jaxcd.SimulatedNoise(jax.random.key(FIRST_NOISE + r))
                found = self.study.search(
                    jaxcd.release(data, kind, budget=budget, noise=noise), **variant.search
                )
                seconds.append(time.perf_counter() - start)
                scores.append(
                    [
                        float(metrics.arc_f1(found.graph, truth)),
                        float(metrics.skeleton_f1(found.graph, truth)),
                    ]
                )
        return np.array(scores), float(np.median(seconds))

    def row(self, variant: Variant) -> Row:
        """The loss of a variant."""
        scores, seconds = self.scores(variant)
        if variant.constant == DEFAULT:
            self.__dict__["defaults"] = scores
        losses = self.defaults - scores
        error = float(losses[:, 0].std(ddof=1) / np.sqrt(self.n_runs)) if self.n_runs > 1 else None
        (arc, skeleton), (arc_loss, skeleton_loss) = (
            scores.mean(axis=0).tolist(),
            losses.mean(axis=0).tolist(),
        )
        value = list(variant.value) if isinstance(variant.value, tuple) else variant.value
        return Row(
            self.study.name,
            self.case,
            self.n_samples,
            variant.constant,
            value,
            arc,
            skeleton,
            arc_loss,
            error,
            skeleton_loss,
            seconds,
            self.n_runs,
        )


@contextlib.contextmanager
def patched(patches: Sequence[tuple[ModuleType, str, Any]]) -> Iterator[None]:
    """Module constants at other values."""
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    try:
        for module, name, value in patches:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def summarise(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each constant the mean loss in arc F1 over variants and cases, and the largest with where
    it is; the largest first.
    """
    summary = []
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["constant"] != DEFAULT:
            groups.setdefault((row["release"], row["constant"]), []).append(row)
    for (release, constant), group in groups.items():
        worst = max(group, key=lambda row: row["arc_loss"])
        summary.append(
            {
                "release": release,
                "constant": constant,
                "mean_loss": float(np.mean([row["arc_loss"] for row in group])),
                "largest_loss": worst["arc_loss"],
                "largest_loss_se": worst["arc_loss_se"],
                "at": worst["value"],
                "case": worst["case"],
                "n_samples": worst["n_samples"],
                "largest_gain": max(0.0 - row["arc_loss"] for row in group),
            }
        )
    releases = list(dict.fromkeys(entry["release"] for entry in summary))
    return sorted(
        summary, key=lambda entry: (releases.index(entry["release"]), -entry["largest_loss"])
    )


def summary_table(summary: Sequence[Mapping[str, Any]]) -> Table:
    """``summarise`` for the screen."""
    table = Table(title="loss in arc F1 when a constant is halved or doubled (negative: better)")
    for column in ("release", "constant", "mean", "largest (se)", "at", "on", "largest gain"):
        table.add_column(
            column,
            justify="left" if column in ("release", "constant", "on") else "right",
            no_wrap=True,
        )
    for entry in summary:
        error = "" if entry["largest_loss_se"] is None else f" ({entry['largest_loss_se']:.3f})"
        value = entry["at"]
        table.add_row(
            entry["release"],
            entry["constant"],
            f"{entry['mean_loss']:+.3f}",
            f"{entry['largest_loss']:+.3f}{error}",
            ", ".join(f"{part:g}" for part in (value if isinstance(value, list) else [value])),
            f"{entry['case']}, {entry['n_samples']:,}",
            f"{entry['largest_gain']:+.3f}",
        )
    return table


def _benches(chosen: argparse.Namespace) -> Iterator[Bench]:
    gaussian = {f"gaussian-{p}": p for p in (5, 10, 20)}
    for study in STUDIES:
        if study.name not in chosen.releases:
            continue
        if chosen.quick:
            cases = tuple(
                {"Histogram": ["cancer"], "Marginals": ["cancer"]}.get(study.name, ["gaussian-5"])
            )
        else:
            cases = tuple(
                case for case in study.cases if chosen.networks is None or case in chosen.networks
            )
        discrete = [case for case in cases if case not in gaussian]
        # those without a file are named and left out
        if chosen.networks is None and not chosen.quick:
            there = common.load_networks(None, chosen.data)
            networks = {name: there[name] for name in discrete if name in there}
        else:
            networks = common.load_networks(discrete, chosen.data) if discrete else {}
        for case in cases:
            if case in gaussian:
                yield Bench(
                    study,
                    case,
                    common.gaussian_source(gaussian[case], chosen.rows),
                    chosen.rows,
                    chosen.runs,
                )
            elif case in networks:
                yield Bench(
                    study,
                    case,
                    common.network_source(networks[case], chosen.rows),
                    chosen.rows,
                    chosen.runs,
                )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints the largest losses, and writes JSON."""
    names = [study.name for study in STUDIES]
    options = common.plain_parser(__doc__.splitlines()[0], out=common.RESULTS / "robustness.json")
    options.add_argument(
        "--data", type=Path, default=os.environ.get("JAXCD_DATA"), help="folder with networks/*.bif"
    )
    options.add_argument("--releases", nargs="+", choices=names, help="default: all")
    options.add_argument(
        "--networks",
        nargs="+",
        choices=sorted({case for study in STUDIES for case in study.cases}),
        help="default: all",
    )
    options.add_argument("--rows", type=common.count, help="records")
    options.add_argument("--runs", type=common.count, help="runs of each row")
    common.add_resume(options)
    chosen = common.parse(
        options,
        arguments,
        full={"releases": names, "rows": 100_000, "runs": 5},
        quick={"releases": names, "rows": 5_000, "runs": 1},
    )
    settings = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "runs": chosen.runs,
        "first_data": FIRST_DATA,
        "first_noise": FIRST_NOISE,
    }
    record = common.Record(chosen.out, key=KEY, settings=settings, resume=chosen.resume)
    console = Console(width=130)
    for bench in _benches(chosen):
        for variant in bench.study.variants():
            value = list(variant.value) if isinstance(variant.value, tuple) else variant.value
            wanted = (bench.study.name, bench.case, bench.n_samples, variant.constant, value)
            if record.find(dict(zip(KEY, wanted, strict=True))) is None:
                record.add(asdict(bench.row(variant)))
        console.print(
            f"{bench.study.name}, {bench.case}, {bench.n_samples:,} rows: {len(record.rows)} rows "
            "in the file"
        )
    summary = summarise(record.rows)
    record.write(summary=summary)
    console.print(summary_table(summary))
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
