"""The fast reader gives what the careful one gives, or leaves the file to it."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.data import csv_layout, readers, well_formed_csv
from jaxcd.data.drafting import draft_of_file
from jaxcd.errors import DataError

WORDS = ["yes", "no", "", "NA", '""', 'a"b', "a, b", "a\nb", "a\r\nb", "é", " NA", "x" * 70]
TEXTS = (
    st.text(alphabet=st.sampled_from(list('ab1. ,"\n\r\té☃\u2028\x85\0')), max_size=5)
    | st.sampled_from(WORDS)
    | st.sampled_from(["1.5"])
)
ODD = [" 1", "1\t", "1_0", "inf", "-Infinity", "nan", "Nan", "1e999", "1e-999", "+3", "0x10", "٣"]
ODD += ["", "NA", "-0", "1.", ".5", "007", "9007199254740993", "yes", "é", "-", "1e", "1,5", "\n1"]
NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.integers(-(10**20), 10**20).map(str)
    | st.floats(-9, 9).map(lambda x: f"{x:.2f}")
)
#: Columns of a table: mostly of one kind, so that many are read fast
KINDS = st.sampled_from(
    [TEXTS, st.sampled_from(WORDS[:4]), NUMBERS, NUMBERS, NUMBERS | st.sampled_from(ODD)]
)
DOMAINS = (
    None,
    {
        "c0": jaxcd.Categorical(("yes", "no", "a, b", 'a"b'), missing=True),
        "c1": jaxcd.Numeric(),
        "c2": jaxcd.Numeric(-5, 5, missing=True),
        "c3": jaxcd.Binned((-5, 0, 1, 5), missing=("NA", 7)),
    },
    {
        "c0": jaxcd.Categorical(("yes", "no", "1.5", "a\nb"), other="no"),
        "c1": jaxcd.Binned((-5, 0, 5)),
        "c2": jaxcd.Ordinal((-1, 0, 1)),
        "c3": jaxcd.Numeric(-100, 100, other=3, missing=(1, "yes")),
    },
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Files as a csv writer writes them, quoted in all ways, and some that nobody should write."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*kinds), max_size=9))
    text = io.StringIO(newline="")
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(text, lineterminator=end, quoting=quoting)
    writer.writerow([f"c{j}" for j in range(len(kinds))])
    for row in rows:
        if draw(st.integers(0, 3)):
            writer.writerow(row)
        else:  # quotes here and there
            cells = [
                cell if draw(st.booleans()) and not set(cell) & set(',"\n\r') else quoted(cell)
                for cell in row
            ]
            text.write(",".join(cells) + end)
    content = bytearray(text.getvalue().encode())
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        marks = [place for place, byte in enumerate(content) if byte in b',"\n']
        place = draw(st.sampled_from(marks or [0])) + draw(st.integers(0, 1))
        content[place : place + draw(st.integers(0, 1))] = draw(st.sampled_from(ERRORS))
    return bytes(content)


ERRORS = [
    b"",
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"\0",
    b'""',
    b'"a',
    b"\r\n",
]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except DataError as error:
        return str(error)


def columns_of(path: Path, strict: bool) -> object:
    columns, repairs = readers.read_columns(path, strict=strict)
    return [(c.name, c.uniques, c.inverse.tolist(), c.untyped) for c in columns], repairs


def data_of(path: Path, domain: jaxcd.Domain | None, strict: bool | None, clip: bool) -> object:
    data = jaxcd.read_csv(path, domain=domain, strict=strict, clip=clip)
    absent = None if data.absent is None else data.absent.tolist()
    # the sign of a zero shows in its words
    return data.domain, data.discrete.tolist(), repr(data.numeric.tolist()), absent


def domain_of(content: bytes, columns: dict[str, jaxcd.Column] | None) -> jaxcd.Domain | None:
    if columns is None:
        return None
    width = content.partition(b"\n")[0].count(b",") + 1
    return jaxcd.Domain(dict(list(columns.items())[: max(width, 2)]))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size may be read fast, and a column counts as numbers from two on."""
    monkeypatch.setattr(well_formed_csv, "_LEAST_BYTES", 1)
    monkeypatch.setattr(well_formed_csv, "_FEW", 1)


