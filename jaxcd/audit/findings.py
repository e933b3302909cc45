"""What an audit found: the claim, what was reached, and what is wrong, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Check", "Checks", "Finding"]


@dataclass(frozen=True)
class Finding:
    """One claim and the attempt to break it.

    Args:
        check: the kind of check.
        subject: what claims it.
        claimed: the claim; 1 where ``found`` is a share of a price.
        found: the largest that was reached.
        wrong: what is not as it must be, in words; empty where the claim stood.
    """

    check: str
    subject: str
    claimed: float
    found: float
    wrong: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, check: str, subject: str, *, claimed: float, found: float, least: float = 0.0
    ) -> Finding:
        """A claim that must not be exceeded, by a search that must reach the share ``least`` of it,
        or it is blind.
        """
        wrong = []
        if not found <= claimed * (1 + 1e-9):
            wrong.append(f"reaches {found:.6g}, and the claim is {claimed:.6g}")
        elif not found >= least * claimed:
            wrong.append(
                f"the search reaches {found:.6g} of {claimed:.6g}, less than {least:.0%}: it is "
                "blind, or the claim too large"
            )
        return cls(check, subject, claimed, found, tuple(wrong))

    @property
    def share(self) -> float:
        """What was reached, as a share of the claim."""
        return self.found / self.claimed if self.claimed > 0 else 0.0


Check: TypeAlias = Callable[[bool], Iterator[Finding]]
"""A check, quick or in full."""

Checks: TypeAlias = Mapping[str, Check]
"""Checks by name."""
