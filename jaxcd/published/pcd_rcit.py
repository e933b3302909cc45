r"""RCIT as PCD has it: HSIC of kernel ridge residuals with lambda fixed, a permutation p-value, and
the bound B.

*Residuals.*  Columns are scaled to [-1, 1].  Given Z, the residual of x minimises

    (lambda / 2) |w|^2 + (1 / m) sum_i (w . phi(z_i) - x_i)^2,

Gaussian kernel on Z with the median distance as bandwidth; without Z the column itself is taken.
That adds n lambda / 2 to the diagonal of Z's Gram matrix.  ``ridge`` is the other reading of
"lambda = 1", K + I: the regression of a penalty of 2 / n, with the bounds of lambda = 1, which do
not hold for it either.
With lambda = 1 the fit keeps at most two thirds of the signal, so that every true conditional
independence is rejected from about m = 500 on (PRIVACY.md H5): what the test says is not usable,
with or without privacy.  :class:`jaxcd.RCIT` is what is calibrated.

*Statistic.*  HSIC_b = tr(K H L H) / (m - 1)^2 of the residuals, Gaussian kernels exp(-d^2 / (2
delta^2)), delta the median distance of the residuals (bandwidths read off the data break every
bound: PRIVACY.md D4), and the same at k random permutations, drawn once and shared by all tests; p,
B and Delta_P as in :mod:`jaxcd.published.pcd_bounds`.

*Numbers.*  The paper's O(m^3 + k m^2) is computed in O(m r^2): a pivoted Cholesky factor of the
Gram matrix of Z, and Fourier features of the residuals' kernels.  Differences from the formulas:
residuals within about 1e-4 of the exact ones (five columns in Z); values (of residuals and of Z)
further than 64 bandwidths from the median are brought to 64 bandwidths, where the kernel with the
bulk is 0 anyway (with exponential tails this moved T_0 by 0.4%); principal components of the
features below a variance of 1e-8 together are left out; for Z of several columns the median
distance is that of at most 1000 rows (for one column it is exact).  Where the median is 0, that of
the positive distances is taken.  That the columns are scaled by their smallest and largest value,
where no bounds are declared, is a reconstruction: the paper's bounds are for |x| <= 1.

Source:
    Zhang et al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.checks import is_number, is_whole
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query
from jaxcd.citests.base import require_data
from jaxcd.data import Categorical, Dataset, Numeric
from jaxcd.data.rows import Rows
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import double_precision, features, gram, hsic, ridge
from jaxcd.published.pcd_bounds import (
    PermutationEvidence,
    claimed_residual_hsic_sensitivity,
    kusner_hsic_sensitivity,
)

__all__ = ["PublishedColumns", "PublishedRCIT", "median_gap"]

_RANK_ONE, _RANK = 100, 200  # of the Gram matrix of one column, of several
_TOLERANCE = 1e-8
_MEDIAN_ROWS = 1000
_REACH = 64.0  # bandwidths on either side of the median
_LENGTHS = (8.0, 16.0, 32.0, 2 * _REACH)  # few, so that few shapes are compiled
_DROPPED = 1e-8  # variance of features that is dropped, so at most twice that of HSIC
# features are padded with zeros to one of these, for the same reason
_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 512)
_CACHE_BYTES = 1 << 32  # enough for 37 columns of 8,000 rows, each given each other one
_HIGHEST = jax.lax.Precision.HIGHEST


def median_gap(values: np.ndarray) -> float:
    """The median of |v_i - v_j|, i < j (the lower one), in O(n log n); of the positive ones where
    it is 0; 1 for a constant.

    Args:
        values: (n,), n >= 2.  Found by bisection over the gap, to 2^-60 of the range.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    place = np.arange(n)

    def n_within(gap: float) -> int:
        return int((np.searchsorted(ordered, ordered + gap, side="right") - place - 1).sum())

    low, high = 0.0, float(ordered[-1] - ordered[0])
    if not high > 0:
        return 1.0
    n_zero, n_pairs = n_within(0.0), n * (n - 1) // 2
    target = (n_pairs + 1) // 2
    if n_zero >= target:
        target = n_zero + (n_pairs - n_zero + 1) // 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if n_within(middle) >= target else (middle, high)
    return high


