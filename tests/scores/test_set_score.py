"""The set score: equal for equivalent graphs under noise, BIC without it, and the noise it
counts.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.errors import OptionError
from jaxcd.ops.interactions import interaction, subsets
from jaxcd.ops.nearest_table import nearest_table
from jaxcd.privacy import NO_PRIVACY, PrivacyCost, Relation
from jaxcd.releases import Histogram, ReleasedMarginals, SetFunction, SetScore
from jaxcd.scores import BICScore
from tests.brute_force import all_dags, class_totals
from tests.helpers import levelled, refused

COST = PrivacyCost(math.inf, 0.0, Relation.REPLACE_ONE, False, "a test")
CARDINALITIES = (2, 3, 2, 2)


def table(seed: int, n: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, rng.dirichlet(np.full(math.prod(CARDINALITIES), 0.4))).reshape(
        CARDINALITIES
    )


def marginals(counts: np.ndarray, *, scale: float, seed: int = 0) -> ReleasedMarginals:
    """All interactions of the columns with noise of variance ``scale`` times a number between 1 and
    400.
    """
    rng = np.random.default_rng(seed)
    d = counts.ndim
    domain = levelled(*(counts.shape), kind=jaxcd.Categorical)
    values, variances = {}, {}
    for s in subsets(tuple(range(d))):
        part = interaction(counts.sum(axis=tuple(j for j in range(d) if j not in s)))
        variances[s] = scale * float(rng.uniform(1, 400))
        values[s] = part + rng.standard_normal(part.shape) * math.sqrt(variances[s])
    everyone = tuple(tuple(j for j in range(d) if j != v) for v in range(d))
    return ReleasedMarginals(domain, int(counts.sum()), values, variances, everyone, COST, COST)


ALL = all_dags(4)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_equivalent_graphs_score_the_same(scale: float):
    score = SetScore(marginals(table(0), scale=scale), max_parents=3)
    totals = class_totals(score, ALL, tolerance=1e-6)
    assert len(totals) == 185 and np.ptp(totals) > 10


def bic(counts: np.ndarray, adjacency: np.ndarray) -> float:
    """By its definition: the multinomial log likelihood at the relative frequencies, less log n / 2
    a free parameter.
    """
    n, total = counts.sum(), 0.0
    for v in range(counts.ndim):
        parents = np.flatnonzero(adjacency[:, v]).tolist()
        others = tuple(j for j in range(counts.ndim) if j != v and j not in parents)
        family = np.moveaxis(counts.sum(axis=others), sorted([v, *parents]).index(v), -1).reshape(
            -1, counts.shape[v]
        )
        for row in family:
            total += sum(c * math.log(c / row.sum()) for c in row if c > 0)
        total -= 0.5 * math.log(n) * len(family) * (counts.shape[v] - 1)
    return total


def test_without_noise_it_is_bic():
    counts = table(1)
    score = SetScore(marginals(counts, scale=0.0), max_parents=3)
    chosen = ALL[::20]
    assert np.allclose(
        score.totals(chosen), [bic(counts, adjacency) for adjacency in chosen], rtol=0, atol=1e-6
    )
    data_score = BICScore.of_table(
        counts.astype(float), names=score.names, n_samples=int(counts.sum()), max_parents=3
    )
    assert np.allclose(score.totals(chosen), data_score.totals(chosen), rtol=0, atol=1e-6)


def test_it_becomes_bic_as_the_noise_vanishes():
    counts = table(2) + 5
    exact = SetScore(marginals(counts, scale=0.0)).totals(ALL[::50])
    gaps = [
        np.abs(SetScore(marginals(counts, scale=scale)).totals(ALL[::50]) - exact).max()
        for scale in (1.0, 1e-2, 1e-4, 1e-6)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 1 and gaps[-1] < 1e-3 * gaps[0]


def test_noise_alone_buys_no_edges():
    """Independent columns under heavy noise: the empty graph scores highest, and would not if noise
    were free.
    """
    counts, bought = np.full(CARDINALITIES, 200), 0
    for seed in range(6):
        release = marginals(counts, scale=20.0, seed=seed)
        totals, free = (
            SetScore(release, max_parents=3, noise_price=price).totals(ALL) for price in (4.0, 0.0)
        )
        assert not ALL[int(totals.argmax())].any()
        bought += int(ALL[int(free.argmax())].any())
    assert bought >= 3


def test_inflation_is_the_expected_gain_of_the_likelihood():
    """2 (h(noisy) - h(exact)) has the mean w, where the noise is small beside the cells."""
    counts = table(3, n=200_000) + 2000
    total = 2 * (counts * np.log(counts)).sum()
    gains, inflations = [], []
    for seed in range(120):
        release = marginals(counts, scale=1.0, seed=0)
        rng = np.random.default_rng(1000 + seed)
        noisy = {
            s: interaction(counts.sum(axis=tuple(j for j in range(4) if j not in s)))
            + rng.standard_normal(v.shape) * math.sqrt(release.variances[s])
            for s, v in release.interactions.items()
        }
        again = ReleasedMarginals(
            release.domain,
            release.n_samples,
            noisy,
            release.variances,
            release.candidates,
            COST,
            COST,
        )
        terms = SetFunction(again).terms((0, 1, 2, 3))
        # The linear part of the entropy has mean zero and would hide the rest.
        change = nearest_table(again.table((0, 1, 2, 3)), float(release.n_samples)) - counts
        gains.append(2 * terms.entropy - total - 2 * float((change * np.log(counts)).sum()))
        inflations.append(terms.inflation)
    error = np.std(gains) / math.sqrt(len(gains))
    assert abs(np.mean(gains) - np.mean(inflations)) < 5 * error + 0.02 * np.mean(inflations)
    assert np.mean(gains) > 20 * error


@settings(max_examples=50)
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=12), st.floats(0.1, 1e5))
def test_the_nearest_table(cells: list[float], total: float):
    raw = np.array(cells)
    table = nearest_table(raw, total)
    assert table.min() >= 0 and table.sum() == pytest.approx(total, rel=1e-6)
    # The projection's condition: (raw - table) . (other - table) <= 0 for every other table, which
    # is linear: its corners suffice.
    for corner in total * np.eye(len(raw)):
        assert (raw - table) @ (corner - table) <= 1e-6 * (1 + total) * (1 + np.abs(raw).max())


def test_tables_that_were_not_measured():
    release = marginals(table(4), scale=1.0)
    values = {s: v for s, v in release.interactions.items() if not {0, 3} <= set(s)}
    few = ReleasedMarginals(
        release.domain,
        release.n_samples,
        values,
        {s: release.variances[s] for s in values},
        ((1, 2), (0, 2), (0, 1, 3), (2,)),
        COST,
        COST,
    )
    score = SetScore(few)
    assert score.local(0, (3,)) == -math.inf
    assert score.candidates(3) == (2,) and score.families(0) == ((), (1,), (2,), (1, 2))
    assert score.table(2).families == ((), (0,), (1,), (3,), (0, 1), (1, 3))
    refused(OptionError, "not measured", score.value, (0, 3))


@pytest.mark.parametrize(
    "wrong", [{"noise_price": -1.0}, {"noise_price": math.nan}, {"max_parents": -1}]
)
def test_wrong_arguments(wrong: dict):
    refused(OptionError, next(iter(wrong)), SetScore, marginals(table(5), scale=1.0), **wrong)


def test_another_release():
    domain = jaxcd.Domain([(f"v{j}", jaxcd.Categorical((0, 1))) for j in range(2)])
    data = jaxcd.Dataset.from_codes(np.zeros((5, 2), dtype=np.int32), domain=domain)
    refused(
        OptionError, "ReleasedMarginals", SetScore, Histogram().release(data, budget=NO_PRIVACY)
    )
