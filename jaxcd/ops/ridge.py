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

*Two forms.*  A :class:`Spectrum` holds U.  A :class:`Smoother` has free terms and holds F, what
turns it into U, and U's first rows, on which penalties are compared: U of all rows would cost n r^2
operations more, and a fit needs no more than F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops.gram import N_SEARCHED, gaussian_gram, inverse_root, landmarks
from jaxcd.ops.platforms import block_of
from jaxcd.ops.threads import one_blas_thread

__all__ = [
    "Smoother",
    "Spectrum",
    "additive_smoother",
    "constrained_residuals",
    "exact_residuals",
    "gaussian_smoother",
    "landmarks_and_root",
    "leave_one_out_losses",
    "leave_one_out_residuals",
    "penalty_of_objective",
    "residuals",
    "smoother_of",
    "spectrum",
    "turn_of_gram",
]

_HIGHEST = jax.lax.Precision.HIGHEST
# Rows of the factor that are made at once, by platform.
_BLOCK = {"cpu": 1 << 11, "gpu": 1 << 16}


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


def _transposed(x: jax.Array) -> jax.Array:
    """x^T for the left side of a product; on a CPU a copy, n r numbers beside n r^2 operations: XLA
    takes rows that do not lie together at a half to a third of its speed there.
    """
    return jax.lax.platform_dependent(
        x, cpu=lambda each: jax.lax.optimization_barrier(each.T), default=jnp.transpose
    )


def _columns_gram(factor: jax.Array) -> jax.Array:
    return jnp.matmul(_transposed(factor), factor, precision=_HIGHEST)


@jax.jit
def turn_of_gram(gram: jax.Array, *, size: jax.Array | float = 0.0) -> tuple[jax.Array, jax.Array]:
    """What turns a factor into an orthonormal basis, (r, r), and the eigenvalues of its Gram
    matrix; both are 0 for those below r eps times the largest of them, or times ``size``.
    """
    values, vectors = jnp.linalg.eigh(gram, symmetrize_input=False)
    least = jnp.maximum(values[-1], size) * (len(values) * jnp.finfo(gram.dtype).eps)
    kept = values > least
    scale = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return vectors * scale, jnp.where(kept, values, 0)


class Smoother(NamedTuple):
    """A ridge regression on a factor beside free terms, ready for targets: what follows from the
    rows of Z alone.

    Args:
        free: (n, f), an orthonormal basis of the free terms; columns of zeros where they hang on
            the others.
        factor: (n, r), K = factor factor^T.
        gram: (r, r), factor^T factor.
        share: (f, r), free^T factor.
        own: (r, r); (factor - free share) own is orthonormal, or zero where the value is.
        values: (r,), the eigenvalues of K between the directions that are not free, ascending.
        head: (m, f + r), the first rows of the basis, free directions first: leave-one-out errors
            are looked at on these.
    """

    free: jax.Array
    factor: jax.Array
    gram: jax.Array
    share: jax.Array
    own: jax.Array
    values: jax.Array
    head: jax.Array


def gaussian_smoother(
    x: np.ndarray | jax.Array,
    bandwidth: float,
    terms: Sequence[jax.Array] = (),
    *,
    rank: int,
    n_head: int,
    n_searched: int = N_SEARCHED,
    straight: np.ndarray | None = None,
) -> Smoother:
    """Of the Nystroem factor of the Gaussian Gram matrix of x, (n, d) in random order, beside a
    constant, linear terms, and others that are free.  Waits for the result.

    The basis is never held, nor the kernel columns of all rows: the factor is made in blocks, with
    its Gram matrix, n r^2 operations each, and what turns it into a basis stays a small matrix.

    Args:
        terms: the other free terms, (n, any number) each.
        rank: at most so many landmarks.
        n_head: rows whose leave-one-out errors are looked at.
        n_searched: first rows among which landmarks are chosen.
        straight: the columns of the linear terms, in place of x.
    """
    sizes = (min(rank, n_searched), n_head, n_searched)
    return _finished(
        _gaussian_smoother, (x, x if straight is None else straight), bandwidth, terms, sizes
    )


def additive_smoother(
    x: np.ndarray | jax.Array,
    bandwidth: float,
    terms: Sequence[jax.Array] = (),
    *,
    rank: int,
    n_head: int,
    n_searched: int = N_SEARCHED,
) -> Smoother:
    """As :func:`gaussian_smoother`, of a sum of one kernel a column: the factor has d rank columns.
    A column of zeros adds a constant, which is among the free terms.
    """
    sizes = (min(rank, n_searched), n_head, n_searched)
    return _finished(_additive_smoother, (x,), bandwidth, terms, sizes)


