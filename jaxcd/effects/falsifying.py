r"""Does the graph fit?  The independences that it implies, tested on one release with the noise in
the null.

A DAG says of every node v that it is independent of each non-descendant given its parents (the
local Markov property).  For every pair of columns that it does not join there is one such
condition: the one of the later column, given its parents.  Where the release did not measure that
table, another set that separates the pair by the graph takes the place of the parents: first the
parents of the earlier column, then small sets.  Conditions of which no table was measured are not
tested, and counted; nor those given a column that is known in bins, or whose missing cells are read
as a level: what the column separates its cells do not.  How the columns that say under which
conditions a row was taken depend on each other is no condition: it was designed
(:mod:`jaxcd.data.intervention_knowledge`).

*All at once.*  p-values are corrected by Holm's rule, so the chance that a true graph has any
violation is at most alpha, whatever the dependence between the tests, as far as the p-values are
right under noise (:mod:`jaxcd.releases.tables.noisy_table_tests`).  The usual test of tables is
``ChiSquare``: in strata of few rows the p-values of G are too small far too often where there is
little noise, and where there is much the two are the same.

*Better than chance?* The names are permuted, and the share of conditions with p below alpha
compared: ``chance_pvalue`` is (1 + permutations with no larger share) / (1 + permutations).
Permutations of which no condition can be tested say nothing, and are left out.  A graph whose class
most permutations share says little (``same_class``), and one that does no better than permuted ones
says nothing of the data, also if few conditions fail.

Source:
    Lauritzen, Dawid, Larsen, Leimer 1990 for the Markov properties; Holm 1979; Eulig, Mastakouri,
    Bloebaum, Hardt, Janzing 2023, Toward falsifying causal graphs using a permutation-based test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, final

import numpy as np

from jaxcd.checks import a_type, check_number, check_whole, shown_list
from jaxcd.citests import ChiSquare, CITest, FisherZ, Query
from jaxcd.citests.base import check_is_test
from jaxcd.data import Missing
from jaxcd.data.intervention_knowledge import designed_arcs
from jaxcd.effects.identification import as_graph
from jaxcd.effects.result import EqualFields
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import (
    DSeparation,
    MixedGraph,
    consistent_extension,
    dag_to_cpdag,
    topological_order,
)
from jaxcd.privacy import PrivacyCost
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.queries.queue import Queue
from jaxcd.releases import Release

__all__ = ["Falsification", "Violation", "falsify"]

_MOST_SETS = 12  # that are looked at for a pair
_LARGEST_SET = 3

Pair = tuple[int, int]
Sets = tuple[tuple[int, ...], ...]


@final
@dataclass(frozen=True)
class Violation:
    """A condition that the graph implies and the release contradicts.

    Args:
        x: a column.
        y: a column that the graph says is independent of x.
        given: the columns given which it says so.
        pvalue: of the test, not corrected.
    """

    x: str
    y: str
    given: tuple[str, ...]
    pvalue: float


@final
@dataclass(frozen=True, eq=False)
class Falsification(EqualFields):
    """Whether a graph fits a release; public.

    Args:
        pvalue: of all conditions together, corrected by Holm's rule (the smallest one); 1 where
            nothing could be tested.
        violations: the conditions that fail at alpha after the correction, the worst first.
        alpha: the level.
        n_tested: conditions that were tested.
        n_implied: conditions that the graph implies, one for each pair that it does not join.
        chance_pvalue: of the permutation baseline; NaN without permutations.
        n_permutations: of how many at least one condition could be tested.
        same_class: the share of permutations with the same independences; NaN without permutations,
            and where the graph has nodes that the release lacks.
        cost: of the release; this costs nothing more.
    """

    pvalue: float
    violations: tuple[Violation, ...]
    alpha: float
    n_tested: int
    n_implied: int
    chance_pvalue: float
    n_permutations: int
    same_class: float
    cost: PrivacyCost

    @property
    def falsified(self) -> bool:
        """Whether at least one implied independence fails."""
        return bool(self.violations)

    @property
    def sentence(self) -> str:
        """The same in plain words."""
        if not self.n_tested:
            return "Nothing of what the graph implies could be tested on this release."
        tested = f"of {self.n_tested} independences that were tested ({self.n_implied} are implied)"
        words = (
            f"{len(self.violations)} {tested} fail: the graph does not fit."
            if self.falsified
            else f"None {tested} fails at level {self.alpha:g}."
        )
        if not self.n_permutations:
            return words
        better = self.chance_pvalue <= self.alpha
        return f"{words} It does {'' if better else 'not '}fit better than with its names permuted."


@claiming(
    GuaranteeClaim(
        "post-processing: reads released numbers only", assumptions="those of the release"
    )
)
def falsify(
    release: Release,
    graph: Any,
    *,
    alpha: float = 0.05,
    test: CITest | None = None,
    n_permutations: int = 100,
    seed: int = 0,
    missing: Missing | str | None = None,
) -> Falsification:
    """Tests the independences that a graph implies on a release, all at once and with the noise in
    the null, and whether the graph fits better than with its names permuted; costs nothing more.

    Independences given a column that is known in bins (``Discretised``, or bins of the domain), or
    whose missing cells are read as a level, are not tested: its cells tell too little of it.

    Args:
        release: what :func:`jaxcd.release` returned.
        graph: a DAG or a CPDAG: a networkx DiGraph or a MixedGraph.  Nodes that the release lacks
            are hidden, and no condition is tested that needs them.
        alpha: the level, between 0 and 1.
        test: one that the release answers; None for ChiSquare on tables and FisherZ on
            moments.
        n_permutations: of the names, from 0.
        seed: of the permutations, from 0; public.
        missing: as for :func:`jaxcd.search`.

    Returns:
        ``.pvalue``, ``.violations``, ``.chance_pvalue``, ``.sentence``.

    Raises:
        OptionError: an argument is out of its range, or the release answers no test.
        GraphError: the graph is no DAG or CPDAG, or shares fewer than two names with the release.

    Source:
        module docstring.

    Example:
        >>> import jax, jaxcd
        >>> network = jaxcd.networks.load("cancer")
        >>> data = network.sample(50_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> jaxcd.falsify(bought, network.dag).violations
        ()
        >>> empty = jaxcd.MixedGraph.empty(bought.names)
        >>> jaxcd.falsify(bought, empty).falsified
        True
    """
    if not isinstance(release, Release):
        raise OptionError(
            f"release: {a_type(release)} is no release; buy one with jaxcd.release(data, "
            "...), or load one with jaxcd.Release.load(path)"
        )
    check_number("alpha", alpha, 0, 1, "()", cure="0.05 is usual")
    check_whole("n_permutations", n_permutations, 0, cure="100 is usual")
    if test is not None:
        check_is_test(test)
    check_whole("seed", seed, 0, cure="give one such as 0")
    read: Release = release if missing is None else release.reading(missing)
    dag = _dag(as_graph(graph))
    arcs = dag.directed
    dag = MixedGraph.from_arcs(dag.names, arcs | designed_arcs(arcs, dag.names, read.domain))
    shared = [dag.index(name) for name in read.names if name in dag.names]
    if len(shared) < 2:
        raise GraphError(
            f"graph: it shares fewer than two names with the release, which has "
            f"{shown_list(read.names)}"
        )
    places = {dag.index(name): read.names.index(name) for name in read.names if name in dag.names}
    conditions = {
        (places[v], places[w]): tuple(tuple(places[u] for u in given) for given in sets)
        for (v, w), sets in _conditions(dag, shared).items()
    }
    pvalues = _PValues(read, test)
    own = pvalues.of(conditions)
    holm = _holm([p for _, _, p in own], alpha)
    violations = sorted(
        (
            Violation(
                read.names[v], read.names[w], tuple(read.names[u] for u in given), math.exp(log_p)
            )
            for ((v, w), given, log_p), fails in zip(own, holm, strict=True)
            if fails
        ),
        key=lambda one: one.pvalue,
    )
    smallest = min((log_p for _, _, log_p in own), default=0.0)
    chance, n_compared, same = _against_permuted(
        pvalues, conditions, dag, list(places.values()), n_permutations, seed, alpha
    )
    return Falsification(
        pvalue=min(1.0, math.exp(smallest) * max(len(own), 1)),
        violations=tuple(violations),
        alpha=alpha,
        n_tested=len(own),
        n_implied=len(conditions),
        chance_pvalue=chance,
        n_permutations=n_compared,
        same_class=same,
        cost=read.cost,
    )


def _dag(graph: MixedGraph) -> MixedGraph:
    if not (graph.adjacency == (graph.directed | graph.directed.T | graph.undirected)).all():
        raise GraphError("graph: falsify takes a DAG or a CPDAG, and this one has other edges")
    dag = consistent_extension(graph)
    if dag is None:
        raise GraphError("graph: no DAG has its adjacencies and v-structures; give a DAG")
    return dag


def _conditions(dag: MixedGraph, shared: Sequence[int]) -> dict[Pair, Sets]:
    """For each pair that is not joined the sets that separate it, the local Markov condition's
    first; none of them has a node that is not shared.
    """
    arcs = dag.directed
    rank = {v: k for k, v in enumerate(topological_order(arcs))}
    separation, known = DSeparation(dag), set(shared)
    found = {}
    for a, b in combinations(shared, 2):
        if dag.adjacency[a, b]:
            continue
        v, w = (a, b) if rank[a] > rank[b] else (b, a)
        parents = [tuple(np.flatnonzero(arcs[:, u]).tolist()) for u in (v, w)]
        near = sorted({u for own in parents for u in own} & known - {v, w})
        small = (z for k in range(_LARGEST_SET + 1) for z in combinations(near, k))
        wanted: Iterable[tuple[int, ...]] = (*parents, *islice(small, 60))
        sets = []
        for given in wanted:
            usable = set(given) <= known and not {v, w} & set(given) and given not in sets
            if usable and separation.separated(v, w, given):
                sets.append(given)
            if len(sets) == _MOST_SETS:
                break
        if sets:
            found[v, w] = tuple(sets)
    return found


@final
class _PValues:
    """Logarithms of p-values of conditions on a release, each computed once."""

    def __init__(self, release: Release, test: CITest | None) -> None:
        answered = release.tests()
        if test is None:
            usual = next((kind for kind in (ChiSquare, FisherZ) if kind in answered), None)
            kinds = [usual] if usual is not None else list(answered)
            if not kinds:
                raise OptionError(f"release: one of {release.kind} answers no test")
            test = kinds[0]()
        self._prepared = release.prepare_test(test)
        self._coarse = {release.names.index(name) for name in release.coarse}
        self._known: dict[Query, float] = {}

    def of(self, conditions: dict[Pair, Sets]) -> list[tuple[Pair, tuple[int, ...], float]]:
        """The conditions that can be tested, with the first set that was measured."""
        return self.of_all([conditions])[0]

    def of_all(
        self, several: Sequence[dict[Pair, Sets]]
    ) -> list[list[tuple[Pair, tuple[int, ...], float]]]:
        """The same of many graphs, all new tests together."""
        chosen = []
        for conditions in several:
            queries = []
            for pair, sets in conditions.items():
                options = (Query.of(*pair, given) for given in sets)
                query = next((q for q in options if self._admissible(q)), None)
                if query is not None:
                    queries.append((pair, query))
            chosen.append(queries)
        self._compute({query for queries in chosen for _, query in queries})
        return [
            [(pair, tuple(query.given), self._known[query]) for pair, query in queries]
            for queries in chosen
        ]

    def _admissible(self, query: Query) -> bool:
        return self._coarse.isdisjoint(query.given) and bool(self._prepared.admissible(query))

    def _compute(self, queries: set[Query]) -> None:
        fresh = sorted(queries - set(self._known))
        if fresh:
            answers = Queue(self._prepared, alpha=0.05).evaluate(fresh)
            for query, log_p in zip(fresh, np.asarray(answers.log_pvalue), strict=True):
                self._known[query] = float(log_p)


def _holm(log_pvalues: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses Holm's rule rejects."""
    order = np.argsort(log_pvalues, kind="stable")
    fails = [False] * len(log_pvalues)
    for rank, place in enumerate(order):
        if log_pvalues[place] > math.log(alpha / (len(log_pvalues) - rank)):
            break
        fails[place] = True
    return fails


def _against_permuted(
    pvalues: _PValues,
    conditions: dict[Pair, Sets],
    dag: MixedGraph,
    columns: list[int],
    n_permutations: int,
    seed: int,
    alpha: float,
) -> tuple[float, int, float]:
    """The p-value, of how many permutations, and the share of those with the same class."""
    if not n_permutations or not conditions:
        return math.nan, 0, math.nan
    rng = np.random.default_rng(seed)
    several, same = [conditions], 0
    cpdag, hidden = dag_to_cpdag(dag), len(columns) < dag.n_nodes
    for _ in range(n_permutations):
        order = rng.permutation(len(columns))
        to = {column: columns[k] for column, k in zip(columns, order, strict=True)}
        several.append(
            {
                (to[v], to[w]): tuple(tuple(to[u] for u in given) for given in sets)
                for (v, w), sets in conditions.items()
            }
        )
        if not hidden:
            same += bool((cpdag.permuted(order).marks == cpdag.marks).all())
    own, *others = pvalues.of_all(several)
    compared = [_share(tested, alpha) for tested in others if own and tested]
    chance = math.nan
    if compared:
        no_worse = sum(share <= _share(own, alpha) for share in compared)
        chance = (1 + no_worse) / (1 + len(compared))
    return chance, len(compared), math.nan if hidden else same / n_permutations


def _share(tested: Sequence[tuple[Pair, tuple[int, ...], float]], alpha: float) -> float:
    """The share of these conditions with p below alpha."""
    return float(np.mean([log_p <= math.log(alpha) for _, _, log_p in tested]))
