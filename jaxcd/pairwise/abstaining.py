r"""Cause, effect or neither: when the difference of two scores is no evidence for a direction.

Two variables with a common cause, and independent ones, have different scores too, for no method is
symmetric in every other respect.  So an answer is kept only if the released difference is larger
than those of m = 81 pairs that are known to be neither (of the challenge's third supplementary set;
``neither.json``, written by ``python -m benchmarks.neither --write``) would be.

**The rule.**  Let g_1, ..., g_m be the sizes of their differences without noise, and Lap(s) the
noise of the run, whose scale s is public (0 without privacy).  With p_i(t) = P[abs(g_i + Lap(s)) >
t] the threshold is the least t with

    (p_1(t) + ... + p_m(t) + 1) / (m + 1) <= error_rate,

and an answer with a margin of at most t becomes UNDECIDED.  This is conformal risk control
(Angelopoulos, Bates, Fisch, Lei, Schuster 2022) with a loss in [0, 1] that falls in t: a further
pair that is exchangeable with the m is given a direction with probability at most ``error_rate``,
the mean taken over the m pairs, the further one and the noise.  Proof: with the threshold t' made
from all m + 1 in the same way, without the + 1, sum p_j(t') <= (m + 1) error_rate and t' <= t; t'
does not depend on the order of the pairs, so E p_{m+1}(t) <= E p_{m+1}(t') <= error_rate.

What it is not: a rate for pairs of another kind.  ``python -m benchmarks.neither`` measures it on
pairs drawn from other models too.

Guarantee:
    Post-processing: reads the released difference, the public scale of its noise and the public
    options and number of rows, nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxcd.checks import a_type, is_number
from jaxcd.errors import OptionError
from jaxcd.pairwise.result import Direction, PairResult
from jaxcd.privacy.claims import GuaranteeClaim, claiming

__all__ = ["FILE", "decided", "form_of", "or_neither", "scale_of", "size_of", "threshold"]

FILE = Path(__file__).with_name("neither.json")
"""The sizes of the differences on pairs that are neither, by form."""


@claiming(
    GuaranteeClaim(
        "post-processing: reads released numbers only", assumptions="those of the answer"
    )
)
def or_neither(result: PairResult, *, error_rate: float = 0.1) -> PairResult:
    """The answer if its margin is evidence for a direction, else UNDECIDED.

    Args:
        result: of :func:`jaxcd.anm`, ``reci``, ``igci`` or ``cds`` with their default options,
            private or not.
        error_rate: of 100 pairs like the challenge's that are neither, at most 100 times this many
            get a direction; from 1/82 to 1.

    Returns:
        The result with ``info["least_margin"]`` and ``info["error_rate"]``; its direction is
        UNDECIDED where the margin is not above that.

    Raises:
        OptionError: the rate is out of its range, or the method was never run on such pairs.

    Guarantee:
        That of the answer: this is post-processing (:mod:`jaxcd.pairwise.abstaining`).

    Source:
        Angelopoulos, Bates, Fisch, Lei, Schuster 2022; Guyon 2013 for the pairs.

    Example:
        >>> import jaxcd, numpy as np
        >>> from jaxcd.pairwise import or_neither
        >>> x, y = np.random.default_rng(0).uniform(size=(2, 500))
        >>> found = jaxcd.reci(x, y, budget=jaxcd.NO_PRIVACY)
        >>> or_neither(found).direction.value
        'undecided'
    """
    if not isinstance(result, PairResult):
        raise OptionError(
            f"result: {a_type(result)} is no PairResult; give what anm, reci, igci or cds returned"
        )
    form = form_of(result)
    sizes = _known().get(form)
    if sizes is None:
        raise OptionError(
            f"result: {form!r} was never measured on pairs that are neither; use the default "
            f"options of a method, one of {', '.join(_known())}"
        )
    least = 1 / (len(sizes) + 1)
    if not is_number(error_rate, least, 1):
        raise OptionError(
            f"error_rate = {error_rate!r} is not between {least:.4f} and 1: {len(sizes)} pairs "
            "tell no smaller one; give 0.1"
        )
    found = threshold(sizes, scale_of(result), error_rate)
    kept = size_of(result) > found
    return dataclasses.replace(
        result,
        direction=result.direction if kept else Direction.UNDECIDED,
        info={**result.info, "error_rate": error_rate, "least_margin": found * _unit(result)},
    )


def form_of(result: PairResult) -> str:
    """What tells forms of methods apart, from public facts."""
    info = result.info
    private = not math.isinf(result.cost.epsilon)
    names = ("method", "score", "regressor", "reference", "estimator", "mechanism", "protect")
    words = [str(info[name]) for name in names if info.get(name) is not None]
    return " ".join([*words, "private" if private else "plain"])


def size_of(result: PairResult) -> float:
    """The margin; of a number of records to be changed, as a share of the rows."""
    return result.margin / _unit(result)


def scale_of(result: PairResult) -> float:
    """The scale of the Laplace noise in :func:`size_of`; 0 without privacy."""
    return float(result.info.get("noise_scale", 0.0)) / _unit(result)


def _unit(result: PairResult) -> float:
    return float(result.info["n_samples"]) if "mechanism" in result.info else 1.0


def threshold(sizes: Sequence[float], scale: float, error_rate: float) -> float:
    """The least t at which (m x :func:`decided` + 1) / (m + 1) is at most the rate, to 1e-9."""
    m = len(sizes)
    allowed = (error_rate * (m + 1) - 1) / m
    if allowed < 0:
        return math.inf
    n_above = math.floor(allowed * m + 1e-9)
    if n_above >= m:
        return 0.0
    if scale == 0:
        return float(np.sort(sizes)[m - 1 - n_above])
    low, high = 0.0, max(sizes) + 40 * scale
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if decided(sizes, middle, scale) <= allowed else (middle, high)
    return high


def decided(sizes: Sequence[float], least: float, scale: float, *, side: int = 0) -> float:
    """The mean over g in ``sizes`` of P[abs(g + Lap(scale)) > least]; of the side of g alone with
    ``side`` = 1, of the other with -1.
    """
    g = np.asarray(sizes, dtype=np.float64)
    beyond = [_above(least - g, scale), _above(least + g, scale)]
    return float(np.mean(beyond[0] * (side >= 0) + beyond[1] * (side <= 0)))


def _above(at: np.ndarray, scale: float) -> np.ndarray:
    """P[Lap(scale) > at]."""
    if scale == 0:
        return (at < 0).astype(np.float64)
    tail = 0.5 * np.exp(-np.abs(at) / scale)
    return np.where(at >= 0, tail, 1 - tail)


@functools.cache
def _known() -> dict[str, tuple[float, ...]]:
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: tuple(sizes) for name, sizes in content.items()}
