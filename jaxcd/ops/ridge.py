r"""Kernel ridge regression from a factor of the Gram matrix, for many targets at once.

With K = F F^T and a penalty mu > 0 the fit is K (K + mu I)^{-1} y.  Two conventions are in use and
differ by a factor: the objective (lambda / 2) |w|^2 + (1/n) sum (y_i - w . phi_i)^2 has mu = n
lambda / 2 (:func:`penalty_of_objective`), and "K + lambda I" has mu = lambda.  From the thin
singular value decomposition F = U S V^T every penalty costs one product: fit = U diag(s^2 /
(s^2 + mu)) U^T y, and the leave-one-out residuals are r_i / (1 - h_i) with h_i = sum_j U_ij^2 s_j^2
/ (s_j^2 + mu) (An, Liu, Venkatesh 2007), so that a whole grid of penalties is compared in n r
operations each.

*Free terms.*  Columns that are fitted without a penalty (a constant, linear terms) span directions
of an infinite value: the factor is made orthogonal to them, and their orthonormal basis stands
beside U.  Every formula above then holds as it is.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxcd.ops.gram import N_SEARCHED, gaussian_gram, inverse_root, landmarks
from jaxcd.ops.platforms import block_of
from jaxcd.ops.threads import one_blas_thread

__all__ = [
    "FREE",
    "Spectrum",
    "conjugate_gradient_residuals",
    "constrained_residuals",
    "exact_residuals",
    "leave_one_out_losses",
    "gaussian_spectrum",
    "leave_one_out_residuals",
    "penalty_of_objective",
    "residuals",
    "spectrum",
    "spectrum_beside",
    "turn_of_gram",
]

_HIGHEST = jax.lax.Precision.HIGHEST
# Rows of a block, by platform: of the comparison of penalties, and of the factor.
_BLOCK = {"cpu": 2048, "gpu": 1 << 16}
# Eigenvalues of the landmarks' Gram matrix below this share of the largest are dropped.
_LEAST = 1e-7
_FACTOR_BLOCK = {"cpu": 1 << 14, "gpu": 1 << 16}
#: The value of a free direction: 1 - value / (value + mu) is below every rounding error.
FREE = 1e30


def penalty_of_objective(penalty: float, n_samples: int) -> float:
    """mu = n lambda / 2, the penalty of (lambda / 2) |w|^2 + mean squared error."""
    return n_samples * penalty / 2


class Spectrum(NamedTuple):
    """K = basis diag(values) basis^T: orthonormal basis (n, r), values (r,) ascending from 0."""

    basis: jax.Array
    values: jax.Array


def spectrum(factor: jax.Array) -> Spectrum:
    """The eigendecomposition of factor factor^T, (n, r), through the (r, r) Gram matrix of the
    columns; directions below r eps times the largest are dropped (value 0, basis column 0).  Waits
    for the result."""
    with one_blas_thread():
        return jax.block_until_ready(_spectrum(factor))


@jax.jit
def _spectrum(factor: jax.Array) -> Spectrum:
    turn, values = turn_of_gram(_columns_gram(factor))
    return Spectrum(jnp.matmul(factor, turn, precision=_HIGHEST), values)


def _columns_gram(factor: jax.Array) -> jax.Array:
    """The lower triangle of factor^T factor, in blocks; a quarter of the product is saved."""
    half = factor.shape[1] // 2
    upper = jnp.matmul(factor[:, :half].T, factor[:, :half], precision=_HIGHEST)
    lower = jnp.matmul(factor[:, half:].T, factor, precision=_HIGHEST)
    return jnp.concatenate([jnp.pad(upper, ((0, 0), (0, factor.shape[1] - half))), lower])


def turn_of_gram(gram: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What turns a factor into an orthonormal basis, (r, r), and the eigenvalues of its Gram
    matrix.
    """
    values, vectors = jnp.linalg.eigh(gram, symmetrize_input=False)
    kept = values > values[-1] * len(values) * jnp.finfo(gram.dtype).eps
    scale = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return vectors * scale, jnp.where(kept, values, 0)


def gaussian_spectrum(x: jax.Array, bandwidth: jax.Array | float, *, rank: int) -> Spectrum:
    """The spectrum of a Nystroem factor of the Gaussian Gram matrix of x, (n, d) in random order.

    As :func:`spectrum` of :func:`jaxcd.ops.gram.nystroem`, but one array of n r numbers is held, in
    which the Gram columns of the landmarks become the basis, and eigenvectors of the landmarks'
    own Gram matrix are kept from 1e-7 of the largest eigenvalue on (the squares of the columns are
    summed before they are made orthogonal).  Does not wait for the result: call it, and read what
    follows from it, within :func:`jaxcd.ops.threads.one_blas_thread`.

    Args:
        rank: at most n landmarks are used.
    """
    return _gaussian_spectrum(x, jnp.asarray(bandwidth, x.dtype), rank, block_of(_FACTOR_BLOCK))


