from __future__ import annotations

import math

import numpy as np
import pytest

from jaxcd.errors import OptionError
from jaxcd.privacy import epsilon_lower_bound, search_sensitivity
from tests.helpers import refused


def find(statistic, **options):
    defaults = {
        "levels": (2, 3),
        "n_samples": 8,
        "n_restarts": 6,
        "n_steps": 150,
        "rng": np.random.default_rng(1),
    }
    return search_sensitivity(statistic, **{**defaults, **options})


def test_search_finds_known_sensitivities():
    assert find(lambda data: float(data[:, 1].sum())).value == 2.0
    assert find(lambda data: float((data[:, 0] * data[:, 1]).sum())).value == 2.0
    assert find(lambda data: float(data[:, 0].max()), n_restarts=20).value == 1.0
    assert find(lambda data: 1.0).value == 0.0


def test_search_finds_kendall_tau():
    # Exactly 4/n for tau-a under replace-one.
    n = 6

    def tau(data):
        signs = np.sign(data[:, None] - data[None, :])
        return float((signs[..., 0] * signs[..., 1]).sum() / (n * (n - 1)))

    found = find(tau, levels=(6, 6), n_samples=n, n_restarts=8, n_steps=600)
    assert 2.4 / n < found.value <= 4 / n + 1e-12


def test_witness_is_a_pair_of_neighbours():
    def statistic(data):
        return float((data[:, 0] == data[:, 1]).mean())

    found = find(statistic)
    assert found.data.shape == found.neighbour.shape == (8, 2)
    assert (found.data != found.neighbour).any(axis=1).sum() <= 1
    assert abs(statistic(found.data) - statistic(found.neighbour)) == found.value == 1 / 8
    assert found.data.min() >= 0 and (found.data.max(axis=0) < (2, 3)).all()


def test_search_exposes_a_statistic_that_is_not_total():
    with np.errstate(invalid="ignore", divide="ignore"):
        assert (
            find(
                lambda data: float(np.float64(data[:, 0].sum()) / data[:, 0].sum()), n_restarts=30
            ).value
            == math.inf
        )


def test_search_options():
    for bad in (
        {"levels": ()},
        {"levels": (0,)},
        {"n_samples": 0},
        {"n_restarts": 0},
        {"n_steps": -1},
    ):
        pytest.raises(OptionError, find, lambda data: 0.0, **bad)
    assert find(lambda data: float(data.sum()), n_samples=1, levels=(4,)).value == 3.0


def test_epsilon_lower_bound_is_valid_and_useful():
    rng, epsilon, n = np.random.default_rng(0), 1.0, 20_000
    honest = math.exp(epsilon) / (1 + math.exp(epsilon))
    exceeded = 0
    for _ in range(200):
        yes_a, yes_b = rng.binomial(n, honest), rng.binomial(n, 1 - honest)
        bound = epsilon_lower_bound([yes_a, n - yes_a], [yes_b, n - yes_b], n, confidence=0.9)
        assert bound > 0.85
        exceeded += bound > epsilon
    assert exceeded <= 40  # at most one in ten is allowed; Bonferroni makes it fewer
    assert epsilon_lower_bound(5000, 100, n) == pytest.approx(epsilon_lower_bound(100, 5000, n))


def test_epsilon_lower_bound_edges():
    assert epsilon_lower_bound(50, 50, 100) == 0.0
    assert epsilon_lower_bound([0, 100], [0, 100], 100) == 0.0
    # 100 of 100 against 0 of 100: both bounds in closed form, tail = 0.05 / 4.
    low = 0.0125 ** (1 / 100)
    assert epsilon_lower_bound(100, 0, 100) == pytest.approx(math.log(low / (1 - low)))
    for a, b, n in (([1, 2], [1], 10), (11, 0, 10), (-1, 0, 10), (1.5, 0, 10), (1, 1, 0)):
        pytest.raises(OptionError, epsilon_lower_bound, a, b, n)
    refused(OptionError, "confidence", epsilon_lower_bound, 1, 1, 10, confidence=1.0)
