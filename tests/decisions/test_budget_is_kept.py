"""A private run never reports or spends more than its budget, and ends normally when there is
nothing left.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import jaxcd
from jaxcd.decisions import Noise
from jaxcd.privacy import Accounting, Ledger
from jaxcd.privacy.verifying import gdp_epsilon
from tests.catalogue import EACH_MARGIN_TEST, PRIVATE_DECIDERS, DeciderRow, discrete
from tests.helpers import SEEDS, coded, dependent, independent, simulated

KEY = jax.random.key(0)
LEVELS = (2, 3, 2, 4, 3)
D = len(LEVELS)
SIZES = (40, 500)  # few different numbers of rows: few compilations


def converted(rho: float, delta: float) -> float:
    """The smallest epsilon of a rho-zCDP mechanism at delta over the orders of Renyi divergence,
    found numerically.
    """
    if rho == 0:
        return 0.0

    def epsilon(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return rho * order + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)

    grid = np.linspace(-12, 25, 400)
    start = grid[np.argmin([epsilon(x) for x in grid])]
    best = minimize_scalar(
        epsilon, bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-12}
    )
    return max(0.0, float(best.fun))


COUNTS = st.sampled_from([None, 1, 7, 1000])
ROUNDS = st.sampled_from([None, 1, 3, 40])
INNER = (
    jaxcd.NoisyThreshold(),
    jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN),
    jaxcd.NoisyThreshold(n_queries=3),
    jaxcd.SparseVector(),
    jaxcd.SparseVector(n_rounds=2),
    jaxcd.SieveAndExamine(rate=0.5),
    jaxcd.ExponentialSelect(),
    jaxcd.ExponentialSelect(n_questions=4),
)
SPLITS = st.sampled_from([(1.0,), (0.3, 0.4, 0.3), (1.0, 5.0), (1.0, 1.0, 1.0, 1.0)])
FAMILIES: list[tuple[Any, dict]] = [
    (jaxcd.NoisyThreshold, {"noise": st.just(Noise.LAPLACE), "n_queries": COUNTS}),
    (jaxcd.NoisyThreshold, {"noise": st.just(Noise.GAUSSIAN), "n_queries": COUNTS}),
    (jaxcd.SparseVector, {"alpha": st.sampled_from([0.01, 0.05, 0.5]), "n_rounds": ROUNDS}),
    (jaxcd.SieveAndExamine, {"n_rounds": ROUNDS, "rate": st.sampled_from([None, 0.5, 1.0])}),
    (
        jaxcd.LevelwiseGaussian,
        {
            "level_shares": SPLITS,
            "selection_share": st.sampled_from([0.05, 0.2, 0.9]),
            "mean_weight": st.sampled_from([0.3, 1.0, 4.0]),
        },
    ),
    (
        jaxcd.ExponentialSelect,
        {"n_questions": COUNTS, "keep_prior": st.sampled_from([0.1, 0.5, 0.9])},
    ),
    (jaxcd.NoisyRank, {"n_queries": COUNTS}),
    (
        jaxcd.Scheduled,
        {
            "decider": st.sampled_from(INNER),
            "split": SPLITS,
            "later_pass_share": st.sampled_from([0.01, 0.15, 0.9]),
        },
    ),
]


def test_every_decider_has_a_family():
    classes = {type(row.decider) for row in PRIVATE_DECIDERS}
    assert {family for family, _ in FAMILIES} == classes


@pytest.mark.parametrize(("family", "options"), FAMILIES, ids=lambda part: str(part)[:30])
@settings(max_examples=12)
@given(
    data=st.data(),
    epsilon=st.floats(-3, 2).map(lambda x: 10.0**x),
    delta=st.sampled_from([0.0, 1e-12, 1e-6, 1e-2]),
    seed=SEEDS,
    n=st.sampled_from(SIZES),
    max_level=st.sampled_from([0, 1, None]),
    stable=st.booleans(),
    door=st.sampled_from([jaxcd.pc, jaxcd.fci]),
    colliders=st.sampled_from(jaxcd.discovery.ColliderRule),
)
def test_no_run_exceeds_its_budget(
    family, options, data, epsilon, delta, seed, n, max_level, stable, door, colliders
):
    decider = data.draw(st.builds(family, **options))
    row = next(row for row in PRIVATE_DECIDERS if isinstance(row.decider, family))
    if getattr(decider, "decider", decider).needs_delta:
        delta = delta or 1e-9
    options = {"stable": stable or decider.needs_stable}
    if decider.answers_queries and door is jaxcd.pc:  # the others do not answer single questions
        options["colliders"] = colliders
    codes = dependent(seed, n, *LEVELS).codes
    budget = jaxcd.Budget(epsilon, delta)
    result = door(
        row.columns(codes, *LEVELS),
        test=data.draw(st.sampled_from(row.tests)),
        decider=decider,
        budget=budget,
        key=KEY,
        noise=simulated(seed),
        max_level=max_level if row.data is discrete else max_level and 1,
        **options,
    )
    assert result.cost.epsilon <= epsilon and result.cost.delta <= delta
    assert result.cost.relation is budget.relation
    assert result.spent.epsilon <= epsilon and result.spent.delta <= delta
    # the table, composed again from its rows
    rows = result.info["ledger"]
    assert [row["index"] for row in rows] == list(range(len(rows)))
    pure = math.fsum(math.inf if row["epsilon"] is None else row["epsilon"] for row in rows)
    gaussian = result.cost.accounting is Accounting.GAUSSIAN
    rho = math.fsum(row["gdp_rho" if gaussian else "rho"] for row in rows)
    convert = gdp_epsilon if gaussian else converted
    for row in rows:
        if row["epsilon"] is not None and math.isfinite(row["epsilon"]):
            share = 8 if row["mechanism"].startswith("Exponential") else 2
            assert row["rho"] == pytest.approx(row["epsilon"] ** 2 / share, rel=1e-9)
    composed = min(pure, convert(rho, delta) if delta else math.inf)
    assert composed <= epsilon * (1 + 1e-9)
    assert result.spent.epsilon >= composed * (1 - 1e-6)  # and is not understated
    assert pure <= epsilon * (1 + 1e-12) or rho <= Ledger(
        budget.settled(result.cost.accounting)
    ).rho_limit * (1 + 1e-12)
    if isinstance(decider, jaxcd.Scheduled):
        asked = [record.level for record in result.info["levels"] if record.n_asked]
        assert all(level < len(decider.split) for level in asked)
    # whatever was not paid for keeps its edge
    names = result.graph.names
    for a, b in itertools.combinations(names, 2):
        assert result.graph.adjacent(a, b) != (frozenset((a, b)) in result.separating_sets)
    # how much was computed depends on the data
    assert set(result.info) & {"n_tests", "n_batches"} == set()


@pytest.mark.parametrize("accounting", list(Accounting))
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
@pytest.mark.parametrize(
    "decider", [jaxcd.SparseVector(n_rounds=30), jaxcd.LevelwiseGaussian()], ids=lambda d: d.name
)
def test_the_table_composed_by_another_library(decider, delta: float, accounting: Accounting):
    """Google's accountants: rows of zCDP by Renyi divergences; rows of Gaussian privacy as the
    normal laws that dominate them, by the law of their privacy loss.
    """
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    result = jaxcd.pc(
        dependent(1, 500, *LEVELS),
        test=jaxcd.CovarianceNorm(),
        decider=decider,
        budget=jaxcd.Budget(2.0, delta, accounting=accounting),
        key=None,
        noise=simulated(),
    )
    assert result.info["ledger"]
    if accounting is Accounting.GAUSSIAN:
        accountant = PLDAccountant()
        for row in result.info["ledger"]:
            sigma = math.sqrt(1 / (2 * row["gdp_rho"]))
            accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    else:
        accountant = RdpAccountant(orders=list(np.geomspace(1.01, 4000, 600)))
        for row in result.info["ledger"]:
            accountant.compose(dp_accounting.ZCDpEvent(row["rho"]))
    assert accountant.get_epsilon(delta) <= 2.0 * 1.001


# Running dry


@pytest.mark.parametrize(
    ("decider", "removable"),
    [
        (jaxcd.NoisyThreshold(n_queries=1), 1),
        (jaxcd.NoisyThreshold(n_queries=3, noise=Noise.GAUSSIAN), 3),
        (jaxcd.SparseVector(n_rounds=1), 1),
        (jaxcd.SieveAndExamine(n_rounds=1), 1),
        (jaxcd.ExponentialSelect(n_questions=2), 2),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_exhausted_runs_end_normally_and_say_so(decider, removable: int):
    """Independent columns and a large budget: all ten pairs would be separated, but only a few are
    paid for.
    """
    result = jaxcd.pc(
        independent(500, *LEVELS),
        test=jaxcd.CovarianceNorm(),
        decider=decider,
        budget=jaxcd.Budget(50.0, 1e-6),
        key=None,
        noise=simulated(),
    )
    assert result.exhausted
    assert "exhausted" in str(result)
    assert len(result.separating_sets) == removable
    assert result.graph.n_edges == D * (D - 1) // 2 - removable
    assert result.spent.epsilon <= 50.0


def test_runs_with_enough_say_nothing_of_the_kind():
    result = jaxcd.pc(
        dependent(0, 500, *LEVELS),
        test=jaxcd.CovarianceNorm(),
        decider=jaxcd.NoisyThreshold(n_queries=100_000),
        budget=jaxcd.Budget(50.0),
        key=None,
        noise=simulated(),
        max_level=1,
    )
    assert not result.exhausted and "exhausted" not in str(result)


@EACH_MARGIN_TEST
def test_single_tests_keep_their_budget_too(test):
    answer = jaxcd.ci_test(
        dependent(0, 500, *LEVELS),
        "v0",
        "v1",
        given=("v2",),
        test=test,
        budget=jaxcd.Budget(0.5),
        key=None,
    )
    assert answer.cost.epsilon <= 0.5 and answer.cost.delta == 0 and answer.cost.proven
    assert answer.statistic is None and answer.pvalue is None and answer.log_pvalue is None
    assert answer.independent == (answer.margin <= 0)


@pytest.mark.parametrize("row", [row for row in PRIVATE_DECIDERS if row.data is discrete], ids=str)
def test_a_generous_budget_gives_the_graph_without_privacy(row: DeciderRow):
    """Clear dependences, and a budget so large that the noise is far below every margin."""
    rng = np.random.default_rng(0)
    n = 20_000
    a, c, e = rng.integers(0, 2, (3, n))
    b = np.where(rng.random(n) < 0.6, a, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.6, c, rng.integers(0, 2, n))
    domain = jaxcd.Domain({name: jaxcd.Ordinal((0, 1)) for name in "abcde"})
    private = jaxcd.pc(
        coded(np.stack([a, b, c, d, e], 1), domain),
        test=row.test,
        decider=row.decider,
        budget=jaxcd.Budget(1e4, 1e-6),
        key=None,
        noise=simulated(),
    )
    edges = {frozenset((edge.a, edge.b)) for edge in private.graph.edges()}
    if private.exhausted:
        assert edges >= {frozenset("ab"), frozenset("cd")}
    else:
        assert edges == {frozenset("ab"), frozenset("cd")}
