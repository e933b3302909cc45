"""What single cells and numbers look like, for drafts of domains: dates, codes, round numbers."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.column_types import number_spelled, reading, shown

__all__ = [
    "stands_alone",
    "bounds_around",
    "codes_among",
    "edges_up_to",
    "id_words",
    "is_date",
    "means_missing",
    "names_somebody",
    "number_of",
    "spelled_alike",
]

_MISSING_WORDS = frozenset(
    (
        "unknown|unk|missing|n/a|na|n.a.|n.a|not known|not available|not applicable|not recorded|"
        "not stated|refused|no answer|no response|nil|?|??|-|--|.|#n/a|#null!|nan|null|<na>|"
    ).split("|")
)
_REPEATED_DIGITS = frozenset(
    float(sign * int(digit * length))
    for digit in "789"
    for length in range(1, 7)
    for sign in (1, -1)
)
_CODES = _REPEATED_DIGITS | {-1.0}

_LARGEST = 1e150  # differences and products of two such numbers are finite

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?"
_ZONE = r"(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
_DAY = (
    r"(?P<a>\d{4})[-/.](?P<b>\d{1,2})[-/.](?P<c>\d{1,2})",
    r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<c>\d{4}|\d{2})",
    r"\d{1,2}(?:st|nd|rd|th|\.)?[ -](?P<month>[A-Za-z]{3,9})\.?,?[ -](?:\d{4}|\d{2})",
    r"(?P<month>[A-Za-z]{3,9})\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}",
)
_DATES = tuple(re.compile(rf"{day}(?:[T ,]+{_CLOCK}{_ZONE})?") for day in _DAY)
_TIME = re.compile(_CLOCK + _ZONE)
_MONTHS = frozenset("jan feb mar apr may jun jul aug sep oct nov dec".split())
_SOMEBODY = frozenset(
    (
        "id ids pid uid uuid guid mrn ssn person patient subject participant case member client "
        "customer user household respondent name email"
    ).split()
)


def means_missing(cell: object) -> bool:
    """Whether a text usually stands for a missing value, such as "unknown" or "n/a"."""
    return isinstance(cell, str) and cell.strip().casefold() in _MISSING_WORDS


def number_of(cell: object) -> int | float | None:
    """The number that a cell is or spells; None where there is none (a truth value), or one that
    nobody measured.
    """
    if isinstance(cell, str):
        number = number_spelled(cell)
    else:
        number = None if isinstance(cell, (bool, np.bool_)) else reading(cell)
    return None if number is None or abs(number) > _LARGEST else number


def spelled_alike(cells: Iterable[object]) -> list[str]:
    """Which distinct cells differ in case, blanks or the spelling of a number only: a text for each
    group of them, such as ``'7' and '7.0'``.
    """
    groups: dict[object, list[object]] = {}
    for cell in cells:
        number = number_of(cell)
        key = "".join(str(cell).split()).casefold() if number is None else number
        groups.setdefault(key, []).append(cell)
    return [" and ".join(map(shown, same)) for same in groups.values() if len(same) > 1]


def id_words(ids: Iterable[object], n_blank: int, *, most: int) -> tuple[str, ...]:
    """What to know of ids before they say which rows belong to one person.

    Args:
        ids: the distinct ones that are not blank.
        n_blank: how many rows have no id.
        most: how many examples are shown.
    """
    words = []
    if n_blank:
        words.append(f"rows without an id: {n_blank:,}. Each counts as a person of its own")
    if alike := spelled_alike(ids):
        rest = f" and {len(alike) - most:,} more" if len(alike) > most else ""
        words.append(
            "ids that differ in case, blanks or the spelling of a number only: "
            f"{', '.join(alike[:most])}{rest}. Each counts as a person of its own: spell them "
            "alike before a run with a unit of persons, if they are one"
        )
    return tuple(words)


def is_date(cell: object) -> bool:
    """Whether a cell is, or spells, a date or a time of day: ISO, d/m/y and m/d/y, or with the
    month's name.
    """
    if isinstance(cell, (datetime.date, datetime.time, datetime.timedelta, np.datetime64)):
        return True
    if isinstance(cell, (int, float)) and not isinstance(cell, bool) and 1e7 < cell < 1e8:
        cell = f"{cell:.0f}"
    if not isinstance(cell, str):
        return False
    text = cell.strip()
    if re.fullmatch(r"(?:19|20)\d{6}", text):
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if _TIME.fullmatch(text):
        return True
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            return _is_day(match.groupdict())
    return False


def _is_day(parts: dict[str, str | None]) -> bool:
    """Whether the parts of a date can be one, in some order of day and month."""
    if parts.get("month") is not None:
        return str(parts["month"])[:3].casefold() in _MONTHS
    first, second, third = (int(str(parts[name])) for name in "abc")
    small = (second, third) if first > 31 or len(str(parts["a"])) == 4 else (first, second)
    return 1 <= min(small) <= 12 and 1 <= max(small) <= 31


def names_somebody(name: str) -> bool:
    """Whether a column's name says that it holds ids, such as patient_id or PatientID."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    words = [part.casefold() for part in parts]
    return any(word in _SOMEBODY or word.removesuffix("id") in _SOMEBODY for word in words)


