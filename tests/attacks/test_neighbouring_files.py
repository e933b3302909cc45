"""Neighbouring files: what one odd cell, or one odd row, may change of what can be seen from
outside.

A private run reads a cell that fits no declaration as the column's ``other``, and a number beyond a
bound as the bound.  So a run on the file with the odd cell must look, byte for byte, as the run on
the file in which that value stands: files, screens, warnings, exit code.  Then neither success, nor
a message, nor the number of rows tells of one record.  The noise is simulated from the same key.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxcd
from jaxcd.cli import main
from jaxcd.errors import DataError
from jaxcd.privacy import SecureNoise
from jaxcd.report import graph_json
from tests.helpers import simulated

N, ROW = 300, 117
MIXED = jaxcd.Domain(
    {
        "smoke": jaxcd.Categorical(("no", "yes", "unknown"), other="unknown"),
        "stage": jaxcd.Ordinal((1, 2, 3, 4)),
        "age": jaxcd.Numeric(0, 120),
        "dose": jaxcd.Numeric(-1, 1, other=0.25),
    }
)
DISCRETE = MIXED.select(["smoke", "stage"]).columns | {"site": jaxcd.Categorical(("a", "b"))}
DOMAINS = {"mixed": MIXED, "discrete": jaxcd.Domain(DISCRETE)}

# By column: what is written in the cell, and what a private run reads instead, both as in a csv
# file.
LONG = "x" * 150_000
ODD: dict[str, dict[str, str]] = {
    "smoke": {
        "HIV+": "unknown",
        "": "unknown",
        "NA": "unknown",
        "NO": "unknown",
        "0": "unknown",
        "nan": "unknown",
        LONG: "unknown",
        '"no\nyes"': "unknown",
        '"no,yes"': "unknown",
        '"say ""no"""': "unknown",
        "\0": "unknown",
        "\u2028no": "unknown",
    },
    "stage": {
        "5": "2",
        "": "2",
        "four": "2",
        "2.5": "2",
        "inf": "2",
        "-1": "2",
        "1e999": "2",
        '"1\n2"': "2",
        "1_0": "2",
        LONG: "2",
    },
    "age": {
        "121": "120",
        "-0.001": "0",
        "1e300": "120",
        "inf": "120",
        "-Infinity": "0",
        "1e999": "120",
        "nan": "60",
        "": "60",
        "NULL": "60",
        "old": "60",
        "4O": "60",
        "1_0": "60",
        "0x10": "60",
        '"30\n40"': "60",
        LONG: "60",
        "9" * 5000: "120",
        "True": "60",
    },
    "dose": {
        "": "0.25",
        "none": "0.25",
        "nan": "0.25",
        "2": "1",
        "-2": "-1",
        "inf": "1",
        '"0\n.5"': "0.25",
    },
}
ODD["site"] = {"c": "a", "": "a", '"b\n"': "a", LONG: "a"}
CATCH_ALL = {"smoke": "unknown", "stage": "2", "age": "60", "dose": "0.25", "site": "a"}


def rows_of(kind: str, n: int = N) -> list[list[str]]:
    """A table of text whose columns depend on each other; the row that is attacked stands far from
    every catch-all.
    """
    rng = np.random.default_rng(5)
    stage = rng.integers(1, 5, n)
    dose = np.clip(0.4 * (stage - 2.5) + 0.3 * rng.normal(size=n), -1, 1)
    columns = {
        "smoke": [
            ("no", "yes", "unknown")[k]
            for k in np.where(rng.random(n) < 0.6, stage % 2, rng.integers(0, 3, n))
        ],
        "stage": [str(k) for k in stage],
        "age": [
            f"{value:.1f}" for value in np.clip(60 + 40 * dose + 10 * rng.normal(size=n), 0, 120)
        ],
        "dose": [f"{value:.3f}" for value in dose],
        "site": [
            "ab"[k]
            for k in np.where(rng.random(n) < 0.7, stage > 2, rng.integers(0, 2, n)).astype(int)
        ],
    }
    rows = [
        list(cells) for cells in zip(*(columns[name] for name in DOMAINS[kind].names), strict=True)
    ]
    start = {"smoke": "yes", "stage": "4", "age": "7.5", "dose": "-0.875", "site": "b"}
    rows[ROW] = [start[name] for name in DOMAINS[kind].names]
    return rows


