"""The kinds of arrays that local mechanisms work on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.int32]
"""Level codes of records, n x d."""

Floats: TypeAlias = NDArray[np.float64]
"""Probabilities, rates and counts."""

Integers: TypeAlias = NDArray[np.int64]
"""Distances, places and levels that are computed with."""
