"""Budgets with Gaussian accounting: the filter, its prices, files and certificates."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import jax
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import jaxcd
from jaxcd.decisions.noisy_threshold import Noise
from jaxcd.errors import BudgetExhausted, FormatError, OptionError, PrivacyError
from jaxcd.privacy import (
    Accountant,
    Accounting,
    Budget,
    ExponentialMechanismEvent,
    FailureEvent,
    GaussianEvent,
    Ledger,
    LedgerFile,
    PureEvent,
    ZCDPEvent,
    epsilon_to_gdp_rho,
    epsilon_to_rho,
    gaussian,
    gdp_rho_to_epsilon,
    pure_to_gdp_rho,
    range_to_gdp_rho,
    split,
)
from jaxcd.privacy.certificate import certificate_digest
from jaxcd.privacy.noise import NoiseSampler
from tests.helpers import Quick, refused, sampled, simulated

BUDGET = Budget(1.0, 1e-6, accounting=Accounting.GAUSSIAN)
BY_ZCDP = Budget(1.0, 1e-6, accounting=Accounting.ZCDP)


TEST = jaxcd.CovarianceNorm()


def searched(data, decider, **more):
    return jaxcd.pc(data, test=TEST, decider=decider, key=jax.random.key(0), **more)


def delta_of(epsilon, rho):
    mu = math.sqrt(2 * rho)
    return float(
        special.ndtr(mu / 2 - epsilon / mu)
        - math.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))
    )


def test_budget():
    free = Budget(1.0, 1e-6)
    assert free.accounting is None and BUDGET != free
    assert BUDGET == BUDGET.settled(Accounting.ZCDP) == free.settled(Accounting.GAUSSIAN)
    assert free.settled(Accounting.ZCDP) == BY_ZCDP
    for cannot in (Budget(1.0), Budget(2.0**21, 1e-6)):  # no delta; too large an epsilon
        assert cannot.settled(Accounting.GAUSSIAN).accounting is Accounting.ZCDP
    assert "Gaussian accounting" in str(BUDGET) and "GAUSSIAN" in repr(BUDGET)
    assert "accounting" not in repr(Budget(1.0, 1e-6)) + str(Budget(1.0, 1e-6))
    refused(OptionError, "accounting", Budget, 1.0, accounting=Accounting.GAUSSIAN)
    refused(OptionError, "accounting", Budget, 1.0, 1e-6, accounting="gdp")
    refused(OptionError, "2\\*\\*20", Budget, 2.0**21, 1e-6, accounting=Accounting.GAUSSIAN)


def test_prices_of_events():
    assert GaussianEvent(0.02).gdp_rho == GaussianEvent(0.02).rho == 0.02
    assert GaussianEvent(0.02).epsilon == ZCDPEvent(0.02).gdp_rho == math.inf
    assert PureEvent(0.3).gdp_rho == pure_to_gdp_rho(0.3)
    assert ExponentialMechanismEvent(0.3).gdp_rho == range_to_gdp_rho(0.3)
    assert FailureEvent(1e-9).gdp_rho == 0.0
    refused(OptionError, "rho", GaussianEvent, 0.0)


def test_limits():
    ledger = Ledger(BUDGET)
    assert ledger.rho_limit == ledger.remaining_rho == epsilon_to_gdp_rho(1.0, 1e-6)
    assert 1.149 < ledger.rho_limit / epsilon_to_rho(1.0, 1e-6) < 1.151
    part = ledger.rho_limit / 4
    for _ in range(4):
        ledger.charge(GaussianEvent(part))
    pytest.raises(BudgetExhausted, ledger.charge, GaussianEvent(1e-9))
    assert ledger.spent.epsilon <= 1.0 and ledger.spent.delta == 1e-6
    assert ledger.spent.accounting is ledger.guarantee.accounting is Accounting.GAUSSIAN
    assert ledger.guarantee.rho == ledger.rho_limit
    assert all(row["gdp_rho"] == row["rho"] == part for row in ledger.to_table())


def test_an_event_of_zcdp_only_is_refused_with_a_cure():
    for call in (Ledger(BUDGET).charge, Ledger(BUDGET).can_afford):
        refused(PrivacyError, "GaussianEvent", call, ZCDPEvent(1e-4, "a"))
    Ledger(BY_ZCDP).charge(GaussianEvent(1e-4))  # it has a zCDP


@pytest.mark.parametrize(
    ("run", "accounting"),
    [
        (lambda data, **more: jaxcd.release(data, jaxcd.Marginals(), **more), Accounting.GAUSSIAN),
        (lambda data, **more: jaxcd.release(data, jaxcd.Histogram(), **more), Accounting.ZCDP),
        (
            lambda data, **more: searched(data, jaxcd.LevelwiseGaussian(), **more),
            Accounting.GAUSSIAN,
        ),
        (
            lambda data, **more: searched(data, jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN), **more),
            Accounting.GAUSSIAN,
        ),
        (lambda data, **more: searched(data, jaxcd.SparseVector(), **more), Accounting.ZCDP),
        (
            lambda data, **more: jaxcd.tree_pc(data, test=TEST, key=None, **more),
            Accounting.GAUSSIAN,
        ),
    ],
)
def test_a_budget_that_says_nothing_takes_what_promises_most_or_the_ledgers(run, accounting):
    data, free = sampled("cancer", 300), Budget(1.0, 1e-6)
    assert run(data, budget=free, noise=simulated()).cost.accounting is accounting
    for above in (BUDGET, BY_ZCDP):
        total = Ledger(dataclasses.replace(above, epsilon=4.0, delta=1e-5))
        found = run(data, budget=free, noise=simulated(), ledger=total)
        assert found.cost.accounting is above.accounting


def test_pure_rule_and_gaussian_rule_in_one_ledger():
    ledger = Ledger(BUDGET)
    ledger.charge(PureEvent(0.1))  # within both
    ledger.charge(GaussianEvent(ledger.remaining_rho))  # within (G) only
    assert ledger.remaining_epsilon == 0.0 and ledger.remaining_rho < 1e-15
    refused(BudgetExhausted, "does not fit", ledger.charge, PureEvent(0.01))
    other = Ledger(BUDGET)
    other.charge(PureEvent(0.9))  # within (P) only
    assert other.remaining_rho == 0.0 and other.remaining_epsilon > 0.09
    refused(BudgetExhausted, "does not fit", other.charge, GaussianEvent(1e-6))


EVENTS = st.one_of(
    st.floats(1e-4, 0.6).map(PureEvent),
    st.floats(1e-6, 0.03).map(GaussianEvent),
    st.floats(1e-4, 0.9).map(ExponentialMechanismEvent),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(1, 3))
def test_the_filter_never_exceeds(events, rows):
    budget = dataclasses.replace(BUDGET, max_rows_per_person=rows)
    ledger, admitted = Ledger(budget), []
    for event in events:
        before = ledger.remaining_epsilon, ledger.remaining_rho
        try:
            ledger.charge(event)
            admitted.append(event)
        except BudgetExhausted:
            assert event.epsilon > before[0] and event.gdp_rho > before[1]
    pure = sum((Fraction(e.epsilon) for e in admitted if e.epsilon < math.inf), Fraction(0)) * rows
    rho = sum((Fraction(e.gdp_rho) for e in admitted), Fraction(0)) * rows**2
    by_pure = all(e.epsilon < math.inf for e in admitted) and pure <= 1
    assert by_pure or rho <= Fraction(epsilon_to_gdp_rho(1.0, 1e-6))
    if not by_pure:
        assert delta_of(1.0, float(rho)) <= 1e-6 * (1 + 1e-9)
    assert ledger.spent.epsilon <= 1.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_an_adaptive_analyst_gets_no_more_than_delta(epsilon, delta):
    """An analyst who looks at a noisy number and then spends the rest in one of two ways: the exact
    divergence of the transcript, by integration over the first number."""
    limit = epsilon_to_gdp_rho(epsilon, delta)
    first = 0.3 * limit
    rests = (limit - first, 0.2 * limit)  # spends all where the first number was large

    def hockey(s, rho):  # H_s of G(sqrt(2 rho))
        mu = math.sqrt(2 * rho)
        return special.ndtr(mu / 2 - np.log(s) / mu) - s * special.ndtr(-mu / 2 - np.log(s) / mu)

    mu = math.sqrt(2 * first)
    x = np.linspace(-12, 12 + mu, 400_001)
    # P = N(mu, 1), P' = N(0, 1): the ratio P'/P at x
    density = np.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    ratio = math.exp(epsilon) * np.exp(-mu * x + mu**2 / 2)
    total = np.trapezoid(
        density * np.where(x > 1, hockey(ratio, rests[0]), hockey(ratio, rests[1])), x
    )
    assert 0 < total <= delta * (1 + 1e-6)
    everything = np.trapezoid(density * hockey(ratio, rests[0]), x)
    assert everything == pytest.approx(delta, rel=1e-4)  # who always spends all: G of the sum


def test_two_rules_with_one_delta_would_exceed_it():
    """Why (Z) and (G) are never joined: pure events within (Z) may exceed (G), and Gaussian noise
    within (G) may exceed (Z); a ledger has one of them."""
    pure, limit_z, limit_g = 0.02, epsilon_to_rho(1.0, 1e-6), epsilon_to_gdp_rho(1.0, 1e-6)
    by_z = math.floor(limit_z / PureEvent(pure).rho)
    by_g = math.floor(limit_g / PureEvent(pure).gdp_rho)
    ledger, admitted = Ledger(BUDGET), 0
    while ledger.can_afford(PureEvent(pure)):
        ledger.charge(PureEvent(pure))
        admitted += 1
    assert 50 < admitted == by_g < by_z
    refused(BudgetExhausted, "fit", Ledger(BUDGET).charge, GaussianEvent(limit_g * (1 + 1e-12)))
    refused(BudgetExhausted, "fit", Ledger(BY_ZCDP).charge, GaussianEvent(limit_z * 1.001))


def test_people_with_several_rows():
    budget = dataclasses.replace(BUDGET, max_rows_per_person=3)
    ledger = Ledger(budget)
    assert ledger.rho_limit == pytest.approx(epsilon_to_gdp_rho(1.0, 1e-6) / 9, rel=1e-12)
    assert ledger.rho_limit * 9 <= epsilon_to_gdp_rho(1.0, 1e-6)
    ledger.charge(GaussianEvent(ledger.rho_limit))
    assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    group = Ledger(BUDGET).guarantee.for_group(2)
    assert group.epsilon == max(2.0, gdp_rho_to_epsilon(4 * epsilon_to_gdp_rho(1.0, 1e-6), 1e-6))
    assert delta_of(group.epsilon, 4 * epsilon_to_gdp_rho(1.0, 1e-6)) <= 1e-6


def test_failures_take_their_part_of_delta():
    ledger = Ledger(BUDGET, failure_delta=4e-7)
    assert ledger.rho_limit == epsilon_to_gdp_rho(1.0, 6e-7) or ledger.rho_limit == pytest.approx(
        epsilon_to_gdp_rho(1.0, 6e-7), rel=1e-12
    )
    ledger.charge(FailureEvent(3e-7))
    refused(BudgetExhausted, "failures", ledger.charge, FailureEvent(2e-7))
    ledger.charge(GaussianEvent(ledger.remaining_rho))
    assert ledger.spent.delta <= 1e-6


def test_parts_and_ledgers_above():
    ledger = Ledger(BUDGET)
    part = ledger.part(epsilon=0.0, rho=ledger.rho_limit / 2)
    assert part.accounting is Accounting.GAUSSIAN
    part.charge(PureEvent(part.pure_within(part.remaining_rho)))
    part = ledger.part(epsilon=0.0, rho=ledger.remaining_rho)
    part.charge(ExponentialMechanismEvent(part.selection_within(part.remaining_rho)))
    below = Ledger(Budget(0.5, 5e-7, accounting=Accounting.GAUSSIAN), under=Ledger(BUDGET))
    below.charge(GaussianEvent(below.remaining_rho))
    free = Budget(0.5, 1e-7)  # takes the accounting of the ledger above
    assert Ledger(free, under=Ledger(BUDGET)).accounting is Accounting.GAUSSIAN
    assert Ledger(free, under=Ledger(BY_ZCDP)).accounting is Accounting.ZCDP
    own = dataclasses.replace(free, accounting=Accounting.ZCDP)
    cure = "a ledger made with accounting=Accounting.ZCDP, or .* budget with .*GAUSSIAN"
    refused(OptionError, cure, Ledger, own, under=Ledger(BUDGET))
    refused(OptionError, "accounting", Ledger, BUDGET, under=Ledger(BY_ZCDP))
    above = Ledger(BUDGET)
    Ledger(Budget(0.25), under=above).charge(PureEvent(0.25))  # without a delta: pure events only
    assert above.rho_total == pure_to_gdp_rho(0.25)


class _Kept(Quick):
    """Keeps which laws were drawn, with which sigma."""

    def __init__(self):
        super().__init__(0)
        self.drawn = []

    def rounded_gaussian(self, sigma, size, *, index):
        self.drawn.append(("rounded", sigma))
        return super().rounded_gaussian(sigma, size, index=index)

    def discrete_gaussian(self, sigma, size, *, index):
        self.drawn.append(("discrete", sigma))
        return super().discrete_gaussian(sigma, size, index=index)


def test_the_mechanism_draws_rounded_noise_and_charges_for_it():
    values = np.arange(5)
    for budget, law in ((BUDGET, "rounded"), (BY_ZCDP, "discrete")):
        sampler = _Kept()
        accountant = Accountant(Ledger(budget), sampler)
        gaussian(accountant, values, sensitivity=2.0, rho=0.01, label="a", grid=1.0)
        (drawn, sigma), *_ = sampler.drawn
        (entry,) = accountant.ledger.entries
        assert drawn == law and type(entry.event) is (
            GaussianEvent if law == "rounded" else ZCDPEvent
        )
        assert entry.event.record.law.value == f"{law} Gaussian"
        assert entry.event.record.scales == (sigma,)
        assert 4 <= 2 * Fraction(0.01) * Fraction(sigma) ** 2 < 4 * (1 + Fraction(1, 10**12))


def test_a_sampler_without_rounded_noise_says_so():
    class Old(Quick):
        rounded_gaussian = NoiseSampler.rounded_gaussian

    accountant = Accountant(Ledger(BUDGET), Old(0))
    refused(
        OptionError, "rounded", gaussian, accountant, [1.0], sensitivity=1.0, rho=0.01, label="a"
    )


def test_too_small_a_budget_for_the_sampler_is_refused_before_it_is_charged():
    accountant = Accountant(Ledger(BUDGET), Quick(0))
    options = dict(sensitivity=1.0, rho=1e-4, label="a", grid=2.0**-46)
    refused(OptionError, "2\\*\\*50", gaussian, accountant, np.array([1.0]), **options)
    assert accountant.ledger.entries == ()


@pytest.mark.parametrize(
    "kind",
    [
        jaxcd.Marginals(),
        jaxcd.LogLinear(),
        jaxcd.SecondMoments(),
        jaxcd.Tetrachoric(),
        jaxcd.Features(),
        jaxcd.Histogram(),
    ],
)
def test_releases(kind, tmp_path):
    if isinstance(kind, (jaxcd.SecondMoments, jaxcd.Tetrachoric, jaxcd.Features)):
        columns = np.random.default_rng(0).uniform(-1, 1, (300, 3))
        domain = jaxcd.Domain({f"x{j}": jaxcd.Numeric(-1.0, 1.0) for j in range(3)})
        data = jaxcd.Dataset.from_array(columns, names=list(domain), domain=domain)
    else:
        data = sampled("cancer", 300)
    bought = jaxcd.release(data, kind, budget=BUDGET)
    assert bought.cost.proven and bought.cost.accounting is Accounting.GAUSSIAN
    assert 0 < bought.spent.epsilon <= 1.0 and bought.spent.delta <= 1e-6
    if kind != jaxcd.Histogram():  # which buys pure noise
        rhos = [row["gdp_rho"] for row in bought.ledger]
        assert sum(map(Fraction, rhos)) <= Fraction(epsilon_to_gdp_rho(1.0, 1e-6))
        by_zcdp = jaxcd.release(data, kind, budget=BY_ZCDP).ledger
        assert rhos[0] / by_zcdp[0]["rho"] == pytest.approx(1.150, abs=1e-3)
    assert jaxcd.verify(bought.certificate()).holds
    again = jaxcd.Release.load(bought.save(tmp_path / "a.npz"))
    assert again.cost == bought.cost and again.spent == bought.spent
    assert again.certificate()["ledger"] == bought.certificate()["ledger"]


@pytest.mark.parametrize(
    "decider",
    [
        jaxcd.NoisyThreshold(),
        jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN),
        jaxcd.LevelwiseGaussian(),
        jaxcd.SparseVector(),
        jaxcd.ExponentialSelect(),
    ],
)
def test_searches(decider):
    data = sampled("cancer", 400)
    result = jaxcd.pc(
        data, test=jaxcd.CovarianceNorm(), decider=decider, budget=BUDGET, key=jax.random.key(0)
    )
    assert result.cost.accounting is Accounting.GAUSSIAN and result.cost.proven
    assert jaxcd.verify(result.certificate()).holds


@pytest.mark.parametrize(
    ("decider", "label", "of_scales"),
    [
        (jaxcd.NoisyThreshold(), "noisy margin", math.sqrt(2)),
        (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN), "noisy margin", 1.0),
        (jaxcd.SparseVector(), "sparse vector round", 1.0),
        (jaxcd.SieveAndExamine(), "examine", math.sqrt(2)),
        # the difference of two Gumbel draws
        (jaxcd.ExponentialSelect(), "answer and set", math.pi / math.sqrt(12)),
        (jaxcd.LevelwiseGaussian(), "level 1", 1.0),
        (jaxcd.TreeOptions(), "grow", 1.0),
    ],
)
def test_the_plan_is_what_the_run_draws(decider, label, of_scales):
    """The noise of an answer is that of the plan, and differs from zCDP's as the prices do."""
    data, test = sampled("asia", 5000), jaxcd.CovarianceNorm()
    tree = isinstance(decider, jaxcd.TreeOptions)
    choice = {"tree": decider} if tree else {"decider": decider}
    noises = []
    for budget in (BY_ZCDP, BUDGET):
        options = dict(test=test, budget=budget, key=jax.random.key(0), noise=simulated(1))
        if tree:
            run = jaxcd.tree_pc(data, options=decider, **options)
        else:
            run = jaxcd.pc(data, decider=decider, max_level=1, **options)
        row = next(row for row in run.info["ledger"] if row["label"].startswith(label))
        planned = jaxcd.plan(data.domain, 5000, test=test, budget=budget, **choice)
        # plans of batches have all 28 pairs open
        open_pairs = (row["sensitivity"] / 3.0) ** 2
        batch = math.sqrt(28 / open_pairs) if label in ("level 1", "grow") else 1.0
        drawn = math.hypot(*row["scales"]) * row["grid"] * of_scales * batch
        assert drawn == pytest.approx(planned.noise, rel=1e-3)
        noises.append(planned.noise)
    ratio = (noises[0] / noises[1]) ** 2
    limits = epsilon_to_gdp_rho(1.0, 1e-6) / epsilon_to_rho(1.0, 1e-6)
    if row["mechanism"] == "Gaussian":
        assert ratio == pytest.approx(limits, rel=1e-9)
    elif row["epsilon"] < 0.04:  # by rho: cheaper is (P), where there are few
        assert ratio == pytest.approx(limits * 2 / math.pi, rel=1e-3)
    else:  # by (P) under one accounting at least
        assert limits * 2 / math.pi <= ratio <= 1.0


