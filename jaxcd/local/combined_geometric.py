r"""The geometric mechanism on whole records: P[y | x] = p_max exp(-eps_x d(x, y)) over all cells of
the joint domain.

p_max is the same for all x; eps_x makes the probabilities sum to one. Cells are never enumerated:
with N_x[D] cells at distance D from x (:mod:`jaxcd.local.distances`), eps_x solves p_max * sum over
D of N_x[D] exp(-eps_x D) = 1, and depends on the class of x only.

Guarantee. Proof:

* epsilon_LDP = max over x of eps_x ecc(x), ecc(x) = max over y of d(x, y): as for one column, for
  given x and y no other record has a larger probability of y than y itself, p_max. The maximum runs
  over the classes of records. Where there are too many of them, eps_c ecc(corner) is reported,
  eps_c the rate at the centre. It is an upper bound: moving a coordinate towards the centre makes
  its differences stochastically smaller, so sum_y exp(-eps d(x, y)) grows for every eps, and with
  it eps_x; and ecc shrinks.
* d-privacy, Manhattan: every pair of records is joined by a shortest path of unit steps, so the
  largest loss per unit is that of a pair that differs by one step in one column. Let x be the outer
  and x' the inner of the two, D = eps_x' - eps_x >= 0. For y on x's side d(x', y) = d(x, y) + 1 and
  the loss eps_x' + d(x, y) D is largest at the largest d(x, y) = A on that side; for y on the side
  of x' it is |eps_x - d(x', y) D|, largest at one of the ends, d(x', y) = 0 and ecc(x) - 1. All
  classes, all steps.
* d-privacy, Euclidean and Chebyshev: exact by enumeration up to :data:`ENUMERATED_CELLS` cells.
  Beyond, an upper bound: the loss is |eps_x (d - d') + (eps_x - eps_x') d'| <= eps_c d(x, x') +
  |eps_x - eps_x'| ecc(corner), and with G_i the largest change of the rate in one step of column i,
  |eps_x - eps_x'| <= sum G_i |x_i - x_i'| <= |G|_2 d(x, x') (Euclidean) or |G|_1 d(x, x')
  (Chebyshev).
* Too many classes, any distance: eps_c + (eps_c - eps_corner) ecc(corner), because every eps_x lies
  between the two and d(x, x') >= 1.

Source:
    Binkyte et al. 2024 (the mechanism); sampler and guarantees are ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from jaxcd.data import Domain
from jaxcd.errors import OptionError
from jaxcd.local.arrays import Codes, Floats
from jaxcd.local.base import (
    DEEPEST,
    MAX_LEVELS,
    ROUNDING,
    CombinedMechanism,
    Distance,
    LocalGuarantee,
    check_probability,
    checked_cardinalities,
)
from jaxcd.local.bounded_geometric import TOO_SMALL, geometric_rows
from jaxcd.local.combined_sampling import sample_records
from jaxcd.local.distances import Layout, decay_rates
from jaxcd.local.uniforms import Uniforms
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["ENUMERATED_CELLS", "CombinedGeometric"]

PROOF = "docstring of jaxcd.local.combined_geometric"

ENUMERATED_CELLS = 512
"""Up to this many cells all triples (x, x', y) are gone through for the exact d-privacy."""

TABLE_SIZE = 2**23
"""Classes are enumerated if their counts at all distances take at most this many numbers (64
MiB).
"""


@final
@dataclass(frozen=True)
class CombinedGeometric(CombinedMechanism):
    """The geometric mechanism on whole records.

    Args:
        p_max: the probability that a whole record is reported as it is, in [1/cells, 1).
        distance: between records, over their level codes.

    Raises:
        OptionError: ``p_max`` is out of its range or ``distance`` is no :class:`Distance`.

    Guarantee:
        epsilon_LDP and d-privacy of the module's docstring, with :data:`ROUNDING` added; upper
        bounds are marked as such. Public: the declared levels. Proof: there.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> mechanism = jaxcd.local.CombinedGeometric(0.5, jaxcd.local.Distance.MANHATTAN)
        >>> round(mechanism.guarantee(domain).epsilon_ldp, 3)
        9.529
    """

    claim = GuaranteeClaim(
        "the epsilon_ldp and the d-privacy that guarantee(domain) reports, which are none of the "
        "published epsilon_x",
        assumptions="levels are public and ordered",
    )

    p_max: float
    distance: Distance

    def __post_init__(self) -> None:
        object.__setattr__(self, "p_max", check_probability(self.p_max))
        if not isinstance(self.distance, Distance):
            raise OptionError(
                f"distance must be a Distance, got {self.distance!r}: use Distance.MANHATTAN, "
                "EUCLIDEAN or CHEBYSHEV"
            )

    def check(self, domain: Domain) -> tuple[int, ...]:
        """See :meth:`LocalMechanism.check`."""
        cardinalities = checked_cardinalities(domain, max_levels=MAX_LEVELS, combined=True)
        n_cells = math.prod(cardinalities)
        if n_cells > 1 and not self.p_max * n_cells >= 1 - TOO_SMALL:
            raise OptionError(
                f"p_max must be at least 1/{n_cells:,} for a domain of that many cells, got "
                f"{self.p_max!r}: raise it"
            )
        Layout(cardinalities, self.distance)
        return cardinalities

    def guarantee(self, domain: Domain) -> LocalGuarantee:
        """See :meth:`LocalMechanism.guarantee`."""
        cardinalities = self.check(domain)
        constant = math.prod(cardinalities) == 1
        epsilon, d_privacy, p_truth = (0.0, True), (0.0, True), 1.0
        if not constant:
            epsilon = combined_epsilon(cardinalities, self.distance, self.p_max)
            d_privacy = combined_d_privacy(cardinalities, self.distance, self.p_max)
            p_truth = self.p_max
        reached = epsilon[0] <= DEEPEST
        return LocalGuarantee(
            epsilon_ldp=epsilon[0] + ROUNDING,
            d_privacy=d_privacy[0] + ROUNDING,
            distance=self.distance,
            p_truth_smallest=p_truth,
            p_truth_largest=p_truth,
            epsilon_ldp_exact=epsilon[1] and reached,
            d_privacy_exact=d_privacy[1] and reached,
            proved=True,
            proof=PROOF,
        )

    def cell_channel(self, cardinalities: Sequence[int]) -> Floats:
        """See :meth:`LocalMechanism.cell_channel`."""
        return geometric_rows(_cell_exponents(tuple(cardinalities), self.distance, self.p_max)[1])

    def randomised_codes(
        self, codes: Codes, cardinalities: Sequence[int], uniforms: Uniforms
    ) -> Codes:
        """See :meth:`LocalMechanism.randomised_codes`."""
        return sample_records(codes, Layout(cardinalities, self.distance), self.p_max, uniforms)


def combined_epsilon(
    cardinalities: tuple[int, ...], distance: Distance, p_max: float
) -> tuple[float, bool]:
    """epsilon_LDP by the module's docstring, without rounding, and whether it is exact."""
    layout = Layout(cardinalities, distance)
    if _too_many_classes(layout):
        rates, farthest = (
            layout.rates(layout.extremes(), p_max),
            layout.eccentricities(layout.extremes()),
        )
        return float(rates.max() * farthest.max()), False
    classes, counts, _ = _class_table(cardinalities, distance)
    rates = decay_rates(counts, layout.radii, p_max, start=layout.lowest_rate(p_max))
    return float((rates * layout.eccentricities(classes)).max()), True


def combined_d_privacy(
    cardinalities: tuple[int, ...], distance: Distance, p_max: float
) -> tuple[float, bool]:
    """d-privacy by the module's docstring, without rounding, and whether it is exact."""
    layout = Layout(cardinalities, distance)
    farthest = float(layout.eccentricities(layout.extremes()).max())
    if distance is not Distance.MANHATTAN and math.prod(cardinalities) <= ENUMERATED_CELLS:
        return _enumerated_d_privacy(cardinalities, distance, p_max), True
    if _too_many_classes(layout):
        corner, centre = layout.rates(layout.extremes(), p_max)
        return float(centre + (centre - corner) * farthest), False
    classes, counts, inner = _class_table(cardinalities, distance)
    rates = decay_rates(counts, layout.radii, p_max, start=layout.lowest_rate(p_max))
    # of one column towards the centre
    steps = np.where(inner >= 0, rates[inner] - rates[:, None], 0.0)
    if distance is Distance.MANHATTAN:
        eccentricity = layout.eccentricities(classes)[:, None]
        same_side = classes + eccentricity - (np.array(layout.levels) - 1 - classes)
        losses = np.maximum(
            rates[:, None] + steps + same_side * steps,
            np.abs(rates[:, None] - (eccentricity - 1) * steps),
        )
        # Without a step inwards (the middle of an even number of levels) rates are equal on both
        # sides: the loss is the rate.
        return max(float(np.where(inner >= 0, losses, 0.0).max()), float(rates.max())), True
    largest = steps.max(axis=0)
    for group in layout.groups:  # columns of equal k take each other's places in the classes
        largest[group] = largest[group].max()
    norm = np.linalg.norm(largest) if distance is Distance.EUCLIDEAN else largest.sum()
    return float(rates.max() + norm * farthest), False


def _too_many_classes(layout: Layout) -> bool:
    return layout.n_classes * len(layout.radii) > TABLE_SIZE


@lru_cache(maxsize=4)
def _class_table(
    cardinalities: tuple[int, ...], distance: Distance
) -> tuple[NDArray, NDArray, NDArray]:
    """All classes (n x d), their counts at each distance, and where each is one step further in (n
    x d; -1: no step).
    """
    layout = Layout(cardinalities, distance)
    classes = layout.all_classes()
    counts = np.concatenate(
        [layout.partials(classes[chunk]).exact[-1] for chunk in layout.chunks(len(classes))]
    )
    place = {tuple(row): i for i, row in enumerate(classes.tolist())}
    inner = np.full(classes.shape, -1, dtype=np.int64)
    for i, row in enumerate(classes.tolist()):
        for group in layout.groups:
            for m in range(group.start, group.stop):
                if row[m] + 1 <= (layout.levels[m] - 1) // 2:
                    moved = sorted([*row[group.start : m], row[m] + 1, *row[m + 1 : group.stop]])
                    inner[i, m] = place[(*row[: group.start], *moved, *row[group.stop :])]
    for array in (classes, counts, inner):
        array.setflags(write=False)
    return classes, counts, inner


def _cell_exponents(
    cardinalities: tuple[int, ...], distance: Distance, p_max: float
) -> tuple[NDArray, NDArray, NDArray]:
    """d(x, y) and eps_x d(x, y) over all pairs of cells, in C order, and one cell of each class."""
    cells = np.array(list(itertools.product(*map(range, cardinalities))), dtype=np.int32)
    total = np.zeros((len(cells), len(cells)))
    for column in cells.T.astype(np.float64):
        difference = np.abs(column[:, None] - column)
        if distance is Distance.CHEBYSHEV:
            np.maximum(total, difference, out=total)
        else:
            total += difference**2 if distance is Distance.EUCLIDEAN else difference
    distances = np.sqrt(total) if distance is Distance.EUCLIDEAN else total
    layout = Layout(cardinalities, distance)
    classes, first, which = np.unique(
        layout.classes_of(cells)[0], axis=0, return_index=True, return_inverse=True
    )
    return distances, layout.rates(classes, p_max)[which.reshape(-1), None] * distances, first


def _enumerated_d_privacy(
    cardinalities: tuple[int, ...], distance: Distance, p_max: float
) -> float:
    """The largest loss per distance over all triples; x runs over one cell a class, the others
    being its mirror images.
    """
    distances, exponents, representatives = _cell_exponents(cardinalities, distance, p_max)
    worst = 0.0
    for x in representatives:
        others = np.arange(len(distances)) != x
        losses = np.abs(exponents[x] - exponents[others]).max(axis=1) / distances[x, others]
        worst = max(worst, float(losses.max(initial=0.0)))
    return worst
