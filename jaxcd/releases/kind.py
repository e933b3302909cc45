"""What to buy: the options of a kind of release, which ask the door and pay the accountant."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from jaxcd.checks import a_type, said_of_columns
from jaxcd.data import Domain, Numeric
from jaxcd.data.rows import Rows
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.graphs import Knowledge
from jaxcd.privacy import (
    Accountant,
    Budget,
    NoiseSource,
    NoPrivacy,
    PrivacyFilter,
    keeps_what_is_paid,
    open_account,
)
from jaxcd.privacy.budget import Accounting
from jaxcd.privacy.certificate import plain
from jaxcd.queries import Door
from jaxcd.releases.plans import Plan

__all__ = [
    "ReleaseKind",
    "check_complete_numeric",
    "check_is_kind",
    "kind_from_json",
    "kind_to_json",
    "paid",
]


class ReleaseKind(abc.ABC):
    """What to buy: the options of a kind of release, for :func:`jaxcd.release`.  A frozen dataclass
    of plain values.
    """

    _kinds: ClassVar[dict[str, type[ReleaseKind]]] = {}
    word: ClassVar[str] = "user's own"
    """What a ledger file calls it."""
    title: ClassVar[str] = "released statistics, and the graph of the highest score"
    """What a recommendation calls it with its search."""
    needs_delta: ClassVar[bool] = False
    """Whether its noise is Gaussian at any budget, so that delta must be positive."""
    is_pure: ClassVar[bool] = False
    """Whether it is made of pure events that add up to epsilon, whatever delta is."""
    takes_people: ClassVar[bool] = False
    """Whether all it computes are sums over rows that take weights (``door.summed``), with ranges
    whose diameter is the sensitivity: then it is private for a person with several rows
    (PRIVACY.md W).  Others are refused for a budget with that unit."""
    takes_sites: ClassVar[bool] = False
    """Whether all it wants of the rows it asks by ``door.answer``: then several owners can answer
    together (PRIVACY.md Y)."""

    bought_in_domain: ClassVar[str] = ""
    """What of the release's domain was bought with it, in words; all else was declared."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ReleaseKind._kinds[cls.__name__] = cls

    @abc.abstractmethod
    def check(self, domain: Domain, n_samples: int) -> None:
        """Refuses, from public facts, what this kind cannot cover.

        Raises:
            DomainError: it does not take the columns.
            DataError: there are too few rows.
            OptionError: an option does not fit the domain.
        """

    @property
    def of_levels(self) -> ReleaseKind:
        """What buys the tables of discrete columns: the kind itself, or a part of it."""
        return self

    def knowing(self, knowledge: Knowledge | None) -> ReleaseKind:
        """The kind that need not measure what is known; the same where that saves nothing."""
        return self

    @abc.abstractmethod
    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """How large the noise on a released number will be, from public facts.  Raises as
        :meth:`check`, and for budgets that do not fit.
        """

    def check_delta(self, budget: Budget | NoPrivacy) -> None:
        """Raises OptionError where the noise is Gaussian and the budget has no delta."""
        if self.needs_delta and isinstance(budget, Budget) and not budget.delta > 0:
            raise OptionError(
                f"budget: {budget} has delta = 0, and Gaussian noise needs delta > 0; give one "
                "such as 1e-6"
            )

    @abc.abstractmethod
    def buy(self, door: Door, accountant: Accountant) -> Any:
        """The release: statistics of the rows behind the door, each released by a mechanism.

        The domain and the budget have been checked.  Give ``bought=self`` and :func:`paid` to the
        release.
        """

    @keeps_what_is_paid
    def release(
        self,
        data: Rows,
        *,
        budget: Budget | NoPrivacy,
        noise: NoiseSource | None = None,
        ledger: PrivacyFilter | None = None,
    ) -> Any:
        """Buys it with the whole budget; the release records these options.

        Args:
            data: rows of a declared domain: a Dataset or a Table.
            budget: the price, spent whole; or NO_PRIVACY.
            noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for
                experiments.
            ledger: a LedgerFile (or Ledger) that every event is charged to as well.

        Returns:
            The release; whatever is computed from it costs nothing more.

        Raises:
            DataError: data is no Dataset.
            OptionError: budget or noise is not of its kind, or delta is 0 where it must not be.
            PrivacyError: the domain was inferred from the data.
            DomainError: the columns are not of the kind that can be bought.
        """
        _check_arguments(data, budget, noise)
        door = Door(data, budget, by_person=self.takes_people)
        self.check(data.domain, door.n_samples)
        self.check_delta(budget)
        accountant = open_account(
            budget,
            door.noise(noise),
            ledger=ledger,
            parts=(self,),
            pure=self.is_pure,
            accounting=Accounting.GAUSSIAN,
            analysis=f"release: {self.word}",
            n_samples=door.n_samples,
            by_person=self.takes_people,
        )
        return self.buy(door, accountant).of_snapshot(data.snapshot).reading(data.missing)


