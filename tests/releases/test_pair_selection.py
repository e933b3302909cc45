"""Pairs chosen by the exponential mechanism: scores, their sensitivity, the law of the choice, and
purchases of log-linear models that choose.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.cli import main
from jaxcd.errors import OptionError
from jaxcd.ops.interactions import interaction
from jaxcd.privacy import NO_PRIVACY, Accountant, Budget, Ledger
from jaxcd.queries import Door
from jaxcd.releases import LogLinear, Marginals, Release, ReleasedMarginals
from jaxcd.releases.tables.marginal_screen import sets_for_laplace
from jaxcd.releases.tables.noisy_table_tests import PreparedNoisyTables
from jaxcd.releases.tables.pair_models import Expected
from jaxcd.releases.tables.pair_selection import PairChoice
from tests.helpers import SEEDS, Quick, coded, dependent, independent, levelled, sampled, simulated

LEVELS = (2, 3, 4, 2)
PAIRS = list(itertools.combinations(range(4), 2))
PRICE = Budget(2.0, 1e-6)


def scores_of(codes: np.ndarray, expected: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
    """The definition, cell by cell."""
    n, found = len(codes), []
    for i, j in PAIRS:
        total = 0.0
        for a, b in itertools.product(range(LEVELS[i]), range(LEVELS[j])):
            mean = expected[i, j][a * LEVELS[j] + b]
            count = int(((codes[:, i] == a) & (codes[:, j] == b)).sum())
            total += abs(count - mean) - math.sqrt(2 * mean * (1 - mean / n) / math.pi)
        found.append(total)
    return np.array(found)


def drawn(seed: int, n: int) -> tuple[np.ndarray, dict[tuple[int, int], np.ndarray]]:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, n) for k in LEVELS], axis=1)
    expected = {(i, j): n * rng.dirichlet(np.full(LEVELS[i] * LEVELS[j], 0.5)) for i, j in PAIRS}
    return codes, expected


def models(expected: dict[tuple[int, int], np.ndarray]) -> list[Expected]:
    """One pair each."""
    return [([(i, j)], e.reshape(1, LEVELS[i], LEVELS[j])) for (i, j), e in expected.items()]


def chooser(
    codes: np.ndarray, expected: Any, *, noise: Any, rho: float = 1e-3
) -> tuple[PairChoice, Accountant]:
    account = Accountant(Ledger(Budget(50.0, 1e-6)), noise)
    epsilon = account.ledger.selection_within(rho)
    choice = PairChoice(Door(coded(codes, *LEVELS), PRICE), account, PAIRS, epsilon=epsilon)
    choice.compare(models(expected))
    return choice, account


class Recording(Quick):
    """Keeps the scores that it sees, in records."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.seen: list[np.ndarray] = []

    def gumbel_top(self, scores: np.ndarray, scale: float, size: int, *, index: int) -> list[int]:
        self.seen.append(scores * 2.0**-20)
        return np.argsort(-scores, kind="stable")[:size].tolist()


@given(seed=SEEDS, n=st.integers(2, 40))
def test_scores_are_their_definition_and_the_largest_is_taken_first(seed: int, n: int):
    codes, expected = drawn(seed, n)
    noise = Recording()
    choice, _ = chooser(codes, expected, noise=noise)
    taken = choice.take(2, label="a pair") + choice.take(1, label="a pair")
    exact = scores_of(codes, expected)
    np.testing.assert_allclose(noise.seen[0], exact, atol=1e-5)
    assert [len(seen) for seen in noise.seen] == [6, 4]
    order = sorted(exact, reverse=True)
    np.testing.assert_allclose([exact[PAIRS.index(pair)] for pair in taken], order[:3], atol=1e-5)
    assert sorted([*taken, *choice.left]) == PAIRS


@given(seed=SEEDS, n=st.integers(2, 40))
def test_of_several_models_the_best_counts(seed: int, n: int):
    codes, first = drawn(seed, n)
    _, second = drawn(seed + 1, n)
    some = {pair: second[pair] for pair in PAIRS[::2]}
    noise = Recording()
    choice, _ = chooser(codes, first, noise=noise)
    choice.compare(models(some))
    choice.take(1, label="a pair")
    one, two = scores_of(codes, first), scores_of(codes, second)
    two[1::2] = np.inf
    np.testing.assert_allclose(noise.seen[0], np.minimum(one, two), atol=1e-5)
    choice, _ = chooser(codes, first, noise=noise)
    choice.compare(models(second), anew=True)
    choice.take(1, label="a pair")
    np.testing.assert_allclose(noise.seen[1], scores_of(codes, second), atol=1e-5)


