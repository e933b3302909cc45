from __future__ import annotations

import copy
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from scipy import stats

from jaxcd.errors import OptionError, PrivacyError, SensitivityError
from jaxcd.privacy import (
    AboveThreshold,
    Accountant,
    Budget,
    Ledger,
    PureEvent,
    SecureNoise,
    ThresholdNoise,
    amplified_epsilon,
)
from jaxcd.privacy.above_threshold import draw_unbounded
from jaxcd.privacy.noise import NOISE_LIMIT
from tests.helpers import refused, simulated

KINDS = list(ThresholdNoise)
LENGTH = 2  # queries in the enumeration


def room(noise=None, epsilon=1e6):
    return Accountant(Ledger(Budget(epsilon)), noise or simulated(5))


def integers(accountant, *, d, epsilon, kind, **options):
    return AboveThreshold(
        accountant,
        sensitivity=float(d),
        epsilon=epsilon,
        noise=kind,
        label="x",
        grid=1.0,
        integral=True,
        **options,
    )


def masses(kind, scale, reach):
    """Support and probabilities of the threshold's noise, exact up to a tail below 1e-14."""
    r = np.arange(0 if kind is ThresholdNoise.ONE_SIDED else -reach, reach + 1)
    alpha = math.exp(-1 / scale)
    normaliser = 1 - alpha if kind is ThresholdNoise.ONE_SIDED else (1 - alpha) / (1 + alpha)
    return r, normaliser * alpha ** np.abs(r)


def tail(kind, scale, t):
    """P[nu >= t], exactly."""
    alpha = math.exp(-1 / scale)
    if kind is ThresholdNoise.ONE_SIDED:
        return alpha ** np.maximum(t, 0)
    upper = alpha ** np.maximum(t, 1) / (1 + alpha)
    return np.where(t >= 1, upper, 1 - alpha ** np.maximum(1 - t, 1) / (1 + alpha))


def outcome_law(kind, threshold_scale, query_scale, queries):
    """Probabilities of "first above is k", for each k, and of "none"; the threshold is 0."""
    reach = int(40 * threshold_scale) + 5
    r, weight = masses(kind, threshold_scale, reach)
    law, below = [], np.ones_like(weight)
    for q in queries:
        above = tail(kind, query_scale, r - q)
        law.append(float(np.sum(weight * below * above)))
        below = below * (1 - above)
    return np.array([*law, float(np.sum(weight * below))])


def worst_loss(kind, threshold_scale, query_scale, d, span):
    """Largest log-ratio over all pairs of integer neighbours, in both directions."""
    laws = {
        queries: outcome_law(kind, threshold_scale, query_scale, queries)
        for queries in product(range(-span - d, span + d + 1), repeat=LENGTH)
    }
    worst = 0.0
    for queries in product(range(-span, span + 1), repeat=LENGTH):
        for shift in product(range(-d, d + 1), repeat=LENGTH):
            there = laws[tuple(a + b for a, b in zip(queries, shift, strict=True))]
            here = laws[queries]
            assert here.sum() == pytest.approx(1.0)
            worst = max(worst, float(np.abs(np.log(here) - np.log(there)).max()))
    return worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "epsilon"), [(1, 0.5), (1, 2.0), (2, 1.0)])
def test_privacy_by_enumeration(kind, d, epsilon):
    mechanism = integers(room(), d=d, epsilon=epsilon, kind=kind)
    loss = worst_loss(kind, mechanism.threshold_scale, mechanism.query_scale, d, span=5)
    assert loss <= epsilon * (1 + 1e-9)
    assert loss > 0.5 * epsilon  # the enumeration comes near the bound, so it can fail


