"""Is an argument a number?  One policy for all: Python's and NumPy's numbers are, truth values and
texts are not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["is_number", "is_whole"]


def is_whole(value: Any, least: int | None = None, most: int | None = None) -> bool:
    """Whether it is a whole number, from ``least`` to ``most`` where they are given.

    >>> is_whole(3, 1), is_whole(np.int64(3), 1, 3), is_whole(True), is_whole(3.0), is_whole(0, 1)
    (True, True, False, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        return False
    return (least is None or bool(value >= least)) and (most is None or bool(value <= most))


def is_number(value: Any) -> bool:
    """Whether it is a finite real number.

    >>> (
    ...     is_number(0.5),
    ...     is_number(np.float32(1)),
    ...     is_number(2),
    ...     is_number(True),
    ...     is_number("1"),
    ...     is_number(math.nan),
    ... )
    (True, True, True, False, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        return False
    return math.isfinite(value)
