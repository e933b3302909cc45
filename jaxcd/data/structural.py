r"""Structural equation models over any DAG, to sample numeric data with a known graph from.

Each node is a function of its parents and a noise of its own, x_j = f_j(pa_j, eps_j); the noises
are independent, so the distribution obeys the DAG.  Three families: a random function of a random
linear combination plus noise (:func:`nonlinear_sem`, the simulation model of PCD), linear Gaussian
models (:func:`linear_gaussian_sem`), and random smooth functions plus noise
(:func:`additive_noise_sem`).

Everything random is keyed by the *name* of the node (and of its parent), never by a position:
listing the nodes or edges of the same DAG in another order gives the same model and, column by
column, the same samples.

>>> import jax, networkx as nx
>>> from jaxcd.data import structural
>>> model = structural.nonlinear_sem(nx.DiGraph([("x", "y")]), key=jax.random.key(0))
>>> model.sample(100, key=jax.random.key(1)).names
('x', 'y')
"""

from __future__ import annotations

import abc
import enum
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import check_count, check_key, check_whole, counted
from jaxcd.data.dataset import Dataset
from jaxcd.data.domain import Domain, Numeric
from jaxcd.errors import GraphError, OptionError

if TYPE_CHECKING:
    import jax

    from jaxcd.graphs import MixedGraph

__all__ = [
    "FourierSum",
    "Mechanism",
    "NoiseLaw",
    "SingleIndex",
    "StructuralModel",
    "additive_noise_sem",
    "linear_gaussian_sem",
    "nonlinear_sem",
]

Array = NDArray[np.float64]

#: The exponent of "exp" is clipped at +-7, so its values are at most 1097.
MAX_EXPONENT = 7.0
# : The argument of "square" is clipped at +-1000, so that chains of squares stay finite: values are
# at most 10^6.
MAX_SQUARED = 1000.0

_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda v: v,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "square": lambda v: np.square(np.clip(v, -MAX_SQUARED, MAX_SQUARED)),
    "exp": lambda v: np.exp(np.clip(v, -MAX_EXPONENT, MAX_EXPONENT)),
}


class NoiseLaw(enum.Enum):
    """The distribution of eps; each has mean 0 and variance 1."""

    GAUSSIAN = "gaussian"
    UNIFORM = "uniform"
    LAPLACE = "laplace"

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """n independent draws."""
        if self is NoiseLaw.UNIFORM:
            return rng.uniform(-math.sqrt(3), math.sqrt(3), n)
        if self is NoiseLaw.LAPLACE:
            return rng.laplace(0, math.sqrt(0.5), n)
        return rng.standard_normal(n)


class Mechanism(abc.ABC):
    """How a node follows from its parents: x = f(parents) + noise * eps.

    Args:
        parents: their names, in the order of the columns of the argument.
        noise: b, the standard deviation of the noise term.
    """

    parents: tuple[str, ...]
    noise: float

    @abc.abstractmethod
    def mean(self, values: Array) -> Array:
        """f(parents), shape (n,).  values: (n, number of parents)."""


@dataclass(frozen=True)
class SingleIndex(Mechanism):
    """x = function(sum_j weights_j pa_j) + noise * eps; 0 + noise * eps without parents.

    Args:
        function: "identity", "sin", "cos", "tanh", "square" (argument clipped at +-1000) or "exp"
            (exponent clipped at +-7).
    """

    parents: tuple[str, ...]
    weights: tuple[float, ...]
    function: str
    noise: float

    def mean(self, values: Array) -> Array:
        if not self.parents:
            return np.zeros(len(values))
        return _FUNCTIONS[self.function](_dot(values, self.weights))


