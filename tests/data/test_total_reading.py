"""Total reading: with a declared domain no cell of the data can make reading fail, and one cell
changes one cell.
"""

import datetime
import gzip
import math
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxcd.cli.tables import columns
from jaxcd.data import Binned, Categorical, Dataset, Domain, Numeric, Ordinal, Table, read_csv
from jaxcd.data.sources import as_data
from jaxcd.errors import DataError, DomainError
from tests.helpers import refused

DOMAIN = Domain(
    {
        "age": Numeric(0, 120),
        "smoke": Categorical(("yes", "no")),
        "stage": Ordinal((1, 2, 3, 4)),
        "site": Categorical(("a", "b", "else"), other="else"),
        "dose": Numeric(0, 10, other=0),
        "free": Numeric(),
    }
)
ROW = {"age": 30.0, "smoke": "no", "stage": 3, "site": "a", "dose": 2.5, "free": 7.0}
CATCH_ALL = {"age": 60.0, "smoke": "yes", "stage": 2, "site": "else", "dose": 0.0, "free": 0.0}


def cell(data: Dataset, name: str, row: int) -> object:
    column = DOMAIN[name]
    value = data.column(name)[row]
    return float(value) if isinstance(column, Numeric) else column.levels[value]


@pytest.mark.parametrize("name", DOMAIN.names)
@pytest.mark.parametrize(
    "odd", [None, "", "NA", "HIV+", "4O", float("nan"), [1], {"a": 1}, ([1],), b"no", 1j]
)
def test_any_cell_counts_as_other(name: str, odd: object) -> None:
    rows = [{**ROW}, {**ROW, name: odd}, {**ROW}]
    data = Dataset.from_array([list(row.values()) for row in rows], domain=DOMAIN)
    assert cell(data, name, 1) == CATCH_ALL[name]
    for row in (0, 2):
        for other in DOMAIN.names:
            assert cell(data, other, row) == ROW[other]
    if not isinstance(odd, (bytes, complex)):
        frame = pd.DataFrame(rows).astype(object)
        assert cell(Dataset.from_frame(frame, domain=DOMAIN), name, 1) == CATCH_ALL[name]


def test_numbers_go_to_the_nearest_bound() -> None:
    rows = [{**ROW, "age": value} for value in (-3, 1e9, math.inf, -math.inf, "1e999", "-inf", 120)]
    data = Dataset.from_array([list(row.values()) for row in rows], domain=DOMAIN)
    assert data.values("age").tolist() == [0, 120, 120, 0, 120, 0, 120]
    free = Dataset.from_array(
        [list({**ROW, "free": value}.values()) for value in (math.inf, "1e999", 5e300)],
        domain=DOMAIN,
    )
    assert free.values("free").tolist() == [0, 0, 5e300]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(columns)])
def test_nulls_of_frames(kind: Any) -> None:
    columns = {name: [ROW[name], None, ROW[name]] for name in DOMAIN.names}
    data = Dataset.from_frame(kind(columns), domain=DOMAIN)
    for name in DOMAIN.names:
        assert [cell(data, name, row) for row in range(3)] == [
            ROW[name],
            CATCH_ALL[name],
            ROW[name],
        ]


def test_a_column_without_a_filled_cell_is_missing(tmp_path: Path) -> None:
    domain = Domain({"x": Ordinal((0, 1, 2)), "y": Categorical(("a", "b"), missing=True)})
    null: Any = pd.ArrowDtype(pa.null())
    nothing = {"x": [None] * 3, "y": [None] * 3}
    pd.DataFrame(nothing).to_parquet(tmp_path / "t.parquet")
    assert pa.parquet.read_schema(tmp_path / "t.parquet").field("x").type == pa.null()
    for frame in (
        pa.table({name: pa.nulls(3) for name in nothing}),
        pl.DataFrame(nothing),
        pd.DataFrame(nothing),
        pd.DataFrame(nothing, dtype=null),
    ):
        assert Dataset.from_frame(frame, domain=domain).codes.tolist() == [[1, 2]] * 3
        with pytest.raises(DataError, match="missing values only"):
            Domain.infer(frame)
    assert read_csv(tmp_path / "t.parquet", domain=domain).codes.tolist() == [[1, 2]] * 3


