r"""The ledger: a privacy filter over one budget, fixed before the data is read.

A filter refuses an event that does not fit; an odometer would add up afterwards what was spent, and
that number is no guarantee.

The rule. Let rho* = ``epsilon_to_rho(budget.epsilon, budget.delta)``, or 0 for delta = 0. An event
is admitted if and only if after it

    (P)  the sum of the pure epsilons is at most budget.epsilon,  or
    (Z)  the sum of the rhos is at most rho*.

(A budget for people with up to k rows has epsilon / k and rho* / k^2 in their places:
:mod:`jaxcd.privacy.groups`.)

A budget with Gaussian accounting has, in the place of (Z) and never beside it,

    (G)  the sum of the rhos of Gaussian differential privacy is at most rho*_G,

with rho*_G = ``epsilon_to_gdp_rho(budget.epsilon, budget.delta)`` (:mod:`jaxcd.privacy.gdp`).  Two
rules that each use up delta would promise 2 delta together: with "(P), (Z) or (G)" an analyst could
end within (Z) or within (G), whichever suits the outputs.

Guarantee:
    Everything drawn under the ledger together is (budget.epsilon, budget.delta)-DP under the
    budget's relation, for events chosen adaptively, depending on everything drawn so far and on
    refusals, and for any stopping rule. Needed: each event is a valid bound (pure epsilon and rho)
    for its mechanism given the past; data reach the analyst only through charged mechanisms; the
    relation of all events is the budget's.

Proof. Fix neighbours D, D' and an analyst; a transcript is the list of events, refusals and
outputs. Both sums never decrease, so every finished transcript satisfies (P) or (Z) at its end: the
last admitted event saw to it. Let A be the transcripts that satisfy (Z) at the end, B the others:
these satisfy (P).

1. On B the log-ratio of the probabilities of the transcript under D and D' is a sum of conditional
   log-ratios, each at most its event's epsilon; their sum is at most budget.epsilon surely. So
   every t in B has P(t) - exp(epsilon) P'(t) <= 0.
2. Let N be the run under the rule (Z) alone. On a transcript of A every prefix satisfies (Z); so N
   admits the same events, and refuses the same (what the two rules refuse together, (Z) refuses).
   Hence P and P' on A are those of N. N is a zCDP filter: the sum of rhos is at most rho* surely,
   so N is rho*-zCDP although the events are chosen adaptively (Feldman and Zrnic 2021; Whitehouse,
   Ramdas, Rogers, Wu 2023: given the past, exp((a-1) (loss - a rho)) has mean at most 1 under D for
   each order a > 1, so the product over events is a supermartingale), hence (epsilon, delta)-DP:
   the sum over t in A of max(0, P(t) - exp(epsilon) P'(t)) is at most delta.
3. A and B are disjoint, and the hockey-stick divergence is the sum over both: at most delta + 0.
   QED.

*Gaussian accounting.*  Words as in :mod:`jaxcd.privacy.gdp`; each event's mechanism is mu-GDP given
the past, mu^2 = 2 rho.  Steps 1 and 3 stand.  Step 2 is replaced by:

2'. Let N be the run under the rule (G) alone, of at most K events (K is public; any bound on what a
    machine can do is one).  N is dominated by G(m), m^2 = 2 rho*_G, hence (epsilon, delta)-DP, and
    the sum over t in A of max(0, P(t) - exp(epsilon) P'(t)) is at most delta.  Proof by induction
    from the end: from a state with room r left the rest of the transcript is dominated by G(sqrt(2
    r)).  Without a further event both laws of the rest are equal, and every pair dominates such
    laws.  Else the past fixes the next mechanism, with laws p, p' and its rho <= r (refusals are
    functions of the past).  Given its outcome y the rest has laws dominated by Q = G(sqrt(2 (r -
    rho))).  For every t and every set S of transcripts

        P(S) - t P'(S) <= sum over y of p(y) h(p'(y) / p(y)),    h(s) = H_{t s}(Q)

    (an integral for continuous outcomes; where p = 0 the left side only gains).  h is convex, falls
    and is not negative, so it is a constant plus a mixture of functions max(0, u - s) over u > 0;
    the sum of p max(0, u - p'/p) is u H_{1/u}(p, p'), which domination of (p, p') by G(sqrt(2 rho))
    bounds.  So the right side is at most what it is for G(sqrt(2 rho)) in the place of (p, p'), and
    that is H_t of the product of G(sqrt(2 rho)) and Q, two normal laws in the plane at the distance
    sqrt(2 rho + 2 (r - rho)): H_t(G(sqrt(2 r))).  QED.

*Failures.*  A few mechanisms fail with a small probability
(:mod:`jaxcd.privacy.propose_test_release`).  A part F of delta is set aside for them when the
ledger is made, rho* is that of delta - F, and their failure probabilities may add up to F.  Except
on an event of probability at most F under D (the union bound, as the sum never exceeds F) every
step is within its epsilon and rho; with "approximate zCDP" in the place of zCDP (Bun and Steinke
2016, section 8; Whitehouse et al. 2023 for the filter) step 2 gives delta - F for the rest, and
step 1 holds off that event.  Together (epsilon, delta).

Under Gaussian accounting: a mechanism that may fail with probability d has laws (1 - d) p0 + d p1
and (1 - d) p0' + d p1', where (p0, p0') keeps the event's bounds. Let P0(t), P0'(t) be the
products of the (1 - d) p0, (1 - d) p0' along a transcript. P(S) <= P0(S) + F, as the failures'
probabilities never add up to more than F, and P' >= P0'. Step 1 holds for P0 and P0', and so does
2' with delta - F: each step has a factor 1 - d <= 1 more. The sum over A and B is at most delta -
F + 0 + F.

*Ledgers under ledgers.*  A ledger may stand under another one, which has its own budget: an event
must fit both, and is charged to the other first.  The proof of the ledger above covers everything
under it.  The proof of the ledger below is about its own run given what the other analyses
released, on which its refusals may depend.  So many analyses, each with its budget, share one
total.

An interactive mechanism (AboveThreshold) is one event from the moment it is charged, also when
other events come between its answers: the mechanisms' noises are independent, so the probability of
a transcript is a product over mechanisms, and step 1 stands with one factor a mechanism; for step 2
see Haney et al. 2023 (concurrent composition), and Vadhan and Zhang 2023 for step 2': an
interactive pure mechanism is an interactive function of one randomised response of the same
epsilon, which may be drawn when the event is charged; what follows is post-processing.

Sums are exact (rational numbers), and compared with the budget without a tolerance. To let k equal
events fill a budget, take their sizes from :func:`jaxcd.privacy.rounding.split`, which rounds down.
A charge is atomic: threads that share a ledger never admit more than fits.  A process that is
forked would remember its own charges only, so a ledger there refuses; processes share a
:class:`jaxcd.LedgerFile`.
"""

