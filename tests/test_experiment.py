"""What benchmarks share: rows, errors, options, tables, and jobs that fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jaxcd
from benchmarks import experiment
from benchmarks.experiment import Column, Experiment, LeftOut, Option, Row, counts, numbers
from tests.helpers import words_of


def test_an_error_has_the_divisor_n_minus_one():
    values = [0.1, 0.4, 0.7, 0.9]
    error = np.std(values, ddof=1) / 2
    assert experiment.standard_error(values) == pytest.approx(error)
    assert experiment.standard_error([0.5]) is None
    assert experiment.means({"f": values}) == {
        "f": pytest.approx(np.mean(values)),
        "f_se": pytest.approx(error),
    }


def test_a_file_that_says_sd_stays_readable():
    values = [0.1, 0.4, 0.7, 0.9]
    error = experiment.standard_error(values)
    old = {"f": np.mean(values), "f_sd": np.std(values)}
    assert Row({**old, "n_runs": 4}).error("f") == pytest.approx(error)
    assert Row({**old, "n_data": 2, "n_draws": 2}).error("f") == pytest.approx(error)
    assert Row({**old, "n_runs": 1}).error("f") is None
    assert Row({"f": 1.0, "f_se": error}).error("f") == error and Row({"f": 1.0}).error("f") is None


@pytest.mark.parametrize("path", sorted(experiment.RESULTS.glob("*.json")), ids=lambda p: p.stem)
def test_every_committed_result_is_readable(path: Path):
    rows = experiment.read_rows(path, "published" if path.stem == "run_time" else "results")
    assert rows
    for row in rows:
        for name in row:
            if name.endswith("_sd"):
                assert row.error(name.removesuffix("_sd")) is None or row.error(name[:-3]) >= 0


def test_rows_stay():
    row = Row({"a": 1})
    with pytest.raises(AttributeError):
        row.a = 2
    with pytest.raises(AttributeError):
        row.b  # noqa: B018
    assert row.a == row["a"] == 1 and row == {"a": 1} and row.like(a=1) and not row.like(a=2)


def made(jobs, **more) -> Experiment:
    return Experiment("some", "Some.", ("case", "x"), jobs, **more)


def test_jobs_run_once_and_failures_are_recorded(tmp_path, capsys):
    ran = []

    def measure(x: int) -> dict:
        ran.append(x)
        if x == 2:
            raise LeftOut("too large")
        if x == 3:
            raise jaxcd.errors.DomainError("no such column")
        return {"f": float(x)}

    def jobs(chosen, record):
        for x in chosen.sizes:
            yield ("c", x), measure, x

    one = made(jobs, columns=(Column("f", "f", ".2f"),), options=(counts("--sizes", "n", [1, 2]),))
    out = tmp_path / "a.json"
    one.main(words_of("--out", out, "--sizes 3 2 1 1"))
    content = json.loads(out.read_text())
    assert ran == [1, 2, 3] and [row["f"] for row in content["results"]] == [1.0]
    reasons = {entry["x"]: entry["reason"] for entry in content["left_out"]}
    assert reasons == {2: "too large", 3: "DomainError: no such column"}
    one.main(words_of("--out", out, "--resume --sizes 1 2"))
    assert ran == [1, 2, 3, 2] and "1.00" in capsys.readouterr().out


def test_a_measure_may_give_several_rows(tmp_path):
    one = made(lambda chosen, record: [(("c",), lambda: [{"x": 1, "f": 0.0}, {"x": 2, "f": 1.0}])])
    one.main(["--out", str(tmp_path / "a.json")])
    rows = experiment.read_rows(tmp_path / "a.json")
    assert [(row.case, row.x, row.f) for row in rows] == [("c", 1, 0.0), ("c", 2, 1.0)]


def test_options_have_a_quick_value():
    one = made(
        lambda chosen, record: [],
        options=(numbers("--epsilon", "e", [2.0, 1.0], [4.0]), Option("--kind", "k", "a")),
    )
    assert (one.parse([]).epsilon, one.parse([]).kind) == ([1.0, 2.0], "a")
    quick = one.parse(["--quick"])
    assert (quick.epsilon, quick.kind, quick.out.name) == ([4.0], "a", "some_quick.json")
    pytest.raises(SystemExit, one.parse, ["--quick", "--full"])


def test_help_shows_a_default_with_a_percent_sign(capsys):
    one = made(lambda chosen, record: [], options=(Option("--table", "t", "binary 1%"),))
    pytest.raises(SystemExit, one.parse, ["--help"])
    assert "t (default: binary 1%)" in capsys.readouterr().out


def test_a_table_shows_errors_and_what_is_not_there():
    columns = (Column("f (se)", "f", ".2f", error=True), Column("x", none="-"))
    rows = [{"f": 0.5, "f_se": 0.1, "x": None}]
    assert columns[0].cell(Row(rows[0])) == "0.50 (0.10)" and columns[1].cell(Row(rows[0])) == "-"
    assert experiment.table_of(rows, columns, "t").row_count == 1
