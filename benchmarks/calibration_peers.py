"""Tests of other packages for the calibration board, where those packages are installed.

A test is a function of (values (n, d), seed) to the p-value of columns 0 and 1 given the others,
all as numbers, with the package's defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks import experiment as ex

PValue = Callable[[np.ndarray, int], float]


class Peer(NamedTuple):
    """load: gives the test, or raises ImportError.  package: to install.  most: the rows that it is
    given at most, as many as take about a second.
    """

    load: Callable[[], PValue]
    package: str
    most: int


def _causal_learn(method: str) -> PValue:
    from causallearn.utils.cit import CIT

    def pvalue(values: np.ndarray, seed: int) -> float:
        np.random.seed(seed)
        return float(CIT(values, method)(0, 1, list(range(2, values.shape[1]))))

    return pvalue


def _pgmpy_gcm(*, boosted: bool) -> PValue:
    import pandas as pd
    from pgmpy.ci_tests import GCM
    from sklearn.ensemble import GradientBoostingRegressor

    def pvalue(values: np.ndarray, seed: int) -> float:
        names = [f"x{j}" for j in range(values.shape[1])]
        estimator = GradientBoostingRegressor(random_state=seed) if boosted else None
        test = GCM(pd.DataFrame(values, columns=names), estimator=estimator, use_cache=False)
        test(names[0], names[1], names[2:])
        return float(test.p_value_)

    return pvalue


PEERS = {
    "causal-learn KCI": Peer(partial(_causal_learn, "kci"), "causal-learn", 1_000),
    "causal-learn RCIT": Peer(partial(_causal_learn, "rcit"), "causal-learn", 4_000),
    "causal-learn FastKCI": Peer(partial(_causal_learn, "fastkci"), "causal-learn", 300),
    "pgmpy GCM, linear": Peer(partial(_pgmpy_gcm, boosted=False), "pgmpy", 30_000),
    "pgmpy GCM, boosting": Peer(partial(_pgmpy_gcm, boosted=True), "pgmpy", 4_000),
}


def loaded(name: str, n: int) -> PValue:
    """The test of this name for n rows.

    Raises:
        LeftOut: n is more than it is given, or the package is not installed.
    """
    peer = PEERS[name]
    if n > peer.most:
        raise ex.LeftOut(f"more than {peer.most:,} rows")
    try:
        return peer.load()
    except ImportError:
        raise ex.LeftOut(f"pip install {peer.package}") from None
