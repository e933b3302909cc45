"""CURATE: its bound against data sets that exceed it, its prices, and its account."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from jaxcd import NO_PRIVACY, Dataset, Domain, Ordinal, networks, published
from jaxcd.citests import Query
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.curate import claimed_product_sensitivity, order_prices
from jaxcd.queries import Door, Session


def pvalue(codes: np.ndarray, n_levels: tuple[int, ...], given: tuple[int, ...]) -> float:
    domain = Domain({f"v{j}": Ordinal(tuple(range(k))) for j, k in enumerate(n_levels)})
    data = Dataset.from_codes(codes.astype(np.int32), domain=domain)
    session = Session(Door(data, NO_PRIVACY), ConditionalTau(), alpha=0.05)
    return math.exp(session.evaluate([Query.of(0, 1, given)]).log_pvalue[0])


def test_the_claimed_sensitivity_is_that_of_the_code():
    # The code's loop over the sizes of a stratum, from 2.
    terms = [
        (abs((9 * i * i + 9 * i) / (4 * i + 14)) - abs(9 * i * i / (4 * i + 10)))
        * (2 / (math.sqrt(2 * math.pi) * (i - 1)))
        for i in range(2, 1000)
    ]
    assert claimed_product_sensitivity(1000) == pytest.approx(max(terms) / math.sqrt(1000))
    assert claimed_product_sensitivity(1000) * math.sqrt(1000) == pytest.approx(0.363, abs=5e-4)


def concordant(codes: np.ndarray) -> int:
    """Concordant less discordant pairs."""
    x, y = (np.sign(column[:, None] - column) for column in codes.T)
    return int((x * y).sum()) // 2


def test_one_record_exceeds_it_without_a_conditioning_set():
    # The others are on a grid, as many concordant pairs too many as there are records; the last
    # one is concordant with all of them, or discordant with all.
    grid = np.array([(x, y) for x in range(1, 15) for y in range(1, 15)])
    n = len(grid) + 1
    others, place = grid.copy(), 0
    while concordant(others) < n - 1:
        if concordant(others[[place]]) == 0 and others[place, 1] < others[place, 0]:
            others[place, 1] += 1
        place += 1
    ends = [np.vstack([others, [[15, y]]]) for y in (15, 0)]
    before, after = (pvalue(codes, (16, 16), ()) for codes in ends)
    assert abs(before - after) > 6 * claimed_product_sensitivity(n)


@pytest.mark.parametrize(("n", "ratio"), [(1000, 41), (100_000, 430)])
def test_the_pair_of_b1_exceeds_it_by_far(n, ratio):
    # k records of stratum 1 have x = y; in stratum 0 x is constant, but for one record of D'.
    k = 4 if n == 1000 else 6
    codes = np.zeros((n, 3))
    codes[:k] = np.column_stack([np.arange(k), np.arange(k), np.ones(k)])
    codes[k:, 1] = np.arange(n - k) % 8
    other = codes.copy()
    other[k, 0] = 1
    jump = abs(pvalue(other, (8, 8, 2), (2,)) - pvalue(codes, (8, 8, 2), (2,)))
    assert jump > 0.95 * ratio * claimed_product_sensitivity(n)


def test_prices_are_within_the_budget_and_never_rise():
    counts, delta = (10, 30, 30, 10), 1e-10
    reach = 0.01 / claimed_product_sensitivity(100_000)
    before = None
    for budget in (0.01, 0.3, 1.0, 20.0):
        prices = order_prices(counts, budget, reach=reach, delta=delta)
        spent = sum(
            c * p**2 + math.sqrt(2 * math.log(1 / delta) * c) * p
            for c, p in zip(counts, prices, strict=True)
        )
        assert (np.diff(prices) <= 1e-12).all() and 0 < spent <= budget * (1 + 1e-9)
        assert before is None or prices[0] > before
        before = prices[0]
    assert (order_prices(counts, 0.0, reach=reach, delta=delta) == 0).all()


def test_a_run_says_what_it_charges_and_follows_its_prices():
    data = networks.load("cancer").sample(20_000, key=jax.random.key(0))
    runs = [published.curate(data, epsilon=e, key=jax.random.key(1)) for e in (0.05, 500.0)]
    for run in runs:
        info = run.info
        assert not run.cost.proven and "product" in run.cost.reason
        assert run.cost.epsilon == pytest.approx(sum(info["order_charges"]))
        assert len(info["order_prices"]) == len(info["order_charges"]) == len(info["levels"])
    again = published.curate(data, epsilon=500.0, key=jax.random.key(1))
    assert again.graph == runs[1].graph and dict(again.info) == dict(runs[1].info)
    # Almost no noise: what PC finds with the same test, but for p-values within beta of T.
    plain = published.priv_pc(data, epsilon=2000.0, alpha=0.05, key=jax.random.key(2))
    assert abs(again.graph.n_edges - plain.graph.n_edges) <= 1


def test_a_constant_column_keeps_its_edges():
    codes = np.random.default_rng(0).integers(0, 2, (500, 3))
    codes[:, 2] = 0
    domain = Domain({name: Ordinal((0, 1)) for name in "abc"})
    data = Dataset.from_codes(codes.astype(np.int32), domain=domain)
    run = published.curate(data, epsilon=5.0, key=jax.random.key(0))
    assert run.graph.adjacent("a", "c") and run.graph.adjacent("b", "c")
