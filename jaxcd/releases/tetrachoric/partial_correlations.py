r"""Fisher's z on a release of tetrachoric correlations: sampling and noise are part of the null.

With r the partial correlation of x and y given S, of the correlations that the release completes,
z = artanh(r) (1 - r^2) / sqrt(V) is about standard normal under independence.  V = sum over the
measured pairs of (d r / d r_ij)^2 v_ij, to first order: with P the inverse of the correlations of
x, y, S, and a and b the columns x and y of P / sqrt(diagonal),

    d r = a^T (d Sigma) b + (r / 2) (a^T (d Sigma) a + b^T (d Sigma) b),

d Sigma = -Sigma (d K) Sigma, and d K is that of
:func:`jaxcd.releases.tetrachoric.covariance_selection.response`; where all pairs were measured
d Sigma is their own.

A pair that was not measured is not joined, and answered by what lies between; where no measured
pairs lead from one to the other nothing is told of it.

A measured pair is worth N = (1 - r^2)^2 / V normal rows without noise, r its partial correlation
given all other columns.  Where columns are strongly correlated N is far below what the noise on a
small correlation says, because a partial correlation then is a small difference.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from jaxcd.citests import FisherZ, Query
from jaxcd.citests.fisher_z import PreparedPartialCorrelation
from jaxcd.releases.base import Tests

__all__ = ["correlation_tests", "rows_of_pairs"]

_LARGEST = 1 - 1e-12
_MOST_PAIRS = 2_000


class _PreparedTetrachoric(PreparedPartialCorrelation):
    """:class:`jaxcd.FisherZ` on a ReleasedTetrachoric."""

    def __init__(self, release: Any) -> None:
        self.n_samples = release.n_samples
        self._sigma, self._pairs = release.correlation, release.pairs
        self._variances = release.measured_correlations[1]
        p = len(self._sigma)
        self._all = len(self._pairs) == math.comb(p, 2)
        # the numbers that move: in both triangles, but on the diagonal
        own = np.repeat(np.arange(0 if self._all else p)[:, None], 2, axis=1)
        self._first, self._second = np.concatenate([own, self._pairs]).T
        self._times = np.where(self._first == self._second, 1.0, 2.0)
        if not self._all:
            self._response = release.response
        measured = np.zeros((p, p), dtype=bool)
        measured[tuple(self._pairs.T)] = True
        self._group = connected_components(measured, directed=False)[1]

    def admissible(self, query: Query) -> bool:
        one_group: bool = self._group[query.x] == self._group[query.y]
        return one_group and super().admissible(query)

    @property
    def apart(self) -> frozenset[tuple[int, int]]:
        measured = set(map(tuple, self._pairs.tolist()))
        return frozenset(itertools.combinations(range(len(self._sigma)), 2)) - measured

    def _z(self, variables: np.ndarray) -> np.ndarray:
        precision = np.linalg.inv(self._sigma[variables[:, :, None], variables[:, None, :]])
        scale = np.sqrt(precision[:, [0, 1], [0, 1]])
        r = np.clip(-precision[:, 0, 1] / scale[:, 0] / scale[:, 1], -_LARGEST, _LARGEST)
        ends = precision[:, :, :2] / scale[:, None, :]
        if self._all:
            spread = np.zeros((len(variables), len(self._sigma), 2))
            np.put_along_axis(spread, variables[:, :, None], ends, axis=1)
        else:
            spread = np.einsum("bqp,bqe->bpe", self._sigma[variables], ends)
        a, b = spread[:, self._first], spread[:, self._second]
        moves = (a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]) / 2
        moves += r[:, None] / 2 * (a * b).sum(axis=2)
        moves = moves * self._times
        if not self._all:
            moves = -moves @ self._response
        variance = (moves**2 * self._variances).sum(axis=1)
        z: np.ndarray = np.arctanh(r) * (1 - r**2) / np.sqrt(variance)
        return z


def rows_of_pairs(release: Any) -> np.ndarray:
    """N of the measured pairs that tell something, float64; where all were measured of at most
    2,000 of them.
    """
    precision, variances = np.linalg.inv(release.correlation), release.measured_correlations[1]
    p, scale = len(precision), np.sqrt(np.diag(precision))
    i, j = release.pairs.T
    if len(release.pairs) < math.comb(p, 2):
        r = -precision[i, j] / scale[i] / scale[j]
        own, beside = release.response[:p], release.response[p:]
        moves = -beside / (scale[i] * scale[j])[:, None]
        moves -= r[:, None] / 2 * (own / scale[:, None] ** 2)[i]
        moves -= r[:, None] / 2 * (own / scale[:, None] ** 2)[j]
        rows: np.ndarray = ((1 - r**2) ** 2 / (moves**2 @ variances))[release.tells]
        return rows
    told = np.flatnonzero(release.tells)
    places = np.linspace(0, len(told) - 1, min(len(told), _MOST_PAIRS)).astype(np.int64)
    some = told[np.unique(places)]
    between = np.zeros((p, p))
    between[i, j] = between[j, i] = variances
    found = np.zeros(len(some))
    for place, (x, y) in enumerate(release.pairs[some].tolist()):
        a, b = precision[x] / scale[x], precision[y] / scale[y]
        r = -precision[x, y] / scale[x] / scale[y]
        across = np.outer(a, b)
        moved = across + across.T + r * (np.outer(a, a) + np.outer(b, b))
        found[place] = (1 - r**2) ** 2 / ((moved**2 * between).sum() / 2)
    return found


def correlation_tests(release: Any) -> Tests:
    """The tests that tetrachoric correlations answer."""
    return {FisherZ: lambda test: _PreparedTetrachoric(release)}
