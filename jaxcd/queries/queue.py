"""From any list of queries to a few padded, compiled calls.

Queries are brought to their normal form, looked up in the cache, grouped by the test's bucket
(equal shapes), cut into batches of the bucket's size, evaluated, and put back in the order in which
they were asked.  A batch is padded to the bucket's size, so the number of compiled routines is at
most the number of buckets.  Since each query's answer is computed from its own padded row, answers
do not depend on what else is in the batch: batched, one by one, shuffled and padded agree exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from jaxcd.citests import Evaluation, PreparedTest, Query

__all__ = ["Queue"]


class Queue:
    """Evaluates queries against one prepared test at one alpha; remembers every answer.

    Args:
        prepared: the test, with the data it has looked at.
        alpha: its level.
    """

    def __init__(self, prepared: PreparedTest, *, alpha: float) -> None:
        self._prepared = prepared
        self._alpha = alpha
        self._known: dict[Query, tuple[float, float, float]] = {}
        self.n_evaluated = 0
        self.n_batches = 0
        self.buckets: set[Hashable] = set()

    def evaluate(self, queries: Sequence[Query]) -> Evaluation:
        """The answers in the order of the queries; float64 arrays of their length."""
        self._fill(queries)
        rows = np.array([self._known[query] for query in queries], dtype=np.float64).reshape(
            len(queries), 3
        )
        return Evaluation(rows[:, 0], rows[:, 1], rows[:, 2])

    def _fill(self, queries: Iterable[Query]) -> None:
        waiting: defaultdict[Hashable, list[Query]] = defaultdict(list)
        for query in dict.fromkeys(queries):
            if query not in self._known:
                waiting[self._prepared.bucket(query)].append(query)
        for bucket, members in waiting.items():
            self.buckets.add(bucket)
            size = self._prepared.batch_size(bucket)
            for start in range(0, len(members), size):
                batch = members[start : start + size]
                answers = self._prepared.evaluate(bucket, batch, alpha=self._alpha)
                for query, row in zip(batch, np.column_stack(answers).tolist(), strict=True):
                    self._known[query] = tuple(row)
                self.n_evaluated += len(batch)
                self.n_batches += 1
