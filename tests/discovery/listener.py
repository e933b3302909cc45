"""A decider that writes down what it is asked."""

from __future__ import annotations

import jaxcd
from jaxcd.decisions import DecisionRun, Frontier, Question
from jaxcd.decisions.base import Decider


class _Listening(DecisionRun):
    def __init__(self, inner: DecisionRun, heard: list) -> None:
        self._inner, self._heard = inner, heard

    def answer(self, frontier: Frontier) -> None:
        questions: list[Question] = list(frontier.peek()) if frontier.stable else []
        self._heard.append((frontier.level, frontier.another_pass_follows, questions))
        self._inner.answer(frontier)


class Listener(Decider):
    """Threshold that writes down what it is asked."""

    alpha = 0.05

    def __init__(self) -> None:
        self.heard: list[tuple[int, bool, list[Question]]] = []

    @property
    def asked(self) -> set[tuple[int, int, tuple[int, ...]]]:
        """As (x, y, given)."""
        return {(q.x, q.y, given) for *_, qs in self.heard for q in qs for given in q.candidates}

    def start(self, session, accountant) -> DecisionRun:
        return _Listening(jaxcd.Threshold().start(session, accountant), self.heard)
