"""The Gaussian score: against least squares, score-equivalent, and what searches on a release
return.
"""

from __future__ import annotations

import math

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.data import Dataset, Domain, Numeric
from jaxcd.discovery.released import search_second_moments
from jaxcd.errors import OptionError
from jaxcd.graphs import dag_to_cpdag
from jaxcd.releases import GaussianScore, Release, ReleasedSecondMoments, SecondMoments
from tests.brute_force import all_dags, class_totals
from tests.helpers import refused, simulated

BUDGET = jaxcd.Budget(epsilon=1.0, delta=1e-6)
DAG = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")])


def data(n: int = 20_000, seed: int = 0) -> Dataset:
    return jaxcd.data.structural.linear_gaussian_sem(DAG, key=jax.random.key(3)).sample(
        n, key=jax.random.key(seed)
    )


def release(n: int = 20_000, budget=BUDGET) -> ReleasedSecondMoments:
    return SecondMoments().release(data(n), budget=budget, noise=simulated(1))


class TestScore:
    def test_local_is_the_residual_variance_of_least_squares(self):
        found = release()
        score, c = GaussianScore(found, penalty=3.0), found.correlation
        rows = found.effective_samples
        for node, parents in ((0, ()), (2, (0, 1)), (4, (0, 1, 3))):
            p = list(parents)
            residual = c[node, node] - c[node, p] @ np.linalg.pinv(c[np.ix_(p, p)]) @ c[p, node]
            expected = -rows / 2 * math.log(residual) - 1.5 * math.log(rows) * len(p)
            assert score.local(node, parents) == pytest.approx(expected, abs=1e-9)

    def test_it_is_score_equivalent_and_distinguishes_classes(self):
        score = GaussianScore(release(2000))
        full = np.pad(all_dags(3), ((0, 0), (1, 1), (1, 1)))
        totals = class_totals(score, full, tolerance=1e-8)
        assert len(totals) == len({round(total, 6) for total in totals}) == 11

    def test_without_noise_it_is_the_bic_of_the_data(self):
        found = release(budget=jaxcd.NO_PRIVACY)
        assert 0.9 * 20_000 < found.effective_samples < 20_000
        values = np.column_stack([data().values(name) for name in data().names])
        values = (values - values.mean(axis=0)) / values.std(axis=0)
        score = GaussianScore(found)
        for node, parents in ((2, (0, 1)), (3, (2,))):
            fit = np.linalg.lstsq(values[:, list(parents)], values[:, node], rcond=None)[0]
            variance = np.var(values[:, node] - values[:, list(parents)] @ fit)
            gain = score.local(node, parents) - score.local(node, ())
            price = len(parents) * math.log(found.effective_samples)
            assert (gain + price) / (found.effective_samples / 2) == pytest.approx(
                -math.log(variance), abs=0.02
            )

    def test_candidates_are_the_strongest_partial_correlations(self):
        score = GaussianScore(release(), n_candidates=2)
        assert score.candidates(4)[-1] == 3 and all(len(score.candidates(v)) == 2 for v in range(5))
        assert all(
            v not in GaussianScore(release(2000), n_candidates=99).candidates(v) for v in range(5)
        )

    @pytest.mark.parametrize(
        "options",
        [{"penalty": 0.0}, {"penalty": math.nan}, {"n_candidates": 0}, {"max_parents": -1}],
    )
    def test_options(self, options):
        refused(OptionError, next(iter(options)), GaussianScore, release(2000), **options)
        refused(OptionError, "release", GaussianScore, data(100))


class TestSearches:
    def test_both_find_the_graph_and_carry_the_cost(self, tmp_path):
        found = release()
        truth = dag_to_cpdag(DAG).reordered(found.names)
        by_tests = jaxcd.pc(
            found, test=jaxcd.FisherZ(), decider=jaxcd.Threshold(0.01), key=None, max_level=3
        )
        for run in (search_second_moments(found), by_tests):
            assert run.graph == truth
            assert run.cost == found.cost and run.spent == found.spent
            assert run.info["n_samples"] == 20_000
            assert (
                math.fsum(row["rho"] for row in run.info["ledger"])
                <= jaxcd.privacy.Ledger(BUDGET).rho_limit
            )
            assert run.save(tmp_path / run.info["algorithm"]).is_dir()

    def test_a_loaded_release_gives_the_same(self, tmp_path):
        found = release(2000)
        loaded = Release.load(found.save(tmp_path / "moments"))
        assert search_second_moments(loaded).graph == search_second_moments(found).graph
        assert (
            search_second_moments(loaded).info["score"]
            == search_second_moments(found).info["score"]
        )

    def test_nothing_is_found_in_noise(self):
        rng = np.random.default_rng(0)
        domain = Domain({f"x{i}": Numeric(-10, 10) for i in range(6)})
        n_edges = []
        for seed in range(10):
            independent = Dataset.from_array(rng.normal(size=(1000, 6)), domain=domain)
            found = SecondMoments().release(independent, budget=BUDGET, noise=simulated(seed))
            n_edges.append(int(search_second_moments(found).graph.adjacency.sum()) // 2)
        assert sum(n_edges) <= 2  # of 150 pairs

    def test_nothing_is_found_where_noise_leaves_less_than_a_row(self):
        """log N is taken of at least 8 rows: at one row and less an edge would cost nothing."""
        rng = np.random.default_rng(4)
        independent = Dataset.from_array(
            rng.normal(size=(1000, 6)), domain=Domain({f"x{i}": Numeric() for i in range(6)})
        )
        for epsilon in (0.2, 0.1, 0.01):
            found = SecondMoments().release(
                independent, budget=jaxcd.Budget(epsilon, 1e-6), noise=simulated(5)
            )
            assert found.effective_samples < 1
            assert (
                search_second_moments(found).graph.n_edges
                == jaxcd.ges(found, score=jaxcd.BIC()).graph.n_edges
                == 0
            )

    def test_another_thing_than_a_release(self):
        refused(OptionError, "release", search_second_moments, data(100))

    def test_many_variables_are_searched_by_orderings(self):
        rng = np.random.default_rng(0)
        n, p = 4000, 22
        values = rng.normal(size=(n, p))
        for child in range(1, p):  # a tree: every column has one earlier one as its parent
            values[:, child] += (child % 2 + 0.7) * values[:, (child - 1) // 3]
        truth = nx.DiGraph([(f"x{(child - 1) // 3:02}", f"x{child:02}") for child in range(1, p)])
        domain = Domain({f"x{v:02}": Numeric() for v in range(p)})
        found = SecondMoments().release(
            Dataset.from_array(values, domain=domain), budget=jaxcd.NO_PRIVACY
        )
        run = search_second_moments(found, n_candidates=8, max_parents=3)
        assert not run.info["exact"]
        assert run.graph == dag_to_cpdag(truth).reordered(found.names)
