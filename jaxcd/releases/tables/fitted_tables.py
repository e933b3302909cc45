"""Distributions of discrete columns that are fitted to released tables, and that rows can be drawn
from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np

from jaxcd.data import Categorical, Dataset, Domain
from jaxcd.data.networks import BayesianNetwork
from jaxcd.ops.nearest_table import nearest_table
from jaxcd.releases.redrawing import FittedModel, generator

__all__ = ["CellModel", "TableModel", "fit_tables"]


@final
@dataclass(frozen=True, eq=False)
class CellModel(FittedModel):
    """Probabilities of all cells of a joint domain.

    Args:
        domain: discrete columns.
        weights: float64 (cells,), in row-major order, non-negative, proportional to the
            probabilities.
    """

    domain: Domain
    weights: np.ndarray

    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Multinomial counts, as rows sorted by cell: no release looks at the order."""
        counts = generator(key).multinomial(n_samples, self.weights / self.weights.sum())
        cells = np.repeat(np.arange(counts.size), counts)
        shape = [cardinality or 1 for cardinality in self.domain.cardinalities]
        return Dataset.from_codes(
            np.column_stack(np.unravel_index(cells, shape)).astype(np.int32), domain=self.domain
        )


@final
@dataclass(frozen=True, eq=False)
class TableModel(FittedModel):
    """A Bayesian network over the levels of a domain.

    Args:
        domain: discrete columns.
        network: the same names and numbers of codes in the same order.
    """

    domain: Domain
    network: BayesianNetwork

    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Rows by ancestral sampling."""
        return Dataset.from_codes(
            self.network.sample(n_samples, key=key).discrete, domain=self.domain
        )


def fit_tables(release: Any, adjacency: np.ndarray) -> TableModel:
    """The conditional tables of a DAG on released marginals: P(v | parents) of the nearest
    non-negative table of each family.

    Args:
        adjacency: bool (d, d), a DAG.  A row of parents with no mass is uniform.

    Raises:
        OptionError: a family's table was not measured.
    """
    names, parents, tables = release.names, {}, {}
    for v, name in enumerate(names):
        family = np.flatnonzero(adjacency[:, v]).tolist()
        columns = tuple(sorted([*family, v]))
        table = np.moveaxis(
            nearest_table(release.table(columns), float(release.n_samples)), columns.index(v), -1
        )
        mass = table.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(mass > 0, table / mass, 1 / table.shape[-1])
        parents[name] = tuple(names[u] for u in family)
        tables[name] = shares / shares.sum(axis=-1, keepdims=True)
    # Codes are all that is drawn: that of missing cells is a level here.
    levels = zip(names, release.cardinalities, strict=True)
    nominal = Domain({name: Categorical(tuple(range(k))) for name, k in levels})
    return TableModel(release.domain, BayesianNetwork("fitted", nominal, parents, tables))