@pytest.mark.parametrize(
    "kind",
    [
        *(pl.Date, pl.Time, pl.Duration, pl.Datetime, pl.Binary),
        *(pl.List(pl.Int8), pl.Array(pl.Int8, 2), pl.Struct({"a": pl.Int8})),
    ],
)
def test_a_type_is_refused_whatever_its_cells_are(kind: Any) -> None:
    filled: Any = {pl.Binary: b"a", pl.List(pl.Int8): [1], pl.Array(pl.Int8, 2): [1, 2]}
    cell = filled.get(kind, {"a": 1} if kind.is_nested() else 1)
    domain = Domain({"x": Ordinal((0, 1)), "y": Ordinal((0, 1))})
    for cells in ([None, None], [cell, None]):
        series = pl.Series(cells, dtype=kind)
        with pytest.raises(DataError, match="column 'x' holds values of type"):
            Dataset.from_frame(pl.DataFrame({"x": series, "y": [0, 1]}), domain=domain)


def _tables_of(cells: Any, kind: str, folder: Path, **more: Any) -> Any:
    frame = pa.table({"x": cells, "y": [0, 1], **more})
    if kind == "parquet":
        pa.parquet.write_table(frame, folder / "t.parquet")
        return folder / "t.parquet"
    return frame.to_pandas(types_mapper=pd.ArrowDtype) if kind == "pandas" else frame


@pytest.mark.parametrize("door", ["arrow", "pandas", "parquet"])
@pytest.mark.parametrize(
    ("cells", "word"),
    [
        (pa.array([Decimal(100), None], pa.decimal128(10, -2)), r"decimal128\(10, -2\)"),
        (pa.array([Decimal(1), None], pa.decimal256(50, 2)), r"decimal256\(50, 2\)"),
        (pa.array([0, None], pa.date32()).dictionary_encode(), "Date"),
    ],
)
def test_a_type_without_text_or_numbers_is_named_or_ignored(
    cells: Any, word: str, door: str, tmp_path: Path
) -> None:
    if door == "parquet" and "-2" in word:
        return  # parquet has no such type
    y = Ordinal((0, 1))
    domain, rest = Domain({"x": y, "y": y}), Domain({"y": y, "z": y}, ignored={"x": "odd"})
    table = _tables_of(cells, door, tmp_path)
    for read_it in (partial(as_data, private=True), _table_of):
        with pytest.raises(DataError, match=f"column 'x' holds values of type {word}"):
            read_it(table, domain)
    table = _tables_of(cells, door, tmp_path, z=[1, 0])
    assert as_data(table, rest, private=True).codes.tolist() == [[0, 1], [1, 0]]
    assert _table_of(table, rest).counts([(0, 1)])[0].tolist() == [[0, 1], [1, 0]]


def _table_of(table: Any, domain: Domain) -> Table:
    if isinstance(table, Path):
        return Table.parquet(table, domain=domain, n_samples=2, snapshot="now")
    return Table(table, domain=domain, n_samples=2, snapshot="now")


