"""Cause or effect from records that each person randomised: the Tuebingen pairs under each
mechanism.

``python -m benchmarks.local_pairs [--quick] [--data FOLDER] [--methods NAME ...] [--mechanisms NAME
...] [--p-max P ...] [--epsilons E ...] [--pairs K] [--rows N] [--resume] [--out FILE]``

Both columns of a pair of u distinct values are cut into min(u, 100, u / 10) equal bins, at least 2,
and the codes are randomised by each mechanism at equal p_max as published
(:mod:`benchmarks.local_mechanisms`) or at equal epsilon_LDP of the record.  Ranges and u are those
of the collection, as in the study: for a private collection they would have to be declared.  RECI,
IGCI (slope), CDS and ANM (HSIC) run on what was reported.  A pair that a method refuses, or on
which there is no such mechanism (p_max at most 1/k), counts as undecided: one half;
``no_mechanism`` and ``refused`` count them.

A row is one method on all pairs: weighted accuracy with its Clopper-Pearson interval.  A random
subset of ``--rows`` records of each longer pair is taken.  The picture shows intervals as boxes.
Pairs as they are, not cut into bins, are the level "continuous".
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from benchmarks.local_mechanisms import KINDS, Level, kinds_of, randomised
from jaxcd import local
from jaxcd.pairwise import Direction, PairResult, anm, cds, igci, pair_accuracy_of, reci, tuebingen
from jaxcd.pairwise.pairs import CausePair
from jaxcd.privacy import Accountant, Ledger

FIRST_NOISE = 910_000
CONTINUOUS = "continuous"
KEY = ("method", "level", "value", "mechanism")
OUT = Path(__file__).parent / "results" / "local_pairs.json"

METHODS: dict[str, Callable[[np.ndarray, np.ndarray, jax.Array], PairResult]] = {
    "RECI": lambda x, y, key: reci(x, y, budget=jaxcd.NO_PRIVACY),
    "IGCI": lambda x, y, key: igci(x, y, budget=jaxcd.NO_PRIVACY),
    "CDS": lambda x, y, key: cds(x, y, budget=jaxcd.NO_PRIVACY),
    "ANM": lambda x, y, key: anm(x, y, budget=jaxcd.NO_PRIVACY, key=key),
}


@dataclass(frozen=True)
class Row:
    """One method under one mechanism.  lower, upper: the 95% interval.  no_mechanism, refused:
    pairs that count as undecided for that reason.
    """

    method: str
    level: str
    value: float | None
    mechanism: str | None
    accuracy: float
    lower: float
    upper: float
    n_pairs: int
    undecided: int
    no_mechanism: int
    refused: int
    seconds: float


def undecided() -> PairResult:
    """The answer where there is none."""
    accountant = Accountant(Ledger(jaxcd.NO_PRIVACY), None)
    return PairResult(
        Direction.UNDECIDED, 0.0, None, None, None, accountant.guarantee, accountant.ledger.spent
    )


def thinned(pairs: Sequence[CausePair], n: int) -> list[CausePair]:
    """At most n records of each pair, drawn without replacement."""
    found = []
    for place, pair in enumerate(pairs):
        rows = np.sort(np.random.default_rng([FIRST_NOISE, place]).permutation(pair.n)[:n])
        found.append(replace(pair, x=pair.x[rows], y=pair.y[rows]))
    return found


def binned(pair: CausePair) -> jaxcd.Dataset:
    """Both columns in bins by the rule of the module's docstring."""
    columns, codes = {}, []
    for name in ("x", "y"):
        values = getattr(pair, name)
        bins = local.pair_bins(max(len(np.unique(values)), 2))
        low, high = float(values.min()), float(values.max())
        cut = local.discretise(values, lower=low, upper=high if high > low else low + 1, bins=bins)
        columns[name] = cut.column
        codes.append(cut.codes)
    return jaxcd.Dataset.from_codes(np.column_stack(codes), domain=jaxcd.Domain(columns))


def reports(
    pairs: Sequence[CausePair], level: Level, value: float | None, label: str | None
) -> list[np.ndarray | None]:
    """What was reported of every pair, n x 2 codes; None where there is no such mechanism."""
    found: list[np.ndarray | None] = []
    for place, pair in enumerate(pairs):
        data = binned(pair)
        if label is not None and value is not None:
            (kind,) = kinds_of([label])
            try:
                mechanism = kind.at(level, value, data.domain)
                if (
                    level is Level.EPSILON
                    and not kind.guarantee(level, value, data.domain).epsilon_ldp <= value
                ):
                    raise AssertionError(f"{mechanism} guarantees more than {value}")
                data = randomised(data, mechanism, jax.random.key(FIRST_NOISE + place))
            except (jaxcd.errors.OptionError, jaxcd.errors.DomainError):
                found.append(None)
                continue
        found.append(np.asarray(data.codes, dtype=np.float64))
    return found


def measure(
    method: str,
    level: str,
    value: float | None,
    mechanism: str | None,
    pairs: Sequence[CausePair],
    columns: Sequence[np.ndarray | None],
) -> Row:
    """One method on the columns of all pairs."""
    start = time.perf_counter()
    results, refused = [], 0
    for place, block in enumerate(columns):
        result = undecided()
        if block is not None:
            try:
                result = METHODS[method](block[:, 0], block[:, 1], jax.random.key(place))
            # a constant column, or no two neighbours that differ in both
            except jaxcd.errors.DataError:
                refused += 1
        results.append(result)
    found = pair_accuracy_of(results, pairs)
    return Row(
        method,
        level,
        value,
        mechanism,
        found.accuracy,
        found.lower,
        found.upper,
        found.n_pairs,
        sum(result.direction is Direction.UNDECIDED for result in results),
        sum(block is None for block in columns),
        refused,
        time.perf_counter() - start,
    )