def csv_of(kind: str, changed: dict[str, str] | None = None, *, line: str | None = None) -> str:
    """The file with some cells of one row changed, or with that row written in another way."""
    names, rows = DOMAINS[kind].names, rows_of(kind)
    for name, cell in (changed or {}).items():
        rows[ROW][names.index(name)] = cell
    lines = [",".join(cells) for cells in (list(names), *rows)]
    if line is not None:
        lines[1 + ROW] = line
    return "\n".join(lines) + "\n"


# ---- what can be seen


class Outside:
    """Runs commands on a file of one name in one folder, and keeps all that can be seen of them."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._capsys = folder, capsys
        for kind, domain in DOMAINS.items():
            domain.write(folder / f"{kind}.json")
        monkeypatch.chdir(folder)

    def of(
        self,
        words: list[str],
        content: str | bytes | Callable[[Path], None],
        name: str = "data.csv",
    ) -> dict[str, Any]:
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        work = self.folder / "work"
        work.mkdir()
        path = self.folder / name
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._capsys.readouterr()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            code = main(words)
        out, err = self._capsys.readouterr()
        files = {
            str(file.relative_to(work)): file.read_bytes()
            for file in sorted(work.rglob("*"))
            if file.is_file()
        }
        left = sorted(
            file.name for file in self.folder.iterdir() if file.is_file() and file.name != name
        )
        return {
            "code": code,
            "out": out,
            "err": err,
            "warnings": [str(w.message) for w in warned],
            "files": files,
            "left": left,
        }


@pytest.fixture
def outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Outside:
    return Outside(tmp_path, monkeypatch, capsys)


def discover(kind: str, *more: str, name: str = "data.csv") -> list[str]:
    return [
        "discover",
        name,
        "--domain",
        f"{kind}.json",
        "--epsilon",
        "3",
        "--simulated-noise",
        "--seed",
        "4",
        "--out",
        "work/report",
        *more,
    ]


GAUSSIAN = ("--delta", "1e-5")
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "discover, release": (
        "mixed",
        discover("mixed", *GAUSSIAN, "--release-out", "work/bought.npz", "--progress"),
    ),
    "discover, json": ("discrete", discover("discrete", "--json")),
    "discover, svt": (
        "discrete",
        discover("discrete", "--mechanism", "sparse-vector", "--progress"),
    ),
    "discover, fci": ("discrete", discover("discrete", "--algorithm", "fci", *GAUSSIAN, "--quiet")),
    "discover, tree": ("discrete", discover("discrete", "--algorithm", "tree", *GAUSSIAN)),
    "privatize": (
        "mixed",
        (
            "privatize data.csv --domain mixed.json --mechanism krr --epsilon-ldp 40 --bins "
            "4 --simulated-noise --out work/r.csv"
        ).split(),
    ),
    "privatize, geometric": (
        "discrete",
        (
            "privatize data.csv --domain discrete.json --mechanism geometric --p-max 0.6 "
            "--simulated-noise --seed 3 --out work/r.csv --json"
        ).split(),
    ),
    "direction, reci": (
        "mixed",
        (
            "direction data.csv --x age --y dose --method reci --epsilon 4 --bounds 0 120 -1 "
            "1 --simulated-noise --certificate-out work/privacy.json --json"
        ).split(),
    ),
    "direction, anm": (
        "mixed",
        (
            "direction data.csv --x age --y dose --score iqr --epsilon 4 --bounds 0 120 -1 1 "
            "--simulated-noise --certificate-out work/privacy.json"
        ).split(),
    ),
}
# Without bounds from a domain file, a cell without a number is the middle of the bounds.
MIDDLE = {"direction, reci": {"dose": "0"}, "direction, anm": {"dose": "0"}}


def read_as(command: str, name: str, odd: str) -> str:
    value = ODD[name][odd]
    return MIDDLE.get(command, {}).get(name, value) if value == CATCH_ALL[name] else value


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert expected["code"] == 0, expected["err"]
    for part in expected:
        assert found[part] == expected[part], part


CELLS = [(command, name) for command, (kind, _) in COMMANDS.items() for name in DOMAINS[kind].names]


@pytest.mark.parametrize(("command", "name"), CELLS)
def test_an_odd_cell_is_its_catch_all(command: str, name: str, outside: Outside):
    """Each odd cell in turn; every file, both screens, warnings and exit code."""
    kind, words = COMMANDS[command]
    expected: dict[str, dict[str, Any]] = {}
    slow = command in ("discover, release", "discover, svt", "discover, tree", "discover, fci")
    for place, odd in enumerate(ODD[name]):
        if slow and place % 3 == 1:  # a report takes a while
            continue
        value = read_as(command, name, odd)
        if value not in expected:
            expected[value] = outside.of(words, csv_of(kind, {name: value}))
        assert_same(outside.of(words, csv_of(kind, {name: odd})), expected[value])


def test_the_comparison_sees_one_record(outside: Outside):
    """One cell that fits, and the noise being the same: something of every kind of output moves."""
    for command, changed, where in (
        ("discover, release", {"stage": "2"}, "bought.npz"),
        ("privatize", {"smoke": "unknown"}, "r.csv"),
        ("privatize, geometric", {"stage": "1"}, "r.csv"),
    ):
        kind, words = COMMANDS[command]
        first, second = outside.of(words, csv_of(kind)), outside.of(words, csv_of(kind, changed))
        assert first["code"] == second["code"] == 0
        assert first["files"][where] != second["files"][where], command
    kind, words = COMMANDS["direction, reci"]
    assert (
        outside.of(words, csv_of(kind))["out"]
        != outside.of(words, csv_of(kind, {"age": "120"}))["out"]
    )


# The row as it is written, and the cells that it then has.
RAGGED: dict[str, tuple[str, dict[str, str]]] = {
    "two odd cells": ("HIV+,4,old,-0.875", {"smoke": "unknown", "age": "60"}),
    "all cells odd": ("?,?,?,?", dict(CATCH_ALL)),
    "odd in three ways": (
        ",9,1e9,nan",
        {"smoke": "unknown", "stage": "2", "age": "120", "dose": "0.25"},
    ),
    "nothing but commas": (",,,", dict(CATCH_ALL)),
    "too many fields": ("yes,4,7.5,-0.875,extra,9", {}),
    "a comma at the end": ("yes,4,7.5,-0.875,", {}),
    "too many fields, one odd": ("yes,44,7.5,-0.875,extra", {"stage": "2"}),
    "too few fields": ("yes,4", {"age": "60", "dose": "0.25"}),
    "one field": ("yes", {"stage": "2", "age": "60", "dose": "0.25"}),
    "too few, one odd": ("HIV+,4,7.5", {"smoke": "unknown", "dose": "0.25"}),
    "a blank line": ("", dict(CATCH_ALL)),
    "a thousand fields": (",".join(["yes", "4", "7.5", "-0.875", *["1"] * 1000]), {}),
    "a quote that is not closed": ('yes,4,7.5,"-0.875', {}),
    "a quote in the middle": ('y"es,4,7.5,-0.875', {"smoke": "unknown"}),
    "a line break in quotes": ('"yes\n",4,7.5,-0.875', {"smoke": "unknown"}),
    "three line breaks in quotes": ('yes,4,"7\n\n\n5",-0.875', {"age": "60"}),
    "a carriage return": ("yes,4,7.5,-0.875\r", {}),
}


def cells_of(kind: str, changed: dict[str, str]) -> dict[str, str]:
    return {name: cell for name, cell in changed.items() if name in DOMAINS[kind].names}


@pytest.mark.parametrize("command", ["discover, release", "privatize", "direction, reci"])
@pytest.mark.parametrize("how", RAGGED)
def test_an_odd_row_changes_that_row_only(command: str, how: str, outside: Outside):
    kind, words = COMMANDS[command]
    line, changed = RAGGED[how]
    changed = {
        name: MIDDLE.get(command, {}).get(name, cell) if cell == CATCH_ALL[name] else cell
        for name, cell in changed.items()
    }
    expected = outside.of(words, csv_of(kind, cells_of(kind, changed)))
    assert_same(outside.of(words, csv_of(kind, line=line)), expected)


@pytest.mark.parametrize("next_cell", ['",y"', '"y"', '""'], ids=repr)
def test_a_quote_that_is_not_closed_takes_no_other_row(next_cell: str, tmp_path: Path):
    """Whatever the quoted cells after it are: the number of rows is public, and no record may
    change it.
    """
    level = next(csv.reader([next_cell]))[0]
    domain = jaxcd.Domain({"n": jaxcd.Ordinal((1, 2)), "w": jaxcd.Categorical(("x", level))})
    path = tmp_path / "data.csv"

    def codes(first: str) -> list[list[int]]:
        path.write_text(
            "\n".join(["n,w", f"1,{first}", *[f"2,{next_cell}"] * 6]) + "\n", encoding="utf-8"
        )
        return jaxcd.read_csv(path, domain=domain).codes.tolist()

    good = codes("x")
    assert good == [[0, 0], *[[1, 1]] * 6]
    assert codes('"x') == good


def written(record: Sequence[str], others: int, folder: Path) -> Path:
    """A file as csv writers write it, with one record of anything among others."""
    path = folder / "written.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows(
            [["n", "w", "note"], ["1", "x", ""], record, *[["2", "y", 'a, "b"\nc']] * others]
        )
    return path


LONG_RECORDS = {
    "1,001 line breaks": ["1", "x", "1,x,\n" * 1_001],
    "a long cell with a line break": ["1", "x", "x" * 140_000 + "\n1,x,"],
    "a long cell": ["1", "x", "x" * 140_000],
    "too few cells, with a line break": ["x\n1,x,"],
    "too many cells, with a line break": ["1", "x", "x\n1,x,", "more"],
    "a line break at the start": ["1", "x", "\n1,x,"],
    "quotes and line breaks": ["1", "x", '"\n"",\n"\n'],
}
WRITTEN_DOMAIN = jaxcd.Domain(
    {"n": jaxcd.Ordinal((1, 2)), "w": jaxcd.Categorical(("x", "y"))}, ignored={"note": ""}
)


def codes_of_written(record: Sequence[str], others: int, folder: Path) -> list[list[int]]:
    data = jaxcd.read_csv(written(record, others, folder), domain=WRITTEN_DOMAIN)
    codes: list[list[int]] = data.codes.tolist()
    return [*codes[:1], *codes[2:]]


@pytest.mark.parametrize("others", [3, 6_000])  # read carefully, and fast where that may be
@pytest.mark.parametrize("record", LONG_RECORDS.values(), ids=LONG_RECORDS)
def test_a_written_record_is_a_record(record: list[str], others: int, tmp_path: Path):
    """However long it is, and with however many cells."""
    assert codes_of_written(record, others, tmp_path) == [[0, 0], *[[1, 1]] * others]


@given(record=st.lists(st.text(alphabet='1x,"\n\r ', max_size=8), min_size=1, max_size=5))
def test_any_written_record_is_a_record(
    record: list[str], tmp_path_factory: pytest.TempPathFactory
):
    folder = tmp_path_factory.mktemp("written")
    assert codes_of_written(record, 2, folder) == [[0, 0], [1, 1], [1, 1]]


@pytest.mark.parametrize("command", ["privatize", "discover, json", "direction, anm"])
def test_bytes_that_are_no_text(command: str, outside: Outside):
    kind, words = COMMANDS[command]
    name = "age" if kind == "mixed" else "smoke"
    expected = outside.of(words, csv_of(kind, {name: CATCH_ALL[name]}))
    for odd in (b"\xff\xfe", b"\xe9", b"\xc3("):
        content = csv_of(kind, {name: "MARK"}).encode().replace(b"MARK", odd)
        assert_same(outside.of(words, content), expected)


def test_a_compressed_file(outside: Outside):
    words = discover("mixed", *GAUSSIAN, "--release-out", "work/bought.npz", name="data.csv.gz")
    files = [
        gzip.compress(csv_of("mixed", {"age": cell}).encode(), mtime=0) for cell in ("old", "60")
    ]
    assert_same(
        outside.of(words, files[0], "data.csv.gz"), outside.of(words, files[1], "data.csv.gz")
    )


def test_a_file_with_semicolons_and_decimal_commas(outside: Outside):
    words = discover("mixed", *GAUSSIAN, "--release-out", "work/bought.npz")
    cells = ("MARK", "59,9", "60")
    texts = [csv_of("mixed", {"age": cell}).replace(",", ";").replace(".", ",") for cell in cells]
    marked, *read = texts
    seen = [outside.of(words, text.replace("59;9", "59,9")) for text in read]
    assert seen[0] != seen[1]  # 59,9 is a number
    for odd in ("old", "", "5,9,1", "1.0,5", '"6;0"', '"6\n0"', "6;0", '"', "\0", "\r", "6\t0"):
        found = outside.of(words, marked.replace("MARK", odd))
        if odd not in ("6;0", "\r"):  # which move the other cells of the row
            assert_same(found, seen[1])
        else:
            assert found.keys() == seen[1].keys()


@pytest.mark.parametrize("command", ["discover, release", "discover, svt", "direction, reci"])
def test_with_secure_noise_as_well(command: str, outside: Outside, monkeypatch: pytest.MonkeyPatch):
    """The run that will be published: the sampler says that it is secure, and draws from a key."""
    kind, words = COMMANDS[command]
    words = [word for word in words if word != "--simulated-noise"]
    sampler = type(simulated().start())
    monkeypatch.setattr(sampler, "secure", property(lambda self: True))
    monkeypatch.setattr(SecureNoise, "start", lambda self: simulated().start())
    for name, odd in (("age", "old"), ("dose", "inf"), ("stage", "5"), ("smoke", "")):
        if name in DOMAINS[kind].names:
            expected = outside.of(words, csv_of(kind, {name: read_as(command, name, odd)}))
            assert_same(outside.of(words, csv_of(kind, {name: odd})), expected)
            assert "not for release" not in expected["err"]


def test_a_domain_file_says_what_a_direction_reads(outside: Outside):
    """With --domain, a cell without a number is the ``other`` that the file declares, as
    ``jaxcd check`` says.
    """
    words = COMMANDS["direction, reci"][1]
    place = words.index("--bounds")
    words = [*words[:place], "--domain", "mixed.json", *words[place + 5 :]]
    for odd in ("", "none", "nan"):
        expected = outside.of(words, csv_of("mixed", {"dose": "0.25"}))
        assert_same(outside.of(words, csv_of("mixed", {"dose": odd})), expected)


# ---- in Python


def seen(read: Callable[[], jaxcd.Dataset]) -> dict[str, Any]:
    """All that can be seen of reading and of a discovery."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        data = read()
        run = jaxcd.discover(
            data, budget=jaxcd.Budget(3.0, 1e-5), key=jax.random.key(0), noise=simulated(1)
        )
        kind = jaxcd.Features() if "age" in data.names else jaxcd.Histogram()
        bought = jaxcd.release(data, kind, budget=jaxcd.Budget(3.0, 1e-5), noise=simulated(1))
    numbers = {
        name: value.tolist()
        for name, value in vars(bought).items()
        if isinstance(value, np.ndarray)
    }
    return {
        "data": repr(data),
        "run": str(run),
        "graph": graph_json(run),
        "certificate": json.dumps(run.certificate()),
        "warnings": [str(w.message) for w in warned],
        "numbers": numbers,
        "bought": json.dumps(bought.certificate()),
    }