def _of_categories(cells: list[bytes], *, ordered: bool, n_groups: int, path: Path) -> None:
    """A parquet file of categories as pandas writes them, each half of the rows with its own."""
    half = len(cells) // 2
    coded = []
    for part in (cells[:half], cells[half:]):
        levels = list(dict.fromkeys(part))
        places = pa.array([levels.index(cell) for cell in part], pa.int8())
        text = pa.array(levels, pa.binary()).view(pa.string())
        coded.append(pa.DictionaryArray.from_arrays(places, text, ordered=ordered))
    table = pa.table({"x": pa.chunked_array(coded), "y": [0, 1] * half})
    pa.parquet.write_table(table, path, row_group_size=len(cells) // n_groups)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("odd", [b"one level more", b"\xff", b"0\xff"])
def test_no_cell_makes_a_parquet_file_of_categories_unreadable(
    odd: bytes, n_groups: int, ordered: bool, tmp_path: Path
) -> None:
    """The places of pandas' categories have 8 bits: one level more than fits, or one that is no
    UTF-8, made arrow's reader fail.
    """
    domain = Domain({"x": Categorical(("0", "1")), "y": Ordinal((0, 1))})
    cells = [f"{place}".encode() for place in range(128)] * 2
    path = tmp_path / "t.parquet"
    for cell in (b"126", odd):
        cells[-1] = cell
        _of_categories(cells, ordered=ordered, n_groups=n_groups, path=path)
        codes = as_data(path, domain, private=True).column("x")
        assert codes.tolist() == [0, 1, *([0] * 126)] * 2
        table = Table.parquet(path, domain=domain, n_samples=256, snapshot="now")
        assert table.counts([(0,)])[0].tolist() == [254, 2]
        assert columns(tmp_path, table=None)[0][0].n_samples == 256  # of the owner


@pytest.mark.parametrize(
    "levels", [pd.interval_range(0, 2), pd.to_datetime(["2020-01-01", "2021-01-01"])]
)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_categorical_of_no_text_and_no_numbers_is_refused(levels: Any, ordered: bool) -> None:
    domain = Domain({"x": Categorical(("(0, 1]", "(1, 2]")), "y": Ordinal((0, 1))})
    for codes in ([0, 1], [-1, -1]):
        cells = pd.Categorical.from_codes(codes, levels, ordered=ordered)
        frame = pd.DataFrame({"x": cells, "y": [0, 1]})
        with pytest.raises(DataError, match="column 'x' holds values of type"):
            Dataset.from_frame(frame, domain=domain)
        with pytest.raises(DataError, match="column 'x' holds values of type"):
            _table_of(frame, domain)


def test_a_dictionary_of_numbers_goes_into_bins_at_every_door(tmp_path: Path) -> None:
    domain = Domain({"x": Binned((0, 1, 2)), "y": Ordinal((0, 1))})
    for door in ("arrow", "pandas", "parquet"):
        table = _tables_of(pa.array([0, 1]).dictionary_encode(), door, tmp_path)
        assert as_data(table, domain, private=True).codes.tolist() == [[0, 0], [1, 1]]
        assert _table_of(table, domain).counts([(0, 1)])[0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        *((pl.Decimal(38, 0), Decimal(10**37)), (pl.Int128, -(2**127)), (pl.UInt128, 2**128 - 1)),
        *((pl.Categorical, "a"), (pl.Enum(["0", "1", "a"]), "a"), (pl.Object, [1])),
    ],
)
def test_an_odd_cell_of_any_type_counts_as_other(kind: Any, cell: Any) -> None:
    domain = Domain({"x": Ordinal((0, 1, 2)), "y": Ordinal((0, 1))})
    known = [type(cell)(1), type(cell)(0)] if isinstance(cell, (str, Decimal)) else [1, 0]
    series = pl.Series([*known, cell, None], dtype=kind)
    data = Dataset.from_frame(pl.DataFrame({"x": series, "y": [0] * 4}), domain=domain)
    assert data.column("x").tolist() == [1, 0, 1, 1]


def test_masked_arrays_and_codes() -> None:
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    masked = np.ma.masked_array([[1, 2], [1, 0]], mask=[[0, 1], [1, 0]])
    assert Dataset.from_array(masked, domain=domain).codes.tolist() == [[1, 1], [0, 0]]
    assert Dataset.from_codes(masked, domain=domain).codes.tolist() == [[1, 1], [0, 0]]
    odd = np.array([[1, -1], [2**33, 2], [-5, 3]])
    assert Dataset.from_codes(odd, domain=domain).codes.tolist() == [[1, 1], [0, 2], [0, 1]]
    refused(DataError, "code", Dataset.from_codes, odd[:, ::-1], domain=domain, strict=True)


