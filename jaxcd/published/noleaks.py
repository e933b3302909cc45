r"""NoLeaks as its code has it: a linear model by noisy gradients under a constraint of acyclicity;
not private, kept to compare with.

*Objective.*  Over weights W with an empty diagonal, rows of X centred,

    1 / (2 n) |X - X W|_F^2 + lambda |W|_1     subject to     h(W) = tr e^(W o W) - d = 0,

by an augmented Lagrangian: + rho h^2 / 2 + a h is minimised by L-BFGS-B over the positive and the
negative parts of W, rho grows tenfold until h has fallen to a quarter, then a grows by rho h.

*Noise.*  Each gradient of the squared error, -X^T (X - X W) / n, is clipped to [-2, 2] entry by
entry and gets Gaussian noise at (epsilon, delta), by the analytic Gaussian mechanism for an L2
sensitivity of 4 sqrt(d (d - 1)) / n.  The values of the objective, which the line search compares,
are taken on public rows; where there are none, on 1,000 rows of the table itself, at a price of
ln((n + 1) / (n + 1 - 1000)) and 1000 / n.  Prices are added up.

*Columns.*  A discrete column is coded by the middle of its level's share of the cumulative counts,
times 20.

**Why it is not private.**

* *The sensitivity.*  What is clipped is the mean of the records' gradients, not each record's.  A
  record's own entry is x_i r_j / n, which nothing bounds: the clipped mean moves by up to 4, not by
  4 / n.  With the discrete columns' own range, [-10, 10] about the middle, it moves by 200 / n.
* *The rows of the line search* are the table's first ones, used without noise: whoever knows that a
  record is among them learns from every step that is taken.
* *Coding and centring* read counts and means off the table, and the number of gradients, hence the
  total, depends on the data.
* *The threshold* below which a weight is no edge is chosen by the code's evaluation, out of 2,000,
  as the best against the true graph.  Here it is an argument.

What the paper assumes of the data was not at hand; this is what its code computes.

Source:
    Ma, Ji, Pang, Wang 2022 (IEEE TIFS), by its code; Zheng, Aragam, Ravikumar, Xing 2018 for the
    constraint; Balle, Wang 2018 for the noise.
"""

from __future__ import annotations

import math

import jax
import networkx as nx
import numpy as np

from jaxcd.checks import a_type, is_number
from jaxcd.data import Dataset, Numeric
from jaxcd.discovery import DiscoveryResult
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph, dag_to_cpdag
from jaxcd.privacy import PrivacyCost, Relation
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.rounds import require_whole_rows, streams

__all__ = ["analytic_sigma", "claimed_gradient_sensitivity", "clipped_gradient", "noleaks"]

_REASON = (
    "published method, kept for comparison: it clips the mean of the records' gradients and not "
    "each record's, so that one record moves it by up to 4 and not by 4/n; the line search uses "
    "rows as they are; coding, centring and the number of gradients depend on the data; the noise "
    "is simulated"
)
_CLIP = 2.0
_STRETCH = 20.0  # of a discrete column's cumulative shares
_BARE_ROWS = 1000  # that the line search sees where no rows are public
_LARGEST_RHO = 1e16
_LEAST_H = 1e-8
_ASCENTS = 100


def claimed_gradient_sensitivity(n_samples: int, n_variables: int) -> float:
    """4 sqrt(d (d - 1)) / n, the published L2 sensitivity of a clipped gradient (refuted)."""
    return 2 * _CLIP * math.sqrt(n_variables * (n_variables - 1)) / n_samples


def analytic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The least standard deviation that is (epsilon, delta)-private at an L2 sensitivity.

    By bisection of

        Phi(1 / (2 s) - epsilon s) - e^epsilon Phi(-1 / (2 s) - epsilon s) <= delta

    over s, the standard deviation for a sensitivity of 1.

    Source:
        Balle, Wang 2018.
    """
    from scipy import special

    def short(s: float) -> bool:
        """Whether so little noise is not enough."""
        first = special.log_ndtr(0.5 / s - epsilon * s)
        second = epsilon + special.log_ndtr(-0.5 / s - epsilon * s)
        return bool(np.exp(first) - np.exp(second) > delta)

    low, high = 0.0, 1.0
    while short(high):
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high * sensitivity


def clipped_gradient(moments: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The gradient of the squared error from X^T X / n, (d, d), clipped to [-2, 2], without
    noise.
    """
    found: np.ndarray = np.clip(moments @ weights - moments, -_CLIP, _CLIP)
    return found


