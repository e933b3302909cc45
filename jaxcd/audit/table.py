"""What every event must say, written down a second time: sensitivity, numerical pad and law, from
public numbers alone.

Nothing here calls the code that it is compared with.  Constants are those of the proofs
(docs/PRIVACY.md, and the docstrings that a registry entry names); sensitivities of sums over rows
are the largest distance of two rows' contributions, found by going through all rows of a small
domain.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = ["Facts", "Stated", "farthest_moments", "stated"]


@dataclass(frozen=True)
class Stated:
    """What an event must say: the word its law begins with, the sensitivity, the least pad, and
    whether the values are integers.
    """

    law: str
    sensitivity: float
    pad: float = 0.0
    integral: bool = False


@dataclass(frozen=True)
class Facts:
    """The public facts of a run.

    Args:
        n: rows.
        levels: of each column; None for numeric ones.
        test: the class of the CI test, or "".
        alpha: its level.
        subset: rows of a sieve's subset.
        record: Delta of a score of a pair, or of what a test releases itself, or 0.
        map_levels: depth of rank maps.
        bins: in which numeric columns are counted; 0 where they are not.
        pure: whether the budget has no delta.
        by_person: whether n counts people, whose rows have weights.
    """

    n: int
    levels: tuple[int | None, ...] = ()
    test: str = ""
    alpha: float = 0.05
    subset: int = 0
    record: float = 0.0
    map_levels: int = 11
    bins: int = 0
    pure: bool = False
    by_person: bool = False


def _margin(facts: Facts, n: int) -> tuple[float, float]:
    """Sensitivity and pad of a margin on n rows, in records."""
    z = float(stats.norm.isf(facts.alpha / 2))
    c = max(z * z - 1, 0.0)
    tables = max(1e-7, n / 2**30)
    by_test = {
        # 2 sqrt 2 between strata, and a threshold that takes the rest up to 3
        "CovarianceNorm": (3.0, tables),
        "PooledCovariance": (4 + (3 - 2 * math.sqrt(2)), tables),
        "KendallTau": (2 + z / 45, tables),
        "Spearman": (2 + z / 45, tables),
        "StratifiedRanks": (4 + (3 + 2 * math.sqrt(2) * c) / (2 * max(100.0, 0.003 * n)), tables),
        "BoundedRCIT": (1.0, max(1e-6, n / 2**30)),
        "StratifiedTau": (1.0, tables),
    }
    return by_test[facts.test]


def farthest_moments(levels: Sequence[int], weight: float = 1.0) -> float:
    """The largest distance of two rows' contributions to all products of two columns' codes, and to
    the codes times ``weight``.
    """
    # One-hot vectors less their mean: the same lengths and angles as any orthonormal contrasts.
    codes = [np.eye(k) - 1 / k for k in levels]
    rows = list(itertools.product(*map(range, levels)))
    vectors = []
    for row in rows:
        parts = [code[level] for code, level in zip(codes, row, strict=True)]
        products = [np.outer(a, b).ravel() for a, b in itertools.combinations(parts, 2)]
        vectors.append(np.concatenate([*(weight * part for part in parts), *products]))
    points = np.array(vectors)
    squares = (points**2).sum(axis=1)
    return math.sqrt(max(0.0, float((squares[:, None] + squares - 2 * points @ points.T).max())))


def _discrete(facts: Facts) -> list[int]:
    return [k or facts.bins for k in facts.levels if k or facts.bins]


def _n_numeric(facts: Facts) -> int:
    return sum(k is None for k in facts.levels)


def _batch(match: re.Match[str], facts: Facts, dimension: int) -> Stated:
    value, pad = _margin(facts, facts.n)
    return Stated("discrete Gaussian", value * math.sqrt(dimension), pad)


def _single(law: str, *, subset: bool = False) -> Callable[[re.Match[str], Facts, int], Stated]:
    def rule(match: re.Match[str], facts: Facts, dimension: int) -> Stated:
        value, pad = _margin(facts, facts.subset if subset else facts.n)
        return Stated(law, value, pad)

    return rule


def _contrasts(match: re.Match[str], facts: Facts, dimension: int) -> Stated:
    # StratifiedRanks looks at four bins of values
    levels = [4] * _n_numeric(facts) if _n_numeric(facts) else _discrete(facts)
    return Stated("discrete Gaussian", farthest_moments(levels))


def _fixed(
    law: str, value: Callable[[Facts], float], *, integral: bool = False, pad: float = 0.0
) -> Callable[[re.Match[str], Facts, int], Stated]:
    """integral: of counts; with weights they are whole multiples of 2^-20 of a record."""
    return lambda match, facts, dimension: Stated(
        law, value(facts), pad, integral and not facts.by_person
    )


def _all_pairs(match: re.Match[str], facts: Facts, dimension: int) -> Stated | None:
    # Under Laplace noise sensitivities depend on the basis that was chosen; there all neighbours of
    # a record are gone through instead.
    return None if facts.pure else Stated("discrete Gaussian", farthest_moments(_discrete(facts)))


def _tilted(match: re.Match[str], facts: Facts, dimension: int) -> Stated:
    # Its sensitivity follows from a rate that was released.  A sum of n products of size up to 1
    # and more, converted three times.
    return Stated("discrete Gaussian", math.nan, facts.n * 2.0**-51)


def _features(match: re.Match[str], facts: Facts, dimension: int) -> Stated:
    # Unit vectors of p columns and the constant 1/2: |f|^2 = p + 1/4, and packed moments of two
    # rows are at most that far apart.
    return Stated("discrete Gaussian", len(facts.levels) + 0.25, facts.n * 2.0**-51)


def _scores(match: re.Match[str], facts: Facts, dimension: int) -> Stated:
    return Stated("discrete Laplace", 2 * facts.record, 1e-9)


_RULES: tuple[tuple[str, Callable[[re.Match[str], Facts, int], Stated | None]], ...] = (
    (r"noisy margin|margin|examine", _single("discrete")),
    (r"sparse vector round", _single("sparse vector")),
    (r"sieve", _single("sparse vector", subset=True)),
    (r"noisy rank", _single("noisy rank")),
    (r"level 0: contrast moments", _contrasts),
    (r"level \d+: smallest margin of (\d+) pairs?|grow|shrink|orient", _batch),
    (r"level \d+: separating set|answer and set, .*", _single("exponential")),
    (r"bandwidth of .*", _fixed("exponential", lambda facts: 2 + 1e-6, pad=1e-6)),
    (
        r"rank maps",
        _fixed(
            "discrete Gaussian",
            lambda facts: math.sqrt(2 * (facts.map_levels + 1) * _n_numeric(facts)),
            integral=True,
        ),
    ),
    (r"tilted second moments, round \d+", _tilted),
    (r"feature covariances", _features),
    (r"joint histogram", _fixed("discrete Laplace", lambda facts: 2.0, integral=True)),
    # 2^20 units a person, in integers
    (
        r"joint histogram, in 2\^-20 of a person",
        lambda match, facts, dimension: Stated("discrete Laplace", 2.0**21, integral=True),
    ),
    (r"round 1: all pairs", _all_pairs),
    (
        r"centres and scales",
        _fixed("discrete Gaussian", lambda facts: math.sqrt(2 * _n_numeric(facts)), integral=True),
    ),
    (
        r"difference of regression errors",
        _fixed("discrete Laplace", lambda facts: 2 * facts.record, integral=True),
    ),
    (
        r"records to turn the answer over",
        _fixed("discrete Laplace", lambda facts: 2.0, integral=True),
    ),
    (r"quartile of .*", _fixed("exponential", lambda facts: 1.0, integral=True)),
    (r".*: stability", _fixed("discrete Laplace", lambda facts: 1.0, integral=True)),
    (r".*: value", _fixed("discrete Laplace", lambda facts: facts.record)),
    (r"difference of .* scores|.* scores", _scores),
    (r"score and variance", _fixed("discrete Laplace", lambda facts: facts.record, pad=1e-7)),
    (r"residual products", _fixed("discrete Laplace", lambda facts: facts.record, pad=1e-6)),
)


def stated(label: str, facts: Facts, dimension: int) -> Stated | None:
    """What the event of this label must say, or None where only going through the neighbours tells
    (sums whose weights were released).

    Args:
        label: of the event.
        facts: of the run.
        dimension: the number of values that the event releases, which is public.
    """
    for pattern, rule in _RULES:
        if (match := re.fullmatch(pattern, label)) is not None:
            return rule(match, facts, dimension)
    return None
