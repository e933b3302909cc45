"""From a skeleton with its separating sets to a PAG; and the PAG of a MAG or of a DAG with latent
and selection variables.

>>> import networkx as nx
>>> print(dag_to_pag(nx.DiGraph(["ab", "cb", "bd"])))
a o-> b
c o-> b
b --> d
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

import networkx as nx
import numpy as np

from jaxcd.checks import check_flag, check_whole
from jaxcd.discovery.constraint.background import conflicting_triples, known_marks
from jaxcd.discovery.constraint.fci_rules import COLLIDERS, STAGES, Evidence
from jaxcd.discovery.constraint.orientation import SeparatingSets, Triple, directed_paths
from jaxcd.errors import GraphError
from jaxcd.graphs import Mark, MixedGraph
from jaxcd.graphs.ancestral import dag_to_mag, is_mag
from jaxcd.graphs.knowledge import Knowledge

__all__ = [
    "OrientedPag",
    "anterior_sets",
    "check_max_path_length",
    "dag_to_pag",
    "mag_to_pag",
    "orient_pag",
]

_SELECTION_RULES = frozenset({"R5", "R6", "R7"})


@dataclass(frozen=True)
class OrientedPag:
    """A PAG, and how it was found.

    Args:
        graph: the PAG.
        rule_counts: for each rule R0, ..., R10 the number of marks it wrote.
        knowledge_conflicts: the unshielded triples that separating sets and knowledge judge
            differently.
    """

    graph: MixedGraph
    rule_counts: Mapping[str, int] = field(default_factory=dict)
    knowledge_conflicts: tuple[Triple, ...] = ()


def check_max_path_length(max_path_length: int | None) -> None:
    """Raises OptionError unless ``max_path_length`` is None or a positive whole number."""
    if max_path_length is not None:
        check_whole("max_path_length", max_path_length, 1, cure="give a length, or None")


def orient_pag(
    skeleton: MixedGraph,
    *,
    separating_sets: SeparatingSets,
    ambiguous: Collection[Triple] = (),
    selection_bias: bool = True,
    max_path_length: int | None = None,
    knowledge: Knowledge | None = None,
) -> OrientedPag:
    """Orients a skeleton by the rules R0 to R10.

    All marks begin as circles; the knowledge is written, then R0 is applied once, then the others
    in Zhang's order: R1 to R4 until none applies, R5, R6 and R7 until none applies, R8 to R10 until
    none applies; and all of this again until nothing changes, which for the separating sets of a
    MAG is at once.  Each rule is a pure function, matched everywhere before it writes anything, so
    permuting the names permutes the result whatever the separating sets are.  A mark that was
    written is never overwritten.

    Args:
        skeleton: any graph; its marks are not looked at.
        separating_sets: for each pair that is not adjacent the set that separated it.  Triples
            across a pair without one are taken neither for colliders nor for non-colliders.
        ambiguous: triples (a, b, c) of which it is not known whether b is in the set that separates
            a and c.
        selection_bias: False leaves out R5 to R7, which orient nothing where there are no selection
            variables.
        max_path_length: the largest number of edges of the paths in R4, R5, R9 and R10; None, the
            default, for no limit.  With a limit marks may be missing; none becomes wrong.
        knowledge: what is known before; see :class:`Knowledge` for what it says about a PAG.  A
            collider of the separating sets that contradicts it is not written, and is listed.

    Returns:
        An OrientedPag.  Whatever the separating sets are, no rule writes marks that make a node an
        ancestor of another and no ancestor of it: there is no directed cycle, and no arrowhead at
        an ancestor of the other end, unless the knowledge itself writes one.

    Raises:
        GraphError: for unknown names or malformed triples.
        OptionError: for other malformed arguments.

    Source:
        Zhang 2008, Artificial Intelligence 172, section 4: sound and complete for a skeleton and
        separating sets that are those of a MAG.

    Example:
        >>> from jaxcd.discovery import orient_pag
        >>> from jaxcd.graphs import MixedGraph
        >>> skeleton = MixedGraph.from_edges(["a", "b", "c"], ["a o-o b", "b o-o c"])
        >>> print(orient_pag(skeleton, separating_sets={frozenset({"a", "c"}): ()}).graph)
        a o-> b
        c o-> b
    """
    check_max_path_length(max_path_length)
    check_flag("selection_bias", selection_bias)
    circles = MixedGraph(
        skeleton.names, np.where(skeleton.adjacency, np.int8(Mark.CIRCLE), np.int8(Mark.NONE))
    )
    if knowledge is not None:
        knowledge.check(circles.names, ancestral=True)
    known = known_marks(knowledge, circles, latent=True)
    evidence = _evidence(circles, separating_sets, ambiguous, max_path_length)
    differing = conflicting_triples(
        known, circles, separating_sets=separating_sets, ambiguous=ambiguous
    )
    at_first = _evidence(
        circles, separating_sets, (*ambiguous, *differing.colliders), max_path_length
    )
    counts: Counter[str] = Counter(
        {rule.name: 0 for rule in (COLLIDERS, *(rule for stage in STAGES for rule in stage))}
    )
    marks = np.where(known.arrow, np.int8(Mark.ARROW), circles.marks)
    marks = np.where(known.tail, np.int8(Mark.TAIL), marks)
    before, marks = marks, COLLIDERS(marks, at_first)
    counts[COLLIDERS.name] = int((marks != before).sum())
    while True:
        closed = marks
        for stage in STAGES:
            rules = [rule for rule in stage if selection_bias or rule.name not in _SELECTION_RULES]
            place = 0
            while place < len(rules):
                before, marks = marks, rules[place](marks, evidence)
                if (marks != before).any():
                    marks = _ancestral(before, marks)
                n_written = int((marks != before).sum())
                counts[rules[place].name] += n_written
                # After a change the stage begins anew, so that the rules that look for paths do
                # only what the others cannot.
                place = 0 if n_written else place + 1
        if (marks == closed).all():
            break
    return OrientedPag(
        MixedGraph(skeleton.names, marks),
        dict(counts),
        (*differing.colliders, *differing.noncolliders),
    )


def _ancestral(before: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The marks without those new ones by which a path i --> ... --> j leads to the other end of an
    edge with an arrowhead at i.
    """
    while True:
        paths = directed_paths(marks)
        wrong = paths & (marks.T == Mark.ARROW)
        if not wrong.any():
            return marks
        here = paths | np.eye(len(marks), dtype=bool)
        directed = (marks == Mark.ARROW) & (marks.T == Mark.TAIL)
        on_path = directed & (here.T.astype(int) @ wrong @ here.T > 0)  # of i --> ... --> j
        taken_back = (on_path | on_path.T | wrong.T) & (marks != before)
        if not taken_back.any():
            return marks
        marks = np.where(taken_back, before, marks)


