r"""A score of graphs on released marginals that is equal for equivalent graphs under noise, and BIC
without it where no column has many levels.

    local(v, Pa) = value(v Pa) - value(Pa),
    value(S) = h(S) - (log n / 2) #S - noise_price w(S) / 2 for columns of few levels,

with h, # and w the set function of :mod:`jaxcd.releases.tables.set_function`.  A sum of differences
of one set function is the same for Markov equivalent DAGs: reversing a covered edge permutes its
terms.  Without noise w = 0, and h(v Pa) - h(Pa) is the maximised multinomial log likelihood, so the
score is BIC.  A column of more than ``full_levels`` levels pays less than BIC asks
(:mod:`jaxcd.scores.level_margin`): BIC's price of (k - 1) (l - 1) numbers is more than most edges
between such columns are worth (``benchmarks.many_levels``).

Sampling pays log n / 2 a parameter, so that a wrong one is refused as n grows.  Noise does not
vanish as n grows, and its directions are many and unequal; they pay ``noise_price`` halves, one for
the bias of h and three for its scatter.  A likelihood ratio that noise alone makes of d equal
directions of total w is about w / d times a chi-square, and P(chi2_d > 4 d) is .05 for d = 1 and
.003 for d = 4, before what sampling pays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxcd.checks import check_number
from jaxcd.data.interventions import Rows
from jaxcd.releases.base import Release, check_kind
from jaxcd.releases.tables.set_function import SetFunction
from jaxcd.releases.tables.table_part import TablePart
from jaxcd.scores.base import LocalScore, check_max_parents
from jaxcd.scores.interventional import with_known_targets
from jaxcd.scores.level_margin import FULL_LEVELS, check_full_levels

__all__ = ["SetScore", "set_score"]


def set_score(release: Release, **options: Any) -> LocalScore:
    """The set score of a release; where the domain names what was set, that of the natural rows of
    each column.

    Args:
        release: the marginals.
        options: of :class:`SetScore`.

    Raises:
        OptionError: an argument is not of its kind or out of range.
    """
    bought = check_kind(release, "marginals", "log-linear").counted.agreed

    def score_of(names: tuple[str, ...], rows: Rows) -> LocalScore:
        part = None if names == bought.names else TablePart(bought, names, rows)
        return SetScore(bought, part=part, **options)

    place = {name: j for j, name in enumerate(bought.names)}

    def told(name: str, rows: Rows) -> bool:
        setting = [place[column] for column in rows]
        return all(
            bought.is_measured(tuple(sorted(columns)))
            for columns in (setting, [*setting, place[name]])
        )

    return with_known_targets(bought.domain, score_of, told=told)


@final
class SetScore(LocalScore):
    """The penalised likelihood of a release of marginals; score-equivalent.

    Args:
        release: the marginals.
        max_parents: most parents a search tries.
        noise_price: b >= 0.
        full_levels: of :class:`jaxcd.releases.SetFunction`, from 2; None for BIC's price whatever
            the levels.
        part: the columns and rows of the release that count; None for all.

    Raises:
        OptionError: an argument is not of its kind or out of range.
    """

    def __init__(
        self,
        release: Release,
        *,
        max_parents: int = 4,
        noise_price: float = 4.0,
        full_levels: int | None = FULL_LEVELS,
        part: TablePart | None = None,
    ) -> None:
        whole = check_kind(release, "marginals", "log-linear").counted.agreed
        self._release: Any = whole if part is None else part
        check_number("noise_price", noise_price, 0, cure="give one such as 4.0")
        self._max_parents = check_max_parents(max_parents)
        self._price = noise_price
        self._full_levels = check_full_levels(full_levels)
        self._values = SetFunction(self._release, full_levels=full_levels)
        self._cell_price = math.log(self._release.n_samples) / 2

    # : Families that were not measured make most graphs impossible; orders find the best of the
    # others.
    most_exact = 0

    @property
    def settings(self) -> dict[str, Any]:
        """The options, for a result's info."""
        return {"n_sets": len(self._release.interactions), **self.options}

    @property
    def options(self) -> dict[str, Any]:
        """The arguments, but for the release."""
        return {
            "max_parents": self.max_parents,
            "noise_price": self._price,
            "full_levels": self._full_levels,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the release."""
        return tuple(self._release.names)

    @property
    def max_parents(self) -> int:
        """The largest number of parents that a search tries."""
        return self._max_parents

    def value(self, columns: tuple[int, ...]) -> float:
        """The set function at a set of columns (sorted positions), in nats.

        Raises:
            OptionError: its table was not measured.
        """
        return self._values.value(
            columns, cell_price=self._cell_price, noise_price=float(self._price)
        )

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """value(node and parents) - value(parents), in nats; -inf where the release did not measure
        their table.
        """
        family = tuple(sorted((node, *parents)))
        if not self._release.is_measured(family):
            return -math.inf
        return self.value(family) - self.value(tuple(sorted(parents)))

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        self._values.prepare(
            {s for p in families for s in (tuple(sorted(p)), tuple(sorted((node, *p)))) if s}
        )
        return super().locals(node, families)

    def candidates(self, node: int) -> tuple[int, ...]:
        """The release's candidates of the node."""
        found: tuple[int, ...] = self._release.candidates[node]
        return found

    def families(self, node: int) -> tuple[tuple[int, ...], ...]:
        """The sets of candidates whose table with the node was measured."""
        return tuple(
            p
            for p in super().families(node)
            if self._release.is_measured(tuple(sorted((node, *p))))
        )
