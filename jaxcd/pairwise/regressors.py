r"""Regressors of RECI: classes of functions on [0, 1], fitted without privacy.

None of them has a bound on what one record can do to its fit: with a budget
:func:`jaxcd.pairwise.reci` refuses them all, and :class:`jaxcd.pairwise.BoundedPolynomial`, beside
its proof in :mod:`jaxcd.pairwise.reci`, is the one that it takes.
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import special

from jaxcd.checks import check_number, check_whole, is_number
from jaxcd.errors import OptionError
from jaxcd.ops.standardising import is_constant
from jaxcd.ops.threads import one_blas_thread

__all__ = [
    "Logistic",
    "Monomial",
    "NeuralNetwork",
    "Polynomial",
    "Regressor",
    "SupportVector",
    "check_whole",
]

_MAX_MOVES, _LEAST_STEP, _MAX_LOG_SLOPE = 40, 2.0**-9, 6.0
_MAX_ITERATIONS = 200


class Regressor(abc.ABC):
    """A class of functions on [0, 1]."""

    @abc.abstractmethod
    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """min_f mean loss(y, f(x)) over the class, for x and y (n,) in [0, 1]; sensitive.

        Where the fit is a search, or its objective is another one, the mean loss of the function
        that it finds.
        """


@final
@dataclass(frozen=True)
class Polynomial(Regressor):
    """f(x) = sum_{k <= degree} a_k x^k by least squares; degree 3 is the paper's first choice.

    Args:
        degree: 1 to 15.

    Example:
        >>> import jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(size=500)
        >>> regressor = jaxcd.pairwise.Polynomial(2)
        >>> print(jaxcd.reci(x, x**3, regressor=regressor, budget=jaxcd.NO_PRIVACY).direction)
        Direction.X_TO_Y
    """

    degree: int = 3

    def __post_init__(self) -> None:
        check_whole("degree", self.degree, 1, 15)

    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """The mean squared error; Legendre polynomials span the same class and are well
        conditioned.
        """
        return _least_squares(np.polynomial.legendre.legvander(2 * x - 1, self.degree), y)


@final
@dataclass(frozen=True)
class Monomial(Regressor):
    """f(x) = a x^exponent + c by least squares.

    Args:
        exponent: 1 to 15.
    """

    exponent: int = 3

    def __post_init__(self) -> None:
        check_whole("exponent", self.exponent, 1, 15)

    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """The mean squared error."""
        return _least_squares(np.stack([np.ones_like(x), x**self.exponent], axis=1), y)


@final
@dataclass(frozen=True)
class Logistic(Regressor):
    """f(x) = a + b / (1 + exp(-c (x - d))), with a and b by least squares for each c and d.

    c and d by a search that is deterministic, and the same for mirrored data: the best of
    ``slopes`` x ``centres``, then the best of the eight neighbours in (log c, d), at half the
    distance whenever none is better.

    Args:
        slopes: starting values of c, positive.
        centres: starting values of d, finite.

    Raises:
        OptionError: slopes are not positive, centres not finite, or one is empty.
    """

    slopes: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    centres: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)

    def __post_init__(self) -> None:
        if not _are_numbers(self.slopes, 0, "(]"):
            raise OptionError(
                f"slopes = {self.slopes!r} are not positive numbers; give some such as (1.0, 10.0)"
            )
        if not _are_numbers(self.centres):
            raise OptionError(
                f"centres = {self.centres!r} are not finite numbers; give some such as (0.0, 0.5, "
                "1.0)"
            )

    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """The mean squared error at the end of the search: at most that of the best start."""
        centred = y - y.mean()
        total = float(centred @ centred)

        def lost(point: tuple[float, float]) -> float:
            bend = special.expit(math.exp(point[0]) * (x - point[1]))
            bend -= bend.mean()
            power = float(bend @ bend)
            return total - float(bend @ centred) ** 2 / power if power > 0 else total

        point = min(
            ((math.log(slope), centre) for slope in self.slopes for centre in self.centres),
            key=lost,
        )
        least, log_step, step = lost(point), 0.5, 0.125
        for _ in range(_MAX_MOVES):
            around = [
                (point[0] + i * log_step, point[1] + j * step)
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                if i or j
            ]
            best = min(
                (candidate for candidate in around if abs(candidate[0]) <= _MAX_LOG_SLOPE),
                key=lost,
                default=point,
            )
            if (found := lost(best)) < least:
                point, least = best, found
            else:
                log_step, step = log_step / 2, step / 2
                if step < _LEAST_STEP:
                    break
        return max(least, 0.0) / len(x)


@final
@dataclass(frozen=True)
class SupportVector(Regressor):
    r"""Support vector regression with a Gaussian kernel; needs scikit-learn.

    f(x) = b + sum_i a_i k(x, x_i) with k(x, z) = exp(-(x - z)^2 / (2 bandwidth^2)), where a and b
    minimise a' K a / 2 + penalty sum_i max(abs(y_i - f(x_i)) - tube, 0).

    Args:
        bandwidth: of the kernel, in units of the interval, 0.001 to 1000.
        penalty: of a residual beyond the tube, 0.001 to 1000.
        tube: residuals up to it are free, in [0, 1); far below the range of y, since RECI is about
            small errors.
        max_rows: the time of a fit grows with the square of its rows or faster, so it takes at most
            this many records, drawn without replacement; 8 to 10^5.  The error is that over all
            records.
        seed: of the draw, 0 to 2^31; a draw depends on the seed and on n alone, so both directions
            are fitted to the same records.

    Raises:
        OptionError: one is out of its range, and from :meth:`error` where scikit-learn is not
            installed.

    Source:
        Bloebaum et al. 2018 for the use in RECI; the defaults are ours, set on simulated data.
    """

    bandwidth: float = 0.2
    penalty: float = 1.0
    tube: float = 0.01
    max_rows: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("bandwidth", self.bandwidth), ("penalty", self.penalty)):
            check_number(name, value, 1e-3, 1e3, cure="give one such as 1.0")
        check_number("tube", self.tube, 0, 1, "[)", cure="give one such as 0.01")
        _check_draw(self.max_rows, self.seed)

    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """The mean squared error of the fit."""
        try:
            from sklearn.svm import SVR
        except ImportError:
            raise _missing(self) from None
        rows = _drawn(len(x), self.max_rows, self.seed)
        machine = SVR(
            kernel="rbf", gamma=0.5 / self.bandwidth**2, C=self.penalty, epsilon=self.tube
        )
        machine.fit(x[rows, None], y[rows])
        return float(np.mean((y - machine.predict(x[:, None])) ** 2))


@final
@dataclass(frozen=True)
class NeuralNetwork(Regressor):
    r"""A network with one hidden layer, f(x) = b + sum_{j <= n_hidden} a_j tanh(c_j x + d_j), by
    least squares; needs scikit-learn.

    Both variables are standardised for the fit (the class does not change), which is by L-BFGS from
    ``n_starts`` random weights and keeps the least loss; a small penalty on the weights,
    scikit-learn's, keeps them bounded.

    Args:
        n_hidden: 1 to 100.
        n_starts: 1 to 100.
        max_rows: as in :class:`SupportVector`; the seed is that of the starting weights too.
        seed: as ``max_rows``.

    Raises:
        OptionError: one is out of its range, and from :meth:`error` where scikit-learn is not
            installed.

    Source:
        Bloebaum et al. 2018 for the use in RECI; the defaults are ours, set on simulated data.
    """

    n_hidden: int = 5
    n_starts: int = 3
    max_rows: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("n_hidden", self.n_hidden, 1, 100)
        check_whole("n_starts", self.n_starts, 1, 100)
        _check_draw(self.max_rows, self.seed)

    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """The mean squared error of the best fit."""
        try:
            from sklearn.exceptions import ConvergenceWarning
            from sklearn.neural_network import MLPRegressor
        except ImportError:
            raise _missing(self) from None
        rows = _drawn(len(x), self.max_rows, self.seed)
        if is_constant(y[rows]):
            return float(np.mean((y - y[rows[0]]) ** 2))
        centre, spread = float(y[rows].mean()), float(y[rows].std())
        inputs = ((x - x[rows].mean()) / (1.0 if is_constant(x[rows]) else x[rows].std()))[:, None]
        targets = (y[rows] - centre) / spread
        # Threads cost more than these products; and a fit that stops at the limit of iterations is
        # a fit all the same.
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits = [
                MLPRegressor(
                    hidden_layer_sizes=(self.n_hidden,),
                    activation="tanh",
                    solver="lbfgs",
                    max_iter=_MAX_ITERATIONS,
                    random_state=self.seed + start,
                ).fit(inputs[rows], targets)
                for start in range(self.n_starts)
            ]
            best = min(fits, key=lambda fit: float(fit.loss_))
            return float(np.mean((y - centre - spread * best.predict(inputs)) ** 2))


def _are_numbers(values: Any, low: float = -math.inf, ends: str = "[]") -> bool:
    """Whether it is a sequence of at least one finite number."""
    return (
        isinstance(values, Sequence)
        and len(values) > 0
        and all(is_number(value, low, ends=ends) for value in values)
    )


def _check_draw(max_rows: Any, seed: Any) -> None:
    check_whole("max_rows", max_rows, 8, 10**5)
    check_whole("seed", seed, 0, 2**31)


def _drawn(n: int, max_rows: int, seed: int) -> np.ndarray:
    """At most max_rows of n rows, in order; the same ones whatever the values are."""
    return (
        np.arange(n)
        if n <= max_rows
        else np.sort(np.random.default_rng(seed).choice(n, max_rows, replace=False))
    )


def _missing(regressor: Regressor) -> OptionError:
    return OptionError(
        f"regressor = {regressor} needs scikit-learn, which is not installed: pip install "
        "scikit-learn, or use Polynomial()"
    )


def _least_squares(design: np.ndarray, y: np.ndarray) -> float:
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    return float(np.mean((y - design @ coefficients) ** 2))
