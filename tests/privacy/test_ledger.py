from __future__ import annotations

import copy
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import BudgetExhausted, OptionError
from jaxcd.privacy import (
    NO_PRIVACY,
    Accounting,
    Budget,
    ExponentialMechanismEvent,
    Ledger,
    PureEvent,
    ZCDPEvent,
    epsilon_to_rho,
    rho_to_epsilon,
    rho_to_pure,
    split,
)
from tests.helpers import refused

INF = math.inf
size = st.floats(1e-4, 1.5)
event = st.one_of(
    st.builds(PureEvent, size),
    st.builds(ZCDPEvent, size),
    st.builds(ExponentialMechanismEvent, size),
)
budget = st.builds(
    Budget,
    st.floats(0.05, 5.0),
    st.sampled_from([0.0, 1e-9, 1e-6, 1e-3]),
    accounting=st.just(Accounting.ZCDP),
)
CONCENTRATED = Budget(1.0, 1e-6, accounting=Accounting.ZCDP)


@settings(max_examples=150)
@given(budget=budget, events=st.lists(event, max_size=40))
def test_filter_against_the_rule(budget, events):
    ledger = Ledger(budget)
    limit = Fraction(epsilon_to_rho(budget.epsilon, budget.delta)) if budget.delta else Fraction(0)
    admitted, refused = [], False
    for candidate in events:
        trial = [*admitted, candidate]
        rho_fits = sum(Fraction(e.rho) for e in trial) <= limit
        pure_fits = math.fsum(e.epsilon for e in trial) < INF and (
            sum(Fraction(e.epsilon) for e in trial) <= Fraction(budget.epsilon)
        )
        assert ledger.can_afford(candidate) == (rho_fits or pure_fits)
        if rho_fits or pure_fits:
            assert ledger.charge(candidate) == len(admitted)
            admitted.append(candidate)
        else:
            before = (ledger.entries, ledger.epsilon_total, ledger.rho_total, ledger.spent)
            pytest.raises(BudgetExhausted, ledger.charge, candidate)
            assert (ledger.entries, ledger.epsilon_total, ledger.rho_total, ledger.spent) == before
            refused = True
        assert ledger.exhausted == refused
        spent = ledger.spent
        assert spent.epsilon <= budget.epsilon and spent.delta <= budget.delta
        assert [entry.event for entry in ledger.entries] == admitted
        assert [entry.index for entry in ledger.entries] == list(range(len(admitted)))
    if admitted:
        pure = sum(e.epsilon for e in admitted)
        converted = (
            rho_to_epsilon(sum(e.rho for e in admitted), budget.delta) if budget.delta else INF
        )
        assert ledger.spent.epsilon == pytest.approx(min(pure, converted), rel=1e-9)
    guarantee = ledger.guarantee
    # Events that were charged by hand are somebody's word.
    assert (guarantee.epsilon, guarantee.delta, guarantee.proven) == (
        budget.epsilon,
        budget.delta,
        not admitted,
    )


def test_union_rule_by_hand():
    budget = CONCENTRATED  # rho* = 0.02436
    ledger = Ledger(budget)
    ledger.charge(PureEvent(0.9))  # rho 0.405: only the pure rule is left
    assert ledger.remaining_rho == 0.0 and ledger.remaining_epsilon == pytest.approx(0.1)
    assert not ledger.can_afford(ZCDPEvent(1e-9))
    ledger.charge(PureEvent(0.05))
    assert not ledger.can_afford(PureEvent(0.051))

    many = Ledger(budget)
    for _ in range(40):  # 40 * 0.03 = 1.2 > 1, 40 * 0.03^2 / 2 = 0.018: only the zCDP rule is left
        many.charge(PureEvent(0.03))
    assert many.remaining_epsilon == 0.0 and many.remaining_rho > 0
    assert many.spent.delta == 1e-6 and many.spent.epsilon < 1
    many.charge(ZCDPEvent(0.006))
    assert not many.can_afford(PureEvent(0.9)) and not many.can_afford(ZCDPEvent(0.001))

    pure_only = Ledger(Budget(1.0))
    assert pure_only.rho_limit == 0.0 and not pure_only.can_afford(ZCDPEvent(1e-12))
    pure_only.charge(ExponentialMechanismEvent(1.0))
    assert not pure_only.can_afford(PureEvent(1e-15))
    assert pure_only.spent.epsilon == 1.0 and pure_only.spent.delta == 0.0


def test_no_tolerance():
    # 0.1 is a little more than a tenth as a float: ten of them do not fit, though float addition
    # and fsum both say 1.0.
    ledger = Ledger(Budget(1.0))
    for _ in range(9):
        ledger.charge(PureEvent(0.1))
    assert math.fsum([0.1] * 10) == 1.0
    pytest.raises(BudgetExhausted, ledger.charge, PureEvent(0.1))
    ledger.charge(PureEvent(ledger.remaining_epsilon))


@pytest.mark.parametrize("count", [1, 3, 7, 10, 629])
def test_split_fills_a_budget(count):
    budget = CONCENTRATED
    ledger = Ledger(budget)
    parts = split(ledger.rho_limit, [1.0] * count)
    for part in parts[:-1]:
        ledger.charge(PureEvent(rho_to_pure(part)))
    ledger.charge(ZCDPEvent(parts[-1]))
    assert ledger.rho_total <= ledger.rho_limit
    if count > 50:  # few events fit the pure rule as well
        assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-6)
        assert not ledger.can_afford(ZCDPEvent(1e-6))
    pure = Ledger(budget)
    for part in split(1.0, [1.0] * count):
        pure.charge(PureEvent(part))
    assert 0.999 < pure.epsilon_total <= 1.0


