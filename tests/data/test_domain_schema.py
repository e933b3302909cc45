"""The JSON schema of domain files and ``Domain.read`` agree: what the reader takes is valid, and
what is valid is refused only for how values relate to each other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.data.domain import domain_from_json
from jaxcd.errors import DomainError, FormatError

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "domain.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
#: what relates values to each other, which a schema cannot say (its description lists it)
RELATIONS = (
    "declared twice",
    "cannot be told apart",
    "ascending numbers",
    "must be below upper",
    "none of its levels",
    "outside its bounds",
    "is one of its levels",
    "no variable",
    "the same level",
    "both say which person",
    "finite",
    "farther apart",
)


def read(content: Any) -> Exception | None:
    """The reader's error; None where it takes the file."""
    try:
        domain_from_json(json.dumps(content))
    except (DomainError, FormatError) as error:
        return error
    return None


def agree(content: Any) -> None:
    error, valid = read(content), VALIDATOR.is_valid(content)
    if error is None:
        assert valid, list(VALIDATOR.iter_errors(content))
    elif valid:
        assert any(words in str(error) for words in RELATIONS), (content, error)


def column(entry: Any) -> dict[str, Any]:
    """A file with this entry beside a column that is right."""
    return {"columns": {"a": entry, "b": {"type": "categorical", "levels": [0, 1]}}}


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


YES_NO = {"type": "categorical", "levels": ["no", "yes"]}
VALID = [
    YES_NO,
    {**YES_NO, "other": "no", "missing": True, "ignore": False, "person": False},
    {**YES_NO, "missing": [999, "unknown", None], "intervention": {"yes": ["b"]}},
    {**YES_NO, "missing": False, "other": None, "intervention": True, "reason": "why"},
    {"type": "ordinal", "levels": [1, 2.5, True], "missing": None}
    | {"levels": [0, 2.5, True], "intervention": False},
    {"type": "ordinal", "bins": [0, 18, 65, 120], "missing": [999]},
    {"type": "numeric"},
    {"type": "numeric", "lower": 0, "upper": 10, "other": 2, "missing": [-9]},
    {"type": "numeric", "lower": None, "upper": None, "intervention": False},
    {"ignore": True},
    {"ignore": True, "reason": "an id", "type": "anything", "levels": []},
    {"person": True},
    {"person": True, "type": "categorical"},
]
INVALID = [
    None,
    [],
    "numeric",
    {},
    {"levels": [0, 1]},
    {"type": "text", "levels": [0, 1]},
    {"type": ["numeric"]},
    {"type": "numeric", "lower": 0},
    {"type": "numeric", "lower": 0, "upper": None},
    {"type": "numeric", "lower": "0", "upper": "1"},
    {"type": "numeric", "lower": False, "upper": True},
    {"type": "numeric", "levels": [1]},
    {"type": "numeric", "intervention": True},
    {"type": "numeric", "other": "a"},
    {"type": "categorical"},
    {"type": "categorical", "levels": []},
    {"type": "categorical", "levels": "yes"},
    {"type": "categorical", "levels": [None, 1]},
    {"type": "categorical", "levels": [[1], 2]},
    {"type": "categorical", "levels": [1, 1.0]},
    {"type": "categorical", "levels": [0, 1], "lower": 0},
    {"type": "categorical", "bins": [0, 1]},
    {"type": "ordinal", "bins": [0, 1], "levels": [0, 1]},
    {"type": "ordinal", "bins": [0, 1], "other": 0},
    {"type": "ordinal", "bins": [0]},
    {"type": "ordinal", "bins": None},
    {"type": "ordinal", "bins": ["0", "1"]},
    {**YES_NO, "missing": "unknown"},
    {**YES_NO, "missing": 999},
    {**YES_NO, "missing": [[1]]},
    {**YES_NO, "mising": True},
    {**YES_NO, "intervention": None},
    {**YES_NO, "intervention": "b"},
    {**YES_NO, "intervention": {"no": 1}},
    {**YES_NO, "intervention": {"no": [1]}},
    {**YES_NO, "intervention": {"no": [["b"]]}},
    {**YES_NO, "ignore": "yes"},
    {**YES_NO, "person": None},
    {"ignore": 1},
    {"ignore": True, "reason": 3},
]


@pytest.mark.parametrize("entry", VALID, ids=str)
def test_valid_in_both(entry: Any) -> None:
    assert VALIDATOR.is_valid(column(entry)) and read(column(entry)) is None


@pytest.mark.parametrize("entry", INVALID, ids=str)
def test_invalid_in_both(entry: Any) -> None:
    assert not VALIDATOR.is_valid(column(entry)) and read(column(entry)) is not None


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"columns": []},
        {"columns": {}},
        {"columns": {"a": {"ignore": True}}},
        {"columns": {"a": {"ignore": True}, "b": {"person": True}}},
        {"columns": {"": YES_NO}},
        {"columns": {"": {"ignore": True}, "a": YES_NO}},
        {"columns": {"a": YES_NO}, "declared": None},
        {"columns": {"a": YES_NO}, "declared": "no"},
        {"columns": {"a": YES_NO}, "version": 1},
    ],
    ids=str,
)
def test_files_that_are_invalid_in_both(content: Any) -> None:
    assert not VALIDATOR.is_valid(content) and read(content) is not None


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.floats(-2, 3),
        st.sampled_from(["no", "yes", "a", "b", "categorical", "1", ""]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["no", "yes", "a", "b"]), inner, max_size=2),
    ),
    max_leaves=4,
)
KEYS = "type levels bins lower upper other missing intervention ignore person reason more".split()
mutated = st.builds(
    lambda entry, gone, put: {k: v for k, v in entry.items() if k not in gone} | put,
    st.sampled_from(VALID),
    st.lists(st.sampled_from(KEYS), max_size=1),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=2),
)


def test_the_example_of_the_page() -> None:
    text = (Path(__file__).parents[2] / "docs" / "domain.md").read_text(encoding="utf-8")
    content = json.loads(text.partition("```json\n")[2].partition("```")[0])
    assert VALIDATOR.is_valid(content) and read(content) is None
    rows = text.partition("```text\n")[2].partition("```")[0].splitlines()
    assert set(rows[0].split(",")) == set(content["columns"])
    for key in KEYS[:-1]:
        assert f'"{key}"' in text


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), mutated, max_size=3), st.booleans())
def test_they_agree_on_files_that_are_nearly_right(columns: Any, declared: bool) -> None:
    agree({"columns": columns, "declared": declared})


@given(values)
def test_they_agree_on_anything(entry: Any) -> None:
    agree(column(entry))
    agree(entry)
