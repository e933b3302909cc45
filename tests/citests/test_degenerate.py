"""Constant columns, two rows, empty levels: every test gives a defined, finite result."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.citests import CITest, FisherZ, KendallTau, Query, Spearman
from jaxcd.queries import Queue
from tests.catalogue import EACH_TABLE_TEST
from tests.helpers import coded, numbers

QUERIES = [
    Query(x, y, given)
    for x, y, given in [(0, 1, ()), (0, 2, ()), (1, 2, (0,)), (2, 3, (0, 1)), (0, 1, (2, 3))]
]


CASES = {
    "two equal rows": (np.zeros((2, 4), dtype=np.int32), (2, 3, 2, 2)),
    "two different rows": (np.array([[0, 0, 0, 0], [1, 2, 1, 1]]), (2, 3, 2, 2)),
    "declared constants": (np.zeros((60, 4), dtype=np.int32), (1, 1, 1, 1)),
    "one constant": (np.tile([[0, 0, 0, 1], [1, 0, 1, 0], [1, 0, 0, 0]], (20, 1)), (2, 3, 2, 2)),
    "empty levels": (np.tile([[0, 5, 0, 1], [3, 0, 1, 0], [3, 5, 0, 0]], (20, 1)), (4, 8, 2, 2)),
    "copies": (np.tile([[0, 0, 0, 0], [1, 1, 1, 1]], (30, 1)), (2, 2, 2, 2)),
}


@pytest.mark.parametrize("case", CASES)
@EACH_TABLE_TEST
def test_discrete(test: CITest, case: str):
    codes, levels = CASES[case]
    data = coded(codes, *levels)
    queue = Queue(test.prepare(data), alpha=0.05)
    result = queue.evaluate(QUERIES)
    for value in result:
        assert np.isfinite(value).all()
    assert (result.log_pvalue <= 0).all()
    for query, margin, log_pvalue in zip(QUERIES, result.margin, result.log_pvalue, strict=True):
        if min(np.ptp(codes[:, query.x]), np.ptp(codes[:, query.y])) == 0:
            assert margin < 0 and log_pvalue == 0  # a constant is independent of everything


@pytest.mark.parametrize("n", [2, 3, 4, 5, 40])
def test_fisher_z(n: int):
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, 4))
    values[:, 3] = 2.5
    data = jaxcd.Dataset.from_array(values, domain=numbers(4))
    prepared = FisherZ().prepare(data)
    for size in range(3):
        for x, y, *given in itertools.permutations(range(4), 2 + size):
            query = Query(min(x, y), max(x, y), tuple(sorted(given)))
            if not prepared.admissible(query):
                assert n - size - 3 <= 0
                continue
            result = prepared.evaluate(prepared.bucket(query), [query], alpha=0.05)
            assert all(np.isfinite(value).all() for value in result)
            if 3 in (x, y):
                assert result.margin[0] < 0
                np.testing.assert_allclose(result.statistic, 0, atol=1e-6)


@pytest.mark.parametrize("test", [KendallTau(), Spearman()], ids=lambda test: test.name)
def test_ranks_of_constant_numeric_columns(test: CITest):
    values = np.column_stack([np.full(30, 1.5), np.arange(30.0), np.zeros(30)])
    domain = jaxcd.Domain(
        {"c": jaxcd.Numeric(0, 2), "x": jaxcd.Numeric(0, 30), "z": jaxcd.Ordinal((0, 1))}
    )
    queue = Queue(test.prepare(jaxcd.Dataset.from_array(values, domain=domain)), alpha=0.05)
    result = queue.evaluate([Query(0, 1), Query(0, 1, (2,)), Query(0, 2), Query(1, 2)])
    for value in result:
        assert np.isfinite(value).all()
    assert (result.margin < 0).all() and not result.statistic.any()
    assert not result.log_pvalue.any()


@EACH_TABLE_TEST
def test_unused_levels_do_not_matter(test: CITest):
    """Declaring levels that never occur pads the tables and changes nothing; of every column, so
    that x, y and all conditioning sets have some."""
    codes = np.random.default_rng(0).integers(0, 2, (500, 4)).astype(np.int32)
    codes[:, 1] |= codes[:, 0]
    results = []
    for levels in ((2, 2, 2, 2), (4, 8, 8, 4)):
        data = coded(codes, *levels)
        results.append(Queue(test.prepare(data), alpha=0.05).evaluate(QUERIES))
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-10)


SETTINGS = {
    "double precision": lambda: jax.enable_x64(True),
    "strict promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "NaN checks": lambda: jax.debug_nans(True),
}


@pytest.mark.parametrize("setting", SETTINGS)
@EACH_TABLE_TEST
def test_callers_configuration_does_not_matter(test: CITest, setting: str):
    """Bit for bit the same, whatever the caller has set in JAX."""
    codes = np.random.default_rng(1).integers(0, 3, (400, 4)).astype(np.int32)
    data = coded(codes, 3, 3, 3, 3)
    queries = [Query(0, 1), Query(1, 2, (0,)), Query(0, 3, (2,))]
    plain = Queue(test.prepare(data), alpha=0.05).evaluate(queries)
    with SETTINGS[setting]():
        other = Queue(test.prepare(data), alpha=0.05).evaluate(queries)
    for first, second in zip(plain, other, strict=True):
        np.testing.assert_array_equal(first, second)


@EACH_TABLE_TEST
def test_conditioning_sets_that_are_too_large_are_inadmissible_not_fatal(test: CITest):
    data = coded(np.zeros((10, 12)), *[60] * 12)
    prepared = test.prepare(data)
    assert prepared.admissible(Query(0, 1))
    assert not prepared.admissible(Query(0, 1, tuple(range(2, 12))))


@pytest.mark.parametrize(
    ("test", "n"),
    [
        (jaxcd.GCM(), 8),
        # many programs to compile
        *(
            pytest.param(test, n, marks=pytest.mark.slow)
            for test, n in ((jaxcd.KCI(), 8), (jaxcd.KCI(), 3_000), (jaxcd.GCM(), 3_000))
        ),
    ],
    ids=str,
)
def test_a_constant_beside_a_rare_level(test: CITest, n: int):
    """A variance of zero was divided by: a warning in memory, an error of Python on devices."""
    rng = np.random.default_rng(n)
    rare = np.zeros(n)
    rare[:3] = 1
    values = np.column_stack([np.full(n, 1.5), rare, rng.normal(size=n)])
    columns = {"constant": jaxcd.Numeric(), "rare": jaxcd.Categorical((0, 1)), "z": jaxcd.Numeric()}
    data = jaxcd.Dataset.from_array(values, domain=jaxcd.Domain(columns))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",))
    for rows in data, data.on(mesh):
        queue = Queue(test.prepare(rows, key=jax.random.key(0)), alpha=0.05)
        result = queue.evaluate([Query(0, 1, ()), Query(0, 1, (2,))])
        assert result.log_pvalue.tolist() == [0.0, 0.0]
