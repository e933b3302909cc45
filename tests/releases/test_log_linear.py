"""Log-linear models of noisy pairs: the fit, the choice of pairs, the purchase, the file."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import jax
import numpy as np
import pytest
from scipy import optimize, stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.errors import OptionError
from jaxcd.ops.interactions import interaction
from jaxcd.privacy import NO_PRIVACY, Budget
from jaxcd.releases import LogLinear, Marginals, Release, ReleasedLogLinear, SetScore
from jaxcd.releases.tables import log_linear_choice as choice
from jaxcd.releases.tables import log_linear_fit as fit
from tests.helpers import coded, refused, sampled, simulated

dataset = functools.partial(coded, kind=jaxcd.Categorical)


def chain(n: int, *, seed: int, d: int = 5, keep: float = 0.8, levels: int = 2) -> np.ndarray:
    """v0 -> v1 -> ...: each copies the one before it with probability ``keep``."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, levels, (n, d))
    for j in range(1, d):
        rows[:, j] = np.where(rng.random(n) < keep, rows[:, j - 1], rows[:, j])
    return rows


def collider(n: int, *, seed: int) -> np.ndarray:
    """v0 -> v2 <- v1, v2 -> v3."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n))
    c = (rng.random(n) < 0.1 + 0.4 * a + 0.4 * b).astype(int)
    d = np.where(rng.random(n) < 0.85, c, rng.integers(0, 2, n))
    return np.stack([a, b, c, d], axis=1)


def noisy_of(
    rows: np.ndarray,
    levels: tuple[int, ...],
    *,
    variance: float,
    seed: int = 0,
    triples: Sequence[tuple[int, ...]] = (),
) -> fit.NoisyInteractions:
    rng = np.random.default_rng(seed)
    d, values = len(levels), {}
    for s in [*((j,) for j in range(d)), *itertools.combinations(range(d), 2), *triples]:
        table = np.zeros([levels[j] for j in s])
        np.add.at(table, tuple(rows[:, j] for j in s), 1)
        exact = interaction(table)
        values[s] = exact + math.sqrt(variance) * rng.normal(size=exact.shape)
    return fit.NoisyInteractions(levels, len(rows), values, dict.fromkeys(values, variance))


@pytest.mark.parametrize("variance", [0.0, 400.0])
def test_the_fit_is_the_minimum(variance: float):
    """Against a general minimiser of the objective, on the joint table of all cells."""
    levels = (2, 3, 2)
    noisy = noisy_of(chain(2_000, seed=1, d=3) % np.array(levels), levels, variance=variance)
    terms = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)]
    model = fit.fit_model(noisy, terms)
    features = []
    for s in terms:
        for place in np.ndindex(*(levels[j] - 1 for j in s)):
            unit = np.zeros([levels[j] - 1 for j in s])
            unit[place] = 1
            table = np.zeros(levels)
            for cell in np.ndindex(*levels):
                one = np.zeros([levels[j] for j in s])
                one[tuple(cell[j] for j in s)] = 1
                table[cell] = (interaction(one) * unit).sum()
            features.append(table.ravel())
    phi = np.array(features)
    y = np.concatenate([noisy.values[s].ravel() for s in terms])
    cells = np.concatenate(
        [np.full(noisy.values[s].size, float(math.prod(levels[j] for j in s))) for s in terms]
    )
    ridge = 0.005 * variance + 1 / cells

    def objective(theta: np.ndarray) -> float:
        log_z = float(np.log(np.exp(theta @ phi).sum()))
        return (2_000 * log_z - theta @ y + 0.5 * ridge @ theta**2) / 2_000

    best = optimize.minimize(objective, np.zeros(len(y)), method="BFGS", options={"gtol": 1e-7})
    found = np.concatenate([model.theta[s].ravel() for s in terms])
    assert objective(found) <= best.fun + 1e-6
    np.testing.assert_allclose(found, best.x, atol=0.02)


@pytest.mark.parametrize("variance", [0.0, 400.0])
@pytest.mark.parametrize(("k", "n"), [(2, 1_000_000), (15, 4_000)])
def test_the_fit_ends_at_the_minimum(variance: float, k: int, n: int):
    """Where an iteration is stopped must decide nothing: at the minimum y_S - n E phi_S is
    r_S theta_S, also where columns nearly determine each other or most cells are empty.
    """
    rng = np.random.default_rng(k)
    first = rng.integers(0, k, n)
    copy = np.where(rng.random(n) < 1e-3, rng.integers(0, k, n), first)
    rare = (rng.random(n) < 0.001 + 0.02 * (first == 0)).astype(int)
    sum_ = (copy + rare + (rng.random(n) < 0.2)) % k
    levels = (k, k, 2, k)
    noisy = noisy_of(np.stack([first, copy, rare, sum_], axis=1), levels, variance=variance)
    terms = [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 3), (2, 3)]
    model = fit.fit_model(noisy, terms)
    expected = choice.ExpectedTables(model, n)
    for s in model.theta:
        ridge = 0.005 * variance + 1 / math.prod(levels[j] for j in s)
        left = noisy.values[s].ravel() - expected.interaction(s) - ridge * model.theta[s].ravel()
        assert np.abs(left).max() < 1e-3 * math.sqrt(n), s


def test_copies_of_very_many_rows_are_fitted():
    """The ridge is then below the rounding of the second derivative."""
    k, n = 15, 10**15
    shares = np.diag(np.exp(-0.7 * np.arange(k)))
    table = n * shares / shares.sum()
    single = table.sum(axis=1)
    columns = range(3)
    values = {(j,): interaction(single) for j in columns}
    values |= {pair: interaction(table) for pair in itertools.combinations(columns, 2)}
    noisy = fit.NoisyInteractions((k,) * 3, n, values, dict.fromkeys(values, 0.0))
    model = fit.fit_model(noisy, [*values])
    found = choice.ExpectedTables(model, n).table((0, 2)).reshape(k, k)
    assert np.abs(found - table).max() < 1e-6 * n


@pytest.mark.parametrize(("name", "n"), [("cancer", 10_000), ("survey", 100_000)])
def test_without_noise_it_finds_what_ges_finds(name: str, n: int):
    """Also where three columns together decide a collider that no test of level .01 sees."""
    network = jaxcd.networks.load(name)
    for seed in range(2):
        data = network.sample(n, key=jax.random.key(seed))
        release = LogLinear().release(data, budget=NO_PRIVACY)
        assert jaxcd.search(release).graph == jaxcd.ges(data, budget=NO_PRIVACY).graph


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_a_pair_waits_for_the_clearer_one_that_explains_it(seed: int):
    """Of Asia's columns "either" is nearly a copy of "lung", so that (smoke, either) is unexplained
    until (smoke, lung) is there; taken first, it made false edges.
    """
    network = jaxcd.networks.load("asia")
    data = network.sample(100_000, key=jax.random.key(seed))
    release = LogLinear().release(data, budget=NO_PRIVACY)
    found = jaxcd.search(release).graph
    assert jaxcd.metrics.arc_f1(found, network.cpdag()) == 1.0


def test_without_noise_the_model_holds_the_tables():
    rows = collider(5_000, seed=2)
    release = LogLinear().release(dataset(rows, 2, 2, 2, 2), budget=NO_PRIVACY)
    assert set(release.variances.values()) == {0.0}
    for pair in (s for s in release.terms if len(s) == 2):
        table = np.zeros((2, 2))
        np.add.at(table, tuple(rows[:, j] for j in pair), 1)
        assert np.abs(release.table(pair) - table).max() < 25  # half a percent of n
    measured = Marginals().release(dataset(rows, 2, 2, 2, 2), budget=NO_PRIVACY)
    assert jaxcd.search(release).graph == jaxcd.search(measured).graph


@pytest.mark.parametrize("variance", [0.0, 900.0])
def test_a_chain_is_explained_by_its_neighbours(variance: float):
    kept: list[set[tuple[int, int]]] = []
    for seed in range(10):
        noisy = noisy_of(chain(5_000, seed=seed, d=7), (2,) * 7, variance=variance, seed=seed)
        pairs, model = choice.select_pairs(noisy, level=always(0.001), max_cells=4096)
        kept.append(set(pairs))
        assert {(j, j + 1) for j in range(6)} <= set(pairs)
    # 15 other pairs in each, at a level of .001
    assert sum(len(pairs) - 6 for pairs in kept) <= 3


def always(alpha: float) -> choice.Level:
    return lambda n_found: alpha


@pytest.mark.slow
def test_as_many_pairs_are_found_as_have_p_values_below_the_level_of_that_many():
    """Benjamini and Hochberg's rule, against a constant level at each number of pairs."""
    rows = np.hstack([chain(600, seed=part, d=4, keep=0.6) for part in range(2)])
    noisy = noisy_of(rows, (2,) * 8, variance=300.0, seed=1)
    model = fit.fit_model(noisy, [(j,) for j in range(8)])
    pairs = list(itertools.combinations(range(8), 2))

    def found(level: choice.Level) -> list[tuple[int, ...]]:
        return list(choice.unexplained(noisy, model, pairs, level=level))

    def share(rate: float) -> choice.Level:
        return lambda n_found: rate * n_found / 28

    numbers = []
    for level in (share(1e-6), share(0.01), share(0.9), LogLinear().level(noisy)):
        alone = [found(always(level(k))) for k in range(1, 29)]
        most = max((k for k, those in enumerate(alone, 1) if len(those) >= k), default=0)
        assert found(level) == (alone[most - 1][:most] if most else [])
        numbers.append(most)
    assert len(set(numbers)) > 1
    assert LogLinear(alpha=0.003).level(noisy)(5) == 0.003


