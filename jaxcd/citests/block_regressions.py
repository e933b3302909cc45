"""Regressions on a conditioning set of rows in blocks on several devices.

What :class:`jaxcd.citests.regressions.Regressions` does, by the same choice on the same first rows,
which every process is given; rows of factors, bases and residuals stay on their devices, and what
is added up over rows is added in an order that no number of devices moves
(:class:`jaxcd.ops.row_blocks.RowBlocks`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.citests import jumps
from jaxcd.citests.column_maps import mapped
from jaxcd.citests.regressions import (
    COLUMN_RANK,
    INDEX_RANK,
    LEAST_SHARE,
    MOST_CHOICE_ROWS,
    NOTHING,
    PENALTIES,
    Candidate,
    Regressions,
    joint_rank,
    parts_of_targets,
    with_kernel,
)
from jaxcd.ops import block_ridge, block_units, gram
from jaxcd.ops.row_blocks import RowBlocks, times

__all__ = ["BlockRegressions"]

Columns = tuple[int, ...]
_HELD = max(gram.N_SEARCHED, MOST_CHOICE_ROWS)  # first rows of a column that the host keeps
_CACHE_BYTES = 1 << 30  # of factorisations that are kept for reuse, on all devices


class BlockRegressions:
    """Regressions of targets, rows () in blocks, on sets of columns.

    Args:
        blocks: where the rows are.
        column: the whole column of a position, (n,), rows in random order.
        labels: positions of the columns whose numbers are labels.
        rank: pivots of the kernel of all columns.
        bandwidth: a factor of all bandwidths.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        column: Callable[[int], np.ndarray],
        *,
        labels: Sequence[int] = (),
        rank: int,
        bandwidth: float = 1.0,
    ) -> None:
        self._blocks, self._whole = blocks, column
        self._rank, self._bandwidth = rank, bandwidth
        self._labels = frozenset(labels)
        self._first = Regressions(
            np.empty((0, 0)), labels=labels, rank=rank, bandwidth=bandwidth, n_samples=blocks.n
        )
        self._rows: dict[tuple[int, str], jax.Array] = {}
        self._counted: jax.Array | None = None  # 1 at the rows where penalties are compared
        self._spectra: dict[tuple[Columns, Candidate], block_ridge.BlockSpectrum] = {}
        self.n_factorisations = 0

    def column(self, v: int, kind: str = "raw") -> jax.Array:
        """A column under a map: rows (), or rows (levels - 1,) of a label's indicators."""
        kind = "labels" if v in self._labels else kind
        if (v, kind) not in self._rows:
            self._hold(v, (kind,))
        return self._rows[v, kind]

    def scores(self, given: Columns) -> list[jax.Array]:
        """The columns under the map "scores"."""
        self._hold_all(given)
        return [self.column(v, "scores") for v in given]

    def _hold_all(self, given: Columns) -> None:
        for v in given:
            kinds = ("labels",) if v in self._labels else ("raw", "ranks", "scores")
            if (v, kinds[-1]) not in self._rows:
                self._hold(v, kinds)

    def _hold(self, v: int, kinds: Sequence[str]) -> None:
        whole = self._whole(v)
        for kind in kinds:
            found = mapped(whole, kind)
            self._first.hold(v, kind, found[:_HELD].copy())
            self._rows[v, kind] = self._blocks.put(found)

    def residuals(
        self, given: Columns, targets: Sequence[jax.Array], *, together: bool = False
    ) -> list[jax.Array]:
        """Each target less its regression on the columns ``given``.

        Args:
            together: one choice for all targets, by their summed errors.
        """
        self._hold_all(given)
        few = np.column_stack(
            [self._blocks.head(target, self._first.n_choice) for target in targets]
        )
        offered = self._first.candidates(given)
        places = [offered.index(each) for each in self._first.choose(given, few, together=together)]
        (told,) = self._blocks.agreed(np.array(places, dtype=np.float64))
        chosen = [offered[int(place)] for place in told]
        found = [
            self._unexplained(self._left(given, candidate, target), target)
            for candidate, target in zip(chosen, targets, strict=True)
        ]
        for part in parts_of_targets(len(chosen), together=together):
            candidate = chosen[part[0]]
            terms: tuple[jumps.Term, ...] = ()
            (weights,) = self._blocks.agreed(self._first.oblique(given, candidate, few[:, part]))
            new = self._agreed(self._first.first_jumps(given, candidate, few[:, part], weights))
            new = new or self._more_jumps(given, [found[i] for i in part], terms, weights)
            while new:
                terms += new
                for i in part:
                    left = self._left_beside(given, chosen[i], targets[i], terms, weights)
                    found[i] = self._unexplained(left, targets[i])
                new = self._more_jumps(given, [found[i] for i in part], terms, weights)
        return found

    def _unexplained(self, rest: jax.Array, target: jax.Array) -> jax.Array:
        """The residual: of a function of Z only rounding errors are left, which say nothing."""
        left, size = (float(self._blocks.largest(_size, [each])) for each in (rest, target))
        return self._blocks.rows(_times, [rest], [np.float64(left > NOTHING * size)])

    def _more_jumps(
        self,
        given: Columns,
        rest: Sequence[jax.Array],
        terms: tuple[jumps.Term, ...],
        weights: np.ndarray,
    ) -> tuple[jumps.Term, ...]:
        """The same terms in every process."""
        few = np.column_stack([self._blocks.head(each, MOST_CHOICE_ROWS) for each in rest])
        return self._agreed(self._first.more_jumps(given, few, terms, weights))

    def _agreed(self, terms: Sequence[jumps.Term]) -> tuple[jumps.Term, ...]:
        (table,) = self._blocks.agreed(jumps.table_of(terms))
        return jumps.terms_of(table)

    def standardised_residuals(
        self, given: Columns, targets: Sequence[jax.Array]
    ) -> list[jax.Array]:
        """Residuals over their spread as a function of Z."""
        rest = self.residuals(given, targets)
        logs = []
        for each in rest:
            least = LEAST_SHARE * float(self._blocks.sums(_sizes, [each])) / self._blocks.n
            given_least = np.float64(least if least > 0 else 1.0)
            logs.append(self._blocks.rows(_logs, [each], [given_least]))
        found = []
        for each, log, left in zip(rest, logs, self.residuals(given, logs), strict=True):
            spread = self._blocks.rows(_difference, [log, left])
            middle = block_units.mean(self._blocks, spread)
            found.append(self._blocks.rows(_over_spread, [each, spread], [middle]))
        return found

    def _left(self, given: Columns, candidate: Candidate, target: jax.Array) -> jax.Array:
        blocks = self._blocks
        if candidate.kernel == "none":
            return block_units.centred(blocks, target)
        spectrum = self._spectra.get((given, candidate))
        if spectrum is None:
            spectrum = self._factorise(given, candidate, target)
            self.n_factorisations += 1
            if candidate.shared:
                self._keep(given)
                self._spectra[given, candidate] = spectrum
        return self._residuals(spectrum, target)

    def _left_beside(
        self,
        given: Columns,
        candidate: Candidate,
        target: jax.Array,
        terms: Sequence[jumps.Term],
        weights: np.ndarray,
    ) -> jax.Array:
        """The residual with more free terms."""
        blocks, kernel = self._blocks, with_kernel(candidate)
        z = block_units.joined(blocks, [self.column(v) for v in given])
        beside = blocks.rows(_term_rows, [z], [jumps.table_of(terms), weights])
        spectrum = self._factorise(given, kernel, target, beside=beside)
        self.n_factorisations += 1
        return self._residuals(spectrum, target)

    def _residuals(self, spectrum: block_ridge.BlockSpectrum, target: jax.Array) -> jax.Array:
        blocks = self._blocks
        if self._counted is None:
            first = np.arange(blocks.n) < self._first.n_left_out
            self._counted = blocks.put(first.astype(np.float64))
        return block_ridge.leave_one_out_residuals(
            blocks, spectrum, target, PENALTIES * blocks.n, self._counted
        )

    def _keep(self, given: Columns) -> None:
        """Drops the factorisations of other sets where there is much of them."""
        if sum(part.basis.nbytes for part in self._spectra.values()) > _CACHE_BYTES:
            self._spectra = {k: v for k, v in self._spectra.items() if k[0] == given}

    def _factorise(
        self,
        given: Columns,
        candidate: Candidate,
        target: jax.Array,
        *,
        beside: jax.Array | None = None,
    ) -> block_ridge.BlockSpectrum:
        blocks = self._blocks
        z = block_units.joined(blocks, [self.column(v, candidate.map) for v in given])
        head = self._first.coordinates(given, candidate.map)[: gram.N_SEARCHED]
        one = self._bandwidth * math.sqrt(2)
        if candidate.kernel == "sum":
            factor = block_ridge.additive_factor(blocks, z, head, one, COLUMN_RANK)
        elif candidate.kernel == "index":
            few = blocks.head(target, self._first.n_choice)
            # One of every process, whatever its processor made of the same rows.
            (weights,) = blocks.agreed(self._first.direction(given, candidate.map, few).weights)
            fit = blocks.rows(_weighted, [z], [weights])
            index = block_units.joined(blocks, [block_units.standardised(blocks, fit)])
            head = blocks.head(index, gram.N_SEARCHED)
            factor = block_ridge.joint_factor(blocks, index, head, one, INDEX_RANK)
        else:
            width = self._bandwidth * candidate.bandwidth * math.sqrt(2 * head.shape[1])
            rank = joint_rank(self._rank, head.shape[1], width)
            factor = block_ridge.joint_factor(blocks, z, head, width, rank)
        free = z if beside is None else block_units.joined(blocks, [z, beside])
        return block_ridge.spectrum_beside(blocks, factor, free)


