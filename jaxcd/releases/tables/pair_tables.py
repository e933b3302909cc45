r"""The tables of pairs of columns that were released, and how far each is from independence.

O the released table of a pair with its margins fixed, E = n_i n_j / n, v the variance of the noise
on a cell:

    g = 2 sum over cells of (O + v) log((O + v) / (E + v)) - (O - E),

the deviance of a Poisson variable shifted until its variance E + v is right; the likelihood ratio
G^2 without noise, and sum (O - E)^2 / v where noise is all.  Post-processing throughout.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np

from jaxcd.ops import tails
from jaxcd.ops.interactions import table_of_interactions
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.nearest_table import nearest_table

__all__ = ["PairTables", "shifted_deviance"]

Pair = tuple[int, int]

_LEAST_COUNT = 0.5  # of a margin: below it a level is as good as absent


def shifted_deviance(
    observed: np.ndarray, expected: np.ndarray, variance: np.ndarray | float
) -> np.ndarray:
    """2 sum (O + v) log((O + v) / (E + v)) - (O - E) over the cells of each table.

    Args:
        observed: tables in records, (..., a, b); expected positive.
        expected: as ``observed``.
        variance: v >= 0 of the noise on a cell, (...). A noisy cell below -v counts as -v: no count
            can have been lower.
    """
    v = np.asarray(variance, dtype=np.float64)[..., None, None]
    shifted = np.maximum(observed + v, 1e-9)
    found: np.ndarray = 2 * np.sum(
        shifted * np.log(shifted / (expected + v)) - (observed - expected), axis=(-2, -1)
    )
    return found


class PairTables:
    """The pairwise tables of a release with their margins fixed, and the variance that noise leaves
    in their interaction.

    Args:
        known: interactions of all columns and of some pairs with their variances: a release, or
            what was bought so far.

    variances, deviances: float64 (d, d), of the noise on a cell and of independence, zeros where a
    pair was not measured; log_pvalues: of the measured pairs (i, j), i < j, of columns with two
    levels or more; margins: of each column, (levels,), positive, in records.
    """

    def __init__(self, known: Any) -> None:
        n, k = known.n_samples, known.cardinalities
        self.n = float(n)
        self.cardinalities = k
        self.margins = []
        for j in range(len(k)):
            table = table_of_interactions((j,), k, n, known.interactions.__getitem__)
            margin = np.maximum(nearest_table(table, self.n), _LEAST_COUNT)
            self.margins.append(margin * (self.n / margin.sum()))
        means = [contrast_basis(k[j]).T @ margin for j, margin in enumerate(self.margins)]
        self.variances, self.deviances = np.zeros((2, len(k), len(k)))
        self._tables: dict[Pair, np.ndarray] = {}
        self.log_pvalues: dict[Pair, float] = {}
        alike: defaultdict[Pair, list[Pair]] = defaultdict(list)
        for i, j in itertools.combinations([j for j, levels in enumerate(k) if levels > 1], 2):
            if (i, j) in known.interactions:
                alike[k[i], k[j]].append((i, j))
        for (a, b), pairs in alike.items():
            first, second = np.array(pairs).T
            mean_a, mean_b = (
                np.stack([means[j] for j in columns.tolist()]) for columns in (first, second)
            )
            margin_a, margin_b = (
                np.stack([self.margins[j] for j in columns.tolist()]) for columns in (first, second)
            )
            product = np.stack([known.interactions[pair] for pair in pairs])
            excess = product - mean_a[:, :, None] * mean_b[:, None, :] / self.n
            expected = margin_a[:, :, None] * margin_b[:, None, :] / self.n
            tables = expected + contrast_basis(a) @ excess @ contrast_basis(b).T
            # An entry of the excess carries the noise of R_ij and, to first order, that of both
            # means.
            of_pair, of_a, of_b = (
                np.array([known.variances[s] for s in sets])
                for sets in (pairs, [(i,) for i, _ in pairs], [(j,) for _, j in pairs])
            )
            noise = of_pair * (a - 1) * (b - 1)
            noise += of_a * np.sum(mean_b**2, axis=1) / self.n**2 * (a - 1)
            noise += of_b * np.sum(mean_a**2, axis=1) / self.n**2 * (b - 1)
            variance = noise / (a * b)
            deviance = shifted_deviance(tables, expected, variance)
            sampling = (
                expected * (1 - margin_a / self.n)[:, :, None] * (1 - margin_b / self.n)[:, None, :]
            )
            v = variance[:, None, None]
            null_mean = np.sum((sampling + v) / (expected + v), axis=(1, 2))
            degrees = np.full(len(pairs), (a - 1) * (b - 1))
            log_pvalues = tails.chi_square_log_sf(deviance * degrees / null_mean, degrees)
            self.variances[first, second] = self.variances[second, first] = variance
            self.deviances[first, second] = self.deviances[second, first] = deviance
            self._tables.update(zip(pairs, tables, strict=True))
            self.log_pvalues.update(zip(pairs, log_pvalues.tolist(), strict=True))

    def table(self, i: int, j: int) -> np.ndarray:
        """The table of a pair, (levels of i, levels of j)."""
        return self._tables[i, j] if i < j else self._tables[j, i].T

    def conditional(self, target: int, given: int) -> np.ndarray:
        """P(target | given), (levels of target, levels of given), clipped and normalised."""
        shares = np.maximum(self.table(target, given), 0.0)
        found: np.ndarray = shares / np.maximum(shares.sum(axis=0), 1e-9)
        return found
