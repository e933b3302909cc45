"""Drafts of domains: they are there whatever the cells are, they can be read, and they say what is
to be looked at.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxcd
from jaxcd.data import Binned, Categorical, Dataset, Domain, Numeric, Ordinal
from jaxcd.data.checking import check_file
from jaxcd.data.drafting import Draft, draft_domain, draft_of_file
from jaxcd.data.frames import raw_columns
from jaxcd.data.looks import bounds_around, codes_among, edges_up_to, is_date, names_somebody
from jaxcd.errors import DataError, OptionError
from tests.helpers import CommandLine, refused

N = 400
RNG = np.random.default_rng(0)
FLAGS = ["no", "yes"] * (N // 2)


def drafted(cells: Any, name: str = "x", **more: Any) -> Draft:
    frame = pd.DataFrame({name: cells, "other": FLAGS[: len(cells)], **more})
    return draft_domain(raw_columns(frame))


def words_about(draft: Draft, name: str = "x") -> str:
    return " | ".join(note.words for note in draft.notes if note.column == name)


def spread(*values: Any) -> list[Any]:
    """The values in turn, N cells."""
    return [values[i % len(values)] for i in range(N)]


COUNTS = [int(count) for count in np.random.default_rng(1).geometric(0.1, N) - 1]
AGES = [int(age) for age in np.random.default_rng(2).integers(18, 94, N)]


@pytest.mark.parametrize(
    ("cells", "column", "said"),
    [
        (spread("a", "b", "c"), Categorical(("a", "b", "c")), ""),
        (
            spread("a", "b", None),
            Categorical(("a", "b"), missing=True),
            "133 missing cells (33.2%)",
        ),
        (spread("a", "b", "unknown"), Categorical(("a", "b"), missing=["unknown"]), "'unknown'"),
        (spread(True, False), Categorical((False, True)), ""),
        (spread("1", "2", "9"), Ordinal((1, 2), missing=[9]), "9 (133)"),
        (spread(0, 1, 2, -9, -99), Ordinal((0, 1, 2), missing=[-99, -9]), "-99 (80), -9 (80)"),
        (spread(-1, 0, 1), Ordinal((-1, 0, 1)), ""),
        # whole numbers that are one as floats, as codes of SNOMED CT are
        (
            spread("900000000000207008", "900000000000207001", "73211009"),
            Categorical(("73211009", "900000000000207001", "900000000000207008")),
            "",
        ),
        (spread(2**53, 2**53 + 1), Categorical((2**53, 2**53 + 1)), ""),
        (spread(*range(1, 10)), Ordinal(tuple(range(1, 10))), ""),
        (spread(1.0, np.nan, 2.0), Ordinal((1, 2), missing=True), "missing cells"),
        (COUNTS, Binned((0, 1, 2, 5, 10, 20, 50, 100)), "long tail"),
        (AGES, Numeric(0, 100), "rounded from the data"),
        ([*AGES[:-9], *[999] * 9], Numeric(0, 100, missing=[999]), "999 (9)"),
        ([*AGES[:-9], *["n/a"] * 9], Numeric(0, 100, missing=["n/a"]), "'n/a' (9)"),
        ([*AGES[:-1], "old"], Numeric(0, 100, missing=True), "'old' (1)"),
        ([*AGES[:-2], 54321, 54321], Numeric(0, 100, missing=[54321]), "54321 (2)"),
        ([*AGES[:-1], 123456], Numeric(0, 100), "far from all other values: 123456 (1)"),
        (spread("a", "b", "c")[:-2] + ["z", "z"], Categorical(("a", "b", "c", "z")), "'z' (2)"),
        (spread("Yes", "yes ", "no"), Categorical(("Yes", "no", "yes ")), "differ in case"),
        (spread(7), Ordinal((7,)), "one value only"),
        (spread("a"), Categorical(("a",)), "one value only"),
        (spread(True), Categorical((True,)), "one value only"),
        (pd.Categorical(spread("lo", "hi"), ["lo", "hi"], ordered=True), Ordinal(("lo", "hi")), ""),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_stays(cells: Any, column: Any, said: str) -> None:
    draft = drafted(cells)
    assert draft.domain["x"] == column and type(draft.domain["x"]) is type(column)
    assert said in words_about(draft)
    if not said:
        assert words_about(draft) == ""
    assert not draft.domain.declared and draft.n_samples == N


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([f"P{i:04d}" for i in range(N)], "an id"),
        (list(range(1000, 1000 + N)), "an id"),
        ([f"P{i // 2:04d}" for i in range(N)], "an id that repeats"),
        ([*range(390), *range(10)], "an id that repeats"),
        ([f"the patient, no. {i}, was seen at home" for i in range(N)], "free text"),
        ([chr(65 + i % 26) + chr(65 + i // 26) for i in range(200)] * 2, "more than 50"),
        ([None] * N, "empty"),
        (["NA", ""] * (N // 2), "empty"),
        ([f"2020-01-{i % 28 + 1:02d}" for i in range(N)], "dates"),
        ([f"{i % 28 + 1}/{i % 12 + 1}/1999 10:30" for i in range(N)], "dates"),
        (["", *[f"{20200101 + i % 28}" for i in range(N - 1)]], "dates"),
        ([datetime.date(2020, 1, 1 + i % 28) for i in range(N)], "dates"),
        ([datetime.datetime(2020, 1, 1 + i % 28) for i in range(N)], "dates"),
        ([pd.Timedelta(days=i) for i in range(N)], "dates"),
        ([(1, i) for i in range(N)], "neither text nor numbers"),
        (["1", 1] * (N // 2), ""),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_ignored(cells: list, reason: str) -> None:
    """With a reason that shows no cell: it stays in the file that will be declared."""
    draft = drafted(cells)
    if not reason:  # the number 1 and its text are one level
        assert draft.domain["x"] == Ordinal((1,))
        return
    assert "x" not in draft.domain and reason in draft.domain.ignored["x"]
    assert f"ignored: {draft.domain.ignored['x']}" in words_about(draft)
    assert not any(str(cell) in draft.domain.ignored["x"] for cell in cells if str(cell) > " ")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("{},5", "decimal commas"),
        ("{}.3%", "percent signs"),
        ("{} %", "percent signs"),
        ("-{},25", "decimal commas"),
        ("1,{:03d}", "groups of three"),
        ("{:,}.50", "groups of three"),
        ("1 {:03d}", "groups of three"),
        ("${}", "a currency"),
        ("{} \N{EURO SIGN}", "a currency"),
        ("({})", "brackets"),
        ("{} kg", "units"),
        ("{}mg/dl", "units"),
        ("< {}", "limits"),
    ],
)
@pytest.mark.parametrize("among_numbers", [False, True])
def test_numbers_in_another_spelling_are_no_ids(form: str, words: str, among_numbers: bool) -> None:
    cells = [form.format((k % 90) * (20 if "," in form[1:] else 1)) for k in range(N)]
    if among_numbers:
        cells[::4] = [str(k % 90) for k in range(0, N, 4)]
    draft = drafted(cells)
    reason = draft.domain.ignored["x"]
    assert reason.startswith("holds numbers in a spelling") and words in reason
    assert reason in words_about(draft)


@pytest.mark.parametrize("form", ["{}{}", "{} {}", "{}{}{}"])
def test_codes_of_digits_and_letters_are_no_numbers_with_a_unit(form: str) -> None:
    cells = [form.format(k % 9, chr(65 + k % 7), k % 3) for k in range(N)]
    assert "spelling" not in words_about(drafted(cells))


def test_leading_zeros_are_noted() -> None:
    assert "leading zeros" in words_about(drafted([f"0{1067 + k % 9}" for k in range(N)]))
    assert "leading zeros" not in words_about(drafted([f"{k % 9}" for k in range(N)]))
    assert "leading zeros" not in words_about(drafted([f"0.{k % 9}" for k in range(N)]))


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([f"{k + 1}.{k % 10}50" for k in range(N)], True),
        ([f"{k + 1}.{k % 10}50" if k % 3 else f"{k % 9 + 1}50" for k in range(N)], True),
        ([f"{k % 7}.{k % 10}50" for k in range(N)], False),  # 0.250
        ([f"{k + 1}.{k % 10}5" for k in range(N)], False),
        ([f"{k + 1}000" for k in range(N)], False),
        ([f"{k % 3 + 1}.250" for k in range(N)], False),  # too few to tell
    ],
)
def test_thousands_that_read_as_decimals_are_noted(cells: list[str], said: bool) -> None:
    assert ("48425" in words_about(drafted(cells))) is said


def test_thousands_of_a_file_with_semicolons_are_noted(tmp_path: Path) -> None:
    """There a comma is decimal, and 48,425 is read as 48.425."""
    rows = "".join(f"{k + 1},{k % 10}50;{k % 2}\n" for k in range(N))
    (tmp_path / "t.csv").write_text(f"cost;b\n{rows}")
    assert "48425" in words_about(draft_of_file(tmp_path / "t.csv"), "cost")


IDS = [*(f"P{i // 2:03d}" for i in range(80)), "p001", " P001", "", "NA", "7", "7.0", " 7", "07"]
ALIKE = ("'P001' and 'p001' and ' P001'", "'7' and '7.0' and ' 7' and '07'")


def test_ids_that_are_blank_or_differ_in_spelling_only_are_noted(tmp_path: Path) -> None:
    """Each counts as a person of its own, and a promise to persons rests on it."""
    rows = "".join(f"{cell},{i % 3},0\n" for i, cell in enumerate(IDS))
    (tmp_path / "t.csv").write_text(f"pid,a,b\n{rows}")
    said = words_about(draft_of_file(tmp_path / "t.csv"), "pid")
    domain = Domain({"a": Ordinal((0, 1, 2)), "b": Ordinal((0, 1))}, person="pid")
    found = check_file(tmp_path / "t.csv", domain=domain)
    for words in (said, str(found), " ".join(found.to_json_dict()["people"])):
        assert "rows without an id: 2. Each counts as a person" in words
        assert all(alike in words for alike in ALIKE) and "'P002' and" not in words
        assert "spell them alike" in words
    assert found.clean and "every cell fits" in str(found)
    assert jaxcd.read_csv(tmp_path / "t.csv", domain=domain).n_people == 40 + 8


def test_a_list_of_misfits_goes_by_what_a_cell_is_and_not_by_its_words(tmp_path: Path) -> None:
    """Cells that hold the words of the list itself, and the sign at which its sentences end."""
    cells = ("outside", "bounds", "infinite", "a; b", "7e9", "inf", "5")
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    domain = Domain({"x": Numeric(0, 8), "y": Ordinal((0, 1))})
    found = check_file(tmp_path / "t.csv", domain=domain).misfits
    read = jaxcd.read_csv(tmp_path / "t.csv", domain=domain).column("x").tolist()
    assert read == [4.0, 4.0, 4.0, 4.0, 8.0, 8.0, 5.0]
    for cell, value, misfit in zip(cells[:-1], read, found, strict=False):
        assert misfit.becomes == (f"{value:g}" if value == 4 else "the nearest bound")
        assert misfit.words.startswith(
            "values outside" if cell == "7e9" else f"the value {cell!r} is"
        )


def test_ids_of_one_spelling_are_not_noted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("pid,a\n" + "".join(f"P{i // 2},{i % 3}\n" for i in range(99)))
    assert "differ" not in words_about(draft_of_file(tmp_path / "t.csv"), "pid")
    domain = Domain({"a": Ordinal((0, 1, 2))}, person="pid")
    assert check_file(tmp_path / "t.csv", domain=domain).people == ()
    lacking = check_file(
        tmp_path / "t.csv",
        domain=Domain({"a": Ordinal((0, 1, 2))}, person="id", ignored={"pid": ""}),
    )
    assert lacking.lacking == ("id",) and not lacking.clean


def test_a_file_in_another_encoding_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "latin.csv"
    rows = "".join(f"m{'öü'[k % 2]}ller,{k % 3}\n" for k in range(60))
    for encoding, said in (("latin-1", True), ("utf-8", False)):
        file.write_bytes(f"a,b\n{rows}".encode(encoding))
        draft = draft_of_file(file)
        assert ("no UTF-8" in words_about(draft, "a")) is said
        assert len(draft.domain["a"].levels) == (1 if said else 2)


def test_a_name_in_another_encoding_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "latin.csv"
    file.write_bytes(b"\xe9,a\n1,0\n0,1\n")
    draft = draft_of_file(file)
    assert draft.domain.names == ("\ufffd", "a")
    assert "save the file as UTF-8" in words_about(draft, "\ufffd")
    assert not words_about(draft, "a")


@pytest.mark.parametrize("cells", [[1, 2, 3], ["a", "b", "c"]])
def test_a_whole_number_that_python_does_not_write(cells: list[object]) -> None:
    draft = drafted([*cells * 40, 10**5_000])
    column = draft.domain["x"]
    assert isinstance(column, (Ordinal, Categorical)) and set(column.levels) == set(cells)


def test_a_column_named_as_a_person_is_suggested_and_not_set() -> None:
    cells = [int(i) for i in RNG.integers(0, 100, N)]
    draft = drafted(cells, "PatientID")
    assert draft.domain.person is None
    assert '"person": true' in draft.domain.ignored["PatientID"]
    assert f"{N:,} rows have {len(set(cells))} values" in words_about(draft, "PatientID")
    assert "count" in drafted(cells, "count").domain


def test_names_of_people() -> None:
    for name in ("id", "patient_id", "PatientID", "pid", "SubjectNr", "patientid", "USER-ID"):
        assert names_somebody(name), name
    for name in ("age", "width", "paid", "residence", "idle", "x1", ""):
        assert not names_somebody(name), name


@pytest.mark.parametrize(
    "text",
    (
        "2020-02-29|2020-02-29T13:45:10.5Z|2020/2/9 1:05|29.02.2020|2/29/20|29-2-1999 23:59:59|"
        "12 March 2020|12-Mar-20|Mar 3, 2020|13:45|1:05 pm|20200229|2020-02-29 10:00:00+01:00"
    ).split("|"),
)
def test_dates(text: str) -> None:
    assert is_date(text) and is_date(f" {text} ")


@pytest.mark.parametrize(
    "text",
    (
        "|12.5|2020|99/99/2020|2020-13-40|12 bananas 2020|1.2.3.4|12345678|1e7|yes|P2020-01-01|-3"
    ).split("|"),
)
def test_no_dates(text: str) -> None:
    assert not is_date(text)


def test_codes_stand_apart() -> None:
    def found(*values: float) -> list[float]:
        array = np.array(values, dtype=float)
        return array[codes_among(array)].tolist()

    assert found(*range(100), 888, 999, 9999) == [888, 999, 9999]
    assert found(*range(1001)) == found(*range(100)) == found(-9, 0, -99, 8, -50) == []
    assert found(0, 1, -9) == [-9] and found(0, 1, -1) == [] and found(0, 12, -1) == [-1]
    assert found(9) == found(9, 99) == []


@given(
    st.floats(-1e12, 1e12, allow_subnormal=False).map(lambda x: float(f"{x:.6g}")),
    st.floats(1e-3, 1e12).map(lambda x: float(f"{x:.6g}")),
)
def test_rounded_bounds_hold_the_range(low: float, width: float) -> None:
    high = low + width
    lower, upper = bounds_around(low, high)
    slack = 1e-9 * (abs(low) + abs(high))
    assert lower <= low + slack and upper >= high - slack
    assert upper - lower <= 2 * (high - low) + slack


@pytest.mark.parametrize(
    "low, high",
    [(5e-324, 5e-324), (-5e-324, 0.0), (-1e-310, 1e-310), (1.0, 1 + 2e-16), (-1e300, -1e300)],
)
def test_bounds_of_hardly_any_range_are_in_order(low: float, high: float) -> None:
    lower, upper = bounds_around(low, high)
    assert lower <= low <= high <= upper and lower < upper


@given(st.integers(0, 10**12))
def test_edges_go_beyond(high: int) -> None:
    edges = edges_up_to(high)
    assert edges[0] == 0 and edges[-2] <= high < edges[-1] and list(edges) == sorted(set(edges))
    assert len(edges) <= 9 or all(str(int(edge)).strip("0") in ("1", "") for edge in edges)


cells = st.one_of(
    st.none(),
    st.text(max_size=4),
    st.floats(),
    st.integers(),
    st.booleans(),
    st.dates(),
    st.sampled_from(["unknown", "999", -9, "2020-01-01", "NA", "-", 1e300, -1e300, "1e308"]),
    st.lists(st.integers(), max_size=2),
)


@given(data=st.data(), n=st.integers(1, 40))
def test_there_always_is_a_draft(
    data: st.DataObject, n: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And the file says the same, and the data can be read by it without an error."""
    some = [data.draw(st.lists(cells, min_size=1, max_size=4)) for _ in range(3)]
    columns = [
        [data.draw(st.sampled_from(each)) for _ in range(n)] if each else [None] * n
        for each in some
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    array = np.empty((n, 3), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            array[i, j] = cell
    draft = draft_domain(raw_columns(array, names=["a", "b", "c"]))
    path = tmp_path_factory.mktemp("d") / "d.json"
    draft.domain.write(path)
    again = Domain.read(path)
    assert again == draft.domain and not again.declared
    if n >= 2 and again.n_columns >= 2:
        names = ["a", "b", "c"]
        read = Dataset.from_frame(
            pd.DataFrame(dict(zip(names, columns, strict=True)), dtype=object),
            domain=again,
            strict=False,
        )
        assert read.n_samples == n


@given(lines=st.lists(st.binary(max_size=20), max_size=8))
def test_any_bytes_after_the_header_have_a_draft(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("d") / "t.csv"
    path.write_bytes(b"\n".join([b"a,b,c", *lines]))
    assert draft_of_file(path).domain.columns_of_files


def test_types_of_frames_that_cannot_be_read_are_ignored_and_only_then_allowed() -> None:
    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2020, 1, 1)] * 4, pa.timestamp("ns")),
            "list": pa.array([[1], [2], None, [3]]),
            "a": [1, 2, None, 1],
            "b": ["x", "y", "x", "x"],
        }
    )
    draft = draft_domain(raw_columns(table))
    assert draft.domain.ignored == {
        "when": "holds dates or times",
        "list": "holds values of type List",
    }
    data = Dataset.from_frame(table, domain=draft.domain)
    assert data.column("a").tolist() == [0, 1, 2, 0]
    for name, column in (("when", Numeric(0, 1)), ("list", Categorical(("x",)))):
        domain = Domain({name: column, "b": Categorical(("x", "y"))})
        refused(
            DataError,
            '"ignore": true',
            Dataset.from_frame,
            table.select([name, "b"]),
            domain=domain,
        )
    refused(DataError, "'when'", Dataset.from_frame, table)
    people = Domain({"a": Ordinal((1, 2)), "b": Categorical(("x", "y"))}, person="when")
    refused(DataError, "'when'", Dataset.from_frame, table.drop(["list"]), domain=people)


