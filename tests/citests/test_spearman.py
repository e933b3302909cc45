"""Spearman: level, power, sensitivity by exhaustion and search, refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.citests.spearman import spearman_rho_sensitivity
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import spearman
from jaxcd.queries import Queue
from tests.citests.test_margin_sensitivity import evaluate
from tests.helpers import coded, numbers, refused, simulated, stated

TEST = jaxcd.Spearman()


def bound(n: int, alpha: float = 0.05) -> float:
    return stated(TEST, n, alpha).value


def product(x: np.ndarray, y: np.ndarray) -> int:
    return int(np.sign(x[:, None] - x[None, :]).sum(1) @ np.sign(y[:, None] - y[None, :]).sum(1))


def score(n: int, e: int) -> float:
    return math.copysign((n**3 + 3 * abs(e)) ** (1 / 3) - n, e) if e else 0.0


@pytest.mark.parametrize("n", [2, 3, 4])
def test_sensitivities_by_exhaustion(n: int):
    """All data sets of n rows over a grid of values, ties and all: E, rho_n and the score, added
    and replaced.
    """
    values = list(itertools.product(range(max(n, 3)), repeat=2))
    replaced, added, worst_score, worst_added = 0, 0, 0.0, 0.0
    for rows in itertools.combinations_with_replacement(values, n - 1):
        x, y = np.array(rows).T
        before = product(x, y)
        after = [product(np.append(x, a), np.append(y, b)) for a, b in values]
        replaced = max(replaced, max(after) - min(after))
        added = max(added, *(abs(e - before) for e in after))
        scores = [score(n, e) for e in after]
        worst_score = max(worst_score, max(scores) - min(scores))
        worst_added = max(worst_added, *(abs(s - score(n - 1, before)) for s in scores))
    assert replaced == 2 * n * (n - 1) and added == n * (n - 1)
    assert 3 * replaced / (n**3 - n) == pytest.approx(spearman_rho_sensitivity(n))
    assert worst_added < 1 and worst_score < 2


@pytest.mark.parametrize("n", [5, 40, 1000])
def test_rho_moves_by_the_whole_bound_on_the_diagonal(n: int):
    x = np.arange(n, dtype=float)
    y = x.copy()
    y[-1] = -1.0
    change = spearman.spearman_rho(x, x) - spearman.spearman_rho(x, y)
    assert change == pytest.approx(spearman_rho_sensitivity(n), rel=1e-9)


def test_search_for_a_larger_change_of_rho():
    """Products of two-block and random columns with ties; the replaced record goes to the
    corners.
    """
    rng = np.random.default_rng(3)
    for _ in range(300):
        n = int(rng.integers(5, 60))
        x, y = rng.integers(0, rng.integers(2, n), (2, n))
        y = np.where(rng.random(n) < rng.random(), rng.choice([-1, 1]) * x, y)
        ends = [
            product(np.append(x[1:], a), np.append(y[1:], b))
            for a in (-99, 0, 99)
            for b in (-99, 0, 99)
        ]
        assert 3 * (max(ends) - min(ends)) / (n**3 - n) <= spearman_rho_sensitivity(n) + 1e-12


@pytest.mark.parametrize("n", [100, 2000, 50_000])
def test_the_family_that_reaches_two(n: int):
    """Nearly all tied at (1, 1), one at (0, 0), the record from (2, 2) to (2, 0): E goes from about
    2 n^2 to about 0.
    """
    rows = np.ones((n, 1, 3), dtype=np.int64)
    rows[:, 0, 2] = 0
    rows[0, 0, :2] = 2
    rows[1, 0, :2] = 0
    neighbour = rows.copy()
    neighbour[0, 0, :2] = (2, 0)
    statistics = []
    for data in (rows, neighbour):
        x, y = data[:, 0, 0].astype(float), data[:, 0, 1].astype(float)
        part = spearman.rank_products(x, y)
        statistics.append(score(n, int(part.product[0])))
    first, second = (evaluate(TEST, part, (3, 3, 1)).margin[0] for part in (rows, neighbour))
    change = abs(first - second)
    assert abs(statistics[0] - statistics[1]) < 2 and change <= bound(n)
    assert n < 2000 or (abs(statistics[0] - statistics[1]) > 1.95 and change > 1.95)


def test_the_constant_at_other_levels():
    for alpha in (0.001, 0.05, 0.5):
        assert bound(100, alpha) == pytest.approx(2 + stats.norm.isf(alpha / 2) / 45)


@pytest.mark.parametrize("numeric", [False, True])
def test_level_and_power_given_a_common_cause(numeric: bool):
    """x and y depend on z, and in the second case on each other: rejections of 200 columns' pairs
    without privacy.
    """
    rng = np.random.default_rng(8)
    n, rejected = 600, []
    for effect in (0.0, 0.35):
        count = 0
        for _ in range(80):
            z = rng.integers(0, 3, n)
            x = z + rng.normal(size=n)
            y = -z + effect * x + rng.normal(size=n)
            if numeric:
                columns = {
                    "x": jaxcd.Numeric(),
                    "y": jaxcd.Numeric(),
                    "z": jaxcd.Ordinal((0, 1, 2)),
                }
                data = jaxcd.Dataset.from_array(
                    np.column_stack([x, y, z]), domain=jaxcd.Domain(columns)
                )
            else:
                codes = np.column_stack(
                    [np.clip(np.floor(x) + 3, 0, 7), np.clip(np.floor(y) + 5, 0, 9), z]
                ).astype(np.int32)
                columns = {
                    "x": jaxcd.Ordinal(tuple(range(8))),
                    "y": jaxcd.Ordinal(tuple(range(10))),
                    "z": jaxcd.Ordinal((0, 1, 2)),
                }
                data = coded(codes, jaxcd.Domain(columns))
            answer = Queue(TEST.prepare(data), alpha=0.05).evaluate([Query(0, 1, (2,))])
            count += float(answer.log_pvalue[0]) <= math.log(0.05)
        rejected.append(count)
    # Binomial(80, 0.05) exceeds 12 with probability 2e-4.
    assert rejected[0] <= 12 and rejected[1] >= 78


def test_the_statistic_without_conditioning_is_the_normal_score_of_rho():
    """c is E / n^2 to first order, so z is rho sqrt(n - 1) for a small rho."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    y = 0.02 * x + rng.normal(size=20_000)
    domain = jaxcd.Domain({"x": jaxcd.Numeric(), "y": jaxcd.Numeric()})
    data = jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=domain)
    answer = jaxcd.ci_test(data, "x", "y", test=TEST, budget=jaxcd.NO_PRIVACY, key=None)
    assert answer.statistic == pytest.approx(
        stats.spearmanr(x, y).statistic * math.sqrt(19_999), rel=0.02
    )


