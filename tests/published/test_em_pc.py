"""EM-PC: the parts against brute force and a plain reading, and three ways in which its guarantee
fails.
"""

from __future__ import annotations

import importlib
import itertools
import math

import jax
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd import metrics, networks, published
from jaxcd.citests import Query
from jaxcd.errors import DomainError
from jaxcd.published.accounting import svt_total
from jaxcd.published.flip_distance import g_statistic, greedy_flip_distance, increments
from tests.helpers import coded, refused

module = importlib.import_module("jaxcd.published.em_pc")  # the function of the same name hides it
G = increments(1000)
ALPHA = 0.1


def asia(n: int = 2000, seed: int = 0) -> jaxcd.Dataset:
    return networks.load("asia").sample(n, key=jax.random.key(seed))


def binary(codes: np.ndarray) -> jaxcd.Dataset:
    domain = jaxcd.Domain({f"v{j}": jaxcd.Ordinal((0, 1)) for j in range(codes.shape[1])})
    return coded(codes, domain)


# The utility


def plain_distance(table: np.ndarray, critical: float) -> int:
    """The search as it reads: every G from the definition, every cell tried at every step."""

    def g(counts: np.ndarray) -> float:
        total = 0.0
        for stratum in counts.astype(float):
            for a, b in np.ndindex(stratum.shape):
                if stratum[a, b]:
                    total += (
                        2
                        * stratum[a, b]
                        * math.log(
                            stratum[a, b] * stratum.sum() / (stratum[a].sum() * stratum[:, b].sum())
                        )
                    )
        return total

    sign, counts, steps = (1 if g(table) < critical else -1), table.copy(), 0
    while steps < table.sum() - 1:
        smaller = []
        for cell in np.ndindex(counts.shape):
            if counts[cell]:
                after = counts.copy()
                after[cell] -= 1
                smaller.append((sign * g(after), after))
        value, after = max(smaller, key=lambda pair: pair[0])
        if value >= sign * critical:
            break
        counts, steps = after, steps + 1
    return sign * steps


@pytest.mark.parametrize("shape", [(1, 2, 2), (2, 2, 3), (3, 2, 2)])
def test_the_search_is_the_plain_one(shape: tuple[int, int, int]):
    rng, signs = np.random.default_rng(0), set()
    dof = shape[0] * (shape[1] - 1) * (shape[2] - 1)
    critical = float(stats.chi2.isf(ALPHA, dof))
    for trial in range(25):
        cells = rng.dirichlet(np.full(math.prod(shape), (0.5, 5.0)[trial % 2]))
        # Odd weights: a tie between two cells would leave it open which is taken.
        table = (
            rng.multinomial(60, cells).reshape(shape)
            + np.arange(math.prod(shape)).reshape(shape) % 7
        )
        found = greedy_flip_distance(table, critical=critical, g=G)
        assert found == plain_distance(table, critical)
        signs.add(int(np.sign(found)))
    assert signs >= {-1, 1}


def test_g_is_scipys():
    rng = np.random.default_rng(1)
    tables = rng.integers(1, 30, (4, 3, 2))
    expected = sum(
        stats.chi2_contingency(t, correction=False, lambda_="log-likelihood").statistic
        for t in tables
    )
    assert g_statistic(tables) == pytest.approx(expected)
    assert g_statistic(np.zeros((2, 2, 2), dtype=int)) == 0
    assert np.diff([0, *np.cumsum(G)])[:3] == pytest.approx([0, 0, 2 * math.log(2)])


def least_changes(table: np.ndarray, critical: float) -> int:
    """By how few records replaced the answer flips: every table within reach, nearest first."""
    n, cells = int(table.sum()), table.size
    independent = g_statistic(table) < critical
    best = n
    for bars in itertools.combinations(range(n + cells - 1), cells - 1):
        counts = np.diff([-1, *bars, n + cells - 1]) - 1
        if (g_statistic(counts.reshape(table.shape)) < critical) != independent:
            best = min(best, int(np.maximum(counts - table.ravel(), 0).sum()))
    return best


def test_the_greedy_number_is_not_the_least_number_of_changes():
    """The least number moves by at most one between neighbours with the same answer; the greedy one
    by more, and it is larger.
    """
    critical, rng = float(stats.chi2.isf(ALPHA, 1)), np.random.default_rng(2)
    jumps, larger = [], 0
    for _ in range(6):
        table = rng.multinomial(12, rng.dirichlet(np.ones(4))).reshape(1, 2, 2)
        moved = table.copy()
        moved[np.unravel_index(int(table.argmax()), table.shape)] -= 1
        moved[np.unravel_index(int(table.argmin()), table.shape)] += 1
        least = [least_changes(part, critical) for part in (table, moved)]
        greedy = [
            abs(greedy_flip_distance(part, critical=critical, g=G)) + 1 for part in (table, moved)
        ]
        assert abs(least[0] - least[1]) <= 1
        jumps.append(abs(greedy[0] - greedy[1]))
        larger += greedy[0] > least[0]
    assert max(jumps) > 1 and larger > 0


