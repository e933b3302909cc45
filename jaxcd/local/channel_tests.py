r"""Chi-square tests on randomised records that ask about the true ones.

Randomising the conditioning columns mixes the strata, so that columns which are independent given
the true Z are dependent given the randomised Z: a test that ignores this rejects with certainty as
n grows.  Here the channel is taken off first.

*Tables.*  Let q be the probabilities of the cells (z, x, y) of a query as they are reported, p
those that would be reported if only Z were true.  Where columns are randomised by themselves q = B
p, with B the Kronecker product of the transposed channels of Z; X and Y are left as they are,
because noise of their own keeps independence given Z, and keeps dependence if their channels are
invertible.  Under combined k-ary response (keep the record with probability h, else report a
uniform one) all cells are mixed alike: q = h p + (1 - h) / cells, with p that of the true records.
In both cases p^ = A (q^ - f) is unbiased, A = B^{-1}.

*Statistic.*  For each stratum, with H the orthonormal contrasts of x and of y, s = H^T p H, t = 1^T
p 1, u = H^T p 1 and v = 1^T p H,

    D = s t - u v^T,

(r - 1)(c - 1) numbers that are zero iff x and y are independent in the stratum; they need no
division, so a stratum that is empty, or negative by noise, has one too.  With Omega = A (diag(q) -
q q^T) A^T / n the covariance of p^, in those coordinates,

    D^ = L + Q - E[Q],    Cov L = J Omega J^T,   Cov Q by Isserlis' theorem,

L linear in the error of p^, Q its square, uncorrelated for normal errors, J the Jacobian at the
fit.  T = D^T V^{-1} D over all strata is compared with chi-square with (r - 1)(c - 1) strata
degrees of freedom, V = Cov L + w Cov Q, w = tr Cov Q / tr Cov L between 1/4 and 1.  A quarter,
because J is taken at the fit, whose own error adds to Cov L; the whole where Q is as large as L,
that is where few records are kept: there a quarter rejects up to half of true nulls.  (Chosen by
simulation: 48 settings of 8 to 36 cells, 300 to 30,000 records and k-ary response at epsilon 1 and
2, by column and combined, reject .007 to .08 of true nulls at alpha .05, 150 draws each, with the
power of a quarter wherever that has its level.  Cov Q vanishes as n grows.)

*Fit.*  p and q in these formulas are those of a fit by independence within true strata, from
expectation-maximisation: each step divides the reported records among strata by Bayes' rule, and
replaces each stratum by the product of its margins.  Without noise T is Pearson's X^2, less a share
of the order of 1 / (records of a stratum), which is what Q adds to V.

Everything here is post-processing of records that were randomised before they were collected: run
it with NO_PRIVACY, the guarantee is the mechanism's.

Source:
    Chaudhuri and Mukerjee 1988 for inverse-channel estimates; Isserlis 1918; Neyman 1949 for
    quadratic forms of estimated constraints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxcd.citests import CITest, Evaluation, PreparedTest, Query
from jaxcd.citests.base import require_data
from jaxcd.citests.tables import CountingTest, TableShape, discrete_cardinalities
from jaxcd.data import Domain
from jaxcd.data.rows import Counted, Rows
from jaxcd.local.base import LocalMechanism
from jaxcd.local.channels import channels, check_invertible
from jaxcd.local.kary_response import CombinedKaryResponse, check_separable, kept
from jaxcd.local.randomising import record_facts
from jaxcd.ops import tails
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.standardising import quotient
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = ["ChannelAwareChiSquare", "MAX_QUERY_CELLS", "channel_chi_square"]

MAX_QUERY_CELLS = 1024
"""Queries with more joint cells are not tested: their covariance is a matrix of cells x cells."""

_STEPS = 50
_QUADRATIC_SHARE = 0.25
# Of the mean variance: directions with less have none but rounding.
_LEAST_VARIANCE = 1e-12
_LEAST_START = 1e-6
_LEAST_STEP = 1e-8


@dataclass(frozen=True, eq=False)
class _Blur:
    """What noise does to the cells of a query: q = matrix p + constant, the matrix (strata, strata)
    acting on strata.
    """

    matrix: np.ndarray
    inverse: np.ndarray
    constant: float = 0.0


def _split(p: np.ndarray) -> np.ndarray:
    """Each stratum, (K, r, c), replaced by the product of its margins; zero where it is empty."""
    total = p.sum(axis=(1, 2))[:, None, None]
    return quotient(p.sum(axis=2)[:, :, None] * p.sum(axis=1)[:, None, :], total)


def _fit(shares: np.ndarray, corrected: np.ndarray, blur: _Blur) -> np.ndarray:
    """Probabilities p with independence in each stratum that explain the reported shares, (K, r,
    c).
    """
    p = _split(np.maximum(corrected, 0.0)) + _LEAST_START / shares.size
    p /= p.sum()
    for _ in range(_STEPS):
        reported = np.tensordot(blur.matrix, p, axes=1) + blur.constant
        ratio = quotient(shares, reported)
        # A report that was drawn uniformly says nothing about the record.
        updated = _split(
            p * (np.tensordot(blur.matrix.T, ratio, axes=1) + blur.constant * ratio.sum())
        )
        updated /= updated.sum()
        moved = np.abs(updated - p).sum()
        p = updated
        if moved < _LEAST_STEP:
            break
    return p


def _coordinates(r: int, c: int) -> np.ndarray:
    """(r c, r c): the total, margin contrasts and interaction contrasts of a table, in the order of
    its cells.
    """
    rows, columns = (np.concatenate([np.ones((1, k)), contrast_basis(k).T]) for k in (r, c))
    return np.kron(rows, columns)


def channel_chi_square(
    tables: np.ndarray, blur: np.ndarray, *, constant: float = 0.0
) -> tuple[float, int]:
    """T and its degrees of freedom; 0 where no record was reported.

    Args:
        tables: counts of the randomised records by (stratum, x, y), (K, r, c), not negative.
        blur: B, (K, K), invertible: q = B p + constant, p the probabilities of (stratum, x, y)
            before the noise that is taken off.
        constant: f, what each cell gets whatever p is, from 0.

    Source:
        module docstring.
    """
    matrix = np.asarray(blur, dtype=np.float64)
    return _chi_square(
        np.asarray(tables, dtype=np.float64), _Blur(matrix, np.linalg.inv(matrix), constant)
    )


def _chi_square(tables: np.ndarray, blur: _Blur) -> tuple[float, int]:
    k, r, c = tables.shape
    n, dof = tables.sum(), k * (r - 1) * (c - 1)
    if dof == 0 or not n > 0:
        return 0.0, dof
    inverse, shares = blur.inverse, tables / n
    corrected = np.tensordot(inverse, shares - blur.constant, axes=1)
    fit = _fit(shares, corrected, blur)
    basis = _coordinates(r, c)
    observed, fitted = ((p.reshape(k, r * c) @ basis.T).ravel() for p in (corrected, fit))
    reported = (np.tensordot(blur.matrix, fit, axes=1) + blur.constant).ravel()
    maps = np.kron(inverse, basis)
    mean = maps @ reported
    omega = ((maps * reported) @ maps.T - np.outer(mean, mean)) / n

    # Where s, t, u and v of each stratum and contrast stand among the coordinates.
    rows, columns = (
        levels.ravel() for levels in np.meshgrid(np.arange(1, r), np.arange(1, c), indexing="ij")
    )
    first = np.arange(k)[:, None] * r * c
    s, t, u, v = (
        (first + offset).ravel() for offset in (rows * c + columns, 0 * rows, rows * c, columns)
    )
    contrasts = observed[s] * observed[t] - observed[u] * observed[v] - (omega[s, t] - omega[u, v])
    linear, quadratic = _linear(omega, fitted, (s, t, u, v)), _quadratic(omega, (s, t, u, v))
    # Their ratio between a least share and 1; where the linear part is the smaller it may vanish,
    # and is not divided by.
    first_order, second_order = float(np.trace(linear)), float(np.trace(quadratic))
    weight = (
        max(second_order / first_order, _QUADRATIC_SHARE) if first_order > second_order else 1.0
    )
    covariance = linear + weight * quadratic
    scale = np.trace(covariance) / dof
    if not scale > 0:
        return 0.0, dof
    covariance[np.diag_indices(dof)] += _LEAST_VARIANCE * scale
    return max(float(contrasts @ np.linalg.solve(covariance, contrasts)), 0.0), dof


_Places = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _linear(omega: np.ndarray, at: np.ndarray, places: _Places) -> np.ndarray:
    """J omega J^T, J the Jacobian of s t - u v at the given coordinates."""
    s, t, u, v = places
    moved = (
        at[t, None] * omega[s]
        + at[s, None] * omega[t]
        - at[v, None] * omega[u]
        - at[u, None] * omega[v]
    )
    return at[t] * moved[:, s] + at[s] * moved[:, t] - at[v] * moved[:, u] - at[u] * moved[:, v]


def _quadratic(omega: np.ndarray, places: _Places) -> np.ndarray:
    """The covariance of e_s e_t - e_u e_v for normal errors e with covariance omega."""
    s, t, u, v = places

    def of(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        return omega[np.ix_(a, c)] * omega[np.ix_(b, d)] + omega[np.ix_(a, d)] * omega[np.ix_(b, c)]

    mixed = of(s, t, u, v)
    return of(s, t, s, t) - mixed - mixed.T + of(u, v, u, v)


class _PreparedChannelTest(CountingTest):
    """Counts the randomised records as other table tests do, and takes the noise off each table."""

    def __init__(
        self,
        rows: Counted,
        cardinalities: Sequence[int],
        channels: Sequence[np.ndarray] | None,
        keep: float,
    ) -> None:
        """channels: of each column; None for combined k-ary response, which keeps a record with
        probability ``keep``.
        """
        super().__init__(rows, cardinalities)
        self._channels, self._keep = channels, keep

    def admissible(self, query: Query) -> bool:
        return self._n_strata((query.x, query.y, *query.given)) <= MAX_QUERY_CELLS

    def evaluate(self, bucket: TableShape, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        tables = self.tables(bucket, queries)
        statistic, dof = np.zeros((2, len(queries)))
        for place, query in enumerate(queries):
            blur = self._blur(query)
            rows, columns = (self._cardinalities[j] for j in (query.x, query.y))
            statistic[place], dof[place] = _chi_square(
                tables[place, : len(blur.matrix), :rows, :columns].astype(np.float64), blur
            )
        log_pvalue = tails.chi_square_log_sf(statistic, dof)
        return Evaluation(statistic, log_pvalue, np.log(alpha) - log_pvalue)

    def _blur(self, query: Query) -> _Blur:
        if self._channels is None:
            strata = self._n_strata(query.given)
            cells = strata * self._cardinalities[query.x] * self._cardinalities[query.y]
            every = np.eye(strata)
            return _Blur(self._keep * every, every / self._keep, (1 - self._keep) / cells)
        matrix: np.ndarray = np.ones((1, 1))
        inverse: np.ndarray = np.ones((1, 1))
        for j in query.given:
            # column by column: the product may be too near to singular for its inverse
            matrix = np.kron(matrix, self._channels[j].T)
            inverse = np.kron(inverse, np.linalg.inv(self._channels[j].T))
        return _Blur(matrix, inverse)

    def restrict(self, rows: np.ndarray) -> _PreparedChannelTest:
        return _PreparedChannelTest(
            self._rows.where(rows), self._cardinalities, self._channels, self._keep
        )


@dataclass(frozen=True)
class ChannelAwareChiSquare(CITest):
    r"""The chi-square test of independence of the *true* columns, on records that a local mechanism
    has randomised.

    T = D^T V^{-1} D, with D the products s t - u v^T of the contrasts of each corrected stratum and
    V their covariance, chi-square distributed with (levels of x - 1)(levels of y - 1)(strata)
    degrees of freedom under independence.  Margin: log(alpha) - log(p-value).

    Use it with ``Threshold`` and ``NO_PRIVACY`` on what ``randomise`` returned, with all its
    columns: the channel of one follows from the whole domain.  Missing cells that the domain
    declares are a level, with ``missing="ignore"`` too: whether a cell is missing was randomised
    with the rest.
    Sensitivity: unbounded, and not needed.

    Args:
        mechanism: what randomised the data: one that treats columns by themselves, or
            ``CombinedKaryResponse``.  Under other combined mechanisms the noise on the columns of a
            query depends on the true values of the rest.

    Raises:
        OptionError: ``mechanism`` is none.  DomainError: it has no channel for a part of the
            columns.

    Guarantee:
        That of the mechanism: post-processing of what each person reported.

    Source:
        module docstring.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(50_000, key=jax.random.key(0))
        >>> mechanism = jaxcd.local.KaryResponse(epsilon=16.0)
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> randomised = jaxcd.local.randomise(data, mechanism, noise=noise)
        >>> test = jaxcd.local.ChannelAwareChiSquare(mechanism)
        >>> answer = jaxcd.ci_test(randomised, "bronc", "dysp", test=test, budget=jaxcd.NO_PRIVACY)
        >>> answer.independent
        False
    """

    claim = GuaranteeClaim(
        "post-processing: reads randomised records",
        assumptions="those of the mechanism that randomised them",
    )

    mechanism: LocalMechanism

    takes_complete_cases = False

    def __post_init__(self) -> None:
        check_separable(self.mechanism)

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data = require_data(data, self.name)
        cardinalities = discrete_cardinalities(
            data, self.name, "cut it into declared bins before it is randomised"
        )
        self.mechanism.check(data.domain)
        if isinstance(self.mechanism, CombinedKaryResponse):
            keep = kept(self.mechanism.epsilon, math.prod(cardinalities))
            check_invertible([np.diag([1.0, keep])])
            return _PreparedChannelTest(data, cardinalities, None, keep)
        matrices = channels(self.mechanism, data.domain)
        check_invertible(matrices)
        return _PreparedChannelTest(data, cardinalities, matrices, 1.0)

    def view_cardinalities(self, domain: Domain) -> tuple[int, ...] | None:
        return None

    def record_facts(self, domain: Domain) -> Mapping[str, Any]:
        return record_facts(self.mechanism, domain)
