"""Arrow's columns taken apart as they lie in memory give the cells that a frame's columns give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.data.arrow import raw_column
from jaxcd.data.columns import RawColumn
from jaxcd.data.frames import raw_columns_of_series

CELLS = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["", "a", "b", "é", "NA"]),
    pa.large_string(): st.sampled_from(["a", "b"]),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b", "c"]),
    pa.dictionary(pa.uint16(), pa.string()): st.sampled_from(["a", "b", "c"]),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.ChunkedArray:
    """Chunks, some empty, some parts of longer arrays, with nulls in some columns."""
    kind = draw(st.sampled_from(list(CELLS)))
    cells = CELLS[kind] | st.none() if draw(st.booleans()) else CELLS[kind]
    chunks = []
    for _ in range(draw(st.integers(0, 3))):
        whole = pa.array(draw(st.lists(cells, max_size=20)), kind)
        start = draw(st.integers(0, len(whole)))
        chunks.append(whole.slice(start, draw(st.integers(0, 20))))
    return pa.chunked_array(chunks, kind)


def cells_of(raw: RawColumn) -> tuple[Any, ...]:
    cells = [raw.cell(row) for row in range(raw.n_samples)]
    plain = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    none = ["NaN" if isinstance(cell, float) and math.isnan(cell) else cell for cell in plain]
    return raw.name, none, set(raw.factorised()[0]) - set(cells) if raw.numbers is None else None


@settings(max_examples=300, deadline=None)
@given(columns())
def test_the_same_cells(column: pa.ChunkedArray) -> None:
    found, wanted = raw_column("c", column), raw_columns_of_series("c", column)
    assert cells_of(found) == cells_of(wanted)
    if wanted.numbers is not None:
        assert found.numbers is not None and found.numbers.dtype == wanted.numbers.dtype
    else:
        assert len(set(found.uniques)) == len(found.uniques)


@pytest.mark.parametrize("form", ["plain", "dictionary", "ordered", "sliced", "pandas", "parquet"])
@pytest.mark.parametrize(
    ("kind", "raw"),
    [(pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())],
    ids=["string", "large_string"],
)
def test_no_cell_of_text_makes_reading_fail(kind, raw, form, tmp_path) -> None:
    """Arrow holds whatever bytes a writer put there; a csv file with them is read, too."""
    domain = jaxcd.Domain({name: jaxcd.Categorical(("x", "y")) for name in "ab"})
    read = []
    for cell in (b"x", b"\xff\xfeSmith"):
        cells = pa.array([b"y", cell, None, b"y"], type=raw).view(kind)
        coded = cells.dictionary_encode()
        made = {
            "dictionary": coded,
            "ordered": pa.DictionaryArray.from_arrays(
                coded.indices, coded.dictionary, ordered=True
            ),
            "sliced": pa.concat_arrays([cells, cells]).slice(4, 4),
        }.get(form, cells)
        table = pa.table({"a": made, "b": ["x", "y", "x", "y"]})
        if form == "parquet":
            pq.write_table(table, tmp_path / "people.parquet")
            data = jaxcd.read_csv(tmp_path / "people.parquet", domain=domain)
        elif form == "pandas":
            wrapped = pd.arrays.ArrowExtensionArray(pa.chunked_array([cells]))
            data = jaxcd.Dataset.from_frame(
                pd.DataFrame({"a": wrapped, "b": ["x", "y", "x", "y"]}), domain=domain
            )
        else:
            data = jaxcd.Dataset.from_frame(table, domain=domain)
        read.append(np.asarray(data.codes).tolist())
    assert read[0] == read[1] == [[1, 0], [0, 1], [0, 0], [1, 1]]
