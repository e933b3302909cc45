"""Estimate and interval of one table, against a solver, a grid, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special

from jaxcd.effects.likelihood import Contrast, Interval, profile_interval

BINARY = Contrast(0, 1, np.array([0.0, 1.0]))


def drawn(seed: int, shape: tuple[int, ...], n: int, variance: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(int(np.prod(shape)), 2.0))
    return rng.multinomial(n, shares).reshape(shape) + rng.normal(0, variance**0.5, shape)


def plain_effect(table: np.ndarray, scores: np.ndarray, start: int, end: int) -> float:
    """The adjustment formula, cell by cell."""
    total, n = 0.0, table.sum()
    for z in range(table.shape[2]):
        share = table[:, :, z].sum() / n
        for y, score in enumerate(scores):
            after = table[end, y, z] / table[end, :, z].sum()
            before = table[start, y, z] / table[start, :, z].sum()
            total += share * score * (after - before)
    return total


@pytest.mark.parametrize("shape", [(2, 2, 1), (3, 4, 5), (2, 3, 2)])
def test_without_noise_it_is_the_formula(shape: tuple[int, ...]) -> None:
    table = drawn(1, shape, 5000, 0.0)
    scores = np.random.default_rng(2).normal(size=shape[1])
    contrast = Contrast(0, shape[0] - 1, scores)
    found = profile_interval(table, contrast, variance=0.0, n_samples=5000)
    assert found.estimate == pytest.approx(plain_effect(table, scores, 0, shape[0] - 1), abs=1e-8)
    assert found.low < found.estimate < found.high


def test_gradient_is_the_derivative() -> None:
    table = drawn(3, (3, 3, 4), 3000, 0.0) + 1.0
    contrast = Contrast(2, 0, np.array([0.0, 1.0, 5.0]))
    gradient = contrast.gradient(table) / table.sum()
    for place in np.ndindex(table.shape):
        step = np.zeros_like(table)
        step[place] = 1e-3
        slope = (contrast.value(table + step) - contrast.value(table - step)) / 2e-3
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_two_groups_on_a_grid() -> None:
    """Without noise and strata: all differences of risks whose likelihood ratio is small enough."""
    table = np.array([[[40.0], [10.0]], [[15.0], [35.0]]])
    p = np.linspace(0.0005, 0.9995, 2000)
    logs = [special.xlogy(a, 1 - p) + special.xlogy(b, p) for a, b in table[:, :, 0]]
    total = logs[0][:, None] + logs[1][None, :]
    likely = total >= total.max() - special.chdtri(1, 0.05) / 2
    differences = (p[None, :] - p[:, None])[likely]
    found = profile_interval(table, BINARY, variance=0.0, n_samples=100)
    assert found.low == pytest.approx(differences.min(), abs=2e-3)
    assert found.high == pytest.approx(differences.max(), abs=2e-3)


@pytest.mark.parametrize(("seed", "variance"), [(0, 0.0), (1, 20.0), (2, 400.0), (3, 50.0)])
def test_ends_against_a_solver(seed: int, variance: float) -> None:
    n, shape = 4000, (2, 2, 3)
    table = drawn(seed, shape, n, variance)
    weight = np.maximum(table.ravel() + variance, 1e-9)

    def likelihood(mu: np.ndarray) -> float:
        return float(special.xlogy(weight, mu + variance).sum())

    def solved(objective, start: np.ndarray, *more) -> optimize.OptimizeResult:
        whole = {"type": "eq", "fun": lambda p: p.sum() - 1}
        return optimize.minimize(
            objective,
            start,
            bounds=[(1e-7, 1)] * table.size,
            constraints=[whole, *more],
            method="SLSQP",
            options={"maxiter": 800, "ftol": 1e-11},
        )

    start = np.maximum(table.ravel(), 1.0)
    top = solved(lambda p: -likelihood(p * n), start / start.sum())
    least = -top.fun - special.chdtri(1, 0.05) / 2
    inside = {"type": "ineq", "fun": lambda p: likelihood(p * n) - least}
    found = profile_interval(table, BINARY, variance=variance, n_samples=n)
    for sign, end in ((1, found.low), (-1, found.high)):
        best = solved(lambda p, sign=sign: sign * BINARY.value(p.reshape(shape)), top.x, inside)
        if best.status == 0:
            assert end == pytest.approx(sign * best.fun, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("variance", [0.0, 30.0, 3000.0])
def test_coverage(variance: float) -> None:
    """Over tables drawn again: four standard errors about .95."""
    rng = np.random.default_rng(7)
    shares = np.array([[[0.2, 0.1], [0.1, 0.1]], [[0.02, 0.03], [0.15, 0.3]]])
    truth, n, runs = BINARY.value(shares), 3000, 200
    inside = 0
    for _ in range(runs):
        counts = rng.multinomial(n, shares.ravel()).reshape(shares.shape)
        noisy = counts + rng.normal(0, variance**0.5, shares.shape)
        found = profile_interval(noisy, BINARY, variance=variance, n_samples=n)
        inside += found.low <= truth <= found.high
    assert abs(inside / runs - 0.95) < 4 * (0.95 * 0.05 / runs) ** 0.5


def test_a_treatment_nobody_has_leaves_everything_open() -> None:
    table = np.array([[[300.0], [700.0]], [[0.0], [0.0]]])
    found = profile_interval(table, BINARY, variance=0.0, n_samples=1000)
    assert found.low < -0.65 and found.high > 0.25


@pytest.mark.parametrize("n", [1, 3, 10**9])
def test_any_number_of_rows(n: int) -> None:
    table = np.zeros((2, 2, 2))
    table[0, 1, 0] = n
    for variance in (0.0, 5.0, 1e6):
        found = profile_interval(table, BINARY, variance=variance, n_samples=n)
        assert -1 - 1e-9 <= found.low <= found.estimate <= found.high <= 1 + 1e-9


def test_noise_between_cells_widens_by_its_share() -> None:
    """Twice the noise variance along every direction: to first order that of the estimate."""
    table, variance = drawn(5, (2, 2, 1), 100_000, 500.0), 500.0
    alone = profile_interval(table, BINARY, variance=variance, n_samples=100_000)
    doubled = profile_interval(
        table,
        BINARY,
        variance=variance,
        n_samples=100_000,
        noise=lambda w: 2 * variance * float((w**2).sum()),
    )
    ratio = (doubled.high - doubled.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(doubled.standard_error / alone.standard_error, rel=0.02)
    assert ratio > 1


def test_ends_are_computed_once_and_only_when_asked_for() -> None:
    asked = []

    def ends() -> tuple[float, float]:
        asked.append(1)
        return -1.0, 2.0

    interval = Interval(0.5, 0.1, ends)
    assert interval.estimate == 0.5 and not asked
    assert (interval.low, interval.high) == (-1.0, 2.0) and len(asked) == 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_strata", [1, 3])
def test_noise_that_hides_all_counts_leaves_all_that_is_possible(seed: int, n_strata: int) -> None:
    """With noise of 2,800 on each of 200 rows nothing is known, wherever the likeliest table is."""
    seen = 2800.0 * np.random.default_rng(seed).standard_normal((2, 2, n_strata))
    contrast = Contrast(0, 1, np.array([0.0, 1.0]))
    found = profile_interval(seen, contrast, variance=2800.0**2, n_samples=200.0)
    assert found.low < -0.95 and found.high > 0.95
