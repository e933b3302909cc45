"""Every MAG without selection on n nodes up to names, its class, and the adjustment sets of the
DAGs that it stands for: by definition, for many graphs at once.

A graph is two arrays: ``arcs[g, i, j]`` for i -> j, ``both[g, i, j]`` for i <-> j.  A DAG with
hidden nodes is the same with ``both`` for each hidden common cause of two nodes, beside an arc or
not.

Nothing here uses the library.  Source: Richardson and Spirtes 2002 (ancestral, maximal;
theorem 3.18: m-separation is separation in the augmented graph of the ancestors).
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

NONE, CIRCLE, ARROW, TAIL = range(4)


@dataclass(frozen=True)
class Classes:
    """All MAGs up to names, and all classes up to names.

    Args:
        marks: of the MAGs, int8 (m, n, n).
        valid: whether a set is valid in all DAGs of the MAG, bool (m, pairs, sets), in the order of
            :func:`questions`.
        pags: int8 (k, n, n).
        valid_in_all: of each PAG, in all DAGs of all its MAGs, bool (k, pairs, sets).
        sizes: the number of MAGs of each class.
        n_dags: how many DAGs were gone through.
    """

    marks: np.ndarray
    valid: np.ndarray
    pags: np.ndarray
    valid_in_all: np.ndarray
    sizes: np.ndarray
    n_dags: int


@functools.cache
def questions(n: int) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """(x, y, set) for all ordered pairs and all sets of others."""
    return tuple(
        (x, y, given)
        for x, y in itertools.permutations(range(n), 2)
        for size in range(n - 1)
        for given in itertools.combinations([v for v in range(n) if v not in (x, y)], size)
    )


def closed(arcs: np.ndarray) -> np.ndarray:
    """Reachability by one step or more."""
    found = arcs.copy()
    for k in range(arcs.shape[-1]):
        found |= found[:, :, k, None] & found[:, k, None, :]
    return found


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(np.float32) @ b.astype(np.float32)) > 0


def separated(
    arcs: np.ndarray, both: np.ndarray, asked: list[tuple[int, int, tuple[int, ...]]]
) -> np.ndarray:
    """Whether each graph separates x and y by each set, bool (m, questions)."""
    n = arcs.shape[-1]
    same = np.eye(n, dtype=bool)
    above = closed(arcs) | same
    found = np.empty((len(arcs), len(asked)), dtype=bool)
    for k, (x, y, given) in enumerate(asked):
        kept = above[:, :, [x, y, *given]].any(axis=2)
        inside = kept[:, :, None] & kept[:, None, :]
        own, linked = arcs & inside, both & inside
        into = own | linked
        met = product(product(into, closed(linked) | same), into.swapaxes(1, 2))
        near = met | own | own.swapaxes(1, 2) | linked
        near[:, list(given), :] = near[:, :, list(given)] = False
        found[:, k] = ~closed(near)[:, x, y]
    return found


def all_ancestral(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Every ancestral graph without undirected edges, up to names."""
    pairs = list(itertools.combinations(range(n), 2))
    place = {pair: k for k, pair in enumerate(pairs)}
    kinds = np.indices((4,) * len(pairs), dtype=np.uint8).reshape(len(pairs), -1)
    arcs, both = graphs_of(kinds, n)
    above = closed(arcs)
    good = ~above.diagonal(axis1=1, axis2=2).any(axis=1) & ~(both & above).any(axis=(1, 2))
    kinds, arcs, both = kinds[:, good], arcs[good], both[good]
    powers = 4 ** np.arange(len(pairs))
    own, turned = powers @ kinds, np.array([0, 2, 1, 3], dtype=np.uint8)
    least = own.copy()
    for order in itertools.permutations(range(n)):
        code = np.zeros_like(own)
        for (i, j), kind in zip(pairs, kinds, strict=True):
            a, b = order[i], order[j]
            code += powers[place[min(a, b), max(a, b)]] * (kind if a < b else turned[kind])
        least = np.minimum(least, code)
    return arcs[own == least], both[own == least]


