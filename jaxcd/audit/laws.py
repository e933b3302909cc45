"""Audits by drawing: the laws of the secure noise, and attempts to tell neighbours apart by what
mechanisms and whole runs release.

Claims are refuted by lower confidence bounds on epsilon at the claimed delta (Clopper and Pearson
1934; Jagielski, Ullman, Oprea 2020). The confidence is 1 - 1e-6 for each claim, so that an honest
mechanism fails about never.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special, stats

import jaxcd
from jaxcd.audit.findings import Checks, Finding
from jaxcd.audit.replaying import Drawing, Tapping
from jaxcd.privacy import (
    Accountant,
    Ledger,
    NoiseSampler,
    OneDraw,
    SecureNoise,
    gaussian,
    laplace,
    select_max,
)
from jaxcd.privacy.propose_test_release import propose_test_release, stable_release

__all__ = ["LAWS", "SURE", "bounds_of_share", "epsilon_at_delta", "fits"]

SURE = 1e-6
"""Probability that an honest claim is called refuted."""


def bounds_of_share(count: int, n: int, *, error: float = SURE) -> tuple[float, float]:
    """Clopper-Pearson bounds on a probability, each missed with probability ``error`` / 4."""
    tail = error / 4
    low = float(special.betaincinv(count, n - count + 1, tail)) if count > 0 else 0.0
    high = float(special.betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def epsilon_at_delta(count: int, other: int, n: int, *, delta: float = 0.0) -> float:
    """A lower bound on epsilon: an event that happened ``count`` and ``other`` times in n runs on
    two neighbours.

    (epsilon, delta)-privacy has P <= e^epsilon P' + delta in both directions.
    """
    best = 0.0
    for a, b in ((count, other), (other, count), (n - count, n - other), (n - other, n - count)):
        low, high = bounds_of_share(a, n)[0] - delta, bounds_of_share(b, n)[1]
        if low > 0:
            best = max(best, math.log(low / high))
    return best


# ---- noise
# --------------------------------------------------------------------------------------------------


def _secure_noise(quick: bool) -> Iterator[Finding]:
    """Chi-square tests of the draws against the exact laws, with 20 cells of nearly equal
    probability.
    """
    sampler, n = SecureNoise().start(), 4_000 if quick else 40_000
    support = np.arange(-4_000, 4_001)
    scale = 37.5
    weights = {
        "discrete Laplace": np.exp(-np.abs(support) / scale),
        "discrete Gaussian": np.exp(-((support / scale) ** 2) / 2),
        "geometric": np.where(support >= 0, np.exp(-np.maximum(support, 0) / scale), 0.0),
    }
    draws = {
        "discrete Laplace": sampler.discrete_laplace(scale, n, index=0),
        "discrete Gaussian": sampler.discrete_gaussian(scale, n, index=1),
        "geometric": sampler.geometric(scale, n, index=2),
    }
    for name, w in weights.items():
        cumulative = np.cumsum(w / w.sum())
        cells = np.unique(np.searchsorted(cumulative, np.linspace(0, 1, 21)[1:-1]))
        expected = np.diff([0.0, *cumulative[cells], 1.0]) * n
        places = np.searchsorted(support[cells], draws[name], side="left")
        yield fits(
            f"law of the noise: {name}", np.bincount(places, minlength=len(expected)), expected
        )
    scores = np.array([0, 20, 45])
    chosen = np.bincount(
        [sampler.gumbel_max(scores, 30.0, index=3) for _ in range(n // 4)], minlength=3
    )
    yield fits(
        "law of the noise: exponential mechanism",
        chosen,
        special.softmax(scores / 30.0) * chosen.sum(),
    )
    order = list(itertools.permutations(range(3), 2))
    pairs = [tuple(sampler.gumbel_top(scores, 30.0, 2, index=4)) for _ in range(n // 4)]
    odds = np.exp(scores / 30.0)
    # the second is drawn from what the first has left
    shares = [odds[a] * odds[b] / (odds.sum() - odds[a]) for a, b in order]
    yield fits(
        "law of the noise: two exponential mechanisms, one after the other",
        np.array([pairs.count(pair) for pair in order]),
        np.array(shares) / sum(shares) * len(pairs),
    )


def _rounded_gaussian(quick: bool) -> Iterator[Finding]:
    """Chi-square tests of rounded Gaussian draws, with sigmas small enough to tell them from
    discrete Gaussian ones.
    """
    sampler, n = SecureNoise().start(), 4_000 if quick else 40_000
    for sigma in (0.4, 1.3):
        ends = np.append(np.arange(-2, 3) - 0.5, 2.5) / sigma
        inner = np.diff(special.ndtr(ends))
        expected = np.array([special.ndtr(ends[0]), *inner, special.ndtr(-ends[-1])]) * n
        draws = np.clip(sampler.rounded_gaussian(sigma, n, index=0), -3, 3)
        counts = np.bincount(draws + 3, minlength=7)
        keep = expected > 5
        counts = np.append(counts[keep], counts[~keep].sum())
        expected = np.append(expected[keep], max(expected[~keep].sum(), 5.0))
        yield fits(f"law of the noise: rounded Gaussian, sigma {sigma}", counts, expected)


def fits(subject: str, counts: np.ndarray, expected: np.ndarray) -> Finding:
    """Whether the counts of cells are as expected, by a chi-square test."""
    pvalue = float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1))
    return _yes("law", subject, pvalue > SURE, f"the draws do not follow it: p = {pvalue:.3g}")


def _yes(check: str, subject: str, holds: bool, words: str) -> Finding:
    return Finding(check, subject, 1.0, 1.0 if holds else math.inf, () if holds else (words,))


def _fresh_noise(quick: bool) -> Iterator[Finding]:
    """Two samplers, and two draws of one index, have nothing in common."""
    first, second = SecureNoise().start(), SecureNoise().start()
    draws = [sampler.discrete_laplace(1e6, 40, index=0) for sampler in (first, first, second)]
    fresh = all(np.mean(a == b) < 0.5 for a, b in ((draws[0], draws[1]), (draws[0], draws[2])))
    yield _yes(
        "law",
        "noise is drawn anew",
        fresh,
        "the same noise is drawn twice: the difference of two answers is exact",
    )


def _one_draw(quick: bool) -> Iterator[Finding]:
    """Several processes that ask alike get the first one's noise, whatever they draw themselves."""
    first_words: list[np.ndarray] = []

    def first(words: np.ndarray) -> np.ndarray:
        first_words.append(words)
        return words

    samplers = [
        OneDraw(SecureNoise(), tell).start() for tell in (first, lambda _: first_words.pop(0))
    ]
    draws: dict[str, Callable[[NoiseSampler], Any]] = {
        "Laplace": lambda noise: noise.discrete_laplace(1e6, 8, index=0),
        "Gaussian": lambda noise: noise.discrete_gaussian(1e6, 8, index=0),
        "rounded Gaussian": lambda noise: noise.rounded_gaussian(1e6, 8, index=0),
        "shares": lambda noise: noise.polya(1e3, 2, 8, index=0),
        "geometric": lambda noise: noise.geometric(1e6, 8, index=0),
        "subset": lambda noise: noise.subset(60, 30, index=0),
        "gumbel": lambda noise: noise.gumbel_max(np.zeros(1 << 16, np.int64), 1.0, index=0),
    }
    for name, draw in draws.items():
        own, told = (draw(sampler) for sampler in samplers)
        first_words.clear()  # what a planted bug has left
        yield _yes(
            "law",
            f"one draw of several processes: {name}",
            bool(np.array_equal(own, told)),
            "each process draws for itself: two answers for the price of one",
        )


