r"""Priv-PC's statistic: the weighted average of Kendall's tau over the strata, as its authors' code computes it.

In stratum k of the conditioning set let n_k be its size, tau_k its concordant minus discordant pairs over n_k (n_k - 1) / 2, and
s_k = (4 n_k + 10) / (9 n_k (n_k - 1)) the variance of tau_k under independence without ties.  Then

    T = sum_k (tau_k / s_k) / sqrt(sum_k 1 / s_k),        p = P(N(0, 1) >= |T|),

over the strata of more than two records in which neither column is constant; with an empty conditioning set there is one
stratum of any size.  Where no stratum is left, T and p are NaN: every comparison with them is false, in either direction.

**Why no mechanism can make it private.**  The paper and its code take the sensitivity of p to be Phi(6 / sqrt(n)) - 1/2.  It
is nearly 1/2, the whole range of p: one record can bring a large stratum from "constant, dropped" into the denominator,
beside which a small strongly dependent one vanishes.  And one record turns NaN, under which an edge is never removed, into a
p-value near 1/2, under which it nearly always is: no finite epsilon holds (PRIVACY.md B1).

The authors' code moreover overflows int64 in its variance for skewed columns at n near 100,000, and drops such strata; that
is not imitated here.

Source: Wang, Pang, Song 2020, *Towards practical differentially private causal graph discovery*, section 5.3, and its code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.citests import CITest, Evaluation, PreparedTest, Query
from jaxcd.citests.base import require_data
from jaxcd.citests.tables import PreparedTables, TableShape, discrete_cardinalities
from jaxcd.data import Dataset
from jaxcd.ops import association, double_precision, tails

__all__ = ["ConditionalTau"]


@partial(jax.jit, static_argnames="smallest")
def _weighted_tau(tables: jax.Array, smallest: int) -> jax.Array:
    """T of each table, NaN where no stratum is left.  tables: counts (batch, K, A, B).  smallest: the least n_k that counts."""
    sums = association.kendall_sums(tables)
    varies = ((tables.sum(axis=-1) > 0).sum(axis=-1) > 1) & ((tables.sum(axis=-2) > 0).sum(axis=-1) > 1)
    kept = varies & (sums.size >= smallest)
    size = jnp.where(kept, sums.size, 2.0)
    # tau / s = S / (n (n - 1) / 2) * 9 n (n - 1) / (4 n + 10) = 9 S / (2 n + 5)
    numerator = jnp.where(kept, 9 * sums.concordance / (2 * size + 5), 0).sum(axis=-1)
    weight = jnp.where(kept, 9 * size * (size - 1) / (4 * size + 10), 0).sum(axis=-1)
    return jnp.where(weight > 0, numerator / jnp.sqrt(jnp.where(weight > 0, weight, 1)), jnp.nan)


class _PreparedTau(PreparedTest):
    """Codes, and their tables; kept as bytes, which makes the many small subsamples of Priv-PC cheap."""

    def __init__(self, codes: np.ndarray, cardinalities: Sequence[int]) -> None:
        self.n_samples = int(codes.shape[0])
        self._codes = codes
        self._cardinalities = tuple(cardinalities)
        self._tables = PreparedTables(codes, self._cardinalities, self._no_statistic)

    @staticmethod
    def _no_statistic(tables: np.ndarray, alpha: float) -> Evaluation:
        raise NotImplementedError("the statistic needs the bucket as well; see evaluate")

    def admissible(self, query: Query) -> bool:
        return self._tables.admissible(query)

    def bucket(self, query: Query) -> TableShape:
        return self._tables.bucket(query)

    def batch_size(self, bucket: TableShape) -> int:
        return self._tables.batch_size(bucket)

    def evaluate(self, bucket: TableShape, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        tables = self._tables.tables(bucket, queries)
        with double_precision():
            values = np.asarray(_weighted_tau(tables, 3 if bucket.n_given else 2))
        statistic = values[: len(queries)]
        log_pvalue = tails.normal_log_sf(np.abs(statistic))
        return Evaluation(statistic, log_pvalue, np.log(alpha) - log_pvalue)

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        chosen = np.take(self._codes.T, np.flatnonzero(rows), axis=1).T
        return _PreparedTau(chosen, self._cardinalities)


@dataclass(frozen=True)
class ConditionalTau(CITest):
    r"""The published conditional Kendall's tau of Priv-PC: T = sum_k (tau_k / s_k) / sqrt(sum_k 1 / s_k), p = P(N(0, 1) >= |T|).

    Strata of at most two records and strata with a constant column are dropped; NaN where none is left.  The p-value is
    one-sided, as published, so that its largest value is 1/2.  Margin: log(alpha) - log(p), NaN where p is.
    Columns: categorical or ordinal, in the order of their levels.

    Guarantee
    ---------
    None: its sensitivity is near the whole range of p, and NaN admits no bound at all (module docstring); mechanisms refuse
    it.  :class:`jaxcd.KendallTau` is the statistic that replaces it.

    Source: Wang, Pang, Song 2020, section 5.3, and its code.
    """

    def prepare(self, data: Dataset | None) -> PreparedTest:
        data = require_data(data, self.name)
        cardinalities = discrete_cardinalities(data, self.name, "declare it ordinal with levels")
        kind = np.uint8 if max(cardinalities) <= 256 else np.int32
        return _PreparedTau(np.asfortranarray(data.codes, dtype=kind), cardinalities)
