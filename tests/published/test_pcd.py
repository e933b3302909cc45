"""PCD against dense formulas, the counterexamples to its sensitivity and its privacy, and its
account.
"""

from __future__ import annotations

import itertools
import math

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from jaxcd import Categorical, Dataset, Domain, Numeric
from jaxcd.citests import Query
from jaxcd.data import structural
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import gram, hsic, ridge
from jaxcd.ops.precision import double_precision
from jaxcd.published.pcd import PCDRun, pcd, pcd_sweep
from jaxcd.published.pcd_bounds import (
    PermutationEvidence,
    claimed_residual_hsic_sensitivity,
    claimed_residual_sensitivity,
    deletion_probability,
    kusner_hsic_sensitivity,
)
from jaxcd.published.pcd_rcit import PublishedColumns, PublishedRCIT, median_gap
from tests.helpers import numbers, refused

ALPHA = 0.05
DAG = nx.DiGraph([(f"z{i}", node) for i in range(3) for node in "xy"])


def dataset(n: int = 300, seed: int = 0, dag: nx.DiGraph = DAG) -> Dataset:
    return structural.nonlinear_sem(dag, key=jax.random.key(seed)).sample(
        n, key=jax.random.key(100 + seed)
    )


def dense_kernel(values: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-(squareform(pdist(values.reshape(len(values), -1))) ** 2) / (2 * bandwidth**2))


def dense_statistics(
    columns: PublishedColumns, query: Query, permutations: np.ndarray, penalty: float | None = None
) -> np.ndarray:
    """T_0 and the permuted statistics from n x n matrices; lambda = 1, or this much added to the
    diagonal.
    """
    m = columns.n_samples
    added = m / 2 if penalty is None else penalty
    kernels = []
    for target in (query.x, query.y):
        residual = columns._values[:, target]
        if query.given:
            z = columns._values[:, list(query.given)]
            gram_z = dense_kernel(z, float(np.median(pdist(z))))
            residual = added * np.linalg.solve(gram_z + added * np.eye(m), residual)
        kernels.append(dense_kernel(residual, float(np.median(pdist(residual[:, None])))))
    centre = np.eye(m) - 1 / m
    left = centre @ kernels[0] @ centre
    orders = [np.arange(m), *permutations]
    return np.array([np.sum(left * kernels[1][np.ix_(p, p)]) for p in orders]) / (m - 1) ** 2


