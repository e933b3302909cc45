"""StratifiedRanks: the rank maps, the sensitivity of map and margin, and what a private run does
with them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.citests import Query
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, Accountant, Budget, Ledger, Relation
from jaxcd.privacy.rank_maps import (
    _differences,
    exact_rank,
    leaf_counts,
    rank_map_sensitivity,
    release_rank_maps,
)
from tests.helpers import numbers, simulated


def differences(values: np.ndarray, n_levels: int, *, may_miss: bool = False) -> np.ndarray:
    leaves = leaf_counts(values, log_range=8.0, n_levels=n_levels)
    return _differences(leaves, may_miss=may_miss)


def numeric(*columns: np.ndarray) -> jaxcd.Dataset:
    names = [f"x{i}" for i in range(len(columns))]
    return jaxcd.Dataset.from_array(np.column_stack(columns), names=names, domain=numbers(names))


def accountant(epsilon: float | None, seed: int = 0) -> Accountant:
    budget = NO_PRIVACY if epsilon is None else Budget(epsilon, 1e-6)
    return Accountant(Ledger(budget), simulated(seed))


@settings(max_examples=60)
@given(
    st.lists(st.floats(-2000, 2000), min_size=2, max_size=40),
    st.floats(-2000, 2000),
    st.integers(1, 6),
)
def test_one_record_moves_the_differences_by_no_more_than_the_sensitivity(values, other, n_levels):
    before = np.array(values)
    after = before.copy()
    after[0] = other
    moved = differences(after, n_levels) - differences(before, n_levels)
    assert np.linalg.norm(moved) <= rank_map_sensitivity(1, n_levels) + 1e-12


def test_the_sensitivity_of_the_differences_is_reached():
    # The two records part at the root and take different nodes on every level below.
    before, after = np.array([-1e9, 0.5]), np.array([1e9, 0.5])
    moved = differences(after, 5) - differences(before, 5)
    assert np.linalg.norm(moved) == pytest.approx(rank_map_sensitivity(1, 5))


def test_maps_are_monotone_whatever_the_noise_and_right_without_it():
    rng = np.random.default_rng(3)
    columns = [rng.normal(size=4000), np.exp(2 * rng.normal(size=4000))]
    for epsilon in (0.05, 1.0, None):
        maps = release_rank_maps(
            columns,
            accountant(epsilon),
            rho=math.inf if epsilon is None else 0.0001 * epsilon,
            n_levels=11,
        )
        grid = np.sinh(np.linspace(-9, 9, 400))
        for v, column in enumerate(columns):
            image = maps.rank(v, grid)
            assert np.all(np.diff(image) >= 0) and image[0] >= 0 and image[-1] <= 1
            if epsilon is None:
                # Nodes below n / 200 rows are not refined, and the map is linear inside a leaf.
                assert np.abs(maps.rank(v, column) - exact_rank(column)).max() < 1 / 200 + 0.01


def test_margins_do_not_move_by_more_than_stated():
    """Worst-case search with the maps fixed: the record's codes are arbitrary, the others' too."""
    rng = np.random.default_rng(5)
    test = jaxcd.StratifiedRanks(strata=(3, 2), effect=0.0)
    bound = test.margin_sensitivity(alpha=0.05, n_samples=300, relation=Relation.REPLACE_ONE).value
    assert bound == pytest.approx(4.056, abs=1e-3)
    worst = 0.0
    for _ in range(60):
        n = int(rng.integers(20, 400))
        ranks = [np.round(rng.beta(*rng.uniform(0.05, 1, 2), size=n), 2) for _ in range(3)]
        other = [r.copy() for r in ranks]
        place = int(rng.integers(n))
        for column in other:
            column[place] = rng.choice([0.0, 0.3, 0.6, 0.99])
        query = Query.of(0, 1, (2,))
        margins = []
        for data in (ranks, other):
            prepared = test._prepared(data)
            margins.append(prepared.evaluate(prepared.bucket(query), [query], alpha=0.05).margin[0])
        worst = max(worst, abs(margins[0] - margins[1]))
    assert worst <= bound


def test_conditional_dependence_is_told_from_independence():
    rng = np.random.default_rng(8)
    n = 20_000
    z = rng.normal(size=n)
    x, y = np.sin(z) + rng.normal(size=n), z**2 + rng.normal(size=n)
    child = np.cos(x) + 0.5 * rng.normal(size=n)
    data = numeric(x, y, z, child)
    answers = {
        (a, b, s): jaxcd.ci_test(
            data, a, b, given=s, test=jaxcd.StratifiedRanks(), budget=jaxcd.NO_PRIVACY, key=None
        ).independent
        for a, b, s in (("x0", "x1", ("x2",)), ("x0", "x3", ("x2",)), ("x0", "x2", ()))
    }
    assert answers == {
        ("x0", "x1", ("x2",)): True,
        ("x0", "x3", ("x2",)): False,
        ("x0", "x2", ()): False,
    }


def test_scale_does_not_matter():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(2, 500))
    options = dict(test=jaxcd.StratifiedRanks(), budget=jaxcd.NO_PRIVACY, key=None)
    plain = jaxcd.ci_test(numeric(x, x + y), "x0", "x1", **options)
    bent = jaxcd.ci_test(numeric(np.exp(3 * x), np.arctan(x + y)), "x0", "x1", **options)
    assert plain.statistic == bent.statistic


@pytest.mark.parametrize("search", ["pc", "tree_pc"])
def test_private_runs_pay_for_the_maps_first_and_stay_within_the_budget(search):
    rng = np.random.default_rng(11)
    x = rng.normal(size=3000)
    data = numeric(x, np.sin(x) + 0.3 * rng.normal(size=3000), np.zeros(3000))
    options = {} if search == "tree_pc" else {"decider": jaxcd.LevelwiseGaussian()}
    run = getattr(jaxcd, search)(
        data,
        test=jaxcd.StratifiedRanks(),
        budget=Budget(1.0, 1e-6),
        key=None,
        noise=simulated(1),
        **options,
    )
    assert run.info["ledger"][0]["label"] == "rank maps"
    assert run.spent.epsilon <= 1.0
    assert run.graph.adjacent("x0", "x1") and not run.graph.adjacent("x0", "x2")


def test_a_budget_without_delta_is_refused_before_a_charge():
    data = numeric(np.arange(10.0), np.arange(10.0))
    with pytest.raises(OptionError, match="delta"):
        jaxcd.pc(
            data,
            test=jaxcd.StratifiedRanks(),
            decider=jaxcd.SparseVector(),
            budget=Budget(1.0),
            key=None,
        )


@given(
    st.lists(st.one_of(st.none(), st.floats(-50, 50)), min_size=2, max_size=8),
    st.one_of(st.none(), st.floats(-50, 50)),
    st.integers(1, 6),
)
@settings(max_examples=200, deadline=None)
def test_a_cell_that_is_lost_or_found_moves_the_differences_no_further(rows, other, n_levels):
    values = np.array([math.nan if cell is None else cell for cell in rows])
    changed = values.copy()
    changed[0] = math.nan if other is None else other
    moved = differences(values, n_levels, may_miss=True) - differences(
        changed, n_levels, may_miss=True
    )
    assert np.linalg.norm(moved) <= rank_map_sensitivity(1, n_levels, n_missing=1) + 1e-12
