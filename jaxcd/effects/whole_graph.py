r"""An effect from a whole noisy histogram and a whole DAG.

The cells of the joint table are y_c = N_c + noise with N_c ~ Poisson(n prod_v theta(x_v |
parents)), and the effect is a polynomial in theta,

    D(theta) = sum_c s(y_c) (1[x_c = to] - 1[x_c = from]) prod over v not x of theta_v(c).

The interval has all values of D where the exact log likelihood of the noisy cells
(:mod:`jaxcd.releases.tables.noisy_counts`) is within q / 2 of its maximum, q the quantile of
chi-square with one degree of freedom.  The ends are found by sequential quadratic programming
(SLSQP) over the conditional tables, scaled by their errors.

A table of the adjustment set sums the noise of all cells, empty ones too; the DAG says how the rows
of a cell hang together with those of others, and which cells are empty anyhow.  So this is much
narrower where levels are rare.  It takes the whole DAG for right, and not its adjustment sets only.

Source:
    Wilks 1938; Kraft 1988 for SLSQP; the model is that of
    :mod:`jaxcd.releases.tables.measurement_error`.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from scipy import special

from jaxcd.effects.likelihood import Contrast, Interval
from jaxcd.graphs import MixedGraph
from jaxcd.releases.tables.expectation_maximisation import NoisyTable
from jaxcd.releases.tables.noisy_counts import noisy_count

__all__ = ["MOST_PARAMETERS", "WholeGraph", "n_parameters"]

_LEAST = 1e-7  # of a probability

MOST_PARAMETERS = 100
"""The search for the ends is slow beyond."""


def n_parameters(cardinalities: tuple[int, ...], graph: MixedGraph) -> int:
    """How many free parameters a DAG on these columns has."""
    arcs = graph.directed
    return sum(
        (k - 1) * math.prod(cardinalities[u] for u in np.flatnonzero(arcs[:, v]))
        for v, k in enumerate(cardinalities)
    )


@final
class WholeGraph:
    """The likelihood of a DAG on a released histogram, prepared for many effects.

    Args:
        values: the noisy cells, one axis a column.
        scale: of their discrete Laplace noise, positive.
        n_samples: n.
        graph: a DAG on the columns, in their order.
    """

    def __init__(
        self, values: np.ndarray, *, scale: float, n_samples: int, graph: MixedGraph
    ) -> None:
        table = NoisyTable(values, n_samples=n_samples, scale=scale)
        self._y, self._scale, self._n = values.ravel().astype(np.float64), scale, n_samples
        self.levels = np.indices(values.shape).reshape(values.ndim, -1)
        arcs = graph.directed
        counts = table.fit(arcs[None], tolerance=1e-4).counts[0]
        places, start, rows, offset, n_rows = [], [], [], 0, 0
        for v, k in enumerate(values.shape):
            parents = tuple(np.flatnonzero(arcs[:, v]).tolist())
            place = table.family_index(v, parents)
            size = k * math.prod(values.shape[u] for u in parents)
            family = np.bincount(place, counts, size).reshape(-1, k) + 1e-3
            start.append((family / family.sum(axis=1, keepdims=True)).ravel())
            rows.append(np.repeat(np.arange(size // k) + n_rows, k))
            places.append(place + offset)
            offset, n_rows = offset + size, n_rows + size // k
        self._places, self._row = np.stack(places), np.concatenate(rows)
        theta = np.clip(np.concatenate(start), 10 * _LEAST, 1.0)
        theta = theta / np.bincount(self._row, theta)[self._row]
        # The likeliest level of each row is what the others leave.
        last = np.array([rows_of[np.argmax(theta[rows_of])] for rows_of in self._members(n_rows)])
        self._free = np.setdiff1d(np.arange(offset), last)
        self._rest = last[self._row[self._free]]
        self._last = last
        mass = np.bincount(
            self._row, np.bincount(self._places.ravel(), np.tile(counts, len(places)), offset)
        )
        held = np.maximum(mass[self._row[self._free]], 1.0) + scale
        own = theta[self._free]
        self._unit = np.sqrt(np.maximum(own * (1 - own), 1 / held) / held)
        self._at = own
        self._maximise()

    def _members(self, n_rows: int) -> list[np.ndarray]:
        return [np.flatnonzero(self._row == row) for row in range(n_rows)]

    def _theta(self, z: np.ndarray) -> np.ndarray:
        free = self._at + self._unit * z
        theta = np.ones(len(self._row))
        theta[self._free] = free
        theta[self._last] = 1.0
        np.subtract.at(theta, self._rest, free)
        return np.clip(theta, _LEAST, 1.0)

    def _reduced(self, gradient: np.ndarray) -> np.ndarray:
        found: np.ndarray = (gradient[self._free] - gradient[self._rest]) * self._unit
        return found

    def _likelihood(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        theta = self._theta(z)
        mu = self._n * np.exp(np.log(theta)[self._places].sum(axis=0))
        log_f, expected = noisy_count(self._y, mu, self._scale)
        weights = np.tile(expected - mu, len(self._places))
        gradient = np.bincount(self._places.ravel(), weights, len(theta)) / theta
        return float(log_f.sum()), self._reduced(gradient)

    def _effect(self, z: np.ndarray, x: int, weight: np.ndarray) -> tuple[float, np.ndarray]:
        theta = self._theta(z)
        others = np.delete(self._places, x, axis=0)
        product = weight * np.exp(np.log(theta)[others].sum(axis=0))
        gradient = np.bincount(others.ravel(), np.tile(product, len(others)), len(theta)) / theta
        return float(product.sum()), self._reduced(gradient)

    def _solved(self, objective: Any, start: np.ndarray, *more: Any) -> Any:
        from scipy import optimize

        low = (_LEAST - self._at) / self._unit
        high = (1 - _LEAST - self._at) / self._unit
        constraints = list(more)
        crowded = [row for row in np.unique(self._row) if (self._row == row).sum() > 2]
        if crowded:
            inside = (self._row[self._free][None, :] == np.array(crowded)[:, None]).astype(float)
            room = 1 - _LEAST - inside @ self._at
            constraints.append(
                {
                    "type": "ineq",
                    "fun": lambda z: room - inside @ (self._unit * z),
                    "jac": lambda z: -inside * self._unit,
                }
            )
        return optimize.minimize(
            objective,
            np.clip(start, low, high),
            jac=True,
            bounds=np.column_stack([low, high]),
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-7},
        )

    def _maximise(self) -> None:
        def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._likelihood(z)
            return -value, -gradient

        found = self._solved(objective, np.zeros(len(self._free)))
        self._top, self._most = found.x, -float(found.fun)

    def interval(self, x: int, y: int, contrast: Contrast, level: float) -> Interval | None:
        """The effect of column x on column y; None where an end was not found."""
        weight = contrast.scores[self.levels[y]] * (
            (self.levels[x] == contrast.end).astype(float) - (self.levels[x] == contrast.start)
        )
        least = self._most - float(special.chdtri(1, 1 - level)) / 2
        likely = {
            "type": "ineq",
            "fun": lambda z: self._likelihood(z)[0] - least,
            "jac": lambda z: self._likelihood(z)[1],
        }
        estimate = self._effect(self._top, x, weight)[0]
        ends = []
        for sign in (1.0, -1.0):

            def objective(z: np.ndarray, sign: float = sign) -> tuple[float, np.ndarray]:
                value, gradient = self._effect(z, x, weight)
                return sign * value / contrast.span * 100, sign * gradient / contrast.span * 100

            found = self._solved(objective, self._top, likely)
            if found.status not in (0, 8) or self._likelihood(found.x)[0] < least - 0.02:
                return None
            ends.append(self._effect(found.x, x, weight)[0])
        low, high = min(ends[0], estimate), max(ends[1], estimate)
        return Interval(estimate, math.nan, lambda: (low, high))
