r"""Partial canonical correlations on a release of feature covariances: the test that knows its
noise.

Post-processing of :class:`jaxcd.releases.features.feature_covariances.ReleasedFeatures`, whose
docstring says what additive features can see.

Source:
    Bach and Jordan 2002 for canonical correlations of features as a measure of dependence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import jax
import numpy as np

from jaxcd.checks import check_number
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query
from jaxcd.ops import tails
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.releases.base import Tests, check_kind

__all__ = ["CanonicalCorrelation", "UNEXPLAINED", "feature_tests", "raised"]

LEAST_EIGENVALUE = 1e-6
"""Covariances are raised to it at the least, with and without noise."""
UNEXPLAINED = 0.06
"""Of the dependence of two columns, what additive regressions on the features of a column that
explains it all may leave.  Cosines of ranks tell extreme values apart badly, so that something
remains of x -> z -> y with strong linear relations.  Over laws of errors, correlations from .5 to
.98 it is up to .06 where columns depend strongly, and more where they depend weakly, which
``effect`` of tests and scores covers."""


def raised(matrix: np.ndarray, floor: float) -> np.ndarray:
    """The symmetric matrix with its eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    found: np.ndarray = (vectors * np.maximum(values, floor)) @ vectors.T
    return found


class _PreparedFeatures(PreparedTest):
    def __init__(self, release: Any, effect: float) -> None:
        self.n_samples = release.n_samples
        self._release = release
        self._effect = effect
        self._means = release.means / release.anchor
        self._dependences: dict[tuple[int, int], float] = {}

    def admissible(self, query: Query) -> bool:
        found: bool = self.n_samples - sum(self._release.sizes[z] for z in query.given) - 1 > 0
        return found

    def bucket(self, query: Query) -> Hashable:
        return 0

    def batch_size(self, bucket: Hashable) -> int:
        return 1024

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        moments = np.array([self.null_moments(query) for query in queries]).reshape(-1, 3)
        squared, mean, variance = moments.T
        left = np.array([self._left(query) for query in queries])
        known = (mean > 0) & (variance > 0)
        degrees = np.where(known, 2 * mean**2 / np.where(known, variance, 1.0), 0.0)
        scaled = (
            np.maximum(squared - self._effect**2 - left, 0.0) * degrees / np.where(known, mean, 1.0)
        )
        log_pvalue = tails.chi_square_log_sf(scaled, degrees)
        return Evaluation(squared - mean, log_pvalue, math.log(alpha) - log_pvalue)

    def _left(self, query: Query) -> float:
        """What is left of a dependence that is explained (``UNEXPLAINED``)."""
        if not query.given:
            return 0.0
        pair = (query.x, query.y)
        if pair not in self._dependences:
            squared, mean, _ = self.null_moments(Query(*pair, ()))
            self._dependences[pair] = max(squared - mean, 0.0)
        return UNEXPLAINED * self._dependences[pair]

    def null_moments(self, query: Query) -> tuple[float, float, float]:
        """T of the query, and its mean and variance under independence with this release's noise;
        zeros without features.
        """
        blocks, covariance = self._release.blocks, self._release.covariance
        x, y = blocks[query.x], blocks[query.y]
        z = np.concatenate([np.zeros(0, dtype=np.intp), *(blocks[v] for v in query.given)])
        if min(len(x), len(y)) == 0:
            return 0.0, 0.0, 0.0
        cross, own = covariance[np.ix_(x, y)], [covariance[np.ix_(end, end)] for end in (x, y)]
        slopes = [np.zeros((len(end), len(z))) for end in (x, y)]
        if len(z):
            inverse = np.linalg.inv(raised(covariance[np.ix_(z, z)], self._release.floor))
            slopes = [covariance[np.ix_(end, z)] @ inverse for end in (x, y)]
            cross = cross - slopes[0] @ covariance[np.ix_(z, y)]
            own = [
                part - slope @ covariance[np.ix_(z, end)]
                for part, slope, end in zip(own, slopes, (x, y), strict=True)
            ]
        # Directions without variance are given that of the largest eigenvalue of pure noise of this
        # size, 2 noise sqrt(r).
        floors = [
            max(2 * self._release.noise * math.sqrt(len(part)), LEAST_EIGENVALUE) for part in own
        ]
        roots = [
            np.linalg.inv(np.linalg.cholesky(raised(part, floor)))
            for part, floor in zip(own, floors, strict=True)
        ]
        statistic = float(np.sum((roots[0] @ cross @ roots[1].T) ** 2))
        # What noise in the moments does to a residual: through its own features, those of Z, and
        # the means of both.
        ends = []
        for root, slope, end in zip(roots, slopes, (x, y), strict=True):
            means = self._means[end] - slope @ self._means[z]
            ends.append(root @ np.column_stack([np.eye(len(end)), slope, means]))
        u, v = (end @ end.T for end in ends)
        # the features of Z and the constant are in both residuals
        w = ends[0][:, len(x) :] @ ends[1][:, len(y) :].T
        rows = self.n_samples - len(z) - 1
        noise = self._release.noise**2
        scatter = noise * (np.einsum("ik,jl->ijkl", u, v) + np.einsum("il,kj->ijkl", w, w))
        scatter = scatter.reshape(len(x) * len(y), -1) + np.eye(len(x) * len(y)) / rows
        return statistic, float(np.trace(scatter)), 2 * float(np.sum(scatter**2))


