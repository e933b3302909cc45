r"""What a penalty asks of columns of many levels.

BIC's price log(n) / 2 of a free number is a mean and a margin.  By chance d free numbers gain about
half a chi-square of d degrees: its mean d / 2 grows with d, its scatter with the root of d.  Where
cells hold one or two rows the mean is up to .58 d: 2 (N log(N / m) - N + m) of a Poisson count N of
mean m is 1.16 on the average at m = 1.3, and less at any other m.  So .58 nats a number are paid
whatever the levels; the rest, log(n) / 2 - .58, is a margin for the scatter, and need not grow with
every number.  A column of k levels pays it as if it had

    c(k) = k for k <= m,  min(k, 1 + max(m - 1, sqrt(2 (k - 1)))) else.

The margin of an edge between columns of many levels k and l grows with the root of (k - 1) (l - 1),
as the scatter does.  With c in the place of k in a product over columns the price of a graph stays
a sum of differences of one function of sets, so that it is equal for equivalent DAGs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxcd.checks import check_whole

__all__ = ["CHANCE_FIT", "FULL_LEVELS", "check_full_levels", "counted_levels", "mean_and_margin"]

CHANCE_FIT = 0.58
"""Nats that a free number gains by chance at most, on the average."""

FULL_LEVELS = 6
"""m of the scores of releases, by ``benchmarks.many_levels``.  With 3 or 4 random tables gain a
little more; but of Child, with columns of 5 and 6 levels, ``LogLinear`` then finds less (10,000
rows, (1, 1e-6), 10 runs: arc F1 .84, with 6 .88).
"""


def check_full_levels(full_levels: int | None) -> int | None:
    """Returns m, None for infinity; raises OptionError for anything but a whole number from 2."""
    if full_levels is None:
        return None
    return check_whole("full_levels", full_levels, 2, cure="give one such as 6, or None for all")


def counted_levels(cardinalities: Sequence[int], full_levels: int | None) -> tuple[float, ...]:
    """c(k) of each column; k itself where ``full_levels`` (m) is None.

    >>> counted_levels((2, 4, 5, 19), 4), counted_levels((19,), None)
    ((2.0, 4.0, 4.0, 7.0), (19.0,))
    """
    if full_levels is None:
        return tuple(map(float, cardinalities))
    least = float(full_levels - 1)
    return tuple(min(float(k), 1 + max(least, math.sqrt(2 * (k - 1)))) for k in cardinalities)


def mean_and_margin(price: float, mean: float) -> tuple[float, float]:
    """A price in the part that is a mean, at most ``mean``, and the rest.

    >>> mean_and_margin(5.0, 0.5), mean_and_margin(0.25, 0.5)
    ((0.5, 4.5), (0.25, 0.0))
    """
    part = min(price, mean)
    return part, price - part
