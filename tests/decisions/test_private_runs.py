"""Private runs: total on any data, reproducible when simulated, and never the same when secure."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from tests.catalogue import EACH_PRIVATE_DECIDER, DeciderRow, discrete
from tests.helpers import coded, levelled, simulated

KEY = jax.random.key(0)
LEVELS = (2, 3, 2, 4, 1)
DOMAIN = levelled(*LEVELS)


def constant(n: int) -> np.ndarray:
    return np.zeros((n, 5), dtype=np.int32)


def one_varies(n: int) -> np.ndarray:
    codes = constant(n)
    codes[:, 1] = np.arange(n) % 3
    return codes


def one_record(n: int) -> np.ndarray:
    codes = constant(n)
    codes[0] = [1, 2, 1, 3, 0]
    return codes


def copies(n: int) -> np.ndarray:
    codes = constant(n)
    codes[:, :4] = (np.arange(n) % 2)[:, None]
    return codes


ROWS = {
    "constant": constant,
    "one column varies": one_varies,
    "one record": one_record,
    "copies": copies,
}


def run(codes: np.ndarray, row: DeciderRow, test: Any = None, *, seed: int | None = 0):
    return jaxcd.pc(
        row.columns(codes, *LEVELS),
        test=test or row.test,
        decider=row.decider,
        budget=jaxcd.Budget(1.0, 1e-6),
        key=KEY,
        noise=None if seed is None else simulated(seed),
        max_level=None if row.data is discrete else 1,
    )


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize("rows", ROWS)
@EACH_PRIVATE_DECIDER
def test_degenerate_data_under_every_decider(row: DeciderRow, rows: str, n: int):
    """No error, no warning (they are errors here), and one guarantee, whatever the records are."""
    for test in row.tests:
        result = run(ROWS[rows](max(n, row.least_rows)), row, test)
        assert result.graph.names == DOMAIN.names
        assert result.cost.epsilon == 1.0 and result.spent.epsilon <= 1.0


@EACH_PRIVATE_DECIDER
def test_public_facts_are_the_same_for_all_records(row: DeciderRow):
    """Kinds of events, their prices and their order before the first answer depend on the domain
    and n only.
    """
    first = [run(rows(40), row).info["ledger"][0] for rows in ROWS.values()]
    assert all(event == first[0] for event in first)


@EACH_PRIVATE_DECIDER
def test_reproducible_from_the_key(row: DeciderRow):
    codes = (np.random.default_rng(0).random((300, 5)) * LEVELS).astype(np.int32)
    for seed in (1, 2):
        a, b = run(codes, row, seed=seed), run(codes, row, seed=seed)
        assert a.graph == b.graph and a.separating_sets == b.separating_sets
        assert a.info["ledger"] == b.info["ledger"] and a.spent == b.spent


@EACH_PRIVATE_DECIDER
def test_results_say_whether_their_noise_was_simulated(row: DeciderRow):
    marked, secure = (run(one_varies(40), row, seed=seed) for seed in (0, None))
    assert not marked.cost.proven and not marked.info["secure_noise"]
    assert "simulated" in marked.cost.reason.lower() and "NOT proved" in str(marked)
    assert secure.cost.proven and secure.info["secure_noise"]
    options = {"test": row.test, "budget": jaxcd.Budget(1.0), "key": KEY}
    data = row.columns(one_varies(40), *LEVELS)
    for noise in (simulated(), None):
        assert jaxcd.ci_test(data, "v0", "v1", noise=noise, **options).cost.proven == (not noise)


def fair_coins(decider: Any, seed: int | None, columns: np.ndarray) -> jaxcd.DiscoveryResult:
    """A tiny budget: every marginal answer is close to a fair coin."""
    options = {"test": jaxcd.CovarianceNorm(), "decider": decider, "key": None, "max_level": 0}
    noise = None if seed is None else simulated(seed)
    data = coded(columns, *[2] * columns.shape[1])
    return jaxcd.pc(data, budget=jaxcd.Budget(1e-3, 1e-6), noise=noise, **options)


TWELVE = np.random.default_rng(0).integers(0, 2, (50, 12))
EVERY_PAIR = jaxcd.NoisyThreshold(n_queries=66)


def test_two_secure_runs_differ():
    """Twelve columns: each of the 66 marginal answers is close to a fair coin, so two runs agree
    with probability below 2^-60.
    """
    results = [fair_coins(EVERY_PAIR, None, TWELVE) for _ in range(2)]
    assert results[0].graph != results[1].graph
    kept = [result.graph.n_edges for result in results]
    assert all(5 < count < 61 for count in kept)  # 66 fair coins: outside with probability 1e-12


def test_two_simulated_keys_differ():
    one, two = (fair_coins(EVERY_PAIR, seed, TWELVE).graph for seed in (1, 2))
    assert one != two


def test_noise_is_not_tied_to_the_query():
    """Two identical columns pairs get different noise: equal margins, answers that differ in some
    run.
    """
    copies = np.random.default_rng(0).integers(0, 2, (50, 1)).repeat(8, axis=1)
    assert 0 < fair_coins(jaxcd.NoisyThreshold(n_queries=28), 3, copies).graph.n_edges < 28


def test_the_key_for_tests_is_not_the_key_for_noise():
    codes = np.random.default_rng(0).integers(0, 2, (50, 5)).astype(np.int32)
    domain = jaxcd.Domain({f"b{j}": jaxcd.Ordinal((0, 1)) for j in range(5)})
    data = coded(codes, domain)
    options = {
        "test": jaxcd.CovarianceNorm(),
        "decider": jaxcd.NoisyThreshold(),
        "budget": jaxcd.Budget(0.01),
        "noise": simulated(9),
    }
    assert (
        jaxcd.pc(data, key=jax.random.key(0), **options).graph
        == jaxcd.pc(data, key=jax.random.key(1), **options).graph
    )


def test_discover_under_every_kind_of_budget():
    data = jaxcd.Dataset.from_codes(one_varies(60), domain=DOMAIN)
    for budget in (jaxcd.Budget(1.0), jaxcd.Budget(1.0, 1e-6), jaxcd.NO_PRIVACY):
        result = jaxcd.discover(data, budget=budget, key=None, noise=simulated())
        assert result.info["reasons"]
        if budget is not jaxcd.NO_PRIVACY:
            assert result.cost.epsilon == 1.0 and result.cost.delta == budget.delta


@pytest.mark.parametrize("search", [jaxcd.pc, jaxcd.fci])
@pytest.mark.parametrize(
    "decider", [jaxcd.SparseVector(), jaxcd.SieveAndExamine(), jaxcd.NoisyThreshold()]
)
def test_a_column_of_one_level_is_joined_to_nothing(search, decider):
    """It is independent of all others by its declaration, however little is left of the budget."""
    levels = {"a": (0, 1), "only": ("x",), "b": (0, 1), "u": (0, 1), "w": (0, 1, 2)}
    domain = jaxcd.Domain({name: jaxcd.Categorical(each) for name, each in levels.items()})
    codes = np.random.default_rng(0).integers(0, [len(each) for each in levels.values()], (900, 5))
    data = jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)
    options = {"test": jaxcd.CovarianceNorm(), "decider": decider, "key": None}
    for seed in range(5):
        noise = jaxcd.SimulatedNoise(jax.random.key(seed))
        run = search(data, budget=jaxcd.Budget(0.2, 1e-6), noise=noise, **options)
        assert not run.graph.adjacency[1].any()
        assert run.separating_sets[frozenset(("a", "only"))] == ()
        required = jaxcd.Knowledge(required=[("a", "only")])
        known = search(
            data, budget=jaxcd.Budget(0.2, 1e-6), noise=noise, knowledge=required, **options
        )
        assert np.flatnonzero(known.graph.adjacency[1]).tolist() == [0]
