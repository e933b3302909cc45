"""Additive noise models: the numerics against dense references, known directions, the laws of the
noise, and what is refused.
"""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxcd.errors import DataError, OptionError, PrivacyError, SensitivityError
from jaxcd.ops import double_precision, hsic, ridge
from jaxcd.pairwise.anm import anm, anm_batch
from jaxcd.pairwise.anm_columns import DirectionColumns, Plan, split_rows
from jaxcd.pairwise.anm_hsic import hsic_pairs, series
from jaxcd.pairwise.anm_regression import fit_pairs, series_grid
from jaxcd.pairwise.anm_release import (
    PrivateRun,
    error_probability,
    private_result,
    probability_of_other_sign,
)
from jaxcd.pairwise.anm_scores import (
    HSICScore,
    IQRMechanism,
    KendallScore,
    LogIQRScore,
    Protect,
    ScoreRelease,
    SpearmanScore,
)
from jaxcd.pairwise.result import Direction
from jaxcd.privacy import NO_PRIVACY, Budget
from tests.helpers import refused, simulated

KEY = jax.random.key(11)
BOUNDS = ((-3.0, 3.0), (-3.0, 3.0))
SCORES = [HSICScore(), SpearmanScore(), KendallScore(), LogIQRScore()]
SIMULATED = simulated(1)


def cubic(seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, n)
    return x, x**3 / 2 + rng.uniform(-0.5, 0.5, n)


# --- numerics
# --------------------------------------------------------------------------------------------------


def test_regression_against_dense_kernel_ridge():
    rng = np.random.default_rng(0)
    n, n_training = 40, 30
    x, y = rng.uniform(-1, 1, (3, n)), rng.normal(size=(3, n))
    training = np.arange(n) < n_training
    bandwidths, penalties = (0.2, 0.5), (1.0, 0.01)
    grid = series_grid(bandwidths)
    fit = fit_pairs(x, y, np.tile(training, (3, 1)), grid=grid, penalties=penalties)
    j = np.arange((grid.roots.shape[1] + 1) // 2)
    for pair in range(3):
        losses = {}
        for place in range(2):
            weights = grid.roots[place, : len(j)] ** 2
            kernel = (
                np.cos(np.subtract.outer(x[pair], x[pair])[..., None] * grid.frequency * j)
                @ weights
            )
            dense = np.exp(
                -(np.subtract.outer(x[pair], x[pair]) ** 2) / (2 * bandwidths[place] ** 2)
            )
            period = 2 * math.pi / grid.frequency
            images = sum(
                np.exp(
                    -((np.subtract.outer(x[pair], x[pair]) + k * period) ** 2)
                    / (2 * bandwidths[place] ** 2)
                )
                for k in (-1, 1)
            )
            assert np.abs(kernel - (dense + images) / (dense + images)[0, 0]).max() < 1e-5
            for number, penalty in enumerate(penalties):
                mu = n_training * penalty / 2
                inverse = np.linalg.inv(kernel[:n_training, :n_training] + mu * np.eye(n_training))
                prediction = kernel[:, :n_training] @ inverse @ y[pair, :n_training]
                left_out = inverse @ y[pair, :n_training] / np.diag(inverse)
                losses[place, number] = (
                    np.sum(left_out**2),
                    prediction,
                    y[pair, :n_training] - left_out,
                )
        best = min(losses, key=lambda at: losses[at][0])
        assert (fit.bandwidth[pair], fit.penalty[pair]) == best
        np.testing.assert_allclose(fit.prediction[pair], losses[best][1], atol=1e-8)
        np.testing.assert_allclose(fit.leave_one_out[pair, :n_training], losses[best][2], atol=1e-8)


@pytest.mark.slow
def test_norm_constraint_against_the_reference():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-1, 1, (1, 50)), np.sign(rng.normal(size=(1, 50)))
    grid = series_grid((0.1,))
    n_waves = (grid.roots.shape[1] - 1) // 2
    angle = np.outer(x[0], grid.frequency * np.arange(1, n_waves + 1))
    features = np.hstack([np.ones((50, 1)), np.cos(angle), np.sin(angle)]) * grid.roots[0]
    assert np.allclose(np.sum(features**2, axis=1), 1)
    for bound in (0.5, 2.0, 1e6):
        fit = fit_pairs(
            x, y, np.ones((1, 50), bool), grid=grid, penalties=(0.001,), norm_bound=bound
        )
        with double_precision():
            spectrum = ridge.spectrum(jax.numpy.asarray(features))
            rest = ridge.constrained_residuals(
                spectrum, jax.numpy.asarray(y.T), ridge.penalty_of_objective(0.001, 50), bound
            )
        np.testing.assert_allclose(y[0] - fit.prediction[0], np.asarray(rest)[:, 0], atol=1e-7)


