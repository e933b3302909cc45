r"""The Hilbert-Schmidt independence criterion in linear time, and its permutation null as matrix
products.

With features phi (r_x, n) and psi (r_y, n), centred over the rows, the V-statistic

    HSIC = tr(K H L H) / n^2 = |C|_F^2,      C = phi psi^T / n

costs n r_x r_y; no n x n array is formed.  *Permutations*: rows are put into random order once, and
T(s) is then the statistic with y shifted cyclically by s against x.  The null is T at the shifts
-m, ..., k - m, of which 0 is the data as they are, with m drawn uniformly from 0 .. k.  (1 + #{T(s)
>= T(0), s != 0}) / (k + 1) is an exact p-value: for exchangeable rows and independent columns
(T(-m), ..., T(k - m)) has the law of (T(0), ..., T(k)) for every m, so the rank of T(0) is that of
a uniformly drawn entry (Hemerik and Goeman 2018 for groups of transformations in general).

Neighbouring shifts make the null one large product.  With shifts a + A b, the copies of phi shifted
by -a under each other and the copies of psi shifted by A b under each other, one product of (A r_x,
n) and (n, B r_y) holds all A B covariances, and 2 sqrt(k) copies of blocks of rows are made where
one by one it would be k.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.ops.features import FourierKernel, fourier_features
from jaxcd.ops.platforms import block_of
from jaxcd.ops.threads import one_blas_thread

__all__ = [
    "BLOCK",
    "centred_features",
    "draw_first_shift",
    "draw_orders",
    "hsic",
    "hsic_dense",
    "hsic_shifted",
    "leading_components",
    "leading_features",
    "principal_features",
    "row_order",
    "permuted_squares",
    "shifted_squares",
    "shuffled_rows",
    "split_observed",
]

_HIGHEST = jax.lax.Precision.HIGHEST
#: Rows of a block of shifted products, by platform.
BLOCK = {"cpu": 2048, "gpu": 1 << 17}
#: Principal components that :func:`leading_features` keeps.
N_LEADING = 16


@partial(jax.jit, static_argnames="kernel")
def centred_features(values: jax.Array, kernel: FourierKernel) -> jax.Array:
    """Features of values (n,), centred over the rows, transposed: (2 J, n); the constant feature,
    centred, is zero.

    They are moved by those of the first row before the mean is taken: of equal values all are
    exactly 0, however a mean is rounded.
    """
    features = fourier_features(values, kernel)[:, 1:].T
    moved = features - features[:, :1]
    return moved - moved.mean(axis=1, keepdims=True)


@partial(jax.jit, static_argnames="count")
def leading_components(phi: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """The leading principal components of centred features (r, n), (count, n), and the share of the
    trace that they do not hold.
    """
    values, vectors = jnp.linalg.eigh(
        jnp.matmul(phi, phi.T, precision=_HIGHEST) / phi.shape[1], symmetrize_input=False
    )
    values = jnp.maximum(values, 0)
    lost = values[:-count].sum() / jnp.maximum(values.sum(), jnp.finfo(phi.dtype).tiny)
    return jnp.matmul(vectors[:, -count:].T, phi, precision=_HIGHEST), lost


def leading_features(phi: jax.Array, *, tolerance: float = 1e-5) -> jax.Array:
    r"""The 16 leading principal components of centred features (r, n), (16, n), if they hold all
    but ``tolerance`` of the trace; else phi.

    The eigenvalues of a smooth kernel's covariance fall geometrically (by .38 for a Gaussian column
    and a bandwidth of one standard deviation), and the null costs r_x r_y a row.  With a share of
    at most d lost on each side T loses at most 2 d tr(A) tr(B), and under independence 2 d of
    itself.  The components are a function of the column as a set, whatever its order, so the null
    of :func:`hsic_shifted` stays exact.  The shape depends on the data: not for private use. The
    default tolerance is for single precision, of which 1e-4 is promised.
    """
    if phi.shape[0] <= N_LEADING:
        return phi
    with one_blas_thread():
        short, lost = leading_components(phi, N_LEADING)
        return short if float(lost) <= tolerance else phi


def principal_features(phi: jax.Array, count: int) -> jax.Array:
    """The ``count`` leading principal components of centred features (r, n): (min(count, r), n)."""
    if phi.shape[0] <= count:
        return phi
    with one_blas_thread():
        return jax.block_until_ready(leading_components(phi, count)[0])


@jax.jit
def hsic(phi: jax.Array, psi: jax.Array) -> jax.Array:
    """HSIC of centred features (r_x, n) and (r_y, n): |phi psi^T / n|_F^2, a scalar at least 0."""
    covariance = jnp.matmul(phi, psi.T, precision=_HIGHEST) / phi.shape[1]
    return jnp.sum(covariance**2)


def hsic_dense(gram_x: jax.Array, gram_y: jax.Array) -> jax.Array:
    """HSIC of two Gram matrices (n, n) of any kernels: tr(K H L H) / n^2.  The reference; quadratic
    in n.

    Source:
        Gretton et al. 2005.
    """
    centred = gram_x - gram_x.mean(axis=0) - gram_x.mean(axis=1, keepdims=True) + gram_x.mean()
    return jnp.sum(centred * gram_y.T) / gram_x.shape[0] ** 2


def shuffled_rows(values: np.ndarray, key: jax.Array) -> np.ndarray:
    """The rows in an order drawn without the data; sorted or serial rows would make shifts of
    themselves alike.
    """
    return values[row_order(len(values), key)]


def row_order(n: int, key: jax.Array) -> np.ndarray:
    """The order of :func:`shuffled_rows`: a permutation of 0, ..., n - 1."""
    seed = np.asarray(jax.random.key_data(key)).ravel().tolist()
    return np.random.default_rng(seed).permutation(n)


def draw_first_shift(key: jax.Array, n_permutations: int) -> int:
    """-m with m uniform on 0 .. k: the first of the k + 1 shifts.  Public: drawn without the
    data.
    """
    return -int(jax.random.randint(key, (), 0, n_permutations + 1))


def draw_orders(key: jax.Array, n: int, *, first: int, count: int) -> np.ndarray | None:
    """Orders of y's rows, where there are fewer rows than shifts, so that no shift comes twice:
    int32 (ceil(count / n), n), or None where there are rows enough.

    Shifts first + i n, first + i n + 1, ..., first + i n + n - 1 are of the rows in order i, drawn
    without the data; that of the rows as they are has the shift 0 among its own.  All shifts of one
    order are a coset of the cyclic group, and any coset may be the one with T_0 in it, at any of
    its places: so T_0 is one of exchangeable statistics under independence, as with one order.
    """
    if count <= n:
        return None
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    orders = np.array([rng.permutation(n) for _ in range(-(-count // n))], dtype=np.int32)
    orders[-first // n] = np.arange(n)
    return orders


def permuted_squares(
    phi: jax.Array,
    psi: jax.Array,
    orders: jax.Array | None,
    first: jax.Array,
    count: int,
    block: int,
) -> jax.Array:
    """:func:`shifted_squares` under the orders of :func:`draw_orders`: (count,)."""
    if orders is None:
        return shifted_squares(phi, psi, first, count, block)
    n = phi.shape[1]
    found = jax.lax.map(lambda order: shifted_squares(phi, psi[:, order], first, n, block), orders)
    return found.reshape(-1)[:count]


@partial(jax.jit, static_argnames=("count", "block"))
def shifted_squares(
    phi: jax.Array, psi: jax.Array, first: jax.Array, count: int, block: int
) -> jax.Array:
    """:func:`hsic_shifted` for a first shift from 0 to n - 1, by blocks of so many rows."""
    (r_x, n), r_y = phi.shape, psi.shape[0]
    rows = max(math.isqrt(count), 1)
    columns = -(-count // rows)
    # phi moved back by rows - 1, psi forward by first, each followed by its own beginning as far as
    # the slices reach.
    left = _cyclic(phi, -(rows - 1), n + rows - 1)
    right = _cyclic(psi, first, n + rows * (columns - 1))

    def add_block(start, size, total):
        # Entry (a, b): sum over i of phi[i - a] psi[i + first + rows b], the shift first + a + rows
        # b.
        stacks = (
            [
                jax.lax.dynamic_slice_in_dim(left, start + rows - 1 - a, size, axis=1)
                for a in range(rows)
            ],
            [
                jax.lax.dynamic_slice_in_dim(right, start + rows * b, size, axis=1)
                for b in range(columns)
            ],
        )
        stacked = [jnp.concatenate(stack) for stack in stacks]
        return total + jax.lax.dot_general(*stacked, (((1,), (1,)), ((), ())), precision=_HIGHEST)

    covariance = jnp.zeros((rows * r_x, columns * r_y), phi.dtype)
    n_full = n // block
    covariance = jax.lax.fori_loop(
        0, n_full, lambda i, total: add_block(i * block, block, total), covariance
    )
    if n % block:
        covariance = add_block(n_full * block, n % block, covariance)
    covariance = covariance / n
    squares = jnp.sum(covariance.reshape(rows, r_x, columns, r_y) ** 2, axis=(1, 3))
    return squares.T.reshape(-1)[:count]


def _cyclic(features: jax.Array, shift: jax.Array | int, length: int) -> jax.Array:
    """Columns shift, shift + 1, ... of the periodic continuation: (r, n) -> (r, length)."""
    n = features.shape[1]
    turned = jnp.roll(features, -shift, axis=1)
    return jnp.concatenate([turned] * (length // n) + [turned[:, : length % n]], axis=1)


def hsic_shifted(
    phi: jax.Array, psi: jax.Array, *, first: int, count: int, orders: np.ndarray | None = None
) -> jax.Array:
    """HSIC with y shifted cyclically by first, ..., first + count - 1 of shuffled rows: entry j is
    that of psi's column i + first + j against phi's column i, so entry -first is HSIC itself.  phi,
    psi: centred features (r, n).  Returns (count,).

    Where there are fewer rows than shifts, ``orders`` (:func:`draw_orders`) keeps any from coming
    twice.

    2 n r_x r_y count operations, in products of blocks of rows that stay in the cache; memory for
    one copy of phi and psi.
    """
    block = min(block_of(BLOCK), max(phi.shape[1], 1))
    start = jnp.asarray(first % phi.shape[1], jnp.int32)
    drawn = None if orders is None else jnp.asarray(orders)
    return permuted_squares(phi, psi, drawn, start, count, block)


def split_observed(shifted: np.ndarray, first: int) -> tuple[float, np.ndarray]:
    """T(0), and T at the other shifts (k,), of what :func:`hsic_shifted` returned for k + 1 shifts
    from ``first``.
    """
    return float(shifted[-first]), np.delete(shifted, -first)
