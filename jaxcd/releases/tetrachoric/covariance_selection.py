r"""All correlations from those of some pairs: the normal law that adds nothing to them.

Among all correlation matrices the one is taken that maximises

    log det Sigma - sum over measured pairs of (Sigma_ij - r_ij)^2 / v_ij.

Without errors of r_ij (v -> 0) it is the normal law of the largest entropy that has them (Dempster
1972): its inverse K is zero at every pair that was not measured, so that such a pair is independent
given what lies between.  With errors of variance v it is the mode of a posterior with the prior
density (det Sigma)^(1/2), which has a maximum also where noisy correlations contradict each other.

*Computation.*  log det Sigma is a sum over the biconnected components of the graph of the measured
pairs, which are found one by one.  A pair alone is the root of a cubic.  For others the dual,

    minimise  -log det K + sum of K_jj + sum over pairs of (2 r K_ij + v K_ij^2),

is convex and self-concordant in as many numbers as there are columns and pairs.  Newton's steps
begin at the component's strongest spanning tree, whose law is known in closed form, and are the
best of 1, 1/2, 1/4 and so on to 1 / (1 + decrement), which always lowers the dual.

Source:
    Dempster 1972; Chow and Liu 1968 for the tree; Dahl, Vandenberghe, Roychowdhury 2008 for
    Newton's method; Nesterov and Nemirovskii 1994 for its steps.
"""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph

__all__ = ["complete", "response"]

_STEPS, _HALVINGS = 100, 60
_CLOSE = 1e-8  # of the decrement; the step after it is as exact as rounding lets it be
_FULL = 0.25  # the decrement from which on Newton's whole step is safe
_FARTHER = 1.2
_LEAST_EIGENVALUE = 1e-6
_RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)


def complete(
    n_columns: int, pairs: np.ndarray, correlations: np.ndarray, variances: np.ndarray
) -> np.ndarray:
    """Fills in the correlations of pairs that were not measured.

    Where all pairs were measured there is nothing to fill in: the correlations are made positive
    definite.

    Args:
        n_columns: p.
        pairs: integers (m, 2), different columns, each pair once.
        correlations: r, (m,), between -1 and 1.
        variances: v of their errors, (m,), positive.

    Returns:
        Sigma, float64 (p, p), positive definite, 1 on the diagonal.
    """
    if len(pairs) == math.comb(n_columns, 2):
        return _positive(n_columns, pairs, correlations)
    inverse = np.eye(n_columns)
    places = {(i, j): place for place, (i, j) in enumerate(pairs.tolist())}
    graph = nx.Graph(list(places))
    bridges: list[int] = []
    for edges in nx.biconnected_component_edges(graph):
        rows = sorted(places[e] if e in places else places[e[::-1]] for e in edges)
        if len(rows) == 1:
            bridges += rows
            continue
        nodes, ends = np.unique(pairs[rows], return_inverse=True)
        n = len(nodes)
        part = _component(n, ends.reshape(-1, 2), correlations[rows], variances[rows])
        inverse[np.ix_(nodes, nodes)] += part - np.eye(n)
    i, j = pairs[bridges].T
    _join(inverse, i, j, _alone(correlations[bridges], variances[bridges]))
    return _correlation(np.linalg.inv(inverse))


def _correlation(covariance: np.ndarray) -> np.ndarray:
    """With unit diagonal, and symmetric to the last bit."""
    scale = np.sqrt(np.diag(covariance))
    found: np.ndarray = (covariance + covariance.T) / 2 / np.outer(scale, scale)
    np.fill_diagonal(found, 1.0)
    return found


