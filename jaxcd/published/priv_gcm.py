r"""PrivGCM: the generalised covariance measure of noisy products of kernel ridge residuals.

Columns are scaled by their declared bounds to [-1, 1].  r and s are the residuals of x and y on Z
by the objective (lambda / 2) |w|^2 + mean squared error, for a kernel with k(z, z) = 1; R_i = r_i
s_i.  Published: the vector R has a bounded L1 sensitivity; with independent Laplace noise on each
product,

    T = sqrt(n) mean(R~) / sd(R~)

is compared with the standard normal law, which holds without further correction because the noise
has mean 0 and does not depend on anything.

**What is kept, and what is not.**  The statistic and the noise on each product are the paper's.
The null is Student's law of n - 1 degrees of freedom, whose limit is the paper's: of true nulls
without Z at .05 the normal law rejects .14 to .19 with 5 rows and .07 to .08 with 20, Student's
.035 to .055.  The paper's constant could not be looked up; the bound below is our own (PRIVACY.md
AA).  The kernel is that of random Fourier features, drawn without the data, whose norm is exactly
one, so that the bound holds for what is computed and a test costs O(n r^2).

**Sensitivity (replace-one, L1 of the vector): 2 (1 + W)^2 + 2 e**, with W and e of lambda as in
PRIVACY.md E1 and E4 (9.2 at lambda = 1, 38 at 0.1):

* the record's own product: abs(fit) <= W, so that abs(r s) <= (1 + W)^2 before and after;
* the others': sum abs(r'_i s'_i - r_i s_i) <= sum abs(r'_i - r_i) abs(s'_i) + abs(r_i) abs(s'_i -
  s_i), and by Cauchy-Schwarz that is at most e (rms(s') + rms(r)), the root mean square shift of
  residuals being e / n; and rms(r), rms(s') <= 1, since w = 0 reaches that.

*Without Z* r and s are the columns less their means, and the bound is **5**.  Let m and k be the
means of the other rows' x and y, u and v these rows' deviations from them, and a, b those of the
record: its own residuals are (1 - 1/n) a and (1 - 1/n) b, the others' u - a / n and v - b / n.  So
the L1 distance is at most (n - 1) / n times

    abs(ab - a'b') + abs(b - b') mean abs(u) + abs(a - a') mean abs(v),

and mean abs(u) <= 1 - m^2 on [-1, 1] (a convex function of x is below its chord), mean abs(v) <=
1 - k^2.  That is convex in each of a, b, a', b', and so largest where each column is at an end of
its range.  If x alone changes, it is 2 abs(b) + 2 (1 - k^2) <= 2 (1 + abs(k)) + 2 (1 - k^2) <= 4.5,
likewise for y; if both do, at most 2 abs(m) + 2 abs(k) + 2 (1 - k^2) + 2 (1 - m^2) <= 5.

Noise on each of n products is sqrt(n) times the noise that their sum would need:
:class:`jaxcd.StratifiedTau` releases a sum.

Source:
    Kalemaj, Kasiviswanathan, Ramdas 2024 (AISTATS; arXiv 2306.06721).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.checks import check_number, is_whole
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query
from jaxcd.citests.bounded_rcit import columns_in_bounds, residual_shift, ridge_norm
from jaxcd.data.rows import Rows
from jaxcd.errors import OptionError
from jaxcd.ops import double_precision, gram, ridge, tails
from jaxcd.privacy import Accountant, laplace
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim

__all__ = ["PAD", "PreparedResiduals", "PrivGCM", "check_ridge"]

_LEAST_NUMBER = 1e-3
#: A bound on the numerical error of a product: that of the fit is about r sqrt(n) 2^-52 / lambda.
PAD = 1e-6


def check_ridge(penalty: float, bandwidth: float, n_features: int) -> None:
    """Checks the options of the regression; raises OptionError."""
    check_number("penalty", penalty, _LEAST_NUMBER, cure="give one, such as 1")
    check_number("bandwidth", bandwidth, _LEAST_NUMBER, cure="give one, such as 0.5")
    if not is_whole(n_features, 2) or n_features % 2:
        raise OptionError(
            f"n_features = {n_features!r} is not an even positive number; 200 is usual"
        )


class PreparedResiduals(PreparedTest):
    """Columns on [-1, 1], and their ridge residuals on random Fourier features of Z.

    Args:
        columns: (n, d), in [-1, 1].
        penalty: lambda.
        bandwidth: of the kernel of one column of Z; sqrt(k) times that for k columns.
        n_features: of the kernel.
        key: of the frequencies.
    """

    def __init__(
        self, columns: np.ndarray, penalty: float, bandwidth: float, n_features: int, key: jax.Array
    ) -> None:
        self.n_samples = len(columns)
        self.columns = columns
        self._options = penalty, bandwidth, n_features, key

    def bucket(self, query: Query) -> Hashable:
        return query.given

    def batch_size(self, bucket: Hashable) -> int:
        return 1 << 16

    def residuals(self, given: tuple[int, ...], *targets: int) -> np.ndarray:
        """x - fit for each target: float64 (n, t); the columns themselves without Z."""
        values = self.columns[:, targets]
        if not given:
            return values
        penalty, bandwidth, n_features, key = self._options
        with double_precision():
            z = jnp.asarray(self.columns[:, given])
            wide = bandwidth * math.sqrt(len(given))
            factor = gram.random_fourier_features(z, wide, n_features=n_features, key=key).factor
            mu = ridge.penalty_of_objective(penalty, self.n_samples)
            return np.asarray(ridge.residuals(ridge.spectrum(factor), jnp.asarray(values), mu))


class _PreparedGCM(PreparedResiduals):
    def __init__(self, columns: np.ndarray, test: PrivGCM, key: jax.Array) -> None:
        super().__init__(columns, test.penalty, test.bandwidth, test.n_features, key)
        self._sensitivity = test.product_sensitivity
        self._known: dict[Query, np.ndarray] = {}

    def _products(self, query: Query) -> np.ndarray:
        """Of one query, float64 (n,); remembered."""
        if query not in self._known:
            found = self.residuals(query.given, query.x, query.y)
            if not query.given:
                found = found - found.mean(axis=0)
            self._known[query] = found.prod(axis=1)
        return self._known[query]

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        return _evaluation([self._products(query) for query in queries], alpha)

    def buy(
        self, query: Query, accountant: Accountant, *, epsilon: float, alpha: float
    ) -> Evaluation:
        noisy = laplace(
            accountant,
            self._products(query),
            sensitivity=self._sensitivity(conditional=bool(query.given)),
            pad=PAD,
            epsilon=epsilon,
            label="residual products",
        )
        return _evaluation([noisy], alpha)


def _evaluation(products: Sequence[np.ndarray], alpha: float) -> Evaluation:
    rows = np.array(products)
    spread = rows.std(axis=1)
    z = np.where(
        spread > 0,
        math.sqrt(rows.shape[1]) * rows.mean(axis=1) / np.where(spread > 0, spread, 1.0),
        0.0,
    )
    dof = max(rows.shape[1] - 1, 1)  # of a single row z is 0
    t_per_z = math.sqrt(dof / rows.shape[1])  # Student's statistic divides the squares by dof
    critical = tails.student_quantile(alpha / 2, dof) / t_per_z
    log_pvalue = tails.student_two_sided_log_pvalue(t_per_z * z, dof)
    return Evaluation(z, log_pvalue, np.abs(z) - critical)


@dataclass(frozen=True)
class PrivGCM(CITest):
    r"""PrivGCM of Kalemaj, Kasiviswanathan and Ramdas: T of residual products with Laplace noise on
    each.

    Statistic: T = sqrt(n) mean(R~) / sd(R~), near standard normal under independence where both
    regressions are learned; the p-value is that of sqrt(1 - 1/n) T by Student's law of n - 1
    degrees of freedom, margin abs(T) less its critical value.  Columns: numeric with declared
    bounds.  For :func:`jaxcd.ci_test`; no mechanism takes it, as it states no sensitivity of a
    margin.

    Args:
        penalty: lambda, from 0.001.  A large one regresses little, a small one needs much noise: 1
            is Kusner's and PCD's, and not known to be this paper's.
        bandwidth: of the Gaussian kernel of one column of Z in [-1, 1]; sqrt(k) times that for k.
        n_features: even; of the kernel.

    Raises:
        OptionError: an argument is out of its range.
        DomainError: a column has no declared bounds.

    Guarantee:
        Relation: replace-one; n, the bounds and the options are public.  Sensitivity: 2 (1 + W)^2 +
        2 e in L1, 5 without Z, our bounds and not the paper's.  Event: ``PureEvent(epsilon)`` an
        answer.  Proof: the docstring of :mod:`jaxcd.published.priv_gcm`.

    Source:
        Kalemaj, Kasiviswanathan, Ramdas 2024.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> values = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
        >>> domain = jaxcd.Domain({name: jaxcd.Numeric(-1, 1) for name in "xyz"})
        >>> data = jaxcd.Dataset.from_array(values, domain=domain)
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "x",
        ...     "y",
        ...     given=["z"],
        ...     test=jaxcd.published.PrivGCM(),
        ...     budget=jaxcd.Budget(1.0),
        ...     key=jax.random.key(0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent
        True
    """

    assumes = "regressions that are learned at a fixed penalty; sees E[r s] only"
    claim = GuaranteeClaim(
        "each answer is epsilon-DP: residual products with L1 sensitivity 2 (1 + W)^2 + 2 e, 5 "
        "without Z",
        "jaxcd.published.priv_gcm",
        assumptions=PUBLIC + "; bounds are public",
    )

    penalty: float = 1.0
    bandwidth: float = 0.5
    n_features: int = 200

    buys_answers = True
    restrictable = False

    def __post_init__(self) -> None:
        check_ridge(self.penalty, self.bandwidth, self.n_features)

    def product_sensitivity(self, *, conditional: bool) -> float:
        """Of the vector of products, in L1: 5 for empty Z."""
        if not conditional:
            return 5.0
        w = ridge_norm(self.penalty, math.inf)
        return 2 * (1 + w) ** 2 + 2 * residual_shift(self.penalty, math.inf)

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        _, columns, key = columns_in_bounds(data, key, self.name)
        return _PreparedGCM(np.column_stack(columns), self, key)
