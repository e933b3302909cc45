"""Tables of available cases: against complete data, brute force and expectation-maximisation by
hand.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.ops.available_cases import AvailableTables, completed, fit_margins, observed

LEVELS = (2, 3, 2, 2)


def _joint(seed: int) -> np.ndarray:
    """A joint distribution of four columns: 0 -> 1 -> 2, 3 apart."""
    rng = np.random.default_rng(seed)
    a, b, c, d = (
        rng.dirichlet(np.full(k, 4.0), size=s) for k, s in ((2, 1), (3, 2), (2, 3), (2, 1))
    )
    return np.einsum("a,ab,bc,d->abcd", a[0], b, c, d[0])


def _with_holes(joint: np.ndarray, rates: tuple[float, ...]) -> np.ndarray:
    """What is expected when cells are missing completely at random."""
    for axis, rate in enumerate(rates):
        if rate:
            part = joint * (1 - rate), joint.sum(axis=axis, keepdims=True) * rate
            joint = np.concatenate(part, axis=axis)
    return joint


def _tables(joint: np.ndarray, can_miss: tuple[bool, ...], n: int) -> AvailableTables:
    def table(columns):
        others = tuple(j for j in range(joint.ndim) if j not in columns)
        return joint.sum(axis=others)

    pairs = list(itertools.combinations(range(joint.ndim), 2))
    return AvailableTables(table, can_miss=can_miss, n_samples=n, pairs=pairs)


@given(st.integers(0, 50), st.lists(st.sampled_from([0.0, 0.1, 0.5]), min_size=4, max_size=4))
@settings(max_examples=20, deadline=None)
def test_what_is_missing_at_random_leaves_the_tables_as_they_were(seed, rates) -> None:
    n, truth = 10_000, _joint(seed)
    holes = _with_holes(truth * n, tuple(rates))
    tables = _tables(holes, tuple(rate > 0 for rate in rates), n)
    for size in (1, 2, 3, 4):
        for columns in itertools.combinations(range(4), size):
            others = tuple(j for j in range(4) if j not in columns)
            expected = truth.sum(axis=others) * tables.n_samples
            assert np.allclose(tables.nonnegative(columns), expected, atol=0.02)
            assert np.allclose(tables.table(columns), expected, atol=0.02)
    assert np.allclose(completed(holes, [rate > 0 for rate in rates]) / n, truth, atol=1e-5)


def test_tables_of_a_sample_agree_with_each_other() -> None:
    rng = np.random.default_rng(0)
    holes = rng.multinomial(5_000, _with_holes(_joint(1), (0.2, 0.3, 0.1, 0.4)).ravel())
    tables = _tables(holes.reshape([k + 1 for k in LEVELS]).astype(float), (True,) * 4, 5_000)
    for columns in itertools.combinations(range(4), 3):
        table = tables.nonnegative(columns)
        for place in range(3):
            facet = columns[:place] + columns[place + 1 :]
            assert np.abs(table.sum(axis=place) - tables.nonnegative(facet)).max() < 1.0


def test_a_likelihood_ratio_of_independent_columns_stays_small() -> None:
    """Balov 2013: with tables of different rows it grows with the root of n."""
    ratios, naive = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = 40_000
        holes = rng.multinomial(n, _with_holes(_joint(2), (0.3, 0.3, 0.3, 0.3)).ravel())
        holes = holes.reshape([k + 1 for k in LEVELS]).astype(float)
        tables = _tables(holes, (True,) * 4, n)

        def h(columns, tables=tables):
            t = tables.nonnegative(columns)
            return float((t * np.log(np.maximum(t, 1e-300))).sum())

        def mean(columns, over, holes=holes):
            others = tuple(j for j in range(4) if j not in columns)
            part = observed(holes.sum(axis=others), [True] * len(columns))
            rest = part.sum(axis=columns.index(over), keepdims=True)
            return float((part * np.log(np.maximum(part, 1e-9) / rest)).sum() / part.sum())

        # 0 -> 1 -> 2: given 1, 2 does not depend on 0
        ratios.append(2 * (h((0, 1, 2)) - h((0, 1)) - h((1, 2)) + h((1,))))
        naive.append(2 * tables.n_samples * (mean((0, 1, 2), 2) - mean((1, 2), 2)))
    assert min(ratios) > -1.0
    assert 1 < np.mean(ratios) < 10  # three parameters, from fewer rows than n'
    assert np.std(naive) > 5 * np.std(ratios)


def test_selection_by_a_seen_column_leaves_independence() -> None:
    """x is missing more often where z is high: x and z, independent, stay so."""
    x, z = np.array([0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    rate = np.array([0.0, 0.1, 0.8])
    table = np.zeros((3, 3))
    table[:2] = np.outer(x, z * (1 - rate))
    table[2] = z * rate
    tables = AvailableTables(
        lambda columns: table.sum(axis=tuple(j for j in (0, 1) if j not in columns)) * 1e4,
        can_miss=(True, False),
        n_samples=10_000,
        pairs=[(0, 1)],
    )
    found = tables.nonnegative((0, 1))
    assert np.allclose(found, np.outer(x, z) * tables.n_samples, atol=0.01)
    assert np.allclose(completed(table * 1e4, [True, False]), np.outer(x, z) * 1e4, atol=0.01)


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_fitted_margins_are_met_and_odds_ratios_stay(seed) -> None:
    rng = np.random.default_rng(seed)
    table = rng.uniform(1, 5, size=(2, 3))
    rows, columns = rng.uniform(1, 3, size=2), rng.uniform(1, 3, size=3)
    columns *= rows.sum() / columns.sum()
    fitted = table * fit_margins(table, [columns, rows])
    assert np.allclose(fitted.sum(axis=1), rows, rtol=1e-4)
    assert np.allclose(fitted.sum(axis=0), columns, rtol=1e-4)
    for t in (table, fitted):
        t /= t[:, :1]
        t /= t[:1]
    assert np.allclose(table, fitted)


def test_cells_near_the_smallest_float_do_not_warn() -> None:
    table, margin = np.array([[1e-320, 0.0], [0.0, 5.0]]), np.array([2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = fit_margins(table, [margin, margin])
    assert np.isfinite(weights).all()


def test_what_may_not_be_met_ends_all_the_same() -> None:
    weights = fit_margins(np.array([[1.0, 0.0], [0.0, 0.0]]), [np.array([1.0, 3.0]), np.ones(2)])
    assert np.isfinite(weights).all() and (weights >= 0).all()


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_what_may_not_be_met_does_not_depend_on_the_order_of_the_axes(seed) -> None:
    rng = np.random.default_rng(seed)
    table = rng.uniform(1, 5, size=(2, 3, 3)) * (rng.random((2, 3, 3)) < 0.4)
    other = rng.dirichlet(np.ones(18)).reshape(2, 3, 3) * max(table.sum(), 1.0)
    fitted = fit_margins(table, [other.sum(axis=axis) for axis in range(3)]) * table
    for order in itertools.permutations(range(3)):
        turned = table.transpose(order)
        margins = [other.transpose(order).sum(axis=axis) for axis in range(3)]
        again = fit_margins(turned, margins) * turned
        assert np.allclose(again, fitted.transpose(order), atol=2e-2 * max(table.sum(), 1.0))


@pytest.mark.parametrize("rates", [(0.5, 0.0, 0.0, 0.0), (0.2, 0.2, 0.2, 0.2)])
def test_the_price_counts_fewer_rows(rates) -> None:
    n = 10_000
    tables = _tables(_with_holes(_joint(3) * n, rates), tuple(rate > 0 for rate in rates), n)
    complete = _tables(_joint(3) * n, (False,) * 4, n)
    assert complete.price((0, 1)) == 6.0
    whole = tables.price((0, 1, 2))
    by_hand = 1.0
    for size in (1, 2, 3):
        for columns in itertools.combinations((0, 1, 2), size):
            known = n * np.prod([1 - rates[j] for j in columns])
            free = np.prod([LEVELS[j] - 1 for j in columns])
            by_hand += free * max(1.0, tables.n_samples / known)
    assert whole == pytest.approx(by_hand)
