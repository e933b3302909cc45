"""Priv-PC and SVT-PC as their paper and code have them: not private, kept to compare with.

Both are PC in its original order, over the skeleton search of
:mod:`jaxcd.discovery.constraint.skeleton`; what is theirs is how a question is answered.  A *round*
ends with the first candidate whose noisy p-value reaches a noisy threshold.  In SVT-PC that
separates the pair.  In Priv-PC the p-values of a round are those of a fresh subsample (the sieve),
and the candidate is then examined on the full data; whether or not that confirms it, the next round
starts with a new threshold and a new subsample.

The authors' code collects separating sets by union; in the original order an edge is removed once
and never asked again, so the union holds one set, the one kept here.  Orientation is the library's.

Noise is simulated from a key, in one stream a round whose queries draw in their order: results do
not depend on how many queries were computed ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import jax
import numpy as np

from jaxcd.checks import is_whole
from jaxcd.citests import Evaluation, Query, check_alpha
from jaxcd.data import Dataset
from jaxcd.decisions import DecisionRun, Frontier, Question
from jaxcd.discovery import ConflictRule, DiscoveryResult, LevelRecord
from jaxcd.discovery.constraint.orientation import apply_meek_rules, orient_colliders
from jaxcd.discovery.constraint.skeleton import search_skeleton
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.privacy import NO_PRIVACY, PrivacyCost, Relation, SimulatedNoise
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.accounting import SievePrices, SVTPrices, sieve_total, svt_total
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.queries import Door, Session

__all__ = ["priv_pc", "svt_pc"]

_REASON = (
    "published method, kept for comparison: the p-value of the conditional tau has sensitivity "
    "near 1/2 instead of the "
    "assumed Phi(6/sqrt(n)) - 1/2 and is NaN on constant columns, where no epsilon holds; the "
    "total is computed after the run "
    "from a count that depends on the data and leaves out the last round; the noise is simulated"
)
_SVT_REASON = (
    _REASON + "; and the threshold is drawn anew from a normal instead of a Laplace distribution"
)

# A round's p-values are lost with its subsample, so the look-ahead starts small and grows while
# nothing passes.
_FIRST_LOOK_AHEAD = 8
_LOOK_AHEAD = 1024
# An examination answers coming queries of at most this many table cells together (0.4 ms at
# n = 100,000, as long as a call).
_EXAMINED_CELLS = 512


@dataclass
class _Round:
    """One threshold, and its queries' noise.

    Args:
        evaluate: answers queries on the round's rows.
        confirm: whether a candidate that passed is separated; it is told which queries come next,
            since one call answers several.
    """

    evaluate: Callable[[list[Query]], Evaluation]
    threshold: float
    query_scale: float
    stream: np.random.Generator
    confirm: Callable[[Query, list[Query]], bool]

    def first_pass(self, queries: list[Query]) -> int | None:
        """The first query with p + noise >= threshold.  A NaN never passes."""
        pvalues = np.exp(self.evaluate(queries).log_pvalue)
        hits = np.flatnonzero(
            pvalues + self.stream.laplace(0, self.query_scale, len(queries)) >= self.threshold
        )
        return int(hits[0]) if len(hits) else None


class _PublishedRun(DecisionRun):
    """Walks the frontier round by round.  new_round: the k-th round, k = 0, 1, ...; the next one
    only where it is needed.
    """

    def __init__(self, new_round: Callable[[int], _Round]) -> None:
        self._new_round = new_round
        self._look_ahead = _FIRST_LOOK_AHEAD
        self._round: _Round | None = None
        self.n_passes = 0
        self.n_queries = 0

    def answer(self, frontier: Frontier) -> None:
        first_candidate = 0  # of the frontier's first question: the earlier ones have been asked
        while questions := frontier.peek(first_candidate + self._look_ahead):
            first_candidate = self._walk(frontier, questions, first_candidate)

    def _walk(self, frontier: Frontier, questions: list[Question], first_candidate: int) -> int:
        """Asks the candidates up to the first that passes; returns where to go on in the first
        question that is left.
        """
        asked: list[tuple[int, int]] = [
            (place, candidate)
            for place, question in enumerate(questions)
            for candidate in range(0 if place else first_candidate, len(question.candidates))
        ]
        hit = None
        while hit is None and asked:
            chunk, asked = asked[: self._look_ahead], asked[self._look_ahead :]
            queries = [_query(questions[place], candidate) for place, candidate in chunk]
            hit = self._ask(queries)
        if hit is None:
            for _ in questions:
                frontier.keep()
            return 0
        place, candidate = chunk[hit]
        for _ in range(place):
            frontier.keep()
        question = questions[place]
        if self._confirm(queries[hit], queries[hit + 1 :]):
            frontier.separate(question.candidates[candidate])
            return 0
        if candidate + 1 < len(question.candidates):
            return candidate + 1
        frontier.keep()
        return 0

    def _ask(self, queries: list[Query]) -> int | None:
        if self._round is None:
            self._round = self._new_round(self.n_passes)
        hit = self._round.first_pass(queries)
        self.n_queries += len(queries) if hit is None else hit + 1
        if hit is None:
            self._look_ahead = min(2 * self._look_ahead, _LOOK_AHEAD)
        return hit

    def _confirm(self, query: Query, upcoming: list[Query]) -> bool:
        assert self._round is not None
        confirmed = self._round.confirm(query, upcoming)
        self._round = None
        self._look_ahead = _FIRST_LOOK_AHEAD
        self.n_passes += 1
        return confirmed


def _query(question: Question, candidate: int) -> Query:
    return Query.of(question.x, question.y, question.candidates[candidate])


def _streams(key: jax.Array) -> Callable[[int], np.random.Generator]:
    """The generator of the k-th round, from a typed key."""
    SimulatedNoise(key)  # raises OptionError for anything but a single typed key
    words = [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]
    return lambda k: np.random.Generator(
        np.random.Philox(np.random.SeedSequence([len(words), *words, k]))
    )


def _examined(session: Session, query: Query, upcoming: list[Query]) -> float:
    """The p-value of a query on all rows; the same call answers the next ones as long as that costs
    less than a call.
    """
    cards = session.view_cardinalities
    n_cells = accumulate(
        math.prod(cards[v] for v in (q.x, q.y, *q.given)) for q in (query, *upcoming)
    )
    n_answered = max(sum(n <= _EXAMINED_CELLS for n in n_cells), 1)
    return float(np.exp(session.evaluate([query, *upcoming][:n_answered]).log_pvalue[0]))


@claiming(
    GuaranteeClaim(
        "the paper's (epsilon, delta), computed after the run",
        proof="its statistic has sensitivity near 1/2, is undefined on constant columns, and the "
        "total depends on the data",
        proven=False,
        assumptions="-",
    )
)
def priv_pc(
    data: Dataset,
    *,
    epsilon: float,
    alpha: float = 0.1,
    delta: float = 1e-3,
    bias: float = 0.02,
    key: jax.Array,
    max_level: int | None = None,
) -> DiscoveryResult:
    r"""Priv-PC as published: sieve on a subsample, examine on the full data, epsilon a round.

    The sieve passes where p(subsample) + Lap(2 sigma) >= alpha - bias + Lap(sigma); the examination
    separates where p(all) + Lap(2 S / epsilon) >= alpha, with S and sigma of
    :class:`jaxcd.published.accounting.SievePrices`.

    Args:
        data: discrete columns, in the order of their levels.
        epsilon: positive, a round, half of it for each part.
        alpha: the level, 0 < alpha < 1; 0.1 is that of the paper's experiments.
        delta: in (0, 1), of the total.
        bias: by how much the sieve's threshold is lower than alpha.
        key: a typed key: noise and subsamples.
        max_level: the largest conditioning set, or None.

    Returns:
        The result; ``cost`` holds the total that the paper claims, with ``proven`` False and the
        reason; ``info`` the number of tests (sieved and examined) and of rounds.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None (module docstrings; PRIVACY.md B1, C3).  :class:`jaxcd.SieveAndExamine` is what holds.

    Source:
        Wang, Pang, Song 2020, Algorithm 2, and its code.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> run = jaxcd.published.priv_pc(data, epsilon=1.0, key=jax.random.key(1))
        >>> run.cost.proven
        False
    """
    _check(epsilon=epsilon, alpha=alpha, delta=delta, bias=bias, max_level=max_level)
    stream_of = _streams(key)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=alpha)
    n = session.n_samples
    prices = SievePrices.of(n, epsilon)

    def new_round(k: int) -> _Round:
        stream = stream_of(k)
        threshold = alpha - bias + stream.laplace(0, prices.threshold_scale)
        examine_noise = stream.laplace(0, prices.examine_scale)
        rows = np.zeros(n, dtype=bool)
        rows[stream.choice(n, prices.subsample_size, replace=False, shuffle=False)] = True
        return _Round(
            session.restrict(rows).evaluate,
            threshold,
            prices.query_scale,
            stream,
            lambda query, upcoming: _examined(session, query, upcoming) + examine_noise >= alpha,
        )

    run = _PublishedRun(new_round)
    return _search(
        "priv_pc",
        session,
        run,
        max_level,
        total=lambda: sieve_total(run.n_passes, epsilon, delta),
        n_tests=lambda: run.n_queries + run.n_passes,
        delta=delta,
        reason=_REASON,
        settings={
            "epsilon_per_round": epsilon,
            "alpha": alpha,
            "bias": bias,
            "subsample_size": prices.subsample_size,
        },
    )


@claiming(
    GuaranteeClaim(
        "the paper's (epsilon, delta), computed after the run",
        proof="as published.priv_pc; moreover the threshold is refreshed with Gaussian instead of "
        "Laplace noise",
        proven=False,
        assumptions="-",
    )
)
def svt_pc(
    data: Dataset,
    *,
    epsilon: float,
    alpha: float = 0.1,
    delta: float = 1e-3,
    key: jax.Array,
    max_level: int | None = None,
) -> DiscoveryResult:
    r"""SVT-PC as published: the sparse vector technique on p-values of the full data, epsilon a
    separation.

    A candidate separates where p + Lap(8 S / epsilon) >= T, with T = alpha + Lap(2 S / epsilon) in
    the first round and, a fault that is kept, alpha + N(0, (2 S / epsilon)^2) in the later ones;
    S = Phi(6 / sqrt(n)) - 1/2.

    Args:
        data: discrete columns, in the order of their levels.
        epsilon: positive, a round.
        alpha: the level, 0 < alpha < 1.
        delta: in (0, 1), of the total.
        key: a typed key: the noise.
        max_level: the largest conditioning set, or None.

    Returns:
        The result; ``cost`` holds the total that the paper claims, with ``proven`` False and the
        reason; ``info`` the number of tests and of rounds.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None (module docstrings; PRIVACY.md B1, C3).  :class:`jaxcd.SparseVector` is what holds.

    Source:
        Wang, Pang, Song 2020, Algorithm 1 without subsampling, and its code.
    """
    _check(epsilon=epsilon, alpha=alpha, delta=delta, bias=0.0, max_level=max_level)
    stream_of = _streams(key)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=alpha)
    prices = SVTPrices.of(session.n_samples, epsilon)

    def new_round(k: int) -> _Round:
        stream = stream_of(k)
        draw = stream.normal if k else stream.laplace
        threshold = alpha + draw(0, prices.threshold_scale)
        return _Round(
            session.evaluate, threshold, prices.query_scale, stream, lambda query, upcoming: True
        )

    run = _PublishedRun(new_round)
    return _search(
        "svt_pc",
        session,
        run,
        max_level,
        total=lambda: svt_total(run.n_passes, epsilon, delta),
        n_tests=lambda: run.n_queries,
        delta=delta,
        reason=_SVT_REASON,
        settings={"epsilon_per_round": epsilon, "alpha": alpha},
    )


def _check(*, epsilon: Any, alpha: Any, delta: Any, bias: Any, max_level: Any) -> None:
    check_alpha(alpha)
    if not 0 < epsilon < np.inf:
        raise OptionError(
            f"epsilon = {epsilon!r} is not a price; give a positive number for each round, such "
            "as 1.0"
        )
    if not 0 < delta < 1:
        raise OptionError(
            f"delta = {delta!r} is not in (0, 1); give a small positive number such as 1e-3"
        )
    if not abs(bias) < np.inf:
        raise OptionError(
            f"bias = {bias!r} is not a number; give the lowering of the sieve's threshold, such "
            "as 0.02"
        )
    if max_level is not None and not is_whole(max_level, 0):
        raise OptionError(
            f"max_level = {max_level!r} is not a level; use a whole number from 0, or None for no "
            "limit"
        )


def _search(
    algorithm: str,
    session: Session,
    run: _PublishedRun,
    max_level: int | None,
    *,
    total: Callable[[], float],
    n_tests: Callable[[], int],
    delta: float,
    reason: str,
    settings: dict[str, Any],
) -> DiscoveryResult:
    """Skeleton in the original order, orientation, and the total that follows from the rounds
    taken.
    """
    levels: list[LevelRecord] = []
    skeleton = search_skeleton(
        run,
        session.n_variables,
        admissible=lambda x, y, given: session.admissible(Query.of(x, y, given)),
        max_level=max_level,
        stable=False,
        report=lambda *record: levels.append(LevelRecord(*record)),
    )
    names = session.names
    sets = {
        frozenset((names[x], names[y])): tuple(names[v] for v in given)
        for (x, y), given in skeleton.separating_sets.items()
    }
    graph = MixedGraph(names, 3 * skeleton.adjacency.astype("int8"))
    graph = orient_colliders(graph, separating_sets=sets, rule=ConflictRule.UNDIRECTED)
    cost = PrivacyCost(total(), delta, Relation.REPLACE_ONE, False, reason)
    info = {
        "algorithm": algorithm,
        "test": repr(session.test),
        "n_samples": session.n_samples,
        "n_variables": session.n_variables,
        "n_tests": n_tests(),
        "n_rounds": run.n_passes,
        "total_epsilon": cost.epsilon,
        "secure_noise": False,
        "levels": tuple(levels),
        "stable": False,
        "max_level": max_level,
        **settings,
    }
    return DiscoveryResult(apply_meek_rules(graph), sets, cost, cost, False, info)
