r"""Released interactions as they would be of rows without missing cells; post-processing.

The tables of available cases are made to agree (:mod:`jaxcd.ops.available_cases`), and A_S is taken
apart into its interactions again.  Noise that is equal in all directions stays so: with H the k - 1
contrasts of a column, H H^T = I - J / k, of which the rows of the levels that are left, and a basis
H' of their own contrasts, make H'^T (I - J / k) H' = I; interactions of fewer columns are constant
along some axis and add none.  So each interaction keeps its own noise, of variance v_S times the
mean square of the factors that A_S was multiplied with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.data import Domain
from jaxcd.data.domain import observed_domain
from jaxcd.ops.available_cases import AvailableTables
from jaxcd.ops.interactions import cell_variance, interaction, table_of_interactions

__all__ = ["AvailableInteractions", "available_interactions", "levels_by_known_rows"]

Columns = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AvailableInteractions:
    """The parts of a release of rows without missing cells.

    Args:
        domain: the columns without the codes that were left out.
        n_samples: n', the rows that the tables add up to.
        interactions: of the measured sets.
        variances: of their noise.
        price: what the table of a set of columns costs as parameters.
    """

    domain: Domain
    n_samples: int
    interactions: dict[Columns, np.ndarray]
    variances: dict[Columns, float]
    price: Callable[[Columns], float]


def available_interactions(release: Any, sets: Collection[Columns]) -> AvailableInteractions:
    """The interactions of available cases.

    Args:
        release: whose interactions they are.
        sets: measured sets of columns, with all their subsets.
    """
    cardinalities, n_samples = release.cardinalities, release.n_samples
    interactions = {columns: release.interactions[columns] for columns in sets}
    variances = {columns: release.variances[columns] for columns in sets}
    tables = AvailableTables(
        lambda columns: table_of_interactions(
            columns, cardinalities, n_samples, interactions.__getitem__
        ),
        can_miss=release.leaves_out,
        n_samples=n_samples,
        pairs=[columns for columns in interactions if len(columns) == 2],
        scatter=lambda columns: math.sqrt(cell_variance(columns, cardinalities, variances)),
    )
    single = [tables.total((j,)) / n_samples for j in range(len(cardinalities))]

    def known(columns: Columns) -> float:
        """The rows that know the columns; of sets that were not measured as if cells were missing
        independently of each other.
        """
        if columns in interactions:
            return tables.total(columns)
        return float(n_samples * math.prod(single[j] for j in columns))

    return AvailableInteractions(
        observed_domain(release.domain, release.leaves_out),
        tables.n_samples,
        {columns: interaction(tables.table(columns)) for columns in interactions},
        {columns: variances[columns] * tables.scale(columns) ** 2 for columns in interactions},
        lambda columns: tables.price(columns, known=known),
    )


def levels_by_known_rows(release: Any) -> tuple[float, ...]:
    """The levels of each column that are read, over the share of the rows that know the column: by
    them a table of n rows has as few rows a cell as the rows that know all its columns give it, if
    cells are missing independently of each other.

    Args:
        release: with the interactions of single columns, as it is to be read.
    """
    n = float(release.n_samples)
    levels = zip(release.observed_cardinalities, release.leaves_out, strict=True)
    return tuple(
        size / min(max(float(release.table((j,))[:-1].sum()) / n, 1 / n), 1.0) if may else size
        for j, (size, may) in enumerate(levels)
    )