def test_hsic_against_the_dense_formula_and_padding():
    rng = np.random.default_rng(2)
    u, v = rng.uniform(-1, 1, (2, 30)), rng.uniform(-1, 1, (2, 30)) ** 2
    kernels = [series(reach=1.0, bandwidth=h) for h in (0.1, 0.3)]
    rows = np.tile(np.arange(45) < 30, (2, 1))
    padded = [np.hstack([part, np.full((2, 15), 0.5)]) for part in (u, v)]
    computed = hsic_pairs(padded[0], padded[1], rows, series_u=kernels, series_v=kernels[::-1])
    for pair in range(2):
        grams = [
            np.exp(-(np.subtract.outer(w, w) ** 2) / (2 * h * h))
            for w, h in ((u[pair], (0.1, 0.3)[pair]), (v[pair], (0.3, 0.1)[pair]))
        ]
        with double_precision():
            dense = float(hsic.hsic_dense(*map(jax.numpy.asarray, grams)))
        assert computed[pair] == pytest.approx(math.sqrt(dense), abs=1e-6)


def test_rank_scores_against_scipy():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=37), rng.normal(size=37)
    assert SpearmanScore().value(x, y) == pytest.approx(abs(stats.spearmanr(x, y).statistic))
    assert KendallScore().value(x, y) == pytest.approx(abs(stats.kendalltau(x, y).statistic))


# --- answers
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_known_directions():
    pairs = [cubic(seed) for seed in range(16)]
    answers = [result.direction for result in anm_batch(pairs, budget=NO_PRIVACY, key=KEY)]
    assert answers.count(Direction.X_TO_Y) >= 14


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.name)
def test_batch_is_one_by_one_and_exchange_reverses(score):
    pairs = [cubic(0), cubic(1, 37)]
    batch = anm_batch(pairs, score=score, budget=NO_PRIVACY, key=KEY, test_share=0.5)
    for i, (x, y) in enumerate(pairs):
        key = jax.random.fold_in(KEY, i)
        alone = anm(x, y, score=score, budget=NO_PRIVACY, key=key, test_share=0.5)
        assert (alone.forward, alone.backward) == pytest.approx(
            (batch[i].forward, batch[i].backward), abs=1e-10
        )
        swapped = anm(y, x, score=score, budget=NO_PRIVACY, key=key, test_share=0.5)
        assert (swapped.forward, swapped.backward) == pytest.approx(
            (alone.backward, alone.forward), abs=1e-10
        )
        assert swapped.direction is alone.direction.reversed
        assert alone.confidence == 1.0 and math.isinf(alone.cost.epsilon)


def test_units_do_not_matter():
    x, y = cubic(4)
    base = anm(x, y, budget=NO_PRIVACY, key=KEY)
    moved = anm(1e6 * x - 3e6, 1e-9 * y, budget=NO_PRIVACY, key=KEY)
    assert (moved.forward, moved.backward) == pytest.approx((base.forward, base.backward), abs=1e-6)


@given(n=st.integers(8, 200), seed=st.integers(0, 1000), share=st.floats(0.01, 0.99))
@settings(max_examples=40)
def test_the_split_is_a_partition_drawn_from_the_key(n, seed, share):
    n_test = min(max(round(n * share), 4), n - 4)
    training, test = split_rows(jax.random.key(seed), n, n_test=n_test, joint=False)
    assert np.array_equal(training, ~test) and test.sum() == n_test
    assert np.array_equal(test, split_rows(jax.random.key(seed), n, n_test=n_test, joint=False)[1])


# --- private runs
# --------------------------------------------------------------------------------------------------

PRIVATE = [
    (HSICScore(), Protect.TEST),
    (HSICScore(), Protect.TRAIN),
    (HSICScore(), Protect.BOTH),
    (SpearmanScore(), Protect.TEST),
    (KendallScore(), Protect.TEST),
    (SpearmanScore(stability_release=True), Protect.TRAIN),
    (LogIQRScore(), Protect.TEST),
    (LogIQRScore(), Protect.TRAIN),
    (LogIQRScore(), Protect.BOTH),
    (LogIQRScore(mechanism=IQRMechanism.EXPONENTIAL), Protect.TEST),
    *[(LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE), protect) for protect in Protect],
]
BROKEN = {
    "constant": (np.zeros(20), np.linspace(-1, 1, 20)),
    "both constant": (np.ones(20), np.full(20, 2.0)),
    "ties": (np.repeat([0.0, 1.0], 10), np.tile([0.0, 1.0], 10)),
    "not numbers": (
        np.where(np.arange(20) < 5, np.nan, 1.0),
        np.where(np.arange(20) < 15, np.inf, -np.inf),
    ),
    "outside": (1e300 * np.linspace(-1, 1, 20), 1e-300 * np.linspace(-1, 1, 20)),
}


