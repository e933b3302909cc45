"""Text files with other separators than commas: the same data as with commas."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.data import Categorical, Dataset, Domain, Numeric, Ordinal, read_csv
from jaxcd.data.csv_separators import separator_of, with_point
from jaxcd.data.readers import read_columns
from jaxcd.errors import DataError
from tests.helpers import refused

DOMAIN = Domain(
    {
        "size": Numeric(0, 3),
        "note": Categorical(("a, b", "c;d", "e\tf", "g|h", 'i"j', "else"), other="else"),
        "stage": Ordinal((1, 2, 3)),
    }
)
ROWS = [
    ("1.85", "a, b", "1"),
    ("0.5", "c;d", "2"),
    ("", "e\tf", "3"),
    ("-1.5e-1", "g|h", "2"),
    ("2", 'i"j', "1"),
    (".25", "k\nl", ""),
]


def text_of(separator: str, rows: list[tuple[str, ...]] = ROWS, *, quoting: int = 0) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(DOMAIN.names)
    writer.writerows(rows)
    return out.getvalue()


def same(one: Dataset, other: Dataset) -> bool:
    return all(np.array_equal(one.column(name), other.column(name)) for name in DOMAIN.names)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize(
    ("separator", "name"),
    [
        (";", "t.csv"),
        ("\t", "t.csv"),
        ("|", "t.csv"),
        ("\t", "t.tsv"),
        (";", "t.csv.gz"),
        ("\t", "T.TSV.gz"),
    ],
)
def test_the_same_cells_as_with_commas(
    tmp_path: Path, separator: str, name: str, quoting: int, strict: bool
) -> None:
    rows = ROWS if separator != ";" else [(a.replace(".", ","), b, c) for a, b, c in ROWS]
    if strict:  # the last row does not fit the domain
        rows = rows[:2]
    packed = name.lower().endswith(".gz")
    file = tmp_path / name
    text = text_of(separator, rows, quoting=quoting).encode("utf-8-sig")
    file.write_bytes(gzip.compress(text) if packed else text)
    (tmp_path / "commas.csv").write_text(text_of(",", ROWS[: len(rows)]), newline="")
    found = read_csv(file, domain=DOMAIN, strict=strict)
    assert found.n_samples == len(rows)
    assert same(found, read_csv(tmp_path / "commas.csv", domain=DOMAIN, strict=strict))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_first_line_that_names_the_separator_is_no_header(
    tmp_path: Path, separator: str, end: str, strict: bool
) -> None:
    """As spreadsheets write it; the header may hold other separators then."""
    text = text_of(separator, ROWS[:2]).replace("\r\n", end)
    plain, told = tmp_path / "plain.tsv", tmp_path / "told.tsv"
    plain.with_suffix(".csv").write_text(text_of(",", ROWS[:2]), newline="")
    told.write_bytes(f"\ufeffsep={separator}{end}{text}".encode())
    told.with_suffix(".csv").write_bytes(told.read_bytes())
    expected = read_csv(plain.with_suffix(".csv"), domain=DOMAIN, strict=strict)
    for file in (told, told.with_suffix(".csv")):
        found = read_csv(file, domain=DOMAIN, strict=strict)
        assert found.n_samples == 2 and same(found, expected)
    body = text.partition(end)[2]
    told.write_bytes((f"sep={separator}{end}{text}" + body * 1_000).encode())
    assert read_csv(told, domain=DOMAIN).n_samples == 2_002  # for a large file, too
    told.write_text(f"sep={separator}{end}")
    refused(DataError, "is empty", read_csv, told)


def test_a_large_file(tmp_path: Path) -> None:
    """Files of some size are read by another reader, where commas separate."""
    rows = [(f"{i % 300 / 100}", "a, b", str(i % 3 + 1)) for i in range(20_000)]
    files = []
    for separator, name in ((",", "c.csv"), (";", "s.csv"), ("\t", "t.tsv")):
        text = text_of(separator, rows)
        assert len(text) > 1 << 16
        (tmp_path / name).write_text(text, newline="")
        files.append(read_csv(tmp_path / name, domain=DOMAIN))
    assert same(files[0], files[1]) and same(files[0], files[2])


def test_a_tsv_file_may_have_commas_in_its_header(tmp_path: Path) -> None:
    lines = ["income, monthly\tage, years", *(f"{i}\t{i % 7}" for i in range(12_000))]
    (tmp_path / "t.tsv").write_text("\n".join(lines))
    columns, _ = read_columns(tmp_path / "t.tsv", strict=True)
    assert [column.name for column in columns] == ["income, monthly", "age, years"]
    assert columns[0].n_samples == 12_000


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("a,b", ","),
        ("a;b", ";"),
        ("a;b,c", ","),
        ('"a,b";c', ";"),
        ('"a;b",c', ","),
        ('"a;b"\tc', "\t"),
        ("a\tb|c", "\t"),
        ("a;b\tc", ";"),
        ("a|b", "|"),
        ("a", ","),
        ("", ","),
        ('"a', ","),
        ('"a;x', ","),  # a name of two lines, the second of which has the comma
        ('"a ""b"";c";d', ";"),
        ("a,b\r1;2", ","),  # only the first line counts
        ("a\r1;2", ","),
        ("a\n1;2", ","),
    ],
)
def test_the_header_alone_says_what_separates(header: str, expected: str) -> None:
    assert separator_of(Path("t.csv"), header) == expected
    assert separator_of(Path("t.TSV"), header) == "\t"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("4,5", "4.5"),
        (" -4,5 ", " -4.5 "),
        (",5", ".5"),
        ("1,5E-3", "1.5E-3"),
        ("1,", "1,"),
        ("1,2,3", "1,2,3"),
        ("1.234,5", "1.234,5"),
        ("4.5", "4.5"),
        ("a,5", "a,5"),
        ("4, 5", "4, 5"),
        ("", ""),
    ],
)
def test_decimal_commas(cell: str, expected: str) -> None:
    assert with_point(cell) == expected


def test_decimal_commas_are_read_only_beside_semicolons(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("size\tstage\n1,5\t1\n1.5\t1\n")
    (tmp_path / "s.csv").write_text("size;stage\n1,5;1\n1.5;1\n")
    domain = DOMAIN.select(["size", "stage"])
    refused(DataError, "1,5", read_csv, tmp_path / "t.tsv", domain=domain, strict=True)
    assert read_csv(tmp_path / "s.csv", domain=domain, strict=True).values("size").tolist() == [
        1.5,
        1.5,
    ]


@given(
    cells=st.lists(st.text(st.sampled_from('ab;,\t|"\n\r1.é'), max_size=8), min_size=2, max_size=2),
    separator=st.sampled_from(";\t|"),
)
def test_a_record_stays_a_record_whatever_its_cells_hold(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str], separator: str
) -> None:
    """As a csv writer writes it, or as it comes: the rows beside it are as they were."""
    file = tmp_path_factory.mktemp("t") / "t.csv"
    domain = DOMAIN.select(["size", "note"])
    for line in (separator.join(cells), text_line(cells, separator)):
        if line == text_line(cells, separator) or not set('"\n\r') & set(line):
            file.write_bytes(
                f"size{separator}note\n1{separator}c\n{line}\n2{separator}d\n".encode()
            )
            data = read_csv(file, domain=domain)
            assert data.n_samples == 3
            assert data.values("size")[[0, 2]].tolist() == [1.0, 2.0]


def text_line(cells: list[str], separator: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerow(cells)
    return out.getvalue().removesuffix("\r\n")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_first_name_of_a_header_may_have_a_line_break(
    tmp_path: Path, separator: str, end: str, strict: bool
) -> None:
    """As spreadsheets let people write it: the first line ends within the quotes, and the line
    after it says what separates.
    """
    first, middle = '"dose,\n""mg"";|"', '"per\nday"'
    lines = [(first, middle, "stage"), ("1.5", "2", "3"), ("2.5", "0", "1")]
    path = tmp_path / "t.csv"
    path.write_bytes("".join(separator.join(line) + end for line in lines).encode())
    domain = Domain(
        {
            'dose,\n"mg";|': Numeric(0, 3),
            "per\nday": Ordinal((0, 1, 2)),
            "stage": Ordinal((1, 2, 3)),
        }
    )
    found = read_csv(path, domain=domain, strict=strict)
    assert found.values('dose,\n"mg";|').tolist() == [1.5, 2.5]
    assert found.column("per\nday").tolist() == [2, 0]
    assert found.column("stage").tolist() == [2, 0]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"])
def test_what_breaks_a_name_does_not_say_what_ends_lines(
    tmp_path: Path, inner: str, end: str, strict: bool
) -> None:
    name = f"dose{inner}(mg)"
    lines = [f'stage;"{name}"', "1;1,5", "3;2,5"]
    path = tmp_path / "t.csv"
    path.write_bytes("".join(line + end for line in lines).encode())
    domain = Domain({"stage": Ordinal((1, 2, 3)), name: Numeric(0, 3)})
    found = read_csv(path, domain=domain, strict=strict)
    assert found.column("stage").tolist() == [0, 2]
    assert found.values(name).tolist() == [1.5, 2.5]


def test_a_quote_that_is_open_at_the_end_of_a_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"size;note;stage\n1;a;2\n' + "2;b;3\n" * 30)
    refused(DataError, "the header cannot be read as csv", read_csv, path, domain=DOMAIN)
