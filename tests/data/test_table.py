"""Tables that stay where they are: from every engine the numbers of the same rows in memory."""

from __future__ import annotations

import contextlib
import itertools
import math
import sqlite3
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.data import Binned
from jaxcd.data.covers import covers, marginal
from jaxcd.errors import DataError, DomainError, OptionError
from tests.helpers import simulated

duckdb = pytest.importorskip("duckdb", reason="jaxcd[duckdb] is not installed")
# of Ibis, which calls DuckDB by an old name
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
BUDGET = jaxcd.Budget(1.0, 1e-6)


def engines(frame: pl.DataFrame, folder: Path) -> Iterator[tuple[str, Any]]:
    """The same rows in every engine that is installed: what makes a Table of them, given
    keywords."""
    frame.write_parquet(folder / "b.parquet", row_group_size=5)
    connection = duckdb.connect()
    connection.register("rows", frame.to_arrow())
    yield "polars", lambda **kw: jaxcd.Table(frame.lazy(), **kw)
    yield "duckdb", lambda **kw: jaxcd.Table(connection.table("rows"), **kw)
    yield "parquet", lambda **kw: jaxcd.Table.parquet(folder / "*.parquet", **kw)
    try:
        import ibis
    except ImportError:
        return
    yield (
        "ibis",
        lambda **kw: jaxcd.Table(ibis.duckdb.from_connection(connection).table("rows"), **kw),
    )


TEXTS = [
    "yes",
    "no",
    "Ünïcode ☃",
    "1",
    " 1.0",
    "NA",
    " nan ",
    "",
    "undeclared",
    "YES",
    "true",
    None,
]
COLUMNS: list[tuple[st.SearchStrategy, Any]] = [
    (st.sampled_from(TEXTS), jaxcd.Categorical(("yes", "no", "Ünïcode ☃", "empty level"))),
    (st.sampled_from(TEXTS), jaxcd.Categorical((1, 0, "yes"), other="yes", missing=True)),
    (st.sampled_from(TEXTS), jaxcd.Categorical(("", "no"), missing=("undeclared", 1))),
    (st.sampled_from([0, 1, 2, 3, -7, None]), jaxcd.Ordinal((0, 1, 2), missing=(3,))),
    (st.sampled_from([0, 1, 5]), jaxcd.Ordinal(("0", "1", "1.0", 5))),
    (st.sampled_from([0.0, 1.5, float("nan"), float("inf"), -0.0, None]),
     jaxcd.Ordinal((0, 1.5), missing=True)),
    (st.booleans(), jaxcd.Categorical((False, True))),
    (st.floats(-5, 130) | st.sampled_from([18.0, 65.0, float("nan"), float("-inf"), None]),
     jaxcd.Binned((0, 18, 65, 120), missing=(99.0,))),
    (st.sampled_from([-3, 0, 17, 18, 200]), jaxcd.Binned((0, 18, 65, 120))),
    (st.floats(allow_nan=True) | st.none(), jaxcd.Numeric(-10, 10)),
    (st.floats(-20, 20) | st.sampled_from([999.0, None]), jaxcd.Numeric(-10, 10, missing=(999,))),
]  # fmt: skip


DISCRETE, MIXED = range(9), range(len(COLUMNS))


