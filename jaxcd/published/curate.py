r"""CURATE as published: PC with a price for each order of its tests; not private, kept to compare
with.

*Prices.*  With d columns and E edges there may be d_l = E C(d - 2, l) tests of order l.  Before
each order the prices of it and of all later ones minimise

    prod_l (1/2 + e_l / 2) + 1 - prod_l (1/2 - e_l / 2),      e_l = exp(-T beta epsilon_l' / Delta),

a bound on the chance that some order errs, subject to epsilon_0 >= epsilon_1 >= ... >= 0 and

    sum_l ( d_l epsilon_l^2 + sqrt(2 ln(1 / delta') d_l epsilon_l^2) ) <= what is left,

with epsilon' = ln(1 + q (e^epsilon - 1)) for a subsample of q n rows, drawn once.  Solved by
sequential quadratic programming.

*Tests.*  p + Lap(Delta / epsilon_l') above T (1 + beta) removes the edge, below T (1 - beta) keeps
it, and a coin decides between them; p is that of Priv-PC's conditional tau.  After an order, with k
answers so far that were not "keep", k epsilon'^2 + sqrt(2 k ln(1 / delta')) epsilon' is charged.

**Why it is not private.**

* *The sensitivity.*  Delta = max_i (2 / (sqrt(2 pi) (i - 1))) (w'_i - w_i) / sqrt(n), with w'_i =
  9 i (i + 1) / (4 i + 14) and w_i = 9 i^2 / (4 i + 10), is .363 / sqrt(n), taken at strata of i = 2
  rows.  It bounds a *product* of two changes, of a stratum's tau and of its weight, as if the
  change of a weighted mean were their product.  With Z empty there is one stratum, whose weight
  does not change at all when a row is replaced, and the p-value still moves by Phi(6 / sqrt(n)) -
  1/2, 6.6 times as much (half of that when a row is added; PRIVACY.md A1).  With strata it moves by
  .48 at n = 1,000 and .49 at 100,000, 42 and 430 times as much: the pair of data sets of
  PRIVACY.md B1 is a counterexample as it stands.
* *The account.*  Only answers that are not "keep" are charged, and every answer is noisy; how many
  there are depends on the data.
* *The code's coin* is seeded with a constant and always falls the same way.  Here it is a coin.

Source:
    Bhattacharjee, Tandon 2024 (Entropy 26(11), 946; MLSP 2024 with its supplement) and its code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np

from jaxcd.checks import is_number
from jaxcd.citests import Query
from jaxcd.data import Dataset
from jaxcd.decisions import DecisionRun, Frontier
from jaxcd.discovery import DiscoveryResult
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, PrivacyCost, Relation
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.private_pc import search_pc
from jaxcd.published.rounds import check_options, check_rate, streams
from jaxcd.queries import Door, Session

__all__ = ["claimed_product_sensitivity", "curate", "order_prices"]

_REASON = (
    "published method, kept for comparison: the sensitivity is bounded by a product of two changes "
    "(.363/sqrt(n)), and one record moves the p-value by Phi(6/sqrt(n)) - 1/2 without a "
    "conditioning set and by nearly 1/2 with one; only the answers that are not 'keep' are "
    "charged; the noise is simulated"
)
_CHUNK = 256  # queries that are answered together


@cache
def claimed_product_sensitivity(n_samples: int) -> float:
    """The published bound on the change of the p-value, .363 / sqrt(n) (refuted)."""
    sizes = np.arange(2.0, max(n_samples, 3))
    gained = 9 * sizes * (sizes + 1) / (4 * sizes + 14) - 9 * sizes**2 / (4 * sizes + 10)
    return float((2 / math.sqrt(2 * math.pi) * np.abs(gained) / (sizes - 1)).max()) / math.sqrt(
        n_samples
    )


def order_prices(
    n_tests: Sequence[float], budget: float, *, reach: float, delta: float, rate: float = 1.0
) -> np.ndarray:
    """The prices of the orders that are left, never rising.

    Args:
        n_tests: the most tests of each order, positive.
        budget: what is left, at least 0.
        reach: T beta / Delta.
        delta: of the composition.
        rate: of the subsample.
    """
    from scipy import optimize  # slow to import, and needed here only

    counts = np.asarray(n_tests, dtype=np.float64)
    width = math.sqrt(-2 * math.log(delta))

    def spent(prices: np.ndarray) -> float:
        return float(np.sum(counts * prices**2 + width * np.sqrt(counts) * np.abs(prices)))

    def objective(prices: np.ndarray) -> float:
        errors = np.exp(-reach * np.log1p(rate * np.expm1(np.clip(prices, 0, 50))))
        return float(np.prod(0.5 + errors / 2) + 1 - np.prod(0.5 - errors / 2))

    # The largest equal prices: a start within the budget, and the answer where none is better.
    low, high = 0.0, math.sqrt(budget) + 1
    for _ in range(60):
        middle = (low + high) / 2
        inside = spent(np.full(len(counts), middle)) <= budget
        low, high = (middle, high) if inside else (low, middle)
    start = np.full(len(counts), low)
    if len(counts) == 1 or not low > 0:
        return start
    limits: list[dict[str, Any]] = [
        {"type": "ineq", "fun": lambda prices: prices[:-1] - prices[1:]},
        {"type": "ineq", "fun": lambda prices: budget - spent(prices)},
    ]
    found = optimize.minimize(
        objective, start, method="SLSQP", bounds=[(0, None)] * len(counts), constraints=limits
    ).x
    found = np.minimum.accumulate(np.clip(np.nan_to_num(found), 0, None))
    if spent(found) > budget:  # a solution on the edge, rounded
        found *= budget / spent(found)
    return found if objective(found) < objective(start) else start


class _CurateRun(DecisionRun):
    """Order after order: a price, noisy answers, and what was charged."""

    def __init__(
        self,
        session: Session,
        *,
        epsilon: float,
        alpha: float,
        margin: float,
        delta: float,
        rate: float,
        max_level: int,
        stream: np.random.Generator,
    ) -> None:
        self._session = session
        self._delta = delta
        self._alpha, self._margin, self._rate = alpha, margin, rate
        self._max_level, self._stream = max_level, stream
        n = max(int(session.n_samples * rate), 3)
        self._sensitivity = claimed_product_sensitivity(n)
        self._budget = epsilon
        rows = np.zeros(session.n_samples, dtype=bool)
        rows[stream.choice(len(rows), min(n, len(rows)), replace=False)] = True
        self._evaluate = session.evaluate if rate == 1 else session.restrict(rows).evaluate
        self._n_edges = math.comb(session.n_variables, 2)
        self.charged: list[float] = []
        self.prices: list[float] = []
        self.n_charged = 0
        self.n_tests = 0

    def _price(self, level: int) -> float:
        d = self._session.n_variables
        left = self._budget - sum(self.charged)
        orders = range(level, max(min(self._max_level, d - 2), level) + 1)
        counts = [max(self._n_edges * math.comb(max(d - 2, 0), order), 1) for order in orders]
        reach = self._alpha * self._margin / self._sensitivity
        prices = order_prices(
            counts, max(left, 0.0), reach=reach, delta=self._delta, rate=self._rate
        )
        return math.log1p(self._rate * math.expm1(min(float(prices[0]), 50.0)))

    def answer(self, frontier: Frontier) -> None:
        price = self._price(frontier.level)
        self.prices.append(price)
        while not self.exhausted and (questions := frontier.peek(1)):
            x, y, candidates = questions[0]
            separating = self._separating(x, y, candidates, price) if price > 0 else None
            if separating is None:
                frontier.keep()
            else:
                self._n_edges -= 1
                frontier.separate(separating)
        width = math.sqrt(-2 * self.n_charged * math.log(self._delta))
        self.charged.append(self.n_charged * price**2 + width * price)
        self.exhausted = sum(self.charged) >= self._budget

    def _separating(
        self, x: int, y: int, candidates: Sequence[tuple[int, ...]], price: float
    ) -> tuple[int, ...] | None:
        scale = self._sensitivity / price
        for first in range(0, len(candidates), _CHUNK):
            chunk = candidates[first : first + _CHUNK]
            log_pvalue = self._evaluate([Query.of(x, y, given) for given in chunk]).log_pvalue
            for given, pvalue in zip(chunk, np.exp(log_pvalue), strict=True):
                noisy = pvalue + self._stream.laplace(0, scale)
                self.n_tests += 1
                if not noisy > self._alpha * (1 - self._margin):  # also a NaN
                    continue
                self.n_charged += 1
                if noisy > self._alpha * (1 + self._margin) or self._stream.random() < 0.5:
                    return given
        return None


@claiming(
    GuaranteeClaim(
        "the paper's (epsilon, delta), adapted from order to order",
        proof="its sensitivity is a product of changes that one record exceeds 6.6 times and more, "
        "and answers that keep an edge are not charged; see jaxcd.published.curate",
        proven=False,
        assumptions="-",
    )
)
def curate(
    data: Dataset,
    *,
    epsilon: float,
    alpha: float = 0.05,
    margin: float = 0.2,
    delta: float = 1e-10,
    rate: float = 1.0,
    key: jax.Array,
    max_level: int | None = None,
) -> DiscoveryResult:
    """CURATE as published, its form by tests: adaptive prices from order to order.

    Args:
        data: discrete columns, in the order of their levels.
        epsilon: positive, the budget that the prices are chosen for.
        alpha: T, 0 < alpha < 1; .05 is the code's.
        margin: beta in (0, 1), the same on both sides of T; .2 is the code's.
        delta: in (0, 1): delta' of the composition.
        rate: q of the subsample, in (0, 1]; 1 is the code's.
        key: a typed key: noise, subsample and coins.
        max_level: the largest conditioning set; None for the code's, min(floor(log2 n) - 5, d - 2).

    Returns:
        The result; ``cost`` holds what was charged, with ``proven`` False and the reason; ``info``
        the price and the charge of each order, and the number of tests.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None (module docstring; PRIVACY.md B1).  :class:`jaxcd.Scheduled` is what holds.

    Source:
        Bhattacharjee, Tandon 2024, and its code.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> run = jaxcd.published.curate(data, epsilon=1.0, key=jax.random.key(1))
        >>> run.cost.proven
        False
    """
    check_options(epsilon=epsilon, alpha=alpha, delta=delta, bias=0.0, max_level=max_level)
    check_rate(rate)
    if rate is None or not is_number(margin, 0, 1, ends="()"):
        raise OptionError(
            f"margin = {margin!r}, rate = {rate!r}: give a margin in (0, 1), such as 0.2, and a "
            "rate in (0, 1]"
        )
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=alpha)
    if max_level is None:
        largest = int(math.log2(session.n_samples)) - 5
        max_level = max(min(largest, session.n_variables - 2), 0)
    run = _CurateRun(
        session,
        epsilon=epsilon,
        alpha=alpha,
        margin=margin,
        delta=delta,
        rate=rate,
        max_level=max_level,
        stream=streams(key)(0),
    )
    return search_pc(
        "curate",
        session,
        run,
        max_level,
        cost=lambda: PrivacyCost(
            float(sum(run.charged)), delta, Relation.REPLACE_ONE, False, _REASON
        ),
        info=lambda: {
            "n_tests": run.n_tests,
            "order_prices": tuple(run.prices),
            "order_charges": tuple(run.charged),
            "alpha": alpha,
            "margin": margin,
            "rate": rate,
        },
    )
