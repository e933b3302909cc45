r"""Kernel tests of bounded sensitivity: HSIC of norm-constrained kernel ridge residuals on public
bounds.

For the record, and for users who want kernels: :mod:`jaxcd.citests.stratified_ranks` costs 4.06
records where the regression here costs tens to hundreds.

Columns are clipped and scaled from their declared bounds to [-1, 1].  Residuals are those of the
objective (lambda / 2) |w|^2 + mean squared error with |w| <= B on random Fourier features of Z,
whose kernel is bounded by one exactly and does not depend on the data.  Their dependence is
T = sqrt(HSIC) with Fourier features of public bandwidth sigma, against one of

* the critical statistic T_(r) among k cyclic shifts of the shuffled rows (fixed: they do not depend
  on the data),
* the analytic value z sqrt(a b / m), a = max(1 - mean of the Gram matrix, 0.05), z the normal
  quantile at 1 - alpha / 2 (Szekely and Bakirov 2003: of level alpha for alpha <= 0.215).

**Sensitivity of m q (replace-one, m rows; records).**  Write e = m times the root mean square shift
of the other rows' residuals when one record is replaced, e <= R(W) / sqrt(2 lambda), W = min(B,
largest norm the objective allows), R(W) = 2 (1 + W c) sqrt(1 - c^2), c = (sqrt(1 + 8 W^2) - 1) / (4
W) (PRIVACY.md E3, E4, F2; e = 0 for empty Z).

* T moves by (sqrt 6 + 2 e / sigma) / m: first the record's own features (D1: |C - C'| <= sqrt 6
  (m - 1) / m^2 for kernels between 0 and 1), then the others', |phi(u) - phi(u')| <= |u - u'| /
  sigma and Cauchy-Schwarz, once for each column.
* T at a fixed shift moves by (4 + 2 e / sigma) / m (D2), hence so does every order statistic.
* With the permutation null: 4 + sqrt 6 + 4 e / sigma.  With the analytic one: sqrt 6 + (2 e /
  sigma)(1 + z / sqrt m) + 4 sqrt 5 z / sqrt m (H3): replacing a record moves a by at most 2 / m and
  sqrt(a), a >= 1/20, by sqrt 5 * 2 / m; the others' residuals move sqrt(a) by e / (sigma m),
  because sqrt(1 - mean of the Gram matrix) is the standard deviation of the features.
* For two different bandwidths 2 e / sigma stands for e / sigma_x + e / sigma_y.

The series kernel may be negative by its tolerance of 1e-8; D1's corner values are polynomials in k
with coefficients below 8, so 1e-6 covers it.  Bandwidths are constants, or bought once
(:mod:`jaxcd.citests.bought_bandwidths`) and public from then on.

Margins of empty and non-empty Z, and of different bandwidths, have different sensitivities; they
are scaled to one unit, so that the noise of a batch fits all of them: the margin here is m q / (its
sensitivity), and the stated sensitivity is 1.
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

from jaxcd.checks import check_choice, check_number, check_whole, hold_python_numbers
from jaxcd.citests.base import Evaluation, PreparedTest, Query, Sensitivity, require_data
from jaxcd.citests.bought_bandwidths import BoughtBandwidths, buy_scales
from jaxcd.citests.permutation import PermutationTest, PreparedPermutationTest, critical_rank
from jaxcd.data import Dataset, Numeric
from jaxcd.data.rows import Rows
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import double_precision, features, gram, hsic, ridge, tails
from jaxcd.privacy import Accountant, Relation
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim

__all__ = ["BoundedRCIT", "Null", "columns_in_bounds", "residual_shift", "ridge_norm"]

_SERIES_SLACK = 1e-6
# The quadratic form's tail is proved below the chi-square's with one degree of freedom up to this
# level only.
_LARGEST_ANALYTIC_ALPHA = 0.215


# Far below it penalties and bandwidths underflow, and 0 / 0 would tell of a record.
_LEAST_NUMBER = 1e-12


class Null(enum.Enum):
    """What the statistic is compared with."""

    PERMUTATION = "permutation"
    ANALYTIC = "analytic"


def ridge_norm(penalty: float, bound: float) -> float:
    """W: the largest |w| of the regression for |x| <= 1: min(B, 1 / sqrt(2 lambda)), for lambda > 2
    min(B, 1 / (1 + lambda / 2)).

    Source:
        PRIVACY.md E1.
    """
    return min(bound, 1 / math.sqrt(2 * penalty) if penalty <= 2 else 1 / (1 + penalty / 2))


def residual_shift(penalty: float, bound: float) -> float:
    """e = R(W) / sqrt(2 lambda), in records: m times the root mean square shift of residuals.

    Source:
        PRIVACY.md E3, E4.
    """
    w = ridge_norm(penalty, bound)
    c = (math.sqrt(1 + 8 * w * w) - 1) / (4 * w)
    return 2 * (1 + w * c) * math.sqrt(1 - c * c) / math.sqrt(2 * penalty)


def columns_in_bounds(
    data: Rows | None, key: jax.Array | None, test: str
) -> tuple[Dataset, list[np.ndarray], jax.Array]:
    """The columns on [-1, 1] by their declared bounds; whatever can be refused is refused here.

    Args:
        data: the rows.
        key: what the test draws from.
        test: its name.

    Raises:
        DomainError: fewer than 4 rows, or a column without bounds.
        OptionError: there is no key, or there are no rows.
    """
    data = require_data(data, test)
    if data.n_samples < 4:
        raise DomainError(
            f"{test} needs at least 4 rows, and there are {data.n_samples}; use more data"
        )
    if key is None:
        raise OptionError(
            f"key = None: {test} draws features and permutations; give a typed key such as "
            "jax.random.key(0)"
        )
    scaled = []
    for name in data.names:
        column = data.domain[name]
        if not isinstance(column, Numeric) or column.lower is None or column.upper is None:
            raise DomainError(
                f"{test} needs public bounds, but {name!r} has none; declare it numeric with lower "
                "and upper"
            )
        values = np.clip(data.values(name), column.lower, column.upper)
        scaled.append(2 * ((values - column.lower) / (column.upper - column.lower)) - 1)
    return data, scaled, key


class _PreparedKernel(PreparedPermutationTest):
    def __init__(
        self, scaled: np.ndarray, scales: tuple[float, ...], config: BoundedRCIT, key: jax.Array
    ) -> None:
        self.n_samples = int(scaled.shape[0])
        feature_key, shift_key, order_key = jax.random.split(key, 3)
        self._values = hsic.shuffled_rows(scaled, order_key)
        self._scales = scales
        self._config = config
        self._key = feature_key
        self._first_shift = hsic.draw_first_shift(shift_key, config.n_permutations)
        self._orders = hsic.draw_orders(
            jax.random.fold_in(shift_key, 1),
            self.n_samples,
            first=self._first_shift,
            count=config.n_permutations + 1,
        )
        # Residuals of |x| <= 1 with |fit| <= W <= B lie in [-1 - W, 1 + W].
        self._reach = 1 + ridge_norm(config.penalty, config.norm_bound)

    def bucket(self, query: Query) -> tuple[int, ...]:
        return query.given

    def batch_size(self, bucket: Any) -> int:
        return 1 << 16

    def _features(self, given: tuple[int, ...], queries: Sequence[Query]) -> dict[int, jax.Array]:
        """Centred features of every column asked for: residuals on ``given``, in the column's
        bandwidth.
        """
        config = self._config
        targets = sorted({v for query in queries for v in (query.x, query.y)})
        values = jax.device_put(self._values[:, targets])
        if given:
            z = jax.device_put(
                self._values[:, list(given)] / np.array([self._scales[v] for v in given])
            )
            factor = gram.random_fourier_features(
                z,
                config.ridge_bandwidth * math.sqrt(len(given)),
                n_features=config.n_features,
                key=self._key,
            ).factor
            penalty = ridge.penalty_of_objective(config.penalty, self.n_samples)
            values = ridge.constrained_residuals(
                ridge.spectrum(factor), values, penalty, config.norm_bound
            )
        length = 2 * (self._reach if given else 1.0)
        bandwidth = config.bandwidth if given else config.raw_bandwidth
        result = {}
        for place, v in enumerate(targets):
            kernel = features.fourier_kernel(length=length, bandwidth=bandwidth * self._scales[v])
            result[v] = hsic.centred_features(values[:, place], kernel)
        return result

    def _unit(self, query: Query, alpha: float) -> float:
        """Records for one unit of the margin."""
        scales = self._scales[query.x], self._scales[query.y]
        return self._config.record_sensitivity(
            conditional=bool(query.given), n_samples=self.n_samples, alpha=alpha, scales=scales
        )

    def _statistics(self, phi: jax.Array, psi: jax.Array) -> np.ndarray:
        """T_0, then T at each other shift."""
        squares = np.asarray(
            hsic.hsic_shifted(
                phi,
                psi,
                first=self._first_shift,
                count=self._config.n_permutations + 1,
                orders=self._orders,
            )
        )
        observed, others = hsic.split_observed(squares, self._first_shift)
        return np.sqrt(np.maximum([observed, *others], 0.0))

    def permuted_statistics(self, bucket: Any, queries: Sequence[Query]) -> np.ndarray:
        with double_precision():
            phis = self._features(bucket, queries)
            # The permutation null's unit does not depend on alpha.
            rows = [
                self.n_samples / self._unit(q, 0.05) * self._statistics(phis[q.x], phis[q.y])
                for q in queries
            ]
        return np.array(rows, dtype=np.float64)

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        m = self.n_samples
        rows = []
        with double_precision():
            phis = self._features(bucket, queries)
            for query in queries:
                phi, psi = phis[query.x], phis[query.y]
                if self._config.null is Null.ANALYTIC:
                    observed = math.sqrt(max(float(hsic.hsic(phi, psi)), 0.0))
                    spreads = [max(float(jnp.sum(part**2)) / m, 0.05) for part in (phi, psi)]
                    unit = math.sqrt(spreads[0] * spreads[1] / m)
                    critical = self._config.analytic_quantile(alpha) * unit
                    log_pvalue = float(tails.normal_two_sided_log_pvalue(np.array(observed / unit)))
                    log_pvalue = (
                        log_pvalue if log_pvalue <= math.log(_LARGEST_ANALYTIC_ALPHA) else 0.0
                    )
                else:
                    rank = self._config.critical_rank(alpha)
                    observed, *others = self._statistics(phi, psi).tolist()
                    critical = sorted(others, reverse=True)[rank - 1]
                    log_pvalue = math.log(
                        (1 + sum(t >= observed for t in others)) / (len(others) + 1)
                    )
                rows.append(
                    (observed, log_pvalue, m * (observed - critical) / self._unit(query, alpha))
                )
        return Evaluation(*np.array(rows, dtype=np.float64).T)


@dataclass(frozen=True)
class BoundedRCIT(PermutationTest):
    r"""RCIT with a proved sensitivity, for numeric columns with declared bounds.

    Bounds, bandwidths and permutations are public, and the norm of the ridge regression is limited.
    Statistic: T = sqrt(HSIC) of the residuals.  Margin: m (T - critical value), in units of its own
    sensitivity, with m the number of rows.  All bandwidths are on the scale on which the bounds are
    [-1, 1].

    Args:
        penalty: lambda of the ridge regression, positive.
        norm_bound: B, the largest norm of a regression's coefficients, positive.
        bandwidth: of the residuals' kernel, positive.
        raw_bandwidth: of the kernel of x and y themselves where Z is empty, positive.
        ridge_bandwidth: of the kernel on Z, positive, times sqrt |Z|.
        n_features: the number of random Fourier features of Z, even, from 2.
        null: ``Null.PERMUTATION``, or ``Null.ANALYTIC`` for alpha up to 0.215.
        n_permutations: k, a whole number from 2.
        scales: None takes the bandwidths as they are; ``BoughtBandwidths()`` multiplies the three,
            for each column, by a factor that is bought when the session opens (without privacy: the
            best one).

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: replace-one; m, the bounds, the options and the permutations are public.
        Sensitivity of the margin: 1 (by scaling).  Event: none (the margin never leaves the
        session; mechanisms pay), and with ``scales`` an ``ExponentialMechanismEvent`` a column.
        Proof: the docstring of :mod:`jaxcd.citests.bounded_rcit`.

    Source:
        PRIVACY.md D, E, F2, H1, H3.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(-1, 1, size=500)
        >>> y = np.clip(x**2 + 0.1 * np.random.default_rng(1).normal(size=500), -1, 2)
        >>> columns = {"x": jaxcd.Numeric(-1, 1), "y": jaxcd.Numeric(-1, 2)}
        >>> data = jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=jaxcd.Domain(columns))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "x",
        ...     "y",
        ...     test=jaxcd.BoundedRCIT(),
        ...     budget=jaxcd.Budget(2.0),
        ...     key=jax.random.key(0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, answer.margin > 0
        (False, True)
    """

    assumes = "x = f(Z) + e with f in reach of its fixed penalty; the null is by permutation"
    claim = GuaranteeClaim(
        f"margin sensitivity 1 in its own unit: {4 + math.sqrt(6):.3g} records for empty Z, 4 + "
        "sqrt 6 + 4 e / sigma otherwise",
        assumptions=PUBLIC + "; bounds, bandwidths and permutations are public",
    )

    penalty: float = 0.01
    norm_bound: float = 1.0
    bandwidth: float = 0.25
    raw_bandwidth: float = 0.5
    ridge_bandwidth: float = 0.5
    n_features: int = 200
    null: Null = Null.PERMUTATION
    n_permutations: int = 100
    scales: BoughtBandwidths | None = None

    restrictable = False  # its bounds are stated for fixed shifts of all rows

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        for argument in ("penalty", "norm_bound", "bandwidth", "raw_bandwidth", "ridge_bandwidth"):
            value = getattr(self, argument)
            check_number(argument, value, _LEAST_NUMBER, cure="give one")
        for argument in ("n_features", "n_permutations"):
            value = getattr(self, argument)
            check_whole(argument, value, 2, cure="give one")
        check_choice("null", self.null, Null)

        if self.scales is not None and not isinstance(self.scales, BoughtBandwidths):
            raise OptionError(
                f"scales = {self.scales!r} is neither None nor a BoughtBandwidths; use one of these"
            )

    @property
    def buys_preparation(self) -> bool:  # type: ignore[override]
        """Whether the bandwidths are to be bought."""
        return self.scales is not None

    @property
    def n_null_statistics(self) -> int:
        return self.n_permutations if self.null is Null.PERMUTATION else 0

    def critical_rank(self, alpha: float) -> int:
        """The rank of the critical shift; raises OptionError where there are too few shifts for the
        level.
        """
        return critical_rank(alpha, self.n_permutations)

    def analytic_quantile(self, alpha: float) -> float:
        """z at 1 - alpha / 2; raises OptionError for a level at which the analytic null is not
        known to hold.
        """
        if not alpha <= _LARGEST_ANALYTIC_ALPHA:
            raise OptionError(
                f"alpha = {alpha!r}: the analytic null holds for levels up to "
                f"{_LARGEST_ANALYTIC_ALPHA}; use a smaller one, "
                "or Null.PERMUTATION"
            )
        return tails.normal_quantile(alpha / 2)

    def record_sensitivity(
        self,
        *,
        conditional: bool,
        n_samples: int,
        alpha: float = 0.05,
        scales: tuple[float, float] = (1.0, 1.0),
    ) -> float:
        """The sensitivity of m q, in records: see the module docstring.  scales: the factors of the
        two columns' bandwidths.
        """
        shift = residual_shift(self.penalty, self.norm_bound) if conditional else 0.0
        kernels = sum(shift / (self.bandwidth * scale) for scale in scales)
        if self.null is Null.PERMUTATION:
            return 4 + math.sqrt(6) + 2 * kernels + _SERIES_SLACK
        z = self.analytic_quantile(alpha) / math.sqrt(n_samples)
        return math.sqrt(6) + kernels * (1 + z) + 4 * math.sqrt(5) * z + _SERIES_SLACK

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data, scaled, key = columns_in_bounds(data, key, self.name)
        scales = (1.0,) * len(scaled)
        if self.scales is not None:
            scales = buy_scales(scaled, data.names, self.scales, None, bandwidth=self.raw_bandwidth)
        return _PreparedKernel(np.column_stack(scaled), scales, self, key)

    def prepare_privately(
        self, data: Rows | None, accountant: Accountant, *, key: jax.Array | None = None
    ) -> PreparedTest:
        if self.scales is None:
            return self.prepare(data, key=key)
        data, scaled, key = columns_in_bounds(data, key, self.name)
        scales = buy_scales(
            scaled, data.names, self.scales, accountant, bandwidth=self.raw_bandwidth
        )
        return _PreparedKernel(np.column_stack(scaled), scales, self, key)

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: Relation
    ) -> Sensitivity | None:
        if self.null is Null.ANALYTIC:
            self.analytic_quantile(alpha)
        else:
            self.critical_rank(alpha)
        # float64 sums over the rows, and 100 bisections of the penalty: far below a millionth of a
        # record's effect.
        return Sensitivity(1.0, max(1e-6, n_samples * 2.0**-30), "jaxcd.citests.bounded_rcit")