def codes_among(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which distinct numbers look like codes: -1 or one of repeated digits 7, 8 or 9, away from all
    the others.
    """
    candidates = np.array([value in _CODES for value in values.tolist()], dtype=np.bool_)
    rest = values[~candidates]
    if rest.size == 0:
        return np.zeros(values.shape, dtype=np.bool_)
    low, high = float(rest.min()), float(rest.max())
    spread = max(high - low, 1.0)
    above = values > high + np.where(np.abs(values) < 10, 2, 1) * spread
    below = values < low - spread
    if low >= 0:
        below |= (values < 0) & ((values != -1) | (high >= 10))
    return candidates & (above | below)


def stands_alone(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of at least ten distinct numbers is farther from the next than three times the range of
    all others: the highest or the lowest, or none.
    """
    lone = np.zeros(values.shape, dtype=np.bool_)
    distinct = np.unique(values)
    if distinct.size >= 10:
        if distinct[-1] - distinct[-2] > 3 * (distinct[-2] - distinct[0]):
            lone = values == distinct[-1]
        elif distinct[1] - distinct[0] > 3 * (distinct[-1] - distinct[1]):
            lone = values == distinct[0]
    return lone


def edges_up_to(high: float) -> tuple[float, ...]:
    """Bins for counts: 0, 1, 2, 5, 10, ... up to the first that is above; powers of ten where these
    would be many.
    """
    for factors in ((1, 2, 5), (1,)):
        edges = [0.0]
        while edges[-1] <= high:
            power, place = divmod(len(edges) - 1, len(factors))
            edges.append(float(factors[place] * 10**power))
        if len(edges) <= 9:
            break
    return tuple(edges)


# Bounds are written with twelve digits, and a step can be divided.
_LEAST_SPREAD, _LEAST_STEP = 1e-9, 1e-290


def bounds_around(low: float, high: float) -> tuple[float, float]:
    """Round numbers around a range; 0 below numbers that are positive and reach near it."""
    largest = max(abs(low), abs(high))
    spread = max(high - low or largest or 1.0, _LEAST_SPREAD * largest, _LEAST_STEP)
    if not math.isfinite(spread):
        return low, high
    exponent = math.floor(math.log10(spread / 4))
    leading = spread / 4 / 10.0**exponent
    step = (5 if leading >= 5 else 2 if leading >= 2 else 1) * 10.0**exponent
    lower, upper = math.floor(low / step) * step, math.ceil(high / step) * step
    if 0 <= low <= 0.25 * high:
        lower = 0.0
    if not lower < upper:
        upper = lower + step
    return float(f"{lower:.12g}"), float(f"{upper:.12g}")
