"""Graphs: marks and mixed graphs, d-separation, Markov equivalence, and the formats of other
tools.
"""

from __future__ import annotations

from jaxcd.graphs.adjustment import Adjustment
from jaxcd.graphs.ancestral import (
    dag_to_mag,
    is_ancestral,
    is_mag,
    markov_equivalent_mags,
    visible_edges,
)
from jaxcd.graphs.converters import (
    PcalgGraph,
    PcalgKind,
    from_causal_learn,
    from_dot,
    from_json_dict,
    from_networkx,
    from_pcalg,
    from_tetrad,
    to_causal_learn,
    to_dot,
    to_json_dict,
    to_networkx,
    to_pcalg,
    to_tetrad,
)
from jaxcd.graphs.cpdag import consistent_extension, dag_to_cpdag, random_dag
from jaxcd.graphs.dag import dag_adjacency, topological_order
from jaxcd.graphs.edges import Edge, Mark
from jaxcd.graphs.knowledge import Knowledge
from jaxcd.graphs.m_separation import MSeparation, m_separated
from jaxcd.graphs.mixed_graph import MixedGraph
from jaxcd.graphs.peers import to_causal_learn_graph, to_dowhy, to_pgmpy
from jaxcd.graphs.possible_paths import possible_ancestors, possible_d_sep, possible_descendants
from jaxcd.graphs.separation import DSeparation, d_separated

__all__ = [
    "Adjustment",
    "DSeparation",
    "Edge",
    "Knowledge",
    "MSeparation",
    "Mark",
    "MixedGraph",
    "PcalgGraph",
    "PcalgKind",
    "consistent_extension",
    "d_separated",
    "dag_adjacency",
    "dag_to_cpdag",
    "dag_to_mag",
    "from_causal_learn",
    "from_dot",
    "from_json_dict",
    "from_networkx",
    "from_pcalg",
    "from_tetrad",
    "is_ancestral",
    "is_mag",
    "m_separated",
    "markov_equivalent_mags",
    "possible_ancestors",
    "possible_d_sep",
    "possible_descendants",
    "random_dag",
    "to_causal_learn",
    "to_causal_learn_graph",
    "to_dot",
    "to_dowhy",
    "to_json_dict",
    "to_networkx",
    "to_pcalg",
    "to_pgmpy",
    "to_tetrad",
    "topological_order",
    "visible_edges",
]
