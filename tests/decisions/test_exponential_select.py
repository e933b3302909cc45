"""Exponential selection: its law, its price on neighbours, and what it does when the budget is dry
or missing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import jaxcd
from jaxcd.citests import Query
from jaxcd.decisions import Question
from jaxcd.decisions.exponential_select import equal_selections
from jaxcd.privacy import GRID, Accountant, ExponentialMechanismEvent, Ledger, NoiseSampler
from jaxcd.queries import Door, Session
from tests.decisions.given_questions import GivenQuestions
from tests.helpers import coded, levelled, sampled, simulated

LEVELS = (2, 3, 2, 2)
DOMAIN = levelled(*LEVELS)
TEST = jaxcd.CovarianceNorm()


def dataset(codes: np.ndarray, domain: jaxcd.Domain = DOMAIN) -> jaxcd.Dataset:
    return coded(codes, domain)


def dependent_codes(seed: int, n: int, levels: tuple[int, ...] = LEVELS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, len(levels)), dtype=np.int64)
    for j, k in enumerate(levels):
        parent = codes[:, rng.integers(j)] % k if j else np.zeros(n, dtype=np.int64)
        codes[:, j] = np.where(
            rng.random(n) < rng.choice([0.1, 0.5, 0.9]), parent, rng.integers(0, k, n)
        )
    return codes


class Chosen(NoiseSampler):
    """Answers selections as told, and keeps the probabilities from which they are drawn."""

    def __init__(self, choose: Any) -> None:
        self._choose = choose
        self.laws: list[np.ndarray] = []
        self.scores: list[np.ndarray] = []

    @property
    def secure(self) -> bool:
        return True

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:
        self.scores.append(np.array(scores))
        self.laws.append(special.softmax((scores - scores.max()) / scale))
        return self._choose(self.laws[-1])

    def _unused(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("only selections are drawn")

    discrete_laplace = discrete_gaussian = geometric = subset = _unused  # type: ignore[assignment]


QUESTION = Question(0, 1, ((2,), (3,), (2, 3)))


def law_of(
    codes: np.ndarray, decider: Any, budget: jaxcd.Budget
) -> tuple[np.ndarray, np.ndarray, Ledger]:
    ledger, sampler = Ledger(budget), Chosen(lambda law: 0)
    session = Session(Door(dataset(codes), budget), TEST, alpha=0.05)
    frontier = GivenQuestions([QUESTION])
    decider.start(session, Accountant(ledger, sampler)).answer(frontier)
    assert frontier.answers == [(2,)]
    return sampler.laws[0], sampler.scores[0], ledger


@pytest.mark.parametrize("keep_prior", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_law_is_the_formula(epsilon: float, keep_prior: float):
    codes = dependent_codes(3, 400)
    law, _, _ = law_of(
        codes, jaxcd.ExponentialSelect(n_questions=1, keep_prior=keep_prior), jaxcd.Budget(epsilon)
    )
    session = Session(Door(dataset(codes), jaxcd.NO_PRIVACY), TEST, alpha=0.05)
    margins = session.evaluate([Query.of(0, 1, given) for given in QUESTION.candidates]).margin
    delta = TEST.margin_sensitivity(
        alpha=0.05, n_samples=400, relation=jaxcd.privacy.Relation.REPLACE_ONE
    )
    assert delta is not None
    weights = np.exp(-epsilon * np.append(margins, -margins.min()) / (2 * delta.value))
    weights[-1] *= 3 * keep_prior / (1 - keep_prior)
    assert law == pytest.approx(weights / weights.sum(), rel=1e-5)


def test_without_information_the_prior_decides():
    codes = np.zeros((50, 4))
    for keep_prior in (0.1, 0.5):
        law, _, _ = law_of(
            codes, jaxcd.ExponentialSelect(n_questions=1, keep_prior=keep_prior), jaxcd.Budget(1e-6)
        )
        assert law[-1] == pytest.approx(keep_prior, abs=1e-3)
        assert law[:-1] == pytest.approx(np.full(3, (1 - keep_prior) / 3), abs=1e-3)


def test_neighbours_draw_with_nearly_the_same_odds():
    """Every outcome, also the one that is not drawn: log-odds within the price, and every utility
    within its sensitivity.
    """
    rng, worst, moved = np.random.default_rng(0), 0.0, 0.0
    delta = TEST.margin_sensitivity(
        alpha=0.05, n_samples=12, relation=jaxcd.privacy.Relation.REPLACE_ONE
    )
    assert delta is not None
    for trial in range(60):
        n = (12, 40)[trial % 2]
        codes = dependent_codes(trial, n)
        if trial % 3 == 0:
            codes[:, 1] = codes[:, 0]
        other = codes.copy()
        other[rng.integers(n)] = [rng.integers(k) for k in LEVELS]
        decider = jaxcd.ExponentialSelect(n_questions=1, keep_prior=float(rng.choice([0.2, 0.5])))
        (p, here, ledger), (q, there, _) = (
            law_of(part, decider, jaxcd.Budget(2.0)) for part in (codes, other)
        )
        worst = max(worst, float(np.abs(np.log(p / q)).max()))
        moved = max(moved, float(np.abs(here - there).max()))
        assert [entry.event.epsilon for entry in ledger.entries] == [2.0]
    assert 0.3 < worst <= 2.0
    assert 0.3 * delta.value < moved * GRID <= delta.value + 2 * delta.pad + 4 * GRID


def test_separated_by_the_set_that_was_drawn_and_under_its_own_pair():
    """The set of a separated pair is a candidate of that pair: neighbours of its ends, and neither
    of them.
    """
    for trial in range(6):
        codes = dependent_codes(trial, 300, (2, 3, 2, 2, 2, 3))
        domain = levelled(2, 3, 2, 2, 2, 3)
        result = jaxcd.pc(
            dataset(codes, domain),
            test=TEST,
            decider=jaxcd.ExponentialSelect(keep_prior=0.7),
            budget=jaxcd.Budget(30.0),
            key=None,
            noise=simulated(trial),
        )
        levels = [record.n_separated for record in result.info["levels"]]
        assert sorted(len(given) for given in result.separating_sets.values()) == [
            level for level, count in enumerate(levels) for _ in range(count)
        ]
        assert all(not pair & set(given) for pair, given in result.separating_sets.items())
        assert all(row["mechanism"].startswith("Exponential") for row in result.info["ledger"])
        assert len(result.info["ledger"]) == sum(record.n_asked for record in result.info["levels"])


@pytest.mark.parametrize("stable", [True, False])
def test_without_privacy_it_is_the_threshold(stable: bool):
    data = sampled("asia", 3000, 1)
    options: dict[str, Any] = {
        "test": TEST,
        "budget": jaxcd.NO_PRIVACY,
        "key": None,
        "stable": stable,
    }
    selected = jaxcd.pc(data, decider=jaxcd.ExponentialSelect(), **options)
    plain = jaxcd.pc(data, decider=jaxcd.Threshold(), **options)
    # another set may separate a pair, and in the original order that changes what is asked next
    if stable:
        assert (selected.graph.adjacency == plain.graph.adjacency).all()
    assert selected.separating_sets.keys() and not selected.cost.proven
    session = Session(Door(data, jaxcd.NO_PRIVACY), TEST, alpha=0.05)
    for pair, given in selected.separating_sets.items():
        x, y = (data.names.index(name) for name in pair)
        assert (
            session.evaluate([Query.of(x, y, [data.names.index(name) for name in given])]).margin[0]
            <= 0
        )


def test_the_set_with_the_smallest_margin_is_the_likeliest():
    """Only the third set separates: at a large epsilon it is drawn."""
    rng = np.random.default_rng(0)
    c, d = rng.integers(0, 2, (2, 4000))
    a, b = ((c + d + (rng.random(4000) < 0.05)) % 3 for _ in range(2))
    domain = jaxcd.Domain(
        [
            ("a", jaxcd.Ordinal((0, 1, 2))),
            ("b", jaxcd.Ordinal((0, 1, 2))),
            *((v, jaxcd.Ordinal((0, 1))) for v in "cd"),
        ]
    )
    session = Session(
        Door(dataset(np.stack([a, b, c, d], 1), domain), jaxcd.Budget(5.0)), TEST, alpha=0.05
    )
    accountant = Accountant(Ledger(jaxcd.Budget(5.0)), simulated())
    frontier = GivenQuestions([QUESTION])
    jaxcd.ExponentialSelect(n_questions=1).start(session, accountant).answer(frontier)
    assert frontier.answers == [(2, 3)]


@pytest.mark.parametrize(
    "budget", [jaxcd.Budget(2.0), jaxcd.Budget(2.0, 1e-6, accounting=jaxcd.privacy.Accounting.ZCDP)]
)
def test_prices_fill_the_budget_and_no_more(budget: jaxcd.Budget):
    for n_events in (1, 7, 500):
        ledger = Ledger(budget)
        price = equal_selections(ledger, n_events)
        for _ in range(n_events):
            ledger.charge(ExponentialMechanismEvent(price, "x"))
        assert not ledger.can_afford(ExponentialMechanismEvent(price, "x"))
        rho = 8 * (ledger.rho_limit / n_events)
        assert price == pytest.approx(max(2.0 / n_events, math.sqrt(rho)), rel=1e-9)