@dataclass(frozen=True)
class FourierSum(Mechanism):
    """x = sqrt(2 / L) sum_l cos(frequencies_l . pa + phases_l) + noise * eps, a smooth function of
    all parents together.

    Args:
        frequencies: L rows of one number for each parent.
        phases: L numbers.  The function is bounded by sqrt(2 L).
    """

    parents: tuple[str, ...]
    frequencies: tuple[tuple[float, ...], ...]
    phases: tuple[float, ...]
    noise: float

    def mean(self, values: Array) -> Array:
        if not self.parents:
            return np.zeros(len(values))
        waves = zip(self.frequencies, self.phases, strict=True)
        total = sum(
            (np.cos(_dot(values, frequency) + phase) for frequency, phase in waves),
            np.zeros(len(values)),
        )
        return math.sqrt(2 / len(self.phases)) * total


def _dot(values: Array, weights: Sequence[float]) -> Array:
    """values @ weights, summed column by column: a matrix product may round by the number of
    rows.
    """
    return sum((weight * values[:, j] for j, weight in enumerate(weights)), np.zeros(len(values)))


@dataclass(frozen=True, eq=False, repr=False)
class StructuralModel:
    """A structural equation model: one mechanism a node, independent noises.

    Args:
        mechanisms: The mechanism of every node, in the order of the columns; parents are nodes.
        law: The distribution of every eps.

    Raises:
        GraphError: If a parent is unknown or repeated, a name is not a text, or there is a cycle.
    """

    mechanisms: Mapping[str, Mechanism]
    law: NoiseLaw = NoiseLaw.GAUSSIAN

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanisms", MappingProxyType(dict(self.mechanisms)))
        for node, mechanism in self.mechanisms.items():
            if not isinstance(node, str) or not node:
                raise GraphError(
                    f"node {node!r} must be a text of at least one character; relabel the nodes"
                )
            for parent in mechanism.parents:
                if parent not in self.mechanisms:
                    raise GraphError(
                        f"node {node!r} has the unknown parent {parent!r}; give it a mechanism"
                    )
            if len(set(mechanism.parents)) < len(mechanism.parents):
                raise GraphError(f"node {node!r} lists a parent twice; list each once")
        _refuse_cycle(self.dag)

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes, in the order of the columns."""
        return tuple(self.mechanisms)

    @property
    def dag(self) -> nx.DiGraph:
        """The graph, as a new networkx DiGraph whose nodes are in the order of :attr:`names`."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from(
            (parent, node) for node, how in self.mechanisms.items() for parent in how.parents
        )
        return graph

    def cpdag(self) -> MixedGraph:
        """The completed partially directed graph of the Markov equivalence class."""
        from jaxcd.graphs import dag_to_cpdag

        return dag_to_cpdag(self.dag)

    def sample(self, n: int, *, key: jax.Array) -> Dataset:
        """Draw independent rows by ancestral sampling.

        The noise of a node depends on ``key`` and the node's name only.

        Args:
            n: The number of rows, at least 1.
            key: A typed key, ``jax.random.key(seed)``; equal keys give equal samples.

        Returns:
            Numeric columns without bounds, in the order of :attr:`names`; the domain counts as
            declared.

        Raises:
            OptionError: If ``n`` is not a whole number of at least 1, or ``key`` is not a typed
                key.
        """
        check_count("n", n, minimum=1, cure="give a number of rows")
        words = _words(key)
        position = {name: j for j, name in enumerate(self.names)}
        values = np.empty((int(n), len(position)), order="F")
        for node in nx.topological_sort(self.dag):
            mechanism = self.mechanisms[node]
            eps = self.law.draw(_generator(words, "noise", node), int(n))
            parents = values[:, [position[parent] for parent in mechanism.parents]]
            values[:, position[node]] = mechanism.mean(parents) + mechanism.noise * eps
        values.setflags(write=False)
        domain = Domain({name: Numeric() for name in self.names})
        return Dataset(domain, np.empty((int(n), 0), dtype=np.int32), values)

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy can be neither pickled nor copied
        return (StructuralModel, (dict(self.mechanisms), self.law))

    def __repr__(self) -> str:
        n_edges = sum(len(mechanism.parents) for mechanism in self.mechanisms.values())
        size = f"{counted(len(self.names), 'node')}, {counted(n_edges, 'edge')}"
        return f"StructuralModel({size}, {self.law.value} noise)"


