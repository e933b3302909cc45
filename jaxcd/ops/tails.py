r"""Tail probabilities as logarithms.

``1 - cdf`` is exactly 0 from z = 8.3 in float64 (5.6 in float32), and the p-values of strong edges
are far below the smallest positive float; their logarithms are not.
"""

from __future__ import annotations

import numpy as np
from scipy import special

__all__ = ["chi_square_log_sf", "normal_log_sf", "normal_quantile", "normal_two_sided_log_pvalue"]


def normal_quantile(tail: float) -> float:
    """z with P(N(0, 1) >= z) = tail, 0 < tail < 1."""
    return -float(special.ndtri(tail))


def normal_log_sf(z: np.ndarray) -> np.ndarray:
    """log(1 - Phi(z)), float64, for every finite z."""
    return special.log_ndtr(-np.asarray(z, dtype=np.float64))


def normal_two_sided_log_pvalue(z: np.ndarray) -> np.ndarray:
    """log P(|N(0,1)| >= |z|) = log 2 + log(1 - Phi(|z|)), at most 0."""
    return np.minimum(np.log(2.0) + normal_log_sf(np.abs(z)), 0.0)


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
