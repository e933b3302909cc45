"""Data sets: one representation from every source, and errors that name column, row, value and
cure.
"""

from __future__ import annotations

import datetime
import decimal
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxcd
from jaxcd.data import Categorical, Dataset, Domain, Numeric, Ordinal, read_csv
from jaxcd.data.column_types import MAX_INFERRED_LEVELS
from jaxcd.data.drafting import draft_of_file
from jaxcd.errors import DataError, DomainError
from tests.helpers import refused

DOMAIN = Domain(
    {
        "smoke": Categorical(("yes", "no")),
        "age": Numeric(0, 120),
        "stage": Ordinal((1, 2, 3)),
        "flag": Categorical((False, True)),
    }
)
COLUMNS: dict[str, list] = {
    "age": [1.5, 120.0, 0.0],
    "smoke": ["no", "yes", "no"],
    "flag": [True, False, False],
    "stage": [3, 1, 1],
}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


def changed(name: str, cells: list) -> dict[str, list]:
    return {**COLUMNS, name: cells}


def same(first: Dataset, second: Dataset) -> bool:
    return (
        first.domain == second.domain
        and np.array_equal(first.discrete, second.discrete)
        and np.array_equal(first.numeric, second.numeric)
    )


@pytest.mark.parametrize("frame", FRAMES)
def test_from_frame(frame: Any) -> None:
    data = Dataset.from_frame(frame(COLUMNS), domain=DOMAIN)
    assert data.names == ("smoke", "age", "stage", "flag")  # the domain's order, not the frame's
    assert (data.n_samples, data.n_columns) == (3, 4)
    assert data.column("smoke").tolist() == [1, 0, 1]
    assert data.column("stage").tolist() == [2, 0, 0]
    assert data.column("flag").tolist() == [1, 0, 0]
    assert data.values("age").tolist() == [1.5, 120.0, 0.0]
    assert data.column("smoke").dtype == np.int32
    assert data.values("age").dtype == np.float64