def test_pairs_that_were_not_measured_do_not_count_among_the_tests():
    noisy = noisy_of(chain(2_000, seed=0, d=5, keep=0.6), (2,) * 5, variance=300.0, seed=1)
    few = {s: v for s, v in noisy.values.items() if len(s) < 2 or s in ((0, 1), (1, 2))}
    chosen = dataclasses.replace(noisy, values=few)
    level, of_few = LogLinear().level(noisy), LogLinear().level(chosen)
    assert [level(k) for k in (1, 2)] == pytest.approx([0.05, 0.05])  # at most 100 / n
    assert level(0) == of_few(0) == 0.0
    large = dataclasses.replace(chosen, n_samples=200), dataclasses.replace(noisy, n_samples=200)
    assert [LogLinear().level(one)(1) for one in large] == pytest.approx([0.1, 0.05])


def test_levels_of_the_choice_are_kept_under_noise():
    """Independent columns."""
    n_false = 0
    for seed in range(20):
        rows = np.random.default_rng(seed).integers(0, 3, (2_000, 6))
        noisy = noisy_of(rows, (3,) * 6, variance=2_000.0, seed=seed)
        pairs, _ = choice.select_pairs(noisy, level=always(0.01), max_cells=4096)
        n_false += len(pairs)
    assert stats.binom.sf(n_false - 1, 20 * 15, 0.01) > 1e-3


