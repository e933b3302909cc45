from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from jaxcd import privacy
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, Budget, NoPrivacy, PrivacyCost, Relation
from jaxcd.privacy.rounding import round_down, round_up, split, sqrt_down, sqrt_up
from tests.helpers import refused

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, -1.0, NAN, INF, -INF, "1", None, True])
def test_budget_refuses_epsilon(epsilon):
    if epsilon == "1":  # a number written as text is read as one
        assert Budget(epsilon).epsilon == 1.0
        return
    refused(OptionError, "epsilon", Budget, epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, NAN, INF, "x", None, False])
def test_budget_refuses_delta(delta):
    refused(OptionError, "delta", Budget, 1.0, delta)


def test_budget_and_cost():
    refused(OptionError, "relation", Budget, 1.0, 0.0, "replace-one")
    assert Budget(1.0).relation is Relation.REPLACE_ONE
    assert Budget(1) == Budget(1.0, 0.0, Relation.REPLACE_ONE)
    for huge in (10**400, Fraction(10**400)):  # no float holds it
        refused(OptionError, "delta must be a number", Budget, 1.0, huge)
        refused(OptionError, "epsilon must be a number", Budget, huge)
    with pytest.raises(AttributeError):
        Budget(1.0).epsilon = 2.0
    cost = PrivacyCost(1.0, 1e-6, Relation.REPLACE_ONE, False, "because")
    assert "NOT proved" in str(cost) and "because" in str(cost) and "replace-one" in str(cost)
    assert "no privacy" in str(PrivacyCost(INF, 0.0, Relation.REPLACE_ONE, False, "none asked"))
    pytest.raises(OptionError, PrivacyCost, NAN, 0.0, Relation.REPLACE_ONE, True, "")


def test_no_privacy_is_single():
    assert NoPrivacy() is NO_PRIVACY
    assert copy.deepcopy(NO_PRIVACY) is NO_PRIVACY
    assert pickle.loads(pickle.dumps(NO_PRIVACY)) is NO_PRIVACY
    assert repr(NO_PRIVACY) == "NO_PRIVACY"


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(0.5, 0.00664), (1, 0.02436), (2, 0.0882), (4, 0.3111), (8, 1.0524)]
)
def test_conversion_table(epsilon, rho):
    assert privacy.epsilon_to_rho(epsilon, 1e-6) == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize(("rho", "epsilon"), [(0.0185, 0.863), (0.1, 2.14), (0.5, 5.22)])
def test_conversion_table_other_way(rho, epsilon):
    assert privacy.rho_to_epsilon(rho, 1e-6) == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-10, 1e-3, 0.4])
def test_conversion_against_high_precision(rho, delta):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):

        def at(log_t):
            a = 1 + mpmath.exp(log_t)
            return rho * a + mpmath.log(1 - 1 / a) - mpmath.log(a * mpmath.mpf(delta)) / (a - 1)

        points = mpmath.linspace(-15, 25, 161)
        middle = min(points, key=at)
        low, high = middle - 0.5, middle + 0.5
        for _ in range(60):
            third = (high - low) / 3
            low, high = (
                (low, high - third) if at(low + third) < at(high - third) else (low + third, high)
            )
        exact = max(mpmath.mpf(0), at((low + high) / 2))
        found = privacy.rho_to_epsilon(rho, delta)
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -12


def test_conversion_covers_the_gaussian():
    # The Gaussian mechanism of ratio sigma is 1/(2 sigma^2)-zCDP; its exact delta(epsilon): Balle
    # and Wang 2018.
    for sigma in (0.5, 1.0, 5.0):
        for delta in (1e-3, 1e-6):
            epsilon = privacy.rho_to_epsilon(1 / (2 * sigma**2), delta)
            low, high = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
            exact = norm.cdf(low) - math.exp(epsilon + norm.logcdf(high))
            assert delta / 10 < exact <= delta


def test_conversion_against_dp_accounting():
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = 1 + np.exp(np.linspace(-3, 6, 4000))
    for rho in (0.001, 0.02, 0.5, 3.0):
        for delta in (1e-9, 1e-5):
            theirs, _ = rdp.compute_epsilon(orders, rho * orders, delta)
            assert privacy.rho_to_epsilon(rho, delta) == pytest.approx(theirs, rel=1e-5)


positive = st.floats(1e-6, 1e4)


@settings(max_examples=60)
@given(epsilon=positive, delta=st.floats(1e-15, 0.5))
def test_conversion_inverse_is_conservative(epsilon, delta):
    rho = privacy.epsilon_to_rho(epsilon, delta)
    assert rho > 0
    assert privacy.rho_to_epsilon(rho, delta) <= epsilon
    assert privacy.rho_to_epsilon(rho * (1 + 1e-9), delta) > epsilon * (1 - 1e-8)


