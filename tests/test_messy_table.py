"""A messy table goes from ``jaxcd domain`` to a private report with edits to one JSON file; and on
neighbours, which differ in all rows of one person, all that can be seen and is not noise is equal.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

import jaxcd
from jaxcd.cli import main
from jaxcd.privacy import SecureNoise
from tests.attacks.test_outside import Drowning
from tests.helpers import CommandLine
from tests.messy import ARCS, HEADER, MOST_ROWS, Messy, messy

PERSON = "P00706"
BUDGET = ["--epsilon", "8", "--delta", "1e-5", "--max-rows-per-person", str(MOST_ROWS)]


@pytest.fixture(scope="module")
def table() -> Messy:
    return messy()


def edited(draft: dict[str, Any], *, numeric: bool = False) -> dict[str, Any]:
    """What a person makes of the draft: bounds, bins and levels that are known without the data."""
    columns = draft["columns"]
    columns["age"] = {"type": "ordinal", "bins": [18, 45, 65, 120], "missing": [999]}
    columns["crp"] = (
        {"type": "numeric", "lower": 0, "upper": 100, "missing": True}
        if numeric
        else {"type": "ordinal", "bins": [0, 4, 8, 16, 1000], "missing": True}
    )
    columns["visits"]["bins"] = [0, 1, 3, 10, 100]
    columns["region"]["levels"] = ["north", "south", "west", "elsewhere"]
    columns["region"]["other"] = "elsewhere"
    columns["outcome"]["missing"] = True
    return {"declared": True, "columns": columns}


@pytest.fixture
def files(
    tmp_path: Path, table: Messy, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with the table, and the domain file that a person has gone through."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patients.csv").write_bytes(table.csv())
    shown = command.shows("domain patients.csv")
    for words in (
        "NOT PRIVATE",
        "patient_id: ignored: looks like an id that repeats",
        "record: ignored: looks like an id: every value occurs once",
        "admitted: ignored: looks like dates",
        "note: ignored: looks like free text",
        "age: perhaps codes",
        "999 (",
        "'forty' (1)",
        "smoker: perhaps codes",
        "'unknown' (",
        "stage: 78 missing cells (2.3%)",
        "crp: far from all other values: '98000.0' (1)",
        "visits: whole numbers with a long tail",
        "region: rare levels, with their rows: 'abroad' (",
    ):
        assert words in shown, words
    draft = json.loads((tmp_path / "domain.json").read_text())
    assert draft["declared"] is False and list(draft["columns"]) != HEADER
    assert set(draft["columns"]) == set(HEADER)
    for name, bins in (("domain", False), ("mixed", True), ("person", False)):
        content = edited(json.loads(json.dumps(draft)), numeric=bins)
        if name == "person":
            content["columns"]["patient_id"] = {"person": True}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_from_the_draft_to_the_report(files: Path, command: CommandLine) -> None:
    code, out, err = command("check patients.csv --domain domain.json")
    assert code == 1 and err == "" and "NOT PRIVATE" in out
    assert "column 'age', 1 cell, first in row 41: the value 'forty' is not a number" in out
    assert "'abroad' is not a declared level; a private run reads 'elsewhere'" in out
    assert "outside the declared bounds [0, 1000]" in out and "3,405 rows: " in out

    words = ["discover patients.csv --domain domain.json", BUDGET]
    found = command.json(words, "--simulated-noise --out simulated")
    edges = {frozenset((edge[0], edge[2])) for edge in found["graph"]["edges"]}
    true = {frozenset(arc) for arc in ARCS}
    assert len(edges & true) >= 4 and not any("region" in edge for edge in edges)
    assert found["settings"]["n_samples"] == 3405
    assert found["guarantee"]["proven"] is False

    assert "proved" in command.shows(words, "--out secure")
    for folder in ("simulated", "secure"):
        assert "<html" in (files / folder / "report.html").read_text()
    privacy = json.loads((files / "secure" / "privacy.json").read_text())
    assert "abroad" not in json.dumps(privacy) and "P00" not in json.dumps(privacy)


def test_a_mixed_table_too(files: Path, command: CommandLine) -> None:
    words = ["discover patients.csv --domain mixed.json", BUDGET, "--simulated-noise --out mixed"]
    assert command.json(words)["settings"]["n_samples"] == 3405
    assert (files / "mixed" / "report.html").stat().st_size > 1000


# Every row of one person, written in other ways; the number of rows is public, and stays.
ODD = {
    "cells go missing": {"age": "", "smoker": "NA", "crp": "", "visits": "NULL", "stage": ""},
    "another code": {"age": "-77", "stage": "8", "smoker": "refused", "crp": "-1e9"},
    "text in columns of numbers": {"age": "old", "crp": "<5", "visits": "many", "stage": "III"},
    "infinite": {"crp": "inf", "visits": "1e999", "age": "-inf"},
    "another date, id and note": {"record": "x", "admitted": "yesterday", "note": ""},
    "a level of one person": {"region": "atlantis", "outcome": "HIV+", "smoker": "\0"},
    "the id is gone": {"patient_id": ""},
    "another person": {"patient_id": "P00001"},
    "a quote that is not closed": {"note": '"seen', "smoker": '"yes'},
    "a quote in a cell": {"note": 'a "b" c', "region": 'no"rth'},
    "too many fields": {"outcome": "ill,well,ill,,"},
    "a carriage return": {"note": "one\rtwo"},
    "commas in a note": {"note": "tired, thirsty, cold"},
}
LINES = {
    "too few fields": b"P00706,1",
    "a blank line": b"",
    "bytes that are no text": b"P00706,\xff\xfe,\xe9,\xc3(,yes,1,2,3,north,x,ill",
    "a long cell": b"P00706,1,2,3,yes,1,2,3,north," + b"x" * 200_000 + b",ill",
    "nothing but commas": b",,,,,,,,,,",
}
COMMANDS = {
    "person": ["--domain", "person.json", *BUDGET[:4], "--unit", "person"],
    "tests": ["--domain", "domain.json", *BUDGET, "--mechanism", "levelwise-gaussian", "--json"],
    "mixed": ["--domain", "mixed.json", *BUDGET, "--progress", "--confidence", "1"],
}
# Of another number of rows, which is public by the row only, and with more that is not read as it
# is meant; as many people.
BY_PERSON = {"one row": 1, "nine rows": 9}


def neighbours(table: Messy) -> dict[str, bytes]:
    """Files that differ from the table in the rows of one person."""
    places = table.rows_of(PERSON)
    assert 2 <= len(places) <= MOST_ROWS
    assert max(places) < len(table.rows) - 1  # a blank line at the end is no row
    made = {how: {k: table.line(k, **cells) for k in places} for how, cells in ODD.items()}
    made |= {how: dict.fromkeys(places, line) for how, line in LINES.items()}
    return {how: table.csv(lines) for how, lines in made.items()}


def neighbours_by_person(table: Messy) -> dict[str, bytes]:
    """Files that differ from the table in one person, whose number of rows is another."""
    first, *others = table.rows_of(PERSON)
    made = {}
    for how, n_rows in BY_PERSON.items():
        lines = [table.line(first, stage=str(k % 5), age="999") for k in range(n_rows)]
        if n_rows > 1:
            lines[-1] = LINES["bytes that are no text"]
        changed = dict(enumerate(table.csv().splitlines()[1:]))
        changed[first] = b"\n".join(lines)
        header = table.csv().splitlines()[0]
        kept = [line for place, line in changed.items() if place not in others]
        made[how] = b"\n".join([header, *kept]) + b"\n"
    return made


def outside(
    files: Path, content: bytes, words: list[str], capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """All that can be seen of a run on a file of this content."""
    (files / "patients.csv").write_bytes(content)
    shutil.rmtree(files / "out", ignore_errors=True)
    capsys.readouterr()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        code = main(["discover", "patients.csv", *words, "--out", "out"])
    out, err = capsys.readouterr()
    return {
        "code": code,
        "out": out,
        "err": err,
        "warnings": [str(one.message) for one in warned],
        "files": {path.name: path.read_bytes() for path in sorted((files / "out").iterdir())},
        "left": sorted(path.name for path in files.iterdir()),
    }


@pytest.mark.parametrize("kind", COMMANDS)
def test_neighbours_look_alike_from_outside(
    kind: str,
    files: Path,
    table: Messy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With noise so large that it alone decides, and is the same: byte for byte, graph included."""
    monkeypatch.setattr(SecureNoise, "start", lambda self: Drowning(3).start())
    first = outside(files, table.csv(), COMMANDS[kind], capsys)
    assert first["code"] == 0 and "report.html" in first["files"], first["err"]
    shown, report = first["out"].replace(",", ""), first["files"]["report.html"].decode()
    if kind == "person":
        assert "2000 people" in shown and "2,000 people" in report
        assert "3405" not in shown and "3,405" not in report
        others = neighbours_by_person(table)
    else:
        assert "3405" in shown and "3,405 rows" in report
        mine = list(COMMANDS).index(kind) - 1
        others = dict(list(neighbours(table).items())[mine::2])
    for how, content in others.items():
        found = outside(files, content, COMMANDS[kind], capsys)
        for part in first:
            assert found[part] == first[part], (how, part)


