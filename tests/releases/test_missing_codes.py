"""The exact likelihood of a noisy histogram in which missing cells are left out."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

import jaxcd
from benchmarks.missing import with_holes
from jaxcd.ops.available_cases import completed
from jaxcd.releases.tables.expectation_maximisation import NoisyTable
from jaxcd.releases.tables.missing_codes import MissingCodes
from jaxcd.releases.tables.noisy_counts import noisy_count

CHAIN = np.array([[False, True, False], [False, False, True], [False] * 3])
WHOLE = np.triu(np.ones((3, 3), dtype=bool), 1)


def _holes(n: int, can_miss: tuple[bool, ...], seed: int = 0) -> np.ndarray:
    """The table of a chain of three columns of 2, 3 and 2 levels, some with missing cells."""
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(3, size=n))
    c = np.where(rng.random(n) < 0.6, b % 2, rng.integers(2, size=n))
    codes = np.column_stack([a, b, c])
    levels = np.array([2, 3, 2])
    for column, may in enumerate(can_miss):
        if may:
            codes[rng.random(n) < 0.3, column] = levels[column]
    table = np.zeros(levels + np.array(can_miss))
    np.add.at(table, tuple(codes.T), 1)
    return table


@pytest.mark.parametrize(
    "can_miss", [(True, True, True), (False, True, False), (True, False, True)]
)
def test_what_is_seen_and_what_is_spread_are_sums_over_cells(can_miss) -> None:
    table = _holes(5_000, can_miss)
    codes = MissingCodes(
        table, can_miss, n_samples=5_000, expected=lambda mu: noisy_count(table.ravel(), mu, 0.0)
    )
    rng = np.random.default_rng(1)
    means, counts = rng.random((2, 12)) * 50, rng.random((2, table.size)) * 9
    seen = codes.seen(means)
    back = np.zeros((2, *codes.complete))
    shares = {}
    for place in itertools.product(*map(range, table.shape)):
        gone = tuple(k == size for k, size in zip(place, codes.complete, strict=True))
        agrees = tuple(slice(None) if g else k for g, k in zip(gone, place, strict=True))
        inside = means.reshape(2, *codes.complete)[(slice(None), *agrees)].reshape(2, -1).sum(1)
        here = np.ravel_multi_index(place, table.shape)
        shares.setdefault(gone, []).append(seen[:, here] / inside)
        target = (slice(None), *agrees)
        scale = (counts[:, here] / inside).reshape([2] + [1] * (back[target].ndim - 1))
        back[target] += scale * means.reshape(back.shape)[target]
    for gone, found in shares.items():  # one share for all cells of a pattern: that of its rows
        rows = table[
            tuple(
                slice(-1, None) if g else slice(0, k)
                for g, k in zip(gone, codes.complete, strict=True)
            )
        ].sum()
        assert np.allclose(found, rows / 5_000)
    assert np.allclose(codes.spread(means, seen, counts), back.reshape(2, -1))
    assert np.allclose(codes.spread(means, seen, counts).sum(axis=1), counts.sum(axis=1))


def test_without_noise_it_is_the_likeliest_complete_table() -> None:
    """Missing at random: the share of missing cells depends on a column that is seen."""
    rng = np.random.default_rng(0)
    table = _holes(20_000, (False, True, True))
    table[1, 3] += rng.integers(500, size=3)
    fits = NoisyTable(
        table, n_samples=int(table.sum()), scale=0.0, leaves_out=(False, True, True)
    ).fit(WHOLE[None], tolerance=1e-9)
    expected = completed(table, (False, True, True))
    assert np.allclose(fits.means[0].reshape(expected.shape), expected, rtol=1e-3, atol=0.1)
    assert fits.means[0].sum() == pytest.approx(table.sum())


@pytest.mark.parametrize("scale", [0.0, 2.0, 20.0])
def test_the_likelihood_never_falls_and_is_that_of_the_cells_that_are_seen(scale) -> None:
    n, missing = 3_000, (True, True, False)
    rng = np.random.default_rng(2)
    noise = np.rint(rng.laplace(scale=scale, size=(3, 4, 2))) if scale else 0.0
    noisy = NoisyTable(_holes(n, missing) + noise, n_samples=n, scale=scale, leaves_out=missing)
    steps = noisy.trace(CHAIN, n_steps=30)
    assert (np.diff(steps) > -1e-8 * np.abs(steps[1:])).all()
    found = noisy.fit(CHAIN[None])
    assert found.log_likelihood[0] >= steps[-1] - 1e-3
    by_hand = noisy_count((_holes(n, missing) + noise).ravel(), noisy.seen(found.means), scale)[0]
    assert found.log_likelihood[0] == pytest.approx(by_hand.sum())


@pytest.mark.parametrize("scale", [0.0, 0.005])
def test_a_table_of_nothing_is_filled_with_numbers(scale) -> None:
    """Few people with many rows each have less than half a person in every cell."""
    table = np.zeros((3, 4, 2))
    codes = MissingCodes(
        table,
        (True, True, False),
        n_samples=10,
        expected=lambda mu: noisy_count(table.ravel(), mu, scale),
    )
    assert np.isfinite(codes.start).all() and np.isfinite(codes.filled(table)).all()
    assert codes.start.sum() == pytest.approx(10)


def test_a_histogram_with_codes_of_missing_cells_is_chosen_and_searched() -> None:
    """Three more codes for each column, but few levels: as many arcs as without missing cells."""
    network, budget = jaxcd.networks.load("cancer"), jaxcd.Budget(1.0, 1e-6)
    data = with_holes(network.sample(100_000, key=jax.random.key(1)), 0.2, 0)
    kind = jaxcd.recommend(data.domain, 100_000, budget=budget).kind
    assert kind == jaxcd.Histogram()
    found = {}
    for name, rows in (
        ("holes", data),
        ("complete", network.sample(64_000, key=jax.random.key(1))),
    ):
        noise = jaxcd.SimulatedNoise(jax.random.key(0))
        bought = jaxcd.release(rows, kind, budget=budget, noise=noise)
        found[name] = jaxcd.metrics.arc_f1(jaxcd.search(bought).graph, network.cpdag())
    assert found["holes"] >= found["complete"] - 0.05

    asia = with_holes(jaxcd.networks.load("asia").sample(10, key=jax.random.key(0)), 0.0, 0)
    advice = jaxcd.recommend(asia.domain, 10_000, budget=jaxcd.Budget(1.0))
    assert advice.kind == jaxcd.Histogram()
    assert "256 cells together, at most 4,096, and 6,561 with those of missing" in advice.reasons[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_few_rows_in_many_cells_are_searched(seed: int) -> None:
    """The means of most cells fall to nothing."""
    rng = np.random.default_rng(1)
    last, columns = rng.integers(0, 2, 1_000), []
    for _ in range(8):
        last = np.where(rng.random(1_000) < 0.8, last, rng.integers(0, 2, 1_000))
        columns.append(np.where(rng.random(1_000) < 0.2, 2, last))  # 2: missing
    domain = jaxcd.Domain({f"v{j}": jaxcd.Ordinal((0, 1), missing=True) for j in range(8)})
    data = jaxcd.Dataset.from_codes(np.column_stack(columns), domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(seed))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(3.0), noise=noise)
    assert jaxcd.search(bought).graph.n_edges > 0
