"""Checking a certificate: every price is computed again from public numbers
(:mod:`jaxcd.privacy.repricing`), and the total from the prices (:mod:`jaxcd.privacy.recomposing`).

Neither calls the ledger or the mechanisms; of a ledger file this reads the events.  Where the
guarantee says ``"accounting": "gaussian"``, the sum of the events' ``gdp_rho`` is converted.

What it cannot check: that the statistic has the sensitivity that is claimed (the proofs do, and
``jaxcd audit`` tries to break them), and that the run was the one that the certificate describes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checks import a_type, printable
from ..errors import FormatError
from ..json_files import parsed
from ..places import check_there, path_of
from .budget import Relation, Unit, counted_words, unit_words
from .certificate import FORMAT, VERSION, certificate_digest
from .ledger_file import MAGIC as LEDGER_MAGIC
from .ledger_file import LedgerFile
from .recomposing import (
    LEAST_ORDER,
    composed_epsilon,
    gaussian_delta_outside,
    gdp_epsilon,
    zcdp_epsilon,
)
from .repricing import TOLERANCE, Price, number, price_again
from .rounding import promise_in_words, spent_in_words

__all__ = ["Check", "Verification", "verify"]

_LEAST_SCALE = 2.0**-10  # of noise: where less would do, there is more than was paid for


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
        return "\n".join(map(printable, [*lines, f"{verdict}: {self.claim}", proof]))


def verify(source: Mapping[str, Any] | str | Path) -> Verification:
    """Computes every price and the total of a certificate again, from sensitivities and scales.

    Args:
        source: the content of a privacy.json, or its path; the guarantee file of
            ``jaxcd privatize``; a ledger file.

    Returns:
        The checks; true if all hold.

    Raises:
        OptionError: ``source`` is neither a mapping nor a path.
        DataError: there is no such file.
        FormatError: it is no certificate, is incomplete, or is of a run without privacy.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0))
        >>> jaxcd.verify(bought.certificate()).holds
        True
    """
    if isinstance(source, Mapping):
        content = source
    else:
        content = _read(path_of("source", source, example="privacy.json"))
    if isinstance(content.get("certificate"), Mapping):  # of a file that holds more
        content = content["certificate"]
    try:
        return _verified(content)
    except FormatError as error:
        if isinstance(source, Mapping):
            raise
        raise FormatError(f"file {str(source)!r}: {error}") from None


def _read(path: Path) -> Mapping[str, Any]:
    check_there(
        path,
        wanted="a certificate (privacy.json) or a ledger file",
        of="*privacy*.json",
        hint="there is no privacy.json in it: `jaxcd discover` writes one with --out FOLDER",
    )
    if path.suffix == ".npz":
        raise FormatError(
            f"file {str(path)!r} is a release and no certificate; give the privacy.json of a "
            "search of it (`jaxcd search FILE --out FOLDER` writes one)"
        )
    try:
        text = path.read_text(encoding="utf-8")
        if text.startswith(LEDGER_MAGIC):
            return LedgerFile(path).certificate()
        content = parsed(text)
    except (OSError, ValueError, FormatError) as error:
        raise FormatError(f"file {str(path)!r} is no certificate: {error}") from None
    if not isinstance(content, dict):
        raise FormatError(
            f"file {str(path)!r} is no certificate: it holds {a_type(content)}; give a "
            "privacy.json that save() wrote"
        )
    return content


def _close(a: float, b: float) -> bool:
    return a == b or (
        math.isfinite(a) and math.isfinite(b) and abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    )


def _verified(content: Mapping[str, Any]) -> Verification:
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise FormatError(
            f"this is no certificate, whose format is {FORMAT!r}, version {VERSION}; give the "
            "privacy.json of a report"
        )
    try:
        guarantee = content["guarantee"]
        if math.isinf(float(guarantee["epsilon"])):
            raise FormatError("this run had no privacy, so there is nothing to verify")
        claim = (
            f"{promise_in_words(float(guarantee['epsilon']), float(guarantee['delta']))} "
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
        number(row, "epsilon"), number(row, "rho"), number(row, "delta") if "delta" in row else 0.0
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
        counted = number(row, "gdp_rho")
        enough = enough and price.gdp_rho <= counted * (1 + TOLERANCE)
    scales = list(row.get("scales", ()))
    source = f" from scale {scales}" if scales else ""
    words = f"{row.get('label')}: {_price_words(price, stated)}{source}"
    words = f"{words}; stated {_price_words(stated, stated)}"
    return Check(f"event {row.get('index')}", enough, words)


def _price_words(price: Price, stated: Price) -> str:
    if price.delta:
        return f"delta {_said(price.delta, stated.delta)}"
    rho = f"rho {_said(price.rho, stated.rho)}"
    if math.isinf(price.epsilon):
        return rho
    return f"epsilon {_said(price.epsilon, stated.epsilon)}, {rho}"


def _said(found: float, stated: float) -> str:
    """A number that was computed again, rounded up; one that rounding alone puts above what is
    stated is said as that is.
    """
    return spent_in_words(stated if stated < found <= stated * (1 + TOLERANCE) else found)


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
    pure = math.fsum(number(row, "epsilon") for row in rows) * claim.group
    rho_name = "gdp_rho" if claim.gaussian else "rho"
    rho = math.fsum(number(row, rho_name) for row in rows) * claim.group**2
    failures = math.fsum(number(row, "delta") for row in rows if "delta" in row)
    left = claim.delta - max(failures, claim.aside)
    converted = (
        _converted(rho, left, gaussian=claim.gaussian)
        if left > 0 and math.isfinite(rho)
        else math.inf
    )
    safe = (
        _converted(rho, left * (1 - TOLERANCE), gaussian=claim.gaussian)
        if math.isfinite(converted)
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
    same = _follows(claim.spent, total, min(pure, safe)) and _close(delta, claim.spent_delta)
    if claim.group > 1 and max(failures, claim.aside) > 0:
        same, rule = False, "a mechanism that may fail has no bound for several rows a person"
    checks = [
        Check(
            "total",
            same,
            f"{rule}; the ledger has epsilon {claim.spent:.12g}, delta {claim.spent_delta:g}",
        )
    ]
    if not by_pure and claim.gaussian and rho > 0:
        outside, rounding = gaussian_delta_outside(converted, rho)
        same = outside <= left * (1 + 1e-6) + rounding
        words = f"Gaussian noise of rho {rho:.12g} has delta {outside:.9g} at {converted:.9g}"
        checks.append(Check("dp-accounting", same, f"{words}, of {left:g}"))
    elif not by_pure and not claim.gaussian and zcdp_epsilon(rho, left)[1] > LEAST_ORDER:
        outside = composed_epsilon(rows, left, group=claim.group)
        # It composes Gaussian noise by itself and anything else by its zCDP, which is the same
        # curve; its own shortcut gives 0 where a bound by the Kullback-Leibler divergence does.
        same = outside <= converted or _follows(outside, converted, safe)
        checks.append(Check("dp-accounting", same, f"epsilon {outside:.12g} at delta {left:g}"))
    holds = total <= claim.epsilon * (1 + TOLERANCE) and delta <= claim.delta * (1 + TOLERANCE)
    # what is said of groups follows from it, or from pure epsilons that keep within the claim
    if claim.rho is not None:
        by_rho = rho <= claim.rho * (1 + TOLERANCE)
        kept = by_rho or pure <= claim.epsilon * (1 + TOLERANCE)
        words = f"rho {_said(rho, claim.rho)} of {spent_in_words(claim.rho)}"
        if not by_rho:
            stated = spent_in_words(claim.epsilon)
            sums = f"the epsilons add up to {_said(pure, claim.epsilon)} of {stated}"
            words = f"not needed: {sums}" if kept else f"{words}, and {sums}"
        checks.append(Check("rho", kept, words))
    return [
        *checks,
        Check(
            "claim",
            holds,
            f"epsilon {_said(total, claim.epsilon)} of {spent_in_words(claim.epsilon)}, "
            f"delta {_said(delta, claim.delta)} of {spent_in_words(claim.delta)}",
        ),
    ]


def _follows(stated: float, exact: float, safe: float) -> bool:
    """Whether an epsilon is the exact one, or one that rounding to the safe side makes of it: at
    most ``safe``, that of a delta smaller by the tolerance.  Where epsilon is far below 1, much of
    it can be the rounding of a delta that is subtracted; less than the exact one it never is.
    """
    return _close(stated, exact) or exact < stated <= safe


def _converted(rho: float, delta: float, *, gaussian: bool) -> float:
    if math.isinf(rho):
        return math.inf
    return gdp_epsilon(rho, delta) if gaussian else zcdp_epsilon(rho, delta)[0]


def _group_checks(content: Mapping[str, Any]) -> list[Check]:
    """What is said of people with several rows, or of several people: k epsilon where only that is
    known, else the larger of k epsilon and that of k^2 rho.
    """
    guarantee, wrong, largest = content["guarantee"], [], ""
    epsilon, delta, rho, unit = (
        guarantee[name] for name in ("epsilon", "delta", "rho", "max_rows_per_person")
    )
    by_person = guarantee["unit"] == unit_words(Unit.PERSON)
    counted = counted_words(Unit.PERSON if by_person else Unit.ROW)
    for entry in content.get("groups", ()):
        # of people, files of earlier versions say rows
        size = entry[counted] if counted in entry else entry["rows"]
        k = -(-int(size) // int(unit))
        again, failing = k * epsilon, delta
        safe = again
        if delta and rho is not None:
            gaussian = _is_gaussian(guarantee)
            again, safe = (
                max(again, _converted(rho * k**2, part, gaussian=gaussian))
                for part in (delta, delta * (1 - TOLERANCE))
            )
        elif delta:
            failing = (
                delta * math.expm1(k * epsilon) / math.expm1(epsilon)
                if k * epsilon < 700
                else math.inf
            )
            again = again if failing < 1 else math.inf
        stated = float(entry["epsilon"]), float(entry["delta"])
        if not (
            int(size) == size >= 1  # some rows, and no part of one
            and _follows(stated[0], again, safe)
            and (math.isinf(again) or abs(stated[1] - failing) <= 1e-6 * failing)
        ):
            wrong.append(str(size))
        said = spent_in_words(stated[1])
        largest = f"{size} {counted}: epsilon {_said(again, stated[0])}, delta {said}"
    words = (
        f"of {', '.join(wrong)} {counted} do not follow"
        if wrong
        else f"up to {largest}"
        if largest
        else "none stated"
    )
    return [Check("groups", not wrong, words)]
