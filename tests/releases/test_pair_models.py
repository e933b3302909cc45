"""What released pairs say of the others: the laws of trees by brute force over all cells, tables by
mediators, and tables that are nothing but noise.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.ops import interactions as ops
from jaxcd.privacy import NO_PRIVACY
from jaxcd.releases import Marginals, ReleasedMarginals
from jaxcd.releases.tables import pair_models
from jaxcd.releases.tables.pair_models import (
    Expected,
    by_levels,
    expected_of_mediators,
    expected_of_paths,
    independent,
)
from jaxcd.releases.tables.pair_tables import PairTables
from tests.helpers import SEEDS, coded

Pair = tuple[int, int]
N = 1_000_000_000
NOTHING = Marginals().release(coded(np.zeros((2, 2)), 2, 2), budget=NO_PRIVACY)


def forest(rng: np.random.Generator, d: int) -> tuple[list[int], list[Pair], np.ndarray]:
    """Levels, edges, and the joint law of columns of a random forest: every cell."""
    levels = rng.integers(2, 6 if d < 6 else 4, d).tolist()
    levels[int(rng.integers(d))] = 1
    order = rng.permutation(d).tolist()
    edges: list[Pair] = []
    joint = np.ones(levels)

    def times(columns: tuple[int, ...], table: np.ndarray) -> np.ndarray:
        """A table of columns, as it multiplies the joint law."""
        shape = [levels[j] if j in columns else 1 for j in range(d)]
        return table.transpose(np.argsort(columns)).reshape(shape)

    for place, v in enumerate(order):
        parents = [u for u in order[:place] if levels[u] > 1]
        if levels[v] > 1 and parents and rng.random() < 0.75:
            u = parents[int(rng.integers(len(parents)))]
            law = 0.85 * rng.dirichlet(np.full(levels[v], 0.7), levels[u]) + 0.15 / levels[v]
            edges.append((min(u, v), max(u, v)))
            joint = joint * times((u, v), law)
        else:
            law = rng.dirichlet(np.full(levels[v], 3.0)) * 0.8 + 0.2 / levels[v]
            joint = joint * times((v,), law)
    assert joint.sum() == pytest.approx(1.0)
    return levels, edges, joint


def table_of(joint: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    return N * joint.sum(axis=tuple(j for j in range(joint.ndim) if j not in columns))


def released(levels: list[int], values: Any, variances: Any = None, n: int = N) -> PairTables:
    data = coded(np.zeros((2, len(levels))), *levels)
    return PairTables(
        ReleasedMarginals(
            data.domain,
            n,
            values,
            variances or dict.fromkeys(values, 0.0),
            ((),) * len(levels),
            NOTHING.cost,
            NOTHING.spent,
        )
    )


def exact(levels: list[int], joint: np.ndarray, pairs: Iterable[Pair]) -> PairTables:
    sets = [(), *((j,) for j in range(len(levels))), *pairs]
    return released(levels, {s: np.asarray(ops.interaction(table_of(joint, s))) for s in sets if s})


def tables_by_pair(models: Iterable[Expected], levels: list[int]) -> dict[Pair, list[np.ndarray]]:
    found: defaultdict[Pair, list[np.ndarray]] = defaultdict(list)
    for pairs, expected in models:
        assert len(pairs) == len(expected)
        for (i, j), table in zip(pairs, expected, strict=True):
            assert i < j and table.shape == (levels[i], levels[j])
            found[i, j].append(table)
    return dict(found)


def components(d: int, edges: Iterable[Pair]) -> list[int]:
    name = list(range(d))
    for i, j in edges:
        name = [name[i] if x == name[j] else x for x in name]
    return name


def together(d: int, edges: list[Pair], pairs: Iterable[Pair]) -> set[Pair]:
    name = components(d, edges)
    return {(i, j) for i, j in pairs if name[i] == name[j]}


# ---- truth


@given(seed=SEEDS, d=st.integers(2, 7), block=st.sampled_from([1, 40, 150, 1000, None]))
@settings(max_examples=40)
def test_paths_of_a_forest_are_its_law(seed: int, d: int, block: int | None):
    """Only the pairs of the forest were measured, blocks of any size: the tables of all pairs that
    a path joins, and of no others.
    """
    levels, edges, joint = forest(np.random.default_rng(seed), d)
    tables = exact(levels, joint, edges)
    pairs = list(itertools.combinations(range(d), 2))
    with pytest.MonkeyPatch.context() as patch:
        if block:
            patch.setattr(pair_models, "_MOST_NUMBERS", block)
        found = tables_by_pair(expected_of_paths(tables, pairs), levels)
    assert set(found) == together(d, edges, pairs)
    for pair, (table,) in found.items():
        np.testing.assert_allclose(table, table_of(joint, pair), rtol=1e-6)


@given(seed=SEEDS, d=st.integers(3, 6))
@settings(max_examples=25)
def test_of_all_pairs_the_forest_has_those_with_the_largest_deviances(seed: int, d: int):
    """Every pair was measured: by the inequality of data processing the forest is still the true
    one, and pairs of independent columns join nothing.
    """
    rng = np.random.default_rng(seed)
    levels, edges, joint = forest(rng, d)
    pairs = list(itertools.combinations(range(d), 2))
    tables = exact(levels, joint, pairs)
    wanted = [pair for pair in pairs if rng.random() < 0.7]
    found = tables_by_pair(expected_of_paths(tables, wanted), levels)
    assert set(found) == together(d, edges, wanted)
    for pair, (table,) in found.items():
        np.testing.assert_allclose(table, table_of(joint, pair), rtol=1e-6)


def test_the_weaker_side_of_a_triangle_is_left_out():
    """Three columns, not of a tree: the path goes along the two largest deviances."""
    joint = np.ones((2, 2, 2))
    for i, j, odds in ((0, 1, 9.0), (1, 2, 5.0), (0, 2, 1.5)):
        joint *= np.where(np.eye(2) == 1, odds, 1.0).reshape(
            [2 if axis in (i, j) else 1 for axis in range(3)]
        )
    joint /= joint.sum()
    tables = exact([2, 2, 2], joint, [(0, 1), (0, 2), (1, 2)])
    found = tables_by_pair(expected_of_paths(tables, [(0, 2)]), [2, 2, 2])[0, 2]
    first, second = table_of(joint, (0, 1)), table_of(joint, (1, 2))
    np.testing.assert_allclose(found[0], first / first.sum(0) @ second, rtol=1e-6)


def test_a_deviance_of_the_size_of_chance_joins_nothing():
    """Below the degrees of freedom a pair is what independence expects."""
    for strength, joined in ((0.4e-5, False), (4e-5, True)):  # 2 n MI is about 4 n strength^2
        joint = np.array([[0.25 + strength, 0.25 - strength], [0.25 - strength, 0.25 + strength]])
        tables = exact([2, 2], joint, [(0, 1)])
        deviance = tables.deviances[0, 1]
        assert deviance == pytest.approx(16 * N * strength**2, rel=1e-2)
        assert bool(list(expected_of_paths(tables, [(0, 1)]))) is joined is bool(deviance > 1)


@given(seed=SEEDS, d=st.integers(2, 6))
@settings(max_examples=20)
def test_tables_of_independence(seed: int, d: int):
    levels, _, joint = forest(np.random.default_rng(seed), d)
    tables = exact(levels, joint, [])
    pairs = list(itertools.combinations(range(d), 2))[::-1]
    found = tables_by_pair(independent(tables, pairs), levels)
    assert set(found) == set(pairs)
    for (i, j), (table,) in found.items():
        product = np.outer(table_of(joint, (i,)), table_of(joint, (j,))) / N
        np.testing.assert_allclose(table, product, rtol=1e-6)


@given(seed=SEEDS, d=st.integers(3, 6), block=st.sampled_from([1, 30, 200, None]))
@settings(max_examples=40)
def test_mediators_are_the_sum_over_their_levels(seed: int, d: int, block: int | None):
    rng = np.random.default_rng(seed)
    levels = rng.integers(2, 5, d).tolist()
    levels[int(rng.integers(d))] = 1
    joint = rng.dirichlet(np.ones(int(np.prod(levels)))).reshape(levels)
    pairs = list(itertools.combinations(range(d), 2))
    measured = [pair for pair in pairs if rng.random() < 0.6]
    new = [pair for pair in measured if rng.random() < 0.4]
    wanted = [pair for pair in pairs if rng.random() < 0.8]
    tables = exact(levels, joint, measured)
    with pytest.MonkeyPatch.context() as patch:
        if block:
            patch.setattr(pair_models, "_MOST_NUMBERS", block)
        found = tables_by_pair(expected_of_mediators(tables, wanted, new=new), levels)

    def of(i: int, k: int) -> Pair:
        return (min(i, k), max(i, k))

    truth: defaultdict[Pair, list[np.ndarray]] = defaultdict(list)
    for (i, j), k in itertools.product(wanted, range(d)):
        sides = {of(i, k), of(j, k)}
        if k in (i, j) or min(levels[i], levels[j], levels[k]) == 1:
            continue
        if sides <= set(measured) and sides & set(new):
            table = np.zeros((levels[i], levels[j]))
            for a, b, c in itertools.product(*(range(levels[v]) for v in (i, j, k))):
                n_k = table_of(joint, (k,))[c]
                n_ik = table_of(joint, of(i, k))[(a, c) if i < k else (c, a)]
                n_jk = table_of(joint, of(j, k))[(b, c) if j < k else (c, b)]
                table[a, b] += n_ik * n_jk / n_k
            truth[i, j].append(table)
    assert {p: len(t) for p, t in found.items()} == {p: len(t) for p, t in truth.items()}
    for pair, expected in truth.items():
        left = list(found[pair])
        for table in expected:  # in any order
            distances = [np.abs(table - other).max() for other in left]
            assert min(distances) <= 1e-6 * N
            left.pop(int(np.argmin(distances)))


def test_nothing_new_and_nothing_measured():
    levels, edges, joint = forest(np.random.default_rng(3), 6)
    pairs = list(itertools.combinations(range(6), 2))
    assert edges
    assert list(expected_of_mediators(exact(levels, joint, edges), pairs, new=[])) == []
    assert list(expected_of_mediators(exact(levels, joint, edges), [], new=edges)) == []
    assert list(expected_of_paths(exact(levels, joint, []), pairs)) == []
    assert list(expected_of_paths(exact(levels, joint, edges), [])) == []
    assert list(independent(exact(levels, joint, []), [])) == []
    assert by_levels([(0, 1), (1, 2), (0, 2)], (2, 3, 2)) == {
        (2, 3): [(0, 1)],
        (3, 2): [(1, 2)],
        (2, 2): [(0, 2)],
    }


# ---- noise


@given(
    seed=SEEDS,
    d=st.integers(2, 6),
    n=st.sampled_from([2, 50, 10_000]),
    size=st.sampled_from([0.0, 1.0, 1e3, 1e8]),
)
@settings(max_examples=60)
def test_noise_gives_tables_of_finite_counts(seed: int, d: int, n: int, size: float):
    rng = np.random.default_rng(seed)
    levels = rng.integers(1, 5, d).tolist()
    pairs = list(itertools.combinations(range(d), 2))
    measured = [pair for pair in pairs if rng.random() < 0.7]
    sets = [*((j,) for j in range(d)), *measured]
    values = {
        s: size * rng.normal(size=[levels[j] - 1 for j in s]) - size * rng.integers(2) for s in sets
    }
    tables = released(levels, values, dict.fromkeys(values, size**2), n)
    models = [
        *independent(tables, pairs),
        *expected_of_paths(tables, pairs),
        *expected_of_mediators(tables, pairs, new=measured),
    ]
    for _, expected in models:
        assert np.isfinite(expected).all() and (expected >= 0).all()
        assert (expected.sum(axis=(1, 2)) <= n * (1 + 1e-9)).all()
