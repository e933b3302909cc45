"""Any test on the rows in which no queried column is missing.

A query (x, y, Z) is asked of the rows that know x, y and all of Z, in a domain where nothing can be
missing: it is the test itself on those rows, whatever the test is.  Queries that involve the same
columns with missing cells share their rows and their preparation.

Under independence given Z it keeps its level where it does not depend on x or y, given Z, whether a
cell is missing: in particular where cells are missing completely at random, or by a column of Z.

Where too few rows know the columns of a query, nothing speaks for an independence: the set Z
separates nothing.  A pair that too few rows know together is not joined either, and no set is known
to separate it.

Source:
    Tu, Zhang, Ackermann, Mohan, Kjellstroem, Zhang 2019, for what such tests find.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import NoReturn

import jax
import numpy as np

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query
from jaxcd.data import Dataset
from jaxcd.errors import DataError, DomainError, OptionError

__all__ = ["PreparedAvailableCases"]

_MOST_PREPARED = 64  # preparations that are kept
_TOGETHER = 64
_ENOUGH = 16  # rows that every test takes
_FEWEST = 2  # rows of which a dependence can be seen
_ONE_TABLE = (
    'missing="ignore": each question leaves out the rows that it does not know, and this search '
    'asks all of them of the same rows; use missing="level", or a search that asks one by one, '
    "such as pc with SparseVector"
)


class PreparedAvailableCases(PreparedTest):
    """A test that is prepared for each set of columns with missing cells that queries involve.

    Not private: which rows are complete is data.

    Args:
        test: the test.
        data: whose missing cells are left out.
        key: of the test.

    Raises:
        DomainError: the test does not apply to the columns.
    """

    def __init__(self, test: CITest, data: Dataset, *, key: jax.Array | None) -> None:
        self.n_samples = data.n_samples
        self._test, self._data, self._key = test, data, key
        self._names = test.column_names(data)
        self._complete = tuple(name for name in self._names if not data.is_missing(name).any())
        self._prepared: dict[frozenset[str], tuple[tuple[str, ...], PreparedTest] | None] = {}
        test.prepare(data, key=key)  # refuses columns that it does not take

    def _of(self, missing: frozenset[str]) -> tuple[tuple[str, ...], PreparedTest] | None:
        """The columns that the rows which know ``missing`` know, and the test on those rows; None
        where these are too few for it.
        """
        if missing not in self._prepared:
            known = {*self._complete, *missing}
            names = tuple(name for name in self._names if name in known)
            while len(self._prepared) >= _MOST_PREPARED:
                self._prepared.pop(next(iter(self._prepared)))
            try:
                rows = self._data.complete_cases(names)
                is_told = rows.n_samples >= _FEWEST
                self._prepared[missing] = (
                    (names, self._test.prepare(rows, key=self._key)) if is_told else None
                )
            except (DataError, DomainError):  # of all rows it takes the columns
                self._prepared[missing] = None
        return self._prepared[missing]

    def _missing_in(self, query: Query) -> frozenset[str]:
        asked = {self._names[place] for place in (query.x, query.y, *query.given)}
        return frozenset(asked.difference(self._complete))

    def _placed(self, query: Query, names: tuple[str, ...]) -> Query:
        place = {name: j for j, name in enumerate(names)}
        x, y, *given = (place[self._names[v]] for v in (query.x, query.y, *query.given))
        return Query(x, y, tuple(sorted(given)))

    def bucket(self, query: Query) -> Hashable:
        return self._missing_in(query)

    def batch_size(self, bucket: Hashable) -> int:
        return _TOGETHER

    def admissible(self, query: Query) -> bool:
        found = self._of(self._missing_in(query))
        return found is not None and found[1].admissible(self._placed(query, found[0]))

    @cached_property
    def apart(self) -> frozenset[tuple[int, int]]:
        """Pairs (x < y) that too few rows know together."""
        known = ~np.column_stack([self._data.is_missing(name) for name in self._names])
        together = known.T.astype(np.float32) @ known.astype(np.float32)  # exact up to 2^24
        few = np.argwhere(np.triu(together < _ENOUGH, k=1)).tolist()
        return frozenset(
            (x, y) for x, y in few if together[x, y] < _FEWEST or not self.admissible(Query(x, y))
        )

    def evaluate(
        self, bucket: frozenset[str], queries: Sequence[Query], *, alpha: float
    ) -> Evaluation:
        found = self._of(bucket)
        assert found is not None  # otherwise it is not admissible
        names, prepared = found
        placed = [self._placed(query, names) for query in queries]
        groups: dict[Hashable, list[int]] = {}
        for i, query in enumerate(placed):
            groups.setdefault(prepared.bucket(query), []).append(i)
        parts = [np.empty(len(queries)) for _ in Evaluation._fields]
        for inner, members in groups.items():
            size = prepared.batch_size(inner)
            for batch in (members[start : start + size] for start in range(0, len(members), size)):
                answers = prepared.evaluate(inner, [placed[i] for i in batch], alpha=alpha)
                for part, values in zip(parts, answers, strict=True):
                    part[batch] = values
        return Evaluation(*parts)

    def view_counts(self, sets: Sequence[tuple[int, ...]]) -> NoReturn:
        raise OptionError(_ONE_TABLE)

    def pooled_covariances(self, queries: Sequence[Query]) -> NoReturn:
        raise OptionError(_ONE_TABLE)

    def restrict(self, rows: np.ndarray) -> NoReturn:
        raise OptionError(_ONE_TABLE)
