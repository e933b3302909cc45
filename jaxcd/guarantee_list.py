"""Every mechanism of jaxcd: what it claims, whether that is proved, and what must be public."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["Guarantee", "guarantees"]

_ROOMS = (
    "privacy",
    "privacy.propose_test_release",
    "citests",
    "decisions",
    "discovery",
    "releases",
    "federated",
    "pairwise",
    "local",
    "published",
)


@dataclass(frozen=True)
class Guarantee:
    """A claim, with the public name of its holder.

    Args:
        mechanism: the public name.
        claim: in a sentence.
        proven: whether it stands on a proof.
        assumptions: what must be public, and which data sets are neighbours.
        proof: the modules with the proof, or why there is none.
    """

    mechanism: str
    claim: str
    proven: bool
    assumptions: str
    proof: str


def guarantees() -> tuple[Guarantee, ...]:
    """The claims of every class and function of the public lists of the rooms.

    Returns:
        One entry a holder, room by room; those of :mod:`jaxcd.local` and :mod:`jaxcd.published` are
        named with their room.

    Example:
        >>> import jaxcd
        >>> found = {each.mechanism: each for each in jaxcd.guarantees()}
        >>> print(found["PooledCovariance"].claim)
        margin sensitivity 4.172 records, at every alpha
        >>> found["published.pcd"].proven
        False
    """
    found = []
    for room in _ROOMS:
        module = importlib.import_module(f"jaxcd.{room}")
        for name in module.__all__:
            holder = getattr(module, name)
            claim = getattr(holder, "claim", None)
            if isinstance(claim, GuaranteeClaim):
                shown = f"{room}.{name}" if room in ("local", "published") else name
                proof = claim.proof or holder.__module__
                found.append(Guarantee(shown, claim.claim, claim.proven, claim.assumptions, proof))
    return tuple(found)