@pytest.mark.parametrize("kind", DOMAINS)
def test_the_same_in_python(kind: str, tmp_path: Path):
    path = tmp_path / "data.csv"

    def read(changed: dict[str, str]) -> Callable[[], jaxcd.Dataset]:
        def reading() -> jaxcd.Dataset:
            path.write_text(csv_of(kind, changed), encoding="utf-8")
            return jaxcd.read_csv(path, domain=DOMAINS[kind])

        return reading

    for name in DOMAINS[kind].names:
        expected: dict[str, dict[str, Any]] = {}
        for odd, value in list(ODD[name].items())[::2]:
            expected.setdefault(value, seen(read({name: value})))
            assert seen(read({name: odd})) == expected[value], (name, odd[:20])
    plain = seen(read({}))
    assert plain["numbers"]
    assert plain["numbers"] != seen(read({DOMAINS[kind].names[1]: "1"}))["numbers"]


def typed(kind: str) -> dict[str, list[Any]]:
    """The columns as a program has them: text, whole numbers, floats."""
    convert = {"stage": int, "age": float, "dose": float}
    rows = rows_of(kind)
    return {
        name: [convert.get(name, str)(row[j]) for row in rows]
        for j, name in enumerate(DOMAINS[kind].names)
    }


def changed_columns(kind: str, name: str, value: Any) -> dict[str, list[Any]]:
    columns = typed(kind)
    columns[name][ROW] = value
    return columns


