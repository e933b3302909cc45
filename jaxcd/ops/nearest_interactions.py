r"""The interactions that noise most likely started from, among those whose tables are possible.

Noise leaves negative cells.  Made non-negative one by one, tables that overlap no longer agree
where they do, and what they say of dependence is then mostly that disagreement.  So all tables are
made non-negative together: of noisy interactions R_U with noise of variance v_U on every entry
(:mod:`jaxcd.ops.interactions`),

    minimise over R'   1/2 sum over U of |R'_U - R_U|^2 / v_U
    such that          every cell of every table N_S that is built from R' is at least 0,

which for Gaussian noise is the most likely R'.  It is computed from released numbers alone, so it
is post-processing.  With A the map from interactions to cells and A^T
its transpose, R' = R + v A^T m for the multipliers m >= 0 of the cells, which minimise
1/2 m^T A v A^T m + m^T A R: by accelerated projected gradients, restarted where they turn back.
The step of a table is the inverse of max over U in S of (tables with U) v_U prod over S - U of
1 / k_j, since A v A^T is at most the diagonal of these.

Only tables with negative cells need multipliers; most have none.  They are found anew until no
other table has become negative.

Source:
    Beck and Teboulle 2009; O'Donoghue and Candes 2015 for the restarts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jaxcd.ops.interactions import expansion, subsets

__all__ = ["nearest_interactions"]

Columns = tuple[int, ...]

# By so many of the largest standard deviations of noise on an entry of its table a cell may stay
# negative, and those with a multiplier be positive on average: it is small beside what noise leaves
# in any cell.  The largest of all tables would be too much: that of a column that is mostly missing
# is a thousand times the others'.
_TOLERANCE = 0.003
_MOST_STEPS, _MOST_ROUNDS = 300, 4
# Axes of small tables are taken together as long as they have so many cells: one product is quicker
# than several, each of which moves the array.
_TOGETHER = 64


@lru_cache(maxsize=256)
def _expansions(shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """From interactions to cells along the axes of a table, of neighbours together."""
    found: list[np.ndarray] = []
    for k in shape:
        if found and len(found[-1]) * k <= _TOGETHER:
            found[-1] = np.kron(found[-1], expansion(k))
        else:
            found.append(expansion(k))
    return tuple(found)


def _along_all(tables: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Each matrix times one axis of the tables, or times several together, (tables, *shape)."""
    found = tables.reshape(len(tables), *(len(matrix) for matrix in matrices))
    for matrix in matrices:  # the axis behind that of the tables becomes the last
        found = np.tensordot(found, matrix, axes=(1, 1))
    return found.reshape(tables.shape)


