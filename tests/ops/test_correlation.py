"""Partial correlations against residuals of regressions."""

from __future__ import annotations

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from jaxcd.ops.correlation import correlation_matrix, partial_correlations
from jaxcd.ops.precision import double_precision


def by_residuals(values: np.ndarray, x: int, y: int, given: tuple[int, ...]) -> float:
    design = (
        np.column_stack([np.ones(len(values)), values[:, given]])
        if given
        else np.ones((len(values), 1))
    )
    residuals = [
        v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (values[:, x], values[:, y])
    ]
    return float(np.corrcoef(residuals)[0, 1])


def correlated(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 10


@pytest.mark.parametrize("n", [20, 1000])
@pytest.mark.parametrize("size", [0, 1, 2, 4, 12, 13])
def test_partial_correlations(n: int, size: int):
    values = correlated(n, 15, n + size)
    rng = np.random.default_rng(size)
    variables = np.stack([rng.permutation(15)[: 2 + size] for _ in range(8)])
    with double_precision():
        matrix = correlation_matrix(jnp.asarray(values))
        np.testing.assert_allclose(np.asarray(matrix), np.corrcoef(values.T), atol=1e-12)
        result = np.asarray(partial_correlations(matrix, jnp.asarray(variables)))
    expected = [by_residuals(values, row[0], row[1], tuple(row[2:])) for row in variables]
    np.testing.assert_allclose(result, expected, atol=1e-9)


def test_large_means_do_not_cost_digits():
    values = correlated(500, 3, 3)
    with double_precision():
        far = np.asarray(
            correlation_matrix(jnp.asarray(values * [1, 1e-5, 1e5] + [1e8, 1e3, -1e12]))
        )
    np.testing.assert_allclose(far, np.corrcoef(values.T), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-20, 1e200, 1e300])
def test_units_do_not_matter(scale: float):
    values = correlated(50, 3, 2)
    with double_precision():
        expected = np.asarray(correlation_matrix(jnp.asarray(values)))
        assert np.asarray(correlation_matrix(jnp.asarray(scale * values))) == pytest.approx(
            expected, abs=1e-12
        )


def test_single_precision():
    values = correlated(300, 5, 9).astype(np.float32)
    matrix = correlation_matrix(jnp.asarray(values))
    assert matrix.dtype == jnp.float32
    result = np.asarray(
        partial_correlations(matrix, jnp.asarray([[0, 1, 2, 3], [2, 4, 0, 1]], dtype=jnp.int32))
    )
    expected = [
        by_residuals(values.astype(np.float64), *q) for q in ((0, 1, (2, 3)), (2, 4, (0, 1)))
    ]
    np.testing.assert_allclose(result, expected, atol=2e-3)


def test_constant_collinear_and_repeated_columns_are_total():
    rng = np.random.default_rng(0)
    z = rng.normal(size=50)
    values = np.column_stack([z, np.full(50, 3.0), z, 2 * z + 1, rng.normal(size=50)])
    queries = [[0, 1, 4, 4], [0, 4, 1, 1], [0, 4, 2, 3], [0, 2, 3, 3], [0, 2, 4, 4], [1, 1, 0, 0]]
    with double_precision():
        matrix = correlation_matrix(jnp.asarray(values))
        assert np.isfinite(np.asarray(matrix)).all()
        np.testing.assert_allclose(np.asarray(matrix)[1, [0, 2, 3, 4]], 0, atol=1e-12)
        result = np.asarray(partial_correlations(matrix, jnp.asarray(queries)))
    assert np.isfinite(result).all() and (np.abs(result) <= 1).all()
    assert abs(result[0]) < 1e-9  # a constant column is uncorrelated with everything
    np.testing.assert_allclose(result[1], np.corrcoef(values[:, 0], values[:, 4])[0, 1], atol=1e-9)
    np.testing.assert_allclose(result[4], 1, atol=1e-6)  # equal columns, given an unrelated one


def test_two_rows():
    with double_precision():
        matrix = np.asarray(correlation_matrix(jnp.asarray([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0]])))
    np.testing.assert_allclose(matrix[0, 1], -1, atol=1e-12)
    assert np.isfinite(matrix).all() and matrix[0, 2] == 0


SEVERAL_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from jaxcd.ops import correlation, double_precision

matrix = np.corrcoef(np.random.default_rng(0).normal(size=(40, 200)))
rng = np.random.default_rng(1)

def many(size):
    questions = np.stack([rng.permutation(40)[: 2 + size] for _ in range(1024)])
    with double_precision():
        for _ in range(100):
            np.asarray(correlation.partial_correlations(matrix, questions))

with ThreadPoolExecutor(4) as pool:
    list(pool.map(many, [10, 14, 10, 14]))
"""


def test_questions_of_several_threads_end():
    """Factors of a batch waited for each other for ever."""
    subprocess.run([sys.executable, "-c", SEVERAL_THREADS], timeout=120, check=True)
