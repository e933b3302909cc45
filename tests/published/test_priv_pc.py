"""Priv-PC and SVT-PC against a plain sequential reading of the algorithm, and their accounts."""

from __future__ import annotations

import dataclasses
import itertools
import math

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from jaxcd import NO_PRIVACY, metrics, networks, published
from jaxcd.citests import Query
from jaxcd.published import rounds as module
from jaxcd.published.accounting import (
    SievePrices,
    SVTPrices,
    claimed_sensitivity,
    sieve_total,
    svt_total,
)
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.queries import Door, Session

ALPHA, BIAS = 0.1, 0.02


def asia(n: int = 2000, seed: int = 0):
    return networks.load("asia").sample(n, key=jax.random.key(seed))


class Reference:
    """The published loop, one query after the other, p-values from a session each."""

    def __init__(self, data, key, epsilon):
        self.data, self.epsilon = data, epsilon
        self.n, self.d = data.n_samples, data.n_columns
        self.full = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=ALPHA)
        self.streams = module.streams(key)
        self.count = self.n_tests = 0
        self.neighbours = {i: set(range(self.d)) - {i} for i in range(self.d)}
        self.sets = {}

    def pvalue(self, queue, i, j, given):
        return math.exp(queue.evaluate([Query.of(i, j, given)]).log_pvalue[0])

    def search(self):
        self.refresh()
        level, go_on = 0, True
        while go_on:
            go_on = False
            for i, j in itertools.permutations(range(self.d), 2):
                others = sorted(self.neighbours[i] - {j})
                if j not in self.neighbours[i] or len(others) < level:
                    continue
                go_on = True
                for given in itertools.combinations(others, level):
                    if self.separates(i, j, given):
                        self.neighbours[i].discard(j)
                        self.neighbours[j].discard(i)
                        self.sets.setdefault(frozenset((i, j)), set()).update(given)
                        break
            level += 1
        return self


class ReferenceSVT(Reference):
    def refresh(self):
        self.prices = SVTPrices.of(self.n, self.epsilon)
        self.stream = self.streams(self.count)
        draw = self.stream.normal if self.count else self.stream.laplace
        self.threshold = ALPHA + draw(0, self.prices.threshold_scale)

    def separates(self, i, j, given):
        self.n_tests += 1
        if (
            self.pvalue(self.full, i, j, given) + self.stream.laplace(0, self.prices.query_scale)
            >= self.threshold
        ):
            self.count += 1
            self.refresh()
            return True
        return False


class ReferencePrivPC(Reference):
    def refresh(self):
        self.prices = SievePrices.of(self.n, self.epsilon)
        self.stream = self.streams(self.count)
        self.threshold = ALPHA - BIAS + self.stream.laplace(0, self.prices.threshold_scale)
        self.examine_noise = self.stream.laplace(0, self.prices.examine_scale)
        rows = np.zeros(self.n, dtype=bool)
        rows[
            self.stream.choice(self.n, self.prices.subsample_size, replace=False, shuffle=False)
        ] = True
        self.queue = self.full.restrict(rows)

    def separates(self, i, j, given):
        self.n_tests += 1
        noisy = self.pvalue(self.queue, i, j, given) + self.stream.laplace(
            0, self.prices.query_scale
        )
        if not noisy >= self.threshold:
            return False
        self.n_tests += 1
        self.count += 1
        confirmed = self.pvalue(self.full, i, j, given) + self.examine_noise >= ALPHA
        self.refresh()
        return confirmed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "reference"),
    [(published.priv_pc, ReferencePrivPC), (published.svt_pc, ReferenceSVT)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_is_the_sequential_algorithm(function, reference, seed):
    data = asia(seed=seed)
    key = jax.random.key(10 + seed)
    run = function(data, epsilon=2.0, key=key)
    slow = reference(data, key, 2.0).search()
    names = data.names
    assert dict(run.separating_sets) == {
        frozenset(names[v] for v in pair): tuple(names[v] for v in sorted(given))
        for pair, given in slow.sets.items()
    }
    assert (run.info["n_tests"], run.info["n_rounds"]) == (slow.n_tests, slow.count)
    assert len(slow.sets) > 8  # the comparison compares something


def test_look_ahead_does_not_change_the_result(monkeypatch):
    data, key = asia(seed=3), jax.random.key(4)
    expected = published.priv_pc(data, epsilon=1.0, key=key)
    monkeypatch.setattr(module, "_FIRST_LOOK_AHEAD", 1)
    monkeypatch.setattr(module, "_LOOK_AHEAD", 3)
    again = published.priv_pc(data, epsilon=1.0, key=key)
    assert again.graph == expected.graph and dict(again.info) == dict(expected.info)


@pytest.mark.slow
def test_a_large_epsilon_gives_pc_with_the_same_test():
    data = asia(20_000)
    run = published.svt_pc(data, epsilon=1e6, key=jax.random.key(0), max_level=2)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=ALPHA)
    for pair, given in run.separating_sets.items():
        x, y = (data.names.index(name) for name in pair)
        query = Query.of(x, y, [data.names.index(name) for name in given])
        assert session.evaluate([query]).log_pvalue[0] >= math.log(ALPHA) - 1e-3
    assert metrics.skeleton_f1(run.graph, networks.load("asia").cpdag()) > 0.7


