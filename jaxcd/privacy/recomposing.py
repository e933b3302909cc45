"""The total of a certificate's events, composed a second time: by formulas of its own, and by
Google's dp-accounting.

Nothing here calls the ledger.  A sum of rho of zCDP is converted by the smallest Renyi bound, a sum
of rho of Gaussian privacy by delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu);
dp-accounting says the epsilon, or the delta, of the same events.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from .repricing import price_again

__all__ = [
    "LEAST_ORDER",
    "composed_epsilon",
    "dp_event",
    "gaussian_delta_outside",
    "gdp_delta",
    "gdp_epsilon",
    "zcdp_epsilon",
]

LEAST_ORDER = 1.011
"""Orders down to 1.01 are those that dp-accounting converts from."""


@lru_cache
def zcdp_epsilon(rho: float, delta: float) -> tuple[float, float]:
    """min over a > 1 of rho a + log(1 - 1/a) - log(a delta) / (a - 1), at least 0, and its a, by
    golden section in log(a - 1).
    """
    if rho == 0:
        return 0.0, math.inf

    def at(x: float) -> float:
        t = math.exp(x)
        return rho * (1 + t) - math.log1p(math.exp(-x)) + (-math.log(delta) - math.log1p(t)) / t

    centre = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    low, high = centre - 12, centre + 12
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    for _ in range(200):
        if at(a) <= at(b):
            high, b = b, a
            a = high - ratio * (high - low)
        else:
            low, a = a, b
            b = low + ratio * (high - low)
    x = (low + high) / 2
    return max(0.0, at(x)), 1 + math.exp(x)


def gdp_delta(epsilon: float, mu: float) -> float:
    """The delta of mu-GDP at epsilon."""
    return math.exp(_gdp_log_delta(epsilon, mu))


def _gdp_log_delta(epsilon: float, mu: float) -> float:
    """Its logarithm.  The two terms are nearly equal where mu is small, so that their difference is
    the integral of what it changes by: phi(a) times that of 1 - x R(x) from a to b, with Mills'
    ratio R, as exp(epsilon) phi(b) = phi(a).
    """
    import numpy as np
    from scipy import special

    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu > 1:
        first, second = float(special.log_ndtr(-a)), epsilon + float(special.log_ndtr(-b))
        return first + math.log(-math.expm1(second - first)) if second < first else -math.inf
    nodes, weights = np.polynomial.legendre.leggauss(20)
    x = a + mu * (1 + nodes) / 2
    small = np.minimum(x, 20.0)
    slope = 1 - small * math.sqrt(math.pi / 2) * special.erfcx(small / math.sqrt(2))
    # 1 / x^2 - 3 / x^4 + 15 / x^6 - ...: beyond 20, ten terms are all that a float holds
    inverse, series = np.maximum(x, 20.0) ** -2.0, np.zeros_like(x)
    for odd in range(21, 0, -2):
        series = odd * inverse * (1 - series)
    found = np.where(x < 20, slope, series)
    return -a * a / 2 - math.log(2 * math.pi) / 2 + math.log(mu / 2 * float(weights @ found))


@lru_cache
def gdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon, at least 0, at which the delta of sqrt(2 rho)-GDP is this one."""
    from scipy import optimize

    mu, wanted = math.sqrt(2 * rho), math.log(delta)
    if rho == 0 or _gdp_log_delta(0.0, mu) <= wanted:
        return 0.0
    high = zcdp_epsilon(rho, delta)[0] * (1 + 1e-6) + 1e-12
    return float(
        optimize.brentq(
            lambda e: _gdp_log_delta(e, mu) - wanted, 0.0, high, xtol=1e-300, rtol=1e-14
        )
    )


def dp_event(rows: Iterable[Mapping[str, Any]], *, group: int = 1) -> Any:
    """The events as a ``dp_accounting`` event: Gaussian noise as itself, everything else by its
    zCDP.

    Args:
        group: rows of one person; the event is the one that this person meets.
    """
    import dp_accounting
    from dp_accounting.dp_event import ZCDpEvent

    counts: Counter[tuple[bool, float]] = Counter()
    for row in rows:
        price = price_again(row)
        if price.rho > 0:  # failures, which have none, are counted by themselves
            counts["Gaussian" in row["law"], price.rho * group**2] += 1
    return dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(
                dp_accounting.GaussianDpEvent(math.sqrt(1 / (2 * rho)))
                if is_gaussian
                else ZCDpEvent(rho),
                count,
            )
            for (is_gaussian, rho), count in counts.items()
        ]
    )


def composed_epsilon(rows: Iterable[Mapping[str, Any]], delta: float, *, group: int = 1) -> float:
    """The epsilon that dp-accounting's Renyi accountant gives for the events at this delta."""
    import dp_accounting
    import numpy as np
    from dp_accounting.rdp import RdpAccountant

    rows = list(rows)
    rho = math.fsum(price_again(row).rho for row in rows) * group**2
    if rho == 0:
        return 0.0
    # Orders closely around the best one: the minimum is flat, so that a step of 1e-5 costs 1e-10 of
    # epsilon.
    orders = 1 + (zcdp_epsilon(rho, delta)[1] - 1) * np.exp(np.linspace(-0.02, 0.02, 4001))
    accountant = RdpAccountant(orders.tolist(), dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_event(rows, group=group))
    return float(accountant.get_epsilon(delta))


def gaussian_delta_outside(epsilon: float, rho: float) -> tuple[float, float]:
    """The delta at epsilon that dp-accounting gives for one Gaussian mechanism of this rho, and how
    much of it rounding can be: it subtracts numbers that are nearly equal where rho is small.
    """
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
    from scipy import special

    mu = math.sqrt(2 * rho)
    loss = GaussianPrivacyLoss(1 / mu, sensitivity=1)
    a = epsilon / mu - mu / 2
    return float(loss.get_delta_for_epsilon(epsilon)), 2.0**-46 * (1 + a * a) * float(
        special.ndtr(-a)
    )
