r"""Features where cells are missing: the moments of the rows that know a pair of columns.

A column j whose cells may be missing has the feature m_j, 1 where the cell is missing, and others
phi_j that are 0 there.  So the released sums over all rows are

    sum m_j m_l            the rows in which both are missing,
    sum phi_j m_l          the sums of j's features where l is missing,
    sum phi_j phi_l^T      the products in the rows that know both,

and N_jl = n - sum m_j - sum m_l + sum m_j m_l, with the covariance of the two columns in these N_jl
rows: unbiased where cells are missing completely at random, whatever is missing together.  The
moments returned are those that n' rows without missing cells with these means and covariances
would have; n' is the median of N_jl, without the pairs of less than a tenth of the largest.  Of a
pair that fewer rows know than a third of n', or than 3 for each of its features, the covariances
are less, by the cube of the quotient: one noise and one number of rows are told of all, and such a
pair would drown the others.  Of a numeric column as
many cosines stay as such rows would have got.  All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from jaxcd.data.domain import observed_domain

__all__ = ["NOISY_SHARE", "in_known_pairs"]

#: Of a covariance matrix of features so much may be noise.
NOISY_SHARE = 0.5
# A pair of columns counts for less that fewer rows know than the median pair, by more than so many
# times.  What more rows know stays unbiased: a column between two others explains what they have in
# common only as long as its covariances are right.
_MOST_RAISED = 3.0
# Pairs that less than this share of the rows of the best known pair know are not looked at for what
# is usual: columns that nobody filled in would empty the others.
_HOPELESS = 0.1
# A pair counts for less, too, that so few rows know for each of its features that these would fit
# any noise.
_ROWS_A_FEATURE = 3.0


def in_known_pairs(release: Any) -> Any:
    """The release of features as if of n' rows without missing cells, with the same noise where it
    is usual: the module's docstring.
    """
    domain = release.domain
    may_miss = tuple(column.missing is not None for column in domain.columns.values())
    n, places = float(release.n_samples), range(len(may_miss))
    marks = [block[0] if may else None for may, block in zip(may_miss, release.blocks, strict=True)]
    waves = [block[may:] for may, block in zip(may_miss, release.blocks, strict=True)]
    products, sums = release.moments[1:, 1:], release.moments[0, 1:] / release.anchor

    def lacking(j: int, k: int) -> float:
        """The rows in which both are missing."""
        one, other = marks[j], marks[k]
        return 0.0 if one is None or other is None else float(products[one, other])

    def of_known(j: int, k: int) -> np.ndarray:
        """The sums of j's features over the rows that know k."""
        found: np.ndarray = sums[waves[j]]
        return found if (mark := marks[k]) is None else found - products[waves[j], mark]

    known = [min(max(n - lacking(j, j), 1.0), n) for j in places]
    pairs = {
        (j, k): min(
            max(n - lacking(j, j) - lacking(k, k) + lacking(j, k), known[j] + known[k] - n, 1),
            known[j],
            known[k],
        )
        for j in places
        for k in places[:j]
    }
    both = np.array([*pairs.values()] or [n])
    usual = float(np.median(both[both >= _HOPELESS * both.max()]))
    sizes = tuple(len(wave) for wave in waves)
    least = max(usual / _MOST_RAISED, _ROWS_A_FEATURE * sum(sorted(sizes)[-2:]))
    noises = np.minimum(both / least, 1.0) ** 2 / np.maximum(both, least)
    # Noise that drowns the counts must not leave fewer rows than a covariance needs.
    rows = max(round(usual), min(release.n_samples, sum(sizes) + 2))
    means = [_no_longer_than_one(sums[waves[j]] / known[j]) for j in places]
    ends = np.cumsum((0, *sizes))
    covariance = np.zeros((ends[-1], ends[-1]))
    for j in places:
        count, own = max(known[j], least), slice(ends[j], ends[j + 1])
        inside = products[np.ix_(waves[j], waves[j])] - known[j] * np.outer(means[j], means[j])
        # towards features that are all alike
        alike = (count - known[j]) * np.eye(sizes[j]) / max(sizes[j], 1)
        covariance[own, own] = _no_longer_than_one((inside + alike) / count)
        for k in places[:j]:
            count, kept = max(pairs[j, k], least), min(pairs[j, k] / least, 1.0) ** 2
            shifts = [
                of_known(one, other) - pairs[j, k] * means[one] for one, other in ((j, k), (k, j))
            ]
            inside = (
                products[np.ix_(waves[j], waves[k])]
                - np.outer(means[j], shifts[1])
                - np.outer(shifts[0], means[k])
                - pairs[j, k] * np.outer(means[j], means[k])
                - np.outer(*shifts) / count
            )
            inside = kept * _no_longer_than_one(inside / count)
            covariance[own, ends[k] : ends[k + 1]] = inside
            covariance[ends[k] : ends[k + 1], own] = inside.T
    # The sums of the rows that know another column have the noise of two numbers.
    anchor = release.anchor / math.sqrt(1 + release.anchor**2)
    whole = np.concatenate([[anchor], *means])
    moments = np.outer(whole, whole)
    moments[1:, 1:] += covariance
    counted = replace(
        release,
        domain=observed_domain(domain, may_miss),
        n_samples=rows,
        sizes=sizes,
        moments=rows * moments,
        sigma=release.sigma * rows * math.sqrt(float((noises**2).mean())),
        anchor=anchor,
    )
    return _of_fewer_cosines(counted)


def _of_fewer_cosines(release: Any) -> Any:
    """Without the cosines that would not have been bought had it been public how few rows know
    a pair (:meth:`jaxcd.Features.chosen`).
    """
    columns = release.domain.columns.values()

    def cut(most: int) -> tuple[int, ...]:
        return tuple(
            min(size, most) if column.cardinality is None else size
            for column, size in zip(columns, release.sizes, strict=True)
        )

    most = max(release.sizes, default=0)
    while most > 2 and 2 * most * math.sqrt(sum(cut(most))) * release.noise > NOISY_SHARE:
        most -= 1
    sizes = cut(most)
    first = [block[:size] for block, size in zip(release.blocks, sizes, strict=True)]
    kept = np.concatenate([np.zeros(1, dtype=int), *(1 + block for block in first)])
    return replace(release, sizes=sizes, moments=release.moments[np.ix_(kept, kept)])


def _no_longer_than_one(mean: np.ndarray) -> np.ndarray:
    """A mean of vectors of length one or of their products, which noise may have made longer."""
    return mean / max(1.0, float(np.linalg.norm(mean)))
