"""What the search of a release would refuse, from public facts, is refused before it is bought."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.errors import JaxcdError

DOMAIN = jaxcd.Domain(
    {
        "arm": jaxcd.Categorical((0, 1)),
        "a": jaxcd.Categorical((0, 1)),
        "b": jaxcd.Categorical((0, 1)),
    },
    interventions={"arm": {}},
)
FRAME = pd.DataFrame(np.arange(300)[:, None] // [1, 2, 4] % 2, columns=["arm", "a", "b"])
BUDGET = jaxcd.Budget(5.0, 1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"knowledge": jaxcd.Knowledge(required=[("a", "arm")])},
        {
            "algorithm": jaxcd.Algorithm.RELEASE,
            "knowledge": jaxcd.Knowledge(required=[("b", "arm")]),
        },
        {"algorithm": jaxcd.Algorithm.GFCI},
        {"algorithm": jaxcd.Algorithm.GFCI, "latent": True},
        {"algorithm": jaxcd.Algorithm.PC, "knowledge": jaxcd.Knowledge(required=[("a", "arm")])},
        {"algorithm": jaxcd.Algorithm.TREE, "knowledge": jaxcd.Knowledge(required=[("a", "arm")])},
        {"algorithm": jaxcd.Algorithm.FCI, "knowledge": jaxcd.Knowledge(required=[("a", "arm")])},
        {"algorithm": jaxcd.Algorithm.RELEASE, "max_level": 1},
        {"algorithm": jaxcd.Algorithm.TREE, "n_confidence_draws": 3},
        {"n_confidence_draws": -1},
        {"knowledge": jaxcd.Knowledge(required=[("a", "nobody")])},
        {"release_out": "/nowhere/at/all.npz"},
    ],
    ids=str,
)
def test_nothing_is_spent(options):
    ledger = jaxcd.Ledger(BUDGET)
    with pytest.raises(JaxcdError):
        jaxcd.discover(FRAME, domain=DOMAIN, budget=BUDGET, key=None, ledger=ledger, **options)
    assert ledger.spent.epsilon == 0 and not ledger.entries


def test_where_columns_may_be_hidden_interventions_are_tested():
    found = jaxcd.recommend(DOMAIN, 4_000, budget=BUDGET, latent=True)
    assert found.choice.algorithm is jaxcd.Algorithm.FCI
    run = jaxcd.discover(FRAME, domain=DOMAIN, budget=BUDGET, key=None, latent=True)
    assert "algorithm" not in run.info or run.info["algorithm"] != "gfci"
    assert run.graph.names == DOMAIN.names


@pytest.mark.parametrize("latent", [False, True])
def test_the_confidence_of_a_table_of_one_row_draws_one_row(latent):
    """It was refused after the release had been paid for."""
    frame = pd.DataFrame({"a": [0.5], "b": [0.2], "c": [-0.1]})
    domain = jaxcd.Domain({name: jaxcd.Numeric(-3.0, 3.0) for name in frame})
    run = jaxcd.discover(
        frame, domain=domain, budget=BUDGET, key=None, latent=latent, n_confidence_draws=2
    )
    assert run.graph.names == domain.names
