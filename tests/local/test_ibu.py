"""Iterative Bayesian update: against scipy's maximum, inverse channels and brute force."""

from __future__ import annotations

import functools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from jaxcd.data import Categorical, Dataset
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.local import (
    BoundedGeometric,
    CombinedGeometric,
    CombinedKaryResponse,
    Distance,
    KaryResponse,
    channels,
    joint_channel,
    randomise,
)
from jaxcd.local.ibu import channel_of, denoised_joint, ibu, resample
from tests.helpers import SEEDS, levelled, refused, simulated


def random_channel(rng: np.random.Generator, k: int) -> np.ndarray:
    return 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.ones(k), size=k)


def log_likelihood(counts: np.ndarray, p: np.ndarray, joint: np.ndarray) -> float:
    return float(special.xlogy(counts.ravel(), p.ravel() @ joint).sum())


domain = functools.partial(levelled, name="c", kind=Categorical)


def case(
    seed: int, shape: tuple[int, ...] = (2, 3), n: int = 200
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    matrices = [random_channel(rng, k) for k in shape]
    joint = np.ones((1, 1))
    for matrix in matrices:
        joint = np.kron(joint, matrix)
    counts = rng.multinomial(n, rng.dirichlet(np.full(math.prod(shape), 0.3)) @ joint).reshape(
        shape
    )
    return counts, matrices, joint


@pytest.mark.parametrize(
    ("function", "change", "error"),
    [
        *((ibu, {"counts": wrong}, DataError) for wrong in ("x", {}, [10**400])),
        *((ibu, {"start": wrong}, DataError) for wrong in ("x", {}, 10**400)),
        *((ibu, {"channels": wrong}, OptionError) for wrong in (None, 3, "x", ["x", "y"])),
        *((denoised_joint, {"columns": wrong}, DomainError) for wrong in ([], (), 3.5, "c0")),
        *((denoised_joint, {"data": wrong}, OptionError) for wrong in ("x", None)),
        *((resample, {"estimate": wrong}, DataError) for wrong in ("x", {}, [10**400])),
        (resample, {"domain": "x"}, DomainError),
        (resample, {"domain": 3}, DomainError),
    ],
)
def test_what_is_no_table_is_named(function, change, error):
    two, cells = domain(2, 2), np.full((2, 2), 0.25)
    arguments = {
        ibu: {"counts": cells, "channels": [np.eye(2)] * 2},
        denoised_joint: {
            "data": Dataset.from_codes([[0, 1]] * 5, domain=two),
            "mechanism": KaryResponse(1.0),
        },
        resample: {"estimate": cells, "domain": two, "n_samples": 3, "key": jax.random.key(0)},
    }[function]
    with pytest.raises(error, match=next(iter(change))):
        function(**{**arguments, **change})


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([(2,), (3, 2), (2, 2, 3)]))
def test_the_likelihood_never_falls_and_columns_are_the_joint_channel(seed, shape):
    counts, matrices, joint = case(seed, shape)
    before, estimate = -math.inf, None
    for _ in range(15):
        estimate = ibu(counts, matrices, n_iterations=1, tolerance=0.0, start=estimate)
        now = log_likelihood(counts, estimate, joint)
        assert now >= before - 1e-9
        before = now
    np.testing.assert_allclose(
        ibu(counts, matrices, n_iterations=15, tolerance=0.0), estimate, atol=1e-12
    )
    np.testing.assert_allclose(
        ibu(counts, joint, n_iterations=15, tolerance=0.0), estimate, atol=1e-12
    )
    assert estimate.min() >= 0 and estimate.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_it_ends_at_the_maximum(seed):
    """scipy maximises over the logits; many of these maxima are on the border."""
    counts, matrices, joint = case(seed, n=60)

    def loss(logits: np.ndarray) -> float:
        return -log_likelihood(counts, special.softmax(logits), joint)

    reached = min(
        (
            optimize.minimize(loss, np.random.default_rng(k).normal(size=6), tol=1e-12)
            for k in range(3)
        ),
        key=lambda run: run.fun,
    )
    estimate = ibu(counts, matrices, n_iterations=100_000, tolerance=1e-13)
    assert log_likelihood(counts, estimate, joint) >= -reached.fun - 1e-6
    # First-order conditions: no cell could gain, and those in use gain alike.
    gain = joint @ (counts.ravel() / (estimate.ravel() @ joint)) / counts.sum()
    assert gain.max() < 1 + 1e-3
    np.testing.assert_allclose(gain[estimate.ravel() > 1e-3], 1, atol=1e-3)
    np.testing.assert_allclose(
        ibu(counts, matrices, n_iterations=1, start=estimate), estimate, atol=1e-9
    )


def test_where_the_inverse_channel_gives_a_distribution_it_is_the_estimate():
    rng = np.random.default_rng(0)
    _, matrices, joint = case(0)
    p = rng.dirichlet(np.full(6, 5.0))
    counts = (1000 * p @ joint).reshape(2, 3)
    np.testing.assert_allclose(
        ibu(counts, matrices, tolerance=1e-14, n_iterations=100_000).ravel(), p, atol=1e-9
    )
    below = counts.copy()
    below[0, 0] = 0
    assert (np.linalg.solve(joint.T, below.ravel()) < 0).any()
    assert ibu(below, matrices).min() >= 0


