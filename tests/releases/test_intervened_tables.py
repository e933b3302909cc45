"""Tables of a release in the rows that count, what is bought for them, and what does not change."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

import jaxcd
from jaxcd.data.interventions import Interventions, rows_of
from jaxcd.errors import OptionError
from jaxcd.ops.interactions import cell_variance, interaction, subsets, table_of_interactions
from jaxcd.releases.tables.intervened_sets import settings_of, with_settings
from jaxcd.releases.tables.marginal_purchase import interactions_sensitivity
from jaxcd.releases.tables.set_score import SetScore
from jaxcd.releases.tables.table_part import TablePart
from tests.helpers import SEEDS, coded, simulated

FREE = jaxcd.NO_PRIVACY
LEVELS = (2, 3, 2, 4)  # v3 says what was set
TARGETS = {1: ("v0",), 2: ("v0", "v2"), 3: ("v2",)}
SHARED = {"v3": TARGETS}


def domain_of(interventions: dict) -> jaxcd.Domain:
    return jaxcd.Domain(
        {f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(LEVELS)},
        interventions=interventions,
    )


def rows(seed: int, n: int = 400, interventions: dict | None = None) -> jaxcd.Dataset:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, k, n) for k in LEVELS])
    codes[:, 1] = np.where(rng.random(n) < 0.7, codes[:, 0], codes[:, 1])
    codes[:, 2] = np.where((rng.random(n) < 0.7) & (codes[:, 3] < 2), codes[:, 0], codes[:, 2])
    return coded(codes, domain_of(SHARED if interventions is None else interventions))


# ---- the part of a release


@given(seed=SEEDS)
@settings(max_examples=10)
def test_without_noise_a_part_holds_the_counts_of_its_rows(seed):
    data = rows(seed)
    generous = jaxcd.Marginals(max_cells=0.9)
    bought = jaxcd.release(data, generous, budget=FREE)
    names = ("v0", "v1", "v2")
    for name, kept in Interventions.of(data.domain).natural.items():
        part = TablePart(bought, names, kept)
        natural = rows_of(data, kept)
        assert part.n_samples == pytest.approx(natural.n_samples), name
        for columns in ((0,), (1,), (0, 1), (0, 2), (1, 2)):
            if not part.is_measured(columns):
                continue
            shape = tuple(LEVELS[j] for j in columns)
            counts = np.zeros(shape)
            np.add.at(counts, tuple(natural.codes[:, j] for j in columns), 1)
            assert part.table(columns) == pytest.approx(counts, abs=1e-4)
            assert part.cell_variance(columns) == 0


@pytest.mark.parametrize("summed", [{}, {1: 2}, {1: 2, 2: 1}, {0: 1, 2: 3}])
def test_the_variance_of_sums_of_cells(summed):
    """Against the squared norms of the rows of the linear map, unit vector by unit vector."""
    k, columns = (2, 3, 4), (0, 1, 2)
    rng = np.random.default_rng(0)
    variances = {s: float(rng.random() + 0.1) for s in subsets(columns)}
    empty = {s: interaction(np.zeros([k[j] for j in s])) for s in subsets(columns)}
    total = 0.0
    for s, values in empty.items():
        for place in np.ndindex(values.shape):
            unit = {u: np.zeros_like(each) for u, each in empty.items()}
            unit[s][place] = 1.0
            cells = table_of_interactions(columns, k, 0, unit.__getitem__)
            for axis, m in summed.items():
                cells = np.take(cells, range(m), axis=axis).sum(axis=axis, keepdims=True)
            total = total + variances[s] * cells**2
    expected = cell_variance(columns, k, variances, summed=summed)
    assert total == pytest.approx(np.full(np.shape(total), expected))


# ---- scores


@given(seed=SEEDS)
@settings(max_examples=10)
def test_without_noise_the_set_score_is_bic_of_the_natural_rows(seed):
    data = rows(seed)
    bought = jaxcd.release(data, jaxcd.Marginals(max_cells=0.9), budget=FREE)
    score, exact = bought.default_score(), jaxcd.BIC().prepare(data)
    n_checked = 0
    for node in range(4):
        for family in score.families(node):
            value = score.local(node, family)
            assert value == pytest.approx(exact.local(node, family), abs=1e-4)
            n_checked += 1
    assert n_checked >= 4
    assert not score.equal_in_a_class


@given(seed=SEEDS)
@settings(max_examples=5)
def test_without_noise_a_histogram_is_the_data(seed):
    data = rows(seed)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=FREE)
    for config in (jaxcd.BIC(), jaxcd.BDeu(equivalent_sample_size=3.0)):
        noiseless, exact = config.prepare(bought, max_parents=2), config.prepare(data)
        for node, other in itertools.permutations(range(3), 2):
            for family in ((), (other,)):
                assert noiseless.local(node, family) == pytest.approx(exact.local(node, family))
    assert jaxcd.search(bought).graph == jaxcd.exact_search(data, budget=FREE).graph


def test_a_part_is_scored_with_its_own_number_of_rows():
    data = rows(0)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=FREE)
    natural = rows_of(data, {"v3": (0, 3)})
    part = TablePart(bought, ("v0", "v1", "v2"), {"v3": (0, 3)})
    counts = np.bincount(natural.codes[:, 0], minlength=2)
    n = natural.n_samples
    entropy = sum(c * math.log(c / n) for c in counts)
    value = SetScore(bought, part=part).local(0, ())
    assert value == pytest.approx(entropy - math.log(n) / 2)


# ---- what is bought


def test_what_says_where_a_column_was_set_is_measured_with_it():
    domain = domain_of(SHARED)
    set_by = settings_of(domain)
    assert set_by == {0: (3,), 2: (3,)}
    found = with_settings([(0, 1), (1, 2), (0, 1, 2)], LEVELS, set_by, most_cells={3: 30, 4: 1000})
    assert set(found) == {(0, 1), (1, 2), (0, 1, 2), (0, 1, 3), (1, 2, 3)}  # 48 cells are too many
    wide = with_settings([(0, 1), (0, 1, 2)], LEVELS, set_by, most_cells={3: 50, 4: 1000})
    assert (0, 1, 2, 3) in wide
    assert with_settings([(0, 1)], LEVELS, {}, most_cells={}) == [(0, 1)]


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_marginals_measure_targets_with_their_column_within_the_budget(delta):
    data = rows(3, n=20_000)
    budget = jaxcd.Budget(2.0, delta)
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=budget, noise=simulated())
    assert (0, 1, 3) in bought.interactions
    assert all(3 not in partners for partners in bought.candidates)
    assert bought.spent.epsilon <= 2.0 * (1 + 1e-9) and bought.spent.delta <= delta
    graph = jaxcd.search(bought).graph
    assert set(graph.children("v3")) == {"v0", "v2"} and graph.directed[0, 1]


@given(seed=SEEDS)
@settings(max_examples=20)
def test_sets_with_the_column_keep_their_sensitivity(seed):
    """The interactions that a family with its column adds, on random pairs of rows."""
    rng = np.random.default_rng(seed)
    sets = with_settings([(0, 1), (1, 2)], LEVELS, {0: (3,), 2: (3,)}, most_cells={3: 100})
    weights = {s: float(rng.random() + 0.1) for f in sets for s in subsets(f)}
    bound = interactions_sensitivity(LEVELS, weights)
    first, second = (tuple(int(rng.integers(k)) for k in LEVELS) for _ in range(2))
    change = 0.0
    for s, weight in weights.items():
        table = np.zeros([LEVELS[j] for j in s])
        table[tuple(first[j] for j in s)] += 1
        table[tuple(second[j] for j in s)] -= 1
        change += weight**2 * float((interaction(table) ** 2).sum())
    assert math.sqrt(change) <= bound


# ---- what does not change


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.LogLinear()], ids=["histogram", "log"])
@pytest.mark.parametrize("declared", [{"v3": {}}, SHARED], ids=["context", "targets"])
def test_the_first_numbers_are_the_same(kind, declared):
    """Declaring the column changes no number that is not bought by the public rule."""
    budget = jaxcd.Budget(1.0)  # pure: LogLinear's tables are pairs
    plain = jaxcd.release(rows(1, interventions={}), kind, budget=budget, noise=simulated())
    other = jaxcd.release(rows(1, interventions=declared), kind, budget=budget, noise=simulated())
    assert plain.spent == other.spent
    (_, before), (_, after) = plain._parts(), other._parts()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_context_changes_no_number_of_marginals(delta):
    budget = jaxcd.Budget(1.0, delta)
    plain, other = (
        jaxcd.release(
            rows(1, n=5_000, interventions=declared),
            jaxcd.Marginals(),
            budget=budget,
            noise=simulated(),
        )
        for declared in ({}, {"v3": {}})
    )
    assert plain.interactions.keys() == other.interactions.keys()
    for s, values in plain.interactions.items():
        assert np.array_equal(values, other.interactions[s])


def test_a_release_keeps_its_interventions_in_its_file(tmp_path):
    bought = jaxcd.release(rows(2), jaxcd.Marginals(), budget=FREE)
    path = bought.save(tmp_path / "bought.npz")
    again = jaxcd.Release.load(path)
    assert again.domain == bought.domain
    assert jaxcd.search(again).graph == jaxcd.search(bought).graph


def test_histograms_of_independent_columns_get_no_edges_of_noise_where_targets_are_known() -> None:
    # BIC of the denoised table made 15 edges of the noise of these releases.
    rng = np.random.default_rng(0)
    n = 3_000
    condition = rng.integers(0, 3, n)
    rare = rng.choice(4, n, p=[0.935, 0.02, 0.04, 0.005])
    other = rng.choice(3, n, p=[0.5, 0.45, 0.05])
    target = np.where(condition == 1, 3, rng.choice(5, n, p=[0.05, 0.5, 0.2, 0.245, 0.005]))
    levels = (3, 4, 3, 5)
    domain = jaxcd.Domain(
        {
            name: jaxcd.Categorical(tuple(range(k)))
            for name, k in zip(("condition", "rare", "other", "target"), levels, strict=True)
        },
        interventions={"condition": {1: ("target",)}},
    )
    data = jaxcd.Dataset.from_codes(
        np.column_stack([condition, rare, other, target]), domain=domain
    )
    n_false = 0
    for seed in range(10):
        budget, noise = jaxcd.Budget(1.0), simulated(seed)
        bought = jaxcd.release(data, jaxcd.Histogram(), budget=budget, noise=noise)
        n_false += jaxcd.search(bought).graph.n_edges - 1
    assert n_false <= 1


def test_a_histogram_with_known_targets_reads_missing_cells_as_the_search_is_told() -> None:
    """The last column is missing where another is high, and has nothing to do with it else."""
    rng = np.random.default_rng(0)
    high, low = rng.integers(0, 2, 4_000), rng.integers(0, 2, 4_000)
    codes = np.column_stack([low, rng.integers(0, 2, 4_000), high, rng.integers(0, 2, 4_000)])
    codes[(high == 1) & (rng.random(4_000) < 0.6), 3] = 2
    columns = [jaxcd.Categorical((0, 1))] * 3 + [jaxcd.Categorical((0, 1), missing=True)]
    named = dict(zip(("set", "target", "high", "missing"), columns, strict=True))
    domain = jaxcd.Domain(named, interventions={"set": {1: ("target",)}})
    bought = jaxcd.release(
        coded(codes, domain), jaxcd.Histogram(), budget=jaxcd.Budget(20.0), noise=simulated()
    )
    assert jaxcd.search(bought, missing="ignore").graph.n_edges == 1
    assert jaxcd.search(bought, missing="level").graph.n_edges == 2


@pytest.mark.slow
def test_histograms_of_a_chain_get_few_edges_of_noise_where_targets_are_known() -> None:
    # All pairs were candidates, and the price of noise in tables of six columns, most cells of
    # which it hides, is small: 12 further edges a release.
    n, d = 20_000, 12
    rng = np.random.default_rng(0)
    condition, chain = rng.integers(0, 2, n), [rng.integers(0, 2, n)]
    for j in range(1, d):
        new = np.where(rng.random(n) < 0.8, chain[-1], rng.integers(0, 2, n))
        chain.append(np.where(condition == 1, 1, new) if j == 2 else new)
    names = ("condition", *(f"x{j}" for j in range(d)))
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical((0, 1)) for name in names},
        interventions={"condition": {1: ("x2",)}},
    )
    data = coded(np.column_stack([condition, *chain]), domain)
    for seed in range(2):
        bought = jaxcd.release(
            data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(seed)
        )
        graph = jaxcd.search(bought).graph
        found = {frozenset(pair) for pair in graph.to_networkx().edges}
        true = {frozenset(pair) for pair in itertools.pairwise(names[1:])}
        assert true <= found
        assert len(found - true) <= 4  # that of the condition and its target among them


@pytest.mark.parametrize("kind", [jaxcd.Marginals, jaxcd.LogLinear])
def test_knowledge_against_the_interventions_is_refused_before_anything_is_bought(kind, tmp_path):
    data = rows(1)
    setting = next(iter(data.domain.interventions))
    other = next(name for name in data.domain.names if name not in data.domain.interventions)
    known = jaxcd.Knowledge(required=[(other, setting)])
    budget = jaxcd.Budget(1.0, 1e-6)
    ledger = jaxcd.LedgerFile(tmp_path / "ledger", data_set="rows", budget=budget)
    with pytest.raises(OptionError, match="contradicts the interventions"):
        jaxcd.release(data, kind(knowledge=known), budget=budget, ledger=ledger)
    assert ledger.spent.epsilon == 0
