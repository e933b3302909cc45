r"""Chi-square, G and Kendall's tau on released tables: the noise is part of the null.

With O the noisy table of a stratum, E = a b^T its fit by independence and u the variance of the
noise on a cell (:mod:`jaxcd.releases.tables.noisy_strata`):

**Chi-square.**

    T = sum over strata and cells of (O - E)^2 E / (E + u)^2,

Pearson's terms (O - E)^2 / (E + u), each weighted by the share E / (E + u) of its variance that is
sampling: a cell that noise hides has no weight, whether its stratum is empty or its level rare.
Under independence the standardised residuals (O - E) / sqrt(E + u) are, to first order, normal with
covariance P Omega P: P projects away the directions in which a and b move E, and Omega is the
identity, plus the correlations of the noise between cells where it has any.  So T is a weighted sum
of chi-squares with known mean M and variance 2 W, and T M / W is compared with chi-square with M^2
/ W degrees of freedom (Satterthwaite 1946).  Without noise W = M is the number of degrees of
freedom and T is Pearson's statistic.

*Little noise.*  Where cells hold few rows these moments are wrong, and what :class:`ChiSquare
<jaxcd.citests.ChiSquare>` knows of counts is right.  So tables of whole numbers whose noise is
independent, with u of at most 1/8, are answered as counts, negative ones as 0: most of them are
the true counts, and the others matter less than the moments do.  (Chosen by simulation: tables of
16 to 576 cells and .2 to 60 rows a cell at alpha .05.  At u = .037 the law above rejects .13 to .29
of true nulls in 64 strata, that of counts .04 to .07; at .105 .08 to .14 and .07 to .09; at .18 .04
to .08 and .10 to .13.)

**G.**  Each term times phi(t) = 2 ((1 + t) log(1 + t) - t) / t^2, t = (O - E) E / (E + u)^2, at
least -1: the deviance, in the place of the square, of a Poisson variable that was scaled and
shifted until its first three moments are those of a count plus symmetric noise.  phi -> 1 where
noise is all; without noise T is 2 sum O log(O / E).

**Kendall.**  h = h(1 / g, S), S the concordance of the noisy table, h the square-root score of
:mod:`jaxcd.citests.kendall`, g = m / (m^2 + s) the inverse of the noisy total m with variance s (0
for m <= 0).  V = (g m)^2 (m / 9)(1 - sum p^3)(1 - sum q^3) is its sampling variance, p and q the
fitted shares.  Noise W moves S, which is unbiased, by m alpha^T W beta + S(W), alpha_i = P(X > i) -
P(X < i), beta likewise, which gives h a covariance N between strata.  With weights w = (diag
V + N)^{-1} V, each stratum's information,

    z = sum w h / sqrt(sum w V).

Without noise all w = 1 and z is that of :class:`jaxcd.citests.KendallTau`.

A release has no sensitivity to bound any more, so margins are log(alpha) - log(p-value), and
KendallTau's floor under the variance is not needed.  Everything here is post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

import numpy as np
from scipy import special

from jaxcd.citests import ChiSquare, CITest, Evaluation, GTest, KendallTau, PreparedTest, Query
from jaxcd.citests.chi_square import chi_square_of_counts
from jaxcd.ops import tails
from jaxcd.releases.tables.noisy_strata import IndependenceFit, NoisyStrata, fit_independence

__all__ = ["PreparedNoisyTables", "noisy_chi_square", "noisy_kendall", "table_tests"]

# In squared records, far below what sampling or noise could be: a direction without any variance
# gets this one, and no weight.
_LEAST_VARIANCE = 1e-9
# Directions of the fit are scaled to unit length; those with less than this are dependent on the
# others.
_LEAST_DIRECTION = 1e-9
_WHOLE = 1e-3  # a cell that is so near to a whole number is a count
_QUIET = 0.125  # variance of the noise on a cell, up to which counts are taken as they are
# Entries of all matrices between cells in one call.
_BATCH_ENTRIES = 1 << 20

Statistic = Callable[[NoisyStrata], tuple[np.ndarray, np.ndarray]]


def noisy_chi_square(strata: NoisyStrata, *, deviance: bool) -> tuple[np.ndarray, np.ndarray]:
    """The statistic and its degrees of freedom, float64 (...,); 0 and 0 where the tables say
    nothing.

    Args:
        deviance: G, not Pearson's.

    Source:
        module docstring; Satterthwaite 1946; PRIVACY.md K1.
    """
    fit = fit_independence(strata)
    expected = fit.expected
    weight = 1 / np.maximum(expected + strata.per_cell, _LEAST_VARIANCE)
    share = expected * weight
    residual = strata.tables - expected
    terms = residual**2 * weight * share
    if deviance:
        terms = terms * _deviance_over_square(residual * weight * share)
    mean, square = _null_moments(strata, fit, weight, share)
    known = (mean > 1e-6) & (square > 0)
    scale = np.where(known, mean, 0.0) / np.where(known, square, 1.0)
    return terms.sum(axis=(-3, -2, -1)) * scale, mean * scale


def _deviance_over_square(t: np.ndarray) -> np.ndarray:
    """phi(t) = 2 ((1 + t) log(1 + t) - t) / t^2, for t below -1 that of -1."""
    t = np.maximum(t, -1.0)
    small = np.abs(t) < 1e-4
    safe = np.where(small, 1.0, t)
    return np.where(small, 1 - t / 3, 2 * (special.xlogy(1 + safe, 1 + safe) - safe) / safe**2)


def _null_moments(
    strata: NoisyStrata, fit: IndependenceFit, weight: np.ndarray, share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """M and W: sum of share times the squared standardised residual has mean M and variance 2 W
    under independence.
    """
    *batch, k, a, b = weight.shape
    # How rows and columns move the standardised residuals, in unit length: (..., K, A B, A + B).
    root = np.sqrt(weight)[..., None]
    of_rows = root * fit.columns[..., None, :, None] * np.eye(a)[:, None, :]
    of_columns = root * fit.rows[..., :, None, None] * np.eye(b)[None, :, :]
    moves = np.concatenate([of_rows, of_columns], axis=-1).reshape(*batch, k, a * b, a + b)
    length = np.sqrt((moves**2).sum(axis=-2, keepdims=True))
    moves = np.where(length > 0, moves / np.where(length > 0, length, 1.0), 0.0)
    moves_t = moves.swapaxes(-1, -2)
    inverse = np.linalg.pinv(moves_t @ moves, rcond=_LEAST_DIRECTION, hermitian=True)
    shares = share.reshape(*batch, k, a * b)
    if strata.covariance is None:
        # P = I - Q, Q = moves inverse moves^T: tr(share P) and tr(share P share P) without a matrix
        # of the cells.
        leverage = ((moves @ inverse) * moves).sum(axis=-1)
        inner = inverse @ (moves_t @ (shares[..., None] * moves))
        square = (shares**2 * (1 - 2 * leverage)).sum(axis=(-2, -1)) + (
            inner * inner.swapaxes(-1, -2)
        ).sum(axis=(-3, -2, -1))
        return (shares * (1 - leverage)).sum(axis=(-2, -1)), square
    blocks = np.eye(a * b) - moves @ inverse @ moves_t
    size = k * a * b
    project = (blocks[..., :, :, None, :] * np.eye(k)[:, None, :, None]).reshape(*batch, size, size)
    scale = np.sqrt(weight).reshape(*batch, size)
    flat = shares.reshape(*batch, size)
    covariance = scale[..., :, None] * strata.covariance * scale[..., None, :] + flat[
        ..., None
    ] * np.eye(size)
    weighted = flat[..., None] * (project @ covariance @ project)
    return np.trace(weighted, axis1=-2, axis2=-1), (weighted * weighted.swapaxes(-1, -2)).sum(
        axis=(-2, -1)
    )


def noisy_kendall(strata: NoisyStrata) -> np.ndarray:
    """Kendall's z, about standard normal under independence, float64 (...,).

    Source:
        module docstring; Kendall 1938; Korn 1984.
    """
    y = strata.tables
    k, a, b = y.shape[-3:]
    later = [np.sign(np.arange(levels)[None, :] - np.arange(levels)[:, None]) for levels in (a, b)]
    concordance = (y * (later[0] @ y @ later[1].T)).sum(axis=(-2, -1)) / 2
    m = np.maximum(y.sum(axis=(-2, -1)), 0.0)
    spread = np.diagonal(_along(strata, np.ones_like(y)), axis1=-2, axis2=-1)
    inverse = np.where(m > 0, m / np.where(m > 0, m**2 + spread, 1.0), 0.0)
    size = np.where(m > 0, 1 / np.where(m > 0, inverse, 1.0), 1.0)
    score = np.where(
        m > 0, 2 * concordance / (np.sqrt(size**2 + 2 * np.abs(concordance)) + size), 0.0
    )
    rows, columns = fit_independence(strata).shares
    ties = (1 - (rows**3).sum(axis=-1)) * (1 - (columns**3).sum(axis=-1))
    variance = np.maximum((inverse * m) ** 2 * m / 9 * ties, 0.0)
    slopes = (
        m[..., None, None]
        * (rows @ later[0].T)[..., :, None]
        * (columns @ later[1].T)[..., None, :]
    )
    noise = _along(strata, slopes) + a * (a - 1) * b * (b - 1) / 2 * _between(strata) ** 2
    covariance = inverse[..., :, None] * noise * inverse[..., None, :] + (
        variance + _LEAST_VARIANCE
    )[..., None] * np.eye(k)
    weights = np.linalg.solve(covariance, variance[..., None])[..., 0]
    information = np.maximum((weights * variance).sum(axis=-1), 0.0)
    return np.where(
        information > 0,
        (weights * score).sum(axis=-1) / np.sqrt(np.where(information > 0, information, 1.0)),
        0.0,
    )


def _along(strata: NoisyStrata, directions: np.ndarray) -> np.ndarray:
    """Covariance (..., K, K) between strata of the sum of the noise on their cells times
    ``directions``, (..., K, A, B).
    """
    *batch, k, a, b = directions.shape
    flat = directions.reshape(*batch, k, a * b)
    if strata.covariance is None:
        found: np.ndarray = (strata.variance[..., None] * (flat**2).sum(axis=-1))[
            ..., None
        ] * np.eye(k)
        return found
    # row k: its direction in stratum k
    spread = (flat[..., None, :] * np.eye(k)[:, :, None]).reshape(*batch, k, k * a * b)
    found = spread @ strata.covariance @ spread.swapaxes(-1, -2)
    return found


def _between(strata: NoisyStrata) -> np.ndarray:
    """Covariance (..., K, K) between strata of the noise on the same cell."""
    k, a, b = strata.tables.shape[-3:]
    if strata.covariance is None:
        return strata.variance[..., None, None] * np.eye(k)
    return strata.covariance[..., :: a * b, :: a * b]


class PreparedNoisyTables(PreparedTest):
    """A test on the strata of a release.

    Args:
        cardinalities: the number of levels of each column.
        strata: the noisy table of a query.
        measured: whether there is one.
        sets: the measured sets of columns (sorted), where these are all that can be asked for.
        apart: pairs that were left out for others.
        statistic: the statistics of stacked queries, with their log p-values.
    """

    def __init__(
        self,
        n_samples: int,
        *,
        cardinalities: Sequence[int],
        strata: Callable[[Query], NoisyStrata],
        measured: Callable[[Query], bool],
        sets: Collection[tuple[int, ...]] | None,
        apart: frozenset[tuple[int, int]],
        statistic: Statistic,
    ) -> None:
        self.n_samples = n_samples
        self._cardinalities = tuple(cardinalities)
        self._strata, self._measured, self._statistic = strata, measured, statistic
        self._sets, self._apart = sets, apart

    def admissible(self, query: Query) -> bool:
        return self._measured(query)

    @property
    def apart(self) -> frozenset[tuple[int, int]]:
        return self._apart

    @cached_property
    def _around(self) -> dict[tuple[int, int], list[tuple[int, ...]]]:
        """The other columns of the measured sets that hold a pair."""
        found: defaultdict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
        for columns in self._sets or ():
            for x, y in itertools.combinations(columns, 2):
                found[x, y].append(tuple(v for v in columns if v not in (x, y)))
        return dict(found)

    def conditioning_sets(self, x: int, y: int) -> Collection[tuple[int, ...]] | None:
        return None if self._sets is None else self._around.get((min(x, y), max(x, y)), ())

    def bucket(self, query: Query) -> tuple[int, int, int]:
        k = self._cardinalities
        return math.prod(k[v] for v in query.given), k[query.x], k[query.y]

    def batch_size(self, bucket: tuple[int, int, int]) -> int:
        return max(1, min(64, _BATCH_ENTRIES // math.prod(bucket) ** 2))

    def evaluate(
        self, bucket: tuple[int, int, int], queries: Sequence[Query], *, alpha: float
    ) -> Evaluation:
        statistic, log_pvalue = self._statistic(
            NoisyStrata.stack([self._strata(query) for query in queries])
        )
        return Evaluation(statistic, log_pvalue, np.log(alpha) - log_pvalue)


def _chi_square(strata: NoisyStrata) -> tuple[np.ndarray, np.ndarray]:
    statistic, dof = noisy_chi_square(strata, deviance=False)
    log_pvalue = tails.chi_square_log_sf(statistic, dof)
    counts = np.rint(strata.tables)
    whole = np.abs(strata.tables - counts) < _WHOLE
    quiet = (strata.variance <= _QUIET) & whole.all(axis=(-3, -2, -1))
    if strata.covariance is not None:
        quiet &= ~strata.covariance.any(axis=(-2, -1))
    if quiet.any():
        statistic[quiet], log_pvalue[quiet] = chi_square_of_counts(np.maximum(counts[quiet], 0))
    return statistic, log_pvalue


def _g(strata: NoisyStrata) -> tuple[np.ndarray, np.ndarray]:
    statistic, dof = noisy_chi_square(strata, deviance=True)
    return statistic, tails.chi_square_log_sf(statistic, dof)


def _kendall(strata: NoisyStrata) -> tuple[np.ndarray, np.ndarray]:
    z = noisy_kendall(strata)
    return z, tails.normal_two_sided_log_pvalue(z)


def _any(query: Query) -> bool:
    """Of a release that answers every query."""
    return True


def table_tests(
    n_samples: int,
    *,
    cardinalities: Sequence[int],
    strata: Callable[[Query], NoisyStrata],
    measured: Callable[[Query], bool] = _any,
    sets: Collection[tuple[int, ...]] | None = None,
    apart: frozenset[tuple[int, int]] = frozenset(),
) -> Mapping[type[CITest], Callable[[CITest], PreparedTest]]:
    """The tests that a release of tables answers."""

    def prepared(statistic: Statistic) -> Callable[[CITest], PreparedTest]:
        return lambda test: PreparedNoisyTables(
            n_samples,
            cardinalities=cardinalities,
            strata=strata,
            measured=measured,
            sets=sets,
            apart=apart,
            statistic=statistic,
        )

    return {ChiSquare: prepared(_chi_square), GTest: prepared(_g), KendallTau: prepared(_kendall)}
