"""What purchases of noisy interactions share: what is known of pairs, which pairs are measured, and
what a budget can see.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, cast

from jaxcd.checks import check_whole, has, is_number, said_of_columns
from jaxcd.data import Domain
from jaxcd.data.intervention_knowledge import with_interventions
from jaxcd.errors import DomainError, OptionError
from jaxcd.graphs import Knowledge
from jaxcd.ops.interactions import interaction_sensitivity_squared
from jaxcd.privacy import Budget, Ledger, NoPrivacy
from jaxcd.queries import Door
from jaxcd.releases.kind import ReleaseKind
from jaxcd.releases.plans import Plan
from jaxcd.releases.tables import marginal_screen as screen
from jaxcd.releases.tables.marginal_purchase import pairs_sensitivity

__all__ = ["InteractionsKind", "KnownPairs"]

# What is computed of a column is dense in the square of its levels, and of a pair in its cells.
_MOST_LEVELS, _MOST_CELLS = 3_000, 1 << 20


@dataclass(frozen=True)
class KnownPairs:
    """Pairs of columns (i < j) that are known not to be joined, and those that are known to be."""

    absent: frozenset[tuple[int, int]] = frozenset()
    kept: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(knowledge: Knowledge | None, names: Sequence[str]) -> KnownPairs:
        """Those of the knowledge, by the places of the names."""
        if knowledge is None:
            return KnownPairs()
        pairs = list(combinations(range(len(names)), 2))
        named = [(pair, names[pair[0]], names[pair[1]]) for pair in pairs]
        return KnownPairs(
            frozenset(pair for pair, a, b in named if knowledge.adjacency_forbidden(a, b)),
            tuple(pair for pair, a, b in named if knowledge.adjacency_required(a, b)),
        )

    def first(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The pairs that may be joined, those that are known to be first."""
        return [*self.kept, *(p for p in pairs if p not in self.kept and p not in self.absent)]


