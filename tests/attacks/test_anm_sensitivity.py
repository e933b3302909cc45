"""Attacks on the sensitivities of additive noise models: neighbours are searched for every score,
on the test and on the training side.

Nothing may exceed its constant; how near the search comes is asserted too, so that a constant that
is far too large, or a search that has gone blind, shows.
"""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest

from jaxcd.citests.bounded_rcit import residual_shift
from jaxcd.pairwise.anm_columns import (
    DirectionColumns,
    Plan,
    RidgeOptions,
    pair_columns,
    split_rows,
)
from jaxcd.pairwise.anm_hsic import hsic_pairs, hsic_record_sensitivity, series
from jaxcd.pairwise.anm_quartiles import (
    QuartileRange,
    Reach,
    bin_exits,
    flip_distance,
    quartile_places,
)
from jaxcd.pairwise.anm_regression import fit_pairs, series_grid
from jaxcd.pairwise.anm_release import score_sensitivity, stable_distance
from jaxcd.pairwise.anm_scores import HSICScore, KendallScore, Protect, SpearmanScore
from jaxcd.privacy import search_sensitivity

KEY = jax.random.key(0)


# --- test side
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [SpearmanScore(), KendallScore()], ids=lambda score: score.name)
def test_rank_scores_against_a_search(score):
    m = 7
    found = search_sensitivity(
        lambda data: score.value(data[:, 0].astype(float), data[:, 1].astype(float)),
        levels=(m, m),
        n_samples=m,
        n_restarts=4,
        n_steps=150,
        rng=np.random.default_rng(0),
    )
    assert 0.5 * score.test_sensitivity(m) < found.value <= score.test_sensitivity(m) * (1 + 1e-12)


@pytest.mark.parametrize("score", [SpearmanScore(), KendallScore()], ids=lambda score: score.name)
@pytest.mark.parametrize("m", [6, 50])
def test_rank_constants_are_attained(score, m):
    line = np.arange(m, dtype=float)
    moved = line.copy()
    moved[-1] = -1.0
    assert score.value(line, line) - score.value(line, moved) == pytest.approx(
        score.test_sensitivity(m)
    )


def kernel_statistic(cause: np.ndarray, residual: np.ndarray, *, bandwidth: float = 0.05) -> float:
    kernel = series(reach=1.0, bandwidth=bandwidth)
    rows = np.ones((1, len(cause)), bool)
    return float(
        hsic_pairs(cause[None], residual[None], rows, series_u=[kernel], series_v=[kernel])[0]
    )


def test_hsic_against_a_search():
    m, places = 12, np.linspace(-1, 1, 4)
    found = search_sensitivity(
        lambda data: kernel_statistic(places[data[:, 0]], places[data[:, 1]]),
        levels=(4, 4),
        n_samples=m,
        n_restarts=2,
        n_steps=60,
        rng=np.random.default_rng(1),
    )
    assert 0.5 * hsic_record_sensitivity(m) < found.value <= hsic_record_sensitivity(m)


def test_hsic_comes_near_its_constant_on_the_family_that_attains_it():
    """p m records at (1, 0), p m at (0, 1), p^2 m at (2, 2), the rest (0, 0), and (1, 1) -> (2, 2):
    2.169 / m at m = 10,000 (PRIVACY.md D1).
    """
    m, p = 10_000, 0.1
    x, y = np.zeros(m), np.zeros(m)
    x[1 : 1 + int(p * m)] = 1
    y[1 + int(p * m) : 1 + 2 * int(p * m)] = 1
    both = slice(1 + 2 * int(p * m), 1 + 2 * int(p * m) + int(p * p * m))
    x[both] = y[both] = 2
    changes = []
    for place in (1.0, 2.0):
        x[0] = y[0] = place
        changes.append(kernel_statistic(x - 1, y - 1, bandwidth=0.1))
    change = m * abs(changes[1] - changes[0])
    assert 2.1 < change <= m * hsic_record_sensitivity(m)


