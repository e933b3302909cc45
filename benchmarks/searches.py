"""Searches as the benchmarks run them: on data, at a total epsilon, with a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax

import jaxcd

DELTA = 1e-6

#: From data, a total epsilon (None: without privacy) and a key, which also seeds simulated noise.
Run = Callable[[jaxcd.Dataset, float | None, jax.Array], jaxcd.DiscoveryResult]


def budget_of(
    epsilon: float | None, delta: float = DELTA
) -> jaxcd.Budget | jaxcd.privacy.NoPrivacy:
    """The budget of a total."""
    return jaxcd.NO_PRIVACY if epsilon is None else jaxcd.Budget(epsilon, delta)


def by_tests(
    test: jaxcd.citests.CITest,
    search: Callable[..., jaxcd.DiscoveryResult] = jaxcd.pc,
    *,
    delta: float = DELTA,
    **options: Any,
) -> Run:
    """A search by tests, with simulated noise where there is a budget."""

    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        noise = None if epsilon is None else jaxcd.SimulatedNoise(key)
        budget = budget_of(epsilon, delta)
        return search(data, test=test, budget=budget, key=key, noise=noise, **options)

    return run


def by_release(
    kind: Any, delta: float = DELTA, search: Callable[..., jaxcd.DiscoveryResult] = jaxcd.search
) -> Run:
    """A release with simulated noise, and a search on it."""

    def run(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
        noise = None if epsilon is None else jaxcd.SimulatedNoise(key)
        return search(jaxcd.release(data, kind, budget=budget_of(epsilon, delta), noise=noise))

    return run


def pc_moments(
    release: jaxcd.Release, *, alpha: float = 0.01, max_level: int = 3
) -> jaxcd.DiscoveryResult:
    """PC by Fisher's z on released moments."""
    decider = jaxcd.Threshold(alpha)
    return jaxcd.pc(release, test=jaxcd.FisherZ(), decider=decider, key=None, max_level=max_level)


def labelled(methods: Iterable[Any], words: Sequence[str] | None) -> list[Any]:
    """The methods whose ``label`` holds one of the words, in any case; all without words."""
    return [
        method
        for method in methods
        if words is None or any(word.lower() in method.label.lower() for word in words)
    ]