ALONE: list[tuple[int, ...]] = [(j,) for j in range(9)]
CHAINS: list[tuple[int, ...]] = [*ALONE, (0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "variance", "terms"),
    [(0.0, 900.0, ALONE), (0.02, 900.0, ALONE), (0.02, 4.0, ALONE), (0.5, 400.0, CHAINS)],
)
def test_a_true_model_is_missed_at_the_level(
    share: float, variance: float, terms: list[tuple[int, ...]]
):
    """Pairs without a column in common, which a true model explains: constant columns, rare levels,
    and the ends of three chains of columns.  The noise of the terms is as large as the pairs' own.
    """
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)] if terms is ALONE else [(0, 2), (3, 5), (6, 8)]
    n_data, n_missed = 60, 0
    for seed in range(n_data):
        if terms is ALONE:
            rows = (np.random.default_rng(seed).random((2_000, 9)) < share).astype(int)
        else:
            rows = np.hstack([chain(2_000, seed=3 * seed + part, d=3) for part in range(3)])
        noisy = noisy_of(rows, (2,) * 9, variance=variance, seed=seed)
        model = fit.fit_model(noisy, terms)
        n_missed += len(choice.unexplained(noisy, model, pairs, level=always(0.1)))
    n_tests = n_data * len(pairs)
    assert stats.binom.sf(n_missed - 1, n_tests, 0.1) > 1e-3
    if variance > 100:  # with little noise half a row in each cell is much
        assert stats.binom.cdf(n_missed, n_tests, 0.1) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.02])
def test_independent_columns_with_rare_levels_are_not_joined(share: float):
    for seed in range(2):
        rows = (np.random.default_rng(seed).random((2_000, 20)) < share).astype(int)
        data = dataset(rows, *((2,) * 20))
        bought = LogLinear().release(data, budget=Budget(1.0, 1e-6), noise=simulated(seed))
        assert jaxcd.search(bought).graph.n_edges == 0


