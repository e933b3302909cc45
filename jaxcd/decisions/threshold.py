"""No privacy: compare the margin with zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxcd.citests import Query
from jaxcd.decisions.base import Decider, DecisionRun, Frontier, Question, queries_of
from jaxcd.decisions.rounds import answer_one_by_one
from jaxcd.errors import PrivacyError
from jaxcd.privacy import Accountant
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Session

__all__ = ["Threshold"]

# Candidates of each open question computed in one round; doubled after every round, so at most half
# of them are wasted.
_FIRST_ROUND = 2
# Look-ahead, in candidates, where each answer may change the questions behind it.
_LOOK_AHEAD = 128
# The same where answers change nothing: what is held in memory at once.
_MOST_CANDIDATES = 1 << 18


class _ThresholdRun(DecisionRun):
    def __init__(self, session: Session) -> None:
        self._session = session

    def independent(self, queries: list[Query]) -> np.ndarray:
        found: np.ndarray = self._session.margins(queries).expose() <= 0
        return found

    def _first_separating(self, questions: list[Question]) -> list[tuple[int, ...] | None]:
        """For each question its first candidate with a margin of at most zero."""
        found: list[tuple[int, ...] | None] = [None] * len(questions)
        open_questions = list(range(len(questions)))
        start, width = 0, _FIRST_ROUND
        while open_questions:
            chunks = [
                questions[i]._replace(candidates=questions[i].candidates[start : start + width])
                for i in open_questions
            ]
            asked = [query for chunk in chunks for query in queries_of(chunk)]
            independent = self.independent(asked)
            still_open, place = [], 0
            for i, chunk in zip(open_questions, chunks, strict=True):
                hits = np.flatnonzero(independent[place : place + len(chunk.candidates)])
                place += len(chunk.candidates)
                if len(hits):
                    found[i] = chunk.candidates[hits[0]]
                elif len(questions[i].candidates) > start + width:
                    still_open.append(i)
            open_questions = still_open
            start, width = start + width, 2 * width
        return found

    def answer(self, frontier: Frontier) -> None:
        answer_one_by_one(
            frontier, self._first_separating, block=_MOST_CANDIDATES, look_ahead=_LOOK_AHEAD
        )


@dataclass(frozen=True)
class Threshold(Decider):
    """Decides without noise: independent iff the statistic is at most its critical value at level
    alpha.

    For runs without privacy and for releases, which have been paid for.  A private run on a data
    set refuses it with a PrivacyError.

    Args:
        alpha: level of the test, 0 < alpha < 1.

    Raises:
        OptionError: alpha is out of its range.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.ChiSquare(),
        ...     decider=jaxcd.Threshold(alpha=0.01),
        ...     budget=jaxcd.NO_PRIVACY,
        ...     key=None,
        ... )
        >>> print(run.graph)
        Pollution --> Cancer
        Smoker --> Cancer
        Xray --> Cancer
        Dyspnoea --> Cancer
    """

    claim = GuaranteeClaim(
        "none: compares without noise; refused under a budget",
        proof="no noise",
        proven=False,
        assumptions="-",
    )

    title = "PC without privacy"

    alpha: float = 0.05

    answers_queries = True
    pays = False

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        if session.private:
            raise PrivacyError(
                "decider: Threshold compares without noise and protects nobody; use "
                "LevelwiseGaussian, SparseVector or "
                "SieveAndExamine, or budget=NO_PRIVACY"
            )
        return _ThresholdRun(session)
