r"""BIC of the *true* columns, from records that a known channel has randomised.

A search by the usual BIC on randomised records learns the graph of the reports: randomising a
column that separates two others leaves them dependent. Here the channel is taken off every table
first, and what that adds to the variance is paid for.  With r = A q^ the corrected table of the
columns S, A the inverse of their channel and q^ the reported frequencies, and p the projection of r
onto the simplex,

    F(S) = n sum_c h_c(r_c) - (1/2) [ sum_c i_c max(log(n / i_c), 2) - log n ],
    local(v, P) = F(v P) - F(P),
    F({}) = 0.

*Inflation.*  n Var(r_c) = ((A o A) q)_c - p_c^2, A o A with squared entries and q the reports that
p makes.  True records would have p_c (1 - p_c) of it; the rest x_c >= 0 is the noise's (law of
total variance: r is unbiased given the true record).  By the delta method an error of variance V
adds V / (2 p) to p log p, so that n sum r log r is too large by half of cells - 1 + sum_c x_c / p_c
on average: noise makes gains as if every cell were 1 + x_c / p_c cells.

*Cells that noise hides*, below t_c = 2 sqrt(x_c / n), twice its standard deviation, have no such
expansion, and x_c / p_c has no bound.  So

    h_c(r) = r log r from t_c on, and below it the tangent there, r (1 + log t_c) - t_c,
    i_c = 1 + x_c / max(p_c, t_c),

finite for negative r, and linear where noise decides.  Corrected tables agree on their margins, so
that errors of first order cancel in the gain of a needless arc where no cell is hidden.  They would
not if each table were projected onto the simplex by itself: what a negative cell lends comes from
others, in each table differently.

*Price.*  For a cell n reports are worth n / i_c true records.  The log likelihood ratio is the gain
over i_c and pays log(n / i_c) / 2, so the gain pays i_c log(n / i_c) / 2, and never less than i_c,
the price of AIC.  (For n below e^2 the least price is that of BIC.)

*Without noise* x = t = 0 and i = 1, so that the price is (log n / 2)(cells - 1): the score is BIC,
exactly.  With it the score is still a difference of one function of sets, so Markov equivalent DAGs
have equal totals: for x -> y covered, with the same other parents P, local(x, P) + local(y, P x) =
F(P x y) - F(P), which is symmetric in x and y. Where no true cell is empty, a needless arc's price
grows as log n and its gain does not; a needed one's gain grows as n. Where true cells are empty, as
when a column is a function of others, hidden cells among its neighbours may still gain an arc that
is false.

Everything here is post-processing of records that were randomised before they were collected: run
it with NO_PRIVACY, the guarantee is the mechanism's.

Source:
    Schwarz 1978; Chaudhuri and Mukerjee 1988 for inverse-channel estimates; Miller 1955 for the
    bias of entropies; Kass and Wasserman 1995 for the number of records in the price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import xlogy

from jaxcd.checks import a_type, check_number, shown_count
from jaxcd.data import Dataset, Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.local.base import LocalMechanism
from jaxcd.local.channels import channels, check_invertible
from jaxcd.local.ibu import through
from jaxcd.local.kary_response import CombinedKaryResponse, check_separable, kept
from jaxcd.local.randomising import record_facts
from jaxcd.ops.nearest_table import nearest_table
from jaxcd.scores import LocalScore, ScoreConfig, ScoredSource
from jaxcd.scores.base import BatchedScore, several_levels

__all__ = ["MAX_FAMILY_CELLS", "ChannelAwareBIC", "ChannelScore", "continued_xlogx"]

MAX_FAMILY_CELLS = 1 << 20
"""Families with more joint cells are worth minus infinity: their tables, which are dense once the
noise is off, would not be written out.
"""

_JOINT_CELLS = 1 << 16  # up to here all tables are sums of one
_LEAST_PRICE = 2.0  # of AIC, in halves
_HIDDEN = 2.0  # standard deviations of the noise, of which 1 to 3 do equally well

Columns = tuple[int, ...]


def continued_xlogx(x: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """x log x from the threshold on, and its tangent there below: convex, finite for every x;
    elementwise.

    Args:
        x: any real numbers.
        threshold: not negative; 0 for x log x itself, x not negative.
    """
    least = np.maximum(threshold, np.finfo(np.float64).tiny)
    return np.where(
        x >= least,
        xlogy(np.maximum(x, least), np.maximum(x, least)),
        x * (1 + np.log(least)) - least,
    )


@dataclass(frozen=True, eq=False)
class _ColumnNoise:
    """What channels of single columns do to tables of frequencies, (k_1, ..., k_s)."""

    channels: tuple[np.ndarray, ...]
    inverses: tuple[np.ndarray, ...]

    def off(self, shares: np.ndarray, columns: Columns) -> np.ndarray:
        """The unbiased estimate of the true frequencies."""
        return through(shares, [self.inverses[v] for v in columns])

    def variance(self, p: np.ndarray, columns: Columns) -> np.ndarray:
        """n times the variance of that estimate where the true frequencies are p."""
        reported = through(p, [self.channels[v] for v in columns])
        return through(reported, [self.inverses[v] ** 2 for v in columns]) - p**2


@dataclass(frozen=True)
class _RecordNoise:
    """Combined k-ary response: whole records are kept with probability ``keep``, else uniform."""

    keep: float

    def off(self, shares: np.ndarray, columns: Columns) -> np.ndarray:
        """The unbiased estimate of the true frequencies."""
        return (shares - (1 - self.keep) / shares.size) / self.keep

    def variance(self, p: np.ndarray, columns: Columns) -> np.ndarray:
        """n times the variance of that estimate where the true frequencies are p."""
        reported = self.keep * p + (1 - self.keep) / p.size
        return reported * (1 - reported) / self.keep**2


@final
class ChannelScore(BatchedScore):
    """The score of :class:`ChannelAwareBIC` on one data set: local(v, P) = F(v P) - F(P); equal for
    Markov equivalent DAGs.

    Args:
        data: what ``randomise`` returned.
        mechanism: what randomised it, as for :class:`ChannelAwareBIC`.
        max_parents: the largest number of parents that a search tries.
        penalty: a factor of the price, positive.

    Raises:
        DomainError: the mechanism does not take the columns.
        PrivacyError: the mechanism does not take the columns.
        OptionError: an option is out of its range.

    Source:
        module docstring.
    """

    def __init__(
        self,
        data: Dataset,
        mechanism: LocalMechanism,
        *,
        max_parents: int = 3,
        penalty: float = 1.0,
    ) -> None:
        super().__init__(data.names, max_parents=max_parents)
        check_separable(mechanism)
        self._cardinalities = mechanism.check(data.domain)
        self._n = data.n_samples
        self._penalty = check_number("penalty", penalty, 0, ends="(]", cure="1 is usual")
        self._noise: _ColumnNoise | _RecordNoise
        if isinstance(mechanism, CombinedKaryResponse):
            keep = kept(mechanism.epsilon, math.prod(self._cardinalities))
            check_invertible([np.diag([1.0, keep])])
            self._noise = _RecordNoise(keep)
        else:
            matrices = channels(mechanism, data.domain)
            check_invertible(matrices)
            self._noise = _ColumnNoise(
                matrices, tuple(np.linalg.inv(matrix) for matrix in matrices)
            )
        self._codes = data.codes
        self._joint: np.ndarray | None = None
        if math.prod(self._cardinalities) <= _JOINT_CELLS:
            self._joint = self._counts(tuple(range(len(self._cardinalities))))
        self._values: dict[Columns, float] = {(): 0.0}

    def candidates(self, node: int) -> Columns:
        """All others but constants: an arc from or to a column of one level says nothing."""
        return several_levels(self._cardinalities, node)

    def locals(self, node: int, families: Sequence[Columns]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),); -inf above
        :data:`MAX_FAMILY_CELLS`.
        """
        return np.array([self._difference(node, parents) for parents in families], dtype=np.float64)

    def value(self, columns: Columns) -> float:
        """F of a set of columns (sorted positions), in nats; each is computed once.

        Raises:
            DomainError: it has more than :data:`MAX_FAMILY_CELLS` cells.
        """
        if columns not in self._values:
            if not self._n_cells(columns) <= MAX_FAMILY_CELLS:
                raise DomainError(
                    f"columns: {shown_count(self._n_cells(columns))} cells are too many for a "
                    f"table, at most {MAX_FAMILY_CELLS:,}; name fewer"
                )
            table, inflation, threshold = self.corrected(columns)
            least = min(_LEAST_PRICE, math.log(self._n))
            price = float(
                (inflation * np.maximum(np.log(self._n / inflation), least)).sum()
            ) - math.log(self._n)
            self._values[columns] = (
                self._n * float(continued_xlogx(table, threshold).sum()) - self._penalty / 2 * price
            )
        return self._values[columns]

    def corrected(self, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """r, i and t of a set of columns (sorted positions): the table with the noise off,
        inflations and thresholds, one axis a column.
        """
        table = self._noise.off(self._counts(columns) / self._n, columns)
        p = nearest_table(table, 1.0)
        variance = np.maximum(self._noise.variance(p, columns), 0.0)
        added = np.maximum(variance - p * (1 - p), 0.0)
        threshold = _HIDDEN * np.sqrt(added / self._n)
        below = np.maximum(p, threshold)
        return (
            table,
            1 + np.divide(added, below, out=np.zeros_like(added), where=below > 0),
            threshold,
        )

    def _difference(self, node: int, parents: Columns) -> float:
        family = tuple(sorted((*parents, node)))
        if self._n_cells(family) > MAX_FAMILY_CELLS:
            return -math.inf
        return self.value(family) - self.value(tuple(sorted(parents)))

    def _n_cells(self, columns: Columns) -> int:
        return math.prod(self._cardinalities[v] for v in columns)

    def _counts(self, columns: Columns) -> np.ndarray:
        """The table of the randomised records."""
        if self._joint is not None:
            return np.asarray(
                self._joint.sum(axis=tuple(v for v in range(self._joint.ndim) if v not in columns))
            )
        shape = tuple(self._cardinalities[v] for v in columns)
        cells = np.ravel_multi_index(tuple(self._codes[:, v] for v in columns), shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


@dataclass(frozen=True)
class ChannelAwareBIC(ScoreConfig):
    r"""BIC of the *true* columns, on records that a local mechanism has randomised, for ``ges``,
    ``exact_search``, ``mmhc`` and ``order_mcmc``.

    local(v, P) = F(v P) - F(P),  F(S) = n sum_c h_c(r_c) - (penalty_discount / 2) [ sum_c i_c
    max(log(n / i_c), 2) - log n ],

    r the table of S with the noise taken off, h_c(r) = r log r (its tangent where noise hides the
    cell), and i_c >= 1 what the noise multiplies the effect of sampling by; BIC where there is no
    noise.  Markov equivalent DAGs have equal scores.  Use it with ``NO_PRIVACY`` on what
    ``randomise`` returned; with ``mmhc`` give ``test=ChannelAwareChiSquare(mechanism)`` too, whose
    usual tests do not know the noise.

    Missing cells that the domain declares are a level, as for that test; and all columns must be
    there that were randomised together, from which the channel follows.

    It is cautious: where noise hides an edge the edge is left out, and at small epsilon nothing is
    left.

    Args:
        mechanism: what randomised the data: one that treats columns by themselves, or
            ``CombinedKaryResponse``.  Under other combined mechanisms the noise on some columns
            depends on the true values of the rest.
        penalty_discount: a factor of the price, positive; below 1 for more edges, of which more are
            false.

    Raises:
        OptionError: ``mechanism`` is none, or ``penalty_discount`` out of its range.  DomainError:
            the mechanism has no channel for a part of the columns.

    Guarantee:
        That of the mechanism: post-processing of what each person reported.

    Source:
        module docstring.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
        >>> mechanism = jaxcd.local.KaryResponse(epsilon=25.0)
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> randomised = jaxcd.local.randomise(data, mechanism, noise=noise)
        >>> score = jaxcd.local.ChannelAwareBIC(mechanism)
        >>> print(jaxcd.ges(randomised, score=score, budget=jaxcd.NO_PRIVACY).graph)
        Burglary --> Alarm
        Earthquake --> Alarm
        Alarm --> JohnCalls
        Alarm --> MaryCalls
    """

    mechanism: LocalMechanism
    penalty_discount: float = 1.0

    def __post_init__(self) -> None:
        check_separable(self.mechanism)
        check_number("penalty_discount", self.penalty_discount, 0, ends="(]", cure="1 is usual")

    def prepare(
        self, data: Dataset | ScoredSource, *, max_parents: int | None = None
    ) -> LocalScore:
        """The score on randomised records; ``max_parents`` None for no limit.

        Raises:
            OptionError: for a release.
            DomainError: the mechanism does not take the columns.
            PrivacyError: the mechanism does not take the columns.
        """
        if not isinstance(data, Dataset):
            raise OptionError(
                f"data: {a_type(data)} has no randomised records; give the Dataset that "
                "randomise returned, or use BIC()"
            )
        limit = max(data.n_columns - 1, 0) if max_parents is None else max_parents
        return ChannelScore(
            data, self.mechanism, max_parents=limit, penalty=float(self.penalty_discount)
        )

    def record_facts(self, domain: Domain) -> Mapping[str, Any]:
        """What holds for the records if they were randomised as ``mechanism`` says."""
        return record_facts(self.mechanism, domain)
