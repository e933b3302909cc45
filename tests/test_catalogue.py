"""What every test, decider, release, score and search keeps to, over the one table of them
(``tests/catalogue.py``).
"""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd import citests, decisions, releases, scores
from jaxcd.citests import Query
from jaxcd.decisions.base import Decider
from jaxcd.errors import OptionError, PrivacyError, SensitivityError
from jaxcd.queries import Queue
from jaxcd.releases import Release, ReleaseKind
from tests.catalogue import (
    DECIDERS,
    KINDS,
    SCORES,
    SEARCHES,
    TESTS,
    DeciderRow,
    KindRow,
    ScoreRow,
    SearchRow,
    TestRow,
    discrete,
)
from tests.helpers import refused, simulated

KEY = jax.random.key(5)
BUDGET = jaxcd.Budget(8.0, 1e-4)


def name_of(row: Any) -> str:
    part = next(iter(vars(row).values()))
    return getattr(part, "name", None) or getattr(part, "__name__", None) or type(part).__name__


def public(module: Any, base: type) -> set[type]:
    found = {
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, base)
    }
    return {kind for kind in found if not kind.__abstractmethods__}


def test_every_public_class_is_in_the_table() -> None:
    assert public(citests, citests.CITest) | public(releases, citests.CITest) == {
        type(row.test) for row in TESTS
    }
    assert public(decisions, Decider) == {type(row.decider) for row in DECIDERS}
    assert public(releases, ReleaseKind) == {type(row.kind) for row in KINDS}
    assert public(scores, scores.ScoreConfig) <= {type(row.score) for row in SCORES}
    named = {row.search.__name__ for row in SEARCHES}
    assert (
        {"pc", "fci", "gfci", "ges", "mmhc", "exact_search", "order_mcmc"}
        == named
        <= set(jaxcd.__all__)
    )


# ---- tests


@pytest.mark.parametrize("row", TESTS, ids=name_of)
def test_a_test_says_in_one_line_what_it_assumes(row: TestRow) -> None:
    assert 0 < len(row.test.assumes) <= 100 and "\n" not in row.test.assumes


