r"""How sure a graph is, from numbers that were released already: post-processing, free.

*Graphs of a release* (:func:`edge_confidence`).  The found graph is fitted to the release; rows are
drawn from the fit, the release is bought from them anew, and searched in the same way.  The share
of such draws in which an edge returns is the frequency with which all of it, sampling, privacy
noise and search, returns the edge *if the found graph with its fitted parameters were the truth*: a
stability, not the probability that the edge is in the true graph.  What is wrong every time (a
latent variable, a model that does not fit, an edge too weak to be seen, and with it the arrows that
it would have told) it does not show: found adjacencies were true at least as often as their share
says in simulations of small networks, their marks less often, and a share near 0 of a pair that was
not found is no evidence against a weak edge.

*Graphs of private tests* (:func:`decision_confidence`).  A noisy margin m of standard deviation s
was compared with a threshold t.  With nothing known beforehand about the margin without noise (a
flat prior) that is normal around m, and lies on the same side of t with probability Phi(|m - t| /
s).  This counts the privacy noise only: sampling is in the test's level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from scipy import special

from jaxcd.checks import a_type, check_flag, check_whole
from jaxcd.data.intervention_knowledge import designed_arcs
from jaxcd.discovery.edge_shares import EdgeConfidence
from jaxcd.discovery.recalibration import kinds, recalibrated
from jaxcd.discovery.released import search_release
from jaxcd.discovery.result import DiscoveryResult, Step, StepProgress, teller
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import Knowledge, Mark, MixedGraph, consistent_extension
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.releases import Release, ReleaseKind
from jaxcd.releases.kind import check_is_kind

__all__ = ["decision_confidence", "edge_confidence"]

RECALIBRATED_SENTENCE = (
    "The number beside an edge is how often the same search would find the two columns joined "
    "again if it were run on new people with new noise; it is not the probability that the edge "
    "is true."
)
"""What the numbers of a recalibrated :func:`edge_confidence` are, for people."""

DRAWS_SENTENCE = (
    "The number beside an edge is the share of releases, drawn from the found graph itself, in "
    "which the search finds it again; new people and new noise return it less often, and it is "
    "not the probability that the edge is true."
)
"""What the numbers are where they are not recalibrated."""

Search = Callable[[Any], DiscoveryResult]


@claiming(
    GuaranteeClaim(
        "post-processing: reads released numbers only", assumptions="those of the release or run"
    )
)
def edge_confidence(
    release: Release,
    run: DiscoveryResult | None = None,
    *,
    n_draws: int = 50,
    seed: int = 0,
    kind: ReleaseKind | None = None,
    search: Search | None = None,
    progress: StepProgress = False,
    calibrated: bool = True,
) -> EdgeConfidence:
    r"""How often the edges of a released graph would return, by a parametric bootstrap of release
    and search.

    1. A DAG of the found class is fitted to the release (of a PAG, in which columns may be hidden,
       and of a graph of tests that no DAG fits, the best DAG by the release's own score): of a
       histogram by maximum likelihood under its noise (expectation-maximisation), of marginals by
       the conditional tables of its families, of second moments and features by its regressions.
    2. In each draw n rows come from the fit, a release of the same kind, options and budget is
       bought from them with noise drawn anew, and the same search finds a CPDAG.  Of features no
       rows but the moments are drawn, as of jointly normal features
       (:mod:`jaxcd.releases.features.feature_models`).
    3. Shares: in how many draws i and j are adjacent, i -> j, j -> i, or joined by another edge.
    4. The found graph was chosen for fitting the release, so its edges return more often in such
       draws than in new data: found edges of shares .5 to .95 returned in .51 to .69 of new runs.
       A map that was fitted on random truths turns shares into how often edges return over new
       data and new noise (:mod:`jaxcd.discovery.recalibration`); it knows how many rows the
       released numbers are worth and, of features, which levels are too rare to take part and
       which columns are discrete.

    The map is an average over truths, and fits those like them.  On 3,385 truths that did not fit
    it (``python -m benchmarks.reliability``, ``benchmarks.reliability_fit``) found edges of all
    kinds of release that scored .60, .78, .91 and .99 on average returned in .59, .79, .90 and .99
    of new runs.  Of single kinds, those between .5 and .95 returned more or less often than scored
    by, with standard errors: histograms -.03 (.014), marginals +.01 (.013), log-linear models +.03
    (.032), moments -.01 (.010), features .00 (.014), mixed tables with rare levels +.01 (.015),
    columns cut at quantiles -.03 (.022).  Single bins (.5, .7, .85, .95) of 80 edges and more miss
    by up to .07 (.037), those of 25 to 79 by up to .09 (.05).  Neither number is a posterior.
    Pairs that the graph does not join have one too, which estimates how often the pipeline invents
    the edge (type I).
    Nothing sensitive is touched: rows are drawn from released numbers, so the noise may be
    simulated.

    Args:
        release: what :func:`jaxcd.release` returned.
        run: what a search found on it; None searches by the default.
        n_draws: draws, from 1.  Each costs a release and a search.
        seed: of all draws, from 0; public.
        kind: the options the release was bought with, where it does not record them and they were
            not the defaults (marginals; public centres and scales of second moments); features need
            none.
        search: how a release is searched; None reads search and options off ``run``.
        progress: True prints a line a draw; a function is called with a Step before each draw.
        calibrated: False leaves out step 4, which is never done for other searches than the
            release's own, nor for kinds of release that no map was fitted for: then the numbers are
            shares, the frequencies if the found graph with its fitted parameters were the truth.
            Pairs that the run's knowledge requires keep theirs.

    Returns:
        The shares; equal arguments give equal shares.

    Raises:
        OptionError: an argument is out of its range or not of its kind, or ``run`` does not say how
            it searched.
        GraphError: the graph has other names.

    Source:
        Friedman, Goldszmidt, Wyner 1999.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> run = jaxcd.search(bought)
        >>> shares = jaxcd.edge_confidence(bought, run, n_draws=4, calibrated=False)
        >>> shares.of("Smoker", "Cancer").adjacent
        1.0
        >>> sure = jaxcd.edge_confidence(bought, run, n_draws=20)
        >>> sure.of("Smoker", "Cancer").adjacent > 0.9
        True
    """
    check_whole("n_draws", n_draws, 1, cure="give one such as 50")
    check_whole("seed", seed, 0, 2**63 - 1, cure="give one such as 0")
    check_flag("calibrated", calibrated)
    if run is not None and not isinstance(run, DiscoveryResult):
        raise OptionError(
            f"run: {a_type(run)} is not a DiscoveryResult; use what the search returned, or None"
        )
    if not isinstance(release, Release):
        raise OptionError(
            f"release: {a_type(release)} cannot be drawn again; use what jaxcd.release returns"
        )
    tell = teller(progress)
    if kind is not None:
        check_is_kind(kind)
    if search is not None and not callable(search):
        raise OptionError(
            f"search = {search!r} is no function; give one of a release that returns a run, such "
            "as jaxcd.ges, or None for the run's own"
        )
    is_given = search is not None
    search = search or (search_release if run is None else run.again)
    if search is None:
        assert run is not None
        if run.made_with is not None:
            raise OptionError(
                "search: the run was read from a folder, and its search cannot be repeated; search "
                "the release again (jaxcd.search(release)), or give search="
            )
        raise OptionError(
            f"search: the run is of {run.info.get('algorithm')!r} on other data than a release; "
            "give search=, a function of a release"
        )
    run = _found(search, release) if run is None else run
    # What is drawn is read as the run read it.
    release = release.reading(run.info.get("missing", release.missing))
    draw_again = release.redraw(_model(release, run.graph), kind=kind)
    adjacent, directed = np.zeros((2, len(release.names), len(release.names)))
    for draw in range(n_draws):
        tell(Step("confidence", (draw, n_draws)))
        drawn = draw_again(jax.random.fold_in(jax.random.key(seed), draw))
        graph = _found(search, drawn).graph.reordered(release.names)
        adjacent += graph.adjacency
        directed += graph.directed
    shares = adjacent / n_draws
    method = (
        f"parametric bootstrap: the share of {n_draws} releases, drawn anew from the found graph "
        "fitted to this one, in which the same search returns the edge (a stability, not the "
        "probability that the edge is true)"
    )
    meaning = DRAWS_SENTENCE
    is_own = run.info.get("algorithm") == f"search_{release.kind.replace('-', '_')}"
    bought = kind or release.bought
    way = release.kind if bought is None else bought.word
    if calibrated and is_own and not is_given and way in kinds():
        found = run.graph.reordered(release.names).adjacency
        facts = release.facts_of_pairs()
        told = recalibrated(shares, found, n_draws=n_draws, kind=way, facts=facts)
        shares = np.where(_required(run, release.names), shares, told)
        method += (
            "; recalibrated on random truths to how often edges return over new data and noise"
        )
        meaning = RECALIBRATED_SENTENCE
    # Of an edge that returns, the directions are as in the draws.
    directions = directed / np.where(adjacent > 0, adjacent, 1) * shares
    return EdgeConfidence(
        release.names,
        shares,
        directions,
        np.maximum(shares - (directions + directions.T), 0.0),
        n_draws,
        method,
        meaning,
    )


def _found(search: Search, release: Release) -> DiscoveryResult:
    """What a search finds on a release; raises OptionError where that is no run."""
    run = search(release)
    if not isinstance(run, DiscoveryResult):
        raise OptionError(
            f"search: the function returned a value of type {type(run).__name__}, and no run; give "
            "one of a release that returns a DiscoveryResult, such as jaxcd.ges"
        )
    return run


def _required(run: DiscoveryResult, names: Sequence[str]) -> np.ndarray:
    """Which pairs the run's knowledge requires, bool (d, d): these are joined in every new run."""
    known = run.info.get("knowledge")
    found = np.zeros((len(names), len(names)), dtype=np.bool_)
    for a, b in () if known is None else Knowledge.from_json_dict(known).required:
        found[names.index(a), names.index(b)] = found[names.index(b), names.index(a)] = True
    return found


@claiming(
    GuaranteeClaim(
        "post-processing: reads released numbers only", assumptions="those of the release or run"
    )
)
def decision_confidence(run: DiscoveryResult) -> EdgeConfidence:
    r"""How sure the adjacencies of a search by private tests are of their privacy noise, from the
    margins it released.

    For a removed edge 1 - Phi((t - m) / s) of the decision that removed it, m the released margin,
    t its threshold, s the standard deviation of its noise; for an edge that stayed the least
    Phi((m - t) / s) of its decisions.  Under a flat prior it is the probability that the decision,
    asked in the same place, keeps the edge without noise.  A margin at level 0 is a norm, and s is
    to first order.  Pairs about which no margin was released count as found.  Directions have no
    estimate.

    Args:
        run: its ``info["released_margins"]`` holds a mapping for each decision in order, with
            ``pair`` (two names), ``margin``, ``threshold`` and ``sigma``.

    Returns:
        The probability of each pair's decision, as ``adjacency``; directions have none.

    Raises:
        OptionError: the run has none.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.LevelwiseGaussian(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> confidence = jaxcd.discovery.decision_confidence(run)
        >>> round(confidence.of("bronc", "dysp").adjacent, 2)
        1.0
    """
    rows = run.info.get("released_margins") if isinstance(run, DiscoveryResult) else None
    if rows is None:
        raise OptionError(
            "run: it holds no released margins; use a run of pc or fci with LevelwiseGaussian, or "
            "of tree_pc"
        )
    graph = run.graph
    found = graph.adjacency
    adjacency = found.astype(np.float64)
    for row in rows:
        i, j = (graph.index(name) for name in row["pair"])
        kept = _kept(row)
        # Of a pair that was removed, rows come in the order of the decisions and the last one
        # stands.
        adjacency[i, j] = adjacency[j, i] = min(adjacency[i, j], kept) if found[i, j] else kept
    return EdgeConfidence(
        graph.names,
        adjacency,
        None,
        None,
        0,
        "released margins: the probability, under a flat prior, that the decision about the pair "
        "would keep the edge without "
        "the privacy noise (directions and sampling are not counted)",
    )


def _kept(row: Mapping[str, Any]) -> float:
    """Phi((margin - threshold) / sigma); 0 or 1 without noise."""
    distance, sigma = float(row["margin"]) - float(row["threshold"]), float(row["sigma"])
    return float(special.ndtr(distance / sigma)) if sigma > 0 else float(distance > 0)


def _model(release: Release, graph: MixedGraph) -> np.ndarray:
    """The DAG that is fitted, bool (d, d)."""
    is_latent = (graph.marks == Mark.CIRCLE).any() or graph.bidirected.any()
    if is_latent or consistent_extension(graph) is None:
        graph = search_release(release).graph
    return member_adjacency(release, graph)


def member_adjacency(release: Release, graph: MixedGraph) -> np.ndarray:
    """A DAG of the class, bool (d, d), with arcs between the domain's intervention columns; its
    members have the same fits.

    Where the tables of one member were measured, those of all were: turning a covered arc asks for
    no larger table.
    """
    extension = consistent_extension(graph)
    if extension is None:
        raise GraphError(
            "run: no DAG has the adjacencies and v-structures of the graph, so there is no model "
            "to fit; search by a score"
        )
    arcs = extension.reordered(release.names).directed
    return arcs | designed_arcs(arcs, release.names, release.domain)
