r"""Noise in shares: several owners each add a part of it, and only the sum of all is seen.

h of the sites are sure to be there and to keep silent about their shares.  Whatever the others do,
the sum that is seen holds the sum of these h shares, and further independent noise is
post-processing: the guarantee is that of h shares.  Summing modulo a public number is
post-processing too, so wrapping around can only spoil a number, never the guarantee.

*Laplace.*  A share is X - Y, X and Y negative binomial: P[X = k] = C(k + r - 1, k) (1 - q)^r q^k
with r = 1 / h and q = exp(-1 / scale).  Generating functions ((1 - q) / (1 - q z))^r multiply, so h
shares add up to the difference of two geometrics: discrete Laplace noise of this scale, exactly.

*Gaussian.*  A share is discrete Gaussian of parameter s.  Sums of discrete Gaussians are not
discrete Gaussian, but nearly.  Let W be the sum of independent ones of parameters a and b, and Z
discrete Gaussian of parameter c, c^2 = a^2 + b^2.  Completing the square,

    P[W = z] = C exp(-z^2 / (2 c^2)) g(z a^2 / c^2),  g(m) = sum over integers x of
               exp(-(x - m)^2 / (2 v^2)),  1 / v^2 = 1 / a^2 + 1 / b^2.

By Poisson's formula g(m) = v sqrt(2 pi) (1 + 2 sum over k >= 1 of exp(-2 pi^2 v^2 k^2) cos(2 pi k
m)), so g is within factors 1 - 2 p and 1 + 2 p of a constant, p the sum of exp(-2 pi^2 v^2 k^2).
Both laws add up to one, hence abs(log P[W = z] / P[Z = z]) <= log((1 + 2 p) / (1 - 2 p)) <= 5
exp(-2 pi^2 v^2) for every z, where 2 pi^2 v^2 >= 9.  Adding the same independent share to both
keeps such a bound, so by induction the sum of h shares is within

    tau = 5 sum over k = 1 .. h - 1 of exp(-2 pi^2 s^2 k / (k + 1)),  s >= 1,

of the discrete Gaussian of parameter sigma = s sqrt(h), in the log-ratio of every probability.

*Price.*  A mechanism whose laws on neighbours have log-ratio at most t is t^2/2-zCDP (Bun and
Steinke 2016, proposition 3.3), and D coordinates add up to D t^2/2.  From the sum on D to the ideal
noise on D (t = tau), to the ideal noise on D' (d^2 / (2 sigma^2), Canonne, Kamath, Steinke 2020),
to the sum on D' (tau): by the triangle inequality of Renyi divergences, for k > 1,

    D_a(P, R) <= k a / (k a - 1) D_((k a - 1)/(k - 1))(P, Q) + D_(k a)(Q, R),

so two steps of x^2/2 and y^2/2 make a (x^2 k / (k - 1) + y^2 k) / 2, which is a (x + y)^2 / 2 for k
= 1 + x / y.  Three steps together:

    rho = (d / sigma + 2 tau sqrt(D))^2 / 2.

In the grids used here tau is below 1e-9 as a rule, and mostly below every double; it is counted all
the same, and the certificate's verifier counts it a second time.

Source:
    Goryczka and Xiong 2015 for negative binomial shares; Kairouz, Liu, Steinke 2021, The
    distributed discrete Gaussian mechanism, for sums of discrete Gaussians (theirs has 5 exp(-2
    pi^2 v^2) too).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..checks import check_count, check_positive
from .budget import Relation
from .events import Law, MechanismRecord, PureEvent, ZCDPEvent
from .mechanisms import integer_sensitivity, laplace_variance, noise_scale
from .noise import Integers, NoiseSampler, check_polya, check_scale
from .rounding import at_least, sqrt_up

__all__ = ["NoiseShare", "gaussian_share", "laplace_share", "summed_distance", "summed_rho"]

_LEAST_SHARE = 1.0  # tau is proved from here on
_NOTHING = 1e-300  # stands for what no double can hold


def summed_distance(share: float, n_shares: int) -> float:
    """tau: how far the sum of discrete Gaussians may be from one, in log-ratios; from above.

    Args:
        share: parameter s of each, at least 1.
        n_shares: h, from 1.

    Example:
        >>> from jaxcd.privacy.shares import summed_distance
        >>> f"{summed_distance(2.0, 8):.1e}"
        '3.6e-17'
    """
    total = 0.0
    for k in range(1, n_shares):
        exponent = 2 * math.pi**2 * share**2 * k / (k + 1)
        total += 5 * math.exp(-exponent) if exponent < 690 else _NOTHING
    return total * (1 + 2.0**-20)


def summed_rho(bound: Fraction, share: float, n_shares: int, dimension: int) -> Fraction:
    """rho of the sum of shares, from above; the module's docstring has the formula.

    Args:
        bound: d, the L2 sensitivity in steps of the grid.
        share: s, at least 1.
        n_shares: h.
        dimension: D.
    """
    ideal = Fraction(sqrt_up(bound**2 / (n_shares * Fraction(share) ** 2)))
    apart = 2 * Fraction(summed_distance(share, n_shares)) * Fraction(sqrt_up(Fraction(dimension)))
    return (ideal + apart) ** 2 / 2


@dataclass(frozen=True)
class NoiseShare:
    """What one site adds, and what all pay for the sum.

    Args:
        event: the price of the sum, which every site charges to its own ledger.
        scale: of the share, in steps of the grid: s, or the scale of the whole Laplace noise.
        n_shares: h.
    """

    event: PureEvent | ZCDPEvent
    scale: float
    n_shares: int

    @property
    def is_gaussian(self) -> bool:
        """Whether the share is discrete Gaussian, and not negative binomial."""
        return math.isinf(self.event.epsilon)

    def draw(self, noise: NoiseSampler, size: int, *, index: int) -> Integers:
        """One share, int64 (size,)."""
        if self.is_gaussian:
            return noise.discrete_gaussian(self.scale, size, index=index)
        return noise.polya(self.scale, self.n_shares, size, index=index)

    def variance(self, n_sites: int) -> float:
        """Of the sum of the shares of so many sites, in squared steps."""
        if self.is_gaussian:
            return n_sites * self.scale**2
        return n_sites / self.n_shares * laplace_variance(self.scale)

    def reach(self, n_sites: int, n_values: int, *, failure: float) -> float:
        r"""No sum is larger in size, except with this probability.

        Discrete Gaussians are sub-Gaussian: P[abs(Z) > x] <= 2 exp(-x^2 / (2 n s^2)).  A sum of n /
        h negative binomials N has E[q^(-N/2)] = (1 + sqrt q)^(n/h) <= 2^(n/h), so P[N > x] <=
        2^(n/h) exp(-x / (2 scale)).
        """
        log = math.log(2 * max(n_values, 1) / failure)
        if self.is_gaussian:
            return self.scale * math.sqrt(2 * n_sites * log)
        return 2 * self.scale * (log + math.log(2) * n_sites / self.n_shares)


Made = Callable[[tuple[float, ...]], MechanismRecord]


def _recorded(
    law: Law, sensitivity: float, pad: float, grid: float, dimension: int, integral: bool
) -> Made:
    return lambda scales: MechanismRecord(
        law, at_least(sensitivity), at_least(pad), float(grid), dimension, integral, scales
    )


def gaussian_share(
    *,
    n_shares: int,
    sensitivity: float,
    rho: float,
    dimension: int,
    label: str,
    pad: float = 0.0,
    grid: float = 1.0,
    integral: bool = False,
    relation: Relation = Relation.REPLACE_ONE,
) -> NoiseShare:
    """The discrete Gaussian share of a site, so that n_shares of them make the sum rho-zCDP.

    Args:
        n_shares: h, how many shares are sure to be in the sum and unknown to whoever sees it.
        sensitivity: L2, of all values together, when one row of one site is replaced.
        rho: positive.
        dimension: the number of values.
        label: public words for the report.
        pad: bound on the numerical error of each value.
        grid: step, a power of two.
        integral: whether the values are integers by their type.
        relation: of the sensitivity.

    Returns:
        The share and its event.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: replace-one in one site. Sensitivity: L2 of that site's quantised values. Event:
        ``ZCDPEvent(rho)`` for whoever sees the sum of all sites' values and shares and knows all
        but n_shares of them. Public: everything but values and shares. Proof: this module.

    Source:
        Kairouz, Liu, Steinke 2021.

    Example:
        >>> from jaxcd.privacy.shares import gaussian_share
        >>> share = gaussian_share(
        ...     n_shares=8, sensitivity=2**0.5, rho=0.02, dimension=256, label="a", integral=True
        ... )
        >>> round(share.scale, 4), round(share.variance(8), 3)
        (2.5, 50.0)
    """
    count = check_count("n_shares", n_shares, minimum=1)
    rho = check_positive("rho", rho)
    bound = integer_sensitivity(
        sensitivity, grid=grid, pad=pad, dimension=dimension, norm=2, integral=integral
    )
    share = max(sqrt_up(bound**2 / (2 * Fraction(rho) * count)), _LEAST_SHARE)
    step = 2.0**-50
    while summed_rho(bound, share, count, dimension) > Fraction(rho):
        share, step = share * (1 + step), 2 * step
    check_scale("noise sigma", share * math.sqrt(count))
    record = _recorded(Law.SUMMED_GAUSSIAN, sensitivity, pad, grid, dimension, integral)
    event = ZCDPEvent(rho, label, relation, record((share,) * count))
    return NoiseShare(event, share, count)


def laplace_share(
    *,
    n_shares: int,
    sensitivity: float,
    epsilon: float,
    dimension: int,
    label: str,
    grid: float = 1.0,
    relation: Relation = Relation.REPLACE_ONE,
) -> NoiseShare:
    """The negative binomial share of a site, so that n_shares of them are discrete Laplace noise on
    integers.

    Args:
        n_shares: as for :func:`gaussian_share`.
        sensitivity: L1, of all values together, when one row of one site is replaced.
        epsilon: positive.
        dimension: as there.
        label: as there.
        grid: step, a power of two, at most 1.
        relation: as there.

    Returns:
        The share and its event.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: replace-one in one site. Sensitivity: L1 of that site's integers. Event:
        ``PureEvent(epsilon)`` for whoever sees the sum and knows all but n_shares shares. Public:
        everything but values and shares. Proof: this module, and :func:`jaxcd.privacy.laplace`.

    Source:
        Goryczka and Xiong 2015.

    Example:
        >>> from jaxcd.privacy.shares import laplace_share
        >>> share = laplace_share(
        ...     n_shares=8, sensitivity=2.0, epsilon=1.0, dimension=256, label="a"
        ... )
        >>> share.scale, round(share.variance(8), 2)
        (2.0, 7.84)
    """
    count = check_count("n_shares", n_shares, minimum=1)
    epsilon = check_positive("epsilon", epsilon)
    bound = integer_sensitivity(sensitivity, grid=grid, dimension=dimension, norm=1, integral=True)
    scale = check_polya(noise_scale(bound, epsilon))
    record = _recorded(Law.LAPLACE, sensitivity, 0.0, grid, dimension, True)
    return NoiseShare(PureEvent(epsilon, label, relation, record((scale,))), scale, count)


def signed(total: np.ndarray, bits: int) -> Integers:
    """Numbers modulo 2^bits, uint64, as the integers nearest to zero."""
    shift = np.uint64(64 - bits)
    return (total << shift).view(np.int64) >> np.int64(64 - bits)
