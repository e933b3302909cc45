"""What the interventions that a domain declares tell a search: background knowledge.

Joint causal inference (Mooij, Magliacane, Claassen 2020): the columns that say under which
conditions a row was taken are variables of the graph, with knowledge about them.

- *Exogeneity* (their assumption 1): nothing among the other columns causes an intervention column.
- *Generic context* (assumption 3): how intervention columns depend on each other was designed and
  is no finding.  Of two such columns neither causes the other; where latent variables are possible
  the two may be joined by ``<->``.
- *Known targets*: where a column names the variables that were set, it is a direct cause of these.
  Without latent variables it is adjacent to nothing else.  With them it may be: if a target has a
  latent cause in common with its effect x, no set separates the column from x.

That context and variables have no latent common cause (assumption 2) is used for known targets only
(the edges leave the column with a tail); an edge of another context begins with a circle in a PAG.

Scores that count each node's natural rows (:mod:`jaxcd.scores.interventional`) use the same edges,
and orient the edges of which some condition sets exactly one end (:func:`oriented_by_score`).
"""

from __future__ import annotations

import numpy as np

from jaxcd.data import Domain
from jaxcd.data.interventions import Interventions
from jaxcd.discovery.constraint.orientation import apply_meek_rules
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.graphs.edges import Mark
from jaxcd.scores import GraphScore

__all__ = ["oriented_by_score", "with_interventions"]


def with_interventions(
    knowledge: Knowledge | None, domain: Domain, *, latent: bool = False
) -> Knowledge | None:
    """What is known of a graph, with what the domain's interventions say.

    Args:
        knowledge: what the user knows; None for nothing.
        domain: of the columns; public.
        latent: whether there may be latent variables.

    Returns:
        The knowledge itself where the domain declares no intervention.  Else intervention columns
        are the first tier; a tier that the user gave such a column says what it does not cause.

    Raises:
        OptionError: the two contradict each other.
        DomainError: a variable is set at every level of a column.
    """
    known = Interventions.of(domain)
    if not known.columns:
        return knowledge
    given = Knowledge() if knowledge is None else knowledge
    columns = set(known.columns)
    variables = [name for name in domain.names if name not in columns]
    forbidden = {*given.forbidden, *((a, b) for a in columns for b in columns if a != b)}
    forbidden |= {(c, a) for c in columns for a in variables if given.forbids(c, a)}
    if not latent:
        forbidden |= {
            (c, a) for c, targets in known.settings.items() for a in variables if a not in targets
        }
    required = {*given.required, *((c, t) for c, found in known.settings.items() for t in found)}
    rest = [[name for name in tier if name not in columns] for tier in given.tiers]
    tiers = [tier for tier in rest if tier]
    if tiers:
        forbidden |= {(a, c) for c in columns for a in variables if given.tier_of(a) is None}
    try:
        return Knowledge(
            tiers=[known.columns, *(tiers or [variables])],
            forbidden=forbidden,
            required=required,
            forbidden_within_tier=given.forbidden_within_tier and bool(tiers),
        )
    except OptionError as error:
        raise OptionError(
            f"knowledge contradicts the interventions that the domain declares: {error}"
        ) from None


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