@pytest.mark.parametrize("others", [(), (None,), (999,)])
def test_a_constant_fraction_has_one_value_and_no_bounds(others: tuple[Any, ...]) -> None:
    draft = drafted(spread(0.25, 0.25, *others))
    column = draft.domain["x"]
    assert isinstance(column, Numeric) and not column.is_bounded
    assert (column.missing is not None) == bool(others)
    assert "one value only" in words_about(draft) and "bounds" not in words_about(draft)


def test_rows_of_another_layout_are_counted_as_far_as_that_is_known(tmp_path: Path) -> None:
    """A line above the header makes every row one of these."""
    for n_rows, words in ((7, "and 1 more such row"), (1_500, "and at least 994 more such rows")):
        path = tmp_path / "t.csv"
        path.write_text("Export, of today\na,b,c\n" + "1,2,3\n" * (n_rows - 1), encoding="utf-8")
        (note,) = (note for note in draft_of_file(path).notes if "as the header says" in note.words)
        assert words in note.words and "above the header: delete them" in note.words
    domain = Domain({"Export": Numeric(), " of today": Numeric()})
    assert "... and at least 980 more such rows" in str(check_file(path, domain=domain))


def test_drop_and_columns() -> None:
    raws = raw_columns(pd.DataFrame({name: FLAGS for name in "abcd"}))
    draft = draft_domain(raws, drop=["b"], only=["a", "b", "d"])
    assert draft.domain.names == ("a", "d") and set(draft.domain.ignored) == {"b", "c"}
    refused(
        OptionError, "no column 'e'; the columns are a, b, c, d", draft_domain, raws, drop=["e"]
    )
    refused(OptionError, "no column ''", draft_domain, raws, only=[""])
    refused(OptionError, "every column", draft_domain, raws, drop=list("abcd"))


