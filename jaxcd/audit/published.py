"""Published mechanisms that are known to be broken: an audit that does not catch them cannot be
trusted with ours.

Each finding's claim is the publication's.  It is as it must be where the audit *exceeds* it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

import jaxcd
from jaxcd.audit.findings import Checks, Finding
from jaxcd.audit.laws import epsilon_at_delta
from jaxcd.citests import Query
from jaxcd.published.accounting import claimed_sensitivity
from jaxcd.published.conditional_tau import ConditionalTau
from jaxcd.published.em_pc import _Tests, options_of, visit
from jaxcd.published.pcd_bounds import claimed_residual_hsic_sensitivity
from jaxcd.queries import Queue

__all__ = ["PUBLISHED"]

_ALPHA = 0.1


def _caught(subject: str, claimed: float, found: float) -> Finding:
    wrong = (
        ()
        if found > claimed
        else (f"the audit reaches {found:.6g}, and does not refute the claim {claimed:.6g}",)
    )
    return Finding("known to be broken", subject, claimed, found, wrong)


def _binary(codes: np.ndarray) -> jaxcd.Dataset:
    domain = jaxcd.Domain({f"v{j}": jaxcd.Ordinal((0, 1)) for j in range(codes.shape[1])})
    return jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)


def _em_pc(quick: bool) -> Finding:
    """Separating sets are the best of exact p-values: two neighbours on which another set is the
    best.
    """
    rng, epsilon, runs = np.random.default_rng(0), 0.01, 300 if quick else 3_000

    def lost_with(codes: np.ndarray) -> list[tuple[int, ...]]:
        options = options_of(_Tests(_binary(codes), _ALPHA), 0, [1, 2, 3], 1)
        drawn = (
            visit(options, epsilon=epsilon, alpha=_ALPHA, stream=np.random.default_rng(seed))
            for seed in range(runs)
        )
        return [option.given for lost in drawn for option in lost[:1] if option.neighbor == 1]

    def best(codes: np.ndarray) -> tuple[int, ...]:
        options = options_of(_Tests(_binary(codes), _ALPHA), 0, [1, 2, 3], 1)
        return next(option.given for option in options if option.neighbor == 1)

    while True:
        codes = rng.integers(0, 2, (60, 4))
        for row, column in itertools.product(range(10), (2, 3)):
            other = codes.copy()
            other[row, column] ^= 1
            if best(codes) == (2,) and best(other) == (3,):
                counts = [
                    sum(given == (2,) for given in lost_with(part)) for part in (codes, other)
                ]
                return _caught(
                    "EM-PC: sets of exact p-values",
                    epsilon,
                    epsilon_at_delta(counts[0], counts[1], runs),
                )


def _tau_pvalue(quick: bool) -> Finding:
    """k records with x = y in a stratum of their own; elsewhere x is constant, in the neighbour but
    for one record.
    """
    n, k = 1_000, 10
    index = np.arange(n - k)
    large = np.stack([np.zeros(n - k, int), index % 8, np.zeros(n - k, int)], axis=1)
    strong = np.stack([np.arange(k), np.arange(k), np.ones(k, int)], axis=1)
    changed = large.copy()
    changed[0] = (1, 0, 0)
    domain = jaxcd.Domain(
        {f"v{j}": jaxcd.Ordinal(tuple(range(size))) for j, size in enumerate((k, k, 2))}
    )
    pvalues = []
    for part in (large, changed):
        data = jaxcd.Dataset.from_codes(
            np.concatenate([strong, part]).astype(np.int32), domain=domain
        )
        evaluation = Queue(ConditionalTau().prepare(data), alpha=0.05).evaluate(
            [Query.of(0, 1, (2,))]
        )
        pvalues.append(math.exp(float(evaluation.log_pvalue[0])))
    return _caught(
        "Priv-PC: p-value of weighted tau", claimed_sensitivity(n), abs(pvalues[0] - pvalues[1])
    )


def _pcd(quick: bool) -> Finding:
    """Residuals on two clusters, one record from (1, 1) to (1, -1); Z constant, so that the
    statistic has a closed form.
    """
    m, bandwidth = 10_000, 1.0

    def statistic(same: int, far: int, odd: int) -> float:
        weights = np.array([same, far, odd]) / m
        x, y = np.array([-1.0, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
        covariance = weights @ (x * y) - (weights @ x) * (weights @ y)
        return (1 - math.exp(-2 / bandwidth**2)) ** 2 * covariance**2 / 4 * (m / (m - 1)) ** 2

    ones = m // 3
    moved = abs(statistic(m - ones, ones, 0) - statistic(m - ones, ones - 1, 1))
    claimed = claimed_residual_hsic_sensitivity(m, bandwidth_x=bandwidth, bandwidth_y=bandwidth)
    return _caught("PCD: equation (3)", claimed, moved)


def _without_query_noise(
    values: np.ndarray, rng: np.random.Generator, epsilon: float
) -> np.ndarray:
    """Only the threshold has noise (variant 5 of Lyu, Su, Li 2017)."""
    return values >= rng.laplace(scale=1 / epsilon)


def _without_stop(values: np.ndarray, rng: np.random.Generator, epsilon: float) -> np.ndarray:
    """Noise for one answer "above", and no stop after it (variant 6 there)."""
    return values + rng.laplace(scale=2 / epsilon, size=len(values)) >= rng.laplace(
        scale=2 / epsilon
    )


def _sparse_vector(
    subject: str,
    variant: Callable[[np.ndarray, np.random.Generator, float], np.ndarray],
    quick: bool,
) -> Finding:
    """Forty queries of which half rise by one and half fall: the pattern above, below, above, below
    tells which.
    """
    rng, epsilon, half, runs = np.random.default_rng(1), 0.5, 20, 2_000 if quick else 20_000
    signs = np.repeat([1.0, -1.0], half)
    counts = []
    for values in (signs / 2, -signs / 2):
        answers = np.array([variant(values, rng, epsilon) for _ in range(runs)])
        counts.append(int((answers[:, :half].sum(axis=1) > answers[:, half:].sum(axis=1)).sum()))
    return _caught(subject, epsilon, epsilon_at_delta(counts[0], counts[1], runs))


PUBLISHED: Checks = {
    "known to be broken: EM-PC": lambda quick: iter([_em_pc(quick)]),
    "known to be broken: Priv-PC": lambda quick: iter([_tau_pvalue(quick)]),
    "known to be broken: PCD": lambda quick: iter([_pcd(quick)]),
    "known to be broken: sparse vectors": lambda quick: iter(
        [
            _sparse_vector(
                "sparse vector without noise on the queries", _without_query_noise, quick
            ),
            _sparse_vector(
                "sparse vector that goes on after a hit at the price of one", _without_stop, quick
            ),
        ]
    ),
}
"""The checks of this file by name."""
