"""Private runs: total on any data, reproducible when simulated, and never the same when secure."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.decisions import Noise

LEVELS = (2, 3, 2, 4, 1)
DOMAIN = jaxcd.Domain({f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(LEVELS)})
DECIDERS = (
    jaxcd.NoisyThreshold(),
    jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN),
    jaxcd.SparseVector(),
    jaxcd.SieveAndExamine(),
    jaxcd.SieveAndExamine(rate=0.5),
    jaxcd.LevelwiseGaussian(),
)
TESTS = (jaxcd.CovarianceNorm(), jaxcd.PooledCovariance(), jaxcd.KendallTau())


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


def run(
    codes: np.ndarray,
    decider,
    test=TESTS[0],
    *,
    seed: int | None = 0,
    epsilon: float = 1.0,
    **options,
):
    noise = None if seed is None else jaxcd.SimulatedNoise(jax.random.key(seed))
    return jaxcd.pc(
        jaxcd.Dataset.from_codes(codes, domain=options.pop("domain", DOMAIN)),
        test=test,
        decider=decider,
        budget=jaxcd.Budget(epsilon, 1e-6),
        key=None,
        noise=noise,
        **options,
    )


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("decider", DECIDERS, ids=str)
def test_degenerate_data_under_every_decider(decider, rows: str, n: int):
    """No error, no warning (they are errors here), and one guarantee, whatever the records are."""
    for test in TESTS:
        result = run(ROWS[rows](n), decider, test)
        assert result.graph.names == DOMAIN.names
        assert result.cost.epsilon == 1.0 and result.spent.epsilon <= 1.0


@pytest.mark.parametrize("decider", DECIDERS, ids=str)
def test_public_facts_are_the_same_for_all_records(decider):
    """Kinds of events, their prices and their order before the first answer depend on the domain
    and n only.
    """
    first = [run(rows(40), decider).info["ledger"][0] for rows in ROWS.values()]
    assert all(row == first[0] for row in first)


@pytest.mark.parametrize("decider", DECIDERS, ids=str)
def test_reproducible_from_the_key(decider):
    codes = (np.random.default_rng(0).random((300, 5)) * LEVELS).astype(np.int32)
    for seed in (1, 2):
        a, b = run(codes, decider, seed=seed), run(codes, decider, seed=seed)
        assert a.graph == b.graph and a.separating_sets == b.separating_sets
        assert a.info["ledger"] == b.info["ledger"] and a.spent == b.spent


def test_simulated_results_are_marked():
    codes = one_varies(40)
    for decider in DECIDERS:
        simulated = run(codes, decider)
        assert not simulated.cost.proven and not simulated.info["secure_noise"]
        assert "simulated" in simulated.cost.reason.lower() and "NOT proved" in str(simulated)
    secure = run(codes, jaxcd.SparseVector(), seed=None)
    assert secure.cost.proven and secure.info["secure_noise"]
    single = jaxcd.ci_test(
        jaxcd.Dataset.from_codes(codes, domain=DOMAIN),
        "v0",
        "v1",
        test=TESTS[0],
        budget=jaxcd.Budget(1.0),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(0)),
    )
    assert not single.cost.proven


def test_two_secure_runs_differ():
    """Twelve columns and a tiny budget: each of the 66 marginal answers is close to a fair coin, so
    two runs agree with probability below 2^-60.
    """
    codes = np.random.default_rng(0).integers(0, 2, (50, 12)).astype(np.int32)
    domain = jaxcd.Domain({f"b{j}": jaxcd.Ordinal((0, 1)) for j in range(12)})
    decider = jaxcd.NoisyThreshold(n_queries=66)
    results = [
        run(codes, decider, seed=None, epsilon=1e-3, domain=domain, max_level=0) for _ in range(2)
    ]
    assert results[0].graph != results[1].graph
    kept = [result.graph.n_edges for result in results]
    assert all(5 < count < 61 for count in kept)  # 66 fair coins: outside with probability 1e-12


def test_two_simulated_keys_differ():
    codes = np.random.default_rng(0).integers(0, 2, (50, 12)).astype(np.int32)
    domain = jaxcd.Domain({f"b{j}": jaxcd.Ordinal((0, 1)) for j in range(12)})
    decider = jaxcd.NoisyThreshold(n_queries=66)
    one, two = (
        run(codes, decider, seed=s, epsilon=1e-3, domain=domain, max_level=0).graph for s in (1, 2)
    )
    assert one != two


def test_noise_is_not_tied_to_the_query():
    """Two identical columns pairs get different noise: equal margins, answers that differ in some
    run.
    """
    codes = np.random.default_rng(0).integers(0, 2, (50, 1)).repeat(8, axis=1).astype(np.int32)
    domain = jaxcd.Domain({f"b{j}": jaxcd.Ordinal((0, 1)) for j in range(8)})
    graph = run(
        codes, jaxcd.NoisyThreshold(n_queries=28), seed=3, epsilon=1e-3, domain=domain, max_level=0
    ).graph
    assert 0 < graph.n_edges < 28


def test_the_key_for_tests_is_not_the_key_for_noise():
    codes = np.random.default_rng(0).integers(0, 2, (50, 5)).astype(np.int32)
    domain = jaxcd.Domain({f"b{j}": jaxcd.Ordinal((0, 1)) for j in range(5)})
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    options = {
        "test": TESTS[0],
        "decider": jaxcd.NoisyThreshold(),
        "budget": jaxcd.Budget(0.01),
        "noise": jaxcd.SimulatedNoise(jax.random.key(9)),
    }
    assert (
        jaxcd.pc(data, key=jax.random.key(0), **options).graph
        == jaxcd.pc(data, key=jax.random.key(1), **options).graph
    )


def test_discover_under_every_kind_of_budget():
    data = jaxcd.Dataset.from_codes(one_varies(60), domain=DOMAIN)
    for budget in (jaxcd.Budget(1.0), jaxcd.Budget(1.0, 1e-6), jaxcd.NO_PRIVACY):
        result = jaxcd.discover(
            data, budget=budget, key=None, noise=jaxcd.SimulatedNoise(jax.random.key(0))
        )
        assert result.info["reasons"]
        if budget is not jaxcd.NO_PRIVACY:
            assert result.cost.epsilon == 1.0 and result.cost.delta == budget.delta
