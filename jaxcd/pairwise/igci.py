r"""IGCI: the cause is the variable whose distribution looks less like an image of the other's.

If y = f(x) is invertible with little noise, and f was chosen without regard to the density of x,
then log|f'| is uncorrelated with that density, and the entropy relative to a reference measure
falls from cause to effect:

    C(x -> y) = E log|f'(x)| = S(y) - S(x) < 0  after both are scaled to the reference measure.

Two estimates of C(x -> y) - C(y -> x): by slopes between neighbours in each direction, or by
entropies from spacings.
"""

from __future__ import annotations

import enum

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from jaxcd.checks import check_choice, check_key_or_none
from jaxcd.errors import DataError
from jaxcd.ops.standardising import standardised
from jaxcd.pairwise._checks import check_not_private, check_pair, min_max_scaled
from jaxcd.pairwise.result import Direction, PairResult
from jaxcd.privacy import Budget, Ledger, NoPrivacy
from jaxcd.privacy.claims import GuaranteeClaim, claiming

__all__ = ["Estimator", "Reference", "igci", "slope_score", "spacing_entropy"]


class Reference(enum.Enum):
    """The reference measure, and so the scale.

    UNIFORM: both variables on [0, 1] by their minimum and maximum.  GAUSSIAN: mean 0 and standard
    deviation 1.
    """

    UNIFORM = "uniform"
    GAUSSIAN = "gaussian"


class Estimator(enum.Enum):
    """SLOPE: mean log slope between neighbours (:func:`slope_score`).  SPACING: difference of
    entropies (:func:`spacing_entropy`).
    """

    SLOPE = "slope"
    SPACING = "spacing"


@claiming(
    GuaranteeClaim(
        "no bounded sensitivity: refused under a budget",
        proof="slopes and spacings are read off the data",
        proven=False,
        assumptions="-",
    )
)
def igci(
    x: ArrayLike,
    y: ArrayLike,
    *,
    budget: Budget | NoPrivacy,
    reference: Reference = Reference.UNIFORM,
    estimator: Estimator = Estimator.SLOPE,
    key: jax.Array | None = None,
) -> PairResult:
    r"""Information-geometric causal inference: x -> y if C(x -> y) < C(y -> x).

    SLOPE: C(x -> y) = mean log|dy / dx| over neighbours in x, and C(y -> x) likewise in y.
    SPACING: C(x -> y) = S(y) - S(x) and C(y -> x) = S(x) - S(y), with S the entropy estimated from
    spacings.

    Args:
        x: one number a record, n at least 8.
        y: one number a record, as many as x.
        budget: ``jaxcd.NO_PRIVACY``.  One record between two neighbours that almost coincide moves
            log|dy / dx| without bound, so no noise makes this private; over locally privatised
            records it is post-processing and costs nothing more.
        reference: what x and y are scaled to first: ``Reference.UNIFORM`` takes minimum 0 and
            maximum 1, ``Reference.GAUSSIAN`` mean 0 and deviation 1.
        estimator: ``Estimator.SLOPE`` or ``Estimator.SPACING``, as above.
        key: not used; IGCI has no randomness.

    Returns:
        The scores, ``forward`` = C(x -> y) and ``backward`` = C(y -> x), with ``margin`` =
        abs(forward - backward), all in nats; UNDECIDED where they are equal.

    Raises:
        DataError: as :func:`check_pair` says, or the values are tied so that no two neighbours
            differ in both variables.
        OptionError: an option is not of its kind.
        SensitivityError: the budget is finite.

    Source:
        Daniusis, Janzing, Mooij, Zscheischler, Steudel, Zhang, Schoelkopf 2010; Janzing et al.
        2012; ties as in Mooij, Peters, Janzing, Zscheischler, Schoelkopf 2016.

    Example:
        >>> import jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(size=500)
        >>> print(jaxcd.igci(x, x**3, budget=jaxcd.NO_PRIVACY).direction)
        Direction.X_TO_Y
    """
    check_choice("reference", reference, Reference)
    check_choice("estimator", estimator, Estimator)
    check_key_or_none(key)
    check_not_private(
        budget, method="igci", reason="a slope between two near records has no bounded sensitivity"
    )
    scale = min_max_scaled if reference is Reference.UNIFORM else standardised
    first, second = (scale(column) for column in check_pair(x, y))
    if estimator is Estimator.SLOPE:
        forward, backward = slope_score(first, second), slope_score(second, first)
    else:
        forward = spacing_entropy(second) - spacing_entropy(first)
        backward = -forward
    direction = Direction.of_scores(forward, backward)
    ledger = Ledger(budget)
    return PairResult(
        direction=direction,
        margin=0.0 if direction is Direction.UNDECIDED else abs(forward - backward),
        forward=forward,
        backward=backward,
        confidence=1.0,
        cost=ledger.guarantee,
        spent=ledger.spent,
        info={
            "method": "igci",
            "reference": reference.value,
            "estimator": estimator.value,
            "n_samples": len(first),
        },
    )


def slope_score(x: np.ndarray, y: np.ndarray) -> float:
    r"""sum_i m_i log|(y_{i+1} - y_i) / (x_{i+1} - x_i)| / sum_i m_i over the distinct values
    x_1 < x_2 < ... .

    m_i is how many records have x_i, and y_i the y of the first of them in the order of the
    records; terms with y_{i+1} = y_i are left out of both sums.  Without ties this is the mean log
    slope over n - 1 neighbours.

    Raises:
        DataError: no term is left.

    Source:
        Mooij et al. 2016, the slope estimator for repeated values.
    """
    values, starts, counts = np.unique(x, return_index=True, return_counts=True)
    rise, run = np.abs(np.diff(y[starts])), np.diff(values)
    kept = rise > 0
    if not kept.any():
        raise DataError(
            "x and y are tied so that no two neighbours differ in both: a slope needs nearly "
            "continuous values; use Estimator.SPACING, "
            "or reci, which takes ties"
        )
    return float(np.average(np.log(rise[kept]) - np.log(run[kept]), weights=counts[:-1][kept]))


def spacing_entropy(values: np.ndarray) -> float:
    r"""S = psi(n) - psi(1) + (1 / (n - 1)) sum_i log(v_{i+1} - v_i) over the sorted values, with
    zero spacings left out, in nats.

    Source:
        Kraskov, Stoegbauer, Grassberger 2004; as used by Daniusis et al. 2010.
    """
    spacings = np.diff(np.sort(values))
    n = len(values)
    return float(
        special.digamma(n) - special.digamma(1) + np.log(spacings[spacings > 0]).sum() / (n - 1)
    )
