"""Missing cells, ignored columns, people and interventions: what a domain declares, and what is
read.
"""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxcd
from jaxcd.data.domain import domain_from_json
from jaxcd.errors import DataError, DomainError, FormatError, OptionError

TEXT = """{"columns": {
    "smoker": {"type": "categorical", "levels": ["no", "yes"], "missing": [999, "unknown"]},
    "stage": {"type": "ordinal", "levels": [1, 2, 3], "missing": true},
    "age": {"type": "ordinal", "bins": [0, 18, 65, 120], "missing": [999]},
    "dose": {"type": "numeric", "lower": 0, "upper": 10, "other": 2, "missing": [-9]},
    "arm": {"type": "categorical", "levels": [0, 1, 2],
            "intervention": {"1": "dose", "2": ["dose", "stage"]}},
    "site": {"type": "categorical", "levels": ["a", "b"], "intervention": true},
    "pid": {"person": true},
    "note": {"ignore": true, "reason": "free text"}
}}"""
DOMAIN = domain_from_json(TEXT)
CELLS = {
    "smoker": ["yes", None, "unknown", "no", "999", "maybe"],
    "stage": [3, 1, None, 2, 1, 7],
    "age": [17.9, 18, 65, None, 999, 300],
    "dose": [0.5, -9, None, 11, 10, -1],
    "arm": [0, 1, 2, 0, 1, 2],
    "site": ["a", "b", "a", "b", "a", "b"],
    "pid": ["p1", "p2", "p1", "p3", None, "p3"],
    "note": ["x", None, "y", "z", "", "w"],
}


def test_what_is_read() -> None:
    data = jaxcd.Dataset.from_frame(pd.DataFrame(CELLS), domain=DOMAIN)
    assert data.names == ("smoker", "stage", "age", "dose", "arm", "site")
    assert data.column("smoker").tolist() == [1, 2, 2, 0, 2, 2]  # undeclared: missing
    assert data.column("stage").tolist() == [2, 0, 3, 1, 0, 3]
    assert data.column("age").tolist() == [0, 1, 2, 3, 3, 2]
    assert data.values("dose").tolist() == [0.5, 2, 2, 10, 10, 0]
    assert data.is_missing("dose").tolist() == [False, True, True, False, False, False]
    assert data.is_missing("stage").tolist() == [False, False, True, False, False, True]
    assert not data.is_missing("arm").any()
    assert data.domain.cardinalities == (3, 4, 4, None, 3, 2)
    assert data.people is not None
    assert data.people[0] == data.people[2] and data.people[3] == data.people[5]
    assert data.n_people == 4  # who has no id is a person


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_frame_and_the_file_read_alike(kind, tmp_path) -> None:
    cells = {**CELLS, "smoker": [None if c is None else str(c) for c in CELLS["smoker"]]}
    data = jaxcd.Dataset.from_frame(kind(cells), domain=DOMAIN)
    path = tmp_path / "t.csv"
    pd.DataFrame(cells).to_csv(path, index=False)
    from_file = jaxcd.read_csv(path, domain=DOMAIN)
    for one in (data, from_file):
        assert one.discrete.tolist() == [
            [1, 2, 0, 0, 0],
            [2, 0, 1, 1, 1],
            [2, 3, 2, 2, 0],
            [0, 1, 3, 0, 1],
            [2, 0, 3, 1, 0],
            [2, 3, 2, 2, 1],
        ]
        assert one.numeric[:, 0].tolist() == [0.5, 2, 2, 10, 10, 0]
        assert one.is_missing("dose").tolist() == [False, True, True, False, False, False]
        assert one.people.tolist() == from_file.people.tolist()


def test_what_strict_reading_refuses() -> None:
    good = pd.DataFrame(CELLS).iloc[:3]
    assert jaxcd.Dataset.from_frame(good, domain=DOMAIN, strict=True).n_samples == 3
    for name, cell in (("smoker", "maybe"), ("stage", 7), ("age", 300), ("dose", 11)):
        bad = good.astype(object)
        bad.loc[1, name] = cell
        with pytest.raises(DataError, match=f"'{name}', row 2"):
            jaxcd.Dataset.from_frame(bad, domain=DOMAIN, strict=True)


