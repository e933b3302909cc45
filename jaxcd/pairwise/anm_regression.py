r"""Kernel ridge regression on one regressor, for many pairs at once: no Gram matrix, and every
bandwidth from one product.

The kernel of bandwidth h is the Gaussian repeated with period P, the series sum_j c_j(h) cos(2 pi j
d / P) (:mod:`jaxcd.ops.features`). With one period for all bandwidths the waves C (n x r, r = 2
J + 1) are shared, and a bandwidth is a diagonal of weights D: its features are C D, of norm exactly
one whatever the period.  P is the interval and three of the largest bandwidths: at that distance
the repetition is e^-4.5 of the kernel for the two ends of the interval, and nothing in the middle.
From G = C^T C, b = C^T y and D G D = V diag(s) V^T,

    w = V (z / (s + mu)),  z = V^T D b,
    fit = C D w,
    leverage_i = sum_j (C D V)_ij^2 / (s_j + mu),

so a grid of penalties costs n r operations each, and the leave-one-out residual is (y_i - fit_i) /
(1 - leverage_i).  The objective is (lambda / 2) |w|^2 + (1 / n) sum (y_i - w . phi_i)^2, that is
mu = n lambda / 2.

Rows outside the training mask have no part in w and get predictions.  Everything is defined for
every finite input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops import double_precision
from jaxcd.ops.threads import one_blas_thread

__all__ = ["Fit", "SeriesGrid", "block_size", "fit_pairs", "over_block", "series_grid", "waves"]

_HIGHEST = jax.lax.Precision.HIGHEST
_NO_BOUND = 1e150  # its square is finite
_BLOCK = 16
_BLOCK_ROWS = 1 << 17


class SeriesGrid(NamedTuple):
    """Kernels on [-1, 1] with one period.  frequency: 2 pi / P.  roots: sqrt of the weights, (n
    bandwidths, 2 J + 1), rows of norm one.

    Args:
        lipschitz: for each kernel sup |phi(u) - phi(u')| / |u - u'| = frequency sqrt(sum_j c_j
            j^2), about 1 / bandwidth.
    """

    frequency: float
    roots: np.ndarray
    lipschitz: np.ndarray


def series_grid(bandwidths: tuple[float, ...]) -> SeriesGrid:
    """The series of Gaussian kernels of several bandwidths on [-1, 1], cut off at 1e-6 of the
    weight.
    """
    frequency = 2 * math.pi / (2 + 3 * max(bandwidths))
    n_waves = 1
    while (
        math.erfc(frequency * min(bandwidths) * (n_waves + 0.5) / math.sqrt(2)) > 1e-6
        and n_waves < 1 << 12
    ):
        n_waves += 1
    j = np.arange(n_waves + 1)
    weights = np.exp(-((frequency * np.outer(bandwidths, j)) ** 2) / 2) * np.where(j == 0, 1.0, 2.0)
    weights[weights < 1e-20] = 0  # no denormal numbers, which are slow
    weights /= weights.sum(axis=1, keepdims=True)
    lipschitz = frequency * np.sqrt(weights @ j**2.0)
    return SeriesGrid(
        frequency, np.sqrt(np.concatenate([weights, weights[:, 1:]], axis=1)), lipschitz
    )


class Fit(NamedTuple):
    """prediction: (p, n), of all rows.  leave_one_out: (p, n), predictions without the row itself
    (training rows). bandwidth, penalty: (p,), the places of the grid that were taken."""

    prediction: np.ndarray
    leave_one_out: np.ndarray
    bandwidth: np.ndarray
    penalty: np.ndarray


def waves(values: jax.Array, frequency: jax.Array, n_features: int) -> jax.Array:
    """[1, cos(j w x), sin(j w x)], j = 1 .. J, of values (n,): (n, 2 J + 1).

    By doubling, cos((j + k) a) = cos(j a) cos(k a) - sin(j a) sin(k a): two trigonometric functions
    a value, and log2 J roundings.
    """
    angle = (values * frequency)[:, None]
    cosines, sines = jnp.cos(angle), jnp.sin(angle)
    n_waves = (n_features - 1) // 2
    while cosines.shape[1] < n_waves:
        cosine, sine = cosines[:, -1:], sines[:, -1:]
        turned = cosines * cosine - sines * sine, sines * cosine + cosines * sine
        cosines, sines = (
            jnp.concatenate(pair, axis=1) for pair in zip((cosines, sines), turned, strict=True)
        )
    return jnp.concatenate([jnp.ones_like(angle), cosines[:, :n_waves], sines[:, :n_waves]], axis=1)


def block_size(n_pairs: int, n: int) -> int:
    """Pairs of n rows that are computed together: 2 on a CPU, else a power of two, at most 16 and
    at most 2^17 rows if there are several.

    On a CPU the pairs of a block run one after the other, because products of one pair go to the
    matrix library and products of a batch do not; one size of block is then one compilation.
    """
    if jax.default_backend() == "cpu":
        return 2
    most = max(1, min(_BLOCK, _BLOCK_ROWS // max(n, 1)))
    return min(1 << (most.bit_length() - 1), 1 << (n_pairs - 1).bit_length())


def over_block(function: Callable[..., Any], arrays: tuple[jax.Array, ...]) -> Any:
    """The function of each pair of a block: one after the other on a CPU, together elsewhere."""
    if jax.default_backend() == "cpu":
        return jax.lax.map(lambda pair: function(*pair), arrays)
    return jax.vmap(function)(*arrays)


def _fit_one(x, y, training, frequency, roots, penalties, norm_bound):
    n_training = jnp.sum(training)
    c = waves(x, frequency, roots.shape[1])
    masked = c * training[:, None]
    gram = jnp.matmul(masked.T, masked, precision=_HIGHEST)
    moment = jnp.matmul(masked.T, y * training, precision=_HIGHEST)
    mu = n_training * penalties / 2

    def at_bandwidth(root):
        values, vectors = jnp.linalg.eigh(root[:, None] * gram * root[None, :])
        values = jnp.maximum(values, 0)
        rotated = jnp.matmul(c, root[:, None] * vectors, precision=_HIGHEST)
        z = jnp.matmul(vectors.T, root * moment, precision=_HIGHEST)

        def norm_square(mu):
            return jnp.sum((z[:, None] / (values[:, None] + mu[None, :])) ** 2, axis=0)

        # The norm-constrained optimum is the ridge fit at a larger penalty: |w| falls in mu, and
        # |w| <= |z| / mu.
        def halve(_, ends):
            low, high = ends
            middle = (low + high) / 2
            long = norm_square(middle) > norm_bound**2
            return jnp.where(long, middle, low), jnp.where(long, high, middle)

        top = mu + jnp.sqrt(jnp.sum(z**2)) / norm_bound
        n_steps = jnp.where(norm_bound < _NO_BOUND, 100, 0)  # the bound is public
        _, high = jax.lax.fori_loop(0, n_steps, halve, (mu, top))
        raised = jnp.where(norm_square(mu) > norm_bound**2, high, mu)
        inverse = 1 / (values[:, None] + raised[None, :])
        fit = jnp.matmul(rotated, z[:, None] * inverse, precision=_HIGHEST)
        leverage = jnp.matmul(rotated**2, inverse, precision=_HIGHEST)
        left_out = (y[:, None] - fit) / jnp.maximum(1 - leverage, 1e-6)
        loss = jnp.sum(training[:, None] * left_out**2, axis=0)
        best = jnp.argmin(loss)
        return loss[best], best, fit[:, best], y - left_out[:, best]

    loss, penalty, fit, left_out = jax.lax.map(at_bandwidth, roots)
    best = jnp.argmin(loss)
    return fit[best], left_out[best], best, penalty[best]


@jax.jit
def _fit_block(x, y, training, frequency, roots, penalties, norm_bound):
    one = partial(
        _fit_one, frequency=frequency, roots=roots, penalties=penalties, norm_bound=norm_bound
    )
    return over_block(one, (x, y, training))


def fit_pairs(
    x: np.ndarray,
    y: np.ndarray,
    training: np.ndarray,
    *,
    grid: SeriesGrid,
    penalties: tuple[float, ...],
    norm_bound: float = math.inf,
) -> Fit:
    """Regress each row of y on the same row of x, with the bandwidth and penalty of the smallest
    leave-one-out loss.

    Args:
        x: (p, n), in [-1, 1].
        y: (p, n).
        training: (p, n), True for the rows to learn from; the others get predictions, and rows that
            are padding are ignored by the caller.
        grid: of bandwidths.
        penalties: lambda, positive.
        norm_bound: |w| <= B. With one bandwidth and one penalty nothing is chosen.  Computed in
            blocks (:func:`block_size`): one compilation for a shape of a block.
    """
    n_pairs, n = x.shape
    block = block_size(n_pairs, n)
    bound = min(norm_bound, _NO_BOUND)
    parts = []
    with double_precision():
        for start in range(0, n_pairs, block):
            rows = np.minimum(np.arange(start, start + block), n_pairs - 1)
            arrays = x[rows], y[rows], training[rows].astype(np.float64)
            with one_blas_thread():
                out = _fit_block(
                    *jax.device_put(arrays),
                    grid.frequency,
                    *jax.device_put((grid.roots, np.asarray(penalties))),
                    bound,
                )
                parts.append([np.asarray(part) for part in out])
    return Fit(*(np.concatenate(columns)[:n_pairs] for columns in zip(*parts, strict=True)))
