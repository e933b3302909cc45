r"""Expectation-maximisation for many DAGs at once, on counts that are seen through discrete Laplace
noise.

Model of a DAG: cell c of the joint table has N_c ~ Poisson(mu_c), mu_c = n prod_v theta(x_v |
x_parents(v)), and what is seen is y_c = N_c + noise.  E: N^_c = E[N_c | y_c, mu_c]
(:mod:`jaxcd.releases.tables.noisy_counts`).  M: theta = ratios of the sums of N^ over families,
which maximises sum_c N^_c log mu_c - mu_c among the tables with sum mu = n, so that the likelihood
never falls.  Where codes of missing cells are left out, y are the cells that are seen, and N^ is
spread over the complete cells that they could be (:mod:`jaxcd.releases.tables.missing_codes`).

Every third step is extrapolated (the squared iterative method), and kept only where the likelihood
has not fallen.

Source:
    Dempster, Laird, Rubin 1977; Varadhan and Roland 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from jaxcd.ops.nearest_table import nearest_table
from jaxcd.releases.tables.missing_codes import MissingCodes
from jaxcd.releases.tables.noisy_counts import TabulatedCounts, noisy_count

__all__ = ["Fits", "NoisyTable"]

# : Expected counts never start or extrapolate to exactly zero, where expectation-maximisation would
# stay for ever.
_FLOOR = 1e-9
_BATCH_ENTRIES = 1 << 20
# : Below this scale noise is rarer than once in e^20 cells, and tables of the noise are not worth
# building.
_LEAST_SCALE = 0.05
# : In a race, three more steps are trusted to add at most so many times what the last three added,
# and so many nats.
_SLACK_GAINS = 10.0
_SLACK = 2.0


@dataclass(frozen=True, eq=False)
class Fits:
    """Maximum likelihood fits of G graphs.

    Args:
        log_likelihood: float64 (G,), nats.
        counts: E[N | y] at the fit, float64 (G, K).
        means: mu, float64 (G, K).
        n_steps: steps of expectation-maximisation, int64 (G,).
        slack: what more steps may still add to the log likelihood, float64 (G,): 0 where a fit is
            finished, an estimate where it was given up.
    """

    log_likelihood: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    n_steps: np.ndarray
    slack: np.ndarray


@final
class NoisyTable:
    """A joint table y of K cells with its noise, and the fits of DAGs to it.

    Args:
        values: y, one axis a variable.
        n_samples: n.
        scale: b of the noise, 0 for none.
        leaves_out: for each variable whether its last code is that of a missing cell and left out;
            None: of none.
    """

    def __init__(
        self,
        values: np.ndarray,
        *,
        n_samples: int,
        scale: float,
        leaves_out: Sequence[bool] | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.scale = scale
        self._y = np.asarray(values, dtype=np.float64).ravel()
        self._missing = (
            MissingCodes(
                values, leaves_out, n_samples=n_samples, expected=lambda mu: self._noisy_count(mu)
            )
            if leaves_out and any(leaves_out)
            else None
        )
        shape = values.shape if self._missing is None else self._missing.complete
        self.cardinalities = shape
        self._levels = np.indices(shape).reshape(values.ndim, -1)
        self._families: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}

    @property
    def n_cells(self) -> int:
        """K, of the complete table."""
        return int(self._levels.shape[1])

    def seen(self, means: np.ndarray) -> np.ndarray:
        """The means of the cells of y, where those of the complete cells are these, (G, K)."""
        return means if self._missing is None else self._missing.seen(means)

    def _expected(self, means: np.ndarray, *, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The log likelihood of each cell of y, and the counts expected in the complete cells."""
        seen = self.seen(means)
        log_f, expected = (
            noisy_count(self._y, seen, self.scale) if exact else self._noisy_count(seen)
        )
        if self._missing is not None:
            expected = self._missing.spread(means, seen, expected)
        return log_f, expected

    def projected(self, table: np.ndarray) -> np.ndarray:
        """The nearest table to one of the shape of y that has n rows, without missing cells."""
        found = nearest_table(table.ravel(), self.n_samples)
        return (found if self._missing is None else self._missing.filled(found)).reshape(
            self.cardinalities
        )

    def start(self) -> np.ndarray:
        """Expected counts to start from, float64 (K,), positive: the nearest table to y, a tenth of
        it spread out.

        The tenth goes by the projection's one-way margins, so that no cell that the data allow
        starts at zero.
        """
        projected = self.projected(self._y) if self._missing is None else self._missing.start
        spread = np.ones(self.cardinalities)
        for axis in range(projected.ndim):
            margin = projected.sum(axis=tuple(a for a in range(projected.ndim) if a != axis)) + 1.0
            spread = spread * (margin / margin.sum()).reshape(
                [-1 if a == axis else 1 for a in range(projected.ndim)]
            )
        return 0.9 * projected.ravel() + 0.1 * self.n_samples * spread.ravel()

    def fit(
        self,
        adjacencies: np.ndarray,
        *,
        tolerance: float = 1e-3,
        max_steps: int = 3000,
        prices: np.ndarray | None = None,
        to_beat: float = -np.inf,
    ) -> Fits:
        """Fits many DAGs, all from :meth:`start`, so that a fit does not depend on what was fitted
        before.

        Args:
            adjacencies: bool (G, d, d), acyclic.
            tolerance: a graph is finished when three steps gain less than this, in nats.
            max_steps: steps after which it is finished in any case.
            prices: float64 (G,); if given, the graphs race: one is given up when its log likelihood
                less its price seems unable to reach the largest of the others, or ``to_beat``.

        Returns:
            The fits, in the order given; the log likelihoods are exact at the means returned.
        """
        size = max(1, _BATCH_ENTRIES // (self._y.size * len(self.cardinalities)))
        parts = []
        for i in range(0, len(adjacencies), size):
            price = None if prices is None else prices[i : i + size]
            parts.append(
                self._fit_batch(adjacencies[i : i + size], tolerance, max_steps, price, to_beat)
            )
            if price is not None:
                to_beat = max(to_beat, float(np.max(parts[-1].log_likelihood - price)))
        return Fits(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in Fits.__dataclass_fields__
            )
        )

    def trace(self, adjacency: np.ndarray, *, n_steps: int) -> np.ndarray:
        """The exact log likelihoods of the first steps without extrapolation, float64 (n_steps,):
        they never fall.
        """
        families = _Families.of(self, adjacency[None])
        counts = self.start()[None]
        steps = []
        for _ in range(n_steps):
            means = families.means(counts, self.n_samples)
            log_f, counts = self._expected(means, exact=True)
            steps.append(log_f.sum())
        return np.array(steps)

    @cached_property
    def _noisy_count(self) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        if self.scale < _LEAST_SCALE:
            return lambda means: noisy_count(self._y, means, self.scale)
        return TabulatedCounts(self._y, self.scale, most=self.n_samples)

    def _step(
        self, families: _Families, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M, then E: the likelihood of the fit to the counts, the counts expected under it, and
        mu.
        """
        means = families.means(counts, self.n_samples)
        log_f, expected = self._expected(means)
        return log_f.sum(axis=1), expected, means

    def _fit_batch(
        self,
        adjacencies: np.ndarray,
        tolerance: float,
        max_steps: int,
        prices: np.ndarray | None,
        to_beat: float,
    ) -> Fits:
        n_graphs = len(adjacencies)
        means = np.zeros((n_graphs, self.n_cells))
        n_steps, slack = np.zeros(n_graphs, dtype=np.int64), np.zeros(n_graphs)
        active = np.arange(n_graphs)
        families = _Families.of(self, adjacencies)
        counts = np.broadcast_to(self.start(), means.shape)
        before = np.full(n_graphs, -np.inf)
        for step in range(0, max_steps, 3):
            _, first, _ = self._step(families, counts)
            middle, second, middle_means = self._step(families, first)
            change = first - counts
            bend = second - first - change
            length = np.sqrt(
                np.sum(change**2, axis=1) / np.maximum(np.sum(bend**2, axis=1), 1e-300)
            )
            length = np.clip(length, 1.0, 1e6)[:, None]
            # No cell loses more than nine tenths in one extrapolation: zero would be for ever.
            leap = np.maximum(
                counts + 2 * length * change + length**2 * bend, 0.1 * second + _FLOOR
            )
            reached, after, leap_means = self._step(families, leap)
            better = reached >= middle
            now = np.where(better, reached, middle)
            counts = np.where(better[:, None], after, second)
            means[active] = np.where(better[:, None], leap_means, middle_means)
            n_steps[active] = step + 3
            gain = now - before
            going = ~(gain < tolerance)
            if prices is not None and step > 0:
                worth = now - prices[active]
                to_beat = max(to_beat, float(worth.max()))
                left = _SLACK_GAINS * gain + _SLACK
                hopeless = going & (worth + left < to_beat)
                slack[active[hopeless]] = left[hopeless]
                going &= ~hopeless
            if not going.any():
                break
            before = now[going]
            if not going.all():
                active, counts = active[going], counts[going]
                families = families.kept(going)
        log_f, expected = self._expected(means, exact=True)
        return Fits(log_f.sum(axis=1), expected, means, n_steps, slack)

    def family_index(self, node: int, parents: tuple[int, ...]) -> np.ndarray:
        """For every cell its place in the table of the family, axes (parents in order, node), intp
        (K,).
        """
        key = (node, parents)
        if key not in self._families:
            index = np.zeros(self.n_cells, dtype=np.intp)
            for variable in (*parents, node):
                index = index * self.cardinalities[variable] + self._levels[variable]
            self._families[key] = index
        return self._families[key]


@dataclass(frozen=True, eq=False)
class _Families:
    """Where each cell of each graph falls in the tables of its families, which stand one after the
    other in one vector.

    Args:
        places: intp (G, d, K).
        rows: intp (size,), the parent configuration of each entry.
        levels: the node's number of levels, of each entry.
        sizes: intp (G,), how many entries the families of each graph have.
        n_rows: intp (G,), how many parent configurations.
    """

    places: np.ndarray
    rows: np.ndarray
    levels: np.ndarray
    sizes: np.ndarray
    n_rows: np.ndarray

    @staticmethod
    def of(table: NoisyTable, adjacencies: np.ndarray) -> _Families:
        n_graphs, d = adjacencies.shape[:2]
        r = np.asarray(table.cardinalities)
        n_rows = np.where(adjacencies, r[:, None], 1).prod(axis=1)  # (G, d)
        sizes = n_rows * r
        starts = _starts(sizes.ravel()).reshape(n_graphs, d)
        places = np.empty((n_graphs, d, table.n_cells), dtype=np.intp)
        for g in range(n_graphs):
            for v in range(d):
                parents = tuple(np.flatnonzero(adjacencies[g, :, v]).tolist())
                np.add(table.family_index(v, parents), starts[g, v], out=places[g, v])
        # the entries of a parent configuration stand side by side
        levels = np.repeat(np.tile(r, n_graphs), n_rows.ravel())
        rows = np.repeat(np.arange(len(levels)), levels)
        return _Families(
            places, rows, np.repeat(levels, levels), sizes.sum(axis=1), n_rows.sum(axis=1)
        )

    def kept(self, graphs: np.ndarray) -> _Families:
        """Those of some graphs, bool (G,)."""
        sizes, n_rows = self.sizes[graphs], self.n_rows[graphs]
        shift = _starts(self.sizes)[graphs] - _starts(sizes)
        row_shift = _starts(self.n_rows)[graphs] - _starts(n_rows)
        entries = np.repeat(graphs, self.sizes)
        return _Families(
            self.places[graphs] - shift[:, None, None],
            self.rows[entries] - np.repeat(row_shift, sizes),
            self.levels[entries],
            sizes,
            n_rows,
        )

    def means(self, counts: np.ndarray, n_samples: int) -> np.ndarray:
        """The M step: mu = n prod_v theta, float64 (G, K)."""
        weights = np.broadcast_to(counts[:, None, :], self.places.shape)
        family = np.bincount(self.places.ravel(), weights.ravel(), len(self.rows))
        row = np.bincount(self.rows, family)[self.rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            # an empty row is uniform
            log_theta = np.where(row > 0, np.log(family / row), -np.log(self.levels))
        found: np.ndarray = n_samples * np.exp(np.take(log_theta, self.places).sum(axis=1))
        return found


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Where each of several parts begins that stand one after the other."""
    starts: np.ndarray = np.cumsum(sizes) - sizes
    return starts
