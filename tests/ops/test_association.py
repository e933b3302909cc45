"""Statistics of stratified tables against scipy, against pairs, and against all permutations."""

from __future__ import annotations

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2_contingency

from jaxcd.ops.association import chi_square_sums, covariance_sums, kendall_sums
from jaxcd.ops.precision import double_precision
from tests.helpers import chi_square_moments

DTYPES = {"float32": (jnp.float32, 2e-4), "float64": (jnp.float64, 1e-11)}
K, A, B = 4, 4, 5  # one padded shape for all: one compilation for each statistic and dtype


def compute(function, tables: np.ndarray, dtype=jnp.float64):
    """The statistic of tables (..., k, a, b), padded with zeros to (..., K, A, B), as numpy."""
    widths = [(0, 0)] * (tables.ndim - 3) + [
        (0, full - size) for full, size in zip((K, A, B), tables.shape[-3:], strict=True)
    ]
    padded = np.pad(tables, widths)
    with double_precision():
        result = function(jnp.asarray(padded), dtype)
        for value in result:
            assert value.dtype == dtype
        return type(result)(*(np.asarray(value) for value in result))


def strata_tables(largest: int = 40):
    shape = st.tuples(st.integers(1, K), st.integers(1, A), st.integers(1, B))
    cells = st.integers(0, largest) | st.just(0)
    return shape.flatmap(lambda size: arrays(np.int32, size, elements=cells))


def dropped(table: np.ndarray) -> np.ndarray:
    return table[table.sum(1) > 0][:, table.sum(0) > 0]


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=60)
@given(strata_tables())
def test_chi_square_and_g(dtype: str, tables: np.ndarray):
    kind, rtol = DTYPES[dtype]
    result = compute(chi_square_sums, tables, kind)
    chi_square = g = dof = mean = variance = 0.0
    for table in map(dropped, tables):
        moments = chi_square_moments(table) if table.size else (0.0, 0.0)
        mean, variance = mean + moments[0], variance + moments[1]
        if min(table.shape) > 1:
            pearson = chi2_contingency(table, correction=False)
            chi_square, dof = chi_square + pearson.statistic, dof + pearson.dof
            g += chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
    n = float(tables.sum())
    np.testing.assert_allclose(result.chi_square, chi_square, rtol=rtol, atol=rtol * n)
    np.testing.assert_allclose(result.g, g, rtol=rtol, atol=rtol * n)
    np.testing.assert_allclose(result.mean, mean, rtol=10 * rtol, atol=rtol)
    np.testing.assert_allclose(result.variance, variance, rtol=100 * rtol, atol=10 * rtol * n)
    assert result.dof == dof
    assert result.chi_square >= 0 and np.isfinite(result.g)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [((2, 2), (1, 3)), ((1, 2, 2), (3, 2)), ((1, 1, 1), (2, 1)), ((1, 1), (1, 1))],
)
def test_moments_of_chi_square_are_those_of_all_permutations(rows, columns):
    x, y = (np.repeat(np.arange(len(sums)), sums) for sums in (rows, columns))
    tables = np.zeros((math.factorial(len(x)), 1, len(rows), len(columns)), dtype=np.int32)
    for table, order in zip(tables, itertools.permutations(y), strict=True):
        np.add.at(table[0], (x, list(order)), 1)
    result = compute(chi_square_sums, tables)
    np.testing.assert_allclose(result.mean, result.chi_square.mean(), rtol=1e-12)
    np.testing.assert_allclose(result.variance, result.chi_square.var(), rtol=1e-9, atol=1e-12)


def kendall_of_records(table: np.ndarray) -> int:
    """Concordant minus discordant pairs, over all pairs of records."""
    a, b = np.nonzero(table)
    records = np.repeat(np.stack([a, b], 1), table[a, b], axis=0)
    differences = records[:, None] - records[None]
    return int(np.sign(differences[..., 0] * differences[..., 1]).sum()) // 2


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=60)
@given(strata_tables(largest=9))
def test_kendall(dtype: str, tables: np.ndarray):
    kind, rtol = DTYPES[dtype]
    result = compute(kendall_sums, tables, kind)
    s = [kendall_of_records(table) for table in tables]
    sizes = [int(table.sum()) for table in tables]
    np.testing.assert_array_equal(result.concordance[: len(s)], s)
    np.testing.assert_array_equal(result.size[: len(s)], sizes)
    assert not result.concordance[len(s) :].any() and not result.size[len(s) :].any()
    score = sum(
        math.copysign(math.sqrt(n * n + 2 * abs(c)) - n, c) for c, n in zip(s, sizes, strict=True)
    )
    np.testing.assert_allclose(result.square_root, score, rtol=rtol, atol=rtol * (1 + sum(sizes)))
    variance = 0.0
    for table, n in zip(tables, sizes, strict=True):
        if n:
            p, q = table.sum(1) / n, table.sum(0) / n
            variance += n / 9 * (1 - (p**3).sum()) * (1 - (q**3).sum())
    np.testing.assert_allclose(result.variance, variance, rtol=rtol, atol=rtol * (1 + sum(sizes)))


