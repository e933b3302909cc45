r"""Exact draws of negative binomial integers with r = 1 / m: the m-th part of a geometric one.

P[X = k] = C(k + r - 1, k) (1 - q)^r q^k is (1 - q)^(r - 1) times the geometric probability (1 - q)
q^k times

    C(k + r - 1, k) = product over j = 1 .. k of (j - 1 + r) / j = product of (j m - m + 1) / (j m),

a product of rational numbers of at most 1.  So: draw k from the geometric law and accept it if k
independent events of these probabilities all happen, each decided by a uniform integer below j m.
A draw is accepted with probability (1 - q)^(1 - r), which depends on no data.  No floating point.

Source:
    Goryczka and Xiong 2015, A comprehensive comparison of multiparty secure additions with
    differential privacy, for the shares; the sampler is rejection (von Neumann 1951).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["POLYA_LIMIT", "negative_binomial"]

POLYA_LIMIT = 2.0**14
"""The largest scale: beyond it too few draws are accepted."""

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


def _below(n: int, size: int, words: Callable[[int], Words]) -> Words:
    """Uniform integers from 0 to n - 1, exactly."""
    last = (2**64 // n) * n - 1  # the largest word that is taken
    found = words(size)
    while (again := np.flatnonzero(found > np.uint64(last))).size:
        found = found.copy()
        found[again] = words(len(again))
    return found % np.uint64(n)


def _accepted(draws: Integers, parts: int, words: Callable[[int], Words]) -> NDArray[np.bool_]:
    kept = np.ones(len(draws), dtype=np.bool_)
    active, j = np.flatnonzero(draws >= 1), 1
    while active.size:
        happens = _below(j * parts, len(active), words) < np.uint64((j - 1) * parts + 1)
        kept[active[~happens]] = False
        active = active[happens]
        active = active[draws[active] > j]
        j += 1
    return kept


def negative_binomial(
    parts: int, size: int, *, geometric: Callable[[int], Integers], words: Callable[[int], Words]
) -> Integers:
    """Draw independent integers, ``parts`` of which add up to a geometric one.

    Args:
        parts: m, from 1.
        size: how many.
        geometric: draws so many integers of the geometric law.
        words: draws so many words of 64 fair bits.

    Returns:
        The integers.
    """
    kept: list[Integers] = []
    missing = size
    while missing > 0:
        draws = geometric(2 * missing + 16)
        found = draws[_accepted(draws, parts, words)][:missing]
        kept.append(found)
        missing -= len(found)
    return np.concatenate(kept) if kept else np.zeros(0, np.int64)
