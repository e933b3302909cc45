"""StratifiedTau: the statistic and its variance against brute force, sensitivity under attack, and
the level of what it releases.
"""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.citests.stratified_tau import _EXTRAPOLATED, _PLAIN, _cut
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import tails
from jaxcd.privacy import Accountant, Budget, Ledger, Relation
from tests.helpers import simulated

TAU = jaxcd.StratifiedTau()


def table(values: np.ndarray, *, bounded: bool = True) -> jaxcd.Dataset:
    """Columns x, y, z1, ..., of which those of Z lie in [-1, 1]."""
    size = values.shape[1] - 2
    columns = {name: jaxcd.Numeric() for name in "xy"}
    ends = (-1, 1) if bounded else ()
    columns |= {f"z{j}": jaxcd.Numeric(*ends) for j in range(size)}
    return jaxcd.Dataset.from_array(values, names=list(columns), domain=jaxcd.Domain(columns))


def query(size: int) -> Query:
    return Query.of(0, 1, range(2, 2 + size))


def by_hand(prepared, values: np.ndarray, n_bins: int) -> tuple[float, float]:
    """T and V from all pairs."""
    z = values[:, 2:]
    fine = np.minimum(((z + 1) / 2 * n_bins).astype(int), n_bins - 1)
    total = []
    for cells in (fine, fine // 2):
        same = (cells[:, None] == cells).all(axis=2)
        total.append(same / same.sum(axis=1, keepdims=True))
    a, b = (4 / 3, 1 / 3) if z.shape[1] > 1 else (1.0, 0.0)
    weights = a * total[0] - b * total[1]
    np.fill_diagonal(weights, 0)
    ranks = np.column_stack([prepared._rank(0), prepared._rank(1)])
    signs = np.sign(ranks[:, None] - ranks).prod(axis=2)
    variance = (weights.sum(axis=1) ** 2).sum() / 9 + 7 / 9 * (weights**2).sum() / 2
    return float((weights * signs).sum() / 2), float(variance)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("decimals", [0, 8])
def test_score_and_variance_are_those_of_all_pairs(size: int, decimals: int) -> None:
    values = np.random.default_rng(size).uniform(-1, 1, (90, 2 + size)).round(decimals)
    prepared = TAU.prepare(table(values))
    cut = _cut([jaxcd.Numeric(-1, 1)] * size, 90, 5)
    n_bins = {0: 1, 1: 18, 2: 4, 3: 2}[size]
    assert (cut.n_bins, cut.n_cells) == (n_bins, n_bins**size)
    found = prepared._score(query(size))
    assert (found.score, found.variance) == pytest.approx(by_hand(prepared, values, n_bins))
    if not size and decimals:
        tau = stats.kendalltau(values[:, 0], values[:, 1])
        assert found.score == pytest.approx(tau.statistic * 89 / 2)
        z = float(prepared.evaluate((), [query(0)], alpha=0.05).statistic[0])
        # V is that of two signs with one row in common, (n - 1) (2 n + 5) / (18 n)
        assert z == pytest.approx(found.score / math.sqrt(89 * 185 / (18 * 90)))


def test_the_variance_is_that_of_the_statistic_under_the_null() -> None:
    rng, scores = np.random.default_rng(3), []
    z = rng.uniform(-1, 1, (120, 2))
    for _ in range(600):
        values = np.column_stack([rng.normal(size=(120, 2)), z])
        found = TAU.prepare(table(values))._score(query(2))
        scores.append(found.score)
    # 600 draws: the spread of an estimated variance is 6 percent.
    assert np.var(scores) == pytest.approx(found.variance, rel=0.25)
    assert abs(np.mean(scores)) < 4 * math.sqrt(found.variance / 600)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2]), st.integers(0, 2))
