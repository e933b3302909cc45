r"""Checking a certificate: every price is computed again from public numbers, and the total from the prices.

A certificate (``privacy.json``) lists the events of a run, each with the sensitivity that was claimed, the numerical pad, the grid and
the scale of the noise.  Nothing here calls the ledger or the mechanisms: the formulas are written down a second time, in rational
numbers, and the total is composed by Google's dp-accounting.

With d the change of the values in steps of the grid g, s the sensitivity, D values and pad p (d = s / g for integers, which have no pad):

    discrete Laplace         d = ceil((s + 2 D p) / g) + D          epsilon = d / scale
    discrete Gaussian        d = (s + 2 sqrt(D) p) / g + sqrt(D)    rho = d^2 / (2 sigma^2)
    exponential mechanism    d = ceil((s + 2 p) / g) + 1            epsilon = 2 d / scale, rho = epsilon^2 / 8
    sparse vector            d as above                             epsilon = log(1 + rate (exp(d / b_1 + 2 d / b_2) - 1))
    noisy rank               d = ceil((s + 4 p) / g) + 2            epsilon = d / scale

What it cannot check: that the statistic has the sensitivity that is claimed (the proofs do, and ``jaxcd audit`` tries to break them),
and that the run was the one that the certificate describes.

The digest at its end finds a certificate that was changed by mistake; who changes it on purpose can make a new digest, but not prices
that fit the scales.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import FormatError

__all__ = ["Check", "Price", "certificate_digest", "dp_event", "price_again", "verify_certificate"]

TOLERANCE = 1e-9
"""Relative difference of numbers that count as equal."""


@dataclass(frozen=True)
class Price:
    """The price of one event, computed again: pure epsilon, rho of zCDP (either may be infinite), and failure probability."""

    epsilon: float
    rho: float
    delta: float = 0.0


@dataclass(frozen=True)
class Check:
    """One line of a verification: what was looked at, whether it holds, and the numbers."""

    what: str
    holds: bool
    words: str


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FormatError(f"event {row.get('label')!r}: {name} = {value!r} is no number")
    try:
        return float(value)
    except ValueError:
        raise FormatError(f"event {row.get('label')!r}: {name} = {value!r} is no number") from None


def _change(row: Mapping[str, Any], *, norm: int, pads: int = 2) -> Fraction:
    """d: how far the integers can move, in steps of the grid."""
    s, p, g = (Fraction(_number(row, name)) for name in ("sensitivity", "pad", "grid"))
    count = int(_number(row, "dimension"))
    if row["integral"]:
        exact = s / g
        return Fraction(math.floor(exact)) if norm == 1 and exact >= 1 else exact
    if norm == 1 or count == 1:
        return Fraction(math.ceil((s + pads * count * p) / g)) + count
    # The root of the number of values, from above.
    root = Fraction(math.isqrt(count << 120) + 1, 1 << 60)
    return (s + pads * root * p) / g + root


def _single(row: Mapping[str, Any], pads: int = 2) -> Fraction:
    return _change({**row, "dimension": 1}, norm=1, pads=pads)


def price_again(row: Mapping[str, Any]) -> Price:
    """The price of an event from what its row says of sensitivity and noise.

    Raises:
        FormatError: the row lacks something, or its law is unknown.
    """
    try:
        law = row["law"]
    except KeyError:
        raise FormatError(f"event {row.get('label')!r} does not say what its price follows from") from None
    try:
        if law == "failure probability":
            return Price(0.0, 0.0, _number(row, "delta"))
        scales = [Fraction(float(scale)) for scale in row["scales"]]
        if not all(scale > 0 for scale in scales):
            raise FormatError(f"event {row.get('label')!r}: it has no noise, so no epsilon bounds it")
        if law == "discrete Laplace":
            return _pure(_change(row, norm=1) / scales[0])
        if law == "discrete Gaussian":
            return Price(math.inf, float(_change(row, norm=2) ** 2 / (2 * scales[0] ** 2)))
        if law == "exponential mechanism":
            epsilon = float(2 * _single(row) / scales[0])
            return Price(epsilon, epsilon**2 / 8)
        if law == "noisy rank, discrete Laplace":
            return _pure((_single(row, pads=4) + 1) / scales[0])
        if str(law).startswith("sparse vector"):
            inner = float(_single(row) / scales[0] + 2 * _single(row) / scales[1])
            rate = _number(row, "rate")
            if not 0 < rate <= 1:
                raise FormatError(f"event {row.get('label')!r}: rate = {rate} is no share of the records")
            return _pure(Fraction(math.log1p(rate * math.expm1(inner)) if inner < 700 else inner + math.log(rate)))
        if law == "randomised response of each record":
            return _pure(Fraction(_number(row, "sensitivity")))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"event {row.get('label')!r} is incomplete: {error}") from None
    raise FormatError(f"event {row.get('label')!r} has the unknown law {law!r}; update jaxcd")


def _pure(epsilon: Fraction) -> Price:
    value = float(epsilon)
    return Price(value, value**2 / 2)


def zcdp_epsilon(rho: float, delta: float) -> tuple[float, float]:
    """min over a > 1 of rho a + log(1 - 1/a) - log(a delta) / (a - 1), at least 0, and its a, by golden section in log(a - 1)."""
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


def dp_event(rows: Iterable[Mapping[str, Any]]) -> Any:
    """The events as a ``dp_accounting`` event: Gaussian noise as itself, everything else by its zCDP."""
    import dp_accounting
    from dp_accounting.dp_event import ZCDpEvent

    counts: Counter[tuple[bool, float]] = Counter()
    for row in rows:
        price = price_again(row)
        if not price.delta:  # failures are counted by themselves
            counts[row["law"] == "discrete Gaussian", price.rho] += 1
    return dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(
                dp_accounting.GaussianDpEvent(math.sqrt(1 / (2 * rho))) if is_gaussian else ZCDpEvent(rho), count
            )
            for (is_gaussian, rho), count in counts.items()
        ]
    )


def composed_epsilon(rows: Iterable[Mapping[str, Any]], delta: float) -> float:
    """The epsilon that dp-accounting's Renyi accountant gives for the events at this delta."""
    import dp_accounting
    import numpy as np
    from dp_accounting.rdp import RdpAccountant

    rows = list(rows)
    rho = math.fsum(price_again(row).rho for row in rows)
    if rho == 0:
        return 0.0
    # Orders closely around the best one: the minimum is flat, so that a step of 1e-5 costs 1e-10 of epsilon.
    orders = 1 + (zcdp_epsilon(rho, delta)[1] - 1) * np.exp(np.linspace(-0.02, 0.02, 4001))
    accountant = RdpAccountant(orders.tolist(), dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_event(rows))
    return float(accountant.get_epsilon(delta))