def _size(x: jax.Array, real: jax.Array) -> jax.Array:
    return jnp.where(real, jnp.abs(x), 0.0).max()


def _sizes(x: jax.Array, real: jax.Array) -> jax.Array:
    return jnp.sum(jnp.abs(x))


def _term_rows(z: jax.Array, real: jax.Array, table: jax.Array, weights: jax.Array) -> jax.Array:
    if z.shape[1] > 1:
        z = jnp.concatenate([z, _weighted(z, real, weights)[:, None]], axis=1)
    return jumps.term_columns(z, table)


def _weighted(z: jax.Array, real: jax.Array, weights: jax.Array) -> jax.Array:
    return times(z, weights[:, None])[:, 0]


def _times(x: jax.Array, real: jax.Array, by: jax.Array) -> jax.Array:
    return jnp.where(by > 0, x, 0.0)


def _difference(x: jax.Array, y: jax.Array, real: jax.Array) -> jax.Array:
    return x - y


def _logs(x: jax.Array, real: jax.Array, least: jax.Array) -> jax.Array:
    return jnp.log(jnp.maximum(jnp.abs(x), least))


def _over_spread(x: jax.Array, spread: jax.Array, real: jax.Array, middle: jax.Array) -> jax.Array:
    return x / jnp.exp(spread - middle)
