"""What all tests on discrete columns share: size buckets and padded tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query
from jaxcd.data import Domain
from jaxcd.data.rows import Counted, Rows
from jaxcd.errors import DomainError

__all__ = [
    "MAX_CELLS",
    "CountingTest",
    "DiscreteTest",
    "PreparedTables",
    "TableShape",
    "discrete_cardinalities",
]

# Queries whose table has more cells are not evaluated (public: from the declared levels): their
# cells would hold well under one record each for most n in reach.
MAX_CELLS = 1 << 18
# Tables are padded to the widest column's levels, so that one compiled statistic serves all pairs,
# unless that makes a single table larger than this; then x and y are padded to the next power of 2.
_PADDED_ENTRIES = 1 << 18
# Target number of table entries in one call of a statistic.
_BATCH_ENTRIES = 1 << 14


def discrete_cardinalities(data: Rows, test: str, cure: str) -> tuple[int, ...]:
    """The number of levels of each column; raises DomainError, naming the first numeric column."""
    cardinalities = []
    for name, cardinality in zip(data.names, data.domain.cardinalities, strict=True):
        if cardinality is None:
            raise DomainError(f"{test} needs discrete columns, but {name!r} is numeric; {cure}")
        cardinalities.append(cardinality)
    return tuple(cardinalities)


class TableShape(NamedTuple):
    """The bucket of a query: size of the conditioning set, and the shape of its table: strata
    (rounded up to a power of 4), levels of x and of y (rounded up)."""

    n_given: int
    n_strata: int
    n_rows: int
    n_columns: int


class DiscreteTest(CITest):
    """A test on tables of the data's own columns."""

    def view_cardinalities(self, domain: Domain) -> tuple[int, ...] | None:
        if not domain.is_discrete:
            return None
        return tuple(int(k) for k in domain.cardinalities if k is not None)


StatisticOfTables = Callable[[np.ndarray, float], Evaluation]


class CountingTest(PreparedTest):
    """A test that counts the stratified contingency tables of its queries; a subclass makes its
    evidence of them.

    One compiled counting routine for each size of the conditioning set.
    """

    def __init__(
        self, rows: Counted, cardinalities: Sequence[int], *, n_viewed: int | None = None
    ) -> None:
        """rows: of the columns with these cardinalities.  n_viewed: the first so many columns can
        be x and y (and are the view); default all.
        """
        self.n_samples = rows.n_samples
        self._rows = rows
        self._cardinalities = tuple(int(c) for c in cardinalities)
        self._n_viewed = len(self._cardinalities) if n_viewed is None else n_viewed
        self._width = max(self._cardinalities[: self._n_viewed])

    def _n_strata(self, given: tuple[int, ...]) -> int:
        return math.prod(self._cardinalities[v] for v in given)

    def admissible(self, query: Query) -> bool:
        return self._n_strata((query.x, query.y, *query.given)) <= MAX_CELLS

    def bucket(self, query: Query) -> TableShape:
        n_strata = self._n_strata(query.given)
        padded = 4 ** math.ceil(math.log(n_strata, 4) - 1e-9)
        if padded * self._width**2 <= _PADDED_ENTRIES:
            return TableShape(len(query.given), padded, self._width, self._width)
        rows, columns = (1 << (self._cardinalities[v] - 1).bit_length() for v in (query.x, query.y))
        return TableShape(len(query.given), padded, rows, columns)

    def batch_size(self, bucket: TableShape) -> int:
        entries = bucket.n_strata * bucket.n_rows * bucket.n_columns
        return 1 << max(0, (_BATCH_ENTRIES // entries).bit_length() - 1)

    def tables(self, bucket: TableShape, queries: Sequence[Query]) -> np.ndarray:
        """Counts, int32 (batch_size, *shape), zero where padded."""
        variables = np.array([(q.x, q.y, *q.given) for q in queries], dtype=np.int64)
        shape = (bucket.n_strata, bucket.n_rows, bucket.n_columns)
        tables = np.zeros((self.batch_size(bucket), *shape), dtype=np.int32)
        tables[: len(queries)] = self._rows.tables(variables, shape)
        return tables

    def view_counts(self, sets: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        return self._rows.counts(sets)


class PreparedTables(CountingTest):
    """A test whose statistic is a function of the stratified contingency table; one compiled
    statistic for each number of strata.
    """

    def __init__(
        self,
        rows: Counted,
        cardinalities: Sequence[int],
        statistic: StatisticOfTables,
        *,
        n_viewed: int | None = None,
    ) -> None:
        """statistic: of a stack of tables and a level.  The rest as for :class:`CountingTest`."""
        super().__init__(rows, cardinalities, n_viewed=n_viewed)
        self._statistic = statistic

    def evaluate(self, bucket: TableShape, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        result = self._statistic(self.tables(bucket, queries), alpha)
        return Evaluation(*(np.asarray(part)[: len(queries)] for part in result))

    def pooled_covariances(self, queries: Sequence[Query]) -> list[np.ndarray]:
        result = []
        for query in queries:
            counts = self.tables(self.bucket(query), [query])[0].astype(np.float64)
            sizes = np.maximum(counts.sum(axis=(1, 2)), 1)
            expected = np.einsum(
                "ki,kj->ij", counts.sum(axis=2) / sizes[:, None], counts.sum(axis=1)
            )
            whole = counts.sum(axis=0) - expected
            result.append(whole[: self._cardinalities[query.x], : self._cardinalities[query.y]])
        return result

    def restrict(self, rows: np.ndarray) -> PreparedTables:
        return PreparedTables(
            self._rows.where(rows), self._cardinalities, self._statistic, n_viewed=self._n_viewed
        )
