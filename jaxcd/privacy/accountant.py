"""The accountant of one run: its ledger, its noise, who took part, and what it has bought.

**What "proved" is printed on.**  Python cannot keep a class from reading what it was handed.  A
guarantee is therefore called proved only where every class that touched sensitive values is one of
:mod:`jaxcd.privacy.registry`, the noise is :class:`SecureNoise` itself, and every event has the
record of its mechanism.  Otherwise the claims are their authors', and the cost says whose.

**What is paid for is never lost.**  Every mechanism hands its result to the accountant as well.
Whatever ends a run after its first charge (an error, an interrupt, memory that runs out), the
exception carries all of it: ``error.receipt``.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..checks import a_type
from ..errors import BudgetExhausted, OptionError, PrivacyWarning
from ..places import path_of, written_whole
from .budget import Accounting, Budget, NoPrivacy, PrivacyCost, Unit, delta_warning
from .events import PrivacyEvent
from .gdp import pure_to_gdp_rho
from .ledger import Ledger, LedgerPart, PrivacyFilter, check_same_accounting, check_same_unit
from .ledger_file import LedgerFile
from .noise import NoiseSampler, NoiseSource, SecureNoise
from .registry import unregistered
from .rounding import left_in_words, round_up, spent_in_words

__all__ = ["Accountant", "Purchase", "Receipt", "open_account", "receipt_of"]


P = ParamSpec("P")
R = TypeVar("R")

BY_PERSON_ONLY = (
    "budget: unit='person' is proved for releases only, whose statistics are sums over rows; buy "
    "a release and search that (discover does where no test is asked for), or use unit='row' with "
    "max_rows_per_person=k"
)
"""Why a run by tests on data, or of a pair, refuses that unit."""

SIMULATED = "the noise was simulated from a key: not for release"
"""Why a cost is not proved: whoever knows the key can take the noise off."""


@dataclass(frozen=True, eq=False)
class Purchase:
    """What one mechanism released; public.

    Args:
        index: of its event in the ledger.
        label: of its event.
        values: the noisy result.
    """

    index: int
    label: str
    values: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Receipt:
    """What a run had bought when it ended before its time; public, as its result would have been.

    Args:
        cost: the guarantee.
        spent: what the events add up to.
        ledger: the rows of the ledger's table.
        purchases: what each mechanism released.
        partial: what can be used of it: a release that can be searched, or the result of a search
            as far as it got; else None.
    """

    cost: PrivacyCost
    spent: PrivacyCost
    ledger: tuple[Mapping[str, object], ...]
    purchases: tuple[Purchase, ...] = field(repr=False)
    partial: Any = None

    def save(self, path: str | Path) -> Path:
        """Write everything to one archive (.npz): the purchases, and the ledger in the entry
        ``ledger`` (JSON); returns the path.

        A release (``partial``) is saved as itself instead, and ``Release.load`` reads it.

        Raises:
            OptionError: the folder does not exist.
        """
        path = path_of("path", path, example="bought.npz")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise OptionError(
                f"path = {str(path)!r} is no file in a folder that exists; give one such as "
                "'bought.npz'"
            )
        if hasattr(self.partial, "tests"):  # a release, which this room does not know
            return Path(self.partial.save(path))
        arrays = {
            f"{purchase.index}: {purchase.label}": purchase.values for purchase in self.purchases
        }
        rows = json.dumps([{name: str(part) for name, part in row.items()} for row in self.ledger])
        with written_whole(path) as draft, draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, ledger=np.array(rows), **arrays)
        return path


class Accountant:
    """The ledger and the noise of one run, handed together to every mechanism.

    Args:
        ledger: what the run may spend.
        noise: a :class:`NoiseSource` (started here), a sampler already started, or None for
            :class:`SecureNoise`.
        parts: the objects whose claims the run rests on: test, decider, kind of release.
    """

    def __init__(
        self,
        ledger: PrivacyFilter,
        noise: NoiseSource | NoiseSampler | None = None,
        *,
        parts: tuple[object, ...] = (),
    ) -> None:
        source = SecureNoise() if noise is None else noise
        self._ledger: Any = ledger
        if isinstance(source, NoiseSource):
            self._sources, self._noise = source.rests_on, source.start()
        else:
            self._sources, self._noise = (source,), source
        self._claims = unregistered(*parts)
        self._purchases: list[Purchase] = []

    @property
    def ledger(self) -> Any:
        """What was spent."""
        return self._ledger

    @property
    def accounting(self) -> Accounting:
        """The ledger's: what its rhos are of."""
        found: Accounting = getattr(self._ledger, "accounting", Accounting.ZCDP)
        return found

    @property
    def noise(self) -> NoiseSampler:
        """The sampler of this run."""
        return self._noise

    @property
    def purchases(self) -> tuple[Purchase, ...]:
        """What mechanisms have released so far."""
        return tuple(self._purchases)

    @property
    def claims(self) -> tuple[str, ...]:
        """The classes that took part and whose claims are not jaxcd's own, by name."""
        return tuple(sorted({*self._claims, *unregistered(*self._sources)}))

    def charge(self, event: PrivacyEvent) -> int:
        """Charge the ledger and return the event's index; see :meth:`Ledger.charge`."""
        found: int = self._ledger.charge(event)
        return found

    def bought(self, index: int, label: str, values: Any) -> None:
        """Keep what a mechanism released; called by mechanisms."""
        self._purchases.append(Purchase(index, label, np.array(values)))

    def stage(self, *, epsilon: float, rho: float) -> Accountant:
        """An accountant for a stage of the run, with a share of what is left; noise, claims and
        purchases are the run's.
        """
        stage = Accountant(self._ledger.part(epsilon=epsilon, rho=rho), self._noise)
        stage._sources, stage._claims = self._sources, self._claims
        stage._purchases = self._purchases
        return stage

    @property
    def guarantee(self) -> PrivacyCost:
        """The ledger's guarantee; not proved if the noise was simulated, because who knows the key
        can take it off, nor if a class took part whose claims are not jaxcd's own."""
        cost: PrivacyCost = self._ledger.guarantee
        if math.isinf(cost.epsilon):
            return cost
        if not self._noise.secure:
            return dataclasses.replace(cost, proven=False, reason=SIMULATED)
        if claims := self.claims:
            return dataclasses.replace(
                cost, proven=False, reason=f"the claims of {', '.join(claims)} are their authors'"
            )
        return cost

    def receipt(self, partial: Any = None) -> Receipt:
        """What was bought so far."""
        whole = self._ledger
        return Receipt(
            self.guarantee, whole.spent, tuple(whole.to_table()), self.purchases, partial
        )

    @contextmanager
    def keeping(self, partial: Callable[[], Any] | None = None) -> Iterator[None]:
        """Whatever ends the block after a charge carries what was bought: ``error.receipt``
        (:func:`receipt_of`).

        Args:
            partial: makes of what was bought so far a release that can be searched, or a result;
                where it raises there is none.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(self._ledger.budget, NoPrivacy) and self._ledger.entries:
                attach(error, self.receipt, partial)
            raise


# NumPy's own; the package's tests run with warnings as errors, so that nothing warns by these.
_USUAL: Mapping[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@contextmanager
def paying(*, rehearsal: bool = False) -> Iterator[list[_Opened]]:
    """Whatever ends the block after a charge carries what was bought by the accounts opened in it
    (:func:`open_account`).

    Inside another such block its accounts become the outer one's, with the results that were made
    of them; not those of a ``rehearsal``, whose data are simulated.

    What the application has told NumPy of numbers too small or too large (``np.seterr``) does not
    hold in it: whether a weight underflows can depend on one row, and an error or a line on the
    screen would tell of it.

    Args:
        rehearsal: whether the run inside is on simulated data.

    Returns:
        A context manager.
    """
    outer, opened = _OPENED.get(), list[_Opened]()
    token = _OPENED.set(opened)
    try:
        with np.errstate(**_USUAL):
            yield opened
    except BaseException as error:
        charged = (
            []
            if rehearsal
            else [
                each
                for each in opened
                if not isinstance(each.accountant.ledger.budget, NoPrivacy)
                and each.accountant.ledger.entries
            ]
        )
        if charged:
            attach(
                error,
                lambda partial: _joined([each.accountant.receipt() for each in charged], partial),
                charged[-1].made,
            )
        raise
    finally:
        _OPENED.reset(token)
        if outer is not None and not rehearsal:
            outer.extend(opened)


def keeps_what_is_paid(door: Callable[P, R]) -> Callable[P, R]:
    """The function in a :func:`paying` block; its result is what was made of what it bought.

    Args:
        door: a public function that may charge.

    Returns:
        The function, with the same signature.
    """

    @functools.wraps(door)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with paying() as opened:
            result = door(*args, **kwargs)
            for each in opened:
                # what was made first is nearest to what was bought: a release before its search
                if each.result is None:
                    each.result = result
            return result

    return wrapped


@dataclass(eq=False)
class _Opened:
    """An account, and what a function that has returned since made of it."""

    accountant: Accountant
    result: Any = None

    def made(self) -> Any:
        return self.result


_OPENED: ContextVar[list[_Opened] | None] = ContextVar(
    "accounts opened by the functions that are running", default=None
)


def _joined(receipts: Sequence[Receipt], partial: Any) -> Receipt:
    """One receipt for several accounts: what they spent adds up."""
    last = receipts[-1]
    if len(receipts) == 1:
        return dataclasses.replace(last, partial=partial)
    cost = _together([receipt.cost for receipt in receipts])
    spent = _together([receipt.spent for receipt in receipts])
    rows = [row for receipt in receipts for row in receipt.ledger]
    purchases = [purchase for receipt in receipts for purchase in receipt.purchases]
    return Receipt(
        cost,
        spent,
        tuple({**row, "index": place} for place, row in enumerate(rows)),
        tuple(
            dataclasses.replace(purchase, index=place) for place, purchase in enumerate(purchases)
        ),
        partial,
    )


def _together(costs: Sequence[PrivacyCost]) -> PrivacyCost:
    """What holds for all together: epsilons and deltas add up, for those whom each of them
    protects, and proved if each is.

    A promise about a person with however many rows holds for one row and for k rows, and one about
    a person with up to k rows for fewer.
    """
    weakest = next((cost for cost in costs if not cost.proven), costs[-1])
    of_rows = [cost.max_rows_per_person for cost in costs if cost.unit is Unit.ROW]
    whole = dataclasses.replace(
        weakest,
        epsilon=_sum_up([cost.epsilon for cost in costs]),
        delta=0.0,
        rho=None,
        unit=Unit.ROW if of_rows else Unit.PERSON,
        max_rows_per_person=min(of_rows, default=1),
    )
    delta = _sum_up([cost.delta for cost in costs])
    if delta < 1:
        return dataclasses.replace(whole, delta=delta)
    nothing = "nothing is guaranteed for all together: their deltas add up to 1"
    return dataclasses.replace(whole, epsilon=math.inf, proven=False, reason=nothing)


def _sum_up(costs: Sequence[float]) -> float:
    if math.inf in costs:
        return math.inf
    return round_up(sum(map(Fraction, costs), Fraction(0)))


def attach(
    error: BaseException,
    receipt_with: Callable[[Any], Receipt],
    partial: Callable[[], Any] | None = None,
) -> None:
    """Put a receipt on an exception, unless an inner block has put a fuller one."""
    if receipt_of(error) is not None:
        return
    made = None
    if partial is not None:
        try:
            made = partial()
        except Exception:  # what is missing for it has not been bought yet
            made = None
    receipt = receipt_with(made)
    try:
        error.receipt = receipt  # type: ignore[attr-defined]
        error.add_note(
            f"jaxcd: {spent_in_words(receipt.spent.epsilon)} of epsilon was spent before this; "
            "what it bought "
            "is in the exception's receipt "
            "(jaxcd.receipt_of(error).save(path))"
        )
    except Exception:  # an exception without room for attributes: nothing more can be done
        return


def receipt_of(error: BaseException) -> Receipt | None:
    """What the run that ended with this exception had bought, or None where nothing was charged.

    Args:
        error: the exception that ended the run, an interrupt included.

    Returns:
        The receipt: the guarantee, the rows of the ledger, and what can be used of what was paid
        for.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
        >>> def stop(record):
        ...     raise KeyboardInterrupt
        >>> try:
        ...     jaxcd.pc(
        ...         data,
        ...         test=jaxcd.CovarianceNorm(),
        ...         decider=jaxcd.NoisyThreshold(),
        ...         budget=jaxcd.Budget(1.0),
        ...         key=None,
        ...         noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ...         progress=stop,
        ...     )
        ... except KeyboardInterrupt as error:
        ...     receipt = jaxcd.receipt_of(error)
        >>> print(receipt.cost.epsilon, len(receipt.ledger))
        1.0 10
    """
    found = getattr(error, "receipt", None)
    return found if isinstance(found, Receipt) else None


class _Above(PrivacyFilter):
    """The ledger of many analyses, seen by one of them.

    Args:
        whole: that ledger.
        notes: what a ledger file records of the analysis.
        condition: what the analysis does not protect, which the records of its events say there.
    """

    def __init__(
        self, whole: PrivacyFilter, notes: Callable[[], Mapping[str, Any]], condition: str
    ) -> None:
        self._whole, self._notes, self._condition = whole, notes, condition

    @property
    def budget(self) -> Budget | NoPrivacy:
        return self._whole.budget

    @property
    def remaining_epsilon(self) -> float:
        return self._whole.remaining_epsilon

    @property
    def remaining_rho(self) -> float:
        return self._whole.remaining_rho

    @property
    def remaining_failures(self) -> float:
        return self._whole.remaining_failures

    def charge(self, event: PrivacyEvent) -> int:
        if self._condition and event.record is not None:
            record = dataclasses.replace(event.record, condition=self._condition)
            event = dataclasses.replace(event, record=record)
        if isinstance(self._whole, LedgerFile):
            return self._whole.charge_for(event, self._notes())
        return self._whole.charge(event)


def open_account(
    budget: Budget | NoPrivacy,
    noise: NoiseSource | NoiseSampler | None = None,
    *,
    ledger: PrivacyFilter | None = None,
    parts: tuple[object, ...] = (),
    failure_delta: float = 0.0,
    pure: bool = False,
    accounting: Accounting = Accounting.ZCDP,
    analysis: str = "",
    n_samples: int | None = None,
    by_person: bool = False,
    condition: str = "",
) -> Accountant:
    """The accountant of a new run.

    Args:
        budget: the run's own.
        noise: the run's own; None for secure noise from the operating system.
        ledger: a :class:`LedgerFile` or :class:`Ledger` that every event is charged to as well: one
            total for many runs.
        parts: the objects whose claims the run rests on.
        failure_delta: the part of delta for mechanisms that may fail.
        pure: whether the run is made of pure events that add up to epsilon, whatever delta is.
        accounting: of a budget that says none and is charged to no ledger, unless ``pure``.
        analysis: a few public words for the ledger file.
        n_samples: the public number of rows (of people, where the budget's unit is a person); a
            delta that is not below 1 / n_samples warns (:class:`jaxcd.errors.PrivacyWarning`).
        by_person: whether the run's sensitivities are proved for a person with all of their rows;
            without it a budget with that unit is refused.
        condition: in words whom the run does not protect; a ledger above it is then not proved for
            all.

    Returns:
        The accountant, over the run's ledger and noise.

    Raises:
        OptionError: ``ledger`` is none, or the run has no budget, or not that of its unit.
        BudgetExhausted: there is not enough left in ``ledger`` for the run's budget; nothing was
            charged.
    """
    if isinstance(budget, Budget) and budget.unit is Unit.PERSON and not by_person:
        raise OptionError(BY_PERSON_ONLY)
    if isinstance(budget, Budget):
        usual = Accounting.ZCDP if pure else accounting
        budget = budget.settled(ledger.accounting if isinstance(ledger, PrivacyFilter) else usual)
    accountant = _new_account(
        budget,
        noise,
        ledger=ledger,
        parts=parts,
        failure_delta=failure_delta,
        pure=pure,
        analysis=analysis,
        condition=condition,
    )
    if isinstance(budget, Budget) and (
        words := delta_warning(budget.epsilon, budget.delta, n_samples, unit=budget.unit)
    ):
        warnings.warn(words, PrivacyWarning, stacklevel=5)
    if (opened := _OPENED.get()) is not None:
        opened.append(_Opened(accountant))
    return accountant


def _new_account(
    budget: Budget | NoPrivacy,
    noise: NoiseSource | NoiseSampler | None,
    *,
    ledger: PrivacyFilter | None,
    parts: tuple[object, ...],
    failure_delta: float,
    pure: bool,
    analysis: str,
    condition: str,
) -> Accountant:
    if ledger is None:
        return Accountant(Ledger(budget, failure_delta=failure_delta), noise, parts=parts)
    if not isinstance(ledger, PrivacyFilter) or isinstance(ledger, LedgerPart):
        raise OptionError(
            f"ledger: {a_type(ledger)} is no ledger; use jaxcd.LedgerFile(path, "
            "data_set=..., budget=...), or None"
        )
    if isinstance(budget, NoPrivacy):
        raise OptionError(
            "ledger: a run without privacy is no charge that a ledger can keep; give the run a "
            "budget, or leave the ledger out"
        )
    _check_room(budget, ledger, failure_delta, pure=pure)
    name = f"{analysis} {uuid.uuid4().hex[:12]}".strip()

    def notes() -> Mapping[str, Any]:
        claims = list(accountant.claims) if accountant.noise.secure else []
        return {
            "analysis": name,
            "secure": accountant.noise.secure,
            **({"claims": claims} if claims else {}),
        }

    above = _Above(ledger, notes, condition)
    accountant = Accountant(
        Ledger(budget, failure_delta=failure_delta, under=above), noise, parts=parts
    )
    return accountant


def _pure_rho(epsilon: float, accounting: Accounting) -> float:
    """The rho of one pure event of the whole epsilon."""
    if accounting is Accounting.GAUSSIAN and epsilon > 0:
        return pure_to_gdp_rho(epsilon)
    return epsilon * epsilon / 2  # infinite, and no error, where that is too large


def _check_room(budget: Budget, ledger: PrivacyFilter, failure_delta: float, *, pure: bool) -> None:
    """Refuse, before anything is charged, a budget that could not be spent."""
    if isinstance(ledger.budget, NoPrivacy):
        return
    if ledger.budget.relation is not budget.relation:
        raise OptionError(
            f"ledger: it keeps {ledger.budget.relation.value}, and the budget is "
            f"{budget.relation.value}; use the same relation"
        )
    check_same_accounting(budget, ledger)
    check_same_unit(budget, ledger)
    own = Ledger(budget, failure_delta=failure_delta)
    epsilon, rho = ledger.remaining_epsilon, ledger.remaining_rho
    asked_epsilon, asked_rho = own.remaining_epsilon, own.remaining_rho
    fits = asked_rho <= rho
    is_pure = pure or not budget.delta > failure_delta
    if is_pure:
        asked_rho = _pure_rho(asked_epsilon, ledger.accounting)
        fits = asked_epsilon <= epsilon or asked_rho <= rho
    if failure_delta > ledger.remaining_failures:
        raise OptionError(
            f"ledger: the run needs {failure_delta:g} of delta for failures, and the ledger has "
            f"{ledger.remaining_failures:g} set aside; "
            "make the ledger with failure_delta, or use a mechanism that does not fail"
        )
    if not fits:
        # what is left by the rounding of sums is nothing
        has_epsilon, has_rho = epsilon / asked_epsilon >= 1e-9, rho / asked_rho >= 1e-9
        if not has_rho and not (has_epsilon and is_pure):
            left = "nothing is left for"
            cure = "what was released can be searched again, at no cost"
            if has_epsilon:
                most = left_in_words(epsilon * (budget.epsilon / asked_epsilon))
                cure = f"a budget with delta = 0 may have up to {most} of epsilon"
        else:
            rooms = f"{left_in_words(epsilon)} of epsilon and {left_in_words(rho)} of rho"
            left = f"{rooms} are left, which is less than"
            cure = "ask for less"
        raise BudgetExhausted(
            f"ledger: {left} the run's budget {budget} (epsilon {spent_in_words(asked_epsilon)} "
            "or rho "
            f"{spent_in_words(asked_rho)}); {cure}"
        )
