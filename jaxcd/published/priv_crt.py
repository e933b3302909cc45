r"""PrivCRT: the conditional randomisation test with a private rank, where the law of x given Z is
known.

The *model-X* assumption: the law of x given Z is known and public.  Here it is a function q(z, u),
the u-quantile of x at one row z of Z.  With uniform u_ij, drawn without the data, x_i^j = q(z_i,
u_ij) are copies of x that are independent of y given Z, and

    T_j = | sum_i (x_i^j - mu(z_i)) s_i |,    mu(z) = mean of q(z, .),

for j = 1, ..., k, and T_0 for x itself, s the kernel ridge residual of y on Z: under independence
T_0, ..., T_k are exchangeable whatever s is.  Published: the p-value is (1 + c) / (k + 1), c the
number of copies with T_j >= T_0, where c is chosen privately: by report noisy max over all c, with
a score that says how far T_0 is from having that rank.

**What is kept, and what is reconstructed.**  That text could not be looked up in full.  The score
here is -max(T_0 - T_(c), T_(c+1) - T_0, 0), T_(1) >= ... >= T_(k) the copies in order: by how much
T_0 would have to move to have the rank c.  c is drawn by the exponential mechanism, which is report
noisy max with Gumbel noise.

**Sensitivity (replace-one).**  Columns are scaled to [-1, 1], and copies are clipped to that.
*T_j moves by Delta <= 4 (1 + W) + 2 e* (PRIVACY.md E1, E4): the record's own term is at most
2 (1 + W) before and after, since abs(x - mu) <= 2 and abs(fit) <= W; the others' copies stay, since
q sees one row at a time and u_ij belongs to the row's place, and their residuals move by sum
abs(x_i^j - mu_i) abs(s'_i - s_i) <= 2 e by Cauchy-Schwarz.  The order statistics T_(c) move by no
more than all T_j, so a score moves by at most 2 Delta.

**Why it is not called proved.**  q is a function from outside.  It is mapped over rows by
``jax.vmap``, so that it cannot see two of them, but what else it does nobody here can know; and the
law must be public, not learned from the same rows.

The level is not exact: the noise moves c both ways, and the p-value is published without its width.

Source:
    Kalemaj, Kasiviswanathan, Ramdas 2024 (AISTATS; arXiv 2306.06721); Candes et al. 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcd.checks import check_whole, shown_list
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query
from jaxcd.citests.bounded_rcit import columns_in_bounds, residual_shift, ridge_norm
from jaxcd.data import Domain, Numeric
from jaxcd.data.rows import Rows
from jaxcd.errors import OptionError
from jaxcd.ops import double_precision
from jaxcd.privacy import Accountant, select_max
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.published.priv_gcm import PAD, PreparedResiduals, check_ridge

__all__ = ["PrivCRT"]

# Quantiles whose mean is the conditional mean.
_N_MEAN = 64


class _PreparedCRT(PreparedResiduals):
    def __init__(self, columns: np.ndarray, domain: Domain, test: PrivCRT, key: jax.Array) -> None:
        key, self._copies = jax.random.split(key)
        super().__init__(columns, test.penalty, test.bandwidth, test.n_features, key)
        self._domain, self._test = domain, test
        self._known: dict[Query, np.ndarray] = {}

    def admissible(self, query: Query) -> bool:
        return self._test.column in (self._domain.names[query.x], self._domain.names[query.y])

    def _statistics(self, query: Query) -> np.ndarray:
        """T_0, T_1, ..., T_k: float64 (1 + k,); remembered."""
        if query not in self._known:
            self._known[query] = self._new_statistics(query)
        return self._known[query]

    def _new_statistics(self, query: Query) -> np.ndarray:
        names = self._domain.names
        x, y = (query.x, query.y) if names[query.x] == self._test.column else (query.y, query.x)
        rest = self.residuals(query.given, y)[:, 0]
        with double_precision():
            z = jnp.column_stack(
                [
                    jnp.zeros((self.n_samples, 0)),
                    *(jnp.asarray(self._units(self.columns[:, v], v)) for v in query.given),
                ]
            )
            uniform = jax.random.uniform(
                self._copies, (self.n_samples, self._test.n_copies), jnp.float64
            )
            middles = jnp.broadcast_to(
                (jnp.arange(_N_MEAN) + 0.5) / _N_MEAN, (self.n_samples, _N_MEAN)
            )
            at = jax.vmap(jax.vmap(self._test.quantile, (None, 0)), (0, 0))
            copies, means = (self._scaled(np.asarray(at(z, u)), x) for u in (uniform, middles))
        each = np.column_stack([self.columns[:, x], copies]) - means.mean(axis=1)[:, None]
        return np.abs(rest @ each)

    def _bounds(self, v: int) -> tuple[float, float]:
        column = self._domain[self._domain.names[v]]
        assert isinstance(column, Numeric)
        assert column.lower is not None and column.upper is not None
        return column.lower, column.upper

    def _units(self, values: np.ndarray, v: int) -> np.ndarray:
        lower, upper = self._bounds(v)
        return lower + (values + 1) / 2 * (upper - lower)

    def _scaled(self, values: np.ndarray, v: int) -> np.ndarray:
        """On [-1, 1]; what is no number is -1."""
        lower, upper = self._bounds(v)
        proper = np.clip(np.where(np.isnan(values), lower, values), lower, upper)
        return 2 * ((proper - lower) / (upper - lower)) - 1

    def _answer(self, statistic: float, rank: int, alpha: float) -> tuple[float, float, float]:
        log_pvalue = math.log((1 + rank) / (self._test.n_copies + 1))
        return statistic, log_pvalue, math.log(alpha * (1 + 1e-12)) - log_pvalue

    def evaluate(self, bucket: Hashable, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        rows = []
        for query in queries:
            found = self._statistics(query)
            rank = int(np.sum(found[1:] >= found[0]))
            statistic, log_pvalue, margin = self._answer(float(found[0]), rank, alpha)
            rows.append((statistic, log_pvalue, margin))
        return Evaluation(*np.array(rows, dtype=np.float64).T)

    def buy(
        self, query: Query, accountant: Accountant, *, epsilon: float, alpha: float
    ) -> Evaluation:
        found = self._statistics(query)
        ordered = np.sort(found[1:])[::-1]
        above, below = np.append(np.inf, ordered), np.append(ordered, -np.inf)
        scores = -np.maximum(np.maximum(found[0] - above, below - found[0]), 0.0)
        rank = select_max(
            accountant,
            scores,
            sensitivity=2 * self._test.statistic_sensitivity(conditional=bool(query.given)),
            pad=2 * PAD * self.n_samples,
            epsilon=epsilon,
            label="rank among copies",
        )
        statistic, log_pvalue, margin = self._answer(float(rank), rank, alpha)
        return Evaluation(np.array([statistic]), np.array([log_pvalue]), np.array([margin]))


@dataclass(frozen=True)
class PrivCRT(CITest):
    r"""PrivCRT of Kalemaj, Kasiviswanathan and Ramdas: the rank of T among copies of x drawn from
    its known law given Z.

    Statistic of a private answer: c, the number of copies at or above; p = (1 + c) / (k + 1);
    margin log alpha - log p.  Columns: numeric with declared bounds.  For :func:`jaxcd.ci_test`, of
    queries that have ``column`` as x or y.

    Args:
        column: the name of the column whose law is known.
        quantile: q(z, u) -> x, the u-quantile of that column at one row z of Z: an array (|Z|,) in
            the domain's order and units, u in (0, 1); written in ``jax.numpy``, and public.
        n_copies: k, from 19.
        penalty: lambda of the regression of the other column, from 0.001; the null holds for any.
        bandwidth: of its Gaussian kernel, as in :class:`PrivGCM`.
        n_features: of its kernel.

    Raises:
        OptionError: an argument is out of its range.
        DomainError: a column has no declared bounds.

    Guarantee:
        None that is called proved, because ``quantile`` is code from outside; where it is a public
        function of one row: replace-one, an ``ExponentialMechanismEvent(epsilon)`` an answer with
        score sensitivity 2 (4 (1 + W) + 2 e) (module docstring).

    Source:
        Kalemaj, Kasiviswanathan, Ramdas 2024.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> z, u = rng.uniform(-1, 1, 500), rng.uniform(-0.5, 0.5, (500, 2))
        >>> values = np.column_stack([np.sin(z) + u[:, 0], z + u[:, 1], z])
        >>> domain = jaxcd.Domain({name: jaxcd.Numeric(-2, 2) for name in "xyz"})
        >>> data = jaxcd.Dataset.from_array(values, names=["x", "y", "z"], domain=domain)
        >>> law = lambda z, u: jax.numpy.sin(z[0]) + u - 0.5
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "x",
        ...     "y",
        ...     given=["z"],
        ...     test=jaxcd.published.PrivCRT(column="x", quantile=law),
        ...     budget=jaxcd.Budget(8.0),
        ...     key=jax.random.key(0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent
        True
    """

    assumes = "a known and public law of x given Z"
    claim = GuaranteeClaim(
        "each answer is epsilon-DP where the given law is a public function of one row",
        proof="the law of x given Z is code from outside; see jaxcd.published.priv_crt",
        proven=False,
        assumptions="the law of x given Z is public",
    )

    column: str
    quantile: Callable[[Any, Any], Any]
    n_copies: int = 199
    penalty: float = 1.0
    bandwidth: float = 0.5
    n_features: int = 200

    buys_answers = True
    restrictable = False

    def __post_init__(self) -> None:
        check_ridge(self.penalty, self.bandwidth, self.n_features)
        check_whole("n_copies", self.n_copies, 19, cure="199 is usual")
        if not callable(self.quantile):
            raise OptionError(
                f"quantile = {self.quantile!r} is no function; give q(z, u), the u-quantile of "
                "the column at a row z"
            )

    def statistic_sensitivity(self, *, conditional: bool) -> float:
        """Of each T_j, in records: 4 for empty Z."""
        if not conditional:
            return 4.0
        w = ridge_norm(self.penalty, math.inf)
        return 4 * (1 + w) + 2 * residual_shift(self.penalty, math.inf)

    def prepare(self, data: Rows | None, *, key: jax.Array | None = None) -> PreparedTest:
        data, columns, key = columns_in_bounds(data, key, self.name)
        if self.column not in data.names:
            raise OptionError(
                f"column = {self.column!r} is not a column; the columns are "
                f"{shown_list(data.names)}"
            )
        return _PreparedCRT(np.column_stack(columns), data.domain, self, key)
