"""One owner of rows: answers messages, charges its own ledger, and adds its share of the noise.

What leaves a site are its public n, and numbers under masks; a refusal follows from public facts.
A message that comes twice gets the same bytes twice: nothing is charged and nothing drawn anew,
also where a transport brings both at the same time, in two threads.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxcd.checks import a_type, counted, shown_list
from jaxcd.data.rows import Rows
from jaxcd.errors import FormatError, JaxcdError, OptionError
from jaxcd.federated.asked import question_of, share_of
from jaxcd.federated.federation import Federation, domain_digest
from jaxcd.federated.masks import Masks, packed
from jaxcd.federated.messages import Message
from jaxcd.privacy import Accountant, NoiseSource, PrivacyFilter, open_account, paying, quantise
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.privacy.sensitive import exact_values
from jaxcd.queries import Door
from jaxcd.releases.kind import kind_from_json
from jaxcd.releases.tables.questions import Question

__all__ = ["Site"]

_log = logging.getLogger(__name__)


class Site:
    """The rows of one owner, behind messages.

    Args:
        name: one of the federation's.
        data: the rows (a Dataset or a Table), of the declared domain that all sites have.
        federation: what this owner has agreed to; an invitation to anything else is refused.
        ledger: the owner's own LedgerFile (or Ledger) for these rows, or None.
        noise: None for secure noise; ``SimulatedNoise(key)`` for experiments, another key a site.

    Raises:
        OptionError: the name is not the federation's.
        PrivacyError: the domain is not declared.

    Guarantee:
        For the rows of this site: the federation's budget, against whoever sees nothing but sums
        over at least K - d sites of which K - t - d are silent. Relation: replace-one here; n of
        the site is public. Sensitivity: computed here, for the question that is asked. Events: one
        a round, as the release has them. Proof: docs/PRIVACY.md Y.
    """

    claim = GuaranteeClaim(
        "a site's rows have the federation's guarantee in every sum over at least K - d sites, of "
        "which K - t - d are silent",
        "jaxcd.privacy.shares, jaxcd.federated.site",
    )

    def __init__(
        self,
        name: str,
        data: Rows,
        federation: Federation,
        *,
        ledger: PrivacyFilter | None = None,
        noise: NoiseSource | None = None,
    ) -> None:
        if name not in federation.sites:
            raise OptionError(
                f"name = {name!r} is not a site of the federation; it has "
                f"{shown_list(federation.sites)}"
            )
        if not isinstance(data, Rows):
            raise OptionError(
                f"data: site {name!r} has {a_type(data)}, not a Dataset; read it with "
                "jaxcd.read_csv(path, domain=...)"
            )
        if data.tell is not None:
            raise OptionError(
                f"data: site {name!r} has rows of several processes, and each of them would "
                "answer; read the rows in one process"
            )
        self.name = name
        self._federation, self._ledger, self._noise = federation, ledger, noise
        self._door = Door(data, federation.budget)
        self._run = ""
        self._next = 0
        self._masks: Masks | None = None
        self._accountant: Accountant | None = None
        self._roster: tuple[str, ...] = ()
        self._kept: dict[tuple[str, str, int], tuple[bytes, bytes]] = {}
        self._lock = threading.Lock()  # one message after the other
        self._handlers: dict[str, Callable[[Message], Message]] = {
            "open": self._open,
            "roster": self._meet,
            "ask": self._ask,
            "unmask": self._unmask,
            "close": self._close,
        }

    def answer(self, content: bytes) -> bytes:
        """The reply to a message: what it asks for, or one line why not.

        Args:
            content: bytes of a :class:`jaxcd.federated.messages.Message`.
        """
        try:
            message = Message.decode(content)
        except FormatError as error:
            return self._refused("", -1, str(error))
        try:
            with self._lock:
                return self._answered(message, hashlib.sha256(content).digest())
        except JaxcdError as error:
            return self._refused(message.run, message.round, self._told(str(error)))
        except OSError as error:  # its words have places on this machine
            _log.error("site %r: %s", self.name, error)
            why = f"site {self.name!r} cannot read or write its ledger ({type(error).__name__})"
            return self._refused(message.run, message.round, why)

    def _told(self, why: str) -> str:
        """The words without the place of the ledger on this machine, which is for its owner."""
        path = getattr(self._ledger, "path", None)
        return why if path is None else why.replace(repr(str(path)), repr(path.name))

    def _refused(self, run: str, round_: int, why: str) -> bytes:
        body = {"why": " ".join(why.split())}
        return Message("refused", run, self.name, round_, body).encode()

    def _answered(self, message: Message, digest: bytes) -> bytes:
        if message.kind not in self._handlers:
            raise OptionError(f"message: {message.kind!r} is no request")
        if message.kind != "open" and message.run != self._run:
            raise OptionError(f"message: it is of the run {message.run!r}, which is not open here")
        if message.kind in ("open", "roster") and message.round != -1:
            # else each round would be a place of its own, and a closed run could be opened again
            raise OptionError(f"message: {message.kind!r} comes before the first round only")
        place = message.run, message.kind, message.round
        if place in self._kept:
            known, reply = self._kept[place]
            if known != digest:
                raise OptionError(
                    f"message: another {message.kind!r} of round {message.round} was answered "
                    "before"
                )
            return reply
        reply = self._handlers[message.kind](message).encode()
        self._kept[place] = digest, reply
        return reply

    def _reply(self, message: Message, kind: str, body: Any = None, **arrays: Any) -> Message:
        return Message(kind, message.run, self.name, message.round, body or {}, arrays)

    def _open(self, message: Message) -> Message:
        body = message.body
        federation = body.get("federation")
        if differs := self._federation.differs(federation if isinstance(federation, dict) else {}):
            raise OptionError(
                f"open: {shown_list(differs)} are not what site {self.name!r} has agreed to"
            )
        if body.get("domain") != domain_digest(self._door.domain):
            raise OptionError(
                f"open: site {self.name!r} has declared another domain; the levels of all columns "
                "must be the same everywhere, in the same order"
            )
        try:
            kind = kind_from_json(body.get("release"))
        except (KeyError, TypeError, AttributeError):
            kind = None
        if kind is None or not kind.takes_sites:
            raise OptionError("open: this kind of release is not made by several sites")
        if not message.run:
            raise OptionError("open: a run has a name")
        if self._run and self._ledger is None:
            raise OptionError(
                f"open: site {self.name!r} keeps no ledger, and its budget is that of one run; "
                "give it a LedgerFile for more"
            )
        with paying(rehearsal=True):  # where all run in one process: the run's account is one
            self._accountant = open_account(
                self._federation.budget,
                self._noise,
                ledger=self._ledger,
                parts=(kind,),
                pure=kind.is_pure,
                analysis=f"federate: {kind.word}",
                n_samples=self._door.n_samples,
            )
        self._run, self._next, self._roster = message.run, 0, ()
        self._masks = Masks(self.name, message.run)
        return self._reply(
            message,
            "joined",
            {
                "n_samples": self._door.n_samples,
                "secure": self._accountant.noise.secure,
                "claims": list(self._accountant.claims) if self._accountant.noise.secure else [],
                "public_key": self._masks.public_key,
            },
        )

    def _meet(self, message: Message) -> Message:
        keys, sizes = message.body.get("public_keys"), message.body.get("n_samples")
        if (
            not isinstance(keys, dict)
            or not isinstance(sizes, dict)
            or keys.keys() != sizes.keys()
            or not keys.keys() <= set(self._federation.sites)
            or self.name not in keys
            or not all(type(n) is int and n > 0 for n in sizes.values())
        ):
            raise OptionError(
                "roster: it does not say who takes part, with keys and numbers of rows"
            )
        if len(keys) < self._federation.fewest:
            raise OptionError(
                f"roster: it names {counted(len(keys), 'site')}, fewer than the "
                f"{self._federation.fewest} agreed on"
            )
        assert self._masks is not None
        if keys[self.name] != self._masks.public_key:
            raise OptionError(f"roster: the key of {self.name!r} is not its own")
        self._masks.meet(keys)
        self._roster = tuple(sorted(keys))
        return self._reply(message, "ready")

    def _ask(self, message: Message) -> Message:
        if not self._roster or message.round != self._next:
            raise OptionError(
                f"ask: round {message.round} is not the next here, which is {self._next}"
            )
        assert self._masks is not None
        k = tuple(k or 1 for k in self._door.domain.cardinalities)
        question, bits = question_of(message.body, k, n_samples=self._door.n_samples)
        total = self._with_share(question)
        hidden = self._masks.hide(total, message.round, bits)
        return self._reply(message, "masked", values=packed(hidden, bits))

    def _with_share(self, question: Question) -> np.ndarray:
        """The site's own numbers with its share of the noise: not yet fit to be seen by anybody."""
        assert self._accountant is not None
        values = exact_values(question.exact(self._door))
        steps = quantise(values, grid=question.grid)
        share = share_of(question, self._federation.n_shares)
        self._next += 1  # whatever happens from here on, no round is charged twice
        index = self._accountant.charge(share.event)
        found: np.ndarray = steps + share.draw(self._accountant.noise, len(steps), index=index)
        return found

    def _unmask(self, message: Message) -> Message:
        came = message.body.get("came")
        if (self._run, "ask", message.round) not in self._kept:
            raise OptionError(f"unmask: round {message.round} was not asked here")
        if (
            not isinstance(came, list)
            or not all(isinstance(name, str) for name in came)
            or not set(came) <= set(self._roster)
            or self.name not in came
            or len(set(came)) < self._federation.fewest
        ):
            raise OptionError(
                f"unmask: it must name at least {self._federation.fewest} sites, this one among "
                "them"
            )
        assert self._masks is not None
        missing = [name for name in self._roster if name not in came]
        # a number that comes too late stays under its site's own key
        keys = {name: self._masks.pair_key(name, message.round).hex() for name in missing}
        return self._reply(
            message, "keys", {"own": self._masks.own_key(message.round).hex(), "missing": keys}
        )

    def _close(self, message: Message) -> Message:
        self._roster = ()
        return self._reply(message, "closed")
