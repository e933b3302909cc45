r"""Gaussian differential privacy: what Gaussian noise really gives, with its proofs and
conversions, each rounded to the safe side.

Words.  For laws (P, P') and t >= 0 let H_t(P, P') = sup over sets S of P(S) - t P'(S).  A pair (P,
P') is *dominated* by (Q, Q') if H_t(P, P') <= H_t(Q, Q') for all t >= 0.  G(mu) is the pair (N(0,
1), N(mu, 1)).  A mechanism is mu-GDP if its laws on every two neighbours, in both orders, are
dominated by G(mu) (Dong, Roth, Su 2022).  Here rho = mu^2 / 2 takes mu's place: it adds up, and it
is the rho of zCDP for Gaussian noise.  H_t(G(mu)) grows with mu.

*Conversion.*  mu-GDP is (epsilon, delta)-DP exactly for

    delta(epsilon) = Phi(-a) - exp(epsilon) Phi(-b),    a = epsilon/mu - mu/2, b = epsilon/mu + mu/2

(Balle and Wang 2018). As b^2 - a^2 = 2 epsilon, this is phi(a) (R(a) - R(b)) with Mills' ratio
R(x) = Phi(-x) / phi(x) = integral over t > 0 of exp(-x t - t^2/2): nothing overflows, and -R' is
positive and convex, so that R(a) - R(b) <= mu (-R'(a) - R'(b)) / 2, a bound without cancellation
for small mu. The smaller of the two forms is taken, with everything that rounding can do to it
added: R is SciPy's ``erfcx``, taken to be right to a relative 1e-13 (a test holds 1e-14 against
40 digits), and other functions to 2^-48. Beyond that 2^-44 of delta stays free.

*Pure mechanisms.*  An epsilon-DP mechanism is mu-GDP with Phi(mu/2) = exp(epsilon) / (1 +
exp(epsilon)).  Proof: its trade-off function is at least the larger of 1 - exp(epsilon) x and
exp(-epsilon) (1 - x) (Wasserman and Zhou 2010), two chords from (0, 1) and (1, 0) that meet where x
= 1 / (1 + exp(epsilon)) is its own image; that of G(mu), Phi(Phi^-1(1 - x) - mu), is convex, passes
through the three points, and so lies below the chords.  rho <= 4 epsilon always, as Phi(-mu/2) <=
exp(-mu^2/8) / 2.

*Mechanisms of range epsilon* (log-ratios in [t - epsilon, t] for a t in [0, epsilon]: the
exponential mechanism).  They are mu-GDP with the mu of a pure mechanism of epsilon / 2, and with no
smaller one.  Proof.  Let c = 1 / (1 - exp(-epsilon)).

1. H is a mean of a convex function of the ratio, whose mean is one; among ratios in [exp(t -
   epsilon), exp(t)] it is largest for the law on the two ends. Its trade-off function has one
   vertex (q, 1 - p): p = c (1 - exp(t - epsilon)), q = exp(-t) p. So, by the chords as above,
   G(mu) dominates all of them if and only if its trade-off function passes below all these
   vertices.
2. 1 - q is the p of epsilon - t, and the vertices for all t are the curve (x + c - 1) (y + c - 1)
   = c (c - 1), convex and symmetric, from (0, 1) to (1, 0). It is the trade-off function of a
   pair of laws, B, and passing below it is domination of B. The slope of the curve is -exp(s)
   where x = sqrt(c (c - 1)) exp(-s/2) - (c - 1); so the privacy loss s of B has, in the measure
   sqrt(P P'), the constant density sqrt(c (c - 1)) / 2 on [-epsilon, epsilon]. That of G(mu) has
   there the density exp(-mu^2/8) times that of N(0, mu^2).
3. Let D(s), s >= 0, be the second density less the first, and W(s) = 2 times the integral over l
   > s of sinh((l - s)/2) D(l): the difference of the two H_t times exp(-s/2), where t = exp(s).
   W'' = D + W/4. Both total masses are one: the integral of cosh(l/2) D(l) is 0, which is W'(0) =
   0. The mu above makes the two curves meet on the diagonal, where both have slope -1: W(0) = 0.
4. D is a falling density less a constant on [0, epsilon], and positive after it: its signs are
   (+, -, +) or fewer. It is orthogonal to cosh(l/2) and sinh(l/2). With one change of sign, at
   l0, it would not be orthogonal to sinh(l/2) - tanh(l0/2) cosh(l/2), which changes its sign
   there too; with none, not to cosh. So the signs are (+, -, +), changing at l1 < l2.
5. W >= 0: on [0, l1] W(s) = 2 times the integral over l < s of sinh((s - l)/2) D(l) >= 0; from l2
   on by its definition; between them a negative minimum would have W'' >= 0 and W'' = D + W/4 <
   0. For s < 0 by symmetry. So G(mu) dominates B. W(0) = 0 forbids a smaller mu. QED.

*People with k rows.*  A mu-GDP mechanism is k mu-GDP for data sets that a chain of k steps joins:
its test of level x has power at most Phi(Phi^-1(x) + mu) after one step, and the next step adds mu
again.  So rho grows by k^2.

The filter that adds rho up is proved in :mod:`jaxcd.privacy.ledger`.

Source:
    Dong, Roth, Su 2022, Gaussian differential privacy; Balle and Wang 2018; Dong, Durfee, Rogers
    2020 for ranges.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from scipy import special

from ..checks import check_nonnegative, check_positive, check_share
from .conversion import epsilon_to_rho, rho_to_epsilon
from .rounding import round_up, sqrt_up

_CURE = "give a small positive number such as 1e-6; delta=0 has no conversion from Gaussian noise"
_ULP = 2.0**-52
_MILLS = 1e-13  # relative error of Mills' ratio by erfcx
_LIBRARY = 2.0**-46  # of the error functions: 64 units in the last place
_LARGE = 2.0**40  # epsilons from here on are converted by zCDP, which Gaussian noise has too
_FREE = 2.0**-44  # of delta, left for what happens less often than any float can say


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(special.erfcx(x / math.sqrt(2)))


def _slope(x: float) -> float:
    """-R'(x) = 1 - x R(x), from above."""
    bound = 1 - x * _mills(x) + 2 * _MILLS * (1 + abs(x) * _mills(x))
    return bound if x <= 1 else min(bound, (1 + 8 * _ULP) / x**2)


