"""Frames and files at every door: the same answer as with a Dataset, and in a private run nothing
without a declared domain.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jaxcd
from jaxcd.errors import DataError, OptionError, PrivacyError
from tests.helpers import PLAIN, refused, sampled, simulated

KEY = jax.random.key(0)
PAID: dict[str, Any] = {"budget": jaxcd.Budget(1.0, 1e-5), "noise": simulated()}
FREE: dict[str, Any] = {"budget": jaxcd.NO_PRIVACY}
PRIVATE: dict[str, Callable[..., Any]] = {
    "discover": lambda data, **more: jaxcd.discover(data, key=None, **more),
    "pc": lambda data, **more: jaxcd.pc(
        data, test=jaxcd.CovarianceNorm(), decider=jaxcd.LevelwiseGaussian(), key=None, **more
    ),
    "fci": lambda data, **more: jaxcd.fci(
        data, test=jaxcd.CovarianceNorm(), decider=jaxcd.LevelwiseGaussian(), key=None, **more
    ),
    "tree_pc": lambda data, **more: jaxcd.tree_pc(
        data, test=jaxcd.CovarianceNorm(), key=None, **more
    ),
    "release": lambda data, **more: jaxcd.search(jaxcd.release(data, jaxcd.Histogram(), **more)),
    "ci_test": lambda data, **more: jaxcd.ci_test(
        data, "Cancer", "Xray", test=jaxcd.CovarianceNorm(), **more
    ),
}
OPEN: dict[str, Callable[..., Any]] = {
    "pc": lambda data, **more: jaxcd.pc(
        data, test=jaxcd.ChiSquare(), **PLAIN, **{k: v for k, v in more.items() if k == "domain"}
    ),
    "ges": lambda data, **more: jaxcd.ges(data, **more),
    "mmhc": lambda data, **more: jaxcd.mmhc(data, **more),
    "gfci": lambda data, **more: jaxcd.gfci(data, **more),
    "exact_search": lambda data, **more: jaxcd.exact_search(data, **more),
    "order_mcmc": lambda data, **more: jaxcd.order_mcmc(
        data, key=KEY, n_steps=50, burn_in=10, **more
    ),
}


def answer(result: Any) -> Any:
    return getattr(result, "graph", None) or (result.margin, result.independent)


@pytest.fixture(scope="module")
def data() -> jaxcd.Dataset:
    return sampled("cancer", 2000)


@pytest.fixture
def tables(data: jaxcd.Dataset, tmp_path: Path) -> dict[str, Any]:
    """The data in every form that a door takes."""
    frame = data.to_frame().astype(str)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    return {
        "pandas": frame,
        "polars": pl.DataFrame(frame.to_dict("list")),
        "arrow": pa.table(frame),
        "a batch of arrow": pa.RecordBatch.from_pandas(frame),
        "csv": tmp_path / "t.csv",
        "parquet": str(tmp_path / "t.parquet"),
    }


@pytest.mark.parametrize("door", PRIVATE)
def test_a_table_is_its_dataset(
    door: str, data: jaxcd.Dataset, tables: dict[str, Any], tmp_path: Path
) -> None:
    data.domain.write(tmp_path / "d.json")
    expected = answer(PRIVATE[door](data, **PAID))
    for place, (kind, table) in enumerate(tables.items()):
        domain = (data.domain, tmp_path / "d.json", str(tmp_path / "d.json"))[place % 3]
        assert answer(PRIVATE[door](table, domain=domain, **PAID)) == expected, kind


@pytest.mark.parametrize("door", PRIVATE)
def test_a_private_run_wants_a_declared_domain(
    door: str, data: jaxcd.Dataset, tables: dict[str, Any], tmp_path: Path
) -> None:
    """Before a row is read: the cure is in the words, and no cell is."""
    draft = jaxcd.Domain(data.domain.columns, declared=False)
    draft.write(tmp_path / "draft.json")
    missing = pd.DataFrame({"a": ["secret", None], "b": [1, 2]})
    for table in (*tables.values(), missing, tmp_path / "nowhere.csv"):
        refused(PrivacyError, "domain is missing.*jaxcd domain FILE", PRIVATE[door], table, **PAID)
        for domain in (draft, tmp_path / "draft.json"):
            refused(PrivacyError, "not declared", PRIVATE[door], table, domain=domain, **PAID)


@pytest.mark.parametrize("door", OPEN)
def test_without_privacy_a_domain_may_be_inferred(
    door: str, data: jaxcd.Dataset, tables: dict[str, Any]
) -> None:
    expected = answer(OPEN[door](data, **FREE))
    for kind, table in tables.items():
        assert answer(OPEN[door](table, domain=data.domain, **FREE)) == expected, kind
    inferred = jaxcd.Dataset.from_frame(tables["pandas"])
    assert answer(OPEN[door](tables["pandas"], **FREE)) == answer(OPEN[door](inferred, **FREE))


@pytest.mark.parametrize("door", PRIVATE)
def test_a_domain_goes_with_a_table_only(door: str, data: jaxcd.Dataset) -> None:
    bought = jaxcd.release(data, jaxcd.Histogram(), **PAID)
    for other in (data, bought):
        refused(OptionError, "leave domain out", PRIVATE[door], other, domain=data.domain, **PAID)
    for no_table in (None, [[1, 2]], {"a": [1, 2]}, np.zeros((2, 2)), pd.Series([1, 2])):
        refused(OptionError, "give a data frame", PRIVATE[door], no_table, domain=data.domain,
                **PAID)  # fmt: skip


def test_what_is_no_domain_and_no_file(tables: dict[str, Any], tmp_path: Path) -> None:
    refused(OptionError, "a dict is not a Domain", jaxcd.ges, tables["csv"], domain={}, **FREE)
    refused(DataError, "does not exist", jaxcd.ges, tmp_path / "u.csv", **FREE)
    lazy = tables["polars"].lazy()
    refused(DataError, "lazy", jaxcd.ges, lazy, **FREE)


def test_no_cell_of_a_table_makes_a_private_run_fail(
    data: jaxcd.Dataset, tables: dict[str, Any]
) -> None:
    """And the run is that on the table with the cell that is read in its place."""
    frame = tables["pandas"]
    odd, read = frame.astype(object), frame.astype(object)
    odd.loc[5, "Xray"], read.loc[5, "Xray"] = "HIV+", data.domain["Xray"].levels[0]  # type: ignore
    runs = [PRIVATE["discover"](one, domain=data.domain, **PAID) for one in (odd, read)]
    assert runs[0].graph == runs[1].graph and runs[0].cost == runs[1].cost
    assert "HIV+" not in json.dumps(runs[0].info, default=str)
