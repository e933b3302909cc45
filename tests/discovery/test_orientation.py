"""Orientation rules: exact on true separating sets, complete with background knowledge, and blind
to column order.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.discovery.constraint.orientation import (
    MEEK_RULES,
    ConflictRule,
    apply_meek_rules,
    collider_arrowheads,
    orient_colliders,
    unshielded_triples,
)
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import DSeparation, MixedGraph, dag_to_cpdag, random_dag
from tests.helpers import SEEDS, refused

Sets = dict[frozenset[str], tuple[str, ...]]
UNDIRECTED, BIDIRECTED = ConflictRule.UNDIRECTED, ConflictRule.BIDIRECTED


def true_separating_sets(dag: MixedGraph) -> Sets:
    """For non-adjacent a, b with b no ancestor of a, the parents of b separate them."""
    separation = DSeparation(dag)
    sets: Sets = {}
    for a, b in itertools.combinations(dag.names, 2):
        if dag.adjacent(a, b):
            continue
        if dag.index(b) in separation.ancestors(dag.index(a)):
            a, b = b, a
        parents = dag.parents(b)
        assert separation.separated(
            dag.index(a), dag.index(b), [dag.index(name) for name in parents]
        )
        sets[frozenset((a, b))] = parents
    return sets


@settings(max_examples=80)
@given(st.integers(1, 10), st.floats(0, 1), SEEDS, st.sampled_from(ConflictRule))
def test_true_separating_sets_give_the_cpdag(
    n: int, density: float, seed: int, rule: ConflictRule
) -> None:
    dag = MixedGraph.from_dag(random_dag(n, expected_degree=density * (n - 1), seed=seed))
    pattern = orient_colliders(dag.skeleton(), separating_sets=true_separating_sets(dag), rule=rule)
    assert apply_meek_rules(pattern) == dag_to_cpdag(dag)


def test_rules_are_complete_with_background_knowledge() -> None:
    """Meek 1995, theorem 4: the closure is the union of the class members that agree with the known
    directions.
    """
    names = ("a", "b", "c", "d")
    pairs = list(itertools.combinations(names, 2))
    dags = []
    for choice in itertools.product(("", "-->", "<--"), repeat=6):
        edges = [
            f"{a} {symbol} {b}" for (a, b), symbol in zip(pairs, choice, strict=True) if symbol
        ]
        graph = MixedGraph.from_edges(names, edges)
        if graph.is_dag():
            dags.append(graph)
    members: dict[MixedGraph, list[MixedGraph]] = {}
    for dag in dags:
        members.setdefault(dag_to_cpdag(dag), []).append(dag)
    rng = np.random.default_rng(0)
    needed_rule_4 = 0
    for dag in dags:
        cpdag = dag_to_cpdag(dag)
        known = np.triu(cpdag.undirected & (rng.random((4, 4)) < 0.35))
        known = (known | known.T) & cpdag.undirected
        marks = np.where(known, dag.marks, cpdag.marks)
        agreeing = [m for m in members[cpdag] if (m.marks[known] == dag.marks[known]).all()]
        expected = np.where(
            np.all([m.marks == agreeing[0].marks for m in agreeing], axis=0),
            agreeing[0].marks,
            3 * cpdag.adjacency,
        )
        closed = apply_meek_rules(MixedGraph(names, marks))
        assert closed == MixedGraph(names, expected)
        needed_rule_4 += bool(MEEK_RULES[3](marks).any())
    assert needed_rule_4 > 0


@pytest.mark.parametrize(
    ("rule", "edges", "triple"),
    [
        (0, ["k --> i", "i --- j"], ("k", "i", "j")),
        (1, ["i --> k", "k --> j", "i --- j"], None),
        (2, ["i --- k", "k --> j", "i --- l", "l --> j", "i --- j"], ("l", "i", "k")),
        (3, ["i --- k", "k --> l", "l --> j", "i --- l", "i --- j"], ("j", "i", "k")),
    ],
)
def test_each_rule_orients_its_own_pattern(
    rule: int, edges: list[str], triple: tuple[str, str, str] | None
) -> None:
    graph = MixedGraph.from_edges(["l", "j", "i", "k"], edges)
    expected = np.zeros((4, 4), dtype=bool)
    expected[graph.index("i"), graph.index("j")] = True
    assert (MEEK_RULES[rule](graph.marks) == expected).all()
    assert MEEK_RULES[rule].name == f"R{rule + 1}"
    assert apply_meek_rules(graph).has_edge("i", "j", symbol="-->")
    if triple is not None:
        assert not apply_meek_rules(graph, ambiguous=[triple]).has_edge("i", "j", symbol="-->")
        assert not apply_meek_rules(graph, ambiguous=[triple[::-1]]).has_edge(
            "i", "j", symbol="-->"
        )


@pytest.mark.parametrize(
    ("rule", "edges", "apart"),
    [
        (0, ["k --> i", "i --- j"], "k --- j"),
        (1, ["i --> k", "k --> j", "i --- j"], None),
        (2, ["i --- k", "k --> j", "i --- l", "l --> j", "i --- j"], "k --- l"),
        (3, ["i --- k", "k --> l", "l --> j", "i --- l", "i --- j"], "k --- j"),
    ],
)
def test_each_rule_needs_its_whole_pattern(rule: int, edges: list[str], apart: str | None) -> None:
    names = ["i", "j", "k", "l"]
    broken = [[edge for edge in edges if edge != left_out] for left_out in edges]
    for changed in [*broken, [*edges, apart]] if apart else broken:
        assert not MEEK_RULES[rule](MixedGraph.from_edges(names, changed).marks)[0, 1], changed


@st.composite
def problems(draw: st.DrawFn) -> tuple[MixedGraph, Sets, list[tuple[str, str, str]]]:
    """A skeleton, any separating sets at all, and any ambiguous triples."""
    names = tuple(f"x{i}" for i in range(draw(st.integers(1, 7))))
    edges, sets = [], {}
    for a, b in itertools.combinations(names, 2):
        if draw(st.booleans()):
            edges.append(f"{a} --- {b}")
        if draw(st.integers(0, 4)):
            others = [name for name in names if name not in (a, b)]
            sets[frozenset((a, b))] = tuple(name for name in others if draw(st.booleans()))
    skeleton = MixedGraph.from_edges(names, edges)
    ambiguous = [triple for triple in unshielded_triples(skeleton) if not draw(st.integers(0, 5))]
    return skeleton, sets, ambiguous


@settings(max_examples=150)
@given(problems(), st.randoms(use_true_random=False), st.sampled_from(ConflictRule))
def test_permuting_the_names_permutes_the_result(
    problem: tuple[MixedGraph, Sets, list[tuple[str, str, str]]], random: object, rule: ConflictRule
) -> None:
    skeleton, sets, ambiguous = problem
    order = list(range(skeleton.n_nodes))
    random.shuffle(order)  # type: ignore[attr-defined]

    def orient(graph: MixedGraph) -> MixedGraph:
        pattern = orient_colliders(graph, separating_sets=sets, rule=rule, ambiguous=ambiguous)
        return apply_meek_rules(pattern, ambiguous=ambiguous)

    result = orient(skeleton)
    assert orient(skeleton.permuted(order)) == result.permuted(order)
    renamed = {name: f"y{k}" for k, name in enumerate(reversed(skeleton.names))}
    moved = orient_colliders(
        MixedGraph(tuple(renamed[name] for name in skeleton.names), skeleton.marks),
        separating_sets={
            frozenset(renamed[name] for name in pair): tuple(renamed[name] for name in values)
            for pair, values in sets.items()
        },
        rule=rule,
    )
    assert (moved.marks == orient_colliders(skeleton, separating_sets=sets, rule=rule).marks).all()


@settings(max_examples=100)
@given(problems(), st.sampled_from(ConflictRule))
def test_what_holds_for_every_input(
    problem: tuple[MixedGraph, Sets, list[tuple[str, str, str]]], rule: ConflictRule
) -> None:
    skeleton, sets, ambiguous = problem
    pattern = orient_colliders(skeleton, separating_sets=sets, rule=rule, ambiguous=ambiguous)
    for a, b, c in unshielded_triples(skeleton):
        separating_set = sets.get(frozenset((a, c)))
        collider = (
            separating_set is not None and b not in separating_set and (a, b, c) not in ambiguous
        )
        if collider and rule is BIDIRECTED:
            assert all(pattern.edge(end, b).symbol in ("-->", "<->") for end in (a, c))  # type: ignore[union-attr]
        if collider and rule is UNDIRECTED:
            assert all(pattern.edge(end, b).symbol in ("-->", "---") for end in (a, c))  # type: ignore[union-attr]
    if rule is UNDIRECTED:
        assert not pattern.bidirected.any()
    closed = apply_meek_rules(pattern)
    assert (closed.adjacency == skeleton.adjacency).all()
    settled = ~pattern.undirected
    assert (closed.marks[settled] == pattern.marks[settled]).all()
    assert (closed.bidirected == pattern.bidirected).all()
    assert apply_meek_rules(closed) == closed
    matched = np.any([meek(closed.marks) for meek in MEEK_RULES], axis=0)
    assert (matched == matched.T).all()
    nothing = np.zeros((skeleton.n_nodes,) * 3, dtype=bool)
    for meek in MEEK_RULES:
        assert (meek(pattern.marks) == meek(pattern.marks, nothing)).all()


def test_colliders_in_conflict() -> None:
    names = ["a", "b", "c", "d"]
    chain = MixedGraph.from_edges(names, ["a --- b", "b --- c", "c --- d"])
    sets: Sets = {frozenset(("a", "c")): (), frozenset(("b", "d")): (), frozenset(("a", "d")): ()}
    left_open = orient_colliders(chain, separating_sets=sets, rule=UNDIRECTED)
    assert left_open == MixedGraph.from_edges(names, ["a --> b", "b --- c", "d --> c"])
    # both a --> b and d --> c claim the edge, in opposite directions
    assert apply_meek_rules(left_open) == left_open
    kept = orient_colliders(chain, separating_sets=sets, rule=BIDIRECTED)
    assert kept == MixedGraph.from_edges(names, ["a --> b", "b <-> c", "d --> c"])
    assert apply_meek_rules(kept) == kept


def test_unknown_and_ambiguous_triples_give_no_collider() -> None:
    names = ["a", "b", "c"]
    chain = MixedGraph.from_edges(names, ["a --- b", "b --- c"])
    sets: Sets = {frozenset(("a", "c")): ()}
    collider = MixedGraph.from_edges(names, ["a --> b", "c --> b"])
    assert unshielded_triples(chain) == (("a", "b", "c"),)
    assert orient_colliders(chain, separating_sets=sets, rule=UNDIRECTED) == collider
    assert orient_colliders(chain, separating_sets={}, rule=UNDIRECTED) == chain
    for triple in (("a", "b", "c"), ("c", "b", "a")):
        assert (
            orient_colliders(chain, separating_sets=sets, rule=UNDIRECTED, ambiguous=[triple])
            == chain
        )
    circles = MixedGraph.from_edges(names, ["a o-o b", "b o-o c"])
    heads = collider_arrowheads(circles, separating_sets=sets)
    assert np.argwhere(heads).tolist() == [[0, 1], [2, 1]]


def test_malformed_input_is_refused() -> None:
    chain = MixedGraph.from_edges(["a", "b", "c"], ["a --- b", "b --- c"])
    directed = MixedGraph.from_edges(["a", "b", "c"], ["a --> b"])
    refused(
        OptionError, "ConflictRule", orient_colliders, chain, separating_sets={}, rule="undirected"
    )
    with pytest.raises(GraphError, match="undirected edges only"):
        orient_colliders(directed, separating_sets={}, rule=UNDIRECTED)
    with pytest.raises(GraphError, match="pair of names"):
        orient_colliders(chain, separating_sets={frozenset(("a", "z")): ()}, rule=UNDIRECTED)
    with pytest.raises(GraphError, match="pair of names"):
        orient_colliders(chain, separating_sets={frozenset(("a",)): ()}, rule=UNDIRECTED)
    pytest.raises(GraphError, apply_meek_rules, chain, ambiguous=[("a", "b", "z")])
    pytest.raises(GraphError, apply_meek_rules, chain, ambiguous=[("a", "b", "a")])


def test_hundred_nodes_reach_the_cpdag() -> None:
    dag = MixedGraph.from_dag(random_dag(100, expected_degree=6, seed=4))
    pattern = orient_colliders(
        dag.skeleton(), separating_sets=true_separating_sets(dag), rule=UNDIRECTED
    )
    assert apply_meek_rules(pattern) == dag_to_cpdag(dag)
