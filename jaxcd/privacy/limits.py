"""What events add up to, what a budget lets the sums reach, and the cost that either is.

Sums are exact (rational numbers), and compared without a tolerance.  The rules are those of
:mod:`jaxcd.privacy.ledger`, which proves them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from ..errors import OptionError
from .budget import Accounting, Budget, NoPrivacy, PrivacyCost, Relation, accounting_of
from .conversion import epsilon_to_rho, rho_to_epsilon
from .events import PrivacyEvent
from .gdp import epsilon_to_gdp_rho, gdp_rho_to_epsilon
from .groups import share_of_row, share_of_row_rho
from .rounding import round_down, round_up

__all__ = [
    "KEPT_REASON",
    "Limits",
    "Sums",
    "rho_limit",
    "rho_of",
    "room_left",
    "total_guarantee",
    "total_spent",
]

_NO_PRIVACY_REASON = "no privacy was asked for"

KEPT_REASON = "total fixed in advance and kept by the ledger's filter"
"""Why a guarantee is proved; what stands beside it, parted by a semicolon, is its condition."""


class Sums(NamedTuple):
    """Exact sums of events' epsilons, rhos (of the ledger's accounting) and failure probabilities;
    None stands for infinity.
    """

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction | None = Fraction(0)
    failures: Fraction = Fraction(0)

    def plus(self, event: PrivacyEvent, accounting: Accounting = Accounting.ZCDP) -> Sums:
        """The sums after one more event."""
        return Sums(
            _add(self.epsilon, event.epsilon),
            _add(self.rho, rho_of(event, accounting)),
            self.failures + Fraction(event.delta),
        )


def rho_of(event: PrivacyEvent, accounting: Accounting) -> float:
    """The event's rho of zCDP or of GDP."""
    return event.gdp_rho if accounting is Accounting.GAUSSIAN else event.rho


def rho_limit(epsilon: float, delta: float, accounting: Accounting) -> float:
    """rho*: what rhos may add up to for (epsilon, delta)."""
    if accounting is Accounting.GAUSSIAN:
        return epsilon_to_gdp_rho(epsilon, delta)
    return epsilon_to_rho(epsilon, delta)


class Limits(NamedTuple):
    """What the sums may reach for one row: epsilon under rule (P), rho under rule (Z) or (G), and
    failure probabilities.
    """

    epsilon: float
    rho: float
    failures: float = 0.0

    @staticmethod
    def of(budget: Budget | NoPrivacy, *, failure_delta: float = 0.0) -> Limits:
        """The limits of a budget, of whose delta ``failure_delta`` is set aside."""
        if isinstance(budget, NoPrivacy):
            return Limits(math.inf, math.inf, math.inf)
        if failure_delta and budget.max_rows_per_person > 1:
            raise OptionError(
                f"max_rows_per_person = {budget.max_rows_per_person}: a mechanism that fails with "
                "a small probability has no bound for several rows here; use another mechanism, or "
                "one row a person"
            )
        left = round_down(Fraction(budget.delta) - Fraction(failure_delta))
        rho = rho_limit(budget.epsilon, left, accounting_of(budget)) if left > 0 else 0.0
        rows = budget.max_rows_per_person
        return Limits(
            share_of_row(budget.epsilon, rows), share_of_row_rho(rho, rows), failure_delta
        )

    def admit(self, sums: Sums) -> bool:
        """Rule (P) or the other one, and the failures within their part."""
        pure, concentrated = _within(sums.epsilon, self.epsilon), _within(sums.rho, self.rho)
        return (pure or concentrated) and _within(sums.failures, self.failures)


def _within(total: Fraction | None, limit: float) -> bool:
    return math.isinf(limit) or (total is not None and total <= Fraction(limit))


def _add(total: Fraction | None, part: float) -> Fraction | None:
    return None if total is None or math.isinf(part) else total + Fraction(part)


def _for_rows(total: Fraction | None, factor: int) -> float:
    """The sum times a number, rounded up; infinity where no float holds it."""
    try:
        return math.inf if total is None else round_up(total * factor)
    except OverflowError:
        return math.inf


def room_left(total: Fraction | None, limit: float) -> float:
    """What may still be added to the sum, rounded down; 0 where there is no room."""
    if math.isinf(limit):
        return math.inf
    return 0.0 if total is None else max(0.0, round_down(Fraction(limit) - total))


def total_guarantee(
    budget: Budget | NoPrivacy, limits: Limits, events: list[PrivacyEvent]
) -> PrivacyCost:
    """The budget as a cost; proved where every event says what its price follows from."""
    if isinstance(budget, NoPrivacy):
        return PrivacyCost(math.inf, 0.0, Relation.REPLACE_ONE, False, _NO_PRIVACY_REASON)
    rows, accounting = budget.max_rows_per_person, accounting_of(budget)
    proven, reason = True, KEPT_REASON
    for event in events:
        if event.record is None:
            proven = False
            reason = (
                f"event {event.label!r} was charged without a mechanism of jaxcd: its price "
                "is the word of whoever charged it"
            )
            break
        if event.record.condition:
            proven, reason = False, f"event {event.label!r}: {event.record.condition}"
            break
    # For the whole person: the limits are those of a row.  The exact product is at most the rho of
    # the budget.
    known = not limits.failures and budget.delta > 0
    rho = round_up(Fraction(limits.rho) * rows**2) if known else None
    return PrivacyCost(
        budget.epsilon,
        budget.delta,
        budget.relation,
        proven,
        reason,
        rows,
        rho,
        accounting,
        budget.unit,
    )


def total_spent(budget: Budget | NoPrivacy, sums: Sums, failure_delta: float = 0.0) -> PrivacyCost:
    """The sums of the admitted events as a cost for the budget's person; never above the budget."""
    if isinstance(budget, NoPrivacy):
        return total_guarantee(budget, Limits.of(budget), [])
    rows, delta = budget.max_rows_per_person, budget.delta - failure_delta
    accounting = accounting_of(budget)
    reason = "sum of the events charged; what is guaranteed is the budget"
    pure = _for_rows(sums.epsilon, rows)
    failures = min(round_up(sums.failures), failure_delta)
    rho = _for_rows(sums.rho, rows**2)
    convert = gdp_rho_to_epsilon if accounting is Accounting.GAUSSIAN else rho_to_epsilon
    converted = convert(rho, delta) if delta > 0 else math.inf
    if pure <= converted:
        return PrivacyCost(
            min(pure, budget.epsilon),
            failures,
            budget.relation,
            False,
            reason,
            rows,
            accounting=accounting,
            unit=budget.unit,
        )
    # An exact sum <= limit (a float) still is <= limit after rounding up, so neither minimum below
    # cuts off a real cost.
    return PrivacyCost(
        min(converted, budget.epsilon),
        min(delta + failures, budget.delta),
        budget.relation,
        False,
        reason,
        rows,
        rho,
        accounting,
        budget.unit,
    )
