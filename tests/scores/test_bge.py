"""BGe: against predictive densities of scipy one row at a time, and equal for equivalent DAGs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.data import Categorical, Dataset, Domain
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.scores.bge import BGe, BGeScore
from tests.brute_force import all_dags, class_totals
from tests.helpers import numbers, refused


def rows(n: int = 12, d: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def dataset(values: np.ndarray) -> Dataset:
    return Dataset.from_array(values, domain=numbers(values.shape[1]))


def log_evidence(values: np.ndarray, d: int, alpha_mu: float, alpha_w: float) -> float:
    """log p of the columns by the chain rule: each row's multivariate t given those before it."""
    n, size = values.shape
    if size == 0:
        return 0.0
    freedom, weight, mean = alpha_w - d + size, alpha_mu, np.zeros(size)
    scale = alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1) * np.eye(size)
    total = 0.0
    for x in values:
        df = freedom - size + 1
        total += stats.multivariate_t.logpdf(
            x, loc=mean, shape=scale * (weight + 1) / (weight * df), df=df
        )
        scale = scale + weight / (weight + 1) * np.outer(x - mean, x - mean)
        mean = (weight * mean + x) / (weight + 1)
        freedom, weight = freedom + 1, weight + 1
    return float(total)


@pytest.mark.parametrize(("alpha_mu", "alpha_w"), [(1.0, None), (0.3, 7.5), (4.0, 20.0)])
def test_families_are_ratios_of_predictive_densities(alpha_mu, alpha_w):
    values = rows(5)
    score = BGeScore.of_data(
        dataset(values), alpha_mu=alpha_mu, alpha_w=alpha_w, standardised=False
    )
    freedom = 4 + alpha_mu + 1 if alpha_w is None else alpha_w
    for node in range(4):
        others = [u for u in range(4) if u != node]
        for size in range(4):
            for parents in itertools.combinations(others, size):
                expected = log_evidence(values[:, [*parents, node]], 4, alpha_mu, freedom)
                expected -= log_evidence(values[:, list(parents)], 4, alpha_mu, freedom)
                assert score.local(node, parents) == pytest.approx(expected, abs=1e-8)


def test_standardised_columns_have_no_unit():
    values = rows(50)
    a, b = (
        BGeScore.of_data(dataset(v)) for v in (values, values * np.array([1e3, 1e-3, 7.0, 1.0]) + 5)
    )
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    c = BGeScore.of_data(dataset(scaled), standardised=False)
    for node, parents in ((0, ()), (1, (0, 2)), (3, (0, 1, 2))):
        assert a.local(node, parents) == pytest.approx(b.local(node, parents), abs=1e-7)
        assert a.local(node, parents) == pytest.approx(c.local(node, parents), abs=1e-9)


def test_equivalent_dags_have_equal_scores_and_others_do_not():
    score = BGeScore.of_data(dataset(rows(30, 4, seed=2)))
    totals = class_totals(score, all_dags(4), tolerance=1e-9)
    assert len(totals) == len({round(total, 6) for total in totals}) == 185


def test_a_constant_column_has_a_finite_score():
    values = rows(20, 3)
    values[:, 1] = 2.5
    score = BGeScore.of_data(dataset(values))
    assert all(
        math.isfinite(score.local(v, tuple(u for u in range(3) if u != v))) for v in range(3)
    )


def test_configuration_and_refusals():
    data = dataset(rows(40, 3))
    assert BGe().prepare(data).local(0, (1,)) == BGeScore.of_data(data).local(0, (1,))
    assert BGe().prepare(data).max_parents == 2
    assert BGe().prepare(data, max_parents=1).max_parents == 1
    for wrong in ({"alpha_mu": 0.0}, {"alpha_mu": math.nan}, {"alpha_w": -1.0}):
        refused(OptionError, next(iter(wrong)), BGe, **wrong)
    refused(OptionError, "alpha_w", BGeScore.of_data, data, alpha_w=4.0)
    refused(OptionError, "n_samples", BGeScore, ("a",), np.zeros(1), np.eye(1), n_samples=0)
    with pytest.raises(DataError, match="covariance"):
        BGeScore(("a",), np.zeros(1), np.full((1, 1), math.nan), n_samples=5)
    codes = Dataset.from_codes(
        np.zeros((5, 2), dtype=np.int32),
        domain=Domain({"a": Categorical((0, 1)), "b": Categorical((0, 1))}),
    )
    refused(DomainError, "'a'", BGeScore.of_data, codes)
    with pytest.raises(OptionError, match="release"):
        BGe().prepare(jaxcd.release(codes, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY))
