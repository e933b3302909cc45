r"""EM-PC's utility: by how many records a G test is away from its other answer, found by a greedy
search.

For a stratified table n_abk let G = 2 sum n_abk ln(n_abk n_..k / (n_a.k n_.bk)) and G* its critical
value.  Records are taken out one after the other, each from the cell that moves G most in the
wanted direction (up where G < G*, down where G > G*), until one more would cross.  The number taken
out before that is u, positive where the test says "independent", negative where it says
"dependent".

**The greedy approximation.**  The number that the mechanism's guarantee speaks of is the least
number of records that have to be *changed* for the test to flip; it moves by at most one between
neighbours.  The greedy number is neither that nor a bound on it from below: it takes records out
only, one at a time by the largest step, and where it gets stuck it ends at n - 1.

With f(x) = x ln x and g(x) = f(x) - f(x - 1), taking a record out of cell (a, b, k) changes G by
-2 (g(n_abk) - g(n_a.k) - g(n_.bk) + g(n_..k)): only its own stratum has to be looked at again.

Source:
    Xu, Yuan, Wu 2017, for the utility; Wang, Pang, Song 2020, code, for the search.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["g_statistic", "greedy_flip_distance", "increments"]


def g_statistic(table: np.ndarray) -> float:
    """G of one table of counts (K, A, B)."""
    sums = (table, table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2)))
    cells, rows, columns, strata = (
        float((part * np.log(np.maximum(part, 1))).sum()) for part in sums
    )
    return 2 * (cells - rows - columns + strata)


def increments(n_samples: int) -> list[float]:
    """g(x) = x ln x - (x - 1) ln(x - 1), x = 0, ..., n_samples; 0 at 0 and 1."""
    x = np.arange(n_samples + 1, dtype=np.float64)
    products = x * np.log(np.maximum(x, 1))
    return [0.0, *np.diff(products).tolist()]


def _best_cell(stratum: list[list[int]], sign: float, g: list[float]) -> tuple[float, int, int]:
    """The removal that moves the stratum's G most in the direction of ``sign``: (sign times the
    change, row, column).
    """
    rows = [sum(row) for row in stratum]
    columns = [sum(column) for column in zip(*stratum, strict=True)]
    whole = g[sum(rows)]
    best = (-math.inf, 0, 0)
    for a, row in enumerate(stratum):
        rest = whole - g[rows[a]]
        for b, count in enumerate(row):
            if count:
                change = -2 * sign * (g[count] - g[columns[b]] + rest)
                if change > best[0]:
                    best = (change, a, b)
    return best


def greedy_flip_distance(table: np.ndarray, *, critical: float, g: list[float]) -> int:
    """u of one table: plus (independent) or minus (dependent) the records taken out before one more
    would flip the test.

    Args:
        table: counts, integers (K, A, B).
        critical: G*, the largest G that is independent.
        g: :func:`increments` of at least the number of records.  Ties go to the first cell, strata
            first.
    """
    value, n_samples = g_statistic(table), int(table.sum())
    sign = 1 if value < critical else -1
    strata = table.tolist()
    best = [_best_cell(stratum, sign, g) for stratum in strata]
    steps = 0
    while steps < n_samples - 1:
        k = max(range(len(best)), key=lambda k: best[k][0])
        change, a, b = best[k]
        if sign * value + change >= sign * critical:
            break
        value += sign * change
        strata[k][a][b] -= 1
        best[k] = _best_cell(strata[k], sign, g)
        steps += 1
    return sign * steps
