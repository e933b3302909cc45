"""What a conditional independence test is: configuration, and two steps.

A :class:`CITest` is frozen configuration.  ``prepare`` looks at the data once and returns a
:class:`PreparedTest`, which evaluates batches of queries.  The *margin* of a query is the statistic
minus its critical value, on the statistic's own scale: positive means "dependent".  Mechanisms add
noise to margins, never to p-values: a p-value is flat where it matters, so a threshold on it needs
4 to 280 times the noise (PRIVACY.md B5).
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from jaxcd.checks import a_type
from jaxcd.data import Dataset, Domain
from jaxcd.data.rows import Rows
from jaxcd.data.shards import Shards
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.privacy import Accountant, Relation

__all__ = [
    "CITest",
    "Evaluation",
    "PreparedTest",
    "Query",
    "Sensitivity",
    "StatisticsSource",
    "check_alpha",
    "check_is_test",
    "require_columns",
    "require_data",
    "require_rows",
]


class Query(NamedTuple):
    """Is column x independent of column y given the columns ``given``?  Normal form: x < y,
    ``given`` ascending.

    Attributes:
        x: position of a column.
        y: position of another column.
        given: positions of the columns to condition on.

    Example:
        >>> from jaxcd.citests import Query
        >>> Query(0, 1, (2, 3)).given
        (2, 3)
    """

    x: int
    y: int
    given: tuple[int, ...] = ()

    @classmethod
    def of(cls, x: int, y: int, given: Sequence[int] = ()) -> Query:
        """The normal form of a query, so that every order of the same question is the same key."""
        return cls(min(x, y), max(x, y), tuple(sorted(given)))


class Evaluation(NamedTuple):
    """Answers to a batch of queries.

    Attributes:
        statistic: float64 (n_queries,).
        log_pvalue: float64 (n_queries,), natural logarithms.
        margin: float64 (n_queries,); above 0: dependent.
    """

    statistic: np.ndarray
    log_pvalue: np.ndarray
    margin: np.ndarray


@dataclass(frozen=True)
class Sensitivity:
    """How far one neighbouring data set can move a margin.

    Args:
        value: the proved bound for exact arithmetic, in the margin's units.
        pad: a bound on the error of the computed margin, counted twice on top of ``value`` by the
            mechanisms (section L).
        proof: where the proof stands.
    """

    value: float
    pad: float
    proof: str


class PreparedTest(abc.ABC):
    """A test that has looked at the data.  What it computes is sensitive: it stays inside the
    session.
    """

    n_samples: int

    @abc.abstractmethod
    def bucket(self, query: Query) -> Hashable:
        """Queries with equal buckets can be evaluated in one call; depends on public facts only."""

    @abc.abstractmethod
    def batch_size(self, bucket: Any) -> int:
        """The largest number of queries of this bucket in one call."""

    @abc.abstractmethod
    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        """Evaluates at most ``batch_size(bucket)`` queries of one bucket."""

    @property
    def work(self) -> Mapping[str, int]:
        """How much of what was computed so far, by name, such as n_residuals; in a private run this
        is sensitive.
        """
        return {}

    def admissible(self, query: Query) -> bool:
        """Whether the query can be evaluated at all (public: from the domain and n); others count
        as "dependent".
        """
        return True

    def conditioning_sets(self, x: int, y: int) -> Collection[tuple[int, ...]] | None:
        """All sets (sorted) given which x and y can be tested, where these are few and known
        (public); None: :meth:`admissible` says.
        """
        return None

    @property
    def apart(self) -> frozenset[tuple[int, int]]:
        """Pairs (x < y) that were not measured, because a purchase chose others, and that a search
        does not join (public).  They are never asked, and no set is known to separate them, so that
        no collider is read off them.
        """
        return frozenset()

    def view_counts(self, sets: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """Joint counts of the columns as the test sees them at level 0: for each set of columns
        int64, of the shape that ``view_cardinalities`` says.
        """
        raise DomainError(f"{type(self).__name__} has no discrete view of the data")

    def pooled_covariances(self, queries: Sequence[Query]) -> list[np.ndarray]:
        """For each query the covariance of the one-hot codes of x and y within the strata of the
        conditioning set, summed over these: sum_k (O_k - r_k c_k^T / n_k), in records, float64
        (k_x, k_y)."""
        raise DomainError(f"{type(self).__name__} has no discrete view of the data")

    def buy(
        self, query: Query, accountant: Accountant, *, epsilon: float, alpha: float
    ) -> Evaluation:
        """The answer to one query as the test releases it itself, for a ``PureEvent(epsilon)``:
        statistic, log p-value and margin (n_queries = 1) of released numbers, and so public.
        """
        raise PrivacyError(f"{type(self).__name__} releases no answers; use its margin")

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        """The same test on a subset of the rows.  rows: bool (n_samples,)."""
        raise OptionError(
            f"{type(self).__name__} cannot be restricted to a subsample; use a decider without "
            "subsampling"
        )


class CITest(abc.ABC):
    """Configuration of a conditional independence test."""

    #: What it takes for granted beside independent rows, in one line.
    assumes: ClassVar[str]

    @property
    def name(self) -> str:
        """The test's name in reports and on the command line."""
        return type(self).__name__

    @abc.abstractmethod
    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        """Looks at the data once.

        Raises DomainError, naming the column, where the test does not apply to its type, and
        OptionError where a test that draws has no key.

        Args:
            key: a typed key for tests that draw permutations; the others do not look at it.
        """

    #: Whether a prepared test can be restricted to a subsample.
    restrictable: bool = True
    # : Whether the test must release something of its own before the first query
    # (``prepare_privately``).
    buys_preparation: bool = False
    #: Whether a prepared test releases its answers itself (``PreparedTest.buy``), with the noise in
    #: the null, which keeps the level where noise on a margin would not.
    buys_answers: bool = False
    #: Whether it is right on the rows in which no queried column is missing; if not, it reads
    #: missing cells as a level whatever is asked for.
    takes_complete_cases: bool = True

    def prepare_privately(
        self, data: Rows | None, accountant: Accountant, *, key: jax.Array | None = None
    ) -> PreparedTest:
        """``prepare`` of a test that buys its preparation: charges the accountant for whatever it
        reads off the data.
        """
        raise PrivacyError(f"{self.name} buys no preparation; call prepare")

    def view_cardinalities(self, domain: Domain) -> tuple[int, ...] | None:
        """Number of codes of each column of ``PreparedTest.view_counts`` (public), or None where
        the test has no discrete view.
        """
        return None

    def check_search(self, domain: Domain | None, *, max_level: int | None) -> None:
        """Raises where a search with conditioning sets of up to ``max_level`` columns would come
        upon a query that the test cannot answer: known from the domain, and so before anything is
        charged."""
        return None

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: Relation
    ) -> Sensitivity | None:
        """The sensitivity of the margin for a neighbouring relation, or None where no bound is
        proved.
        """
        return None

    def column_names(self, data: Rows | None) -> tuple[str, ...]:
        """The names of the variables that queries number."""
        return tuple(require_rows(data, self.name).names)

    def record_facts(self, domain: Domain) -> Mapping[str, Any]:
        """What the test was told of how the records were made, for a result on these columns: of
        most nothing."""
        return {}