def test_codes_are_int32_column_major_and_read_only() -> None:
    data = Dataset.from_frame(pd.DataFrame(COLUMNS), domain=DOMAIN).select(
        ["flag", "smoke", "stage"]
    )
    assert data.codes.dtype == np.int32
    assert data.codes.flags.f_contiguous
    assert data.codes.tolist() == [[1, 1, 2], [0, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        data.codes[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        Dataset.from_array(np.eye(3) / 2).values("x1")[0] = 1


cells = {
    "word": st.sampled_from(["a", "b", "C d", "é"]),
    "whole": st.integers(-3, 3),
    "real": st.floats(-1e6, 1e6),
    "truth": st.booleans(),
}
tables = st.integers(2, 8).flatmap(
    lambda n: st.fixed_dictionaries(
        {name: st.lists(cell, min_size=n, max_size=n) for name, cell in cells.items()}
    )
)
TABLE_DOMAIN = Domain(
    {
        "word": Categorical(("C d", "a", "b", "é")),
        "whole": Ordinal(tuple(range(-3, 4))),
        "real": Numeric(-1e6, 1e6),
        "truth": Categorical((True, False)),
    }
)


@given(table=tables, declared=st.booleans())
def test_every_back_end_gives_the_same_data(table: dict[str, list], declared: bool) -> None:
    domain = TABLE_DOMAIN if declared else None
    first = Dataset.from_frame(pd.DataFrame(table), domain=domain)
    assert same(first, Dataset.from_frame(pl.DataFrame(table), domain=domain))
    assert same(first, Dataset.from_frame(pa.table(table), domain=domain))
    rows = [list(row) for row in zip(*table.values(), strict=True)]
    assert same(first, Dataset.from_array(rows, names=list(table), domain=domain))
    for name, column in first.domain.columns.items():  # and every cell can be read back
        if isinstance(column, Numeric):
            assert first.values(name).tolist() == [float(cell) for cell in table[name]]
        else:
            assert [column.levels[code] for code in first.column(name)] == table[name]


def test_back_ends_with_types_of_their_own() -> None:
    domain = Domain(
        {
            "a": Categorical(("x", "y")),
            "b": Ordinal((1, 2)),
            "c": Numeric(0, 9),
            "d": Categorical((0, 1)),
        }
    )
    frames = [
        pd.DataFrame(
            {
                "a": pd.Categorical(["y", "x"]),
                "b": pd.array([1, 2], dtype="Int64"),
                "c": pd.array([1.5, 2.0], dtype="Float64"),
                "d": pd.array([True, False], dtype="boolean"),
            }
        ),
        pd.DataFrame({"a": ["y", "x"], "b": ["1", "2"], "c": ["1.5", "2"], "d": [1.0, 0.0]}),
        pd.DataFrame(
            {"a": ["y", "x"], "b": [1, 2], "c": [1.5, 2], "d": [True, False]},
            dtype=object,
            index=[7, 7],
        ),
        pl.DataFrame(
            {
                "a": pl.Series(["y", "x"], dtype=pl.Enum(["x", "y"])),
                "b": pl.Series([1, 2], dtype=pl.UInt8),
                "c": pl.Series([decimal.Decimal("1.5"), decimal.Decimal("2.0")]),
                "d": [True, False],
            }
        ),
        pl.DataFrame(
            {
                "a": pl.Series(["y", "x"], dtype=pl.Categorical),
                "b": [1, 2],
                "c": [1.5, 2.0],
                "d": [1, 0],
            }
        ),
        pa.table(
            {
                "a": pa.array(["y", "x"]).dictionary_encode(),
                "b": pa.array([1, 2], pa.int8()),
                "c": pa.array([1.5, 2.0], pa.float32()),
                "d": [True, False],
            }
        ),
    ]
    first = Dataset.from_frame(frames[0], domain=domain)
    assert first.select(["a", "b", "d"]).codes.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert first.values("c").tolist() == [1.5, 2.0]
    for frame in frames[1:]:
        assert same(first, Dataset.from_frame(frame, domain=domain))


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        (changed("age", [1.5, None, 2.0]), ["'age'", "row 2", "missing", "declare"]),
        (changed("age", [1.5, float("nan"), 2.0]), ["'age'", "row 2", "missing"]),
        (changed("age", [1.5, 2.0, float("inf")]), ["'age'", "row 3", "inf", "infinite"]),
        (changed("age", [1.5, 2.0, 130.5]), ["'age'", "row 3", "130.5", "[0, 120]", "clip=True"]),
        (changed("age", [-1.0, 2.0, 130.5]), ["'age'", "row 1", "-1.0", "widen the bounds"]),
        (changed("age", ["1", "old", "2"]), ["'age'", "row 2", "'old'", "not a number"]),
        (changed("age", ["1", "inf", "2"]), ["'age'", "row 2", "'inf'", "infinite"]),
        (changed("age", ["1", "1_0", "2"]), ["'age'", "row 2", "'1_0'", "not a number"]),
        (
            changed("smoke", ["yes", "no", "maybe"]),
            ["'smoke'", "row 3", "'maybe'", "not a declared level", "add it"],
        ),
        (changed("smoke", ["yes", None, "no"]), ["'smoke'", "row 2", "missing"]),
        (changed("stage", [1, 2, 4]), ["'stage'", "row 3", "value 4 ", "not a declared level"]),
        (changed("stage", [1, None, 3]), ["'stage'", "row 2", "missing"]),
        (changed("stage", [1.0, 2.5, 3.0]), ["'stage'", "row 2", "2.5"]),
        (changed("flag", [True, None, False]), ["'flag'", "row 2", "missing"]),
        ({**COLUMNS, "income": [1, 2, 3]}, ["'income'", "not in the domain", "declare"]),
        (
            {name: COLUMNS[name] for name in ("age", "smoke", "stage")},
            ["'flag'", "not in the data", "domain"],
        ),
        ({"age": COLUMNS["age"]}, ["at least 2 columns", "not 1"]),
        (
            changed("age", [datetime.date(2000, 1, 1)] * 3),
            ["'age'", "turn the column into text or numbers"],
        ),
    ],
)
@pytest.mark.parametrize("frame", FRAMES)
def test_errors_name_column_row_value_and_cure(
    frame: Any, columns: dict[str, list], parts: list[str]
) -> None:
    if frame is pd.DataFrame and isinstance(columns["age"][0], datetime.date):
        columns = {**columns, "age": pd.to_datetime(columns["age"])}  # type: ignore[dict-item]
    with pytest.raises(DataError) as caught:
        Dataset.from_frame(frame(columns), domain=DOMAIN, strict=True)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_row_is_data_and_none_is_not() -> None:
    whole = pd.DataFrame(COLUMNS)
    assert Dataset.from_frame(whole[:1], domain=DOMAIN).n_samples == 1
    with pytest.raises(DataError, match="at least 1 row, not 0"):
        Dataset.from_frame(whole[:0], domain=DOMAIN)


def test_clip_moves_onto_the_bounds_and_repairs_nothing_else() -> None:
    data = Dataset.from_frame(
        pd.DataFrame(changed("age", [-5.0, 50.0, 500.0])), domain=DOMAIN, strict=True, clip=True
    )
    assert data.values("age").tolist() == [0.0, 50.0, 120.0]
    for wrong in (float("inf"), float("nan")):
        with pytest.raises(DataError, match="'age', row 1"):
            Dataset.from_frame(
                pd.DataFrame(changed("age", [wrong, 1.0, 1.0])),
                domain=DOMAIN,
                strict=True,
                clip=True,
            )


def test_errors_and_repr_do_not_show_other_rows() -> None:
    columns = {"who": ["alice", "bob", "mallory"], "pay": [71234.5, 82345.5, 93456.5]}
    domain = Domain({"who": Categorical(("alice", "bob")), "pay": Numeric(0, 1e5)})
    with pytest.raises(DataError) as caught:
        Dataset.from_frame(pd.DataFrame(columns), domain=domain, strict=True)
    assert "mallory" in str(caught.value)
    with pytest.raises(DataError) as bounds:
        Dataset.from_frame(
            pd.DataFrame(columns).head(2),
            domain=Domain({**domain.columns, "pay": Numeric(0, 75000)}),
            strict=True,
        )
    assert "82345.5" in str(bounds.value)
    data = Dataset.from_frame(pd.DataFrame(columns))
    for text in (str(caught.value), str(bounds.value), repr(data), str(data), repr(data.domain)):
        assert not any(secret in text for secret in ("alice", "bob", "71234", "93456"))
    assert (
        repr(data)
        == "Dataset(n_samples=3; who: categorical(3), pay: numeric; domain inferred, not declared)"
    )
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_frames_that_are_refused() -> None:
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    refused(DataError, "'a' occurs twice", Dataset.from_frame, twice)
    with pytest.raises(DataError, match="'a' occurs twice"):
        Dataset.from_frame(pa.table([[1, 2], [3, 4]], names=["a", "a"]))
    refused(
        DataError, "column 1 has the name 0", Dataset.from_frame, pd.DataFrame([[1, 2], [3, 4]])
    )
    refused(DataError, "collect", Dataset.from_frame, pl.LazyFrame({"a": [1, 2], "b": [1, 2]}))
    refused(DataError, "from_array", Dataset.from_frame, np.eye(3))
    stream = pa.table({"a": [1, 2], "b": [1, 2]}).to_reader()
    refused(DataError, ".read_all()", Dataset.from_frame, stream)
    with pytest.raises(DataError, match="'a', row 2: a cell holds a list"):
        Dataset.from_frame(pd.DataFrame({"a": ["x", [1]], "b": [1, 2]}))


def test_from_array() -> None:
    data = Dataset.from_array(np.array([[0.5, 1], [1.5, 0]]))
    assert data.names == ("x1", "x2")
    assert data.domain == Domain({"x1": Numeric(), "x2": Ordinal((0, 1))}, declared=False)
    domain = Domain({"a": Ordinal((5, 7)), "b": Categorical(("u", "v"))})
    data = Dataset.from_array([[7, "u"], [5, "v"]], domain=domain)
    assert data.codes.tolist() == [[1, 0], [0, 1]]
    data = Dataset.from_array([["u", 7], ["v", 5]], names=["b", "a"], domain=domain)
    assert data.names == ("a", "b") and data.codes.tolist() == [[1, 0], [0, 1]]
    text = Dataset.from_array(np.array([["u", "7"], ["v", "5"]]))
    assert text.domain == Domain(
        {"x1": Categorical(("u", "v")), "x2": Ordinal((5, 7))}, declared=False
    )


@pytest.mark.parametrize(
    ("values", "options", "part"),
    [
        (np.zeros(4), {}, "two-dimensional"),
        (np.zeros((4, 2, 2)), {}, "two-dimensional"),
        (np.zeros((4, 1)), {}, "at least 2 columns"),
        (np.zeros((0, 2)), {}, "at least 1 row"),
        (np.zeros((4, 2)), {"names": ["a"]}, "one name for each of the 2"),
        (np.zeros((4, 2)), {"names": ["a", "a"]}, "'a' occurs twice"),
        (np.zeros((4, 2)), {"names": ["a", ""]}, "column 2 has no name; name every column$"),
        (np.zeros((4, 2)), {"names": ["", "a"]}, "column 1 has no name.*row numbers.*index=False"),
        ([[1, 2], [3]], {}, "row 2 has 1 value,"),
        (np.array([[1, np.nan], [2, np.nan]]), {}, "'x2' holds missing values only"),
        (np.full((4, 2), 1j), {}, "'x1', row 1: a cell holds a complex"),
        (np.array([["a", None], ["b", None]], dtype=object), {}, "'x2' holds missing values only"),
    ],
)
def test_arrays_that_are_refused(values: Any, options: dict, part: str) -> None:
    refused(DataError, part, Dataset.from_array, values, **options)


CODES_DOMAIN = Domain({"a": Categorical(("u", "v")), "b": Ordinal((1, 2, 3))})


def test_from_codes() -> None:
    codes = np.array([[0, 2], [1, 0], [1, 1]])
    data = Dataset.from_codes(codes, domain=CODES_DOMAIN)
    assert data.codes.tolist() == codes.tolist()
    mine = np.asfortranarray(codes.astype(np.int32))
    data = Dataset.from_codes(mine, domain=CODES_DOMAIN)
    mine[0, 0] = 1
    assert data.codes[0, 0] == 0  # a writable array is copied
    mine.setflags(write=False)
    assert np.shares_memory(Dataset.from_codes(mine, domain=CODES_DOMAIN).codes, mine)
    view = mine[:]
    assert np.shares_memory(Dataset.from_codes(view, domain=CODES_DOMAIN).codes, mine)


def test_a_read_only_view_of_a_writable_array_is_copied() -> None:
    base = np.array([[0, 1, 1], [2, 0, 1]], dtype=np.int32)
    numbers = np.full((1, 3), 0.5)
    view, more = base.T[:], numbers.T[:]
    for each in (view, more):
        each.setflags(write=False)
    domain = Domain({**CODES_DOMAIN.columns, "x": Numeric(0, 1)})
    data = Dataset(domain, view, more)
    base[:], numbers[:] = 0, 0.0
    assert data.discrete.tolist() == [[0, 2], [1, 0], [1, 1]]
    assert data.numeric.tolist() == [[0.5]] * 3


def test_a_matrix_is_an_array() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        cells = np.matrix([[0.5, 1], [1, 0], [1, 2]])
        hidden = np.ma.masked_array(cells, mask=False)
    for values in (cells, hidden):
        data = Dataset.from_array(values)
        assert data.values("x1").tolist() == [0.5, 1, 1]
        assert data.column("x2").tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("codes", "part"),
    [
        ([[0, 0], [0, 3]], "'b', row 2: the code 3"),
        ([[0, 0], [-1, 0]], "'a', row 2: the code -1"),
        ([[0, 2**32], [0, 0]], "32-bit"),
        ([[0.0, 1.0], [1.0, 1.0]], "integers"),
        ([[0, 0, 0], [0, 0, 0]], "shape"),
        ([0, 1], "shape"),
    ],
)
def test_codes_that_are_refused(codes: list, part: str) -> None:
    refused(DataError, part, Dataset.from_codes, np.array(codes), domain=CODES_DOMAIN, strict=True)
    refused(DomainError, "discrete", Dataset.from_codes, np.array(codes), domain=DOMAIN)


