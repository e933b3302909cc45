"""The session: the only door to the data."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from jaxcd.citests import CITest, Evaluation, Query, Sensitivity
from jaxcd.data import Dataset
from jaxcd.errors import PrivacyError, SensitivityError
from jaxcd.privacy import NO_PRIVACY, Budget, NoPrivacy, Relation
from jaxcd.queries.queue import Queue
from jaxcd.queries.sensitive import Sensitive

__all__ = ["Session"]


class Session:
    """A data set behind a test: queries go in, sensitive numbers come out.

    Everything a decider learns about the data comes from here, wrapped as :class:`Sensitive`.  What is public (names, the
    number of rows, declared levels, the sensitivity) is plain.

    data: a Dataset, or None for an Oracle.  test: the CI test.  alpha: the level of the margins.  budget: only its kind and
    relation matter here; under a Budget the domain must be declared.  key: for tests that draw permutations.

    Raises PrivacyError for a private run on an inferred domain.
    """

    def __init__(self, data: Dataset | None, test: CITest, *, alpha: float, budget: Budget | NoPrivacy, key: jax.Array | None = None) -> None:
        self.test = test
        self.alpha = alpha
        self.names = test.column_names(data)
        self.n_variables = len(self.names)
        self.private = budget is not NO_PRIVACY
        self.relation = budget.relation if isinstance(budget, Budget) else Relation.REPLACE_ONE
        if self.private and data is not None and not data.domain.declared:
            raise PrivacyError(
                "domain: the levels and bounds were inferred from the data, which voids any guarantee; declare them "
                "(a Domain, or a domain file) before a private run, or use budget=NO_PRIVACY"
            )
        self._data = data
        self._prepared = test.prepare(data, key=key)
        self._queue = Queue(self._prepared, alpha=alpha)
        self.n_samples = self._prepared.n_samples

    @property
    def domain(self):
        """The declared domain (None with an Oracle)."""
        return None if self._data is None else self._data.domain

    @property
    def n_evaluated(self) -> int:
        """Number of different queries evaluated so far on the full data; in a private run this is sensitive."""
        return self._queue.n_evaluated

    @property
    def n_batches(self) -> int:
        """Number of calls of the test; in a private run this is sensitive."""
        return self._queue.n_batches

    def sensitivity(self, n_samples: int | None = None) -> Sensitivity:
        """The sensitivity of a margin computed on ``n_samples`` rows (default: all of them).

        Raises SensitivityError where the test has no proved bound.
        """
        bound = self.test.margin_sensitivity(
            alpha=self.alpha, n_samples=n_samples or self.n_samples, relation=self.relation
        )
        if bound is None:
            raise SensitivityError(
                f"test: {self.test.name} has no bounded sensitivity under {self.relation.value} neighbours, so no mechanism "
                "can make it private; use CovarianceNorm (nominal columns) or KendallTau (ordinal columns)"
            )
        return bound

    def admissible(self, query: Query) -> bool:
        """Whether the query can be evaluated (public); a pair is never separated by a set that cannot."""
        return self._prepared.admissible(query)

    def margins(self, queries: Sequence[Query]) -> Sensitive:
        """Margins of the queries, float64 (n_queries,); positive means dependent."""
        return Sensitive(self._queue.evaluate(queries).margin)

    def evaluate(self, queries: Sequence[Query]) -> Evaluation:
        """Statistics, log p-values and margins in plain numbers, for runs without privacy.

        Raises PrivacyError in a private run.
        """
        if self.private:
            raise PrivacyError("statistics of a private run are released by mechanisms only; use budget=NO_PRIVACY to see them")
        return self._queue.evaluate(queries)

    def restrict(self, rows: np.ndarray) -> Queue:
        """A queue over the rows of a mask, bool (n_samples,): for subsampled mechanisms; its answers are sensitive."""
        return Queue(self._prepared.restrict(rows), alpha=self.alpha)

    def codes(self) -> Sensitive:
        """Level codes, int32 (n_samples, n_variables), for releases of whole tables.

        Raises DomainError where a column is numeric.
        """
        if self._data is None:
            raise PrivacyError("an Oracle holds no data to release")
        return Sensitive(self._data.codes)
