"""Discrete Bayesian networks: four built in, any other from a BIF file, and samples from them.

A network is a directed acyclic graph with one table for every node, P(node | parents); the joint
probability is their product.  Because the graph is known, samples from it are the test bed of
causal discovery.

>>> from jaxcd.data import networks
>>> networks.load("asia").n_parameters
18
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from jaxcd.checks import check_count, check_key, counted
from jaxcd.data.bif import ROW_SUM_TOLERANCE, parse_bif
from jaxcd.data.builtin_networks import BUILTIN
from jaxcd.data.dataset import Dataset
from jaxcd.data.domain import Categorical, Domain
from jaxcd.data.readers import open_text
from jaxcd.errors import DomainError, FormatError, GraphError, OptionError
from jaxcd.places import check_there, path_of

if TYPE_CHECKING:
    from jaxcd.graphs import MixedGraph

__all__ = ["BayesianNetwork", "available", "load", "read_bif"]


@dataclass(frozen=True, eq=False, repr=False)
class BayesianNetwork:
    """A discrete Bayesian network: P(x) = prod_j P(x_j | x_parents(j)).

    Args:
        name: The network's name.
        domain: One categorical column a node, in node order.
        parents: The parents of every node, in the order of its table's axes.
        cpts: The table of every node, shape (cardinality of each parent..., cardinality of the
            node); rows sum to 1.

    Raises:
        GraphError: If the parents are unknown or repeated, or the graph has a cycle.
        DomainError: If a node is not categorical, a table has the wrong shape, or a row does not
            sum to 1 within 1e-6.

    Example:
        >>> import jaxcd
        >>> network = jaxcd.networks.load("cancer")
        >>> network.name, network.parents["Cancer"]
        ('cancer', ('Pollution', 'Smoker'))
    """

    name: str
    domain: Domain
    parents: Mapping[str, tuple[str, ...]]
    cpts: Mapping[str, NDArray[np.float64]]

    def __post_init__(self) -> None:
        for what, given in (("parents", self.parents), ("cpts", self.cpts)):
            if set(given) != set(self.names):
                wrong = min(set(given) ^ set(self.names))
                raise GraphError(
                    f"{what} must have one entry for every node of the domain; see {wrong!r}"
                )
        parents: dict[str, tuple[str, ...]] = {}
        cpts: dict[str, NDArray[np.float64]] = {}
        for node in self.names:
            parents[node] = tuple(self.parents[node])
            for parent in parents[node]:
                if parent not in self.domain:
                    raise GraphError(
                        f"node {node!r} has the unknown parent {parent!r}; add it to the domain"
                    )
            if len(set(parents[node])) < len(parents[node]):
                raise GraphError(f"node {node!r} lists a parent twice; list each once")
            cpts[node] = self._checked_table(node, parents[node])
        object.__setattr__(self, "parents", MappingProxyType(parents))
        object.__setattr__(self, "cpts", MappingProxyType(cpts))
        if not nx.is_directed_acyclic_graph(self.dag):
            cycle = " -> ".join(repr(edge[0]) for edge in nx.find_cycle(self.dag))
            raise GraphError(
                f"the network has a cycle through {cycle}; a Bayesian network must have none"
            )

    def _checked_table(self, node: str, parents: tuple[str, ...]) -> NDArray[np.float64]:
        if not isinstance(self.domain[node], Categorical):
            raise DomainError(
                f"node {node!r} is {self.domain[node].kind}; nodes of a network must be categorical"
            )
        shape = tuple(self.domain[name].cardinality for name in (*parents, node))
        table = np.array(self.cpts[node], dtype=np.float64)
        if table.shape != shape:
            raise DomainError(
                f"the table of node {node!r} has the shape {table.shape}, not {shape}"
            )
        total = table.sum(axis=-1, keepdims=True)
        if not (np.all(table >= 0) and np.all(np.abs(total - 1) <= ROW_SUM_TOLERANCE)):
            raise DomainError(
                f"every row of the table of node {node!r} must be non-negative and sum to 1 "
                "within 1e-6"
            )
        table = table / total
        table.setflags(write=False)
        return table

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes, in file order."""
        return self.domain.names

    @property
    def dag(self) -> nx.DiGraph:
        """The graph, as a new networkx DiGraph whose nodes are in the order of :attr:`names`."""
        graph = nx.DiGraph(name=self.name)
        graph.add_nodes_from(self.names)
        graph.add_edges_from((parent, node) for node in self.names for parent in self.parents[node])
        return graph

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: the sum over nodes of (cardinality - 1) *
        prod(cardinalities of parents).
        """
        return sum((table.shape[-1] - 1) * prod(table.shape[:-1]) for table in self.cpts.values())

    def cpdag(self) -> MixedGraph:
        """The completed partially directed graph of the Markov equivalence class: all that data
        alone can identify.
        """
        from jaxcd.graphs import dag_to_cpdag

        return dag_to_cpdag(self.dag)

    def sample(self, n: int, *, key: Any) -> Dataset:
        """Draw independent rows by ancestral sampling.

        Every node inverts the distribution function of its row, P(X <= k | parents), at one uniform
        number a row.  The uniforms of a node depend on ``key`` and the node's position only.

        Args:
            n: The number of rows, at least 1.
            key: A typed key, ``jax.random.key(seed)``; equal keys give equal samples.

        Returns:
            A discrete data set in the network's declared domain, columns in the order of
            :attr:`names`.

        Raises:
            OptionError: If ``n`` is not a whole number of at least 1, or ``key`` is not a typed
                key.
        """
        check_count("n", n, minimum=1, cure="give a number of rows")
        check_key(key)
        position = {name: j for j, name in enumerate(self.names)}
        codes = np.empty((int(n), len(self.names)), dtype=np.int32, order="F")
        for node in nx.topological_sort(self.dag):
            j = position[node]
            row = np.zeros(int(n), dtype=np.int64)
            for parent in self.parents[node]:
                row = row * self.cpts[parent].shape[-1] + codes[:, position[parent]]
            codes[:, j] = _inverse_cdf(self.cpts[node], row, _uniforms(key, j, int(n)))
        codes.setflags(write=False)
        return Dataset.from_codes(codes, domain=self.domain)

    def randomised(self, names: Iterable[str]) -> BayesianNetwork:
        """The network after an intervention that draws some nodes uniformly, whatever their parents
        are.

        Args:
            names: Nodes; they lose their parents.

        Raises:
            OptionError: If a name is no node.

        Example:
            >>> import jaxcd
            >>> jaxcd.networks.load("cancer").randomised(["Cancer"]).parents["Cancer"]
            ()
        """
        chosen = list(names)
        parents, cpts = dict(self.parents), dict(self.cpts)
        for node in chosen:
            if node not in self.domain:
                raise OptionError(
                    f"names: {node!r} is no node of the network; give one of its nodes"
                )
            n_levels = cpts[node].shape[-1]
            parents[node], cpts[node] = (), np.full(n_levels, 1 / n_levels)
        return BayesianNetwork(self.name, self.domain, parents, cpts)

    def __reduce__(self) -> tuple[Any, ...]:  # mapping proxies can be neither pickled nor copied
        return (BayesianNetwork, (self.name, self.domain, dict(self.parents), dict(self.cpts)))

    def __repr__(self) -> str:
        n_edges = sum(map(len, self.parents.values()))
        return (
            f"BayesianNetwork({self.name!r}; {counted(len(self.names), 'node')}, "
            f"{counted(n_edges, 'edge')}, {counted(self.n_parameters, 'parameter')})"
        )


def _uniforms(key: Any, index: int, n: int) -> NDArray[np.float64]:
    """n uniforms strictly inside (0, 1) on a grid of 2**32 points, the same whatever jax's default
    precision is.
    """
    import jax

    bits = np.asarray(jax.random.bits(jax.random.fold_in(key, index), (n,), "uint32"))
    return (bits.astype(np.float64) + 0.5) * 2.0**-32


def _inverse_cdf(
    cpt: NDArray[np.float64], row: NDArray[np.int64], uniform: NDArray[np.float64]
) -> NDArray[np.int32]:
    """The smallest level k with uniform < P(X <= k) in the given row of the table."""
    table = cpt.reshape(-1, cpt.shape[-1])
    cumulative = np.cumsum(table, axis=1)
    # Exactly one once all later levels are impossible, so that rounding cannot draw a level of
    # probability zero.
    later = np.cumsum(table[:, ::-1], axis=1)[:, ::-1][:, 1:]
    thresholds = np.where(later == 0, 1.0, cumulative[:, :-1])
    codes = np.zeros(row.shape[0], dtype=np.int32)
    for level in range(thresholds.shape[1]):
        codes += uniform >= thresholds[row, level]
    return codes


def available() -> tuple[str, ...]:
    """The names of the built-in networks."""
    return tuple(BUILTIN)


def load(name: str) -> BayesianNetwork:
    """A built-in network: cancer, earthquake, asia or survey, in any case.

    Raises:
        OptionError: If there is no such network.

    Source:
        Korb & Nicholson 2010 (cancer, earthquake); Lauritzen & Spiegelhalter 1988 (asia); Scutari &
        Denis 2014 (survey).
    """
    key = name.lower() if isinstance(name, str) else ""
    if key not in BUILTIN:
        raise OptionError(
            f"name {name!r} is not a built-in network; use one of {', '.join(BUILTIN)}, or "
            "read_bif for a file"
        )
    tables = BUILTIN[key]
    domain = Domain({node: Categorical(levels) for node, levels in tables.levels.items()})
    return BayesianNetwork(key, domain, tables.parents, tables.cpts)


def read_bif(path: str | Path) -> BayesianNetwork:
    """Read a network from a BIF file (.bif or .bif.gz); rows that sum to one within 1e-6 are
    renormalised.

    Args:
        path: The file; its stem names the network where the file itself says none or "unknown".

    Returns:
        The network, nodes in file order.

    Raises:
        DataError: If there is no such file.
        FormatError: If the file is not BIF, a row is missing or does not sum to one (naming the
            line), or there is a cycle (naming its nodes).
    """
    path = path_of("path", path, example="asia.bif")
    check_there(path, wanted="a BIF file", of="*.bif*")
    try:
        with open_text(path) as handle:
            text = handle.read()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        raise FormatError(f"file {str(path)!r} cannot be read as UTF-8 text") from None
    try:
        parsed = parse_bif(text)
        domain = Domain({node: Categorical(levels) for node, levels in parsed.levels.items()})
        name = parsed.name if parsed.name not in ("", "unknown") else path.name.split(".")[0]
        return BayesianNetwork(name, domain, parsed.parents, parsed.cpts)
    except (FormatError, GraphError, DomainError) as error:
        raise FormatError(f"file {str(path)!r}: {error}") from None