def nonlinear_sem(
    dag: nx.DiGraph,
    *,
    key: jax.Array,
    noise: float = 1.0,
    functions: Sequence[str] = ("sin", "cos", "tanh", "square", "exp"),
    weights: tuple[float, float] = (0.5, 1.5),
    law: NoiseLaw = NoiseLaw.GAUSSIAN,
) -> StructuralModel:
    r"""A random nonlinear model in the manner of PCD: x = phi(sum_j a_j pa_j) + b eps, and x = eps
    at a root.

    phi is drawn for each node, all of ``functions`` equally likely (20% each); |a_j| is uniform on
    ``weights``, its sign even. The exponent of "exp" is clipped at +-7 and the argument of "square"
    at +-1000, so that every sample is finite.

    Args:
        dag: A networkx DiGraph of named nodes.
        key: A typed key; the draws for a node depend on its name only, those for an edge on its two
            names.
        noise: b > 0.
        functions: Any of "identity", "sin", "cos", "tanh", "square", "exp"; one listed twice is
            twice as likely.
        weights: The least and the largest |a_j|, 0 < least <= largest.
        law: The distribution of eps, of variance 1.

    Returns:
        The model; its :class:`SingleIndex` mechanisms say what was drawn.

    Raises:
        GraphError: If ``dag`` is not a DAG of named nodes.
        OptionError: If another argument is out of range.

    Source:
        Zhang et al. 2023 for the family and the five functions; the ranges of a and b are this
        library's.
    """
    _check_dag(dag)
    _check_scale(noise=noise)
    _check_weights(weights)
    chosen = tuple(functions)
    if isinstance(functions, str) or not chosen or not set(chosen) <= set(_FUNCTIONS):
        raise OptionError(
            f"functions = {functions!r} is not a sequence of names out of {', '.join(_FUNCTIONS)}"
        )
    return StructuralModel(_single_indices(dag, _words(key), chosen, weights, noise, 1.0), law)


def linear_gaussian_sem(
    dag: nx.DiGraph,
    *,
    key: jax.Array,
    weights: tuple[float, float] = (0.5, 1.5),
    noise: float = 1.0,
) -> StructuralModel:
    r"""A random linear Gaussian model: x = sum_j a_j pa_j + b eps, whose covariance is b^2
    (I - A)^{-1} (I - A)^{-T}, A_ij = a_j.

    Args:
        dag: A networkx DiGraph of named nodes.
        key: A typed key, as for :func:`nonlinear_sem`.
        weights: The least and the largest |a_j|, 0 < least <= largest; signs are even.
        noise: b > 0, the noise's standard deviation at every node.

    Returns:
        The model; its :class:`SingleIndex` mechanisms hold the weights.

    Raises:
        GraphError: If ``dag`` is not a DAG of named nodes.
        OptionError: If another argument is out of range.
    """
    _check_dag(dag)
    _check_scale(noise=noise)
    _check_weights(weights)
    return StructuralModel(_single_indices(dag, _words(key), ("identity",), weights, noise, noise))


def _single_indices(
    dag: nx.DiGraph,
    words: list[int],
    functions: tuple[str, ...],
    weights: tuple[float, float],
    noise: float,
    root_noise: float,
) -> dict[str, Mechanism]:
    """A drawn :class:`SingleIndex` for every node; parents in alphabetical order, whatever the
    order of the edges.
    """
    mechanisms: dict[str, Mechanism] = {}
    for node in dag.nodes:
        parents = tuple(sorted(dag.predecessors(node)))
        function = functions[int(_generator(words, "function", node).integers(len(functions)))]
        drawn = tuple(
            _signed(_generator(words, "weight", parent, node), weights) for parent in parents
        )
        mechanisms[node] = SingleIndex(parents, drawn, function, noise if parents else root_noise)
    return mechanisms


