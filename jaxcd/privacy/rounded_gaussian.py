r"""Exact draws of round(sigma N), N standard normal: a function of continuous Gaussian noise, and
so exactly Gaussian differentially private, which discrete Gaussian noise is not.

For an integer x, round(x + sigma N) = x + round(sigma N): rounding the continuous mechanism is
adding such a draw.

*The law.* With T = sigma N write abs(T) = j + v, j a whole number from 0, v in [0, 1). Its
density is proportional to exp(-j^2 / (2 sigma^2)) exp(-g), g = v (2 j + v) / (2 sigma^2). So:
draw j with P[j] proportional to exp(-j^2 / (2 sigma^2)), j = 0, 1, ... (a discrete Gaussian given
that it is not negative), and v uniform; accept with probability exp(-g), else begin anew; then
abs(T) = j + v has exactly its law. A fair sign makes it T, and round(T) is the sign times j + [v
>= 1/2] (the probability of v = 1/2 is 0).

*Accepting* (Canonne, Kamath, Steinke 2020, algorithm 1).  Let m be a whole number with g <= m.  An
event of probability exp(-g/m): with U_1, U_2, ... uniform let K be the first k with U_k >= g / (m
k); P[K > k] = (g/m)^k / k!, so K is odd with probability exp(-g/m).  All of m such independent
events have probability exp(-g).  m may depend on j and v.

*Deciding.* U and v are sequences of fair bits, of which 53 are drawn at first. U < g / (m k) is U
m k 2 sigma^2 < v (2 j + v). In doubles each side is off by at most 2^-50 of m k 2 sigma^2, resp.
of 2 j + 2: at most four roundings of IEEE arithmetic, and the bits not drawn. Where the sides
differ by more than 2^-49 of the sum of the two, the answer is that for all further bits;
elsewhere it is found in rational numbers, for the exact double sigma, with 64 more bits of U and
v at a time until it is certain. Bits of v that were drawn stay. So the draws have the law above,
without an error.

*Saturation.*  j comes saturated at 2^62.  With sigma <= 2^50 that happens with a probability below
exp(-2^22), which no double can hold: conversions of Gaussian privacy leave 2^-44 of delta free,
which is more than (1 + exp(epsilon)) times that for 2^64 draws and every epsilon up to 2^20.

How often it tries depends on no data.

Source:
    Canonne, Kamath, Steinke 2020, The discrete Gaussian for differential privacy; von Neumann 1951;
    Karney 2016 for the pair (j, v).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDED_LIMIT", "rounded_gaussian"]

ROUNDED_LIMIT = 2.0**50
"""The largest sigma, in steps of the grid."""

_BITS = 53
_UNIT = 2.0**-_BITS
_SLACK = 2.0**-49

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


class _Bits:
    """A number in [0, 1) of which some bits are known."""

    def __init__(self, known: int, count: int, words: Callable[[int], Words]) -> None:
        self._known, self._count, self._words = known, count, words

    def more(self) -> None:
        self._known = (self._known << 64) | int(self._words(1)[0])
        self._count += 64

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        whole = 1 << self._count
        return Fraction(self._known, whole), Fraction(self._known + 1, whole)


def _below(u: _Bits, v: _Bits, j: int, factor: Fraction) -> bool:
    """Whether u factor < v (2 j + v), with as many more bits as that takes."""
    while True:
        (u_low, u_high), (v_low, v_high) = u.ends, v.ends
        if u_high * factor <= v_low * (2 * j + v_low):
            return True
        if u_low * factor >= v_high * (2 * j + v_high):
            return False
        u.more()
        v.more()


def _accepted(
    whole: Integers, parts: Words, sigma: float, words: Callable[[int], Words]
) -> NDArray[np.bool_]:
    """Which pairs (j, v) are accepted; ``parts`` are the first 53 bits of each v."""
    v, doubled = parts.astype(np.float64) * _UNIT, 2.0 * whole.astype(np.float64)
    right, variance = v * (doubled + v), 2.0 * sigma * sigma
    # at least g, for every continuation of v
    above = (v + 2 * _UNIT) * (doubled + v + 2 * _UNIT) / variance * (1 + 2.0**-40)
    events = np.floor(above) + 1.0
    exact_variance, known = 2 * Fraction(sigma) ** 2, dict[int, _Bits]()
    found = np.zeros(len(whole), dtype=np.bool_)
    active, left, k = np.arange(len(whole)), events.copy(), np.ones(len(whole))
    while active.size:
        drawn = words(len(active)) >> np.uint64(64 - _BITS)
        factor = variance * events[active] * k[active]
        difference = right[active] - drawn.astype(np.float64) * _UNIT * factor
        slack = _SLACK * (factor + doubled[active] + 2.0)
        below = difference > slack
        for at in np.flatnonzero(np.abs(difference) <= slack):
            i = int(active[at])
            part = known.setdefault(i, _Bits(int(parts[i]), _BITS, words))
            exact = exact_variance * int(events[i]) * int(k[i])
            below[at] = _below(_Bits(int(drawn[at]), _BITS, words), part, int(whole[i]), exact)
        odd = k[active] % 2 == 1
        happened, failed = active[~below & odd], ~below & ~odd
        k[active[below]] += 1
        k[happened], left[happened] = 1.0, left[happened] - 1
        done = happened[left[happened] == 0]
        found[done] = True
        active = active[~failed & ~found[active]]
    return found


def rounded_gaussian(
    sigma: float, size: int, *, discrete: Callable[[int], Integers], words: Callable[[int], Words]
) -> Integers:
    """Draw independent integers of the law of round(sigma N), exactly.

    Args:
        sigma: positive, at most :data:`ROUNDED_LIMIT`.
        size: how many.
        discrete: draws so many discrete Gaussian integers of parameter sigma.
        words: draws so many words of 64 fair bits.

    Returns:
        The integers.
    """
    kept: list[Integers] = []
    missing = size
    while missing > 0:
        draws = discrete(2 * missing + missing // 8 + 16)
        whole = draws[draws >= 0]
        bits = words(len(whole))
        parts, signs = bits >> np.uint64(64 - _BITS), (bits & np.uint64(1)).astype(np.int64)
        chosen = _accepted(whole, parts, sigma, words)
        half = (parts >> np.uint64(_BITS - 1)).astype(np.int64)
        found = ((1 - 2 * signs) * (whole + half))[chosen][:missing]
        kept.append(found)
        missing -= len(found)
    return np.concatenate(kept) if kept else np.zeros(0, np.int64)
