"""The queue: batched = one by one = shuffled = padded, bit for bit; and the session guards what it
holds.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import re

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.citests import CITest, CovarianceNorm, Evaluation, FisherZ, Oracle
from jaxcd.errors import DomainError, PrivacyError, SensitivityError
from jaxcd.privacy import Sensitive
from jaxcd.privacy.sensitive import exact_values
from jaxcd.queries import Door, Query, Queue, Session
from tests.catalogue import EACH_TABLE_TEST, FREE_TESTS, TABLE_TESTS, TESTS, discrete
from tests.helpers import SEEDS, coded, levelled, numbers, refused

LEVELS = (2, 3, 4, 2, 5, 1)
D = len(LEVELS)
DOMAIN = levelled(*LEVELS)
CODES = (np.random.default_rng(0).random((400, D)) ** 2 * LEVELS).astype(np.int32)
DATA = coded(CODES, DOMAIN)
NUMERIC = jaxcd.Dataset.from_array(
    np.random.default_rng(1).normal(size=(150, D)) @ np.random.default_rng(2).normal(size=(D, D)),
    domain=numbers(D, -50, 50),
)
ORACLE = Oracle(jaxcd.networks.load("asia").dag)
EXACT = [row for row in TESTS if row.data and row.exact]
PREPARED = {
    row.test: row.test.prepare(DATA if row.data is discrete else NUMERIC) for row in EXACT
} | {ORACLE: ORACLE.prepare(None)}


@st.composite
def query(draw):
    x, y, *given = draw(st.permutations(range(D)))
    return Query(min(x, y), max(x, y), tuple(sorted(given[: draw(st.integers(0, 3))])))


def same(first: Evaluation, second: Evaluation) -> None:
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("test", PREPARED, ids=lambda test: test.name)
@settings(max_examples=12)
@given(queries=st.lists(query(), min_size=1, max_size=30), seed=SEEDS)
def test_batched_is_one_by_one_is_shuffled(test: CITest, queries: list[Query], seed: int):
    prepared = PREPARED[test]
    batched = Queue(prepared, alpha=0.05).evaluate(queries)
    queue = Queue(prepared, alpha=0.05)
    single = [queue.evaluate([q]) for q in queries]
    same(batched, Evaluation(*(np.concatenate(values) for values in zip(*single, strict=True))))
    order = np.random.default_rng(seed).permutation(len(queries))
    shuffled = Queue(prepared, alpha=0.05).evaluate([queries[i] for i in order])
    same(Evaluation(*(value[order] for value in batched)), shuffled)
    half = Queue(prepared, alpha=0.05)  # answers that are remembered beside fresh ones
    half.evaluate(queries[::2])
    same(batched, half.evaluate(queries))


@pytest.mark.parametrize("test", PREPARED, ids=lambda test: test.name)
def test_position_in_a_full_batch_does_not_matter(test: CITest):
    """A bucket filled to the brim: the same query first, last, alone."""
    prepared = PREPARED[test]
    query = Query(0, 1, (2,))
    bucket = prepared.bucket(query)
    others = [
        Query(x, y, (z,))
        for x, y, z in itertools.permutations(range(D), 3)
        if x < y and Query(x, y, (z,)) != query and prepared.bucket(Query(x, y, (z,))) == bucket
    ]
    size = min(prepared.batch_size(bucket), 64)
    filler = list(itertools.islice(itertools.cycle(others), size - 1))
    alone = prepared.evaluate(bucket, [query], alpha=0.05)
    first = prepared.evaluate(bucket, [query, *filler], alpha=0.05)
    last = prepared.evaluate(bucket, [*filler, query], alpha=0.05)
    for a, b, c in zip(alone, first, last, strict=True):
        assert a[0] == b[0] == c[-1]


@EACH_TABLE_TEST
@settings(max_examples=10)
@given(seed=SEEDS, size=st.integers(2, 400))
def test_restriction_is_the_test_on_those_rows(test: CITest, seed: int, size: int):
    rows = np.random.default_rng(seed).permutation(400) < size
    queries = [Query(0, 1), Query(1, 2, (3,)), Query(2, 4, (0,))]
    restricted = Queue(PREPARED[test].restrict(rows), alpha=0.05).evaluate(queries)
    alone = Queue(test.prepare(coded(CODES[rows], DOMAIN)), alpha=0.05).evaluate(queries)
    for a, b in zip(restricted, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_order_of_rows_does_not_matter():
    order = np.random.default_rng(3).permutation(400)
    queries = [Query(x, y, (z,)) for x, y, z in itertools.combinations(range(D), 3)]
    for test in TABLE_TESTS:
        other = test.prepare(coded(CODES[order], DOMAIN))
        same(
            Queue(PREPARED[test], alpha=0.05).evaluate(queries),
            Queue(other, alpha=0.05).evaluate(queries),
        )


def test_buckets_depend_on_public_facts_only():
    """Equal domains and sizes, different rows: equal buckets, sizes and admissibility."""
    queries = [
        Query(x, y, rest[:k])
        for x, y, *rest in itertools.permutations(range(D), 5)
        for k in (0, 3)
        if x < y
    ][:200]
    queries = [Query(q.x, q.y, tuple(sorted(q.given))) for q in queries]
    other = jaxcd.Dataset.from_codes(np.zeros_like(CODES), domain=DOMAIN)
    for test in TABLE_TESTS:
        first, second = PREPARED[test], test.prepare(other)
        for q in queries:
            assert first.bucket(q) == second.bucket(q) and first.admissible(q) == second.admissible(
                q
            )
            assert first.batch_size(first.bucket(q)) == second.batch_size(second.bucket(q))


# The session


BUDGET = jaxcd.Budget(1.0, 1e-6)
NORM = CovarianceNorm()


def session(test: CITest = NORM, budget=BUDGET, data=DATA) -> Session:
    return Session(Door(data, budget), test, alpha=0.05)


def test_margins_are_those_of_the_test():
    queries = [Query(0, 1), Query(1, 2, (0, 3))]
    margins = session().margins(queries)
    assert isinstance(margins, Sensitive)
    expected = Queue(PREPARED[CovarianceNorm()], alpha=0.05).evaluate(queries).margin
    np.testing.assert_array_equal(exact_values(margins), expected)
    np.testing.assert_array_equal(exact_values(margins.map(np.negative)), -expected)
    np.testing.assert_array_equal(
        session(budget=jaxcd.NO_PRIVACY).margins(queries).expose(), expected
    )
    for hidden in (
        margins,
        margins[0],
        margins.map(np.negative),
        *margins.groups([1, 1]),
        Sensitive.joined([margins, margins], np.add),
    ):
        refused(PrivacyError, "mechanisms only", hidden.expose)


def test_sensitive_values_do_not_show():
    secret = Sensitive(np.array([1234.5678, -77.25]))
    for text in (
        repr(secret),
        str(secret),
        f"{secret}",
        repr([secret]),
        repr({"a": secret}),
        repr(np.array(secret)),
    ):
        assert not re.search(r"1234|567|77|25", text)
    with pytest.raises(TypeError):
        f"{secret:.3f}"
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize(
    "attempt",
    [
        float,
        int,
        lambda secret: secret > 0,
        lambda secret: secret <= 0,
        lambda secret: 0 < secret,
        lambda secret: secret + 1,
        lambda secret: 2 * secret,
        lambda secret: -secret,
        abs,
        lambda secret: np.asarray(secret, dtype=np.float64),
        lambda secret: np.greater(secret, 0),
        jnp.asarray,
    ],
)
def test_sensitive_values_do_not_convert_or_compare(attempt):
    pytest.raises((TypeError, ValueError), attempt, Sensitive(np.array([1.0])))


def test_sensitive_values_decide_and_compare_nothing():
    one, other = Sensitive(np.array([1.0])), Sensitive(np.array([0.0]))
    for question in (
        lambda: bool(one),
        lambda: one == other,
        lambda: one != other,
        lambda: hash(one),
    ):
        pytest.raises(TypeError, question)


def test_plain_numbers_are_refused_in_a_private_session():
    pytest.raises(PrivacyError, session().evaluate, [Query(0, 1)])
    free = session(budget=jaxcd.NO_PRIVACY).evaluate([Query(0, 1)])
    assert np.isfinite(free.margin).all()


def test_session_refuses_an_inferred_domain_under_a_budget():
    inferred = jaxcd.Dataset.from_array(CODES)
    refused(PrivacyError, "declare", session, data=inferred)
    session(data=inferred, budget=jaxcd.NO_PRIVACY)


def test_sensitivity_of_a_test_without_one_is_an_error():
    for test in set(FREE_TESTS) & set(TABLE_TESTS):
        pytest.raises(SensitivityError, session(test).sensitivity)
    assert session().sensitivity().value <= 3


def test_whole_tables_for_releases():
    counts = session().view_counts([(1, 0), ()])
    expected = np.zeros((LEVELS[1], LEVELS[0]), dtype=np.int64)
    np.add.at(expected, (CODES[:, 1], CODES[:, 0]), 1)
    np.testing.assert_array_equal(exact_values(counts[0]), expected)
    assert exact_values(counts[1]) == len(CODES)
    assert isinstance(counts, Sensitive)
    assert session().view_cardinalities == LEVELS
    with pytest.raises(DomainError):
        session(FisherZ(), data=NUMERIC).view_cardinalities  # noqa: B018


def test_data_sets_and_sessions_do_not_print_values():
    codes = np.full((50, 2), 3, dtype=np.int32)
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Categorical(("p", "q", "r", "secretlevel")),
            "b": jaxcd.Ordinal((0, 1, 2, 987654)),
        }
    )
    data = coded(codes, domain)
    holder = session(data=data)
    holder.margins([Query(0, 1)])
    for thing in (data, holder, holder.margins([Query(0, 1)])):
        assert "secretlevel" not in repr(thing) and "987654" not in repr(thing)
        assert "3, 3" not in repr(thing)


def test_copies_stay_sensitive():
    twin = copy.copy(Sensitive(np.array([4321.0])))
    assert isinstance(twin, Sensitive) and "4321" not in repr(twin)
    refused(TypeError, "pickled", pickle.dumps, twin)