def test_a_declared_level_wins_over_what_usually_means_missing() -> None:
    domain = jaxcd.Domain(
        {"x": jaxcd.Categorical(("NA", "b"), missing=True), "y": jaxcd.Categorical((0, 1))}
    )
    frame = pl.DataFrame({"x": ["NA", "", "b"], "y": [0, 1, 1]})
    assert jaxcd.Dataset.from_frame(frame, domain=domain).column("x").tolist() == [0, 2, 1]


def test_the_domain_survives_files_pickles_and_copies(tmp_path) -> None:
    DOMAIN.write(tmp_path / "d.json")
    for again in (
        jaxcd.Domain.read(tmp_path / "d.json"),
        pickle.loads(pickle.dumps(DOMAIN)),
        copy.deepcopy(DOMAIN),
    ):
        assert again == DOMAIN and hash(again) == hash(DOMAIN)
    assert DOMAIN.interventions["arm"] == {1: ("dose",), 2: ("dose", "stage")}
    assert DOMAIN.person == "pid" and DOMAIN.ignored == {"note": "free text"}
    part = DOMAIN.select(("stage", "arm"))
    assert part.interventions == {"arm": {1: (), 2: ("stage",)}}
    assert DOMAIN != jaxcd.Domain(DOMAIN.columns)


@pytest.mark.parametrize(
    "entry, error, words",
    [
        ('{"type": "categorical", "levels": [1, 2], "missing": [2]}', DomainError, "its levels"),
        ('{"type": "categorical", "levels": [1, 2], "missing": "x"}', DomainError, "missing = 'x'"),
        ('{"type": "ordinal", "bins": [0, 2, 1]}', DomainError, "ascending"),
        ('{"type": "ordinal", "bins": [0, 1], "levels": [1]}', FormatError, "take the place"),
        ('{"ignore": "yes"}', FormatError, '"ignore" must be'),
        ('{"type": "numeric", "intervention": true}', DomainError, "is an intervention"),
        (
            '{"type": "categorical", "levels": [0, 1], "intervention": {"2": "b"}}',
            DomainError,
            "none of its levels",
        ),
        (
            '{"type": "categorical", "levels": [0, 1], "intervention": {"1": "c"}}',
            DomainError,
            "no variable",
        ),
        ('{"type": "categorical", "levels": [0, 1], "intervention": 3}', FormatError, "must be"),
        ('{"levels": [0, 1]}', FormatError, '"type"'),
    ],
)
def test_what_a_domain_file_may_not_say(entry, error, words) -> None:
    text = f'{{"columns": {{"a": {entry}, "b": {{"type": "categorical", "levels": [0, 1]}}}}}}'
    with pytest.raises(error, match=words):
        domain_from_json(text)


def test_two_persons_are_one_too_many() -> None:
    entry = {"a": {"person": True}, "b": {"person": True}, "c": {"type": "numeric"}}
    with pytest.raises(DomainError, match="both say which person"):
        domain_from_json(json.dumps({"columns": entry}))


def test_a_column_that_nobody_declared_is_named_with_the_cure() -> None:
    frame = pd.DataFrame(CELLS).assign(more=1)
    with pytest.raises(DataError, match='"ignore": true'):
        jaxcd.Dataset.from_frame(frame, domain=DOMAIN)
    without = pd.DataFrame(CELLS).drop(columns=["note"])  # an ignored column need not be there
    assert jaxcd.Dataset.from_frame(without, domain=DOMAIN).n_samples == 6
    with pytest.raises(DataError, match="'pid' is in the domain"):
        jaxcd.Dataset.from_frame(without.drop(columns=["pid"]), domain=DOMAIN)


