"""Bandwidths bought with the exponential mechanism: sensitivity by brute force, cost, choice,
refusals before any charge.
"""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.citests import Query
from jaxcd.citests.bought_bandwidths import SCALE_SENSITIVITY, buy_scales, scale_utilities
from jaxcd.citests.bounded_rcit import residual_shift
from jaxcd.errors import DomainError, OptionError
from jaxcd.privacy import Accountant, Accounting, Budget, Ledger, Relation
from tests.helpers import numbers, refused, simulated

CHOICE = jaxcd.citests.BoughtBandwidths()


def numeric(columns: np.ndarray, bound: float = 1.0) -> jaxcd.Dataset:
    names = [f"x{j}" for j in range(columns.shape[1])]
    domain = numbers(names, -bound, bound)
    return jaxcd.Dataset.from_array(columns, names=names, domain=domain, clip=True)


PURE, MIXED = Budget(2.0), Budget(2.0, 1e-6, accounting=Accounting.ZCDP)
GAUSSIAN = Budget(2.0, 1e-6, accounting=Accounting.GAUSSIAN)


def accountant(epsilon: float) -> Accountant:
    return Accountant(Ledger(Budget(epsilon, 1e-6)), simulated())


def test_utilities_are_those_of_the_gram_matrix():
    x = np.random.default_rng(0).uniform(-1, 1, 50)
    square = (x[:, None] - x[None, :]) ** 2
    wanted = [
        -50 * abs(np.exp(-square / (2 * (s * 0.5) ** 2)).mean() - CHOICE.target)
        for s in CHOICE.grid
    ]
    np.testing.assert_allclose(scale_utilities(x, CHOICE, bandwidth=0.5), wanted, atol=1e-5)


def test_one_record_moves_a_utility_by_at_most_two():
    """All pairs of places on a grid for the replaced record, over clusters and spreads; two is
    reached.
    """
    rng = np.random.default_rng(1)
    choice = jaxcd.citests.BoughtBandwidths(grid=(0.05, 0.5, 2.0), target=0.9)
    worst = 0.0
    for n in (2, 3, 10, 60):
        for rest in (
            np.full(n - 1, -1.0),
            rng.uniform(-1, 1, n - 1),
            rng.choice([-1.0, 0.0, 1.0], n - 1),
        ):
            utilities = np.array(
                [
                    scale_utilities(np.append(rest, place), choice, bandwidth=0.5)
                    for place in np.linspace(-1, 1, 7)
                ]
            )
            worst = max(worst, float(np.ptp(utilities, axis=0).max()))
            assert np.ptp(utilities, axis=0).max() <= 2 * (n - 1) / n + 1e-6
    assert 1.95 < worst <= SCALE_SENSITIVITY


def test_the_best_factor_is_that_of_the_columns_spread():
    rng = np.random.default_rng(2)
    columns = [np.clip(scale * rng.normal(size=4000), -1, 1) for scale in (0.05, 0.1, 0.5)]
    # Mean kernel 1/2 for normal data: bandwidth sqrt(2 / 3) standard deviations, here 0.041, 0.082
    # and about 0.41, of 0.5 s.
    assert buy_scales(columns, "abc", CHOICE, None, bandwidth=0.5) == (0.125, 0.125, 1.0)
    bought = buy_scales(columns, "abc", CHOICE, accountant(1.0), bandwidth=0.5)
    assert bought == (0.125, 0.125, 1.0)  # noise of a hundred rows against gaps of thousands


def test_a_budget_of_nothing_buys_chance():
    columns = [np.zeros(20)] * 60
    assert set(buy_scales(columns, [""] * 60, CHOICE, accountant(1e-3), bandwidth=0.5)) == set(
        CHOICE.grid
    )


