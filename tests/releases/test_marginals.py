"""Released marginals: interactions, sensitivities by brute force, the price, the noise, an audit,
choices, the file, refusals.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import jaxcd
from jaxcd.errors import DomainError, FormatError, OptionError, PrivacyError
from jaxcd.ops import interactions as ops
from jaxcd.ops import moments
from jaxcd.privacy import NO_PRIVACY, Budget, epsilon_lower_bound
from jaxcd.releases import Histogram, LogLinear, Marginals, Release, ReleasedMarginals
from jaxcd.releases.tables import marginal_purchase, marginal_screen, marginals
from jaxcd.releases.tables.marginal_purchase import MarginalsNoise
from jaxcd.releases.tables.pair_tables import PairTables, shifted_deviance
from tests.helpers import SEEDS, coded, levelled, refused, simulated

CARDINALITIES = [(2, 2), (2, 3), (2, 2, 2), (2, 3, 4), (3, 3, 3), (2, 2, 2, 2), (2, 3, 2, 3)]


domain = functools.partial(levelled, kind=jaxcd.Categorical)
dataset = functools.partial(coded, kind=jaxcd.Categorical)


def chain(n: int, *, seed: int, d: int = 5, keep: float = 0.8) -> np.ndarray:
    """v0 -> v1 -> ...: each copies the one before it with probability ``keep``."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n, d))
    for j in range(1, d):
        rows[:, j] = np.where(rng.random(n) < keep, rows[:, j - 1], rows[:, j])
    return rows


def counts(
    rows: np.ndarray, columns: tuple[int, ...], cardinalities: tuple[int, ...]
) -> np.ndarray:
    table = np.zeros([cardinalities[j] for j in columns])
    for row in rows:
        table[tuple(row[list(columns)])] += 1
    return table


def one_row(
    record: tuple[int, ...], columns: tuple[int, ...], cardinalities: tuple[int, ...]
) -> np.ndarray:
    """R_S of a single row, by its definition: the tensor product of rows of the contrast bases."""
    result = np.ones(())
    for j in columns:
        result = np.multiply.outer(result, moments.contrast_basis(cardinalities[j])[record[j]])
    return result


def test_tables_come_back_from_interactions():
    rng = np.random.default_rng(1)
    k = (2, 3, 4)
    rows = np.stack([rng.integers(0, r, 300) for r in k], axis=1)
    tables = {s: counts(rows, s, k) for s in ops.subsets((0, 1, 2))}
    parts = {s: ops.interaction(table) for s, table in tables.items()}
    assert np.allclose(parts[0, 1, 2], sum(one_row(tuple(row), (0, 1, 2), k) for row in rows))
    for s, table in tables.items():
        assert np.allclose(ops.table_of_interactions(s, k, 300, parts.__getitem__), table)


@pytest.mark.parametrize("k", CARDINALITIES)
def test_sensitivity_of_one_interaction_by_brute_force(k: tuple[int, ...]):
    columns = tuple(range(len(k)))
    values = [one_row(record, columns, k) for record in itertools.product(*map(range, k))]
    largest = max(float(np.sum((a - b) ** 2)) for a in values for b in values)
    assert ops.interaction_sensitivity_squared(k) == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("k", CARDINALITIES)
def test_no_neighbours_exceed_the_sensitivities_of_the_rounds(k: tuple[int, ...]):
    rng = np.random.default_rng(len(k))
    records = list(itertools.product(*map(range, k)))
    sets = ops.subsets(tuple(range(len(k))))

    def largest(weights: dict[tuple[int, ...], float]) -> float:
        vectors = np.array(
            [
                np.concatenate([one_row(r, s, k).ravel() * w for s, w in weights.items()])
                for r in records
            ]
        )
        return max(float(np.linalg.norm(vectors - vector, axis=1).max()) for vector in vectors)

    pairs = {s: 1.0 for s in sets if len(s) <= 2}
    assert largest(pairs) == pytest.approx(moments.contrast_sensitivity(k, 1.0), rel=1e-9)
    for _ in range(3):
        weights = {s: float(rng.uniform(0.1, 1)) for s in sets if len(s) >= 2}
        exact = largest(weights)
        assert exact <= marginal_purchase.interactions_sensitivity(k, weights) <= exact * (1 + 1e-9)


