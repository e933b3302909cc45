"""The covariance within strata that tree-guided PC projects, and how far a record moves a
projection of it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jaxcd
from jaxcd.citests import Query
from jaxcd.decisions.measurements import PROJECTION_SENSITIVITY
from tests.helpers import coded, levelled, numbers

LEVELS = (3, 2, 4, 2)
DOMAIN = levelled(*LEVELS)


def covariance(codes: np.ndarray, x: int, y: int, given: tuple[int, ...]) -> np.ndarray:
    """By definition: the centred one-hot codes of each stratum, multiplied and summed."""
    total = np.zeros((LEVELS[x], LEVELS[y]))
    for stratum in {tuple(row) for row in codes[:, list(given)]}:
        rows = codes[(codes[:, list(given)] == stratum).all(axis=1)]
        a, b = (np.eye(LEVELS[v])[rows[:, v]] for v in (x, y))
        total += (a - a.mean(axis=0)).T @ (b - b.mean(axis=0))
    return total


def prepared(codes: np.ndarray):
    return jaxcd.CovarianceNorm().prepare(coded(codes, DOMAIN))


@pytest.mark.parametrize("seed", range(3))
def test_by_definition(seed):
    codes = np.random.default_rng(seed).integers(0, LEVELS, (50, 4))
    queries = [
        Query.of(x, y, s)
        for x, y in itertools.combinations(range(4), 2)
        for s in ((), *_others(x, y))
    ]
    found = prepared(codes).pooled_covariances(queries)
    for query, matrix in zip(queries, found, strict=True):
        np.testing.assert_allclose(matrix, covariance(codes, *query), atol=1e-12)


def _others(x: int, y: int) -> list[tuple[int, ...]]:
    rest = [v for v in range(4) if v not in (x, y)]
    return [(rest[0],), (rest[1],), tuple(rest)]


def test_a_replaced_record_moves_every_projection_by_at_most_4():
    """The largest <U, C' - C> over |U|_F <= 1 is |C' - C|_F; data sets of few rows, so that strata
    are born and die.
    """
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(3_000):
        codes = rng.integers(0, LEVELS, (rng.integers(2, 9), 4))
        other = codes.copy()
        other[0] = rng.integers(0, LEVELS)
        moved = covariance(other, 0, 2, (1,)) - covariance(codes, 0, 2, (1,))
        worst = max(worst, float(np.linalg.norm(moved)))
    assert 1.0 < worst <= PROJECTION_SENSITIVITY


def test_the_bound_is_nearly_reached():
    """Two large strata of equal rows: the record leaves one as its only exception, and enters the
    other as its only exception.
    """
    n = 400
    codes = np.zeros((2 * n, 4), dtype=np.int64)
    codes[n:, [0, 1]] = 1
    codes[0, [0, 2]] = 1
    other = codes.copy()
    other[0] = (0, 1, 1, 0)
    moved = covariance(other, 0, 2, (1,)) - covariance(codes, 0, 2, (1,))
    assert 3.98 < np.linalg.norm(moved) <= PROJECTION_SENSITIVITY


def test_numeric_columns_go_by_their_codes():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 3))
    domain = numbers("abc")
    test = jaxcd.StratifiedRanks().prepare(jaxcd.Dataset.from_array(values, domain=domain))
    ((matrix),) = test.pooled_covariances([Query.of(0, 1, (2,))])
    assert matrix.shape == (4, 4)
    np.testing.assert_allclose(matrix.sum(axis=0), 0, atol=1e-9)
