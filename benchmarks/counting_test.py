"""A test that counts the table cells it is asked for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from jaxcd import Dataset
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query

__all__ = ["CountedTest"]


class CountedTest(CITest):
    """A test on discrete columns, wrapped; ``n_cells`` grows with every query that is evaluated."""

    def __init__(self, test: CITest) -> None:
        self._test = test
        self.n_cells = 0

    @property
    def name(self) -> str:
        return self._test.name

    def prepare(self, data: Dataset | None, *, key: jax.Array | None = None) -> PreparedTest:
        assert data is not None
        return _Counted(self, self._test.prepare(data, key=key), data.domain.cardinalities)


class _Counted(PreparedTest):
    def __init__(
        self, counter: CountedTest, prepared: PreparedTest, cardinalities: Sequence[int | None]
    ) -> None:
        self.n_samples = prepared.n_samples
        self._counter = counter
        self._prepared = prepared
        self._cardinalities = [c or 1 for c in cardinalities]

    def bucket(self, query: Query) -> Hashable:
        return self._prepared.bucket(query)

    def batch_size(self, bucket: Any) -> int:
        return self._prepared.batch_size(bucket)

    def admissible(self, query: Query) -> bool:
        return self._prepared.admissible(query)

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        self._counter.n_cells += sum(
            math.prod(self._cardinalities[v] for v in (q.x, q.y, *q.given)) for q in queries
        )
        return self._prepared.evaluate(bucket, queries, alpha=alpha)

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        return _Counted(self._counter, self._prepared.restrict(rows), self._cardinalities)