def test_the_largest_changes_of_single_sets_do_not_occur_together():
    """All pairs of binary columns: the largest sum is a largest cut, half of what the single pairs
    add up to.
    """
    d = 14
    weights = {pair: 1.0 for pair in itertools.combinations(range(d), 2)}
    alone = sum(ops.interaction_sensitivity_squared((2, 2)) for _ in weights)
    assert marginal_purchase.interactions_sensitivity((2,) * d, weights) ** 2 == pytest.approx(
        (d // 2) ** 2
    )
    assert alone == pytest.approx(d * (d - 1) / 2)


@given(SEEDS, st.integers(2, 4))
@settings(max_examples=40)
def test_the_largest_sum_against_all_choices(seed: int, joined: int):
    rng = np.random.default_rng(seed)
    d = 7
    sets = [
        tuple(sorted(rng.choice(d, rng.integers(1, 4), replace=False).tolist())) for _ in range(9)
    ]
    terms = [(s, rng.normal(size=(2,) * len(s))) for s in sets]
    every = [
        sum(v[tuple(x[list(s)])] for s, v in terms)
        for x in np.array(list(itertools.product((0, 1), repeat=d)))
    ]
    assert marginal_screen.largest_sum(terms) == pytest.approx(max(every))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginal_screen, "_MOST_JOINED", joined)
        assert (
            max(every) - 1e-9
            <= marginal_screen.largest_sum(terms)
            <= sum(v.max() for _, v in terms) + 1e-9
        )


def one_table(
    record: tuple[int, ...], columns: tuple[int, ...], cardinalities: tuple[int, ...]
) -> np.ndarray:
    return counts(np.array([record]), columns, cardinalities)


@pytest.mark.parametrize("k", [*CARDINALITIES, (4, 4, 2), (2, 6, 3), (1, 2, 3)])
def test_no_neighbours_exceed_the_absolute_changes_of_round_1(k: tuple[int, ...]):
    """All pairs of rows of the whole domain, and what round 1 measures of each: exactly the
    sensitivity, or (k > 3) below it.
    """
    weights, tables, sensitivity = marginal_screen.pairs_for_laplace(k)
    records = list(itertools.product(*map(range, k)))
    vectors = np.array(
        [
            np.concatenate(
                [(one_table if s in tables else one_row)(r, s, k).ravel() for s in weights]
            )
            for r in records
        ]
    )
    largest = max(float(np.abs(vectors - vector).sum(axis=1).max()) for vector in vectors)
    assert 0.75 * sensitivity <= largest <= sensitivity
    d = sum(r > 1 for r in k)
    singles = sum(marginal_screen.absolute_changes((r,))[1] for r in k if r > 1)
    assert sensitivity <= d * (d - 1) + singles  # never more than all pairs as tables
    reached = {j for s in weights for j in s if s in tables or len(s) == 1}
    assert reached == set(range(len(k)))  # every column's margin is known


@pytest.mark.parametrize("k", [(2, 2), (3, 4), (2, 3, 3), (6, 5, 6)])
def test_absolute_changes_by_brute_force(k: tuple[int, ...]):
    columns = tuple(range(len(k)))
    records = np.array(list(itertools.product(*map(range, k))))
    rng = np.random.default_rng(0)
    found = np.zeros((2,) * len(k))
    for first in records if len(records) < 50 else rng.permutation(records)[:20]:
        one = one_row(tuple(first), columns, k)
        for second in records:
            place = tuple((first != second).astype(int))
            found[place] = max(found[place], np.abs(one - one_row(tuple(second), columns, k)).sum())
    bound = marginal_screen.absolute_changes(k)
    assert (found <= bound + 1e-12).all()
    if math.prod(k) <= 150:
        assert np.allclose(found, bound)


def test_tables_of_columns_with_their_candidates():
    pairs = [(0, 1), (2, 3), (1, 2), (0, 3)]
    assert marginal_screen.tables_of(pairs, (2, 2, 2, 2), most=2, most_cells=8) == [
        (0, 1, 2),
        (0, 1, 3),
        (0, 2, 3),
        (1, 2, 3),
    ]
    assert marginal_screen.tables_of(pairs, (2, 2, 2, 2), most=1, most_cells=100) == [
        (0, 1),
        (2, 3),
    ]
    # no room for column 1
    assert marginal_screen.tables_of(pairs, (2, 9, 2, 2), most=3, most_cells=16) == [(0, 2, 3)]
    assert marginal_screen.tables_of([], (2, 2), most=2, most_cells=8) == []


