"""``jaxcd.release`` and ``jaxcd.search``: one way in for every kind of release."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxcd

BUDGET = jaxcd.Budget(2.0, 1e-6)


@pytest.fixture(scope="module")
def discrete() -> jaxcd.Dataset:
    return jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))


@pytest.fixture(scope="module")
def numeric() -> jaxcd.Dataset:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000))
    values = np.column_stack([a, b, a + b + rng.normal(size=20_000)])
    return jaxcd.Dataset.from_array(values, domain=jaxcd.Domain({name: jaxcd.Numeric() for name in "abc"}))


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["histogram", "marginals"])
def test_discrete_columns(discrete, kind, tmp_path):
    bought = jaxcd.release(discrete, kind, budget=BUDGET, noise=jaxcd.SimulatedNoise(jax.random.key(1)))
    assert bought.cost.epsilon == BUDGET.epsilon and bought.spent.epsilon <= BUDGET.epsilon
    found = jaxcd.search(bought)
    assert found.cost == bought.cost and found.graph.names == discrete.names
    bought.save(tmp_path / "bought.npz")
    assert jaxcd.search(jaxcd.Release.load(tmp_path / "bought.npz")).graph == found.graph


def test_numeric_columns(numeric):
    bought = jaxcd.release(numeric, jaxcd.SecondMoments(), budget=BUDGET, noise=jaxcd.SimulatedNoise(jax.random.key(1)))
    assert jaxcd.search(bought).graph == jaxcd.MixedGraph.from_edges(["a", "b", "c"], ["a --> c", "b --> c"])


def test_what_is_no_release(discrete):
    with pytest.raises(jaxcd.OptionError, match="kind = 'histogram'"):
        jaxcd.release(discrete, "histogram", budget=BUDGET)
    with pytest.raises(jaxcd.OptionError, match="a Dataset cannot be searched"):
        jaxcd.search(discrete)
