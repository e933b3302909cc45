"""Continuous Kendall concordance against all pairs and against scipy."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from jaxcd.ops.concordance import _sums, concordance
from tests.helpers import SEEDS


def over_pairs(x: np.ndarray, y: np.ndarray) -> int:
    return int((np.sign(x[:, None] - x[None]) * np.sign(y[:, None] - y[None])).sum()) // 2


def cubes(values: np.ndarray) -> float:
    return (
        float(((np.unique(values, return_counts=True)[1] / len(values)) ** 3).sum())
        if len(values)
        else 0.0
    )


@st.composite
def samples(draw):
    n = draw(st.integers(1, 40) | st.integers(250, 262))  # programs of 256 and of 512 rows
    rng = np.random.default_rng(draw(SEEDS))
    distinct = draw(st.sampled_from([1, 2, 5, 1000]))
    x, y = rng.integers(0, distinct, (2, n)) * draw(st.sampled_from([1.0, 1e-9, 1e300]))
    n_strata = draw(st.integers(1, 4) | st.integers(62, 66))
    return x - draw(st.sampled_from([0.0, 1.0])), y, rng.integers(0, n_strata, n), n_strata


@settings(max_examples=30)
@given(samples())
def test_concordance_is_that_of_pairs(sample):
    x, y, stratum, n_strata = sample
    result = concordance(x, y, stratum, n_strata)
    assert result.concordance.shape == result.size.shape == (n_strata,)
    for k in range(n_strata):
        inside = stratum == k
        assert result.concordance[k] == over_pairs(x[inside], y[inside])
        assert result.size[k] == inside.sum()
        np.testing.assert_allclose(result.cubes_x[k], cubes(x[inside]), rtol=1e-12)
        np.testing.assert_allclose(result.cubes_y[k], cubes(y[inside]), rtol=1e-12)


def test_few_numbers_of_rows_share_a_program():
    """A program takes a second to compile."""
    rng = np.random.default_rng(0)
    before = _sums._cache_size()
    for n, n_strata in ((300, 1), (301, 1), (511, 1), (300, 2), (512, 3), (400, 64)):
        concordance(*rng.normal(size=(2, n)), rng.integers(0, n_strata, n), n_strata)
    assert _sums._cache_size() <= before + 2


@settings(max_examples=30)
@given(st.integers(2, 60) | st.integers(257, 300), st.integers(2, 50), SEEDS)
def test_relation_to_scipy(n: int, distinct: int, seed: int):
    """tau-b = S / sqrt((n0 - ties in x)(n0 - ties in y)); tau-c = 2 S m / (n^2 (m - 1))."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, distinct, n).astype(np.float64)
    y = np.where(rng.random(n) < 0.5, x, rng.integers(0, distinct, n)).astype(np.float64)
    s = concordance(x, y).concordance[0]
    assert s == over_pairs(x, y)
    ties = [sum(c * (c - 1) / 2 for c in np.unique(v, return_counts=True)[1]) for v in (x, y)]
    total = n * (n - 1) / 2
    m = min(len(np.unique(x)), len(np.unique(y)))
    if m > 1:
        tau_b = kendalltau(x, y, variant="b").statistic
        tau_c = kendalltau(x, y, variant="c").statistic
        np.testing.assert_allclose(
            s / math.sqrt((total - ties[0]) * (total - ties[1])), tau_b, atol=1e-12
        )
        np.testing.assert_allclose(2 * s * m / (n**2 * (m - 1)), tau_c, atol=1e-12)
    else:
        assert s == 0


def test_values_that_single_precision_cannot_tell_apart():
    x = 1 + np.arange(8) * 1e-12
    assert concordance(x, x).concordance[0] == 28
    assert concordance(x, x[::-1].copy()).concordance[0] == -28
    tiny = np.array([0.0, 5e-324, 1e-310, 1e-300])
    assert concordance(tiny, np.arange(4.0)).concordance[0] == 6


def test_whole_numbers_that_floats_cannot_tell_apart():
    x = 2**60 + np.arange(50)
    y = np.arange(50)
    for wide in (x, -x, x.astype(np.uint64) * 8):
        sign = 1 if wide[-1] > wide[0] else -1
        part = concordance(wide, y)
        assert part.concordance == sign * 50 * 49 / 2 and part.cubes_x == 1 / 50**2
        assert concordance(y, wide).concordance == part.concordance


def test_signed_zeros_are_ties():
    assert concordance(np.array([0.0, -0.0]), np.array([1.0, 2.0])).concordance[0] == 0
    assert concordance(np.array([1.0, 2.0]), np.array([-0.0, 0.0])).concordance[0] == 0


def test_pair_counts_beyond_int32():
    n, rng = 1_000_000, np.random.default_rng(1)
    order = rng.permutation(n)
    x = np.arange(n, dtype=np.float64)
    # the halves in the wrong order: n/2 * n/2 discordant pairs, all others concordant
    y = np.concatenate([np.arange(n // 2, n), np.arange(n // 2)]).astype(np.float64)
    assert concordance(x[order], y[order]).concordance[0] == n * (n - 1) // 2 - 2 * (n // 2) * (
        n - n // 2
    )


def test_single_row_and_empty_strata():
    result = concordance(np.array([1.0]), np.array([2.0]), np.array([2]), 4)
    np.testing.assert_array_equal(result.concordance, 0)
    np.testing.assert_array_equal(result.size, [0, 0, 1, 0])
    np.testing.assert_array_equal(result.cubes_x, [0, 0, 1, 0])
