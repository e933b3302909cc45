r"""A score of log determinants on released feature covariances.

For a set S of columns, with C_S the released covariance of their features and N rows that would be
as precise without noise,

    h(S) = -(N / 2) log det C_S  -  (penalty / 2) log(N) #S  -  c $S
                                 -  (N / 2) effect^2 |S| (|S| - 1) / 2  -  (N / 2) .06 D_S,
    #S = sum over pairs of S of s_i s_j,    $S = sum over pairs of S of (r_i r_j - s_i s_j),
    D_S = sum over pairs of S of max(d_ij - r_i r_j / N, 0), d_ij the sum of their squared canonical
        correlations given nothing,

s_i = 2 smooth features of a numeric column (3 where "missing" is a level) and all r_i of a
discrete one, c = 1.5 nats and at most what the others cost;

    local(v, Pa) = h(v Pa) - h(Pa):

minus N / 2 times the log determinant of what an additive regression on the features of Pa leaves of
those of v.  It is the BIC of jointly normal features, but for two things.  Products of further
cosines cost less than log(N) / 2 each: noise alone gives a half, and at the full price of r^2
numbers a weak line, or one that heavy tails bend, would not pay for itself.  And the
last two terms are the price of a dependence that does not count, because features and additive
regressions are not exact: what is weak, and the part of a dependence that is left where other
columns explain it all (``UNEXPLAINED`` in :mod:`jaxcd.releases.features.canonical_correlation`).
Levels that are too rare to be told from noise are left out
(:mod:`jaxcd.releases.features.rare_levels`).  A difference of a set function, it is equal for
equivalent graphs.

*Further cosines.*  The privacy noise on all products is alike, and the variance v of a cosine falls
with its frequency, so that a product of two has a correlation with variance

    1 / n + s^2 / (v v'),

and where s is large one number N cannot weigh the first cosines, which show a line, and the last,
which show noise.  So the variance of each cosine beyond the first two is raised to

    v'^2 = (v^2 / n + s^2) / (1 / n + s^2 / w^2),

w that of the first two on average: then all correlations have the noise of one among N rows, 1 / N
= 1 / n + s^2 / w^2.  Conditioning on what was raised leaves a part of it, which is why the first
two stay as they are.  Without noise nothing is raised.

*Columns that hardly vary.*  C is what is left of products when those of the means are taken off, so
that between two columns with means m_i, m_j its noise has variance s^2 u, u = 1 + (|m_i|^2 +
|m_j|^2) / a^2, a the anchor.  Of a binary column of which nearly all rows are equal |m| is nearly 1
and the variance v nearly 0, and noise alone would make edges: to the score it adds about

    (N / 2) s^2 u r_i r_j / (v_i v_j)

nats, times a chi-square with r_i r_j degrees of freedom over its mean.  What an edge costs must be
more than that with 3 standard deviations, so v_i v_j is asked to be at least

    t = (1 + 3 sqrt(2 / (r_i r_j))) N s^2 u r_i r_j / (2 price of the edge),

and the eigenvalues of a column's own block are raised to t / v_i of the column where that asks for
the most, both to sqrt(t) where both are small.  Without noise nothing is raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxcd.checks import check_count, check_number
from jaxcd.data.column_types import Column
from jaxcd.data.interventions import Interventions
from jaxcd.releases.base import Release, check_kind
from jaxcd.releases.features.canonical_correlation import UNEXPLAINED, CanonicalCorrelation, raised
from jaxcd.releases.features.rare_levels import rare_levels, rare_words, without_levels
from jaxcd.scores.base import BatchedScore, log_rows, strongest

__all__ = ["FeatureScore"]

# A column whose features hardly vary (they have length one) is not taken for one that noise makes
# hopeless for all others.
_LEAST_VARIANCE = 0.1
# Cosines of a numeric column whose products cost what the BIC asks, and the nats that others cost.
# Chosen on random models (ten kinds: linear and not, heavy tails, weak effects) of 10 to 40 columns
# with 3,000 to 100,000 rows: 1 makes false edges between linear columns, 2.5 misses weak effects.
_SMOOTH, _FURTHER_PRICE = 2, 1.5
_DEVIATIONS = 3.0  # of the chi-square that noise adds to the score of an edge
Columns = tuple[int, ...]


@final
class FeatureScore(BatchedScore):
    """BIC of jointly normal features on a release, with a price on every edge; score-equivalent,
    and free (the module's docstring).

    Args:
        release: the covariances.
        penalty: times the BIC's, positive.
        effect: the canonical correlation that an edge must be worth, in [0, 1).
        max_parents: the largest number of parents a search should try.
        n_candidates: the possible parents of a node are that many others with the largest partial
            canonical correlations given all the rest.

    Raises:
        OptionError: an option is out of its range.
    """

    def __init__(
        self,
        release: Release,
        *,
        penalty: float = 1.0,
        effect: float = 0.1,
        max_parents: int = 4,
        n_candidates: int = 10,
    ) -> None:
        bought: Any = check_kind(release, "features").counted
        penalty = check_number("penalty", penalty, 0, ends="(]", cure="1 is the BIC's")
        check_count("n_candidates", n_candidates, minimum=1, cure="10 is usual")
        super().__init__(bought.names, max_parents=max_parents)
        self._settings = {
            "penalty": penalty,
            "effect": effect,
            "max_parents": max_parents,
            "n_candidates": n_candidates,
        }
        found = rare_levels(bought, effective_samples=_effective_samples(bought))
        self._rare = {
            name: tuple(_label(bought.domain[name], v) for v in found[column])
            for column, name in enumerate(bought.names)
            if column in found
        }
        bought = without_levels(bought, found)
        self._release: Any = bought
        self._covariance = _evened(bought, raised(bought.covariance, bought.floor))
        self._sizes = np.array(bought.sizes)
        self.effective_samples = _effective_samples(bought)
        self._parameter_price = (
            penalty
            / 2
            * log_rows(self.effective_samples, reduced=self.effective_samples < bought.n_samples)
        )
        self._edge_price = self.effective_samples / 2 * CanonicalCorrelation(effect).effect ** 2
        self._prices = self._prices_of_pairs()
        self._covariance = self._widened()
        self._determinants: dict[Columns, float] = {(): 0.0}
        self._candidates = strongest(
            _partial_strengths(self._covariance, bought.blocks), n_candidates
        )

    def _widened(self) -> np.ndarray:
        """The covariances, with variances so large that noise makes no edges."""
        release, found = self._release, self._covariance.copy()
        own = [found[np.ix_(block, block)] for block in release.blocks]
        several = [column for column, size in enumerate(self._sizes) if size]
        variances = {i: float(np.trace(own[i])) / int(self._sizes[i]) for i in several}
        shifts = {i: float(np.sum(release.means[release.blocks[i]] ** 2)) for i in several}
        noise = self.effective_samples / 2 * release.noise**2
        for j in several:
            least = 0.0
            for i in several:
                if i == j:
                    continue
                size = int(self._sizes[i] * self._sizes[j])
                most = 1 + _DEVIATIONS * math.sqrt(2 / size)
                spread = 1 + (shifts[i] + shifts[j]) / release.anchor**2
                price = float(self._prices[i, j])
                asked = most * noise * spread * size / price
                least = max(least, asked / max(variances[i], math.sqrt(asked), 1e-300))
            if np.linalg.eigvalsh(own[j])[0] < least:
                block = release.blocks[j]
                found[np.ix_(block, block)] = raised(own[j], least)
        return found

    def _prices_of_pairs(self) -> np.ndarray:
        """What an edge between two columns costs, (p, p)."""
        smooth = [len(block) for block in _smooth(self._release)]
        full = np.multiply.outer(smooth, smooth)
        further = np.multiply.outer(self._sizes, self._sizes) - full
        price = self._parameter_price
        dependences = _dependences(
            self._covariance, self._release.blocks, rows=self.effective_samples
        )
        found: np.ndarray = price * full + min(price, _FURTHER_PRICE) * further + self._edge_price
        found += self.effective_samples / 2 * UNEXPLAINED * dependences
        return found

    most_exact = 18

    @property
    def settings(self) -> dict[str, Any]:
        """The options, for a result's info."""
        return {
            **self._settings,
            "n_features": sum(self._release.sizes),
            "noise": self._release.noise,
            **rare_words(self._rare),
        }

    def uncounted(self, node: int) -> int:
        """The columns that set it."""
        return len(Interventions.of(self._release.domain).natural.get(self._names[node], ()))

    def candidates(self, node: int) -> Columns:
        """The possible parents of a node, sorted; public."""
        return self._candidates[node]

    def locals(self, node: int, families: Sequence[Columns]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        with_node = [tuple(sorted((node, *parents))) for parents in families]
        self._determine([*with_node, *families])
        scores = []
        for family, parents in zip(with_node, families, strict=True):
            fit = (
                -self.effective_samples
                / 2
                * (self._determinants[family] - self._determinants[tuple(parents)])
            )
            scores.append(fit - float(self._prices[node, list(parents)].sum()))
        return np.array(scores, dtype=np.float64)

    def _determine(self, sets: Sequence[Columns]) -> None:
        """Computes the log determinants that are missing, those of matrices of one size
        together.
        """
        missing: dict[int, list[Columns]] = {}
        for columns in dict.fromkeys(map(tuple, sets)):
            if columns not in self._determinants:
                missing.setdefault(int(self._sizes[list(columns)].sum()), []).append(columns)
        self._determinants.update(dict.fromkeys(missing.pop(0, []), 0.0))  # columns of one level
        for group in missing.values():
            for start in range(0, len(group), 256):
                part = group[start : start + 256]
                places = np.array(
                    [np.concatenate([self._release.blocks[v] for v in columns]) for columns in part]
                )
                values = np.linalg.slogdet(
                    self._covariance[places[:, :, None], places[:, None, :]]
                )[1]
                self._determinants.update(zip(part, np.atleast_1d(values).tolist(), strict=True))


def _label(column: Column, level: int) -> object:
    """Of a level; of a numeric column only "missing" is one."""
    return "missing" if column.cardinality is None else column.label(level)


def _smooth(release: Any) -> list[np.ndarray]:
    """The places of each column's features, of numeric columns the first two cosines only."""
    columns = release.domain.columns.values()
    return [
        block[: _SMOOTH + (column.missing is not None)] if column.cardinality is None else block
        for column, block in zip(columns, release.blocks, strict=True)
    ]


def _effective_samples(release: Any) -> float:
    """The rows that would be as precise without noise, where columns have features of average
    variance.
    """
    # Noise on an entry between features of such variances, as the correlation it makes.
    scales = [
        1 / _mean_variance(release, block) if len(block) else 0.0 for block in _smooth(release)
    ]
    spread = release.noise * sum(scales) / max(sum(scale > 0 for scale in scales), 1)
    return float(release.n_samples / (1 + release.n_samples * spread**2))


def _mean_variance(release: Any, block: np.ndarray) -> float:
    least = _LEAST_VARIANCE / len(block)
    return max(float(np.diagonal(release.covariance)[block].mean()), least)


def _evened(release: Any, covariance: np.ndarray) -> np.ndarray:
    """The covariance with the variances of further cosines so large that noise makes correlations
    of one size.
    """
    found, rows = covariance.copy(), 1 / release.n_samples
    for block, smooth in zip(release.blocks, _smooth(release), strict=True):
        for place in block[len(smooth) :]:
            of_smooth = rows + (release.noise / _mean_variance(release, smooth)) ** 2
            own = (found[place, place] ** 2 * rows + release.noise**2) / of_smooth
            found[place, place] = max(found[place, place], math.sqrt(own))
    return found


def _dependences(
    covariance: np.ndarray, blocks: Sequence[np.ndarray], *, rows: float
) -> np.ndarray:
    """The sum of the squared canonical correlations of all pairs of columns, less its mean under
    independence (the product of their numbers of features over the rows), from 0, (p, p); 0 on the
    diagonal.
    """
    found = np.zeros((len(blocks),) * 2)
    several = [column for column, block in enumerate(blocks) if len(block)]
    if not several:
        return found
    roots = [
        np.linalg.inv(np.linalg.cholesky(covariance[np.ix_(blocks[j], blocks[j])])) for j in several
    ]
    # Features of every column made uncorrelated: in rows, then in columns.
    white = np.concatenate(
        [root @ covariance[blocks[j]] for root, j in zip(roots, several, strict=True)]
    )
    white = np.concatenate(
        [white[:, blocks[j]] @ root.T for root, j in zip(roots, several, strict=True)], axis=1
    )
    sizes = np.array([len(blocks[j]) for j in several])
    starts = np.cumsum(sizes) - sizes
    sums = np.add.reduceat(np.add.reduceat(white**2, starts, axis=0), starts, axis=1)
    np.fill_diagonal(sums, 0.0)
    found[np.ix_(several, several)] = np.maximum(sums - np.multiply.outer(sizes, sizes) / rows, 0.0)
    return found


def _partial_strengths(covariance: np.ndarray, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """The root of the sum of squared partial canonical correlations of all pairs given the rest,
    (p, p); -1 on the diagonal.
    """
    precision = np.linalg.inv(covariance)
    roots = [np.linalg.inv(np.linalg.cholesky(precision[np.ix_(b, b)])) for b in blocks]
    strength = np.full((len(blocks),) * 2, -1.0)
    for i in range(len(blocks)):
        for j in range(i):
            size = np.linalg.norm(roots[i] @ precision[np.ix_(blocks[i], blocks[j])] @ roots[j].T)
            strength[i, j] = strength[j, i] = float(size)
    return strength