def test_two_pairs_share_a_budget_with_its_accounting():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 300)
    y = np.clip(x**3 + rng.uniform(-0.1, 0.1, 300), -1, 1)
    found = jaxcd.anm_batch(
        [(x, y), (y, x)], bounds=((-1, 1), (-1, 1)), budget=BUDGET, key=jax.random.key(0)
    )
    assert all(each.cost.accounting is Accounting.GAUSSIAN for each in found)
    assert all(jaxcd.verify(each.certificate()).holds for each in found)


def test_certificates_are_recomputed():
    data = sampled("cancer", 300)
    content = json.loads(
        json.dumps(jaxcd.release(data, jaxcd.Marginals(), budget=BUDGET).certificate())
    )
    assert content["guarantee"]["accounting"] == "gaussian" and jaxcd.verify(content).holds

    def changed(**parts):
        other = json.loads(json.dumps(content))
        other["ledger"][0].update(parts)
        other["digest"] = certificate_digest(other)
        return jaxcd.verify(other)

    row = content["ledger"][0]
    assert not changed(gdp_rho=row["gdp_rho"] / 2).holds
    assert not changed(law="discrete Gaussian").holds  # it is not Gaussian differentially private
    assert not changed(scales=[row["scales"][0] / 2]).holds
    other = json.loads(json.dumps(content))
    other["guarantee"]["accounting"] = "best"
    refused(FormatError, "accounting", jaxcd.verify, other)
    del other["guarantee"]["accounting"]  # as zCDP the noise is not enough
    other["digest"] = certificate_digest(other)
    assert not jaxcd.verify(other).holds