def _coded(data: Dataset, name: str) -> np.ndarray:
    """A column as numbers; a discrete one by its cumulative shares, times 20."""
    if isinstance(data.domain[name], Numeric):
        return data.column(name).astype(np.float64)
    codes = data.column(name).astype(np.int64)
    shares = np.bincount(codes) / len(codes)
    return _STRETCH * (np.cumsum(shares) - shares / 2)[codes]


def _acyclic(weights: np.ndarray, threshold: float) -> np.ndarray:
    """The edges (d, d) of weights of at least the threshold, which is raised until no cycle is
    left.
    """
    sizes = np.abs(weights)
    for least in [threshold, *np.unique(sizes[sizes > threshold])]:
        edges: np.ndarray = (sizes >= least) & (sizes > 0)
        if nx.is_directed_acyclic_graph(nx.DiGraph(edges.astype(int))):
            return edges
    return np.zeros_like(edges)


class _Search:
    """The augmented Lagrangian with noisy gradients.

    Args:
        moments: X^T X / n of the table.
        public: the same of the rows that the line search sees.
        penalty: lambda.
        sigma: of the noise on each entry of a gradient.
        stream: of the noise.
    """

    def __init__(
        self,
        moments: np.ndarray,
        public: np.ndarray,
        *,
        penalty: float,
        sigma: float,
        stream: np.random.Generator,
    ) -> None:
        self._moments, self._public = moments, public
        self._penalty, self._sigma, self._stream = penalty, sigma, stream
        self._rho, self._dual = 1.0, 0.0
        self.n_gradients = 0

    def _parts(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """W, and e^(W o W)."""
        from scipy import linalg

        positive, negative = flat.reshape(2, *self._moments.shape)
        weights = positive - negative
        return weights, linalg.expm(weights * weights)

    def _value(self, flat: np.ndarray) -> float:
        weights, exponential = self._parts(flat)
        rest = np.eye(len(weights)) - weights
        loss = 0.5 * np.sum(rest * (self._public @ rest))
        h = np.trace(exponential) - len(weights)
        return float(loss + 0.5 * self._rho * h * h + self._dual * h + self._penalty * flat.sum())

    def _gradient(self, flat: np.ndarray) -> np.ndarray:
        weights, exponential = self._parts(flat)
        self.n_gradients += 1
        noise = self._stream.normal(0, self._sigma, weights.shape)
        loss = clipped_gradient(self._moments, weights) + noise
        np.fill_diagonal(loss, 0)
        h = np.trace(exponential) - len(weights)
        smooth = loss + (self._rho * h + self._dual) * 2 * exponential.T * weights
        return np.concatenate([smooth + self._penalty, self._penalty - smooth], axis=None)

    def weights(self) -> np.ndarray:
        """W (d, d), entry (j, k) the effect of column j on column k."""
        from scipy import optimize  # slow to import, and needed here only

        d = len(self._moments)
        bounds = [
            (0, 0) if j == k else (0, None) for _ in range(2) for j in range(d) for k in range(d)
        ]
        flat, h = np.zeros(2 * d * d), math.inf
        for _ in range(_ASCENTS):
            while True:
                with np.errstate(over="ignore", invalid="ignore"):  # weights that noise drives up
                    found = optimize.minimize(
                        self._value, flat, method="L-BFGS-B", jac=self._gradient, bounds=bounds
                    ).x
                    new = float(np.trace(self._parts(found)[1]) - d)
                if new <= 0.25 * h or self._rho >= _LARGEST_RHO:
                    break
                self._rho *= 10
            flat, h = found, new
            self._dual += self._rho * h
            if h <= _LEAST_H or self._rho >= _LARGEST_RHO:
                break
        return self._parts(flat)[0]


@claiming(
    GuaranteeClaim(
        "the paper's (epsilon, delta), a gradient at a time",
        proof="it clips the mean of the gradients, which one record moves by up to 4 and not by "
        "4 / n; see jaxcd.published.noleaks",
        proven=False,
        assumptions="-",
    )
)
def noleaks(
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-4,
    key: jax.Array,
    public: Dataset | None = None,
    penalty: float = 0.1,
    threshold: float = 0.3,
) -> DiscoveryResult:
    """NoLeaks as published: an acyclic linear model by noisy gradients.

    Args:
        data: numeric or discrete columns.
        epsilon: positive, of each gradient.
        delta: in (0, 1), of each gradient.
        key: a typed key: noise.
        public: rows of the same columns that need no protection; None for the table's first 1,000.
        penalty: lambda > 0 of the absolute weights.
        threshold: positive; a smaller weight is no edge. Raised until no cycle is left.

    Returns:
        The result: the CPDAG of the model's graph; ``cost`` holds the total that is claimed, with
        ``proven`` False and the reason; ``info`` the number of gradients, and the weights.

    Raises:
        OptionError: an argument does not fit.

    Guarantee:
        None (module docstring).  :func:`jaxcd.ges` on a release of moments is what holds.

    Source:
        Ma, Ji, Pang, Wang 2022, and its code.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("earthquake").sample(5_000, key=jax.random.key(0))
        >>> run = jaxcd.published.noleaks(data, epsilon=1.0, key=jax.random.key(1))
        >>> run.cost.proven, run.cost.epsilon > run.info["n_gradients"]
        (False, True)
    """
    for name, value, highest in (
        ("epsilon", epsilon, math.inf),
        ("delta", delta, 1.0),
        ("penalty", penalty, math.inf),
        ("threshold", threshold, math.inf),
    ):
        if not is_number(value, 0, highest, ends="()"):
            within = "a positive number" if highest == math.inf else "in (0, 1)"
            raise OptionError(f"{name} = {value!r} is not {within}; give one, such as 0.1")
    stream = streams(key)(0)
    data = require_whole_rows(data, "noleaks")
    names, n, d = data.names, data.n_samples, data.n_columns
    total, total_delta = 0.0, 0.0
    table = np.column_stack([_coded(data, name) for name in names])
    table -= table.mean(axis=0)
    if public is None:
        n_bare = min(_BARE_ROWS, max(n // 2, 1))
        bare = table[:n_bare]
        total, total_delta = math.log((n + 1) / (n + 1 - n_bare)), n_bare / n
    elif not isinstance(public, Dataset):
        raise OptionError(
            f"public: {a_type(public)} is no Dataset; give rows of the same columns, or None"
        )
    elif public.names != names:
        raise OptionError(
            f"public has the columns {public.names}, and data {names}; give the same columns"
        )
    else:
        bare = np.column_stack([_coded(public, name) for name in names])
        bare -= bare.mean(axis=0)
    search = _Search(
        table.T @ table / n,
        bare.T @ bare / len(bare),
        penalty=penalty,
        sigma=analytic_sigma(epsilon, delta, claimed_gradient_sensitivity(n, d)),
        stream=stream,
    )
    weights = search.weights()
    dag = nx.DiGraph()
    dag.add_nodes_from(names)
    dag.add_edges_from((names[j], names[k]) for j, k in np.argwhere(_acyclic(weights, threshold)))
    total += search.n_gradients * epsilon
    # a cost has a delta below 1; one this large claims nothing
    total_delta = min(total_delta + search.n_gradients * delta, math.nextafter(1.0, 0.0))
    cost = PrivacyCost(total, total_delta, Relation.REPLACE_ONE, False, _REASON)
    info = {
        "algorithm": "noleaks",
        "n_samples": n,
        "n_variables": d,
        "n_gradients": search.n_gradients,
        "total_epsilon": total,
        "epsilon_per_gradient": epsilon,
        "penalty": penalty,
        "threshold": threshold,
        "weights": tuple(map(tuple, weights.tolist())),
        "secure_noise": False,
    }
    return DiscoveryResult(dag_to_cpdag(MixedGraph.from_dag(dag)), {}, cost, cost, False, info)
