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
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, require_columns
from jaxcd.citests.block_regressions import BlockRegressions
from jaxcd.citests.column_maps import mapped
from jaxcd.citests.regressions import Regressions
from jaxcd.data import Categorical
from jaxcd.data.rows import Rows
from jaxcd.data.shards import Shards
from jaxcd.errors import DomainError
from jaxcd.ops import block_units
from jaxcd.ops.row_blocks import RowBlocks, over_rows

__all__ = [
    "MOST_LEVELS",
    "PreparedProducts",
    "ProductTest",
    "Products",
    "ProductsInMemory",
    "Residuals",
    "ResidualsInBlocks",
    "ResidualsInMemory",
]

_LEAST_ROWS = 8
_CACHE_BYTES = 1 << 30
# The choice among regressions looks at the first rows, so these must not be special.  Drawn without
# the data, and the same at every call: a p-value has no randomness of its own.
_ORDER = 20_231


def positions_of_labels(data: Rows, test: str) -> tuple[int, ...]:
    """The positions of the columns whose numbers are labels.

    Raises:
        DomainError: fewer than 8 rows.
    """
    if data.n_samples < _LEAST_ROWS:
        raise DomainError(
            f"{test} needs at least {_LEAST_ROWS} rows, and there are {data.n_samples}; use more "
            "data"
        )
    kinds = [data.domain[name] for name in data.names]
    return tuple(v for v, kind in enumerate(kinds) if isinstance(kind, Categorical))


class Products(abc.ABC):
    """Products (m, n) of which a test needs sums over the rows.

    Attributes:
        n: the number of rows.
        null: their covariance under independence, (m, m), where their own says little of it
            (:meth:`Residuals.null`); else None.
    """

    n: int
    null: np.ndarray | None

    @abc.abstractmethod
    def total(self) -> np.ndarray:
        """Their sums, (m,)."""

    @abc.abstractmethod
    def outer(self) -> np.ndarray:
        """The sum over rows of the products of any two, (m, m)."""

    @abc.abstractmethod
    def weighted_outer(self) -> np.ndarray:
        """The same as :meth:`outer`, each row weighted by its sum of squares, (m, m)."""

    @abc.abstractmethod
    def sixth(self) -> float:
        """The sum over rows of the cubes of their sums of squares."""

    @abc.abstractmethod
    def mean(self) -> np.ndarray:
        """(m,)."""

    @abc.abstractmethod
    def mean_square(self) -> np.ndarray:
        """(m,)."""

    @abc.abstractmethod
    def correlation(self, scale: np.ndarray, proper: np.ndarray) -> np.ndarray:
        """The covariance of any two, over their scales, (m, m); 0 for those that are not proper."""


class ProductsInMemory(Products):
    """Of rows in memory.

    Args:
        parts: what is multiplied, (k, n) each: the residuals of x, of y, and functions of Z.
        null: as in :class:`Products`.
    """

    def __init__(self, parts: Sequence[np.ndarray], null: np.ndarray | None = None) -> None:
        one, other, weights = parts
        values = one[:, None, None, :] * other[None, :, None, :] * weights
        self.n, self._values = values.shape[-1], values.reshape(-1, values.shape[-1])
        self.null = null

    def total(self) -> np.ndarray:
        return self._values.sum(axis=1)

    def outer(self) -> np.ndarray:
        return self._values @ self._values.T

    def weighted_outer(self) -> np.ndarray:
        return (self._values * np.sum(self._values**2, axis=0)) @ self._values.T

    def sixth(self) -> float:
        return float(np.sum(np.sum(self._values**2, axis=0) ** 3))

    def mean(self) -> np.ndarray:
        return self._values.mean(axis=1)

    def mean_square(self) -> np.ndarray:
        return (self._values**2).mean(axis=1)

    def correlation(self, scale: np.ndarray, proper: np.ndarray) -> np.ndarray:
        moved = self._values - self.mean()[:, None]
        unit = np.where(proper[:, None], moved / scale[:, None], 0.0)
        return unit @ unit.T / self.n


