"""What the deciders that pay by the round or by the answer share: how many, what one may cost, and
the walk.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from jaxcd.checks import is_whole
from jaxcd.citests import Query
from jaxcd.decisions.base import Decider, DecisionRun, Frontier, LevelSize, Question, queries_of
from jaxcd.errors import BudgetExhausted, OptionError
from jaxcd.privacy import Accountant, NoPrivacy, PrivacyFilter, split
from jaxcd.queries import Session

__all__ = [
    "CountedDecider",
    "PayingRun",
    "QueryRun",
    "answer_one_by_one",
    "default_rounds",
    "equal_pure_events",
    "first_independent",
    "stated",
]


def default_rounds(n_variables: int) -> int:
    """p (p - 1) / 2 - (p - 1), the pairs that a tree does not join, and at least half of all pairs
    (p = 2).

    Running out of rounds is much worse than more noise a round (PRIVACY.md N.3); a graph of fewer
    edges than a tree runs out of them.
    """
    n_pairs = n_variables * (n_variables - 1) // 2
    return max(n_pairs - (n_variables - 1), -(-n_pairs // 2))


@dataclass(frozen=True)
class CountedDecider(Decider):
    """A decider that divides its budget among a number of answers, or rounds of answers, fixed
    before the data is read; None for a default that follows from the number of columns.
    """

    #: The option that holds the number.
    _counts: ClassVar[str]
    #: What a level can need as many of: a field of LevelSize.
    _per_level: ClassVar[str]

    divisible = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given = getattr(self, self._counts)
        if given is not None and not is_whole(given, 1):
            raise OptionError(
                f"{self._counts} = {given!r} is not a positive whole number; give one, or None "
                "for the default"
            )

    @abc.abstractmethod
    def _default(self, n_columns: int) -> int:
        """The number where none was given."""

    def _count(self, n_columns: int) -> int:
        return getattr(self, self._counts) or self._default(n_columns)

    def for_level(self, size: LevelSize) -> Self:
        """With as many answers, or rounds, as the level can need."""
        if getattr(self, self._counts) is not None:
            return self
        return replace(self, **{self._counts: getattr(size, self._per_level)})


def stated(session: Session, n_samples: int | None = None) -> dict[str, Any]:
    """What a mechanism is told of a margin on ``n_samples`` rows (all, if None): sensitivity, pad
    and relation.
    """
    bound = session.sensitivity(n_samples)
    return {"sensitivity": bound.value, "pad": bound.pad, "relation": session.relation}


class PayingRun(DecisionRun):
    """A run that pays: it opens the session, once the sensitivity of its margins is known."""

    def __init__(self, session: Session, accountant: Accountant) -> None:
        self._session = session
        self._accountant = accountant
        self._stated = stated(session)
        session.open(accountant)


def check_delta(ledger: PrivacyFilter, what: str) -> None:
    """Raises OptionError where a budget has no delta, which Gaussian noise needs."""
    if not ledger.remaining_rho > 0:
        raise OptionError(f"budget: {what} needs delta > 0; give the budget a delta such as 1e-6")


def equal_pure_events(
    ledger: PrivacyFilter, n_events: int, *, of_rho: Callable[[float], float] | None = None
) -> float:
    """The largest epsilon such that ``n_events`` pure events of it fit into what is left of the
    budget.

    The larger of epsilon / n (pure composition) and what rho / n allows (zCDP), each rounded down;
    infinite without privacy.

    Args:
        of_rho: the epsilon of the mechanism that costs rho; None for pure events by the ledger's
            accounting.
    """
    if isinstance(ledger.budget, NoPrivacy):
        return math.inf
    pure = (
        split(ledger.remaining_epsilon, [1.0] * n_events)[0]
        if ledger.remaining_epsilon > 0
        else 0.0
    )
    if ledger.remaining_rho > 0:
        of_rho = of_rho or ledger.pure_within
        pure = max(pure, of_rho(split(ledger.remaining_rho, [1.0] * n_events)[0]))
    return pure


def answer_one_by_one(
    frontier: Frontier,
    answers: Callable[[list[Question]], Iterable[tuple[int, ...] | None]],
    *,
    block: int | None,
    look_ahead: int,
) -> bool:
    """Walks a frontier in order, one paid answer a question; returns whether the budget ran dry.

    Args:
        answers: lazily, for each of some questions, the set that separates its pair, or None to
            keep the edge; may raise BudgetExhausted.
        block: candidates looked at together where answers change nothing; look_ahead: where each
            separation may change what follows.
    """
    try:
        while questions := frontier.peek(block if frontier.stable else look_ahead):
            for given in answers(questions):
                if given is None:
                    frontier.keep()
                    continue
                frontier.separate(given)
                if not frontier.stable:
                    break
    except BudgetExhausted:
        return True
    return False


def first_independent(question: Question, ask: Callable[[Query], bool]) -> tuple[int, ...] | None:
    """The first candidate of which ``ask`` says "independent"; those behind it are not asked."""
    return next(
        (s for s, q in zip(question.candidates, queries_of(question), strict=True) if ask(q)), None
    )


class QueryRun(PayingRun):
    """A run that pays for every query."""

    #: Candidates looked at together where answers change nothing; None for all.
    _block: int | None = None

    @abc.abstractmethod
    def _compute(self, queries: Sequence[Query]) -> None:
        """Computes ahead, in one batch, what queries will be asked about."""

    @abc.abstractmethod
    def _ask(self, query: Query) -> bool:
        """Whether the answer, which is paid for, is "independent"."""

    def independent(self, queries: list[Query]) -> np.ndarray:
        self._compute(queries)
        return np.array([self._ask(query) for query in queries], dtype=bool)

    def answer(self, frontier: Frontier) -> None:
        self.exhausted |= answer_one_by_one(
            frontier, self._answers, block=self._block, look_ahead=64
        )

    def _answers(self, questions: list[Question]) -> Iterator[tuple[int, ...] | None]:
        self._compute([query for question in questions for query in queries_of(question)[:8]])
        for question in questions:
            yield first_independent(question, self._ask)
