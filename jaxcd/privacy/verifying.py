r"""Checking a certificate: every price is computed again from public numbers, and the total from
the prices.

Nothing here calls the ledger or the mechanisms: the formulas are written down a second time, in
rational numbers, and the total is composed by Google's dp-accounting.

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
    largest log ratio of the channel of a record, from its kind, parameters and numbers of levels

With Gaussian accounting (``"accounting": "gaussian"`` in the guarantee) every event has a
``gdp_rho``, mu^2 / 2, too: for an epsilon of its own mu = 2 Phi^-1(exp(epsilon) / (1 +
exp(epsilon))), for an exponential mechanism that of half its epsilon; the sum of these is
converted by delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu), and
dp-accounting says the delta.

What it cannot check: that the statistic has the sensitivity that is claimed (the proofs do, and
``jaxcd audit`` tries to break them), and that the run was the one that the certificate describes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import DataError, FormatError
from .budget import Relation, Unit, unit_words
from .certificate import FORMAT, VERSION, certificate_digest
from .ledger_file import MAGIC as LEDGER_MAGIC
from .ledger_file import LedgerFile

__all__ = [
    "TOLERANCE",
    "Check",
    "Price",
    "Verification",
    "composed_epsilon",
    "dp_event",
    "price_again",
    "verify",
    "zcdp_epsilon",
]

TOLERANCE = 1e-9
"""Relative difference of numbers that count as equal."""
_LEAST_SCALE = 2.0**-10  # of noise: where less would do, there is more than was paid for


@dataclass(frozen=True)
class Price:
    """The price of one event, computed again: pure epsilon, rho of zCDP (either may be infinite),
    failure probability, and rho of Gaussian privacy (infinite where there is none).
    """

    epsilon: float
    rho: float
    delta: float = 0.0
    gdp_rho: float = math.inf


@dataclass(frozen=True)
class Check:
    """One line of a verification: what was looked at, whether it holds, and the numbers."""

    what: str
    holds: bool
    words: str


@dataclass(frozen=True)
class Verification:
    """The result of :func:`verify`.

    Args:
        checks: in order: digest, the price of each event, total, its conversion by dp-accounting,
            claim, groups.
        claim: the guarantee in words.
        proven: whether the certificate calls it proved, which a verification of prices cannot see.
        reason: the proof in a phrase, or why there is none.
    """

    checks: tuple[Check, ...]
    claim: str
    proven: bool
    reason: str

    @property
    def holds(self) -> bool:
        """Whether every check does."""
        return all(check.holds for check in self.checks)

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        lines = [
            f"{'ok  ' if check.holds else 'FAIL'}  {check.what}: {check.words}"
            for check in self.checks
        ]
        n_wrong = sum(not check.holds for check in self.checks)
        verdict = (
            f"{n_wrong} of {len(self.checks)} checks FAIL"
            if n_wrong
            else f"all {len(self.checks)} checks hold"
        )
        proof = (
            f"stated as proved: {self.reason}" if self.proven else f"NOT for release: {self.reason}"
        )
        return "\n".join([*lines, f"{verdict}: {self.claim}", proof])


def verify(source: Mapping[str, Any] | str | Path) -> Verification:
    """Computes every price and the total of a certificate again, from sensitivities and scales.

    Args:
        source: the content of a privacy.json, or its path; the guarantee file of
            ``jaxcd privatize``; a ledger file.

    Returns:
        The checks; true if all hold.

    Raises:
        DataError: there is no such file.
        FormatError: it is no certificate, is incomplete, or is of a run without privacy.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0))
        >>> jaxcd.verify(bought.certificate()).holds
        True
    """
    content = source if isinstance(source, Mapping) else _read(Path(source))
    if isinstance(content.get("certificate"), Mapping):  # of a file that holds more
        content = content["certificate"]
    return _verified(content)


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise DataError(f"file {str(path)!r} does not exist; check the path")
    try:
        text = path.read_text(encoding="utf-8")
        if text.startswith(LEDGER_MAGIC):
            return LedgerFile(path).certificate()
        content = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"file {str(path)!r} is no certificate: {error}") from None
    if not isinstance(content, dict):
        raise FormatError(
            f"file {str(path)!r} is no certificate: it holds a {type(content).__name__}; give a "
            "privacy.json that save() wrote"
        )
    return content


def _number(row: Mapping[str, Any], name: str) -> float:
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
    s, p, g = (Fraction(_number(row, name)) for name in ("sensitivity", "pad", "grid"))
    count = int(_number(row, "dimension"))
    if not (s > 0 and p >= 0 and g > 0 and count >= 1 and count == _number(row, "dimension")):
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
        raise FormatError(
            f"event {row.get('label')!r} does not say what its price follows from"
        ) from None
    try:
        if law == "failure probability":
            return Price(0.0, 0.0, _number(row, "delta"), 0.0)
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
            epsilon = float(2 * _single(row) / scales[0])
            return Price(epsilon, epsilon**2 / 8, gdp_rho=_gdp_rho(epsilon / 2))
        if law == "noisy rank, discrete Laplace":
            return _pure((_single(row, pads=4) + 1) / scales[0])
        if str(law).startswith("sparse vector"):
            inner = float(_single(row) / scales[0] + 2 * _single(row) / scales[1])
            rate = _number(row, "rate")
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
    from scipy import special

    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    first = float(special.log_ndtr(-a))
    return -math.exp(first) * math.expm1(epsilon + float(special.log_ndtr(-b)) - first)


def gdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon, at least 0, at which the delta of sqrt(2 rho)-GDP is this one."""
    from scipy import optimize

    mu = math.sqrt(2 * rho)
    if rho == 0 or gdp_delta(0.0, mu) <= delta:
        return 0.0
    high = zcdp_epsilon(rho, delta)[0] * (1 + 1e-6) + 1e-12
    return float(
        optimize.brentq(lambda e: gdp_delta(e, mu) - delta, 0.0, high, xtol=1e-300, rtol=1e-14)
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


def _close(a: float, b: float) -> bool:
    return a == b or (
        math.isfinite(a) and math.isfinite(b) and abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    )


def _verified(content: Mapping[str, Any]) -> Verification:
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise FormatError(
            f"this is no certificate of jaxcd (format {FORMAT}, version {VERSION}); give a "
            "privacy.json that save() wrote"
        )
    try:
        guarantee = content["guarantee"]
        if math.isinf(float(guarantee["epsilon"])):
            raise FormatError("this run had no privacy, so there is nothing to verify")
        claim = (
            f"epsilon={float(guarantee['epsilon']):g}, delta={float(guarantee['delta']):g} "
            f"({guarantee['relation']}, {guarantee['unit']})"
        )
        return Verification(
            _checks(content), claim, guarantee["proven"] is True, str(guarantee["reason"])
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the certificate is incomplete: {error}") from None


def _checks(content: Mapping[str, Any]) -> tuple[Check, ...]:
    guarantee, spent, rows = content["guarantee"], content["spent"], content["ledger"]
    epsilon, delta = float(guarantee["epsilon"]), float(guarantee["delta"])
    group, aside = int(guarantee["max_rows_per_person"]), float(guarantee["failure_delta"])
    if (
        group < 1
        or group != guarantee["max_rows_per_person"]
        or not 0 <= delta < 1
        or not 0 <= aside <= delta
        or not epsilon > 0
    ):
        raise FormatError(
            "the guarantee has an epsilon, a delta or a number of rows a person that is out of "
            "its range"
        )
    same = content.get("digest") == certificate_digest(content)
    checks = [
        Check(
            "digest",
            same,
            "the content is as it was written" if same else "the content was changed",
        )
    ]
    complete, gaussian = True, _is_gaussian(guarantee)
    for row in rows:
        try:
            checks.append(_event_check(row, gaussian=gaussian))
        except (FormatError, AttributeError) as error:
            complete = False
            where = row.get("index") if isinstance(row, Mapping) else "?"
            checks.append(Check(f"event {where}", False, str(error)))
    if complete:
        rho = None if guarantee["rho"] is None else float(guarantee["rho"])
        checks += _totals(
            rows,
            _Claim(
                epsilon,
                delta,
                rho,
                group,
                aside,
                float(spent["epsilon"]),
                float(spent["delta"]),
                gaussian,
            ),
        )
        words = guarantee["relation"], guarantee["unit"]
        units = [unit_words(Unit.ROW, group), *([unit_words(Unit.PERSON)] if group == 1 else [])]
        known = words[0] in [relation.value for relation in Relation] and words[1] in units
        checks.append(Check("unit", known, f"{words[0]}, {words[1]}"))
        checks += _group_checks(content)
    return tuple(checks)


def _is_gaussian(guarantee: Mapping[str, Any]) -> bool:
    accounting = guarantee.get("accounting", "zcdp")
    if accounting not in ("zcdp", "gaussian"):
        raise FormatError(f"accounting = {accounting!r} is not known here; update jaxcd")
    return bool(accounting == "gaussian")


def _event_check(row: Mapping[str, Any], *, gaussian: bool = False) -> Check:
    price = price_again(row)
    stated = Price(
        _number(row, "epsilon"),
        _number(row, "rho"),
        _number(row, "delta") if "delta" in row else 0.0,
    )
    # The price follows from the noise, but where the noise is more than was paid for: of the least
    # scale, or of a channel's bound.
    more = row["law"] == "randomised response of each record" or any(
        float(scale) <= _LEAST_SCALE for scale in row.get("scales", ())
    )
    enough = all(
        _close(again, said) or (more and again <= said)
        for again, said in (
            (price.epsilon, stated.epsilon),
            (price.rho, stated.rho),
            (price.delta, stated.delta),
        )
    )
    if gaussian:  # what is counted may be more than needed, never less
        counted = _number(row, "gdp_rho")
        enough = enough and price.gdp_rho <= counted * (1 + TOLERANCE)
    words = (
        f"{row.get('label')}: {_price_words(price)} from scale "
        f"{list(row.get('scales', ()))}; stated {_price_words(stated)}"
    )
    return Check(f"event {row.get('index')}", enough, words)


def _price_words(price: Price) -> str:
    if price.delta:
        return f"delta {price.delta:.6g}"
    return (
        f"rho {price.rho:.6g}"
        if math.isinf(price.epsilon)
        else f"epsilon {price.epsilon:.6g}, rho {price.rho:.6g}"
    )


@dataclass(frozen=True)
class _Claim:
    """What a certificate says of the whole: the guarantee, its rows a person, the delta set aside
    for failures, and what was spent.
    """

    epsilon: float
    delta: float
    rho: float | None
    group: int
    aside: float
    spent: float
    spent_delta: float
    gaussian: bool = False


def _totals(rows: list[Mapping[str, Any]], claim: _Claim) -> list[Check]:
    """The stated events' sums against what was spent and claimed."""
    pure = math.fsum(_number(row, "epsilon") for row in rows) * claim.group
    rho_name = "gdp_rho" if claim.gaussian else "rho"
    rho = math.fsum(_number(row, rho_name) for row in rows) * claim.group**2
    failures = math.fsum(_number(row, "delta") for row in rows if "delta" in row)
    left = claim.delta - max(failures, claim.aside)
    converted = (
        _converted(rho, left, gaussian=claim.gaussian)
        if left > 0 and math.isfinite(rho)
        else math.inf
    )
    total = min(pure, converted)
    by_pure = pure <= converted
    delta = failures if by_pure else claim.delta
    rule = (
        f"sum of epsilons {pure:.12g}"
        if by_pure
        else f"sum of rhos {rho:.12g}, which is epsilon {converted:.12g} at delta {left:g}"
    )
    same = (_close(total, claim.spent) or 0 <= max(total, claim.spent) <= TOLERANCE) and _close(
        delta, claim.spent_delta
    )
    checks = [
        Check(
            "total",
            same,
            f"{rule}; the ledger has epsilon {claim.spent:.12g}, delta {claim.spent_delta:g}",
        )
    ]
    if not by_pure and claim.gaussian:
        outside = _delta_outside(converted, rho)
        same = outside <= left * (1 + 1e-6)
        words = f"Gaussian noise of rho {rho:.12g} has delta {outside:.9g} at {converted:.9g}"
        checks.append(Check("dp-accounting", same, f"{words}, of {left:g}"))
    elif not by_pure:
        outside = composed_epsilon(rows, left, group=claim.group)
        # It composes Gaussian noise by itself and anything else by its zCDP, which is the same
        # curve; its own shortcut gives 0 where a bound by the Kullback-Leibler divergence does.
        same = _close(outside, converted) or outside < converted
        checks.append(Check("dp-accounting", same, f"epsilon {outside:.12g} at delta {left:g}"))
    holds = total <= claim.epsilon * (1 + TOLERANCE) and delta <= claim.delta * (1 + TOLERANCE)
    # what is said of groups follows from it, or from pure epsilons that keep within the claim
    if claim.rho is not None:
        kept = rho <= claim.rho * (1 + TOLERANCE) or pure <= claim.epsilon * (1 + TOLERANCE)
        checks.append(
            Check(
                "rho",
                kept,
                f"rho {rho:.6g} of {claim.rho:g}, or epsilons {pure:.6g} of {claim.epsilon:g}: "
                "one of them fits",
            )
        )
    return [
        *checks,
        Check(
            "claim",
            holds,
            f"epsilon {total:.6g} of {claim.epsilon:g}, delta {delta:g} of {claim.delta:g}",
        ),
    ]


def _converted(rho: float, delta: float, *, gaussian: bool) -> float:
    return gdp_epsilon(rho, delta) if gaussian else zcdp_epsilon(rho, delta)[0]


def _delta_outside(epsilon: float, rho: float) -> float:
    """The delta at epsilon that dp-accounting gives for one Gaussian mechanism of this rho."""
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(math.sqrt(1 / (2 * rho)), sensitivity=1)
    return float(loss.get_delta_for_epsilon(epsilon))


def _group_checks(content: Mapping[str, Any]) -> list[Check]:
    """What is said of people with several rows: k epsilon where only that is known, else the larger
    of k epsilon and that of k^2 rho.
    """
    guarantee, wrong, largest = content["guarantee"], [], ""
    epsilon, delta, rho, unit = (
        guarantee[name] for name in ("epsilon", "delta", "rho", "max_rows_per_person")
    )
    for entry in content.get("groups", ()):
        k = -(-int(entry["rows"]) // int(unit))
        again, failing = k * epsilon, delta
        if delta and rho is not None:
            gaussian = _is_gaussian(guarantee)
            again = max(again, _converted(rho * k**2, delta, gaussian=gaussian))
        elif delta:
            failing = (
                delta * math.expm1(k * epsilon) / math.expm1(epsilon)
                if k * epsilon < 700
                else math.inf
            )
            again = again if failing < 1 else math.inf
        stated = float(entry["epsilon"]), float(entry["delta"])
        if not (
            _close(stated[0], again)
            and (math.isinf(again) or abs(stated[1] - failing) <= 1e-6 * failing)
        ):
            wrong.append(str(entry["rows"]))
        largest = f"{entry['rows']} rows: epsilon {again:.6g}, delta {stated[1]:g}"
    words = (
        f"of {', '.join(wrong)} rows do not follow"
        if wrong
        else f"up to {largest}"
        if largest
        else "none stated"
    )
    return [Check("groups", not wrong, words)]
