"""What a class or a function claims about privacy: one sentence, whether it is proved, what it
assumes, and where the proof stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["PUBLIC", "GuaranteeClaim", "claiming"]

PUBLIC = (
    "replace-one neighbours; the number of rows, the declared domain and all options are public"
)
"""What nearly every claim assumes."""

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class GuaranteeClaim:
    """One claim, which its class or function holds as ``claim``; :func:`jaxcd.guarantees` collects
    them.

    Args:
        claim: in a sentence.
        proof: the modules with the proof, or why there is none; empty for the module of the holder.
        proven: whether it stands on a proof.
        assumptions: what must be public, and which data sets are neighbours.
    """

    claim: str
    proof: str = ""
    proven: bool = True
    assumptions: str = PUBLIC


def claiming(claim: GuaranteeClaim) -> Callable[[F], F]:
    """Gives a function its claim, for the list of guarantees.

    Args:
        claim: what the function claims.

    Returns:
        A decorator.
    """

    def held(function: F) -> F:
        function.claim = claim  # type: ignore[attr-defined]
        return function

    return held