def test_without_noise_it_is_the_table_and_without_records_the_start():
    counts = np.array([[3, 0], [1, 4]])
    np.testing.assert_allclose(ibu(counts, [np.eye(2)] * 2), counts / 8)
    np.testing.assert_allclose(ibu(0 * counts, [np.eye(2)] * 2), 0.25)


MECHANISMS = [
    KaryResponse(6.0),
    BoundedGeometric(0.8),
    CombinedKaryResponse(3.0),
    CombinedGeometric(0.4, distance=Distance.MANHATTAN),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_channels_of_columns_are_those_of_the_record(mechanism):
    """The joint channel with the other columns summed away, which for these mechanisms does not
    depend on their truth.
    """
    declared = domain(2, 3, 2)
    joint = joint_channel(mechanism, declared).reshape((2, 3, 2) * 2)
    whole = channel_of(mechanism, declared, [2, 0, 1])
    if not mechanism.is_combined:
        whole = np.kron(np.kron(whole[0], whole[1]), whole[2])
    np.testing.assert_allclose(whole, joint.transpose(2, 0, 1, 5, 3, 4).reshape(12, 12), atol=1e-12)
    if isinstance(mechanism, CombinedGeometric):
        refused(DomainError, "CombinedGeometric", channel_of, mechanism, declared, [2, 0])
        return
    part = channel_of(mechanism, declared, [2, 0])
    if not mechanism.is_combined:
        part = np.kron(part[0], part[1])
    for truth in range(3):
        expected = joint.sum(axis=4)[:, truth].transpose(1, 0, 3, 2).reshape(4, 4)
        np.testing.assert_allclose(part, expected, atol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_the_joint_comes_back(mechanism):
    declared, p = domain(2, 3), np.array([[0.55, 0.05, 0.05], [0.0, 0.3, 0.05]])
    data = resample(p, domain=declared, n_samples=100_000, key=jax.random.key(0))
    noisy = randomise(data, mechanism, noise=simulated(1))
    estimate = denoised_joint(noisy, mechanism)
    raw = (
        np.bincount(noisy.codes[:, 0] * 3 + noisy.codes[:, 1], minlength=6).reshape(2, 3) / 100_000
    )
    assert np.abs(estimate - p).sum() / 2 < 0.03 < np.abs(raw - p).sum() / 2
    if not isinstance(mechanism, CombinedGeometric):
        margin = denoised_joint(noisy, mechanism, columns=["c1"])
        assert np.abs(margin - p.sum(axis=0)).sum() / 2 < 0.03
    swapped = denoised_joint(noisy, mechanism, columns=["c1", "c0"])
    np.testing.assert_allclose(swapped.T, estimate, atol=1e-4)


def test_resampled_rows_follow_the_estimate():
    p = np.array([[0.5, 0.0, 0.125], [0.125, 0.25, 0.0]])
    data = resample(p, domain=domain(2, 3), n_samples=40_000, key=jax.random.key(5))
    counts = np.bincount(data.codes[:, 0] * 3 + data.codes[:, 1], minlength=6).reshape(2, 3)
    assert (counts[p == 0] == 0).all()
    np.testing.assert_allclose(counts / 40_000, p, atol=0.02)
    again = resample(p, domain=domain(2, 3), n_samples=40_000, key=jax.random.key(5))
    np.testing.assert_array_equal(data.codes, again.codes)
    first = data.codes[:4000, 0].mean()  # rows are in no order
    assert abs(first - 0.375) < 0.05


def test_refusals():
    counts, matrices = np.ones((2, 2)), [np.eye(2)] * 2
    for wrong in (-counts, counts * math.nan, counts * 1e308):
        refused(DataError, "counts", ibu, wrong, matrices)
    for wrong in (
        [np.eye(2)],
        np.eye(3),
        [np.eye(2), np.ones((2, 2))],
        [np.eye(2), math.nan * np.eye(2)],
    ):
        refused(OptionError, "channels", ibu, counts, wrong)
    for options in ({"n_iterations": 0}, {"tolerance": -1.0}, {"tolerance": math.nan}):
        refused(OptionError, next(iter(options)), ibu, counts, matrices, **options)
    refused(DataError, "start", ibu, counts, matrices, start=counts)
    data = Dataset.from_codes(np.zeros((4, 30), dtype=np.int32), domain=domain(*[3] * 30))
    mechanism = KaryResponse(1.0)
    refused(DomainError, "cells", denoised_joint, data, mechanism)
    for columns in (["nobody"], ["c0", "c0"], "c0"):
        pytest.raises(DomainError, denoised_joint, data, mechanism, columns=columns)
    refused(OptionError, "mechanism", denoised_joint, data, "k-rr")
    assert len(channels(mechanism, data.domain)) == 30
    good = np.full((2, 2), 0.25)
    with pytest.raises(DataError, match="estimate"):
        resample(counts, domain=domain(2, 2), n_samples=5, key=jax.random.key(0))
    with pytest.raises(OptionError, match="n_samples"):
        resample(good, domain=domain(2, 2), n_samples=0, key=jax.random.key(0))
    refused(OptionError, "key", resample, good, domain=domain(2, 2), n_samples=5, key=0)


def test_reports_that_are_all_impossible_are_refused():
    """Nothing is left to divide by: the estimate was NaN."""
    words = "none of these reports is possible"
    refused(DataError, words, ibu, [5, 0], [np.eye(2)], start=[0.0, 1.0])
    refused(DataError, words, ibu, [0, 5], [np.array([[1.0, 0.0], [1.0, 0.0]])])
