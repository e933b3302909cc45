"""Tests and searches on releases: equal to those on data without noise, calibrated with it, and at
no further cost.
"""

from __future__ import annotations

import itertools
import math
import pickle
import re

import jax
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import CITest, Query
from jaxcd.citests.chi_square import chi_square_of_counts
from jaxcd.errors import OptionError
from jaxcd.queries import Door, Session
from jaxcd.releases import Release, ReleasedHistogram, ReleasedMarginals
from jaxcd.releases.tables.noisy_strata import (
    NoisyStrata,
    fit_independence,
    histogram_strata,
    marginal_strata,
)
from jaxcd.releases.tables.noisy_table_tests import _chi_square, noisy_chi_square, noisy_kendall
from tests.catalogue import EACH_PRIVATE_DECIDER, TESTS
from tests.helpers import coded, levelled, numbers, refused, sampled, simulated

FREE = jaxcd.NO_PRIVACY
TABLE_TESTS = [jaxcd.ChiSquare(), jaxcd.GTest(), jaxcd.KendallTau()]
NAMED = {"ids": lambda test: test.name}


def answers(
    data: jaxcd.Dataset | Release, test: CITest, queries: list[Query]
) -> tuple[np.ndarray, np.ndarray]:
    found = Session(Door(data, FREE), test, alpha=0.05).evaluate(queries)
    return found.statistic, found.log_pvalue


def every_query(d: int) -> list[Query]:
    pairs = itertools.combinations(range(d), 2)
    return [
        Query.of(x, y, given)
        for x, y in pairs
        for size in range(d - 1)
        for given in itertools.combinations([v for v in range(d) if v not in (x, y)], size)
    ]


