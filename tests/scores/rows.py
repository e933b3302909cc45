"""300 rows of four discrete columns, the third like the first."""

from __future__ import annotations

import numpy as np

import jaxcd
from tests.helpers import coded

CARDINALITIES = (2, 3, 2, 4)
RNG = np.random.default_rng(0)
ROWS = np.stack([RNG.integers(0, r, 300) for r in CARDINALITIES], axis=1)
ROWS[:, 2] = np.where(RNG.random(300) < 0.7, ROWS[:, 0], ROWS[:, 2])
DATA = coded(ROWS, *CARDINALITIES, kind=jaxcd.Categorical)
