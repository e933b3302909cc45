r"""Scheduled: any decider that pays by the answer, with a budget of its own for every level.

CURATE's observation (Bhattacharjee and Tandon 2024) is that early levels decide the most pairs and
should get more of the budget than late ones.  Here the weights are public, level l gets

    w_l / (w_l + w_{l+1} + ... + w_L)

of *what is left* when it begins, in epsilon and in rho, and within the level the inner decider
divides that among as many answers as the level can need, a number that follows from the released
graph.  What a level leaves goes to the later ones.

**Privacy.**  A level's share is a second, smaller filter in front of the run's: an event is
admitted iff the level's pure epsilons add up to at most its share of epsilon, or its rhos to at
most its share of rho.  Either way it fits into what the run's ledger had left at the level's start,
so that ledger, which is charged every event, admits it, and the guarantee is the ledger's.  Prices
are computed from what the ledger has left and from what was released; the filter holds for events
chosen adaptively.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from jaxcd.checks import check_number, check_weights
from jaxcd.decisions.base import Decider, DecisionRun, Frontier, LevelSize, Price
from jaxcd.errors import OptionError
from jaxcd.privacy import Accountant, NoPrivacy, PrivacyFilter, split
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim
from jaxcd.queries import Session

__all__ = ["Scheduled"]


def _share(left: float, weights: Sequence[float]) -> float:
    if math.isinf(left):
        return left
    return split(left, weights)[0] if left > 0 else 0.0


class _Rehearsal:
    """A session that is not opened, so that a decider can be started for its checks alone."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self, accountant: Accountant) -> None:
        """Buys nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _ScheduledRun(DecisionRun):
    def __init__(self, session: Session, accountant: Accountant, config: Scheduled) -> None:
        self._session = session
        self._accountant = accountant
        self._config = config
        self._levels: list[DecisionRun] = []

    def answer(self, frontier: Frontier) -> None:
        weights = self._config.split
        if frontier.level >= len(weights):
            return
        ledger = self._accountant.ledger
        if not isinstance(ledger.budget, NoPrivacy) and not (
            ledger.remaining_epsilon > 0 or ledger.remaining_rho > 0
        ):
            self.exhausted = True
            return
        later = list(weights[frontier.level + 1 :])
        if frontier.another_pass_follows:
            share = self._config.later_pass_share
            later.append(sum(weights) * share / (1 - share))
        parts = [weights[frontier.level], *later]
        stage = self._accountant.stage(
            epsilon=_share(ledger.remaining_epsilon, parts), rho=_share(ledger.remaining_rho, parts)
        )
        run = self._config.decider.for_level(_size(frontier)).start(self._session, stage)
        self._levels.append(run)
        run.answer(frontier)
        self.unanswered |= run.exhausted

    def supports_collider(self, x: int, z: int, y: int) -> bool:
        return all(run.supports_collider(x, z, y) for run in self._levels)


def _size(frontier: Frontier) -> LevelSize:
    questions = frontier.peek()
    pairs = {frozenset((question.x, question.y)) for question in questions}
    return LevelSize(
        len(questions), len(pairs), sum(len(question.candidates) for question in questions)
    )


@dataclass(frozen=True)
class Scheduled(Decider):
    r"""A decider with a budget for every level of the search.

    Level l gets w_l / (w_l + ... + w_L) of what is left when it begins.  A level whose share is
    used up keeps the edges that it has not paid to remove, and the search goes on with the next
    level.

    Args:
        decider: ``NoisyThreshold``, ``SparseVector``, ``SieveAndExamine``, ``ExponentialSelect`` or
            ``NoisyRank``.  Its count (``n_queries``, ``n_rounds``, ``n_questions``), where it is
            given, is that of each level; None takes what the level can need: the number of its
            candidates for deciders that pay for every query, else that of its pairs.  Then a level
            never runs dry (but for passes of a sieve that the examination does not confirm).
        split: positive weights w_0, ..., w_L of the levels 0, 1, ...; levels after the last are not
            asked.
        later_pass_share: the part of the whole, between 0 and 1, that a search with a second pass
            over the levels (FCI's possible-d-sep) holds back for it; there the levels divide it by
            the same weights.  A search with one pass spends it.

    Raises:
        OptionError: the decider cannot be divided by level, or the weights are none.

    Guarantee:
        Relation, sensitivity, events and public facts: those of ``decider``; n, the domain and the
        weights are public.  Every event is charged to the run's ledger: the whole run is (epsilon,
        delta)-DP of its budget.  Moreover, when level l begins, its events together are within its
        share of the epsilon that is left, or within its share of the rho that is left.  Proof: the
        docstring of :mod:`jaxcd.decisions.scheduled`, :mod:`jaxcd.privacy.ledger`.

    Source:
        Bhattacharjee and Tandon 2024, CURATE (arXiv 2409.19060), for budgets by level; theirs rest
        on other sensitivities.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.Scheduled(jaxcd.SparseVector(), split=(0.6, 0.4)),
        ...     budget=jaxcd.Budget(4.0),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        Pollution --> Cancer
        Smoker --> Cancer
        Cancer --> Xray
        Dyspnoea --> Cancer
    """

    claim = GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget, and each level is within its share of what "
        "was left of it",
        "jaxcd.decisions.scheduled, jaxcd.privacy.ledger",
        assumptions=PUBLIC + "; those of the decider it holds",
    )

    decider: Decider
    split: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    later_pass_share: float = 0.15
    alpha: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.decider, Decider) or not self.decider.divisible:
            raise OptionError(
                f"decider = {self.decider!r} has no price by the answer; use NoisyThreshold, "
                "SparseVector, SieveAndExamine, "
                "ExponentialSelect or NoisyRank (LevelwiseGaussian has level_shares of its own)"
            )
        object.__setattr__(self, "alpha", self.decider.alpha)
        super().__post_init__()
        check_weights("split", self.split, cure="give one a level, as (0.4, 0.3, 0.2, 0.1)")
        check_number("later_pass_share", self.later_pass_share, 0, 1, "()", cure="give a share")

    @property
    def name(self) -> str:
        """``Scheduled(...)`` with the inner decider's name."""
        return f"Scheduled({self.decider.name})"

    @property
    def needs_delta(self) -> bool:  # type: ignore[override]
        """Whether the inner decider does."""
        return self.decider.needs_delta

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Refused: what is bought differs by level."""
        raise OptionError(
            "decider: what Scheduled buys differs by level; plan with the decider that it holds"
        )

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        self.decider.start(cast(Session, _Rehearsal(session)), accountant)
        session.open(accountant)
        return _ScheduledRun(session, accountant, self)
