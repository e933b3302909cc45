"""A table of patients as it comes out of a hospital: ids, dates, free text, missing cells, codes,
rare levels and several rows a person, around a graph that is known.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

ARCS = (
    ("age", "stage"),
    ("smoker", "crp"),
    ("stage", "crp"),
    ("stage", "visits"),
    ("crp", "outcome"),
)
"""The true graph; ``region`` has no part in it."""

HEADER = "patient_id,record,admitted,age,smoker,stage,crp,visits,region,note,outcome".split(",")
MOST_ROWS = 3  # of one person


@dataclass(frozen=True)
class Messy:
    """The cells as text; the header is :data:`HEADER`."""

    rows: list[list[str]]

    def rows_of(self, person: str) -> list[int]:
        """Where the rows of a person stand."""
        return [place for place, row in enumerate(self.rows) if row[0] == person]

    def csv(self, lines: dict[int, bytes] | None = None) -> bytes:
        """The file, where some rows are written in another way."""
        handle = io.StringIO()
        csv.writer(handle, lineterminator="\n").writerows([HEADER, *self.rows])
        written = handle.getvalue().encode().splitlines()
        for place, line in (lines or {}).items():
            written[1 + place] = line
        return b"\n".join(written) + b"\n"

    def line(self, place: int, **changed: str) -> bytes:
        """A row as it is written, with some cells changed; these are not put in quotes."""
        quoted = [f'"{cell}"' if "," in cell else cell for cell in self.rows[place]]
        return ",".join((dict(zip(HEADER, quoted, strict=True)) | changed).values()).encode()


def messy(n_people: int = 2_000, seed: int = 0) -> Messy:
    """The table: between one and three rows a person."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), rng.choice([1, 2, 3], n_people, p=[0.5, 0.3, 0.2]))
    n = person.size
    age = np.clip(rng.normal(55, 18, n), 18, 97).astype(int)
    smoker = rng.random(n) < 0.4
    stage = 1 + (age > 45).astype(int) * (rng.random(n) < 0.85) + (age > 65) * (rng.random(n) < 0.8)
    crp = np.exp(0.6 + 0.8 * (stage - 1) + 0.9 * smoker + 0.5 * rng.normal(size=n))
    visits = rng.poisson(np.exp(-0.3 + 0.9 * (stage - 1))) + (rng.random(n) < 0.02) * 40
    outcome = rng.random(n) < np.where(crp > 8, 0.85, 0.15)
    region = rng.choice(["north", "south", "west"], n)
    day = rng.integers(0, 28, n)
    columns = {
        "patient_id": [f"P{k:05d}" for k in person],
        "record": [str(700_000 + k) for k in range(n)],
        "admitted": [f"{1 + d:02d}/{1 + d % 12:02d}/2021" for d in day],
        "age": [str(a) for a in age],
        "smoker": np.where(smoker, "yes", "no").tolist(),
        "stage": [str(s) for s in stage],
        "crp": [f"{c:.1f}" for c in crp],
        "visits": [str(v) for v in visits],
        "region": region.tolist(),
        "note": [f"seen by dr. {k % 40}, day {k}; no complaints" for k in range(n)],
        "outcome": np.where(outcome, "ill", "well").tolist(),
    }
    # what was not written down, each in the ways that happen
    gone = {
        "age": ["999", "", "999"],
        "smoker": ["unknown", "", "NA"],
        "stage": ["9", ""],
        "crp": ["", "NaN"],
        "visits": [""],
        "admitted": [""],
        "note": [""],
    }
    for name, how in gone.items():
        for k in np.flatnonzero(rng.random(n) < 0.05):
            columns[name][k] = how[k % len(how)]
    two = np.flatnonzero(person < 2)  # a region that two people hold
    for k in two:
        columns["region"][k] = "abroad"
    columns["age"][40], columns["crp"][50] = "forty", "98000.0"
    rows = list(map(list, zip(*(columns[name] for name in HEADER), strict=True)))
    return Messy(rows)
