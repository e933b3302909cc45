"""Reading files: csv, csv.gz and parquet, with every defect reported."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.data import Categorical, Dataset, Domain, Numeric, Ordinal, read_csv
from jaxcd.data.column_types import Column
from jaxcd.data.readers import ROWS_AT_A_TIME
from jaxcd.errors import DataError, DomainError, FormatError, OptionError
from tests.helpers import refused

DOMAIN = Domain(
    {"smoke": Categorical(("yes", "no")), "stage": Ordinal((1, 2)), "age": Numeric(0, 120)}
)
GOOD = "age,smoke,stage\n33,yes,1\n47.5,no,2\n0,no,1\n"


def write(folder: Path, text: str, name: str = "people.csv") -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_bytes(text.encode())
    return path


def check_good(data: Dataset) -> None:
    assert data.names == DOMAIN.names
    assert data.column("smoke").tolist() == [0, 1, 1]
    assert data.column("stage").tolist() == [0, 1, 0]
    assert data.values("age").tolist() == [33.0, 47.5, 0.0]


def test_every_kind_of_file(tmp_path: Path) -> None:
    check_good(read_csv(write(tmp_path, GOOD), domain=DOMAIN))
    check_good(read_csv(str(write(tmp_path, GOOD, "people.csv.gz")), domain=DOMAIN))
    check_good(
        read_csv(write(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n") + "\r\n\r\n"), domain=DOMAIN)
    )
    check_good(read_csv(write(tmp_path, GOOD.replace("yes", '"yes"').rstrip("\n")), domain=DOMAIN))
    pd.read_csv(write(tmp_path, GOOD)).to_parquet(tmp_path / "people.parquet")
    check_good(read_csv(tmp_path / "people.parquet", domain=DOMAIN))


def test_the_domain_may_be_a_path(tmp_path: Path) -> None:
    DOMAIN.write(tmp_path / "people.domain.json")
    data = read_csv(write(tmp_path, GOOD), domain=tmp_path / "people.domain.json")
    check_good(data)
    assert data.domain == DOMAIN and data.domain.declared
    check_good(read_csv(tmp_path / "people.csv", domain=str(tmp_path / "people.domain.json")))
    refused(
        DataError, "other.json", read_csv, tmp_path / "people.csv", domain=tmp_path / "other.json"
    )
    (tmp_path / "other.json").write_text("{")
    refused(
        FormatError, "other.json", read_csv, tmp_path / "people.csv", domain=tmp_path / "other.json"
    )


def test_codes_of_many_digits_are_told_apart_without_a_domain(tmp_path: Path) -> None:
    """Floats are the same for them."""
    path = tmp_path / "codes.csv"
    first = 123_456_789_012_345_678
    path.write_text("code,y\n" + "".join(f"{first + i % 3},{i % 2}\n" for i in range(90)))
    data = read_csv(path)
    assert data.domain["code"] == Ordinal((first, first + 1, first + 2))
    assert data.codes[:, 0].tolist() == [0, 1, 2] * 30


def test_without_a_domain_one_is_inferred_and_not_declared(tmp_path: Path) -> None:
    data = read_csv(write(tmp_path, GOOD))
    expected: dict[str, Column] = {
        "age": Numeric(),
        "smoke": Categorical(("no", "yes")),
        "stage": Ordinal((1, 2)),
    }
    assert data.domain == Domain(expected, declared=False)
    data = read_csv(write(tmp_path, "a,b\nTrue,1.0\nFalse,2.0\n"))
    assert data.domain == Domain(
        {"a": Categorical(("False", "True")), "b": Ordinal((1, 2))}, declared=False
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty"]),
        ("\n\n", ["first line", "is blank", "header"]),
        ("\n\n" + GOOD, ["first line", "is blank", "header"]),
        ("  \n" + GOOD, ["first line", "is blank", "header"]),
        ("age,smoke,stage\n", ["at least 1 row", "not 0"]),
        ("age\n1\n2\n", ["at least 2 columns"]),
        ("Export of today\n" + GOOD, ["at least 2 columns", "stand above the header", "delete"]),
        ("Patients,,\n" + GOOD, ["column 2 has no name", "stand above the header", "delete"]),
        ("age,smoke,age\n1,yes,2\n1,yes,2\n", ["'age' occurs twice", "rename"]),
        ("age,,stage\n1,yes,2\n1,yes,2\n", ["column 2 has no name"]),
        (GOOD.replace("47.5,no,2", "47.5,no"), ["row 2", "2 values", "3 columns"]),
        (GOOD.replace("47.5,no,2", "47.5,no,2,"), ["row 2", "4 values", "3 columns"]),
        (GOOD.replace("47.5,no,2\n", "47.5,no,2\n\n"), ["row 3", "0 values"]),
        (GOOD.replace("47.5,no", '47.5,"no'), ["row 2", "quotes"]),
        (GOOD.replace("age,", '"age,'), ["header", "quotes"]),
        (GOOD.replace("47.5", ""), ["'age', row 2", "missing"]),
        (GOOD.replace("47.5", "NA"), ["'age', row 2", "missing"]),
        (GOOD.replace("yes", "  "), ["'smoke', row 1", "missing"]),
        (GOOD.replace("47.5", "121"), ["'age', row 2", "121", "clip=True"]),
        (GOOD.replace("47.5", "-inf"), ["'age', row 2", "-inf", "infinite"]),
        (GOOD.replace("47.5", "4O"), ["'age', row 2", "'4O'", "not a number"]),
        (GOOD.replace("yes", "Yes"), ["'smoke', row 1", "'Yes'", "level"]),
        (GOOD.replace("no,2", "no,3"), ["'stage', row 2", "'3'", "level"]),
        (GOOD.replace("age,", "years,"), ["'age'", "not in the data"]),
        ("age,smoke,stage,x\n1,yes,1,1\n1,no,1,1\n", ["'x'", "not in the domain"]),
    ],
)
def test_defects_are_reported(tmp_path: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_csv(write(tmp_path, text), domain=DOMAIN, strict=True)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_texts_may_be_declared_as_levels(tmp_path: Path) -> None:
    domain = Domain({"a": Categorical(("NA", "x")), "b": Categorical(("", "y"))})
    data = read_csv(write(tmp_path, "a,b\nNA,\nx,y\n"), domain=domain)
    assert data.codes.tolist() == [[0, 0], [1, 1]]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused(DataError, r"nowhere\.csv.*does not exist", read_csv, tmp_path / "nowhere.csv")
    refused(OptionError, "a DataFrame is no path.*from_frame", read_csv, pd.DataFrame({"a": [1]}))
    refused(DataError, "unknown kind", read_csv, write(tmp_path, GOOD, "people.xls"))
    (tmp_path / "latin.csv").write_bytes("a,b\né,1\n".encode("latin-1"))
    refused(DataError, "UTF-8", read_csv, tmp_path / "latin.csv")
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        mark = "" if encoding == "utf-16" else "\ufeff"
        (tmp_path / "wide.csv").write_bytes((mark + GOOD).encode(encoding))
        for strict in (True, False):
            refused(DataError, "is UTF-16 text; save it as UTF-8", read_csv, tmp_path / "wide.csv",
                    domain=DOMAIN, strict=strict)  # fmt: skip
    (tmp_path / "names.csv").write_bytes(b"\xe9,\xe8,a\n1,0,1\n0,1,1\n")
    refused(DataError, "header.*is not UTF-8 text; save it as UTF-8", read_csv,
            tmp_path / "names.csv", domain=DOMAIN)  # fmt: skip
    refused(DataError, "gzip", read_csv, (tmp_path / "latin.csv").rename(tmp_path / "plain.csv.gz"))
    whole = gzip.compress(GOOD.encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-12])
    refused(DataError, "gzip", read_csv, tmp_path / "cut.csv.gz")
    refused(DataError, "parquet", read_csv, write(tmp_path, GOOD, "people.parquet"))


def test_rows_beyond_the_first_block_are_counted_and_checked(tmp_path: Path) -> None:
    n = ROWS_AT_A_TIME + 3
    rows = [f"{i % 2},{i}" for i in range(n)]
    domain = Domain({"a": Ordinal((0, 1)), "b": Numeric(0, n)})
    data = read_csv(write(tmp_path, "a,b\n" + "\n".join(rows) + "\n\n"), domain=domain)
    assert data.n_samples == n
    assert np.array_equal(data.values("b"), np.arange(n))
    assert np.array_equal(data.column("a"), np.arange(n) % 2)
    for wrong, part in (
        ("1", f"row {n} has 1 value,"),
        ("2,0", f"'a', row {n}:"),
        ('"', f"row {n} cannot"),
    ):
        with pytest.raises(DataError, match=part):
            read_csv(
                write(tmp_path, "a,b\n" + "\n".join([*rows[:-1], wrong]) + "\n"),
                domain=domain,
                strict=True,
            )
    # A blank line that ends the first block is not the end of the file.
    blank = [*rows[: ROWS_AT_A_TIME - 1], "", *rows[ROWS_AT_A_TIME - 1 :]]
    with pytest.raises(DataError, match=f"row {ROWS_AT_A_TIME} has 0 values"):
        read_csv(write(tmp_path, "a,b\n" + "\n".join(blank) + "\n"), domain=domain, strict=True)


words = st.text(alphabet="ab ,\"\n'é;", min_size=1, max_size=6).filter(str.strip)


@given(rows=st.lists(st.tuples(words, st.floats(-1e300, 1e300)), min_size=2, max_size=8))
def test_csv_agrees_with_the_frame_it_was_written_from(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, float]]
) -> None:
    frame = pd.DataFrame(rows, columns=["word", "real"])
    path = tmp_path_factory.mktemp("csv") / "frame.csv"
    frame.to_csv(path, index=False)
    domain = Domain({"word": Categorical(tuple(sorted(set(frame["word"])))), "real": Numeric()})
    direct, read = Dataset.from_frame(frame, domain=domain), read_csv(path, domain=domain)
    assert np.array_equal(direct.discrete, read.discrete)
    assert np.array_equal(direct.numeric, read.numeric)


def test_clip_reaches_the_reader(tmp_path: Path) -> None:
    data = read_csv(
        write(tmp_path, GOOD.replace("47.5", "400")), domain=DOMAIN, strict=True, clip=True
    )
    assert data.values("age").tolist() == [33.0, 120.0, 0.0]


def test_public_data_files(data_folder: Path) -> None:
    data = read_csv(data_folder / "sachs" / "sachs_cd3cd28_853.csv")
    assert (data.n_samples, data.n_columns) == (853, 11)
    expected = pd.read_csv(data_folder / "sachs" / "sachs_cd3cd28_853.csv")
    assert np.array_equal(data.numeric, expected.to_numpy())
    data = read_csv(data_folder / "sachs" / "sachs_discrete3_interventional_5400.csv.gz")
    assert data.domain.cardinalities == (3,) * 11 + (6,)
    with pytest.raises(DataError, match="'family' holds text with more than 50"):
        read_csv(data_folder / "galton" / "galton_stature_898.csv")
    with pytest.raises(DomainError, match="codes"):
        _ = read_csv(data_folder / "sachs" / "sachs_all_conditions_7466.csv.gz").codes