def _evidence(
    graph: MixedGraph,
    separating_sets: SeparatingSets,
    ambiguous: Collection[Triple],
    max_path_length: int | None,
) -> Evidence:
    index = {name: i for i, name in enumerate(graph.names)}
    sets = {}
    for pair, given in separating_sets.items():
        if len(pair) != 2 or not all(name in index for name in (*pair, *given)):
            raise GraphError(
                f"separating_sets: {sorted(map(str, pair))} with {given!r} is not a pair of names "
                "of the graph with a set of names; "
                f"the names are {graph.names}"
            )
        x, y = sorted(index[name] for name in pair)
        sets[x, y] = frozenset(index[name] for name in given)
    triples = set()
    for triple in ambiguous:
        if len(triple) != 3 or len(set(triple)) != 3 or not all(name in index for name in triple):
            raise GraphError(f"ambiguous: {triple!r} is not a triple of three nodes")
        a, b, c = triple
        triples.add((index[a], index[b], index[c]))
    # Where no set is known, nothing is known of the triples across.
    adjacent = graph.adjacency
    for z, row in enumerate(adjacent):
        triples.update(
            (x, z, y)
            for x, y in combinations(np.flatnonzero(row).tolist(), 2)
            if not adjacent[x, y] and (x, y) not in sets
        )
    return Evidence(sets, frozenset(triples), max_path_length)