@partial(jax.jit, static_argnames=("rank", "block"))
def _gaussian_spectrum(x: jax.Array, bandwidth: jax.Array, rank: int, block: int) -> Spectrum:
    n, rank = x.shape[0], min(rank, x.shape[0])
    block = min(block, n)
    searched = x[:N_SEARCHED]
    chosen = searched[landmarks(searched, bandwidth, rank)]
    root = inverse_root(gaussian_gram(chosen, chosen, bandwidth), least=_LEAST)

    def turn_of(gram: jax.Array) -> tuple[jax.Array, jax.Array]:
        # The lower triangle is all that there is.
        whole = jnp.tril(gram) + jnp.tril(gram, -1).T
        inner = jnp.matmul(whole, root, precision=_HIGHEST)
        turn, values = turn_of_gram(jnp.matmul(root.T, inner, precision=_HIGHEST))
        return jnp.matmul(root, turn, precision=_HIGHEST), values

    if n == block:
        columns = gaussian_gram(x, chosen, bandwidth)
        turn, values = turn_of(_columns_gram(columns))
        return Spectrum(jnp.matmul(columns, turn, precision=_HIGHEST), values)

    full, left = n // block * block, n % block

    def fill(
        start: jax.Array | int, size: int, state: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        held, gram = state
        columns = gaussian_gram(jax.lax.dynamic_slice_in_dim(x, start, size), chosen, bandwidth)
        held = jax.lax.dynamic_update_slice_in_dim(held, columns, start, 0)
        return held, gram + _columns_gram(columns)

    def turned(start: jax.Array | int, size: int, held: jax.Array) -> jax.Array:
        rows = jax.lax.dynamic_slice_in_dim(held, start, size)
        rows = jnp.matmul(rows, turn, precision=_HIGHEST)
        return jax.lax.dynamic_update_slice_in_dim(held, rows, start, 0)

    state = jnp.zeros((n, rank), x.dtype), jnp.zeros((rank, rank), x.dtype)
    state = jax.lax.fori_loop(0, full // block, lambda i, s: fill(i * block, block, s), state)
    held, gram = fill(full, left, state) if left else state
    turn, values = turn_of(gram)
    held = jax.lax.fori_loop(0, full // block, lambda i, h: turned(i * block, block, h), held)
    return Spectrum(turned(full, left, held) if left else held, values)


def spectrum_beside(factor: jax.Array, free: jax.Array) -> Spectrum:
    """The spectrum of factor factor^T beside free terms, (n, r) and (n, f): r + f directions, the
    free ones first, of value 1e30, or 0 where they hang on the others.  Waits for the result."""
    with one_blas_thread():
        return jax.block_until_ready(_spectrum_beside(factor, free))


@jax.jit
def _spectrum_beside(factor: jax.Array, free: jax.Array) -> Spectrum:
    own = _spectrum(free)
    # Twice: once leaves rounding errors of the size of the factor in the free directions.
    for _ in range(2):
        shares = jnp.matmul(own.basis.T, factor, precision=_HIGHEST)
        factor = factor - jnp.matmul(own.basis, shares, precision=_HIGHEST)
    rest = _spectrum(factor)
    return Spectrum(
        jnp.concatenate([own.basis, rest.basis], axis=1),
        jnp.concatenate([jnp.where(own.values > 0, FREE, 0.0), rest.values]),
    )


@jax.jit
def residuals(decomposition: Spectrum, targets: jax.Array, penalty: jax.Array | float) -> jax.Array:
    """y - fit for targets (n, t), penalty mu > 0 (a scalar, or one for each target (t,)): (n,
    t).
    """
    basis, values = decomposition
    shrink = values[:, None] / (
        values[:, None] + jnp.atleast_1d(jnp.asarray(penalty, targets.dtype))[None, :]
    )
    coefficients = jnp.matmul(basis.T, targets, precision=_HIGHEST)
    return targets - jnp.matmul(basis, shrink * coefficients, precision=_HIGHEST)


def leave_one_out_losses(
    decomposition: Spectrum, targets: jax.Array, penalties: jax.Array
) -> jax.Array:
    """Sums of squared leave-one-out residuals (t, g): of targets (n, t) at each of the penalties.

    Args:
        penalties: (g,), positive. All penalties are compared in two products, (n, r) by (r, g) for
            the leverages and (n, r) by (r, g t) for the fits, on blocks of rows: one pass over the
            basis, and no array of n g t numbers.
    """
    return _leave_one_out(decomposition, targets, penalties, block_of(_BLOCK))


@partial(jax.jit, static_argnames="block")
def _leave_one_out(
    decomposition: Spectrum, targets: jax.Array, penalties: jax.Array, block: int
) -> jax.Array:
    basis, values = decomposition
    n, n_targets = targets.shape
    coefficients = jnp.matmul(basis.T, targets, precision=_HIGHEST)
    shrink = values[:, None] / (values[:, None] + penalties[None, :])
    shrunk = (coefficients[:, :, None] * shrink[:, None, :]).reshape(len(values), -1)
    block = min(n, block)

    def add_block(i, total):
        # The last block ends at the last row and counts only the rows that no block before it had.
        start = jnp.minimum(i * block, n - block)
        new = (start + jnp.arange(block) >= i * block)[:, None, None]
        part = jax.lax.dynamic_slice_in_dim(basis, start, block)
        leverage = jnp.matmul(part**2, shrink, precision=_HIGHEST)
        fit = jnp.matmul(part, shrunk, precision=_HIGHEST).reshape(block, n_targets, -1)
        rest = jax.lax.dynamic_slice_in_dim(targets, start, block)[:, :, None] - fit
        left_out = rest / jnp.maximum(1 - leverage, 1e-6)[:, None, :]
        return total + jnp.sum(jnp.where(new, left_out**2, 0), axis=0)

    start = jnp.zeros((n_targets, len(penalties)), targets.dtype)
    return jax.lax.fori_loop(0, -(-n // block), add_block, start)


@jax.jit
def leave_one_out_residuals(
    decomposition: Spectrum, targets: jax.Array, penalties: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Residuals (n, t) at each target's best penalty of the grid, and those penalties (t,).

    The best penalty has the smallest sum of squared leave-one-out residuals.

    Args:
        penalties: (g,), positive.
    """
    loss = leave_one_out_losses(decomposition, targets, penalties)
    best = penalties[jnp.argmin(loss, axis=1)]
    return residuals(decomposition, targets, best), best


@jax.jit
def exact_residuals(gram: jax.Array, targets: jax.Array, penalty: jax.Array | float) -> jax.Array:
    """y - K (K + mu I)^{-1} y = mu (K + mu I)^{-1} y by Cholesky; gram (n, n), targets (n, t).  The
    reference, cubic in n.
    """
    mu = jnp.asarray(penalty, gram.dtype)
    lower = jnp.linalg.cholesky(gram + mu * jnp.eye(gram.shape[0], dtype=gram.dtype))
    return mu * jax.scipy.linalg.cho_solve((lower, True), targets)


@partial(jax.jit, static_argnames="n_steps")
def conjugate_gradient_residuals(
    gram: jax.Array, targets: jax.Array, penalty: jax.Array | float, n_steps: int
) -> jax.Array:
    """The same by a fixed number of conjugate-gradient steps: no data-dependent stopping.

    cond(K + mu I) <= 1 + n / mu, i.e. 1 + 2 / lambda with mu = n lambda / 2: 12 steps reach 1e-6 at
    lambda = 1 (PRIVACY.md E5).
    """
    mu = jnp.asarray(penalty, gram.dtype)

    def step(_, state):
        solution, rest, direction, square = state
        image = jnp.matmul(gram, direction, precision=_HIGHEST) + mu * direction
        curvature = jnp.sum(direction * image, axis=0)
        length = jnp.where(curvature > 0, square / jnp.where(curvature > 0, curvature, 1), 0)
        solution, rest = solution + length * direction, rest - length * image
        new = jnp.sum(rest**2, axis=0)
        momentum = jnp.where(square > 0, new / jnp.where(square > 0, square, 1), 0)
        return solution, rest, rest + momentum * direction, new

    start = (jnp.zeros_like(targets), targets, targets, jnp.sum(targets**2, axis=0))
    return mu * jax.lax.fori_loop(0, n_steps, step, start)[0]


@jax.jit
def constrained_residuals(
    decomposition: Spectrum,
    targets: jax.Array,
    penalty: jax.Array | float,
    bound: jax.Array | float,
) -> jax.Array:
    """Residuals of the ridge fit with |w| <= bound: the penalty is raised until the norm fits (100
    bisections), targets (n, t).

    |w|^2 = sum_j c_j^2 s_j^2 / (s_j^2 + mu)^2 with c = U^T y decreases in mu, and the constrained
    optimum is the ridge fit at the multiplier's penalty.
    """
    basis, values = decomposition
    squares = jnp.matmul(basis.T, targets, precision=_HIGHEST) ** 2 * values[:, None]
    floor = jnp.full(targets.shape[1], jnp.asarray(penalty, targets.dtype))
    limit = jnp.asarray(bound, targets.dtype) ** 2

    def too_long(mu):
        return jnp.sum(squares / (values[:, None] + mu[None, :]) ** 2, axis=0) > limit

    # there |w|^2 <= sum squares / mu^2 <= bound^2
    ceiling = floor + jnp.sqrt(squares.sum(axis=0) / limit)

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        long = too_long(middle)
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    _, high = jax.lax.fori_loop(0, 100, halve, (floor, ceiling))
    return residuals(decomposition, targets, jnp.where(too_long(floor), high, floor))
