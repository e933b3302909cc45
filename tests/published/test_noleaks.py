"""NoLeaks: its search against finite differences and known models, its noise, the data sets that
exceed its sensitivity, and its account.
"""

from __future__ import annotations

import math

import jax
import networkx as nx
import numpy as np
import pytest
from scipy import optimize, stats

from jaxcd import Dataset, MixedGraph, networks, published
from jaxcd.errors import OptionError
from jaxcd.graphs import dag_to_cpdag
from jaxcd.published.noleaks import (
    _acyclic,
    _Search,
    analytic_sigma,
    claimed_gradient_sensitivity,
    clipped_gradient,
)
from tests.catalogue import numeric


def moments(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows / len(rows)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-4), (1.0, 1e-4), (8.0, 1e-6)])
def test_the_noise_is_the_least_that_is_private(epsilon, delta):
    sigma = analytic_sigma(epsilon, delta, 3.0) / 3.0
    # P[A] - e^epsilon P'[A] for the worst event A, by the two normal laws at distance 1
    worst = 0.5 + sigma**2 * epsilon
    excess = stats.norm.sf(worst, 1, sigma) - math.exp(epsilon) * stats.norm.sf(worst, 0, sigma)
    assert excess == pytest.approx(delta, rel=1e-6)
    assert sigma < math.sqrt(2 * math.log(1.25 / delta)) / min(epsilon, 1)


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_one_record_moves_the_clipped_gradient_further_than_is_claimed(n):
    # The columns' range is that of two levels of even shares, times 20, less the mean.
    rows = np.zeros((n, 2))
    other = rows.copy()
    other[0] = 10, 10
    start = np.zeros((2, 2))
    change = clipped_gradient(moments(rows), start) - clipped_gradient(moments(other), start)
    np.fill_diagonal(change, 0)
    assert np.linalg.norm(change) == pytest.approx(math.sqrt(2) * 100 / n)
    assert np.linalg.norm(change) == pytest.approx(25 * claimed_gradient_sensitivity(n, 2))
    other[0] = 1e6, 1e6
    change = clipped_gradient(moments(rows), start) - clipped_gradient(moments(other), start)
    assert abs(change[0, 1]) == 2.0  # however many records there are


def test_the_gradient_is_that_of_the_objective():
    rng = np.random.default_rng(0)
    table = moments(0.3 * rng.normal(size=(200, 4)))
    search = _Search(table, table, penalty=0.1, sigma=0.0, stream=rng)
    search._rho, search._dual = 3.0, 0.7
    flat = rng.uniform(0, 0.5, 32)
    flat[np.tile(np.eye(4, dtype=bool).ravel(), 2)] = 0
    numeric_gradient = optimize.approx_fprime(flat, search._value, 1e-7)
    free = ~np.tile(np.eye(4, dtype=bool).ravel(), 2)  # the diagonal stays 0
    np.testing.assert_allclose(search._gradient(flat)[free], numeric_gradient[free], atol=1e-5)
    assert search.n_gradients == 1


def linear(n: int, seed: int = 0) -> tuple[Dataset, MixedGraph]:
    """A linear model with a collider, errors of variance .3, and its CPDAG."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0, 0.5, (2, n))
    c = 0.9 * a + 0.9 * b + rng.normal(0, 0.5, n)
    d = 0.9 * c + rng.normal(0, 0.5, n)
    dag = nx.DiGraph()
    dag.add_nodes_from("abcd")
    dag.add_edges_from([("a", "c"), ("b", "c"), ("c", "d")])
    data = Dataset.from_array(np.column_stack([a, b, c, d]), names=list("abcd"))
    return data, dag_to_cpdag(MixedGraph.from_dag(dag))


def test_finds_a_linear_model_without_much_noise():
    data, truth = linear(5_000)
    found = published.noleaks(data, epsilon=100.0, key=jax.random.key(0))
    assert found.graph == truth


def test_the_account_is_the_sum_over_gradients_and_not_proved():
    data, _ = linear(5_000)
    key = jax.random.key(3)
    run = published.noleaks(data, epsilon=0.5, delta=1e-5, key=key)
    n_gradients = run.info["n_gradients"]
    assert run.cost.epsilon == pytest.approx(math.log(5_001 / 4_001) + 0.5 * n_gradients)
    assert run.cost.delta == pytest.approx(1_000 / 5_000 + 1e-5 * n_gradients)
    assert not run.cost.proven and "mean of the records' gradients" in run.cost.reason
    again = published.noleaks(data, epsilon=0.5, delta=1e-5, key=key)
    assert again.graph == run.graph and dict(again.info) == dict(run.info)
    public, _ = linear(200, seed=1)
    run = published.noleaks(data, epsilon=0.5, delta=1e-5, key=key, public=public)
    assert run.cost.epsilon == pytest.approx(0.5 * run.info["n_gradients"])


def test_discrete_columns_are_coded_and_little_is_left_at_a_small_price():
    data = networks.load("asia").sample(2_000, key=jax.random.key(0))
    weights = np.array(published.noleaks(data, epsilon=1.0, key=jax.random.key(1)).info["weights"])
    assert weights.shape == (8, 8) and (np.diag(weights) == 0).all() and np.abs(weights).max() > 0.1


def test_the_threshold_rises_until_no_cycle_is_left():
    weights = np.array([[0.0, 0.9, 0.0], [0.5, 0.0, -0.8], [0.4, 0.0, 0.0]])
    assert _acyclic(weights, 0.3).tolist() == [
        [False, True, False],
        [False, False, True],
        [False] * 3,
    ]
    assert _acyclic(weights, 0.85).sum() == 1
    assert _acyclic(np.zeros((2, 2)), 0.3).sum() == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", math.nan),
        ("delta", 1.0),
        ("penalty", -1.0),
        ("threshold", 0.0),
        ("key", 3),
    ],
)
def test_wrong_options(option, value):
    options = {"epsilon": 1.0, "key": jax.random.key(0), option: value}
    with pytest.raises(OptionError, match=option):
        published.noleaks(numeric(20), **options)


def test_public_rows_of_other_columns():
    data, _ = linear(20)
    with pytest.raises(OptionError, match="public has the columns"):
        published.noleaks(data, epsilon=1.0, key=jax.random.key(0), public=data.select(["b", "a"]))


@pytest.mark.parametrize("public", [3, "rows", []])
def test_what_is_no_public_table(public):
    with pytest.raises(OptionError, match="public: an? .* is no Dataset"):
        published.noleaks(numeric(50), epsilon=1.0, key=jax.random.key(0), public=public)


@pytest.mark.filterwarnings("error")
def test_one_row_has_a_graph():
    run = published.noleaks(numeric(1), epsilon=1.0, key=jax.random.key(0))
    assert np.isfinite(run.info["weights"]).all() and 0.999 < run.cost.delta < 1


def test_a_total_that_claims_nothing_is_no_error():
    """The deltas of all gradients may add up to more than 1."""
    run = published.noleaks(numeric(200), epsilon=1.0, delta=0.5, key=jax.random.key(0))
    assert run.info["n_gradients"] * 0.5 > 1 and 0.999 < run.cost.delta < 1
