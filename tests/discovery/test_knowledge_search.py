"""Background knowledge in PC and FCI: what is not asked, what is written, what is reported, and
that true knowledge never harms.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings

import jaxcd
from jaxcd.discovery import ConflictRule, DiscoveryResult, dag_to_pag, fci, orient_pag, pc
from jaxcd.discovery.constraint.background import known_marks, oriented_as_known
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph, dag_to_cpdag, random_dag
from jaxcd.graphs.ancestral import dag_to_mag
from jaxcd.graphs.knowledge import Knowledge
from tests.brute_force import all_dags
from tests.discovery.listener import Listener
from tests.helpers import PLAIN, SEEDS, refused

Search = Callable[..., DiscoveryResult]
CHAIN = nx.DiGraph([("a", "b"), ("b", "c")])
BOTH = pytest.mark.parametrize("search", [pc, fci], ids=["pc", "fci"])


def run(
    search: Search, dag: nx.DiGraph, knowledge: Knowledge | None = None, *, latent=(), **options
) -> DiscoveryResult:
    oracle = jaxcd.Oracle(dag, latent=tuple(latent))
    return search(None, test=oracle, knowledge=knowledge, **{**PLAIN, **options})


def lines(graph: MixedGraph) -> set[str]:
    return {str(edge) for edge in graph.edges()}


# ---- on paper


def test_a_forbidden_direction_writes_one_arrowhead():
    # a o-o b o-o c with b no collider: an arrowhead at a, and no more, as a has no other edge.
    forbidden = Knowledge(forbidden=[("a", "b")])
    assert lines(run(fci, CHAIN, forbidden).graph) == {"b o-> a", "b o-o c"}
    # In a CPDAG the edge itself turns: b --> a; b --- c stays open, a, b, c being no collider
    # either way.
    assert lines(run(pc, CHAIN, forbidden).graph) == {"b --> a", "b --- c"}
    # An arrowhead at b: b *-> c by R1.
    other = Knowledge(forbidden=[("b", "a")])
    assert lines(run(fci, CHAIN, other).graph) == {"a o-> b", "b --> c"}
    assert lines(run(pc, CHAIN, other).graph) == {"a --> b", "b --> c"}


def test_a_required_edge_is_oriented():
    required = Knowledge(required=[("a", "b")])
    for search in (pc, fci):
        assert lines(run(search, CHAIN, required).graph) == {"a --> b", "b --> c"}


def test_tiers():
    tiers = Knowledge(tiers=[["a"], ["b"], ["c"]])
    # FCI: an arrowhead at b from a, then b --> c by R1; a may still be joined to b by a latent
    # cause.
    assert lines(run(fci, CHAIN, tiers).graph) == {"a o-> b", "b --> c"}
    assert lines(run(pc, CHAIN, tiers).graph) == {"a --> b", "b --> c"}


def test_meeks_fourth_rule():
    """Meek 1995, rule 4: k --- i, i --- j, i --- l, k --> l --> j with k, j not adjacent gives i
    --> j.
    """
    dag = nx.DiGraph([("i", "k"), ("i", "l"), ("i", "j"), ("k", "l"), ("l", "j")])
    free = run(pc, dag)
    assert lines(free.graph) == {"i --- k", "i --- l", "i --- j", "k --- l", "l --- j"}
    # k --> l is known; l --> j by R1; i --> j by R4, while i --- k and i --- l stay open.
    known = run(pc, dag, Knowledge(required=[("k", "l")]))
    assert lines(known.graph) == {"i --- k", "i --- l", "i --> j", "k --> l", "l --> j"}


def test_forbidden_both_ways():
    """PC: never joined, never asked, and the triples across tell nothing.  FCI: a latent cause may
    join the two.
    """
    both = Knowledge(forbidden=[("a", "c"), ("c", "a")])
    collider = nx.DiGraph([("a", "b"), ("c", "b")])
    listener = Listener()
    result = run(pc, collider, both, decider=listener)
    assert lines(result.graph) == {"a --- b", "b --- c"}
    assert not any((x, y) == (0, 2) for x, y, _ in listener.asked)  # the nodes are a, b, c
    assert frozenset("ac") not in result.separating_sets
    assert result.info["ambiguous_triples"] == (("a", "b", "c"),)
    # Chain or collider: the same question was not asked, so the same is known.
    assert lines(run(pc, CHAIN, both).graph) == {"a --- b", "b --- c"}
    confounded = nx.DiGraph([("L", "a"), ("L", "c"), ("a", "b"), ("c", "b")])
    assert lines(run(fci, confounded, both, latent=["L"]).graph) == {
        "a <-> c",
        "a o-o b",
        "c o-o b",
    }
    assert lines(run(fci, collider, both).graph) == {"a o-> b", "c o-> b"}


@BOTH
def test_required_edges_are_not_asked_and_kept(search: Search):
    listener = Listener()
    dag = nx.DiGraph([("a", "b")])
    dag.add_node("c")
    # against what the oracle says
    result = run(search, dag, Knowledge(required=[("c", "b")]), decider=listener)
    assert result.graph.has_edge("c", "b", symbol="-->")
    nodes = list(dag)
    assert not any({nodes[x], nodes[y]} == {"b", "c"} for x, y, _ in listener.asked)
    assert listener.asked


@BOTH
def test_a_path_of_required_edges_orients_the_edge_of_its_ends(search: Search):
    """The data say x --> y <-- z; y --> m --> x is known, so that x is no cause of y."""
    dag = nx.DiGraph([("x", "y"), ("z", "y")])
    dag.add_node("m")
    result = run(search, dag, Knowledge(required=[("y", "m"), ("m", "x")]))
    assert result.graph.has_edge("y", "x", symbol="-->")
    assert ("x", "y", "z") in result.info["knowledge_conflicts"]


@BOTH
def test_tiers_leave_out_later_separators(search: Search):
    dag = random_dag(7, expected_degree=3, seed=4)
    order = list(nx.topological_sort(dag))
    tiers = [[str(v) for v in order[:3]], [str(v) for v in order[3:5]], [str(v) for v in order[5:]]]
    tier = {name: k for k, names in enumerate(tiers) for name in names}
    listener, free = Listener(), Listener()
    names = [str(v) for v in dag]
    result = run(search, dag, Knowledge(tiers=tiers), decider=listener)
    run(search, dag, decider=free)
    for x, y, separators in listener.asked:
        assert all(tier[names[v]] <= max(tier[names[x]], tier[names[y]]) for v in separators)
    assert listener.asked < free.asked
    for pair, separators in result.separating_sets.items():
        assert all(tier[v] <= max(tier[end] for end in pair) for v in separators)


@BOTH
def test_conflicts_are_reported_and_knowledge_wins(search: Search):
    collider = nx.DiGraph([("a", "b"), ("c", "b")])
    wrong = run(search, collider, Knowledge(required=[("b", "a")]))
    # a tail at b: the collider a, b, c is not written, neither of its halves
    assert wrong.graph.has_edge("b", "a", symbol="-->")
    assert not wrong.graph.has_edge("c", "b", symbol="o->") and not wrong.graph.has_edge(
        "c", "b", symbol="-->"
    )
    assert wrong.info["knowledge_conflicts"] == (("a", "b", "c"),)
    # two arrowheads at b, where the data say that b is no collider
    other = run(search, CHAIN, Knowledge(forbidden=[("b", "a"), ("b", "c")]))
    assert other.info["knowledge_conflicts"] == (("a", "b", "c"),)
    assert all(other.graph.marks[i, 1] == 2 for i in (0, 2))
    assert run(search, CHAIN, Knowledge(required=[("a", "b")])).info["knowledge_conflicts"] == ()


@BOTH
def test_bad_knowledge_is_one_clear_error(search: Search):
    refused(OptionError, "'z'", run, search, CHAIN, Knowledge(required=[("a", "z")]))
    refused(OptionError, "knowledge", run, search, CHAIN, {"required": [("a", "b")]})


def test_knowledge_in_orient_pag_overwrites_nothing_afterwards():
    skeleton = MixedGraph.from_edges([*"abc"], ["a o-o b", "b o-o c"])
    oriented = orient_pag(
        skeleton, separating_sets={frozenset("ac"): ()}, knowledge=Knowledge(required=[("b", "c")])
    )
    assert oriented.knowledge_conflicts == (("a", "b", "c"),)
    assert lines(oriented.graph) == {"a o-o b", "b --> c"}


# ---- knowledge against the data


def steps(graph: MixedGraph) -> nx.DiGraph:
    return nx.DiGraph(graph.directed.astype(int))


@BOTH
def test_a_required_edge_closes_no_cycle(search: Search):
    """The data say x --> b --> c --> a <-- y with colliders at c and a; a --> b is known."""
    dag = nx.DiGraph([("b", "c"), ("x", "c"), ("c", "a"), ("y", "a")])
    result = run(search, dag, Knowledge(required=[("a", "b")]))
    assert nx.is_directed_acyclic_graph(steps(result.graph))
    assert result.graph.has_edge("a", "b", symbol="-->")
    if search is pc:
        left_open = {("c", "a", "y"), ("b", "c", "x")}
        assert left_open < set(result.info["knowledge_conflicts"])
        assert left_open <= set(result.info["ambiguous_triples"])
        assert lines(result.graph) == {"a --> b", "b --- c", "c --- x", "c --- a", "a --- y"}


@pytest.mark.parametrize("is_known", [True, False])
@settings(max_examples=40)
@given(seed=SEEDS)
@example(seed=452)  # without knowledge PC and FCI closed a cycle
def test_no_cycle_is_left_whatever_the_data_say(is_known: bool, seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    names = list("abcdef"[:n])
    adjacency = np.triu(rng.random((n, n)) < rng.uniform(0.3, 0.9), 1)
    skeleton = MixedGraph(names, (3 * (adjacency | adjacency.T)).astype(np.int8))
    pairs = itertools.combinations(names, 2)
    sets = {
        frozenset((a, b)): tuple(v for v in names if v not in (a, b) and rng.random() < 0.5)
        for a, b in pairs
        if not skeleton.adjacent(a, b)
    }
    order = [names[k] for k in rng.permutation(n)]
    joined = [(a, b) for a, b in itertools.combinations(order, 2) if skeleton.adjacent(a, b)]
    required = []
    if joined and is_known:
        required = [joined[0], *(pair for pair in joined[1:] if rng.random() < 0.25)]
    knowledge = Knowledge(required=required) if required else None

    def cpdag(skeleton: MixedGraph) -> MixedGraph:
        return oriented_as_known(
            skeleton,
            known_marks(knowledge, skeleton, latent=False),
            separating_sets=sets,
            rule=ConflictRule.UNDIRECTED,
        ).graph

    def pag(skeleton: MixedGraph) -> MixedGraph:
        return orient_pag(skeleton, separating_sets=sets, knowledge=knowledge).graph

    for orient in (cpdag, pag):
        graph = orient(skeleton)
        assert all(graph.has_edge(a, b, symbol="-->") for a, b in required)
        assert nx.is_directed_acyclic_graph(steps(graph))
        assert orient(skeleton.reordered(order)).reordered(names) == graph
    # a PAG has no arrowhead at an ancestor of the other end
    above = nx.to_numpy_array(nx.transitive_closure(steps(graph))) > 0
    assert not (above & (graph.marks.T == 2)).any()


# ---- true knowledge


def true_knowledge(rng: np.random.Generator, dag: nx.DiGraph, observed: list) -> Knowledge:
    """Some of what is true of a DAG, in the reading of ancestors."""
    above = {v: nx.ancestors(dag, v) for v in dag}
    order = [v for v in nx.topological_sort(dag) if v in observed]
    cuts = sorted(rng.choice(len(order) + 1, 2))
    tiers = [order[: cuts[0]], order[cuts[0] : cuts[1]], order[cuts[1] :]]
    pairs = list(itertools.permutations(observed, 2))
    forbidden = [(str(a), str(b)) for a, b in pairs if a not in above[b] and rng.random() < 0.15]
    required = [(str(a), str(b)) for a, b in pairs if dag.has_edge(a, b) and rng.random() < 0.15]
    return Knowledge(
        tiers=[[str(v) for v in tier] for tier in tiers] if rng.random() < 0.6 else (),
        forbidden=forbidden,
        required=required,
    )


@settings(max_examples=60)
@given(SEEDS)
def test_true_knowledge_adds_marks_to_the_pag_that_are_true(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    dag = random_dag(n, expected_degree=float(rng.uniform(1, min(3, n - 1))), seed=seed)
    nodes = list(dag)
    latent = [nodes[k] for k in rng.permutation(n)[: int(rng.integers(0, 3))]]
    knowledge = true_knowledge(rng, dag, [v for v in nodes if v not in latent])
    result = run(fci, dag, knowledge, latent=latent)
    free, mag = dag_to_pag(dag, latent=latent), dag_to_mag(dag, latent=latent)
    assert (result.graph.adjacency == free.adjacency).all()
    assert result.info["knowledge_conflicts"] == ()
    known = result.graph.marks > 1
    assert (known >= (free.marks > 1)).all()
    assert (result.graph.marks[known] == mag.marks[known]).all()
    heads = knowledge.arrowheads(free.names) & free.adjacency
    assert (result.graph.marks[heads] == 2).all()
    order = rng.permutation(n)
    moved = nx.DiGraph()
    moved.add_nodes_from(nodes[k] for k in order)
    moved.add_edges_from(dag.edges)
    assert (
        run(fci, moved, knowledge, latent=latent).graph.reordered(result.graph.names)
        == result.graph
    )


@settings(max_examples=60)
@given(SEEDS)
def test_true_knowledge_in_pc_gives_what_all_fitting_dags_share(seed: int):
    """Meek 1995: with R1 to R4 the oriented edges are exactly those common to the DAGs of the class
    that fit the knowledge.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    dag = random_dag(n, expected_degree=float(rng.uniform(1, n - 1)), seed=seed)
    nodes = list(dag)
    knowledge = true_knowledge(rng, dag, nodes)
    result = run(pc, dag, knowledge)
    names, arcs = result.graph.names, list(dag.edges)
    if any(knowledge.adjacency_forbidden(a, b) for a, b in itertools.combinations(names, 2)):
        return  # triples across such pairs are left open; see test_forbidden_both_ways

    def colliders(member: nx.DiGraph) -> set:
        return {
            (child, frozenset(pair))
            for child in member
            for pair in itertools.combinations(member.predecessors(child), 2)
            if not dag.has_edge(*pair) and not dag.has_edge(*reversed(pair))
        }

    shared = np.zeros((n, n), dtype=int)
    n_members = 0
    for flips in itertools.product((False, True), repeat=len(arcs)):
        member = nx.DiGraph()
        member.add_nodes_from(nodes)
        member.add_edges_from(
            (b, a) if flip else (a, b) for (a, b), flip in zip(arcs, flips, strict=True)
        )
        if not nx.is_directed_acyclic_graph(member) or colliders(member) != colliders(dag):
            continue
        if any(knowledge.forbids(str(a), str(b)) for a, b in member.edges):
            continue
        n_members += 1
        for a, b in member.edges:
            shared[nodes.index(a), nodes.index(b)] += 1
    assert n_members > 0
    np.testing.assert_array_equal(result.graph.directed, shared == n_members)
    np.testing.assert_array_equal(result.graph.adjacency, (shared + shared.T) > 0)