def test_the_command(command: CommandLine, tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "sub" / "d.json"
    path.write_text('a,b,c\n1,x,"broken\n,y\n3,x,4,5\n\n999,q,2\n')
    shown = command.shows("domain", path, "--out", out)
    for words in (
        "NOT PRIVATE",
        '"declared" to true',
        "row 2 has 2 values",
        "row 1 cannot be read",
    ):
        assert words in shown
    assert jaxcd.Domain.read(out)["a"].missing == (999,)
    content = json.loads(out.read_text())
    assert content["declared"] is False
    command.shows("domain", path, "--out", out, "--force --drop a --columns a,b,c")
    assert jaxcd.Domain.read(out).ignored == {"a": "not wanted"}
    command.shows("domain", path, "--out", out, "--force --columns b,c")
    assert jaxcd.Domain.read(out).names == ("b", "c")
    odd = tmp_path / "odd.csv"
    odd.write_text('"a, b", c ,"d ""x""",e\n' + "1,x,2,3\n0,y,1,4\n" * 9)
    wanted = Path('"a, b"," c ", "d ""x""" ,e')  # one word, which holds spaces
    command.shows("domain", odd, "--out", out, "--force --columns", wanted)
    assert jaxcd.Domain.read(out).names == ("a, b", " c ", 'd "x"', "e")
    command.refuses("no column 'c'", "domain", odd, "--out", out, "--force --columns c,e")
    (tmp_path / "lake").mkdir()
    for part in "ab":
        pd.DataFrame({"a": [1, 2], "b": [0, 1]}).to_parquet(tmp_path / "lake" / f"{part}.parquet")
        (tmp_path / "lake" / f"{part}.csv").write_text("a,b\n1,0\n")
    said = f"is a pattern of 2 files, and one is read; give one of them, such as '{tmp_path}"
    lake = tmp_path / "lake" / "*.csv"
    command.refuses(said, "domain", lake, "--out", out, "--force")
    command.refuses(said, "check", lake, "--domain", out)
    command.refuses("no column 'z'", "domain", path, "--out", out, "--force --drop z")
    command.refuses("does not exist", "domain", tmp_path / "u.csv", "--out", out, "--force")


def test_a_table_without_rows_has_a_draft_and_cannot_be_checked(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    assert draft_of_file(tmp_path / "t.csv").n_samples == 0
    domain = Domain({"a": Numeric(0, 1), "b": Numeric(0, 1)})
    refused(DataError, "at least 1 row", check_file, tmp_path / "t.csv", domain=domain)


def test_a_file_without_a_header_is_suspected(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("M,1,3.5\nF,0,2.5\nM,1,1.25\n", encoding="utf-8")
    assert "the file has no header" in draft_of_file(path).notes[0].words
    path.write_text("1,1,0\n0,1,0\n1,0,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="'1' occurs twice; .*; if the file has no header, write"):
        draft_of_file(path)
    path.write_text("sex,out,age\nM,1,3\nF,0,2\n", encoding="utf-8")
    assert not any("header" in note.words for note in draft_of_file(path).notes)
