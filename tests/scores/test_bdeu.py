"""BDeu against its formula by loops over records, its score equivalence, and the counts behind
discrete scores.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.errors import DataError, DomainError, OptionError
from jaxcd.scores import BDeuScore
from jaxcd.scores.counts import DataCounts, TableCounts, denoised_counts
from tests.brute_force import all_dags, class_totals
from tests.helpers import coded, refused
from tests.scores.rows import CARDINALITIES, DATA, RNG, ROWS

dataset = functools.partial(coded, kind=jaxcd.Categorical)
FAMILIES = [
    (node, parents)
    for node in range(4)
    for k in range(4)
    for parents in itertools.combinations([v for v in range(4) if v != node], k)
]


def by_records(node: int, parents: tuple[int, ...], weight: float) -> float:
    """All cells of the declared domain, empty ones too."""
    q = math.prod(CARDINALITIES[p] for p in parents)
    r = CARDINALITIES[node]
    cells = Counter((tuple(row[list(parents)]), row[node]) for row in ROWS)
    total = 0.0
    for state in itertools.product(*(range(CARDINALITIES[p]) for p in parents)):
        counts = [cells[state, x] for x in range(r)]
        total += math.lgamma(weight / q) - math.lgamma(weight / q + sum(counts))
        total += sum(
            math.lgamma(weight / (q * r) + count) - math.lgamma(weight / (q * r))
            for count in counts
        )
    return total


@pytest.mark.parametrize("weight", [1.0, 10.0, 0.01])
def test_it_is_the_formula(weight: float):
    score = BDeuScore.of_data(DATA, equivalent_sample_size=weight)
    for node, parents in FAMILIES:
        assert score.local(node, parents) == pytest.approx(
            by_records(node, parents, weight), rel=1e-10
        )


def test_a_batch_is_its_members_in_any_order():
    score, single = BDeuScore.of_data(DATA), BDeuScore.of_data(DATA)
    for node in range(4):
        families = [parents for v, parents in reversed(FAMILIES) if v == node]
        assert score.locals(node, families).tolist() == [
            single.local(node, parents) for parents in families
        ]


def test_small_data_by_hand():
    """One column of two levels, three records of which the last has the other level: the
    probability of the second given the first is (1/2 + 1) / 2, and of the third (1/2) / 3.
    """
    data = dataset(np.array([[0, 0], [0, 0], [1, 0]]), 2, 2)
    score = BDeuScore.of_data(data, equivalent_sample_size=1.0)
    assert score.local(0, ()) == pytest.approx(math.log(0.5 * 0.75 / 6), rel=1e-12)


def test_levels_that_nobody_holds_join_nothing():
    """With prior weight on them, the gain of an arc between independent columns grew with n."""
    rows = RNG.integers(0, 2, (20_000, 2))
    bare, declared = (BDeuScore.of_data(dataset(rows, k, k)) for k in (2, 4))
    assert declared.local(0, (1,)) < declared.local(0, ())
    for parents in (), (1,):
        assert declared.local(0, parents) == bare.local(0, parents)
    constant = BDeuScore.of_data(dataset(np.column_stack([rows[:, 0], 0 * rows[:, 1]]), 4, 4))
    assert constant.candidates(0) == constant.candidates(1) == ()
    run = jaxcd.order_mcmc(
        dataset(rows, 4, 4),
        budget=jaxcd.NO_PRIVACY,
        key=jax.random.key(0),
        n_steps=300,
        burn_in=100,
    )
    assert run.graph.n_edges == 0


def test_equivalent_dags_have_equal_scores():
    score = BDeuScore.of_data(DATA, equivalent_sample_size=3.0)
    totals = class_totals(score, all_dags(4), tolerance=1e-9)
    # and different classes differ
    assert len(totals) == 185 and len({round(total, 6) for total in totals}) > 150


@settings(max_examples=15)
@given(
    st.integers(0, 2**32),
    st.sampled_from([40, 400]),
    st.lists(st.sampled_from([1, 2, 3, 12]), min_size=5, max_size=5),
)
def test_counts_are_those_of_a_loop(seed: int, n: int, cardinalities: list[int]):
    """Few cells (bit masks), many (scattered) and more than rows (sorted) alike."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, r, n) for r in cardinalities], axis=1)
    counts = DataCounts(dataset(rows, *cardinalities))
    sets = [(), (0,), (1, 3), (0, 2, 4), (1, 2, 3, 4), (0, 1, 2, 3, 4)]
    for columns, found in zip(sets, counts.of(sets), strict=True):
        expected = Counter(tuple(row[list(columns)]) for row in rows)
        assert sorted(found[found > 0].tolist()) == sorted(expected.values())


def test_more_cells_than_numbers_are_counted():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 3, (60, 50))
    rows[30:] = rows[:30]
    found = DataCounts(dataset(rows, *(3,) * 50)).of([tuple(range(50))])[0]
    assert found.tolist() == [2] * 30  # 3^50 cells


def test_noise_is_taken_off_tables():
    truth = np.zeros((4, 4, 4))
    truth[0, 0, 0], truth[1, 2, 3] = 600, 400
    noisy = truth + np.random.default_rng(0).laplace(scale=2.0, size=truth.shape)
    counts = denoised_counts(noisy, scale=2.0, n_samples=1000)
    joint = counts.of([(0, 1, 2)])[0]
    assert joint.sum() == pytest.approx(1000) and (joint >= 0).all()
    assert np.abs(joint - truth).sum() < 0.2 * np.abs(noisy - truth).sum()
    exact = denoised_counts(truth, scale=0.0, n_samples=1000).of([(0, 1, 2)])[0]
    np.testing.assert_allclose(exact, truth, atol=1e-9)


def test_refusals():
    for weight in (0.0, -1.0, math.nan, math.inf, True, "10"):
        with pytest.raises(OptionError, match="equivalent_sample_size"):
            BDeuScore.of_data(DATA, equivalent_sample_size=weight)  # type: ignore[arg-type]
    refused(OptionError, "max_parents", BDeuScore.of_data, DATA, max_parents=-1)
    with pytest.raises(DomainError, match="numeric"):
        BDeuScore.of_data(jaxcd.Dataset.from_array(RNG.normal(size=(20, 2))))
    refused(DataError, "not negative", TableCounts, np.array([[1.0, -1.0]]), n_samples=1)
