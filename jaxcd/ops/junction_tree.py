r"""Junction trees: exact margins of a product of small tables over many discrete columns, and rows
drawn from it.

The distribution is

    p(x) = (1 / Z) prod over cliques C of exp f_C(x_C),

and the cliques are those of a triangulation: the columns are eliminated one by one, each time the
one whose table with its neighbours has the fewest cells.  Two passes of messages over a tree of the
cliques give log Z and the margin of every clique, at the price of a few sums over each clique's
table.

Source:
    Lauritzen and Spiegelhalter 1988; Koller and Friedman 2009, chapters 9 and 10.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

__all__ = ["JunctionTree", "elimination_cliques"]

Columns = tuple[int, ...]


def elimination_cliques(cardinalities: Sequence[int], sets: Iterable[Columns]) -> list[Columns]:
    """The largest cliques of a triangulation in which every set lies in a clique; each sorted.

    Args:
        cardinalities: the number of levels of each column; a column in no set is a clique.
        sets: columns whose joint table is wanted.
    """
    around: list[set[int]] = [set() for _ in cardinalities]
    for columns in sets:
        for a, b in itertools.permutations(columns, 2):
            around[a].add(b)

    def cells(column: int) -> int:
        return cardinalities[column] * math.prod(cardinalities[j] for j in around[column])

    queue = [(cells(column), column) for column in range(len(cardinalities))]
    heapq.heapify(queue)
    price = {column: size for size, column in queue}
    found: list[set[int]] = []
    holding: list[list[int]] = [[] for _ in cardinalities]  # cliques found so far, by column
    while price:
        size, column = heapq.heappop(queue)
        if price.get(column) != size:
            continue  # an old entry: the column is gone, or its neighbours have changed
        del price[column]
        neighbors = around[column]
        clique = neighbors | {column}
        if not any(clique <= found[place] for place in holding[column]):
            for member in clique:
                holding[member].append(len(found))
            found.append(clique)
        for other in neighbors:
            around[other] |= neighbors
            around[other] -= {other, column}
        for other in neighbors:
            if price[other] != cells(other):
                price[other] = cells(other)
                heapq.heappush(queue, (price[other], other))
    return [tuple(sorted(clique)) for clique in found]


class _Edge(NamedTuple):
    """What a clique shares with the one above it: the axes of either table that it does not share,
    and the shape of what it shares among the axes of either.
    """

    others: Columns
    shape: Columns
    others_above: Columns
    shape_above: Columns


@final
class JunctionTree:
    """A tree of cliques with the running intersection property.

    Args:
        cardinalities: the number of levels of each column.
        sets: columns whose joint table a clique must hold.

    Attributes:
        cliques: sorted positions of columns, each clique before those that hang from it.
    """

    def __init__(self, cardinalities: Sequence[int], sets: Iterable[Columns]) -> None:
        self.cardinalities = tuple(cardinalities)
        self.cliques, self._parents = _tree(elimination_cliques(cardinalities, sets))
        # What a clique shares with its parent; nothing for the first of a component.
        self._shared = [
            () if parent < 0 else tuple(sorted({*clique} & {*self.cliques[parent]}))
            for clique, parent in zip(self.cliques, self._parents, strict=True)
        ]

    @property
    def n_cells(self) -> int:
        """The cells of the largest clique."""
        return max((self._size(clique) for clique in self.cliques), default=1)

    def _size(self, columns: Columns) -> int:
        return math.prod(self.cardinalities[j] for j in columns)

    @cached_property
    def _places(self) -> list[list[int]]:
        places: list[list[int]] = [[] for _ in self.cardinalities]
        for place, clique in enumerate(self.cliques):
            for column in clique:
                places[column].append(place)
        return places

    def home(self, columns: Columns) -> int:
        """The place of the smallest clique that holds the columns.

        Raises:
            KeyError: no clique does.
        """
        places = set.intersection(*(set(self._places[j]) for j in columns))
        if not places:
            raise KeyError(columns)
        return min(places, key=lambda place: (self._size(self.cliques[place]), place))

    def others(self, place: int, columns: Columns) -> tuple[int, ...]:
        """The axes of a clique's table that belong to none of the columns."""
        return tuple(axis for axis, j in enumerate(self.cliques[place]) if j not in columns)

    def shape(self, place: int, columns: Columns | None = None) -> tuple[int, ...]:
        """The shape of a clique's table, with 1 for what is none of the columns (None: all)."""
        return tuple(
            self.cardinalities[j] if columns is None or j in columns else 1
            for j in self.cliques[place]
        )

    def calibrate(self, potentials: Sequence[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """log Z, and the margin of every clique, float64, summing to 1.

        Args:
            potentials: f_C of each clique, finite, of its shape.
        """
        up, messages = list(potentials), [np.zeros(())] * len(potentials)
        log_z = 0.0
        for place in reversed(range(len(up))):
            parent, edge = self._parents[place], self._edges[place]
            message = _log_sum_exp(up[place], edge.others)
            messages[place] = message
            if parent < 0:
                log_z += float(message)
            else:
                up[parent] = up[parent] + message.reshape(edge.shape_above)
        margins: list[np.ndarray] = []
        for place, (parent, edge) in enumerate(zip(self._parents, self._edges, strict=True)):
            own = np.exp(up[place] - messages[place].reshape(edge.shape))
            if parent >= 0:
                own *= margins[parent].sum(axis=edge.others_above).reshape(edge.shape)
            margins.append(own)
        return log_z, margins

    @cached_property
    def _edges(self) -> list[_Edge]:
        """Of each clique to the one above it; read in every calibration."""
        return [
            _Edge(
                self.others(place, shared),
                self.shape(place, shared),
                self.others(parent, shared) if parent >= 0 else (),
                self.shape(parent, shared) if parent >= 0 else (),
            )
            for place, (parent, shared) in enumerate(zip(self._parents, self._shared, strict=True))
        ]

    def pair_margins(self, margins: Sequence[np.ndarray]) -> np.ndarray:
        """The margins of all pairs of columns: float64, one row and one column a level, those of
        the first column first.

        From the leaves up: P(level | cell of the clique) for all columns at and below a clique.
        Columns of different branches are independent given the clique, which gives the margins of
        their pairs.  From the root down, those of one branch are written over further inside it.
        """
        ends = np.cumsum([0, *self.cardinalities])
        levels = [np.arange(ends[j], ends[j + 1]) for j in range(len(self.cardinalities))]
        held = [np.concatenate([levels[j] for j in clique]) for clique in self.cliques]
        shares = []
        for margin in margins:
            cells = np.indices(margin.shape).reshape(margin.ndim, -1)
            own = [np.eye(k)[index] for k, index in zip(margin.shape, cells, strict=True)]
            shares.append(np.concatenate(own, axis=1))
        for place in reversed(range(len(self.cliques))):
            parent, shared = self._parents[place], self._shared[place]
            if parent < 0:
                continue
            front = [self.cliques[place].index(j) for j in shared]
            shape = (self._size(shared), -1)
            table = np.moveaxis(margins[place], front, range(len(front))).reshape(shape)
            mass = table.sum(axis=1, keepdims=True)
            given = np.where(mass > 0, table / np.where(mass > 0, mass, 1.0), 0.0)
            inside = shares[place].reshape(*margins[place].shape, -1)
            inside = np.moveaxis(inside, front, range(len(front))).reshape(*given.shape, -1)
            of_shared = (given[:, None, :] @ inside)[:, 0]
            new = ~np.isin(held[place], held[parent])
            index = np.zeros(1, dtype=np.int64)
            for j, k in zip(self.cliques[parent], margins[parent].shape, strict=True):
                index = index[:, None] * (k if j in shared else 1)
                index = (index + (np.arange(k) if j in shared else np.zeros(k, dtype=int))).ravel()
            shares[parent] = np.concatenate([shares[parent], of_shared[index][:, new]], axis=1)
            held[parent] = np.concatenate([held[parent], held[place][new]])
        alone = np.zeros(ends[-1])
        for j, of_column in enumerate(levels):
            home = self.home((j,))
            alone[of_column] = margins[home].sum(axis=self.others(home, (j,)))
        found: np.ndarray = np.outer(alone, alone)
        for place, margin in enumerate(margins):
            block = (shares[place] * margin.reshape(-1, 1)).T @ shares[place]
            found[np.ix_(held[place], held[place])] = block
        return found

    def sample(
        self, margins: Sequence[np.ndarray], n_rows: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Rows of levels from calibrated margins, int32 (n_rows, columns).

        Within the rows that agree on what a clique shares with its parent, the clique's levels are
        drawn systematically: each is taken as often as expected, but for less than one row.
        """
        rows = np.zeros((n_rows, len(self.cardinalities)), dtype=np.int32)
        for place, clique in enumerate(self.cliques):
            shared = self._shared[place]
            new = tuple(j for j in clique if j not in shared)
            table = np.moveaxis(
                margins[place], [clique.index(j) for j in (*shared, *new)], range(len(clique))
            ).reshape(self._size(shared), self._size(new))
            known = np.zeros(n_rows, dtype=np.int64)
            for j in shared:
                known = known * self.cardinalities[j] + rows[:, j]
            drawn = _systematic(table, known, generator)
            for j, levels in zip(
                new, np.unravel_index(drawn, [self.cardinalities[j] for j in new]), strict=True
            ):
                rows[:, j] = levels
        return rows


def _tree(cliques: list[Columns]) -> tuple[list[Columns], list[int]]:
    """The cliques in an order in which parents come first, and the place of each one's parent, -1
    for none: a spanning tree with the largest intersections (Jensen and Jensen 1994).
    """
    holding: dict[int, list[int]] = {}
    for place, clique in enumerate(cliques):
        for column in clique:
            holding.setdefault(column, []).append(place)
    order: list[Columns] = []
    parents: list[int] = []
    new_place: dict[int, int] = {}
    for root in range(len(cliques)):
        if root in new_place:
            continue
        queue: list[tuple[int, int, int]] = [(0, root, -1)]
        while queue:
            _, place, parent = heapq.heappop(queue)
            if place in new_place:
                continue
            new_place[place] = len(order)
            parents.append(parent)
            order.append(cliques[place])
            near = {other for column in cliques[place] for other in holding[column]}
            for other in sorted(near - new_place.keys()):
                common = len({*cliques[place]} & {*cliques[other]})
                heapq.heappush(queue, (-common, other, new_place[place]))
    return order, parents


def _log_sum_exp(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not axes:
        return values
    top = values.max(axis=axes, keepdims=True)
    found: np.ndarray = np.log(np.exp(values - top).sum(axis=axes)) + np.squeeze(top, axis=axes)
    return found


def _systematic(table: np.ndarray, known: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """For each row a column of the table's row ``known``, in proportion to its entries."""
    n_groups, n_cells = table.shape
    mass = table.sum(axis=1, keepdims=True)
    shares = np.where(mass > 0, table / np.where(mass > 0, mass, 1.0), 1 / n_cells)
    ends = np.array(np.cumsum(shares, axis=1).clip(max=1.0))
    ends[:, -1] = 1.0
    # A fresh order in every clique: what ranks rows here must not depend on their other levels.
    order = generator.permutation(len(known))
    narrow = known[order].astype(np.uint16 if n_groups <= 1 << 16 else np.int64)
    order = order[np.argsort(narrow, kind="stable")]
    sizes = np.bincount(known, minlength=n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    rank = np.arange(len(known)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    offset = generator.random((n_groups,))
    point = (rank + offset[group]) / sizes[group]
    bounds = (ends + np.arange(n_groups)[:, None]).ravel()
    cells = np.searchsorted(bounds, group + np.minimum(point, 1 - 2.0**-30), side="right")
    drawn = np.empty(len(known), dtype=np.int64)
    drawn[order] = np.minimum(cells - group * n_cells, n_cells - 1)
    return drawn
