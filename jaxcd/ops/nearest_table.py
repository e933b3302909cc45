"""The nearest table of non-negative counts with a known total."""

from __future__ import annotations

import numpy as np

__all__ = ["nearest_table"]


def nearest_table(table: np.ndarray, total: float) -> np.ndarray:
    """The table of non-negative cells with the given total that is nearest in squared distance: the
    projection onto a simplex.

    It is max(t - c, 0) for one number c.

    Args:
        table: real numbers of any shape.
        total: positive.

    Source:
        Held, Wolfe, Crowder 1974.
    """
    # changes nothing but c, and keeps the total where the cells are much larger
    table = table - table.max()
    cells = np.sort(table.ravel())[::-1]
    excess = (np.cumsum(cells) - total) / np.arange(1, cells.size + 1)
    return np.maximum(table - excess[np.flatnonzero(cells > excess)[-1]], 0.0)
