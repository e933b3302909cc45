"""The measurement-error likelihood against direct summation, its fits against what must hold for
them.
"""

from __future__ import annotations

import itertools

import jax
import mpmath
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import jaxcd
from jaxcd.data import networks
from jaxcd.discovery import score_graph, search_histogram
from jaxcd.errors import OptionError
from jaxcd.ops.nearest_table import nearest_table
from jaxcd.privacy import NO_PRIVACY, Budget
from jaxcd.releases import Histogram, MeasurementErrorScore, ReleasedHistogram
from jaxcd.releases.tables.expectation_maximisation import NoisyTable
from jaxcd.releases.tables.noisy_counts import TabulatedCounts, noisy_count
from jaxcd.scores import BICScore
from tests.helpers import simulated


def direct(y: int, mu: float, scale: float) -> tuple[float, float]:
    """log sum_N Poisson(N; mu) DiscreteLaplace(y - N; scale) and the mean of N, term by term in 30
    digits.
    """
    with mpmath.workdps(30):
        q, m = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(mu)
        spread = 12 * float(mpmath.sqrt(m)) + 40 * scale + 60
        first, last = max(0, int(min(mu, max(y, 0)) - spread)), int(max(mu, y) + spread)
        term = mpmath.exp(first * mpmath.log(m) - m - mpmath.loggamma(first + 1))
        total = weighted = mpmath.mpf(0)
        for count in range(first, last):
            joint = term * q ** abs(y - count)
            total, weighted = total + joint, weighted + count * joint
            term = term * m / (count + 1)
        return float(mpmath.log(total * (1 - q) / (1 + q))), float(weighted / total)


CASES = [
    (0, 0.01),
    (0, 5.0),
    (5, 0.1),
    (7, 1e-8),
    (3, 40.0),
    (90, 1.0),
    (20, 400.0),
    (100, 100.0),
    (150, 90.0),
    (-1, 2.0),
    (-30, 3.0),
    (-5, 300.0),
    (1000, 1500.0),
    (20_000, 20_100.0),
    (20_000, 19_000.0),
    (20_400, 20_000.0),
]


@pytest.mark.parametrize("scale", [0.0015, 0.005, 0.02, 0.027, 0.05, 0.2, 2.0, 6.7, 20.0])
def test_likelihood_and_mean_are_the_sums(scale: float):
    for y, mu in CASES:
        log_f, mean = noisy_count(np.array([float(y)]), np.array([mu]), scale)
        expected_log_f, expected_mean = direct(y, mu, scale)
        assert log_f[0] == pytest.approx(expected_log_f, abs=1e-8, rel=1e-10), (y, mu)
        assert mean[0] == pytest.approx(expected_mean, rel=1e-7, abs=1e-12), (y, mu)


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e12, 1e15, 2.0**54])
def test_noise_that_drowns_the_rows_leaves_what_little_it_leaves(scale: float):
    """Of numbers as large as the noise, y log(y), no difference may be taken."""
    for y in (-3, 0, 1, 60, 121, 10_000, int(3 * scale)):
        for mu in (0.01, 5.0, 60.0):
            log_f, mean = noisy_count(np.array([float(y)]), np.array([mu]), scale)
            with mpmath.workdps(60):
                q, m = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(mu)
                joint = [
                    mpmath.exp(-m) * m**count / mpmath.factorial(count) * q ** abs(y - count)
                    for count in range(400)
                ]
                norm = mpmath.log((1 - q) / (1 + q))
                expected = float(mpmath.log(mpmath.fsum(joint)) + norm)
                weighted = mpmath.fsum(count * part for count, part in enumerate(joint))
            assert log_f[0] == pytest.approx(expected, rel=1e-14, abs=1e-10), (y, mu)
            assert mean[0] == pytest.approx(float(weighted / mpmath.fsum(joint)), rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 7.0, 60.0])
def test_it_is_a_distribution(mu: float):
    y = np.arange(-900, 1200).astype(float)
    log_f, mean = noisy_count(y, np.full(y.shape, mu), 10.0)
    assert np.exp(log_f).sum() == pytest.approx(1.0, abs=1e-10)
    # the law of total expectation
    assert (np.exp(log_f) * mean).sum() == pytest.approx(mu, rel=1e-9)


def test_an_empty_cell_is_pure_noise():
    y = np.array([-2.0, 0.0, 3.0])
    log_f, mean = noisy_count(y, np.zeros(3), 2.0)
    q = np.exp(-0.5)
    assert log_f == pytest.approx(np.log((1 - q) / (1 + q) * q ** np.abs(y)), rel=1e-12)
    assert not mean.any()


def test_without_noise_it_is_poisson():
    log_f, mean = noisy_count(np.array([3.0, 0.0, -1.0]), np.array([2.0, 0.5, 1.0]), 0.0)
    assert log_f[:2] == pytest.approx([np.log(np.exp(-2) * 8 / 6), -0.5]) and log_f[2] == -np.inf
    assert mean[:2].tolist() == [3.0, 0.0]


