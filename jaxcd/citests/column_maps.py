"""Columns as the regressions of a kernel test take them: standardised, by ranks, as normal scores,
softened where few rows would count alone, and labels as indicators.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from jaxcd.ops.standardising import SPREAD_LOST, near_one, standardised

__all__ = ["indicators", "mapped", "softened"]

# Of the sum of squares: beyond this share in a hundredth of the rows a target is softened.  It is
# .07 for a normal law, .16 for an exponential, .4 for t of three degrees of freedom.
_HEAVY = 0.5
# Median deviations within which a softened target is nearly a line.
_LINE = 5.0


def mapped(column: np.ndarray, kind: str, n_rows: int | None = None) -> np.ndarray:
    """A column under a map ("raw", "ranks", "scores": normal scores, Phi^{-1}((rank - 1/2) / n);
    "target", as what is regressed; indicators of "labels"): (n,) or (n, k); of the first rows.
    """
    if kind == "raw":
        return standardised(column)[:n_rows]
    if kind == "target":
        return standardised(softened(column))[:n_rows]
    if kind == "labels":
        return indicators(column)[:n_rows]
    shares, counts, places = _shares_below(column, n_rows)
    if kind == "scores":
        return special.ndtri(shares[places])
    starts = np.cumsum(counts) - counts
    return standardised(np.repeat(shares, counts))[starts][places]


def indicators(column: np.ndarray) -> np.ndarray:
    """1 where a label is there, for all labels but the least: (n,) -> (n, labels - 1), and a column
    of zeros where there is one label."""
    levels = np.unique(column)[1:]
    if not len(levels):
        return np.zeros((len(column), 1))
    return (column[:, None] == levels).astype(np.float64)


def softened(column: np.ndarray) -> np.ndarray:
    """arcsinh((x - m) / (5 s)), m the median and s the median of |x - m|, of a column in which one
    row of a hundred holds more than half of the sum of squares, and the column itself elsewhere:
    (n,) -> (n,).

    Least squares would see those rows alone: of x = exp(5 columns) + e nearly all rows would keep a
    function of Z that is large beside e.  x and y are independent given Z iff any one-to-one
    functions of them are, and this one is a line where most rows are, a logarithm beyond.
    """
    near = near_one(column)
    moved = near - np.median(near)
    size = np.abs(moved)
    unit = np.median(size)
    squares = np.sort((size / max(size.max(), np.finfo(float).tiny)) ** 2)
    few = squares[-max(len(squares) // 100, 1) :]
    # A share of exactly a half, as few levels have it, is no more than that on any processor.
    if unit <= SPREAD_LOST or few.sum() <= _HEAVY * (1 + 1e-9) * squares.sum():
        return column
    return np.arcsinh(moved / (_LINE * unit))


def _shares_below(
    column: np.ndarray, n_rows: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rank - 1/2) / n of each value that occurs, ties at their mean rank; how many rows have it;
    and which is that of each of the first rows.

    A sort alone takes a tenth of the time of one that says where each row went.
    """
    if n_rows is None or n_rows >= len(column):
        _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
    else:
        values, counts = np.unique(column, return_counts=True)
        places = np.searchsorted(values, column[:n_rows])
    return (np.cumsum(counts) - counts / 2) / len(column), counts, places