def test_columns_of_one_level_have_nothing_to_join(capfd: pytest.CaptureFixture[str]):
    """BLAS prints what it is wrongly given."""
    data = dataset(np.zeros((50, 12), dtype=int), *((1,) * 12))
    bought = LogLinear(selected=5).release(data, budget=Budget(1.0, 1e-6), noise=simulated(0))
    assert jaxcd.search(bought).graph.n_edges == 0
    assert capfd.readouterr() == ("", "")


def test_cliques_stay_within_their_cells():
    rng = np.random.default_rng(0)
    rows = (rng.integers(0, 2, (4_000, 1)) + (rng.random((4_000, 8)) < 0.2)) % 2
    noisy = noisy_of(rows, (2,) * 8, variance=0.0)
    pairs, model = choice.select_pairs(noisy, level=always(0.5), max_cells=16)
    assert model.tree.n_cells <= 16
    more = choice.collider_pairs(pairs, (2,) * 8, max_cells=16)
    assert fit.fit_model(noisy, [*pairs, *more]).tree.n_cells <= 16
    wanted = {
        tuple(sorted((a, c)))
        for (a, b), (c, e) in itertools.permutations([*pairs, *(p[::-1] for p in pairs)], 2)
        if b == e and a != c
    }
    assert set(choice.collider_pairs(pairs, (2,) * 8)) == wanted - set(pairs)


def test_a_triple_that_pairs_do_not_explain_joins_the_model():
    """v2 is the exclusive or of two coins, three times in four, and v3 a copy of v0: two triples
    are measured beside, and only the first belongs to the model.
    """
    rng = np.random.default_rng(11)
    a, b = rng.integers(0, 2, (2, 20_000))
    c = np.where(rng.random(20_000) < 0.5, a ^ b, rng.integers(0, 2, 20_000))
    rows = np.stack([a, b, c, np.where(rng.random(20_000) < 0.9, a, 1 - a)], axis=1)
    noisy = noisy_of(rows, (2,) * 4, variance=100.0, triples=[(0, 1, 2), (0, 1, 3)])
    pairs = list(itertools.combinations(range(4), 2))
    terms = [*((j,) for j in range(4)), *pairs]
    assert choice.unexplained_triples(noisy, terms, level=always(0.001)) == [(0, 1, 2)]
    model = fit.fit_model(noisy, [*terms, (0, 1, 2)])
    table = model.margins[0].sum(axis=model.tree.others(0, (0, 1, 2))) * 20_000
    assert np.abs(interaction(table) - noisy.values[0, 1, 2]).max() < 30


