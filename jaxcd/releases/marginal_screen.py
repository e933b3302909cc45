r"""Which sets of columns are worth measuring next, read off released marginals; post-processing throughout.

*Dependence.*  O the released table of a pair with its margins fixed, E = n_i n_j / n, v the variance of the noise on a cell:

    g = 2 sum over cells of (O + v) log((O + v) / (E + v)) - (O - E),

the deviance of a Poisson variable shifted until its variance E + v is right; the likelihood ratio G^2 without noise, and
sum (O - E)^2 / v where noise is all.  *Mediators.*  If k separates i and j, P_ij = sum over k of P_ik P_kj / P_k, which pairs of
columns alone can refute: :func:`mediation_statistic`.  *Triangles.*  Once triples are released, a pair is dropped that a common
neighbour explains.  Source: RELEASES.md section 2; Chow and Liu 1968 and Margolin et al. 2006 for triangles.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from jaxcd.ops import tails
from jaxcd.ops.interactions import interaction_sensitivity_squared, subsets
from jaxcd.ops.moments import contrast_basis
from jaxcd.releases.set_function import SetFunction, nearest_table

if TYPE_CHECKING:
    from jaxcd.releases.marginals import Marginals, ReleasedMarginals

__all__ = ["allocate", "candidates_of", "families_of", "mediation_statistic", "shifted_deviance", "unexplained_pairs", "unmediated_pairs"]

Pair = tuple[int, int]
Columns = tuple[int, ...]

_LEAST_COUNT = 0.5  # of a margin: below it a level is as good as absent


def shifted_deviance(observed: np.ndarray, expected: np.ndarray, variance: float) -> float:
    """2 sum (O + v) log((O + v) / (E + v)) - (O - E) over the cells.

    observed, expected: tables in records, of one shape; expected positive.  variance: v >= 0 of the noise on a cell.
    A noisy cell below -v counts as -v: no count can have been lower.
    """
    shifted = np.maximum(observed + variance, 1e-9)
    return float(2 * np.sum(shifted * np.log(shifted / (expected + variance)) - (observed - expected)))


class _Pairs:
    """The pairwise tables of a release with their margins fixed, and the variance that noise leaves in their interaction."""

    def __init__(self, release: ReleasedMarginals) -> None:
        n, k = release.n_samples, release.cardinalities
        self.n = float(n)
        self.cardinalities = k
        self.margins = []
        for j in range(len(k)):
            margin = np.maximum(nearest_table(release.table((j,)), self.n), _LEAST_COUNT)
            self.margins.append(margin * (self.n / margin.sum()))
        means = [contrast_basis(k[j]).T @ margin for j, margin in enumerate(self.margins)]
        self.tables: dict[Pair, np.ndarray] = {}
        self.variances: dict[Pair, float] = {}
        self.deviances: dict[Pair, float] = {}
        rescaled: dict[Pair, float] = {}
        self.degrees: dict[Pair, int] = {}
        for i, j in itertools.combinations(range(len(k)), 2):
            dof = (k[i] - 1) * (k[j] - 1)
            if dof == 0:
                continue
            excess = release.interactions[i, j] - np.outer(means[i], means[j]) / self.n
            expected = np.outer(self.margins[i], self.margins[j]) / self.n
            table = expected + contrast_basis(k[i]) @ excess @ contrast_basis(k[j]).T
            # An entry of the excess carries the noise of R_ij and, to first order, that of both means.
            noise = release.variances[i, j] * dof
            noise += release.variances[(i,)] * float(means[j] @ means[j]) / self.n**2 * (k[i] - 1)
            noise += release.variances[(j,)] * float(means[i] @ means[i]) / self.n**2 * (k[j] - 1)
            variance = noise / (k[i] * k[j])
            deviance = shifted_deviance(table, expected, variance)
            sampling = expected * np.outer(1 - self.margins[i] / self.n, 1 - self.margins[j] / self.n)
            null_mean = float(np.sum((sampling + variance) / (expected + variance)))
            self.tables[i, j], self.tables[j, i] = table, table.T
            self.variances[i, j] = self.variances[j, i] = variance
            self.deviances[i, j] = self.deviances[j, i] = deviance
            rescaled[i, j], self.degrees[i, j] = deviance * dof / null_mean, dof
        log_pvalues = tails.chi_square_log_sf(np.array(list(rescaled.values())), np.array(list(self.degrees.values())))
        self.log_pvalues: dict[Pair, float] = dict(zip(rescaled, log_pvalues.tolist(), strict=True))

    def conditional(self, target: int, given: int) -> np.ndarray:
        """P(target | given), (levels of target, levels of given), clipped and normalised."""
        shares = np.maximum(self.tables[target, given], 0.0)
        return shares / np.maximum(shares.sum(axis=0), 1e-9)


def mediation_statistic(pairs: _Pairs, i: int, j: int, k: int) -> float:
    r"""W of "i and j are independent given k", from the three pairwise tables: about chi-square with (k_i - 1)(k_j - 1) degrees.

    E = sum over k of n_k P(i|k) P(j|k), V = sum over k of n_k a (1 - a) b (1 - b) with a, b these shares, and the noise
    v_ij + v_ik sum b^2 + v_jk sum a^2; W = (degrees / cells) sum (O - E)^2 / (V + noise).
    """
    a, b = pairs.conditional(i, k), pairs.conditional(j, k)
    weights = pairs.margins[k]
    expected = (a * weights) @ b.T
    spread = (a * (1 - a) * weights) @ (b * (1 - b)).T
    noise = pairs.variances[i, j] + pairs.variances[i, k] * np.sum(b**2, axis=1)[None, :]
    noise = noise + pairs.variances[j, k] * np.sum(a**2, axis=1)[:, None]
    scatter = np.maximum(spread + noise, 1e-9)
    degrees = (pairs.cardinalities[i] - 1) * (pairs.cardinalities[j] - 1)
    return degrees / expected.size * float(np.sum((pairs.tables[i, j] - expected) ** 2 / scatter))


def unmediated_pairs(release: ReleasedMarginals, options: Marginals) -> list[Pair]:
    """The dependent pairs that no third column explains, the clearest first.

    A pair is dependent if its deviance has p < ``dependence_alpha``.  A column k can explain it only if its deviance with both
    exceeds half of theirs (data processing, with room for noise), and does if p >= ``mediation_alpha``.
    """
    pairs = _Pairs(release)
    deviance = np.zeros((len(pairs.cardinalities),) * 2)
    for (i, j), value in pairs.deviances.items():
        deviance[i, j] = value
    kept = []
    for (i, j), log_p in pairs.log_pvalues.items():
        if not log_p < math.log(options.dependence_alpha):
            continue
        own, degrees = deviance[i, j], pairs.degrees[i, j]
        mediators = np.flatnonzero(np.minimum(deviance[i], deviance[j]) > own / 2)
        misfits = np.array([mediation_statistic(pairs, i, j, int(k)) for k in mediators if k not in (i, j)])
        least = float(misfits.min(initial=math.inf))
        worst = float(tails.chi_square_log_sf(misfits, np.full(misfits.shape, degrees)).max(initial=-math.inf))
        if worst < math.log(options.mediation_alpha):
            kept.append((worst, -least / degrees, -own, (i, j)))
    return [pair for *_, pair in sorted(kept)]


def unexplained_pairs(release: ReleasedMarginals, pairs: list[Pair], options: Marginals) -> list[Pair]:
    """The pairs that no common neighbour explains, by the released triples; the clearest first.

    In the order of their information, a pair joins its ends if it is positive and stays so given each column that already
    neighbours both.  The penalties are those of a screen (one nat a cell, and the expected effect of the noise), because a pair
    lost here is lost for good.
    """
    values = SetFunction(release, cap=options.inflation_cap)

    def strength(x: int, y: int, given: Columns) -> float:
        return values.information(x, y, given, cell_price=1.0, noise_price=1.0)

    marginal = {pair: strength(*pair, ()) for pair in pairs}
    neighbors: dict[int, set[int]] = {v: set() for pair in pairs for v in pair}
    kept = []
    for x, y in sorted(pairs, key=lambda pair: (-marginal[pair], pair)):
        triples = [z for z in sorted(neighbors[x] & neighbors[y]) if release.is_measured(tuple(sorted((x, y, z))))]
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
    candidates: tuple[Columns, ...], cardinalities: Columns, *, most_parents: int, most_cells: dict[int, float]
) -> list[Columns]:
    """Every column with every set of 1 to ``most_parents`` of its candidates.

    Left out: tables of s >= 3 columns with more than ``most_cells[s]`` cells."""
    families = {
        tuple(sorted((column, *parents)))
        for column, partners in enumerate(candidates)
        for size in range(1, most_parents + 1)
        for parents in itertools.combinations(partners, size)
    }
    return sorted(f for f in families if len(f) == 2 or math.prod(cardinalities[v] for v in f) <= most_cells[len(f)])


def allocate(
    families: list[Columns], cardinalities: Columns, known: dict[Columns, float], *, rho: float
) -> dict[Columns, float]:
    r"""How precisely to measure which interactions, so that the families' tables are least disturbed for a price of rho.

    Noise of variance v on R_U adds about K_U^2 v prod over U of (1 - 1 / k_j) / n to the likelihood ratio of every family that
    contains U (K_U its cells); so the total disturbance is sum a_U v_U with a_U = (number of families) prod k_j (k_j - 1).
    A measurement of precision x_U = 1 / variance costs x_U m_U / 2 of rho, m_U the squared sensitivity.  Least disturbance:
    x_U = max(lambda sqrt(a_U / m_U) - 1 / v_U, 0), with v_U the variance known so far and lambda found by bisection.

    Returns the precisions of the interactions of at least two columns (all 1 for infinite rho), zeros left out.
    """
    counts: dict[Columns, int] = {}
    for family in families:
        for subset in subsets(family, smallest=2):
            counts[subset] = counts.get(subset, 0) + 1
    sets = sorted(counts, key=lambda s: (len(s), s))
    if not sets:
        return {}
    if math.isinf(rho):
        return dict.fromkeys(sets, 1.0)
    squared = np.array([interaction_sensitivity_squared(tuple(sorted(cardinalities[j] for j in s))) for s in sets])
    weight = np.array([counts[s] * math.prod(cardinalities[j] * (cardinalities[j] - 1.0) for j in s) for s in sets])
    slope = np.sqrt(weight / squared)
    prior = np.array([1 / known[s] if s in known else 0.0 for s in sets])
    low, high = 0.0, float((2 * rho + prior @ squared) / (slope @ squared))
    for _ in range(100):
        middle = (low + high) / 2
        if np.maximum(middle * slope - prior, 0) @ squared > 2 * rho:
            high = middle
        else:
            low = middle
    precision = np.maximum(high * slope - prior, 0)
    return {s: float(x) for s, x in zip(sets, precision, strict=True) if x > 0}
