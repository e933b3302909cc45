r"""AboveThreshold (sparse vector): one price for any number of "below" answers and one "above".

Integers throughout: queries q_i with sensitivity d under the relation, a public threshold T_i for
each, threshold noise rho >= 0 drawn once, query noise nu_i fresh each time. Query i answers "above"
iff q_i + nu_i >= T_i + rho; the first "above" ends the mechanism.

**Proof** that it is (e1 + e2)-DP. Only two facts about the noise are used, for every integer r in
the support of rho and every integer t:

    (1) P[rho = r] <= exp(e1) P[rho = r + d],      (2) P[nu >= t] <= exp(e2) P[nu >= t + 2 d].

Geometric noise of scales d/e1 and 2d/e2 has both. (1) is an equality: r >= 0 implies r + d >= 0.
(2): P[nu >= t] = min(1, exp(-t e2/(2d))); for t >= 0 an equality, for t < 0 the right side is at
least exp(e2) exp(-e2) = 1. Two-sided discrete Laplace noise of the same scales has both as well:
moving its argument by s steps changes probabilities by a factor of at most exp(s/scale).

Let D, D' be neighbours, in either order: nothing below depends on which of the two has the larger
values, because the threshold is always moved *up* by d, and facts (1) and (2) are needed in that
one direction only. The outcomes are "k" (the first above is query k; queries are chosen adaptively,
but the past, all "below", is the same on both sides) and "none". With B_i(r) = P[q_i(D) +
nu < T_i + r] and A_k(r) = P[q_k(D) + nu >= T_k + r], and B', A' for D',

    P[k] = sum over r >= 0 of P[rho = r] * prod over i < k of B_i(r) * A_k(r).

Below: q_i(D) + nu < T_i + r implies q_i(D') + nu < T_i + r + d, so B_i(r) <= B'_i(r + d): free.
Above: with t = T_k + r - q_k(D), A_k(r) = P[nu >= t] <= exp(e2) P[nu >= t + 2d], and T_k + (r + d)
- q_k(D') is at most t + 2d, so A_k(r) <= exp(e2) A'_k(r + d). Hence P[k] <= exp(e1 + e2) sum over r
of P[rho = r + d] prod B'_i(r + d) A'_k(r + d) <= exp(e1 + e2) P'[k]: the last sum runs over a part
of the support of rho. For "none" the factor A_k is missing: exp(e1) suffices. QED. (2d cannot be d:
the threshold moves up by d while the query may move down by d.)

One-sided noise has half the variance of two-sided.  It is not centred: see
:attr:`AboveThreshold.noise_mean`.

Source:
    Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Lyu, Su, Li 2017 for the share of the threshold;
    the one-sided form is proved above.
"""

from __future__ import annotations

import math
import threading
from enum import Enum
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import check_count, check_share
from ..errors import OptionError, PrivacyError
from .accountant import Accountant
from .budget import Relation
from .conversion import amplified_epsilon
from .events import Law, MechanismRecord, PureEvent
from .mechanisms import GRID, integer_sensitivity, noise_scale, quantise
from .noise import NOISE_LIMIT, NoiseSampler
from .rounding import at_least, round_down
from .sensitive import Sensitive, exact_values

THRESHOLD_SHARE = 1 / (1 + 2 ** (2 / 3))
"""Share of epsilon for the threshold that makes the noise's variance smallest (Lyu, Su, Li
2017).
"""

_FIRST_BLOCK, _LONGEST_BLOCK = 32, 1024


class ThresholdNoise(Enum):
    """The noise of :class:`AboveThreshold`."""

    ONE_SIDED = "one-sided"
    """Geometric (discrete exponential): half the variance at the same epsilon."""

    LAPLACE = "laplace"
    """Discrete Laplace, the textbook's."""


def draw_unbounded(
    sampler: NoiseSampler, noise: ThresholdNoise, scale: float, size: int, *, index: int
) -> NDArray[Any]:
    """Draw noise whose saturated entries, if any, are continued exactly as Python integers.

    An entry x = +-2^62 means "at least that far out". Both laws are memoryless there: given abs(X)
    >= M, abs(X) - M is geometric of the same scale and independent of the sign. So adding a fresh
    geometric gives X exactly, and the proof above needs no exception for int64.
    """
    draw = sampler.geometric if noise is ThresholdNoise.ONE_SIDED else sampler.discrete_laplace
    draws: NDArray[Any] = draw(scale, size, index=index)
    pending = np.flatnonzero(np.abs(draws) >= NOISE_LIMIT)
    if len(pending) == 0:
        return draws
    draws = draws.astype(object)
    for position in pending:
        sign, extra = (1 if draws[position] > 0 else -1), NOISE_LIMIT
        while extra == NOISE_LIMIT:
            extra = int(sampler.geometric(scale, 1, index=index)[0])
            draws[position] += sign * extra
    return draws


