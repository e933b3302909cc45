r"""Batches of noisy margins: what is measured is released, so everything decided from it is post-processing.

The smallest margin over a set of candidates moves by no more than a single margin (the minimum of Delta-Lipschitz functions is
Delta-Lipschitz), so N of them have the L2 sensitivity Delta sqrt(N), whatever the candidates; and the difference of two such minima
moves by at most 2 Delta, half of it by Delta.  N and the candidates must depend only on what was released before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxcd.decisions.base import Question, queries_of
from jaxcd.privacy import Accountant, gaussian
from jaxcd.queries import Session

__all__ = ["Measured", "margins_of", "opening_margins", "smallest_margins"]


class Measured(NamedTuple):
    """Noisy numbers, float64 (n,), and the standard deviation of their noise; public."""

    values: np.ndarray
    sigma: float


def margins_of(session: Session, questions: Sequence[Question]) -> list[np.ndarray]:
    """Margins of every candidate, one array a question: sensitive, for the arguments of mechanisms only."""
    values = session.margins([query for question in questions for query in queries_of(question)]).expose()
    return np.split(values, np.cumsum([len(question.candidates) for question in questions])[:-1])


def _measure(session: Session, accountant: Accountant, exact: np.ndarray, *, rho: float, label: str) -> Measured:
    if not len(exact):
        return Measured(exact, 0.0)
    bound = session.sensitivity()
    sensitivity = bound.value * math.sqrt(len(exact))
    noisy = gaussian(
        accountant, exact, sensitivity=sensitivity, pad=bound.pad, rho=rho, label=label, relation=session.relation
    )  # fmt: skip
    return Measured(noisy, 0.0 if math.isinf(rho) else sensitivity / math.sqrt(2 * rho))


def smallest_margins(
    session: Session, accountant: Accountant, margins: Sequence[np.ndarray], *, rho: float, label: str
) -> Measured:
    r"""The smallest of each array of margins, with Gaussian noise.

    Guarantee
    ---------
    Relation: the session's.  Sensitivity: Delta sqrt(N) in L2 for N arrays.  Event: ``ZCDPEvent(rho)`` (none for N = 0).  Public: N and
    the candidates behind the margins.  Proof: module docstring.
    """
    exact = np.array([part.min() for part in margins])
    return _measure(session, accountant, exact, rho=rho, label=label)


def opening_margins(
    session: Session,
    accountant: Accountant,
    holding: Sequence[np.ndarray],
    lacking: Sequence[np.ndarray | None],
    *,
    rho: float,
    label: str,
) -> Measured:
    r"""How much a middle opens a path, with Gaussian noise: min(holding), or half of min(holding) - min(lacking).

    holding: margins over the candidate sets with the middle.  lacking: margins over those without, or None where nothing is to be
    subtracted.  Half a difference moves by as much as one margin, so that both kinds share a batch.

    Guarantee
    ---------
    As :func:`smallest_margins`: sensitivity Delta sqrt(N).
    """
    exact = np.array(
        [a.min() if b is None else (a.min() - b.min()) / 2 for a, b in zip(holding, lacking, strict=True)]
    )
    return _measure(session, accountant, exact, rho=rho, label=label)