@pytest.mark.parametrize("budget", [PURE, MIXED, GAUSSIAN], ids=["pure", "zcdp", "gaussian"])
def test_the_price_is_the_share_and_is_charged_once(budget: Budget):
    columns = [np.linspace(-1, 1, 100)] * 4
    buyer = Accountant(Ledger(budget), simulated())
    rho = buyer.ledger.remaining_rho
    buy_scales(columns, "abcd", jaxcd.citests.BoughtBandwidths(share=0.25), buyer, bandwidth=0.5)
    rows = buyer.ledger.to_table()
    assert [row["label"] for row in rows] == [f"bandwidth of {c}" for c in "abcd"]
    assert {row["mechanism"] for row in rows} == {"ExponentialMechanism"}
    if budget.delta:
        kind = "gdp_rho" if budget is GAUSSIAN else "rho"
        assert sum(row[kind] for row in rows) == pytest.approx(0.25 * rho, rel=1e-9)
        assert buyer.ledger.remaining_rho >= 0.75 * rho * (1 - 1e-12)
    else:
        assert sum(row["epsilon"] for row in rows) == pytest.approx(0.5, rel=1e-9)
        assert buyer.ledger.remaining_epsilon >= 1.5 * (1 - 1e-12)


@pytest.mark.parametrize("accounting", list(Accounting))
@pytest.mark.parametrize("decider", [jaxcd.NoisyRank(n_queries=20), jaxcd.SparseVector()])
def test_a_private_run_buys_first_and_keeps_the_budget(decider, accounting):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 300)
    data = numeric(np.column_stack([x, x**2, rng.uniform(-1, 1, 300)]))
    run = jaxcd.pc(
        data,
        test=jaxcd.BoundedRCIT(
            scales=jaxcd.citests.BoughtBandwidths(grid=(0.5, 1.0)), n_permutations=19, n_features=20
        ),
        decider=decider,
        budget=Budget(1.0, 1e-6, accounting=accounting),
        key=jax.random.key(0),
        noise=simulated(1),
        max_level=1,
    )
    labels = [row["label"] for row in run.info["ledger"]]
    assert labels[:3] == ["bandwidth of x0", "bandwidth of x1", "bandwidth of x2"]
    assert not any(label.startswith("bandwidth") for label in labels[3:]) and len(labels) > 3
    assert run.spent.epsilon <= 1.0 and run.cost.accounting is accounting
    assert jaxcd.verify(run.certificate()).holds


@pytest.mark.parametrize("null", list(jaxcd.citests.Null))
@pytest.mark.parametrize("given", [(), (2,)])
def test_margins_in_bought_bandwidths_move_by_at_most_one(null, given):
    """With the factors public: each column has its own, and the unit of the margin is theirs."""
    from jaxcd.citests.bounded_rcit import _PreparedKernel

    test = jaxcd.BoundedRCIT(
        null=null, n_permutations=19, penalty=0.5, n_features=20, scales=CHOICE
    )
    rng = np.random.default_rng(4)
    query, worst = Query(0, 1, given), 0.0
    for trial in range(10):
        scales = ((0.25, 1.0, 0.5), (2.0, 0.25, 1.0))[trial % 2]
        columns = (
            rng.choice([-1.0, -0.5, 0.0, 1.0], (40, 3))
            if trial % 4 < 2
            else rng.uniform(-1, 1, (40, 3))
        )
        other = columns.copy()
        other[int(rng.integers(40))] = rng.choice([-1.0, 1.0], 3)
        ends = [
            _PreparedKernel(values, scales, test, jax.random.key(7))
            .evaluate(given, [query], alpha=0.05)
            .margin[0]
            for values in (columns, other)
        ]
        worst = max(worst, abs(ends[0] - ends[1]))
    assert (0.005 if given else 0.05) < worst <= 1.0


def test_smaller_bandwidths_cost_more_records():
    test = jaxcd.BoundedRCIT()
    options = dict(conditional=True, n_samples=1000)
    shift = residual_shift(test.penalty, test.norm_bound)
    assert test.record_sensitivity(**options, scales=(0.5, 2.0)) == pytest.approx(
        4 + math.sqrt(6) + 2 * shift * (1 / 0.125 + 1 / 0.5), abs=1e-5
    )
    assert test.record_sensitivity(
        conditional=False, n_samples=1000, scales=(0.1, 0.1)
    ) == pytest.approx(6.4495, abs=1e-3)


