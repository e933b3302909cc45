"""Which score a search maximises: frozen configurations, which look at the data, or at a release,
once.

The same configuration serves data and releases.  On a release the score knows the noise, or works
on counts that were denoised first; either way it is post-processing.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jaxcd.checks import check_number
from jaxcd.data import Dataset, Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.scores.available_bic import AvailableBIC, available_tables
from jaxcd.scores.base import LocalScore
from jaxcd.scores.bdeu import BDeuScore
from jaxcd.scores.bic import BICScore
from jaxcd.scores.counts import Counts, DataCounts
from jaxcd.scores.gaussian_data import GaussianDataScore
from jaxcd.scores.interventional import on_natural_rows

__all__ = ["BIC", "BDeu", "ScoreConfig", "ScoredSource"]


class ScoredSource(Protocol):
    """What answers scores without rows: a release."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    def prepare_score(self, score: Any, *, max_parents: int | None = None) -> LocalScore:
        """The score on what it holds; OptionError for a score that it does not answer."""


class ScoreConfig(abc.ABC):
    """Configuration of a score that is a sum over nodes."""

    @property
    def name(self) -> str:
        """The score's name in reports."""
        return type(self).__name__

    @abc.abstractmethod
    def prepare(
        self, data: Dataset | ScoredSource, *, max_parents: int | None = None
    ) -> LocalScore:
        """The score on a data set, which is not private, or on a release, which has paid.

        Args:
            max_parents: the largest number of parents that a search tries; None for no limit but
                the release's own.

        Raises:
            OptionError: the score cannot be had from such a release.
            DomainError: it does not take the columns.
        """

    def record_facts(self, domain: Domain) -> Mapping[str, Any]:
        """What the score was told of how the records were made, for a result on these columns: of
        most nothing."""
        return {}


@dataclass(frozen=True)
class BIC(ScoreConfig):
    r"""The Bayesian information criterion of a graph, for discrete or numeric columns.

        BIC = maximised log likelihood - (c / 2) log(n) (number of free parameters)

    Discrete columns: multinomial (:class:`jaxcd.scores.BICScore`); with missing cells from the
    tables of available cases (:class:`jaxcd.scores.available_bic.AvailableBIC`).  Numeric columns:
    linear and normal (:class:`jaxcd.scores.GaussianDataScore`).  A histogram: the multinomial one
    on the denoised table.  Marginals: the set score, which has the noise's own price
    (:class:`jaxcd.releases.SetScore`).  Second moments: the normal one of the effective number of
    rows, at twice the penalty (:class:`jaxcd.releases.GaussianScore`).

    Args:
        penalty_discount: c, a positive factor of the penalty; above 1 for fewer edges.  For
            marginals it must be 1.

    Raises:
        OptionError: it is out of its range.

    Source:
        Schwarz 1978.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> for discount in 1.0, 20.0:
        ...     run = jaxcd.ges(data, score=jaxcd.BIC(discount), budget=jaxcd.NO_PRIVACY)
        ...     print(discount, run.graph.n_edges)
        1.0 4
        20.0 2
    """

    penalty_discount: float = 1.0

    def __post_init__(self) -> None:
        check_number("penalty_discount", self.penalty_discount, 0, ends="(]", cure="1 is the BIC's")

    def prepare(
        self, data: Dataset | ScoredSource, *, max_parents: int | None = None
    ) -> LocalScore:
        """The score on data or a release."""
        penalty = float(self.penalty_discount)
        if not isinstance(data, Dataset):
            return data.prepare_score(self, max_parents=max_parents)

        def score_of(part: Dataset) -> LocalScore:
            limit = _limit(part, max_parents)
            if not any(column.is_discrete for column in part.domain.columns.values()):
                return GaussianDataScore(part, max_parents=limit, penalty=penalty)
            counts = _counts(part, self.name)
            if any(part.leaves_out):
                tables = available_tables(part)
                return AvailableBIC(part.names, tables, max_parents=limit, penalty=penalty)
            return BICScore(part.names, counts, max_parents=limit, penalty=penalty)

        return on_natural_rows(data, score_of)


@dataclass(frozen=True)
class BDeu(ScoreConfig):
    """The log marginal likelihood of discrete columns under a uniform Dirichlet prior.

    It takes discrete data (:class:`jaxcd.scores.BDeuScore`), and a histogram, on the denoised
    table.  Declared levels that nobody holds have no part in the prior.

    Args:
        equivalent_sample_size: the weight of the prior, positive, in records.

    Raises:
        OptionError: it is out of its range.

    Source:
        Heckerman, Geiger, Chickering 1995.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> run = jaxcd.exact_search(data, score=jaxcd.BDeu(), budget=jaxcd.NO_PRIVACY)
        >>> print(run.graph)
        Pollution --> Cancer
        Smoker --> Cancer
        Cancer --> Xray
        Cancer --> Dyspnoea
    """

    equivalent_sample_size: float = 10.0

    def __post_init__(self) -> None:
        check_number(
            "equivalent_sample_size", self.equivalent_sample_size, 0, ends="(]", cure="10 is usual"
        )

    def prepare(
        self, data: Dataset | ScoredSource, *, max_parents: int | None = None
    ) -> LocalScore:
        """The score on discrete data or a histogram."""
        if not isinstance(data, Dataset):
            return data.prepare_score(self, max_parents=max_parents)
        if any(data.leaves_out):
            raise OptionError(
                "score: BDeu has no form for available cases; use BIC(), or read missing cells "
                'as a level: missing="level"'
            )

        def score_of(part: Dataset) -> LocalScore:
            return BDeuScore(
                part.names,
                _counts(part, self.name),
                max_parents=_limit(part, max_parents),
                equivalent_sample_size=float(self.equivalent_sample_size),
            )

        return on_natural_rows(data, score_of)


def _counts(data: Dataset, score: str) -> Counts:
    """The counts of discrete data."""
    numeric = [name for name, column in data.domain.columns.items() if not column.is_discrete]
    if numeric:
        cure = "declare bins for it" if len(numeric) < data.n_columns else "use BIC()"
        mixed = (
            "discrete and numeric columns together"
            if len(numeric) < data.n_columns
            else "numeric columns"
        )
        raise DomainError(
            f"score: {score} does not take {mixed}, and {numeric[0]!r} is numeric; {cure}"
        )
    return DataCounts(data)


def _limit(data: Dataset | ScoredSource, max_parents: int | None) -> int:
    return max(len(data.names) - 1, 0) if max_parents is None else max_parents
