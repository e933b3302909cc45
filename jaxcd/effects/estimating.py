"""Estimates and intervals of one effect for given adjustment sets, from the tables or the
regressions of a release.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any, final

import numpy as np
from scipy import special

from jaxcd.checks import is_iterable
from jaxcd.data.column_types import reading
from jaxcd.data.interventions import Interventions
from jaxcd.effects.agreeing import AgreeingTables
from jaxcd.effects.contracting import MOST_CELLS
from jaxcd.effects.families import Families, FamilyFormula, all_families, families_of
from jaxcd.effects.identification import Possibility
from jaxcd.effects.likelihood import Contrast, Interval, profile_interval, profile_of_tables
from jaxcd.effects.whole_graph import MOST_PARAMETERS, WholeGraph, n_parameters
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.releases.tables.tabulated import NoisyTable

__all__ = ["Estimator", "LinearEstimator", "TableEstimator", "estimator_of"]

# The optimal set is taken where the noise on a cell has at most this share of the variance of an
# average count, and an average cell this many rows; else the smallest table.
_QUIET = 0.01
_FULL = 10.0
_TRIED = 300


class Estimator(abc.ABC):
    """How one effect is read off a release.

    Attributes:
        treatment: its column.
        outcome: its column.
        levels: what is compared, (from, to); None for a change by one unit.
        unit: what the effect is of, in words.
        span: no effect is larger; inf where nothing bounds it.
        assumptions: what the estimate takes for granted beside the graph.
    """

    treatment: str
    outcome: str
    levels: tuple[Any, Any] | None
    unit: str
    span: float
    assumptions: tuple[str, ...]

    @abc.abstractmethod
    def chosen(self, possibility: Possibility) -> tuple[str, ...] | None:
        """The adjustment set to use; None where the release measured none."""

    @abc.abstractmethod
    def interval(self, given: tuple[str, ...], level: float) -> Interval:
        """The effect with this adjustment set."""

    def by_graph(self, graph: MixedGraph, level: float) -> Interval | None:
        """The effect by the likelihood of a whole DAG; None where the release has no such."""
        return None

    def by_families(self, graph: MixedGraph, level: float) -> Interval | None:
        """The effect by the tables of a DAG's families; None where the release lacks one."""
        return None

    def blurred(self, families: Families) -> tuple[str, ...]:
        """The columns among the causes of these families whose cells do not tell what the column
        is, so that what it separates by a DAG is not separated in the tables.
        """
        return ()

    def set_between(self, between: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
        """In words, in which of the rows that count one of these columns was set."""
        return ()

    def bounds(self, level: float) -> Interval:
        """Between what ends the effect lies whatever is hidden."""
        return Interval(math.nan, math.nan, lambda: (-self.span, self.span))

    @staticmethod
    def _around(value: float, variance: float, level: float, freedom: float = math.inf) -> Interval:
        """The normal interval, or Student's where the variance has so many degrees of freedom."""
        error = math.sqrt(max(variance, 0.0))
        share = 0.5 + level / 2
        quantile = special.ndtri(share) if math.isinf(freedom) else special.stdtrit(freedom, share)
        reach = float(quantile) * error
        return Interval(value, error, lambda: (value - reach, value + reach))


@final
class TableEstimator(Estimator):
    """From noisy tables."""

    def __init__(
        self,
        release: Any,
        treatment: str,
        outcome: str,
        *,
        levels: tuple[Any, Any] | None,
        outcome_level: Any,
    ) -> None:
        self.treatment, self.outcome = treatment, outcome
        self._source = release.tabulated()
        self._n = float(release.n_samples)
        sizes = zip(release.names, release.observed_cardinalities, strict=True)
        self._cells = {name: size for name, size in sizes}
        start, end = _compared(release.domain[treatment], treatment, levels)
        names = release.domain[treatment].levels
        self.levels = (names[start], names[end])
        scores, self.unit = _scores(
            release.domain[outcome], outcome, outcome_level, n_cells=self._cells[outcome]
        )
        self.contrast = Contrast(start, end, scores)
        self._coarse: tuple[str, ...] = release.coarse
        self.span = self.contrast.span
        # By column that says where the treatment, or the outcome, was set: its codes in the other
        # rows.
        natural = Interventions.of(release.domain).natural
        self._natural_rows = natural
        self._natural = natural.get(treatment, {})
        self._free = {c: codes for c, codes in natural.get(outcome, {}).items() if c != treatment}
        self.assumptions = (
            "every group that is compared has rows of both levels of the treatment",
            *(
                f"where {setting} is held fixed, rows in which it says that {treatment} was set "
                "are left out: they have one level of it"
                for setting in self._natural
            ),
            *(
                f"rows in which {setting} says that {outcome} was set are left out: they do not "
                "tell what changes it"
                for setting in self._free
            ),
        )

    def _table_names(self, given: tuple[str, ...]) -> tuple[str, ...]:
        told = (name for name in self._free if name not in given)
        return self.treatment, self.outcome, *given, *told

    def _size(self, given: tuple[str, ...]) -> int:
        return math.prod(self._cells[name] for name in self._table_names(given))

    def _kept(self, given: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """By column that says what was set: its codes in the rows that count."""
        found = {name: codes for name, codes in self._natural.items() if name in given}
        for name, codes in self._free.items():
            found[name] = tuple(code for code in codes if code in found.get(name, codes))
        return found

    def set_between(self, between: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
        kept = self._kept(given)
        return tuple(
            f"rows in which {setting} says that {name} was set count as they were taken: in them "
            f"{self.treatment} changes nothing by way of {name}"
            for name in between
            for setting, codes in self._natural_rows.get(name, {}).items()
            if set(kept.get(setting, range(self._cells[setting]))) - set(codes)
        )

    def _fits(self, given: tuple[str, ...]) -> bool:
        measured = self._source.is_measured(self._table_names(given))
        return bool(measured and all(self._kept(given).values()))

    def chosen(self, possibility: Possibility) -> tuple[str, ...] | None:
        tried = []
        for place, given in enumerate(possibility.sets):
            if self._fits(given):
                if place == 0 and self._is_quiet(given):
                    return given
                tried.append(given)
            if place >= _TRIED and tried:
                break
        return min(tried, key=self._size) if tried else None

    def _is_quiet(self, given: tuple[str, ...]) -> bool:
        rows = self._n / self._size(given)
        noise = self._source.table(self._table_names(given)).variance
        return rows >= _FULL and noise <= _QUIET * rows or noise == 0

    def _table(self, given: tuple[str, ...]) -> NoisyTable:
        """The table of an adjustment set, of the rows in which no column of the set says that the
        treatment was set, and none at all that the outcome was.
        """
        names, kept = self._table_names(given), self._kept(given)
        table: NoisyTable = self._source.table(names)
        if not kept:
            return table
        places = np.ix_(
            *(
                kept.get(name, range(size))
                for name, size in zip(names, table.counts.shape, strict=True)
            )
        )
        whole, noise = np.zeros(table.counts.shape), table.noise
        # Columns that only say which rows count.
        told = tuple(range(2 + len(given), len(names)))

        def of_rows(weights: np.ndarray) -> float:
            assert noise is not None
            of_all = whole.copy()
            of_all[places] = np.expand_dims(weights, told)
            return noise(of_all)

        part = table.counts[places]
        counts = part.sum(axis=told)
        return dataclasses.replace(
            table,
            counts=counts,
            variance=table.variance * (part.size // counts.size),
            n_samples=max(float(counts.sum()), 1.0),
            noise=None if noise is None else of_rows,
        )

    def interval(self, given: tuple[str, ...], level: float) -> Interval:
        if self.span == 0:
            return Interval(0.0, 0.0, lambda: (0.0, 0.0))
        table = self._table(given)
        shape = table.counts.shape
        noise = table.noise
        return profile_interval(
            table.counts.reshape(*shape[:2], -1),
            self.contrast,
            variance=table.variance,
            n_samples=table.n_samples,
            noise=None if noise is None else lambda weights: noise(weights.reshape(shape)),
            level=level,
        )

    def bounds(self, level: float) -> Interval:
        if not self._fits(()):
            return super().bounds(level)
        table, s = self._table(()), self.contrast.scores
        n, ends = table.n_samples, []
        for least, most in ((s.min(), s.max()), (s.max(), s.min())):
            weights = np.full(table.counts.shape, least - most)
            weights[self.contrast.end] = s - most
            weights[self.contrast.start] = least - s
            value = float((weights * table.counts).sum()) / n
            share = np.maximum(table.counts, 0) / n
            variance = float((weights**2 * share).sum()) - float((weights * share).sum()) ** 2
            noise = table.noise
            added = table.variance * (weights**2).sum() if noise is None else noise(weights)
            inside = min(max(value, -self.span), self.span)
            ends.append((inside, variance / n + float(added) / n**2))
        # The true ones are in order and within the span: noise may put the estimates elsewhere.
        lowest, highest = (self._around(*end, level) for end in sorted(ends))
        low, high = max(lowest.low, -self.span), min(highest.high, self.span)
        return Interval(math.nan, math.nan, lambda: (low, high))

    def blurred(self, families: Families) -> tuple[str, ...]:
        """Those known in bins, or missing and read as a level.  Not what is held at a level, which
        has no family; nor a column without causes and with one effect, of which the DAG says
        nothing that its bins do not.
        """
        n_effects = Counter(name for _, *parents in families for name in parents)
        has_causes = {name: bool(parents) for name, *parents in families}
        return tuple(
            name
            for name in self._coarse
            if name in has_causes and n_effects[name] > (not has_causes[name])
        )

    def by_families(self, graph: MixedGraph, level: float) -> Interval | None:
        families = families_of(graph, self.treatment, self.outcome)
        if self.span == 0 or not all(self._source.is_measured(names) for names in families):
            return None
        if self._free or any(name in self._natural for names in families for name in names):
            return None  # it reads rows that do not count
        if not any(self._source.table(names).variance for names in families):
            return None  # the formula is that of the adjustment set
        source = self._agreeing(graph) or self._source
        tables = [source.table(names) for names in families]
        formula = FamilyFormula(
            tuple(tuple(graph.index(name) for name in names) for names in families),
            tuple(table.counts.shape for table in tables),
            graph.index(self.treatment),
            graph.index(self.outcome),
            self.contrast,
        )
        if formula.contraction.largest > MOST_CELLS:
            return None
        return profile_of_tables(
            [table.counts for table in tables],
            formula,
            variances=[table.variance for table in tables],
            n_samples=[table.n_samples for table in tables],
            axes=[0] * len(tables),
            noise=lambda weights: source.noise(list(zip(families, weights, strict=True))),
            level=level,
        )

    def _agreeing(self, graph: MixedGraph) -> AgreeingTables | None:
        release = self._source.interactions
        if release is None or set(graph.names) != set(release.names):
            return None
        if self.blurred(all_families(graph)):
            return None  # the DAG does not say what the other tables must be
        return _agreed(release, graph.reordered(release.names))

    def by_graph(self, graph: MixedGraph, level: float) -> Interval | None:
        joint = self._source.joint
        if joint is None or self.span == 0 or set(graph.names) != set(joint.names):
            return None
        if self._natural or self._free:
            return None  # it reads rows that do not count
        ordered = graph.reordered(joint.names)
        if n_parameters(joint.cardinalities, ordered) > MOST_PARAMETERS:
            return None
        whole = _prepared(joint, ordered)
        x, y = (joint.names.index(name) for name in (self.treatment, self.outcome))
        return whole.interval(x, y, self.contrast, level)


@lru_cache(maxsize=4)
def _prepared(joint: Any, graph: MixedGraph) -> WholeGraph:
    return WholeGraph(joint.values, scale=joint.scale, n_samples=joint.n_samples, graph=graph)


@lru_cache(maxsize=4)
def _agreed(release: Any, graph: MixedGraph) -> AgreeingTables | None:
    arcs = graph.directed
    families = (tuple(sorted((v, *np.flatnonzero(arcs[:, v])))) for v in range(graph.n_nodes))
    measured = all(release.is_built(columns) for columns in families)
    return AgreeingTables(release, graph) if measured else None


@final
class LinearEstimator(Estimator):
    """From regressions of second moments."""

    def __init__(
        self,
        release: Any,
        treatment: str,
        outcome: str,
        *,
        levels: tuple[Any, Any] | None,
        outcome_level: Any,
    ) -> None:
        if outcome_level is not None:
            raise OptionError(
                f"outcome_level = {outcome_level!r}: {outcome!r} is numeric and has no levels; "
                "leave it out"
            )
        self.treatment, self.outcome, self.levels = treatment, outcome, levels
        self._source, self._times = release.linear(), 1.0
        if levels is not None:
            try:
                start, end = (float(value) for value in levels)
            except (TypeError, ValueError, OverflowError):
                start = end = math.nan
            if not math.isfinite(end - start) or start == end:
                raise OptionError(
                    f"levels {_in_words(levels)}: {treatment!r} is numeric; give two different "
                    "numbers (from, to)"
                )
            self._times, self.levels = end - start, (start, end)
        self.unit = f"mean of {outcome}"
        self.span = math.inf
        self.assumptions = ("effects are linear and add up; errors are about normal",)

    def chosen(self, possibility: Possibility) -> tuple[str, ...] | None:
        return possibility.chosen(
            lambda given: bool(self._source.is_measured((self.treatment, self.outcome, *given)))
        )

    def interval(self, given: tuple[str, ...], level: float) -> Interval:
        found = self._source.coefficient(self.treatment, self.outcome, given)
        value = found.value * self._times
        if math.isinf(found.variance):
            return Interval(value, math.inf, lambda: (-math.inf, math.inf))
        return self._around(value, found.variance * self._times**2, level, found.freedom)


def estimator_of(
    release: Any,
    treatment: str,
    outcome: str,
    *,
    levels: tuple[Any, Any] | None,
    outcome_level: Any,
) -> Estimator:
    """The estimator that fits the release.

    Raises:
        OptionError: the release has neither tables nor moments, or levels do not fit the columns.
    """
    # Of a set hashing would choose the sign of the effect.
    is_listed = is_iterable(levels) and hasattr(levels, "__len__")
    unordered = isinstance(levels, (str, bytes, Set, Mapping)) or not is_listed
    if levels is not None and (unordered or len(levels) != 2):
        raise OptionError(
            f"levels {_in_words(levels)} are not two levels (from, to) of {treatment!r}; give a "
            "tuple of two"
        )
    options: dict[str, Any] = {"levels": levels, "outcome_level": outcome_level}
    if release.tabulated() is not None:
        return TableEstimator(release, treatment, outcome, **options)
    if release.linear() is not None:
        return LinearEstimator(release, treatment, outcome, **options)
    raise OptionError(
        f"release: one of {release.kind.replace('-', ' ')} holds neither tables nor moments of the "
        "columns, and no effect with a known error can be read from it; buy Histogram or Marginals "
        "of columns with levels, or SecondMoments of numeric ones"
    )


def _place(column: Any, name: str, argument: str, level: Any) -> int:
    known = list(column.levels)
    level = level.tolist() if hasattr(level, "tolist") else level  # no array, which equals in parts
    for place, own in enumerate(known):
        if type(own) is type(level) and own == level:
            return place
    for place, own in enumerate(known):
        if own == level or str(own) == str(level):
            return place
    for place, own in enumerate(known):  # as a cell of a table: "true" is True, "1.0" is 1
        if reading(own) == reading(level) is not None:
            return place
    raise OptionError(f"{argument}: {level!r} is no level of {name!r}; it has {_in_words(known)}")


def _in_words(levels: Any) -> str:
    return " and ".join(map(repr, levels)) if isinstance(levels, (tuple, list)) else repr(levels)


def _compared(column: Any, name: str, levels: Any) -> tuple[int, int]:
    known = list(column.levels)
    if levels is None:
        if len(known) == 1:
            raise OptionError(
                f"treatment: {name!r} has one level, {known[0]!r}, and nothing to compare it with"
            )
        if len(known) > 2:
            raise OptionError(
                f"levels: {name!r} has the levels {_in_words(known)}; say which two to compare, "
                f"such as {_in_words((known[0], known[-1]))}"
            )
        return 0, 1
    start, end = (_place(column, name, "levels", level) for level in levels)
    if start == end:
        raise OptionError(
            f"levels {_in_words(levels)}: the two are the same; give two different ones"
        )
    return start, end


def _scores(column: Any, name: str, level: Any, *, n_cells: int) -> tuple[np.ndarray, str]:
    """s(y) of the levels, and of "missing" where that is one, (n_cells,); and what the effect is of
    in words.
    """
    known = list(column.levels)
    missing = n_cells - len(known)
    if level is not None or len(known) == 2:
        place = 1 if level is None else _place(column, name, "outcome_level", level)
        scores = np.zeros(n_cells)
        scores[place] = 1.0
        among = " (among all rows, also those in which it is missing)" if missing else ""
        return scores, f"probability of {name} = {known[place]}{among}"
    if missing:
        raise OptionError(
            f"missing: read as a level, a missing {name!r} has no place in a mean; leave such rows "
            f"out (missing='ignore'), or ask for one level (outcome_level={known[-1]!r})"
        )
    if all(isinstance(own, (int, float)) and not isinstance(own, bool) for own in known):
        return np.array(known, dtype=np.float64), f"mean of {name}"
    places = np.arange(len(known), dtype=np.float64)
    return places, f"mean of {name} (its levels count 0, 1, 2, ... in the domain's order)"