from __future__ import annotations

import math
import os
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self, cast

from ..checks import counted
from ..errors import BudgetExhausted, OptionError, PrivacyError
from .budget import Accounting, Budget, NoPrivacy, PrivacyCost, Relation, accounting_of
from .claims import GuaranteeClaim
from .conversion import rho_to_exponential, rho_to_pure
from .event_rows import event_row
from .events import (
    ExponentialMechanismEvent,
    FailureEvent,
    GaussianEvent,
    PrivacyEvent,
    PureEvent,
    ZCDPEvent,
)
from .gdp import gdp_rho_to_pure, gdp_rho_to_range
from .limits import Limits, Sums, rho_of, room_left, total_guarantee, total_spent
from .rounding import left_in_words, round_up, spent_in_words

_EVENTS = (PureEvent, ZCDPEvent, GaussianEvent, ExponentialMechanismEvent, FailureEvent)


@dataclass(frozen=True)
class LedgerEntry:
    """One admitted event.

    Args:
        index: its place in the ledger; the noise of the mechanism is folded with it.
        label: public words.
        event: what was charged.
    """

    index: int
    label: str
    event: PrivacyEvent


class PrivacyFilter(ABC):
    """What admits events or refuses them: a ledger, a part of one, a ledger in a file.

    A copy is the filter itself: two that remember apart would each admit the whole budget.
    """

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    @property
    @abstractmethod
    def budget(self) -> Budget | NoPrivacy:
        """The total that is kept."""

    @property
    def accounting(self) -> Accounting:
        """The budget's: what the rhos here are of."""
        return accounting_of(self.budget)

    def pure_within(self, rho: float) -> float:
        """The largest epsilon of a pure event that costs at most so much rho here."""
        gaussian = self.accounting is Accounting.GAUSSIAN
        return gdp_rho_to_pure(rho) if gaussian else rho_to_pure(rho)

    def selection_within(self, rho: float) -> float:
        """The largest epsilon of an exponential mechanism that costs at most so much rho here."""
        gaussian = self.accounting is Accounting.GAUSSIAN
        return gdp_rho_to_range(rho) if gaussian else rho_to_exponential(rho)

    @property
    @abstractmethod
    def remaining_epsilon(self) -> float:
        """What pure events may still add under rule (P), rounded down; 0 where that rule has no
        room.
        """

    @property
    @abstractmethod
    def remaining_rho(self) -> float:
        """What rhos may still add under rule (Z) or (G), rounded down; 0 where there is no room."""

    @property
    @abstractmethod
    def remaining_failures(self) -> float:
        """What failure probabilities may still add, rounded down."""

    @abstractmethod
    def charge(self, event: PrivacyEvent) -> int:
        """Admit and record an event, or refuse it; must be called before the mechanism draws."""

    def part(self, *, epsilon: float, rho: float) -> LedgerPart:
        """A filter for a part of what is left here: at most ``epsilon`` by rule (P), or ``rho`` by
        rule (Z).
        """
        return LedgerPart(self, epsilon=epsilon, rho=rho)


