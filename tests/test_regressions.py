"""``benchmarks.regressions``: what counts as a difference, and what the exit status says."""

from __future__ import annotations

import json

import pytest

from benchmarks import regressions
from benchmarks.experiment import Row, read_rows


def row(kind: str, value: float, what: str = "a") -> Row:
    tolerance = regressions.F1_TOLERANCE if kind == "F1" else regressions.RATIO_TOLERANCE
    entries = {"part": "p", "what": what, "kind": kind, "value": value, "tolerance": tolerance}
    return Row(entries)


@pytest.mark.parametrize(
    ("kind", "before", "now", "words"),
    [
        ("F1", 0.8, 0.81, ""),
        ("F1", 0.8, 0.83, "better"),
        ("F1", 0.8, 0.77, "worse"),
        ("ratio", 1.0, 1.9, ""),
        ("ratio", 1.0, 2.1, "slower"),
        ("ratio", 1.0, 0.51, ""),
        ("ratio", 1.0, 0.4, "faster"),
    ],
)
def test_what_differs(kind, before, now, words):
    assert regressions.differs(row(kind, before), row(kind, now)) == words


def test_rows_that_only_one_side_has_differ():
    lines = regressions.compare([row("F1", 0.5, "old")], [row("F1", 0.5, "new")])
    assert [line["differs"] for line in lines] == ["not measured", "not in the committed file"]


def test_the_committed_subset_has_every_part():
    rows = read_rows(regressions.COMMITTED)
    assert {row.part for row in rows} == set(regressions.PARTS)
    assert all(0 <= row.value <= 1 for row in rows if row.kind == "F1")
    assert all(row.value > 0 and row.tolerance == 2 for row in rows if row.kind == "ratio")


def test_the_exit_status(tmp_path, monkeypatch, capsys):
    values = {"value": 0.5}

    def found():
        yield "x", values["value"]

    monkeypatch.setattr(regressions, "PARTS", {"one": ("F1", found)})
    monkeypatch.setattr(regressions, "COMMITTED", tmp_path / "committed.json")
    regressions.main(["--write", "--out", str(tmp_path / "committed.json")])
    assert json.loads((tmp_path / "committed.json").read_text())["results"][0]["value"] == 0.5
    now = ["--out", str(tmp_path / "now.json")]
    regressions.main(now)
    assert "0 of 1 differ" in capsys.readouterr().out
    values["value"] = 0.4
    with pytest.raises(SystemExit) as stop:
        regressions.main(now)
    assert stop.value.code == 1 and "worse" in capsys.readouterr().out


def test_a_ratio_is_that_of_the_work():
    def work(n: int) -> None:
        sum(i * i for i in range(n))

    found = regressions.ratio(lambda: work(400_000), lambda: work(100_000))
    assert found == pytest.approx(4.0, rel=0.5)
