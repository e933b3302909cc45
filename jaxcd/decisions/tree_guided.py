"""The measuring half of tree-guided PC: what is bought, in four batches, and what follows from it.

The search (:mod:`jaxcd.discovery.constraint.tree`) brings questions and gets answers; numbers stay
here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from jaxcd.checks import check_count, check_number, check_weights, hold_python_numbers
from jaxcd.citests import Query, check_alpha
from jaxcd.decisions.base import Price, Question
from jaxcd.decisions.levelwise_gaussian import norm_deviation
from jaxcd.decisions.measurements import margins_of, openings, released_margin, smallest_margins
from jaxcd.decisions.rounds import check_delta
from jaxcd.errors import OptionError
from jaxcd.ops import tails
from jaxcd.privacy import Accountant, Accounting, NoPrivacy, PrivacyFilter, split
from jaxcd.queries import Session
from jaxcd.releases import ContrastMoments, release_contrast_moments

__all__ = ["TreeGuided", "TreeOptions"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class TreeOptions:
    """The public constants of tree-guided PC.

    Args:
        shares: weights of the four batches; what a batch without questions does not take goes to
            those after it.
        alpha: level of the margins.
        grow_size: largest sets.
        shrink_size: as ``grow_size``.
        filtered: whether grow takes only separators that are dependent on both ends at level 0
            (fewer sets, but separators that block a path opened at a collider are lost).
        false_edges: false edges that noise alone may add in grow, per column.
        forest_bonus: how many sigma below zero a forest edge must fall to be removed.
        evident_sigmas: how many sigma of the release's noise a level-0 margin must be above zero to
            prove that its ends are connected.
        collider_sigmas: how many sigma above zero the bought number of a collider with dependent
            ends must be.
        false_colliders: how many false colliders with independent ends noise alone may add.

    Example:
        >>> import jaxcd
        >>> jaxcd.decisions.TreeOptions(grow_size=1).grow_size
        1
    """

    shares: tuple[float, float, float, float] = (0.25, 0.40, 0.15, 0.20)
    title = "tree-guided PC"

    alpha: float = 0.05
    grow_size: int = 2
    shrink_size: int = 3
    filtered: bool = False
    false_edges: float = 0.1
    forest_bonus: float = 1.0
    evident_sigmas: float = 2.0
    collider_sigmas: float = 2.0
    false_colliders: float = 0.3

    @property
    def accounting(self) -> Accounting:
        """Gaussian: so is its noise."""
        return Accounting.GAUSSIAN

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """As for deciders: the questions whether to add an edge, with all pairs open."""
        check_delta(ledger, "the tree-guided search")
        n_pairs = n_columns * (n_columns - 1) // 2
        grow = self.shares[1] / sum(self.shares) * ledger.remaining_rho
        tail = min(0.25, self.false_edges * n_columns / max(n_pairs, 1))
        return Price(
            n_pairs,
            sensitivity * math.sqrt(n_pairs / (2 * grow)),
            tails.normal_quantile(tail) if tail > 0 else math.inf,
        )

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_alpha(self.alpha)
        if len(self.shares) != 4:
            raise OptionError(
                f"shares = {self.shares!r} are not four weights; (0.25, 0.4, 0.15, 0.2) is usual"
            )
        check_weights("shares", tuple(self.shares), cure="(0.25, 0.4, 0.15, 0.2) is usual")
        for argument in ("grow_size", "shrink_size"):
            check_count(argument, getattr(self, argument), minimum=1)
        for argument in (
            "false_edges",
            "forest_bonus",
            "evident_sigmas",
            "collider_sigmas",
            "false_colliders",
        ):
            check_number(argument, getattr(self, argument), 0, cure="give one")


class TreeGuided:
    """One run: the level-0 release, and up to three batches of noisy margins.

    Args:
        session: of the data and the test.
        accountant: of the run.
        options: public constants.
        absent: pairs (x < y) that are known not to be joined; public.  Nothing is said of them.
        kept: pairs (x < y) that are known to be joined, as ``absent``.

    Guarantee:
        Relation: replace-one; n, the domain and the options are public.  Events: ``GaussianEvent``
        for the release, and one for each batch that is asked (L2 sensitivity Delta sqrt(N)); each
        must be asked at most once.  The questions must depend on answers of this object only.
        Proof: :mod:`jaxcd.ops.moments`, :mod:`jaxcd.decisions.measurements`.
    """

    def __init__(
        self,
        session: Session,
        accountant: Accountant,
        options: TreeOptions,
        *,
        absent: frozenset[Pair] = frozenset(),
        kept: frozenset[Pair] = frozenset(),
    ) -> None:
        session.sensitivity()  # all three refuse before anything is charged
        _ = session.view_cardinalities
        if not accountant.ledger.remaining_rho > 0:
            raise OptionError(
                "budget: tree_pc adds Gaussian noise and needs delta > 0; give the budget a delta "
                "such as 1e-6"
            )
        session.open(accountant)
        self._session = session
        self._accountant = accountant
        self._options = options
        self._moments: ContrastMoments = release_contrast_moments(
            session, accountant, rho=self._price(0), label="level 0: contrast moments"
        )
        # : What was released about each pair, in the order of the decisions: pair (names), level,
        # margin, threshold, sigma.
        self.released_margins: list[dict[str, Any]] = []
        level_zero = {
            pair: self._moments.margin(*pair, alpha=options.alpha)
            for pair in combinations(range(session.n_variables), 2)
        }
        for pair, margin in level_zero.items():
            if pair in absent or pair in kept:
                continue
            sigma = norm_deviation(self._moments, *pair)
            self.released_margins.append(
                released_margin(session, Question(*pair, ()), "release", margin, 0.0, sigma)
            )
        # : Pairs that are dependent beyond noise at level 0, and those of them that are by more
        # than evident_sigmas of the noise.
        self.dependent = frozenset(pair for pair, margin in level_zero.items() if margin > 0)
        self.evident = frozenset(
            pair
            for pair in self.dependent
            if level_zero[pair] > options.evident_sigmas * norm_deviation(self._moments, *pair)
        )
        #: The maximum spanning forest of these by mutual information.
        self.forest: frozenset[Pair] = self._moments.spanning_forest(
            alpha=options.alpha, absent=absent, kept=kept
        )

    def _price(self, batch: int) -> float:
        """The share of what is left that this batch gets: what a batch without questions did not
        take goes to those after it.
        """
        ledger = self._accountant.ledger
        if isinstance(ledger.budget, NoPrivacy):
            return math.inf
        return split(ledger.remaining_rho, self._options.shares[batch:])[0]

    def admissible(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether the query may be asked (public)."""
        return self._session.admissible(Query.of(x, y, given))

    def grow(self, questions: Sequence[Question]) -> list[bool]:
        """For each pair whether its smallest margin exceeds kappa sigma: an edge to add."""
        if not questions:
            return []
        margins = margins_of(self._session, questions)
        measured = smallest_margins(
            self._session, self._accountant, margins, rho=self._price(1), label="grow"
        )
        tail = min(0.25, self._options.false_edges * self._session.n_variables / len(questions))
        threshold = measured.sigma * tails.normal_quantile(tail) if tail > 0 else math.inf
        for question, value in zip(questions, measured.values, strict=True):
            self.released_margins.append(
                released_margin(self._session, question, "grow", value, threshold, measured.sigma)
            )
        return [bool(value > threshold) for value in measured.values]

    def shrink(self, questions: Sequence[Question]) -> list[int]:
        """Which questions' edges are to be removed, those of the smallest number first: their
        smallest margin is below zero (a forest edge: below -forest_bonus sigma)."""
        if not questions:
            return []
        margins = margins_of(self._session, questions)
        measured = smallest_margins(
            self._session, self._accountant, margins, rho=self._price(2), label="shrink"
        )
        allowed = -self._options.forest_bonus * measured.sigma
        thresholds = [allowed if (q.x, q.y) in self.forest else 0.0 for q in questions]
        for q, value, threshold in zip(questions, measured.values, thresholds, strict=True):
            self.released_margins.append(
                released_margin(self._session, q, "shrink", value, threshold, measured.sigma)
            )
        order = sorted(range(len(questions)), key=lambda i: float(measured.values[i]))
        return [i for i in order if measured.values[i] < thresholds[i]]

    def favours_collider(self, x: int, z: int, y: int) -> bool:
        """For x, y independent at level 0: whether the release favours x -> z <- y over a chain
        lost in the noise.
        """
        return self._moments.favours_collider(x, z, y)

    def opened(
        self, triples: Sequence[tuple[int, int, int]], pairs: Sequence[tuple[Question, Question]]
    ) -> tuple[list[bool], list[bool]]:
        """Which middles open a path.

        Args:
            triples: (x, z, y) with x, y independent at level 0: the covariance of x and y given z,
                in the direction in which a collider would show, must exceed what chance and noise
                alone exceed with probability min(.04, false_colliders / N).
            pairs: for x, z, y with x, y dependent at level 0 the sets that hold z, and those that
                do not: the smallest margin over the first, less that over the second, must exceed
                collider_sigmas sigma.
        """
        if not (triples or pairs):
            return [], []
        directions = [self._moments.opened_direction(x, z, y) for x, z, y in triples]
        margins = margins_of(self._session, [question for pair in pairs for question in pair])
        differences, projections = openings(
            self._session,
            self._accountant,
            list(zip(margins[::2], margins[1::2], strict=True)),
            [
                (Query.of(x, y, (z,)), u if x < y else u.T)
                for (x, z, y), (u, _) in zip(triples, directions, strict=True)
            ],
            rho=self._price(3),
            label="orient",
        )
        tail = min(0.04, self._options.false_colliders / (len(triples) + len(pairs)))
        kappa = tails.normal_quantile(tail) if tail > 0 else math.inf
        return (
            [
                bool(value > kappa * math.hypot(projections.sigma, spread))
                for value, (u, spread) in zip(projections.values, directions, strict=True)
            ],
            [
                bool(value > self._options.collider_sigmas * differences.sigma)
                for value in differences.values
            ],
        )
