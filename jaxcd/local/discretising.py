"""Bins with public ranges: what turns numbers into the levels that local mechanisms need.

Bin i of b covers lower + i w <= v < lower + (i + 1) w with w = (upper - lower) / b; the last one
includes ``upper``. Bounds and the number of bins must be known before the data is read: bins taken
from private data tell of it, and void every guarantee (PRIVACY.md J2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from jaxcd.checks import a_type, check_count, is_whole
from jaxcd.citests.base import require_data
from jaxcd.data import Dataset, Numeric, Ordinal
from jaxcd.data.column_types import shown
from jaxcd.data.domain import Column
from jaxcd.errors import DataError, DomainError, OptionError, PrivacyError
from jaxcd.local.arrays import Codes, Floats

__all__ = [
    "MOST_BINS",
    "Discretised",
    "binned_column",
    "discretise",
    "discretise_columns",
    "pair_bins",
]

MOST_BINS = 2**20
"""The most bins of a column; each is a level, and levels are objects."""


@dataclass(frozen=True, eq=False, repr=False)
class Discretised:
    """A column of numbers as bins.

    Args:
        codes: the bin of each value, int32, shape (n,), from 0; sensitive.
        column: its declaration: the levels are the midpoints of the bins.
        edges: the bins + 1 edges, public.
    """

    codes: Codes
    column: Ordinal
    edges: Floats


def discretise(
    values: ArrayLike, *, lower: float | None, upper: float | None, bins: int
) -> Discretised:
    """Cut numbers into equal bins between public bounds.

    Args:
        values: n finite numbers within the bounds.  An error shows one that is not, to the owner
            only: of private data :func:`discretise_columns` cuts columns whose domain is declared,
            and no cell makes it fail.
        lower: the lowest value that could occur, known without looking; None is refused.
        upper: the highest one.
        bins: how many, from 1 to 2**20; public.

    Returns:
        Codes, the declared column and the edges.

    Raises:
        PrivacyError: a bound is None.
        OptionError: ``bins`` is no whole number from 1 to 2**20, or bounds and bins leave no
            distinct edges.
        DomainError: the bounds are no numbers with lower < upper.
        DataError: a value is outside the bounds, or not a number.

    Example:
        >>> from jaxcd.local import discretise
        >>> discretise([1.0, 4.0, 9.0], lower=0, upper=10, bins=2).codes.tolist()
        [0, 0, 1]
    """
    if lower is None or upper is None:
        raise PrivacyError(
            "lower and upper must be declared: a range taken from private data tells of it; state "
            "the lowest and highest value that could occur"
        )
    bounds = Numeric(lower, upper)
    if not is_whole(bins, 1, MOST_BINS):
        raise OptionError(
            f"bins must be a whole number from 1 to {MOST_BINS:,}, got {shown(bins)}: give one "
            "chosen without the data, such as 10"
        )
    assert bounds.lower is not None and bounds.upper is not None
    edges = np.linspace(bounds.lower, bounds.upper, int(bins) + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    if not (
        np.isfinite(middles).all() and (np.diff(edges) > 0).all() and (np.diff(middles) > 0).all()
    ):
        raise OptionError(
            f"bins = {bins} cannot be told apart between {lower!r} and {upper!r}; give fewer bins "
            "or wider bounds"
        )
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"values: {a_type(values)} holds what is no number; give one column of numbers"
        ) from None
    if numbers.ndim != 1:
        raise DataError(
            f"values must be one-dimensional, not of shape {numbers.shape}; give one column"
        )
    right = (numbers >= edges[0]) & (numbers <= edges[-1])
    if not right.all():
        row = int((~right).argmax())
        raise DataError(
            f"values, row {row + 1}: {float(numbers[row])!r} is outside the declared bins from "
            f"{edges[0]:g} to {edges[-1]:g}; "
            "widen the bounds or clip the values"
        )
    codes = np.searchsorted(edges[1:-1], numbers, side="right").astype(np.int32)
    edges.setflags(write=False)
    codes.setflags(write=False)
    return Discretised(codes, Ordinal(tuple(middles.tolist())), edges)


def binned_column(column: Numeric, bins: int) -> Ordinal:
    """What a numeric column is once it is cut into bins; known without the data.

    Args:
        column: with bounds.
        bins: how many.

    Raises:
        PrivacyError: the column has no bounds.
        OptionError: as for :func:`discretise`.
    """
    levels = discretise((), lower=column.lower, upper=column.upper, bins=bins).column.levels
    return Ordinal(levels, missing=None if column.missing is None else True)  # type: ignore[arg-type]


def discretise_columns(data: Dataset, *, bins: int | Mapping[str, int]) -> Dataset:
    """Cut every numeric column into equal bins between its declared bounds; discrete columns stay
    as they are, and missing numbers, where they are declared, have a code of their own.

    Args:
        data: numeric columns with declared bounds.
        bins: how many, for every numeric column or for each by name; public.

    Returns:
        A discrete data set with the same names and rows.

    Raises:
        PrivacyError: the domain was inferred from data, or a numeric column has no declared bounds.
        DomainError: ``bins`` lacks a numeric column or names one that is not there.
        OptionError: as for :func:`discretise`.

    Example:
        >>> import jaxcd, numpy as np
        >>> domain = jaxcd.Domain({"x": jaxcd.Numeric(0, 1), "y": jaxcd.Numeric(0, 1)})
        >>> data = jaxcd.Dataset.from_array(np.array([[0.1, 0.9], [0.6, 0.4]]), domain=domain)
        >>> jaxcd.local.discretise_columns(data, bins=2).codes.tolist()
        [[0, 1], [1, 0]]
    """
    data = require_data(data, "discretising columns", cure="give a Dataset: rows in memory")
    if not data.domain.declared:
        raise PrivacyError(
            "data: its domain was taken from the data, which voids local privacy; declare the "
            "levels and bounds of every column"
        )
    numeric = [name for name in data.names if not data.domain[name].is_discrete]
    given = dict(bins) if isinstance(bins, Mapping) else dict.fromkeys(numeric, bins)
    if set(given) != set(numeric):
        raise DomainError(
            f"bins must name the numeric columns {numeric}, got {sorted(given)}; give one number "
            "of bins for each"
        )
    columns: dict[str, Column] = {}
    codes = np.empty((data.n_samples, data.n_columns), dtype=np.int32, order="F")
    for j, name in enumerate(data.names):
        column = data.domain[name]
        if isinstance(column, Numeric):
            try:
                cut = discretise(
                    data.values(name), lower=column.lower, upper=column.upper, bins=given[name]
                )
            except (PrivacyError, OptionError) as error:
                raise type(error)(f"column {name!r}: {error}") from None
            columns[name], codes[:, j] = binned_column(column, given[name]), cut.codes
            if column.missing is not None:
                codes[data.is_missing(name), j] = len(cut.column.levels)
        else:
            columns[name] = column
            codes[:, j] = data.column(name)
    coded = Dataset.from_codes(codes, domain=replace(data.domain, columns=columns))
    return replace(coded, people=data.people)


def pair_bins(n_distinct: int) -> int:
    """min(u, 100, u / 10) rounded down, and at least 2: the number of bins for a pair by its
    number u of distinct values.

    u must be public, for instance the number of values that the instrument can show; counted in
    private data it tells of them.

    Args:
        n_distinct: u, a whole number from 2, declared by whoever knows it.

    Returns:
        The number of bins, from 2 to 100.

    Raises:
        OptionError: ``n_distinct`` is no whole number from 2.

    Source:
        Binkyte et al. 2024, for the Tuebingen pairs; the floor of 2 is ours (below u = 20 one bin
        would hold everything).

    Example:
        >>> from jaxcd.local import pair_bins
        >>> pair_bins(100)
        10
    """
    cure = "declare how many values could be told apart"
    n_distinct = check_count("n_distinct", n_distinct, minimum=2, cure=cure)
    return max(2, min(n_distinct // 10, 100))