def test_conversion_edges():
    assert privacy.rho_to_epsilon(0.0, 1e-6) == 0.0
    assert privacy.rho_to_epsilon(INF, 1e-6) == INF
    for bad in (0.0, 1.0, NAN, -1.0):
        refused(OptionError, "delta", privacy.rho_to_epsilon, 1.0, bad)
        refused(OptionError, "delta", privacy.epsilon_to_rho, 1.0, bad)
    for bad in (-1.0, NAN):
        refused(OptionError, "rho", privacy.rho_to_epsilon, bad, 1e-6)
    for bad in (0.0, NAN, INF):
        refused(OptionError, "epsilon", privacy.epsilon_to_rho, bad, 1e-6)


@settings(max_examples=200)
@given(epsilon=st.floats(1e-12, 900.0), rate=st.floats(1e-9, 1.0))
def test_amplification_and_inverse(epsilon, rate):
    inner = privacy.amplified_epsilon(epsilon, rate)
    assert inner >= epsilon * (1 - 1e-12)
    back = privacy.subsampled_epsilon(inner, rate)
    assert back <= epsilon
    assert back == pytest.approx(epsilon, rel=1e-9)
    whole = privacy.subsampled_epsilon(epsilon, rate)
    if epsilon < 500:
        mpmath = pytest.importorskip("mpmath")
        with mpmath.workdps(80):
            exact = mpmath.log(1 + mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))
            assert whole >= exact * (1 - mpmath.mpf(10) ** -35)  # mpmath rounds as well
            assert whole <= exact * (1 + mpmath.mpf(10) ** -12) + mpmath.mpf(10) ** -300


def test_amplification_values():
    assert privacy.subsampled_epsilon(1.0, 1.0) == 1.0
    assert privacy.amplified_epsilon(1.0, 1.0) == 1.0
    assert privacy.amplified_epsilon(INF, 0.5) == INF
    assert privacy.subsampled_epsilon(math.log(3), 0.5) == pytest.approx(math.log(2))
    for bad in (0.0, 1.1, NAN, -0.5):
        refused(OptionError, "rate", privacy.amplified_epsilon, 1.0, bad)
        refused(OptionError, "rate", privacy.subsampled_epsilon, 1.0, bad)


def test_amplification_is_attained():
    # Base mechanism: randomised response on "is the marked record in the subset?"; subset of 2 of 5
    # records.
    epsilon, rate = 1.3, 2 / 5
    honest = math.exp(epsilon) / (1 + math.exp(epsilon))
    with_record = rate * honest + (1 - rate) * (1 - honest)  # P["yes"], the marked record is in D
    without = 1 - honest
    assert math.log(with_record / without) == pytest.approx(
        privacy.subsampled_epsilon(epsilon, rate), rel=1e-12
    )


@settings(max_examples=200)
@given(value=st.floats(1e-150, 1e150))
def test_square_conversions_round_to_the_safe_side(value):
    assert Fraction(privacy.pure_to_rho(value)) >= Fraction(value) ** 2 / 2
    assert Fraction(privacy.exponential_to_rho(value)) >= Fraction(value) ** 2 / 8
    assert privacy.pure_to_rho(privacy.rho_to_pure(value)) <= value
    assert privacy.exponential_to_rho(privacy.rho_to_exponential(value)) <= value
    assert privacy.rho_to_pure(value) == pytest.approx(math.sqrt(2 * value), rel=1e-14)
    assert privacy.rho_to_exponential(value) == pytest.approx(math.sqrt(8 * value), rel=1e-14)


@settings(max_examples=200)
@given(total=st.floats(1e-9, 1e9), weights=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40))
def test_split_never_exceeds_the_whole(total, weights):
    parts = split(total, weights)
    assert sum(map(Fraction, parts)) <= Fraction(total)
    assert math.fsum(parts) <= total
    assert math.fsum(parts) == pytest.approx(total, rel=1e-12)
    assert parts[0] / total == pytest.approx(weights[0] / math.fsum(weights), rel=1e-9)


def test_split_refuses():
    for total, weights in ((0.0, [1]), (1.0, []), (1.0, [1, -1]), (1.0, [NAN]), (INF, [1])):
        pytest.raises(OptionError, split, total, weights)


@settings(max_examples=200)
@given(top=st.integers(0, 10**30), bottom=st.integers(1, 10**30))
def test_directed_rounding(top, bottom):
    value = Fraction(top, bottom)
    below, above = round_down(value), round_up(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above == below or above == math.nextafter(below, INF)
    assert Fraction(sqrt_down(value)) ** 2 <= value <= Fraction(sqrt_up(value)) ** 2
    assert sqrt_up(value) == pytest.approx(sqrt_down(value), rel=1e-15)
