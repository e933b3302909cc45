from __future__ import annotations

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxcd.data import Dataset
from jaxcd.local import (
    BoundedGeometric,
    CombinedGeometric,
    Distance,
    channels,
    combined_sampling,
    joint_channel,
    randomise,
)
from jaxcd.local.distances import Layout, decay_rates
from tests.helpers import coded, levelled, simulated

SMALL = st.lists(st.integers(1, 5), min_size=1, max_size=3)


ordinal = functools.partial(levelled, name="x")


def step_index(distance: Distance, x, y) -> int:
    """The (squared) distance as a whole number, straight from the definition."""
    differences = [abs(int(a) - int(b)) for a, b in zip(x, y, strict=True)]
    return {
        Distance.MANHATTAN: sum(differences),
        Distance.EUCLIDEAN: sum(t * t for t in differences),
        Distance.CHEBYSHEV: max(differences),
    }[distance]


def as_distance(distance: Distance, index: int) -> float:
    return math.sqrt(index) if distance is Distance.EUCLIDEAN else float(index)


def exact_counts(distance: Distance, x, cardinalities) -> dict[int, int]:
    """Cells at each (squared) distance from x in whole numbers, one column after the other."""
    counts = {0: 1}
    for level, k in zip(x, cardinalities, strict=True):
        now: Counter[int] = Counter()
        for total, number in counts.items():
            for y in range(k):
                t = abs(level - y)
                key = (
                    max(total, t)
                    if distance is Distance.CHEBYSHEV
                    else total + (t * t if distance is Distance.EUCLIDEAN else t)
                )
                now[key] += number
        counts = dict(now)
    return counts


@settings(max_examples=40, derandomize=True)
@given(SMALL, st.sampled_from(Distance))
def test_counts_and_eccentricities_equal_enumeration(cardinalities, distance):
    layout = Layout(cardinalities, distance)
    cells = np.array(list(itertools.product(*map(range, cardinalities))), dtype=np.int32)
    classes, columns = layout.classes_of(cells)
    counts = layout.partials(classes).exact[-1]
    for i, x in enumerate(cells):
        direct = Counter(step_index(distance, x, y) for y in cells)
        assert counts[i].tolist() == [direct[index] for index in range(len(layout.radii))]
        assert layout.eccentricities(classes[i : i + 1])[0] == pytest.approx(
            as_distance(distance, max(direct))
        )
        assert [min(x[j], cardinalities[j] - 1 - x[j]) for j in columns[i]] == classes[i].tolist()
    assert layout.n_classes == len(np.unique(classes, axis=0))
    assert sorted(map(tuple, layout.all_classes())) == sorted({tuple(row) for row in classes})


@pytest.mark.parametrize("distance", Distance)
@pytest.mark.parametrize("cardinalities", [(10,) * 11, (2, 3, 7, 20, 20, 9, 4, 16) * 3])
def test_counts_on_huge_domains_equal_whole_number_arithmetic(distance, cardinalities):
    rng = np.random.default_rng(0)
    layout = Layout(cardinalities, distance)
    x = np.array([[rng.integers(k) for k in cardinalities] for _ in range(2)], dtype=np.int32)
    counts = layout.partials(layout.classes_of(x)[0]).exact[-1]
    for row, got in zip(x.tolist(), counts, strict=True):
        exact = exact_counts(distance, row, cardinalities)
        assert sum(exact.values()) == math.prod(cardinalities)
        assert {index for index in range(len(got)) if got[index]} == set(exact)
        assert all(
            got[index] == pytest.approx(number, rel=1e-13, abs=0) for index, number in exact.items()
        )


def rate_of(layout: Layout, x: list[int], p_max: float) -> float:
    return float(layout.rates(layout.classes_of(np.array([x], dtype=np.int32))[0], p_max)[0])


@pytest.mark.parametrize("p_max", [1.0000001e-11, 1e-9, 0.05, 0.5, 0.999999])
@pytest.mark.parametrize("distance", Distance)
def test_rates_normalise_huge_domains(distance, p_max):
    layout = Layout((10,) * 11, distance)
    for x in ([0] * 11, [4] * 11, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2]):
        rate = rate_of(layout, x, p_max)
        terms = [
            n * math.exp(-rate * as_distance(distance, i))
            for i, n in exact_counts(distance, x, (10,) * 11).items()
        ]
        assert p_max * math.fsum(terms) == pytest.approx(1, rel=1e-11)
        lies = math.fsum(sorted(terms)[:-1]) if p_max > 0.5 else math.fsum(terms) - 1
        assert lies == pytest.approx((1 - p_max) / p_max, rel=1e-9)


