"""Metrics against hand counts and against counting over lists of edges."""

from __future__ import annotations

import copy
import itertools
import json
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.metrics import F1Score, arc_f1, orientation_f1, shd, skeleton_f1, summary
from tests.helpers import refused

NAMES = ("a", "b", "c", "d")


@st.composite
def graphs(draw: st.DrawFn) -> MixedGraph:
    marks = np.zeros((4, 4), dtype=int)
    ends = st.sampled_from([(0, 0), (2, 3), (3, 2), (3, 3), (2, 2), (2, 1), (1, 1), (3, 1)])
    for i, j in itertools.combinations(range(4), 2):
        marks[i, j], marks[j, i] = draw(ends)
    return MixedGraph(NAMES, marks)


def test_hand_count() -> None:
    truth = MixedGraph.from_edges(NAMES, ["a --> b", "c --> b", "c --- d"])
    estimate = MixedGraph.from_edges(NAMES, ["a --> b", "b --- c", "a <-> d"])
    skeleton = skeleton_f1(estimate, truth)
    assert (skeleton.true_positives, skeleton.n_estimated, skeleton.n_true) == (2, 3, 3)
    assert skeleton == pytest.approx(2 / 3) == skeleton.precision == skeleton.recall
    orientation = orientation_f1(estimate, truth)
    assert (orientation.true_positives, orientation.n_estimated, orientation.n_true) == (1, 1, 2)
    assert (orientation.precision, orientation.recall) == (
        1.0,
        0.5,
    ) and orientation == pytest.approx(2 / 3)
    # Arcs, truth: ab cb cd dc; estimate: ab bc cb ad da.
    arcs = arc_f1(estimate, truth)
    assert (arcs.true_positives, arcs.n_estimated, arcs.n_true) == (2, 5, 4)
    assert arcs == pytest.approx(4 / 9)
    assert shd(estimate, truth) == 3
    assert summary(estimate, truth) == {
        "skeleton_f1": skeleton,
        "orientation_f1": orientation,
        "arc_f1": arcs,
        "shd": 3,
    }


@given(graphs(), graphs())
def test_counts_agree_with_lists_of_edges(estimate: MixedGraph, truth: MixedGraph) -> None:
    def arcs(graph: MixedGraph) -> set[tuple[str, str]]:
        result = set()
        for edge in graph.edges():
            result.add((edge.a, edge.b))
            if edge.symbol not in ("-->", "o->"):
                result.add((edge.b, edge.a))
        return result

    def directed(graph: MixedGraph) -> set[tuple[str, str]]:
        return {(edge.a, edge.b) for edge in graph.edges() if edge.symbol == "-->"}

    def pairs(graph: MixedGraph) -> set[frozenset[str]]:
        return {frozenset((edge.a, edge.b)) for edge in graph.edges()}

    for metric, items in ((arc_f1, arcs), (orientation_f1, directed), (skeleton_f1, pairs)):
        score, left, right = metric(estimate, truth), items(estimate), items(truth)
        assert (score.true_positives, score.n_estimated, score.n_true) == (
            len(left & right),
            len(left),
            len(right),
        )
    pairs_of_names = list(itertools.combinations(NAMES, 2))
    assert shd(estimate, truth) == sum(
        estimate.edge(a, b) != truth.edge(a, b) for a, b in pairs_of_names
    )


@given(graphs(), graphs(), graphs(), st.permutations(range(4)))
def test_symmetries(one: MixedGraph, two: MixedGraph, three: MixedGraph, order: list[int]) -> None:
    for metric in (skeleton_f1, orientation_f1, arc_f1):
        score, swapped = metric(one, two), metric(two, one)
        assert score == swapped and (score.precision, score.recall) == (
            swapped.recall,
            swapped.precision,
        )
        assert metric(one, one) == metric(one.permuted(order), one) == 1.0
        assert metric(one.permuted(order), two) == score
    assert shd(one, two) == shd(two, one) == shd(one.permuted(order), two)
    assert (shd(one, two) == 0) == (one == two)
    assert shd(one, three) <= shd(one, two) + shd(two, three)


def test_empty_graphs() -> None:
    empty, full = MixedGraph.empty(NAMES), MixedGraph.complete_undirected(NAMES)
    for metric in (skeleton_f1, arc_f1):
        both, nothing, everything = metric(empty, empty), metric(empty, full), metric(full, empty)
        assert (both, both.precision, both.recall) == (1.0, 1.0, 1.0)
        assert (nothing, nothing.precision, nothing.recall) == (0.0, 0.0, 0.0)
        assert (everything, everything.precision, everything.recall) == (0.0, 0.0, 0.0)
    assert orientation_f1(empty, full) == 1.0
    assert shd(empty, full) == 6


def test_different_names_are_refused() -> None:
    one, two = MixedGraph.empty(["a", "b"]), MixedGraph.empty(["a", "z"])
    for metric in (skeleton_f1, orientation_f1, arc_f1, shd, summary):
        refused(GraphError, r"lacks \['z'\].*lacks \['b'\]", metric, one, two)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_f1_is_the_harmonic_mean(true_positives: int, wrong: int, missed: int) -> None:
    score = F1Score(true_positives, true_positives + wrong, true_positives + missed)
    if true_positives:
        assert score == pytest.approx(2 / (1 / score.precision + 1 / score.recall))
    else:
        assert score == float(wrong == missed == 0)


def test_f1_is_a_frozen_float() -> None:
    score = F1Score(1, 2, 4)
    assert isinstance(score, float) and f"{score:.2f}" == "0.33"
    assert np.mean([score, score]) == score
    assert json.dumps(score) == str(score) == repr(2 / 6)
    assert repr(score) == f"F1Score({2 / 6!r}, precision=0.5, recall=0.25)"
    for duplicate in (pickle.loads(pickle.dumps(score)), copy.deepcopy(score)):
        assert (duplicate, duplicate.precision, duplicate.recall) == (score, 0.5, 0.25)
    for name in ("precision", "_counts", "other"):
        pytest.raises(AttributeError, setattr, score, name, 1.0)
    for counts in ((-1, 1, 1), (2, 1, 3), (2, 3, 1)):
        pytest.raises(OptionError, F1Score, *counts)


def test_graphs_of_another_kind():
    graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
    for metric in (skeleton_f1, orientation_f1, arc_f1, shd):
        with pytest.raises(GraphError, match="estimate: a DiGraph is not a MixedGraph"):
            metric(nx.DiGraph([("a", "b")]), graph)
        with pytest.raises(GraphError, match="truth: a DiGraph is not a MixedGraph"):
            metric(graph, nx.DiGraph([("a", "b")]))
