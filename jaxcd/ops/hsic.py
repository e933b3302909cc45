r"""The Hilbert-Schmidt independence criterion in linear time, and its permutation null as matrix products.

With features phi (r_x, n) and psi (r_y, n), centred over the rows, the V-statistic

    HSIC = tr(K H L H) / n^2 = |C|_F^2,      C = phi psi^T / n

costs n r_x r_y; no n x n array is formed.  *Permutations*: rows are put into random order once, and the null is then the statistic
at k distinct cyclic shifts of y against x.  The shifts form a group that leaves the null distribution of exchangeable rows
unchanged, so (1 + #{T_s >= T_0}) / (k + 1) is an exact p-value (Hemerik and Goeman 2018, random transformations from a group);
and a shifted block of features is a contiguous slice: nothing is gathered, and memory stays at two copies of the features.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops.features import FourierKernel, fourier_features

__all__ = ["centred_features", "draw_shifts", "hsic", "hsic_dense", "hsic_null_moments", "hsic_shifted"]

_HIGHEST = jax.lax.Precision.HIGHEST
_BLOCK = {"cpu": 2048}
_BLOCK_DEVICE = 16384


@partial(jax.jit, static_argnames="kernel")
def centred_features(values: jax.Array, kernel: FourierKernel) -> jax.Array:
    """Features of values (n,), centred over the rows, transposed: (2 J, n); the constant feature, centred, is zero."""
    features = fourier_features(values, kernel)[:, 1:].T
    return features - features.mean(axis=1, keepdims=True)


@jax.jit
def hsic(phi: jax.Array, psi: jax.Array) -> jax.Array:
    """HSIC of centred features (r_x, n) and (r_y, n): |phi psi^T / n|_F^2, a scalar at least 0."""
    covariance = jnp.matmul(phi, psi.T, precision=_HIGHEST) / phi.shape[1]
    return jnp.sum(covariance**2)


def hsic_dense(gram_x: jax.Array, gram_y: jax.Array) -> jax.Array:
    """HSIC of two Gram matrices (n, n) of any kernels: tr(K H L H) / n^2.  The reference; quadratic in n.

    Source: Gretton et al. 2005.
    """
    centred = gram_x - gram_x.mean(axis=0) - gram_x.mean(axis=1, keepdims=True) + gram_x.mean()
    return jnp.sum(centred * gram_y.T) / gram_x.shape[0] ** 2


@jax.jit
def hsic_null_moments(phi: jax.Array, psi: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of n HSIC under independence: tr(A) tr(B) and 2 |A|_F^2 |B|_F^2, A and B the features' covariances.

    phi, psi: centred features (r, n).  First order in 1/n.  Source: Gretton et al. 2008, in feature form.
    """
    n = phi.shape[1]
    a = jnp.matmul(phi, phi.T, precision=_HIGHEST) / n
    b = jnp.matmul(psi, psi.T, precision=_HIGHEST) / n
    return jnp.trace(a) * jnp.trace(b), 2 * jnp.sum(a**2) * jnp.sum(b**2)


def draw_shifts(key: jax.Array, n_samples: int, n_permutations: int) -> np.ndarray:
    """k shifts in 1 .. n - 1, different as long as there are enough: int32 (k,).  Public: drawn without the data."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    distinct = min(n_permutations, n_samples - 1)
    shifts = rng.choice(n_samples - 1, size=distinct, replace=False) + 1
    more = rng.integers(1, n_samples, size=n_permutations - distinct)
    return np.concatenate([shifts, more]).astype(np.int32)


@partial(jax.jit, static_argnames="block")
def _shifted_covariances(phi: jax.Array, psi: jax.Array, shifts: jax.Array, block: int) -> jax.Array:
    n = phi.shape[1]
    n_blocks = -(-n // block)
    short = n_blocks * block - n
    phi = jnp.pad(phi, ((0, 0), (0, short)))  # rows of zeros add nothing, whatever they meet
    doubled = jnp.pad(jnp.concatenate([psi, psi], axis=1), ((0, 0), (0, short)))

    def add_block(i, total):
        left = jax.lax.dynamic_slice_in_dim(phi, i * block, block, axis=1)

        def at_shift(shift):
            right = jax.lax.dynamic_slice_in_dim(doubled, i * block + shift, block, axis=1)
            return jax.lax.dot_general(left, right, (((1,), (1,)), ((), ())), precision=_HIGHEST)

        return total + jax.lax.map(at_shift, shifts)

    start = jnp.zeros((shifts.shape[0], phi.shape[0], psi.shape[0]), phi.dtype)
    return jax.lax.fori_loop(0, n_blocks, add_block, start) / n


def hsic_shifted(phi: jax.Array, psi: jax.Array, shifts: np.ndarray) -> jax.Array:
    """HSIC with y shifted cyclically by each of k shifts: (k,).  phi, psi: centred features (r, n).

    2 n r_x r_y k operations on blocks of rows that stay in the cache; memory for one doubled copy of psi.
    """
    block: Any = _BLOCK.get(jax.default_backend(), _BLOCK_DEVICE)
    block = min(block, max(phi.shape[1], 1))
    return jnp.sum(_shifted_covariances(phi, psi, jnp.asarray(shifts), block) ** 2, axis=(1, 2))
