r"""Spearman's conditional rank correlation with a cube-root score: the other ordinal test of
bounded sensitivity.

In each stratum k of the conditioning set let n_k be its size and E_k = sum_i a_i b_i, a and b the
doubled centred mid-ranks within the stratum (a_i = sum_j sgn(x_i - x_j)), and

    c(n, E) = sign(E)((n^3 + 3 |E|)^(1/3) - n),        T = sum_k c(n_k, E_k),

about E_k / n_k^2, i.e. rho_k n_k / 3, under independence, with null variance V = sum_k (n_k /
9)(1 - sum p^3)(1 - sum q^3), p and q the stratum's margins, the same as Kendall's.  The margin,
with z the normal quantile at 1 - alpha / 2, is

    q = |T| - z sqrt(max(V, 100)),    dependent iff q > 0.

**Sensitivity (replace-one, n public).**

* *E: adding a record to a stratum of n moves it by at most n (n + 1).*  Let the record have doubled
  ranks (a, b) among the others, |a|, |b| <= n, and a_i, b_i be those of the others among
  themselves, s_i = sgn(x_i - x), t_i = sgn(y_i - y).  Then E' - E = a b + sum s_i b_i + sum a_i
  t_i + sum s_i t_i.  As sum b_i = 0 and sum s_i = -a, sum s_i b_i is at most its value when the
  rows with the largest b_i lie above x: (n^2 - a^2) / 2 (b is majorised by its values without ties,
  n - 1, n - 3, ...; rows tied with x only interpolate).  So |E' - E| <= a b + (n^2 - a^2) / 2 +
  (n^2 - b^2) / 2 + n = n^2 + n - (a - b)^2 / 2 for one sign, and likewise with (a + b)^2 for the
  other.
* *c: adding a record moves it by less than 1.*  Let E >= 0, E' = E + d, |d| <= n (n + 1), r =
  (n^3 + 3 E)^(1/3) >= n.  If E' >= 0, then (n + 1)^3 + 3 E' <= n^3 + 3 E + 6 n^2 + 6 n + 1 <
  (r + 2)^3 and (n + 1)^3 + 3 E' >= n^3 + 3 E + 1 > r^3, so c' - c = (r' - n - 1) - (r - n) lies in
  (-1, 1).  If E' < 0, then |E'| <= n (n + 1) - E and c - c' = r - n + ((n + 1)^3 + 3 |E'|)^(1/3) -
  (n + 1), at most its value at |E'| = n (n + 1) - E.  That increases in E as long as the first cube
  n^3 + 3 E is below the second, (n + 1)^3 + 3 n (n + 1) - 3 E, i.e. on all of [0, n (n + 1)], up to
  (n^3 + 3 n^2 + 3 n)^(1/3) - n < 1. So replacing a record, within or between strata, moves T by
  less than 2: the same price as Kendall's square-root score.
* *V* moves by less than 4 / 9 and the threshold by z (4 / 9) / 20: :mod:`jaxcd.citests.kendall`.

Total: 2 + z / 45 = 2.044 at alpha = 0.05.

**Unconditional rho.**  For rho_n = 3 E / (n^3 - n), the d^2 formula where there are no ties,
replacing a record moves E by at most 2 n (n - 1), and rho_n by at most **6 / (n + 1), for every n
and with ties**.  Let N = n - 1, and let the replaced record pass p of the others in x and q in y (a
tie counts half).  Its own product a b moves by at most 2 N (p + q) - 4 p q, sum s_i b_i by at most
2 p (N - p), sum a_i t_i by at most 2 q (N - q), sum s_i t_i by at most 2 min(p + q, N); with
s = p + q the sum is at most 4 N s - 2 s^2 + 2 min(s, N), largest at s = N, where it is 2 N (N + 1).
Attained by (max, max) -> (max, min) on the diagonal. (PRIVACY.md A2 has 6 / m + o(1 / m), and 6 /
(m + 1) by exhaustion for m <= 7.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxcd.checks import check_whole
from jaxcd.citests.base import Evaluation
from jaxcd.citests.ordered_columns import SCORE_CLAIM, OrderedTest, evaluation_of_score
from jaxcd.ops import double_precision, spearman

__all__ = ["Spearman", "spearman_rho_sensitivity"]


def spearman_rho_sensitivity(n_samples: int) -> float:
    """6 / (n + 1): replace-one sensitivity of rho_n = 3 E / (n^3 - n), mid-ranks for ties;
    n_samples: public, at least 2.
    """
    check_whole("n_samples", n_samples, 2, cure="give the number of rows")
    return 6 / (n_samples + 1)


def _evaluate_tables(tables: np.ndarray, alpha: float) -> Evaluation:
    with double_precision():
        sums = spearman.spearman_sums(tables)
        score, variance = np.asarray(sums.cube_root), np.asarray(sums.variance)
    return evaluation_of_score(score, variance, alpha)


def _score_of_columns(
    x: np.ndarray, y: np.ndarray, stratum: np.ndarray, n_strata: int
) -> tuple[float, float]:
    part = spearman.rank_products(x, y, stratum, n_strata)
    with double_precision():
        score = float(np.sum(spearman.cube_root_score(part.size, part.product)))
    safe = np.maximum(part.size, 1) ** 3
    return score, float(np.sum(part.size * (part.squares_x / safe) * (part.squares_y / safe)))


@dataclass(frozen=True)
class Spearman(OrderedTest):
    r"""Spearman's rank correlation within strata, with a bounded sensitivity.

    With E_k the sum of products of ranks in stratum k, and n_k its number of rows:

        T = sum_k sign(E_k) ((n_k^3 + 3 |E_k|)^(1/3) - n_k)

    Statistic: T / sqrt(V), standard normal under independence.  Margin: |T| - z sqrt(max(V, 100)),
    in records. Columns: ordinal, or categorical in their declared order, counted through
    contingency tables; numeric columns as x and y (not in the conditioning set), in O(n log n).
    Ties stand at their mid-rank; a constant column is independent of everything. Strata of two
    records make the test slightly anticonservative, as they do Kendall's.

    V is at most n / 9, so with fewer than 900 rows the 100 in the margin binds, and the answer is
    "independent" more often than the p-value says; a copy of x is called dependent from 76 rows
    on.  Without a budget decide by ``.pvalue`` there, or take :class:`FisherZ` or :class:`KCI`.

    Guarantee:
        Relation: replace-one; n and the levels are public.  Sensitivity of the margin: 2 + z / 45
        records (2.044 at alpha 0.05). Event: none (the margin never leaves the session; mechanisms
        pay).  Proof: module docstring.

    Source:
        Spearman 1904; Kendall 1948, chapter 3, for ties; the score is ours.

    Example:
        >>> import jaxcd, numpy as np
        >>> x = np.random.default_rng(0).uniform(size=2_000)
        >>> y = np.exp(x) + np.random.default_rng(1).normal(size=2_000)
        >>> columns = {"x": jaxcd.Numeric(0, 1), "y": jaxcd.Numeric(-10, 10)}
        >>> data = jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=jaxcd.Domain(columns))
        >>> answer = jaxcd.ci_test(data, "x", "y", test=jaxcd.Spearman(), budget=jaxcd.NO_PRIVACY)
        >>> answer.independent, round(answer.statistic, 1)
        (False, 17.6)
    """

    assumes = "ordered levels; a dependence in one direction within strata"
    claim = SCORE_CLAIM

    _evaluate_tables = staticmethod(_evaluate_tables)
    _score_of_columns = staticmethod(_score_of_columns)
