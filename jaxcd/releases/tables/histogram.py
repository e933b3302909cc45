r"""A release of the whole joint histogram: pure epsilon, for domains of up to some thousand cells.

Released: y_c = N_c + Z_c for all cells c of the declared joint domain, with N_c the number of rows
in the cell and Z_c independent discrete Laplace noise, P[Z = k] proportional to exp(-|k| / b),
b = 2 / epsilon.

Sensitivity. Replacing one row takes one from one cell and adds one to another, or changes nothing:
the L1 sensitivity is 2, whatever the number of cells. Cells no row falls into get noise like any
other: which cells are occupied is not public.

*Several rows a person.*  Each row counts 1/k of its person, in whole units of 2^-20
(:mod:`jaxcd.ops.people`); the counts and the noise are integers in these units, of L1 sensitivity 2
* 2^20 when a person is replaced, and what is released is rounded to whole people afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, final

import jax
import numpy as np

from jaxcd.checks import counted, hold_python_numbers, is_whole, said_of_columns, shown_count
from jaxcd.citests import CITest, PreparedTest
from jaxcd.data import Domain
from jaxcd.data.interventions import Interventions
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops.interactions import interaction, subsets
from jaxcd.privacy import Accountant, Budget, Ledger, PrivacyCost, Unit
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.privacy.mechanisms import laplace_variance
from jaxcd.queries import Door
from jaxcd.releases.base import Release, facts_of_rows
from jaxcd.releases.kind import ReleaseKind, paid
from jaxcd.releases.plans import Plan
from jaxcd.releases.redrawing import redrawn
from jaxcd.releases.stated_noise import check_size
from jaxcd.releases.tables.fitted_tables import CellModel
from jaxcd.releases.tables.marginals import ReleasedMarginals, screened
from jaxcd.releases.tables.measurement_error import MeasurementErrorScore
from jaxcd.releases.tables.noisy_strata import histogram_strata
from jaxcd.releases.tables.noisy_table_tests import table_tests
from jaxcd.releases.tables.questions import MarginalsNoise, Question
from jaxcd.releases.tables.set_score import set_score
from jaxcd.releases.tables.tabulated import CellTables
from jaxcd.scores.base import GraphScore, LocalScore
from jaxcd.scores.bdeu import BDeuScore
from jaxcd.scores.bic import BICScore
from jaxcd.scores.configurations import BIC, BDeu
from jaxcd.scores.counts import Counts, TableCounts, denoised_counts
from jaxcd.scores.interventional import with_known_targets

__all__ = ["HISTOGRAM_SENSITIVITY", "Histogram", "ReleasedHistogram", "interactions_of"]

_MOST_PARENTS = 5  # of the set score

_FEW_PARENTS = 3

HISTOGRAM_SENSITIVITY = 2.0
"""L1 sensitivity of all cells together when one row is replaced."""


@final
@dataclass(frozen=True)
class Histogram(ReleaseKind):
    """The joint histogram of all columns, y = N + discrete Laplace noise of scale 2 / epsilon on
    every cell.

    Args:
        max_cells: the largest joint domain that is accepted; noise falls on every cell, so large
            domains waste the budget.

    Raises:
        OptionError: it is not a whole number from 1.

    Guarantee:
        Relation: replace-one, of a row or (``unit="person"``) of a person with all of their rows;
        n, the declared levels and the options are public. Sensitivity: L1 2 over all cells
        together, in exact integers (of 2^-20 of a person: PRIVACY.md W). Event:
        ``PureEvent(epsilon)`` with the budget's epsilon (delta is not used), the only one, fixed
        before the data is read. Proof: one replaced row moves one count down and one up by 1, so
        the probabilities of any y, proportional to exp(-|y - N|_1 / b) with b >= 2 / epsilon,
        differ by a factor of at most exp(2 / b) <= exp(epsilon) (:func:`jaxcd.privacy.laplace`).

    Source:
        Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009 for integers.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(
        ...     data,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> bought.values.shape, bought.scale, int(bought.values.sum())
        ((2, 2, 2, 2, 2), 2.0, 19987)
    """

    claim = GuaranteeClaim(
        "the joint histogram is epsilon-DP with the whole epsilon of its budget; every search on "
        "it is post-processing"
    )

    max_cells: int = 8192
    word: ClassVar[str] = "histogram"
    title: ClassVar[str] = "joint histogram, and the graph of the highest exact score"
    is_pure: ClassVar[bool] = True
    takes_people: ClassVar[bool] = True
    takes_sites: ClassVar[bool] = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if not is_whole(self.max_cells, 1):
            raise OptionError(
                f"max_cells = {self.max_cells!r} is not a number of cells; use a whole number "
                "such as 8192"
            )

    def check(self, domain: Domain, n_samples: int = 1) -> None:
        """Refuses a domain, which is public, that this release cannot cover.

        Raises:
            DomainError: a column is numeric or the joint domain is too large.
        """
        numeric = [name for name in domain.names if not domain[name].is_discrete]
        if numeric:
            raise DomainError(
                f"data: {said_of_columns(numeric, 'is', 'are')} numeric, and a histogram counts "
                "levels; declare levels chosen in advance (ordinal), or leave out what is numeric "
                "with data.select(names)"
            )
        n_cells = math.prod(cardinality or 1 for cardinality in domain.cardinalities)
        if n_cells > self.max_cells:
            raise DomainError(
                f"data: the joint domain of {counted(domain.n_columns, 'column')} has "
                f"{shown_count(n_cells)} cells, more than max_cells = "
                f"{self.max_cells:,}; use Marginals (tables of few columns each), select fewer "
                "columns, or raise max_cells"
            )

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """The noise on a cell, sqrt(2) 2 k / epsilon, with k the most rows of a person."""
        self.check(domain, n_samples)
        return Plan.of(
            math.sqrt(2) * HISTOGRAM_SENSITIVITY / Ledger(budget).epsilon_limit,
            n_samples,
            number="cell",
            unit=budget.unit,
        )

    def buy(self, door: Door, accountant: Accountant) -> ReleasedHistogram:
        """One draw of noise for all cells."""
        shape = tuple(cardinality or 1 for cardinality in door.domain.cardinalities)

        # counts are whole numbers of rows, or of parts of a person, and so is their noise
        units = door.units
        epsilon = accountant.ledger.epsilon_limit
        everything = tuple(range(len(shape)))
        question = Question(
            shape,
            {everything: 1.0},
            frozenset([everything]),
            MarginalsNoise.LAPLACE,
            HISTOGRAM_SENSITIVITY * units,
            epsilon,
            "joint histogram, in 2^-20 of a person" if door.by_person else "joint histogram",
            grid=1.0,
            integral=True,
        )
        noisy, _, scale = door.answer(question, accountant)
        return ReleasedHistogram(
            domain=door.domain,
            n_samples=door.n_samples,
            values=np.rint(noisy / units).astype(np.int64).reshape(shape),
            scale=scale / units,
            bought=self,
            **paid(accountant),
        )


@final
@dataclass(frozen=True, eq=False)
class ReleasedHistogram(Release):
    """A noisy joint histogram; public.

    Args:
        domain: the declared columns, all discrete.
        n_samples: the number of rows n (public).
        values: y, int64, one axis a column; unbiased, and possibly negative.
        scale: b of the discrete Laplace noise on each cell; 0 without privacy.  Variance of the
            noise: 2 q / (1 - q)^2 with q = exp(-1/b), which is 2 b^2 - 1/6 for large b.
        cost: as in :class:`Release`.
        spent: as ``cost``.
        charges: as ``cost``.
        bought: as in :class:`Release`.

    Raises:
        OptionError: the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    values: np.ndarray
    scale: float
    cost: PrivacyCost
    spent: PrivacyCost
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None

    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.int64)
        if values.shape != self.domain.cardinalities:
            raise OptionError(
                f"values must have the shape {self.domain.cardinalities} of the domain, not "
                f"{values.shape}"
            )
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise OptionError(
                f"scale must be a finite number from 0, got {self.scale!r}: it is 2 / epsilon"
            )
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of levels of each column."""
        return tuple(self.values.shape)

    @property
    def variance(self) -> float:
        """The variance of the noise on each cell, in squared records."""
        if self.scale == 0:
            return 0.0
        if self.cost.unit is Unit.PERSON:  # fine noise, rounded to whole people
            return 2 * self.scale**2 + 1 / 12
        return laplace_variance(self.scale)

    def tests(self) -> Mapping[type[CITest], Callable[[CITest], PreparedTest]]:
        return table_tests(
            self.n_samples,
            cardinalities=self.observed_cardinalities,
            strata=partial(histogram_strata, self),
        )

    def scores(self) -> Mapping[type, Callable[[Any, int | None], LocalScore]]:
        """BIC and BDeu, on the denoised table."""
        return {BIC: self._bic, BDeu: self._bdeu}

    def _counts(self) -> TableCounts:
        return denoised_counts(self.values, scale=self.scale, n_samples=self.n_samples)

    def _limit(self, max_parents: int | None) -> int:
        return max(len(self.names) - 1, 0) if max_parents is None else max_parents

    def _bic(self, score: Any, max_parents: int | None) -> LocalScore:
        if any(self.leaves_out):
            return self._set_score(max_parents)
        options: dict[str, Any] = {
            "max_parents": self._limit(max_parents),
            "penalty": float(score.penalty_discount),
        }
        return self._scored(lambda names, counts: BICScore(names, counts, **options))

    def _bdeu(self, score: Any, max_parents: int | None) -> LocalScore:
        if any(self.leaves_out):
            raise OptionError(
                "score: BDeu has no form for available cases; use BIC(), or read missing cells "
                'as a level: missing="level"'
            )
        limit, size = self._limit(max_parents), float(score.equivalent_sample_size)
        return self._scored(
            lambda names, counts: BDeuScore(
                names, counts, max_parents=limit, equivalent_sample_size=size
            )
        )

    def _scored(self, score_of: Callable[[tuple[str, ...], Counts], LocalScore]) -> LocalScore:
        """The score of the denoised counts, of the natural rows of each column where the domain
        names what was set.
        """
        counts = self._counts()
        place = {name: axis for axis, name in enumerate(self.names)}
        return with_known_targets(
            self.domain,
            lambda names, rows: score_of(
                names,
                counts.part([place[name] for name in names], {place[c]: rows[c] for c in rows}),
            ),
        )

    def default_score(self) -> GraphScore:
        """The exact likelihood of the noisy counts, less BIC's penalty; where the domain names what
        was set, the set score of the natural rows of each column: BIC of the denoised table has no
        price for noise, and made edges of it.
        """
        if Interventions.of(self.domain).settings:
            return self._set_score(_FEW_PARENTS)
        return MeasurementErrorScore(self)

    def _set_score(self, max_parents: int | None) -> LocalScore:
        limit = max(len(self.names) - 1, 0) if max_parents is None else max_parents
        return set_score(interactions_of(self), max_parents=min(limit, _MOST_PARENTS))

    def tabulated(self) -> CellTables:
        """Sums of its cells."""
        return CellTables(self)

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """From the fit of the exact likelihood."""
        largest = max(1, int(adjacency.sum(axis=0).max(initial=0)))
        cells = MeasurementErrorScore(self, max_parents=largest).cells(adjacency)
        model = CellModel(self.domain, cells.ravel())
        return redrawn(
            self, model, kind or self.bought or Histogram(max_cells=max(self.values.size, 1))
        )

    def facts_of_pairs(self) -> np.ndarray:
        """Of n over the standard deviation of the noise on a cell."""
        return facts_of_rows(self.n_samples / max(self.variance, 1e-9) ** 0.5, len(self.names))

    def _precision(self) -> np.ndarray:
        return np.array([self.scale])

    def __repr__(self) -> str:
        return (
            f"ReleasedHistogram({self.domain.n_columns} columns, "
            f"{counted(self.values.size, 'cell')}, "
            f"n_samples={self.n_samples}, "
            f"noise scale {self.scale:.4g}; {self.cost})"
        )

    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        # discrete Laplace noise: its scale says as much
        return (self.scale, HISTOGRAM_SENSITIVITY / epsilon)

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"scale": self.scale}, {"values": self.values}

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedHistogram:
        values = arrays["values"]
        if values.dtype != np.int64:
            raise TypeError(f"values are {values.dtype}, not int64")
        found = cls(values=values, scale=float(header["scale"]), **common)
        check_size("values", values, rows=found.n_samples, deviation=2 * found.scale)
        return found


def interactions_of(release: ReleasedHistogram) -> ReleasedMarginals:
    """The interactions of all sets of up to six columns, as a release of marginals with the same
    cost and reading; post-processing.  Noise that is independent and equal on all cells is so on
    them.  Under much noise the candidates are those of round 2 of :class:`Marginals`.
    """
    d = len(release.cardinalities)
    found: dict[tuple[int, ...], np.ndarray] = {}
    variances: dict[tuple[int, ...], float] = {}
    for columns in (s for s in subsets(tuple(range(d))) if len(s) <= _MOST_PARENTS + 1):
        others = tuple(j for j in range(d) if j not in columns)
        found[columns] = interaction(release.values.sum(axis=others))
        variances[columns] = release.variance * math.prod(release.cardinalities[j] for j in others)
    bought = ReleasedMarginals(
        release.domain,
        release.n_samples,
        found,
        variances,
        tuple(tuple(j for j in range(d) if j != i) for i in range(d)),
        release.cost,
        release.spent,
        noise=MarginalsNoise.LAPLACE,
        charges=release.charges,
    )
    # Of tables whose cells noise hides, larger ones hardly pay more of the set score's price.
    candidates = screened(bought.reading(release.missing))
    read: ReleasedMarginals = replace(bought, candidates=candidates).reading(release.missing)
    return read