# Why it is not private


@pytest.mark.parametrize("n", [100, 1000, 100_000])
def test_the_utility_moves_by_n_minus_one(n: int):
    """One replaced record: a constant column, from which no removal makes a dependence, becomes one
    that is about to be one.
    """
    first = 12 * n // 100
    constant = np.array([[[first, n - first], [0, 0]]])
    neighbour = np.array([[[first - 1, n - first], [1, 0]]])
    critical = float(stats.chi2.isf(ALPHA, 1))
    utilities = [
        greedy_flip_distance(t, critical=critical, g=increments(n)) for t in (constant, neighbour)
    ]
    assert utilities[0] == n - 1 and abs(utilities[1]) < 2


def two_candidates() -> tuple[np.ndarray, np.ndarray]:
    """Data on which v0, v1 given v2 has a larger p-value than given v3, and a neighbour on which it
    is the other way round.
    """
    rng = np.random.default_rng(0)
    while True:
        codes = rng.integers(0, 2, (60, 4))
        for row, column in itertools.product(range(10), (2, 3)):
            other = codes.copy()
            other[row, column] ^= 1
            if best_set(codes) == (2,) and best_set(other) == (3,):
                return codes, other


def options_at(codes: np.ndarray) -> list:
    return module.options_of(module._Tests(binary(codes), ALPHA), 0, [1, 2, 3], 1)


def best_set(codes: np.ndarray) -> tuple[int, ...]:
    return next(option.given for option in options_at(codes) if option.neighbor == 1)


def test_separating_sets_of_neighbours_have_disjoint_supports():
    """However small epsilon is, v1 is lost with the set {v2} on one data set, never with {v3}, and
    the reverse on its neighbour.

    P[lost with {v2}] is positive here and zero there: no epsilon holds.
    """
    lost: list[set[tuple[int, ...]]] = []
    for codes in two_candidates():
        options = options_at(codes)
        drawn = [
            option.given
            for seed in range(300)
            for option in module.visit(
                options, epsilon=0.01, alpha=ALPHA, stream=np.random.default_rng(seed)
            )
            if option.neighbor == 1
        ]
        assert len(drawn) > 50
        lost.append(set(drawn))
    assert lost == [{(2,)}, {(3,)}]


def test_the_total_depends_on_the_data():
    """The number of visits is that of variables with neighbours left: same settings, same size,
    other totals.
    """
    rng = np.random.default_rng(0)
    copies = np.repeat(rng.integers(0, 2, (400, 1)), 5, axis=1)
    independent = rng.integers(0, 2, (400, 5))
    totals = {
        published.em_pc(binary(c), epsilon=50.0, key=jax.random.key(0), max_level=2).cost.epsilon
        for c in (copies, independent)
    }
    assert len(totals) == 2


def test_is_not_proved_and_says_why():
    run = published.em_pc(asia(500), epsilon=1.0, key=jax.random.key(0), max_level=1)
    for cost in (run.cost, run.spent):
        assert not cost.proven
        assert all(
            word in cost.reason
            for word in ("separating sets", "sensitivity", "after the run", "simulated")
        )
    assert (
        run.cost.epsilon == svt_total(run.info["n_rounds"], 1.0, 1e-3) == run.info["total_epsilon"]
    )
    stated = next(g for g in jaxcd.guarantees() if g.mechanism == "published.em_pc")
    assert not stated.proven


# The algorithm


def option(neighbor: int, pvalue: float, utility: int):
    return module._Option(neighbor, (), pvalue, utility)


def test_utilities_of_the_counts():
    """Two independent neighbours at 7 and 3, two dependent ones at 4 and 9: losing two is right, by
    min(3, 4) - 1.
    """
    options = [option(1, 0.5, 7), option(2, 0.01, -4), option(3, 0.2, 3), option(4, 0.0, -9)]
    assert module.count_utilities(options, ALPHA) == [-8, -3, 2, -4, -10]
    assert module.count_utilities([option(1, 0.01, -5), option(2, 0.0, -6)], ALPHA) == [5, -5, -7]
    assert module.count_utilities([option(1, 0.3, 6), option(2, 0.2, 5)], ALPHA) == [-7, -5, 5]


def test_without_noise_a_visit_loses_the_independent_neighbours():
    """At a large epsilon those with positive utilities, the surest first; never all."""
    options = [option(1, 0.5, 7), option(2, 0.01, -4), option(3, 0.2, 3), option(4, 0.0, -9)]
    drawn = module.visit(options, epsilon=1e4, alpha=ALPHA, stream=np.random.default_rng(0))
    assert [o.neighbor for o in drawn] == [1, 3]
    both = [option(1, 0.5, 7), option(2, 0.2, 3)]
    assert [
        o.neighbor
        for o in module.visit(both, epsilon=1e4, alpha=ALPHA, stream=np.random.default_rng(0))
    ] == [1]