NAN, INF = float("nan"), float("inf")
# Of typed columns: the column, the odd cell, and what it is read as.
TYPED: list[tuple[str, Any, Any]] = [
    ("smoke", "HIV+", "unknown"),
    ("smoke", None, "unknown"),
    ("smoke", "", "unknown"),
    ("smoke", "x" * 100_000, "unknown"),
    ("smoke", "no\nyes", "unknown"),
    ("stage", 5, 2),
    ("stage", None, 2),
    ("stage", -(2**40), 2),
    ("age", NAN, 60.0),
    ("age", None, 60.0),
    ("age", INF, 120.0),
    ("age", -INF, 0.0),
    ("age", 1e300, 120.0),
    ("age", -0.5, 0.0),
    ("dose", None, 0.25),
    ("dose", NAN, 0.25),
    ("dose", 7.0, 1.0),
]
# Cells that change the type of a whole column of a pandas frame.
UNTYPED: list[tuple[str, Any, Any]] = [
    ("smoke", 3, "unknown"),
    ("smoke", 2.5, "unknown"),
    ("smoke", NAN, "unknown"),
    ("smoke", [1], "unknown"),
    ("smoke", b"no", "unknown"),
    ("stage", "four", 2),
    ("stage", NAN, 2),
    ("stage", 2.5, 2),
    ("stage", 10**30, 2),
    ("age", "old", 60.0),
    ("age", "", 60.0),
    ("age", {"a": 1}, 60.0),
    ("age", 10**400, 120.0),
    ("dose", "x" * 100_000, 0.25),
    ("dose", "inf", 1.0),
    ("dose", (1, 2), 0.25),
]


