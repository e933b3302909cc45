"""Priv-FCI: where there is no noise it is FCI, and its account is that of the slides' code."""

from __future__ import annotations

import math

import jax
import pytest

from jaxcd import NO_PRIVACY, Threshold, fci, metrics, networks, published


@pytest.mark.parametrize("name", ["cancer", "earthquake"])
def test_without_noise_it_is_fci_of_its_test(name):
    data = networks.load(name).sample(20_000, key=jax.random.key(0))
    run = published.priv_fci(data, epsilon=5_000.0, bias=0.0, rate=1.0, key=jax.random.key(1))
    plain = fci(
        data,
        test=published.ConditionalTau(),
        decider=Threshold(alpha=0.1),
        budget=NO_PRIVACY,
        key=None,
        stable=False,
        selection_bias=False,
    )
    assert float(metrics.skeleton_f1(run.graph, plain.graph)) >= 0.9
    assert run.info["n_tests"] >= plain.info["n_tests"]


def test_its_total_is_the_codes():
    data = networks.load("cancer").sample(5_000, key=jax.random.key(0))
    epsilon, delta = 3.0, 1e-3
    run = published.priv_fci(data, epsilon=epsilon, delta=delta, key=jax.random.key(2))
    k = run.info["n_rounds"]
    total = 2 * (
        math.sqrt(2 * k * math.log(2 / delta)) * (epsilon / 4)
        + k * (epsilon / 4) * (math.exp(epsilon / 4) - 1)
    )
    assert run.cost.epsilon == pytest.approx(total) and not run.cost.proven
    assert run.info["subsample_size"] == 250
    again = published.priv_fci(data, epsilon=epsilon, delta=delta, key=jax.random.key(2))
    assert again.graph == run.graph and dict(again.info) == dict(run.info)