def graphs_of(kinds: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    arcs, both = np.zeros((2, kinds.shape[1], n, n), dtype=bool)
    for (i, j), kind in zip(itertools.combinations(range(n), 2), kinds, strict=True):
        arcs[:, i, j], arcs[:, j, i] = kind == 1, kind == 2
        both[:, i, j] = both[:, j, i] = kind == 3
    return arcs, both


def dags_of(arcs: np.ndarray, both: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The DAGs with hidden causes that have the MAG, as (graph, links): a hidden cause for each
    <->, and one or none beside each arc.  More hidden causes separate less, so a set of arcs is
    tried where each of them can have one.
    """
    m, n = arcs.shape[:2]
    apart = ~(arcs | arcs.swapaxes(1, 2) | both)
    asked = [q for q in questions(n) if q[0] < q[1]]

    def keeps(graphs: np.ndarray, links: np.ndarray) -> np.ndarray:
        """Whether pairs without an edge are separated by some set."""
        free = separated(arcs[graphs], links, asked)
        good = np.ones(len(graphs), dtype=bool)
        for x, y in itertools.combinations(range(n), 2):
            some = free[:, [k for k, q in enumerate(asked) if q[:2] == (x, y)]].any(axis=1)
            good &= some | ~apart[graphs, x, y]
        return good

    graph, i, j = np.nonzero(arcs)
    links = both[graph]
    links[np.arange(len(graph)), i, j] = links[np.arange(len(graph)), j, i] = True
    loose = [[] for _ in range(m)]
    for g, a, b, good in zip(graph, i, j, keeps(graph, links), strict=True):
        if good:
            loose[g].append((a, b))
    owners, chosen = [], []
    for g, own in enumerate(loose):
        for some in itertools.chain.from_iterable(
            itertools.combinations(own, size) for size in range(len(own) + 1)
        ):
            owners.append(g)
            chosen.append(some)
    graphs, links = np.array(owners), both[owners]
    for k, some in enumerate(chosen):
        for a, b in some:
            links[k, a, b] = links[k, b, a] = True
    sure = np.array([len(some) < 2 for some in chosen]) | ~apart_pairs(apart)[graphs]
    good = sure.copy()
    good[~sure] = keeps(graphs[~sure], links[~sure])
    return graphs[good], links[good]


def apart_pairs(apart: np.ndarray) -> np.ndarray:
    return apart.sum(axis=(1, 2)) > apart.shape[1]  # the diagonal is apart, too


def valid_sets(arcs: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Of each DAG, whether the regression of y on x and the set has the total effect as its
    coefficient, in a linear model with random weights; in the order of :func:`questions`.
    """
    m, n = arcs.shape[:2]
    rng = np.random.default_rng(0)
    total = np.linalg.inv(np.eye(n) - arcs * rng.uniform(0.3, 1.0, (m, n, n)))
    errors = np.zeros((m, n, n)) + np.eye(n)
    for i, j in itertools.combinations(range(n), 2):
        a, b = rng.uniform(0.3, 1.0, (2, m)) * links[:, i, j]
        errors[:, i, i] += a**2
        errors[:, j, j] += b**2
        errors[:, i, j] += a * b
        errors[:, j, i] += a * b
    covariance = total.swapaxes(1, 2) @ errors @ total
    found = np.empty((m, len(questions(n))), dtype=bool)
    for k, (x, y, given) in enumerate(questions(n)):
        left = [x, *given]
        slopes = np.linalg.solve(covariance[:, left][:, :, left], covariance[:, left][:, :, [y]])
        found[:, k] = np.abs(slopes[:, 0, 0] - total[:, x, y]) < 1e-9
    return found


def renamed(n: int, order: tuple[int, ...]) -> np.ndarray:
    """The place of each question after its names are changed."""
    place = {question: k for k, question in enumerate(questions(n))}
    return np.array(
        [
            place[order[x], order[y], tuple(sorted(order[v] for v in given))]
            for x, y, given in questions(n)
        ]
    )


@functools.cache
def every_mag(n: int) -> Classes:
    arcs, both = all_ancestral(n)
    free = separated(arcs, both, [q for q in questions(n) if q[0] < q[1]])
    asked = [q for q in questions(n) if q[0] < q[1]]
    maximal = np.ones(len(arcs), dtype=bool)
    for x, y in itertools.combinations(range(n), 2):
        some = free[:, [k for k, q in enumerate(asked) if q[:2] == (x, y)]].any(axis=1)
        maximal &= some | arcs[:, x, y] | arcs[:, y, x] | both[:, x, y]
    arcs, both, free = arcs[maximal], both[maximal], free[maximal]
    marks = np.where(both | arcs, ARROW, np.where(arcs.swapaxes(1, 2), TAIL, NONE)).astype(np.int8)

    graphs, links = dags_of(arcs, both)
    of_dags = valid_sets(arcs[graphs], links)
    valid = np.ones((len(arcs), of_dags.shape[1]), dtype=bool)
    np.logical_and.at(valid, graphs, of_dags)

    # All separations, for both orders of a pair, so that names can be changed.
    every = np.empty((len(arcs), len(questions(n))), dtype=bool)
    for k, (x, y, given) in enumerate(questions(n)):
        every[:, k] = free[:, asked.index((min(x, y), max(x, y), given))]
    orders = list(itertools.permutations(range(n)))
    changes = [renamed(n, order) for order in orders]
    packed = []
    for change in changes:
        new = np.empty_like(every)
        new[:, change] = every
        packed.append(np.packbits(new, axis=1))
    of_class: dict[bytes, list[tuple[int, int]]] = {}
    for g in range(len(arcs)):
        names = [rows[g].tobytes() for rows in packed]
        least = min(names)
        of_class.setdefault(least, []).extend((g, k) for k, own in enumerate(names) if own == least)
    pags, valid_in_all, sizes = [], [], []
    for members in of_class.values():
        seen, sets = {}, np.ones(valid.shape[1], dtype=bool)
        for g, k in members:
            place = np.argsort(orders[k])
            own = marks[g][np.ix_(place, place)]
            if own.tobytes() not in seen:
                seen[own.tobytes()] = own
                new = np.empty_like(sets)
                new[changes[k]] = valid[g]
                sets &= new
        own = np.stack(list(seen.values()))
        pags.append(np.where((own == own[0]).all(axis=0), own[0], CIRCLE))
        valid_in_all.append(sets)
        sizes.append(len(seen))
    return Classes(
        marks, valid, np.array(pags, np.int8), np.array(valid_in_all), np.array(sizes), len(graphs)
    )
