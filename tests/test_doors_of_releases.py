"""``jaxcd.release`` and ``jaxcd.search``: one way in for every kind of release."""

from __future__ import annotations

import numpy as np
import pytest

import jaxcd
from jaxcd.errors import OptionError
from jaxcd.privacy import Accounting, gdp_rho_to_epsilon
from tests.catalogue import KINDS, KindRow
from tests.helpers import numbers, refused, sampled, simulated

BUDGET = jaxcd.Budget(2.0, 1e-6)


@pytest.fixture(scope="module")
def discrete() -> jaxcd.Dataset:
    return sampled("cancer", 20_000)


@pytest.fixture(scope="module")
def numeric() -> jaxcd.Dataset:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000))
    values = np.column_stack([a, b, a + b + rng.normal(size=20_000)])
    return jaxcd.Dataset.from_array(values, domain=numbers("abc"))


def test_numeric_columns(numeric):
    bought = jaxcd.release(numeric, jaxcd.SecondMoments(), budget=BUDGET, noise=simulated(1))
    assert jaxcd.search(bought).graph == jaxcd.MixedGraph.from_edges(
        ["a", "b", "c"], ["a --> c", "b --> c"]
    )


@pytest.mark.parametrize("row", KINDS, ids=lambda row: type(row.kind).__name__)
@pytest.mark.parametrize("noise", [None, simulated(1)], ids=["secure", "simulated"])
def test_every_search_says_what_was_paid_and_whether_noise_was_secure(row: KindRow, noise):
    data = row.data(20_000)
    bought = jaxcd.release(data, row.kind, budget=BUDGET, noise=noise)
    info = jaxcd.search(bought).info
    assert info["secure_noise"] is (noise is None) and info["budget"] == str(bought.cost)
    assert info["release"] == bought.kind and info["n_samples"] == 20_000
    assert info["n_variables"] == len(data.names)
    rho = sum(event.get("gdp_rho", 0.0) for event in info["ledger"])
    paid = (
        info["ledger"][0]["epsilon"]
        if info["ledger"][0]["mechanism"] == "Pure"
        else gdp_rho_to_epsilon(rho, BUDGET.delta)
    )
    assert paid == pytest.approx(bought.spent.epsilon, rel=1e-6)


def test_what_is_no_release(discrete):
    refused(OptionError, "kind = 'histogram'", jaxcd.release, discrete, "histogram", budget=BUDGET)
    plan = {"kind": "histogram", "budget": BUDGET}
    for row in KINDS:  # none is left out of the cure
        name = rf"\b{type(row.kind).__name__}\(\)"
        refused(OptionError, name, jaxcd.plan_release, discrete.domain, 9, **plan)
        assert row.kind.takes_people  # as is said of releases where others are refused
    refused(OptionError, "a Dataset cannot be searched", jaxcd.search, discrete)


def test_discover_keeps_what_it_bought(discrete, tmp_path):
    options = {"budget": BUDGET, "key": None, "noise": simulated(1)}
    file = tmp_path / "bought.npz"
    run = jaxcd.discover(discrete, **options, release_out=file, n_confidence_draws=2)
    bought = jaxcd.Release.load(file)
    assert bought.kind == "histogram" and jaxcd.search(bought).graph == run.graph
    assert run.confidence is not None and run.confidence.names == discrete.names
    again = jaxcd.edge_confidence(bought, run, n_draws=2)
    assert np.array_equal(run.confidence.adjacency, again.adjacency) and run.confidence.n_draws == 2
    plain = jaxcd.discover(discrete, **options, algorithm=jaxcd.Algorithm.RELEASE)
    assert plain.graph == run.graph and plain.confidence is None


def test_what_could_not_be_kept_is_refused_before_it_is_bought(discrete, tmp_path, monkeypatch):
    def charge(*_, **__):
        raise AssertionError("the ledger was charged")

    monkeypatch.setattr(jaxcd.privacy.Ledger, "charge", charge)
    options = {"budget": BUDGET, "key": None}
    for wrong in (
        {"release_out": tmp_path},
        {"release_out": tmp_path / "nowhere" / "x.npz"},
        {"release_out": tmp_path / "x.npz", "test": jaxcd.CovarianceNorm()},
        {"n_confidence_draws": 2, "max_level": 1},
        {"n_confidence_draws": 1.5},
    ):
        refused(OptionError, "give|drop|use", jaxcd.discover, discrete, **options, **wrong)
    refused(AssertionError, "charged", jaxcd.discover, discrete, **options)


@pytest.mark.parametrize("row", KINDS, ids=lambda row: type(row.kind).__name__)
@pytest.mark.parametrize("accounting", list(Accounting))
def test_a_budget_too_small_for_the_noise_is_refused_before_it_is_spent(
    row: KindRow, accounting: Accounting
):
    """Below about 1e-7 some noise has no room in 64 bits."""
    data = row.data(50)
    for epsilon in (1e-6, 1e-8, 1e-10, 1e-14, 1e-40):
        budget = jaxcd.Budget(epsilon, epsilon**2, accounting=accounting)
        try:
            bought = jaxcd.release(data, row.kind, budget=budget, noise=simulated(1))
        except OptionError as error:
            assert jaxcd.receipt_of(error) is None, f"epsilon {epsilon} was spent"
            assert epsilon < 1e-6
        else:
            assert bought.spent.epsilon <= epsilon
