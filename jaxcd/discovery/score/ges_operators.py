r"""Moves between Markov equivalence classes, on CPDAGs whose neighbourhoods are bit masks.

A move takes a DAG of the class in which node y has the parents pa(y) and C, where C is a clique of
neighbours of y (joined to it by undirected edges), and changes one arc between x and y:

    insert   x, y not adjacent;  C holds all neighbours of y that are adjacent to x, and every
             semi-directed path from y to x meets C
    delete   x --> y or x --- y; C consists of neighbours of y that are adjacent to x
    turn     y --> x becomes x --> y; C as for insert, every other semi-directed path from y to x
             meets C or a neighbour of x
    turn     y --- x becomes x --> y; C holds one that is not adjacent to x, and with N those
             neighbours of y that are adjacent to x, C and N together separate the rest of C from
             the rest of N in the chain component without x and y

The conditions are those under which such a DAG exists, so that the change of the score is a
difference of a few local scores and is known before anything is built.

Source:
    Chickering 2002 (insert, delete); Hauser and Buehlmann 2012 (turn); Dor and Tarsi 1992 and
    Chickering 1995 for the DAG of a class and back.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

__all__ = [
    "ClassGraph",
    "Move",
    "MoveKind",
    "apply_move",
    "arc_scores",
    "bits",
    "class_graph",
    "extended",
    "is_open",
    "moves_into",
    "one_member",
]


class MoveKind(enum.Enum):
    """What happens to the arc."""

    INSERT = "insert"
    DELETE = "delete"
    TURN = "turn"


class Move(NamedTuple):
    """One move: the arc x --> y is inserted, deleted, or made of y --> x; ``clique`` is C, bits."""

    kind: MoveKind
    x: int
    y: int
    clique: int


class ClassGraph(NamedTuple):
    """A CPDAG (or a PDAG): for each node its parents, children and neighbours by undirected edges,
    as bits.
    """

    parents: tuple[int, ...]
    children: tuple[int, ...]
    neighbours: tuple[int, ...]

    @staticmethod
    def empty(n_nodes: int) -> ClassGraph:
        """The graph without edges."""
        none = (0,) * n_nodes
        return ClassGraph(none, none, none)

    def adjacent(self, node: int) -> int:
        """All nodes with an edge to the node, bits."""
        return self.parents[node] | self.children[node] | self.neighbours[node]

    def marks(self) -> np.ndarray:
        """The marks of a MixedGraph, int8 (d, d)."""
        d = len(self.parents)
        marks = np.zeros((d, d), dtype=np.int8)
        for v in range(d):
            for u in bits(self.parents[v]):
                marks[u, v], marks[v, u] = 2, 3
            marks[bits(self.neighbours[v]), v] = 3
        return marks


def bits(mask: int) -> list[int]:
    """The positions of the ones, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _cliques(base: int, among: int, adjacent: Sequence[int]) -> Iterator[int]:
    """All cliques that consist of ``base`` and nodes of ``among``, bits; none where the base is no
    clique.
    """
    for v in bits(base):
        if base & ~adjacent[v] & ~(1 << v):
            return
        among &= adjacent[v]
    stack = [(base, among & ~base)]
    while stack:
        clique, more = stack.pop()
        yield clique
        while more:
            low = more & -more
            more ^= low
            stack.append((clique | low, more & adjacent[low.bit_length() - 1]))


def moves_into(
    graph: ClassGraph, y: int, *, kind: MoveKind, others: int, max_parents: int
) -> Iterator[Move]:
    """The moves of a kind at the arcs into y that pass every condition but that on paths
    (:func:`is_open`).

    Args:
        others: the tails x that may be tried, bits; -1 for all.
        max_parents: the most parents that y may have afterwards.
    """
    adjacent = [graph.adjacent(v) for v in range(len(graph.parents))]
    around, fixed = graph.neighbours[y], graph.parents[y]
    others &= (1 << len(adjacent)) - 1
    room = max_parents - fixed.bit_count() - (kind is not MoveKind.DELETE)
    if room < 0:
        return
    if kind is MoveKind.DELETE:
        for x in bits((fixed | around) & others):
            for clique in _cliques(0, around & adjacent[x], adjacent):
                yield Move(kind, x, y, clique)
        return
    inserted = kind is MoveKind.INSERT
    for x in bits(others & (~adjacent[y] & ~(1 << y) if inserted else graph.children[y])):
        shared = around & adjacent[x]
        for clique in _cliques(shared, around & ~shared, adjacent):
            if clique.bit_count() <= room:
                yield Move(kind, x, y, clique)
    if kind is MoveKind.TURN:
        for x in bits(around & others):
            for clique in _cliques(0, around & ~(1 << x), adjacent):
                if clique & ~adjacent[x] and clique.bit_count() <= room:
                    yield Move(kind, x, y, clique)


def arc_scores(graph: ClassGraph, move: Move) -> tuple[tuple[int, int, int], ...]:
    """The local scores whose sum is the gain of a move: (sign, node, parents as bits)."""
    _, x, y, clique = move
    without = (graph.parents[y] | clique) & ~(1 << x)
    with_x = without | 1 << x
    if move.kind is MoveKind.DELETE:
        return (1, y, without), (-1, y, with_x)
    if move.kind is MoveKind.INSERT:
        return (1, y, with_x), (-1, y, without)
    rest = graph.parents[x] & ~(1 << y)
    if graph.neighbours[y] >> x & 1:
        rest |= clique & graph.neighbours[x]
    return (1, y, with_x), (-1, y, without), (1, x, rest), (-1, x, rest | 1 << y)


