r"""An effect from noisy tables: estimate and interval by the likelihood of counts under sampling
and noise together.

The table of an adjustment set has cells (x, y, z), z the strata.  A cell with the expected count
mu_c = n p_c is seen as T_c, a count with noise of variance v: its variance is mu_c + v.  Its
likelihood is taken as that of a shifted Poisson count, which has this mean and this variance,

    l(mu) = sum_c (T_c + v) log(mu_c + v) - mu_c,      sum mu = n,

exact (multinomial) without noise, and concave.  The effect is

    D(p) = sum_z p(z) sum_y s(y) (p(y | to, z) - p(y | from, z)),

or the formula of several tables (:mod:`jaxcd.effects.families`), whose likelihoods are multiplied.
The estimate is D at the maximum of l: without noise the formula on the counts.  The interval has
all values of D that are reached where l is within kappa q / 2 of its maximum, q the quantile of
chi-square with one degree of freedom: the profile likelihood ratio.  kappa is 1 where the noise is
independent between cells of one table; otherwise it is the variance of the estimate over what l
takes it to be, both to first order.  Where counts below zero make the part of sampling negative,
both are those of the noise alone.

*Rows that may be empty.*  mu_c >= 0 makes estimates of many small cells too large, all of them, and
the interval then covers too little.  So it is asked for only in the rows of a table (the cells that
a conditional probability divides) whose sum is within 5 standard deviations of its noise: there D
needs it, and is wide, up to all that is possible.  The rows with more may have any mu_c > -v.  The
5 was chosen on Sachs, Asia and Child by ``benchmarks.effects`` and is not derived.  An interval
that is half as wide as what is possible covers nearly always; where many are, more cover than they
say.

*The ends* are the largest and smallest D in a convex set, found by steps to the point of the set
that is best for the present gradient (Frank and Wolfe): mu_c + v = t (T_c + v) / (eta - g_c),
clipped at mu_c = 0 where that is asked for, for two numbers t and eta.  The rows of a stratum and
treatment are at first taken to be a few more, and then less and less, so that the gradient stays
finite where there are none.  Where noise may hide an empty row, the steps begin a second time,
at a likely table with no empty cell, and the farther end counts.

Source:
    Owen 1988 and Wilks 1938 for likelihood ratio intervals of functionals; Snyder, Hammoud, White
    1993 for the shifted Poisson likelihood; Frank and Wolfe 1956.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np
from scipy import special

__all__ = [
    "Contrast",
    "Functional",
    "Interval",
    "likeliest",
    "profile_interval",
    "profile_of_tables",
]

_FULL = 5.0  # standard deviations of its noise: a row with more is surely not empty
_LEAST = 1e-9  # of a cell's weight, in records
_NONE = 1e-6  # rows more in each stratum, in the place of none
_STAGES = (1.0, 0.1, 0.01, 1e-3, 1e-4)
_STEPS = 6
_FAR = 60.0  # of the logarithm of t
_CLOSE = 0.002  # of the loss
_ALONG = (1.0, 0.5, 0.2, 0.05, 0.01)
_GAIN = 1e-5  # of the span: what a step must bring


@final
@dataclass(frozen=True, eq=False)
class Interval:
    """An estimate with its interval, whose ends are computed when they are asked for.

    Args:
        estimate: between the ends.
        standard_error: to first order; NaN where there is none.
        ends: computes the lower and the upper end.
    """

    estimate: float
    standard_error: float
    ends: Callable[[], tuple[float, float]]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self.ends()

    @property
    def low(self) -> float:
        """The lower end."""
        return self._ends[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self._ends[1]


@final
@dataclass(frozen=True)
class Contrast:
    """What is asked of a table (x, y, z).

    Args:
        start: the position of the level of x that is compared with.
        end: the position of the other one.
        scores: s(y), float64, one for each level of y.
    """

    start: int
    end: int
    scores: np.ndarray

    @property
    def span(self) -> float:
        """No effect is larger."""
        return float(np.ptp(self.scores))

    def value(self, table: np.ndarray, extra: float = 0.0) -> float:
        """D of a non-negative table (A, B, K).  ``extra`` rows with the mean of the stratum's other
        rows are added to each treatment and stratum.
        """
        return self._parts(table, extra)[0]

    def gradient(self, table: np.ndarray, extra: float = 0.0) -> np.ndarray:
        """The derivative of D by each cell times the number of rows."""
        value, share, means, rows, middle = self._parts(table, extra)
        total = table.sum()
        found = np.empty_like(table)
        found[:] = (means[1] - means[0]) - value
        for sign, level, mean, m in zip((-1, 1), (self.start, self.end), means, rows, strict=True):
            found[level] += sign * share * total / m * (self.scores[:, None] - mean)
        return found

    def _parts(
        self, table: np.ndarray, extra: float
    ) -> tuple[float, np.ndarray, list[np.ndarray], list[np.ndarray], float]:
        total = table.sum()
        share = table.sum(axis=(0, 1)) / total
        middle = float(self.scores @ table.sum(axis=(0, 2)) / total)
        means, rows = [], []
        for level in (self.start, self.end):
            m = np.maximum(table[level].sum(axis=0) + extra, 1e-12)
            means.append((self.scores @ table[level] + extra * middle) / m)
            rows.append(m)
        return float(share @ (means[1] - means[0])), share, means, rows, middle


class Functional(Protocol):
    """A number D that is asked of several tables, as one flat vector.

    Attributes:
        span: D is at most so large.
    """

    @property
    def span(self) -> float: ...

    def value(self, flat: np.ndarray, extra: np.ndarray) -> float:
        """D, with so many rows more in each stratum of each table."""

    def slope(self, flat: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """The derivative by each cell."""


@final
@dataclass(frozen=True)
class _OneTable:
    """A contrast as a functional."""

    contrast: Contrast
    shape: tuple[int, ...]

    @property
    def span(self) -> float:
        return self.contrast.span

    def value(self, flat: np.ndarray, extra: np.ndarray) -> float:
        return self.contrast.value(flat.reshape(self.shape), float(extra[0]))

    def slope(self, flat: np.ndarray, extra: np.ndarray) -> np.ndarray:
        table = flat.reshape(self.shape)
        return self.contrast.gradient(table, float(extra[0])).ravel() / table.sum()


@final
class _Likelihood:
    """l and its set of likely tables, flat, one after the other."""

    def __init__(
        self,
        tables: Sequence[np.ndarray],
        variances: np.ndarray,
        n: np.ndarray,
        axes: Sequence[int],
        *,
        signed: bool = True,
    ) -> None:
        self.sizes = np.array([table.size for table in tables])
        self._table = np.repeat(np.arange(len(tables)), self.sizes)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        self.variances, self.n = variances, n
        flat = np.concatenate([table.ravel() for table in tables])
        each = zip(tables, variances, axes, strict=True)
        seen = np.concatenate([_seen(table, v, axis).ravel() for table, v, axis in each])
        self.v = self.each(variances)
        self.floor = np.where((seen > _FULL) & signed, -self.v, 0.0)
        self.weight = np.maximum(flat + self.v, _LEAST)
        self._room = self.each(n - self.sums(self.floor)) + self.v
        self._limit, self._total = self.floor + self.v, n + self.sums(self.v)
        self.top = self._scaled(np.zeros(flat.size), 1.0)
        self.most = self(self.top)

    def __call__(self, mu: np.ndarray) -> float:
        return float(special.xlogy(self.weight, mu + self.v).sum())  # sum mu is n

    def each(self, of_tables: np.ndarray) -> np.ndarray:
        """A number of each table, for each of its cells."""
        found: np.ndarray = of_tables[self._table]
        return found

    def sums(self, flat: np.ndarray) -> np.ndarray:
        """Of each table."""
        return np.add.reduceat(flat, self._starts)

    def _most(self, flat: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(flat, self._starts)

    def _scaled(self, gradient: np.ndarray, t: float) -> np.ndarray:
        """The tables that maximise gradient . mu + t l(mu) among those with sums n."""
        lift = t * self.weight
        apart = self.each(self._most(gradient)) - gradient
        # Left of the root, from where Newton's steps of a convex falling function never pass it:
        # as if one cell had all, and as if all cells were one (Jensen).
        sums = self.sums(lift)
        near = np.maximum(
            self._most(lift / self._room - apart),
            sums / self._total - self.sums(lift * apart) / sums,
        )
        for _ in range(80):
            below = apart + self.each(near)
            raw = lift / below
            excess = self.sums(np.maximum(raw, self._limit)) - self._total
            slope = self.sums(np.where(raw > self._limit, raw / below, 0.0))
            open_ones = (excess > 1e-9 * self.n) & (slope > 0)
            if not open_ones.any():
                break
            near = near + np.where(open_ones, excess / np.where(slope > 0, slope, 1.0), 0.0)
        mu = np.maximum(lift / (apart + self.each(near)) - self.v, self.floor)
        found: np.ndarray = mu * self.each(self.n / self.sums(mu))
        return found

    def starts(self, loss: float) -> list[np.ndarray]:
        """Tables in the likely set from which to look for its ends: the likeliest and, where noise
        may hide an empty row, one towards equal cells.  The likeliest may have nearly all records
        in one cell, and then no step from there changes D to first order.
        """
        if not ((self.floor == 0) & (self.v > 0)).any():
            return [self.top]
        equal = self.each(self.n / self.sizes)
        tried = (self.top + way * (equal - self.top) for way in _ALONG)
        inside = [mu for mu in tried if self.most - self(mu) <= loss / 2]
        return [self.top, *inside[:1]]

    def farthest(self, gradient: np.ndarray, loss: float, start: float) -> tuple[np.ndarray, float]:
        """The best table for a gradient among those with l at least ``most - loss``, and its t."""
        low, high, log_t, slope = -_FAR, _FAR, math.log(start), -2.0
        best, last = self.top, None
        for step in range(60):
            mu = self._scaled(gradient, math.exp(log_t))
            # About -2 log t + constant, as where l is quadratic: Newton's steps, else halving.
            over = math.log(max((self.most - self(mu)) / loss, 1e-300))
            if over <= 0:
                best, high = mu, log_t
                if over > -_CLOSE:
                    break
            else:
                low = log_t
            if last is not None and log_t != last[0]:
                slope = min(max((over - last[1]) / (log_t - last[0]), -4.0), -0.5)
            last = (log_t, over)
            log_t -= (over + _CLOSE / 2) / slope
            if not low < log_t < high or step > 12:
                log_t = (low + high) / 2
            if high - low < 1e-6:
                break
        return best, math.exp(min(high, _FAR))


def _seen(table: np.ndarray, variance: float, axis: int) -> np.ndarray:
    """For each cell the sum over the axis in standard deviations of its noise."""
    rows = np.broadcast_to(table.sum(axis=axis, keepdims=True), table.shape)
    error = math.sqrt(variance * table.shape[axis])
    found: np.ndarray = rows / error if error else np.where(rows > 0, math.inf, 0.0)
    return found


def likeliest(table: np.ndarray, variance: float, n_samples: float) -> np.ndarray:
    """The table of expected counts where l is largest among those that are not negative, flat."""
    sizes = np.array([variance]), np.array([n_samples])
    return _Likelihood([table], *sizes, [0], signed=False).top


def profile_interval(
    table: np.ndarray,
    contrast: Contrast,
    *,
    variance: float,
    n_samples: float,
    noise: Callable[[np.ndarray], float] | None = None,
    level: float = 0.95,
) -> Interval:
    """Estimate and interval of an effect from one noisy table.

    Args:
        table: float64 (A, B, K), levels of x, levels of y, strata; possibly negative.
        contrast: the effect.
        variance: v of the noise on each cell, at least 0.
        n_samples: n, positive.
        noise: the variance of the noise on a sum of cells with given weights (A, B, K); None for
            noise that is independent between cells.
        level: of the interval, between 0 and 1.

    Returns:
        The estimate, and the ends of its interval.

    Source:
        module docstring.
    """
    return profile_of_tables(
        [table],
        _OneTable(contrast, table.shape),
        variances=[variance],
        n_samples=[n_samples],
        axes=[1],
        noise=None if noise is None else lambda weights: noise(weights[0]),
        level=level,
    )


def profile_of_tables(
    tables: Sequence[np.ndarray],
    functional: Functional,
    *,
    variances: Sequence[float],
    n_samples: Sequence[float],
    axes: Sequence[int],
    noise: Callable[[list[np.ndarray]], float] | None,
    level: float = 0.95,
) -> Interval:
    """Estimate and interval of a number that several noisy tables tell.

    Args:
        tables: float64, of any shape, possibly negative.
        functional: the number.
        variances: v of the noise on each cell of each table, at least 0.
        n_samples: n of each table, positive.
        axes: of each table that along which a column depends on the others.
        noise: the variance of the noise on a sum of cells with given weights, an array for each
            table; None for noise that is independent between cells.
        level: of the interval, between 0 and 1.

    Returns:
        The estimate, and the ends of its interval.

    Source:
        module docstring.
    """
    likelihood = _Likelihood(
        tables, np.array(variances, dtype=np.float64), np.array(n_samples, dtype=np.float64), axes
    )
    n, top, least = float(likelihood.n.max()), likelihood.top, np.full(len(tables), _NONE)
    estimate = functional.value(top, least)
    move = functional.slope(top, least)
    noisy = likelihood.v
    spread = top + noisy
    # Of the estimate: an error in cell c moves it by h_c; the totals are known.
    h = move - likelihood.each(likelihood.sums(move * spread) / likelihood.sums(spread))
    found = float((h**2 * top).sum()) - float((likelihood.sums(h * top) ** 2 / likelihood.n).sum())
    # Counts below zero may make it less than none: then there is noise alone.
    taken = float((h**2 * (spread if found > 0 else noisy)).sum())
    found = max(found, 0.0)
    if noise is None:
        found += float((noisy * h**2).sum())
    else:
        parts = np.split(h, np.cumsum(likelihood.sizes)[:-1])
        shaped = zip(parts, tables, strict=True)
        found += noise([part.reshape(table.shape) for part, table in shaped])
    kappa = found / taken if noise is not None and min(found, taken) > 0 else 1.0
    # A level below 2^-53 leaves 1: no set is likely, and nothing to divide by.
    loss = kappa * float(special.chdtri(1, min(1 - level, 1 - 2.0**-53))) / 2
    estimate = min(max(estimate, -functional.span), functional.span)
    # Where to begin looking for t.
    about = max(math.sqrt(max(taken, 1e-300) / 2 / loss) * n, 1e-9)

    def ends() -> tuple[float, float]:
        low, high = (_end(likelihood, functional, sign, loss, about) for sign in (-1.0, 1.0))
        return min(low, estimate), max(high, estimate)

    return Interval(estimate, math.sqrt(found), ends)


def _end(
    likelihood: _Likelihood, functional: Functional, sign: float, loss: float, t: float
) -> float:
    """The smallest (sign -1) or largest D in the likely set."""
    found = [_climbed(likelihood, functional, sign, loss, t, mu) for mu in likelihood.starts(loss)]
    return sign * max(sign * end for end in found)


def _climbed(
    likelihood: _Likelihood,
    functional: Functional,
    sign: float,
    loss: float,
    t: float,
    mu: np.ndarray,
) -> float:
    """The smallest (sign -1) or largest D that is reached from a table."""
    n, span = float(likelihood.n.max()), functional.span
    for stage in _STAGES:
        extra = stage * (1 + np.sqrt(likelihood.variances))
        now = sign * functional.value(mu, extra)
        for _ in range(_STEPS):
            gradient = sign * n * functional.slope(mu, extra)
            far, t = likelihood.farthest(gradient, loss, t)
            for way in _ALONG:
                ahead = mu + way * (far - mu)
                reached = sign * functional.value(ahead, extra)
                if reached > now + _GAIN * span:
                    break
            else:
                break
            mu, now = ahead, reached
    least = np.full(len(likelihood.n), _NONE)
    return min(max(functional.value(mu, least), -span), span)
