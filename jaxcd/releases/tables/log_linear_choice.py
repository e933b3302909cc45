r"""The choice of a log-linear model's pairs and triples; post-processing.

A pair that is not in the model is explained by it, or not: the released interaction less the
expected one, over its variance under the model, is about a chi-square with (k_i - 1)(k_j - 1)
degrees of freedom.  The variance is that of n rows, that of the pair's noise, and that of what the
noise of the model's terms adds to the expected one; this is Rao's score test with the model's
parameters unknown.  Where levels are rare the last part is as large as the pair's own noise, and a
level held by nobody makes a fit at the edge of what is possible; without it independent columns
would be joined.

Starting from a forest of the clearest pairs, the clearest unexplained ones are added, no two with a
column in common at a time, until all are explained or the tables of the cliques would be too large.
A pair waits where a clearer one waits that might explain it: if b is nearly a copy of c, (a, b) is
unexplained wherever (a, c) is.  Triples that were measured join the model in the same way, if they
lie in a clique of it.

Source:
    Rao 1948 for the test; Chow and Liu 1968 for the tree.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import networkx as nx
import numpy as np

from jaxcd.ops import tails
from jaxcd.ops.interactions import interaction
from jaxcd.ops.junction_tree import elimination_cliques
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.threads import one_blas_thread
from jaxcd.releases.tables.log_linear_fit import LogLinearModel, NoisyInteractions, fit_model

__all__ = [
    "ExpectedTables",
    "Level",
    "collider_pairs",
    "fits",
    "neighbouring_triples",
    "select_pairs",
    "unexplained",
    "unexplained_triples",
]

Columns = tuple[int, ...]
Pair = tuple[int, int]
#: the p-value below which a set counts as unexplained, where so many sets are found
Level = Callable[[int], float]
_Set = TypeVar("_Set", bound=Columns)

_MOST_ROUNDS = 20
# Rows drawn to see how a model follows what it is fitted to, fewer where there are many regressors,
# of which there are at most so many; and the share of cells drawn anew.
_ROWS, _FEWER_ROWS, _MANY_ENTRIES, _MOST_ENTRIES = 20_000, 10_000, 500, 2_000
_BLUR = 0.05
# Of the columns' contrasts: with more, pairs are looked at one by one.
_MOST_AT_ONCE = 1_000
# A pair's own table may have so many times the cells of others.
_OWN = 2


def select_pairs(
    noisy: NoisyInteractions,
    *,
    level: Level,
    max_cells: int,
    start: Sequence[Pair] = (),
    absent: Collection[Pair] = (),
) -> tuple[tuple[Pair, ...], LogLinearModel]:
    """The pairs that a model needs, the clearest first, and the model.

    Args:
        noisy: interactions of all columns, and of all pairs but absent ones.
        level: at which a pair counts as not explained, by the number of pairs.
        max_cells: no clique's table becomes larger by adding a pair, unless it is the pair's own,
            of twice as many cells at most.
        start: pairs to begin with.
        absent: pairs that are left out.
    """
    levels, d = noisy.cardinalities, len(noisy.cardinalities)
    singles = [(j,) for j in range(d)]
    chosen = list(start)
    model = fit_model(noisy, [*singles, *chosen])
    for _ in range(_MOST_ROUNDS):
        within = {*chosen, *absent}
        missed = unexplained(
            noisy,
            model,
            [
                pair
                for pair in itertools.combinations(range(d), 2)
                if pair not in within and fits(pair, levels, max_cells)
            ],
            level=_after(len(chosen), level),
        )
        if chosen:
            added = _apart(missed, levels, chosen, max_cells)
        else:
            added = _forest(missed, d)
        if not added:
            break
        chosen += added
        model = fit_model(noisy, [*singles, *chosen], start=model.theta)
    return tuple(chosen), model


def fits(pair: Pair, levels: Columns, max_cells: float) -> bool:
    """Whether a model takes the pair: what follows from its own table is dense in the square of its
    cells.
    """
    return math.prod(levels[j] for j in pair) <= _OWN * max_cells


def _after(n_chosen: int, level: Level) -> Level:
    """The level where so many are found besides those that were chosen before."""
    return lambda n_found: level(n_chosen + n_found)


def neighbouring_triples(pairs: Sequence[Pair]) -> list[Columns]:
    """Every column with two of its partners."""
    partners: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in pairs:
        partners[a].append(b)
        partners[b].append(a)
    return sorted(
        {
            tuple(sorted((column, *two)))
            for column, found in partners.items()
            for two in itertools.combinations(found, 2)
        }
    )


def collider_pairs(
    pairs: Sequence[Pair], cardinalities: Columns, *, max_cells: float = math.inf
) -> list[Pair]:
    """The pairs of columns that share a partner and are none of the pairs themselves.

    Whether the partner is their common effect is seen in their own table: it is dependent if the
    partner is a cause or a mediator, independent if not.

    Args:
        pairs: of the model.
        cardinalities: the number of levels of each column.
        max_cells: pairs that would make a clique's table larger are left out.
    """
    wanted = {
        pair for triple in neighbouring_triples(pairs) for pair in itertools.combinations(triple, 2)
    }
    return _within(sorted(wanted - set(pairs)), cardinalities, list(pairs), max_cells)


class ExpectedTables:
    """The tables that a model expects of n rows.

    Args:
        model: the model.
        n_samples: n.
    """

    def __init__(self, model: LogLinearModel, n_samples: int) -> None:
        self._tree, self._margins, self._n = model.tree, model.margins, n_samples
        self._pairs = model.tree.pair_margins(model.margins)
        self._ends = np.cumsum([0, *model.tree.cardinalities])

    def table(self, columns: Columns) -> np.ndarray:
        """Of a pair, or of more columns that lie in one clique; float64, flat."""
        if len(columns) == 2:
            i, j = columns
            block = self._pairs[
                self._ends[i] : self._ends[i + 1], self._ends[j] : self._ends[j + 1]
            ]
        else:
            home = self._tree.home(columns)
            block = self._margins[home].sum(axis=self._tree.others(home, columns))
        found: np.ndarray = self._n * block.ravel()
        return found

    def interaction(self, columns: Columns) -> np.ndarray:
        """R_S that the model expects, float64, flat."""
        kind = [self._tree.cardinalities[j] for j in columns]
        return interaction(self.table(columns).reshape(kind)).ravel()


class _Directions:
    """How the interactions that a model expects follow those that it was fitted to.

    In first order, more of y_T by e moves the expected phi_S by B_S e, with B_S the regression of
    phi_S on all phi_T.  It is taken over rows drawn from the model, some cells of which are drawn
    anew from all levels alike: so a level that the model has never is told from one that follows
    from others, and a fit at the edge of what is possible moves as one inside.  Where the terms
    have more entries than a regression over so many rows can tell apart, the largest pairs are left
    out.

    Args:
        noisy: what was released.
        model: fitted to it.
    """

    def __init__(self, noisy: NoisyInteractions, model: LogLinearModel) -> None:
        from scipy import linalg  # slow to load

        levels = noisy.cardinalities
        self._terms, room = [], _MOST_ENTRIES
        for term in sorted(model.theta, key=lambda t: (len(t), model.theta[t].size)):
            if model.theta[term].size <= room:
                self._terms.append(term)
                room -= model.theta[term].size
        self._n_rows = _FEWER_ROWS if _MOST_ENTRIES - room > _MANY_ENTRIES else _ROWS
        generator = np.random.default_rng(1)
        rows = model.sample(self._n_rows, seed=1)
        blurred = np.where(
            generator.random(rows.shape) < _BLUR, generator.integers(0, levels, rows.shape), rows
        )
        self._levels, self._rows = levels, blurred
        self._columns = [
            contrast_basis(k)[column] for k, column in zip(levels, blurred.T, strict=True)
        ]
        self._of_terms = self._features(self._terms)
        self._of_terms -= self._of_terms.mean(axis=0)
        width = self._of_terms.shape[1]
        products = np.zeros((width, width))
        if width:  # BLAS takes no empty matrix
            products = linalg.blas.dsyrk(1.0, self._of_terms.T)  # the upper half is enough
        own = np.diagonal(products)
        # an entry that no drawn row has says nothing, and must not stop the others
        np.fill_diagonal(products, np.where(own > 0, own * (1 + 1 / self._n_rows), 1.0))
        self._factor = linalg.cho_factor(products)
        self._variances = np.repeat(
            [noisy.variances[t] for t in self._terms], [model.theta[t].size for t in self._terms]
        )
        expected = ExpectedTables(model, noisy.n_samples)
        misfit = [noisy.values[t].ravel() - expected.interaction(t) for t in self._terms]
        self._pull = self._of_terms @ self._regression(np.concatenate([np.zeros(0), *misfit]))

    def _features(self, sets: Sequence[Columns]) -> np.ndarray:
        """phi_S of every row, float64 (rows, entries of all sets)."""
        parts = [np.zeros((self._n_rows, 0))]
        for s in sets:
            phi = self._columns[s[0]]
            for j in s[1:]:
                phi = (phi[:, :, None] * self._columns[j][:, None, :]).reshape(self._n_rows, -1)
            parts.append(phi)
        return np.concatenate(parts, axis=1)

    def _regression(self, covariances: np.ndarray) -> np.ndarray:
        from scipy import linalg  # slow to load

        found: np.ndarray = (
            linalg.cho_solve(self._factor, covariances) if len(covariances) else covariances
        )
        return found

    @cached_property
    def _pulled_pairs(self) -> np.ndarray:
        """The sums over rows of all products of two columns' features with the pull."""
        columns = np.concatenate(self._columns, axis=1)
        sums: np.ndarray = columns.T @ (columns * self._pull[:, None])
        return sums

    def misfit(self, columns: Columns) -> np.ndarray:
        """What the expected interaction would be more if those of the model's terms were the
        released ones, float64, flat.
        """
        ends = np.cumsum([0, *(phi.shape[1] for phi in self._columns)])
        if len(columns) == 2 and ends[-1] > _MOST_AT_ONCE:
            i, j = columns
            block: np.ndarray = self._columns[i].T @ (self._columns[j] * self._pull[:, None])
            return block.ravel()
        if len(columns) == 2:
            i, j = columns
            return self._pulled_pairs[ends[i] : ends[i + 1], ends[j] : ends[j + 1]].ravel()
        found: np.ndarray = self._features([columns]).T @ self._pull
        return found

    def noise(self, columns: Columns) -> np.ndarray:
        """The covariance that the terms' noise gives to the expected interaction, float64 (entries,
        entries).
        """
        from scipy import sparse  # slow to load

        shape = [self._levels[j] for j in columns]
        size = math.prod(k - 1 for k in shape)
        if not self._variances.any():
            return np.zeros((size, size))
        # Rows of one cell have one phi_S: their sum, cell by cell, and then the contrasts.
        cells = np.ravel_multi_index([self._rows[:, j] for j in columns], shape)
        members = sparse.csr_array(
            (np.ones(self._n_rows), (cells, np.arange(self._n_rows))),
            shape=(math.prod(shape), self._n_rows),
        )
        sums = (members @ self._of_terms).reshape(*shape, -1)
        for axis, k in enumerate(shape):
            sums = np.moveaxis(np.tensordot(sums, contrast_basis(k), (axis, 0)), -1, axis)
        slopes = self._regression(sums.reshape(size, -1).T)
        spread: np.ndarray = (slopes.T * self._variances) @ slopes
        return spread


