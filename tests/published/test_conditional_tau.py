"""Priv-PC's statistic against pair counting and scipy, its stated faults, and subsamples."""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxcd import Budget, Categorical, Dataset, Domain, Numeric
from jaxcd.citests import Query
from jaxcd.errors import DomainError, SensitivityError
from jaxcd.privacy import NO_PRIVACY
from jaxcd.published import ConditionalTau
from jaxcd.published.accounting import claimed_sensitivity
from jaxcd.queries import Door, Session
from tests.helpers import SEEDS, coded, refused


def dataset(codes: np.ndarray, cardinalities: list[int]) -> Dataset:
    columns = {
        f"v{j}": Categorical([f"l{a}" for a in range(k)]) for j, k in enumerate(cardinalities)
    }
    return coded(codes, Domain(columns))


def tau_a(x: np.ndarray, y: np.ndarray) -> float:
    signs = [
        np.sign(int(x[i]) - int(x[j])) * np.sign(int(y[i]) - int(y[j]))
        for i, j in itertools.combinations(range(len(x)), 2)
    ]
    return float(sum(signs)) / (len(x) * (len(x) - 1) / 2)


def slow_statistic(codes: np.ndarray, x: int, y: int, given_columns: tuple[int, ...]) -> float:
    """By the definition, pair by pair and stratum by stratum."""
    if not given_columns:
        n = len(codes)
        if len(set(codes[:, x])) < 2 or len(set(codes[:, y])) < 2:
            return math.nan
        return tau_a(codes[:, x], codes[:, y]) * math.sqrt(9 * n * (n - 1) / (4 * n + 10))
    numerator = weight = 0.0
    for stratum in sorted({tuple(row) for row in codes[:, given_columns]}):
        part = codes[(codes[:, given_columns] == stratum).all(axis=1)]
        n = len(part)
        if n <= 2 or len(set(part[:, x])) < 2 or len(set(part[:, y])) < 2:
            continue
        variance = (4 * n + 10) / (9 * n * (n - 1))
        numerator += tau_a(part[:, x], part[:, y]) / variance
        weight += 1 / variance
    return numerator / math.sqrt(weight) if weight else math.nan


def statistic(codes: np.ndarray, cardinalities: list[int], query: Query):
    session = Session(Door(dataset(codes, cardinalities), NO_PRIVACY), ConditionalTau(), alpha=0.1)
    return session.evaluate([query])


def pvalue(codes: np.ndarray, cardinalities: list[int], *given_columns: int) -> float:
    query = Query(0, 1, given_columns)
    return float(np.exp(statistic(codes, cardinalities, query).log_pvalue[0]))


@settings(max_examples=30)
@given(
    seed=SEEDS,
    n=st.sampled_from([2, 3, 4, 5, 9, 17, 40]),
    skew=st.sampled_from([1.0, 0.3, 0.02]),
    n_given=st.integers(0, 3),
)
def test_statistic_is_its_definition(seed, n, skew, n_given):
    rng = np.random.default_rng(seed)
    cards = [3, 4, 2, 3, 2]
    codes = np.stack(
        [rng.choice(k, n, p=(w := skew ** np.arange(k)) / w.sum()) for k in cards], axis=1
    )
    query = Query(0, 1, (2, 3, 4)[:n_given])
    answer = statistic(codes, cards, query)
    expected = slow_statistic(codes, *query)
    np.testing.assert_allclose(answer.statistic[0], expected, rtol=1e-12, equal_nan=True)
    np.testing.assert_allclose(
        answer.log_pvalue[0], stats.norm.logsf(abs(expected)), rtol=1e-9, equal_nan=True
    )
    assert math.isnan(expected) == math.isnan(answer.margin[0])


def test_unconditional_tau_agrees_with_scipy():
    rng = np.random.default_rng(0)
    x = rng.permutation(60)
    y = np.argsort(np.argsort(x + 25 * rng.standard_normal(60)))
    n = 60
    # no ties: tau-a is tau-b
    expected = stats.kendalltau(x, y).statistic * math.sqrt(9 * n * (n - 1) / (4 * n + 10))
    assert statistic(np.stack([x, y], axis=1), [n, n], Query(0, 1)).statistic[0] == pytest.approx(
        expected, rel=1e-12
    )


def test_strata_of_two_and_constant_strata_are_dropped():
    small = [(0, 0, 0), (1, 1, 0)]  # two records
    constant = [(0, 0, 1), (0, 1, 1), (0, 1, 1)]  # x constant
    left = [(0, 0, 2), (1, 1, 2), (1, 0, 2), (1, 1, 2)]
    both = statistic(np.array(small + constant + left), [2, 2, 3], Query(0, 1, (2,))).statistic[0]
    alone = statistic(np.array(left), [2, 2, 3], Query(0, 1, (2,))).statistic[0]
    assert both == alone != 0
    nothing = statistic(np.array(small + constant), [2, 2, 3], Query(0, 1, (2,)))
    assert np.isnan([nothing.statistic[0], nothing.log_pvalue[0], nothing.margin[0]]).all()


