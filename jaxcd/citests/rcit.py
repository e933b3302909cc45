r"""Kernel tests for numeric columns: HSIC, and RCIT, the HSIC of kernel ridge residuals.

*Residuals.*  Given Z, both columns are regressed on Z; the map of Z, the kernel and the penalty are
chosen for each target by leave-one-out error, and so is a second regression, of the residual's
spread, by which it is divided (:mod:`jaxcd.citests.regressions`).  Regressions fixed in advance
fail in one law or another: with PCD's penalty lambda = 1 every true null is rejected from n = 500
on, and with normal scores of Z alone, as here in version 0.1, more and more of them as n grows
where Z is uniform.

*Independence.*  Residuals are scaled to a robust unit, clipped at +-5 (a function of the residual,
so independence is kept) and compared by HSIC with Fourier features of a Gaussian kernel: O(n r^2)
and no n x n array.  The null is the same statistic at k cyclic shifts of rows that were put into
random order once, p = (1 + #{T_s >= T_0}) / (k + 1).

*Sharing.*  All queries with the same Z share one factorisation; all queries with the same target
and Z share one residual and its features; all queries share the shifts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxcd.checks import check_number, check_whole
from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, require_columns
from jaxcd.citests.block_kernels import BlockPool, edge_of
from jaxcd.citests.block_regressions import BlockRegressions
from jaxcd.citests.kernel_batches import FeaturePool, Target, columns_at_once
from jaxcd.citests.regressions import Regressions
from jaxcd.data import Categorical, Domain
from jaxcd.data.rows import Rows
from jaxcd.data.shards import Shards
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import features, hsic, units
from jaxcd.ops.standardising import standardised
from jaxcd.ops.threads import in_order, n_threads
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["HSIC", "RCIT"]

# Relative errors of the statistic by dtype, with room; tests hold the errors themselves (1e-14, and
# 7e-7 in single precision).
_TIES = {"float32": 1e-5, "float64": 1e-10}
_TOLERANCE = 1e-8
# Bytes of factorisations that are kept for reuse, and that are made at once.
_CACHE_BYTES = 1 << 30
_AT_ONCE_BYTES = 1 << 27


class _Residuals:
    """Standardised columns, or what their regressions leave of them, on the device.

    The regressions are chosen on the host, one conditioning set after another.

    Args:
        values: float64 (n, d), in random order.
        config: of the test.
    """

    def __init__(self, values: np.ndarray, config: HSIC | RCIT) -> None:
        self._values = values
        options = _of_regressions(config)
        self._rank = options["rank"]
        self._regressions = Regressions(values, **options)
        self.n_residuals = 0

    @property
    def n_factorisations(self) -> int:
        """How often a Gram matrix of all rows was factorised."""
        return self._regressions.n_factorisations

    def of(
        self, sets: dict[tuple[int, ...], list[int]]
    ) -> Iterator[tuple[list[Target], jax.Array, list[int]]]:
        """Targets, an array of rows, and the rows of it that are theirs."""
        # A set is a chain of small problems: one core each, several sets at once.  With many rows
        # one set fills the machine, and its memory.
        factor = 8 * len(self._values) * self._rank
        threads = max(1, min(n_threads(), _AT_ONCE_BYTES // factor))
        # A thread has settings of JAX of its own: it is told the device of the one that asks.
        (device,) = jax.device_put(0.0).devices()

        def left(item: tuple[tuple[int, ...], list[int]]) -> tuple[list[Target], np.ndarray]:
            with jax.default_device(device):
                return self._left(item)

        for targets, columns in in_order(left, sets.items(), threads=threads):
            given = targets[0][1]
            if given:
                self.n_residuals += len(targets)
                if self._regressions.nbytes > _CACHE_BYTES:
                    self._regressions.keep(given)
            size = columns_at_once()
            for start in range(0, len(targets), size):
                part = targets[start : start + size]
                rows = np.zeros((size, len(columns)))
                rows[: len(part)] = columns.T[start : start + size]
                yield part, jax.device_put(rows), list(range(len(part)))

    def _left(self, item: tuple[tuple[int, ...], list[int]]) -> tuple[list[Target], np.ndarray]:
        """The targets of a set, and what is left of each: (n, t)."""
        given, targets = item
        if given:
            columns = self._regressions.coordinates(tuple(targets), "target")
            columns = self._regressions.standardised_residuals(given, columns)
        else:
            columns = standardised(self._values[:, targets])
        return [(v, given) for v in targets], columns


class _Columns(PreparedTest):
    """Numeric columns in random order, with the caches.

    Args:
        n: the number of rows.
        config: of the test.
        first_shift: of the null.
        orders: of the null.
        pool: what answers.
        residuals: what counts the work.
    """

    def __init__(
        self,
        n: int,
        config: HSIC | RCIT,
        first_shift: int,
        orders: Any,
        pool: FeaturePool | BlockPool,
        residuals: _Residuals | BlockPool,
    ) -> None:
        self.n_samples = n
        self._config = config
        self._first_shift, self._orders = first_shift, orders
        self._pool, self._residuals = pool, residuals

    @property
    def work(self) -> dict[str, int]:
        return {"n_residuals": self.n_residuals, "n_factorisations": self.n_factorisations}

    @property
    def n_residuals(self) -> int:
        """Targets that were regressed."""
        return self._residuals.n_residuals

    @property
    def n_factorisations(self) -> int:
        """Conditioning sets that were factorised."""
        return self._residuals.n_factorisations

    def admissible(self, query: Query) -> bool:
        if query.given and isinstance(self._config, HSIC):
            raise DomainError(
                "HSIC is an unconditional test; use RCIT for conditioning sets, or set max_level=0"
            )
        return True

    def bucket(self, query: Query) -> int:
        return len(query.given)

    def batch_size(self, bucket: int) -> int:
        return 1 << 16

    def evaluate(self, bucket: int, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        n_permutations = self._config.n_permutations
        rank = math.floor(alpha * (n_permutations + 1) + 1e-9)
        if rank < 1:
            raise OptionError(
                f"alpha = {alpha!r} is below 1 / (n_permutations + 1): no p-value can reach it; "
                "use more permutations"
            )
        observed, as_large, critical = self._pool.ask(
            queries,
            first=self._first_shift,
            rank=rank,
            count=n_permutations + 1,
            orders=self._orders,
        ).T
        # Equal statistics (few levels) differ in their last digits, and no processor's rounding may
        # decide: what is as large but for these counts as large.  That is valid at every level, as
        # every rule of the form T_s >= T_0 - t is.
        pvalue = (1 + as_large) / (n_permutations + 1)
        margin = np.sqrt(np.maximum(observed, 0)) - np.sqrt(np.maximum(critical, 0))
        # Where T_0 ties with the critical value it is not above it; a constant residual has 0
        # against 0.
        margin = np.where(pvalue <= alpha, margin, np.minimum(margin, 0))
        return Evaluation(observed, np.log(pvalue), margin)


def _prepare(data: Rows | None, config: HSIC | RCIT, key: jax.Array | None) -> _Columns:
    data = require_columns(data, config.name)
    for name in data.names:
        if isinstance(data.domain[name], Categorical):
            raise DomainError(
                f"{config.name} needs numbers, but {name!r} is categorical; use KCI, which "
                "takes all kinds of columns, or ChiSquare where all are discrete"
            )
    n = data.n_samples
    if n < 4:
        raise DomainError(f"{config.name} needs at least 4 rows, and there are {n}; use more data")
    if key is None:
        raise OptionError(
            f"key = None: {config.name} draws permutations; give a typed key such as "
            "jax.random.key(0)"
        )
    order_key, shift_key = jax.random.split(key)
    first_shift = hsic.draw_first_shift(shift_key, config.n_permutations)
    count = config.n_permutations + 1
    orders = hsic.draw_orders(jax.random.fold_in(shift_key, 1), n, first=first_shift, count=count)
    kernel = features.fourier_kernel(
        length=2 * units.CLIP, bandwidth=config.bandwidth, tolerance=_TOLERANCE
    )
    options: dict[str, Any] = {"dtype": config.dtype, "ties": _TIES[config.dtype]}
    if isinstance(data, Shards) and orders is None:
        blocks = data.in_blocks(edge=edge_of(count))
        regressions = BlockRegressions(
            blocks, data.numbers_in(hsic.row_order(n, order_key)), **_of_regressions(config)
        )
        shared = BlockPool(regressions, blocks, kernel, **options)
        return _Columns(n, config, first_shift, None, shared, shared)
    values = np.column_stack([data.column(name).astype(np.float64) for name in data.names])
    residuals = _Residuals(hsic.shuffled_rows(values, order_key), config)
    pool = FeaturePool(residuals, n, kernel, **options)
    return _Columns(n, config, first_shift, orders, pool, residuals)


def _of_regressions(config: HSIC | RCIT) -> dict[str, Any]:
    return {
        "rank": getattr(config, "rank", 1),
        "bandwidth": getattr(config, "ridge_bandwidth", 1.0),
    }


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

    assumes = "nothing: exact by permutation, without conditioning"
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

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        return _prepare(data, self, key)


@dataclass(frozen=True)
class RCIT(CITest):
    r"""Residual conditional independence test: HSIC of the kernel ridge residuals of x and y on Z.

    Statistic, p-value and margin are those of :class:`HSIC`, for the residuals; for empty Z those
    of the columns themselves.  Columns: numeric, or ordinal by their level codes.  Sensitivity:
    none is stated, so that a private run refuses the test.

    It assumes that x or y is f(Z) + g(Z) e with a law of e that does not depend on Z, and that f
    and g are learned: smooth functions, or with a few jumps at thresholds of Z or waves along a
    column of it (weekdays of a date).  Else residuals
    share what Z does to the shape of their law, and true nulls are rejected: for Cauchy errors,
    where the skewness depends on Z, and nearly always where x and y both have two levels.
    :class:`KCI` needs no such assumption, at about twice the time.

    Args:
        n_permutations: k, a whole number from 1.
        bandwidth: of the residuals' kernel, positive, in units of IQR / 1.349.
        rank: of the pivoted Cholesky factor of the Gram matrix of Z, a whole number from 1.
        ridge_bandwidth: a factor of the bandwidths among which is chosen, positive.
        dtype: of the features, ``"float32"`` or ``"float64"``; the regression is in float64.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Zhang et al. 2023 for the test (there with lambda = 1); An, Liu, Venkatesh 2007 for the
        leave-one-out penalty; :mod:`jaxcd.citests.regressions` for the choice.

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

    assumes = "x or y is f(Z) + g(Z) e, with a law of e that does not depend on Z"
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

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        return _prepare(data, self, key)
