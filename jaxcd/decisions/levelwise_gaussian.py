"""One release, then one Gaussian batch a level: the default for private PC."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcd.checks import check_number, check_weights
from jaxcd.decisions.base import Decider, DecisionRun, Frontier, Price, Question
from jaxcd.decisions.measurements import margins_of, released_margin, smallest_margins
from jaxcd.decisions.rounds import PayingRun, check_delta
from jaxcd.errors import BudgetExhausted, OptionError
from jaxcd.ops import tails
from jaxcd.privacy import Accountant, NoPrivacy, PrivacyFilter, Sensitive, select_max, split
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Session
from jaxcd.releases import ContrastMoments, release_contrast_moments

__all__ = ["LevelwiseGaussian"]


class _LevelwiseRun(PayingRun):
    def __init__(self, session: Session, accountant: Accountant, config: LevelwiseGaussian) -> None:
        super().__init__(session, accountant)
        self._config = config
        self.moments: ContrastMoments | None = None
        self._forest: frozenset[tuple[int, int]] = frozenset()
        self._marginally_independent: set[tuple[int, int]] = set()
        self._released: list[dict[str, Any]] = []

    @property
    def released_margins(self) -> tuple[dict[str, Any], ...]:
        return tuple(self._released)

    def supports_collider(self, x: int, z: int, y: int) -> bool:
        """For pairs separated at level 0: whether the release itself favours the collider over a
        chain lost in the noise.
        """
        if self.moments is None or (min(x, y), max(x, y)) not in self._marginally_independent:
            return True
        return self.moments.favours_collider(x, z, y, sigmas=self._config.collider_sigmas)

    def _level_rho(self, frontier: Frontier) -> float:
        """This level's share of what is left; what a level does not use goes to the later ones, and
        to a later pass.
        """
        ledger = self._accountant.ledger
        if isinstance(ledger.budget, NoPrivacy):
            return math.inf
        shares = self._config.level_shares[frontier.level :]
        if frontier.another_pass_follows:
            later = self._config.later_pass_share
            shares = (*shares, sum(self._config.level_shares) * later / (1 - later))
        return split(ledger.remaining_rho, shares)[0] if ledger.remaining_rho > 0 else 0.0

    def answer(self, frontier: Frontier) -> None:
        if frontier.level >= len(self._config.level_shares):
            return
        rho = self._level_rho(frontier)
        if not rho > 0:
            self.exhausted = True
            return
        try:
            if frontier.level == 0:
                self._answer_level_zero(frontier, rho)
            else:
                self._answer_level(frontier, rho)
        except BudgetExhausted:
            self.exhausted = True

    def _answer_level_zero(self, frontier: Frontier, rho: float) -> None:
        self.moments = release_contrast_moments(
            self._session,
            self._accountant,
            rho=rho,
            mean_weight=self._config.mean_weight,
            label="level 0: contrast moments",
        )
        self._forest = self.moments.spanning_forest(alpha=self._config.alpha)
        for question in frontier.peek():
            margin = self.moments.margin(question.x, question.y, alpha=self._config.alpha)
            sigma = norm_deviation(self.moments, question.x, question.y)
            self._released.append(released_margin(self._session, question, 0, margin, 0.0, sigma))
            if margin > 0:
                frontier.keep()
            else:
                frontier.separate(())
                self._marginally_independent.add((question.x, question.y))

    def _answer_level(self, frontier: Frontier, rho: float) -> None:
        questions = frontier.peek()
        if not questions:
            return
        for_pairs, for_sets = self._split_level(rho)
        margins = margins_of(self._session, questions)
        label = f"level {frontier.level}: smallest margin of {len(questions)} pair"
        label += "" if len(questions) == 1 else "s"
        measured = smallest_margins(
            self._session, self._accountant, margins, rho=for_pairs, label=label
        )
        thresholds = self._thresholds(questions, measured.sigma)
        separated = measured.values <= thresholds
        for question, value, threshold in zip(questions, measured.values, thresholds, strict=True):
            self._released.append(
                released_margin(
                    self._session, question, frontier.level, value, threshold, measured.sigma
                )
            )
        n_choices = sum(
            len(q.candidates) > 1 for q, s in zip(questions, separated, strict=True) if s
        )
        price = self._selection_price(for_sets, n_choices)
        for question, part, is_separated in zip(questions, margins, separated, strict=True):
            if is_separated:
                frontier.separate(self._select(question, part, price, frontier.level))
            else:
                frontier.keep()

    def _thresholds(self, questions: list[Question], sigma: float) -> np.ndarray:
        """What a pair's noisy smallest margin must exceed to keep its edge (public).

        The smallest margin of an independent pair is at most about 0; kappa sigma is what noise
        alone exceeds with probability min(1/4, false_edges p / N).  Pairs of the release's spanning
        forest are edges to begin with: they are separated only where the noisy margin is below
        -forest_bonus sigma.
        """
        tail = min(0.25, self._config.false_edges * self._session.n_variables / len(questions))
        kappa = tails.normal_quantile(tail)
        in_forest = np.array([(q.x, q.y) in self._forest for q in questions])
        return sigma * np.where(in_forest, -self._config.forest_bonus, kappa)

    def _split_level(self, rho: float) -> tuple[float, float]:
        if math.isinf(rho):
            return math.inf, math.inf
        for_pairs, for_sets = split(
            rho, [1 - self._config.selection_share, self._config.selection_share]
        )
        return for_pairs, for_sets

    def _selection_price(self, rho: float, n_choices: int) -> float:
        if n_choices == 0 or math.isinf(rho):
            return math.inf
        ledger: PrivacyFilter = self._accountant.ledger
        return ledger.selection_within(split(rho, [1.0] * n_choices)[0])

    def _select(
        self, question: Question, margins: Sensitive, price: float, level: int
    ) -> tuple[int, ...]:
        """The separating set, chosen by the exponential mechanism among the candidates by minus
        their margins.
        """
        if len(question.candidates) == 1:
            return question.candidates[0]
        chosen = select_max(
            self._accountant,
            margins.map(np.negative),
            epsilon=price,
            label=f"level {level}: separating set",
            **self._stated,
        )
        return question.candidates[chosen]


def norm_deviation(moments: ContrastMoments, x: int, y: int) -> float:
    r"""The standard deviation that the release's noise has in |C_xy|_F, to first order.

    d|C| = <U, dC> with U = C / |C|_F and dC = Z_xy - (m_x z_y^T + z_x m_y^T) / n, so its square is
    sigma^2 + s^2 (|U^T m_x|^2 + |U m_y|^2) / n^2.
    """
    covariance, n = moments.covariance(x, y), moments.n_samples
    size = float(np.linalg.norm(covariance)) if covariance.size else 0.0
    if not size > 0:
        return moments.sigma
    unit = covariance / size
    means = (
        np.linalg.norm(unit.T @ moments.means[x]) ** 2
        + np.linalg.norm(unit @ moments.means[y]) ** 2
    )
    return math.hypot(moments.sigma, moments.mean_sigma * math.sqrt(float(means)) / n)


@dataclass(frozen=True)
class LevelwiseGaussian(Decider):
    r"""One release for level 0, then for each later level one noisy number a pair.

    *Level 0*: the contrast second moments of all columns are released once; a pair is independent
    iff the noisy covariance is within sampling and privacy noise at level alpha.

    *Level l >= 1*: the N remaining pairs are asked together, each by the smallest margin over its
    candidates.  That moves by no more than one margin does, so N numbers get Gaussian noise of
    variance

        sigma^2 = Delta^2 N / (2 rho_l)

    A pair keeps its edge iff its noisy minimum exceeds kappa sigma, with kappa such that noise
    alone keeps an independent pair with probability min(1/4, false_edges p / N): without it, half
    of all absent edges would survive each level.  Pairs of the release's spanning forest are nearly
    always edges; they keep theirs above -forest_bonus sigma.  The separating set of each separated
    pair is chosen by the exponential mechanism and paid for.  Colliders of pairs separated at level
    0 must be supported by the release.

    It needs delta > 0, discrete columns and the stable order.

    Args:
        alpha: level of the test, 0 < alpha < 1.
        level_shares: positive weights of the levels 0, 1, ..., which also set the last level; what
            a level leaves unspent goes to the later ones.
        selection_share: the part of a level's price that buys separating sets, between 0 and 1.
        false_edges: false edges that noise alone may keep at a level, per column; positive.
        forest_bonus: how far (in sigma) below zero a spanning-forest pair must fall, from 0.
        mean_weight: weight of the margins in the release, positive.
        collider_sigmas: by how many standard deviations the release must favour a collider, from 0;
            0 orients more, which pays from about 100,000 rows on, and in FCI.
        later_pass_share: the part of the whole, between 0 and 1, that a search with a second pass
            over the levels (FCI's possible-d-sep) holds back for it; a search with one pass spends
            it.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: replace-one; n and the levels are public.  Events: ``GaussianEvent(rho_0)``; for
        each later level ``GaussianEvent`` for its N numbers (L2 sensitivity Delta sqrt(N); N is
        known from what was released) and ``ExponentialMechanismEvent`` for each separating set,
        through the ledger's filter: the run is (epsilon, delta)-DP of the budget.  Proof:
        :mod:`jaxcd.ops.moments`, :mod:`jaxcd.privacy.mechanisms`; PRIVACY.md N.5 and N.7.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.LevelwiseGaussian(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        Pollution --> Cancer
        Cancer --> Smoker
        Xray --> Cancer
        Cancer --> Dyspnoea
    """

    claim = GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget, delta > 0",
        "jaxcd.decisions.levelwise_gaussian, jaxcd.ops.moments",
    )

    title = "PC with one noisy number for each pair and level"

    alpha: float = 0.05
    level_shares: tuple[float, ...] = (0.3, 0.4, 0.3)
    selection_share: float = 0.2
    false_edges: float = 0.1
    forest_bonus: float = 0.5
    mean_weight: float = 1.0
    collider_sigmas: float = 1.0
    later_pass_share: float = 0.15

    needs_stable = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weights("level_shares", self.level_shares, cure="give a positive number a level")
        for argument in ("selection_share", "later_pass_share"):
            check_number(argument, getattr(self, argument), 0, 1, "()", cure="give a share")
        for argument in ("mean_weight", "false_edges"):
            check_number(argument, getattr(self, argument), 0, ends="(]", cure="give one")
        for argument in ("forest_bonus", "collider_sigmas"):
            check_number(argument, getattr(self, argument), 0, cure="give one")

    needs_delta = True

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """The first level after the release, with all pairs still open."""
        check_delta(ledger, self.name)
        n_pairs = n_columns * (n_columns - 1) // 2
        shares = self.level_shares
        level = (
            shares[min(1, len(shares) - 1)]
            / sum(shares)
            * ledger.remaining_rho
            * (1 - self.selection_share)
        )
        tail = min(0.25, self.false_edges * n_columns / max(n_pairs, 1))
        return Price(
            n_pairs * len(shares),
            sensitivity * math.sqrt(n_pairs / (2 * level)),
            tails.normal_quantile(tail),
        )

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        ledger = accountant.ledger
        if not isinstance(ledger.budget, NoPrivacy) and not ledger.remaining_rho > 0:
            raise OptionError(
                "budget: LevelwiseGaussian adds Gaussian noise and needs delta > 0; give the "
                "budget a delta such as 1e-6, "
                "or use SparseVector"
            )
        session.sensitivity()  # both refuse before anything is charged
        _ = session.view_cardinalities
        return _LevelwiseRun(session, accountant, self)