@pytest.mark.parametrize(
    ("name", "odd", "value"), [*TYPED, *UNTYPED], ids=lambda part: repr(part)[:12]
)
def test_frames_of_pandas(name: str, odd: Any, value: Any):
    """Also where one cell changes the type of its whole column, as whole numbers become floats
    beside a missing one.
    """
    pd = pytest.importorskip("pandas")

    def framed(cell: Any) -> Callable[[], jaxcd.Dataset]:
        return lambda: jaxcd.Dataset.from_frame(
            pd.DataFrame(changed_columns("mixed", name, cell)), domain=MIXED
        )

    assert seen(framed(odd)) == seen(framed(value))


def test_categories_and_nullable_columns_of_pandas():
    pd = pytest.importorskip("pandas")
    good = typed("mixed")

    def framed(name: str, series: Any) -> Callable[[], jaxcd.Dataset]:
        return lambda: jaxcd.Dataset.from_frame(pd.DataFrame({**good, name: series}), domain=MIXED)

    def column(name: str, cell: Any) -> list[Any]:
        return changed_columns("mixed", name, cell)[name]

    expected = seen(framed("smoke", column("smoke", "unknown")))
    for cell in ("HIV+", None):
        assert seen(framed("smoke", pd.Categorical(column("smoke", cell)))) == expected
        assert seen(framed("smoke", pd.Series(column("smoke", cell), dtype="string"))) == expected
    assert seen(framed("stage", pd.Series(column("stage", None), dtype="Int64"))) == seen(
        framed("stage", column("stage", 2))
    )
    assert seen(framed("age", pd.Series(column("age", None), dtype="Float64"))) == seen(
        framed("age", column("age", 60.0))
    )


