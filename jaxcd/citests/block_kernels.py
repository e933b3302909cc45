"""Batches of kernel tests of rows in blocks on several devices: as
:mod:`jaxcd.citests.kernel_batches`, of which it gives the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from jaxcd.citests.base import Query
from jaxcd.citests.block_regressions import BlockRegressions
from jaxcd.citests.kernel_batches import LOST, POOL_BYTES, Target
from jaxcd.ops import block_units
from jaxcd.ops.features import FourierKernel
from jaxcd.ops.hsic import N_LEADING
from jaxcd.ops.row_blocks import RowBlocks

__all__ = ["BlockPool", "edge_of"]


class _Features(NamedTuple):
    """Rows of centred features or of their leading components, what lies at the devices' ends, and
    the share of the trace that is lost.
    """

    rows: jax.Array
    edges: jax.Array
    lost: float


def edge_of(count: int) -> int:
    """How many rows beyond a block's ends so many shifts reach."""
    return count + int(count**0.5) + 1


class BlockPool:
    """Features of targets (a column, given others), made when they are first needed.

    Args:
        regressions: where the targets come from.
        blocks: where the rows are.
        kernel: of the features.
        dtype: "float32" (leading components are kept) or "float64".
        ties: statistics that differ by this share count as equal.
    """

    def __init__(
        self,
        regressions: BlockRegressions,
        blocks: RowBlocks,
        kernel: FourierKernel,
        *,
        dtype: str,
        ties: float,
    ) -> None:
        self._regressions, self._blocks = regressions, blocks
        self._kernel, self._dtype, self._ties = kernel, dtype, ties
        self._units: dict[Target, jax.Array] = {}
        self._made: dict[tuple[Target, bool], _Features] = {}
        self.n_residuals = 0

    @property
    def n_factorisations(self) -> int:
        """How often a Gram matrix of all rows was factorised."""
        return self._regressions.n_factorisations

    def ask(
        self, queries: Sequence[Query], *, first: int, rank: int, count: int, orders: None = None
    ) -> np.ndarray:
        """As :meth:`jaxcd.citests.kernel_batches.FeaturePool.ask`, of more rows than shifts."""
        found = np.empty((len(queries), 3))
        for i in sorted(range(len(queries)), key=lambda i: (queries[i].given, i)):
            query = queries[i]
            targets = (query.x, query.given), (query.y, query.given)
            leading = self._dtype == "float32"
            pair = [self._features(target, leading=leading) for target in targets]
            if max(each.lost for each in pair) > LOST:
                pair = [self._features(target, leading=False) for target in targets]
            found[i] = self._answer(pair[0], pair[1], first, rank, count)
        return found

    def _answer(
        self, phi: _Features, psi: _Features, first: int, rank: int, count: int
    ) -> tuple[float, int, float]:
        edges = phi.edges, psi.edges
        products = self._blocks.turned(phi.rows, psi.rows, edges, first, count)
        shifted = np.sum((products / self._blocks.n) ** 2, axis=(1, 2))
        observed, others = shifted[-first], np.delete(shifted, -first)
        as_large = int(np.sum(others >= observed * (1 - self._ties)))
        return observed, as_large, np.sort(others)[count - 1 - rank]

    def _features(self, target: Target, *, leading: bool) -> _Features:
        if (target, leading) not in self._made:
            if sum(each.rows.nbytes for each in self._made.values()) > POOL_BYTES:
                self._made.clear()
                self._units.clear()
            blocks = self._blocks
            phi = block_units.centred_features(
                blocks, self._unit(target), self._kernel, self._dtype
            )
            lost = 0.0
            if leading and phi.shape[-1] > N_LEADING:
                phi, lost = block_units.leading_rows(blocks, phi, N_LEADING)
            self._made[target, leading] = _Features(phi, blocks.edges(phi), lost)
        return self._made[target, leading]

    def _unit(self, target: Target) -> jax.Array:
        if target not in self._units:
            v, given = target
            column = self._regressions.column(v, "target" if given else "raw")
            if given:
                (column,) = self._regressions.standardised_residuals(given, [column])
                self.n_residuals += 1
            self._units[target] = block_units.robust_unit(self._blocks, column)
        return self._units[target]
