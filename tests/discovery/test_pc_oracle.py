"""With the oracle PC returns the CPDAG itself: random graphs, all networks, any order of the
columns.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph, d_separated, dag_to_cpdag, random_dag
from tests.helpers import PLAIN, SEEDS, sampled

NETWORKS = ("cancer", "earthquake", "asia", "survey", "sachs", "child", "alarm")


def oracle_pc(dag: nx.DiGraph, **options) -> jaxcd.DiscoveryResult:
    return jaxcd.pc(None, test=jaxcd.Oracle(dag), **PLAIN, **options)


def equivalence_class(dag: nx.DiGraph) -> MixedGraph:
    """The CPDAG by its definition: every orientation of the skeleton that is acyclic with the same
    v-structures.
    """
    nodes = list(dag.nodes)
    edges = list(dag.edges)

    def v_structures(graph: nx.DiGraph) -> set:
        return {
            (frozenset(pair), child)
            for child in nodes
            for pair in itertools.combinations(sorted(graph.predecessors(child)), 2)
            if not dag.has_edge(*pair) and not dag.has_edge(*pair[::-1])
        }

    target = v_structures(dag)
    marks = np.zeros((len(nodes), len(nodes)), dtype=int)
    position = {node: i for i, node in enumerate(nodes)}
    arrows = np.zeros_like(marks)
    for flips in itertools.product((False, True), repeat=len(edges)):
        member = nx.DiGraph()
        member.add_nodes_from(nodes)
        member.add_edges_from(
            (b, a) if flip else (a, b) for (a, b), flip in zip(edges, flips, strict=True)
        )
        if nx.is_directed_acyclic_graph(member) and v_structures(member) == target:
            for a, b in member.edges:
                arrows[position[a], position[b]] += 1
    for a, b in edges:
        i, j = position[a], position[b]
        marks[i, j] = 2 if arrows[i, j] and not arrows[j, i] else 3
        marks[j, i] = 2 if arrows[j, i] and not arrows[i, j] else 3
    return MixedGraph(tuple(map(str, nodes)), marks)


@settings(max_examples=25)
@given(
    st.integers(2, 5),
    st.floats(0, 1),
    SEEDS,
    st.booleans(),
    st.sampled_from(jaxcd.discovery.ColliderRule),
)
def test_small_graphs_by_definition(
    n: int, density: float, seed: int, stable: bool, rule: jaxcd.discovery.ColliderRule
):
    dag = random_dag(n, expected_degree=density * (n - 1), seed=seed)
    assert oracle_pc(dag, stable=stable, colliders=rule).graph == equivalence_class(dag)


@settings(max_examples=30)
@given(
    st.integers(2, 10),
    st.floats(0, 0.8),
    SEEDS,
    st.booleans(),
    st.sampled_from(jaxcd.discovery.ConflictRule),
)
def test_random_graphs(
    n: int, density: float, seed: int, stable: bool, conflicts: jaxcd.discovery.ConflictRule
):
    dag = random_dag(n, expected_degree=density * (n - 1), seed=seed)
    result = oracle_pc(dag, stable=stable, conflicts=conflicts)
    assert result.graph == dag_to_cpdag(dag)
    assert not result.exhausted
    for pair, separating_set in result.separating_sets.items():
        a, b = pair
        assert d_separated(dag, a, b, separating_set)
        assert not result.graph.adjacent(a, b)
    assert len(result.separating_sets) == n * (n - 1) // 2 - result.graph.n_edges


@pytest.mark.parametrize("block", range(8))
def test_three_hundred_seeded_graphs(block: int):
    rng = np.random.default_rng(block)
    for i in range(40):
        n = int(rng.integers(2, 11))
        dag = random_dag(n, expected_degree=float(rng.uniform(0, min(n - 1, 4))), seed=rng)
        order = [f"x{j}" for j in rng.permutation(n)]
        permuted = nx.DiGraph()
        permuted.add_nodes_from(order)
        permuted.add_edges_from(dag.edges)
        truth = dag_to_cpdag(dag)
        assert oracle_pc(permuted, stable=i % 4 > 0).graph.reordered(truth.names) == truth


def network(name: str, folder: Path) -> jaxcd.data.BayesianNetwork:
    return jaxcd.networks.read_bif(folder / "networks" / f"{name}.bif")


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, data_folder: Path):
    source = network(name, data_folder)
    truth = source.cpdag()
    for stable in (True, False):
        result = oracle_pc(source.dag, stable=stable)
        assert result.graph == truth
        assert result.graph.names == tuple(source.names)
    names = [
        source.names[j] for j in np.random.default_rng(len(name)).permutation(len(source.names))
    ]
    permuted = nx.DiGraph()
    permuted.add_nodes_from(names)
    permuted.add_edges_from(source.dag.edges)
    assert oracle_pc(permuted).graph.reordered(truth.names) == truth


def test_level_records_and_max_level():
    dag = jaxcd.networks.load("asia").dag
    seen = []
    result = oracle_pc(dag, progress=seen.append)
    assert [record.level for record in seen] == list(range(len(seen)))
    assert tuple(seen) == tuple(result.info["levels"])
    assert sum(record.n_separated for record in seen) == len(result.separating_sets)
    flat = oracle_pc(dag, max_level=0)
    assert all(separating_set == () for separating_set in flat.separating_sets.values())
    marginal = {
        frozenset((a, b))
        for a, b in itertools.combinations(dag.nodes, 2)
        if nx.is_d_separator(dag, {a}, {b}, set())
    }
    assert set(flat.separating_sets) == marginal


def test_latent_nodes_are_not_columns():
    dag = nx.DiGraph([("hidden", "a"), ("hidden", "b"), ("b", "c")])
    result = jaxcd.pc(None, test=jaxcd.Oracle(dag, latent=("hidden",)), **PLAIN)
    assert result.graph.names == ("a", "b", "c")
    assert result.graph.adjacent("a", "b") and not result.graph.adjacent("a", "c")


def test_oracle_with_data_or_without_is_told_apart():
    dag = jaxcd.networks.load("cancer").dag
    data = sampled("cancer", 50)
    pytest.raises(OptionError, jaxcd.pc, data, test=jaxcd.Oracle(dag), **PLAIN)
    pytest.raises(OptionError, jaxcd.pc, None, test=jaxcd.ChiSquare(), **PLAIN)
    with pytest.raises(GraphError):
        oracle_pc(nx.DiGraph([("a", "b"), ("b", "a")]))
