"""Adjustment: which columns to hold fixed so that a comparison of rows is an effect.

Z is an adjustment set for the effect of x on y if, in every causal model of the graph,

    P(y | do(x)) = sum_z P(y | x, z) P(z).

A graph may stand for many models: a CPDAG for all equivalent DAGs, a PAG for all DAGs with hidden
columns that leave the same independences.  Z must then do for all of them.  The generalised
adjustment criterion says when it does:

*Amenable.*  Every possibly directed path from x to y begins with a visible edge out of x: a
directed one, and with hidden causes one that :func:`jaxcd.graphs.visible_edges` lists.
*Not forbidden.*  Z has no possible descendant of any node, x apart, on such a path.
*Blocked.*  Z blocks all other paths from x to y of definite status.  In an amenable graph this is
so exactly if in one DAG (MAG) of the class Z separates x and y once the first edges of the causal
paths are taken away.

Graphs with circles or ``<->`` are read as PAGs or MAGs, in which columns may be hidden; others as
DAGs and CPDAGs, in which none is, unless ``is_latent`` says otherwise.  Selection (``---`` in a
PAG) is not covered.  With background knowledge in a CPDAG the criterion stays right, and may miss
sets.

>>> graph = MixedGraph.from_edges(["z", "x", "y"], ["z --> x", "z --> y", "x --> y"])
>>> graph.adjustment_sets("x", "y")
(('z',),)

Source:
    Perkovic, Textor, Kalisch, Maathuis 2018, Complete graphical characterization and construction
    of adjustment sets in Markov equivalence classes of ancestral graphs (JMLR 18); Henckel,
    Perkovic, Maathuis 2022, Graphical criteria for efficient total effect estimation (JRSS B 84).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import combinations, product
from typing import final

import numpy as np

from jaxcd.checks import check_listed, check_whole
from jaxcd.errors import GraphError
from jaxcd.graphs.ancestral import is_mag, markov_equivalent_mags, visible_edges
from jaxcd.graphs.cpdag import consistent_extension
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph, arc_marks
from jaxcd.graphs.trails import Trails, _bitmask, _bits, edge_masks

__all__ = ["MOST_FILLINGS", "Adjustment", "member", "members"]

MOST_FILLINGS = 20_000
"""Of the circles of a PAG, which :func:`members` tries."""


def member(graph: MixedGraph) -> MixedGraph:
    """A DAG of a CPDAG's class, or a MAG of a PAG's; the graph itself where nothing is open.

    Args:
        graph: A DAG, CPDAG, MAG or PAG without selection.

    Raises:
        GraphError: If the graph has no member.

    Source:
        Dor and Tarsi 1992 for CPDAGs; Zhang 2008, Artificial Intelligence 172, theorem 2 for PAGs:
        circles beside arrowheads become tails, and edges ``o-o`` are oriented without unshielded
        colliders.
    """
    hidden = bool((graph.marks == Mark.CIRCLE).any() or graph.bidirected.any())
    if not hidden:
        found = consistent_extension(graph)
        if found is None:
            raise GraphError(
                "graph: no DAG has its adjacencies and v-structures; give a DAG or a CPDAG"
            )
        return found
    marks = np.array(graph.marks)
    circle = marks == Mark.CIRCLE
    open_edges = circle & circle.T
    parts = consistent_extension(
        MixedGraph(graph.names, np.where(open_edges, int(Mark.TAIL), int(Mark.NONE)))
    )
    if parts is None:
        raise GraphError("graph: its edges o-o fit no MAG; give a PAG as fci returns it")
    marks = np.where(open_edges, arc_marks(parts.directed), marks)
    beside = (marks == Mark.CIRCLE) & (marks.T == Mark.ARROW)
    marks[beside] = int(Mark.TAIL)
    # A tail beside a circle: without selection the circle is an arrowhead.
    marks[marks == Mark.CIRCLE] = int(Mark.ARROW)
    return MixedGraph(graph.names, marks)


def members(pag: MixedGraph) -> tuple[MixedGraph, ...] | None:
    """Every MAG without selection that a PAG stands for, by trying all fillings of its circles.

    Args:
        pag: A PAG without ``---``.

    Returns:
        The MAGs; None where there are more than 20,000 fillings to try, or the graph stands for no
        MAG, as an estimated one may.

    Raises:
        GraphError: If the edges ``o-o`` fit no MAG.

    Source:
        Malinsky and Spirtes 2016, Estimating causal effects with ancestral graph Markov models
        (PGM), who go through the same MAGs one mark at a time.

    Example:
        >>> from jaxcd.graphs import MixedGraph
        >>> from jaxcd.graphs.adjustment import members
        >>> for mag in members(MixedGraph.from_edges(["a", "b"], ["a o-o b"])):
        ...     print(mag)
        a <-> b
        b --> a
        a --> b
    """
    pairs = np.argwhere(np.triu(pag.adjacency)).tolist()
    fillings = []
    for i, j in pairs:
        # marks at i and at j; without selection no edge has two tails
        at = [
            (Mark.ARROW, Mark.TAIL) if mark == Mark.CIRCLE else (Mark(mark),)
            for mark in (pag.marks[j, i], pag.marks[i, j])
        ]
        fillings.append([both for both in product(*at) if both != (Mark.TAIL, Mark.TAIL)])
    if math.prod(map(len, fillings)) > MOST_FILLINGS:
        return None
    first = member(pag)
    if not is_mag(first):
        return None
    found = []
    for chosen in product(*fillings):
        marks = np.array(pag.marks)
        for (i, j), (at_i, at_j) in zip(pairs, chosen, strict=True):
            marks[j, i], marks[i, j] = int(at_i), int(at_j)
        mag = MixedGraph(pag.names, marks)
        if is_mag(mag) and markov_equivalent_mags(mag, first):
            found.append(mag)
    return tuple(found)


@final
class Adjustment:
    """The adjustment sets of one effect in one graph.

    Args:
        graph: A DAG, CPDAG, MAG or PAG.
        x: The name of the treatment.
        y: The name of the outcome, another one.
        is_latent: Whether columns may be hidden; None reads it off the graph: it has circles or
            ``<->``.
        hidden: Names of nodes that nobody measured: no set holds them.

    Raises:
        GraphError: If a name is unknown, x is y, or the graph has an edge ``---`` beside circles or
            ``<->``.

    Source:
        module docstring.

    Example:
        >>> from jaxcd.graphs import Adjustment, MixedGraph
        >>> graph = MixedGraph.from_edges(["x", "y"], ["x --- y"])
        >>> Adjustment(graph, "x", "y").is_amenable
        False
    """

    def __init__(
        self,
        graph: MixedGraph,
        x: str,
        y: str,
        *,
        is_latent: bool | None = None,
        hidden: Iterable[str] = (),
    ) -> None:
        self.graph = graph
        self._hidden = _bitmask(graph.index(name) for name in hidden)
        self._x, self._y = graph.index(x), graph.index(y)
        if x == y:
            raise GraphError(f"x and y must be two nodes, got {x!r} twice")
        seen = bool((graph.marks == Mark.CIRCLE).any() or graph.bidirected.any())
        self.is_latent = seen if is_latent is None else is_latent
        """Whether columns may be hidden."""
        loose = graph.undirected
        if self.is_latent and loose.any():
            i, j = np.argwhere(loose)[0]
            raise GraphError(
                f"graph: {graph.edge(graph.names[i], graph.names[j])} beside hidden causes "
                "stands for selection, under which no effect is identified here"
            )
        away = (graph.marks.T != Mark.ARROW) & ((graph.marks != Mark.TAIL) | loose)
        # u -> v: an edge that may be directed from u to v
        self._steps = edge_masks(graph.adjacency & away)

    def _reached(self, start: int, steps: list[int], avoided: int = 0) -> int:
        found = fresh = start & ~avoided
        while fresh:
            ahead = 0
            for v in _bits(fresh):
                ahead |= steps[v]
            fresh = ahead & ~found & ~avoided
            found |= fresh
        return found

    @cached_property
    def _possible_path(self) -> int:
        """The nodes, x apart, on possibly directed ways from x to y."""
        own = 1 << self._x
        after = self._reached(self._steps[self._x], self._steps, own)
        back = [
            _bitmask(u for u in range(self.graph.n_nodes) if self._steps[u] >> v & 1)
            for v in range(self.graph.n_nodes)
        ]
        return after & self._reached(1 << self._y, back, own)

    @property
    def between(self) -> tuple[str, ...]:
        """The names, x and y apart, on possibly directed ways from x to y."""
        return self._names(self._possible_path & ~(1 << self._y))

    @property
    def may_affect(self) -> bool:
        """Whether x is an ancestor of y in some member of the class."""
        return bool(self._possible_path)

    @cached_property
    def forbidden(self) -> tuple[str, ...]:
        """The names that no adjustment set has: x, y and what the treatment may change on its way
        to y.
        """
        return self._names(self._forbidden)

    @cached_property
    def _forbidden(self) -> int:
        return self._reached(self._possible_path, self._steps) | 1 << self._x | 1 << self._y

    @property
    def has_hidden(self) -> bool:
        """Whether the graph has nodes that no set may hold because nobody measured them."""
        return bool(self._hidden)

    @property
    def _unusable(self) -> int:
        return self._forbidden | self._hidden

    @cached_property
    def _first(self) -> int:
        """The second nodes of the possibly directed paths from x to y."""
        return self._steps[self._x] & self._possible_path

    @cached_property
    def is_amenable(self) -> bool:
        """Whether all possibly directed paths from x to y begin with a visible edge out of x."""
        if self.is_latent:
            seen = visible_edges(self.graph)
            x = self.graph.names[self._x]
            allowed = _bitmask(self.graph.index(edge.b) for edge in seen if edge.a == x)
        else:
            allowed = edge_masks(self.graph.directed)[self._x]
        return not self._first & ~allowed

    @cached_property
    def _backdoor(self) -> Trails:
        """A member of the class, without the first edges of the causal paths."""
        chosen = member(self.graph)
        marks = np.array(chosen.marks)
        for v in _bits(self._first):
            marks[self._x, v] = marks[v, self._x] = int(Mark.NONE)
        return Trails(marks, chosen.names)

    def _blocks(self, given: int) -> bool:
        trails = self._backdoor
        if trails.adjacent[self._x] >> self._y & 1:
            return False
        reached = trails.reach(
            self._x, colliders=trails.ancestors_of(given), noncolliders=trails.all & ~given
        )
        return not reached >> self._y & 1

    def _is_valid(self, given: int) -> bool:
        return self.is_amenable and not given & self._forbidden and self._blocks(given)

    def is_valid(self, names: Iterable[str]) -> bool:
        """Whether the names are an adjustment set.

        Raises:
            GraphError: If a name is unknown.
        """
        names = check_listed("names", names, error=GraphError)
        return self._is_valid(_bitmask(self.graph.index(name) for name in names))

    @cached_property
    def _canonical(self) -> int:
        # Possible ancestors of x and y in the whole graph, less what is forbidden: an adjustment
        # set wherever there is one (Perkovic et al. 2018, corollary 4.4).
        back = [
            _bitmask(u for u in range(self.graph.n_nodes) if self._steps[u] >> v & 1)
            for v in range(self.graph.n_nodes)
        ]
        # The same holds of sets without some nodes (van der Zander et al. 2014).
        return self._reached(1 << self._x | 1 << self._y, back) & ~self._unusable

    @cached_property
    def exists(self) -> bool:
        """Whether there is an adjustment set."""
        return self._is_valid(self._canonical)

    @property
    def canonical(self) -> tuple[str, ...] | None:
        """The largest set that is worth a look, valid wherever one is; None where none is."""
        return self._names(self._canonical) if self.exists else None

    @cached_property
    def optimal(self) -> tuple[str, ...] | None:
        """The adjustment set of the smallest asymptotic variance, the parents of the nodes on
        causal paths less what is forbidden; None where no set is valid, and for graphs with hidden
        causes, which have none that is best in all models.

        Source:
            Henckel, Perkovic, Maathuis 2022; Rotnitzky and Smucler 2020 for discrete columns.
        """
        if self.is_latent or not self.exists:
            return None
        into = edge_masks(self.graph.directed.T)
        out = edge_masks(self.graph.directed)
        own = 1 << self._x
        causal = self._reached(out[self._x], out, own) & self._reached(1 << self._y, into, own)
        around = 0
        for v in _bits(causal):
            around |= into[v]
        found = around & ~self._unusable
        # Where x has no causal path to y there is nothing to be best at, and it may not be valid.
        return self._names(found if self._is_valid(found) else self._canonical)

    def sets(
        self, *, minimal: bool = True, max_size: int | None = None
    ) -> Iterator[tuple[str, ...]]:
        """Adjustment sets, small ones first, each in the order of the names.

        Args:
            minimal: only those no proper subset of which is one.
            max_size: the largest size; None for all.  Their number can be exponential in it.
        """
        if max_size is not None:
            check_whole("max_size", max_size, 0, cure="give a size, or None")
        if not self.exists:
            return
        # Minimal sets consist of possible ancestors (Perkovic et al. 2018, section 4.2).
        pool = self._canonical if minimal else self._backdoor.all & ~self._unusable
        places, found = tuple(_bits(pool)), list[int]()
        most = len(places) if max_size is None else min(max_size, len(places))
        for size in range(most + 1):
            for chosen in combinations(places, size):
                given = _bitmask(chosen)
                if minimal and any(given & known == known for known in found):
                    continue
                if self._blocks(given):
                    found.append(given)
                    yield self._names(given)

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(self.graph.names[v] for v in _bits(mask))
