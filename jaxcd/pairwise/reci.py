r"""RECI: the cause predicts the effect with a smaller squared error than the effect predicts the
cause.

With both variables on [0, 1], x -> y if min_f mean (y - f(x))^2 < min_g mean (x - g(y))^2 (Bloebaum
et al. 2018, for little noise and a mechanism chosen without regard to the cause's density).

The private form needs no stability of the fit at all.  For ANY class F of functions fixed
beforehand and any loss with values in [0, C], L(D) = min_{f in F} sum_i loss(record_i, f) changes
by at most C when one record is replaced: with f the minimiser on D, L(D') <= sum over D' of loss(.,
f) <= L(D) + C, and the same with D and D' exchanged.  So the difference of the two minima, one for
each direction, changes by at most 2 C, out of sums that grow with n; what must hold is that the
minimum computed is the minimum over F, exactly.  :class:`BoundedPolynomial` sees to that: a finite
class, searched completely in whole numbers.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np
from numpy.typing import ArrayLike

from jaxcd.checks import check_key_or_none, check_number, hold_python_numbers
from jaxcd.errors import OptionError, SensitivityError
from jaxcd.pairwise._checks import (
    Bounds,
    bounds_json,
    check_bounds,
    check_pair,
    check_pair_arguments,
    min_max_scaled,
    to_unit_interval,
)
from jaxcd.pairwise.regressors import (
    Logistic,
    Monomial,
    NeuralNetwork,
    Polynomial,
    Regressor,
    SupportVector,
    check_whole,
)
from jaxcd.pairwise.result import Direction, PairResult
from jaxcd.privacy import (
    Accountant,
    Budget,
    NoiseSource,
    NoPrivacy,
    PrivacyFilter,
    keeps_what_is_paid,
    laplace,
    noise_scale,
    open_account,
)
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim, claiming
from jaxcd.privacy.mechanisms import integer_sensitivity

__all__ = [
    "BoundedPolynomial",
    "Logistic",
    "Monomial",
    "NeuralNetwork",
    "Polynomial",
    "Regressor",
    "SupportVector",
    "reci",
]

_MAX_FUNCTIONS = 2**20


@final
@dataclass(frozen=True)
class BoundedPolynomial(Regressor):
    r"""Polynomials with values at ``degree + 1`` equidistant points on a grid of [0, 1], and a
    truncated loss: a finite class.

    With R = resolution, x is known by its cell i = floor(R x) and y by j = floor(R y).  f runs over
    the polynomials with f(k / degree) in {0, 1/(levels-1), ..., 1}, evaluated at the centre of the
    cell i, clipped to [0, 1] and rounded to a multiple of 1/(2R).  The loss is min((centre of
    j - f)^2, truncation^2), kept as a whole number of steps 1/(2R)^2.

    The minimum over all levels^(degree+1) functions is found by trying every one, on the R x R
    table of counts.

    Args:
        degree: 1 to 6.
        levels: 2 or more; levels^(degree+1) at most 2^20.
        resolution: 8 to 127.
        truncation: residuals beyond it count as if they were as large as it, in (0, 1]; the privacy
            noise is proportional to its square.

    Raises:
        OptionError: one is out of its range.
    """

    degree: int = 3
    levels: int = 9
    resolution: int = 64
    truncation: float = 0.5

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_whole("degree", self.degree, 1, 6)
        check_whole("levels", self.levels, 2, 1024)
        check_whole("resolution", self.resolution, 8, 127)
        check_number("truncation", self.truncation, 0, 1, "(]", cure="give one such as 0.5")
        if self.levels ** (self.degree + 1) > _MAX_FUNCTIONS:
            raise OptionError(
                f"levels = {self.levels} at degree {self.degree} make "
                f"{self.levels ** (self.degree + 1):,} functions, above "
                f"{_MAX_FUNCTIONS:,}; use fewer levels or a lower degree"
            )
        if not self.ceiling >= 1:
            raise OptionError(
                f"truncation = {self.truncation!r} is below one step of the loss; use "
                f"{1 / self.resolution:.3g} or more"
            )

    @property
    def ceiling(self) -> int:
        """C, the largest loss of a record, in steps of 1/(2R)^2."""
        return round((2 * self.resolution * self.truncation) ** 2)

    @property
    def unit(self) -> float:
        """One step of the loss, 1/(2R)^2."""
        return 0.25 / self.resolution**2

    def error(self, x: np.ndarray, y: np.ndarray) -> float:
        """The least mean truncated squared error over the class."""
        return self.total(x, y) * self.unit / len(x)

    def total(self, x: np.ndarray, y: np.ndarray) -> int:
        """min_f sum_i loss in whole steps, exact; replacing one record changes it by at most
        :attr:`ceiling`.  Sensitive.
        """
        cells = [
            np.minimum((column * self.resolution).astype(np.int64), self.resolution - 1)
            for column in (x, y)
        ]
        counts = np.bincount(cells[0] * self.resolution + cells[1], minlength=self.resolution**2)
        return self.least(counts.reshape(self.resolution, self.resolution))

    def least(self, counts: np.ndarray) -> int:
        """:meth:`total` from the table of counts (R, R), cells of x by cells of y."""
        # in steps of 1/(2R), as the values of f are
        centres = 2 * np.arange(self.resolution, dtype=np.int64) + 1
        values = np.arange(2 * self.resolution + 1, dtype=np.int64)
        # (cell of x, value of f)
        losses = counts @ np.minimum((centres[:, None] - values) ** 2, self.ceiling)
        functions = _functions(self.degree, self.levels, self.resolution)
        totals = np.zeros(functions.shape[1], dtype=np.int64)
        for row, taken in zip(losses, functions, strict=True):
            totals += row[taken]
        return int(totals.min())


@functools.lru_cache(maxsize=4)
def _functions(degree: int, levels: int, resolution: int) -> np.ndarray:
    """Every function of the class at the centres of the cells: (R, levels^(degree+1)), uint8, in
    steps of 1/(2R).
    """
    points = (np.arange(resolution) + 0.5) / resolution
    nodes = np.arange(degree + 1) / degree
    # Lagrange's
    basis = np.stack(
        [
            np.prod([(points - other) / (node - other) for other in nodes if other != node], axis=0)
            for node in nodes
        ]
    )
    heights = np.linspace(0.0, 1.0, levels)
    grids = np.meshgrid(*[heights] * (degree + 1), indexing="ij")
    choices = np.stack([grid.ravel() for grid in grids])  # (degree + 1, functions)
    table = np.empty((resolution, choices.shape[1]), dtype=np.uint8)
    for cell in range(resolution):
        table[cell] = np.rint(np.clip(basis[:, cell] @ choices, 0.0, 1.0) * (2 * resolution))
    table.setflags(write=False)
    return table


@claiming(
    GuaranteeClaim(
        "the noisy difference of two least total losses over a finite class of functions is "
        "epsilon-DP; direction and confidence follow",
        assumptions=PUBLIC + "; bounds are public",
    )
)
@keeps_what_is_paid
def reci(
    x: ArrayLike,
    y: ArrayLike,
    *,
    budget: Budget | NoPrivacy,
    regressor: Regressor | None = None,
    bounds: Bounds | None = None,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
) -> PairResult:
    r"""Regression error based causal inference: x causes y if y is the better predicted.

    Both variables are scaled to [0, 1].  Without privacy the smaller of two regression errors names
    the direction:

        forward = min_f mean loss(y, f(x)),  backward = min_g mean loss(x, g(y))

    With a budget only the noisy difference backward - forward is released: its sign is the
    direction, its size the margin.

    Args:
        x: one number a record, n at least 8.
        y: one number a record, as many as x.
        budget: its epsilon is the price, spent whole (delta is not used); or ``jaxcd.NO_PRIVACY``.
        regressor: None takes ``Polynomial(3)`` without privacy and ``BoundedPolynomial()`` with it.
        bounds: public ``((x_lower, x_upper), (y_lower, y_upper))``; records are clipped to them and
            scaled by them.  Required with a budget; without one None scales by minimum and maximum.
            Errors are compared in units of the bounds, so the bounds of both variables should be
            about equally tight: the one with the wider bounds seems the better predicted, and so
            the effect, also where the two are independent.
        key: not used; a regressor that draws rows or starting points has a seed of its own.
        noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for
            experiments.
        ledger: a LedgerFile (or Ledger) that the event is charged to as well.

    Returns:
        The direction, with ``margin`` = abs(backward - forward) in squared units of the bounds.
        ``confidence``, in a private run: with integer difference d, abs(d) at most n C, noise Z,
        P[Z = k] proportional to q^abs(k), and released m = abs(d + Z) > 0, it is the posterior
        probability of the sign where all values of d are as likely beforehand.  Where n C is far
        above s = 2 C / epsilon that is 1 - q^m / (1 + q), or 1 - exp(-m / s) / 2 up to rounding;
        where it is far below, a half.  For a given d the sign is wrong with probability at most
        exp(-abs(d) / s) / 2.

    Raises:
        DataError: as :func:`check_pair` says; in a private run for shapes, lengths and dtypes only.
        OptionError: an option is not of its kind.
        PrivacyError: the run is private and has no bounds.
        SensitivityError: the run is private and the regressor has no bounded sensitivity.

    Guarantee:
        Relation: replace-one; n, the bounds and the options are public.  Statistic: d = T(y, x) -
        T(x, y), with T the least total loss in whole steps (:meth:`BoundedPolynomial.total`).
        Sensitivity: 2 C in exact integers, C the largest loss of one record, since each T is a
        minimum over a public finite class of sums of losses in [0, C] and moves by at most C (the
        first paragraph of :mod:`jaxcd.pairwise.reci`).  Clipping, scaling and binning act on each
        record alone, and every input, NaN too (it becomes the middle of the bounds), has a value:
        no error and no shape depends on a record.  Event: ``PureEvent(epsilon)`` with the budget's
        epsilon, the only one.  Proof: discrete Laplace noise of scale at least 2 C / epsilon on d
        (:func:`jaxcd.privacy.laplace`); direction, margin and confidence are functions of d + Z.

    Source:
        Bloebaum, Janzing, Washio, Shimizu, Schoelkopf 2018; Dwork, McSherry, Nissim, Smith 2006 for
        the noise.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(size=20_000)
        >>> y = x**3
        >>> found = jaxcd.reci(
        ...     x,
        ...     y,
        ...     budget=jaxcd.Budget(1.0),
        ...     bounds=((0, 1), (0, 1)),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(0)),
        ... )
        >>> print(found.direction, round(found.confidence, 2))
        Direction.X_TO_Y 1.0
    """
    check_key_or_none(key)
    private = check_pair_arguments(budget, noise)
    method = (BoundedPolynomial() if private else Polynomial()) if regressor is None else regressor
    if not isinstance(method, Regressor):
        raise OptionError(
            f"regressor = {regressor!r} is not a regressor; use Polynomial(degree=3) or "
            "BoundedPolynomial()"
        )
    if private and not isinstance(method, BoundedPolynomial):
        raise SensitivityError(
            f"regressor = {method}: one record can move this fit and its error without a useful "
            "bound; use BoundedPolynomial(), "
            "whose minimum over a finite class has one"
        )
    known = check_bounds(bounds, private=private)
    columns = check_pair(x, y, private=private)
    accountant = open_account(
        budget,
        noise,
        ledger=ledger,
        parts=(method,),
        pure=True,
        analysis="reci",
        n_samples=len(columns[0]),
    )
    info: dict[str, Any] = {
        "method": "reci",
        "regressor": str(method),
        "bounds": known,
        **bounds_json(known),
        "n_samples": len(columns[0]),
    }
    if known is None:
        first, second = (min_max_scaled(column) for column in columns)
    else:
        first, second = (
            to_unit_interval(column, *edges) for column, edges in zip(columns, known, strict=True)
        )
    if private:
        assert isinstance(method, BoundedPolynomial) and isinstance(budget, Budget)
        return _private(
            method,
            first,
            second,
            epsilon=accountant.ledger.epsilon_limit,
            accountant=accountant,
            info=info,
        )
    forward, backward = method.error(first, second), method.error(second, first)
    direction = Direction.of_scores(forward, backward)
    return PairResult(
        direction=direction,
        margin=0.0 if direction is Direction.UNDECIDED else abs(backward - forward),
        forward=forward,
        backward=backward,
        confidence=1.0,
        cost=accountant.guarantee,
        spent=accountant.ledger.spent,
        info=info,
    )


def _private(
    method: BoundedPolynomial,
    x: np.ndarray,
    y: np.ndarray,
    *,
    epsilon: float,
    accountant: Accountant,
    info: dict[str, Any],
) -> PairResult:
    difference = np.array([method.total(y, x) - method.total(x, y)], dtype=np.int64)
    noisy = int(
        laplace(
            accountant,
            difference,
            sensitivity=2.0 * method.ceiling,
            epsilon=epsilon,
            grid=1.0,
            label="difference of regression errors",
        )[0]
    )
    scale = noise_scale(integer_sensitivity(2.0 * method.ceiling, grid=1.0, integral=True), epsilon)
    step = method.unit / len(x)
    return PairResult(
        direction=_direction(noisy),
        margin=abs(noisy) * step,
        forward=None,
        backward=None,
        confidence=_confidence(noisy, scale, method.ceiling * len(x)),
        cost=accountant.guarantee,
        spent=accountant.ledger.spent,
        info={**info, "noise_scale": scale * step, "ledger": tuple(accountant.ledger.to_table())},
    )


def _direction(difference: float) -> Direction:
    """difference: the error of y -> x less that of x -> y."""
    return (
        Direction.X_TO_Y
        if difference > 0
        else Direction.Y_TO_X
        if difference < 0
        else Direction.UNDECIDED
    )


def _confidence(released: int, scale: float, largest: int) -> float:
    """The posterior probability that the exact whole number has the sign of the released one, where
    all from -largest to largest are as likely beforehand; :func:`reci`.
    """
    step = math.expm1(-1 / scale)

    def total(last: int) -> float:
        """1 + q + ... + q^last, q = exp(-1 / scale)."""
        return math.expm1(-(last + 1) / scale) / step

    m = abs(released)
    if m == 0:
        return 1 / (2 * total(largest) - 1)  # that the exact number is 0 too
    if m > largest:  # all weights over that of the largest number
        same, rest = total(largest - 1), math.exp(-largest / scale) * total(largest)
    else:
        same = total(m - 1) + total(largest - m) - 1
        rest = math.exp(-m / scale) * total(largest)
    return same / (same + rest)