@pytest.mark.parametrize("as_text", [False, True], ids=["typed", "all text"])
def test_parquet(as_text: bool, outside: Outside):
    """Files of typed columns and of columns of text, by the command."""
    pa = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="parquet files need pyarrow")
    words = discover(
        "mixed", *GAUSSIAN, "--release-out", "work/bought.npz", "--quiet", name="data.parquet"
    )
    types = {"smoke": pa.string(), "stage": pa.int64(), "age": pa.float64(), "dose": pa.float64()}

    def file(name: str, cell: Any) -> Callable[[Path], None]:
        columns = changed_columns("mixed", name, cell)
        if as_text:
            columns = {
                key: [None if value is None else str(value) for value in column]
                for key, column in columns.items()
            }
        schema = {key: pa.string() if as_text else types[key] for key in columns}
        return lambda path: parquet.write_table(
            pa.table({key: pa.array(part, schema[key]) for key, part in columns.items()}), path
        )

    cases = (
        TYPED[::2]
        if not as_text
        else [*TYPED[1::2], ("age", "old", 60.0), ("stage", "four", 2), ("dose", "", 0.25)]
    )
    for name, odd, value in cases:
        expected = outside.of(words, file(name, value), "data.parquet")
        assert_same(outside.of(words, file(name, odd), "data.parquet"), expected)


