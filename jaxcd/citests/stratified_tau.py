r"""Kendall's tau within cells of Z: a private test of residual dependence for continuous Z.

The declared range of every numeric column of Z is cut into b equal bins, and the columns' bins (and
the levels of discrete columns of Z) make cells of about ``rows_per_cell`` rows: for q numeric
columns b is the largest number with b^q cells that full, and for q > 1 the even number above.  With
S_f the concordant less the discordant pairs of x and y in cell f, and n_f its rows,

    T = alpha sum_f S_f / n_f - beta sum_c S_c / n_c,

c the coarse cells, of two bins of each numeric column together.  With (alpha, beta) = (1, 0) what a
trend of x and y leaves within a cell of width w makes a bias of the order w^2; where Z has two
numeric columns or more, (4/3, 1/3) cancels it up to the order w^4 (Richardson's extrapolation: the
coarse cells have four times the bias).  Differences within a cell stand in the place of residuals,
and their signs in the place of products of residuals: of a product that is clipped to its sign no
range has to be declared, and a record that is replaced moves the sum by 3.

*Null.*  If x and y are independent given Z, and their laws do not change within a coarse cell, T
has mean 0 and, given the cells' sizes, the variance

    V = sum_i A_i^2 / 9 + (7/9) sum_{i<j} a_ij^2,
    a_ij = alpha [i, j in one fine cell] / n_f - beta [in one coarse cell] / n_c,

A_i = sum_j a_ij: the sign of a pair has variance 1, two pairs with one row in common have the
covariance 1/9, and others 0 (Kendall 1938).  It does not depend on the laws of x and y.  Rows that
agree in x, or in y, are put in an order that is drawn without the data, one for each column, which
keeps that null.

**Sensitivity (replace-one; n, the bounds and the options are public).**  Adding a record to a cell
of n rows:

* *T*: S changes by c, |c| <= n, and |S| <= n (n - 1) / 2, so S / n by |c / (n + 1) - S / (n (n +
  1))| <= (3 n - 1) / (2 (n + 1)) < 3/2 (for n = 0 by 0).  Replacing is removing and adding: **3
  (alpha + beta)**.
* *V*, in sums over the cells, with N = n_c and F the number of fine cells of c that have rows:

      sum_i A_i^2 = alpha^2 sum_f u(n_f) - 2 alpha beta (1 - 1/N)(N - F) + beta^2 u(N),
      sum_{i<j} a_ij^2 = alpha^2 sum_f (1 - 1/n_f) / 2 - alpha beta (N - F) / N
                         + beta^2 (1 - 1/N) / 2,

  u(n) = (n - 1)^2 / n, which rises by 1 - 1 / (n (n + 1)), in [0, 1).  (1 - 1/N)(N - F) rises by
  (N - F) / (N (N + 1)), and by N / (N + 1) more where F stays: in [0, 1].  1 - 1/n rises by
  1 / (n (n + 1)), in [0, 1/2] (by 0 at n = 0).  (N - F) / N rises by F / (N (N + 1)) <= 1/2 where F
  stays, and falls by (N - F) / (N (N + 1)) <= 1/6 where it rises.  So V rises by at most

      [alpha^2 + beta^2 + 7 (alpha^2 / 4 + alpha beta / 6 + beta^2 / 4)] / 9

  and falls by at most [2 alpha beta + 7 alpha beta / 2] / 9; a replaced record moves it by at most
  the sum of both: **11/36, and .9064 with extrapolation**.
* *Margin* |T| - z sqrt(max(V, 100)): 3 (alpha + beta) + z / 20 of V's.  Margins with and without
  extrapolation are stated in units of their sensitivity, which is therefore 1.

*Answers of its own.*  T and k V, k = (alpha + beta) / (3 Delta_V), are released with Laplace noise
of one scale b = (10/9) 3 (alpha + beta) / epsilon (their L1 sensitivity over epsilon), so that nine
tenths of the price are T's.  The p-value is that of |T + noise| for a normal law of the released
variance with Laplace noise of scale b: post-processing, and of its level at every epsilon.

Source:
    Kendall 1938; Shah and Peters 2020 for residual products; PRIVACY.md AA.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from jaxcd.checks import check_whole, hold_python_numbers
from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, Sensitivity, require_data
from jaxcd.citests.covariance_norm import rounding_pad
from jaxcd.citests.tables import MAX_CELLS
from jaxcd.data import Domain, Numeric
from jaxcd.data.column_types import Column
from jaxcd.data.rows import Rows
from jaxcd.errors import DomainError
from jaxcd.ops import concordance, tails
from jaxcd.privacy import Accountant, Relation, laplace
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim

__all__ = ["StratifiedTau"]

_FLOOR = 100.0
#: Numeric columns of Z beyond which its cells are too wide at any n.
_MOST_NUMERIC = 3
# Orders of rows that agree are drawn from this, without the data.
_ORDER = 20_247
#: Of the L1 sensitivity of what is released, V's part as a share of T's.
_SHARE = 1 / 9


class _Weights(NamedTuple):
    """Of fine and coarse cells."""

    fine: float
    coarse: float

    @property
    def score_moves(self) -> float:
        """The sensitivity of T."""
        return 3 * (self.fine + self.coarse)

    @property
    def variance_moves(self) -> float:
        """The sensitivity of V."""
        own, both = self.fine**2 + self.coarse**2, self.fine * self.coarse
        return (own + 7 * (own / 4 + both / 6) + 2 * both + 3.5 * both) / 9

    def margin_moves(self, z: float) -> float:
        """The sensitivity of the margin, in records."""
        return self.score_moves + z * self.variance_moves / (2 * math.sqrt(_FLOOR))


_PLAIN, _EXTRAPOLATED = _Weights(1.0, 0.0), _Weights(4 / 3, 1 / 3)


class _Cut(NamedTuple):
    """How the columns of Z are cut: the number of bins of each numeric one, of cells, the weights,
    and whether that is worth a query.
    """

    n_bins: int
    n_cells: int
    weights: _Weights
    enough: bool


def _cut(kinds: Sequence[Column], n_samples: int, rows_per_cell: int) -> _Cut:
    """From public facts alone."""
    n_levels = math.prod(column.cardinality or 1 for column in kinds)
    n_numeric = sum(not column.is_discrete for column in kinds)
    if not n_numeric:
        return _Cut(1, n_levels, _PLAIN, n_levels <= MAX_CELLS)
    n_bins = 0
    while (n_bins + 1) ** n_numeric * n_levels * rows_per_cell <= n_samples:
        n_bins += 1
    enough = n_bins > 1 and n_numeric <= _MOST_NUMERIC
    n_bins = max(n_bins, 2)  # a subset of the rows is asked what all of them are
    if n_numeric == 1:
        return _Cut(n_bins, n_bins * n_levels, _PLAIN, enough)
    n_bins += n_bins % 2
    return _Cut(n_bins, n_bins**n_numeric * n_levels, _EXTRAPOLATED, enough)


class _Score(NamedTuple):
    """T, V and the weights they were made with."""

    score: float
    variance: float
    weights: _Weights


class _PreparedTau(PreparedTest):
    """Columns, their declared kinds, and the orders of rows that agree."""

    def __init__(
        self, columns: Sequence[np.ndarray], domain: Domain, rows_per_cell: int, test: str
    ) -> None:
        self.n_samples = len(columns[0])
        self._columns = tuple(columns)
        self._domain = domain
        self._rows_per_cell = rows_per_cell
        self._test = test
        self._ranks: dict[int, np.ndarray] = {}

    def _cut(self, given: tuple[int, ...]) -> _Cut:
        kinds = [self._domain[self._domain.names[v]] for v in given]
        for v, kind in zip(given, kinds, strict=True):
            _check_bounds(self._test, self._domain.names[v], kind)
        return _cut(kinds, self.n_samples, self._rows_per_cell)

    def admissible(self, query: Query) -> bool:
        return self._cut(query.given).enough

    def bucket(self, query: Query) -> Hashable:
        return query.given

    def batch_size(self, bucket: Hashable) -> int:
        return 1 << 16

    def _rank(self, v: int) -> np.ndarray:
        """Places of the rows in the order of a column, without ties: float64 (n,)."""
        if v not in self._ranks:
            order = np.random.default_rng([_ORDER, v]).permutation(self.n_samples)
            rank = np.empty(self.n_samples)
            rank[np.lexsort((order, self._columns[v]))] = np.arange(self.n_samples)
            self._ranks[v] = rank
        return self._ranks[v]

    def _cells(self, given: tuple[int, ...], cut: _Cut, together: int) -> np.ndarray:
        """The cell of each row, ``together`` bins as one: int64 (n,)."""
        cell = np.zeros(self.n_samples, dtype=np.int64)
        for v in given:
            kind, values = self._domain[self._domain.names[v]], self._columns[v]
            if isinstance(kind, Numeric) and kind.lower is not None and kind.upper is not None:
                share = (np.clip(values, kind.lower, kind.upper) - kind.lower) / (
                    kind.upper - kind.lower
                )
                part = np.minimum((share * cut.n_bins).astype(np.int64), cut.n_bins - 1) // together
                cell = cell * (cut.n_bins // together) + part
            else:
                cell = cell * (kind.cardinality or 1) + values.astype(np.int64)
        return cell

    def _score(self, query: Query) -> _Score:
        """T and V of a query that is admissible."""
        cut = self._cut(query.given)
        x, y = self._rank(query.x), self._rank(query.y)
        fine = self._cells(query.given, cut, 1)
        parts = concordance.concordance(x, y, fine, cut.n_cells)
        a, b = cut.weights
        full = np.maximum(parts.size, 1)
        score = a * float(np.sum(parts.concordance / full))
        squares = a * a * float(np.sum((full - 1) ** 2 / full))
        pairs = a * a * float(np.sum(1 - 1 / full)) / 2
        if b:
            coarse = self._cells(query.given, cut, 2)
            both = concordance.concordance(x, y, coarse, cut.n_cells)
            size = np.maximum(both.size, 1)
            place = np.zeros(cut.n_cells, dtype=np.int64)
            place[fine] = coarse
            # Rows less cells that have rows.
            rest = both.size - np.bincount(place[parts.size > 0], minlength=cut.n_cells)
            score -= b * float(np.sum(both.concordance / size))
            squares += float(
                np.sum(b * b * (size - 1) ** 2 / size - 2 * a * b * (1 - 1 / size) * rest)
            )
            pairs += float(np.sum(b * b * (1 - 1 / size) / 2 - a * b * rest / size))
        return _Score(score, squares / 9 + 7 * pairs / 9, cut.weights)

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        critical, rows = tails.normal_quantile(alpha / 2), []
        for query in queries:
            score, variance, weights = self._score(query)
            z = score / math.sqrt(variance) if variance > 0 else 0.0
            margin = abs(score) - critical * math.sqrt(max(variance, _FLOOR))
            rows.append((z, margin / weights.margin_moves(critical)))
        z, margins = np.array(rows, dtype=np.float64).T
        return Evaluation(z, tails.normal_two_sided_log_pvalue(z), margins)

    def buy(
        self, query: Query, accountant: Accountant, *, epsilon: float, alpha: float
    ) -> Evaluation:
        score, variance, weights = self._score(query)
        unit = _SHARE * weights.score_moves / weights.variance_moves
        sensitivity = (1 + _SHARE) * weights.score_moves
        released = laplace(
            accountant,
            np.array([score, unit * variance]),
            sensitivity=sensitivity,
            pad=max(1.0, unit) * rounding_pad(self.n_samples),
            epsilon=epsilon,
            label="score and variance",
        )
        scale = sensitivity / epsilon
        noisy, spread = float(released[0]), max(float(released[1]) / unit, 0.0)
        log_pvalue = tails.normal_laplace_log_pvalue(noisy, spread, scale)
        total = math.sqrt(spread + 2 * scale**2)
        z = noisy / total if total > 0 else 0.0
        return Evaluation(
            np.array([z]), np.array([log_pvalue]), np.array([math.log(alpha) - log_pvalue])
        )

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        columns = [column[rows] for column in self._columns]
        return _PreparedTau(columns, self._domain, self._rows_per_cell, self._test)


def _check_bounds(test: str, name: str, kind: Column) -> None:
    if isinstance(kind, Numeric) and (kind.lower is None or kind.upper is None):
        raise DomainError(
            f"{test} cuts the columns that it conditions on into bins of their declared range, but "
            f"{name!r} has none; declare it numeric with lower and upper"
        )


@dataclass(frozen=True)
class StratifiedTau(CITest):
    r"""Finds dependence of numeric columns in one direction given numeric Z, privately, from a
    thousand rows.

    With S_f the concordant less the discordant pairs of x and y in cell f of Z, and n_f its rows:

        T = sum_f S_f / n_f,

    extrapolated to cells of no width where Z has two numeric columns or more (module docstring).
    Statistic: T / sqrt(V), standard normal under independence given Z whatever the laws of x and y.
    Margin: |T| - z sqrt(max(V, 100)), in units of its sensitivity.  Columns: numeric, ordinal, or
    categorical in their declared order; numeric columns of Z with declared bounds.

    :func:`jaxcd.ci_test` and :class:`NoisyThreshold` let the test release its answers itself: T and
    V with Laplace noise, and a null that knows the noise, so that the level holds at every epsilon.
    The statistic of such an answer is (T + noise) over its standard deviation, its margin log alpha
    - log p.

    It assumes that little of the trend of x and y in Z is left within a cell: hardly anything for
    one numeric column from 200 rows on, of smooth trends for two from 1,000 and for three from
    10,000 on.  More than three numeric columns are not conditioned on: such queries count as
    "dependent".  It sees a dependence that turns the same way throughout; y = x^2 + e escapes it,
    use :class:`StratifiedRanks`.

    Args:
        rows_per_cell: about how many rows a cell has where Z is uniform, a whole number from 2.
            Queries that leave fewer than two bins of each numeric column are not answered, and
            count as "dependent".

    Raises:
        OptionError: an argument is out of its range.
        DomainError: naming a numeric column of Z without bounds.

    Guarantee:
        Relation: replace-one; n, the bounds and the options are public.  Sensitivity: 3 of T (5
        where it is extrapolated), 11/36 of V (.9064), 1 of the margin, by scaling.  Event: none for
        the margin (it never leaves the session; mechanisms pay), a ``PureEvent`` for an answer of
        its own.  Proof: the docstring of :mod:`jaxcd.citests.stratified_tau`.

    Source:
        Kendall 1938; PRIVACY.md AA.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> z, e, f = rng.uniform(-1, 1, 1000), rng.normal(size=1000), rng.normal(size=1000)
        >>> values = np.column_stack([np.sin(3 * z) + e, z**2 + 0.5 * e + f, z])
        >>> columns = {"x": jaxcd.Numeric(), "y": jaxcd.Numeric(), "z": jaxcd.Numeric(-1, 1)}
        >>> data = jaxcd.Dataset.from_array(values, domain=jaxcd.Domain(columns))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "x",
        ...     "y",
        ...     given=["z"],
        ...     test=jaxcd.StratifiedTau(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, answer.pvalue < 0.001
        (False, True)
    """

    assumes = "that little is left of Z within its cells; sees dependence in one direction"
    claim = GuaranteeClaim(
        "margin sensitivity 1 in its own unit: 3 + z 11/720 records, 5 + z .9064/20 where Z has "
        "two numeric columns or more; answers of its own epsilon-DP",
        assumptions=PUBLIC + "; bounds of Z are public",
    )

    rows_per_cell: int = 5

    buys_answers = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_whole("rows_per_cell", self.rows_per_cell, 2, cure="5 is usual")

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data = require_data(data, self.name)
        columns = [data.column(name).astype(np.float64) for name in data.names]
        return _PreparedTau(columns, data.domain, self.rows_per_cell, self.name)

    def check_search(self, domain: Domain | None, *, max_level: int | None) -> None:
        if domain is None or max_level == 0:
            return
        for name in domain.names:
            _check_bounds(self.name, name, domain[name])

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: Relation
    ) -> Sensitivity | None:
        return Sensitivity(1.0, rounding_pad(n_samples), "jaxcd.citests.stratified_tau")