class LedgerPart(PrivacyFilter):
    """A share of what is left of another filter, for a stage of a run; every event is charged to
    the whole as well.

    An event fits where it is within the share of epsilon, or within the share of rho, by the sums
    of this part alone.  Indices are those of the whole: the stages draw from one sampler.

    Args:
        whole: the filter that it is a share of.
        epsilon: the share of epsilon.
        rho: the share of rho.
    """

    def __init__(self, whole: PrivacyFilter, *, epsilon: float, rho: float) -> None:
        self._whole = whole
        self._limits, self._sums = Limits(epsilon, rho, math.inf), Sums()
        self._lock = threading.RLock()

    @property
    def budget(self) -> Budget | NoPrivacy:
        """The budget of the whole."""
        return self._whole.budget

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The events of the whole."""
        found: tuple[LedgerEntry, ...] = cast(Any, self._whole).entries
        return found

    @property
    def guarantee(self) -> PrivacyCost:
        """That of the whole."""
        found: PrivacyCost = cast(Any, self._whole).guarantee
        return found

    @property
    def spent(self) -> PrivacyCost:
        """What the events of the whole add up to."""
        found: PrivacyCost = cast(Any, self._whole).spent
        return found

    def to_table(self) -> list[dict[str, object]]:
        """The events of the whole, a row each."""
        found: list[dict[str, object]] = cast(Any, self._whole).to_table()
        return found

    @property
    def remaining_epsilon(self) -> float:
        """What is left of the share of epsilon."""
        return room_left(self._sums.epsilon, self._limits.epsilon)

    @property
    def remaining_rho(self) -> float:
        """What is left of the share of rho."""
        return room_left(self._sums.rho, self._limits.rho)

    @property
    def remaining_failures(self) -> float:
        """What is left of the whole's part for failures."""
        return self._whole.remaining_failures

    def charge(self, event: PrivacyEvent) -> int:
        """Charge an event to this part and to the whole; returns the whole's index.

        Raises:
            BudgetExhausted: it fits one of the two only; nothing is recorded then.
        """
        with self._lock:
            sums = self._sums.plus(event, self.accounting)
            if not isinstance(self.budget, NoPrivacy) and not self._limits.admit(sums):
                raise BudgetExhausted(
                    f"event {event.label!r} does not fit into its level's share; give the level a "
                    "larger weight"
                )
            index = self._whole.charge(event)
            self._sums = sums
            return index


