"""A delta that is not below 1 / n warns, in Python as on the command line, from public numbers
alone.
"""

import json

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.errors import PrivacyWarning
from jaxcd.pairwise import LogIQRScore, anm
from tests.helpers import sampled, simulated

N = 200
DATA = sampled("cancer", N)
NOISE = simulated(1)

RUNS = {
    "pc": lambda budget: jaxcd.pc(
        DATA,
        test=jaxcd.CovarianceNorm(),
        decider=jaxcd.SparseVector(),
        budget=budget,
        key=None,
        noise=NOISE,
    ),
    "tree_pc": lambda budget: jaxcd.tree_pc(
        DATA, test=jaxcd.CovarianceNorm(), budget=budget, key=None, noise=NOISE
    ),
    "discover": lambda budget: jaxcd.discover(DATA, budget=budget, key=None, noise=NOISE),
    "release": lambda budget: jaxcd.release(DATA, jaxcd.Histogram(), budget=budget, noise=NOISE),
    "ci_test": lambda budget: jaxcd.ci_test(
        DATA, "Cancer", "Xray", test=jaxcd.CovarianceNorm(), budget=budget, key=None, noise=NOISE
    ),
    "anm": lambda budget: anm(
        np.linspace(0, 1, N),
        np.linspace(0, 1, N),
        budget=budget,
        key=jax.random.key(0),
        bounds=((0, 1), (0, 1)),
        score=LogIQRScore(),
        noise=NOISE,
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_it_warns_from_one_over_n_on(run: str) -> None:
    import warnings

    with pytest.warns(PrivacyWarning, match="is not below 1 / 200 rows"):
        RUNS[run](jaxcd.Budget(1.0, 1 / N))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        RUNS[run](jaxcd.Budget(1.0, 0.99 / N))
        RUNS[run](jaxcd.Budget(1.0, 1e-6))


@pytest.mark.parametrize("run", ["pc", "tree_pc", "discover", "ci_test"])
def test_the_result_says_so(run: str) -> None:
    for delta, expected in ((0.999, 1), (1e-6, 0)):
        result = RUNS[run](jaxcd.Budget(1.0, delta))
        for warned in (
            result.info.get("warnings", ()),
            json.loads(json.dumps(result.certificate()))["warnings"],
        ):
            assert sum("is not below 1 / 200 rows" in words for words in warned) == expected


def test_recommend_says_so() -> None:
    assert "1 / 200 rows" in str(jaxcd.recommend(DATA.domain, N, budget=jaxcd.Budget(1.0, 0.999)))
    assert jaxcd.recommend(DATA.domain, N, budget=jaxcd.Budget(1.0, 1e-6)).delta_warning is None
