"""Attacks on floating point: margins of huge tables near cancellation, and noise scales one
rounding too small.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from jaxcd.citests import CITest, covariance_norm, kendall, spearman
from jaxcd.privacy.mechanisms import VECTOR_GRID, gaussian_sigma, integer_sensitivity
from jaxcd.privacy.rank_maps import rank_map_sensitivity
from tests.catalogue import MARGIN_TESTS
from tests.helpers import stated

ALPHA = 0.05


def exact_margins(table: np.ndarray) -> dict[str, mpmath.mpf]:
    """The margins of G, M and h of a table (strata, x, y) of Python integers, in 60 digits."""
    mpf = mpmath.mpf
    c = 2 * mpmath.erfinv(1 - mpf(str(ALPHA))) ** 2 - 1
    z = mpmath.sqrt(c + 1)
    squares = mean = wide = pooled_w = score = h_variance = mpf(0)
    cube = mpf(0)
    total: list[list] = [[mpf(0)] * table.shape[2] for _ in range(table.shape[1])]
    for block in table.tolist():
        n, r, s = (
            sum(map(sum, block)),
            [sum(row) for row in block],
            [sum(col) for col in zip(*block, strict=True)],
        )
        if n == 0:
            continue
        for a, row in enumerate(block):
            for b, count in enumerate(row):
                cell = mpf(count * n - r[a] * s[b]) / n
                squares += cell**2
                total[a][b] += cell
        if n >= 2:
            mean += mpf((n * n - sum(x * x for x in r)) * (n * n - sum(x * x for x in s))) / (
                n * n * (n - 1)
            )
        scatters = [
            mpf(
                sum(x * x for x in m) * n * n
                - 2 * n * sum(x**3 for x in m)
                + sum(x * x for x in m) ** 2
            )
            for m in (r, s)
        ]
        w = mpmath.sqrt(scatters[0] * scatters[1]) / mpf(n) ** 3
        wide, pooled_w = wide + w**2, pooled_w + w
        concordance = sum(
            block[a][b]
            * (
                sum(map(sum, (row[b + 1 :] for row in block[a + 1 :])))
                - sum(map(sum, (row[:b] for row in block[a + 1 :])))
            )
            for a in range(len(r))
            for b in range(len(s))
        )
        score += mpmath.sign(concordance) * (mpmath.sqrt(n * n + 2 * abs(concordance)) - n)
        # doubled centred mid-ranks: rows below less rows above
        x, y = ([sum(m[:k]) - sum(m[k + 1 :]) for k in range(len(m))] for m in (r, s))
        e = sum(block[a][b] * x[a] * y[b] for a in range(len(r)) for b in range(len(s)))
        cube += mpmath.sign(e) * (mpmath.cbrt(mpf(n) ** 3 + 3 * abs(e)) - n)
        h_variance += (
            mpf(n)
            / 9
            * (1 - mpf(sum(x**3 for x in r)) / n**3)
            * (1 - mpf(sum(x**3 for x in s)) / n**3)
        )
    tau = (3 + c * mpf("1.5")) / (2 * (3 - 2 * mpmath.sqrt(2)))
    pooled = mpmath.sqrt(sum(cell**2 for row in total for cell in row))
    return {
        "CovarianceNorm": mpmath.sqrt(squares)
        - mpmath.sqrt(max(mean + c * mpmath.sqrt(wide), tau**2)),
        "PooledCovariance": pooled - mpmath.sqrt(max(mean + c * pooled_w, tau**2)),
        "KendallTau": abs(score) - z * mpmath.sqrt(max(h_variance, mpf(100))),
        "Spearman": abs(cube) - z * mpmath.sqrt(max(h_variance, mpf(100))),
    }


def computed_margins(table: np.ndarray) -> dict[str, float]:
    tables = table[None].astype(np.int32)
    return {
        "CovarianceNorm": float(covariance_norm._evaluate(tables, ALPHA, False).margin[0]),
        "PooledCovariance": float(covariance_norm._evaluate(tables, ALPHA, True).margin[0]),
        "KendallTau": float(kendall._evaluate_tables(tables, ALPHA).margin[0]),
        "Spearman": float(spearman._evaluate_tables(tables, ALPHA).margin[0]),
    }


def hostile_tables() -> list[np.ndarray]:
    """Columns with a handful of exceptions in up to 2^31 rows, where the scatter is lost in
    rounding, with and without a second stratum that lifts V + c W just above the floor, so that the
    loss reaches the margin.
    """
    rng = np.random.default_rng(4)
    found = []
    for n, few in (
        (406776510, (3, 2)),
        (1630761425, (12, 8)),
        (813885108, (4, 6)),
        (10**8, (1, 1)),
        (10**6, (1, 0)),
    ):
        column = np.array([few[0], n - sum(few), few[1]])
        halves = np.stack([column // 2, column - column // 2], axis=1)
        for lift in (0, 114, 166, 3000):
            found.append(np.stack([halves, np.array([[lift, lift], [lift, lift], [0, 0]])]))
    for _ in range(40):
        n = 10 ** rng.uniform(1, 9.2)
        weights = rng.dirichlet(np.full(12, 10 ** rng.uniform(-1.5, 0.5)))
        found.append(
            (n * weights).astype(np.int64).reshape(2, 3, 2) + rng.integers(0, 3, (2, 3, 2))
        )
    return found


@pytest.mark.parametrize("test", MARGIN_TESTS, ids=lambda test: test.name)
def test_margins_of_huge_tables_are_within_the_pad(test: CITest):
    worst = 0.0
    with mpmath.workdps(60):
        for table in hostile_tables():
            n = int(table.sum())
            pad = stated(test, n).pad
            error = abs(
                mpmath.mpf(computed_margins(table)[test.name]) - exact_margins(table)[test.name]
            )
            assert error <= pad, table.tolist()
            worst = max(worst, float(error / pad))
    assert worst > 0  # the references differ


def test_rank_maps_have_the_noise_of_their_price():
    """2 (L + 1) p is attained, so sigma^2 must be at least that over 2 rho, to the last bit."""
    rng = np.random.default_rng(0)
    for n_columns in range(1, 13):
        for rho in 10.0 ** rng.uniform(-4, 1, 20):
            bound = integer_sensitivity(
                rank_map_sensitivity(n_columns, 11),
                grid=VECTOR_GRID,
                dimension=2047 * n_columns,
                norm=2,
                integral=True,
            )
            sigma = Fraction(gaussian_sigma(bound, float(rho))) * Fraction(VECTOR_GRID)
            assert 2 * 12 * n_columns <= 2 * Fraction(float(rho)) * sigma**2