@st.composite
def tables(draw: st.DrawFn, *, kinds: range = MIXED, least: int = 2) -> tuple[Any, Any]:
    """A frame and a domain."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5))
    n = draw(st.integers(least, least + 21))
    cells, columns = {}, {}
    for j, kind in enumerate(chosen):
        strategy, columns[f"c ö{j}"] = COLUMNS[kind]
        cells[f"c ö{j}"] = pl.Series(
            draw(st.lists(strategy, min_size=n, max_size=n)), dtype=_dtype(COLUMNS[kind][1], kind)
        )
    return pl.DataFrame(cells), jaxcd.Domain(columns)


def _dtype(column: Any, kind: int) -> Any:
    return [pl.String, pl.String, pl.String, pl.Int64, pl.Int8, pl.Float64, pl.Boolean,
            pl.Float64, pl.Int32, pl.Float64, pl.Float32][kind]  # fmt: skip


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables())
def test_counts_and_blocks_are_those_of_the_rows_in_memory(
    tmp_path: Path, drawn: tuple[pl.DataFrame, jaxcd.Domain]
) -> None:
    frame, domain = drawn
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    discrete = [j for j, name in enumerate(domain.names) if domain[name].is_discrete]
    sets = [s for r in range(4) for s in itertools.permutations(discrete, r)]
    truth = data.counts(sets)
    for name, table_of in engines(frame, tmp_path):
        table = table_of(domain=domain, n_samples=len(frame), snapshot="now")
        for expected, found in zip(truth, table.counts(sets), strict=True):
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected, err_msg=name)
        rows = np.concatenate(
            [
                np.column_stack(
                    [*block.cells.values(), *(block.is_missing(c) for c in domain.names)]
                )
                for block in table.blocks(domain.names)
            ]
        )
        expected = np.column_stack(
            [data.column(c) for c in domain.names] + [data.is_missing(c) for c in domain.names]
        )
        order = np.lexsort(rows.T), np.lexsort(expected.T)
        np.testing.assert_array_equal(rows[order[0]], expected[order[1]], err_msg=name)


NOTHING = jaxcd.Domain(
    {
        "level": jaxcd.Ordinal((0, 1, 2)),
        "marked": jaxcd.Categorical(("u", "v"), missing=True),
        "bin": jaxcd.Binned((0, 1, 2), missing=True),
        "number": jaxcd.Numeric(0, 4),
    }
)


def test_a_column_without_a_filled_cell_is_missing_in_every_engine(tmp_path: Path) -> None:
    frame = pl.DataFrame({name: [None] * 5 for name in NOTHING.names})
    for name, table_of in engines(frame, tmp_path):
        table = table_of(domain=NOTHING, n_samples=5, snapshot="now")
        (found,) = table.counts([(0, 1, 2)])
        assert found[1, 2, 2] == 5, name
        (block,) = table.blocks(["number", "level"])
        assert block.cells["number"].tolist() == [2.0] * 5
        assert block.cells["level"].tolist() == [1] * 5


def test_files_of_which_one_has_a_column_without_a_filled_cell(tmp_path: Path) -> None:
    filled = {"level": 2, "marked": "v", "bin": 0.5, "number": 4.0}
    for file, cells in enumerate((filled, dict.fromkeys(filled))):
        pd.DataFrame({name: [cell, None] for name, cell in cells.items()}).to_parquet(
            tmp_path / f"{file}.parquet"
        )
    table = jaxcd.Table.parquet(tmp_path, domain=NOTHING, n_samples=4, snapshot="now")
    (found,) = table.counts([(0, 1, 2)])
    assert found[2, 1, 0] == 1 and found[1, 2, 2] == 3
    assert np.concatenate([b.cells["number"] for b in table.blocks(["number"])]).tolist() == [
        *(4, 2, 2, 2)
    ]


def test_whole_numbers_beyond_int64(tmp_path: Path) -> None:
    levels = (7, 2**63, 2**63 + 1)
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Categorical(levels, missing=(2**64 - 1,), other=7),
            "b": jaxcd.Categorical((*levels, 1)),
        }
    )
    a = pl.Series([*levels, 2**63, 2**63 + 2, 2**64 - 1, None], dtype=pl.UInt64)
    frame = pl.DataFrame({"a": a, "b": [7, 1, 2**62, 2**63 - 1, 1, 1, 1]})
    data = jaxcd.Dataset.from_frame(frame, domain=domain, strict=False)
    assert data.counts([(0,)])[0].tolist() == [2, 2, 1, 2]
    for name, table_of in engines(frame, tmp_path):
        table = table_of(domain=domain, n_samples=7, snapshot="now")
        for found, expected in zip(*(t.counts([(0,), (1,)]) for t in (table, data)), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=name)


def test_decimals_are_the_nearest_numbers_in_every_engine(tmp_path: Path) -> None:
    levels = (0.1, 21.9, 51.23, 85.07)
    domain = jaxcd.Domain(
        {"a": jaxcd.Ordinal(levels), "b": jaxcd.Binned((0, 21.9, 51.23, 100)), "c": jaxcd.Numeric()}
    )
    cells = pl.Series([Decimal(str(level)) for level in levels], dtype=pl.Decimal(12, 2))
    frame = pl.DataFrame({"a": cells, "b": cells, "c": cells})
    frames = [frame, frame.to_arrow(), frame.to_pandas(use_pyarrow_extension_array=True)]
    for each in frames:
        data = jaxcd.Dataset.from_frame(each, domain=domain, strict=True)
        assert data.column("a").tolist() == [0, 1, 2, 3]
        assert data.column("b").tolist() == [0, 1, 2, 2]
        assert data.values("c").tolist() == list(levels)
    eager = [("eager", lambda each=each, **kw: jaxcd.Table(each, **kw)) for each in frames]
    for name, table_of in [*engines(frame, tmp_path), *eager]:
        table = table_of(domain=domain, n_samples=4, snapshot="now")
        a, b = table.counts([(0,), (1,)])
        assert (a.tolist(), b.tolist()) == ([1, 1, 1, 1], [1, 1, 2]), name
        assert [x for block in table.blocks(["c"]) for x in block.cells["c"]] == list(levels), name


@pytest.mark.parametrize("cell", [1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, None])
@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt64])
def test_no_whole_number_stops_a_frame_in_memory(kind: Any, cell: int | None) -> None:
    """Arrow's own expressions fail where a cell is beyond the type that they compare in."""
    domain = jaxcd.Domain(
        {
            "levels": jaxcd.Ordinal((0, 1, 2**63)),
            "bins": jaxcd.Binned((0, 1, 2), missing=(7,)),
            "number": jaxcd.Numeric(0, 5),
        }
    )
    if kind == pl.Int64 and cell is not None:
        cell = min(cell, 2**63 - 1)
    cells = pl.Series([0, 1, 7, cell], dtype=kind)
    frame = pl.DataFrame({"levels": cells, "bins": cells, "number": cells})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    for each in (frame, frame.to_arrow(), frame.to_pandas(use_pyarrow_extension_array=True)):
        table = jaxcd.Table(each, domain=domain, n_samples=4, snapshot="now")
        np.testing.assert_array_equal(table.counts([(0, 1)]), data.counts([(0, 1)]))
        (block,) = table.blocks(["number"])
        np.testing.assert_array_equal(block.cells["number"], data.values("number"))