def test_without_privacy_the_best_bandwidths_are_taken():
    rng = np.random.default_rng(5)
    x = 0.02 * rng.normal(size=400)  # far below the public bandwidth
    data = numeric(np.column_stack([x, np.cos(100 * x) + 0.1 * rng.normal(size=400)]))
    margins = [
        jaxcd.ci_test(
            data,
            "x0",
            "x1",
            test=jaxcd.BoundedRCIT(scales=s),
            budget=jaxcd.NO_PRIVACY,
            key=jax.random.key(0),
        ).margin
        for s in (None, CHOICE)
    ]
    assert margins[1] > max(2 * margins[0], 1)


def test_analytic_null_at_any_level():
    """z sqrt(a b / m) at the level asked for, with the p-value that belongs to it."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, 300)
    data = numeric(np.column_stack([x, np.clip(0.3 * x + rng.uniform(-0.7, 0.7, 300), -1, 1)]))
    test = jaxcd.BoundedRCIT(null=jaxcd.citests.Null.ANALYTIC)
    options = dict(test=test, budget=jaxcd.NO_PRIVACY, key=jax.random.key(0))
    answers = {
        a: jaxcd.ci_test(data, "x0", "x1", alpha=a, **options) for a in (0.2, 0.05, 0.001, 1e-9)
    }
    pvalue = answers[0.05].pvalue
    assert len({a.pvalue for a in answers.values()}) == 1 and 0 < pvalue < 0.2
    for alpha, answer in answers.items():
        assert answer.independent == (pvalue >= alpha)
        bound = test.record_sensitivity(conditional=False, n_samples=300, alpha=alpha)
        assert bound == pytest.approx(
            math.sqrt(6) + 4 * math.sqrt(5) * jaxcd_quantile(alpha) / math.sqrt(300), abs=1e-4
        )
    refused(OptionError, "analytic null", jaxcd.ci_test, data, "x0", "x1", alpha=0.3, **options)
    with pytest.raises(OptionError, match="analytic null"):
        test.margin_sensitivity(alpha=0.3, n_samples=300, relation=Relation.REPLACE_ONE)


def jaxcd_quantile(alpha: float) -> float:
    from scipy import stats

    return float(stats.norm.isf(alpha / 2))


def test_refusals_come_before_any_charge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Ledger, "charge", lambda *_: pytest.fail("charged"))
    data = numeric(np.random.default_rng(0).uniform(-1, 1, (20, 2)))
    test = jaxcd.BoundedRCIT(scales=CHOICE)
    unbounded = jaxcd.Dataset.from_array(
        data.values("x0")[:, None] * [1, 2],
        names=["x0", "x1"],
        domain=jaxcd.Domain({"x0": jaxcd.Numeric(), "x1": jaxcd.Numeric()}),
    )
    options = dict(test=test, budget=Budget(1.0))
    with pytest.raises(DomainError, match="public bounds"):
        jaxcd.ci_test(unbounded, "x0", "x1", key=jax.random.key(0), **options)
    refused(OptionError, "key", jaxcd.ci_test, data, "x0", "x1", key=None, **options)
    with pytest.raises(OptionError, match="n_permutations"):
        jaxcd.ci_test(data, "x0", "x1", alpha=0.001, key=jax.random.key(0), **options)
    for bad in (
        {"share": 0.0},
        {"share": 1},
        {"share": math.nan},
        {"target": 1.0},
        {"target": math.nan},
        {"grid": (1.0,)},
        {"grid": [1.0, 2.0]},
        {"grid": (1.0, 1.0)},
        {"grid": (1.0, -1.0)},
        {"grid": (1.0, math.nan)},
    ):
        refused(OptionError, next(iter(bad)), jaxcd.citests.BoughtBandwidths, **bad)
    refused(OptionError, "scales", jaxcd.BoundedRCIT, scales=0.5)
