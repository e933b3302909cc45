"""The price of an event, computed a second time from the public numbers of its row.

Nothing here calls the ledger or the mechanisms: the formulas are written down again, in rational
numbers.

With d the change of the values in steps of the grid g, s the sensitivity, D values and pad p (d = s
/ g for integers, which have no pad):

    discrete Laplace         d = ceil((s + 2 D p) / g) + D          epsilon = d / scale
    discrete Gaussian        d = (s + 2 sqrt(D) p) / g + sqrt(D)    rho = d^2 / (2 sigma^2)
    rounded Gaussian         as the discrete one, and this rho is of Gaussian privacy as well
    sum of h discrete Gaussian shares of parameter s
        sigma = s sqrt(h), tau = 5 sum over k < h of exp(-2 pi^2 s^2 k / (k + 1))
        rho = (d / sigma + 2 tau sqrt(D))^2 / 2
    exponential mechanism
        d = ceil((s + 2 p) / g) + 1
        epsilon = 2 d / scale, rho = epsilon^2 / 8
    sparse vector
        d as above
        epsilon = log(1 + rate (exp(d / b_1 + 2 d / b_2) - 1))
    noisy rank               d = ceil((s + 4 p) / g) + 2            epsilon = d / scale
    local mechanisms
        largest log ratio of the channel of a record, from its kind, parameters and levels

For Gaussian accounting every event has a ``gdp_rho``, mu^2 / 2, too: for an epsilon of its own
mu = 2 Phi^-1(exp(epsilon) / (1 + exp(epsilon))), for an exponential mechanism that of half its
epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import FormatError

__all__ = ["TOLERANCE", "Price", "number", "price_again"]

TOLERANCE = 1e-9
"""Relative difference of numbers that count as equal."""


@dataclass(frozen=True)
class Price:
    """The price of one event, computed again: pure epsilon, rho of zCDP (either may be infinite),
    failure probability, and rho of Gaussian privacy (infinite where there is none).
    """

    epsilon: float
    rho: float
    delta: float = 0.0
    gdp_rho: float = math.inf


def price_again(row: Mapping[str, Any]) -> Price:
    """The price of an event from what its row says of sensitivity and noise.

    Raises:
        FormatError: the row lacks something, or its law is unknown.
    """
    try:
        law = row["law"]
    except KeyError:
        raise FormatError(
            f"event {row.get('label')!r} does not say what its price follows from"
        ) from None
    try:
        if law == "failure probability":
            return Price(0.0, 0.0, number(row, "delta"), 0.0)
        scales = [Fraction(float(scale)) for scale in row["scales"]]
        if not all(scale > 0 for scale in scales):
            raise FormatError(
                f"event {row.get('label')!r}: it has no noise, so no epsilon bounds it"
            )
        if law == "discrete Laplace":
            return _pure(_change(row, norm=1) / scales[0])
        if law == "discrete Gaussian":
            return Price(math.inf, float(_change(row, norm=2) ** 2 / (2 * scales[0] ** 2)))
        if law == "rounded Gaussian":
            rho = float(_change(row, norm=2) ** 2 / (2 * scales[0] ** 2))
            return Price(math.inf, rho, gdp_rho=rho)
        if law == "sum of discrete Gaussian shares":
            return Price(math.inf, _summed_rho(row, scales))
        if law == "exponential mechanism":
            epsilon, k = float(2 * _single(row) / scales[0]), _n_choices(row)
            return Price(k * epsilon, k * epsilon**2 / 8, gdp_rho=k * _gdp_rho(epsilon / 2))
        if law == "noisy rank, discrete Laplace":
            return _pure((_single(row, pads=4) + 1) / scales[0])
        if str(law).startswith("sparse vector"):
            inner = float(_single(row) / scales[0] + 2 * _single(row) / scales[1])
            rate = number(row, "rate")
            if not 0 < rate <= 1:
                raise FormatError(
                    f"event {row.get('label')!r}: rate = {rate} is no share of the records"
                )
            return _pure(
                Fraction(
                    math.log1p(rate * math.expm1(inner)) if inner < 700 else inner + math.log(rate)
                )
            )
        if law == "randomised response of each record":
            return _pure(Fraction(_local_epsilon(row["channel"])))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"event {row.get('label')!r} is incomplete: {error}") from None
    raise FormatError(f"event {row.get('label')!r} has the unknown law {law!r}; update jaxcd")


def number(row: Mapping[str, Any], name: str) -> float:
    """A number of an event's row; infinite for a price that the row does not have.

    Raises:
        FormatError: it is no number.
    """
    value = row.get(name)
    if value is None and name in ("epsilon", "rho", "gdp_rho"):
        return math.inf  # it has none of its own
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FormatError(f"event {row.get('label')!r}: {name} = {value!r} is no number")
    try:
        return float(value)
    except ValueError:
        raise FormatError(f"event {row.get('label')!r}: {name} = {value!r} is no number") from None


def _change(row: Mapping[str, Any], *, norm: int, pads: int = 2) -> Fraction:
    """d: how far the integers can move, in steps of the grid."""
    s, p, g = (Fraction(number(row, name)) for name in ("sensitivity", "pad", "grid"))
    count = int(number(row, "dimension"))
    if not (s > 0 and p >= 0 and g > 0 and count >= 1 and count == number(row, "dimension")):
        raise FormatError(
            f"event {row.get('label')!r}: sensitivity {float(s)}, pad {float(p)}, grid {float(g)} "
            f"and dimension {row['dimension']} are not in "
            "their ranges"
        )
    if row["integral"]:
        exact = s / g
        return Fraction(math.floor(exact)) if norm == 1 and exact >= 1 else exact
    if norm == 1 or count == 1:
        return Fraction(math.ceil((s + pads * count * p) / g)) + count
    # The root of the number of values, from above.
    root = Fraction(math.isqrt(count << 120) + 1, 1 << 60)
    return (s + pads * root * p) / g + root


def _n_choices(row: Mapping[str, Any]) -> int:
    k = row.get("n_choices", 1)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise FormatError(f"event {row.get('label')!r}: n_choices = {k!r} counts no choices")
    return k


def _single(row: Mapping[str, Any], pads: int = 2) -> Fraction:
    return _change({**row, "dimension": 1}, norm=1, pads=pads)


def _summed_rho(row: Mapping[str, Any], shares: list[Fraction]) -> float:
    """rho of a sum of discrete Gaussian shares; see docs/PRIVACY.md Y."""
    least = float(min(shares))
    if not least >= 1:
        raise FormatError(f"event {row.get('label')!r}: a share below 1 has no proof")
    apart = sum(
        5 * math.exp(-min(2 * math.pi**2 * least**2 * k / (k + 1), 700.0))
        for k in range(1, len(shares))
    )
    sigma = math.sqrt(sum(share**2 for share in shares))
    root = float(_change(row, norm=2)) / sigma + 2 * apart * math.sqrt(row["dimension"])
    return root**2 / 2


def _pure(epsilon: Fraction) -> Price:
    value = float(epsilon)
    return Price(value, value**2 / 2, gdp_rho=_gdp_rho(value))


def _gdp_rho(epsilon: float) -> float:
    """mu^2 / 2 for mu = 2 Phi^-1(exp(epsilon) / (1 + exp(epsilon)))."""
    from scipy import special

    if epsilon < 10:  # Phi^-1((1 + t) / 2) = sqrt(2) erfinv(t)
        return 4 * float(special.erfinv(math.tanh(epsilon / 2))) ** 2
    return 2 * float(special.ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon)))) ** 2


_LOCAL_ROUNDING = 2.0**-30
"""What the geometric mechanisms state more, for the rounding of their channels."""


def _local_epsilon(channel: Mapping[str, Any]) -> float:
    """The largest log ratio of two probabilities of one outcome, for the whole record."""
    kind, levels = channel["kind"], [int(k) for k in channel["levels"] if int(k) > 1]
    if not levels:
        return 0.0
    # the columns' shares of epsilon add up to it
    if kind in ("KaryResponse", "CombinedKaryResponse"):
        return float(channel["epsilon"])
    if kind == "ClippedGeometric":  # end to end of every column, epsilon a step
        return float(channel["epsilon"]) * sum(k - 1 for k in levels) + _LOCAL_ROUNDING
    if kind == "BoundedGeometric":
        given = channel["p_max"]
        chances = (
            [float(p) for p, k in zip(given, channel["levels"], strict=True) if k > 1]
            if isinstance(given, list)
            else [float(given)] * len(levels)
        )
        return (
            math.fsum(
                _geometric_epsilon((k,), "manhattan", p)
                for k, p in zip(levels, chances, strict=True)
            )
            + _LOCAL_ROUNDING
        )
    if kind == "CombinedGeometric":
        return (
            _geometric_epsilon(tuple(levels), str(channel["distance"]), float(channel["p_max"]))
            + _LOCAL_ROUNDING
        )
    raise FormatError(f"the channel of {kind!r} is not known here; update jaxcd")


_MOST_CELLS = 4096


def _geometric_epsilon(levels: tuple[int, ...], distance: str, p_max: float) -> float:
    """max over x of r ecc(x), where p_max times the sum over all records y of exp(-r d(x, y)) is 1;
    by going through all records.
    """
    import numpy as np
    from scipy.optimize import brentq

    if math.prod(levels) > _MOST_CELLS:
        raise FormatError(
            f"the domain has more than {_MOST_CELLS:,} records, which is more than this verifier "
            "goes through"
        )
    records = (
        np.stack(np.meshgrid(*map(np.arange, levels), indexing="ij"), axis=-1)
        .reshape(-1, len(levels))
        .astype(float)
    )
    # Mirror images have the same distances: records in the lower half of every column are enough.
    corner = records[(records <= (np.array(levels) - 1) // 2).all(axis=1)]
    losses = [0.0]
    for record in corner:
        apart = np.abs(records - record)
        d = {
            "manhattan": apart.sum(1),
            "euclidean": np.sqrt((apart**2).sum(1)),
            "chebyshev": apart.max(1),
        }[distance]
        if p_max * len(records) <= 1:  # uniform: the rate is zero
            continue
        high = 1.0
        while p_max * np.exp(-high * d).sum() > 1:
            high *= 2
        rate = brentq(
            lambda r, d=d: math.log(p_max * np.exp(-r * d).sum()), 0.0, high, xtol=1e-15, rtol=1e-14
        )
        losses.append(rate * float(d.max()))
    return max(losses)
