r"""Regressions on released second moments, with errors that count sampling and noise.

The coefficient of x in the regression of y on W = (x, Z) is b_x, b = Sigma_WW^{-1} Sigma_Wy.  An
error d Sigma moves it, to first order, by

    a^T d Sigma c,   a = Sigma_WW^{-1} e_x,   c = e_y - b   (zero elsewhere),

carried to the release's eigenbasis and stretched (:mod:`jaxcd.ops.tilted_moments`), where an error
of T has noise of variance tau^2 and sampling of variance w_j w_k / n off the diagonal and twice
these on it.  With G = (a c^T + c a^T) / 2 there, the variance is

    2 tau^2 |G|^2 + 2 sum_jk w_j w_k G_jk^2 / (n - |Z| - 2).

Without tilt and noise that is var(y | W) / ((n - |Z| - 2) var(x | Z)), the usual one.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

__all__ = ["Regressions"]


@final
class Regressions:
    """Coefficients of regressions among the columns of a release of second moments; public."""

    def __init__(self, release: Any) -> None:
        self._release = release
        self._place = {name: j for j, name in enumerate(release.names)}

    def is_measured(self, names: tuple[str, ...]) -> bool:
        """Whether all are columns of the release."""
        return all(name in self._place for name in names)

    def coefficient(self, x: str, y: str, given: tuple[str, ...]) -> tuple[float, float]:
        """The coefficient of x in the regression of y on x and ``given``, in units of y per unit
        of x, and its variance.
        """
        release = self._release
        errors = release.untilted
        scale = release.deviations
        left = [self._place[name] for name in (x, *given)]
        outcome = self._place[y]
        inverse = np.linalg.inv(release.correlation[np.ix_(left, left)])
        slopes = inverse @ release.correlation[left, outcome]
        axes = release.standardised_axes * errors.stretch
        a = inverse[0] @ axes[left]
        c = axes[outcome] - slopes @ axes[left]
        move = (np.outer(a, c) + np.outer(c, a)) / 2
        rows = max(release.n_samples - len(left) - 1, 1)
        weights = np.outer(errors.sampling, errors.sampling) / rows + errors.tau**2
        variance = 2 * float((weights * move**2).sum())
        unit = scale[outcome] / scale[left[0]]
        return float(slopes[0] * unit), variance * float(unit) ** 2