@given(seed=SEEDS, n=st.integers(2, 30))
def test_a_record_moves_a_score_by_two_at_most(seed: int, n: int):
    codes, expected = drawn(seed, n)
    other = codes.copy()
    rng = np.random.default_rng(seed + 1)
    other[rng.integers(n)] = [rng.integers(k) for k in LEVELS]
    assert np.abs(scores_of(codes, expected) - scores_of(other, expected)).max() <= 2 + 1e-9


def test_the_bound_of_two_is_reached():
    codes = np.zeros((6, 4), dtype=int)
    other = codes.copy()
    other[0] = [1, 2, 3, 1]
    expected = {(i, j): np.zeros(LEVELS[i] * LEVELS[j]) for i, j in PAIRS}
    for means in expected.values():
        means[0] = 6.0
    moved = np.abs(scores_of(codes, expected) - scores_of(other, expected))
    np.testing.assert_allclose(moved, 2.0)


def test_choices_follow_the_exponential_mechanism():
    codes, expected = drawn(3, 30)
    counts = np.zeros(len(PAIRS))
    for seed in range(1500):
        choice, _ = chooser(codes, expected, noise=Quick(seed), rho=0.02)
        counts[PAIRS.index(choice.take(1, label="a pair")[0])] += 1
    epsilon = Ledger(Budget(50.0, 1e-6)).selection_within(0.02)
    weights = np.exp(scores_of(codes, expected) * epsilon / (2 * 2))
    # the sensitivity in steps is rounded up, by less than a thousandth
    assert stats.chisquare(counts, 1500 * weights / weights.sum()).pvalue > 1e-4


def test_every_choice_is_charged():
    codes, expected = drawn(5, 20)
    choice, account = chooser(codes, expected, noise=Quick(0), rho=1e-3)
    choice.take(3, label="a pair")
    choice.take(1, label="a pair")
    rows = account.ledger.to_table()
    assert [row["mechanism"] for row in rows] == ["ExponentialMechanism"] * 2
    assert [row.get("n_choices", 1) for row in rows] == [3, 1]
    assert [row["gdp_rho"] for row in rows] == pytest.approx([3e-3, 1e-3], rel=1e-6)
    assert sum(row["gdp_rho"] for row in rows) <= 4e-3
    assert all(row["sensitivity"] == 2.0 for row in rows)


# ---- purchases


def of_kind(release: Release, mechanism: str) -> list[Any]:
    return [row for row in release.charges if row["mechanism"] == mechanism]


def n_chosen(release: Release) -> int:
    return sum(row.get("n_choices", 1) for row in of_kind(release, "ExponentialMechanism"))


def test_chosen_pairs_are_measured_and_no_others():
    data = sampled("asia", 20_000)
    bought = LogLinear(selected=9).release(data, budget=PRICE, noise=simulated(1))
    pairs = {s for s in bought.interactions if len(s) == 2}
    assert n_chosen(bought) == 9
    # round 2 measures pairs that share a partner, too
    assert 9 <= len(pairs) < 28 and set(bought.terms) <= set(bought.interactions)
    assert bought.spent.epsilon == pytest.approx(2.0, rel=1e-6) and bought.cost.epsilon == 2.0
    run = jaxcd.search(bought)
    assert jaxcd.metrics.skeleton_f1(run.graph, jaxcd.networks.load("asia").cpdag()) > 0.6


def test_the_strongest_dependences_are_chosen():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (5_000, 6))
    rows[:, 3] = np.where(rng.random(5_000) < 0.9, rows[:, 0], rows[:, 3])
    rows[:, 5] = np.where(rng.random(5_000) < 0.9, rows[:, 1], rows[:, 5])
    kind = LogLinear(selected=2)
    bought = kind.release(coded(rows, *(2,) * 6), budget=PRICE, noise=simulated(2))
    assert {s for s in bought.interactions if len(s) == 2} == {(0, 3), (1, 5)}


def test_the_rule_reads_public_facts_only():
    few, many = levelled(*(2,) * 10), levelled(*(2,) * 20)
    rule = LogLinear().n_selected
    assert rule(few, 1_000, budget=Budget(1.0, 1e-6)) == 0  # 45 pairs
    assert rule(many, 1_000, budget=Budget(1.0, 1e-6)) == 24
    assert rule(levelled(*(2,) * 101), 1_000, budget=Budget(1.0, 1e-6)) == 0  # 5,050 pairs
    assert rule(many, 10_000_000, budget=Budget(1.0, 1e-6)) == 0  # noise hides little
    assert rule(many, 1_000, budget=Budget(1.0)) == 24
    for n, n_chosen in ((10_000, 24), (20_000, 0)):  # 5 % are hidden in between
        hidden = LogLinear(selected=0).plan(many, n, budget=Budget(1.0)).smallest_share
        assert (hidden >= 0.05) == (n_chosen > 0)
        assert rule(many, n, budget=Budget(1.0)) == n_chosen
    assert rule(many, 10_000_000, budget=Budget(1.0)) == 0
    assert LogLinear(selected=0).n_selected(many, 1_000, budget=Budget(1.0, 1e-6)) == 0
    assert LogLinear(selected=190).n_selected(many, 1_000, budget=Budget(1.0, 1e-6)) == 0


