"""Spearman's rank products against scipy and against their definition; the cube-root score;
totality.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxcd.ops import double_precision, spearman


def doubled_ranks(values: np.ndarray) -> np.ndarray:
    return np.sign(values[:, None] - values[None, :]).sum(axis=1)


def by_definition(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    a, b = doubled_ranks(x), doubled_ranks(y)
    return float(a @ b), float(a @ a), float(b @ b)


@pytest.mark.parametrize("n_values", [2, 5, 1000])
def test_rho_is_scipys(n_values: int):
    rng = np.random.default_rng(n_values)
    for n in (3, 10, 257):
        x, y = rng.integers(0, n_values, (2, n)).astype(float)
        y = y + (rng.random(n) < 0.5) * x
        if np.ptp(x) and np.ptp(y):
            assert spearman.spearman_rho(x, y) == pytest.approx(
                stats.spearmanr(x, y).statistic, abs=1e-12
            )


def test_rho_by_the_formula_of_squared_differences():
    x, y = (np.random.default_rng(0).permutation(40).astype(float) for _ in range(2))
    y[:10] = np.sort(y[:10])
    squared = np.sum((stats.rankdata(x) - stats.rankdata(y)) ** 2)
    assert spearman.spearman_rho(x, y) == pytest.approx(1 - 6 * squared / (40**3 - 40), abs=1e-13)
    assert spearman.spearman_rho(x, np.exp(x)) == 1.0 and spearman.spearman_rho(x, -x) == -1.0


def test_rho_is_total():
    x = np.arange(5.0)
    for a, b in ((x, np.ones(5)), (np.ones(5), np.ones(5)), (x[:1], x[:1]), (x[:0], x[:0])):
        assert spearman.spearman_rho(a, b) == 0.0


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 8), st.integers(0, 10**6))
def test_products_within_strata(n: int, n_strata: int, n_values: int, seed: int):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, n_values, (2, n)) / 3
    stratum = rng.integers(0, n_strata, n)
    sums = spearman.rank_products(x, y, stratum, n_strata + 1)  # the last stratum is empty
    for k in range(n_strata + 1):
        product, squares_x, squares_y = by_definition(x[stratum == k], y[stratum == k])
        assert sums.size[k] == np.sum(stratum == k)
        assert (sums.product[k], sums.squares_x[k], sums.squares_y[k]) == (
            product,
            squares_x,
            squares_y,
        )


def test_columns_and_tables_agree_and_padding_changes_nothing():
    rng = np.random.default_rng(5)
    shape = (3, 4, 5)
    rows = np.stack([rng.integers(0, k, 300) for k in shape], axis=1)
    rows[:, 2] = np.where(rng.random(300) < 0.4, rows[:, 1], rows[:, 2])
    table = np.zeros((4, 6, 5), dtype=np.int32)
    np.add.at(table, tuple(rows.T), 1)
    part = spearman.rank_products(rows[:, 1].astype(float), rows[:, 2].astype(float), rows[:, 0], 4)
    with double_precision():
        sums = spearman.spearman_sums(table)
        score = spearman.cube_root_score(part.size, part.product)
        np.testing.assert_array_equal(sums.product, part.product)
        np.testing.assert_allclose(sums.cube_root, np.sum(score), rtol=1e-13)
        variance = np.sum(part.squares_x * part.squares_y / np.maximum(part.size, 1) ** 5)
        np.testing.assert_allclose(sums.variance, variance, rtol=1e-13)
        ties = [[np.mean(c == v) ** 3 for v in range(5)] for c in (rows[:, 1], rows[:, 2])]
        one = np.zeros((1, 6, 5), dtype=np.int32)
        np.add.at(one[0], tuple(rows[:, 1:].T), 1)
        np.testing.assert_allclose(
            spearman.spearman_sums(one).variance,
            300 / 9 * (1 - sum(ties[0])) * (1 - sum(ties[1])),
            rtol=1e-12,
        )


def test_the_score_does_not_cancel():
    for n, product in ((10, 3.0), (10**6, 7.0), (10**6, 3e17), (1, 0.0), (0, 0.0), (50, -2000.0)):
        with double_precision():
            score = float(spearman.cube_root_score(np.float64(n), np.float64(product)))
        cube = n**3 + 3 * abs(product)
        exact = math.copysign(cube ** (1 / 3) - n, product) if product else 0.0
        assert score == pytest.approx(exact, rel=1e-9, abs=1e-9)
        if n == 10**6 and product == 7.0:
            assert score == pytest.approx(7e-12, rel=1e-9)


def test_variance_is_that_of_permutations():
    """E has variance sum a^2 sum b^2 / (n - 1) over all pairings: all 720 of six rows, with
    ties.
    """
    import itertools

    x, y = np.array([0, 0, 1, 2, 2, 3.0]), np.array([0, 1, 1, 2, 3, 4.0])
    products = [
        spearman.rank_products(x, y[list(order)]).product[0]
        for order in itertools.permutations(range(6))
    ]
    sums = spearman.rank_products(x, y)
    assert np.mean(products) == pytest.approx(0, abs=1e-12)
    assert np.var(products) == pytest.approx(sums.squares_x[0] * sums.squares_y[0] / 5)


def test_sums_are_exact_beyond_the_doubles():
    n = 300_000
    x = np.arange(n)
    sums = spearman.rank_products(x, x)
    assert int(sums.product[0]) == int(float((n**3 - n) // 3))
