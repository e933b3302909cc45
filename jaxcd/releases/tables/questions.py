r"""What a round of a release asks of the rows: interactions and tables of counts, times weights.

A question is plain numbers.  The door in front of the rows answers it
(:meth:`jaxcd.queries.Door.answer`): one in front of a data set by a mechanism, one in front of
several owners' data by asking each of them (:mod:`jaxcd.federated`).
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from jaxcd.ops.interactions import interactions
from jaxcd.privacy import (
    VECTOR_GRID,
    Accountant,
    Sensitive,
    gaussian,
    integer_sensitivity,
    laplace,
    noise_scale,
)
from jaxcd.queries import Door

__all__ = ["Answer", "MarginalsNoise", "Question"]

Columns = tuple[int, ...]


class MarginalsNoise(enum.Enum):
    """The law of the noise of a release of marginals."""

    GAUSSIAN = "discrete-gaussian"
    LAPLACE = "discrete-laplace"


class Answer(NamedTuple):
    """Noisy values, in the units of the question, with the law of their noise.

    Attributes:
        values: float64, one after the other.
        variance: of the noise on each.
        scale: of Laplace noise; 0 of Gaussian.
    """

    values: np.ndarray
    variance: float
    scale: float = 0.0


@final
@dataclass(frozen=True, eq=False)
class Question:
    """One round: what is asked, at what price, and what that follows from.

    Args:
        cardinalities: of all columns.
        weights: of the sets that are asked for, in order.
        tables: those of them whose counts are asked for, and not the interactions.
        law: of the noise.
        sensitivity: of all values together: in L2 for Gaussian noise, in L1 for Laplace noise.
        price: rho, or epsilon; infinity without privacy.
        label: public words.
        pad: bound on the numerical error of each value.
        grid: step on which values are rounded, a power of two.
        integral: whether the values are integers.
    """

    cardinalities: Columns
    weights: Mapping[Columns, float]
    tables: frozenset[Columns]
    law: MarginalsNoise
    sensitivity: float
    price: float
    label: str
    pad: float = 0.0
    grid: float = VECTOR_GRID
    integral: bool = False

    def shape(self, columns: Columns) -> Columns:
        """The shape of the values of a set."""
        return tuple(self.cardinalities[j] - (columns not in self.tables) for j in columns)

    @property
    def dimension(self) -> int:
        """The number of values."""
        return sum(math.prod(self.shape(s)) for s in self.weights)

    def exact(self, door: Door) -> Sensitive:
        """The values on the rows behind a door: interactions and counts times their weights, one
        after the other; whole units of a row where all are integers.
        """
        sets = list(self.weights)
        return door.counts(sets).map(lambda counts: self._of(counts, 1 / door.units))

    def _of(self, counts: Sequence[np.ndarray], unit: float) -> np.ndarray:
        if self.integral:
            return np.concatenate([count.ravel() for count in counts])
        found = {s: count * unit for s, count in zip(self.weights, counts, strict=True)}
        alike: defaultdict[Columns, list[Columns]] = defaultdict(list)
        for s in self.weights:
            if s not in self.tables:
                alike[found[s].shape].append(s)
        for members in alike.values():
            of_members = interactions(np.stack([found[s] for s in members]))
            found.update(zip(members, of_members, strict=True))
        return np.concatenate([(found[s] * weight).ravel() for s, weight in self.weights.items()])

    def buy(self, door: Door, accountant: Accountant) -> Answer:
        """The answer of a mechanism to whoever holds all rows.

        Args:
            door: to the rows.
            accountant: of the run.
        """
        values = self.exact(door)
        if self.law is MarginalsNoise.GAUSSIAN:
            noisy = gaussian(
                accountant,
                values,
                sensitivity=self.sensitivity,
                rho=self.price,
                pad=self.pad,
                label=self.label,
                grid=self.grid,
            )
            free = math.isinf(self.price)
            return Answer(noisy, 0.0 if free else self.sensitivity**2 / (2 * self.price))
        noisy = laplace(
            accountant,
            values,
            sensitivity=self.sensitivity,
            epsilon=self.price,
            pad=self.pad,
            label=self.label,
            grid=self.grid,
        )
        steps = noise_scale(
            integer_sensitivity(
                self.sensitivity,
                grid=self.grid,
                pad=self.pad,
                dimension=len(noisy.ravel()),
                integral=self.integral,
            ),
            self.price,
        )
        # 2 q / (1 - q)^2 squared steps, q = exp(-1 / b)
        variance = 0.5 * (self.grid / math.sinh(0.5 / steps)) ** 2 if steps > 1e-3 else 0.0
        return Answer(noisy, variance, steps * self.grid)