class _ProductsInBlocks(Products):
    def __init__(
        self, blocks: RowBlocks, parts: Sequence[jax.Array], n: int, null: np.ndarray | None
    ) -> None:
        self.n, self._blocks, self._parts, self.null = n, blocks, parts, null
        self._known: dict[str, np.ndarray] = {}

    def _sum(self, function: Callable[..., jax.Array]) -> np.ndarray:
        name = function.__name__
        if name not in self._known:
            parts = self._parts
            self._known[name] = self._blocks.sums(function, parts, n_parts=len(parts))
        return self._known[name]

    def total(self) -> np.ndarray:
        return self._sum(_total_product)

    def outer(self) -> np.ndarray:
        return self._sum(_outer_product)

    def weighted_outer(self) -> np.ndarray:
        return self._sum(_weighted_outer_product)

    def sixth(self) -> float:
        return float(self._sum(_sixth_product)[0])

    def mean(self) -> np.ndarray:
        return self.total() / self.n

    def mean_square(self) -> np.ndarray:
        return np.diag(self.outer()) / self.n

    def correlation(self, scale: np.ndarray, proper: np.ndarray) -> np.ndarray:
        covariance = self.outer() / self.n - np.outer(self.mean(), self.mean())
        both = np.outer(proper, proper)
        return np.where(both, covariance / np.where(both, np.outer(scale, scale), 1.0), 0.0)


_FEW_MEETINGS = 10
#: A numeric column of at most so many values has few.
MOST_LEVELS = 9


def _sparse_covariance(
    squares: Sequence[np.ndarray], fourths: Sequence[np.ndarray], n: int, *, by_column: bool
) -> np.ndarray | None:
    """The covariance of products of residuals that are independent of each other and of Z, from the
    parts' outer products and :func:`_fourths`; None where they are not sparse.
    """
    rows = []
    for square, fourth in zip(squares[:2], fourths[:2], strict=True):
        sums = np.append(np.diag(square), np.trace(square))
        found = np.where(fourth > 0, sums**2 / np.where(fourth > 0, fourth, 1.0), n)
        rows.append(float(found.min() if by_column else found[-1]))
    if rows[0] * rows[1] >= _FEW_MEETINGS * n:
        return None
    covariance: np.ndarray = np.ones((1, 1))
    for square in squares:
        covariance = np.kron(covariance, square / n)
    return covariance


def _fourths(part: Any, xp: Any) -> Any:
    """Sums over rows of the fourth powers of each column and of the length, (n, k) -> (k + 1,)."""
    squares = part**2
    lengths = squares.sum(axis=1, keepdims=True)
    return xp.sum(xp.concatenate([squares, lengths], axis=1) ** 2, axis=0)


class Residuals(abc.ABC):
    """Where a test's residuals come from.  n: rows.  labels: positions of labels."""

    n: int
    labels: frozenset[int]

    def __init__(self) -> None:
        self._few: dict[int, bool] = {}

    @abc.abstractmethod
    def _whole(self, v: int) -> np.ndarray:
        """The numbers of a column, (n,)."""

    def has_few_levels(self, v: int) -> bool:
        """Whether a column is of labels, or has at most nine values."""
        if v not in self._few:
            whole = self._whole(v)
            # mostly the first rows show more
            few = len(np.unique(whole[:1000])) <= MOST_LEVELS
            self._few[v] = v in self.labels or (few and len(np.unique(whole)) <= MOST_LEVELS)
        return self._few[v]

    def null(
        self,
        config: ProductTest,
        x: int,
        y: int,
        squares: Callable[[], Sequence[np.ndarray]],
        fourths: Callable[[], Sequence[np.ndarray]],
        common: Callable[[], float],
    ) -> np.ndarray | None:
        """The covariance of the products under independence, from the residuals by themselves,
        where x and y are rare events; else None.

        Two events of 1 % meet in .2 of 2,000 rows.  Where they never meet, no product shows what
        one meeting would add, and a test by the products' own variance called them dependent in
        .70 of 20 data sets.  Given Z the variance of a product is that of x times that of y.

        Residuals r, (k,) a row, count as so many rows, (sum |r|^2)^2 / sum |r|^4; of columns of few
        values fewer than ten common ones are few.

        Args:
            config: the test; whether one column of residuals, such as a rare level, is enough.
            x: a column.
            y: another.
            squares: the outer products of each part.
            fourths: the sums of fourth powers of each part.
            common: the mean product of both variances given Z over the product of their means.
        """
        if not (self.has_few_levels(x) and self.has_few_levels(y)):
            return None
        found = _sparse_covariance(squares(), fourths(), self.n, by_column=config.by_column)
        # of a constant there is nothing to scale, and its variance divides nothing
        return found if found is None or not found.any() else found * common()

    @property
    @abc.abstractmethod
    def n_factorisations(self) -> int:
        """How often a Gram matrix of all rows was factorised."""

    @abc.abstractmethod
    def products(self, config: ProductTest, x: int, y: int, given: tuple[int, ...]) -> Products:
        """Those of the test's residuals and weights."""


