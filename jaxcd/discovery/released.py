"""Searches on releases by score: paid for already, so they may try as much as they like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from jaxcd.data import Domain, Missing
from jaxcd.data.intervention_knowledge import with_interventions
from jaxcd.discovery.constraint.background import check_knowledge
from jaxcd.discovery.facts import facts_of_release, known_before
from jaxcd.discovery.interventions import oriented_by_score
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.discovery.score.decomposable import decomposable
from jaxcd.discovery.score.equivalence_search import equivalence_search
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.discovery.score.ges import greedy_equivalence_search
from jaxcd.discovery.score.limits import Limits
from jaxcd.discovery.score.ordering_search import MOST_TOGETHER, ordering_search
from jaxcd.errors import GraphError
from jaxcd.graphs import Knowledge, MixedGraph, consistent_extension
from jaxcd.releases import (
    FeatureScore,
    GaussianScore,
    MeasurementErrorScore,
    Release,
    ReleasedFeatures,
    ReleasedHistogram,
    ReleasedMarginals,
    ReleasedSecondMoments,
)
from jaxcd.releases.tables.set_score import set_score
from jaxcd.scores import GraphScore, LocalScore
from jaxcd.scores.base import first_best, tie
from jaxcd.scores.level_margin import FULL_LEVELS

__all__ = [
    "known_to_scores",
    "result_on_release",
    "score_graph",
    "score_subgraphs",
    "search_features",
    "search_histogram",
    "search_marginals",
    "search_release",
    "search_second_moments",
]

_REFITS = 4
_DIRECTIONS_OPEN = (
    "directions are left open: with so few rows and so much noise most that a search finds are "
    "wrong, so that it looks for the best graph whose edges tell none; more rows, or a larger "
    "epsilon, would tell them"
)


@repeatable
def search_release(
    release: Release, *, knowledge: Knowledge | None = None, missing: Missing | str | None = None
) -> DiscoveryResult:
    """The best graph of a release by its own score (:meth:`jaxcd.releases.Release.default_score`);
    post-processing, and deterministic.

    A sum over nodes is maximised over all graphs where there are few variables (``most_exact`` of
    the score), else over orderings; any other score over equivalence classes, from the best graphs
    of its approximations.  Where chance would decide most directions (``opens_directions`` of the
    release) a graph near the best one is returned that has no unshielded collider, as far as
    knowledge allows: ``score`` is then that of this graph, and ``exact`` speaks of the best.

    Args:
        release: what :func:`jaxcd.release` returned.
        knowledge: what is known before; public.  The best graph is then that of those that fit.
        missing: how missing cells are read, "ignore" or "level"; None: as the release says.

    Returns:
        The CPDAG, with all orientations that the knowledge implies, and the release's guarantee.

    Raises:
        OptionError: the release has no score, or the knowledge names other columns.
    """
    read = release if missing is None else release.reading(missing)
    return _searched(read, read.default_score(), knowledge)


def known_to_scores(knowledge: Knowledge | None, domain: Domain) -> Knowledge | None:
    """What a search of a release by a score knows: what the user knows, with what the domain's
    interventions say.  Public facts alone, so that it can be asked before anything is bought.

    Raises:
        OptionError: the knowledge is no Knowledge, names what is not there, or contradicts the
            interventions.
    """
    check_knowledge(knowledge, domain.names)
    return with_interventions(knowledge, domain)


def _searched(
    release: Release, score: GraphScore, knowledge: Knowledge | None, **effort: Any
) -> DiscoveryResult:
    """The result of the search that suits the score."""
    knowledge = known_to_scores(knowledge, release.domain)
    best, found = (
        _maximised(score, knowledge, opens=release.opens_directions, **effort)
        if isinstance(score, LocalScore)
        else _climbed(score, knowledge, **effort)
    )
    info = {"algorithm": f"search_{release.kind.replace('-', '_')}", **score.settings, **found}
    result = result_on_release(release, best, info=info, knowledge=knowledge)
    return replace(result, graph=oriented_by_score(result.graph, score, best))


def _maximised(
    score: LocalScore, knowledge: Knowledge | None, *, opens: bool, **effort: Any
) -> tuple[np.ndarray, dict[str, Any]]:
    """The best graph; opens: one near it without unshielded colliders."""
    best, found = _best(score, knowledge, **effort)
    limits = Limits.of(knowledge, score.names)
    total, words = limits.within(score).total, {}
    if opens:
        best = decomposable(best, limits=limits, kept=score.tells(best), total=total)
        words = {"warnings": (_DIRECTIONS_OPEN,)}
    return best, {"score": total(best), **found, **words}


def _best(
    score: LocalScore, knowledge: Knowledge | None, *, restarts: int = 40, seed: int = 0
) -> tuple[np.ndarray, dict[str, Any]]:
    if len(score.names) <= score.most_exact:
        return exact_search(score, knowledge=knowledge), {"exact": True}
    starts: tuple[np.ndarray, ...] = ()
    if len(score.names) > MOST_TOGETHER and score.equal_in_a_class:
        # With many columns greedy equivalence search ends far above what random orderings reach.
        starts = (greedy_equivalence_search(score, knowledge=knowledge).adjacency,)
        restarts = 0
    found = ordering_search(score, starts=starts, restarts=restarts, seed=seed, knowledge=knowledge)
    effort = {"n_reached": found.n_reached, "restarts": restarts, "seed": seed}
    return found.adjacency, {"exact": False, **effort}


def _climbed(
    score: GraphScore,
    knowledge: Knowledge | None,
    *,
    n_climbs: int = 3,
    patience: int = 5,
    max_members: int = 8,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts, structural expectation-maximisation from the best of them, and a tabu search over
    equivalence classes.
    """
    graphs = np.array([exact_search(part, knowledge=knowledge) for part in score.approximations()])
    values = score.totals(graphs)
    place = first_best(values)
    best, top = graphs[place], float(values[place])
    for _ in range(_REFITS):
        expected = score.expected(best)
        if expected is None:
            break
        refit = exact_search(expected, knowledge=knowledge)
        graphs = np.concatenate([graphs, refit[None]])
        value = score.total(refit)
        if not value > top + tie(top):
            break
        best, top = refit, value
    effort = {"n_climbs": n_climbs, "patience": patience, "max_members": max_members}
    found = equivalence_search(score, starts=graphs, knowledge=knowledge, **effort)
    n_scored = getattr(score, "n_scored", None)
    return found.adjacency, {
        "score": found.score,
        "n_graphs_scored": n_scored,
        "n_starts": len(graphs),
        **effort,
    }


