"""Rare levels: pooling is post-processing, exact without noise, and leaves other releases alone."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from benchmarks.patients import HANDFULS, cpdag, patients
from jaxcd.ops.moments import contrast_basis
from jaxcd.releases.features.canonical_correlation import raised
from jaxcd.releases.features.feature_score import FeatureScore
from jaxcd.releases.features.rare_levels import (
    level_shares,
    rare_levels,
    remaining_directions,
    without_levels,
)
from tests.helpers import simulated

BUDGET = jaxcd.Budget(1.0, 1e-6)


def bought(data: jaxcd.Dataset, budget: object = jaxcd.NO_PRIVACY, seed: int = 0):
    return jaxcd.release(data, jaxcd.Features(), budget=budget, noise=simulated(seed))


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 9), st.data())
def test_what_remains_tells_the_others_apart_and_is_zero_on_the_rare(k: int, data) -> None:
    rare = tuple(sorted(data.draw(st.sets(st.integers(0, k - 1), min_size=1, max_size=k - 2))))
    features = contrast_basis(k) @ remaining_directions(k, rare)
    others = [level for level in range(k) if level not in rare]
    assert features.shape == (k, k - 1 - len(rare))
    np.testing.assert_allclose(features[list(rare)], 0, atol=1e-12)
    # Orthonormal on the others: their own contrasts, so that any two are told apart.
    np.testing.assert_allclose(features.T @ features, np.eye(features.shape[1]), atol=1e-12)
    np.testing.assert_allclose(features[others].sum(axis=0), 0, atol=1e-12)
    assert np.linalg.matrix_rank(features[others]) == len(others) - 1


def test_without_noise_it_is_the_release_of_pooled_features() -> None:
    """The moments of rows whose rare levels are one level, computed from the rows."""
    data = patients(4000, seed=1, mixed=False).select(["region", "stage", "death"])
    release = bought(data)
    rare = {0: (8, 9, 10, 11)}
    pooled = without_levels(release, rare)
    features = []
    for column in range(3):
        k = data.domain[data.names[column]].cardinality
        levels = contrast_basis(k) / np.sqrt(1 - 1 / k)
        if column in rare:
            levels = levels @ remaining_directions(k, rare[column])
        features.append(levels[data.codes[:, column]])
    expected = np.cov(np.hstack(features).T, bias=True)
    np.testing.assert_allclose(pooled.covariance, expected, atol=1e-4)
    codes = data.codes.copy()
    codes[np.isin(codes[:, 0], rare[0]), 0] = 8  # one of them, whichever, holds them all
    merged = without_levels(bought(jaxcd.Dataset.from_codes(codes, domain=data.domain)), rare)
    np.testing.assert_allclose(merged.moments, pooled.moments, atol=1e-9)


def test_shares_are_those_of_the_rows() -> None:
    data = patients(4000, seed=2, mixed=False).select(["region", "stage"])
    counts = np.bincount(data.codes[:, 0], minlength=12) / 4000
    np.testing.assert_allclose(level_shares(bought(data), 0), counts, atol=1e-4)


def test_the_noise_of_what_remains_is_as_stated() -> None:
    release = bought(patients(4000, seed=3, mixed=False).select(["region", "death"]), BUDGET)
    rng, size, entries = np.random.default_rng(0), len(release.moments), []
    for _ in range(400):
        noise = np.triu(rng.normal(size=(size, size)), 1)
        noise += noise.T + np.diag(np.sqrt(2) * rng.normal(size=size))
        with_noise = dataclasses.replace(release, moments=release.sigma * noise)
        entries.append(without_levels(with_noise, {0: (8, 9)}).moments)
    spread = np.std(entries, axis=0) / release.sigma
    off = ~np.eye(len(spread), dtype=bool)
    np.testing.assert_allclose(spread[off], 1, atol=0.2)
    np.testing.assert_allclose(spread[~off], np.sqrt(2), atol=0.25)


def test_nothing_changes_where_no_level_is_rare() -> None:
    data = patients(30_000, seed=4, handfuls=())
    release = bought(data, BUDGET)
    score = FeatureScore(release)
    assert rare_levels(release, effective_samples=score.effective_samples) == {}
    assert without_levels(release, {}) is release
    run = jaxcd.search(release)
    assert "pooled_levels" not in run.info and "warnings" not in run.info


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_no_column_is_emptied(epsilon: float) -> None:
    release = bought(patients(2000, seed=5), jaxcd.Budget(epsilon, 1e-6))
    rare = rare_levels(release, effective_samples=FeatureScore(release).effective_samples)
    pooled = without_levels(release, rare)
    for column, size in enumerate(release.sizes):
        assert pooled.sizes[column] >= 1 and pooled.sizes[column] == size - len(
            rare.get(column, ())
        )
        if size < 2:  # a column of two levels keeps both
            assert column not in rare


def test_it_is_a_function_of_released_numbers(tmp_path) -> None:
    release = bought(patients(10_000, seed=6), BUDGET)
    path = release.save(tmp_path / "release.npz")
    first, again = jaxcd.search(release), jaxcd.search(jaxcd.Release.load(path))
    assert first.info["pooled_levels"] == again.info["pooled_levels"]
    assert first.graph == again.graph and first.spent == release.spent


@pytest.mark.slow
def test_regions_of_a_handful_of_people_are_joined_to_nothing() -> None:
    """20 runs of the table of patients; the true edges stay, and the result names the levels."""
    truth, n_true = cpdag(), 0
    rare = [str(level) for level in range(8, 8 + len(HANDFULS))]
    for seed in range(20):
        run = jaxcd.discover(
            patients(30_000, seed=seed),
            budget=BUDGET,
            key=None,
            noise=jaxcd.SimulatedNoise(jax.random.key(1000 + seed)),
        )
        graph = run.graph.reordered(truth.names)
        assert not graph.adjacency[truth.index("region")].any()
        n_true += int((graph.adjacency & truth.adjacency).sum()) // 2
        assert list(run.info["pooled_levels"]["region"]) == rare
        assert any("region: 8, 9, 10, 11" in words for words in run.info["warnings"])
    assert n_true >= 0.95 * 20 * truth.n_edges


def beside(rng: np.random.Generator, n: int, *, share: float, strength: float) -> jaxcd.Dataset:
    """Independent columns, and a binary one with about this share, on which the first acts."""
    numbers = rng.normal(size=(n, 4))
    place = strength * numbers[:, 0] + rng.logistic(size=n)
    codes = np.column_stack([rng.integers(0, 2, n), place > np.quantile(place, 1 - share)])
    domain = {f"x{j}": jaxcd.Numeric(-5, 5) for j in range(4)}
    domain |= {name: jaxcd.Categorical((0, 1)) for name in ("even", "rare")}
    return jaxcd.Dataset.from_array(np.hstack([numbers, codes]), domain=jaxcd.Domain(domain))


@pytest.mark.parametrize("share", [0.0, 0.005, 0.02, 0.05])
def test_noise_makes_no_edges_of_a_binary_column_that_hardly_varies(share: float) -> None:
    """Without variances that are raised there are 4 to 8 false edges in each run."""
    n_edges = 0
    for seed in range(6):
        data = beside(np.random.default_rng(seed), 10_000, share=share, strength=0.0)
        n_edges += jaxcd.search(bought(data, BUDGET, seed)).graph.n_edges
    assert n_edges <= 1


def test_a_cause_of_a_binary_column_is_found_where_rows_suffice() -> None:
    for share, n in ((0.2, 10_000), (0.05, 20_000), (0.02, 50_000)):
        data = beside(np.random.default_rng(0), n, share=share, strength=1.5)
        graph = jaxcd.search(bought(data, BUDGET)).graph
        assert graph.adjacent("x0", "rare") and graph.n_edges == 1


def test_variances_are_raised_until_noise_makes_no_edge() -> None:
    """The condition of the module's docstring, for every pair; without noise nothing changes."""
    data = beside(np.random.default_rng(1), 5_000, share=0.02, strength=0.0)
    without = FeatureScore(bought(data))
    blocks = without._release.blocks
    assert np.array_equal(without._covariance, without._widened())
    score = FeatureScore(bought(data, BUDGET))
    release, n = score._release, score.effective_samples
    own = [score._covariance[np.ix_(block, block)] for block in blocks]
    least = [float(np.linalg.eigvalsh(block)[0]) for block in own]
    mean = [float(np.trace(block)) / len(block) for block in own]
    for i, j in itertools.combinations(range(len(blocks)), 2):
        size = len(release.blocks[i]) * len(release.blocks[j])
        means = [np.sum(release.means[release.blocks[k]] ** 2) for k in (i, j)]
        nats = n / 2 * release.noise**2 * (1 + sum(means) / release.anchor**2) * size
        price = np.log(n) / 2 * size + n / 2 * 0.1**2
        asked = nats * (1 + 3 * np.sqrt(2 / size)) / price
        assert max(least[i] * mean[j], least[j] * mean[i]) >= asked * (1 - 1e-9)
    assert not np.array_equal(score._covariance, raised(release.covariance, release.floor))


