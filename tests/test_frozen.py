"""What a result holds cannot be written to, and is a dict for everything else."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

import jaxcd
from jaxcd.frozen import FrozenDict
from tests.helpers import PLAIN, refused, sampled


def test_it_is_a_dict_that_stays():
    held = FrozenDict({"a": 1, "b": (2, 3)})
    assert held == {"a": 1, "b": (2, 3)} and json.loads(json.dumps(held)) == {"a": 1, "b": [2, 3]}
    for again in (pickle.loads(pickle.dumps(held)), copy.copy(held), copy.deepcopy(held)):
        assert again == held and type(again) is FrozenDict
    for change in (
        lambda: held.__setitem__("a", 2),
        lambda: held.__delitem__("a"),
        lambda: held.update(a=2),
        lambda: held.pop("a"),
        held.popitem,
        held.clear,
        lambda: held.setdefault("c", 1),
        lambda: held.__ior__({"c": 1}),
    ):
        refused(TypeError, "frozen", change)
    assert held == {"a": 1, "b": (2, 3)} and {**held, "c": 1}["c"] == 1


def test_results_are_frozen_inside():
    import numpy as np

    data = sampled("cancer", 300)
    run = jaxcd.pc(data, test=jaxcd.ChiSquare(), **PLAIN)
    pair = jaxcd.reci(np.arange(20.0), np.arange(20.0) ** 2, budget=jaxcd.NO_PRIVACY)
    for mapping in (run.info, run.separating_sets, pair.info):
        with pytest.raises(TypeError, match="frozen"):
            mapping["x"] = 1
    assert pickle.loads(pickle.dumps(run)) == run
