r"""Levels so rare that their features are noise: found by a public rule, and left out of the score.

A level l of a discrete column with k levels has the noisy share p_l, read off the released means.
The indicator of l has variance about p_l, that of a feature of a column with r features is about
1 / r, and noise of standard deviation s on their covariance makes a squared correlation of about
s^2 r / p_l.  In a score with N effective rows noise alone then adds N s^2 r / (2 p_l) nats for a
parameter, whose price is log(N) / 2.  A level is *rare* where the first exceeds the second for the
column with the most features, where its share is below three standard deviations of its noise, or
where it holds fewer than 20 of the n rows (the chi-square law of a score needs them, with or
without noise):

    p_l < max(N s^2 r_max / log N,  3 s (1 - 1/k) / a,  20 / n),   a the anchor.

Of a column's features those remain that are zero on all its rare levels, that is the contrasts
among the others.  Rows in rare levels are thereby pooled in one level, at the centre of the others:
they speak neither for nor against an edge.  The directions are orthonormal, so that noise on what
remains is what it was: independent, of the same standard deviation.  The two largest levels of a
column always stay, so that no column is emptied, and nothing changes where no level is rare.

Where "missing" is a level, it has a feature of its own before the contrasts of the others, and that
of a rare one is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jaxcd.data.domain import observed_domain
from jaxcd.ops.moments import contrast_basis

__all__ = ["level_shares", "rare_levels", "rare_words", "remaining_directions", "without_levels"]

_LEAST_COUNT = 20.0
_DEVIATIONS = 3.0


def _marked(release: Any, column: int) -> bool:
    """Whether the first feature of a column says that the cell is missing."""
    return release.domain[release.names[column]].missing is not None


def _mark(release: Any, column: int) -> int:
    """The position of "missing" among the levels; of a numeric column 0."""
    return int(release.domain[release.names[column]].missing_code or 0)


def level_shares(release: Any, column: int) -> np.ndarray:
    """The noisy shares of the levels of a discrete column of two or more, those of missing cells
    last where these are a level: (k,); they add up to 1.
    """
    means = release.means[release.blocks[column]]
    missing = means[: _marked(release, column)]
    contrasts = means[len(missing) :]
    k = len(contrasts) + 1
    known = 1 - missing.sum()
    found: np.ndarray = math.sqrt(1 - 1 / k) * contrast_basis(k) @ contrasts + known / k
    return np.concatenate([found, missing])


def rare_levels(release: Any, *, effective_samples: float) -> dict[int, tuple[int, ...]]:
    """The rare levels of each discrete column that has any, by position; a function of released
    numbers.  Of a numeric column "missing" may be one, by the position 0.

    Args:
        release: of features.
        effective_samples: N, positive.
    """
    found = {}
    rows = max(effective_samples, math.e)
    by_score = rows * release.noise**2 * max(release.sizes, default=0) / math.log(rows)
    for column, name in enumerate(release.names):
        k = release.domain[name].cardinality
        if k is None:
            shares = release.means[release.blocks[column]][: _marked(release, column)]
            most = len(shares)
        elif k < 3 or release.sizes[column] != k - 1:
            continue
        else:
            shares, most = level_shares(release, column), k - 2
        contrast = 1.0 if k is None else 1 - 1 / k
        by_noise = _DEVIATIONS * release.noise * contrast / release.anchor
        least = max(by_score, by_noise, _LEAST_COUNT / release.n_samples)
        smallest_first = np.argsort(shares, kind="stable")[:most]
        if rare := tuple(sorted(int(v) for v in smallest_first if shares[v] < least)):
            found[column] = rare
    return found


def rare_words(rare: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """What a result's info says of them: ``pooled_levels`` by column and one warning; nothing where
    there are none.
    """
    if not rare:
        return {}
    listed = "; ".join(f"{name}: {', '.join(map(str, levels))}" for name, levels in rare.items())
    words = (
        f"levels too rare to be told from noise were pooled and take no part in the search "
        f"({listed}); merge levels in the domain if they matter"
    )
    return {
        "pooled_levels": {name: list(map(str, levels)) for name, levels in rare.items()},
        "warnings": (words,),
    }


def remaining_directions(k: int, rare: tuple[int, ...]) -> np.ndarray:
    """Q, (k - 1, k - 1 - #rare), orthonormal: the directions of the contrasts that are zero on the
    rare levels.
    """
    touched = contrast_basis(k)[list(rare)].T
    found: np.ndarray = np.linalg.svd(touched, full_matrices=True)[0][:, len(rare) :]
    return found


def _directions(release: Any, column: int, rare: tuple[int, ...]) -> np.ndarray:
    """What remains of a column's features, orthonormal columns (size, size - #rare)."""
    size = release.sizes[column]
    if not _marked(release, column):
        return remaining_directions(size + 1, rare)
    mark = _mark(release, column)
    known = remaining_directions(size, tuple(v for v in rare if v != mark))
    part = np.zeros((size, 1 + known.shape[1]))
    part[0, 0], part[1:, 1:] = 1.0, known
    return part[:, 1:] if mark in rare else part


def without_levels(release: Any, rare: dict[int, tuple[int, ...]]) -> Any:
    """The release with the features that are zero on the rare levels: post-processing, with noise
    as before; the same release where there are none.
    """
    if not rare:
        return release
    sizes, parts = [], [np.ones((1, 1))]
    unmarked = [
        _marked(release, column) and _mark(release, column) in rare.get(column, ())
        for column in range(len(release.sizes))
    ]
    for column, size in enumerate(release.sizes):
        part = np.eye(size)
        if column in rare:
            part = _directions(release, column, rare[column])
        parts.append(part)
        sizes.append(part.shape[1])
    whole = np.zeros((sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts)))
    row = place = 0
    for part in parts:
        whole[row : row + part.shape[0], place : place + part.shape[1]] = part
        row, place = row + part.shape[0], place + part.shape[1]
    return replace(
        release,
        domain=observed_domain(release.domain, unmarked),
        sizes=tuple(sizes),
        moments=whole.T @ release.moments @ whole,
    )
