r"""Fresh releases from models that were fitted to a release: the parametric bootstrap of what was bought.

A model of the joint distribution is read off released numbers and a graph, so it is post-processing; rows drawn from it are nobody's,
and noise that is added to them protects nobody: simulated noise is right here.  A fresh release is bought from the drawn rows
through the same door as the first, with the same budget and options, so that all that made the first uncertain (sampling, noise,
rounds that depend on one another) is drawn anew.

Source: Efron and Tibshirani 1993, chapter 6, for the parametric bootstrap; Friedman, Goldszmidt, Wyner 1999 for graphs.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, final

import jax
import networkx as nx
import numpy as np

from jaxcd.data import Categorical, Dataset, Domain
from jaxcd.data.networks import BayesianNetwork
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, Budget, NoiseSource, paying
from jaxcd.releases.base import Release
from jaxcd.releases.features import ReleasedFeatures
from jaxcd.releases.histogram import Histogram, ReleasedHistogram
from jaxcd.releases.marginals import Marginals, ReleasedMarginals
from jaxcd.releases.second_moments import ReleasedSecondMoments, SecondMoments
from jaxcd.releases.set_function import nearest_table

__all__ = [
    "CellModel",
    "FittedModel",
    "LinearGaussianModel",
    "TableModel",
    "check_resampled",
    "fit_linear_gaussian",
    "fit_tables",
    "kind_of",
    "release_again",
]

Kind = Histogram | Marginals | SecondMoments

_BOUGHT_UNITS = "centres and scales"  # the label of that event


class FittedModel(abc.ABC):
    """A distribution on a domain that rows can be drawn from; public."""

    @abc.abstractmethod
    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Independent rows; equal keys give equal rows."""