@given(st.integers(-50, 3000), st.floats(1e-3, 4000), st.floats(0.1, 40))
@settings(max_examples=150)
def test_the_mean_is_the_slope(y: int, mu: float, scale: float):
    """d log f / d log mu = E[N | y] - mu, for every Poisson mixture."""
    step = 1e-4
    around = noisy_count(
        np.full(3, float(y)), mu * np.exp(step * np.array([-1.0, 0.0, 1.0])), scale
    )
    slope = (around[0][2] - around[0][0]) / (2 * step)
    assert slope == pytest.approx(around[1][1] - mu, rel=1e-4, abs=1e-4 * (1 + mu))


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0, 1e4, 1e8])
def test_the_table_agrees_with_the_formula(scale: float):
    rng = np.random.default_rng(1)
    y = np.array([-40.0, -1.0, 0.0, 1.0, 7.0, 60.0, 900.0, 30_000.0])
    mu = np.maximum(y, 0) * np.exp(rng.normal(scale=0.3, size=(400, 8))) + rng.exponential(
        min(3 * scale, 1e3), size=(400, 8)
    )
    for approximate, exact in zip(
        TabulatedCounts(y, scale, most=mu.max())(mu), noisy_count(y, mu, scale), strict=True
    ):
        assert approximate == pytest.approx(exact, abs=2e-3, rel=1e-5)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-8, 1e-12, 1e-16])
def test_noise_of_any_size_costs_no_more_than_the_table(epsilon: float):
    """The tables of a count end at the number of rows, not where the noise ends."""
    score = release("cancer", n=500, epsilon=epsilon, seed=0)
    counts = TabulatedCounts(
        np.array([0.0, 3.0, 2 / epsilon, 20 / epsilon]), 2 / epsilon, most=500.0
    )
    assert counts._n_points <= 8 * (23 + 8) + 2
    assert not search_histogram(score).graph.marks.any()


def release(name: str, *, n: int, epsilon: float | None, seed: int) -> ReleasedHistogram:
    data = networks.load(name).sample(n, key=jax.random.key(seed))
    if epsilon is None:
        return Histogram().release(data, budget=NO_PRIVACY)
    return Histogram().release(data, budget=Budget(epsilon), noise=simulated(seed + 1))


def random_dags(d: int, number: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(number):
        order = rng.permutation(d)
        upper = np.triu(rng.random((d, d)) < 0.35, k=1)
        graph = np.zeros((d, d), dtype=bool)
        graph[np.ix_(order, order)] = upper
        graphs.append(graph)
    return np.array(graphs)


@pytest.mark.parametrize("epsilon", [3.0, 0.3, 0.05])
def test_the_likelihood_never_falls(epsilon: float):
    noisy = release("survey", n=3000, epsilon=epsilon, seed=3)
    table = NoisyTable(noisy.values, n_samples=noisy.n_samples, scale=noisy.scale)
    for graph in random_dags(6, 4, seed=0):
        steps = np.diff(table.trace(graph, n_steps=60))
        assert steps.min() > -1e-8 and steps.max() > 0.1


def test_a_fit_is_a_maximum():
    """Two dependent binary columns: three free parameters, maximised by another optimiser on the
    direct formula.
    """
    rng = np.random.default_rng(5)
    values = np.array([[220, 90], [40, 150]]) + rng.integers(-8, 9, (2, 2))
    table = NoisyTable(values, n_samples=500, scale=4.0)
    fit = table.fit(
        np.array([[[False, True], [False, False]], [[False, False], [False, False]]]),
        tolerance=1e-9,
    )

    def negative(logits: np.ndarray) -> float:
        weights = np.exp(np.append(logits, 0.0))
        return -float(
            noisy_count(values.ravel().astype(float), 500 * weights / weights.sum(), 4.0)[0].sum()
        )

    best = min(
        minimize(
            negative,
            rng.normal(size=3),
            method="Nelder-Mead",
            options={"fatol": 1e-10, "xatol": 1e-8},
        ).fun
        for _ in range(4)
    )
    assert fit.log_likelihood[0] == pytest.approx(-best, abs=1e-5)
    assert fit.log_likelihood[1] < fit.log_likelihood[0] - 5  # independence does not fit
    assert fit.means.sum(axis=1) == pytest.approx(500)
    a, b = fit.means[1].reshape(2, 2)
    assert a[0] * b[1] == pytest.approx(a[1] * b[0])


def test_without_noise_differences_are_those_of_bic():
    exact = release("survey", n=2000, epsilon=None, seed=7)
    score = MeasurementErrorScore(exact)
    bic = BICScore.of_table(exact.values, names=exact.names, n_samples=exact.n_samples)
    graphs = random_dags(6, 12, seed=2)
    ours, theirs = score.totals(graphs), bic.totals(graphs)
    assert ours - ours[0] == pytest.approx(theirs - theirs[0], abs=1e-6)
    assert np.ptp(theirs) > 30


def test_little_noise_is_like_none():
    data = networks.load("cancer").sample(5000, key=jax.random.key(0))
    little = Histogram().release(data, budget=Budget(30.0), noise=simulated())
    score, bic = MeasurementErrorScore(little), BICScore.of_data(data)
    graphs = random_dags(5, 8, seed=3)
    ours, theirs = score.totals(graphs), bic.totals(graphs)
    assert ours - ours[0] == pytest.approx(theirs - theirs[0], abs=0.05)


def test_equivalent_dags_fit_equally():
    noisy = release("cancer", n=20_000, epsilon=0.3, seed=2)
    table = NoisyTable(noisy.values, n_samples=noisy.n_samples, scale=noisy.scale)
    chain, fork, collider = np.zeros((3, 5, 5), dtype=bool)
    chain[0, 2] = chain[2, 3] = True
    fork[2, 0] = fork[2, 3] = True
    collider[0, 2] = collider[3, 2] = True
    fits = table.fit(np.array([chain, fork, collider]), tolerance=1e-6)
    assert fits.log_likelihood[0] == pytest.approx(fits.log_likelihood[1], abs=1e-6)
    assert abs(fits.log_likelihood[2] - fits.log_likelihood[0]) > 0.1


@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_a_race_ends_as_the_full_fits_do(epsilon: float):
    noisy = release("cancer", n=20_000, epsilon=epsilon, seed=11)
    graphs = random_dags(5, 80, seed=4)
    racing, full = MeasurementErrorScore(noisy), MeasurementErrorScore(noisy)
    totals = full.totals(graphs)
    place, value = racing.best(graphs)
    assert value == pytest.approx(totals.max(), abs=2e-2) and totals[place] == pytest.approx(
        totals.max(), abs=2e-2
    )
    assert racing.n_steps < full.n_steps
    # A later race among the losers is as right: what was given up is taken up again.
    losers = np.flatnonzero(totals < totals.max() - 0.1)
    place, value = racing.best(graphs[losers])
    assert value == pytest.approx(totals[losers].max(), abs=2e-2)


def test_classes_are_fitted_once():
    score = MeasurementErrorScore(release("cancer", n=5000, epsilon=1.0, seed=0))
    one, other = np.zeros((2, 5, 5), dtype=bool)
    one[0, 1] = other[1, 0] = True
    values = score.totals(np.array([one, other, one]))
    assert score.n_scored == 1 and np.ptp(values) == 0
    assert score.total(other) == values[0]


def test_max_parents_is_checked():
    with pytest.raises(OptionError, match="max_parents"):
        MeasurementErrorScore(release("cancer", n=100, epsilon=1.0, seed=0), max_parents=-1)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0.1, 100))
