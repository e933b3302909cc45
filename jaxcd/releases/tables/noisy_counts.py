r"""A Poisson count seen through discrete Laplace noise: its exact likelihood and its posterior
mean.

y = N + Z,  N ~ Poisson(mu),  P[Z = k] = (1 - q) / (1 + q) q^|k|,  q = exp(-1/b).

Splitting the sum over N at y gives two Poisson tails,

    f(y; mu) = (1 - q) / (1 + q) [ q^y e^{mu/q - mu} P(Pois(mu/q) <= y)  +  q^{-y} e^{mu q - mu}
    P(Pois(mu q) > y) ],

and factoring the Poisson probabilities at y and y + 1 out of them

    f(y; mu) = (1 - q) / (1 + q) [ pois(y; mu) S + q pois(y + 1; mu) T ],
    S = sum_{j=0}^{y} y!/(y-j)! (q/mu)^j = P(Pois(mu/q) <= y) / pois(y; mu/q),
    T = sum_{j>=0} (y+1)!/(y+1+j)! (mu q)^j = P(Pois(mu q) > y) / pois(y + 1; mu q),

which neither overflow nor cancel.  Given y, N is a mixture of the two sides, with means (mu/q)
(1 - 1/S) = y S_{y-1} / S_y and mu q + (y + 1)/T.  For y < 0 the first side is empty and the second
is q^{-y} e^{mu q - mu}: N is Poisson(mu q) then.  For y far above mu/q it is the other way round,

    f(y; mu) = (1 - q) / (1 + q) q^y e^{mu/q - mu} (1 - r),  N ~ Poisson(mu/q),

with r at most P(Pois(mu/q) > y): that is all of the second side, too, by Chernoff's bound of the
Poisson tail at the exponent 1/b.  Where the noise drowns the rows nothing else would be left of
the difference of numbers as large as y log y.
"""

from __future__ import annotations

from typing import final

import numpy as np
from scipy import special

__all__ = ["TabulatedCounts", "noisy_count"]

# : Below this a tail probability may have lost digits to underflow, and the ratio is summed term by
# term.
_TINY = 1e-290
_MAX_TERMS = 4000
# : Below this log S the difference 1 - 1 / S loses digits (all of them where the noise is small),
# and y S_{y-1} / (l S_y) is taken for it.
_CANCELS = 0.1
# : Step of the table in sqrt(mu), in which a Poisson count has the standard deviation 1/2
# everywhere, and the half-width of the : table about sqrt(y), beside what the noise adds.
_STEP = 0.125
# : P(Pois(l) > l + 10 sqrt(l) + 40) is below 1e-18 for every l.
_FAR, _FAR_OF_NONE = 10.0, 40.0
_REACH = 8.0


def noisy_count(y: np.ndarray, mu: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    r"""log f(y; mu) and E[N | y, mu], elementwise.

    Args:
        y: whole numbers, float64, any shape that broadcasts with ``mu``.
        mu: Poisson means, not negative; at 0 the count is surely 0.
        scale: b of the noise, from 0 (no noise) on.

    Returns:
        Two float64 arrays of the common shape; the log likelihood is -inf where y is impossible.
    """
    y, mu = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64))
    if scale == 0 or scale < 1.4e-3:  # q = exp(-1/b) underflows: there is no noise
        with np.errstate(divide="ignore"):
            log_f = np.where(
                y < 0, -np.inf, special.xlogy(y, mu) - mu - special.gammaln(np.maximum(y, 0) + 1)
            )
        return log_f, np.maximum(y, 0) + 0.0
    q, log_norm, lost = _of_noise(scale)
    low = mu / q
    above = y > low + _FAR * np.sqrt(low) + _FAR_OF_NONE
    # y < 0, and y far above the count
    log_f = log_norm - np.abs(y) / scale + np.where(above, low * lost, -mu * lost)
    mean = np.where(above, low, mu * q)
    inside = (y >= 0) & ~above
    if inside.any():
        log_f[inside], mean[inside] = _nonnegative(y[inside], mu[inside], q, log_norm)
    return log_f, mean


def _of_noise(scale: float) -> tuple[float, float, float]:
    """q, log((1 - q) / (1 + q)) and 1 - q, which large noise leaves as much as small."""
    q, lost = float(np.exp(-1 / scale)), float(-np.expm1(-1 / scale))
    return q, float(np.log(lost) - np.log1p(q)), lost