# The statistic
# --------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(st.integers(-6, 6).map(float), min_size=2, max_size=30),
    st.sampled_from([1.0, 1e-3, math.pi]),
)
def test_median_gap_is_the_median_distance(values, unit):
    values = np.array(values) * unit
    gaps = np.sort(pdist(values[:, None]))
    lower_median = gaps[(len(gaps) - 1) // 2]
    positive = gaps[gaps > 0]
    if not lower_median > 0:
        lower_median = positive[(len(positive) - 1) // 2] if len(positive) else 1.0
    assert median_gap(values) == pytest.approx(lower_median, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("given_names", [(), ("z0",), ("z0", "z1", "z2")])
def test_statistic_and_pvalue_are_the_dense_ones(given_names):
    data = dataset(300, seed=4)
    columns = PublishedRCIT(n_permutations=20).prepare(data, key=jax.random.key(1))
    query = Query.of(
        *(data.names.index(v) for v in "xy"), [data.names.index(v) for v in given_names]
    )
    evidence = columns.evidence(query)
    observed, *permuted = dense_statistics(columns, query, columns._permutations)
    permuted = np.array(permuted)
    # tails beyond 64 bandwidths are moved
    assert evidence.statistic == pytest.approx(observed, rel=5e-3)
    near = np.mean(np.abs(permuted - observed) <= 0.01 * observed)
    assert abs(evidence.pvalue - np.mean(permuted >= observed)) <= near
    reach = 2 * evidence.statistic_sensitivity
    near = np.mean(np.abs(permuted - observed + reach) <= 0.01 * observed)
    assert abs(evidence.bound - np.mean(permuted >= observed - reach)) <= near


def test_residuals_are_the_exact_ridge_residuals():
    data = dataset(300, seed=2)
    columns = PublishedRCIT(penalty=0.5).prepare(data, key=jax.random.key(0))
    z = columns._values[:, [0, 2, 3]]
    with double_precision():
        matrix = np.array(gram.gaussian_gram(z, z, float(np.median(pdist(z)))))
        exact = ridge.exact_residuals(
            matrix, columns._values[:, [1]], ridge.penalty_of_objective(0.5, 300)
        )
    np.testing.assert_allclose(columns.residual(1, (0, 2, 3)), np.asarray(exact)[:, 0], atol=1e-5)
    assert (columns.residual(1, ()) == columns._values[:, 1]).all()


def test_the_other_reading_of_lambda_is_k_plus_i():
    columns = PublishedRCIT(ridge=1.0).prepare(dataset(200), key=jax.random.key(0))
    query = Query.of(0, 1, (2, 3))
    dense = dense_statistics(columns, query, columns._permutations, penalty=1.0)
    found = columns.evidence(query)
    assert found.statistic == pytest.approx(dense[0], rel=2e-3)
    assert abs(found.pvalue - np.mean(dense[1:] >= dense[0])) <= 0.02
    usual = PublishedRCIT().prepare(dataset(200), key=jax.random.key(0)).evidence(query)
    # The residuals, and so their bandwidths, differ; the bound keeps lambda = 1.
    assert abs(usual.statistic - found.statistic) > 0.05 * found.statistic
    assert 0.5 < found.statistic_sensitivity / usual.statistic_sensitivity < 2


def test_calibrated_without_a_conditioning_set_and_rejects_true_nulls_with_one():
    """H5: at lambda = 1 the residuals of two children of z stay dependent."""
    dag = nx.DiGraph([("z", "x"), ("z", "y")])
    dag.add_node("w")
    pvalues: dict[str, list[float]] = {"empty": [], "z": []}
    for seed in range(30):
        model = structural.nonlinear_sem(
            dag, key=jax.random.key(seed), functions=("tanh",), noise=0.5
        )
        data = model.sample(300, key=jax.random.key(seed))
        w, x, y, z = (data.names.index(v) for v in "wxyz")
        columns = PublishedRCIT(n_permutations=20).prepare(data, key=jax.random.key(seed))
        pvalues["empty"].append(columns.evidence(Query.of(w, x)).pvalue)
        pvalues["z"].append(columns.evidence(Query.of(x, y, [z])).pvalue)
    assert stats.kstest(pvalues["empty"], "uniform").pvalue > 1e-3
    assert np.mean(np.array(pvalues["z"]) < ALPHA) > 0.8


def test_evaluation_agrees_with_the_decision():
    data = dataset()
    test = PublishedRCIT(n_permutations=20)
    columns = test.prepare(data, key=jax.random.key(0))
    queries = [Query.of(x, y) for x, y in itertools.combinations(range(5), 2)]
    found = columns.evaluate((), queries, alpha=ALPHA)
    evidence = [columns.evidence(query) for query in queries]
    assert columns.n_evaluated == len(queries)
    np.testing.assert_allclose(np.exp(found.log_pvalue), [e.pvalue for e in evidence])
    assert [m > 0 for m in found.margin] == [e.pvalue < ALPHA for e in evidence]


# Bounds and noise
# --------------------------------------------------------------------------------------------------

probabilities = st.integers(0, 100).map(lambda count: count / 100)


@given(probabilities, probabilities, st.floats(0.05, 20))
def test_deletion_probability_is_that_of_laplace_noise(p, b, epsilon):
    evidence = PermutationEvidence(0.1, min(p, b), max(p, b), 0.01)
    probability = deletion_probability(evidence, alpha=ALPHA, epsilon=epsilon)
    scale = 4 * (max(p, b) - min(p, b)) / epsilon
    assert evidence.noise_scale(epsilon) == pytest.approx(scale)
    if max(p, b) < ALPHA:
        assert probability == 0
    elif scale == 0:
        assert probability == 1
    else:
        assert probability == pytest.approx(stats.laplace.sf(ALPHA - min(p, b), scale=scale))


@pytest.mark.parametrize("m", [50, 1000, 100_000])
def test_bounds_are_the_published_ones(m):
    assert claimed_residual_sensitivity(m) == 8 / m
    assert claimed_residual_hsic_sensitivity(m, bandwidth_x=0.5, bandwidth_y=0.5) == pytest.approx(
        2048 / (m - 1) ** 2
    )
    ratio = claimed_residual_sensitivity(m, penalty=0.25) / claimed_residual_sensitivity(m)
    assert ratio == pytest.approx(0.25**-1.5)
    assert kusner_hsic_sensitivity(m) == pytest.approx((12 * m - 11) / (m - 1) ** 2)


def clusters_hsic(n_same: list[int], bandwidth: float) -> float:
    """HSIC_b of ridge residuals (lambda = 1, Z constant) of a table: counts of (-1, -1), (1, 1) and
    (1, -1).

    With Z constant the fit is two thirds of the mean, so the residuals are two points at distance 2
    and HSIC is (1 - k(2))^2 times that of indicators, 4 cov^2.
    """
    weights = np.array(n_same) / sum(n_same)
    x, y = np.array([-1.0, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
    covariance = weights @ (x * y) - (weights @ x) * (weights @ y)
    m = sum(n_same)
    return (1 - math.exp(-2 / bandwidth**2)) ** 2 * covariance**2 / 4 * (m / (m - 1)) ** 2


def test_the_table_formula_is_the_statistic():
    """The closed form of the counterexample equals what the test computes, to its accuracy."""
    counts = [66, 33, 1]
    values = np.repeat([[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0]], counts, axis=0)
    columns = PublishedColumns(
        values, PublishedRCIT(bandwidth=1.0), permutations=np.arange(100)[None, :]
    )
    assert columns.residual(0, (2,)) == pytest.approx(values[:, 0] - 2 / 3 * values[:, 0].mean())
    assert columns.evidence(Query.of(0, 1, (2,))).statistic == pytest.approx(
        clusters_hsic(counts, 1.0), rel=1e-6
    )


@pytest.mark.parametrize(
    ("m", "bandwidth", "change", "claim", "ratio"),
    [
        (1000, 1.0, 8.87e-4, 5.13e-4, 1.7),
        (2000, 1.0, 4.43e-4, 1.28e-4, 3.5),
        (10_000, 1.0, 8.86e-5, 5.12e-6, 17),
        (100_000, 1.0, 8.86e-6, 5.12e-8, 173),
        (10_000, 0.5, None, None, 5.8),
        (100_000, 0.5, None, None, 58),
    ],
)
def test_the_statistic_moves_more_than_equation_3_allows(m, bandwidth, change, claim, ratio):
    """PRIVACY.md F1: two clusters, one record (1, 1) -> (1, -1)."""
    ones = m // 3
    true_change = abs(
        clusters_hsic([m - ones, ones, 0], bandwidth)
        - clusters_hsic([m - ones, ones - 1, 1], bandwidth)
    )
    claimed = claimed_residual_hsic_sensitivity(m, bandwidth_x=bandwidth, bandwidth_y=bandwidth)
    if change is not None:
        assert true_change == pytest.approx(change, rel=5e-3) and claimed == pytest.approx(
            claim, rel=5e-3
        )
    assert true_change / claimed == pytest.approx(ratio, rel=0.04)


def test_the_replaced_residual_moves_more_than_theorem_2_allows():
    m = 1000
    values = np.repeat([[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]], [667, 333], axis=0)
    neighbour = values.copy()
    neighbour[-1, 1] = -1.0
    identity = np.arange(m)[None, :]
    first, second = (
        PublishedColumns(v, PublishedRCIT(), permutations=identity).residual(1, (2,))
        for v in (values, neighbour)
    )
    shift = np.abs(first - second)
    assert shift[-1] > 1.99 > 200 * claimed_residual_sensitivity(m)
    assert shift[:-1].max() <= claimed_residual_sensitivity(m)


def test_median_bandwidths_break_the_statistics_bound():
    """PRIVACY.md D4: one record moves the median distance from the fine scale to the coarse one."""
    m, in_first = 1000, 516
    cluster = np.repeat([0.0, 1.0], [in_first, m - in_first])
    other = np.random.default_rng(0).permutation(cluster)
    fine = np.where(np.arange(m) % 2 == 0, 1.0, -1.0) * 1e-3
    values = np.column_stack([cluster + fine, other + fine])
    moved = values.copy()
    gaps = [median_gap(values[:, 0])]
    for row in range(in_first):  # records go over to the second cluster until the median jumps
        moved[row] += 1 - np.round(moved[row])
        gaps.append(median_gap(moved[:, 0]))
        if gaps[-1] > 0.5 > gaps[-2]:
            break
    assert gaps[-1] > 100 * gaps[-2]


# Not private
# --------------------------------------------------------------------------------------------------


def binary_pair(j: int) -> tuple[np.ndarray, np.ndarray]:
    """Two fair bits of 1000 records, equal in the first j and independent after; and 100
    permutations, all of seed 0.
    """
    rng = np.random.default_rng(0)
    permutations = np.stack([np.argsort(rng.permutation(1000)) for _ in range(100)])
    x, y = rng.integers(0, 2, 1000), rng.integers(0, 2, 1000)
    y[:j] = x[:j]
    return np.column_stack([x, y]).astype(float), permutations


def columns_of(j: int) -> PublishedColumns:
    values, permutations = binary_pair(j)
    return PublishedColumns(2 * values - 1, PublishedRCIT(bandwidth=1.0), permutations=permutations)


def test_neighbours_of_which_one_never_deletes():
    """PRIVACY.md G: no finite epsilon bounds P[delete | D] / P[delete | D'] where one of them is
    0.
    """
    assert (binary_pair(385)[0] != binary_pair(386)[0]).any(axis=1).sum() == 1
    noisy, silent = (columns_of(j).evidence(Query(0, 1)) for j in (385, 386))
    assert (noisy.statistic, silent.statistic) == pytest.approx((0.02480, 0.02507), abs=5e-6)
    assert noisy.pvalue == silent.pvalue == 0
    assert (noisy.bound, silent.bound) == (0.07, 0.03)
    for epsilon, least in ((8.0, 0.087), (1.0, 0.415), (0.1, 0.485)):
        assert deletion_probability(noisy, alpha=ALPHA, epsilon=epsilon) >= least
        assert deletion_probability(silent, alpha=ALPHA, epsilon=epsilon) == 0


def test_the_run_itself_shows_it():
    answers = {}
    for j in (385, 386):
        columns = columns_of(j)
        runs = [
            PCDRun(columns, alpha=ALPHA, epsilon=1.0, stream=np.random.default_rng(s))
            for s in range(400)
        ]
        answers[j] = [run.separates(Query(0, 1)) for run in runs]
        # the total tells the two apart as well
        assert {run.total for run in runs} == {1.0 if j == 385 else 0.0}
    assert not any(answers[386])
    expected = deletion_probability(columns_of(385).evidence(Query(0, 1)), alpha=ALPHA, epsilon=1.0)
    assert np.mean(answers[385]) == pytest.approx(expected, abs=0.1)


def test_is_not_proved_and_says_why():
    run = pcd(dataset(), epsilon=1.0, key=jax.random.key(0), max_level=0, n_permutations=20)
    for cost in (run.cost, run.spent):
        assert not cost.proven and "without noise" in cost.reason
        assert "depends on the data" in cost.reason
    assert run.info["secure_noise"] is False and not run.exhausted
    assert run.cost.epsilon == run.info["n_noisy"] * 1.0 == run.info["total_epsilon"] > 0


# The search
# --------------------------------------------------------------------------------------------------


def sequential(
    data: Dataset, key: jax.Array, epsilon: float, max_level: int
) -> tuple[dict, int, int]:
    """Algorithm 1 over PC in its original order, one question after the other."""
    permutation_key, noise_key = jax.random.split(key)
    columns = PublishedRCIT(n_permutations=20).prepare(data, key=permutation_key)
    words = np.asarray(jax.random.key_data(noise_key)).ravel().tolist()
    stream = np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))
    d = data.n_columns
    neighbours = {i: set(range(d)) - {i} for i in range(d)}
    sets, n_tests, n_noisy = {}, 0, 0
    for level in range(max_level + 1):
        for i, j in itertools.permutations(range(d), 2):
            if j not in neighbours[i]:
                continue
            for conditioning in itertools.combinations(sorted(neighbours[i] - {j}), level):
                evidence = columns.evidence(Query.of(i, j, conditioning))
                n_tests += 1
                if evidence.bound < ALPHA:
                    continue
                n_noisy += 1
                if (
                    evidence.pvalue
                    + stream.laplace(0, 4 * (evidence.bound - evidence.pvalue) / epsilon)
                    >= ALPHA
                ):
                    neighbours[i].discard(j)
                    neighbours[j].discard(i)
                    sets[frozenset((data.names[i], data.names[j]))] = tuple(
                        data.names[v] for v in conditioning
                    )
                    break
    return sets, n_tests, n_noisy


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "epsilon"), [(0, 1.0), (1, 20.0)])
def test_is_the_sequential_algorithm(seed, epsilon):
    data = dataset(300, seed=seed)
    run = pcd(data, epsilon=epsilon, key=jax.random.key(seed), max_level=1, n_permutations=20)
    sets, n_tests, n_noisy = sequential(data, jax.random.key(seed), epsilon, 1)
    assert dict(run.separating_sets) == sets and len(sets) >= 3
    assert (run.info["n_tests"], run.info["n_noisy"]) == (n_tests, n_noisy)
    assert run.cost.epsilon == pytest.approx(n_noisy * epsilon)


def test_a_sweep_over_prices_is_a_run_at_each():
    data, key, epsilons = dataset(200), jax.random.key(4), (0.3, 8.0, 0.3)
    found = pcd_sweep(data, epsilons=epsilons, key=key, max_level=1)
    for epsilon, result in zip(epsilons, found, strict=True):
        alone = pcd(data, epsilon=epsilon, key=key, max_level=1)
        assert result.graph == alone.graph and result.separating_sets == alone.separating_sets
        assert result.cost == alone.cost
        assert {k: v for k, v in result.info.items() if k != "n_distinct_tests"} == {
            k: v for k, v in alone.info.items() if k != "n_distinct_tests"
        }
    refused(OptionError, "epsilon", pcd_sweep, data, epsilons=(1.0, 0.0), key=key)


def test_reproducible_and_stable_order():
    data = dataset()
    first, again, other = (
        pcd(data, epsilon=1.0, key=jax.random.key(s), max_level=0, n_permutations=20)
        for s in (1, 1, 2)
    )
    assert first.graph == again.graph and dict(first.info) == dict(again.info)
    assert dict(first.separating_sets) != dict(other.separating_sets)
    stable = pcd(
        data, epsilon=1.0, key=jax.random.key(1), max_level=0, n_permutations=20, stable=True
    )
    assert stable.info["n_tests"] == 10 < first.info["n_tests"]  # each pair once


def test_constant_columns_have_a_defined_result():
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=300), np.full(300, 0.1), rng.normal(size=300)])
    data = Dataset(numbers("abc"), np.empty((300, 0), dtype=np.int32), values)
    columns = PublishedRCIT(n_permutations=20).prepare(data, key=jax.random.key(0))
    for query in (Query(0, 1), Query(0, 1, (2,)), Query(0, 2, (1,))):
        evidence = columns.evidence(query)
        assert math.isfinite(evidence.statistic) and 0 <= evidence.pvalue <= evidence.bound <= 1
        assert 1 not in (query.x, query.y) or (evidence.statistic, evidence.pvalue) == (0, 1)
    run = pcd(data, epsilon=1.0, key=jax.random.key(0), n_permutations=20)
    assert not run.graph.adjacent("a", "b") and not run.graph.adjacent("b", "c")


