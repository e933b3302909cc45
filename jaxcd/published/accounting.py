r"""The noise scales and the privacy totals of Priv-PC and SVT-PC, as published.

None of these totals is a guarantee: see :mod:`jaxcd.published.conditional_tau` for the sensitivity
they rest on, and below. They are computed after the run from the number of rounds it happened to
take, which depends on the data; the round in progress when the search ends is left out, so a run
without rounds reports epsilon = 0 although its graph depends on the data (PRIVACY.md C3).

Source:
    Wang, Pang, Song 2020, Algorithms 1 and 2, and its code; Dwork, Rothblum, Vadhan 2010 for the
    advanced composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from jaxcd.decisions.sieve_and_examine import optimal_rate

__all__ = ["SievePrices", "SVTPrices", "claimed_sensitivity", "sieve_total", "svt_total"]


def claimed_sensitivity(n_samples: int) -> float:
    """Phi(6 / sqrt(n)) - 1/2: what the code takes to be the sensitivity of the p-value (refuted:
    PRIVACY.md B1).
    """
    return float(special.ndtr(6 / math.sqrt(n_samples)) - 0.5)


@dataclass(frozen=True)
class SVTPrices:
    """SVT-PC's scales.  threshold_scale: 2 S / epsilon.  query_scale: 8 S / epsilon.  In p-value
    units.
    """

    threshold_scale: float
    query_scale: float

    @classmethod
    def of(cls, n_samples: int, epsilon: float) -> SVTPrices:
        """The scales for epsilon a round, with S = ``claimed_sensitivity(n_samples)``."""
        threshold_scale = 2 * claimed_sensitivity(n_samples) / epsilon
        return cls(threshold_scale, 4 * threshold_scale)


@dataclass(frozen=True)
class SievePrices:
    r"""Priv-PC's scales in p-value units, and its subsample, for epsilon a round, one half each for
    sieve and examination.

    Args:
        rate: q in [1/20, 1], the least sqrt(1/q) / ln(1 + (e^(epsilon/2) - 1) / q).
        subsample_size: floor(n q).
        threshold_scale: 2 S / (sqrt(q) ln(1 + (e^(epsilon/2) - 1) / q)).
        query_scale: twice that.
        examine_scale: 2 S / epsilon.
    """

    rate: float
    subsample_size: int
    threshold_scale: float
    query_scale: float
    examine_scale: float

    @classmethod
    def of(cls, n_samples: int, epsilon: float, rate: float | None = None) -> SievePrices:
        """The scales for epsilon a round, with S = ``claimed_sensitivity(n_samples)``; at another
        ``rate`` than the least where one is given, and 1 takes no subsample.
        """
        half = epsilon / 2
        rate = optimal_rate(half) if rate is None else rate
        sensitivity = claimed_sensitivity(n_samples)
        sieve = math.log1p(math.expm1(half) / rate) if half < 700 else half - math.log(rate)
        threshold_scale = 2 * sensitivity / math.sqrt(rate) / sieve
        return cls(
            rate, int(n_samples * rate), threshold_scale, 2 * threshold_scale, sensitivity / half
        )


def _advanced(n_rounds: int, epsilon: float, log_delta: float) -> float:
    """sqrt(2 k ln(1 / delta)) epsilon + k epsilon (e^epsilon - 1); infinite where it overflows."""
    drift = math.expm1(epsilon) if epsilon < 700 else math.inf
    return math.sqrt(2 * n_rounds * -log_delta) * epsilon + (
        n_rounds * epsilon * drift if n_rounds else 0.0
    )


def svt_total(n_rounds: int, epsilon: float, delta: float) -> float:
    """SVT-PC's total: sqrt(2 k ln(1 / delta)) epsilon + k epsilon (e^epsilon - 1) after k
    separations.
    """
    return _advanced(n_rounds, epsilon, math.log(delta))


def sieve_total(n_rounds: int, epsilon: float, delta: float) -> float:
    """Priv-PC's total after k passes of the sieve: for each half sqrt(2 k ln(2 / delta))
    epsilon/2 + k epsilon/2 (e^(epsilon/2) - 1).
    """
    return 2 * _advanced(n_rounds, epsilon / 2, math.log(delta) - math.log(2))