@dataclass(frozen=True)
class _Alike:
    """Tables of the same shape.

    Args:
        places: int64 (tables, *shape), where their coefficients are among all entries.
    """

    places: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a table."""
        return self.places.shape[1:]

    def cells(self, entries: np.ndarray) -> np.ndarray:
        """A: the tables, (tables, *shape)."""
        return _along_all(entries[self.places], _expansions(self.shape))

    def entries(self, cells: np.ndarray, size: int) -> np.ndarray:
        """A^T: what the cells add to each of ``size`` entries."""
        added = _along_all(cells, [matrix.T for matrix in _expansions(self.shape)])
        return np.bincount(self.places.ravel(), weights=added.ravel(), minlength=size)

    def bounds(self, entries: np.ndarray) -> np.ndarray:
        """max over U of entries_U prod over S - U of 1 / k_j, one number a table."""
        found = entries[self.places]
        for axis, k in enumerate(self.shape, start=1):
            outside = np.ones(k)
            outside[0] = 1 / k
            found = found * outside.reshape([-1 if a == axis else 1 for a in range(found.ndim)])
        largest: np.ndarray = found.max(axis=tuple(range(1, found.ndim)), keepdims=True)
        return largest

    def tolerances(self, variance: np.ndarray) -> np.ndarray:
        """By how much cells may be negative, one number a table; whatever has no noise may."""
        found = variance[self.places]
        largest = found.max(axis=tuple(range(1, found.ndim)), keepdims=True)
        return np.where(largest > 0, _TOLERANCE * np.sqrt(largest), math.inf)

    def some(self, chosen: np.ndarray) -> _Alike:
        """Those that are chosen."""
        return _Alike(self.places[chosen])


def nearest_interactions(
    interactions: Mapping[Columns, np.ndarray],
    variances: Mapping[Columns, float],
    cardinalities: Sequence[int],
    n_samples: float,
    tables: Collection[Columns],
) -> dict[Columns, np.ndarray]:
    """The nearest interactions, in standard deviations of their noise, of which no table has a
    negative cell.

    Args:
        interactions: R_U of sets of columns (sorted), (k_j - 1 for each).
        variances: of their noise; entries without noise stay as they are.
        cardinalities: the number of levels of each column.
        n_samples: n, the total of every table.
        tables: the sets (sorted) whose tables count, all of whose subsets have interactions.

    Returns:
        R'_U of all sets.  Cells may stay below 0 by less than a hundredth of the noise on an
        entry, and by more where hundreds of steps do not lead there.
    """
    scale = math.sqrt(max(variances.values(), default=0.0))
    if not scale > 0:
        return dict(interactions)
    starts, size = {}, 1
    for columns, values in interactions.items():
        starts[columns], size = size, size + values.size
    noisy, variance = np.full(size, n_samples / scale), np.zeros(size)
    for columns, start in starts.items():
        stop = start + interactions[columns].size
        noisy[start:stop] = interactions[columns].ravel() / scale
        variance[start:stop] = variances[columns] / scale**2
    nearest = _nearest(noisy, variance, _alike(tables, cardinalities, starts)) * scale
    return {
        columns: nearest[start : start + interactions[columns].size].reshape(
            interactions[columns].shape
        )
        for columns, start in starts.items()
    }


def _alike(
    tables: Collection[Columns], cardinalities: Sequence[int], starts: Mapping[Columns, int]
) -> list[_Alike]:
    """The tables that are not part of another one, their columns by the number of levels."""
    larger: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
    members: defaultdict[Columns, list[Columns]] = defaultdict(list)
    for columns in sorted(tables, key=lambda s: (-len(s), s)):
        whole = frozenset(columns)
        if columns and not any(whole <= other for other in larger[columns[0]]):
            for column in columns:
                larger[column].append(whole)
            ordered = tuple(sorted(columns, key=lambda j: (cardinalities[j], j)))
            members[tuple(cardinalities[j] for j in ordered)].append(ordered)
    found = []
    for shape, sets in members.items():
        places = np.zeros((len(sets), *shape), dtype=np.int64)
        for inside in subsets(tuple(range(len(shape)))):
            block = tuple(slice(1, None) if axis in inside else 0 for axis in range(len(shape)))
            for row, columns in enumerate(sets):
                subset = [columns[axis] for axis in inside]
                known = sorted(subset)
                sizes = [cardinalities[j] - 1 for j in known]
                own = np.arange(math.prod(sizes)).reshape(sizes) + starts[tuple(known)]
                places[(row, *block)] = own.transpose([known.index(j) for j in subset])
        found.append(_Alike(places))
    return found


def _nearest(noisy: np.ndarray, variance: np.ndarray, groups: list[_Alike]) -> np.ndarray:
    """R' of all entries, the first of which is n."""
    entries = noisy
    chosen = [np.zeros(len(group.places), dtype=bool) for group in groups]
    multipliers = [np.zeros(group.places.shape) for group in groups]
    tolerances = [group.tolerances(variance) for group in groups]
    for _ in range(_MOST_ROUNDS):
        negative = [
            (group.cells(entries) < -least).any(axis=tuple(range(1, group.places.ndim)))
            for group, least in zip(groups, tolerances, strict=True)
        ]
        if not any((new & ~old).any() for new, old in zip(negative, chosen, strict=True)):
            break
        chosen = [old | new for old, new in zip(chosen, negative, strict=True)]
        active = [j for j, which in enumerate(chosen) if which.any()]
        some = [groups[j].some(chosen[j]) for j in active]
        found, entries = _multiplied(
            noisy, variance, some, [multipliers[j][chosen[j]] for j in active]
        )
        for j, values in zip(active, found, strict=True):
            multipliers[j][chosen[j]] = values
    return entries


def _multiplied(
    noisy: np.ndarray, variance: np.ndarray, groups: list[_Alike], start: list[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """The multipliers of the tables' cells, and R'."""
    size = len(noisy)
    times = sum(np.bincount(group.places.ravel(), minlength=size) for group in groups)
    bounds = [group.bounds(times * variance) for group in groups]
    tolerances = [group.tolerances(variance) for group in groups]

    def moved(multipliers: list[np.ndarray]) -> np.ndarray:
        pairs = zip(groups, multipliers, strict=True)
        found: np.ndarray = noisy + variance * sum(g.entries(m, size) for g, m in pairs)
        return found

    last, ahead, momentum = start, start, 1.0
    for _ in range(_MOST_STEPS):
        entries = moved(ahead)
        cells = [group.cells(entries) for group in groups]
        if all(
            (values >= -least).all() and np.sum(m * values) <= np.sum(np.abs(m) * least)
            for m, values, least in zip(ahead, cells, tolerances, strict=True)
        ):
            return ahead, entries
        new = [
            np.maximum(m - values / bound, 0.0)
            for m, values, bound in zip(ahead, cells, bounds, strict=True)
        ]
        turn = sum(
            float(np.sum((m - after) * (after - old) * bound))
            for m, after, old, bound in zip(ahead, new, last, bounds, strict=True)
        )
        before = 1.0 if turn > 0 else momentum
        momentum = (1 + math.sqrt(1 + 4 * before**2)) / 2
        share = (before - 1) / momentum
        ahead = [after + share * (after - old) for after, old in zip(new, last, strict=True)]
        last = new
    return last, moved(last)