def test_numeric_conditioning_is_refused_before_a_charge():
    rng = np.random.default_rng(0)
    data = jaxcd.Dataset.from_array(rng.normal(size=(50, 3)), domain=numbers(("a", "b", "c")))
    options = dict(test=TEST, decider=jaxcd.SparseVector(), budget=jaxcd.Budget(1.0), key=None)
    with pytest.raises(DomainError, match="Spearman cannot condition on the numeric column 'a'"):
        jaxcd.pc(data, **options)
    run = jaxcd.pc(data, max_level=0, noise=simulated(), **options)
    assert run.cost.epsilon == 1.0 and run.spent.epsilon <= 1.0


def test_restriction_to_rows():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(60, 2))
    domain = jaxcd.Domain({"x": jaxcd.Numeric(), "y": jaxcd.Numeric()})
    rows = rng.random(60) < 0.5
    part = TEST.prepare(jaxcd.Dataset.from_array(values, domain=domain)).restrict(rows)
    whole = TEST.prepare(jaxcd.Dataset.from_array(values[rows], domain=domain))
    query = Query(0, 1)
    assert (
        part.evaluate("columns", [query], alpha=0.05).margin
        == whole.evaluate("columns", [query], alpha=0.05).margin
    )


def test_rho_sensitivity_refuses_nonsense():
    for n in (1, 0, -3, 2.5, True, math.nan):
        refused(OptionError, "n_samples", spearman_rho_sensitivity, n)