def certificate_digest(content: Mapping[str, Any]) -> str:
    """The SHA-256 of a certificate without its own entry ``digest``, as canonical JSON."""
    plain = {name: part for name, part in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True, allow_nan=False).encode()).hexdigest()


def _close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def verify_certificate(content: Mapping[str, Any]) -> tuple[Check, ...]:
    """Every price and the total of a certificate, computed again; it holds if every check does.

    Args:
        content: of privacy.json, version 2.

    Returns:
        The checks in order: digest, prices, total, conversion by dp-accounting, claim.

    Raises:
        FormatError: it is no certificate, or one of a run without privacy.
    """
    if content.get("format") != "jaxcd.privacy" or content.get("version") != 2:
        raise FormatError("this is no certificate of jaxcd (format jaxcd.privacy, version 2); give a privacy.json that save() wrote")
    try:
        guarantee, spent, rows = content["guarantee"], content["spent"], content["ledger"]
        epsilon, delta = float(guarantee["epsilon"]), float(guarantee["delta"])
        group = int(guarantee["max_rows_per_person"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"the certificate is incomplete: {error}") from None
    if math.isinf(epsilon):
        raise FormatError("this run had no privacy, so there is nothing to verify")
    checks = [
        Check(
            "digest",
            content.get("digest") == certificate_digest(content),
            "the content is as it was written" if content.get("digest") == certificate_digest(content) else "the content was changed",
        )
    ]
    prices = []
    for row in rows:
        try:
            price = price_again(row)
        except FormatError as error:
            checks.append(Check(f"event {row.get('index')}", False, str(error)))
            continue
        prices.append(price)
        stated = Price(_number(row, "epsilon"), _number(row, "rho"), _number(row, "delta") if "delta" in row else 0.0)
        # Noise may be more than was paid for (the least scale), never less.
        enough = all(
            again <= said * (1 + TOLERANCE)
            for again, said in ((price.epsilon, stated.epsilon), (price.rho, stated.rho), (price.delta, stated.delta))
        )
        words = f"{row['label']}: epsilon {price.epsilon:.6g}, rho {price.rho:.6g} from scale {row['scales']}; stated {stated.epsilon:.6g}, {stated.rho:.6g}"
        checks.append(Check(f"event {row.get('index')}", enough, words))
    if len(prices) == len(rows):
        checks += _totals(rows, epsilon, delta, group, float(spent["epsilon"]), float(spent["delta"]))
    return tuple(checks)


def _totals(
    rows: list[Mapping[str, Any]], epsilon: float, delta: float, group: int, spent: float, spent_delta: float
) -> list[Check]:
    """The stated events' sums against what was spent and claimed, for a person with ``group`` rows."""
    pure = math.fsum(_number(row, "epsilon") for row in rows) * group
    rho = math.fsum(_number(row, "rho") for row in rows) * group**2
    failures = math.fsum(_number(row, "delta") for row in rows if "delta" in row)
    left = delta - failures
    converted = zcdp_epsilon(rho, left)[0] if left > 0 and math.isfinite(rho) else math.inf
    total = min(pure, converted)
    by_pure = pure <= converted
    rule = f"sum of epsilons {pure:.9g}" if by_pure else f"sum of rhos {rho:.9g}, which is epsilon {converted:.9g} at delta {left:g}"
    checks = [Check("total", _close(total, spent) or total <= TOLERANCE, f"{rule}; the ledger has {spent:.9g}")]
    if not by_pure and group == 1:
        outside = composed_epsilon(rows, left)
        # It composes Gaussian noise by itself and anything else by its zCDP, which is the same curve; its own shortcut gives 0 where a
        # bound by the Kullback-Leibler divergence does.
        same = _close(outside, converted) or outside < converted
        checks.append(Check("dp-accounting", same, f"epsilon {outside:.9g} at delta {left:g}"))
    holds = total <= epsilon * (1 + TOLERANCE) and (failures if by_pure else delta) <= delta * (1 + TOLERANCE)
    checks.append(Check("claim", holds, f"epsilon {total:.6g} of {epsilon:g}, delta {failures if by_pure else delta:g} of {delta:g}"))
    return checks
