r"""How many records lie at which distance: the arithmetic behind the combined geometric mechanism.

Level j of k levels has one level at difference 0, two at each difference up to f = min(j,
k - 1 - j), and one at each difference from there to k - 1 - f. So the counts depend on (f, k)
alone, and those of a whole record only on the multiset of its (f_i, k_i): its *class*. Classes are
written with the columns ordered by k and, within equal k, by f.

For sums of steps s(t) = t (Manhattan) or t^2 (squared Euclidean), the number of records at total D
over the first m columns is a convolution, N_m[D] = sum over t of n_m(t) N_{m-1}[D - s(t)]. For the
maximum (Chebyshev), with n_m(<= r) the number of levels within r: E_m[r] = n_m(r) B_{m-1}[r] +
n_m(<= r - 1) E_{m-1}[r], where B_m[r] = n_1(<= r) ... n_m(<= r) counts the records within r and
E_m[r] those at exactly r.

Precision. The counts exceed 2^53 on large domains and are kept in float64: all terms are sums of
products of positive numbers, so nothing cancels, and the relative error stays below (number of
terms) 2^-53, some 1e-13 on the largest domains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from jaxcd.errors import DomainError
from jaxcd.local.arrays import Codes, Floats, Integers
from jaxcd.local.base import Distance

__all__ = ["MAX_RADII", "Layout", "Partials", "decay_rates", "level_counts"]

MAX_RADII = 2**18
"""Domains with more different distances are refused: bins that fine serve nobody."""


def level_counts(folds: Integers, n_levels: int) -> Floats:
    """n(t), the number of levels at difference t from a level, for t = 0, ..., n_levels - 1.

    Args:
        folds: min(j, n_levels - 1 - j) of the levels j, shape (n,).
        n_levels: k.

    Returns:
        n x n_levels counts of 0, 1 and 2.
    """
    t = np.arange(n_levels)
    reach = folds[:, None]
    return np.where(
        t == 0, 1.0, np.where(t <= reach, 2.0, np.where(t <= n_levels - 1 - reach, 1.0, 0.0))
    )


def decay_rates(counts: Floats, radii: Floats, p_max: float, *, start: float = 0.0) -> Floats:
    """The rate eps of each row with p_max * sum over D of counts[D] exp(-eps radii[D]) = 1.

    Without the record itself: h(eps) = ln sum_{D > 0} counts[D] exp(-eps radii[D]) - ln((1 - p_max)
    / p_max), which is convex and decreasing: Newton's steps arrive at the left of the root at once
    and never pass it again, from any start. h(0) >= 0 because p_max is at least one over the number
    of records; a value below 0 by rounding means the rate 0.

    Args:
        counts: n x n_radii, counts[:, 0] = 1.
        radii: n_radii distances, radii[0] = 0, radii[1:] at least 1.
        p_max: in (0, 1).
        start: a rate that none is below, such as that of a corner; it only saves time.

    Returns:
        The rates, shape (n,), not negative.
    """
    others, distances = counts[:, 1:], radii[1:]
    target = math.log1p(-p_max) - math.log(p_max)
    rates = np.full(len(counts), start)
    # one cell: any rate will do
    active = np.arange(len(counts)) if others.any() else np.zeros(0, dtype=np.int64)
    for _ in range(200):
        if not active.size:
            break
        terms = others[active] * np.exp(-rates[active, None] * distances)
        total = terms.sum(axis=1)
        unit = total / (terms @ distances)  # one over the mean distance, the scale of the rates
        steps = (np.log(total) - target) * unit
        rates[active] = np.maximum(rates[active] + steps, 0.0)
        active = active[np.abs(steps) > 1e-14 * (rates[active] + unit)]
    return rates


@dataclass(frozen=True, eq=False)
class Partials:
    """Counts over the first m columns for each of some classes.

    Args:
        exact: for m = 0, ..., d: n_classes x n_radii(m), the records at exactly each (squared)
            distance.
        within: Chebyshev only: those within each distance, else empty.
    """

    exact: tuple[Floats, ...]
    within: tuple[Floats, ...]


class Layout:
    """The columns of a domain as a combined geometric mechanism sees them.

    Args:
        cardinalities: levels of each column.
        distance: between records.

    Raises:
        DomainError: there are too many different distances.
    """

    def __init__(self, cardinalities: Sequence[int], distance: Distance) -> None:
        self.distance = distance
        self.columns = [int(j) for j in np.argsort(cardinalities, kind="stable")]
        self.levels = [cardinalities[j] for j in self.columns]
        self.groups = [  # positions of the columns with equal numbers of levels, consecutive
            slice(self.levels.index(k), self.levels.index(k) + self.levels.count(k))
            for k in sorted(set(self.levels))
        ]
        top = [self.step(k - 1) for k in self.levels]
        n_radii = 1 + (max(top) if distance is Distance.CHEBYSHEV else sum(top))
        if n_radii > MAX_RADII:
            raise DomainError(
                f"domain: records have {n_radii:,} different {distance.value} distances, more "
                f"than {MAX_RADII:,}; declare fewer bins"
            )
        steps = np.arange(n_radii, dtype=np.float64)
        self.radii = np.sqrt(steps) if distance is Distance.EUCLIDEAN else steps

    def step(self, difference: int) -> int:
        """s(t): what a difference of t levels adds to the (squared) distance."""
        return difference**2 if self.distance is Distance.EUCLIDEAN else difference

    def classes_of(self, codes: Codes) -> tuple[Integers, Integers]:
        """The class of each row of codes, n x d, and the columns it took its entries from, n x
        d.
        """
        tops = np.array(self.levels) - 1
        values = codes[:, self.columns].astype(np.int64)
        folds = np.minimum(values, tops - values)
        order = np.empty(folds.shape, dtype=np.int64)
        for group in self.groups:
            order[:, group] = group.start + np.argsort(folds[:, group], axis=1, kind="stable")
        return np.take_along_axis(folds, order, axis=1), np.array(self.columns)[order]

    @property
    def n_classes(self) -> int:
        """How many classes of records there are."""
        sizes = [
            (group.stop - group.start, -(-self.levels[group.start] // 2)) for group in self.groups
        ]
        return math.prod(math.comb(folds + size - 1, size) for size, folds in sizes)

    def all_classes(self) -> Integers:
        """Every class, n_classes x d, from the corner (all zero) to the centre."""
        parts = [
            list(
                combinations_with_replacement(
                    range(-(-self.levels[group.start] // 2)), group.stop - group.start
                )
            )
            for group in self.groups
        ]
        return np.array(
            [[fold for part in parts_of for fold in part] for parts_of in product(*parts)],
            dtype=np.int64,
        )

    def extremes(self) -> Integers:
        """The classes of the corners and of the centre, 2 x d."""
        return np.array(
            [[0] * len(self.levels), [(k - 1) // 2 for k in self.levels]], dtype=np.int64
        )

    def eccentricities(self, classes: Integers) -> Floats:
        """The distance from each class to the record farthest from it, shape (n,)."""
        farthest = np.array(self.levels) - 1 - classes
        if self.distance is Distance.CHEBYSHEV:
            return farthest.max(axis=1).astype(np.float64)
        if self.distance is Distance.EUCLIDEAN:
            return np.sqrt((farthest**2).sum(axis=1).astype(np.float64))
        return farthest.sum(axis=1).astype(np.float64)

    def chunks(self, n_classes: int) -> Iterator[slice]:
        """Slices of classes whose partial counts fit into some 64 MiB."""
        size = max(1, 2**23 // (len(self.radii) * (len(self.levels) + 1)))
        for start in range(0, n_classes, size):
            yield slice(start, min(start + size, n_classes))

    def partials(self, classes: Integers) -> Partials:
        """The counts of the module's docstring for each class (n x d)."""
        if self.distance is Distance.CHEBYSHEV:
            return self._partials_of_maximum(classes)
        exact = [np.ones((len(classes), 1))]
        for m, k in enumerate(self.levels):
            counts, before = level_counts(classes[:, m], k), exact[-1]
            reach = before.shape[1]
            now = np.zeros((len(classes), reach + self.step(k - 1)))
            for t in range(k):
                now[:, self.step(t) : self.step(t) + reach] += counts[:, t : t + 1] * before
            exact.append(now)
        return Partials(tuple(exact), ())

    def _partials_of_maximum(self, classes: Integers) -> Partials:
        n_radii = len(self.radii)
        exact, within = [np.zeros((len(classes), n_radii))], [np.ones((len(classes), n_radii))]
        exact[0][:, 0] = 1.0
        for m, k in enumerate(self.levels):
            counts = np.zeros((len(classes), n_radii))
            counts[:, :k] = level_counts(classes[:, m], k)
            upto = np.cumsum(counts, axis=1)
            exact.append(counts * within[-1] + (upto - counts) * exact[-1])
            within.append(upto * within[-1])
        return Partials(tuple(exact), tuple(within))

    def rates(self, classes: Integers, p_max: float) -> Floats:
        """eps_x of each class (n x d), shape (n,)."""
        start = self.lowest_rate(p_max)
        chunks = [self.partials(classes[chunk]).exact[-1] for chunk in self.chunks(len(classes))]
        return np.concatenate(
            [decay_rates(counts, self.radii, p_max, start=start) for counts in chunks]
        )

    def lowest_rate(self, p_max: float) -> float:
        """The rate at a corner: no record has a lower one."""
        return float(
            decay_rates(self.partials(self.extremes()[:1]).exact[-1], self.radii, p_max)[0]
        )