def test_triples_are_measured_where_noise_allows():
    data = dataset(collider(20_000, seed=2), 2, 2, 2, 2)
    many = LogLinear().release(data, budget=Budget(2.0, 1e-6), noise=simulated(1))
    assert (0, 1, 2) in many.interactions and many.is_measured((0, 1, 2))
    few = LogLinear(least_cell=1e4).release(data, budget=Budget(2.0, 1e-6), noise=simulated(1))
    assert {len(s) for s in few.interactions} == {1, 2}
    assert many.spent.epsilon == pytest.approx(few.spent.epsilon, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_price_is_the_budget(delta: float):
    data = dataset(chain(20_000, seed=4), *(2,) * 5)
    release = LogLinear().release(data, budget=Budget(2.0, delta))
    assert (release.cost.epsilon, release.cost.delta, release.cost.proven) == (2.0, delta, True)
    assert release.spent.epsilon == pytest.approx(2.0, rel=1e-6) and len(release.charges) == 2


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_later_rounds_see_released_numbers_only(monkeypatch: pytest.MonkeyPatch, delta: float):
    """With round 1's answers replaced by fixed ones, two data sets give the same questions."""
    from jaxcd.releases.tables import marginal_purchase

    asked: list[list[tuple[object, ...]]] = []
    original = marginal_purchase.Purchase._noisy

    def fixed(self, question):  # type: ignore[no-untyped-def]
        noisy, variance = original(self, question)
        asked[-1].append((question.label, len(noisy), question.sensitivity, question.price))
        return 300 * np.random.default_rng(len(noisy)).normal(size=len(noisy)), variance

    monkeypatch.setattr(marginal_purchase.Purchase, "_noisy", fixed)
    found = []
    for seed in (1, 2):
        asked.append([])
        data = dataset(chain(1_000, seed=seed), *(2,) * 5)
        bought = LogLinear().release(data, budget=Budget(2.0, delta), noise=simulated())
        found.append((bought.terms, bought.candidates))
    assert asked[0] == asked[1] and len(asked[0]) == 2 and found[0] == found[1]


def test_the_model_comes_back_from_a_file(tmp_path):
    release = LogLinear().release(
        sampled("asia", 5_000), budget=Budget(1.0, 1e-6), noise=simulated(3)
    )
    loaded = Release.load(release.save(tmp_path / "bought.npz"))
    assert isinstance(loaded, ReleasedLogLinear) and loaded.terms == release.terms
    assert loaded.bought == LogLinear()
    np.testing.assert_allclose(loaded.table((0, 1, 2)), release.table((0, 1, 2)))
    assert jaxcd.search(loaded).graph == jaxcd.search(release).graph


def test_the_score_is_equal_for_equivalent_graphs():
    release = LogLinear().release(
        dataset(collider(5_000, seed=5), 2, 2, 2, 2), budget=Budget(1.0, 1e-6), noise=simulated(1)
    )
    score = release.default_score()
    assert isinstance(score, SetScore) and score.options["noise_price"] == pytest.approx(1.5)
    arcs = ([(0, 1), (1, 2)], [(1, 0), (1, 2)], [(2, 1), (1, 0)])
    totals = []
    for each in arcs:
        adjacency = np.zeros((4, 4), dtype=bool)
        for a, b in each:
            adjacency[a, b] = True
        totals.append(score.total(adjacency))
    np.testing.assert_allclose(totals, totals[0], atol=1e-6)


def test_more_is_found_in_few_rows_than_by_three_rounds():
    """The case it is made for: noise as large as the counts."""
    skeleton = {"LogLinear": 0.0, "Marginals": 0.0}
    for seed in range(4):
        data = dataset(chain(1_000, seed=seed, d=8, keep=0.6, levels=3), *(3,) * 8)
        for kind in (LogLinear(), Marginals()):
            noise = simulated(seed)
            run = jaxcd.search(kind.release(data, budget=Budget(0.5, 1e-6), noise=noise))
            beside = np.eye(8, k=1) + np.eye(8, k=-1)
            path = jaxcd.MixedGraph(run.graph.names, 3 * beside.astype(int))
            skeleton[type(kind).__name__] += jaxcd.metrics.skeleton_f1(run.graph, path)
    assert skeleton["LogLinear"] > skeleton["Marginals"] + 0.1 and skeleton["LogLinear"] > 2


def test_tests_on_the_model_keep_their_level():
    """Columns that are independent given one between them, which the model must not join."""
    p_values = []
    for seed in range(30):
        data = dataset(chain(3_000, seed=seed, d=3), 2, 2, 2)
        release = LogLinear().release(data, budget=Budget(2.0, 1e-6), noise=simulated(seed))
        prepared, query = release.prepare_test(jaxcd.ChiSquare()), Query.of(0, 2, (1,))
        answer = prepared.evaluate(prepared.bucket(query), [query], alpha=0.05)
        p_values.append(math.exp(float(answer.log_pvalue[0])))
    assert np.mean(np.array(p_values) < 0.05) <= 0.2


@pytest.mark.parametrize(
    "wrong",
    [
        {"shares": (1.0,)},
        {"shares": (1.0, -1.0)},
        {"alpha": 0.0},
        {"max_cells": 1.0},
        {"max_clique_cells": 4},
        {"max_candidates": 17},
    ],
)
def test_wrong_options(wrong):
    refused(OptionError, next(iter(wrong)), LogLinear, **wrong)


def test_too_large_tables_are_refused():
    data = dataset(np.random.default_rng(0).integers(0, 4, (500, 5)), *(4,) * 5)
    release = LogLinear().release(data, budget=NO_PRIVACY)
    assert release.is_measured((0, 1, 2)) and not release.is_measured((0, 1, 2, 3))
    refused(OptionError, "columns", release.table, (0, 1, 2, 3))


def test_two_rows_of_many_levels_end_in_a_release():
    """Entries that no row drawn from the model has are no reason to stop."""
    codes = np.random.default_rng(0).integers(0, 10, (2, 6))
    codes[:, 1] = codes[:, 2] = codes[:, 0]
    for seed in range(6):
        bought = jaxcd.release(
            coded(codes, *[10] * 6),
            LogLinear(selected=7),
            budget=Budget(3.0, 1e-6),
            noise=simulated(seed),
        )
        assert bought.model.sample(10).shape == (10, 6)
