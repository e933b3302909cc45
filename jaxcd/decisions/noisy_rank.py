r"""Noisy rank: a permutation test whose null has the same noise as its statistic, so that noise
costs power but never level.

To each of T_0, T_1, ..., T_k independent Laplace noise of one scale b is added, M_s = T_s + noise,
and the answer is "dependent" iff p = (1 + #{s: M_s >= M_0}) / (k + 1) <= alpha, i.e. iff
M_0 > M_(r), the r-th largest of the others, r = floor(alpha (k + 1)).

**Level.**  Where (T_0, ..., T_k) is exchangeable under independence, so is (M_0, ..., M_k),
whatever b is: P[dependent] <= alpha.  A noisy margin compared with zero has level near 1/2 when the
noise is large.

**Privacy of the answer: epsilon with b = (Delta_0 + Delta_pi) / epsilon.**  Fix the noise of M_1,
..., M_k at any values; it does not depend on the data.  Each M_s moves by at most Delta_pi, and so
does M_(r); T_0 moves by at most Delta_0.  So T_0 - M_(r) is a number of sensitivity
Delta_0 + Delta_pi (for HSIC without conditioning (4 + sqrt 6) / m), and its sign after Laplace
noise of scale b is epsilon-DP, for every value of the fixed noise, hence also on average.  (The
noise of the null need not even be secret.)  On integers: quantising T_0 and each T_s adds at most
one step each, twice the pad each: ceil((Delta_0 + Delta_pi + 4 pad) / g) + 2 steps.

**The p-value itself is not released.**  Kim and Schrab 2023 state noise of scale 2 Delta / epsilon,
and PRIVACY.md H2 reads it as a release of p.  The argument above does not extend to it, since the
gaps between M_(j) and M_(j + 1) can shrink, and the claim does not follow from the sensitivities:
with k = 19, epsilon = 1, T_0 = 0, fifteen T_s = -Delta / 2, four T_s = 8 Delta, and on the
neighbour T_0 = -Delta, fifteen T_s = Delta / 2, four T_s = 7 Delta, the probability of p = 5 / 20
falls from 0.0607 to 0.0195, by e^1.13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxcd.citests import PermutationTest, Query, critical_rank
from jaxcd.decisions.base import DecisionRun, Price
from jaxcd.decisions.rounds import CountedDecider, QueryRun, equal_pure_events
from jaxcd.errors import OptionError
from jaxcd.privacy import (
    GRID,
    Accountant,
    Law,
    MechanismRecord,
    PrivacyFilter,
    PureEvent,
    Relation,
    Sensitive,
    integer_sensitivity,
    noise_scale,
    quantise,
)
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim
from jaxcd.privacy.rounding import at_least
from jaxcd.privacy.sensitive import exact_values
from jaxcd.queries import Session

__all__ = ["NoisyRank", "critical_noise", "noisy_rank"]


def noisy_rank(
    accountant: Accountant,
    statistics: Sensitive | np.ndarray,
    *,
    rank: int,
    sensitivity: float,
    epsilon: float,
    pad: float = 0.0,
    label: str,
    relation: Relation = Relation.REPLACE_ONE,
) -> bool:
    r"""Whether T_0 is above the ``rank``-th largest of T_1, ..., T_k, all with independent discrete
    Laplace noise of one scale.

    Args:
        statistics: (1 + k,), T_0 first; sensitive.
        rank: 1 .. k.
        sensitivity: of T_0 plus that of every T_s.
        pad: bound on the error of each.
        epsilon: positive.
        label: public words.

    Raises:
        BudgetExhausted: the event does not fit (nothing was drawn).
        OptionError: for an argument out of range.
        SensitivityError: for NaN.

    Guarantee:
        Relation: ``relation``.  Event: ``PureEvent(epsilon)``.  Public: k, rank, sensitivity, pad.
        Proof: module docstring.
    """
    values = quantise(exact_values(statistics), grid=GRID)
    if values.ndim != 1 or not 1 <= rank < len(values):
        raise OptionError(
            f"rank = {rank!r} is not between 1 and the number of permuted statistics, "
            f"{values.size - 1}"
        )
    bound = integer_sensitivity(sensitivity, grid=GRID, pad=2 * pad) + 1
    scale = noise_scale(bound, epsilon)
    record = MechanismRecord(
        Law.NOISY_RANK, at_least(sensitivity), at_least(pad), GRID, len(values), False, (scale,)
    )
    index = accountant.charge(PureEvent(epsilon, label, relation, record))
    # Values are clamped to 2^61 and draws to 2^62: the sums fit into int64.
    noisy = (
        values + accountant.noise.discrete_laplace(scale, len(values), index=index)
        if scale
        else values
    )
    answer = bool(noisy[0] > np.sort(noisy[1:])[-rank])
    accountant.bought(index, label, answer)
    return answer


class _NoisyRankRun(QueryRun):
    def __init__(
        self, session: Session, accountant: Accountant, *, rank: int, n_queries: int
    ) -> None:
        super().__init__(session, accountant)
        self._rank = rank
        self._price = equal_pure_events(accountant.ledger, n_queries)
        self._known: dict[Query, Sensitive] = {}

    def _compute(self, queries: Sequence[Query]) -> None:
        missing = [query for query in dict.fromkeys(queries) if query not in self._known]
        if missing:
            rows = self._session.permuted_statistics(missing)
            self._known.update((query, rows[place]) for place, query in enumerate(missing))

    def _ask(self, query: Query) -> bool:
        self._compute([query])
        return not noisy_rank(
            self._accountant,
            self._known[query],
            rank=self._rank,
            epsilon=self._price,
            label="noisy rank",
            **self._stated,
        )


@dataclass(frozen=True)
class NoisyRank(CountedDecider):
    """A permutation test with the same noise on the statistic and on its null: the noisy rank.

    For tests with a permutation null and a stated sensitivity (:class:`jaxcd.BoundedRCIT`).  The
    level is alpha at every epsilon where the null is exact; noise costs power only.  Every answer
    is paid for.

    Args:
        alpha: level of the test, 0 < alpha < 1.
        n_queries: the number of answers among which the budget is divided, from 1; None takes 10 a
            pair.  When they are used up, the remaining pairs keep their edges and the run says so.

    Raises:
        OptionError: an argument is out of its range.

    Guarantee:
        Relation: that of the budget.  Sensitivity: those of the statistic and of its null, which
        the test must state.  Event: ``PureEvent`` a query, through the ledger's filter.  Public: n,
        the domain, the permutations.  Released: answers, never p-values.  Proof: the docstring of
        :mod:`jaxcd.decisions.noisy_rank`.

    Source:
        Kim and Schrab 2023; PRIVACY.md H2.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(-1, 1, size=500)
        >>> y = np.clip(x**2 + 0.1 * np.random.default_rng(1).normal(size=500), -1, 2)
        >>> columns = {"x": jaxcd.Numeric(-1, 1), "y": jaxcd.Numeric(-1, 2)}
        >>> data = jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=jaxcd.Domain(columns))
        >>> run = jaxcd.pc(
        ...     data,
        ...     test=jaxcd.BoundedRCIT(),
        ...     decider=jaxcd.NoisyRank(n_queries=1),
        ...     budget=jaxcd.Budget(4.0),
        ...     key=jax.random.key(0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        x --- y
    """

    claim = GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget; answers are released, noisy p-values are "
        "not (they would cost more)",
        assumptions=PUBLIC + "; permutations are public and drawn without the data",
    )

    alpha: float = 0.05
    n_queries: int | None = None

    _counts, _per_level = "n_queries", "n_candidates"
    answers_queries = True

    def _default(self, n_columns: int) -> int:
        return max(5 * n_columns * (n_columns - 1), 1)

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        """Each of ``n_queries`` answers at an equal share; the noise moves the critical value,
        too.
        """
        n_answers = self._count(n_columns)
        return Price(
            n_answers,
            math.sqrt(2) * sensitivity / equal_pure_events(ledger, n_answers),
            critical_noise(self.alpha),
        )

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        test = session.test
        if not isinstance(test, PermutationTest) or not test.n_null_statistics >= 1:
            raise OptionError(
                f"test: {test.name} has no permutation null, which NoisyRank adds noise to; use "
                "BoundedRCIT with "
                "Null.PERMUTATION, or NoisyThreshold"
            )
        rank = critical_rank(self.alpha, test.n_null_statistics)
        return _NoisyRankRun(
            session, accountant, rank=rank, n_queries=self._count(session.n_variables)
        )


def critical_noise(alpha: float) -> float:
    """ln(1 / (2 alpha)) / sqrt 2: where M_(r) lies, in standard deviations of the noise, when the
    noise is all there is.
    """
    return max(math.log(1 / (2 * alpha)), 0.0) / math.sqrt(2)
