"""Noise of a run that several processes of one owner compute together.

Every process runs the same lines, and secure noise has no seed: left to themselves, each would draw
noise of its own, and two answers to one question would be published for the price of one.  So the
first process's noise is the noise of the run, and what the others drew is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .noise import Integers, NoiseSampler, NoiseSource

__all__ = ["OneDraw"]

Tell = Callable[[Integers], Integers]


@dataclass(frozen=True, eq=False)
class OneDraw(NoiseSource):
    """The noise of the first of several processes, in all of them.

    A run on rows of several processes (:meth:`jaxcd.Dataset.on`) puts it around the noise that it
    was given; nobody else needs it.

    Args:
        source: where each process takes its noise from; the same kind in all of them.
        tell: gives the whole numbers of the first process to all, which call it together.

    Guarantee:
        That of a run of one process: every draw that a mechanism adds is the first process's, drawn
        once, and the same in all of them, so that what they return and publish is one answer and
        not several.  The draws of the others are added to nothing.  They count as secure where the
        first process's do.  The processes are one owner's: they send each other exact sums and the
        noise itself, unencrypted, so the network between them must be trusted as the memory is.

    Example:
        >>> import jaxcd
        >>> noise = jaxcd.privacy.OneDraw(jaxcd.privacy.SecureNoise(), lambda words: words)
        >>> noise.start().discrete_laplace(2.0, 3, index=0).shape
        (3,)
    """

    source: NoiseSource
    tell: Tell

    @property
    def secure(self) -> bool:
        """Whether this process's source is; a sampler says what holds for the first one's."""
        return self.source.secure

    @property
    def rests_on(self) -> tuple[object, ...]:
        return (self, *self.source.rests_on)

    def start(self) -> NoiseSampler:
        """Return a fresh sampler; all processes start theirs together."""
        sampler = self.source.start()
        secure = self.tell(np.array([sampler.secure], dtype=np.int64))
        return _OneSampler(sampler, self.tell, bool(secure[0]))


class _OneSampler(NoiseSampler):
    def __init__(self, sampler: NoiseSampler, tell: Tell, secure: bool) -> None:
        self._sampler, self._tell, self._secure = sampler, tell, secure

    @property
    def secure(self) -> bool:
        return self._secure

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> Integers:
        return self._tell(self._sampler.discrete_laplace(scale, size, index=index))

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        return self._tell(self._sampler.discrete_gaussian(sigma, size, index=index))

    def rounded_gaussian(self, sigma: float, size: int, *, index: int) -> Integers:
        return self._tell(self._sampler.rounded_gaussian(sigma, size, index=index))

    def polya(self, scale: float, parts: int, size: int, *, index: int) -> Integers:
        return self._tell(self._sampler.polya(scale, parts, size, index=index))

    def geometric(self, scale: float, size: int, *, index: int) -> Integers:
        return self._tell(self._sampler.geometric(scale, size, index=index))

    def subset(self, n: int, m: int, *, index: int) -> NDArray[np.bool_]:
        chosen = self._sampler.subset(n, m, index=index).astype(np.int64)
        found: NDArray[np.bool_] = self._tell(chosen) > 0
        return found

    def gumbel_max(self, scores: Integers, scale: float, *, index: int) -> int:
        return self.gumbel_top(scores, scale, 1, index=index)[0]

    def gumbel_top(self, scores: Integers, scale: float, size: int, *, index: int) -> list[int]:
        chosen = self._sampler.gumbel_top(scores, scale, size, index=index)
        return [int(place) for place in self._tell(np.array(chosen, dtype=np.int64))]
