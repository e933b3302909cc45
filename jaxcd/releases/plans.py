"""What a budget can see, from public facts: of a release, or of answers one by one."""

from __future__ import annotations

from dataclasses import dataclass

from jaxcd.checks import shown_size
from jaxcd.privacy.budget import Unit, counted_records, counted_words

__all__ = ["USUAL_EFFECT", "Plan"]

USUAL_EFFECT = 0.01
"""A dependence this strong, as a share of the rows, is the least that is usually worth finding
(PRIVACY.md O)."""


@dataclass(frozen=True)
class Plan:
    """What a budget can see, from public facts.

    Args:
        noise: standard deviation of the noise on an answer, or on a released number, in records.
        smallest_margin: what stands out of it, in records: seen by a test with probability at least
            0.95, or three times the noise on a released number.
        n_samples: the number of rows.
        words: the same in a sentence.
        n_answers: answers that are paid for one by one; None for a release.
    """

    noise: float
    smallest_margin: float
    n_samples: int
    words: str
    n_answers: int | None = None

    @property
    def smallest_share(self) -> float:
        """The smallest margin as a share of the rows."""
        return self.smallest_margin / self.n_samples

    @property
    def sensible(self) -> bool:
        """Whether a dependence of one record in a hundred can be seen."""
        return self.smallest_margin <= USUAL_EFFECT * self.n_samples

    @classmethod
    def of(cls, noise: float, n_samples: int, *, number: str, unit: Unit = Unit.ROW) -> Plan:
        """Of a release.

        Args:
            noise: as above.
            n_samples: the number of rows.
            number: what a released number is, such as "cell".
            unit: the budget's: whether n counts rows or people.
        """
        noisy = "records" if unit is Unit.ROW else counted_words(unit)
        share = 3 * noise / n_samples
        seen = (
            f"what is below {share:.2%} of the {counted_records(n_samples, unit)} is noise"
            if share < 1
            else f"nothing in {counted_records(n_samples, unit)} stands out of it"
        )
        words = f"Each {number} has noise of {shown_size(noise)} {noisy}; {seen}."
        return cls(noise, 3 * noise, n_samples, words)
