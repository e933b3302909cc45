r"""Causes and residuals of both directions for many pairs: split, scale, regress.

Two pipelines, and which one is used is public:

* *adaptive*, where the training rows are not protected (no privacy, or ``Protect.TEST``): scales,
  bandwidths and the penalty (by leave one out) come from the training rows alone.  A test row is
  then mapped by a fixed function of itself.
* *public*, where they are: declared bounds scale to [-1, 1]; the bandwidth, lambda and the norm
  bound B are constants, and predictions are clipped to [-1, 1], which moves no two of them apart.

**What one training record does (public pipeline, n training rows).**  The objective on the ball |w|
<= B is lambda-strongly convex, so with the variational inequalities of both optima |w - w'| <= (2 /
(n lambda)) |r phi - r' phi'| <= 2 R(W) / (n lambda), W and R as in
:mod:`jaxcd.citests.bounded_rcit` (PRIVACY.md E2, E3): *every* prediction moves by at most

    sup = 2 R(W) / (n lambda)   (and never by more than 2),

and the root mean square over the training rows themselves by at most rms = R(W) / (n sqrt(2
lambda)) (E4).  The second says nothing of rows that were held out: they may all lie where only the
replaced record was, and then all move by sup.

*Split.*  Positions are permuted by the key, without the data, and a replaced record stays at its
position: it is in one half only, so what holds for each half with the other fixed holds for all
with the larger of the two sensitivities (parallel composition).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxcd.citests.bounded_rcit import residual_shift
from jaxcd.ops.standardising import is_constant
from jaxcd.pairwise.anm_regression import fit_pairs, series_grid
from jaxcd.pairwise.anm_scores import Protect

__all__ = ["DirectionColumns", "Plan", "RidgeOptions", "pair_columns", "split_rows"]

_BANDWIDTHS = (0.1, 0.2, 0.4, 0.8)
_PUBLIC_BANDWIDTH = 0.15
_PENALTIES = tuple(10.0**-k for k in range(9))
_NUMERICAL_ERROR = 1e-9
_SCALE_LIMIT = 4.0


@dataclass(frozen=True)
class RidgeOptions:
    """penalty: lambda, or None.  bandwidth: on the scale [-1, 1], or None.  norm_bound: B of the
    public pipeline.
    """

    penalty: float | None
    bandwidth: float | None
    norm_bound: float


@dataclass(frozen=True)
class Plan:
    """The public facts of one pair's run.

    Args:
        n_samples: rows.
        n_test: as ``n_samples``.
        n_training: as ``n_samples``.
        joint: every row both trains and tests.
        protect: None without privacy.
        penalty: of the public pipeline.
        norm_bound: as ``penalty``.
    """

    n_samples: int
    n_test: int
    n_training: int
    joint: bool
    protect: Protect | None
    penalty: float
    norm_bound: float

    @property
    def adaptive(self) -> bool:
        """Whether the training rows may be looked at freely."""
        return self.protect in (None, Protect.TEST)

    @property
    def sup_shift(self) -> float:
        """How far one training record moves any prediction; 0 where training rows are not
        protected.
        """
        if self.adaptive:
            return 0.0
        shift = residual_shift(self.penalty, self.norm_bound) * math.sqrt(2 * self.penalty)
        return min(2 * shift / (self.penalty * self.n_training), 2.0) + 2 * _NUMERICAL_ERROR

    @property
    def rms_shift(self) -> float:
        """The root mean square of those moves over the training rows."""
        return (
            0.0
            if self.adaptive
            else min(residual_shift(self.penalty, self.norm_bound) / self.n_training, 2.0)
            + 2 * _NUMERICAL_ERROR
        )


@dataclass(frozen=True, eq=False, repr=False)
class DirectionColumns:
    """One direction, test rows only; sensitive.  cause, residual: (m,), in the units in which
    ranges are compared.

    Args:
        scaled: the cause on [-1, 1].
        cause_distance: median distances of the training rows on the scales of ``scaled`` and
            ``residual`` (adaptive pipeline), else None.
        residual_distance: as ``cause_distance``.
        reach: abs(residual) is at most this.
    """

    cause: np.ndarray
    scaled: np.ndarray
    residual: np.ndarray
    cause_distance: float | None
    residual_distance: float | None
    reach: float


def split_rows(
    key: jax.Array | None, n_samples: int, *, n_test: int, joint: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the training and the test rows, bool (n,): drawn from the public key, without the
    data.
    """
    if joint:
        return np.ones(n_samples, bool), np.ones(n_samples, bool)
    assert key is not None
    order = np.random.default_rng(
        np.asarray(jax.random.key_data(key)).ravel().tolist()
    ).permutation(n_samples)
    test = np.zeros(n_samples, bool)
    test[order[:n_test]] = True
    return ~test, test


