"""What is recommended: the method, the reasons for it, and what was considered besides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from jaxcd.advice.choosing import Algorithm, Choice
from jaxcd.privacy import NO_PRIVACY, Budget, NoPrivacy, Unit
from jaxcd.releases import ReleaseKind

__all__ = ["Alternative", "Recommendation", "of_release", "of_tests"]


@dataclass(frozen=True)
class Alternative:
    """A method that was not chosen, and the reason against it."""

    title: str
    reason: str

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


@dataclass(frozen=True)
class Recommendation:
    """What to run, and why; ``print`` shows all of it.

    Args:
        choice: algorithm, kind of release, or test and decider.
        reasons: sentences with the numbers that decided.
        alternatives: what was considered besides.
        warning: where this budget is too small for so many rows to find much, else None.
        delta_warning: where delta is not below 1 / n_samples, else None.
        budget: what it is for; :attr:`call` spells it out where its accounting was chosen.
    """

    choice: Choice = field(repr=False)
    reasons: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    warning: str | None
    delta_warning: str | None = None
    budget: Budget | NoPrivacy = field(default=NO_PRIVACY, repr=False)

    @property
    def title(self) -> str:
        """The method in a few words."""
        return self.choice.title

    @property
    def kind(self) -> ReleaseKind | None:
        """The release to buy with :func:`jaxcd.release`; None for a search by tests."""
        return self.choice.kind

    def warned(self, warning: str) -> Recommendation:
        """The same with this warning."""
        said = _said(self.title, self.reasons, warning)
        return replace(self, choice=replace(self.choice, reasons=said), warning=warning)

    def __str__(self) -> str:
        lines = [
            f"Recommended: {self.title}",
            f"  {self.call}",
            *(f"  - {reason}" for reason in self.reasons),
        ]
        lines += [f"Warning: {words}" for words in (self.warning, self.delta_warning) if words]
        lines += ["Considered:"] if self.alternatives else []
        return "\n".join([*lines, *(f"  - {alternative}" for alternative in self.alternatives)])

    @property
    def call(self) -> str:
        """The call that runs it."""
        budget = f"budget={_in_call(self.budget)}"
        if self.kind is not None:
            bought = f"jaxcd.release(data, jaxcd.{type(self.kind).__name__}(), {budget})"
            if self.choice.algorithm is Algorithm.FCI:
                return f'jaxcd.search({bought}, algorithm="fci")'
            search = "gfci" if self.choice.algorithm.finds_pag else "search"
            return f"jaxcd.{search}({bought})"
        test = f"jaxcd.{type(self.choice.test).__name__}()"
        if self.choice.tree is not None:
            return f"jaxcd.tree_pc(data, test={test}, {budget}, key=key)"
        decider = f"jaxcd.{type(self.choice.decider).__name__}()"
        search = "fci" if self.choice.algorithm.finds_pag else "pc"
        return f"jaxcd.{search}(data, test={test}, decider={decider}, {budget}, key=key)"


def _in_call(budget: Budget | NoPrivacy) -> str:
    if isinstance(budget, NoPrivacy) or budget.accounting is None:
        return "budget"
    rows = budget.max_rows_per_person
    person = "" if rows == 1 else f", max_rows_per_person={rows}"
    person += ", unit='person'" if budget.unit is Unit.PERSON else ""
    return (
        f"jaxcd.Budget({budget.epsilon!r}, {budget.delta!r}{person}, "
        f"accounting=jaxcd.privacy.{budget.accounting})"
    )


def of_release(
    kind: ReleaseKind,
    reasons: tuple[str, ...],
    alternatives: tuple[Alternative, ...],
    warning: str | None,
    algorithm: Algorithm = Algorithm.RELEASE,
) -> Recommendation:
    choice = Choice(None, None, (), algorithm, kind)
    said = _said(choice.title, reasons, warning)
    return Recommendation(replace(choice, reasons=said), reasons, alternatives, warning)


def of_tests(
    choice: Choice,
    reasons: tuple[str, ...],
    alternatives: tuple[Alternative, ...],
    warning: str | None = None,
) -> Recommendation:
    said = (*_said(choice.title, reasons, warning), *choice.reasons)
    return Recommendation(replace(choice, reasons=said), reasons, alternatives, warning)


def _said(title: str, reasons: tuple[str, ...], warning: str | None) -> tuple[str, ...]:
    """What a run says about its choice: each with a label, as the reasons of :func:`choose`
    have.
    """
    lines = (f"chosen: {title}", *(f"because: {reason}" for reason in reasons))
    return (*lines, f"warning: {warning}") if warning else lines
