"""Which tables must be measured together with the columns that say what was set; public rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from jaxcd.data import Domain
from jaxcd.data.interventions import Interventions

__all__ = ["settings_of", "with_settings"]

Columns = tuple[int, ...]


def settings_of(domain: Domain) -> dict[int, Columns]:
    """The columns that say where each column was set, by position; for columns that are set
    somewhere.
    """
    place = {name: j for j, name in enumerate(domain.names)}
    natural = Interventions.of(domain).natural
    return {
        place[name]: tuple(sorted(place[c] for c in rows)) for name, rows in natural.items() if rows
    }


def with_settings(
    families: Sequence[Columns],
    levels: Sequence[float],
    set_by: Mapping[int, Columns],
    *,
    most_cells: Mapping[int, float],
) -> list[Columns]:
    """The families, and each with the columns that say where a member was set; and each column that
    several others set, with these: where it was not set is told by all of them together.

    Left out: such tables with more cells than ``most_cells`` allows a family of as many variables
    (of three at least, and of the most that it names at most): what says where a column was set
    splits the rows in two, and is counted as no variable."""
    if not set_by:
        return list(families)
    found = dict.fromkeys(families)
    single = [(column,) for column, setting in set_by.items() if len(setting) > 1]
    for family in (*families, *single):
        most = most_cells[min(max(len(family), 3), max(most_cells))]
        for column in family:
            larger = tuple(sorted({*family, *set_by.get(column, ())}))
            if math.prod(levels[v] for v in larger) <= most:
                found[larger] = None
    return list(found)
