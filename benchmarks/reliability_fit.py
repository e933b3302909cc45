"""Fits the numbers of ``jaxcd/discovery/reliability.json``, and prints the reliability curves.

``python -m benchmarks.reliability_fit [--results FILE] [--write]``

The maps are fitted to the truths of the set ``fitted`` of ``benchmarks/results/reliability.json``
alone.  The curves are of the other truths: found edges by their score, the mean score beside how
often they returned in other runs, before and after.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import experiment as ex
from jaxcd.discovery import recalibration

MAPS = Path(recalibration.__file__).with_name("reliability.json")
RELEASES = {
    "histogram": "histogram",
    "marginals": "marginals",
    "log-linear": "log-linear",
    "moments": "second-moments",
    "features": "features",
    "rare": "features",
}
EDGES = (0.5, 0.7, 0.85, 0.95, 1.0)


def pairs_of(rows: Sequence[ex.Row]) -> np.ndarray:
    """One row a pair: share of draws, found, returned in other runs, other runs."""
    parts = [
        np.column_stack(
            [pairs[:, 0] / row.n_draws, pairs[:, 1:], np.full(len(pairs), row.n_runs - 1)]
        )
        for row in rows
        for pairs in [np.array(row.pairs, dtype=np.float64)]
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 4))


Maps = dict[str, dict[str, dict[str, list[float]]]]


def thinned(pairs: np.ndarray, n_draws: int, n_kept: int) -> np.ndarray:
    """The pairs as they would be with fewer draws: every share that a pair could have then, with
    its runs times how likely it is.
    """
    chances = recalibration.thinned(n_draws, n_kept)[np.rint(pairs[:, 0] * n_draws).astype(int)]
    place, kept = np.nonzero(chances)
    found = pairs[place]
    found[:, 0] = kept / n_kept
    found[:, 2:] *= chances[place, kept][:, None]
    return found


def fitted(rows: Sequence[ex.Row]) -> Maps:
    """The maps by kind of release, from rows of the set ``fitted``."""
    maps: Maps = {}
    for release in dict.fromkeys(RELEASES.values()):
        mine = [row for row in rows if RELEASES[row.kind] == release and row.part == "fitted"]
        if not mine:
            continue
        pairs, draws = pairs_of(mine), mine[0].n_draws
        maps[release] = {
            name: {
                str(kept): [
                    round(number, 4)
                    for number in recalibration.fit_map(
                        *thinned(pairs[pairs[:, 1] == flag], draws, kept)[:, (0, 2, 3)].T, kept
                    )
                ]
                for kept in recalibration.DRAWS
                if kept <= draws
            }
            for name, flag in (("found", 1), ("others", 0))
        }
    return maps


def curve(scores: np.ndarray, pairs: np.ndarray) -> list[dict[str, float]]:
    """For each bin of scores the mean score, how often its pairs returned, and their number."""
    places = np.clip(np.searchsorted(EDGES, scores, side="right") - 1, -1, len(EDGES) - 2)
    return [
        {
            "from": EDGES[place],
            "score": float(scores[inside].mean()),
            "returned": float(pairs[inside, 2].sum() / pairs[inside, 3].sum()),
            "n_edges": int(inside.sum()),
        }
        for place in range(len(EDGES) - 1)
        if (inside := places == place).any()
    ]


def reported(rows: Sequence[ex.Row], maps: Maps) -> list[dict[str, object]]:
    """The curves of found edges of each kind and set, and of all kinds, before and after, over
    [.5, 1] whole, too.
    """
    found = []
    groups = [
        (kind, part, [row for row in rows if row.like(kind=kind, part=part)])
        for kind, part in dict.fromkeys((row.kind, row.part) for row in rows)
    ]
    parts = dict.fromkeys(row.part for row in rows)
    groups += [("all", part, [row for row in rows if row.part == part]) for part in parts]
    for kind, part, mine in groups:
        pairs = np.concatenate([pairs_of([row]) for row in mine])
        lines = [
            recalibration.scored(
                pairs_of([row])[:, 0], row.n_draws, maps[RELEASES[row.kind]]["found"]
            )
            for row in mine
        ]
        is_found = pairs[:, 1] == 1
        pairs, after = pairs[is_found], np.concatenate(lines)[is_found]
        for stage, scores in (("draws", pairs[:, 0]), ("recalibrated", after)):
            high = scores >= EDGES[0]
            whole = {
                "score": float(scores[high].mean()) if high.any() else None,
                "returned": float(pairs[high, 2].sum() / max(pairs[high, 3].sum(), 1)),
                "n_edges": int(high.sum()),
            }
            bins = curve(scores, pairs)
            found.append(
                {
                    "kind": kind,
                    "part": part,
                    "stage": stage,
                    "n_truths": len(mine),
                    "whole": whole,
                    "curve": bins,
                }
            )
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Reads the results, prints the curves, and writes the numbers where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ex.RESULTS / "reliability.json")
    parser.add_argument("--write", action="store_true", help=f"writes {MAPS.name} and the curves")
    chosen = parser.parse_args(words)
    rows = ex.read_rows(chosen.results)
    maps = fitted(rows)
    curves = reported(rows, maps)
    for entry in curves:
        bins = "  ".join(
            f"{part['score']:.2f}->{part['returned']:.2f} ({part['n_edges']})"
            for part in entry["curve"]  # type: ignore[attr-defined]
        )
        print(f"{entry['kind']:10} {entry['part']:9} {entry['stage']:13} {bins}")
    if chosen.write:
        about = (
            "a, b and g of jaxcd.discovery.recalibration by numbers of draws, fitted by "
            "benchmarks.reliability_fit to the truths of the set 'fitted' of "
            "benchmarks/results/reliability.json"
        )
        n_truths = sum(row.part == "fitted" for row in rows)
        draws = sorted({int(row.n_draws) for row in rows})
        content = {"about": about, "n_truths": n_truths, "n_draws": draws, "maps": maps}
        MAPS.write_text(json.dumps(content, indent=1) + "\n")
        results = json.loads(chosen.results.read_text())
        chosen.results.write_text(json.dumps({**results, "curves": curves}) + "\n")


if __name__ == "__main__":
    main()
