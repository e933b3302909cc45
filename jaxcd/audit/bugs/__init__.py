"""The bugs that are planted: wrong constants, free answers and leaks, each with the check that must
find it.

A bug that no check finds is a missing check.
"""

from __future__ import annotations

from jaxcd.audit.bugs import (
    bookkeeping,
    citests,
    decisions,
    federation,
    mechanisms,
    pairwise_and_local,
    releases,
)
from jaxcd.audit.planting import Bug

__all__ = ["BUGS"]

BUGS: tuple[Bug, ...] = (
    *citests.BUGS,
    *mechanisms.BUGS,
    *decisions.BUGS,
    *releases.BUGS,
    *pairwise_and_local.BUGS,
    *bookkeeping.BUGS,
    *federation.BUGS,
)
"""All of them, by what they break."""
