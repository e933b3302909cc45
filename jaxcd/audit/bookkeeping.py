"""Audits of what stands around the mechanisms: composition, the ledger's lock, ledger files,
claims, certificates, files and reading.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

import jaxcd
from jaxcd.audit.findings import Check, Checks, Finding
from jaxcd.audit.replaying import Drawing, Given, Tapping, listening, tapping
from jaxcd.citests import Sensitivity
from jaxcd.privacy import (
    AboveThreshold,
    Accountant,
    ExponentialMechanismEvent,
    GaussianEvent,
    Ledger,
    NoiseSource,
    PureEvent,
    ZCDPEvent,
    gaussian,
    laplace,
)
from jaxcd.privacy.certificate import certificate_digest
from jaxcd.privacy.groups import group_cost
from jaxcd.releases import Release

__all__ = ["BOOKKEEPING"]

_ZCDP, _GAUSSIAN = jaxcd.privacy.Accounting


def _accountant(budget: jaxcd.Budget, seed: int = 0) -> Accountant:
    return Accountant(Ledger(budget), Drawing(Tapping(), seed))


def _converted(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at delta, by minimising over the order (Canonne, Kamath, Steinke
    2020, proposition 12).
    """

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return alpha * rho + (
            math.log(1 / delta) + (alpha - 1) * math.log(1 - 1 / alpha) - math.log(alpha)
        ) / (alpha - 1)

    return float(
        optimize.minimize_scalar(
            epsilon, bounds=(-12, 14), method="bounded", options={"xatol": 1e-10}
        ).fun
    )


def _conversion() -> str | None:
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-3), (10.0, 1e-9)):
        rho = Ledger(jaxcd.Budget(epsilon, delta, accounting=_ZCDP)).rho_limit
        needed = _converted(rho, delta)
        if not needed <= epsilon * (1 + 1e-7):
            return (
                f"Budget({epsilon}, {delta}) admits rho = {rho:.6g}, which is epsilon = "
                f"{needed:.6g}"
            )
        # The mechanism itself: Gaussian noise of this rho has exactly this delta at epsilon (Balle
        # and Wang 2018).
        mu = math.sqrt(2 * rho)
        exact = float(
            special.ndtr(mu / 2 - epsilon / mu)
            - math.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))
        )
        if not exact <= delta * (1 + 1e-9):
            return f"Budget({epsilon}, {delta}) admits Gaussian noise of delta = {exact:.3g}"
    return None


def _fill(budget: jaxcd.Budget, event: Any, most: int) -> int:
    ledger, admitted = Ledger(budget), 0
    for _ in range(most):
        try:
            ledger.charge(event)
        except jaxcd.errors.BudgetExhausted:
            return admitted
        admitted += 1
    return admitted


def _pure_sums() -> str | None:
    admitted = _fill(jaxcd.Budget(1.0), PureEvent(0.1, "a"), 50)
    # 0.1 as a float is a little above one tenth, so that ten of them are above 1.
    most = math.floor(1 / Fraction(0.1))
    return (
        None
        if admitted == most
        else f"{admitted} events of epsilon .1 under a total of 1, and {most} fit"
    )


def _zcdp_sums() -> str | None:
    budget = jaxcd.Budget(1.0, 1e-6, accounting=_ZCDP)
    limit = Ledger(budget).rho_limit
    admitted = _fill(budget, ZCDPEvent(limit / 4, "a"), 50)
    return None if admitted == 4 else f"{admitted} events of a quarter of the budget"


def _gaussian_delta(epsilon: float, rho: float) -> float:
    """The delta at epsilon of Gaussian noise of this rho (Balle and Wang 2018)."""
    mu = math.sqrt(2 * rho)
    return float(
        special.ndtr(mu / 2 - epsilon / mu)
        - math.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))
    )


def _gaussian_conversion() -> str | None:
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-3), (10.0, 1e-9)):
        budget = jaxcd.Budget(epsilon, delta, accounting=_GAUSSIAN)
        exact = _gaussian_delta(epsilon, Ledger(budget).rho_limit)
        if not exact <= delta * (1 + 1e-9):
            return f"{budget} admits Gaussian noise of delta = {exact:.3g}"
        for k in (2, 5):
            at = group_cost(Ledger(budget).guarantee, k).epsilon
            exact = _gaussian_delta(at, Ledger(budget).rho_limit * k * k)
            if not exact <= delta * (1 + 1e-9):
                return f"for {k} rows {budget} states epsilon {at:.6g}, where delta is {exact:.3g}"
    return None


