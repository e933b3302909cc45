"""Pearson's chi-square and the likelihood ratio G on stratified tables.

Neither has a bounded sensitivity: one record in an otherwise empty row contributes (O - E)^2 / E of
order n.  They serve runs without privacy and searches on released tables; mechanisms that need a
sensitivity refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.citests.base import Evaluation, require_data
from jaxcd.citests.tables import DiscreteTest, PreparedTables, discrete_cardinalities
from jaxcd.data import Dataset
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

    def prepare(self, data: Dataset | None, *, key: jax.Array | None = None) -> PreparedTables:
        data = require_data(data, self.name)
        cardinalities = discrete_cardinalities(
            data, self.name, "declare it categorical or ordinal, or use FisherZ"
        )
        return PreparedTables(
            data.codes, cardinalities, lambda t, a: _evaluate(t, a, self._statistic)
        )


@dataclass(frozen=True)
class ChiSquare(_TableTest):
    r"""Pearson's test: X^2 = sum over strata and cells of (O - E)^2 / E, chi-square distributed
    under independence.

    Degrees of freedom: sum over strata of (nonempty rows - 1)(nonempty columns - 1).  Margin:
    log(alpha) - log(p-value). Columns: categorical or ordinal.  Sensitivity: unbounded.
    Source: Agresti, *Categorical Data Analysis*, 3rd ed., section 3.2.
    """

    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="one record in an empty row",
        proven=False,
        assumptions="-",
    )

    _statistic = "chi_square"


@dataclass(frozen=True)
class GTest(_TableTest):
    r"""The likelihood-ratio test: G = 2 sum O log(O / E), with the degrees of freedom of
    :class:`ChiSquare`.

    Margin: log(alpha) - log(p-value).  Columns: categorical or ordinal.  Sensitivity: unbounded (of
    order log n). Source: Agresti, *Categorical Data Analysis*, 3rd ed., section 3.2.
    """

    claim = GuaranteeClaim(
        "no bounded sensitivity: refused by every mechanism",
        proof="its range grows with log n",
        proven=False,
        assumptions="-",
    )

    _statistic = "g"