class TestWithoutNoise:
    @pytest.mark.parametrize("seed", range(4))
    def test_they_are_the_ordinary_tests(self, seed: int):
        """Also with empty strata and levels that do not occur."""
        rng = np.random.default_rng(seed)
        levels = (2, 3, 2, 4)
        data = coded(
            np.column_stack(
                [rng.choice(k, size=60, p=rng.dirichlet(np.full(k, 0.5))) for k in levels]
            ),
            *levels,
        )
        release = jaxcd.release(data, jaxcd.Histogram(), budget=FREE)
        for test in TABLE_TESTS:
            for ours, theirs in zip(
                answers(release, test, every_query(4)),
                answers(data, test, every_query(4)),
                strict=True,
            ):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("epsilon", [None, 1e6, 1e3])
    @pytest.mark.parametrize("n", [300, 2_000, 20_000])
    def test_empty_margins_have_no_degrees_of_freedom(self, n: int, epsilon: float | None):
        """Tables that are put together from interactions have rounding errors, and little noise,
        where rows have no records.
        """
        rng = np.random.default_rng(n)
        z = rng.integers(3, size=n)
        # each level of z lacks a level of x, and one of y
        x, y = ((z + rng.integers(1, 3, size=n)) % 3 for _ in range(2))
        for order in itertools.permutations(range(3)):
            data = coded(np.column_stack([np.array(order)[x], y, z]), 3, 3, 3)
            budget = FREE if epsilon is None else jaxcd.Budget(epsilon, 1e-6)
            noise = None if epsilon is None else simulated()
            kind = jaxcd.Marginals(max_cells=0.9)
            bought = jaxcd.release(data, kind, budget=budget, noise=noise)
            for test in (jaxcd.ChiSquare(), jaxcd.GTest()):
                found, ordinary = (
                    answers(at, test, [Query.of(0, 1, (2,))]) for at in (bought, data)
                )
                tolerance = 1e-6 if epsilon is None else 0.2
                np.testing.assert_allclose(found, ordinary, atol=tolerance)

    def test_counts_without_noise_are_answered_as_rows(self):
        """With few rows a stratum the usual law is not that of the test of rows."""
        rng = np.random.default_rng(0)
        codes = np.column_stack([rng.integers(k, size=400) for k in (3, 3, 40)])
        codes[rng.random((400, 3)) < 0.4] = 0
        data = coded(codes, 3, 3, 40)
        bought = jaxcd.release(data, jaxcd.Histogram(), budget=FREE)
        for given in (), (2,):
            found, ordinary = (
                answers(at, jaxcd.ChiSquare(), [Query.of(0, 1, given)]) for at in (bought, data)
            )
            np.testing.assert_allclose(found, ordinary, rtol=1e-9)

    def test_whole_tables_of_little_noise_are_answered_as_counts(self):
        """Negative ones as 0; tables of more noise, of correlated noise or of fractions are not."""
        rng = np.random.default_rng(0)
        tables = rng.poisson(1.0, (1, 20, 3, 3)).astype(np.float64)
        tables[0, 0, 0, 0] = -1

        def answered(tables: np.ndarray, u: float, covariance: np.ndarray | None = None) -> float:
            strata = NoisyStrata(tables, np.array([u]), covariance)
            return float(_chi_square(strata)[1][0])

        counted = float(chi_square_of_counts(np.maximum(tables, 0))[1][0])
        assert answered(tables, 0.125) == counted
        for other in (
            answered(tables, 0.13),
            answered(tables + 0.25, 0.1),
            answered(tables, 0.1, 0.1 * np.eye(tables.size)[None]),
        ):
            assert not math.isclose(other, counted, rel_tol=0.01)

    def test_pearson_by_scipy(self):
        table = np.random.default_rng(0).integers(5, 50, (1, 3, 4)).astype(float)
        for deviance, name in ((False, "pearson"), (True, "log-likelihood")):
            statistic, dof = noisy_chi_square(NoisyStrata(table, np.array(0.0)), deviance=deviance)
            expected = stats.chi2_contingency(table[0], correction=False, lambda_=name)
            assert statistic == pytest.approx(
                expected.statistic, rel=1e-7
            ) and dof == pytest.approx(expected.dof, rel=1e-7)

    @pytest.mark.parametrize("test", TABLE_TESTS, **NAMED)
    def test_little_noise_changes_little(self, test: CITest):
        data = sampled("cancer", 50_000)
        release = jaxcd.release(
            data, jaxcd.Histogram(), budget=jaxcd.Budget(1000.0), noise=simulated()
        )
        queries = [q for q in every_query(5) if len(q.given) <= 1]
        (ours, _), (theirs, _) = answers(release, test, queries), answers(data, test, queries)
        assert np.abs(ours - theirs).max() < 0.02 * (1 + np.abs(theirs).max())

    @pytest.mark.parametrize("search", [jaxcd.pc, jaxcd.fci], ids=["pc", "fci"])
    def test_searches_find_what_they_find_on_the_data(self, search):
        data = sampled("cancer", 20_000)
        knowledge = jaxcd.Knowledge(
            tiers=[("Pollution", "Smoker"), ("Cancer",), ("Xray", "Dyspnoea")]
        )
        release = jaxcd.release(data, jaxcd.Histogram(), budget=FREE)
        options = {
            "test": jaxcd.ChiSquare(),
            "decider": jaxcd.Threshold(0.01),
            "key": None,
            "knowledge": knowledge,
            "colliders": jaxcd.discovery.ColliderRule.MAJORITY,
        }
        on_data, on_release = search(data, budget=FREE, **options), search(release, **options)
        assert on_release.graph == on_data.graph
        assert on_release.separating_sets == on_data.separating_sets