def test_the_plan_is_what_a_chosen_pair_gets():
    data = sampled("asia", 5_000)
    kind = LogLinear(selected=8)
    planned = kind.plan(data.domain, 5_000, budget=PRICE)
    everything = LogLinear().plan(data.domain, 5_000, budget=PRICE)
    bought = kind.release(data, budget=PRICE, noise=simulated(0))
    first = [row for row in of_kind(bought, "Gaussian") if "chosen pairs" in row["label"]]
    assert len(first) == 8 and planned.noise < everything.noise
    largest = max(row["sensitivity"] / math.sqrt(2 * row["rho"]) for row in first)
    assert largest <= planned.noise * (1 + 1e-6)


def test_knowledge_saves_choices():
    data = sampled("asia", 5_000)
    names = data.names
    knowledge = jaxcd.Knowledge(
        forbidden=[(names[0], names[j]) for j in range(1, 8)]
        + [(names[j], names[0]) for j in range(1, 8)],
        required=[(names[1], names[2])],
    )
    bought = LogLinear(selected=5, knowledge=knowledge).release(
        data, budget=PRICE, noise=simulated(4)
    )
    assert (1, 2) in bought.neighbors and (1, 2) in bought.interactions
    assert not any(0 in pair for pair in bought.neighbors)
    assert n_chosen(bought) == 5


def test_rounds_see_released_numbers_only():
    """The same noise on neighbours that differ far away from every choice: the same questions."""
    rows = np.asarray(dependent(1, 2_000, 2, 3, 2, 2, 3).codes)
    other = rows.copy()
    other[0] = (rows[0] + 1) % np.array([2, 3, 2, 2, 3])
    asked = []
    for codes in (rows, other):
        bought = LogLinear(selected=4).release(
            coded(codes, 2, 3, 2, 2, 3), budget=Budget(0.05, 1e-6), noise=simulated(7)
        )
        asked.append([(row["label"], row.get("dimension")) for row in bought.charges])
    assert asked[0] == asked[1]


def test_a_release_of_chosen_pairs_is_saved_redrawn_and_asked(tmp_path):
    data = sampled("asia", 10_000)
    bought = LogLinear(selected=10).release(data, budget=PRICE, noise=simulated(5))
    loaded = Release.load(bought.save(tmp_path / "bought.npz"))
    assert loaded.bought == LogLinear(selected=10) and loaded.terms == bought.terms
    assert jaxcd.search(loaded).graph == jaxcd.search(bought).graph
    shares = jaxcd.edge_confidence(bought, n_draws=2)
    assert shares.n_draws == 2
    for algorithm in ("pc", "gfci"):
        assert jaxcd.search(bought, algorithm=algorithm).graph.n_nodes == 8


