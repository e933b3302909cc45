r"""The direction of a single-index model y = f(a' z) + e, f smooth and unknown, by least squares.

The line of least squares shows a where f has a slope, and nothing where f is even (a square, a
cosine); where f is steep in one tail (an exponential) it shows a badly.  So four starts are
compared: the line of y and that of its ranks, and of what each leaves the principal Hessian
direction, the eigenvector of largest size of the mean of r z z'.  From the best one damped
Gauss-Newton steps follow: f is a sum of Gaussian bumps, its slope is known, and a step regresses
what is left of y on f'(a' z) z.

Where symmetry leaves no direction (an eigenvalue twice, a correlation of nothing but rounding)
there is no such start; of equal ones the first is taken.  So no processor's rounding decides.

Source:
    Ichimura 1993 for the least squares; Li 1992 for the Hessian directions; Levenberg 1944 for the
    damping.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxcd.ops.standardising import standardised
from jaxcd.privacy.rank_maps import exact_rank

__all__ = ["Direction", "direction"]

#: Middles of the bumps, and their width, in standard deviations of the index.
_MIDDLES, _WIDTH = np.linspace(-4, 4, 17), 0.7
#: The penalty of the bumps' weights, and where the damping starts: shares of a mean square.
_PENALTY, _DAMPING = 1e-6, 1e-3
_STEPS = 8
#: Steps in a row that bring nothing, each with ten times the damping, after which none will.
_PATIENCE = 3
#: Directions of z whose variance is below this share of the largest are left out.
_LEAST = 1e-10
#: Correlations below this are rounding errors, and numbers are equal up to this share.
_LOST, _EQUAL = 1e-7, 1e-9


class Direction(NamedTuple):
    """weights: of the columns of z, (d,).  left: the share of the target's variance that a smooth
    function of the weighted sum leaves, on the rows that it was fitted to.
    """

    weights: np.ndarray
    left: float


class _Fit(NamedTuple):
    """a: of length one.  rest: y less f(a' x), (n,).  slope: f'(a' x), (n,)."""

    a: np.ndarray
    rest: np.ndarray
    slope: np.ndarray

    @property
    def loss(self) -> float:
        return float(self.rest @ self.rest)


def direction(z: np.ndarray, target: np.ndarray) -> Direction:
    """The weights a of the columns of z, of one sign and scale: (n, d), (n,) -> (d,).

    a' z has variance one, and the weight of largest size is positive; zeros where z or the target
    is constant, and then all is left.  The columns of z have spreads of like size (up to 1e5
    apart).
    """
    y = standardised(target)
    x, root = _whitened(z)
    ranks = standardised(exact_rank(target))
    starts = []
    for line in (y, ranks):
        a = x.T @ line / len(x)
        starts += [a, _hessian_direction(x, line - x @ a)]
    fits = [_fit(x, y, a) for a in starts if np.linalg.norm(a) > _LOST]
    if not fits:
        return Direction(np.zeros(z.shape[1]), 1.0)
    least = min(fit.loss for fit in fits)
    best = next(fit for fit in fits if fit.loss <= least * (1 + _EQUAL))
    damping, in_vain = _DAMPING, 0
    for _ in range(_STEPS):
        if in_vain == _PATIENCE:
            break
        jacobian = x * best.slope[:, None]
        square = jacobian.T @ jacobian
        square[np.diag_indices_from(square)] += damping * np.trace(square) / len(square) + _LEAST
        new = best.a + np.linalg.solve(square, jacobian.T @ best.rest)
        fit = _fit(x, y, new) if new.any() else best
        better = fit.loss < best.loss * (1 - _EQUAL)
        best, damping = (fit, damping / 10) if better else (best, damping * 10)
        in_vain = 0 if better else in_vain + 1
    weights = root @ best.a
    weights = weights * np.sign(weights[np.abs(weights).argmax()])
    return Direction(weights, best.loss / len(x))


def _whitened(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z less its mean times a root, uncorrelated columns of variance one or zero; and the root."""
    rest = z - z.mean(axis=0)
    values, vectors = np.linalg.eigh(rest.T @ rest / len(z))
    kept = values > _LEAST * values[-1]
    root = vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return rest @ root, root


def _hessian_direction(x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The eigenvector times the size of its eigenvalue; zeros where that eigenvalue comes twice."""
    values, vectors = np.linalg.eigh((x * rest[:, None]).T @ x / len(x))
    sizes = np.abs(values)
    room = _EQUAL * sizes.max() + _LOST
    place = int((sizes >= sizes.max() - room).argmax())
    once = np.sum(np.abs(values - values[place]) <= room) == 1
    return np.asarray(vectors[:, place] * (sizes[place] if once else 0.0))


def _fit(x: np.ndarray, y: np.ndarray, a: np.ndarray) -> _Fit:
    """f by penalised least squares along a, which need not have length one."""
    a = a / np.linalg.norm(a)
    index = x @ a
    bumps = _bumps(index)
    basis = np.vstack([np.ones(len(y)), index, bumps])
    square = basis @ basis.T
    square[np.diag_indices_from(square)] += _PENALTY * np.trace(square) / len(square)
    weights = np.linalg.solve(square, basis @ y)
    weighted = weights[2:, None] * bumps
    slope = weights[1] - (index * weighted.sum(axis=0) - _MIDDLES @ weighted) / _WIDTH**2
    return _Fit(a, y - weights @ basis, slope)


def _bumps(index: np.ndarray) -> np.ndarray:
    """exp(-(t - m)^2 / (2 width^2)) of each index t and middle m: (n,) -> (17, n).

    A bump is the one before it times a factor exp(t step / width^2) that all have in common: two
    exponentials a row instead of seventeen.  Beyond 30 all bumps are zero.
    """
    t = np.clip(index, -30, 30) / _WIDTH
    middles = _MIDDLES / _WIDTH
    factor = np.exp(t * (middles[1] - middles[0]))
    found = np.empty((len(middles), len(t)))
    found[0] = np.exp(-((t - middles[0]) ** 2) / 2)
    for k, scale in enumerate(np.exp(-np.diff(middles**2) / 2)):
        found[k + 1] = found[k] * factor * scale
    return found
