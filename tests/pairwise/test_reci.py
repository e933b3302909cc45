"""RECI: the regressions against numpy and brute force, invariances, privacy's constants and
confidence, and bad input.
"""

from __future__ import annotations

import collections
import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.errors import DataError, OptionError, PrivacyError, SensitivityError
from jaxcd.pairwise import Direction
from jaxcd.pairwise.reci import (
    BoundedPolynomial,
    Logistic,
    Monomial,
    Polynomial,
    Regressor,
    _confidence,
    reci,
)
from jaxcd.privacy import NO_PRIVACY, Budget
from tests.helpers import SEEDS, refused, simulated

REGRESSORS = [
    Polynomial(),
    Polynomial(1),
    Monomial(2),
    Logistic(),
    BoundedPolynomial(),
    BoundedPolynomial(2, 5, 16, 0.3),
]
UNIT = ((0.0, 1.0), (0.0, 1.0))


def cubic(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """x -> y with a mechanism that cannot be inverted: only x predicts well."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return x, x**3 - 0.7 * x + 0.03 * rng.normal(size=n)


def test_polynomial_is_numpy_polyfit():
    x, y = np.random.default_rng(0).uniform(size=(2, 200))
    for degree in (1, 3, 6):
        expected = np.mean((y - np.polyval(np.polyfit(x, y, degree), x)) ** 2)
        assert Polynomial(degree).error(x, y) == pytest.approx(expected, rel=1e-9)


def test_monomial_is_the_closed_form_of_one_regression():
    x, y = np.random.default_rng(1).uniform(size=(2, 200))
    expected = y.var() * (1 - np.corrcoef(x**4, y)[0, 1] ** 2)
    assert Monomial(4).error(x, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("slope", "centre"), [(4.0, 0.4), (12.0, 0.8), (25.0, 0.1)])
def test_logistic_finds_an_exact_curve(slope: float, centre: float):
    x = np.linspace(0, 1, 300)
    y = 0.1 + 0.7 / (1 + np.exp(-slope * (x - centre)))
    assert Logistic().error(x, y) < 1e-6
    assert Logistic().error(x, 1 - y) < 1e-6  # falling curves are in the class too
    assert Polynomial(1).error(x, y) > 1e-4


@given(SEEDS, st.integers(1, 2), st.sampled_from([0.1, 0.4, 1.0]))
@settings(max_examples=25)
def test_bounded_polynomial_is_the_minimum_over_its_class(
    seed: int, degree: int, truncation: float
):
    """Record by record and function by function, in floating point, without tables."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(2, 30))
    x[0] = y[1] = 1.0  # the upper edge belongs to the last cell
    method = BoundedPolynomial(degree, levels=4, resolution=10, truncation=truncation)
    centres = [(np.minimum(np.floor(column * 10), 9) + 0.5) / 10 for column in (x, y)]
    least = math.inf
    for heights in itertools.product(np.linspace(0, 1, 4), repeat=degree + 1):
        curve = np.polyval(np.polyfit(np.arange(degree + 1) / degree, heights, degree), centres[0])
        # halves are rounded to even: keep them away from the last digits of polyfit
        fitted = np.round(np.round(np.clip(curve, 0, 1) * 20, 9)) / 20
        least = min(
            least, np.minimum((centres[1] - fitted) ** 2, method.ceiling * method.unit).mean()
        )
    assert method.error(x, y) == pytest.approx(least, rel=1e-9, abs=2.1 * method.unit)


def test_bounded_polynomial_tables_are_exact_where_no_rounding_is_near():
    """Degree 1 with two levels: the four lines, against sums in whole numbers."""
    method = BoundedPolynomial(1, levels=2, resolution=8, truncation=1.0)
    counts = np.random.default_rng(3).integers(0, 5, (8, 8))
    steps = 2 * np.arange(8) + 1
    sums = [
        int((counts * (steps[None, :] - line[:, None]) ** 2).sum())
        for line in (0 * steps, 0 * steps + 16, steps, 16 - steps)
    ]
    assert method.least(counts) == min(sums)


def test_truncation_is_the_ceiling_of_one_loss():
    method = BoundedPolynomial(truncation=0.25)
    assert method.ceiling * method.unit == 0.25**2
    far = np.where(np.arange(1000) % 2, 1.0, 0.0)  # two values at one x: no function is near both
    assert method.error(np.full(1000, 0.5), far) == pytest.approx(0.5 * 0.25**2, rel=0.01)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=str)