def test_enumeration_sees_too_little_noise():
    # Half the query noise, as if the queries were monotone: the enumeration must find more than
    # epsilon.
    epsilon, d = 2.0, 1
    for kind in KINDS:
        mechanism = integers(room(), d=d, epsilon=epsilon, kind=kind)
        assert (
            worst_loss(kind, mechanism.threshold_scale, mechanism.query_scale / 2, d, span=6)
            > 1.02 * epsilon
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", [SecureNoise(), simulated(8)], ids=["secure", "simulated"])
def test_law_of_the_answers(kind, source):
    queries, n_runs = np.array([-2, 1, 0]), 1500
    accountant = room(source)
    counts = np.zeros(4, dtype=int)
    for _ in range(n_runs):
        mechanism = integers(accountant, d=1, epsilon=1.5, kind=kind)
        answer = mechanism.first_above(queries, threshold=0.0)
        counts[3 if answer is None else answer] += 1
    law = outcome_law(kind, mechanism.threshold_scale, mechanism.query_scale, queries)
    assert stats.chisquare(counts, n_runs * law).pvalue > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_scales_and_mean(kind):
    mechanism = integers(room(), d=3, epsilon=2.0, kind=kind, threshold_share=0.25)
    assert mechanism.threshold_scale == pytest.approx(3 / 0.5)
    assert mechanism.query_scale == pytest.approx(6 / 1.5)
    exact = {
        ThresholdNoise.LAPLACE: 0.0,
        ThresholdNoise.ONE_SIDED: 1 / math.expm1(1 / 4) - 1 / math.expm1(1 / 6),
    }[kind]
    assert mechanism.noise_mean == pytest.approx(exact)
    real = AboveThreshold(room(), sensitivity=3.0, epsilon=2.0, pad=1e-9, noise=kind, label="x")
    share = 1 / (1 + 2 ** (2 / 3))
    assert real.threshold_scale == pytest.approx(3 / (2 * share), rel=1e-6)
    assert real.query_scale == pytest.approx(6 / (2 * (1 - share)), rel=1e-6)


def test_walk():
    values = np.concatenate([np.full(1500, -1e6), [1e6, 1e6]])
    mechanism = AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, label="x")
    assert mechanism.first_above(values[:1500], threshold=0.0) is None
    assert mechanism.first_above(np.zeros(0), threshold=0.0) is None
    assert not mechanism.spent
    assert mechanism.first_above(values, threshold=0.0) == 1500
    assert mechanism.spent
    refused(PrivacyError, "spent", mechanism.first_above, values, threshold=0.0)
    other = AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, label="x")
    assert other.first_above([-1.0, -1.0, -1.0], threshold=[1e6, -1e6, 1e6]) == 1


def test_blocks_do_not_change_the_answer():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1200) - 9.0
    whole, parts = (AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, label="x") for _ in "ab")
    expected = whole.first_above(values, threshold=0.0)
    assert expected is not None
    hits = (
        position
        for position in range(1200)
        if parts.first_above(values[position : position + 1], threshold=0.0) == 0
    )
    assert next(hits) == expected


def test_one_charge_only():
    accountant = room(epsilon=1.0)
    mechanism = AboveThreshold(accountant, sensitivity=1.0, epsilon=0.7, label="sieve")
    mechanism.first_above(np.full(50, -100.0), threshold=0.0)
    mechanism.first_above(np.full(50, -100.0), threshold=0.0)
    assert [entry.event for entry in accountant.ledger.entries] == [PureEvent(0.7, "sieve")]


def test_subsampling():
    accountant = room()
    outer, rate = 0.5, 0.1
    mechanism = AboveThreshold(accountant, sensitivity=1.0, epsilon=outer, rate=rate, label="x")
    inner = AboveThreshold(
        room(), sensitivity=1.0, epsilon=amplified_epsilon(outer, rate), label="x"
    )
    assert mechanism.query_scale == pytest.approx(inner.query_scale, rel=1e-9)
    assert mechanism.threshold_scale == pytest.approx(inner.threshold_scale, rel=1e-9)
    assert accountant.ledger.entries[0].event == PureEvent(outer, "x")
    refused(PrivacyError, "draw_subset", mechanism.first_above, [0.0], threshold=0.0)
    refused(OptionError, "size", mechanism.draw_subset, 1000, 101)
    mask = mechanism.draw_subset(1000, 100)
    assert mask.sum() == 100 and mask.shape == (1000,)
    refused(PrivacyError, "already", mechanism.draw_subset, 1000, 100)
    mechanism.first_above([0.0], threshold=0.0)
    for n, m in ((7, 3), (49, 48), (10, 1), (1000, 700)):  # rates that are no floats
        AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, rate=m / n, label="x").draw_subset(
            n, m
        )


def test_subsampled_privacy_by_enumeration():
    """The whole, subset and all: a count over a secret subset of 2 of 4 binary records, against the
    charged epsilon.
    """
    outer, n, m = 0.8, 4, 2
    mechanism = integers(room(), d=1, epsilon=outer, kind=ThresholdNoise.ONE_SIDED, rate=m / n)
    scales = mechanism.threshold_scale, mechanism.query_scale
    worst = 0.0
    for threshold in range(-4, 5):
        laws = {}
        for ones in range(n + 1):
            chosen = [
                math.comb(ones, k) * math.comb(n - ones, m - k) / math.comb(n, m)
                for k in range(m + 1)
            ]
            laws[ones] = sum(
                weight
                * outcome_law(ThresholdNoise.ONE_SIDED, *scales, (k - threshold, threshold - k))
                for k, weight in enumerate(chosen)
            )
        worst = max([worst, *(np.abs(np.log(laws[k] / laws[k + 1])).max() for k in range(n))])
    assert 0.3 * outer < worst <= outer