def mag_to_pag(mag: MixedGraph) -> MixedGraph:
    """The PAG of a MAG: what all MAGs Markov equivalent to it have in common.

    Two nodes x, y that are not adjacent in a MAG are m-separated by its nodes anterior to x or y
    (from which a path without an arrowhead pointing back leads to x or y), so that the separating
    sets are read off the graph and the rules R0 to R10 do the rest.

    Args:
        mag: a MixedGraph with edges ``-->``, ``<->`` and ``---``, ancestral and maximal.

    Returns:
        The PAG over the same names.

    Raises:
        GraphError: ``mag`` is no MAG.

    Source:
        Richardson and Spirtes 2002, Annals of Statistics 30 (pairwise Markov property of maximal
        ancestral graphs); Zhang 2008 (rules).

    Example:
        >>> from jaxcd.discovery import mag_to_pag
        >>> from jaxcd.graphs import MixedGraph
        >>> print(mag_to_pag(MixedGraph.from_edges(["a", "b", "c"], ["a --> b", "c --> b"])))
        a o-> b
        c o-> b
    """
    if not is_mag(mag):
        raise GraphError("mag is not ancestral and maximal; make one with jaxcd.graphs.dag_to_mag")
    sets = {
        frozenset((mag.names[x], mag.names[y])): tuple(mag.names[v] for v in given)
        for (x, y), given in anterior_sets(mag).items()
    }
    return orient_pag(mag, separating_sets=sets).graph


def anterior_sets(graph: MixedGraph) -> dict[tuple[int, int], tuple[int, ...]]:
    """For each pair x < y that a MAG, a DAG or a CPDAG does not join a set that separates them: the
    nodes anterior to x or y, from which a path without an arrowhead pointing back leads there.

    In a CPDAG it separates them in every DAG of the class: a CPDAG is a chain graph with the
    independences of its DAGs (Andersson, Madigan, Perlman 1997), and two nodes that are not
    adjacent in a chain graph are not joined in the moral graph of their anterior nodes, because a
    component with both among its parents would not be anterior to either (Frydenberg 1990).

    Args:
        graph: such a graph.

    Source:
        Richardson and Spirtes 2002 for MAGs.
    """
    d = graph.n_nodes
    # anterior[i, j]: a path i --- ... --> j without an arrowhead at any node's side towards i.
    steps = (graph.marks != Mark.NONE) & (graph.marks.T == Mark.TAIL)
    anterior = np.eye(d, dtype=bool)
    while True:
        longer = anterior | (anterior.astype(np.float32) @ steps.astype(np.float32) > 0)
        if (longer == anterior).all():
            break
        anterior = longer
    sets = {}
    for x, y in combinations(range(d), 2):
        if not graph.marks[x, y]:
            members = anterior[:, x] | anterior[:, y]
            members[[x, y]] = False
            sets[x, y] = tuple(np.flatnonzero(members).tolist())
    return sets


def dag_to_pag(
    dag: nx.DiGraph, *, latent: Collection[Hashable] = (), selected: Collection[Hashable] = ()
) -> MixedGraph:
    """The PAG of a DAG with latent and selection variables: what FCI finds with infinitely many
    faithful samples.

    Args:
        dag: a networkx DiGraph without cycles.
        latent: nodes that are not observed.
        selected: nodes that are conditioned on.

    Returns:
        The PAG over the other nodes, in the DAG's node order.  Raises as
        :func:`jaxcd.graphs.ancestral.dag_to_mag`.

    Source:
        Richardson and Spirtes 2002 (MAG of a DAG); Zhang 2008 (PAG of a MAG).

    Example:
        >>> import networkx as nx
        >>> from jaxcd.discovery import dag_to_pag
        >>> dag = nx.DiGraph([("a", "b"), ("hidden", "b"), ("hidden", "c"), ("d", "c")])
        >>> print(dag_to_pag(dag, latent=["hidden"]))
        a o-> b
        b <-> c
        d o-> c
    """
    return mag_to_pag(dag_to_mag(dag, latent=tuple(latent), selected=tuple(selected)))
