"""Directed rounding: every float that a guarantee rests on is rounded to the safe side.

A float is a rational number, so "is d / scale at most epsilon?" has an exact answer.  These helpers
work with :class:`fractions.Fraction` and round once, in the direction that can only cost utility,
never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

from ..checks import check_positive, is_whole
from ..errors import OptionError


def round_down(value: Fraction) -> float:
    """Return the largest float not above ``value``."""
    result = float(value)
    return math.nextafter(result, -math.inf) if Fraction(result) > value else result


def round_up(value: Fraction) -> float:
    """Return the smallest float not below ``value``."""
    result = float(value)
    return math.nextafter(result, math.inf) if Fraction(result) < value else result


def at_least(value: Any) -> float:
    """Return the smallest float not below a number as it was given: a whole number, a fraction, a
    decimal or a text may lie between two floats, of which the nearest is too small for a
    sensitivity.
    """
    value = value.item() if hasattr(value, "item") else value  # of an array of one number
    ratio = getattr(value, "as_integer_ratio", None)
    if ratio is not None:
        return round_up(Fraction(*ratio()))
    if is_whole(value):
        return round_up(Fraction(int(value)))
    return round_up(Fraction(value)) if isinstance(value, str) else float(value)


def left_in_words(value: float) -> str:
    """A number of which so much is left, rounded down to six digits: what is said to be left can be
    asked for.
    """
    nearest = f"{value:.6g}"
    if float(nearest) <= value:
        return nearest
    lower = Context(prec=6, rounding=ROUND_FLOOR).create_decimal_from_float(value)
    return f"{float(lower):.6g}"


def spent_in_words(value: float, digits: int = 6) -> str:
    """A number that is promised, or spent, rounded up to so many digits: what is said is never
    less than what holds.

    >>> spent_in_words(0.1), spent_in_words(1.0000001), spent_in_words(2.00049, 4)
    ('0.1', '1.00001', '2.001')
    """
    nearest = f"{value:.{digits}g}"
    if float(nearest) >= value:
        return nearest
    upper = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)
    return f"{float(upper):.{digits}g}"


def promise_in_words(epsilon: float, delta: float, *, equals: str = "=") -> str:
    """The two numbers of a promise, each rounded up.

    >>> promise_in_words(0.5, 1e-6)
    'epsilon=0.5, delta=1e-06'
    """
    return f"epsilon{equals}{spent_in_words(epsilon)}, delta{equals}{spent_in_words(delta)}"


def sqrt_up(value: Fraction) -> float:
    """Return a float ``s`` (the smallest, up to one unit in the last place) with ``s * s >= value``
    exactly.
    """
    if value < 0:
        raise OptionError(
            f"value must not be negative, got {float(value)!r}: only such numbers have a square "
            "root"
        )
    result = math.sqrt(float(value))
    while Fraction(result) ** 2 < value:
        result = math.nextafter(result, math.inf)
    return result


def sqrt_down(value: Fraction) -> float:
    """Return a float ``s`` (the largest, up to one unit in the last place) with ``s * s <= value``
    exactly.
    """
    if value < 0:
        raise OptionError(
            f"value must not be negative, got {float(value)!r}: only such numbers have a square "
            "root"
        )
    result = math.sqrt(float(value))
    while Fraction(result) ** 2 > value:
        result = math.nextafter(result, 0.0)
    return result


def split(total: float, weights: Sequence[float]) -> tuple[float, ...]:
    r"""Split a budget in proportion to weights so that the parts never add up to more than the
    whole.

    Part i is the largest float not above ``total * weights[i] / sum(weights)``; the exact sum of
    the parts is therefore at most ``total``, and events of these sizes always fit into a ledger
    that has ``total`` left.

    Args:
        total: the epsilon or rho to be split, positive and finite.
        weights: positive finite weights, one a part.

    Returns:
        The parts, in the order of the weights.

    Raises:
        OptionError: ``total`` or a weight is not positive and finite, or there are no weights.

    Example:
        >>> from jaxcd.privacy import split
        >>> split(1.0, [3.0, 1.0])
        (0.75, 0.25)
    """
    whole = Fraction(check_positive("total", total))
    if len(weights) == 0:
        raise OptionError("weights must not be empty, got 0 of them: give one weight for each part")
    shares = [Fraction(check_positive("weights", weight)) for weight in weights]
    norm = sum(shares)
    return tuple(round_down(whole * share / norm) for share in shares)
