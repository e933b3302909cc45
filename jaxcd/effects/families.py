r"""An effect from the tables of the families of a DAG.

With theta_v(x_v | parents) the conditional tables of a DAG the effect of x on y is

    D(theta) = sum over x_W of  s(x_y) (1[x_x = to] - 1[x_x = from])  prod over v in W less x of
    theta_v,

with W the ancestors of y once the arrows into x are removed (truncated factorisation).  Each
theta_v is read off the released table of v and its parents, and the interval is the profile of the
product of the likelihoods of these tables (:mod:`jaxcd.effects.likelihood`).  If the DAG is right,
rows say of each theta_v what they say of no other, so that this product is the likelihood where
there is no noise; what noise the tables share is in kappa.

The table of an adjustment set tells the effect by one sum of all its noise.  Along a chain x -> v
-> y the noise on theta_v reaches the effect times what v does to y, which is less.

Source:
    Pearl 2009, chapter 3, for the factorisation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from jaxcd.effects.contracting import Contraction
from jaxcd.effects.likelihood import Contrast
from jaxcd.graphs import MixedGraph

__all__ = ["Families", "FamilyFormula", "all_families", "families_of"]

Columns = tuple[int, ...]
#: Names: of each family (v, parents of v).
Families = tuple[tuple[str, ...], ...]


def all_families(graph: MixedGraph) -> Families:
    """The families (v, parents of v) of a DAG, in the order of its names."""
    return _families(graph, range(graph.n_nodes))


def _families(graph: MixedGraph, nodes: Iterable[int]) -> Families:
    return tuple(
        (graph.names[v], *(graph.names[u] for u in np.flatnonzero(graph.directed[:, v])))
        for v in nodes
    )


def families_of(graph: MixedGraph, x: str, y: str) -> Families:
    """The families (v, parents of v) whose tables tell the effect of x on y, in the order of the
    graph's names.
    """
    arcs, source, outcome = graph.directed, graph.index(x), graph.index(y)
    needed, todo = {outcome}, [outcome]
    while todo:
        for u in np.flatnonzero(arcs[:, todo.pop()]).tolist():
            if u != source and u not in needed:
                needed.add(u)
                todo.append(u)
    return _families(graph, sorted(needed))


@final
@dataclass(frozen=True)
class FamilyFormula:
    """D of the tables of families, each (levels of v, levels of its parents).

    Args:
        families: columns of each table, v first, as whole numbers.
        shapes: of the tables.
        x: the treatment's column.
        y: the outcome's.
        contrast: what is compared.
    """

    families: tuple[Columns, ...]
    shapes: tuple[tuple[int, ...], ...]
    x: int
    y: int
    contrast: Contrast

    @property
    def span(self) -> float:
        """No effect is larger."""
        return self.contrast.span

    @cached_property
    def _sizes(self) -> dict[int, int]:
        both = zip(self.families, self.shapes, strict=True)
        return {c: k for family, shape in both for c, k in zip(family, shape, strict=True)}

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([prod(shape) for shape in self.shapes])[:-1]

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each cell its table, its row and its level of v, numbered over all tables."""
        table, row, level = [], [], []
        rows = levels = 0
        for t, shape in enumerate(self.shapes):
            k, width = shape[0], prod(shape[1:])
            table.append(np.full(k * width, t))
            row.append(rows + np.tile(np.arange(width), k))
            level.append(levels + np.repeat(np.arange(k), width))
            rows, levels = rows + width, levels + k
        return np.concatenate(table), np.concatenate(row), np.concatenate(level)

    @cached_property
    def _levels(self) -> np.ndarray:
        """1 at the level that is compared, -1 at the one it is compared with."""
        found = np.zeros(self._sizes[self.x])
        found[self.contrast.end], found[self.contrast.start] = 1.0, -1.0
        return found

    @cached_property
    def contraction(self) -> Contraction:
        """How the sum over all columns is done."""
        return Contraction([(self.x,), (self.y,), *self.families], self._sizes)

    def _thetas(self, flat: np.ndarray, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each cell theta, and the count that it was divided by."""
        table, row, level = self._places
        of_level, more = np.bincount(level, flat)[level], extra[table]
        rows = np.bincount(row, flat)[row] + more
        return (flat + more * of_level / np.bincount(table, flat)[table]) / rows, rows

    def _factors(self, theta: np.ndarray) -> list[np.ndarray]:
        both = zip(np.split(theta, self._ends), self.shapes, strict=True)
        return [self._levels, self.contrast.scores, *(part.reshape(shape) for part, shape in both)]

    def value(self, flat: np.ndarray, extra: np.ndarray) -> float:
        """D; ``extra`` rows that are distributed as all of its table are added to each stratum."""
        return float(self.contraction(self._factors(self._thetas(flat, extra)[0])))

    def slope(self, flat: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """The derivative by each cell, the distribution of the added rows held fixed."""
        theta, rows = self._thetas(flat, extra)
        slopes = self.contraction.slopes(self._factors(theta))[2:]
        by_theta, row = np.concatenate([part.ravel() for part in slopes]), self._places[1]
        found: np.ndarray = (by_theta - np.bincount(row, by_theta * theta)[row]) / rows
        return found
