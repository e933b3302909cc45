r"""The sensitivity bounds and the noise of PCD as published, without the data.

Notation of the paper: m records; a statistic T_0, HSIC_b of the residuals, and its values T_1 ..
T_k under k permutations.

* *Residuals* (Theorem 2): replacing one record moves every residual by at most 8 / (m
  lambda^{3/2}).  That is Kusner et al.'s bound for the records that stay; for the record that is
  replaced it is false: its residual moves by up to 2 (PRIVACY.md F1).
* *Statistic* (Theorem 3, equation (3)): :func:`claimed_residual_hsic_sensitivity`, of order 1 /
  m^2, hence too small by any factor as m grows.  Without a conditioning set the raw columns are
  compared, and the bound is :func:`kusner_hsic_sensitivity`, which holds.
* *P-value* (equations (6) to (8)): with Delta_R the statistic's bound, T_0 may fall and each T_s
  rise by Delta_R, so

      p = #{T_s >= T_0} / k,      B = #{T_s + Delta_R >= T_0 - Delta_R} / k,      Delta_P = B - p.

* *Decision* (Algorithm 1): B < alpha keeps the edge without noise; otherwise it is removed where
  p + Lap(4 Delta_P / epsilon) >= alpha, and epsilon is added to the running total.

**What is the paper's and what is reconstructed.**  The paper's text was not at hand; how it numbers
these formulas is not certain.  Its objective, lambda = 1, median bandwidths, k = 100, the scale 4
Delta_P / epsilon, the branch and the running total are as PRIVACY.md D to H records them.
Reconstructed:

* *B*: the 2 Delta_R between the two statistics reproduces both explicit data sets of section G to
  the digit (B = .07 and .03).
* *Delta_P = B - p*: from section G's remark that B = p gives Lap(0), and its probabilities at
  epsilon = 1 and 0.1 (.42 and .49; at epsilon = 8 it has .087 as a lower bound, where this has
  .12).  Section H's simulated type I errors at small epsilon are larger than this gives, nearer to
  max(B - p, p - A) with A the same bound from below: the paper may have that.
* *Equation (3)*: its values at lambda = 1 and equal bandwidths are recorded, 512 / (delta^2
  (m - 1)^2).  How it depends on lambda and on two bandwidths: with r = 8 / (m lambda^{3/2}) an
  entry of a kernel matrix moves by 1 - exp(-(2 r)^2 / (2 delta^2)) <= 2 r^2 / delta^2, and twice
  that for each of the two kernels is that number.  That Delta_R is equation (3) alone, with Kusner
  et al.'s bound where there is no residual, follows from Theorem 2 being stated for all records.

Source:
    Zhang, Xia, Ren, Guan, Zhou 2023, *Differentially private nonlinear causal discovery from
    numerical data*; Kusner, Sun, Sridharan, Weinberger 2016, *Private causal inference*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = [
    "PermutationEvidence",
    "claimed_residual_hsic_sensitivity",
    "claimed_residual_sensitivity",
    "deletion_probability",
    "kusner_hsic_sensitivity",
]


def claimed_residual_sensitivity(n_samples: int, *, penalty: float = 1.0) -> float:
    """8 / (m lambda^{3/2}): how far one record is claimed to move every residual (false for its
    own: PRIVACY.md F1).
    """
    return 8 / (n_samples * penalty**1.5)


def claimed_residual_hsic_sensitivity(
    n_samples: int, *, bandwidth_x: float, bandwidth_y: float, penalty: float = 1.0
) -> float:
    """Equation (3), (m / (m - 1))^2 4 r^2 (1 / delta_x^2 + 1 / delta_y^2) with r = 8 / (m
    lambda^{3/2}).

    Args:
        n_samples: m.
        bandwidth_x: of the residuals' kernels, for targets in [-1, 1].
        bandwidth_y: as ``bandwidth_x``.
        penalty: lambda. For equal bandwidths and lambda = 1 it is 512 / (delta^2 (m - 1)^2).
            Refuted: the true change is of order 1 / m (PRIVACY.md F1).
    """
    residual = claimed_residual_sensitivity(n_samples, penalty=penalty)
    factor = (n_samples / (n_samples - 1)) ** 2
    return factor * 4 * residual**2 * (bandwidth_x**-2 + bandwidth_y**-2)


def kusner_hsic_sensitivity(n_samples: int) -> float:
    """(12 m - 11) / (m - 1)^2: a bound on the change of HSIC_b for kernels of public bandwidth with
    values in [0, 1].
    """
    return (12 * n_samples - 11) / (n_samples - 1) ** 2


@dataclass(frozen=True)
class PermutationEvidence:
    """One test of PCD.  statistic: T_0.  pvalue: p.  bound: B.  statistic_sensitivity: Delta_R, as
    claimed.

    Nothing of it is released, and nothing bounds its sensitivity.
    """

    statistic: float
    pvalue: float
    bound: float
    statistic_sensitivity: float

    @property
    def pvalue_sensitivity(self) -> float:
        """Delta_P = B - p >= 0: a local bound, so the scale of the noise itself depends on the
        data.
        """
        return self.bound - self.pvalue

    def is_noisy(self, alpha: float) -> bool:
        """Whether Algorithm 1 adds noise: B >= alpha."""
        return self.bound >= alpha

    def noise_scale(self, epsilon: float) -> float:
        """4 Delta_P / epsilon, which is 0 where B = p."""
        return 4 * self.pvalue_sensitivity / epsilon


def deletion_probability(evidence: PermutationEvidence, *, alpha: float, epsilon: float) -> float:
    """The probability, over the noise, that Algorithm 1 removes the edge.

    Args:
        evidence: of the test.
        alpha: the level.
        epsilon: positive, of the test. Exactly 0 where B < alpha: next to a positive probability no
            epsilon holds (PRIVACY.md G).
    """
    if not evidence.is_noisy(alpha):
        return 0.0
    gap, scale = alpha - evidence.pvalue, evidence.noise_scale(epsilon)
    if scale == 0:
        return float(gap <= 0)
    return 0.5 * math.exp(-gap / scale) if gap > 0 else 1 - 0.5 * math.exp(gap / scale)
