r"""The tables of a DAG's families, each with less noise than was bought, because the DAG says what
the other tables of the release must be.

Let r_F be the released interactions (:mod:`jaxcd.ops.interactions`) of the families of the DAG,
with noise of variance S_F, and r_C others.  By the DAG the expectation of r_C is a function m_C of
that of r_F.  To first order

    c = r_C - m_C(r_F) = e_C - A e_F + s,    A = d m_C / d r_F,

with e the noise and s from sampling: what rows say of r_C beyond what they say of the conditional
tables.  s is uncorrelated with the efficient estimate of any function of these tables, because a
difference of two of its unbiased estimates would otherwise improve it.  So all that c tells of r_F
is its noise, and the best linear estimate of that gives

    r_F + S_F A^T V^-1 c,    V = S_s + S_C + A S_F A^T,

with noise of the covariance S_F - S_F A^T V^-1 A S_F, instead of S_F.

The law of a row is that of the DAG with the conditional tables fitted to the released ones: m_C is
exact for it.  A and S_s are means over rows that are drawn from it: an error of theirs costs
precision, and makes the stated variance a little wrong, but no bias.  For a cell (x_v, row) of a
family the column of A is E[phi_C | cell] - E[phi_C | row of the family], and s is what these leave
of phi_C.  Where few of the drawn rows are in the cell the mean of so many phi_C is mostly error,
which would be taken for what c tells of the cell; so a column keeps the share of its squared length
that is not from drawing (James and Stein).

r_C are the measured sets of two to four columns of which no two are farther apart than a common
neighbour, small sets first, as many as are worked out in about two seconds.

Source:
    Hausman 1978, lemma 2.1, for the covariance; James and Stein 1961; Gauss and Aitken for the
    rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np
from scipy import sparse

from jaxcd.effects.contracting import MOST_CELLS, Contraction
from jaxcd.effects.likelihood import likeliest
from jaxcd.graphs import MixedGraph, topological_order
from jaxcd.ops.interactions import (
    cell_variance,
    interaction,
    interactions,
    subsets,
    table_of_interactions,
)
from jaxcd.ops.moments import contrast_basis
from jaxcd.releases.tables.tabulated import NoisyTable

__all__ = ["AgreeingTables"]

_FEW, _MANY = 50_000, 500_000  # rows that are drawn; many where few of them differ
_WORK = 4e10  # different rows times the square of the numbers of r_C
_LARGEST = 4

Columns = tuple[int, ...]


@final
class AgreeingTables:
    """The families' tables of a release under a DAG.

    Args:
        release: of interactions with noise, without cells that are left out.
        graph: a DAG on its columns, in their order, all of whose families were measured.
    """

    def __init__(self, release: Any, graph: MixedGraph) -> None:
        self._release, self._n = release, float(release.n_samples)
        self._sizes: Columns = release.cardinalities
        self._place = {name: j for j, name in enumerate(release.names)}
        arcs = graph.directed
        self._families = {
            v: (v, *np.flatnonzero(arcs[:, v]).tolist()) for v in topological_order(arcs)
        }
        inside = {s for own in self._families.values() for s in subsets(tuple(sorted(own)))}
        self._offset, n_own = _offsets(sorted(inside), self._sizes)
        self._noise_of = np.concatenate(
            [np.full(k, release.variances[s]) for s, (_, k) in self._offset.items()]
        )
        own = np.concatenate([release.interactions[s].ravel() for s in self._offset])
        self._thetas = {v: self._theta(own) for v, own in self._families.items()}
        drawn = _different(self._drawn(_FEW))
        if len(drawn[0]) < _FEW / 4:
            drawn = _different(self._drawn(_MANY))
        others = self._others(graph, inside, most=math.sqrt(_WORK / len(drawn[0])))
        self._gain = np.zeros((0, n_own))
        self._weights = self._gain
        if others:
            own = own + self._improve(others, *drawn)
        self._interactions = {
            s: own[at : at + k].reshape([self._sizes[j] - 1 for j in s])
            for s, (at, k) in self._offset.items()
        }
        self._tables: dict[tuple[str, ...], tuple[np.ndarray, float]] = {}

    def _others(self, graph: MixedGraph, inside: set[Columns], most: float) -> list[Columns]:
        adjacent = graph.adjacency.astype(int)
        near = (np.eye(len(adjacent), dtype=int) + adjacent + adjacent @ adjacent) > 0
        found, room = [], most
        for s in sorted(self._release.interactions, key=lambda s: (len(s), s)):
            k = math.prod(self._sizes[j] - 1 for j in s)
            if not 1 < len(s) <= _LARGEST or s in inside or k > room:
                continue
            if near[np.ix_(s, s)].all() and self._plan(s)[1].largest <= MOST_CELLS:
                found.append(s)
                room -= k
        return found

    def _expected(self, s: Columns) -> np.ndarray:
        """m_C of a set."""
        needed, plan = self._plan(s)
        return self._n * interaction(plan([self._thetas[v] for v in needed])).ravel()

    def _improve(self, others: list[Columns], codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        released = [self._release.interactions[s].ravel() for s in others]
        expected = [self._expected(s) for s in others]
        noise = np.concatenate(
            [
                np.full(one.size, self._release.variances[s])
                for s, one in zip(others, released, strict=True)
            ]
        )
        root, n_drawn = np.sqrt(times).astype(np.float32), int(times.sum())
        phi = self._phi(codes, others, root)
        phi -= root[:, None] * (root @ phi / n_drawn)
        n_phi = phi.shape[1]
        slopes = np.zeros((n_phi, len(self._noise_of)))
        # s is phi - inside @ by_cell, whose moments are those of its parts.
        inside = self._inside(codes)
        of_phi = (sparse.diags_array(root) @ inside).T @ phi
        lengths = inside.T @ (phi**2).sum(axis=1)
        of_cells = (inside.T @ (sparse.diags_array(root.astype(float) ** 2) @ inside)).toarray()
        rows, by_cell, at = of_cells.diagonal(), np.zeros(of_phi.shape), 0
        for own in self._families.values():
            shape = [self._sizes[j] for j in own]
            here = slice(at, at := at + math.prod(shape))
            drawn = rows[here].reshape(shape[0], -1)
            counted = np.maximum(drawn, 1e-3)
            means = of_phi[here].reshape(shape[0], -1, n_phi) / counted[..., None]
            row = counted.sum(axis=0)
            slope = means - np.einsum("vr,vrk->rk", counted / row, means)
            apart = lengths[here].reshape(drawn.shape) / counted - (means**2).sum(axis=2)
            slope *= _kept((slope**2).sum(axis=2), apart * (1 - counted / row), drawn)
            by_cell[here] = slope.reshape(-1, n_phi)
            self._add(slopes, own, np.moveaxis(slope.reshape(*shape, -1), -1, 0))
        crossed = (of_phi - of_cells @ by_cell / 2).T @ by_cell
        # An inverse of a covariance of so many drawn rows is too large by this.
        few = 1 / max(n_drawn - n_phi, n_drawn / 2)
        left = phi.T @ phi - crossed - crossed.T
        self._gain = slopes * self._noise_of
        total = few * self._n * left + np.diag(noise) + self._gain @ slopes.T
        self._weights = np.linalg.solve(total, self._gain)
        found: np.ndarray = (np.concatenate(released) - np.concatenate(expected)) @ self._weights
        return found

    def _inside(self, codes: np.ndarray) -> sparse.csr_array:
        """Whether a row is in a cell, of all families one after the other."""
        cells, at = [], 0
        for own in self._families.values():
            shape = [self._sizes[j] for j in own]
            cells.append(at + np.ravel_multi_index(tuple(codes[:, own].T), shape))
            at += math.prod(shape)
        places, ends = np.stack(cells, axis=1).ravel(), len(cells) * np.arange(len(codes) + 1)
        ones = np.ones(places.size, dtype=np.float32)
        return sparse.csr_array((ones, places, ends), shape=(len(codes), at))

    def _add(self, rows: np.ndarray, own: Columns, tables: np.ndarray) -> None:
        """Adds to each row the weights of the interactions that a sum of cells with these weights
        has.
        """
        columns = tuple(sorted(own))
        ordered = np.transpose(tables, [0, *(1 + own.index(column) for column in columns)])
        for s in subsets(columns):
            others = tuple(1 + a for a, column in enumerate(columns) if column not in s)
            at, k = self._offset[s]
            rows[:, at : at + k] += interactions(ordered.mean(axis=others)).reshape(-1, k)

    def _theta(self, own: Columns) -> np.ndarray:
        """The conditional table of a family, fitted to the released one."""
        columns, release = tuple(sorted(own)), self._release
        table = table_of_interactions(
            columns, self._sizes, release.n_samples, release.interactions.__getitem__
        )
        table = np.transpose(table, [columns.index(j) for j in own])
        variance = cell_variance(columns, self._sizes, release.variances)
        fitted = likeliest(table, variance, self._n).reshape(table.shape[0], -1)
        share = fitted.sum(axis=1, keepdims=True) / fitted.sum()
        found: np.ndarray = (fitted + share) / (fitted.sum(axis=0) + 1)
        return found.reshape(table.shape)

    def _drawn(self, n_rows: int) -> np.ndarray:
        rng = np.random.default_rng(0)
        codes = np.zeros((n_rows, len(self._sizes)), dtype=np.intp)
        for v, own in self._families.items():
            below = np.cumsum(self._thetas[v], axis=0)[:-1][(slice(None), *codes[:, own[1:]].T)]
            codes[:, v] = (rng.random(n_rows) > below.reshape(len(below), -1)).sum(axis=0)
        return codes

    def _plan(self, s: Columns) -> tuple[Columns, Contraction]:
        return _plan(tuple(self._families.values()), self._sizes, s)

    def _phi(self, codes: np.ndarray, sets: list[Columns], times: np.ndarray) -> np.ndarray:
        """phi of all sets, side by side, each row times a number."""
        parts: dict[Columns, np.ndarray] = {(): times[:, None]}
        each = zip(codes.T, self._sizes, strict=True)
        basis = [contrast_basis(k).astype(np.float32)[of_rows] for of_rows, k in each]
        for s in sets:
            for size in range(1, len(s) + 1):
                if s[:size] not in parts:
                    before, own = parts[s[: size - 1]], basis[s[size - 1]]
                    parts[s[:size]] = (before[:, :, None] * own[:, None, :]).reshape(len(codes), -1)
        return np.concatenate([parts[s] for s in sets], axis=1)

    def _spread(self, weights: np.ndarray) -> np.ndarray:
        """The variance of the noise on sums of interactions with the weights of each row."""
        bought = (weights**2) @ self._noise_of
        saved = ((weights @ self._gain.T) * (weights @ self._weights.T)).sum(axis=1)
        found: np.ndarray = np.maximum(bought - saved, 0.0)
        return found

    def table(self, names: tuple[str, ...]) -> NoisyTable:
        """The table of a family; the variance is the mean over its cells."""
        if names not in self._tables:
            own = tuple(self._place[name] for name in names)
            columns = tuple(sorted(own))
            counts = table_of_interactions(
                columns, self._sizes, self._release.n_samples, self._interactions.__getitem__
            )
            counts = np.transpose(counts, [columns.index(j) for j in own])
            cells = np.zeros((counts.size, len(self._noise_of)))
            self._add(cells, own, np.eye(counts.size).reshape(-1, *counts.shape))
            self._tables[names] = counts, float(self._spread(cells).mean())
        counts, variance = self._tables[names]
        return NoisyTable(counts, variance, self._n, lambda weights: self.noise([(names, weights)]))

    def noise(self, sums: Sequence[tuple[tuple[str, ...], np.ndarray]]) -> float:
        """The variance of the noise on a sum of cells of several tables."""
        total = np.zeros((1, len(self._noise_of)))
        for names, weights in sums:
            self._add(total, tuple(self._place[name] for name in names), weights[None])
        return float(self._spread(total)[0])


def _offsets(sets: list[Columns], sizes: Columns) -> tuple[dict[Columns, tuple[int, int]], int]:
    found, at = {}, 0
    for s in sets:
        k = math.prod(sizes[j] - 1 for j in s)
        found[s] = at, k
        at += k
    return found, at


@lru_cache(maxsize=4096)
def _plan(families: tuple[Columns, ...], sizes: Columns, s: Columns) -> tuple[Columns, Contraction]:
    """How the table of these columns comes from the conditional tables of their ancestors: these
    columns, and the sum.
    """
    own = {family[0]: family for family in families}
    needed, todo = dict.fromkeys(s), list(s)
    while todo:
        for u in own[todo.pop()][1:]:
            if u not in needed:
                needed[u] = None
                todo.append(u)
    return tuple(needed), Contraction([own[v] for v in needed], dict(enumerate(sizes)), s)


def _different(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that differ, and how often each is there."""
    packed = np.ascontiguousarray(codes, dtype=np.uint32).view(f"V{4 * codes.shape[1]}").ravel()
    _, first, times = np.unique(packed, return_index=True, return_counts=True)
    return codes[first], times


def _kept(squared: np.ndarray, spread: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The share of vectors of this squared length that is not from drawing, for means of so many
    rows with this sum of squared deviations over their number.
    """
    error = np.where(drawn > 1.5, spread / np.maximum(drawn - 1, 0.5), np.inf)
    share = 1 - error / np.maximum(squared, np.finfo(np.float64).tiny)
    return np.clip(share, 0.0, 1.0)[..., None]