def _uniform_subsets(quick: bool) -> Iterator[Finding]:
    """Every record is in a subset of m of 10 with the same probability, and every pair too."""
    sampler, n = SecureNoise().start(), 2_000 if quick else 20_000
    masks = np.array([sampler.subset(10, 4, index=0) for _ in range(n)])
    singles = masks.sum(axis=0)
    pairs = np.array([(masks[:, i] & masks[:, j]).sum() for i in range(10) for j in range(i)])
    worst = 0.0
    for counts, share in ((singles, 4 / 10), (pairs, 4 * 3 / 90)):
        worst = max(
            worst, float(np.abs(counts / n - share).max() / math.sqrt(share * (1 - share) / n))
        )
    right = bool((masks.sum(axis=1) == 4).all()) and worst < 7
    yield _yes(
        "law",
        "subsets are uniform",
        right,
        f"a record or a pair is {worst:.1f} standard errors off",
    )


class _One(Drawing):
    """Gives one number as Laplace noise, whatever is asked."""

    def __init__(self, value: int) -> None:
        super().__init__(Tapping(), 0)
        self._value = value

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:  # noqa: D102 - as in the base class
        return np.full(size, self._value, dtype=np.int64)


def _stability(quick: bool) -> Iterator[Finding]:
    """An unstable data set gets an answer with a probability of at most delta: by the exact tail at
    the smallest noise that gets one.
    """
    epsilon, delta = 0.7, 1e-3

    def accountant(noise: int) -> Accountant:
        return Accountant(Ledger(jaxcd.Budget(10.0, 0.1), failure_delta=0.1), _One(noise))

    def answers_proposed(noise: int) -> bool:
        options: dict[str, Any] = dict(
            exits=(1, 1), width=1.0, epsilon=epsilon, delta=delta, label="a"
        )
        return propose_test_release(accountant(noise), 0.0, **options).value is not None

    def answers_stable(noise: int) -> bool:
        return (
            stable_release(
                accountant(noise), 0.0, distance=0, epsilon=epsilon, delta=delta, label="a"
            ).value
            is not None
        )

    a = math.exp(-epsilon)
    for name, answers, n_tests in (
        ("propose-test-release", answers_proposed, 2),
        ("stable release", answers_stable, 1),
    ):
        least = next(k for k in range(-5, 200) if answers(k))
        tail = a**least / (1 + a) if least > 0 else 1.0
        yield Finding.of("failure", name, claimed=delta, found=n_tests * tail, least=0.2)


