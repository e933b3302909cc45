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

import contextlib
import importlib
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.searches import pc_moments
from benchmarks.sources import GAUSSIAN, Source, gaussian_source, load_networks, network_source
from jaxcd.discovery import released, search_histogram, search_marginals, search_second_moments
from jaxcd.releases.moments import second_moments
from jaxcd.releases.tables import measurement_error, pair_tables

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
            "full_levels": (6, 2, INFINITE),
            "n_climbs": (3, 1, INFINITE),
            "patience": (5, 0, INFINITE),
            "max_members": (8, 1, INFINITE),
        },
        ((measurement_error, "_CUTS"), (measurement_error, "_PENALTIES"), (released, "_REFITS")),
    ),
    Study(
        "Marginals",
        # what its options are under much noise and for few columns, as numbers
        jaxcd.Marginals(
            dependence_alpha=0.01, mediation_alpha=0.2, max_candidates=6, max_parents=3
        ),
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
        },
        ("shares",),
        {
            "max_parents": (5, 1, INFINITE),
            "noise_price": (4.0, 0, INFINITE),
            "full_levels": (6, 2, INFINITE),
            "restarts": (40, 1, INFINITE),
        },
        ((_ORDERINGS, "_KICKS"), (pair_tables, "_LEAST_COUNT")),
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
        pc_moments,
        ("gaussian-10", "gaussian-20"),
        {},
        (),
        {"alpha": (0.01, 0, 1), "max_level": (3, 0, INFINITE)},
        (),
    ),
)


class Bench:
    """One case of a study: its data sets, drawn when asked for, and what the defaults find in
    them.
    """

    def __init__(self, study: Study, source: Source, n_runs: int) -> None:
        self.study, self.n_runs = study, n_runs
        self._source = source

    @cached_property
    def pairs(self) -> list[tuple[jaxcd.Dataset, jaxcd.MixedGraph]]:
        """Data and truth of every run."""
        return [self._source(FIRST_DATA + r) for r in range(self.n_runs)]

    @cached_property
    def defaults(self) -> tuple[dict[str, list[float]], float]:
        """What :meth:`scores` gives for the defaults."""
        return self.scores(Variant(DEFAULT, None, {}, {}))

    def scores(self, variant: Variant) -> tuple[dict[str, list[float]], float]:
        """Arc and skeleton F1 of every run, and the median seconds."""
        kind = replace(self.study.kind, **variant.release)
        budget = jaxcd.Budget(EPSILON, self.study.delta)
        graphs, seconds = [], []
        with patched(variant.patches):
            for r, (data, _) in enumerate(self.pairs):
                noise = jaxcd.SimulatedNoise(ex.key(FIRST_NOISE, r))
                with ex.Clock() as clock:
                    bought = jaxcd.release(data, kind, budget=budget, noise=noise)
                    found = self.study.search(bought, **variant.search)
                seconds.append(clock.seconds)
                graphs.append(found.graph)
        return ex.scores(graphs, [truth for _, truth in self.pairs]), median(seconds)

    def measure(self, variant: Variant) -> dict[str, Any]:
        """The loss of a variant: F1 of the defaults less its own, in the same runs."""
        default = variant.constant == DEFAULT
        found, seconds = self.defaults if default else self.scores(variant)
        before = self.defaults[0]
        losses = {name: np.subtract(before[name], values) for name, values in found.items()}
        return {
            "arc_f1": ex.mean(found["arc_f1"]),
            "skeleton_f1": ex.mean(found["skeleton_f1"]),
            "arc_loss": ex.mean(losses["arc_f1"]),
            "arc_loss_se": ex.standard_error(losses["arc_f1"]),
            "skeleton_loss": ex.mean(losses["skeleton_f1"]),
            "seconds": seconds,
            "n_runs": self.n_runs,
        }


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


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every constant of every study and case; cases without a file are named and left out."""
    for study in STUDIES:
        if study.name not in chosen.releases:
            continue
        wanted = study.cases
        if chosen.quick:
            wanted = ("cancer",) if study.name in ("Histogram", "Marginals") else ("gaussian-5",)
        elif chosen.networks is not None:
            wanted = tuple(case for case in wanted if case in chosen.networks)
        discrete = [case for case in wanted if case not in GAUSSIAN]
        asked = discrete if chosen.quick or chosen.networks is not None else None
        networks = load_networks(asked, chosen.data) if discrete else {}
        for case in wanted:
            if case in GAUSSIAN:
                source = gaussian_source(GAUSSIAN[case], chosen.rows)
            elif case in networks:
                source = network_source(networks[case], chosen.rows)
            else:
                continue
            bench = Bench(study, source, chosen.runs)
            for variant in study.variants():
                value = list(variant.value) if isinstance(variant.value, tuple) else variant.value
                yield (
                    (study.name, case, chosen.rows, variant.constant, value),
                    bench.measure,
                    variant,
                )
            print(
                f"{study.name}, {case}, {chosen.rows:,} rows: {len(record.rows)} rows in the file"
            )


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """The largest losses."""
    summary = summarise(record.rows)
    title = "loss in arc F1 when a constant is halved or doubled (negative: better)"
    console.print(ex.table_of(summary, COLUMNS, title))
    return {"summary": summary}


def _values(entry: ex.Row) -> str:
    several = entry.at if isinstance(entry.at, list) else [entry.at]
    return ", ".join(f"{part:g}" for part in several)


COLUMNS = ex.columns_of(
    "release; constant; mean=mean_loss:+.3f; largest (se)=largest_loss+:+.3f",
    ex.Column("at", _values),
    ex.Column("on", lambda entry: f"{entry.case}, {entry.n_samples:,}"),
    "largest gain=largest_gain:+.3f",
)
NAMES = tuple(study.name for study in STUDIES)
EXPERIMENT = ex.Experiment(
    "robustness",
    __doc__,
    KEY,
    jobs,
    options=(
        ex.data_option("networks/*.bif"),
        ex.names("--releases", "studies", NAMES, NAMES),
        ex.names(
            "--networks", "cases", sorted({case for study in STUDIES for case in study.cases})
        ),
        ex.one_count("--rows", "records", 100_000, 5_000),
        ex.one_count("--runs", "runs of each row", 5, 1),
    ),
    settings=ex.kept(
        "runs", epsilon=EPSILON, delta=DELTA, first_data=FIRST_DATA, first_noise=FIRST_NOISE
    ),
    finish=finish,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
