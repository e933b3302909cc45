"""What a release of marginals buys: interactions and tables with noise, each combined with what was
known before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from jaxcd.ops import moments
from jaxcd.ops.interactions import interaction, subsets
from jaxcd.privacy import Accountant, Budget, split
from jaxcd.queries import Door
from jaxcd.releases.tables import marginal_screen as screen
from jaxcd.releases.tables.questions import MarginalsNoise, Question

__all__ = ["MarginalsNoise", "Purchase", "interactions_sensitivity", "pairs_sensitivity"]

Columns = tuple[int, ...]


def interactions_sensitivity(cardinalities: Columns, weights: Mapping[Columns, float]) -> float:
    r"""The L2 sensitivity (replace-one) of the interactions R_S times ``weights[S]``, taken
    together.

    The squared change is a sum over sets, and each set's is a function of which of its levels
    change; so the sensitivity is the root of

        max over sets F of changed columns of  sum over S of  w_S^2 |R_S - R'_S|^2 (F and S),

    see :func:`jaxcd.releases.tables.marginal_screen.squared_changes` and, for the largest sum,
    :func:`jaxcd.releases.tables.marginal_screen.largest_sum` (exact, unless it says that it is a
    little more).  The largest changes of single sets do not occur together: their sum is up to
    twice as large.
    """
    kinds = {s: tuple(cardinalities[j] for j in s) for s in weights}
    squared = screen.largest_sum(
        (s, w**2 * screen.squared_changes(kinds[s])) for s, w in weights.items()
    )
    return math.sqrt(squared) * (1 + 2.0**-40)


def pairs_sensitivity(cardinalities: Columns, *, absent: Collection[Columns] = ()) -> float:
    """At least the L2 sensitivity (replace-one) of the interactions of all columns and of all pairs
    but the absent ones.

    The squared change is a sum of terms that are not negative, so leaving some out makes it no
    larger; of the bounds for all and for those that are left
    (:func:`jaxcd.ops.moments.contrast_sensitivity`, :func:`interactions_sensitivity`) the smaller
    holds.
    """
    everything = moments.contrast_sensitivity(cardinalities, 1.0)
    if not absent:
        return everything
    left = dict.fromkeys(_columns_and_pairs(len(cardinalities), absent), 1.0)
    return min(everything, interactions_sensitivity(cardinalities, left))


def _columns_and_pairs(d: int, absent: Collection[Columns]) -> list[Columns]:
    pairs = itertools.combinations(range(d), 2)
    return [*((j,) for j in range(d)), *(pair for pair in pairs if pair not in absent)]


class Purchase:
    """The data with its accountant: interactions go out with noise, nothing else does."""

    def __init__(self, door: Door, accountant: Accountant, law: MarginalsNoise) -> None:
        self._door, self._accountant = door, accountant
        self.law = law
        self.cardinalities = tuple(k or 1 for k in door.domain.cardinalities)
        self.interactions: dict[Columns, np.ndarray] = {}
        self.variances: dict[Columns, float] = {}

    @property
    def n_samples(self) -> int:
        """n, which is public."""
        return self._door.n_samples

    @staticmethod
    def open(
        door: Door, accountant: Accountant, *, shares: Sequence[float]
    ) -> tuple[Purchase, tuple[float, ...]]:
        """The purchase, with the law that the budget allows, and the prices of its rounds."""
        ledger = accountant.ledger
        if not isinstance(ledger.budget, Budget):
            return Purchase(door, accountant, MarginalsNoise.GAUSSIAN), (math.inf,) * len(shares)
        law = MarginalsNoise.GAUSSIAN if ledger.budget.delta > 0 else MarginalsNoise.LAPLACE
        shop = Purchase(door, accountant, law)
        return shop, split(shop.left, shares)

    @property
    def left(self) -> float:
        """What is left to spend, of rho or, under Laplace noise, of epsilon."""
        ledger = self._accountant.ledger
        found: float = (
            ledger.remaining_rho
            if self.law is MarginalsNoise.GAUSSIAN
            else ledger.remaining_epsilon
        )
        return found

    def choice_within(self, price: float) -> float:
        """The largest epsilon of an exponential mechanism at this price."""
        if self.law is MarginalsNoise.LAPLACE:
            return price
        found: float = self._accountant.ledger.selection_within(price)
        return found

    def buy(
        self,
        weights: Mapping[Columns, float],
        *,
        sensitivity: float,
        price: float,
        label: str,
        tables: frozenset[Columns] = frozenset(),
    ) -> None:
        """Releases the interactions, or the tables in their place, times their weights, and adds
        what was learnt to what is known.

        Args:
            sensitivity: in L2 for a price in rho, in L1 for one in epsilon, of all that is released
                here.
        """
        sets = [s for s in weights if min(self.cardinalities[j] for j in s) > 1]
        for s in weights:
            # a column with one level: its interactions are empty
            if min(self.cardinalities[j] for j in s) == 1:
                self.interactions[s], self.variances[s] = (
                    np.zeros([self.cardinalities[j] - 1 for j in s]),
                    0.0,
                )
        if not sets:
            return
        question = Question(
            self.cardinalities,
            {s: weights[s] for s in sets},
            tables,
            self.law,
            sensitivity,
            price,
            label,
            # An entry is a sum of exact counts that add up to n, each with a product of numbers
            # below 1 as its factor.
            self.n_samples
            * 2.0**-48
            * max(weights.values())
            * max(map(len, sets))
            * (max(self.cardinalities) + 8),
        )
        noisy, variance = self._noisy(question)
        shapes = [question.shape(s) for s in sets]
        parts = np.split(noisy, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        for s, shape, values in zip(sets, shapes, parts, strict=True):
            learnt, v = values.reshape(shape) / weights[s], variance / weights[s] ** 2
            if s not in tables:
                self._learn(s, learnt, v)
                continue
            for places in subsets(tuple(range(len(s)))):
                others = tuple(place for place in range(len(s)) if place not in places)
                folded = math.prod(learnt.shape[place] for place in others)
                self._learn(
                    tuple(s[place] for place in places),
                    interaction(learnt.sum(axis=others)),
                    v * folded,
                )

    def _noisy(self, question: Question) -> tuple[np.ndarray, float]:
        """The values with noise, and its variance on each."""
        answer = self._door.answer(question, self._accountant)
        return answer.values, answer.variance

    def _learn(self, columns: Columns, values: np.ndarray, variance: float) -> None:
        """The inverse-variance mean of what was known and the new values."""
        before = self.variances.get(columns)
        if before is None:
            self.interactions[columns], self.variances[columns] = values, variance
        elif before > 0:
            share = before / (before + variance)
            self.interactions[columns] = share * values + (1 - share) * self.interactions[columns]
            self.variances[columns] = share * variance

    @property
    def pair_noise(self) -> float:
        """The largest standard deviation of the noise on the entries of a pair; 0 without
        privacy.
        """
        return math.sqrt(max((v for s, v in self.variances.items() if len(s) == 2), default=0.0))

    def buy_pairs(self, *, price: float, label: str, absent: Collection[Columns] = ()) -> None:
        """Releases all columns and pairs of columns; under Gaussian noise none of the absent pairs,
        so that there is less noise on the others.
        """
        weights = dict.fromkeys(_columns_and_pairs(len(self.cardinalities), absent), 1.0)
        tables: frozenset[Columns] = frozenset()
        if self.law is MarginalsNoise.GAUSSIAN:
            sensitivity = pairs_sensitivity(self.cardinalities, absent=absent)
        else:
            weights, tables, sensitivity = screen.pairs_for_laplace(self.cardinalities)
        self.buy(weights, tables=tables, sensitivity=sensitivity, price=price, label=label)

    def buy_sets(self, sets: Iterable[Columns], *, price: float, label: str) -> None:
        """Releases the interactions of the sets, all with the same noise; under Laplace noise the
        tables of those whose interactions move by more.
        """
        weights, tables = dict.fromkeys(sets, 1.0), frozenset[Columns]()
        if self.law is MarginalsNoise.GAUSSIAN:
            sensitivity = interactions_sensitivity(self.cardinalities, weights)
        else:
            tables, sensitivity = screen.sets_for_laplace(self.cardinalities, list(weights))
        self.buy(weights, tables=tables, sensitivity=sensitivity, price=price, label=label)

    def buy_families(self, families: Sequence[Columns], *, price: float, label: str) -> None:
        """Releases what the families' tables need, each interaction as precisely as it is worth."""
        known = {s: v for s, v in self.variances.items() if v > 0}
        precisions = screen.allocate(families, self.cardinalities, known, rho=price)
        if precisions:
            largest = max(precisions.values())
            weights = {s: math.sqrt(x / largest) for s, x in precisions.items()}
            self.buy(
                weights,
                sensitivity=interactions_sensitivity(self.cardinalities, weights),
                price=price,
                label=label,
            )

    def buy_tables(self, tables: Sequence[Columns], *, price: float, label: str) -> None:
        """Releases whole tables of counts: each moves by 2 in L1, and all do if all levels
        change.
        """
        if tables:
            sensitivity = screen.COUNTED_CHANGE * len(tables)
            self.buy(
                dict.fromkeys(tables, 1.0),
                tables=frozenset(tables),
                sensitivity=sensitivity,
                price=price,
                label=label,
            )
