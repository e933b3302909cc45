"""What cannot be private is refused in words, before anything is charged."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.errors import DomainError, JaxcdError, OptionError, PrivacyError, SensitivityError
from jaxcd.privacy import Ledger
from tests.catalogue import (
    DECIDERS,
    EACH_MARGIN_TEST,
    EACH_PRIVATE_DECIDER,
    FREE_TESTS,
    DeciderRow,
    discrete,
)
from tests.helpers import coded, levelled, numbers, refused

LEVELS = (2, 3, 2, 4)
CODES = (np.random.default_rng(0).random((60, 4)) * LEVELS).astype(np.int32)
DOMAIN = levelled(*LEVELS)
DATA = coded(CODES, DOMAIN)
NUMERIC = jaxcd.Dataset.from_array(
    np.random.default_rng(1).random((60, 3)), domain=numbers("xyz", 0, 1)
)
KEY = jax.random.key(0)
BUDGET = jaxcd.Budget(1.0, 1e-6)
PURE = jaxcd.Budget(1.0)


@pytest.fixture
def uncharged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any charge fails the test, with an error that pytest.raises does not expect."""

    def charge(self: Ledger, event: object) -> int:
        raise AssertionError("the ledger was charged before the refusal")

    monkeypatch.setattr(Ledger, "charge", charge)


def private(row: DeciderRow = DECIDERS[4], **options):
    defaults = {"data": row.data(), "test": row.test, "decider": row.decider, "budget": BUDGET}
    merged = {**defaults, "key": KEY, **options}
    return jaxcd.pc(merged.pop("data"), **merged)


def first_of(error: type[Exception], row: DeciderRow) -> tuple[type[Exception], ...]:
    """The noisy rank may say first that the test has no permutation null."""
    return (error,) if row.data is discrete else (error, OptionError)


@pytest.mark.usefixtures("uncharged")
class TestBeforeAnyCharge:
    def test_threshold_under_a_budget(self):
        for budget in (BUDGET, PURE):
            refused(PrivacyError, "Threshold", private, decider=jaxcd.Threshold(), budget=budget)

    @EACH_PRIVATE_DECIDER
    @pytest.mark.parametrize("test", FREE_TESTS, ids=lambda test: test.name)
    def test_tests_without_bounded_sensitivity(self, row: DeciderRow, test):
        level = 0 if isinstance(test, jaxcd.HSIC) else None
        with pytest.raises(first_of(SensitivityError, row), match=test.name):
            private(test=test, decider=row.decider, max_level=level)

    @EACH_PRIVATE_DECIDER
    def test_inferred_domains(self, row: DeciderRow):
        frame = jaxcd.Dataset.from_array(CODES)
        refused(PrivacyError, "(?i)declar", private, data=frame, test=row.test, decider=row.decider)

    @EACH_PRIVATE_DECIDER
    def test_gaussian_noise_needs_delta(self, row: DeciderRow):
        if not getattr(row.decider, "decider", row.decider).needs_delta:
            pytest.raises(AssertionError, private, row, budget=PURE)  # charged: it is accepted
            return
        refused(OptionError, "delta", private, row, budget=PURE)

    @EACH_PRIVATE_DECIDER
    def test_the_stable_order_where_a_whole_level_is_answered_at_once(self, row: DeciderRow):
        if not row.decider.needs_stable:
            pytest.raises(AssertionError, private, row, stable=False)
            return
        refused(OptionError, "stable", private, row, stable=False)

    @EACH_MARGIN_TEST
    @EACH_PRIVATE_DECIDER
    def test_discrete_tests_on_numeric_columns(self, row: DeciderRow, test):
        pytest.raises(
            first_of(DomainError, row), private, data=NUMERIC, test=test, decider=row.decider
        )

    @EACH_PRIVATE_DECIDER
    def test_oracles_have_no_privacy(self, row: DeciderRow):
        oracle = jaxcd.Oracle(jaxcd.networks.load("cancer").dag)
        pytest.raises(
            (PrivacyError, OptionError), private, data=None, test=oracle, decider=row.decider
        )

    @EACH_PRIVATE_DECIDER
    def test_the_majority_rule_where_single_questions_have_no_answer(self, row: DeciderRow):
        majority = jaxcd.discovery.ColliderRule.MAJORITY
        if row.decider.answers_queries:
            pytest.raises(AssertionError, private, row, colliders=majority)
            return
        refused(OptionError, "colliders", private, row, colliders=majority)

    @EACH_PRIVATE_DECIDER
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
    def test_malformed_arguments(self, row: DeciderRow, options):
        pytest.raises(OptionError, private, row, **options)

    def test_single_tests(self):
        options = {"budget": BUDGET, "key": None}
        pytest.raises(
            SensitivityError, jaxcd.ci_test, DATA, "v0", "v1", test=jaxcd.ChiSquare(), **options
        )
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
        refused(DomainError, "delta", jaxcd.discover, NUMERIC, budget=jaxcd.Budget(1.0), key=None)
        pytest.raises(
            PrivacyError, jaxcd.discover, jaxcd.Dataset.from_array(CODES), budget=BUDGET, key=None
        )
        pytest.raises(
            SensitivityError, jaxcd.discover, DATA, budget=BUDGET, key=None, test=jaxcd.GTest()
        )


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "decider", {type(row.decider): 0 for row in DECIDERS if not hasattr(row.decider, "decider")}
)
def test_alpha_is_a_probability(decider, alpha):
    refused(OptionError, "alpha", decider, alpha=alpha)


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
        (jaxcd.ExponentialSelect, "n_questions", (0, -1, 1.5, math.nan, "3", True)),
        (jaxcd.ExponentialSelect, "keep_prior", (0.0, 1.0, -0.1, math.nan, math.inf, "1")),
        (jaxcd.NoisyRank, "n_queries", (0, -1, 1.5, math.nan, "3", True)),
    ],
)
def test_options_of_deciders(decider, name, values):
    for value in values:
        refused(OptionError, name, decider, **{name: value})


def test_budgets_and_deciders_are_frozen():
    for thing, field in (
        (jaxcd.SparseVector(), "alpha"),
        (BUDGET, "epsilon"),
        (jaxcd.SieveAndExamine(), "rate"),
    ):
        pytest.raises(AttributeError, setattr, thing, field, 1.0)


def test_refusals_are_jaxcd_errors_of_plain_words():
    for call in (
        lambda: private(decider=jaxcd.Threshold()),
        lambda: private(test=jaxcd.ChiSquare()),
        lambda: private(data=jaxcd.Dataset.from_array(CODES)),
    ):
        with pytest.raises(JaxcdError) as caught:
            call()
        assert len(str(caught.value)) > 40 and "\n" not in str(caught.value).strip()


@EACH_PRIVATE_DECIDER
def test_allowed_without_privacy_or_refused_in_words(row: DeciderRow):
    """A private decider with NO_PRIVACY either answers without noise, or says that it needs a
    budget.
    """
    try:
        result = private(row, budget=jaxcd.NO_PRIVACY)
    except JaxcdError:
        return
    assert result.cost.epsilon == math.inf and not result.cost.proven


def test_keys_are_typed():
    private(key=jax.random.key(0))
    refused(OptionError, "key", private, key=jax.random.PRNGKey(0))
