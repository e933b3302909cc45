r"""HSIC of many pairs at once, with a bandwidth for each column: T = sqrt(HSIC) of a cosine-series
kernel.

A column in [-R, R] with bandwidth h gets the Gaussian kernel repeated with period P = 2 R + 5.6 h,
cut off after 96 waves and scaled to k(v, v) = 1 (:mod:`jaxcd.ops.features`).  For h >= 0.018 R
(smaller ones are raised to that) the waves cut off have less than 1e-6 of the weight, so
-1.1e-6 <= k <= 1 for all differences: the full series is a sum of Gaussians, hence positive.  Its
features have norm exactly one, and |phi(u) - phi(v)| <= L |u - v| with L = (2 pi / P) sqrt(sum_j
c_j j^2), because 1 - k(d) <= d^2 L^2 / 2.

**Sensitivity of T (replace-one among m rows, the kernels fixed).**  At most sqrt(6) (m - 1) / m^2
for kernels between 0 and 1 (PRIVACY.md D1: the corner values of |a' b' - a b|^2 are polynomials of
the kernels' values with coefficients below 8, so the 1.1e-6 below zero is covered by 1e-4 in place
of the root).  If instead every value of one column moves by at most r, its features move by L r,
and |dC| <= (1 / m) sum |psi_i - mean| L r <= L r by Cauchy-Schwarz: T moves by at most L r, or L
times the root mean square of the shifts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops import double_precision
from jaxcd.pairwise.anm_regression import block_size, over_block, waves

__all__ = ["HSIC_NUMERICAL_ERROR", "Series", "hsic_pairs", "hsic_record_sensitivity", "series"]

HSIC_NUMERICAL_ERROR = 1e-9
"""Bound on the error of the computed T in double precision."""

_HIGHEST = jax.lax.Precision.HIGHEST
_WAVES = 96
_LEAST = 0.018


class Series(NamedTuple):
    """frequency: 2 pi / P.  roots: (2 J + 1,) square roots of the weights of [1, cos .., sin ..].
    lipschitz: L.
    """

    frequency: float
    roots: np.ndarray
    lipschitz: float


def series(*, reach: float, bandwidth: float) -> Series:
    """The kernel for values in [-reach, reach]; a bandwidth below 0.018 reach is raised to that.
    Both positive.
    """
    h = max(bandwidth, _LEAST * reach)
    frequency = 2 * math.pi / (2 * reach + 5.6 * h)
    j = np.arange(_WAVES + 1)
    weights = np.where(j == 0, 1.0, 2.0) * np.exp(-((frequency * h * j) ** 2) / 2)
    weights[weights < 1e-20] = 0  # no denormal numbers, which are slow
    weights /= weights.sum()
    return Series(
        frequency,
        np.sqrt(np.concatenate([weights, weights[1:]])),
        frequency * math.sqrt(float(weights @ j**2.0)),
    )


def hsic_record_sensitivity(m: int) -> float:
    """sqrt(6) (m - 1) / m^2, with 1e-4 for the series: replace-one sensitivity of T with fixed
    kernels; never above T's range, 1/2.
    """
    return min((math.sqrt(6) + 1e-4) * (m - 1) / m**2, 0.5 + 1e-4)


def _hsic_one(u, v, rows, frequency_u, roots_u, frequency_v, roots_v):
    m = jnp.sum(rows)

    def centred(values, frequency, roots):
        features = waves(values, frequency, roots.shape[0])[:, 1:] * roots[1:]
        return (features - jnp.sum(features * rows[:, None], axis=0) / m) * rows[:, None]

    phi, psi = centred(u, frequency_u, roots_u), centred(v, frequency_v, roots_v)
    return jnp.sqrt(jnp.sum((jnp.matmul(phi.T, psi, precision=_HIGHEST) / m) ** 2))


@jax.jit
def _hsic_block(*arrays):
    return over_block(_hsic_one, arrays)


def hsic_pairs(
    u: np.ndarray,
    v: np.ndarray,
    rows: np.ndarray,
    *,
    series_u: list[Series],
    series_v: list[Series],
) -> np.ndarray:
    """T for each pair: float64 (p,).  u, v: (p, n).  rows: (p, n), True for the rows that count, at
    least one each.
    """
    n_pairs, n = u.shape
    block = block_size(n_pairs, n)
    parts = []
    with double_precision():
        for start in range(0, n_pairs, block):
            places = np.minimum(np.arange(start, start + block), n_pairs - 1)
            arrays = [u[places], v[places], rows[places].astype(np.float64)]
            for kernels in (series_u, series_v):
                arrays.append(np.array([kernels[i].frequency for i in places]))
                arrays.append(np.array([kernels[i].roots for i in places]))
            parts.append(np.asarray(_hsic_block(*jax.device_put(arrays))))
    return np.concatenate(parts)[:n_pairs]
