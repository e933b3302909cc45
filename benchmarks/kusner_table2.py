"""Kusner et al. 2016, table 2: how often an additive noise model finds the right direction, without
privacy and with it.

``python -m benchmarks.kusner_table2 [--quick] [--data FOLDER] [--pairs K] [--splits S] [--rows N]
[--out FILE]``

The paper's ten pairs are not public; here are the K largest scalar pairs of the Tuebingen
collection.  Each pair is split into a training and a test half S times; the guarantee is about the
test half, as in the paper's table.  For each of the four scores: the share of (pair, split) whose
exact scores point the right way, and the probability of the right private direction at epsilon 0.1,
1 and 2, for the direction alone (one noisy difference) and for both scores (twice the noise; the
log IQR counts records, and has no scores to release).

The probability is exact given the scores: from the difference g = score(wrong) - score(right) and
the noise's scale s it is 1 - P[wrong | abs(g)] where g > 0, else P[wrong | abs(g)]
(:func:`jaxcd.pairwise.anm_release.error_probability`). The pair's own range rounded outwards stands
in for public bounds: this measures the noise only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import common
from benchmarks.pairs import SCORES, data_option, exact_anm, thinned
from jaxcd.pairwise import CausePair, tuebingen
from jaxcd.pairwise.anm_release import error_probability
from jaxcd.pairwise.anm_scores import AnmScore, Protect

EPSILONS = (0.1, 1.0, 2.0)
RELEASES = {"direction": 1, "both scores": 2}  # noises in the difference
WITHOUT_SCORES = ("log IQR",)


@dataclass(frozen=True)
class Differences:
    """signed: score(wrong direction) - score(right direction), positive where the exact answer is
    right; (pairs, splits).

    scales: of the Laplace noise at epsilon 1, likewise.
    """

    signed: np.ndarray
    scales: np.ndarray

    @property
    def accuracy(self) -> np.ndarray:
        """The share of splits that are right without noise, a tie one half: (pairs,)."""
        return ((self.signed > 0) + 0.5 * (self.signed == 0)).mean(axis=1)

    def probability(self, epsilon: float, *, n_noises: int = 1) -> np.ndarray:
        """The probability of the right private direction, mean over splits: (pairs,)."""
        ratios = np.abs(self.signed) * epsilon / self.scales
        wrong = np.vectorize(
            lambda ratio: error_probability(float(ratio), n_noises=n_noises), otypes=[float]
        )(ratios)
        return np.where(self.signed > 0, 1 - wrong, wrong).mean(axis=1)


def differences(
    pairs: Sequence[CausePair],
    *,
    score: AnmScore,
    n_splits: int,
    protect: Protect = Protect.TEST,
    penalty: float | None = None,
) -> Differences:
    """The exact differences of ``n_splits`` random splits of each pair."""
    signed, scales = np.zeros((len(pairs), n_splits)), np.zeros((len(pairs), n_splits))
    for split in range(n_splits):
        results, noise = exact_anm(pairs, score=score, protect=protect, seed=split, penalty=penalty)
        assert noise is not None
        for i, (result, pair) in enumerate(zip(results, pairs, strict=True)):
            signed[i, split] = (
                result.margin if result.direction is pair.direction else -result.margin
            )
        scales[:, split] = noise
    return Differences(signed, scales)


def largest_pairs(data: Path, *, n_pairs: int, rows: int | None) -> list[CausePair]:
    """The scalar Tuebingen pairs with the most records, the largest first; with ``rows`` a random
    part of each.
    """
    ordered = sorted(tuebingen(data).pairs, key=lambda pair: -pair.n)
    return [thinned(pair, rows) for pair in ordered[:n_pairs]]


def rows_of(pairs: Sequence[CausePair], name: str, *, n_splits: int) -> list[dict[str, Any]]:
    """The rows of one score: without privacy, then each release and epsilon."""
    start = time.perf_counter()
    found = differences(pairs, score=SCORES[name], n_splits=n_splits)
    base = {
        "score": name,
        "n_pairs": len(pairs),
        "n_splits": n_splits,
        "seconds": time.perf_counter() - start,
    }
    rows = [
        {
            **base,
            "release": None,
            "epsilon": None,
            "right": float(found.accuracy.mean()),
            "by_pair": found.accuracy.tolist(),
        }
    ]
    for release, n_noises in RELEASES.items():
        if release == "direction" or name not in WITHOUT_SCORES:
            for epsilon in EPSILONS:
                right = found.probability(epsilon, n_noises=n_noises)
                rows.append(
                    {
                        **base,
                        "release": release,
                        "epsilon": epsilon,
                        "right": float(right.mean()),
                        "by_pair": right.tolist(),
                    }
                )
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    """One line a score and release."""
    table = Table(
        "score", "release", "no privacy", *(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)
    )
    exact = {row["score"]: row["right"] for row in rows if row["release"] is None}
    for name, accuracy in exact.items():
        for release in RELEASES:
            line = {
                row["epsilon"]: row["right"]
                for row in rows
                if (row["score"], row["release"]) == (name, release)
            }
            if line:
                table.add_row(
                    name,
                    release,
                    f"{accuracy:.3f}",
                    *(f"{line[epsilon]:.3f}" for epsilon in EPSILONS),
                )
    Console(width=110).print(table)


def options_of(description: str, name: str) -> argparse.ArgumentParser:
    """The options of this table and of the figures."""
    options = common.plain_parser(description, out=common.RESULTS / f"{name}.json")
    data_option(options)
    options.add_argument(
        "--pairs", type=common.count, help="the largest pairs (default: 10; 2 with --quick)"
    )
    options.add_argument(
        "--splits",
        type=common.count,
        help="random splits (default: 10 in the table, 3 in the figures; 2 with --quick)",
    )
    options.add_argument(
        "--rows", type=common.count, help="most records of a pair (default: all; 300 with --quick)"
    )
    return options


def begin(
    options: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    *,
    splits: int,
    key: tuple[str, ...],
) -> tuple[argparse.Namespace, list[CausePair], common.Record]:
    """The chosen options, the pairs, and the empty record; ``splits`` is the usual number, ``key``
    tells the rows apart.
    """
    chosen = common.parse(
        options,
        arguments,
        full={"pairs": 10, "splits": splits},
        quick={"pairs": 2, "splits": 2, "rows": 300},
    )
    if chosen.data is None:
        options.error("no pairs: give --data FOLDER or set JAXCD_DATA")
    pairs = largest_pairs(Path(chosen.data), n_pairs=chosen.pairs, rows=chosen.rows)
    settings = {
        "pairs": [pair.name for pair in pairs],
        "records": [pair.n for pair in pairs],
        "n_splits": chosen.splits,
        "bounds": "the pair's own range rounded outwards: measures the noise only",
    }
    return chosen, pairs, common.Record(chosen.out, key=key, settings=settings, resume=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    options = options_of(__doc__.splitlines()[0], "kusner_table2")
    chosen, pairs, record = begin(
        options, arguments, splits=10, key=("score", "release", "epsilon")
    )
    for name in SCORES:
        for row in rows_of(pairs, name, n_splits=chosen.splits):
            record.add(row)
    print(
        f"{len(pairs)} pairs of {min(pair.n for pair in pairs):,} to "
        f"{max(pair.n for pair in pairs):,} records, {chosen.splits} splits"
    )
    show(record.rows)
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
