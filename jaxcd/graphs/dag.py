"""Directed acyclic graphs as adjacency matrices: the one place where DAGs in several forms are read
and checked.
"""

from __future__ import annotations

from collections.abc import Hashable

import networkx as nx
import numpy as np

from jaxcd.errors import GraphError
from jaxcd.graphs.mixed_graph import MixedGraph


def dag_adjacency(
    dag: nx.DiGraph | MixedGraph | np.ndarray,
) -> tuple[tuple[Hashable, ...], np.ndarray]:
    """Read a DAG in any of three forms and check that it is one.

    Args:
        dag: A networkx DiGraph, a MixedGraph whose edges are all directed, or a (d, d) matrix whose
            entry (i, j) is nonzero for an arc from i to j.

    Returns:
        The nodes (their labels, their names, or 0..d-1) and a bool matrix (d, d), true at (i, j)
        for an arc i -> j.

    Raises:
        GraphError: If an edge is not directed or there is a directed cycle; the message names one.

    Example:
        >>> import networkx as nx
        >>> from jaxcd.graphs import dag_adjacency
        >>> names, arcs = dag_adjacency(nx.DiGraph([("a", "b")]))
        >>> names, arcs.tolist()
        (('a', 'b'), [[False, True], [False, False]])
    """
    nodes: tuple[Hashable, ...]
    if isinstance(dag, MixedGraph):
        nodes, adjacency = dag.names, dag.directed
        loose = np.argwhere(dag.adjacency & ~(adjacency | adjacency.T))
        if loose.size:
            edge = dag.edge(dag.names[loose[0][0]], dag.names[loose[0][1]])
            raise GraphError(
                f"every edge of a DAG is directed, got {edge}; see consistent_extension for a CPDAG"
            )
    elif isinstance(dag, nx.Graph):
        if not dag.is_directed():
            raise GraphError(
                f"dag must be a networkx DiGraph, got the undirected {type(dag).__name__}"
            )
        nodes = tuple(dag.nodes)
        adjacency = np.zeros((len(nodes), len(nodes)), dtype=bool)
        position = {node: i for i, node in enumerate(nodes)}
        for a, b in dag.edges():
            adjacency[position[a], position[b]] = True
    else:
        array = np.asarray(dag)
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise GraphError(
                f"dag must be a DiGraph, a MixedGraph or a square matrix, got shape {array.shape}"
            )
        if array.dtype.kind not in "biu" and not np.isin(array, (0, 1)).all():
            raise GraphError(
                "dag as a matrix must hold 0 and 1 only (1 at (i, j) for i -> j); compare weights "
                "with 0"
            )
        nodes, adjacency = tuple(range(array.shape[0])), array.astype(bool)
    _refuse_cycle(nodes, adjacency)
    return nodes, adjacency


def topological_order(adjacency: np.ndarray) -> list[int]:
    """The nodes of an acyclic bool matrix, parents first; the smallest position first where there
    is a choice.

    Args:
        adjacency: bool (d, d); entry (i, j) is whether there is an arc i -> j.

    Returns:
        The positions of the nodes, parents before children.

    Example:
        >>> import numpy as np
        >>> from jaxcd.graphs import topological_order
        >>> [int(node) for node in topological_order(np.array([[0, 0], [1, 0]], dtype=bool))]
        [1, 0]
    """
    graph = nx.from_numpy_array(np.asarray(adjacency, dtype=bool), create_using=nx.DiGraph)
    return [int(node) for node in nx.lexicographical_topological_sort(graph)]


def _refuse_cycle(nodes: tuple[Hashable, ...], adjacency: np.ndarray) -> None:
    graph = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [tail for tail, _ in nx.find_cycle(graph)]
        path = " --> ".join(str(nodes[i]) for i in [*cycle, cycle[0]])
        raise GraphError(
            f"a DAG has no directed cycle, got {path}; remove or turn one of these edges"
        )