class PreparedProducts(PreparedTest):
    """A test by the means of products of residuals.

    Args:
        residuals: where they come from.
        config: the test.
    """

    def __init__(self, residuals: Residuals, config: ProductTest) -> None:
        self.n_samples, self._residuals, self._config = residuals.n, residuals, config

    @property
    def work(self) -> dict[str, int]:
        return {"n_factorisations": self._residuals.n_factorisations}

    def bucket(self, query: Query) -> tuple[int, ...]:
        return query.given

    def batch_size(self, bucket: Any) -> int:
        return 1 << 16

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        rows = [
            self._config.answer(
                self._residuals.products(self._config, query.x, query.y, bucket), alpha
            )
            for query in queries
        ]
        return Evaluation(*np.array(rows, dtype=np.float64).T)


class ResidualsInMemory(Residuals):
    """Of rows in memory.

    Args:
        values: (n, d).
        labels: positions of labels.
        rank: of the regressions.
    """

    def __init__(self, values: np.ndarray, labels: tuple[int, ...], rank: int) -> None:
        super().__init__()
        self.n = len(values)
        self.values, self.labels = values, frozenset(labels)
        self.regressions = Regressions(values, labels=labels, rank=rank)
        self._residuals: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}
        self._weights: tuple[tuple[int, ...], np.ndarray] | None = None

    @property
    def n_factorisations(self) -> int:
        return self.regressions.n_factorisations

    def products(self, config: ProductTest, x: int, y: int, given: tuple[int, ...]) -> Products:
        if self._weights is None or self._weights[0] != given:
            self._forget(given)
            self._weights = given, config.weights(self, given)
        parts = [*(self._residual(config, v, given) for v in (x, y)), self._weights[1]]

        def common() -> float:
            sizes = np.column_stack([np.sum(part**2, axis=0) for part in parts[:2]])
            fit = sizes - self.regressions.residuals(given, sizes) if given else sizes.mean(axis=0)
            fit = np.maximum(fit, 0.0)
            return float(np.mean(np.prod(fit, axis=-1)) / np.prod(sizes.mean(axis=0)))

        null = self.null(
            config,
            x,
            y,
            lambda: [part @ part.T for part in parts],
            lambda: [_fourths(part.T, np) for part in parts],
            common,
        )
        return ProductsInMemory(parts, null)

    def _forget(self, given: tuple[int, ...]) -> None:
        held = sum(array.nbytes for array in self._residuals.values()) + self.regressions.nbytes
        if held > _CACHE_BYTES:
            self._residuals = {k: v for k, v in self._residuals.items() if k[1] == given}
            self.regressions.keep(given)

    def _whole(self, v: int) -> np.ndarray:
        found: np.ndarray = self.values[:, v]
        return found

    def columns(self, v: int) -> np.ndarray:
        """A column as numbers: standardised (n, 1), or indicators (n, levels - 1) of labels."""
        column = self.values[:, v]
        if v not in self.labels:
            return mapped(column, "target")[:, None]
        return mapped(column, "labels")

    def _residual(self, config: ProductTest, v: int, given: tuple[int, ...]) -> np.ndarray:
        if (v, given) not in self._residuals:
            found = config.residual(self, v, given)
            self._residuals[v, given] = np.ascontiguousarray(found.T)
        return self._residuals[v, given]


class ResidualsInBlocks(Residuals):
    """Of rows on several devices.

    Args:
        data: the rows.
        labels: positions of labels.
        rank: of the regressions.
    """

    def __init__(self, data: Shards, labels: tuple[int, ...], rank: int) -> None:
        super().__init__()
        self.n, self.labels = data.n_samples, frozenset(labels)
        self.blocks = data.in_blocks()
        self._numbers = data.numbers_in(_order(self.n))
        self.regressions = BlockRegressions(self.blocks, self._numbers, labels=labels, rank=rank)
        self._residuals: dict[tuple[int, tuple[int, ...]], jax.Array] = {}

    @property
    def n_factorisations(self) -> int:
        return self.regressions.n_factorisations

    def products(self, config: ProductTest, x: int, y: int, given: tuple[int, ...]) -> Products:
        parts = [*(self._residual(config, v, given) for v in (x, y))]
        weights = config.block_weights(self, given)
        if weights is not None:
            parts.append(weights)
        blocks = self.blocks

        def common() -> float:
            sizes = [blocks.rows(_length_of, [part]) for part in parts[:2]]
            means = [block_units.mean(blocks, size) for size in sizes]
            if not given:
                return 1.0
            left = self.regressions.residuals(given, sizes)
            product = blocks.sums(_product_of_fits, [*sizes, *left])
            return float(product) / self.n / float(np.prod(means))

        null = self.null(
            config,
            x,
            y,
            lambda: [blocks.sums(_outer_of, [part]) for part in parts],
            lambda: [blocks.sums(_fourths_of, [part]) for part in parts],
            common,
        )
        return _ProductsInBlocks(blocks, parts, self.n, null)

    def _residual(self, config: ProductTest, v: int, given: tuple[int, ...]) -> jax.Array:
        if (v, given) not in self._residuals:
            if sum(array.nbytes for array in self._residuals.values()) > _CACHE_BYTES:
                self._residuals.clear()
            found = config.block_residual(self, v, given)
            self._residuals[v, given] = block_units.joined(self.blocks, found)
        return self._residuals[v, given]

    def _whole(self, v: int) -> np.ndarray:
        return self._numbers(v)

    def columns(self, v: int) -> list[jax.Array]:
        """A column as numbers, rows () each: standardised, or the indicators of labels."""
        found = self.regressions.column(v, "target")
        return block_units.parted(self.blocks, found) if v in self.labels else [found]

    def centred(self, columns: Sequence[jax.Array]) -> list[jax.Array]:
        """Less their means."""
        return [block_units.centred(self.blocks, column) for column in columns]


