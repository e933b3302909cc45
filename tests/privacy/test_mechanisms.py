from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxcd.errors import BudgetExhausted, OptionError, SensitivityError
from jaxcd.privacy import (
    NO_PRIVACY,
    AboveThreshold,
    Accountant,
    Budget,
    ExponentialMechanismEvent,
    GaussianEvent,
    Ledger,
    PureEvent,
    Relation,
    SecureNoise,
    gaussian,
    gaussian_sigma,
    integer_sensitivity,
    laplace,
    noise_scale,
    quantise,
    select_max,
    select_top,
)
from jaxcd.privacy.mechanisms import VALUE_LIMIT
from jaxcd.privacy.noise import NOISE_LIMIT, NoiseSampler
from tests.helpers import refused, simulated

SEED = simulated(11)


class RecordingNoise(NoiseSampler):
    """Returns what it is told to, and writes down every call with the scale."""

    def __init__(self, draw=0):
        self.calls, self.draw = [], draw

    @property
    def secure(self):
        return False

    def _note(self, name, scale, size, index):
        self.calls.append((name, scale, size, index))
        return np.full(size, self.draw, dtype=np.int64)

    def discrete_laplace(self, scale, size, *, index):
        return self._note("laplace", scale, size, index)

    def discrete_gaussian(self, sigma, size, *, index):
        return self._note("gaussian", sigma, size, index)

    def rounded_gaussian(self, sigma, size, *, index):
        return self._note("rounded", sigma, size, index)

    def geometric(self, scale, size, *, index):
        return self._note("geometric", scale, size, index)

    def subset(self, n, m, *, index):
        self.calls.append(("subset", n, m, index))
        return np.arange(n) < m

    def gumbel_max(self, scores, scale, *, index):
        self.calls.append(("gumbel", scale, len(scores), index))
        return int(np.argmax(scores))


class RefusingLedger(Ledger):
    """Refuses everything."""

    def __init__(self):
        super().__init__(Budget(1.0))

    def charge(self, event):
        raise BudgetExhausted("refused")


class OrderedLedger(Ledger):
    """Asserts that nothing has been drawn when it is charged."""

    def __init__(self, noise):
        super().__init__(Budget(100.0, 1e-6))
        self.noise = noise

    def charge(self, event):
        assert self.noise.calls == []
        return super().charge(event)


