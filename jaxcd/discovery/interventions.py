"""Which arrows interventions tell beyond the class of a DAG.

Scores that count each node's natural rows (:mod:`jaxcd.scores.interventional`) use the edges of
:mod:`jaxcd.data.intervention_knowledge`, and orient the edges of which some condition sets exactly
one end.
"""

from __future__ import annotations

import numpy as np

from jaxcd.discovery.constraint.orientation import apply_meek_rules
from jaxcd.graphs import MixedGraph
from jaxcd.graphs.edges import Mark
from jaxcd.scores import GraphScore

__all__ = ["oriented_by_score"]


def oriented_by_score(graph: MixedGraph, score: GraphScore, adjacency: np.ndarray) -> MixedGraph:
    """The pattern of a DAG with the arcs that its score orients beyond its class, closed under
    Meek's rules.

    Args:
        graph: the pattern, over the score's names in their order.
        score: of the DAG.
        adjacency: the DAG, bool (d, d).
    """
    told = score.tells(adjacency) & graph.undirected
    if not told.any():
        return graph
    marks = graph.marks.copy()
    marks[told] = Mark.ARROW
    return apply_meek_rules(MixedGraph(graph.names, marks))