@pytest.mark.parametrize("row", [row for row in TESTS if row.data and not row.exact], ids=name_of)
def test_answers_do_not_depend_on_the_batch(row: TestRow) -> None:
    """To rounding; the others, to the last bit, in ``tests/queries/test_queue.py``."""
    data = row.data(100)
    prepared = row.test.prepare(data, key=KEY)
    queries = [Query.of(0, 1, ()), Query.of(0, 2, ()), Query.of(1, 2, ()), Query.of(0, 2, (1,))]
    queries = queries[:3] if isinstance(row.test, jaxcd.HSIC) else queries
    together = Queue(prepared, alpha=0.05).evaluate(queries)
    for place, query in enumerate(queries):
        alone = Queue(row.test.prepare(data, key=KEY), alpha=0.05).evaluate([query])
        np.testing.assert_allclose(alone.margin[0], together.margin[place], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            alone.log_pvalue[0], together.log_pvalue[place], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("row", [row for row in TESTS if row.data], ids=name_of)
def test_a_subset_of_the_rows_is_answered_or_refused(row: TestRow) -> None:
    data, rows = row.data(), np.arange(300) % 3 > 0
    prepared = row.test.prepare(data, key=KEY)
    if not row.restricts:
        pytest.raises((OptionError, NotImplementedError), prepared.restrict, rows)
        return
    part = Queue(prepared.restrict(rows), alpha=0.05).evaluate([Query.of(0, 1, ())])
    assert np.isfinite(part.margin).all() and part.log_pvalue[0] < -3


@pytest.mark.parametrize("row", [row for row in TESTS if row.data], ids=name_of)
def test_a_test_is_private_where_its_sensitivity_is_bounded(row: TestRow) -> None:
    assert row.data is not None
    ask: dict[str, Any] = {"test": row.test, "key": KEY, "noise": simulated()}
    if not row.private:
        pytest.raises(SensitivityError, jaxcd.ci_test, row.data(), "a", "b", budget=BUDGET, **ask)
        return
    answer = jaxcd.ci_test(row.data(), "a", "b", budget=BUDGET, **ask)
    again = jaxcd.ci_test(row.data(), "a", "b", budget=BUDGET, **ask)
    assert (answer.statistic is None) != row.test.buys_answers
    assert answer.margin == again.margin
    assert answer.spent.epsilon <= BUDGET.epsilon
    assert jaxcd.verify(answer.certificate()).holds and not answer.cost.proven
    if row.needs_delta:
        with pytest.raises(OptionError, match="delta"):
            jaxcd.ci_test(row.data(), "a", "b", budget=jaxcd.Budget(8.0), **ask)
    assert pickle.loads(pickle.dumps(row.test)) == row.test


# ---- deciders


@pytest.mark.parametrize("row", DECIDERS, ids=str)
def test_a_decider_keeps_the_budget_repeats_and_says_what_it_paid(row: DeciderRow) -> None:
    ask: dict[str, Any] = {"test": row.test, "decider": row.decider, "key": KEY, "max_level": 1}
    data = row.data()
    if not row.private:
        assert not row.decider.pays
        pytest.raises(PrivacyError, jaxcd.pc, data, budget=BUDGET, noise=simulated(), **ask)
        assert jaxcd.pc(data, budget=jaxcd.NO_PRIVACY, **ask).graph.names == data.names
        return
    for search in (jaxcd.pc, jaxcd.fci):
        run, again = (search(data, budget=BUDGET, noise=simulated(1), **ask) for _ in range(2))
        assert run.graph == again.graph and run.info == again.info
        assert run.spent.epsilon <= BUDGET.epsilon * (1 + 1e-9)
        assert run.cost.epsilon == BUDGET.epsilon
        assert jaxcd.verify(run.certificate()).holds
        assert "n_tests" not in run.info
    if row.decider.needs_delta:
        refused(
            OptionError, "delta", jaxcd.pc, data, budget=jaxcd.Budget(8.0), noise=simulated(), **ask
        )


def test_a_decider_by_level_needs_a_delta_if_the_one_inside_it_does() -> None:
    inner = jaxcd.NoisyThreshold(noise=decisions.Noise.GAUSSIAN)
    assert inner.needs_delta and jaxcd.Scheduled(inner).needs_delta


@pytest.mark.parametrize("row", DECIDERS, ids=str)
def test_planning_a_decider_reads_no_data(row: DeciderRow) -> None:
    ask: dict[str, Any] = {"test": row.test, "decider": row.decider, "budget": BUDGET}
    data = row.data()
    if not row.plans:
        pytest.raises((OptionError, PrivacyError), jaxcd.plan, data.domain, 1_000, **ask)
        return
    planned, more = (
        jaxcd.plan(data.domain, 1_000, **ask | {"budget": budget})
        for budget in (BUDGET, jaxcd.Budget(80.0, 1e-4))
    )
    assert planned.n_answers >= 1 and 0 < more.noise < planned.noise


# ---- releases


@pytest.mark.parametrize("row", KINDS, ids=name_of)
def test_a_release_is_bought_searched_tested_redrawn_and_saved(
    row: KindRow, tmp_path: Path
) -> None:
    data = row.data()
    bought = jaxcd.release(data, row.kind, budget=BUDGET, noise=simulated())
    assert bought.spent.epsilon <= BUDGET.epsilon * (1 + 1e-9)
    assert jaxcd.verify(bought.certificate()).holds
    assert jaxcd.plan_release(data.domain, data.n_samples, kind=row.kind, budget=BUDGET).noise > 0
    loaded = Release.load(bought.save(tmp_path / "bought.npz"))
    assert loaded.bought == bought.bought and type(loaded) is type(bought)
    run = jaxcd.search(bought)
    assert jaxcd.search(loaded).graph == run.graph and run.again is not None
    assert run.cost == bought.cost and run.cost.epsilon == BUDGET.epsilon
    assert run.graph.names == data.names
    tested = jaxcd.pc(bought, test=row.test, decider=jaxcd.Threshold(0.01), key=KEY, max_level=1)
    assert tested.cost == bought.cost
    assert jaxcd.ci_test(bought, "a", "b", test=row.test).pvalue is not None
    shares = jaxcd.edge_confidence(bought, run, n_draws=2)
    assert shares.names == bought.names
    fresh = bought.redraw(np.zeros((3, 3), dtype=bool))(jax.random.key(1))
    assert type(fresh) is type(bought) and fresh.n_samples == bought.n_samples
    for score in (jaxcd.BIC(), jaxcd.BDeu()):
        if type(score) in row.scores:
            assert jaxcd.ges(bought, score=score).cost == bought.cost
        else:
            refused(OptionError, "score", jaxcd.ges, bought, score=score)
    if row.pure:
        assert (
            jaxcd.release(data, row.kind, budget=jaxcd.Budget(8.0), noise=simulated()).spent.delta
            == 0
        )
    else:
        with pytest.raises(OptionError, match="delta"):
            jaxcd.release(data, row.kind, budget=jaxcd.Budget(8.0), noise=simulated())


# ---- scores and searches


@pytest.mark.parametrize("row", SCORES, ids=name_of)
def test_equivalent_graphs_have_equal_scores(row: ScoreRow) -> None:
    score = row.score.prepare(row.data(), max_parents=2)
    chain, fork, collider = np.zeros((3, 3, 3), dtype=bool)
    chain[0, 1] = chain[1, 2] = True
    fork[1, 0] = fork[1, 2] = True
    collider[0, 1] = collider[2, 1] = True
    totals = score.totals(np.array([chain, fork, collider]))
    # expected counts of a family: equal but for the iterations
    if not isinstance(row.score, jaxcd.local.ChannelAwareBIC):
        assert totals[0] == pytest.approx(totals[1], rel=1e-9)
    assert totals[0] > totals[2]


@pytest.mark.parametrize("row", SEARCHES, ids=name_of)
def test_a_search_takes_data_and_releases_and_refuses_a_budget_that_it_cannot_keep(
    row: SearchRow,
) -> None:
    data, options = discrete(600), dict(row.options)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(20.0), noise=simulated())
    options.setdefault("key", KEY)
    if row.by_score:
        pytest.raises(PrivacyError, row.search, data, budget=BUDGET, **options)
        on_data = row.search(data, budget=jaxcd.NO_PRIVACY, **options)
        on_release = row.search(bought, **options)
    else:
        by_tests = {"test": jaxcd.GTest(), "decider": jaxcd.Threshold(0.01), **options}
        on_data = row.search(data, budget=jaxcd.NO_PRIVACY, **by_tests)
        on_release = row.search(bought, **by_tests)
    assert not on_data.cost.proven and on_data.again is None
    assert on_release.cost == bought.cost and on_release.again is not None
    assert on_release.again(bought).graph == on_release.graph
