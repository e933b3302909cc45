r"""Conversions between privacy measures, each rounded to the safe side.

zCDP and (epsilon, delta). M is rho-zCDP if its Renyi divergence of every order a > 1 between
neighbours is at most rho a (Bun and Steinke 2016). For every a > 1 a mechanism of Renyi divergence
R(a) is (epsilon, delta)-DP with

    epsilon = R(a) + log(1 - 1/a) - log(a delta) / (a - 1)

(Canonne, Kamath, Steinke 2020, Proposition 12). Each order gives a valid epsilon, so whatever order
the numerical minimisation stops at, its value is an upper bound: an imperfect minimum costs
utility, not privacy.

Amplification by sampling m of n records without replacement, rate = m/n, under REPLACE_ONE (Balle,
Barthe, Gaboardi 2018): if the base mechanism is e-DP on the subsample, the whole is log(1 + rate
(exp(e) - 1))-DP. Proof: let D, D' differ in record i; let P1, P1' be the output probabilities of an
event given that i is sampled and P0 (the same for both) given that it is not; P = (1-rate)
P0 + rate P1, P' likewise. P1 <= exp(e) P1'; and P1 <= exp(e) P0, because exchanging i for a uniform
record outside turns a uniform subset with i into a uniform subset without it, one record apart
(m < n; m = n is trivial). With u = min(P0, P1') this gives P1 - P1' <= (exp(e) - 1) u, and u <= P'.
Hence P = P' + rate (P1 - P1') <= (1 + rate (exp(e) - 1)) P'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..checks import check_nonnegative, check_positive, check_share
from ..errors import OptionError
from .rounding import round_up, sqrt_down

_MACHINE = float(np.finfo(np.float64).eps)
_DELTA_CURE = "give a small positive number such as 1e-6; delta=0 has no conversion from zCDP"


def _order_term(log_t: np.ndarray, log_delta: float) -> tuple[np.ndarray, np.ndarray]:
    """The part of epsilon that does not contain rho, and the sum of the absolute values of its
    terms; t = a - 1.
    """
    t = np.exp(log_t)
    first = np.log1p(np.exp(-log_t))  # -log(1 - 1/a)
    second = np.log1p(t) / t
    third = -log_delta / t
    return third - first - second, first + second + third


def _epsilon_at(log_t: np.ndarray, rho: float, log_delta: float) -> np.ndarray:
    """An upper bound on epsilon from order 1 + exp(log_t), rounding errors of its few terms
    included.
    """
    term, size = _order_term(log_t, log_delta)
    linear = rho * (1.0 + np.exp(log_t))
    found: np.ndarray = linear + term + 16 * _MACHINE * (linear + size)
    return found


def _refine(
    evaluate: Callable[[NDArray[np.float64]], NDArray[np.float64]], low: float, high: float
) -> float:
    """The smallest value of ``evaluate`` over [low, high], by a grid that closes in on its best
    point.
    """
    best = math.inf
    for _ in range(9):
        points = np.linspace(low, high, 129)
        values = evaluate(points)
        at = int(np.argmin(values))
        best = min(best, float(values[at]))
        low, high = float(points[max(at - 1, 0)]), float(points[min(at + 1, 128)])
    return best


def rho_to_epsilon(rho: float, delta: float) -> float:
    r"""Return the epsilon at which every rho-zCDP mechanism is (epsilon, delta)-DP.

    epsilon = min over a > 1 of rho a + log(1 - 1/a) - log(a delta) / (a - 1), and 0 where that is
    negative.

    Args:
        rho: zero or positive; infinity gives infinity.
        delta: in (0, 1).

    Returns:
        epsilon, never below the exact minimum.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Canonne, Kamath, Steinke 2020, The discrete Gaussian for differential privacy, Proposition
        12.

    Example:
        >>> from jaxcd.privacy import rho_to_epsilon
        >>> round(rho_to_epsilon(0.02, 1e-6), 3)
        0.9
    """
    check_share("delta", delta, cure=_DELTA_CURE)
    if rho == math.inf:
        return math.inf
    rho = check_nonnegative("rho", rho)
    return _rho_to_epsilon(rho, delta) if rho > 0 else 0.0


@lru_cache(maxsize=4096)
def _rho_to_epsilon(rho: float, delta: float) -> float:
    log_delta = math.log(delta)
    # Without the lesser terms the best order is 1 + sqrt(log(1/delta) / rho); the grid is wide
    # around it.
    centre = 0.5 * (math.log(max(-log_delta, 1e-300)) - math.log(rho))
    with np.errstate(over="ignore"):
        best = _refine(
            lambda points: _epsilon_at(points, rho, log_delta), centre - 12.0, centre + 12.0
        )
    return max(0.0, best)


def epsilon_to_rho(epsilon: float, delta: float) -> float:
    r"""Return the largest rho whose conversion at this delta does not exceed epsilon.

    The inverse of :func:`rho_to_epsilon`, rounded down: ``rho_to_epsilon(epsilon_to_rho(epsilon,
    delta), delta) <= epsilon`` always.

    Args:
        epsilon: positive and finite.
        delta: in (0, 1).

    Returns:
        rho.

    Raises:
        OptionError: an argument is out of its range.

    Example:
        >>> from jaxcd.privacy import epsilon_to_rho
        >>> round(epsilon_to_rho(1.0, 1e-6), 4)
        0.0244
    """
    check_share("delta", delta, cure=_DELTA_CURE)
    return _epsilon_to_rho(check_positive("epsilon", epsilon), delta)


@lru_cache(maxsize=1024)
def _epsilon_to_rho(epsilon: float, delta: float) -> float:
    low, high = -745.0, 709.0  # bounds of log(rho)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _rho_to_epsilon(math.exp(middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    rho, step = math.exp(low), 1e-15
    # the numerical minimum is not exactly monotone in rho
    while rho > 0 and _rho_to_epsilon(rho, delta) > epsilon:
        rho, step = rho * (1 - step), 2 * step
    return rho


def pure_to_rho(epsilon: float) -> float:
    """Return epsilon^2 / 2, the zCDP of an epsilon-DP mechanism (Bun and Steinke 2016, Proposition
    1.4), rounded up.

    Args:
        epsilon: positive.

    Returns:
        rho, rounded up.

    Example:
        >>> from jaxcd.privacy import pure_to_rho
        >>> round(pure_to_rho(0.5), 6)
        0.125
    """
    return _square_over(epsilon, 2)


def rho_to_pure(rho: float) -> float:
    """Return the largest epsilon with ``pure_to_rho(epsilon) <= rho``: sqrt(2 rho), rounded
    down.

    Args:
        rho: positive.

    Returns:
        The largest epsilon whose mechanism is rho-zCDP, rounded down.

    Example:
        >>> from jaxcd.privacy import rho_to_pure
        >>> round(rho_to_pure(0.125), 6)
        0.5
    """
    return _sqrt_of(rho, 2)


def exponential_to_rho(epsilon: float) -> float:
    """Return epsilon^2 / 8, the zCDP of an epsilon-DP exponential mechanism (Cesar and Rogers
    2021), rounded up.

    Args:
        epsilon: positive.

    Returns:
        rho, rounded up.

    Example:
        >>> from jaxcd.privacy import exponential_to_rho
        >>> round(exponential_to_rho(0.5), 6)
        0.03125
    """
    return _square_over(epsilon, 8)


def rho_to_exponential(rho: float) -> float:
    """Return the largest epsilon with ``exponential_to_rho(epsilon) <= rho``: sqrt(8 rho), rounded
    down.

    Args:
        rho: positive.

    Returns:
        The largest epsilon whose exponential mechanism is rho-zCDP, rounded down.

    Example:
        >>> from jaxcd.privacy import rho_to_exponential
        >>> round(rho_to_exponential(0.03125), 6)
        0.5
    """
    return _sqrt_of(rho, 8)


def _square_over(epsilon: float, divisor: int) -> float:
    epsilon = check_positive("epsilon", epsilon, allow_infinity=True)
    if math.isinf(epsilon) or epsilon > 1e150:
        return math.inf
    return round_up(Fraction(epsilon) ** 2 / divisor)


def _sqrt_of(rho: float, factor: int) -> float:
    rho = check_positive("rho", rho, allow_infinity=True)
    if math.isinf(rho):
        return math.inf
    # epsilon^2 / factor <= rho exactly, and rho is a float, so rounding the left side up cannot
    # pass rho.
    return sqrt_down(Fraction(min(rho, 1e300)) * factor)


def subsampled_epsilon(epsilon: float, rate: float) -> float:
    r"""Return the epsilon of an epsilon-DP mechanism run on a secret uniform subset: log(1 + rate
    (exp(epsilon) - 1)).

    Args:
        epsilon: of the base mechanism on the subsample, positive; infinity gives infinity.
        rate: m/n, in (0, 1].

    Returns:
        The epsilon of the whole, rounded up.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: REPLACE_ONE for both (sampling a fixed number m of n records without replacement).
        Public: n and m. The subset is drawn fresh, uniformly, independent of the data, and never
        published. Proof: in the module's docstring.

    Example:
        >>> from jaxcd.privacy import subsampled_epsilon
        >>> round(subsampled_epsilon(1.0, 0.1), 3)
        0.159
    """
    epsilon = check_positive("epsilon", epsilon, allow_infinity=True)
    rate = check_share("rate", rate, closed=True, cure="give n_subsample / n_samples")
    if rate == 1 or math.isinf(epsilon):
        return epsilon
    if epsilon < 700:
        value = math.log1p(rate * math.expm1(epsilon))
    else:  # log(rate e^epsilon + 1 - rate)
        value = epsilon + math.log(rate) + math.log1p((1 - rate) / rate * math.exp(-epsilon))
    return (
        value * (1 + 16 * _MACHINE)
        + 16 * _MACHINE * (abs(math.log(rate)) if epsilon >= 700 else 0.0)
        + 5e-324
    )


def amplified_epsilon(epsilon: float, rate: float) -> float:
    r"""Return the epsilon that a mechanism on the subsample may have: log((exp(epsilon) - 1) /
    rate + 1).

    The inverse of :func:`subsampled_epsilon`, rounded down:
    ``subsampled_epsilon(amplified_epsilon(e, r), r) <= e`` always.

    Args:
        epsilon: of the whole, positive; infinity gives infinity.
        rate: m/n, in (0, 1].

    Returns:
        The epsilon of the base mechanism on the subsample, at least ``epsilon`` up to rounding.

    Raises:
        OptionError: an argument is out of its range.

    Example:
        >>> from jaxcd.privacy import amplified_epsilon
        >>> round(amplified_epsilon(1.0, 0.1), 3)
        2.9
    """
    epsilon = check_positive("epsilon", epsilon, allow_infinity=True)
    rate = check_share("rate", rate, closed=True, cure="give n_subsample / n_samples")
    if rate == 1 or math.isinf(epsilon):
        return epsilon
    if epsilon < 700 and math.expm1(epsilon) / rate < 1e300:
        value = math.log1p(math.expm1(epsilon) / rate)
    else:
        value = epsilon - math.log(rate) + math.log1p((rate - 1) * math.exp(-epsilon))
    step = 4 * _MACHINE
    while value > 0 and subsampled_epsilon(value, rate) > epsilon:
        value, step = value * (1 - step), 2 * step
    if not value > 0:
        raise OptionError(
            f"epsilon is too small to be amplified, got {epsilon!r}: give at least 1e-300"
        )
    return value