def unexplained(
    noisy: NoisyInteractions, model: LogLinearModel, sets: Sequence[_Set], *, level: Level
) -> list[_Set]:
    """The sets whose interaction the model misses, the clearest first.

    Args:
        noisy: what was released, the sets among it.
        model: fitted to some of it.
        sets: that are none of the model's terms.
        level: at which each counts; of all numbers of sets with as many p-values below their level
            the largest is taken (Benjamini, Hochberg 1995).
    """
    with one_blas_thread():  # many short products
        return _unexplained(noisy, model, sets, level)


def _unexplained(
    noisy: NoisyInteractions, model: LogLinearModel, sets: Sequence[_Set], level: Level
) -> list[_Set]:
    levels = noisy.cardinalities
    expected, directions = ExpectedTables(model, noisy.n_samples), _Directions(noisy, model)
    missed = {
        s: noisy.values[s].ravel() - expected.interaction(s) - directions.misfit(s)
        for s in sets
        if min(levels[j] for j in s) > 1
    }

    def below(statistics: Mapping[_Set, float]) -> dict[_Set, float]:
        sizes = np.array([missed[s].size for s in statistics])
        log_p = tails.chi_square_log_sf(np.array([*statistics.values()]), sizes)
        logs = dict(zip(statistics, log_p.tolist(), strict=True))
        ranked = sorted(logs, key=lambda s: (logs[s], s))
        n_found = len(ranked)
        while n_found and not logs[ranked[n_found - 1]] < math.log(level(n_found)):
            n_found -= 1
        return {s: logs[s] for s in ranked[:n_found]}

    # Under a part of the variance p-values are smaller yet: most sets end there.
    rest = below({s: float(m @ m) / max(noisy.variances[s], 1e-9) for s, m in missed.items()})
    laws = {}
    for s in rest:
        laws[s] = _scatter(expected.table(s), [levels[j] for j in s])
        laws[s][np.diag_indices_from(laws[s])] += noisy.variances[s]
    rest = below({s: _squared_length(missed[s], laws[s]) for s in rest})
    return list(below({s: _squared_length(missed[s], laws[s] + directions.noise(s)) for s in rest}))