def test_options():
    for options in (
        {"sensitivity": 0.0},
        {"epsilon": math.nan},
        {"threshold_share": 1.0},
        {"threshold_share": math.nan},
        {"noise": "laplace"},
        {"rate": 0.0},
        {"grid": 0.3},
        {"epsilon": 1e-9, "grid": 2.0**-40},
    ):
        accountant = room()
        with pytest.raises(OptionError):
            AboveThreshold(
                accountant, **{"sensitivity": 1.0, "epsilon": 1.0, "label": "x", **options}
            )
        assert accountant.ledger.entries == ()
    mechanism = AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, label="x")
    refused(OptionError, "threshold", mechanism.first_above, [1.0, 2.0], threshold=[1.0, 2.0, 3.0])
    refused(OptionError, "threshold", mechanism.first_above, 1.0, threshold=0.0)
    pytest.raises(SensitivityError, mechanism.first_above, [math.nan], threshold=0.0)
    with pytest.raises(OptionError, match="integral"):
        integers(room(), d=1, epsilon=1.0, kind=ThresholdNoise.LAPLACE).first_above(
            [0.5], threshold=0.0
        )


class ScriptedSampler:
    def __init__(self, *draws):
        self.draws = list(draws)

    def geometric(self, scale, size, *, index):
        return np.array(self.draws.pop(0), dtype=np.int64)

    discrete_laplace = geometric


def test_saturated_draws_are_continued():
    sampler = ScriptedSampler([3, NOISE_LIMIT, 0, NOISE_LIMIT], [NOISE_LIMIT], [5], [0])
    draws = draw_unbounded(sampler, ThresholdNoise.ONE_SIDED, 1.0, 4, index=0)
    assert list(draws) == [3, 2 * NOISE_LIMIT + 5, 0, NOISE_LIMIT]
    sampler = ScriptedSampler([-NOISE_LIMIT, 1], [7])
    assert list(draw_unbounded(sampler, ThresholdNoise.LAPLACE, 1.0, 2, index=0)) == [
        -NOISE_LIMIT - 7,
        1,
    ]


def test_saturated_threshold_and_queries_compare_exactly():
    # Threshold noise 2^62 + 2^62 + 10; query noise 2^62 + 2^62 + (9, 10, 11): the second query
    # reaches it.
    top = NOISE_LIMIT
    script = [[top], [top], [10], [top, top, top], [top], [9], [top], [10], [top], [11]]
    accountant = Accountant(Ledger(Budget(10.0)), ScriptedSampler(*script))
    mechanism = integers(accountant, d=1, epsilon=1.0, kind=ThresholdNoise.ONE_SIDED)
    assert mechanism.first_above(np.array([0, 0, 0]), threshold=0.0) == 1
    # Saturated noise on one side only.
    accountant = Accountant(
        Ledger(Budget(10.0)), ScriptedSampler([top], [top], [10], [3, top], [0])
    )
    mechanism = integers(accountant, d=1, epsilon=1.0, kind=ThresholdNoise.ONE_SIDED)
    assert mechanism.first_above(np.array([2**62, -(2**62)]), threshold=0.0) is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_no_answer_of_its_own(copied):
    """One price, one "above": else twenty copies would give twenty, under one threshold."""
    found = AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, label="x")
    others = [copied(found) for _ in range(2)]
    assert found.first_above([1e6], threshold=0.0) == 0
    for other in others:
        with pytest.raises(PrivacyError):
            other.first_above([1e6], threshold=0.0)


def test_threads_get_one_answer_together(monkeypatch):
    found = AboveThreshold(room(), sensitivity=1.0, epsilon=1.0, label="x")
    both, draw = threading.Barrier(2), found._draw

    def waiting(scale, size):
        try:
            both.wait(0.5)  # for the other thread, where it may come as far as this
        except threading.BrokenBarrierError:
            pass
        return draw(scale, size)

    def ask(_):
        try:
            return found.first_above([1e6], threshold=0.0)
        except PrivacyError:
            return "spent"

    monkeypatch.setattr(found, "_draw", waiting)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(map(str, pool.map(ask, range(2)))) == ["0", "spent"]
