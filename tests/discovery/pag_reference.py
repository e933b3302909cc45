"""What a PAG is, by definition: the truth that FCI is compared with.

Nothing here knows an orientation rule, or uses the library.  Graphs are plain: ``marks[i][j]`` is
the mark at j on the edge between i and j (0 none, 1 circle, 2 arrowhead, 3 tail); sets of nodes are
the bits of integers.

Two references, independent of each other:

1. ``classes(n)``: all MAGs on n <= 4 nodes by enumeration (ancestral and maximal by definition),
   grouped by all their m-separations; a mark of the PAG is what all members of a class agree on,
   else a circle.
2. ``pag_by_search(mag)``: for every mark of one MAG, a search through the fillings of its skeleton
   for a member of the class with the other mark; if there is none, the mark is invariant.

Source: Richardson and Spirtes 2002 (Annals of Statistics 30: ancestral graphs, m-separation,
maximality, the MAG of a DAG with latent and selection variables, the canonical DAG); Zhang 2008
(Artificial Intelligence 172: PAGs).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

NONE, CIRCLE, ARROW, TAIL = range(4)
# marks at i and at j of an edge i - j
FILLINGS = ((TAIL, ARROW), (ARROW, TAIL), (ARROW, ARROW), (TAIL, TAIL))

Marks = tuple[tuple[int, ...], ...]
Filling = dict[tuple[int, int], tuple[int, int]]


# ---- graphs by definition


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def freeze(marks: Sequence[Sequence[int]] | np.ndarray) -> Marks:
    return tuple(tuple(int(mark) for mark in row) for row in marks)


def filled(n: int, filling: Filling) -> Marks:
    marks = [[NONE] * n for _ in range(n)]
    for (i, j), (at_i, at_j) in filling.items():
        marks[j][i], marks[i][j] = at_i, at_j
    return freeze(marks)


def edges_of(marks: Marks) -> list[tuple[int, int]]:
    return [(i, j) for i, j in itertools.combinations(range(len(marks)), 2) if marks[i][j]]


def directed(marks: Marks, i: int, j: int) -> bool:
    return marks[i][j] == ARROW and marks[j][i] == TAIL


def ancestor_masks(parents: Sequence[int]) -> list[int]:
    """For each node the mask of its ancestors, itself among them."""
    masks = [1 << v for v in range(len(parents))]
    changed = True
    while changed:
        changed = False
        for v, mask in enumerate(masks):
            for p in bits(parents[v]):
                mask |= masks[p]
            changed |= mask != masks[v]
            masks[v] = mask
    return masks


def ancestors(marks: Marks) -> list[int]:
    n = len(marks)
    return ancestor_masks(
        [sum(1 << u for u in range(n) if directed(marks, u, v)) for v in range(n)]
    )


def is_ancestral(marks: Marks) -> bool:
    """No node is an ancestor of a parent or spouse, and none with an undirected edge has an
    arrowhead.
    """
    n, above = len(marks), ancestors(marks)
    arrows = [[j for j in range(n) if marks[j][i] == ARROW] for i in range(n)]
    if any(above[j] >> i & 1 for i in range(n) for j in arrows[i]):
        return False
    return not any(
        marks[i][j] == marks[j][i] == TAIL and (arrows[i] or arrows[j]) for i, j in edges_of(marks)
    )


def paths(marks: Marks, x: int, y: int) -> Iterator[list[int]]:
    """All paths (no node twice) from x to y."""
    stack = [[x]]
    while stack:
        path = stack.pop()
        for w in range(len(marks)):
            if marks[path[-1]][w] and w not in path:
                if w == y:
                    yield [*path, w]
                else:
                    stack.append([*path, w])


def separation_row(marks: Marks, above: Sequence[int], x: int, y: int) -> tuple[bool, ...]:
    """For each set Z without x and y, in a fixed order: is every path between x and y blocked by Z?

    A path is blocked if it has a non-collider in Z or a collider that is no ancestor of Z.
    """
    blockers = []
    for path in paths(marks, x, y):
        colliders = {
            b
            for a, b, c in zip(path, path[1:], path[2:], strict=False)
            if marks[a][b] == marks[c][b] == ARROW
        }
        blockers.append((colliders, sum(1 << v for v in path[1:-1] if v not in colliders)))
    row = []
    for given in sets_without(len(marks), x, y):
        of_given = functools.reduce(lambda mask, z: mask | above[z], bits(given), 0)
        row.append(
            all(
                inner & given or any(not of_given >> c & 1 for c in colliders)
                for colliders, inner in blockers
            )
        )
    return tuple(row)


def sets_without(n: int, x: int, y: int) -> list[int]:
    return [mask for mask in range(1 << n) if not (mask >> x | mask >> y) & 1]


def separations(marks: Marks) -> Iterator[tuple[bool, ...]]:
    """All m-separations, a row for each pair."""
    above = ancestors(marks)
    return (
        separation_row(marks, above, x, y) for x, y in itertools.combinations(range(len(marks)), 2)
    )


# ---- reference 1: all MAGs


@functools.cache
def classes(n: int) -> tuple[tuple[Marks, ...], ...]:
    """The Markov equivalence classes of all MAGs on n nodes: 2, 11 and 251 for n = 2, 3, 4."""
    pairs = list(itertools.combinations(range(n), 2))
    found: dict[tuple, list[Marks]] = {}
    for choice in itertools.product((None, *FILLINGS), repeat=len(pairs)):
        marks = filled(
            n, {pair: ends for pair, ends in zip(pairs, choice, strict=True) if ends is not None}
        )
        if is_ancestral(marks):
            model = tuple(separations(marks))
            # maximal
            if all(marks[x][y] or any(row) for (x, y), row in zip(pairs, model, strict=True)):
                found.setdefault(model, []).append(marks)
    return tuple(tuple(members) for members in found.values())


def agreement(members: Sequence[Marks]) -> Marks:
    """The PAG of a class: the marks on which all members agree, circles elsewhere."""
    n = len(members[0])
    seen = [[{member[i][j] for member in members} for j in range(n)] for i in range(n)]
    return tuple(
        tuple(next(iter(kinds)) if len(kinds) == 1 else CIRCLE for kinds in row) for row in seen
    )


# ---- reference 2: search from one MAG


class TooLarge(Exception):
    """The search was given up: nothing is known about the class."""


def pag_by_search(mag: Marks, *, limit: int = 100_000) -> Marks:
    """The PAG of a MAG; raises TooLarge after ``limit`` steps of one search.

    Up to 6 nodes members are recognised by all their m-separations, beyond by
    :func:`equivalent_by_paths`.
    """
    n, edges = len(mag), edges_of(mag)
    model = [] if n > 6 else list(separations(mag))
    seen = {(i, j): {mag[i][j]} for i, j in [*edges, *(edge[::-1] for edge in edges)]}
    fixed: dict[tuple[int, int], int] = {}
    for end, kinds in seen.items():
        if len(kinds) == 2:
            continue
        flipped = ARROW if kinds == {TAIL} else TAIL
        for candidate in _fillings(mag, {**fixed, end: flipped}, end, limit):
            if equivalent_by_paths(mag, candidate) if n > 6 else _same_model(candidate, model):
                for i, j in seen:
                    seen[i, j].add(candidate[i][j])
                break
        else:
            fixed[end] = mag[end[0]][end[1]]
    marks = [[NONE] * n for _ in range(n)]
    for (i, j), kinds in seen.items():
        marks[i][j] = CIRCLE if len(kinds) == 2 else mag[i][j]
    return freeze(marks)


def _same_model(marks: Marks, model: Sequence[tuple[bool, ...]]) -> bool:
    return all(row == wanted for row, wanted in zip(separations(marks), model, strict=True))


def _fillings(
    mag: Marks, fixed: dict[tuple[int, int], int], start: tuple[int, int], limit: int
) -> Iterator[Marks]:
    """All ancestral graphs with the skeleton and the unshielded colliders of ``mag`` and the
    ``fixed`` marks.
    """
    n = len(mag)
    order = [(min(start), max(start))]
    rest = [edge for edge in edges_of(mag) if edge != order[0]]
    while rest:  # neighbouring edges one after another, so that contradictions show early
        touched = {v for edge in order for v in edge}
        order.append(max(rest, key=lambda edge: len(touched.intersection(edge))))
        rest.remove(order[-1])
    marks = [[NONE] * n for _ in range(n)]
    steps = 0

    def fits(i: int, j: int) -> bool:
        """Are the unshielded triples b - j - i as they should be, as far as they are filled?"""
        for b in range(n):
            if b != i and marks[b][j] and not mag[b][i]:
                collider = mag[b][j] == mag[i][j] == ARROW
                if (marks[b][j] == marks[i][j] == ARROW) != collider:
                    return False
        return True

    def extend(depth: int, above: list[int], into: list[int], undirected: int) -> Iterator[Marks]:
        # above[v]: the ancestors of v and v; into[v]: the nodes with an edge into v, none of which
        # v may be above; undirected: the nodes with an undirected edge, into which there may be no
        # edge.
        nonlocal steps
        if depth == len(order):
            yield freeze(marks)
            return
        i, j = order[depth]
        for at_i, at_j in sorted(
            FILLINGS, key=lambda ends: (ends[0] != mag[j][i]) + (ends[1] != mag[i][j])
        ):
            if fixed.get((j, i), at_i) != at_i or fixed.get((i, j), at_j) != at_j:
                continue
            steps += 1
            if steps > limit:
                raise TooLarge
            new_above, new_into, new_undirected = above, list(into), undirected
            if at_i == ARROW:
                new_into[i] |= 1 << j
            if at_j == ARROW:
                new_into[j] |= 1 << i
            if at_i == at_j == TAIL:
                new_undirected |= 1 << i | 1 << j
            elif at_i != at_j:
                parent, child = (i, j) if at_j == ARROW else (j, i)
                new_above = [mask | above[parent] if mask >> child & 1 else mask for mask in above]
            if any(new_undirected >> v & 1 and new_into[v] for v in (i, j)):
                continue
            if any(new_above[u] >> v & 1 for v in range(n) for u in bits(new_into[v])):
                continue
            marks[j][i], marks[i][j] = at_i, at_j
            if fits(i, j) and fits(j, i):
                yield from extend(depth + 1, new_above, new_into, new_undirected)
            marks[j][i] = marks[i][j] = NONE

    return extend(0, [1 << v for v in range(n)], [0] * n, 0)


def equivalent_by_paths(a: Marks, b: Marks) -> bool:
    """Are two ancestral graphs, ``a`` maximal, with one skeleton and the same unshielded colliders
    Markov equivalent?

    They are if ``b`` is maximal too and every path that discriminates a node in both has the same
    collider there (Spirtes and Richardson 1996).
    """
    if has_inducing_path(b):
        return False
    first, second = discriminated(a), discriminated(b)
    return all(second[path] == collider for path, collider in first.items() if path in second)


def has_inducing_path(marks: Marks) -> bool:
    """Has a pair without an edge a path whose inner nodes are colliders and ancestors of an end?"""
    n, above = len(marks), ancestors(marks)
    for x, y in itertools.combinations(range(n), 2):
        if marks[x][y]:
            continue
        ends = above[x] | above[y]
        stack = [
            (x, v, 1 << x | 1 << v) for v in range(n) if marks[x][v] == ARROW and ends >> v & 1
        ]
        while stack:
            u, v, used = stack.pop()
            if marks[y][v] == ARROW:
                return True
            for w in range(n):
                if not used >> w & 1 and marks[w][v] == marks[v][w] == ARROW and ends >> w & 1:
                    stack.append((v, w, used | 1 << w))
    return False


def discriminated(marks: Marks) -> dict[tuple[int, ...], bool]:
    """The paths <x, ..., q, b, y> that discriminate b (x and y not joined; every node between x and
    b a collider and a parent of y), and whether b is a collider on them."""
    n = len(marks)
    found: dict[tuple[int, ...], bool] = {}
    for y, b in itertools.permutations(range(n), 2):
        if not marks[b][y]:
            continue
        stack: list[tuple[int, ...]] = [
            (q, b, y) for q in range(n) if directed(marks, q, y) and q != b and marks[b][q] == ARROW
        ]
        while stack:
            path = stack.pop()
            q = path[0]
            for r in range(n):
                if r in path or marks[r][q] != ARROW:
                    continue
                if not marks[r][y]:
                    before = path[-3]
                    found[r, *path] = marks[before][b] == marks[y][b] == ARROW
                elif directed(marks, r, y) and marks[q][r] == ARROW:
                    stack.append((r, *path))
    return found
