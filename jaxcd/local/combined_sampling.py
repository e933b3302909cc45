r"""Exact draws from the combined geometric mechanism on domains far too large to enumerate.

1. The distance D, with probability proportional to N_x[D] exp(-eps_x D).
2. A cell at that distance, uniformly, column by column from the last to the first (backward
   sampling). With D left over the first m columns, the difference t of column m has probability
   n_m(t) N_{m-1}[D - s(t)] / N_m[D]; for the maximum, column m is the one at exactly r with
   probability n_m(r) B_{m-1}[r] / E_m[r], after which the columns before it are free within r.
3. The side, a fair coin where both sides have a level.

The product of the conditional probabilities telescopes to 1 / N_x[D] for each cell. All draws are
made from sorted sums with uniforms of full relative precision (:mod:`jaxcd.local.uniforms`), so a
cell's probability is right to a relative error near 1e-11 at worst, whether it is 1/2 or 1e-200.

Rows are grouped by class, each class's partial counts are computed once, and all rows of a group
are drawn together.
"""

from __future__ import annotations

import numpy as np

from jaxcd.local.arrays import Codes, Integers
from jaxcd.local.base import DEEPEST, Distance
from jaxcd.local.distances import Layout, Partials, decay_rates, level_counts
from jaxcd.local.uniforms import Table, Uniforms

__all__ = ["sample_records"]

_BLOCK = 2**21
"""Rows times levels drawn together: some ten arrays of that size (16 MiB each) stay in memory."""


def sample_records(codes: Codes, layout: Layout, p_max: float, uniforms: Uniforms) -> Codes:
    """One randomised record for each row.

    Args:
        codes: n x d level codes.
        layout: the domain's columns and the distance.
        p_max: the probability of reporting the record as it is.
        uniforms: where randomness comes from.

    Returns:
        n x d level codes.
    """
    if len(layout.radii) == 1:  # one cell
        return codes.copy()
    result = np.empty_like(codes, order="F")
    folds, columns = layout.classes_of(codes)
    classes, which = np.unique(folds, axis=0, return_inverse=True)
    which = which.reshape(-1)
    by_class = np.argsort(which, kind="stable")
    first = np.searchsorted(which[by_class], np.arange(len(classes) + 1))
    tops, start_rate = np.array(layout.levels) - 1, layout.lowest_rate(p_max)
    block = max(1, _BLOCK // max(layout.levels))
    for chunk in layout.chunks(len(classes)):
        partials = layout.partials(classes[chunk])
        counts = partials.exact[-1]
        rates = decay_rates(counts, layout.radii, p_max, start=start_rate)
        table = Table(counts * np.exp(-np.minimum(rates[:, None] * layout.radii, DEEPEST)))
        for start in range(first[chunk.start], first[chunk.stop], block):
            rows = by_class[start : min(start + block, first[chunk.stop])]
            local = which[rows] - chunk.start
            totals = table.draw(local, uniforms)
            draw = _within_maximum if layout.distance is Distance.CHEBYSHEV else _with_sum
            moved = draw(layout, partials, folds[rows], local, totals, uniforms)
            sources = columns[rows]
            values = np.take_along_axis(codes[rows].astype(np.int64), sources, axis=1)
            mirrored = 2 * values > tops  # folds look from the nearer end
            np.put_along_axis(values, sources, np.where(mirrored, tops - moved, moved), axis=1)
            result[rows] = values
    return result


def _with_sum(
    layout: Layout,
    partials: Partials,
    folds: Integers,
    which: Integers,
    totals: Integers,
    uniforms: Uniforms,
) -> Integers:
    """Levels (n x d, from the nearer end) whose steps add up to ``totals`` (n,)."""
    moved, left, rows = folds.copy(), totals.copy(), np.arange(len(folds))
    for m in reversed(range(len(layout.levels))):
        k, before = layout.levels[m], partials.exact[m]
        steps = np.array([layout.step(t) for t in range(k)])
        rest = left[:, None] - steps
        possible = (rest >= 0) & (rest < before.shape[1])
        weights = (
            level_counts(folds[:, m], k)
            * before[which[:, None], np.where(possible, rest, 0)]
            * possible
        )
        difference = Table(weights).draw(rows, uniforms)
        moved[:, m] = _beside(folds[:, m], difference, uniforms)
        left -= steps[difference]
    return moved


def _within_maximum(
    layout: Layout,
    partials: Partials,
    folds: Integers,
    which: Integers,
    totals: Integers,
    uniforms: Uniforms,
) -> Integers:
    """Levels (n x d, from the nearer end) whose largest difference is ``totals`` (n,)."""
    moved, rows = folds.copy(), np.arange(len(folds))
    attained = np.zeros(len(folds), dtype=bool)
    for m in reversed(range(len(layout.levels))):
        k, fold = layout.levels[m], folds[:, m]
        counts = level_counts(fold, k)
        here = np.where(totals < k, counts[rows, np.minimum(totals, k - 1)], 0.0)
        nearer = (counts * (np.arange(k) < totals[:, None])).sum(axis=1)
        weights = np.stack(
            [nearer * partials.exact[m][which, totals], here * partials.within[m][which, totals]],
            axis=1,
        )
        weights[attained] = 1.0, 0.0  # whoever attained it is free within r below
        now = Table(weights).draw(rows, uniforms) == 1
        radius = np.where(attained, totals, np.maximum(totals - 1, 0))
        lowest, highest = np.maximum(fold - radius, 0), np.minimum(fold + radius, k - 1)
        free = lowest + uniforms.below(highest - lowest + 1)
        moved[:, m] = np.where(now, _beside(fold, np.where(now, totals, 0), uniforms), free)
        attained |= now
    return moved


def _beside(folds: Integers, differences: Integers, uniforms: Uniforms) -> Integers:
    """A level at the given difference: on the near side with probability 1/2 where there is one,
    else beyond.
    """
    down = uniforms.bits(len(folds)) & (differences <= folds)
    return np.where(down, folds - differences, folds + differences)
