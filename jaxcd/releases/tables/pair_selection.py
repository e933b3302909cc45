r"""The private choice of the pairs that a model explains worst.

The score of a pair with counts T, where a model expects M, is

    q = sum over cells of |T - M|  -  sum over cells of sqrt(2 M (1 - M / n) / pi),

how far the pair is from the model, less what n rows scatter around it on average.  The exponential
mechanism draws one pair after the other, each among those that were not drawn before.

*Sensitivity.*  M and n are public.  Between neighbours (replace-one) T changes by 2 in L1: one row
leaves a cell and another comes to one.  Where the unit is a person, the rows of each share the
weight 1, and the same holds.  So by the triangle inequality every score moves by at most 2.

Source:
    McSherry and Talwar 2007 for the mechanism; McKenna, Mullins, Sheldon, Miklau 2022 for scores by
    what a model explains worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxcd.privacy import VECTOR_GRID, Accountant, select_max
from jaxcd.queries import Door
from jaxcd.releases.tables.marginal_screen import COUNTED_CHANGE

__all__ = ["PairChoice"]

Pair = tuple[int, int]


class PairChoice:
    """The pairs that are still to be had, with the counts of all.

    Args:
        door: to the rows, which are counted once.
        accountant: of the run, with Gaussian noise.
        pairs: to choose from.
        rho: the price of one choice.
    """

    def __init__(
        self, door: Door, accountant: Accountant, pairs: Sequence[Pair], *, rho: float
    ) -> None:
        self._accountant, self._n, self._units = accountant, door.n_samples, door.units
        self.left = list(pairs)
        self._places = {pair: place for place, pair in enumerate(pairs)}
        self._counts = door.counts(self.left)
        self._epsilon = accountant.ledger.selection_within(rho)

    def take(
        self, n_pairs: int, expected: Callable[[Pair], np.ndarray], *, label: str
    ) -> list[Pair]:
        """Draws pairs, and takes them out of those that are left.

        Args:
            n_pairs: how many.
            expected: the counts that the model expects of a pair, flat.
            label: public words.

        Guarantee:
            Relation: replace-one; n, the pairs and what the model expects are public.  Sensitivity:
            2 for every score.  Event: one ``ExponentialMechanismEvent`` a pair.  Proof: above, and
            :func:`jaxcd.privacy.select_max`.
        """
        means = [expected(pair) for pair in self._places]
        # a score is a sum of so many numbers of at most 2 n
        pad = self._n * 2.0**-48 * (8 + max(map(len, means), default=0))
        scores = self._counts.map(lambda counts: self._scores(counts, means))
        taken = []
        for _ in range(min(n_pairs, len(self.left))):
            chosen = select_max(
                self._accountant,
                scores[[self._places[pair] for pair in self.left]],
                sensitivity=COUNTED_CHANGE,
                epsilon=self._epsilon,
                pad=pad,
                label=label,
                grid=VECTOR_GRID,
            )
            taken.append(self.left.pop(chosen))
        return taken

    def _scores(self, counts: Sequence[np.ndarray], means: Sequence[np.ndarray]) -> np.ndarray:
        """Of all pairs, those that were taken among them."""
        return np.array(
            [
                np.abs(count.ravel() / self._units - mean).sum()
                - np.sqrt(np.maximum(mean * (1 - mean / self._n), 0.0) * (2 / math.pi)).sum()
                for count, mean in zip(counts, means, strict=True)
            ]
        )
