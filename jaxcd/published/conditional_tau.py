r"""Priv-PC's statistic: the weighted average of Kendall's tau over the strata, as its authors' code
computes it.

In stratum k of the conditioning set let n_k be its size, tau_k its concordant minus discordant
pairs over n_k (n_k - 1) / 2, and s_k = (4 n_k + 10) / (9 n_k (n_k - 1)) the variance of tau_k under
independence without ties.  Then

    T = sum_k (tau_k / s_k) / sqrt(sum_k 1 / s_k),        p = P(N(0, 1) >= |T|),

over the strata of more than two records in which neither column is constant; with an empty
conditioning set there is one stratum of any size.  Where no stratum is left, T and p are NaN: every
comparison with them is false, in either direction.

**Why no mechanism can make it private.**  The paper and its code take the sensitivity of p to be
Phi(6 / sqrt(n)) - 1/2.  It is nearly 1/2, the whole range of p: one record can bring a large
stratum from "constant, dropped" into the denominator, beside which a small strongly dependent one
vanishes.  And one record turns NaN, under which an edge is never removed, into a p-value near 1/2,
under which it nearly always is: no finite epsilon holds (PRIVACY.md B1).

The authors' code moreover overflows int64 in its variance for skewed columns at n near 100,000, and
drops such strata; that is not imitated here.

Source:
    Wang, Pang, Song 2020, *Towards practical differentially private causal graph discovery*,
    section 5.3, and its code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.citests import Evaluation, PreparedTest, Query
from jaxcd.citests.base import require_data
from jaxcd.citests.tables import MAX_CELLS, DiscreteTest, discrete_cardinalities
from jaxcd.data.rows import Rows
from jaxcd.ops import association, contingency, double_precision, tails

__all__ = ["ConditionalTau"]

# Table entries in one call of the statistic, and the number of queries that a call is padded to
# where there are few.
_BATCH_ENTRIES = 1 << 14
_SMALL_BATCH = 16
# Counting on all rows costs less than taking the subsample out up to about this number of cells
# (profiled at n = 100,000).
_CELLS_ON_ALL_ROWS = 2048
# Tables of more cells are not counted by masks (jaxcd.ops.contingency), so a mask cannot restrict
# them.
_CELLS_OF_A_TABLE = 256


@partial(jax.jit, static_argnames="smallest")
def _weighted_tau(tables: jax.Array, smallest: int) -> jax.Array:
    """T of each table, NaN where no stratum is left.  tables: counts (batch, K, A, B).  smallest:
    the least n_k that counts.
    """
    sums = association.kendall_sums(tables)
    varies = ((tables.sum(axis=-1) > 0).sum(axis=-1) > 1) & (
        (tables.sum(axis=-2) > 0).sum(axis=-1) > 1
    )
    kept = varies & (sums.size >= smallest)
    size = jnp.where(kept, sums.size, 2.0)
    # tau / s = S / (n (n - 1) / 2) * 9 n (n - 1) / (4 n + 10) = 9 S / (2 n + 5)
    numerator = jnp.where(kept, 9 * sums.concordance / (2 * size + 5), 0).sum(axis=-1)
    weight = jnp.where(kept, 9 * size * (size - 1) / (4 * size + 10), 0).sum(axis=-1)
    return jnp.where(weight > 0, numerator / jnp.sqrt(jnp.where(weight > 0, weight, 1)), jnp.nan)


class _Shape(NamedTuple):
    """The bucket of a query: size of the conditioning set, and the shape of its padded table."""

    n_given: int
    n_strata: int
    n_rows: int
    n_columns: int


@dataclass(frozen=True)
class _Layout:
    """Shapes of calls, from the declared levels only.  cardinalities: of every column."""

    cardinalities: tuple[int, ...]

    def n_cells(self, query: Query) -> int:
        return math.prod(self.cardinalities[v] for v in (query.x, query.y, *query.given))

    def bucket(self, query: Query) -> _Shape:
        """Strata rounded up to a power of 4; levels to those of the widest column, or to powers of
        2 where that is large.
        """
        n_strata = math.prod(self.cardinalities[v] for v in query.given)
        padded = 1 << 2 * math.ceil((n_strata - 1).bit_length() / 2)
        width = max(self.cardinalities)
        if padded * width**2 <= _BATCH_ENTRIES:
            return _Shape(len(query.given), padded, width, width)
        n_rows, n_columns = (
            1 << (self.cardinalities[v] - 1).bit_length() for v in (query.x, query.y)
        )
        return _Shape(len(query.given), padded, n_rows, n_columns)

    def batch_size(self, bucket: _Shape) -> int:
        return 1 << max(0, (_BATCH_ENTRIES // math.prod(bucket[1:])).bit_length() - 1)

    def evaluate(
        self,
        masks: contingency.LevelMasks,
        bucket: _Shape,
        queries: Sequence[Query],
        alpha: float,
        *more: int,
    ) -> Evaluation:
        """Counts and statistic; ``more`` are columns that every query is conditioned on."""
        full = self.batch_size(bucket)
        n_padded = min(_SMALL_BATCH, full) if len(queries) <= _SMALL_BATCH else full
        tables = np.zeros((n_padded, *bucket[1:]), dtype=np.int32)
        variables = np.array([(q.x, q.y, *q.given, *more) for q in queries], dtype=np.int64)
        tables[: len(queries)] = contingency.count_tables(masks, variables, bucket[1:])
        with double_precision():
            statistic = np.asarray(_weighted_tau(tables, 3 if bucket.n_given else 2))[
                : len(queries)
            ]
        log_pvalue = tails.normal_log_sf(np.abs(statistic))
        return Evaluation(statistic, log_pvalue, np.log(alpha) - log_pvalue)


class _PreparedTau(PreparedTest):
    """All rows: level codes of one byte where they fit, column-major, and their bit masks."""

    def __init__(self, codes: np.ndarray, layout: _Layout) -> None:
        self.n_samples = int(codes.shape[0])
        self.codes = codes
        self.layout = layout
        self.masks = contingency.pack_levels(codes, layout.cardinalities)

    def admissible(self, query: Query) -> bool:
        shape = self.layout.bucket(query)
        return (
            self.layout.n_cells(query) <= MAX_CELLS
            and shape.n_strata * shape.n_rows * shape.n_columns <= 1 << 24
        )

    def bucket(self, query: Query) -> _Shape:
        return self.layout.bucket(query)

    def batch_size(self, bucket: _Shape) -> int:
        return self.layout.batch_size(bucket)

    def evaluate(self, bucket: _Shape, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        return self.layout.evaluate(self.masks, bucket, queries, alpha)

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        return _Subsample(self, np.asarray(rows, dtype=bool))


class _Subsample(PreparedTest):
    """Some of the rows.  Most subsamples are asked a handful of queries before the next one is
    drawn: these are counted on all rows, conditioned on a column of one level whose mask is the
    subsample's.  Only where more is asked are the rows taken out."""

    def __init__(self, whole: _PreparedTau, rows: np.ndarray) -> None:
        self.n_samples = int(np.count_nonzero(rows))
        self._whole = whole
        self._rows = rows
        self._n_cells = 0
        self._taken_out: _PreparedTau | None = None
        masks = whole.masks
        packed = np.zeros(masks.words.shape[1] * 4, dtype=np.uint8)
        packed[: -(-len(rows) // 8)] = np.packbits(rows)
        self._masks = contingency.LevelMasks(
            _with_first_row(masks.words, packed.view(np.uint32)),
            np.append(masks.offsets, np.int32(0)),
            np.append(masks.cardinalities, np.int32(1)),
            masks.codes,
        )

    def admissible(self, query: Query) -> bool:
        return self._whole.admissible(query)

    def bucket(self, query: Query) -> _Shape:
        return self._whole.bucket(query)

    def batch_size(self, bucket: _Shape) -> int:
        return self._whole.batch_size(bucket)

    def evaluate(self, bucket: _Shape, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        layout = self._whole.layout
        if self._taken_out is None:
            sizes = [layout.n_cells(query) for query in queries]
            self._n_cells += sum(sizes)
            if self._n_cells <= _CELLS_ON_ALL_ROWS and max(sizes) <= _CELLS_OF_A_TABLE:
                column = len(layout.cardinalities)
                return layout.evaluate(self._masks, bucket, queries, alpha, column)
            self._taken_out = _PreparedTau(
                np.take(self._whole.codes.T, np.flatnonzero(self._rows), axis=1).T, layout
            )
        return self._taken_out.evaluate(bucket, queries, alpha=alpha)


@jax.jit
def _with_first_row(words: jax.Array, row: jax.Array) -> jax.Array:
    return words.at[0].set(row)


@dataclass(frozen=True)
class ConditionalTau(DiscreteTest):
    r"""The published conditional Kendall's tau of Priv-PC: T = sum_k (tau_k / s_k) / sqrt(sum_k 1 /
    s_k), p = P(N(0, 1) >= |T|).

    Strata of at most two records and strata with a constant column are dropped; NaN where none is
    left.  The p-value is one-sided, as published, so that its largest value is 1/2.  Margin:
    log(alpha) - log(p), NaN where p is. Columns: categorical or ordinal, in the order of their
    levels.

    Guarantee:
        None: its sensitivity is near the whole range of p, and NaN admits no bound at all (module
        docstring); mechanisms refuse it.  :class:`jaxcd.KendallTau` is the statistic that replaces
        it.

    Source:
        Wang, Pang, Song 2020, section 5.3, and its code.
    """

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data = require_data(data, self.name)
        cardinalities = discrete_cardinalities(data, self.name, "declare it ordinal with levels")
        kind = np.uint8 if max(cardinalities) <= 256 else np.int32
        return _PreparedTau(
            np.asfortranarray(data.codes, dtype=kind), _Layout(tuple(cardinalities))
        )
