"""The chi-square test behind a channel: Pearson's without noise, right under the null with it,
total everywhere.
"""

from __future__ import annotations

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.data import Categorical, Dataset, Domain, Numeric
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.local import (
    BoundedGeometric,
    ChannelAwareBIC,
    CombinedGeometric,
    CombinedKaryResponse,
    Distance,
    KaryResponse,
    channels,
    joint_channel,
    randomise,
)
from jaxcd.local.channel_tests import ChannelAwareChiSquare, _linear, _quadratic, channel_chi_square
from tests.helpers import coded, levelled, refused, sampled, simulated


def response(k: int, epsilon: float) -> np.ndarray:
    p = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    return np.full((k, k), (1 - p) / (k - 1)) + (p - (1 - p) / (k - 1)) * np.eye(k)


def pearson(tables: np.ndarray) -> tuple[float, int]:
    found = [stats.chi2_contingency(table, correction=False) for table in tables]
    return sum(float(f.statistic) for f in found), sum(int(f.dof) for f in found)


def independent(
    rng: np.random.Generator, strata: int, r: int, c: int, spread: float = 3.0
) -> np.ndarray:
    z = rng.dirichlet(np.full(strata, 5.0))
    x, y = (
        rng.dirichlet(np.full(r, spread), size=strata),
        rng.dirichlet(np.full(c, spread), size=strata),
    )
    return z[:, None, None] * x[:, :, None] * y[:, None, :]


domain = functools.partial(levelled, name="c", kind=Categorical)


@pytest.mark.parametrize("shape", [(1, 2, 2), (1, 3, 4), (4, 2, 3), (9, 3, 3)])
def test_without_noise_it_is_pearsons(shape):
    rng = np.random.default_rng(0)
    tables = rng.multinomial(1_000_000, rng.dirichlet(np.full(math.prod(shape), 200.0))).reshape(
        shape
    )
    statistic, dof = channel_chi_square(tables, np.eye(shape[0]))
    expected, expected_dof = pearson(tables)
    assert dof == expected_dof
    assert statistic == pytest.approx(expected, rel=0.03)
    null = rng.multinomial(1_000_000, independent(rng, *shape).ravel()).reshape(shape)
    assert channel_chi_square(null, np.eye(shape[0]))[0] == pytest.approx(
        pearson(null)[0], rel=0.01, abs=0.01
    )


def test_expected_reports_of_independent_columns_give_zero_and_the_naive_test_grows():
    rng, n = np.random.default_rng(1), 1_000_000
    blur = np.kron(response(2, 1.0), response(3, 1.5)).T
    truth = np.einsum(
        "kxy,xa,yb->kab", independent(rng, 6, 3, 2, 0.5), response(3, 2.0), response(2, 2.0)
    )
    reported = n * np.tensordot(blur, truth, axes=1)
    assert channel_chi_square(reported, blur)[0] < 0.5
    assert pearson(reported)[0] > 500
    combined = n * (0.6 * truth + 0.4 / truth.size)
    assert channel_chi_square(combined, 0.6 * np.eye(6), constant=0.4 / truth.size)[0] < 0.5
    assert pearson(combined)[0] > 500


def test_moments_of_the_products():
    """The Jacobian against differences, the quadratic part against draws."""
    rng = np.random.default_rng(2)
    places = tuple(np.array(p) for p in ((3, 7), (0, 4), (1, 5), (2, 6)))
    root = rng.normal(size=(8, 8))
    omega, at = root @ root.T, rng.normal(size=8)
    s, t, u, v = places

    def products(e: np.ndarray) -> np.ndarray:
        return e[..., s] * e[..., t] - e[..., u] * e[..., v]

    step = 1e-6
    jacobian = np.array(
        [(products(at + step * row) - products(at - step * row)) / (2 * step) for row in np.eye(8)]
    ).T
    np.testing.assert_allclose(_linear(omega, at, places), jacobian @ omega @ jacobian.T, rtol=1e-6)
    draws = products(rng.normal(size=(400_000, 8)) @ root.T)
    np.testing.assert_allclose(_quadratic(omega, places), np.cov(draws.T), rtol=0.1, atol=1.0)
    np.testing.assert_allclose(omega[s, t] - omega[u, v], draws.mean(axis=0), atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n_given", "epsilon", "n"),
    [(2, 0, 1.0, 2000), (2, 1, 2.0, 100_000), (3, 1, 2.0, 100_000), (2, 2, 1.0, 20_000)],
)
def test_type_one_errors(k, n_given, epsilon, n):
    """At 0.05; of 400 draws a perfect test rejects fewer than 9 or more than 34 less than once in
    250 times.
    """
    rng = np.random.default_rng([k, n_given])
    blur = np.ones((1, 1))
    for _ in range(n_given):
        blur = np.kron(blur, response(k, epsilon).T)
    rejected, naive = [], []
    for draw in range(400):
        if draw % 10 == 0:
            truth = np.einsum(
                "kxy,xa,yb->kab",
                independent(rng, k**n_given, k, k),
                response(k, epsilon),
                response(k, epsilon),
            )
            q = np.tensordot(blur, truth, axes=1)
        tables = rng.multinomial(n, q.ravel()).reshape(q.shape)
        rejected.append(stats.chi2.sf(*channel_chi_square(tables, blur)) < 0.05)
        naive.append(stats.chi2.sf(*pearson(tables)) < 0.05)
    assert 0.022 <= np.mean(rejected) <= 0.085
    if n_given:
        assert np.mean(naive) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n", "keep"),
    [(3, 300, None), (4, 300, None), (3, 300, 0.06), (3, 1000, 0.06), (4, 1000, 0.05)],
)
def test_few_kept_records_reject_no_more_than_the_level(k, n, keep):
    """Where noise is all that there is the statistic is a square of errors; 400 draws.  keep: of
    combined response; None: by column at epsilon 1.
    """
    rng = np.random.default_rng([k, n])
    blur = response(k, 1.0).T if keep is None else keep * np.eye(k)
    constant = 0.0 if keep is None else (1 - keep) / k**3
    rejected = []
    for draw in range(400):
        if draw % 10 == 0:
            truth = independent(rng, k, k, k)
            if keep is None:
                truth = np.einsum("kxy,xa,yb->kab", truth, response(k, 1.0), response(k, 1.0))
            q = np.tensordot(blur, truth, axes=1) + constant
        tables = rng.multinomial(n, q.ravel() / q.sum()).reshape(q.shape)
        rejected.append(stats.chi2.sf(*channel_chi_square(tables, blur, constant=constant)) < 0.05)
    assert np.mean(rejected) <= 0.085


