r"""Families of an order: for every node the parent sets that stand before it, their sums, their
best, and draws of them.

Each node has candidates H; its families are S and S + {u}, S a subset of H, u any other possible
parent.  Sums of exp(score) over the subsets of every set of candidates come from one pass over the
bits (in logarithms), for S alone and with each u.

Source:
    Kuipers, Suter, Moffa 2022.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from jaxcd.discovery.score.exact_search import _by_size
from jaxcd.discovery.score.limits import Limits
from jaxcd.errors import OptionError
from jaxcd.scores import LocalScore
from jaxcd.scores.base import first_best

__all__ = ["MOST_COUNTED", "OrderFamilies", "first_candidates", "linear_extensions"]

MOST_COUNTED = 16
"""The most variables whose orders are counted."""

_MOST_KEPT = 1 << 19  # remembered sums
_MOST_LISTED = 1 << 12  # remembered lists of families


class OrderFamilies:
    """The families of each node and their sums over subsets of the nodes before it (bit masks)."""

    def __init__(
        self,
        score: LocalScore,
        candidates: np.ndarray,
        limits: Limits | None = None,
        tell: Callable[[int], None] = lambda node: None,
    ) -> None:
        """The score has the required parents of ``limits`` in every family, and none of them among
        its candidates.  ``tell`` is called with each node before its families are scored."""
        self.score, self.d = score, len(score.names)
        self.limits = Limits.of(None, score.names) if limits is None else limits
        self.inside: list[list[int]] = []
        self.outside: list[list[int]] = []
        self.scores: list[
            np.ndarray
        ] = []  # (2^m, 1 + outside): of S, and of S with one parent from outside
        self.sums: list[np.ndarray] = []
        for v in range(self.d):
            tell(v)
            pool = score.candidates(v)
            inside = [u for u in pool if candidates[u, v]]
            outside = [u for u in pool if not candidates[u, v]]
            scores = np.full((1 << len(inside), 1 + len(outside)), -np.inf)
            families, places = [], []
            for size in range(min(len(inside), score.max_parents) + 1):
                for chosen in itertools.combinations(range(len(inside)), size):
                    mask = sum(1 << i for i in chosen)
                    parents = [inside[i] for i in chosen]
                    extras = [()] if size == score.max_parents else [(), *((u,) for u in outside)]
                    families += [tuple(sorted((*parents, *extra))) for extra in extras]
                    places += [(mask, column) for column in range(len(extras))]
            scores[tuple(np.array(places).T)] = score.locals(v, families)
            sums = scores.copy()
            for bit in range(len(inside)):
                # [:, 0]: without the bit, [:, 1]: with it
                pairs = sums.reshape(-1, 2, 1 << bit, sums.shape[1])
                pairs[:, 1] = np.logaddexp(pairs[:, 0], pairs[:, 1])
            self.inside.append(inside)
            self.outside.append(outside)
            self.scores.append(scores)
            self.sums.append(sums)
        self._totals: dict[tuple[int, int], float] = {}
        self._arcs: dict[tuple[int, int], np.ndarray] = {}
        self._drawn: dict[tuple[int, int], tuple[np.ndarray, list[int], np.ndarray]] = {}
        self._best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}

    def _allowed(self, v: int, before: int) -> tuple[int, list[int]]:
        """The candidates of v among the nodes before it, as bits, and the columns of the outside
        parents among them.
        """
        mask = sum(1 << i for i, u in enumerate(self.inside[v]) if before >> u & 1)
        return mask, [0, *(1 + j for j, u in enumerate(self.outside[v]) if before >> u & 1)]

    def total(self, v: int, before: int) -> float:
        """log of the sum of v."""
        known = self._totals.get((v, before))
        if known is None:
            mask, allowed = self._allowed(v, before)
            known = float(np.logaddexp.reduce(self.sums[v][mask, allowed]))
            if len(self._totals) > _MOST_KEPT:
                self._totals.clear()
            self._totals[v, before] = known
        return known

    def arcs(self, v: int, before: int) -> np.ndarray:
        """The probabilities of u -> v given the nodes before v, float64 (d,)."""
        if (v, before) not in self._arcs:
            mask, allowed = self._allowed(v, before)
            total, result = self.total(v, before), self.limits.required[:, v].astype(np.float64)
            for i, u in enumerate(self.inside[v]):
                if mask >> i & 1:
                    without = np.logaddexp.reduce(self.sums[v][mask ^ (1 << i), allowed])
                    result[u] = -math.expm1(min(without - total, 0.0))
            for column in allowed[1:]:
                result[self.outside[v][column - 1]] = math.exp(self.sums[v][mask, column] - total)
            if len(self._arcs) > _MOST_KEPT // self.d:
                self._arcs.clear()
            self._arcs[v, before] = result
        return self._arcs[v, before]

    def _listed(self, v: int, before: int) -> tuple[np.ndarray, list[int], np.ndarray]:
        """The allowed families: masks, columns, and scores (masks, columns)."""
        mask, allowed = self._allowed(v, before)
        masks = np.flatnonzero((np.arange(len(self.scores[v])) & ~mask) == 0)
        return masks, allowed, self.scores[v][masks[:, None], allowed]

    def _parents(self, v: int, mask: int, column: int) -> tuple[int, ...]:
        chosen = [u for i, u in enumerate(self.inside[v]) if mask >> i & 1]
        chosen += [self.outside[v][column - 1]] if column else []
        return tuple(sorted((*chosen, *self.limits.parents(v))))

    def best(self, v: int, before: int) -> tuple[float, tuple[int, ...]]:
        """The best family and its score."""
        if (v, before) not in self._best:
            masks, allowed, scores = self._listed(v, before)
            row, column = np.unravel_index(first_best(scores.ravel()), scores.shape)
            if len(self._best) > _MOST_KEPT:
                self._best.clear()
            self._best[v, before] = (
                float(scores[row, column]),
                self._parents(v, int(masks[row]), allowed[int(column)]),
            )
        return self._best[v, before]

    def draw(self, v: int, before: int, rng: np.random.Generator) -> tuple[int, ...]:
        """A family by its probability."""
        if (v, before) not in self._drawn:
            masks, allowed, scores = self._listed(v, before)
            if len(self._drawn) > _MOST_LISTED:
                self._drawn.clear()
            self._drawn[v, before] = masks, allowed, np.exp(scores - scores.max()).ravel().cumsum()
        masks, allowed, weights = self._drawn[v, before]
        place = min(
            int(np.searchsorted(weights, rng.random() * weights[-1], side="right")),
            weights.size - 1,
        )
        row, column = divmod(place, len(allowed))
        return self._parents(v, int(masks[row]), allowed[column])


def first_candidates(
    score: LocalScore, most: int, tell: Callable[[int], None] = lambda node: None
) -> np.ndarray:
    """All possible parents where they are few; else those that a forward selection takes, and the
    nodes that take v, while there is room.  ``tell`` is called with each node before its selection.
    """
    d = len(score.names)
    result = np.zeros((d, d), dtype=bool)
    wide = [v for v in range(d) if len(score.candidates(v)) > most]
    for v in range(d):
        tell(v)
        pool = list(score.candidates(v))
        chosen: tuple[int, ...] = () if v in wide else tuple(pool)
        value = score.local(v, ())
        while v in wide and len(chosen) < min(most, score.max_parents):
            rest = [u for u in pool if u not in chosen]
            values = score.locals(v, [tuple(sorted((*chosen, u))) for u in rest])
            if not values.max() > value:
                break
            chosen, value = (*chosen, rest[int(values.argmax())]), float(values.max())
        result[list(chosen), v] = True
    taken = result.copy()
    for v in wide:
        for u in score.candidates(v):
            if taken[v, u] and u in wide and result[:, v].sum() < most:
                result[u, v] = True
    return result


def linear_extensions(adjacency: np.ndarray) -> int:
    """The number of orders of the nodes of a DAG, bool (d, d), in which parents come first; d at
    most 16.

    Counted by last nodes: f(S) = sum of f(S - v) over the v in S without children in S.

    Raises:
        OptionError: d is larger.
    """
    d = len(adjacency)
    if d > MOST_COUNTED:
        raise OptionError(
            f"adjacency: {d} variables are too many to count orders, at most {MOST_COUNTED}; use "
            "StructurePrior.ORDER_MODULAR"
        )
    count = np.zeros(1 << d, dtype=np.int64)  # 16! is below 2^63
    count[0] = 1
    children = [sum(1 << int(w) for w in np.flatnonzero(adjacency[v])) for v in range(d)]
    for subsets in _by_size(d)[1:]:
        for v in range(d):
            last = subsets[((subsets >> v) & 1 == 1) & ((subsets & children[v]) == 0)]
            count[last] += count[last ^ (1 << v)]
    return int(count[-1])
