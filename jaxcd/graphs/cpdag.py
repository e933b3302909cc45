"""Markov equivalence: the CPDAG of a DAG, and a DAG inside a PDAG.

Two DAGs are Markov equivalent if they have the same adjacencies and the same v-structures (a --> b
<-- c with a and c not adjacent).  The CPDAG of a DAG keeps an edge directed if all equivalent DAGs
agree on its direction (it is compelled) and makes it undirected otherwise (it is reversible).

>>> chain = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --> c"])
>>> print(dag_to_cpdag(chain))
a --- b
b --- c
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from jaxcd.errors import GraphError
from jaxcd.graphs.dag import dag_adjacency, topological_order
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph


def dag_to_cpdag(dag: nx.DiGraph | MixedGraph) -> MixedGraph:
    """The completed partially directed acyclic graph of a DAG's Markov equivalence class.

    Args:
        dag: A networkx DiGraph, or a MixedGraph whose edges are all directed.

    Returns:
        The CPDAG; its names are the DAG's nodes (as strings) in node order.

    Raises:
        GraphError: If ``dag`` is no DAG.

    Source:
        Chickering 1995 (UAI), "A transformational characterization of equivalent Bayesian network
        structures": edges are ordered and then labelled compelled or reversible, each one in time
        of the number of parents.

    Example:
        >>> from jaxcd.graphs import MixedGraph, dag_to_cpdag
        >>> dag = MixedGraph.from_edges(["a", "b", "c", "d"], ["a --> c", "b --> c", "c --> d"])
        >>> print(dag_to_cpdag(dag))
        a --> c
        b --> c
        c --> d
    """
    nodes, adjacency = dag_adjacency(dag)
    compelled = _compelled(adjacency)
    marks = np.zeros(adjacency.shape, dtype=np.int8)
    marks[adjacency | adjacency.T] = Mark.TAIL
    marks[compelled] = Mark.ARROW
    return MixedGraph(tuple(str(node) for node in nodes), marks)


def _compelled(adjacency: np.ndarray) -> np.ndarray:
    """Bool matrix of the arcs that all Markov equivalent DAGs share."""
    parents = [set(np.flatnonzero(column).tolist()) for column in adjacency.T]
    order = topological_order(adjacency)
    rank = {v: k for k, v in enumerate(order)}
    compelled = np.zeros(adjacency.shape, dtype=bool)
    # Heads are taken in topological order, so that all arcs into a tail are labelled before the
    # arcs out of it.  For one head y Chickering's order takes the latest tail x first, and that one
    # step labels every arc into y.
    for y in order:
        if not parents[y]:
            continue
        x = max(parents[y], key=rank.__getitem__)
        into_x = {w for w in parents[x] if compelled[w, x]}
        if not into_x <= parents[y]:
            # w --> x --> y with w and y not adjacent: turning x --> y round would make a
            # v-structure at x.
            compelled[list(parents[y]), y] = True
        elif parents[y] - parents[x] - {x}:
            # z --> y <-- x with z and x not adjacent is a v-structure.
            compelled[list(parents[y]), y] = True
        else:
            compelled[list(into_x), y] = True
    return compelled


def consistent_extension(pdag: MixedGraph) -> MixedGraph | None:
    """A DAG with the adjacencies, the directed edges and the v-structures of a PDAG, if there is
    one.

    Args:
        pdag: A graph of directed and undirected edges.

    Returns:
        A DAG, or None if no consistent extension exists.  Which of several DAGs it is depends on
        the order of the names (the last possible sink in that order is taken first); whether there
        is one does not.

    Raises:
        GraphError: If an edge is neither directed nor undirected.

    Source:
        Dor and Tarsi 1992, "A simple algorithm to construct a consistent extension of a partially
        oriented graph" (UCLA, R-185).

    Example:
        >>> from jaxcd.graphs import MixedGraph, consistent_extension
        >>> graph = MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "b --- c"])
        >>> print(consistent_extension(graph))
        a --> b
        b --> c
    """
    directed, undirected = pdag.directed.copy(), pdag.undirected.copy()
    loose = np.argwhere(pdag.adjacency & ~(directed | directed.T | undirected))
    if loose.size:
        edge = pdag.edge(pdag.names[loose[0][0]], pdag.names[loose[0][1]])
        raise GraphError(f"a PDAG has directed and undirected edges only, got {edge}")
    result = directed.copy()
    left = list(range(pdag.n_nodes))
    while left:
        adjacency = directed | directed.T | undirected
        sink = next(
            (x for x in reversed(left) if _may_be_sink(x, directed, undirected, adjacency)), None
        )
        if sink is None:
            return None
        result[undirected[sink], sink] = True
        left.remove(sink)
        for matrix in (directed, undirected):
            matrix[sink, :] = False
            matrix[:, sink] = False
    return MixedGraph.from_arcs(pdag.names, result)


def _may_be_sink(
    x: int, directed: np.ndarray, undirected: np.ndarray, adjacency: np.ndarray
) -> bool:
    """Has x no child, and is every undirected neighbour of x adjacent to all that x is adjacent
    to?
    """
    if directed[x].any():
        return False
    around = np.flatnonzero(adjacency[x])
    neighbours = np.flatnonzero(undirected[x])
    block = adjacency[np.ix_(neighbours, around)] | (neighbours[:, None] == around[None, :])
    return bool(block.all())


def random_dag(
    n_nodes: int, *, expected_degree: float, seed: int | np.random.Generator
) -> nx.DiGraph:
    """A random DAG: arcs are independent given a uniformly random order of the nodes.

    Each pair is joined with probability ``expected_degree / (n_nodes - 1)``, from the earlier to
    the later node.

    Args:
        n_nodes: Number of nodes, at least 1.
        expected_degree: Expected number of edges at a node, in [0, n_nodes - 1].
        seed: An integer, or a numpy Generator, which is advanced.

    Returns:
        A networkx DiGraph with nodes ``"x0"``, ``"x1"``, ... in this order, which is not the
        topological one.

    Raises:
        GraphError: If an argument is out of range.

    Example:
        >>> from jaxcd.graphs import random_dag
        >>> list(random_dag(4, expected_degree=2, seed=0).nodes)
        ['x0', 'x1', 'x2', 'x3']
    """
    if not n_nodes >= 1:
        raise GraphError(f"n_nodes must be at least 1, got {n_nodes}")
    if not 0 <= expected_degree <= n_nodes - 1:
        raise GraphError(
            f"expected_degree must be in [0, n_nodes - 1] = [0, {n_nodes - 1}], got "
            f"{expected_degree}"
        )
    rng = np.random.default_rng(seed)
    probability = expected_degree / max(n_nodes - 1, 1)
    upper = np.triu(rng.random((n_nodes, n_nodes)) < probability, k=1)
    order = rng.permutation(n_nodes)
    dag = nx.DiGraph()
    dag.add_nodes_from(f"x{i}" for i in range(n_nodes))
    dag.add_edges_from((f"x{order[i]}", f"x{order[j]}") for i, j in np.argwhere(upper))
    return dag