def test_the_variance_of_a_cell():
    k = (2, 3, 4)
    rng = np.random.default_rng(2)
    variances = {s: float(rng.uniform(1, 9)) for s in ops.subsets((0, 1, 2))}
    zero = {s: np.zeros([k[j] - 1 for j in s]) for s in variances}
    empty = ops.table_of_interactions((0, 1, 2), k, 0, zero.__getitem__)
    assert not empty.any()
    total = np.zeros(k)
    for s, values in zero.items():
        for place in np.ndindex(values.shape):
            unit = np.zeros_like(values)
            unit[place] = math.sqrt(variances[s])
            total += ops.table_of_interactions((0, 1, 2), k, 0, {**zero, s: unit}.__getitem__) ** 2
    assert np.allclose(total, ops.cell_variance((0, 1, 2), k, variances))


def test_without_privacy_tables_are_exact():
    rows = chain(400, seed=3, d=4)
    release = Marginals().release(dataset(rows, 2, 2, 2, 2), budget=NO_PRIVACY)
    assert math.isinf(release.cost.epsilon) and set(release.variances.values()) == {0.0}
    for s in ops.subsets((0, 1, 2, 3)):
        if release.is_measured(s):
            # up to the public grid
            assert np.allclose(release.table(s), counts(rows, s, (2, 2, 2, 2)), atol=1e-4)
    assert all(j in release.candidates[i] for i, j in ((0, 1), (1, 0), (2, 1), (3, 2)))


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_price_is_the_budget(epsilon: float, delta: float):
    release = Marginals().release(
        dataset(chain(20_000, seed=4), *(2,) * 5), budget=Budget(epsilon, delta)
    )
    assert (release.cost.epsilon, release.cost.delta, release.cost.proven) == (epsilon, delta, True)
    assert release.spent.delta == delta
    assert release.spent.epsilon <= epsilon
    if release.candidates != ((),) * 5:  # all three rounds asked something
        assert release.spent.epsilon == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("k", [(2, 2, 2), (3, 3, 2)])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_noise_has_the_variance_that_is_stated(delta: float, k: tuple[int, ...]):
    rows = chain(800, seed=5, d=3, keep=0.9)
    exact = {s: ops.interaction(counts(rows, s, k)) for s in ops.subsets((0, 1, 2))}
    scaled: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for seed in range(30):
        noise = simulated(seed)
        release = Marginals().release(dataset(rows, *k), budget=Budget(12.0, delta), noise=noise)
        assert release.noise is (MarginalsNoise.GAUSSIAN if delta else MarginalsNoise.LAPLACE)
        for s, values in release.interactions.items():
            scaled[len(s)] += (
                (values - exact[s]).ravel() / math.sqrt(release.variances[s])
            ).tolist()
    for errors in scaled.values():
        assert len(errors) >= 30
        # The kurtosis of Laplace noise is 6, so the variance of a square is 5 instead of 2.
        z = np.sum(np.square(errors) - 1) / math.sqrt((2 if delta else 5) * len(errors))
        assert abs(z) < 4 and abs(np.mean(errors)) < 4 / math.sqrt(len(errors))


