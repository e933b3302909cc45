r"""Stratified pooled covariance on private ranks: the private test for nonlinear numeric data.

Each column is replaced by its rank in [0, 1] through a map that is bought once
(:mod:`jaxcd.privacy.rank_maps`) and public from then on.  Ranks are cut into k value bins, and, as
conditioning variables, into finer stratum bins (fewer for larger conditioning sets).  In each
stratum of Z both one-hot vectors are centred, which is a partitioned regression on Z with a bias of
the product of the two within-bin trends, and the covariances are pooled before the norm is taken:

    M = |sum_k C_k|_F,    q = M - sqrt(max(V + c W, (theta n)^2)),    dependent iff q > 0,

with V as in :mod:`jaxcd.citests.covariance_norm`, W = |S_x|_F |S_y|_F / n, S_x = sum_k (diag
r_k - r_k r_k^T / n_k) the pooled scatter, and theta n = max(100, effect * n) records, the smallest
effect that counts as one (it covers what the bins leave of Z).

**Sensitivity (replace-one; the maps are public).**  M: less than 4 (covariance_norm).  V: less than
3 (there).  W: |Sigma_k|_F <= 1/2 gives |S_x|_F <= n / 2; removing a record subtracts a positive
semidefinite matrix of norm below 2 from S_x, adding one adds such a matrix, and the norm of the
difference of two positive semidefinite matrices is at most sqrt(2^2 + 2^2), so |W - W'| <= 2 sqrt 2
(n / 2 + n / 2) / n = 2 sqrt 2.  The threshold is 1 / (2 theta n)-Lipschitz with theta n >= 100:
(3 + 2 sqrt 2 c) / 200.  Together **4 + (3 + 2.829 c) / 200 = 4.056** at alpha = 0.05.

Source:
    NONLINEAR.md sections 1 and 2 (4.06 there, with 2.49 for V).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxcd.checks import check_number, check_whole, hold_python_numbers
from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, Sensitivity, require_data
from jaxcd.citests.covariance_norm import critical_constant, evaluation_of_norm, rounding_pad
from jaxcd.citests.tables import PreparedTables, TableShape
from jaxcd.data import Domain, Numeric
from jaxcd.data.rows import Codes, Rows
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import association, double_precision
from jaxcd.privacy import Accountant, Relation, split
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.privacy.rank_maps import exact_rank, release_rank_maps

__all__ = ["StratifiedRanks"]

_SMALLEST_FLOOR = 100.0


def _bins(ranks: np.ndarray, n_bins: int) -> np.ndarray:
    return np.minimum((ranks * n_bins).astype(np.int32), n_bins - 1)


class _PreparedRanks(PreparedTest):
    """Tables over value bins of x and y and stratum bins of Z: each column stands once a kind of
    binning.
    """

    def __init__(
        self, tables: PreparedTables, n_columns: int, n_kinds: int, n_samples: int
    ) -> None:
        self._tables = tables
        self._n_columns = n_columns
        self._n_kinds = n_kinds
        self.n_samples = n_samples

    def _translated(self, query: Query) -> Query:
        kind = min(len(query.given), self._n_kinds)
        return Query(query.x, query.y, tuple(kind * self._n_columns + v for v in query.given))

    def admissible(self, query: Query) -> bool:
        return len(query.given) <= self._n_kinds and self._tables.admissible(
            self._translated(query)
        )

    def bucket(self, query: Query) -> TableShape:
        return self._tables.bucket(self._translated(query))

    def batch_size(self, bucket: Any) -> int:
        return self._tables.batch_size(bucket)

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        return self._tables.evaluate(
            bucket, [self._translated(query) for query in queries], alpha=alpha
        )

    def pooled_covariances(self, queries: Sequence[Query]) -> list[np.ndarray]:
        return self._tables.pooled_covariances([self._translated(query) for query in queries])

    def view_counts(self, sets: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        return self._tables.view_counts(sets)

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        return _PreparedRanks(
            self._tables.restrict(rows), self._n_columns, self._n_kinds, int(np.sum(rows))
        )


def _evaluate(tables: np.ndarray, alpha: float, floor: float) -> Evaluation:
    with double_precision():
        sums = association.covariance_sums(tables)
        norm, mean, spread = (
            np.asarray(part) for part in (sums.pooled, sums.mean, sums.spread_of_scatter)
        )
    return evaluation_of_norm(norm, mean, spread, alpha=alpha, floor=floor)


@dataclass(frozen=True)
class StratifiedRanks(CITest):
    r"""Finds nonlinear dependence between numeric columns privately, by the ranks in bins.

    Each column is cut into bins of private ranks, and the statistic M is the pooled covariance of
    :class:`PooledCovariance` on these bins within the strata of Z, in records.  Margin:

        q = M - sqrt(max(V + c W, (theta n)^2))

    P-value (of M^2 against its permutation moments): Satterthwaite's approximation, without the
    effect floor of max(100, theta n) rows: what depends by fewer is called independent, whatever
    its p-value.  Columns: numeric, or ordinal by their level codes; their scale does not matter.
    Conditioning sets have up to ``len(strata)`` columns.

    Args:
        value_bins: k, the bins of x and y, a whole number from 2.
        strata: the bins of a conditioning variable for |Z| = 1, 2, and so on, each from 2.
        effect: theta, the smallest effect that counts, as a share of the rows, from 0; at least 100
            rows are taken.
        log_range: values are clipped to +-sinh(log_range); positive and public.
        map_levels: the depth of the rank maps, 1 to 20.
        map_share: the share of the budget (in zCDP) that buys the maps, between 0 and 1.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: replace-one; n and all options are public.  Event: ``GaussianEvent`` for the rank
        maps of all columns, charged when the session opens; none for the margin, which never
        leaves the session.  Sensitivity of the margin, with the maps public: 4 + (3 + 2.829 c) /
        200 records (4.056 at alpha 0.05).  Proof: the docstring of
        :mod:`jaxcd.citests.stratified_ranks`, and :mod:`jaxcd.privacy.rank_maps`.

    Source:
        NONLINEAR.md sections 1 and 2.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).normal(size=20_000)
        >>> y = x**2 + np.random.default_rng(1).normal(size=20_000)
        >>> columns = {"x": jaxcd.Numeric(), "y": jaxcd.Numeric()}
        >>> data = jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=jaxcd.Domain(columns))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "x",
        ...     "y",
        ...     test=jaxcd.StratifiedRanks(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, answer.margin > 0
        (False, True)
    """

    assumes = "that little is left of Z within its strata"
    claim = GuaranteeClaim(
        "rank maps released under zCDP; then margin sensitivity 4 + (3 + 2.829 c) / 200 records "
        f"({4 + (3 + 2 * math.sqrt(2) * critical_constant(0.05)) / (2 * _SMALLEST_FLOOR):.4f} at "
        "alpha 0.05)",
        "jaxcd.citests.stratified_ranks, jaxcd.privacy.rank_maps",
    )

    value_bins: int = 4
    strata: tuple[int, ...] = (48, 16, 8)
    effect: float = 0.003
    log_range: float = 8.0
    map_levels: int = 11
    map_share: float = 0.1

    buys_preparation = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        for argument, value in (
            ("value_bins", self.value_bins),
            *(("strata", b) for b in self.strata),
        ):
            check_whole(argument, value, 2, cure="give a number of bins")
        if not self.strata:
            raise OptionError(
                "strata = () conditions on nothing; give a number of bins for each size of the "
                "conditioning set"
            )
        check_number("effect", self.effect, 0, cure="give a small number, such as 0.003")
        check_number("log_range", self.log_range, 0, ends="(]", cure="8 covers +-1490")
        check_whole("map_levels", self.map_levels, 1, 20, cure="11 is usual")
        check_number("map_share", self.map_share, 0, 1, "()", cure="give a share, such as 0.1")

    def _columns(self, data: Rows | None) -> list[np.ndarray]:
        data = require_data(data, self.name)
        for name in data.names:
            column = data.domain[name]
            if not isinstance(column, Numeric) and column.kind == "categorical":
                raise DomainError(
                    f"{self.name} needs numbers, but {name!r} is categorical; use CovarianceNorm, "
                    "or leave it out (data.select)"
                )
        return [data.column(name).astype(np.float64) for name in data.names]

    def _prepared(self, ranks: list[np.ndarray]) -> PreparedTest:
        kinds = (self.value_bins, *self.strata)
        codes = np.column_stack([_bins(rank, n_bins) for n_bins in kinds for rank in ranks])
        cardinalities = [n_bins for n_bins in kinds for _ in ranks]
        n_samples = len(ranks[0])
        floor = max(_SMALLEST_FLOOR, self.effect * n_samples)
        tables = PreparedTables(
            Codes(codes, cardinalities),
            cardinalities,
            lambda t, a: _evaluate(t, a, floor),
            n_viewed=len(ranks),
        )
        return _PreparedRanks(tables, len(ranks), len(self.strata), n_samples)

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        return self._prepared([exact_rank(column) for column in self._columns(data)])

    def prepare_privately(
        self, data: Rows | None, accountant: Accountant, *, key: jax.Array | None = None
    ) -> PreparedTest:
        columns = self._columns(data)
        if not accountant.ledger.remaining_rho > 0:
            raise OptionError(
                f"budget: {self.name} releases rank maps with Gaussian noise and needs delta > 0, "
                "such as 1e-6"
            )
        rho, _ = split(accountant.ledger.remaining_rho, [self.map_share, 1 - self.map_share])
        maps = release_rank_maps(
            columns, accountant, rho=rho, log_range=self.log_range, n_levels=self.map_levels
        )
        return self._prepared([maps.rank(v, column) for v, column in enumerate(columns)])

    def view_cardinalities(self, domain: Domain) -> tuple[int, ...] | None:
        return (self.value_bins,) * domain.n_columns

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: Relation
    ) -> Sensitivity | None:
        floor = max(_SMALLEST_FLOOR, self.effect * n_samples)
        value = 4 + (3 + 2 * math.sqrt(2) * critical_constant(alpha)) / (2 * floor)
        return Sensitivity(value, rounding_pad(n_samples), "jaxcd.citests.stratified_ranks")
