"""Numbers as people write them in tables: what a column's cells would be once they are written
plainly, and how to write them so.  For drafts of domains; nothing in a private run rests on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["has_leading_zero", "may_be_thousands", "plainly", "spelling_of"]

_PLAIN = r"[-+]?\d+(?:\.\d+)?"
_MONEY = r"[$€£¥]"
# The first that fits, with a whole cell; a thousands separator before a decimal comma, because of
# "1,100" the first is likelier.
_SPELLINGS = {
    "groups": re.compile(rf"[-+]?{_MONEY}?\s?\d{{1,3}}(?:[,.' \u00a0\u202f]\d{{3}})+(?:[.,]\d+)?"),
    "comma": re.compile(r"[-+]?\d+,\d+"),
    "percent": re.compile(r"[-+]?\d+(?:[.,]\d+)?\s*%"),
    "limit": re.compile(rf"(?:[<>≤≥]=?)\s*{_PLAIN}"),
    "brackets": re.compile(rf"\({_PLAIN}\)"),
    "money": re.compile(rf"[-+]?{_MONEY}\s?[-+]?\d+(?:[.,]\d+)?|{_PLAIN}\s?{_MONEY}"),
    "unit": re.compile(rf"{_PLAIN}\s?(?P<unit>[^\W\d_]\S{{0,9}})"),
}
# Examples are these, and no cells: the words stay in a file that will be shown.
_CURES = {
    "groups": "digits in groups of three: write 1,100 as 1100",
    "comma": "decimal commas: write 4,5 as 4.5",
    "percent": "percent signs: write 12.3% as 12.3",
    "limit": "limits of a measurement: write <5 as 5, or as what your field takes for it",
    "brackets": "brackets: write (12) as -12, if that is what they mean",
    "money": "signs of a currency: write $12 as 12",
    "unit": "units: write 12 kg as 12",
}
_ZERO_FIRST = re.compile(r"0\d+")
_BELOW_A_THOUSAND = re.compile(r"[-+]?\d{1,3}")
_IN_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")


def spelling_of(cell: object) -> str | None:
    """How a cell spells a number that cannot be read: a word, with the unit where there is one;
    None where it does not.
    """
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    for word, pattern in _SPELLINGS.items():
        if found := pattern.fullmatch(text):
            return f"unit {found['unit']}" if word == "unit" else word
    return None


def plainly(spellings: Iterable[str]) -> str:
    """How such cells are to be written, for what :func:`spelling_of` says of them."""
    words = dict.fromkeys(spelling.partition(" ")[0] for spelling in spellings)
    return "; ".join(_CURES[word] for word in words)


def has_leading_zero(cell: object) -> bool:
    """Whether a cell is of digits after a zero, as in codes that are no numbers: 01067."""
    return isinstance(cell, str) and bool(_ZERO_FIRST.fullmatch(cell.strip()))


def may_be_thousands(cell: object) -> bool | None:
    """Whether what reads as a number with three digits behind the point may be one of thousands:
    48.425 for 48425.  None for one below a thousand, which both would write alike.
    """
    text = cell.strip() if isinstance(cell, str) else ""
    return None if _BELOW_A_THOUSAND.fullmatch(text) else bool(_IN_THOUSANDS.fullmatch(text))
