"""Private-PGM's estimate of a distribution from noisy marginals (McKenna, Sheldon, Miklau 2019).

The estimate is the graphical model that is closest to the measured tables, in squares over their
variances.  :func:`by_mbi` has the package ``mbi`` find it, whose author wrote the paper.  mbi
compiles anew whenever a table is added, seconds each time, and AIM adds tens of them.
:func:`estimate` finds the same model in numpy, by mirror descent on the potentials, and is what the
rounds of AIM use; a test holds the two together.  :func:`rows_of` draws rows of mbi's model by mbi,
:func:`drawn` of ours in numpy, by the same rule: as even within every group as whole rows allow.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax
import numpy as np

from benchmarks import experiment as ex

#: columns by number, ascending
Clique = tuple[int, ...]

_GROWTH, _SHRINKAGE, _DECREASE = 1.2, 0.5, 0.5


def counts(codes: np.ndarray, cards: Sequence[int], clique: Clique) -> np.ndarray:
    """The table of some columns: how many rows have each combination."""
    shape = tuple(cards[column] for column in clique)
    if not clique:
        return np.array(float(len(codes)))
    places = np.ravel_multi_index(tuple(codes[:, column] for column in clique), shape)
    return np.bincount(places, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


# ---- what was measured


class Measured:
    """Noisy tables.  A table that is measured again is averaged, each by its precision, which
    leaves the estimate as it is.
    """

    def __init__(self) -> None:
        self.tables: dict[Clique, tuple[np.ndarray, float]] = {}

    def add(self, clique: Clique, table: np.ndarray, sigma: float) -> None:
        """Adds a table with noise of standard deviation ``sigma``; exact ones weigh as of 1."""
        precision = 1.0 if sigma == 0 else sigma**-2
        if clique in self.tables:
            known, other = self.tables[clique]
            table = (known * other + table * precision) / (other + precision)
            precision += other
        self.tables[clique] = table, precision

    def total(self) -> float:
        """The number of rows by the tables: every sum by its precision."""
        sums = [(float(t.sum()), p / t.size) for t, p in self.tables.values()]
        return max(1.0, sum(s * p for s, p in sums) / sum(p for _, p in sums))


# ---- junction trees


def junction_cliques(cards: Sequence[int], cliques: Sequence[Clique]) -> list[Clique]:
    """The maximal cliques of a triangulation: always the column goes that leaves the smallest
    table.
    """
    logs = np.log(cards).tolist()
    near = [{column} for column in range(len(cards))]
    for clique in cliques:
        for column in clique:
            near[column].update(clique)
    left = dict.fromkeys(range(len(cards)))
    cost = [sum(logs[other] for other in each) for each in near]
    found: list[set[int]] = []
    while left:
        column = min(left, key=cost.__getitem__)
        del left[column]
        clique_of = near[column]
        if not any(clique_of <= other for other in found):
            found.append(set(clique_of))
        for other in clique_of - {column}:
            near[other] |= clique_of
            near[other].discard(column)
            cost[other] = sum(logs[each] for each in near[other])
    return sorted(tuple(sorted(clique)) for clique in found)


def model_cells(cards: Sequence[int], cliques: Sequence[Clique]) -> int:
    """Cells of the tables of a junction tree."""
    return sum(math.prod(cards[c] for c in clique) for clique in junction_cliques(cards, cliques))


@dataclass(frozen=True)
class _Edge:
    """A clique and its parent; axes to sum out on either side, and the separator's shape there."""

    child: int
    parent: int
    child_axes: tuple[int, ...]
    parent_axes: tuple[int, ...]
    child_shape: tuple[int, ...]
    parent_shape: tuple[int, ...]

    def turned(self) -> _Edge:
        """With the ends exchanged."""
        return _Edge(
            self.parent,
            self.child,
            self.parent_axes,
            self.child_axes,
            self.parent_shape,
            self.child_shape,
        )


def _axes(clique: Clique, kept: Sequence[int]) -> tuple[int, ...]:
    """Axes of the columns that are not kept, from the end, so that axes in front do no harm."""
    return tuple(at - len(clique) for at, column in enumerate(clique) if column not in kept)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=below > 0)


