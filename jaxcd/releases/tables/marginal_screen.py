r"""Which sets of columns are worth measuring next, read off released marginals; post-processing
throughout.

*Dependence.*  See :mod:`jaxcd.releases.tables.pair_tables`.  *Mediators.*  If k separates i and j,
P_ij = sum over k of P_ik P_kj / P_k, which pairs of columns alone can refute:
:func:`mediation_statistic`.  *Triangles.*  Once triples are released, a pair is dropped that a
common neighbour explains.

Source:
    RELEASES.md section 2; Chow and Liu 1968 and Margolin et al. 2006 for triangles.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxcd.ops import tails
from jaxcd.ops.interactions import interaction_sensitivity_squared, subsets
from jaxcd.ops.moments import contrast_basis
from jaxcd.releases.tables.pair_tables import PairTables
from jaxcd.releases.tables.set_function import SetFunction

__all__ = [
    "absolute_changes",
    "allocate",
    "candidates_of",
    "families_of",
    "largest_sum",
    "mediation_statistic",
    "pairs_for_laplace",
    "sets_for_laplace",
    "squared_changes",
    "tables_of",
    "unexplained_pairs",
    "unmediated_pairs",
]

Pair = tuple[int, int]
Columns = tuple[int, ...]

COUNTED_CHANGE = 2.0
"""L1 change of a table of counts when one row is replaced: one from one cell to another."""
_COUNTED = np.array([[0.0, COUNTED_CHANGE], [COUNTED_CHANGE, COUNTED_CHANGE]])
_MOST_COMPARED = 150  # cells of a table all of whose pairs are compared
_MOST_JOINED = 14  # columns of a sum that is tabulated: 16,384 numbers
_MOST_ENUMERATED = 200_000


def mediation_statistic(pairs: PairTables, i: int, j: int, k: int) -> float:
    r"""W of "i and j are independent given k", from the three pairwise tables: about chi-square
    with (k_i - 1)(k_j - 1) degrees.

    E = sum over k of n_k P(i|k) P(j|k), V = sum over k of n_k a (1 - a) b (1 - b) with a, b these
    shares, and the noise v_ij + v_ik sum b^2 + v_jk sum a^2; W = (degrees / cells) sum (O - E)^2 /
    (V + noise).
    """
    a, b = pairs.conditional(i, k), pairs.conditional(j, k)
    weights = pairs.margins[k]
    expected = (a * weights) @ b.T
    spread = (a * (1 - a) * weights) @ (b * (1 - b)).T
    noise = pairs.variances[i, j] + pairs.variances[i, k] * np.sum(b**2, axis=1)[None, :]
    noise = noise + pairs.variances[j, k] * np.sum(a**2, axis=1)[:, None]
    scatter = np.maximum(spread + noise, 1e-9)
    degrees = (pairs.cardinalities[i] - 1) * (pairs.cardinalities[j] - 1)
    found: float = (
        degrees / expected.size * float(np.sum((pairs.table(i, j) - expected) ** 2 / scatter))
    )
    return found


def unmediated_pairs(
    release: Any, *, dependence_alpha: float, mediation_alpha: float
) -> list[Pair]:
    """The dependent pairs that no third column explains, the clearest first.

    A pair is dependent if its deviance has p < ``dependence_alpha``.  A column k can explain it
    only if its deviance with both exceeds half of theirs (data processing, with room for noise),
    and does if p >= ``mediation_alpha``.  Pairs do not explain each other in a circle, as those of
    a column with two others that are copies of each other would: of such the clearest stays.
    """
    pairs = PairTables(release)
    deviance, k = pairs.deviances, pairs.cardinalities
    kept = []
    explained: dict[Pair, list[frozenset[Pair]]] = {}  # by which two pairs each
    for (i, j), log_p in pairs.log_pvalues.items():
        if not log_p < math.log(dependence_alpha):
            continue
        own, degrees = deviance[i, j], (k[i] - 1) * (k[j] - 1)
        mediators = [
            int(v)
            for v in np.flatnonzero(np.minimum(deviance[i], deviance[j]) > own / 2)
            if v not in (i, j)
        ]
        misfits = np.array([mediation_statistic(pairs, i, j, v) for v in mediators])
        log_pvalues = tails.chi_square_log_sf(misfits, np.full(misfits.shape, degrees))
        worst = float(log_pvalues.max(initial=-math.inf))
        if worst < math.log(mediation_alpha):
            kept.append((worst, -float(misfits.min(initial=math.inf)) / degrees, -own, (i, j)))
        else:
            explained[i, j] = [
                frozenset((min(end, v), max(end, v)) for end in (i, j))
                for v, log_p in zip(mediators, log_pvalues, strict=True)
                if log_p >= math.log(mediation_alpha)
            ]
    circular = []
    while explained:
        left = {
            pair: by
            for pair, by in explained.items()
            if not any(explained.keys().isdisjoint(two) for two in by)
        }
        if len(left) == len(explained):
            clearest = min(left, key=lambda pair: (-deviance[pair], pair))
            circular.append(clearest)
            del left[clearest]
        explained = left
    return [pair for *_, pair in sorted(kept)] + circular


def unexplained_pairs(release: Any, pairs: list[Pair]) -> list[Pair]:
    """The pairs that no common neighbour explains, by the released triples; the clearest first.

    In the order of their information, a pair joins its ends if it is positive and stays so given
    each column that already neighbours both.  The penalties are those of a screen (one nat a cell,
    and half of the noise's), because a pair lost here is lost for good.
    """
    values = SetFunction(release.agreed)

    def strength(x: int, y: int, given: Columns) -> float:
        return values.information(x, y, given, cell_price=1.0, noise_price=2.0)

    marginal = {pair: strength(*pair, ()) for pair in pairs}
    neighbors: dict[int, set[int]] = {v: set() for pair in pairs for v in pair}
    kept = []
    for x, y in sorted(pairs, key=lambda pair: (-marginal[pair], pair)):
        triples = [
            z
            for z in sorted(neighbors[x] & neighbors[y])
            if release.is_measured(tuple(sorted((x, y, z))))
        ]
        least = min([marginal[x, y], *(strength(x, y, (z,)) for z in triples)])
        if least > 0:
            kept.append((-least, (x, y)))
            neighbors[x].add(y)
            neighbors[y].add(x)
    return [pair for _, pair in sorted(kept)]


def candidates_of(pairs: list[Pair], n_variables: int, *, most: int) -> tuple[Columns, ...]:
    """For each column at most ``most`` partners, taken in the order of the pairs; sorted."""
    chosen: list[list[int]] = [[] for _ in range(n_variables)]
    for x, y in pairs:
        for one, other in ((x, y), (y, x)):
            if len(chosen[one]) < most:
                chosen[one].append(other)
    return tuple(tuple(sorted(partners)) for partners in chosen)


def families_of(
    candidates: tuple[Columns, ...],
    levels: Sequence[float],
    *,
    most_parents: int,
    most_cells: dict[int, float],
) -> list[Columns]:
    """Every column with every set of 1 to ``most_parents`` of its candidates.

    Left out: tables of s >= 3 columns with more than ``most_cells[s]`` cells, the product of their
    columns' ``levels``."""
    families = {
        tuple(sorted((column, *parents)))
        for column, partners in enumerate(candidates)
        for size in range(1, most_parents + 1)
        for parents in itertools.combinations(partners, size)
    }
    return sorted(
        f for f in families if len(f) == 2 or math.prod(levels[v] for v in f) <= most_cells[len(f)]
    )


def _worth(families: Sequence[Columns], cardinalities: Columns) -> dict[Columns, float]:
    """For each interaction in a family's table how much its noise disturbs: (number of families)
    prod k_j (k_j - 1).
    """
    counts: Counter[Columns] = Counter(
        subset for family in families for subset in subsets(family, smallest=2)
    )
    sets = sorted(counts, key=lambda s: (len(s), s))
    return {
        s: counts[s] * math.prod(cardinalities[j] * (cardinalities[j] - 1.0) for j in s)
        for s in sets
    }


def allocate(
    families: Sequence[Columns],
    cardinalities: Columns,
    known: Mapping[Columns, float],
    *,
    rho: float,
) -> dict[Columns, float]:
    r"""How precisely to measure which interactions, so that the families' tables are least
    disturbed for a price of rho.

    Noise of variance v on R_U adds about K_U^2 v prod over U of (1 - 1 / k_j) / n to the likelihood
    ratio of every family that contains U (K_U its cells); so the total disturbance is sum a_U v_U
    with a_U = (number of families) prod k_j (k_j - 1). A measurement of precision x_U = 1 /
    variance costs at most x_U m_U / 2 of rho, m_U the squared sensitivity.  Least disturbance:
    x_U = max(lambda sqrt(a_U / m_U) - 1 / v_U, 0), with v_U the variance known so far and lambda
    found by bisection.

    Returns:
        The precisions of the interactions of at least two columns (all 1 for infinite rho), zeros
        left out.
    """
    worth = _worth(families, cardinalities)
    if math.isinf(rho) or not worth:
        return dict.fromkeys(worth, 1.0)
    squared = np.array(
        [interaction_sensitivity_squared(tuple(sorted(cardinalities[j] for j in s))) for s in worth]
    )
    # Nothing is to be known of a set with a column of one level: no rows can move it.
    if not squared.any():
        return {}
    slope = np.sqrt(np.array(list(worth.values())) / np.where(squared > 0, squared, 1.0))
    prior = np.array([1 / known[s] if s in known else 0.0 for s in worth])
    low, high = 0.0, float((2 * rho + prior @ squared) / (slope @ squared))
    for _ in range(100):
        middle = (low + high) / 2
        if np.maximum(middle * slope - prior, 0) @ squared > 2 * rho:
            high = middle
        else:
            low = middle
    precision = np.maximum(high * slope - prior, 0)
    return {s: float(x) for s, x in zip(worth, precision, strict=True) if x > 0}


def tables_of(
    pairs: Sequence[Pair],
    levels: Sequence[float],
    *,
    most: int,
    most_cells: float,
    set_by: Mapping[int, Columns] | None = None,
) -> list[Columns]:
    """One set of columns for each column: itself, the columns that say where it was set, and up to
    ``most`` partners, taken in the order of the pairs while the table has at most ``most_cells``
    cells, the product of their columns' ``levels``; sets that lie in another are left out."""
    own = {} if set_by is None else set_by
    sets: list[set[int]] = [{v, *own.get(v, ())} for v in range(len(levels))]
    for x, y in pairs:
        for one, other in ((x, y), (y, x)):
            cells = math.prod(levels[j] for j in sets[one])
            if (
                len(sets[one]) - len(own.get(one, ())) <= most
                and cells * levels[other] <= most_cells
            ):
                sets[one].add(other)
    found = sorted({tuple(sorted(s)) for s in sets if len(s) > 1})
    return [s for s in found if not any(set(s) < set(other) for other in found)]


@functools.lru_cache(maxsize=4096)
def squared_changes(cardinalities: Columns) -> np.ndarray:
    r"""|R_S - R'_S|^2 when one row is replaced, by which of its levels change: float64 (2,) * |S|,
    index 1 for "changes".

    2 prod (1 - 1/k_j) - 2 prod over changed (-1/k_j) prod over the others (1 - 1/k_j): exact, as
    only whether a level changes matters
    (:func:`jaxcd.ops.interactions.interaction_sensitivity_squared` is the largest).
    """
    if min(cardinalities) < 2:
        return np.zeros((2,) * len(cardinalities))
    product = functools.reduce(
        np.multiply.outer, [np.array([1 - 1 / k, -1 / k]) for k in cardinalities]
    )
    found: np.ndarray = 2 * (product.flat[0] - product)
    return found


@functools.lru_cache(maxsize=4096)
def absolute_changes(cardinalities: Columns) -> np.ndarray:
    """At least |R_S - R'_S|_1 when one row is replaced, by which of its levels change: float64 (2,)
    * |S|.

    Exact, over all pairs of rows, for at most 150 cells; beyond that the root of (number of
    entries) |R_S - R'_S|^2.
    """
    entries = math.prod(k - 1 for k in cardinalities)
    bound: np.ndarray = np.sqrt(entries * squared_changes(cardinalities))
    if entries == 1 or math.prod(cardinalities) > _MOST_COMPARED:
        return bound
    rows = np.indices(cardinalities).reshape(len(cardinalities), -1)
    values = functools.reduce(np.kron, [contrast_basis(k) for k in cardinalities])
    exact: np.ndarray = np.zeros_like(bound)
    for row, value in zip(rows.T, values, strict=True):
        np.maximum.at(
            exact, tuple((rows != row[:, None]).astype(np.intp)), np.abs(values - value).sum(axis=1)
        )
    return exact


def largest_sum(terms: Iterable[tuple[Columns, np.ndarray]]) -> float:
    """The largest sum of terms over all choices of changed columns, or a little more; never more
    than the sum of the largest.

    Args:
        terms: columns (sorted) and what they add, float64 (2,) * number of columns.  The columns
            are eliminated one by one (Bertele and Brioschi 1972): the terms that hold a column are
            added up, and their largest over its two values is a term in the others.  Where that has
            more than 14 columns it is taken in parts (Dechter and Rish 2003): the largest sum is at
            most the sum of the largest.
    """
    factors: dict[Columns, np.ndarray] = {}
    holding_of: defaultdict[int, set[Columns]] = defaultdict(set)
    around: defaultdict[int, set[int]] = defaultdict(set)

    def add(columns: Columns, values: np.ndarray) -> None:
        factors[columns] = factors.get(columns, 0.0) + values
        for column in columns:
            holding_of[column].add(columns)
            around[column].update(columns)

    def take(columns: Columns) -> np.ndarray:
        for column in columns:
            holding_of[column].discard(columns)
        return factors.pop(columns)

    for columns, values in terms:
        add(columns, values)
    remaining = set(holding_of)
    while remaining:
        # The columns that a column shares a term with; those eliminated are taken out as they go.
        column = min(remaining, key=lambda v: (len(around[v]), v))
        remaining.remove(column)
        for other in around.pop(column) - {column}:
            around[other].discard(column)
        holding = sorted(holding_of.pop(column), key=lambda c: (-len(c), c))
        parts: list[set[int]] = []
        members: list[list[Columns]] = []
        for columns in holding:
            place = next(
                (i for i, part in enumerate(parts) if len(part.union(columns)) <= _MOST_JOINED),
                len(parts),
            )
            if place == len(parts):
                parts.append(set())
                members.append([])
            parts[place].update(columns)
            members[place].append(columns)
        for part, inside in zip(parts, members, strict=True):
            scope = tuple(sorted(part))
            total = np.zeros((2,) * len(scope))
            for columns in inside:
                total = total + take(columns).reshape([2 if v in columns else 1 for v in scope])
            left = tuple(v for v in scope if v != column)
            add(left, total.max(axis=scope.index(column)))
    return float(factors.get((), 0.0))


def sets_for_laplace(
    cardinalities: Columns, sets: Sequence[Columns]
) -> tuple[frozenset[Columns], float]:
    """Which of the sets are counted as tables, because their interactions may move by more than the
    counts do, and the L1 sensitivity (replace-one) of all together: the largest sum over all
    choices of changed columns (:func:`absolute_changes`, :func:`largest_sum`), where a table moves
    by 2 if any of its columns changes.
    """
    changes = {s: absolute_changes(tuple(cardinalities[j] for j in s)) for s in sets}
    tables = frozenset(s for s, moved in changes.items() if moved.max() > COUNTED_CHANGE)
    for s in tables:
        changes[s] = np.full_like(changes[s], COUNTED_CHANGE)
        changes[s].flat[0] = 0.0
    return tables, largest_sum(changes.items()) * (1 + 2.0**-40)


def pairs_for_laplace(
    cardinalities: Columns,
) -> tuple[dict[Columns, float], frozenset[Columns], float]:
    r"""What round 1 measures under Laplace noise: weights, the sets that are counted as tables, and
    the L1 sensitivity.

    A pair is measured by its interaction or by its table; pairs of the same cardinalities alike, so
    that the largest change

        sum over pairs of c_ij(i changes, j changes) + sum over columns of c_j(changes)

    depends on how many columns of each cardinality change, and is enumerated over these numbers
    (beyond 200,000: the sum of the largest).  Interactions are for the kinds of pairs for which
    they move least when both columns change, as many kinds as make the sensitivity smallest.  A
    column that a table holds is known from there, and not measured by itself.
    """
    counts = Counter(k for k in cardinalities if k > 1)
    kinds = sorted(counts)
    changes = {
        kind: absolute_changes(kind) for kind in itertools.combinations_with_replacement(kinds, 2)
    }
    present = [(a, b) for a, b in changes if a != b or counts[a] > 1]
    order = sorted(present, key=lambda kind: (changes[kind][1, 1], changes[kind].max(), kind))
    if math.prod(m + 1.0 for m in counts.values()) <= _MOST_ENUMERATED and kinds:
        grids = list(np.meshgrid(*(np.arange(counts[k] + 1.0) for k in kinds), indexing="ij"))
    else:
        grids = []

    def sensitivity(counted: Collection[Pair]) -> float:
        total, limit = np.zeros(()), 0.0
        alone = [k for k in kinds if not any(k in kind for kind in counted)]
        for a, b in present:
            c = _COUNTED if (a, b) in counted else changes[a, b]
            n_pairs = counts[a] * counts[b] if a != b else counts[a] * (counts[a] - 1) / 2
            limit += n_pairs * float(c.max())
            if grids:
                f, g = grids[kinds.index(a)], grids[kinds.index(b)]
                if a == b:
                    total = total + f * (f - 1) / 2 * c[1, 1] + f * (counts[a] - f) * c[1, 0]
                else:
                    total = (
                        total
                        + f * g * c[1, 1]
                        + f * (counts[b] - g) * c[1, 0]
                        + (counts[a] - f) * g * c[0, 1]
                    )
        for k in alone:
            limit += counts[k] * float(absolute_changes((k,))[1])
            if grids:
                total = total + grids[kinds.index(k)] * absolute_changes((k,))[1]
        return float(np.max(total)) if grids else limit

    best = min((order[place:] for place in range(len(order) + 1)), key=sensitivity)
    pairs = list(itertools.combinations(range(len(cardinalities)), 2))
    tables = frozenset(s for s in pairs if tuple(sorted(cardinalities[j] for j in s)) in best)
    held = {j for s in tables for j in s}
    sets: list[Columns] = [(j,) for j in range(len(cardinalities)) if j not in held]
    return dict.fromkeys([*sets, *pairs], 1.0), tables, sensitivity(best) * (1 + 2.0**-40)
