"""What a graph is worth: scores of whole graphs, and those that are sums over nodes.

A score is in nats, and higher is better.  Searches know nothing else about the data or the release
behind it.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxcd.checks import is_whole
from jaxcd.errors import GraphError, OptionError

__all__ = [
    "BatchedScore",
    "FamilyTable",
    "GraphScore",
    "LocalScore",
    "check_max_parents",
    "first_best",
    "log_rows",
    "several_levels",
    "strongest",
    "tie",
]


_TIE, _RELATIVE_TIE = 1e-6, 1e-12


def tie(score: float) -> float:
    """What two scores of this size may differ by and count as equal, in nats: 1e-6, or 1e-12 of a
    large score.

    Scores that are equal on paper (of equivalent graphs, or of columns that are copies of each
    other) differ by the rounding of sums whose order depends on the processor.  Among those the
    first in the order of the columns is taken, so that no rounding decides.
    """
    return max(_TIE, _RELATIVE_TIE * abs(score)) if math.isfinite(score) else _TIE


def first_best(scores: Sequence[float] | np.ndarray) -> int:
    """The place of the first score that is as high as the highest but for a :func:`tie`; scores:
    (n,), n at least 1.
    """
    array = np.asarray(scores, dtype=np.float64)
    highest = float(array.max())
    return int(np.argmax(array >= highest - tie(highest)))


class GraphScore(abc.ABC):
    """A score of whole graphs: bool adjacency (d, d) with [i, j] true for i -> j."""

    # : Whether Markov equivalent DAGs have equal totals.
    equal_in_a_class: bool = True

    def tells(self, adjacency: np.ndarray) -> np.ndarray:
        """The arcs of a DAG that the score orients beyond its Markov equivalence class: bool (d, d)
        in and out.  None where equivalent DAGs have equal totals.
        """
        return np.zeros_like(adjacency, dtype=bool)

    @property
    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """The variables, in the order of the adjacency."""

    @property
    @abc.abstractmethod
    def max_parents(self) -> int:
        """The largest number of parents that a search should try; larger families may still be
        scored.
        """

    def uncounted(self, node: int) -> int:
        """How many parents of a node ``max_parents`` does not count: the columns that set it."""
        return 0

    def candidates(self, node: int) -> tuple[int, ...]:
        """The possible parents of a node, sorted; public.  By default all others."""
        return tuple(other for other in range(len(self.names)) if other != node)

    @property
    def settings(self) -> dict[str, Any]:
        """The options that made it, for a result's info."""
        return {"max_parents": self.max_parents}

    def approximations(self) -> Sequence[LocalScore]:
        """Sums over nodes whose best graphs are near this score's: where a search that is no sum
        starts from.
        """
        return ()

    def expected(self, adjacency: np.ndarray) -> LocalScore | None:
        """A sum over nodes that is this score if the DAG, bool (d, d), is the truth; None where
        there is none.
        """
        return None

    @abc.abstractmethod
    def totals(self, adjacencies: np.ndarray) -> np.ndarray:
        """Scores of many DAGs: bool (G, d, d) in, float64 (G,) out."""

    def best(self, adjacencies: np.ndarray) -> tuple[int, float]:
        """The place and the score of the best of many DAGs, bool (G, d, d), G at least 1; the first
        of equals.
        """
        totals = self.totals(adjacencies)
        place = first_best(totals)
        return place, float(totals[place])

    def total(self, adjacency: np.ndarray) -> float:
        """The score of one DAG, bool (d, d).

        Raises:
            GraphError: the shape is wrong.
        """
        array = np.asarray(adjacency, dtype=bool)
        d = len(self.names)
        if array.shape != (d, d):
            raise GraphError(
                f"adjacency must have the shape ({d}, {d}), one row and column a variable, not "
                f"{array.shape}"
            )
        return float(self.totals(array[None])[0])


@dataclass(frozen=True, eq=False)
class FamilyTable:
    """All families of one node and their scores.

    Args:
        node: its position.
        families: the parent sets, sorted tuples of positions; the first is empty.
        scores: float64 (F,), nats.
    """

    node: int
    families: tuple[tuple[int, ...], ...]
    scores: np.ndarray

    @cached_property
    def lookup(self) -> dict[tuple[int, ...], float]:
        """The score of each family."""
        return dict(zip(self.families, self.scores.tolist(), strict=True))


