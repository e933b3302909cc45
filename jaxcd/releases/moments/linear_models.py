"""Linear Gaussian models that are fitted to released second moments, and that rows can be drawn
from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np

from jaxcd.data import Dataset, Domain
from jaxcd.graphs import topological_order
from jaxcd.releases.redrawing import FittedModel, generator

__all__ = ["LinearGaussianModel", "fit_linear_gaussian"]


@final
@dataclass(frozen=True, eq=False)
class LinearGaussianModel(FittedModel):
    """Jointly normal columns x = mean + scale z, z = W^T z + e along a DAG: squares of the scales,
    and their quotients, need not be floats.

    Args:
        domain: numeric columns.
        mean: (p,).
        scale: (p,).
        weights: W, (p, p), zero where there is no arc i -> j.
        spreads: standard deviations of e, (p,).
        order: a topological order.
    """

    domain: Domain
    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    spreads: np.ndarray
    order: tuple[int, ...]

    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Rows, clipped to the bounds of columns that declare them."""
        rows = generator(key).standard_normal((n_samples, len(self.mean))) * self.spreads
        for node in self.order:
            rows[:, node] += rows @ self.weights[:, node]
        columns = self.domain.columns.values()
        lower, upper = (
            np.array([open_end if edge is None else edge for edge in edges])
            for open_end, edges in (
                (-math.inf, [getattr(column, "lower", None) for column in columns]),
                (math.inf, [getattr(column, "upper", None) for column in columns]),
            )
        )
        with np.errstate(over="ignore"):  # where bounds are that far out
            numeric = np.clip(rows * self.scale + self.mean, lower, upper)
        return Dataset(
            self.domain, np.empty((n_samples, 0), dtype=np.int32), np.asfortranarray(numeric)
        )


def fit_linear_gaussian(release: Any, adjacency: np.ndarray) -> LinearGaussianModel:
    """The linear Gaussian model of a DAG that has the released mean, variances and regressions of
    every node on its parents.

    Args:
        adjacency: bool (p, p), a DAG.
    """
    correlation = release.correlation
    p = len(correlation)
    weights, variances = np.zeros((p, p)), np.ones(p)
    for v in range(p):
        parents = np.flatnonzero(adjacency[:, v])
        if parents.size:
            slopes = np.linalg.solve(correlation[np.ix_(parents, parents)], correlation[parents, v])
            weights[parents, v] = slopes
            variances[v] = max(1.0 - float(slopes @ correlation[parents, v]), 0.0)
    order = tuple(topological_order(adjacency))
    return LinearGaussianModel(
        release.domain, release.mean, release.deviations, weights, np.sqrt(variances), order
    )