def _squared_length(x: np.ndarray, law: np.ndarray) -> float:
    """x' law^-1 x."""
    from scipy import linalg  # slow to load

    part = linalg.solve_triangular(np.linalg.cholesky(law), x, lower=True)
    return float(part @ part)


def _scatter(cells: np.ndarray, kind: Sequence[int]) -> np.ndarray:
    """The covariance that sampling gives to a set's interaction where the single columns' are
    known, float64 (entries, entries).

    Args:
        cells: the table that is expected; no cell is certain: each counts half a row more, and so
            the covariance is at least half of the identity.
        kind: the number of levels of each column, 2 or more.
    """
    m, size = len(kind), math.prod(k - 1 for k in kind)
    # Of each column a constant and the contrasts.  The sums of all their products are made one
    # column after the other; at once, over all cells, they would be (cells)^3 operations.
    sums = (cells + 0.5).reshape(kind)
    for k in kind:
        basis = np.column_stack([np.ones(k), contrast_basis(k)])
        products = basis[:, :, None] * basis[:, None, :]
        sums = np.tensordot(sums, products.reshape(k, -1), (0, 0))
    sums = sums.reshape(np.repeat(kind, 2)).transpose([*range(0, 2 * m, 2), *range(1, 2 * m, 2)])
    every = (slice(1, None),) * m
    # the constant, and the contrasts of each column alone
    known = [tuple(every[i] if i == j else 0 for i in range(m)) for j in range(-1, m)]
    across = [sums[every + one].reshape(size, -1) for one in known]
    widths = [part.shape[1] for part in across]
    among = np.block(
        [
            [
                sums[one + other].reshape(row, column)
                for other, column in zip(known, widths, strict=True)
            ]
            for one, row in zip(known, widths, strict=True)
        ]
    )
    beside = np.concatenate(across, axis=1)
    scatter: np.ndarray = sums[every + every].reshape(size, size)
    scatter -= beside @ np.linalg.solve(among, beside.T)
    return scatter


