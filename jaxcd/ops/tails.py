r"""Tail probabilities as logarithms.

``1 - cdf`` is exactly 0 from z = 8.3 in float64 (5.6 in float32), and the p-values of strong edges
are far below the smallest positive float; their logarithms are not.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

__all__ = [
    "chi_square_log_sf",
    "normal_laplace_log_pvalue",
    "normal_log_sf",
    "normal_quantile",
    "normal_two_sided_log_pvalue",
    "student_quantile",
    "student_two_sided_log_pvalue",
]


def normal_quantile(tail: float) -> float:
    """z with P(N(0, 1) >= z) = tail, 0 < tail < 1."""
    return -float(special.ndtri(tail))


def normal_log_sf(z: np.ndarray) -> np.ndarray:
    """log(1 - Phi(z)), float64, for every finite z."""
    return special.log_ndtr(-np.asarray(z, dtype=np.float64))


def normal_two_sided_log_pvalue(z: np.ndarray) -> np.ndarray:
    """log P(|N(0,1)| >= |z|) = log 2 + log(1 - Phi(|z|)), at most 0."""
    return np.minimum(np.log(2.0) + normal_log_sf(np.abs(z)), 0.0)


def student_quantile(tail: float, dof: int) -> float:
    """t with P(t_dof >= t) = tail, 0 < tail < 1."""
    return -float(special.stdtrit(dof, tail))


def student_two_sided_log_pvalue(t: np.ndarray, dof: int) -> np.ndarray:
    """log P(|t_dof| >= |t|) = log I_x(a, 1/2), a = dof / 2, x = dof / (dof + t^2), for every finite
    t; where that is no float, by x^a (1 - x)^(1/2) F(a + 1/2, 1; a + 1; x) / (a B(a, 1/2)).
    """
    ratio = np.asarray(t, dtype=np.float64) ** 2 / dof
    a, x = dof / 2, 1 / (1 + ratio)
    tail = special.betainc(a, 0.5, x)
    far = tail < 1e-290
    result = np.log(np.where(far, 1.0, tail))
    if far.any():
        of, up = x[far], ratio[far]
        series = np.log(special.hyp2f1(a + 0.5, 1.0, a + 1, of))
        front = -a * np.log1p(up) + np.log1p(-of) / 2 - special.betaln(a, 0.5) - math.log(a)
        result[far] = front + series
    return result


def normal_laplace_log_pvalue(t: float, variance: float, scale: float) -> float:
    r"""log P(|N + L| >= |t|), N normal with this variance and L Laplace noise of this scale,
    independent.

    With s the standard deviation and a = s / b, for t >= 0,

        P(N + L >= t) = Phi(-t/s) + e^{a^2/2 - t/b} Phi(t/s - a) / 2 - e^{a^2/2 + t/b} Phi(-t/s -
        a) / 2.

    Args:
        t: any number.
        variance: from 0.
        scale: b, from 0; both 0: log 1 for t = 0, else -infinity.

    Example:
        >>> from jaxcd.ops.tails import normal_laplace_log_pvalue
        >>> round(normal_laplace_log_pvalue(-3.0, 0.0, 2.0), 6)  # of Laplace noise alone
        -1.5
    """
    t, s = abs(t), math.sqrt(variance)
    if not max(s, scale) > 0:
        return 0.0 if t == 0 else -math.inf
    if scale <= 1e-9 * s:
        return float(normal_two_sided_log_pvalue(np.array(t / s)))
    if s <= 1e-9 * scale:
        return -t / scale
    a, far, by = s / scale, t / s, t / scale
    logs = np.array(
        [
            special.log_ndtr(-far),
            a * a / 2 - by + special.log_ndtr(far - a) - math.log(2),
            a * a / 2 + by + special.log_ndtr(-far - a) - math.log(2),
        ]
    )
    largest = logs[:2].max()
    tail = np.exp(logs - largest) @ np.array([1.0, 1.0, -1.0])
    return min(math.log(2) + float(largest + np.log(tail)), 0.0)


def chi_square_log_sf(x: np.ndarray, dof: np.ndarray) -> np.ndarray:
    r"""log P(chi2_dof >= x), float64; 0 where x <= 0 or dof <= 0 (a statistic without degrees of
    freedom says nothing).

    Where the survival function is representable it is the regularised incomplete gamma function
    Q(dof / 2, x / 2).  Beyond, log Q(a, t) = a log t - t - log Gamma(a) + log K, with K Legendre's
    continued fraction 1 / (t + 1 - a - 1 (1 - a) / (t + 3 - a - 2 (2 - a) / (t + 5 - a - ...))),
    evaluated by Lentz's algorithm (there t >> a, so it converges in a few dozen steps).  Source:
    Abramowitz and Stegun, 6.5.31.
    """
    x, dof = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(dof, dtype=np.float64))
    proper = (x > 0) & (dof > 0)
    a = np.where(proper, dof / 2, 1.0)
    t = np.where(proper, x / 2, 0.0)
    tail = special.gammaincc(a, t)
    far = tail < 1e-290
    result = np.log(np.where(far, 1.0, tail))
    if far.any():
        result[far] = _log_gamma_tail(a[far], t[far])
    return np.where(proper, result, 0.0)


def _log_gamma_tail(a: np.ndarray, t: np.ndarray, steps: int = 300) -> np.ndarray:
    tiny = 1e-300
    b = t + 1 - a
    d = 1 / b
    c = np.full_like(b, 1 / tiny)
    fraction = d.copy()
    for i in range(1, steps + 1):
        numerator = -i * (i - a)
        b = b + 2
        d = 1 / np.where(np.abs(numerator * d + b) < tiny, tiny, numerator * d + b)
        c = np.where(np.abs(b + numerator / c) < tiny, tiny, b + numerator / c)
        step = c * d
        fraction = fraction * step
        if np.all(np.abs(step - 1) < 1e-15):
            break
    return a * np.log(t) - t - special.gammaln(a) + np.log(fraction)