class TestStrata:
    def test_of_a_histogram(self):
        rng = np.random.default_rng(0)
        values = rng.integers(-5, 50, (2, 3, 4, 2))
        release = _histogram(values, scale=3.0)
        strata = histogram_strata(release, Query.of(3, 1, (2,)))
        assert np.array_equal(strata.tables, values.sum(axis=0).transpose(1, 0, 2))
        assert strata.variance == pytest.approx(2 * release.variance) and strata.covariance is None

    def test_of_marginals(self):
        """Tables of exact interactions are the counts; noise on them has the covariance that is
        stated.
        """
        release = _marginals(simulated(), jaxcd.Budget(1.0, 1e-6))
        query = Query.of(0, 2, (1,))
        strata = marginal_strata(release, query)
        assert np.allclose(strata.tables, release.table((0, 1, 2)).transpose(1, 0, 2))
        rng = np.random.default_rng(0)
        draws = []
        for _ in range(3000):
            noisy = {
                s: rng.normal(size=part.shape) * math.sqrt(release.variances[s])
                for s, part in release.interactions.items()
            }
            table = ReleasedMarginals(
                release.domain,
                1,
                noisy,
                release.variances,
                release.candidates,
                release.cost,
                release.spent,
            ).table((0, 1, 2))
            draws.append(table.transpose(1, 0, 2).ravel())
        found = np.cov(np.array(draws).T)
        assert np.diag(strata.covariance) == pytest.approx(float(strata.variance))
        assert np.abs(found - strata.covariance).max() < 0.12 * strata.variance

    def test_the_fit_without_noise_is_the_product_of_the_margins(self):
        table = np.random.default_rng(0).integers(0, 9, (5, 3, 4)).astype(float)
        table[2], table[3, :, 1] = 0.0, 0.0
        fitted = fit_independence(NoisyStrata(table, np.array(0.0))).expected
        margins = (
            table.sum(2)[:, :, None]
            * table.sum(1)[:, None, :]
            / np.maximum(table.sum((1, 2)), 1)[:, None, None]
        )
        np.testing.assert_allclose(fitted, margins, atol=1e-9)

    @pytest.mark.parametrize("value", [0.0, -7.0, 1e12, -1e12])
    @pytest.mark.parametrize("variance", [0.0, 5.0, 1e9])
    def test_statistics_are_total(self, value: float, variance: float):
        table = np.full((2, 2, 3), value)
        table[0, 0, 0] += 1
        for strata in (
            NoisyStrata(table, np.array(variance)),
            NoisyStrata(table, np.array(variance), variance * np.eye(12)),
        ):
            numbers = [
                *noisy_chi_square(strata, deviance=False),
                *noisy_chi_square(strata, deviance=True),
                noisy_kendall(strata),
            ]
            assert np.isfinite(numbers).all()

    def test_correlated_and_uncorrelated_noise_agree(self):
        table = np.random.default_rng(0).normal(20, 9, (3, 3, 2))
        plain, dense = (
            NoisyStrata(table, np.array(40.0)),
            NoisyStrata(table, np.array(40.0), 40.0 * np.eye(18)),
        )
        assert noisy_chi_square(plain, deviance=True) == pytest.approx(
            noisy_chi_square(dense, deviance=True)
        )
        assert noisy_kendall(plain) == pytest.approx(noisy_kendall(dense))


def _histogram(values: np.ndarray, *, scale: float, n: int = 1000) -> ReleasedHistogram:
    domain = levelled(*(values.shape))
    cost = jaxcd.privacy.PrivacyCost(
        2 / scale if scale else math.inf,
        0.0,
        jaxcd.privacy.Relation.REPLACE_ONE,
        False,
        "made for a test",
    )
    return ReleasedHistogram(domain, n, values, scale, cost, cost)


def _marginals(noise: jaxcd.SimulatedNoise, budget: jaxcd.Budget | None) -> ReleasedMarginals:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, 20_000)
    y = (x + (rng.random(20_000) < 0.2)) % 3
    z = (y + (rng.random(20_000) < 0.3)) % 2
    data = coded(np.column_stack([x, y, z, rng.integers(0, 2, 20_000)]), 2, 3, 2, 2)
    return jaxcd.release(
        data, jaxcd.Marginals(), budget=FREE if budget is None else budget, noise=noise
    )


SKEWED = {2: (0.9, 0.1), 3: (0.8, 0.1, 0.1)}
EVEN = {2: (0.5, 0.5), 3: (0.4, 0.35, 0.25)}


def _rejections(
    n: int,
    epsilon: float,
    n_given: int,
    levels: int,
    shares: dict,
    *,
    runs: int,
    seed: int,
    dependence: float = 0.0,
) -> tuple[np.ndarray, float]:
    """How often chi-square, G and Kendall, and chi-square without the noise in its null, reject at
    .05: x and y given Z, in a histogram.
    """
    rng = np.random.default_rng(seed)
    p = np.array(shares[levels])
    joint = np.outer(p, p)
    joint[[0, 1, 0, 1], [0, 1, 1, 0]] += dependence * np.array([1, 1, -1, -1])
    for _ in range(n_given):
        joint = np.multiply.outer(joint, p)
    counts = rng.multinomial(n, joint.ravel(), size=runs).reshape(runs, *joint.shape)
    scale = 0.0 if math.isinf(epsilon) else 2 / epsilon
    if scale:
        draws = rng.geometric(1 - math.exp(-1 / scale), (2, *counts.shape))
        counts = counts + draws[0] - draws[1]
    query = Query.of(0, 1, range(2, 2 + n_given))
    strata = NoisyStrata.stack(
        [histogram_strata(_histogram(part, scale=scale, n=n), query) for part in counts]
    )
    unaware = NoisyStrata(np.maximum(strata.tables, 0), np.zeros(runs))
    pvalues = [
        stats.chi2.sf(*noisy_chi_square(strata, deviance=deviance)) for deviance in (False, True)
    ]
    pvalues += [
        2 * stats.norm.sf(np.abs(noisy_kendall(strata))),
        stats.chi2.sf(*noisy_chi_square(unaware, deviance=False)),
    ]
    rates = [float(np.mean(pvalue < 0.05)) for pvalue in pvalues]
    return np.array(rates[:3]), rates[3]


