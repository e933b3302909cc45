"""Support vector machine and neural network in RECI: against solvers of another kind, known noise,
exchange, refusals and options.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

import numpy as np
import pytest
from scipy import optimize

from benchmarks import pairs
from jaxcd import pairwise
from jaxcd.errors import DataError, OptionError, SensitivityError
from jaxcd.pairwise import (
    Direction,
    NeuralNetwork,
    Polynomial,
    Regressor,
    SupportVector,
    reci,
    regressors,
)
from jaxcd.privacy import NO_PRIVACY, Budget
from tests.helpers import refused, simulated

# The function of the same name hides the module on the package.
RECI = importlib.import_module("jaxcd.pairwise.reci")
LEARNED = [SupportVector(), NeuralNetwork()]
UNIT = ((0.0, 1.0), (0.0, 1.0))


def cubed(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """x -> y, monotone with little noise: the steep inverse near 0 is hard to predict."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    return x, x**3 + 0.03 * rng.normal(size=n)


def wave(n: int, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    x = rng.uniform(size=n)
    return x, 0.5 + 0.4 * np.sin(7 * x) + deviation * rng.normal(size=n)


def test_names_are_one_class_wherever_they_are_imported_from():
    for name in (
        "Logistic",
        "Monomial",
        "NeuralNetwork",
        "Polynomial",
        "Regressor",
        "SupportVector",
    ):
        assert getattr(pairwise, name) is getattr(RECI, name) is getattr(regressors, name)
    assert pairwise.BoundedPolynomial is RECI.BoundedPolynomial


# ---- against other solvers


def test_support_vector_solves_its_problem():
    """The convex problem of the docstring, by a general solver on its dual: maximise b'y - tube |b|
    - b'Kb / 2, sum b = 0, abs(b) <= penalty.
    """
    x, y = wave(14, 0.1)
    machine = SupportVector(bandwidth=0.3, penalty=0.5, tube=0.05)
    kernel = np.exp(-((x[:, None] - x) ** 2) / (2 * 0.3**2))
    n = len(x)
    # b is the difference of two halves, both positive
    signs = np.concatenate([np.ones(n), -np.ones(n)])

    def dual(halves: np.ndarray) -> tuple[float, np.ndarray]:
        b = halves[:n] - halves[n:]
        value = b @ kernel @ b / 2 - b @ y + 0.05 * halves.sum()
        return value, np.concatenate([kernel @ b - y, y - kernel @ b]) + 0.05

    found = optimize.minimize(
        dual,
        np.full(2 * n, 0.1),
        jac=True,
        method="SLSQP",
        bounds=[(0, 0.5)] * (2 * n),
        constraints={"type": "eq", "fun": lambda h: signs @ h, "jac": lambda h: signs},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    smooth = kernel @ (found.x[:n] - found.x[n:])
    # The intercept then minimises what is outside the tube: piecewise linear, so the best is at a
    # corner.
    corners = np.concatenate([y - smooth - 0.05, y - smooth + 0.05])
    intercept = min(corners, key=lambda c: np.maximum(np.abs(y - smooth - c) - 0.05, 0).sum())
    assert machine.error(x, y) == pytest.approx(np.mean((y - smooth - intercept) ** 2), rel=0.02)


def test_one_hidden_neuron_is_the_best_sigmoid():
    """Least squares over a + b tanh(c x + d) from many starts, by another optimiser."""
    x, y = cubed(1, 120)

    def residuals(p: np.ndarray) -> np.ndarray:
        return p[0] + p[1] * np.tanh(p[2] * x + p[3]) - y

    starts = np.random.default_rng(0).normal(scale=2, size=(20, 4))
    best = min(np.mean(optimize.least_squares(residuals, start).fun ** 2) for start in starts)
    assert best <= NeuralNetwork(n_hidden=1).error(x, y) * (1 + 1e-9) <= 1.02 * best


def test_the_best_of_several_starts_is_kept():
    x, y = wave(300, 0.05)
    single = [NeuralNetwork(n_hidden=2, n_starts=1, seed=seed).error(x, y) for seed in range(5)]
    assert max(single) > 1.05 * min(single)  # else there is nothing to choose
    assert NeuralNetwork(n_hidden=2, n_starts=5).error(x, y) == pytest.approx(min(single), rel=1e-3)


@pytest.mark.parametrize("regressor", LEARNED, ids=str)
def test_the_error_is_the_variance_of_the_noise_where_a_cubic_misses(regressor: Regressor):
    x, y = wave(800, 0.05)
    assert regressor.error(x, y) == pytest.approx(0.05**2, rel=0.15)
    assert Polynomial(1).error(x, y) > 10 * 0.05**2


# ---- direction


@pytest.mark.parametrize("regressor", LEARNED, ids=str)
def test_cause_of_a_monotone_mechanism_and_exchange(regressor: Regressor):
    for seed in range(4):
        x, y = cubed(seed)
        there, back = (
            reci(a, b, budget=NO_PRIVACY, regressor=regressor) for a, b in ((x, y), (y, x))
        )
        assert there.direction is Direction.X_TO_Y and back.direction is Direction.Y_TO_X
        assert (there.forward, there.backward) == (back.backward, back.forward)
        assert there.info["regressor"] == str(regressor)


@pytest.mark.parametrize(
    "regressor", [SupportVector(max_rows=150), NeuralNetwork(max_rows=150)], ids=str
)
def test_of_many_rows_both_directions_take_the_same(regressor: Regressor):
    x, y = cubed(7, 1000)
    there, back = (reci(a, b, budget=NO_PRIVACY, regressor=regressor) for a, b in ((x, y), (y, x)))
    assert there.direction is Direction.X_TO_Y
    assert (there.forward, there.backward) == (back.backward, back.forward)
    assert regressor.error(x, y) == pytest.approx(0.03**2, rel=0.2)


@pytest.mark.parametrize("kind", [SupportVector, NeuralNetwork])
def test_rows_are_drawn_by_the_seed_and_the_error_is_over_all(kind: type):
    x, y = cubed(8, 400)
    few = kind(max_rows=50)
    assert few.error(x, y) == few.error(x, y) != kind(max_rows=50, seed=1).error(x, y)
    others = np.setdiff1d(np.arange(400), regressors._drawn(400, 50, 0))
    assert len(others) == 350
    moved = y.copy()
    moved[others] += 0.5  # the fit stays, and every record outside it is off by half a unit more
    gain = few.error(x, moved) - few.error(x, y)
    # 2 * 0.5 * the mean residual, below the noise's deviation
    assert gain == pytest.approx(0.25 * 350 / 400, abs=0.03)


def test_support_vector_of_mirrored_data():
    x, y = cubed(3, 200)
    errors = [SupportVector().error(a, b) for a in (x, 1 - x) for b in (y, 1 - y)]
    assert errors == pytest.approx([errors[0]] * 4, rel=5e-3)


# ---- constants, privacy, what is missing


@pytest.mark.parametrize("regressor", LEARNED, ids=str)
def test_constant_columns(regressor: Regressor):
    ramp, flat = np.linspace(0, 1, 40), np.full(40, 0.3)
    assert 0 <= regressor.error(ramp, flat) <= 0.011**2
    assert regressor.error(flat, flat) <= 0.011**2
    # Nothing to predict from: a constant, between the mean's error and the median's.
    skewed = ramp**2
    mean, median = np.var(skewed), np.mean((skewed - np.median(skewed)) ** 2)
    assert mean * 0.999 <= regressor.error(flat, skewed) <= median * 1.1
    for a, b in ((ramp, flat), (flat, ramp)):
        refused(DataError, "is constant", reci, a, b, budget=NO_PRIVACY, regressor=regressor)


@pytest.mark.parametrize("kind", [SupportVector, NeuralNetwork])
def test_columns_constant_in_the_drawn_rows_only(kind: type):
    ramp, spike = np.linspace(0, 1, 400), np.zeros(400)
    spike[np.setdiff1d(np.arange(400), regressors._drawn(400, 20, 0))[0]] = 1.0
    result = reci(ramp, spike, budget=NO_PRIVACY, regressor=kind(max_rows=20))
    assert result.forward == pytest.approx(1 / 400, rel=0.05)  # only the spike is missed
    assert np.isfinite(result.backward)


@pytest.mark.parametrize("regressor", LEARNED, ids=str)
def test_refused_with_a_budget_before_any_charge(
    regressor: Regressor, monkeypatch: pytest.MonkeyPatch
):
    def charged(*arguments: object, **options: object) -> None:
        raise AssertionError("an account was opened")

    monkeypatch.setattr(RECI, "open_account", charged)
    monkeypatch.setattr(type(regressor), "error", charged)
    with pytest.raises(
        SensitivityError, match=rf"regressor = {type(regressor).__name__}\(.*BoundedPolynomial"
    ) as refusal:
        reci(*cubed(0), budget=Budget(1.0), bounds=UNIT, regressor=regressor, noise=simulated())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("regressor", "module"), [(SupportVector(), "svm"), (NeuralNetwork(), "neural_network")]
)
def test_without_scikit_learn_one_line_says_what_to_do(
    regressor: Regressor, module: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, f"sklearn.{module}", None)
    with pytest.raises(
        OptionError, match="regressor = .* needs scikit-learn.*pip install scikit-learn"
    ) as refusal:
        reci(*cubed(0), budget=NO_PRIVACY, regressor=regressor)
    assert "\n" not in str(refusal.value)
    assert reci(*cubed(0), budget=NO_PRIVACY).direction is Direction.X_TO_Y


def test_a_fit_stopped_early_does_not_warn(monkeypatch: pytest.MonkeyPatch):
    x, y = cubed(0)
    full = NeuralNetwork().error(x, y)
    monkeypatch.setattr(regressors, "_MAX_ITERATIONS", 3)
    assert full < NeuralNetwork().error(x, y) < np.var(y) * 2  # warnings are errors here


def test_the_benchmark_has_both_where_they_can_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    added = {"RECI, support vector", "RECI, neural network"}
    assert added <= {method.label for method in pairs.methods(quick=False)}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    capsys.readouterr()
    assert not added & {method.label for method in pairs.methods(quick=False)}
    assert "pip install scikit-learn" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (SupportVector, {"bandwidth": 0.0}),
        (SupportVector, {"bandwidth": float("nan")}),
        (SupportVector, {"bandwidth": "wide"}),
        (SupportVector, {"penalty": -1.0}),
        (SupportVector, {"penalty": float("inf")}),
        (SupportVector, {"penalty": True}),
        (SupportVector, {"tube": -0.1}),
        (SupportVector, {"tube": float("nan")}),
        (SupportVector, {"tube": None}),
        (SupportVector, {"max_rows": 7}),
        (SupportVector, {"max_rows": None}),
        (SupportVector, {"seed": -1}),
        (NeuralNetwork, {"n_hidden": 0}),
        (NeuralNetwork, {"n_hidden": 2.0}),
        (NeuralNetwork, {"n_starts": 0}),
        (NeuralNetwork, {"max_rows": 1e3}),
        (NeuralNetwork, {"seed": True}),
    ],
    ids=str,
)
def test_bad_options(kind: type, options: dict):
    (name,) = options
    refused(OptionError, f"^{name} = .*; give one such as", kind, **options)
