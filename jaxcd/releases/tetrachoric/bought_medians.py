r"""Thresholds near the medians of numeric columns, bought by halving.

Each column is cut into 2^14 bins (:func:`jaxcd.releases.moments.bought_units.bin_edges`).  A step
asks of every column how many rows lie below the middle of the bins that are left, and leaves the
half that must hold the median.  A column is done when a noisy answer is within a tenth of the rows
of one half; the others then cost less, so that a step's noise falls.  The threshold is the edge
whose noisy answer was the nearest to one half.

*Sensitivity.*  Replacing a record changes each count by at most 1: sqrt(k) in L2 for the k columns
that are not done, which is a function of earlier answers.  Where rows have weights a person adds a
number between 0 and 1 to each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from jaxcd.privacy import Accountant, gaussian
from jaxcd.privacy.rounding import sqrt_up
from jaxcd.queries import Door
from jaxcd.releases.moments.bought_units import LOG_RANGE, bin_edges, binned

__all__ = ["STEP", "Thresholds", "bought_medians"]

_STEPS = 14
STEP = 2 * LOG_RANGE / (1 << _STEPS)
"""A bin of a column without bounds: its width near 0, and elsewhere as a share of a number."""
_NEAR = 0.1


@final
@dataclass(frozen=True, eq=False)
class Thresholds:
    """Of each column a threshold near its median, and a rough scale; public.

    Args:
        places: the thresholds, float64 (p,), in the columns' units.
        scales: positive, (p,): twice the distance to the nearest edge that was tried before.
    """

    places: np.ndarray
    scales: np.ndarray


def bought_medians(door: Door, accountant: Accountant, *, rho: float) -> Thresholds:
    """Thresholds of all columns.

    Guarantee:
        Relation: replace-one, of a row or of a person; n and declared bounds are public.
        Sensitivity: sqrt(k) in L2 for k columns, over integers (multiples of 2^-20 where rows have
        weights).  Events: at most fourteen ``GaussianEvent(rho / 14)``, each asked because of what
        earlier ones said (adaptive composition).  Proof: module docstring,
        :func:`jaxcd.privacy.gaussian`.

    Args:
        door: to the rows, all numeric.
        accountant: of the run, with Gaussian noise.
        rho: at most spent.
    """
    domain, n, unit = door.domain, door.n_samples, 1.0 / door.units
    edges = [bin_edges(domain[name], 1 << _STEPS) for name in domain.names]
    below = binned(door, edges).map(
        lambda counts: np.cumsum(counts, axis=1) * (unit if door.by_person else 1)
    )
    p = len(edges)
    low, high = np.zeros(p, dtype=np.int64), np.full(p, 1 << _STEPS)
    best, distance = np.full(p, 1 << (_STEPS - 1)), np.full(p, np.inf)
    widths = np.full(p, 1 << _STEPS)
    left = np.arange(p)
    for step in range(1, _STEPS + 1):
        middle = (low[left] + high[left]) // 2
        noisy = gaussian(
            accountant,
            below[left, middle - 1],
            sensitivity=sqrt_up(Fraction(len(left))),
            rho=rho / _STEPS if math.isfinite(rho) else rho,
            grid=unit,
            label=f"medians, step {step}",
        )
        over = noisy / n - 0.5
        nearer = np.abs(over) < distance[left]
        best[left] = np.where(nearer, middle, best[left])
        distance[left] = np.minimum(distance[left], np.abs(over))
        low[left] = np.where(over < 0, middle, low[left])
        high[left] = np.where(over < 0, high[left], middle)
        widths[left] = high[left] - low[left]
        left = left[np.abs(over) > _NEAR]
        if not left.size:
            break
    places = np.array([cuts[place] for cuts, place in zip(edges, best, strict=True)])
    ends = (
        (cuts[max(place - width, 0)], cuts[min(place + width, len(cuts) - 1)])
        for cuts, place, width in zip(edges, best.tolist(), widths.tolist(), strict=True)
    )
    scales = np.array([high - low for low, high in ends])
    return Thresholds(places, np.where(scales > 0, scales, 1.0))
