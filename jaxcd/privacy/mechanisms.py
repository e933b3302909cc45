r"""Mechanisms on integers: quantise, add integer noise, compare or release integers.

The integer pattern. A value q computed in float64 is put on a public grid of step g (a power of
two, so that dividing by it is exact): v = round(q / g), clamped to +-2^61. If q(D) and q(D') differ
by at most ``sensitivity`` in exact arithmetic and each computed value is within ``pad`` of the
exact one, the integers differ by at most d = ceil((sensitivity + 2 pad) / g) + 1, because rounding
changes a difference by at most one and clamping to a public interval by nothing. A vector of D
coordinates: (sensitivity + 2 D pad)/g + D in L1, and (sensitivity + 2 sqrt(D) pad)/g + sqrt(D) in
L2. Values of an integer dtype (counts) lie on the grid already: nothing is added for rounding.

Noise scales are rounded up, so that d / scale <= epsilon holds for the very floats that the exact
samplers use.

Saturation. Samplers return x clipped to +-2^62. A released integer is clip(v + clip(x, 2^62),
2^61), and that equals clip(v + x, 2^61) for every abs(v) <= 2^61: it is post-processing of the
unclipped mechanism.

Order. Each mechanism checks its options, charges the ledger, and only then draws; the event carries
what its price follows from. ``epsilon=inf`` (``rho=inf``) adds no noise; only a ledger over
``NO_PRIVACY`` admits it. A value of NaN is refused: a statistic that is not total has no
sensitivity at all.  Values come as :class:`Sensitive`, or as arrays.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import check_nonnegative, check_positive
from ..errors import OptionError, SensitivityError
from .accountant import Accountant
from .budget import Accounting, Relation
from .events import (
    ExponentialMechanismEvent,
    GaussianEvent,
    Law,
    MechanismRecord,
    PureEvent,
    ZCDPEvent,
)
from .noise import Integers, check_rounded, check_scale, check_top
from .rounding import at_least, round_up, sqrt_up
from .sensitive import Sensitive, exact_values

GRID = 2.0**-30
"""Default step for scalar scores: values up to 2^31 in size."""

VECTOR_GRID = 2.0**-20
"""Default step for long vectors: values up to 2^41 in size."""

VALUE_LIMIT = 2**61
"""Quantised values, and released integers, are clamped to plus and minus this number of steps."""

_LEAST_SCALE = 2.0**-10
"""Smaller scales are rounded up to this, which is always safe; P[draw != 0] is below exp(-1000)
already there.
"""


def check_grid(grid: float) -> Fraction:
    """Return the grid as a fraction if it is a power of two, else raise OptionError."""
    grid = check_positive("grid", grid, cure="give a power of two such as 2**-30")
    if math.frexp(grid)[0] != 0.5:
        raise OptionError(
            f"grid must be a power of two, got {grid!r}: dividing by it is exact then; try 2**-30"
        )
    return Fraction(grid)


def quantise(values: ArrayLike, *, grid: float) -> Integers:
    """Return round(values / grid) as int64, clamped to +-2^61.

    Args:
        values: real numbers of any shape; infinities are clamped.
        grid: a power of two.

    Returns:
        int64 array of the same shape.

    Raises:
        OptionError: the grid is not a power of two, or coarser than 1 for values of an integer
            dtype.
        SensitivityError: a value is NaN.

    Example:
        >>> from jaxcd.privacy import quantise
        >>> quantise([0.3, 1.0], grid=0.25)
        array([1, 4])
    """
    step = check_grid(grid)
    array = np.asarray(values)
    if _on_grid(array):
        if step > 1:
            raise OptionError(
                f"grid must be at most 1 for values of an integer dtype, got {grid!r}: counts lie "
                "on a grid of 1"
            )
        factor = int(1 / step)
        if factor > VALUE_LIMIT:
            raise OptionError(
                f"grid must be at least 2**-61 for values of an integer dtype, got {grid!r}: try "
                "1.0"
            )
        bound = VALUE_LIMIT // factor  # clamp before the product can overflow
        clamped = (
            np.clip(array.astype(np.int64), -bound, bound)
            if array.dtype.kind == "i"
            else np.minimum(array, bound)
        )
        return clamped.astype(np.int64) * factor
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        raise SensitivityError(
            "values hold NaN: a statistic must be defined on every data set to have a sensitivity"
        )
    with np.errstate(over="ignore"):
        scaled = np.rint(numbers / float(step))
    return np.clip(scaled, -float(VALUE_LIMIT), float(VALUE_LIMIT)).astype(np.int64)


def _on_grid(array: NDArray[Any]) -> bool:
    """Whether the dtype (a public fact) says that values are integers, and hence on every grid of
    step 2**-k, k >= 0."""
    return array.dtype.kind in "iu"


def integer_sensitivity(
    sensitivity: float,
    *,
    grid: float,
    pad: float = 0.0,
    dimension: int = 1,
    norm: int = 1,
    integral: bool = False,
) -> Fraction:
    """Return a bound on the change of quantised values between neighbours, in steps of the grid.

    Args:
        sensitivity: L1 or L2 sensitivity of the exact values, positive.
        grid: a power of two.
        pad: bound on the numerical error of each computed value.
        dimension: number of coordinates D.
        norm: 1 or 2.
        integral: whether the values have an integer dtype: nothing is added for rounding, and
            ``pad`` must be 0.

    Returns:
        ceil((sensitivity + 2 D pad) / grid) + D for norm 1; (sensitivity + 2 s pad) / grid + s with
        s >= sqrt(D) for norm 2; floor(sensitivity / grid) resp. sensitivity / grid for integral
        values (integers differ by an integer).

    Raises:
        OptionError: an argument is out of its range.
    """
    step = check_grid(grid)
    cure = "state the largest change of the statistic between neighbouring data sets"
    check_positive("sensitivity", sensitivity, cure=cure)
    check_nonnegative("pad", pad, cure="state a bound on the numerical error of the statistic")
    exact, error = Fraction(at_least(sensitivity)), Fraction(at_least(pad))
    if norm not in (1, 2):
        raise OptionError(
            f"norm must be 1 or 2, got {norm!r}: Laplace noise takes L1, Gaussian noise L2"
        )
    if integral:
        if error > 0:
            raise OptionError(
                f"pad must be 0 for values of an integer dtype, got {pad!r}: integers have no "
                "numerical error"
            )
        bound = exact / step
        return Fraction(math.floor(bound)) if norm == 1 and bound >= 1 else bound
    spread = (
        Fraction(dimension)
        if norm == 1 or dimension == 1
        else Fraction(sqrt_up(Fraction(dimension)))
    )
    bound = (exact + 2 * spread * error) / step
    return math.ceil(bound) + spread if norm == 1 or dimension == 1 else bound + spread


def laplace_variance(scale: float) -> float:
    """Of discrete Laplace noise, in squared steps: 2 q / (1 - q)^2 with q = exp(-1 / scale).

    0 where that is below 1e-303.

    Args:
        scale: of the noise, in steps, positive.
    """
    half = 0.5 / scale
    return 0.5 / math.sinh(half) ** 2 if half < 350 else 0.0


def noise_scale(bound: Fraction, epsilon: float) -> float:
    """Return a float scale with ``bound / scale <= epsilon`` exactly, the smallest from 2^-10 on;
    0 for an infinite epsilon.

    Args:
        bound: L1 sensitivity in steps of the grid.
        epsilon: the price, positive.

    Returns:
        The scale, in steps of the grid.

    Raises:
        OptionError: the scale is too large for int64.
    """
    epsilon = check_positive("epsilon", epsilon, allow_infinity=True)
    if math.isinf(epsilon):
        return 0.0
    scale = bound / Fraction(epsilon)
    return check_scale(
        "noise scale", max(round_up(scale), _LEAST_SCALE) if scale < 2**1000 else math.inf
    )


def _release(
    accountant: Accountant | None,
    index: int,
    label: str,
    values: Integers,
    noise: Integers | None,
    grid: float,
) -> NDArray[np.float64]:
    total = (
        values
        if noise is None
        else np.clip(values + noise.reshape(values.shape), -VALUE_LIMIT, VALUE_LIMIT)
    )
    released = np.asarray(total, dtype=np.float64) * grid
    if accountant is not None:
        accountant.bought(index, label, released)
    return released


def laplace(
    accountant: Accountant,
    values: Sensitive | ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    pad: float = 0.0,
    label: str,
    grid: float = GRID,
    relation: Relation = Relation.REPLACE_ONE,
    withheld: bool = False,
) -> NDArray[np.float64]:
    r"""Release values with discrete Laplace noise of scale d / epsilon on the grid.

    Args:
        accountant: ledger and noise.
        values: exact values, any shape; sensitive.
        sensitivity: L1 sensitivity of ``values``.
        epsilon: positive.
        pad: bound on the numerical error of each value.
        label: public words for the report.
        grid: step, a power of two.
        relation: neighbouring relation of ``sensitivity``.
        withheld: whether the caller may yet withhold the result, because its guarantee depends on
            that; then the accountant does not keep it.

    Returns:
        Noisy values on the grid, float64, of the same shape.

    Raises:
        BudgetExhausted: the event does not fit; nothing was drawn.
        OptionError: an argument is out of its range.
        SensitivityError: a value is NaN.

    Guarantee:
        Relation: ``relation``, that of the sensitivity. Sensitivity: L1 over the whole array, the d
        of the module's docstring. Event: ``PureEvent(epsilon)``. Public: shape and dtype of
        ``values``, grid, sensitivity, pad. Proof: the probability of a vector w of integers is
        proportional to exp(-|w - v|_1 / scale), so the ratio between neighbours is at most exp(d /
        scale) <= exp(epsilon).

    Source:
        Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    """
    array = exact_values(values)
    integral = _on_grid(array)
    bound = integer_sensitivity(
        sensitivity, grid=grid, pad=pad, dimension=array.size, norm=1, integral=integral
    )
    scale = noise_scale(bound, epsilon)
    quantised = quantise(array, grid=grid)
    record = MechanismRecord(
        Law.LAPLACE,
        at_least(sensitivity),
        at_least(pad),
        float(grid),
        array.size,
        integral,
        (scale,),
    )
    index = accountant.charge(PureEvent(epsilon, label, relation, record))
    noise = accountant.noise.discrete_laplace(scale, array.size, index=index) if scale else None
    return _release(None if withheld else accountant, index, label, quantised, noise, grid)


def gaussian(
    accountant: Accountant,
    values: Sensitive | ArrayLike,
    *,
    sensitivity: float,
    rho: float,
    pad: float = 0.0,
    label: str,
    grid: float = VECTOR_GRID,
    relation: Relation = Relation.REPLACE_ONE,
) -> NDArray[np.float64]:
    r"""Release values with Gaussian noise on the grid, sigma^2 = d^2 / (2 rho): discrete, or
    rounded where the ledger's accounting is Gaussian.

    Args:
        accountant: ledger and noise.
        values: exact values, any shape; sensitive.
        sensitivity: L2 sensitivity of ``values``.
        rho: positive.
        pad: bound on the numerical error of each value.
        label: public words for the report.
        grid: step, a power of two.
        relation: neighbouring relation of ``sensitivity``.

    Returns:
        Noisy values on the grid, float64, of the same shape.

    Raises:
        BudgetExhausted: the event does not fit; nothing was drawn.
        OptionError: an argument is out of its range.
        SensitivityError: a value is NaN.

    Guarantee:
        Relation: ``relation``, that of the sensitivity. Sensitivity: L2 over the whole array, the d
        of the module's docstring. Event: ``ZCDPEvent(rho)``, or ``GaussianEvent(rho)`` under
        Gaussian accounting. Public: shape and dtype of ``values``, grid, sensitivity, pad, the
        accounting. Proof: independent discrete Gaussian noise on a vector of integers of L2
        sensitivity d is d^2/(2 sigma^2)-zCDP (Canonne, Kamath, Steinke 2020, Theorem 14); sigma is
        rounded up until d^2 <= 2 rho sigma^2. Rounded: v + round(sigma N) = round(v + sigma N) is a
        function of continuous Gaussian noise, whose laws on neighbours are, after a rotation, N(0,
        1) and N(mu, 1) in one coordinate and equal in the others, with mu <= d / sigma <= sqrt(2
        rho): mu-GDP.

    Source:
        Dong, Roth, Su 2022 for the rounded one; Canonne, Kamath, Steinke 2020, The discrete
        Gaussian for differential privacy.
    """
    array = exact_values(values)
    integral = _on_grid(array)
    sigma = planned_sigma(
        accountant.accounting,
        sensitivity=sensitivity,
        rho=rho,
        dimension=array.size,
        pad=pad,
        grid=grid,
        integral=integral,
    )
    quantised = quantise(array, grid=grid)
    rounded = accountant.accounting is Accounting.GAUSSIAN
    record = MechanismRecord(
        Law.ROUNDED_GAUSSIAN if rounded else Law.GAUSSIAN,
        at_least(sensitivity),
        at_least(pad),
        float(grid),
        array.size,
        integral,
        (sigma,),
    )
    event = (GaussianEvent if rounded else ZCDPEvent)(rho, label, relation, record)
    index = accountant.charge(event)
    sampler = accountant.noise
    draw = sampler.rounded_gaussian if rounded else sampler.discrete_gaussian
    noise = draw(sigma, array.size, index=index) if sigma else None
    return _release(accountant, index, label, quantised, noise, grid)


def gaussian_sigma(bound: Fraction, rho: float) -> float:
    """Return a float sigma with ``bound**2 <= 2 * rho * sigma**2`` exactly; 0 for an infinite rho.

    Args:
        bound: L2 sensitivity in steps of the grid.
        rho: the price, positive.

    Returns:
        sigma, in steps of the grid.

    Raises:
        OptionError: sigma is too large for int64.
    """
    rho = check_positive("rho", rho, allow_infinity=True)
    if math.isinf(rho):
        return 0.0
    square = bound**2 / (2 * Fraction(rho))
    if square <= Fraction(_LEAST_SCALE) ** 2:
        return _LEAST_SCALE
    return check_scale("noise sigma", sqrt_up(square) if square < 2**1000 else math.inf)


def planned_sigma(
    accounting: Accounting,
    *,
    sensitivity: float,
    rho: float,
    dimension: int,
    pad: float = 0.0,
    grid: float = VECTOR_GRID,
    integral: bool = False,
) -> float:
    """Return the sigma that :func:`gaussian` would take, in steps of the grid; nothing is charged.
    For runs of several charges, which ask it before the first one what would be refused later.

    Args:
        accounting: of the ledger.
        sensitivity: as in :func:`gaussian`.
        rho: as ``sensitivity``.
        dimension: the number of values.
        pad: as ``sensitivity``.
        grid: as ``sensitivity``.
        integral: whether the values have an integer dtype.

    Raises:
        OptionError: an argument is out of its range, or the budget so small that the noise cannot
            be drawn.
    """
    bound = integer_sensitivity(
        sensitivity, grid=grid, pad=pad, dimension=dimension, norm=2, integral=integral
    )
    sigma = gaussian_sigma(bound, rho)
    if accounting is Accounting.GAUSSIAN and sigma:
        check_rounded(sigma)
    return sigma


def select_max(
    accountant: Accountant,
    scores: Sensitive | ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    pad: float = 0.0,
    label: str,
    grid: float = GRID,
    relation: Relation = Relation.REPLACE_ONE,
) -> int:
    r"""Select the index of a large score: the exponential mechanism, P[i] proportional to
    exp(epsilon v_i / (2 d)).

    Args:
        accountant: ledger and noise.
        scores: one-dimensional, at least one; sensitive.
        sensitivity: of each score.
        epsilon: positive.
        pad: bound on the numerical error of each score.
        label: public words for the report.
        grid: step, a power of two.
        relation: neighbouring relation of ``sensitivity``.

    Returns:
        The index drawn.

    Raises:
        BudgetExhausted: the event does not fit; nothing was drawn.
        OptionError: an argument is out of its range.
        SensitivityError: a score is NaN.

    Guarantee:
        Relation: ``relation``, that of the sensitivity. Sensitivity: every single score moves by at
        most ``sensitivity``, the integers v_i by at most d. Event:
        ``ExponentialMechanismEvent(epsilon)``: epsilon-DP and epsilon^2/8-zCDP. Public: the number
        of scores, grid, sensitivity, pad. Proof: with scale >= 2d/epsilon, log P[i] / P'[i] = (v_i
        - v'_i)/scale - log(normaliser ratio); the first term ranges over [-d, d]/scale, so the
        log-ratio ranges over an interval of length 2d/scale <= epsilon (bounded range) that holds
        0, since both are distributions. Adding Gumbel noise of the same scale and taking the
        maximum has exactly this law; it is sampled exactly.

    Source:
        McSherry and Talwar 2007; Cesar and Rogers 2021 for the zCDP constant.
    """
    return select_top(
        accountant,
        scores,
        size=1,
        sensitivity=sensitivity,
        epsilon=epsilon,
        pad=pad,
        label=label,
        grid=grid,
        relation=relation,
    )[0]


def select_top(
    accountant: Accountant,
    scores: Sensitive | ArrayLike,
    *,
    size: int,
    sensitivity: float,
    epsilon: float,
    pad: float = 0.0,
    label: str,
    grid: float = GRID,
    relation: Relation = Relation.REPLACE_ONE,
) -> list[int]:
    r"""Select the indices of large scores: exponential mechanisms one after the other, each on the
    scores that the earlier ones left.

    Args:
        accountant: ledger and noise.
        scores: one-dimensional, at least ``size``; sensitive.
        size: how many, k; at least 1.
        sensitivity: of each score.
        epsilon: positive, of each choice.
        pad: bound on the numerical error of each score.
        label: public words for the report.
        grid: step, a power of two.
        relation: neighbouring relation of ``sensitivity``.

    Returns:
        The indices drawn, in their order.

    Raises:
        BudgetExhausted: the event does not fit; nothing was drawn.
        OptionError: an argument is out of its range.
        SensitivityError: a score is NaN.

    Guarantee:
        Relation: ``relation``, that of the sensitivity. Sensitivity: as in :func:`select_max`.
        Event: one ``ExponentialMechanismEvent`` of k choices. Public: the number of scores, k,
        grid, sensitivity, pad. Proof: k times :func:`select_max`, each on the scores that are left,
        composed adaptively. One draw of Gumbel noise for all scores has this law: given the
        largest, the noise of the others is only known to lie below, and which of them is the
        largest of those does not depend on that (Durfee and Rogers 2019, lemma 4.2).

    Source:
        Durfee and Rogers 2019; Cesar and Rogers 2021 for the zCDP constant.
    """
    array = exact_values(scores)
    if array.ndim != 1 or array.size == 0:
        raise OptionError(
            f"scores must be one-dimensional and not empty, got shape {array.shape}: give one "
            "score a candidate"
        )
    size = check_top(size, array.size)
    integral = _on_grid(array)
    bound = integer_sensitivity(sensitivity, grid=grid, pad=pad, integral=integral)
    scale = noise_scale(2 * bound, epsilon)
    quantised = quantise(array, grid=grid)
    record = MechanismRecord(
        Law.GUMBEL,
        at_least(sensitivity),
        at_least(pad),
        float(grid),
        array.size,
        integral,
        (scale,),
    )
    each = check_positive("epsilon", epsilon, allow_infinity=True)
    total = round_up(size * Fraction(each)) if each < math.inf else each
    event = ExponentialMechanismEvent(total, label, relation, record, n_choices=size)
    index = accountant.charge(event)
    chosen = (
        accountant.noise.gumbel_top(quantised, scale, size, index=index)
        if scale
        else np.argsort(-quantised, kind="stable")[:size].tolist()
    )
    accountant.bought(index, label, chosen if size > 1 else chosen[0])
    return chosen
