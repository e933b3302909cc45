r"""Max-min hill climbing: who may be joined by tests, and which way by a score.

Max-min parents and children.  For each target T a set C grows: the next is the candidate whose
smallest association with T, over the subsets of C, is largest, as long as that is a dependence;
then those leave that a subset of the others separates from T,

    X* = argmax_X min_{S in C} Assoc(X; T | S).

X and T may be joined where each is in the other's set.  All targets grow at the same time, so that
a round asks one batch of queries, and only for the subsets that hold the newest member: the
smallest association so far is kept.

Hill climbing.  From the empty DAG, the best arc added, deleted or turned among pairs that may be
joined, to no DAG seen lately; it ends when so many moves in a row have not improved on the best.

Source:
    Tsamardinos, Brown, Aliferis 2006.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from jaxcd.checks import check_progress, check_whole
from jaxcd.citests import CITest, Query, check_alpha
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions.associations import associations, usual_test
from jaxcd.discovery.constraint.search import check_arguments
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult, Step, StepProgress, teller
from jaxcd.discovery.score.ges import FamilyCache
from jaxcd.discovery.score.ges_operators import bits
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.scored import SearchedData, check_scored, likelihood_score
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.privacy import NO_PRIVACY, Budget, NoPrivacy
from jaxcd.queries import Door, Session
from jaxcd.releases import Release
from jaxcd.scores import BDeu, ScoreConfig
from jaxcd.scores.base import tie

__all__ = ["climb_hills", "max_min_parents_children", "mmhc"]

# Tables with fewer rows a cell are not tested: their pairs count as dependent.  Both numbers below
# are those of the paper.
_ROWS_PER_CELL = 5.0
_REMEMBERED = 100


@repeatable
def mmhc(
    data: Dataset | Release | Tabular,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    score: ScoreConfig | None = None,
    test: CITest | None = None,
    alpha: float = 0.05,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    max_parents: int | None = None,
    max_conditioning: int | None = None,
    patience: int = 15,
    knowledge: Knowledge | None = None,
    progress: StepProgress = False,
) -> DiscoveryResult:
    """Max-min hill climbing: tests say which pairs may be joined, a greedy search which arcs score
    best.

    Args:
        data: a Dataset, or a data frame or path, without privacy; or a release, which has been
            paid for.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        score: ``BDeu()``, of complete discrete columns and of a histogram of such, or ``BIC()``.
            None for ``BDeu()`` where the data or the release answer it, else ``BIC()``.
        test: None for the G test of discrete columns and Fisher's z of others; on a release one
            that it answers.
        alpha: the level of the test, 0 < alpha < 1.
        budget: NO_PRIVACY with a Dataset, left out with a release.
        key: a typed key for tests that draw permutations.
        max_parents: the most parents of a node, from 0; None for no limit but the release's own.
            Columns that set it do not count.
        max_conditioning: the most columns that a test conditions on; None for no limit.  A discrete
            table with less than five rows a cell is not tested, and its pair counts as dependent.
        patience: so many moves in a row may fail to improve on the best DAG before the search ends.
        knowledge: what is known before; public.  Pairs that are forbidden both ways are not
            tested, those with a required arc may be joined whatever the tests say, and every DAG on
            the way fits.
        progress: True prints a line for each round of tests and each move; a function is called
            with each :class:`jaxcd.discovery.Step`.

    Returns:
        The CPDAG of the DAG that was found, with all orientations that the knowledge implies, and
        its cost.  ``info``: its ``score`` in nats,
        ``n_candidate_edges`` that the tests left, ``n_tests``, ``n_families`` local scores
        computed, and the settings.

    Raises:
        OptionError: an argument is out of its range, or the test and the score name two mechanisms
            that randomised the records.
        DomainError: the test or the score does not take the columns.
        PrivacyError: the budget is not NO_PRIVACY.

    Guarantee:
        On a release that of the release: everything here is post-processing.  On a Dataset none,
        and a private budget is refused.

    Source:
        Tsamardinos, Brown, Aliferis 2006.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> run = jaxcd.mmhc(data, budget=jaxcd.NO_PRIVACY)
        >>> run.graph.n_edges, run.info["n_candidate_edges"]
        (6, 6)
    """
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_scored(data, BDeu() if score is None else score, budget, key, max_parents, knowledge)
    if max_conditioning is not None:
        check_whole("max_conditioning", max_conditioning, 0)
    check_whole("patience", patience, 0, cure="15 is usual")
    check_progress(progress, of="a Step")
    test = usual_test(data) if test is None else test
    check_arguments(test, NO_PRIVACY, key, None)
    alpha = check_alpha(alpha)
    searched = SearchedData.of(
        data, score or likelihood_score(data), max_parents=max_parents, knowledge=knowledge
    )
    limits = searched.limits
    within = limits.within(searched.score)
    session = Session(Door(data, NO_PRIVACY), test, alpha=alpha, key=key)
    test.check_search(session.domain, max_level=max_conditioning)
    told = {} if session.domain is None else test.record_facts(session.domain)
    other = {} if session.domain is None else searched.config.record_facts(session.domain)
    if told and other and told != other:
        raise OptionError(
            f"test and score: {test!r} and {searched.config!r} name two mechanisms, and the "
            "records were randomised by one; give both the same"
        )
    joinable = max_min_parents_children(
        session,
        max_conditioning=max_conditioning,
        possible=limits.allowed | limits.allowed.T,
        progress=progress,
    )
    joinable |= limits.required | limits.required.T
    cache = FamilyCache(within)
    parents, total = climb_hills(
        cache,
        joinable,
        most_parents=limits.most_parents(searched.score),
        patience=patience,
        limits=limits,
        progress=progress,
    )
    dag = np.zeros((len(parents), len(parents)), dtype=bool)
    for y, mask in enumerate(parents):
        dag[bits(mask), y] = True
    options = {
        "score": total,
        "test": repr(test),
        "alpha": alpha,
        "max_parents": searched.score.max_parents,
        "max_conditioning": max_conditioning,
        "patience": patience,
        "n_candidate_edges": int(joinable.sum()) // 2,
        "n_families": cache.n_families,
        **session.work,
        **told,
    }
    return searched.result(searched.pattern(dag), algorithm="mmhc", options=options)


def max_min_parents_children(
    session: Session,
    *,
    max_conditioning: int | None = None,
    possible: np.ndarray | None = None,
    progress: StepProgress = False,
) -> np.ndarray:
    """The pairs of which each is in the other's set of parents and children: symmetric, bool (d,
    d).

    Args:
        session: without privacy.
        max_conditioning: the most columns of a conditioning set; None for no limit.
        possible: bool (d, d), the pairs that are tested; None for all.
        progress: as for :func:`mmhc`.
    """
    tell = teller(progress)
    d = session.n_variables
    most = d - 2 if max_conditioning is None else max_conditioning
    grown = _Neighbourhoods(session, most=most, possible=possible)
    for done in itertools.count():
        tell(Step(f"neighbours: round {done + 1}", (done, None)))
        if not grown.grow():
            break
    tell(Step("neighbours are tested again", (0, None)))
    grown.shrink()
    member = np.zeros((d, d), dtype=bool)
    for target, found in enumerate(grown.members):
        member[target, found] = True
    return member & member.T


class _Neighbourhoods:
    """The sets of all targets, growing at the same time."""

    def __init__(self, session: Session, *, most: int, possible: np.ndarray | None = None) -> None:
        d = session.n_variables
        self._session, self._most = session, most
        domain = session.domain
        self._levels = None if domain is None else session.test.view_cardinalities(domain)
        self.members: list[list[int]] = [[] for _ in range(d)]
        # : The smallest association of each target with each other column so far; not above zero:
        # separated.
        self._weakest = np.full((d, d), np.inf)
        np.fill_diagonal(self._weakest, -np.inf)
        if possible is not None:
            self._weakest[~possible] = -np.inf
        self._ask([(target, other, ()) for target in range(d) for other in self._open(target)])

    def grow(self) -> bool:
        """Adds the max-min candidate of each target; whether there was any."""
        newest = {}
        for target, found in enumerate(self.members):
            open_ones = self._weakest[target].copy()
            open_ones[found] = -np.inf
            best = int(np.argmax(open_ones))
            if open_ones[best] > 0:
                found.append(best)
                newest[target] = best
        for size in range(self._most):
            asked = [
                (target, other, (*given, last))
                for target, last in newest.items()
                for other in self._open(target)
                for given in itertools.combinations(self.members[target][:-1], size)
            ]
            if not asked:
                break
            self._ask(asked)
        return bool(newest)

    def shrink(self) -> None:
        """Takes out, one after the other, the members that a set of the others separates from the
        target.
        """
        for place in range(max(map(len, self.members), default=0)):
            tried = {
                target: found[place]
                for target, found in enumerate(self.members)
                if place < len(found)
            }
            for size in range(self._most + 1):
                asked = [
                    (target, other, given)
                    for target, other in tried.items()
                    if self._weakest[target, other] > 0
                    for given in itertools.combinations(
                        [
                            u
                            for u in self.members[target]
                            if u != other and self._weakest[target, u] > 0
                        ],
                        size,
                    )
                ]
                if not asked:
                    break
                self._ask(asked)
        self.members = [
            [u for u in found if self._weakest[target, u] > 0]
            for target, found in enumerate(self.members)
        ]

    def _open(self, target: int) -> list[int]:
        """The columns that may still join a target's set."""
        members = set(self.members[target])
        return [u for u in np.flatnonzero(self._weakest[target] > 0).tolist() if u not in members]

    def _ask(self, asked: Sequence[tuple[int, int, tuple[int, ...]]]) -> None:
        """Lowers the smallest associations by the answers to (target, other, given)."""
        asked = [question for question in asked if self._is_reliable(question)]
        answers = associations(self._session, [Query.of(*question) for question in asked])
        for (target, other, _), strength in zip(asked, answers.tolist(), strict=True):
            self._weakest[target, other] = min(self._weakest[target, other], strength)

    def _is_reliable(self, question: tuple[int, int, tuple[int, ...]]) -> bool:
        target, other, given = question
        if self._levels is None or not given:
            return True
        n_cells = math.prod(self._levels[u] for u in (target, other, *given))
        return self._session.n_samples >= _ROWS_PER_CELL * n_cells