@pytest.mark.parametrize("delta", [0.05, 0.0])
def test_an_audit_stays_below_the_claim_and_is_not_blind(delta: float):
    """Two neighbouring data sets of 2 x 2 x 2 cells, and the linear statistic that tells round 1's
    numbers best.
    """
    here, there = np.zeros((8, 3), dtype=int), np.zeros((8, 3), dtype=int)
    there[0] = (1, 1, 1)
    epsilon, runs = 14.0, 100
    sets = [s for s in ops.subsets((0, 1, 2)) if len(s) < 3]
    change = {s: one_row((1, 1, 1), s, (2, 2, 2)) - one_row((0, 0, 0), s, (2, 2, 2)) for s in sets}
    origin = {s: 8 * one_row((0, 0, 0), s, (2, 2, 2)) for s in sets}
    size = sum(float(np.sum(v**2)) for v in change.values())

    def statistic(rows: np.ndarray) -> float:
        """0 on average on the first data set, 1 on the second."""
        release = Marginals().release(dataset(rows, 2, 2, 2), budget=Budget(epsilon, delta))
        return (
            sum(float(np.sum((release.interactions[s] - origin[s]) * change[s])) for s in sets)
            / size
        )

    found = [np.array([statistic(rows) for _ in range(runs)]) for rows in (here, there)]
    for mean, values in zip((0.0, 1.0), found, strict=True):
        assert abs(values.mean() - mean) < 5 * values.std() / math.sqrt(runs)
    events = [[int((values <= 0).sum()), int((values >= 1).sum())] for values in found]
    bound = epsilon_lower_bound(*events, runs, confidence=1 - 1e-6)
    assert 0.05 < bound < epsilon


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_later_rounds_see_released_numbers_only(monkeypatch: pytest.MonkeyPatch, delta: float):
    """With the mechanism's answers replaced by fixed ones, two data sets give the same questions,
    weights and candidates.
    """
    asked: list[list[tuple[object, ...]]] = []
    truth = chain(5000, seed=6)
    exact = {s: ops.interaction(counts(truth, s, (2,) * 5)) for s in ops.subsets(tuple(range(5)))}
    buy = marginal_purchase.Purchase.buy

    def replaced(self, weights, *, tables=frozenset(), **options):  # type: ignore[no-untyped-def]
        asked[-1].append((options["label"], tuple(weights.items()), tables, options))
        buy(self, weights, tables=tables, **options)
        for s in self.interactions:
            self.interactions[s] = exact[s]

    monkeypatch.setattr(marginal_purchase.Purchase, "buy", replaced)
    released = []
    for seed in (7, 8):
        asked.append([])
        rows = chain(5000, seed=seed, keep=0.1 * seed)
        released.append(Marginals().release(dataset(rows, *(2,) * 5), budget=Budget(2.0, delta)))
    assert [label for label, *_ in asked[0]] == [
        "round 1: all pairs",
        "round 2: triples",
        "round 3: families",
    ]
    assert asked[0] == asked[1]
    assert released[0].candidates == released[1].candidates


def test_shifted_deviance_between_likelihood_ratio_and_chi_square():
    rng = np.random.default_rng(9)
    observed, expected = rng.uniform(20, 200, (3, 4)), rng.uniform(20, 200, (3, 4))
    expected *= observed.sum() / expected.sum()
    g = stats.power_divergence(
        observed.ravel(), expected.ravel(), lambda_="log-likelihood"
    ).statistic
    assert shifted_deviance(observed, expected, 0.0) == pytest.approx(g, rel=1e-9)
    much = 1e7
    assert shifted_deviance(observed, expected, much) * much == pytest.approx(
        np.sum((observed - expected) ** 2), rel=1e-3
    )


@pytest.mark.parametrize(
    ("options", "noise", "expected"),
    [
        ({}, 0.0, (0.001, 8, 5)),
        ({}, 0.01, (0.01, 8, 5)),
        ({}, 0.1, (0.1, 8, 5)),
        ({}, 0.3, (0.2, 6, 3)),
        ({}, math.inf, (0.2, 6, 3)),
        ({"mediation_alpha": 0.5, "max_candidates": 2, "max_parents": 1}, 0.0, (0.5, 2, 1)),
    ],
)
def test_what_is_measured_follows_the_noise(options: dict, noise: float, expected: tuple):
    settled = marginals._Settled.of(Marginals(**options), noise, 5, 100_000)
    assert dataclasses.astuple(settled) == (0.01, *expected)


def test_few_rows_say_little_against_a_mediator():
    """At .001 the screen lost edges of Asia with 1,000 rows that ``ges`` finds."""
    levels = [
        marginals._Settled.of(Marginals(), 0.0, 5, n).mediation_alpha for n in (5, 1000, 10**6)
    ]
    assert levels == [0.2, 0.1, 0.001]
    network = jaxcd.networks.load("asia")
    found = []
    for seed in range(3):
        data = network.sample(1000, key=jax.random.key(seed))
        released = jaxcd.release(data, Marginals(), budget=NO_PRIVACY)
        graphs = jaxcd.search(released).graph, jaxcd.ges(data, budget=NO_PRIVACY).graph
        found.append([float(jaxcd.metrics.arc_f1(g, network.cpdag())) for g in graphs])
    ours, theirs = np.mean(found, axis=0)
    assert ours >= theirs - 0.02