def _adapted(values: np.ndarray, training: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised by the training rows, and that on [-1, 1] after clipping at 4 deviations; 0
    where they are constant.
    """
    half = values[training]
    size = float(np.abs(half).max())
    # test rows may be larger by any factor; infinity is clipped below
    with np.errstate(over="ignore", invalid="ignore"):
        # no square of the training rows overflows
        half, values = (half / size, values / size) if size > 0 else (half, values)
        # Moved by one value first: the mean of what is left has the rounding of the spread, not
        # that of the size.
        moved = half - half[0]
        standard = (
            np.zeros_like(values)
            if is_constant(half)
            else (values - half[0] - moved.mean()) / moved.std()
        )
    standard = np.clip(np.nan_to_num(standard), -1e6, 1e6)
    clipped = np.clip(standard, -_SCALE_LIMIT, _SCALE_LIMIT)
    low, high = clipped[training].min(), clipped[training].max()
    if not high > low:
        return standard, np.zeros_like(values)
    return standard, np.clip(2 * (clipped - low) / (high - low) - 1, -1.0, 1.0)


def _median_distance(values: np.ndarray) -> float:
    """Median of abs(v_i - v_j) over eight cyclic shifts of a fixed shuffle of the sorted values, so
    that their order says nothing: n log n, and 1 where it is 0.
    """
    shuffled = np.random.default_rng(0).permutation(np.sort(values))
    shifts = [
        np.abs(shuffled - np.roll(shuffled, shift)) for shift in range(1, min(9, len(values)))
    ]
    distance = float(np.median(shifts))
    return distance if distance > 0 else 1.0


def pair_columns(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    keys: Sequence[Any],
    plans: Sequence[Plan],
    options: RidgeOptions,
) -> list[tuple[DirectionColumns, DirectionColumns]]:
    """Forward and backward columns of each pair, computed together in blocks of one padded length.

    Args:
        pairs: float64 (n,) each, finite; on [-1, 1] in the public pipeline.  All plans must be of
            one pipeline.
    """
    result: list[Any] = [None] * len(pairs)
    groups: dict[int, list[int]] = {}
    for i, plan in enumerate(plans):
        groups.setdefault(max(64, 1 << (plan.n_samples - 1).bit_length()), []).append(i)
    adaptive = plans[0].adaptive
    if adaptive:
        grid = series_grid(_BANDWIDTHS if options.bandwidth is None else (options.bandwidth,))
        penalties = _PENALTIES if options.penalty is None else (options.penalty,)
        bound = math.inf
    else:
        grid = series_grid((options.bandwidth or _PUBLIC_BANDWIDTH,))
        penalties, bound = (plans[0].penalty,), options.norm_bound
    for length, members in groups.items():
        inputs, targets, masks, prepared = [], [], [], []
        for i in members:
            plan = plans[i]
            training, test = split_rows(
                keys[i], plan.n_samples, n_test=plan.n_test, joint=plan.joint
            )
            columns = [
                _adapted(column, training) if adaptive else (column, column) for column in pairs[i]
            ]
            prepared.append((training, test, columns))
            for cause, effect in ((0, 1), (1, 0)):
                inputs.append(_padded(columns[cause][1], length))
                targets.append(_padded(columns[effect][0], length))
                masks.append(_padded(training, length))
        fit = fit_pairs(
            np.array(inputs),
            np.array(targets),
            np.array(masks),
            grid=grid,
            penalties=penalties,
            norm_bound=bound,
        )
        for place, i in enumerate(members):
            training, test, columns = prepared[place]
            directions = []
            for row, (cause, effect) in enumerate(((0, 1), (1, 0)), start=2 * place):
                prediction = fit.prediction[row, : plans[i].n_samples]
                target = columns[effect][0]
                distances: tuple[float | None, float | None] = (None, None)
                if adaptive:
                    left_out = (target - fit.leave_one_out[row, : len(target)])[training]
                    distances = (
                        _median_distance(columns[cause][1][training]),
                        _median_distance(left_out),
                    )
                    reach = max(1.5 * float(np.abs(left_out).max()), 1e-12)
                else:
                    prediction, reach = np.clip(prediction, -1.0, 1.0), 2.0
                residual = np.clip(target - prediction, -reach, reach)[test]
                standard, scaled = columns[cause]
                directions.append(
                    DirectionColumns(standard[test], scaled[test], residual, *distances, reach)
                )
            result[i] = tuple(directions)
    return result


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.append(values, np.zeros(length - len(values), values.dtype))
