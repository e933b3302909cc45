r"""Exponentially tilted second moments: bounded in every row, and undone exactly for jointly normal
rows.

A row y of p numbers becomes g = exp(-s |y|^2 / 2) (c, y), with a rate s > 0 and an anchor c > 0;
the moments are the sum over rows of g g^T, (p + 1, p + 1).  Far rows fade out instead of being cut
off.

*Sensitivity.*  The upper triangle with its diagonal divided by sqrt 2 has, between rows g and g',
the squared distance |g g^T - g' g'^T|_F^2 / 2 = (|g|^4 + |g'|^4) / 2 - (g . g')^2 <= max |g|^4, and
|g|^2 = (c^2 + t) exp(-s t), t = |y|^2, is largest at t = 1/s - c^2 (at 0 if that is negative).  So
the L2 sensitivity of all p (p + 3) / 2 + 1 numbers together is

    max |g|^2 = exp(s c^2 - 1) / s   (s c^2 <= 1; otherwise c^2),

reached by orthogonal rows: tight, and the diagonal comes free.  (Entrywise clipping to [-1, 1] has
sqrt((p + 1)^2 + p), for a signal that is smaller.)

*Rounding.*  Each number of g is rounded to a multiple of a public step, a power of two of 2^-18 to
2^-17 of max |g|.  Then products are whole multiples of its square below 2^36, those of 4,096 rows
add up below 2^48 without error in double precision, in any order, and blocks are added as integers:
the sum is exact for any number of rows.  A rounded row is longer by at most sqrt(p + 1) / 2 steps,
which is counted in the sensitivity; what is left is the rounding of the one conversion at the end.

*Untilting.*  For y normal with mean mu and covariance Sigma, E[exp(-s |y|^2) h(y)] = kappa E h(y~)
with y~ normal of covariance T = (Sigma^{-1} + 2 s I)^{-1} and mean nu = T Sigma^{-1} mu.  The
moments hold kappa, kappa nu and kappa (T + nu nu^T), so

    Sigma = (T^{-1} - 2 s I)^{-1},   mu = Sigma T^{-1} nu.

For rows of another elliptical law whose covariance is near the identity the tilt changes
covariances by a common factor only.

*Errors.*  In the eigenbasis of T, with l the eigenvalues of Sigma, d Sigma_jk = (1 + 2 s l_j)
(1 + 2 s l_k) d T_jk to first order. T_jk has sampling variance q m_j m_k / n, with m = l / (1 + 4 s
l) and q = prod (1 + 2 s l) / prod (1 + 4 s l)^{1/2}, and noise variance tau^2 = (sigma / (n
kappa))^2, where sigma is the standard deviation of the noise off the diagonal of the moments; both
are twice that on the diagonal, so both errors are invariant under rotations up to the scales.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.ops.people import RECORD

__all__ = [
    "ExactSum",
    "Untilted",
    "best_rate",
    "conversion_error",
    "gram",
    "gram_of_steps",
    "gram_sensitivity",
    "gram_steps",
    "pack",
    "relative_variances",
    "unpack",
    "untilt",
]

# Rows are taken in blocks that stay in the cache.
_BLOCK = 1 << 12
# Weighted rows whose products are added up in double precision, and the bits of half a weight.
_FEW, _HALF = 16, 10


def gram(
    values: np.ndarray, *, rate: float, anchor: float, weights: np.ndarray | None = None
) -> np.ndarray:
    """The tilted moments, (n, p) -> (p + 1, p + 1), of rows rounded to the grid: exact but for
    their conversion to double precision.

    A row whose numbers overflow when squared counts as infinitely far: zero.

    Args:
        values: y.
        rate: s.
        anchor: c.
        weights: of the rows, in units of 2^-20 (:mod:`jaxcd.ops.people`); None counts each once.
    """
    whole = gram_steps(values, rate=rate, anchor=anchor, weights=weights)
    return gram_of_steps(whole, rate=rate, anchor=anchor, weighted=weights is not None)


def gram_of_steps(whole: ExactSum, *, rate: float, anchor: float, weighted: bool) -> np.ndarray:
    """The tilted moments of their exact sum (:func:`gram_steps`)."""
    return whole.value() * (_step(rate, anchor) ** 2 * (RECORD if weighted else 1.0))


def gram_steps(
    values: np.ndarray,
    *,
    rate: float,
    anchor: float,
    weights: np.ndarray | None = None,
    empty: Callable[[tuple[int, int]], ExactSum] | None = None,
) -> ExactSum:
    """The tilted moments in squared steps of the grid, times the units of the weights: whole
    numbers, which follow from each row alone.

    Args:
        values: as for :func:`gram`.
        rate: as ``values``.
        anchor: as ``values``.
        weights: as ``values``.
        empty: the sum of no rows, of a shape; None for :class:`ExactSum`.
    """
    step = _step(rate, anchor)
    whole = (empty or ExactSum)((values.shape[1] + 1, values.shape[1] + 1))
    for start in range(0, len(values), _BLOCK):
        block = np.ascontiguousarray(values[start : start + _BLOCK])
        with np.errstate(over="ignore"):
            squares = np.zeros(len(block))
            for column in block.T:  # in the order of the columns, whatever else is in the block
                squares += column * column
            weight = np.exp(-rate / 2 * squares)
        # A row that far out has the weight 0 exactly; its numbers are replaced, because infinity
        # times 0 is not 0.
        rows = np.column_stack(
            [anchor * weight, np.where(weight[:, None] > 0, block, 0.0) * weight[:, None]]
        )
        steps = np.rint(rows / step)
        whole.add_products(steps, None if weights is None else weights[start : start + _BLOCK])
    return whole


def _longest(rate: float, anchor: float) -> float:
    """max |g|^2, rounded up."""
    inner = rate * anchor**2
    value = math.exp(inner - 1) / rate if inner <= 1 else anchor**2
    # for the rounding of |y|^2 and exp, in rows of up to some thousand numbers
    return value * (1 + 2.0**-40)


def _step(rate: float, anchor: float) -> float:
    """The grid of the rows: a power of two, at most 2^-17 of the longest row."""
    return 2.0 ** (math.ceil(math.log2(math.sqrt(_longest(rate, anchor)))) - 18)


def gram_sensitivity(*, rate: float, anchor: float, n_columns: int) -> float:
    """L2 sensitivity (replace-one) of :func:`pack` of the moments: exp(s c^2 - 1) / s, or c^2 where
    s c^2 > 1, and what rounding the rows of p numbers to the grid may add; rounded up.

    Args:
        n_columns: p.
    """
    longer = math.sqrt(n_columns + 1) / 2 * _step(rate, anchor)
    return (math.sqrt(_longest(rate, anchor)) + longer) ** 2 * (1 + 2.0**-40)


def conversion_error(n_samples: int, bound: float) -> float:
    """A bound on the error of an exact sum of n products of size at most ``bound`` after conversion
    and packing: three roundings.
    """
    return n_samples * bound * 2.0**-51


class ExactSum:
    """A sum of arrays of whole numbers of size below 2^53, exact however many they are: two int64
    words an entry, which are its leaves as a tree of arrays.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._high, self._low = np.zeros((2, *shape), dtype=np.int64)

    @classmethod
    def of_words(cls, high: np.ndarray, low: np.ndarray) -> ExactSum:
        """high 2^32 + low, or the sum of several such: words of sums may be added up."""
        total = cls(())
        total._high, total._low = high, low
        return total

    def add(self, part: np.ndarray) -> None:
        """part: float64 of whole numbers, (shape)."""
        self._add(part.astype(np.int64))

    def _add(self, whole: np.ndarray) -> None:
        self._high += whole >> 32
        self._low += whole & 0xFFFFFFFF

    def add_products(self, rows: np.ndarray, weights: np.ndarray | None) -> None:
        """Adds the sum over rows of weight * row row^T.

        Args:
            rows: whole numbers of size below 2^18, float64 (at most 4,096, d).
            weights: whole numbers from 0 to 2^20, or None for 1.  They are taken in two halves of
                ten bits (the upper one to eleven), in which the products of 16 rows add up to at
                most 2^4 2^36 2^11 = 2^51: exact in double precision, in any order.
        """
        if weights is None:
            self.add(rows.T @ rows)
            return
        padded = -(-len(rows) // _FEW) * _FEW - len(rows)
        few = np.pad(rows, ((0, padded), (0, 0))).reshape(-1, _FEW, rows.shape[1])
        for half, shift in ((weights >> _HALF, _HALF), (weights & ((1 << _HALF) - 1), 0)):
            heavy = few * np.pad(half, (0, padded)).reshape(-1, _FEW, 1).astype(np.float64)
            for part in np.matmul(heavy.transpose(0, 2, 1), few).astype(np.int64):
                self._add(part << shift)

    def __add__(self, other: ExactSum) -> ExactSum:
        total = ExactSum(self._high.shape)
        total._high = self._high + other._high + ((self._low + other._low) >> 32)
        total._low = (self._low + other._low) & 0xFFFFFFFF
        return total

    def value(self) -> np.ndarray:
        """The sum in float64: rounded once."""
        carried = self._high + (self._low >> 32)
        return carried.astype(np.float64) * 2.0**32 + (self._low & 0xFFFFFFFF).astype(np.float64)


jax.tree_util.register_pytree_node(
    ExactSum,
    lambda total: ((total._high, total._low), None),
    lambda _, words: ExactSum.of_words(*words),
)


def pack(moments: np.ndarray) -> np.ndarray:
    """The upper triangle, its diagonal divided by sqrt 2, row by row: (d, d) -> (d (d + 1) /
    2,).
    """
    rows, columns = np.triu_indices(len(moments))
    return np.where(rows == columns, math.sqrt(0.5), 1.0) * moments[rows, columns]


def unpack(vector: np.ndarray, size: int) -> np.ndarray:
    """The inverse of :func:`pack`: (d (d + 1) / 2,) -> symmetric (d, d)."""
    rows, columns = np.triu_indices(size)
    moments = np.zeros((size, size))
    moments[rows, columns] = np.where(rows == columns, math.sqrt(2.0), 1.0) * vector
    return moments + np.triu(moments, 1).T


@dataclass(frozen=True)
class Untilted:
    """What noisy tilted moments say of rows y.

    Args:
        mean: (p,).
        variances: l, eigenvalues of the covariance, positive, ascending.
        directions: eigenvectors, (p, p), one a column.
        tau: noise on an entry of T off the diagonal.
        rate: s.
        n_samples: n.
        is_told: which variances are as the moments have them, neither raised to the noise nor cut,
            bool (p,).
    """

    mean: np.ndarray
    variances: np.ndarray
    directions: np.ndarray
    tau: float
    rate: float
    n_samples: int
    is_told: np.ndarray

    @property
    def stretch(self) -> np.ndarray:
        """1 + 2 s l: what multiplies an error in T, once for each index, (p,)."""
        return 1 + 2 * self.rate * self.variances

    @property
    def sampling(self) -> np.ndarray:
        """sqrt(q) m: T_jk has the sampling variance sampling_j sampling_k / n, (p,)."""
        shrunk = 1 + 4 * self.rate * self.variances
        return np.sqrt(np.prod(self.stretch / np.sqrt(shrunk))) * self.variances / shrunk


def untilt(
    moments: np.ndarray, *, n_samples: int, rate: float, anchor: float, sigma: float
) -> Untilted:
    """Undoes the tilt of noisy moments, (p + 1, p + 1).

    Args:
        sigma: standard deviation of the noise off the diagonal.  The total weight kappa is floored
            at its noise, the eigenvalues of T at tau sqrt(p) (half the largest eigenvalue of pure
            noise is about that) and cut at .8 / (2 s), where Sigma would be infinite.
    """
    p = len(moments) - 1
    kappa = max(
        moments[0, 0] / anchor**2 / n_samples, math.sqrt(2) * sigma / anchor**2 / n_samples, 1e-6
    )
    tau = sigma / n_samples / kappa
    nu = moments[0, 1:] / (anchor * n_samples * kappa)
    values, directions = np.linalg.eigh(moments[1:, 1:] / (n_samples * kappa) - np.outer(nu, nu))
    largest = 0.8 / (2 * rate)
    least = min(max(tau * math.sqrt(p), 1e-9), largest)
    is_told = (least < values) & (values < largest)
    values = np.clip(values, least, largest)
    variances = values / (1 - 2 * rate * values)
    mean = directions @ ((1 + 2 * rate * variances) * (directions.T @ nu))
    return Untilted(mean, variances, directions, tau, rate, n_samples, is_told)


def relative_variances(
    variances: np.ndarray, *, n_samples: int, rate: float, anchor: float, rho: float
) -> tuple[float, float]:
    r"""Sampling and noise variance of an entry of the covariance, in units where the covariance is
    the identity, on average.

    q / n (mean_j (1 + 2 s l_j)^2 / (1 + 4 s l_j))^2  and  tau^2 (mean_j (1 + 2 s l_j)^2 / l_j)^2.
    """
    stretch, shrunk = 1 + 2 * rate * variances, 1 + 4 * rate * variances
    log_kappa = -0.5 * np.log(stretch).sum()
    q = math.exp(-0.5 * np.log(shrunk).sum() - 2 * log_kappa)
    sampling = q / n_samples * float(np.mean(stretch**2 / shrunk)) ** 2
    if math.isinf(rho):
        return sampling, 0.0
    tau = (
        gram_sensitivity(rate=rate, anchor=anchor, n_columns=len(variances))
        / math.sqrt(2 * rho)
        / n_samples
        * math.exp(-log_kappa)
    )
    return sampling, tau**2 * float(np.mean(stretch**2 / variances)) ** 2


def best_rate(variances: np.ndarray, *, n_samples: int, anchor: float, rho: float) -> float:
    """The rate with the smallest sum of :func:`relative_variances`, for rows with (about) these
    variances; from public facts.

    Searched from 1/50 to 3 times 1 / (sum of the variances + 2): never 0, also without noise, so
    that rows stay bounded.
    """
    return _best_rate(tuple(np.asarray(variances).tolist()), n_samples, anchor, rho)


@functools.lru_cache(maxsize=64)  # a release asks the same before and after its first charge
def _best_rate(each: tuple[float, ...], n_samples: int, anchor: float, rho: float) -> float:
    variances = np.array(each)
    rates = np.geomspace(0.02, 3, 101) / (float(np.sum(variances)) + 2)
    costs = [
        sum(relative_variances(variances, n_samples=n_samples, rate=s, anchor=anchor, rho=rho))
        for s in rates
    ]
    return float(rates[int(np.argmin(costs))])
