r"""What releases of noisy interactions share: what they were bought with, their files, and what
searches and tests ask of them.
"""

from __future__ import annotations

import abc
import copy
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import jax
import numpy as np

from jaxcd.checks import shown_list
from jaxcd.citests import CITest, PreparedTest, Query
from jaxcd.data import Domain
from jaxcd.errors import OptionError
from jaxcd.ops.interactions import (
    cell_variance,
    interaction_sensitivity_squared,
    subsets,
    table_of_interactions,
)
from jaxcd.ops.nearest_interactions import nearest_interactions
from jaxcd.privacy import PrivacyCost
from jaxcd.releases.base import Release, facts_of_rows
from jaxcd.releases.kind import ReleaseKind
from jaxcd.releases.redrawing import redrawn
from jaxcd.releases.stated_noise import check_size
from jaxcd.releases.tables.available_interactions import (
    AvailableInteractions,
    available_interactions,
)
from jaxcd.releases.tables.fitted_tables import fit_tables
from jaxcd.releases.tables.marginal_purchase import MarginalsNoise
from jaxcd.releases.tables.noisy_strata import NoisyStrata, marginal_strata
from jaxcd.releases.tables.noisy_table_tests import table_tests
from jaxcd.releases.tables.set_score import set_score
from jaxcd.releases.tables.tabulated import InteractionTables
from jaxcd.scores.base import LocalScore
from jaxcd.scores.configurations import BIC

__all__ = ["ReleasedInteractions"]

