"""The coordinator: asks the sites, adds up what they send, and makes of it the usual release.

It is no owner of rows, and is not trusted with any: it sees sums.  What to ask next is chosen on
sums that were released.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxcd.checks import a_type
from jaxcd.data import Domain, Missing
from jaxcd.errors import FormatError, OptionError, PrivacyError
from jaxcd.federated.asked import bits_of, body_of, share_of
from jaxcd.federated.federation import Federation, domain_digest
from jaxcd.federated.lines import Line
from jaxcd.federated.masks import opened, unpacked
from jaxcd.federated.messages import Message
from jaxcd.privacy import (
    Accountant,
    NoiseSource,
    PrivacyFilter,
    Relation,
    keeps_what_is_paid,
    open_account,
)
from jaxcd.privacy.shares import NoiseShare
from jaxcd.releases.base import Release
from jaxcd.releases.kind import ReleaseKind, kind_to_json
from jaxcd.releases.tables.questions import Answer, Question

__all__ = ["Coordinator", "FederatedDoor"]

_log = logging.getLogger(__name__)

_MOST_ROWS = 2**40  # of a site, beyond any table: what is computed from n stays a number


class FederatedDoor:
    """What stands in the place of :class:`jaxcd.queries.Door` where the rows are at several sites.

    Args:
        domain: of all sites.
        ask: a round, by question and accountant.
        n_samples: the number of rows of the sites that take part.
    """

    private = True
    by_person = False
    chooses = False  # sites add up numbers; the largest of a sum they do not see
    units = 1
    missing = Missing.IGNORE
    has_rows = True
    relation = Relation.REPLACE_ONE

    def __init__(
        self,
        domain: Domain,
        ask: Callable[[Question, Accountant], Answer],
        n_samples: Callable[[], int],
    ) -> None:
        self.domain = domain
        self._ask, self._n_samples = ask, n_samples

    @property
    def n_samples(self) -> int:
        """The rows of the sites whose numbers are in the first sum."""
        return self._n_samples()

    def answer(self, question: Question, accountant: Accountant) -> Answer:
        """The sum over the sites."""
        return self._ask(question, accountant)


class Coordinator:
    """One run with several sites.

    Args:
        federation: what the owners have agreed on.
        domain: that all of them have declared.
        lines: to each site.
        timeout: seconds to wait for a site's reply to a message.
        absent: by site, why it takes no part from the start; it counts among the dropouts.

    Raises:
        OptionError: the lines are not those of the federation's sites, the timeout is no number of
            seconds, or an absent site is none of them.
    """

    def __init__(
        self,
        federation: Federation,
        domain: Domain,
        lines: Mapping[str, Line],
        *,
        timeout: float = 600.0,
        absent: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if set(lines) != set(federation.sites):
            raise OptionError(
                f"lines: they lead to {sorted(lines)}, and the sites are {list(federation.sites)}"
            )
        if not timeout > 0:
            raise OptionError(f"timeout = {timeout!r} is no number of seconds; 600 is usual")
        if unknown := set(absent) - set(lines):
            raise OptionError(f"absent: {sorted(unknown)} are no sites; they are {sorted(lines)}")
        self._federation, self._domain, self._lines = federation, domain, dict(lines)
        self._timeout = timeout
        self._run = uuid.uuid4().hex
        self._there = list(federation.sites)
        self._sizes: dict[str, int] = {}
        self._n_first = 0
        self._round = -1
        self._notes: list[str] = []
        self._rounds: list[dict[str, Any]] = []
        self._bytes: Counter[str] = Counter()
        for name, why in absent.items():
            self._gone(name, why)

    # ---- messages

    def _note(self, words: str) -> None:
        self._notes.append(words)
        _log.info(words)

    def _gone(self, name: str, why: str) -> None:
        self._there.remove(name)
        self._note(f"site {name!r} takes no further part: {why}")

    def _talk(
        self, names: Collection[str], kind: str, body: Mapping[str, Any], wanted: str
    ) -> dict[str, Message]:
        """The replies of the sites to a message; those without one take no further part."""
        content = Message(kind, self._run, "coordinator", self._round, body).encode()
        for name in names:
            self._bytes[name] += len(content)
            self._lines[name].send(content)
        found = {}
        deadline = time.monotonic() + self._timeout
        for name in names:
            reply = self._reply(name, wanted, deadline)
            if isinstance(reply, str):
                self._gone(name, reply)
            else:
                found[name] = reply
        return found

    def _reply(self, name: str, wanted: str, deadline: float) -> Message | str:
        """What the site says, or why it is taken as absent."""
        while True:
            content = self._lines[name].receive(max(deadline - time.monotonic(), 0.0))
            if content is None:
                return "no reply in time"
            self._bytes[name] += len(content)
            try:
                message = Message.decode(content)
            except FormatError as error:
                return str(error)
            stale = message.run != self._run or message.round < self._round
            if stale or (message.round == self._round and message.kind in _BEFORE[wanted]):
                self._note(
                    f"site {name!r}: a {message.kind!r} that is late or repeated is left out"
                )
                continue
            if message.kind == "refused":
                return str(message.body.get("why", "it gave no reason"))
            if (message.kind, message.sender, message.round) != (wanted, name, self._round):
                return f"message: {message.kind!r} of {message.sender!r} came, not {wanted!r}"
            return message

    # ---- the run

    @keeps_what_is_paid
    def release(
        self,
        kind: ReleaseKind,
        *,
        noise: NoiseSource | None = None,
        ledger: PrivacyFilter | None = None,
    ) -> Any:
        """Buys a release of all sites' rows together.

        Args:
            kind: Histogram(), or with delta > 0 Marginals() or LogLinear().
            noise: None; where sites have simulated noise, the same source, which nothing is drawn
                from here.
            ledger: another ledger to charge, beside those of the sites.

        Returns:
            The release, as one owner of all rows would have got it; its cost says the adversary.

        Raises:
            OptionError: the kind is not made by several sites.
            PrivacyError: too few sites answered; what was bought before is in the exception's
                receipt.
        """
        if not isinstance(kind, ReleaseKind) or not kind.takes_sites:
            raise OptionError(
                f"kind: {a_type(kind)} is not made by several sites; use "
                "jaxcd.Histogram(), "
                "jaxcd.Marginals() or jaxcd.LogLinear()"
            )
        budget = self._federation.budget
        if not kind.is_pure and not budget.delta > 0:
            raise OptionError(
                f"budget: {budget} has delta = 0, and several sites make a Histogram() only then; "
                "give a delta such as 1e-6"
            )
        kind.check(self._domain, 1)
        joined = self._join(kind)
        accountant = open_account(
            budget,
            noise,
            ledger=ledger,
            parts=(kind,),
            pure=kind.is_pure,
            analysis=f"federate: {kind.word}",
            n_samples=sum(self._sizes.values()),
        )
        if accountant.noise.secure and not all(
            m.body.get("secure") is True for m in joined.values()
        ):
            raise OptionError(
                "noise: a site has simulated noise; say so by noise=SimulatedNoise(key)"
            )
        kind.check(self._domain, sum(self._sizes.values()))
        door = FederatedDoor(self._domain, self._ask, lambda: self._n_first or self._n_there)
        bought = kind.buy(door, accountant)  # type: ignore[arg-type]
        self._talk(self._there, "close", {}, "closed")
        claims = {name: m.body["claims"] for name, m in joined.items() if m.body.get("claims")}
        return self._with_words(bought, claims)

    def _with_words(self, bought: Release, claims: Mapping[str, Any]) -> Release:
        """claims: by site the classes there whose claims are not jaxcd's own."""
        cost, reason = bought.cost, bought.cost.reason
        if cost.proven and claims:
            said = "; ".join(f"{names} at site {site!r}" for site, names in sorted(claims.items()))
            cost = dataclasses.replace(cost, proven=False)
            reason = f"the claims of these classes are their authors': {said}"
        # Whom it protects, and from whom, is as much of a claim as of a proof.
        cost = dataclasses.replace(cost, reason=f"{reason}; {self._federation.words}")
        return dataclasses.replace(bought, cost=cost)  # type: ignore[type-var]

    @property
    def _n_there(self) -> int:
        return sum(self._sizes[name] for name in self._there)

    def _check_enough(self, names: Collection[str]) -> None:
        if len(names) < self._federation.fewest:
            last = self._notes[-1] if self._notes else ""
            raise PrivacyError(
                f"sites: {len(names)} of {len(self._federation.sites)} are left, and at least "
                f"{self._federation.fewest} must answer ({last}); start again without the others, "
                "or agree on more dropouts"
            )

    def _join(self, kind: ReleaseKind) -> dict[str, Message]:
        body = {
            "federation": self._federation.to_json(),
            "release": kind_to_json(kind),
            "domain": domain_digest(self._domain),
        }
        joined = self._talk(list(self._there), "open", body, "joined")
        for name, message in list(joined.items()):
            n, key = message.body.get("n_samples"), message.body.get("public_key")
            if type(n) is not int or not 1 <= n <= _MOST_ROWS or not isinstance(key, str):
                self._gone(
                    name, "message: it does not say its number of rows, up to 2^40, and public key"
                )
                del joined[name]
            else:
                self._sizes[name] = n
        self._check_enough(joined)
        roster = {
            "n_samples": {name: self._sizes[name] for name in joined},
            "public_keys": {name: m.body["public_key"] for name, m in joined.items()},
        }
        ready = self._talk(list(self._there), "roster", roster, "ready")
        self._check_enough(ready)
        self._roster = tuple(sorted(joined))
        return joined

    def _ask(self, question: Question, accountant: Accountant) -> Answer:
        """One round: the sum of the sites' numbers, and the law of its noise."""
        self._round += 1
        before = self._bytes.copy()
        share = share_of(question, self._federation.n_shares)
        n_all = sum(self._sizes[name] for name in self._roster)
        bits = bits_of(question, share, n_sites=len(self._roster), n_samples=n_all)
        index = accountant.charge(share.event)
        replies = self._talk(list(self._there), "ask", body_of(question, bits=bits), "masked")
        hidden = {}
        for name, message in replies.items():
            values = message.arrays.get("values")
            if (
                values is None
                or values.shape != (question.dimension, bits // 8)
                or (values.dtype != np.uint8)
            ):
                shape = None if values is None else values.shape
                self._gone(
                    name,
                    f"message: its values have the shape {shape}, and "
                    f"{(question.dimension, bits // 8)} was asked for",
                )
            else:
                hidden[name] = unpacked(values, bits)
        self._check_enough(hidden)
        keys = self._talk(list(hidden), "unmask", {"came": sorted(hidden)}, "keys")
        if len(keys) < len(hidden):
            raise PrivacyError(
                f"sites: one was lost between the two steps of round {self._round}, and its mask "
                "with "
                f"it ({self._notes[-1]}); the round is charged, and its sum cannot be read: start "
                "again, or use a secure aggregation that shares these secrets"
            )
        try:
            own = {name: bytes.fromhex(m.body["own"]) for name, m in keys.items()}
            missing = {
                other: {name: bytes.fromhex(m.body["missing"][other]) for name, m in keys.items()}
                for other in self._roster
                if other not in hidden
            }
            total = opened(hidden, own, missing, roster=self._roster, bits=bits)
        except (KeyError, TypeError, ValueError) as error:
            raise PrivacyError(
                f"sites: a key of round {self._round} is malformed, and the sum cannot be read "
                f"({error}); start again"
            ) from None
        n_came = sum(self._sizes[name] for name in hidden)
        self._n_first = self._n_first or n_came
        self._rounds.append(
            {
                "label": question.label,
                "numbers": question.dimension,
                "bits": bits,
                "sites": len(hidden),
                "n_samples": n_came,
                "bytes": {name: self._bytes[name] - before[name] for name in hidden},
            }
        )
        released = total.astype(np.float64) * question.grid
        accountant.bought(index, question.label, released)
        # of as many rows as the first sum has
        factor = self._n_first / n_came
        variance = share.variance(len(hidden)) * question.grid**2 * factor**2
        return Answer(released * factor, variance, _laplace_scale(share, variance))

    def report(self) -> dict[str, Any]:
        """What may be published of the run: adversary, sites, rounds with their bytes, notes."""
        federation = self._federation
        return {
            "adversary": federation.words,
            "relation": federation.budget.relation.value,
            "unit": federation.budget.unit.value,
            "epsilon": federation.budget.epsilon,
            "delta": federation.budget.delta,
            "dropouts": federation.dropouts,
            "colluding": federation.colluding,
            "shares_counted_on": federation.n_shares,
            "sites": dict(self._sizes),
            "secure_aggregation": "assumed; here pairwise masks (jaxcd.federated.masks)",
            "rounds": list(self._rounds),
            "notes": list(self._notes),
        }


def _laplace_scale(share: NoiseShare, variance: float) -> float:
    """Of the discrete Laplace noise of this variance; 0 for Gaussian noise.

    The share's own where the variance is too small for a float.
    """
    if share.is_gaussian:
        return 0.0
    return 0.5 / math.asinh(1 / math.sqrt(2 * variance)) if variance > 0 else share.scale


# What a site may still have on its line when a reply of each kind is waited for: of this round, and
# of the two steps before the first.
_BEFORE: Mapping[str, tuple[str, ...]] = {
    "joined": (),
    "ready": ("joined",),
    "masked": (),
    "keys": ("masked",),
    "closed": ("masked", "keys"),
}
