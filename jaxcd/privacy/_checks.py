"""Checks of options, written so that NaN fails them."""

from __future__ import annotations

import math

import numpy as np

from ..errors import OptionError


def check_positive(
    name: str, value: float, *, allow_infinity: bool = False, cure: str = "give a positive number"
) -> float:
    """Return ``value`` as a float if it is positive (and finite unless ``allow_infinity``), else
    raise OptionError.
    """
    number = _as_float(name, value, cure)
    if not number > 0 or (math.isinf(number) and not allow_infinity):
        raise OptionError(
            f"{name} must be positive{'' if allow_infinity else ' and finite'}, got {value!r}: "
            f"{cure}"
        )
    return number


def check_nonnegative(
    name: str, value: float, *, cure: str = "give zero or a positive number"
) -> float:
    """Return ``value`` as a float if it is finite and not negative, else raise OptionError."""
    number = _as_float(name, value, cure)
    if not (number >= 0 and math.isfinite(number)):
        raise OptionError(f"{name} must be finite and not negative, got {value!r}: {cure}")
    return number


def check_share(
    name: str, value: float, *, closed: bool = False, cure: str = "give a fraction"
) -> float:
    """Return ``value`` as a float if it lies in (0, 1), or (0, 1] when ``closed``, else raise
    OptionError.
    """
    number = _as_float(name, value, cure)
    if not (0 < number < 1 or (closed and number == 1)):
        raise OptionError(f"{name} must be in (0, 1{']' if closed else ')'}, got {value!r}: {cure}")
    return number


def check_count(
    name: str, value: int, *, minimum: int = 0, cure: str = "give a whole number"
) -> int:
    """Return ``value`` as an int if it is a whole number not below ``minimum``, else raise
    OptionError.
    """
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, (int, np.integer))
        or value < minimum
    ):
        raise OptionError(
            f"{name} must be a whole number, at least {minimum}, got {value!r}: {cure}"
        )
    return int(value)


def _as_float(name: str, value: float, cure: str) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name} must be a number, got {value!r}: {cure}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{name} must be a number, got {value!r}: {cure}") from error