# ---- for the owner of the data


def check(outside: Outside, kind: str, content: str, *more: str) -> dict[str, Any]:
    return outside.of(["check", "data.csv", "--domain", f"{kind}.json", *more], content)


def test_check_finds_nothing_in_a_good_file(outside: Outside):
    for kind in DOMAINS:
        found = check(outside, kind, csv_of(kind))
        assert (found["code"], found["err"], found["files"]) == (0, "", {})
        assert "every cell fits" in found["out"] and "not private" in found["out"].lower()
        content = json.loads(check(outside, kind, csv_of(kind), "--json")["out"])
        assert content["clean"] is True and content["private"] is False and content["misfits"] == []
        assert content["n_samples"] == N


@pytest.mark.parametrize("name", MIXED.names)
def test_check_names_every_odd_cell(name: str, outside: Outside):
    """Column, row, what is wrong, and what a private run reads; exit code 1."""
    wrong: dict[str, str] = {}
    for odd, value in ODD[name].items():
        found = check(outside, "mixed", csv_of("mixed", {name: odd}))
        assert found["code"] == 1 and found["err"] == "", odd[:20]
        assert found["out"].upper().startswith("NOT PRIVATE")
        lines = [line for line in found["out"].splitlines() if f"column {name!r}" in line]
        assert len(lines) == 1 and re.search(rf"\b1 cell, first in row {ROW + 1}\b", lines[0]), (
            found["out"][:300]
        )
        assert len(found["out"]) < 2000  # also of very long cells
        content = json.loads(check(outside, "mixed", csv_of("mixed", {name: odd}), "--json")["out"])
        assert content["clean"] is False and content["private"] is False
        assert [
            (part["column"], part["n_cells"], part["first_row"]) for part in content["misfits"]
        ] == [(name, 1, ROW + 1)]
        becomes = content["misfits"][0]["becomes"].strip("'")
        if becomes != (value if value == CATCH_ALL[name] else "the nearest bound"):
            wrong[odd[:20]] = becomes
    assert not wrong


