"""Searches on releases: paid for already, so they may try as much as they like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from jaxcd.discovery.equivalence_search import equivalence_search
from jaxcd.discovery.exact_search import exact_search
from jaxcd.discovery.facts import facts_of_release
from jaxcd.discovery.ordering_search import ordering_search
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph, consistent_extension, dag_to_cpdag
from jaxcd.releases import Release, ReleasedHistogram, ReleasedMarginals
from jaxcd.releases.set_function import nearest_table
from jaxcd.scores import BICScore, GraphScore, LocalScore, MeasurementErrorScore, SetScore
from jaxcd.scores.base import first_best, tie

__all__ = ["histogram_score", "marginals_score", "result_on_release", "score_graph", "score_subgraphs", "search_histogram", "search_marginals"]

#: The starts: every cell below so many noise scales is emptied, and BIC's penalty is multiplied by so much.  They only have to
#: lie about; the exact score picks among them and climbs on.
_CUTS = (0.0, 2.0, 4.0, 6.0)
_PENALTIES = (1.0, 3.0, 10.0)
_REFITS = 4


def search_histogram(
    release: ReleasedHistogram, *, max_parents: int = 3, n_climbs: int = 3, patience: int = 5, max_members: int = 8
) -> DiscoveryResult:
    """The graph of the highest measurement-error BIC on a released histogram; post-processing, and deterministic.

    1. Starts: the exact best DAG by BIC of the histogram denoised in several ways (a simplex projection; small cells emptied) at
       several penalties. 2. The exact score (:class:`jaxcd.scores.MeasurementErrorScore`) ranks them; from the best, structural
       expectation-maximisation: the exact best DAG on the counts expected under the last one, while that improves. 3. Tabu
       search over equivalence classes from the best.

    Args:
        release: the histogram; it carries the cost.
        max_parents: the largest number of parents of a node in the DAGs that are tried.
        n_climbs, patience, max_members: effort of :func:`jaxcd.discovery.equivalence_search`.

    Returns:
        The CPDAG with the release's cost. ``info``: ``score`` of the found graph in nats, ``n_graphs_scored`` (classes fitted),
        ``n_starts``, and the settings; :func:`score_graph` scores any other graph in the same way.

    Raises:
        OptionError: an option is out of its range, or the release is no histogram.

    Source: Friedman 1998 for structural expectation-maximisation.
    """
    score = histogram_score(release, max_parents=max_parents)
    graphs = _starts(release, max_parents)
    values = score.totals(graphs)
    place = first_best(values)
    best, top = graphs[place], float(values[place])
    for _ in range(_REFITS):
        expected = score.fit(best).counts[0].reshape(release.cardinalities)
        refit = exact_search(_bic(release, expected, max_parents))
        graphs = np.concatenate([graphs, refit[None]])
        value = score.total(refit)
        if not value > top + tie(top):
            break
        best, top = refit, value
    found = equivalence_search(score, starts=graphs, n_climbs=n_climbs, patience=patience, max_members=max_members)
    return result_on_release(
        release,
        found.adjacency,
        info={
            "algorithm": "search_histogram",
            "n_cells": release.values.size,
            "noise_scale": release.scale,
            "score": found.score,
            "n_graphs_scored": score.n_scored,
            "n_starts": len(graphs),
            "max_parents": max_parents,
            "n_climbs": n_climbs,
            "patience": patience,
            "max_members": max_members,
        },
    )


def histogram_score(release: ReleasedHistogram, *, max_parents: int = 3) -> MeasurementErrorScore:
    """The score that :func:`search_histogram` maximises; OptionError where the release is no histogram."""
    if not isinstance(release, ReleasedHistogram):
        raise OptionError(
            f"release: a {type(release).__name__} is not a ReleasedHistogram; buy one with release_histogram(data, budget=...)"
        )
    return MeasurementErrorScore(release, max_parents=max_parents)


def search_marginals(
    release: ReleasedMarginals,
    *,
    max_parents: int = 4,
    noise_price: float = 5.0,
    inflation_cap: float = 20.0,
    restarts: int = 40,
    seed: int = 0,
) -> DiscoveryResult:
    """The graph of the highest set score on released marginals; post-processing.

    Args:
        release: the marginals; they carry the cost.
        max_parents, noise_price, inflation_cap: of :class:`jaxcd.scores.SetScore`.
        restarts, seed: effort and public randomness of :func:`jaxcd.discovery.ordering_search`.

    Returns:
        The CPDAG with the release's cost.  ``info``: ``score`` of the found graph in nats, ``n_reached`` of ``restarts`` orderings
        that ended there, and the settings; :func:`score_graph` with :func:`marginals_score` scores any other graph in the same way.

    Raises:
        OptionError: an option is out of its range, or the release is none of marginals.
    """
    score = marginals_score(release, max_parents=max_parents, noise_price=noise_price, inflation_cap=inflation_cap)
    found = ordering_search(score, restarts=restarts, seed=seed)
    return result_on_release(
        release,
        found.adjacency,
        info={
            "algorithm": "search_marginals",
            "n_sets": len(release.interactions),
            "score": found.score,
            "n_reached": found.n_reached,
            "restarts": restarts,
            "seed": seed,
            "max_parents": max_parents,
            "noise_price": noise_price,
            "inflation_cap": inflation_cap,
        },
    )


def marginals_score(
    release: ReleasedMarginals, *, max_parents: int = 4, noise_price: float = 5.0, inflation_cap: float = 20.0
) -> SetScore:
    """The score that :func:`search_marginals` maximises; OptionError where the release is none of marginals."""
    return SetScore(release, max_parents=max_parents, noise_price=noise_price, inflation_cap=inflation_cap)


def result_on_release(release: Release, adjacency: np.ndarray, *, info: Mapping[str, Any]) -> DiscoveryResult:
    """The result of a search on a release that ended at a DAG: its CPDAG, with the release's cost.

    adjacency: bool (d, d), a DAG.  info: the algorithm, its settings and what it found; what the release is comes behind the name.
    """
    return DiscoveryResult(
        graph=dag_to_cpdag(MixedGraph.from_arcs(release.names, adjacency)),
        separating_sets={},
        cost=release.cost,
        spent=release.spent,
        exhausted=False,
        info={**info, **facts_of_release(release)},
    )


def score_graph(score: GraphScore, graph: MixedGraph | nx.DiGraph) -> float:
    """The score of a given graph, in nats: a DAG, or a CPDAG, of which any member is scored.

    Beside the score of the found graph it says whether a search failed: if the truth scores higher, it was missed; if not, the
    released numbers themselves prefer another graph.

    Args:
        score: such as :class:`jaxcd.scores.MeasurementErrorScore`; equal for equivalent DAGs.
        graph: over the score's names, in any order.

    Raises:
        GraphError: the names differ, or no DAG belongs to the graph.
    """
    return score.total(_member(graph, score.names))


def score_subgraphs(score: LocalScore, graph: MixedGraph | nx.DiGraph) -> float:
    """The highest score, in nats, of the subgraphs of a DAG (of one member of a CPDAG) that the score's tables hold.

    A release that did not measure every family of the truth cannot score it (minus infinity), and could not have found it.  What
    a search over the same tables must reach at least is this: less of it is a failure of the search.

    Args:
        score: a sum of local scores, such as :class:`jaxcd.scores.SetScore`.
        graph: over the score's names, in any order.

    Raises:
        GraphError: the names differ, or no DAG belongs to the graph.
    """
    adjacency, total = _member(graph, score.names), 0.0
    for node in range(len(score.names)):
        parents = set(np.flatnonzero(adjacency[:, node]).tolist())
        total += max(value for family, value in score.table(node).lookup.items() if parents.issuperset(family))
    return total


def _member(graph: MixedGraph | nx.DiGraph, names: tuple[str, ...]) -> np.ndarray:
    """The adjacency of a DAG of the class, bool (d, d), in the order of the names."""
    mixed = graph if isinstance(graph, MixedGraph) else MixedGraph.from_dag(graph)
    extension = consistent_extension(mixed)
    if extension is None:
        raise GraphError("graph: no DAG has these adjacencies and v-structures; give a DAG or the CPDAG of one")
    return extension.reordered(names).directed


def _bic(release: ReleasedHistogram, table: np.ndarray, max_parents: int) -> BICScore:
    return BICScore.of_table(table, names=release.names, n_samples=release.n_samples, max_parents=max_parents)


def _starts(release: ReleasedHistogram, max_parents: int) -> np.ndarray:
    """DAGs to start from, bool (G, d, d): the best by BIC of the histogram denoised in several crude ways."""
    noisy, n = release.values.astype(np.float64), float(release.n_samples)
    tables = []
    for cut in _CUTS:
        table = nearest_table(np.where(noisy < cut * release.scale, 0.0, noisy).ravel(), n)
        tables.append(table.reshape(noisy.shape))
    graphs = []
    for table in tables:
        bic = _bic(release, table, max_parents)
        graphs += [exact_search(bic.with_penalty(penalty)) for penalty in _PENALTIES]
    return np.array(graphs)
