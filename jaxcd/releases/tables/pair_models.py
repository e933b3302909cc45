r"""What pairs of columns that were released say of those that were not: models of a pair, each with
the table that it expects.

*Independence.*  M = n_i n_j / n.  *Paths.*  The forest of the pairs with the largest deviances from
independence is a model of all columns (Chow and Liu 1968), and between two columns that it joins

    M = n_i P(a | i) P(b | a) ... P(j | z)

along the path i - a - b - ... - z - j.  *Mediators.*  M = sum over levels of k of
n_k P(i | k) P(j | k), for a column k that was measured with both.  Post-processing throughout.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from jaxcd.ops.parts import parts_of
from jaxcd.releases.tables.pair_tables import PairTables

__all__ = [
    "Expected",
    "by_levels",
    "expected_of_mediators",
    "expected_of_paths",
    "expected_of_released",
    "independent",
]

Pair = tuple[int, int]
Expected = tuple[Sequence[Pair], np.ndarray]
"""Pairs (i, j), i < j, of columns with the same numbers of levels (a, b), and what a model expects
of each, in records: float64 (m, a, b)."""

_MOST_NUMBERS = 1 << 24  # of an array of tables


def by_levels(pairs: Iterable[Pair], levels: Sequence[int]) -> dict[Pair, list[Pair]]:
    """The pairs by their columns' numbers of levels."""
    found: defaultdict[Pair, list[Pair]] = defaultdict(list)
    for i, j in pairs:
        found[levels[i], levels[j]].append((i, j))
    return dict(found)


def expected_of_released(
    tables: PairTables, bought: Collection[Pair], left: Collection[Pair]
) -> Iterator[Expected]:
    """What all of these models expect of the pairs that are left, as far as the pairs that were
    bought last change it: with none, independence.
    """
    if not bought:
        yield from independent(tables, left)
    yield from expected_of_paths(tables, left)
    yield from expected_of_mediators(tables, left, new=bought)


def independent(tables: PairTables, pairs: Iterable[Pair]) -> Iterator[Expected]:
    """The tables of independence."""
    for some in by_levels(pairs, tables.cardinalities).values():
        first, second = (np.stack([tables.margins[pair[end]] for pair in some]) for end in (0, 1))
        yield some, first[:, :, None] * second[:, None, :] / tables.n


def expected_of_paths(tables: PairTables, pairs: Collection[Pair]) -> Iterator[Expected]:
    """The tables along the paths of the forest, of the pairs that one joins."""
    levels = np.array(tables.cardinalities)
    ends = np.cumsum([0, *levels])
    places = [slice(start, end) for start, end in itertools.pairwise(ends.tolist())]
    order, before = _forest(tables)
    # P(b | a) for each edge of the forest, both ways
    up = {v: tables.conditional(before[v], v).T for v in order if before[v] >= 0}
    down = {v: tables.conditional(v, before[v]).T for v in up}
    of_first: defaultdict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        of_first[pair[0]].append(pair)
    for sources in parts_of(levels.tolist(), _MOST_NUMBERS // int(ends[-1])):
        first_row = int(ends[sources[0]])
        # a row for each level of a source, a column for each level of all: P(level | row)
        given = np.zeros((int(ends[sources[-1] + 1]) - first_row, int(ends[-1])))
        reached = np.zeros((len(levels), len(sources)), dtype=bool)
        for place, v in enumerate(sources):
            reached[v, place] = True
            given[ends[v] - first_row : ends[v + 1] - first_row, places[v]] = np.eye(levels[v])
        own = levels[sources]
        for v in reversed(order):  # towards the roots
            if v in up and reached[v].any():
                rows, u = np.repeat(reached[v], own), before[v]
                given[rows, places[u]] = given[rows, places[v]] @ up[v]
                reached[u] |= reached[v]
        for v in order:  # and from there to all others
            if v in up and (new := reached[before[v]] & ~reached[v]).any():
                rows = np.repeat(new, own)
                given[rows, places[v]] = given[rows, places[before[v]]] @ down[v]
                reached[v] |= new
        joined = [
            (i, j) for place, i in enumerate(sources) for i, j in of_first[i] if reached[j, place]
        ]
        for (a, b), some in by_levels(joined, tables.cardinalities).items():
            for part in parts_of([a * b] * len(some), _MOST_NUMBERS):
                of_part = [some[place] for place in part]
                first, second = np.array(of_part).T
                rows = ends[first][:, None, None] - first_row + np.arange(a)[:, None]
                columns = ends[second][:, None, None] + np.arange(b)
                margins = np.stack([tables.margins[i] for i in first.tolist()])
                yield of_part, margins[:, :, None] * given[rows, columns]


def _forest(tables: PairTables) -> tuple[list[int], list[int]]:
    """The columns, each after the one that it hangs on; and that one, -1 for a root."""
    d = len(tables.cardinalities)
    ends = np.array(list(tables.log_pvalues), dtype=np.int64).reshape(-1, 2)
    levels = np.array(tables.cardinalities)
    degrees = (levels[ends[:, 0]] - 1) * (levels[ends[:, 1]] - 1)
    weights = tables.deviances[ends[:, 0], ends[:, 1]] - degrees
    clear = weights > 0  # above what independence expects
    # 32 bits: trees of scipy before 1.17 take no others.
    places = ends[clear].astype(np.int32)
    graph = sparse.coo_array((-weights[clear], (places[:, 0], places[:, 1])), shape=(d, d)).tocsr()
    forest = csgraph.minimum_spanning_tree(graph)
    order: list[int] = []
    before = [-1] * d
    seen = np.zeros(d, dtype=bool)
    for root in range(d):
        if not seen[root]:
            found, parents = csgraph.breadth_first_order(forest, root, directed=False)
            seen[found] = True
            order += found.tolist()
            for v in found[1:].tolist():
                before[v] = int(parents[v])
    return order, before


def expected_of_mediators(
    tables: PairTables, pairs: Collection[Pair], *, new: Iterable[Pair]
) -> Iterator[Expected]:
    """The tables by columns that were measured with both, with one of them among the new pairs."""
    partners: defaultdict[int, set[int]] = defaultdict(set)
    for i, j in tables.log_pvalues:
        partners[i].add(j)
        partners[j].add(i)
    wanted, paths = set(pairs), set()
    for ends in tables.log_pvalues.keys() & set(new):  # columns of one level mediate nothing
        for k, i in (ends, ends[::-1]):
            for j in partners[k] - {i}:
                pair = (min(i, j), max(i, j))
                if pair in wanted:
                    paths.add((*pair, k))
    levels = tables.cardinalities
    alike: defaultdict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    for path in sorted(paths):
        alike[tuple(levels[v] for v in path)].append(path)
    for kind, members in alike.items():
        for part in parts_of([math.prod(kind)] * len(members), _MOST_NUMBERS):
            some = [members[place] for place in part]
            first, second = (
                np.stack([tables.conditional(path[end], path[2]) for path in some])
                for end in (0, 1)
            )
            middle = np.stack([tables.margins[k] for *_, k in some])
            yield (
                [(i, j) for i, j, _ in some],
                (first * middle[:, None, :]) @ second.transpose(0, 2, 1),
            )
