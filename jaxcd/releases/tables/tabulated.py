r"""The tables of a release with the law of their noise, as effects ask for them; post-processing.

A table of a few columns holds unbiased counts whose noise has one variance on every cell.  Between
cells it is independent where whole cells were released.  Where interactions were
(:mod:`jaxcd.ops.interactions`), a sum of cells with weights w has the noise variance

    sum over U of v_U |R_U(mean of w over the other columns)|^2,

with v_U the variance of the noise on the interaction of U.  Of several tables the weights of an
interaction, or of a cell that was released, add up before they are squared.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from jaxcd.ops.interactions import cell_variance, interaction, subsets, table_of_interactions
from jaxcd.privacy import Unit

__all__ = ["CellTables", "InteractionTables", "NoisyTable", "Tabulated"]

Columns = tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class NoisyTable:
    """One table; public.

    Args:
        counts: float64, one axis a column in the order asked for, unbiased, possibly negative.
        variance: of the noise on each cell.
        n_samples: the number of rows that the table counts, as far as it is known.
        noise: the variance of the noise on a sum of cells with given weights; None where the noise
            is independent between cells.
    """

    counts: np.ndarray
    variance: float
    n_samples: float
    noise: Callable[[np.ndarray], float] | None


class Tabulated(abc.ABC):
    """The tables of a release.

    Args:
        release: of discrete columns.  Codes of missing cells that it leaves out are not counted:
            a table is of the rows in which none of its columns is missing.
    """

    is_independent: ClassVar[bool] = False

    def __init__(self, release: Any) -> None:
        self._release = release
        self._place = {name: j for j, name in enumerate(release.names)}

    def is_measured(self, names: tuple[str, ...]) -> bool:
        """Whether the table of these columns can be built; False where one is unknown."""
        if any(name not in self._place for name in names):
            return False
        return self._is_measured(tuple(sorted(self._place[name] for name in names)))

    def table(self, names: tuple[str, ...]) -> NoisyTable:
        """The table of these columns, its axes in the order of the names."""
        wanted = [self._place[name] for name in names]
        columns = tuple(sorted(wanted))
        whole = self._counts(columns)
        axes = [columns.index(column) for column in wanted]
        left_out = self._release.leaves_out
        kept = tuple(
            slice(0, size - left_out[column])
            for column, size in zip(columns, whole.shape, strict=True)
        )
        is_whole = not any(left_out[column] for column in columns)
        counts = whole[kept]
        n_samples = float(self._release.n_samples) if is_whole else max(float(counts.sum()), 1.0)
        return NoisyTable(
            np.moveaxis(counts, axes, range(len(axes))),
            self._variance(columns),
            n_samples,
            None if self.is_independent else lambda weights: self.noise([(names, weights)]),
        )

    def noise(self, sums: Sequence[tuple[tuple[str, ...], np.ndarray]]) -> float:
        """The variance of the noise on a sum of cells of several tables, each named by its columns
        and with the weights of its cells.
        """
        parts = []
        for names, weights in sums:
            wanted = [self._place[name] for name in names]
            columns = tuple(sorted(wanted))
            padded = np.zeros([self._release.cardinalities[column] for column in columns])
            kept = tuple(slice(0, weights.shape[wanted.index(column)]) for column in columns)
            padded[kept] = np.transpose(weights, [wanted.index(column) for column in columns])
            parts.append((columns, padded))
        return self._noise(parts)

    @property
    def joint(self) -> Any:
        """The release, where it holds all cells of the joint table with independent noise; None."""
        return None

    @property
    def interactions(self) -> Any:
        """The release, where it holds interactions with noise and leaves no cells out; None."""
        return None

    @abc.abstractmethod
    def _is_measured(self, columns: Columns) -> bool: ...

    @abc.abstractmethod
    def _counts(self, columns: Columns) -> np.ndarray: ...

    @abc.abstractmethod
    def _variance(self, columns: Columns) -> float: ...

    @abc.abstractmethod
    def _noise(self, sums: Sequence[tuple[Columns, np.ndarray]]) -> float: ...


@final
class CellTables(Tabulated):
    """Those of a released histogram: sums of its cells."""

    is_independent = True

    @property
    def joint(self) -> Any:
        """The release, where it has noise, and counts rows and no missing cells."""
        release = self._release
        counts_rows = release.cost.unit is Unit.ROW
        plain = release.scale > 0 and counts_rows and not any(release.leaves_out)
        return release if plain else None

    def _is_measured(self, columns: Columns) -> bool:
        return True

    def _others(self, columns: Columns) -> tuple[int, ...]:
        return tuple(j for j in range(len(self._place)) if j not in columns)

    def _counts(self, columns: Columns) -> np.ndarray:
        found: np.ndarray = self._release.values.sum(axis=self._others(columns)).astype(np.float64)
        return found

    def _variance(self, columns: Columns) -> float:
        summed = math.prod(self._release.cardinalities[j] for j in self._others(columns))
        return float(self._release.variance * summed)

    def _noise(self, sums: Sequence[tuple[Columns, np.ndarray]]) -> float:
        total = np.zeros(self._release.cardinalities)
        for columns, weights in sums:
            total += np.expand_dims(weights, self._others(columns))
        return float(self._release.variance * (total**2).sum())


@final
class InteractionTables(Tabulated):
    """Those of released interactions, of the columns that were measured with all their subsets."""

    @property
    def interactions(self) -> Any:
        """The release, where it has noise and counts no missing cells."""
        release = self._release
        noisy = all(variance > 0 for variance in release.variances.values())
        return release if noisy and not any(release.leaves_out) else None

    def _is_measured(self, columns: Columns) -> bool:
        return bool(self._release.is_built(columns))

    def _counts(self, columns: Columns) -> np.ndarray:
        of = self._release
        return table_of_interactions(
            columns, of.cardinalities, of.n_samples, of.interactions.__getitem__
        )

    def _variance(self, columns: Columns) -> float:
        return cell_variance(columns, self._release.cardinalities, self._release.variances)

    def _noise(self, sums: Sequence[tuple[Columns, np.ndarray]]) -> float:
        parts: dict[Columns, np.ndarray] = {}
        for columns, weights in sums:
            for subset in subsets(columns):
                others = tuple(axis for axis, column in enumerate(columns) if column not in subset)
                part = interaction(weights.mean(axis=others))
                parts[subset] = parts[subset] + part if subset in parts else part
        variances: Mapping[Columns, float] = self._release.variances
        return sum(variances[subset] * float((part**2).sum()) for subset, part in parts.items())
