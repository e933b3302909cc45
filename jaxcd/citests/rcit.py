r"""Kernel tests for numeric columns: HSIC, and RCIT, the HSIC of kernel ridge residuals.

*Residuals.*  Given Z, both columns are regressed on Z by kernel ridge regression (Gaussian kernel
on the normal scores of Z, which loses nothing: conditioning on Z is conditioning on any monotone
function of its columns) with the penalty of least leave-one-out error, chosen for each target.
Penalties fixed in advance (PCD's lambda = 1) leave so much of the signal in the residuals that
every true null is rejected from n = 500 on; the leave-one-out penalty keeps the level.

*Independence.*  Residuals are scaled to a robust unit, clipped at +-5 (a function of the residual,
so independence is kept) and compared by HSIC with Fourier features of a Gaussian kernel: O(n r^2)
and no n x n array.  The null is the same statistic at k cyclic shifts of rows that were put into
random order once, p = (1 + #{T_s >= T_0}) / (k + 1).

*Sharing.*  All queries with the same Z share one factorisation; all queries with the same target
and Z share one residual and its features; all queries share the shifts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxcd.checks import check_number, check_whole
from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, require_data
from jaxcd.data import Categorical, Dataset, Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import double_precision, features, gram, hsic, ridge
from jaxcd.ops.standardising import SPREAD_LOST, is_constant, near_one, standardised
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["HSIC", "RCIT"]

_CLIP = 5.0
# Relative errors of the statistic by dtype, with room; tests hold the errors themselves (1e-14, and
# 7e-7 in single precision).
_TIES = {"float32": 1e-5, "float64": 1e-10}
_TOLERANCE = 1e-8
# Penalties mu / n of K + mu I among which leave-one-out chooses.
_PENALTIES = np.geomspace(1e-8, 1.0, 33)
# Feature arrays kept for reuse: 64 columns of 28 features at n = 100,000 are 700 MB in float32.
_CACHE_BYTES = 1 << 30


def normal_scores(column: np.ndarray) -> np.ndarray:
    """Phi^{-1}((rank - 1/2) / n), ties at their mean rank: (n,) -> (n,)."""
    _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    return special.ndtri(middle[inverse] / len(column))


def robust_unit(values: np.ndarray) -> np.ndarray:
    """(values - median) / (IQR / 1.349), clipped at +-5; by the standard deviation where the IQR is
    0, and 0 where the column is constant.
    """
    if is_constant(values):
        return np.zeros_like(values)
    values = near_one(values)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    if high - low > SPREAD_LOST:
        return np.clip((values - middle) / ((high - low) / 1.349), -_CLIP, _CLIP)
    standard = standardised(values)
    return np.clip(standard - standard[np.argmin(np.abs(values - middle))], -_CLIP, _CLIP)


class _Columns(PreparedTest):
    """Numeric columns in random order, with the caches."""

    def __init__(
        self, values: np.ndarray, names: Sequence[str], config: HSIC | RCIT, key: jax.Array
    ) -> None:
        self.n_samples, _ = values.shape
        self._names = tuple(names)
        self._config = config
        order_key, shift_key = jax.random.split(key)
        self._values = hsic.shuffled_rows(values, order_key)
        self._first_shift = hsic.draw_first_shift(shift_key, config.n_permutations)
        self._kernel = features.fourier_kernel(
            length=2 * _CLIP, bandwidth=config.bandwidth, tolerance=_TOLERANCE
        )
        self._features: dict[tuple[int, tuple[int, ...]], jax.Array] = {}
        self._spectra: dict[tuple[int, ...], ridge.Spectrum] = {}
        self.n_residuals = 0
        self.n_factorisations = 0

    @property
    def work(self) -> dict[str, int]:
        return {"n_residuals": self.n_residuals, "n_factorisations": self.n_factorisations}

    def admissible(self, query: Query) -> bool:
        if query.given and isinstance(self._config, HSIC):
            raise DomainError(
                "HSIC is an unconditional test; use RCIT for conditioning sets, or set max_level=0"
            )
        return True

    def bucket(self, query: Query) -> tuple[int, ...]:
        return query.given

    def batch_size(self, bucket: Any) -> int:
        return 1 << 16

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        n_permutations = self._config.n_permutations
        rank = math.floor(alpha * (n_permutations + 1) + 1e-9)
        if rank < 1:
            raise OptionError(
                f"alpha = {alpha!r} is below 1 / (n_permutations + 1): no p-value can reach it; "
                "use more permutations"
            )
        self._prepare_features(bucket, sorted({v for query in queries for v in (query.x, query.y)}))
        rows = []
        for query in queries:
            phi, psi = self._features[query.x, bucket], self._features[query.y, bucket]
            shifted = hsic.hsic_shifted(phi, psi, first=self._first_shift, count=n_permutations + 1)
            observed, others = hsic.split_observed(
                np.asarray(shifted, dtype=np.float64), self._first_shift
            )
            null = np.sort(others)[::-1]
            # Equal statistics (few levels) differ in their last digits, and no processor's rounding
            # may decide: what is as large but for these counts as large.  That is valid at every
            # level, as every rule of the form T_s >= T_0 - t is.
            pvalue = (1 + np.sum(null >= observed * (1 - _TIES[self._config.dtype]))) / (
                n_permutations + 1
            )
            margin = math.sqrt(max(observed, 0.0)) - math.sqrt(max(null[rank - 1], 0.0))
            # Where T_0 ties with the critical value it is not above it; a constant residual has 0
            # against 0.
            rows.append(
                (observed, math.log(pvalue), margin if pvalue <= alpha else min(margin, 0.0))
            )
        self._trim(bucket)
        return Evaluation(*np.array(rows, dtype=np.float64).T)

    def _trim(self, bucket: tuple[int, ...]) -> None:
        """Drops the caches of other conditioning sets when they grow too large."""
        held = sum(array.nbytes for array in self._features.values())
        held += sum(part.basis.nbytes for part in self._spectra.values())
        if held > _CACHE_BYTES:
            self._features = {k: v for k, v in self._features.items() if k[1] == bucket}
            self._spectra = {k: v for k, v in self._spectra.items() if k == bucket}

    def _prepare_features(self, given: tuple[int, ...], targets: Sequence[int]) -> None:
        missing = [v for v in targets if (v, given) not in self._features]
        if not missing:
            return
        remaining = self._values[:, missing] if not given else self._residuals(given, missing)
        kind = self._config.dtype
        for place, v in enumerate(missing):
            unit = robust_unit(np.asarray(remaining[:, place], dtype=np.float64)).astype(kind)
            with double_precision():
                phi = hsic.centred_features(jnp.asarray(unit), self._kernel)
                self._features[v, given] = hsic.leading_features(phi) if kind == "float32" else phi

    def _residuals(self, given: tuple[int, ...], targets: list[int]) -> np.ndarray:
        # Columns of zeros up to a power of two, so that few shapes are compiled.
        standard = np.zeros((self.n_samples, max(2, 1 << (len(targets) - 1).bit_length())))
        standard[:, : len(targets)] = standardised(self._values[:, targets])
        with double_precision():
            if given not in self._spectra:
                self._spectra[given] = self._factorise(given)
                self.n_factorisations += 1
            rest, _ = ridge.leave_one_out_residuals(
                self._spectra[given],
                jnp.asarray(standard),
                jnp.asarray(_PENALTIES * self.n_samples),
            )
            self.n_residuals += len(targets)
            return np.asarray(rest)[:, : len(targets)]

    def _factorise(self, given: tuple[int, ...]) -> ridge.Spectrum:
        assert isinstance(self._config, RCIT)
        scores = jnp.asarray(np.column_stack([normal_scores(self._values[:, v]) for v in given]))
        bandwidth = self._config.ridge_bandwidth * math.sqrt(2 * len(given))
        return ridge.spectrum(
            gram.pivoted_cholesky(scores, bandwidth, rank=self._config.rank, trim=True).factor
        )


def _prepare(data: Dataset | None, config: HSIC | RCIT, key: jax.Array | None) -> _Columns:
    data = require_data(data, config.name)
    for name in data.names:
        if isinstance(data.domain[name], Categorical):
            raise DomainError(
                f"{config.name} needs numbers, but {name!r} is categorical; use ChiSquare or "
                "CovarianceNorm"
            )
    if data.n_samples < 4:
        raise DomainError(
            f"{config.name} needs at least 4 rows, and there are {data.n_samples}; use more data"
        )
    if key is None:
        raise OptionError(
            f"key = None: {config.name} draws permutations; give a typed key such as "
            "jax.random.key(0)"
        )
    values = np.column_stack([data.column(name).astype(np.float64) for name in data.names])
    return _Columns(values, data.names, config, key)


def _check(config: HSIC | RCIT) -> None:
    check_whole("n_permutations", config.n_permutations, 1, cure="100 is usual")
    cure = "give one in units of the residual's spread"
    check_number("bandwidth", config.bandwidth, 0, ends="(]", cure=cure)
    if config.dtype not in ("float32", "float64"):
        raise OptionError(f"dtype = {config.dtype!r} is not 'float32' or 'float64'")


@dataclass(frozen=True)
class HSIC(CITest):
    r"""The Hilbert-Schmidt independence criterion of two numeric columns, against permutations.

    The statistic T_0 = |C|_F^2 is the squared norm of the cross-covariance of Fourier features of
    the two columns, each in robust units (:mod:`jaxcd.ops.hsic`).  With T_1, ..., T_k the same
    after random shifts of one column, the p-value (1 + #{T_s >= T_0}) / (k + 1) is exact.  Margin:
    sqrt(T_0) minus the critical square root.  The test is unconditional: it takes no conditioning
    set.  Columns: numeric, or ordinal by their level codes.  Sensitivity: none is stated, because
    the units are read off the data, so that a private run refuses the test.

    Args:
        n_permutations: k, a whole number from 1.
        bandwidth: of the Gaussian kernel, positive, in units of IQR / 1.349.
        dtype: of the features, ``"float32"`` or ``"float64"``.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Gretton et al. 2005, 2008.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).normal(size=300)
        >>> y = x**2 + np.random.default_rng(1).normal(size=300)
        >>> data = jaxcd.Dataset.from_array(np.column_stack([x, y]))
        >>> answer = jaxcd.ci_test(
        ...     data, "x1", "x2", test=jaxcd.HSIC(), budget=jaxcd.NO_PRIVACY, key=jax.random.key(0)
        ... )
        >>> answer.independent, round(answer.pvalue, 3)
        (False, 0.01)
    """

    claim = GuaranteeClaim(
        "no sensitivity stated: refused by every mechanism",
        proof="its units are read off the data",
        proven=False,
        assumptions="-",
    )

    n_permutations: int = 100
    bandwidth: float = 1.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        _check(self)

    def check_search(self, domain: Domain | None, *, max_level: int | None) -> None:
        if max_level != 0:
            raise DomainError(
                "HSIC is an unconditional test; use RCIT for conditioning sets, or set max_level=0"
            )

    def prepare(self, data: Dataset | None, *, key: jax.Array | None = None) -> PreparedTest:
        return _prepare(data, self, key)


@dataclass(frozen=True)
class RCIT(CITest):
    r"""Residual conditional independence test: HSIC of the kernel ridge residuals of x and y on Z.

    Statistic, p-value and margin are those of :class:`HSIC`, for the residuals; for empty Z those
    of the columns themselves.  Columns: numeric, or ordinal by their level codes.  Sensitivity:
    none is stated, so that a private run refuses the test.

    It assumes x = f(Z) + e with a law of e that does not depend on Z and has a variance.  Else
    residuals share what Z does to their spread, and true nulls are rejected: at n = 300 and alpha
    .05 .95 of them for binary x and y, 1.0 for three levels, .2 where the spread grows with |z|, .5
    for Cauchy errors and .9 for Cauchy z.  Cut such columns into levels and use ChiSquare, or
    StratifiedRanks.  (Clipping the columns would mend Cauchy errors and break what works: exp(z_1 +
    z_2 + z_3) clipped at 5 robust units was rejected in .99 of runs, unclipped in .23.)

    Args:
        n_permutations: k, a whole number from 1.
        bandwidth: of the residuals' kernel, positive, in units of IQR / 1.349.
        rank: of the pivoted Cholesky factor of the Gram matrix of Z, a whole number from 1.
        ridge_bandwidth: of the kernel on the normal scores of Z, positive, times sqrt(2 |Z|).
        dtype: of the features, ``"float32"`` or ``"float64"``; the regression is in float64.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Zhang et al. 2023 for the test (there with lambda = 1); An, Liu, Venkatesh 2007 for the
        leave-one-out penalty.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> z = np.random.default_rng(0).uniform(-2, 2, size=(300, 1))
        >>> values = np.sin(z) + 0.3 * np.random.default_rng(1).normal(size=(300, 2))
        >>> data = jaxcd.Dataset.from_array(np.hstack([z, values]))
        >>> for given in [], ["x1"]:
        ...     answer = jaxcd.ci_test(
        ...         data,
        ...         "x2",
        ...         "x3",
        ...         given=given,
        ...         test=jaxcd.RCIT(),
        ...         budget=jaxcd.NO_PRIVACY,
        ...         key=jax.random.key(0),
        ...     )
        ...     print(given, answer.independent)
        [] False
        ['x1'] True
    """

    claim = GuaranteeClaim(
        "no sensitivity stated: refused by every mechanism",
        proof="penalty and units are read off the data",
        proven=False,
        assumptions="-",
    )

    n_permutations: int = 100
    bandwidth: float = 1.0
    rank: int = 200
    ridge_bandwidth: float = 1.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        _check(self)
        check_whole("rank", self.rank, 1, cure="200 is usual")
        check_number("ridge_bandwidth", self.ridge_bandwidth, 0, ends="(]", cure="1 is usual")

    def prepare(self, data: Dataset | None, *, key: jax.Array | None = None) -> PreparedTest:
        return _prepare(data, self, key)
