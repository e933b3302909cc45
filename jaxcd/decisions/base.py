"""How a search and a decider talk.

A search holds a :class:`Frontier`: the questions of one level in their order; a search may make
more than one pass over the levels, and says so.  A decider walks it: it peeks at the next
questions, computes as many margins ahead as it likes (unreleased numbers cost nothing), and answers
from the front, one question after the other: *keep* (dependent given every candidate) or *separate*
(independent given this candidate).  The decider owns the inner loop and pays for every answer; the
search owns adjacency and never sees a number.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxcd.checks import hold_python_numbers
from jaxcd.citests import Query, check_alpha
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.privacy import Accountant, Accounting, PrivacyFilter
from jaxcd.queries import Session

__all__ = [
    "Decider",
    "DecisionRun",
    "Frontier",
    "LevelSize",
    "Price",
    "Question",
    "check_is_decider",
    "queries_of",
]


class Question(NamedTuple):
    """Whether a set among ``candidates`` separates x and y.

    Attributes:
        x: position of a column.
        y: position of another column.
        candidates: the sets of positions, in the order in which they are to be asked.
    """

    x: int
    y: int
    candidates: tuple[tuple[int, ...], ...]


class Frontier(abc.ABC):
    """The unanswered questions of one level, in order."""

    level: int
    # : Whether an answer leaves the other questions as they are (stable PC) or may change them (the
    # original order).
    stable: bool
    # : Whether the search will ask again after its last level, in another pass over what is left
    # (FCI's possible-d-sep): : a decider that spends by the level holds back for it.
    another_pass_follows: bool = False

    @abc.abstractmethod
    def peek(self, n_candidates: int | None = None) -> list[Question]:
        """The next questions, as they stand now, until they hold ``n_candidates`` candidates
        together (None: all).
        """

    @abc.abstractmethod
    def keep(self) -> None:
        """Answers the first question: dependent given every candidate."""

    @abc.abstractmethod
    def separate(self, given: tuple[int, ...]) -> None:
        """Answers the first question: independent given this set."""


def queries_of(question: Question) -> list[Query]:
    """The normal forms of a question's queries, in order."""
    return [Query.of(question.x, question.y, given) for given in question.candidates]


class DecisionRun(abc.ABC):
    """A decider at work on one session: the state of one run."""

    #: Whether the budget ran dry: what was not answered is kept.
    exhausted: bool = False
    # : Whether questions of an earlier level were left unanswered, and kept, although the run goes
    # on (a share of the budget ran dry).
    unanswered: bool = False

    @property
    def released_margins(self) -> Sequence[Mapping[str, Any]] | None:
        """What was released about each pair, in the order of the decisions: pair (names), level,
        margin, threshold, sigma.

        Noisy numbers only; None where a decider does not say.
        """
        return None

    @abc.abstractmethod
    def answer(self, frontier: Frontier) -> None:
        """Answers every question of the frontier; where the budget runs dry, leaves the rest
        unanswered.
        """

    def supports_collider(self, x: int, z: int, y: int) -> bool:
        """Whether what was released so far supports x -> z <- y, where x and y were separated by a
        set without z.

        Post-processing: free.  Deciders that know nothing more than the separating set say True.
        """
        return True

    def independent(self, queries: list[Query]) -> np.ndarray:
        """Answers single queries: bool (n_queries,), True for independent.  Not every decider
        can.
        """
        raise OptionError(
            f"{type(self).__name__} answers no single queries; use NoisyThreshold or Threshold"
        )


class Price(NamedTuple):
    """What a budget buys.

    Attributes:
        n_answers: among which it is divided.
        noise: the standard deviation of the noise of one, in the margin's unit.
        threshold: what a noisy margin must exceed to keep an edge, in units of the noise.
    """

    n_answers: int
    noise: float
    threshold: float = 0.0


class LevelSize(NamedTuple):
    """What a level can ask: its questions, its pairs of columns, and the candidates of all
    questions together.
    """

    n_questions: int
    n_pairs: int
    n_candidates: int


class Decider(abc.ABC):
    """Configuration of how answers are given.  ``alpha``: the level of the test, 0 < alpha < 1."""

    @property
    def title(self) -> str:
        """What a recommendation calls a search with it."""
        return f"PC with {type(self).__name__}"

    alpha: float

    @property
    def name(self) -> str:
        """The decider's name in reports and on the command line."""
        return type(self).__name__

    @abc.abstractmethod
    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        """A run on one session: checks that session, budget and decider fit together before
        anything is charged, opens the session, and prices its events by what is left."""

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """What ``ledger`` buys of this decider for a table of ``n_columns``, for margins of this
        sensitivity (pads included).

        From public facts alone: planning calls it before any data is read.  Where the price of an
        answer depends on what was answered before, that of the worst case.

        Raises:
            PrivacyError: the decider fits no budget.
            OptionError: it does not fit this one.
        """
        raise PrivacyError(
            f"decider: {self.name} adds no noise and fits no budget; use LevelwiseGaussian or "
            "SparseVector"
        )

    @property
    def accounting(self) -> Accounting:
        """What promises most for its events, where a budget says none."""
        return Accounting.GAUSSIAN if self.needs_delta else Accounting.ZCDP

    # : Whether a share of a budget can be spent on one level alone (:class:`jaxcd.Scheduled`):
    # :meth:`for_level`.
    divisible: bool = False
    #: Whether it fits a budget: it pays for what it answers.
    pays: bool = True
    #: Whether it adds Gaussian noise, for which a budget needs a delta.
    needs_delta: bool = False

    def for_level(self, size: LevelSize) -> Decider:
        """The decider with its count, where that was left open, set to what this level can need."""
        return self

    #: Whether the decider answers a whole level at once, and so needs the stable order.
    needs_stable: bool = False
    # : Whether single queries can be asked (``DecisionRun.independent``), as the majority rule for
    # colliders does.
    answers_queries: bool = False

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_alpha(self.alpha)


def check_is_decider(decider: Any) -> None:
    """Raises OptionError unless it is a decider, and no class of them."""
    if not isinstance(decider, Decider):
        raise OptionError(
            f"decider = {decider!r} is not a decider; use an object such as "
            "jaxcd.LevelwiseGaussian()"
        )
