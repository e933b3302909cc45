"""What a question of two variables returns: a direction, the scores that may be released, a
confidence, and the cost.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxcd.frozen import FrozenDict
from jaxcd.privacy import PrivacyCost
from jaxcd.privacy.certificate import Certified

__all__ = ["Direction", "PairResult"]


class Direction(enum.Enum):
    """Which of two variables is the cause; UNDECIDED where the scores are equal or a mechanism gave
    no answer.
    """

    X_TO_Y = "x -> y"
    Y_TO_X = "y -> x"
    UNDECIDED = "undecided"

    @classmethod
    def of_scores(cls, forward: float, backward: float) -> Direction:
        """The direction whose score is smaller; UNDECIDED where the two agree to 12 digits or to
        1e-28, since rounding would decide.
        """
        if math.isclose(forward, backward, rel_tol=1e-12, abs_tol=1e-28):
            return cls.UNDECIDED
        return (
            cls.X_TO_Y
            if forward < backward
            else cls.Y_TO_X
            if backward < forward
            else cls.UNDECIDED
        )

    @property
    def reversed(self) -> Direction:
        """The answer to the same question with x and y exchanged."""
        swap = {Direction.X_TO_Y: Direction.Y_TO_X, Direction.Y_TO_X: Direction.X_TO_Y}
        return swap.get(self, self)


@dataclass(frozen=True)
class PairResult(Certified):
    """The answer of a pairwise method; in a private run every field is safe to publish.

    Args:
        direction: the answer.
        margin: how far the answer is from the other one, at least 0, in units of the method's score
            (noisy in a private run); the larger, the surer.  Accuracy against decision rate ranks
            pairs by it.
        forward: the scores of x -> y and y -> x, the lower the better; None where they are not
            released.
        backward: as ``forward``.
        confidence: the probability, computed from released numbers and the public law of the noise,
            that the answer is the one that the same method gives without noise; 1 without privacy,
            None where nothing is known.  Beforehand all differences that the score can have are as
            likely, so it is too sure where the noise is larger than those that occur: then a large
            released number is mostly noise.
        cost: the guarantee of the run.
        spent: what the events charged add up to.
        info: settings, the method's name, and the ledger's table.

    Example:
        >>> import jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(size=500)
        >>> found = jaxcd.igci(x, x**2, budget=jaxcd.NO_PRIVACY)
        >>> found.direction.value, found.forward < found.backward
        ('x -> y', True)
    """

    direction: Direction
    margin: float
    forward: float | None
    backward: float | None
    confidence: float | None
    cost: PrivacyCost
    spent: PrivacyCost
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", FrozenDict(self.info))

    def __str__(self) -> str:
        sure = "" if self.confidence is None else f" (confidence {self.confidence:.3f})"
        return f"{self.direction.value}{sure}\nGuarantee: {self.cost}"