@pytest.mark.parametrize("function", [published.priv_pc, published.svt_pc])
def test_is_not_proved_and_says_why(function):
    run = function(asia(500), epsilon=1.0, key=jax.random.key(0), max_level=1)
    for cost in (run.cost, run.spent):
        assert not cost.proven and "sensitivity" in cost.reason and "NaN" in cost.reason
    assert run.info["total_epsilon"] == run.cost.epsilon > 1
    assert run.info["secure_noise"] is False and not run.exhausted
    assert ("normal" in run.cost.reason) == (function is published.svt_pc)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_totals_are_the_published_ones(epsilon):
    k, delta = 20, 1e-3
    advanced = math.sqrt(2 * k * math.log(2 / delta)) * epsilon / 2 + k * epsilon / 2 * (
        math.exp(epsilon / 2) - 1
    )
    assert sieve_total(k, epsilon, delta) == pytest.approx(2 * advanced, rel=1e-12)
    svt = math.sqrt(2 * k * math.log(1 / delta)) * epsilon + k * epsilon * (math.exp(epsilon) - 1)
    assert svt_total(k, epsilon, delta) == pytest.approx(svt, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "k", "delta", "total"),
    [(0.1, 20, 1e-3, 1.85), (1.0, 100, 1e-6, 118.74), (0.5, 20, 1e-6, 14.89)],
)
def test_totals_of_the_specification(epsilon, k, delta, total):
    assert sieve_total(k, epsilon, delta) == pytest.approx(total, abs=0.005)


def test_no_round_costs_nothing_and_that_is_a_fault():
    assert sieve_total(0, 1.0, 1e-3) == svt_total(0, 1.0, 1e-3) == 0
    assert svt_total(0, 1e6, 1e-3) == 0 and svt_total(1, 1e6, 1e-3) == math.inf


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0, 10.0])
def test_scales(epsilon):
    n = 100_000
    sensitivity = stats.norm.cdf(6 / math.sqrt(n)) - 0.5
    assert claimed_sensitivity(n) == pytest.approx(sensitivity, rel=1e-12)
    svt = SVTPrices.of(n, epsilon)
    assert (svt.threshold_scale, svt.query_scale) == pytest.approx(
        (2 * sensitivity / epsilon, 8 * sensitivity / epsilon)
    )
    half = epsilon / 2
    free = optimize.minimize(
        lambda t: math.sqrt(math.exp(t[0])) / math.log(math.exp(t[0]) * (math.exp(half) - 1) + 1),
        [0.0],
        tol=1e-12,
    )
    rate = min(max(math.exp(-free.x[0]), 1 / 20), 1)
    prices = SievePrices.of(n, epsilon)
    assert prices.rate == pytest.approx(rate, rel=1e-3)
    scale = (
        2 * sensitivity / math.sqrt(prices.rate) / math.log((math.exp(half) - 1) / prices.rate + 1)
    )
    assert prices.threshold_scale == pytest.approx(scale, rel=1e-12)
    assert prices.query_scale == pytest.approx(2 * scale, rel=1e-12)
    assert prices.examine_scale == pytest.approx(sensitivity / half, rel=1e-12)
    assert prices.subsample_size == int(n * prices.rate)
    with pytest.raises(dataclasses.FrozenInstanceError):
        prices.rate = 1.0


def test_reproducible_from_its_key():
    data = asia(1000)
    first, again, other = (
        published.priv_pc(data, epsilon=0.5, key=jax.random.key(s), max_level=1) for s in (1, 1, 2)
    )
    assert first.graph == again.graph and dict(first.info) == dict(again.info)
    assert dict(first.info) != dict(other.info)


def test_without_a_subsample_the_sieve_reads_all_rows():
    data, key = asia(1000), jax.random.key(3)
    run = published.priv_pc(data, epsilon=1.0, rate=1.0, key=key, max_level=1)
    assert run.info["subsample_size"] == 1000
    prices = SievePrices.of(1000, 1.0, 1.0)
    assert prices.threshold_scale == pytest.approx(4 * claimed_sensitivity(1000))
    # A pair and its set count once; the sieve asks both ends, and the examination again.
    info = run.info
    assert info["n_distinct_queries"] <= info["n_tests"] - info["n_rounds"]
    assert 28 <= info["n_distinct_queries"] <= 28 * 7


def test_a_constant_column_keeps_its_edges():
    data = asia(1000)
    codes = np.array(data.codes)
    codes[:, 2] = 0
    run = published.priv_pc(
        type(data).from_codes(codes, domain=data.domain),
        epsilon=1.0,
        key=jax.random.key(0),
        max_level=1,
    )
    constant = data.names[2]
    assert all(run.graph.adjacent(constant, name) for name in data.names if name != constant)


def test_two_rows():
    data = asia(2)
    run = published.priv_pc(data, epsilon=1.0, key=jax.random.key(0), max_level=1)
    assert run.graph.names == data.names
