"""Graphs as objects of other libraries, which are imported when they are asked for.

>>> graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
>>> to_dowhy(graph).edges
OutEdgeView([('a', 'b')])
"""

from __future__ import annotations

import importlib
from typing import Any

import networkx as nx

from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs.dag import dag_adjacency
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph

__all__ = ["to_causal_learn_graph", "to_dowhy", "to_pgmpy"]


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise OptionError(
            f"{package} cannot be imported ({error}); install it, as in: pip install {package}"
        ) from None


def to_dowhy(graph: MixedGraph) -> nx.DiGraph:
    """A DAG as DoWhy takes it: a plain networkx DiGraph, for ``dowhy.CausalModel(graph=...)`` and
    ``dowhy.gcm``.

    Args:
        graph: A DAG.

    Returns:
        The DiGraph, without attributes; needs no DoWhy.

    Raises:
        GraphError: If it is no DAG.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_dowhy
        >>> list(to_dowhy(MixedGraph.from_edges(["a", "b"], ["a --> b"])).edges)
        [('a', 'b')]
    """
    dag_adjacency(graph)
    found = nx.DiGraph()
    found.add_nodes_from(graph.names)
    found.add_edges_from((name, child) for name in graph.names for child in graph.children(name))
    return found


def to_pgmpy(graph: MixedGraph) -> Any:
    """A DAG as ``pgmpy.base.DAG``, a CPDAG as ``pgmpy.base.PDAG``.

    Args:
        graph: A graph of directed and undirected edges.

    Returns:
        The object of pgmpy.

    Raises:
        GraphError: If it has other edges.
        OptionError: If pgmpy cannot be imported.

    Example:
        >>> from jaxcd.graphs import MixedGraph, to_pgmpy
        >>> to_pgmpy(MixedGraph.from_edges(["a", "b"], ["a <-> b"]))
        Traceback (most recent call last):
        jaxcd.errors.GraphError: pgmpy has no edge like a <-> b; give a DAG or a CPDAG
    """
    for edge in graph.edges():
        if edge.symbol not in ("-->", "---"):
            raise GraphError(f"pgmpy has no edge like {edge}; give a DAG or a CPDAG")
    base = _imported("pgmpy.base", "pgmpy")
    directed = [(edge.a, edge.b) for edge in graph.edges() if edge.symbol == "-->"]
    undirected = [(edge.a, edge.b) for edge in graph.edges() if edge.symbol == "---"]
    if undirected:
        found = base.PDAG(directed_ebunch=directed, undirected_ebunch=undirected)
    else:
        dag_adjacency(graph)
        found = base.DAG(directed)
    found.add_nodes_from(graph.names)
    return found


def to_causal_learn_graph(graph: MixedGraph) -> Any:
    """Any graph as causal-learn's ``GeneralGraph``; :func:`to_causal_learn` is its matrix.

    Args:
        graph: Any graph.

    Returns:
        The object of causal-learn, its nodes in the order of the names.

    Raises:
        OptionError: If causal-learn cannot be imported.

    Source:
        Zheng et al. 2024, Causal-learn: Causal discovery in Python (JMLR 25).
    """
    base = "causallearn.graph"
    general, node, edge, endpoint = (
        _imported(f"{base}.{part}", "causal-learn")
        for part in ("GeneralGraph", "GraphNode", "Edge", "Endpoint")
    )
    nodes = {name: node.GraphNode(name) for name in graph.names}
    marks = {
        Mark.TAIL: endpoint.Endpoint.TAIL,
        Mark.ARROW: endpoint.Endpoint.ARROW,
        Mark.CIRCLE: endpoint.Endpoint.CIRCLE,
    }
    found = general.GeneralGraph(list(nodes.values()))
    for one in graph.edges():
        found.add_edge(edge.Edge(nodes[one.a], nodes[one.b], marks[one.mark_a], marks[one.mark_b]))
    return found
