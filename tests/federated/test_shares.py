"""Laws of sums of shares: exact, by convolution, against what is claimed."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import jaxcd
from jaxcd.errors import OptionError
from jaxcd.privacy import SecureNoise
from jaxcd.privacy.events import Law
from jaxcd.privacy.polya import negative_binomial
from jaxcd.privacy.repricing import price_again
from jaxcd.privacy.shares import gaussian_share, laplace_share, signed, summed_distance, summed_rho
from tests.helpers import simulated


def gaussian_law(parameter: float, reach: int) -> list[mpmath.mpf]:
    weights = [
        mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * parameter**2)) for k in range(-reach, reach + 1)
    ]
    total = mpmath.fsum(weights)
    return [w / total for w in weights]


def convolved(a: list[mpmath.mpf], b: list[mpmath.mpf]) -> list[mpmath.mpf]:
    return [
        mpmath.fsum(a[i] * b[k - i] for i in range(max(0, k - len(b) + 1), min(k, len(a) - 1) + 1))
        for k in range(len(a) + len(b) - 1)
    ]


@pytest.mark.parametrize(("share", "count"), [(1.0, 2), (1.0, 4), (1.2, 3)])
def test_sums_of_discrete_gaussians_are_within_tau(share: float, count: int) -> None:
    """Log-ratios of all probabilities within ten standard deviations, with 60 digits."""
    with mpmath.workdps(60):
        reach = 18
        one = gaussian_law(share, reach)
        law = one
        for _ in range(count - 1):
            law = convolved(law, one)
        middle = len(law) // 2
        sigma = mpmath.sqrt(count) * share
        ideal = gaussian_law(sigma, middle)
        # what lies beyond the reach of one share has probability below 1e-70
        near = range(middle - 9, middle + 10)
        worst = float(max(abs(mpmath.log(law[k] / ideal[k])) for k in near))
    tau = summed_distance(share, count)
    assert worst <= tau
    assert count > 2 or worst >= 0.3 * tau  # and not by much: half of 4 / 5


@pytest.mark.parametrize(("d", "share", "count"), [(1, 1.0, 3), (2, 1.5, 2), (3, 2.0, 5)])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0, 40.0])
def test_the_sum_has_the_rho_that_it_is_charged(
    d: int, share: float, count: int, order: float
) -> None:
    """Renyi divergences of the exact law of the sum and of its shift by d."""
    with mpmath.workdps(50):
        reach = int(14 * share + order * d / count)  # where p^order q^(1 - order) has its mass
        one = gaussian_law(share, reach)
        law = one
        for _ in range(count - 1):
            law = convolved(law, one)
        powers = [
            law[k] ** mpmath.mpf(order) * law[k + d] ** (1 - mpmath.mpf(order))
            for k in range(len(law) - d)
        ]
        found = float(mpmath.log(mpmath.fsum(powers)) / (order - 1))
    rho = float(summed_rho(Fraction(d), share, count, 1))
    assert found <= rho * order * (1 + 1e-12)
    assert found >= 0.95 * d**2 / (2 * count * share**2) * order or order > 8


def test_shares_add_up_to_discrete_laplace_noise() -> None:
    scale, parts = 2.0, 5
    q, k = math.exp(-1 / scale), np.arange(400)
    share = (
        np.exp(special.gammaln(k + 1 / parts) - special.gammaln(k + 1) - special.gammaln(1 / parts))
        * (1 - q) ** (1 / parts)
        * q**k
    )
    law = share.copy()
    for _ in range(parts - 1):
        law = np.convolve(law, share)[:400]
    np.testing.assert_allclose(law[:300], (1 - q) * q ** k[:300], rtol=1e-9)


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_negative_binomial_draws_have_their_law(parts: int) -> None:
    """The exact sampler on a fixed stream of bits, against SciPy's law."""
    rng, scale, n = np.random.default_rng(parts), 3.0, 40_000
    draws = negative_binomial(
        parts,
        n,
        geometric=lambda size: np.floor(rng.standard_exponential(size) * scale).astype(np.int64),
        words=lambda size: rng.integers(0, 2**64, size, dtype=np.uint64),
    )
    p = -math.expm1(-1 / scale)
    cells = np.arange(8)
    expected = stats.nbinom.pmf(cells, 1 / parts, p) * n
    counts = np.array([(draws == c).sum() for c in cells])
    expected = np.append(expected, n - expected.sum())
    counts = np.append(counts, n - counts.sum())
    assert draws.min() >= 0 and len(draws) == n
    assert stats.chisquare(counts, expected).pvalue > 1e-6