class JunctionTree:
    """Exact inference; tables have the axes of their cliques last, and may have others in front."""

    def __init__(self, cards: Sequence[int], cliques: Sequence[Clique]) -> None:
        self.cards = tuple(cards)
        self.cliques = junction_cliques(cards, cliques)
        self.sizes = [math.prod(cards[c] for c in clique) for clique in self.cliques]
        self._near: list[list[_Edge]] = [[] for _ in self.cliques]
        part = list(range(len(self.cliques)))
        pairs = sorted(
            combinations(range(len(self.cliques)), 2),
            key=lambda pair: -len({*self.cliques[pair[0]]} & {*self.cliques[pair[1]]}),
        )
        for a, b in pairs:
            if part[a] != part[b]:
                edge = self._edge(a, b)
                self._near[b].append(edge)
                self._near[a].append(edge.turned())
                part = [part[a] if each == part[b] else each for each in part]
        self._down = list(self._outwards(0))
        self.home_of_column = [self.home((column,)) for column in range(len(cards))]
        self._routes: dict[tuple[int, int], list[_Edge]] = {}

    def _edge(self, child: int, parent: int) -> _Edge:
        a, b = self.cliques[child], self.cliques[parent]
        shared = set(a) & set(b)
        shape_a, shape_b = (
            tuple(self.cards[c] if c in shared else 1 for c in clique) for clique in (a, b)
        )
        return _Edge(child, parent, _axes(a, shared), _axes(b, shared), shape_a, shape_b)

    def _outwards(self, start: int) -> Iterator[_Edge]:
        """Edges from a clique to the rest, the nearer first."""
        waiting, seen = [start], {start}
        for clique in waiting:
            for edge in self._near[clique]:
                if edge.child not in seen:
                    seen.add(edge.child)
                    waiting.append(edge.child)
                    yield edge

    def order(self) -> list[int]:
        """The cliques, each after its parent."""
        return [0, *(edge.child for edge in self._down)]

    def home(self, clique: Clique) -> int:
        """The smallest clique of the tree that holds the columns."""
        wanted = set(clique)
        holding = [at for at, each in enumerate(self.cliques) if wanted <= set(each)]
        return min(holding, key=self.sizes.__getitem__)

    def shape(self, home: int, clique: Clique) -> tuple[int, ...]:
        """The shape of a table of ``clique`` for broadcasting in its home."""
        return tuple(self.cards[c] if c in clique else 1 for c in self.cliques[home])

    def full_shape(self, at: int) -> tuple[int, ...]:
        """The shape of a clique's table."""
        return tuple(self.cards[c] for c in self.cliques[at])

    def project(self, beliefs: Sequence[np.ndarray], home: int, clique: Clique) -> np.ndarray:
        """A marginal inside a clique."""
        return beliefs[home].sum(_axes(self.cliques[home], clique))

    def calibrate(self, log_potentials: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The marginals of all cliques, as probabilities."""
        found = [np.exp(each - each.max()) for each in log_potentials]
        messages = []
        for edge in reversed(self._down):
            message = found[edge.child].sum(edge.child_axes)
            message = message / message.sum()
            found[edge.parent] = found[edge.parent] * message.reshape(edge.parent_shape)
            messages.append(message)
        found[0] /= found[0].sum()
        for edge, message in zip(self._down, reversed(messages), strict=True):
            share = _ratio(found[edge.parent].sum(edge.parent_axes), message)
            found[edge.child] = found[edge.child] * share.reshape(edge.child_shape)
            found[edge.child] /= found[edge.child].sum()
        return found

    def _needed(self, start: int, least: int) -> list[_Edge]:
        """The edges from a clique to the homes of the columns from ``least`` on."""
        if (start, least) not in self._routes:
            wanted, found = set(self.home_of_column[least:]), []
            for edge in reversed(list(self._outwards(start))):
                if edge.child in wanted:
                    wanted.add(edge.parent)
                    found.append(edge)
            self._routes[start, least] = found[::-1]
        return self._routes[start, least]

    def spread(self, beliefs: Sequence[np.ndarray], column: int, lead: int) -> list[np.ndarray]:
        """The marginals of cliques together with one more column, the last of ``lead`` + 1 axes in
        front: of those on the way to later columns.
        """
        start = self.home_of_column[column]
        k, at = self.cards[column], self.cliques[start].index(column)
        shape = [1] * (lead + 1 + len(self.cliques[start]))
        shape[lead] = shape[lead + 1 + at] = k
        found: list[Any] = [None] * len(self.cliques)
        found[start] = np.expand_dims(beliefs[start], lead) * np.eye(k).reshape(shape)
        for edge in self._needed(start, column + 1):
            known = found[edge.parent].sum(edge.parent_axes)
            below = np.expand_dims(beliefs[edge.parent].sum(edge.parent_axes), lead)
            share = _ratio(known, below)
            share = share.reshape(share.shape[: lead + 1] + edge.child_shape)
            found[edge.child] = np.expand_dims(beliefs[edge.child], lead) * share
        return found

    def marginals(self, beliefs: Sequence[np.ndarray], size: int) -> dict[Clique, np.ndarray]:
        """The tables of all sets of up to ``size`` columns, as probabilities."""
        found: dict[Clique, np.ndarray] = {}

        def deeper(known: Clique, spreads: Sequence[np.ndarray]) -> None:
            for column in range(known[-1] + 1 if known else 0, len(self.cards)):
                clique = (*known, column)
                found[clique] = self.project(spreads, self.home_of_column[column], (column,))
                if len(clique) < size:
                    deeper(clique, self.spread(spreads, column, len(known)))

        deeper((), beliefs)
        return found


# ---- the estimate


@dataclass(frozen=True)
class Model:
    """An estimate.  potentials: of the measured cliques.  beliefs: the tree's tables, as
    probabilities.
    """

    tree: JunctionTree
    potentials: Mapping[Clique, np.ndarray]
    beliefs: Sequence[np.ndarray]
    total: float
    loss: float

    def table(self, clique: Clique) -> np.ndarray:
        """The expected counts of columns that one clique of the tree holds."""
        return self.total * self.tree.project(self.beliefs, self.tree.home(clique), clique)


def estimate(
    cards: Sequence[int],
    measured: Measured,
    total: float,
    *,
    start: Mapping[Clique, np.ndarray] | None = None,
    steps: int = 200,
    tolerance: float = 1e-5,
    check: Callable[[], None] = lambda: None,
) -> Model:
    """Mirror descent with a line search, from the potentials of ``start``.  Stops after ``steps``,
    or when ten steps gain less than the share ``tolerance`` of the loss, or of 1.
    """
    cliques = list(measured.tables)
    tree = JunctionTree(cards, cliques)
    homes = [tree.home(clique) for clique in cliques]
    shapes = [tree.shape(home, clique) for home, clique in zip(homes, cliques, strict=True)]
    axes = [_axes(tree.cliques[home], clique) for home, clique in zip(homes, cliques, strict=True)]
    wanted = [table for table, _ in measured.tables.values()]
    precisions = [precision for _, precision in measured.tables.values()]
    known = start or {}
    theta = [
        known.get(clique, np.zeros([cards[c] for c in clique])).astype(np.float64)
        for clique in cliques
    ]

    def look(at: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray], float, list]:
        logs = [np.zeros(tree.full_shape(place)) for place in range(len(tree.cliques))]
        for each, home, shape in zip(at, homes, shapes, strict=True):
            logs[home] += each.reshape(shape)
        beliefs = tree.calibrate(logs)
        tables = [total * beliefs[h].sum(a) for h, a in zip(homes, axes, strict=True)]
        gaps = [table - other for table, other in zip(tables, wanted, strict=True)]
        slopes = [p * gap for p, gap in zip(precisions, gaps, strict=True)]
        loss = 0.5 * sum(float((s * g).sum()) for s, g in zip(slopes, gaps, strict=True))
        return beliefs, tables, loss, slopes

    beliefs, tables, loss, slopes = look(theta)
    # A step in this unit changes the log of a probability by about one at most.
    rate = 1.0 / max(1e-300, max(float(np.abs(slope).max()) for slope in slopes))
    last = loss
    for step in range(1, steps + 1):
        check()
        while True:
            moved = [t - rate * slope for t, slope in zip(theta, slopes, strict=True)]
            new = look(moved)
            gain = sum(
                float((slope * (before - after)).sum())
                for slope, before, after in zip(slopes, tables, new[1], strict=True)
            )
            if loss - new[2] >= _DECREASE * gain or rate < 1e-300:
                break
            rate *= _SHRINKAGE
        if not new[2] <= loss:
            break
        theta, (beliefs, tables, loss, slopes) = moved, new
        rate *= _GROWTH
        if step % 10 == 0:
            if last - loss <= tolerance * max(loss, 1.0):
                break
            last = loss
    return Model(tree, dict(zip(cliques, theta, strict=True)), beliefs, total, loss)


# ---- rows of a model


def conditional_draws(table: np.ndarray, given: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A value of the last axis for each row of ``given``, the values of the others, at a uniform
    number; from even shares where the table is empty.
    """
    k = table.shape[-1]
    flat = table.reshape(-1, k)
    sums = flat.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, flat / np.where(sums > 0, sums, 1.0), 1.0 / k)
    below = np.cumsum(shares, axis=1)[groups(given, table.shape[:-1])]
    found = (uniform[:, None] >= below).sum(axis=1)
    return np.minimum(found, k - 1).astype(np.int32)


