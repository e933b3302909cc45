from __future__ import annotations

from collections import Counter
from itertools import combinations

import jax
import numpy as np
import pytest
from scipy import stats

from jaxcd.errors import OptionError
from jaxcd.privacy import SecureNoise, SimulatedNoise
from jaxcd.privacy import noise as noise_module
from jaxcd.privacy.noise import NOISE_LIMIT, SCALE_LIMIT
from tests.helpers import refused, simulated

SOURCES = {"secure": SecureNoise(), "simulated": simulated(7)}


@pytest.fixture(params=SOURCES)
def sampler(request):
    return SOURCES[request.param].start()


def fits(draws, weights_of, support):
    """Chi-square test of integer draws against unnormalised weights on a support, tails pooled."""
    weights = weights_of(support.astype(float))
    expected = weights / weights.sum() * len(draws)
    keep = expected >= 10
    observed = np.array([(draws == k).sum() for k in support[keep]])
    rest_expected, rest = len(draws) - expected[keep].sum(), len(draws) - observed.sum()
    observed, expected = np.append(observed, rest), np.append(expected[keep], rest_expected)
    if expected[-1] < 5:
        assert observed[-1] <= 25  # a rare tail
        observed, expected = (
            observed[:-1],
            expected[:-1] * observed[:-1].sum() / expected[:-1].sum(),
        )
    assert stats.chisquare(observed, expected).pvalue > 1e-6


SUPPORT = np.arange(-400, 401)


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7])
def test_laplace_law(sampler, scale):
    draws = sampler.discrete_laplace(scale, 20_000, index=0)
    assert draws.dtype == np.int64 and draws.shape == (20_000,)
    fits(draws, lambda k: np.exp(-abs(k) / scale), SUPPORT)


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7])
def test_geometric_law(sampler, scale):
    draws = sampler.geometric(scale, 20_000, index=0)
    assert draws.dtype == np.int64 and draws.shape == (20_000,) and draws.min() == 0
    fits(draws, lambda k: np.exp(-k / scale), SUPPORT[SUPPORT >= 0])


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.7])
def test_gaussian_law(sampler, sigma):
    draws = sampler.discrete_gaussian(sigma, 20_000, index=0)
    assert draws.dtype == np.int64 and draws.shape == (20_000,)
    fits(draws, lambda k: np.exp(-0.5 * (k / sigma) ** 2), SUPPORT)


@pytest.mark.parametrize("scale", [1e3, 1e13, SCALE_LIMIT])
def test_large_scales(sampler, scale):
    one_sided = sampler.geometric(scale, 5000, index=0) / scale
    assert stats.kstest(one_sided, stats.expon.cdf).pvalue > 1e-6
    two_sided = sampler.discrete_laplace(scale, 5000, index=1) / scale
    assert stats.kstest(two_sided, stats.laplace.cdf).pvalue > 1e-6
    gaussian = sampler.discrete_gaussian(scale, 5000, index=2) / scale
    assert stats.kstest(gaussian, stats.norm.cdf).pvalue > 1e-6


def test_scale_limits(sampler):
    for bad in (0.0, -1.0, np.nan, np.inf, SCALE_LIMIT * 1.01):
        for draw in (sampler.discrete_laplace, sampler.geometric, sampler.discrete_gaussian):
            pytest.raises(OptionError, draw, bad, 3, index=0)
        pytest.raises(OptionError, sampler.gumbel_max, np.array([1, 2]), bad, index=0)
    refused(OptionError, "size", sampler.geometric, 1.0, -1, index=0)
    assert (
        sampler.geometric(1.0, 0, index=0).shape
        == sampler.discrete_laplace(1.0, 0, index=0).shape
        == (0,)
    )


def test_gumbel_max_law(sampler):
    scores, scale = np.array([0, 3, 6, 5], dtype=np.int64), 3.0
    counts = np.bincount(
        [sampler.gumbel_max(scores, scale, index=0) for _ in range(4000)], minlength=4
    )
    weights = np.exp(scores / scale)
    assert stats.chisquare(counts, weights / weights.sum() * 4000).pvalue > 1e-6
    far = np.array([-(2**61), 2**61], dtype=np.int64)
    assert sampler.gumbel_max(far, 1.0, index=1) == 1


