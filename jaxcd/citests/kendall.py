r"""Kendall's conditional tau with the square-root score: the ordinal test of bounded sensitivity.

In each stratum k of the conditioning set let n_k be its size and S_k its concordant minus
discordant pairs (ties count 0), and

    h(n, S) = sign(S) (sqrt(n^2 + 2 |S|) - n),        T = sum_k h(n_k, S_k),

about S_k / n_k under independence, with null variance V_h = sum_k (n_k / 9)(1 - sum p^3)(1 - sum
q^3), p and q the stratum's margins (without ties and for large strata n / 9).  The margin, with z
the normal quantile at 1 - alpha / 2, is

    q = |T| - z sqrt(max(V_h, 100)),    dependent iff q > 0.

**Sensitivity (replace-one, n public).**

* *h: adding a record moves it by less than 1.*  Let S >= 0, S' = S + c, |c| <= n.  If S' >= 0, then
  (n + 1)^2 + 2 S' <= n^2 + 2 S + 4 n + 1 <= (sqrt(n^2 + 2 S) + 2)^2, so h' - h <= 1; and
  (n + 1)^2 + 2 S' >= n^2 + 2 S + 1 gives h' - h > -1.  If S' < 0, then |S'| <= n - S and h - h' =
  [sqrt(n^2 + 2 S) - n] + [sqrt((n + 1)^2 + 2 |S'|) - (n + 1)] is at most its value at |S'| = n - S,
  which increases in S on [0, n] up to sqrt(n^2 + 2 n) - n < 1.  So replacing a record, within or
  between strata, moves T by less than 2 (PRIVACY.md B4).
* *V_h: replacing a record moves it by less than 4 / 9.*  Write 9 V_h = A v with A = n (1 - P),
  v = 1 - Q, P = sum p^3, Q = sum q^3. Adding a record to a level with r records: A' - A = 1 + [n (2
  n + 1) P - 3 r^2 - 3 r - 1] / (n + 1)^2 <= 1 + 2 P; and, as P >= (r / n)^3, (n + 1)^2 (A' - A) >=
  n^2 + 2 n + (2 n + 1) r^3 / n^2 - 3 r^2 - 3 r = ((2 n + 1) / n^2)(r - n)^2 (r + n (n + 2) / (2
  n + 1)) >= 0. Similarly v' - v = [(3 n^2 + 3 n + 1) Q - 3 s^2 - 3 s - 1] / (n + 1)^3 <= 3 Q /
  (n + 1).
  Upwards: A' v' - A v = (A' - A) v' + A (v' - v) <= (1 + 2 P)(1 - Q) + 3 (1 - P) Q + 9 P Q /
  (n + 1), bilinear in (P, Q) with corner values 1, 3, 3 and 9 / (n + 1): at most 3 for n >= 2 (for
  n = 1 the new value is at most 9 / 8, for n = 0 it is 0). Downwards: A' >= A and A <= n give A' v'
  - A v >= n (v' - v) >= -n [3 s^2 (1 - s / n) + 3 s (1 - s^2 / n^2) + 1] / (n + 1)^3 >= -1, since
  the bracket is at most (4 / 9) n^2 + 1.16 n + 1.  So V_h changes by at most +1/3 or -1/9 per
  record added. (PRIVACY.md M has this constant for large n and by exhaustion; the above holds for
  every n.)
* *Threshold*: sqrt(max(., 100)) is 1/20-Lipschitz: z (4 / 9) / 20.

Total: 2 + z / 45 = 2.044 at alpha = 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxcd.citests.base import Evaluation
from jaxcd.citests.ordered_columns import SCORE_CLAIM, OrderedTest, evaluation_of_score
from jaxcd.ops import association, concordance, double_precision

__all__ = ["KendallTau"]


def _evaluate_tables(tables: np.ndarray, alpha: float) -> Evaluation:
    with double_precision():
        sums = association.kendall_sums(tables)
        score, variance = np.asarray(sums.square_root), np.asarray(sums.variance)
    return evaluation_of_score(score, variance, alpha)


def _score_of_columns(
    x: np.ndarray, y: np.ndarray, stratum: np.ndarray, n_strata: int
) -> tuple[float, float]:
    part = concordance.concordance(x, y, stratum, n_strata)
    with double_precision():
        score = float(np.sum(association.square_root_score(part.size, part.concordance)))
    return score, float(np.sum(part.size / 9 * (1 - part.cubes_x) * (1 - part.cubes_y)))


@dataclass(frozen=True)
class KendallTau(OrderedTest):
    r"""Kendall's tau within strata, for columns with an order, with a bounded sensitivity.

    With S_k the concordant less the discordant pairs of stratum k, and n_k its number of rows:

        T = sum_k sign(S_k) (sqrt(n_k^2 + 2 |S_k|) - n_k)

    Statistic: T / sqrt(V_h), standard normal under independence.  Margin: |T| - z sqrt(max(V_h,
    100)), in records. Columns: ordinal, or categorical in their declared order (a binary column has
    only one), counted through contingency tables; numeric columns as x and y (not in the
    conditioning set), in O(n log n).

    V_h is at most n / 9, so with fewer than 900 rows the 100 in the margin binds, and the answer is
    "independent" more often than the p-value says.  Without a budget decide by ``.pvalue`` there,
    or take :class:`FisherZ` or :class:`KCI`.

    Guarantee:
        Relation: replace-one; n and the levels are public.  Sensitivity of the margin: 2 + z / 45
        records (2.044 at alpha 0.05). Event: none (the margin never leaves the session; mechanisms
        pay).  Proof: module docstring.

    Source:
        Kendall 1938; Korn 1984 for the stratified test; the score is PRIVACY.md B4.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("survey").sample(20_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "E",
        ...     "R",
        ...     test=jaxcd.KendallTau(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, answer.margin > 0
        (False, True)
    """

    assumes = "ordered levels; a dependence in one direction within strata"
    claim = SCORE_CLAIM

    _evaluate_tables = staticmethod(_evaluate_tables)
    _score_of_columns = staticmethod(_score_of_columns)
