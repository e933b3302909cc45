"""A round's question as a message has it, and what a site insists on before it answers.

A site trusts no number that its price follows from: it computes the sensitivity itself, and refuses
a question that states less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from jaxcd.checks import is_whole
from jaxcd.errors import OptionError
from jaxcd.privacy.shares import NoiseShare, gaussian_share, laplace_share
from jaxcd.releases.tables import marginal_screen as screen
from jaxcd.releases.tables.marginal_purchase import interactions_sensitivity, pairs_sensitivity
from jaxcd.releases.tables.questions import MarginalsNoise, Question

__all__ = ["bits_of", "body_of", "question_of", "share_of"]

Columns = tuple[int, ...]

_MOST_VALUES = 1 << 24
_FAILURE = 2.0**-40  # probability that some sum of a round leaves the modulus
_MOST_BITS = 64
_WEIGHTS = 2.0**-60, 2.0**60  # far from where their squares, of a sensitivity, leave float64


def share_of(question: Question, n_shares: int) -> NoiseShare:
    """The share of the noise for a question, and its event.

    Raises:
        OptionError: the noise is Laplace, and not all that is asked for are counts.
    """
    options: dict[str, Any] = {
        "n_shares": n_shares,
        "sensitivity": question.sensitivity,
        "dimension": question.dimension,
        "label": question.label,
        "grid": question.grid,
    }
    if question.law is MarginalsNoise.GAUSSIAN:
        try:
            return gaussian_share(
                rho=question.price, pad=question.pad, integral=question.integral, **options
            )
        except OverflowError:
            raise OptionError("question: its noise is beyond the largest float") from None
    if not question.integral or question.grid != 1:
        raise OptionError(
            "kind: with delta = 0 several sites can release a joint histogram only, whose counts "
            "are integers; use Histogram(), or a budget with delta > 0"
        )
    return laplace_share(epsilon=question.price, **options)


def bits_of(question: Question, share: NoiseShare, *, n_sites: int, n_samples: int) -> int:
    r"""The number of bits of a number in a message, a multiple of 8.

    A sum is at most n max w / g + K / 2 steps, as no entry of an interaction of one row is above 1
    and rounding changes a site's number by at most 1/2; and the noise is within its reach except
    with probability 2^-40 for all numbers of the round together.  The modulus is the least that
    holds both, with a bit for the sign: else a number wraps around, which no guarantee minds.

    Raises:
        OptionError: 64 bits are too few.
    """
    largest = max(question.weights.values()) * n_samples / question.grid + n_sites / 2 + 1
    largest += share.reach(n_sites, question.dimension, failure=_FAILURE)
    bits = 8 * math.ceil((math.log2(largest) + 1 + 1e-9) / 8)
    if bits > _MOST_BITS:
        raise OptionError(
            f"budget: the noise needs numbers of {bits} bits, and messages have {_MOST_BITS}; use "
            "a larger epsilon"
        )
    return bits


def body_of(question: Question, *, bits: int) -> dict[str, Any]:
    """What a message says of a question."""
    return {
        "sets": [list(s) for s in question.weights],
        "weights": list(question.weights.values()),
        "tables": [list(s) for s in question.weights if s in question.tables],
        "law": question.law.value,
        "sensitivity": question.sensitivity,
        "price": question.price,
        "label": question.label,
        "pad": question.pad,
        "grid": question.grid,
        "integral": question.integral,
        "bits": bits,
    }


def question_of(
    body: Mapping[str, Any], cardinalities: Columns, *, n_samples: int
) -> tuple[Question, int]:
    """The question of a message, and its bits.

    Args:
        body: of the message.
        cardinalities: of the site's own domain.
        n_samples: of the site, whose numerical error counts.

    Raises:
        OptionError: it is malformed, or states less than the price follows from.
    """
    try:
        sets = [tuple(s) for s in body["sets"]]
        weights = dict(zip(sets, map(float, body["weights"]), strict=True))
        tables = frozenset(tuple(s) for s in body["tables"])
        law = MarginalsNoise(body["law"])
        numbers = {name: float(body[name]) for name in ("sensitivity", "price", "pad", "grid")}
        bits, integral, label = body["bits"], body["integral"], body["label"]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise OptionError("question: a part is missing, or of another kind") from None
    d = len(cardinalities)
    for s in sets:
        if not s or not all(is_whole(j, 0, d - 1) for j in s) or list(s) != sorted(set(s)):
            raise OptionError(f"question: {list(s)!r} are no columns")
    question = Question(
        cardinalities, weights, tables, law, label=label, integral=integral, **numbers
    )
    finite = [*weights.values(), question.sensitivity, question.price]
    if (
        not sets
        or len(weights) < len(sets)
        or not tables <= weights.keys()
        or not all(math.isfinite(x) and x > 0 for x in finite)
        or not all(_WEIGHTS[0] <= w <= _WEIGHTS[1] for w in weights.values())
        or not (math.isfinite(question.pad) and question.pad >= 0)
        or type(integral) is not bool
        or not isinstance(label, str)
        or question.dimension > _MOST_VALUES
        or any(min(question.shape(s)) < 1 for s in sets)
    ):
        raise OptionError("question: a number is out of its range")
    if not is_whole(bits, 8, _MOST_BITS) or bits % 8:
        raise OptionError(f"question: bits = {bits!r} is no multiple of 8 up to {_MOST_BITS}")
    _check_price(question, n_samples)
    return question, bits


def _check_price(question: Question, n_samples: int) -> None:
    weights, k = question.weights, question.cardinalities
    whole = question.tables == weights.keys() and set(weights.values()) == {1.0}
    if question.integral and not whole:
        raise OptionError("question: interactions and weighted counts are no integers")
    if question.law is MarginalsNoise.LAPLACE:
        if not whole:
            raise OptionError("question: Laplace noise over several sites is for counts only")
        least, pad = screen.COUNTED_CHANGE * len(weights), 0.0
    else:
        if question.tables:
            raise OptionError("question: Gaussian noise over several sites is for interactions")
        least = _least_sensitivity(k, weights)
        pad = n_samples * 2.0**-48 * max(weights.values()) * max(map(len, weights)) * (max(k) + 8)
    if question.sensitivity < least * (1 - 1e-12) or question.pad < pad * (1 - 1e-12):
        raise OptionError(
            f"question: it states a sensitivity of {question.sensitivity:.6g} with a pad of "
            f"{question.pad:.3g}, and what it asks for has {least:.6g} and {pad:.3g}"
        )


def _least_sensitivity(cardinalities: Columns, weights: Mapping[Columns, float]) -> float:
    """The smallest bound that is proved for these interactions."""
    bound = interactions_sensitivity(cardinalities, weights)
    if max(map(len, weights)) <= 2 and max(weights.values()) <= 1:
        # no more than the columns and pairs at weight 1: leaving terms out makes it no larger
        pairs = itertools.combinations(range(len(cardinalities)), 2)
        absent = [pair for pair in pairs if pair not in weights]
        bound = min(bound, pairs_sensitivity(cardinalities, absent=absent))
    return bound
