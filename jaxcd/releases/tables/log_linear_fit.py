r"""A log-linear model fitted to noisy interactions; post-processing.

*Model.*  A set of terms S, each a set of columns; the log of the density is a sum of one function a
term.  In the coordinates of :mod:`jaxcd.ops.interactions`,

    log p(x) = sum over S of <theta_S, phi_S(x)> - log Z,

and the expected interactions are n E phi_S.  With y_S the released ones, of noise variance v_S on
each entry, theta minimises

    n log Z(theta) - <theta, y> + (1 / 2) sum over S of r_S |theta_S|^2,
    r_S = .005 v_S + 1 / K_S,

K_S the cells of S: the density of the largest entropy whose interactions are near y, where noisy
ones may be missed by more.  The minimum is where y_S - n E phi_S = r_S theta_S, well below one
standard deviation; it exists whatever the noise did, because no theta can grow without end.  The
problem is convex.

The first derivative is the difference of the moments, from one calibration of a junction tree.  The
second is dense, and where columns nearly determine each other its eigenvalues lie far apart; its
blocks within cliques give coordinates in which they do not, so that a quasi-Newton iteration ends
at the minimum itself: what is read off the model must not depend on where an iteration was stopped.

Source:
    Darroch and Ratcliff 1972 and Dudik, Phillips, Schapire 2007 for the fit; McKenna, Sheldon,
    Miklau 2019 for models of noisy margins; Liu and Nocedal 1989 for the iteration.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from jaxcd.ops.junction_tree import JunctionTree
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.threads import one_blas_thread

__all__ = ["LogLinearModel", "NoisyInteractions", "fit_model"]

Columns = tuple[int, ...]
#: a value and its gradient
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

_NOISE_RIDGE, _SAMPLING_RIDGE = 0.005, 1.0  # of v_S and 1 / K_S in r_S
_STEPS = (20, 40, 80, 160, 320, 640)  # between two looks at the curvature
# The largest entry of the gradient, in coordinates in which the curvature is about 1, times the
# root of n; below the other limit all is rounding.
_GRADIENT, _LEAST_GRADIENT = 1e-4, 3e-8
# With more parameters a block would be slow to factor, and its diagonal is taken.
_LARGEST_BLOCK = 2_000
# Of a block's trace: with very many rows the ridge is below what its eigenvalues are rounded by.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class NoisyInteractions:
    """What was released.

    Args:
        cardinalities: the number of levels of each column.
        n_samples: n.
        values: y_S by set of columns (sorted positions), float64 (k_j - 1 for each).
        variances: v_S, from 0.
    """

    cardinalities: Columns
    n_samples: int
    values: Mapping[Columns, np.ndarray]
    variances: Mapping[Columns, float]


@final
@dataclass(frozen=True, eq=False)
class LogLinearModel:
    """A fitted model.

    Args:
        tree: the cliques of its terms.
        margins: of each clique, float64, summing to 1.
        theta: the parameters of each term.
    """

    tree: JunctionTree
    margins: tuple[np.ndarray, ...]
    theta: Mapping[Columns, np.ndarray]

    def sample(self, n_rows: int, *, seed: int = 0) -> np.ndarray:
        """Rows of levels, int32 (n_rows, columns), public randomness."""
        return self.tree.sample(self.margins, n_rows, np.random.default_rng(seed))


def fit_model(
    noisy: NoisyInteractions,
    terms: Sequence[Columns],
    *,
    start: Mapping[Columns, np.ndarray] | None = None,
) -> LogLinearModel:
    """The model of the given terms.

    Args:
        noisy: what was released.
        terms: sets whose interactions were released.
        start: parameters to begin from; 0 for the terms that it does not have.
    """
    from scipy import optimize  # slow to load

    levels, n = noisy.cardinalities, float(noisy.n_samples)
    terms = [term for term in terms if min(levels[j] for j in term) > 1]
    tree = JunctionTree(levels, terms)
    homes = {term: tree.home(term) for term in terms}
    terms.sort(key=lambda term: homes[term])  # those of one clique stand together
    sizes = [math.prod(levels[j] - 1 for j in term) for term in terms]
    cells = np.array([float(math.prod(levels[j] for j in term)) for term in terms])
    each = np.repeat(np.arange(len(terms)), sizes)
    variances = np.array([noisy.variances[term] for term in terms])
    ridge = (_NOISE_RIDGE * variances + _SAMPLING_RIDGE / cells)[each] / n
    blocks: list[list[tuple[slice, _Block]]] = []  # of each clique, with its parameters
    first = 0
    for place, clique in enumerate(tree.cliques):
        blocks.append([])
        for block in _blocks_of(levels, clique, [t for t in terms if homes[t] == place]):
            blocks[-1].append((slice(first, first + block.size), block))
            first += block.size

    def flat(values: Mapping[Columns, np.ndarray]) -> np.ndarray:
        parts = [
            values[term].ravel() if term in values else np.zeros(size)
            for term, size in zip(terms, sizes, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def calibrated(theta: np.ndarray) -> tuple[float, list[np.ndarray]]:
        return tree.calibrate(
            [
                sum((block.at(theta[own]) for own, block in some), np.zeros(tree.shape(place)))
                for place, some in enumerate(blocks)
            ]
        )

    observed = flat(noisy.values) / n

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        log_z, margins = calibrated(theta)
        expected = np.zeros(len(theta))
        for margin, some in zip(margins, blocks, strict=True):
            for own, block in some:
                expected[own] = block.sums(margin)
        value = log_z - observed @ theta + 0.5 * float(ridge @ theta**2)
        return value, expected - observed + ridge * theta

    theta = flat(start or {})
    limit = max(_GRADIENT / math.sqrt(n), _LEAST_GRADIENT)
    with one_blas_thread():  # thousands of short products, after each of which threads would spin
        for n_steps in _STEPS:
            curvature = _Curvature(blocks, calibrated(theta)[1], ridge)
            found = optimize.minimize(
                functools.partial(curvature.scaled, objective, theta),
                np.zeros(len(theta)),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": n_steps, "maxcor": 20, "ftol": 0, "gtol": limit},
            )
            theta = theta + curvature.step(found.x)
            if np.abs(found.jac).max(initial=0.0) <= limit:
                break
        _, margins = calibrated(theta)
    parts = np.split(theta, np.cumsum(sizes)[:-1]) if terms else []
    return LogLinearModel(
        tree,
        tuple(margins),
        {
            term: part.reshape([levels[j] - 1 for j in term])
            for term, part in zip(terms, parts, strict=True)
        },
    )


class _Block(Protocol):
    """Parameters whose part of the second derivative is looked at together: phi of some terms at
    every cell of a clique.
    """

    @property
    def size(self) -> int:
        """The number of parameters."""

    def at(self, theta: np.ndarray) -> np.ndarray:
        """<theta, phi> at every cell, in the shape of the clique."""

    def sums(self, margin: np.ndarray) -> np.ndarray:
        """The sum over the cells of phi times a margin."""

    def inverse(self, margin: np.ndarray, ridge: np.ndarray) -> np.ndarray:
        """L^-1 of the covariance of phi at a margin, with a ridge, or its diagonal."""


def _blocks_of(levels: Columns, clique: Columns, terms: Sequence[Columns]) -> list[_Block]:
    """All terms together, or one by one where they are large."""
    sizes = [math.prod(levels[j] - 1 for j in term) for term in terms]
    if not terms or sum(sizes) <= _LARGEST_BLOCK:
        return [_Held(levels, clique, terms)] if terms else []
    return [
        _Held(levels, clique, [term]) if size <= _LARGEST_BLOCK else _Products(levels, clique, term)
        for term, size in zip(terms, sizes, strict=True)
    ]


def _bases(levels: Columns, clique: Columns, term: Columns) -> list[np.ndarray]:
    """What phi of a term is the product of: the contrasts of each column, ones of those that it has
    not.
    """
    return [contrast_basis(levels[j]) if j in term else np.ones((levels[j], 1)) for j in clique]


class _Held:
    """A block of few parameters, as a matrix."""

    def __init__(self, levels: Columns, clique: Columns, terms: Sequence[Columns]) -> None:
        columns = [functools.reduce(np.kron, _bases(levels, clique, term)) for term in terms]
        self._phi = np.concatenate(columns, axis=1)
        self._shape = [levels[j] for j in clique]

    @property
    def size(self) -> int:
        return int(self._phi.shape[1])

    def at(self, theta: np.ndarray) -> np.ndarray:
        found: np.ndarray = (self._phi @ theta).reshape(self._shape)
        return found

    def sums(self, margin: np.ndarray) -> np.ndarray:
        found: np.ndarray = margin.ravel() @ self._phi
        return found

    def inverse(self, margin: np.ndarray, ridge: np.ndarray) -> np.ndarray:
        from scipy import linalg  # slow to load

        weighted = self._phi * margin.reshape(-1, 1)
        means = weighted.sum(axis=0)
        block = self._phi.T @ weighted - np.outer(means, means)
        least = _ROUNDING * np.trace(block)
        block[np.diag_indices_from(block)] += np.maximum(ridge, least)
        root, unit = np.linalg.cholesky(block), np.eye(len(block))
        found: np.ndarray = linalg.solve_triangular(root, unit, lower=True)
        return found


class _Products:
    """A term of many parameters: phi is taken one column after the other, and never held."""

    def __init__(self, levels: Columns, clique: Columns, term: Columns) -> None:
        self._bases = _bases(levels, clique, term)

    @property
    def size(self) -> int:
        return math.prod(basis.shape[1] for basis in self._bases)

    def at(self, theta: np.ndarray) -> np.ndarray:
        found = theta.reshape([basis.shape[1] for basis in self._bases])
        for basis in self._bases:
            found = np.tensordot(found, basis, (0, 1))
        return found

    def sums(self, margin: np.ndarray) -> np.ndarray:
        return _summed(margin, self._bases)

    def inverse(self, margin: np.ndarray, ridge: np.ndarray) -> np.ndarray:
        spread = _summed(margin, [basis**2 for basis in self._bases])
        spread -= _summed(margin, self._bases) ** 2
        least = _ROUNDING * spread.sum()
        found: np.ndarray = 1 / np.sqrt(spread + np.maximum(ridge, least))
        return found


def _summed(margin: np.ndarray, bases: Sequence[np.ndarray]) -> np.ndarray:
    for basis in bases:
        margin = np.tensordot(margin, basis, (0, 0))
    return margin.ravel()


class _Curvature:
    """Steps in coordinates in which the objective's second derivative is about 1: L^-T u, with L L'
    the covariance of the features of one block, and the ridge.

    Args:
        blocks: of each clique, with their parameters.
        margins: of each clique, at which the covariance is taken.
        ridge: of each parameter, over n.
    """

    def __init__(
        self,
        blocks: Sequence[Sequence[tuple[slice, _Block]]],
        margins: Sequence[np.ndarray],
        ridge: np.ndarray,
    ) -> None:
        self._inverses = [
            (own, block.inverse(margin, ridge[own]))  # L^-1, or its diagonal
            for some, margin in zip(blocks, margins, strict=True)
            for own, block in some
        ]

    def step(self, u: np.ndarray) -> np.ndarray:
        """What u adds to theta."""
        parts = [
            inverse.T @ u[own] if inverse.ndim == 2 else inverse * u[own]
            for own, inverse in self._inverses
        ]
        return np.concatenate([np.zeros(0), *parts])

    def scaled(
        self, objective: Objective, start: np.ndarray, u: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The objective at so many steps from the start, and its gradient by u."""
        value, gradient = objective(start + self.step(u))
        parts = [
            inverse @ gradient[own] if inverse.ndim == 2 else inverse * gradient[own]
            for own, inverse in self._inverses
        ]
        return value, np.concatenate([np.zeros(0), *parts])
