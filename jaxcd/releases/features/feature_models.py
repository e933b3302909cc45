r"""Fresh feature covariances from a graph that was fitted to released ones, for the parametric
bootstrap of :mod:`jaxcd.releases.redrawing`.

Covariances of features determine no distribution of rows, so none are drawn: the moments are, under
the model of the score that searches them, jointly normal features.  With C the released covariance
(its eigenvalues raised to what can be told from noise), and along a DAG in topological order,

    B_v = C_{v, pa} C_{pa, pa}^{-1},
    Sigma_{v, u} = B_v Sigma_{pa, u} for earlier u,
    Sigma_{v, v} = B_v Sigma_{pa, pa} B_v^T + R_v,

R_v = C_{v, v} - B_v C_{pa, v}: the covariance in which every column's features have the regression
on those of its parents that C says, and no others.  A fresh release has means mu + N(0, Sigma / n),
a covariance from the Wishart law of n rows, and noise of the size of the first's. What the search
does with shapes that sums of features cannot have, and the noise of the rank maps, are not drawn
anew.

Source:
    Efron and Tibshirani 1993, chapter 6.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

import jax
import networkx as nx
import numpy as np
from scipy import linalg

from jaxcd.releases.base import Release
from jaxcd.releases.features.canonical_correlation import raised
from jaxcd.releases.redrawing import generator

__all__ = ["FeatureModel", "fit_features"]


@final
@dataclass(frozen=True, eq=False)
class FeatureModel:
    """Jointly normal features whose covariance obeys a DAG.

    Args:
        release: the one it was fitted to.
        covariance: Sigma, float64 (D, D), positive definite.
    """

    release: Any
    covariance: np.ndarray

    def again(self, *, key: jax.Array) -> Release:
        """A release of as many rows, with fresh noise of the same size; equal keys give equal
        releases.
        """
        from scipy import stats  # slow to load, and for redrawing only

        rng = generator(key)
        release, n, size = self.release, self.release.n_samples, len(self.covariance)
        moments = np.zeros((1 + size, 1 + size))
        if size:
            root = np.linalg.cholesky(self.covariance)
            means = release.means + root @ rng.standard_normal(size) / np.sqrt(n)
            drawn = stats.wishart(n - 1, self.covariance).rvs(random_state=rng).reshape(size, size)
            moments[1:, 1:] = drawn + n * np.outer(means, means)
            moments[0, 1:] = moments[1:, 0] = release.anchor * n * means
        moments[0, 0] = release.anchor**2 * n
        noise = np.triu(rng.standard_normal(moments.shape), 1)
        noise += noise.T + np.diag(np.sqrt(2) * rng.standard_normal(1 + size))
        found = dataclasses.replace(release, moments=moments + release.sigma * noise)
        again: Release = found.reading(release.missing)
        return again


def fit_features(release: Any, adjacency: np.ndarray) -> FeatureModel:
    """The model of a DAG, bool (p, p): the module's docstring."""
    covariance = raised(release.covariance, release.floor)
    fitted = np.zeros_like(covariance)
    done = np.zeros(0, dtype=int)
    for v in nx.topological_sort(
        nx.from_numpy_array(np.asarray(adjacency, dtype=bool), create_using=nx.DiGraph)
    ):
        own = release.blocks[v]
        parents = np.concatenate(
            [np.zeros(0, dtype=int), *(release.blocks[u] for u in np.flatnonzero(adjacency[:, v]))]
        )
        if parents.size and own.size:
            slopes = linalg.solve(
                covariance[np.ix_(parents, parents)],
                covariance[np.ix_(parents, own)],
                assume_a="pos",
            ).T
            rest = covariance[np.ix_(own, own)] - slopes @ covariance[np.ix_(parents, own)]
            fitted[np.ix_(own, done)] = slopes @ fitted[np.ix_(parents, done)]
            fitted[np.ix_(done, own)] = fitted[np.ix_(own, done)].T
            fitted[np.ix_(own, own)] = (
                slopes @ fitted[np.ix_(parents, parents)] @ slopes.T + (rest + rest.T) / 2
            )
        else:
            fitted[np.ix_(own, own)] = covariance[np.ix_(own, own)]
        done = np.append(done, own)
    return FeatureModel(release, (fitted + fitted.T) / 2)