def test_direction_and_its_reverse(regressor: Regressor):
    x, y = cubic(2)
    there, back = (reci(a, b, budget=NO_PRIVACY, regressor=regressor) for a, b in ((x, y), (y, x)))
    assert back.direction is there.direction.reversed
    assert (back.forward, back.backward) == (there.backward, there.forward)
    assert there.margin == back.margin == abs(there.forward - there.backward)
    assert there.confidence == 1 and not there.cost.proven


def test_direction_of_a_mechanism_that_cannot_be_inverted():
    for seed in range(5):
        assert reci(*cubic(seed), budget=NO_PRIVACY).direction is Direction.X_TO_Y
        assert (
            reci(*cubic(seed), budget=NO_PRIVACY, regressor=BoundedPolynomial()).direction
            is Direction.X_TO_Y
        )


@pytest.mark.parametrize("regressor", [Polynomial(), Polynomial(5), Logistic()], ids=str)
@given(st.floats(0.01, 1e6), st.floats(-1e3, 1e3), st.booleans())
@settings(max_examples=8)
def test_affine_maps_change_nothing(regressor: Regressor, scale: float, shift: float, flip: bool):
    """Polynomials and sigmoids stay in their class when a variable is mirrored."""
    x, y = cubic(4, 60)
    before = reci(x, y, budget=NO_PRIVACY, regressor=regressor)
    after = reci(
        (-scale if flip else scale) * x + shift * scale, y, budget=NO_PRIVACY, regressor=regressor
    )
    tolerance = 1e-3 if isinstance(regressor, Logistic) else 1e-7
    assert after.forward == pytest.approx(before.forward, rel=tolerance, abs=1e-9)
    assert after.backward == pytest.approx(before.backward, rel=tolerance, abs=1e-9)


def test_order_of_the_records_changes_nothing():
    x, y = cubic(5)
    order = np.random.default_rng(0).permutation(len(x))
    method = BoundedPolynomial()
    assert method.error(*(unit(c) for c in (x, y))) == method.error(
        *(unit(c[order]) for c in (x, y))
    )


def unit(column: np.ndarray) -> np.ndarray:
    return (column - column.min()) / (column.max() - column.min())


def test_extreme_scales():
    x, y = cubic(6, 60)
    before = reci(x, y, budget=NO_PRIVACY)
    for scale in (1e-300, 1e308):
        assert reci(scale * x, y, budget=NO_PRIVACY).margin == pytest.approx(
            before.margin, rel=1e-6
        )


# privacy


def test_private_answer_is_the_noisy_difference_and_nothing_else():
    x, y = (unit(column) for column in cubic(7, 2000))
    budget = Budget(1.0)
    result = reci(x, y, budget=budget, bounds=UNIT, noise=simulated(1))
    exact = reci(x, y, budget=NO_PRIVACY, bounds=UNIT, regressor=BoundedPolynomial())
    assert result.forward is None and result.backward is None
    assert result.cost.epsilon == 1.0 and result.spent.epsilon == 1.0 and result.spent.delta == 0
    assert not result.cost.proven  # the noise is simulated here
    assert reci(x, y, budget=budget, bounds=UNIT).cost.proven
    assert [(row["label"], row["epsilon"]) for row in result.info["ledger"]] == [
        ("difference of regression errors", 1.0)
    ]
    method = BoundedPolynomial()
    scale = 2 * method.ceiling * method.unit / len(x)
    assert result.info["noise_scale"] == pytest.approx(scale)
    assert result.direction is exact.direction is Direction.X_TO_Y
    assert abs(result.margin - exact.margin) < 30 * scale
    assert 1 - result.confidence == pytest.approx(math.exp(-result.margin / scale) / 2, rel=1e-3)


def test_wrong_signs_come_as_often_as_the_closed_form_says():
    """P[wrong] = exp(-g / s) / 2 for the exact margin g and the noise scale s; 300 runs, five
    standard errors.
    """
    x, y = (unit(column) for column in cubic(8, 200))
    method = BoundedPolynomial(2, levels=5, resolution=32)
    exact = reci(x, y, budget=NO_PRIVACY, bounds=UNIT, regressor=method)
    budget = Budget(2 * method.ceiling * method.unit / len(x) / exact.margin)  # g / s = 1
    wrong = sum(
        reci(x, y, budget=budget, bounds=UNIT, regressor=method, noise=simulated(seed)).direction
        is not exact.direction
        for seed in range(300)
    )
    expected = math.exp(-1) / 2
    assert abs(wrong / 300 - expected) < 5 * math.sqrt(expected * (1 - expected) / 300)


