"""Checks of rows over 1, 3 and 8 simulated devices; prints, as JSON, what went wrong in each.

Run by ``test_shards.py`` with XLA_FLAGS=--xla_force_host_platform_device_count=8; with ``--slow``
the slow ones, with names these.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[2]))
import jaxcd  # noqa: E402
from benchmarks.shards import reading_programs  # noqa: E402
from jaxcd.citests import regressions  # noqa: E402
from jaxcd.citests.block_regressions import BlockRegressions  # noqa: E402
from jaxcd.data import shards  # noqa: E402
from jaxcd.errors import OptionError  # noqa: E402
from jaxcd.ops import row_blocks, row_mesh  # noqa: E402
from jaxcd.ops.device_sums import DeviceSum  # noqa: E402
from jaxcd.ops.people import PERSON_UNITS  # noqa: E402
from jaxcd.ops.tilted_moments import ExactSum, gram_steps  # noqa: E402

DEVICES = (1, 3, 8)
BUDGET = jaxcd.Budget(2.0, 1e-6)
NOISE = jaxcd.SimulatedNoise(jax.random.key(5))
CHECKS: dict[str, Callable[[], None]] = {}
SLOW: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__] = function
    return function


def slow_check(function: Callable[[], None]) -> Callable[[], None]:
    SLOW[function.__name__] = function
    return function


def mesh(n_devices: int) -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.devices()[:n_devices]), ("rows",))


def on_meshes(data: jaxcd.Dataset, devices: tuple[int, ...] = DEVICES) -> Iterator[Any]:
    return (data.on(mesh(n_devices)) for n_devices in devices)


def brute_force(codes: np.ndarray, levels: list[int], columns: tuple[int, ...]) -> np.ndarray:
    shape = [levels[v] for v in columns]
    cell = np.zeros(len(codes), dtype=np.int64)
    for v in columns:
        cell = cell * levels[v] + codes[:, v]
    return np.bincount(cell, minlength=math.prod(shape)).reshape(shape)


def discrete(n: int, levels: list[int], seed: int) -> jaxcd.Dataset:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(k, size=n) ** 2 // k for k in levels]).astype(np.int32)
    domain = jaxcd.Domain({f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(levels)})
    return jaxcd.Dataset.from_codes(codes, domain=domain)


def mixed(n: int) -> jaxcd.Dataset:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.7], [0, 0, 1]])
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "d": (x[:, 2] > 0).astype(int)}
    kinds = {name: jaxcd.Numeric(-4, 4) for name in "abc"}
    domain = jaxcd.Domain({**kinds, "d": jaxcd.Ordinal((0, 1))})
    import pandas as pd

    return jaxcd.Dataset.from_frame(pd.DataFrame(columns), domain=domain)


def numbers(data: jaxcd.Dataset) -> jaxcd.Dataset:
    return data.select(["a", "b", "c"])


def same_release(data: jaxcd.Dataset, kind: Any, budget: jaxcd.Budget = BUDGET) -> None:
    """To the last bit, beside everything that the file says."""
    one = jaxcd.release(data, kind, budget=budget, noise=NOISE)
    for rows in on_meshes(data, (3, 8)):
        many = jaxcd.release(rows, kind, budget=budget, noise=NOISE)
        (header, arrays), (other, others) = one._parts(), many._parts()
        assert header == other and arrays.keys() == others.keys() and arrays
        assert all(np.array_equal(arrays[name], others[name]) for name in arrays)
        assert one.charges == many.charges and one.cost == many.cost


@check
def counts_are_those_of_brute_force() -> None:
    @settings(max_examples=20, deadline=None, derandomize=True, database=None)
    @given(
        n=st.integers(2, 400) | st.integers(4_000, 9_000),
        levels=st.lists(st.integers(2, 7), min_size=4, max_size=4),
        n_devices=st.sampled_from(DEVICES),
        seed=st.integers(0, 9),
        more=st.lists(st.permutations(range(4)), max_size=2),
    )
    def holds(n: int, levels: list[int], n_devices: int, seed: int, more: list[list[int]]) -> None:
        data = discrete(n, levels, seed)
        sets = [s for size in range(4) for s in combinations(range(4), size)]
        sets += [tuple(order) for order in more]  # up to 2,401 cells
        rows = data.on(mesh(n_devices))
        for columns, table in zip(sets, rows.counts(sets), strict=True):
            assert table.dtype == np.int64
            assert np.array_equal(table, brute_force(data.codes, levels, columns)), columns

    holds()


@check
def every_number_of_rows_up_to_a_few_more_than_the_devices() -> None:
    for n in range(2, 20):
        data = discrete(n, [3, 2], n)
        expected = brute_force(data.codes, [3, 2], (1, 0))
        for rows in on_meshes(data):
            assert np.array_equal(rows.counts([(1, 0)])[0], expected) and rows.n_samples == n


@check
def many_tables_in_several_buffers() -> None:
    data = discrete(5_003, [5, 6, 4, 2, 3, 7, 6, 2], 1)
    sets = [s for size in (2, 3, 4) for s in combinations(range(8), size)]
    expected = data.counts(sets)
    for rows in on_meshes(data, (1, 8)):
        found = rows.counts(sets)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        occupied = np.sort(rows.occupied(tuple(range(8))))
        assert np.array_equal(occupied, np.sort(data.occupied(tuple(range(8)))))


@check
def tables_of_two_columns_by_one_product() -> None:
    """What a GPU counts with."""
    data = discrete(5_003, [5, 2, 3], 1)
    sets = [(0, 1), (2, 1), (0,), (1,)]
    for rows in on_meshes(data):
        rows._mesh.platform = "gpu"
        with reading_programs() as programs:
            found = rows.counts(sets)
        assert programs[0] == [] and len(programs[1]) == 1 and len(programs) == 2
        assert programs[1][0] == 4 * 64**2  # masks are padded to 64
        with reading_programs() as programs:
            again = rows.counts(sets)
        assert programs == []  # what was added up is kept
        for expected, *both in zip(data.counts(sets), found, again, strict=True):
            assert np.array_equal(both[0], expected) and np.array_equal(both[1], expected)


@check
def more_rows_than_32_bits_count() -> None:
    """Pretended: from so many rows on, totals are added as int64."""
    data = discrete(5_003, [5, 6, 4, 7], 1)
    sets = [(0, 1), (0, 1, 2, 3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_mesh, "_INT32", 5_002)
        with reading_programs() as programs:
            found = data.on(mesh(8)).counts(sets)
    assert programs[-1] == [8 * (128 + 1024)]
    for table, expected in zip(found, data.counts(sets), strict=True):
        assert np.array_equal(table, expected)


@check
def people() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(2_003, 3)).astype(np.int32)
    who = rng.integers(500, size=2_003)
    domain = jaxcd.Domain({name: jaxcd.Ordinal((0, 1, 2)) for name in "abc"}, person="pid")
    data = jaxcd.Dataset(domain, codes, np.empty((2_003, 0)), people=who)
    for rows in on_meshes(data):
        one, many = (each.counts([(0, 1), (2,)], by_person=True) for each in (data, rows))
        assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
        assert many[1].sum() == PERSON_UNITS * data.n_people == PERSON_UNITS * rows.n_people
        half, part = (each.where(who < 250) for each in (data, rows))
        assert part.has_people and part.n_people == half.n_people
        one, many = (each.counts([(0, 1)], by_person=True) for each in (half, part))
        assert np.array_equal(one[0], many[0])
    assert "n_samples" not in repr(data.on(mesh(2)))
    budget = jaxcd.Budget(1.0, 1e-6, unit="person")
    same_release(data, jaxcd.Marginals(), budget)
    columns = jaxcd.Domain({name: jaxcd.Numeric(-4, 4) for name in "ab"}, person="pid")
    values = np.clip(rng.standard_normal((2_003, 2)), -4, 4)
    of_numbers = jaxcd.Dataset(columns, np.empty((2_003, 0), np.int32), values, people=who)
    same_release(of_numbers, jaxcd.SecondMoments(), budget)
    same_release(of_numbers, jaxcd.Tetrachoric(), budget)
    same_release(of_numbers, jaxcd.Discretised(), budget)


@check
def releases_of_tables() -> None:
    data = jaxcd.networks.load("cancer").sample(3_001, key=jax.random.key(0))
    for kind in (jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()):
        same_release(data, kind)


@check
def releases_of_sums() -> None:
    data = mixed(3_001)
    same_release(data, jaxcd.Features())
    same_release(data, jaxcd.Discretised())
    same_release(numbers(data), jaxcd.SecondMoments())
    same_release(numbers(data), jaxcd.Tetrachoric())


@check
def sums_of_products_by_the_devices() -> None:
    """Exact for the largest whole numbers, in one all-reduce, and what a release is made of."""
    rng = np.random.default_rng(0)
    steps = rng.integers(-(1 << 18) + 1, 1 << 18, size=(9_000, 3)).astype(np.float64)
    steps[:4_096] = (1 << 18) - 1
    whole = steps.astype(np.int64).astype(object)
    expected = (whole.T @ whole).astype(np.float64)  # of unlimited whole numbers, rounded once
    cuts = (0, 4_096, 5_000, 9_000)
    for used in DEVICES:
        devices = jax.devices()[:used]
        parts = []
        for i, (start, end) in enumerate(itertools.pairwise(cuts)):
            part = DeviceSum((3, 3), place=i % used, device=devices[i % used])
            part.add_products(steps[start:end], None)
            parts.append(part)
        words = row_mesh.RowMesh(mesh(used)).total_of_devices(
            (parts[0] + parts[1] + parts[2]).words, question="products"
        )
        assert np.array_equal(ExactSum.of_words(*words).value(), expected)
    data = numbers(mixed(40_001))
    seen = []

    def moments(block: Any) -> Any:
        seen.append(type(block.empty((1, 1))))
        values = block.values(["a", "b"])
        return gram_steps(values, rate=1.0, anchor=1.0, empty=block.empty)

    with reading_programs() as programs:
        found = data.on(mesh(3)).sums(["a", "b"], moments)
    assert programs == [[8 * 2 * 9]] and set(seen) == {DeviceSum}
    assert np.array_equal(found.value(), data.sums(["a", "b"], moments).value())
    assert seen[-1] is ExactSum


@check
def searches() -> None:
    data = jaxcd.networks.load("asia").sample(20_001, key=jax.random.key(0))
    for test, decider, budget in (
        (jaxcd.ChiSquare(), jaxcd.Threshold(alpha=0.01), jaxcd.NO_PRIVACY),
        (jaxcd.KendallTau(), jaxcd.Threshold(alpha=0.01), jaxcd.NO_PRIVACY),
        (jaxcd.CovarianceNorm(), jaxcd.LevelwiseGaussian(alpha=0.05), BUDGET),
        (jaxcd.KendallTau(), jaxcd.SieveAndExamine(alpha=0.05), BUDGET),
    ):
        private = budget is not jaxcd.NO_PRIVACY
        one, *many = (
            jaxcd.pc(
                rows,
                test=test,
                decider=decider,
                budget=budget,
                key=jax.random.key(1),
                noise=NOISE if private else None,
                max_level=2,
            )
            for rows in (data, data.on(mesh(8)))
        )
        for run in many:
            assert np.array_equal(run.graph.marks, one.graph.marks), test
            assert run.separating_sets == one.separating_sets and run.cost == one.cost
    trees = [
        jaxcd.tree_pc(rows, test=jaxcd.CovarianceNorm(), budget=BUDGET, key=None, noise=NOISE)
        for rows in (data, data.on(mesh(8)))
    ]
    assert np.array_equal(trees[0].graph.marks, trees[1].graph.marks)
    answers = [
        jaxcd.ci_test(rows, "smoke", "lung", test=jaxcd.ChiSquare(), budget=jaxcd.NO_PRIVACY)
        for rows in (data, data.on(mesh(8)))
    ]
    assert answers[0].log_pvalue == answers[1].log_pvalue


@check
def one_all_reduce_a_call() -> None:
    """Of all programs that a question runs, from their text."""
    data = discrete(5_003, [5, 6, 4, 2, 3, 7, 6, 2], 1)
    rows = data.on(mesh(8))
    for size in (1, 2, 3, 5):  # by masks, in one buffer and in several, and by scattering
        with reading_programs() as programs:
            rows.counts(list(combinations(range(8), size)))
        # the last program's array, of whole numbers of four bytes
        *before, (n_bytes,) = programs
        assert before and not any(before) and n_bytes % 4 == 0
    with reading_programs() as programs:
        rows.tables(np.array([(0, 1, 2), (3, 4, 5)]), (7, 6, 6))
    assert [len(reduced) for reduced in programs] == [0, 1]
    with reading_programs() as programs:
        rows.counts([(0, 1)])
    assert programs == [[], [4 * 128]]


@check
def shapes_follow_from_the_number_of_rows() -> None:
    """A replaced record changes no shape of what lies on a device or is communicated."""
    rng = np.random.default_rng(0)
    shapes = []
    for codes in (np.zeros((1_003, 3)), rng.integers(3, size=(1_003, 3))):
        domain = jaxcd.Domain({name: jaxcd.Ordinal((0, 1, 2)) for name in "abc"})
        rows = jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain).on(mesh(3))
        seen: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            put, total = row_mesh.RowMesh.put, row_mesh.RowMesh.total

            def putting(self: Any, parts: Any, seen: Any = seen, put: Any = put) -> Any:
                seen.append([(part.shape, part.dtype) for part in parts])
                return put(self, parts)

            def totalling(self: Any, parts: Any, seen: Any = seen, total: Any = total, **more: Any):
                seen.append([(part.shape, part.dtype) for part in parts])
                return total(self, parts, **more)

            patch.setattr(row_mesh.RowMesh, "put", putting)
            patch.setattr(row_mesh.RowMesh, "total", totalling)
            rows.counts([(0, 1), (1, 2), (0, 1, 2)])
        shapes.append(seen)
    assert shapes[0] == shapes[1] and len(shapes[0]) >= 2


@check
def a_shard_that_counts_twice_is_found() -> None:
    """The planted error: the first shard's rows on the second device too."""
    data = discrete(5_000, [5, 6, 4], 1)
    put = row_mesh.RowMesh.put

    def twice(self: Any, parts: Any) -> Any:
        return put(self, [parts[0 if i == 1 else i] for i in range(len(parts))])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_mesh.RowMesh, "put", twice)
        found = data.on(mesh(8)).counts([(0, 1)])[0]
    expected = data.counts([(0, 1)])[0]
    assert not np.array_equal(found, expected)
    assert found.sum() == 5_000  # so that the number of rows does not show it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_mesh.RowMesh, "put", twice)
        with pytest.raises(AssertionError):
            every_number_of_rows_up_to_a_few_more_than_the_devices()