def groups(rows: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The number of each row's combination."""
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=int)
    return np.ravel_multi_index(tuple(rows.T), tuple(shape))


def even(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform numbers, evenly spread among the rows of each group, in random order."""
    order = rng.permutation(len(numbers))
    order = order[np.argsort(numbers[order], kind="stable")]
    sizes = np.bincount(numbers)
    ranks = np.empty(len(numbers))
    ranks[order] = np.arange(len(numbers)) - (np.cumsum(sizes) - sizes)[numbers[order]]
    return (ranks + rng.random(len(numbers))) / sizes[numbers]


def drawn(model: Model, n: int, rng: np.random.Generator) -> np.ndarray:
    """Synthetic rows, int32 (n, columns): clique after clique, column after column."""
    tree = model.tree
    rows = np.zeros((n, len(tree.cards)), dtype=np.int32)
    done: list[int] = []
    for at in tree.order():
        clique = tree.cliques[at]
        known = [column for column in clique if column in done]
        for column in (each for each in clique if each not in known):
            inside = tuple(sorted((*known, column)))
            table = np.moveaxis(tree.project(model.beliefs, at, inside), inside.index(column), -1)
            given = rows[:, sorted(known)]
            uniform = even(groups(given, table.shape[:-1]), rng)
            rows[:, column] = conditional_draws(table, given, uniform)
            known.append(column)
            done.append(column)
    return rows


# ---- mbi


def load_mbi() -> Any:
    """The package; raises LeftOut where it is not installed.  It warns of settings that are made
    around its calls here, or are no concern of it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mbi
    except ImportError as error:
        raise ex.LeftOut("the package mbi is not installed: pip install 'jaxcd[peers]'") from error
    return mbi


def by_mbi(
    cards: Sequence[int],
    measured: Measured,
    total: float,
    *,
    start: Mapping[Clique, np.ndarray] | None = None,
    steps: int = 1000,
) -> Any:
    """mbi's model by its mirror descent, in double precision, from the potentials of ``start``."""
    mbi = load_mbi()
    domain = mbi.Domain(range(len(cards)), cards)
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = [
            mbi.LinearMeasurement(table.ravel(), clique, precision**-0.5)
            for clique, (table, precision) in measured.tables.items()
        ]
        warm = None
        if start is not None:
            factors = {
                clique: mbi.Factor(domain.project(clique), jax.numpy.asarray(start[clique]))
                for clique in measured.tables
            }
            warm = mbi.CliqueVector(domain, tuple(factors), factors)
        return mbi.estimation.MirrorDescent().estimate(
            domain, tables, known_total=float(total), iters=steps, warm_start=warm
        )


def rows_of(model: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    """Synthetic rows of mbi's model, by its randomised rounding, int32 (n, columns).

    mbi draws from numpy's global state, which is left as it was found.
    """
    state = np.random.get_state()
    np.random.seed(rng.integers(2**32, dtype=np.uint64))
    try:
        with jax.enable_x64(True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.synthetic_data(rows=n)
    finally:
        np.random.set_state(state)
    columns = [np.asarray(found.data[c], dtype=np.int32) for c in found.domain.attributes]
    return np.stack(columns, axis=1)
