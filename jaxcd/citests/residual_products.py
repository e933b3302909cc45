r"""What the tests of residual products share: columns less their regressions on Z, multiplied.

If x and y are independent given Z, then for all functions f, g, w

    E[ (f(x) - E[f(x) | Z]) (g(y) - E[g(y) | Z]) w(Z) ] = 0,

whatever the laws of the errors: spread and shape may depend on Z, and columns may have few levels.
The mean of n such products has a normal law, and an error in one regression is multiplied by that
in the other: regressions need to be right to o(n^{-1/4}) each, not to o(n^{-1/2}) (Shah and Peters
2020).  A test chooses f, g, w and a norm of the means.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxcd.citests.base import Evaluation, PreparedTest, Query, require_data
from jaxcd.citests.regressions import Regressions, indicators
from jaxcd.data import Categorical
from jaxcd.data.rows import Rows
from jaxcd.errors import DomainError
from jaxcd.ops.standardising import standardised

__all__ = ["PreparedProducts", "columns_of"]

_LEAST_ROWS = 8
_CACHE_BYTES = 1 << 30
# The choice among regressions looks at the first rows, so these must not be special.  Drawn without
# the data, and the same at every call: a p-value has no randomness of its own.
_ORDER = 20_231


def columns_of(data: Rows | None, test: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """The columns as numbers (n, d), rows in a fixed random order, and the positions of labels.

    Raises:
        DomainError: fewer than 8 rows.
    """
    data = require_data(data, test)
    if data.n_samples < _LEAST_ROWS:
        raise DomainError(
            f"{test} needs at least {_LEAST_ROWS} rows, and there are {data.n_samples}; use more "
            "data"
        )
    values = np.column_stack([data.column(name).astype(np.float64) for name in data.names])
    labels = [v for v, name in enumerate(data.names) if isinstance(data.domain[name], Categorical)]
    return values[np.random.default_rng(_ORDER).permutation(len(values))], tuple(labels)


class PreparedProducts(PreparedTest):
    """A test by the means of products of residuals.

    Args:
        values: (n, d).
        labels: positions of the columns whose numbers are labels.
        rank: of the regressions.
    """

    def __init__(self, values: np.ndarray, labels: tuple[int, ...], rank: int) -> None:
        self.n_samples = len(values)
        self.values, self.labels = values, frozenset(labels)
        self.regressions = Regressions(values, labels=labels, rank=rank)
        self._residuals: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}

    @property
    def work(self) -> dict[str, int]:
        return {"n_factorisations": self.regressions.n_factorisations}

    def bucket(self, query: Query) -> tuple[int, ...]:
        return query.given

    def batch_size(self, bucket: Any) -> int:
        return 1 << 16

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        rows = []
        weights = self.weights(bucket)
        for query in queries:
            x, y = self._residual(query.x, bucket), self._residual(query.y, bucket)
            products = (x[:, None, None, :] * y[None, :, None, :] * weights).reshape(
                -1, self.n_samples
            )
            rows.append(self.answer(products, alpha))
        held = sum(array.nbytes for array in self._residuals.values()) + self.regressions.nbytes
        if held > _CACHE_BYTES:
            self._residuals = {k: v for k, v in self._residuals.items() if k[1] == bucket}
            self.regressions.keep(bucket)
        return Evaluation(*np.array(rows, dtype=np.float64).T)

    def columns(self, v: int) -> np.ndarray:
        """A column as numbers: standardised (n, 1), or indicators (n, levels - 1) of labels."""
        column = self.values[:, v]
        if v not in self.labels:
            return standardised(column)[:, None]
        return indicators(column)

    def _residual(self, v: int, given: tuple[int, ...]) -> np.ndarray:
        if (v, given) not in self._residuals:
            self._residuals[v, given] = np.ascontiguousarray(self.residual(v, given).T)
        return self._residuals[v, given]

    @abc.abstractmethod
    def residual(self, v: int, given: tuple[int, ...]) -> np.ndarray:
        """Functions of column v less their regressions on Z: (n, k)."""

    @abc.abstractmethod
    def weights(self, given: tuple[int, ...]) -> np.ndarray:
        """Functions of Z: (w, n)."""

    @abc.abstractmethod
    def answer(self, products: np.ndarray, alpha: float) -> tuple[float, float, float]:
        """Statistic, logarithm of the p-value and margin, of products (m, n)."""
