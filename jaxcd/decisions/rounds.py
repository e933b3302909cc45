"""What the deciders that pay by the round or by the answer share: how many, what one may cost, and
the walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jaxcd.checks import is_whole
from jaxcd.citests import Query
from jaxcd.decisions.base import Frontier, Question, queries_of
from jaxcd.errors import BudgetExhausted, OptionError
from jaxcd.privacy import NoPrivacy, PrivacyFilter, rho_to_pure, split

__all__ = [
    "answer_one_by_one",
    "check_count",
    "default_rounds",
    "equal_pure_events",
    "first_independent",
]


def default_rounds(n_variables: int) -> int:
    """p (p - 1) / 2 - p, the pairs that a graph of average degree 2 does not join, and at least
    half of all pairs (p <= 4).

    Running out of rounds is much worse than more noise a round (PRIVACY.md N.3).
    """
    n_pairs = n_variables * (n_variables - 1) // 2
    return max(n_pairs - n_variables, -(-n_pairs // 2))


def check_count(argument: str, value: int | None) -> None:
    """Raises OptionError unless value is None or a positive integer."""
    if value is not None and not is_whole(value, 1):
        raise OptionError(
            f"{argument} = {value!r} is not a positive whole number; give one, or None for the "
            "default"
        )


def check_delta(ledger: PrivacyFilter, what: str) -> None:
    """Raises OptionError where a budget has no delta, which Gaussian noise needs."""
    if not ledger.remaining_rho > 0:
        raise OptionError(f"budget: {what} needs delta > 0; give the budget a delta such as 1e-6")


def equal_pure_events(
    ledger: PrivacyFilter, n_events: int, *, of_rho: Callable[[float], float] = rho_to_pure
) -> float:
    """The largest epsilon such that ``n_events`` pure events of it fit into what is left of the
    budget.

    The larger of epsilon / n (pure composition) and what rho / n allows (zCDP), each rounded down;
    infinite without privacy.

    Args:
        of_rho: the epsilon of the mechanism that costs rho: sqrt(2 rho) in general, sqrt(8 rho) for
            exponential mechanisms.
    """
    if isinstance(ledger.budget, NoPrivacy):
        return math.inf
    pure = (
        split(ledger.remaining_epsilon, [1.0] * n_events)[0]
        if ledger.remaining_epsilon > 0
        else 0.0
    )
    if ledger.remaining_rho > 0:
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
