r"""Waves of a regression function: what repeats along a column, in periods short beside its
range.

A date says which day of the week it is, and a depth which layer.  Where E[y | Z] goes up and down
many times along a column, a kernel that is wide enough to learn everything else is too wide, and a
narrow one needs more rows than there are, all the more where Z has other columns.  What is left
then shows Z in x and in y: of two columns that are higher at weekends, dates of five years and
2,000 rows, all of 20 data sets were called dependent given the date at level .05.

*Terms.*  cos(w z_j) and sin(w z_j), of a column or of the weighted sum of all.  What repeats but is
no sine (weekends) has harmonics: these are waves, too, and are found one after another.

*Search.*  The periodogram of the residual u along z_j,

    P(w) = |sum of u exp(i w z_j)|^2 / (sum of u^2 / 2),

over the frequencies of 1 to 1,024 periods in the range of z_j in steps of a half, by a fast Fourier
transform of sums in 8,192 cells of equal width.  Without a wave P(w) is about chi-square with two
degrees of freedom, P(P > t) = exp(-t / 2), and the largest is that of about 2,048 independent ones
a column.  So a wave counts where

    P(w) > 2 log(32,768 m),

m the number of columns times that of targets: without one that happens in a sixteenth of the
targets, and costs them two parameters.  It must be clearer than the clearest jump
(:mod:`jaxcd.citests.jumps`), too.  The largest is then placed between its neighbours by the rows
themselves.

Source:
    Schuster 1898 for the periodogram; Lomb 1976 for rows at uneven places; Cooley and Tukey 1965.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["clearest_wave"]

_MOST_PERIODS, _STEPS = 1024, 2  # in the range of a column; steps a period
_CELLS = 8192
_FALSE_ONES = 32  # twice the number of targets without a wave of which one gets one
_EQUAL = 1e-9  # powers are equal up to this share; of equal ones the first counts
_DIGITS = 12  # of a frequency


def clearest_wave(
    column: np.ndarray, rests: Sequence[np.ndarray], *, n_searched: int, least: float = 0.0
) -> tuple[float, float]:
    """The largest power over the frequencies, and its angular frequency; (0, 0) where none is above
    a limit.

    Args:
        column: z_j, (n,).
        rests: residuals, each (n,), of which the largest counts.
        n_searched: pairs of a column and a residual that are looked at in all.
        least: a higher limit.
    """
    low, span = float(column.min()), float(np.ptp(column))
    if not span > 0:
        return 0.0, 0.0
    cells = np.minimum(((column - low) * (_CELLS / span)).astype(np.int64), _CELLS - 1)
    least = max(least, 2 * math.log(_FALSE_ONES * _MOST_PERIODS * n_searched))
    step = 2 * math.pi / (_STEPS * span)
    best = (0.0, 0.0)
    for rest in rests:
        size = float(rest @ rest) / 2
        if not size > 0:
            continue
        sums = np.bincount(cells, weights=rest, minlength=_CELLS)
        places = slice(_STEPS, _MOST_PERIODS * _STEPS + 1)
        power = np.abs(np.fft.rfft(sums, _STEPS * _CELLS)[places]) ** 2 / size
        if power.max() > max(least, best[0]):
            near = (_first_best(power) + _STEPS) * step
            for part in (step, step / 8):
                tried = near + part * np.arange(-8, 9) / 8
                phases = np.exp(1j * np.outer(tried, column - low))
                found = np.abs(phases @ rest) ** 2 / size
                near = float(tried[_first_best(found)])
            best = max(best, (float(found.max()), round(near, _DIGITS)))
    return best


def _first_best(powers: np.ndarray) -> int:
    return int((powers >= powers.max() * (1 - _EQUAL)).argmax())