def _gaussian_sums() -> str | None:
    """One rule beside the sum of epsilons; pure events and selections at no less than the exact
    trade-off asks for.
    """
    budget = jaxcd.Budget(1.0, 1e-6, accounting=_GAUSSIAN)
    limit = Ledger(budget).rho_limit
    admitted = _fill(budget, GaussianEvent(limit / 4, "a"), 50)
    if admitted != 4:
        return f"{admitted} events of a quarter of the budget"
    # The pair of laws that is the worst of its kind has this total variation, and Gaussian noise
    # of mu has 2 Phi(mu/2) - 1.
    for event, share in ((PureEvent, 2), (ExponentialMechanismEvent, 4)):
        mu = 2 * math.sqrt(2) * float(special.erfinv(math.tanh(0.02 / share)))
        admitted, most = _fill(budget, event(0.02, "a"), 999), math.floor(limit / (mu**2 / 2))
        if admitted > max(most, 50):
            return f"{admitted} of {event.__name__}(.02), and {most} fit"
    try:
        Ledger(budget).charge(ZCDPEvent(limit / 4, "a"))
    except (jaxcd.errors.PrivacyError, jaxcd.errors.BudgetExhausted):
        return None
    return "an event of which only the zCDP is known was admitted"


class _Rounded(Drawing):
    def __init__(self) -> None:
        super().__init__(Tapping(), 0)
        self.laws: list[str] = []

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
        self.laws.append("rounded Gaussian")
        return np.zeros(size, dtype=np.int64)

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
        self.laws.append("discrete Gaussian")
        return np.zeros(size, dtype=np.int64)


def _rounded_noise() -> str | None:
    budget, sampler = jaxcd.Budget(1.0, 1e-6, accounting=_GAUSSIAN), _Rounded()
    gaussian(Accountant(Ledger(budget), sampler), [1.0], sensitivity=1.0, rho=0.01, label="a")
    if sampler.laws != ["rounded Gaussian"]:
        return f"{sampler.laws} is drawn, which is not Gaussian differentially private"
    return None


def _amplification() -> str | None:
    """A sparse vector on a secret subset costs log(1 + q (e^eps' - 1)) for its inner eps' (Balle,
    Barthe, Gaboardi 2018).
    """
    for epsilon, rate in ((0.5, 0.1), (1.0, 0.5)):
        tap = Tapping()
        accountant = Accountant(Ledger(jaxcd.Budget(10.0)), Drawing(tap, 0))
        round_ = AboveThreshold(accountant, sensitivity=1.0, epsilon=epsilon, rate=rate, label="a")
        inner = 1.0 / round_.threshold_scale + 2.0 / round_.query_scale
        price = math.log1p(rate * math.expm1(inner))
        if not price <= epsilon * (1 + 1e-6):
            return f"a round at epsilon {epsilon} on a share of {rate} costs {price:.6g}"
    return None


class _Watching(Drawing):
    def __init__(self) -> None:
        super().__init__(Tapping(), 0)
        self.drawn = 0

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
        self.drawn += 1
        return np.zeros(size, dtype=np.int64)


def _refused_first() -> str | None:
    noise = _Watching()
    accountant = Accountant(Ledger(jaxcd.Budget(1.0)), noise)
    laplace(accountant, 0.0, sensitivity=1.0, epsilon=0.75, label="a")
    with contextlib.suppress(jaxcd.errors.BudgetExhausted):
        laplace(accountant, 0.0, sensitivity=1.0, epsilon=0.75, label="a")
        return "epsilon 1.5 was drawn under a budget of 1"
    return None if noise.drawn == 1 else "noise was drawn for a charge that was refused"