def test_a_constant_column_is_legal() -> None:
    domain = Domain({"a": Categorical(("only",)), "b": Numeric(0, 1), "c": Ordinal((1, 2))})
    frame = pd.DataFrame({"a": ["only"] * 3, "b": [0.5] * 3, "c": [2] * 3})
    data = Dataset.from_frame(frame, domain=domain)
    assert data.column("a").tolist() == [0, 0, 0] and data.column("c").tolist() == [1, 1, 1]
    assert Dataset.from_frame(frame).domain.cardinalities == (1, None, 1)


def test_select_and_permuted() -> None:
    data = Dataset.from_frame(pl.DataFrame(COLUMNS), domain=DOMAIN)
    part = data.select(["age", "smoke"])
    assert part.names == ("age", "smoke")
    assert part.values("age").tolist() == COLUMNS["age"]
    turned = data.permuted([3, 1, 0, 2])
    assert turned.names == ("flag", "age", "smoke", "stage")
    for name in data.names:
        assert np.array_equal(turned.column(name), data.column(name))
    assert same(turned.permuted(np.argsort([3, 1, 0, 2])), data)
    for order in ([0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4]):
        refused(DataError, "permutation", data.permuted, order)
    refused(DataError, "at least 2 columns", data.select, ["age"])
    refused(DataError, "single text", data.select, "age")
    refused(DomainError, "'height'", data.select, ["age", "height"])


