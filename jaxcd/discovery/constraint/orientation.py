"""Orientation rules: from a skeleton and its separating sets to a CPDAG.

Everything here is a pure function of graphs and separating sets, so it is post-processing of what
is already released. All rules of one step read the same graph and act at once.  The result
therefore does not depend on the order of the columns, even where the separating sets are wrong and
contradict each other: permuting the names permutes the result.

>>> skeleton = MixedGraph.from_edges(["a", "b", "c", "d"], ["a --- b", "b --- c", "b --- d"])
>>> sets = {frozenset({"a", "c"}): (), frozenset({"a", "d"}): ("b",), frozenset({"c", "d"}): ("b",)}
>>> print(
...     apply_meek_rules(
...         orient_colliders(skeleton, separating_sets=sets, rule=ConflictRule.UNDIRECTED)
...     )
... )
a --> b
c --> b
b --> d
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from jaxcd.checks import check_choice
from jaxcd.errors import GraphError
from jaxcd.graphs.edges import Mark
from jaxcd.graphs.mixed_graph import MixedGraph

SeparatingSets = Mapping[frozenset[str], tuple[str, ...]]
Triple = tuple[str, str, str]


class ConflictRule(Enum):
    """What becomes of an edge that gets an arrowhead at each end, from two colliders."""

    UNDIRECTED = "undirected"
    """It is left undirected."""

    BIDIRECTED = "bidirected"
    """Both arrowheads are kept: ``<->``."""


# ---- colliders
# --------------------------------------------------------------------------------------------------


def unshielded_triples(skeleton: MixedGraph) -> tuple[Triple, ...]:
    """All triples (a, b, c) in which a and c are both adjacent to b and not to each other.

    Args:
        skeleton: Any graph; the marks are not looked at.

    Returns:
        Each triple once, a before c in the order of the names; sorted by the positions of b, a, c.
    """
    names, adjacency = skeleton.names, skeleton.adjacency
    triples = []
    for b in range(len(names)):
        around = np.flatnonzero(adjacency[b])
        open_pairs = np.argwhere(np.triu(~adjacency[np.ix_(around, around)], k=1))
        triples += [(names[around[p]], names[b], names[around[q]]) for p, q in open_pairs]
    return tuple(triples)


def collider_arrowheads(
    skeleton: MixedGraph, *, separating_sets: SeparatingSets, ambiguous: Collection[Triple] = ()
) -> np.ndarray:
    """The arrowheads that unshielded colliders put on a skeleton.

    An unshielded triple (a, b, c) is a collider if the separating set of a and c is known and does
    not hold b.

    Args:
        skeleton: Any graph; the marks are not looked at.
        separating_sets: For each separated pair the set that separated it.  A pair without an entry
            was never separated by a known set and gives no collider; the entries of adjacent pairs
            are not used.
        ambiguous: Triples that must not become colliders; (a, b, c) and (c, b, a) are the same.

    Returns:
        Bool matrix (d, d): true at (i, j) for an arrowhead at j on the edge between i and j.

    Raises:
        GraphError: If a key is no pair of names of the graph, or an ambiguous triple holds an
            unknown name.
    """
    for pair in separating_sets:
        if len(pair) != 2 or not all(name in skeleton.names for name in pair):
            raise GraphError(
                f"separating_sets: {set(pair)!r} is not a pair of names of the graph "
                f"{skeleton.names}"
            )
    skipped = _triple_set(skeleton, ambiguous)
    heads = np.zeros(skeleton.marks.shape, dtype=bool)
    for a, b, c in unshielded_triples(skeleton):
        separating_set = separating_sets.get(frozenset((a, c)))
        if separating_set is None or b in separating_set or (a, b, c) in skipped:
            continue
        heads[skeleton.index(a), skeleton.index(b)] = True
        heads[skeleton.index(c), skeleton.index(b)] = True
    return heads


def orient_colliders(
    skeleton: MixedGraph,
    *,
    separating_sets: SeparatingSets,
    rule: ConflictRule,
    ambiguous: Collection[Triple] = (),
) -> MixedGraph:
    """Orient every unshielded collider a --> b <-- c of a skeleton, all at once.

    Args:
        skeleton: A graph with undirected edges only.
        separating_sets: For each separated pair the set that separated it; see
            :func:`collider_arrowheads`.
        rule: What becomes of an edge that gets arrowheads at both ends.
        ambiguous: Triples that must not become colliders.

    Returns:
        The graph with the edges of colliders directed.  With ``ConflictRule.UNDIRECTED`` an edge in
        conflict stays undirected, and the other edges of its two colliders are directed all the
        same.

    Raises:
        GraphError: If the skeleton has an edge that is not undirected, or a name is unknown.
        OptionError: If ``rule`` is not a ConflictRule.

    Source:
        Spirtes, Glymour and Scheines 2000, Causation, Prediction, and Search, section 5.4.2, step C
        of PC; for conflicts kept as bidirected edges Colombo and Maathuis 2014 (JMLR 15),
        "Order-independent constraint-based causal structure learning".
    """
    check_choice("rule", rule, ConflictRule)
    if not (skeleton.adjacency == skeleton.undirected).all():
        raise GraphError(
            "skeleton must have undirected edges only; call .skeleton() on the graph first"
        )
    heads = collider_arrowheads(skeleton, separating_sets=separating_sets, ambiguous=ambiguous)
    if rule is ConflictRule.UNDIRECTED:
        heads &= ~heads.T
    return with_arrowheads(skeleton, heads)


# ---- Meek's rules
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeekRule:
    """One orientation rule.

    Args:
        name: R1, R2, R3 or R4.
        pattern: The rule in words.
        orient: ``(marks, ambiguous) -> bool matrix (d, d)``: true at (i, j) where the undirected
            edge i --- j is to become i --> j.  ``ambiguous`` is None, or a bool array (d, d, d),
            true at (i, j, k) for a triple i, j, k that may not be taken for a non-collider.
    """

    name: str
    pattern: str
    orient: Callable[[np.ndarray, np.ndarray | None], np.ndarray]

    def __call__(self, marks: np.ndarray, ambiguous: np.ndarray | None = None) -> np.ndarray:
        """The edges that the rule orients in the graph with these marks."""
        return self.orient(marks, ambiguous)


def _relations(marks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bool matrices: i --> j; i --- j; i and j different and not adjacent."""
    directed = (marks == Mark.ARROW) & (marks.T == Mark.TAIL)
    undirected = (marks == Mark.TAIL) & (marks.T == Mark.TAIL)
    apart = (marks == Mark.NONE) & ~np.eye(len(marks), dtype=bool)
    return directed, undirected, apart


