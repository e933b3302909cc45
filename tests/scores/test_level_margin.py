"""What columns of many levels pay: the formula, equal totals in a class, and what is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import jaxcd
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, Budget
from jaxcd.releases import Histogram, Marginals, MeasurementErrorScore, SetScore
from jaxcd.releases.tables.set_function import SetFunction
from jaxcd.scores import BICScore
from jaxcd.scores.equivalence import equivalence_keys
from jaxcd.scores.level_margin import CHANCE_FIT, FULL_LEVELS, counted_levels, mean_and_margin
from tests.brute_force import all_dags, class_totals
from tests.helpers import coded, simulated

LEVELS = (2, 7, 5, 12)
ALL = all_dags(4)


def rows(n: int = 5000, seed: int = 0) -> jaxcd.Dataset:
    """A chain of columns of different numbers of levels."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.clip(3 * first + rng.integers(0, 4, n), 0, 6)
    third = np.clip(second - rng.integers(0, 4, n), 0, 4)
    fourth = np.clip(2 * third + rng.integers(0, 4, n), 0, 11)
    return coded(np.column_stack([first, second, third, fourth]), *LEVELS)


def price(adjacency: np.ndarray, levels: tuple[int, ...], a: float, m: int | None) -> float:
    """By its definition, node by node."""
    total = 0.0
    for v in range(len(levels)):
        whole, counted = 1.0, 1.0
        for u in np.flatnonzero(adjacency[:, v]):
            whole *= levels[u]
            counted *= effective(levels[u], m)
        total += 0.58 * (levels[v] - 1) * whole
        total += (a - 0.58) * (effective(levels[v], m) - 1) * counted
    return total


def effective(k: int, m: int | None) -> float:
    return k if m is None or k <= m else min(k, 1 + max(m - 1, math.sqrt(2 * (k - 1))))


def log_likelihood(counts: np.ndarray, adjacency: np.ndarray) -> float:
    total = 0.0
    for v in range(counts.ndim):
        parents = np.flatnonzero(adjacency[:, v]).tolist()
        others = tuple(j for j in range(counts.ndim) if j != v and j not in parents)
        family = np.moveaxis(counts.sum(axis=others), sorted([v, *parents]).index(v), -1).reshape(
            -1, counts.shape[v]
        )
        total -= sum(row.sum() * stats.entropy(row) for row in family if row.sum() > 0)
    return total


def test_levels_are_counted_whole_up_to_m_and_by_a_root_from_there():
    assert counted_levels((1, 2, 3, 4), 4) == (1, 2, 3, 4)
    several = counted_levels(tuple(range(2, 400)), 4)
    steps = np.diff(several)
    assert (steps >= 0).all() and steps.max() <= 1
    assert several[-1] - 1 == pytest.approx(math.sqrt(2 * 398))
    assert counted_levels((3, 4, 5), 2) == pytest.approx((3, 1 + math.sqrt(6), 1 + math.sqrt(8)))
    assert counted_levels((50, 3), None) == (50, 3)
    for low in (0.2, 0.5, 3.0):
        assert sum(mean_and_margin(low, 0.5)) == pytest.approx(low)