class LocalScore(GraphScore):
    """A score that is a sum over nodes of a local score of the node and its parents.

    total(G) = sum_v local(v, parents of v in G).  A subclass gives :meth:`local`, and
    :meth:`locals` where many at once are quicker.  All searches ask for the same families, so
    :meth:`table` keeps them.
    """

    # : Up to so many variables the best graph of all costs seconds; above, time and memory double
    # with every variable.
    most_exact: int = 20

    @abc.abstractmethod
    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """The score of a node with the given parents (sorted positions), in nats."""

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        return np.array([self.local(node, parents) for parents in families], dtype=np.float64)

    def families(self, node: int) -> tuple[tuple[int, ...], ...]:
        """The parent sets that a search may give the node: all sets of at most ``max_parents``
        candidates.
        """
        candidates = self.candidates(node)
        sizes = range(min(self.max_parents, len(candidates)) + 1)
        return tuple(
            itertools.chain.from_iterable(
                itertools.combinations(candidates, size) for size in sizes
            )
        )

    def table(self, node: int) -> FamilyTable:
        """The families of a node with their scores; computed once."""
        kept: dict[int, FamilyTable] = self.__dict__.setdefault("_tables", {})
        if node not in kept:
            families = self.families(node)
            kept[node] = FamilyTable(
                node, families, np.asarray(self.locals(node, families), dtype=np.float64)
            )
        return kept[node]

    def totals(self, adjacencies: np.ndarray) -> np.ndarray:
        """Scores of many DAGs: bool (G, d, d) in, float64 (G,) out."""
        return np.array([self._sum(adjacency) for adjacency in adjacencies], dtype=np.float64)

    def _sum(self, adjacency: np.ndarray) -> float:
        return sum(
            self._known(node, tuple(np.flatnonzero(adjacency[:, node]).tolist()))
            for node in range(len(self.names))
        )

    def _known(self, node: int, parents: tuple[int, ...]) -> float:
        """The score of one family: from the node's table if a search has asked for it, else
        computed once.

        Never the whole table: with 37 candidates and 5 parents that is half a million families.
        """
        if (
            kept := self.__dict__.get("_tables", {}).get(node)
        ) is not None and parents in kept.lookup:
            return float(kept.lookup[parents])
        single: dict[tuple[int, tuple[int, ...]], float] = self.__dict__.setdefault("_single", {})
        if (node, parents) not in single:
            single[node, parents] = float(self.local(node, parents))
        return single[node, parents]


class BatchedScore(LocalScore):
    """A local score whose families of one node are scored together: a subclass gives
    :meth:`locals`.
    """

    def __init__(self, names: Sequence[str], *, max_parents: int) -> None:
        """Raises OptionError where ``max_parents`` is out of its range."""
        self._names = tuple(names)
        self._max_parents = check_max_parents(max_parents)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._names

    @property
    def max_parents(self) -> int:
        """The largest number of parents that a search should try."""
        return self._max_parents

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """The score of a node with the given parents (sorted positions), in nats."""
        return float(self.locals(node, [parents])[0])

    @abc.abstractmethod
    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""


# Where noise leaves fewer rows than this, log N would make edges cheap, and at one row free: a
# search would join everything.
_LEAST_ROWS = 8.0


def log_rows(rows: float, *, reduced: bool) -> float:
    """The log N of a BIC: of all rows, or of what noise and ties leave of them, at least 8 then."""
    return math.log(max(rows, _LEAST_ROWS) if reduced else rows)


def strongest(strength: np.ndarray, n_candidates: int) -> tuple[tuple[int, ...], ...]:
    """For each node the sorted positions of the ``n_candidates`` others (or all) with the largest
    entries in its row; the first of equals.

    Args:
        strength: float64 (d, d), on the diagonal less than everywhere else.
    """
    best = np.argsort(-strength, axis=1, kind="stable")[:, : min(n_candidates, len(strength) - 1)]
    return tuple(tuple(sorted(row.tolist())) for row in best)


def several_levels(cardinalities: Sequence[int], node: int) -> tuple[int, ...]:
    """The other columns of at least two levels, sorted; none where the node itself has one
    level.
    """
    if cardinalities[node] < 2:
        return ()
    return tuple(
        other for other, levels in enumerate(cardinalities) if other != node and levels > 1
    )


def check_max_parents(max_parents: int) -> int:
    """Returns it if it is a whole number from 0, else raises OptionError."""
    if not is_whole(max_parents, 0):
        raise OptionError(
            f"max_parents = {max_parents!r} is not a number of parents; use a whole number from "
            "0, such as 3"
        )
    return max_parents