def test_wrong_kinds_are_refused() -> None:
    data = Dataset.from_frame(pl.DataFrame(COLUMNS), domain=DOMAIN)
    with pytest.raises(DomainError, match="'age' is numeric"):
        _ = data.codes
    refused(DomainError, "'smoke' is categorical", data.values, "smoke")
    refused(DomainError, "'height'", data.column, "height")
    with pytest.raises(AttributeError):
        data.domain = DOMAIN  # type: ignore[misc]


def test_the_constructor_checks_what_it_is_given() -> None:
    domain = Domain({"a": Categorical(("u", "v")), "b": Numeric(0, 1)})
    codes, numbers = np.zeros((3, 1), np.int32), np.full((3, 1), 0.5)
    assert Dataset(domain, codes, numbers).n_samples == 3
    refused(DataError, "'b', row 2", Dataset, domain, codes, np.array([[0.0], [np.nan], [1.0]]))
    refused(DataError, "'b', row 3", Dataset, domain, codes, np.array([[0.0], [1.0], [1.5]]))
    refused(DataError, "rows", Dataset, domain, codes[:2], numbers)
    refused(DataError, "columns", Dataset, domain, np.zeros((3, 2), np.int32), numbers)


def test_round_trip_over_pandas_and_pickle() -> None:
    data = Dataset.from_frame(pl.DataFrame(COLUMNS), domain=DOMAIN)
    frame = data.to_frame()
    assert list(frame.columns) == list(data.names)
    assert frame["stage"].cat.ordered and not frame["smoke"].cat.ordered
    assert frame["smoke"].tolist() == COLUMNS["smoke"]
    assert same(Dataset.from_frame(frame, domain=DOMAIN), data)
    assert same(pickle.loads(pickle.dumps(data)), data)
    assert Dataset.from_frame(frame).domain["stage"] == Ordinal((1, 2, 3))


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        (pd.Series(["b", "a", "b"]), Categorical(("a", "b"))),
        (pd.Series([True, True, True]), Categorical((False, True))),
        (pd.Series([3, 1, 3]), Ordinal((1, 3))),
        (pd.Series([3.0, 1.0, 3.0]), Ordinal((1, 3))),
        (pd.Series([3.5, 1.0, 3.0]), Numeric()),
        (pd.Series([2**53 + 1, 2**53, -3]), Ordinal((-3, 2**53, 2**53 + 1))),
        (pd.Series([2**63 + 1, 2**63, 1], dtype="uint64"), Ordinal((1, 2**63, 2**63 + 1))),
        (pd.Series([2**53 + 1, None, 2**53], dtype="Int64"), (2**53, 2**53 + 1)),
        (pd.Series([2.0**60, 2.0**61, 1.0]), Numeric()),
        (pd.Series(["3", "1", "3"]), Categorical(("1", "3"))),
        (
            pd.Categorical(["u", "w", "u"], categories=["w", "v", "u"], ordered=True),
            Ordinal(("w", "v", "u")),
        ),
        (pd.Categorical(["u", "w", "u"], categories=["w", "v", "u"]), Categorical(("w", "v", "u"))),
    ],
)
def test_the_rule_of_inference(cells: Any, column: Any) -> None:
    frame = pd.DataFrame({"x": cells, "y": [1, 2, 3]})
    domain = Domain.infer(frame)
    if isinstance(column, tuple):
        column = Ordinal(column, missing=True)
    assert domain["x"] == column and isinstance(domain["x"], type(column))
    assert not domain.declared
    assert Dataset.from_frame(frame).domain == domain
    assert not Dataset.from_frame(frame).domain.declared


