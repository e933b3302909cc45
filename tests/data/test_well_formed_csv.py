"""The fast reader gives what the careful one gives, or leaves the file to it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.data import readers, well_formed_csv
from jaxcd.errors import DataError

CELLS = st.text(
    alphabet=st.sampled_from(list('ab1. ,"\n\r\té☃\u2028\x85\0')), max_size=5
) | st.sampled_from(["yes", "no", "", "NA", "1.5", '""', 'a"b'])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Files as a csv writer writes them, and some that nobody should write."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6))
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        lineterminator=draw(st.sampled_from(["\n", "\r\n"])),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    writer.writerow([f"c{j}" for j in range(width)])
    writer.writerows(rows)
    content = bytearray(text.getvalue().encode())
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 1))] = draw(
            st.sampled_from([b"", b'"', b",", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b" "])
        )
    return bytes(content)


def read(path: Path, strict: bool) -> object:
    try:
        columns, repairs = readers.read_columns(path, strict=strict)
    except DataError as error:
        return str(error)
    return [(c.name, c.uniques, c.inverse.tolist(), c.untyped) for c in columns], repairs


def test_both_readers_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, taken = tmp_path / "table.csv", []
    fast = well_formed_csv.well_formed_columns
    monkeypatch.setattr(well_formed_csv, "_LEAST_BYTES", 1)

    @settings(max_examples=300, deadline=None)
    @given(files(), st.booleans(), st.sampled_from([2, 3]))
    def agree(content: bytes, strict: bool, piece: int) -> None:
        path.write_bytes(content)
        monkeypatch.setattr(readers, "well_formed_columns", lambda path, only: None)
        careful = read(path, strict)
        monkeypatch.setattr(readers, "well_formed_columns", fast)
        assert read(path, strict) == careful
        taken.append(fast(path, None) is not None)
        raw = np.frombuffer(content, np.uint8)
        proper = well_formed_csv._is_proper(raw)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(well_formed_csv, "_PIECE", piece)
            assert well_formed_csv._is_proper(raw) == proper

    agree()
    assert 20 < sum(taken) < len(taken) - 20


def test_wanted_columns_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,"b",c\n1,2,"x, ""y"""\n3,4,z\n')
    monkeypatch.setattr(well_formed_csv, "_LEAST_BYTES", 1)
    columns = well_formed_csv.well_formed_columns(path, ["c", "a"])
    assert columns is not None
    assert [(c.name, c.uniques) for c in columns] == [("c", ('x, "y"', "z")), ("a", ("1", "3"))]
