"""Outputs at fixed keys stay what they were (``tests/frozen_outputs.py``): graphs, sets and prices
exactly, numbers to nine digits.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.frozen_outputs import PATH, outputs

KNOWN = json.loads(PATH.read_text(encoding="utf-8"))


def same(now: Any, before: Any) -> bool:
    if isinstance(now, float) or isinstance(before, float):
        return isinstance(before, (int, float)) and now == pytest.approx(before, rel=1e-5, abs=1e-9)
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(map(same, now, before))
    if isinstance(now, dict) and isinstance(before, dict):
        return now.keys() == before.keys() and all(same(now[name], before[name]) for name in now)
    return bool(now == before)


@pytest.mark.slow
def test_every_output_is_as_it_was() -> None:
    now = {name: json.loads(json.dumps(call())) for name, call in outputs()}
    assert now.keys() == KNOWN.keys()
    assert [name for name in now if not same(now[name], KNOWN[name])] == []
