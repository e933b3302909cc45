"""Outputs at fixed keys stay what they were (``tests/frozen_outputs.py``): graphs, sets and names
exactly, numbers to five digits.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frozen_outputs import PATH, outputs

KNOWN = json.loads(PATH.read_text(encoding="utf-8"))


# A regression of a small penalty differs by 1e-6 between processors, and a margin is a difference.
KERNELS = ("ci_test RCIT", "ci_test GCM", "ci_test KCI")


def same(now: Any, before: Any, rel: float) -> bool:
    if isinstance(now, float) or isinstance(before, float):
        return isinstance(before, (int, float)) and now == pytest.approx(before, rel=rel, abs=1e-9)
    if isinstance(now, list) and isinstance(before, list):
        pairs = zip(now, before, strict=False)
        return len(now) == len(before) and all(same(*pair, rel) for pair in pairs)
    if isinstance(now, dict) and isinstance(before, dict):
        return now.keys() == before.keys() and all(
            same(now[name], before[name], rel) for name in now
        )
    return bool(now == before)


@pytest.mark.slow
def test_every_output_is_as_it_was() -> None:
    now = {name: json.loads(json.dumps(call())) for name, call in outputs()}
    assert now.keys() == KNOWN.keys()
    rel = dict.fromkeys(KERNELS, 1e-4)
    changed = [name for name in now if not same(now[name], KNOWN[name], rel.get(name, 1e-5))]
    assert changed == []