@pytest.mark.parametrize(
    "mechanism",
    [KaryResponse(8.0), BoundedGeometric(0.7), CombinedKaryResponse(4.0)],
    ids=lambda m: type(m).__name__,
)
def test_a_chain_is_found_where_the_naive_test_adds_an_edge(mechanism):
    rng, n = np.random.default_rng(3), 200_000
    a = rng.integers(3, size=n)
    b = np.where(rng.random(n) < 0.75, a, rng.integers(3, size=n))
    c = np.where(rng.random(n) < 0.75, b, rng.integers(3, size=n)) % 2
    data = Dataset.from_codes(np.column_stack([a, b, c]), domain=domain(3, 3, 2))
    noisy = randomise(data, mechanism, noise=simulated())
    chain = nx.Graph([("c0", "c1"), ("c1", "c2")])
    runs = [
        jaxcd.pc(
            noisy, test=test, decider=jaxcd.Threshold(0.001), budget=jaxcd.NO_PRIVACY, key=None
        ).graph.adjacency
        for test in (jaxcd.ChiSquare(), ChannelAwareChiSquare(mechanism))
    ]
    assert runs[0].sum() == 6
    np.testing.assert_array_equal(
        runs[1], nx.to_numpy_array(chain, nodelist=["c0", "c1", "c2"]).astype(bool)
    )


def test_cells_that_are_reported_missing_are_a_level():
    """The channel of a column follows from the whole domain: on complete rows, whose domain is
    another, x and y were joined given their cause z in 28 of 30 data sets.
    """
    whole = Domain({"z": Categorical([0, 1]), "x": Categorical([0, 1], missing=True)})
    whole = Domain({**whole.columns, "y": Categorical([0, 1])})
    mechanism, n = KaryResponse(6.0), 20_000
    rejected = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = rng.integers(2, size=n)
        x, y = (np.where(rng.random(n) < 0.8, z, 1 - z) for _ in "xy")
        x[rng.random(n) < 0.3] = 2
        data = Dataset.from_codes(np.column_stack([z, x, y]), domain=whole)
        noisy = randomise(data, mechanism, noise=simulated(seed))
        answers = [
            jaxcd.ci_test(
                noisy.reading(missing),
                "x",
                "y",
                given=["z"],
                test=ChannelAwareChiSquare(mechanism),
                budget=jaxcd.NO_PRIVACY,
            )
            for missing in ("ignore", "level")
        ]
        assert answers[0].pvalue == answers[1].pvalue
        rejected += not answers[0].independent
    assert rejected <= 3  # a chance of .01 at a level of .05


@pytest.mark.parametrize("kind", [KaryResponse, CombinedKaryResponse])
@pytest.mark.parametrize("epsilon", [1e-20, 1e-300])
def test_a_channel_that_says_nothing_is_refused(kind, epsilon):
    data = coded(np.zeros((5, 2), dtype=np.int32), domain(2, 3))
    refused(OptionError, "larger epsilon", ChannelAwareChiSquare(kind(epsilon)).prepare, data)
    refused(OptionError, "larger epsilon", ChannelAwareBIC(kind(epsilon)).prepare, data)