def unexplained_triples(
    noisy: NoisyInteractions, terms: Sequence[Columns], *, level: Level
) -> list[Columns]:
    """The measured triples whose interaction a model of the terms misses, the clearest first, as
    far as each lies in one of its cliques; all of those where there is no noise, for then the score
    weighs what rows say of them.
    """
    triples = [s for s in noisy.values if len(s) == 3]
    if not triples:
        return []
    model = fit_model(noisy, terms)
    inside: list[Columns] = [
        s for s in triples if any(set(s) <= set(clique) for clique in model.tree.cliques)
    ]
    if not any(noisy.variances[s] for s in inside):
        return inside
    return unexplained(noisy, model, inside, level=level)


def _forest(pairs: Sequence[Pair], n_columns: int) -> list[Pair]:
    """The pairs, taken in their order, that close no circle."""
    joined = nx.utils.UnionFind(range(n_columns))
    kept = []
    for a, b in pairs:
        if joined[a] != joined[b]:
            joined.union(a, b)
            kept.append((a, b))
    return kept


def _apart(
    pairs: Sequence[Pair], levels: Columns, chosen: Sequence[Pair], max_cells: float
) -> list[Pair]:
    """Pairs without a column in common, taken in their order.

    One that a clearer pair might explain, which has to wait, waits with it: (a, b) for (a, c) where
    c and b are joined.
    """
    joined = {frozenset(pair) for pair in chosen}
    used: set[int] = set()
    kept: list[Pair] = []
    waiting: list[Pair] = []
    for pair in pairs:
        rivals = (frozenset(pair) ^ frozenset(other) for other in waiting)
        if not (used.isdisjoint(pair) and joined.isdisjoint(rivals)):
            waiting.append(pair)
        elif _within([pair], levels, [*chosen, *kept], max_cells):
            kept.append(pair)
            used.update(pair)
    return kept


def _within(
    pairs: Sequence[Pair], levels: Columns, chosen: list[Pair], max_cells: float
) -> list[Pair]:
    """The pairs, taken in their order, with which no clique's table grows beyond the limit.

    They are tried together, and by halves where together they are too many.
    """

    def largest(sets: Sequence[Pair]) -> int:
        return max(
            math.prod(levels[j] for j in clique) for clique in elimination_cliques(levels, sets)
        )

    kept: list[Pair] = []

    def take(some: Sequence[Pair]) -> None:
        if not some:
            return
        own = max(levels[a] * levels[b] for a, b in some)
        if largest([*chosen, *kept, *some]) <= max(max_cells, own):
            kept.extend(some)
        elif len(some) > 1:
            take(some[: len(some) // 2])
            take(some[len(some) // 2 :])

    if math.isinf(max_cells):
        return list(pairs)
    take(pairs)
    return kept
