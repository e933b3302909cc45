"""``jaxcd/advice/recommended.json`` is what the script makes of the committed results, and supports
the rules that stand on it.
"""

from __future__ import annotations

import json
from statistics import fmean

import pytest

from benchmarks import recommending_table
from benchmarks.experiment import RESULTS
from jaxcd.advice import recommending


@pytest.fixture(scope="module")
def committed() -> dict:
    return json.loads(recommending_table.TABLE.read_text("utf-8"))


def test_the_script_writes_the_committed_file(committed):
    content = recommending_table.table(RESULTS / "recommending.json")
    assert content == committed
    assert recommending_table.text(content) == recommending_table.TABLE.read_text("utf-8")


def test_the_limits_are_those_of_the_rules(committed):
    limits = committed["limits"]
    assert dict(recommending._HIDDEN) == limits["hidden_share"]
    assert recommending._LEAST_COUNT == limits["least_rows_times_epsilon"]
    assert "by hand" in limits["source"]


@pytest.mark.parametrize(
    ("name", "chosen", "others"),
    [
        ("small discrete domains", "Histogram", ["Marginals"]),
        ("large discrete domains", "Marginals", ["tree-guided PC", "PC by levels"]),
        ("linear relations", "SecondMoments", ["tree-guided PC"]),
        ("numeric beside nominal columns", "Features", ["6 bins"]),
    ],
)
def test_the_method_of_a_rule_finds_more_on_average(committed, name, chosen, others):
    one = committed["tables"][name]
    assert (RESULTS / one["source"].split()[0].rsplit("/", 1)[1].rstrip(",")).is_file()
    for other in others:
        pairs = [(row.get(chosen), row.get(other)) for row in one["rows"]]
        both = [pair for pair in pairs if None not in pair]
        assert len(both) >= 8
        assert fmean(a for a, _ in both) > fmean(b for _, b in both)


def test_every_table_has_rows_and_a_source(committed):
    assert set(committed["tables"]) >= {"numeric columns", "numeric beside nominal columns"}
    for one in committed["tables"].values():
        assert one["rows"] and one["source"].startswith("benchmarks/results/")
    assert all(entry["what"] and entry["why"] for entry in committed["not_reproduced"])


def test_a_small_measurement_makes_a_table_beside_it(tmp_path, monkeypatch):
    few = {name: recommending_table.METHODS[name] for name in ("SecondMoments",)}
    monkeypatch.setattr(recommending_table, "METHODS", few)
    out = tmp_path / "recommending.json"
    before = recommending_table.TABLE.read_bytes()
    recommending_table.main(
        ["--measure", "--quick", "--sizes", "400", "--models", "1", "--out", str(out)]
    )
    (table,) = (
        one
        for name, one in json.loads((tmp_path / "recommended.json").read_text())["tables"].items()
        if name == "numeric columns"
    )
    assert [row["n_samples"] for row in table["rows"]] == [400] * 3
    assert all(0 <= row["SecondMoments"] <= 1 for row in table["rows"])
    assert recommending_table.TABLE.read_bytes() == before
