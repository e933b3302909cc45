"""Replay (see ``test_replayed_runs``) of the deciders that draw sets, and of budgets by level, in
PC and in both passes of FCI.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jaxcd
from jaxcd.audit import replaying
from jaxcd.audit.replaying import Drawing, Replaying, Tape, Tapping
from jaxcd.decisions import Noise
from jaxcd.discovery import fci
from tests.attacks.test_replayed_runs import (
    LEVELS,
    random_codes,
    rate_of,
    real_costs,
    run,
    shift_of,
)

TESTS = [jaxcd.CovarianceNorm(), jaxcd.PooledCovariance(), jaxcd.KendallTau()]
#: decider, further options of the run
RUNS: list[tuple[Any, dict]] = [
    (jaxcd.ExponentialSelect(), {}),
    (jaxcd.ExponentialSelect(n_questions=5, keep_prior=0.7), {"stable": False}),
    (jaxcd.ExponentialSelect(), {"door": fci}),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect()), {}),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect(), later_pass_share=0.4), {"door": fci}),
    (jaxcd.Scheduled(jaxcd.SparseVector(), split=(1.0, 5.0)), {"stable": False}),
    (jaxcd.Scheduled(jaxcd.SieveAndExamine(rate=0.5)), {}),
    (jaxcd.Scheduled(jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN)), {"door": fci}),
    (jaxcd.Scheduled(jaxcd.NoisyThreshold(n_queries=4)), {"max_level": 1}),
]


@pytest.fixture
def tapping() -> Iterator[Tapping]:
    with replaying.tapping() as tap:
        yield tap


@pytest.mark.parametrize(
    ("decider", "options"), RUNS, ids=[f"{decider.name}{i}" for i, (decider, _) in enumerate(RUNS)]
)
def test_neighbours_look_the_same_at_the_price_that_was_charged(
    decider: Any, options: dict, tapping: Tapping
):
    rng = np.random.default_rng(17)
    worst: list[float] = []
    different, separated = 0, 0
    for trial in range(10):
        n, test = (26, 200)[trial % 2], TESTS[trial % 3]
        codes = random_codes(rng, n)
        neighbour = codes.copy()
        neighbour[rng.integers(n)] = [rng.integers(k) for k in LEVELS]
        different += bool((codes != neighbour).any())
        budget = jaxcd.Budget(float(rng.choice([0.5, 4.0, 60.0])), 1e-3)
        settings = {"test": test, "decider": decider, "budget": budget, **options}

        tapping.tape = first = Tape()
        result, seen = run(codes, Drawing(tapping, trial), **settings)
        separated += len(result.separating_sets)
        tapping.tape = second = Tape()
        shift = shift_of(test, round(rate_of(first) * n))
        _, seen_there = run(neighbour, Replaying(tapping, first, shift=shift), **settings)
        assert seen == seen_there
        worst += real_costs(result, first, second, shift=shift, rate=rate_of(first))
    assert different > 5 and separated > 5
    # The scale of Gaussian noise is a float: squares are compared to one unit in the last place.
    assert 0.05 < max(worst) <= 1 + 1e-12


@pytest.mark.parametrize("decider", [RUNS[0][0], RUNS[3][0]], ids=lambda d: d.name)
def test_any_two_data_sets_look_the_same_under_the_same_answers(
    decider: Any, tapping: Tapping, tmp_path: Any
):
    rng, n = np.random.default_rng(5), 200
    copies = np.tile(rng.integers(0, 2, (n, 1)), (1, len(LEVELS)))
    independent = np.stack([rng.integers(0, k, n) for k in LEVELS], axis=1)
    settings = {"test": TESTS[0], "decider": decider, "budget": jaxcd.Budget(3.0, 1e-3)}
    tapping.tape = first = Tape()
    _, seen = run(copies, Drawing(tapping, 0), tmp_path / "a", **settings)
    tapping.tape = Tape()
    _, seen_there = run(independent, Replaying(tapping, first, shift=0), tmp_path / "b", **settings)
    assert seen == seen_there