def test_the_rows_of_a_person_count_as_one():
    """Scores of shares move by two at most when a person of many rows is replaced."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 9, 60)
    ids = np.repeat(np.arange(60), sizes)
    rows = np.stack([rng.integers(0, k, len(ids)) for k in LEVELS], axis=1)
    other = np.array(rows)
    other[ids == 7] = [1, 2, 3, 1]
    price = Budget(50.0, 1e-6, unit="person")
    _, expected = drawn(2, 60)
    seen = []
    for codes in (rows, other):
        noise = Recording()
        data = jaxcd.Dataset(
            levelled(*LEVELS), codes.astype(np.int32), np.empty((len(ids), 0)), people=ids
        )
        account = Accountant(Ledger(price), noise)
        door = Door(data, price, by_person=True)
        choice = PairChoice(door, account, PAIRS, epsilon=0.05)
        choice.compare(models(expected))
        choice.take(1, label="a pair")
        seen.append(noise.seen[0])
    assert 0 < np.abs(seen[0] - seen[1]).max() <= 2 + 1e-4
    bought = LogLinear(selected=3).release(
        jaxcd.Dataset(
            levelled(*LEVELS), rows.astype(np.int32), np.empty((len(ids), 0)), people=ids
        ),
        budget=price,
        noise=simulated(0),
    )
    assert bought.n_samples == 60 and n_chosen(bought) == 3


def test_missing_cells_are_left_out_of_what_was_measured():
    data = sampled("asia", 20_000)
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical(c.levels, missing=True) for name, c in data.domain.columns.items()}
    )
    codes = np.array(data.codes)
    gone = np.random.default_rng(0).random(codes.shape) < 0.1
    codes[gone] = np.array([c.missing_code for c in domain.columns.values()])[np.nonzero(gone)[1]]
    bought = LogLinear(selected=12).release(
        jaxcd.Dataset.from_codes(codes, domain=domain), budget=Budget(4.0, 1e-6), noise=simulated(3)
    )
    found = jaxcd.search(bought).graph
    assert jaxcd.metrics.skeleton_f1(found, jaxcd.networks.load("asia").cpdag()) > 0.6


def test_several_sites_and_purchases_without_privacy_measure_all_pairs():
    data = sampled("asia", 5_000)
    free = LogLinear(selected=5).release(data, budget=NO_PRIVACY)
    assert len(free.interactions) >= 36
    assert not jaxcd.federated.coordinator.FederatedDoor.chooses


@pytest.mark.parametrize("wrong", [-1, 2.5, "many"])
def test_wrong_numbers_of_pairs_are_refused(wrong: Any):
    with pytest.raises(OptionError, match="selected"):
        LogLinear(selected=wrong)


# ---- purchases of marginal tables


def bought_by(
    data: jaxcd.Dataset, n_pairs: int, *, budget: Budget = PRICE, noise: Any = 0, **options: Any
) -> ReleasedMarginals:
    source = simulated(noise) if isinstance(noise, int) else noise
    return Marginals(selected=n_pairs, **options).release(data, budget=budget, noise=source)


def of_round_1(release: Release) -> list[Any]:
    return [row for row in release.charges if row["label"].startswith("round 1")]


def larger_ones(release: ReleasedMarginals) -> set[tuple[int, ...]]:
    """The pairs inside larger tables that were measured."""
    return {
        pair for s in release.interactions if len(s) > 2 for pair in itertools.combinations(s, 2)
    }


@given(
    seed=SEEDS,
    epsilon=st.floats(0.01, 50.0),
    n=st.integers(2, 3_000),
    d=st.integers(2, 7),
    wanted=st.integers(1, 25),
    accounting=st.sampled_from(list(jaxcd.privacy.Accounting)),
)
@settings(max_examples=15)
def test_the_prices_of_chosen_marginals_are_the_budget(
    seed: int, epsilon: float, n: int, d: int, wanted: int, accounting: Any
):
    rng = np.random.default_rng(seed)
    levels = rng.integers(1, 5, d).tolist()
    budget = Budget(epsilon, 1e-6, accounting=accounting)
    data = dependent(seed, n, *levels)
    release = bought_by(data, wanted, budget=budget, noise=seed % 97)
    whole = Ledger(budget).remaining_rho
    entry = "gdp_rho" if accounting is jaxcd.privacy.Accounting.GAUSSIAN else "rho"
    rhos = {row["label"]: row[entry] for row in release.charges}
    assert len(rhos) == len(release.charges) and release.spent.epsilon <= epsilon
    several = math.comb(sum(k > 1 for k in levels), 2)
    if wanted < math.comb(d, 2) and several:
        assert n_chosen(release) == min(wanted, several)
        first = sum(row[entry] for row in of_round_1(release))
        assert first == pytest.approx((0.07 + 0.35 + 0.28) * whole, rel=1e-9)
        assert sum(row.get("n_choices", 1) > 1 for row in release.charges) <= 10
    elif several:
        assert n_chosen(release) == 0
    if {"round 2", "round 3"} <= {label[:7] for label in rhos}:
        assert release.spent.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert sum(rhos.values()) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("n_pairs", [1, 13, 27])
def test_chosen_marginals_are_all_columns_and_so_many_pairs(n_pairs: int):
    """Of independent columns rounds 2 and 3 want nothing; of others only what is inside tables."""
    nothing = bought_by(independent(3_000, *(2,) * 8), n_pairs, dependence_alpha=1e-9)
    sets = set(nothing.interactions)
    assert n_chosen(nothing) == n_pairs == sum(len(s) == 2 for s in sets) == len(sets) - 8
    sizes = [row.get("n_choices", 1) for row in of_kind(nothing, "ExponentialMechanism")]
    assert len(sizes) == min(10, n_pairs) and max(sizes) - min(sizes) <= 1
    release = bought_by(sampled("asia", 20_000), n_pairs)
    pairs = {s for s in release.interactions if len(s) == 2}
    assert len(pairs - larger_ones(release)) <= n_pairs <= len(pairs)
    assert {(j,) for j in range(8)} <= set(release.interactions)


def test_a_chain_is_chosen_before_what_it_explains():
    """Path and mediators explain the other pairs: of 28 the seven of the chain are enough."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 3, (20_000, 8))
    for j in range(1, 8):
        rows[:, j] = np.where(rng.random(20_000) < 0.8, rows[:, j - 1], rows[:, j])
    release = bought_by(coded(rows, *(3,) * 8), 9, budget=Budget(10.0, 1e-6))
    pairs = {s for s in release.interactions if len(s) == 2}
    assert {(j, j + 1) for j in range(7)} <= pairs
    graph = jaxcd.search(release).graph
    assert {tuple(sorted(edge)) for edge in np.argwhere(graph.marks).tolist()} == {
        (j, j + 1) for j in range(7)
    }