WHOLE = [3, 1, None, 3]
DISTINCT = MAX_INFERRED_LEVELS + 1


@pytest.mark.parametrize(
    "made",
    [
        lambda cells: pd.DataFrame({"x": pd.array(cells, dtype="Int64"), "y": 0.5}),
        lambda cells: pl.DataFrame({"x": cells, "y": 0.5}),
        lambda cells: pa.table({"x": cells, "y": [0.5] * len(cells)}),
        lambda cells: pd.DataFrame(
            {"x": pd.array(cells, dtype=pd.ArrowDtype(pa.int64())), "y": 0.5}
        ),
    ],
    ids=["pandas", "polars", "arrow", "pandas of arrow"],
)
@pytest.mark.parametrize("door", ["frame", "parquet"])
def test_whole_numbers_with_missing_cells_are_inferred_as_those_without(
    made: Any, door: str, tmp_path: Path
) -> None:
    for cells, column in (
        (WHOLE, Ordinal((1, 3), missing=True)),
        ([*range(DISTINCT), None], Numeric(missing=True)),
    ):
        frame = made(cells)
        if door == "frame":
            domain = Domain.infer(frame)
        else:
            table = frame if isinstance(frame, pa.Table) else pa.table(frame)
            pa.parquet.write_table(table, tmp_path / "t.parquet")
            domain = read_csv(tmp_path / "t.parquet").domain
        assert domain["x"] == column