def test_with_usual_noise_only_what_was_released_differs(
    files: Path, table: Messy, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same seed: the release feels one person, and nothing that is public does."""
    words = ["--domain", "domain.json", *BUDGET, "--json", "--simulated-noise"]
    words += ["--release-out", "out.npz"]

    def seen(content: bytes) -> tuple[dict[str, Any], bytes]:
        (files / "out.npz").unlink(missing_ok=True)
        found = outside(files, content, words, capsys)
        shown = json.loads(found.pop("out"))
        names = sorted(found.pop("files"))
        shown["settings"].pop("score")  # of the released tables
        public = {key: shown[key] for key in ("settings", "guarantee", "spent", "reasons")}
        return {**found, **public, "names": names}, (files / "out.npz").read_bytes()

    public, release = seen(table.csv())
    assert public["code"] == 0 and public["settings"]["n_samples"] == 3405
    others = neighbours(table)
    released = set()
    for how in ("cells go missing", "another code", "a quote that is not closed", "a blank line"):
        found, other = seen(others[how])
        assert found == public, how
        released.add(other)
    assert len(released) > 1 and release not in released


def test_every_neighbour_is_read_with_as_many_rows(files: Path, table: Messy) -> None:
    """And differs in the rows of that person alone."""
    import numpy as np

    path = files / "patients.csv"
    domain = jaxcd.Domain.read(files / "domain.json")
    first = jaxcd.read_csv(path, domain=domain)
    for how, content in neighbours(table).items():
        path.write_bytes(content)
        other = jaxcd.read_csv(path, domain=domain)
        assert other.n_samples == first.n_samples, how
        changed = np.flatnonzero((other.codes != first.codes).any(axis=1))
        assert set(changed.tolist()) <= set(table.rows_of(PERSON)), how