@pytest.mark.parametrize(("score", "protect"), PRIVATE, ids=str)
def test_private_runs_are_total_and_keep_their_budget(score, protect):
    budget = Budget(1.0, 1e-5)
    pairs = [*BROKEN.values(), cubic(0, 20)]
    options = dict(
        score=score, budget=budget, key=KEY, bounds=BOUNDS, protect=protect, noise=SIMULATED
    )
    shared = anm_batch(pairs, **options)
    assert math.fsum(result.cost.epsilon for result in shared) <= 1.0
    assert math.fsum(result.cost.delta for result in shared) <= 1e-5
    assert all(result.cost.epsilon == pytest.approx(1 / len(pairs)) for result in shared)
    results = anm_batch(pairs, same_people=False, **options)
    for result in results:
        assert math.isfinite(result.margin) and result.forward is None and result.backward is None
        assert (result.cost.epsilon, result.cost.delta) == (1.0, 1e-5) and not result.cost.proven
        assert result.spent.epsilon <= 1.0 and result.spent.delta <= 1e-5
        assert result.info["ledger"]
        for half in ("test", "training"):
            assert (f"for the {half} half only" in result.cost.reason) == (
                protect.value == half or (half, protect.value) == ("training", "train")
            )
    # the number of events tells nothing
    assert len({len(result.info["ledger"]) for result in results}) == 1


def test_secure_noise_is_the_default_and_is_proved():
    result = anm(
        *cubic(0),
        score=SpearmanScore(),
        budget=Budget(1.0),
        key=KEY,
        bounds=BOUNDS,
        protect=Protect.TEST,
    )
    assert result.cost.proven and 0.5 <= (result.confidence or 0) <= 1
    assert result.spent.epsilon == 1.0


def test_scores_are_released_when_asked_for():
    options = dict(
        budget=Budget(50.0), key=KEY, bounds=BOUNDS, protect=Protect.TEST, noise=SIMULATED
    )
    x, y = cubic(0)
    result = anm(x, y, score=KendallScore(), release=ScoreRelease.SCORES, **options)
    assert result.forward is not None and result.backward is not None
    assert result.margin == pytest.approx(abs(result.backward - result.forward))
    quartiles = anm(x, y, score=LogIQRScore(), release=ScoreRelease.SCORES, **options)
    assert quartiles.info["mechanism"] == "exponential mechanism" and quartiles.forward is not None
    assert len(quartiles.info["ledger"]) == 8


def test_quartiles_of_a_large_budget_are_the_quartiles():
    x, y = cubic(0)
    shared = dict(
        score=LogIQRScore(),
        key=KEY,
        bounds=BOUNDS,
        protect=Protect.TEST,
        release=ScoreRelease.SCORES,
    )
    noisy = anm(x, y, budget=Budget(4000.0), noise=SIMULATED, **shared)
    exact = anm(x, y, budget=NO_PRIVACY, score=LogIQRScore(), key=KEY, test_share=0.5)
    assert (noisy.forward, noisy.backward) == pytest.approx(
        (exact.forward, exact.backward), abs=0.1
    )


# --- the law of the answers
# --------------------------------------------------------------------------------------------------


def columns() -> DirectionColumns:
    values = np.linspace(-1, 1, 10)
    return DirectionColumns(values, values, values, None, None, 2.0)


def runs(gap: float, release: ScoreRelease, n_runs: int, seed: int) -> list:
    """Private answers for Kendall scores 0.3 and 0.3 + gap, of 10 test rows (sensitivity 0.4),
    epsilon = 1.
    """
    plan = Plan(20, 10, 10, False, Protect.TEST, 0.1, 1.0)
    run = PrivateRun(release, Budget(1.0), simulated(seed).start(), plan, {})
    pair = (columns(), columns())
    return [private_result(KendallScore(), run, pair, (0.3, 0.3 + gap)) for _ in range(n_runs)]


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_error_rates_of_both_releases_match_their_closed_forms(ratio):
    """At equal budgets: e^-t / 2 for the direction, (2 + t) e^-t / 4 for both scores."""
    n_runs, gap = 1000, ratio * 0.8
    for release, n_noises in ((ScoreRelease.DIRECTION, 1), (ScoreRelease.SCORES, 2)):
        wrong = sum(
            result.direction is not Direction.X_TO_Y
            for result in runs(gap, release, n_runs, n_noises)
        )
        assert (
            stats.binomtest(wrong, n_runs, error_probability(ratio, n_noises=n_noises)).pvalue
            > 1e-4
        )
    assert error_probability(ratio, n_noises=2) > error_probability(ratio, n_noises=1)


