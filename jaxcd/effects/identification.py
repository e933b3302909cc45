r"""What a graph says of an effect: no effect, adjustment sets to choose from, or several
possibilities.

* DAG: one possibility.
* CPDAG that is amenable: one.  Otherwise the DAGs of the class disagree, and there is one for each
  set of parents that x has in some of them (IDA): the effect depends on the class through the
  parents of x alone.
* PAG or MAG: one where the generalised adjustment criterion has a set.  Otherwise the MAGs that the
  PAG stands for are gone through, where they are few enough to list: each says that there is no
  effect, or has an adjustment set, or leaves the effect open (LV-IDA).  At least one leaves it
  open, so that the possibilities end with one that is (on every PAG of four columns, by trying
  all; Perkovic et al. 2018, theorem 5, for PAGs that are not amenable).

Source:
    Maathuis, Kalisch, Buehlmann 2009, Estimating high-dimensional intervention effects from
    observational data (Annals of Statistics 37), for IDA; Malinsky and Spirtes 2016, Estimating
    causal effects with ancestral graph Markov models (PGM), for LV-IDA; Perkovic et al. 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, islice
from typing import Any, final

import networkx as nx
import numpy as np

from jaxcd.checks import a_type
from jaxcd.data import Domain
from jaxcd.data.intervention_knowledge import designed_arcs
from jaxcd.discovery.constraint.orientation import apply_meek_rules
from jaxcd.errors import GraphError
from jaxcd.graphs import Adjustment, MixedGraph, consistent_extension, from_networkx
from jaxcd.graphs.adjustment import member, members
from jaxcd.graphs.edges import Mark

__all__ = ["Possibility", "as_designed", "as_graph", "possibilities"]

_MOST_NEIGHBOURS = 12  # 4,096 sets of parents
_MOST_SETS = 2000
_LARGEST_SET = 4


def as_graph(graph: Any) -> MixedGraph:
    """The graph as a MixedGraph: a networkx DiGraph, a MixedGraph, or what holds one as ``.graph``
    (a run, which says by ``.is_latent`` whether it is a PAG).

    Raises:
        GraphError: it is none of these.
    """
    if not isinstance(graph, nx.Graph) and isinstance(getattr(graph, "graph", None), MixedGraph):
        graph = graph.graph
    if isinstance(graph, MixedGraph):
        return graph
    if isinstance(graph, nx.Graph):
        return from_networkx(graph)
    raise GraphError(
        f"graph: {a_type(graph)} is no graph; give a networkx DiGraph, a MixedGraph, or a "
        "run with a graph"
    )


def as_designed(graph: MixedGraph, domain: Domain, treatment: str) -> MixedGraph:
    """A DAG or CPDAG with arcs between the columns that say under which conditions a row was taken:
    how these depend on each other was designed, so that each may hide behind another.  What sets
    one of them sets no other.  A graph with circles or ``<->``, which may show it, stays as it is.
    """
    if (graph.marks == Mark.CIRCLE).any() or graph.bidirected.any():
        return graph
    told = designed_arcs(graph.directed, graph.names, domain, last=treatment) & ~graph.adjacency
    if not told.any():
        return graph
    marks = np.array(graph.marks)
    marks[told], marks[told.T] = Mark.ARROW, Mark.TAIL
    return apply_meek_rules(MixedGraph(graph.names, marks))


@final
@dataclass(frozen=True, eq=False)
class Possibility:
    """One effect that a graph allows.

    Args:
        question: the adjustment sets of the effect in the graph, or in a member of its class; None
            for no effect: x is an ancestor of y in no member.
        is_open: whether hidden causes leave the effect open.
        unmeasured: nodes of the graph that would have to be held fixed, and were not measured.
    """

    question: Adjustment | None
    is_open: bool = False
    unmeasured: tuple[str, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether the effect is exactly zero."""
        return self.question is None and not self.is_open

    @cached_property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """Adjustment sets, the optimal one first, then small ones; not all where there are many."""
        if self.question is None:
            return ()
        first = self.question.optimal
        found = {} if first is None else {first: None}
        for minimal in (True, False):
            sets = self.question.sets(minimal=minimal, max_size=_LARGEST_SET)
            found.update(dict.fromkeys(islice(sets, _MOST_SETS)))
        return tuple(found)

    @cached_property
    def dag(self) -> MixedGraph | None:
        """A DAG with this effect; None where columns may be hidden, or there is no effect."""
        if self.question is None or self.question.is_latent or self.question.has_hidden:
            return None
        return member(self.question.graph)

    def chosen(self, fits: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...] | None:
        """The first set that fits."""
        return next((names for names in self.sets if fits(names)), None)


