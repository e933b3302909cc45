"""Sites that differ: the site as a column that nothing causes, and which mechanisms it changes.

With the site as one more column of every row, declared a context (an intervention of unknown
targets; Mooij, Magliacane, Claassen 2020), a search lets arrows out of it and none into it: an
arrow from the site to X says that X follows another law given its other causes at some site.  The
column is public, and part of the row: a replaced row stays at its site.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import networkx as nx

from jaxcd.checks import a_type, shown_list
from jaxcd.citests import ChiSquare, Query
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.graphs.cpdag import consistent_extension
from jaxcd.releases import Release

__all__ = ["Mechanism", "shared_mechanisms"]


@dataclass(frozen=True)
class Mechanism:
    """Whether the law of a variable given its causes is the same at all sites.

    Args:
        name: of the variable.
        causes: in the graph, the site left out.
        pvalue: of "it is the same"; None where the release did not measure it, and where a cause is
            known in bins, or its missing cells are read as a level: these do not hold it fixed.
        adjusted: the p-value for all variables together (Holm 1979).
    """

    name: str
    causes: tuple[str, ...]
    pvalue: float | None
    adjusted: float | None

    def differs(self, alpha: float = 0.05) -> bool:
        """Whether it is not the same, at this level for all variables together."""
        return self.adjusted is not None and self.adjusted < alpha


def shared_mechanisms(
    bought: Any, graph: MixedGraph | nx.DiGraph, *, column: str = "site"
) -> tuple[Mechanism, ...]:
    """Tests for every variable whether the sites share its mechanism, on a release; free.

    For X with causes Z in the graph: whether X and the site are independent given Z, by
    ``ChiSquare`` on the release, which has the noise in its null.

    Args:
        bought: a release with the column, such as :func:`jaxcd.federate` makes.
        graph: a DAG, or a CPDAG, of which one DAG is taken; with or without the column.
        column: of the sites.

    Returns:
        One entry a variable, in the order of the release.

    Raises:
        OptionError: the release has no such column.
        GraphError: the graph is none, is of other variables, or no DAG fits it.

    Source:
        Mooij, Magliacane, Claassen 2020; Holm 1979.

    Example:
        >>> import jax, jaxcd
        >>> from jaxcd.federated import shared_mechanisms, with_site
        >>> network, names = jaxcd.networks.load("cancer"), ("north", "south")
        >>> sites = {
        ...     name: with_site(network.sample(5_000, key=jax.random.key(place)), name, names)
        ...     for place, name in enumerate(names)
        ... }
        >>> bought = jaxcd.federate(
        ...     sites,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(9)),
        ... )
        >>> [each.name for each in shared_mechanisms(bought, network.dag) if each.differs()]
        []
    """
    if not isinstance(bought, Release):
        raise OptionError(
            f"bought: {a_type(bought)} is no release; buy one with jaxcd.federate, or "
            "with jaxcd.release of rows that have the column"
        )
    if ChiSquare not in bought.tests():
        raise OptionError(
            f"bought: a release of {bought.kind.replace('-', ' ')} does not answer ChiSquare; buy "
            "Histogram, Marginals, LogLinear or Discretised"
        )
    if column not in bought.names:
        raise OptionError(
            f"column = {column!r} is not in the release; it has {shown_list(bought.names)}: give "
            "every site's rows the column with jaxcd.federated.with_site"
        )
    dag = MixedGraph.from_dag(graph) if isinstance(graph, nx.DiGraph) else graph
    if not isinstance(dag, MixedGraph):
        raise GraphError(
            f"graph: {a_type(graph)} is no graph; give a networkx DiGraph or a "
            "MixedGraph, such as the graph of a result"
        )
    inner = [name for name in bought.names if name != column]
    if not set(inner) <= set(dag.names) or not set(dag.names) <= set(bought.names):
        raise GraphError(
            f"graph: it has {shown_list(dag.names)}, and the release {shown_list(inner)}; give a "
            "graph of the release's variables"
        )
    found = dag if dag.is_dag() else consistent_extension(dag)
    if found is None:
        raise GraphError("graph: no DAG fits it; give a DAG, or the CPDAG of one")
    place = {name: j for j, name in enumerate(bought.names)}
    prepared = bought.prepare_test(ChiSquare())
    causes = {name: tuple(each for each in found.parents(name) if each != column) for name in inner}
    queries = {
        name: Query.of(place[name], place[column], tuple(place[c] for c in causes[name]))
        for name in inner
    }
    logs: dict[str, float] = {}
    for name, query in queries.items():
        if prepared.admissible(query) and not set(causes[name]) & set(bought.coarse):
            answer = prepared.evaluate(prepared.bucket(query), [query], alpha=0.05)
            logs[name] = float(answer.log_pvalue[0])
    adjusted, worst = {}, -math.inf
    for rank, name in enumerate(sorted(logs, key=lambda name: logs[name])):
        worst = max(worst, min(0.0, logs[name] + math.log(len(logs) - rank)))
        adjusted[name] = math.exp(worst)
    return tuple(
        Mechanism(
            name, causes[name], math.exp(logs[name]) if name in logs else None, adjusted.get(name)
        )
        for name in inner
    )