@pytest.mark.parametrize(
    "how",
    [
        "too few fields",
        "too many fields",
        "a blank line",
        "a quote that is not closed",
        "two odd cells",
    ],
)
def test_check_names_odd_rows(how: str, outside: Outside):
    found = check(outside, "mixed", csv_of("mixed", line=RAGGED[how][0]))
    assert found["code"] == 1 and re.search(rf"\brow {ROW + 1}\b", found["out"])
    assert "every cell" not in found["out"]


def test_check_is_the_other_side_of_reading(outside: Outside, tmp_path: Path):
    """It finds a file clean if and only if strict reading takes it."""
    path = tmp_path / "strict.csv"
    for cells in (
        {},
        {"age": "120"},
        {"stage": "4.0"},
        *({name: odd} for name in MIXED.names for odd in list(ODD[name])[:5]),
    ):
        path.write_text(csv_of("mixed", cells), encoding="utf-8")
        try:
            jaxcd.read_csv(path, domain=MIXED, strict=True)
            code = 0
        except DataError:
            code = 1
        assert check(outside, "mixed", csv_of("mixed", cells))["code"] == code, cells


@pytest.mark.parametrize("name", ["smoke", "stage", "site"])
def test_without_privacy_the_row_is_named(name: str, outside: Outside):
    words = ["discover", "data.csv", "--domain", "discrete.json", "--no-privacy"]
    assert outside.of(words, csv_of("discrete"))["code"] == 0
    for odd in ODD[name]:
        found = outside.of(words, csv_of("discrete", {name: odd}))
        assert found["code"] == 2 and found["out"] == ""
        assert re.search(rf"\brow {ROW + 1}\b", found["err"]) and found["err"].count("\n") == 1
        assert len(found["err"]) < 1000
    for line in ("yes,4", "yes,4,b,extra", "", 'yes,4,"b'):
        found = outside.of(words, csv_of("discrete", line=line))
        assert found["code"] == 2 and re.search(r"\brow \d+\b", found["err"])


@pytest.mark.parametrize("odd", ["old", "", "nan", '"30\n40"'])
def test_without_privacy_a_direction_names_the_row(odd: str, outside: Outside):
    words = "direction data.csv --x age --y dose --method igci --no-privacy".split()
    assert outside.of(words, csv_of("mixed"))["code"] == 0
    found = outside.of(words, csv_of("mixed", {"age": odd}))
    assert found["code"] == 2 and re.search(rf"'age', row {ROW + 1}\b", found["err"])
    assert found["err"].count("\n") == 1


def test_in_python_strict_reading_names_the_row(tmp_path: Path):
    path = tmp_path / "data.csv"
    for name in MIXED.names:
        for odd in ODD[name]:
            path.write_text(csv_of("mixed", {name: odd}), encoding="utf-8")
            with pytest.raises(DataError, match=rf"\brow {ROW + 1}\b"):
                jaxcd.read_csv(path, domain=MIXED, strict=True)
