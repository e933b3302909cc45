"""Abstention: the threshold by brute force, its error rate by simulation, and what it reads."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.errors import OptionError
from jaxcd.pairwise import Direction, HSICScore, KendallScore, LogIQRScore, Protect, or_neither
from jaxcd.pairwise.abstaining import decided, form_of, scale_of, size_of, threshold
from jaxcd.pairwise.anm import anm
from jaxcd.pairwise.result import PairResult
from tests.helpers import SEEDS, refused, simulated

BOUNDS = ((-1.0, 1.0), (-1.5, 1.5))


def _pair(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, n)
    return x, x**3 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("scale", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_decided_is_the_share_of_draws_beyond(scale: float, side: int) -> None:
    rng = np.random.default_rng(1)
    sizes, least = np.array([0.0, 0.4, 1.5]), 0.7
    drawn = sizes[:, None] + (rng.laplace(0, scale, (3, 200_000)) if scale else 0)
    beyond = {0: abs(drawn) > least, 1: drawn > least, -1: drawn < -least}[side]
    assert decided(sizes, least, scale, side=side) == pytest.approx(beyond.mean(), abs=4e-3)


@settings(max_examples=60)
@example([1.0, 2.0], 0.0, math.nextafter(1, 0))
@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.1, 3.0]),
    st.floats(0.01, 1),
)
def test_the_threshold_is_the_least_that_keeps_the_rate(
    sizes: list[float], scale: float, rate: float
) -> None:
    m, found = len(sizes), threshold(sizes, scale, rate)
    if rate * (m + 1) < 1:
        assert math.isinf(found)
        return

    def bound(t: float) -> float:
        return (m * decided(sizes, t, scale) + 1) / (m + 1)

    assert bound(found) <= rate + 1e-9
    if found > 0:
        assert bound(found - 1e-6 * max(found, 1)) > rate - 1e-5 if scale else True
        if scale == 0:  # by brute force over the order statistics
            assert found == min(t for t in [0.0, *sizes] if bound(t) <= rate + 1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_the_error_rate_holds_for_exchangeable_pairs(scale: float) -> None:
    """Over new calibrations, a new pair and new noise; the bound is tight without noise."""
    rng = np.random.default_rng(2)
    wrong = []
    for _ in range(3000):
        sizes = rng.exponential(size=20)
        least = threshold(sizes[:19].tolist(), scale, 0.2)
        wrong.append(abs(sizes[19] + (rng.laplace(0, scale) if scale else 0)) > least)
    error = 4 * math.sqrt(0.2 * 0.8 / 3000)
    assert np.mean(wrong) <= 0.2 + error
    assert np.mean(wrong) >= 0.1


def _answers(epsilon: float) -> list[PairResult]:
    x, y = _pair()
    key = jax.random.key(0)
    shared = dict(budget=jaxcd.Budget(epsilon), bounds=BOUNDS, noise=simulated())
    return [
        jaxcd.reci(x, y, **shared),
        anm(x, y, **shared),
        anm(x, y, score=LogIQRScore(), **shared),
        *(
            anm(x, y, key=key, score=score, protect=Protect.TEST, **shared)
            for score in (HSICScore(), KendallScore(), LogIQRScore())
        ),
        *(f(x, y, budget=jaxcd.NO_PRIVACY) for f in (jaxcd.reci, jaxcd.igci, jaxcd.cds, anm)),
    ]


@pytest.mark.slow
def test_it_reads_the_margin_the_noise_and_public_facts_only() -> None:
    """Two answers that agree in these get the same threshold, whatever else they hold."""
    for result in _answers(1.0):
        found = or_neither(result)
        other = dataclasses.replace(
            result, forward=None, backward=None, confidence=None, spent=result.cost
        )
        assert or_neither(other).info == found.info
        assert or_neither(other).direction is found.direction
        assert found.margin == result.margin and found.cost == result.cost
        kept = result.margin > found.info["least_margin"]
        assert found.direction is (result.direction if kept else Direction.UNDECIDED)
        if math.isfinite(found.info["least_margin"]):
            above = dataclasses.replace(result, margin=found.info["least_margin"] * 1.01 + 1e-12)
            assert or_neither(above).direction is result.direction


def test_more_noise_asks_for_more() -> None:
    for exact, noisy in zip(_answers(100.0)[:6], _answers(0.1)[:6], strict=True):
        assert form_of(exact) == form_of(noisy)
        assert scale_of(noisy) > scale_of(exact) > 0
        least = [or_neither(each).info["least_margin"] for each in (exact, noisy)]
        assert least[0] < least[1]


def test_a_share_of_the_rows_stands_for_records() -> None:
    x, y = _pair()
    found = anm(
        x, y, score=LogIQRScore(), budget=jaxcd.Budget(1.0), bounds=BOUNDS, noise=simulated()
    )
    assert size_of(found) == found.margin / 200
    assert size_of(jaxcd.igci(x, y, budget=jaxcd.NO_PRIVACY)) > 0


def test_it_refuses() -> None:
    x, y = _pair()
    found = jaxcd.reci(x, y, budget=jaxcd.NO_PRIVACY)
    for rate in (0.01, 1.5, math.nan, True, "0.1", None):
        refused(OptionError, "error_rate", or_neither, found, error_rate=rate)
    refused(OptionError, "result: a str", or_neither, "x -> y")
    other = jaxcd.reci(x, y, budget=jaxcd.NO_PRIVACY, regressor=jaxcd.pairwise.Polynomial(2))
    refused(OptionError, "never measured", or_neither, other)


def test_a_key_is_needed_only_where_it_splits() -> None:
    x, y = _pair()
    shared = dict(budget=jaxcd.Budget(1.0), bounds=BOUNDS, noise=simulated())
    with_key = anm(x, y, key=jax.random.key(5), **shared)
    assert anm(x, y, **shared).margin == with_key.margin
    refused(OptionError, "key must be", anm, x, y, protect=Protect.TEST, **shared)


@settings(max_examples=5)
@given(SEEDS)
def test_the_benchmark_draws_pairs_without_a_direction(seed: int) -> None:
    from benchmarks.neither import drawn

    pairs = drawn(4, rows=50, seed=seed)
    assert [pair.direction for pair in pairs] == [None] * 4
    assert all(np.isfinite(pair.x).all() and np.ptp(pair.y) > 0 for pair in pairs)