@pytest.mark.parametrize("kind", [LogLinear, Marginals])
@pytest.mark.parametrize("n_required", [0, 6])
@pytest.mark.parametrize("n_pairs", [1, 12])
@pytest.mark.parametrize("price", [PRICE, Budget(2.0)])
def test_the_plan_bounds_the_noise_of_chosen_pairs(
    kind: Any, n_required: int, n_pairs: int, price: Budget
):
    data = independent(2_000, 2, 3, 2, 4, 2, 2, 3)
    required = [(data.names[0], data.names[j + 1]) for j in range(n_required)]
    options = kind(selected=n_pairs, knowledge=jaxcd.Knowledge(required=required))
    planned = options.plan(data.domain, 2_000, budget=price)
    release = options.release(data, budget=price, noise=simulated(0))
    first = [
        row
        for row in release.charges
        if row["label"].endswith("chosen pairs") and row["mechanism"] != "ExponentialMechanism"
    ]
    assert len(first) == min(n_pairs, 10 if kind is Marginals else 28)
    largest = max(
        row["sensitivity"] / math.sqrt(2 * row["rho"])
        if price.delta
        else math.sqrt(2) * row["sensitivity"] / row["epsilon"]
        for row in first
    )
    assert largest <= planned.noise * (1 + 1e-6)


# ---- purchases with delta = 0


@given(
    levels=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    chosen=st.sets(st.integers(0, 9), min_size=1),
)
@settings(max_examples=20)
def test_sets_under_laplace_noise_move_by_their_sensitivity(levels: list[int], chosen: set[int]):
    """All pairs of rows: interactions and tables by their definitions, from counts of one row."""
    d = len(levels)
    every = [(j,) for j in range(d)] + list(itertools.combinations(range(d), 2))
    sets = sorted({every[place % len(every)] for place in chosen})
    tables, sensitivity = sets_for_laplace(tuple(levels), sets)
    vectors = []
    for row in itertools.product(*(range(k) for k in levels)):
        parts = [np.zeros(0)]
        for s in sets:
            table = np.zeros([levels[j] for j in s])
            table[tuple(row[j] for j in s)] = 1.0
            parts.append((table if s in tables else interaction(table)).ravel())
        vectors.append(np.concatenate(parts))
    largest = max(np.abs(a - b).sum() for a, b in itertools.product(vectors, repeat=2))
    assert largest <= sensitivity <= largest * (1 + 1e-6) + 1e-9
    assert sensitivity <= 2.0 * len(sets) * (1 + 1e-9)


@pytest.mark.parametrize("kind", [LogLinear, Marginals])
@given(
    seed=SEEDS,
    epsilon=st.floats(0.01, 50.0),
    n=st.integers(2, 2_000),
    d=st.integers(2, 6),
    wanted=st.integers(1, 16),
)
@settings(max_examples=8)
def test_the_epsilons_of_pure_purchases_are_the_budget(
    kind: Any, seed: int, epsilon: float, n: int, d: int, wanted: int
):
    levels = np.random.default_rng(seed).integers(1, 5, d).tolist()
    data = dependent(seed, n, *levels)
    release = kind(selected=wanted).release(data, budget=Budget(epsilon), noise=simulated(seed % 9))
    assert release.spent.delta == 0 and release.spent.epsilon <= epsilon
    assert sum(row["epsilon"] for row in release.charges) <= epsilon * (1 + 1e-12)
    several = math.comb(sum(k > 1 for k in levels), 2)
    chooses = wanted < math.comb(d, 2)
    assert n_chosen(release) == (min(wanted, several) if chooses else 0)
    assert not of_kind(release, "Gaussian")
    jaxcd.search(release)


def test_pure_choices_find_more_than_noise_on_all_pairs():
    """A chain of 16 columns of three levels: noise on all 120 tables hides most of it."""
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 3, (6_000, 16))
    for j in range(1, 16):
        rows[:, j] = np.where(rng.random(6_000) < 0.6, rows[:, j - 1], rows[:, j])
    chain = {(j, j + 1) for j in range(15)}
    found = []
    for selected in (0, None):
        bought = LogLinear(selected=selected).release(
            coded(rows, *(3,) * 16), budget=Budget(0.5), noise=simulated(3)
        )
        found.append(len(chain & set(bought.terms)))
    assert n_chosen(bought) == 20 and found[0] <= 8 and found[1] >= 13


