"""Gaussian differential privacy: conversions against 60 digits, and what pure mechanisms and ranges
cost, against their definitions."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from jaxcd.errors import OptionError
from jaxcd.privacy import (
    epsilon_to_gdp_rho,
    epsilon_to_rho,
    gdp_rho_to_epsilon,
    gdp_rho_to_pure,
    gdp_rho_to_range,
    pure_to_gdp_rho,
    range_to_gdp_rho,
)
from jaxcd.privacy.gdp import _log_delta, _mills

EPSILONS = (1e-12, 1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 500.0, 1e4)
DELTAS = (1e-300, 1e-100, 1e-30, 1e-9, 1e-3, 0.3, 0.99)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def delta_of(epsilon, mu):
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    return mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


def test_mills_ratio_has_fourteen_digits():
    for x in np.concatenate([np.linspace(-8, 8, 801), np.geomspace(8, 1e6, 300)]):
        exact = mp.ncdf(-mp.mpf(x)) / mp.npdf(mp.mpf(x)) if x < 1e4 else None
        if exact is None:  # the continued fraction
            y = mp.mpf(x)
            exact = 1 / (y + 1 / (y + 2 / (y + 3 / (y + 4 / y))))
        assert abs(_mills(x) / exact - 1) < 1e-14


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_largest_rho_is_safe_and_hardly_below_the_exact_one(epsilon, delta):
    rho = epsilon_to_gdp_rho(epsilon, delta)
    ratio = delta_of(epsilon, mp.sqrt(2 * mp.mpf(rho))) / mp.mpf(delta)
    assert 1 - 1e-7 < ratio < 1 - mp.mpf(2) ** -45
    assert rho >= epsilon_to_rho(epsilon, delta)
    assert gdp_rho_to_epsilon(rho, delta) <= epsilon


@settings(max_examples=150, deadline=None)
@given(st.floats(-9, 3), st.floats(-300, -0.001))
def test_epsilon_of_a_rho_is_safe_and_hardly_above_the_exact_one(log_rho, log_delta):
    rho, delta = 10.0**log_rho, 10.0**log_delta
    epsilon = gdp_rho_to_epsilon(rho, delta)
    mu = mp.sqrt(2 * mp.mpf(rho))
    with mp.workdps(60):
        assert delta_of(epsilon, mu) <= mp.mpf(delta)
        if epsilon > 1e-6:
            assert delta_of(epsilon * (1 - mp.mpf("1e-8")), mu) > mp.mpf(delta) * (1 - 1e-5)


def test_the_bound_on_delta_is_never_below_delta():
    for mu in (1e-9, 1e-4, 0.03, 1.0, 20.0, 1e3):
        for shift in (-7.0, -1.0, 0.0, 0.5, 3.0, 30.0):
            epsilon = mu * (shift + mu / 2)
            if epsilon < 0:
                continue
            exact = mp.log(delta_of(epsilon, mu))
            found = _log_delta(epsilon, mu)
            assert exact <= found <= exact + 1e-6 * (1 + abs(exact))


def test_gain_over_zcdp():
    gains = [epsilon_to_gdp_rho(e, 1e-6) / epsilon_to_rho(e, 1e-6) for e in (0.1, 0.5, 1.0, 4.0)]
    assert np.allclose(gains, [1.1816, 1.1595, 1.1502, 1.1284], atol=1e-4)


def test_ends():
    assert gdp_rho_to_epsilon(0.0, 1e-6) == 0.0 and gdp_rho_to_epsilon(math.inf, 1e-6) == math.inf
    assert gdp_rho_to_epsilon(1e-20, 1e-6) == 0.0
    assert math.isfinite(gdp_rho_to_epsilon(1e12, 1e-6))
    assert pure_to_gdp_rho(math.inf) == range_to_gdp_rho(math.inf) == math.inf
    assert gdp_rho_to_pure(math.inf) == gdp_rho_to_range(math.inf) == math.inf
    for wrong in (
        lambda: gdp_rho_to_epsilon(0.1, 0.0),
        lambda: gdp_rho_to_epsilon(-0.1, 0.1),
        lambda: epsilon_to_gdp_rho(0.0, 0.1),
        lambda: epsilon_to_gdp_rho(1.0, 1.0),
        lambda: pure_to_gdp_rho(0.0),
        lambda: range_to_gdp_rho(-1.0),
        lambda: gdp_rho_to_pure(0.0),
        lambda: gdp_rho_to_range(math.nan),
    ):
        pytest.raises(OptionError, wrong)


PURE = (1e-200, 1e-100, 1e-8, 0.01, 0.5, 1.0, 1.99, 2.0, 4.0, 30.0, 300.0, 599.0, 700.0, 1e5)


@pytest.mark.parametrize("epsilon", PURE)
def test_a_pure_mechanism_touches_the_gaussian_curve_and_does_not_cross_it(epsilon):
    rho = pure_to_gdp_rho(epsilon)
    assert rho <= 4 * epsilon
    if rho > 0 and epsilon < 600:
        mu, tail = mp.sqrt(2 * mp.mpf(rho)), 1 / (1 + mp.exp(mp.mpf(epsilon)))
        with mp.workdps(320):
            mu, tail = mp.sqrt(2 * mp.mpf(rho)), 1 / (1 + mp.exp(mp.mpf(epsilon)))
            assert mp.ncdf(-mu / 2) <= tail
            if epsilon > 1e-90:
                assert mp.ncdf(-mu / 2 * (1 - mp.mpf("1e-10"))) > tail
    largest = gdp_rho_to_pure(rho) if rho > 0 else epsilon
    assert pure_to_gdp_rho(largest) <= rho
    if 1e-100 < epsilon < 600:
        assert largest == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
def test_pure_mechanisms_lie_above_the_gaussian_curve(epsilon):
    x = np.linspace(0, 1, 200_001)
    pure = np.maximum(0, np.maximum(1 - np.exp(epsilon) * x, np.exp(-epsilon) * (1 - x)))
    mu = math.sqrt(2 * pure_to_gdp_rho(epsilon))
    gaussian = special.ndtr(special.ndtri(1 - x) - mu)
    assert (pure - gaussian).min() > -1e-14


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 8.0, 20.0])
def test_the_worst_mechanism_of_a_range_is_in_its_middle(epsilon):
    mu = mp.sqrt(2 * mp.mpf(range_to_gdp_rho(epsilon)))
    e = mp.mpf(epsilon)

    def normal(p):
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)

    worst = mp.mpf(0)
    for k in range(1, 60):
        t = e * k / 60
        p = (1 - mp.exp(t - e)) / (1 - mp.exp(-e))
        worst = max(worst, normal(p) - normal(p * mp.exp(-t)))
    assert worst <= mu < worst * (1 + mp.mpf("1e-10"))  # k = 30 is the middle


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_random_exponential_mechanisms_lie_above_the_gaussian_curve(epsilon):
    rng = np.random.default_rng(0)
    mu = math.sqrt(2 * range_to_gdp_rho(epsilon))
    for _ in range(150):
        size = int(rng.integers(2, 8))
        scores = rng.uniform(0, 5, size)
        moved = scores + rng.choice([-0.5, 0.5, rng.uniform(-0.5, 0.5)], size) * epsilon
        p, q = np.exp(scores), np.exp(moved)
        p, q = p / p.sum(), q / q.sum()
        for first, second in ((p, q), (q, p)):
            for s in np.linspace(-epsilon, epsilon, 41):
                hockey = np.maximum(0, first - np.exp(s) * second).sum()
                assert hockey <= float(delta_of(s, mu)) + 1e-13


def test_a_range_has_its_inverse():
    for epsilon in (0.01, 1.0, 7.0, 900.0):
        rho = range_to_gdp_rho(epsilon)
        assert range_to_gdp_rho(gdp_rho_to_range(rho)) <= rho


def test_large_numbers_are_converted_by_zcdp():
    assert epsilon_to_gdp_rho(1e13, 1e-6) == epsilon_to_rho(1e13, 1e-6)
    assert gdp_rho_to_epsilon(1e200, 1e-6) >= 1e200


@settings(max_examples=100, deadline=None)
@given(st.floats(-9, 6), st.floats(-300, -0.001))
def test_a_budget_leaves_what_saturation_needs(log_epsilon, log_delta):
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    rho = epsilon_to_gdp_rho(epsilon, delta)
    assert rho > 0 and gdp_rho_to_epsilon(rho, delta) <= epsilon
    with mp.workdps(60):
        exact = delta_of(epsilon, mp.sqrt(2 * mp.mpf(rho)))
        assert exact <= mp.mpf(delta) * (1 - mp.mpf(2) ** -45)
