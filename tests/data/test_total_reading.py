"""Total reading: with a declared domain no cell of the data can make reading fail, and one cell
changes one cell.
"""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.data import Categorical, Dataset, Domain, Numeric, Ordinal, read_csv
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


def test_masked_arrays_and_codes() -> None:
    domain = Domain({"a": Categorical((0, 1)), "b": Ordinal((0, 1, 2))})
    masked = np.ma.masked_array([[1, 2], [1, 0]], mask=[[0, 1], [1, 0]])
    assert Dataset.from_array(masked, domain=domain).codes.tolist() == [[1, 1], [0, 0]]
    assert Dataset.from_codes(masked, domain=domain).codes.tolist() == [[1, 1], [0, 0]]
    odd = np.array([[1, -1], [2**33, 2], [-5, 3]])
    assert Dataset.from_codes(odd, domain=domain).codes.tolist() == [[1, 1], [0, 2], [0, 1]]
    refused(DataError, "code", Dataset.from_codes, odd[:, ::-1], domain=domain, strict=True)


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