def test_truth_values_with_missing_cells_stay_categorical() -> None:
    for frame in (
        pd.DataFrame({"x": pd.array([True, None, False], dtype="boolean"), "y": 0.5}),
        pl.DataFrame({"x": [True, None, False], "y": 0.5}),
    ):
        assert Domain.infer(frame)["x"] == Categorical((False, True), missing=True)


ORDERED = (["low", "mid", "high"], ["high", "low", None, "high"])


@pytest.mark.parametrize(
    ("levels", "cells", "door"),
    [
        *((*ORDERED, door) for door in ("pandas", "arrow", "pandas of arrow", "parquet", "draft")),
        # parquet holds dictionaries of text only
        *(([5, 3, 1], [1, 5, None, 1], door) for door in ("pandas", "arrow", "pandas of arrow")),
    ],
)
def test_an_ordered_categorical_keeps_its_order_at_every_door(
    levels: list, cells: list, door: str, tmp_path: Path
) -> None:
    ordered = pd.Categorical(cells * 5, categories=levels, ordered=True)
    coded = pa.array(ordered)
    frame: Any = pd.DataFrame({"x": ordered, "y": 0.5})
    if door in ("parquet", "draft"):
        path = tmp_path / "t.parquet"
        frame.to_parquet(path, row_group_size=6)
        domain = draft_of_file(path).domain if door == "draft" else read_csv(path).domain
        found = domain["x"]
    else:
        if door != "pandas":
            frame = pa.table({"x": coded, "y": frame["y"]})
        if door == "pandas of arrow":
            frame = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(frame["x"]), "y": 0.5})
        found = Domain.infer(frame)["x"]
    assert found == Ordinal(tuple(levels), missing=True)


