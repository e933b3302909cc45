"""Rounded Gaussian noise: its law, and every decision that it is made of."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from jaxcd.errors import OptionError
from jaxcd.privacy import NoiseSampler, SecureNoise
from jaxcd.privacy import rounded_gaussian as module
from tests.helpers import refused, simulated

SOURCES = {"secure": SecureNoise(), "simulated": simulated(7)}


def mass(low, high, sigma):
    """P[round(sigma N) = k] for low <= k < high, from the nearer tail."""
    k = np.abs(np.arange(low, high))
    return special.ndtr(-(k - 0.5) / sigma) - special.ndtr(-(k + 0.5) / sigma)


def p_value(draws, sigma):
    reach = math.ceil(9 * sigma) + 2
    expected = mass(-reach, reach + 1, sigma) * len(draws)
    observed = np.array([(draws == k).sum() for k in range(-reach, reach + 1)])
    rare = expected < 10
    observed = np.append(observed[~rare], len(draws) - observed[~rare].sum())
    expected = np.append(expected[~rare], len(draws) - expected[~rare].sum())
    if expected[-1] < 5:
        assert observed[-1] <= 30
        observed, expected = (
            observed[:-1],
            expected[:-1] * observed[:-1].sum() / expected[:-1].sum(),
        )
    return stats.chisquare(observed, expected).pvalue if len(observed) > 1 else 1.0


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("sigma", [0.1, 0.4, 1.0, 1.7, 5.3, 40.0])
def test_law(source, sigma):
    draws = SOURCES[source].start().rounded_gaussian(sigma, 40_000, index=0)
    assert draws.dtype == np.int64 and draws.shape == (40_000,)
    assert p_value(draws, sigma) > 1e-6


def test_the_test_tells_the_discrete_gaussian_apart():
    draws = SecureNoise().start().discrete_gaussian(0.4, 40_000, index=0)
    assert p_value(draws, 0.4) < 1e-6


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("sigma", [1e3, 1e10, module.ROUNDED_LIMIT])
def test_large_sigmas(source, sigma):
    draws = SOURCES[source].start().rounded_gaussian(sigma, 5000, index=0) / sigma
    assert stats.kstest(draws, stats.norm.cdf).pvalue > 1e-6


@pytest.mark.parametrize("source", SOURCES)
def test_options(source):
    sampler = SOURCES[source].start()
    for bad in (0.0, -1.0, math.nan, math.inf, 2 * module.ROUNDED_LIMIT):
        refused(OptionError, "noise sigma", sampler.rounded_gaussian, bad, 3, index=0)
    refused(OptionError, "size", sampler.rounded_gaussian, 1.0, -1, index=0)
    assert sampler.rounded_gaussian(1.0, 0, index=0).shape == (0,)
    with pytest.raises(OptionError, match="SecureNoise"):
        NoiseSampler.rounded_gaussian(sampler, 1.0, 3, index=0)


def words_of(rng):
    return lambda count: rng.integers(0, 2**64, count, dtype=np.uint64)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.7, 100.0])
def test_doubles_decide_as_rational_numbers_do(sigma, monkeypatch):
    rng = np.random.default_rng(3)
    whole = np.abs(np.rint(rng.normal(0, sigma, 3000))).astype(np.int64)
    parts = rng.integers(0, 2**53, 3000, dtype=np.uint64)
    fast = module._accepted(whole, parts, sigma, words_of(np.random.default_rng(4)))
    monkeypatch.setattr(module, "_SLACK", 1e100)  # nothing is clear to doubles
    slow = module._accepted(whole, parts, sigma, words_of(np.random.default_rng(4)))
    assert (fast == slow).all() and 0 < fast.mean() < 1


@pytest.mark.parametrize(
    "sigma, j, v", [(1.0, 0, 0.7), (1.0, 2, 0.9), (0.4, 1, 0.5), (6.0, 11, 0.99)]
)
def test_a_pair_is_accepted_with_its_probability(sigma, j, v):
    n = 40_000
    whole, parts = np.full(n, j), np.full(n, int(v * 2**53), dtype=np.uint64)
    accepted = module._accepted(whole, parts, sigma, words_of(np.random.default_rng(5))).sum()
    probability = math.exp(-v * (2 * j + v) / (2 * sigma**2))
    assert stats.binomtest(int(accepted), n, probability).pvalue > 1e-6


def test_close_decisions_are_right():
    rng = np.random.default_rng(6)
    for _ in range(400):
        j, sigma = int(rng.integers(0, 50)), float(rng.uniform(0.2, 9))
        factor = 2 * Fraction(sigma) ** 2 * int(rng.integers(1, 5))
        v_bits = int.from_bytes(rng.bytes(64), "big")
        v = Fraction(v_bits, 2**512)
        # U as near to the border as 190 bits allow, on either side
        border = v * (2 * j + v) / factor
        if not border < 1:
            continue
        near = math.floor(border * 2**190) + int(rng.integers(-2, 3))
        if not 0 <= near < 2**190:
            continue
        u_bits = (near << 322) | int.from_bytes(rng.bytes(40), "big")
        u = Fraction(u_bits, 2**512)

        def lazily(bits):
            given = iter([(bits >> (512 - 53 - 64 * (k + 1))) % 2**64 for k in range(7)])
            known = module._Bits(bits >> (512 - 53), 53, lambda count: [next(given)])
            return known

        assert module._below(lazily(u_bits), lazily(v_bits), j, factor) == (
            u * factor < v * (2 * j + v)
        )


def test_ties_of_the_first_bits_take_more_of_them():
    # v and U begin with zeros only: the words that follow decide.
    for more_u, accepted in ((2**63, True), (1, False)):
        calls = iter([[0], [more_u], [2**40], [2**63]])

        def words(count, calls=calls):
            return np.array(next(calls, [2**63] * count), dtype=np.uint64)

        found = module._accepted(np.array([3]), np.array([0], dtype=np.uint64), 1.0, words)
        # U > g: K = 1, accepted; U < g, and then U_2 > g / 2: K = 2, refused
        assert found.tolist() == [accepted]


def divergence(first, second, ratio):
    return np.maximum(0, first - ratio * second).sum()


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("shift", [1, 2])
def test_neighbours_are_no_further_apart_than_under_continuous_noise(sigma, shift):
    reach = math.ceil(30 * sigma) + 5
    law = mass(-reach, reach + 1, sigma)
    first, second = np.append(law, np.zeros(shift)), np.append(np.zeros(shift), law)
    mu = shift / sigma
    for epsilon in np.linspace(0, 6, 25):
        exact = special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(
            -mu / 2 - epsilon / mu
        )
        for one, other in ((first, second), (second, first)):
            assert divergence(one, other, math.exp(epsilon)) <= exact + 1e-14


def test_the_discrete_gaussian_is_further_apart_somewhere():
    """Why the rounded law is needed: with sigma = 1 the discrete one passes the Gaussian curve."""
    k = np.arange(-40, 41)
    law = np.exp(-(k**2) / 2.0)
    law /= law.sum()
    first, second = np.append(law, 0), np.append(0, law)
    worst = 0.0
    for epsilon in np.linspace(0, 4, 81):
        exact = special.ndtr(0.5 - epsilon) - math.exp(epsilon) * special.ndtr(-0.5 - epsilon)
        worst = max(worst, divergence(first, second, math.exp(epsilon)) - exact)
    assert worst > 1e-3