def test_declared_bounds_scale_the_columns():
    domain = Domain({"a": Numeric(-4, 4), "b": Numeric()})
    values = np.column_stack([[-2.0, 0.0, 1.0, 2.0, 4.0], [3.0, 4.0, 5.0, 6.0, 7.0]])
    data = Dataset(domain, np.empty((5, 0), dtype=np.int32), values)
    scaled = PublishedRCIT().prepare(data, key=jax.random.key(0))._values
    assert sorted(scaled[:, 0]) == pytest.approx([-0.5, 0, 0.25, 0.5, 1])
    assert sorted(scaled[:, 1]) == pytest.approx([-1, -0.5, 0, 0.5, 1])
    np.testing.assert_allclose(sorted(4 * scaled[:, 0]), np.sort(values[:, 0]))


def test_dense_reference_is_the_librarys():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 40))
    k, kernel = dense_kernel(x, 1.0), dense_kernel(y, 0.7)
    with double_precision():
        assert float(
            hsic.hsic_dense(jax.numpy.asarray(k), jax.numpy.asarray(kernel))
        ) == pytest.approx(
            np.trace(k @ (np.eye(40) - 1 / 40) @ kernel @ (np.eye(40) - 1 / 40)) / 1600
        )


def test_wrong_data():
    refused(DomainError, "4 rows", pcd, dataset(3), epsilon=1.0, key=jax.random.key(0))
    domain = Domain({"a": Categorical(("u", "v")), "b": Numeric()})
    data = Dataset(domain, np.zeros((9, 1), dtype=np.int32), np.arange(9.0)[:, None])
    refused(DomainError, "categorical", pcd, data, epsilon=1.0, key=jax.random.key(0))
    refused(OptionError, "None", pcd, None, epsilon=1.0, key=jax.random.key(0))
    refused(OptionError, "key", PublishedRCIT().prepare, dataset(20))
