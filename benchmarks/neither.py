"""Cause, effect or neither: how often a method names a direction where there is none.

``python -m benchmarks.neither [--data FOLDER] [--quick] [--write] [--out FILE]``

For every form of a method that ``jaxcd direction`` runs: the sizes of the difference of scores on
the 81 pairs of the challenge's third supplementary set that are labelled "neither" (a common cause,
or independent).  ``--write`` puts them into ``jaxcd/pairwise/neither.json``, which
:func:`jaxcd.pairwise.or_neither` reads.

Columns, at an error rate of .1: the share of pairs that get a direction among the "neither" pairs
(each with a threshold made from the 80 others), among 200 pairs drawn here that no threshold has
seen (half of them independent, half with a common cause; 500 rows), and among the causal pairs of
the challenge, with the share of right answers of those.  Private methods run once at an epsilon so
large that the difference is exact; the shares are those under the law of their noise, computed and
not drawn.  Each pair's range stands in for bounds (:mod:`benchmarks.pairs`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import experiment as ex
from benchmarks.pairs import EXACT, SCORES, Answers, Method, Pairs, exact_anm, exact_reci, methods
from jaxcd.pairwise import CausePair, challenge
from jaxcd.pairwise.abstaining import FILE, decided, form_of, scale_of, size_of, threshold
from jaxcd.pairwise.anm_scores import Protect

RATE = 0.1
EPSILONS = (1.0, 4.0)


def forms() -> list[Method]:
    """What ``jaxcd direction`` runs: without privacy with the defaults, and with privacy."""
    shown = {f"ANM, {name}" for name in SCORES}
    shown |= {"RECI, polynomial 3", "IGCI, uniform, slope", "CDS"}
    plain = [method for method in methods(quick=True) if method.label in shown]
    private = [Method("private RECI", exact_reci, True)]
    for protect, words in ((Protect.BOTH, "all rows"), (Protect.TEST, "test half")):
        for name, score in SCORES.items():
            if protect is Protect.TEST or name in ("HSIC", "log IQR"):

                def answer(pairs: Pairs, s: object = score, p: Protect = protect) -> Answers:
                    return exact_anm(pairs, score=s, protect=p)  # type: ignore[arg-type]

                private.append(Method(f"private ANM, {name}, {words}", answer, True))
    return plain + private


def drawn(n_pairs: int, *, rows: int = 500, seed: int = 0) -> list[CausePair]:
    """Pairs of which neither causes the other: independent ones, and ones with a common cause."""
    rng = np.random.default_rng(seed)

    def shape(values: np.ndarray) -> np.ndarray:
        a, b, c = rng.normal(size=3)
        return [a * values + b * values**3, np.tanh(3 * a * values), np.sin(2 * a * values + c)][
            int(rng.integers(3))
        ]

    def source() -> np.ndarray:
        kinds = [rng.normal(size=rows), rng.uniform(-1.7, 1.7, rows), rng.gamma(2, 1, rows) - 2]
        return kinds[int(rng.integers(3))]

    pairs = []
    for i in range(n_pairs):
        if i % 2:
            common = source()
            x, y = (shape(common) + rng.uniform(0.1, 0.7) * source() for _ in range(2))
        else:
            x, y = shape(source()), shape(source())
        pairs.append(CausePair(f"neither {i}", x, y, None))
    return pairs


def measured(
    sizes: Sequence[float], scales: Sequence[float], rivals: Sequence[float] | None = None
) -> float:
    """The mean probability of a direction; None as rivals: each threshold from the others."""
    found = []
    for i, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        others = [*sizes[:i], *sizes[i + 1 :]] if rivals is None else rivals
        found.append(decided([size], threshold(others, scale, RATE), scale))
    return ex.mean(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("JAXCD_DATA"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, default=ex.RESULTS / "neither.json")
    given = parser.parse_args()
    every = challenge(given.data, causal_only=False).pairs
    neither = [pair for pair in every if pair.direction is None][: 12 if given.quick else None]
    causal = [pair for pair in every if pair.direction is not None][: 12 if given.quick else None]
    fresh = drawn(12 if given.quick else 200)
    kept, rows = {}, []
    for method in forms():
        found = [method.answer(pairs)[0] for pairs in (neither, fresh, causal)]
        name = next(form_of(result) for result in found[0] if result.info)
        sizes = [
            [size_of(result) if result.info else 0.0 for result in results] for results in found
        ]
        kept[name] = sorted(min(float(f"{size:.6g}"), 1e300) for size in sizes[0])
        for epsilon in EPSILONS if method.private else (math.inf,):
            noise = [
                [scale_of(result) * EXACT / epsilon for result in results] for results in found
            ]
            right = [
                decided(
                    [size],
                    threshold(sizes[0], scale, RATE),
                    scale,
                    side=1 if result.direction is pair.direction else -1,
                )
                for size, scale, result, pair in zip(
                    sizes[2], noise[2], found[2], causal, strict=True
                )
            ]
            causal_share = measured(sizes[2], noise[2], sizes[0])
            rows.append(
                {
                    "method": method.label,
                    "epsilon": None if math.isinf(epsilon) else epsilon,
                    "neither": round(measured(sizes[0], noise[0]), 4),
                    "drawn": round(measured(sizes[1], noise[1], sizes[0]), 4),
                    "causal": round(causal_share, 4),
                    "right": round(ex.mean(right) / causal_share, 4) if causal_share else None,
                }
            )
            print(rows[-1], flush=True)
    content = {
        "call": "python -m benchmarks.neither",
        "error_rate": RATE,
        "n_neither": len(neither),
        "n_causal": len(causal),
        "rows": rows,
    }
    given.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if given.write:
        FILE.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