def test_tails_of_sums_of_laplace_noises():
    rng = np.random.default_rng(5)
    for n_noises in (1, 2, 4):
        draws = rng.laplace(size=(200_000, n_noises)).sum(axis=1)
        for ratio in (0.0, 1.0, 2.0, 4.0):
            share = float(np.mean(draws > ratio))
            p = error_probability(ratio, n_noises=n_noises)
            assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / len(draws))
    assert error_probability(2.0, n_noises=4) == pytest.approx(0.2227, abs=5e-5)
    assert error_probability(800.0, n_noises=4) == 0.0


@pytest.mark.parametrize("release", list(ScoreRelease))
def test_confidence_is_calibrated_under_a_flat_prior(release):
    """Gaps drawn evenly from all that the score can have: among answers of about one margin the
    share that agrees with the noiseless answer is the confidence stated.
    """
    rng = np.random.default_rng(6)
    plan = Plan(20, 10, 10, False, Protect.TEST, 0.1, 1.0)
    run = PrivateRun(release, Budget(6.0), simulated(7).start(), plan, {})
    pair = (columns(), columns())
    stated, agreed = [], []
    for gap in rng.uniform(-1, 1, 1500):
        result = private_result(KendallScore(), run, pair, (0.3, 0.3 + gap))
        stated.append(result.confidence)
        agreed.append(result.direction is (Direction.X_TO_Y if gap > 0 else Direction.Y_TO_X))
    stated, agreed = np.array(stated), np.array(agreed)
    for low, high in ((0.5, 0.75), (0.75, 0.95), (0.95, 1.01)):
        cell = (stated >= low) & (stated < high)
        assert cell.sum() > 20
        error = math.sqrt(np.sum(stated[cell] * (1 - stated[cell]))) / cell.sum()
        assert abs(agreed[cell].mean() - stated[cell].mean()) < 4 * error


@pytest.mark.parametrize("n_noises", [1, 2, 4])
@pytest.mark.parametrize("largest", [0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("ratio", [0.0, 0.2, 2.0, 30.0, 900.0])
def test_the_other_sign_by_integration(ratio, largest, n_noises):
    """The posterior of a flat prior between the bounds, by quadrature of the noise's density."""
    power = {1: [0.5], 2: [0.25, 0.25], 4: [15 / 96, 15 / 96, 6 / 96, 1 / 96]}[n_noises]

    def log_density(t):
        return np.log(np.polynomial.polynomial.polyval(np.abs(t), power)) - np.abs(t)

    places = (np.arange(40_000) + 0.5) / 40_000 * largest
    here, there = (np.asarray(log_density(ratio - sign * places)) for sign in (1, -1))
    most = here.max()
    same, other = np.exp(here - most).sum(), np.exp(there - most).sum()
    found = probability_of_other_sign(ratio, largest, n_noises=n_noises)
    assert found == pytest.approx(other / (same + other), rel=1e-4, abs=1e-12)


def test_noise_that_drowns_all_that_can_be_leaves_a_coin():
    for scale in (1e3, 1e9, 1e15):
        for ratio in (0.0, 0.7, 5.0, 1e4):
            found = probability_of_other_sign(ratio, 1 / scale, n_noises=1)
            assert 0.4999 * (1 - 1 / scale) < found <= 0.5
    assert probability_of_other_sign(3.0, math.inf, n_noises=2) == error_probability(
        3.0, n_noises=2
    )


@pytest.mark.parametrize("n_noises", [1, 2, 4])
def test_next_to_no_noise_leaves_no_doubt(n_noises: int):
    """The cube of such a ratio has no float: a paid run ended in an OverflowError."""
    for ratio in (1e90, 1e101, 1e150, 1e300):
        found = probability_of_other_sign(ratio, 2 * ratio, n_noises=n_noises)
        assert 0 <= found < 1e-20


# --- refusals
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.arange(7.0), np.arange(7.0), "7 records"),
        (np.arange(9.0), np.arange(10.0), "9 and 10"),
        (np.zeros((10, 2)), np.zeros(10), "multivariate"),
        (np.zeros(10), np.arange(10.0), "constant"),
        (np.append(np.arange(9.0), np.nan), np.arange(10.0), "NaN"),
        (np.append(np.arange(9.0), np.inf), np.arange(10.0), "infinite"),
        (np.array(list("abcdefghij")), np.arange(10.0), "numbers"),
    ],
)
def test_bad_data_is_refused_in_one_line(x, y, words):
    with pytest.raises(DataError, match=words) as caught:
        anm(x, y, budget=NO_PRIVACY, key=KEY)
    assert "\n" not in str(caught.value)


