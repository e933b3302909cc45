"""Second moments: the sensitivity by search, the untilting by quadrature, the variances and the
null by simulation, the cost.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import jaxcd
from jaxcd.data import Categorical, Dataset, Domain, Numeric
from jaxcd.errors import DataError, DomainError, FormatError, OptionError, PrivacyError
from jaxcd.ops import tilted_moments as tilted
from jaxcd.privacy import Accountant
from jaxcd.queries import Door
from jaxcd.releases.base import Release
from jaxcd.releases.moments.bought_units import bought_units, shortest_half
from jaxcd.releases.moments.fisher_z import PreparedMoments
from jaxcd.releases.moments.second_moments import ReleasedSecondMoments, SecondMoments
from tests.helpers import measured, refused, simulated

BUDGET = jaxcd.Budget(epsilon=1.0, delta=1e-6)


def public(values: np.ndarray) -> SecondMoments:
    names = [f"x{i}" for i in range(values.shape[1])]
    return SecondMoments(
        centres=dict.fromkeys(names, 0.0),
        scales=dict(zip(names, values.std(0).tolist(), strict=True)),
    )


def chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """x0 -> x1 -> x2, and x3 -> x2: x0 and x2 are independent given x1, x0 and x3 are
    independent.
    """
    x0, x3 = rng.normal(size=(2, n))
    x1 = 0.9 * x0 + rng.normal(size=n)
    return np.column_stack([x0, x1, 1.2 * x1 - 0.8 * x3 + rng.normal(size=n), x3])


class TestSensitivity:
    @pytest.mark.parametrize("p", [1, 2, 4])
    @pytest.mark.parametrize("rate", [0.05, 0.4, 2.0])
    @pytest.mark.parametrize("anchor", [0.5, 1.0])
    def test_no_pair_of_rows_exceeds_it_and_some_pair_reaches_it(
        self, p: int, rate: float, anchor: float
    ):
        others = np.random.default_rng(0).normal(size=(3, p))

        def change(rows: np.ndarray, gram: Any) -> float:
            here, there = rows.reshape(2, 1, p)
            moments = [gram(np.concatenate([row, others])) for row in (here, there)]
            return float(np.linalg.norm(tilted.pack(moments[0]) - tilted.pack(moments[1])))

        def smooth(rows: np.ndarray) -> np.ndarray:  # without the grid, for the search
            g = np.exp(-rate / 2 * (rows**2).sum(axis=1))[:, None] * np.column_stack(
                [np.full(len(rows), anchor), rows]
            )
            return g.T @ g

        def rounded(rows: np.ndarray) -> np.ndarray:
            return tilted.gram(rows, rate=rate, anchor=anchor)

        rng = np.random.default_rng(p)
        starts = rng.normal(size=(6, 2 * p)) / math.sqrt(rate * p)
        found = [
            optimize.minimize(lambda rows: -change(rows, smooth), start, method="BFGS").x
            for start in starts
        ]
        largest = max(change(rows, rounded) for rows in found)
        bound = tilted.gram_sensitivity(rate=rate, anchor=anchor, n_columns=p)
        assert largest <= bound * (1 + 1e-12)
        if p > 1 and rate * anchor**2 <= 0.5:  # orthogonal rows of the largest norm exist
            assert largest >= bound * (1 - 1e-4)

    def test_the_largest_norm(self):
        distance = np.linspace(0, 400, 400_001)
        for rate, anchor in ((0.03, 1.0), (0.5, 0.7), (1.0, 1.0), (2.0, 1.5)):
            norms = (anchor**2 + distance) * np.exp(-rate * distance)
            assert tilted.gram_sensitivity(rate=rate, anchor=anchor, n_columns=1) == pytest.approx(
                norms.max(), rel=2e-5
            )

    def test_pack_halves_the_squared_norm_and_unpack_inverts_it(self):
        a = np.random.default_rng(0).normal(size=(5, 5))
        a = a + a.T
        assert np.linalg.norm(tilted.pack(a)) ** 2 == pytest.approx(np.linalg.norm(a) ** 2 / 2)
        np.testing.assert_allclose(tilted.unpack(tilted.pack(a), 5), a)

    def test_far_rows_weigh_nothing(self):
        values = np.random.default_rng(0).normal(size=(50, 3))
        far = np.concatenate([values, [[1e300, -1e300, 0.0], [1e6, 0.0, 0.0]]])
        np.testing.assert_array_equal(
            tilted.gram(values, rate=0.1, anchor=1.0), tilted.gram(far, rate=0.1, anchor=1.0)
        )


class TestUntilting:
    @pytest.mark.parametrize("rate", [0.02, 0.2, 0.5])
    def test_against_quadrature(self, rate: float):
        mean, covariance = np.array([0.4, -0.3]), np.array([[2.0, 0.9], [0.9, 0.7]])
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
        w = np.outer(weights, weights).ravel() / (2 * math.pi)
        y = mean + z @ np.linalg.cholesky(covariance).T
        rows = np.column_stack([np.full(len(y), 0.8), y])
        moments = (rows * (w * np.exp(-rate * (y**2).sum(axis=1)))[:, None]).T @ rows
        found = tilted.untilt(1000 * moments, n_samples=1000, rate=rate, anchor=0.8, sigma=0.0)
        np.testing.assert_allclose(found.mean, mean, atol=1e-9)
        np.testing.assert_allclose(
            (found.directions * found.variances) @ found.directions.T, covariance, atol=1e-9
        )

    def test_the_estimate_converges_to_the_truth_in_the_columns_units(self):
        rng = np.random.default_rng(0)
        root = np.array([[100.0, 0, 0], [3.0, 0.1, 0], [0.2, 0.001, 0.01]])
        values = np.array([1e4, -3.0, 0.5]) + rng.normal(size=(100_000, 3)) @ root.T
        found = SecondMoments().release(measured(values), budget=jaxcd.NO_PRIVACY)
        assert (
            np.abs(found.mean - [1e4, -3.0, 0.5]) < 0.02 * np.sqrt(np.diag(root @ root.T))
        ).all()
        white = np.linalg.solve(root, np.linalg.solve(root, found.covariance).T)
        np.testing.assert_allclose(white, np.eye(3), atol=0.02)

    def test_units_do_not_matter(self):
        values = chain(3000, np.random.default_rng(1))
        units = np.array([1000.0, 0.001, 7.0, 1.0])
        here, there = (
            public(v).release(measured(v), budget=BUDGET, noise=simulated())
            for v in (values, values * units)
        )
        np.testing.assert_allclose(here.correlation, there.correlation, atol=1e-5)


def partial(release: ReleasedSecondMoments, *variables: int) -> tuple[float, float]:
    r, variance = PreparedMoments(release).partial_correlations(np.array([variables]))
    return float(r[0]), float(variance[0])


class TestVariance:
    def test_partial_correlation_against_its_definition(self):
        values = chain(5000, np.random.default_rng(2))
        release = SecondMoments().release(measured(values), budget=BUDGET, noise=simulated())
        c = release.covariance
        given = [1, 3]
        block = c[np.ix_([0, 2], [0, 2])] - c[np.ix_([0, 2], given)] @ np.linalg.solve(
            c[np.ix_(given, given)], c[np.ix_(given, [0, 2])]
        )
        assert partial(release, 0, 2, 1, 3)[0] == pytest.approx(
            block[0, 1] / math.sqrt(block[0, 0] * block[1, 1])
        )

    @pytest.mark.parametrize("variables", [(0, 2), (0, 2, 1), (1, 2, 0, 3)])
    def test_noise_and_sampling_against_simulation(self, variables: tuple[int, ...]):
        """Fresh data and fresh noise in the last round, from a factor that is some way off."""
        rng = np.random.default_rng(3)
        n, rate, sigma, repeats = 1500, 0.12, 14.0, 500
        covariance = np.cov(chain(200_000, rng).T)
        factor = np.linalg.cholesky(covariance + 0.1 * np.eye(4))
        data = measured(chain(n, rng))
        template = SecondMoments().release(data, budget=jaxcd.NO_PRIVACY)
        found = []
        for _ in range(repeats):
            moments = tilted.gram(np.linalg.solve(factor, chain(n, rng).T).T, rate=rate, anchor=1.0)
            noise = tilted.unpack(sigma * rng.normal(size=15), 5)
            release = ReleasedSecondMoments(
                data.domain,
                n,
                moments + noise,
                sigma,
                rate,
                np.zeros(4),
                factor,
                (),
                template.cost,
                template.spent,
            )
            found.append(partial(release, *variables))
        r, variance = np.array(found).T
        # The sd of a variance from 500 draws is 6 %.
        assert np.var(r) == pytest.approx(np.median(variance), rel=0.2)

    def test_effective_samples_are_the_precision_of_the_covariance(self):
        rng = np.random.default_rng(4)
        root = np.linalg.cholesky(np.array([[1, 0.8, 0.1], [0.8, 1, 0.3], [0.1, 0.3, 1.0]]))
        squares, effective = [], []
        for seed in range(40):
            values = rng.normal(size=(4000, 3)) @ root.T
            release = public(values).release(measured(values), budget=BUDGET, noise=simulated(seed))
            white = np.linalg.solve(root, np.linalg.solve(root, release.covariance).T)
            squares += [white[np.triu_indices(3, 1)] ** 2]
            effective.append(release.effective_samples)
        # sd about 13 %
        assert 1 / np.mean(squares) == pytest.approx(np.median(effective), rel=0.35)
        assert np.max(effective) < 4000

    def test_the_null_is_calibrated_under_noise(self):
        rng = np.random.default_rng(5)
        margins = []
        queries = [
            jaxcd.citests.Query.of(0, 3),
            jaxcd.citests.Query.of(0, 2, (1,)),
            jaxcd.citests.Query.of(1, 3, (0,)),
        ]
        naive = []
        for seed in range(100):
            values = chain(1200, rng)
            release = public(values).release(measured(values), budget=BUDGET, noise=simulated(seed))
            prepared = PreparedMoments(release)
            margins += [
                prepared.evaluate(prepared.bucket(q), [q], alpha=0.05).margin[0] for q in queries
            ]
            naive += [
                math.sqrt(1200) * abs(math.atanh(partial(release, q.x, q.y, *q.given)[0])) - 1.96
                for q in queries
            ]
        rate = float(np.mean(np.array(margins) > 0))  # sd about .013; alpha is .05
        assert 0.01 < rate < 0.09
        assert np.mean(np.array(naive) > 0) > 0.15  # what knowing the noise is good for


class TestCost:
    @pytest.mark.parametrize("bought", [False, True])
    def test_the_whole_budget_and_no_more(self, bought: bool):
        values = chain(500, np.random.default_rng(0))
        release = (SecondMoments() if bought else public(values)).release(
            measured(values), budget=BUDGET, noise=simulated()
        )
        assert release.cost.epsilon == 1.0 and release.cost.delta == 1e-6
        assert release.spent.epsilon == pytest.approx(1.0, rel=1e-9)
        assert release.spent.epsilon <= 1.0
        ledger = jaxcd.privacy.Ledger(BUDGET)
        assert str(release.charges[0]["label"]).startswith("centres" if bought else "tilted")
        assert len(release.charges) == 3 + bought
        assert (
            0.999999 * ledger.rho_limit
            < math.fsum(row["rho"] for row in release.charges)
            <= ledger.rho_limit
        )

    def test_the_last_round_has_the_noise_of_its_share(self):
        values = chain(500, np.random.default_rng(0))
        release = public(values).release(measured(values), budget=BUDGET, noise=simulated())
        rho = 0.7 * jaxcd.privacy.Ledger(BUDGET).rho_limit
        # rows on a grid
        assert release.sigma == pytest.approx(
            math.exp(release.rate - 1) / release.rate / math.sqrt(2 * rho), rel=3e-5
        )

    def test_secure_noise_is_the_default_and_proved(self):
        values = chain(300, np.random.default_rng(0))
        options = dataclasses.replace(public(values), shares=(1.0,))
        releases = [options.release(measured(values), budget=BUDGET) for _ in range(2)]
        assert releases[0].cost.proven
        assert not np.array_equal(releases[0].moments, releases[1].moments)

    def test_one_far_record_changes_nothing_but_its_own_part(self):
        values = chain(2000, np.random.default_rng(0))
        options = public(values)
        far = values.copy()
        far[0] = 1e300
        releases = [
            options.release(measured(v), budget=BUDGET, noise=simulated()) for v in (values, far)
        ]
        np.testing.assert_allclose(releases[0].correlation, releases[1].correlation, atol=0.02)

    def test_bounds_are_used_where_declared(self):
        values = np.random.default_rng(0).uniform(5e8, 5e8 + 1, size=(3000, 2))
        domain = Domain({"a": Numeric(5e8, 5e8 + 1), "b": Numeric(5e8, 5e8 + 1)})
        release = SecondMoments().release(
            Dataset.from_array(values, domain=domain), budget=jaxcd.NO_PRIVACY
        )
        np.testing.assert_allclose(release.mean, 5e8 + 0.5, atol=0.05)


class TestBoughtUnits:
    def test_the_shortest_half_against_brute_force(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            counts = rng.integers(-3, 12, size=12)
            first, end = shortest_half(counts, n_samples=60)
            good = [
                (j - i, -counts[i:j].sum())
                for i in range(12)
                for j in range(i + 1, 13)
                if counts[i:j].sum() >= 30
            ]
            assert (end - first, -counts[first:end].sum()) == min(good, default=(12, -counts.sum()))

    @pytest.mark.parametrize("budget", [BUDGET, jaxcd.Budget(0.1, 1e-6)], ids=str)
    def test_rough_is_enough(self, budget):
        """Within a factor of 2 of the standard deviation, and within 1 of it from the mean, also at
        a tenth of the budget.
        """
        values = np.array([0.0, 30.0, -7.0]) + np.random.default_rng(0).normal(size=(10_000, 3)) * [
            1.0,
            5.0,
            0.7,
        ]
        accountant = Accountant(jaxcd.privacy.Ledger(budget), simulated())
        rho = 0.1 * accountant.ledger.rho_limit
        domain = Domain({"a": Numeric(), "b": Numeric(), "c": Numeric(-20, 20)})
        centres, scales = bought_units(
            Door(Dataset.from_array(values, domain=domain), budget), accountant, rho=rho
        )
        assert (np.abs(centres - values.mean(0)) < values.std(0)).all()
        assert (np.abs(np.log(scales / values.std(0))) < math.log(2)).all()
        assert [entry.event.rho for entry in accountant.ledger.entries] == [rho]

    @pytest.mark.parametrize("share", [0.5, 0.6, 0.8])
    @pytest.mark.parametrize("bounds", [(None, None), (0.0, 1.0)], ids=["free", "bounded"])
    @pytest.mark.parametrize("epsilon", [1.0, 1000.0])
    def test_two_values_have_a_scale_and_keep_their_edges(self, share, bounds, epsilon):
        """Half of the rows are in one bin, whose width says nothing of the other value: rows with
        it had no weight.  With little noise a false row in a far bin must not matter either.
        """
        rng, n = np.random.default_rng(0), 5_000
        two = (rng.random(n) < share).astype(float)
        height = 160 + 14 * two + 7 * rng.normal(size=n)
        domain = Domain({"two": Numeric(*bounds), "height": Numeric()})
        data = Dataset.from_array(np.column_stack([two, height]), domain=domain)
        budget = jaxcd.Budget(epsilon, 1e-6)
        for seed in range(3):
            bought = jaxcd.release(data, SecondMoments(), budget=budget, noise=simulated(seed))
            assert bought.effective_samples > n / 2 and bought.warnings == ()
            run = jaxcd.search(bought)
            assert run.graph.adjacent("two", "height") and "warnings" not in run.info

    def test_a_constant_and_coarse_bins_have_the_scale_of_a_bin(self):
        rng = np.random.default_rng(0)
        values = np.column_stack([np.full(5_000, 3.0), 5_000 + rng.normal(size=5_000)])
        domain = Domain({"a": Numeric(0, 256), "b": Numeric()})
        accountant = Accountant(jaxcd.privacy.Ledger(BUDGET), simulated())
        door = Door(Dataset.from_array(values, domain=domain), BUDGET)
        centres, scales = bought_units(door, accountant, rho=0.01)
        assert centres[0] == 3.5 and scales[0] == pytest.approx(0.5 / 0.674, rel=1e-3)
        assert 100 < scales[1] < 1_000 and abs(centres[1] - 5_000) < 1_000

    def test_a_search_says_where_the_numbers_are_worth_few_rows(self):
        rng, n = np.random.default_rng(0), 5_000
        rare = (rng.random(n) < 0.97).astype(float)
        other = rare + rng.normal(size=n)
        bought = SecondMoments().release(
            measured(np.column_stack([rare, other])), budget=BUDGET, noise=simulated()
        )
        (words,) = bought.warnings
        assert "one is rare" in words and "Features" in words and '"bins"' in words
        for run in (
            jaxcd.search(bought),
            jaxcd.search(bought, algorithm="pc"),
            jaxcd.search(bought, algorithm="gfci"),
        ):
            assert words in run.info["warnings"]
        first, second = bought.names
        told = jaxcd.effect(bought, treatment=first, outcome=second)
        assert told.warnings == (words,) and told.to_json_dict()["warnings"] == [words]
        loud = jaxcd.Budget(0.01, 1e-6)  # noise hides all: few rows were to be expected
        values = rng.normal(size=(500, 2))
        bought = SecondMoments().release(measured(values), budget=loud, noise=simulated())
        assert bought.effective_samples < 100 and bought.warnings == ()

    def test_a_search_says_where_few_rows_are_within_the_scales(self):
        """Columns without bounds in units that their histograms do not reach: all rows are far."""
        values = 1e9 * np.random.default_rng(0).normal(size=(2_000, 4))
        for domain, warned in (
            ({f"v{j}": Numeric() for j in range(4)}, True),
            ({f"v{j}": Numeric(-9e9, 9e9) for j in range(4)}, False),
        ):
            data = Dataset.from_array(values, domain=Domain(domain))
            for budget in (jaxcd.NO_PRIVACY, jaxcd.Budget(4.0, 1e-6)):
                bought = jaxcd.release(data, SecondMoments(), budget=budget, noise=simulated())
                assert bool(bought.warnings) == warned
                if warned:
                    assert "declare bounds" in bought.warnings[0]


class TestFile:
    def test_save_and_load(self, tmp_path):
        values = chain(300, np.random.default_rng(0))
        release = SecondMoments().release(measured(values), budget=BUDGET, noise=simulated())
        loaded = Release.load(release.save(tmp_path / "moments.npz"))
        assert isinstance(loaded, ReleasedSecondMoments)
        np.testing.assert_array_equal(loaded.covariance, release.covariance)
        for part in ("cost", "spent", "domain", "charges", "sigma", "rate"):
            assert getattr(loaded, part) == getattr(release, part)
        assert loaded.effective_samples == release.effective_samples
        refused(DomainError, "other variables", loaded.check_names, ["y"])

    def test_a_damaged_file_is_refused(self, tmp_path):
        release = SecondMoments().release(
            measured(chain(300, np.random.default_rng(0))), budget=BUDGET, noise=simulated()
        )
        path = release.save(tmp_path / "moments.npz")
        arrays = dict(np.load(path))
        arrays["factor"] = arrays["factor"][:2]
        np.savez(path, **arrays)
        refused(FormatError, "damaged", ReleasedSecondMoments.load, path)

    def test_it_does_not_print_its_numbers(self):
        release = SecondMoments().release(
            measured(chain(300, np.random.default_rng(0))), budget=BUDGET, noise=simulated()
        )
        assert "array" not in repr(release) and "4 columns" in repr(release)


class TestErrors:
    def test_options(self):
        for options, word in (
            ({"centres": {"a": 0.0}}, "scales"),
            ({"scales": {"a": 1.0}}, "centres"),
            ({"centres": {"a": 0.0}, "scales": {"a": 0.0}}, "scales"),
            ({"centres": {"a": math.nan}, "scales": {"a": 1.0}}, "centres"),
            ({"centres": [0.0], "scales": [1.0]}, "mapping"),
            ({"shares": ()}, "shares"),
            ({"shares": (0.5, -1.0)}, "shares"),
            ({"shares": (math.nan,)}, "shares"),
            ({"scale_share": 1.0}, "scale_share"),
            ({"scale_share": math.nan}, "scale_share"),
        ):
            refused(OptionError, word, SecondMoments, **options)

    def test_centres_of_other_columns(self):
        data = measured(chain(300, np.random.default_rng(0)))
        with pytest.raises(OptionError, match="missing.*x1.*unknown.*y"):
            SecondMoments(centres={"y": 0.0}, scales={"y": 1.0}).release(data, budget=BUDGET)

    def test_columns_that_are_not_numeric(self):
        domain = Domain({"a": Numeric(), "b": Categorical(("u", "v"))})
        data = Dataset.from_array([[0.5, "u"], [1.5, "v"]], domain=domain)
        refused(DomainError, "'b'.*not numeric", SecondMoments().release, data, budget=BUDGET)

    def test_values_that_are_no_numbers_do_not_come_so_far(self):
        values = np.array([[0.0, math.nan], [1.0, 2.0]])
        assert np.isfinite(measured(values).numeric).all()
        with pytest.raises(DataError):
            jaxcd.Dataset(measured(values).domain, np.empty((2, 0), dtype=np.int32), values)

    @pytest.mark.parametrize("budget", [None, 1.0, jaxcd.Budget(1.0)])
    def test_budgets(self, budget):
        with pytest.raises(OptionError, match="budget"):
            SecondMoments().release(measured(chain(300, np.random.default_rng(0))), budget=budget)

    def test_an_inferred_domain(self):
        data = measured(chain(300, np.random.default_rng(0)), declared=False)
        refused(PrivacyError, "inferred", SecondMoments().release, data, budget=BUDGET)

    def test_mechanisms_refuse_it(self):
        data = measured(chain(300, np.random.default_rng(0)))
        release = SecondMoments().release(data, budget=BUDGET, noise=simulated())
        with pytest.raises(OptionError, match="has been paid for"):
            jaxcd.pc(
                release,
                test=jaxcd.FisherZ(),
                decider=jaxcd.NoisyThreshold(),
                budget=BUDGET,
                key=None,
            )

    @pytest.mark.parametrize(
        "budget", [BUDGET, jaxcd.NO_PRIVACY, jaxcd.Budget(1e-3, 1e-6)], ids=str
    )
    def test_degenerate_columns_are_no_error(self, budget):
        values = chain(100, np.random.default_rng(0))
        values[:, 1] = 3.0
        values[:, 3] = 2 * values[:, 0]
        release = SecondMoments().release(measured(values), budget=budget, noise=simulated())
        answers = PreparedMoments(release).partial_correlations(
            np.array([[0, 2, 1, 3], [0, 3, 1, 2]])
        )
        assert np.isfinite(answers).all()
        assert np.linalg.eigvalsh(release.correlation).min() > 0
