"""Tabu search over Markov equivalence classes, for scores of whole graphs.

A class is searched through its members: its neighbours are the classes of all DAGs that differ from
one of its members by one arc added, deleted or turned.  A search over single DAGs would be stuck
where the only improving move starts from another, equally good member of the class.  From a class
that no such move improves a parent may also be exchanged for another node: where one column nearly
determines another, adding the right parent before the wrong one is dropped would cost far more than
either graph.

Source:
    Chickering 1995 for covered arcs, whose turning leads from member to member; Glover 1989 for
    tabu search.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from jaxcd.checks import is_whole
from jaxcd.discovery.score.limits import Limits
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.scores import GraphScore
from jaxcd.scores.base import first_best, tie
from jaxcd.scores.equivalence import equivalence_keys

__all__ = ["EquivalenceSearch", "class_members", "equivalence_search", "neighbours"]


@dataclass(frozen=True, eq=False)
class EquivalenceSearch:
    """What was found.

    Args:
        adjacency: a DAG of the best class, bool (d, d).
        score: its score, nats.
        n_classes: how many classes were scored.
    """

    adjacency: np.ndarray
    score: float
    n_classes: int


def equivalence_search(
    score: GraphScore,
    *,
    starts: np.ndarray,
    n_climbs: int = 3,
    patience: int = 5,
    max_members: int = 8,
    knowledge: Knowledge | None = None,
) -> EquivalenceSearch:
    """Climbs from the best of the starts, and goes on through ``patience`` steps that do not
    improve.

    Args:
        score: equal for Markov equivalent DAGs; its ``candidates`` and ``max_parents`` limit the
            DAGs that are tried.
        starts: DAGs, bool (G, d, d), at least one.
        n_climbs: climbs are started from the best so many starts of different classes.
        patience: steps without improvement, to the best class not yet visited, before a climb ends.
        max_members: members of a class whose neighbours are looked at.
        knowledge: what is known before; only classes with a DAG that fits are visited, and a class
            is known by that DAG.

    Returns:
        The best class seen; the result depends on the arguments only.

    Raises:
        OptionError: there is no start, or a number is below 1 (``patience``: below 0); or the
            knowledge names others.
    """
    limits = Limits.of(knowledge, score.names)
    starts = np.asarray(starts, dtype=bool)
    d = len(score.names)
    if starts.ndim != 3 or starts.shape[1:] != (d, d) or len(starts) == 0:
        raise OptionError(
            f"starts must have the shape (G, {d}, {d}) with G at least 1, not {starts.shape}"
        )
    for name, value, lowest in (
        ("n_climbs", n_climbs, 1),
        ("patience", patience, 0),
        ("max_members", max_members, 1),
    ):
        if not is_whole(value, lowest):
            raise OptionError(
                f"{name} = {value!r} is not a whole number from {lowest}; the defaults are 3, 5 "
                "and 8"
            )
    seen: set[bytes] = set()
    possible = np.zeros((d, d), dtype=bool)
    for v in range(d):
        possible[list(score.candidates(v)), v] = True
    possible |= limits.required | limits.required.T
    most = max(score.max_parents, limits.most_required)
    # Of the DAG that fits, in which only nodes that need more parents have more.
    most_fitting = np.maximum(score.max_parents, limits.required.sum(axis=0))
    starts = limits.fitting(starts)
    if not len(starts):
        starts = limits.required[None]
    values = score.totals(starts)
    keys = equivalence_keys(starts)
    seen.update(keys)
    order = list({key: i for i, key in reversed(list(enumerate(keys)))}.values())
    ranked = []
    while order:
        ranked.append(order.pop(first_best(values[order])))
    order, least = ranked, tie(float(values.max()))
    best, best_value = starts[order[0]], float(values[order[0]])
    visited: set[bytes] = set()
    for i in order[:n_climbs]:
        current, top, waited = starts[i], float(values[i]), 0
        key = equivalence_keys(current[None])[0]
        if key in visited:  # another climb came through here and went on from here
            continue
        while waited <= patience:
            visited.add(key)
            step: tuple[np.ndarray, bytes, float] | None = None
            # exchanges are many: from tops only
            for exchanges in (False, True) if waited == 0 else (False,):
                around = neighbours(
                    current, max_parents=most, max_members=max_members, exchanges=exchanges
                )
                around = limits.fitting(around[~(around & ~possible).any(axis=(1, 2))])
                around = around[(around.sum(axis=1) <= most_fitting).all(axis=1)]
                keys = equivalence_keys(around)
                fresh = [j for j, other in enumerate(keys) if other not in visited]
                if fresh:
                    seen.update(keys)
                    j, worth = score.best(around[fresh])
                    if step is None or worth > step[2] + least:
                        step = around[fresh[j]], keys[fresh[j]], worth
                    if worth > top + least:
                        break
            if step is None:
                break
            current, key, worth = step
            if worth > top + least:
                top, waited = worth, 0
                if top > best_value + least:
                    best, best_value = current, top
            else:
                waited += 1
    return EquivalenceSearch(best, best_value, len(seen))


def class_members(adjacency: np.ndarray, *, max_members: int) -> np.ndarray:
    """Members of a DAG's equivalence class, the DAG first, bool (m, d, d): all, or ``max_members``
    of them.

    Breadth first: in each member every covered arc (x -> y with parents(y) = parents(x) and x) is
    turned.
    """
    found = {adjacency.tobytes(): adjacency}
    queue = deque([adjacency])
    while queue and len(found) < max_members:
        graph = queue.popleft()
        for x, y in np.argwhere(graph):
            parents_y = graph[:, y].copy()
            parents_y[x] = False
            if not (parents_y == graph[:, x]).all():
                continue
            turned = graph.copy()
            turned[x, y], turned[y, x] = False, True
            if turned.tobytes() not in found:
                found[turned.tobytes()] = turned
                queue.append(turned)
                if len(found) == max_members:
                    break
    return np.array(list(found.values()))


def neighbours(
    adjacency: np.ndarray, *, max_parents: int, max_members: int, exchanges: bool = False
) -> np.ndarray:
    """One DAG of each class one move away from a member of the DAG's class, bool (m, d, d); the
    class itself is not among them.

    Args:
        exchanges: False for the classes one arc added, deleted or turned away; True for those where
            a node has one of its parents exchanged for another node.
    """
    d = len(adjacency)
    members = class_members(adjacency, max_members=max_members)
    graphs = _exchanged(members) if exchanges else _one_arc_away(members)
    graphs = graphs[graphs.sum(axis=1).max(axis=1) <= max_parents]
    graphs = graphs[_acyclic(graphs)]
    own = equivalence_keys(adjacency[None])[0]
    first: dict[bytes, int] = {}
    for place, key in enumerate(equivalence_keys(graphs)):
        if key != own:
            first.setdefault(key, place)
    return graphs[list(first.values())] if first else np.zeros((0, d, d), dtype=bool)


def _one_arc_away(members: np.ndarray) -> np.ndarray:
    """All graphs, cyclic ones too, with one arc of a member added, deleted or turned."""
    d = members.shape[1]
    pairs = np.argwhere(~np.eye(d, dtype=bool))
    graphs = np.repeat(members, len(pairs), axis=0)
    each = np.arange(len(graphs))
    i, j = np.tile(pairs, (len(members), 1)).T
    # i -> j is deleted where it is there; else it is added, and j -> i, if there, goes: the arc is
    # turned.
    present = graphs[each, i, j]
    graphs[each, i, j] = ~present
    graphs[each, j, i] = graphs[each, j, i] & present
    return graphs


def _exchanged(members: np.ndarray) -> np.ndarray:
    """All graphs, cyclic ones too, where one arc i -> j of a member has become k -> j, with k and j
    not adjacent before.
    """
    member, i, j = np.nonzero(members)
    apart = ~(members | members.transpose(0, 2, 1) | np.eye(members.shape[1], dtype=bool))
    arc, k = np.nonzero(apart[member, :, j])
    graphs = members[member[arc]]
    each = np.arange(len(arc))
    graphs[each, i[arc], j[arc]] = False
    graphs[each, k, j[arc]] = True
    return graphs


def _acyclic(graphs: np.ndarray) -> np.ndarray:
    """Which of the graphs are acyclic, bool (G,): their paths of d arcs are counted by squaring."""
    paths = graphs.astype(np.float32)
    steps = 1
    while steps < graphs.shape[1]:
        paths = np.minimum(paths @ paths, 1.0)
        steps *= 2
    return paths.sum(axis=(1, 2)) == 0