def test_ties_everywhere_have_an_answer_without_privacy():
    result = anm(np.tile([0.0, 1.0], 10), np.repeat([0.0, 1.0], 10), budget=NO_PRIVACY, key=KEY)
    assert math.isfinite(result.margin)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(bounds=None), PrivacyError, "bounds"),
        (dict(bounds=((1.0, 1.0), (0.0, 1.0))), OptionError, "bounds"),
        (dict(score=SpearmanScore()), SensitivityError, "training record"),
        (dict(score=KendallScore(), protect=Protect.TRAIN), SensitivityError, "stability_release"),
        (
            dict(score=SpearmanScore(stability_release=True), protect=Protect.TRAIN),
            OptionError,
            "delta",
        ),
        (
            dict(score=LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE)),
            OptionError,
            "delta",
        ),
        (dict(score=LogIQRScore(), release=ScoreRelease.SCORES), OptionError, "delta"),
        (dict(score=LogIQRScore(mechanism=IQRMechanism.EXPONENTIAL)), SensitivityError, "ranks"),
        (
            dict(
                score=LogIQRScore(mechanism=IQRMechanism.FLIP_DISTANCE), release=ScoreRelease.SCORES
            ),
            OptionError,
            "release",
        ),
        (dict(score="hsic"), OptionError, "score"),
        (dict(protect="test"), OptionError, "protect"),
        (dict(release=1), OptionError, "release"),
        (dict(test_share=1.0), OptionError, "test_share"),
        (dict(penalty=math.nan), OptionError, "penalty"),
        (dict(ridge_bandwidth=0.0), OptionError, "ridge_bandwidth"),
        (dict(norm_bound=-1.0), OptionError, "norm_bound"),
        (dict(key=0), OptionError, "key"),
        (dict(budget=1.0), OptionError, "budget"),
    ],
    ids=str,
)
def test_bad_options_are_refused_in_one_line(options, error, words):
    arguments = {"budget": Budget(1.0), "key": KEY, "bounds": BOUNDS, **options}
    with pytest.raises(error, match=words) as caught:
        anm(*cubic(0), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [{"cause_multiple": 0.0}, {"residual_bandwidth": math.nan}])
def test_bad_kernels_are_refused(bad):
    refused(OptionError, next(iter(bad)), HSICScore, **bad)


@pytest.mark.parametrize("bad", [{"mechanism": "ptr"}, {"width": math.nan}, {"resolution": 5}])
def test_bad_ranges_are_refused(bad):
    refused(OptionError, next(iter(bad)), LogIQRScore, **bad)


def test_a_batch_wants_one_bound_or_one_a_pair():
    with pytest.raises(OptionError, match="one a pair"):
        anm_batch([cubic(0)] * 2, budget=Budget(1.0), key=KEY, bounds=[BOUNDS] * 3)
    with pytest.raises(OptionError, match="bounds = 3"):
        anm_batch([cubic(0)], budget=Budget(1.0), key=KEY, bounds=3)
    for pairs in (None, 3, [3], [cubic(0)[0]]):
        with pytest.raises(OptionError, match="pairs"):
            anm_batch(pairs, budget=NO_PRIVACY, key=KEY)
    assert anm_batch([], budget=NO_PRIVACY, key=KEY) == ()


def test_numbers_of_every_kind_are_the_same_numbers():
    options = {"budget": Budget(1.0), "key": KEY, "bounds": BOUNDS, "protect": Protect.TEST}
    half, large = (
        [anm(*cubic(0), noise=simulated(), **options, **{name: value}) for value in values]
        for name, values in {
            "test_share": (0.5, np.float32(0.5)),
            "ridge_bandwidth": (2.0**70, 2**70),
        }.items()
    )
    assert half[0].margin == half[1].margin and large[0].margin == large[1].margin


@pytest.mark.parametrize("score", [SpearmanScore, KendallScore])
def test_the_option_of_a_rank_score_is_yes_or_no(score):
    with pytest.raises(OptionError, match="stability_release = .* is not True or False"):
        score(np.zeros(3))
