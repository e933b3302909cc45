r"""A sum over nodes in which each node counts only the rows where it was not set from outside.

With known targets (:class:`jaxcd.data.interventions.Interventions`) the likelihood of a row is the
product of P(x_v | parents of v) over the nodes v that were not set in it: what an intervention puts
in the place of a factor does not depend on the graph.  So

    local(v, P) = the local score of v and P in the natural rows of v.

DAGs have equal totals iff they have the same adjacencies and v-structures, and the same direction
of every edge of which some condition sets exactly one end (Hauser and Buehlmann 2012, theorem 10:
interventional Markov equivalence; of an edge that is turned within a class both ends have the same
natural rows, so that the terms of its two families are permuted).  So such edges are oriented, and
greedy equivalence search, which takes scores of a class, does not apply.

A release may not tell the natural rows of a variable: the table of it and of the columns that set
it was too large, or not chosen.  It is then *left alone*, joined to nothing but what sets it: rows
in which it was set would make edges of what sets two columns at once.

The columns that say what was set are nodes without parents; an arc leads from each to its targets,
and none to others.  They add nothing to the score: whatever was done was decided outside.

Source:
    Cooper and Yoo 1999; Hauser and Buehlmann 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxcd.checks import shown_list
from jaxcd.data import Dataset, Domain
from jaxcd.data.interventions import Interventions, Rows, rows_of
from jaxcd.errors import DataError
from jaxcd.scores.base import LocalScore

__all__ = ["InterventionalScore", "on_natural_rows", "with_known_targets"]

Columns = tuple[int, ...]


def _always(name: str, rows: Rows) -> bool:
    """Rows in memory and joint tables tell all."""
    return True


def with_known_targets(
    domain: Domain,
    score_of: Callable[[tuple[str, ...], Rows], LocalScore],
    *,
    told: Callable[[str, Rows], bool] = _always,
) -> LocalScore:
    """The score of a domain's columns, where each node counts its natural rows.

    Args:
        domain: with its interventions.
        score_of: the score of some columns on some of the rows; called once where no targets are
            known, with all columns and no condition.
        told: whether the natural rows of a variable are known; it is left alone else.

    Returns:
        That score where no targets are known, else an :class:`InterventionalScore`.
    """
    known = Interventions.of(domain)
    if not known.settings:
        return score_of(domain.names, {})
    variables = tuple(name for name in domain.names if name not in known.settings)
    made: dict[tuple[Any, ...], LocalScore] = {}
    parts = {}
    for name in variables:
        rows = known.natural[name]
        if not told(name, rows):
            continue
        key = tuple(rows.items())
        if key not in made:
            made[key] = score_of(variables, rows)
        parts[name] = made[key]
    first = next(iter(parts.values())) if parts else score_of(variables, {})
    return InterventionalScore(domain.names, known, parts, first=first)


@final
class InterventionalScore(LocalScore):
    """The sum over nodes of local scores on each node's natural rows.

    Args:
        names: all columns.
        known: their interventions, some with known targets.
        parts: for each variable that is not left alone a score of all variables (the columns that
            are no settings, in order) on its natural rows.
        first: a score of all variables, whose options are those of the others.
    """

    equal_in_a_class = False

    def __init__(
        self,
        names: Sequence[str],
        known: Interventions,
        parts: dict[str, LocalScore],
        *,
        first: LocalScore,
    ) -> None:
        self._names = tuple(names)
        self._interventions = known
        place = {name: j for j, name in enumerate(self._names)}
        self._settings = {place[name] for name in known.settings}
        self._variables = tuple(place[name] for name in names if name not in known.settings)
        self._inner = {j: i for i, j in enumerate(self._variables)}
        self._parts = {place[name]: part for name, part in parts.items()}
        self._alone = {j for j in self._variables if j not in self._parts}
        self._set_by: dict[int, Columns] = {
            place[name]: tuple(sorted(place[c] for c in rows))
            for name, rows in known.natural.items()
        }
        self.most_exact = first.most_exact
        self._first = first

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, the settings among them."""
        return self._names

    @property
    def max_parents(self) -> int:
        """That of the parts, which count variables."""
        return self._first.max_parents

    def uncounted(self, node: int) -> int:
        """The columns that set it."""
        return len(self._set_by.get(node, ()))

    @property
    def settings(self) -> dict[str, Any]:
        """The parts' options, and the columns whose targets are known."""
        targets = {name: list(found) for name, found in self._interventions.settings.items()}
        found = {**self._first.settings, "targets": targets}
        if self._alone:
            names = ", ".join(repr(self._names[j]) for j in sorted(self._alone))
            words = (
                f"what was measured does not tell in which rows {names} "
                f"{'was' if len(self._alone) == 1 else 'were'} not set: joined to nothing but what "
                "sets them; fewer columns, or fewer that set the same, would be told"
            )
            found["warnings"] = (*found.get("warnings", ()), words)
        return found

    def candidates(self, node: int) -> Columns:
        """The variables that may cause it; none of a setting, and of what is left alone."""
        if node not in self._parts:
            return ()
        inner = self._parts[node].candidates(self._inner[node])
        return tuple(j for i in inner if (j := self._variables[i]) not in self._alone)

    def families(self, node: int) -> tuple[Columns, ...]:
        """Those of its part, each with the columns that set it; of a setting the empty one, and of
        what is left alone the columns that set it.
        """
        if node in self._settings:
            return ((),)
        if node in self._alone:
            return (self._set_by[node],)
        found = (
            tuple(self._variables[i] for i in family)
            for family in self._parts[node].families(self._inner[node])
        )
        return tuple(
            tuple(sorted((*family, *self._set_by[node])))
            for family in found
            if self._alone.isdisjoint(family)
        )

    def local(self, node: int, parents: Columns) -> float:
        """The score of a node with the given parents, in nats."""
        return float(self.locals(node, [parents])[0])

    def locals(self, node: int, families: Sequence[Columns]) -> np.ndarray:
        """The scores of many parent sets, float64 (len(families),): minus infinity for a setting
        with parents, and where a setting that does not set the node is among its parents, or what
        is left alone is among them.
        """
        if node not in self._parts:
            only = set() if node in self._settings else set(self._set_by[node])
            return np.array([0.0 if set(family) == only else -np.inf for family in families])
        values = np.full(len(families), -np.inf)
        excluded = self._settings.difference(self._set_by[node]) | self._alone
        places = [k for k, family in enumerate(families) if not excluded.intersection(family)]
        inner = [
            tuple(sorted(self._inner[j] for j in families[k] if j not in self._settings))
            for k in places
        ]
        if places:
            values[places] = self._parts[node].locals(self._inner[node], inner)
        return values

    def tells(self, adjacency: np.ndarray) -> np.ndarray:
        """The arcs of which some condition sets exactly one end."""
        return np.asarray(adjacency, dtype=bool) & self._interventions.told_apart(self._names)


def on_natural_rows(data: Dataset, score_of: Callable[[Dataset], LocalScore]) -> LocalScore:
    """The score of a data set, where each node counts its natural rows; not private.

    Args:
        score_of: the score of a data set.

    Raises:
        DataError: no row leaves a variable alone, or there is but one.
    """
    settings = Interventions.of(data.domain).settings
    if settings and len(settings) == data.n_columns - 1:
        [variable] = set(data.names) - set(settings)
        say = "says" if len(settings) == 1 else "say"
        raise DataError(
            f"data: beside {shown_list(list(settings))}, which {say} what was set, there is only "
            f"{variable!r}, and nothing to search; add columns"
        )
    return with_known_targets(
        data.domain,
        lambda names, rows: score_of(
            data if names == data.names else rows_of(data, rows).select(names)
        ),
    )