def neighbours(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """k records with x = y in a stratum of their own; in the other x is constant, in the neighbour
    but for one record.
    """
    index = np.arange(n - k)
    large = np.stack([np.zeros(n - k, int), index % 8, np.zeros(n - k, int)], axis=1)
    strong = np.stack([np.arange(k), np.arange(k), np.ones(k, int)], axis=1)
    changed = large.copy()
    changed[0] = (1, 0, 0)
    return np.concatenate([strong, large]), np.concatenate([strong, changed])


@pytest.mark.parametrize(
    ("n", "k", "before", "after"),
    [
        (1000, 4, 0.0208, 0.4981),
        (1000, 10, 2.8e-5, 0.3976),
        (100_000, 6, 0.0024, 0.4966),
        (100_000, 10, 2.8e-5, 0.4897),
    ],
)
def test_one_record_moves_the_pvalue_over_its_range(n, k, before, after):
    cards = [max(k, 2), max(k, 8), 2]
    first, second = (pvalue(codes, cards, 2) for codes in neighbours(n, k))
    assert first == pytest.approx(before, abs=5e-5) and second == pytest.approx(after, abs=5e-5)
    assert second - first > 5 * claimed_sensitivity(n)


def test_one_record_turns_nan_into_a_half():
    n = 1000
    codes = np.stack([np.zeros(n, int), np.arange(n) % 8], axis=1)
    assert math.isnan(pvalue(codes, [2, 8]))
    codes[3, 0] = 1
    assert pvalue(codes, [2, 8]) == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(20, 400), n_given=st.integers(0, 3))
def test_a_subsample_answers_as_its_own_data_set(seed, n, n_given):
    rng = np.random.default_rng(seed)
    cards = [4, 3, 5, 6, 4]  # up to 1440 cells: both ways of counting, and both ways of restricting
    codes = np.stack([rng.integers(0, k, n) for k in cards], axis=1)
    rows = rng.random(n) < 0.5
    rows[:3] = True
    query = Query(0, 1, (2, 3, 4)[:n_given])
    session = Session(Door(dataset(codes, cards), NO_PRIVACY), ConditionalTau(), alpha=0.1)
    queue = session.restrict(rows)
    expected = statistic(codes[rows], cards, query)
    np.testing.assert_array_equal(queue.evaluate([query]).statistic, expected.statistic)


def test_a_subsample_answers_many_queries_as_few():
    rng = np.random.default_rng(1)
    cards = [3] * 7
    codes = rng.integers(0, 3, (300, 7))
    rows = rng.random(300) < 0.3
    session = Session(Door(dataset(codes, cards), NO_PRIVACY), ConditionalTau(), alpha=0.1)
    queries = [
        Query(x, y, (z,))
        for x, y in itertools.combinations(range(6), 2)
        for z in range(7)
        if z not in (x, y)
    ]
    together = session.restrict(rows)
    # 2025 cells
    many = np.concatenate(
        [together.evaluate(queries[i : i + 9]).statistic for i in range(0, len(queries), 9)]
    )
    more = together.evaluate(
        [Query(0, 1, (2, 3)), Query(2, 6, (3, 4))]
    ).statistic  # the rows are taken out by now
    few = [session.restrict(rows).evaluate([query]).statistic[0] for query in queries]
    np.testing.assert_array_equal(many, few)
    np.testing.assert_array_equal(
        more[0], session.restrict(rows).evaluate([Query(0, 1, (2, 3))]).statistic[0]
    )


def test_no_mechanism_accepts_it():
    data = dataset(np.array([[0, 1], [1, 0], [1, 1]]), [2, 2])
    with pytest.raises(SensitivityError, match="ConditionalTau"):
        Session(Door(data, Budget(epsilon=1.0)), ConditionalTau(), alpha=0.1).sensitivity()


def test_numeric_columns_are_refused():
    frame = {"a": [0.1, 0.2, 0.3], "b": [1.0, 2.0, 3.0]}
    domain = Domain({"a": Numeric(lower=0, upper=1), "b": Numeric(lower=0, upper=3)})
    data = Dataset.from_array(np.stack([frame["a"], frame["b"]], axis=1), domain=domain)
    door = Door(data, NO_PRIVACY)
    refused(DomainError, "'a'", Session, door, ConditionalTau(), alpha=0.1)


def test_levels_beyond_a_byte():
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, 300, 50), rng.integers(0, 2, 50)], axis=1)
    got = statistic(codes, [300, 2], Query(0, 1)).statistic[0]
    assert got == pytest.approx(slow_statistic(codes, 0, 1, ()), rel=1e-12)
    assert jax.numpy.isfinite(got)
