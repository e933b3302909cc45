"""The benchmarks run, in their quick forms made tiny, and write what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import common, priv_pc, run_time


@pytest.fixture(scope="module")
def private_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    out = tmp_path_factory.mktemp("results") / "deep" / "priv_pc.json"
    tiny = ["--rows", "300", "--runs", "1", "--networks", "cancer", "--epsilon", "2", "--per-round", "1"]
    priv_pc.main(["--quick", *tiny, "--out", str(out)])
    return json.loads(out.read_text()), out


def test_private_rows(private_rows):
    content, out = private_rows
    rows = {row["method"]: row for row in content["results"]}
    assert set(rows) == {m.label for m in (*priv_pc.NON_PRIVATE, *priv_pc.PUBLISHED, *priv_pc.PRIVATE)}
    for method in priv_pc.PRIVATE:
        assert rows[method.label]["total_epsilon"] == 2 and rows[method.label]["proven"]
        assert rows[method.label]["n_tests"] is None  # sensitive
    for method in priv_pc.PUBLISHED:
        assert rows[method.label]["total_epsilon"] > 2 and not rows[method.label]["proven"]
    for method in priv_pc.NON_PRIVATE:
        assert rows[method.label]["arc_f1_non_private"] == 1 and rows[method.label]["n_tests"] > 0
    for row in rows.values():
        assert all(0 <= row[name] <= 1 for name in ("arc_f1", "arc_f1_non_private", "skeleton_f1", "exhausted"))
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_results_say_where_they_come_from(private_rows):
    environment = private_rows[0]["environment"]
    assert {"date", "commit", "device", "n_cores", "versions"} <= set(environment)
    assert private_rows[0]["settings"]["rows"] == 300


def test_run_times(tmp_path, capsys):
    out = tmp_path / "run_time.json"
    run_time.main(["--quick", "--rows", "300", "--runs", "2", "--networks", "cancer", "--out", str(out)])
    content = json.loads(out.read_text())
    for row in content["published"]:
        assert len(row["timing"]["runs"]) == 2 and row["timing"]["minimum"] <= row["timing"]["median"]
        assert row["ratio"] is None  # the reference has 100,000 rows
    (chi_square,) = content["non_private_chi_square"]
    assert chi_square["cells"] >= 40 and chi_square["compilations"] >= 1
    assert [row["depth"] for row in content["counting_core"]["depths"]] == [2, 3, 4]
    assert "cancer" in capsys.readouterr().out


def test_timing_is_apart_from_compilation():
    timing = common.Timing(5.0, (1.0, 3.0, 2.0), (0.5, 0.5, 0.5))
    assert (timing.compilation, timing.minimum, timing.median) == (4.0, 1.0, 2.0)


def test_a_missing_network_file_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit, match="sachs"):
        common.load_networks(["sachs"], tmp_path)
    assert "alarm" not in common.load_networks(None, tmp_path) and "alarm is left out" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--runs", "0"], ["--epsilon", "nan"], ["--epsilon", "-1"], ["--networks", "nowhere"]])
def test_wrong_options(wrong):
    with pytest.raises(SystemExit) as stop:
        priv_pc.main(wrong)
    assert stop.value.code == 2