@pytest.mark.parametrize("noise", [SecureNoise(), simulated(3)], ids=["secure", "simulated"])
def test_polya_shares_sum_to_laplace(noise: jaxcd.privacy.NoiseSource) -> None:
    sampler, parts, scale, n = noise.start(), 3, 1.5, 600
    total = sum(sampler.polya(scale, parts, n, index=i) for i in range(parts))
    a = math.exp(-1 / scale)
    cells = np.arange(-4, 5)
    expected = (1 - a) / (1 + a) * a ** np.abs(cells) * n
    counts = np.array([(total == c).sum() for c in cells])
    assert (
        stats.chisquare(
            np.append(counts, n - counts.sum()), np.append(expected, n - expected.sum())
        ).pvalue
        > 1e-6
    )


@pytest.mark.parametrize("rho", [1e-3, 0.02, 5.0, 400.0])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_shares_are_as_small_as_the_price_allows(rho: float, count: int) -> None:
    share = gaussian_share(
        n_shares=count, sensitivity=1.7, rho=rho, dimension=50, label="a", pad=1e-6, grid=2.0**-20
    )
    record = share.event.record
    assert record is not None and record.law is Law.SUMMED_GAUSSIAN
    row = {
        "label": "a",
        "law": record.law.value,
        "sensitivity": record.sensitivity,
        "pad": record.pad,
        "grid": record.grid,
        "dimension": record.dimension,
        "integral": record.integral,
        "scales": record.scales,
    }
    again = price_again(row).rho
    assert again <= rho * (1 + 1e-12)
    assert again >= rho * (1 - 1e-6) or share.scale == 1.0
    assert len(record.scales) == count == share.n_shares


def test_a_share_is_at_least_one_step() -> None:
    """Below, sums of discrete Gaussians are nothing like one, and tau is not proved."""
    share = gaussian_share(
        n_shares=30, sensitivity=1.0, rho=1.0, dimension=1, label="a", integral=True
    )
    assert share.scale >= 1
    assert summed_rho(Fraction(1), share.scale, 30, 1) <= Fraction(1)


def test_variance_and_reach_hold_for_draws() -> None:
    options = {"n_shares": 4, "label": "a"}
    shares = (
        gaussian_share(sensitivity=9.0, rho=0.5, dimension=1, integral=True, **options),
        laplace_share(sensitivity=2.0, epsilon=0.7, dimension=1, **options),
    )
    for share in shares:
        sampler, n = simulated(5).start(), 20_000
        total = sum(share.draw(sampler, n, index=i) for i in range(6))
        assert total.var() == pytest.approx(share.variance(6), rel=0.06)
        assert np.abs(total).max() <= share.reach(6, n, failure=1e-6)


def test_laplace_shares_refuse_what_cannot_be_drawn() -> None:
    with pytest.raises(OptionError, match=r"2\*\*14"):
        laplace_share(n_shares=3, sensitivity=2.0, epsilon=1e-5, dimension=4, label="a")


@pytest.mark.parametrize("bits", [8, 24, 64])
def test_numbers_come_back_from_the_modulus(bits: int) -> None:
    half = 2 ** (bits - 1)
    values = np.array([0, 1, -1, half - 1, -half], dtype=np.int64)
    wrapped = values.view(np.uint64) & np.uint64(2**bits - 1)
    np.testing.assert_array_equal(signed(wrapped, bits), values)
