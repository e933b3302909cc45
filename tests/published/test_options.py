"""What every published method says of a wrong option."""

from __future__ import annotations

import math
from typing import Any

import jax
import pandas as pd
import pytest

from jaxcd import Dataset, Domain, Numeric, Ordinal, published
from jaxcd.errors import OptionError
from tests.catalogue import discrete, numeric

COMMON = {
    "epsilon": (0.0, math.nan, math.inf, "1", None, True, 10**400),
    "alpha": (0.0, 1.0, math.nan),
    "key": (3,),
    "max_level": (-1, True),
}
DELTA = {"delta": (0.0, math.nan, "1e-3", None)}
OWN = {
    published.curate: (
        discrete,
        DELTA | {"margin": (0.0, 1.0, math.nan), "rate": (0.0, None, "1")},
    ),
    published.priv_fci: (discrete, DELTA | {"bias": (math.nan, "0"), "rate": (0.0, 1.5, "1")}),
    published.em_pc: (discrete, DELTA),
    published.svt_pc: (discrete, DELTA),
    published.priv_pc: (discrete, DELTA | {"bias": (math.nan,), "rate": (0.0, 1.5, math.nan)}),
    published.pcd: (
        numeric,
        {
            "penalty": (0.0, math.nan, "1", None),
            "bandwidth": (-1.0, math.nan, "1"),
            "ridge": (0.0, math.nan, "1"),
            "n_permutations": (0, True),
            "stable": (1,),
        },
    ),
}


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        (method, option, value)
        for method, (_, own) in OWN.items()
        for option, values in (COMMON | own).items()
        for value in values
    ],
)
def test_wrong_options(method: Any, option: str, value: Any) -> None:
    options = {"epsilon": 1.0, "key": jax.random.key(0), option: value}
    with pytest.raises(OptionError) as caught:
        method(OWN[method][0](20), **options)
    assert option in str(caught.value)


@pytest.mark.parametrize("method", [each for each, (_, own) in OWN.items() if "delta" in own])
def test_the_smallest_delta_that_a_float_holds(method: Any) -> None:
    """One over it is infinite, and its logarithm is a number."""
    run = method(OWN[method][0](60), epsilon=1.0, key=jax.random.key(0), delta=5e-324)
    assert math.isfinite(run.cost.epsilon) and run.cost.delta == 5e-324


@pytest.mark.parametrize("method", OWN)
def test_what_is_no_table(method: Any) -> None:
    with pytest.raises(OptionError, match="data"):
        method("rows", epsilon=1.0, key=jax.random.key(0))


@pytest.mark.parametrize("method", [published.em_pc, published.noleaks, published.pcd])
def test_missing_cells_are_no_values(method: Any) -> None:
    """Unless they are read as such."""
    column = (
        Numeric(0, 1, missing=True) if method is published.pcd else Ordinal((0, 1), missing=True)
    )
    cells = [[0, 1], [None, 1], [1, None], [1, 0], [0, 0], [1, 1]]
    domain = Domain({"a": column, "b": column})
    data = Dataset.from_frame(pd.DataFrame(cells, columns=["a", "b"]), domain=domain)
    options = {"epsilon": 1.0, "key": jax.random.key(0)}
    with pytest.raises(OptionError, match="reading"):
        method(data, **options)
    assert method(data.reading("level"), **options).info["n_samples"] == 6