class AboveThreshold:
    r"""Find the first query whose noisy value reaches a noisy threshold, at one fixed price.

    With ``rate`` < 1 the queries are evaluated on a secret subset of the records and ``epsilon`` is
    the price of the whole; the noise is that of the larger ``amplified_epsilon(epsilon, rate)``.
    The subset must be fresh, uniform, secret and used for this object only: :meth:`draw_subset`
    draws it, and queries are refused before. ``sensitivity`` is then that of the statistic on the
    subset. Relation: REPLACE_ONE, n and m public.

    Args:
        accountant: ledger and noise.
        sensitivity: of each query, positive.
        epsilon: positive; infinity (under ``NO_PRIVACY`` only) compares without noise.
        pad: bound on the numerical error of each query.
        threshold_share: e1 / epsilon, in (0, 1).
        noise: one-sided (default) or Laplace.
        rate: size of the subset over the number of records, in (0, 1].
        label: public words for the report.
        grid: step, a power of two.
        integral: whether all queries come as integer dtypes (counts): nothing is added for
            rounding.
        relation: neighbouring relation of ``sensitivity``.

    Raises:
        BudgetExhausted: the event does not fit; nothing was drawn.
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: ``relation``, that of the sensitivity. Sensitivity: every query moves by at most
        ``sensitivity``, the integers by at most d of :mod:`jaxcd.privacy.mechanisms`. Event:
        ``PureEvent(epsilon)``, charged once when the object is made. Public: thresholds, grid,
        sensitivity, pad, and what the order of the queries depends on. Proof: in the module's
        docstring, with e1 = threshold_share * epsilon and e2 = epsilon - e1, rounded down.
        Interleaving with other mechanisms is covered by the ledger's proof.  Threads are answered
        one after the other, and a copy is the object itself: there is one "above".
    """

    def __init__(
        self,
        accountant: Accountant,
        *,
        sensitivity: float,
        epsilon: float,
        pad: float = 0.0,
        threshold_share: float = THRESHOLD_SHARE,
        noise: ThresholdNoise = ThresholdNoise.ONE_SIDED,
        rate: float = 1.0,
        label: str,
        grid: float = GRID,
        integral: bool = False,
        relation: Relation = Relation.REPLACE_ONE,
    ) -> None:
        if not isinstance(noise, ThresholdNoise):
            raise OptionError(
                f"noise must be a ThresholdNoise, got {noise!r}: use ThresholdNoise.ONE_SIDED"
            )
        check_share("threshold_share", threshold_share, cure="0.386 gives the least noise")
        check_share("rate", rate, closed=True, cure="give n_subsample / n_samples")
        bound = integer_sensitivity(sensitivity, grid=grid, pad=pad, integral=integral)
        inner = amplified_epsilon(epsilon, rate)
        first = second = math.inf
        if math.isfinite(inner):
            first = round_down(Fraction(threshold_share) * Fraction(inner))
            second = round_down(Fraction(inner) - Fraction(first))
        self._threshold_scale = noise_scale(bound, first)
        self._query_scale = noise_scale(2 * bound, second)
        self._accountant, self._noise, self._rate, self._grid, self._integral = (
            accountant,
            noise,
            rate,
            float(grid),
            integral,
        )
        self._subset_drawn = False
        self._spent, self._lock = False, threading.Lock()
        self._label, self._n_below = label, 0
        law = Law.SPARSE_VECTOR if noise is ThresholdNoise.ONE_SIDED else Law.SPARSE_VECTOR_LAPLACE
        scales = (self._threshold_scale, self._query_scale)
        record = MechanismRecord(
            law, at_least(sensitivity), at_least(pad), float(grid), 1, integral, scales, float(rate)
        )
        self._index = accountant.charge(PureEvent(epsilon, label, relation, record))
        self._threshold_noise = int(self._draw(self._threshold_scale, 1)[0])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def _draw(self, scale: float, size: int) -> NDArray[Any]:
        if scale == 0:
            return np.zeros(size, dtype=np.int64)
        return draw_unbounded(self._accountant.noise, self._noise, scale, size, index=self._index)

    @property
    def index(self) -> int:
        """The ledger's index of the event."""
        return self._index

    @property
    def spent(self) -> bool:
        """Whether an "above" was given: the object answers no more."""
        return self._spent

    @property
    def threshold_scale(self) -> float:
        """Scale of the threshold's noise, in the units of the queries (public)."""
        return self._threshold_scale * self._grid

    @property
    def query_scale(self) -> float:
        """Scale of the queries' noise, in the units of the queries (public)."""
        return self._query_scale * self._grid

    @property
    def noise_mean(self) -> float:
        """Mean of query noise minus threshold noise, in the units of the queries (public): 0 for
        Laplace.

        One-sided noise favours "above" by this much; a threshold raised by it is met by a query of
        equal value about half of the time.
        """
        if self._noise is ThresholdNoise.LAPLACE:
            return 0.0
        # The mean of a geometric of scale s is 1 / (exp(1/s) - 1).
        means = [
            1 / math.expm1(1 / s) if s > 2**-9 else 0.0
            for s in (self._query_scale, self._threshold_scale)
        ]
        return (means[0] - means[1]) * self._grid

    def draw_subset(self, n_samples: int, size: int) -> NDArray[np.bool_]:
        """Draw the secret uniform subset that the queries of this object are evaluated on; once.

        Args:
            n_samples: number of records, public.
            size: number of records in the subset; size / n_samples must not exceed ``rate``.

        Returns:
            Mask of length ``n_samples``; never publish it.

        Raises:
            OptionError: the subset is larger than ``rate`` allows.
            PrivacyError: a subset was drawn before: each belongs to one object.
        """
        n, m = check_count("n_samples", n_samples, minimum=1), check_count("size", size, minimum=1)
        # The float m / n may lie a rounding below m/n; subsampled_epsilon has slack for that.
        if m > Fraction(self._rate) * n and not m / n == self._rate:
            raise OptionError(
                f"size must be at most rate * n_samples = {self._rate * n:g}, got {m}: give rate "
                "= size / n_samples"
            )
        if self._subset_drawn:
            raise PrivacyError(
                "a subset was drawn already: make a new AboveThreshold for a new subset"
            )
        self._subset_drawn = True
        return self._accountant.noise.subset(n, m, index=self._index)

    def first_above(self, values: Sensitive | ArrayLike, *, threshold: ArrayLike) -> int | None:
        """Return the position of the first value whose noisy version reaches the noisy threshold,
        or None.

        May be called again, with further queries, until it has returned a position.

        Args:
            values: exact values of the queries in order, one-dimensional; sensitive.
            threshold: public, a scalar or one for each query.

        Returns:
            Position in ``values``, or None if all are below.

        Raises:
            OptionError: shapes do not fit, or real values were given for integral queries.
            PrivacyError: the object is spent, or ``rate`` < 1 and no subset was drawn.
            SensitivityError: a value is NaN.
        """
        with self._lock:
            return self._first_above(values, threshold)

    def _first_above(self, values: Sensitive | ArrayLike, threshold: ArrayLike) -> int | None:
        if self._spent:
            raise PrivacyError(
                "this AboveThreshold has answered 'above' once and is spent: make a new one, "
                "which is charged anew"
            )
        if self._rate < 1 and not self._subset_drawn:
            raise PrivacyError(
                f"rate={self._rate!r} needs a secret subset: call draw_subset and evaluate the "
                "queries on it"
            )
        array, limit = exact_values(values), np.asarray(threshold)
        if array.ndim != 1 or limit.shape not in ((), array.shape):
            raise OptionError(
                f"threshold must be a scalar or one for each query, got shape {limit.shape} for "
                "values of "
                f"shape {array.shape}: values are one-dimensional"
            )
        if self._integral and array.dtype.kind not in "iu":
            raise OptionError(
                f"values must have an integer dtype for integral queries, got {array.dtype}: "
                "leave integral=False"
            )
        queries = quantise(array, grid=self._grid)
        limits: NDArray[Any] = np.broadcast_to(
            quantise(limit.astype(np.float64), grid=self._grid), queries.shape
        )
        if abs(self._threshold_noise) > NOISE_LIMIT:  # a continued draw: no int64
            limits = limits.astype(object)
        start, length = 0, _FIRST_BLOCK
        while start < len(queries):
            # Noise of a block is drawn at once; what lies behind the first "above" is thrown away
            # unseen.
            block = slice(start, start + length)
            noisy = queries[block] + self._draw(self._query_scale, len(queries[block]))
            above = np.flatnonzero(noisy >= limits[block] + self._threshold_noise)
            if len(above):
                self._spent = True
                place = start + int(above[0])
                self._accountant.bought(self._index, self._label, self._n_below + place)
                return place
            start, length = start + length, min(2 * length, _LONGEST_BLOCK)
        self._n_below += len(queries)
        return None