class InteractionsKind(ReleaseKind):
    """A purchase that begins with the interactions of all pairs of discrete columns.

    Where there are many pairs some are chosen, and only these are measured
    (:mod:`jaxcd.releases.tables.pair_selection`).

    Attributes:
        shares: the weights of the rounds, where all pairs are measured.
        knowledge: what is known before; public.
        selected: how many pairs are chosen; 0 for none, None for the usual number.
    """

    shares: tuple[float, ...]
    knowledge: Knowledge | None
    selected: int | None

    def knowing(self, knowledge: Knowledge | None) -> ReleaseKind:
        """The same purchase, which need not measure what is known."""
        changed: dict[str, Any] = {"knowledge": knowledge}
        found: ReleaseKind = replace(cast(Any, self), **changed)
        return self if knowledge is None else found

    def check_knowledge(self) -> None:
        """Makes the knowledge of a file, which is a mapping, a Knowledge; raises OptionError for
        anything else.
        """
        if isinstance(self.knowledge, Mapping):
            read = Knowledge.from_json_dict(dict(self.knowledge))
            object.__setattr__(self, "knowledge", read)
        if self.knowledge is not None and not isinstance(self.knowledge, Knowledge):
            raise OptionError(
                f"knowledge = {self.knowledge!r} is no Knowledge; use jaxcd.Knowledge(tiers=...), "
                "or None"
            )

    def check_shares(self, usual: tuple[float, ...]) -> None:
        """Raises OptionError where the shares are not as many positive weights as the usual
        ones.
        """
        if (
            not isinstance(self.shares, Sequence)
            or len(self.shares) != len(usual)
            or not all(is_number(share, 0, ends="(]") for share in self.shares)
        ):
            number = {2: "two", 3: "three"}[len(usual)]
            raise OptionError(
                f"shares = {self.shares!r} are not {number} positive weights; {usual!r} is usual"
            )

    def check_selected(self) -> None:
        """Raises OptionError where the number of chosen pairs is none."""
        if self.selected is not None:
            check_whole("selected", self.selected, 0, cure="give None, or 0 to measure all pairs")

    def check(self, domain: Domain, n_samples: int = 1) -> None:
        """Raises DomainError where a column is numeric or has too many levels, OptionError where
        the knowledge names others or contradicts the domain's interventions.
        """
        if self.knowledge is not None:
            self.knowledge.check(domain.names)
            with_interventions(self.knowledge, domain, by_tests=True)
        numeric = [name for name in domain.names if not domain[name].is_discrete]
        if numeric:
            raise DomainError(
                f"data: {said_of_columns(numeric, 'is', 'are')} numeric, and tables count levels; "
                "declare levels chosen in advance (ordinal), or leave out what is numeric with "
                "data.select(names)"
            )
        levels = dict(zip(domain.names, map(int, cast(Any, domain.cardinalities)), strict=True))
        widest = sorted(levels, key=lambda name: -levels[name])
        wide = [name for name in widest if levels[name] > _MOST_LEVELS]
        if not wide and math.prod(levels[name] for name in widest[:2]) > _MOST_CELLS:
            wide = widest[:2]
        if wide:
            said = ", ".join(f"{name!r} ({levels[name]:,})" for name in wide)
            raise DomainError(
                f"domain: {said} {has(len(wide))} too many levels: a column may have "
                f"{_MOST_LEVELS:,}, and two columns {_MOST_CELLS:,} multiplied; put levels "
                'together, or leave the columns out ("ignore": true in a domain file)'
            )

    @abc.abstractmethod
    def usual_number(self, domain: Domain, n_samples: int, n_pairs: int, *, budget: Budget) -> int:
        """How many of so many pairs are chosen where ``selected`` is None; 0 where all are
        measured.  From public facts.
        """

    @abc.abstractmethod
    def chosen_shares(self, domain: Domain, n_samples: int, *, budget: Budget) -> tuple[float, ...]:
        """The weights of the single columns, the choices, the chosen pairs, and what comes later,
        where pairs are chosen.  From public facts.
        """

    def known_pairs(self, domain: Domain) -> KnownPairs:
        """What is known of pairs where some are chosen: those that are measured in any case, and
        those that are not.
        """
        return KnownPairs.of(self.knowledge, domain.names)

    def n_selected(self, domain: Domain, n_samples: int, *, budget: Budget) -> int:
        """How many pairs are chosen; 0 where all are measured.  From public facts.

        Args:
            domain: of the columns.
            n_samples: n.
            budget: of the purchase.
        """
        known = self.known_pairs(domain)
        n_pairs = math.comb(domain.n_columns, 2) - len(known.absent) - len(known.kept)
        wanted = self.selected
        if wanted is None:
            wanted = self.usual_number(domain, n_samples, n_pairs, budget=budget)
        return wanted if wanted < n_pairs else 0

    def n_chosen(self, door: Door, budget: Budget | NoPrivacy) -> int:
        """How many pairs a purchase chooses of the rows behind a door."""
        if not door.chooses or isinstance(budget, NoPrivacy):
            return 0
        return self.n_selected(door.domain, door.n_samples, budget=budget)

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """At most the noise on an interaction of a pair when it is first measured."""
        everything = self.plan_of_all(domain, n_samples, budget=budget)
        n_selected = self.n_selected(domain, n_samples, budget=budget)
        if not n_selected:
            return everything
        shares = self.chosen_shares(domain, n_samples, budget=budget)
        ledger, share = Ledger(budget), shares[2] / sum(shares)
        n_pairs = n_selected + len(self.known_pairs(domain).kept)
        if budget.delta > 0:
            levels = sorted(number or 1 for number in domain.cardinalities)
            largest = interaction_sensitivity_squared(tuple(levels[-2:]))
            noise = math.sqrt(largest * n_pairs / (2 * share * ledger.remaining_rho))
        else:
            change = screen.COUNTED_CHANGE * n_pairs
            noise = math.sqrt(2) * change / (share * ledger.remaining_epsilon)
        return Plan.of(noise, n_samples, number="number of a chosen pair", unit=budget.unit)

    def plan_of_all(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """The noise on an interaction of the first round, when all pairs are bought."""
        self.check(domain, n_samples)
        ledger, share = Ledger(budget), self.shares[0] / sum(self.shares)
        cardinalities = tuple(cardinality or 1 for cardinality in domain.cardinalities)
        if ledger.remaining_rho > 0:
            absent = KnownPairs.of(self.knowledge, domain.names).absent
            noise = pairs_sensitivity(cardinalities, absent=absent) / math.sqrt(
                2 * share * ledger.remaining_rho
            )
        else:
            weights, _, sensitivity = screen.pairs_for_laplace(cardinalities)
            least = min(
                (weight for columns, weight in weights.items() if len(columns) == 2), default=1.0
            )
            noise = math.sqrt(2) * sensitivity / (share * ledger.remaining_epsilon * least)
        return Plan.of(noise, n_samples, number="number of a pair", unit=budget.unit)
