"""What cannot be private is refused in words, before anything is charged."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.decisions import Noise
from jaxcd.errors import DomainError, JaxcdError, OptionError, PrivacyError, SensitivityError
from jaxcd.privacy import Ledger

LEVELS = (2, 3, 2, 4)
CODES = (np.random.default_rng(0).random((60, 4)) * LEVELS).astype(np.int32)
DOMAIN = jaxcd.Domain({f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(LEVELS)})
DATA = jaxcd.Dataset.from_codes(CODES, domain=DOMAIN)
NUMERIC = jaxcd.Dataset.from_array(
    np.random.default_rng(1).random((60, 3)),
    domain=jaxcd.Domain({name: jaxcd.Numeric(0, 1) for name in "xyz"}),
)
BUDGET = jaxcd.Budget(1.0, 1e-6)
PURE = jaxcd.Budget(1.0)
PRIVATE = (
    jaxcd.NoisyThreshold(),
    jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN),
    jaxcd.SparseVector(),
    jaxcd.SieveAndExamine(),
    jaxcd.LevelwiseGaussian(),
)


@pytest.fixture
def uncharged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any charge fails the test, with an error that pytest.raises does not expect."""

    def charge(self: Ledger, event: object) -> int:
        raise AssertionError("the ledger was charged before the refusal")

    monkeypatch.setattr(Ledger, "charge", charge)


def private(**options):
    defaults = {
        "data": DATA,
        "test": jaxcd.CovarianceNorm(),
        "decider": jaxcd.NoisyThreshold(),
        "budget": BUDGET,
    }
    merged = {**defaults, "key": None, **options}
    return jaxcd.pc(merged.pop("data"), **merged)


@pytest.mark.usefixtures("uncharged")
class TestBeforeAnyCharge:
    def test_threshold_under_a_budget(self):
        for budget in (BUDGET, PURE):
            with pytest.raises(PrivacyError, match="Threshold"):
                private(decider=jaxcd.Threshold(), budget=budget)

    @pytest.mark.parametrize("decider", PRIVATE, ids=str)
    @pytest.mark.parametrize(
        "test", [jaxcd.ChiSquare(), jaxcd.GTest(), jaxcd.FisherZ()], ids=lambda test: test.name
    )
    def test_tests_without_bounded_sensitivity(self, decider, test):
        with pytest.raises(SensitivityError, match=test.name):
            private(test=test, decider=decider)

    @pytest.mark.parametrize("decider", PRIVATE, ids=str)
    def test_inferred_domains(self, decider):
        frame = jaxcd.Dataset.from_array(CODES)
        with pytest.raises(PrivacyError, match="(?i)declar"):
            private(data=frame, decider=decider)

    def test_gaussian_noise_needs_delta(self):
        for decider in (jaxcd.LevelwiseGaussian(), jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN)):
            with pytest.raises(OptionError, match="delta"):
                private(decider=decider, budget=PURE)

    def test_levelwise_needs_the_stable_order(self):
        with pytest.raises(OptionError, match="stable"):
            private(decider=jaxcd.LevelwiseGaussian(), stable=False)

    def test_levelwise_needs_discrete_columns(self):
        with pytest.raises(DomainError):
            private(data=NUMERIC, test=jaxcd.KendallTau(), decider=jaxcd.LevelwiseGaussian())

    @pytest.mark.parametrize(
        "test", [jaxcd.CovarianceNorm(), jaxcd.PooledCovariance()], ids=lambda test: test.name
    )
    @pytest.mark.parametrize("decider", PRIVATE, ids=str)
    def test_discrete_tests_on_numeric_columns(self, decider, test):
        with pytest.raises(DomainError):
            private(data=NUMERIC, test=test, decider=decider)

    @pytest.mark.parametrize("decider", PRIVATE, ids=str)
    def test_oracles_have_no_privacy(self, decider):
        oracle = jaxcd.Oracle(jaxcd.networks.load("cancer").dag)
        with pytest.raises((PrivacyError, OptionError)):
            private(data=None, test=oracle, decider=decider)

    @pytest.mark.parametrize("decider", [jaxcd.SparseVector(), jaxcd.SieveAndExamine()], ids=str)
    def test_the_majority_rule_where_single_questions_have_no_answer(self, decider):
        with pytest.raises(OptionError):
            private(decider=decider, colliders=jaxcd.discovery.ColliderRule.MAJORITY)

    @pytest.mark.parametrize("decider", PRIVATE, ids=str)
    @pytest.mark.parametrize(
        "options",
        [
            {"key": 3},
            {"noise": 5},
            {"max_level": -1},
            {"budget": 1.0},
            {"conflicts": 1},
            {"colliders": "majority"},
        ],
        ids=str,
    )
    def test_malformed_arguments(self, decider, options):
        with pytest.raises(OptionError):
            private(decider=decider, **options)

    @pytest.mark.parametrize("decider", [PRIVATE[0], PRIVATE[2], PRIVATE[3]], ids=str)
    def test_numeric_conditioning_sets_of_kendall(self, decider):
        with pytest.raises(DomainError):
            private(data=NUMERIC, test=jaxcd.KendallTau(), decider=decider)

    def test_single_tests(self):
        options = {"budget": BUDGET, "key": None}
        with pytest.raises(SensitivityError):
            jaxcd.ci_test(DATA, "v0", "v1", test=jaxcd.ChiSquare(), **options)
        with pytest.raises(PrivacyError):
            jaxcd.ci_test(
                jaxcd.Dataset.from_array(CODES), "x1", "x2", test=jaxcd.CovarianceNorm(), **options
            )
        for x, y, given in (
            ("v0", "v0", ()),
            ("v0", "nobody", ()),
            ("v0", "v1", ("v1",)),
            ("v0", "v1", ("v2", "v2")),
        ):
            with pytest.raises(OptionError):
                jaxcd.ci_test(DATA, x, y, given=given, test=jaxcd.CovarianceNorm(), **options)
        with pytest.raises(OptionError, match="alpha"):
            jaxcd.ci_test(DATA, "v0", "v1", test=jaxcd.CovarianceNorm(), alpha=math.nan, **options)

    def test_discover(self):
        with pytest.raises(DomainError, match="delta"):
            jaxcd.discover(NUMERIC, budget=jaxcd.Budget(1.0), key=None)
        with pytest.raises(PrivacyError):
            jaxcd.discover(jaxcd.Dataset.from_array(CODES), budget=BUDGET, key=None)
        with pytest.raises(SensitivityError):
            jaxcd.discover(DATA, budget=BUDGET, key=None, test=jaxcd.GTest())


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "decider",
    [
        jaxcd.Threshold,
        jaxcd.NoisyThreshold,
        jaxcd.SparseVector,
        jaxcd.SieveAndExamine,
        jaxcd.LevelwiseGaussian,
    ],
)
def test_alpha_is_a_probability(decider, alpha):
    with pytest.raises(OptionError, match="alpha"):
        decider(alpha=alpha)


