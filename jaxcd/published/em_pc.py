r"""EM-PC as published: the exponential mechanism decides how many, and which, neighbours a variable
loses.  Not private; kept to compare.

Level by level, each variable x with more than l neighbours is *visited*.  For each neighbour y the
set S_y of l other neighbours with the largest p-value of a G test is looked up, and u_y, by how
many records that test is away from its other answer (:mod:`jaxcd.published.flip_distance`, greedily
approximated).  From half of the visit's epsilon the exponential mechanism draws how many neighbours
are lost, from the other half which: one draw for each, with utility u_y and epsilon divided by
their number.  All utilities are taken to have sensitivity one.

**Why it is not private.**

1. *The sets S_y are read off the data and published for nothing.*  A pair that is removed is
   removed with the set of largest p-value; on two neighbours between which that maximum changes,
   the separating sets that can come out are different.  No finite epsilon holds.
2. *The utility does not have sensitivity one.*  u_y is the distance at S_y, and S_y can change from
   one neighbour to the next: the distance at the other set is another number altogether.  The
   greedy search is not the least number of changes either.
3. *The total is computed after the run* from the number of visits, which depends on the data.

What the code does beside that, and is kept here: a visit never loses all neighbours, since the
largest count is not among the options; a neighbour that was drawn stays an option, with utility
-10,000; and the separating set of the t-th draw of x is filed under the pair of x and *variable
number t*, whatever was drawn, so that orientation reads sets of other pairs.

:class:`jaxcd.ExponentialSelect` is what holds.

Source:
    Xu, Yuan, Wu 2017, *Differential privacy preserving causal graph discovery*; Wang, Pang, Song
    2020, *Towards practical differentially private causal graph discovery*, which names it EM-PC,
    and its code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import jax
import numpy as np
from scipy import special

from jaxcd.citests import Query
from jaxcd.citests.tables import MAX_CELLS, discrete_cardinalities
from jaxcd.data import Dataset
from jaxcd.discovery import ConflictRule, DiscoveryResult, LevelRecord
from jaxcd.discovery.constraint.orientation import apply_meek_rules, orient_colliders
from jaxcd.discovery.constraint.skeleton import Skeleton
from jaxcd.graphs import MixedGraph
from jaxcd.ops import contingency
from jaxcd.privacy import PrivacyCost, Relation
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.accounting import svt_total
from jaxcd.published.flip_distance import g_statistic, greedy_flip_distance, increments
from jaxcd.published.rounds import check_options, require_whole_rows, streams

__all__ = ["em_pc"]

_REASON = (
    "published method, kept for comparison: separating sets are the maxima of exact p-values and "
    "are published without noise, so no "
    "epsilon holds; the utility's sensitivity is not one, since the set it is measured at changes "
    "between neighbours; the total is "
    "computed after the run from a count that depends on the data; the noise is simulated"
)
# The code asks for ten records a degree of freedom, and takes a test with fewer for "independent"
# without looking.
_RECORDS_PER_DEGREE = 10
_DRAWN = -10_000
_BATCH = 256


class _Test(NamedTuple):
    """pvalue: of the G test.  statistic: G.  dof: (levels of x - 1)(levels of y - 1) times the
    number of strata.
    """

    pvalue: float
    statistic: float
    dof: int


class _Tests:
    """G tests and flip distances of one data set, each computed once."""

    def __init__(self, data: Dataset, alpha: float) -> None:
        self._cardinalities = discrete_cardinalities(
            data, "EM-PC", "declare it categorical or ordinal"
        )
        self._masks = contingency.pack_levels(data.codes, self._cardinalities)
        self._increments = increments(data.n_samples)
        self._n_samples, self._alpha = data.n_samples, alpha
        self._known: dict[Query, _Test] = {}
        self._distances: dict[Query, int] = {}
        self.n_tests = 0

    def _shape(self, query: Query) -> tuple[int, int, int]:
        cards = self._cardinalities
        return math.prod(cards[v] for v in query.given), cards[query.x], cards[query.y]

    def _dof(self, query: Query) -> int:
        n_strata, n_rows, n_columns = self._shape(query)
        return n_strata * (n_rows - 1) * (n_columns - 1)

    def admissible(self, query: Query) -> bool:
        """Whether there are enough records for the test."""
        return (
            self._n_samples >= _RECORDS_PER_DEGREE * self._dof(query)
            and math.prod(self._shape(query)) <= MAX_CELLS
        )

    def _tables(self, queries: Sequence[Query], shape: tuple[int, int, int]) -> np.ndarray:
        return contingency.count_tables(
            self._masks, np.array([(q.x, q.y, *q.given) for q in queries], dtype=np.int64), shape
        )

    def pvalues(self, queries: Sequence[Query]) -> list[float]:
        """P-values in double precision: far in the tail they are 0, as in the code, and then the
        first set is the largest.
        """
        groups: defaultdict[tuple[int, ...], list[Query]] = defaultdict(list)
        for query in dict.fromkeys(queries):
            if query not in self._known:
                groups[len(query.given), *self._shape(query)].append(query)
        for (_, *shape), members in groups.items():
            for batch in (
                members[start : start + _BATCH] for start in range(0, len(members), _BATCH)
            ):
                for query, table in zip(
                    batch, self._tables(batch, (shape[0], shape[1], shape[2])), strict=True
                ):
                    statistic, dof = (
                        g_statistic(np.asarray(table, dtype=np.int64)),
                        self._dof(query),
                    )
                    self._known[query] = _Test(
                        float(special.chdtrc(dof, max(statistic, 0.0))) if dof else 1.0,
                        statistic,
                        dof,
                    )
        self.n_tests += len(queries)
        return [self._known[query].pvalue for query in queries]

    def distance(self, query: Query) -> int:
        """u of a query whose p-value is known."""
        if query not in self._distances:
            dof = self._known[query].dof
            critical = float(special.chdtri(dof, self._alpha)) if dof else math.inf
            table = np.asarray(self._tables([query], self._shape(query))[0], dtype=np.int64)
            self._distances[query] = greedy_flip_distance(
                table, critical=critical, g=self._increments
            )
        return self._distances[query]


@dataclass(frozen=True)
class _Option:
    """A neighbour of the visited variable: the set of largest p-value, that p-value, and u."""

    neighbor: int
    given: tuple[int, ...]
    pvalue: float
    utility: int


def options_of(tests: _Tests, x: int, neighbors: Sequence[int], level: int) -> list[_Option]:
    """What a visit of x chooses among.  Nothing in it is noisy."""
    found = []
    for y in neighbors:
        others = [v for v in neighbors if v != y]
        sets = [
            given
            for given in combinations(others, level)
            if tests.admissible(Query.of(x, y, given))
        ]
        if sets:
            queries = [Query.of(x, y, given) for given in sets]
            pvalues = tests.pvalues(queries)
            best = int(np.argmax(pvalues))
            found.append(_Option(y, sets[best], pvalues[best], tests.distance(queries[best])))
    return found


def count_utilities(options: Sequence[_Option], alpha: float) -> list[int]:
    """The utility of losing 0, 1, ..., m neighbours, as the code has it.

    In the order of falling u, losing the first t is right where these are the independent ones;
    there the utility is the smaller of the distances at the border, less one.  Elsewhere it is
    minus the distance of the neighbour that would have to change most.
    """
    ranked = sorted(((o.utility, o.pvalue) for o in options), reverse=True)
    u, p = [pair[0] for pair in ranked], [pair[1] for pair in ranked]
    inner = []
    for t in range(1, len(u)):
        if p[t] > alpha:
            inner.append(-u[t])
        else:
            inner.append(min(u[t - 1], -u[t]) - 1 if p[t - 1] > alpha else u[t - 1])
    return [-u[0] - (p[0] >= alpha), *inner, u[-1] - (p[-1] < alpha)]


def _draw(stream: np.random.Generator, utilities: Sequence[float], epsilon: float) -> int:
    """The exponential mechanism, P[i] proportional to exp(epsilon u_i / 2)."""
    return int(
        np.argmax(
            epsilon / 2 * np.array(utilities, dtype=np.float64) + stream.gumbel(size=len(utilities))
        )
    )


def visit(
    options: Sequence[_Option], *, epsilon: float, alpha: float, stream: np.random.Generator
) -> list[_Option]:
    """The neighbours that a visited variable loses, in the order in which they are drawn; one may
    be drawn twice.
    """
    n_lost = _draw(stream, count_utilities(options, alpha)[: len(options)], epsilon / 2)
    utilities = [float(option.utility) for option in options]
    drawn = []
    for _ in range(n_lost):
        place = _draw(stream, utilities, epsilon / 2 / n_lost)
        drawn.append(options[place])
        utilities[place] = _DRAWN
    return drawn


@claiming(
    GuaranteeClaim(
        "the paper's (epsilon, delta), computed after the run",
        proof="its separating sets are exact maxima published without noise, its utility's "
        "sensitivity is not one, the total depends on the data; see jaxcd.published.em_pc",
        proven=False,
        assumptions="-",
    )
)
def em_pc(
    data: Dataset,
    *,
    epsilon: float,
    alpha: float = 0.1,
    delta: float = 1e-3,
    key: jax.Array,
    max_level: int | None = None,
) -> DiscoveryResult:
    r"""EM-PC as published: exponential mechanisms over the number and the names of the neighbours
    that a variable loses.

    The total after k visits is sqrt(2 k ln(1 / delta)) epsilon + k epsilon (e^epsilon - 1), as the
    code has it.

    Args:
        data: discrete columns.
        epsilon: positive, a visit.
        alpha: the level of the G tests, 0 < alpha < 1.
        delta: in (0, 1), of the total.
        key: a typed key: the noise.
        max_level: the largest conditioning set, or None; sets with fewer than ten records a degree
            of freedom are not asked, for which the code takes "independent" without looking, or
            ends with an error.

    Returns:
        The result; ``cost`` holds the total that the paper claims, with ``proven`` False and the
        reason; ``separating_sets`` what orientation read, which belongs to other pairs (module
        docstring); ``info`` the number of tests and of visits.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None (module docstring).  :class:`jaxcd.ExponentialSelect` is what holds.

    Source:
        Xu, Yuan, Wu 2017; Wang, Pang, Song 2020, code.
    """
    check_options(epsilon=epsilon, alpha=alpha, delta=delta, bias=0.0, max_level=max_level)
    data = require_whole_rows(data, "EM-PC")
    search = _Search(
        _Tests(data, alpha), data.n_columns, epsilon=epsilon, alpha=alpha, stream_of=streams(key)
    )
    level = 0
    while (max_level is None or level <= max_level) and search.sweep(level):
        level += 1
    names = data.names
    sets = {
        frozenset((names[x], names[y])): tuple(
            names[v] for v in sorted(search.filed[x, y]) if v not in (x, y)
        )
        for x, y in search.skeleton.separating_sets
    }
    graph = MixedGraph(names, 3 * search.skeleton.adjacency.astype("int8"))
    graph = orient_colliders(graph, separating_sets=sets, rule=ConflictRule.UNDIRECTED)
    cost = PrivacyCost(
        svt_total(search.n_visits, epsilon, delta), delta, Relation.REPLACE_ONE, False, _REASON
    )
    info = {
        "algorithm": "em_pc",
        "test": "GTest",
        "utility": "records to take out until the test flips, found greedily",
        "n_samples": data.n_samples,
        "n_variables": data.n_columns,
        "n_tests": search.tests.n_tests,
        "n_rounds": search.n_visits,
        "total_epsilon": cost.epsilon,
        "secure_noise": False,
        "levels": tuple(search.levels),
        "stable": False,
        "max_level": max_level,
        "epsilon_per_round": epsilon,
        "alpha": alpha,
    }
    return DiscoveryResult(apply_meek_rules(graph), sets, cost, cost, False, info)


class _Search:
    """The skeleton by visits.  filed: the separating sets under the pairs where the code puts
    them.
    """

    def __init__(
        self,
        tests: _Tests,
        n_variables: int,
        *,
        epsilon: float,
        alpha: float,
        stream_of: Callable[[int], np.random.Generator],
    ) -> None:
        self.tests = tests
        self.skeleton = Skeleton(n_variables)
        self.filed: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        self.levels: list[LevelRecord] = []
        self.n_visits = 0
        self._epsilon, self._alpha, self._stream_of = epsilon, alpha, stream_of

    def sweep(self, level: int) -> bool:
        """Visits every variable once; whether there was one to visit."""
        n_asked = n_lost = 0
        for x in range(len(self.skeleton.adjacency)):
            neighbors = self.skeleton.neighbors(x, without=x)
            options = options_of(self.tests, x, neighbors, level) if len(neighbors) > level else []
            if not options:
                continue
            stream = self._stream_of(self.n_visits)
            self.n_visits += 1
            n_asked += len(options)
            for t, lost in enumerate(
                visit(options, epsilon=self._epsilon, alpha=self._alpha, stream=stream)
            ):
                n_lost += bool(self.skeleton.adjacency[x, lost.neighbor])
                self.skeleton.remove(x, lost.neighbor, lost.given)
                self.filed[min(x, t), max(x, t)] |= set(lost.given)
        if n_asked:
            self.levels.append(LevelRecord(level, n_asked, n_lost))
        return n_asked > 0
