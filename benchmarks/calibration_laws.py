"""The laws of the calibration board: x and y given Z, under the null and off it.

Under the null x and y are independent given Z.  Off it the error of y shares with that of x: where
both are numbers, e_y = .3 e_x + .954 e' in the law's own scale; where one has levels, x moves y.
Columns are x, y, z_1, ..., all numbers; ``levels`` says which of them are labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: of the error of x in that of y
_SHARE = 0.3
Rng = np.random.Generator
Errors = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Law:
    """name: of its row.  draw: (rng, n, dependent) -> (n, 2 + |Z|).  test: the name of the test
    that the docs name for it.  levels: columns that are labels.  counted: all columns are, so that
    tests that count are among the tests.
    """

    name: str
    draw: Callable[[Rng, int, bool], np.ndarray]
    test: str
    about: str
    levels: tuple[int, ...] = ()
    counted: bool = False


def _normal(rng: Rng, n: int) -> np.ndarray:
    return rng.normal(size=n)


def _uniform(rng: Rng, n: int) -> np.ndarray:
    return rng.uniform(-0.5, 0.5, n)


def _errors(
    rng: Rng, n: int, dependent: bool, draw: Callable[[Rng, int], np.ndarray] = _normal
) -> Errors:
    first, second = draw(rng, n), draw(rng, n)
    return first, _SHARE * first + np.sqrt(1 - _SHARE**2) * second if dependent else second


def _table(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.column_stack([x, y, z])


def _paper(scale: float) -> Callable[[Rng, int, bool], np.ndarray]:
    def draw(rng: Rng, n: int, dependent: bool) -> np.ndarray:
        z = rng.uniform(-0.5, 0.5, (n, 5))
        e, f = _errors(rng, n, dependent, _uniform)
        both = np.sin(z.sum(axis=1))
        return _table(both + scale * e, both + scale * f, z)

    return draw


def _index(size: int, scale: float = 1.0) -> Callable[[Rng, int, bool], np.ndarray]:
    def draw(rng: Rng, n: int, dependent: bool) -> np.ndarray:
        z = rng.normal(size=(n, size))
        index = z.sum(axis=1) / np.sqrt(size)
        e, f = _errors(rng, n, dependent)
        return _table(np.sin(index) + scale * e, np.tanh(2 * index) + scale * f, z)

    return draw


_FUNCTIONS = (np.sin, np.cos, np.tanh, np.square, np.exp)


def _drawn_functions(size: int) -> Callable[[Rng, int, bool], np.ndarray]:
    """The simulation model of PCD: functions and weights of its own in every data set."""

    def draw(rng: Rng, n: int, dependent: bool) -> np.ndarray:
        z = rng.normal(size=(n, size))
        e, f = _errors(rng, n, dependent)
        columns = []
        for error in (e, f):
            weights = rng.uniform(0.5, 1.5, size) * rng.choice([-1, 1], size)
            columns.append(_FUNCTIONS[rng.integers(5)](z @ weights) + error)
        return _table(*columns, z)

    return draw


def _sum_of_ten(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.uniform(-0.5, 0.5, (n, 10))
    e, f = _errors(rng, n, dependent)
    both = np.sin(z.sum(axis=1))
    return _table(both + 0.5 * e, both + 0.5 * f, z)


def _sum_of_functions(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 3))
    e, f = _errors(rng, n, dependent)
    return _table(
        np.sin(z[:, 0]) + np.abs(z[:, 1]) + z[:, 2] + e,
        np.cos(z[:, 0]) + np.tanh(z[:, 1]) - z[:, 2] + f,
        z,
    )


def _interaction(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 2))
    e, f = _errors(rng, n, dependent)
    both = z[:, 0] * z[:, 1]
    return _table(both + e, np.tanh(both) + f, z)


def _skewed(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.exponential(size=(n, 2))
    e, f = _errors(rng, n, dependent, lambda r, m: r.exponential(size=m) - 1)
    return _table(np.sqrt(z[:, 0]) + z[:, 1] + e, np.log(0.1 + z[:, 0]) + z[:, 1] + f, z)


def _heavy_errors(degrees: int) -> Callable[[Rng, int, bool], np.ndarray]:
    def draw(rng: Rng, n: int, dependent: bool) -> np.ndarray:
        z = rng.normal(size=(n, 1))
        e, f = _errors(rng, n, dependent, lambda r, m: r.standard_t(degrees, m))
        return _table(np.sin(z[:, 0]) + 0.5 * e, np.tanh(z[:, 0]) + 0.5 * f, z)

    return draw


def _heavy_given(degrees: int) -> Callable[[Rng, int, bool], np.ndarray]:
    def draw(rng: Rng, n: int, dependent: bool) -> np.ndarray:
        z = rng.standard_t(degrees, (n, 1))
        e, f = _errors(rng, n, dependent)
        return _table(np.tanh(z[:, 0]) + 0.5 * e, np.abs(np.tanh(z[:, 0])) + 0.5 * f, z)

    return draw


def _heavy_linear(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.standard_t(3, (n, 2))
    e, f = _errors(rng, n, dependent)
    both = z.sum(axis=1)
    return _table(both + e, both + f, z)


def _spread(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 1))
    e, f = _errors(rng, n, dependent)
    size = 0.3 + np.abs(z[:, 0])
    return _table(np.sin(z[:, 0]) + size * e, z[:, 0] + size * f, z)


def _spread_of_two(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.uniform(-2, 2, (n, 2))
    e, f = _errors(rng, n, dependent)
    size = np.exp(0.6 * z[:, 0])
    return _table(z[:, 1] + size * e, np.sin(z[:, 1]) + size * f, z)


def _multiplicative(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 2))
    e, f = _errors(rng, n, dependent)
    both = z.sum(axis=1) / 2
    return _table(np.exp(both + 0.5 * e), np.exp(-both + 0.5 * f), z)


def _shape(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """The skewness of the errors has the sign of z: no location and no scale mends it."""
    z = rng.normal(size=(n, 1))
    e, f = _errors(rng, n, dependent, lambda r, m: r.exponential(size=m) - 1)
    side = np.sign(z[:, 0])
    return _table(z[:, 0] + side * e, np.sin(z[:, 0]) + side * f, z)


def _binary(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 1))
    chance = 1 / (1 + np.exp(-1.5 * z[:, 0]))
    x = rng.random(n) < chance
    y = rng.random(n) < 1 / (1 + np.exp(-1.5 * z[:, 0] - dependent * (1.0 * x - 0.5)))
    return _table(x, y, z)


def _few_levels(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.uniform(-2, 2, (n, 2))
    e, f = _errors(rng, n, dependent)
    x, y = z[:, 0] + z[:, 1] + e, z[:, 0] - np.abs(z[:, 1]) + f
    return _table(np.digitize(x, (-1, 1)), np.digitize(y, (-1.5, -0.5, 0.5)), z)


def _level_and_number(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 2))
    x = np.digitize(z[:, 0] + z[:, 1] + rng.normal(size=n), (-1, 1))
    y = np.sin(z[:, 0]) + z[:, 1] + 0.3 * dependent * x + 0.7 * rng.normal(size=n)
    return _table(x, y, z)


def _mixed(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    group = rng.integers(0, 3, n)
    z = rng.normal(size=n)
    e, f = _errors(rng, n, dependent)
    x = np.choose(group, (np.sin(2 * z), z, 1 + 0 * z)) + 0.7 * e
    y = np.choose(group, (z, np.cos(z), -1 + 0 * z)) + 0.7 * f
    return _table(x, y, np.column_stack([group, z]))


def _levels_given(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.integers(0, 4, (n, 2))
    e, f = _errors(rng, n, dependent)
    return _table(np.sin(2.0 * z[:, 0]) + z[:, 1] + e, (z[:, 0] == z[:, 1]) + f, z)


def _near_deterministic(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.uniform(-2, 2, (n, 1))
    e, f = _errors(rng, n, dependent)
    return _table(np.sin(2 * z[:, 0]) + 0.01 * e, np.exp(z[:, 0] / 2) + 0.01 * f, z)


def _between(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """The chain x -> z -> y: x given z is of no simple form."""
    x = rng.normal(size=n)
    z = np.tanh(x) + 0.3 * rng.normal(size=n)
    y = np.sin(2 * z) + 0.5 * dependent * np.cos(x) + 0.5 * rng.normal(size=n)
    return _table(x, y, z)


def _steps(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    z = rng.normal(size=(n, 1))
    e, f = _errors(rng, n, dependent)
    return _table(np.sign(z[:, 0]) + 0.5 * e, np.floor(1.5 * z[:, 0]) + 0.5 * f, z)


def _thresholds(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """Of age and of weight over height squared, beside slopes."""
    age, index = rng.uniform(20, 90, n), rng.normal(27, 4, n)
    e, f = _errors(rng, n, dependent)
    old, heavy = age >= 65, index > 30
    x = 120 + 0.3 * age + 10 * old + 8 * heavy + 10 * e
    y = 5 * old + 0.1 * index + 3 * heavy + 2 * f
    return _table(x, y, np.column_stack([age, index]))


def _corner(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """A regression tree of two splits."""
    z = rng.normal(size=(n, 2))
    e, f = _errors(rng, n, dependent)
    corner = (z[:, 0] > 0.3) & (z[:, 1] > -0.2)
    return _table(2 * corner + 0.5 * e, 2 * corner + (z[:, 0] > 0.3) + 0.5 * f, z)


def _regimes(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """The slope of one column changes where another passes zero."""
    z = rng.normal(size=(n, 2))
    e, f = _errors(rng, n, dependent)
    up = z[:, 0] > 0
    return _table(np.where(up, z[:, 1], -z[:, 1]) + 0.5 * e, 1.5 * up * z[:, 1] + 0.5 * f, z)


def _weekends(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """Higher at weekends; dates of five years, and age."""
    date, age = rng.integers(0, 5 * 365, n), rng.uniform(20, 80, n)
    e, f = _errors(rng, n, dependent)
    weekend = date % 7 >= 5
    return _table(weekend + 0.02 * age + 0.5 * e, weekend + 0.5 * f, np.column_stack([date, age]))


def _wave(rng: Rng, n: int, dependent: bool) -> np.ndarray:
    """Of one column, beside a line in another."""
    z = rng.normal(size=(n, 2))
    e, f = _errors(rng, n, dependent)
    wave = np.sin(8 * z[:, 0])
    return _table(wave + z[:, 1] + 0.5 * e, wave - 0.5 * z[:, 1] + 0.5 * f, z)


def _strata(n_strata: int, k: int) -> Callable[[Rng, int, bool], np.ndarray]:
    """Strata with shares as 1, 1/2, 1/3, ..., and uneven levels in each."""

    def draw(rng: Rng, n: int, dependent: bool) -> np.ndarray:
        shares = 1 / np.arange(1, n_strata + 1)
        z = rng.choice(n_strata, size=n, p=shares / shares.sum())
        x, y = (
            np.minimum(
                (rng.random((n, 1)) > rng.dirichlet(np.ones(k), n_strata)[z].cumsum(1)).sum(1),
                k - 1,
            )
            for _ in range(2)
        )
        if dependent:
            y = np.where(rng.random(n) < _SHARE, x, y)
        return _table(x, y, z)

    return draw


RCIT, KCI, CHI_SQUARE = "RCIT", "KCI", "ChiSquare"
LAWS: Sequence[Law] = (
    Law("paper, c = 1", _paper(1.0), RCIT, "Zhang et al.: sin(sum of 5 uniform) + c uniform"),
    Law("paper, c = 0.5", _paper(0.5), RCIT, "the same with half the error"),
    Law("sum of 1", _index(1), RCIT, "sin, tanh of a normal column, normal errors"),
    Law("sum of 2", _index(2), RCIT, "of two columns"),
    Law("sum of 3", _index(3), RCIT, "of three columns"),
    Law("sum of 5", _index(5), RCIT, "of five columns"),
    Law("sum of 10", _sum_of_ten, RCIT, "sin(sum of 10 uniform) + normal error of .5"),
    Law("PCD, 3", _drawn_functions(3), RCIT, "drawn functions of a weighted sum of 3 columns"),
    Law("PCD, 5", _drawn_functions(5), RCIT, "of five columns"),
    Law("additive", _sum_of_functions, RCIT, "three functions, one a column"),
    Law("interaction", _interaction, RCIT, "z1 z2 and its tanh"),
    Law("skewed", _skewed, RCIT, "exponential columns and errors"),
    Law("t3 errors", _heavy_errors(3), RCIT, "errors of three degrees of freedom"),
    Law("Cauchy errors", _heavy_errors(1), KCI, "errors without a mean"),
    Law("Cauchy z", _heavy_given(1), RCIT, "bounded functions of a Cauchy column"),
    Law("t3 z, linear", _heavy_linear, RCIT, "x = z1 + z2 + e, z of three degrees of freedom"),
    Law("spread |z|", _spread, RCIT, "errors times .3 + |z|"),
    Law("spread exp", _spread_of_two, RCIT, "errors times exp(.6 z1), mean in z2"),
    Law("multiplicative", _multiplicative, RCIT, "exp(index + error)"),
    Law("shape", _shape, KCI, "the skewness of the errors has the sign of z"),
    Law("binary", _binary, KCI, "two logistic columns"),
    Law("few levels", _few_levels, KCI, "three and four levels"),
    Law("level and number", _level_and_number, KCI, "three levels; a number"),
    Law("mixed", _mixed, KCI, "Z: a label of three, and a number", levels=(2,)),
    Law("levels given", _levels_given, RCIT, "Z: two columns of four levels"),
    Law("near-deterministic", _near_deterministic, RCIT, "errors of one hundredth"),
    Law("chain", _between, RCIT, "x -> z -> y"),
    Law("steps", _steps, RCIT, "sign(z) and floor(1.5 z), errors of .5"),
    Law("thresholds", _thresholds, RCIT, "jumps at an age and a weight, beside slopes"),
    Law("corner", _corner, RCIT, "a regression tree of two splits"),
    Law("regimes", _regimes, RCIT, "a slope that changes at a threshold of another column"),
    Law("weekends", _weekends, RCIT, "higher at weekends, given the date (five years) and age"),
    Law("wave", _wave, RCIT, "sin(8 z1) beside a line in z2"),
    Law(
        "20 strata",
        _strata(20, 2),
        CHI_SQUARE,
        "two levels; Z: 20 labels, the rarest 1 of 72 rows",
        levels=(0, 1, 2),
        counted=True,
    ),
    Law(
        "64 strata",
        _strata(64, 3),
        CHI_SQUARE,
        "three levels; Z: 64 labels, the rarest 1 of 304 rows",
        levels=(0, 1, 2),
        counted=True,
    ),
)
