r"""The generalised covariance measure: is the mean product of two residuals zero?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxcd.checks import check_whole
from jaxcd.citests.residual_products import (
    Products,
    ProductTest,
    ResidualsInBlocks,
    ResidualsInMemory,
)
from jaxcd.ops import block_units, tails
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["GCM"]

# Weight functions of one column: the sign of its distance to each eighth of its ranks.
_CUTS = special.ndtri(np.arange(1, 8) / 8)
_DRAWS = 1999
# A mean square below this share of the largest one is rounding.
_LOST = 1e-24


def _largest_of_normals(correlation: np.ndarray) -> np.ndarray:
    """1,999 draws of max_j |N_j|, N of this correlation (m, m): the same ones at every call, points
    of a numerical integral rather than randomness of the test."""
    values, vectors = np.linalg.eigh(correlation)
    # the symmetric root: it does not depend on the signs that a processor gives the vectors
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    draws = np.random.default_rng(0).standard_normal((len(values), _DRAWS))
    return np.abs(root @ draws).max(axis=0)


@dataclass(frozen=True)
class GCM(ProductTest):
    r"""The generalised covariance measure of x and y given Z, and its weighted form.

    With r = x - E[x | Z], s = y - E[y | Z] (regressions chosen by leave-one-out error,
    :mod:`jaxcd.citests.regressions`) and R = r s:

        T = sqrt(n) mean(R) / sd(R),

    standard normal under independence.  Weighted: the same for r s w(Z), with w = 1 and the signs
    of z_j less each eighth of its ranks, and the largest |T| against that of a normal vector of the
    same correlation.  A label stands as one indicator a level but the first, and the largest |T|
    counts.  Margin: |T| less its critical value.  Columns: all types, as x, y and in Z.
    Sensitivity: none is stated, so that a private run refuses the test.

    It assumes that both regressions are learned, together faster than 1 / sqrt n, and errors with
    four moments.  Their spread and shape may depend on Z.  It sees what moves E[r s] (weighted:
    E[r s w(Z)]), and no other dependence: y = x^2 + e with symmetric x escapes it; use KCI.

    Args:
        weighted: with weight functions of Z, for dependence that changes its sign with Z.
        rank: of the regressions, a whole number from 1.

    Raises:
        OptionError: an argument is out of its range.

    Source:
        Shah and Peters 2020; Scheidegger, Hoerrmann, Buehlmann 2022 for the weights (their fixed
        ones, seven a column).

    Example:
        >>> import jaxcd, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> z = rng.uniform(-2, 2, size=(400, 1))
        >>> values = np.sin(z) + (0.2 + np.abs(z)) * rng.normal(size=(400, 2))
        >>> data = jaxcd.Dataset.from_array(np.hstack([z, values]))
        >>> answer = jaxcd.ci_test(
        ...     data, "x2", "x3", given=["x1"], test=jaxcd.GCM(), budget=jaxcd.NO_PRIVACY
        ... )
        >>> answer.independent
        True
    """

    assumes = "regressions on Z that are learned, and errors with four moments; sees E[r s] only"
    claim = GuaranteeClaim(
        "no sensitivity stated: refused by every mechanism",
        proof="penalty and units are read off the data",
        proven=False,
        assumptions="-",
    )

    weighted: bool = False
    rank: int = 200
    by_column: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_whole("rank", self.rank, 1, cure="200 is usual")

    def residual(self, of: ResidualsInMemory, v: int, given: tuple[int, ...]) -> np.ndarray:
        columns = of.columns(v)
        if not given:
            return columns - columns.mean(axis=0)
        return of.regressions.residuals(given, columns)

    def block_residual(
        self, of: ResidualsInBlocks, v: int, given: tuple[int, ...]
    ) -> list[jax.Array]:
        columns = of.columns(v)
        return of.regressions.residuals(given, columns) if given else of.centred(columns)

    def weights(self, of: ResidualsInMemory, given: tuple[int, ...]) -> np.ndarray:
        one = np.ones((1, of.n))
        if not given or not self.weighted:
            return one
        scores = of.regressions.coordinates(given, "scores").T
        signs = np.sign(scores[:, None, :] - _CUTS[:, None]).reshape(-1, of.n)
        return np.concatenate([one, signs])

    def block_weights(self, of: ResidualsInBlocks, given: tuple[int, ...]) -> jax.Array | None:
        if not given or not self.weighted:
            return None
        scores = block_units.joined(of.blocks, of.regressions.scores(given))
        return of.blocks.rows(_signs, [scores])

    def answer(self, products: Products, alpha: float) -> tuple[float, float, float]:
        n = products.n
        mean, square = products.mean(), products.mean_square()
        spread = square - mean**2 if products.null is None else np.diag(products.null)
        proper = spread > _LOST * max(square.max(), 1e-300)
        scale = np.where(proper, np.sqrt(np.where(proper, spread, 1.0)), 1.0)
        z = np.where(proper, math.sqrt(n) * mean / scale, 0.0)
        largest = float(np.abs(z).max())
        if len(z) == 1:
            log_pvalue = tails.normal_two_sided_log_pvalue(z)[0]
            return float(z[0]), float(log_pvalue), largest - tails.normal_quantile(alpha / 2)
        if products.null is None:
            correlation = products.correlation(scale, proper)
        else:
            both = np.outer(proper, proper)
            correlation = np.where(both, products.null / np.outer(scale, scale), 0.0)
        null = _largest_of_normals(correlation)
        pvalue = (1 + np.sum(null >= largest)) / (len(null) + 1)
        critical = float(np.quantile(null, 1 - alpha, method="higher"))
        # One rule for both: what the p-value does not reject has no positive margin.
        margin = largest - critical
        return largest, math.log(pvalue), margin if pvalue <= alpha else min(margin, 0.0)


def _signs(scores: jax.Array, real: jax.Array) -> jax.Array:
    """1, and the sign of each column's distance to each eighth of its ranks."""
    signs = jnp.sign(scores[:, :, None] - _CUTS).reshape(len(scores), -1)
    return jnp.concatenate([jnp.ones((len(scores), 1)), signs], axis=1)