def _alone(correlations: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The correlations of pairs that are joined by no other way: (r - s) (1 - s^2) = v s, by
    halving; (m,).
    """
    low, high = np.zeros_like(correlations), np.abs(correlations)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = (np.abs(correlations) - middle) * (1 - middle**2) > variances * middle
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: np.ndarray = np.sign(correlations) * (low + high) / 2
    return found


def _join(inverse: np.ndarray, i: np.ndarray, j: np.ndarray, correlations: np.ndarray) -> None:
    """Adds edges of a forest to the inverse of a correlation matrix, in place."""
    rest = 1 - correlations**2
    for ends in (i, j):
        np.add.at(inverse, (ends, ends), correlations**2 / rest)
    np.add.at(inverse, (i, j), -correlations / rest)
    np.add.at(inverse, (j, i), -correlations / rest)


def _component(n: int, pairs: np.ndarray, r: np.ndarray, v: np.ndarray) -> np.ndarray:
    """K of one component of n columns, with pairs (m, 2) of their places."""
    i, j = pairs.T
    first, second = _places(n, pairs)

    def matrix(values: np.ndarray) -> np.ndarray:
        inverse = np.zeros((n, n))
        inverse[first, second] = inverse[second, first] = values
        return inverse

    def dual(values: np.ndarray) -> float:
        try:
            factor = np.linalg.cholesky(matrix(values))
        except np.linalg.LinAlgError:
            return math.inf
        beside = values[n:]
        linear = values[:n].sum() + (2 * r * beside + v * beside**2).sum()
        return float(linear - 2 * np.log(np.diag(factor)).sum())

    start = np.eye(n)
    alone = _alone(r, v)
    # 32 bits: trees of scipy before 1.17 take no others.
    places = (i.astype(np.int32), j.astype(np.int32))
    strength = sparse.coo_array((-np.abs(alone) - 1e-9, places), shape=(n, n)).tocsr()
    tree = csgraph.minimum_spanning_tree(strength).toarray() != 0
    inside = tree[i, j]
    _join(start, i[inside], j[inside], alone[inside])
    values = start[first, second]
    for _ in range(_STEPS):
        sigma = np.linalg.inv(matrix(values))
        sigma = (sigma + sigma.T) / 2
        gradient = np.concatenate([1 - np.diag(sigma), 2 * (r + v * values[n:] - sigma[i, j])])
        step = -_solved(_curvature(sigma, pairs, v), gradient)
        decrement = math.sqrt(max(-float(gradient @ step), 0.0))
        length = 1.0
        if decrement > _FULL:
            # The best that leaves K well inside: at the end of a longer step it may be singular.
            halves = [2.0**-k for k in range(math.ceil(math.log2(1 + decrement)))]
            inside = [t for t in halves if dual(values + _FARTHER * t * step) < math.inf]
            lengths = [*inside, 1 / (1 + decrement)]
            length = min(lengths, key=lambda each: dual(values + each * step))
        values = values + length * step
        if decrement < _CLOSE:
            break
    return matrix(values)


def _places(n: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the numbers of K stand: its diagonal, and then the pairs."""
    own = np.arange(n)
    return np.concatenate([own, pairs[:, 0]]), np.concatenate([own, pairs[:, 1]])


def _curvature(sigma: np.ndarray, pairs: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The second derivative of the dual by the diagonal of K and its entries at the pairs."""
    n = len(sigma)
    first, second = _places(n, pairs)
    found: np.ndarray = sigma[np.ix_(first, first)] * sigma[np.ix_(second, second)]
    found += sigma[np.ix_(first, second)] * sigma[np.ix_(second, first)]
    # an entry off the diagonal stands in both triangles
    weights = np.concatenate([np.full(n, math.sqrt(0.5)), np.full(len(pairs), math.sqrt(2))])
    found *= weights * weights[:, None]
    beside = np.arange(n, len(found))
    found[beside, beside] += 2 * v
    return found


def response(sigma: np.ndarray, pairs: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """How the numbers of K move with the measured correlations: its diagonal and its entries at the
    pairs, by each r, float64 (p + m, m).

    Args:
        sigma: what :func:`complete` found, (p, p), from some of the pairs.
        pairs: as there.
        variances: as there.
    """
    n, m = len(sigma), len(pairs)
    right = np.zeros((n + m, m))
    right[np.arange(n, n + m), np.arange(m)] = -2.0
    return _solved(_curvature(sigma, pairs, variances), right)


def _solved(curvature: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a positive definite system, whose matrix is overwritten; with as little added
    to its diagonal as rounding asks for.
    """
    scale = 1 / np.sqrt(np.diag(curvature))
    curvature *= scale * scale[:, None]
    scale = scale.reshape(-1, *[1] * (right.ndim - 1))
    for ridge in _RIDGES:
        curvature[np.diag_indices_from(curvature)] = 1 + ridge
        try:
            factor = linalg.cho_factor(curvature)
        except linalg.LinAlgError:
            continue
        found: np.ndarray = scale * linalg.cho_solve(factor, scale * right)
        return found
    steepest: np.ndarray = scale**2 * right
    return steepest


def _positive(n: int, pairs: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """The correlations of all pairs, with eigenvalues that are at least a little above 0."""
    matrix = np.eye(n)
    i, j = pairs.T
    matrix[i, j] = matrix[j, i] = correlations
    values, vectors = np.linalg.eigh(matrix)
    return _correlation((vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T)