@final
@dataclass(frozen=True)
class CanonicalCorrelation(CITest):
    r"""Partial canonical correlations of the features of x and y given those of Z, on a release of
    Features.

    With S the released covariance, A = S_xy - S_xZ S_ZZ^{-1} S_Zy what an additive regression on Z
    leaves, and V_x, V_y what it leaves of the features' own covariances,

        T = |V_x^{-1/2} A V_y^{-1/2}|_F^2,

    the sum of the squared canonical correlations.  Under independence the entries have covariance I
    / (n - |Z| features - 1) from sampling, and to first order s^2 (U_x x U_y + cross terms) from
    noise of standard deviation s on the moments, with U = V^{-1/2} (I + B B^T + m m^T / a^2)
    V^{-1/2}, B the slopes and m the means of the residuals before centring; the cross terms are
    those of noise that both residuals share.  T is compared with a chi-square of the same mean and
    variance (Satterthwaite 1946), after what smooth features and additive regressions leave of Z
    has been taken off: ``effect^2``, and where Z is not empty .06 (``UNEXPLAINED``) times what T
    of x and y given nothing has beyond its mean under independence.

    Statistic: T less its mean under independence.  Margin: log(alpha) - log(p-value).  The release
    has paid: run it with ``Threshold``, without a budget.  It has no sensitivity: mechanisms refuse
    it. Covariances are taken for those of independent residuals: heavily unequal conditional
    variances make it liberal.  Where missing cells are left out, n is that of the usual pair
    (:mod:`jaxcd.releases.features.known_pairs`), and of a pair that fewer rows know it is liberal.

    Args:
        effect: the root of the sum of squared canonical correlations that does not count as
            dependence, in [0, 1).

    Raises:
        OptionError: effect is out of its range, or the data is no such release.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).normal(size=20_000)
        >>> y = x**2 + np.random.default_rng(1).normal(size=20_000)
        >>> domain = jaxcd.Domain({"x": jaxcd.Numeric(), "y": jaxcd.Numeric()})
        >>> bought = jaxcd.release(
        ...     jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=domain),
        ...     jaxcd.Features(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> jaxcd.ci_test(bought, "x", "y", test=jaxcd.CanonicalCorrelation()).independent
        False
    """

    assumes = "relations that are sums of functions of single columns"
    claim = GuaranteeClaim(
        "post-processing: reads a release, which was paid for", assumptions="those of the release"
    )

    effect: float = 0.06

    restrictable = False

    def __post_init__(self) -> None:
        cure = "0.06 is usual, 0 takes every dependence for one"
        check_number("effect", self.effect, 0, 1, "[)", cure=cure)

    def column_names(self, data: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = _required(data).names
        return found

    def prepare(self, data: Any, *, key: jax.Array | None = None) -> PreparedTest:
        return _PreparedFeatures(_required(data), self.effect)


def feature_tests(release: Any) -> Tests:
    """The tests that feature covariances answer, and how each is prepared."""
    return {
        CanonicalCorrelation: lambda test: _PreparedFeatures(
            release, cast(CanonicalCorrelation, test).effect
        )
    }


def _required(data: Any) -> Any:
    return check_kind(data, "features")
