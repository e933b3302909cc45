"""Features, HSIC, Gram factors and ridge regression against their definitions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxcd.errors import OptionError
from jaxcd.ops import double_precision, features, gram, hsic, ridge
from jaxcd.ops.threads import one_blas_thread


@settings(max_examples=60)
@given(st.floats(0.1, 50), st.floats(0.05, 5), st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_the_series_is_within_its_tolerance(length, bandwidth, tolerance):
    kernel = features.fourier_kernel(length=length, bandwidth=bandwidth, tolerance=tolerance)
    d = np.linspace(-length, length, 801)
    assert np.abs(kernel(d) - np.exp(-(d**2) / (2 * bandwidth**2))).max() <= tolerance
    assert min(kernel.weights) >= 0 and sum(kernel.weights) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("length, bandwidth", [(8.0, 1.0), (2.0, 0.1), (1.0, 5.0)])
def test_features_have_norm_one_and_the_kernel_for_their_product(length, bandwidth):
    kernel = features.fourier_kernel(length=length, bandwidth=bandwidth)
    d = np.linspace(-length / 2, length / 2, 60)
    with double_precision():
        phi = np.asarray(features.fourier_features(jnp.asarray(d), kernel))
    assert phi.shape == (60, kernel.n_features)
    np.testing.assert_allclose((phi**2).sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(phi @ phi.T, kernel(np.subtract.outer(d, d)), atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"length": 0}, {"bandwidth": float("nan")}, {"tolerance": 0.5}], ids=str
)
def test_kernels_out_of_range_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        features.fourier_kernel(**{"length": 1.0, "bandwidth": 1.0, **options})


@pytest.mark.parametrize("kind, error", [("float64", 1e-6), ("float32", 1e-4)])
def test_hsic_equals_the_dense_statistic_at_every_shift(kind, error):
    rng = np.random.default_rng(0)
    n = 700
    x = np.clip(rng.normal(size=n), -5, 5)
    y = np.clip(np.sin(x) + 0.5 * rng.normal(size=n), -5, 5)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0, tolerance=1e-10)

    def dense(a: np.ndarray, b: np.ndarray) -> float:
        grams = [np.exp(-(np.subtract.outer(c, c) ** 2) / 2) for c in (a, b)]
        h = np.eye(n) - 1 / n
        return float(np.trace(grams[0] @ h @ grams[1] @ h)) / n**2

    with double_precision():
        phi, psi = (hsic.centred_features(jnp.asarray(c, kind), kernel) for c in (x, y))
        assert phi.dtype == kind
        found = float(hsic.hsic(phi, psi))
        shifted = np.asarray(hsic.hsic_shifted(phi, psi, first=-4, count=11))
        for_reference = float(
            hsic.hsic_dense(*(jnp.exp(-((jnp.subtract.outer(c, c)) ** 2) / 2) for c in (x, y)))
        )
    assert for_reference == pytest.approx(dense(x, y), rel=1e-10)
    assert found == pytest.approx(dense(x, y), rel=error)
    for shift, value in zip(range(-4, 7), shifted, strict=True):
        assert value == pytest.approx(dense(x, np.roll(y, -shift)), rel=20 * error)


@pytest.mark.parametrize(
    "n, first, count", [(5, -7, 40), (1, 0, 3), (4099, -100, 101), (2048, -3, 8), (30, -30, 31)]
)
def test_every_shift_is_a_roll_whatever_the_blocks(n, first, count):
    rng = np.random.default_rng(n)
    phi, psi = rng.normal(size=(3, n)), rng.normal(size=(4, n))
    with double_precision():
        found = np.asarray(
            hsic.hsic_shifted(jnp.asarray(phi), jnp.asarray(psi), first=first, count=count)
        )
    wanted = [
        np.sum((phi @ np.roll(psi, -s, axis=1).T / n) ** 2) for s in range(first, first + count)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    observed, others = hsic.split_observed(found, first)
    assert observed == pytest.approx(np.sum((phi @ psi.T / n) ** 2)) and len(others) == count - 1


def test_the_place_of_the_observed_statistic_is_drawn_uniformly():
    """With the first shift fixed at 0 or -k neighbouring shifts would not be an exact null: the
    place must be any of the k + 1.
    """
    places = np.array([-hsic.draw_first_shift(jax.random.key(i), 4) for i in range(500)])
    counts = np.bincount(places, minlength=5)
    assert len(counts) == 5 and stats.chisquare(counts).pvalue > 1e-4


COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "flat": lambda rng, n: rng.uniform(-5, 5, n),
    "two values": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "constant": lambda rng, n: np.zeros(n),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_leading_features_keep_the_statistic_and_every_shift_of_it(name):
    rng = np.random.default_rng(3)
    n = 1500
    x, y = np.clip(COLUMNS[name](rng, n), -5, 5), rng.normal(size=n)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    shifts = []
    for kind, tolerance in (("float64", 0.0), ("float32", 1e-5)):
        with double_precision():
            phi, psi = (
                hsic.centred_features(jnp.asarray(np.clip(c, -5, 5), kind), kernel) for c in (x, y)
            )
            short = [hsic.leading_features(part, tolerance=tolerance) for part in (phi, psi)]
            shifts.append(np.asarray(hsic.hsic_shifted(*short, first=-5, count=50)))
    assert short[1].shape == (16, n) and short[0].shape[0] in (16, phi.shape[0])
    np.testing.assert_allclose(shifts[1], shifts[0], rtol=1e-4, atol=1e-12)


def test_leading_features_give_all_back_where_16_do_not_hold_enough():
    values = np.random.default_rng(0).uniform(-5, 5, 3000)
    kernel = features.fourier_kernel(length=10.0, bandwidth=0.2)
    with double_precision():
        phi = hsic.centred_features(jnp.asarray(values), kernel)
        assert hsic.leading_features(phi, tolerance=1e-5) is phi
        assert hsic.leading_features(phi, tolerance=1.0).shape == (16, 3000)
        few = phi[:7]
        assert hsic.leading_features(few, tolerance=1e-5) is few


def test_one_blas_thread_gives_the_setting_back():
    def threads():
        return [
            part["num_threads"]
            for part in threadpoolctl.threadpool_info()
            if part["user_api"] == "blas"
        ]

    before = threads()
    with pytest.raises(KeyError), one_blas_thread():
        assert set(threads()) == {1}
        raise KeyError
    assert threads() == before


@pytest.mark.parametrize("n, d, rank", [(40, 1, 3), (40, 3, 3), (40, 3, 39), (7, 2, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_the_certified_error_of_the_factor_holds(n, d, rank, seed):
    x = np.random.default_rng(seed).normal(size=(n, d)).round(1)
    with double_precision():
        low = gram.nystroem(jnp.asarray(x), 1.0, rank=rank)
        rest = np.asarray(
            gram.gaussian_gram(jnp.asarray(x), jnp.asarray(x), 1.0) - low.factor @ low.factor.T
        )
    assert np.abs(rest).max() <= float(low.error) + 1e-9
    assert np.trace(rest) == pytest.approx(float(low.trace), abs=1e-6)
    assert np.linalg.eigvalsh(rest).min() >= -1e-8


def test_random_features_have_norm_one_whatever_the_data():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(30, 3)) * 100, jnp.float32)
    factor = np.asarray(
        gram.random_fourier_features(x, 0.7, n_features=40, key=jax.random.key(0)).factor
    )
    np.testing.assert_allclose((factor**2).sum(axis=1), 1, rtol=1e-5)


@pytest.fixture
def regression():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(40, 2))
    y = np.column_stack([np.sin(z[:, 0]), z[:, 1] ** 2]) + 0.1 * rng.normal(size=(40, 2))
    kernel = np.exp(-((z[:, None] - z[None]) ** 2).sum(axis=2) / 2)
    with double_precision():
        decomposition = ridge.spectrum(gram.nystroem(jnp.asarray(z), 1.0, rank=40).factor)
        yield kernel, y, decomposition


def test_residuals_agree_between_the_backends(regression):
    kernel, y, decomposition = regression
    for mu in (0.01, 1.0, 20.0):
        wanted = y - kernel @ np.linalg.solve(kernel + mu * np.eye(40), y)
        np.testing.assert_allclose(
            ridge.residuals(decomposition, jnp.asarray(y), mu), wanted, atol=1e-7
        )
        np.testing.assert_allclose(
            ridge.exact_residuals(jnp.asarray(kernel), jnp.asarray(y), mu), wanted, atol=1e-10
        )
    assert ridge.penalty_of_objective(1.0, 40) == 20.0


def test_the_norm_constraint_holds_and_is_reached(regression):
    kernel, y, decomposition = regression
    for bound in (0.2, 0.5, 100.0):
        rest = np.asarray(ridge.constrained_residuals(decomposition, jnp.asarray(y), 0.1, bound))
        alpha = np.linalg.lstsq(kernel, y - rest, rcond=1e-12)[0]
        norms = np.sqrt(np.einsum("it,ij,jt->t", alpha, kernel, alpha))
        free = np.linalg.solve(kernel + 0.1 * np.eye(40), y)
        unconstrained = np.sqrt(np.einsum("it,ij,jt->t", free, kernel, free))
        np.testing.assert_allclose(norms, np.minimum(unconstrained, bound), rtol=1e-3)


@pytest.mark.parametrize(("n", "count"), [(5, 21), (7, 7), (4, 101), (9, 10)])
def test_fewer_rows_than_shifts_are_put_into_other_orders(n: int, count: int) -> None:
    """Each statistic is that of the rows in an order, shifted; that of the rows as they are is
    where it is looked for.
    """
    rng = np.random.default_rng(n)
    phi, psi = rng.normal(size=(3, n)), rng.normal(size=(2, n))
    for seed in range(6):
        key = jax.random.key(seed)
        first = hsic.draw_first_shift(key, count - 1)
        orders = hsic.draw_orders(key, n, first=first, count=count)
        assert (orders is None) == (count <= n)
        with double_precision():
            found = np.asarray(
                hsic.hsic_shifted(
                    jnp.asarray(phi), jnp.asarray(psi), first=first, count=count, orders=orders
                )
            )
        known = np.arange(n)[None] if orders is None else orders
        assert (np.sort(known, axis=1) == np.arange(n)).all()
        for slot in range(count):
            turned = np.roll(psi[:, known[slot // n]], -(first + slot), axis=1)
            assert found[slot] == pytest.approx(np.sum((phi @ turned.T / n) ** 2), rel=1e-9)
        assert hsic.split_observed(found, first)[0] == pytest.approx(
            np.sum((phi @ psi.T / n) ** 2), rel=1e-9
        )
