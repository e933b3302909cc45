"""Jumps of a regression function: the search against brute force and planted thresholds, the terms
against their definition, the tests that use them against laws with thresholds in common."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.citests import Query, jumps
from jaxcd.citests.regressions import Regressions
from jaxcd.ops import double_precision


def orders(z: np.ndarray) -> list[jumps.Order]:
    return [jumps.order_of(column) for column in z.T]


def brute_force(z: np.ndarray, u: np.ndarray) -> float:
    """The largest C^2 of one column over every place and width, by its definition."""
    rows = np.argsort(z, kind="stable")
    z, u, n = z[rows], u[rows], len(u)
    best = 0.0
    for width in (16, 32, 64, 128, 256, 512, 1024):
        for k in range(width, n - width + 1):
            if z[k] > z[k - 1]:
                two = u[k - width : k + width]
                best = max(best, (two[width:].sum() - two[:width].sum()) ** 2 / (two**2).sum())
    return best


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(33, 400), st.integers(0, 3))
def test_the_largest_contrast_is_nearly_that_of_every_place(seed, n, decimals):
    """Not every place is looked at; what is found is never more, and hardly less."""
    rng = np.random.default_rng(seed)
    z, u = np.round(rng.normal(size=n), decimals), rng.uniform(-1, 1, n)
    u = u + (z > 0.3)
    order = jumps.order_of(z)
    square, row, place = jumps._Sums(u[None, order.rows], order.places).largest()
    truth = brute_force(z, u)
    assert square <= truth * (1 + 1e-9)
    assert square >= 0.7 * truth and row == 0
    if square:
        low, high = z[order.rows[place - 1]], z[order.rows[place]]
        assert low < high


def term_by_definition(z: np.ndarray, terms: list[jumps.Term]) -> np.ndarray:
    d = z.shape[1]
    found: list[np.ndarray] = []
    for term in terms:
        if term.by == 0:
            by = np.ones(len(z))
        elif term.by <= d:
            by = z[:, term.by - 1]
        else:
            by = found[term.by - d - 1]
        found.append(by * (z[:, term.column] > term.after))
    return np.column_stack(found)


def test_terms_are_products_and_go_through_their_table():
    z = np.random.default_rng(0).normal(size=(50, 3))
    terms = [jumps.Term(0, 0.1, 0), jumps.Term(1, -0.2, 3), jumps.Term(2, 0.0, 4)]
    assert jumps.terms_of(jumps.table_of(terms)) == tuple(terms)
    with double_precision():
        found = np.asarray(jumps.term_columns(jnp.asarray(z), jnp.asarray(jumps.table_of(terms))))
    np.testing.assert_array_equal(found[:, :3], term_by_definition(z, terms))
    assert found.shape == (50, jumps.MOST_TERMS) and not found[:, 3:].any()


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_planted_jumps_are_found_where_they_are(scale):
    """A jump, a change of slope, and a jump within a part of the rows; in any unit."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(2_000, 3))
    e = 0.5 * rng.normal(size=2_000)
    for rest, by in (((z[:, 0] > 0.4) * 1.0, 0), (np.sign(z[:, 0] - 0.4) * z[:, 2], 3)):
        (first, *_) = jumps.more_terms(z, orders(z), scale * (rest + e)[:, None], [])
        assert (first.column, first.by) == (0, by)
        between = (z[:, 0] > min(first.after, 0.4)) & (z[:, 0] <= max(first.after, 0.4))
        assert between.sum() <= 5
    known = [jumps.Term(0, 0.4, 0)]
    beyond = z[:, 0] > 0.4
    inner = np.where(beyond, (z[:, 1] > 0) - 0.5, 0.0) * 1.5
    (first, *_) = jumps.more_terms(z, orders(z), scale * (inner + e)[:, None], known)
    assert first.column == 1 and first.by == 4 and abs(first.after) < 0.05


def test_nothing_is_found_where_there_is_no_jump():
    """In few of 300 targets with errors of several laws, whose spread depends on Z or not."""
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        z = np.column_stack([rng.normal(size=1_500), rng.integers(0, 5, 1_500)])
        for rest in (
            rng.normal(size=1_500),
            rng.standard_cauchy(1_500),
            (0.2 + z[:, 0] ** 2) * (rng.exponential(size=1_500) - 1),
        ):
            found += bool(jumps.more_terms(z, orders(z), rest[:, None], []))
    assert found <= 20


