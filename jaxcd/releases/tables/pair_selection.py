r"""The private choice of the pairs that a model explains worst.

The score of a pair with counts T, where a model expects M, is

    q = sum over cells of |T - M|  -  sum over cells of sqrt(2 M (1 - M / n) / pi),

how far the pair is from the model, less what n rows scatter around it on average.  With several
models of a pair it is the smallest q: what the best of them leaves.  The exponential mechanism
draws one pair after the other, each among those that were not drawn before.

*Sensitivity.*  M and n are public.  Between neighbours (replace-one) T changes by 2 in L1: one row
leaves a cell and another comes to one.  Where the unit is a person, the rows of each share the
weight 1, and the same holds.  So by the triangle inequality every q moves by at most 2, and so does
the smallest of several.

Source:
    McSherry and Talwar 2007 for the mechanism; McKenna, Mullins, Sheldon, Miklau 2022 for scores by
    what a model explains worst.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from jaxcd.privacy import VECTOR_GRID, Accountant, Sensitive, select_top, split
from jaxcd.queries import Door
from jaxcd.releases.tables.interactions_kind import KnownPairs
from jaxcd.releases.tables.marginal_purchase import Purchase
from jaxcd.releases.tables.marginal_screen import COUNTED_CHANGE
from jaxcd.releases.tables.pair_models import Expected, by_levels

__all__ = ["PairChoice", "buy_chosen"]

Pair = tuple[int, int]
# The price of a choice is rounded up: so much less is asked for that a sum of them fits.
_ROUNDED = 1 - 2.0**-40


class PairChoice:
    """The pairs that are still to be had, with the counts of all.

    Args:
        door: to the rows, which are counted once.
        accountant: of the run, with Gaussian noise.
        pairs: to choose from.
        epsilon: of one choice.
    """

    def __init__(
        self, door: Door, accountant: Accountant, pairs: Sequence[Pair], *, epsilon: float
    ) -> None:
        self._accountant, self._n = accountant, door.n_samples
        self.left = list(pairs)
        self._places = {pair: place for place, pair in enumerate(pairs)}
        levels = [column or 1 for column in door.domain.cardinalities]
        # all pairs of a kind in one array, which makes sums over cells quick
        alike = by_levels(pairs, levels)
        self._kinds = {kind: {p: row for row, p in enumerate(some)} for kind, some in alike.items()}
        units = door.units
        self._counts = door.counts(list(pairs)).map(
            lambda counts: {
                kind: np.stack([counts[self._places[pair]] for pair in some]) / units
                for kind, some in self._kinds.items()
            }
        )
        self._scores = self._counts.map(lambda _: np.full(len(pairs), math.inf))
        self._epsilon = epsilon * _ROUNDED

    def compare(self, models: Iterable[Expected], *, anew: bool = False) -> None:
        """Scores pairs by what models expect of them.

        Args:
            models: what they expect; public.  Every pair needs one before pairs are taken.
            anew: whether models that were compared before are forgotten.
        """

        def least(counts: Mapping[Pair, np.ndarray], before: np.ndarray) -> np.ndarray:
            scores = np.full_like(before, math.inf) if anew else before.copy()
            for pairs, expected in models:
                kind = expected.shape[1:]
                rows = [self._kinds[kind][pair] for pair in pairs]
                places = [self._places[pair] for pair in pairs]
                np.minimum.at(scores, places, self._distances(counts[kind][rows], expected))
            return scores

        self._scores = Sensitive.joined([self._counts, self._scores], least)

    def take(self, n_pairs: int, *, label: str) -> list[Pair]:
        """Draws pairs, and takes them out of those that are left.

        Args:
            n_pairs: how many.
            label: public words.

        Guarantee:
            Relation: replace-one; n, the pairs and what the models expect are public.  Sensitivity:
            2 for every score.  Event: one ``ExponentialMechanismEvent`` of so many choices.  Proof:
            above, and :func:`jaxcd.privacy.select_top`.
        """
        # a score is a sum of so many numbers of at most 2 n
        pad = self._n * 2.0**-48 * (8 + max((a * b for a, b in self._kinds), default=0))
        chosen = select_top(
            self._accountant,
            self._scores[[self._places[pair] for pair in self.left]],
            size=n_pairs,
            sensitivity=COUNTED_CHANGE,
            epsilon=self._epsilon,
            pad=pad,
            label=label,
            grid=VECTOR_GRID,
        )
        taken = [self.left[place] for place in chosen]
        gone = set(chosen)
        self.left = [pair for place, pair in enumerate(self.left) if place not in gone]
        return taken

    def _distances(self, counts: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """q of each pair, (m,)."""
        scatter = np.sqrt(np.maximum(expected * (1 - expected / self._n), 0.0) * (2 / math.pi))
        found: np.ndarray = (np.abs(counts - expected) - scatter).sum(axis=(1, 2))
        return found


def buy_chosen(
    shop: Purchase,
    door: Door,
    accountant: Accountant,
    known: KnownPairs,
    models: Callable[[list[Pair], list[Pair]], Iterable[Expected]],
    *,
    n_selected: int,
    n_rounds: int,
    shares: Sequence[float],
    anew: bool = False,
) -> tuple[float, ...]:
    """Buys all columns, and pairs that a model of what is known explains worst, in rounds.

    Args:
        shop: where they are bought.
        door: to the rows.
        accountant: of the run.
        known: pairs that are not to be had, and those that are bought without being chosen.
        models: of the pairs that were bought last, none before the first round, and of those that
            are left: what models expect of these.
        n_selected: how many pairs.
        n_rounds: at most.
        shares: of what is left to spend: the columns, the choices, the chosen pairs, what comes
            later.
        anew: whether the models of a round take the place of those before.

    Returns:
        The prices of what comes later.
    """
    of_singles, of_choices, of_pairs, *later = split(shop.left, shares)
    levels = shop.cardinalities
    singles = [(j,) for j in range(len(levels))]
    shop.buy_sets(singles, price=of_singles, label="round 1: all columns")
    several = [j for j, number in enumerate(levels) if number > 1]
    barred = {*known.absent, *known.kept}
    pairs = [pair for pair in itertools.combinations(several, 2) if pair not in barred]
    n_selected = min(n_selected, len(pairs))
    epsilon = shop.choice_within(of_choices / max(1, n_selected))
    choice = PairChoice(door, accountant, pairs, epsilon=epsilon)
    sizes = [len(part) for part in np.array_split(np.arange(n_selected), n_rounds) if len(part)]
    # pairs cost the same in every round; those that are kept come with the first, or alone
    sizes = sizes or [0] * bool(known.kept)
    kept = [len(known.kept), *[0] * len(sizes)]
    numbers = [float(size + more) for size, more in zip(sizes, kept, strict=False)]
    prices = split(of_pairs, numbers) if numbers else ()
    bought: list[Pair] = []
    for place, (size, price) in enumerate(zip(sizes, prices, strict=True)):
        of_round = f"round 1, part {place + 1} of {len(sizes)}"
        choice.compare(models(bought, choice.left), anew=anew)
        bought = choice.take(size, label=f"{of_round}: choice of a pair") if size else []
        if place == 0:
            bought += known.kept
        shop.buy_sets(bought, price=price, label=f"{of_round}: chosen pairs")
    return tuple(later)
