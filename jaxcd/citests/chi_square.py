"""Pearson's chi-square and the likelihood ratio G on stratified tables.

Neither has a bounded sensitivity: one record in an otherwise empty row contributes (O - E)^2 / E of
order n.  They serve runs without privacy and searches on released tables; mechanisms that need a
sensitivity refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.citests.base import Evaluation, require_rows
from jaxcd.citests.tables import DiscreteTest, PreparedTables, discrete_cardinalities
from jaxcd.data.rows import Rows
from jaxcd.ops import association, double_precision, tails
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["ChiSquare", "GTest"]


def _evaluate(tables: np.ndarray, alpha: float, statistic: str) -> Evaluation:
    with double_precision():
        sums = association.chi_square_sums(tables)
        value, dof = np.asarray(getattr(sums, statistic)), np.asarray(sums.dof)
    log_pvalue = tails.chi_square_log_sf(value, dof)
    return Evaluation(value, log_pvalue, np.log(alpha) - log_pvalue)


class _TableTest(DiscreteTest):
    """Chi-square and G differ in one word."""

    _statistic: str

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTables:
        data = require_rows(data, self.name)
        cardinalities = discrete_cardinalities(
            data,
            self.name,
            "declare it categorical or ordinal, leave it out (data.select), or use KCI",
        )
        return PreparedTables(data, cardinalities, lambda t, a: _evaluate(t, a, self._statistic))


@dataclass(frozen=True)
class ChiSquare(_TableTest):
    r"""Pearson's chi-square test of conditional independence, for discrete columns.

    The statistic sums over strata of Z and over cells:

        X^2 = sum (O - E)^2 / E

    with O the counts and E = (row total) (column total) / (stratum total).  Under independence it
    is chi-square distributed with sum over strata of (nonempty rows - 1)(nonempty columns - 1)
    degrees of freedom.  Margin: log(alpha) - log(p-value).  Columns: categorical or ordinal.
    Sensitivity: unbounded, so that a private run refuses the test.

    Source:
        Agresti, *Categorical Data Analysis*, 3rd ed., section 3.2.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data, "tub", "lung", test=jaxcd.ChiSquare(), budget=jaxcd.NO_PRIVACY
        ... )
        >>> answer.independent, round(answer.pvalue, 3)
        (True, 0.601)
    """

    assumes = "enough rows in the cells of each stratum for a chi-square law"
    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="one record in an empty row",
        proven=False,
        assumptions="-",
    )

    _statistic = "chi_square"


@dataclass(frozen=True)
class GTest(_TableTest):
    r"""The likelihood-ratio test of conditional independence, for discrete columns.

    The statistic is G = 2 sum O log(O / E), with the counts O, the expected counts E and the
    degrees of freedom of :class:`ChiSquare`.  Margin: log(alpha) - log(p-value).  Columns:
    categorical or ordinal. Sensitivity: unbounded (of order log n), so that a private run refuses
    the test.

    Source:
        Agresti, *Categorical Data Analysis*, 3rd ed., section 3.2.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(2_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data, "lung", "xray", given=["either"], test=jaxcd.GTest(), budget=jaxcd.NO_PRIVACY
        ... )
        >>> answer.independent, round(answer.pvalue, 3)
        (True, 0.326)
    """

    assumes = "enough rows in the cells of each stratum for a chi-square law"
    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="its range grows with log n",
        proven=False,
        assumptions="-",
    )

    _statistic = "g"