@pytest.mark.parametrize(
    "rest", [np.zeros(300), np.r_[np.zeros(200), np.ones(100)], np.full(300, 2.0)]
)
def test_degenerate_residuals_and_columns_have_answers(rest):
    z = np.column_stack([np.zeros(300), np.arange(300) % 2, np.arange(300.0)])
    for term in jumps.more_terms(z, orders(z), rest[:, None], []):
        assert term.column > 0
    assert jumps.more_terms(z[:, :0], [], rest[:, None], []) == []
    assert jumps.more_terms(z[:20], orders(z[:20]), rest[:20, None], []) == []


def score(rng, n):
    """Both jump where a score of three columns passes a threshold."""
    z = rng.normal(size=(n, 3))
    high = z @ [1, 0.8, 0.6] > 0.5
    e, f = 0.5 * rng.normal(size=(2, n))
    return np.column_stack([2 * high + e, 2 * high + z[:, 0] + f, z])


def guideline(rng: np.random.Generator, n: int) -> np.ndarray:
    """A drug from 65 years on lowers x and raises y; both depend on age and weight besides."""
    age, weight = rng.uniform(20, 90, n), rng.normal(27, 4, n)
    old, heavy = age >= 65, weight > 30
    x = 120 + 0.3 * age - 10 * old + 8 * heavy + 10 * rng.normal(size=n)
    y = 5 * old + 0.1 * weight + 3 * heavy + 2 * rng.normal(size=n)
    return np.column_stack([x, y, age, weight])