def _log_delta(epsilon: float, mu: float) -> float:
    """An upper bound on log delta(epsilon), rounding included; at most a little above 0."""
    if not mu > 0:
        return -math.inf
    quotient, half = epsilon / mu, mu / 2
    a, b, error = quotient - half, quotient + half, 8 * _ULP * (quotient + half)
    if a < -8 or not math.isfinite(quotient + half) or error > 0.1:
        return 0.0
    low = a - error  # R and -R' fall
    direct = _mills(low) * (1 + _MILLS) - _mills(b + error) * (1 - _MILLS)
    difference = min(direct, mu * (_slope(low) + _slope(b - error)) / 2 * (1 + 8 * _ULP))
    square = a * a / 2
    parts = square, math.log(2 * math.pi) / 2, math.log(difference)
    rounding = 16 * _ULP * (1 + sum(abs(part) for part in parts)) + (abs(a) + error) * error
    return -parts[0] - parts[1] + parts[2] + rounding


def _fits(epsilon: float, rho: float, delta: float) -> bool:
    """Whether sqrt(2 rho)-GDP surely is (epsilon, delta)-DP."""
    log_delta = math.log(delta)
    found = _log_delta(epsilon, sqrt_up(2 * Fraction(rho)))
    return found + _FREE <= log_delta - 4 * _ULP * abs(log_delta)