Columns = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ReleasedInteractions(Release):
    """Noisy interactions of columns; public.  Subclasses say which tables can be built from them.

    Args:
        domain: the declared columns, all discrete.
        n_samples: n (public).
        interactions: for each measured set of columns (sorted positions) R_S, float64 (k_j - 1 for
            each), in records.
        variances: the variance of the independent noise on every entry of R_S; 0 without privacy.
        candidates: for each column its possible neighbours, sorted.
        cost: as in :class:`Release`.
        spent: as ``cost``.
        charges: as ``cost``.
        noise: the law of the noise.  Laplace noise on a table reaches its interactions as sums of
            independent draws, uncorrelated and of equal variance.
        bought: as in :class:`Release`.

    Raises:
        OptionError: the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    interactions: Mapping[Columns, np.ndarray]
    variances: Mapping[Columns, float]
    candidates: tuple[Columns, ...]
    cost: PrivacyCost
    spent: PrivacyCost
    noise: MarginalsNoise = MarginalsNoise.GAUSSIAN
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None
    _depend_on_reading: ClassVar[tuple[str, ...]] = ("counted", "agreed")
    # What noise adds to the entropy of a table, in halves of w of the set function: 1 where cells
    # are large beside it.  Of independent columns of 200 and 400 levels, 50,000 to 640,000 rows,
    # epsilon 4, most pairs were joined with 1, none with 1.25.
    noise_gain: ClassVar[float] = 1.5
    # The largest part of one cell in w.
    most_inflation: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if not self.domain.is_discrete or set(self.interactions) != set(self.variances):
            raise OptionError(
                "interactions and variances must have the same sets, of columns of a discrete "
                "domain"
            )
        if len(self.candidates) != len(self.cardinalities):
            raise OptionError(
                f"candidates must have one entry for each of the {len(self.cardinalities)} columns"
            )
        columns_there = set(range(len(self.cardinalities)))
        if not all(
            columns_there.issuperset(entry) and list(entry) == sorted({*entry} - {j})
            for j, entry in enumerate(self.candidates)
        ):
            raise OptionError(
                f"candidates: {self.candidates} are not all other columns in order, whose "
                f"positions are 0 to {len(self.cardinalities) - 1}"
            )
        if unmeasured := [self.names[j] for j in columns_there if (j,) not in self.interactions]:
            raise OptionError(f"interactions: those of {shown_list(unmeasured)} are missing")
        for columns, values in self.interactions.items():
            if not columns or not columns_there.issuperset(columns):
                raise OptionError(f"interactions: the set {columns} names no columns")
            shape = tuple(self.cardinalities[j] - 1 for j in columns)
            if values.shape != shape or list(columns) != sorted(set(columns)):
                raise OptionError(
                    f"interactions: the set {columns} has the shape {values.shape}, not {shape}"
                )
            if not np.isfinite(values).all():
                raise OptionError(f"interactions: those of the set {columns} are not all finite")
            if not (math.isfinite(self.variances[columns]) and self.variances[columns] >= 0):
                raise OptionError(
                    f"variances: that of {columns} is {self.variances[columns]!r}; it must be "
                    "finite and at least 0"
                )

    @cached_property
    def cardinalities(self) -> Columns:
        """The number of levels of each column."""
        return tuple(cardinality or 1 for cardinality in self.domain.cardinalities)

    def is_measured(self, columns: Columns) -> bool:
        """Whether the table of these columns (sorted positions) can be built: all its interactions
        are known.
        """
        return self.is_built(columns)

    def table(self, columns: Columns) -> np.ndarray:
        """The table of counts of the columns (sorted positions), float64: unbiased, and possibly
        negative.

        Raises:
            OptionError: it was not measured.
        """
        if not self.is_measured(columns):
            names = [self.names[j] for j in columns]
            raise OptionError(
                f"columns: the table of {names} was not measured; only those of columns and their "
                "candidates were"
            )
        return table_of_interactions(
            columns, self.cardinalities, self.n_samples, self.interactions.__getitem__
        )

    @cached_property
    def counted(self) -> ReleasedInteractions:
        """What scores count in: this release, or, where missing cells are left out, the tables of
        available cases that agree (:mod:`jaxcd.releases.tables.available_interactions`).
        """
        if not any(self.leaves_out):
            return self
        whole = [columns for columns in self.interactions if self.is_built(columns)]
        return self.of_available(available_interactions(self, whole))

    @cached_property
    def agreed(self) -> ReleasedInteractions:
        """This release with the nearest interactions whose tables have no negative cells
        (:mod:`jaxcd.ops.nearest_interactions`); post-processing.

        Cells that are empty in many tables pull the interactions that these share all in one
        direction, which is no noise; so a variance counts for less, by the root of the number of
        tables that it is part of.
        """
        found = copy.copy(self)
        tables = [columns for columns in self.interactions if self.is_built(columns)]
        shared = Counter(part for columns in tables for part in subsets(columns))
        nearest = nearest_interactions(
            self.interactions,
            {s: variance / math.sqrt(max(1, shared[s])) for s, variance in self.variances.items()},
            self.cardinalities,
            float(self.n_samples),
            tables,
        )
        object.__setattr__(found, "interactions", nearest)
        object.__setattr__(found, "agreed", found)
        return found

    def is_built(self, columns: Columns) -> bool:
        """Whether all interactions of the columns were measured."""
        known = self.interactions
        return (not columns or columns in known) and all(s in known for s in subsets(columns))

    def of_available(self, part: AvailableInteractions) -> ReleasedInteractions:
        """The release as it would be of rows without missing cells."""
        found: ReleasedInteractions = replace(
            self,
            domain=part.domain,
            n_samples=part.n_samples,
            interactions=part.interactions,
            variances=part.variances,
        ).priced(part.price)
        return found

    def priced(self, price: Callable[[Columns], float]) -> Any:
        """This release, with what its tables cost as parameters."""
        object.__setattr__(self, "_price", price)
        return self

    def n_parameters(self, columns: Columns) -> float:
        """What the table of the columns counts as parameters: its cells, and more where fewer rows
        tell of them.
        """
        price = self.__dict__.get("_price")
        if price is not None:
            return float(price(columns))
        return float(math.prod(self.cardinalities[j] for j in columns))

    def prepare(self, sets: Sequence[Columns]) -> None:
        """Builds many tables together, where a subclass gains by it."""

    def cell_variance(self, columns: Columns, *, summed: Mapping[int, int] | None = None) -> float:
        """The variance of the noise on each cell of :meth:`table`, or of its sums over so many
        levels of some of the columns.
        """
        return cell_variance(columns, self.cardinalities, self.variances, summed=summed)

    @classmethod
    @abc.abstractmethod
    def default_kind(cls) -> ReleaseKind:
        """The options of a release whose file does not record them."""

    def strata(self, query: Query) -> NoisyStrata:
        """The tables of a query, by what is given."""
        return marginal_strata(self, query)

    def tests(self) -> Mapping[type[CITest], Callable[[CITest], PreparedTest]]:
        return table_tests(
            self.n_samples,
            cardinalities=self.observed_cardinalities,
            strata=self.strata,
            measured=self._is_answered,
            sets=self.measured_sets,
            apart=frozenset(
                pair
                for pair in combinations(range(len(self.cardinalities)), 2)
                if not self.is_measured(pair)
            ),
        )

    def _is_answered(self, query: Query) -> bool:
        return self.is_measured(tuple(sorted((query.x, query.y, *query.given))))

    @property
    def measured_sets(self) -> tuple[Columns, ...] | None:
        """All sets of two and more columns whose tables can be built; None where these are not
        just the measured ones.
        """
        return tuple(s for s in self.interactions if len(s) > 1 and self.is_measured(s))

    def scores(self) -> Mapping[type, Callable[[Any, int | None], LocalScore]]:
        """BIC: the set score, which prices sampling and noise itself."""
        return {BIC: self._bic}

    def _bic(self, score: Any, max_parents: int | None) -> LocalScore:
        if score.penalty_discount != 1.0:
            raise OptionError(
                f"penalty_discount = {score.penalty_discount:g}: a release of {self.kind} prices "
                "sampling and noise itself; use 1, or SetScore"
            )
        limit = {} if max_parents is None else {"max_parents": max_parents}
        return set_score(self, **{**self.score_options, **limit})

    @property
    def score_options(self) -> dict[str, Any]:
        """The options of the score that :func:`jaxcd.search` maximises, where they are not the
        usual ones.
        """
        return {}

    def default_score(self) -> LocalScore:
        """The set score; where the domain names what was set, that of the natural rows of each
        column.
        """
        return set_score(self, **self.score_options)

    def tabulated(self) -> InteractionTables:
        """Those of the columns that were measured together."""
        return InteractionTables(self)

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """From the conditional tables of the measured families; parents that knowledge put beside
        others without a table in common are left out, as few as possible.
        """
        fitted = fit_tables(self.agreed, self._measured_part(adjacency))
        return redrawn(self, fitted, kind or self.bought or self.default_kind())

    def _measured_part(self, adjacency: np.ndarray) -> np.ndarray:
        """The DAG with, for each node, the first of its largest sets of parents that was measured
        with it.
        """
        part = np.zeros_like(adjacency)
        for v in range(len(adjacency)):
            parents = np.flatnonzero(adjacency[:, v]).tolist()
            sets = (s for k in range(len(parents), -1, -1) for s in combinations(parents, k))
            kept = next(s for s in sets if not s or self.is_measured(tuple(sorted((*s, v)))))
            part[list(kept), v] = True
        return part

    def facts_of_pairs(self) -> np.ndarray:
        """Of n over the standard deviation of the noise on the interactions of single columns."""
        variance = max((v for s, v in self.variances.items() if len(s) == 1), default=0.0)
        return facts_of_rows(self.n_samples / max(variance, 1e-9) ** 0.5, len(self.names))

    def _precision(self) -> np.ndarray:
        # Of Gaussian noise the singles' is the same whatever the rows are; later tables of Laplace
        # noise tell about them, too.
        columns = range(len(self.names)) if self.cost.delta > 0 else range(0)
        return np.array([self.variances[j,] for j in columns])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.names)} columns, {len(self.interactions)} sets, "
            f"n_samples={self.n_samples}; {self.cost})"
        )

    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        """Any measurement of R_S of squared sensitivity m costs at least m / (2 v) of rho, or the
        root of 2 m / v of epsilon; several add up.
        """
        squared = {
            s: interaction_sensitivity_squared(tuple(sorted(self.cardinalities[j] for j in s)))
            for s in self.variances
        }
        price = 1 / (2 * rho) if self.noise is MarginalsNoise.GAUSSIAN else 2 / epsilon**2
        found = [(self.variances[s], m * price) for s, m in squared.items() if m > 0]
        return min(found, key=lambda pair: pair[0] / pair[1], default=None)

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        sets = list(self.interactions)
        header = {
            "sets": [list(s) for s in sets],
            "candidates": [list(c) for c in self.candidates],
            "noise": self.noise.value,
        }
        values = np.concatenate([np.zeros(0), *(self.interactions[s].ravel() for s in sets)])
        return header, {
            "values": values,
            "variances": np.array([self.variances[s] for s in sets], dtype=np.float64),
        }

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedInteractions:
        k = [cardinality or 1 for cardinality in common["domain"].cardinalities]
        sets = [tuple(int(j) for j in s) for s in header["sets"]]
        if len(sets) != len(set(sets)):
            raise ValueError("a set of columns is there twice")
        shapes = [tuple(k[j] - 1 for j in s) for s in sets]
        parts = np.split(
            arrays["values"].astype(np.float64),
            np.cumsum([math.prod(shape) for shape in shapes])[:-1],
        )
        found = cls(
            interactions={
                s: part.reshape(shape) for s, part, shape in zip(sets, parts, shapes, strict=True)
            },
            variances=dict(zip(sets, arrays["variances"].astype(np.float64).tolist(), strict=True)),
            candidates=tuple(tuple(int(j) for j in c) for c in header["candidates"]),
            # files from before there was a choice
            noise=MarginalsNoise(header.get("noise", "discrete-gaussian")),
            **cls._own_parts(header),
            **common,
        )
        for s, values in found.interactions.items():
            deviation = math.sqrt(found.variances[s])
            check_size(f"the set {s}", values, rows=found.n_samples, deviation=deviation)
        return found

    @classmethod
    def _own_parts(cls, header: Mapping[str, Any]) -> dict[str, Any]:
        """What a subclass keeps beside, from its header."""
        return {}