def test_confidence_is_the_share_of_right_signs_among_equal_margins():
    """A flat prior of the exact difference: among answers with about the same margin, confidence is
    how many are right.
    """
    rng = np.random.default_rng(9)
    scale = 50.0
    exact = rng.integers(-400, 401, 400_000)
    q = math.exp(-1 / scale)
    noise = rng.geometric(1 - q, exact.shape) - rng.geometric(1 - q, exact.shape)
    released = exact + noise
    for m in (0, 20, 60):
        near = np.abs(np.abs(released) - m) <= (2 if m else 0)
        right = np.mean(np.sign(exact[near]) == np.sign(released[near]))
        assert (
            right
            == pytest.approx(_confidence(m, scale, 400), abs=0.02)
            == pytest.approx(_confidence(-m, scale, 400), abs=0.02)
        )


@pytest.mark.parametrize("scale", [0.3, 5.0, 1e3, 1e12])
@pytest.mark.parametrize("m", [0, 1, 7, 30, 31, 500])
def test_confidence_by_counting(m: int, scale: float):
    """Every exact number from -30 to 30 by its weight."""
    exact = np.arange(-30, 31)
    log_weight = -np.abs(m - exact) / scale
    weight = np.exp(log_weight - log_weight.max())
    right = weight[np.sign(exact) == np.sign(m)].sum() / weight.sum()
    assert _confidence(m, scale, 30) == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize(
    "x",
    [
        np.full(50, np.nan),
        np.full(50, np.inf),
        np.zeros(50),
        np.full(50, -1e300),
        np.repeat([0.0, 1.0], 25),
        np.arange(50) % 2 == 0,
        np.arange(50),
    ],
    ids=["nan", "inf", "constant", "far", "binary", "bool", "int"],
)
def test_private_run_is_total(x: np.ndarray):
    y = np.linspace(0, 1, 50)
    for a, b in ((x, y), (y, x), (x, x)):
        result = reci(a, b, budget=Budget(1.0), bounds=UNIT, noise=simulated())
        assert math.isfinite(result.margin) and 0 < result.confidence <= 1


def test_nan_is_the_middle_of_the_bounds():
    y = np.linspace(0, 1, 50)
    with_nan, middle = y.copy(), y.copy()
    with_nan[3], middle[3] = np.nan, 0.5
    a, b = (
        reci(x, y, budget=Budget(1.0), bounds=UNIT, noise=simulated()).margin
        for x in (with_nan, middle)
    )
    assert a == b


# bad input


def test_one_cell_does_not_decide_whether_a_private_run_is_refused(recwarn):
    """By the type that numpy takes for the whole: text, complex, objects, more than a column."""
    y = np.linspace(0, 1, 50)
    cells = y.tolist()

    def margin(x):
        return reci(x, y, budget=Budget(1.0), bounds=UNIT, noise=simulated()).margin

    middle, high = margin([*cells[:-1], 0.5]), margin([*cells[:-1], 1.0])
    for odd, expected in (
        *(("zz", middle), (1j, middle), (None, middle), ("7", high), (7 + 0j, high)),
        *((10**30, high), (np.longdouble("1e4000"), high)),
    ):
        array = np.array([*cells[:-1], odd])
        assert array.dtype != np.float64 or odd == 10**30
        assert margin(array) == margin([*cells[:-1], odd]) == expected
        for mask in (False, [False] * 50):
            assert margin(np.ma.masked_array(array, mask=mask)) == expected
    masked = np.ma.masked_array(np.array([*cells[:-1], "zz"]), mask=[*[False] * 49, True])
    assert margin(masked) == middle
    for odd in (np.timedelta64(1, "D"), np.array([1, 2]), [1], "zz"):
        x = [*cells[:-1], odd]
        assert margin(x) == margin(collections.deque(x)) == middle
    assert margin(np.array([*cells[:-1], b"\xff"])) == middle  # bytes make bytes of all
    lists = [[cell] for cell in cells]
    assert margin(lists) == margin([*lists[:-1], 0.5]) == margin([0.5] * 50)
    assert not recwarn.list


