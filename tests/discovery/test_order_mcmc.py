"""Order MCMC against enumeration of all orders and all DAGs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from jaxcd.data import Dataset, Domain, Numeric
from jaxcd.discovery.score.exact_search import exact_search
from jaxcd.discovery.score.order_families import OrderFamilies, linear_extensions
from jaxcd.discovery.score.order_mcmc import Move, StructurePrior, _Chain, sample_orders
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph, dag_to_cpdag
from jaxcd.scores import BICScore, LocalScore
from jaxcd.scores.bge import BGeScore
from tests.brute_force import DrawnScore, over_dags
from tests.helpers import refused


def allowed_families(
    score: LocalScore, v: int, before: set[int], candidates: np.ndarray
) -> list[tuple[int, ...]]:
    """At most one parent from outside the candidates, and no more parents than the score wants."""
    return [
        p
        for p in score.families(v)
        if set(p) <= before and sum(not candidates[u, v] for u in p) <= 1
    ]


def over_orders(
    score: LocalScore, candidates: np.ndarray
) -> tuple[np.ndarray, dict[tuple[int, ...], float]]:
    """Exact arc probabilities, and log R of each order, by enumeration."""
    d = len(score.names)
    weights, arcs = {}, []
    for order in itertools.permutations(range(d)):
        total, given = 0.0, np.zeros((d, d))
        for place, v in enumerate(order):
            families = allowed_families(score, v, set(order[:place]), candidates)
            values = np.array([score.local(v, p) for p in families])
            total += logsumexp(values)
            for p, share in zip(families, np.exp(values - logsumexp(values)), strict=True):
                given[list(p), v] += share
        weights[order] = total
        arcs.append(given)
    shares = np.exp(np.array(list(weights.values())) - logsumexp(list(weights.values())))
    return np.einsum("o,oij->ij", shares, np.array(arcs)), weights


def test_orders_and_dags_with_their_extensions_are_the_same_posterior():
    score = DrawnScore(4, seed=1)
    whole, _ = over_orders(score, np.ones((4, 4), dtype=bool))
    np.testing.assert_allclose(whole, over_dags(score, uniform=False)[0], atol=1e-12)
    assert np.abs(whole - over_dags(score, uniform=True)[0]).max() > 0.02  # the prior matters


@pytest.mark.parametrize("seed", [1, 2])
def test_edges_match_enumeration(seed: int):
    score = DrawnScore(4, seed=seed)
    exact = over_dags(score, uniform=False)[0]
    found = sample_orders(score, n_steps=8000, burn_in=200, seed=seed, thin=2, n_chains=2)
    assert np.abs(found.edges - exact).max() < 0.03
    assert found.disagreement < 0.06
    np.testing.assert_allclose(found.edges, found.chain_edges.mean(axis=0))
    assert found.effective_samples == pytest.approx(found.trace.size)


def test_the_uniform_prior_matches_enumeration():
    score = DrawnScore(4, seed=1)
    found = sample_orders(
        score, n_steps=8000, burn_in=200, seed=3, thin=2, prior=StructurePrior.UNIFORM
    )
    assert np.abs(found.edges - over_dags(score, uniform=True)[0]).max() < 0.04
    assert found.effective_samples < found.trace.size


def test_orders_are_visited_by_their_weight():
    """All 24 orders, by every move; half of the total variation of a perfect sample of the same
    size is allowed on top.
    """
    score = DrawnScore(4, seed=5)
    _, weights = over_orders(score, np.ones((4, 4), dtype=bool))
    chain = _Chain(
        OrderFamilies(score, np.ones((4, 4), dtype=bool)), [0, 1, 2, 3], np.random.default_rng(0)
    )
    visits = dict.fromkeys(weights, 0)
    n = 20_000
    for _ in range(n):
        chain.step()
        visits[tuple(chain.order)] += 1
        assert chain.log_weight == pytest.approx(weights[tuple(chain.order)])
    exact = np.exp(np.array(list(weights.values())) - logsumexp(list(weights.values())))
    assert np.abs(np.array(list(visits.values())) / n - exact).sum() / 2 < 0.05
    assert all(chain.tried[move] > 3000 and chain.changed[move] > 300 for move in Move)


def test_given_the_order_arcs_and_the_best_families_are_exact():
    """With one parent from outside the candidates."""
    score, rng = DrawnScore(6, seed=7), np.random.default_rng(0)
    candidates = rng.random((6, 6)) < 0.4
    np.fill_diagonal(candidates, False)
    tables = OrderFamilies(score, candidates)
    for v in range(6):
        for bits in range(64):
            if bits >> v & 1:
                continue
            families = allowed_families(
                score, v, {u for u in range(6) if bits >> u & 1}, candidates
            )
            values = np.array([score.local(v, p) for p in families])
            assert tables.total(v, bits) == pytest.approx(logsumexp(values))
            shares = np.exp(values - logsumexp(values))
            expected = [
                sum(s for p, s in zip(families, shares, strict=True) if u in p) for u in range(6)
            ]
            np.testing.assert_allclose(tables.arcs(v, bits), expected, atol=1e-12)
            assert tables.best(v, bits) == (
                pytest.approx(values.max()),
                families[int(values.argmax())],
            )
    families = allowed_families(score, 0, {1, 2, 3, 4, 5}, candidates)
    values = np.array([score.local(0, p) for p in families])
    drawn = [tables.draw(0, 62, rng) for _ in range(4000)]
    shares = np.array([drawn.count(p) for p in families]) / 4000
    assert shares.sum() == pytest.approx(1)
    assert np.abs(shares - np.exp(values - logsumexp(values))).max() < 0.03


def test_candidates_grow_until_the_best_dag_is_inside():
    rng = np.random.default_rng(3)
    weights = np.triu(rng.normal(size=(7, 7)) * (rng.random((7, 7)) < 0.6), 1)
    covariance = np.linalg.inv((np.eye(7) - weights) @ (np.eye(7) - weights).T)
    score = BGeScore(
        [f"v{j}" for j in range(7)], np.zeros(7), covariance, n_samples=300, max_parents=6
    )
    found = sample_orders(score, n_steps=500, burn_in=600, seed=1, max_candidates=5)
    assert found.n_expansions >= 1 and found.left_out == ()
    assert found.score == pytest.approx(score.total(exact_search(score)))
    assert score.total(found.dag.directed) == pytest.approx(found.score)
    assert found.cpdag == dag_to_cpdag(found.dag)
    limited = sample_orders(score, n_steps=100, burn_in=200, seed=1, max_candidates=1)
    assert limited.candidates.sum(axis=0).max() <= 1 and limited.score <= found.score + 1e-9


def test_with_bge_the_arcs_of_a_sharp_problem_are_certain():
    rng = np.random.default_rng(0)
    n = 2000
    a, b = rng.normal(size=(2, n))
    c = a + b + rng.normal(size=n)
    d = c + rng.normal(size=n)
    data = Dataset.from_array(
        np.column_stack([a, b, c, d]),
        names=list("abcd"),
        domain=Domain(dict.fromkeys("abcd", Numeric())),
    )
    found = sample_orders(BGeScore.of_data(data), n_steps=2000, burn_in=500, seed=0)
    truth = MixedGraph.from_edges(list("abcd"), ["a --> c", "b --> c", "c --> d"])
    assert found.dag == truth
    assert found.edges[[0, 1, 2], [2, 2, 3]].min() > 0.9
    assert found.edges[~truth.directed].max() < 0.2
    assert found.edges.sum(axis=0).max() < 3 and (found.edges + found.edges.T).max() <= 1 + 1e-12


def test_bic_and_the_seed():
    table = 2000 * np.random.default_rng(0).dirichlet(np.full(32, 0.5)).reshape((2,) * 5)
    score = BICScore.of_table(table, names=list("abcde"), n_samples=2000)
    once, again = (sample_orders(score, n_steps=500, burn_in=200, seed=4) for _ in range(2))
    np.testing.assert_array_equal(once.edges, again.edges)
    np.testing.assert_array_equal(once.trace, again.trace)
    assert once.score == pytest.approx(score.total(exact_search(score)))
    assert once.trace.shape == (2, 50)


def test_few_variables():
    found = sample_orders(DrawnScore(2, seed=0), n_steps=1000, burn_in=10, seed=0, thin=1)
    np.testing.assert_allclose(
        found.edges, over_dags(DrawnScore(2, seed=0), uniform=False)[0], atol=0.1
    )
    alone = sample_orders(DrawnScore(1, seed=0), n_steps=20, seed=0)
    assert alone.edges.tolist() == [[0.0]] and alone.score == DrawnScore(1, seed=0).local(0, ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_steps": 0},
        {"burn_in": -1},
        {"seed": math.nan},
        {"thin": 0},
        {"thin": 11},
        {"n_chains": 0},
        {"max_candidates": 17},
        {"prior": "uniform"},
        {"candidates": np.ones((2, 2), dtype=bool)},
    ],
)
def test_wrong_arguments(wrong: dict):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        sample_orders(DrawnScore(3, seed=0), **{"seed": 0, "n_steps": 10} | wrong)


def test_too_many_variables_for_the_uniform_prior():
    with pytest.raises(OptionError, match="prior"):
        sample_orders(DrawnScore(17, seed=0, max_parents=1), seed=0, prior=StructurePrior.UNIFORM)
    refused(OptionError, "16", linear_extensions, np.zeros((17, 17), dtype=bool))
    refused(OptionError, "LocalScore", sample_orders, "bic", seed=0)
