"""A level of questions given by hand."""

from __future__ import annotations

from jaxcd.decisions import Frontier, Question


class GivenQuestions(Frontier):
    """Keeps the answers."""

    def __init__(
        self, questions: list[Question], level: int = 1, *, another_pass_follows: bool = False
    ) -> None:
        self.level, self.stable, self.another_pass_follows = level, True, another_pass_follows
        self._questions = list(questions)
        self.answers: list[tuple[int, ...] | None] = []

    def peek(self, n_candidates: int | None = None) -> list[Question]:
        return list(self._questions)

    def keep(self) -> None:
        self._questions.pop(0)
        self.answers.append(None)

    def separate(self, given: tuple[int, ...]) -> None:
        assert given in self._questions.pop(0).candidates
        self.answers.append(given)
