"""Pairs chosen by the exponential mechanism: scores, their sensitivity, the law of the choice, and
purchases of log-linear models that choose.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import jaxcd
from jaxcd.errors import OptionError
from jaxcd.privacy import NO_PRIVACY, Accountant, Budget, Ledger
from jaxcd.queries import Door
from jaxcd.releases import LogLinear, Release
from jaxcd.releases.tables.pair_models import Expected
from jaxcd.releases.tables.pair_selection import PairChoice
from tests.helpers import SEEDS, Quick, coded, dependent, levelled, sampled, simulated

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
    choice = PairChoice(Door(coded(codes, *LEVELS), PRICE), account, PAIRS, rho=rho)
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
    assert rule(many, 1_000, budget=Budget(1.0)) == 0  # Laplace noise
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
        choice = PairChoice(door, account, PAIRS, rho=1e-3)
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


def test_several_sites_and_pure_budgets_measure_all_pairs():
    data = sampled("asia", 5_000)
    pure = LogLinear(selected=5).release(data, budget=Budget(4.0), noise=simulated(0))
    assert not of_kind(pure, "ExponentialMechanism")
    assert {s for s in pure.interactions if len(s) == 2} == set(itertools.combinations(range(8), 2))
    free = LogLinear(selected=5).release(data, budget=NO_PRIVACY)
    assert len(free.interactions) >= 36
    assert not jaxcd.federated.coordinator.FederatedDoor.chooses


@pytest.mark.parametrize("wrong", [-1, 2.5, "many"])
def test_wrong_numbers_of_pairs_are_refused(wrong: Any):
    with pytest.raises(OptionError, match="selected"):
        LogLinear(selected=wrong)
