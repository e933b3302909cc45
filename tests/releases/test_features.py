"""Released features: the features, the noise that is stated, the test's level and power, searches,
limits, the file, refusals.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.data import Categorical, Dataset, Domain, Numeric, Ordinal
from jaxcd.discovery.released import search_features
from jaxcd.errors import DataError, FormatError, OptionError, PrivacyError
from jaxcd.ops.tilted_moments import pack
from jaxcd.releases.base import Release
from jaxcd.releases.features.canonical_correlation import CanonicalCorrelation
from jaxcd.releases.features.feature_covariances import Features, ReleasedFeatures, cosine_features
from jaxcd.releases.features.feature_score import FeatureScore
from tests.helpers import measured, refused, simulated

BUDGET = jaxcd.Budget(1.0, 1e-6)


def pc_features(release: ReleasedFeatures) -> jaxcd.DiscoveryResult:
    decider = jaxcd.Threshold(0.01)
    return jaxcd.pc(release, test=CanonicalCorrelation(), decider=decider, key=None, max_level=2)


def collider(n: int, *, seed: int) -> np.ndarray:
    """x0 -> x1 -> x2 <- x3: nonlinear, additive, and nearly without correlations."""
    rng = np.random.default_rng(seed)
    x0, x3 = rng.normal(size=(2, n))
    x1 = np.cos(2 * x0) + 0.5 * rng.normal(size=n)
    return np.column_stack([x0, x1, x1**2 + np.abs(x3) + 0.5 * rng.normal(size=n), x3])


def log_pvalue(
    release: ReleasedFeatures, x: int, y: int, given: tuple[int, ...] = (), *, effect: float = 0.0
) -> float:
    prepared = CanonicalCorrelation(effect).prepare(release)
    return float(prepared.evaluate(0, [Query.of(x, y, given)], alpha=0.05).log_pvalue[0])


class TestFeatures:
    @pytest.mark.parametrize("r", [2, 3, 6, 32])
    def test_they_have_length_one(self, r: int):
        u = np.linspace(0, 1, 10_001)
        lengths = np.linalg.norm(cosine_features(u, n_features=r, decay=0.5), axis=1)
        np.testing.assert_allclose(lengths, 1, atol=1e-12)

    def test_without_noise_the_covariance_is_that_of_the_features(self):
        values = collider(3000, seed=0)
        release = Features(n_features=3, decay=1.0).release(
            measured(values), budget=jaxcd.NO_PRIVACY
        )
        from jaxcd.privacy import Accountant, Ledger
        from jaxcd.privacy.rank_maps import release_rank_maps

        maps = release_rank_maps(list(values.T), Accountant(Ledger(jaxcd.NO_PRIVACY)), rho=math.inf)
        features = [
            cosine_features(maps.rank(j, values[:, j]), n_features=3, decay=1.0) for j in range(4)
        ]
        np.testing.assert_allclose(
            release.covariance, np.cov(np.hstack(features).T, bias=True), atol=1e-4
        )

    def test_bounds_are_units_and_codes_are_levels(self):
        rng = np.random.default_rng(0)
        small = 1e-6 * rng.normal(size=4000).clip(-4, 4)
        pairs = np.column_stack([small, small + 1e-7 * rng.normal(size=4000).clip(-4, 4)])
        bounded = Domain({"a": Numeric(-1e-5, 1e-5), "b": Numeric(-1e-5, 1e-5)})
        found = Features().release(
            Dataset.from_array(pairs, domain=bounded), budget=jaxcd.NO_PRIVACY
        )
        assert log_pvalue(found, 0, 1) < -1000
        codes = rng.integers(0, 3, 500)
        domain = Domain({"a": Ordinal((0, 1, 2)), "b": Categorical((0, 1, 2))})
        same = Features().release(
            Dataset.from_codes(np.column_stack([codes, codes]).astype(np.int32), domain=domain),
            budget=jaxcd.NO_PRIVACY,
        )
        assert same.sizes == (2, 2)
        first, second = same.blocks
        np.testing.assert_allclose(
            same.covariance[np.ix_(first, second)], same.covariance[np.ix_(first, first)], atol=1e-9
        )


class TestTheNumberOfFeatures:
    DOMAIN = Domain(
        {
            **{f"x{i}": Numeric() for i in range(10)},
            **{f"c{i}": Categorical((0, 1, 2)) for i in range(10)},
        }
    )

    @staticmethod
    def number(domain: Domain, n: int, rho: float) -> int:
        return Features().chosen(domain, n, rho=rho).n_features

    def test_more_rows_and_more_budget_buy_more(self):
        by_rows = [
            self.number(self.DOMAIN, n, 0.02)
            for n in (1_000, 3_000, 10_000, 20_000, 30_000, 100_000)
        ]
        by_rho = [
            self.number(self.DOMAIN, 10_000, rho)
            for rho in (1e-6, 0.005, 0.02, 0.05, 0.2, math.inf)
        ]
        for numbers in (by_rows, by_rho):
            assert numbers == sorted(numbers) and (numbers[0], numbers[-1]) == (2, 6)
            assert len(set(numbers)) >= 4

    @pytest.mark.parametrize(("n", "rho"), [(10_000, 0.02), (20_000, 0.02), (3_000, 0.3)])
    def test_it_is_the_largest_under_which_noise_is_half_of_a_variance(self, n: int, rho: float):
        def spectrum(r: int) -> float:
            """Of symmetric noise of the size of the moments, largest eigenvalue over the mean
            variance 1 / r.
            """
            options = Features(n_features=r)
            size = sum(options.sizes(self.DOMAIN))
            noise = np.random.default_rng(r).normal(size=(size, size))
            noise = options.noise(self.DOMAIN, rho=rho) / n * (np.triu(noise) + np.triu(noise, 1).T)
            return float(np.linalg.eigvalsh(noise)[-1]) * r

        chosen = self.number(self.DOMAIN, n, rho)
        assert 2 < chosen < 6
        # the largest eigenvalue is near its limit 2 sqrt(D)
        assert spectrum(chosen) < 0.52 and spectrum(chosen + 1) > 0.48

    def test_the_release_has_it_and_asked_numbers_stay(self):
        values = collider(2_000, seed=0)
        small = Features().release(
            measured(values), budget=jaxcd.Budget(0.3, 1e-6), noise=simulated()
        )
        large = Features().release(
            measured(values), budget=jaxcd.Budget(50.0, 1e-6), noise=simulated()
        )
        assert small.sizes == (2,) * 4 and large.sizes == (6,) * 4
        assert Features().release(measured(values), budget=jaxcd.NO_PRIVACY).sizes == (6,) * 4
        asked = Features(n_features=5).release(
            measured(values), budget=jaxcd.Budget(0.3, 1e-6), noise=simulated()
        )
        assert asked.sizes == (5,) * 4

    def test_few_rows_get_fewer_features_than_rows(self):
        assert (
            Features().release(measured(collider(20, seed=0)), budget=jaxcd.NO_PRIVACY).sizes
            == (4,) * 4
        )


class TestNoise:
    def test_it_has_the_variance_that_is_stated(self):
        """The maps are drawn anew each time, so discrete columns, which have none."""
        rng = np.random.default_rng(0)
        domain = Domain({name: Categorical((0, 1, 2)) for name in "abcd"})
        data = Dataset.from_codes(rng.integers(0, 3, (50, 4)).astype(np.int32), domain=domain)
        exact = pack(Features().release(data, budget=jaxcd.NO_PRIVACY).moments)
        errors = []
        for seed in range(20):
            release = Features().release(data, budget=BUDGET, noise=simulated(seed))
            errors.append((pack(release.moments) - exact) / release.sigma)
        squared = float(np.sum(np.square(errors)))
        assert 1e-4 < stats.chi2.cdf(squared, np.size(errors)) < 1 - 1e-4

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_the_price_is_the_budget(self, epsilon: float):
        release = Features().release(
            measured(collider(500, seed=0)), budget=jaxcd.Budget(epsilon, 1e-6)
        )
        assert (release.cost.epsilon, release.cost.proven) == (epsilon, True)
        assert release.spent.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert release.spent.epsilon <= epsilon


class TestCanonicalCorrelation:
    def test_against_an_eigenproblem(self):
        """Without noise T is the sum of the squared canonical correlations of regression
        residuals.
        """
        release = Features(n_features=3).release(
            measured(collider(5000, seed=1)), budget=jaxcd.NO_PRIVACY
        )
        c, (x, y, z, _) = release.covariance, release.blocks

        def residual(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return c[np.ix_(a, b)] - c[np.ix_(a, z)] @ linalg.solve(
                c[np.ix_(z, z)], c[np.ix_(z, b)]
            )

        left = residual(x, y) @ linalg.solve(residual(y, y), residual(y, x))
        expected = linalg.eigvals(left, residual(x, x)).real.sum()
        found = CanonicalCorrelation().prepare(release).null_moments(Query.of(0, 1, (2,)))
        assert found[0] == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("epsilon", [0.5, 8.0])
    def test_its_level_with_noise(self, epsilon: float):
        """x and y given z, all additive in z, and x and y alone: p-values are uniform, or a little
        too large.
        """
        marginal, conditional = [], []
        for seed in range(60):
            rng = np.random.default_rng(seed)
            z = rng.normal(size=2000)
            values = np.column_stack(
                [
                    np.sin(z) + rng.normal(size=2000),
                    z**2 / 2 + rng.normal(size=2000),
                    z,
                    rng.normal(size=2000),
                ]
            )
            release = Features(n_features=3).release(
                measured(values), budget=jaxcd.Budget(epsilon, 1e-6), noise=simulated(seed)
            )
            marginal.append(log_pvalue(release, 0, 3))
            conditional.append(log_pvalue(release, 0, 1, (2,)))
        for values in (marginal, conditional):
            rejected = sum(value < math.log(0.05) for value in values)
            assert stats.binom.sf(rejected - 1, 60, 0.05) > 1e-3
        assert max(marginal) - min(marginal) > 0.1  # it is not that nothing is ever rejected

    def test_its_power_on_dependence_without_correlation(self):
        values = collider(20_000, seed=2)
        assert abs(np.corrcoef(values[:, 0], values[:, 1])[0, 1]) < 0.05
        release = Features().release(measured(values), budget=BUDGET, noise=simulated())
        assert log_pvalue(release, 0, 1) < -50
        assert log_pvalue(release, 1, 3) > math.log(0.001) > log_pvalue(release, 1, 3, (2,))

    def test_the_noise_is_in_the_null(self):
        values = collider(5000, seed=3)
        exact = CanonicalCorrelation().prepare(
            Features().release(measured(values), budget=jaxcd.NO_PRIVACY)
        )
        noisy = CanonicalCorrelation().prepare(
            Features().release(measured(values), budget=BUDGET, noise=simulated())
        )
        for query in (Query(0, 3), Query(0, 2, (1,))):
            assert noisy.null_moments(query)[1] > 2 * exact.null_moments(query)[1]


class TestSearches:
    @pytest.mark.parametrize("search", [search_features, pc_features])
    def test_a_nonlinear_collider(self, search):
        release = Features().release(
            measured(collider(50_000, seed=4)), budget=BUDGET, noise=simulated(1)
        )
        run = search(release)
        truth = jaxcd.MixedGraph.from_dag(_dag(("x0", "x1"), ("x1", "x2"), ("x3", "x2")))
        assert jaxcd.metrics.skeleton_f1(run.graph, truth) == 1.0
        assert run.graph.marks[1, 2] == run.graph.marks[3, 2] == 2
        assert run.cost == release.cost and [row["label"] for row in run.info["ledger"]] == [
            "rank maps",
            "feature covariances",
        ]

    def test_mixed_columns(self):
        rng = np.random.default_rng(5)
        label = rng.integers(0, 3, 30_000)
        x = np.array([0.0, 2.0, 0.5])[label] + rng.normal(size=30_000)
        y = np.abs(x) + rng.normal(size=30_000)
        domain = Domain({"label": Categorical((0, 1, 2)), "x": Numeric(), "y": Numeric()})
        data = Dataset.from_array(np.column_stack([label, x, y]), domain=domain)
        graph = search_features(Features().release(data, budget=BUDGET, noise=simulated())).graph
        assert graph.adjacency.tolist() == [
            [False, True, False],
            [True, False, True],
            [False, True, False],
        ]

    @pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.01])
    def test_nothing_is_found_in_noise(self, epsilon: float):
        independent = measured(np.random.default_rng(4).normal(size=(1000, 6)))
        for seed in range(3):
            found = Features().release(
                independent, budget=jaxcd.Budget(epsilon, 1e-6), noise=simulated(seed)
            )
            assert search_features(found).graph.n_edges == 0

    def test_the_score_is_equal_for_equivalent_graphs(self):
        release = Features().release(
            measured(collider(1000, seed=6)), budget=BUDGET, noise=simulated()
        )
        score = FeatureScore(release)
        adjacency = np.zeros((4, 4), dtype=bool)
        adjacency[0, 1] = adjacency[1, 2] = adjacency[0, 2] = adjacency[2, 3] = True
        for flipped in ([(0, 1)], [(0, 1), (0, 2), (1, 2)]):
            other = adjacency.copy()
            for a, b in flipped:
                other[a, b], other[b, a] = False, True
            assert score.total(other) == pytest.approx(score.total(adjacency), rel=1e-12)
        other = adjacency.copy()
        other[0, 1] = False
        assert abs(score.total(other) - score.total(adjacency)) > 1e-3

    def test_without_noise_the_score_is_the_likelihood_ratio_of_normal_features(self):
        release = Features(n_features=3).release(
            measured(collider(4000, seed=7)), budget=jaxcd.NO_PRIVACY
        )
        score = FeatureScore(release, effect=0.0)
        x, y = release.blocks[:2]
        c = release.covariance
        roots = linalg.eigvals(
            c[np.ix_(x, y)] @ linalg.solve(c[np.ix_(y, y)], c[np.ix_(y, x)]), c[np.ix_(x, x)]
        ).real
        gain = score.local(0, (1,)) - score.local(0, ())
        price = 4 / 2 * math.log(4000) + 5 * 1.5 + 2000 * 0.06 * max(roots.sum() - 9 / 4000, 0)
        assert gain == pytest.approx(-2000 * np.log(1 - roots).sum() - price, rel=1e-4)

    @pytest.mark.parametrize("errors", ["normal", "exponential"])
    @pytest.mark.parametrize("budget", [jaxcd.Budget(4.0, 1e-6), jaxcd.NO_PRIVACY])
    def test_strong_lines_in_a_chain_do_not_join_its_ends(self, errors, budget):
        """Cosines of ranks tell extreme values of the middle apart badly."""
        rng = np.random.default_rng(11)
        draw = getattr(rng, errors)
        columns = [draw(size=20_000)]
        for _ in range(3):
            columns.append(0.85 * columns[-1] + 0.5 * draw(size=20_000))
        release = Features().release(
            measured(np.column_stack(columns)), budget=budget, noise=simulated()
        )
        found = np.argwhere(np.triu(search_features(release).graph.marks)).tolist()
        assert found == [[0, 1], [1, 2], [2, 3]]
        test, names = jaxcd.CanonicalCorrelation(), release.names
        for end, given in ((2, 1), (3, 1), (3, 2)):
            asked = jaxcd.ci_test(release, names[0], names[end], given=[names[given]], test=test)
            assert asked.independent
        assert not jaxcd.ci_test(release, *names[:2], given=[names[2]], test=test).independent

    def test_weak_effects_are_found_through_noise(self):
        rng = np.random.default_rng(3)
        x = rng.normal(size=(20_000, 10))
        y = 0.2 * x + math.sqrt(1 - 0.2**2) * rng.normal(size=x.shape)
        release = Features().release(measured(np.hstack([x, y])), budget=BUDGET, noise=simulated())
        found = search_features(release).graph.marks != 0
        true = np.kron([[0, 1], [1, 0]], np.eye(10)) > 0
        assert (found & true).sum() // 2 >= 6
        assert (found & ~true).sum() // 2 <= 1

    def test_noise_makes_correlations_of_one_size(self):
        """As those of N rows would, between any two cosines, where noise outweighs the rows."""
        squares = []
        for seed in range(20):
            data = measured(np.random.default_rng(seed).normal(size=(20_000, 8)))
            release = Features(n_features=6).release(
                data, budget=jaxcd.Budget(0.4, 1e-6), noise=simulated(seed)
            )
            score = FeatureScore(release)
            found = score._covariance
            scale = np.sqrt(np.diagonal(found))
            squares.append((found / np.multiply.outer(scale, scale)) ** 2)
        sizes = score.effective_samples * np.mean(squares, axis=0)
        blocks = release.blocks
        between = [
            np.mean([sizes[a[j], b[k]] for a in blocks for b in blocks if a[0] != b[0]])
            for j in range(6)
            for k in range(6)
        ]
        assert 0.6 < min(between) < max(between) < 2.0

    def test_interactions_of_parents_are_out_of_reach(self):
        """x and y are independent given z, w, but functions of sin(z + w): no number of rows tells
        (PRIVACY.md K4).
        """
        found = []
        for n in (10_000, 80_000):
            rng = np.random.default_rng(8)
            z, w = rng.uniform(-3, 3, size=(2, n))
            x, y = np.sin(z + w) + 0.3 * rng.normal(size=(2, n))
            release = Features().release(
                measured(np.column_stack([x, y, z, w])), budget=jaxcd.NO_PRIVACY
            )
            statistic, mean, _ = (
                CanonicalCorrelation().prepare(release).null_moments(Query(0, 1, (2, 3)))
            )
            found.append(math.sqrt(statistic - mean))
        assert min(found) > 0.3 and found[1] == pytest.approx(found[0], rel=0.1)


def _dag(*edges: tuple[str, str]):
    import networkx as nx

    dag = nx.DiGraph()
    dag.add_nodes_from(["x0", "x1", "x2", "x3"])
    dag.add_edges_from(edges)
    return dag


class TestFileAndErrors:
    def test_the_file(self, tmp_path):
        release = Features().release(measured(collider(300, seed=0)), budget=BUDGET)
        loaded = Release.load(release.save(tmp_path / "features.npz"))
        assert isinstance(loaded, ReleasedFeatures)
        np.testing.assert_array_equal(loaded.moments, release.moments)
        for part in ("sizes", "sigma", "anchor", "charges", "cost", "spent", "domain", "n_samples"):
            assert getattr(loaded, part) == getattr(release, part)
        assert "array" not in repr(release) and f"{sum(release.sizes)} features" in repr(release)
        arrays = dict(np.load(tmp_path / "features.npz"))
        arrays["moments"] = arrays["moments"][:3]
        np.savez(tmp_path / "bad.npz", **arrays)
        refused(FormatError, "damaged", Release.load, tmp_path / "bad.npz")

    @pytest.mark.parametrize(
        "budget", [BUDGET, jaxcd.NO_PRIVACY, jaxcd.Budget(1e-3, 1e-6)], ids=str
    )
    def test_degenerate_columns_are_no_error(self, budget):
        rng = np.random.default_rng(0)
        x = rng.normal(size=200)
        domain = Domain(
            {
                "a": Numeric(),
                "b": Numeric(),
                "c": Numeric(),
                "d": Categorical((0,)),
                "e": Categorical((0, 1, 2)),
            }
        )
        data = Dataset.from_array(
            np.column_stack([x, 2 * x, np.full(200, 3.0), np.zeros(200), np.ones(200)]),
            domain=domain,
        )
        release = Features().release(data, budget=budget, noise=simulated())
        queries = [
            Query.of(x, y, given)
            for x, y, given in ((0, 1, (2, 3)), (0, 3, ()), (2, 4, (0, 1)), (0, 2, (4,)))
        ]
        answers = CanonicalCorrelation().prepare(release).evaluate(0, queries, alpha=0.05)
        assert all(np.isfinite(part).all() for part in answers)
        assert answers.margin[1] < 0  # a column with one level
        for search in (search_features, pc_features):
            assert not search(release).graph.adjacency[3].any()

    def test_refusals_come_before_any_charge(self, monkeypatch):
        monkeypatch.setattr(jaxcd.privacy.Ledger, "charge", lambda *_: pytest.fail("charged"))
        data = measured(collider(300, seed=0))
        for budget, word in ((None, "budget"), (jaxcd.Budget(1.0), "delta")):
            refused(OptionError, word, Features().release, data, budget=budget)
        with pytest.raises(DataError, match="8 features"):
            Features().release(measured(collider(9, seed=0)), budget=BUDGET)
        with pytest.raises(DataError, match="24 features"):
            Features(n_features=6).release(measured(collider(20, seed=0)), budget=BUDGET)
        with pytest.raises(PrivacyError, match="inferred"):
            Features().release(measured(collider(300, seed=0), declared=False), budget=BUDGET)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"n_features": 1},
            {"n_features": True},
            {"n_features": 2.5},
            {"decay": -1.0},
            {"decay": math.nan},
            {"rank_share": 0.0},
            {"rank_share": 1.0},
            {"anchor": 0.0},
            {"anchor": math.nan},
        ],
    )
    def test_wrong_options(self, wrong):
        refused(OptionError, next(iter(wrong)), Features, **wrong)

    def test_searches_want_this_release(self):
        data = measured(collider(300, seed=0))
        for call in (search_features, FeatureScore):
            refused(OptionError, "features", call, data)
        release = Features().release(data, budget=BUDGET)
        for call, options in (
            (search_features, {"penalty": 0.0}),
            (FeatureScore, {"n_candidates": 0}),
        ):
            refused(OptionError, next(iter(options)), call, release, **options)


def test_large_numbers_need_no_bounds() -> None:
    """Incomes, without declared bounds, and what follows from them."""
    rng = np.random.default_rng(3)
    income = np.exp(rng.normal(10.5, 0.6, size=8_000))
    rent = 0.2 * income * np.exp(rng.normal(0, 0.3, size=8_000))
    domain = jaxcd.Domain({"income": jaxcd.Numeric(), "rent": jaxcd.Numeric()})
    data = jaxcd.Dataset.from_array(
        np.column_stack([income, rent]), names=list(domain), domain=domain
    )
    budget = jaxcd.Budget(1.0, 1e-6)
    bought = jaxcd.release(data, jaxcd.Features(), budget=budget, noise=simulated())
    assert str(jaxcd.search(bought).graph) == "income --- rent"
