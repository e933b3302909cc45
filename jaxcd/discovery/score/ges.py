r"""Greedy equivalence search: from the empty graph over Markov equivalence classes, a move at a
time.

Forward, arcs are inserted; backward, deleted; turning, reversed.  In each phase the valid move of
the largest gain is made until none gains, and the phases are repeated until none of them moves.
Where n grows without bound and the score is consistent, forward and backward once find the class of
the truth; on finite data repeating and turning leave fewer local optima.  From the last of them the
search goes on through worse classes, none twice, and climbs from where one is better: a tabu search
over classes.

The gain of a move depends on the neighbourhood of the arc's ends only.  So the moves into a node
are listed once and kept until an edge at the node, or at one of its neighbours, changes; local
scores are computed in batches and never twice.  Only the condition on paths depends on the whole
graph, and it is asked of the best moves only.

Source:
    Chickering 2002; Hauser and Buehlmann 2012; Ramsey et al. 2017 for what need not be evaluated
    again; Glover 1989 for tabu search.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import jax
import numpy as np

from jaxcd.checks import a_type, check_flag, is_whole
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.sources import Tabular, as_data
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult, Step, StepProgress, teller
from jaxcd.discovery.score.ges_operators import (
    ClassGraph,
    Move,
    MoveKind,
    apply_move,
    arc_scores,
    bits,
    class_graph,
    is_open,
    moves_into,
)
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.scored import SearchedData, check_scored
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.privacy import Budget, NoPrivacy
from jaxcd.releases import Release
from jaxcd.scores import BIC, LocalScore, ScoreConfig
from jaxcd.scores.base import tie

__all__ = ["FamilyCache", "GreedySearch", "ges", "greedy_equivalence_search"]

Scored = tuple[float, Move]


def _place(move: Move) -> tuple[int, int, int, int]:
    """Where a move stands among moves of equal gain."""
    return list(MoveKind).index(move.kind), move.y, move.x, move.clique


@dataclass(frozen=True, eq=False)
class GreedySearch:
    """What the search found.

    Args:
        graph: the CPDAG.
        adjacency: a DAG of the class, bool (d, d), [i, j] for i -> j.
        score: of the class, in nats.
        n_steps: moves made, of each kind.
        n_families: local scores computed.
        trace: the score after each move; it never falls before the first local optimum.
        n_climbed: how many moves led to that.
    """

    graph: MixedGraph
    adjacency: np.ndarray
    score: float
    n_steps: dict[MoveKind, int]
    n_families: int
    trace: tuple[float, ...]
    n_climbed: int


@final
class FamilyCache:
    """The local scores of families asked for so far; families are bits."""

    def __init__(self, score: LocalScore) -> None:
        self._score = score
        self._known: list[dict[int, float]] = [{} for _ in score.names]

    @property
    def n_families(self) -> int:
        """How many were computed."""
        return sum(map(len, self._known))

    def fill(self, families: Iterable[tuple[int, int]]) -> None:
        """Computes those of (node, parents as bits) that are not known, all of a node in one
        call.
        """
        waiting: dict[int, dict[int, None]] = {}
        for node, parents in families:
            if parents not in self._known[node]:
                waiting.setdefault(node, {})[parents] = None
        for node, masks in waiting.items():
            values = self._score.locals(node, [tuple(bits(mask)) for mask in masks])
            self._known[node].update(zip(masks, values.tolist(), strict=True))

    def get(self, node: int, parents: int) -> float:
        """The local score of a family, in nats."""
        if parents not in self._known[node]:
            self.fill([(node, parents)])
        return self._known[node][parents]


@final
class _Climb:
    """One run: the graph as it stands, and the moves that gain, kept until they may change."""

    def __init__(
        self,
        score: LocalScore,
        *,
        max_parents: int,
        effect_edges_only: bool,
        limits: Limits,
        tell: Callable[[Step], None],
    ) -> None:
        d = len(score.names)
        self._tell = tell
        self.cache = FamilyCache(limits.weighed(score))
        self._limits = limits
        start = class_graph(limits.must_enter)  # no arc but the required ones
        assert start is not None
        self.graph = start
        most = max(max_parents, limits.most_required)
        self._most_parents = [most + score.uncounted(y) for y in range(d)]
        # Of the DAG that fits, in which only nodes that need more parents have more.
        self._most_fitting = [
            max(max_parents + score.uncounted(y), mask.bit_count())
            for y, mask in enumerate(limits.must_enter)
        ]
        joinable = [
            into | out for into, out in zip(limits.may_enter, limits.may_leave, strict=True)
        ]
        self._pairs = [
            joinable[y]
            & sum(1 << x for x in range(d) if x in score.candidates(y) or y in score.candidates(x))
            for y in range(d)
        ]
        self.cache.fill(enumerate(limits.must_enter))
        self.total = sum(self.cache.get(v, limits.must_enter[v]) for v in range(d))
        # Equal totals differ by rounding, and moves back and forth between them would never end.
        self._least_gain = tie(self.total)
        self._insertable = list(self._pairs)
        if effect_edges_only:
            first = [self._list(MoveKind.INSERT, y) for y in range(d)]
            self._insertable = [
                sum(1 << move.x for gain, move in listed if gain > self._least_gain)
                for listed in first
            ]
        self._lists: dict[MoveKind, list[list[Scored] | None]] = {
            kind: [None] * d for kind in MoveKind
        }
        self.n_steps = dict.fromkeys(MoveKind, 0)
        self.trace: list[float] = []

    def climb(self, kinds: Sequence[MoveKind]) -> None:
        """Makes the best moves of a kind until none gains, of one kind after the other, until no
        kind moves.
        """
        before, visited = -1, {self.graph}
        while len(self.trace) > before:
            before = len(self.trace)
            self.climb_once(kinds, visited)

    def climb_once(self, kinds: Sequence[MoveKind], visited: set[ClassGraph]) -> None:
        """Makes the best moves of a kind until none gains, of each kind once.

        No class is visited twice.  With scores that are equal in a class none would be; where
        rounding makes them differ, moves in a circle could gain for ever.
        """
        for kind in kinds:
            while (step := self._best((kind,), least=self._least_gain, but=visited)) is not None:
                self._make(step)
                visited.add(self.graph)

    def escape(self, kinds: Sequence[MoveKind], *, patience: int) -> None:
        """Goes on from a local optimum to the best classes not yet visited, until ``patience`` in a
        row were not better than the best.
        """
        visited = {self.graph}
        best, highest, waited = self.graph, self.total, 0
        while (
            waited < patience
            and (step := self._best(kinds, least=-math.inf, but=visited)) is not None
        ):
            self._make(step)
            visited.add(self.graph)
            waited += 1
            if self.total > highest + self._least_gain:
                best, highest, waited = self.graph, self.total, 0
        self.graph, self.total = best, highest
        self._lists = {kind: [None] * len(self._pairs) for kind in MoveKind}

    def _make(self, step: tuple[float, Move, ClassGraph]) -> None:
        gain, move, graph = step
        done = len(self.trace)
        self._tell(Step(f"move {done + 1}: {move.kind.value}", (done, None)))
        self._go_to(graph)
        self.total += gain
        self.n_steps[move.kind] += 1
        self.trace.append(self.total)

    def _best(
        self, kinds: Sequence[MoveKind], *, least: float, but: Container[ClassGraph] = ()
    ) -> tuple[float, Move, ClassGraph] | None:
        """The valid move of the largest gain above ``least``, to none of the classes ``but``; of
        equal ones the first by columns.
        """
        for kind in kinds:
            lists = self._lists[kind]
            for y, kept in enumerate(lists):
                if kept is None:
                    if not self.trace:  # later few are new
                        self._tell(Step(f"scores to {kind.value}: column", (y, len(lists))))
                    lists[y] = self._list(kind, y)
        listed = (kept for kind in kinds for kept in self._lists[kind] if kept)
        equal: list[tuple[float, Move, ClassGraph]] = []
        for gain, move in heapq.merge(*listed, key=lambda scored: -scored[0]):
            if not gain > least or (equal and gain < equal[0][0] - self._least_gain):
                break
            if is_open(self.graph, move):
                graph = apply_move(self.graph, move)
                if graph is not None and graph not in but and self._fits(graph):
                    equal.append((gain, move, graph))
        return min(equal, key=lambda step: _place(step[1]), default=None)

    def _fits(self, graph: ClassGraph) -> bool:
        if self._limits.none:
            return True
        member = self._limits.member(graph)
        return member is not None and all(
            parents.bit_count() <= most
            for parents, most in zip(member, self._most_fitting, strict=True)
        )

    def _list(self, kind: MoveKind, y: int) -> list[Scored]:
        """The moves into y with their gains, the best first."""
        others = self._insertable[y] if kind is MoveKind.INSERT else -1
        moves = list(
            moves_into(self.graph, y, kind=kind, others=others, max_parents=self._most_parents[y])
        )
        terms = [arc_scores(self.graph, move) for move in moves]
        self.cache.fill((node, parents) for several in terms for _, node, parents in several)
        scored = []
        for move, several in zip(moves, terms, strict=True):
            gain = sum(sign * self.cache.get(node, parents) for sign, node, parents in several)
            # a family that a release did not measure is worth minus infinity
            if math.isfinite(gain):
                scored.append((gain, move))
        scored.sort(key=lambda item: -item[0])
        return scored

    def _go_to(self, graph: ClassGraph) -> None:
        """Takes the new graph, and forgets the moves whose gain or local conditions may have
        changed.
        """
        old, self.graph = self.graph, graph
        changed = 0
        for v, (before, after) in enumerate(
            zip(zip(*old, strict=True), zip(*graph, strict=True), strict=True)
        ):
            changed |= (before != after) << v
        for y, (children, around) in enumerate(zip(graph.children, graph.neighbours, strict=True)):
            near = around | 1 << y
            for kind, lists in self._lists.items():
                if changed & (near | children if kind is MoveKind.TURN else near):
                    lists[y] = None


def greedy_equivalence_search(
    score: LocalScore,
    *,
    max_parents: int | None = None,
    turning: bool = True,
    patience: int = 40,
    effect_edges_only: bool = False,
    knowledge: Knowledge | None = None,
    progress: StepProgress = False,
) -> GreedySearch:
    """The equivalence class that greedy equivalence search ends in; deterministic, and
    post-processing of the score.

    With knowledge it begins at the required arcs, and makes moves only to classes of which a DAG
    fits: what it returns always fits, but where every way to a better class leads through one that
    does not, it stays below.

    Args:
        score: a sum over nodes, equal for Markov equivalent DAGs.  Only pairs are joined of which
            one is a candidate of the other.
        max_parents: the most parents of a node; None for the score's own.
        turning: as for :func:`ges`.
        patience: as ``turning``.
        effect_edges_only: as ``turning``.
        knowledge: what is known before; ``graph`` has the orientations that it implies.
        progress: as ``turning``.

    Returns:
        The class found, with its score and the moves that led to it.

    Raises:
        OptionError: an argument is not of its kind, or the knowledge names others.
    """
    if not isinstance(score, LocalScore):
        raise OptionError(
            f"score: {a_type(score)} is no sum over nodes; use a LocalScore such as BICScore"
        )
    for argument, value in (("turning", turning), ("effect_edges_only", effect_edges_only)):
        check_flag(argument, value)
    if not is_whole(patience, 0):
        raise OptionError(
            f"patience = {patience!r} is not a number of moves; use a whole number from 0, such "
            "as 40"
        )
    limit = score.max_parents if max_parents is None else max_parents
    if not score.equal_in_a_class:
        raise OptionError(
            "score: with known targets of interventions equivalent DAGs differ in score, and "
            "greedy equivalence search compares classes; use exact_search, mmhc or order_mcmc on "
            "data, or jaxcd.search on a release"
        )
    limits = Limits.of(knowledge, score.names)
    climb = _Climb(
        score,
        max_parents=limit,
        effect_edges_only=effect_edges_only,
        limits=limits,
        tell=teller(progress),
    )
    kinds = (
        (MoveKind.INSERT, MoveKind.DELETE, MoveKind.TURN)
        if turning
        else (MoveKind.INSERT, MoveKind.DELETE)
    )
    if turning:
        climb.climb(kinds)
    else:
        climb.climb_once(kinds, {climb.graph})
    n_climbed = len(climb.trace)
    climb.escape(kinds, patience=patience)
    # Summed anew: the running total has the rounding of every step in it.
    member = limits.member(climb.graph)
    assert member is not None
    total = sum(climb.cache.get(v, parents) for v, parents in enumerate(member))
    graph = limits.oriented(climb.graph)
    adjacency = np.zeros((len(member),) * 2, dtype=bool)
    for v, parents in enumerate(member):
        adjacency[bits(parents), v] = True
    return GreedySearch(
        graph,
        adjacency,
        total,
        climb.n_steps,
        climb.cache.n_families,
        tuple(climb.trace),
        n_climbed,
    )


@repeatable
def ges(
    data: Dataset | Release | Tabular,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    score: ScoreConfig = BIC(),  # noqa: B008 - frozen
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    max_parents: int | None = None,
    turning: bool = True,
    patience: int = 40,
    effect_edges_only: bool = False,
    knowledge: Knowledge | None = None,
    progress: StepProgress = False,
) -> DiscoveryResult:
    """Greedy equivalence search: the class of DAGs with the highest score that single changes lead
    to.

    It moves from one Markov equivalence class to the next by inserting, deleting or turning one
    arc.  A histogram is searched on its denoised table, where a small budget makes edges out of
    noise (5,000 independent rows of 3^5 cells: 7 of 10 at epsilon .1); :func:`jaxcd.search`, whose
    score has the noise in it, finds none of these and more of the true ones.

    Args:
        data: a Dataset, or a data frame or path, without privacy; or a release, which has been
            paid for.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        score: ``BIC()`` or ``BDeu()``.
        budget: NO_PRIVACY with a Dataset, left out with a release.
        key: not used; nothing is drawn.
        max_parents: the most parents of a node, from 0; None for no limit but the release's own.
        turning: True repeats inserting, deleting and turning until none gains (Hauser and Buehlmann
            2012); False inserts once and deletes once (Chickering 2002).
        patience: so many moves in a row, to the best classes not yet visited, may fail to improve
            on the best before the search ends; 0 stops at the first local optimum, as the papers
            do.
        effect_edges_only: inserts only between columns whose edge gains in the empty graph, the
            shortcut of FGES (Ramsey et al. 2017): quicker with many columns, but a pair that is
            dependent only given others is never joined by itself.
        knowledge: what is known before; public.  Only classes of which a DAG fits are visited.
        progress: True prints a line for each column whose first moves are scored, and one for each
            move; a function is called with each :class:`jaxcd.discovery.Step`.

    Returns:
        The CPDAG, with all orientations that the knowledge implies, and its cost.  ``info``:
        ``score`` of the found class in nats, ``n_families`` local scores computed, the numbers of
        moves ``n_inserted``, ``n_deleted`` and ``n_turned``, and the settings.

    Raises:
        OptionError: an argument is out of its range.
        DomainError: the score does not take the columns.
        PrivacyError: the budget is not NO_PRIVACY.

    Guarantee:
        On a release that of the release: the search is post-processing.  On a Dataset none, and a
        private budget is refused.

    Source:
        Chickering 2002; Hauser and Buehlmann 2012; Ramsey et al. 2017.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> run = jaxcd.ges(data, budget=jaxcd.NO_PRIVACY)
        >>> run.graph.n_edges, run.graph.parents("dysp")
        (8, ('bronc', 'either'))
    """
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_scored(data, score, budget, key, max_parents, knowledge)
    searched = SearchedData.of(data, score, max_parents=max_parents, knowledge=knowledge)
    found = greedy_equivalence_search(
        searched.score,
        turning=turning,
        patience=patience,
        effect_edges_only=effect_edges_only,
        knowledge=searched.knowledge,
        progress=progress,
    )
    options = {
        "score": found.score,
        "max_parents": searched.score.max_parents,
        "turning": turning,
        "patience": patience,
        "effect_edges_only": effect_edges_only,
        "n_families": found.n_families,
        "n_inserted": found.n_steps[MoveKind.INSERT],
        "n_deleted": found.n_steps[MoveKind.DELETE],
        "n_turned": found.n_steps[MoveKind.TURN],
    }
    return searched.result(found.graph, algorithm="ges", options=options)