class Ledger(PrivacyFilter):
    """A privacy filter: charge an event, and only then draw.  The module's docstring has the rule
    and its proof.

    Args:
        budget: a :class:`Budget`, or ``NO_PRIVACY``: then every event is admitted and recorded,
            nothing is guaranteed.
        failure_delta: the part of delta that is set aside for mechanisms that may fail, from 0 to
            delta; a budget for people with several rows has none.
        under: another ledger that every event must fit as well.

    Raises:
        OptionError: an argument is not of its kind or out of its range.

    Example:
        >>> import jaxcd
        >>> from jaxcd.privacy import Ledger, PureEvent
        >>> ledger = Ledger(jaxcd.Budget(1.0))
        >>> ledger.charge(PureEvent(0.25, "a first count"))
        0
        >>> ledger.remaining_epsilon
        0.75
    """

    claim = GuaranteeClaim(
        "everything drawn under one budget is (epsilon, delta)-DP together, for adaptively chosen "
        "events",
        assumptions="each event bounds its mechanism; the data is reached through charged "
        "mechanisms only",
    )

    def __init__(
        self,
        budget: Budget | NoPrivacy,
        *,
        failure_delta: float = 0.0,
        under: PrivacyFilter | None = None,
    ) -> None:
        if not isinstance(budget, (Budget, NoPrivacy)):
            raise OptionError(
                f"budget must be a Budget or NO_PRIVACY, got {budget!r}: use Budget(epsilon=1.0, "
                "delta=1e-6)"
            )
        if isinstance(budget, Budget):
            budget = budget.settled(Accounting.GAUSSIAN if under is None else under.accounting)
        check_same_accounting(budget, under)
        check_same_unit(budget, under)
        self._budget, self._under, self._failure_delta = budget, under, float(failure_delta)
        self._limits = Limits.of(budget, failure_delta=self._failure_delta)
        self._entries: list[LedgerEntry] = []
        self._sums = Sums()
        self._exhausted = False
        self._lock, self._process = threading.RLock(), os.getpid()

    def __repr__(self) -> str:
        events = counted(len(self._entries), "event")
        return f"Ledger({self._budget!r}, {events}, exhausted={self._exhausted})"

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
        """What the rhos of events may add up to: 0 for a budget without delta, infinity for
        ``NO_PRIVACY``.
        """
        return self._limits.rho

    @property
    def epsilon_limit(self) -> float:
        """What pure events may add up to, for one row; infinity for ``NO_PRIVACY``."""
        return self._limits.epsilon

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
        return math.inf if self._sums.epsilon is None else round_up(self._sums.epsilon)

    @property
    def rho_total(self) -> float:
        """The sum of the rhos, rounded up."""
        return math.inf if self._sums.rho is None else round_up(self._sums.rho)

    @property
    def remaining_epsilon(self) -> float:
        """What pure events may still add under rule (P) here, and under either rule in the ledger
        above; 0 where there is no room.
        """
        own = room_left(self._sums.epsilon, self._limits.epsilon)
        if self._under is None or not own > 0:
            return own
        # k events of epsilon / k cost no more rho than one of epsilon
        rho = self._under.remaining_rho
        by_rho = self._under.pure_within(rho) if rho > 0 else 0.0
        return min(own, max(self._under.remaining_epsilon, by_rho))

    @property
    def remaining_rho(self) -> float:
        """What rhos may still add under rule (Z), here and in the ledger above; 0 where that rule
        has no room.
        """
        own = room_left(self._sums.rho, self._limits.rho)
        return own if self._under is None else min(own, self._under.remaining_rho)

    @property
    def remaining_failures(self) -> float:
        """What failure probabilities may still add, here and in the ledger above."""
        own = room_left(self._sums.failures, self._limits.failures)
        return own if self._under is None else min(own, self._under.remaining_failures)

    def can_afford(self, event: PrivacyEvent) -> bool:
        """Return whether the event fits this ledger's budget now; changes nothing, and does not ask
        the ledger above.

        Raises:
            OptionError: not an event.
            PrivacyError: the event's relation is not the budget's.
        """
        check_event(event, self._budget)
        return self._limits.admit(self._sums.plus(event, self.accounting))

    def charge(self, event: PrivacyEvent) -> int:
        """Admit and record an event; must be called before the mechanism draws.  Atomic.

        Args:
            event: what is about to be drawn.

        Returns:
            The index of the event: 0, 1, 2, ...; noise is folded with it.

        Raises:
            BudgetExhausted: the event does not fit; nothing was recorded, and :attr:`exhausted` is
                set.
            OptionError: the ledger was made by the process that this one was forked from.
            PrivacyError: the event's relation is not the budget's.
        """
        if os.getpid() != self._process and isinstance(self._budget, Budget):
            raise OptionError(
                "ledger: it was made by the process that this one was forked from, and what is "
                "charged here would not count there; make a LedgerFile there, and open it here"
            )
        with self._lock:
            check_event(event, self._budget)
            sums = self._sums.plus(event, self.accounting)
            if not self._limits.admit(sums):
                self._exhausted = True
                raise BudgetExhausted(
                    refusal(
                        event,
                        self._budget,
                        self.remaining_epsilon,
                        self.remaining_rho,
                        self.remaining_failures,
                    )
                )
            if self._under is not None:
                try:
                    self._under.charge(event)
                except BudgetExhausted:
                    self._exhausted = True
                    raise
                except Exception:
                    raise
                except BaseException:  # an interrupt: it may be on the disk already
                    self._record(event, sums)
                    raise
            return self._record(event, sums)

    def _record(self, event: PrivacyEvent, sums: Sums) -> int:
        index = len(self._entries)
        self._entries.append(LedgerEntry(index, event.label, event))
        self._sums = sums
        return index

    @property
    def guarantee(self) -> PrivacyCost:
        """What holds for everything drawn under this ledger, however its events were chosen: the
        budget itself; proved where every event has the record of its mechanism."""
        return total_guarantee(self._budget, self._limits, [entry.event for entry in self._entries])

    @property
    def spent(self) -> PrivacyCost:
        """What the admitted events add up to: the smaller of the pure sum and the sum of the rhos
        converted at the budget's delta.

        Never above the budget. It is accounting (``proven=False``): where the number or the size of
        the events depended on the data, the sum does too, and the guarantee is :attr:`guarantee`.
        """
        return total_spent(self._budget, self._sums, self._failure_delta)

    def to_table(self) -> list[dict[str, object]]:
        """Return one row an event, for reports: index, label, mechanism, epsilon, rho, and what
        they follow from.  It holds no data.
        """
        return [
            {"index": entry.index, **event_row(entry.event, self.accounting)}
            for entry in self._entries
        ]


