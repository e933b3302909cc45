"""Accuracy over pairs: scipy's exact interval, curves by hand, weights, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.errors import DataError, OptionError
from jaxcd.pairwise import CausePair, Direction, PairResult, pair_accuracy, pair_accuracy_of
from jaxcd.privacy import NO_PRIVACY, Ledger
from tests.helpers import SEEDS, refused

COST = Ledger(NO_PRIVACY).guarantee
RIGHT, WRONG, NONE = Direction.X_TO_Y, Direction.Y_TO_X, Direction.UNDECIDED


def answer(direction: Direction, margin: float = 1.0) -> PairResult:
    return PairResult(direction, margin, None, None, None, COST, COST)


@given(st.integers(0, 30), st.integers(1, 30), st.sampled_from([0.8, 0.95, 0.99]))
@settings(max_examples=40)
def test_equal_weights_give_the_exact_interval(won: int, lost: int, confidence: float):
    found = pair_accuracy(
        [answer(RIGHT)] * won + [answer(WRONG)] * lost,
        [RIGHT] * (won + lost),
        [0.5] * (won + lost),
        confidence=confidence,
    )
    exact = stats.binomtest(won, won + lost).proportion_ci(confidence, method="exact")
    assert found.accuracy == pytest.approx(won / (won + lost))
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert found.effective == pytest.approx(won + lost)


def test_all_right_and_all_wrong():
    assert pair_accuracy([answer(RIGHT)] * 4, [RIGHT] * 4).upper == 1
    found = pair_accuracy([answer(WRONG)] * 4, [RIGHT] * 4)
    assert (found.accuracy, found.lower, found.area) == (0, 0, 0)


def test_weights_and_effective_number():
    found = pair_accuracy(
        [answer(RIGHT), answer(WRONG), answer(NONE)], [RIGHT] * 3, [2.0, 1.0, 1.0]
    )
    assert found.accuracy == pytest.approx((2 + 0.5) / 4)
    assert found.effective == pytest.approx(16 / 6)
    one_source = pair_accuracy(
        [answer(RIGHT)] * 3 + [answer(WRONG)] * 7, [RIGHT] * 10, [1e-9] * 9 + [1.0]
    )
    assert one_source.effective == pytest.approx(1, rel=1e-6)  # one pair carries all the weight


def test_effective_number_has_the_variance_of_the_weighted_mean():
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.1, 1, 40)
    means = (rng.uniform(size=(40_000, 40)) < 0.7) @ weights / weights.sum()
    found = pair_accuracy([answer(RIGHT)] * 40, [RIGHT] * 40, weights)
    assert means.var() == pytest.approx(0.7 * 0.3 / found.effective, rel=0.05)


def test_pairs_without_weight_do_not_count():
    found = pair_accuracy([answer(RIGHT), answer(WRONG, 9.0)], [RIGHT] * 2, [1.0, 0.0])
    assert found.n_pairs == 1 and found.accuracy == 1 and list(found.decision_rates) == [1.0]


def test_curve_by_hand():
    """Margins 4 (right), 3 (wrong), 2 and 2 (one right), weights 1, 1, 1, 1."""
    results = [answer(RIGHT, 2.0), answer(RIGHT, 4.0), answer(WRONG, 2.0), answer(WRONG, 3.0)]
    found = pair_accuracy(results, [RIGHT] * 4)
    assert list(found.decision_rates) == [0.25, 0.5, 1.0]  # equal margins enter together
    assert list(found.accuracies) == [1.0, 0.5, 0.5]
    assert found.area == pytest.approx(0.25 * 1 + 0.25 * 0.75 + 0.5 * 0.5)
    assert found.accuracies[-1] == found.accuracy


@given(SEEDS)
@settings(max_examples=25)
def test_order_of_the_pairs_changes_nothing(seed: int):
    rng = np.random.default_rng(seed)
    results = [
        answer([RIGHT, WRONG, NONE][rng.integers(3)], float(rng.integers(4))) for _ in range(20)
    ]
    truths = [[RIGHT, WRONG][rng.integers(2)] for _ in range(20)]
    weights, order = rng.uniform(size=20), rng.permutation(20)
    one = pair_accuracy(results, truths, weights)
    other = pair_accuracy([results[i] for i in order], [truths[i] for i in order], weights[order])
    np.testing.assert_allclose(one.accuracies, other.accuracies)
    assert one.area == pytest.approx(other.area) and one.lower == pytest.approx(other.lower)
    assert one.lower <= one.accuracy <= one.upper


def test_from_pairs():
    pairs = [
        CausePair(name, np.zeros(2), np.zeros(2), truth, 2.0)
        for name, truth in (("a", RIGHT), ("b", WRONG))
    ]
    found = pair_accuracy_of([answer(RIGHT), answer(RIGHT)], pairs)
    assert found.accuracy == 0.5 and str(found).startswith("accuracy 0.500 [")
    with pytest.raises(DataError, match="leave out pairs that are not causal"):
        pair_accuracy_of([answer(RIGHT)], [CausePair("c", np.zeros(2), np.zeros(2), None)])


@pytest.mark.parametrize(
    ("results", "truths", "weights"),
    [
        ([], [], None),
        ([answer(RIGHT)], [RIGHT, RIGHT], None),
        ([answer(RIGHT)], [RIGHT], [1.0, 1.0]),
        ([answer(RIGHT)], [NONE], None),
        ([answer(RIGHT)], [RIGHT], [0.0]),
        ([answer(RIGHT)], [RIGHT], [-1.0]),
        ([answer(RIGHT)], [RIGHT], [np.nan]),
    ],
)
def test_bad_input(results, truths, weights):
    pytest.raises(DataError, pair_accuracy, results, truths, weights)


@pytest.mark.parametrize("confidence", [0.0, 1.0, np.nan])
def test_bad_confidence(confidence: float):
    refused(
        OptionError, "confidence", pair_accuracy, [answer(RIGHT)], [RIGHT], confidence=confidence
    )


def test_rounding_decides_nothing():
    from jaxcd.pairwise import reci

    infinite = float("inf")
    assert (
        Direction.of_scores(1.0, 1.0 + 1e-15)
        is Direction.of_scores(-infinite, -infinite)
        is Direction.UNDECIDED
    )
    assert (
        Direction.of_scores(1.0, 1.0 + 1e-9)
        is Direction.of_scores(-infinite, 1.0)
        is Direction.X_TO_Y
    )
    assert (
        Direction.of_scores(float("nan"), 1.0)
        is Direction.of_scores(1.0, float("nan"))
        is Direction.UNDECIDED
    )
    assert Direction.of_scores(1.0, 0.0) is Direction.of_scores(infinite, 1.0) is Direction.Y_TO_X
    x, y = np.repeat(
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [61, 39, 39, 61], axis=0
    ).T  # a table that is its own mirror
    for pair in ((x, y), (x, 1 - x)):
        result = reci(*pair, budget=jaxcd.NO_PRIVACY)
        assert result.direction is Direction.UNDECIDED and result.margin == 0