def test_decimals_are_numbers():
    """As databases and arrow tables hold them; in a private run they were all the middle."""
    y = np.linspace(0, 1, 50)
    exact = [Decimal(str(cell)) for cell in y]
    for budget in (NO_PRIVACY, Budget(1.0)):
        options = {"budget": budget, "bounds": UNIT, "noise": simulated()}
        expected = reci(y**3, y, **options).margin
        assert expected == reci(y**3, exact, **options).margin
        assert expected == reci(y**3, np.array(exact), **options).margin
    odd = [*exact[:-2], Decimal("NaN"), Decimal("sNaN")]
    found, middle = (
        reci(x, y, budget=Budget(1.0), bounds=UNIT, noise=simulated()).margin
        for x in (odd, [*y[:-2], 0.5, 0.5])
    )
    assert found == middle


def test_private_refusals():
    x, y = cubic(0)
    refused(
        PrivacyError, "bounds: a private run needs public bounds", reci, x, y, budget=Budget(1.0)
    )
    with pytest.raises(
        SensitivityError, match=r"regressor = Polynomial\(degree=3\).*BoundedPolynomial"
    ):
        reci(x, y, budget=Budget(1.0), bounds=UNIT, regressor=Polynomial())


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (
            np.zeros((20, 2)),
            np.arange(20.0),
            r"x must be one column, got an array of shape \(20, 2\)",
        ),
        (np.arange(20.0), np.arange(19.0), "lengths 20 and 19"),
        (np.arange(7.0), np.arange(7.0), "x and y have 7 records, and 8 are the least"),
        (np.arange(20).astype("M8[D]"), np.arange(20.0), "x must hold numbers"),
    ],
    ids=["2-D", "lengths", "few", "dates"],
)
def test_shapes_are_refused_in_every_run(x, y, words: str):
    for budget in (NO_PRIVACY, Budget(1.0)):
        refused(DataError, words, reci, x, y, budget=budget, bounds=UNIT)


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "x is NaN or infinite in 1 record:"), (np.inf, "x is NaN or infinite in 1 record:")],
    ids=["nan", "inf"],
)
def test_values_are_refused_without_privacy(value: float, words: str):
    x = np.arange(20.0)
    x[4] = value
    refused(DataError, words, reci, x, np.arange(20.0), budget=NO_PRIVACY)
    for odd, problem in (
        (np.array(["a"] * 20), "x must hold numbers"),
        (1j * np.arange(20.0), "x must hold numbers"),
        ([[1, 2], [3]], "x is not one column of numbers"),
    ):
        refused(DataError, problem, reci, odd, np.arange(20.0), budget=NO_PRIVACY)
    refused(DataError, "y is constant", reci, np.arange(20.0), np.full(20, 3.0), budget=NO_PRIVACY)


@pytest.mark.parametrize(
    "bounds",
    [
        ((0, 1),),
        ((0, 1), (1, 1)),
        ((0, 1), (2, 1)),
        ((0, 1), (0, math.nan)),
        ((0, math.inf), (0, 1)),
        3,
        "ab",
    ],
)
def test_bad_bounds(bounds):
    with pytest.raises(OptionError, match="bounds"):
        reci(np.arange(20.0), np.arange(20.0), budget=Budget(1.0), bounds=bounds)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Polynomial(0),
        lambda: Polynomial(2.0),
        lambda: Monomial(True),
        lambda: Logistic(slopes=()),
        lambda: Logistic(slopes=(math.nan,)),
        lambda: BoundedPolynomial(truncation=math.nan),
        lambda: BoundedPolynomial(truncation=1.5),
        lambda: BoundedPolynomial(truncation=1e-4),
        lambda: BoundedPolynomial(truncation="0.5"),
        lambda: Logistic(slopes=1.0),
        lambda: Logistic(slopes=("1",)),
        lambda: Logistic(centres=(None,)),
        lambda: Logistic(centres=0.5),
        lambda: BoundedPolynomial(degree=6, levels=9),
        lambda: BoundedPolynomial(resolution=200),
        lambda: reci([0.0] * 9, [0.0] * 9, budget=1.0),
        lambda: reci([0.0] * 9, [0.0] * 9, budget=NO_PRIVACY, noise=3),
        lambda: reci([0.0] * 9, [0.0] * 9, budget=NO_PRIVACY, regressor=3),
    ],
)
def test_bad_options(build):
    refused(OptionError, " = ", build)


def test_budget_has_no_default():
    refused(TypeError, "budget", reci, np.arange(20.0), np.arange(20.0))


def test_results_print():
    assert str(reci(*cubic(0), budget=NO_PRIVACY)).startswith("x -> y (confidence 1.000)")
    assert jaxcd.pairwise.Direction is Direction
