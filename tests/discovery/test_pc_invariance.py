"""What PC on data must not depend on: the order of columns and rows, how often it is run, what else
is in the table.
"""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.errors import JaxcdError, OptionError
from tests.catalogue import EACH_TABLE_TEST
from tests.helpers import PLAIN, SEEDS, coded, dependent, levelled, numbers, refused

LEVELS = (2, 3, 2, 3, 2, 4)
DOMAIN = levelled(*LEVELS)


def dataset(seed: int, n: int = 400) -> jaxcd.Dataset:
    """Weakly dependent columns, with decisions near the threshold; some columns are copies of
    others.
    """
    codes = np.array(dependent(seed, n, *LEVELS, share=lambda rng: rng.uniform(0, 0.6)).codes)
    if seed % 3 == 0:
        codes[:, 4] = codes[:, 2]
    return coded(codes, DOMAIN)


def plain(data: jaxcd.Dataset, test: jaxcd.citests.CITest, **options) -> jaxcd.DiscoveryResult:
    return jaxcd.pc(data, test=test, **PLAIN, **options)


@EACH_TABLE_TEST
@settings(max_examples=8)
@given(seed=SEEDS, order=st.permutations(range(len(LEVELS))))
def test_stable_skeleton_does_not_depend_on_column_order(test, seed: int, order: list[int]):
    data = dataset(seed)
    names = data.names
    first, second = plain(data, test), plain(data.permuted(order), test)
    assert second.graph.names == tuple(names[j] for j in order)
    assert second.graph.skeleton().reordered(names) == first.graph.skeleton()
    assert set(second.separating_sets) == set(first.separating_sets)


@settings(max_examples=20)
@given(
    seed=SEEDS,
    order=st.permutations(range(len(LEVELS))),
    rule=st.sampled_from(jaxcd.discovery.ConflictRule),
)
def test_with_the_majority_rule_the_whole_graph_does_not(
    seed: int, order: list[int], rule: jaxcd.discovery.ConflictRule
):
    data = dataset(seed)
    options = {"colliders": jaxcd.discovery.ColliderRule.MAJORITY, "conflicts": rule}
    first = plain(data, jaxcd.GTest(), **options)
    second = plain(data.permuted(order), jaxcd.GTest(), **options)
    assert second.graph.reordered(data.names) == first.graph


@settings(max_examples=10)
@given(SEEDS, st.permutations(range(5)))
def test_numeric_columns(seed: int, order: list[int]):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(200, 5))
    values[:, 1] += values[:, 0]
    values[:, 2] += 0.2 * values[:, 1]
    values[:, 4] = values[:, 3]  # exact copies
    data = jaxcd.Dataset.from_array(values, domain=numbers(5))
    first, second = plain(data, jaxcd.FisherZ()), plain(data.permuted(order), jaxcd.FisherZ())
    assert second.graph.skeleton().reordered(data.names) == first.graph.skeleton()


@EACH_TABLE_TEST
def test_order_of_rows_does_not_matter(test):
    data = dataset(5)
    order = np.random.default_rng(0).permutation(400)
    again = coded(data.codes[order], DOMAIN)
    first, second = plain(data, test), plain(again, test)
    assert first.graph == second.graph and first.separating_sets == second.separating_sets


@pytest.mark.parametrize("stable", [True, False])
def test_skeleton_agrees_with_a_plain_loop(stable: bool):
    """PC's skeleton written out, one test after the other, with scipy's G test."""
    from scipy.stats import chi2, chi2_contingency

    for seed in (1, 3, 8):
        data = dataset(seed, 600)
        codes = data.codes

        def independent(x: int, y: int, given: tuple[int, ...], codes=codes) -> bool:
            statistic = dof = 0.0
            for key in set(map(tuple, codes[:, given])):
                block = codes[(codes[:, given] == key).all(axis=1)] if given else codes
                table = np.zeros((LEVELS[x], LEVELS[y]))
                np.add.at(table, (block[:, x], block[:, y]), 1)
                table = table[table.sum(1) > 0][:, table.sum(0) > 0]
                if min(table.shape) > 1:
                    result = chi2_contingency(table, correction=False, lambda_="log-likelihood")
                    statistic, dof = statistic + result.statistic, dof + result.dof
            return dof == 0 or chi2.sf(statistic, dof) >= 0.05

        d = len(LEVELS)
        adjacent = ~np.eye(d, dtype=bool)
        level = 0
        while (adjacent.sum(1) > level).any():
            frozen = adjacent.copy()
            for x, y in itertools.combinations(range(d), 2):
                known = frozen if stable else adjacent
                if not adjacent[x, y]:
                    continue
                sides = [
                    np.flatnonzero(known[a] & (np.arange(d) != b)).tolist()
                    for a, b in ((x, y), (y, x))
                ]
                candidates = {c for side in sides for c in itertools.combinations(side, level)}
                if any(independent(x, y, c) for c in candidates):
                    adjacent[x, y] = adjacent[y, x] = False
            level += 1
        result = plain(data, jaxcd.GTest(), stable=stable)
        if stable:
            np.testing.assert_array_equal(result.graph.adjacency, adjacent)
        else:  # the order of pairs is the search's own; the answers are those of the same test
            for a, b in map(tuple, result.separating_sets):
                given = tuple(
                    data.names.index(name) for name in result.separating_sets[frozenset((a, b))]
                )
                assert independent(data.names.index(a), data.names.index(b), given)


def test_separating_sets_are_neighbours_and_separate():
    data = dataset(4, 1000)
    result = plain(data, jaxcd.ChiSquare())
    assert result.separating_sets
    for pair, separating_set in result.separating_sets.items():
        a, b = sorted(pair)
        answer = jaxcd.ci_test(
            data,
            a,
            b,
            given=separating_set,
            test=jaxcd.ChiSquare(),
            budget=jaxcd.NO_PRIVACY,
            key=None,
        )
        assert answer.independent and answer.pvalue >= 0.05


def test_the_callers_configuration_is_left_alone():
    before = dict(jax.config.values)
    plain(dataset(2), jaxcd.CovarianceNorm())
    assert dict(jax.config.values) == before


@pytest.mark.parametrize(
    "options",
    [
        {"max_level": -1},
        {"max_level": 1.5},
        {"max_level": "all"},
        {"key": 7},
        {"key": np.array([1, 2])},
        {"noise": 3},
        {"budget": None},
        {"budget": 1.0},
        {"decider": "threshold"},
        {"test": "chi-square"},
        {"colliders": "majority"},
        {"conflicts": 1},
    ],
    ids=str,
)
def test_malformed_options_are_named(options: dict):
    defaults = {"test": jaxcd.GTest(), **PLAIN}
    refused(OptionError, next(iter(options)), jaxcd.pc, dataset(0), **{**defaults, **options})


def test_data_of_another_type_is_refused():
    options = {"test": jaxcd.GTest(), **PLAIN}
    for data in (np.zeros((5, 2)), 3, [[0, 1], [1, 0]]):
        refused(JaxcdError, "data", jaxcd.pc, data, **options)