@pytest.mark.parametrize(("deviations", "rare"), [(2.9, True), (3.1, False)])
def test_a_level_is_rare_below_three_deviations_of_its_noise(deviations, rare) -> None:
    """Of "missing" in a numeric column, whose feature is 1, and of a level of four."""
    share, n = 0.02, 20_000
    codes, gone = np.repeat([0, 1, 2], 6_600), round(share * n)
    frame = pd.DataFrame(
        {
            "dose": np.r_[np.full(gone, np.nan), np.linspace(-1, 1, n - gone)],
            "kind": np.r_[codes[: n - gone], np.full(n - len(codes[: n - gone]), 3)],
        }
    )
    domain = jaxcd.Domain(
        {"dose": jaxcd.Numeric(missing=True), "kind": jaxcd.Categorical((0, 1, 2, 3))}
    )
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    quiet = jaxcd.release(data, jaxcd.Features(n_features=2), budget=jaxcd.NO_PRIVACY)
    for column, level, factor in ((0, 0, 1.0), (1, 3, 1 - 1 / 4)):
        held = float((frame["kind"] == 3).mean()) if column else share
        sigma = n * held * quiet.anchor / (deviations * factor)
        found = rare_levels(dataclasses.replace(quiet, sigma=sigma), effective_samples=3.0)
        assert (found.get(column) == (level,)) == rare
