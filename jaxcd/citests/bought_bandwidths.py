r"""Bandwidths bought once: the exponential mechanism over a public grid.

A bandwidth read off the data voids every bound: one record can change a median distance by its
whole range (PRIVACY.md D4).  Here each column buys a factor s of the kernels' public bandwidths,
once, and every later test treats it as public (adaptive composition).

The utility of a factor is how close it brings the mean value of the kernel over all pairs of rows
to a target t in (0, 1),

    u(s) = -| n m(s) - n t |,    m(s) = (1 / n^2) sum_{i, j} k_s(x_i, x_j),

in records.  Both ends are useless (m = 1: a kernel that sees no difference; m = 1 / n: one that
sees no likeness), and m increases with the bandwidth; for normal data t = 1/2 is a bandwidth of
0.82 standard deviations, near the median heuristic.

**Sensitivity (replace-one, n public): 2 records.**  k(x, x) = 1 stays, and replacing a record
changes the 2 (n - 1) ordered pairs that it is in, each by at most 1 for a kernel in [0, 1]: n
|m - m'| <= 2 (n - 1) / n < 2; |. - n t| is 1-Lipschitz.  The series kernel may be negative by its
tolerance of 1e-8, which adds less than 1e-6.  Attained: all other rows at one place, the record
from there to far away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxcd.checks import check_number, hold_python_numbers
from jaxcd.errors import OptionError
from jaxcd.ops import features
from jaxcd.privacy import Accountant, select_max, split
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim

__all__ = ["SCALE_SENSITIVITY", "BoughtBandwidths", "buy_scales", "scale_utilities"]

SCALE_SENSITIVITY = 2 + 1e-6
"""Replace-one sensitivity of each utility, in records."""


@dataclass(frozen=True)
class BoughtBandwidths:
    r"""Bandwidths chosen privately, one factor a column, by the exponential mechanism.

    Args:
        share: of the budget, in (0, 1), for all columns together.
        grid: public factors of the bandwidths, positive, at least two, different.
        target: the mean kernel value aimed at, in (0, 1).

    Guarantee:
        Relation: replace-one; n, the bounds and all options are public.  Sensitivity of each
        utility: 2 records.  Event: one ``ExponentialMechanismEvent`` a column, charged when the
        session opens. Proof: module docstring, :func:`jaxcd.privacy.select_max`.

    Example:
        >>> import jaxcd
        >>> test = jaxcd.BoundedRCIT(scales=jaxcd.citests.BoughtBandwidths(share=0.2))
        >>> test.scales.share
        0.2
    """

    claim = GuaranteeClaim(
        "bandwidths of BoundedRCIT released by the exponential mechanism, utility sensitivity "
        f"{SCALE_SENSITIVITY:.4g} records",
        assumptions=PUBLIC + "; bounds and grid are public",
    )

    share: float = 0.1
    grid: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0)
    target: float = 0.5

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        for argument in ("share", "target"):
            check_number(argument, getattr(self, argument), 0, 1, "()", cure="give a share")
        if (
            not isinstance(self.grid, tuple)
            or len(set(self.grid)) != len(self.grid)
            or len(self.grid) < 2
        ):
            raise OptionError(
                f"grid = {self.grid!r} is not a choice; give a tuple of at least two different "
                "factors"
            )
        if not all(math.isfinite(factor) and factor > 0 for factor in self.grid):
            raise OptionError(
                f"grid = {self.grid!r}: factors of bandwidths are positive numbers; give such"
            )


def scale_utilities(
    column: np.ndarray, choice: BoughtBandwidths, *, bandwidth: float
) -> np.ndarray:
    """u(s) for each factor of the grid, in records: float64 (len(grid),).  column: (n,), in [-1,
    1]; sensitive.
    """
    n_samples = len(column)
    means = []
    for factor in choice.grid:
        kernel = features.fourier_kernel(length=2.0, bandwidth=factor * bandwidth)
        # |mean of the features|^2 = sum_j c_j |mean exp(i j w x)|^2: one pass a wave, no array
        # larger than the column.
        waves = (kernel.frequency * j * column for j in range(len(kernel.weights)))
        means.append(
            sum(
                c * (np.cos(w).mean() ** 2 + np.sin(w).mean() ** 2)
                for c, w in zip(kernel.weights, waves, strict=True)
            )
        )
    return -n_samples * np.abs(np.array(means) - choice.target)


def buy_scales(
    columns: Sequence[np.ndarray],
    names: Sequence[str],
    choice: BoughtBandwidths,
    accountant: Accountant | None,
    *,
    bandwidth: float,
) -> tuple[float, ...]:
    """The factor of each column: charged one by one at equal prices, or, without an accountant, the
    best of the grid.
    """
    utilities = [scale_utilities(column, choice, bandwidth=bandwidth) for column in columns]
    if accountant is None:
        return tuple(choice.grid[int(np.argmax(u))] for u in utilities)
    ledger = accountant.ledger
    parts = [choice.share / len(columns)] * len(columns) + [1 - choice.share]
    price = split(ledger.remaining_epsilon, parts)[0] if ledger.remaining_epsilon > 0 else 0.0
    if ledger.remaining_rho > 0:
        price = max(price, ledger.selection_within(split(ledger.remaining_rho, parts)[0]))
    pad = max(1e-6, len(columns[0]) * 2.0**-30)
    chosen = [
        select_max(
            accountant,
            u,
            sensitivity=SCALE_SENSITIVITY,
            pad=pad,
            epsilon=price,
            label=f"bandwidth of {name}",
        )
        for name, u in zip(names, utilities, strict=True)
    ]
    return tuple(choice.grid[place] for place in chosen)
