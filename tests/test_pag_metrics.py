"""Metrics of PAGs against hand counts and against counting over edges."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.metrics import MarkConfusion, mark_confusion, mark_f1, shd, skeleton_f1, summary
from tests.helpers import refused

NAMES = ("a", "b", "c", "d", "e")
MARKS = (Mark.NONE, Mark.CIRCLE, Mark.ARROW, Mark.TAIL)


@st.composite
def graphs(draw: st.DrawFn) -> MixedGraph:
    marks = np.zeros((5, 5), dtype=int)
    ends = st.just((0, 0)) | st.tuples(st.integers(1, 3), st.integers(1, 3))
    for i, j in itertools.combinations(range(5), 2):
        marks[i, j], marks[j, i] = draw(ends)
    return MixedGraph(NAMES, marks)


def test_hand_count() -> None:
    truth = MixedGraph.from_edges(NAMES, ["a o-> b", "b <-> c", "c --> d", "d --- e", "a o-o e"])
    estimate = MixedGraph.from_edges(NAMES, ["b <-o a", "c <-> b", "d --> c", "d o-o e", "a --> c"])
    score = mark_f1(estimate, truth)
    assert (score.true_positives, score.n_estimated, score.n_true) == (2, 5, 5)
    assert skeleton_f1(estimate, truth).true_positives == 4
    table = mark_confusion(estimate, truth)
    assert table.counts == (
        (20 - 10 - 2, 0, 1, 1),  # a, c: a tail and an arrowhead where there is no edge
        (2, 1, 0, 0),  # both ends of a o-o e are missing; the circle of a o-> b is right
        (0, 0, 3, 1),  # b of a o-> b, both of b <-> c; d of c --> d
        (0, 2, 1, 0),  # both of d --- e; c of c --> d
    )
    assert table.count(true=Mark.TAIL, estimated=Mark.CIRCLE) == 2
    arrows = table.f1(Mark.ARROW)
    assert (arrows.true_positives, arrows.n_estimated, arrows.n_true) == (3, 5, 4)


@pytest.mark.parametrize("symbol", ["o-o", "o->", "-->", "<->", "---", "--o", "o--", "<--", "<-o"])
def test_an_edge_is_right_only_if_both_marks_are(symbol: str) -> None:
    truth = MixedGraph.from_edges(["a", "b"], [f"a {symbol} b"])
    right = [
        other
        for other in ("o-o", "o->", "-->", "<->", "---", "--o", "o--", "<--", "<-o")
        if mark_f1(MixedGraph.from_edges(["a", "b"], [f"a {other} b"]), truth) == 1.0
    ]
    assert right == [symbol]


@settings(max_examples=60)
@given(graphs(), graphs(), st.permutations(range(5)))
def test_counts_agree_with_edges(estimate: MixedGraph, truth: MixedGraph, order: list[int]) -> None:
    score = mark_f1(estimate, truth)
    common = set(estimate.edges()) & set(truth.edges())
    assert (score.true_positives, score.n_estimated, score.n_true) == (
        len(common),
        estimate.n_edges,
        truth.n_edges,
    )
    assert score <= skeleton_f1(estimate, truth)
    assert (score == 1.0) == (shd(estimate, truth) == 0)
    swapped = mark_f1(truth, estimate)
    assert swapped == score and (swapped.precision, swapped.recall) == (
        score.recall,
        score.precision,
    )

    expected: Counter[tuple[Mark, Mark]] = Counter()
    for a, b in itertools.permutations(NAMES, 2):
        ends = [
            Mark.NONE if (edge := graph.edge(a, b)) is None else edge.mark_b
            for graph in (truth, estimate)
        ]
        expected[ends[0], ends[1]] += 1
    table = mark_confusion(estimate, truth)
    for true, estimated in itertools.product(MARKS, repeat=2):
        assert table.count(true=true, estimated=estimated) == expected[true, estimated]
    assert (
        np.array(mark_confusion(truth, estimate).counts).T.tolist()
        == np.array(table.counts).tolist()
    )
    shuffled = estimate.permuted(order)
    assert (mark_f1(shuffled, truth), mark_confusion(shuffled, truth)) == (score, table)
    for mark in MARKS:
        own = table.f1(mark)
        row = sum(expected[mark, other] for other in MARKS)
        column = sum(expected[other, mark] for other in MARKS)
        assert (own.true_positives, own.n_estimated, own.n_true) == (
            expected[mark, mark],
            column,
            row,
        )


def test_edge_cases() -> None:
    empty, full = MixedGraph.empty(NAMES), MixedGraph.complete_undirected(NAMES)
    assert mark_f1(empty, empty) == mark_f1(full, full) == 1.0
    assert mark_f1(empty, full) == mark_f1(full, empty) == 0.0
    assert mark_confusion(MixedGraph.empty([]), MixedGraph.empty([])).counts == ((0,) * 4,) * 4
    assert mark_confusion(full, empty).count(true=Mark.NONE, estimated=Mark.TAIL) == 20
    for metric in (mark_f1, mark_confusion):
        refused(
            GraphError, "same names", metric, empty, MixedGraph.empty(["a", "b", "c", "d", "z"])
        )
    assert set(summary(full, empty)) == {"skeleton_f1", "orientation_f1", "arc_f1", "shd"}


def test_table() -> None:
    truth = MixedGraph.from_edges(["a", "b", "c"], ["a o-> b", "b <-> c"])
    table = mark_confusion(MixedGraph.from_edges(["a", "b", "c"], ["a --> b"]), truth)
    rows = [line.split() for line in str(table).splitlines()]
    assert rows[0] == ["true", "\\", "estimated", "none", "circle", "arrowhead", "tail"]
    assert [[row[0], *map(int, row[1:])] for row in rows[1:]] == [
        ["none", 2, 0, 0, 0],
        ["circle", 0, 0, 0, 1],
        ["arrowhead", 2, 0, 1, 0],
        ["tail", 0, 0, 0, 0],
    ]
    assert len({len(line) for line in str(table).splitlines()}) == 1
    wide = MarkConfusion(((10**12, 0, 0, 0), *((0,) * 4,) * 3))
    assert str(10**12) in str(wide) and len({len(line) for line in str(wide).splitlines()}) == 1
    assert table == MarkConfusion(table.counts) and hash(table) == hash(MarkConfusion(table.counts))
    with pytest.raises(AttributeError):
        table.counts = ()  # type: ignore[misc]
    for counts in ((), ((0,) * 3,) * 4, ((-1, 0, 0, 0), *((0,) * 4,) * 3), ((0.5,) * 4,) * 4):
        refused(OptionError, "four rows of four", MarkConfusion, counts)
