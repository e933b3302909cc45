"""Pearson's chi-square and the likelihood ratio G on stratified tables.

Neither has a bounded sensitivity: one record in an otherwise empty row contributes (O - E)^2 / E of
order n.  They serve runs without privacy and searches on released tables; mechanisms that need a
sensitivity refuse them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.citests.base import Evaluation, require_rows
from jaxcd.citests.tables import DiscreteTest, PreparedTables, discrete_cardinalities
from jaxcd.data.rows import Rows
from jaxcd.ops import association, double_precision, tails
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["ChiSquare", "GTest", "chi_square_of_counts"]


# A permutation variance of less than so much of the mean is 0: y says nothing of x.
_NO_VARIANCE = 1e-9
# Cells are rare while the records that all of them are expected to hold add up to so many at most.
_RARE, _LESS = 0.1, 1 - 1e-9  # cells that are equal but for rounding together
# So much more must the other cells say where the rare ones are not looked at.
_OTHERS = math.log(10)


def _by_moments(
    tables: np.ndarray, sums: association.ChiSquareSums
) -> tuple[np.ndarray, np.ndarray]:
    """Pearson's chi-square, and its log p-value by a gamma law of its mean and variance, rare cells
    apart (the docstring of :class:`ChiSquare`)."""
    value, mean, variance = map(np.asarray, (sums.chi_square, sums.mean, sums.variance))
    observed = np.asarray(tables, dtype=np.float64)
    rows, columns = observed.sum(axis=-1, keepdims=True), observed.sum(axis=-2, keepdims=True)
    cells = rows * columns / np.maximum(rows.sum(axis=-2, keepdims=True), 1)
    expected, held = (np.reshape(part, (len(value), -1)) for part in (cells, observed))
    expected = np.where(expected > 0, expected, np.inf)
    ordered = np.sort(expected, axis=1)
    first = np.argmax(np.cumsum(ordered, axis=1) > _RARE, axis=1)  # that is not rare
    query, place = np.nonzero(
        expected < _LESS * np.take_along_axis(ordered, first[:, None], axis=1)
    )
    expected, held = expected[query, place], held[query, place]
    jumps = np.bincount(query, 1 / expected, minlength=len(value))
    variance = np.maximum(variance - jumps, np.minimum(variance, 2 * mean))
    known = variance > _NO_VARIANCE * mean
    scale = np.where(known, 2 * mean, 0.0) / np.where(known, variance, 1.0)

    def tail(of: np.ndarray, at: np.ndarray | slice = slice(None)) -> np.ndarray:
        return tails.chi_square_log_sf(of * scale[at], (mean * scale)[at])

    log_pvalue = tail(value)
    np.logaddexp.at(log_pvalue, query, np.log(expected) + tail(value[query] - 1 / expected, query))
    shares = np.where(held > 0, (held - expected) ** 2 / expected, 0.0)
    others = tail(value - np.bincount(query, shares, minlength=len(value)))
    return value, np.minimum(np.minimum(log_pvalue, others + _OTHERS), 0.0)


def chi_square_of_counts(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pearson's chi-square of stacked counts (q, K, A, B), and its log p-value."""
    with double_precision():
        return _by_moments(tables, association.chi_square_sums(tables))


def _by_degrees(
    tables: np.ndarray, sums: association.ChiSquareSums
) -> tuple[np.ndarray, np.ndarray]:
    """G, and its log p-value by the chi-square law of its degrees of freedom."""
    value = np.asarray(sums.g)
    return value, tails.chi_square_log_sf(value, np.asarray(sums.dof))