def test_select_where_and_frames_keep_what_is_missing() -> None:
    data = jaxcd.Dataset.from_frame(pd.DataFrame(CELLS), domain=DOMAIN)
    part = data.select(("dose", "smoker"))
    assert part.is_missing("dose").tolist() == data.is_missing("dose").tolist()
    assert part.people.tolist() == data.people.tolist()
    rows = ~data.is_missing("dose") & ~data.is_missing("smoker")
    kept = part.where(rows)
    assert kept.n_samples == int(rows.sum()) and not kept.is_missing("dose").any()
    frame = data.to_frame()
    assert frame["dose"].isna().tolist() == data.is_missing("dose").tolist()
    again = jaxcd.Dataset.from_frame(
        frame.assign(pid=CELLS["pid"], age=CELLS["age"]), domain=DOMAIN
    )
    assert again.discrete.tolist() == data.discrete.tolist()


@given(
    st.lists(
        st.one_of(st.none(), st.floats(), st.integers(-3, 3), st.text(max_size=3), st.booleans()),
        min_size=2,
        max_size=6,
    ),
    st.integers(0, 5),
)
def test_a_cell_changes_its_own_row_alone(cells, place) -> None:
    """Total reading works record by record, so neighbours stay neighbours (PRIVACY.md S)."""
    other = list(cells)
    other[place % len(cells)] = "999"
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Categorical((0, 1, "x"), missing=(999,)),
            "b": jaxcd.Numeric(-1, 1, missing=(999,)),
            "c": jaxcd.Binned((-2, 0, 2), missing=(999,)),
        }
    )

    def read(values):
        rows = [[value, value, value] for value in values]
        return jaxcd.Dataset.from_array(rows, domain=domain)

    one, two = read(cells), read(other)
    changed = (one.discrete != two.discrete).any(axis=1) | (one.numeric != two.numeric).any(axis=1)
    changed |= one.is_missing("b") != two.is_missing("b")
    assert set(np.flatnonzero(changed)) <= {place % len(cells)}
    assert two.is_missing("a")[place % len(cells)] and two.is_missing("c")[place % len(cells)]


@pytest.mark.parametrize("mark", [pd.NA, pd.NaT, None, float("nan")], ids=repr)
@pytest.mark.parametrize("dtype", ["Int64", "Float64", object])
def test_marks_of_pandas_for_missing_cells_are_missing(mark: Any, dtype: Any) -> None:
    """Also where another value could take their place."""
    if dtype == "Int64" and mark is pd.NaT:
        pytest.skip("pandas does not take it")
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Ordinal((0, 1), missing=True, other=0),
            "x": jaxcd.Numeric(0, 5, missing=True),
            "b": jaxcd.Categorical((0, 1)),
        }
    )
    cells = [1, mark if dtype is object else None, 0]
    frame = pd.DataFrame({"a": cells, "x": cells, "b": [0, 1, 1]}).astype({"a": dtype, "x": dtype})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    for name in ("a", "x"):
        assert data.is_missing(name).tolist() == [False, True, False]


@pytest.mark.parametrize("decider", [None, jaxcd.LevelwiseGaussian(), jaxcd.SieveAndExamine()])
def test_a_search_of_one_table_says_how_to_read_missing_cells(decider) -> None:
    """Without privacy the rows that are left out are others for each question."""
    codes = np.random.default_rng(0).integers(0, 2, (200, 3))
    codes[::7, 0] = 2  # missing
    domain = jaxcd.Domain({name: jaxcd.Ordinal((0, 1), missing=True) for name in "abc"})
    data = jaxcd.Dataset.from_codes(codes, domain=domain)

    def found(missing: str) -> jaxcd.DiscoveryResult:
        options = {"test": jaxcd.CovarianceNorm(), "budget": jaxcd.NO_PRIVACY, "missing": missing}
        if decider is None:
            return jaxcd.tree_pc(data, **options)
        return jaxcd.pc(data, **options, decider=decider, key=jax.random.key(0))

    with pytest.raises(OptionError, match='missing="ignore": .*; use missing="level"'):
        found("ignore")
    assert found("level").graph.n_nodes == 3