def test_draws_follow_the_exponential_mechanism():
    stream, utilities, epsilon, runs = np.random.default_rng(0), [0, 3, -2], 0.8, 4000
    counts = np.bincount(
        [module._draw(stream, utilities, epsilon) for _ in range(runs)], minlength=3
    )
    expected = np.exp(epsilon / 2 * np.array(utilities))
    assert stats.chisquare(counts, runs * expected / expected.sum()).pvalue > 1e-6


def test_one_that_was_drawn_may_be_drawn_again():
    """Utility -10,000 is not the smallest where n is large: the code's fault, kept."""
    options = [
        option(1, 0.5, 90_000),
        option(2, 0.5, 80_000),
        option(3, 0.0, -99_000),
        option(4, 0.0, -99_500),
    ]
    stream = np.random.default_rng(0)
    drawn = [module.visit(options, epsilon=1e-4, alpha=ALPHA, stream=stream) for _ in range(200)]
    assert any(len({o.neighbor for o in part}) < len(part) for part in drawn)


def test_options_are_the_largest_pvalues():
    data = asia(3000)
    tests = module._Tests(data, ALPHA)
    neighbors = [0, 2, 5, 6]
    found = module.options_of(tests, 1, neighbors, 1)
    assert [o.neighbor for o in found] == neighbors
    for o in found:
        pvalues = {}
        for v in (v for v in neighbors if v != o.neighbor):
            counts = np.zeros((2, 2, 2), dtype=int)
            np.add.at(counts, (data.codes[:, v], data.codes[:, 1], data.codes[:, o.neighbor]), 1)
            pvalues[v,] = stats.chi2.sf(g_statistic(counts), 2)
        assert o.pvalue == pytest.approx(max(pvalues.values()), rel=1e-6, abs=1e-300)
        assert pvalues[o.given] == pytest.approx(o.pvalue, rel=1e-6, abs=1e-300)
        assert (o.utility >= 0) == (o.pvalue > ALPHA) or o.utility == 0


def test_sets_are_filed_under_other_pairs():
    """The set of the t-th draw of x goes to the pair of x and t: most separated pairs are left with
    none.
    """
    run = published.em_pc(asia(6_000), epsilon=100.0, key=jax.random.key(0))
    separated_later = sum(record.n_separated for record in run.info["levels"] if record.level > 0)
    assert separated_later > 3
    assert sum(bool(given) for given in run.separating_sets.values()) < separated_later
    assert all(not pair & set(given) for pair, given in run.separating_sets.items())
    assert all(not run.graph.adjacent(*pair) for pair in run.separating_sets)


def test_a_large_epsilon_finds_most_of_the_skeleton():
    run = published.em_pc(asia(8_000), epsilon=1e4, key=jax.random.key(0), max_level=2)
    assert metrics.skeleton_f1(run.graph, networks.load("asia").cpdag()) > 0.6
    assert run.cost.epsilon == math.inf and run.info["n_tests"] > 56


def test_sets_with_too_few_records_are_not_asked():
    """Ten records a degree of freedom: with 30 of them, no set of two binary columns (4
    degrees).
    """
    data = binary(np.repeat(np.random.default_rng(0).integers(0, 2, (30, 1)), 5, axis=1))
    run = published.em_pc(data, epsilon=1.0, key=jax.random.key(0))
    assert max(record.level for record in run.info["levels"]) <= 1
    tests = module._Tests(data, ALPHA)
    assert tests.admissible(Query.of(0, 1, (2,))) and not tests.admissible(Query.of(0, 1, (2, 3)))


def test_reproducible_from_its_key():
    first, again, other = (
        published.em_pc(asia(1000), epsilon=0.01, key=jax.random.key(s), max_level=1)
        for s in (1, 1, 2)
    )
    assert first.graph == again.graph and dict(first.info) == dict(again.info)
    assert dict(first.info) != dict(other.info) or first.graph != other.graph


def test_constant_columns_and_columns_of_one_level():
    codes = np.array(asia(300).codes)
    codes[:, 2] = 0
    assert (
        published.em_pc(binary(codes), epsilon=1.0, key=jax.random.key(0), max_level=1).graph.names[
            2
        ]
        == "v2"
    )
    domain = jaxcd.Domain(
        {"a": jaxcd.Ordinal((0,)), "b": jaxcd.Ordinal((0, 1)), "c": jaxcd.Ordinal((0, 1))}
    )
    data = jaxcd.Dataset.from_codes(
        np.array([[0, 0, 1], [0, 1, 0], [0, 1, 1]] * 20, dtype=np.int32), domain=domain
    )
    assert published.em_pc(data, epsilon=1.0, key=jax.random.key(0)).graph.names == ("a", "b", "c")


def test_numeric_columns_are_refused():
    data = jaxcd.Dataset.from_array(np.random.default_rng(0).normal(size=(50, 2)), names=["a", "b"])
    refused(
        DomainError, "'a' is numeric", published.em_pc, data, epsilon=1.0, key=jax.random.key(0)
    )