def test_an_altered_release_file_is_refused(tmp_path):
    data = sampled("cancer", 300)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=BUDGET, noise=simulated(1))
    rows = tuple({**row, "gdp_rho": row["gdp_rho"] / 2} for row in bought.charges)
    path = dataclasses.replace(bought, charges=rows).save(tmp_path / "a.npz")
    refused(FormatError, "less noise", jaxcd.Release.load, path)
    rows = bought.charges * 3
    path = dataclasses.replace(bought, charges=rows).save(tmp_path / "b.npz")
    refused(FormatError, "add up to more", jaxcd.Release.load, path)


def test_ledger_file(tmp_path):
    path = tmp_path / "a.ledger"
    file = LedgerFile(path, data_set="a", budget=BUDGET)
    assert path.read_text().startswith("jaxcd-ledger 2 ")  # version 1 would read it as zCDP
    data = sampled("cancer", 300)
    own = Budget(0.5, 5e-7, accounting=Accounting.GAUSSIAN)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=own, ledger=file)
    assert bought.cost.proven
    again = LedgerFile(path)
    assert again.budget == BUDGET and again.remaining_rho == file.remaining_rho
    assert again.remaining_rho < epsilon_to_gdp_rho(1.0, 1e-6)
    assert jaxcd.verify(again.certificate()).holds and jaxcd.verify(path).holds
    options = dict(budget=Budget(0.1, 1e-7, accounting=Accounting.ZCDP), ledger=again)
    refused(OptionError, "accounting", jaxcd.release, data, jaxcd.Marginals(), **options)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=Budget(0.01), ledger=again)
    assert bought.cost.proven and again.records[-1]["gdp_rho"] == pure_to_gdp_rho(0.01)
    refused(PrivacyError, "GaussianEvent", again.charge, ZCDPEvent(1e-4))
    refused(OptionError, "budget", LedgerFile, path, data_set="a", budget=BY_ZCDP)
    assert LedgerFile(path, data_set="a", budget=Budget(1.0, 1e-6)).budget == BUDGET
    for part in split(again.remaining_rho, [1.0] * 3):
        again.charge(GaussianEvent(part))
    refused(BudgetExhausted, "fit", again.charge, GaussianEvent(1e-6))
    path.write_text(path.read_text().replace("jaxcd-ledger 2 ", "jaxcd-ledger 1 "))
    refused(FormatError, "accounting", LedgerFile, path)


def test_pure_events_are_dominated_at_the_price_they_pay():
    """A run of k randomised responses and one Gaussian number: the exact divergence is within the
    conversion of the sum."""
    k, epsilon, rho = 12, 0.15, 0.01
    total = k * pure_to_gdp_rho(epsilon) + rho
    p, mu = mp.exp(epsilon) / (1 + mp.exp(epsilon)), math.sqrt(2 * rho)
    for at in (0.2, 0.7, 1.2):
        exact = mp.mpf(0)
        for ones in range(k + 1):
            loss = (2 * ones - k) * epsilon
            weight = mp.binomial(k, ones) * p**ones * (1 - p) ** (k - ones)
            s = at - loss
            exact += weight * (mp.ncdf(mu / 2 - s / mu) - mp.exp(s) * mp.ncdf(-mu / 2 - s / mu))
        assert exact <= delta_of(at, total) * (1 + 1e-9)