def test_kendall_variance_is_that_of_permutations_up_to_small_strata():
    """V_h is the null variance of S_k / n_k for large strata: exact var(S) with ties, divided by
    n^2, tends to it.
    """
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.75])
    n = 4000
    t, u = (n * p), (n * q)

    def exact(n, t, u):  # Kendall, Rank Correlation Methods, section 4.4
        v0, vt, vu = (float((x * (x - 1) * (2 * x + 5)).sum()) for x in (np.array([n]), t, u))
        second = (
            (t * (t - 1) * (t - 2)).sum()
            * (u * (u - 1) * (u - 2)).sum()
            / (9 * n * (n - 1) * (n - 2))
        )
        first = (t * (t - 1)).sum() * (u * (u - 1)).sum() / (2 * n * (n - 1))
        return (v0 - vt - vu) / 18 + second + first

    table = np.rint(n * np.outer(p, q)).astype(np.int32)[None]
    result = compute(kendall_sums, table)
    np.testing.assert_allclose(result.variance, exact(n, t, u) / n**2, rtol=2e-3)


def test_pair_counts_at_a_million():
    n = 1_000_000
    half = np.array([[[n // 2, 0], [0, n // 2]], [[0, n // 2], [n // 2, 0]]], dtype=np.int32)
    result = compute(kendall_sums, half[:, None])
    np.testing.assert_array_equal(result.concordance[:, 0], [n * n // 4, -n * n // 4])
    np.testing.assert_array_equal(result.size[:, 0], n)
    h = math.sqrt(n * n + n * n / 2) - n
    np.testing.assert_allclose(result.square_root, [h, -h], rtol=1e-12)
    norms = compute(covariance_sums, half[:, None])
    np.testing.assert_allclose(norms.norm, n / 2, rtol=1e-12)  # |C| has four entries n / 4
    chi = compute(chi_square_sums, half[:, None])
    np.testing.assert_allclose(chi.chi_square, n, rtol=1e-12)
    np.testing.assert_allclose(chi.g, 2 * n * math.log(2), rtol=1e-12)
    mixed = compute(kendall_sums, np.array([[[333_333, 1], [7, 666_659]]], dtype=np.int32))
    assert int(mixed.concordance[0]) == 333_333 * 666_659 - 7


def frobenius(tables: np.ndarray) -> tuple[float, float]:
    blocks = [
        t - np.outer(t.sum(1), t.sum(0)) / t.sum() if t.sum() else np.zeros(t.shape)
        for t in tables.astype(np.float64)
    ]
    return math.sqrt(sum((block**2).sum() for block in blocks)), float(np.linalg.norm(sum(blocks)))


def scatter_norms(tables: np.ndarray) -> list[float]:
    """w_k = n_k |Cov_x|_F |Cov_y|_F from the covariance matrices themselves."""
    values = []
    for table in tables.astype(np.float64):
        n = table.sum()
        p, q = (table.sum(1) / n, table.sum(0) / n) if n else (np.zeros(1), np.zeros(1))
        norms = [np.linalg.norm(np.diag(m) - np.outer(m, m)) for m in (p, q)]
        values.append(float(n * norms[0] * norms[1]))
    return values


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=60)
@given(strata_tables())
def test_covariance_norms(dtype: str, tables: np.ndarray):
    kind, rtol = DTYPES[dtype]
    result = compute(covariance_sums, tables, kind)
    norm, pooled = frobenius(tables)
    w = scatter_norms(tables)
    scale = rtol * (1 + math.sqrt(tables.sum())) * (30 if dtype == "float32" else 1)
    np.testing.assert_allclose(result.norm, norm, rtol=rtol, atol=scale)
    np.testing.assert_allclose(result.pooled, pooled, rtol=rtol, atol=scale)
    np.testing.assert_allclose(result.spread, math.hypot(*w), rtol=rtol, atol=scale)
    np.testing.assert_allclose(result.spread_pooled, sum(w), rtol=rtol, atol=scale)
    mean = 0.0
    for table in tables.astype(np.float64):
        n = table.sum()
        if n >= 2:
            mean += (
                (n - (table.sum(1) ** 2).sum() / n) * (n - (table.sum(0) ** 2).sum() / n) / (n - 1)
            )
    np.testing.assert_allclose(result.mean, mean, rtol=rtol, atol=scale)
    assert result.norm <= math.sqrt(len(tables)) * tables.sum()
    assert result.spread <= result.spread_pooled + scale


@pytest.mark.parametrize(
    ("x", "y", "sizes"),
    [
        ([0, 0, 1, 1, 2], [0, 1, 1, 1, 2], [5]),
        ([0, 1, 0, 1, 1, 2, 0], [0, 0, 1, 1, 0, 2, 2], [4, 3]),
        ([0, 1, 1, 0, 1, 2, 1], [1, 0, 0, 1, 2, 2, 0], [1, 2, 4]),
        ([0, 0, 0, 1, 0], [0, 1, 2, 1, 0], [3, 2]),
        ([0, 0, 0, 0], [0, 1, 2, 1], [4]),
    ],
)
def test_mean_is_the_average_over_all_permutations(x, y, sizes):
    """E[G^2] = E[M^2] = V over every rearrangement of y within the strata."""
    starts = np.cumsum([0, *sizes])
    blocks = [range(a, b) for a, b in itertools.pairwise(starts)]
    squares, pooled_squares = [], []
    tables = np.zeros((len(sizes), 3, 3), dtype=np.int32)
    for choice in itertools.product(*(itertools.permutations(block) for block in blocks)):
        tables = np.zeros((len(sizes), 3, 3), dtype=np.int32)
        for k, (block, order) in enumerate(zip(blocks, choice, strict=True)):
            for i, j in zip(block, order, strict=True):
                tables[k, x[i], y[j]] += 1
        norm, pooled = frobenius(tables)
        squares.append(norm**2)
        pooled_squares.append(pooled**2)
    result = compute(covariance_sums, tables)
    np.testing.assert_allclose(np.mean(squares), result.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.mean(pooled_squares), result.mean, rtol=1e-12, atol=1e-12)


def test_spread_is_the_null_variance():
    """Var[G^2] = 2 W^2 and Var[M^2] = 2 W_1^2 for large strata that share their covariances:
    simulated, to 10 %.
    """
    rng = np.random.default_rng(0)
    n, runs = 400, 20_000
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.5])
    tables = (
        rng.multinomial(n, np.outer(p, q).ravel(), (runs, 2))
        .reshape(runs, 2, 3, 2)
        .astype(np.int32)
    )
    result = compute(covariance_sums, tables)
    np.testing.assert_allclose(np.var(result.norm**2), 2 * np.mean(result.spread) ** 2, rtol=0.1)
    np.testing.assert_allclose(
        np.var(result.pooled**2), 2 * np.mean(result.spread_pooled) ** 2, rtol=0.1
    )


@pytest.mark.parametrize("function", [chi_square_sums, covariance_sums, kendall_sums])
@pytest.mark.parametrize("dtype", DTYPES)
def test_total_on_degenerate_tables(function, dtype):
    """Empty tables, one record, two records, constant columns: finite, and zero association."""
    tables = np.zeros((6, K, A, B), dtype=np.int32)
    tables[1, 2, 1, 1] = 1
    tables[2, 0, 0, 0] = 2
    tables[3, 0, 0, :] = [5, 1, 0, 2, 9]
    tables[4, 0, :, 3] = [5, 1, 0, 2]
    tables[5, :, 0, 0] = [1, 1, 1, 1]
    result = compute(function, tables, DTYPES[dtype][0])
    for value in result:
        assert np.isfinite(value).all()
    for name in {"chi_square", "g", "dof", "norm", "pooled", "square_root", "concordance"} & set(
        result._fields
    ):
        np.testing.assert_allclose(getattr(result, name), 0, atol=1e-5)


@pytest.mark.parametrize("function", [chi_square_sums, covariance_sums, kendall_sums])
@settings(max_examples=25)
@given(tables=strata_tables(), seed=st.integers(0, 2**32 - 1))
def test_order_of_strata_does_not_matter(function, tables: np.ndarray, seed: int):
    first = compute(function, tables)
    second = compute(function, tables[np.random.default_rng(seed).permutation(len(tables))])
    for name in first._fields:
        if name not in ("concordance", "size"):
            np.testing.assert_allclose(
                getattr(first, name), getattr(second, name), rtol=1e-11, atol=1e-9
            )


@settings(max_examples=25)
@given(tables=strata_tables())
def test_kendall_is_antisymmetric_and_symmetric(tables: np.ndarray):
    """Reversing the order of one column changes the sign; exchanging the columns nothing."""
    straight, reverse = compute(kendall_sums, tables), compute(kendall_sums, tables[:, ::-1])
    np.testing.assert_allclose(straight.square_root, -reverse.square_root, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(straight.variance, reverse.variance, rtol=1e-11, atol=1e-9)
    if tables.shape[2] <= A:
        swapped = compute(kendall_sums, tables.transpose(0, 2, 1))
        np.testing.assert_allclose(straight.square_root, swapped.square_root, rtol=1e-11, atol=1e-9)
