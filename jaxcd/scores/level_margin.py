r"""What a penalty asks of columns of many levels.

BIC's price log(n) / 2 of a free number is a mean and a margin.  The chance fit of d free numbers is
about half a chi-square of d degrees: its mean d / 2 grows with d, its scatter with the root of d.
So the mean is half a nat a number, whatever the levels; the rest, log(n) / 2 - 1/2, is a margin for
the scatter, and need not grow with every number.  A column of more than m levels pays it as if it
had

    c(k) = 1 + sqrt((m - 1) (k - 1)),  c(k) = k for k <= m.

The margin of an edge between two such columns grows with the root of (k - 1) (l - 1), as the
scatter does.  With c in the place of k in a product over columns the price of a graph stays a sum
of differences of one function of sets, so that it is equal for equivalent DAGs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxcd.checks import check_whole

__all__ = ["FULL_LEVELS", "check_full_levels", "counted_levels", "mean_and_margin"]

FULL_LEVELS = 4
"""m of the scores of releases, chosen by ``benchmarks.many_levels``."""


def check_full_levels(full_levels: int | None) -> int | None:
    """Returns m, None for infinity; raises OptionError for anything but a whole number from 2."""
    if full_levels is None:
        return None
    return check_whole("full_levels", full_levels, 2, cure="give one such as 4, or None for all")


def counted_levels(cardinalities: Sequence[int], full_levels: int | None) -> tuple[float, ...]:
    """c(k) of each column; k itself where ``full_levels`` (m) is None.

    >>> counted_levels((2, 4, 13), 4), counted_levels((13,), None)
    ((2.0, 4.0, 7.0), (13.0,))
    """
    if full_levels is None:
        return tuple(map(float, cardinalities))
    return tuple(
        float(k) if k <= full_levels else 1 + math.sqrt((full_levels - 1) * (k - 1))
        for k in cardinalities
    )


def mean_and_margin(price: float, mean: float) -> tuple[float, float]:
    """A price in the part that is a mean, at most ``mean``, and the rest.

    >>> mean_and_margin(5.0, 0.5), mean_and_margin(0.25, 0.5)
    ((0.5, 4.5), (0.25, 0.0))
    """
    part = min(price, mean)
    return part, price - part