@pytest.mark.parametrize("categories", [["z", "y", "x"], [3, 1, 2]])
def test_categories_of_pandas_that_no_cell_has_are_levels(categories: list) -> None:
    cells = pd.Categorical([categories[1], categories[2], None], categories=categories)
    domain = Domain.infer(pd.DataFrame({"a": cells, "b": 0.5}))
    assert domain["a"] == Categorical(tuple(categories), missing=True)
    few = pd.DataFrame({"a": cells.dropna().remove_unused_categories(), "b": 0.5})
    assert Domain.infer(few)["a"] == Categorical(tuple(categories[1:]))


def test_a_frame_of_a_data_set_gives_its_domain_again() -> None:
    domain = Domain({"a": Categorical(("no", "yes", "maybe")), "b": Ordinal((3, 1, 2))})
    data = Dataset.from_codes([[1, 0], [0, 2]], domain=domain)
    again = Dataset.from_frame(data.to_frame())
    assert again.domain.columns == domain.columns
    assert again.codes.tolist() == data.codes.tolist()


def test_of_very_many_categories_those_that_occur_are_levels() -> None:
    cells = pd.Categorical(["b", "a"], categories=["b", "a", *map(str, range(60))])
    assert Domain.infer(pd.DataFrame({"a": cells, "b": 0.5}))["a"] == Categorical(("a", "b"))


def test_a_category_that_no_cell_has_and_that_is_no_level_changes_nothing() -> None:
    for cells, odd in (([1.0, 2.0], np.inf), ([1, 2], "1")):
        kind = pd.Categorical(cells, categories=[*cells, odd])
        domain = Domain.infer(pd.DataFrame({"a": kind, "b": 0.5}))
        assert domain["a"] == Categorical(tuple(cells))


def test_a_dictionary_of_arrow_declares_nothing() -> None:
    cells = pa.DictionaryArray.from_arrays([0, 1], ["x", "y", "z"])
    assert Domain.infer(pa.table({"a": cells, "b": [0.5, 1.5]}))["a"] == Categorical(("x", "y"))


def test_intervals_of_pandas_are_refused_by_the_name_of_their_column() -> None:
    frame = pd.DataFrame({"age": pd.cut([1, 5, 9], [0, 4, 10]), "y": 0.5})
    words = (
        r"column 'age', row 1: a cell holds an interval\[int64, right\]; turn the column into text"
    )
    refused(DataError, words, Domain.infer, frame)
    frame["age"] = frame["age"].astype(str)
    assert Domain.infer(frame)["age"] == Categorical(("(0, 4]", "(4, 10]"))


def test_an_order_that_chunks_do_not_agree_on_is_none() -> None:
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), levels, ordered=True)
        for levels in (["a", "b"], ["b", "a"])
    ]
    table = pa.table({"x": pa.chunked_array(chunks, kind), "y": [0.5] * 4})
    assert Domain.infer(table)["x"] == Categorical(("a", "b"))
    assert Dataset.from_frame(table).column("x").tolist() == [0, 1, 1, 0]


def test_the_limit_of_inference() -> None:
    few, many = list(range(MAX_INFERRED_LEVELS)), list(range(MAX_INFERRED_LEVELS + 1))
    assert Domain.infer(pd.DataFrame({"x": few, "y": few}))["x"].cardinality == MAX_INFERRED_LEVELS
    assert Domain.infer(pd.DataFrame({"x": many, "y": many}))["x"] == Numeric()
    words = [f"name{i}" for i in many]
    with pytest.raises(
        DataError, match="'y' holds text with more than 50 distinct values"
    ) as caught:
        Domain.infer(pd.DataFrame({"x": many, "y": words}))
    assert "name1" not in str(caught.value)