@pytest.mark.parametrize(
    "odd", [None, math.nan, math.inf, 10**30, -1, 2, 0.5, "z", "", 1j, [1], 2**63]
)
def test_one_cell_of_an_array_of_codes_counts_as_other(odd: Any) -> None:
    """Whatever type numpy takes for the whole because of it."""
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    cells = np.empty((3, 2), dtype=object)
    cells[:] = [[1, 2], [1, 0], [0, 1]]
    cells[1, 0] = odd
    arrays = [cells] if isinstance(odd, list) else [cells, np.array(cells.tolist())]
    for array in arrays:
        codes = Dataset.from_codes(array, domain=domain).codes
        assert codes.tolist() == [[1, 2], [0, 0], [0, 1]]
        if array.dtype.kind not in "iu":
            refused(DataError, "integers", Dataset.from_codes, array, domain=domain, strict=True)
    mask = [[False, True], [False, False], [False, False]]
    masked = Dataset.from_codes(np.ma.masked_array(cells, mask=mask), domain=domain).codes
    assert masked.tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("odd", "becomes"),
    [
        *(([1], [1, 1]), ([1, 0, 1], [1, 0]), ([[1], 0], [0, 0]), ([1, {}], [1, 1])),
        *((None, [0, 1]), (5, [0, 1]), ("10", [0, 1]), ([], [0, 1]), (np.array(1), [0, 1])),
    ],
)
def test_a_row_of_another_length_decides_no_error(odd: Any, becomes: list[int]) -> None:
    """Codes and values in lists: a row has the cells that it has, and others count as other."""
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    for read in (Dataset.from_codes, Dataset.from_array):
        for rows in ([[1, 2], odd, [0, 1]], [odd] * 3):
            codes = read(rows, domain=domain).codes.tolist()
            assert codes == [becomes if row is odd else row for row in rows]
        rows, strict = [[1, 2], odd, [0, 1]], {"domain": domain, "strict": True}
        refused(DataError, "row 2|shape|integers", read, rows, **strict)
    refused(DataError, "row 2 has 1 value, but", Dataset.from_codes, [[1, 2], [1]], **strict)
    refused(DataError, "must have the shape", Dataset.from_codes, 5, domain=domain)


def test_rows_that_are_arrays_of_a_device_hold_their_numbers() -> None:
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    masked = np.ma.masked_array([1, 2], mask=[True, False])
    rows = [jnp.array([1, 2]), np.array([0, 1]), [jnp.int32(1), np.array(0)], masked]
    for read in (Dataset.from_codes, Dataset.from_array):
        assert read(rows, domain=domain).codes.tolist() == [[1, 2], [0, 1], [1, 0], [0, 2]]


def test_truth_values_are_codes_where_one_number_would_make_them_so() -> None:
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    rows = np.array([[True, False], [False, True]])
    assert Dataset.from_codes(rows, domain=domain).codes.tolist() == [[1, 0], [0, 1]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("door", ["array", "pandas"])
@pytest.mark.parametrize(
    ("odd", "becomes"), [(1j, 0.0), (2 + 0j, 1.0), ("zz", 0.0), (np.longdouble("1e4000"), 1.0)]
)
def test_one_cell_that_decides_the_type_of_an_array(odd: Any, becomes: float, door: str) -> None:
    domain = Domain({"x": Numeric(-1, 1), "y": Numeric(-1, 1)})
    cells = np.array([[0.25, 0.5], [odd, 0.5], [-0.25, 0.5]])
    assert cells.dtype.kind in "cUf" and cells.dtype != np.float64
    if door == "array":
        data = Dataset.from_array(cells, domain=domain)
    else:
        data = Dataset.from_frame(pd.DataFrame(cells, columns=["x", "y"]), domain=domain)
    assert data.values("x").tolist() == [0.25, becomes, -0.25]
    assert data.values("y").tolist() == [0.5] * 3


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_mask_does_not_decide_whether_a_type_is_refused(kind: str, masked: bool) -> None:
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    cells = np.ma.masked_array(np.zeros((2, 2), dtype=kind), mask=[[masked, False], [False, False]])
    with pytest.raises(DataError, match="column 'a' holds values of type"):
        Dataset.from_array(cells, domain=domain)


GOOD = "age,smoke,stage,site,dose,free\n" + "30.0,no,3,a,2.5,7.0\n" * 5


def read(folder: Path, text: str | bytes, name: str = "t.csv") -> Dataset:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(path, domain=DOMAIN)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("30.0,no,3,a,2.5,7.0,extra,9", {}),
        ("30.0,no,3", {"site", "dose", "free"}),
        ("", set(DOMAIN.names)),
        ('30.0,no,3,"a,2.5,7.0', {}),
        ('30.0,no,3,a"b,2.5,7.0', {"site"}),
        ('30.0,no,3,"a"b,2.5,7.0', {"site"}),
        ("30.0,\0,3,a,2.5,7.0", {"smoke"}),
        ("30.0," + "x" * 200_000 + ",3,a,2.5,7.0", {"smoke"}),
        ('30.0,"' + "x" * 200_000 + '",3,a,2.5,7.0', {"smoke"}),
        (b"30.0,n\xe9\xff,3,a,2.5,7.0", {"smoke"}),
        ("30.0,no,3,a,2.5,1_0", {"free"}),
    ],
)
@pytest.mark.parametrize("place", [1, 3, 5])
def test_a_broken_record_changes_that_record_only(
    tmp_path: Path, line: str | bytes, changed: set[str], place: int
) -> None:
    lines = GOOD.encode().splitlines()
    lines[place] = line if isinstance(line, bytes) else line.encode()
    if line == "" and place == 5:
        pytest.skip("a blank line at the end of a file is no record")
    data = read(tmp_path, b"\n".join(lines) + b"\n")
    assert data.n_samples == 5
    for row in range(5):
        for name in DOMAIN.names:
            odd = row == place - 1 and name in changed
            assert cell(data, name, row) == (CATCH_ALL if odd else ROW)[name]


