r"""Fisher's z on a release of second moments: the noise is part of the null.

With r the partial correlation of x and y given S, from the released moments, z = artanh(r)
(1 - r^2) / sqrt(V) is about standard normal under independence for jointly normal data.  With P the
inverse of the correlations of x, y, S and d T an error of the tilted covariance
(:mod:`jaxcd.ops.tilted_moments`), d r = <G, d T>, G = (a b^T + b a^T) / 2 + (r / 2)(a a^T + b b^T),
where a and b are columns x and y of P / sqrt(diagonal), carried to the release's eigenbasis and
stretched; V = 2 tau^2 |G|^2 + 2 sum_jk w_j w_k G_jk^2 / (n - |S| - 3), noise and sampling.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxcd.citests import FisherZ
from jaxcd.citests.fisher_z import PreparedPartialCorrelation
from jaxcd.releases.base import Tests

__all__ = ["PreparedMoments", "moment_tests"]

_LARGEST = 1 - 1e-12


class PreparedMoments(PreparedPartialCorrelation):
    """:class:`jaxcd.FisherZ` on a ReleasedSecondMoments."""

    def __init__(self, release: Any) -> None:
        self.n_samples = release.n_samples
        self._correlation = release.correlation
        errors = release.untilted
        # An error of T in the eigenbasis moves the correlation through these directions.
        self._axes = release.standardised_axes * errors.stretch
        self._tau = errors.tau
        self._sampling = errors.sampling

    def _z(self, variables: np.ndarray) -> np.ndarray:
        r, variance = self.partial_correlations(variables)
        z: np.ndarray = np.arctanh(r) * (1 - r**2) / np.sqrt(variance)
        return z

    def partial_correlations(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Partial correlation of x and y given S and its variance, float64 (B,) each; variables:
        integers (B, 2 + s), x, y, S.
        """
        precision = np.linalg.inv(self._correlation[variables[:, :, None], variables[:, None, :]])
        scale = np.sqrt(precision[:, [0, 1], [0, 1]])
        r = np.clip(-precision[:, 0, 1] / scale[:, 0] / scale[:, 1], -_LARGEST, _LARGEST)
        ends = np.einsum(
            "bqe,bqk->bek", precision[:, :, :2] / scale[:, None, :], self._axes[variables]
        )
        rows = self.n_samples - variables.shape[1] - 1
        noise = 2 * self._tau**2 * _squared_norm(ends, r, np.ones_like(self._sampling))
        return r, noise + 2 * _squared_norm(ends, r, self._sampling) / rows


def _squared_norm(ends: np.ndarray, r: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""sum_jk w_j w_k G_jk^2 for G = (a b^T + b a^T) / 2 + (r / 2) (a a^T + b b^T); ends: a and b,
    (B, 2, p).
    """
    products = np.einsum("bek,bfk->bef", ends * weights, ends)
    aa, bb, ab = products[:, 0, 0], products[:, 1, 1], products[:, 0, 1]
    found: np.ndarray = (
        (aa * bb + ab**2) / 2 + r * ab * (aa + bb) + r**2 / 4 * (aa**2 + bb**2 + 2 * ab**2)
    )
    return found


def moment_tests(release: Any) -> Tests:
    """The tests that second moments answer."""
    return {FisherZ: lambda test: PreparedMoments(release)}