@dataclass(frozen=True)
class _Step:
    """A move of the hill climbing: the parents that some nodes get, and the gain."""

    gain: float
    changes: tuple[tuple[int, int], ...]


def climb_hills(
    cache: FamilyCache,
    joinable: np.ndarray,
    *,
    most_parents: Sequence[int],
    patience: int = 15,
    limits: Limits | None = None,
    progress: StepProgress = False,
) -> tuple[tuple[int, ...], float]:
    """A DAG of a high score: the parents of each node as bits, and its score in nats.

    Args:
        cache: of the score.
        joinable: the pairs that may be joined, symmetric, bool (d, d).
        most_parents: of each node.
        patience: so many moves in a row may fail to improve on the best.
        limits: what is known; None for nothing.
        progress: as for :func:`mmhc`.
    """
    tell = teller(progress)
    d = len(joinable)
    if limits is None:
        limits = Limits.of(None, [str(v) for v in range(d)])
    joined = (sum(1 << x for x in np.flatnonzero(row).tolist()) for row in joinable)
    allowed = [mask & into for mask, into in zip(joined, limits.may_enter, strict=True)]
    parents = list(limits.must_enter)
    total = sum(cache.get(v, parents[v]) for v in range(d))
    best, highest, waited = tuple(parents), total, 0
    recent: deque[tuple[int, ...]] = deque([best], maxlen=_REMEMBERED)
    least = tie(total)
    for done in itertools.count():
        if waited > patience:
            break
        tell(Step(f"move {done + 1}", (done, None)))
        equal: list[tuple[_Step, list[int]]] = []
        for step in sorted(
            _steps(cache, parents, allowed, limits.must_enter, most_parents),
            key=lambda step: -step.gain,
        ):
            if equal and step.gain < equal[0][0].gain - least:
                break
            tried = parents.copy()
            for node, family in step.changes:
                tried[node] = family
            if tuple(tried) not in recent and _is_acyclic(tried, limits.earlier, step.changes):
                equal.append((step, tried))
        if not equal:
            break
        step, parents = min(equal, key=lambda found: found[0].changes)
        total += step.gain
        recent.append(tuple(parents))
        if total > highest + least:
            best, highest, waited = tuple(parents), total, 0
        else:
            waited += 1
    return best, sum(cache.get(v, mask) for v, mask in enumerate(best))