def test_quoted_line_breaks_and_compression(tmp_path: Path) -> None:
    text = GOOD.replace("no,3", '"no\n",3', 1)
    assert read(tmp_path, text).n_samples == 5
    assert read(tmp_path, gzip.compress(text.encode()), "t.csv.gz").n_samples == 5
    path = tmp_path / "t.csv"
    path.write_text(GOOD.replace("no", '"no"', 1).replace(",a,", ',"a",'))
    assert read_csv(path, domain=DOMAIN, strict=True).n_samples == 5
    # the header is public: there a quote may take in a line
    header = GOOD.replace("age", '"a\nge"', 1)
    domain = Domain(
        {("a\nge" if name == "age" else name): column for name, column in DOMAIN.columns.items()}
    )
    path.write_text(header)
    assert read_csv(path, domain=domain).n_samples == 5


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_what_ends_the_header_ends_every_line(tmp_path: Path, end: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD.replace("\n", end).encode())
    totally, strictly = read_csv(path, domain=DOMAIN), read_csv(path, domain=DOMAIN, strict=True)
    assert all(
        totally.column(name).tolist() == strictly.column(name).tolist() for name in DOMAIN.names
    )
    if end == "\n":
        path.write_bytes(GOOD.replace(",3,", ",3\r,", 2).replace(",a,", ',"a"\rb,', 1).encode())
        assert read_csv(path, domain=DOMAIN).n_samples == 5