def gdp_rho_to_epsilon(rho: float, delta: float) -> float:
    r"""Return the epsilon at which every mechanism that is GDP of this rho is (epsilon, delta)-DP.

    Args:
        rho: mu^2 / 2, zero or positive; infinity gives infinity.
        delta: in (0, 1).

    Returns:
        epsilon, never below the exact one.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Balle and Wang 2018, Improving the Gaussian mechanism for differential privacy, theorem 8.

    Example:
        >>> from jaxcd.privacy import gdp_rho_to_epsilon
        >>> round(gdp_rho_to_epsilon(0.02, 1e-6), 3)
        0.834
    """
    check_share("delta", delta, cure=_CURE)
    if rho == math.inf:
        return math.inf
    rho = check_nonnegative("rho", rho)
    return _gdp_rho_to_epsilon(rho, delta) if rho > 0 else 0.0


@lru_cache(maxsize=4096)
def _gdp_rho_to_epsilon(rho: float, delta: float) -> float:
    if rho < 1e140 and _fits(0.0, rho, delta):
        return 0.0
    concentrated = rho_to_epsilon(rho, delta)  # Gaussian noise is rho-zCDP
    low, high = 0.0, concentrated
    while rho < 1e140 and high < _LARGE and not _fits(high, rho, delta):
        high = max(2 * high, 1e-300)
    if not (rho < 1e140 and high < _LARGE):
        return concentrated
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _fits(middle, rho, delta):
            high = middle
        else:
            low = middle
    return high


def epsilon_to_gdp_rho(epsilon: float, delta: float) -> float:
    r"""Return the largest rho whose conversion at this delta does not exceed epsilon.

    The inverse of :func:`gdp_rho_to_epsilon`, rounded down:
    ``gdp_rho_to_epsilon(epsilon_to_gdp_rho(epsilon, delta), delta) <= epsilon`` always.

    Args:
        epsilon: positive and finite.
        delta: in (0, 1).

    Returns:
        rho.

    Raises:
        OptionError: an argument is out of its range.

    Example:
        >>> from jaxcd.privacy import epsilon_to_gdp_rho
        >>> round(epsilon_to_gdp_rho(1.0, 1e-6), 4)
        0.028
    """
    check_share("delta", delta, cure=_CURE)
    return _epsilon_to_gdp_rho(check_positive("epsilon", epsilon), delta)


@lru_cache(maxsize=1024)
def _epsilon_to_gdp_rho(epsilon: float, delta: float) -> float:
    low = epsilon_to_rho(epsilon, delta)
    if epsilon >= _LARGE:
        return low
    high = max(2 * low, 1e-300)
    while low > 0 and not _fits(epsilon, low, delta):
        low, high = low / 2, low
    while high < 1e140 and _fits(epsilon, high, delta):
        low, high = high, 2 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if middle < 1e140 and _fits(epsilon, middle, delta):
            low = middle
        else:
            high = middle
    rho, step = low, 1e-15
    # the bound is not exactly monotone
    while rho > 0 and _gdp_rho_to_epsilon(rho, delta) > epsilon:
        rho, step = rho * (1 - step), 2 * step
    return rho


def pure_to_gdp_rho(epsilon: float) -> float:
    """Return mu^2 / 2 for the mu-GDP of an epsilon-DP mechanism: Phi(mu/2) = exp(epsilon) / (1 +
    exp(epsilon)); rounded up.

    Args:
        epsilon: positive.

    Returns:
        rho, rounded up; at most 4 epsilon, and about (pi/4) epsilon^2 for a small epsilon.

    Raises:
        OptionError: ``epsilon`` is not positive.

    Example:
        >>> from jaxcd.privacy import pure_to_gdp_rho
        >>> round(pure_to_gdp_rho(0.5), 6)
        0.194621
    """
    epsilon = check_positive("epsilon", epsilon, allow_infinity=True)
    if epsilon > 1e300:
        return math.inf
    most = round_up(4 * Fraction(epsilon))
    if epsilon > 600 or epsilon < 1e-140:
        # rho <= epsilon^2 there, as erf(x) >= x >= tanh(x) for x = epsilon / 2
        return most if epsilon > 600 else min(most, round_up(Fraction(epsilon) ** 2))
    return min(most, _pure_to_gdp_rho(epsilon))


