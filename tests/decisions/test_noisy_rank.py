"""NoisyRank: exact level at every epsilon, power, price, agreement with the margin without noise,
refusals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import Query, critical_rank
from jaxcd.decisions.noisy_rank import critical_noise, noisy_rank
from jaxcd.errors import BudgetExhausted, OptionError, SensitivityError
from jaxcd.privacy import NO_PRIVACY, Accountant, Budget, Ledger, NoiseSampler
from jaxcd.queries import Door, Session
from tests.helpers import measured, numbers, refused, simulated

TEST = jaxcd.BoundedRCIT(n_permutations=19, n_features=20)


class Quick(NoiseSampler):
    """Discrete Laplace noise without set-up."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    @property
    def secure(self) -> bool:
        return False

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
        parts = np.floor(self._rng.standard_exponential((2, size)) * scale).astype(np.int64)
        return parts[0] - parts[1]

    def _unused(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("only Laplace noise is drawn")

    discrete_gaussian = geometric = subset = gumbel_max = _unused  # type: ignore[assignment]


def dependence_rate(statistics: Sequence[np.ndarray], epsilon: float, rank: int = 1) -> float:
    accountant = Accountant(Ledger(NO_PRIVACY), Quick(1))
    answers = [
        noisy_rank(accountant, row, rank=rank, sensitivity=1.0, epsilon=epsilon, label="test")
        for row in statistics
    ]
    return float(np.mean(answers))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("rank", [1, 4])
def test_the_level_is_exact_whatever_the_noise(epsilon: float, rank: int):
    """Exchangeable statistics, skew and heavy-tailed: the rank of the first is uniform."""
    rng = np.random.default_rng(0)
    rows = rng.standard_exponential((2000, 20)) ** 2 + rng.standard_exponential((2000, 1))
    count = round(2000 * dependence_rate(rows, epsilon, rank))
    low, high = stats.binom.ppf((1e-5, 1 - 1e-5), 2000, rank / 20)
    assert low <= count <= high


def test_power_grows_with_epsilon_up_to_that_of_the_test_itself():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(800, 20))
    rows[:, 0] += 4
    rates = [dependence_rate(rows, epsilon) for epsilon in (0.05, 0.5, 2.0, math.inf)]
    assert rates == sorted(rates) and rates[0] < 0.2 and rates[-1] > 0.9
    assert rates[-1] == np.mean(rows[:, 0] > rows[:, 1:].max(axis=1))


def test_without_noise_it_is_the_margin():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 120)
    data = measured(np.column_stack([x, x**2, rng.uniform(-1, 1, (120, 2))]), -1, 1)
    queries = [Query(0, 1), Query(0, 2), Query(2, 3), Query(0, 1, (2,)), Query(1, 3, (2,))]
    session = Session(Door(data, NO_PRIVACY), TEST, alpha=0.05, key=jax.random.key(0))
    run = jaxcd.NoisyRank().start(session, Accountant(Ledger(NO_PRIVACY)))
    independent = run.independent(queries)
    np.testing.assert_array_equal(independent, session.evaluate(queries).margin <= 0)
    assert not independent[0] and independent[1:3].any()
    # one by one and in another order: the same
    for query, answer in reversed(list(zip(queries, independent, strict=True))):
        assert run.independent([query])[0] == answer
    # the margin is T_0 - T_(r) of what the decider sees
    seen = session.permuted_statistics(queries).expose()
    assert seen.shape == (5, 20)
    margins = seen[:, 0] - np.sort(seen[:, 1:], axis=1)[:, -critical_rank(0.05, 19)]
    np.testing.assert_allclose(margins, session.evaluate(queries).margin, rtol=1e-9, atol=1e-12)


def test_a_private_search_pays_for_every_answer_and_finds_what_is_strong():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 2000)
    data = measured(np.column_stack([x, x**2, rng.uniform(-1, 1, 2000)]), -1, 1)
    run = jaxcd.pc(
        data,
        test=TEST,
        decider=jaxcd.NoisyRank(n_queries=6),
        budget=Budget(6.0),
        key=jax.random.key(0),
        noise=simulated(1),
        max_level=0,
        colliders=jaxcd.discovery.ColliderRule.MAJORITY,
    )
    assert run.graph.adjacent("x0", "x1") and not run.graph.adjacent("x0", "x2")
    rows = run.info["ledger"]
    assert 3 <= len(rows) <= 6 and {row["label"] for row in rows} == {"noisy rank"}
    assert all(row["epsilon"] == pytest.approx(1.0) and row["mechanism"] == "Pure" for row in rows)
    assert run.spent.epsilon <= 6.0