@settings(max_examples=100)
def test_the_projection_is_the_nearest_point(values: list[float], total: float):
    """Optimality: a point of the simplex, and one threshold lies between the kept and the dropped
    coordinates.
    """
    x = np.array(values)
    p = nearest_table(x, total)
    assert p.sum() == pytest.approx(total, rel=1e-9) and (p >= 0).all()
    threshold = (x - p)[p > 0]
    assert np.ptp(threshold) < 1e-9
    assert (x[p == 0] <= threshold[0] + 1e-9).all()


def test_the_true_graph_wins_where_it_can_be_seen():
    network = networks.load("cancer")
    score = MeasurementErrorScore(release("cancer", n=200_000, epsilon=5.0, seed=1))
    truth = nx.to_numpy_array(network.dag, nodelist=list(network.names), dtype=bool)
    missing = [
        np.where(np.arange(25).reshape(5, 5) == place, False, truth)
        for place in np.flatnonzero(truth)
    ]
    extra = []
    for i, j in itertools.permutations(range(5), 2):
        graph = truth.copy()
        graph[i, j] = True
        if not truth[i, j] and nx.is_directed_acyclic_graph(
            nx.from_numpy_array(graph, create_using=nx.DiGraph)
        ):
            extra.append(graph)
    assert score.total(truth) > score.totals(np.array(missing + extra)).max()


def test_races_end():
    """Here a given-up fit's bound, exact, stays above what the tabulated race has to beat: the same
    race again would be for ever.
    """
    data = networks.load("asia").sample(2_000, key=jax.random.key(1002))
    bought = Histogram().release(data, budget=Budget(4.0), noise=simulated(5002))
    found = search_histogram(bought)
    assert score_graph(MeasurementErrorScore(bought), found.graph) == pytest.approx(
        found.info["score"], abs=0.01
    )


def test_one_row_under_noise_joins_nothing():
    """log(1) = 0 made parameters free, and a graph had edges in three runs of four."""
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "abc"})
    data = jaxcd.Dataset.from_codes(np.array([[0, 1, 1]]), domain=domain)
    joined = [
        search_histogram(
            Histogram().release(data, budget=Budget(1.0), noise=simulated(seed))
        ).graph.marks.any()
        for seed in range(40)
    ]
    assert np.mean(joined) < 0.1