def _certain(x: float, epsilon: float) -> bool:
    """Whether Phi(x sqrt 2) surely is at least exp(epsilon) / (1 + exp(epsilon))."""
    if epsilon < 2:  # erf(x) >= tanh(epsilon/2)
        return math.erf(x) * (1 - _LIBRARY) >= math.tanh(epsilon / 2) * (1 + _LIBRARY)
    # erfc(x) <= 2 / (1 + exp(epsilon))
    right = 2 / (1 + math.exp(epsilon))
    return math.erfc(x) * (1 + _LIBRARY) <= right * (1 - _LIBRARY)


@lru_cache(maxsize=4096)
def _pure_to_gdp_rho(epsilon: float) -> float:
    # mu = 2 sqrt(2) x, rho = 4 x^2
    x = (
        float(special.erfinv(math.tanh(epsilon / 2)))
        if epsilon < 2
        else float(-special.ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon))))) / math.sqrt(2)
    )
    step = _ULP
    while not _certain(x, epsilon):
        x, step = x * (1 + step), 2 * step
    return round_up(4 * Fraction(x) ** 2)


def range_to_gdp_rho(epsilon: float) -> float:
    """Return the rho of GDP of a mechanism whose log-ratios have a range of epsilon, such as the
    exponential mechanism: that of a pure mechanism of epsilon / 2, rounded up.

    Args:
        epsilon: positive.

    Returns:
        rho, rounded up; about (pi/16) epsilon^2 for a small epsilon.

    Raises:
        OptionError: ``epsilon`` is not positive.

    Example:
        >>> from jaxcd.privacy import range_to_gdp_rho
        >>> round(range_to_gdp_rho(0.5), 6)
        0.048978
    """
    epsilon = check_positive("epsilon", epsilon, allow_infinity=True)
    return pure_to_gdp_rho(round_up(Fraction(epsilon) / 2) if epsilon < math.inf else epsilon)


def gdp_rho_to_pure(rho: float) -> float:
    """Return the largest epsilon with ``pure_to_gdp_rho(epsilon) <= rho``, rounded down.

    Args:
        rho: positive.

    Returns:
        The largest epsilon whose pure mechanism has at most this rho of GDP.

    Raises:
        OptionError: ``rho`` is not positive.

    Example:
        >>> from jaxcd.privacy import gdp_rho_to_pure
        >>> round(gdp_rho_to_pure(0.194622), 3)
        0.5
    """
    rho = check_positive("rho", rho, allow_infinity=True)
    if math.isinf(rho):
        return math.inf
    x = math.sqrt(rho) / 2  # Phi(mu/2) = (1 + erf(x)) / 2
    if rho > 2380:
        value = rho / 4
    elif x < 0.5:
        value = 2 * math.atanh(math.erf(x))
    else:
        value = math.log((1 + math.erf(x)) / math.erfc(x))
    step = 4 * _ULP
    while value > 0 and pure_to_gdp_rho(value) > rho:
        value, step = value * (1 - step), 2 * step
    return value


def gdp_rho_to_range(rho: float) -> float:
    """Return the largest epsilon with ``range_to_gdp_rho(epsilon) <= rho``, rounded down.

    Args:
        rho: positive.

    Returns:
        The largest range whose mechanism has at most this rho of GDP.

    Raises:
        OptionError: ``rho`` is not positive.

    Example:
        >>> from jaxcd.privacy import gdp_rho_to_range
        >>> round(gdp_rho_to_range(0.048979), 3)
        0.5
    """
    return 2 * gdp_rho_to_pure(rho)