def test_subset_law(sampler):
    counts = Counter(tuple(np.flatnonzero(sampler.subset(5, 2, index=0))) for _ in range(4000))
    assert set(counts) == set(combinations(range(5), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6
    for n, m in ((0, 0), (4, 0), (4, 4), (1000, 137)):
        mask = sampler.subset(n, m, index=0)
        assert mask.dtype == np.bool_ and mask.shape == (n,) and mask.sum() == m
    for n, m in ((3, 4), (-1, 0), (3, -1), (3, 1.5)):
        pytest.raises(OptionError, sampler.subset, n, m, index=0)


def test_secure_subset_draws_anew_when_boundary_keys_tie(monkeypatch):
    # smallest one tied; smallest two tied
    words = [np.array([5, 1, 1, 9], np.uint64), np.array([7, 3, 9, 3], np.uint64)]
    words.append(np.array([4, 8, 2, 6], np.uint64))
    queue = [word.tobytes() for word in words]
    monkeypatch.setattr(noise_module.os, "urandom", lambda count: queue.pop(0))
    assert SecureNoise().start().subset(4, 1, index=0).tolist() == [False, False, True, False]
    assert queue == []
    queue.append(words[1].tobytes())  # a tie inside the subset is no tie at its boundary
    assert SecureNoise().start().subset(4, 2, index=0).tolist() == [False, True, False, True]


def test_secure_noise_does_not_repeat():
    assert SecureNoise().secure and SecureNoise().start().secure
    first, second = (SecureNoise().start().discrete_laplace(1e9, 8, index=0) for _ in range(2))
    assert (first != second).any()
    sampler = SecureNoise().start()
    assert (sampler.subset(200, 100, index=0) != sampler.subset(200, 100, index=0)).any()


def everything(sampler, index):
    return np.concatenate(
        [
            sampler.discrete_laplace(1e6, 5, index=index),
            sampler.geometric(1e6, 5, index=index),
            sampler.discrete_gaussian(1e6, 5, index=index),
            sampler.subset(40, 20, index=index).astype(np.int64),
            [sampler.gumbel_max(np.zeros(1000, np.int64), 1.0, index=index)],
        ]
    )


def test_simulated_noise_is_reproducible():
    source = simulated(3)
    assert not source.secure and not source.start().secure
    first, second = source.start(), source.start()
    np.testing.assert_array_equal(everything(first, 4), everything(second, 4))
    # Other indices in between change nothing; another index, another key, a second draw differ.
    third = source.start()
    everything(third, 1)
    np.testing.assert_array_equal(everything(third, 4), everything(source.start(), 4))
    assert (everything(source.start(), 4) != everything(source.start(), 5))[:15].all()
    assert (everything(source.start(), 4) != everything(simulated(4).start(), 4))[:15].all()
    assert (first.geometric(1e6, 5, index=4) != second.discrete_laplace(1e6, 5, index=4)).any()
    again = source.start()
    assert (everything(again, 0) != everything(again, 0))[:15].all()


@pytest.mark.parametrize("name", ["geometric", "discrete_laplace"])
def test_simulated_noise_does_not_depend_on_blocks(name):
    source = simulated(3)
    whole = getattr(source.start(), name)(50.0, 100, index=2)
    sampler = source.start()
    parts = [getattr(sampler, name)(50.0, size, index=2) for size in (1, 60, 39)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_simulated_noise_wants_one_typed_key():
    for bad in (
        0,
        None,
        np.array([0, 1]),
        jax.numpy.array([0, 1], dtype="uint32"),
        jax.random.split(jax.random.key(0)),
    ):
        refused(OptionError, "key", SimulatedNoise, bad)
    other = SimulatedNoise(jax.random.key(3, impl="rbg")).start()
    assert (everything(other, 4) != everything(simulated(3).start(), 4))[:15].all()


def test_draws_are_saturated(monkeypatch):
    monkeypatch.setattr(
        noise_module, "_laplace_measurement", lambda scale: lambda zeros: [2**63 - 1, -(2**63), 3]
    )
    np.testing.assert_array_equal(
        SecureNoise().start().discrete_laplace(1.0, 3, index=0), [NOISE_LIMIT, -NOISE_LIMIT, 3]
    )