def test_no_privacy_ledger():
    ledger = Ledger(NO_PRIVACY)
    assert [ledger.charge(PureEvent(INF)), ledger.charge(ZCDPEvent(5.0))] == [0, 1]
    for cost in (ledger.guarantee, ledger.spent):
        assert cost.epsilon == INF and not cost.proven and "no privacy was asked for" in cost.reason
    assert ledger.remaining_epsilon == ledger.remaining_rho == INF and not ledger.exhausted


def test_infinite_events_fit_no_budget():
    for event in (PureEvent(INF), ZCDPEvent(INF), ExponentialMechanismEvent(INF)):
        pytest.raises(
            BudgetExhausted, Ledger(Budget(1e6, 0.5, accounting=Accounting.ZCDP)).charge, event
        )


def test_costs_and_table():
    ledger = Ledger(CONCENTRATED)
    assert ledger.spent.epsilon == 0.0
    ledger.charge(PureEvent(0.2, "first"))
    ledger.charge(ZCDPEvent(0.001, "second"))
    assert not ledger.spent.proven and ledger.spent.epsilon < 1.0
    # Charged by hand: the prices are the word of whoever charged them.
    assert not ledger.guarantee.proven and "'first'" in ledger.guarantee.reason
    rows = ledger.to_table()
    assert [row["label"] for row in rows] == ["first", "second"]
    assert rows[0] == {
        "index": 0,
        "label": "first",
        "mechanism": "Pure",
        "epsilon": 0.2,
        "rho": pytest.approx(0.02),
    }
    assert rows[1]["epsilon"] == INF


def test_bad_arguments():
    refused(OptionError, "budget", Ledger, 1.0)
    refused(OptionError, "event", Ledger(Budget(1.0)).charge, 0.1)
    for cls in (PureEvent, ZCDPEvent, ExponentialMechanismEvent):
        for bad in (0.0, -1.0, math.nan):
            pytest.raises(OptionError, cls, bad)


def test_union_rule_exactly_on_a_small_adaptive_run():
    """A brute-force check of the theorem: an analyst that mixes events adaptively, all transcripts
    enumerated.

    Mechanisms are randomised responses, the worst pure mechanisms; what is asked next depends on
    the last answers.
    """
    budget = Budget(1.0, 0.1, accounting=Accounting.ZCDP)
    rules = set()

    def walk(prefix, p, q, sizes):
        ledger = Ledger(budget)
        for past in sizes:
            ledger.charge(PureEvent(past))
        wish = 0.75 if prefix == (0,) else 0.5 if prefix[-2:] == (1, 0) else 0.2
        while not ledger.can_afford(PureEvent(wish)):
            wish /= 2
            if wish < 0.1:
                break
        if wish < 0.1 or len(prefix) == 13:
            rules.add("Z" if ledger.rho_total <= ledger.rho_limit else "P")
            return [(p, q)]
        honest = math.exp(wish) / (1 + math.exp(wish))
        leaves = walk((*prefix, 1), p * honest, q * (1 - honest), (*sizes, wish))
        return leaves + walk((*prefix, 0), p * (1 - honest), q * honest, (*sizes, wish))

    leaves = walk((), 1.0, 1.0, ())
    assert math.fsum(p for p, _ in leaves) == pytest.approx(1.0)
    for direction in (leaves, [(q, p) for p, q in leaves]):
        delta = math.fsum(max(0.0, p - math.exp(budget.epsilon) * q) for p, q in direction)
        assert delta <= budget.delta
    # Both rules are used, and delta is needed, so the test can fail.
    assert max(math.log(p / q) for p, q in leaves) > budget.epsilon
    assert delta > 0
    assert rules == {"P", "Z"}


@pytest.mark.parametrize("accounting", Accounting)
def test_the_rho_that_is_stated_covers_all_that_is_admitted(accounting: Accounting):
    """Of a person with k rows it is k^2 times that of a row: never less by a rounding."""
    for rows in range(1, 40):
        for epsilon in (0.1, 0.5, 1.0, 1.7):
            ledger = Ledger(Budget(epsilon, 1e-6, max_rows_per_person=rows, accounting=accounting))
            stated = ledger.guarantee.rho
            assert stated is not None
            assert Fraction(ledger.rho_limit) * rows**2 <= Fraction(stated)
            assert stated <= Ledger(Budget(epsilon, 1e-6, accounting=accounting)).rho_limit


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_the_ledger_itself(copied):
    """Two that remember apart would admit the budget twice."""
    ledger = Ledger(Budget(1.0))
    part = ledger.part(epsilon=0.5, rho=0.0)
    other, same_part = copied(ledger), copied(part)
    same_part.charge(PureEvent(0.5))
    with pytest.raises(BudgetExhausted):
        part.charge(PureEvent(0.25))
    ledger.charge(PureEvent(0.5))
    with pytest.raises(BudgetExhausted):
        other.charge(PureEvent(0.25))
    assert other.spent.epsilon == 1.0 and len(other.entries) == 2