class _TableTest(DiscreteTest):
    """Chi-square and G differ in the statistic and its law."""

    @staticmethod
    @abstractmethod
    def _answer(
        tables: np.ndarray, sums: association.ChiSquareSums
    ) -> tuple[np.ndarray, np.ndarray]:
        """The statistic and its log p-value."""

    def _evaluate(self, tables: np.ndarray, alpha: float) -> Evaluation:
        with double_precision():
            value, log_pvalue = self._answer(tables, association.chi_square_sums(tables))
        return Evaluation(value, log_pvalue, np.log(alpha) - log_pvalue)

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTables:
        data = require_rows(data, self.name)
        cardinalities = discrete_cardinalities(
            data,
            self.name,
            "declare it categorical or ordinal, leave it out (data.select), or use KCI",
        )
        return PreparedTables(data, cardinalities, self._evaluate)


@dataclass(frozen=True)
class ChiSquare(_TableTest):
    r"""Pearson's chi-square test of conditional independence, for discrete columns.

    The statistic sums over strata of Z and over cells:

        X^2 = sum (O - E)^2 / E

    with O the counts and E = (row total) (column total) / (stratum total).  Its mean m and variance
    v under independence are known exactly, given the totals of each stratum
    (:func:`jaxcd.ops.association.chi_square_sums`), and the p-value is that of 2 m X^2 / v in a
    chi-square law with 2 m^2 / v degrees of freedom, which has them.  Where strata are large that
    is the usual law, with sum over strata of (nonempty rows - 1)(nonempty columns - 1) degrees of
    freedom.  With few rows a stratum it is not: of 64 strata of 3 x 3 cells and 500 rows the usual
    law rejects .19 of true nulls at level .05, this one .06 (and :class:`GTest` .68).  Where all
    permutations of y have one X^2, p = 1.

    A level of x and a level of y that few of many rows hold share a cell with a small E: one record
    there adds 1 / E to X^2, so that most of the variance is that of a rare event, and a gamma law
    of it is wrong everywhere else.  So the cells with the least E, as long as these add up to at
    most .1, are not part of v (1 / E each), and with s(t) the p-value of t by what is left

        p = s(X^2) + sum over these cells of E s(X^2 - 1 / E),

    or, where it is less, 10 times the s of what the other cells add to X^2: a clear dependence
    elsewhere counts, although a record in a rare cell would have added more.

    Margin: log(alpha) - log(p-value).  Columns: categorical or ordinal.  Sensitivity: unbounded, so
    that a private run refuses the test.

    Source:
        Agresti, *Categorical Data Analysis*, 3rd ed., section 3.2; Haldane 1940 and Dawson 1954 for
        the moments.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data, "tub", "lung", test=jaxcd.ChiSquare(), budget=jaxcd.NO_PRIVACY
        ... )
        >>> answer.independent, round(answer.pvalue, 3)
        (True, 0.552)
    """

    assumes = "nothing but independent rows; its law is exact in mean and variance"
    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="one record in an empty row",
        proven=False,
        assumptions="-",
    )

    _answer = staticmethod(_by_moments)


@dataclass(frozen=True)
class GTest(_TableTest):
    r"""The likelihood-ratio test of conditional independence, for discrete columns.

    The statistic is G = 2 sum O log(O / E), with the counts O and the expected counts E of
    :class:`ChiSquare`.  It is compared with a chi-square law with sum over strata of (nonempty rows
    - 1)(nonempty columns - 1) degrees of freedom, and with few rows a stratum it rejects true nulls
    far too often: take :class:`ChiSquare` there.  Margin: log(alpha) - log(p-value).  Columns:
    categorical or ordinal.  Sensitivity: unbounded (of order log n), so that a private run refuses
    the test.

    Source:
        Agresti, *Categorical Data Analysis*, 3rd ed., section 3.2.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data, "lung", "xray", given=["either"], test=jaxcd.GTest(), budget=jaxcd.NO_PRIVACY
        ... )
        >>> answer.independent, round(answer.pvalue, 3)
        (True, 0.326)
    """

    assumes = "enough rows in the cells of each stratum for a chi-square law"
    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="its range grows with log n",
        proven=False,
        assumptions="-",
    )

    _answer = staticmethod(_by_degrees)
