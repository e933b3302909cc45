"""Contrast moments: an orthonormal basis, the tables they determine, and their exact
sensitivity.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaxcd.ops.moments import contrast_basis, contrast_moments, contrast_sensitivity


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_basis(k: int):
    basis = contrast_basis(k)
    assert basis.shape == (k, k - 1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(k - 1), atol=1e-14)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-14)


def moments_of(codes: np.ndarray, cardinalities: tuple[int, ...]) -> dict:
    """By brute force counts."""
    counts = {}
    d = len(cardinalities)
    for columns in [*((j,) for j in range(d)), *itertools.combinations(range(d), 2)]:
        counts[columns] = np.zeros([cardinalities[j] for j in columns], dtype=np.int64)
        np.add.at(counts[columns], tuple(codes[:, j] for j in columns), 1)
    return contrast_moments(counts)


def features(codes: np.ndarray, cardinalities: tuple[int, ...]) -> list[np.ndarray]:
    return [contrast_basis(k)[codes[:, j]] for j, k in enumerate(cardinalities)]


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple),
    st.integers(1, 60),
    st.integers(0, 2**32 - 1),
)
def test_moments_are_sums_over_records(cardinalities: tuple[int, ...], n: int, seed: int):
    codes = np.random.default_rng(seed).integers(0, cardinalities, (n, len(cardinalities)))
    moments = moments_of(codes, cardinalities)
    phi = features(codes, cardinalities)
    for j in range(len(cardinalities)):
        np.testing.assert_allclose(moments[j,], phi[j].sum(axis=0), atol=1e-10)
    for j, m in itertools.combinations(range(len(cardinalities)), 2):
        np.testing.assert_allclose(moments[j, m], phi[j].T @ phi[m], atol=1e-10)


def test_moments_and_n_determine_every_pair_table():
    rng = np.random.default_rng(3)
    cardinalities = (3, 4)
    codes = rng.integers(0, cardinalities, (200, 2))
    moments = moments_of(codes, cardinalities)
    h, g = contrast_basis(3), contrast_basis(4)
    one, two = np.full((3, 1), 1 / 3), np.full((1, 4), 1 / 4)
    table = (
        h @ moments[0, 1] @ g.T
        + (h @ moments[0,])[:, None] @ two
        + one @ (g @ moments[1,])[None]
        + 200 * one @ two
    )
    expected = np.zeros((3, 4))
    np.add.at(expected, (codes[:, 0], codes[:, 1]), 1)
    np.testing.assert_allclose(table, expected, atol=1e-9)


def over_records(cardinalities: tuple[int, ...], weight: float) -> float:
    """The largest L2 distance between what two records contribute, over all pairs of records."""
    records = np.array(list(itertools.product(*map(range, cardinalities))))
    phi = features(records, cardinalities)
    parts = [weight * f for f in phi]
    for j, m in itertools.combinations(range(len(cardinalities)), 2):
        parts.append((phi[j][:, :, None] * phi[m][:, None, :]).reshape(len(records), -1))
    points = np.concatenate(parts, axis=1)
    return math.sqrt(max(float(((points - point) ** 2).sum(axis=1).max()) for point in points))


@pytest.mark.parametrize("weight", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(
    "cardinalities",
    [
        (2, 2),
        (2, 3),
        (3, 3),
        (2, 2, 2),
        (2, 3, 4),
        (1, 2, 5),
        (2, 2, 3, 3),
        (2, 2, 2, 2, 2, 2),
        (5, 1, 5),
    ],
)
def test_sensitivity_is_attained_by_a_pair_of_records(
    cardinalities: tuple[int, ...], weight: float
):
    value = contrast_sensitivity(cardinalities, weight)
    truth = over_records(cardinalities, weight)
    assert value >= truth * (1 - 1e-12)
    np.testing.assert_allclose(value, truth, rtol=1e-9)


def over_flip_sets(cardinalities: tuple[int, ...], weight: float) -> Fraction:
    """The square by the formula of the specification, exact, over all 2^p sets of changed columns;
    a one-level column cannot change.
    """
    best = Fraction(0)
    free = [j for j, k in enumerate(cardinalities) if k > 1]
    for size in range(len(free) + 1):
        for flipped in itertools.combinations(free, size):
            inside = set(flipped)
            total = 2 * Fraction(weight) ** 2 * size
            for j, m in itertools.combinations(range(len(cardinalities)), 2):
                if j in inside and m in inside:
                    total += 2 * (1 - Fraction(1, cardinalities[j]) - Fraction(1, cardinalities[m]))
                elif j in inside or m in inside:
                    total += 2 * (1 - Fraction(1, cardinalities[m if j in inside else j]))
            best = max(best, total)
    return best


@example((2, 2, 2), 1.0)
@example((7, 3, 2, 2), 0.7)
@settings(max_examples=15)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8).map(tuple), st.floats(0.05, 5))
def test_sensitivity_is_the_maximum_over_flip_sets(cardinalities: tuple[int, ...], weight: float):
    """And rounding never makes it smaller."""
    squared = over_flip_sets(cardinalities, weight)
    value = contrast_sensitivity(cardinalities, weight)
    assert Fraction(value) ** 2 >= squared
    np.testing.assert_allclose(value, math.sqrt(squared), rtol=1e-9, atol=1e-12)


def test_sensitivity_with_many_different_cardinalities_is_a_bound_and_close():
    """Too many kinds to enumerate: still above what greedy search finds, and within a quarter of
    it.
    """
    cardinalities = tuple(range(2, 60))
    value = contrast_sensitivity(cardinalities, 1.0)
    inverse = 1 / np.array(cardinalities)
    pair = 2 * (1 - inverse[:, None] - inverse[None])
    np.fill_diagonal(pair, 0)
    best, rng = 0.0, np.random.default_rng(0)
    for start in range(20):
        flipped = rng.random(len(cardinalities)) < start / 19
        while True:
            # all sets that differ in one column, at once
            near = np.concatenate([[flipped], flipped ^ np.eye(len(cardinalities), dtype=bool)])
            both = np.einsum("ai,ij,aj->a", near, pair, near, optimize=True) / 2
            squared = both + 2 * near.sum(1) * (~near @ (1 - inverse)) + 2 * near.sum(1)
            if squared.argmax() == 0:
                break
            flipped = near[squared.argmax()]
        best = max(best, float(squared[0]))
    assert math.sqrt(best) * (1 - 1e-12) <= value <= 1.25 * math.sqrt(best)


def test_sensitivity_of_known_networks():
    """The table of PRIVACY.md N.7, at mean weight 1."""
    asia = (2,) * 8
    sachs = (3,) * 11
    np.testing.assert_allclose(contrast_sensitivity(asia, 1.0), 5.0, atol=0.06)
    np.testing.assert_allclose(contrast_sensitivity(sachs, 1.0), 8.2, atol=0.06)