def smoother_of(
    factor: jax.Array, gram: jax.Array, terms: Sequence[jax.Array], *, n_head: int
) -> Smoother:
    """Of a factor (n, r) that is there, with its Gram matrix, beside these free terms and no
    others.  Waits for the result.
    """
    with one_blas_thread():
        return jax.block_until_ready(_smoother_of(factor, gram, tuple(terms), n_head))


def _finished(
    function: Callable[..., Smoother],
    columns: Sequence[np.ndarray | jax.Array],
    bandwidth: float,
    terms: Sequence[jax.Array],
    sizes: tuple[int, int, int],
) -> Smoother:
    *put, width = jax.device_put((*columns, np.asarray(bandwidth, columns[0].dtype)))
    with one_blas_thread():
        found = function(*put, width, tuple(terms), *sizes, block_of(_BLOCK))
        return jax.block_until_ready(found)


@partial(jax.jit, static_argnames="rank")
def landmarks_and_root(
    x: jax.Array, bandwidth: jax.Array, rank: int
) -> tuple[jax.Array, jax.Array]:
    """At most ``rank`` landmarks of x, (n, d) in random order, and the inverse root of their Gram
    matrix.
    """
    chosen = x[landmarks(x, bandwidth, min(rank, x.shape[0]))]
    return chosen, inverse_root(gaussian_gram(chosen, chosen, bandwidth))


_SIZES = ("rank", "n_head", "n_searched", "block")


@partial(jax.jit, static_argnames=_SIZES)
def _gaussian_smoother(
    x: jax.Array,
    straight: jax.Array,
    bandwidth: jax.Array,
    terms: tuple[jax.Array, ...],
    rank: int,
    n_head: int,
    n_searched: int,
    block: int,
) -> Smoother:
    chosen, root = landmarks_and_root(x[:n_searched], bandwidth, rank)

    def rows(part: jax.Array) -> jax.Array:
        return jnp.matmul(gaussian_gram(part, chosen, bandwidth), root, precision=_HIGHEST)

    return _smoother_of(*_in_blocks(rows, x, block), (_ones(x), straight, *terms), n_head)