def test_when_the_budget_is_dry_edges_stay():
    data = measured(np.random.default_rng(4).uniform(-1, 1, (60, 4)), -1, 1)
    run = jaxcd.pc(
        data,
        test=TEST,
        decider=jaxcd.NoisyRank(n_queries=2),
        budget=Budget(1.0),
        key=jax.random.key(0),
        noise=simulated(5),
        max_level=0,
    )
    assert run.exhausted and len(run.info["ledger"]) == 2 and len(run.separating_sets) <= 2


def test_every_draw_is_charged_before_it_is_made_and_as_large_as_the_price():
    class Recording(Quick):
        def __init__(self) -> None:
            super().__init__(0)
            self.scales: list[float] = []

        def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
            assert index == len(ledger.entries) - 1 and size == 20
            self.scales.append(scale)
            return super().discrete_laplace(scale, size, index=index)

    ledger, sampler = Ledger(Budget(1.0)), Recording()
    for _ in range(4):
        noisy_rank(
            Accountant(ledger, sampler),
            np.arange(20.0),
            rank=1,
            sensitivity=0.5,
            pad=0.01,
            epsilon=0.25,
            label="x",
        )
    pytest.raises(
        BudgetExhausted,
        noisy_rank,
        Accountant(ledger, sampler),
        np.arange(20.0),
        rank=1,
        sensitivity=0.5,
        epsilon=0.25,
        label="x",
    )
    assert len(sampler.scales) == 4
    steps = (0.5 + 4 * 0.01) * 2**30
    assert all((steps + 2) / 0.25 <= scale <= (steps + 4) / 0.25 for scale in sampler.scales)


@dataclass(frozen=True)
class _Settings:
    test: Any
    match: str


@pytest.mark.parametrize(
    "case",
    [
        _Settings(jaxcd.BoundedRCIT(null=jaxcd.citests.Null.ANALYTIC), "no permutation null"),
        _Settings(jaxcd.StratifiedRanks(), "no permutation null"),
        _Settings(jaxcd.BoundedRCIT(n_permutations=5), "n_permutations"),
    ],
    ids=lambda case: case.match,
)
def test_tests_that_do_not_fit_are_refused_before_a_charge(
    case: _Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Ledger, "charge", lambda *_: pytest.fail("charged"))
    data = measured(np.random.default_rng(0).uniform(-1, 1, (30, 3)), -1, 1)
    with pytest.raises(OptionError, match=case.match):
        jaxcd.pc(
            data,
            test=case.test,
            decider=jaxcd.NoisyRank(),
            budget=Budget(1.0, 1e-6),
            key=jax.random.key(0),
        )
    session = Session(Door(data, NO_PRIVACY), jaxcd.FisherZ(), alpha=0.05)
    refused(OptionError, "permutation null", session.permuted_statistics, [Query(0, 1)])


def test_options():
    for rank in (0, 20):
        with pytest.raises(OptionError, match="rank"):
            noisy_rank(
                Accountant(Ledger(NO_PRIVACY)),
                np.zeros(20),
                rank=rank,
                sensitivity=1.0,
                epsilon=1.0,
                label="x",
            )
    with pytest.raises(SensitivityError, match="NaN"):
        noisy_rank(
            Accountant(Ledger(NO_PRIVACY)),
            np.full(20, math.nan),
            rank=1,
            sensitivity=1.0,
            epsilon=1.0,
            label="x",
        )


def test_the_plan_knows_it():
    domain = numbers("abc", -1, 1)
    plan = jaxcd.plan(
        domain, 10_000, test=TEST, decider=jaxcd.NoisyRank(n_queries=10), budget=Budget(1.0)
    )
    assert plan.n_answers == 10 and plan.noise == pytest.approx(math.sqrt(2) * 10, rel=1e-3)
    # Where noise is all there is, the largest of 19 lies about ln(19 / 2) scales up; ln 10 is the
    # continuum's.
    assert critical_noise(0.05) == pytest.approx(math.log(10) / math.sqrt(2))
