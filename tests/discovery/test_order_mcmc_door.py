"""The door of order MCMC: enumeration of all DAGs as the truth, releases, and refusals."""

from __future__ import annotations

import json
import math

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.discovery import OrderPosterior, StructurePrior
from jaxcd.discovery.score.order_mcmc import sample_orders
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.graphs import dag_to_cpdag
from jaxcd.scores.bge import BGe
from tests.brute_force import over_dags
from tests.helpers import refused, simulated

NONE = jaxcd.NO_PRIVACY
QUICK = {"n_steps": 400, "burn_in": 100}


def four_columns(n: int) -> jaxcd.Dataset:
    """a -> c <- b, c -> d, weak enough that several classes are probable."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, n))
    c = np.where(rng.random(n) < 0.35, a | b, rng.integers(2, size=n))
    d = np.where(rng.random(n) < 0.25, c, rng.integers(2, size=n))
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "abcd"})
    return jaxcd.Dataset.from_codes(np.column_stack([a, b, c, d]).astype(np.int32), domain=domain)


@pytest.mark.parametrize("prior", list(StructurePrior), ids=lambda prior: prior.name)
def test_the_posterior_of_arcs_is_that_of_enumeration(prior: StructurePrior):
    data = four_columns(300)
    exact, best = over_dags(jaxcd.BDeu().prepare(data), uniform=prior is StructurePrior.UNIFORM)
    run = jaxcd.order_mcmc(
        data, budget=NONE, key=jax.random.key(0), n_steps=5000, burn_in=200, thin=2, prior=prior
    )
    assert run.confidence is not None and run.confidence.directed is not None
    # there is something to estimate
    assert 0.1 < exact.max() and np.abs(exact - exact.round()).max() > 0.2
    assert np.abs(run.confidence.directed - exact).max() < 0.04
    np.testing.assert_allclose(
        run.confidence.adjacency, run.confidence.directed + run.confidence.directed.T, atol=1e-12
    )
    assert run.graph == dag_to_cpdag(jaxcd.MixedGraph.from_arcs(data.names, best))
    assert run.info["prior"] == prior.value and run.info["disagreement"] < 0.08
    assert run.info["score"] == pytest.approx(jaxcd.BDeu().prepare(data).total(best))


def test_it_is_the_search_on_the_prepared_score():
    data = four_columns(200)
    run = jaxcd.order_mcmc(
        data,
        score=jaxcd.BIC(),
        budget=NONE,
        key=jax.random.key(7),
        max_parents=2,
        max_candidates=2,
        **QUICK,
    )
    seed = int.from_bytes(np.asarray(jax.random.key_data(jax.random.key(7))).tobytes(), "little")
    found = sample_orders(
        jaxcd.BIC().prepare(data, max_parents=2), seed=seed, max_candidates=2, **QUICK
    )
    assert isinstance(found, OrderPosterior)
    np.testing.assert_allclose(run.confidence.directed, found.edges, atol=1e-12)
    assert run.graph == found.cpdag and run.info["score"] == found.score
    assert run.info["max_parents"] == 2 and run.info["algorithm"] == "order_mcmc"
    assert run.info["score_function"] == "BIC(penalty_discount=1.0)"
    other = jaxcd.order_mcmc(
        data,
        score=jaxcd.BIC(),
        budget=NONE,
        key=jax.random.key(8),
        max_parents=2,
        max_candidates=2,
        **QUICK,
    )
    assert not np.array_equal(other.confidence.directed, run.confidence.directed)


def test_numeric_columns_by_bic_and_bge():
    dag = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    data = jaxcd.data.structural.linear_gaussian_sem(dag, key=jax.random.key(0)).sample(
        5000, key=jax.random.key(1)
    )
    for score in (jaxcd.BIC(), BGe()):
        run = jaxcd.order_mcmc(
            data, score=score, budget=NONE, key=jax.random.key(2), n_steps=5000, burn_in=200, thin=2
        )
        exact, best = over_dags(score.prepare(data), uniform=False)
        assert (
            run.graph
            == dag_to_cpdag(dag).reordered(run.graph.names)
            == dag_to_cpdag(jaxcd.MixedGraph.from_arcs(data.names, best))
        )
        assert run.confidence is not None and run.confidence.directed is not None
        np.testing.assert_allclose(run.confidence.directed, exact, atol=0.05)


def test_many_columns_have_few_parents():
    rng = np.random.default_rng(0)
    names = [f"v{j}" for j in range(11)]
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in names})
    data = jaxcd.Dataset.from_codes(rng.integers(2, size=(60, 11)).astype(np.int32), domain=domain)
    run = jaxcd.order_mcmc(
        data, budget=NONE, key=jax.random.key(0), n_steps=20, burn_in=5, max_candidates=3
    )
    assert run.info["max_parents"] == 4 and run.confidence.directed.shape == (11, 11)


def test_a_release_is_searched_at_its_own_cost(tmp_path):
    network = jaxcd.networks.load("cancer")
    data = network.sample(200_000, key=jax.random.key(0))
    noise = simulated(1)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(4.0), noise=noise)
    run = jaxcd.order_mcmc(bought, key=jax.random.key(2), **QUICK)
    assert run.cost == bought.cost and run.spent == bought.spent
    assert run.info["release"] == bought.kind
    exact = jaxcd.exact_search(bought, score=jaxcd.BDeu())
    assert run.graph == exact.graph and run.info["score"] == pytest.approx(exact.info["score"])
    folder = run.save(tmp_path / "run")
    assert json.loads((folder / "graph.json").read_text(encoding="utf-8"))["confidence"][
        "method"
    ].startswith("posterior")


def test_a_release_without_a_likelihood_is_searched_by_bic():
    data, key = four_columns(2_000), jax.random.key(0)
    bought = jaxcd.release(
        data, jaxcd.Marginals(), budget=jaxcd.Budget(4.0, 1e-6), noise=simulated(1)
    )
    run = jaxcd.order_mcmc(bought, key=key, **QUICK)
    assert run.info["score_function"] == repr(jaxcd.BIC())
    refused(OptionError, "use BIC", jaxcd.order_mcmc, bought, score=jaxcd.BDeu(), key=key, **QUICK)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"key": None}, "key is required"),
        ({"key": 3}, "typed key"),
        ({"score": "bdeu"}, "score = 'bdeu'"),
        ({"budget": None}, "budget is required"),
        ({"max_parents": -1}, "max_parents = -1"),
        ({"n_steps": 0}, "n_steps = 0"),
        ({"burn_in": math.nan}, "burn_in = nan"),
        ({"thin": 500}, "thin = 500"),
        ({"n_chains": 0}, "n_chains = 0"),
        ({"prior": "uniform"}, "prior = 'uniform'"),
        ({"max_candidates": 17}, "max_candidates = 17"),
    ],
)
def test_wrong_arguments(wrong: dict, match: str):
    arguments = {"budget": NONE, "key": jax.random.key(0), **QUICK} | wrong
    refused(OptionError, match, jaxcd.order_mcmc, four_columns(20), **arguments)


def test_other_refusals():
    data, key = four_columns(20), jax.random.key(0)
    refused(
        PrivacyError, "buy a release", jaxcd.order_mcmc, data, budget=jaxcd.Budget(1.0), key=key
    )
    with pytest.raises(OptionError, match="neither a Dataset nor a Release"):
        jaxcd.order_mcmc(np.zeros((3, 3)), budget=NONE, key=key)
    bought = jaxcd.release(
        data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=jaxcd.SimulatedNoise(key)
    )
    with pytest.raises(OptionError, match="has been paid for"):
        jaxcd.order_mcmc(bought, budget=jaxcd.Budget(1.0), key=key)


def test_progress_is_told_of_every_part_and_changes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {"budget": NONE, "key": jax.random.key(0), "n_steps": 30, "burn_in": 10}
    data = four_columns(100)
    silent, steps = jaxcd.order_mcmc(data, **options), []
    found = jaxcd.order_mcmc(data, **options, progress=steps.append)
    assert found.graph == silent.graph and found.info == silent.info
    assert np.array_equal(found.confidence.directed, silent.confidence.directed)
    told: dict[str, list] = {}
    for step in steps:
        told.setdefault(step.words, []).append(step.progress)
    assert list(told)[:3] == [
        "first candidates: column",
        "families, round 1: column",
        "walk for candidates, round 1: move",
    ]
    assert told["families, round 1: column"] == [(v, 4) for v in range(4)]
    for chain in (1, 2):
        parts = told[f"chain {chain} of 2: move"]
        assert parts[0] == (0, 40) and all(done < 40 for done, _ in parts)
    assert capsys.readouterr().out == ""
    jaxcd.order_mcmc(data, **options, progress=True)
    assert "chain 2 of 2: move (1 of 40)\n" in capsys.readouterr().out
    refused(OptionError, "progress", jaxcd.order_mcmc, data, **options, progress="yes")