def test_no_record_moves_score_variance_or_margin_by_more_than_stated(seed, size, decimals) -> None:
    """Columns with and without ties, full and empty cells, constant columns."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, (50, 2 + size)).round(decimals)
    if rng.random() < 0.3:
        values[:, int(rng.integers(2 + size))] = 0.5
    other = values.copy()
    other[int(rng.integers(50))] = rng.choice([-1.0, 0.0, 1.0], 2 + size)
    here, there = (TAU.prepare(table(each))._score(query(size)) for each in (values, other))
    assert abs(here.score - there.score) <= here.weights.score_moves
    assert abs(here.variance - there.variance) <= here.weights.variance_moves
    margins = [
        TAU.prepare(table(each)).evaluate(query(size).given, [query(size)], alpha=0.05).margin[0]
        for each in (values, other)
    ]
    assert abs(margins[0] - margins[1]) <= 1


def test_all_small_tables_keep_the_bounds_of_the_variance() -> None:
    """Adding a row to fine cells of 0 to 6 rows in coarse cells of up to three of them."""

    def variance(sizes: tuple[int, ...], a: float, b: float) -> float:
        n = sum(sizes)
        fine = np.repeat(np.arange(len(sizes)), sizes)
        weights = a * (fine[:, None] == fine) / np.array(sizes)[fine][:, None] - b / max(n, 1)
        weights = np.zeros((n, n)) + weights
        np.fill_diagonal(weights, 0)
        return (weights.sum(axis=1) ** 2).sum() / 9 + 7 / 9 * (weights**2).sum() / 2

    for weights in (_PLAIN, _EXTRAPOLATED):
        rises = []
        for sizes in itertools.product(range(7), repeat=3):
            more = (sizes[0] + 1, *sizes[1:])
            rises.append(variance(more, *weights) - variance(sizes, *weights))
        assert max(rises) - min(rises) <= weights.variance_moves + 1e-12
    assert _PLAIN.variance_moves == pytest.approx(11 / 36)
    assert (_PLAIN.score_moves, _EXTRAPOLATED.score_moves) == (3, pytest.approx(5))
    assert _EXTRAPOLATED.variance_moves == pytest.approx(0.9064, abs=5e-5)


def test_the_null_knows_the_noise() -> None:
    """p-values of what is released are uniform where noise, and where sampling, is the larger."""
    rng = np.random.default_rng(5)
    for epsilon in (0.2, 20.0):
        pvalues = []
        for seed in range(200):
            z = rng.uniform(-1, 1, 200)
            values = np.column_stack([z + rng.normal(size=200), -z + rng.normal(size=200), z])
            account = Accountant(Ledger(Budget(epsilon)), simulated(seed))
            bought = TAU.prepare(table(values)).buy(query(1), account, epsilon=epsilon, alpha=0.05)
            pvalues.append(math.exp(float(bought.log_pvalue[0])))
            assert (bought.margin[0] > 0) == (pvalues[-1] < 0.05)
            assert account.ledger.spent.epsilon == epsilon
        assert stats.kstest(pvalues, "uniform").pvalue > 0.001


def test_normal_and_laplace_noise_together() -> None:
    """Against a numerical integral, and the two laws alone."""
    for t, variance, scale in itertools.product((0.0, 0.7, 3.0), (0.5, 4.0), (0.2, 2.0)):
        at = np.linspace(-60, 60, 240_001)
        density = np.exp(-(at**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        tail = np.where(
            at < t, np.exp(-(t - at) / scale) / 2, 1 - np.exp(-np.abs(at - t) / scale) / 2
        )
        found = tails.normal_laplace_log_pvalue(-t, variance, scale)
        expected = 2 * float(np.sum(density * tail) * (at[1] - at[0]))
        assert math.exp(found) == pytest.approx(expected, rel=1e-5)
    far = tails.normal_laplace_log_pvalue(1e4, 100.0, 2.0)
    assert far == pytest.approx(-5e3 + 100 / 8)
    assert tails.normal_laplace_log_pvalue(2.0, 1.0, 0.0) == pytest.approx(
        float(tails.normal_two_sided_log_pvalue(np.array(2.0)))
    )
    assert tails.normal_laplace_log_pvalue(0.0, 0.0, 0.0) == 0.0


def test_it_needs_few_rows_and_little_budget() -> None:
    rng, found = np.random.default_rng(7), []
    for dependent in (False, True):
        e, f, z = rng.normal(size=1000), rng.normal(size=1000), rng.uniform(-1, 1, 1000)
        values = np.column_stack([np.sin(3 * z) + e, z**2 + 0.5 * dependent * e + f, z])
        answer = jaxcd.ci_test(
            table(values), "x", "y", given=["z0"], test=TAU, budget=Budget(0.5), noise=simulated(1)
        )
        found.append(answer.independent)
        assert answer.pvalue is not None and answer.spent.epsilon == 0.5
    assert found == [True, False]


def test_a_search_takes_its_answers() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 3000)
    b = np.clip(np.sin(2 * a) + 0.3 * rng.normal(size=3000), -3, 3)
    c = np.clip(np.tanh(b) + 0.3 * rng.normal(size=3000), -3, 3)
    columns = {name: jaxcd.Numeric(-3, 3) for name in "abc"}
    data = jaxcd.Dataset.from_array(np.column_stack([a, b, c]), domain=jaxcd.Domain(columns))
    for decider in (jaxcd.NoisyThreshold(n_queries=12), jaxcd.SparseVector()):
        run = jaxcd.pc(
            data, test=TAU, decider=decider, budget=Budget(20.0), key=None, noise=simulated(3)
        )
        assert run.separating_sets == {frozenset({"a", "c"}): ("b",)}
        assert run.cost.epsilon <= 20


def test_refusals() -> None:
    with pytest.raises(OptionError, match="rows_per_cell = 1"):
        jaxcd.StratifiedTau(rows_per_cell=1)
    values = np.random.default_rng(0).uniform(-1, 1, (400, 6))
    with pytest.raises(DomainError, match="'z0' has none"):
        TAU.prepare(table(values, bounded=False)).admissible(query(1))
    with pytest.raises(DomainError, match="'x' has none"):
        TAU.check_search(table(values).domain, max_level=None)
    TAU.check_search(table(values).domain, max_level=0)
    prepared = TAU.prepare(table(values))
    assert prepared.admissible(query(3)) and not prepared.admissible(query(4))
    assert not TAU.prepare(table(values[:39])).admissible(query(3))
    few = prepared.restrict(np.arange(400) < 30)._score(query(3))
    assert math.isfinite(few.score) and few.variance >= 0
    bound = TAU.margin_sensitivity(alpha=0.05, n_samples=9, relation=Relation.REPLACE_ONE)
    assert bound is not None and bound.value == 1


def test_discrete_columns_are_cells_and_levels() -> None:
    """A column of Z with levels makes strata: as two tables, one beside the other."""
    rng = np.random.default_rng(2)
    x, y, z = rng.normal(size=(3, 80))
    group = np.repeat([0, 1], 40)
    domain = jaxcd.Domain(
        {
            "x": jaxcd.Numeric(),
            "y": jaxcd.Numeric(),
            "z": jaxcd.Numeric(-4, 4),
            "g": jaxcd.Categorical((0, 1)),
        }
    )
    data = jaxcd.Dataset.from_array(np.column_stack([x, y, z, group]), domain=domain)
    whole = TAU.prepare(data)._score(Query.of(0, 1, (3,)))
    parts = [TAU.prepare(data).restrict(group == k)._score(Query.of(0, 1)) for k in (0, 1)]
    assert whole.score == pytest.approx(sum(part.score for part in parts))
    assert whole.variance == pytest.approx(sum(part.variance for part in parts))
    assert jax.numpy.isfinite(TAU.prepare(data)._score(Query.of(0, 1, (2, 3))).score)