def _threads() -> str | None:
    """Eight threads against one budget, with a switch between any two steps."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            ledger = Ledger(jaxcd.Budget(1.0))
            admitted: list[int] = []

            def spend(ledger: Ledger = ledger, admitted: list[int] = admitted) -> None:
                with contextlib.suppress(jaxcd.errors.BudgetExhausted):
                    for _ in range(8):
                        admitted.append(ledger.charge(_Slow(1 / 8, "a")))

            threads = [threading.Thread(target=spend) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if len(admitted) != 8 or sorted(admitted) != list(range(8)):
                return (
                    f"{len(admitted)} charges of 1/8 were admitted under a budget of 1, with "
                    f"the indices {sorted(admitted)}"
                )
    finally:
        sys.setswitchinterval(interval)
    return None


class _Slow(PureEvent):
    """An event whose price takes a while to read."""

    @property
    def delta(self) -> float:  # type: ignore[override]
        """0, after a pause in which other threads run."""
        threading.Event().wait(1e-4)
        return 0.0


def _one_answer() -> str | None:
    round_ = AboveThreshold(_accountant(jaxcd.Budget(1.0)), sensitivity=1.0, epsilon=1.0, label="a")
    answers = [round_.first_above(np.array([1e9]), threshold=0.0)]
    with contextlib.suppress(jaxcd.errors.PrivacyError):
        answers.append(round_.first_above(np.array([1e9]), threshold=0.0))
        return "a sparse vector answered 'above' twice for one charge"
    return None if answers == [0] else "a query far above its threshold was not found"


def _data(rows: int = 30) -> jaxcd.Dataset:
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "ab"})
    return jaxcd.Dataset.from_codes(
        np.arange(2 * rows, dtype=np.int32).reshape(rows, 2) % 2, domain=domain
    )


def _groups() -> str | None:
    """(k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)), and what Gaussian noise itself
    gives must not be more.
    """
    for epsilon, delta, k in ((1.0, 1e-6, 10), (0.5, 1e-6, 3), (0.1, 1e-5, 5)):
        stated = group_cost(Ledger(jaxcd.Budget(epsilon, delta)).guarantee, k)
        rho = Ledger(jaxcd.Budget(epsilon, delta)).rho_limit * k * k
        mu = math.sqrt(2 * rho)
        at = stated.epsilon
        exact = float(
            special.ndtr(mu / 2 - at / mu)
            - math.exp(min(at + special.log_ndtr(-mu / 2 - at / mu), 700))
        )
        if not exact <= stated.delta * (1 + 1e-9):
            return (
                f"k = {k}: ({at:.3g}, {stated.delta:.3g}) is stated, and Gaussian noise of "
                f"this budget has delta = {exact:.3g}"
            )
    return None


def _ledger_file() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        ledger = jaxcd.LedgerFile(path, data_set="audit", budget=jaxcd.Budget(1.0))
        values, admitted = [], 0
        for _ in range(6):
            with contextlib.suppress(jaxcd.errors.BudgetExhausted):
                values.append(
                    jaxcd.release(
                        _data(),
                        jaxcd.Histogram(),
                        budget=jaxcd.Budget(0.25),
                        noise=_drawing(admitted),
                        ledger=ledger,
                    )
                )
                admitted += 1
        shown = jaxcd.LedgerFile(path).spent.epsilon
        return (
            None
            if admitted == 4 and abs(shown - 1.0) < 1e-9
            else f"{admitted} releases of .25 under a total of 1; the file shows {shown}"
        )


def _drawing(seed: int) -> NoiseSource:
    return Given(Drawing(Tapping(), seed))


def _edited_ledger() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        ledger = jaxcd.LedgerFile(path, data_set="audit", budget=jaxcd.Budget(1.0))
        jaxcd.release(
            _data(), jaxcd.Histogram(), budget=jaxcd.Budget(0.25), noise=_drawing(0), ledger=ledger
        )
        text = path.read_bytes()
        for changed in (
            text.replace(b"0.25", b"0.05"),
            b"".join(text.splitlines(keepends=True)[:-1]),
        ):
            path.write_bytes(changed)
            with contextlib.suppress(jaxcd.errors.FormatError):
                spent = jaxcd.LedgerFile(path).spent.epsilon
                if spent < 0.25:
                    return f"an edited file was read, and shows {spent}"
    return None


class _Zeros(Drawing):
    """Claims to be secure, and adds nothing."""

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)


@dataclasses.dataclass(frozen=True)
class _Claiming(jaxcd.CovarianceNorm):
    """A test of a user's who claims a sensitivity of next to nothing."""

    def margin_sensitivity(self, **_: Any) -> Sensitivity | None:  # type: ignore[override]
        return Sensitivity(1e-9, 0.0, "my word")


def _claims() -> str | None:
    budget = jaxcd.Budget(1.0)
    own = jaxcd.release(_data(), jaxcd.Histogram(), budget=budget)
    if not own.cost.proven:
        return f"a release with secure noise is not proved: {own.cost.reason}"
    if jaxcd.release(
        _data(), jaxcd.Histogram(), budget=budget, noise=Given(_Zeros(Tapping(), 0))
    ).cost.proven:
        return "a noise source that adds nothing is proved"
    if jaxcd.ci_test(_data(), "a", "b", test=_Claiming(), budget=budget).cost.proven:
        return "a test that claims a sensitivity of 1e-9 is proved"
    ledger = Ledger(budget)
    ledger.charge(PureEvent(1.0, "my word"))
    return "a charge without a mechanism is proved" if ledger.guarantee.proven else None