# ---- tiers along paths


def test_tiers_orient_along_a_path_through_a_column_without_a_tier():
    """c --> b would lead on to a, as b is no collider, and c is later than a."""
    assert lines(run(pc, CHAIN, Knowledge(tiers=[["a"], ["c"]])).graph) == {"a --- b", "b --> c"}


@functools.cache
def classes_of_four() -> list[tuple[nx.DiGraph, MixedGraph]]:
    """All DAGs of four nodes, each with its CPDAG."""
    found = []
    for adjacency in all_dags(4):
        dag = nx.DiGraph()
        dag.add_nodes_from("abcd")
        dag.add_edges_from(("abcd"[i], "abcd"[j]) for i, j in np.argwhere(adjacency))
        found.append((dag, dag_to_cpdag(dag)))
    return found


@settings(max_examples=60)
@given(SEEDS)
def test_tiers_in_pc_orient_what_all_dags_of_the_class_agree_on(seed: int):
    rng = np.random.default_rng(seed)
    dag, cpdag = classes_of_four()[rng.integers(543)]
    order = [name for name in nx.topological_sort(dag) if rng.random() < 0.7]
    cut = int(rng.integers(len(order) + 1))
    backwards = list(itertools.product(order[cut:], order[:cut]))
    fitting = [
        nx.to_numpy_array(each, nodelist="abcd") > 0
        for each, pattern in classes_of_four()
        if pattern == cpdag and not any(nx.has_path(each, b, a) for b, a in backwards)
    ]
    tiers = [tier for tier in (order[:cut], order[cut:]) if tier]
    found = run(pc, dag, Knowledge(tiers=tiers)).graph
    assert found.names == tuple("abcd")
    assert (found.directed == np.logical_and.reduce(fitting)).all()
    assert (found.adjacency == cpdag.adjacency).all()
