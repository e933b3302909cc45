"""Mechanisms of equal privacy: the parameter that gives a wanted epsilon_LDP, d-privacy or
probability of the truth.

"The same p_max" is not the same privacy: mechanisms are compared fairly at equal epsilon_LDP.
Parameters depend on the declared domain only.  Roots are found by bracketing and then moved to the
safe side, so that what the returned mechanism guarantees never exceeds what was asked for, even
where it is not monotone in the parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxcd.checks import is_number
from jaxcd.data import Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.local.base import ROUNDING, Distance, LocalMechanism, check_probability
from jaxcd.local.bounded_geometric import BoundedGeometric, column_losses
from jaxcd.local.clipped_geometric import ClippedGeometric
from jaxcd.local.combined_geometric import CombinedGeometric, combined_d_privacy, combined_epsilon
from jaxcd.local.kary_response import CombinedKaryResponse, KaryResponse, split_epsilon

__all__ = ["calibrate"]

_LEAST_LOG_ODDS = -36.0  # of not telling the truth: p_max = 1 - 2e-16


def calibrate(
    kind: type[LocalMechanism],
    domain: Domain,
    *,
    p_max: float | None = None,
    epsilon_ldp: float | None = None,
    d_privacy: float | None = None,
    distance: Distance | None = None,
) -> LocalMechanism:
    """The mechanism of a kind that has a given property on a domain; exactly one property is
    given.

    ``p_max`` is the probability that a *whole record* is reported as it is (the largest over
    records), for every kind: ``calibrate(...).guarantee(domain).p_truth_largest``.  A
    :class:`BoundedGeometric` gets the same probability in every column, save that no column's falls
    below 1/k; with ``epsilon_ldp`` it gets the shares epsilon_i = epsilon k_i / sum k of k-ary
    response.

    Args:
        kind: a class of mechanisms, such as ``KaryResponse``.
        domain: declared, discrete.
        p_max: at least one over the number of cells (for k-ary response, more), below 1.
        epsilon_ldp: for the whole record, positive, in nats.
        d_privacy: positive, in nats per unit of distance.
        distance: for :class:`CombinedGeometric` only, which needs it.

    Returns:
        The mechanism.

    Raises:
        OptionError: not exactly one property is given, or it is out of reach.
        DomainError: a column is numeric, every column has one level, or the domain is too large.
        PrivacyError: the domain is not declared.

    Guarantee:
        That of the returned mechanism, at most what was asked for.  Public: the domain.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> jaxcd.local.calibrate(jaxcd.local.KaryResponse, domain, epsilon_ldp=4.0)
        KaryResponse(epsilon=4.0)
    """
    given = {"p_max": p_max, "epsilon_ldp": epsilon_ldp, "d_privacy": d_privacy}
    asked = [(name, value) for name, value in given.items() if value is not None]
    if len(asked) != 1:
        raise OptionError(
            "give exactly one of p_max, epsilon_ldp and d_privacy, got "
            f"{[name for name, _ in asked] or 'none'}"
        )
    name, value = asked[0]
    known = kind is CombinedGeometric or any(kind is known for known in _KINDS)
    if not known:
        names = ", ".join([*(k.__name__ for k in _KINDS), "CombinedGeometric"])
        raise OptionError(f"kind must be one of the classes {names}, got {kind!r}")
    if (distance is None) == (kind is CombinedGeometric):
        raise OptionError(
            f"distance must be given for CombinedGeometric and only there, got {distance!r} for "
            f"{kind.__name__}"
        )
    if name == "p_max":
        value = check_probability(value)
    elif not is_number(value, ROUNDING, ends="(]"):
        raise OptionError(
            f"{name} must be finite and above 2**-30 (what rounding may cost), got {value!r}: "
            "give a number such as 1.0"
        )
    probe: LocalMechanism = (
        CombinedKaryResponse(1.0) if kind is CombinedKaryResponse else ClippedGeometric(1.0)
    )
    if kind is CombinedGeometric:
        assert distance is not None
        probe = CombinedGeometric(math.nextafter(1.0, 0.0), distance)
    elif kind is KaryResponse:
        probe = KaryResponse(1.0)
    cardinalities = probe.check(domain)
    n_cells = math.prod(cardinalities)
    if n_cells == 1:
        raise DomainError(
            "domain: every column has one level, so there is nothing to randomise; declare more "
            "levels"
        )
    if name == "p_max" and not value * n_cells >= 1 - 1e-12:
        raise OptionError(
            f"p_max must be at least 1/{n_cells:,} on a domain of that many cells, got {value!r}: "
            "raise it"
        )
    if kind is CombinedGeometric:
        assert distance is not None
        return _combined_geometric(name, value, cardinalities, distance)
    return _KINDS[kind](name, value, cardinalities)


def _kary_response(name: str, value: float, cardinalities: Sequence[int]) -> LocalMechanism:
    varying = [k for k in cardinalities if k > 1]
    if name == "epsilon_ldp":
        return KaryResponse(value)
    if name == "d_privacy":
        epsilon = value * sum(varying) / max(varying)
        while max(split_epsilon(epsilon, varying)) > value:
            epsilon = math.nextafter(epsilon, 0.0)
        return KaryResponse(epsilon)

    def shortfall(log_epsilon: float) -> float:
        parts = split_epsilon(math.exp(log_epsilon), varying)
        lies = (
            (k - 1) / (math.exp(min(part, 700.0)) + k - 1)
            for part, k in zip(parts, varying, strict=True)
        )
        return math.fsum(math.log1p(-lie) for lie in lies) - math.log(value)

    low, high = math.log(1e-9), math.log(1e5)
    if not shortfall(low) < 0 < shortfall(high):
        raise OptionError(
            f"p_max must be clearly above 1/{math.prod(varying):,} and below 1 for KaryResponse, "
            f"got {value!r}: epsilon must be positive"
        )
    from scipy.optimize import brentq  # slow to load

    return KaryResponse(math.exp(brentq(shortfall, low, high, xtol=1e-14)))


def _combined_kary_response(
    name: str, value: float, cardinalities: Sequence[int]
) -> LocalMechanism:
    if name != "p_max":
        return CombinedKaryResponse(value)
    n_cells = math.prod(cardinalities)
    epsilon = math.log(value) - math.log1p(-value) + math.log(n_cells - 1)
    if not epsilon > 0:
        raise OptionError(
            f"p_max must be above 1/{n_cells:,} for CombinedKaryResponse, got {value!r}: epsilon "
            "must be positive"
        )
    return CombinedKaryResponse(epsilon)


def _clipped_geometric(name: str, value: float, cardinalities: Sequence[int]) -> LocalMechanism:
    varying = [k for k in cardinalities if k > 1]
    if name == "p_max":
        q = math.expm1(-math.log(value) / len(varying))
        if not 0 < q < 1:
            raise OptionError(
                f"p_max must be above 2**-{len(varying)} for ClippedGeometric on {len(varying)} "
                f"columns, got {value!r}: raise it"
            )
        return ClippedGeometric(-math.log(q))
    steps = 1 if name == "d_privacy" else sum(k - 1 for k in varying)
    epsilon = (value - ROUNDING) / steps
    while epsilon * steps + ROUNDING > value:
        epsilon = math.nextafter(epsilon, 0.0)
    return ClippedGeometric(epsilon)


def _bounded_geometric(name: str, value: float, cardinalities: Sequence[int]) -> LocalMechanism:
    if name == "p_max":
        return BoundedGeometric(_equal_truths(value, cardinalities))
    which = 0 if name == "epsilon_ldp" else 1
    target = (value - ROUNDING) * (1 - 1e-15)  # sums of the parts round
    targets = split_epsilon(target, cardinalities) if which == 0 else (target,) * len(cardinalities)
    probabilities = []
    for k, part in zip(cardinalities, targets, strict=True):
        if k == 1:
            probabilities.append(0.5)  # not used
            continue

        def loss(p: float, k: int = k) -> float:
            return column_losses(k, p)[which]

        probabilities.append(_largest_p_max(loss, part, k, name, value))
    return BoundedGeometric(tuple(probabilities))


def _combined_geometric(
    name: str, value: float, cardinalities: tuple[int, ...], distance: Distance
) -> LocalMechanism:
    if name == "p_max":
        return CombinedGeometric(value, distance)
    losses = combined_epsilon if name == "epsilon_ldp" else combined_d_privacy

    def loss(p: float) -> float:
        return losses(cardinalities, distance, p)[0]

    return CombinedGeometric(
        _largest_p_max(loss, value - ROUNDING, math.prod(cardinalities), name, value), distance
    )


_KINDS: dict[type[LocalMechanism], Callable[[str, float, Sequence[int]], LocalMechanism]] = {
    KaryResponse: _kary_response,
    CombinedKaryResponse: _combined_kary_response,
    BoundedGeometric: _bounded_geometric,
    ClippedGeometric: _clipped_geometric,
}


def _equal_truths(p_record: float, cardinalities: Sequence[int]) -> tuple[float, ...]:
    """max(1/k_i, c) for each column, c such that the product is ``p_record``; at least one over the
    number of cells.
    """
    least = sorted((1 / k for k in cardinalities if k > 1), reverse=True)
    common = 0.0
    for above in range(len(least)):  # the columns of fewest levels sit at 1/k
        common = math.exp(
            (math.log(p_record) - math.fsum(map(math.log, least[:above]))) / (len(least) - above)
        )
        if common >= least[above]:
            break
    return tuple(max(1 / k, common) if k > 1 else 0.5 for k in cardinalities)


def _largest_p_max(
    loss: Callable[[float], float], target: float, n_values: int, name: str, value: float
) -> float:
    """p_max with loss(p_max) = target, searched over the log odds of not telling the truth; on the
    safe side of the root.
    """
    top = math.log(n_values - 1) if n_values > 1 else 0.0  # p_max = 1 / n_values: no loss

    def probability(log_odds: float) -> float:
        return 1 / (1 + math.exp(log_odds))

    if not loss(probability(_LEAST_LOG_ODDS)) > target:
        raise OptionError(
            f"{name} = {value!r} is out of reach: p_max would be 1 to double precision; ask for "
            "less"
        )
    from scipy.optimize import brentq  # slow to load

    root = float(
        brentq(
            lambda u: loss(probability(u)) - target, _LEAST_LOG_ODDS, top, xtol=1e-13, rtol=1e-14
        )
    )
    step = 1e-13
    while loss(probability(root)) > target and root < top:
        root, step = min(top, root + step), 2 * step
    return probability(root)
