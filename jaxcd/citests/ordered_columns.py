"""What the rank tests share: numeric or discrete x and y, one pass of O(n log n) a query, strata
from discrete columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import jax
import numpy as np

from jaxcd.citests.base import (
    Evaluation,
    PreparedTest,
    Query,
    Sensitivity,
    require_columns,
    require_rows,
)
from jaxcd.citests.covariance_norm import rounding_pad
from jaxcd.citests.tables import MAX_CELLS, DiscreteTest, PreparedTables, StatisticOfTables
from jaxcd.data import Domain
from jaxcd.data.rows import Rows
from jaxcd.errors import DomainError
from jaxcd.ops import tails
from jaxcd.privacy import Relation
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["SCORE_CLAIM", "OrderedTest", "PreparedColumns", "evaluation_of_score"]

_VARIANCE_FLOOR = 100.0
# Columns that are kept: where several processes hold the rows, each use of another one gathers it.
_KEPT = 8


def evaluation_of_score(score: np.ndarray, variance: np.ndarray, alpha: float) -> Evaluation:
    """z = score / sqrt(variance) (0 where the variance is), its p-value, and the margin |score| -
    z_alpha sqrt(max(variance, 100)).
    """
    critical = tails.normal_quantile(alpha / 2)
    margin = np.abs(score) - critical * np.sqrt(np.maximum(variance, _VARIANCE_FLOOR))
    z = np.where(variance > 0, score / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    return Evaluation(z, tails.normal_two_sided_log_pvalue(z), margin)


def _moves(alpha: float) -> float:
    return 2 + tails.normal_quantile(alpha / 2) / 45


SCORE_CLAIM = GuaranteeClaim(
    f"margin sensitivity 2 + z/45 records ({_moves(0.05):.3f} at alpha 0.05)"
)
"""What the tests of this score claim."""


def _refusal(test: str, column: str) -> DomainError:
    return DomainError(
        f"{test} cannot condition on the numeric column {column!r}; declare it ordinal with "
        "levels, or set max_level=0"
    )


ScoreOfColumns = Callable[[np.ndarray, np.ndarray, np.ndarray, int], tuple[float, float]]


class PreparedColumns(PreparedTest):
    """A rank test of columns: ``score(x, y, stratum, n_strata)`` gives the signed score and its
    null variance.

    Args:
        column: the column of a position, (n_samples,).
        n_samples: the number of rows.
        cardinalities: of each column, None for a numeric one.
        names: of the columns.
        test: its name.
        score: of columns.
        check_subsample: raises where no part of the rows can be taken.
    """

    def __init__(
        self,
        column: Callable[[int], np.ndarray],
        n_samples: int,
        cardinalities: Sequence[int | None],
        names: Sequence[str],
        *,
        test: str,
        score: ScoreOfColumns,
        check_subsample: Callable[[], None] = lambda: None,
    ) -> None:
        self.n_samples = n_samples
        self._column = column
        self._check_subsample = check_subsample
        self._cardinalities = tuple(cardinalities)
        self._names = tuple(names)
        self._test = test
        self._score = score

    def _n_strata(self, query: Query) -> int:
        n_strata = 1
        for v in query.given:
            cardinality = self._cardinalities[v]
            if cardinality is None:
                raise _refusal(self._test, self._names[v])
            n_strata *= cardinality
        return n_strata

    def admissible(self, query: Query) -> bool:
        return self._n_strata(query) <= MAX_CELLS

    def bucket(self, query: Query) -> Hashable:
        return "columns"

    def batch_size(self, bucket: Hashable) -> int:
        return 1

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        scores, variances = [], []
        for query in queries:
            n_strata = self._n_strata(query)
            stratum = np.zeros(self.n_samples, dtype=np.int64)
            for v in query.given:
                stratum = stratum * int(self._cardinalities[v] or 1)
                stratum += self._column(v).astype(np.int64)
            score, variance = self._score(
                self._column(query.x), self._column(query.y), stratum, n_strata
            )
            scores.append(score)
            variances.append(variance)
        return evaluation_of_score(np.array(scores), np.array(variances), alpha)

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        self._check_subsample()
        return PreparedColumns(
            lambda v: self._column(v)[rows],
            int(np.sum(rows)),
            self._cardinalities,
            self._names,
            test=self._test,
            score=self._score,
        )


class OrderedTest(DiscreteTest):
    """A rank test: counted through contingency tables where every column is discrete, through the
    columns themselves otherwise.

    Its score is one that a replaced record moves by less than 2, with a variance that it moves by
    less than 4 / 9 under sqrt(max(., 100)): the margin of :func:`evaluation_of_score` moves by at
    most 2 + z / 45.  The proof is the docstring of the test's module.
    """

    #: The evaluation of contingency tables at a level.
    _evaluate_tables: StatisticOfTables
    #: The signed score of columns x, y in strata, and its null variance.
    _score_of_columns: ScoreOfColumns

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data = require_rows(data, self.name)
        cardinalities = data.domain.cardinalities
        if all(c is not None for c in cardinalities):
            counted = [c for c in cardinalities if c is not None]
            return PreparedTables(data, counted, self._evaluate_tables)
        rows = require_columns(data, f"{self.name} of numeric columns")
        return PreparedColumns(
            lru_cache(_KEPT)(lambda v: rows.column(rows.names[v])),
            rows.n_samples,
            cardinalities,
            rows.names,
            test=self.name,
            score=self._score_of_columns,
            check_subsample=rows.check_subsample,
        )

    def check_search(self, domain: Domain | None, *, max_level: int | None) -> None:
        if domain is None or max_level == 0:
            return
        for name in domain.names:
            if not domain[name].is_discrete:
                raise _refusal(self.name, name)

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: Relation
    ) -> Sensitivity | None:
        return Sensitivity(_moves(alpha), rounding_pad(n_samples), type(self).__module__)
