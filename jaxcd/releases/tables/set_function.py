r"""A set function on released interactions: what the noisy table of a set of columns says, with the
noise counted.

Everything here is post-processing of :class:`jaxcd.releases.tables.marginals.ReleasedMarginals`.
For a set S of columns

    h(S) = sum over cells of t log t,  t the table of S;   h({}) = n log n,
    #S   = its number of cells;   #{} = 1,
    w(S) = sum over cells of min(v_S / max(t, 2 sqrt v_S), c),  v_S the variance of the noise on a
           cell;   w({}) = 0.

The tables are those of the nearest interactions without negative cells
(:mod:`jaxcd.ops.nearest_interactions`): they agree where they overlap, so that no information
h(x y Z) - h(x Z) - h(y Z) + h(Z) is negative.  Of tables that were made non-negative one by one it
was hundreds of nats off, either way (Alarm, 100,000 rows, epsilon 1).

h(v Pa) - h(Pa) is the log likelihood of column v given Pa; by the delta method noise of variance
v_S adds about w(S) / 2 to h(S), and scatters the likelihood ratio as if the table had w(S) further
cells.  A cell below two standard deviations of the noise counts as if it had them, since
non-negative cells beside it hold it there; c is the release's ``most_inflation``.  Whatever is
scored as a difference of a set function is equal for equivalent graphs, whatever the noise:

    value(S) = h(S) - (a' + (a - a') e(S)) #S - (b' + (b - b') e(S)) w(S) / 2,
    e(S)     = prod over S of c(k_j) / k_j,   a' = min(a, .58),  b' = min(b, g),

with c(k) the counted levels of :mod:`jaxcd.scores.level_margin`, which is k for few levels: then
value(S) = h(S) - a #S - b w(S) / 2.  Of a table of many numbers chance fit is paid in full, and
noise; what a and b exceed them by is a margin for scatter.  Noise adds g w / 2 to h, with g the
release's ``noise_gain``: 1 where it is small beside the cells, and more where it empties many of
them.  Without noise w = 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from jaxcd.ops.nearest_table import nearest_table
from jaxcd.scores.level_margin import CHANCE_FIT, counted_levels, mean_and_margin

__all__ = ["SetFunction", "SetTerms"]

Columns = tuple[int, ...]

# In standard deviations of the noise.  With the price of noise of the set score chosen on Alarm,
# Child and Sachs (10,000 and 100,000 rows, epsilon .2 to 4): 1 with 2 to 2.5 does as well, 3 worse.
_LEAST_CELL = 2.0


@dataclass(frozen=True)
class SetTerms:
    """What a set S of columns adds to a score.

    Args:
        entropy: h(S), in nats.
        n_cells: the number of cells; more where fewer rows tell of them.
        inflation: w(S), the cells that the noise is worth.
    """

    entropy: float
    n_cells: float
    inflation: float


class SetFunction:
    """h, # and w of the sets of columns whose interactions are known, each computed once.

    Args:
        full_levels: how many levels of a column pay a whole margin, from 2; None for all.
        release: the marginals.
    """

    def __init__(self, release: Any, *, full_levels: int | None = None) -> None:
        self._release = release
        levels = release.cardinalities
        counted = counted_levels(levels, full_levels)
        self._shares: list[float] = [c / k for c, k in zip(counted, levels, strict=True)]
        n = float(release.n_samples)
        self._terms: dict[Columns, SetTerms] = {(): SetTerms(n * math.log(n), 1.0, 0.0)}

    def prepare(self, sets: Collection[Columns]) -> None:
        """Has the release build the tables of many sets together, where that is quicker."""
        self._release.prepare([s for s in sets if s not in self._terms])

    def terms(self, columns: Columns) -> SetTerms:
        """The three numbers of a set (sorted positions)."""
        if columns not in self._terms:
            release = self._release
            table = nearest_table(release.table(columns), float(release.n_samples))
            variance = release.cell_variance(columns)
            inflation = 0.0
            if variance > 0:
                least = _LEAST_CELL * math.sqrt(variance)
                each = np.minimum(variance / np.maximum(table, least), release.most_inflation)
                inflation = float(each.sum())
            self._terms[columns] = SetTerms(
                float(special.xlogy(table, table).sum()), release.n_parameters(columns), inflation
            )
        return self._terms[columns]

    def value(self, columns: Columns, *, cell_price: float, noise_price: float) -> float:
        """h(S) less the prices a of a cell and b of the noise, in nats."""
        terms = self.terms(columns)
        share: float = math.prod(self._shares[j] for j in columns)
        cell, more = mean_and_margin(cell_price, CHANCE_FIT)
        noise, further = mean_and_margin(noise_price, self._release.noise_gain)
        sampling = (cell + share * more) * terms.n_cells
        return terms.entropy - sampling - (noise + share * further) * terms.inflation / 2

    def information(
        self, x: int, y: int, given: Columns, *, cell_price: float, noise_price: float
    ) -> float:
        """value(x y Z) - value(x Z) - value(y Z) + value(Z): the penalised log likelihood ratio of
        dependence, in nats.
        """
        both, first, second = (tuple(sorted({*pair, *given})) for pair in ((x, y), (x,), (y,)))
        parts = [
            self.value(s, cell_price=cell_price, noise_price=noise_price)
            for s in (both, first, second, given)
        ]
        return parts[0] - parts[1] - parts[2] + parts[3]