def paid(accountant: Accountant) -> dict[str, Any]:
    """What a release records of its price: ``cost``, ``spent`` and ``charges``.

    Args:
        accountant: of the run.

    Returns:
        Arguments of a release.
    """
    budget = accountant.ledger.budget
    charges = tuple(accountant.ledger.to_table()) if isinstance(budget, Budget) else ()
    return {"cost": accountant.guarantee, "spent": accountant.ledger.spent, "charges": charges}


def kind_to_json(bought: ReleaseKind | None) -> dict[str, Any] | None:
    """The options of a purchase, as a file and a message have them."""
    if bought is None or not is_dataclass(bought):
        return None
    options = {part.name: getattr(bought, part.name) for part in fields(bought)}
    return {
        "name": type(bought).__name__,
        **{
            name: kind_to_json(option) if isinstance(option, ReleaseKind) else plain(option)
            for name, option in options.items()
        },
    }


# Options that older files have and that are no more.
_FORMER_OPTIONS = frozenset({"inflation_cap"})


def kind_from_json(entry: Mapping[str, Any] | None) -> ReleaseKind | None:
    """The options that a file records; None where it has none, or of a class that is not here."""
    if entry is None or (kind := ReleaseKind._kinds.get(entry.get("name", ""))) is None:
        return None
    options = {
        name: tuple(part) if isinstance(part, list) else part
        for name, part in entry.items()
        if name != "name" and name not in _FORMER_OPTIONS
    }
    return kind(**options)


def check_is_kind(kind: Any) -> None:
    """Raises OptionError unless it is a kind of release; the message names all kinds of jaxcd."""
    if isinstance(kind, ReleaseKind):
        return
    *most, last = sorted(
        name
        for name, each in ReleaseKind._kinds.items()
        if each.__module__.startswith("jaxcd.") and not inspect.isabstract(each)
    )
    raise OptionError(
        f"kind = {kind!r} is no kind of release; use jaxcd.{'(), '.join(most)}() or {last}()"
    )


def check_complete_numeric(domain: Domain, numbers: str) -> None:
    """Raises DomainError where a column is not numeric, or may have missing cells.

    Args:
        domain: public.
        numbers: what is bought, which have no place for missing cells; in the message.
    """
    others = [name for name in domain.names if not isinstance(domain[name], Numeric)]
    if others:
        raise DomainError(
            f"data: {said_of_columns(others, 'is', 'are')} not numeric; use Marginals or Histogram "
            "for discrete columns, or select the numeric ones with data.select(names)"
        )
    holes = [name for name, column in domain.columns.items() if column.missing is not None]
    if holes:
        raise DomainError(
            f"data: {said_of_columns(holes, 'may', 'may')} have missing cells, and {numbers} have "
            'no place for them; use Features, or Marginals with "bins" in the domain'
        )


def _check_arguments(data: Any, budget: Any, noise: Any) -> None:
    """Raises OptionError or DataError where an argument that every release takes is not of its
    kind.
    """
    if not isinstance(data, Rows):
        raise DataError(
            f"data: {a_type(data)} is not a Dataset; read it with "
            "Dataset.from_frame(frame, domain=...), or give a jaxcd.Table"
        )
    if not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.Budget(epsilon=1.0) (the whole price "
            "of the release), or jaxcd.NO_PRIVACY"
        )
    if noise is not None and not isinstance(noise, NoiseSource):
        raise OptionError(
            f"noise = <{type(noise).__name__}> is not a noise source; use None (secure) or "
            "jaxcd.SimulatedNoise(key)"
        )