def directed_paths(marks: np.ndarray) -> np.ndarray:
    """Bool (d, d): whether a path i --> ... --> j of one edge or more leads from i to j."""
    paths = _relations(marks)[0]
    while True:
        longer = paths | _product(paths, paths)
        if (longer == paths).all():
            return paths
        paths = longer


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Boolean matrix product, by way of float32 (counts are exact up to 2^24 nodes) because that
    one is fast.
    """
    return left.astype(np.float32) @ right.astype(np.float32) > 0


def _rule_1(marks: np.ndarray, ambiguous: np.ndarray | None) -> np.ndarray:
    directed, undirected, apart = _relations(marks)
    if ambiguous is None:
        return undirected & _product(directed.T, apart)
    # (k, i, j): k --> i, k and j apart, and the triple is known to be no collider.
    return undirected & (directed[:, :, None] & apart[:, None, :] & ~ambiguous).any(axis=0)


def _rule_2(marks: np.ndarray, ambiguous: np.ndarray | None) -> np.ndarray:
    directed, undirected, _ = _relations(marks)
    return undirected & _product(directed, directed)


def _rule_3(marks: np.ndarray, ambiguous: np.ndarray | None) -> np.ndarray:
    directed, undirected, apart = _relations(marks)
    i, j = np.nonzero(undirected)
    middle = undirected[i] & directed[:, j].T  # (edge, k): i --- k --> j
    if ambiguous is None:
        found = (_product(middle, apart) & middle).any(axis=1)
    else:
        found = np.zeros(len(i), dtype=bool)
        for e in np.flatnonzero(middle.sum(axis=1) >= 2):
            k = np.flatnonzero(middle[e])
            found[e] = (apart[np.ix_(k, k)] & ~ambiguous[:, i[e], :][np.ix_(k, k)]).any()
    return _scatter(marks, i[found], j[found])


def _rule_4(marks: np.ndarray, ambiguous: np.ndarray | None) -> np.ndarray:
    directed, undirected, apart = _relations(marks)
    i, j = np.nonzero(undirected)
    first = undirected[i] & apart[:, j].T  # (edge, k): i --- k, k and j apart
    if ambiguous is not None:
        first &= ~ambiguous[:, i, j].T
    second = (marks != Mark.NONE)[i] & directed[:, j].T  # (edge, l): i adjacent to l, l --> j
    found = (_product(first, directed) & second).any(axis=1)
    return _scatter(marks, i[found], j[found])


def _scatter(marks: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    result = np.zeros(marks.shape, dtype=bool)
    result[i, j] = True
    return result


MEEK_RULES: tuple[MeekRule, ...] = (
    MeekRule(
        "R1", "k --> i --- j, k and j not adjacent: i --> j (else a new v-structure)", _rule_1
    ),
    MeekRule("R2", "i --> k --> j and i --- j: i --> j (else a cycle)", _rule_2),
    MeekRule("R3", "i --- k --> j, i --- l --> j, k and l not adjacent, i --- j: i --> j", _rule_3),
    MeekRule(
        "R4",
        "i --- k --> l --> j, i and l adjacent, k and j not adjacent, i --- j: i --> j",
        _rule_4,
    ),
)
"""The four rules of Meek 1995 (UAI), "Causal inference and causal explanation with background
knowledge".
"""


def apply_meek_rules(
    graph: MixedGraph, *, ambiguous: Collection[Triple] = (), acyclic: bool = False
) -> MixedGraph:
    """Close a graph under Meek's rules.

    In every step all rules are matched against the same graph and their orientations are made at
    once, except that an edge which they would orient both ways is left undirected in that step.  It
    ends when a step orients nothing.

    What holds for every input: adjacencies stay; only undirected edges change, and only into
    directed ones, so that directed, bidirected and circle edges are kept; permuting the names
    permutes the result; closing twice changes nothing more; every edge that a rule still matches is
    matched both ways.  What holds if the skeleton and the colliders are those of a DAG: the result
    is its CPDAG.  For contradictory input it may hold new unshielded colliders (two edges oriented
    at the same node in one step) or directed cycles; ``consistent_extension`` tells.

    Args:
        graph: A graph with its colliders oriented.
        ambiguous: Unshielded triples not known to be non-colliders, on which R1, R3 and R4 must not
            rely; (a, b, c) and (c, b, a) are the same.
        acyclic: Whether edges stay undirected where their orientations, those of one step together,
            close a directed cycle.

    Returns:
        The closed graph.

    Raises:
        GraphError: If an ambiguous triple holds an unknown name.
    """
    blocked = None
    if ambiguous:
        blocked = np.zeros((graph.n_nodes,) * 3, dtype=bool)
        for a, b, c in _triple_set(graph, ambiguous):
            blocked[graph.index(a), graph.index(b), graph.index(c)] = True
    while True:
        oriented = np.zeros(graph.marks.shape, dtype=bool)
        for rule in MEEK_RULES:
            oriented |= rule(graph.marks, blocked)
        oriented &= ~oriented.T
        if acyclic:
            oriented &= ~directed_paths(with_arrowheads(graph, oriented).marks).T
        if not oriented.any():
            return graph
        graph = with_arrowheads(graph, oriented)


def with_arrowheads(graph: MixedGraph, heads: np.ndarray) -> MixedGraph:
    """The graph with arrowheads at j of the edges i - j where ``heads[i, j]`` is true; every such
    pair has an edge.
    """
    return MixedGraph(graph.names, np.where(heads, int(Mark.ARROW), graph.marks))


def _triple_set(graph: MixedGraph, triples: Collection[Triple]) -> set[Triple]:
    """The triples in both directions, with their names checked."""
    for triple in triples:
        if len(triple) != 3 or len({graph.index(name) for name in triple}) != 3:
            raise GraphError(f"ambiguous: {triple!r} is not a triple of three nodes")
    return {t for a, b, c in triples for t in ((a, b, c), (c, b, a))}
