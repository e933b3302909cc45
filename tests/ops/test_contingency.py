"""Contingency tables against counting row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.ops import association, contingency, double_precision
from jaxcd.ops.contingency import cell_counts, count_tables, pack_levels
from tests.helpers import SEEDS


def counted(codes: np.ndarray, cardinalities: tuple[int, ...], variables: list[int]) -> np.ndarray:
    """The table of one query by adding one row after the other; (strata, levels of x, levels of
    y).
    """
    x, y, *given = variables
    stratum = np.zeros(len(codes), dtype=np.int64)
    for variable in given:
        stratum = stratum * cardinalities[variable] + codes[:, variable]
    n_strata = int(np.prod([cardinalities[variable] for variable in given], dtype=np.int64))
    table = np.zeros((n_strata, cardinalities[x], cardinalities[y]), dtype=np.int64)
    np.add.at(table, (stratum, codes[:, x], codes[:, y]), 1)
    return table


@st.composite
def problems(draw):
    # one sum of levels: few compilations
    cardinalities = draw(st.permutations(range(1, 7)).map(tuple))
    n = draw(st.sampled_from([1, 2, 31, 32, 33, 64, 100, 255, 256, 257, 300]) | st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    skew = draw(st.sampled_from([1.0, 0.1, 0.0]))
    codes = np.stack(
        [
            np.floor(k * rng.random(n) * (rng.random(n) < skew)).astype(np.int64)
            for k in cardinalities
        ],
        1,
    )
    size = draw(st.integers(0, 4))
    queries = [rng.permutation(6)[: 2 + size].tolist() for _ in range(draw(st.integers(1, 4)))]
    return codes, cardinalities, queries, draw(st.integers(0, 3))


@settings(max_examples=40)
@given(problems())
def test_counts_are_those_of_rows(problem):
    codes, cardinalities, queries, extra = problem
    expected = [counted(codes, cardinalities, query) for query in queries]
    shape = tuple(max(table.shape[axis] for table in expected) + extra for axis in range(3))
    tables = count_tables(pack_levels(codes, cardinalities), np.array(queries), shape)
    assert tables.shape == (len(queries), *shape)
    for table, truth in zip(np.asarray(tables), expected, strict=True):
        strata, a, b = truth.shape
        np.testing.assert_array_equal(table[:strata, :a, :b], truth)
        assert table.sum() == len(codes)  # so every padded cell is zero


def test_columns_of_one_level_and_single_row():
    masks = pack_levels(np.zeros((1, 3), dtype=np.int64), (1, 1, 1))
    tables = np.asarray(count_tables(masks, np.array([[0, 1, 2]]), (1, 1, 1)))
    np.testing.assert_array_equal(tables, [[[[1]]]])


def test_cells_are_intersections():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (200, 2))
    masks = pack_levels(codes, (3, 3))
    words = np.asarray(masks.words)
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert bits[0].sum() == 200  # row 0 is the mask of all rows: padding bits are zero
    index = rng.integers(0, 7, (50, 3)).astype(np.int32)
    assert not bits[7:].any()  # masks that fill up the shape
    expected = bits[:7].reshape(7, -1)[index].prod(axis=1).sum(axis=-1)
    np.testing.assert_array_equal(np.asarray(cell_counts(masks.words, index)), expected)


def test_batches_larger_than_any_buffer():
    """Thousands of small tables in one call, and large beside small ones."""
    rng = np.random.default_rng(8)
    levels = (6, 5, 4, 3, 2, 6)
    codes = (rng.random((100, 6)) * levels).astype(np.int64)
    queries = np.array([rng.permutation(6)[:4] for _ in range(600)])
    expected = [counted(codes, levels, query.tolist()) for query in queries]
    assert sum(table.size for table in expected) > 100_000
    tables = np.asarray(count_tables(pack_levels(codes, levels), queries, (36, 6, 6)))
    for table, truth in zip(tables, expected, strict=True):
        strata, a, b = truth.shape
        np.testing.assert_array_equal(table[:strata, :a, :b], truth)
        assert table.sum() == 100


@pytest.mark.parametrize("n", [65_537, 1_000_000])
def test_large_counts(n: int):
    """Past the n at which pair counts leave int32; cells up to n itself; few cells and many."""
    rng = np.random.default_rng(n)
    levels = (2, 2, 3, 30, 9)
    codes = np.stack(
        [np.zeros(n, dtype=np.int64), *(rng.integers(0, k, n) for k in levels[1:])], axis=1
    )
    masks = pack_levels(codes, levels)
    for query in ([0, 1], [0, 2, 1], [1, 2, 0], [3, 4, 2], [0, 1, 3, 4]):
        truth = counted(codes, levels, query)
        table = np.asarray(count_tables(masks, np.array([query]), truth.shape))[0]
        np.testing.assert_array_equal(table, truth)
        assert table.sum() == n


@settings(max_examples=15)
@given(st.sampled_from([1, 33, 300]), SEEDS)  # few, each is compiled
def test_one_product_holds_all_tables_of_two_columns(n: int, seed: int):
    rng = np.random.default_rng(seed)
    cards = rng.permutation([1, 2, 3, 4])
    codes = np.stack([rng.integers(0, k, n) for k in cards], axis=1)
    masks = pack_levels(codes, tuple(cards))
    pairs = np.array([(a, b) for a in range(4) for b in range(4) if a != b])
    tables = np.asarray(
        contingency.tables_of_products(
            masks.products, masks.offsets[pairs], masks.cardinalities[pairs], (4, 4)
        )
    )
    np.testing.assert_array_equal(tables, count_tables(masks, pairs, (1, 4, 4))[:, 0])
    with double_precision():
        wanted = association.chi_square_sums(tables[:, None])
        got = association.chi_square_of_products(
            masks.products, masks.offsets[pairs], masks.cardinalities[pairs], 4
        )
    np.testing.assert_allclose(got[0], wanted.chi_square, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got[1], wanted.dof)
