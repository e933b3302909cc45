r"""BIC of jointly normal columns on a data set.

local(v, P) = -(n / 2) log Var(v | P) - (penalty / 2) log(n) |P|, with Var(v | P) from the sample
correlations: the maximised log likelihood of a linear model of the standardised column, less what
all graphs share.  It is score-equivalent: log Var(v | P) is a difference of log determinants, also
where columns determine each other and the determinants are those of rounded-up eigenvalues.

*Missing cells* that are left out leave each correlation to the rows that know both columns.  With n
their median number, a pair that only m < n rows know has a correlation of n / m times the usual
variance, and so has what chance gains by it: a parent costs (n / m) max(log m, 2) / 2 in the place
of log(n) / 2.  The price is one of the edge, so that equivalent graphs have equal totals.

Exact correlations are not private: this score is the reference of a run without privacy.  On a
release of second moments :class:`jaxcd.scores.GaussianScore` takes its place.

Source:
    Schwarz 1978; Geiger and Heckerman 1994 for normal networks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from jaxcd.checks import check_number
from jaxcd.data import Dataset
from jaxcd.ops import correlation, double_precision
from jaxcd.ops.standardising import standardised
from jaxcd.scores.base import BatchedScore

__all__ = ["GaussianDataScore", "log_conditional_variances"]

# Added to the variances of the standardised columns: a column that others determine has a finite
# score, and whatever is seen in data is far above it.
_RIDGE = 1e-12
# Eigenvalues of correlations below the second are one size: above every ridge (that of second
# moments is 1e-9), and far below what is seen in data.  They are looked at where a pivot is below
# the first.
_NEARLY_SINGULAR, _LEAST_VOLUME = 1e-5, 1e-8
# Of correlations from different rows, which may contradict each other.
_LEAST_EIGENVALUE = 1e-6
_FEW_ROWS = 8
_LEAST_PRICE = 2.0  # of AIC, in halves


@final
class GaussianDataScore(BatchedScore):
    """BIC of normal columns from exact correlations; not private.  Missing cells that are left out
    leave each correlation to the rows that know both columns.

    Args:
        data: numeric columns.
        max_parents: the largest number of parents that a search tries.
        penalty: times the BIC's, positive.

    Raises:
        OptionError: an option is out of its range.
        DomainError: naming the column, where one is not numeric.
    """

    def __init__(self, data: Dataset, *, max_parents: int = 6, penalty: float = 1.0) -> None:
        super().__init__(data.names, max_parents=max_parents)
        price = check_number("penalty", penalty, 0, ends="(]", cure="1 is the BIC's")
        inflation = np.ones((len(data.names),) * 2)
        if any(data.leaves_out):
            matrix, known = available_correlations(data)
            pairs = known[np.triu_indices(len(known), k=1)]
            rows = max(2, round(float(np.median(pairs))))
            inflation = np.maximum(rows / np.maximum(known, 1), 1.0)
        else:
            rows = data.n_samples
            with double_precision():
                matrix = np.asarray(
                    correlation.correlation_matrix(
                        np.column_stack([data.values(name) for name in data.names])
                    )
                )
        self._correlation = matrix + _RIDGE * np.eye(len(matrix))
        self._half_rows = rows / 2
        least = min(_LEAST_PRICE, math.log(rows))
        self._prices = price / 2 * inflation * np.maximum(np.log(rows / inflation), least)

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        prices = np.array([self._prices[node, list(family)].sum() for family in families])
        logs = log_conditional_variances(self._correlation, node, families)
        return -self._half_rows * logs - prices


def available_correlations(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Correlations of numeric columns, each from the rows that know both, made positive definite;
    and the numbers of such rows, (d, d).  Unbiased where cells are missing completely at random.

    Pairs of which a column is constant, or that fewer than 8 rows know, have correlation 0.
    """
    names = data.names
    matrix, rows = np.eye(len(names)), np.zeros((len(names),) * 2)
    known = [~data.is_missing(name) for name in names]
    for i in range(len(names)):
        for j in range(i):
            both = known[i] & known[j]
            rows[i, j] = rows[j, i] = both.sum()
            if rows[i, j] >= _FEW_ROWS:
                x, y = (standardised(data.values(names[v])[both]) for v in (i, j))
                matrix[i, j] = matrix[j, i] = np.clip(np.mean(x * y), -1.0, 1.0)
    values, vectors = np.linalg.eigh(matrix)
    positive = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(positive))
    return positive / scale / scale[:, None], rows


def log_conditional_variances(
    correlation: np.ndarray, node: int, families: Sequence[tuple[int, ...]]
) -> np.ndarray:
    """log Var(v | P) for many parent sets P of one node v, float64 (len(families),).

    Args:
        correlation: positive definite, float64 (d, d).
    """
    logs = np.empty(len(families))
    sizes = np.array([len(family) for family in families])
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size)
        variables = np.array([(node, *families[place]) for place in places.tolist()])
        blocks = correlation[variables[:, :, None], variables[:, None, :]][:, ::-1, ::-1]
        # Var(v | P) is the squared last pivot of the Cholesky factor with v last.
        pivots = np.diagonal(np.linalg.cholesky(blocks), axis1=1, axis2=2)
        logs[places] = 2 * np.log(pivots[:, -1])
        singular = (pivots**2 < _NEARLY_SINGULAR).any(axis=1)
        if singular.any():
            some = blocks[singular]
            logs[places[singular]] = _log_volumes(some) - _log_volumes(some[:, :-1, :-1])
    return logs


def _log_volumes(blocks: np.ndarray) -> np.ndarray:
    """Log determinants, (B, k, k) -> (B,); an eigenvalue below what rounding leaves counts as that,
    and so does not depend on the order of rows or on the processor.
    """
    found: np.ndarray = np.log(np.maximum(np.linalg.eigvalsh(blocks), _LEAST_VOLUME)).sum(axis=1)
    return found