def test_the_rule_of_marginals_reads_public_facts_only():
    rule = Marginals().n_selected
    price = Budget(1.0, 1e-6)
    assert rule(levelled(*(2,) * 60), 1_000_000, budget=price) == 0
    for d, n in ((61, 20_000), (200, 100_000), (200, 3_000), (61, 300), (61, 10)):
        whole = Ledger(price).remaining_rho
        found = rule(levelled(*(2,) * d), n, budget=price)
        # scale of the Gumbel noise of a choice: 2 sensitivity / epsilon
        epsilon = Ledger(price).selection_within(0.35 * whole / found)
        assert 1 <= found <= 3 * d
        assert found == 1 or 2 * 2.0 / epsilon <= 0.02 * n * (1 + 1e-9)
        if found < 3 * d:
            more = Ledger(price).selection_within(0.35 * whole / (found + 1))
            assert 2 * 2.0 / more > 0.02 * n * (1 - 1e-9)
    many = levelled(*(2,) * 61)
    assert rule(many, 100_000_000, budget=price) == 0  # noise on all pairs is quiet
    # the Gumbel noise of a choice, 2 sensitivity / epsilon, is at most 2 % of the rows
    assert rule(many, 20_000, budget=Budget(1.0)) == int(0.35 / (4 / 400))
    assert rule(many, 100_000_000, budget=Budget(1.0)) == 0
    for fixed, n_pairs in ((0, 0), (5, 5), (1829, 1829), (1830, 0), (10_000, 0)):
        assert Marginals(selected=fixed).n_selected(many, 20_000, budget=price) == n_pairs
        assert Marginals(selected=fixed).n_selected(many, 20_000, budget=Budget(1.0)) == n_pairs
    names = many.names
    both = jaxcd.Knowledge(
        forbidden=[(names[0], b) for b in names[1:]] + [(b, names[0]) for b in names[1:]]
    )
    assert Marginals(selected=1770, knowledge=both).n_selected(many, 9, budget=price) == 0
    assert Marginals(selected=1769, knowledge=both).n_selected(many, 9, budget=price) == 1769


def test_knowledge_of_chosen_marginals():
    """Required pairs are measured and not chosen; forbidden ones only inside larger tables."""
    data = sampled("asia", 20_000)
    names = data.names
    forbidden = [(0, 1), (2, 3), (4, 5), (5, 7), (3, 6)]
    required = [(1, 2), (0, 7)]
    knowledge = jaxcd.Knowledge(
        forbidden=[(names[i], names[j]) for a, b in forbidden for i, j in ((a, b), (b, a))],
        required=[(names[i], names[j]) for i, j in required],
    )
    for n_pairs in (3, 20):
        release = bought_by(data, n_pairs, knowledge=knowledge)
        pairs = {s for s in release.interactions if len(s) == 2}
        assert set(required) <= pairs and n_chosen(release) == n_pairs
        assert not (pairs - larger_ones(release)) & set(forbidden)
        assert len(pairs - larger_ones(release) - set(required)) <= n_pairs
        for i, j in forbidden:
            assert j not in release.candidates[i] and i not in release.candidates[j]
        for i, j in required:
            assert j in release.candidates[i] or i in release.candidates[j]


@pytest.mark.parametrize("kind", [LogLinear, Marginals])
def test_required_pairs_are_measured_where_no_pair_is_left_to_choose(kind: Any):
    data = independent(500, 2, 2, 1, 1)
    knowledge = jaxcd.Knowledge(required=[("v0", "v1")])
    release = kind(selected=2, knowledge=knowledge).release(data, budget=PRICE, noise=simulated(0))
    assert (0, 1) in release.interactions and n_chosen(release) == 0
    assert release.table((0, 1)).shape == (2, 2)


def _hidden(domain: jaxcd.Domain) -> jaxcd.Domain:
    return jaxcd.Domain(
        {name: jaxcd.Categorical(c.levels, missing=True) for name, c in domain.columns.items()}
    )


