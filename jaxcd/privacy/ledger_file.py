r"""One owner, one data set, one total: a ledger that lives in a file and outlasts runs, processes
and crashes.

*Format.*  UTF-8 text.  Line 1 is the tip: ``jaxcd-ledger 1 COUNT DIGEST``, of fixed length, with
the number of records and the digest of the last.  Every other line is a record: the digest of the
line before it and of its own content, a space, and the content (JSON).  The first record names the
data set and the budget; each other one is a charge: what a mechanism was about to draw, and for
which analysis.

*Order.*  A charge takes a lock that all processes share, reads what others have added, decides by
the ledger's rule, appends its record, forces it to the disk, writes the tip, forces that to the
disk, and only then returns; so the mechanism draws after its price is on the disk.  Killed in
between, the file shows at least what was drawn: a record beyond the tip is complete, is counted,
and the tip is mended; a broken last line was never confirmed, nothing was drawn for it, and it is
overwritten by the next charge.

*What is refused.*  A record that was changed, taken out or put in (the digests do not follow from
each other), and an end that is missing (fewer records than the tip says): the file has been edited
or truncated, and what it would promise is not known.  A whole file that is replaced by an older
copy of itself cannot be told from that copy; keep it where only its owner writes.

The file holds labels, prices and public numbers, never data.  The data set is named by its owner
and not by a digest of its content, which would be a function of the data.

Guarantee:
    That of :class:`jaxcd.privacy.Ledger` with the file's budget, for everything that was ever
    charged to the file.  Proof: :mod:`jaxcd.privacy.ledger`; the analyst is everybody who ever ran
    an analysis under it.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import math
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from ..checks import counted
from ..errors import BudgetExhausted, FormatError, OptionError
from ..json_files import DAMAGE, parsed
from ..places import check_folder_takes, force_folder, path_of, real_path
from .budget import Accounting, Budget, PrivacyCost, Relation, Unit, accounting_of
from .certificate import certificate_of
from .event_rows import event_of_row, event_row, number_of, whole_of
from .events import PrivacyEvent
from .ledger import PrivacyFilter, check_event, refusal
from .limits import Limits, Sums, room_left, total_guarantee, total_spent

__all__ = ["LedgerFile"]

R = TypeVar("R")

MAGIC, _VERSION = "jaxcd-ledger", 1
# Whoever knows version 1 only would add up zCDP under a file with Gaussian accounting, and whoever
# knows version 2 only would charge promises about rows to a file about people.
_GAUSSIAN_VERSION, _PERSON_VERSION = 2, 3
_DIGITS = 12
_TIP = len(f"{MAGIC} {_VERSION} {'0' * _DIGITS} {'0' * 64}\n")
_START = "0" * 64


def _digest(before: str, content: str) -> str:
    return hashlib.sha256(f"{before} {content}".encode()).hexdigest()


def _version_of(budget: Budget) -> int:
    if budget.unit is Unit.PERSON:
        return _PERSON_VERSION
    return _VERSION if accounting_of(budget) is Accounting.ZCDP else _GAUSSIAN_VERSION


def _tip(count: int, digest: str, budget: Budget) -> bytes:
    return f"{MAGIC} {_version_of(budget)} {count:0{_DIGITS}d} {digest}\n".encode()


def _is_name(data_set: object) -> bool:
    return (
        isinstance(data_set, str)
        and bool(data_set.strip())
        and data_set.encode(errors="ignore").decode() == data_set  # can be written
    )


def _number(value: float) -> float | str:
    # JSON has no infinity; float() reads it back
    return value if math.isfinite(value) else str(value)


def _event_of(record: Mapping[str, Any]) -> PrivacyEvent:
    """The event of a charge; ValueError and others where it is none as they are written."""
    event = event_of_row(record)
    prices = [record["epsilon"], record["rho"]]
    prices += [record[name] for name in ("gdp_rho", "delta") if name in record]
    words = [record["time"], record.get("analysis", ""), *record.get("claims", ())]
    if (
        any(not number_of(price) >= 0 for price in prices)
        or not all(isinstance(word, str) for word in words)
        or not isinstance(record.get("secure", True), bool)
    ):
        raise ValueError
    return event


def _that_is_read(record: dict[str, Any], event: PrivacyEvent) -> dict[str, Any]:
    """A charge that is read back as it is written; of another the file could not be opened again.

    Raises:
        OptionError: it is not.
    """
    try:
        content = json.dumps(record, ensure_ascii=False)
        content.encode()
        _event_of(parsed(content))
    except DAMAGE as error:
        raise OptionError(
            f"event {event.label!r}: a ledger file cannot hold it ({error}), and nothing was "
            "written; give an event of jaxcd.privacy whose record has finite numbers, a whole "
            "number as dimension, and True or False as integral"
        ) from None
    return record


class LedgerFile(PrivacyFilter):
    """A ledger in a file: opened if it is there, made if it is not; given as ``ledger=`` to any
    analysis.  A process that is forked opens it anew.

    Args:
        path: of the file, in a folder that exists.
        data_set: the owner's name for the data, such as ``"patients 2026-11"``; an existing file
            must have the same.
        budget: the total for everything that is ever charged; an existing file must have the same.
            None opens an existing file only.
        failure_delta: the part of delta that is set aside for mechanisms that fail with a small
            probability (propose-test-release); from 0.  None takes that of an existing file, and 0
            for a new one; an existing file must have the same.

    Raises:
        OptionError: an argument is not of its kind, there is no such file to open, or an existing
            file is of another data set, budget or failure_delta.
        FormatError: the file is no ledger, or was edited or truncated.

    Example:
        >>> import jaxcd, tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> total = jaxcd.LedgerFile(
        ...     folder / "people.ledger", data_set="people", budget=jaxcd.Budget(2.0, 1e-6)
        ... )
        >>> total.remaining_epsilon
        2.0
    """

    def __init__(
        self,
        path: str | Path,
        *,
        data_set: str | None = None,
        budget: Budget | None = None,
        failure_delta: float | None = None,
    ) -> None:
        from filelock import FileLock

        # One file, one lock, also where it is opened by a symbolic link, and whatever folder the
        # process goes to.
        self._path = real_path(path_of("path", path, example="patients.ledger"))
        if self._path.is_dir() or not self._path.absolute().parent.is_dir():
            raise OptionError(
                f"path = {str(path)!r} is no file in a folder that exists; give one such as "
                "'patients.ledger'"
            )
        if budget is not None and not isinstance(budget, Budget):
            raise OptionError(
                f"budget must be a Budget, got {budget!r}: a ledger file keeps one total, such as "
                "Budget(4.0, 1e-6)"
            )
        if data_set is not None and not _is_name(data_set):
            raise OptionError(
                f"data_set = {data_set!r} is no name; give the owner's name of the data, such as "
                "'patients 2026-11'"
            )
        if not self._path.exists():  # where no file can be made, a lock would be waited for
            check_folder_takes("path", self._path, self._path.parent)
        lock = FileLock(f"{self._path}.lock")
        self._lock: contextlib.AbstractContextManager[Any] = lock
        self._let_go, self._only_read = partial(lock.release, force=True), False
        self._thread_lock, self._process = threading.RLock(), os.getpid()
        self._records: list[dict[str, Any]] = []
        self._events: list[PrivacyEvent] = []
        self._sums, self._count, self._digest, self._end = Sums(), 0, _START, 0
        try:
            self._opened(path, data_set, budget, failure_delta)
        except BaseException:
            self._let_go()
            raise
        self._check_same(data_set, budget, failure_delta)

    # ---- the file
    # ----------------------------------------------------------------------------------------------

    def _opened(
        self,
        path: str | Path,
        data_set: str | None,
        budget: Budget | None,
        failure_delta: float | None,
    ) -> None:
        """Makes the file where there is none, and reads it, while nobody else does."""
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._lock)
            except OSError:
                if not self._path.is_file():
                    raise
                # On a disk that cannot be written nobody charges it, or by another name.
                self._lock, self._only_read = contextlib.nullcontext(), True
            if not self._path.exists():
                self._make(data_set, budget, 0.0 if failure_delta is None else failure_delta)
            elif self._path.stat().st_nlink > 1:
                raise OptionError(
                    f"path: the file {str(path)!r} has several names (hard links), and who opens "
                    "it by another would not wait for this run; keep one of them"
                )
            self._read()

    def _make(self, data_set: str | None, budget: Budget | None, failure_delta: float) -> None:
        if budget is None or data_set is None:
            raise OptionError(
                f"path: there is no ledger {str(self._path)!r}; give data_set and budget to make "
                "one, or correct the path"
            )
        if not (isinstance(failure_delta, (int, float)) and 0 <= failure_delta <= budget.delta):
            raise OptionError(
                f"failure_delta = {failure_delta!r} is no part of delta = {budget.delta!r}; give "
                "a number from 0 to delta"
            )
        Limits.of(budget, failure_delta=failure_delta)  # refuses what no ledger keeps
        header = {
            "data_set": data_set,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "relation": budget.relation.value,
            "max_rows_per_person": budget.max_rows_per_person,
            "failure_delta": float(failure_delta),
            "made": _now(),
        }
        budget = budget.settled(Accounting.GAUSSIAN)
        if (accounting := accounting_of(budget)) is not Accounting.ZCDP:
            header["accounting"] = accounting.value
        if budget.unit is not Unit.ROW:
            header["unit"] = budget.unit.value
        content = json.dumps(header, ensure_ascii=False)
        digest = _digest(_START, content)
        # In one step under its name, so that no half of a header is ever seen.
        draft = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}")
        with draft.open("wb") as file:
            file.write(_tip(1, digest, budget) + f"{digest} {content}\n".encode())
            _force(file)
        os.replace(draft, self._path)
        force_folder(self._path.parent)

    def _read(self) -> None:
        """Reads the records that are new since the last time, and checks that they follow from what
        was known.
        """
        with self._path.open("rb") as file:
            tip = file.read(_TIP)
            try:
                magic, version, count, digest = tip.decode().rstrip("\n").split(" ")
                confirmed = int(count)
            except ValueError:
                raise self._damaged(
                    "it does not begin as a ledger does (is it the right file?)"
                ) from None
            if magic != MAGIC or len(tip) != _TIP:
                raise self._damaged("it does not begin as a ledger does (is it the right file?)")
            if version not in map(str, range(_VERSION, _PERSON_VERSION + 1)):
                raise FormatError(
                    f"file {str(self._path)!r} has version {version}, this jaxcd reads "
                    f"{_PERSON_VERSION}; update jaxcd"
                )
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._end, _TIP))
            rest = file.read()
        if confirmed < max(1, self._count - 1) or size < self._end:
            raise self._damaged("records that were there are missing")
        if confirmed == self._count and digest != self._digest:
            raise self._damaged("it is another file than it was")
        if self._end == 0:
            self._end = _TIP
        while (length := rest.find(b"\n")) >= 0:
            line, rest = rest[:length], rest[length + 1 :]
            if not self._take(line):
                if self._count < confirmed:
                    raise self._damaged(f"record {self._count + 1} was changed")
                if self._count > confirmed or rest:
                    raise self._damaged(f"record {self._count + 1}, not the last, was changed")
                return  # broken off while it was written, and never confirmed
            self._end += length + 1
            if version != str(_version_of(self._budget)):
                raise self._damaged("its first line is of another accounting than its records")
            if self._count == confirmed and self._digest != digest:
                raise self._damaged("its first line does not belong to its records")
        if self._count < confirmed:
            raise self._damaged(f"it ends after {self._count} of {confirmed} records")
        if self._count > confirmed + 1:
            raise self._damaged("its first line is older than its records")

    def _take(self, line: bytes) -> bool:
        """Takes in one record; False where it does not follow from the one before."""
        try:
            digest, _, content = line.decode().partition(" ")
        except ValueError:
            return False
        if digest != _digest(self._digest, content):
            return False
        try:
            record = parsed(content)  # a name that is there twice is refused
            json.dumps(record, ensure_ascii=False).encode()  # can be printed
            if self._count == 0:
                self._open(record)
            else:
                self._add(record)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            # A digest can be computed by anybody; what a reader relies on is looked at here.
            raise self._damaged(
                f"record {self._count + 1} has its digest, and holds what this jaxcd does not "
                "write (update jaxcd if a newer one did)"
            ) from None
        self._count, self._digest = self._count + 1, digest
        return True

    def _open(self, header: Mapping[str, Any]) -> None:
        self._data_set: str = header["data_set"]
        self._budget = Budget(
            number_of(header["epsilon"]),
            number_of(header["delta"]),
            Relation(header["relation"]),
            max_rows_per_person=whole_of(header["max_rows_per_person"]),
            accounting=Accounting(header.get("accounting", Accounting.ZCDP.value)),
            unit=Unit(header.get("unit", Unit.ROW.value)),
        )
        self._failure_delta = number_of(header["failure_delta"])
        if not (_is_name(self._data_set) and 0 <= self._failure_delta <= self._budget.delta):
            raise ValueError
        self._limits = Limits.of(self._budget, failure_delta=self._failure_delta)

    def _add(self, record: dict[str, Any]) -> None:
        event = _event_of(record)
        # an event of zCDP only has no such rho, and (G) then admits nothing more
        self._sums = self._sums.plus(event, self.accounting)
        self._events.append(event)
        self._records.append(record)

    def _append(self, record: Mapping[str, Any]) -> None:
        """Writes a record and then the tip; a tip that a crash has left behind is mended first, so
        that it is never behind by two.
        """
        content = json.dumps(record, ensure_ascii=False)
        digest = _digest(self._digest, content)
        line = f"{digest} {content}\n".encode()
        with self._path.open("r+b") as file:
            if file.read(_TIP) != (known := _tip(self._count, self._digest, self._budget)):
                file.seek(0)
                file.write(known)
                _force(file)
            file.seek(self._end)
            file.truncate()  # what was broken off
            file.write(line)
            _force(file)
            file.seek(0)
            file.write(_tip(self._count + 1, digest, self._budget))
            _force(file)

    def _damaged(self, what: str) -> FormatError:
        return FormatError(
            f"file {str(self._path)!r} is no whole ledger: {what}; it was edited or truncated, so "
            "what has been spent is not known: "
            "put back the true file, or treat the budget as spent"
        )

    def _check_same(
        self, data_set: str | None, budget: Budget | None, failure_delta: float | None
    ) -> None:
        if data_set is not None and data_set != self._data_set:
            raise OptionError(
                f"data_set: the ledger {str(self._path)!r} is of {self._data_set!r}, not of "
                f"{data_set!r}; give its own, or another file"
            )
        if budget is not None and budget.settled(self.accounting) != self._budget:
            raise OptionError(
                f"budget: the ledger {str(self._path)!r} keeps {self._budget}, not {budget}; the "
                "total was fixed when it was made"
            )
        if failure_delta is not None and failure_delta != self._failure_delta:
            raise OptionError(
                f"failure_delta = {failure_delta!r}: the ledger {str(self._path)!r} sets aside "
                f"{self._failure_delta!r} of its delta, which was fixed when it was made; leave "
                "failure_delta out"
            )

    def _alone(self, act: Callable[[], R]) -> R:
        """What it returns, called while nobody else reads or charges the file."""
        if os.getpid() != self._process:
            # Its lock is the parent's, and a thread there may have been in the middle of a charge.
            raise OptionError(
                f"ledger: {str(self._path)!r} was opened by the process that this one was forked "
                f"from; open it anew here, by LedgerFile({str(self._path)!r})"
            )
        try:
            with self._thread_lock, self._lock:
                return act()
        except BaseException:
            self._let_go()  # after an interrupt where it had just been taken, or was about to go
            raise

    def check_takes_charges(self) -> None:
        """Raises OptionError for a file that can only be read: no lock can be made beside it."""
        if self._only_read:
            raise OptionError(
                f"ledger: {str(self._path)!r} can be read and not charged, since no file can be "
                f"made beside it ({self._path.name}.lock); give the ledger where it is kept"
            )

    # ---- the filter
    # ----------------------------------------------------------------------------------------------

    def _current(self) -> Sums:
        def current() -> Sums:
            self._read()
            return self._sums

        return self._alone(current)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @property
    def data_set(self) -> str:
        """The owner's name of the data."""
        return self._data_set

    @property
    def budget(self) -> Budget:
        """The total."""
        return self._budget

    @property
    def remaining_epsilon(self) -> float:
        """What pure events may still add under rule (P), rounded down; read from the file."""
        return room_left(self._current().epsilon, self._limits.epsilon)

    @property
    def remaining_rho(self) -> float:
        """What rhos may still add under rule (Z) or (G), rounded down; read from the file."""
        return room_left(self._current().rho, self._limits.rho)

    @property
    def remaining_failures(self) -> float:
        """What failure probabilities may still add, rounded down; read from the file."""
        return room_left(self._current().failures, self._limits.failures)

    def charge(self, event: PrivacyEvent) -> int:
        """Charge an event to the file: on the disk before this returns.  Atomic among threads and
        processes.

        Returns:
            Its index in the file.

        Raises:
            BudgetExhausted: it does not fit; nothing was written.
            FormatError: the file was edited or truncated.
            OptionError: it can only be read; or what the event says of its mechanism cannot be
                written: nothing was.
            OSError: it cannot be written; then nothing may be drawn.
        """
        return self.charge_for(event, {})

    def charge_for(self, event: PrivacyEvent, analysis: Mapping[str, Any]) -> int:
        """:meth:`charge`, with what is known of the analysis: ``analysis`` (an id), ``claims``
        (classes that are not jaxcd's), ``secure``.
        """
        self.check_takes_charges()

        def charged() -> int:
            self._read()
            check_event(event, self._budget)
            if not self._limits.admit(self._sums.plus(event, self.accounting)):
                rooms = (
                    room_left(self._sums.epsilon, self._limits.epsilon),
                    room_left(self._sums.rho, self._limits.rho),
                    room_left(self._sums.failures, self._limits.failures),
                )
                raise BudgetExhausted(
                    f"ledger {str(self._path)!r}: {refusal(event, self._budget, *rooms)}"
                )
            row = {
                name: _number(part) if isinstance(part, float) else part
                for name, part in event_row(event, self.accounting).items()
            }
            self._append(_that_is_read({**row, **analysis, "time": _now()}, event))
            self._read()
            return self._count - 2

        return self._alone(charged)

    @property
    def guarantee(self) -> PrivacyCost:
        """What holds for everything ever charged; proved where every mechanism and every class
        involved is jaxcd's own, with secure noise.
        """
        self._current()
        cost = total_guarantee(self._budget, self._limits, self._events)
        claims = sorted(
            {str(name) for record in self._records for name in record.get("claims", ())}
        )
        if claims:
            return _unproved(cost, f"the claims of {', '.join(claims)} are their authors'")
        if not all(record.get("secure", True) for record in self._records):
            return _unproved(cost, "some noise was simulated from a key: not for release")
        return cost

    @property
    def spent(self) -> PrivacyCost:
        """What was charged adds up to; never above the budget."""
        return total_spent(self._budget, self._current(), self._failure_delta)

    @property
    def records(self) -> Sequence[Mapping[str, Any]]:
        """The charges in order: label, mechanism, epsilon, rho, analysis, time, and what the price
        follows from.
        """
        self._current()
        return tuple(dict(record) for record in self._records)

    def certificate(self) -> dict[str, Any]:
        """What :func:`jaxcd.verify` checks: the total, and every charge with what its price follows
        from.
        """
        cost, rows = (
            self.guarantee,
            [{"index": i, **record} for i, record in enumerate(self._records)],
        )
        return certificate_of(
            cost=cost,
            spent=self.spent,
            rows=rows,
            failure_delta=self._failure_delta,
            more={"data_set": self._data_set},
        )

    def __repr__(self) -> str:
        return (
            f"LedgerFile({str(self._path)!r}, data_set={self._data_set!r}, {self._budget}, "
            f"{counted(len(self._records), 'charge')})"
        )


def _unproved(cost: PrivacyCost, reason: str) -> PrivacyCost:
    import dataclasses

    return dataclasses.replace(cost, proven=False, reason=reason)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _force(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
