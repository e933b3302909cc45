"""The numerical core: pure functions, arrays in and arrays out, compiled by JAX.

Nothing here knows a column's name, a graph or a budget.  Integer work (counting) is exact in int32
for up to 2^31 - 1 rows; sums of products of counts are taken in float64 inside
:func:`jaxcd.ops.precision.double_precision`, which is exact up to 2^53.  Functions that accept a
``dtype`` also run in float32, for devices where double precision is slow.
"""

from jaxcd.ops import (
    association,
    concordance,
    contingency,
    correlation,
    features,
    gram,
    hsic,
    moments,
    ridge,
    spearman,
    tails,
)
from jaxcd.ops.precision import double_precision

__all__ = [
    "association",
    "concordance",
    "contingency",
    "correlation",
    "double_precision",
    "features",
    "gram",
    "hsic",
    "moments",
    "ridge",
    "spearman",
    "tails",
]