@contextlib.contextmanager
def short_pieces() -> Iterator[None]:
    """Few rows in a piece, so that a few thousand rows are many blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "PIECE", {"cpu": 256, "gpu": 256})
        yield


def _squares(x: jax.Array, real: jax.Array) -> jax.Array:
    return x**2 + 1


def _outer(x: jax.Array, real: jax.Array) -> jax.Array:
    return x.T @ x


def _largest(x: jax.Array, real: jax.Array) -> jax.Array:
    return jnp.where(real[:, None], x, -jnp.inf).max(axis=0)


def sums_of_blocks(x: np.ndarray, n_devices: int) -> list[np.ndarray]:
    """Everything that rows in blocks answer."""
    blocks = row_blocks.RowBlocks(row_mesh.RowMesh(mesh(n_devices)), len(x), edge=40)
    rows, column = blocks.put(x), blocks.put(x[:, 0])
    made = blocks.rows(_squares, [rows])
    places = [0, len(x) // 3, len(x) - 1]
    edges = blocks.edges(rows)
    return [
        blocks.sums(_outer, [made]),
        blocks.largest(_largest, [rows]),
        blocks.head(rows, 300),
        np.array(blocks.order_statistics(column, places)),
        blocks.turned(rows, made, (edges, blocks.edges(made)), -7, 31),
    ]


@check
def sums_of_numbers_are_those_of_one_device() -> None:
    rng = np.random.default_rng(0)
    with short_pieces():
        for n in (2, 20_001):
            x = rng.standard_normal((n, 3)) * np.array([1, 1e-3, 1e6])
            x[:, 0] = np.round(x[:, 0], 1)  # ties, zeros of both signs, negative numbers
            devices = DEVICES if n > 2 else (1, 8)  # two rows lie on two devices at most
            one, *others = (sums_of_blocks(x, n_devices) for n_devices in devices)
            for other in others:
                assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)), n
            gram, largest, head, ordered, turned = one
            made = x**2 + 1
            assert np.allclose(gram, made.T @ made, rtol=1e-12)
            assert np.array_equal(largest, x.max(axis=0)) and np.array_equal(head, x[:300])
            assert np.array_equal(ordered, np.sort(x[:, 0])[[0, n // 3, n - 1]])
            for shift in (0, 7, 30):
                beside = np.roll(made, 7 - shift, axis=0)
                size = np.abs(x).T @ np.abs(beside)
                assert np.all(np.abs(turned[shift] - x.T @ beside) <= 1e-12 * size), (n, shift)


@check
def blocks_that_follow_the_devices_are_found() -> None:
    """The planted error: as many blocks as devices, so that the order of addition follows them."""
    x = np.random.default_rng(0).standard_normal((20_001, 3))
    found = []
    for n_devices in (1, 8):
        with short_pieces(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_blocks, "N_BLOCKS", n_devices)
            blocks = row_blocks.RowBlocks(row_mesh.RowMesh(mesh(n_devices)), len(x), edge=40)
            found.append(blocks.sums(_outer, [blocks.put(x)]))
    assert not np.array_equal(*found) and np.allclose(*found)


def some_numbers(n: int) -> jaxcd.Dataset:
    """Dependent columns, two of them with few levels, one constant, one a function of another."""
    import pandas as pd

    rng = np.random.default_rng(5)
    z, w = rng.standard_normal((2, n))
    columns = {
        "x": np.sin(2 * z) + rng.standard_normal(n) * (0.5 + np.abs(w)),
        "y": z * w + rng.standard_normal(n),
        "z": z,
        "w": w,
        "two": (rng.random(n) < 0.1).astype(float),
        "same": np.full(n, 0.1),
        "of_z": 3 * z + 1,
        "label": np.array(["a", "b", "c"])[rng.integers(3, size=n)],
    }
    return jaxcd.Dataset.from_frame(pd.DataFrame(columns))


def answers_of(rows: Any, test: Any, cases: list[tuple[str, ...]]) -> list[Any]:
    return [
        jaxcd.ci_test(
            rows, x, y, given=given, test=test, budget=jaxcd.NO_PRIVACY, key=jax.random.key(3)
        )
        for x, y, *given in cases
    ]


def same_answers(
    data: jaxcd.Dataset, test: Any, cases: list[tuple[str, ...]], devices: tuple[int, ...] = (1, 3)
) -> None:
    """The same bits on all meshes, and beside them the numbers of the data set itself."""
    with short_pieces():
        one, *others = (answers_of(rows, test, cases) for rows in on_meshes(data, devices))
    for other in others:
        for a, b in zip(one, other, strict=True):
            assert (a.statistic, a.log_pvalue, a.margin) == (b.statistic, b.log_pvalue, b.margin)
    for found, expected in zip(one, answers_of(data, test, cases), strict=True):
        close = dict(rtol=1e-4, atol=1e-8)
        assert np.allclose(found.statistic, expected.statistic, **close), (found, expected)
        assert np.allclose(found.log_pvalue, expected.log_pvalue, **close), (found, expected)
        assert found.independent == expected.independent


_NUMBERS = ["x", "y", "z", "w", "two", "same", "of_z"]


@check
def hsic() -> None:
    data = some_numbers(3_001).select(_NUMBERS)
    pairs = [("x", "y"), ("x", "z"), ("two", "x"), ("same", "x"), ("of_z", "z")]
    same_answers(data, jaxcd.HSIC(), pairs)


@slow_check
def kernel_tests() -> None:
    data = some_numbers(3_001).select(_NUMBERS)
    same_answers(data.select(["x", "two"]), jaxcd.HSIC(dtype="float64"), [("x", "two")])
    cases = [("x", "y", "z"), ("x", "of_z", "z"), ("x", "two", "same")]
    same_answers(data, jaxcd.RCIT(rank=40), cases)  # on 8 devices: kernel_tests_send_sums


@slow_check
def tests_of_residual_products() -> None:
    data = some_numbers(3_001)
    cases = [("x", "label", "z"), ("label", "two")]
    for test in (jaxcd.GCM(rank=40), jaxcd.GCM(weighted=True, rank=40), jaxcd.KCI(rank=40)):
        same_answers(data, test, cases)


@check
def tests_of_ranks_and_correlations() -> None:
    data = some_numbers(3_001).select(["x", "y", "z", "two", "same"])
    pairs = [("x", "y"), ("x", "z"), ("two", "x"), ("same", "x")]
    for test in (jaxcd.KendallTau(), jaxcd.Spearman()):
        same_answers(data, test, pairs)
        for rows in on_meshes(data, (8,)):  # these two also have the data set's own bits
            found, expected = (answers_of(each, test, pairs) for each in (rows, data))
            assert [a.log_pvalue for a in found] == [a.log_pvalue for a in expected]
    more = [*pairs, ("x", "y", "z", "two"), ("x", "y", "same")]
    same_answers(data, jaxcd.FisherZ(), more, DEVICES)


@slow_check
def every_regression() -> None:
    """Each kind of candidate alone, whichever would be chosen."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((3_001, 2))
    target = np.sin(z[:, 0] + z[:, 1]) + rng.standard_normal(3_001)
    values = np.column_stack([target, z])
    whole = regressions.Regressions(values, rank=40)
    kinds = {candidate.kernel: candidate for candidate in whole.candidates((1, 2))}
    assert kinds.keys() == {"none", "joint", "sum", "index"}
    for candidate in kinds.values():
        found = []
        with pytest.MonkeyPatch.context() as patch, short_pieces():
            only = (candidate,)
            patch.setattr(regressions.Regressions, "candidates", lambda *_, only=only: only)
            expected = whole.residuals((1, 2), values[:, :1])
            for n_devices in (1, 3):
                blocks = row_blocks.RowBlocks(row_mesh.RowMesh(mesh(n_devices)), 3_001)
                part = BlockRegressions(blocks, lambda v: values[:, v], rank=40)
                rest = part.residuals((1, 2), [blocks.put(values[:, 0])])
                found.append(blocks.head(rest[0], 3_001))
        assert np.array_equal(*found), candidate
        assert np.abs(found[0] - expected[:, 0]).max() < 1e-4, candidate
        assert np.abs(found[0]).mean() > 0.1


