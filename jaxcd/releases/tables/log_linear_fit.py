r"""A log-linear model fitted to noisy interactions, and the choice of its pairs; post-processing.

*Model.*  A set of terms S, each a set of columns; the log of the density is a sum of one function a
term.  In the coordinates of :mod:`jaxcd.ops.interactions`,

    log p(x) = sum over S of <theta_S, phi_S(x)> - log Z,

and the expected interactions are n E phi_S.  With y_S the released ones, of noise variance v_S on
each entry, theta minimises

    n log Z(theta) - <theta, y> + (tau / 2) sum over S of (v_S + n / K_S) |theta_S|^2,

K_S the cells of S: the density of the largest entropy whose interactions are near y, where noisy
ones may be missed by more.  The minimum is where y_S - n E phi_S = tau (v_S + n / K_S) theta_S, so
tau = .005 leaves well below one standard deviation; it exists whatever the noise did, because no
theta can grow without end.  The problem is convex.

*Choice of pairs.*  A pair that is not in the model is explained by it, or not: the released
interaction less the expected one, over its variance under the model, is about a chi-square with
(k_i - 1)(k_j - 1) degrees of freedom.  The variance is that of n rows, that of the pair's noise,
and that of what the noise of the other terms adds to the expected one; the last is measured, by
fitting the model again to what it expects with fresh noise.  Starting from a forest of the
clearest pairs, the clearest unexplained ones are added, no two with a column in common at a time,
until all are explained or the tables of the cliques would be too large.  A forest cannot hold many
false pairs, so its level is less strict.

Source:
    Darroch and Ratcliff 1972 and Dudik, Phillips, Schapire 2007 for the fit; McKenna, Sheldon,
    Miklau 2019 for models of noisy margins; Chow and Liu 1968 for the tree.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import networkx as nx
import numpy as np

from jaxcd.ops import contingency, tails
from jaxcd.ops.interactions import interaction
from jaxcd.ops.junction_tree import JunctionTree, elimination_cliques
from jaxcd.ops.moments import contrast_basis

__all__ = ["LogLinearModel", "NoisyInteractions", "collider_pairs", "fit_model", "select_pairs"]

Columns = tuple[int, ...]
Pair = tuple[int, int]

_RIDGE = 0.005  # tau
_STEPS = 300
_COPIES = 2
_FOREST_ALPHA = 0.02
_MOST_ROUNDS = 20
_LEAST_ROWS, _ROWS, _MOST_CODES = 20_000, 200_000, 1 << 28  # simulated; times columns


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
) -> LogLinearModel:
    """The model of the given terms.

    Args:
        noisy: what was released.
        terms: sets whose interactions were released.
        start: parameters to begin from; 0 for the terms that it does not have.
    """
    from scipy import optimize  # slow to load

    levels, n = noisy.cardinalities, float(noisy.n_samples)
    terms = [term for term in terms if min(levels[j] for j in term) > 1]
    tree = JunctionTree(levels, terms)
    homes = [tree.home(term) for term in terms]
    shapes = [tuple(levels[j] - 1 for j in term) for term in terms]
    cuts = np.cumsum([math.prod(shape) for shape in shapes])
    cells = np.array([float(math.prod(levels[j] for j in term)) for term in terms])
    each = np.repeat(np.arange(len(terms)), [math.prod(shape) for shape in shapes])
    ridge = _RIDGE * (np.array([noisy.variances[term] for term in terms]) + n / cells)[each] / n
    # One entry's curvature is about n / K, so these steps are of one length in all directions.
    length = np.sqrt(cells)[each]

    def flat(values: Mapping[Columns, np.ndarray]) -> np.ndarray:
        parts = [
            values[term].ravel() if term in values else np.zeros(math.prod(shape))
            for term, shape in zip(terms, shapes, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def split(theta: np.ndarray) -> list[np.ndarray]:
        parts = np.split(theta, cuts[:-1]) if terms else []
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def calibrated(theta: np.ndarray) -> tuple[float, list[np.ndarray]]:
        potentials = [np.zeros(tree.shape(place)) for place in range(len(tree.cliques))]
        for term, home, part in zip(terms, homes, split(theta), strict=True):
            for axis, j in enumerate(term):
                part = np.moveaxis(
                    np.tensordot(contrast_basis(levels[j]), part, (1, axis)), 0, axis
                )
            potentials[home] += part.reshape(tree.shape(home, term))
        return tree.calibrate(potentials)

    observed = flat(noisy.values) / n

    def objective(scaled: np.ndarray) -> tuple[float, np.ndarray]:
        theta = scaled * length
        log_z, margins = calibrated(theta)
        expected = flat(
            {
                term: interaction(margins[home].sum(axis=tree.others(home, term)))
                for term, home in zip(terms, homes, strict=True)
            }
        )
        value = log_z - observed @ theta + 0.5 * float(ridge @ theta**2)
        return value, (expected - observed + ridge * theta) * length

    found = optimize.minimize(
        objective,
        flat(start or {}) / length,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "maxcor": 20, "gtol": 3e-5},
    )
    theta = found.x * length
    _, margins = calibrated(theta)
    return LogLinearModel(tree, tuple(margins), dict(zip(terms, split(theta), strict=True)))


def select_pairs(
    noisy: NoisyInteractions, *, alpha: float, max_cells: int, start: Sequence[Pair] = ()
) -> tuple[tuple[Pair, ...], LogLinearModel]:
    """The pairs that a model needs, the clearest first, and the model.

    Args:
        noisy: interactions of all columns and pairs.
        alpha: level at which a pair counts as not explained.
        max_cells: no clique's table becomes larger by adding a pair, unless it is the pair's own.
        start: pairs to begin with.
    """
    levels, d = noisy.cardinalities, len(noisy.cardinalities)
    singles = [(j,) for j in range(d)]
    chosen = list(start)
    model = fit_model(noisy, [*singles, *chosen])
    for _ in range(_MOST_ROUNDS):
        unexplained = _unexplained(
            noisy, model, chosen, alpha=alpha if chosen else max(alpha, _FOREST_ALPHA)
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
    partners: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in pairs:
        partners[a].append(b)
        partners[b].append(a)
    wanted = {
        pair for found in partners.values() for pair in itertools.combinations(sorted(found), 2)
    }
    return _within(sorted(wanted - set(pairs)), cardinalities, list(pairs), max_cells)


def _expected_pairs(
    model: LogLinearModel, n_samples: int, pairs: Mapping[Pair, Sequence[Pair]], *, seed: int = 0
) -> tuple[dict[Pair, np.ndarray], float]:
    """The tables that the model expects of the pairs, (pairs, a, b) by cardinalities a and b, out
    of rows drawn from it; and n over their number.
    """
    levels = model.tree.cardinalities
    wanted = max(_LEAST_ROWS, min(20 * n_samples, _ROWS), 4 * n_samples)
    n_rows = max(1, min(wanted, _MOST_CODES // len(levels)))
    masks = contingency.pack_levels(model.sample(n_rows, seed=seed), levels)
    ratio = n_samples / n_rows
    tables = {
        kind: np.asarray(contingency.count_sets(masks, np.array(some)), dtype=np.float64) * ratio
        for kind, some in pairs.items()
    }
    return tables, ratio


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
    return fit_model(again, list(model.theta), start=model.theta)


def _unexplained(
    noisy: NoisyInteractions, model: LogLinearModel, chosen: Sequence[Pair], *, alpha: float
) -> list[Pair]:
    """The pairs whose interaction the model misses, the clearest first."""
    levels, n = noisy.cardinalities, noisy.n_samples
    within = set(chosen)
    alike: defaultdict[Pair, list[Pair]] = defaultdict(list)
    columns = [j for j, k in enumerate(levels) if k > 1]
    for i, j in itertools.combinations(columns, 2):
        if (i, j) not in within:
            alike[levels[i], levels[j]].append((i, j))
    expected, ratio = _expected_pairs(model, n, alike)
    copies = [
        _expected_pairs(_again(noisy, model, seed), n, alike, seed=seed)[0]
        for seed in range(1, 1 + (_COPIES if chosen else 0))
    ]
    found: list[tuple[float, Pair]] = []
    for (a, b), pairs in alike.items():
        tables = expected[a, b]
        basis = np.kron(contrast_basis(a), contrast_basis(b))
        cells = tables.reshape(len(pairs), -1)
        means = cells @ basis
        spread = np.einsum("ce,pc,cf->pef", basis, cells, basis, optimize=True)
        spread -= means[:, :, None] * means[:, None, :] / n
        noise = np.array([noisy.variances[pair] for pair in pairs])
        for copy in copies:
            moved = (copy[a, b].reshape(len(pairs), -1) @ basis - means) ** 2
            noise += moved.mean(axis=1) / len(copies)
        # The model's own rows are a sample, too; and no direction is exactly known.
        scatter = spread * (1 + ratio)
        scatter += (noise + 1e-6 * n / (a * b))[:, None, None] * np.eye(basis.shape[1])
        missed = np.stack([noisy.values[pair].ravel() for pair in pairs]) - means
        statistic = np.einsum(
            "pe,pe->p", missed, np.linalg.solve(scatter, missed[:, :, None])[:, :, 0]
        )
        log_p = tails.chi_square_log_sf(statistic, np.full(len(pairs), basis.shape[1]))
        found += [
            (float(value), pair)
            for value, pair in zip(log_p, pairs, strict=True)
            if value < math.log(alpha)
        ]
    return [pair for _, pair in sorted(found)]


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
