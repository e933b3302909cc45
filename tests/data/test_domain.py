"""Domains: declared types, the rule for matching levels, and the JSON format."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.data import Categorical, Domain, Numeric, Ordinal
from jaxcd.data.column_types import Column, LevelIndex
from jaxcd.data.domain import domain_from_json
from jaxcd.errors import DataError, DomainError, FormatError
from tests.helpers import refused

EXAMPLE = Domain(
    {
        "smoke": Categorical(("yes", "no")),
        "stage": Ordinal((1, 2, 3)),
        "age": Numeric(0, 120),
        "weight": Numeric(),
        "flag": Categorical((False, True)),
        "constant": Categorical(("x",)),
        "dose": Ordinal((0.5, 1.5)),
    }
)

levels = st.one_of(
    st.lists(st.text(max_size=5), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=5, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5, unique=True),
    st.just([True, False]),
)
bounds = st.floats(-1e9, 1e9)
columns = st.one_of(
    levels.map(lambda given: Categorical(tuple(given))),
    levels.map(lambda given: Ordinal(tuple(given))),
    st.tuples(bounds, bounds)
    .filter(lambda pair: pair[0] < pair[1])
    .map(lambda pair: Numeric(*pair)),
    st.just(Numeric()),
)
domains = st.dictionaries(st.text(min_size=1, max_size=6), columns, min_size=1, max_size=6).map(
    Domain
)


def test_public_facts() -> None:
    assert EXAMPLE.names == ("smoke", "stage", "age", "weight", "flag", "constant", "dose")
    assert EXAMPLE.n_columns == len(EXAMPLE) == 7
    assert EXAMPLE.cardinalities == (2, 3, None, None, 2, 1, 2)
    assert not EXAMPLE.is_discrete
    assert EXAMPLE.select(["stage", "smoke"]).is_discrete
    assert EXAMPLE.select(["stage", "smoke"]).names == ("stage", "smoke")
    assert EXAMPLE["age"] == Numeric(0.0, 120.0)
    assert EXAMPLE.declared
    assert "age" in EXAMPLE and "height" not in EXAMPLE


def test_equality_is_by_value_and_order() -> None:
    first = Domain({"a": Categorical((1, 2)), "b": Numeric(0, 1)})
    assert first == Domain([("a", Categorical([1, 2])), ("b", Numeric(0.0, 1.0))])  # type: ignore[arg-type]
    assert hash(first) == hash(Domain(dict(first.columns)))
    assert first != Domain({"b": Numeric(0, 1), "a": Categorical((1, 2))})
    assert first != Domain({"a": Ordinal((1, 2)), "b": Numeric(0, 1)})
    assert first != Domain(first.columns, declared=False)


def test_a_domain_is_frozen_and_can_be_copied() -> None:
    with pytest.raises(AttributeError):
        EXAMPLE.declared = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        EXAMPLE.columns["age"] = Numeric()  # type: ignore[index]
    given = {"a": Numeric(), "b": Numeric()}
    domain = Domain(given)
    given["c"] = Numeric()
    assert domain.names == ("a", "b")
    assert pickle.loads(pickle.dumps(EXAMPLE)) == EXAMPLE
    assert copy.deepcopy(Domain(given, declared=False)) == Domain(given, declared=False)


@given(domain=domains, declared=st.booleans())
def test_json_round_trip(
    tmp_path_factory: pytest.TempPathFactory, domain: Domain, declared: bool
) -> None:
    domain = Domain(domain.columns, declared=declared)
    path = tmp_path_factory.mktemp("domain") / "d.json"
    domain.write(path)
    again = Domain.read(path)
    assert again == domain
    for before, after in zip(domain.columns.values(), again.columns.values(), strict=True):
        if not isinstance(before, Numeric):  # True == 1 in Python, so compare the types as well
            assert not isinstance(after, Numeric)
            assert [type(level) for level in after.levels] == [
                type(level) for level in before.levels
            ]


def test_documented_json_format(tmp_path: Path) -> None:
    path = tmp_path / "patients.domain.json"
    path.write_text(
        '{"columns": {"smoke": {"type": "categorical", "levels": ["yes", "no"]},'
        ' "stage": {"type": "ordinal", "levels": [1, 2]},'
        ' "age": {"type": "numeric", "lower": 0, "upper": 120}, "w": {"type": "numeric"}}}'
    )
    expected: dict[str, Column] = {
        "smoke": Categorical(("yes", "no")),
        "stage": Ordinal((1, 2)),
        "age": Numeric(0, 120),
        "w": Numeric(),
    }
    assert Domain.read(path) == Domain(expected)
    assert Domain.read(str(path)).declared


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ('{"columns": {', FormatError, "line 1"),
        ('{\n"columns": {"a": [}}', FormatError, "line 2"),
        ("[]", FormatError, "expected an object"),
        ('{"columns": {}}', DomainError, "at least one column"),
        ('{"columns": {"a": {"type": "numeric"}}, "version": 2}', FormatError, "'version'"),
        (
            '{"columns": {"a": {"type": "numeric", "bins": [0, 1]}}}',
            FormatError,
            "column 'a' has the unknown key 'bins'; it goes with \"type\": \"ordinal\"",
        ),
        (
            '{"columns": {"a": {"type": "numeric"}}, "declared": "true"}',
            DomainError,
            '"declared" must be true or false, not "true"',
        ),
        ('{"columns": {"a": {"levels": [1]}}}', FormatError, "'a'"),
        ('{"columns": {"a": {"type": "continuous"}}}', DomainError, "'continuous'"),
        ('{"columns": {"a": {"type": ["numeric"]}}}', DomainError, "unknown type"),
        ('{"columns": {"a": {"type": "ordinal"}}}', FormatError, '"levels"'),
        ('{"columns": {"a": {"type": "ordinal", "levels": "xyz"}}}', FormatError, '"levels"'),
        ('{"columns": {"a": {"type": "numeric", "levels": [1]}}}', FormatError, "'levels'"),
        ('{"columns": {"a": {"type": "ordinal", "levels": [1, 1.0]}}}', DomainError, "'a'"),
        ('{"columns": {"a": {"type": "ordinal", "levels": [null]}}}', DomainError, "None"),
        ('{"columns": {"a": {"type": "numeric", "lower": NaN, "upper": 1}}}', DomainError, "NaN"),
        (
            '{"columns": {"a": {"type": "numeric", "lower": 0, "upper": 1e999}}}',
            DomainError,
            "finite",
        ),
        ('{"columns": {"a": {"type": "numeric", "lower": 3, "upper": 3}}}', DomainError, "below"),
        (
            '{"columns": {"a": {"type": "numeric"}, "a": {"type": "numeric"}}}',
            DomainError,
            "'a' is given twice",
        ),
    ],
)
def test_malformed_files_name_the_file(
    tmp_path: Path, text: str, error: type[Exception], part: str
) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(error) as caught:
        Domain.read(path)
    assert part in str(caught.value)
    assert "broken.json" in str(caught.value)


def test_missing_file_and_wrong_encoding(tmp_path: Path) -> None:
    refused(DataError, "nowhere.json", Domain.read, tmp_path / "nowhere.json")
    (tmp_path / "latin.json").write_bytes(b"\xe9")
    refused(FormatError, "latin.json", Domain.read, tmp_path / "latin.json")


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
@pytest.mark.parametrize(
    ("given", "part"),
    [
        ((), "at least one"),
        ("yes", "sequence"),
        (3, "sequence"),
        (("a", "b", "a"), "'a'"),
        ((1, True), "True"),
        ((1, "1"), "cannot be told apart"),
        ((True, "true"), "cannot be told apart"),
        ((1, float("nan")), "finite"),
        ((1, float("inf")), "finite"),
        ((None,), "None"),
        (((1, 2),), "text, a number"),
    ],
)
def test_levels_that_are_refused(kind: Any, given: Any, part: str) -> None:
    refused(DomainError, part, kind, given)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0, 0),
        (1, 0),
        (float("nan"), 1),
        (0, float("nan")),
        (0, float("inf")),
        (None, 1),
        (0, None),
        ("0", 1),
        (False, 1),
        (0, 10**400),
    ],
)
def test_bounds_that_are_refused(lower: Any, upper: Any) -> None:
    pytest.raises(DomainError, Numeric, lower, upper)


def test_domains_that_are_refused() -> None:
    refused(DomainError, "'a' is declared twice", Domain, [("a", Numeric()), ("a", Numeric())])
    refused(DomainError, "'a' is of the unknown type", Domain, {"a": ("yes", "no")})
    refused(DomainError, "at least one column", Domain, {})
    refused(DomainError, "column name 3", Domain, {3: Numeric()})
    with pytest.raises(DomainError, match="'height' is not in the domain"):
        EXAMPLE["height"]
    refused(DomainError, "declared twice", EXAMPLE.select, ["age", "age"])


@pytest.mark.parametrize(
    ("declared", "cell", "code"),
    [
        (("no", "yes"), "yes", 1),
        (("no", "yes"), "Yes", None),
        (("no", "yes"), "yes ", None),
        ((0, 1), "1", 1),
        ((0, 1), "1.0", 1),
        ((0, 1), 1.0, 1),
        ((0, 1), np.int8(1), 1),
        ((0, 1), True, 1),
        ((0, 1), "2", None),
        ((0, 1), float("nan"), None),
        ((0, 1), None, None),
        (("0", "1"), 1, 1),
        (("0", "1"), np.float32(1.0), 1),
        (("0", "1"), "1.0", None),
        (("01", "1"), "01", 0),
        (("01", "1"), 1, None),
        ((False, True), "TRUE", 1),
        ((False, True), "0", 0),
        ((False, True), np.True_, 1),
        (("True", "False"), False, 1),
        (("true", "false"), True, 0),
        ((0.5, 1.5), "1.50", 1),
        ((1000, 2), "1_000", None),
        ((2**53, 2**53 + 1), str(2**53 + 1), 1),
        (("nan", "x"), "nan", 0),
    ],
)
def test_which_cell_matches_which_level(declared: tuple, cell: object, code: int | None) -> None:
    assert LevelIndex(declared).code(cell) == code


@given(declared=levels)
def test_every_level_matches_itself_and_its_text(declared: list) -> None:
    index = LevelIndex(declared)
    for code, level in enumerate(declared):
        assert index.code(level) == code
        assert index.code(str(level)) == code


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text("[" * 100_000)
    with pytest.raises(FormatError, match="nested too deeply"):
        Domain.read(tmp_path / "d.json")


@pytest.mark.parametrize(
    ("entry", "n_digits"),
    [
        ('{{"type": "ordinal", "levels": [0, {}]}}', 5_001),
        ('{{"type": "ordinal", "levels": [0, {}]}}', 400),
        ('{{"type": "numeric", "lower": 0, "upper": {}}}', 5_001),
        ('{{"type": "numeric", "lower": 0, "upper": {}}}', 400),
        ('{{"type": "ordinal", "bins": [0, {}]}}', 400),
        ('{{"type": "ordinal", "levels": [0, 1], "missing": [{}]}}', 5_001),
        ('{{"type": "ordinal", "levels": [0, 1], "missing": [{}]}}', 400),
    ],
)
def test_whole_numbers_beyond_all_floats_are_refused(
    tmp_path: Path, entry: str, n_digits: int
) -> None:
    columns = entry.format("1" + "0" * (n_digits - 1))
    (tmp_path / "d.json").write_text(f'{{"columns": {{"a": {columns}}}}}')
    part = "5,001 digits" if n_digits > 4_300 else "largest float|finite"
    with pytest.raises(DomainError, match=part) as caught:
        Domain.read(tmp_path / "d.json")
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


def test_whole_numbers_that_python_does_not_write() -> None:
    huge = 10**5_000
    for declare in (
        lambda: Ordinal((0, huge)),
        lambda: Ordinal((0, 1), other=huge),
        lambda: Ordinal((0, 1), missing=(huge,)),
        lambda: Ordinal((0, 1), missing=huge),
        lambda: Numeric(0, huge),
        lambda: Numeric(0, 1, other=huge),
    ):
        refused(DomainError, "very many digits", declare)


def test_repr_of_a_domain_shows_no_level() -> None:
    domain = Domain.infer([["secret1", 5], ["secret2", 7]], names=["name", "count"])
    assert "secret" not in repr(domain)
    assert "name: categorical(2)" in repr(domain)
    assert "not declared" in repr(domain)


def test_an_inferred_domain_does_not_become_declared_by_being_written(tmp_path: Path) -> None:
    domain = Domain.infer(np.array([[0, 1], [1, 0]]))
    domain.write(tmp_path / "d.json")
    assert not Domain.read(tmp_path / "d.json").declared
    content = json.loads((tmp_path / "d.json").read_text())
    del content["declared"]
    (tmp_path / "d.json").write_text(json.dumps(content))
    assert Domain.read(tmp_path / "d.json").declared


def test_an_intervention_level_that_is_spelled_twice_is_refused() -> None:
    columns = {
        "a": {"type": "ordinal", "levels": [1, 2, 3], "intervention": {"1": ["b"], "1.0": []}},
        "b": {"type": "ordinal", "levels": [0, 1]},
    }
    refused(
        DomainError,
        r"column 'a': the interventions '1' and '1.0' are the same level 1; keep one",
        domain_from_json,
        json.dumps({"columns": columns}),
    )
    by_name = {name: Ordinal((1, 2, 3)) for name in "ab"}
    refused(
        DomainError, "1 and '1'", Domain, by_name, interventions={"a": {1: ("b",), "1": ("b",)}}
    )


@pytest.mark.parametrize("target", [["b"], {"b": 1}, None, 1])
def test_a_target_that_is_no_name_is_refused(target: Any) -> None:
    by_name = {name: Ordinal((1, 2, 3)) for name in "ab"}
    words = "column 'a': the target .* of the intervention 1 is no variable"
    refused(DomainError, words, Domain, by_name, interventions={"a": {1: (target,)}})


@pytest.mark.parametrize(
    ("interventions", "words"),
    [
        (["a"], r"interventions = \['a'\] is no mapping"),
        (
            {"a": True},
            "column 'a': its interventions, True, are no mapping; write {} for a context",
        ),
        ({"a": ["b"]}, r"column 'a': its interventions, \['b'\], are no mapping"),
        ({"a": {1: 2}}, "column 'a': the targets 2 of the intervention 1 are no names"),
    ],
)
def test_interventions_that_are_no_mapping_are_refused(interventions: Any, words: str) -> None:
    by_name = {name: Ordinal((1, 2, 3)) for name in "ab"}
    refused(DomainError, words, Domain, by_name, interventions=interventions)


@pytest.mark.parametrize("columns", ["ab", 3, None, ["a"], [("a",)], [("a", Numeric(), 1)]])
def test_what_declares_no_column_is_refused(columns: Any) -> None:
    with pytest.raises(DomainError, match="^columns: .* says no type of any column; write"):
        Domain(columns)


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_levels_without_an_order_are_refused(kind: Any) -> None:
    """The order of a set of texts differs from one process to the next, and codes with it."""
    with pytest.raises(DomainError, match=r"must be in an order, .* write tuple\(sorted\(levels\)"):
        kind({"yes", "no"})
