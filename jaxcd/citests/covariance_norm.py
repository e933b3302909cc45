r"""The covariance norm: a nominal test of bounded sensitivity.

With C_k = O_k - r_k c_k^T / n_k the within-stratum cross-covariance (in records) of the one-hot
vectors of x and y,

    G = sqrt(sum_k |C_k|_F^2)   (CovarianceNorm),
    M = |sum_k C_k|_F           (PooledCovariance).

Under independence G^2 and M^2 have the exact permutation mean V = sum_{n_k >= 2} A_k B_k /
(n_k - 1), with A_k = n_k - |r_k|^2 / n_k, and G^2 is asymptotically a weighted sum of chi-squares
with variance 2 W^2, W = sqrt(sum_k w_k^2), w_k = n_k |Sigma_x|_F |Sigma_y|_F with Sigma = diag
p - p p^T (M^2: with W_1 = sum_k w_k).  As (chi2_d quantile - d) / sqrt(d) is largest at d = 1, one
constant c = (quantile of chi2_1 at 1 - alpha) - 1 serves all degrees of freedom, and the margin is

    q = G - sqrt(max(V + c W, tau^2)),    dependent iff q > 0.

**Sensitivity (replace-one, n public).**  Adding a record (x, y) to a block of n records changes C
by (n / (n + 1)) a b^T with a = e_x - p, b = e_y - q, |a|^2 = 1 - 2 p_x + |p|^2 <= 2, so by less
than 2 in norm.

* *Between strata* the two changes lie in orthogonal blocks: |G - G'| < sqrt(2^2 + 2^2) = 2 sqrt 2;
  |M - M'| < 4.
* *Within a stratum* C' - C = ((n - 1) / n)(a' b'^T - a b^T), a and b centred at the untouched
  records.  Write A = |a|^2 and so on; |a' b'^T - a b^T|^2 = A' B' + A B - 2 <a, a'><b, b'>.  If
  x = x' this is A |b - b'|^2 <= 4, likewise if y = y'.  Otherwise <a, a'> = (A + A') / 2 - 1; with
  s = 2 - (A + A') / 2, alpha = (A' - A) / 2 (t, beta for b) it equals 6 - 2 s - 2 t + 2 alpha beta,
  and |alpha| <= min(s, 2 - s) gives at most 6.  So |G - G'|, |M - M'| <= sqrt 6.
* *V*: adding a record gives A' = A + rho alpha, rho = n / (n + 1), 0 <= alpha <= 2 - a, a = A /
  n <= 1 - 1 / n.  For n >= 2, V' - V = rho (a beta + b alpha) + rho^2 alpha beta / n - a b n /
  (n - 1).  Upwards: put alpha = 2 - a, beta = 2 - b; the result is bilinear in (a, b) in [0, 1]^2
  with corner values 4 rho^2 / n < 1, 2 n (n + 2) / (n + 1)^2 < 2 and 2 rho + rho^2 / n - n /
  (n - 1) < 2. Downwards: V' - V >= -a b n / (n - 1) >= -(n - 1) / n > -1.  For n = 0, 1: V = 0 and
  0 <= V' <= 1.  Replacing is removing and adding: |V - V'| < 3.
* *w*: |Sigma|_F <= 1/2 (|Sigma|_F^2 = s - 2 sum p^3 + s^2 <= s - s^2, s = |p|^2, because sum
  p^3 >= s^2) and |Sigma|_F <= trace = 1 - s, while alpha <= 1 + s; so alpha <= 2 - sigma, sigma =
  |Sigma|_F in [0, 1/2].  Adding a record adds a positive semidefinite rank-one term of norm rho
  alpha to the scatter n Sigma.  Upwards: w' - w <= rho^2 (alpha sigma_y + beta sigma_x) + rho^2
  alpha beta / (n + 1) - rho sigma_x sigma_y, bilinear once alpha = 2 - sigma_x, beta = 2 - sigma_y
  are put in, with corner values at most 16 / 27, 1.25 and 1.25.  Downwards: w' >= w n / (n + 1) >=
  w - 1/4. Replacing in one stratum: |w - w'| <= 1.5, and so for W and W_1.  Between strata one w_k
  moves by -1.25 .. 0.25 and one by -0.25 .. 1.25: |W_1 - W_1'| <= 1.5, and, W being increasing in
  each w_k >= 0, W' <= |(.., w_1 + 0.25, w_2 + 1.25, ..)| <= W + 1.275.
* *Threshold*: sqrt(max(., tau^2)) is 1 / (2 tau)-Lipschitz, so it moves by less than (3 + 1.5 c) /
  (2 tau).

tau = (3 + 1.5 c) / (2 (3 - 2 sqrt 2)) makes the total **at most 3 for G and at most 4 + (3 - 2 sqrt
2) = 4.172 for M**, at every alpha.  Everything is total: no stratum is dropped, nothing is divided
by a data-dependent quantity that can be zero.

Source:
    PRIVACY.md section M; there V's decrease is bounded by 0.482 on a grid, here by 1 in one line,
    which costs tau^2 = 448 instead of 387 at alpha = 0.05.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.citests.base import Evaluation, Sensitivity, require_rows
from jaxcd.citests.tables import DiscreteTest, PreparedTables, discrete_cardinalities
from jaxcd.data.rows import Rows
from jaxcd.ops import association, double_precision, tails
from jaxcd.privacy import Relation
from jaxcd.privacy.claims import GuaranteeClaim

__all__ = [
    "CovarianceNorm",
    "PooledCovariance",
    "critical_constant",
    "evaluation_of_norm",
    "rounding_pad",
]

_PROOF = "jaxcd.citests.covariance_norm"
_BETWEEN = 2 * math.sqrt(2)


def critical_constant(alpha: float) -> float:
    """c = (1 - alpha quantile of chi-square with one degree of freedom) - 1, at least 0."""
    return max(tails.normal_quantile(alpha / 2) ** 2 - 1, 0.0)


def _threshold_floor(alpha: float) -> float:
    """tau, in records: the smallest critical value, chosen so that the threshold moves by at most
    3 - 2 sqrt 2.
    """
    return (3 + 1.5 * critical_constant(alpha)) / (2 * (3 - _BETWEEN))


def rounding_pad(n_samples: int) -> float:
    """Bound on the rounding error of a margin in records: sums of at most 2^18 non-negative terms
    below n in float64 (2^-35 n), and their square roots; 2^-30 n is generous; 1e-7 at the least."""
    return max(1e-7, n_samples * 2.0**-30)


def _evaluate(tables: np.ndarray, alpha: float, pooled: bool) -> Evaluation:
    with double_precision():
        sums = association.covariance_sums(tables)
        norm = np.asarray(sums.pooled if pooled else sums.norm)
        spread = np.asarray(sums.spread_pooled if pooled else sums.spread)
        mean = np.asarray(sums.mean)
    return evaluation_of_norm(norm, mean, spread, alpha=alpha, floor=_threshold_floor(alpha))


def evaluation_of_norm(
    norm: np.ndarray, mean: np.ndarray, spread: np.ndarray, *, alpha: float, floor: float
) -> Evaluation:
    """The p-value of a norm whose square has this null mean and spread, and its margin: the norm
    less sqrt(max(mean + c spread, floor^2)).
    """
    squared = mean + critical_constant(alpha) * spread
    margin = norm - np.sqrt(np.maximum(squared, floor**2))
    # Satterthwaite: norm^2 ~ scale * chi2_dof with the null's mean V and variance 2 W^2.
    proper = (mean > 0) & (spread > 0)
    mean, spread = np.where(proper, mean, 1.0), np.where(proper, spread, 1.0)
    log_pvalue = np.where(
        proper, tails.chi_square_log_sf(norm**2 * mean / spread**2, (mean / spread) ** 2), 0.0
    )
    return Evaluation(norm, log_pvalue, margin)


class _CovarianceTest(DiscreteTest):
    _pooled: bool
    _between: float

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTables:
        data = require_rows(data, self.name)
        cardinalities = discrete_cardinalities(data, self.name, "declare it categorical or ordinal")
        return PreparedTables(data, cardinalities, lambda t, a: _evaluate(t, a, self._pooled))

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: Relation
    ) -> Sensitivity | None:
        return Sensitivity(self._between + 3 - _BETWEEN, rounding_pad(n_samples), _PROOF)


@dataclass(frozen=True)
class CovarianceNorm(_CovarianceTest):
    r"""The covariance of two discrete columns, for any pattern of dependence within strata.

    With O_k the table of stratum k, r_k and c_k its row and column totals and n_k its total:

        G = sqrt(sum_k |O_k - r_k c_k^T / n_k|_F^2)

    Statistic: G, in records.  Margin: q_G = G - sqrt(max(V + c W, tau^2)).  P-value:
    Satterthwaite's approximation. Columns: categorical or ordinal, levels declared.

    Guarantee:
        Relation: replace-one; n and the levels are public.  Sensitivity of the margin: 3 records.
        Event: none (the margin never leaves the session; mechanisms pay).  Proof: module docstring.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "smoke",
        ...     "lung",
        ...     test=jaxcd.CovarianceNorm(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, round(answer.margin)
        (False, 865)
    """

    assumes = "levels; any pattern of dependence within strata"
    claim = GuaranteeClaim(
        f"margin sensitivity {_BETWEEN + 3 - _BETWEEN:.4g} records, at every alpha"
    )

    _pooled = False
    _between = _BETWEEN


@dataclass(frozen=True)
class PooledCovariance(_CovarianceTest):
    r"""The covariance of two discrete columns, pooled over strata with a common dependence.

    With O_k the table of stratum k, r_k and c_k its row and column totals and n_k its total:

        M = |sum_k (O_k - r_k c_k^T / n_k)|_F

    Statistic: M, in records.  Margin: q_M = M - sqrt(max(V + c W_1, tau^2)).  P-value:
    Satterthwaite's approximation. Columns: categorical or ordinal, levels declared.

    Guarantee:
        Relation: replace-one; n and the levels are public.  Sensitivity of the margin: 4.172
        records. Event: none. Proof: module docstring.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "lung",
        ...     "xray",
        ...     given=["either"],
        ...     test=jaxcd.PooledCovariance(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, answer.margin < 0
        (True, True)
    """

    assumes = "levels; a dependence that the strata have in common"
    claim = GuaranteeClaim(f"margin sensitivity {4.0 + 3 - _BETWEEN:.4g} records, at every alpha")

    _pooled = True
    _between = 4.0
