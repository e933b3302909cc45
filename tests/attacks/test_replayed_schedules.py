"""Replay (see ``test_replayed_runs``) of the deciders that draw sets, and of budgets by level, in
PC and in both passes of FCI.
"""

from __future__ import annotations

from typing import Any

import pytest

import jaxcd
from jaxcd.audit.replaying import Tapping
from jaxcd.decisions import Noise
from tests.attacks import test_replayed_runs as replays
from tests.catalogue import PRIVATE_DECIDERS

#: decider, further options of the run
RUNS: list[tuple[Any, dict]] = [
    (jaxcd.ExponentialSelect(), {}),
    (jaxcd.ExponentialSelect(n_questions=5, keep_prior=0.7), {"stable": False}),
    (jaxcd.ExponentialSelect(), {"door": jaxcd.fci}),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect()), {}),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect(), later_pass_share=0.4), {"door": jaxcd.fci}),
    (jaxcd.Scheduled(jaxcd.SparseVector(), split=(1.0, 5.0)), {"stable": False}),
    (jaxcd.Scheduled(jaxcd.SieveAndExamine(rate=0.5)), {}),
    (jaxcd.Scheduled(jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN)), {"door": jaxcd.fci}),
    (jaxcd.Scheduled(jaxcd.NoisyThreshold(n_queries=4)), {"max_level": 1}),
]
tapping = replays.tapping
REPLAYED = pytest.mark.parametrize(
    ("decider", "options"), RUNS, ids=[f"{decider.name}{i}" for i, (decider, _) in enumerate(RUNS)]
)


def test_every_decider_is_replayed() -> None:
    """The noisy rank, on kernels, in ``test_noisy_rank.py``."""
    replayed = {type(decider) for decider, _ in (*RUNS, *replays.RUNS)} | {jaxcd.NoisyRank}
    assert replayed == {type(row.decider) for row in PRIVATE_DECIDERS}


@REPLAYED
def test_neighbours(decider: Any, options: dict, tapping: Tapping):
    replays.test_neighbours_look_the_same_at_the_price_that_was_charged(decider, options, tapping)


@REPLAYED
def test_any_two_data_sets(decider: Any, options: dict, tapping: Tapping, tmp_path: Any):
    replays.test_any_two_data_sets_look_the_same_under_the_same_answers(
        decider, options, tapping, tmp_path
    )