@pytest.mark.parametrize("ratio", [0.01, 0.018, 0.1, 0.6])
def test_the_series_kernels_are_nearly_positive_and_lipschitz(ratio):
    reach = 2.0
    kernel = series(reach=reach, bandwidth=ratio * reach)
    d = np.linspace(-10 * reach, 10 * reach, 40_001)
    j = np.arange((len(kernel.roots) + 1) // 2)
    values = np.cos(np.outer(d, kernel.frequency * j)) @ kernel.roots[: len(j)] ** 2
    assert values.max() <= 1 + 1e-12 and values.min() > -1.1e-6
    assert np.sum(kernel.roots[: len(j)] ** 2) == pytest.approx(1, abs=1e-12)
    away = np.abs(d) > 1e-6
    distance = np.sqrt(np.maximum(2 - 2 * values[away], 0)) / np.abs(d[away])
    assert 0.99 * kernel.lipschitz < distance.max() <= kernel.lipschitz * (1 + 1e-6)
    h = max(ratio, 0.018) * reach
    inside = np.abs(d) <= reach
    assert np.abs(values[inside] - np.exp(-(d[inside] ** 2) / (2 * h * h))).max() < 2e-6


def test_test_side_end_to_end():
    """The whole pipeline with an open training half: scores of neighbours that differ in one test
    row, broken values included.
    """
    n, plan = 24, Plan(24, 12, 12, False, Protect.TEST, 0.1, 1.0)
    rng = np.random.default_rng(2)
    x = np.round(rng.uniform(-1, 1, n), 1)
    y = np.clip(np.round(x**3 + 0.2 * rng.normal(size=n), 1), -1, 1)
    _, test = split_rows(KEY, n, n_test=12, joint=False)
    place = np.flatnonzero(test)[0]
    variants = [(x, y)]
    for u, v in itertools.product((-1.0, 0.0, 1.0), repeat=2):
        x2, y2 = x.copy(), y.copy()
        x2[place], y2[place] = u, v
        variants.append((x2, y2))
    columns = pair_columns(
        variants, [KEY] * len(variants), [plan] * len(variants), RidgeOptions(None, None, 1.0)
    )
    for one in columns:  # all other residuals stay to the last bit
        for direction, base in zip(one, columns[0], strict=True):
            assert np.array_equal(direction.residual[1:], base.residual[1:])
            assert direction.reach == base.reach
    for score in (SpearmanScore(), KendallScore()):
        values = np.array([[score.value(d.cause, d.residual) for d in pair] for pair in columns])
        assert 0 < np.ptp(values, axis=0).max() <= score.test_sensitivity(12)


# --- training side
# --------------------------------------------------------------------------------------------------


def predictions(
    x: np.ndarray, y: np.ndarray, training: np.ndarray, plan: Plan, bandwidth: float
) -> np.ndarray:
    return fit_pairs(
        x,
        y,
        training,
        grid=series_grid((bandwidth,)),
        penalties=(plan.penalty,),
        norm_bound=plan.norm_bound,
    ).prediction


@pytest.mark.parametrize(("penalty", "norm_bound", "least"), [(1.0, 10.0, 0.65), (0.03, 1.0, 0.0)])
def test_predictions_move_by_no_more_than_stated(penalty, norm_bound, least):
    """Hill climbing on 16 pairs of neighbours at a time: the largest move at 41 places, and the
    root mean square over the training rows.
    """
    n, n_places = 20, 41
    plan = Plan(2 * n, n, n, False, Protect.TRAIN, penalty, norm_bound)
    sup = 2 * residual_shift(penalty, norm_bound) * math.sqrt(2 * penalty) / (penalty * n)
    assert plan.sup_shift == pytest.approx(min(sup, 2), abs=1e-8)
    places = np.linspace(-1, 1, n_places)
    training = np.tile(np.arange(n + n_places) < n, (16, 1))
    rng = np.random.default_rng(3)
    # Rows 0 .. n - 1 are the data set, rows 1 .. n its neighbour.
    x, y, reached, best_rms = (
        rng.choice([-1.0, 0, 1.0], (16, n + 1)),
        rng.choice([-1.0, 0, 1.0], (16, n + 1)),
        np.zeros(16),
        0.0,
    )
    for _ in range(70):
        x2, y2 = x.copy(), y.copy()
        for i in range(16):
            if rng.random() < 0.3:  # half of the others become copies of one of them
                copied, changed = rng.integers(1, n), np.append(rng.random(n) < 0.5, False)
                changed[0] = False
                x2[i, changed], y2[i, changed] = x[i, copied], y[i, copied]
            else:
                row = rng.choice([0, n, rng.integers(n + 1)])
                x2[i, row], y2[i, row] = rng.choice(places), rng.choice([-1.0, -0.5, 0, 0.5, 1.0])
        here, there = (
            predictions(
                np.hstack([x2[:, k : k + n], np.tile(places, (16, 1))]),
                np.hstack([y2[:, k : k + n], np.zeros((16, n_places))]),
                training,
                plan,
                0.3,
            )
            for k in (0, 1)
        )
        moved = np.abs(there - here)[:, n:].max(axis=1)
        best_rms = max(
            best_rms, np.sqrt(np.sum((there[:, : n - 1] - here[:, 1:n]) ** 2, axis=1) / n).max()
        )
        better = moved >= reached
        x[better], y[better], reached[better] = x2[better], y2[better], moved[better]
    # at lambda = 0.03 and n = 20 the bound says next to nothing
    assert least * sup < reached.max() <= sup + 1e-9
    rms = residual_shift(penalty, norm_bound) / n
    assert 0.4 * least * rms < best_rms <= rms + 1e-9


def test_held_out_rows_can_all_move_further_than_the_root_mean_square_bound():
    """The bound of E4 is about the training rows; rows held out may all lie where only the replaced
    record was.
    """
    n, penalty = 20, 1.0
    plan = Plan(2 * n, n, n, False, Protect.TRAIN, penalty, 10.0)
    x = np.where(np.arange(2 * n) == 0, 1.0, -1.0)[None].repeat(2, axis=0)
    x[:, n:] = 1.0  # the test rows
    y = np.zeros((2, 2 * n))
    y[0, 0], y[1, 0] = 1.0, -1.0
    training = np.arange(2 * n)[None].repeat(2, axis=0) < n
    fit = predictions(x, y, training, plan, 0.1)
    moved = np.sqrt(np.mean((fit[1] - fit[0])[n:] ** 2))
    assert 2 * plan.rms_shift < moved <= plan.sup_shift


@pytest.mark.parametrize(
    ("protect", "joint"), [(Protect.TRAIN, False), (Protect.BOTH, False), (Protect.BOTH, True)]
)
def test_hsic_scores_of_neighbours_in_the_public_pipeline(protect, joint):
    n, score = 40, HSICScore(residual_bandwidth=0.5)
    plan = Plan(n, n if joint else 20, n if joint else 20, joint, protect, 1.0, 1.0)
    delta = score_sensitivity(score, plan)
    assert delta is not None
    training, _ = split_rows(KEY, n, n_test=plan.n_test, joint=joint)
    rng = np.random.default_rng(4)
    biggest = 0.0
    for _ in range(4):
        base = rng.choice([-1.0, -0.2, 0.3, 1.0], (4, 2, n), p=[0.6, 0.1, 0.1, 0.2])
        place = rng.choice(np.flatnonzero(training) if protect is Protect.TRAIN else n, 4)
        other = base.copy()
        other[np.arange(4), :, place] = rng.choice([-1.0, 1.0], (4, 2))
        pairs = [(a, b) for a, b in [*base, *other]]
        columns = pair_columns(pairs, [KEY] * 8, [plan] * 8, RidgeOptions(1.0, 0.3, 1.0))
        kernels = [series(reach=1.0, bandwidth=0.25), series(reach=2.0, bandwidth=0.5)]
        flat = [direction for pair in columns for direction in pair]
        values = hsic_pairs(
            np.array([d.scaled for d in flat]),
            np.array([d.residual for d in flat]),
            np.ones((16, plan.n_test), bool),
            series_u=[kernels[0]] * 16,
            series_v=[kernels[1]] * 16,
        ).reshape(2, 4, 2)
        biggest = max(biggest, np.abs(values[1] - values[0]).max())
    assert 0.02 * delta < biggest <= delta


def test_stability_of_ranks():
    """d is 0 where one record can turn the order of two residuals over, and changes by at most 1
    between neighbours.
    """
    rng = np.random.default_rng(5)

    def pair(residual: np.ndarray) -> tuple[DirectionColumns, DirectionColumns]:
        column = DirectionColumns(residual, residual, residual, None, None, 2.0)
        return column, column

    for _ in range(300):
        shift = 0.1
        residual = np.sort(rng.uniform(-1, 1, 4)) + np.arange(4) * rng.uniform(0, 1)
        neighbour = residual + rng.uniform(-shift, shift, 4)
        here, there = (
            stable_distance(pair(residual), shift),
            stable_distance(pair(neighbour), shift),
        )
        assert abs(here - there) <= 1
        if not np.array_equal(np.argsort(residual), np.argsort(neighbour)):
            assert here == there == 0
    assert stable_distance(pair(np.zeros(4)), 0.1) == 0
    assert stable_distance(pair(np.arange(4.0)), 0.1) == 4  # gap 1, four times 0.2 leave a gap


# --- quartile ranges
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
def test_intervals_of_replaced_values_against_brute_force(k):
    rng = np.random.default_rng(6)
    a, b = quartile_places(8)
    for _ in range(6):
        values = np.sort(rng.integers(0, 9, 8)).astype(float)
        reached = []
        candidates = [-1e6, 1e6, *np.unique(values)]
        for rows in itertools.combinations(range(8), k):
            for new in itertools.product(candidates, repeat=k):
                changed = values.copy()
                changed[list(rows)] = new
                changed.sort()
                reached.append(changed[b] - changed[a])
        low, high = QuartileRange(values, Reach.VALUES).interval(k)
        assert low == min(reached)
        assert high == max(reached) if max(reached) < 1e5 else high == math.inf


REACHES = [
    (Reach.VALUES, Reach.VALUES),
    (Reach.SHIFT, Reach.SHIFT),
    (Reach.VALUES, Reach.EITHER),
    (Reach.VALUES, Reach.JOINT),
]
SHIFT = 0.05


def quartile_neighbours(rng: np.random.Generator, reaches: tuple[Reach, Reach]):
    """Four columns (cause, residual) x (forward, backward) of 9 rows, and those of a neighbour."""
    spread = rng.choice([0.3, 1.0, 4.0], (4, 1))
    here = np.round(rng.normal(size=(4, 9)) * spread, 1)
    there = here.copy()
    test_changes = reaches[1] is not Reach.SHIFT and (
        reaches[1] is not Reach.EITHER or rng.random() < 0.5
    )
    if test_changes:
        there[:, rng.integers(9)] = np.round(rng.normal(size=4) * 3 * spread[:, 0], 1)
    if reaches[1] is Reach.SHIFT or reaches[1] is Reach.JOINT or not test_changes:
        there[[1, 3]] += rng.uniform(-SHIFT, SHIFT, (2, 9))
    return here, there


def flip(columns: np.ndarray, reaches: tuple[Reach, Reach]) -> int:
    ranges = [
        QuartileRange(c, reaches[i % 2], SHIFT if i % 2 else 0.0) for i, c in enumerate(columns)
    ]
    return flip_distance((ranges[0], ranges[1]), (ranges[2], ranges[3]))


@pytest.mark.parametrize("reaches", REACHES, ids=lambda pair: pair[1].value)
def test_flip_distances_move_by_one_record(reaches):
    rng = np.random.default_rng(7)
    largest, turned = 0, 0
    for _ in range(250):
        here, there = quartile_neighbours(rng, reaches)
        one, other = flip(here, reaches), flip(there, reaches)
        largest = max(largest, abs(one - other))
        turned += one * other < 0
        product = [
            np.prod([QuartileRange(c, Reach.VALUES).range for c in here[rows]])
            for rows in ([0, 1], [2, 3])
        ]
        assert (one > 0) == (product[0] < product[1])
    assert largest == 2  # attained, and never more
    assert turned > 0


@pytest.mark.parametrize(
    "reach", [Reach.VALUES, Reach.SHIFT, Reach.EITHER, Reach.JOINT], ids=lambda reach: reach.value
)
def test_bin_exits_move_by_one_record(reach):
    rng = np.random.default_rng(8)
    width, apart, none = 0.25, 0, 0
    for _ in range(300):
        here, there = (columns[1] for columns in quartile_neighbours(rng, (Reach.VALUES, reach)))
        found = [
            bin_exits(QuartileRange(values, reach, SHIFT), width=width) for values in (here, there)
        ]
        if found[0] is None or found[1] is None:
            none += 1
            for known in found:
                assert known is None or (reach is Reach.SHIFT and SHIFT == 0) or known[1:] == (1, 1)
            continue
        for j in (1, 2):
            assert abs(found[0][j] - found[1][j]) <= 1
        if abs(found[0][0] - found[1][0]) > width:
            apart += 1
            assert found[0][1:] == found[1][1:] == (1, 1)
    assert apart > 0
