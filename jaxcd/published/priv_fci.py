r"""Priv-FCI as its author's slides and code have it: FCI by Priv-PC's sieve-and-examine; not
private, kept to compare with.

Both passes of FCI's skeleton are answered as in :mod:`jaxcd.published.private_pc`: a sieve on a
subsample, whose p-values are those of the conditional tau, and an examination on all rows.  Each
pass has half of epsilon, and each of these again a half for sieve and for examination; the
subsample is a twentieth of the rows.  After k passed candidates in both together the total is
stated as

    2 ( sqrt(2 k ln(2 / delta)) epsilon/4 + k epsilon/4 (e^{epsilon/4} - 1) ),

which prices a round at half of epsilon and is :func:`jaxcd.published.accounting.sieve_total` of it.

What is the library's: Possible-D-SEP, of which the code looks at one path only; the second pass,
which asks no set twice; separating sets, which the code unites; and the rules R0 to R4 and R8 to
R10, which the code applies incompletely.  All of this is free of the data but for the answers.

**Why it is not private.**  As Priv-PC (PRIVACY.md B1, C3).

Source:
    Varici 2022, slides and code; Wang, Pang, Song 2020 for the mechanism.
"""

from __future__ import annotations

import jax
import numpy as np

from jaxcd.citests import Query
from jaxcd.data import Dataset
from jaxcd.discovery import DiscoveryResult, LevelRecord
from jaxcd.discovery.constraint.colliders import named_sets
from jaxcd.discovery.constraint.orientation import collider_arrowheads, with_arrowheads
from jaxcd.discovery.constraint.pag import orient_pag
from jaxcd.discovery.constraint.skeleton import SearchSpace, search_pools, search_skeleton
from jaxcd.discovery.result import SearchPass
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.graphs.possible_paths import possible_d_sep
from jaxcd.privacy import NO_PRIVACY, PrivacyCost, Relation
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.accounting import SievePrices, sieve_total
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.private_pc import round_counts
from jaxcd.published.rounds import PublishedRun, check_options, check_rate, sieve_rounds, streams
from jaxcd.queries import Door, Session

__all__ = ["priv_fci"]

_REASON = (
    "published method, kept for comparison: the p-value of the conditional tau has sensitivity "
    "near 1/2 instead of the assumed Phi(6/sqrt(n)) - 1/2 and is NaN on constant columns, where no "
    "epsilon holds; the total is computed after the run from a count that depends on the data and "
    "leaves out the last round of each pass; the noise is simulated"
)


@claiming(
    GuaranteeClaim(
        "the slides' (epsilon, delta), computed after the run",
        proof="as published.priv_pc, whose sieve and examination answer both passes",
        proven=False,
        assumptions="-",
    )
)
def priv_fci(
    data: Dataset,
    *,
    epsilon: float,
    alpha: float = 0.1,
    delta: float = 1e-3,
    bias: float = 0.02,
    rate: float | None = 0.05,
    key: jax.Array,
    max_level: int | None = None,
) -> DiscoveryResult:
    """Priv-FCI as published: both passes of FCI's skeleton by Priv-PC's sieve and examination.

    Args:
        data: discrete columns, in the order of their levels.
        epsilon: positive; a half of it is the price of a round of either pass.
        alpha: the level, 0 < alpha < 1.
        delta: in (0, 1), of the total.
        bias: by how much the sieve's threshold is lower than alpha.
        rate: of the subsample, in (0, 1]; .05 is the code's, None the one of least noise.
        key: a typed key: noise and subsamples.
        max_level: the largest conditioning set, or None.

    Returns:
        The result, a PAG without selection; ``cost`` holds the total that is claimed, with
        ``proven`` False and the reason; ``info`` the number of tests and of rounds.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None (module docstrings; PRIVACY.md B1, C3).  :func:`jaxcd.fci` with
        :class:`jaxcd.SieveAndExamine` is what holds.

    Source:
        Varici 2022.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> run = jaxcd.published.priv_fci(data, epsilon=2.0, key=jax.random.key(1))
        >>> run.cost.proven, run.info["algorithm"]
        (False, 'priv_fci')
    """
    check_options(epsilon=epsilon, alpha=alpha, delta=delta, bias=bias, max_level=max_level)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=alpha)
    prices = SievePrices.of(session.n_samples, epsilon / 2, check_rate(rate))
    run = PublishedRun(
        sieve_rounds(session, prices, alpha=alpha, bias=bias, stream_of=streams(key))
    )
    levels: list[LevelRecord] = []
    search_pass = SearchPass.NEIGHBORS

    def admissible(x: int, y: int, given: tuple[int, ...]) -> bool:
        return session.admissible(Query.of(x, y, given))

    def report(level: int, n_asked: int, n_separated: int) -> None:
        levels.append(LevelRecord(level, n_asked, n_separated, search_pass))

    names = session.names
    skeleton = search_skeleton(
        run,
        len(names),
        admissible=admissible,
        max_level=max_level,
        stable=False,
        report=report,
        another_pass_follows=True,
    )
    circles = _circles(names, skeleton.adjacency)
    heads = collider_arrowheads(circles, separating_sets=named_sets(names, skeleton))
    first = with_arrowheads(circles, heads)
    run.start_anew()
    search_pass = SearchPass.POSSIBLE_D_SEP
    search_pools(
        run,
        skeleton,
        [possible_d_sep(first, x) for x in range(len(names))],
        admissible=admissible,
        max_level=max_level,
        report=report,
        space=SearchSpace(),
    )
    sets = named_sets(names, skeleton)
    oriented = orient_pag(
        _circles(names, skeleton.adjacency), separating_sets=sets, selection_bias=False
    )
    cost = PrivacyCost(
        sieve_total(run.n_passes, epsilon / 2, delta), delta, Relation.REPLACE_ONE, False, _REASON
    )
    info = {
        "algorithm": "priv_fci",
        "test": repr(session.test),
        "n_samples": session.n_samples,
        "n_variables": len(names),
        "n_tests": run.n_queries + run.n_passes,
        **round_counts(run),
        "total_epsilon": cost.epsilon,
        "epsilon_per_round": epsilon / 2,
        "alpha": alpha,
        "bias": bias,
        "subsample_size": prices.subsample_size,
        "secure_noise": False,
        "levels": tuple(levels),
        "max_level": max_level,
    }
    return DiscoveryResult(oriented.graph, sets, cost, cost, False, info, is_latent=True)


def _circles(names: tuple[str, ...], adjacency: np.ndarray) -> MixedGraph:
    return MixedGraph(names, np.where(adjacency, np.int8(Mark.CIRCLE), np.int8(Mark.NONE)))