def tree(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two columns that jump in a corner of Z."""
    z = rng.normal(size=(n, 2))
    corner = (z[:, 0] > 0.3) & (z[:, 1] > -0.2)
    e, f = 0.5 * rng.normal(size=(2, n))
    return np.column_stack([2 * corner + e, corner * 2.0 - (z[:, 0] > 0.3) + f, z])


def weekends(rng: np.random.Generator, n: int) -> np.ndarray:
    """Dates of five years; x and y are higher at weekends, and depend on age besides."""
    date, age = rng.integers(0, 5 * 365, n).astype(float), rng.uniform(20, 80, n)
    weekend = 1.0 * (date % 7 >= 5)
    e, f = 0.5 * rng.normal(size=(2, n))
    return np.column_stack([weekend + 0.02 * age + e, weekend + f, date, age])


def rejected(test, law, *, n: int, runs: int) -> int:
    found = 0
    for seed in range(runs):
        values = law(np.random.default_rng(seed), n)
        data = jaxcd.Dataset.from_array(values)
        prepared = test.prepare(data, key=jax.random.key(seed))
        query = Query.of(0, 1, range(2, values.shape[1]))
        bucket = prepared.bucket(query)
        found += bool(prepared.evaluate(bucket, [query], alpha=0.05).margin[0] > 0)
    return found


IN_COMMON = [
    (law, test, n)
    for law in (guideline, tree)
    for test, n in (
        (jaxcd.RCIT(), 250),
        (jaxcd.KCI(), 250),
        (jaxcd.RCIT(), 2_000),
        (jaxcd.KCI(), 2_000),
        (jaxcd.GCM(), 2_000),
    )
]
# Not by GCM, whose products have no bound: the rows beside a sum's threshold count fully.
IN_COMMON += [(score, jaxcd.RCIT(), 2_000), (score, jaxcd.KCI(), 250)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "test", "n"),
    IN_COMMON,
    ids=[f"{law.__name__}-{type(test).__name__}-{n}" for law, test, n in IN_COMMON],
)
def test_thresholds_in_common_are_not_called_dependence(law, test, n):
    """Without terms for jumps RCIT called .43 and 1.00 of these dependent at 2,000 rows, and all of
    the third without thresholds of a sum.  Of 25 at level .05 more than 5 have a chance of .001.
    """
    assert rejected(test, law, n=n, runs=25) <= 5


@pytest.mark.slow
def test_few_rows_of_a_smooth_law_get_no_terms_beforehand():
    """Steps beside a line would follow a sine, too; the smooth fit does it for less."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-2, 2, (300, 1))
    smooth, corner = np.sin(2 * z) + 0.3 * rng.normal(size=(300, 1)), tree(rng, 300)
    for values, expected in ((np.hstack([smooth, z]), False), (corner[:, [0, 2, 3]], True)):
        regressions = Regressions(values, rank=100)
        given = tuple(range(1, values.shape[1]))
        target = regressions.coordinates((0,), "target")
        (candidate,) = regressions.choose(given, target)
        assert (
            bool(regressions.first_jumps(given, candidate, target, np.zeros(len(given))))
            == expected
        )


@pytest.mark.slow
# jumps are looked for before the smooth fit where rows are few
@pytest.mark.parametrize(("n", "law"), [(300, score), (1_500, guideline), (1_500, weekends)])
def test_rows_in_blocks_get_the_same_terms(n, law):
    """On a mesh of one device; several give what one gives, in tests/data."""
    values = law(np.random.default_rng(3), n)
    data = jaxcd.Dataset.from_array(values)
    query = Query.of(0, 1, range(2, values.shape[1]))
    answers = []
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",))
    for rows in (data, data.on(mesh)):
        prepared = jaxcd.KCI().prepare(rows)
        answers.append(prepared.evaluate(prepared.bucket(query), [query], alpha=0.05).statistic[0])
    # weights of a sum end where a step of least squares brings nothing, a little apart
    assert answers[1] == pytest.approx(answers[0], rel=1e-3)


def test_a_batch_gives_what_one_by_one_gives():
    """The jumps of one target are not looked for in another; those of a spread are its own."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=1_200)
    values = np.column_stack(
        [np.sign(z) + 0.3 * rng.normal(size=1_200), np.tanh(z) + rng.normal(size=1_200), z]
    )
    regressions = Regressions(values, rank=100)
    targets = regressions.coordinates((0, 1), "target")
    both = regressions.standardised_residuals((2,), targets)
    for i in range(2):
        alone = Regressions(values, rank=100).standardised_residuals((2,), targets[:, [i]])
        # a factor of a narrow kernel leaves its rounding there
        np.testing.assert_allclose(both[:, i], alone[:, 0], rtol=0, atol=1e-5)
    assert regressions.more_jumps((2,), np.sign(z)[:, None] + values[:, :1] * 0.1, (), np.zeros(1))


def test_a_threshold_of_a_sum_is_found_and_no_column_is_blamed():
    """One term of the sum takes away what no threshold of a column does; where the sum is one of
    the columns, or nothing is seen, there is none.
    """
    rng = np.random.default_rng(6)
    values = score(rng, 3_000)
    regressions, given = Regressions(values, rank=100), (2, 3, 4)
    target = regressions.coordinates((0,), "target")
    (candidate,) = regressions.choose(given, target)
    weights = regressions.oblique(given, candidate, target[: regressions.n_choice])
    assert weights @ [1, 0.8, 0.6] > 0.99 * np.linalg.norm(weights) * np.linalg.norm([1, 0.8, 0.6])
    left = regressions.residuals(given, target)[:, 0]
    high = values[:, 2:] @ [1, 0.8, 0.6] > 0.5
    noise = 0.5 / values[:, 0].std()
    assert abs(left[high].mean() - left[~high].mean()) < 0.1 * noise
    assert left.std() < 1.15 * noise
    one = Regressions(
        np.column_stack([np.sign(values[:, 2]) + 0.1 * rng.normal(size=3_000), values[:, 2:]]),
        rank=100,
    )
    target = one.coordinates((0,), "target")
    (candidate,) = one.choose((1, 2, 3), target)
    assert not one.oblique((1, 2, 3), candidate, target[: one.n_choice]).any()


def test_equal_rows_have_equal_sums():
    z = np.tile(np.random.default_rng(0).normal(size=(7, 5)), (301, 1))
    found = jumps.with_sum(z, np.random.default_rng(1).normal(size=5))
    assert found.shape == (7 * 301, 6) and len(np.unique(found[:, 5])) == 7
    assert jumps.with_sum(z[:, :1], np.ones(1)).shape == (7 * 301, 1)


def test_labels_of_many_levels_take_no_minutes():
    """A label a row: neither jumps nor kernels of 299 indicators, and an answer."""
    n = 300
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=(n, 2)), np.arange(n)])
    regressions = Regressions(values, labels=[2], rank=100)
    assert {each.kernel for each in regressions.candidates((2,))} == {"none", "joint"}
    z = regressions.coordinates((2,), "raw")
    orders = [jumps.order_of(column) for column in z.T]
    assert jumps.more_terms(z, orders, np.sign(values[:, :1]), ()) == []
    assert np.isfinite(regressions.residuals((2,), values[:, :2])).all()
