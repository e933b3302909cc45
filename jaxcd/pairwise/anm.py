r"""Cause or effect by an additive noise model: the direction in which the residual is independent
of the cause.

If y = f(x) + e with e independent of x, then in general no such model exists from y to x (Hoyer et
al. 2009).  So y is regressed on x and x on y by kernel ridge regression, a score measures the
dependence that is left between cause and residual, and the smaller score wins (Kusner et al. 2016,
algorithm 1).  Scores: :mod:`jaxcd.pairwise.anm_scores`; regression and split:
:mod:`jaxcd.pairwise.anm_columns`; what leaves a private run: :mod:`jaxcd.pairwise.anm_release`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from jaxcd.checks import a_type, check_choice, check_flag, check_key, check_number, is_number
from jaxcd.errors import OptionError, SensitivityError
from jaxcd.pairwise._checks import (
    Bounds,
    bounds_json,
    check_bounds,
    check_pair,
    check_pair_arguments,
    to_unit_interval,
)
from jaxcd.pairwise.anm_columns import DirectionColumns, Plan, RidgeOptions, pair_columns
from jaxcd.pairwise.anm_hsic import hsic_pairs
from jaxcd.pairwise.anm_release import (
    PrivateRun,
    default_mechanism,
    hsic_series,
    log_range,
    private_result,
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
    NO_PRIVACY,
    Budget,
    NoiseSource,
    NoPrivacy,
    PrivacyFilter,
    SecureNoise,
    keeps_what_is_paid,
    open_account,
    split,
)
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim, claiming
from jaxcd.privacy.propose_test_release import no_stability_budget

__all__ = ["anm", "anm_batch"]

DEFAULT_PENALTY = 0.03
"""lambda where the training rows are protected."""


@claiming(
    GuaranteeClaim(
        "direction or scores are (epsilon, delta)-DP of their budget, for all records or, where "
        "asked, those of one half of the split",
        "jaxcd.pairwise.anm_release, jaxcd.pairwise.anm_scores, jaxcd.pairwise.anm_columns",
        assumptions=PUBLIC
        + "; bounds and the split are public; with Protect.TEST or Protect.TRAIN the other "
        "half is not protected",
    )
)
@keeps_what_is_paid
def anm(
    x: ArrayLike,
    y: ArrayLike,
    *,
    budget: Budget | NoPrivacy,
    key: jax.Array | None = None,
    score: AnmScore | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    bounds: Bounds | None = None,
    protect: Protect = Protect.BOTH,
    release: ScoreRelease = ScoreRelease.DIRECTION,
    test_share: float | None = None,
    penalty: float | None = None,
    ridge_bandwidth: float | None = None,
    norm_bound: float = 1.0,
) -> PairResult:
    r"""Which of two variables causes the other, by additive noise models.

        forward = score(x, y - f(x)),  backward = score(y, x - g(y))

    with f and g regressions, and a score that is small where cause and residual are independent.
    forward < backward says x -> y.

    Args:
        x: one number a record, n at least 8.
        y: one number a record, as many as x.
        budget: spent whole; or ``jaxcd.NO_PRIVACY``.
        key: a typed key, which draws the split and is public; None where there is no split.
        score: :class:`HSICScore` (default), :class:`SpearmanScore`, :class:`KendallScore` or
            :class:`LogIQRScore`.
        noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for
            experiments.
        ledger: a LedgerFile (or Ledger) that every event is charged to as well.
        bounds: public ``((x_lower, x_upper), (y_lower, y_upper))``, required with a budget; values
            beyond them are clipped.
        protect: whose records the guarantee is about, with a budget.  ``Protect.TEST`` gives by far
            the best answers, for data whose training half is public; ``Protect.BOTH`` is for all
            records. Rank scores have no bounded sensitivity to the training half.
        release: the direction with one noisy difference, or both scores, each with as much noise.
        test_share: of the rows, in (0, 1), for the test half.  None: 1/2 for ``Protect.TEST`` and
            ``Protect.TRAIN``; otherwise every row both trains and tests (without privacy that is
            more accurate, and with ``Protect.BOTH`` much cheaper, because the rows trained on move
            less than rows held out).
        penalty: lambda of (lambda / 2) |w|^2 + mean squared error.  None: by leave-one-out where
            the training rows are not protected, else 0.03.
        ridge_bandwidth: of the regression's kernel on [-1, 1].  None: by leave-one-out among 0.1,
            0.2, 0.4, 0.8, else 0.15.
        norm_bound: B, |w| <= B where the training rows are protected.

    Returns:
        The direction, or UNDECIDED where there is no answer; ``forward`` and ``backward``, the
        scores where they are released; ``margin`` = abs(backward - forward), in the score's units,
        with flip distances in records; ``confidence``, the probability of the same answer without
        noise, where all differences between the score's bounds are as likely beforehand; None where
        no law is known or there is no answer.

    Raises:
        DataError: not two columns of numbers of one length, at least 8 rows; without privacy also
            NaN, infinity or a constant column.
        OptionError: an option is out of its range, or the budget has no delta and the mechanism
            needs one.
        PrivacyError: the run is private and has no bounds.
        SensitivityError: the score has no bounded sensitivity to the rows that are to be protected.

    Guarantee:
        Relation: replace-one among the rows of ``protect``, which the cost's reason repeats; n,
        bounds, key and options are public.  Statistic: difference of scores; total: constant
        columns and ties have defined scores, NaN becomes the middle of the bounds.  Sensitivity:
        twice the score's (table and proofs: :mod:`jaxcd.pairwise.anm_scores`,
        :mod:`jaxcd.pairwise.anm_hsic`; training rows: :mod:`jaxcd.pairwise.anm_columns`).  Event:
        one ``PureEvent``; for log IQR eight ``ExponentialMechanismEvent`` or, with
        propose-test-release, three pure events a range and its delta
        (:mod:`jaxcd.privacy.propose_test_release`).  Proof: :mod:`jaxcd.pairwise.anm_release`.

    Source:
        Hoyer, Janzing, Mooij, Peters, Schoelkopf 2009; Mooij et al. 2016; Kusner, Sun, Sridharan,
        Weinberger 2016.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(-1, 1, size=300)
        >>> y = x**3 + 0.1 * np.random.default_rng(1).uniform(-1, 1, size=300)
        >>> print(jaxcd.anm(x, y, budget=jaxcd.NO_PRIVACY, key=jax.random.key(0)).direction)
        Direction.X_TO_Y
    """
    results = _run(
        [(x, y)],
        [key],
        [budget],
        score,
        noise,
        ledger,
        [bounds],
        protect,
        release,
        test_share,
        penalty,
        ridge_bandwidth,
        norm_bound,
    )
    return results[0]


@keeps_what_is_paid
def anm_batch(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    budget: Budget | NoPrivacy,
    key: jax.Array,
    score: AnmScore | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    same_people: bool = True,
    bounds: Bounds | Sequence[Bounds] | None = None,
    protect: Protect = Protect.BOTH,
    release: ScoreRelease = ScoreRelease.DIRECTION,
    test_share: float | None = None,
    penalty: float | None = None,
    ridge_bandwidth: float | None = None,
    norm_bound: float = 1.0,
) -> tuple[PairResult, ...]:
    """:func:`anm` of many pairs, padded to few shapes and compiled together.

    Pair i gets the key ``jax.random.fold_in(key, i)``, and without noise the answer that
    :func:`anm` gives with it.

    Args:
        pairs: (x, y) each.
        budget: the total for all pairs, divided among them equally; with ``same_people=False`` that
            of each pair by itself.
        same_people: whether the pairs may be of the same people, such as columns of one table, so
            that costs add up; False only where nobody is in two of them.
        bounds: one for all pairs, or a list of one a pair.
        key: as for :func:`anm`.
        score: as ``key``.
        noise: as ``key``.
        ledger: as ``key``.
        protect: as ``key``.
        release: as ``key``.
        test_share: as ``key``.
        penalty: as ``key``.
        ridge_bandwidth: as ``key``.
        norm_bound: as ``key``.

    Returns:
        One result a pair, in order.

    Raises:
        OptionError: as many bounds as pairs are needed; and what :func:`anm` raises.

    Guarantee:
        That of :func:`anm` with its part of the budget, for each pair: epsilon / k and delta / k of
        k pairs, which add up to the budget (basic composition).  With ``same_people=False`` each
        record is in one pair, so that the whole has the budget of one (parallel composition).

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(-1, 1, size=300)
        >>> y = x**3 + 0.1 * np.random.default_rng(1).uniform(-1, 1, size=300)
        >>> found = jaxcd.pairwise.anm_batch(
        ...     [(x, y), (y, x)], budget=jaxcd.NO_PRIVACY, key=jax.random.key(0)
        ... )
        >>> [pair.direction.value for pair in found]
        ['x -> y', 'y -> x']
    """
    try:
        listed = [(x, y) for x, y in pairs]
    except (TypeError, ValueError):
        raise OptionError(
            f"pairs: {a_type(pairs)} does not hold an (x, y) for each pair; give a list "
            "such as [(x, y)]"
        ) from None
    single = not isinstance(bounds, (Sequence, np.ndarray)) or (
        len(bounds) == 2 and all(np.ndim(part) == 1 for part in bounds)
    )
    each = [bounds] * len(listed) if single else list(bounds)  # type: ignore[arg-type]
    if len(each) != len(listed):
        raise OptionError(
            f"bounds are for {len(each)} pairs, and there are {len(listed)}; give one for all, or "
            "one a pair"
        )
    check_key(key)
    check_flag("same_people", same_people)
    keys = [jax.random.fold_in(key, i) for i in range(len(listed))]
    budgets = [budget] * len(listed)
    if isinstance(budget, Budget) and same_people and len(listed) > 1:
        weights = [1.0] * len(listed)
        deltas = split(budget.delta, weights) if budget.delta > 0 else [0.0] * len(listed)
        budgets = [
            dataclasses.replace(budget, epsilon=e, delta=d)
            for e, d in zip(split(budget.epsilon, weights), deltas, strict=True)
        ]
    return _run(
        listed,
        keys,
        budgets,
        score,
        noise,
        ledger,
        each,
        protect,
        release,
        test_share,
        penalty,
        ridge_bandwidth,
        norm_bound,
    )


# Far below it penalties and bandwidths underflow, and 0 / 0 would tell of a record.
_LEAST_NUMBER = 1e-12


def _check_options(
    score: Any,
    protect: Any,
    release: Any,
    budget: Budget | NoPrivacy,
    test_share: Any,
    numbers: dict[str, Any],
) -> None:
    """What can be refused from public facts."""
    if not isinstance(score, AnmScore):
        raise OptionError(
            f"score = {score!r} is not a score; use HSICScore(), SpearmanScore(), KendallScore() "
            "or LogIQRScore()"
        )
    check_choice("protect", protect, Protect)
    check_choice("release", release, ScoreRelease)
    for name, value in numbers.items():
        if value is not None:
            check_number(name, value, _LEAST_NUMBER, cure="give one such as 0.1")
    if test_share is not None and not is_number(test_share, 0, 1, "()"):
        raise OptionError(
            f"test_share = {test_share!r} is not a share of the rows; give a number between 0 and "
            "1, or None"
        )
    if isinstance(budget, NoPrivacy):
        return
    if isinstance(score, _RankScore) and protect is not Protect.TEST:
        if not (protect is Protect.TRAIN and score.stability_release):
            raise SensitivityError(
                f"score = {score.name}: one training record can reorder all residuals, so "
                f"protect={protect} has no bounded sensitivity; use "
                "HSICScore() or LogIQRScore(), or Protect.TEST where the training half is public "
                "(or, for Protect.TRAIN, "
                "stability_release=True, which almost always gives no answer)"
            )
        no_stability_budget(budget, what="a stability-based release")
    if isinstance(score, LogIQRScore):
        if score.mechanism is IQRMechanism.EXPONENTIAL and protect is not Protect.TEST:
            raise SensitivityError(
                f"mechanism = {score.mechanism}: a training record moves all ranks, so "
                f"protect={protect} has no bounded sensitivity; use "
                "IQRMechanism.FLIP_DISTANCE, or Protect.TEST where the training half is public"
            )
        if score.mechanism is IQRMechanism.FLIP_DISTANCE and release is ScoreRelease.SCORES:
            raise OptionError(
                "release = ScoreRelease.SCORES: flip distances have no scores; use "
                "ScoreRelease.DIRECTION or another mechanism"
            )
        if (
            score.mechanism or default_mechanism(release, protect)
        ) is IQRMechanism.PROPOSE_TEST_RELEASE:
            no_stability_budget(budget, what="propose-test-release")


def _plan(
    n: int,
    private: bool,
    protect: Protect,
    test_share: float | None,
    penalty: float | None,
    norm_bound: float,
) -> Plan:
    whose = protect if private else None
    joint = test_share is None and whose in (None, Protect.BOTH)
    share = 0.5 if test_share is None else float(test_share)
    n_test = n if joint else min(max(round(n * share), 4), n - 4)
    n_training = n if joint else n - n_test
    return Plan(
        n,
        n_test,
        n_training,
        joint,
        whose,
        DEFAULT_PENALTY if penalty is None else float(penalty),
        float(norm_bound),
    )


def _run(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    keys: Sequence[jax.Array | None],
    budgets: Sequence[Budget | NoPrivacy],
    score: AnmScore | None,
    noise: NoiseSource | None,
    ledger: PrivacyFilter | None,
    bounds: Sequence[Any],
    protect: Protect,
    release: ScoreRelease,
    test_share: float | None,
    penalty: float | None,
    ridge_bandwidth: float | None,
    norm_bound: float,
) -> tuple[PairResult, ...]:
    if not pairs:
        return ()
    budget = budgets[0]
    private = check_pair_arguments(budget, noise)
    score = HSICScore() if score is None else score
    numbers = {
        "penalty": penalty,
        "ridge_bandwidth": ridge_bandwidth,
        "norm_bound": norm_bound if norm_bound is not None else math.nan,
    }
    _check_options(score, protect, release, budget, test_share, numbers)
    options = RidgeOptions(
        None if penalty is None else float(penalty),
        None if ridge_bandwidth is None else float(ridge_bandwidth),
        float(norm_bound),
    )
    known = [check_bounds(each, private=private) for each in bounds]
    columns = [check_pair(x, y, private=private) for x, y in pairs]
    plans = [_plan(len(x), private, protect, test_share, penalty, norm_bound) for x, _ in columns]
    for key, plan in zip(keys, plans, strict=True):
        if key is not None or not plan.joint:
            check_key(key)
    ready = [
        pair
        if edges is None
        else tuple(
            2 * to_unit_interval(column, *edge) - 1
            for column, edge in zip(pair, edges, strict=True)
        )
        for pair, edges in zip(columns, known, strict=True)
    ]
    halves = pair_columns(ready, keys, plans, options)  # type: ignore[arg-type]
    values = _values(score, halves)
    sampler = (SecureNoise() if noise is None else noise).start()
    results = []
    for pair, value, plan, edges, budget in zip(halves, values, plans, known, budgets, strict=True):
        info = {
            "method": "anm",
            "score": score.name,
            "release": release.value,
            "protect": None if plan.protect is None else plan.protect.value,
            "bounds": edges,
            **bounds_json(edges),
            "n_samples": plan.n_samples,
            "n_test": plan.n_test,
            "n_training": plan.n_training,
            "joint": plan.joint,
        }
        if isinstance(budget, Budget):
            results.append(
                private_result(
                    score, PrivateRun(release, budget, sampler, plan, info, ledger), pair, value
                )
            )
        else:
            results.append(_plain_result(value, info))
    return tuple(results)


def _values(
    score: AnmScore, split: Sequence[tuple[DirectionColumns, DirectionColumns]]
) -> list[tuple[float, float]]:
    """Exact scores of both directions; sensitive."""
    if isinstance(score, _RankScore):
        return [tuple(score.value(d.cause, d.residual) for d in pair) for pair in split]  # type: ignore[misc]
    if isinstance(score, LogIQRScore):
        return [(log_range(pair[0]), log_range(pair[1])) for pair in split]
    assert isinstance(score, HSICScore)
    result = np.zeros((len(split), 2))
    lengths = [max(64, 1 << (len(pair[0].scaled) - 1).bit_length()) for pair in split]
    for length in sorted(set(lengths)):
        members = [i for i, each in enumerate(lengths) if each == length]
        directions = [direction for i in members for direction in split[i]]
        rows = np.array([np.arange(length) < len(d.scaled) for d in directions])
        u, v = (
            np.array(
                [np.append(getattr(d, name), np.zeros(length - len(d.scaled))) for d in directions]
            )
            for name in ("scaled", "residual")
        )
        kernels = [hsic_series(score, direction) for direction in directions]
        series_u, series_v = [first for first, _ in kernels], [second for _, second in kernels]
        result[members] = hsic_pairs(u, v, rows, series_u=series_u, series_v=series_v).reshape(
            -1, 2
        )
    return [(float(forward), float(backward)) for forward, backward in result]


def _plain_result(value: tuple[float, float], info: dict[str, Any]) -> PairResult:
    forward, backward = value
    direction = Direction.of_scores(forward, backward)
    margin = 0.0 if direction is Direction.UNDECIDED else abs(backward - forward)
    accountant = open_account(NO_PRIVACY)
    return PairResult(
        direction,
        margin,
        forward,
        backward,
        1.0,
        accountant.guarantee,
        accountant.ledger.spent,
        info,
    )