@pytest.mark.parametrize(
    ("decider", "name", "values"),
    [
        (jaxcd.NoisyThreshold, "n_queries", (0, -1, 1.5, math.nan, "3", True)),
        (jaxcd.NoisyThreshold, "noise", ("laplace", 1, None)),
        (jaxcd.SparseVector, "n_rounds", (0, -1, 1.5, math.nan, "3", True)),
        (jaxcd.SieveAndExamine, "n_rounds", (0, -1, 1.5, math.nan, "3", True)),
        (jaxcd.SieveAndExamine, "rate", (0, -0.5, 1.01, math.nan, math.inf)),
        (
            jaxcd.LevelwiseGaussian,
            "level_shares",
            ((), (0.0, 1.0), (-1.0,), (math.nan,), (math.inf,)),
        ),
        (jaxcd.LevelwiseGaussian, "selection_share", (0, 1, -1, math.nan, 1.5)),
        (jaxcd.LevelwiseGaussian, "mean_weight", (0, -1, math.nan, math.inf)),
    ],
)
def test_options_of_deciders(decider, name, values):
    for value in values:
        with pytest.raises(OptionError, match=name):
            decider(**{name: value})


def test_budgets_and_deciders_are_frozen():
    for thing, field in (
        (jaxcd.SparseVector(), "alpha"),
        (BUDGET, "epsilon"),
        (jaxcd.SieveAndExamine(), "rate"),
    ):
        with pytest.raises(AttributeError):
            setattr(thing, field, 1.0)


def test_refusals_are_jaxcd_errors_of_plain_words():
    for call in (
        lambda: private(decider=jaxcd.Threshold()),
        lambda: private(test=jaxcd.ChiSquare()),
        lambda: private(data=jaxcd.Dataset.from_array(CODES)),
    ):
        with pytest.raises(JaxcdError) as caught:
            call()
        assert len(str(caught.value)) > 40 and "\n" not in str(caught.value).strip()


@pytest.mark.parametrize("decider", PRIVATE, ids=str)
def test_allowed_without_privacy_or_refused_in_words(decider):
    """A private decider with NO_PRIVACY either answers without noise, or says that it needs a
    budget.
    """
    try:
        result = private(decider=decider, budget=jaxcd.NO_PRIVACY)
    except JaxcdError:
        return
    assert result.cost.epsilon == math.inf and not result.cost.proven


def test_keys_are_typed():
    private(key=jax.random.key(0))
    with pytest.raises(OptionError, match="key"):
        private(key=jax.random.PRNGKey(0))
