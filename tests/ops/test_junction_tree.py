"""Junction trees: margins, log Z and rows against the joint table."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.ops.junction_tree import JunctionTree, elimination_cliques

CASES = st.integers(1, 6).flatmap(
    lambda d: st.tuples(
        st.tuples(*[st.integers(1, 3)] * d),
        st.lists(
            st.sets(st.integers(0, d - 1), min_size=1, max_size=3).map(lambda s: tuple(sorted(s))),
            max_size=6,
        ),
        st.integers(0, 1000),
    )
)


def joint_of(tree: JunctionTree, potentials: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The normalised product, one axis a column, and log Z."""
    d = len(tree.cardinalities)
    total = np.zeros(tree.cardinalities)
    for clique, values in zip(tree.cliques, potentials, strict=True):
        total = total + values.reshape(
            [tree.cardinalities[j] if j in clique else 1 for j in range(d)]
        )
    z = np.exp(total).sum()
    return np.exp(total) / z, math.log(z)


def drawn(tree: JunctionTree, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [2 * rng.normal(size=tree.shape(place)) for place in range(len(tree.cliques))]


@given(CASES)
def test_margins_of_pairs_are_those_of_the_joint_table(case):
    levels, sets, seed = case
    tree = JunctionTree(levels, sets)
    potentials = drawn(tree, seed)
    joint, _ = joint_of(tree, potentials)
    found = tree.pair_margins(tree.calibrate(potentials)[1])
    ends = np.cumsum([0, *levels])
    for i, j in itertools.product(range(len(levels)), repeat=2):
        block = found[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
        kept = joint.sum(axis=tuple(v for v in range(len(levels)) if v not in (i, j)))
        expected = np.diag(kept) if i == j else kept if i < j else kept.T
        np.testing.assert_allclose(block, expected, atol=1e-12)


@given(CASES)
def test_margins_are_those_of_the_joint_table(case):
    levels, sets, seed = case
    tree = JunctionTree(levels, sets)
    potentials = drawn(tree, seed)
    joint, log_z = joint_of(tree, potentials)
    found, margins = tree.calibrate(potentials)
    assert found == pytest.approx(log_z, abs=1e-9)
    for clique, margin in zip(tree.cliques, margins, strict=True):
        others = tuple(j for j in range(len(levels)) if j not in clique)
        np.testing.assert_allclose(margin, joint.sum(axis=others), atol=1e-12)
    for columns in sets:
        assert set(columns) <= set(tree.cliques[tree.home(columns)])


@given(CASES)
def test_cliques_are_maximal_and_the_tree_runs(case):
    levels, sets, _ = case
    tree = JunctionTree(levels, sets)
    for a, b in itertools.permutations(tree.cliques, 2):
        assert not set(a) <= set(b)
    assert set(itertools.chain.from_iterable(tree.cliques)) == set(range(len(levels)))
    graph = nx.Graph()
    graph.add_nodes_from(range(len(tree.cliques)))
    graph.add_edges_from((c, p) for c, p in enumerate(tree._parents) if p >= 0)
    assert nx.is_forest(graph)
    for j in range(len(levels)):  # running intersection
        holding = [place for place, clique in enumerate(tree.cliques) if j in clique]
        assert nx.is_connected(graph.subgraph(holding))
    triangulated = nx.Graph()
    triangulated.add_nodes_from(range(len(levels)))
    for clique in tree.cliques:
        triangulated.add_edges_from(itertools.combinations(clique, 2))
    assert nx.is_chordal(triangulated)


def test_rows_have_the_joint_table():
    levels = (2, 3, 2, 2)
    tree = JunctionTree(levels, [(0, 1), (1, 2), (0, 2), (2, 3)])
    potentials = drawn(tree, 3)
    joint, _ = joint_of(tree, potentials)
    n = 400_000
    rows = tree.sample(tree.calibrate(potentials)[1], n, np.random.default_rng(0))
    found = np.zeros(levels)
    np.add.at(found, tuple(rows.T), 1)
    # At most multinomial scatter; a clique's own margin hardly scatters at all.
    assert np.all(np.abs(found - n * joint) < 5 * np.sqrt(n * joint) + 5)
    first = tree.cliques[0]
    others = tuple(j for j in range(4) if j not in first)
    assert np.abs(found.sum(axis=others) - n * joint.sum(axis=others)).max() <= 1 + 1e-6


def test_what_a_clique_ranks_rows_by_leaves_no_trace():
    """Columns that are independent given one between them stay so in the rows."""
    tree = JunctionTree((2, 2, 2), [(0, 1), (1, 2)])
    strong = np.log(np.array([[0.9, 0.1], [0.1, 0.9]]))
    n = 200_000
    rows = tree.sample(tree.calibrate([strong, strong])[1], n, np.random.default_rng(1))
    for level in (0, 1):
        inside = rows[rows[:, 1] == level]
        table = np.zeros((2, 2))
        np.add.at(table, (inside[:, 0], inside[:, 2]), 1)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        assert float(((table - expected) ** 2 / expected).sum()) < 20


def test_a_chain_stays_small():
    chain = [(j, j + 1) for j in range(300)]
    assert max(map(len, elimination_cliques((2,) * 301, chain))) == 2
    with pytest.raises(KeyError):
        JunctionTree((2,) * 3, [(0, 1)]).home((0, 2))