CALLS = {
    "laplace": (
        lambda a: laplace(a, [1.0, 2.0], sensitivity=1.0, epsilon=0.5, label="x"),
        PureEvent(0.5, "x"),
    ),
    "gaussian": (
        lambda a: gaussian(a, [1.0, 2.0], sensitivity=1.0, rho=0.5, label="x"),
        GaussianEvent(0.5, "x"),
    ),
    "select": (
        lambda a: select_max(a, [1.0, 2.0], sensitivity=1.0, epsilon=0.5, label="x"),
        ExponentialMechanismEvent(0.5, "x"),
    ),
    "above": (
        lambda a: AboveThreshold(a, sensitivity=1.0, epsilon=0.5, label="x"),
        PureEvent(0.5, "x"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_charge_comes_before_the_draw(name):
    call, event = CALLS[name]
    noise = RecordingNoise()
    pytest.raises(BudgetExhausted, call, Accountant(RefusingLedger(), noise))
    assert noise.calls == []
    noise = RecordingNoise()
    ledger = OrderedLedger(noise)
    ledger.charge(PureEvent(0.1, "before"))
    call(Accountant(ledger, noise))
    assert [entry.event for entry in ledger.entries][1:] == [event]
    assert len(noise.calls) == 1 and noise.calls[0][3] == 1  # the draw is under the event's index


@pytest.mark.parametrize("name", CALLS)
def test_exhausted_budget_draws_nothing(name):
    noise = RecordingNoise()
    ledger = Ledger(Budget(0.4, 1e-9))
    pytest.raises(BudgetExhausted, CALLS[name][0], Accountant(ledger, noise))
    assert noise.calls == [] and ledger.entries == () and ledger.exhausted


def room(noise=SEED, epsilon=1e6):
    return Accountant(Ledger(Budget(epsilon, 1e-6)), noise)


finite = st.floats(-1e6, 1e6)


@settings(max_examples=300)
@given(
    pair=st.lists(st.tuples(finite, st.floats(-3.0, 3.0)), min_size=1, max_size=6),
    errors=st.lists(st.floats(-1e-3, 1e-3), min_size=12, max_size=12),
    power=st.integers(-30, 3),
)
def test_integer_sensitivity_covers_quantised_neighbours(pair, errors, power):
    grid, size, pad = 2.0**power, len(pair), 1e-3
    here = [Fraction(a) for a, _ in pair]
    there = [Fraction(a) + Fraction(b) for a, b in pair]
    gaps = [abs(a - b) for a, b in zip(here, there, strict=True)]
    # Exact values plus a numerical error of at most pad, with room for the rounding of the sum
    # itself.
    slack = 2e-10
    computed = [
        np.array([float(v) + e for v, e in zip(values, noise, strict=False)])
        for values, noise in ((here, errors[:6]), (there, errors[6:]))
    ]
    change = [
        abs(int(a) - int(b))
        for a, b in zip(*(quantise(v, grid=grid) for v in computed), strict=True)
    ]
    l1, l2 = float(sum(gaps)) + 1e-9, math.sqrt(sum(gap**2 for gap in gaps)) + 1e-9
    bound1 = integer_sensitivity(l1, grid=grid, pad=pad + slack, dimension=size, norm=1)
    bound2 = integer_sensitivity(l2, grid=grid, pad=pad + slack, dimension=size, norm=2)
    assert sum(change) <= bound1
    assert sum(c * c for c in change) <= bound2**2
    assert bound1 <= (l1 + 2 * size * (pad + slack)) / grid + size + 2


def test_integer_sensitivity_values():
    assert integer_sensitivity(1.0, grid=2.0**-30) == 2**30 + 1
    assert integer_sensitivity(3.0, grid=1.0, pad=0.25) == 5
    assert integer_sensitivity(2.0, grid=1.0, dimension=10, integral=True) == 2
    assert integer_sensitivity(2.5, grid=0.5, dimension=10, integral=True) == 5
    assert integer_sensitivity(1.5, grid=1.0, dimension=4, norm=2) == Fraction(7, 2)
    assert integer_sensitivity(1.5, grid=1.0, dimension=4, norm=2, integral=True) == Fraction(3, 2)
    for options in (
        {"sensitivity": 0.0, "grid": 1.0},
        {"sensitivity": math.nan, "grid": 1.0},
        {"sensitivity": math.inf, "grid": 1.0},
        {"sensitivity": 1.0, "grid": 0.3},
        {"sensitivity": 1.0, "grid": -1.0},
        {"sensitivity": 1.0, "grid": 1.0, "pad": -1.0},
        {"sensitivity": 1.0, "grid": 1.0, "pad": math.nan},
        {"sensitivity": 1.0, "grid": 1.0, "norm": 3},
        {"sensitivity": 1.0, "grid": 1.0, "pad": 0.1, "integral": True},
    ):
        pytest.raises(OptionError, integer_sensitivity, **options)


def test_quantise():
    np.testing.assert_array_equal(quantise([0.1, 0.5, 0.75, -0.6], grid=0.5), [0, 1, 2, -1])
    np.testing.assert_array_equal(
        quantise([np.inf, -np.inf, 1e300], grid=1.0), [VALUE_LIMIT, -VALUE_LIMIT, VALUE_LIMIT]
    )
    np.testing.assert_array_equal(quantise(np.array([3, -2]), grid=0.25), [12, -8])
    np.testing.assert_array_equal(
        quantise(np.array([2**63 - 1, -(2**63), 5]), grid=2.0**-10),
        [VALUE_LIMIT, -VALUE_LIMIT, 5 * 1024],
    )
    np.testing.assert_array_equal(
        quantise(np.array([2**64 - 1, 7], dtype=np.uint64), grid=1.0), [VALUE_LIMIT, 7]
    )
    assert quantise(np.float32(1.5), grid=0.5).shape == ()
    refused(SensitivityError, "NaN", quantise, [1.0, np.nan], grid=1.0)
    for values, grid in (([1.0], 0.1), (np.array([1]), 2.0), (np.array([1]), 2.0**-62)):
        refused(OptionError, "grid", quantise, values, grid=grid)


@settings(max_examples=200)
@given(bound=st.integers(1, 2**40), epsilon=st.floats(1e-3, 1e3))
def test_scales_are_rounded_up_exactly(bound, epsilon):
    scale = noise_scale(Fraction(bound), epsilon)
    assert Fraction(bound) <= Fraction(epsilon) * Fraction(scale)
    assert scale <= max(bound / epsilon * (1 + 1e-15), 2.0**-10)
    sigma = gaussian_sigma(Fraction(bound), epsilon)
    assert Fraction(bound) ** 2 <= 2 * Fraction(epsilon) * Fraction(sigma) ** 2
    assert sigma <= max(bound / math.sqrt(2 * epsilon) * (1 + 1e-14), 2.0**-10)


def test_scale_limits():
    assert noise_scale(Fraction(1), math.inf) == gaussian_sigma(Fraction(1), math.inf) == 0.0
    assert noise_scale(Fraction(1), 1e300) == gaussian_sigma(Fraction(1), 1e300) == 2.0**-10
    for call in (
        lambda: noise_scale(Fraction(2**60), 1e-3),
        lambda: noise_scale(Fraction(2**60), 1e-320),
    ):
        refused(OptionError, "budget is too small", call)
    refused(OptionError, "budget is too small", gaussian_sigma, Fraction(2**60), 1e-3)


def test_opendp_agrees_with_the_scales():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    bound = integer_sensitivity(0.7, grid=2.0**-30, pad=1e-9)
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    scale = noise_scale(bound, 0.3)
    loss = dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=scale).map(int(bound))
    assert loss == pytest.approx(0.3, rel=1e-12)
    sigma = gaussian_sigma(bound, 0.02)
    loss = dp.m.make_gaussian(space, dp.l2_distance(T="f64"), scale=sigma).map(float(bound))
    assert loss == pytest.approx(0.02, rel=1e-12)
    select = dp.m.make_noisy_max(
        space,
        dp.linf_distance(T="i64"),
        dp.zero_concentrated_divergence(),
        scale=noise_scale(2 * bound, 0.3),
    )
    assert select.map(int(bound)) == pytest.approx(0.3**2 / 8, rel=1e-12)


@pytest.mark.parametrize("source", [SecureNoise(), SEED])
def test_laplace_output(source):
    values = np.linspace(-3, 3, 4000).reshape(40, 100)
    noisy = laplace(room(source), values, sensitivity=2.0, epsilon=4.0, pad=1e-9, label="x")
    assert noisy.dtype == np.float64 and noisy.shape == values.shape
    np.testing.assert_array_equal(noisy * 2**30, np.rint(noisy * 2**30))
    scale = (2.0 + 2 * 4000 * (1e-9 + 2.0**-31)) / 4.0
    assert stats.kstest((noisy - values).ravel(), stats.laplace(scale=scale).cdf).pvalue > 1e-6


@pytest.mark.parametrize("source", [SecureNoise(), SEED])
def test_gaussian_output(source):
    values = np.linspace(-3, 3, 4000)
    noisy = gaussian(room(source), values, sensitivity=2.0, rho=0.5, label="x")
    np.testing.assert_array_equal(noisy * 2**20, np.rint(noisy * 2**20))
    sigma = 2.0 + math.sqrt(4000) * 2.0**-20
    assert stats.kstest(noisy - values, stats.norm(scale=sigma).cdf).pvalue > 1e-6


def test_counts_pay_nothing_for_rounding():
    noise = RecordingNoise(draw=3)
    counts = np.arange(10)
    noisy = laplace(room(noise), counts, sensitivity=2.0, epsilon=0.5, label="x", grid=1.0)
    np.testing.assert_array_equal(noisy, counts + 3)
    noisy = gaussian(room(noise), counts, sensitivity=2.0, rho=0.5, label="x", grid=1.0)
    assert [call[:3] for call in noise.calls] == [("laplace", 4.0, 10), ("rounded", 2.0, 10)]


def test_scalar_and_empty_values():
    assert laplace(room(), 3.0, sensitivity=1.0, epsilon=1.0, label="x").shape == ()
    assert laplace(room(), np.zeros(0), sensitivity=1.0, epsilon=1.0, label="x").shape == (0,)
    assert gaussian(room(), np.zeros((0, 3)), sensitivity=1.0, rho=1.0, label="x").shape == (0, 3)


def test_saturated_draws_release_the_clamped_value():
    for draw, expected in ((NOISE_LIMIT, VALUE_LIMIT), (-NOISE_LIMIT, -VALUE_LIMIT)):
        values = [-math.inf, 0.0, math.inf]
        noisy = laplace(
            room(RecordingNoise(draw)), values, sensitivity=1.0, epsilon=1.0, label="x", grid=1.0
        )
        np.testing.assert_array_equal(noisy, np.full(3, expected, dtype=float))


def test_select_max_law():
    scores = np.array([0.0, 1.0, 2.0])
    accountant = room(SecureNoise(), epsilon=1e9)
    draws = [
        select_max(accountant, scores, sensitivity=1.0, epsilon=2.0, label="x") for _ in range(2000)
    ]
    weights = np.exp(scores)
    counts = np.bincount(draws, minlength=3)
    assert stats.chisquare(counts, 2000 * weights / weights.sum()).pvalue > 1e-6
    for bad in (np.zeros(0), np.zeros((2, 2)), 1.0):
        with pytest.raises(OptionError, match="scores"):
            select_max(accountant, bad, sensitivity=1.0, epsilon=1.0, label="x")


def test_exponential_mechanism_is_bounded_range_and_zcdp():
    """The event's rho = epsilon^2 / 8 against Renyi divergences of the exact law, worst neighbours
    of 3 scores.
    """
    epsilon = 1.7
    event = ExponentialMechanismEvent(epsilon)
    tightest = 0.0
    for shift in np.ndindex(3, 3, 3):
        for base in ((0, 0, 0), (0, 2, 5), (0, 6, 6)):
            p, q = (
                np.exp(epsilon * np.array(v) / 2)
                for v in (base, np.array(base) + np.array(shift) - 1.0)
            )
            p, q = p / p.sum(), q / q.sum()
            ratio = np.log(p / q)
            assert np.ptp(ratio) <= epsilon + 1e-12 and np.abs(ratio).max() <= event.epsilon + 1e-12
            for order in (1.001, 1.5, 2.0, 5.0, 30.0):
                divergence = math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
                assert divergence <= event.rho * order + 1e-12
                tightest = max(tightest, divergence / (event.rho * order))
    assert tightest > 0.8


def test_nan_is_refused_before_the_charge():
    noise, ledger = RecordingNoise(), Ledger(Budget(10.0, 1e-6))
    accountant = Accountant(ledger, noise)
    for call in (
        lambda: laplace(accountant, [math.nan], sensitivity=1.0, epsilon=1.0, label="x"),
        lambda: gaussian(accountant, [math.nan], sensitivity=1.0, rho=0.01, label="x"),
        lambda: select_max(accountant, [math.nan], sensitivity=1.0, epsilon=1.0, label="x"),
    ):
        pytest.raises(SensitivityError, call)
    assert ledger.entries == () and noise.calls == []


def test_no_privacy_adds_no_noise():
    noise = RecordingNoise()
    accountant = Accountant(Ledger(NO_PRIVACY), noise)
    assert laplace(accountant, 0.5, sensitivity=1.0, epsilon=math.inf, label="x") == 0.5
    assert gaussian(accountant, 0.5, sensitivity=1.0, rho=math.inf, label="x") == 0.5
    assert (
        select_max(accountant, [1.0, 3.0, 2.0], sensitivity=1.0, epsilon=math.inf, label="x") == 1
    )
    above = AboveThreshold(accountant, sensitivity=1.0, epsilon=math.inf, label="x")
    assert above.first_above([0.0, 1.0, 2.0], threshold=1.0) == 1
    assert noise.calls == [] and len(accountant.ledger.entries) == 4
    assert not accountant.guarantee.proven and accountant.guarantee.epsilon == math.inf
    pytest.raises(
        BudgetExhausted, laplace, room(), 0.5, sensitivity=1.0, epsilon=math.inf, label="x"
    )


def test_accountant():
    assert Accountant(Ledger(Budget(1.0))).noise.secure
    assert Accountant(Ledger(Budget(1.0)), SecureNoise()).guarantee.proven
    marked = Accountant(Ledger(Budget(1.0)), SEED)
    assert not marked.guarantee.proven and "simulated" in marked.guarantee.reason
    outputs = [
        laplace(Accountant(Ledger(Budget(1.0)), SEED), 0.0, sensitivity=1.0, epsilon=0.5, label="x")
        for _ in "ab"
    ]
    assert outputs[0] == outputs[1]
    one = Accountant(Ledger(Budget(1.0)), SEED)
    first = laplace(one, 0.0, sensitivity=1.0, epsilon=0.5, label="x")
    assert laplace(one, 0.0, sensitivity=1.0, epsilon=0.5, label="x") != first


def test_the_relation_is_the_one_that_is_proved():
    refused(OptionError, "REPLACE_ONE", Budget, 1.0, 1e-6, "add-remove")
    assert [relation.value for relation in Relation] == ["replace-one"]


@pytest.mark.parametrize(
    "stated",
    [
        2**53 + 1,
        np.int64(2**53 + 1),
        np.array(2**53 + 1),
        Decimal(2**53 + 1),
        Fraction(2**53 + 1),
        str(2**53 + 1),
    ],
)
def test_a_sensitivity_between_two_floats_is_rounded_up(stated: Any):
    """The nearest float is one less, and the noise would be too small."""
    assert integer_sensitivity(stated, grid=1.0, integral=True) > 2**53
    ledger = Ledger(Budget(1e17))
    laplace(Accountant(ledger, SEED), [0], sensitivity=stated, epsilon=2.0**40, label="", grid=1.0)
    assert ledger.entries[0].event.record.sensitivity > 2**53


@pytest.mark.parametrize("kind", [Decimal, str, float])
def test_choices_cost_what_their_noise_is_for(kind: Callable[[str], Any]):
    """Of epsilons that no float holds, too: the price is that of the float that the noise uses."""
    for k, number in itertools.product(range(1, 8), ("0.1", "0.3", "0.7", "0.123456789")):
        ledger = Ledger(Budget(100.0))
        accountant = Accountant(ledger, SEED)
        scores = list(range(9))
        select_top(accountant, scores, size=k, sensitivity=1.0, epsilon=kind(number), label="")
        assert Fraction(ledger.entries[0].event.epsilon) >= k * Fraction(float(number))