class StatisticsSource(abc.ABC):
    """What can stand in the place of a data set: statistics that were paid for, and that know which
    tests they answer.

    Args:
        domain: the declared columns.
        n_samples: the number of rows they were computed from (public).
    """

    domain: Domain
    n_samples: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables that queries number."""
        return self.domain.names

    @abc.abstractmethod
    def prepare_test(self, test: CITest, *, key: jax.Array | None = None) -> PreparedTest:
        """``test.prepare`` on these statistics, with their noise in the null.

        Raises:
            OptionError: naming the tests that it answers, for another.
        """


_COUNT = (
    "use a test that counts (CovarianceNorm, ChiSquare, KendallTau of discrete columns), or buy "
    "jaxcd.Features() or SecondMoments() and search that"
)


def require_rows(data: Rows | None, test: str) -> Rows:
    """Returns what a test counts, or raises OptionError where there is none."""
    if not isinstance(data, Rows):
        given = a_type(data)
        raise OptionError(
            f"data is {given}, but {test} needs a Dataset; make one with read_csv, from_frame or "
            "from_array"
        )
    return data


def require_data(data: Rows | None, test: str, *, cure: str = _COUNT) -> Dataset:
    """Returns the data, or raises OptionError where there is none, or none in memory."""
    rows = require_rows(data, test)
    if not isinstance(rows, Dataset):
        raise OptionError(
            f"data: {test} needs the rows themselves, and {a_type(rows)} answers counts "
            f"and sums only; {cure}"
        )
    return rows


def require_columns(data: Rows | None, test: str) -> Dataset | Shards:
    """Returns the data where its columns can be had: in memory, or on several devices."""
    return data if isinstance(data, Shards) else require_data(data, test)


def check_is_test(test: Any) -> None:
    """Raises OptionError unless it is a conditional independence test, and no class of them."""
    if not isinstance(test, CITest):
        raise OptionError(
            f"test = {test!r} is not a test; use an object such as jaxcd.CovarianceNorm()"
        )


def check_alpha(alpha: float) -> float:
    """Checks the level of a test.

    Args:
        alpha: a number with 0 < alpha < 1; below 1e-300 its quantiles are infinite in double
            precision.

    Returns:
        alpha.

    Raises:
        OptionError: it is none.
    """
    if not isinstance(alpha, (int, float, np.number)) or not 1e-300 <= alpha < 1:
        raise OptionError(
            f"alpha = {alpha!r} is not a level; use a number between 0 and 1, such as 0.05"
        )
    return float(alpha)
