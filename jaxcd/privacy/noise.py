r"""Integer noise: exact from the operating system's entropy, or simulated from a key.

All noise is on the integers (doubles leak: Mironov 2012), and all draws come back as int64,
saturated at +-:data:`NOISE_LIMIT`. Mechanisms undo or absorb the saturation exactly (see
:mod:`jaxcd.privacy.mechanisms`), so it costs no privacy; with scales up to :data:`SCALE_LIMIT` it
has a probability below exp(-64).

A :class:`NoiseSource` is configuration, frozen and shareable; its :meth:`NoiseSource.start` gives a
fresh :class:`NoiseSampler`, the state of one run.

* discrete Laplace of scale s: P[X = k] proportional to exp(-abs(k)/s), k any integer;
* discrete Gaussian of parameter sigma: P[X = k] proportional to exp(-k^2 / (2 sigma^2));
* rounded Gaussian of parameter sigma: round(sigma N) for a standard normal N;
* geometric of scale s (one-sided): P[X = k] proportional to exp(-k/s), k = 0, 1, 2, ...

Source:
    Canonne, Kamath, Steinke 2020, The discrete Gaussian for differential privacy (exact samplers,
    used through OpenDP).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import a_type, check_count, check_key, check_positive
from ..errors import OptionError
from .claims import GuaranteeClaim
from .polya import POLYA_LIMIT, negative_binomial
from .rounded_gaussian import ROUNDED_LIMIT, rounded_gaussian

NOISE_LIMIT = 2**62
"""Draws are saturated at plus and minus this number; saturated draws stay marked by being equal to
it.
"""

SCALE_LIMIT = 2.0**56
"""The largest scale, in steps of the grid."""

Integers = NDArray[np.int64]


def check_scale(name: str, value: float) -> float:
    """Return the scale if its draws fit into int64, else raise OptionError."""
    cure = "it is sensitivity over epsilon, in steps of the grid"
    value = check_positive(name, value, allow_infinity=True, cure=cure)
    if not value <= SCALE_LIMIT:
        raise OptionError(
            f"the budget is too small: noise so large cannot be drawn exactly ({name} = "
            f"{value:.3g} steps of the grid, at most 2**56); use a larger epsilon, or with a "
            "mechanism of your own a coarser grid"
        )
    return value


def check_rounded(sigma: float) -> float:
    """Return the sigma of a rounded Gaussian if its exact sampler takes it, else raise
    OptionError."""
    sigma = check_scale("noise sigma", sigma)
    if not sigma <= ROUNDED_LIMIT:
        raise OptionError(
            "the budget is too small: noise so large cannot be drawn exactly (noise sigma = "
            f"{sigma:.3g} steps of the grid, at most 2**50 where it is rounded); use a larger "
            "epsilon, or with a mechanism of your own a coarser grid"
        )
    return sigma


def check_polya(scale: float) -> float:
    """Return the scale of Laplace noise if its shares can be drawn, else raise OptionError."""
    scale = check_scale("scale", scale)
    if not scale <= POLYA_LIMIT:
        raise OptionError(
            "the budget is too small: shares of noise so large cannot be drawn exactly (scale = "
            f"{scale:.3g} steps of the grid, at most 2**14); use a larger epsilon"
        )
    return scale


class NoiseSampler(ABC):
    """The state of one run: draws noise, each time fresh.

    ``index`` is the ledger's index of the event that pays for the draw; successive draws under one
    index differ.
    """

    @property
    @abstractmethod
    def secure(self) -> bool:
        """Whether the draws are unpredictable; only then may a result be released."""

    @abstractmethod
    def discrete_laplace(self, scale: float, size: int, *, index: int) -> Integers:
        """Draw ``size`` independent discrete Laplace integers."""

    @abstractmethod
    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        """Draw ``size`` independent discrete Gaussian integers."""

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        """Draw ``size`` independent integers round(sigma N), N standard normal
        (:mod:`jaxcd.privacy.rounded_gaussian`).

        Raises:
            OptionError: this sampler has none.
        """
        raise OptionError(
            f"noise: {a_type(self)} has no rounded Gaussian noise, which a budget with "
            "Gaussian accounting needs; use SecureNoise(), or give the sampler this method"
        )

    def polya(self, scale: float, parts: int, size: int, *, index: int) -> Integers:
        """Draw ``size`` independent integers, ``parts`` of which add up to discrete Laplace noise
        of this scale (:mod:`jaxcd.privacy.shares`).

        Raises:
            OptionError: this sampler has none.
        """
        raise OptionError(
            f"noise: {a_type(self)} has no shares of Laplace noise, which a release of "
            "several sites needs; use SecureNoise(), or give the sampler this method"
        )

    @abstractmethod
    def geometric(self, scale: float, size: int, *, index: int) -> Integers:
        """Draw ``size`` independent one-sided geometric integers: 0, 1, 2, ..."""

    @abstractmethod
    def subset(self, n: int, m: int, *, index: int) -> NDArray[np.bool_]:
        """Draw a uniformly random subset of m of n records, as a mask of length n."""

    @abstractmethod
    def gumbel_max(self, scores: Integers, scale: float, *, index: int) -> int:
        """Draw an index with probability proportional to exp(scores / scale)."""

    def gumbel_top(self, scores: Integers, scale: float, size: int, *, index: int) -> list[int]:
        """Draw ``size`` indices one after the other, each among those not drawn before, with
        probability proportional to exp(scores / scale): in their order the largest of
        scores + scale * Gumbel noise.
        """
        left, chosen = np.arange(len(scores)), []
        for _ in range(check_top(size, len(scores))):
            place = self.gumbel_max(scores[left], scale, index=index)
            chosen.append(int(left[place]))
            left = np.delete(left, place)
        return chosen


class NoiseSource(ABC):
    """Where noise comes from: configuration of a run."""

    @property
    @abstractmethod
    def secure(self) -> bool:
        """Whether the draws are unpredictable; only then may a result be released."""

    @property
    def rests_on(self) -> tuple[object, ...]:
        """The objects whose claims its own rests on, itself among them."""
        return (self,)

    @abstractmethod
    def start(self) -> NoiseSampler:
        """Return a fresh sampler, the state of one run."""


@dataclass(frozen=True)
class SecureNoise(NoiseSource):
    """Exact integer noise from the operating system's entropy: the default, and the only noise fit
    for release.

    Guarantee:
        Discrete Laplace and Gaussian draws, and Gumbel maxima, are exact in distribution (OpenDP's
        samplers on integers and rationals, no floating point); the others are derived from them, or
        from ``os.urandom``, exactly (for rounded Gaussian draws, where doubles decide what they
        surely can, :mod:`jaxcd.privacy.rounded_gaussian` has the proof). There is no seed, and
        nothing to reproduce.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
        >>> noise = jaxcd.privacy.SecureNoise()
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> bought.cost.proven
        True
    """

    @property
    def secure(self) -> bool:
        """True."""
        return True

    def start(self) -> NoiseSampler:
        """Return a fresh sampler."""
        return _SecureSampler()


@dataclass(frozen=True)
class SimulatedNoise(NoiseSource):
    """Reproducible noise from a key, for experiments and tests only: it protects nobody.

    A result made with it must not be released, and says so.

    Who has the key has the noise, and takes it off.  Samplers started from the same key draw the
    same numbers in the same order of calls, independently for each ledger index.  The distributions
    are those of :class:`SecureNoise` to double precision.

    Args:
        key: a typed JAX key, ``jax.random.key(...)``.

    Raises:
        OptionError: ``key`` is not a single typed key.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = [
        ...     jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        ...     for _ in range(2)
        ... ]
        >>> (bought[0].values == bought[1].values).all().item(), bought[0].cost.proven
        (True, False)
    """

    claim = GuaranteeClaim(
        "none: whoever knows the key can take the noise off",
        proof="for experiments, not for release",
        proven=False,
        assumptions="-",
    )

    key: Any

    def __post_init__(self) -> None:
        _key_words(self.key)

    @property
    def secure(self) -> bool:
        """False."""
        return False

    def start(self) -> NoiseSampler:
        """Return a fresh sampler that draws the same numbers as every other from this key."""
        return _SimulatedSampler(_key_words(self.key))


def _key_words(key: Any) -> tuple[int, ...]:
    import jax

    check_key(key, cure="use SimulatedNoise(jax.random.key(0))")
    return tuple(int(word) for word in np.asarray(jax.random.key_data(key)).ravel())


def check_top(size: int, n_scores: int) -> int:
    """The number of choices; OptionError unless there are as many scores."""
    if check_count("size", size, minimum=1) > n_scores:
        raise OptionError(f"size = {size} choices of {n_scores} scores: ask for fewer")
    return size


def _check_subset(n: int, m: int) -> None:
    check_count("n", n)
    if check_count("m", m) > n:
        raise OptionError(
            f"m must be at most n={n}, got {m}: a subset drawn without replacement is no larger "
            "than the whole"
        )


@lru_cache(maxsize=1)
def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=256)
def _laplace_measurement(scale: float) -> Any:
    dp = _opendp()
    return dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=scale
    )


@lru_cache(maxsize=256)
def _gaussian_measurement(sigma: float) -> Any:
    dp = _opendp()
    return dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=sigma
    )


@lru_cache(maxsize=256)
def _gumbel_measurement(scale: float, size: int) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    return dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), k=size, scale=scale)


def _saturate(draws: list[int]) -> Integers:
    return np.clip(np.asarray(draws, dtype=np.int64), -NOISE_LIMIT, NOISE_LIMIT)


class _SecureSampler(NoiseSampler):
    @property
    def secure(self) -> bool:
        return True

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> Integers:
        scale, size = check_scale("scale", scale), check_count("size", size)
        return _saturate(_laplace_measurement(scale)([0] * size)) if size else np.zeros(0, np.int64)

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        sigma, size = check_scale("sigma", sigma), check_count("size", size)
        return (
            _saturate(_gaussian_measurement(sigma)([0] * size)) if size else np.zeros(0, np.int64)
        )

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        sigma, size = check_rounded(sigma), check_count("size", size)
        draws = rounded_gaussian(
            sigma,
            size,
            discrete=lambda count: self.discrete_gaussian(sigma, count, index=index),
            words=lambda count: np.frombuffer(os.urandom(8 * count), dtype=np.uint64),
        )
        return np.clip(draws, -NOISE_LIMIT, NOISE_LIMIT)

    def polya(self, scale: float, parts: int, size: int, *, index: int) -> Integers:
        scale, size = check_polya(scale), check_count("size", size)
        draws = negative_binomial(
            check_count("parts", parts, minimum=1),
            2 * size,
            geometric=lambda count: self.geometric(scale, count, index=index),
            words=lambda count: np.frombuffer(os.urandom(8 * count), dtype=np.uint64),
        )
        return draws[:size] - draws[size:]

    def geometric(self, scale: float, size: int, *, index: int) -> Integers:
        # A discrete Laplace conditioned on X >= 0 has P[X = k] proportional to exp(-k/s) on k >= 0:
        # the geometric. Rejection draws from the conditional law exactly, and accepts with
        # probability above 1/2; how often it tries depends on no data.
        kept: list[Integers] = []
        missing = check_count("size", size)
        while missing > 0:
            draws = self.discrete_laplace(scale, 2 * missing + 8, index=index)
            draws = draws[draws >= 0][:missing]
            kept.append(draws)
            missing -= len(draws)
        return np.concatenate(kept) if kept else np.zeros(0, np.int64)

    def subset(self, n: int, m: int, *, index: int) -> NDArray[np.bool_]:
        # The m records with the smallest of n independent uniform keys. Keys are exchangeable, and
        # so they are given that the m-th and the (m+1)-th smallest differ (a symmetric event);
        # every m-subset is then equally likely. Otherwise all keys are drawn anew.
        _check_subset(n, m)
        if m in (0, n):
            return np.full(n, m == n and n > 0)
        while True:
            keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
            ordered = np.partition(keys, (m - 1, m))
            if ordered[m - 1] != ordered[m]:
                found: NDArray[np.bool_] = keys <= ordered[m - 1]
                return found

    def gumbel_max(self, scores: Integers, scale: float, *, index: int) -> int:
        check_count("number of scores", len(scores), minimum=1)
        return self.gumbel_top(scores, scale, 1, index=index)[0]

    def gumbel_top(self, scores: Integers, scale: float, size: int, *, index: int) -> list[int]:
        size = check_top(size, len(scores))
        found = _gumbel_measurement(check_scale("scale", scale), size)(scores.tolist())
        return [int(place) for place in found]


class _SimulatedSampler(NoiseSampler):
    """One generator for each ledger index, in its own stream; successive draws go on along the
    stream.
    """

    def __init__(self, words: tuple[int, ...]) -> None:
        self._words = words
        self._generators: dict[int, np.random.Generator] = {}

    @property
    def secure(self) -> bool:
        return False

    def _generator(self, index: int) -> np.random.Generator:
        if index not in self._generators:
            # The length goes first: without it the words of two kinds of key could run into the
            # index.
            seed = np.random.SeedSequence(
                [len(self._words), *self._words, check_count("index", index)]
            )
            self._generators[index] = np.random.Generator(np.random.Philox(seed))
        return self._generators[index]

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> Integers:
        # The difference of two independent geometrics of scale s is discrete Laplace of scale s.
        pairs = self.geometric(scale, 2 * check_count("size", size), index=index).reshape(size, 2)
        return pairs[:, 0] - pairs[:, 1]

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        sigma, size = check_scale("sigma", sigma), check_count("size", size)
        generator = self._generator(index)
        if sigma >= 64:  # rounding a Gaussian instead adds 1/12 to a variance of at least 4096
            return np.clip(
                np.rint(generator.standard_normal(size) * sigma), -NOISE_LIMIT, NOISE_LIMIT
            ).astype(np.int64)
        reach = math.ceil(12 * sigma) + 2
        support = np.arange(-reach, reach + 1)
        cumulative = np.cumsum(np.exp(-0.5 * (support / sigma) ** 2))
        positions = np.searchsorted(
            cumulative, generator.random(size) * cumulative[-1], side="right"
        )
        found: Integers = support[positions].astype(np.int64)
        return found

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        sigma, size = check_rounded(sigma), check_count("size", size)
        draws = np.rint(self._generator(index).standard_normal(size) * sigma)
        return np.clip(draws, -NOISE_LIMIT, NOISE_LIMIT).astype(np.int64)

    def polya(self, scale: float, parts: int, size: int, *, index: int) -> Integers:
        scale, size = check_polya(scale), check_count("size", size)
        p = -math.expm1(-1 / scale)
        shape = 1 / check_count("parts", parts, minimum=1)
        draws = self._generator(index).negative_binomial(shape, p, 2 * size)
        return draws[:size] - draws[size:]

    def geometric(self, scale: float, size: int, *, index: int) -> Integers:
        scale, size = check_scale("scale", scale), check_count("size", size)
        # floor(s E) with E standard exponential: P[floor(s E) >= k] = P[E >= k/s] = exp(-k/s).
        draws = np.floor(self._generator(index).standard_exponential(size) * scale)
        return np.minimum(draws, NOISE_LIMIT).astype(np.int64)

    def subset(self, n: int, m: int, *, index: int) -> NDArray[np.bool_]:
        _check_subset(n, m)
        mask = np.zeros(n, dtype=np.bool_)
        mask[self._generator(index).permutation(n)[:m]] = True
        return mask

    def gumbel_max(self, scores: Integers, scale: float, *, index: int) -> int:
        check_count("number of scores", len(scores), minimum=1)
        return self.gumbel_top(scores, scale, 1, index=index)[0]

    def gumbel_top(self, scores: Integers, scale: float, size: int, *, index: int) -> list[int]:
        size, count = check_top(size, len(scores)), len(scores)
        gaps = (scores - scores.max()) / check_scale("scale", scale)
        noisy = gaps + self._generator(index).gumbel(size=count)
        found: list[int] = np.argsort(-noisy, kind="stable")[:size].tolist()
        return found
