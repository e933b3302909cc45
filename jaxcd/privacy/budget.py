"""What a user promises and is promised: neighbouring relation, budget and cost.

A randomised algorithm M is (epsilon, delta)-differentially private under a relation if for all
neighbours D, D' and all sets E of outputs P[M(D) in E] <= exp(epsilon) P[M(D') in E] + delta
(Dwork, McSherry, Nissim, Smith 2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from ..checks import check_count, check_positive, check_whole, choice_of
from ..errors import OptionError
from .groups import group_cost
from .rounding import promise_in_words, spent_in_words


class Relation(Enum):
    """Which data sets are neighbours."""

    REPLACE_ONE = "replace-one"
    """One record, all its columns, is replaced by another; the number of records is the same, and
    public.

    It is the only one: noise here is scaled by the number of records, and statistics are bounded
    for data sets of equal size.
    """


class Unit(Enum):
    """What a neighbour replaces: whom a promise protects."""

    ROW = "row"
    """One row; everybody with one row."""

    PERSON = "person"
    """One person with all of their rows, however many: the domain says which column tells people
    apart, and each row weighs one over their number (PRIVACY.md W)."""


def unit_words(unit: Unit, max_rows_per_person: int = 1) -> str:
    """Whom a promise protects; every page and file takes these words."""
    if unit is Unit.PERSON:
        return "one person, with however many rows"
    rows = max_rows_per_person
    return "one row" if rows == 1 else f"a person with up to {rows} rows"


def counted_words(unit: Unit) -> str:
    """What n counts: rows, or people."""
    return "people" if unit is Unit.PERSON else "rows"


def counted_records(number: int, unit: Unit) -> str:
    """So many rows, or people.

    >>> (
    ...     counted_records(1, Unit.ROW),
    ...     counted_records(1, Unit.PERSON),
    ...     counted_records(2_000, Unit.ROW),
    ... )
    ('1 row', '1 person', '2,000 rows')
    """
    return f"{number:,} {unit.value if number == 1 else counted_words(unit)}"


class Accounting(Enum):
    """How the events of a budget with a delta add up where their epsilons do not fit."""

    ZCDP = "zcdp"
    """By the rho of zCDP, for many pure events and for noise of which only that is known."""

    GAUSSIAN = "gaussian"
    """By the rho of Gaussian differential privacy (:mod:`jaxcd.privacy.gdp`): about 15% more noisy
    numbers for the same promise, from Gaussian noise that is rounded."""


MOST_GAUSSIAN_EPSILON = 2.0**20
"""The largest epsilon of a budget with Gaussian accounting: why is said in
:mod:`jaxcd.privacy.rounded_gaussian`.
"""


LEAST_EPSILON = 1e-200
"""The least epsilon of a budget, far below any that buys something: what smaller ones are divided
into are no numbers of double precision.
"""


def _check_relation(relation: Relation) -> None:
    if not isinstance(relation, Relation):
        raise OptionError(
            f"relation must be Relation.REPLACE_ONE, got {relation!r}: every mechanism here is "
            "proved for that one"
        )


def _check_unit(unit: Unit | str) -> Unit:
    try:
        return Unit(unit)
    except ValueError:
        raise OptionError(
            f"unit must be 'row' or 'person', got {unit!r}: say whom the budget protects"
        ) from None


def _check_delta(delta: float) -> float:
    try:
        number = float(delta)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(
            f"delta must be a number in [0, 1), got {delta!r}: give 0, or far less than 1/n"
        ) from error
    if isinstance(delta, bool) or not 0 <= number < 1:
        raise OptionError(
            f"delta must be in [0, 1), got {delta!r}: give 0 for pure privacy, or far less than "
            "1/n_samples"
        )
    return number


def _shown(value: Any) -> str:
    """As dataclasses are shown, without accounting and unit where these are the default."""
    parts = {part.name: getattr(value, part.name) for part in fields(value)}
    for name, usual in (("accounting", (None, Accounting.ZCDP)), ("unit", (Unit.ROW,))):
        if parts[name] in usual:
            del parts[name]
    words = ", ".join(f"{name}={part!r}" for name, part in parts.items())
    return f"{type(value).__name__}({words})"


@dataclass(frozen=True)
class Budget:
    """The total (epsilon, delta) that a run may spend, fixed before the data is read.

    Args:
        epsilon: from 1e-200, finite, in nats.
        delta: in [0, 1); 0 asks for pure differential privacy.  Choose it far below one over the
            number of records.
        relation: the neighbouring relation under which both hold.
        max_rows_per_person: k, the most rows that one person has in the table, from 1; public.
            Both numbers then hold for a person with all of up to k rows, and each event costs more
            (:mod:`jaxcd.privacy.groups`).
        accounting: how events add up where their epsilons do not fit, ``"zcdp"`` or ``"gaussian"``
            (or an ``Accounting``); the latter needs a delta.  None takes that of the ledger that
            the run is charged to, or else what promises most: Gaussian accounting for what draws
            Gaussian noise (releases among them), and zCDP for pure events.
        unit: whom both numbers protect, ``"row"`` or ``"person"`` (or a ``Unit``).  With
            ``"person"`` the domain declares the column that tells people apart, and the promise is
            about all rows of one person, however many; only releases have it, and their n is the
            number of people.

    Raises:
        OptionError: an argument is out of its range, or ``max_rows_per_person`` is given with the
            unit of a person.

    Example:
        >>> import jaxcd
        >>> print(jaxcd.Budget(1.0, 1e-6))
        epsilon=1, delta=1e-06 (replace-one)
        >>> print(jaxcd.Budget(1.0, max_rows_per_person=3))
        epsilon=1, delta=0 (replace-one, a person with up to 3 rows)
        >>> print(jaxcd.Budget(1.0, 1e-6, unit="person"))
        epsilon=1, delta=1e-06 (replace-one, one person, with however many rows)
    """

    epsilon: float
    delta: float = 0.0
    relation: Relation = Relation.REPLACE_ONE
    max_rows_per_person: int = field(default=1, kw_only=True)
    accounting: Accounting | None = field(default=None, kw_only=True)
    unit: Unit = field(default=Unit.ROW, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", _check_unit(self.unit))
        cure = "give a positive number such as 1.0, or use NO_PRIVACY to run without privacy"
        epsilon = check_positive("epsilon", self.epsilon, cure=cure)
        if epsilon < LEAST_EPSILON:
            raise OptionError(
                f"epsilon = {epsilon!r} is too small to be divided; use a larger epsilon, at least "
                f"{LEAST_EPSILON:g}"
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", _check_delta(self.delta))
        _check_relation(self.relation)
        rows = check_whole(
            "max_rows_per_person",
            self.max_rows_per_person,
            1,
            2**53,
            cure="give the most rows that one person has",
        )
        object.__setattr__(self, "max_rows_per_person", rows)
        if self.unit is Unit.PERSON and rows > 1:
            raise OptionError(
                f"max_rows_per_person = {rows}: with unit='person' the budget holds for any number "
                "of rows of a person; leave one of the two out"
            )
        if self.accounting is not None:
            chosen = choice_of("accounting", self.accounting, Accounting)
            object.__setattr__(self, "accounting", chosen)
        if self.accounting is Accounting.GAUSSIAN and not self.delta > 0:
            raise OptionError(
                "accounting: Gaussian accounting needs delta > 0, got delta=0: give the budget a "
                "delta such as 1e-6, or leave accounting out"
            )
        if self.accounting is Accounting.GAUSSIAN and not self.epsilon <= MOST_GAUSSIAN_EPSILON:
            raise OptionError(
                "accounting: Gaussian accounting takes an epsilon of at most 2**20, got "
                f"{self.epsilon!r}: leave accounting out"
            )

    def settled(self, usual: Accounting) -> Budget:
        """The budget with an accounting: its own, or else ``usual`` where that can be had."""
        if self.accounting is not None:
            return self
        can = self.delta > 0 and self.epsilon <= MOST_GAUSSIAN_EPSILON
        return replace(self, accounting=usual if can else Accounting.ZCDP)

    def __repr__(self) -> str:
        return _shown(self)

    def __str__(self) -> str:
        return f"{promise_in_words(self.epsilon, self.delta)} ({_terms(self)})"


def delta_warning(
    epsilon: float, delta: float, n_samples: int | None, *, unit: Unit = Unit.ROW
) -> str | None:
    """Words for a delta that would allow a mechanism to publish whole records, or None; from public
    numbers alone (``n_samples`` counts rows, or people).
    """
    if n_samples is None or math.isinf(epsilon) or not delta * n_samples >= 1:
        return None
    return (
        f"delta = {spent_in_words(delta)} is not below 1 / {counted_records(n_samples, unit)}: "
        "a mechanism with "
        "this delta may publish whole records; "
        f"use one far below, such as {10.0 ** math.floor(-math.log10(n_samples) - 1):g}"
    )


def _terms(promise: Budget | PrivacyCost) -> str:
    words = unit_words(promise.unit, promise.max_rows_per_person)
    person = "" if words == unit_words(Unit.ROW) else f", {words}"
    gaussian = promise.accounting is Accounting.GAUSSIAN
    return f"{promise.relation.value}{person}{', Gaussian accounting' if gaussian else ''}"


class NoPrivacy:
    """The type of :data:`NO_PRIVACY`, given as ``budget`` where no privacy is asked for."""

    _instance: NoPrivacy | None = None

    def __new__(cls) -> NoPrivacy:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "NO_PRIVACY"

    def __reduce__(self) -> str:
        return "NO_PRIVACY"


NO_PRIVACY = NoPrivacy()
"""Given as ``budget``, it runs without privacy; the only object of its class."""


def accounting_of(budget: Budget | NoPrivacy) -> Accounting:
    """What the rhos of a ledger with this budget, which has been settled, are of."""
    return (budget.accounting if isinstance(budget, Budget) else None) or Accounting.ZCDP


@dataclass(frozen=True)
class PrivacyCost:
    """What an output costs: (epsilon, delta) under a relation, and whether that is proved.

    :meth:`for_group` says what holds for people with more rows.

    Args:
        epsilon: in [0, inf]; infinity where no bound holds.
        delta: in [0, 1).
        relation: the neighbouring relation.
        proven: whether the claim stands on a proof.
        reason: the proof in a phrase, or why there is none.
        max_rows_per_person: the claim is about a person with up to so many rows.
        rho: where known, the rho of everything that epsilon does not bound by itself, for the same
            person; None where not.
        accounting: what rho is of.
        unit: what a neighbour replaces.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(0.5))
        >>> print(bought.cost.for_group(3).epsilon, bought.cost.proven)
        1.5 True
    """

    epsilon: float
    delta: float
    relation: Relation
    proven: bool
    reason: str
    max_rows_per_person: int = 1
    rho: float | None = None
    accounting: Accounting = Accounting.ZCDP
    unit: Unit = Unit.ROW

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise OptionError(
                f"epsilon must not be negative, got {self.epsilon!r}: a cost is zero, positive or "
                "infinite"
            )
        _check_delta(self.delta)
        _check_relation(self.relation)
        check_count("max_rows_per_person", self.max_rows_per_person, minimum=1)

    def for_group(self, rows: int) -> PrivacyCost:
        """Return what holds for a person (or a household) with ``rows`` rows, or for so many people
        where the unit is a person: see :mod:`jaxcd.privacy.groups`.

        Raises:
            OptionError: ``rows`` is no whole number from 1.
        """
        cost: PrivacyCost = group_cost(self, rows)
        return cost

    def __repr__(self) -> str:
        return _shown(self)

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return f"no privacy (epsilon=inf): {self.reason}"
        claim = "proved" if self.proven else "NOT proved"
        return (
            f"{promise_in_words(self.epsilon, self.delta)} ({_terms(self)}; {claim}: {self.reason})"
        )
