r"""The score of a DAG on a released histogram: the exact likelihood of the noisy counts, less BIC's
penalty.

score(G) = max_theta sum_c log f(y_c; mu_c) - (1/2) log(n) df(G),  mu_c = n prod_v theta(x_v |
x_parents(v)), df(G) = sum_v (r_v - 1) prod_{u in parents(v)} r_u for columns of few levels (further
levels pay less: :mod:`jaxcd.scores.level_margin`),

with f the law of a Poisson count plus the release's own discrete Laplace noise.  Nothing is
denoised first and no constant is tuned: cells that the noise hides say little, cells it does not
hide say what they would say without it.  The score is equal for Markov equivalent DAGs, since these
have the same distributions and the same df; it is not a sum over nodes.  How the columns that say
under which conditions a row was taken depend on each other is part of every graph's model, and of
its price: the graphs leave it out (:mod:`jaxcd.data.intervention_knowledge`), the rows do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxcd.data.intervention_knowledge import designed_arcs
from jaxcd.releases.base import Release, check_kind
from jaxcd.releases.tables.expectation_maximisation import Fits, NoisyTable
from jaxcd.scores.base import GraphScore, LocalScore, check_max_parents, log_rows, several_levels
from jaxcd.scores.bic import BICScore
from jaxcd.scores.equivalence import equivalence_keys
from jaxcd.scores.level_margin import (
    CHANCE_FIT,
    FULL_LEVELS,
    check_full_levels,
    counted_levels,
    mean_and_margin,
)

__all__ = ["MeasurementErrorScore"]

# : The starts: every cell below so many noise scales is emptied, and BIC's penalty is multiplied by
# so much.  They only have to lie near : good graphs; the exact score picks among them and climbs
# on.
_CUTS = (0.0, 2.0, 4.0, 6.0)
_PENALTIES = (1.0, 3.0, 10.0)


@final
class MeasurementErrorScore(GraphScore):
    """The measurement-error BIC of a released histogram; every equivalence class is fitted once.

    Args:
        release: the histogram.
        max_parents: the largest number of parents that a search tries.
        full_levels: how many levels of a column pay the whole price, from 2; None for all.
        tolerance: a fit is finished when three steps of expectation-maximisation gain less, in
            nats.
    """

    def __init__(
        self,
        release: Release,
        *,
        max_parents: int = 3,
        full_levels: int | None = FULL_LEVELS,
        tolerance: float = 1e-3,
    ) -> None:
        self._release: Any = check_kind(release, "histogram")
        self._max_parents = check_max_parents(max_parents)
        self._full_levels = check_full_levels(full_levels)
        self._tolerance = tolerance
        self._table = NoisyTable(
            self._release.values,
            n_samples=release.n_samples,
            scale=self._release.scale,
            leaves_out=release.leaves_out,
        )
        self._known: dict[bytes, tuple[float, float]] = {}  # class -> score, or bounds of it
        self.n_steps = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The release's columns."""
        return tuple(self._release.names)

    @property
    def settings(self) -> dict[str, Any]:
        """The options, for a result's info."""
        return {
            "n_cells": self._release.values.size,
            "noise_scale": self._release.scale,
            "max_parents": self.max_parents,
            "full_levels": self._full_levels,
        }

    def approximations(self) -> list[LocalScore]:
        """BIC at several penalties on the histogram denoised in several crude ways."""
        noisy = self._release.values.astype(np.float64)
        tables = [
            self._table.projected(np.where(noisy < cut * self._release.scale, 0.0, noisy))
            for cut in _CUTS
        ]
        return [
            self._bic(table).with_penalty(penalty) for table in tables for penalty in _PENALTIES
        ]

    def expected(self, adjacency: np.ndarray) -> LocalScore:
        """BIC on the counts that are expected under the DAG and the noisy ones (Friedman 1998)."""
        return self._bic(self.fit(adjacency).counts[0].reshape(self._table.cardinalities))

    def _bic(self, table: np.ndarray) -> BICScore:
        return BICScore.of_table(
            table,
            names=self.names,
            n_samples=self._release.n_samples,
            max_parents=self.max_parents,
            full_levels=self._full_levels,
        )

    @property
    def max_parents(self) -> int:
        """The largest number of parents that a search tries."""
        return self._max_parents

    @property
    def n_scored(self) -> int:
        """How many equivalence classes were fitted so far."""
        return len(self._known)

    def candidates(self, node: int) -> tuple[int, ...]:
        """All others but constants: an arc from or to a column of one level costs nothing and says
        nothing.
        """
        return several_levels(self._table.cardinalities, node)

    def prices(self, adjacencies: np.ndarray) -> np.ndarray:
        """What the parameters of DAGs cost: bool (G, d, d) in, float64 (G,) out, nats."""
        levels = self._table.cardinalities
        rows = log_rows(self._release.n_samples, reduced=self._release.scale > 0)
        mean, margin = mean_and_margin(rows / 2, CHANCE_FIT)
        counted = counted_levels(levels, self._full_levels)
        return mean * _n_free(levels, adjacencies) + margin * _n_free(counted, adjacencies)

    def fit(self, adjacency: np.ndarray) -> Fits:
        """The fit of one DAG, bool (d, d): its likelihood, expected counts and means, with
        G = 1.
        """
        return self._table.fit(self._models([adjacency]), tolerance=self._tolerance)

    def _models(self, adjacencies: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """The DAGs with arcs between the intervention columns, bool (G, d, d)."""
        graphs = np.array(adjacencies, dtype=bool)
        if len(self._release.domain.interventions) > 1:
            for graph in graphs:
                graph |= designed_arcs(graph, self.names, self._release.domain)
        return graphs

    def cells(self, adjacency: np.ndarray) -> np.ndarray:
        """The means of the release's cells under the fit of one DAG, bool (d, d), those with codes
        of missing cells too; float64, of the release's shape.
        """
        means = self._table.seen(self.fit(adjacency).means)[0]
        cells: np.ndarray = means.reshape(self._release.values.shape)
        return cells

    def totals(self, adjacencies: np.ndarray) -> np.ndarray:
        """Scores of many DAGs: bool (G, d, d) in, float64 (G,) out, nats."""
        adjacencies = self._models(adjacencies)
        keys = equivalence_keys(adjacencies)
        self._fit_new(
            adjacencies, keys, [key for key in keys if not self._finished(key)], race=False
        )
        return np.array([self._known[key][0] for key in keys])

    def best(self, adjacencies: np.ndarray) -> tuple[int, float]:
        """The place and score of the best of many DAGs; fits that cannot win are given up early.

        A given-up fit has a lower bound and an estimated upper bound, and is taken up again where
        the latter might win: first in another race, since what it has to beat may be less than it
        was, then to its end.
        """
        adjacencies = self._models(adjacencies)
        keys = equivalence_keys(adjacencies)
        raced: set[bytes] = set()
        while True:
            top = max((self._known[key][0] for key in keys if self._finished(key)), default=-np.inf)
            fresh = [
                key
                for key in keys
                if key not in self._known or self._known[key][1] > max(top, self._known[key][0])
            ]
            if not fresh:
                place = next(i for i, key in enumerate(keys) if self._known[key] == (top, top))
                return place, top
            # A race goes by tabulated likelihoods and the bounds by exact ones, so the same race
            # could end the same for ever.
            again = [key for key in fresh if key in raced]
            self._fit_new(adjacencies, keys, again or fresh, race=not again, to_beat=top)
            raced.update(fresh)

    def _finished(self, key: bytes) -> bool:
        return key in self._known and self._known[key][0] == self._known[key][1]

    def _fit_new(
        self,
        adjacencies: np.ndarray,
        keys: list[bytes],
        fresh: list[bytes],
        *,
        race: bool,
        to_beat: float = -np.inf,
    ) -> None:
        wanted = set(fresh)
        places = list({key: place for place, key in enumerate(keys) if key in wanted}.values())
        if not places:
            return
        prices = self.prices(adjacencies[places])
        fits = self._table.fit(
            adjacencies[places],
            tolerance=self._tolerance,
            prices=prices if race else None,
            to_beat=to_beat,
        )
        worth = fits.log_likelihood - prices
        for place, value, slack in zip(places, worth.tolist(), fits.slack.tolist(), strict=True):
            self._known[keys[place]] = (value, value + slack)
        self.n_steps += int(fits.n_steps.sum())


def _n_free(levels: Sequence[float], adjacencies: np.ndarray) -> np.ndarray:
    """sum_v (r_v - 1) prod_{u in parents(v)} r_u of DAGs: bool (G, d, d) in, float64 (G,) out."""
    r = np.asarray(levels, dtype=np.float64)
    each = (r - 1) * np.where(adjacencies, r[:, None], 1.0).prod(axis=1)
    found: np.ndarray = each.sum(axis=1)
    return found