@lru_cache(maxsize=1024)
def possibilities(
    graph: MixedGraph, x: str, y: str, hidden: tuple[str, ...] = (), is_latent: bool | None = None
) -> tuple[Possibility, ...]:
    """The effects of x on y that the graph allows, open ones last.

    Args:
        graph: a DAG, CPDAG, MAG or PAG.
        x: the treatment.
        y: the outcome.
        hidden: nodes that were not measured, so that nothing can be adjusted for them.
        is_latent: whether columns may be hidden; None reads it off the graph: it has circles or
            ``<->``.

    Raises:
        GraphError: a name is unknown, or the graph has cycles, selection, or no member.
    """
    if not graph.undirected.any() and not (graph.marks == Mark.CIRCLE).any():
        if not graph.bidirected.any() and not graph.is_dag():
            raise GraphError(
                "graph: it has a directed cycle; an effect needs a DAG, a CPDAG or a PAG"
            )
    question = Adjustment(graph, x, y, is_latent=is_latent, hidden=hidden)
    if not question.may_affect:
        return (Possibility(None),)
    if question.exists:
        return (Possibility(question),)
    if question.is_latent:
        unmeasured = _needed(graph, x, y, hidden, is_latent=True)
        last = Possibility(None, is_open=True, unmeasured=unmeasured)
        return (*_of_members(graph, x, y, hidden), last)
    return tuple(sorted(_of_parents(graph, x, y, hidden), key=lambda option: option.is_open))


def _needed(
    graph: MixedGraph, x: str, y: str, hidden: tuple[str, ...], *, is_latent: bool | None = None
) -> tuple[str, ...]:
    """Those of the hidden nodes that would make an adjustment set together with what was measured,
    none of which can be spared; none where the graph has no adjustment set at all.
    """
    question = Adjustment(graph, x, y, is_latent=is_latent)
    given = list(question.canonical or ())
    for name in [name for name in given if name in hidden]:
        rest = [other for other in given if other != name]
        given = rest if question.is_valid(rest) else given
    return tuple(name for name in given if name in hidden)


def _of_members(
    graph: MixedGraph, x: str, y: str, hidden: tuple[str, ...]
) -> Iterator[Possibility]:
    """One for each MAG with adjustment sets that no other has, and one for no effect."""
    found: dict[tuple[tuple[str, ...], ...], None] = {}
    zero = False
    for mag in members(graph) or ():
        question = Adjustment(mag, x, y, is_latent=True, hidden=hidden)
        if not question.may_affect:
            if not zero:
                yield Possibility(None)
            zero = True
        elif question.exists:
            own = Possibility(question)
            if own.sets not in found:
                found[own.sets] = None
                yield own


def _of_parents(
    graph: MixedGraph, x: str, y: str, hidden: tuple[str, ...]
) -> Iterator[Possibility]:
    """One for each set of parents of x in the DAGs of the class; open ones where a DAG has no set
    without a hidden node.
    """
    place = graph.index(x)
    around = np.flatnonzero(graph.undirected[place]).tolist()
    if len(around) > _MOST_NEIGHBOURS:
        raise GraphError(
            f"graph: {x!r} has {len(around)} undirected edges, and more than {_MOST_NEIGHBOURS} "
            "leave too many sets of parents; orient some of them"
        )
    found = False
    for size in range(len(around) + 1):
        for chosen in combinations(around, size):
            marks = np.array(graph.marks)
            for v in around:
                into = v in chosen
                marks[v, place] = int(Mark.ARROW if into else Mark.TAIL)
                marks[place, v] = int(Mark.TAIL if into else Mark.ARROW)
            dag = _extension(graph, MixedGraph(graph.names, marks))
            if dag is None:
                continue
            found = True
            question = Adjustment(dag, x, y, hidden=hidden)
            if question.may_affect and not question.exists:  # without hidden nodes there is one
                yield Possibility(None, is_open=True, unmeasured=_needed(dag, x, y, hidden))
            else:
                yield Possibility(question if question.may_affect else None)
    if not found:
        raise GraphError(
            "graph: no DAG has its adjacencies and v-structures; give a DAG or a CPDAG"
        )


def _extension(graph: MixedGraph, oriented: MixedGraph) -> MixedGraph | None:
    """A DAG of the oriented graph that has the v-structures of the graph and no others."""
    dag = consistent_extension(oriented)
    if dag is None or not (_unshielded(dag) == _unshielded(graph)):
        return None
    return dag


def _unshielded(graph: MixedGraph) -> frozenset[tuple[int, int, int]]:
    into, adjacent = graph.directed, graph.adjacency
    found: set[tuple[int, int, int]] = set()
    for v in range(graph.n_nodes):
        parents = np.flatnonzero(into[:, v]).tolist()
        found.update((a, v, b) for a, b in combinations(parents, 2) if not adjacent[a, b])
    return frozenset(found)
