"""The session: a test on the rows of a run."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

import jax
import numpy as np

from jaxcd.citests import (
    CITest,
    Evaluation,
    PreparedPermutationTest,
    PreparedTest,
    Query,
    Sensitivity,
)
from jaxcd.data import Domain
from jaxcd.errors import DomainError, OptionError, PrivacyError, SensitivityError
from jaxcd.privacy import Accountant, NoiseSource, Sensitive
from jaxcd.queries.door import Door
from jaxcd.queries.queue import Queue

__all__ = ["Session", "Subsample"]


class Subsample:
    """A test on a part of the rows, behind the same door: margins come out sensitive.

    Args:
        queue: of the test on the part.
        private: whether the run is private.
    """

    def __init__(self, queue: Queue, *, private: bool) -> None:
        self._queue, self._private = queue, private

    def margins(self, queries: Sequence[Query]) -> Sensitive:
        """Margins of the queries on these rows, float64 (n_queries,)."""
        return Sensitive(self._queue.evaluate(queries).margin, open_to_all=not self._private)

    def evaluate(self, queries: Sequence[Query]) -> Evaluation:
        """Statistics, log p-values and margins in plain numbers, for runs without privacy;
        PrivacyError in a private run.
        """
        if self._private:
            raise PrivacyError(
                "statistics of a private run are released by mechanisms only; use "
                "budget=NO_PRIVACY to see them"
            )
        return self._queue.evaluate(queries)


class Session:
    """A data set behind a test: queries go in, sensitive numbers come out.

    Everything a decider learns about the data comes from here, wrapped as :class:`Sensitive`.  What
    is public (names, the number of rows, declared levels, the sensitivity) is plain.

    Args:
        door: the data of the run.
        test: the CI test.
        alpha: the level of the margins.
        key: for tests that draw permutations.

    Raises:
        OptionError: a test that the data does not answer.
    """

    def __init__(
        self, door: Door, test: CITest, *, alpha: float, key: jax.Array | None = None
    ) -> None:
        self.test = test
        self.alpha = alpha
        self._door = door
        self._key = key
        self.names = door.names(test)
        self.n_variables = len(self.names)
        self.n_samples = door.n_samples
        self.snapshot = door.snapshot
        self.private = door.private
        self.relation = door.relation
        self._opened: tuple[PreparedTest, Queue] | None = None
        if not (door.private and test.buys_preparation):
            self.open(None)

    def open(self, accountant: Accountant | None) -> None:
        """Lets a test that buys its preparation pay for it; the others need no opening.

        Raises:
            BudgetExhausted: it does not fit.
        """
        if self._opened is None:
            prepared = self._door.prepare(self.test, key=self._key, accountant=accountant)
            self._opened = prepared, Queue(prepared, alpha=self.alpha)

    @property
    def _prepared(self) -> PreparedTest:
        if self._opened is None:
            raise PrivacyError(
                f"session: {self.test.name} must be opened with an accountant before its first "
                "query"
            )
        return self._opened[0]

    @property
    def _queue(self) -> Queue:
        return (
            self._opened[1] if self._opened is not None else Queue(self._prepared, alpha=self.alpha)
        )

    def noise(self, source: NoiseSource | None) -> NoiseSource | None:
        """The noise of a run on these rows (:meth:`jaxcd.queries.Door.noise`)."""
        return self._door.noise(source)

    @property
    def domain(self) -> Domain | None:
        """The declared domain (None with an Oracle)."""
        return self._door.domain if self._door.has_rows else None

    @property
    def n_evaluated(self) -> int:
        """Number of different queries evaluated so far on the full data; in a private run this is
        sensitive.
        """
        return self._queue.n_evaluated

    @property
    def n_batches(self) -> int:
        """Number of calls of the test; in a private run this is sensitive."""
        return self._queue.n_batches

    @property
    def work(self) -> Mapping[str, int]:
        """Counts of tests, batches and of the test's own work so far; in a private run they are
        sensitive.
        """
        return {"n_tests": self.n_evaluated, "n_batches": self.n_batches, **self._prepared.work}

    def sensitivity(self, n_samples: int | None = None) -> Sensitivity:
        """The sensitivity of a margin computed on ``n_samples`` rows (default: all of them).

        Raises:
            SensitivityError: the test has no proved bound.
        """
        bound = self.test.margin_sensitivity(
            alpha=self.alpha, n_samples=n_samples or self.n_samples, relation=self.relation
        )
        if bound is None:
            raise SensitivityError(
                f"test: {self.test.name} has no bounded sensitivity under {self.relation.value} "
                "neighbours, so no mechanism "
                "can make it private; use CovarianceNorm (nominal columns) or KendallTau (ordinal "
                "columns)"
            )
        return bound

    def admissible(self, query: Query) -> bool:
        """Whether the query can be evaluated (public); a pair is never separated by a set that
        cannot.
        """
        return self._prepared.admissible(query)

    def conditioning_sets(self, x: int, y: int) -> Collection[tuple[int, ...]] | None:
        """The sets given which x and y can be tested, where these are few (public); else None."""
        return self._prepared.conditioning_sets(x, y)

    @property
    def apart(self) -> frozenset[tuple[int, int]]:
        """Pairs (x < y) that are not joined and never asked (public)."""
        return self._opened[0].apart if self._opened is not None else frozenset()

    @property
    def constants(self) -> frozenset[int]:
        """Columns of one declared level (public), which depend on nothing, whatever noise says."""
        domain = self.domain
        found = () if domain is None else domain.cardinalities
        return frozenset(column for column, n_levels in enumerate(found) if n_levels == 1)

    def margins(self, queries: Sequence[Query]) -> Sensitive:
        """Margins of the queries, float64 (n_queries,); positive means dependent."""
        return self._door.wrapped(self._queue.evaluate(queries).margin)

    def buy(self, query: Query, accountant: Accountant, *, epsilon: float) -> Evaluation:
        """The answer to one query as the test releases it itself, in plain numbers: for tests with
        ``buys_answers``.
        """
        return self._prepared.buy(query, accountant, epsilon=epsilon, alpha=self.alpha)

    def projections(self, queries: Sequence[Query], directions: Sequence[np.ndarray]) -> Sensitive:
        """<U, C> in records, float64 (n_queries,): C the covariance of the codes of x and y within
        the strata, U (k_x, k_y).
        """
        covariances = self._prepared.pooled_covariances(queries)
        return self._door.wrapped(
            np.array(
                [np.sum(u * c) for u, c in zip(directions, covariances, strict=True)],
                dtype=np.float64,
            )
        )

    def permuted_statistics(self, queries: Sequence[Query]) -> Sensitive:
        """The statistic and its k permuted versions, in the margin's units, float64 (n_queries,
        1 + k).

        Raises:
            OptionError: the test has no permutation null.
        """
        prepared = self._prepared
        if not isinstance(prepared, PreparedPermutationTest):
            raise OptionError(f"test: {self.test.name} has no permutation null; use BoundedRCIT")
        places: dict[Hashable, list[int]] = {}
        for place, query in enumerate(queries):
            places.setdefault(prepared.bucket(query), []).append(place)
        rows: list[np.ndarray] = [np.empty(0)] * len(queries)
        for bucket, members in places.items():
            size = prepared.batch_size(bucket)
            for batch in (members[start : start + size] for start in range(0, len(members), size)):
                answers = prepared.permuted_statistics(bucket, [queries[i] for i in batch])
                for i, row in zip(batch, answers, strict=True):
                    rows[i] = row
        return self._door.wrapped(np.array(rows))

    def evaluate(self, queries: Sequence[Query]) -> Evaluation:
        """Statistics, log p-values and margins in plain numbers, for runs without privacy.

        Raises:
            PrivacyError: in a private run.
        """
        if self.private:
            raise PrivacyError(
                "statistics of a private run are released by mechanisms only; use "
                "budget=NO_PRIVACY to see them"
            )
        return self._queue.evaluate(queries)

    def restrict(self, rows: np.ndarray) -> Subsample:
        """The test on the rows of a mask, bool (n_samples,): for subsampled mechanisms."""
        return Subsample(
            Queue(self._prepared.restrict(rows), alpha=self.alpha), private=self.private
        )

    @property
    def view_cardinalities(self) -> tuple[int, ...]:
        """Number of codes of each column of the test's discrete view (public).

        Raises:
            DomainError: the test has none.
        """
        domain = self.domain
        cardinalities = None if domain is None else self.test.view_cardinalities(domain)
        if cardinalities is None:
            raise DomainError(
                f"test: {self.test.name} has no discrete view of these columns, which this "
                "mechanism releases; declare the "
                "columns categorical or ordinal, or use SparseVector"
            )
        return cardinalities

    def view_counts(self, sets: Sequence[tuple[int, ...]]) -> Sensitive:
        """Joint counts of sets of columns of the test's discrete view: a list of int64 arrays."""
        return self._door.wrapped(self._prepared.view_counts(sets))
