"""Names of columns, short enough for a picture and still told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["short_labels"]

_CUT = "\N{HORIZONTAL ELLIPSIS}"


def short_labels(names: Sequence[str], *, longest: int) -> list[str]:
    """Each name cut at its end; those that would then be alike, cut in the middle; those that are
    still alike, with their place in front (questions of a survey begin, and end, alike).

    Args:
        names: distinct.
        longest: characters of a label, at least 8.

    Returns:
        The labels, in the order of the names; what cannot be printed is replaced.

    Example:
        >>> short_labels(["weight at birth", "weight at birth, mother"], longest=12)
        ['weight…birth', 'weight…other']
    """
    plain = [
        "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in name)
        for name in names
    ]
    ends = (longest - 1) // 2
    middle = [
        name if len(name) <= longest else name[: longest - 1 - ends] + _CUT + name[-ends:]
        for name in plain
    ]
    labels = _where_alike([_cut(name, longest) for name in plain], middle)
    numbered = [_cut(f"{i} {name}", longest) for i, name in enumerate(plain, start=1)]
    return _where_alike(labels, numbered)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + _CUT


def _where_alike(labels: Sequence[str], others: Sequence[str]) -> list[str]:
    times = Counter(labels)
    return [
        other if times[label] > 1 else label for label, other in zip(labels, others, strict=True)
    ]
