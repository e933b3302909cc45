"""What a class claims about privacy: one sentence, whether it is proved, what it assumes, and where
the proof stands.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLIC", "GuaranteeClaim"]

PUBLIC = (
    "replace-one neighbours; the number of rows, the declared domain and all options are public"
)
"""What nearly every claim assumes."""


@dataclass(frozen=True)
class GuaranteeClaim:
    """The claim of one class, which holds it as ``claim``; :func:`jaxcd.guarantees` collects them.

    Args:
        claim: in a sentence.
        proof: the module with the proof, or why there is none.
        proven: whether it stands on a proof.
        assumptions: what must be public, and which data sets are neighbours.
        constant: the number that the claim rests on, such as a sensitivity; None where it depends
            on options.
    """

    claim: str
    proof: str
    proven: bool = True
    assumptions: str = PUBLIC
    constant: float | None = None
