r"""Regressions on released second moments, with errors that count sampling and noise.

The coefficient of x in the regression of y on W = (x, Z) is b_x, b = Sigma_WW^{-1} Sigma_Wy.  An
error d Sigma moves it, to first order, by

    a^T d Sigma c,   a = Sigma_WW^{-1} e_x,   c = e_y - b   (zero elsewhere),

carried to the release's eigenbasis and stretched (:mod:`jaxcd.ops.tilted_moments`), where an error
of T has noise of variance tau^2 and sampling of variance w_j w_k / n off the diagonal and twice
these on it.  With G = (a c^T + c a^T) / 2 there, the variance is

    2 tau^2 |G|^2 + 2 sum_jk w_j w_k G_jk^2 / (n - |Z| - 2).

Without tilt and noise that is var(y | W) / ((n - |Z| - 2) var(x | Z)), the usual one.  That of the
noise is known, and that of sampling V is estimated with n - |Z| - 2 degrees of freedom; both
together have (n - |Z| - 2) (variance / V)^2 (Satterthwaite 1946).  Where there are none, and where
x, or what Z leaves of it, does not vary beyond what keeps the moments definite, nothing is known.
The same holds where more than a tenth of what Z leaves of x lies in directions whose variance is
not told, because the noise on it is larger (it is raised to the noise) or rows are too far out (it
is cut): b is divided by that, and its interval would be narrow and wrong.

Source:
    Satterthwaite 1946 for the degrees of freedom.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np

__all__ = ["Coefficient", "Regressions"]

_LEAST = 1e-7  # of a variance of one: a hundred times what keeps correlations definite
_MOST_UNTOLD = 0.1  # of a variance


class Coefficient(NamedTuple):
    """A coefficient of a regression.

    Args:
        value: in units of y per unit of x; NaN where x does not vary by itself beyond the
            noise.
        variance: of its error; inf where nothing is known of it.
        freedom: the degrees of freedom of the variance.
    """

    value: float
    variance: float
    freedom: float


@final
class Regressions:
    """Coefficients of regressions among the columns of a release of second moments; public."""

    def __init__(self, release: Any) -> None:
        self._release = release
        self._place = {name: j for j, name in enumerate(release.names)}

    def is_measured(self, names: tuple[str, ...]) -> bool:
        """Whether all are columns of the release."""
        return all(name in self._place for name in names)

    def coefficient(self, x: str, y: str, given: tuple[str, ...]) -> Coefficient:
        """The coefficient of x in the regression of y on x and ``given``."""
        release = self._release
        errors = release.untilted
        scale = release.deviations
        left = [self._place[name] for name in (x, *given)]
        outcome = self._place[y]
        inverse = np.linalg.inv(release.correlation[np.ix_(left, left)])
        slopes = inverse @ release.correlation[left, outcome]
        own = release.standardised_axes[left[0]]
        if not (inverse[0, 0] < 1 / _LEAST and own @ own < 1 / _LEAST):
            return Coefficient(math.nan, math.inf, math.inf)
        alone = (inverse[0] @ release.standardised_axes[left]) ** 2 * errors.variances
        if alone[~errors.is_told].sum() > _MOST_UNTOLD * alone.sum():
            return Coefficient(math.nan, math.inf, math.inf)
        axes = release.standardised_axes * errors.stretch
        a = inverse[0] @ axes[left]
        c = axes[outcome] - slopes @ axes[left]
        move = (np.outer(a, c) + np.outer(c, a)) / 2
        unit = float(scale[outcome] / scale[left[0]])
        value, rows = float(slopes[0]) * unit, release.n_samples - len(left) - 1
        if rows < 1:
            return Coefficient(value, math.inf, math.inf)
        sampling = np.outer(errors.sampling, errors.sampling) / rows
        variance = 2 * float(((sampling + errors.tau**2) * move**2).sum())
        of_rows = 2 * float((sampling * move**2).sum())
        freedom = rows * (variance / of_rows) ** 2 if of_rows else math.inf
        return Coefficient(value, variance * unit**2, freedom)