def test_rates_do_not_depend_on_the_start():
    counts = np.array([[1.0, 2, 2, 2, 2, 1], [1, 1, 1, 1, 1, 1]])
    expected = decay_rates(counts, np.arange(6.0), 0.4)
    for start in (0.1, 1.0, 3.0):
        assert np.allclose(
            decay_rates(counts, np.arange(6.0), 0.4, start=start), expected, rtol=1e-12
        )


@settings(max_examples=40, derandomize=True)
@given(SMALL, st.sampled_from(Distance), st.floats(0.01, 0.99))
def test_the_joint_channel_has_the_stated_form(cardinalities, distance, share):
    n_cells = math.prod(cardinalities)
    p_max = 1 / n_cells + share * (1 - 1 / n_cells)
    if n_cells == 1 or not p_max < 1:
        return
    matrix = joint_channel(CombinedGeometric(p_max, distance), ordinal(*cardinalities))
    assert np.allclose(matrix.sum(axis=1), 1, rtol=1e-13) and np.allclose(
        np.diag(matrix), p_max, rtol=1e-12
    )
    cells = list(itertools.product(*map(range, cardinalities)))
    for i, x in enumerate(cells):  # -log(P / p_max) is one rate times the distance
        lengths = np.array([as_distance(distance, step_index(distance, x, y)) for y in cells])
        exponents = -np.log(matrix[i] / p_max)
        rate = exponents.max() / lengths.max()
        assert np.allclose(exponents, rate * lengths, rtol=1e-9, atol=1e-9)


def goodness_of_fit(mechanism, cardinalities, *, repeats, noise):
    """p-value of randomised records, all cells in mixed order, against the enumerated channel."""
    domain = ordinal(*cardinalities)
    matrix = joint_channel(mechanism, domain)
    truth = np.random.default_rng(9).permutation(np.repeat(np.arange(len(matrix)), repeats))
    codes = np.stack(np.unravel_index(truth, cardinalities), axis=1)
    out = np.ravel_multi_index(
        tuple(randomise(coded(codes, domain), mechanism, noise=noise).codes.T), cardinalities
    )
    observed = np.zeros(matrix.shape)
    np.add.at(observed, (truth, out), 1)
    expected = matrix * repeats
    keep = expected >= 5
    assert keep.mean() > 0.5
    # with the rare cells left out the rows no longer add up: they enter as one cell a row
    rest, rare = (expected * ~keep).sum(axis=1), (observed * ~keep).sum(axis=1)
    pooled = rest >= 5
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum() + (
        (rare - rest)[pooled] ** 2 / rest[pooled]
    ).sum()
    return stats.chi2.sf(statistic, keep.sum() + pooled.sum() - len(matrix))


@pytest.mark.parametrize("distance", Distance)
@pytest.mark.parametrize("cardinalities", [(3, 4), (4, 3, 3), (2, 5, 2), (3, 1, 2, 4), (6, 6)])
def test_samples_follow_the_enumerated_channel(cardinalities, distance):
    mechanism = CombinedGeometric(0.2, distance)
    assert goodness_of_fit(mechanism, cardinalities, repeats=3_000, noise=simulated(1)) > 1e-4


def test_small_chunks_and_blocks_change_nothing(monkeypatch):
    mechanism = CombinedGeometric(0.2, Distance.EUCLIDEAN)
    monkeypatch.setattr(combined_sampling, "_BLOCK", 4000)
    monkeypatch.setattr(
        Layout, "chunks", lambda self, n: (slice(i, min(i + 2, n)) for i in range(0, n, 2))
    )
    assert goodness_of_fit(mechanism, (3, 4), repeats=3_000, noise=simulated(2)) > 1e-4


