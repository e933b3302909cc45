r"""BGe of numeric columns: the log marginal likelihood of a normal model with a normal-Wishart
prior.

Prior of the d columns: precision W ~ Wishart(alpha_w, T^{-1}), mean ~ N(0, (alpha_mu W)^{-1}),
T = t I, t = alpha_mu (alpha_w - d - 1) / (alpha_mu + 1). With n rows, mean m and scatter S = sum
(x - m)(x - m)^T, R = T + S + n alpha_mu / (n + alpha_mu) m m^T, and a = alpha_w - d, the rows of l
columns Y have

    log p(Y) = (l / 2) log(alpha_mu / (n + alpha_mu)) - (l n / 2) log pi + log G_l((n + a + l) / 2)
    - log G_l((a + l) / 2)
               + (l (a + l) / 2) log t - ((n + a + l) / 2) log |R_Y|,

G_l the multivariate gamma function, and local(v, P) = log p(P and v) - log p(P).  A difference of
one function of sets, so that it is score-equivalent; the degrees of freedom grow with l because a
sub-matrix of a Wishart matrix's inverse has fewer.

Exact moments are not private.  On data this score is the reference of a run without privacy; on
moments that were computed from a release it is post-processing.

Source:
    Geiger and Heckerman 2002; Kuipers, Moffa, Heckerman 2014, who correct the power of |T| and |R|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import gammaln

from jaxcd.checks import a_type, check_number, is_whole
from jaxcd.data import Dataset
from jaxcd.errors import DataError, OptionError
from jaxcd.ops import standardising
from jaxcd.scores.base import BatchedScore, LocalScore
from jaxcd.scores.configurations import ScoreConfig, ScoredSource
from jaxcd.scores.interventional import on_natural_rows

__all__ = ["BGe", "BGeScore"]


@final
class BGeScore(BatchedScore):
    """BGe from the mean and the covariance of the columns; made by :meth:`of_data` or of any
    moments.

    Args:
        names: the d variables.
        mean: (d,).
        covariance: (d, d), that of the rows with denominator n, positive semidefinite.
        n_samples: n, at least 1.
        alpha_mu: the weight of the prior mean in rows, positive.
        alpha_w: the Wishart's degrees of freedom, above d + 1; None for d + alpha_mu + 1.
        max_parents: the largest number of parents that a search tries.

    Raises:
        OptionError: an option is out of its range.
        DataError: the moments are not finite or of another shape.
    """

    def __init__(
        self,
        names: Sequence[str],
        mean: np.ndarray,
        covariance: np.ndarray,
        *,
        n_samples: int,
        alpha_mu: float = 1.0,
        alpha_w: float | None = None,
        max_parents: int = 3,
    ) -> None:
        d = len(tuple(names))
        weight = check_number("alpha_mu", alpha_mu, 0, ends="(]", cure="1 is usual")
        freedom = (
            d + weight + 1
            if alpha_w is None
            else check_number(
                "alpha_w", alpha_w, 0, ends="(]", cure="the number of columns + 2 is usual"
            )
        )
        if not freedom > d + 1:
            raise OptionError(
                f"alpha_w = {alpha_w!r} is not above the number of columns + 1, {d + 1}; leave it "
                "out for the usual one"
            )
        if not is_whole(n_samples, 1):
            raise OptionError(
                f"n_samples = {n_samples!r} is not a whole number from 1; give the number of rows"
            )
        m, c = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
        if (
            m.shape != (d,)
            or c.shape != (d, d)
            or not (np.isfinite(m).all() and np.isfinite(c).all())
        ):
            raise DataError(
                f"mean and covariance must be finite and of shapes ({d},) and ({d}, {d}), not "
                f"{m.shape} and {c.shape}"
            )
        super().__init__(names, max_parents=max_parents)
        n = float(n_samples)
        prior = weight * (freedom - d - 1) / (weight + 1)
        self._scatter = (
            prior * np.eye(d) + n * (c + c.T) / 2 + n * weight / (n + weight) * np.outer(m, m)
        )
        self._n, self._excess, self._log_prior = n, freedom - d, math.log(prior)
        self._constant = math.log(weight / (n + weight)) / 2 - n / 2 * math.log(math.pi)

    @classmethod
    def of_data(
        cls,
        data: Dataset,
        *,
        alpha_mu: float = 1.0,
        alpha_w: float | None = None,
        standardised: bool = True,
        max_parents: int = 3,
    ) -> BGeScore:
        """BGe of numeric columns: not private, for runs without privacy.

        Args:
            standardised: whether columns are first shifted and scaled to mean 0 and variance 1, so
                that the score does not depend on their units: the prior variances are all equal.  A
                constant column keeps its unit.

        Raises:
            DomainError: naming the column, where one is not numeric.
        """
        values = np.column_stack([data.values(name) for name in data.names])
        # A constant column is moved to 0, as standardising does: no rounding of a mean is taken for
        # a spread.
        if standardised:
            values = standardising.standardised(values)
        mean = values.mean(axis=0)
        centred = standardising.centred(values)
        covariance = centred.T @ centred / len(values)
        return cls(
            data.names,
            mean,
            covariance,
            n_samples=data.n_samples,
            alpha_mu=alpha_mu,
            alpha_w=alpha_w,
            max_parents=max_parents,
        )

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        scores = np.empty(len(families))
        sizes = np.array([len(family) for family in families])
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            variables = np.array([(*families[place], node) for place in places.tolist()])
            blocks = self._scatter[variables[:, :, None], variables[:, None, :]]
            pivots = 2 * np.log(np.diagonal(np.linalg.cholesky(blocks), axis1=1, axis2=2))
            # log |R_P|, and log |R_{P, v}| - log |R_P|
            below, last = (pivots[:, :-1].sum(axis=1), pivots[:, -1])
            freedom = self._excess + size + 1
            # G_{p+1}(x) / G_p(x - 1/2) = pi^{p/2} G(x), of which the power of pi cancels between
            # prior and posterior.
            scores[places] = (
                self._constant
                + gammaln((self._n + freedom) / 2)
                - gammaln(freedom / 2)
                + (freedom + size) / 2 * self._log_prior
                - (self._n + freedom) / 2 * last
                - below / 2
            )
        return scores


@dataclass(frozen=True)
class BGe(ScoreConfig):
    """The log marginal likelihood of numeric columns under a normal-Wishart prior
    (:class:`jaxcd.scores.BGeScore`).

    Args:
        alpha_mu: the weight of the prior mean in rows, positive.
        alpha_w: the Wishart's degrees of freedom, above the number of columns + 1; None for the
            number of columns + alpha_mu + 1.
        standardised: whether columns are first scaled to variance 1.

    Raises:
        OptionError: an option is out of its range.

    Source:
        Geiger and Heckerman 2002; Kuipers, Moffa, Heckerman 2014.
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None
    standardised: bool = True

    def __post_init__(self) -> None:
        check_number("alpha_mu", self.alpha_mu, 0, ends="(]", cure="1 is usual")
        if self.alpha_w is not None:
            check_number(
                "alpha_w", self.alpha_w, 0, ends="(]", cure="the number of columns + 2 is usual"
            )

    def prepare(
        self, data: Dataset | ScoredSource, *, max_parents: int | None = None
    ) -> LocalScore:
        """The score on numeric data."""
        if not isinstance(data, Dataset):
            raise OptionError(
                f"score: BGe needs the rows themselves, not {a_type(data)}; use BIC() on "
                "a release of second moments"
            )
        return on_natural_rows(
            data,
            lambda part: BGeScore.of_data(
                part,
                alpha_mu=self.alpha_mu,
                alpha_w=self.alpha_w,
                standardised=self.standardised,
                max_parents=max(part.n_columns - 1, 0) if max_parents is None else max_parents,
            ),
        )
