"""Checks of the audit of several sites: silent as it stands (the planted bugs that they must find
are run with the others, in ``tests/planted``).
"""

from __future__ import annotations

import pytest

from jaxcd.audit import CHECKS
from jaxcd.audit.federation import FEDERATION


@pytest.mark.slow
@pytest.mark.parametrize("name", FEDERATION)
def test_no_claim_is_broken(name: str) -> None:
    found = list(CHECKS[name](False))
    assert found and not [(each.subject, each.wrong) for each in found if each.wrong]