@repeatable
def search_histogram(
    release: ReleasedHistogram,
    *,
    max_parents: int = 3,
    full_levels: int | None = FULL_LEVELS,
    n_climbs: int = 3,
    patience: int = 5,
    max_members: int = 8,
    knowledge: Knowledge | None = None,
) -> DiscoveryResult:
    """The graph of the highest measurement-error BIC on a released histogram; post-processing, and
    deterministic.

    1. Starts: the exact best DAG by BIC of the histogram denoised in several ways (a simplex
       projection; small cells emptied) at several penalties. 2. The exact score
       (:class:`jaxcd.releases.MeasurementErrorScore`) ranks them; from the best, structural
       expectation-maximisation: the exact best DAG on the counts expected under the last one, while
       that improves. 3. Tabu search over equivalence classes from the best.

    Args:
        release: the histogram; it carries the cost.
        max_parents: the largest number of parents of a node in the DAGs that are tried.
        full_levels: of :class:`jaxcd.releases.MeasurementErrorScore`.
        n_climbs: effort of :func:`jaxcd.discovery.equivalence_search`.
        patience: as ``n_climbs``.
        max_members: as ``n_climbs``.
        knowledge: what is known before, as for :func:`search_release`.

    Returns:
        The CPDAG with the release's cost. ``info``: ``score`` of the found graph in nats,
        ``n_graphs_scored`` (classes fitted), ``n_starts``, and the settings; :func:`score_graph`
        scores any other graph in the same way.

    Raises:
        OptionError: an option is out of its range, or the release is no histogram.

    Source:
        Friedman 1998 for structural expectation-maximisation.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> jaxcd.discovery.search_histogram(bought, max_parents=1).graph.n_edges
        3
    """
    effort = {"n_climbs": n_climbs, "patience": patience, "max_members": max_members}
    score = MeasurementErrorScore(release, max_parents=max_parents, full_levels=full_levels)
    return _searched(release, score, knowledge, **effort)


@repeatable
def search_marginals(
    release: ReleasedMarginals,
    *,
    max_parents: int = 5,
    noise_price: float = 4.0,
    full_levels: int | None = FULL_LEVELS,
    restarts: int = 40,
    seed: int = 0,
    knowledge: Knowledge | None = None,
) -> DiscoveryResult:
    """The graph of the highest set score on released marginals; post-processing.

    Args:
        release: the marginals; they carry the cost.
        max_parents: of :class:`jaxcd.releases.SetScore`.
        noise_price: as ``max_parents``.
        full_levels: as ``max_parents``.
        restarts: effort and public randomness of :func:`jaxcd.discovery.ordering_search`.
        seed: as ``restarts``.
        knowledge: what is known before, as for :func:`search_release`.

    Returns:
        The CPDAG with the release's cost.  ``info``: ``score`` of the found graph in nats,
        ``n_reached`` of ``restarts`` orderings that ended there, and the settings;
        :func:`score_graph` with the score itself scores any other graph in the same way.

    Raises:
        OptionError: an option is out of its range, or the release is none of marginals.
    """
    score = set_score(
        release, max_parents=max_parents, noise_price=noise_price, full_levels=full_levels
    )
    return _searched(release, score, knowledge, restarts=restarts, seed=seed)


