"""Fisher's z: partial correlation of numeric columns."""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, require_columns
from jaxcd.data import Categorical
from jaxcd.data.rows import Rows
from jaxcd.data.shards import Shards
from jaxcd.errors import DomainError
from jaxcd.ops import block_units, correlation, double_precision, tails
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["FisherZ", "PreparedPartialCorrelation"]

_BATCH = 1024
# |r| = 1 (one column a function of the other) gives the largest finite z instead of infinity.
_LARGEST = 1 - 2.0**-52


class PreparedPartialCorrelation(PreparedTest):
    """A test of partial correlations by a z that is standard normal under independence."""

    def admissible(self, query: Query) -> bool:
        return self.n_samples - len(query.given) - 3 > 0

    def bucket(self, query: Query) -> Hashable:
        return len(query.given)

    def batch_size(self, bucket: Hashable) -> int:
        return _BATCH

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        z = self._z(np.array([(q.x, q.y, *q.given) for q in queries]))
        return Evaluation(
            z, tails.normal_two_sided_log_pvalue(z), np.abs(z) - tails.normal_quantile(alpha / 2)
        )

    @abc.abstractmethod
    def _z(self, variables: np.ndarray) -> np.ndarray:
        """The statistics of queries, float64 (B,); variables: integers (B, 2 + s), x, y, S."""


class _PreparedCorrelation(PreparedPartialCorrelation):
    """By a correlation matrix; ``part`` is the test on the rows of a mask."""

    def __init__(
        self,
        n_samples: int,
        matrix: jax.Array | np.ndarray,
        part: Callable[[np.ndarray], PreparedTest],
    ) -> None:
        self.n_samples, self._matrix, self._part = n_samples, matrix, part

    def _z(self, variables: np.ndarray) -> np.ndarray:
        n_queries, width = variables.shape
        padded = np.zeros((_BATCH, width), dtype=np.int32)
        padded[:n_queries] = variables
        with double_precision():
            r = np.asarray(correlation.partial_correlations(self._matrix, padded))[:n_queries]
        return np.sqrt(self.n_samples - width - 1) * np.arctanh(np.clip(r, -_LARGEST, _LARGEST))

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        return self._part(rows)


def _of_values(values: np.ndarray) -> PreparedTest:
    with double_precision():
        matrix = correlation.correlation_matrix(values)
    return _PreparedCorrelation(len(values), matrix, lambda rows: _of_values(values[rows]))


def _of_shards(data: Shards) -> PreparedTest:
    blocks = data.in_blocks()
    columns = [blocks.put(data.column(name).astype(np.float64)) for name in data.names]
    matrix = block_units.correlation_matrix(blocks, columns)
    return _PreparedCorrelation(data.n_samples, matrix, lambda rows: _of_shards(data.where(rows)))


@dataclass(frozen=True)
class FisherZ(CITest):
    r"""The test of a partial correlation by Fisher's z, for numeric columns.

    With r the partial correlation of x and y given S, the statistic

        z = sqrt(n - |S| - 3) artanh(r)

    is standard normal under independence if the data are jointly normal.  Margin: |z| minus the
    normal quantile at 1 - alpha / 2.  Columns: numeric, or ordinal by their level codes.  A
    constant column has r = 0.  Sensitivity: none is proved, because the correlation of unbounded
    columns has none, so that a private run refuses the test.

    Source:
        Fisher 1924; Anderson, *An Introduction to Multivariate Statistical Analysis*, section 4.3.

    Example:
        >>> import jaxcd, numpy as np
        >>> cause = np.random.default_rng(0).normal(size=(500, 1))
        >>> values = cause + np.random.default_rng(1).normal(size=(500, 2))
        >>> data = jaxcd.Dataset.from_array(np.hstack([cause, values]))
        >>> for given in [], ["x1"]:
        ...     answer = jaxcd.ci_test(
        ...         data, "x2", "x3", given=given, test=jaxcd.FisherZ(), budget=jaxcd.NO_PRIVACY
        ...     )
        ...     print(given, answer.independent, round(answer.statistic, 1))
        [] False 11.2
        ['x1'] True -1.2
    """

    assumes = "jointly normal columns"
    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="columns are unbounded",
        proven=False,
        assumptions="-",
    )

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data = require_columns(data, self.name)
        for name in data.names:
            if isinstance(data.domain[name], Categorical):
                raise DomainError(
                    f"FisherZ needs numbers, but {name!r} is categorical; use KCI, which takes all "
                    "kinds of columns, or ChiSquare where all are discrete"
                )
        if isinstance(data, Shards):
            return _of_shards(data)
        return _of_values(
            np.column_stack([data.column(name).astype(np.float64) for name in data.names])
        )
