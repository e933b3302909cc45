r"""Batches of noisy margins: what is measured is released, so everything decided from it is
post-processing.

The smallest margin over a set of candidates moves by no more than a single margin (the minimum of
Delta-Lipschitz functions is Delta-Lipschitz), so N of them have the L2 sensitivity Delta sqrt(N),
whatever the candidates; and the difference of two such minima moves by at most 2 Delta, half of it
by Delta.  N and the candidates must depend only on what was released before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxcd.citests import Query
from jaxcd.decisions.base import Question, queries_of
from jaxcd.privacy import Accountant, Sensitive, gaussian
from jaxcd.queries import Session

__all__ = ["Measured", "margins_of", "openings", "released_margin", "smallest_margins"]

#: of <U, C>, in records, if a record is replaced; see :func:`openings`
PROJECTION_SENSITIVITY = 4.0


class Measured(NamedTuple):
    """Noisy numbers, float64 (n,), and the standard deviation of their noise; public."""

    values: np.ndarray
    sigma: float


def released_margin(
    session: Session,
    question: Question,
    level: int | str,
    margin: float,
    threshold: float,
    sigma: float,
) -> dict[str, Any]:
    """What a run says of a pair whose noisy margin it has released."""
    return {
        "pair": (session.names[question.x], session.names[question.y]),
        "level": level,
        "margin": float(margin),
        "threshold": float(threshold),
        "sigma": float(sigma),
    }


def margins_of(session: Session, questions: Sequence[Question]) -> list[Sensitive]:
    """Margins of every candidate, one array a question: for the arguments of mechanisms."""
    if not questions:
        return []
    values = session.margins([query for question in questions for query in queries_of(question)])
    return values.groups([len(question.candidates) for question in questions])


def _measure(
    session: Session, accountant: Accountant, exact: Sensitive, *, rho: float, label: str
) -> Measured:
    if not len(exact):
        return Measured(np.zeros(0), 0.0)
    bound = session.sensitivity()
    sensitivity = bound.value * math.sqrt(len(exact))
    noisy = gaussian(
        accountant,
        exact,
        sensitivity=sensitivity,
        pad=bound.pad,
        rho=rho,
        label=label,
        relation=session.relation,
    )
    return Measured(noisy, 0.0 if math.isinf(rho) else sensitivity / math.sqrt(2 * rho))


def smallest_margins(
    session: Session,
    accountant: Accountant,
    margins: Sequence[Sensitive],
    *,
    rho: float,
    label: str,
) -> Measured:
    r"""The smallest of each array of margins, with Gaussian noise.

    Guarantee:
        Relation: the session's.  Sensitivity: Delta sqrt(N) in L2 for N arrays.  Event:
        ``GaussianEvent(rho)`` (none for N = 0).  Public: N and the candidates behind the margins.
        Proof: module docstring.
    """
    exact = Sensitive.joined(
        margins, lambda *parts: np.array([part.min() for part in parts], dtype=np.float64)
    )
    return _measure(session, accountant, exact, rho=rho, label=label)


def openings(
    session: Session,
    accountant: Accountant,
    differences: Sequence[tuple[Sensitive, Sensitive]],
    projections: Sequence[tuple[Query, np.ndarray]],
    *,
    rho: float,
    label: str,
) -> tuple[Measured, Measured]:
    r"""How much a middle opens a path, in two ways, in one batch with Gaussian noise.

    Args:
        differences: margins over the candidate sets with the middle, and over those without: min -
            min is measured.
        projections: a query and a public matrix U of Frobenius norm at most 1: <U, C> is measured,
            C = sum_k C_k the covariance of the one-hot codes of x and y within the strata.

    Guarantee:
        As :func:`smallest_margins`, sensitivity Delta sqrt(N): half a difference of two minima
        moves by at most Delta.  Adding a record changes one C_k by (n_k / (n_k + 1)) a b^T, a and b
        differences of a one-hot vector and a distribution, |a|, |b| <= sqrt 2; so <U, C> moves by
        at most 2, by at most 4 if a record is replaced, and Delta / 4 of it by at most Delta.
    """
    bound = session.sensitivity()
    scale, n_halves = bound.value / PROJECTION_SENSITIVITY, len(differences)
    projected = session.projections(
        [query for query, _ in projections], [u for _, u in projections]
    )

    def halves_and_projections(projected: np.ndarray, *margins: np.ndarray) -> np.ndarray:
        halves = [
            (first.min() - second.min()) / 2
            for first, second in zip(margins[::2], margins[1::2], strict=True)
        ]
        return np.concatenate([np.array(halves, dtype=np.float64), projected * scale])

    exact = Sensitive.joined(
        [projected, *(part for pair in differences for part in pair)], halves_and_projections
    )
    values, sigma = _measure(session, accountant, exact, rho=rho, label=label)
    return (
        Measured(2 * values[:n_halves], 2 * sigma),
        Measured(values[n_halves:] / scale, sigma / scale),
    )