def _nonnegative(
    y: np.ndarray, mu: np.ndarray, q: float, log_norm: float
) -> tuple[np.ndarray, np.ndarray]:
    positive = mu > 0
    mu = np.where(positive, mu, 1.0)
    log_factorial = special.gammaln(y + 1)
    log_mu = np.log(mu)
    log_pois = y * log_mu - mu - log_factorial
    low, high = mu / q, mu * q
    tail = special.gammaincc(y + 1, low)
    log_s = np.log(np.maximum(tail, _TINY)) - (y * np.log(low) - low - log_factorial)
    lost = tail < _TINY
    if lost.any():
        log_s[lost] = np.log(_low_ratio(y[lost], low[lost]))
    tail = special.gammainc(y + 1, high)
    log_t = np.log(np.maximum(tail, _TINY)) - (
        (y + 1) * np.log(np.maximum(high, _TINY)) - high - log_factorial - np.log(y + 1)
    )
    lost = tail < _TINY
    if lost.any():
        log_t[lost] = np.log(_high_ratio(y[lost], high[lost]))
    first = log_pois + log_s
    second = log_pois + log_mu - np.log(y + 1) + np.log(q) + log_t
    log_f = np.logaddexp(first, second)
    weight = np.exp(first - log_f)
    below = -low * np.expm1(-log_s)  # l (1 - 1 / S_y) = y S_{y-1} / S_y
    cancels = log_s < _CANCELS
    if cancels.any():
        below[cancels] = (
            y[cancels]
            * _low_ratio(np.maximum(y[cancels] - 1, 0), low[cancels])
            * np.exp(-log_s[cancels])
        )
    mean = weight * below + (1 - weight) * (high + (y + 1) * np.exp(-log_t))
    # At mu = 0 the count is 0, and y is the noise.
    return np.where(positive, log_norm + log_f, log_norm + y * np.log(q)), np.where(
        positive, mean, 0.0
    )


def _low_ratio(y: np.ndarray, low: np.ndarray) -> np.ndarray:
    """S = 1 + (y/l) (1 + ((y-1)/l) (1 + ...)), l well above y, from the innermost bracket."""
    total = np.ones_like(y)
    for j in range(min(_depth(y / low), int(y.max())) - 1, -1, -1):
        total = 1 + np.maximum(y - j, 0) / low * total
    return total


def _high_ratio(y: np.ndarray, high: np.ndarray) -> np.ndarray:
    """T = 1 + l/(y+2) (1 + l/(y+3) (1 + ...)), l well below y."""
    total = np.ones_like(y)
    for j in range(_depth(high / (y + 2)) - 1, -1, -1):
        total = 1 + high / (y + 2 + j) * total
    return total


def _depth(ratio: np.ndarray) -> int:
    """Number of terms until a series whose terms shrink at least by ``ratio`` is below 1e-17 of its
    first.
    """
    return (
        int(min(np.ceil(40 / -np.log(np.clip(float(np.max(ratio)), 1e-300, 0.999999))), _MAX_TERMS))
        + 1
    )


@final
class TabulatedCounts:
    """:func:`noisy_count` for fixed y and many mu: cubic splines in sqrt(mu) about each y, and the
    exact value elsewhere.

    Args:
        y: whole numbers, float64 (K,).
        scale: b of the noise, positive. The log likelihood of a cell is right to about 1e-4: good
            enough to climb by, not to report.
        most: no mu is larger, as a rule; the tables end there, however large the noise.
    """

    def __init__(self, y: np.ndarray, scale: float, *, most: float) -> None:
        self._y, self._scale = y, scale
        self._inside = np.flatnonzero(y >= 0)
        # most cells of a large table share their y with others: one spline for each value
        known, which = np.unique(y[self._inside], return_inverse=True)
        reach = _REACH + np.sqrt(8 * scale)
        end = np.sqrt(most) + _REACH
        width = min(2 * reach, end)
        first = np.clip(np.sqrt(known) - reach, 0.0, end - width)
        self._n_points = int(np.ceil(width / _STEP)) + 1
        grid = first[:, None] + _STEP * np.arange(self._n_points)
        # (values of y, points, 2)
        values = np.stack(noisy_count(known[:, None], grid**2, scale), axis=-1)
        from scipy.interpolate import CubicSpline  # slow to load

        spline = CubicSpline(np.arange(self._n_points), values, axis=1)
        # (powers, intervals, values, 2) -> one row of 2 x 4 coefficients each
        self._rows = np.ascontiguousarray(spline.c.transpose(2, 1, 3, 0).reshape(-1, 8))
        self._first, self._offset = first[which], which * (self._n_points - 1)

    def __call__(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log f and E[N | y, mu] for mu of shape (G, K)."""
        q, log_norm, lost = _of_noise(self._scale)
        log_f = log_norm + self._y / self._scale - mu * lost  # y < 0
        mean = mu * q
        place = (np.sqrt(mu[:, self._inside]) - self._first) * (1 / _STEP)
        interval = np.clip(place, 0, self._n_points - 2).astype(np.intp)
        rest = place - interval
        c = np.take(self._rows, interval + self._offset, axis=0)
        value = ((c[..., 0] * rest + c[..., 1]) * rest + c[..., 2]) * rest + c[..., 3]
        expected = ((c[..., 4] * rest + c[..., 5]) * rest + c[..., 6]) * rest + c[..., 7]
        outside = (place < 0) | (place > self._n_points - 1)
        if outside.any():
            graph, cell = np.nonzero(outside)
            cell = self._inside[cell]
            value[outside], expected[outside] = noisy_count(
                self._y[cell], mu[graph, cell], self._scale
            )
        log_f[:, self._inside] = value
        mean[:, self._inside] = np.maximum(expected, 0.0)
        return log_f, mean