@partial(jax.jit, static_argnames=_SIZES)
def _additive_smoother(
    x: jax.Array,
    bandwidth: jax.Array,
    terms: tuple[jax.Array, ...],
    rank: int,
    n_head: int,
    n_searched: int,
    block: int,
) -> Smoother:
    # One column after the other, and no factors of a batch: of two such programs at once, one of
    # each thread, both waited for ever on a processor of two cores (XLA of jax 0.10).
    columns = x[:n_searched].T[:, :, None]
    chosen, roots = jax.lax.map(lambda each: landmarks_and_root(each, bandwidth, rank), columns)

    def rows(part: jax.Array) -> jax.Array:
        def of_one(item: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            each, landmarks_, root = item
            kernel = gaussian_gram(each[:, None], landmarks_, bandwidth)
            return jnp.matmul(kernel, root, precision=_HIGHEST)

        found = jax.lax.map(of_one, (part.T, chosen, roots))
        return jnp.moveaxis(found, 0, 1).reshape(len(part), -1)

    return _smoother_of(*_in_blocks(rows, x, block), (_ones(x), x, *terms), n_head)


def _ones(x: jax.Array) -> jax.Array:
    return jnp.ones((len(x), 1), x.dtype)


def _in_blocks(
    rows: Callable[[jax.Array], jax.Array], x: jax.Array, block: int
) -> tuple[jax.Array, jax.Array]:
    """rows of x (n, d), a function of each, and their Gram matrix."""
    n = len(x)
    if n <= block:
        found = rows(x)
        return found, _columns_gram(found)

    def fill(i: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # The last block ends at the last row and counts only the rows that no block before it had.
        held, gram = state
        start = jnp.minimum(i * block, n - block)
        part = rows(jax.lax.dynamic_slice_in_dim(x, start, block))
        held = jax.lax.dynamic_update_slice_in_dim(held, part, start, 0)
        new = (start + jnp.arange(block) >= i * block)[:, None]
        return held, gram + _columns_gram(jnp.where(new, part, 0))

    width = jax.eval_shape(rows, x[:block]).shape[1]
    state = jnp.zeros((n, width), x.dtype), jnp.zeros((width, width), x.dtype)
    return jax.lax.fori_loop(0, -(-n // block), fill, state)


def _smoother_of(
    factor: jax.Array, gram: jax.Array, terms: tuple[jax.Array, ...], n_head: int
) -> Smoother:
    # The factor is no result of what is compiled, which would be a copy of it.
    free, share, own, values, head = _beside_terms(factor, gram, terms, n_head)
    return Smoother(free, factor, gram, share, own, values, head)


@partial(jax.jit, static_argnames="n_head")
def _beside_terms(
    factor: jax.Array, gram: jax.Array, terms: tuple[jax.Array, ...], n_head: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """free, share, own, values and head of a smoother."""
    free = jnp.concatenate(terms, axis=1)
    # Twice: once leaves columns that nearly hang on each other as far from orthogonal as that.
    free = jax.lax.fori_loop(0, 2, lambda _, held: _orthonormal(held), free)
    share = jnp.matmul(_transposed(free), factor, precision=_HIGHEST)
    # A difference of Gram matrices is right to rounding errors of the whole; penalties are far
    # above these, and directions below them are dropped.
    rest = gram - jnp.matmul(share.T, share, precision=_HIGHEST)
    own, values = turn_of_gram(rest, size=jnp.trace(gram))
    first = factor[:n_head] - jnp.matmul(free[:n_head], share, precision=_HIGHEST)
    bent = jnp.matmul(first, own, precision=_HIGHEST)
    return free, share, own, values, jnp.concatenate([free[:n_head], bent], axis=1)


def _orthonormal(columns: jax.Array) -> jax.Array:
    turn, _ = turn_of_gram(_columns_gram(columns))
    return jnp.matmul(columns, turn, precision=_HIGHEST)


def _coefficients(smoother: Smoother, targets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of the free directions (f, t) and of the others (r, t), without a penalty."""
    flat = jnp.matmul(smoother.free.T, targets, precision=_HIGHEST)
    inner = jnp.matmul(smoother.factor.T, targets, precision=_HIGHEST)
    inner = inner - jnp.matmul(smoother.share.T, flat, precision=_HIGHEST)
    return flat, jnp.matmul(smoother.own.T, inner, precision=_HIGHEST)


@jax.jit
def leave_one_out_losses(smoother: Smoother, targets: jax.Array, penalties: jax.Array) -> jax.Array:
    """Sums of squared leave-one-out residuals of the first rows, (t, g): of targets (n, t), fitted
    to all rows, at each of the penalties.

    Args:
        penalties: (g,), positive. All are compared in two products, (m, r) by (r, g) for the
            leverages and (m, r) by (r, g t) for the fits, m the rows of ``smoother.head``.
    """
    return _losses(smoother, targets, penalties, *_coefficients(smoother, targets))


def _losses(
    smoother: Smoother, targets: jax.Array, penalties: jax.Array, flat: jax.Array, bent: jax.Array
) -> jax.Array:
    m, n_free, n_targets = len(smoother.head), len(flat), targets.shape[1]
    straight, head = smoother.head[:, :n_free], smoother.head[:, n_free:]
    values = smoother.values[:, None]
    shrink = values / (values + penalties[None, :])
    shrunk = (bent[:, :, None] * shrink[:, None, :]).reshape(len(values), -1)
    leverage = jnp.sum(straight**2, axis=1)[:, None]
    leverage = leverage + jnp.matmul(head**2, shrink, precision=_HIGHEST)
    rest = targets[:m] - jnp.matmul(straight, flat, precision=_HIGHEST)
    fit = jnp.matmul(head, shrunk, precision=_HIGHEST).reshape(m, n_targets, -1)
    left_out = (rest[:, :, None] - fit) / jnp.maximum(1 - leverage, 1e-6)[:, None, :]
    return jnp.sum(left_out**2, axis=0)


@jax.jit
def leave_one_out_residuals(
    smoother: Smoother, targets: jax.Array, penalties: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Residuals (n, t) at each target's best penalty of the grid, and those penalties (t,).

    The best penalty has the smallest sum of squared leave-one-out residuals on the first rows.

    Args:
        penalties: (g,), positive.
    """
    flat, bent = _coefficients(smoother, targets)
    best = penalties[jnp.argmin(_losses(smoother, targets, penalties, flat, bent), axis=1)]
    values = smoother.values[:, None]
    weights = jnp.matmul(smoother.own, bent * (values / (values + best)), precision=_HIGHEST)
    flat = flat - jnp.matmul(smoother.share, weights, precision=_HIGHEST)
    fit = jnp.matmul(smoother.factor, weights, precision=_HIGHEST)
    return targets - fit - jnp.matmul(smoother.free, flat, precision=_HIGHEST), best


@jax.jit
def exact_residuals(gram: jax.Array, targets: jax.Array, penalty: jax.Array | float) -> jax.Array:
    """y - K (K + mu I)^{-1} y = mu (K + mu I)^{-1} y by Cholesky; gram (n, n), targets (n, t).  The
    reference, cubic in n.
    """
    mu = jnp.asarray(penalty, gram.dtype)
    lower = jnp.linalg.cholesky(gram + mu * jnp.eye(gram.shape[0], dtype=gram.dtype))
    return mu * jax.scipy.linalg.cho_solve((lower, True), targets)


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