@pytest.mark.parametrize("d", [1, 2, 10, 11, 1_000])
def test_noise_alone_joins_few_pairs_of_many_columns(d: int):
    level = marginals._Settled.of(Marginals(), 0.5, d, 1000).dependence_alpha
    assert level == pytest.approx(min(0.01, 0.5 / max(1, d * (d - 1) // 2)))
    own = Marginals(dependence_alpha=0.05)
    assert marginals._Settled.of(own, 0.5, d, 1000).dependence_alpha == 0.05


def test_mediators_are_told_from_common_causes_of_nothing():
    """In v0 -> v1 -> v2 the outer pair is explained by v1, and no other pair is explained by
    anything.
    """
    data = dataset(chain(20_000, seed=10, d=3), 2, 2, 2)
    release = Marginals().release(data, budget=NO_PRIVACY)
    assert set(
        marginal_screen.unmediated_pairs(release, dependence_alpha=0.01, mediation_alpha=0.2)
    ) >= {(0, 1), (1, 2)}
    pairs = PairTables(release)
    level = stats.chi2.isf(1e-3, 1)
    assert marginal_screen.mediation_statistic(pairs, 0, 2, 1) < level
    assert marginal_screen.mediation_statistic(pairs, 0, 1, 2) > level
    assert marginal_screen.mediation_statistic(pairs, 1, 2, 0) > level
    everything = _complete(data)
    assert marginal_screen.unexplained_pairs(everything, [(0, 1), (0, 2), (1, 2)]) in (
        [(0, 1), (1, 2)],
        [(1, 2), (0, 1)],
    )


@pytest.mark.parametrize("budget", [NO_PRIVACY, jaxcd.Budget(2.0, 1e-6)])
@pytest.mark.parametrize("turned", [0.0, 1e-3])
def test_two_columns_that_hold_the_same_do_not_explain_each_other_away(budget, turned: float):
    """Each of the pairs v0, v2 and v1, v2 is explained by the third column."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 5_000)
    second = np.where(rng.random(5_000) < turned, 3 - first, first)
    third = np.where(rng.random(5_000) < 0.5, rng.integers(0, 4, 5_000), first)
    release = jaxcd.release(
        dataset(np.stack([first, second, third], 1), 4, 4, 4),
        Marginals(),
        budget=budget,
        noise=None if budget is NO_PRIVACY else simulated(0),
    )
    joined = np.asarray(jaxcd.search(release).graph.marks) != 0
    assert joined[0, 1] and joined[2, :2].sum() == 1


def _complete(data: jaxcd.Dataset) -> ReleasedMarginals:
    """All interactions without noise."""
    release = Marginals().release(data, budget=NO_PRIVACY)
    d = len(release.names)
    rows = np.asarray(data.discrete)
    values = {
        s: ops.interaction(counts(rows, s, release.cardinalities))
        for s in ops.subsets(tuple(range(d)))
    }
    zero = dict.fromkeys(values, 0.0)
    return ReleasedMarginals(
        release.domain,
        release.n_samples,
        values,
        zero,
        release.candidates,
        release.cost,
        release.spent,
    )


def test_the_allocation_is_the_best_one():
    k = (2, 3, 2, 4)
    families = [(0, 1), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3)]
    known = {(0, 1): 50.0, (1, 2): 1e-3, (0, 2): 1e9}
    rho = 0.05
    found = marginal_screen.allocate(families, k, known, rho=rho)
    sets = sorted({s for f in families for s in ops.subsets(f, smallest=2)})
    price = np.array(
        [ops.interaction_sensitivity_squared(tuple(k[j] for j in s)) / 2 for s in sets]
    )
    worth = np.array(
        [
            sum(set(s) <= set(f) for f in families) * math.prod(k[j] * (k[j] - 1) for j in s)
            for s in sets
        ]
    )
    prior = np.array([1 / known[s] if s in known else 0.0 for s in sets])
    x = np.array([found.get(s, 0.0) for s in sets])
    assert x @ price == pytest.approx(rho, rel=1e-9)
    assert (1, 2) not in found  # known far better than could be bought

    def loss(log_x: np.ndarray) -> float:
        y = np.exp(log_x)
        return float(np.sum(worth / (prior + y * rho / (y @ price))))

    assert np.sum(worth / (prior + x)) <= optimize.minimize(
        loss, np.zeros(len(sets)), method="Powell"
    ).fun * (1 + 1e-6)
    assert marginal_screen.allocate([], k, known, rho=rho) == {}
    assert set(marginal_screen.allocate(families, k, {}, rho=math.inf).values()) == {1.0}


def test_a_column_with_one_level_and_the_smallest_data():
    rows = np.column_stack([chain(500, seed=11, d=2), np.zeros(500, dtype=int)])
    release = Marginals().release(dataset(rows, 2, 2, 1), budget=Budget(3.0, 1e-6))
    assert release.candidates[2] == () and release.interactions[0, 2].shape == (1, 0)
    for kind in (Marginals(), LogLinear()):
        nothing = kind.release(dataset(np.zeros((2, 2)), 1, 1), budget=Budget(1.0, 1e-6))
        assert nothing.candidates == ((), ()) and nothing.ledger == ()
        assert jaxcd.search(nothing).graph.n_edges == 0
    for delta in (1e-6, 0.0):
        assert np.isfinite(
            Marginals()
            .release(dataset(np.zeros((2, 2)), 2, 2), budget=Budget(1.0, delta))
            .table((0, 1))
        ).all()
        assert (
            Marginals().release(dataset(rows, 2, 2, 1), budget=Budget(3.0, delta)).candidates[2]
            == ()
        )


def test_the_file(tmp_path):
    pure = Marginals().release(dataset(chain(5000, seed=12), *(2,) * 5), budget=Budget(2.0))
    assert Release.load(pure.save(tmp_path / "pure.npz")).noise is MarginalsNoise.LAPLACE
    release = Marginals().release(
        dataset(chain(5000, seed=12), *(2,) * 5), budget=Budget(2.0, 1e-6)
    )
    path = release.save(tmp_path / "marginals.npz")
    arrays = dict(np.load(path))
    header = json.loads(str(arrays["header"]))
    assert header["own"].pop("noise") == "discrete-gaussian"
    old = tmp_path / "old.npz"  # from before the noise was stated
    np.savez(old, **{**arrays, "header": np.array(json.dumps(header))})
    for loaded in (Release.load(path), ReleasedMarginals.load(path), Release.load(old)):
        assert loaded.noise is MarginalsNoise.GAUSSIAN
        assert loaded.names == release.names and loaded.n_samples == 5000
        assert loaded.cost == release.cost
        assert loaded.candidates == release.candidates and loaded.variances == release.variances
        assert all(
            np.array_equal(loaded.interactions[s], values)
            for s, values in release.interactions.items()
        )
    with pytest.raises(FormatError, match="expected histogram"):
        type(Histogram().release(dataset(np.zeros((4, 2)), 2, 2), budget=Budget(1.0))).load(path)
    refused(DomainError, "other variables", release.check_names, ["v0", "v1", "x", "v3", "v4"])
    assert "epsilon=2" in repr(release)


def test_refusals():
    data = dataset(chain(100, seed=13, d=3), 2, 2, 2)
    for missing in (None, 1.0):
        refused(OptionError, "budget", Marginals().release, data, budget=missing)
    mixed = jaxcd.Domain({"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Numeric(0.0, 1.0)})
    with pytest.raises(DomainError, match="numeric"):
        Marginals().release(
            jaxcd.Dataset.from_array([[0, 0.5], [1, 0.2]], domain=mixed), budget=Budget(1.0, 1e-6)
        )
    with pytest.raises(PrivacyError, match="declare"):
        Marginals().release(
            jaxcd.Dataset.from_array([["a", "b"], ["b", "a"]]), budget=Budget(1.0, 1e-6)
        )
    with pytest.raises(OptionError, match="not measured"):
        Marginals().release(data, budget=Budget(1e-3, 1e-6)).table((0, 1, 2))


@pytest.mark.parametrize(
    "wrong",
    [
        {"shares": (1.0, 1.0)},
        {"shares": (1.0, -1.0, 1.0)},
        {"shares": (1.0, math.nan, 1.0)},
        {"dependence_alpha": 0.0},
        {"mediation_alpha": math.nan},
        {"dependence_alpha": "0.01"},
        {"mediation_alpha": [0.1]},
        {"max_cells": "0.5"},
        {"max_cells": 2.0},
        {"least_cell": 0.0},
        {"max_candidates": 0},
        {"max_candidates": True},
        {"max_parents": 9},
    ],
)
def test_wrong_options(wrong: dict):
    refused(OptionError, next(iter(wrong)), Marginals, **wrong)