@repeatable
def search_second_moments(
    release: ReleasedSecondMoments,
    *,
    penalty: float = 2.0,
    max_parents: int = 6,
    n_candidates: int = 14,
    knowledge: Knowledge | None = None,
) -> DiscoveryResult:
    """The graph of the highest Gaussian score on a release; post-processing, and deterministic.

    Up to 20 variables the best of all graphs within the candidates
    (:func:`jaxcd.discovery.exact_search`), above the best that
    :func:`jaxcd.discovery.ordering_search` finds.

    Args:
        release: the moments; it carries the cost.
        penalty: as for :class:`jaxcd.releases.GaussianScore`.
        max_parents: as ``penalty``.
        n_candidates: as ``penalty``.
        knowledge: what is known before, as for :func:`search_release`.

    Returns:
        The CPDAG with the release's cost.  ``info``: ``score`` of the found graph in nats, and the
        settings.

    Raises:
        OptionError: an option is out of its range, or the release is of another kind.
    """
    score = GaussianScore(
        release, penalty=penalty, max_parents=max_parents, n_candidates=n_candidates
    )
    return _searched(release, score, knowledge)


@repeatable
def search_features(
    release: ReleasedFeatures,
    *,
    penalty: float = 1.0,
    effect: float = 0.1,
    max_parents: int = 4,
    n_candidates: int = 10,
    knowledge: Knowledge | None = None,
) -> DiscoveryResult:
    """The graph of the highest :class:`jaxcd.releases.FeatureScore` on a release; post-processing,
    and deterministic.

    For models in which a child is a function of an additive (or nearly additive) sum of functions
    of its parents, plus noise.  Up to 18 variables the best of all graphs within the candidates,
    above the best that :func:`jaxcd.discovery.ordering_search` finds.

    Args:
        release: the covariances; it carries the cost.
        penalty: as for :class:`jaxcd.releases.FeatureScore`.
        effect: as ``penalty``.
        max_parents: as ``penalty``.
        n_candidates: as ``penalty``.
        knowledge: what is known before, as for :func:`search_release`.

    Returns:
        The CPDAG with the release's cost.  ``info``: ``score`` of the found graph in nats, and the
        settings.

    Raises:
        OptionError: an option is out of its range, or the release is of another kind.
    """
    score = FeatureScore(
        release, penalty=penalty, effect=effect, max_parents=max_parents, n_candidates=n_candidates
    )
    return _searched(release, score, knowledge)


def result_on_release(
    release: Release,
    adjacency: np.ndarray,
    *,
    info: Mapping[str, Any],
    knowledge: Knowledge | None = None,
) -> DiscoveryResult:
    """The result of a search on a release that ended at a DAG: its CPDAG, with all orientations
    that the knowledge implies, and the release's cost.

    Args:
        adjacency: bool (d, d), a DAG that fits the knowledge.
        info: the algorithm, its settings and what it found; what the release is comes behind the
            name.
    """
    facts = facts_of_release(release)
    words = (*info.get("warnings", ()), *facts.get("warnings", ()))
    return DiscoveryResult(
        graph=Limits.of(knowledge, release.names).pattern(adjacency),
        separating_sets={},
        cost=release.cost,
        spent=release.spent,
        exhausted=False,
        info={**info, **known_before(knowledge), **facts, **({"warnings": words} if words else {})},
    )


def score_graph(score: GraphScore, graph: MixedGraph | nx.DiGraph) -> float:
    """The score of a given graph, in nats: a DAG, or a CPDAG, of which any member is scored.

    Beside the score of the found graph it says whether a search failed: if the truth scores higher,
    it was missed; if not, the released numbers themselves prefer another graph.

    Args:
        score: such as :class:`jaxcd.scores.MeasurementErrorScore`; equal for equivalent DAGs.
        graph: over the score's names, in any order.

    Returns:
        The score in nats.

    Raises:
        GraphError: the names differ, or no DAG belongs to the graph.
    """
    return score.total(_member(graph, score.names))


def score_subgraphs(score: LocalScore, graph: MixedGraph | nx.DiGraph) -> float:
    """The highest score, in nats, of the subgraphs of a DAG (of one member of a CPDAG) that the
    score's tables hold.

    A release that did not measure every family of the truth cannot score it (minus infinity), and
    could not have found it.  What a search over the same tables must reach at least is this: less
    of it is a failure of the search.

    Args:
        score: a sum of local scores, such as :class:`jaxcd.scores.SetScore`.
        graph: over the score's names, in any order.

    Raises:
        GraphError: the names differ, or no DAG belongs to the graph.
    """
    adjacency, total = _member(graph, score.names), 0.0
    for node in range(len(score.names)):
        parents = set(np.flatnonzero(adjacency[:, node]).tolist())
        total += max(
            value
            for family, value in score.table(node).lookup.items()
            if parents.issuperset(family)
        )
    return total


def _member(graph: MixedGraph | nx.DiGraph, names: tuple[str, ...]) -> np.ndarray:
    """The adjacency of a DAG of the class, bool (d, d), in the order of the names."""
    mixed = graph if isinstance(graph, MixedGraph) else MixedGraph.from_dag(graph)
    extension = consistent_extension(mixed)
    if extension is None:
        raise GraphError(
            "graph: no DAG has these adjacencies and v-structures; give a DAG or the CPDAG of one"
        )
    return extension.reordered(names).directed