def additive_noise_sem(
    dag: nx.DiGraph,
    *,
    key: jax.Array,
    noise: float = 0.5,
    bandwidth: float = 1.0,
    n_waves: int = 32,
    law: NoiseLaw = NoiseLaw.GAUSSIAN,
) -> StructuralModel:
    r"""A random additive-noise model: x = f(pa) + b eps with f a random smooth function, and
    x = eps at a root.

    f(v) = sqrt(2 / L) sum_l cos(w_l . v + phi_l), w_l normal with standard deviation 1 / (bandwidth
    sqrt(number of parents)) in each coordinate, phi_l uniform: about a draw from a Gaussian process
    with mean 0, variance 1 and the Gaussian kernel of that bandwidth.

    Args:
        dag: A networkx DiGraph of named nodes.
        key: A typed key, as for :func:`nonlinear_sem`.
        noise: b > 0; f has variance about 1.
        bandwidth: How far apart arguments must be for f to differ, positive; nodes have a spread of
            about 1.
        n_waves: L >= 1.
        law: The distribution of eps, of variance 1.

    Returns:
        The model; its :class:`FourierSum` mechanisms say what was drawn.

    Raises:
        GraphError: If ``dag`` is not a DAG of named nodes.
        OptionError: If another argument is out of range.

    Source:
        Rahimi and Recht 2007 for the random Fourier sum.
    """
    _check_dag(dag)
    _check_scale(noise=noise, bandwidth=bandwidth)
    check_whole("n_waves", n_waves, 1, cure="32 is usual")
    words = _words(key)
    mechanisms: dict[str, Mechanism] = {}
    for node in dag.nodes:
        parents = tuple(sorted(dag.predecessors(node)))
        scale = 1 / (bandwidth * math.sqrt(max(len(parents), 1)))
        columns = [
            _generator(words, "frequency", parent, node).normal(0, scale, n_waves)
            for parent in parents
        ]
        phases = _generator(words, "phase", node).uniform(0, 2 * math.pi, n_waves)
        frequencies = tuple(
            tuple(float(column[wave]) for column in columns) for wave in range(n_waves)
        )
        mechanisms[node] = FourierSum(
            parents, frequencies, tuple(phases.tolist()), noise if parents else 1.0
        )
    return StructuralModel(mechanisms, law)


def _words(key: Any) -> list[int]:
    """The words of a typed key, or OptionError."""
    import jax

    check_key(key)
    words = [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]
    return [len(words), *words]


def _generator(words: list[int], *label: str) -> np.random.Generator:
    """The generator of one purpose: the key, folded with the label's digest (each part with its
    length, so none run together).
    """
    text = "".join(f"{len(part)}:{part}" for part in label)
    digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([*words, *digest.tolist()])))


def _signed(rng: np.random.Generator, weights: tuple[float, float]) -> float:
    return float(rng.uniform(*weights) * (1 if rng.integers(2) else -1))


def _refuse_cycle(graph: nx.DiGraph) -> None:
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " -> ".join(repr(edge[0]) for edge in nx.find_cycle(graph))
        raise GraphError(f"dag has a cycle through {cycle}; remove or turn one of these edges")


def _check_dag(dag: Any) -> None:
    if not isinstance(dag, nx.DiGraph) or dag.is_multigraph():
        raise GraphError(f"dag must be a networkx DiGraph, not {type(dag).__name__}")
    for node in dag.nodes:
        if not isinstance(node, str) or not node:
            raise GraphError(
                f"node {node!r} must be a text of at least one character; relabel the nodes"
            )
    _refuse_cycle(dag)


def _check_scale(**scales: float) -> None:
    for name, value in scales.items():
        if not 0 < value < math.inf:
            raise OptionError(f"{name} = {value!r} is not a positive number; 1 is usual")


def _check_weights(weights: tuple[float, float]) -> None:
    if not (
        isinstance(weights, tuple) and len(weights) == 2 and 0 < weights[0] <= weights[1] < math.inf
    ):
        raise OptionError(
            f"weights = {weights!r} is not (least, largest) with 0 < least <= largest; (0.5, 1.5) "
            "is usual"
        )
