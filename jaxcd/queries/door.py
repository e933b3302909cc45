"""The door to the data: in a private run nothing else reads a row.

What is public (names, the declared domain, the number of rows) is plain.  Everything computed from
rows comes out as :class:`jaxcd.privacy.Sensitive`, which only mechanisms open.

*Several rows a person.*  Where the budget's unit is a person, n is the number of people, the number
of rows is as private as any row (a person may be replaced by one with more), and a statistic is a
weighted sum over rows in which each person counts once (:mod:`jaxcd.ops.people`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxcd.checks import a_type
from jaxcd.citests import CITest, PreparedTest
from jaxcd.citests.available_cases import PreparedAvailableCases
from jaxcd.citests.base import StatisticsSource, require_data
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.column_types import Binned
from jaxcd.data.rows import Block, Columns, Rows
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.ops.people import PERSON_UNITS
from jaxcd.privacy import (
    NO_PRIVACY,
    Accountant,
    Budget,
    NoiseSource,
    NoPrivacy,
    OneDraw,
    Relation,
    SecureNoise,
    Sensitive,
    Unit,
)
from jaxcd.privacy.accountant import BY_PERSON_ONLY

__all__ = ["Door", "check_unit", "public_count"]


def public_count(data: Rows, budget: Budget | NoPrivacy) -> int:
    """The n of a run, which is public: of people where the budget's unit is a person, else of
    rows.
    """
    by_person = isinstance(budget, Budget) and budget.unit is Unit.PERSON
    return data.n_people if by_person else data.n_samples


def check_unit(data: Rows, budget: Budget, *, by_person: bool) -> None:
    """Refuses a budget whose unit is not that of the data; public facts decide, but for data of one
    person.

    Args:
        data: the rows.
        budget: of the run.
        by_person: whether what reads the rows has a bound for a person.

    Raises:
        PrivacyError: the budget promises another unit than the data's domain declares.
        OptionError: what reads the rows has no bound for a person.
    """
    check_declared_unit(data.domain, budget, has_people=data.has_people, by_person=by_person)
    if budget.unit is Unit.PERSON and data.n_people < 2:
        raise OptionError(
            "data: all rows are of one person, and nothing can be said of one person "
            "without saying it of them; give a table of several people"
        )


def check_declared_unit(
    domain: Domain, budget: Budget, *, has_people: bool, by_person: bool
) -> None:
    """The part of :func:`check_unit` that needs no data.

    Args:
        domain: of the data.
        budget: of the run.
        has_people: whether something tells apart whose rows are whose.
        by_person: whether what reads the rows has a bound for a person.

    Raises:
        PrivacyError: the budget promises another unit than the domain declares.
        OptionError: what reads the rows has no bound for a person.
    """
    if budget.unit is Unit.PERSON:
        if not has_people:
            raise PrivacyError(
                "budget: unit='person', but the domain declares no column that tells people "
                "apart; declare it (Domain(..., person='pid'), or \"person\": true in the domain "
                "file), or use unit='row' where every row is another person"
            )
        if not by_person:
            raise OptionError(BY_PERSON_ONLY)
    elif has_people and budget.max_rows_per_person == 1:
        as_person = "unit='person', or " if by_person else ""
        raise PrivacyError(
            f"budget: its unit is a row, but the domain says by column {domain.person!r} "
            "that a person may have several, who would be protected less than it says; use "
            f"{as_person}max_rows_per_person=k, or mark the column "
            '"ignore": true if one row is what has to be protected'
        )


_LEFT = "leaving out the rows in which a column is missing"
_AS_LEVEL = 'read missing cells as a level (missing="level"), or buy a release and search that'


class Door:
    """The rows of one run.

    Args:
        data: a Dataset or a Table; a StatisticsSource (a release: public, so that nothing it
            answers is sensitive); or None for an Oracle.
        budget: only its kind, relation and unit matter here.
        by_person: whether all that will be computed are counts and sums over rows that take weights
            (:meth:`counts`, :meth:`sums`), so that a person with several rows has a sensitivity.

    Raises:
        PrivacyError: a private run on an inferred domain, or of another unit than the domain
            declares.
        OptionError: a budget with a release, which has been paid for, or one of the unit of a
            person without ``by_person``.
    """

    chooses = True  # whether a mechanism may choose among scores of the rows

    def __init__(
        self,
        data: Rows | StatisticsSource | None,
        budget: Budget | NoPrivacy,
        *,
        by_person: bool = False,
    ) -> None:
        if data is not None and not isinstance(data, (Rows, StatisticsSource)):
            raise OptionError(
                f"data is {a_type(data)}, not a Dataset; make one with read_csv, "
                "from_frame or from_array"
            )
        self._source = data if isinstance(data, StatisticsSource) else None
        self._data = None if isinstance(data, StatisticsSource) else data
        self.private = budget is not NO_PRIVACY
        self.relation = budget.relation if isinstance(budget, Budget) else Relation.REPLACE_ONE
        if self._source is not None and self.private:
            raise OptionError(
                f"budget: a release has been paid for, and {budget} would buy nothing more; leave "
                "it out, or use NO_PRIVACY"
            )
        if self.private and self._data is not None and not self._data.domain.declared:
            raise PrivacyError(
                "domain: the levels and bounds were inferred from the data, which voids any "
                "guarantee; declare them (a Domain, or a domain file) before a private run, or use "
                "budget=NO_PRIVACY"
            )
        if isinstance(budget, Budget) and self._data is not None:
            check_unit(self._data, budget, by_person=by_person)
        self.by_person = isinstance(budget, Budget) and budget.unit is Unit.PERSON
        self.n_samples = (
            public_count(self._data, budget)
            if self._data is not None
            else 0
            if self._source is None
            else self._source.n_samples
        )
        self._domain = None if data is None else data.domain
        self.snapshot = None if self._data is None else self._data.snapshot

    @property
    def domain(self) -> Domain:
        """The declared domain.

        Raises:
            OptionError: there is no data (an Oracle).
        """
        if self._domain is None:
            raise OptionError("data is None, and has no domain; give a Dataset")
        return self._domain

    @property
    def missing(self) -> Missing:
        """How missing cells are to be read; public."""
        return Missing.IGNORE if self._data is None else self._data.missing

    @property
    def has_rows(self) -> bool:
        """Whether there is a domain to speak of: False with an Oracle."""
        return self._domain is not None

    def names(self, test: CITest) -> tuple[str, ...]:
        """The variables that the test's queries number."""
        return test.column_names(self._data) if self._source is None else self._source.names

    def wrapped(self, array: np.ndarray | list[np.ndarray]) -> Sensitive:
        """An array computed from the rows, sensitive in a private run."""
        return Sensitive(array, open_to_all=not self.private)

    def in_bins(self, bins: Mapping[str, Binned]) -> Door:
        """A door to the same rows, of which numeric columns are read in bins, which are public."""
        other = copy.copy(self)
        other._data = self._rows.in_bins(bins)
        other._domain = other._data.domain
        return other

    def counts(self, sets: Sequence[Columns]) -> Sensitive:
        """Joint counts of sets of columns, by position in the domain: a list of int64 arrays (k_1,
        ..., k_s), in units of ``1 / units``.
        """
        return self.wrapped(self._rows.counts(sets, by_person=self.by_person))

    def sums(self, names: Sequence[str], function: Callable[[Block], Any]) -> Sensitive:
        """The sum over rows of whole numbers, each row's times its weight
        (:meth:`jaxcd.data.rows.Rows.sums`).
        """
        return self.wrapped(self._rows.sums(names, function, by_person=self.by_person))

    @property
    def units(self) -> int:
        """What a row counts: 1, or 2^20 where the rows of a person share that (public)."""
        return PERSON_UNITS if self.by_person else 1

    def noise(self, source: NoiseSource | None) -> NoiseSource | None:
        """The noise of a run on these rows: where several processes hold them, that of the first
        (:class:`jaxcd.privacy.OneDraw`).

        Args:
            source: the run's own; None for secure noise.
        """
        tell = None if self._data is None else self._data.tell
        return source if tell is None else OneDraw(source or SecureNoise(), tell)

    def codes(self) -> Sensitive:
        """Codes of the discrete columns, in the domain's order: int32 (n_samples, their number)."""
        return self.wrapped(self._memory.discrete)

    def values(self, names: Sequence[str]) -> Sensitive:
        """Values of numeric columns, in their units: float64 (n_samples, len(names))."""
        rows = self._memory
        return self.wrapped(np.column_stack([rows.values(name) for name in names]))

    def answer(self, question: Any, accountant: Accountant) -> Any:
        """The noisy answer to a question of a release, paid for by the accountant.

        Args:
            question: with ``buy(door, accountant)``.
            accountant: of the run.
        """
        return question.buy(self, accountant)

    def prepare(
        self, test: CITest, *, key: jax.Array | None, accountant: Accountant | None = None
    ) -> PreparedTest:
        """The test on these rows; where it buys its preparation, by the accountant.

        Without privacy each query leaves out the rows in which its columns are missing; a private
        test reads missing cells as a level, because how many rows are complete is data, and so does
        one that is not right on complete rows.

        Raises:
            BudgetExhausted: that does not fit.
            OptionError: for a test that a release does not answer.
        """
        if self._source is not None:
            return self._source.prepare_test(test, key=key)
        if accountant is not None and self.private and test.buys_preparation:
            return test.prepare_privately(self._data, accountant, key=key)
        data = self._data
        leaves_out = test.takes_complete_cases and not self.private
        if data is not None and leaves_out and any(data.leaves_out):
            return PreparedAvailableCases(test, require_data(data, _LEFT, cure=_AS_LEVEL), key=key)
        return test.prepare(self._data, key=key)

    @property
    def _rows(self) -> Rows:
        if self._data is None:
            raise OptionError("data: a release has no rows; give a Dataset")
        return self._data

    @property
    def _memory(self) -> Dataset:
        return require_data(self._rows, "what reads whole columns")