@slow_check
def searches_by_tests_of_numbers() -> None:
    data = some_numbers(3_001).select(["x", "y", "z", "w"])
    for test, options in (
        (jaxcd.RCIT(rank=20), {"max_level": 1}),
        (jaxcd.KendallTau(), {"max_level": 0}),
    ):
        one, many = (
            jaxcd.pc(
                rows,
                test=test,
                decider=jaxcd.Threshold(alpha=0.05),
                budget=jaxcd.NO_PRIVACY,
                key=jax.random.key(1),
                **options,
            )
            for rows in (data, data.on(mesh(3)))
        )
        assert np.array_equal(one.graph.marks, many.graph.marks), test
        assert one.separating_sets == many.separating_sets
    one, many = (
        jaxcd.pc(
            rows,
            test=jaxcd.KendallTau(),
            decider=jaxcd.SieveAndExamine(alpha=0.05),
            budget=BUDGET,
            key=jax.random.key(1),
            noise=NOISE,
            max_level=0,
        )
        for rows in (mixed(2_001), mixed(2_001).on(mesh(3)))
    )
    assert np.array_equal(one.graph.marks, many.graph.marks) and one.cost == many.cost


@slow_check
def kernel_tests_send_sums() -> None:
    """Every program has one all-reduce, or nothing; bytes follow from the number of blocks."""
    sent = []
    for n in (16_400, 33_000):  # both more than 64 pieces, and 64 to 65 blocks of one or two
        data = some_numbers(n).select(["x", "y", "z"])
        with short_pieces(), reading_programs() as programs:
            answers_of(data.on(mesh(8)), jaxcd.RCIT(rank=20), [("x", "y", "z")])
        assert all(len(each) <= 1 for each in programs)
        sent.append(sum(each[0] for each in programs if each) / _blocks_of(n))
    assert max(sent) < 1.02 * min(sent), sent