def test_strict_reading_is_there_when_asked_for_or_inferred(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(GOOD.replace("no", "HIV+", 1))
    refused(DataError, "row 1.*HIV", read_csv, path, domain=DOMAIN, strict=True)
    draft = Domain(DOMAIN.columns, declared=False)
    refused(DataError, "row 1.*HIV", read_csv, path, domain=draft)
    assert read_csv(path, domain=draft, strict=False).n_samples == 5


def test_other_is_checked_and_kept(tmp_path: Path) -> None:
    for wrong in (
        lambda: Categorical(("a", "b"), other="c"),
        lambda: Ordinal((0, 1), other=2),
        lambda: Ordinal((0, 1), other=True),
        lambda: Numeric(0, 1, other=2),
        lambda: Numeric(other=math.nan),
    ):
        refused(DomainError, "other", wrong)
    DOMAIN.write(tmp_path / "d.json")
    assert Domain.read(tmp_path / "d.json") == DOMAIN
    assert Domain(DOMAIN.columns) != Domain({**DOMAIN.columns, "dose": Numeric(0, 10)})


anything = st.one_of(
    st.none(),
    st.text(max_size=4),
    st.floats(),
    st.integers(),
    st.booleans(),
    st.binary(max_size=2),
    st.lists(st.integers(), max_size=2),
)


@given(rows=st.lists(st.lists(anything, max_size=8), min_size=2, max_size=6))
def test_nothing_makes_reading_fail(rows: list[list[Any]]) -> None:
    data = Dataset.from_array(rows, domain=DOMAIN)
    assert data.n_samples == len(rows)


@given(text=st.binary(max_size=60), place=st.integers(0, 4))
def test_no_bytes_make_reading_fail(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, place: int
) -> None:
    lines = GOOD.encode().splitlines()
    lines[1 + place] = text
    assert read(tmp_path_factory.mktemp("t"), b"\n".join(lines) + b"\n").n_samples >= 2


@pytest.mark.parametrize("masked", [False, True])
def test_one_cell_of_bytes_does_not_decide_whether_an_array_is_read(masked: bool) -> None:
    """numpy makes bytes of all cells then."""
    domain = Domain({"x": Ordinal((1, 2, 3)), "y": Numeric(0, 1)})
    for odd in (b"\xff", b"no"):
        array: Any = np.array([[1, 0.25], [3, 0.75], [odd, 0.5]])
        assert array.dtype.kind == "S"
        if masked:
            array = np.ma.masked_array(array, mask=[[False, False], [False, False], [True, False]])
        data = Dataset.from_array(array, domain=domain)
        assert data.column("x").tolist() == [0, 2, 1]
        assert data.column("y").tolist() == [0.25, 0.75, 0.5]
        codes = np.array([[0, 1], [2, 0], [odd, 1]])
        read = Dataset.from_codes(codes, domain=Domain({"x": domain["x"], "y": Ordinal((0, 1))}))
        assert read.codes.tolist() == [[0, 1], [2, 0], [1, 1]]


class Folded(str):
    """Text of a class that does not tell "a" and "A" apart."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.casefold() == other.casefold()

    def __hash__(self) -> int:
        return hash(self.casefold())


class Unhashed:
    """Its own kind of error, where it is hashed."""

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


class Answer(IntEnum):
    """A whole number with a name."""

    YES = 1


OBJECTS = [
    *(0, 1, True, False, 0.0, 1.0, -0.5, 3, 10**400, -(10**400), 2**53 + 1, math.inf, math.nan),
    *("0", "1", "1.0", "a", "A", "true", "NA", Folded("a"), Folded("A"), np.str_("a"), b"a"),
    *(np.int8(1), np.uint64(2**64 - 1), np.float32(0.1), np.float64(1), np.bool_(True), Answer.YES),
    *(np.longdouble(1), np.complex64(1), 1 + 0j, Fraction(1), Fraction(1, 2), np.float16(1)),
    *(Decimal(1), Decimal("1.0"), Decimal("0.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Inf")),
    *(Decimal("1e999999"), Decimal(2**53 + 1), None, pd.NA, pd.NaT, [1], (1,), (True,), {1}),
    *(datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), np.timedelta64(1, "D")),
    *(np.timedelta64("NaT", "D"), np.datetime64("2020-01-01"), Unhashed(), np.zeros(2), object),
]
OF_OBJECTS = Domain(
    {
        "level": Ordinal((1, 0, "a", 2**53 + 1)),
        "text": Categorical(("1", "a", "0"), missing=("A", 3)),
        "number": Numeric(-1, 10),
        "free": Numeric(missing=(1,)),
        "bin": Binned((0, 1, 2), missing=True),
    }
)


def read_objects(cells: list[object], door: str) -> np.ndarray:
    """A row of codes, numbers and marks for each cell."""
    columns = {name: list(cells) for name in OF_OBJECTS.names}
    if door == "rows":
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        data = Dataset.from_array(rows, domain=OF_OBJECTS)
    else:
        frame = pd.DataFrame if door == "pandas" else pl.DataFrame
        series = pd.Series if door == "pandas" else pl.Series
        kind: Any = object if door == "pandas" else pl.Object
        held = {name: series(cells, dtype=kind) for name, cells in columns.items()}
        data = Dataset.from_frame(frame(held), domain=OF_OBJECTS)
    found = [each(name) for each in (data.column, data.is_missing) for name in OF_OBJECTS.names]
    return np.array(found, dtype=float).T


@given(
    cells=st.lists(
        st.integers(0, len(OBJECTS) - 1).map(OBJECTS.__getitem__), min_size=2, max_size=6
    ),
    door=st.sampled_from(["pandas", "polars", "rows"]),
)
@example(cells=[Decimal(1), 1, 1, 0], door="pandas")
@example(cells=[Fraction(1), 1, 1.0, True], door="pandas")
@example(cells=[Folded("a"), "A", "a"], door="pandas")
@example(cells=[2**53 + 1, 0.5], door="rows")
def test_each_cell_is_read_by_itself(cells: list[object], door: str) -> None:
    alone = [read_objects([cell, cell], door)[0].tolist() for cell in cells]
    assert read_objects(cells, door).tolist() == alone


def test_decimals_are_numbers() -> None:
    domain = Domain({"x": Ordinal((0, 1)), "y": Numeric(0, 10, missing=True)})
    cells = [Decimal(1), Decimal("1.00"), Decimal(0), Decimal("2.5"), Decimal("NaN")]
    frame = pd.DataFrame({"x": cells, "y": cells}).astype(object)
    data = Dataset.from_frame(frame, domain=domain)
    assert data.column("x").tolist() == [1, 1, 0, 0, 0]
    assert data.values("y").tolist() == [1, 1, 0, 2.5, 5]
    assert data.is_missing("y").tolist() == [False] * 4 + [True]


def test_a_person_is_one_however_the_number_is_held() -> None:
    domain = Domain({"x": Ordinal((0, 1)), "y": Ordinal((0, 1))}, person="who")
    cells = [7, 7.0, Decimal(7), np.int64(7), 10**20, Decimal(10**20 + 1), "7", None, None, [7]]
    who = pd.Series(cells, dtype=object)
    frame = pd.DataFrame({"x": [0, 1] * 5, "y": [1] * 10, "who": who})
    people = Dataset.from_frame(frame, domain=domain).people
    assert people is not None
    assert len(set(people[:4].tolist())) == 1
    assert len(set(people[3:].tolist())) == 7


def test_a_column_of_persons_that_cannot_be_read_is_not_to_be_ignored() -> None:
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "a": 0, "b": [0, 1]})
    domain = Domain({"a": Ordinal((0, 1)), "b": Ordinal((0, 1))}, person="day")
    with pytest.raises(
        DataError,
        match="^column 'day' holds .*, and says which rows belong to one "
        "person; turn the column into text or numbers$",
    ):
        Dataset.from_frame(frame, domain=domain)
    frame["day"] = frame["day"].astype(str)
    assert Dataset.from_frame(frame, domain=domain).n_people == 2


@pytest.mark.parametrize("form", ["arrow", "polars", "pandas", "parquet", "objects"])
@pytest.mark.parametrize("scale", [0, 2])
def test_people_with_long_decimal_ids_are_told_apart(form: str, scale: int, tmp_path: Path) -> None:
    """As databases write whole numbers: floats would take these three ids for one, and who is in
    the table would change the number of people.
    """
    domain = Domain({"x": Ordinal((0, 1)), "y": Ordinal((0, 1))}, person="who")
    ids = [Decimal(2**60 + k) for k in (0, 1, 2, 1)] + [None, None]
    who = pa.array(ids, pa.decimal128(30, scale))
    table = pa.table({"x": [0, 1] * 3, "y": [1] * 6, "who": who})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    data = {
        "arrow": lambda: Dataset.from_frame(table, domain=domain),
        "polars": lambda: Dataset.from_frame(pl.from_arrow(table), domain=domain),
        "pandas": lambda: Dataset.from_frame(
            table.to_pandas(types_mapper=pd.ArrowDtype), domain=domain
        ),
        "parquet": lambda: read_csv(tmp_path / "t.parquet", domain=domain),
        "objects": lambda: Dataset.from_frame(table.to_pandas(), domain=domain),
    }[form]()
    assert data.n_people == 5
    assert data.people is not None and data.people[1] == data.people[3]