def _certificates() -> str | None:
    found = jaxcd.release(_data(), jaxcd.Histogram(), budget=jaxcd.Budget(1.0))
    content = found.certificate()
    if not jaxcd.verify(content).holds:
        return "a true certificate does not verify"
    for change in ({"epsilon": 0.5}, {"scales": [1.0]}, {"sensitivity": 4.0}):
        changed = json.loads(json.dumps(content))
        changed["ledger"][0] |= change
        body = {name: value for name, value in changed.items() if name != "digest"}
        changed["digest"] = certificate_digest(body)
        with contextlib.suppress(jaxcd.errors.FormatError):
            if jaxcd.verify(changed).holds:
                return f"a certificate with {change} verifies"
    return None


def _forged_release() -> str | None:
    noisy = jaxcd.Histogram().release(_data(), budget=jaxcd.Budget(1.0))
    with tempfile.TemporaryDirectory() as folder:
        path = dataclasses.replace(noisy, scale=0.01).save(Path(folder) / "forged.npz")
        with contextlib.suppress(jaxcd.errors.FormatError):
            if Release.load(path).cost.proven:
                return "a release file with nearly no noise is proved"
    return None


_DECLARED = jaxcd.Domain(
    {
        "age": jaxcd.Numeric(0, 120),
        "hiv": jaxcd.Categorical(("no", "yes"), other="no"),
        "stage": jaxcd.Ordinal((1, 2, 3)),
    }
)
_ODD = ("HIV+", "", "4O", "1e999", "-5", "nan", "no")


def _read(cell: str, column: int) -> Any:
    rows = [["30", "no", "2"], ["41", "yes", "1"], ["52", "no", "3"]]
    rows[1][column] = cell
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("\n".join(["age,hiv,stage", *map(",".join, rows)]) + "\n")
        return jaxcd.read_csv(path, domain=_DECLARED)


def _reading() -> str | None:
    for column, name in enumerate(_DECLARED.names):
        for cell in _ODD:
            data = _read(cell, column)
            value = data.column(name)[1]
            kind = _DECLARED[name]
            inside = (
                0 <= value <= 120
                if isinstance(kind, jaxcd.Numeric)
                else 0 <= value < (kind.cardinality or 1)
            )
            if not inside:
                return f"{cell!r} in {name!r} was read as {value!r}"
    if not np.array_equal(_read("HIV+", 1).column("hiv"), _read("no", 1).column("hiv")):
        return "an undeclared level is not the declared other"
    return None


def _failing_cell() -> str | None:
    seen = set()
    for cell in ("41", *_ODD):
        with listening() as said, tapping():
            data = _read(cell, 0)
            result = jaxcd.Histogram().release(
                data.select(["hiv", "stage"]), budget=jaxcd.Budget(1.0), noise=_drawing(0)
            )
        seen.add((str(said()), data.n_samples, result.values.tobytes()))
    return (
        None
        if len(seen) == 1
        else "one cell changes what is printed, the number of rows, or other columns' counts"
    )


def _finding(subject: str, check: Callable[[], str | None]) -> Check:
    """The check as one of the table: what it says is what is wrong."""

    def found(quick: bool) -> Iterator[Finding]:
        words = check()
        yield Finding(
            "bookkeeping", subject, 1.0, math.inf if words else 1.0, (words,) if words else ()
        )

    return found


BOOKKEEPING: Checks = {
    subject: _finding(subject, check)
    for subject, check in (
        ("composition: conversion of zCDP", _conversion),
        ("composition: pure events add up", _pure_sums),
        ("composition: zCDP events add up", _zcdp_sums),
        ("composition: conversion of Gaussian privacy", _gaussian_conversion),
        ("composition: Gaussian accounting adds up", _gaussian_sums),
        ("composition: Gaussian accounting draws rounded noise", _rounded_noise),
        ("composition: amplification by subsets", _amplification),
        ("composition: a charge that does not fit draws nothing", _refused_first),
        ("composition: charges of threads", _threads),
        ("sparse vector: one answer a charge", _one_answer),
        ("groups: k rows of one person", _groups),
        ("ledger file: runs add up", _ledger_file),
        ("ledger file: an edited file is refused", _edited_ledger),
        ("proved: only for registered classes", _claims),
        ("certificate: a false claim fails", _certificates),
        ("release file: less noise than was charged for is refused", _forged_release),
        ("reading: an odd cell counts as the declared other", _reading),
        ("reading: one cell decides no error", _failing_cell),
    )
}
"""The checks of this file by name."""
