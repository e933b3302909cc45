"""Waves of a regression function: the search against the periodogram by its definition, the terms
against theirs, and the tests that use them against laws that repeat along a column."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.citests import jumps
from jaxcd.citests.regressions import Regressions
from jaxcd.citests.waves import clearest_wave
from tests.citests.test_jumps import rejected, weekends


def power(z: np.ndarray, rest: np.ndarray, frequency: float) -> float:
    """By its definition, one row after the other."""
    cosines = math.fsum(u * math.cos(frequency * v) for u, v in zip(rest, z, strict=True))
    sines = math.fsum(u * math.sin(frequency * v) for u, v in zip(rest, z, strict=True))
    return (cosines**2 + sines**2) / (math.fsum(u * u for u in rest) / 2)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(100, 600),
    st.sampled_from(["uniform", "normal", "whole numbers"]),
    st.floats(6.0, 40.0),
)
def test_the_largest_power_is_that_of_the_definition(seed, n, law, periods):
    rng = np.random.default_rng(seed)
    z = {
        "uniform": rng.uniform(-2, 2, n),
        "normal": rng.normal(size=n),
        "whole numbers": rng.integers(0, 200, n).astype(float),
    }[law]
    frequency = 2 * math.pi * periods / np.ptp(z)
    rest = np.sin(frequency * z + seed) + 0.3 * rng.normal(size=n)
    rest -= rest.mean()
    found, where = clearest_wave(z, [rest], n_searched=1)
    assert found == pytest.approx(power(z, rest, where), rel=1e-6)
    # every frequency up to 60 periods, in steps of a twentieth
    most = max(power(z, rest, 2 * math.pi * k / 20 / np.ptp(z)) for k in range(20, 1_200, 7))
    assert found >= 0.98 * most
    if law != "whole numbers":  # of those several frequencies are the same function
        assert abs(where - frequency) * np.ptp(z) < 1.0


def test_of_several_residuals_the_clearest_counts_and_scale_does_not():
    rng = np.random.default_rng(0)
    z = rng.uniform(0, 1, 800)
    faint, clear = (np.sin(50 * z) * size + rng.normal(size=800) for size in (0.4, 3.0))
    alone = clearest_wave(z, [clear], n_searched=2)
    assert alone == clearest_wave(z, [faint, clear], n_searched=2)
    assert alone[0] > clearest_wave(z, [faint], n_searched=2)[0]
    larger = clearest_wave(1e6 * z - 3e6, [1e-80 * clear], n_searched=2)
    assert larger[0] == pytest.approx(alone[0], rel=1e-9)
    assert larger[1] == pytest.approx(alone[1] / 1e6, rel=1e-6)


@pytest.mark.parametrize("errors", ["normal", "cauchy"])
@pytest.mark.parametrize("n", [60, 1_000])
def test_noise_has_a_wave_in_few_targets(errors, n):
    """A sixteenth of them: 12 of 200 are expected, more than 25 in one of 5,000 such tests."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        z = rng.normal(size=n)
        u = rng.normal(size=n) if errors == "normal" else rng.standard_cauchy(n)
        found += clearest_wave(z, [u - u.mean()], n_searched=1)[0] > 0
    assert found <= 25


@pytest.mark.parametrize(
    ("column", "rest"),
    [
        (np.full(50, 3.0), np.arange(50.0)),
        (np.arange(50.0), np.zeros(50)),
        (np.array([1.0]), np.array([0.0])),
        (np.array([1.0, 2.0]), np.array([1.0, -1.0])),
        (np.r_[np.zeros(49), 1e300], np.arange(50.0) - 24.5),
    ],
)
def test_degenerate_columns_and_residuals_have_answers(column, rest):
    found, frequency = clearest_wave(column, [rest], n_searched=1)
    assert math.isfinite(found) and math.isfinite(frequency)


def test_terms_are_cosine_and_sine_and_go_through_their_table():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(40, 2))
    terms = [
        jumps.Term(1, 7.5, -1),
        jumps.Term(1, 7.5, -2),
        jumps.Term(0, 0.2, 4),  # the sine, beyond a threshold of the first column
    ]
    found = np.asarray(jumps.columns_of(z, terms))
    expected = [np.cos(7.5 * z[:, 1]), np.sin(7.5 * z[:, 1])]
    expected.append((z[:, 0] > 0.2) * expected[1])
    np.testing.assert_allclose(found[:, :3].T, expected, atol=1e-12)
    assert not found[:, 3:].any()
    assert list(jumps.terms_of(jumps.table_of(terms))) == terms


def season(rng: np.random.Generator, n: int) -> np.ndarray:
    """24 periods, of which x and y see different phases."""
    time = rng.uniform(0, 24, n)
    e, f = 0.5 * rng.normal(size=(2, n))
    wave = np.sin(2 * np.pi * time)
    return np.column_stack([wave + e, wave + np.cos(2 * np.pi * time) + f, time])


def beside(rng: np.random.Generator, n: int) -> np.ndarray:
    """Eight waves of one column, beside a line in another."""
    z = rng.normal(size=(n, 2))
    e, f = 0.5 * rng.normal(size=(2, n))
    wave = np.sin(8 * z[:, 0])
    return np.column_stack([wave + z[:, 1] + e, wave - 0.5 * z[:, 1] + f, z])


def dependent(law):
    """The same with errors in common."""

    def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
        values = law(rng, n)
        values[:, :2] += 0.5 * rng.normal(size=(n, 1))
        return values

    return drawn


@pytest.mark.parametrize("law", [weekends, season, beside])
@pytest.mark.parametrize("test", [jaxcd.RCIT(), jaxcd.GCM()])
def test_waves_in_common_are_not_called_dependence(law, test):
    """Without waves 19 or 20 of 20; at level .05 more than 3 of 8 in one of 2,000 tests."""
    assert rejected(test, law, n=2_000, runs=8) <= 3
    assert rejected(test, dependent(law), n=2_000, runs=2) == 2


def test_a_function_of_the_weekday_is_learned():
    """Seven levels of a date: three waves, and little is left beside the error."""
    rng = np.random.default_rng(4)
    date = rng.integers(0, 5 * 365, 3_000).astype(float)
    level = rng.normal(size=7)[date.astype(int) % 7]
    y = 2 * level + 0.5 * rng.normal(size=3_000)
    regressions = Regressions(np.column_stack([y, date]), rank=200)
    rest = regressions.residuals((1,), regressions.coordinates((0,), "target"))[:, 0]
    explained = 1 - np.var(rest) / 1.0  # targets have variance one
    possible = 1 - 0.25 / np.var(y)
    assert explained > 0.97 * possible
