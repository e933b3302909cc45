"""Judging unshielded triples: collider, no collider, or not to be told.

A triple that cannot be told is *ambiguous* (an unfaithful triple): the orientation step takes it
for neither, and the result lists it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from jaxcd.citests import Query
from jaxcd.decisions import DecisionRun
from jaxcd.discovery.constraint.orientation import Triple, unshielded_triples
from jaxcd.discovery.constraint.skeleton import SearchSpace, Skeleton
from jaxcd.errors import BudgetExhausted
from jaxcd.graphs import MixedGraph
from jaxcd.queries import Session

__all__ = ["ColliderRule", "Judgement", "judge_triples", "named_sets"]


class ColliderRule(enum.Enum):
    """How an unshielded triple x - z - y is judged.

    The second and third rule ask for all sets of neighbours of x or y that separate them.  Every
    query asked is paid for.  They depend on no order of columns or questions, unless none of these
    sets separates x and y: then the set that did so in the skeleton counts.  The first rule depends
    on it: another order of the columns may find another set first.
    """

    #: A collider iff z is not in the set that separated x and y.
    SEPARATING_SET = "separating-set"
    # : A collider if no separating set holds z, no collider if all do, else ambiguous (Ramsey,
    # Spirtes and Zhang 2006).
    CONSERVATIVE = "conservative"
    # : A collider if fewer than half of them hold z, ambiguous if exactly half do (Colombo and
    # Maathuis 2014).
    MAJORITY = "majority"

    @property
    def asks(self) -> bool:
        """Whether the rule asks queries of its own."""
        return self is not ColliderRule.SEPARATING_SET

    def judge(self, n_holding: int, n_separating: int) -> bool | None:
        """Whether z counts as a member of the separating sets if ``n_holding`` of them hold it;
        None: ambiguous.
        """
        if self is ColliderRule.CONSERVATIVE:
            return None if 0 < n_holding < n_separating else n_holding > 0
        return None if 2 * n_holding == n_separating else 2 * n_holding > n_separating


@dataclass(frozen=True)
class Judgement:
    """What the orientation step reads.

    Args:
        separating_sets: for each separated pair the members of its separating set; under a rule
            that asks, those that count as members by the rule.
        ambiguous: triples (x, z, y) of which it is not known whether z is a member.
        unfaithful: those among them that are unshielded.
    """

    separating_sets: Mapping[frozenset[str], tuple[str, ...]]
    ambiguous: tuple[Triple, ...]
    unfaithful: tuple[Triple, ...]


def named_sets(names: tuple[str, ...], skeleton: Skeleton) -> dict[frozenset[str], tuple[str, ...]]:
    """The separating sets by names."""
    return {
        frozenset((names[x], names[y])): tuple(names[v] for v in given)
        for (x, y), given in skeleton.separating_sets.items()
    }


def judge_triples(
    run: DecisionRun,
    session: Session,
    skeleton: Skeleton,
    *,
    graph: MixedGraph,
    rule: ColliderRule,
    max_level: int | None,
    space: SearchSpace,
) -> Judgement:
    """Judges every unshielded triple of a skeleton.

    Args:
        graph: the skeleton as a mixed graph, whatever its marks.
        rule: how.
        max_level: the largest set that a rule asks for. A triple whose ends were separated by no
            known set is ambiguous, and so is a would-be collider for which the decider sees no
            support in what it has released.  Where a rule that asks finds no set of neighbours, or
            the budget is exhausted, the set that separated the pair decides.
    """
    names = session.names
    index = {name: i for i, name in enumerate(names)}
    sets = named_sets(names, skeleton)
    triples = unshielded_triples(graph)
    if rule.asks:
        ambiguous = _asked(run, session, skeleton, sets, triples, rule, max_level, space)
    else:
        ambiguous = [
            (a, b, c)
            for a, b, c in triples
            if b not in sets.get(frozenset((a, c)), (b,))
            and not run.supports_collider(index[a], index[b], index[c])
        ]
    ambiguous += [(a, b, c) for a, b, c in triples if frozenset((a, c)) not in sets]
    unshielded = set(triples)
    return Judgement(
        sets, tuple(ambiguous), tuple(triple for triple in ambiguous if triple in unshielded)
    )


def _asked(
    run: DecisionRun,
    session: Session,
    skeleton: Skeleton,
    sets: dict[frozenset[str], tuple[str, ...]],
    triples: tuple[Triple, ...],
    rule: ColliderRule,
    max_level: int | None,
    space: SearchSpace,
) -> list[Triple]:
    """Writes the sets of pairs at the ends of triples anew, by the rule; returns what is ambiguous.

    Not only the middles of triples are judged: discriminating paths ask for the other members.
    Their ends are always ends of an unshielded triple too (the second node is adjacent to both), so
    that all pairs that matter are here.
    """
    names = session.names
    index = {name: i for i, name in enumerate(names)}
    ambiguous: list[Triple] = []
    for x, y in dict.fromkeys((index[a], index[c]) for a, _, c in triples):
        pair = frozenset((names[x], names[y]))
        if pair not in sets:
            continue
        try:
            separating = _all_separating_sets(run, session, skeleton, x, y, max_level, space)
        except BudgetExhausted:
            run.exhausted = True
            break
        if not separating:
            continue
        members = []
        for z in sorted({v for given in separating for v in given}):
            is_member = rule.judge(sum(z in given for given in separating), len(separating))
            if is_member is None:
                ambiguous.append((names[x], names[z], names[y]))
            elif is_member:
                members.append(names[z])
        sets[pair] = tuple(members)
    return ambiguous


def _all_separating_sets(
    run: DecisionRun,
    session: Session,
    skeleton: Skeleton,
    x: int,
    y: int,
    max_level: int | None,
    space: SearchSpace,
) -> list[tuple[int, ...]]:
    pools = [
        space.separators(x, y, skeleton.neighbors(end, without=other))
        for end, other in ((x, y), (y, x))
    ]
    limit = max(map(len, pools)) if max_level is None else max_level
    candidates = dict.fromkeys(
        given
        for pool in pools
        for size in range(min(limit, len(pool)) + 1)
        for given in combinations(pool, size)
    )
    queries = [Query.of(x, y, given) for given in candidates]
    admitted = [query for query in queries if session.admissible(query)]
    return [
        query.given for query, yes in zip(admitted, run.independent(admitted), strict=True) if yes
    ]
