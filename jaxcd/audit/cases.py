"""The runs that an audit replays: every door, with every mechanism, on small neighbouring data
sets, extreme ones among them.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxcd.audit.findings import Check, Checks, Finding
from jaxcd.audit.judging import Case, run_case
from jaxcd.audit.pairwise_cases import pairwise_cases
from jaxcd.audit.release_cases import person_release_cases, release_cases
from jaxcd.audit.replaying import tapping
from jaxcd.audit.search_cases import search_cases

__all__ = ["CASES", "REPLAYS"]

CASES: tuple[Case, ...] = (
    *search_cases(),
    *release_cases(),
    *person_release_cases(),
    *pairwise_cases(),
)
"""Every door with every mechanism."""


def _check(case: Case) -> Check:
    def found(quick: bool) -> Iterator[Finding]:
        with tapping() as tap:
            yield from run_case(case, tap, trials=case.trials if quick else 2 * case.trials)

    return found


REPLAYS: Checks = {f"replay: {case.name}": _check(case) for case in CASES}
"""The cases as checks, by name."""