def is_open(graph: ClassGraph, move: Move) -> bool:
    """Whether the condition on paths holds; those of the other conditions that are local are taken
    for granted.
    """
    kind, x, y, clique = move
    if kind is MoveKind.DELETE:
        return True
    if kind is MoveKind.TURN and graph.neighbours[y] >> x & 1:
        shared = graph.neighbours[y] & graph.neighbours[x]
        inside = _reached(
            clique & ~shared, graph.neighbours, blocked=clique & shared | 1 << x | 1 << y
        )
        return not inside & shared & ~clique
    onward = [
        children | around for children, around in zip(graph.children, graph.neighbours, strict=True)
    ]
    if kind is MoveKind.TURN:
        onward[y] &= ~(1 << x)
        clique |= graph.neighbours[x]
    return not _reached(1 << y, onward, blocked=clique) >> x & 1


def _reached(start: int, onward: Sequence[int], *, blocked: int) -> int:
    """The nodes that can be reached from ``start`` without a blocked one, bits."""
    reached = frontier = start
    while frontier:
        low = frontier & -frontier
        fresh = onward[low.bit_length() - 1] & ~reached & ~blocked
        reached |= fresh
        frontier = (frontier ^ low) | fresh
    return reached


def apply_move(graph: ClassGraph, move: Move) -> ClassGraph | None:
    """The CPDAG after a move; None where the move is not possible."""
    kind, x, y, clique = move
    undirected_turn = kind is MoveKind.TURN and bool(graph.neighbours[y] >> x & 1)
    into = {y: clique | (1 << x if kind is MoveKind.DELETE else 0)}
    # x stands before its neighbours, but for what is known to stand before it
    if kind is MoveKind.TURN:
        into[x] = clique & graph.neighbours[x] | 1 << y if undirected_turn else 0
    parents = extended(_oriented(graph, into))
    if parents is None:
        return None
    if kind is MoveKind.INSERT:
        parents[y] |= 1 << x
    else:
        parents[y] &= ~(1 << x)
    if kind is MoveKind.TURN:
        parents[x] &= ~(1 << y)
        parents[y] |= 1 << x
    return class_graph(parents)


def _oriented(graph: ClassGraph, into: dict[int, int]) -> ClassGraph:
    """The graph with the undirected edges at some nodes directed: from ``into[v]`` to v, and from v
    to its other neighbours.
    """
    parents, children, around = (list(part) for part in graph)
    for v, tails in into.items():
        for u in bits(around[v]):
            tail, head = (u, v) if tails >> u & 1 else (v, u)
            parents[head] |= 1 << tail
            children[tail] |= 1 << head
            around[u] &= ~(1 << v)
        around[v] = 0
    return ClassGraph(tuple(parents), tuple(children), tuple(around))


def one_member(graph: ClassGraph) -> tuple[int, ...]:
    """A DAG of the class: the parents of each node, bits."""
    parents = extended(graph)
    if parents is None:  # no CPDAG
        raise ValueError("the graph has no consistent extension")
    return tuple(parents)


def extended(graph: ClassGraph, *, later: Sequence[int] = ()) -> list[int] | None:
    """The parents in a DAG with the graph's adjacencies, arcs and v-structures; None if there is
    none.

    Node after node is taken out that may be a sink: it has no children left, and its neighbours are
    adjacent to all around it.

    Args:
        later: for each node those that must stand behind it in an order of the DAG, bits; nothing
            for none.
    """
    result = list(graph.parents)
    parents, children, around = (list(part) for part in graph)
    left = (1 << len(parents)) - 1
    waiting = left
    while waiting:
        v = waiting.bit_length() - 1
        waiting ^= 1 << v
        everything = parents[v] | around[v]
        if (
            (later and later[v] & left)
            or children[v]
            or any(
                everything & ~(parents[u] | children[u] | around[u] | 1 << u)
                for u in bits(around[v])
            )
        ):
            continue
        result[v] |= around[v]
        left ^= 1 << v
        for u in bits(everything):
            children[u] &= ~(1 << v)
            around[u] &= ~(1 << v)
        if later:
            waiting = left
            continue
        waiting |= everything & left  # only these can have become sinks ...
        for u in bits(everything):  # ... and their neighbours
            waiting |= around[u] & left
    return None if left else result


def class_graph(parents: Sequence[int]) -> ClassGraph | None:
    """The CPDAG of a DAG, given by the parents of each node, bits; None where it has a cycle."""
    d = len(parents)
    order: list[int] = []
    placed = 0
    while len(order) < d:
        ready = [v for v in range(d) if not placed >> v & 1 and not parents[v] & ~placed]
        if not ready:
            return None
        order += ready
        placed |= sum(1 << v for v in ready)
    rank = {v: k for k, v in enumerate(order)}
    compelled = [0] * d  # parents of each node by arcs that the whole class shares
    for y in order:
        if not parents[y]:
            continue
        x = max(bits(parents[y]), key=rank.__getitem__)
        if compelled[x] & ~parents[y] or parents[y] & ~parents[x] & ~(1 << x):
            compelled[y] = parents[y]
        else:
            compelled[y] = compelled[x]
    children, around = [0] * d, [0] * d
    for y in range(d):
        for x in bits(parents[y]):
            if compelled[y] >> x & 1:
                children[x] |= 1 << y
            else:
                around[x] |= 1 << y
                around[y] |= 1 << x
    return ClassGraph(tuple(compelled), tuple(children), tuple(around))
