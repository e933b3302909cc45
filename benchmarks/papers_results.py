"""What :mod:`benchmarks.papers` is made of: result files, claims, and the rules that find a
verdict.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import experiment as ex


class Missing(Exception):
    """A row that the results lack; the message names it."""


class Verdict(enum.Enum):
    """What our number says of the published one."""

    REPRODUCED = "reproduced"
    CONTRADICTED = "contradicted"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Results:
    """The result files of a folder.  whole: not of a quick run, so that verdicts bind."""

    folder: Path
    whole: bool = True

    def content(self, name: str) -> dict[str, Any]:
        """A file.  Raises Missing where it is not there."""
        path = self.folder / f"{name}.json"
        if not path.is_file():
            raise Missing(f"no {name}.json; python -m benchmarks.{name}")
        return _read(path, path.stat().st_mtime_ns)

    def rows(self, name: str, part: str = "results", **wanted: Any) -> list[ex.Row]:
        """The rows with these entries.  Raises Missing where there is none."""
        content = self.content(name)
        rows = [ex.Row(row) for row in content.get(part, content.get("rows", ()))]
        found = [row for row in rows if row.like(**wanted)]
        if not found:
            words = ", ".join(f"{key} = {value}" for key, value in wanted.items())
            raise Missing(f"{name}.json has no row of {words}")
        return found

    def mean(self, name: str, entry: str, **wanted: Any) -> float:
        """The mean of an entry over the rows with these entries."""
        return fmean(row[entry] for row in self.rows(name, **wanted))

    def left_out(self) -> dict[str, list[str]]:
        """Reasons by file, with how many rows have them and what these have in common."""
        found = {}
        for name in LEFT_OUT:
            try:
                entries = self.content(name).get("left_out", ())
            except Missing:
                continue
            alike: dict[str, list[dict[str, Any]]] = {}
            for entry in entries:
                alike.setdefault(entry["reason"], []).append(entry)
            if alike:
                found[name] = [_left_out(*several) for several in alike.items()]
        return found


def _left_out(reason: str, entries: list[dict[str, Any]]) -> str:
    if len(entries) == 1:
        return reason
    common = (
        f"{name} {value}"
        for name, value in entries[0].items()
        if name != "reason" and all(entry.get(name) == value for entry in entries)
    )
    return f"{len(entries)} rows ({', '.join(common)}): {reason}"


LEFT_OUT = ("priv_pc", "priv_pc_tests", "pcd_figure2", "local_multi", "local_pairs", "priv_fci")


@cache
def _read(path: Path, changed: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


Found = tuple[str, Verdict]


@dataclass(frozen=True)
class Claim:
    """One line.  published: as printed, with where it is from in ``why``.  verdict: what we state;
    found: ours as printed, and the verdict of the rule.
    """

    item: str
    what: str
    published: str
    verdict: Verdict
    found: Callable[[Results], Found]
    why: str = ""


Value = Callable[[Results], float]


def close(value: Value, published: float, *, within: float, form: str = ".3f") -> Any:
    """Reproduced where ours is within so much of the published number."""

    def found(results: Results) -> Found:
        ours = value(results)
        near = abs(ours - published) <= within
        return format(ours, form), Verdict.REPRODUCED if near else Verdict.CONTRADICTED

    return found


def at_most(value: Value, published: float, form: str = ".4g") -> Any:
    """Reproduced where ours does not exceed a published bound."""

    def found(results: Results) -> Found:
        ours = value(results)
        holds = ours <= published * (1 + 1e-9)
        return format(ours, form), Verdict.REPRODUCED if holds else Verdict.CONTRADICTED

    return found


def above(*values: Value, form: str = ".2f") -> Any:
    """Reproduced where the values fall from each to the next."""

    def found(results: Results) -> Found:
        ours = [value(results) for value in values]
        falls = all(a > b for a, b in zip(ours, ours[1:], strict=False))
        words = " / ".join(format(each, form) for each in ours)
        return words, Verdict.REPRODUCED if falls else Verdict.CONTRADICTED

    return found


def highest(*values: Value, form: str = ".2f") -> Any:
    """Reproduced where the first value is above all others."""

    def found(results: Results) -> Found:
        ours = [value(results) for value in values]
        words = " / ".join(format(each, form) for each in ours)
        return words, Verdict.REPRODUCED if ours[0] > max(ours[1:]) else Verdict.CONTRADICTED

    return found


def shown(*values: Value, form: str = ".2f") -> Any:
    """Not comparable: the numbers only."""

    def found(results: Results) -> Found:
        return " / ".join(format(v(results), form) for v in values), Verdict.NOT_COMPARABLE

    return found


def said(words: str, verdict: Verdict = Verdict.NOT_COMPARABLE) -> Any:
    """A sentence in the place of a number."""
    return lambda results: (words, verdict)