@pytest.mark.parametrize("kind", [pl.Int64, pl.Boolean, pl.Float64, pl.String])
def test_a_level_is_that_level_also_where_it_may_mean_a_missing_cell(
    tmp_path: Path, kind: Any
) -> None:
    """The text " 1" spells the number that is a level."""
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Categorical(("1", "x"), missing=("nan", " 1", " 0")),
            "b": jaxcd.Categorical((0, 1)),
        }
    )
    frame = pl.DataFrame({"a": pl.Series([1, 0, 1, None, 1]).cast(kind), "b": [0, 1, 0, 1, 1]})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    assert data.counts([(0,)])[0].tolist() == [3, 0, 2]
    for name, table_of in engines(frame, tmp_path):
        table = table_of(domain=domain, n_samples=5, snapshot="now")
        np.testing.assert_array_equal(table.counts([(0, 1)]), data.counts([(0, 1)]), err_msg=name)


def test_whole_numbers_of_128_bits() -> None:
    domain = jaxcd.Domain({"a": jaxcd.Ordinal((0, 1, 2)), "b": jaxcd.Numeric(0, 10)})
    cells = [0, 2**100, 1, None]
    a, b = (pl.Series(cells, dtype=kind) for kind in (pl.Int128, pl.UInt128))
    frame = pl.DataFrame({"a": a, "b": b})
    from_duckdb = duckdb.sql(
        "SELECT a::HUGEINT AS a, b::UHUGEINT AS b FROM (VALUES ('0', '0'), "
        f"('{2**127 - 1}', '{2**128 - 1}'), ('1', '1'), (NULL, NULL)) AS rows(a, b)"
    )
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    assert data.column("a").tolist() == [0, 1, 1, 1]
    assert data.values("b").tolist() == [0, 10, 1, 5]
    for lazy in (frame.lazy(), from_duckdb):
        table = jaxcd.Table(lazy, domain=domain, n_samples=4, snapshot="now")
        assert table.counts([(0,)])[0].tolist() == [1, 3, 0]
        (block,) = table.blocks(["a", "b"])
        assert sorted(block.cells["a"].tolist()) == [0, 1, 1, 1]
        assert sorted(block.cells["b"].tolist()) == [0, 1, 5, 10]


