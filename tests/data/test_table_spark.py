"""PySpark in local mode gives what the rows in memory give.

It needs a Java runtime (17 for PySpark 4): ``pip install 'jaxcd[spark]'``, and ``java`` on the path
or JAVA_HOME.  ``SparkSession.builder.master("local[2]").getOrCreate()`` starts it in this process's
own Java machine.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from tests.data.test_table import BUDGET, DISCRETE, same, tables
from tests.helpers import simulated

pyspark = pytest.importorskip("pyspark", reason="jaxcd[spark] is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java runtime"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


def test_spark_gives_what_memory_gives(spark: Any) -> None:
    rng = np.random.default_rng(0)
    n = 1_003
    texts = np.array(["yes", "no", "ünï ☃", " NA", "1.0", "undeclared", None], dtype=object)
    frame = pd.DataFrame(
        {
            "a": texts[rng.integers(0, 7, n)],
            "b": texts[rng.integers(0, 7, n)],
            "c": rng.integers(-1, 4, n),
            "d": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 30, n)),
        }
    )
    domain = jaxcd.Domain(
        {
            "a": jaxcd.Categorical(("yes", "no", "ünï ☃", "empty")),
            "b": jaxcd.Categorical((1, "no"), missing=True),
            "c": jaxcd.Ordinal((0, 1, 2), missing=(3,)),
            "d": jaxcd.Binned((0, 18, 65, 120), missing=True),
        }
    )
    rows = [tuple(None if x is None else x for x in row) for row in frame.itertuples(index=False)]
    native = spark.createDataFrame(rows, schema="a string, b string, c long, d double")
    table = jaxcd.Table(native, domain=domain, n_samples=n, snapshot="v1")
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    sets = [s for r in range(4) for s in itertools.permutations(range(4), r)]
    for expected, found in zip(data.counts(sets), table.counts(sets), strict=True):
        np.testing.assert_array_equal(found, expected)
    numeric = jaxcd.Domain({**dict(domain.columns), "d": jaxcd.Numeric(0, 120, missing=True)})
    expected, found = (
        jaxcd.release(
            rows, jaxcd.Features(), budget=jaxcd.Budget(1, 1e-6), noise=simulated()
        ).moments
        for rows in (
            jaxcd.Dataset.from_frame(frame, domain=numeric),
            jaxcd.Table(native, domain=numeric, n_samples=n, snapshot="v1"),
        )
    )
    np.testing.assert_array_equal(found, expected)


TYPES = {
    pl.String: "string",
    pl.Int64: "long",
    pl.Int32: "integer",
    pl.Int8: "byte",
    pl.Float64: "double",
    pl.Float32: "float",
    pl.Boolean: "boolean",
}


def native_of(spark: Any, frame: pl.DataFrame) -> Any:
    """The same rows in Spark."""
    from pyspark.sql.types import StructType

    schema = StructType()
    for name, kind in frame.schema.items():
        schema = schema.add(name, TYPES[kind])
    return spark.createDataFrame(frame.rows(), schema=schema)


@settings(max_examples=10, deadline=None)
@given(tables())
def test_counts_are_those_of_the_rows_in_memory(spark: Any, drawn: Any) -> None:
    frame, domain = drawn
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    discrete = [j for j, name in enumerate(domain.names) if domain[name].is_discrete]
    sets = [s for r in range(3) for s in itertools.permutations(discrete, r)]
    table = jaxcd.Table(native_of(spark, frame), domain=domain, n_samples=len(frame), snapshot="v1")
    for expected, found in zip(data.counts(sets), table.counts(sets), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=4, deadline=None)
@given(tables(kinds=DISCRETE), st.sampled_from(["Histogram", "Marginals", "LogLinear"]))
def test_releases_are_those_of_the_rows_in_memory(spark: Any, drawn: Any, kind: str) -> None:
    frame, domain = drawn
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    table = jaxcd.Table(native_of(spark, frame), domain=domain, n_samples=len(frame), snapshot="v1")
    same(
        *(
            jaxcd.release(rows, getattr(jaxcd, kind)(), budget=BUDGET, noise=simulated())
            for rows in (table, data)
        )
    )
