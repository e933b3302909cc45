"""Searches by score beside other packages: what is compared is the same, and what is missing is
named.
"""

from __future__ import annotations

import json

import pytest

import jaxcd
from benchmarks import search_peers
from jaxcd import networks


@pytest.fixture(scope="module")
def found() -> list[search_peers.Match]:
    return list(search_peers.matches([4], 400, [("asia", networks.load("asia"))]))


def test_a_row_holds_both_searches_on_the_same_data_and_score(found):
    seen = []

    def theirs(data: jaxcd.Dataset) -> jaxcd.MixedGraph:
        seen.append(data)
        return jaxcd.MixedGraph.from_edges(data.names, [])

    match = found[0]
    row = search_peers.measure(
        search_peers.Match(match.case, "GES", match.ours, "GES", "numpy", theirs), 1
    )
    assert seen == [match.case.data] and match.case.data.n_samples == 400
    assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["seconds"])
    assert row["score_difference"] >= 0  # the graph without edges is in the class that was searched
    edges = match.case.truth.to_networkx().to_undirected().number_of_edges()
    assert row["peer_shd"] == edges and row["shd"] <= edges


def test_a_graph_without_a_dag_has_no_score(found):
    case = found[0].case
    names = case.data.names
    cycle = jaxcd.MixedGraph.from_edges(
        names,
        [f"{names[0]} --> {names[1]}", f"{names[1]} --> {names[2]}", f"{names[2]} --> {names[0]}"],
    )
    assert search_peers._score_of(case, cycle) is None


def test_peers_that_are_not_installed_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(search_peers.importlib.util, "find_spec", lambda name: None)
    search_peers.main(["--quick", "--out", str(tmp_path / "peers.json")])
    shown = capsys.readouterr().out
    assert "pip install causal-learn" in shown and "pip install pgmpy" in shown
    assert json.loads((tmp_path / "peers.json").read_text())["results"] == []