@pytest.mark.parametrize("is_category", [False, True])
def test_no_text_of_pandas_makes_a_table_unreadable(is_category: bool) -> None:
    """Half of a surrogate pair, which JSON can spell and arrow cannot hold."""
    domain = jaxcd.Domain({"x": jaxcd.Categorical(("a", "b")), "y": jaxcd.Numeric(0, 1)})
    kind = pd.StringDtype("python")
    for odd in ("c", "\ud800"):
        cells = pd.Series(["b", odd, None, "a"], dtype=kind)
        if is_category:
            cells = pd.Series(
                pd.Categorical.from_codes([1, 2, -1, 0], pd.Index(["a", "b", odd], dtype=kind))
            )
        frame = pd.DataFrame({"x": cells, "y": [0.0, 0.25, 0.5, 1.0]})
        table = jaxcd.Table(frame, domain=domain, n_samples=4, snapshot="now")
        assert table.counts([(0,)])[0].tolist() == [3, 1]
        (block,) = table.blocks(["y", "x"])
        assert block.cells["x"].tolist() == [1, 0, 0, 0]
        assert block.cells["y"].tolist() == [0.0, 0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    "column",
    [
        jaxcd.Ordinal((1, 2, 3)),
        jaxcd.Categorical(("1", "2"), missing=(9,)),
        Binned((0, 1.5, 9)),
        jaxcd.Numeric(0, 9),
    ],
)
@pytest.mark.parametrize("odd", ["x", "3", 2, 2.5, None, b"1", [1], 10**30, 1j])
def test_one_cell_does_not_decide_whether_a_table_of_pandas_is_read(
    column: Any, odd: object, tmp_path: Path
) -> None:
    """Which makes a column of objects, or of text, of one of whole numbers; also in a file that
    such a frame was written to.
    """
    domain = jaxcd.Domain({"x": column, "y": jaxcd.Ordinal((0, 1))})
    for cells in ([1, 2, odd, 1], ["1", "2", odd, "1"]):
        frame = pd.DataFrame({"x": cells, "y": [0, 1, 0, 1]})
        memory = jaxcd.Dataset.from_frame(frame, domain=domain)
        columns = [frame["x"]]
        if not isinstance(odd, list):
            columns.append(pd.Series(pd.Categorical(cells)))
        tables: list[Any] = [pd.DataFrame({"x": each, "y": frame["y"]}) for each in columns]
        if cells[0] == "1" and (odd is None or isinstance(odd, str)):
            frame["x"] = frame["x"].astype("string")
            frame.to_parquet(tmp_path / "x.parquet")
            tables += [frame, tmp_path / "x.parquet"]
        for each in tables:
            made = jaxcd.Table.parquet if isinstance(each, Path) else jaxcd.Table
            table = made(each, domain=domain, n_samples=4, snapshot="now")
            (block,) = table.blocks(["x"])
            assert block.cells["x"].tolist() == memory.column("x").tolist()
            assert table.counts([(1,)])[0].tolist() == [2, 2]


