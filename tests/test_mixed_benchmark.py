"""The benchmark of mixed columns: its models have the graphs that they state, and it runs."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import jaxcd
from benchmarks import mixed
from tests.helpers import words_of


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_data_are_those_of_the_model(seed: int) -> None:
    model = mixed.MixedModel.draw(8, seed)
    data, cut = model.sample(2_000), model.sample(2_000, bins=6)
    assert data.names == cut.names == model.cpdag().names
    for node, k in model.levels.items():
        if k:
            assert np.array_equal(data.column(node), cut.column(node)) and set(
                data.column(node)
            ) <= set(range(k))
        else:
            values = data.values(node)
            assert np.abs(values).max() <= mixed.REACH and np.array_equal(
                cut.column(node), np.minimum((values + 6) // 2, 5)
            )


def test_roots_are_independent_and_children_are_not() -> None:
    dag = nx.DiGraph([("a", "c"), ("b", "c")])
    model = mixed.MixedModel(dag, {"a": 3, "b": 0, "c": 0}, seed=4)
    data = model.sample(5_000)
    a, b, c = data.column("a"), data.values("b"), data.values("c")
    groups = [b[a == level] for level in range(3)]
    assert stats.kruskal(*groups).pvalue > 1e-3
    assert (
        stats.kruskal(*(c[a == level] for level in range(3))).pvalue < 1e-20
        and stats.kstest(b, "norm").pvalue > 1e-3
    )
    assert model.cpdag() == jaxcd.MixedGraph.from_edges("a b c".split(), ["a --> c", "b --> c"])


def test_main(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mixed.json"
    mixed.main(words_of("--quick --nodes 4 --sizes 2000 --out", out))
    rows = json.loads(out.read_text())["results"]
    assert [(row["method"], row["epsilon"]) for row in rows] == [
        ("Features", 1.0),
        ("Features", None),
        ("Discretised", 1.0),
        ("6 bins", 1.0),
    ]
    assert all(
        0 <= row["arc_f1"] <= 1 and 0 <= row["skeleton_f1"] <= 1 and row["n_models"] == 2
        for row in rows
    )
    assert "no privacy" in capsys.readouterr().out
