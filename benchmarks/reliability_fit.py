"""Fits the numbers of ``jaxcd/discovery/reliability.json``, and prints the reliability curves.

``python -m benchmarks.reliability_fit [--results FILE] [--write]``

The maps are fitted to the truths of the set ``fitted`` of ``benchmarks/results/reliability.json``
alone.  The curves are of found edges by their score: the mean score, how often they returned in
other runs, the standard error of the difference, and their number, in four bins and over [.5, .95)
whole, before and after; those of the set ``held-out`` judge.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import experiment as ex
from benchmarks.reliability import KEY
from jaxcd.discovery import recalibration

MAPS = Path(recalibration.__file__).with_name("reliability.json")
RELEASES = {
    "histogram": "histogram",
    "marginals": "marginals",
    "log-linear": "log-linear",
    "moments": "second-moments",
    "features": "features",
    "rare": "features",
    "discretised": "discretised",
}
EDGES = (0.5, 0.7, 0.85, 0.95, 1.0)


def pairs_of(rows: Sequence[ex.Row]) -> np.ndarray:
    """One row a pair: share of draws, found, returned in other runs, other runs, and facts."""
    parts = [
        np.column_stack(
            [
                pairs[:, 0] / row.n_draws,
                pairs[:, 1:],
                *(np.broadcast_to(x, len(pairs)) for x in (row.n_runs - 1, *row.get("facts", ()))),
            ]
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
    found[:, 2:4] *= chances[place, kept][:, None]
    return found


def line_of(pairs: np.ndarray, n_draws: int) -> recalibration.Line:
    """The line that is fitted to pairs."""
    shares, _, returned, runs = pairs[:, :4].T
    return recalibration.fit_map(shares, returned, runs, n_draws, pairs[:, 4:].T)


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
                    for number in line_of(thinned(pairs[pairs[:, 1] == flag], draws, kept), kept)
                ]
                for kept in recalibration.DRAWS
                if kept <= draws
            }
            for name, flag in (("found", 1), ("others", 0))
        }
    return maps


def summary(scores: np.ndarray, pairs: np.ndarray, truths: np.ndarray) -> dict[str, float]:
    """The mean score of some pairs, how often they returned, the standard error of the difference
    (truths are the units: pairs of one depend on each other), and their number.
    """
    gaps = np.bincount(truths, pairs[:, 2] / pairs[:, 3] - scores)
    return {
        "score": float(scores.mean()),
        "returned": float(pairs[:, 2].sum() / pairs[:, 3].sum()),
        "error": float(np.sqrt((gaps**2).sum()) / len(scores)),
        "n_edges": len(scores),
    }


def curve(scores: np.ndarray, pairs: np.ndarray, truths: np.ndarray) -> list[dict[str, float]]:
    """The summary of each bin of scores that has any."""
    places = np.clip(np.searchsorted(EDGES, scores, side="right") - 1, -1, len(EDGES) - 2)
    return [
        {"from": EDGES[place], **summary(scores[inside], pairs[inside], truths[inside])}
        for place in range(len(EDGES) - 1)
        if (inside := places == place).any()
    ]


def scored(row: ex.Row, maps: Maps) -> np.ndarray:
    """The recalibrated scores of a row's pairs, as if all of them had been found."""
    pairs = pairs_of([row])
    lines = maps[RELEASES[row.kind]]["found"]
    return recalibration.scored(pairs[:, 0], row.n_draws, lines, pairs[:, 4:].T)


def reported(rows: Sequence[ex.Row], maps: Maps) -> list[dict[str, Any]]:
    """The curves of found edges of each kind and set, and of all kinds, before and after, and the
    summaries over [.5, 1] (``whole``) and over [.5, .95) (``uncertain``).
    """
    groups = {
        (kind, part): [row for row in rows if row.like(kind=kind, part=part)]
        for kind, part in dict.fromkeys((row.kind, row.part) for row in rows)
    }
    for part in dict.fromkeys(row.part for row in rows):
        groups["all", part] = [row for row in rows if row.part == part]
    each = {id(row): (pairs_of([row])[:, :4], scored(row, maps)) for row in rows}
    found = []
    for (kind, part), mine in groups.items():
        pairs, after = map(np.concatenate, zip(*(each[id(row)] for row in mine), strict=True))
        truths = np.repeat(np.arange(len(mine)), [len(row.pairs) for row in mine])
        for stage, scores in (("draws", pairs[:, 0]), ("recalibrated", after)):
            high = (pairs[:, 1] == 1) & (scores >= EDGES[0])
            entry: dict[str, Any] = {"kind": kind, "part": part, "stage": stage}
            for name, some in (("whole", high), ("uncertain", high & (scores < EDGES[-2]))):
                if some.any():
                    entry[name] = summary(scores[some], pairs[some], truths[some])
            bins = curve(scores[high], pairs[high], truths[high])
            found.append({**entry, "n_truths": len(mine), "curve": bins})
    return found


def said(part: Mapping[str, float]) -> str:
    """A summary on the screen."""
    return f"{part['score']:.2f}->{part['returned']:.2f} ±{part['error']:.3f} ({part['n_edges']})"


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
        parts = [*entry["curve"], *([entry["uncertain"]] if "uncertain" in entry else [])]
        print(
            f"{entry['kind']:10} {entry['part']:9} {entry['stage']:13}", *map(said, parts), sep="  "
        )
    if chosen.write:
        about = (
            "the lines of jaxcd.discovery.recalibration by numbers of draws, fitted by "
            "benchmarks.reliability_fit to the truths of the set 'fitted' of "
            "benchmarks/results/reliability.json"
        )
        n_truths = sum(row.part == "fitted" for row in rows)
        draws = sorted({int(row.n_draws) for row in rows})
        content = {"about": about, "n_truths": n_truths, "n_draws": draws, "maps": maps}
        MAPS.write_text(json.dumps(content, indent=1) + "\n")
        ex.Record(chosen.results, key=KEY, settings={}, resume=True).write(curves=curves)


if __name__ == "__main__":
    main()
