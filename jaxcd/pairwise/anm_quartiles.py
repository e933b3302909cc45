r"""How far a quartile range can be moved by k records: what stability and flip distances are
counted from.

With sorted values z_1 <= .. <= z_m let Q1 = z_a, Q3 = z_b, a = ceil(m / 4), b = ceil(3 m / 4).
*Replacing k values* moves z_a and z_b, and

    sup IQR = max over j + l <= k of z_(b+j) - z_(a-l),
    inf IQR = min over j + l <= k of max(0, z_(b-j) - z_(a+l)),

z_i = -inf for i < 1 and +inf for i > m: to push Q3 up by j places, j values from below must go
above it, and a value that crosses one quartile only moves that one, so the two need j + l values;
for the infimum j + l values move into the middle.  Both are exact.

*A training record* shifts every residual by at most r, hence every order statistic by r and the
range by 2 r (training half replaced: k records, 2 k r).  With both halves in play, and k changes of
which k - j - l are of training records,

    sup IQR <= max over j + l <= k of z_(b+j) - z_(a-l) + 2 r (k - j - l),

and if the same records train and test ("joint"), each change does both: + 2 r k.

**The property that is used.**  Let I_k(D) be these intervals.  I_0(D) is the range itself, and for
neighbours I_k(D') is in I_{k+1}(D): a replaced test record of D' can be replaced first, and a
training record shifts each order statistic by r and the bound by 2 r.  Products of ranges have the
same property.  So min {k: I_k(D) is not inside a set that holds D's value} is 1-Lipschitz where
neighbours' values share the set, and 1 where they do not.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["QuartileRange", "Reach", "bin_exits", "flip_distance", "quartile_places"]


class Reach(enum.Enum):
    """What one replaced record does to a column of test values.

    VALUES: one value becomes any other.  SHIFT: all values move by at most r.  EITHER: one of
    these.  JOINT: both at once.
    """

    VALUES = "values"
    SHIFT = "shift"
    EITHER = "either"
    JOINT = "joint"


def quartile_places(m: int) -> tuple[int, int]:
    """Places of the quartiles in the sorted values, from 0: ceil(m / 4) - 1 and ceil(3 m / 4) -
    1.
    """
    return (m + 3) // 4 - 1, (3 * m + 3) // 4 - 1


@dataclass(frozen=True, eq=False, repr=False)
class QuartileRange:
    """A column's values, and what a neighbour may do to them.  values: (m,); sensitive.  shift:
    r >= 0.
    """

    values: np.ndarray
    reach: Reach
    shift: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.sort(np.asarray(self.values, dtype=np.float64)))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Q1 and Q3; sensitive."""
        a, b = quartile_places(len(self.values))
        return float(self.values[a]), float(self.values[b])

    @property
    def range(self) -> float:
        """Q3 - Q1 >= 0; sensitive."""
        q1, q3 = self.quartiles
        return q3 - q1

    def interval(self, k: int) -> tuple[float, float]:
        """I_k: bounds on the range after k replaced records."""
        if k == 0:
            return self.range, self.range
        if self.reach is Reach.SHIFT:
            return max(0.0, self.range - 2 * k * self.shift), self.range + 2 * k * self.shift
        m = len(self.values)
        a, b = quartile_places(m)
        slack = self.shift if self.reach is Reach.EITHER else 0.0
        step = np.arange(k + 1)
        padded = np.concatenate([[-math.inf], self.values, [math.inf]])

        def value(place: np.ndarray) -> np.ndarray:
            return padded[np.clip(place, -1, m) + 1]

        # max over j + l <= k of u_j + v_l: u_j against the best v of the first k - j + 1.
        up = value(b + step) - 2 * slack * step
        down = -value(a - step) - 2 * slack * step
        high = float(np.max(up + np.maximum.accumulate(down)[::-1]))
        if k >= b - a:
            low = 0.0  # all values between the quartiles can be brought to one point
        else:
            up, down = value(b - step) + 2 * slack * step, value(a + step) - 2 * slack * step
            low = float(np.min(up - np.maximum.accumulate(down)[::-1]))
        extra = 2 * k * self.shift if self.reach in (Reach.EITHER, Reach.JOINT) else 0.0
        return max(0.0, low - extra), high + extra


def _first(holds: Callable[[int], bool], largest: int) -> int:
    """The least k in 1 .. largest at which a condition that stays true once true is true;
    largest + 1 if it never is.
    """
    if not holds(largest):
        return largest + 1
    low, high = 1, largest
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def bin_exits(column: QuartileRange, *, width: float) -> tuple[float, int, int] | None:
    """The logarithm of a quartile range, and for the two cuttings into bins of ``width`` the
    records that must be replaced to leave its bin.

    Bins: [k w, (k + 1) w) and [k w - w / 2, k w + w / 2).  None where the range is 0.  The counts
    are 1-Lipschitz, and 1 next to a neighbour in another bin or with a range of 0 (module
    docstring).
    """
    value = _log(column.range)
    if not math.isfinite(value):
        return None
    exits = []
    for offset in (0.0, width / 2):

        def bin_of(log: float, offset: float = offset) -> float:
            return math.floor((log + offset) / width) if math.isfinite(log) else log

        here = bin_of(value)
        leaves = lambda k: any(bin_of(_log(end)) != here for end in column.interval(k))  # noqa: B023, E731
        exits.append(_first(leaves, 2 * len(column.values)))
    return value, exits[0], exits[1]


def flip_distance(
    forward: tuple[QuartileRange, QuartileRange], backward: tuple[QuartileRange, QuartileRange]
) -> int:
    r"""2 d - 1 with the sign of the answer: d records must be replaced before the products of two
    ranges change their order.

    Positive iff the forward product is strictly the smaller one (the forward direction wins).  d is
    counted by the intervals I_k, a lower bound on the true number.  Between neighbours it changes
    by at most 2: with equal signs d is 1-Lipschitz, with different signs both d are 1.  Defined for
    all data sets, ties included; d is at most 2 m + 1.
    """

    def ends(pair: tuple[QuartileRange, QuartileRange], k: int) -> tuple[float, float]:
        (low_1, high_1), (low_2, high_2) = pair[0].interval(k), pair[1].interval(k)
        both = high_1 * high_2 if high_1 > 0 and high_2 > 0 else 0.0
        return low_1 * low_2, both

    forward_wins = ends(forward, 0)[0] < ends(backward, 0)[0]

    def may_flip(k: int) -> bool:
        (low_f, high_f), (low_b, high_b) = ends(forward, k), ends(backward, k)
        return high_f >= low_b if forward_wins else low_f < high_b

    d = _first(may_flip, 2 * len(forward[0].values))
    return 2 * d - 1 if forward_wins else 1 - 2 * d