def _runs(quick: bool) -> int:
    return 20_000 if quick else 200_000


# ---- telling neighbours apart
# --------------------------------------------------------------------------------------------------


def _mechanisms(quick: bool) -> Iterator[Finding]:
    """Each mechanism at epsilon 1, on values that differ by exactly its sensitivity."""
    epsilon, runs = 1.0, _runs(quick)
    values = np.zeros(runs), np.ones(runs)
    released = [_draw_laplace(v, epsilon) for v in values]
    yield _distinguished("Laplace", released, runs, epsilon)
    chosen = [
        np.array([_choose(v, epsilon) for _ in range(runs // 20)])
        for v in ([0.0, 0.0], [1.0, -1.0])
    ]
    found = epsilon_at_delta(int((chosen[0] == 0).sum()), int((chosen[1] == 0).sum()), runs // 20)
    yield Finding.of("telling apart", "exponential mechanism", claimed=epsilon, found=found)


def _accountant() -> Accountant:
    return Accountant(Ledger(jaxcd.Budget(1e9, 1e-3)), SecureNoise())


def _choose(scores: list[float], epsilon: float) -> int:
    return select_max(_accountant(), np.array(scores), sensitivity=1.0, epsilon=epsilon, label="a")


def _draw_laplace(values: np.ndarray, epsilon: float) -> np.ndarray:
    """One release of each value: the joint sensitivity of k copies is k, so that each has the noise
    of a single run.
    """
    n = len(values)
    return laplace(_accountant(), values, sensitivity=float(n), epsilon=n * epsilon, label="a")


def _distinguished(name: str, released: list[np.ndarray], runs: int, epsilon: float) -> Finding:
    cuts = np.linspace(-2, 3, 11)
    best = max(
        epsilon_at_delta(int((released[0] < c).sum()), int((released[1] < c).sum()), runs)
        for c in cuts
    )
    return Finding.of("telling apart", name, claimed=epsilon, found=best, least=0.8)


def _gaussian_trade_off(quick: bool) -> Iterator[Finding]:
    """Gaussian noise: the best test between N(0, sigma^2) and N(d, sigma^2) has the errors that the
    exact trade-off says, no less.

    T(alpha) = Phi(Phi^-1(1 - alpha) - d / sigma), d / sigma = sqrt(2 rho) (Dong, Roth, Su 2022).
    """
    rho, runs = 0.5, _runs(quick)
    released = []
    for value in (0.0, 1.0):
        # n values of joint sensitivity sqrt n at n rho: each has the noise of a single run at rho.
        values = np.full(runs, value)
        released.append(
            gaussian(_accountant(), values, sensitivity=math.sqrt(runs), rho=runs * rho, label="a")
        )
    mu, worst = math.sqrt(2 * rho), 0.0
    for cut in np.linspace(-1.5, 2.5, 9):
        false_alarm = bounds_of_share(int((released[0] > cut).sum()), runs)[1]
        missed = bounds_of_share(int((released[1] <= cut).sum()), runs)[1]
        if 0 < false_alarm < 1:
            # The signal that these two upper bounds prove at least; an honest mechanism has no more
            # than mu.
            worst = max(worst, float(special.ndtri(1 - false_alarm) - special.ndtri(missed)))
    yield Finding.of(
        "telling apart",
        "Gaussian, against the exact trade-off (mu)",
        claimed=mu,
        found=worst,
        least=0.8,
    )


def _histogram(data: jaxcd.Dataset, epsilon: float) -> np.ndarray:
    return jaxcd.Histogram().release(data, budget=jaxcd.Budget(epsilon)).values


def _whole_release(quick: bool) -> Iterator[Finding]:
    """A whole release: is the record that was replaced in it?  By the difference of the two cells
    that it moves.
    """
    epsilon, n, runs = 1.0, 12, 1_500 if quick else 6_000
    domain = jaxcd.Domain({"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Categorical((0, 1))})
    codes = np.zeros((n, 2), dtype=np.int32)
    other = codes.copy()
    other[0] = 1
    counts = []
    for part in (codes, other):
        data = jaxcd.Dataset.from_codes(part, domain=domain)
        shown = [_histogram(data, epsilon) for _ in range(runs)]
        counts.append(sum(bool(v[1, 1] - v[0, 0] > 1 - n) for v in shown))
    found = epsilon_at_delta(counts[0], counts[1], runs)
    yield Finding.of(
        "telling apart", "a whole release of a histogram", claimed=epsilon, found=found, least=0.1
    )


LAWS: Checks = {
    "laws: secure noise": _secure_noise,
    "laws: rounded Gaussian": _rounded_gaussian,
    "laws: noise is drawn anew": _fresh_noise,
    "laws: one draw of several processes": _one_draw,
    "laws: subsets": _uniform_subsets,
    "laws: failure probabilities": _stability,
    "telling apart: Laplace and exponential mechanism": _mechanisms,
    "telling apart: Gaussian": _gaussian_trade_off,
    "telling apart: a whole release": _whole_release,
}
"""The checks of this file by name; the argument says whether to be quick."""