def test_masked_values_are_missing():
    values = np.ma.masked_array([[1.0, 10], [2, 20], [3.5, 30]], mask=[[0, 0], [1, 0], [0, 0]])
    assert Dataset.from_array(values).is_missing("x1").tolist() == [False, True, False]
    assert Dataset.from_array(np.ma.masked_array(values.data, mask=False)).n_samples == 3
    with pytest.raises(DataError, match="two-dimensional"):
        Dataset.from_array(np.ma.masked_array(np.zeros((2, 2, 2)), mask=True))
    domain = Domain({"a": Categorical((0, 1)), "b": Categorical((0, 1))})
    with pytest.raises(DataError, match="masked"):
        Dataset.from_codes(
            np.ma.masked_array(np.zeros((3, 2), dtype=np.int32), mask=[[0, 1], [0, 0], [0, 0]]),
            domain=domain,
            strict=True,
        )


def test_whole_numbers_beyond_floats_are_no_levels():
    many = np.array([[2**60 + i, i % 3] for i in range(100)])
    found = Dataset.from_array(many)
    assert isinstance(found.domain["x1"], Numeric) and isinstance(found.domain["x2"], Ordinal)


def test_a_domain_of_another_kind():
    with pytest.raises(DomainError, match="is not a Domain; make one"):
        Dataset.from_array(np.zeros((3, 2)), names=["a", "b"], domain={"a": 2})


def test_a_domain_may_be_the_path_of_its_file(tmp_path):
    domain, path = Domain({"a": Ordinal((0, 1)), "b": Ordinal((0, 1, 2))}), tmp_path / "d.json"
    domain.write(path)
    values = np.array([[0, 2], [1, 1], [1, 0]])
    for where in (path, str(path)):
        for data in (
            Dataset.from_array(values, domain=where),
            Dataset.from_frame(pd.DataFrame(values, columns=["a", "b"]), domain=where),
        ):
            assert data.domain == domain and data.codes.tolist() == values.tolist()
        budget = jaxcd.Budget(1.0)
        assert jaxcd.recommend(where, 900, budget=budget) == jaxcd.recommend(
            domain, 900, budget=budget
        )
        planned = (
            jaxcd.plan_release(each, 900, kind=jaxcd.Histogram(), budget=budget)
            for each in (where, domain)
        )
        assert next(planned) == next(planned)
    with pytest.raises(DataError, match="domain file 'no.json' does not exist"):
        Dataset.from_array(values, domain="no.json")


def test_a_whole_number_that_python_does_not_write_is_refused_in_words() -> None:
    domain = Domain({"a": Ordinal((0, 1)), "b": Numeric(0, 1)})
    for row in ([10**5_000, 0], [0, 10**5_000]):
        refused(DataError, "very many digits|outside the declared bounds|infinite",
                Dataset.from_array, [[0, 0], row], domain=domain, strict=True)  # fmt: skip


def test_a_fraction_among_rows_leaves_large_whole_numbers_what_they_are() -> None:
    domain = Domain({"a": Numeric(), "b": Ordinal((0, 2**53 + 1))})
    rows = [[0.5, 2**53 + 1], [1, 0]]
    assert Dataset.from_array(rows, domain=domain, strict=True).column("b").tolist() == [1, 0]


def test_types_of_pandas_alone_are_numbers_or_named() -> None:
    both = [0, 1, 1, 0]
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray([0, 1, 0, 1]), "b": both})
    assert Dataset.from_frame(sparse).codes.tolist() == [[0, 0], [1, 1], [0, 1], [1, 0]]
    months = pd.DataFrame({"a": pd.period_range("2020", periods=4, freq="M"), "b": both})
    with pytest.raises(DataError, match=r"'a', row 1: a cell holds a period\[M\]"):
        Dataset.from_frame(months)


def test_names_of_an_array_may_come_one_by_one() -> None:
    data = Dataset.from_array(np.zeros((3, 2)), names=iter("ab"))
    assert data.names == ("a", "b")
    with pytest.raises(DataError, match=r"^names is a collection of names, got 3; write"):
        Dataset.from_array(np.zeros((3, 2)), names=3)
