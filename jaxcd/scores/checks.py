"""Options of scores, checked in one way."""

from __future__ import annotations

import math
from typing import Any

from jaxcd.checks import is_whole
from jaxcd.errors import OptionError

__all__ = ["check_count", "check_positive"]


def check_positive(argument: str, value: Any, *, usual: str) -> float:
    """Returns the value as a float if it is a finite number above 0, else raises OptionError."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not (math.isfinite(value) and value > 0)
    ):
        raise OptionError(f"{argument} = {value!r} is not a finite number above 0; {usual}")
    return float(value)


def check_count(argument: str, value: Any, *, usual: str) -> int:
    """Returns the value if it is a whole number from 1, else raises OptionError."""
    if not is_whole(value, 1):
        raise OptionError(f"{argument} = {value!r} is not a whole number from 1; {usual}")
    return value
