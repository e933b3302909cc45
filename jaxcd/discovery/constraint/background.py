"""Background knowledge in a search: what need not be asked, which marks are known, and where the
data disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from jaxcd.data import Domain
from jaxcd.data.intervention_knowledge import with_interventions
from jaxcd.discovery.constraint.orientation import (
    ConflictRule,
    SeparatingSets,
    Triple,
    apply_meek_rules,
    directed_paths,
    orient_colliders,
    unshielded_triples,
    with_arrowheads,
)
from jaxcd.discovery.constraint.skeleton import SearchSpace
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.graphs.knowledge import Knowledge

__all__ = [
    "KnownMarks",
    "OrientedAsKnown",
    "check_knowledge",
    "conflicting_triples",
    "known_marks",
    "known_to_tests",
    "oriented_as_known",
    "search_space",
]


def check_knowledge(knowledge: Any, names: Sequence[str]) -> None:
    """Raises OptionError where it is neither None nor a Knowledge, or names what is not there."""
    if knowledge is None:
        return
    if not isinstance(knowledge, Knowledge):
        raise OptionError(
            f"knowledge = {knowledge!r} is no Knowledge; use jaxcd.Knowledge(tiers=...), or None"
        )
    knowledge.check(names)


def known_to_tests(
    knowledge: Any, names: Sequence[str], domain: Domain | None, *, latent: bool
) -> Knowledge | None:
    """What a search by tests knows before it asks: what the user knows, with what the domain's
    interventions say.  Public facts alone, so that it can be asked before anything is bought.

    Args:
        domain: of the columns; None with an Oracle.
        latent: as for :func:`search_space`.

    Raises:
        OptionError: the knowledge is no Knowledge, names what is not there, or contradicts itself
            or the interventions.
    """
    check_knowledge(knowledge, names)
    if knowledge is not None:
        knowledge.check(names, ancestral=latent)
    if domain is None:
        return knowledge
    return with_interventions(knowledge, domain, by_tests=True)


def search_space(
    knowledge: Knowledge | None,
    names: tuple[str, ...],
    *,
    latent: bool,
    rank: tuple[int, ...] | None = None,
) -> SearchSpace:
    """What a search knows before it asks.

    Args:
        latent: whether there may be latent variables; then two columns of which neither causes the
            other may still be joined, by ``<->``, and only without them is a pair that is forbidden
            both ways never joined.
        rank: as for :class:`SearchSpace`.
    """
    if knowledge is None:
        return SearchSpace(rank)
    pairs = list(combinations(range(len(names)), 2))
    absent = (
        []
        if latent
        else [(x, y) for x, y in pairs if knowledge.adjacency_forbidden(names[x], names[y])]
    )
    kept = [(x, y) for x, y in pairs if knowledge.adjacency_required(names[x], names[y])]
    separators = None
    if len(knowledge.tiers) > 1:
        separators = {
            (x, y): frozenset(
                np.flatnonzero(knowledge.may_separate(names[x], names[y], names)).tolist()
            )
            for x, y in pairs
        }
    return SearchSpace(rank, frozenset(absent), kept=frozenset(kept), allowed=separators)


class KnownMarks(NamedTuple):
    """Bool (d, d) each: true at (i, j) where the end at j of the edge between i and j is known to
    be that mark.
    """

    arrow: np.ndarray
    tail: np.ndarray


def known_marks(knowledge: Knowledge | None, graph: MixedGraph, *, latent: bool) -> KnownMarks:
    """The marks that the knowledge writes on the edges of a graph.

    Args:
        latent: whether an arrowhead leaves the other end of its edge open (PAG), or makes it a tail
            (CPDAG).
    """
    if knowledge is None:
        nothing = np.zeros(graph.marks.shape, dtype=bool)
        return KnownMarks(nothing, nothing)
    arrow = knowledge.arrowheads(graph.names) & graph.adjacency
    if latent:
        tail = knowledge.tails(graph.names, along_paths=True) & graph.adjacency
        return KnownMarks(arrow, tail)
    arrow &= ~arrow.T
    return KnownMarks(arrow, arrow.T)


class ConflictingTriples(NamedTuple):
    """Unshielded triples that data and knowledge judge differently: colliders, and non-colliders,
    by the data.
    """

    colliders: tuple[Triple, ...]
    noncolliders: tuple[Triple, ...]


def conflicting_triples(
    known: KnownMarks,
    graph: MixedGraph,
    *,
    separating_sets: SeparatingSets,
    ambiguous: Collection[Triple],
) -> ConflictingTriples:
    """The unshielded triples (a, b, c) on which the data contradict what is known.

    A collider by the data (b is not in the separating set of a and c) with a known tail at b; a
    non-collider by the data with two known arrowheads at b.
    """
    colliders, noncolliders = [], []
    skipped = {*ambiguous, *((c, b, a) for a, b, c in ambiguous)}
    for a, b, c in unshielded_triples(graph) if known.arrow.any() or known.tail.any() else ():
        given = separating_sets.get(frozenset((a, c)))
        if given is None or (a, b, c) in skipped:
            continue
        i, j, k = graph.index(a), graph.index(b), graph.index(c)
        if b not in given and (known.tail[i, j] or known.tail[k, j]):
            colliders.append((a, b, c))
        elif b in given and known.arrow[i, j] and known.arrow[k, j]:
            noncolliders.append((a, b, c))
    return ConflictingTriples(tuple(colliders), tuple(noncolliders))


class OrientedAsKnown(NamedTuple):
    """A graph; the triples on which the data contradict what is known; and the colliders that were
    not written because they close a cycle, which are taken for neither.
    """

    graph: MixedGraph
    conflicts: tuple[Triple, ...]
    left_open: tuple[Triple, ...]


def oriented_as_known(
    skeleton: MixedGraph,
    known: KnownMarks,
    *,
    separating_sets: SeparatingSets,
    rule: ConflictRule,
    ambiguous: Collection[Triple] = (),
) -> OrientedAsKnown:
    """Colliders, what is known, and Meek's rules, for PC.

    There is no directed cycle, unless what is known of these edges makes one by itself: colliders
    of which an arrow lies on a cycle are left open, and no rule closes one.  Those on a cycle with
    a known arrow contradict it.  Skeleton and separating sets of a DAG close none, and so give its
    CPDAG as without this.
    """
    differing = conflicting_triples(
        known, skeleton, separating_sets=separating_sets, ambiguous=ambiguous
    )
    conflicts, left_open = list(differing.colliders), list[Triple]()
    while True:
        skipped = {*ambiguous, *differing.colliders, *left_open}
        graph = orient_colliders(
            skeleton, separating_sets=separating_sets, rule=rule, ambiguous=skipped
        )
        graph = with_arrowheads(graph, known.arrow)
        paths = directed_paths(graph.marks)
        around = paths & paths.T
        closing = graph.directed & around & ~known.arrow
        if not closing.any():
            break
        told = around[:, (graph.directed & around & known.arrow).any(axis=1)].any(axis=1)
        for a, b, c in unshielded_triples(skeleton):
            i, j, k = skeleton.index(a), skeleton.index(b), skeleton.index(c)
            collider = b not in separating_sets.get(frozenset((a, c)), (b,))
            if collider and not {(a, b, c), (c, b, a)} & skipped and closing[[i, k], j].any():
                left_open.append((a, b, c))
                conflicts += [(a, b, c)] if told[j] else []
    graph = apply_meek_rules(graph, ambiguous=(*ambiguous, *left_open), acyclic=True)
    return OrientedAsKnown(graph, (*conflicts, *differing.noncolliders), tuple(left_open))