class TestCalibration:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("n", "epsilon", "n_given", "levels", "shares"),
        [
            (1_000, 0.3, 0, 2, EVEN),
            (1_000, 0.3, 1, 2, SKEWED),
            (1_000, 1.0, 2, 2, SKEWED),
            (1_000, 1.0, 1, 3, EVEN),
            (100_000, 0.3, 1, 3, SKEWED),
            (100_000, 1.0, 1, 3, EVEN),
            (100_000, math.inf, 2, 2, SKEWED),
        ],
    )
    def test_type_one_error(self, n, epsilon, n_given, levels, shares):
        """1,000 tables: the standard deviation of a rate of .05 is .007."""
        rates, naive = _rejections(n, epsilon, n_given, levels, shares, runs=1000, seed=11)
        assert (rates > 0.03).all() and (rates < 0.07).all(), rates
        if n == 1_000 and shares is SKEWED:
            assert naive > 0.2

    def test_noise_that_hides_every_stratum_makes_it_cautious(self):
        rates, naive = _rejections(300, 0.1, 2, 2, EVEN, runs=300, seed=3)
        assert (rates < 0.08).all() and naive > 0.5

    def test_power_grows_with_n(self):
        power = [
            _rejections(n, 1.0, 1, 2, EVEN, runs=60, seed=1, dependence=0.01)[0]
            for n in (1_000, 10_000, 100_000)
        ]
        assert (power[0] < 0.6).all() and (np.diff(power, axis=0) >= 0).all()
        assert (power[2] == 1).all()

    def test_on_marginals(self):
        """Noise that strata share is in the null: independent columns, all subsets measured, with
        noise as large as the counts' own.
        """
        rng = np.random.default_rng(0)
        data = coded(rng.integers(0, 2, (2000, 3)), 2, 2, 2)
        variances = {s: 300.0 if len(s) < 3 else 60.0 for s in _interactions(np.zeros((2, 2, 2)))}
        cost = jaxcd.privacy.PrivacyCost(
            1.0, 1e-6, jaxcd.privacy.Relation.REPLACE_ONE, False, "made for a test"
        )
        queries = []
        for _ in range(600):
            counts = rng.multinomial(2000, np.full(8, 1 / 8)).reshape(2, 2, 2)
            noisy = {
                s: part + rng.normal(size=part.shape) * math.sqrt(variances[s])
                for s, part in _interactions(counts).items()
            }
            release = ReleasedMarginals(
                data.domain, 2000, noisy, variances, ((1, 2), (0, 2), (0, 1)), cost, cost
            )
            queries.append(marginal_strata(release, Query.of(0, 1, (2,))))
        strata = NoisyStrata.stack(queries)
        rates = [
            np.mean(stats.chi2.sf(*noisy_chi_square(strata, deviance=False)) < 0.05),
            np.mean(2 * stats.norm.sf(np.abs(noisy_kendall(strata))) < 0.05),
        ]
        assert min(rates) > 0.025 and max(rates) < 0.075, rates


def _interactions(counts: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    from jaxcd.ops.interactions import interaction, subsets

    axes = tuple(range(counts.ndim))
    return {
        s: interaction(counts.sum(axis=tuple(a for a in axes if a not in s))) for s in subsets(axes)
    }


@pytest.fixture(scope="module")
def bought() -> ReleasedHistogram:
    data = sampled("cancer", 100_000)
    return jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(1))


