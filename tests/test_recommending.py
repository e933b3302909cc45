"""``jaxcd.recommend``: every rule at its border, from public facts alone; and what ``discover``
makes of it.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.advice.planning import plan_release
from jaxcd.api import Algorithm
from jaxcd.decisions import Threshold
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.releases import Discretised, Features, Histogram, LogLinear, Marginals, SecondMoments
from tests.catalogue import KINDS, KindRow
from tests.helpers import refused, simulated

PURE, BOTH = jaxcd.Budget(1.0), jaxcd.Budget(1.0, 1e-6)
ZCDP, GAUSSIAN = (
    jaxcd.Budget(1.0, 1e-6, accounting=accounting) for accounting in jaxcd.privacy.Accounting
)


def discrete(*levels: int, kind: type = jaxcd.Categorical) -> jaxcd.Domain:
    return jaxcd.Domain(
        {f"x{i}": kind(tuple(f"l{j}" for j in range(k))) for i, k in enumerate(levels)}
    )


def numeric(n_columns: int, **others: jaxcd.Categorical | jaxcd.Ordinal) -> jaxcd.Domain:
    return jaxcd.Domain({**{f"x{i}": jaxcd.Numeric() for i in range(n_columns)}, **others})


@pytest.mark.parametrize(
    ("domain", "budget", "linear", "method", "algorithm"),
    [
        (discrete(*[2] * 12), PURE, False, Histogram().title, Algorithm.RELEASE),  # 4,096 cells
        (discrete(*[2] * 12), BOTH, False, Histogram().title, Algorithm.RELEASE),
        (discrete(*[2] * 13), BOTH, False, Marginals().title, Algorithm.RELEASE),
        (discrete(*[2] * 13), PURE, False, Marginals().title, Algorithm.RELEASE),
        (discrete(*[4] * 13), PURE, False, LogLinear().title, Algorithm.RELEASE),  # more noise
        (discrete(*[4] * 13), BOTH, False, Marginals().title, Algorithm.RELEASE),
        (discrete(*[12] * 13), BOTH, False, LogLinear().title, Algorithm.RELEASE),  # smaller cells
        (discrete(*[2] * 11, 3), BOTH, False, Marginals().title, Algorithm.RELEASE),
        # few cells, but no exact search
        (discrete(2, *[1] * 20), BOTH, False, Marginals().title, Algorithm.RELEASE),
        (discrete(2, 2), jaxcd.NO_PRIVACY, False, Threshold().title, Algorithm.PC),
        (numeric(4), BOTH, False, Features().title, Algorithm.RELEASE),
        (numeric(100), BOTH, False, Features().title, Algorithm.RELEASE),
        (numeric(400), BOTH, False, Discretised().title, Algorithm.RELEASE),
        (numeric(4), BOTH, True, SecondMoments().title, Algorithm.RELEASE),
        (numeric(3, o=jaxcd.Ordinal((1, 2, 3))), BOTH, False, Features().title, Algorithm.RELEASE),
        (numeric(4), jaxcd.NO_PRIVACY, True, Threshold().title, Algorithm.PC),
        (
            numeric(3, c=jaxcd.Categorical(("a", "b"))),
            BOTH,
            False,
            Features().title,
            Algorithm.RELEASE,
        ),
        (
            numeric(3, c=jaxcd.Categorical(("a", "b"))),
            jaxcd.NO_PRIVACY,
            False,
            Features().title,
            Algorithm.RELEASE,
        ),
    ],
)
def test_every_rule(domain, budget, linear, method, algorithm):
    found = jaxcd.recommend(domain, 100_000, budget=budget, linear=linear)
    assert (found.title, found.choice.algorithm) == (method, algorithm)
    assert (
        (found.kind is None)
        == (found.choice.test is not None)
        == (algorithm is not Algorithm.RELEASE)
    )
    assert method not in {other.title for other in found.alternatives}
    assert found.reasons and all(
        reason.endswith(".") and reason[0] != " " for reason in found.reasons
    )
    shown = str(found)
    for part in (method, *found.reasons, *(other.reason for other in found.alternatives)):
        assert part in shown


def test_linear_is_refused_where_it_does_nothing():
    domain = numeric(3, c=jaxcd.Categorical(("a", "b")))
    for budget in (BOTH, jaxcd.NO_PRIVACY):
        with pytest.raises(jaxcd.errors.OptionError, match="'c' has levels; leave it out"):
            jaxcd.recommend(domain, 100_000, budget=budget, linear=True)


@pytest.mark.parametrize(
    ("domain", "budget", "linear", "algorithm", "call"),
    [
        (discrete(2, 3, 2), PURE, False, Algorithm.GFCI, "jaxcd.gfci(jaxcd.release(data, jaxcd.H"),
        (numeric(3), BOTH, True, Algorithm.GFCI, "jaxcd.gfci(jaxcd.release(data, jaxcd.Second"),
        (numeric(3), BOTH, False, Algorithm.GFCI, "jaxcd.gfci(jaxcd.release(data, jaxcd.Feat"),
        (discrete(2, 3), jaxcd.NO_PRIVACY, False, Algorithm.FCI, "jaxcd.fci(data, test=jaxcd.G"),
    ],
)
def test_where_columns_may_be_hidden_the_graph_is_a_pag(domain, budget, linear, algorithm, call):
    found = jaxcd.recommend(domain, 50_000, budget=budget, linear=linear, latent=True)
    assert found.choice.algorithm is algorithm and found.call.startswith(call)
    plain = jaxcd.recommend(domain, 50_000, budget=budget, linear=linear)
    assert found.kind == plain.kind and found.budget == plain.budget
    assert "Columns may be hidden, so that the graph is a PAG." in found.reasons
    assert str(found)


@pytest.mark.parametrize(
    ("domain", "budget", "kind"),
    [
        (discrete(2, 3, 2), PURE, "Histogram"),
        (discrete(*[3] * 10), BOTH, "Marginals"),
        (numeric(2, c=jaxcd.Categorical(("a", "b"))), BOTH, "Features"),
        (numeric(2, c=jaxcd.Categorical(("a", "b"))), jaxcd.NO_PRIVACY, "Features"),
        (discrete(2, 3), jaxcd.NO_PRIVACY, None),
    ],
)
def test_where_columns_may_be_hidden_an_intervention_is_for_fci(domain, budget, kind):
    """A score, with which GFCI begins, reads it as if nothing were hidden."""
    name = next(name for name in domain.names if domain[name].is_discrete)
    domain = jaxcd.Domain(domain.columns, interventions={name: {}})
    found = jaxcd.recommend(domain, 1_000_000, budget=budget, latent=True)
    assert found.choice.algorithm is Algorithm.FCI and "FCI" in found.title
    assert (None if found.kind is None else type(found.kind).__name__) == kind
    if kind is not None:
        assert found.call.startswith(f"jaxcd.search(jaxcd.release(data, jaxcd.{kind}(), ")
        assert found.call.endswith(', algorithm="fci")')
        assert any(repr(name) in reason for reason in found.reasons)
        assert "GFCI" not in found.title and "GFCI" in found.alternatives[-1].title


def test_discover_where_columns_may_be_hidden():
    """Pairs that are forbidden both ways are bought all the same: a hidden cause may join them."""
    data = jaxcd.networks.load("cancer").sample(5_000, key=jax.random.key(0))
    known = jaxcd.Knowledge(forbidden=[("Xray", "Dyspnoea"), ("Dyspnoea", "Xray")])
    options = {"budget": BOTH, "noise": jaxcd.SimulatedNoise(jax.random.key(1)), "latent": True}
    run = jaxcd.discover(data, knowledge=known, **options)
    assert run.info["algorithm"] == "gfci" and "GFCI" in run.info["reasons"][0]
    run = jaxcd.discover(data, max_level=0, **options)
    assert run.info["algorithm"] == "fci" and run.info["reasons"][0].startswith("chosen: FCI")
    with pytest.raises(OptionError, match="takes it that no column is hidden"):
        jaxcd.discover(data, algorithm=Algorithm.PC, **options)
    with pytest.raises(OptionError, match="latent"):
        jaxcd.discover(data, **{**options, "latent": 1})


CALLS = [
    (discrete(2, 3, 2), BOTH, False),
    (discrete(2, 3, 2), dataclasses.replace(GAUSSIAN, max_rows_per_person=2), False),
    (numeric(3), GAUSSIAN, False),
    (discrete(*[3] * 8), BOTH, False),
    (numeric(3), BOTH, False),
    (numeric(3), BOTH, True),
    (discrete(2, 3), jaxcd.NO_PRIVACY, False),
    (numeric(2, c=jaxcd.Categorical((0, 1, 2))), BOTH, False),
    (numeric(2, c=jaxcd.Categorical((0, 1, 2))), jaxcd.NO_PRIVACY, False),
]


@pytest.mark.parametrize(
    ("domain", "budget", "linear"),
    CALLS,
    ids=[
        "histogram",
        "histogram-gaussian",
        "tree-gaussian",
        "marginals",
        "tree",
        "moments",
        "pc",
        "features",
        "features-exact",
    ],
)
def test_the_call_that_is_shown_runs_and_is_what_discover_does(domain, budget, linear):
    found = jaxcd.recommend(domain, 400, budget=budget, linear=linear)
    rng = np.random.default_rng(0)
    if domain.is_discrete:
        data = jaxcd.Dataset.from_codes(
            np.stack([rng.integers(0, k, 400) for k in domain.cardinalities], axis=1), domain=domain
        )
    else:
        columns = [
            rng.normal(size=400) if k is None else rng.integers(0, k, 400)
            for k in domain.cardinalities
        ]
        data = jaxcd.Dataset.from_array(np.stack(columns, axis=1), domain=domain)
    noise = None if budget is jaxcd.NO_PRIVACY else simulated(1)
    call = found.call.replace(", budget=", ", noise=noise, budget=")
    own = {} if found.call.count("accounting=") else {"budget": budget}
    by_hand = eval(call, {"jaxcd": jaxcd, "data": data, "noise": noise, "key": None, **own})
    run = jaxcd.discover(data, budget=budget, key=None, noise=noise, linear=linear)
    assert run.graph == by_hand.graph and run.cost == by_hand.cost
    assert run.info["reasons"] == found.choice.reasons
    assert run.info["reasons"][0] == f"chosen: {found.title}"
    assert {"ledger", "n_samples"} <= run.info.keys()
    if budget is not jaxcd.NO_PRIVACY:
        assert run.info["secure_noise"] is False and run.info["ledger"]
        assert run.spent.epsilon <= budget.epsilon and len(
            {row["index"] for row in run.info["ledger"]}
        ) == len(run.info["ledger"])


@pytest.mark.parametrize(
    ("domain", "linear"),
    [
        (discrete(2, 3, 2), False),
        (discrete(*[3] * 8), False),
        (numeric(3), True),
        (numeric(3), False),
        (numeric(3, c=jaxcd.Categorical((0, 1))), False),
    ],
)
def test_the_warning_goes_where_rows_or_epsilon_grow(domain, linear):
    def warned(n: int, epsilon: float) -> bool:
        return (
            jaxcd.recommend(domain, n, budget=jaxcd.Budget(epsilon, 1e-6), linear=linear).warning
            is not None
        )

    by_rows = [warned(n, 1.0) for n in (20, 200, 2_000, 20_000, 200_000, 2_000_000)]
    between = [
        warned(n, 1.0) for n in np.unique(np.geomspace(100, 20_000, 60).astype(int)).tolist()
    ]
    assert sorted(between, reverse=True) == between
    by_epsilon = [warned(2_000, epsilon) for epsilon in (0.01, 0.1, 1.0, 10.0, 100.0)]
    for warnings in (by_rows, by_epsilon):
        assert warnings[0] and not warnings[-1] and sorted(warnings, reverse=True) == warnings


@pytest.mark.parametrize("n_columns", [60, 200, 2_000])
def test_very_many_cells_are_not_written_out(n_columns: int):
    domain = discrete(*[3] * n_columns)
    words = str(jaxcd.recommend(domain, 1_000, budget=BOTH))
    assert f"{n_columns} columns have about 4.2e28 cells" in words or n_columns > 60
    assert max(map(len, words.split())) < 60
    with pytest.raises(DomainError, match="has about .*e[0-9]+ cells, more than"):
        Histogram().check(domain)


def test_the_rows_of_a_person_share_epsilon():
    """With k rows a person noise is that of epsilon / k, and so is the warning of few rows."""
    domain = discrete(2, 2)
    four = jaxcd.recommend(domain, 2_000, budget=jaxcd.Budget(4.0, max_rows_per_person=4))
    assert "noise of 2.83" in " ".join(four.reasons) and four.warning
    epsilon = float(four.warning.rpartition("= ")[2])
    for share, few in ((1, False), (0.95, True)):
        budget = jaxcd.Budget(share * epsilon, max_rows_per_person=4)
        assert (jaxcd.recommend(domain, 2_000, budget=budget).warning is not None) is few


def test_the_epsilon_that_a_warning_names_is_enough():
    domain = discrete(2, 2, 2)
    warning = jaxcd.recommend(domain, 2_000, budget=PURE).warning
    epsilon = float(warning.rpartition("= ")[2])
    assert jaxcd.recommend(domain, 2_000, budget=jaxcd.Budget(epsilon)).warning is None
    assert jaxcd.recommend(domain, 2_000, budget=jaxcd.Budget(0.95 * epsilon)).warning is not None


@pytest.mark.parametrize(
    ("levels", "fewer"), [([30, 30], [12, 12]), ([30] * 5, [12] * 5), ([20] * 14, [8] * 14)]
)
def test_levels_so_many_that_no_edge_pays_are_warned_of(levels, fewer):
    budget = jaxcd.Budget(16.0, 1e-6)
    warning = jaxcd.recommend(discrete(*levels), 1_500, budget=budget).warning
    assert "too many for 1,500 rows" in warning and "merge levels" in warning
    assert jaxcd.recommend(discrete(*fewer), 1_500, budget=budget).warning is None


def test_what_is_more_than_all_rows_is_not_said_to_be_seen():
    """And small noise is not said to be none."""
    domain, test = discrete(2, 2, 3), jaxcd.CovarianceNorm()
    by_tests = {"test": test, "decider": jaxcd.SparseVector()}
    words = jaxcd.plan(domain, 10, budget=PURE, **by_tests).words
    assert "nothing in 10 rows stands out of it" in words and "are seen" not in words
    assert "sees nothing in so few rows" in str(jaxcd.recommend(domain, 10, budget=BOTH))
    assert "noise of 0 " not in jaxcd.plan(domain, 10, budget=jaxcd.Budget(300.0), **by_tests).words


def test_noise_of_more_than_all_rows_hides_all_of_them():
    columns = {f"v{i}": jaxcd.Numeric(0, 1) for i in range(12)}
    found = jaxcd.recommend(jaxcd.Domain(columns), 10_000, budget=jaxcd.Budget(1e-4, 1e-6))
    assert "hides all rows" in found.warning


@pytest.mark.parametrize("budget", [PURE, BOTH, jaxcd.Budget(1e9)])
def test_a_domain_of_one_column_is_refused_as_its_data_would_be(budget):
    domain, message = discrete(3), "its one column, 'x0', cannot be joined"
    by_tests = {"test": jaxcd.CovarianceNorm(), "decider": jaxcd.SparseVector()}
    refused(DomainError, message, jaxcd.recommend, domain, 100, budget=budget)
    refused(DomainError, message, jaxcd.plan, domain, 100, budget=budget, **by_tests)
    refused(DomainError, message, plan_release, domain, 100, kind=Histogram(), budget=budget)
    refused(DomainError, message, jaxcd.recommend, domain, 100, budget=jaxcd.NO_PRIVACY)


def test_one_column_of_many_levels_and_constant_ones_are_not_warned_of():
    assert jaxcd.recommend(discrete(*[2] * 9, 60), 20_000, budget=BOTH).warning is None
    assert jaxcd.recommend(discrete(1, 1, 40), 20_000, budget=BOTH).warning is None


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=16),
    st.integers(1, 10**6),
    st.floats(0.01, 20),
    st.sampled_from([0.0, 1e-6]),
)
def test_every_discrete_domain_gets_a_method_that_takes_it(levels, n, epsilon, delta):
    domain, budget = discrete(*levels), jaxcd.Budget(epsilon, delta)
    found = jaxcd.recommend(domain, n, budget=budget)
    assert (found.title == Histogram().title) == (math.prod(levels) <= 4_096)
    if found.kind is not None:
        assert 0 < plan_release(domain, n, kind=found.kind, budget=budget).noise < math.inf


def test_what_is_refused():
    domain = discrete(2, 2)
    for wrong in (
        {"domain": {"a": 2}},
        {"n_samples": 0},
        {"n_samples": 10.0},
        {"budget": 1.0},
        {"linear": 1},
    ):
        arguments = {"domain": domain, "n_samples": 100, "budget": BOTH, **wrong}
        with pytest.raises(OptionError, match="give|declare|use|say"):
            jaxcd.recommend(arguments.pop("domain"), arguments.pop("n_samples"), **arguments)
    mixed = numeric(2, c=jaxcd.Categorical(("a", "b")))
    with pytest.raises(
        DomainError, match="'c' is categorical while others are numeric.*Features.*delta > 0"
    ):
        jaxcd.recommend(mixed, 100, budget=PURE)
    for linear in (False, True):
        refused(
            DomainError,
            "delta above 0",
            jaxcd.recommend,
            numeric(3),
            100,
            budget=PURE,
            linear=linear,
        )


@pytest.mark.parametrize(
    ("domain", "budget", "linear"),
    [
        (discrete(*[2] * 14), BOTH, False),
        (discrete(*[4] * 13), PURE, False),
        (discrete(*[12] * 13), BOTH, False),
        (numeric(3), BOTH, True),
        (numeric(90), BOTH, True),
        (numeric(150), BOTH, False),
    ],
)
def test_the_noise_that_is_named_is_that_of_what_is_bought(domain, budget, linear):
    found = jaxcd.recommend(domain, 10_000, budget=budget, linear=linear)
    planned = jaxcd.plan_release(domain, 10_000, kind=found.kind, budget=budget)
    named = [reason for reason in found.reasons if " has noise of " in reason]
    assert named == [planned.words]


def test_quantiles_are_advised_where_features_hide_much():
    """benchmarks.mixed, 10 columns at epsilon 1: bins are ahead at 1,000 rows, not at 3,000."""
    mixed = numeric(5, **{name: jaxcd.Categorical((0, 1, 2)) for name in "uvwxy"})
    few, many = (jaxcd.recommend(mixed, n, budget=BOTH) for n in (1_000, 3_000))
    assert few.kind == Discretised() and many.kind == Features()
    assert "hides what is below" in few.warning and many.warning is None


def test_many_mixed_columns_go_into_tables_of_quantiles():
    def found(n_columns, n):
        columns = {f"c{i}": jaxcd.Categorical((0, 1, 2)) for i in range(n_columns // 2)}
        return jaxcd.recommend(numeric(n_columns // 2, **columns), n, budget=BOTH)

    assert found(300, 20_000).kind == Discretised() and found(300, 20_000).warning is None
    assert found(300, 300).kind == Discretised()  # fewer rows than features
    assert "can measure" in found(300, 300).warning
    assert found(20, 100_000).kind == Features()


def test_few_pairs_that_can_be_chosen_are_warned_of():
    wide = discrete(*[3] * 300)
    assert "can measure" in jaxcd.recommend(wide, 2_000, budget=BOTH).warning
    assert jaxcd.recommend(wide, 100_000, budget=BOTH).warning is None


def test_mixed_columns_have_confidence_and_no_tests(monkeypatch):
    domain = numeric(2, c=jaxcd.Categorical((0, 1)))
    data = jaxcd.Dataset.from_array(
        np.tile([[0.5, 1.5, 0.0], [1.0, 0.0, 1.0]], (50, 1)), domain=domain
    )
    run = jaxcd.discover(data, budget=BOTH, key=None, n_confidence_draws=2, noise=simulated())
    assert run.confidence.n_draws == 2
    monkeypatch.setattr(jaxcd.privacy.Ledger, "charge", lambda *_: pytest.fail("charged"))
    for options in ({"test": jaxcd.StratifiedRanks()}, {"algorithm": Algorithm.FCI}):
        with pytest.raises(DomainError, match="categor|nominal"):
            jaxcd.discover(data, budget=BOTH, key=jax.random.key(0), **options)


def test_fewer_rows_than_features_are_refused_at_once():
    domain = numeric(3, c=jaxcd.Categorical(tuple(range(40))))
    with pytest.raises(
        DataError, match="30 rows for 45 features; give at least 47 rows, or fewer columns$"
    ):
        Features().check(domain, 30)
    for too_few in (45, 46):
        with pytest.raises(DataError, match=f"{too_few} rows for 45 features; give at least 47"):
            Features().check(domain, too_few)
    Features().check(domain, 47)
    assert jaxcd.recommend(domain, 30, budget=BOTH).kind == Discretised()


class TestPlanOfRelease:
    """Noise that the planner states, against the noise of releases."""

    @pytest.mark.parametrize(
        "budget",
        [BOTH, GAUSSIAN, jaxcd.Budget(0.5, 1e-6), jaxcd.Budget(1.0, max_rows_per_person=10)],
    )
    def test_histogram(self, budget):
        domain = discrete(*[2] * 10)
        data = jaxcd.Dataset.from_codes(np.zeros((100, 10), dtype=np.int32), domain=domain)
        bought = jaxcd.release(data, jaxcd.Histogram(), budget=budget, noise=simulated())
        planned = plan_release(domain, 100, kind=jaxcd.Histogram(), budget=budget)
        empty = bought.values.ravel()[1:].astype(float)
        # 1,023 cells, kurtosis of Laplace noise 6: the standard deviation is known to 3.5 %
        np.testing.assert_allclose(np.sqrt(np.mean(empty**2)), planned.noise, rtol=0.14)
        assert planned.smallest_share == pytest.approx(3 * planned.noise / 100)

    @pytest.mark.parametrize("row", KINDS, ids=lambda row: type(row.kind).__name__)
    def test_noise_grows_with_the_rows_of_a_person(self, row: KindRow):
        """k rows share what a budget buys; what rounding adds does not grow."""
        domain = row.data(500).domain
        one, four = (
            plan_release(domain, 500, kind=row.kind, budget=budget).noise
            for budget in (jaxcd.Budget(8.0, 1e-6), jaxcd.Budget(8.0, 1e-6, max_rows_per_person=4))
        )
        assert four > 3 * one

    @pytest.mark.parametrize("kind", [jaxcd.Marginals(), jaxcd.LogLinear()])
    @pytest.mark.parametrize("budget", [PURE, BOTH, GAUSSIAN], ids=["laplace", "zcdp", "gaussian"])
    def test_tables(self, budget, kind):
        domain = discrete(*[2, 3, 4] * 3)
        data = jaxcd.Dataset.from_codes(np.zeros((100, 9), dtype=np.int32), domain=domain)
        bought = jaxcd.release(data, kind, budget=budget, noise=simulated())
        planned = plan_release(domain, 100, kind=kind, budget=budget)
        # later rounds can only sharpen what the first one released
        assert max(v for s, v in bought.variances.items() if len(s) == 2) == pytest.approx(
            planned.noise**2, rel=1e-3
        )

    @pytest.mark.parametrize("budget", [BOTH, GAUSSIAN])
    def test_second_moments(self, budget):
        rng = np.random.default_rng(0)
        data = jaxcd.Dataset.from_array(rng.normal(size=(20_000, 4)), domain=numeric(4))
        kind = jaxcd.SecondMoments(
            centres={f"x{i}": 0.0 for i in range(4)}, scales={f"x{i}": 1.0 for i in range(4)}
        )
        bought = jaxcd.release(data, kind, budget=budget, noise=simulated())
        planned = plan_release(data.domain, 20_000, kind=kind, budget=budget)
        # sampling alone costs 1 / n or a little more; the rest of the variance is the noise
        assert (planned.noise / 20_000) ** 2 == pytest.approx(
            1 / bought.effective_samples - 1 / 20_000, rel=0.4
        )

    @pytest.mark.parametrize("budget", [BOTH, GAUSSIAN])
    @pytest.mark.parametrize("n", [500, 20_000])
    def test_features(self, n, budget):
        rng = np.random.default_rng(0)
        data = jaxcd.Dataset.from_array(rng.normal(size=(n, 4)), domain=numeric(4))
        bought = jaxcd.release(data, jaxcd.Features(), budget=budget, noise=simulated())
        planned = plan_release(data.domain, n, kind=jaxcd.Features(), budget=budget)
        # features of length one: a correlation is r covariances
        assert planned.noise == pytest.approx(bought.sigma * bought.sizes[0], rel=1e-9)
        refused(
            OptionError, "delta", plan_release, data.domain, n, kind=jaxcd.Features(), budget=PURE
        )

    @pytest.mark.parametrize(
        ("kind", "domain"),
        [
            (jaxcd.Marginals(), discrete(2, 3, 4)),
            (jaxcd.LogLinear(), discrete(2, 3, 4)),
            (jaxcd.SecondMoments(), numeric(4)),
            (jaxcd.Features(n_features=2), numeric(4)),
        ],
    )
    def test_gaussian_accounting_has_less_noise(self, kind, domain):
        zcdp, gaussian = (
            plan_release(domain, 1_000, kind=kind, budget=budget).noise
            for budget in (ZCDP, GAUSSIAN)
        )
        assert plan_release(domain, 1_000, kind=kind, budget=BOTH).noise == gaussian
        assert (zcdp / gaussian) ** 2 == pytest.approx(1.150, abs=2e-3)

    def test_words_where_noise_is_all(self):
        small, large = (
            plan_release(numeric(4), n, kind=jaxcd.Features(), budget=BOTH).words
            for n in (20, 100_000)
        )
        assert "nothing in 20 rows stands out" in small and "of the 100,000 rows is noise" in large
        assert "nothing" not in large

    def test_what_is_refused(self):
        with pytest.raises(OptionError, match="no kind of release"):
            plan_release(discrete(2, 2), 100, kind="histogram", budget=BOTH)
        with pytest.raises(DomainError, match="numeric"):
            plan_release(numeric(2), 100, kind=jaxcd.Marginals(), budget=BOTH)
        with pytest.raises(OptionError, match="delta"):
            plan_release(numeric(2), 100, kind=jaxcd.SecondMoments(), budget=PURE)


@pytest.mark.parametrize("linear", [True, False])
def test_many_numeric_columns_are_bought_by_the_signs_of_chosen_pairs(linear):
    """And few are not; where too few pairs can be chosen it warns."""
    budget = jaxcd.Budget(1.0, 1e-6)

    def found(p: int, n: int):
        domain = jaxcd.Domain({f"x{j}": jaxcd.Numeric(-5, 5) for j in range(p)})
        return jaxcd.recommend(domain, n, budget=budget, linear=linear)

    chosen = jaxcd.Tetrachoric() if linear else jaxcd.Discretised()
    assert found(200, 20_000).kind == chosen and found(200, 20_000).warning is None
    warning = found(200, 1_000).warning or ""
    assert "of 19,900 pairs of columns; with fewer than 120 expect" in warning
    assert found(4, 20_000).kind != jaxcd.Tetrachoric()
    assert (found(20, 20_000).kind == jaxcd.SecondMoments()) == linear


@pytest.mark.parametrize("n_samples", [50_000, 500])
def test_columns_without_bounds_are_told_what_counts_as_equal(n_samples: int) -> None:
    """Of numbers such as 1e5 + e nothing was found, and nothing was said."""
    budget = jaxcd.Budget(1.0, 1e-6)
    columns = {f"x{i}": jaxcd.Numeric(missing=True) for i in range(5)}
    columns["height"] = jaxcd.Numeric(0, 3, missing=True)
    advice = jaxcd.recommend(jaxcd.Domain(columns), n_samples, budget=budget)
    kind = advice.kind
    assert isinstance(kind, jaxcd.Features if n_samples > 1_000 else jaxcd.Discretised)
    (said,) = (reason for reason in advice.reasons if "No bounds" in reason)
    assert "'x0', 'x1', 'x2' and 2 more" in said and f"{kind.step:.2g} near 0" in said
    bounded = {name: jaxcd.Numeric(0, 3, missing=True) for name in columns}
    advice = jaxcd.recommend(jaxcd.Domain(bounded), n_samples, budget=budget)
    assert not any("No bounds" in reason for reason in advice.reasons)


@pytest.mark.parametrize(("n_columns", "kind"), [(6, SecondMoments), (200, jaxcd.Tetrachoric)])
def test_linear_columns_without_bounds_are_told_too(n_columns: int, kind: type) -> None:
    """Numbers such as 1e9 e, or 1e4 + e, were lost by a private release, and nothing was said."""
    budget, words = jaxcd.Budget(1.0, 1e-6), "No bounds are declared of 'x0', 'x1', 'x2' and "
    advice = jaxcd.recommend(numeric(n_columns), 20_000, budget=budget, linear=True)
    (said,) = (reason for reason in advice.reasons if words in reason)
    assert isinstance(advice.kind, kind) and "beyond 4.4 million" in said
    bounded = jaxcd.Domain({f"x{i}": jaxcd.Numeric(-1, 1) for i in range(n_columns)})
    advice = jaxcd.recommend(bounded, 20_000, budget=budget, linear=True)
    assert isinstance(advice.kind, kind)
    assert not any("No bounds" in reason for reason in advice.reasons)


def test_fewer_rows_than_features_are_searched_without_privacy() -> None:
    columns = {"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Numeric(), "c": jaxcd.Numeric()}
    rows = [[i % 2, i, -i] for i in range(4)]
    data = jaxcd.Dataset.from_array(rows, domain=jaxcd.Domain(columns))
    assert isinstance(
        jaxcd.recommend(data.domain, 4, budget=jaxcd.NO_PRIVACY).kind, jaxcd.Discretised
    )
    assert set(jaxcd.discover(data, budget=jaxcd.NO_PRIVACY).graph.names) == set(columns)
