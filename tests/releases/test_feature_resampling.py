"""Fresh feature covariances: the fit against regressions and conditional independence, the draws
against their moments.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.releases.features.canonical_correlation import raised
from jaxcd.releases.features.feature_covariances import Features, ReleasedFeatures
from jaxcd.releases.features.feature_models import fit_features
from tests.helpers import simulated


def released(budget: jaxcd.Budget | jaxcd.NoPrivacy, *, n: int = 2_000) -> ReleasedFeatures:
    """Four columns, of which one is nominal and one has a single level."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 3, n)
    x = label + rng.normal(size=n)
    columns = np.column_stack([label, x, np.cos(x) + 0.5 * rng.normal(size=n), np.zeros(n)])
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Categorical((0, 1, 2)),
            "b": jaxcd.Numeric(),
            "c": jaxcd.Numeric(),
            "d": jaxcd.Categorical((0,)),
        }
    )
    noise = simulated()
    return Features(n_features=3).release(
        jaxcd.Dataset.from_array(columns, domain=domain), budget=budget, noise=noise
    )


def arcs(*pairs: tuple[int, int]) -> np.ndarray:
    adjacency = np.zeros((4, 4), dtype=bool)
    for i, j in pairs:
        adjacency[i, j] = True
    return adjacency


@pytest.mark.parametrize("budget", [jaxcd.NO_PRIVACY, jaxcd.Budget(1.0, 1e-6)], ids=str)
def test_the_fit(budget):
    release = released(budget)
    full = fit_features(release, arcs((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))).covariance
    wanted = raised(release.covariance, release.floor)
    np.testing.assert_allclose(full, wanted, atol=1e-10)  # a complete graph says nothing
    a, b, c, _ = release.blocks
    chain, turned = (
        fit_features(release, arcs(*pairs)).covariance
        for pairs in (((0, 1), (1, 2)), ((2, 1), (1, 0)))
    )
    np.testing.assert_allclose(chain, turned, atol=1e-10)  # equivalent graphs, equal fits
    inverse = np.linalg.inv(chain)
    # a and c independent given b
    np.testing.assert_allclose(inverse[np.ix_(a, c)], 0, atol=1e-6 * np.abs(inverse).max())
    for first, second in ((a, b), (b, c), (a, a), (c, c)):
        np.testing.assert_allclose(
            chain[np.ix_(first, second)], wanted[np.ix_(first, second)], atol=1e-10
        )
    apart = fit_features(release, arcs()).covariance
    assert not apart[np.ix_(a, b)].any() and not apart[np.ix_(b, c)].any()


def test_the_draws_have_the_fit_as_mean_and_the_noise_that_is_stated():
    release = released(jaxcd.Budget(1.0, 1e-6))
    model = fit_features(release, arcs((0, 1), (1, 2)))
    draws = [model.again(key=jax.random.key(i)) for i in range(300)]
    assert all(
        np.array_equal(d.moments, d.moments.T)
        and d.sizes == release.sizes
        and d.sigma == release.sigma
        for d in draws
    )
    # noise alone, sqrt 2 times that off the diagonal
    corner = np.array([d.moments[0, 0] for d in draws])
    assert corner.mean() == pytest.approx(
        release.anchor**2 * release.n_samples, abs=4 * np.sqrt(2 / 300) * release.sigma
    )
    assert corner.std() == pytest.approx(np.sqrt(2) * release.sigma, rel=0.17)
    mean = np.mean([d.moments[1:, 1:] for d in draws], axis=0) / release.n_samples
    expected = model.covariance + np.outer(release.means, release.means)
    # an entry has noise of sigma / n, and sampling of at most 1 / sqrt(n)
    assert np.abs(mean - expected).max() < 5 * np.hypot(
        np.sqrt(2) * release.noise, 1 / np.sqrt(release.n_samples)
    ) / np.sqrt(300)
    assert np.array_equal(model.again(key=jax.random.key(1)).moments, draws[1].moments)