class TestSearches:
    @pytest.mark.parametrize("search", [jaxcd.pc, jaxcd.fci], ids=["pc", "fci"])
    @pytest.mark.parametrize("test", TABLE_TESTS, **NAMED)
    def test_they_carry_the_cost_of_the_release(self, bought, search, test, tmp_path):
        run = search(bought, test=test, decider=jaxcd.Threshold(0.01), budget=FREE, key=None)
        again = search(bought, test=test, decider=jaxcd.Threshold(0.01), key=None)
        assert run.graph == again.graph
        assert run.cost == bought.cost and run.spent == bought.spent and run.cost.epsilon == 1.0
        assert [row["epsilon"] for row in run.info["ledger"]] == [1.0] and "epsilon=1" in run.info[
            "budget"
        ]
        assert run.save(tmp_path / "run").is_dir()

    def test_the_skeleton_is_found(self, bought):
        run = jaxcd.pc(bought, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(0.01), key=None)
        truth = jaxcd.networks.load("cancer").cpdag()
        assert jaxcd.metrics.skeleton_f1(run.graph, truth) == 1

    def test_a_loaded_release_answers_the_same(self, bought, tmp_path):
        loaded = Release.load(bought.save(tmp_path / "bought.npz"))
        queries = every_query(5)[:20]
        for test in TABLE_TESTS:
            assert np.array_equal(answers(loaded, test, queries), answers(bought, test, queries))

    def test_what_was_not_measured_counts_as_dependent(self):
        release = _marginals(simulated(), jaxcd.Budget(1.0, 1e-6))
        session = Session(Door(release, FREE), jaxcd.ChiSquare(), alpha=0.05)
        measured = [query for query in every_query(4) if session.admissible(query)]
        assert all(
            session.admissible(Query.of(x, y)) for x, y in itertools.combinations(range(4), 2)
        )
        assert session.admissible(Query.of(0, 2, (1,))) and len(measured) < len(every_query(4))
        run = jaxcd.pc(release, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(0.01), key=None)
        assert run.graph.adjacency[:3, :3].sum() == 4 and not run.graph.adjacency[0, 3]
        assert run.separating_sets[frozenset(("v0", "v2"))] == ("v1",)
        assert (
            sum(row["rho"] for row in run.info["ledger"])
            <= jaxcd.privacy.Ledger(jaxcd.Budget(1.0, 1e-6)).rho_limit
        )

    def test_second_moments_answer_fisher_z(self):
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, 5000))
        values = np.column_stack([a, b, a + b + rng.normal(size=5000)])
        data = jaxcd.Dataset.from_array(values, domain=numbers("abc"))
        release = jaxcd.release(
            data, jaxcd.SecondMoments(), budget=jaxcd.Budget(1.0, 1e-6), noise=simulated()
        )
        run = jaxcd.pc(release, test=jaxcd.FisherZ(), decider=jaxcd.Threshold(0.01), key=None)
        assert run.graph == jaxcd.MixedGraph.from_edges(["a", "b", "c"], ["a --> c", "b --> c"])
        assert run.cost == release.cost and len(run.info["ledger"]) == len(release.charges)


class TestRefusals:
    RELEASE = _histogram(np.full((2, 2, 2), 50), scale=2.0)

    @pytest.mark.parametrize(
        "test", [row.test for row in TESTS if row.data and row.test not in TABLE_TESTS], **NAMED
    )
    def test_another_test_is_told_which_there_are(self, test):
        refused(
            OptionError,
            f"{test.name}; it answers ChiSquare, GTest, KendallTau",
            jaxcd.pc,
            self.RELEASE,
            test=test,
            decider=jaxcd.Threshold(),
            key=jax.random.key(0),
            max_level=0,
        )

    def test_a_budget(self):
        with pytest.raises(OptionError, match="a release has been paid for"):
            jaxcd.pc(
                self.RELEASE,
                test=jaxcd.ChiSquare(),
                decider=jaxcd.Threshold(),
                budget=jaxcd.Budget(1.0),
                key=None,
            )

    @EACH_PRIVATE_DECIDER
    @pytest.mark.parametrize("search", [jaxcd.pc, jaxcd.fci])
    def test_a_mechanism(self, row, search):
        with pytest.raises(OptionError, match=f"{re.escape(row.decider.name)} buys answers"):
            search(self.RELEASE, test=jaxcd.KendallTau(), decider=row.decider, key=None)

    def test_a_dataset_still_needs_a_budget(self):
        data = coded(np.zeros((5, 2)), 2, 2)
        with pytest.raises(OptionError, match="budget = None"):
            jaxcd.pc(data, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(), key=None)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["histogram", "pairs"])
@pytest.mark.parametrize("test", TABLE_TESTS, **NAMED)
def test_a_prepared_test_can_be_sent_to_another_process(kind, test) -> None:
    bought = jaxcd.release(sampled("cancer", 500), kind, budget=FREE)
    prepared = bought.prepare_test(test)
    again = pickle.loads(pickle.dumps(prepared))
    query = Query.of(0, 1, ())
    assert again.admissible(query) == prepared.admissible(query)
    found, told = (
        each.evaluate(each.bucket(query), [query], alpha=0.05) for each in (prepared, again)
    )
    assert np.array_equal(found.log_pvalue, told.log_pvalue)
