r"""How often a method is right: weighted accuracy with an interval, and accuracy against the share
of pairs decided.

With weights w_i (pairs from one source share a weight of 1) the accuracy is sum_i w_i 1{right_i} /
sum_i w_i.  An answer UNDECIDED counts one half: it is what a fair coin would earn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxcd.errors import DataError, OptionError
from jaxcd.pairwise.pairs import CausePair, PairCollection
from jaxcd.pairwise.result import Direction, PairResult

__all__ = ["PairAccuracy", "pair_accuracy", "pair_accuracy_of"]


@dataclass(frozen=True, eq=False)
class PairAccuracy:
    """The accuracy over pairs with known answers.

    Args:
        accuracy: weighted share of right answers, in [0, 1].
        lower: the Clopper-Pearson interval at ``confidence``.
        upper: as ``lower``.
        n_pairs: with a positive weight.
        effective: the number of pairs that the interval counts.
        decision_rates: the weighted accuracy among the surest pairs (largest margin first) that
            make up this share of the weight; one point a distinct margin, ending at rate 1.
        accuracies: as ``decision_rates``.
        area: under that curve; from 0 to the first rate it is flat.
        confidence: of the interval, between 0 and 1.
    """

    accuracy: float
    lower: float
    upper: float
    confidence: float
    n_pairs: int
    effective: float
    decision_rates: np.ndarray
    accuracies: np.ndarray
    area: float

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.3f} [{self.lower:.3f}, {self.upper:.3f}] over "
            f"{self.n_pairs} pairs "
            f"({self.effective:.1f} effective), area {self.area:.3f}"
        )


def pair_accuracy(
    results: Sequence[PairResult],
    truths: Sequence[Direction],
    weights: Sequence[float] | np.ndarray | None = None,
    *,
    confidence: float = 0.95,
) -> PairAccuracy:
    r"""The weighted accuracy, its interval, and the curve of accuracy against decision rate.

    The interval is Clopper and Pearson's for N successes a and failures N - a that need not be
    whole,

        lower = BetaInv(t; a, N - a + 1),  upper = BetaInv(1 - t; a + 1, N - a),  t =
        (1 - confidence) / 2,

    with a = N accuracy and N = (sum w)^2 / sum w^2 the effective number of pairs (Kish): the
    weighted mean of independent answers has the variance of a mean of N.  Equal weights and no
    undecided answer give the exact interval.  Pairs from one source are treated as independent,
    which their weights only partly make up for.

    Args:
        results: one a pair.
        truths: X_TO_Y or Y_TO_X a pair.
        weights: from 0, not all 0; None weighs all alike.
        confidence: in (0, 1).

    Returns:
        The accuracy; ties in the margin enter the curve together.

    Raises:
        DataError: lengths differ, there is no pair, a truth is not a direction, or weights are
            negative or all zero.
        OptionError: ``confidence`` is not in (0, 1).

    Source:
        Clopper and Pearson 1934; Kish 1965; Mooij et al. 2016 for weights and decision rates.
    """
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence!r} is not in (0, 1); give 0.95")
    share = np.ones(len(results)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(results) == len(truths) == len(share) or not len(results):
        raise DataError(
            f"results, truths and weights must be one a pair, got {len(results)}, {len(truths)} "
            f"and {len(share)}: give all for the same pairs"
        )
    if not (np.all(share >= 0) and 0 < share.sum() < math.inf):
        raise DataError(
            "weights must be numbers from 0 that are not all 0: give the weights of the collection"
        )
    unknown = [truth for truth in truths if truth not in (Direction.X_TO_Y, Direction.Y_TO_X)]
    if unknown:
        raise DataError(
            f"truths hold {unknown[0]!r}, which is no direction: leave out pairs that are not "
            "causal"
        )
    answers = [result.direction for result in results]
    right = np.array(
        [
            0.5 if answer is Direction.UNDECIDED else float(answer is truth)
            for answer, truth in zip(answers, truths, strict=True)
        ]
    )
    counted = share > 0
    share, right = share[counted], right[counted]
    margins = np.array([result.margin for result in results], dtype=np.float64)[counted]
    accuracy = float(np.average(right, weights=share))
    effective = float(share.sum() ** 2 / (share**2).sum())
    tail = (1 - confidence) / 2
    won, lost = effective * accuracy, effective * (1 - accuracy)
    rates, accuracies = _curve(share, right, margins)
    return PairAccuracy(
        accuracy=accuracy,
        lower=float(special.betaincinv(won, lost + 1, tail)) if won > 0 else 0.0,
        upper=float(special.betaincinv(won + 1, lost, 1 - tail)) if lost > 0 else 1.0,
        confidence=confidence,
        n_pairs=len(share),
        effective=effective,
        decision_rates=rates,
        accuracies=accuracies,
        area=float(rates[0] * accuracies[0] + np.trapezoid(accuracies, rates)),
    )


def pair_accuracy_of(
    results: Sequence[PairResult],
    pairs: PairCollection | Iterable[CausePair],
    *,
    confidence: float = 0.95,
) -> PairAccuracy:
    """:func:`pair_accuracy` with the truths and weights of the pairs; every pair must be causal.

    Args:
        results: one a pair, such as :func:`jaxcd.pairwise.over_pairs` returns.
        pairs: the pairs, in the same order.
        confidence: of the interval, between 0 and 1.

    Returns:
        The accuracy with its interval.
    """
    known = list(pairs.pairs if isinstance(pairs, PairCollection) else pairs)
    truths = [
        pair.direction if pair.direction is not None else Direction.UNDECIDED for pair in known
    ]
    return pair_accuracy(results, truths, [pair.weight for pair in known], confidence=confidence)


def _curve(
    share: np.ndarray, right: np.ndarray, margins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-margins, kind="stable")
    weight, won = np.cumsum(share[order]), np.cumsum((share * right)[order])
    sorted_margins = margins[order]
    # the last of each group of equal margins
    last = np.append(sorted_margins[1:] != sorted_margins[:-1], True)
    return weight[last] / weight[-1], won[last] / weight[last]
