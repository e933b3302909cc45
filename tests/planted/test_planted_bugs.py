"""Every planted bug is found by the check that it names; without it the check passes
(``tests/attacks/test_audit.py``).
"""

from __future__ import annotations

import pytest

from jaxcd.audit import BUGS, is_found

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_bug_is_found(bug) -> None:
    assert is_found(bug), f"{bug.check!r} does not find {bug.name}"
