r"""Centres and scales of numeric columns, bought from noisy histograms.

Each column is cut into 256 bins: of equal width between the bounds of a column that declares them,
else of width 1/8 on asinh scale from -16 to 16 (numbers up to 4.4 million, and down to about 0.1 in
size).  The shortest run of bins whose noisy counts reach half the rows gives the centre, its
middle, and the scale, half its width over 0.674, which is the standard deviation of a normal.
Where one bin clearly holds rows in that run it tells no scale: one of two values, or of few, is
there, and rows with the others would be so far out that they have no weight.  Centre and scale are
then mean and standard deviation of most of the rows in bins that clearly hold some, if that is
wider.
Where bounds are so close that floats between them are fewer than bins, some bins have no width; a
run is taken to be as wide as the narrowest that has one.

*Sensitivity.*  Replacing a record moves one row of each column from one bin to another: sqrt(2 p)
in L2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from jaxcd.data import Numeric
from jaxcd.data.column_types import Column
from jaxcd.data.rows import Block
from jaxcd.ops.people import weighted_bincount
from jaxcd.privacy import Accountant, Sensitive, gaussian
from jaxcd.privacy.rounding import sqrt_up
from jaxcd.queries import Door

__all__ = ["LOG_RANGE", "bin_edges", "binned", "bought_units", "shortest_half"]

_BINS = 256
LOG_RANGE = 16.0
"""Of the bins of a column without bounds, on asinh scale, to either side."""
# A bin is taken to hold rows from so many standard deviations of the noise on: of 256 bins without
# rows one is so full in 1 of 14,000 purchases a column.
_CLEAR = 5.0
_MOST_ROWS = (0.9, 0.99)
_UPPER_QUARTILE = 0.6744897501960817


def bought_units(
    door: Door, accountant: Accountant, *, rho: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rough centres and positive scales of all columns, float64 (p,) each, in the columns' units.

    Guarantee:
        Relation: replace-one, of a row or of a person; n and declared bounds are public.
        Sensitivity: sqrt(2 p) in L2, over integers (multiples of 2^-20 where rows have weights).
        Event: ``GaussianEvent(rho)``. Proof: module docstring, :func:`jaxcd.privacy.gaussian`.
    """
    domain, n_samples = door.domain, door.n_samples
    edges = [bin_edges(domain[name], _BINS) for name in domain.names]

    unit = 1.0 / door.units  # on which the counts lie
    noisy = gaussian(
        accountant,
        binned(door, edges).map(lambda counts: counts * unit if door.by_person else counts),
        sensitivity=sqrt_up(Fraction(2 * len(edges))),
        rho=rho,
        grid=unit,
        label="centres and scales",
    )
    runs = [shortest_half(column, n_samples=n_samples) for column in noisy]
    low = np.array([cuts[first] for cuts, (first, _) in zip(edges, runs, strict=True)])
    high = np.array([cuts[end] for cuts, (_, end) in zip(edges, runs, strict=True)])
    narrowest = np.array([min(width for width in np.diff(cuts) if width > 0) for cuts in edges])
    centres = low + (high - low) / 2
    scales = np.maximum(high - low, narrowest) / (2 * _UPPER_QUARTILE)
    error = 0.0 if math.isinf(rho) else math.sqrt(2 * len(edges) / (2 * rho))
    for j, (counts, cuts, (first, end)) in enumerate(zip(noisy, edges, runs, strict=True)):
        least = _CLEAR * error
        if np.count_nonzero(counts[first:end] > least) == 1:  # the others are there for their noise
            centre, scale = _of_values(counts, cuts, least=least)
            if scale > scales[j]:
                centres[j], scales[j] = centre, scale
    return centres, scales


def _of_values(counts: np.ndarray, cuts: np.ndarray, *, least: float) -> tuple[float, float]:
    """Mean and standard deviation of most of the rows in bins with more than so many of them: of
    nine tenths, or, where these are in one bin, of 99 in 100; zeros where these are in one, too.
    """
    weights = np.where(counts > least, counts, 0.0)
    middles = cuts[:-1] + np.diff(cuts) / 2
    for share in _MOST_ROWS:
        first, end = shortest_run(weights, least=share * float(weights.sum()))
        within, at = weights[first:end], middles[first:end]
        if np.count_nonzero(within) > 1:
            centre = float(np.average(at, weights=within))
            return centre, math.sqrt(float(np.average((at - centre) ** 2, weights=within)))
    return 0.0, 0.0


def binned(door: Door, edges: Sequence[np.ndarray]) -> Sensitive:
    """How many rows of each column are in each of its bins, int64 (p, bins), in units of
    ``1 / door.units``.

    Args:
        door: to the rows.
        edges: of the bins of each column, ascending, (bins + 1,); values beyond the ends fall into
            the last bins.
    """
    names = door.domain.names

    def counted(block: Block) -> np.ndarray:
        places = [
            np.searchsorted(cuts[1:-1], block.cells[name], side="right")
            for cuts, name in zip(edges, names, strict=True)
        ]
        sizes = [len(cuts) - 1 for cuts in edges]
        return np.array(
            [
                weighted_bincount(each, size, block.weights)
                for each, size in zip(places, sizes, strict=True)
            ]
        )

    return door.sums(names, counted)


def bin_edges(column: Column, n_bins: int) -> np.ndarray:
    """Of equal width between the bounds of a column that declares them, else on asinh scale from
    -16 to 16; ascending, (n_bins + 1,).
    """
    assert isinstance(column, Numeric)
    if column.lower is not None and column.upper is not None:
        return np.linspace(column.lower, column.upper, n_bins + 1)
    return np.sinh(np.linspace(-LOG_RANGE, LOG_RANGE, n_bins + 1))


def shortest_half(counts: np.ndarray, *, n_samples: int) -> tuple[int, int]:
    """The shortest run of bins [first, end) with at least n / 2 of the (noisy) rows."""
    return shortest_run(counts, least=n_samples / 2)


def shortest_run(counts: np.ndarray, *, least: float) -> tuple[int, int]:
    """The shortest run of bins [first, end) with at least so many (noisy) rows, the fullest if
    there are several; all bins if none.
    """
    cumulative = np.append(0.0, np.cumsum(counts))
    for width in range(1, len(counts)):
        masses = cumulative[width:] - cumulative[:-width]
        first = int(np.argmax(masses))
        if masses[first] >= least:
            return first, first + width
    return 0, len(counts)
