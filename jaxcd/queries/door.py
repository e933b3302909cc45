"""The door to the data: in a private run nothing else reads a row.

What is public (names, the declared domain, the number of rows) is plain.  Everything computed from
rows comes out as :class:`jaxcd.privacy.Sensitive`, which only mechanisms open.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from jaxcd.citests import CITest, PreparedTest
from jaxcd.citests.available_cases import PreparedAvailableCases
from jaxcd.citests.base import StatisticsSource
from jaxcd.data import Dataset, Domain
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.privacy import NO_PRIVACY, Accountant, Budget, NoPrivacy, Relation, Sensitive

__all__ = ["Door"]


class Door:
    """The rows of one run.

    Args:
        data: a Dataset; a StatisticsSource (a release: public, so that nothing it answers is
            sensitive); or None for an Oracle.
        budget: only its kind and relation matter here.

    Raises:
        PrivacyError: a private run on an inferred domain.
        OptionError: a budget with a release, which has been paid for.
    """

    def __init__(self, data: Dataset | StatisticsSource | None, budget: Budget | NoPrivacy) -> None:
        if data is not None and not isinstance(data, (Dataset, StatisticsSource)):
            raise OptionError(
                f"data is a {type(data).__name__}, not a Dataset; make one with read_csv, "
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
        self.n_samples = 0 if data is None else data.n_samples
        self._domain = None if data is None else data.domain

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
    def has_rows(self) -> bool:
        """Whether there is a domain to speak of: False with an Oracle."""
        return self._domain is not None

    def names(self, test: CITest) -> tuple[str, ...]:
        """The variables that the test's queries number."""
        return test.column_names(self._data) if self._source is None else self._source.names

    def wrapped(self, array: np.ndarray) -> Sensitive:
        """An array computed from the rows, sensitive in a private run."""
        return Sensitive(array, open_to_all=not self.private)

    def codes(self) -> Sensitive:
        """Codes of the discrete columns, in the domain's order: int32 (n_samples, their number)."""
        return self.wrapped(self._rows.discrete)

    def values(self, names: Sequence[str]) -> Sensitive:
        """Values of numeric columns, in their units: float64 (n_samples, len(names))."""
        rows = self._rows
        return self.wrapped(np.column_stack([rows.values(name) for name in names]))

    def prepare(
        self, test: CITest, *, key: jax.Array | None, accountant: Accountant | None = None
    ) -> PreparedTest:
        """The test on these rows; where it buys its preparation, by the accountant.

        Without privacy each query leaves out the rows in which its columns are missing; a private
        test reads missing cells as a level, because how many rows are complete is data.

        Raises:
            BudgetExhausted: that does not fit.
            OptionError: for a test that a release does not answer.
        """
        if self._source is not None:
            return self._source.prepare_test(test, key=key)
        if accountant is not None and self.private and test.buys_preparation:
            return test.prepare_privately(self._data, accountant, key=key)
        data = self._data
        if data is not None and not self.private and any(data.leaves_out):
            return PreparedAvailableCases(test, data, key=key)
        return test.prepare(self._data, key=key)

    @property
    def _rows(self) -> Dataset:
        if self._data is None:
            raise OptionError("data: a release has no rows; give a Dataset")
        return self._data