def jobs(chosen: argparse.Namespace) -> list[tuple[str, float | None, str | None]]:
    """Level, value and mechanism of every group of rows."""
    levels = [(Level.P_MAX.value, value) for value in chosen.p_max] + [
        (Level.EPSILON.value, value) for value in chosen.epsilons
    ]
    noisy = [
        (level, value, kind.label)
        for level, value in levels
        for kind in kinds_of(chosen.mechanisms)
    ]
    return [(CONTINUOUS, None, None), (Level.NONE.value, None, None), *noisy]


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """The interval of each method as a box, one panel a level; the line is the accuracy."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    levels = list(
        dict.fromkeys((row["level"], row["value"]) for row in rows if row["mechanism"] is not None)
    ) or [(Level.NONE.value, None)]
    figure = Figure(figsize=(1 + 4.4 * len(levels), 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(levels), sharey=True, squeeze=False)[0]
    labels = [CONTINUOUS, Level.NONE.value, *(kind.label for kind in KINDS)]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for ax, (level, value) in zip(axes, levels, strict=True):
        for row in rows:
            if row["mechanism"] is not None and (row["level"], row["value"]) != (level, value):
                continue
            place, shift = (
                labels.index(row["mechanism"] or row["level"]),
                methods.index(row["method"]),
            )
            at = place + (shift - (len(methods) - 1) / 2) * 0.8 / len(methods)
            ax.bar(
                at,
                row["upper"] - row["lower"],
                0.7 / len(methods),
                row["lower"],
                color=f"C{shift}",
                alpha=0.45,
            )
            ax.plot(
                [at - 0.35 / len(methods), at + 0.35 / len(methods)],
                [row["accuracy"]] * 2,
                color=f"C{shift}",
                linewidth=2,
            )
        ax.axhline(0.5, color="0.6", linestyle="--", linewidth=0.8)
        ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize="x-small")
        ax.set(ylim=(0, 1), title=level if value is None else f"{level} = {value:g}")
    axes[0].set_ylabel("weighted accuracy, 95% interval")
    for shift, method in enumerate(methods):
        axes[-1].plot([], [], color=f"C{shift}", linewidth=4, label=method)
    axes[-1].legend(fontsize="x-small")
    common.save_picture(figure, path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = common.plain_parser(__doc__.splitlines()[0], out=OUT)
    options.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("JAXCD_DATA"),
        help="folder with cause_effect_pairs/",
    )
    options.add_argument("--methods", nargs="+", choices=list(METHODS), help="default: all")
    options.add_argument(
        "--mechanisms", nargs="+", choices=[kind.label for kind in KINDS], help="default: all"
    )
    options.add_argument(
        "--p-max", type=common.positive, nargs="+", help="probabilities of the truth, as published"
    )
    options.add_argument(
        "--epsilons", type=common.positive, nargs="+", help="epsilon_LDP of a whole record"
    )
    options.add_argument("--pairs", type=common.count, help="only the first so many")
    options.add_argument("--rows", type=common.count, help="records of a pair, at most")
    common.add_resume(options)
    return common.parse(
        options,
        arguments,
        full={
            "methods": list(METHODS),
            "p_max": [0.05, 0.1, 0.5],
            "epsilons": [2.0, 10.0],
            "pairs": 108,
            "rows": 2_000,
        },
        quick={
            "methods": ["RECI", "IGCI", "CDS"],
            "p_max": [0.5],
            "epsilons": [5.0],
            "pairs": 108,
            "rows": 500,
        },
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, writes JSON after every row and a picture, and prints a table."""
    chosen = _options(arguments)
    if chosen.data is None:
        sys.exit(
            "the Tuebingen pairs are no part of the package; give --data FOLDER or set JAXCD_DATA"
        )
    pairs = thinned(tuebingen(chosen.data).pairs[: chosen.pairs], chosen.rows)
    settings = {"n_pairs": len(pairs), "rows": chosen.rows, "first_noise": FIRST_NOISE}
    record = common.Record(chosen.out, key=KEY, settings=settings, resume=chosen.resume)
    for level, value, mechanism in jobs(chosen):
        lacking = [
            name
            for name in chosen.methods
            if record.find(dict(zip(KEY, (name, level, value, mechanism), strict=True))) is None
        ]
        if not lacking:
            continue
        if level == CONTINUOUS:
            columns: list[np.ndarray | None] = [np.column_stack([pair.x, pair.y]) for pair in pairs]
        else:
            columns = reports(pairs, Level(level), value, mechanism)
        for name in lacking:
            record.add(asdict(measure(name, level, value, mechanism, pairs, columns)))
    table = Table(
        "method",
        "at equal",
        "value",
        "mechanism",
        "accuracy",
        "95% interval",
        "undecided",
        "no mechanism",
        "refused",
    )
    for row in record.rows:
        table.add_row(
            row["method"],
            row["level"],
            "" if row["value"] is None else f"{row['value']:g}",
            row["mechanism"] or "",
            f"{row['accuracy']:.3f}",
            f"{row['lower']:.3f} to {row['upper']:.3f}",
            str(row["undecided"]),
            str(row["no_mechanism"]),
            str(row["refused"]),
        )
    Console(width=140).print(table)
    print(f"wrote {chosen.out}")
    draw(record.rows, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