def test_chosen_marginals_of_next_to_nothing():
    """Constant columns, columns of one level, two rows, nothing but missing cells."""
    rng = np.random.default_rng(0)
    mixed = np.stack([rng.integers(0, 2, 400), np.zeros(400), np.zeros(400), np.ones(400)], axis=1)
    empty = _hidden(levelled(2, 3, 2, 2))
    codes = np.tile([c.missing_code for c in empty.columns.values()], (300, 1))
    cases = [
        coded(mixed, 2, 3, 1, 2),
        coded(np.zeros((2, 4)), 2, 2, 2, 2),
        coded(np.array([[0, 1, 2], [1, 0, 2]]), 2, 2, 3),
        coded(np.zeros((2, 3)), 1, 1, 1),
        coded(np.zeros((2, 2)), 2, 1),
        jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=empty),
    ]
    for data, epsilon in itertools.product(cases, (0.01, 50.0)):
        release = bought_by(data, 2, budget=Budget(epsilon, 1e-6))
        assert release.spent.epsilon <= epsilon
        assert all(np.isfinite(values).all() for values in release.interactions.values())
        assert jaxcd.search(release).graph.n_nodes == len(data.names)
    free = Marginals(selected=2).release(cases[0], budget=NO_PRIVACY)
    assert {s for s in free.interactions if len(s) == 2} == set(itertools.combinations(range(4), 2))


def test_neighbours_are_asked_the_same_with_the_same_draws():
    """One record, and noise that hides it: the same labels, shapes and prices."""
    levels = (2, 3, 2, 2, 3, 2)
    rows = np.asarray(dependent(1, 2_000, *levels).codes)
    other = rows.copy()
    other[0] = (rows[0] + 1) % np.array(levels)
    asked = []
    for codes in (rows, other):
        release = bought_by(coded(codes, *levels), 12, budget=Budget(0.05, 1e-6), noise=7)
        asked.append(
            (
                [
                    (row["label"], row.get("dimension"), row.get("n_choices"), row["rho"])
                    for row in release.charges
                ],
                {s: v.shape for s, v in release.interactions.items()},
                release.variances,
            )
        )
    assert asked[0] == asked[1]


def test_marginals_of_people_choose_by_people():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    rows = np.stack([rng.integers(0, k, len(ids)) for k in LEVELS], axis=1)
    release = bought_by(
        jaxcd.Dataset(
            levelled(*LEVELS), rows.astype(np.int32), np.empty((len(ids), 0)), people=ids
        ),
        3,
        budget=Budget(50.0, 1e-6, unit="person"),
    )
    assert release.n_samples == 60 and n_chosen(release) == 3


def test_marginals_of_chosen_pairs_are_saved_and_asked(tmp_path):
    release = bought_by(sampled("asia", 10_000), 10)
    loaded = Release.load(release.save(tmp_path / "bought.npz"))
    assert loaded.bought == Marginals(selected=10)
    assert loaded.charges == release.charges and jaxcd.verify(loaded.certificate()).holds
    assert jaxcd.search(loaded).graph == jaxcd.search(release).graph
    assert jaxcd.search(release, algorithm="pc").graph.n_nodes == 8


@pytest.mark.parametrize("wrong", [-1, 2.5, "many"])
def test_wrong_numbers_of_pairs_of_marginals_are_refused(wrong: Any):
    with pytest.raises(OptionError, match="selected"):
        Marginals(selected=wrong)


# ---- any models of any neighbours


@given(seed=SEEDS, n=st.integers(2, 25), n_models=st.integers(1, 3), people=st.booleans())
@settings(max_examples=40)
def test_the_least_of_several_scores_moves_by_two_at_most(
    seed: int, n: int, n_models: int, people: bool
):
    """The scores that the mechanism sees, rows or people of several rows."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), rng.integers(1, 6, n)) if people else np.arange(n)
    rows = np.stack([rng.integers(0, k, len(ids)) for k in LEVELS], axis=1).astype(np.int32)
    other = rows.copy()
    mine = ids == rng.integers(n)
    other[mine] = np.stack([rng.integers(0, k, mine.sum()) for k in LEVELS], axis=1)
    price = Budget(50.0, 1e-6, unit="person") if people else PRICE
    several = [drawn(seed + m, n)[1] for m in range(n_models)]
    seen = []
    for codes in (rows, other):
        noise = Recording()
        data = (
            jaxcd.Dataset(levelled(*LEVELS), codes, np.empty((len(ids), 0)), people=ids)
            if people
            else coded(codes, *LEVELS)
        )
        door = Door(data, price, by_person=people)
        choice = PairChoice(door, Accountant(Ledger(price), noise), PAIRS, epsilon=0.05)
        for expected in several:
            choice.compare(models(expected))
        choice.take(2, label="pairs")
        seen.append(noise.seen[0])
    assert np.abs(seen[0] - seen[1]).max() <= 2 + 1e-4


# ---- searches by tests


def wide_release(max_cells: float = 0.1) -> tuple[ReleasedMarginals, set[tuple[int, int]]]:
    """Six chains of three columns, and the pairs that were not measured."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 4, (30_000, 18))
    for j in range(18):
        if j % 3:
            rows[:, j] = np.where(rng.random(30_000) < 0.8, rows[:, j - 1], rows[:, j])
    release = bought_by(coded(rows, *(4,) * 18), 14, max_cells=max_cells)
    pairs = set(itertools.combinations(range(18), 2))
    return release, {pair for pair in pairs if not release.is_measured(pair)}


