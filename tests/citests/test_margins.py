"""Statistic, log p-value and margin of every test, from the raw rows by independent means."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.citests import (
    ChiSquare,
    CITest,
    CovarianceNorm,
    Evaluation,
    FisherZ,
    GTest,
    KendallTau,
    Oracle,
    PooledCovariance,
    Query,
    Spearman,
)
from jaxcd.errors import DomainError, OptionError
from tests.catalogue import TABLE_TESTS, TESTS
from tests.helpers import SEEDS, chi_square_moments, levelled, numbers, refused

LEVELS = (2, 3, 2, 4)
DOMAIN = levelled(*LEVELS)
QUERIES = (Query(0, 1), Query(1, 3, (0,)), Query(0, 2, (1, 3)), Query(1, 2))
ALPHAS = st.sampled_from([0.001, 0.01, 0.05, 0.2, 0.5, 0.9])


def dataset(seed: int, n: int = 300) -> jaxcd.Dataset:
    """Dependent, skewed columns."""
    rng = np.random.default_rng(seed)
    common = rng.random(n)
    share = rng.random(4) * 0.7
    columns = [
        np.minimum(
            (k * np.where(rng.random(n) < s, common, rng.random(n) ** 2)).astype(np.int32), k - 1
        )
        for k, s in zip(LEVELS, share, strict=True)
    ]
    return jaxcd.Dataset.from_codes(np.stack(columns, 1), domain=DOMAIN)


def one(
    test: CITest, data: jaxcd.Dataset, query: Query, alpha: float
) -> tuple[float, float, float]:
    prepared = test.prepare(data)
    result = prepared.evaluate(prepared.bucket(query), [query], alpha=alpha)
    assert isinstance(result, Evaluation)
    for value in result:
        assert value.shape == (1,) and value.dtype == np.float64
    return float(result.statistic[0]), float(result.log_pvalue[0]), float(result.margin[0])


def strata(codes: np.ndarray, query: Query) -> list[np.ndarray]:
    """The two columns of each stratum that has records."""
    keys = [tuple(row) for row in codes[:, list(query.given)]]
    groups: dict[tuple, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return [codes[np.ix_(rows, [query.x, query.y])].astype(np.int64) for rows in groups.values()]


def table(block: np.ndarray) -> np.ndarray:
    return stats.contingency.crosstab(block[:, 0], block[:, 1]).count.astype(np.float64)


def chi_square_tail(tables: list[np.ndarray]) -> mpmath.mpf:
    """The p-value that the docstring of ChiSquare states, cell by cell."""
    moments = [chi_square_moments(t.astype(int)) for t in tables]
    mean, variance = map(math.fsum, zip(*moments, strict=True))
    cells = [
        (float(e), float(o))
        for t in tables
        for e, o in zip(stats.contingency.expected_freq(t).flat, t.flat, strict=True)
    ]
    # The least E that add up to .1 at most, cells of one E together.
    sums = {e: math.fsum(other for other, _ in cells if other <= e * (1 + 1e-9)) for e, _ in cells}
    rare = [(e, o) for e, o in cells if sums[e] <= 0.1]
    variance = max(variance - math.fsum(1 / e for e, _ in rare), min(variance, 2 * mean))

    def tail(at: float) -> mpmath.mpf:
        half = mpmath.mpf(mean) ** 2 / variance
        return mpmath.gammainc(half, a=max(at, 0) * mpmath.mpf(mean) / variance, regularized=True)

    def add(of: list[tuple[float, float]]) -> float:
        return math.fsum((o - e) ** 2 / e for e, o in of)

    value = add(cells)
    p = tail(value) + sum(e * tail(value - 1 / e) for e, _ in rare)
    return min(p, 10 * tail(value - add([(e, o) for e, o in rare if o])), mpmath.mpf(1))


@pytest.mark.parametrize(("test", "power"), [(ChiSquare(), "pearson"), (GTest(), "log-likelihood")])
@settings(max_examples=15)
# One stratum is [[21, 2], [1, 0]]: a cell is expected to hold 1 / 12 of a record.
@example(seed=114304638, alpha=0.001, query=Query(0, 2, (1, 3)))
@given(seed=SEEDS, alpha=ALPHAS, query=st.sampled_from(QUERIES))
def test_chi_square_and_g(test: CITest, power: str, seed: int, alpha: float, query: Query):
    data = dataset(seed)
    statistic, log_pvalue, margin = one(test, data, query, alpha)
    tables = [table(block) for block in strata(data.codes, query)]
    parts = [
        stats.chi2_contingency(t, correction=False, lambda_=power)
        for t in tables
        if min(t.shape) > 1
    ]
    expected, dof = sum(p.statistic for p in parts), sum(p.dof for p in parts)
    assert statistic == pytest.approx(expected, rel=1e-9, abs=1e-9)
    with mpmath.workdps(40):
        if dof and isinstance(test, ChiSquare):
            exact = mpmath.log(chi_square_tail(tables))
        elif dof:
            half, at = mpmath.mpf(dof) / 2, mpmath.mpf(expected) / 2
            exact = mpmath.log(mpmath.gammainc(half, a=at, regularized=True))
    assert log_pvalue == pytest.approx(float(exact) if dof else 0, rel=1e-8, abs=1e-8)
    assert margin == pytest.approx(math.log(alpha) - log_pvalue, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("levels", [(2, 2, 20), (3, 3, 64), (5, 5, 100)])
def test_chi_square_keeps_its_level_with_few_rows_a_stratum(levels: tuple[int, int, int]):
    """Eight rows a stratum, of uneven columns: the usual law rejects up to .3 of true nulls."""
    rng = np.random.default_rng(sum(levels))
    domain, runs, n = levelled(*levels), 400, 8 * levels[2]
    rejected = 0
    for _ in range(runs):
        z = rng.choice(levels[2], size=n, p=rng.dirichlet(np.ones(levels[2])))
        ends = [
            (rng.random((n, 1)) > rng.dirichlet(np.ones(k), size=levels[2])[z].cumsum(1)).sum(1)
            for k in levels[:2]
        ]
        codes = np.stack(
            [*(np.minimum(x, k - 1) for x, k in zip(ends, levels, strict=False)), z], 1
        )
        data = jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)
        rejected += one(ChiSquare(), data, Query(0, 1, (2,)), 0.05)[1] < math.log(0.05)
    assert stats.binomtest(rejected, runs, 0.05).pvalue > 1e-3


@pytest.mark.parametrize("rows", [1, 3, 10])
@pytest.mark.parametrize("shift", [0.0, 0.07])
def test_chi_square_where_few_rows_hold_a_level_of_each_column(rows: int, shift: float):
    """Most of the variance is that of a record in one cell, which is seldom there."""
    rng = np.random.default_rng(rows)
    domain, runs, n = levelled(3, 3, 8), 200, 10_000
    rejected = 0
    for _ in range(runs):
        x, y, z = rng.integers(2, size=n), rng.integers(2, size=n), rng.integers(8, size=n)
        y = np.where((rng.random(n) < shift) & (z > 0), x, y)
        x[rng.choice(n, rows, replace=False)] = 2
        y[rng.choice(n, rows, replace=False)] = 2
        z[(x == 2) | (y == 2)] = 0
        codes = np.stack([x, y, z], 1).astype(np.int32)
        data = jaxcd.Dataset.from_codes(codes, domain=domain)
        rejected += one(ChiSquare(), data, Query(0, 1, (2,)), 0.05)[1] < math.log(0.05)
    if shift:
        assert rejected > 0.8 * runs
    else:
        assert stats.binom.sf(rejected - 1, runs, 0.05) > 1e-3


@pytest.mark.parametrize("together", [False, True])
def test_chi_square_of_a_single_row_in_a_level_of_each_column(together: bool):
    codes = np.zeros((1_000, 2), dtype=np.int32)
    codes[0, 0] = codes[0 if together else 1, 1] = 1
    data = jaxcd.Dataset.from_codes(codes, domain=levelled(2, 2))
    exact = 1e-3 if together else 1.0
    assert math.exp(one(ChiSquare(), data, Query(0, 1), 0.05)[1]) == pytest.approx(exact, rel=0.05)


def covariance_parts(codes: np.ndarray, query: Query) -> tuple[float, float, float, float, float]:
    """G, M, V, W, W_1 with one-hot vectors of all declared levels, centred within each stratum."""
    cross, v, w = [], 0.0, []
    for block in strata(codes, query):
        n = len(block)
        one_hot = [np.eye(LEVELS[j])[block[:, i]] for i, j in enumerate((query.x, query.y))]
        centred = [m - m.mean(axis=0) for m in one_hot]
        cross.append(centred[0].T @ centred[1])
        if n > 1:
            v += float((centred[0] ** 2).sum() * (centred[1] ** 2).sum() / (n - 1))
        w.append(
            float(
                np.linalg.norm(centred[0].T @ centred[0])
                * np.linalg.norm(centred[1].T @ centred[1])
                / n
            )
        )
    g = math.sqrt(sum(float((c**2).sum()) for c in cross))
    return g, float(np.linalg.norm(sum(cross))), v, math.hypot(*w), sum(w)


@pytest.mark.parametrize("pooled", [False, True])
@settings(max_examples=15)
@given(seed=SEEDS, alpha=ALPHAS, query=st.sampled_from(QUERIES), n=st.sampled_from([300, 20_000]))
def test_covariance_norms(pooled: bool, seed: int, alpha: float, query: Query, n: int):
    data = dataset(seed, n)
    statistic, log_pvalue, margin = one(
        PooledCovariance() if pooled else CovarianceNorm(), data, query, alpha
    )
    g, m, v, w, w1 = covariance_parts(data.codes, query)
    value, spread = (m, w1) if pooled else (g, w)
    assert statistic == pytest.approx(value, rel=1e-9, abs=1e-6)
    c = max(float(stats.chi2.ppf(1 - alpha, 1)) - 1, 0.0)
    tau = (3 + 1.5 * c) / (2 * (3 - 2 * math.sqrt(2)))
    assert margin == pytest.approx(
        value - math.sqrt(max(v + c * spread, tau**2)), rel=1e-9, abs=1e-6
    )
    # Satterthwaite: value^2 is about (W^2 / V) chi-square with V^2 / W^2 degrees of freedom
    if v > 1 and spread > 1:
        with mpmath.workdps(40):
            half, at = (
                mpmath.mpf(v / spread) ** 2 / 2,
                mpmath.mpf(value) ** 2 * v / mpmath.mpf(spread) ** 2 / 2,
            )
            exact = float(mpmath.log(mpmath.gammainc(half, a=at, regularized=True)))
        assert log_pvalue == pytest.approx(exact, rel=1e-6, abs=1e-6)


def kendall_parts(codes: np.ndarray, query: Query) -> tuple[float, float]:
    score = variance = 0.0
    for block in strata(codes, query):
        n = len(block)
        signs = np.sign(block[:, None] - block[None])
        s = int((signs[..., 0] * signs[..., 1]).sum()) // 2
        score += math.copysign(math.sqrt(n * n + 2 * abs(s)) - n, s)
        p, q = (np.unique(block[:, i], return_counts=True)[1] / n for i in (0, 1))
        variance += n / 9 * (1 - (p**3).sum()) * (1 - (q**3).sum())
    return score, variance


def check_kendall(
    test: CITest, data: jaxcd.Dataset, query: Query, alpha: float, columns: np.ndarray
) -> None:
    statistic, log_pvalue, margin = one(test, data, query, alpha)
    score, variance = kendall_parts(columns, query)
    z = float(stats.norm.ppf(1 - alpha / 2))
    assert margin == pytest.approx(
        abs(score) - z * math.sqrt(max(variance, 100)), rel=1e-9, abs=1e-6
    )
    if variance > 0:
        assert statistic == pytest.approx(score / math.sqrt(variance), rel=1e-9, abs=1e-9)
        with mpmath.workdps(40):
            exact = float(
                mpmath.log(
                    mpmath.erfc(abs(mpmath.mpf(score)) / mpmath.sqrt(2 * mpmath.mpf(variance)))
                )
            )
        assert log_pvalue == pytest.approx(exact, rel=1e-7, abs=1e-7)


@settings(max_examples=20)
@given(seed=SEEDS, alpha=ALPHAS, query=st.sampled_from(QUERIES), n=st.sampled_from([40, 300]))
def test_kendall(seed: int, alpha: float, query: Query, n: int):
    data = dataset(seed, n)
    check_kendall(KendallTau(), data, query, alpha, data.codes)


@settings(max_examples=10)
@given(
    SEEDS, ALPHAS, st.sampled_from([Query(0, 1), Query(0, 1, (2,)), Query(0, 2), Query(1, 2, (3,))])
)
def test_kendall_of_numeric_columns(seed: int, alpha: float, query: Query):
    rng = np.random.default_rng(seed)
    n = 200
    x = rng.normal(size=n)
    y = np.round(0.3 * x + rng.normal(size=n), 1)  # with ties
    codes = rng.integers(0, 3, (n, 2))
    domain = jaxcd.Domain(
        {
            "x": jaxcd.Numeric(-10, 10),
            "y": jaxcd.Numeric(-10, 10),
            "z": jaxcd.Ordinal((0, 1, 2)),
            "w": jaxcd.Categorical((0, 1, 2)),
        }
    )
    values = np.column_stack([x, y, codes])
    data = jaxcd.Dataset.from_array(values, domain=domain)
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in values.T])
    check_kendall(KendallTau(), data, query, alpha, ranks)


@pytest.mark.parametrize("test", [KendallTau(), Spearman()])
def test_ranks_refuse_numeric_conditioning(test: CITest):
    domain = jaxcd.Domain(
        {"x": jaxcd.Numeric(0, 1), "y": jaxcd.Numeric(0, 1), "z": jaxcd.Numeric(0, 1)}
    )
    data = jaxcd.Dataset.from_array(np.random.default_rng(0).random((30, 3)), domain=domain)
    assert math.isfinite(one(test, data, Query(0, 1), 0.05)[2])
    refused(DomainError, "'z'", one, test, data, Query(0, 1, (2,)), 0.05)


@settings(max_examples=20)
@given(SEEDS, ALPHAS, st.sampled_from([(), (2,), (3, 4), (2, 3, 4)]), st.sampled_from([30, 500]))
def test_fisher_z(seed: int, alpha: float, given: tuple[int, ...], n: int):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5))
    data = jaxcd.Dataset.from_array(values, domain=numbers(5))
    statistic, log_pvalue, margin = one(FisherZ(), data, Query(0, 1, given), alpha)
    design = np.column_stack([np.ones(n), values[:, list(given)]])
    left, right = (
        v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (values[:, 0], values[:, 1])
    )
    r = stats.pearsonr(left, right).statistic
    z = math.sqrt(n - len(given) - 3) * math.atanh(r)
    assert statistic == pytest.approx(z, rel=1e-6, abs=1e-7)
    assert margin == pytest.approx(abs(z) - stats.norm.ppf(1 - alpha / 2), rel=1e-6, abs=1e-6)
    assert log_pvalue == pytest.approx(math.log(2) + stats.norm.logsf(abs(z)), rel=1e-6, abs=1e-6)


def test_pvalues_below_the_smallest_float():
    n = 20_000
    codes = np.repeat(np.arange(2), n // 2)
    data = jaxcd.Dataset.from_codes(
        np.stack([codes, codes], 1),
        domain=jaxcd.Domain({name: jaxcd.Ordinal((0, 1)) for name in "ab"}),
    )
    for test in TABLE_TESTS:
        _, log_pvalue, margin = one(test, data, Query(0, 1), 0.05)
        assert -1e6 < log_pvalue < -2000 and 0 < margin < math.inf
    _, log_pvalue, _ = one(GTest(), data, Query(0, 1), 0.05)
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.erfc(mpmath.sqrt(n * mpmath.log(2))))
        assert log_pvalue == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("test", TABLE_TESTS)
@settings(max_examples=8)
@given(seed=SEEDS)
def test_margin_and_pvalue_agree_on_the_decision(test: CITest, seed: int):
    """The margin never calls dependent what the p-value calls independent by far, nor the reverse
    for large samples.
    """
    data = dataset(seed, 20_000)
    for query in QUERIES:
        _, log_pvalue, margin = one(test, data, query, 0.05)
        if margin > 1:
            assert log_pvalue < math.log(0.06)
        if log_pvalue < -200:
            assert margin > 0


@pytest.mark.parametrize("test", [row.test for row in TESTS if not row.private])
@pytest.mark.parametrize("relation", jaxcd.privacy.Relation)
def test_tests_without_a_bound_say_so(test: CITest, relation: jaxcd.privacy.Relation):
    assert test.margin_sensitivity(alpha=0.05, n_samples=1000, relation=relation) is None


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_stated_sensitivities(alpha: float):
    z = float(stats.norm.ppf(1 - alpha / 2))
    for test, bound in (
        (CovarianceNorm(), 3.0),
        (PooledCovariance(), 4 + (3 - 2 * math.sqrt(2))),
        (KendallTau(), 2 + z / 45),
        (Spearman(), 2 + z / 45),
    ):
        stated = test.margin_sensitivity(
            alpha=alpha, n_samples=1000, relation=jaxcd.privacy.Relation.REPLACE_ONE
        )
        assert stated is not None and stated.value == pytest.approx(bound, rel=1e-9)
        assert 0 < stated.pad < 1e-3


@pytest.mark.parametrize("test", sorted(set(TABLE_TESTS) - {KendallTau(), Spearman()}, key=repr))
def test_discrete_tests_refuse_numeric_columns_by_name(test: CITest):
    domain = jaxcd.Domain({"fine": jaxcd.Categorical((0, 1)), "weight": jaxcd.Numeric(0, 1)})
    data = jaxcd.Dataset.from_array([[0, 0.5], [1, 0.25]], domain=domain)
    refused(DomainError, "weight", test.prepare, data)


def test_fisher_z_refuses_nominal_columns_by_name():
    domain = jaxcd.Domain(
        {"fine": jaxcd.Numeric(0, 1), "colour": jaxcd.Categorical(("red", "green", "blue"))}
    )
    data = jaxcd.Dataset.from_array([[0.5, "red"], [1.0, "blue"]], domain=domain)
    refused(DomainError, "colour", FisherZ().prepare, data)


@pytest.mark.parametrize("test", [row.test for row in TESTS if row.data])
def test_a_missing_data_set_is_refused(test: CITest):
    pytest.raises(OptionError, test.prepare, None)


def test_oracle_refuses_data_and_unknown_nodes():
    dag = jaxcd.networks.load("cancer").dag
    pytest.raises(OptionError, Oracle(dag).prepare, dataset(0))
    refused(OptionError, "nobody", Oracle, dag, latent=("nobody",))
    refused(OptionError, "nobody", Oracle, dag, selected=("nobody",))
