r"""Propose-test-release and stability-based release: exact-looking answers on data sets that are
far from any trouble.

Both fail with a small probability, which is charged as a :class:`jaxcd.privacy.events.FailureEvent`
beside their pure events, to a ledger that has set a part of delta aside for failures.

Guarantee:
    Call a mechanism (e, d)-tame if, for every pair of neighbours D, D' and given the past, either
    it is e-DP between them, or both its runs are the same random output, except on an event that
    has probability at most d under each. Then for adaptively chosen tame mechanisms with sum e_i <=
    epsilon and sum d_i <= delta the whole is (epsilon, delta)-DP.  *Proof.*  Let F be the
    transcripts in which an exceptional event happens.  Under D, P[F] <= sum d_i <= delta, by the
    union bound over the (at most sum d_i) conditional probabilities.  Outside F the conditional
    likelihood ratio of each step is at most e^{e_i} (in the first case) or 1 (in the second), hence
    P[S \ F] <= e^epsilon P'[S \ F] for all S, and P[S] <= delta + e^epsilon P'[S].  The number of
    steps may depend on the past: both sums are kept by filters.  QED.  A pure mechanism is tame
    with d = 0; :mod:`jaxcd.privacy.ledger` has the case beside zCDP events.

Source:
    Dwork and Lei 2009; Dwork and Roth 2014, section 7 (algorithm 13); Kusner, Sun, Sridharan,
    Weinberger 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..checks import check_count, check_positive, check_share
from ..errors import OptionError
from .accountant import Accountant
from .budget import Budget, NoPrivacy, Relation
from .claims import GuaranteeClaim, claiming
from .events import FailureEvent
from .mechanisms import laplace

__all__ = ["StableAnswer", "propose_test_release", "stability_threshold", "stable_release"]


@dataclass(frozen=True)
class StableAnswer:
    """value: what is released, or None where a test said no.  scale: of the Laplace noise in it, 0
    where it is exact.
    """

    value: float | None
    scale: float


def stability_threshold(epsilon: float, probability: float) -> int:
    """The least whole k >= 1 with P[X >= k] <= probability, X discrete Laplace noise of scale 1 /
    epsilon.

    P[X >= k] = a^k / (1 + a), a = e^-epsilon: about ln(1 / (2 probability)) / epsilon.  Continuous
    noise would have a / (1 + a) = 1 / 2 here; on the integers the exact tail is used, because ln(1
    / delta) / epsilon alone could be too low by the factor 2 / (1 + a).
    """
    epsilon = check_positive("epsilon", epsilon)
    probability = check_share("probability", probability)
    k = max(
        1, math.ceil((-math.log(probability) - math.log1p(math.exp(-epsilon))) / epsilon - 1e-6)
    )
    # One more covers the rounding of the line above and of the noise's scale, which is rounded up
    # by one unit in the last place.
    return (
        k
        if math.exp(-epsilon * k) / (1 + math.exp(-epsilon)) <= probability * (1 - 1e-9)
        else k + 1
    )


def _noisy_distance(
    accountant: Accountant, distance: int, *, epsilon: float, label: str, relation: Relation
) -> int:
    array = np.array(distance, dtype=np.int64)
    noisy = laplace(
        accountant,
        array,
        sensitivity=1.0,
        epsilon=epsilon,
        grid=1.0,
        label=f"{label}: stability",
        relation=relation,
    )
    return int(noisy)


@claiming(GuaranteeClaim("(3 epsilon, delta), charged to an account of epsilon and one of delta"))
def propose_test_release(
    accountant: Accountant,
    value: float | None,
    *,
    exits: tuple[int, int],
    width: float,
    epsilon: float,
    delta: float,
    label: str,
    relation: Relation = Relation.REPLACE_ONE,
) -> StableAnswer:
    r"""Release a number whose worst-case sensitivity is unbounded, on data sets where it is stable.

    The line is cut into bins of ``width``, twice: [k w, (k + 1) w) and the same shifted by w / 2.
    A_j is the number of records that must be replaced to take the value out of its bin of cutting
    j, at least 1.  With noise of scale 1 / epsilon,

        no answer if A_1 + X_1 < 1 + k  and  A_2 + X_2 < 1 + k,  else  value + Lap(width / epsilon),

    k = :func:`stability_threshold` (epsilon, delta / 2).  The 1 is needed, because A_j counts the
    changes that leave the bin, and is 1, not 0, next to a neighbour outside.

    Args:
        accountant: its ledger has a part of delta for failures.
        value: sensitive; None where there is none.
        exits: A_1 and A_2; sensitive.
        width: w, positive: the local sensitivity that is proposed.
        epsilon: of each of the three parts.
        delta: in (0, 1), for both tests together.
        label: public words for the report.
        relation: of the exits.

    Returns:
        The answer; None for no answer.

    Raises:
        BudgetExhausted: the budget has no room; nothing was drawn.
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: ``relation``.  Sensitivity: A_j is 1-Lipschitz and 1 where a neighbour is in
        another bin (the caller proves it; any lower bound with both properties will do).  Event:
        three ``PureEvent(epsilon)``, always charged, and delta: together (3 epsilon, delta).
        Public: width, epsilon, delta, labels. Proof: if the values of neighbours differ by at most
        ``width``, the three mechanisms are epsilon-DP each, and the answer follows from them.  If
        they differ by more, they lie in different bins of both cuttings: A_1 = A_2 = 1 for both,
        and each test passes with probability P[X >= k] <= delta / 2 for both; otherwise both give
        no answer.  So it is tame (module docstring). A value of None (none is defined, such as the
        logarithm of 0) gets no answer with certainty; then a neighbour with a value must have A_1 =
        A_2 = 1, and the same case applies.

    Source:
        Dwork and Lei 2009; the bins of Kusner et al. 2016.
    """
    width, delta = check_positive("width", width), check_share("delta", delta)
    threshold = 1 + stability_threshold(epsilon, delta / 2)
    for place in exits:
        check_count(
            "exits",
            place,
            minimum=1,
            cure="count the records to replace, 1 for a neighbour outside the bin",
        )
    accountant.charge(FailureEvent(delta, label, relation))
    distances = [
        _noisy_distance(
            accountant,
            int(place),
            epsilon=epsilon,
            label=f"{label}, bins {j + 1}",
            relation=relation,
        )
        for j, place in enumerate(exits)
    ]
    noisy = laplace(
        accountant,
        np.array(0.0 if value is None else value, dtype=np.float64),
        sensitivity=width,
        epsilon=epsilon,
        label=f"{label}: value",
        relation=relation,
        withheld=True,  # where a test says no it has no bound, and nobody may see it
    )
    passed = value is not None and max(distances) >= threshold
    return StableAnswer(float(noisy) if passed else None, width / epsilon)


@claiming(GuaranteeClaim("(epsilon, delta), charged to an account of epsilon and one of delta"))
def stable_release(
    accountant: Accountant,
    value: float,
    *,
    distance: int,
    epsilon: float,
    delta: float,
    label: str,
    relation: Relation = Relation.REPLACE_ONE,
) -> StableAnswer:
    r"""Release a value exactly if no record near the data can change it, else nothing.

    d is a lower bound on the number of records to replace before the data set is unstable (has a
    neighbour with another value): 1-Lipschitz and 0 on unstable data sets.  Released iff
    d + X >= k, k = :func:`stability_threshold` (epsilon, delta).

    Args:
        accountant: its ledger has a part of delta for failures.
        value: sensitive, any number.
        distance: d >= 0; sensitive.
        epsilon: positive.
        delta: in (0, 1).
        label: public words for the report.
        relation: of the distance.

    Returns:
        The answer; None for no answer.

    Raises:
        BudgetExhausted: the budget has no room; nothing was drawn.
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: ``relation``.  Sensitivity: 1 of the distance.  Event: ``PureEvent(epsilon)`` and
        delta: (epsilon, delta).  Public: epsilon, delta, labels.  Proof: if neighbours have the
        same value, the answer follows from the noisy distance.  If not, both are unstable, d = 0
        for both, and each releases with the same probability P[X >= k] <= delta: tame (module
        docstring).

    Source:
        Dwork and Roth 2014, algorithm 13.
    """
    threshold = stability_threshold(epsilon, check_share("delta", delta))
    check_count("distance", distance, cure="count records, 0 for an unstable data set")
    accountant.charge(FailureEvent(delta, label, relation))
    noisy = _noisy_distance(
        accountant, int(distance), epsilon=epsilon, label=label, relation=relation
    )
    return StableAnswer(float(value) if noisy >= threshold else None, 0.0)


def no_stability_budget(budget: Budget | NoPrivacy, *, what: str) -> None:
    """Raise OptionError unless the budget has a delta: a release of this kind fails with a small
    probability, and delta is it.
    """
    if isinstance(budget, Budget) and not budget.delta > 0:
        raise OptionError(
            f"delta = 0: {what} fails with a small probability; use a budget with delta such as "
            "1e-6"
        )