def test_both_readers_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    fast, taken, numbers = well_formed_csv.well_formed_columns, [], []

    def watched(*arguments: object) -> object:
        found = fast(*arguments)  # type: ignore[arg-type]
        taken.append(found is not None)
        numbers.append(any(column.numbers is not None for column in found or ()))
        return found

    @settings(max_examples=150, deadline=None)
    @given(
        files(),
        st.booleans(),
        st.sampled_from(DOMAINS),
        st.sampled_from([None, True, False]),
        st.booleans(),
        st.booleans(),
    )
    def agree(
        content: bytes,
        strict: bool,
        columns: dict[str, jaxcd.Column] | None,
        strictly: bool | None,
        clip: bool,
        packed: bool,
    ) -> None:
        path = tmp_path / ("table.csv.gz" if packed else "table.csv")
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        domain = domain_of(content, columns)
        found = []
        for reader in (lambda *arguments: None, watched):
            monkeypatch.setattr(readers, "well_formed_columns", reader)
            found.append(
                (
                    outcome(lambda: columns_of(path, strict)),
                    outcome(lambda: data_of(path, domain, strictly, clip)),
                    outcome(lambda: draft_of_file(path)),
                )
            )
        assert found[0] == found[1]

    agree()
    assert 40 < sum(taken) < len(taken) - 40
    assert sum(numbers) > 10


PARTS = [
    b'"',
    b",",
    b"\n",
    b"\r\n",
    b"a",
    b'""',
    b'","',
    b'",\n',
    b'"\n"',
    b"ab" * 20,
    "é".encode(),
]
PARTS += [b"\r", b"\0", b"\xff"]


def by_the_rules(content: bytes) -> csv_layout.Layout:
    """The same layout, byte by byte."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return csv_layout.Layout(False, False)
    is_open, has_breaks, line = False, False, b""
    for place, byte in enumerate(content):
        before = content[place - 1] if place else ord("\n")
        after = content[place + 1] if place + 1 < len(content) else None
        is_open ^= byte == ord('"')
        proper = byte != 0
        if byte == ord('"') and is_open:
            proper = before in b',\n"'
        elif byte == ord('"'):
            proper = after is None or after in b',\r\n"'
        elif not is_open and byte == ord("\r"):
            proper = after == ord("\n")
        if byte == ord("\n") and not is_open:
            proper &= line not in (b"", b"\r")
            line = b""
        else:
            line += bytes([byte])
        has_breaks |= is_open and byte == ord("\n")
        if not proper:
            return csv_layout.Layout(False, False)
    return csv_layout.Layout(not is_open, has_breaks)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PARTS[:11]), max_size=60), st.lists(st.sampled_from(PARTS)))
def test_the_layout_is_that_of_the_rules(body: Sequence[bytes], end: Sequence[bytes]) -> None:
    for content in (b"".join([*body, *end]), b"".join(end)):
        wanted = by_the_rules(content)
        found = [csv_layout.layout_of(io.BytesIO(content))]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_layout, "PIECE", 64)
            found.append(csv_layout.layout_of(io.BytesIO(content)))
        assert [each.is_proper for each in found] == [wanted.is_proper] * 2
        if wanted.is_proper:
            assert found == [wanted] * 2


def test_long_records_are_left_to_the_careful_reader() -> None:
    def taken(content: bytes) -> bool:
        return csv_layout.layout_of(io.BytesIO(content)).is_proper

    rows = b"a,b\n" * 50_000
    assert taken(rows + b"a," + b"x" * 60_000 + b"\n" + rows)
    assert not taken(rows + b"a," + b"x" * 140_000 + b"\n" + rows)
    assert taken(rows + b'a,"' + b"x\n" * 10_000 + b'"\n' + rows)
    assert not taken(rows + b'a,"' + b"x\n" * 70_000 + b'"\n' + rows)


def test_wanted_columns_in_their_order(tmp_path: Path, small: None) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,"b",c\n1,2,"x, ""y"""\n3,4,"z\n"\n')
    columns = well_formed_csv.well_formed_columns(path, ["c", "a"], ["a"])
    assert columns is not None
    assert (columns[0].name, columns[0].uniques) == ("c", ('x, "y"', "z\n"))
    assert columns[1].numbers is not None and columns[1].numbers.tolist() == [1.0, 3.0]


def test_a_file_as_arrow_writes_it_is_read_fast(tmp_path: Path) -> None:
    """Every text in quotes, over several blocks; with line breaks, commas and quotes in cells."""
    rng = np.random.default_rng(0)
    words = np.array(["yes", "no", "a, b", 'say "x"', "two\nlines", ""])
    table = {
        "a": words[rng.integers(0, 6, 60_000)],
        "x": rng.normal(size=60_000),
        "b": words[rng.integers(0, 3, 60_000)],
    }
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(pa.table(table), path)
    columns = well_formed_csv.well_formed_columns(path, None, ["x"])
    assert columns is not None
    for column, cells in zip(columns, table.values(), strict=True):
        read = (
            column.numbers
            if column.numbers is not None
            else np.array(column.uniques)[column.inverse]
        )
        assert (read == cells).all()
