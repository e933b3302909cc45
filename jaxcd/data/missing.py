"""How a search reads missing cells."""

from __future__ import annotations

import enum

from jaxcd.errors import OptionError

__all__ = ["Missing"]


class Missing(enum.Enum):
    """How a search or a test reads the missing cells that a domain declares.

    ``IGNORE`` ("ignore"): a test leaves out the cells in which a queried column is missing, and a
    score works on tables of available cases that are made to agree
    (:mod:`jaxcd.ops.available_cases`); features count each pair of columns in the rows that know
    both.  Unbiased where cells are missing completely at random;
    where it depends on a column z that is seen whether x is missing, the dependence of x and z, and
    that given z, stays unbiased (not of features: two columns that both are missing where z is high
    may be joined given z).  ``LEVEL`` ("level"): "missing" is a level like any other.  Right
    where it is of interest that a cell is missing, or where the missing value itself is the reason.
    Wrong where it is not: a column whose cells are missing for those with a high z is then joined
    to z.  Private tests on rows always read it so: how many rows are complete is data.

    Source:
        Rubin 1976; Tu et al. 2019 for tests; Balov 2013 for scores.

    Example:
        >>> Missing.of("level")
        <Missing.LEVEL: 'level'>
    """

    LEVEL = "level"
    IGNORE = "ignore"

    @classmethod
    def of(cls, missing: Missing | str) -> Missing:
        """The reading itself, or that of a name; raises OptionError for anything else."""
        try:
            return cls(missing)
        except ValueError:
            raise OptionError(
                f'missing = {missing!r} is no reading of missing cells; use "ignore" (leave them '
                'out) or "level" (a level of its own)'
            ) from None
