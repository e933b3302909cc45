"""Budgets by level: totals are kept, the split is what is charged, and what is refused is refused
before a charge.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import jaxcd
from jaxcd.decisions import Frontier, Noise, Question
from jaxcd.discovery import SearchPass, fci
from jaxcd.errors import BudgetExhausted, OptionError, PrivacyError, SensitivityError
from jaxcd.privacy import Accountant, Ledger, LedgerPart
from jaxcd.queries import Door, Session
from tests.decisions.given_questions import GivenQuestions
from tests.helpers import coded, dependent, independent, numbers, refused, simulated

LEVELS = (2, 3, 2, 4, 3)
TEST = jaxcd.CovarianceNorm()


def private(door: Any = jaxcd.pc, **options: Any) -> jaxcd.DiscoveryResult:
    defaults = {
        "data": dependent(0, 200, *LEVELS),
        "test": TEST,
        "budget": jaxcd.Budget(2.0, 1e-6),
        "key": None,
    }
    merged = {**defaults, "noise": simulated(), **options}
    return door(merged.pop("data"), **merged)


def charged_by_frontier(
    decider: Any, frontiers: list[Frontier], budget: jaxcd.Budget
) -> tuple[list[list[Any]], Any, Ledger]:
    """The events charged for each frontier, the run, and the ledger."""
    ledger = Ledger(budget)
    session = Session(Door(dependent(1, 200, *LEVELS), budget), TEST, alpha=decider.alpha)
    run = decider.start(session, Accountant(ledger, simulated(3)))
    events = []
    for frontier in frontiers:
        before = len(ledger.entries)
        run.answer(frontier)
        events.append([entry.event for entry in ledger.entries[before:]])
    return events, run, ledger


PAIRS = [
    Question(0, 1, ((2,),)),
    Question(0, 2, ((3,),)),
    Question(1, 3, ((0,),)),
    Question(2, 3, ((4,),)),
]


# The split is what is charged


def test_pure_shares_to_the_last_digit():
    """Every answer is asked for and as dear as the share allows: levels get .5, .3, .2 of what is
    left.
    """
    decider = jaxcd.Scheduled(jaxcd.NoisyThreshold(), split=(0.5, 0.3, 0.2))
    events, run, ledger = charged_by_frontier(
        decider, [GivenQuestions(PAIRS, level) for level in range(3)], jaxcd.Budget(2.0)
    )
    for part, share in zip(events, (1.0, 0.6, 0.4), strict=True):
        assert [event.epsilon for event in part] == pytest.approx([share / 4] * 4, rel=1e-12)
    assert ledger.epsilon_total == pytest.approx(2.0, rel=1e-12) and not run.exhausted
    assert not run.unanswered


@pytest.mark.parametrize(
    ("inner", "rate"),
    [
        (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN), 1.0),
        (jaxcd.NoisyThreshold(), 2.0),
        (jaxcd.ExponentialSelect(), 8.0),
    ],
)
def test_concentrated_shares(inner: Any, rate: float):
    decider = jaxcd.Scheduled(inner, split=(3.0, 1.0))
    budget = jaxcd.Budget(0.5, 1e-2, accounting=jaxcd.privacy.Accounting.ZCDP)
    many = PAIRS * 20  # enough of them that zCDP buys more than pure composition
    events, _, ledger = charged_by_frontier(
        decider, [GivenQuestions(many, 0), GivenQuestions(many, 1)], budget
    )
    for part, share in zip(events, (0.75, 0.25), strict=True):
        assert math.fsum(event.rho for event in part) == pytest.approx(
            share * ledger.rho_limit, rel=1e-9
        )
        if rate > 1:
            assert part[0].epsilon == pytest.approx(math.sqrt(rate * part[0].rho), rel=1e-9)


def test_what_a_level_leaves_goes_on():
    decider = jaxcd.Scheduled(jaxcd.NoisyThreshold(n_queries=8), split=(0.5, 0.5))
    events, *_ = charged_by_frontier(
        decider, [GivenQuestions(PAIRS, 0), GivenQuestions(PAIRS, 1)], jaxcd.Budget(2.0)
    )
    assert [event.epsilon for event in events[0]] == pytest.approx([1 / 8] * 4)
    assert [event.epsilon for event in events[1]] == pytest.approx([1.5 / 8] * 4)


def test_the_second_pass_is_held_back_for_and_divided_alike():
    """As in FCI: with a second pass to come, its share is left over; in it the weights divide what
    is there.
    """
    decider = jaxcd.Scheduled(jaxcd.NoisyThreshold(), split=(0.75, 0.25), later_pass_share=0.4)
    passes = [
        GivenQuestions(PAIRS, 0, another_pass_follows=True),
        GivenQuestions(PAIRS, 1, another_pass_follows=True),
        GivenQuestions(PAIRS, 0),
        GivenQuestions(PAIRS, 1),
    ]
    events, run, ledger = charged_by_frontier(decider, passes, jaxcd.Budget(1.0))
    totals = [math.fsum(event.epsilon for event in part) for part in events]
    assert totals == pytest.approx([0.6 * 0.75, 0.6 * 0.25, 0.4 * 0.75, 0.4 * 0.25])
    assert not run.exhausted and ledger.epsilon_total <= 1.0


def test_fci_spends_on_both_passes():
    """Possible-D-SEP is larger than the neighbours here (Spirtes, Glymour, Scheines 2000, figure
    6.12): the second pass asks, and pays.
    """
    rng, n = np.random.default_rng(1), 2000
    values: dict[str, np.ndarray] = {}
    for name, parents in {
        "T": "",
        "U": "",
        "C": "",
        "B": "TC",
        "E": "UB",
        "D": "UC",
        "A": "TD",
    }.items():
        values[name] = 0.7 * rng.normal(size=n) + sum(values[parent] for parent in parents)
    codes = np.stack(
        [np.digitize(values[name] / values[name].std(), [-0.5, 0.5]) for name in "ABCDE"], axis=1
    )
    domain = jaxcd.Domain({name: jaxcd.Ordinal((0, 1, 2)) for name in "ABCDE"})
    data = coded(codes, domain)
    split, later = (0.5, 0.3, 0.2), 0.3
    result = private(
        fci,
        data=data,
        decider=jaxcd.Scheduled(jaxcd.NoisyThreshold(), split=split, later_pass_share=later),
        budget=jaxcd.Budget(1000.0),
        noise=simulated(1),
    )
    second = [
        record
        for record in result.info["levels"]
        if record.search_pass is SearchPass.POSSIBLE_D_SEP and record.n_asked
    ]
    assert [record.level for record in second] == [2] and not result.exhausted
    prices = [row["epsilon"] for row in result.info["ledger"]]
    starts = [
        place for place, price in enumerate(prices) if place == 0 or price != prices[place - 1]
    ]
    assert len(starts) == 4  # three levels and the one of the second pass
    parts = [math.fsum(prices[i:j]) for i, j in zip(starts, [*starts[1:], None], strict=True)]
    left = 1000.0
    for level, part in enumerate(parts[:3]):
        share = split[level] / (sum(split[level:]) + later / (1 - later)) * left
        assert part == pytest.approx(share) if level == 0 else part <= share * (1 + 1e-12)
        left -= part
    assert 0 < parts[3] <= left * (1 + 1e-12) and left >= 1000 * later


def test_levels_after_the_last_are_not_asked():
    result = private(
        data=independent(500, *LEVELS),
        decider=jaxcd.Scheduled(jaxcd.SparseVector(), split=(1.0,)),
        budget=jaxcd.Budget(1e-3),
    )
    assert set(result.separating_sets.values()) <= {()} and not result.exhausted
    assert all(record.n_asked == 0 for record in result.info["levels"] if record.level > 0)


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize(
    "inner",
    [jaxcd.NoisyThreshold(), jaxcd.SparseVector(), jaxcd.ExponentialSelect()],
    ids=lambda d: d.name,
)
@pytest.mark.parametrize(
    "data",
    [independent(500, *LEVELS), dependent(2, 500, *LEVELS)],
    ids=["independent", "dependent"],
)
def test_counts_that_follow_from_the_level_never_run_dry(
    inner: Any, data: jaxcd.Dataset, stable: bool, monkeypatch: pytest.MonkeyPatch
):
    """No charge is refused by a level: every pair of every level in the split is answered."""
    refused: list[str] = []
    charge = LedgerPart.charge

    def watched(self: Any, event: Any) -> int:
        try:
            return charge(self, event)
        except BudgetExhausted as error:
            refused.append(str(error))
            raise

    monkeypatch.setattr(LedgerPart, "charge", watched)
    for seed in range(4):
        private(data=data, decider=jaxcd.Scheduled(inner), stable=stable, noise=simulated(seed))
    assert refused == []


def test_a_dry_level_keeps_its_edges_and_the_next_one_goes_on():
    """One round a level, independent columns, a large budget: one pair a level is separated."""
    decider = jaxcd.Scheduled(jaxcd.SparseVector(n_rounds=1), split=(1.0, 1.0, 1.0))
    result = private(data=independent(500, *LEVELS), decider=decider, budget=jaxcd.Budget(90.0))
    assert sorted(len(given) for given in result.separating_sets.values()) == [0, 1, 2]
    assert [row["epsilon"] for row in result.info["ledger"]] == pytest.approx([30.0] * 3)
    session = Session(Door(independent(500, *LEVELS), jaxcd.Budget(90.0)), TEST, alpha=0.05)
    run = decider.start(session, Accountant(Ledger(jaxcd.Budget(90.0)), simulated()))
    run.answer(GivenQuestions([Question(0, 1, ((),)), Question(0, 2, ((),))], 0))
    assert run.unanswered and not run.exhausted


def test_nothing_left_is_exhausted():
    decider = jaxcd.Scheduled(jaxcd.NoisyThreshold(), split=(1.0,))
    _, run, ledger = charged_by_frontier(decider, [GivenQuestions(PAIRS, 0)], jaxcd.Budget(1.0))
    while ledger.remaining_epsilon > 0:  # the last digit that rounding down has left
        ledger.charge(jaxcd.privacy.PureEvent(ledger.remaining_epsilon, "the rest"))
    frontier = GivenQuestions(PAIRS, 0)
    run.answer(frontier)
    assert run.exhausted and len(frontier.peek()) == len(PAIRS)


# Without privacy, with tests that buy their preparation, and as a value


@pytest.mark.parametrize(
    "inner",
    [jaxcd.NoisyThreshold(), jaxcd.SparseVector(), jaxcd.ExponentialSelect()],
    ids=lambda d: d.name,
)
def test_without_privacy_it_is_the_inner_decider(inner: Any):
    options: dict[str, Any] = {"budget": jaxcd.NO_PRIVACY, "max_level": 3}
    scheduled, plain = (
        private(decider=decider, **options) for decider in (jaxcd.Scheduled(inner), inner)
    )
    assert scheduled.graph == plain.graph and scheduled.separating_sets == plain.separating_sets
    assert scheduled.cost.epsilon == math.inf


def test_a_bought_preparation_comes_first_and_out_of_the_whole():
    rng = np.random.default_rng(0)
    domain = numbers("abcd", -4, 4)
    data = jaxcd.Dataset.from_array(
        np.clip(rng.normal(size=(400, 4)), -4, 4), names=list("abcd"), domain=domain
    )
    test = jaxcd.StratifiedRanks(strata=(6, 3))
    options: dict[str, Any] = {"data": data, "test": test, "budget": jaxcd.Budget(1.0, 1e-6)}
    result = private(decider=jaxcd.Scheduled(jaxcd.ExponentialSelect()), **options)
    plain = private(decider=jaxcd.ExponentialSelect(), **options)
    bought = [
        row for row in result.info["ledger"] if not row["mechanism"].startswith("Exponential")
    ]
    assert bought == [
        row for row in plain.info["ledger"] if not row["mechanism"].startswith("Exponential")
    ]
    limit = Ledger(options["budget"]).rho_limit
    assert math.fsum(row["rho"] for row in result.info["ledger"]) <= limit * (1 + 1e-12)


def test_it_is_a_value():
    decider = jaxcd.Scheduled(jaxcd.SparseVector(alpha=0.01), split=(2.0, 1.0))
    assert decider == pickle.loads(pickle.dumps(decider)) and hash(decider) == hash(
        jaxcd.Scheduled(jaxcd.SparseVector(alpha=0.01), split=(2.0, 1.0))
    )
    assert decider.alpha == 0.01 and decider.name == "Scheduled(SparseVector)"
    assert "SparseVector(alpha=0.01" in repr(decider)
    with pytest.raises(AttributeError):
        decider.split = (1.0,)  # type: ignore[misc]
    assert repr(decider) == private(decider=decider).info["decider"]


# Refusals


@pytest.mark.parametrize(
    "inner",
    [
        jaxcd.LevelwiseGaussian(),
        jaxcd.Threshold(),
        jaxcd.Scheduled(jaxcd.SparseVector()),
        "SparseVector",
        None,
    ],
)
def test_deciders_that_cannot_be_divided(inner: Any):
    refused(OptionError, "decider", jaxcd.Scheduled, inner)


@pytest.mark.parametrize(
    "split", [(), (0.0, 1.0), (-1.0,), (math.nan,), (math.inf,), [0.5, 0.5], 0.5, ("a",), (True,)]
)
def test_splits_that_are_none(split: Any):
    refused(OptionError, "split", jaxcd.Scheduled, jaxcd.SparseVector(), split=split)


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, math.nan, "a"])
def test_shares_of_a_later_pass(share: Any):
    with pytest.raises(OptionError, match="later_pass_share"):
        jaxcd.Scheduled(jaxcd.SparseVector(), later_pass_share=share)


def test_refused_before_a_charge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Ledger, "charge", lambda *_: pytest.fail("charged"))
    with pytest.raises(SensitivityError, match="GTest"):
        private(decider=jaxcd.Scheduled(jaxcd.SparseVector()), test=jaxcd.GTest())
    with pytest.raises(OptionError, match="delta"):
        private(
            decider=jaxcd.Scheduled(jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN)),
            budget=jaxcd.Budget(1.0),
        )
    with pytest.raises(OptionError, match="colliders"):
        private(
            decider=jaxcd.Scheduled(jaxcd.NoisyThreshold()),
            colliders=jaxcd.discovery.ColliderRule.MAJORITY,
        )
    with pytest.raises(PrivacyError, match="(?i)declar"):
        private(
            data=jaxcd.Dataset.from_array(np.array(dependent(0, 60, *LEVELS).codes)),
            decider=jaxcd.Scheduled(jaxcd.SparseVector()),
        )
    numeric = jaxcd.Dataset.from_array(
        np.random.default_rng(0).uniform(-1, 1, (60, 3)), domain=numbers("abc", -1, 1)
    )
    # A test that buys its preparation, under a decider that cannot use it.
    with pytest.raises(OptionError, match="permutation null"):
        private(
            data=numeric, test=jaxcd.StratifiedRanks(), decider=jaxcd.Scheduled(jaxcd.NoisyRank())
        )
