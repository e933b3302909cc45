"""The rank maps of numeric columns (:mod:`jaxcd.privacy.rank_maps`), bought through a door.

A column with declared bounds is brought to the whole range of the maps, so that 2^L leaves of equal
width lie between the bounds.  Others are taken as they are: numbers beyond sinh(A), A the range,
fall into the last leaves (1490 for A = 8, 4.4 million for 16), and near 0 a leaf is 2 A / 2^L wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jaxcd.data import Domain, Numeric
from jaxcd.data.column_types import Column
from jaxcd.data.rows import Block
from jaxcd.privacy import Accountant
from jaxcd.privacy.rank_maps import (
    RankMaps,
    leaf_counts,
    rank_map_sensitivity,
    release_counted_maps,
)
from jaxcd.queries import Door

__all__ = ["bought_ranks", "quantiles", "share_of_maps", "spread"]

# Noise of so many of the rows on a difference leaves ranks wrong by a fortieth on average.
_QUIET = 0.05


def share_of_maps(
    domain: Domain, n_samples: int, *, rho: float, n_levels: int, least: float, most: float
) -> float:
    """The share of rho that buys the maps of the numeric columns: as much as leaves a twentieth of
    the rows as the noise on a difference, between ``least`` and ``most``; 0 without such columns.

    All arguments are public.
    """
    holes = [each.missing is not None for each in domain.columns.values() if not each.is_discrete]
    if not holes:
        return 0.0
    sensitivity = rank_map_sensitivity(len(holes), n_levels, n_missing=sum(holes))
    moved = (sensitivity / (_QUIET * n_samples)) ** 2
    wanted = moved / (2 * rho) if rho > 0 else math.inf
    return min(max(wanted, least), most)


def spread(block: Block, name: str, column: Column, *, log_range: float) -> np.ndarray:
    """The numbers of a column on the scale of maps of that range, as they are, or with declared
    bounds so that these are the ends of the range; NaN where the cell is missing.
    """
    values = block.cells[name]
    if isinstance(column, Numeric) and column.lower is not None and column.upper is not None:
        share = (values - column.lower) / (column.upper - column.lower)
        values = np.sinh(log_range * np.clip(2 * share - 1, -1.0, 1.0))
    return np.where(block.is_missing(name), np.nan, values)


def bought_ranks(
    door: Door,
    accountant: Accountant,
    names: Sequence[str],
    *,
    rho: float,
    log_range: float,
    n_levels: int,
) -> RankMaps:
    """The rank maps of numeric columns.

    Guarantee:
        That of :func:`jaxcd.privacy.rank_maps.release_counted_maps`, for the unit of the door.

    Args:
        door: to the rows.
        accountant: of the run, with Gaussian noise.
        names: of the columns.
        rho: the price.
        log_range: A, of columns without bounds.
        n_levels: L, of 2^L leaves.
    """
    domain = door.domain
    leaves = door.sums(
        names,
        lambda block: np.stack(
            [
                leaf_counts(
                    spread(block, name, domain[name], log_range=log_range),
                    log_range=log_range,
                    n_levels=n_levels,
                    weights=block.weights,
                )
                for name in names
            ]
        ),
    )
    return release_counted_maps(
        leaves,
        accountant,
        rho=rho,
        log_range=log_range,
        n_levels=n_levels,
        n_samples=door.n_samples,
        may_miss=[domain[name].missing is not None for name in names],
        unit=1.0 / door.units,
    )


def quantiles(maps: RankMaps, place: int, column: Numeric, shares: ArrayLike) -> np.ndarray:
    """Numbers below which a map says that such shares of the rows are, in the column's units.

    Args:
        maps: as they were bought.
        place: of the column among them.
        column: its declaration.
        shares: between 0 and 1, ascending.
    """
    cumulative = maps.cumulative[place]
    edges = np.linspace(-maps.log_range, maps.log_range, len(cumulative))
    # The leaf in which the share is reached: never one without rows.
    right = np.clip(np.searchsorted(cumulative, shares, side="left"), 1, len(edges) - 1)
    low, high = cumulative[right - 1], cumulative[right]
    part = np.where(high > low, (np.asarray(shares) - low) / np.where(high > low, high - low, 1), 0)
    found = edges[right - 1] + np.clip(part, 0.0, 1.0) * (edges[right] - edges[right - 1])
    if column.lower is None or column.upper is None:
        return np.sinh(found)
    share = (found / maps.log_range + 1) / 2
    return np.asarray(column.lower + share * (column.upper - column.lower))