def _steps(
    cache: FamilyCache,
    parents: Sequence[int],
    allowed: Sequence[int],
    required: Sequence[int],
    most_parents: Sequence[int],
) -> Iterator[_Step]:
    """All arcs added, deleted and turned, those that make cycles too; only with finite gains."""
    free = [mask & ~must for mask, must in zip(allowed, required, strict=True)]
    cache.fill((y, parents[y] ^ 1 << x) for y in range(len(parents)) for x in bits(free[y]))

    def gain(node: int, family: int) -> float:
        return cache.get(node, family) - cache.get(node, parents[node])

    full = [family.bit_count() >= most for family, most in zip(parents, most_parents, strict=True)]
    for y, family in enumerate(parents):
        for x in bits(free[y]):
            toggled = family ^ 1 << x
            if family >> x & 1:
                yield _Step(gain(y, toggled), ((y, toggled),))
                if not allowed[x] >> y & 1:
                    continue
                turned = parents[x] | 1 << y
                worth = gain(y, toggled) + gain(x, turned)
                if not full[x] and math.isfinite(worth):
                    yield _Step(worth, ((y, toggled), (x, turned)))
            elif not (full[y] or parents[x] >> y & 1) and math.isfinite(gain(y, toggled)):
                yield _Step(gain(y, toggled), ((y, toggled),))


def _is_acyclic(
    parents: Sequence[int], earlier: Sequence[int], changes: tuple[tuple[int, int], ...]
) -> bool:
    """Whether no node whose parents have changed stands before itself; ``earlier``: what is known
    to stand before each."""
    for node, _ in changes:
        seen = frontier = parents[node] | earlier[node]
        while frontier:
            low = frontier & -frontier
            before = low.bit_length() - 1
            fresh = (parents[before] | earlier[before]) & ~seen
            seen |= fresh
            frontier = (frontier ^ low) | fresh
        if seen >> node & 1:
            return False
    return True
