r"""Kernel tests of bounded sensitivity: HSIC of norm-constrained kernel ridge residuals on public bounds.

For the record, and for users who want kernels: :mod:`jaxcd.citests.stratified_ranks` costs 4.06 records where the regression here
costs tens to hundreds.

Columns are clipped and scaled from their declared bounds to [-1, 1].  Residuals are those of the objective
(lambda / 2) |w|^2 + mean squared error with |w| <= B on random Fourier features of Z, whose kernel is bounded by one exactly and
does not depend on the data.  Their dependence is T = sqrt(HSIC) with Fourier features of public bandwidth sigma, against one of

* the critical statistic T_(r) among k cyclic shifts of the rows (fixed: they do not depend on the data),
* the analytic value 1.96 sqrt(a b / m), a = max(1 - mean of the Gram matrix, 0.05) (Szekely and Bakirov 2003: level 0.05).

**Sensitivity of m q (replace-one, m rows; records).**  Write e = m times the root mean square shift of the other rows' residuals when
one record is replaced, e <= R(W) / sqrt(2 lambda), W = min(B, largest norm the objective allows), R(W) = 2 (1 + W c) sqrt(1 - c^2),
c = (sqrt(1 + 8 W^2) - 1) / (4 W) (PRIVACY.md E3, E4, F2; e = 0 for empty Z).

* T moves by (sqrt 6 + 2 e / sigma) / m: first the record's own features (D1: |C - C'| <= sqrt 6 (m - 1) / m^2 for kernels between 0
  and 1), then the others', |phi(u) - phi(u')| <= |u - u'| / sigma and Cauchy-Schwarz, once for each column.
* T at a fixed shift moves by (4 + 2 e / sigma) / m (D2), hence so does every order statistic.
* With the permutation null: 4 + sqrt 6 + 4 e / sigma.  With the analytic one: sqrt 6 + (2 e / sigma)(1 + 1.96 / sqrt m) + 17.6 / sqrt m
  (H3).

The series kernel may be negative by its tolerance of 1e-8; D1's corner values are polynomials in k with coefficients below 8, so
1e-6 covers it.  Margins of empty and non-empty Z have different sensitivities; they are scaled to one unit, so that the noise of
a batch fits all of them: the margin here is m q / (its sensitivity), and the stated sensitivity is 1.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, Sensitivity, require_data
from jaxcd.data import Dataset, Numeric
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import double_precision, features, gram, hsic, ridge
from jaxcd.privacy import Relation

__all__ = ["BoundedRCIT", "Null", "residual_shift", "ridge_norm"]

_SERIES_SLACK = 1e-6


class Null(enum.Enum):
    """What the statistic is compared with."""

    PERMUTATION = "permutation"
    ANALYTIC = "analytic"


def ridge_norm(penalty: float, bound: float) -> float:
    """W: the largest |w| of the regression for |x| <= 1: min(B, 1 / sqrt(2 lambda)), for lambda > 2 min(B, 1 / (1 + lambda / 2)).

    Source: PRIVACY.md E1.
    """
    return min(bound, 1 / math.sqrt(2 * penalty) if penalty <= 2 else 1 / (1 + penalty / 2))


def residual_shift(penalty: float, bound: float) -> float:
    """e = R(W) / sqrt(2 lambda), in records: m times the root mean square shift of residuals.  Source: PRIVACY.md E3, E4."""
    w = ridge_norm(penalty, bound)
    c = (math.sqrt(1 + 8 * w * w) - 1) / (4 * w)
    return 2 * (1 + w * c) * math.sqrt(1 - c * c) / math.sqrt(2 * penalty)


class _PreparedKernel(PreparedTest):
    def __init__(self, scaled: np.ndarray, config: BoundedRCIT, key: jax.Array) -> None:
        self.n_samples = int(scaled.shape[0])
        self._values = scaled
        self._config = config
        feature_key, shift_key = jax.random.split(key)
        self._key = feature_key
        self._shifts = hsic.draw_shifts(shift_key, self.n_samples, config.n_permutations)
        # Residuals of |x| <= 1 with |fit| <= W <= B lie in [-1 - W, 1 + W].
        self._reach = 1 + ridge_norm(config.penalty, config.norm_bound)

    def bucket(self, query: Query) -> tuple[int, ...]:
        return query.given

    def batch_size(self, bucket: Any) -> int:
        return 1 << 16

    def _features(self, given: tuple[int, ...], targets: Sequence[int]) -> dict[int, jax.Array]:
        config = self._config
        values = jnp.asarray(self._values[:, list(targets)])
        if given:
            z = jnp.asarray(self._values[:, list(given)])
            factor = gram.random_fourier_features(
                z, config.ridge_bandwidth * math.sqrt(len(given)), n_features=config.n_features, key=self._key
            ).factor
            penalty = ridge.penalty_of_objective(config.penalty, self.n_samples)
            values = ridge.constrained_residuals(ridge.spectrum(factor), values, penalty, config.norm_bound)
        kernel = features.fourier_kernel(
            length=2 * (self._reach if given else 1.0), bandwidth=config.bandwidth if given else config.raw_bandwidth
        )
        return {v: hsic.centred_features(values[:, place], kernel) for place, v in enumerate(targets)}

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        given: tuple[int, ...] = bucket
        m = self.n_samples
        unit = self._config.record_sensitivity(conditional=bool(given), n_samples=m)
        rows = []
        with double_precision():
            phis = self._features(given, sorted({v for query in queries for v in (query.x, query.y)}))
            for query in queries:
                phi, psi = phis[query.x], phis[query.y]
                observed = math.sqrt(max(float(hsic.hsic(phi, psi)), 0.0))
                if self._config.null is Null.ANALYTIC:
                    spreads = [max(float(jnp.sum(part**2)) / m, 0.05) for part in (phi, psi)]
                    critical = 1.96 * math.sqrt(spreads[0] * spreads[1] / m)
                    log_pvalue = math.log(0.05) if observed > critical else 0.0
                else:
                    rank = self._config.critical_rank(alpha)
                    null = np.sort(np.sqrt(np.maximum(np.asarray(hsic.hsic_shifted(phi, psi, self._shifts)), 0)))[::-1]
                    critical = float(null[rank - 1])
                    log_pvalue = math.log((1 + np.sum(null >= observed)) / (len(null) + 1))
                rows.append((observed, log_pvalue, m * (observed - critical) / unit))
        return Evaluation(*np.array(rows, dtype=np.float64).T)


@dataclass(frozen=True)
class BoundedRCIT(CITest):
    r"""RCIT with a proved sensitivity: public bounds, bandwidths and permutations, norm-constrained ridge.

    Statistic: T = sqrt(HSIC) of the residuals.  Margin: m (T - critical value) in units of its own sensitivity.
    Columns: numeric with declared bounds.
    penalty: lambda > 0.  norm_bound: B > 0.  bandwidth: of the residuals' kernel, raw_bandwidth: for empty Z, ridge_bandwidth: of
    the kernel on Z times sqrt |Z|, all on the scale [-1, 1].  n_features: random Fourier features of Z, even.
    null: permutation or analytic (level 0.05 only).  n_permutations: k.

    Guarantee
    ---------
    Relation: replace-one; m, the bounds, the options and the permutations are public.  Sensitivity of the margin: 1 (by scaling).
    Event: none (the margin never leaves the session; mechanisms pay).  Proof: module docstring.
    Source: PRIVACY.md D, E, F2, H1, H3.
    """

    penalty: float = 0.01
    norm_bound: float = 1.0
    bandwidth: float = 0.25
    raw_bandwidth: float = 0.5
    ridge_bandwidth: float = 0.5
    n_features: int = 200
    null: Null = Null.PERMUTATION
    n_permutations: int = 100

    restrictable = False  # its bounds are stated for fixed shifts of all rows

    def __post_init__(self) -> None:
        for argument in ("penalty", "norm_bound", "bandwidth", "raw_bandwidth", "ridge_bandwidth"):
            value = getattr(self, argument)
            if not (math.isfinite(value) and value > 0):
                raise OptionError(f"{argument} = {value!r} is not a positive number; give one")
        for argument in ("n_features", "n_permutations"):
            value = getattr(self, argument)
            if isinstance(value, bool) or not isinstance(value, int) or not value >= 2:
                raise OptionError(f"{argument} = {value!r} is not a whole number from 2; give one")
        if not isinstance(self.null, Null):
            raise OptionError(f"null = {self.null!r} is not a Null; use Null.PERMUTATION or Null.ANALYTIC")

    def critical_rank(self, alpha: float) -> int:
        """The rank of the critical shift; raises OptionError where there are too few shifts for the level."""
        rank = math.floor(alpha * (self.n_permutations + 1) + 1e-9)
        if rank < 1:
            raise OptionError(f"alpha = {alpha!r} is below 1 / (n_permutations + 1); use more permutations")
        return rank

    def record_sensitivity(self, *, conditional: bool, n_samples: int) -> float:
        """The sensitivity of m q, in records: see the module docstring."""
        shift = residual_shift(self.penalty, self.norm_bound) if conditional else 0.0
        per_kernel = 2 * shift / self.bandwidth
        if self.null is Null.PERMUTATION:
            return 4 + math.sqrt(6) + 2 * per_kernel + _SERIES_SLACK
        root = math.sqrt(n_samples)
        return math.sqrt(6) + per_kernel * (1 + 1.96 / root) + 17.6 / root + _SERIES_SLACK

    def prepare(self, data: Dataset | None, *, key: jax.Array | None = None) -> PreparedTest:
        data = require_data(data, self.name)
        if data.n_samples < 4:
            raise DomainError(f"{self.name} needs at least 4 rows, and there are {data.n_samples}; use more data")
        if key is None:
            raise OptionError(f"key = None: {self.name} draws features and permutations; give a typed key such as jax.random.key(0)")
        scaled = []
        for name in data.names:
            column = data.domain[name]
            if not isinstance(column, Numeric) or column.lower is None or column.upper is None:
                raise DomainError(f"{self.name} needs public bounds, but {name!r} has none; declare it numeric with lower and upper")
            values = np.clip(data.values(name), column.lower, column.upper)
            scaled.append(2 * (values - column.lower) / (column.upper - column.lower) - 1)
        return _PreparedKernel(np.column_stack(scaled), self, key)

    def margin_sensitivity(self, *, alpha: float, n_samples: int, relation: Relation) -> Sensitivity | None:
        if relation is not Relation.REPLACE_ONE:
            return None
        if self.null is Null.ANALYTIC and alpha > 0.215:
            return None
        # float64 sums over the rows, and 100 bisections of the penalty: far below a millionth of a record's effect.
        return Sensitivity(1.0, max(1e-6, n_samples * 2.0**-30), "jaxcd.citests.bounded_rcit")