def same(one: jaxcd.Release, other: jaxcd.Release) -> None:
    (header, arrays), (expected, truth) = one._parts(), other._parts()
    assert header == expected and arrays.keys() == truth.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, truth[name])
    assert list(one.charges) == list(other.charges)


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables(kinds=DISCRETE), st.sampled_from(["Histogram", "Marginals", "LogLinear"]))
def test_releases_of_discrete_columns_are_the_same(
    tmp_path: Path, drawn: tuple[pl.DataFrame, jaxcd.Domain], kind: str
) -> None:
    _compare(tmp_path, *drawn, getattr(jaxcd, kind)())


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables(kinds=MIXED, least=60))
def test_releases_of_features_are_the_same(
    tmp_path: Path, drawn: tuple[pl.DataFrame, jaxcd.Domain]
) -> None:
    _compare(tmp_path, *drawn, jaxcd.Features())


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(2, 70), st.integers(2, 4), st.integers(0, 9))
def test_releases_of_second_moments_are_the_same(tmp_path: Path, n: int, d: int, seed: int) -> None:
    """In another order too: what a row adds does not depend on where it stands."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 4, d)
    names = [f"x{j}" for j in range(d)]
    domain = jaxcd.Domain({name: jaxcd.Numeric() for name in names})
    frame = pl.DataFrame(values, schema=names)
    _compare(tmp_path, frame, domain, jaxcd.SecondMoments())
    shuffled = jaxcd.Dataset.from_frame(frame[rng.permutation(n).tolist()], domain=domain)
    same(
        *(
            jaxcd.release(rows, jaxcd.SecondMoments(), budget=BUDGET, noise=simulated())
            for rows in (shuffled, jaxcd.Dataset.from_frame(frame, domain=domain))
        )
    )


def _compare(folder: Path, frame: pl.DataFrame, domain: jaxcd.Domain, kind: Any) -> None:
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    expected = jaxcd.release(data, kind, budget=BUDGET, noise=simulated())
    assert expected.snapshot is None
    for _, table_of in engines(frame, folder):
        table = table_of(domain=domain, n_samples=len(frame), snapshot="1st of May")
        found = jaxcd.release(table, kind, budget=BUDGET, noise=simulated())
        same(found, expected)
        assert found.snapshot == "1st of May"
        assert found.certificate()["snapshot"] == "1st of May"
    read = jaxcd.Release.load(found.save(folder / "release.npz"))
    assert read.snapshot == "1st of May"


# Covers
# --------------------------------------------------------------------------------------------------


@example(cards=[1, 3, 2], drawn=[{2}, {0, 1}], most=4)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=12),
    st.lists(st.sets(st.integers(0, 11), max_size=5), max_size=12),
    st.integers(4, 300),
)
def test_every_set_is_part_of_a_cover_of_few_cells(
    cards: list[int], drawn: list[set[int]], most: int
) -> None:
    sets = [tuple(s) for s in drawn if all(v < len(cards) for v in s)]
    found = covers(sets, cards, most_cells=most)
    for columns in sets:
        assert any(set(columns) <= set(cover) for cover in found)
    for cover in found:
        size, root = math.prod(cards[v] for v in cover), math.isqrt(most)
        wide = math.prod(max(1.0, cards[v] / root) for v in cover)
        assert size <= most * wide or any(set(s) >= set(cover) for s in sets)
        assert list(cover) == sorted(set(cover))
    for a, b in itertools.permutations(found, 2):
        assert not set(a) <= set(b)


def test_all_pairs_of_37_columns_are_tens_of_queries() -> None:
    cards = [2] * 13 + [3] * 17 + [4] * 7  # as Alarm's
    found = covers(list(itertools.combinations(range(37), 2)), cards)
    assert len(found) < 67


def test_marginals_of_a_cover() -> None:
    table = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    np.testing.assert_array_equal(marginal(table, (1, 5, 7), (7, 1)), table.sum(axis=1).T)
    assert marginal(table, (1, 5, 7), ()) == 276


# What is refused, and what is not said
# --------------------------------------------------------------------------------------------------

FRAME = pl.DataFrame({"a": ["x", "y", "x", "secret-x"], "b": [0, 1, 1, 0]})
DOMAIN = jaxcd.Domain({"a": jaxcd.Categorical(("x", "y")), "b": jaxcd.Ordinal((0, 1))})


def table(frame: Any = None, **changed: Any) -> jaxcd.Table:
    options = {"domain": DOMAIN, "n_samples": 4, "snapshot": "v1"} | changed
    return jaxcd.Table((FRAME if frame is None else frame).lazy(), **options)


@pytest.mark.parametrize(
    ("collation", "session", "pair"),
    [
        ("nocase", "", "'a' and 'A'"),
        ("noaccent", "", "'e' and 'é'"),
        ("nfc", "", "'é' and"),
        ("", "nocase", "'a' and 'A'"),
        ("", "", None),
        ("c", "", None),
    ],
)
@pytest.mark.parametrize("kind", ["duckdb", "ibis"])
def test_a_collation_that_takes_two_texts_for_one_is_refused(
    kind: str, collation: str, session: str, pair: str | None
) -> None:
    connection = duckdb.connect()
    of = f"collate {collation}" if collation else ""
    connection.execute(f"create table t (s varchar {of}, k integer)")
    connection.execute("insert into t values ('yes', 0), ('YES', 1), ('Yes', 0), (null, 1)")
    connection.execute(f"set default_collation = '{session}'")
    rows = connection.table("t")
    if kind == "ibis":
        ibis = pytest.importorskip("ibis", reason="jaxcd[ibis] is not installed")
        rows = ibis.duckdb.from_connection(connection).table("t")
    domain = jaxcd.Domain(
        {"s": jaxcd.Categorical(("yes", "no"), other="no"), "k": jaxcd.Ordinal((0, 1))}
    )
    table = jaxcd.Table(rows, domain=domain, n_samples=4, snapshot="v1")
    if pair is None:
        assert table.counts([(0,)])[0].tolist() == [1, 3]
        return
    for _ in range(2):  # also when it is asked again
        with pytest.raises(DataError, match=f"column 's'.*{pair}.*binary collation") as refusal:
            table.counts([(0, 1)])
        assert "YES" not in str(refusal.value)


def test_a_wrong_number_of_rows_is_refused_without_the_right_one() -> None:
    for wrong in (table(n_samples=3), table(n_samples=5)):
        for ask in (
            lambda rows: rows.counts([(0, 1)]),
            lambda rows: list(rows.blocks(["a"])),
            lambda rows: jaxcd.release(rows, jaxcd.Histogram(), budget=BUDGET),
        ):
            with pytest.raises(DataError, match="n_samples") as caught:
                ask(wrong)
            assert "4" not in str(caught.value)


def test_an_engines_error_shows_no_row() -> None:
    broken = FRAME.lazy().with_columns(b=pl.col("a").cast(pl.Int64))
    with pytest.raises(DataError, match="not passed on") as caught:
        table(broken).counts([(0, 1)])
    shown = "".join(traceback.format_exception(caught.value))
    assert "secret" not in shown and caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("cell", [1, "one", b"\xff"], ids=str)
def test_sqlite_is_refused_whatever_its_cells_are(cell: object, tmp_path: Path) -> None:
    """A column of whole numbers takes text there, and Ibis fails on it: one record decided whether
    a run ended.
    """
    ibis = pytest.importorskip("ibis", reason="jaxcd[ibis] is not installed")
    with contextlib.closing(sqlite3.connect(tmp_path / "rows.db")) as file, file:
        file.execute("create table t (a integer, b text)")
        file.executemany("insert into t values (?, ?)", [(0, "x"), (1, "y"), (cell, "x")])
    domain = jaxcd.Domain({"a": jaxcd.Ordinal((0, 1)), "b": jaxcd.Categorical(("x", "y"))})
    engine = ibis.sqlite.connect(tmp_path / "rows.db")
    with contextlib.closing(engine.con):
        with pytest.raises(OptionError, match="SQLite keeps cells of any type"):
            jaxcd.Table(engine.table("t"), domain=domain, n_samples=3, snapshot="v1")


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"n_samples": 1}, OptionError, "n_samples"),
        ({"n_samples": 2**33 + 1}, OptionError, "n_samples"),
        ({"n_samples": 4.0}, OptionError, "n_samples"),
        ({"snapshot": " "}, OptionError, "snapshot"),
        ({"domain": {"a": 1}}, DomainError, "not a Domain"),
        ({"domain": jaxcd.Domain.infer(FRAME)}, DomainError, "inferred"),
        ({"domain": jaxcd.Domain(dict(DOMAIN.columns), person="p")}, DomainError, "one person"),
        ({"domain": DOMAIN.select(["a"])}, DomainError, "2 columns"),
        ({"domain": jaxcd.Domain(dict(DOMAIN.columns) | {"c": DOMAIN["a"]})}, DataError, "'c'"),
        ({"frame": FRAME.with_columns(c=1)}, DataError, "'c'"),
        ({"frame": FRAME.with_columns(b=pl.date(2026, 1, 1))}, DataError, "'b'"),
        ({"domain": jaxcd.Domain({"a": jaxcd.Binned((0, 1)), "b": DOMAIN["b"]})}, DataError, "'a'"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_table(changed: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        table(**changed)


def test_a_domain_file_does_as_its_domain(tmp_path: Path) -> None:
    """As at every other door; of codes, too."""
    DOMAIN.write(tmp_path / "domain.json")
    FRAME.write_parquet(tmp_path / "rows.parquet")
    codes = [[0, 1], [1, 0]]
    for path in (tmp_path / "domain.json", str(tmp_path / "domain.json")):
        options = {"domain": path, "n_samples": 4, "snapshot": "v"}
        assert table(**options).domain == DOMAIN
        assert jaxcd.Table.parquet(tmp_path / "rows.parquet", **options).domain == DOMAIN
        assert jaxcd.Dataset.from_codes(codes, domain=path).domain == DOMAIN
    with pytest.raises(DomainError, match="not a Domain"):
        jaxcd.Dataset.from_codes(codes, domain={})


def test_what_a_table_cannot_do_is_refused_with_what_to_use() -> None:
    for ask, cure in (
        (lambda: jaxcd.ci_test(table(), "a", "b", test=jaxcd.RCIT(), budget=jaxcd.NO_PRIVACY,
                               key=jax.random.key(0)), "Features"),
        (lambda: table().where(np.ones(4, dtype=bool)), "subsampling"),
        (lambda: table().counts([(0, 1)], by_person=True), "unit='row'"),
        (lambda: jaxcd.release(table(), jaxcd.Histogram(), budget=jaxcd.Budget(1, unit="person")),
         "person"),
        (lambda: jaxcd.ges(table(), score=jaxcd.BIC(), budget=jaxcd.NO_PRIVACY), "release"),
        (lambda: jaxcd.Table("lake.parquet", domain=DOMAIN, n_samples=4, snapshot="v"), "parquet"),
        (lambda: jaxcd.Table.parquet("/no/lake/*.parquet", domain=DOMAIN, n_samples=4,
                                     snapshot="v"), "no parquet file"),
    ):  # fmt: skip
        with pytest.raises((OptionError, DataError, jaxcd.errors.PrivacyError), match=cure):
            ask()


def test_progress_is_told_by_query_and_an_interrupt_goes_through() -> None:
    told: list[tuple[int, int]] = []
    table(progress=lambda done, total: told.append((done, total))).counts([(0,), (1,)])
    assert told == [(0, 1)]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table(progress=stop).counts([(0,)])


# Searches
# --------------------------------------------------------------------------------------------------


def test_searches_by_tests_and_the_one_call_door_are_the_same(tmp_path: Path) -> None:
    n = 3_001
    data = jaxcd.networks.load("cancer").sample(n, key=jax.random.key(0))
    frame = pl.from_pandas(data.to_frame()).with_columns(pl.all().cast(pl.String))
    for name, table_of in engines(frame, tmp_path):
        if name == "ibis":
            continue
        rows = table_of(domain=data.domain, n_samples=n, snapshot="v1")
        for run in (
            lambda d: jaxcd.pc(d, test=jaxcd.CovarianceNorm(), decider=jaxcd.LevelwiseGaussian(),
                               budget=BUDGET, noise=simulated()),
            lambda d: jaxcd.pc(d, test=jaxcd.KendallTau(), decider=jaxcd.Threshold(),
                               budget=jaxcd.NO_PRIVACY),
            lambda d: jaxcd.tree_pc(d, test=jaxcd.CovarianceNorm(), budget=BUDGET,
                                    noise=simulated()),
            lambda d: jaxcd.discover(d, budget=BUDGET, noise=simulated()),
        ):  # fmt: skip
            expected, found = run(data), run(rows)
            assert found.graph == expected.graph and found.cost == expected.cost
            assert found.info["snapshot"] == "v1" and "snapshot" not in expected.info
    assert jaxcd.recommend(rows.domain, rows.n_samples, budget=BUDGET).choice is not None
