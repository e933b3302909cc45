"""IGCI: closed forms, brute force with ties, invariances, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from jaxcd.errors import DataError, OptionError
from jaxcd.pairwise import Direction, Estimator, Reference, igci
from jaxcd.pairwise.igci import slope_score, spacing_entropy
from jaxcd.privacy import NO_PRIVACY
from tests.helpers import SEEDS, refused

VARIANTS = [(reference, estimator) for reference in Reference for estimator in Estimator]


def slope_by_hand(x: np.ndarray, y: np.ndarray) -> float:
    """One walk over the records sorted by x (ties in the order of the records)."""
    order = sorted(range(len(x)), key=lambda i: x[i])
    firsts, multiplicity = [], []
    for i in order:
        if firsts and x[firsts[-1]] == x[i]:
            multiplicity[-1] += 1
        else:
            firsts.append(i)
            multiplicity.append(1)
    total = weight = 0.0
    for here, there, m in zip(firsts[:-1], firsts[1:], multiplicity[:-1], strict=True):
        if y[here] != y[there]:
            total += m * math.log(abs((y[there] - y[here]) / (x[there] - x[here])))
            weight += m
    return total / weight


@given(SEEDS, st.integers(2, 12), st.integers(2, 12))
@settings(max_examples=50)
def test_slope_is_the_walk_with_ties(seed: int, levels_x: int, levels_y: int):
    rng = np.random.default_rng(seed)
    x, y = (
        rng.integers(0, levels_x, 40) / 7,
        rng.normal(size=levels_y)[rng.integers(0, levels_y, 40)],
    )
    x[:2], y[:2] = (0.0, 1 / 7), (5.0, 6.0)  # one slope at least
    assert slope_score(x, y) == pytest.approx(slope_by_hand(x, y), rel=1e-10, abs=1e-12)


def test_spacing_entropy_is_the_formula_with_ties():
    values = np.random.default_rng(0).integers(0, 20, 50) / 3.0
    ordered = sorted(values)
    logs = [math.log(b - a) for a, b in zip(ordered[:-1], ordered[1:], strict=True) if b > a]
    expected = special.digamma(50) - special.digamma(1) + sum(logs) / 49
    assert spacing_entropy(values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "law",
    [stats.uniform(), stats.norm(), stats.expon(), stats.beta(2, 5)],
    ids=["uniform", "normal", "exponential", "beta"],
)
def test_spacing_entropy_of_known_laws(law):
    """Its standard error is about 1.28 / sqrt(n) plus that of log p; five of them."""
    values = law.rvs(20_000, random_state=1)
    assert spacing_entropy(values) == pytest.approx(float(law.entropy()), abs=0.07)


def test_square_on_the_unit_interval():
    """y = x^2, x uniform: E log|f'| = E log 2x = log 2 - 1 both ways of estimating it, and S(y) -
    S(x) is the same number.
    """
    x = np.random.default_rng(2).uniform(size=40_000)
    x[:2] = 0.0, 1.0
    exact = math.log(2) - 1
    for estimator in Estimator:
        result = igci(x, x**2, budget=NO_PRIVACY, estimator=estimator)
        assert result.direction is Direction.X_TO_Y
        assert result.forward == pytest.approx(exact, abs=0.03)
        assert result.backward == pytest.approx(-exact, abs=0.03)


def test_cube_of_a_normal_on_its_own_scale():
    """y = x^3 / sqrt(15) with x standard normal: E log(3 x^2 / sqrt 15) = log 3 - log(15)/2 - log
    2 - gamma.
    """
    x = np.random.default_rng(3).normal(size=40_000)
    exact = math.log(3) - math.log(15) / 2 - math.log(2) - np.euler_gamma
    for estimator in Estimator:
        result = igci(x, x**3, budget=NO_PRIVACY, reference=Reference.GAUSSIAN, estimator=estimator)
        assert result.forward == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize(("reference", "estimator"), VARIANTS, ids=str)
@given(SEEDS, st.floats(0.01, 1e6), st.floats(-1e3, 1e3), st.booleans())
@settings(max_examples=10)
def test_affine_maps_change_nothing(
    reference, estimator, seed: int, scale: float, shift: float, flip: bool
):
    x, y = np.random.default_rng(seed).normal(size=(2, 50))
    y = x**3 + 0.1 * y
    before = igci(x, y, budget=NO_PRIVACY, reference=reference, estimator=estimator)
    after = igci(
        (-scale if flip else scale) * (x + shift),
        y,
        budget=NO_PRIVACY,
        reference=reference,
        estimator=estimator,
    )
    assert after.forward == pytest.approx(before.forward, abs=1e-5)
    assert after.backward == pytest.approx(before.backward, abs=1e-5)


@pytest.mark.parametrize(("reference", "estimator"), VARIANTS, ids=str)
def test_exchange_reverses(reference, estimator):
    x, y = np.random.default_rng(4).normal(size=(2, 80))
    there, back = (
        igci(a, b, budget=NO_PRIVACY, reference=reference, estimator=estimator)
        for a, b in ((x, y), (y, x))
    )
    assert there.direction is not Direction.UNDECIDED and back.direction is there.direction.reversed
    assert (there.forward, there.backward, there.margin) == (
        back.backward,
        back.forward,
        back.margin,
    )


@pytest.mark.parametrize("estimator", Estimator)
def test_a_variable_and_itself_are_undecided(estimator):
    x = np.random.default_rng(5).normal(size=30)
    result = igci(x, x, budget=NO_PRIVACY, estimator=estimator)
    assert result.direction is Direction.UNDECIDED and result.margin == 0


def test_why_there_is_no_private_igci():
    """One record moves the slope score by as much as one likes, whatever n is."""
    x = np.linspace(0, 1, 1000)
    y = x.copy()
    other = x.copy()
    other[500] = np.nextafter(x[499], 2)
    assert abs(slope_score(other, y) - slope_score(x, y)) * 999 > 25


def test_ties_everywhere_are_refused():
    x, y = np.repeat([0.0, 1.0], 10), np.append(np.repeat([3.0, 3.0], 9), [3.0, 4.0])
    refused(DataError, "no two neighbours differ in both", igci, x, y, budget=NO_PRIVACY)


@pytest.mark.parametrize(
    "options", [{"reference": "uniform"}, {"estimator": 1}, {"budget": None}], ids=str
)
def test_bad_options(options):
    with pytest.raises(OptionError, match=" = "):
        igci(np.arange(20.0), np.arange(20.0), **{"budget": NO_PRIVACY, **options})
