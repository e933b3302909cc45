"""What the interventions that a domain declares tell a search: background knowledge.

Joint causal inference (Mooij, Magliacane, Claassen 2020): the columns that say under which
conditions a row was taken are variables of the graph, with knowledge about them.

- *Exogeneity* (their assumption 1): nothing among the other columns causes an intervention column.
- *Generic context* (assumption 3): how intervention columns depend on each other was designed and
  is no finding.  Of two such columns neither causes the other; where latent variables are possible
  the two may be joined by ``<->``.  A DAG without an arc between them does not say that they are
  independent: what takes it for a model of the rows adds arcs (:func:`designed_arcs`).
- *Known targets*: where a column names the variables that were set, it is a direct cause of these.
  In a search by scores it is adjacent to nothing else.  A search by tests asks about the others:
  which sets separate the column from the neighbours of a target is what orients them.  Where the
  answer is that none does, the edge stays: it says that a target is missing in the domain, or (in
  a PAG) that a target and its effect may have a latent cause in common.
  Tests take it that setting a variable changes how it is distributed: a coin flip in the place of a
  coin flip is independent of the column, and a collider at the target is then read off wrongly.
  Scores of natural rows do not need this.

That context and variables have no latent common cause (assumption 2) is used for known targets only
(the edges leave the column with a tail); an edge of another context begins with a circle in a PAG.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from jaxcd.data.domain import Domain
from jaxcd.data.interventions import Interventions
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge, topological_order

__all__ = ["designed_arcs", "with_interventions"]


def with_interventions(
    knowledge: Knowledge | None, domain: Domain, *, by_tests: bool = False
) -> Knowledge | None:
    """What is known of a graph, with what the domain's interventions say.

    Args:
        knowledge: what the user knows; None for nothing.
        domain: of the columns; public.
        by_tests: whether the search asks tests, which then decide about the edges between a column
            with known targets and other variables; else there are none.

    Returns:
        The knowledge itself where the domain declares no intervention.  Else intervention columns
        are the first tier; a tier that the user gave such a column says what it does not cause.

    Raises:
        OptionError: the two contradict each other.
    """
    known = Interventions.of(domain)
    if not known.columns:
        return knowledge
    given = Knowledge() if knowledge is None else knowledge
    columns = set(known.columns)
    variables = [name for name in domain.names if name not in columns]
    forbidden = {*given.forbidden, *((a, b) for a in columns for b in columns if a != b)}
    forbidden |= {(c, a) for c in columns for a in variables if given.forbids(c, a)}
    if not by_tests:
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


def designed_arcs(
    adjacency: np.ndarray, names: Sequence[str], domain: Domain, *, last: str | None = None
) -> np.ndarray:
    """The arcs that a DAG lacks between intervention columns, bool (d, d): nobody knows how these
    depend on each other, and a model of the rows leaves it open.

    Args:
        adjacency: of the DAG, bool (d, d).
        names: of its nodes.
        domain: says which of them are intervention columns.
        last: a column that comes behind the others, as far as the DAG lets it.

    Returns:
        With the DAG's own arcs a DAG in which any two intervention columns are joined.
    """
    added = np.zeros((len(names),) * 2, dtype=bool)
    columns = {j for j, name in enumerate(names) if name in domain.interventions}
    if len(columns) > 1:
        places = np.array(sorted(range(len(names)), key=lambda j: names[j] == last))
        order = places[topological_order(adjacency[np.ix_(places, places)])].tolist()
        for a, b in combinations([j for j in order if j in columns], 2):
            added[a, b] = not adjacency[a, b]
    return added
