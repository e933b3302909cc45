"""Ridge regression on a factor beside free terms, against dense algebra on the kernel itself."""

from __future__ import annotations

import itertools
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from jaxcd.ops import double_precision, gram, ridge

PENALTIES = np.geomspace(1e-8, 1e3, 23)


def kernel_of(x: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / (2 * bandwidth**2))


def hat(kernel: np.ndarray, free: np.ndarray, mu: float) -> np.ndarray:
    """The matrix of the fit that penalises the kernel's part alone."""
    n = len(kernel)
    q, _ = np.linalg.qr(free)
    outside = np.eye(n) - q @ q.T
    inner = outside @ kernel @ outside
    return q @ q.T + inner @ np.linalg.inv(inner + mu * np.eye(n))


def best_of(kernel: np.ndarray, free: np.ndarray, y: np.ndarray, m: int) -> tuple[int, np.ndarray]:
    """The place of the best penalty by leaving out each of the first m rows, and the residual."""
    losses, rests = [], []
    for mu in PENALTIES * len(y):
        h = hat(kernel, free, mu)
        rests.append(y - h @ y)
        losses.append(np.sum((rests[-1] / (1 - np.diag(h)))[:m] ** 2))
    return int(np.argmin(losses)), rests[int(np.argmin(losses))]


@pytest.mark.parametrize(
    ("block", "copies", "n_head"),
    [
        (40, 3, 60),
        (1000, 1, 130),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in itertools.product([40, 1000], [1, 3], [60, 130])
            if case not in ((40, 3, 60), (1000, 1, 130))
        ),
    ],
)
def test_a_smoother_in_blocks_is_the_dense_one(block, copies, n_head, monkeypatch):
    monkeypatch.setattr(ridge, "_BLOCK", {"cpu": block})
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(130 // copies, 2)), copies, axis=0)
    n, m = len(x), min(n_head, 130 // copies * copies)
    y = np.column_stack([np.sin(2 * x[:, 0]) * x[:, 1], x[:, 0] + x[:, 1], rng.normal(size=n)])
    y += 0.3 * rng.normal(size=y.shape)
    free = np.column_stack([np.ones(n), x])
    with double_precision():
        smoother = ridge.gaussian_smoother(
            x,
            1.5,
            (jnp.asarray(x[:, :1]),),
            rank=n,
            n_head=m,  # a column twice counts once
        )
        found, penalties = ridge.leave_one_out_residuals(
            smoother, jnp.asarray(y), jnp.asarray(PENALTIES * n)
        )
        later = ridge.smoother_of(
            smoother.factor, smoother.gram, (smoother.free, jnp.asarray(x[:, :1] > 0)), n_head=m
        )
        beside, _ = ridge.leave_one_out_residuals(later, jnp.asarray(y), jnp.asarray(PENALTIES * n))
    more = np.column_stack([free, x[:, 0] > 0])
    for t in range(3):
        place, rest = best_of(kernel_of(x, 1.5), free, y[:, t], m)
        assert float(penalties[t]) == pytest.approx(PENALTIES[place] * n)
        np.testing.assert_allclose(np.asarray(found)[:, t], rest, atol=1e-5)
        _, rest = best_of(kernel_of(x, 1.5), more, y[:, t], m)
        np.testing.assert_allclose(np.asarray(beside)[:, t], rest, atol=1e-5)


@pytest.mark.parametrize("block", [40, 1000])
def test_an_additive_smoother_is_that_of_the_sum_of_kernels(block, monkeypatch):
    monkeypatch.setattr(ridge, "_BLOCK", {"cpu": block})
    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 2)).round(1)
    padded = np.column_stack([x, np.zeros(90)])  # a column of zeros adds nothing
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.2 * rng.normal(size=90)
    free = np.column_stack([np.ones(90), x])
    with double_precision():
        smoother = ridge.additive_smoother(padded, 1.4, rank=40, n_head=50)
        found, _ = ridge.leave_one_out_residuals(
            smoother, jnp.asarray(y[:, None]), jnp.asarray(PENALTIES * 90)
        )
    kernel = kernel_of(x[:, :1], 1.4) + kernel_of(x[:, 1:], 1.4)
    _, rest = best_of(kernel, free, y, 50)
    np.testing.assert_allclose(np.asarray(found)[:, 0], rest, atol=1e-5)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_landmarks_of_few_levels_are_all_of_them(levels):
    """Columns of the kernel that come again and again cancel in no mixture."""
    x = np.random.default_rng(2).integers(0, levels, size=(300, 1)).astype(float)
    with double_precision():
        low = gram.nystroem(jnp.asarray(x), 0.5, rank=16)
        assert float(low.error) < 1e-9
        chosen = np.asarray(gram.landmarks(jnp.asarray(x), 0.5, 16))
    assert set(x[chosen, 0]) == set(x[:, 0])


def test_nearly_equal_free_terms_and_large_means_leave_nothing():
    """A target that is a free term is explained to rounding, whatever the others are."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 1))
    close = x + 1e-5 * rng.normal(size=(200, 1))
    terms = np.hstack([close, 10 + x**2])
    free = np.hstack([np.ones((200, 1)), x, terms])
    with double_precision():
        smoother = ridge.gaussian_smoother(x, 1.4, (jnp.asarray(terms),), rank=32, n_head=200)
        found, _ = ridge.leave_one_out_residuals(
            smoother, jnp.asarray(free), jnp.asarray(PENALTIES * 200)
        )
        straight = np.asarray(smoother.head)[:, :4]
    np.testing.assert_allclose(straight.T @ straight, np.eye(4), atol=1e-9)
    assert np.abs(found).max() < 1e-6


SEVERAL_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from jaxcd.ops import double_precision, ridge

z = np.random.default_rng(0).normal(size=(3000, 3))

def many(n):
    with double_precision():
        for function in [ridge.additive_smoother, ridge.gaussian_smoother] * 20:
            function(z[:n], 1.4, rank=16, n_head=1000, n_searched=1000)

with ThreadPoolExecutor(2) as pool:
    list(pool.map(many, [3000, 1000, 3000, 1000]))
"""


@pytest.mark.slow
def test_smoothers_of_several_threads_end():
    """Programs that factor a batch of matrices waited for each other for ever."""
    subprocess.run([sys.executable, "-c", SEVERAL_THREADS], timeout=240, check=True)
