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

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from benchmarks.local_mechanisms import KINDS, Level, kinds_of, levels_of, options, randomised
from jaxcd import local
from jaxcd.pairwise import Direction, PairResult, anm, cds, igci, pair_accuracy_of, reci, tuebingen
from jaxcd.pairwise.pairs import CausePair
from jaxcd.privacy import Accountant, Ledger

FIRST_NOISE = 910_000
CONTINUOUS = "continuous"
KEY = ("method", "level", "value", "mechanism")
METHODS: dict[str, Callable[[np.ndarray, np.ndarray, jax.Array], PairResult]] = {
    "RECI": lambda x, y, key: reci(x, y, budget=jaxcd.NO_PRIVACY),
    "IGCI": lambda x, y, key: igci(x, y, budget=jaxcd.NO_PRIVACY),
    "CDS": lambda x, y, key: cds(x, y, budget=jaxcd.NO_PRIVACY),
    "ANM": lambda x, y, key: anm(x, y, budget=jaxcd.NO_PRIVACY, key=key),
}


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
    method: str, pairs: Sequence[CausePair], columns: Callable[[], Sequence[np.ndarray | None]]
) -> dict[str, Any]:
    """One method on the columns of all pairs.  lower, upper: the 95% interval.  no_mechanism,
    refused: pairs that count as undecided for that reason.
    """
    blocks = columns()
    results, refused = [], 0
    with ex.Clock() as clock:
        for place, block in enumerate(blocks):
            result = undecided()
            if block is not None:
                try:
                    result = METHODS[method](block[:, 0], block[:, 1], jax.random.key(place))
                # a constant column, or no two neighbours that differ in both
                except jaxcd.errors.DataError:
                    refused += 1
            results.append(result)
        found = pair_accuracy_of(results, pairs)
    return {
        "accuracy": found.accuracy,
        "lower": found.lower,
        "upper": found.upper,
        "n_pairs": found.n_pairs,
        "undecided": sum(result.direction is Direction.UNDECIDED for result in results),
        "no_mechanism": sum(block is None for block in blocks),
        "refused": refused,
        "seconds": clock.seconds,
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every method on the pairs as they are, in bins, and under every mechanism and level."""
    pairs = thinned(tuebingen(chosen.data).pairs[: chosen.pairs], chosen.rows)
    settings: list[tuple[str, float | None, str | None]] = [(CONTINUOUS, None, None)]
    settings.append((Level.NONE.value, None, None))
    for level, value in levels_of(chosen.p_max, chosen.epsilons):
        settings += [(level.value, value, kind.label) for kind in kinds_of(chosen.mechanisms)]
    for setting in settings:
        level, value, mechanism = setting

        @cache
        def columns(
            level: str = level, value: float | None = value, mechanism: str | None = mechanism
        ) -> list[np.ndarray | None]:
            if level == CONTINUOUS:
                return [np.column_stack([pair.x, pair.y]) for pair in pairs]
            return reports(pairs, Level(level), value, mechanism)

        for name in chosen.methods:
            yield (name, *setting), measure, name, pairs, columns


def draw(rows: Sequence[ex.Row], path: Path) -> None:
    """The interval of each method as a box, one panel a level; the line is the accuracy."""
    noisy = [(row.level, row.value) for row in rows if row.mechanism is not None]
    levels = list(dict.fromkeys(noisy)) or [(Level.NONE.value, None)]
    figure, (axes,) = ex.panels(1, len(levels), width=4.4, height=3.0, sharey=True)
    labels = [CONTINUOUS, Level.NONE.value, *(kind.label for kind in KINDS)]
    methods = list(dict.fromkeys(row.method for row in rows))
    width = 0.8 / len(methods)
    for ax, (level, value) in zip(axes, levels, strict=True):
        for row in rows:
            if row.mechanism is None or row.like(level=level, value=value):
                shift = methods.index(row.method)
                place = labels.index(row.mechanism or row.level)
                at = place + (shift - (len(methods) - 1) / 2) * width
                colour, height = f"C{shift}", row.upper - row.lower
                ax.bar(at, height, 0.875 * width, row.lower, color=colour, alpha=0.45)
                ends = [at - 0.44 * width, at + 0.44 * width]
                ax.plot(ends, [row.accuracy] * 2, color=colour, linewidth=2)
        ax.axhline(0.5, color="0.6", linestyle="--", linewidth=0.8)
        ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize="x-small")
        ax.set(ylim=(0, 1), title=level if value is None else f"{level} = {value:g}")
    axes[0].set_ylabel("weighted accuracy, 95% interval")
    for shift, method in enumerate(methods):
        axes[-1].plot([], [], color=f"C{shift}", linewidth=4, label=method)
    axes[-1].legend(fontsize="x-small")
    ex.save_picture(figure, path)


EXPERIMENT = ex.Experiment(
    "local_pairs",
    __doc__,
    KEY,
    jobs,
    columns=ex.columns_of(
        "method; at equal=level; value:g; mechanism; accuracy:.3f",
        ex.Column("95% interval", lambda row: f"{row.lower:.3f} to {row.upper:.3f}"),
        "undecided:d; no mechanism=no_mechanism:d; refused:d",
    ),
    options=(
        ex.data_option("cause_effect_pairs", "no pairs: give --data FOLDER or set JAXCD_DATA"),
        ex.names("--methods", "methods", list(METHODS), list(METHODS), ["RECI", "IGCI", "CDS"]),
        *options(p_max=([0.05, 0.1, 0.5], [0.5]), epsilons=([2.0, 10.0], [5.0])),
        ex.one_count("--pairs", "only the first so many", 108),
        ex.one_count("--rows", "records of a pair, at most", 20_000, 500),
    ),
    settings=lambda chosen: {
        "n_pairs": len(tuebingen(chosen.data).pairs[: chosen.pairs]),
        "rows": chosen.rows,
        "first_noise": FIRST_NOISE,
    },
    draw=draw,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
