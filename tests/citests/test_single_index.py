"""The direction of a single-index model: against the truth, symmetries, and data without one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.citests.single_index import _MIDDLES, _WIDTH, _bumps, direction


def alignment(found: np.ndarray, wanted: np.ndarray, z: np.ndarray) -> float:
    return abs(np.corrcoef(z @ found, z @ wanted)[0, 1])


def model(law, n: int = 1500, seed: int = 0, noise: float = 1.0):
    """Z with correlated columns of different spreads, the weights of the index, and y."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 5)) @ np.diag([1, 2, 0.5, 1, 3]) + 0.5 * rng.normal(size=(n, 1))
    weights = np.array([1.0, -0.7, 1.2, 0.5, 0.4])
    return z, weights, law(z @ weights) + noise * rng.normal(size=n)


@pytest.mark.parametrize(
    "law",
    [np.sin, np.cos, np.square, np.exp, np.tanh, np.abs, lambda u: np.sin(1.5 * u) + u / 3],
    ids=["sin", "cos", "square", "exp", "tanh", "abs", "wave"],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_direction_is_found_where_a_line_shows_nothing(law, seed):
    z, weights, y = model(law, seed=seed, noise=0.3)
    found = direction(z, y).weights
    assert alignment(found, weights, z) > 0.995
    assert (z @ found).std() == pytest.approx(1)
    assert found[np.abs(found).argmax()] > 0


def test_least_squares_alone_would_not_find_them():
    """What the search is for: the line of a square or a cosine points anywhere."""
    for law in (np.square, np.cos):
        z, weights, y = model(law, noise=0.3)
        line = np.linalg.lstsq(z - z.mean(axis=0), y, rcond=None)[0]
        assert alignment(line, weights, z) < 0.9


def test_a_line_keeps_its_direction():
    z, weights, y = model(lambda u: u)
    line = np.linalg.lstsq(np.column_stack([np.ones(len(y)), z]), y, rcond=None)[0][1:]
    assert alignment(direction(z, y).weights, line, z) > 0.999


@pytest.mark.parametrize("law", [np.sin, np.square, np.exp])
def test_units_and_columns_that_say_the_same_change_nothing(law):
    z, _, y = model(law)
    found = z @ direction(z, y).weights
    scaled = z * [0.1, 1, 3, 20, 2] + 7.0
    again = scaled @ direction(scaled, 100 * y - 3).weights
    assert abs(np.corrcoef(again, found)[0, 1]) == pytest.approx(1, abs=1e-6)
    twice = np.column_stack([z, z[:, 0], np.full(len(y), 4.0), z[:, 1] - z[:, 2]])
    once_more = twice @ direction(twice, y).weights
    assert abs(np.corrcoef(once_more, found)[0, 1]) == pytest.approx(1, abs=1e-6)


@given(
    st.integers(2, 6),
    st.integers(1, 4),
    st.sampled_from([0.0, 1.0, 1e-300, 1e300, 3.5]),
    st.integers(0, 2**32 - 1),
)
def test_any_table_has_an_answer(n, width, size, seed):
    rng = np.random.default_rng(seed)
    z = rng.integers(-2, 3, (n, width)).astype(float)
    found = direction(z, size * rng.integers(-1, 2, n)).weights
    assert found.shape == (width,)
    assert np.isfinite(found).all()


def test_nothing_comes_of_constants():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(30, 3))
    assert not direction(z, np.full(30, 2.0)).weights.any()
    assert not direction(np.full((30, 3), 2.0), z[:, 0]).weights.any()


def test_rounding_decides_nothing_where_symmetry_leaves_no_direction():
    """Every cell of {-1, 1}^4 equally often: no line, and the Hessian is what the product is."""
    z = np.array(list(product((-1.0, 1.0), repeat=4)))[np.random.default_rng(1).permutation(16)]
    for y in (z[:, 0] * z[:, 1] * z[:, 2], z[:, 0] * z[:, 1] + z[:, 2] * z[:, 3]):
        assert not direction(z, y).weights.any()
    # z1 z2 has the eigenvalues -1 and 1, of equal size: the first of the two, however they round.
    for scale in (1.0, 1 + 1e-15, 3.0):
        found = direction(z, scale * z[:, 0] * z[:, 1]).weights
        assert alignment(found, np.array([1.0, -1.0, 0.0, 0.0]), z) > 1 - 1e-6


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60))
def test_bumps_by_their_common_factor_are_bumps(values):
    index = np.array(values)
    wanted = np.exp(-(((index - _MIDDLES[:, None]) / _WIDTH) ** 2) / 2)
    np.testing.assert_allclose(_bumps(index), wanted, atol=1e-12)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_what_is_left_is_the_noise(noise):
    z, _, y = model(np.sin, n=4000, noise=noise)
    assert direction(z, y).left == pytest.approx(noise**2 / y.var(), rel=0.15)
    assert direction(z, np.full(len(z), 3.0)).left == 1.0
