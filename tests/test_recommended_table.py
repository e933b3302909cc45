"""``jaxcd/advice/recommended.json`` is what the script makes of the committed results, and supports
the rules that stand on it.
"""

from __future__ import annotations

import itertools
import json
import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import model_noise, recommending_table
from benchmarks.experiment import RESULTS, read_rows
from jaxcd.advice import discrete_rules, limits


@pytest.fixture(scope="module")
def committed() -> dict:
    return json.loads(recommending_table.TABLE.read_text("utf-8"))


def test_the_script_writes_the_committed_file(committed):
    content = recommending_table.table(RESULTS / "recommending.json")
    assert content == committed
    assert recommending_table.text(content) == recommending_table.TABLE.read_text("utf-8")


def test_the_limits_are_those_of_the_rules(committed):
    assert limits.LIMITS == committed["limits"]
    assert dict(limits.HIDDEN) == committed["limits"]["hidden_share"]
    assert committed["limits"]["least_rows_times_epsilon"] == limits.LEAST_COUNT
    assert "by hand" in committed["limits"]["source"]


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


def test_a_model_is_recommended_where_it_finds_more(committed):
    """What the rule takes finds more than either release would everywhere, in each class."""
    rows = read_rows(RESULTS / "model_noise.json")
    fewest = 0
    for most, limit in committed["limits"]["model_noise"]:
        own = model_noise.gains([row for row in rows if fewest < row["n_columns"] <= most])
        taken = sum(gain for noise, gain in own if noise >= limit)
        assert len(own) >= 12 and taken >= max(0.0, sum(gain for _, gain in own))
        fewest = most
    assert discrete_rules._MODEL_NOISE == committed["limits"]["model_noise"]


@given(
    st.lists(
        st.tuples(st.floats(0.01, 1), st.floats(-1, 1)),
        min_size=2,
        max_size=12,
        unique_by=lambda cell: round(cell[0], 2),
    )
)
def test_the_best_limit_beats_every_other(cells):
    def gained(limit):
        return sum(gain for noise, gain in cells if noise >= limit)

    ordered = sorted(noise for noise, _ in cells)
    best = model_noise.best_limit(cells)
    others = [math.sqrt(a * b) for a, b in itertools.pairwise(ordered)]
    nearest = min(others, key=lambda limit: abs(limit - best))
    assert best == pytest.approx(nearest, rel=0.06)
    assert gained(nearest) == pytest.approx(max(map(gained, others)))


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
