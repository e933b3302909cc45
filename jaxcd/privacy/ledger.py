r"""The ledger: a privacy filter over one budget, fixed before the data is read.

A filter refuses an event that does not fit; an odometer would add up afterwards what was spent, and that number is no
guarantee.

The rule. Let rho* = ``epsilon_to_rho(budget.epsilon, budget.delta)``, or 0 for delta = 0. An event is admitted if and
only if after it

    (P)  the sum of the pure epsilons is at most budget.epsilon,  or  (Z)  the sum of the rhos is at most rho*.

**Guarantee.** Everything drawn under the ledger together is (budget.epsilon, budget.delta)-DP under the budget's
relation, for events chosen adaptively, depending on everything drawn so far and on refusals, and for any stopping
rule. Needed: each event is a valid bound (pure epsilon and rho) for its mechanism given the past; data reach the
analyst only through charged mechanisms; the relation of all events is the budget's.

Proof. Fix neighbours D, D' and an analyst; a transcript is the list of events, refusals and outputs. Both sums never
decrease, so every finished transcript satisfies (P) or (Z) at its end: the last admitted event saw to it. Let A be
the transcripts that satisfy (Z) at the end, B the others: these satisfy (P).

1. On B the log-ratio of the probabilities of the transcript under D and D' is a sum of conditional log-ratios, each
   at most its event's epsilon; their sum is at most budget.epsilon surely. So every t in B has
   P(t) - exp(epsilon) P'(t) <= 0.
2. Let N be the run under the rule (Z) alone. On a transcript of A every prefix satisfies (Z); so N admits the same
   events, and refuses the same (what the two rules refuse together, (Z) refuses). Hence P and P' on A are those of N.
   N is a zCDP filter: the sum of rhos is at most rho* surely, so N is rho*-zCDP although the events are chosen
   adaptively (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers, Wu 2023: given the past, exp((a-1) (loss - a rho))
   has mean at most 1 under D for each order a > 1, so the product over events is a supermartingale), hence
   (epsilon, delta)-DP: the sum over t in A of max(0, P(t) - exp(epsilon) P'(t)) is at most delta.
3. A and B are disjoint, and the hockey-stick divergence is the sum over both: at most delta + 0. QED.

An interactive mechanism (AboveThreshold) is one event from the moment it is charged, also when other events come
between its answers: the mechanisms' noises are independent, so the probability of a transcript is a product over
mechanisms, and step 1 stands with one factor a mechanism; for step 2 see Haney et al. 2023 (concurrent composition).

Sums are exact (rational numbers), and compared with the budget without a tolerance. To let k equal events fill a
budget, take their sizes from :func:`jaxcd.privacy.rounding.split`, which rounds down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..errors import BudgetExhausted, OptionError, PrivacyError
from .budget import Budget, NoPrivacy, PrivacyCost, Relation
from .conversion import epsilon_to_rho, rho_to_epsilon
from .events import ExponentialMechanismEvent, PrivacyEvent, PureEvent, ZCDPEvent
from .rounding import round_down, round_up

_NO_PRIVACY_REASON = "no privacy was asked for"


@dataclass(frozen=True)
class LedgerEntry:
    """One admitted event: its index (the noise of the mechanism is folded with it), its label, and the event."""

    index: int
    label: str
    event: PrivacyEvent


def _add(total: Fraction | None, part: float) -> Fraction | None:
    """Exact sum; None stands for infinity."""
    return None if total is None or math.isinf(part) else total + Fraction(part)


class Ledger:
    """A privacy filter: charge an event, and only then draw.  The module's docstring has the rule and its proof.

    Args:
        budget: a :class:`Budget`, or ``NO_PRIVACY``: then every event is admitted and recorded, nothing is guaranteed.

    Raises:
        OptionError: ``budget`` is neither.
    """

    def __init__(self, budget: Budget | NoPrivacy) -> None:
        if not isinstance(budget, (Budget, NoPrivacy)):
            raise OptionError(
                f"budget must be a Budget or NO_PRIVACY, got {budget!r}: use Budget(epsilon=1.0, delta=1e-6)"
            )
        self._budget = budget
        self._entries: list[LedgerEntry] = []
        self._epsilon: Fraction | None = Fraction(0)
        self._rho: Fraction | None = Fraction(0)
        self._exhausted = False
        self._rho_limit = math.inf
        if isinstance(budget, Budget):
            self._rho_limit = epsilon_to_rho(budget.epsilon, budget.delta) if budget.delta > 0 else 0.0

    def __repr__(self) -> str:
        return f"Ledger({self._budget!r}, {len(self._entries)} events, exhausted={self._exhausted})"

    @property
    def budget(self) -> Budget | NoPrivacy:
        """The budget given at the start."""
        return self._budget

    @property
    def relation(self) -> Relation:
        """The budget's neighbouring relation (REPLACE_ONE for ``NO_PRIVACY``)."""
        return self._budget.relation if isinstance(self._budget, Budget) else Relation.REPLACE_ONE

    @property
    def rho_limit(self) -> float:
        """rho*, what zCDP events may add up to: 0 for a budget without delta, infinity for ``NO_PRIVACY``."""
        return self._rho_limit

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The admitted events in order."""
        return tuple(self._entries)

    @property
    def exhausted(self) -> bool:
        """Whether a charge was refused."""
        return self._exhausted

    @property
    def epsilon_total(self) -> float:
        """The sum of the pure epsilons, rounded up; infinite once an event had none."""
        return math.inf if self._epsilon is None else round_up(self._epsilon)

    @property
    def rho_total(self) -> float:
        """The sum of the rhos, rounded up."""
        return math.inf if self._rho is None else round_up(self._rho)

    @property
    def remaining_epsilon(self) -> float:
        """What pure events may still add under rule (P), rounded down; 0 where that rule has no room."""
        if isinstance(self._budget, NoPrivacy):
            return math.inf
        return _room(self._epsilon, self._budget.epsilon)

    @property
    def remaining_rho(self) -> float:
        """What rhos may still add under rule (Z), rounded down; 0 where that rule has no room."""
        return math.inf if isinstance(self._budget, NoPrivacy) else _room(self._rho, self._rho_limit)

    def can_afford(self, event: PrivacyEvent) -> bool:
        """Return whether :meth:`charge` would admit the event now; changes nothing.

        Raises:
            OptionError: not an event.
            PrivacyError: the event's relation is not the budget's.
        """
        if not isinstance(event, (PureEvent, ZCDPEvent, ExponentialMechanismEvent)):
            raise OptionError(f"event must be a privacy event, got {type(event).__name__}: use PureEvent or ZCDPEvent")
        if isinstance(self._budget, NoPrivacy):
            return True
        if event.relation is not self._budget.relation:
            raise PrivacyError(
                f"relation of the event {event.label!r} is {event.relation.value}, "
                f"the budget's is {self._budget.relation.value}: state the sensitivity for the budget's relation"
            )
        epsilon, rho = _add(self._epsilon, event.epsilon), _add(self._rho, event.rho)
        pure = epsilon is not None and epsilon <= Fraction(self._budget.epsilon)
        concentrated = rho is not None and rho <= Fraction(self._rho_limit)
        return pure or concentrated

    def charge(self, event: PrivacyEvent) -> int:
        """Admit and record an event; the mechanism draws only after this returns.

        Args:
            event: what is about to be drawn.

        Returns:
            The index of the event: 0, 1, 2, ...; noise is folded with it.

        Raises:
            BudgetExhausted: the event does not fit; nothing was recorded, and :attr:`exhausted` is set.
            PrivacyError: the event's relation is not the budget's.
        """
        if not self.can_afford(event):
            self._exhausted = True
            raise BudgetExhausted(
                f"event {event.label!r} (epsilon={event.epsilon:.6g}, rho={event.rho:.6g}) does not fit: "
                f"{self.remaining_epsilon:.6g} of epsilon and {self.remaining_rho:.6g} of rho are left of the budget "
                f"{self._budget}; ask for fewer or smaller events, or start with a larger budget"
            )
        index = len(self._entries)
        self._entries.append(LedgerEntry(index, event.label, event))
        self._epsilon, self._rho = _add(self._epsilon, event.epsilon), _add(self._rho, event.rho)
        return index

    @property
    def guarantee(self) -> PrivacyCost:
        """What holds for everything drawn under this ledger, however its events were chosen: the budget itself,
        proved."""
        if isinstance(self._budget, NoPrivacy):
            return PrivacyCost(math.inf, 0.0, self.relation, False, _NO_PRIVACY_REASON)
        reason = "total fixed in advance and kept by the ledger's filter"
        return PrivacyCost(self._budget.epsilon, self._budget.delta, self.relation, True, reason)

    @property
    def spent(self) -> PrivacyCost:
        """What the admitted events add up to: the smaller of the pure sum and the zCDP sum converted at the budget's
        delta.

        Never above the budget. It is accounting (``proven=False``): where the number or the size of the events
        depended on the data, the sum does too, and the guarantee is :attr:`guarantee`. Where the schedule was public,
        :meth:`planned_cost` says so.
        """
        if isinstance(self._budget, NoPrivacy):
            return self.guarantee
        return self._total(
            False, "sum of the events charged; what is guaranteed is the budget, unless the schedule was public"
        )

    def planned_cost(self) -> PrivacyCost:
        """Return the events' sum as a proved cost, for a run whose events were all fixed before it by public facts.

        The caller vouches for that: no event's presence, size or order depended on the data or on earlier outputs.
        Then the sum is ordinary composition, pure or zCDP, and holds by itself.
        """
        if isinstance(self._budget, NoPrivacy):
            return self.guarantee
        return self._total(True, "composition of events that were all fixed in advance")

    def _total(self, proven: bool, reason: str) -> PrivacyCost:
        assert isinstance(self._budget, Budget)
        delta = self._budget.delta
        pure = self.epsilon_total
        converted = rho_to_epsilon(self.rho_total, delta) if delta > 0 else math.inf
        if pure <= converted:
            return PrivacyCost(min(pure, self._budget.epsilon), 0.0, self.relation, proven, reason)
        # An exact sum <= limit (a float) still is <= limit after rounding up, so neither minimum below cuts off a
        # real cost.
        return PrivacyCost(min(converted, self._budget.epsilon), delta, self.relation, proven, reason)

    def to_table(self) -> list[dict[str, object]]:
        """Return one row an event, for reports: index, label, mechanism, epsilon, rho.  It holds no data."""
        return [
            {
                "index": entry.index,
                "label": entry.label,
                "mechanism": type(entry.event).__name__.removesuffix("Event"),
                "epsilon": entry.event.epsilon,
                "rho": entry.event.rho,
            }
            for entry in self._entries
        ]


def _room(total: Fraction | None, limit: float) -> float:
    if total is None:
        return 0.0
    return max(0.0, round_down(Fraction(limit) - total))
