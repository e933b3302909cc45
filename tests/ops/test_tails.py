"""Log tail probabilities against fifty digits, down to 1e-5000."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from jaxcd.ops.tails import (
    chi_square_log_sf,
    normal_log_sf,
    normal_two_sided_log_pvalue,
    student_quantile,
    student_two_sided_log_pvalue,
)


def exact_chi_square(x: float, dof: float) -> float:
    with mpmath.workdps(60):
        value = mpmath.gammainc(mpmath.mpf(dof) / 2, a=mpmath.mpf(x) / 2, regularized=True)
        return float(mpmath.log(value))


def exact_normal(z: float) -> float:
    with mpmath.workdps(60):
        z = mpmath.mpf(z) / mpmath.sqrt(2)
        return float(
            mpmath.log(mpmath.erfc(z) / 2) if z > 0 else mpmath.log1p(-mpmath.erfc(-z) / 2)
        )


@pytest.mark.parametrize("dof", [1, 2, 3, 7, 30, 150, 1000, 20_000])
def test_chi_square(dof: int):
    """From the bulk to log p = -11,600, through the point where the survival function
    underflows.
    """
    x = dof * np.array([1e-6, 0.3, 0.9, 1.0, 1.1, 1.5])
    x = np.concatenate(
        [
            x,
            dof
            + np.array(
                [1e-3, 1, 5, 30, 100, 600, 1300, 1400, 1450, 1490, 1500, 1600, 2000, 23_500]
            ),
        ]
    )
    result = chi_square_log_sf(x, np.full(len(x), dof))
    exact = np.array([exact_chi_square(value, dof) for value in x])
    np.testing.assert_allclose(result, exact, rtol=1e-9, atol=1e-13)
    assert result.dtype == np.float64
    if dof == 1:
        assert exact.min() < -5000 * math.log(10)


def test_chi_square_is_monotone_where_the_formula_changes():
    x = np.linspace(1300, 1700, 4001)
    for dof in (1, 4, 60):
        assert (np.diff(chi_square_log_sf(x, np.full(len(x), dof))) < 0).all()


def test_chi_square_without_degrees_of_freedom():
    result = chi_square_log_sf(np.array([0.0, 5.0, -1e-12, -3.0, 0.0]), np.array([0, 0, 3, 1, 2]))
    np.testing.assert_array_equal(result, 0)


def test_normal():
    z = np.concatenate([np.linspace(-38, 38, 153), [60.0, 100.0, 152.0, 153.5, -100.0]])
    exact = np.array([exact_normal(value) for value in z])
    assert exact.min() < -5000 * math.log(10)
    np.testing.assert_allclose(normal_log_sf(z), exact, rtol=1e-9, atol=1e-300)


def test_two_sided():
    z = np.array([0.0, 1e-9, 0.1, 1.96, -1.96, 8.3, 40.0, -152.0])
    with mpmath.workdps(60):
        exact = [float(mpmath.log(mpmath.erfc(abs(mpmath.mpf(v)) / mpmath.sqrt(2)))) for v in z]
    result = normal_two_sided_log_pvalue(z)
    np.testing.assert_allclose(result, exact, rtol=1e-9, atol=1e-15)
    assert (result <= 0).all() and result[0] == 0


@pytest.mark.parametrize("dof", [1, 4, 199, 100_000])
def test_students_law(dof: int) -> None:
    for t in (0.0, 1e-9, 0.5, 3.0, 60.0, 1e5):
        with mpmath.workdps(40):
            x = dof / (dof + mpmath.mpf(t) ** 2)
            front = mpmath.mpf(dof) / 2 * mpmath.log(x) + mpmath.log(1 - x) / 2 if t else 0
            series = mpmath.hyp2f1((dof + 1) / 2, 1, dof / 2 + 1, x) if t else 0
            scale = mpmath.beta(mpmath.mpf(dof) / 2, 0.5) * dof / 2
            exact = float(front + mpmath.log(series / scale)) if t else 0.0
        found = student_two_sided_log_pvalue(np.array([t, -t]), dof)
        assert found == pytest.approx([exact, exact], rel=1e-9, abs=1e-9)
    assert student_quantile(0.025, dof) == pytest.approx(stats.t.isf(0.025, dof))
