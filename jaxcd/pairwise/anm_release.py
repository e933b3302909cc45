r"""From scores to an answer: what is drawn, what it costs, and how sure the answer is.

Let g = backward - forward be the difference of the scores (forward wins iff g > 0), |g(D) - g(D')|
<= 2 Delta.

* *Direction*: v = g + Lap(s), s = 2 Delta / epsilon, is epsilon-DP, and so are its sign and size.
  P[wrong sign | g] = e^{-|g| / s} / 2.
* *Scores*: both with Lap(s), the same s, because the L1 sensitivity of the two is 2 Delta.  Their
  difference has two such noises: P[wrong | g] = (2 + t) e^{-t} / 4, t = |g| / s (PRIVACY.md I1,
  I2).
* *Four log ranges*, each with Lap(s): P[wrong | g] = (48 + 33 t + 9 t^2 + t^3) e^{-t} / 96, the
  tail of a sum of four (I2, theorem 4 with the exponent the right way up).

**Confidence.**  The noise is symmetric and independent of g, so for a released difference v the
same functions at |v| are the posterior probability of a wrong sign under a flat prior of g.  They
are functions of v: post-processing.

**Halves.**  With a split, a mechanism that is epsilon-DP in the test rows for all training rows,
and the other way round, is epsilon-DP for all records: a replaced record is in one half.  Delta is
the larger of the two, and one event pays for both.  Jointly (each row both trains and tests) first
the record's own pair (cause, residual) is replaced, then the others' residuals move: the sum.

Source:
    Kusner, Sun, Sridharan, Weinberger 2016; PRIVACY.md D, F2, I.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.pairwise.anm_columns import DirectionColumns, Plan
from jaxcd.pairwise.anm_hsic import HSIC_NUMERICAL_ERROR, Series, hsic_record_sensitivity, series
from jaxcd.pairwise.anm_quartiles import (
    QuartileRange,
    Reach,
    bin_exits,
    flip_distance,
    quartile_places,
)
from jaxcd.pairwise.anm_scores import (
    AnmScore,
    HSICScore,
    IQRMechanism,
    LogIQRScore,
    Protect,
    ScoreRelease,
    _RankScore,
)
from jaxcd.pairwise.result import Direction, PairResult
from jaxcd.privacy import (
    Accountant,
    Budget,
    NoiseSampler,
    PrivacyCost,
    PrivacyFilter,
    laplace,
    open_account,
    select_max,
    split,
)
from jaxcd.privacy.propose_test_release import propose_test_release, stable_release

__all__ = [
    "PrivateRun",
    "default_mechanism",
    "error_probability",
    "hsic_series",
    "log_range",
    "private_result",
    "probability_of_other_sign",
    "score_sensitivity",
    "stable_distance",
]

_RANGE_LIMIT = (
    4.0  # of the exponential mechanism's grid, in standard deviations of the training rows
)

#: Rank scores and HSIC of kernels up to 1 lie between 0 and 1.
_LARGEST = 1.0

Pair = tuple[DirectionColumns, DirectionColumns]


@dataclass(frozen=True)
class PrivateRun:
    """The public part of a private run: what is released, the budget, the noise, the plan, what the
    report says of it, and the ledger above it."""

    release: ScoreRelease
    budget: Budget
    noise: NoiseSampler
    plan: Plan
    info: Mapping[str, Any]
    ledger: PrivacyFilter | None = None

    def account(self, score: AnmScore, *, failures: bool = False) -> Accountant:
        """The accountant of this run; ``failures``: all of delta is for mechanisms that may
        fail.
        """
        part = self.budget.delta if failures else 0.0
        return open_account(
            self.budget,
            self.noise,
            ledger=self.ledger,
            parts=(score,),
            failure_delta=part,
            pure=True,
            analysis="anm",
            n_samples=self.plan.n_samples,
            condition=_condition(self.plan),
        )

    def answer(
        self,
        difference: float | None,
        accountant: Accountant,
        *,
        n_noises: int,
        scale: float,
        largest: float = math.inf,
        scores: tuple[float, float] | None = None,
        **info: Any,
    ) -> PairResult:
        """The result for a released difference, backward - forward; None: no answer.  n_noises:
        Laplace noises in it, 0 if of no known law.  largest: no exact difference is larger.
        """
        direction, margin, confidence = Direction.UNDECIDED, 0.0, None
        if difference is not None:
            direction = (
                Direction.X_TO_Y
                if difference > 0
                else Direction.Y_TO_X
                if difference < 0
                else direction
            )
            margin = abs(difference)
            if n_noises:
                wrong = (
                    probability_of_other_sign(margin / scale, largest / scale, n_noises=n_noises)
                    if scale > 0
                    else 0.0
                )
                confidence = 1 - wrong
        account = accountant.ledger
        shown = scores if self.release is ScoreRelease.SCORES else None
        return PairResult(
            direction=direction,
            margin=margin,
            forward=None if shown is None else shown[0],
            backward=None if shown is None else shown[1],
            confidence=confidence,
            cost=_whose(accountant.guarantee, self.plan),
            spent=_whose(account.spent, self.plan),
            info={**self.info, **info, "noise_scale": scale, "ledger": tuple(account.to_table())},
        )


def error_probability(ratio: float, *, n_noises: int) -> float:
    """P[a sum of n Laplace noises of scale 1 exceeds ratio], ratio >= 0, for n = 1, 2 or 4."""
    return _factor(ratio, n_noises) * math.exp(-ratio) if ratio < 700 else 0.0


def _factor(t: float, n_noises: int) -> float:
    """That probability times e^t."""
    return {1: 0.5, 2: (2 + t) / 4, 4: (48 + 33 * t + 9 * t * t + t**3) / 96}[n_noises]


def probability_of_other_sign(ratio: float, largest: float, *, n_noises: int) -> float:
    """P[the exact difference has the other sign], where with noises it came out as ratio, and every
    value up to ``largest`` on either side is as likely beforehand; all by the noise's scale.

    A half where the noise drowns all that the difference can be, and at most that.
    """
    if math.isinf(largest):
        return error_probability(ratio, n_noises=n_noises)
    if largest < 1e-12:
        return 0.5

    def exceeds(t: float, shift: float) -> float:
        """P[noise > t] e^shift."""
        # With next to no noise t has no cube; all such t are as good as endless.
        return _factor(min(t, 1e100), n_noises) * math.exp(shift - t) if t - shift < 745 else 0.0

    # All terms times e^shift, or a released number far beyond what can be would give 0 / 0.
    shift = max(ratio - largest, 0.0)
    beyond = exceeds(ratio + largest, shift)
    other = exceeds(ratio, shift) - beyond
    near = ratio - largest
    both = (exceeds(near, shift) if near >= 0 else 1 - exceeds(-near, 0.0)) - beyond
    return min(other / both, 0.5)


def log_range(columns: DirectionColumns) -> float:
    """log IQR(cause) + log IQR(residual); minus infinity where one of them is 0."""
    ranges = [
        QuartileRange(values, Reach.VALUES).range for values in (columns.cause, columns.residual)
    ]
    return sum(math.log(r) if r > 0 else -math.inf for r in ranges)


def hsic_series(score: HSICScore, columns: DirectionColumns) -> tuple[Series, Series]:
    """The kernels of cause and residual: from the training rows where these may be looked at, else
    the public ones.
    """
    if columns.cause_distance is None or columns.residual_distance is None:
        widths = score.cause_bandwidth, score.residual_bandwidth
    else:
        widths = (
            score.cause_multiple * columns.cause_distance,
            score.residual_multiple * columns.residual_distance,
        )
    return series(reach=1.0, bandwidth=widths[0]), series(reach=columns.reach, bandwidth=widths[1])


def score_sensitivity(score: AnmScore, plan: Plan) -> float | None:
    """Delta: how far one protected record moves a score; None where nothing bounds it."""
    if isinstance(score, _RankScore):
        return score.test_sensitivity(plan.n_test) if plan.protect is Protect.TEST else None
    if not isinstance(score, HSICScore):
        return None
    record = hsic_record_sensitivity(plan.n_test)
    if plan.protect is Protect.TEST:
        return record
    lipschitz = series(reach=2.0, bandwidth=score.residual_bandwidth).lipschitz * (1 + 1e-9)
    if plan.joint:
        return min(record + lipschitz * plan.rms_shift, 0.5 + 1e-4)
    training = min(lipschitz * plan.sup_shift, 0.5 + 1e-4)
    return training if plan.protect is Protect.TRAIN else max(record, training)


def stable_distance(pair: Pair, shift: float) -> int:
    """A lower bound on the training records to replace before the order of residuals can change:
    max(0, ceil(gap / (2 shift)) - 1).

    gap: the least distance of two residuals, of either direction.  1-Lipschitz, because a record
    moves the gap by at most 2 shift, and 0 where one record can make two residuals meet (gap <= 2
    shift).
    """
    gap = min(float(np.diff(np.sort(columns.residual)).min()) for columns in pair)
    return max(0, math.ceil(min(gap / (2 * shift), 1e9)) - 1)


def _condition(plan: Plan) -> str:
    """Whom the run does not protect, in words; "" where it protects all."""
    half = {Protect.TEST: ("test", "training"), Protect.TRAIN: ("training", "test")}
    if plan.protect not in half:
        return ""
    kept, open_half = half[plan.protect]
    return f"for the {kept} half only, the {open_half} half is not protected"


def _whose(cost: PrivacyCost, plan: Plan) -> PrivacyCost:
    condition = _condition(plan)
    if not condition:
        return cost
    return dataclasses.replace(cost, reason=f"{condition}; {cost.reason}")


def private_result(
    score: AnmScore, run: PrivateRun, pair: Pair, values: tuple[float, float]
) -> PairResult:
    """Charge, draw and answer.  values: the exact forward and backward scores (of rank and kernel
    scores); sensitive.
    """
    plan = run.plan
    if isinstance(score, LogIQRScore):
        mechanism = score.mechanism or default_mechanism(run.release, plan.protect)
        by = {
            IQRMechanism.FLIP_DISTANCE: _flip,
            IQRMechanism.PROPOSE_TEST_RELEASE: _proposed,
            IQRMechanism.EXPONENTIAL: _quartiles,
        }
        return by[mechanism](score, run, pair)
    sensitivity = score_sensitivity(score, plan)
    if sensitivity is None:
        return _stable(score, run, pair, values)
    accountant = run.account(score)
    pad = HSIC_NUMERICAL_ERROR
    epsilon = accountant.ledger.epsilon_limit
    scale = 2 * (sensitivity + 4 * pad) / epsilon
    shared: dict[str, Any] = dict(epsilon=epsilon, sensitivity=2 * sensitivity)
    if run.release is ScoreRelease.SCORES:
        noisy = laplace(
            accountant, np.array(values), pad=pad, label=f"{score.name} scores", **shared
        )
        scores = float(noisy[0]), float(noisy[1])
        return run.answer(
            scores[1] - scores[0],
            accountant,
            n_noises=2,
            scale=scale,
            largest=_LARGEST,
            scores=scores,
            sensitivity=sensitivity,
        )
    exact = np.array(values[1] - values[0])
    difference = float(
        laplace(
            accountant, exact, pad=2 * pad, label=f"difference of {score.name} scores", **shared
        )
    )
    return run.answer(
        difference, accountant, n_noises=1, scale=scale, largest=_LARGEST, sensitivity=sensitivity
    )


def default_mechanism(release: ScoreRelease, protect: Protect | None) -> IQRMechanism:
    """Flip distance for a direction; for scores the exponential mechanism on the test side, else
    propose-test-release.
    """
    if release is ScoreRelease.DIRECTION:
        return IQRMechanism.FLIP_DISTANCE
    return (
        IQRMechanism.EXPONENTIAL if protect is Protect.TEST else IQRMechanism.PROPOSE_TEST_RELEASE
    )


def _stable(
    score: AnmScore, run: PrivateRun, pair: Pair, values: tuple[float, float]
) -> PairResult:
    """Rank scores under training changes, exactly or not at all; only for Protect.TRAIN, where the
    test rows are not protected.
    """
    accountant = run.account(score, failures=True)
    answer = stable_release(
        accountant,
        values[1] - values[0],
        distance=stable_distance(pair, run.plan.sup_shift),
        epsilon=accountant.ledger.epsilon_limit,
        delta=run.budget.delta,
        label="rank scores",
    )
    # One test covers both scores: the distance is to a change of either order.
    shown = values if answer.value is not None else None
    return run.answer(answer.value, accountant, n_noises=1, scale=0.0, scores=shown)


def _ranges(
    pair: Pair, plan: Plan
) -> tuple[tuple[QuartileRange, QuartileRange], tuple[QuartileRange, QuartileRange]]:
    """(cause, residual) of each direction with what one protected record may do to each."""
    if plan.protect is Protect.TEST:
        cause, residual = Reach.VALUES, Reach.VALUES
    elif plan.protect is Protect.TRAIN:
        cause, residual = Reach.SHIFT, Reach.SHIFT
    else:
        cause, residual = Reach.VALUES, Reach.JOINT if plan.joint else Reach.EITHER

    def one(columns: DirectionColumns) -> tuple[QuartileRange, QuartileRange]:
        return QuartileRange(columns.cause, cause, 0.0), QuartileRange(
            columns.residual, residual, plan.sup_shift
        )

    return one(pair[0]), one(pair[1])


def _flip(score: LogIQRScore, run: PrivateRun, pair: Pair) -> PairResult:
    accountant = run.account(score)
    # in half records: sensitivity 2
    doubled = np.array(flip_distance(*_ranges(pair, run.plan)), dtype=np.int64)
    label = "records to turn the answer over"
    epsilon = accountant.ledger.epsilon_limit
    noisy = laplace(accountant, doubled, sensitivity=2.0, epsilon=epsilon, grid=1.0, label=label)
    return run.answer(
        float(noisy) / 2,
        accountant,
        n_noises=1,
        scale=1 / epsilon,
        largest=float(run.plan.n_samples),
        mechanism="flip distance",
    )


def _proposed(score: LogIQRScore, run: PrivateRun, pair: Pair) -> PairResult:
    accountant = run.account(score, failures=True)
    columns = [column for direction in _ranges(pair, run.plan) for column in direction]
    # The causes of the test half are public numbers where only the training half is protected.
    charged = [
        place
        for place, column in enumerate(columns)
        if column.reach is not Reach.SHIFT or place % 2 == 1
    ]
    epsilon = split(accountant.ledger.epsilon_limit, [1.0] * (3 * len(charged)))[0]
    delta = split(run.budget.delta, [1.0] * len(charged))[0]
    labels = ("log IQR of x", "log IQR of y given x", "log IQR of y", "log IQR of x given y")
    logs: list[float | None] = []
    for place, (column, label) in enumerate(zip(columns, labels, strict=True)):
        value, first, second = bin_exits(column, width=score.width) or (None, 1, 1)
        if place in charged:
            exits = first, second
            answer = propose_test_release(
                accountant,
                value,
                exits=exits,
                width=score.width,
                epsilon=epsilon,
                delta=delta,
                label=label,
            )
            value = answer.value
        logs.append(value)
    facts: dict[str, Any] = dict(
        mechanism="propose-test-release", answered=tuple(log is not None for log in logs)
    )
    return _from_logs(
        logs, run, accountant, n_noises=len(charged), scale=score.width / epsilon, **facts
    )


def _from_logs(
    logs: list[float | None], run: PrivateRun, accountant: Accountant, **facts: Any
) -> PairResult:
    """The answer from four released log ranges; none if one of them is missing."""
    known = [log for log in logs if log is not None]
    if len(known) < 4:
        return run.answer(None, accountant, **facts)
    forward, backward = known[0] + known[1], known[2] + known[3]
    return run.answer(backward - forward, accountant, scores=(forward, backward), **facts)


def _quartiles(score: LogIQRScore, run: PrivateRun, pair: Pair) -> PairResult:
    """Eight quartiles, each by the exponential mechanism: the utility of a point t is -|#{z <= t} -
    place|, which one record moves by 1.

    The grid covers four standard deviations of the training rows, which are not protected here, so
    it is as good as public.
    """
    accountant = run.account(score)
    epsilon = split(accountant.ledger.epsilon_limit, [1.0] * 8)[0]
    if accountant.ledger.remaining_rho > 0:
        epsilon = max(
            epsilon,
            accountant.ledger.selection_within(
                split(accountant.ledger.remaining_rho, [1.0] * 8)[0]
            ),
        )
    grid = np.linspace(-_RANGE_LIMIT, _RANGE_LIMIT, score.resolution)
    logs: list[float | None] = []
    columns = [values for direction in pair for values in (direction.cause, direction.residual)]
    for values, name in zip(columns, ("x", "y given x", "y", "x given y"), strict=True):
        below = np.searchsorted(np.sort(values), grid, side="right").astype(np.int64)
        ends = []
        for place in quartile_places(len(values)):
            utility, label = -np.abs(below - (place + 1)), f"quartile of {name}"
            ends.append(
                grid[
                    select_max(
                        accountant, utility, sensitivity=1.0, epsilon=epsilon, grid=1.0, label=label
                    )
                ]
            )
        logs.append(math.log(max(float(ends[1] - ends[0]), float(grid[1] - grid[0]))))
    facts: dict[str, Any] = dict(mechanism="exponential mechanism", quartile_epsilon=epsilon)
    return _from_logs(logs, run, accountant, n_noises=0, scale=0.0, **facts)