def check_same_accounting(budget: Budget | NoPrivacy, under: PrivacyFilter | None) -> None:
    """Raise OptionError where a ledger is to stand under one with another accounting: their rhos
    are not the same.  Without a delta a ledger admits pure events only, which every other takes.
    """
    if under is None or isinstance(budget, NoPrivacy) or isinstance(under.budget, NoPrivacy):
        return
    own = budget.settled(under.accounting).accounting
    if own is not None and budget.delta > 0 and under.accounting is not own:
        raise OptionError(
            f"ledger: its accounting is {under.accounting.value!r}, and the budget's is "
            f"{own.value!r}; use a ledger made with accounting=Accounting.{own.name}, or (not "
            "where several sites release together) a budget with "
            f"accounting=Accounting.{under.accounting.name}"
        )


def check_same_unit(budget: Budget | NoPrivacy, under: PrivacyFilter | None) -> None:
    """Raise OptionError where a ledger is to stand under one that protects another unit: one row
    replaced and one person replaced are different neighbours, and their prices do not add up.
    """
    if under is None or isinstance(budget, NoPrivacy) or isinstance(under.budget, NoPrivacy):
        return
    if under.budget.unit is not budget.unit:
        raise OptionError(
            f"ledger: its unit is a {under.budget.unit.value}, and the budget's is a "
            f"{budget.unit.value}; give the budget unit={under.budget.unit.value!r}, or keep a "
            "ledger of its own"
        )


def check_event(event: PrivacyEvent, budget: Budget | NoPrivacy) -> None:
    """Raise OptionError for what is no event, PrivacyError for an event of another relation, or one
    that the budget's accounting has no number for.
    """
    if not isinstance(event, _EVENTS):
        raise OptionError(
            f"event must be a privacy event, got {type(event).__name__}: use PureEvent or ZCDPEvent"
        )
    if accounting_of(budget) is Accounting.GAUSSIAN and isinstance(event, ZCDPEvent):
        raise PrivacyError(
            f"event {event.label!r} is known by its zCDP (rho={spent_in_words(event.rho)}) "
            "only, from which no "
            "Gaussian differential privacy follows: charge a GaussianEvent where the noise is "
            "Gaussian and rounded (jaxcd.privacy.gaussian does), a PureEvent where it has an "
            "epsilon, or use a budget with Accounting.ZCDP"
        )
    if isinstance(budget, Budget) and event.relation is not budget.relation:
        raise PrivacyError(
            f"relation of the event {event.label!r} is {event.relation.value}, "
            f"the budget's is {budget.relation.value}: state the sensitivity for the budget's "
            "relation"
        )


def refusal(
    event: PrivacyEvent, budget: Budget | NoPrivacy, epsilon: float, rho: float, failures: float
) -> str:
    """The words for an event that does not fit what is left."""
    charged = rho_of(event, accounting_of(budget))
    failing = f", delta={spent_in_words(event.delta)}" if event.delta else ""
    room = f" and {left_in_words(failures)} of delta for failures" if event.delta else ""
    rooms = f"{left_in_words(epsilon)} of epsilon and {left_in_words(rho)} of rho{room}"
    return (
        f"event {event.label!r} (epsilon={spent_in_words(event.epsilon)}, "
        f"rho={spent_in_words(charged)}{failing}) does "
        f"not fit: {rooms} are left of the budget "
        f"{budget}; ask for fewer or smaller events, or start with a larger budget"
    )
