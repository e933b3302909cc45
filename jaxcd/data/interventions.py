"""What the interventions that a domain declares say about each variable; public.

An intervention column says under which conditions a row was taken.  Its targets are *known* where
some level names the columns that were set there (:attr:`Interventions.settings`); else it is a
*context*, of which only that nothing among the variables causes it is known.

A variable's *natural rows* are those in which no column set it.  A row whose intervention cell is
missing may have been set anywhere, and is natural for variables only that the column never sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from jaxcd.checks import shown_list
from jaxcd.data.dataset import Dataset
from jaxcd.data.domain import Domain
from jaxcd.errors import DataError

__all__ = ["Interventions", "Rows", "rows_of"]

#: Some of the rows: for each of some columns the codes that a row of them has there.
Rows = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Interventions:
    """The interventions of a domain, by variable.

    Args:
        columns: all intervention columns, in order.
        settings: those of them with a target, each with all its targets, in order.
        natural: for every column that is no setting, its natural rows; empty where it is never set.
    """

    columns: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    natural: Mapping[str, Rows]

    @staticmethod
    def of(domain: Domain) -> Interventions:
        """The interventions that a domain declares."""
        columns = tuple(name for name in domain.names if name in domain.interventions)
        settings, natural = {}, {}
        for name in columns:
            set_there = {t for targets in domain.interventions[name].values() for t in targets}
            if set_there:
                settings[name] = tuple(each for each in domain.names if each in set_there)
        for name in domain.names:
            if name in settings:
                continue
            rows = {
                c: _leaving(domain, c, name) for c, targets in settings.items() if name in targets
            }
            natural[name] = MappingProxyType(rows)
        return Interventions(columns, MappingProxyType(settings), MappingProxyType(natural))

    def told_apart(self, names: tuple[str, ...]) -> np.ndarray:
        """The pairs of variables of which some condition sets exactly one: bool (d, d), symmetric.

        Every declared level, and every combination of levels of two columns, is taken to occur.
        """
        rows = [self.natural.get(name) for name in names]
        return np.array([[a is not None and b is not None and a != b for b in rows] for a in rows])


def _leaving(domain: Domain, column: str, variable: str) -> tuple[int, ...]:
    """The codes of the levels of an intervention column that do not set the variable."""
    by_level = domain.interventions[column]
    levels = domain[column].levels  # type: ignore[union-attr]
    return tuple(k for k, level in enumerate(levels) if variable not in by_level.get(level, ()))


def rows_of(data: Dataset, rows: Rows) -> Dataset:
    """The rows of a data set in which each column has one of its codes; not for private runs.

    Raises:
        DataError: no row is left.
    """
    if not rows:
        return data
    kept = np.logical_and.reduce(
        [np.isin(data.column(name), codes) for name, codes in rows.items()]
    )
    if not kept.any():
        natural = Interventions.of(data.domain).natural
        were_set = [repr(name) for name, left in natural.items() if left == rows]
        was, it = ("was", "it") if len(were_set) == 1 else ("were", "them")
        say = "says" if len(rows) == 1 else "say"
        raise DataError(
            f"data: {shown_list(were_set)} {was} set in every row, as {shown_list(list(rows))} "
            f"{say}, and such rows do not tell what causes {it}; leave {it} out, or add rows that "
            "were not set"
        )
    return data.where(kept)