@pytest.mark.parametrize("m", [None, 2, 4, 6])
def test_without_noise_the_set_score_is_the_likelihood_less_the_price(m: int | None):
    data = rows()
    bought = jaxcd.release(data, Marginals(max_parents=3, max_candidates=3), budget=NO_PRIVACY)
    score = SetScore(bought, max_parents=3, full_levels=m)
    counts = data.counts([(0, 1, 2, 3)])[0].reshape(LEVELS)
    a = math.log(data.n_samples) / 2
    chosen = [g for g in ALL[::23] if np.isfinite(score.total(g))]
    assert len(chosen) > 10
    expected = [log_likelihood(counts, g) - price(g, LEVELS, a, m) for g in chosen]
    assert np.allclose(score.totals(np.array(chosen)), expected, rtol=0, atol=2e-3)
    table = BICScore.of_table(
        counts.astype(float),
        names=score.names,
        n_samples=data.n_samples,
        max_parents=3,
        full_levels=m,
    )
    assert np.allclose(table.totals(np.array(chosen)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_equivalent_graphs_pay_the_same(epsilon: float | None):
    budget = NO_PRIVACY if epsilon is None else Budget(epsilon)
    noise = None if epsilon is None else simulated()
    bought = jaxcd.release(rows(), Histogram(), budget=budget, noise=noise)
    score = MeasurementErrorScore(bought)
    prices: dict[bytes, list[float]] = {}
    for key, found in zip(equivalence_keys(ALL), score.prices(ALL).tolist(), strict=True):
        prices.setdefault(key, []).append(found)
    assert len(prices) == 185
    assert all(np.ptp(several) < 1e-8 for several in prices.values())
    a = math.log(bought.n_samples) / 2
    for adjacency in ALL[::31]:
        expected = price(adjacency, LEVELS, a, FULL_LEVELS)
        assert score.prices(adjacency[None])[0] == pytest.approx(expected)


def test_equivalent_graphs_score_the_same_under_noise():
    kind = Marginals(max_parents=3, max_candidates=3)
    bought = jaxcd.release(rows(), kind, budget=Budget(4.0, 1e-6), noise=simulated())
    score = SetScore(bought, max_parents=3)
    finite = np.array([g for g in ALL if np.isfinite(score.total(g))])
    assert len(class_totals(score, finite, tolerance=1e-6)) > 20


def test_no_poisson_count_gains_more_by_chance():
    means = np.geomspace(0.01, 100, 400)
    counts = np.arange(300)[:, None]
    gains = special.xlogy(counts, counts / means) - counts + means
    average = (stats.poisson.pmf(counts, means) * gains).sum(axis=0)
    assert 0.995 * CHANCE_FIT < average.max() <= 1.001 * CHANCE_FIT


@pytest.mark.parametrize(("k", "n"), [(60, 4_700), (200, 52_000), (400, 210_000)])
@pytest.mark.parametrize("epsilon", [None, 4.0])
def test_chance_fits_of_many_cells_of_one_row_join_nothing(k: int, n: int, epsilon: float | None):
    """Of 1.3 rows a cell the likelihood ratio is .58 a number, more than the mean of chi-square."""
    for seed in range(2):
        data = coded(np.random.default_rng(seed).integers(0, k, (n, 2)), k, k)
        budget = NO_PRIVACY if epsilon is None else Budget(epsilon, 1e-9)
        noise = None if epsilon is None else simulated(seed)
        bought = jaxcd.release(data, Marginals(), budget=budget, noise=noise)
        assert jaxcd.search(bought).graph.n_edges == 0


def test_the_price_of_noise_has_its_mean_whole():
    """What noise adds to the likelihood is paid for columns of any number of levels."""
    kind = Marginals(max_parents=2)
    bought = jaxcd.release(rows(), kind, budget=Budget(1.0, 1e-6), noise=simulated())
    values = SetFunction(bought, full_levels=4)
    terms = values.terms((1, 3))
    share = effective(7, 4) / 7 * effective(12, 4) / 12
    for b in (0.0, 0.5, 1.0, 5.0):
        charged = -(values.value((1, 3), cell_price=0.0, noise_price=b) - terms.entropy)
        expected = min(b, 1.5) + max(b - 1.5, 0) * share
        assert charged == pytest.approx(expected * terms.inflation / 2)


@pytest.mark.parametrize("wrong", [1, 2.5, math.inf, True, "4"])
def test_wrong_numbers_of_levels(wrong: object):
    bought = jaxcd.release(rows(), Histogram(), budget=NO_PRIVACY)
    marginals = jaxcd.release(rows(), Marginals(), budget=NO_PRIVACY)
    for score in (
        lambda: SetScore(marginals, full_levels=wrong),
        lambda: MeasurementErrorScore(bought, full_levels=wrong),
        lambda: jaxcd.discovery.search_histogram(bought, full_levels=wrong),
        lambda: jaxcd.discovery.search_marginals(marginals, full_levels=wrong),
    ):
        with pytest.raises(OptionError, match="full_levels"):
            score()


def shifted(n: int, k: int, seed: int) -> np.ndarray:
    """x, y = x + a few levels, z of its own."""
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, k, (2, n))
    y = np.clip(x + rng.integers(-k // 3, k // 3 + 1, n), 0, k - 1)
    return np.column_stack([x, y, z])


@pytest.mark.parametrize(
    ("kind", "k", "n"),
    [(Histogram(), 16, 1000), (Marginals(), 30, 2000)],
    ids=["histogram", "marginals"],
)
def test_an_edge_between_many_levels_is_found_that_bic_refuses(kind, k: int, n: int):
    """BIC asks (k - 1)^2 log(n) / 2 nats, 777 for 16 levels and 3,196 for 30."""
    search = {16: jaxcd.discovery.search_histogram, 30: jaxcd.discovery.search_marginals}[k]
    for seed in range(3):
        data = coded(shifted(n, k, seed), k, k, k)
        bought = jaxcd.release(data, kind, budget=Budget(8.0, 1e-6), noise=simulated(seed))
        found = jaxcd.search(bought).graph
        assert found.n_edges == 1 and found.has_edge("v0", "v1")
        assert search(bought).graph == found
        assert search(bought, full_levels=None).graph.n_edges == 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 20_000])
@pytest.mark.parametrize("kind", [Histogram(max_cells=10_000), Marginals()], ids=repr)
def test_independent_columns_of_many_rare_levels_are_not_joined(kind, n: int):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        columns = []
        for k in (40, 25, 9):
            shares = 1 / np.arange(1, k + 1)
            columns.append(rng.choice(k, size=n, p=shares / shares.sum()))
        data = coded(np.column_stack(columns), 40, 25, 9)
        for epsilon in (1.0, 8.0):
            budget = Budget(epsilon, 1e-6)
            bought = jaxcd.release(data, kind, budget=budget, noise=simulated(seed))
            assert jaxcd.search(bought).graph.n_edges == 0
