"""Searches on released second moments: PC by the test that knows the noise, and the best graph by the score."""

from __future__ import annotations

import dataclasses

from jaxcd.decisions import Threshold
from jaxcd.discovery.exact_search import exact_search
from jaxcd.discovery.ordering_search import ordering_search
from jaxcd.discovery.pc import pc
from jaxcd.discovery.released import result_on_release
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.errors import OptionError
from jaxcd.releases import NoisyFisherZ, ReleasedSecondMoments
from jaxcd.scores import GaussianScore

__all__ = ["pc_second_moments", "search_second_moments"]

# Up to here the best graph of all costs seconds; above, time and memory double with every variable.
_MOST_EXACT = 20


def search_second_moments(
    release: ReleasedSecondMoments, *, penalty: float = 2.0, max_parents: int = 6, n_candidates: int = 14
) -> DiscoveryResult:
    """The graph of the highest Gaussian score on a release; post-processing, and deterministic.

    Up to 20 variables the best of all graphs within the candidates (:func:`jaxcd.discovery.exact_search`), above the best that
    :func:`jaxcd.discovery.ordering_search` finds.

    Args:
        release: the moments; it carries the cost.
        penalty, max_parents, n_candidates: as for :class:`jaxcd.scores.GaussianScore`.

    Returns:
        The CPDAG with the release's cost.  ``info``: ``score`` of the found graph in nats, and the settings.

    Raises:
        OptionError: an option is out of its range, or the release is of another kind.
    """
    score = GaussianScore(release, penalty=penalty, max_parents=max_parents, n_candidates=n_candidates)
    is_exact = len(release.names) <= _MOST_EXACT
    best = exact_search(score) if is_exact else ordering_search(score).adjacency
    settings = {"exact": is_exact, "score": score.total(best), "penalty": penalty, "max_parents": max_parents, "n_candidates": n_candidates}
    return result_on_release(release, best, info={"algorithm": "search_second_moments", **settings, "effective_samples": release.effective_samples})


def pc_second_moments(
    release: ReleasedSecondMoments, *, alpha: float = 0.01, max_level: int | None = 3
) -> DiscoveryResult:
    """PC on a release by :class:`jaxcd.FisherZ`, the noise in its null (:class:`jaxcd.releases.NoisyFisherZ`); post-processing, and deterministic.

    Args:
        release: the moments; it carries the cost.
        alpha: level of the tests, 0 < alpha < 1.
        max_level: the largest conditioning set; None for no limit.

    Returns:
        The result of :func:`jaxcd.pc` with the release's cost.

    Raises:
        OptionError: an option is out of its range, or the release is of another kind.
    """
    if not isinstance(release, ReleasedSecondMoments):
        raise OptionError(f"release: a {type(release).__name__} is none of second moments; buy one with release_second_moments(data, budget=...)")
    run = pc(release, test=NoisyFisherZ(), decider=Threshold(alpha), key=None, max_level=max_level)
    return dataclasses.replace(run, info={**run.info, "effective_samples": release.effective_samples})