def test_queries_in_batches_are_the_tables_one_by_one():
    """Levels of different numbers, so that tables are padded, and every order of the conditioning
    set's channels matters.
    """
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.integers(k, size=500) for k in (2, 4, 3, 2)])
    codes[:, 2] = (codes[:, 1] + codes[:, 2]) % 3
    declared = domain(2, 4, 3, 2)
    for mechanism in (BoundedGeometric(0.6), CombinedKaryResponse(5.0)):
        prepared = ChannelAwareChiSquare(mechanism).prepare(coded(codes, declared))
        queries = [
            Query.of(x, y, z)
            for x, y in ((0, 3), (1, 2), (2, 3))
            for z in itertools.combinations({0, 1, 2, 3} - {x, y}, 2)
        ]
        queries += [Query.of(0, 1), Query.of(1, 3)]
        for bucket in {prepared.bucket(q) for q in queries}:
            group = [q for q in queries if prepared.bucket(q) == bucket]
            found = prepared.evaluate(bucket, group, alpha=0.05)
            for query, statistic, log_pvalue, margin in zip(group, *found, strict=True):
                order = (*query.given, query.x, query.y)
                shape = tuple((2, 4, 3, 2)[j] for j in order)
                counts = np.zeros(shape)
                np.add.at(counts, tuple(codes[:, j] for j in order), 1)
                strata, constant, blur = math.prod(shape[:-2]), 0.0, np.ones((1, 1))
                if mechanism.is_combined:
                    matrix = joint_channel(mechanism, declared)
                    keep = matrix[0, 0] - matrix[0, 1]
                    blur, constant = keep * np.eye(strata), (1 - keep) / counts.size
                else:
                    for j in query.given:
                        blur = np.kron(blur, channels(mechanism, declared)[j].T)
                expected, dof = channel_chi_square(
                    counts.reshape(strata, *shape[-2:]), blur, constant=constant
                )
                assert statistic == pytest.approx(expected) and dof == strata * (shape[-1] - 1) * (
                    shape[-2] - 1
                )
                assert log_pvalue == pytest.approx(stats.chi2.logsf(expected, dof))
                assert margin == pytest.approx(math.log(0.05) - log_pvalue)


def test_degenerate_tables_have_an_answer():
    blur = np.kron(response(2, 0.01), response(2, 0.01)).T
    one = np.zeros((4, 2, 3))
    one[2, 1, 1] = 1
    for tables in (np.zeros((4, 2, 3)), one, 1e6 * one, np.ones((4, 1, 3)), np.ones((4, 2, 3))):
        for matrix in (blur, np.eye(4)):
            statistic, dof = channel_chi_square(tables, matrix)
            assert math.isfinite(statistic) and statistic >= 0
            assert dof == 4 * (tables.shape[1] - 1) * (tables.shape[2] - 1)
    assert channel_chi_square(np.zeros((4, 2, 3)), blur)[0] == 0
    codes = np.zeros((10, 3), dtype=np.int32)
    data = coded(codes, domain(2, 1, 3))
    run = jaxcd.pc(
        data,
        test=ChannelAwareChiSquare(KaryResponse(1.0)),
        decider=jaxcd.Threshold(0.05),
        budget=jaxcd.NO_PRIVACY,
        key=None,
    )
    assert run.graph.adjacency.sum() == 0


def test_refusals():
    refused(OptionError, "mechanism", ChannelAwareChiSquare, "k-rr")
    with pytest.raises(DomainError, match="CombinedGeometric"):
        ChannelAwareChiSquare(CombinedGeometric(0.4, distance=Distance.EUCLIDEAN))
    test = ChannelAwareChiSquare(KaryResponse(1.0))
    numeric = Dataset.from_array(
        np.zeros((5, 2)), domain=Domain({"a": Numeric(0, 1), "b": Numeric(0, 1)})
    )
    refused(DomainError, "'a'", test.prepare, numeric)
    codes = np.zeros((5, 2), dtype=np.int32)
    undeclared = Domain(domain(2, 2).columns, declared=False)
    refused(PrivacyError, "domain", test.prepare, coded(codes, undeclared))
    pytest.raises(OptionError, test.prepare, None)
    wide = test.prepare(
        Dataset.from_codes(np.zeros((5, 7), dtype=np.int32), domain=domain(*[4] * 7))
    )
    assert wide.admissible(Query.of(0, 1, (2, 3, 4))) and not wide.admissible(
        Query.of(0, 1, (2, 3, 4, 5))
    )


@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-6])
def test_a_search_on_records_that_say_next_to_nothing_ends(epsilon):
    """The channel of two conditioning columns is singular in float64, that of each is not."""
    mechanism = jaxcd.local.KaryResponse(epsilon=epsilon)
    data = sampled("cancer", 4_000)
    test = ChannelAwareChiSquare(mechanism).prepare(data)
    queries = [Query.of(0, 1, (2, 3)), Query.of(0, 1, (2, 3, 4))]
    for query in queries:
        found = test.evaluate(test.bucket(query), [query], alpha=0.05)
        assert np.isfinite(found.statistic).all() and (found.log_pvalue <= 0).all()
