"""Adjustment sets of every MAG and every PAG on up to five nodes, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jaxcd.graphs import Adjustment, MixedGraph
from tests.discovery.pag_reference import TAIL, agreement, classes
from tests.graphs.every_mag import every_mag, questions

NAMES = tuple("abcde")


def check(marks: np.ndarray, valid: np.ndarray) -> None:
    """The sets of the graph are those that are valid."""
    n = len(marks)
    graph, by_pair = MixedGraph(NAMES[:n], marks), {}
    for (x, y, given), good in zip(questions(n), valid, strict=True):
        by_pair.setdefault((x, y), set())
        if good:
            by_pair[x, y].add(tuple(NAMES[v] for v in given))
    for (x, y), truth in by_pair.items():
        question = Adjustment(graph, NAMES[x], NAMES[y], is_latent=True)
        assert set(question.sets(minimal=False)) == truth, (str(graph), x, y)
        assert question.exists == bool(truth)


@pytest.mark.parametrize("n", [3, 4])
def test_classes_are_those_of_the_reference(n: int) -> None:
    """Another enumeration, by paths: the same PAGs, each once up to names."""

    def least(marks: np.ndarray) -> bytes:
        orders = map(list, itertools.permutations(range(n)))
        return min(marks[np.ix_(order, order)].tobytes() for order in orders)

    truth = set()
    for members in classes(n):
        own = np.array(members, dtype=np.int8)
        plain = own[~((own == TAIL) & (own.swapaxes(1, 2) == TAIL)).any(axis=(1, 2))]
        if len(plain):
            truth.add((least(np.array(agreement(plain.tolist()), dtype=np.int8)), len(plain)))
    found = every_mag(n)
    assert {(least(p), size) for p, size in zip(found.pags, found.sizes, strict=True)} == truth
    assert len(found.pags) == len(truth)


@pytest.mark.parametrize("n", [2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_every_pag(n: int) -> None:
    found = every_mag(n)
    for marks, valid in zip(found.pags, found.valid_in_all, strict=True):
        check(marks, valid)
    assert len(found.pags) == {2: 2, 3: 5, 4: 25, 5: 313}[n]


@pytest.mark.parametrize("n", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_every_mag(n: int) -> None:
    found = every_mag(n)
    some = slice(None, None, 5 if n == 5 else 1)  # all 3,268 take a minute
    for marks, valid in zip(found.marks[some], found.valid[some], strict=True):
        check(marks, valid)
    assert len(found.marks) == {3: 14, 4: 142, 5: 3268}[n]
