"""CDS: brute force over levels, what makes it zero, invariances, and bad input."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.errors import OptionError
from jaxcd.pairwise import Direction, cds
from jaxcd.pairwise.cds import conditional_variability
from jaxcd.privacy import NO_PRIVACY
from tests.helpers import SEEDS

OPTIONS = {"bins_per_deviation": 2, "max_deviation": 3, "min_count": 13}


def by_hand(x, y, factor: int, deviations: int, least: int) -> float:
    """Dictionaries and loops, one level of x at a time."""
    edge = factor * deviations

    def level(z: float) -> int:
        return int(min(max(round(factor * z), -edge), edge))

    def levels(values) -> list:
        if len(set(values)) <= 2 * edge + 1:
            return list(values)
        scaled = [(v - np.mean(values)) / np.std(values) for v in values]
        inner = [z for z in scaled if abs(z) < deviations]
        if len(set(inner)) > 1:
            scaled = [(z - np.mean(inner)) / np.std(inner) for z in scaled]
        return [level(z) for z in scaled]

    rows = []
    groups: dict = {}
    for a, value in zip(levels(list(x)), y, strict=True):
        groups.setdefault(a, []).append(float(value))
    distinct = sorted({float(v) for v in y})
    marginal = Counter(float(v) for v in y)
    for group in groups.values():
        if len(group) < least:
            continue
        if len(distinct) > 2 * edge + 1:
            counts = Counter(level((v - np.mean(group)) / np.std(y)) for v in group)
            rows.append([counts[k] / len(group) for k in range(-edge, edge + 1)])
        else:
            k = len(distinct)
            counts = Counter(group)
            row = [counts[v] for v in distinct]
            products = {
                shift: sum(
                    marginal[distinct[i + shift]] * row[i] for i in range(k) if 0 <= i + shift < k
                )
                for shift in range(1 - k, k)
            }
            shift = min(products, key=lambda s: (-products[s], s))
            placed = [0.0] * (3 * k - 2)
            for i in range(k):
                placed[i + shift + k - 1] = row[i] / len(group)
            rows.append(placed)
    if len(rows) < 2:
        return math.inf
    table = np.array(rows)
    return float(np.std(table - table.mean(axis=0)))


@given(
    SEEDS,
    st.sampled_from([1, 2, 3]),
    st.sampled_from([2, 5, 13]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["normal", "standard_cauchy", "exponential"]),
)
@settings(max_examples=60)
def test_variability_is_the_sum_by_hand(
    seed: int, factor: int, least: int, discrete_x: bool, discrete_y: bool, law: str
):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, 120).astype(float) if discrete_x else getattr(rng, law)(size=120)
    y = (
        np.round(x + rng.integers(0, 3, 120))
        if discrete_y
        else np.sin(x) + 0.3 * rng.normal(size=120)
    )
    found = conditional_variability(
        x, y, bins_per_deviation=factor, max_deviation=2, min_count=least
    )
    assert found == pytest.approx(by_hand(x, y, factor, 2, least), rel=1e-9, abs=1e-12)


def test_an_exact_shift_has_no_variability():
    """y = a value that depends on x + the same noise in every level: the conditional shapes are
    equal.
    """
    levels, noise = np.repeat(np.arange(5.0), 40), np.tile(np.linspace(-1, 1, 40), 5)
    assert conditional_variability(levels, 10 * levels**2 + noise, **OPTIONS) == pytest.approx(
        0, abs=1e-12
    )
    result = cds(levels, 10 * levels**2 + noise, budget=NO_PRIVACY)
    assert result.direction in (Direction.X_TO_Y, Direction.UNDECIDED)


def test_discrete_shapes_are_moved_together():
    levels = np.repeat([0.0, 1.0, 2.0], 30)
    y = levels + np.tile([0.0] * 20 + [1.0] * 10, 3)  # (2/3, 1/3) at 0, at 1 and at 2
    assert conditional_variability(levels, y, **OPTIONS) < 0.2
    y[:30] = np.tile([0.0, 3.0], 15)  # another shape
    assert conditional_variability(levels, y, **OPTIONS) > 0.05


def test_values_far_out_do_not_widen_the_levels():
    """Two records far from all others: the levels are those of the others, as the second
    standardisation leaves them out.
    """
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 1000)
    y = np.sin(3 * x) + 0.3 * rng.normal(size=1000)
    clean = conditional_variability(x, y, **OPTIONS)
    far = conditional_variability(np.append(x, [1e6, -1e6]), np.append(y, [0.0, 0.0]), **OPTIONS)
    assert far == pytest.approx(clean, rel=0.02)


def test_levels_where_all_but_the_far_values_are_equal():
    """The deviation of the inner values is 0: the first standardisation stays."""
    x = np.concatenate([np.zeros(500), 10.0 + np.arange(20.0)])
    y = np.random.default_rng(6).normal(size=520)
    found = conditional_variability(x, y, **{**OPTIONS, "min_count": 2})
    assert found == pytest.approx(by_hand(x, y, 2, 3, 2), rel=1e-9) and math.isfinite(found)


@pytest.mark.parametrize("count", [20, 33, 80, 120])
def test_equal_inner_values_leave_no_spread_by_rounding(count: int):
    x = np.append(np.full(count, 1 / 3), 10.0 + np.arange(20.0))
    y = np.tile([0.0, 1.0], (count + 20) // 2 + 1)[: count + 20]
    found = conditional_variability(x, y, bins_per_deviation=1, max_deviation=1, min_count=2)
    assert found == pytest.approx(by_hand(x, y, 1, 1, 2), rel=1e-9)


def test_direction_of_additive_noise():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, 2000)
        y = x**3 - 2 * x + 0.5 * rng.normal(size=2000)
        assert cds(x, y, budget=NO_PRIVACY).direction is Direction.X_TO_Y
        assert cds(y, x, budget=NO_PRIVACY).direction is Direction.Y_TO_X


def test_exchange_reverses():
    x, y = np.random.default_rng(1).normal(size=(2, 300))
    there, back = cds(x, y, budget=NO_PRIVACY), cds(y, x, budget=NO_PRIVACY)
    assert back.direction is there.direction.reversed and there.direction is not Direction.UNDECIDED
    assert (there.forward, there.backward, there.margin) == (
        back.backward,
        back.forward,
        back.margin,
    )


@given(SEEDS, st.sampled_from([2.0**-8, 4.0, 2.0**900]), st.booleans())
@settings(max_examples=20)
def test_scale_and_mirror_change_nothing(seed: int, scale: float, flip: bool):
    """Powers of two, so that no value crosses the edge of a level by rounding; a mirror may, by one
    digit, and is kept apart.
    """
    x, y = np.random.default_rng(seed).normal(size=(2, 200))
    before = cds(x, y, budget=NO_PRIVACY)
    after = cds(scale * x, (-y if flip else y), budget=NO_PRIVACY)
    assert after.forward == pytest.approx(before.forward, abs=1e-9)
    assert after.backward == pytest.approx(before.backward, abs=1e-9)


def test_too_few_records_a_level_are_undecided():
    x, y = np.random.default_rng(2).normal(size=(2, 12))
    result = cds(x, y, budget=NO_PRIVACY)
    assert result.direction is Direction.UNDECIDED and result.margin == 0
    assert result.forward is None and result.backward is None


@pytest.mark.parametrize(
    "options",
    [
        {"bins_per_deviation": 0},
        {"max_deviation": 1.5},
        {"min_count": 1},
        {"min_count": True},
        {"budget": 1},
    ],
    ids=str,
)
def test_bad_options(options):
    with pytest.raises(OptionError, match=" = "):
        cds(np.arange(20.0), np.arange(20.0), **{"budget": NO_PRIVACY, **options})
