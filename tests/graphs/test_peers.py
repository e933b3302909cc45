"""Exports to DoWhy, pgmpy and causal-learn; the last two where they are installed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import (
    MixedGraph,
    from_causal_learn,
    peers,
    to_causal_learn_graph,
    to_dowhy,
    to_pgmpy,
)

DAG = MixedGraph.from_edges(list("cab"), ["a --> b", "b --> c"])
CPDAG = MixedGraph.from_edges(list("abc"), ["a --> c", "b --- a"])
PAG = MixedGraph.from_edges(list("abc"), ["a o-> c", "b <-> a"])


def test_dowhy_gets_a_plain_graph() -> None:
    found = to_dowhy(DAG)
    assert type(found) is nx.DiGraph and list(found.nodes) == list("cab")
    assert set(found.edges) == {("a", "b"), ("b", "c")}
    with pytest.raises(GraphError, match="directed"):
        to_dowhy(CPDAG)


def test_pgmpy() -> None:
    with pytest.raises(GraphError, match="pgmpy has no edge"):
        to_pgmpy(PAG)
    pytest.importorskip("pgmpy.base")
    assert set(to_pgmpy(DAG).edges()) == {("a", "b"), ("b", "c")}
    found = to_pgmpy(CPDAG)
    assert set(found.directed_edges) == {("a", "c")}
    assert {frozenset(edge) for edge in found.undirected_edges} == {frozenset("ab")}


def test_causal_learn() -> None:
    pytest.importorskip("causallearn")
    for graph in (DAG, CPDAG, PAG):
        found = to_causal_learn_graph(graph)
        names = [node.get_name() for node in found.get_nodes()]
        assert from_causal_learn(np.array(found.graph), names=names) == graph


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise ImportError(f"no {name}")

    monkeypatch.setattr(peers.importlib, "import_module", none)
    with pytest.raises(OptionError, match="pip install pgmpy"):
        to_pgmpy(DAG)
    with pytest.raises(OptionError, match="pip install causal-learn"):
        to_causal_learn_graph(DAG)