def _blocks_of(n: int) -> int:
    with short_pieces():
        return row_blocks.RowBlocks(row_mesh.RowMesh(mesh(1)), n).n_blocks


@check
def what_is_not_sharded_is_refused() -> None:
    data = mixed(300)
    rows = data.on(mesh(2))
    for test in (jaxcd.BoundedRCIT(), jaxcd.StratifiedTau(), jaxcd.StratifiedRanks()):
        with pytest.raises(OptionError, match="needs the rows themselves.*Features"):
            jaxcd.ci_test(rows, "a", "b", test=test, budget=jaxcd.NO_PRIVACY, key=jax.random.key(0))
    with pytest.raises(OptionError, match="is neither a Dataset nor a Release"):
        jaxcd.ges(rows, score=jaxcd.BIC(), budget=jaxcd.NO_PRIVACY)
    for door in (
        lambda: jaxcd.local.randomise(rows, jaxcd.local.KaryResponse(1.0)),
        lambda: jaxcd.local.discretise_columns(rows, bins=2),
    ):
        with pytest.raises(OptionError, match="needs the rows themselves.*give a Dataset"):
            door()
    two = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
    for wrong, words in ((two, "a mesh of 2 axes"), ("cpu", "a str"), (None, "None")):
        with pytest.raises(OptionError, match=f"mesh: {words}.*make one with"):
            data.on(wrong)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_MOST_ROWS", 299)
        with pytest.raises(OptionError, match="more than"):
            data.on(mesh(2))


@check
def parts_of_the_rows_and_another_reading() -> None:
    data = discrete(503, [3, 4], 0)
    rows = data.on(mesh(3))
    mask = np.arange(503) % 3 == 1
    assert np.array_equal(
        rows.where(mask).counts([(0, 1)])[0], data.where(mask).counts([(0, 1)])[0]
    )
    other = rows.reading("level")
    assert other.missing is jaxcd.data.Missing.LEVEL and rows.missing is not other.missing
    assert repr(rows) == "Shards(n_samples=503, 3 devices; v0: ordinal(3), v1: ordinal(4))"
    assert rows.tell is None


if __name__ == "__main__":
    wrong: dict[str, str] = {}
    every = CHECKS | SLOW
    named = [name for name in sys.argv[1:] if name in every]
    chosen = named or list(SLOW if "--slow" in sys.argv else CHECKS)
    for name, function in ((name, every[name]) for name in chosen):
        try:
            function()
        except Exception:
            wrong[name] = traceback.format_exc()
        else:
            wrong[name] = ""
    print(json.dumps(wrong))
