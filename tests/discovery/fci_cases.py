"""DAGs with latent and selection variables: their MAGs by definition, random ones, and those that
need a given step.

Source: as in ``pag_reference``; the graphs of ``CLASSIC`` are named where they stand.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from tests.discovery.pag_reference import (
    ARROW,
    NONE,
    TAIL,
    Marks,
    ancestor_masks,
    bits,
    edges_of,
    freeze,
)


@dataclass(frozen=True)
class Case:
    """A DAG of which some nodes are latent and some are selected."""

    dag: nx.DiGraph
    latent: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()

    @property
    def observed(self) -> tuple[str, ...]:
        return tuple(node for node in self.dag if node not in {*self.latent, *self.selected})

    def reordered(self, order: Sequence[int] | np.ndarray) -> Case:
        """The same DAG, its nodes in another order."""
        nodes = list(self.dag)
        dag = nx.DiGraph()
        dag.add_nodes_from(nodes[k] for k in order)
        dag.add_edges_from(self.dag.edges)
        return Case(dag, self.latent, self.selected)

    def __str__(self) -> str:
        edges = ", ".join(f"{a}>{b}" for a, b in self.dag.edges)
        return (
            f"nodes {' '.join(self.dag)} | {edges} | latent {self.latent} | selected "
            f"{self.selected}"
        )


def case(edges: str, *, latent: str = "", selected: str = "") -> Case:
    """A case from text: ``case("a>b L>b L>c", latent="L")``; nodes in the order of their first
    mention.
    """
    return Case(
        nx.DiGraph([edge.split(">") for edge in edges.split()]),
        tuple(latent.split()),
        tuple(selected.split()),
    )


def canonical(mag: Marks) -> Case:
    """The canonical DAG of a MAG: i <-> j becomes i <- L -> j, and i --- j becomes i -> S <- j."""
    dag, latent, selected = nx.DiGraph(), [], []
    dag.add_nodes_from(f"x{i}" for i in range(len(mag)))
    for i, j in edges_of(mag):
        a, b = f"x{i}", f"x{j}"
        if mag[i][j] == mag[j][i] == ARROW:
            latent.append(f"L{i}{j}")
            dag.add_edges_from([(latent[-1], a), (latent[-1], b)])
        elif mag[i][j] == mag[j][i] == TAIL:
            selected.append(f"S{i}{j}")
            dag.add_edges_from([(a, selected[-1]), (b, selected[-1])])
        else:
            dag.add_edge(*((a, b) if mag[i][j] == ARROW else (b, a)))
    return Case(dag, tuple(latent), tuple(selected))


def parents_of(dag: nx.DiGraph) -> list[int]:
    place = {node: i for i, node in enumerate(dag)}
    return [sum(1 << place[p] for p in dag.predecessors(node)) for node in dag]


def d_separated(parents: Sequence[int], above: Sequence[int], x: int, y: int, given: int) -> bool:
    """Is x cut off from y by ``given`` in the moral graph of the ancestors of all of them
    (Lauritzen et al. 1990)?
    """
    kept = functools.reduce(lambda mask, v: mask | above[v], bits(given), above[x] | above[y])
    near = [0] * len(parents)
    for v in bits(kept):
        family = parents[v] | 1 << v
        for u in bits(family):
            near[u] |= family
    reached, frontier = 1 << x, 1 << x
    while frontier:
        new = functools.reduce(lambda mask, v: mask | near[v], bits(frontier), 0)
        frontier = new & ~reached & ~given
        reached |= frontier
    return not reached >> y & 1


def mag_of(source: Case, *, by_ancestors: bool = False) -> Marks:
    """The MAG of a DAG, nodes in the order of ``source.observed``.

    An edge where no set of observed nodes separates; ``by_ancestors`` tries only the set that must
    do if one does: the observed ancestors of the pair and of the selected nodes.  A tail where the
    node is an ancestor of the other end or of a selected node, else an arrowhead.
    """
    nodes = list(source.dag)
    parents = parents_of(source.dag)
    above = ancestor_masks(parents)
    place = [nodes.index(name) for name in source.observed]
    selection = sum(1 << nodes.index(name) for name in source.selected)
    of_selection = functools.reduce(lambda mask, v: mask | above[v], bits(selection), 0)
    n = len(place)
    marks = [[NONE] * n for _ in range(n)]
    for i, j in itertools.combinations(range(n), 2):
        x, y = place[i], place[j]
        others = [v for v in place if v not in (x, y)]
        if by_ancestors:
            near = above[x] | above[y] | of_selection
            candidates = iter([sum(1 << v for v in others if near >> v & 1)])
        else:
            subsets = itertools.chain.from_iterable(
                itertools.combinations(others, k) for k in range(len(others) + 1)
            )
            candidates = (sum(1 << v for v in subset) for subset in subsets)
        if any(d_separated(parents, above, x, y, given | selection) for given in candidates):
            continue
        marks[j][i] = TAIL if (above[y] | of_selection) >> x & 1 else ARROW
        marks[i][j] = TAIL if (above[x] | of_selection) >> y & 1 else ARROW
    return freeze(marks)


def random_case(
    rng: np.random.Generator, *, n_observed: int, n_latent: int, n_selected: int
) -> Case:
    """A third each: any nodes of a random DAG are hidden; few strong confounders; many of two
    children each.

    Where not any node is hidden, latents are roots and selected nodes are sinks with two parents.
    """
    style = ("anywhere", "strong", "pairs")[int(rng.integers(3))]
    degree = rng.uniform(0.5, 3.5) if style != "pairs" else rng.uniform(0.5, 2.0)
    names = [f"x{i}" for i in range(n_observed)]
    latent, selected = [f"L{i}" for i in range(n_latent)], [f"S{i}" for i in range(n_selected)]
    inner = [*names, *latent, *selected] if style == "anywhere" else list(names)
    rank = [str(node) for node in rng.permutation(inner)]
    arcs = [
        arc for arc in itertools.combinations(rank, 2) if rng.random() * (len(inner) - 1) < degree
    ]
    if style != "anywhere":
        several = 2 if style == "pairs" else min(n_observed, 3)
        arcs += [
            (node, str(child))
            for node in latent
            for child in rng.choice(names, several, replace=False)
        ]
        arcs += [
            (str(parent), node)
            for node in selected
            for parent in rng.choice(names, 2, replace=False)
        ]
    return _shuffled(rng, [*names, *latent, *selected], arcs, latent, selected)


def planted_case(rng: np.random.Generator, core: Case, *, n_more: int) -> Case:
    """A case with ``n_more`` observed nodes and some arcs added to it; names start with ``x``,
    ``L`` and ``S``.
    """
    rank = list(nx.topological_sort(core.dag))
    more = [f"y{i}" for i in range(n_more)]
    for node in more:
        rank.insert(int(rng.integers(len(rank) + 1)), node)
    hidden = {*core.latent, *core.selected}
    chance = rng.uniform(0, 0.4)
    arcs = [
        (a, b)
        for a, b in itertools.combinations(rank, 2)
        if core.dag.has_edge(a, b)
        or (not hidden & {a, b} and rng.random() < (chance if {a, b} & set(more) else chance / 8))
    ]
    names = {
        node: f"x{i}"
        for i, node in enumerate(str(v) for v in rng.permutation([*core.observed, *more]))
    }
    names |= {node: f"L{i}" for i, node in enumerate(core.latent)} | {
        node: f"S{i}" for i, node in enumerate(core.selected)
    }
    return _shuffled(
        rng,
        list(names.values()),
        [(names[a], names[b]) for a, b in arcs],
        [names[node] for node in core.latent],
        [names[node] for node in core.selected],
    )


def _shuffled(
    rng: np.random.Generator,
    nodes: Sequence[str],
    arcs: Sequence[tuple[str, str]],
    latent: Sequence[str],
    selected: Sequence[str],
) -> Case:
    dag = nx.DiGraph()
    dag.add_nodes_from(str(node) for node in rng.permutation(list(nodes)))
    dag.add_edges_from(arcs)
    return Case(dag, tuple(latent), tuple(selected))


# ---- graphs that need a given step

# Only a set that is not among the neighbours of either end separates some pair: Possible-D-SEP is
# needed.  The first is the type of the example in Spirtes, Glymour and Scheines 2000, section 6.3
# (A and E, separated by B, C, D only).
POSSIBLE_D_SEP = (
    case("T1>A T1>B T2>D T2>E B>E D>A C>B C>D", latent="T1 T2"),
    case("x0>x2 x1>x0 x5>x4 x6>x5 L0>x0 L0>x4 L2>x2 L2>x6 L4>x1 L4>x6", latent="L0 L2 L4"),
    case("x0>x4 x2>x3 x3>x6 L0>x0 L0>x6 L2>x2 L2>x0 L3>x4 L3>x3", latent="L0 L2 L3"),
    case("x0>x3 x1>x5 x4>x0 x4>x3 x6>x1 x6>x5 L2>x1 L2>x3 L3>x5 L3>x0", latent="L2 L3"),
    case(
        "x0>x1 x3>x6 x4>x0 x5>x6 L0>x4 L0>x3 L2>x0 L2>x6 L3>x3 L3>x5 L6>x4 L6>x1",
        latent="L0 L2 L3 L6",
    ),
    case("x0>x3 x1>x4 x1>x0 x4>x2 x5>x2 L0>x0 L0>x2 L1>x5 L1>x3 L4>x4 L4>x5", latent="L0 L1 L4"),
)

# Each names a rule without which a mark would be missing there: random graphs, made smaller until
# every arc mattered, and a few by hand.
RULES = (
    ("R1", case("a>c b>c c>d")),
    ("R2", case("a>b a>c b>d b>c d>c e>b e>c")),  # b --> d o-> c
    ("R2", case("b>c d>b L>b L>a M>a M>c e>a", latent="L M")),  # a <-> b --> c
    ("R3", case("a>b a>c d>a d>c b>c")),
    ("R3", case("L>x2 L>x4 L>x3 x0>x2 x0>S x3>S", latent="L", selected="S")),
    ("R4", case("a>b a>c b>c d>b")),  # b is no collider on the path that discriminates it
    ("R4", case("x>q q>y L>q L>b M>b M>y", latent="L M")),  # b is one
    # after r -> y, along x, q, r, b, y
    ("R4", case("x>q q>y L>q L>r r>y M>r M>b b>y", latent="L M")),
    ("R4", case("x>q q>y L>q L>r r>y M>r M>b N>b N>y", latent="L M N")),
    ("R5", case("a>b c>a c>d b>S d>S", selected="S")),
    ("R5", case("a>S b>S b>T c>T c>U d>U d>V e>V e>a", selected="S T U V")),
    ("R6", case("a>b c>a c>e c>d b>S d>S", selected="S")),
    ("R6", case("x0>x4 x0>S0 x2>x0 x1>S1 x3>x1 x3>S0 x4>S1", selected="S0 S1")),
    ("R7", case("x3>S0 x3>S1 x6>x5 x6>x3 x2>x0 x2>x1 x1>S1 x0>S0", selected="S0 S1")),
    ("R7", case("x0>x2 x1>x3 x1>x2 x4>x3 x4>x0 x3>S0 x2>S0", selected="S0")),
    ("R8", case("x0>x2 x0>x7 x1>x2 x1>x7 x2>x3 x2>x7 x3>x6 x3>x7 x4>x6 x6>x7")),
    # a cycle of undirected edges (R5), from it a --o b --o k --o l by R6 and R7, b --> g by R9;
    # then a --o b --> g.
    (
        "R8",
        case(
            "m>S1 c>S1 c>S2 d>S2 d>S3 e>S3 e>S4 m>S4 m>a a>b b>k k>l l>g b>g a>g m>g",
            selected="S1 S2 S3 S4",
        ),
    ),
    ("R9", case("b>d c>b a>c a>d")),
    ("R9", case("x2>x4 x2>S x1>S x4>x3 L>x1 L>x3", latent="L", selected="S")),
    (
        "R9",
        case(
            "L2>x0 L2>x6 L1>x1 L1>x6 x4>S1 x3>S0 x1>S0 x5>S1 x2>x3 x2>x5 x0>x4",
            latent="L1 L2",
            selected="S0 S1",
        ),
    ),
    ("R9", case("x2>S x5>x2 x4>x1 x4>S x0>x5 x0>x1", selected="S")),
    ("R10", case("x4>x3 x4>x1 x2>x4 x2>x3 x2>x0 x2>x1 x0>x1 x3>x0")),
    ("R10", case("x3>x7 x3>x4 x7>x2 x0>x1 x0>x3 x0>x4 x1>x2 x1>x4 x2>x4")),
    ("R10", case("x0>x1 x0>S x4>x5 x4>x0 x4>x1 x5>x3 x5>x1 x3>x0", selected="S")),
    (
        "R10",
        case(
            "x4>x3 x1>S x3>S L1>x1 L1>x0 L2>x4 L2>x1 x2>x3 L0>x0 L0>x2",
            latent="L0 L1 L2",
            selected="S",
        ),
    ),
)
