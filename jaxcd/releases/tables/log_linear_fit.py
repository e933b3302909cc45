r"""A log-linear model fitted to noisy interactions, and the choice of its pairs; post-processing.

*Model.*  A set of terms S, each a set of columns; the log of the density is a sum of one function a
term.  In the coordinates of :mod:`jaxcd.ops.interactions`,

    log p(x) = sum over S of <theta_S, phi_S(x)> - log Z,

and the expected interactions are n E phi_S.  With y_S the released ones, of noise variance v_S on
each entry, theta minimises

    n log Z(theta) - <theta, y> + (1 / 2) sum over S of r_S |theta_S|^2,
    r_S = .005 v_S + .001 n / K_S,

K_S the cells of S: the density of the largest entropy whose interactions are near y, where noisy
ones may be missed by more.  The minimum is where y_S - n E phi_S = r_S theta_S, well below one
standard deviation; it exists whatever the noise did, because no theta can grow without end.  The
problem is convex.

*Choice of pairs.*  A pair that is not in the model is explained by it, or not: the released
interaction less the expected one, over its variance under the model, is about a chi-square with
(k_i - 1)(k_j - 1) degrees of freedom.  The variance is that of n rows, that of the pair's noise,
and that of what the noise of the other terms adds to the expected one; the last is measured, by
fitting the model again to what it expects with fresh noise.  Starting from a forest of the
clearest pairs, the clearest unexplained ones are added, no two with a column in common at a time,
until all are explained or the tables of the cliques would be too large.  A forest cannot hold many
false pairs, so its level is less strict.  Triples that were measured join the model in the same
way, if they lie in a clique of it.

Source:
    Darroch and Ratcliff 1972 and Dudik, Phillips, Schapire 2007 for the fit; McKenna, Sheldon,
    Miklau 2019 for models of noisy margins; Chow and Liu 1968 for the tree.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import networkx as nx
import numpy as np

from jaxcd.ops import tails
from jaxcd.ops.interactions import interaction
from jaxcd.ops.junction_tree import JunctionTree, elimination_cliques
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.threads import one_blas_thread

__all__ = [
    "ExpectedTables",
    "LogLinearModel",
    "NoisyInteractions",
    "collider_pairs",
    "fit_model",
    "neighbouring_triples",
    "select_pairs",
    "unexplained_triples",
]

Columns = tuple[int, ...]
Pair = tuple[int, int]
_Set = TypeVar("_Set", bound=Columns)

_NOISE_RIDGE, _SAMPLING_RIDGE = 0.005, 0.001  # of v_S and n / K_S in r_S
_STEPS = 300
_COPIES = 4
_FOREST_ALPHA = 0.02
_MOST_ROUNDS = 20
_ROUGH = 3e-4  # of the fits that only tell how much noise there is


@dataclass(frozen=True, eq=False)
class NoisyInteractions:
    """What was released.

    Args:
        cardinalities: the number of levels of each column.
        n_samples: n.
        values: y_S by set of columns (sorted positions), float64 (k_j - 1 for each).
        variances: v_S, from 0.
    """

    cardinalities: Columns
    n_samples: int
    values: Mapping[Columns, np.ndarray]
    variances: Mapping[Columns, float]


@final
@dataclass(frozen=True, eq=False)
class LogLinearModel:
    """A fitted model.

    Args:
        tree: the cliques of its terms.
        margins: of each clique, float64, summing to 1.
        theta: the parameters of each term.
    """

    tree: JunctionTree
    margins: tuple[np.ndarray, ...]
    theta: Mapping[Columns, np.ndarray]

    def sample(self, n_rows: int, *, seed: int = 0) -> np.ndarray:
        """Rows of levels, int32 (n_rows, columns), public randomness."""
        return self.tree.sample(self.margins, n_rows, np.random.default_rng(seed))


def fit_model(
    noisy: NoisyInteractions,
    terms: Sequence[Columns],
    *,
    start: Mapping[Columns, np.ndarray] | None = None,
    gtol: float = 3e-5,
) -> LogLinearModel:
    """The model of the given terms.

    Args:
        noisy: what was released.
        terms: sets whose interactions were released.
        start: parameters to begin from; 0 for the terms that it does not have.
        gtol: where the steps end: the largest entry of the gradient by the scaled parameters.
    """
    from scipy import optimize  # slow to load

    levels, n = noisy.cardinalities, float(noisy.n_samples)
    terms = [term for term in terms if min(levels[j] for j in term) > 1]
    tree = JunctionTree(levels, terms)
    homes = {term: tree.home(term) for term in terms}
    terms.sort(key=lambda term: homes[term])  # those of one clique stand together
    sizes = [math.prod(levels[j] - 1 for j in term) for term in terms]
    cells = np.array([float(math.prod(levels[j] for j in term)) for term in terms])
    each = np.repeat(np.arange(len(terms)), sizes)
    variances = np.array([noisy.variances[term] for term in terms])
    ridge = (_NOISE_RIDGE * variances + _SAMPLING_RIDGE * n / cells)[each] / n
    # One entry's curvature is about n / K, so these steps are of one length in all directions.
    length = np.sqrt(cells)[each]
    features = [
        _features(levels, clique, [term for term in terms if homes[term] == place])
        for place, clique in enumerate(tree.cliques)
    ]
    ends = np.cumsum([0, *(phi.shape[1] for phi in features)])

    def flat(values: Mapping[Columns, np.ndarray]) -> np.ndarray:
        parts = [
            values[term].ravel() if term in values else np.zeros(size)
            for term, size in zip(terms, sizes, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def calibrated(theta: np.ndarray) -> tuple[float, list[np.ndarray]]:
        return tree.calibrate(
            [
                (phi @ theta[ends[place] : ends[place + 1]]).reshape(tree.shape(place))
                for place, phi in enumerate(features)
            ]
        )

    observed = flat(noisy.values) / n

    def objective(scaled: np.ndarray) -> tuple[float, np.ndarray]:
        theta = scaled * length
        log_z, margins = calibrated(theta)
        expected = np.concatenate(
            [margin.ravel() @ phi for margin, phi in zip(margins, features, strict=True)]
        )
        value = log_z - observed @ theta + 0.5 * float(ridge @ theta**2)
        return value, (expected - observed + ridge * theta) * length

    with one_blas_thread():  # thousands of short products, after each of which threads would spin
        found = optimize.minimize(
            objective,
            flat(start or {}) / length,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _STEPS, "maxcor": 20, "gtol": gtol},
        )
    theta = found.x * length
    _, margins = calibrated(theta)
    parts = np.split(theta, np.cumsum(sizes)[:-1]) if terms else []
    return LogLinearModel(
        tree,
        tuple(margins),
        {
            term: part.reshape([levels[j] - 1 for j in term])
            for term, part in zip(terms, parts, strict=True)
        },
    )


def _features(levels: Columns, clique: Columns, terms: Sequence[Columns]) -> np.ndarray:
    """phi_S of the terms S at every cell of a clique, float64 (cells, parameters)."""
    columns = [
        functools.reduce(
            np.kron,
            [contrast_basis(levels[j]) if j in term else np.ones((levels[j], 1)) for j in clique],
        )
        for term in terms
    ]
    return np.concatenate([np.zeros((math.prod(levels[j] for j in clique), 0)), *columns], axis=1)


def select_pairs(
    noisy: NoisyInteractions,
    *,
    alpha: float,
    max_cells: int,
    start: Sequence[Pair] = (),
    absent: Collection[Pair] = (),
) -> tuple[tuple[Pair, ...], LogLinearModel]:
    """The pairs that a model needs, the clearest first, and the model.

    Args:
        noisy: interactions of all columns, and of all pairs but absent ones.
        alpha: level at which a pair counts as not explained.
        max_cells: no clique's table becomes larger by adding a pair, unless it is the pair's own.
        start: pairs to begin with.
        absent: pairs that are left out.
    """
    levels, d = noisy.cardinalities, len(noisy.cardinalities)
    singles = [(j,) for j in range(d)]
    chosen = list(start)
    model = fit_model(noisy, [*singles, *chosen])
    for _ in range(_MOST_ROUNDS):
        within = {*chosen, *absent}
        unexplained = _unexplained(
            noisy,
            model,
            [pair for pair in itertools.combinations(range(d), 2) if pair not in within],
            alpha=alpha if chosen else max(alpha, _FOREST_ALPHA),
            n_copies=_COPIES if chosen else 0,
        )
        if chosen:
            added = _apart(unexplained, levels, chosen, max_cells)
        else:
            added = _forest(unexplained, d)
        if not added:
            break
        chosen += added
        model = fit_model(noisy, [*singles, *chosen], start=model.theta)
    return tuple(chosen), model


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


def _again(noisy: NoisyInteractions, model: LogLinearModel, seed: int) -> LogLinearModel:
    """The model that would be fitted if it were true, and the noise another."""
    generator = np.random.default_rng(seed)
    values = {}
    for term in model.theta:
        home = model.tree.home(term)
        margin = model.margins[home].sum(axis=model.tree.others(home, term))
        expected = noisy.n_samples * interaction(margin)
        scatter = generator.normal(size=expected.shape)
        values[term] = expected + math.sqrt(noisy.variances[term]) * scatter
    again = NoisyInteractions(noisy.cardinalities, noisy.n_samples, values, noisy.variances)
    return fit_model(again, list(model.theta), start=model.theta, gtol=_ROUGH)


def _unexplained(
    noisy: NoisyInteractions,
    model: LogLinearModel,
    sets: Sequence[_Set],
    *,
    alpha: float,
    n_copies: int,
) -> list[_Set]:
    """The sets whose interaction the model misses, the clearest first."""
    levels, n = noisy.cardinalities, noisy.n_samples
    alike: defaultdict[Columns, list[_Set]] = defaultdict(list)
    for s in sets:
        if min(levels[j] for j in s) > 1:
            alike[tuple(levels[j] for j in s)].append(s)
    expected = ExpectedTables(model, n)
    copies = [ExpectedTables(_again(noisy, model, seed), n) for seed in range(1, 1 + n_copies)]
    found: list[tuple[float, _Set]] = []
    for kind, some in alike.items():
        basis = functools.reduce(np.kron, [contrast_basis(k) for k in kind])
        cells = np.stack([expected.table(s) for s in some])
        means = cells @ basis
        spread = np.einsum("ce,pc,cf->pef", basis, cells, basis, optimize=True)
        spread -= means[:, :, None] * means[:, None, :] / n
        noise = np.array([noisy.variances[s] for s in some])
        for copy in copies:
            moved = (np.stack([copy.table(s) for s in some]) @ basis - means) ** 2
            noise += moved.mean(axis=1) / len(copies)
        # No direction is exactly known.
        scatter = spread + (noise + 1e-6 * n / len(basis))[:, None, None] * np.eye(basis.shape[1])
        missed = np.stack([noisy.values[s].ravel() for s in some]) - means
        statistic = np.einsum(
            "pe,pe->p", missed, np.linalg.solve(scatter, missed[:, :, None])[:, :, 0]
        )
        log_p = tails.chi_square_log_sf(statistic, np.full(len(some), basis.shape[1]))
        found += [
            (float(value), s)
            for value, s in zip(log_p, some, strict=True)
            if value < math.log(alpha)
        ]
    return [s for _, s in sorted(found)]


def unexplained_triples(
    noisy: NoisyInteractions, terms: Sequence[Columns], *, alpha: float
) -> list[Columns]:
    """The measured triples whose interaction a model of the terms misses, the clearest first, as
    far as each lies in one of its cliques.
    """
    triples = [s for s in noisy.values if len(s) == 3]
    if not triples:
        return []
    model = fit_model(noisy, terms)
    inside = [s for s in triples if any(set(s) <= set(clique) for clique in model.tree.cliques)]
    return _unexplained(noisy, model, inside, alpha=alpha, n_copies=_COPIES)


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
    """Pairs without a column in common, taken in their order."""
    used: set[int] = set()
    kept: list[Pair] = []
    for pair in pairs:
        if used.isdisjoint(pair) and _within([pair], levels, [*chosen, *kept], max_cells):
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