def _products(parts: Sequence[jax.Array]) -> jax.Array:
    """Of rows (k,), (l,) and perhaps (w,): rows (k l w,)."""
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).reshape(len(found), -1)
    return found


def _length_of(part: jax.Array, real: jax.Array) -> jax.Array:
    return jnp.sum(part**2, axis=1)


def _product_of_fits(
    x: jax.Array, y: jax.Array, left_x: jax.Array, left_y: jax.Array, real: jax.Array
) -> jax.Array:
    """Of what regressions say of two columns, at least zero."""
    found = jnp.maximum(x - left_x, 0.0) * jnp.maximum(y - left_y, 0.0)
    return jnp.sum(jnp.where(real, found, 0.0))


def _outer_of(part: jax.Array, real: jax.Array) -> jax.Array:
    return over_rows(part, part)


def _fourths_of(part: jax.Array, real: jax.Array) -> jax.Array:
    found: jax.Array = _fourths(part, jnp)
    return found


def _total_product(*given: jax.Array, n_parts: int) -> jax.Array:
    return jnp.sum(_products(given[:n_parts]), axis=0)


def _outer_product(*given: jax.Array, n_parts: int) -> jax.Array:
    found = _products(given[:n_parts])
    return over_rows(found, found)


def _weighted_outer_product(*given: jax.Array, n_parts: int) -> jax.Array:
    found = _products(given[:n_parts])
    return over_rows(found * jnp.sum(found**2, axis=1, keepdims=True), found)


def _sixth_product(*given: jax.Array, n_parts: int) -> jax.Array:
    return jnp.sum(jnp.sum(_products(given[:n_parts]) ** 2, axis=1) ** 3, keepdims=True)


def _order(n: int) -> np.ndarray:
    return np.random.default_rng(_ORDER).permutation(n)


class ProductTest(CITest):
    """A test by the means of products of residuals.

    Attributes:
        by_column: whether its answer may rest on one column of residuals alone.
    """

    rank: int
    by_column: ClassVar[bool] = False

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        rows = require_columns(data, self.name)
        labels = positions_of_labels(rows, self.name)
        if isinstance(rows, Shards):
            return PreparedProducts(ResidualsInBlocks(rows, labels, self.rank), self)
        values = np.column_stack([rows.column(name).astype(np.float64) for name in rows.names])
        values = values[_order(len(values))]
        return PreparedProducts(ResidualsInMemory(values, labels, self.rank), self)

    @abc.abstractmethod
    def residual(self, of: ResidualsInMemory, v: int, given: tuple[int, ...]) -> np.ndarray:
        """Functions of column v less their regressions on Z: (n, k)."""

    @abc.abstractmethod
    def block_residual(
        self, of: ResidualsInBlocks, v: int, given: tuple[int, ...]
    ) -> list[jax.Array]:
        """The same of rows in blocks, rows () each."""

    def weights(self, of: ResidualsInMemory, given: tuple[int, ...]) -> np.ndarray:
        """Functions of Z: (w, n)."""
        return np.ones((1, of.n))

    def block_weights(self, of: ResidualsInBlocks, given: tuple[int, ...]) -> jax.Array | None:
        """The same of rows in blocks, rows (w,); None for the constant 1."""
        return None

    @abc.abstractmethod
    def answer(self, products: Products, alpha: float) -> tuple[float, float, float]:
        """Statistic, logarithm of the p-value and margin."""
