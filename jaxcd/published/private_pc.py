"""Priv-PC and SVT-PC as their paper and code have them: not private, kept to compare with.

Both are PC in its original order, over the skeleton search of
:mod:`jaxcd.discovery.constraint.skeleton`; what is theirs is how a question is answered.  A *round*
ends with the first candidate whose noisy p-value reaches a noisy threshold.  In SVT-PC that
separates the pair.  In Priv-PC the p-values of a round are those of a fresh subsample (the sieve),
and the candidate is then examined on the full data; whether or not that confirms it, the next round
starts with a new threshold and a new subsample.

The authors' code collects separating sets by union; in the original order an edge is removed once
and never asked again, so the union holds one set, the one kept here.  Orientation is the library's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxcd.citests import Query
from jaxcd.data import Dataset
from jaxcd.decisions import DecisionRun
from jaxcd.discovery import ConflictRule, DiscoveryResult, LevelRecord
from jaxcd.discovery.constraint.colliders import named_sets
from jaxcd.discovery.constraint.orientation import apply_meek_rules, orient_colliders
from jaxcd.discovery.constraint.skeleton import search_skeleton
from jaxcd.graphs import MixedGraph
from jaxcd.privacy import NO_PRIVACY, PrivacyCost, Relation
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.accounting import SievePrices, SVTPrices, sieve_total, svt_total
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.rounds import (
    PublishedRun,
    Round,
    check_options,
    check_rate,
    sieve_rounds,
    streams,
)
from jaxcd.queries import Door, Session

__all__ = ["priv_pc", "round_counts", "search_pc", "svt_pc"]

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
    rate: float | None = None,
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
        rate: of the subsample, in (0, 1]; None for the one of least noise, 1 for no subsample.
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
    check_options(epsilon=epsilon, alpha=alpha, delta=delta, bias=bias, max_level=max_level)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=alpha)
    prices = SievePrices.of(session.n_samples, epsilon, check_rate(rate))
    run = PublishedRun(
        sieve_rounds(session, prices, alpha=alpha, bias=bias, stream_of=streams(key))
    )
    return search_pc(
        "priv_pc",
        session,
        run,
        max_level,
        cost=lambda: PrivacyCost(
            sieve_total(run.n_passes, epsilon, delta), delta, Relation.REPLACE_ONE, False, _REASON
        ),
        info=lambda: {
            "n_tests": run.n_queries + run.n_passes,
            **round_counts(run),
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
    check_options(epsilon=epsilon, alpha=alpha, delta=delta, bias=0.0, max_level=max_level)
    stream_of = streams(key)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=alpha)
    prices = SVTPrices.of(session.n_samples, epsilon)

    def new_round(k: int) -> Round:
        stream = stream_of(k)
        draw = stream.normal if k else stream.laplace
        threshold = alpha + draw(0, prices.threshold_scale)
        return Round(
            session.evaluate, threshold, prices.query_scale, stream, lambda query, upcoming: True
        )

    run = PublishedRun(new_round)
    return search_pc(
        "svt_pc",
        session,
        run,
        max_level,
        cost=lambda: PrivacyCost(
            svt_total(run.n_passes, epsilon, delta), delta, Relation.REPLACE_ONE, False, _SVT_REASON
        ),
        info=lambda: {
            "n_tests": run.n_queries,
            **round_counts(run),
            "epsilon_per_round": epsilon,
            "alpha": alpha,
        },
    )


def search_pc(
    algorithm: str,
    session: Session,
    run: DecisionRun,
    max_level: int | None,
    *,
    cost: Callable[[], PrivacyCost],
    info: Callable[[], dict[str, Any]],
) -> DiscoveryResult:
    """PC in the original order by the answers of a run, its orientation, and the total that follows
    from the rounds taken.

    Args:
        algorithm: its name.
        session: whose columns are searched.
        run: what answers.
        max_level: the largest conditioning set, or None.
        cost: asked after the search.
        info: further entries, likewise.
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
    sets = named_sets(names, skeleton)
    graph = MixedGraph(names, 3 * skeleton.adjacency.astype("int8"))
    graph = orient_colliders(graph, separating_sets=sets, rule=ConflictRule.UNDIRECTED)
    found = {
        "algorithm": algorithm,
        "test": repr(session.test),
        "n_samples": session.n_samples,
        "n_variables": session.n_variables,
        "total_epsilon": cost().epsilon,
        "secure_noise": False,
        "levels": tuple(levels),
        "stable": False,
        "max_level": max_level,
        **info(),
    }
    return DiscoveryResult(apply_meek_rules(graph), sets, cost(), cost(), False, found)


def round_counts(run: PublishedRun) -> dict[str, Any]:
    """Queries of the sieve, different ones, and rounds."""
    return {"n_distinct_queries": len(run.asked), "n_rounds": run.n_passes}