def test_pairs_that_were_not_chosen_are_not_joined_and_make_no_colliders():
    """The ends of a chain that was found are explained by its middle: PC must not take it for a
    common effect because the ends were left out.
    """
    release, unmeasured = wide_release(max_cells=0.001)  # no triple
    ends = {(j, j + 2) for j in range(0, 18, 3)} & unmeasured
    assert ends
    names = release.names
    for algorithm in ("pc", "fci", "gfci"):
        run = jaxcd.search(release, algorithm=algorithm)
        marks = run.graph.marks
        assert not any(marks[pair] for pair in unmeasured)
        assert all(marks[j, j + 1] for j in range(18) if j % 3 < 2)
        for a, c in ends:
            assert not (marks[a, a + 1] == 2 and marks[c, a + 1] == 2), (algorithm, a)
        if algorithm != "gfci":
            assert not {frozenset((names[a], names[b])) for a, b in unmeasured} & set(
                run.separating_sets
            )
        assert f"{len(unmeasured):,} of 153 pairs were not measured" in " ".join(
            run.info["warnings"]
        )


def test_the_command_line_says_how_many_pairs_were_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release, unmeasured = wide_release(max_cells=0.001)
    file = release.save(tmp_path / "wide.npz")
    assert main(["search", str(file), "--algorithm", "pc"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"warning {len(unmeasured):,} of 153 pairs were not measured" in shown


def test_a_pair_that_was_not_measured_is_not_called_independent():
    release, unmeasured = wide_release()
    a, b = (release.names[j] for j in min(unmeasured))
    for z in ((), (release.names[17],)):
        with pytest.raises(OptionError, match="not measured"):
            jaxcd.ci_test(
                release, a, b, given=z, test=jaxcd.ChiSquare(), budget=NO_PRIVACY, key=None
            )


def test_listed_sets_are_those_that_are_admissible():
    release, _ = wide_release()
    prepared = release.tests()[jaxcd.ChiSquare](jaxcd.ChiSquare())
    for x, y in itertools.combinations(range(6), 2):
        every = {
            z
            for size in range(3)
            for z in itertools.combinations([v for v in range(18) if v not in (x, y)], size)
            if prepared.admissible(Query.of(x, y, z))
        }
        assert {s for s in prepared.conditioning_sets(y, x) if len(s) < 3} == every
        assert ((x, y) in prepared.apart) == (() not in every)


def test_a_release_is_shown_in_a_few_words():
    release, _ = wide_release()
    model = LogLinear(selected=9).release(sampled("asia", 2_000), budget=PRICE, noise=simulated(1))
    assert len(repr(release)) < 500 and len(repr(model)) < 500


@pytest.mark.parametrize("algorithm", ["pc", "fci", "gfci"])
@pytest.mark.parametrize("seed", range(4))
def test_listed_sets_change_no_answer(
    algorithm: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same questions in the same order as by asking of every set whether it was measured."""
    release = bought_by(sampled("asia", 20_000, seed=seed), 12, noise=seed)
    found = jaxcd.search(release, algorithm=algorithm)
    monkeypatch.setattr(PreparedNoisyTables, "conditioning_sets", lambda self, x, y: None)
    asked = jaxcd.search(release, algorithm=algorithm)
    assert found.graph == asked.graph and found.separating_sets == asked.separating_sets
    assert [level.n_asked for level in found.info["levels"]] == [
        level.n_asked for level in asked.info["levels"]
    ]


def test_there_is_no_second_round_where_noise_would_hide_much():
    """All is then spent on the columns, the choices and the pairs."""
    data = dependent(0, 1_000, *[3] * 12)
    few = jaxcd.release(data, LogLinear(), budget=Budget(1.0, 1e-6), noise=simulated())
    much = jaxcd.release(data, LogLinear(), budget=Budget(8.0, 1e-6), noise=simulated())
    second = [["round 2" in str(charge) for charge in one.charges] for one in (few, much)]
    assert not any(second[0]) and any(second[1])
    for one in (few, much):
        assert one.spent.epsilon == pytest.approx(one.cost.epsilon, rel=1e-6)
    for epsilon, parts in ((1.0, 3), (8.0, 4)):
        budget = Budget(epsilon, 1e-6)
        assert len(LogLinear().chosen_shares(data.domain, 1_000, budget=budget)) == parts
