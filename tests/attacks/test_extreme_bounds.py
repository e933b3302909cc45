"""Bounds, options and inputs at the edge of floats: what is accepted is answered whatever stands in
a record.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd import privacy
from jaxcd.errors import DomainError, OptionError
from jaxcd.pairwise import BoundedPolynomial, anm, reci
from jaxcd.pairwise.anm_scores import IQRMechanism, LogIQRScore
from tests.helpers import refused, sampled, simulated

BUDGET = jaxcd.Budget(1.0, 1e-6)
BOUNDS = ((-1.0, 1.0), (-1.0, 1.0))


@pytest.mark.parametrize("first", [1e16, 1e16 + 4, 1e16 + 8])
def test_bounds_between_which_there_are_few_floats(first: float):
    """Bins without width: no scale may be 0, or the error would tell that a record is at the
    centre.
    """
    domain = jaxcd.Domain({"t": jaxcd.Numeric(1e16, 1e16 + 8), "b": jaxcd.Numeric(-1.0, 1.0)})
    values = np.column_stack([np.full(8, 1e16), np.linspace(-1, 1, 8)])
    values[0, 0] = first
    data = jaxcd.Dataset.from_array(values, domain=domain)
    for seed in range(60):
        noise = simulated(seed)
        bought = jaxcd.release(
            data, jaxcd.SecondMoments(), budget=jaxcd.Budget(0.1, 1e-9), noise=noise
        )
        assert np.isfinite(bought.moments).all()
        signs = jaxcd.release(
            data, jaxcd.Tetrachoric(), budget=jaxcd.Budget(0.1, 1e-9), noise=noise
        )
        assert np.isfinite(signs.covariance).all() and (signs.scales > 0).all()


def test_bounds_farther_apart_than_a_float():
    refused(DomainError, "farther apart than the largest float", jaxcd.Numeric, -1.7e308, 1.7e308)
    wide = jaxcd.Domain({"a": jaxcd.Numeric(-8e307, 8e307), "b": jaxcd.Numeric(-1.0, 1.0)})
    for first in (0.0, 7e307, -8e307):
        values = np.column_stack([np.zeros(40), np.linspace(-1, 1, 40)])
        values[0, 0] = first
        data = jaxcd.Dataset.from_array(values, domain=wide)
        bought = jaxcd.release(data, jaxcd.Features(n_features=2), budget=BUDGET, noise=simulated())
        assert np.isfinite(bought.moments).all()
        signs = jaxcd.release(data, jaxcd.Tetrachoric(), budget=BUDGET, noise=simulated())
        assert np.isfinite(signs.correlation).all()
        answer = jaxcd.ci_test(
            data,
            "a",
            "b",
            test=jaxcd.BoundedRCIT(n_features=4),
            budget=BUDGET,
            key=jax.random.key(0),
        )
        assert np.isfinite(answer.margin)


def test_options_that_underflow_are_refused():
    x = np.linspace(-1, 1, 16)
    for wrong in ({"penalty": 1e-308}, {"ridge_bandwidth": 1e-200}):
        with pytest.raises(
            OptionError, match=f"{next(iter(wrong))} = .* is not a finite number from 1e-12"
        ):
            anm(x, np.zeros(16), budget=BUDGET, bounds=BOUNDS, key=jax.random.key(0), **wrong)
        refused(OptionError, next(iter(wrong)), jaxcd.BoundedRCIT, **wrong)
    with pytest.raises(OptionError, match="width = 1e-310 is not a finite number from 1e-06"):
        LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE, width=1e-310)


@pytest.mark.parametrize("first", [0, 2**70, -(2**2000), 1.5, None])
def test_a_whole_number_beyond_int64_in_a_list_is_a_number(first):
    rest = list(range(1, 20))
    result = reci(
        [first, *rest],
        [float(i % 7) for i in range(20)],
        budget=BUDGET,
        bounds=((0, 20), (0, 7)),
        regressor=BoundedPolynomial(),
        noise=simulated(),
    )
    assert np.isfinite(result.margin)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_masked_value_does_not_show_in_a_private_run(hidden: bool):
    x = np.ma.masked_array(np.linspace(-1, 1, 20), mask=[hidden] + 19 * [False])
    result = reci(x, np.linspace(-1, 1, 20) ** 2, budget=BUDGET, bounds=BOUNDS, noise=simulated())
    assert np.isfinite(result.margin)


@pytest.mark.parametrize("budget", [(0.001, 0.001), (0.1, 0.1), (1e-6, 1e-6)], ids=str)
def test_a_release_that_delta_alone_covers_has_a_ledger(budget):
    data = sampled("cancer", 100)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(*budget), noise=simulated())
    (row,) = bought.ledger
    # No less than what the noise says: a change of 2 at this scale.
    assert bought.spent.epsilon == 0 and row["rho"] >= (2 / bought.scale) ** 2 / 2 * (1 - 1e-9)
    assert privacy.rho_to_epsilon(row["rho"], budget[1]) <= 1e-8


def test_a_sieve_of_a_huge_budget_takes_all_rows():
    from jaxcd.decisions.sieve_and_examine import optimal_rate

    assert [optimal_rate(epsilon) for epsilon in (690.0, 1e3, 1e6, 1e300)] == [1.0] * 4


@pytest.mark.parametrize("kind", [jaxcd.SecondMoments(), jaxcd.Tetrachoric()])
@pytest.mark.parametrize("far", [1e-300, 1e-170, 1e145, 1e200, 8e307])
@pytest.mark.filterwarnings("error")
def test_rows_are_drawn_in_units_whose_squares_are_no_floats(kind, far: float):
    if far > 1e150 and isinstance(kind, jaxcd.SecondMoments):
        return  # refused
    x, e = np.random.default_rng(0).normal(size=(2, 2000))
    domain = jaxcd.Domain({name: jaxcd.Numeric(-far, far) for name in "xy"})
    data = jaxcd.Dataset.from_array(np.column_stack([x, x + e]) * (far / 10), domain=domain)
    bought = jaxcd.release(data, kind, budget=BUDGET, noise=simulated())
    run = jaxcd.search(bought)
    assert run.graph.adjacent("x", "y")
    confidence = jaxcd.edge_confidence(bought, run, n_draws=4, calibrated=False)
    assert confidence.of("x", "y").adjacent == 1


def test_second_moments_refuse_bounds_whose_squares_are_no_floats():
    """Before anything is bought: squares of such numbers, and noise on their sums, overflow."""
    domain = jaxcd.Domain({"a": jaxcd.Numeric(-1e160, 1e160), "b": jaxcd.Numeric(-1.0, 1.0)})
    data = jaxcd.Dataset.from_array(np.zeros((40, 2)), domain=domain)
    ledger = privacy.Ledger(BUDGET)
    with pytest.raises(DomainError, match="beyond 1e"):
        jaxcd.release(data, jaxcd.SecondMoments(), budget=BUDGET, ledger=ledger)
    assert not ledger.entries