def _generator(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng([int(word) for word in np.asarray(jax.random.key_data(key)).ravel()])


@final
@dataclass(frozen=True, eq=False)
class CellModel(FittedModel):
    """Probabilities of all cells of a joint domain.

    domain: discrete columns.  weights: float64 (cells,), in row-major order, non-negative, proportional to the probabilities.
    """

    domain: Domain
    weights: np.ndarray

    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Multinomial counts, as rows sorted by cell: no release looks at the order."""
        counts = _generator(key).multinomial(n_samples, self.weights / self.weights.sum())
        cells = np.repeat(np.arange(counts.size), counts)
        shape = [cardinality or 1 for cardinality in self.domain.cardinalities]
        return Dataset.from_codes(np.column_stack(np.unravel_index(cells, shape)).astype(np.int32), domain=self.domain)


@final
@dataclass(frozen=True, eq=False)
class TableModel(FittedModel):
    """A Bayesian network over the levels of a domain.

    domain: discrete columns.  network: the same names, levels and order, all categorical.
    """

    domain: Domain
    network: BayesianNetwork

    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Rows by ancestral sampling."""
        return Dataset.from_codes(self.network.sample(n_samples, key=key).discrete, domain=self.domain)


@final
@dataclass(frozen=True, eq=False)
class LinearGaussianModel(FittedModel):
    """Jointly normal columns x = mean + W^T (x - mean) + e along a DAG.

    domain: numeric columns.  mean: (p,).  weights: W, (p, p), zero where there is no arc i -> j.  spreads: standard deviations of e,
    (p,).  order: a topological order.
    """

    domain: Domain
    mean: np.ndarray
    weights: np.ndarray
    spreads: np.ndarray
    order: tuple[int, ...]

    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Rows, clipped to the bounds of columns that declare them."""
        rows = _generator(key).standard_normal((n_samples, len(self.mean))) * self.spreads
        for node in self.order:
            rows[:, node] += rows @ self.weights[:, node]
        lower, upper = (
            np.array([default if bound is None else bound for bound in bounds])
            for default, bounds in (
                (-math.inf, [getattr(column, "lower", None) for column in self.domain.columns.values()]),
                (math.inf, [getattr(column, "upper", None) for column in self.domain.columns.values()]),
            )
        )
        numeric = np.clip(rows + self.mean, lower, upper)
        return Dataset(self.domain, np.empty((n_samples, 0), dtype=np.int32), np.asfortranarray(numeric))


def fit_tables(release: ReleasedMarginals, adjacency: np.ndarray) -> TableModel:
    """The conditional tables of a DAG: P(v | parents) of the nearest non-negative table of each family.

    adjacency: bool (d, d), a DAG.  A row of parents with no mass is uniform.

    Raises OptionError where a family's table was not measured.
    """
    names, parents, tables = release.names, {}, {}
    for v, name in enumerate(names):
        family = np.flatnonzero(adjacency[:, v]).tolist()
        columns = tuple(sorted([*family, v]))
        table = np.moveaxis(nearest_table(release.table(columns), float(release.n_samples)), columns.index(v), -1)
        mass = table.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(mass > 0, table / mass, 1 / table.shape[-1])
        parents[name] = tuple(names[u] for u in family)
        tables[name] = shares / shares.sum(axis=-1, keepdims=True)
    nominal = Domain({name: Categorical(getattr(release.domain[name], "levels")) for name in names})  # noqa: B009
    return TableModel(release.domain, BayesianNetwork("fitted", nominal, parents, tables))


def fit_linear_gaussian(release: ReleasedSecondMoments, adjacency: np.ndarray) -> LinearGaussianModel:
    """The linear Gaussian model of a DAG that has the released mean, variances and regressions of every node on its parents.

    adjacency: bool (p, p), a DAG.
    """
    scale = np.sqrt(np.diag(release.covariance))
    correlation = release.correlation
    p = len(scale)
    weights, variances = np.zeros((p, p)), np.ones(p)
    for v in range(p):
        parents = np.flatnonzero(adjacency[:, v])
        if parents.size:
            slopes = np.linalg.solve(correlation[np.ix_(parents, parents)], correlation[parents, v])
            weights[parents, v] = slopes * scale[v] / scale[parents]
            variances[v] = max(1.0 - float(slopes @ correlation[parents, v]), 0.0)
    order = tuple(nx.topological_sort(nx.from_numpy_array(np.asarray(adjacency, dtype=bool), create_using=nx.DiGraph)))
    return LinearGaussianModel(release.domain, release.mean, weights, scale * np.sqrt(variances), order)


def check_resampled(release: Release) -> None:
    """Raises OptionError for what is no release that can be drawn anew."""
    if not isinstance(release, (ReleasedHistogram, ReleasedMarginals, ReleasedSecondMoments, ReleasedFeatures)):
        raise OptionError(f"release: a {type(release).__name__} cannot be drawn again; use what jaxcd.release returns")


def kind_of(release: Release) -> Kind:
    """The options a release was bought with, as far as it records them; the defaults otherwise.

    A histogram and second moments whose units were bought record theirs, marginals do not.

    Raises OptionError for second moments with public centres and scales, which they do not record, for features, of which no rows are
    drawn, and where :func:`check_resampled` does.
    """
    check_resampled(release)
    if isinstance(release, ReleasedFeatures):
        raise OptionError("release: covariances of features determine no distribution of rows; draw them by jaxcd.releases.feature_resampling")
    if isinstance(release, ReleasedHistogram):
        return Histogram(max_cells=max(release.values.size, 1))
    if isinstance(release, ReleasedMarginals):
        return Marginals()
    assert isinstance(release, ReleasedSecondMoments)
    if not release.charges:
        return SecondMoments()
    units = [float(str(row["rho"])) for row in release.charges if row["label"] == _BOUGHT_UNITS]
    rounds = tuple(float(str(row["rho"])) for row in release.charges if row["label"] != _BOUGHT_UNITS)
    if not units or not rounds:
        raise OptionError("kind: the release does not record its public centres and scales; give kind=SecondMoments(centres=..., scales=...)")
    return SecondMoments(shares=rounds, scale_share=units[0] / (units[0] + sum(rounds)))


def release_again(release: Release, data: Dataset, *, kind: Kind, noise: NoiseSource) -> Any:
    """Buys from other rows what ``release`` is, with its budget.

    data: rows that may be known to everybody, such as :meth:`FittedModel.sample` gives.  kind: the options it was bought with.

    Raises OptionError where the fresh release is less or more precise than the first: ``kind`` is not what it was bought with.  Options
    that change no noise that can be compared (some of marginals) pass unnoticed.
    """
    cost = release.cost
    rows = cost.max_rows_per_person
    budget = NO_PRIVACY if math.isinf(cost.epsilon) else Budget(cost.epsilon, cost.delta, cost.relation, max_rows_per_person=rows)
    with paying(rehearsal=True):
        fresh = kind.release(data, budget=budget, noise=noise)
    if type(fresh) is not type(release) or not np.allclose(_precision(fresh), _precision(release), rtol=1e-6):
        raise OptionError(f"kind: {kind} is not what the release was bought with; give the options that were used")
    return fresh


def _precision(release: Release) -> np.ndarray:
    """What the options and the budget alone decide about the noise."""
    if isinstance(release, ReleasedHistogram):
        return np.array([release.scale])
    if isinstance(release, ReleasedMarginals):
        # Of Gaussian noise the singles' is the same whatever the rows are; later tables of Laplace noise tell about them, too.
        columns = range(len(release.names)) if release.cost.delta > 0 else range(0)
        return np.array([release.variances[j,] for j in columns])
    assert isinstance(release, ReleasedSecondMoments)
    # One entry a round; their number first, so that shapes agree.
    rhos = [float(str(row["rho"])) for row in release.charges]
    return np.array([len(rhos), math.fsum(rhos), *(rhos[:1])])