RECORDS = {"corner": [0] * 11, "mixed": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 4]}


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("distance", Distance)
@pytest.mark.parametrize("p_max", [1e-8, 0.05])
def test_distances_on_a_huge_domain_follow_the_closed_form(distance, record, p_max):
    x, n, domain = RECORDS[record], 20_000, ordinal(*[10] * 11)
    data = Dataset.from_codes(np.tile(x, (n, 1)), domain=domain)
    out = randomise(data, CombinedGeometric(p_max, distance), noise=simulated(3)).codes
    seen = Counter(step_index(distance, x, y) for y in out)
    exact = exact_counts(distance, x, (10,) * 11)
    layout = Layout((10,) * 11, distance)
    rate = rate_of(layout, x, p_max)
    expected = {
        i: n * p_max * number * math.exp(-rate * as_distance(distance, i))
        for i, number in exact.items()
    }
    common = [i for i in sorted(expected) if expected[i] >= 10]
    observed = np.array([*(seen[i] for i in common), n - sum(seen[i] for i in common)])
    predicted = np.array([*(expected[i] for i in common), n - sum(expected[i] for i in common)])
    if predicted[-1] < 5:
        observed, predicted = (
            observed[:-1],
            predicted[:-1] * observed[:-1].sum() / predicted[:-1].sum(),
        )
    assert stats.chisquare(observed, predicted, sum_check=False).pvalue > 1e-4


def test_manhattan_on_a_huge_domain_factorises():
    """exp(-eps sum of differences) is a product: given x, columns are independent with the
    one-column law of rate eps_x.
    """
    x, n, p_max = RECORDS["mixed"], 40_000, 1e-6
    data = Dataset.from_codes(np.tile(x, (n, 1)), domain=ordinal(*[10] * 11))
    out = randomise(data, CombinedGeometric(p_max, Distance.MANHATTAN), noise=simulated(4)).codes
    layout = Layout((10,) * 11, Distance.MANHATTAN)
    rate = rate_of(layout, x, p_max)
    laws = [np.exp(-rate * np.abs(np.arange(10) - level)) for level in x]
    laws = [law / law.sum() for law in laws]
    assert math.prod(law[level] for law, level in zip(laws, x, strict=True)) == pytest.approx(
        p_max, rel=1e-10
    )
    for j, law in enumerate(laws):
        assert stats.chisquare(np.bincount(out[:, j], minlength=10), n * law).pvalue > 1e-5
    for a, b in [(0, 1), (4, 7), (9, 10)]:
        table = np.zeros((10, 10))
        np.add.at(table, (out[:, a], out[:, b]), 1)
        assert stats.chisquare(table.ravel(), n * np.outer(laws[a], laws[b]).ravel()).pvalue > 1e-5


@pytest.mark.parametrize("distance", [Distance.EUCLIDEAN, Distance.CHEBYSHEV])
def test_cells_at_one_distance_are_equally_likely(distance):
    """On a domain too large for the enumerated test: the cells at one distance, found by
    enumeration.
    """
    cardinalities, x = (9, 9, 9, 9, 9), (1, 4, 0, 7, 2)
    index = {Distance.EUCLIDEAN: 5, Distance.CHEBYSHEV: 1}[distance]
    domain = ordinal(*cardinalities)
    n = 40_000
    data = Dataset.from_codes(np.tile(x, (n, 1)), domain=domain)
    out = randomise(data, CombinedGeometric(0.02, distance), noise=simulated(5)).codes
    cells = [
        y
        for y in itertools.product(*(range(max(0, a - 2), min(9, a + 3)) for a in x))
        if step_index(distance, x, y) == index
    ]
    seen = Counter(tuple(y) for y in out.tolist() if step_index(distance, x, y) == index)
    assert len(cells) == exact_counts(distance, x, cardinalities)[index] and set(seen) <= set(cells)
    observed = np.array([seen[y] for y in cells])
    assert observed.mean() > 4
    assert stats.chisquare(observed).pvalue > 1e-4


@pytest.mark.parametrize("distance", Distance)
def test_one_column_is_the_bounded_geometric(distance):
    for k, p_max in [(7, 0.3), (10, 0.5)]:
        combined = CombinedGeometric(p_max, distance)
        assert np.allclose(
            joint_channel(combined, ordinal(k)),
            channels(BoundedGeometric(p_max), ordinal(k))[0],
            rtol=1e-12,
        )
        ours, theirs = combined.guarantee(ordinal(k)), BoundedGeometric(p_max).guarantee(ordinal(k))
        assert ours.epsilon_ldp == pytest.approx(theirs.epsilon_ldp, rel=1e-12)
        assert ours.d_privacy == pytest.approx(theirs.d_privacy, rel=1e-12)