@jax.jit
def _rotate(phi: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Principal components of centred features (r, n), the largest variance first, and their
    variances (r,).
    """
    values, vectors = jnp.linalg.eigh(jnp.matmul(phi, phi.T, precision=_HIGHEST) / phi.shape[1])
    return jnp.matmul(vectors[:, ::-1].T, phi, precision=_HIGHEST), jnp.maximum(values[::-1], 0)


def _compressed(phi: jax.Array) -> jax.Array:
    """The leading principal components of centred features, (r, n) -> (r', n): the kernel less
    variance 1e-8.
    """
    rotated, variances = _rotate(phi)
    rest = np.cumsum(np.asarray(variances)[::-1])[::-1]  # variance from each component on
    kept = int(np.sum(rest > _DROPPED))
    padded = next(width for width in _WIDTHS if width >= kept)
    rotated = jnp.where(jnp.arange(len(rotated))[:, None] < kept, rotated, 0)
    return (
        rotated[:padded]
        if padded <= len(rotated)
        else jnp.pad(rotated, ((0, padded - len(rotated)), (0, 0)))
    )


@jax.jit
def _permuted_hsic(phi: jax.Array, psi: jax.Array, permutations: jax.Array) -> jax.Array:
    """|phi psi[:, pi]^T / n|^2 for each permutation, (k, n) -> (k,); nothing larger than psi is
    held.
    """
    rows = psi.T

    def at(permutation: jax.Array) -> jax.Array:
        return jnp.sum((jnp.matmul(phi, rows[permutation], precision=_HIGHEST) / phi.shape[1]) ** 2)

    return jax.lax.map(at, permutations)


def _within_reach(values: np.ndarray, bandwidth: float) -> np.ndarray:
    """Values less their median, in bandwidths, clipped at +-64; column by column."""
    return np.clip((values - np.median(values, axis=0)) / bandwidth, -_REACH, _REACH)


def _spectrum(z: np.ndarray) -> ridge.Spectrum:
    """Of the Gaussian Gram matrix of z, (m, d), with the median distance as bandwidth."""
    if z.shape[1] == 1:
        bandwidth, rank = median_gap(z[:, 0]), _RANK_ONE
    else:
        distance = float(gram.median_distance(jnp.asarray(z[:_MEDIAN_ROWS])))
        bandwidth, rank = (distance if distance > 1e-9 else 1.0), _RANK
    factor = gram.nystroem(jnp.asarray(_within_reach(z, bandwidth)), 1.0, rank=rank)
    return ridge.spectrum(factor.factor)


class PublishedColumns(PreparedTest):
    """Columns in [-1, 1], the permutations, and the caches: one factor for each Z, one residual for
    each (target, Z).

    Args:
        values: (m, d), rows in random order.
        permutations: integers (k, m); x_i is compared with y_permutation(i).
    """

    def __init__(
        self, values: np.ndarray, config: PublishedRCIT, *, permutations: np.ndarray
    ) -> None:
        self.n_samples = len(values)
        self._values = values
        self._config = config
        self._permutations = jnp.asarray(permutations, dtype=jnp.int32)
        self._spectra: dict[tuple[int, ...], ridge.Spectrum] = {}
        self._features: dict[tuple[int, tuple[int, ...]], tuple[jax.Array, float]] = {}
        self._held = 0  # bytes of both
        self._known: dict[Query, PermutationEvidence] = {}

    @property
    def n_evaluated(self) -> int:
        """Number of different queries so far."""
        return len(self._known)

    def bucket(self, query: Query) -> Hashable:
        return query.given

    def batch_size(self, bucket: Any) -> int:
        return 1 << 16

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        """Statistics, log p and margins; the margin is alpha - p, so that p = alpha, a removal, is
        not above 0.
        """
        found = [self.evidence(query) for query in queries]
        pvalues = np.array([evidence.pvalue for evidence in found], dtype=np.float64)
        log_pvalue = np.array([math.log(p) if p > 0 else -math.inf for p in pvalues])
        return Evaluation(
            np.array([evidence.statistic for evidence in found]), log_pvalue, alpha - pvalues
        )

    def evidence(self, query: Query) -> PermutationEvidence:
        """Statistic, p, B and the claimed bound of one query; remembered."""
        if query not in self._known:
            self._known[query] = self._evidence(query)
        return self._known[query]

    def _evidence(self, query: Query) -> PermutationEvidence:
        phi, bandwidth_x = self._feature(query.x, query.given)
        psi, bandwidth_y = self._feature(query.y, query.given)
        m = self.n_samples
        factor = (m / (m - 1)) ** 2
        with double_precision():
            observed = factor * float(hsic.hsic(phi, psi))
            permuted = factor * np.asarray(_permuted_hsic(phi, psi, self._permutations))
        if query.given:
            bound = claimed_residual_hsic_sensitivity(
                m, bandwidth_x=bandwidth_x, bandwidth_y=bandwidth_y, penalty=self._config.penalty
            )
        else:
            bound = kusner_hsic_sensitivity(m)
        k = len(permuted)
        return PermutationEvidence(
            observed,
            int(np.sum(permuted >= observed)) / k,
            int(np.sum(permuted + bound >= observed - bound)) / k,
            bound,
        )

    def _feature(self, target: int, given: tuple[int, ...]) -> tuple[jax.Array, float]:
        """Centred features (r, m) of a residual, and its bandwidth."""
        if (target, given) not in self._features:
            if self._held > _CACHE_BYTES:
                self._features = {k: v for k, v in self._features.items() if k[1] == given}
                self._spectra = {k: v for k, v in self._spectra.items() if k == given}
                arrays = [array for array, _ in self._features.values()]
                arrays += [part.basis for part in self._spectra.values()]
                self._held = sum(array.nbytes for array in arrays)
            found = self._new_feature(self.residual(target, given))
            self._features[target, given] = found
            self._held += found[0].nbytes
        return self._features[target, given]

    def residual(self, target: int, given: tuple[int, ...]) -> np.ndarray:
        """The residual of a column on others, (m,); the column itself, in [-1, 1], without
        others.
        """
        values = self._values[:, target]
        if not given:
            return values
        with double_precision():
            if given not in self._spectra:
                self._spectra[given] = _spectrum(self._values[:, given])
                self._held += self._spectra[given].basis.nbytes
            penalty = self._config.ridge or ridge.penalty_of_objective(
                self._config.penalty, self.n_samples
            )
            rest = ridge.residuals(self._spectra[given], jnp.asarray(values)[:, None], penalty)
            return np.asarray(rest)[:, 0]

    def _new_feature(self, values: np.ndarray) -> tuple[jax.Array, float]:
        constant = float(np.ptp(values)) <= 1e-12  # of columns in [-1, 1]: rounding only
        bandwidth = 1.0 if constant else self._config.bandwidth or median_gap(values)
        shifted = _within_reach(values, bandwidth)
        length = next(length for length in _LENGTHS if length >= np.ptp(shifted))
        kernel = features.fourier_kernel(length=length, bandwidth=1.0, tolerance=_TOLERANCE)
        with double_precision():
            phi = hsic.centred_features(jnp.asarray(shifted), kernel)
            return _compressed(jnp.zeros_like(phi) if constant else phi), bandwidth


@dataclass(frozen=True)
class PublishedRCIT(CITest):
    r"""PCD's test without its noise: HSIC_b of ridge residuals at a fixed lambda, p = share of
    permuted statistics >= T_0.

    Columns: numeric, or ordinal by their level codes. The p-value may be 0; the margin is alpha -
    p.  Sensitivity: none stated; mechanisms refuse it.

    Args:
        n_permutations: k >= 1.
        penalty: lambda > 0.
        bandwidth: of the residuals' kernels, for columns in [-1, 1]; None for the median heuristic,
            as published.
        ridge: what is added to the diagonal of the Gram matrix of Z, positive; None for n lambda /
            2.  The bounds keep lambda.

    Source:
        Zhang et al. 2023; what differs and what is reconstructed is said in
        :mod:`jaxcd.published.pcd_rcit`.
    """

    n_permutations: int = 100
    penalty: float = 1.0
    bandwidth: float | None = None
    ridge: float | None = None

    def __post_init__(self) -> None:
        count = self.n_permutations
        if not is_whole(count, 1):
            raise OptionError(
                f"n_permutations = {count!r} is not a positive whole number; 100 is the paper's"
            )
        if not is_number(self.penalty, 0, ends="(]"):
            raise OptionError(
                f"penalty = {self.penalty!r} is not a positive number; 1 is the paper's"
            )
        if self.bandwidth is not None and not is_number(self.bandwidth, 0, ends="(]"):
            raise OptionError(
                f"bandwidth = {self.bandwidth!r} is not a positive number; None is the median "
                "heuristic"
            )
        if self.ridge is not None and not is_number(self.ridge, 0, ends="(]"):
            raise OptionError(
                f"ridge = {self.ridge!r} is not a positive number; None is n lambda / 2"
            )

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PublishedColumns:
        data = require_data(data, self.name)
        if data.n_samples < 4:
            raise DomainError(
                f"{self.name} needs at least 4 rows, and there are {data.n_samples}; use more data"
            )
        if key is None:
            raise OptionError(
                f"key = None: {self.name} draws permutations; give a typed key such as "
                "jax.random.key(0)"
            )
        values = np.column_stack([_unit(data, name) for name in data.names])
        seed = np.asarray(jax.random.key_data(key)).ravel().tolist()
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        n = data.n_samples
        # the factor's pivots and the median distance look at the first rows
        values = values[rng.permutation(n)]
        permutations = np.stack([rng.permutation(n) for _ in range(self.n_permutations)])
        return PublishedColumns(values, self, permutations=permutations)


def _unit(data: Dataset, name: str) -> np.ndarray:
    """A column in [-1, 1]: by its declared bounds, else by its smallest and largest value; a
    constant one is 0.
    """
    column = data.domain[name]
    if isinstance(column, Categorical):
        raise DomainError(
            f"column {name!r} is categorical; PublishedRCIT needs numbers: drop the column"
        )
    values = data.column(name).astype(np.float64)
    if isinstance(column, Numeric) and column.lower is not None and column.upper is not None:
        low, high = column.lower, column.upper
    else:
        low, high = float(values.min()), float(values.max())
    if not high > low:
        return np.zeros_like(values)
    return np.clip(2 * ((values - low) / (high - low)) - 1, -1, 1)
